"""How far the score-type interval of an AUC rests on its rows, and a note where it rests on few."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from polars_wroc.inputs.rows import CLASSES
from polars_wroc.metrics.score_interval import ScoreInterval
from polars_wroc.plans.steps import Fields

# Effective numbers of misranked rows and the note; null with other methods than the score type.
RELIABILITY_COLUMNS = ("k_pos", "k_neg", "ci_note")
# With fewer misranked rows of a class than this there is a note.
_FEW_MISRANKED = 3
# Weights depend on the score where misranked rows are so many times heavier than others, or Kish's
# effective sample size is so small a part of the number of rows.
_MUCH_HEAVIER, _LOW_EFFICIENCY = 2, 0.2


@dataclass(frozen=True)
class Reliability:
    """The columns on the reliability of an interval.

    ``effective`` are the columns of Kish's effective sample sizes of the rows of each class; if
    rows are ``equal``, each is as heavy as any other.
    """

    interval: ScoreInterval
    effective: Mapping[str, str]
    equal: bool

    def columns(self, field: Fields) -> dict[str, pl.Expr]:
        """Compute `RELIABILITY_COLUMNS` from the columns of the interval."""
        interval, known = self.interval, field("ci_low").is_not_null()
        related: list[pl.Expr] = []
        for side in CLASSES:
            efficiency = field(self.effective[side]) / field(f"n_{side}")
            related.append((efficiency < _LOW_EFFICIENCY) & pl.lit(not self.equal))
            ends = (field(interval.heavier(end, side)) for end in ("low", "high"))
            related += [heavier > _MUCH_HEAVIER for heavier in ends]
        misranked = [field(interval.misranked("low", side)) for side in CLASSES]
        note = pl.when(known & pl.any_horizontal(related)).then(
            pl.lit("weights depend on the score")
        )
        few = known & (pl.min_horizontal(misranked) < _FEW_MISRANKED)
        values = (
            *(pl.when(known).then(k) for k in misranked),
            note.when(few).then(pl.lit("few misranked rows")),
        )
        return dict(zip(RELIABILITY_COLUMNS, values, strict=True))


def unknown_reliability(_: Fields) -> dict[str, pl.Expr]:
    """Fill `RELIABILITY_COLUMNS` with nulls, where the method is another."""
    types = (pl.Float64, pl.Float64, pl.String)
    return {name: pl.lit(None, t) for name, t in zip(RELIABILITY_COLUMNS, types, strict=True)}
