"""The tables of an audit, from which findings, gates and the report are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import polars as pl

from polars_wroc.audits.run import Run
from polars_wroc.audits.segment_keys import compared_within, segment_keys
from polars_wroc.audits.settings import AuditSettings


@dataclass(frozen=True)
class EnoughRows:
    """Which segments have enough rows for a metric and, under ``auc_gap``, for a test of it."""

    table: pl.DataFrame

    def where(self, names: Sequence[str]) -> pl.DataFrame:
        """List all segments; ``enough`` is whether they have enough rows for all these names."""
        enough = pl.all_horizontal(names).alias("enough")
        return self.table.select(*segment_keys(self.table), enough)

    def for_ratios(self, impact: pl.DataFrame) -> pl.DataFrame:
        """Add to impact ratios whether a category and its reference have ``enough`` rows."""
        enough = self.where(["selection_rate"])
        table = impact.join(
            enough, on=segment_keys(impact), how="left", nulls_equal=True, maintain_order="left"
        )
        is_reference = pl.col("segment") == pl.col("reference")
        of_reference = pl.col("enough").filter(is_reference).first().over(compared_within(impact))
        both = (pl.col("enough") & of_reference).fill_null(value=False)
        return table.with_columns(both.alias("enough"))


@dataclass(frozen=True)
class JudgedGate:
    """A condition, whether it is met, and where it is or could not be judged."""

    condition: str
    met: bool
    where: Sequence[str]
    not_judged: Sequence[str]

    @property
    def sentence(self) -> str:
        """Say whether the condition is met, where, and where it could not be judged."""
        outcome = f"met: {'; '.join(self.where)}" if self.met else "not met"
        unknown = f"; not judged in {'; '.join(self.not_judged)}" if self.not_judged else ""
        return f"{self.condition}: {outcome}{unknown}"

    def as_dict(self) -> dict[str, Any]:
        """Return the gate as values for JSON."""
        return asdict(self)


@dataclass(frozen=True, repr=False, eq=False)
class AuditTables:
    """The tables of an audit; None if its scores or options do not allow a table."""

    segments: pl.DataFrame
    curves: pl.DataFrame
    gaps: pl.DataFrame
    calibration: pl.DataFrame | None
    fairness: pl.DataFrame | None
    impact: pl.DataFrame | None
    missing: pl.DataFrame
    enough_rows: EnoughRows
    # Degrees of freedom of the design of a survey.
    design_df: int | None
    parameters: AuditSettings
    run: Run = field(default_factory=Run)
    # Conditions of a pipeline, if there were any.
    gates: Sequence[JudgedGate] = ()
    # Segments of few rows, and those that would give them away, if they are not to be shown.
    left_out: Sequence[str] = ()
    # Attributes whose rows without a value are in no number, since these segments are left out.
    left_out_of_totals: Sequence[str] = ()
