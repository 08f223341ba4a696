"""Gates on the paired comparisons of scores."""

from __future__ import annotations

from typing import ClassVar

import polars as pl

from polars_wroc.audits.gates import Gate
from polars_wroc.inputs.names import MISSING, OVERALL
from polars_wroc.metrics.compare import COMPARISON_COLUMNS

_MODELS = ("model_a", "model_b")
_NUMBERS = tuple(name for name in COMPARISON_COLUMNS if name not in _MODELS)


class ComparisonGate(Gate[pl.DataFrame]):
    """A condition on a number of the table of `compare`."""

    WHAT: ClassVar[str] = "the comparisons"

    def values(self, result: pl.DataFrame) -> pl.DataFrame:
        """Lay out the pairs of scores, in each group if there are groups."""
        groups = result.columns[: -len(COMPARISON_COLUMNS)]
        named = [
            pl.format("{} {}", pl.lit(name), pl.col(name).cast(pl.String).fill_null(MISSING))
            for name in groups
        ]
        segment = pl.concat_str(named, separator=", ") if named else pl.lit(OVERALL)
        value = pl.col(self.name).cast(pl.Float64)
        if self.name in ("ci_low", "ci_high"):
            # The limits of scores that rank alike are null: nothing varies.
            value = pl.when(pl.col("p_value") == 1).then(value.fill_null(0.0)).otherwise(value)
        return result.select(
            segment.alias("segment"),
            # The names of what a gate compares.
            pl.col("model_a").alias("group_min"),
            pl.col("model_b").alias("group_max"),
            shown=value,
            value=value,
        )


def read_comparison_gate(text: str) -> ComparisonGate:
    """Read a condition such as ``ci_high<0``."""
    return ComparisonGate.read(text, _NUMBERS)
