"""Tests and verdicts of planned comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from polars_wroc.groups.comparisons import ALIKE, DIFFERENT, TOO_LITTLE
from polars_wroc.inputs.arguments import MARGIN
from polars_wroc.plans.formulas import Fields, cases, when
from polars_wroc.plans.queries import FrameT, over
from polars_wroc.stats.difference_tests import Adjust, adjusted, is_significant

# Marks the second of two groups that share a test.
REPEATED = "__repeated"


class GapTests(NamedTuple):
    """How gaps are tested, and the minimum number of rows; ``designed`` with a survey."""

    level: float
    adjust: Adjust
    min_rows: int
    margin: float = MARGIN
    designed: bool = False


def adjusted_once(rows: FrameT, partition_keys: Sequence[str], adjust: Adjust) -> FrameT:
    """Add p-values adjusted for all tests of the table, and the ``number`` that share the error.

    Two segments that share a test count once.
    """
    repeated, p_value = pl.col(REPEATED), pl.col("p_value")
    once = rows.with_columns(pl.when(~repeated).then(p_value).alias("p_value"), __p_value=p_value)
    of_both = over(pl.col("p_adjusted").max(), [*partition_keys, "metric"])
    return adjusted(once, adjust).with_columns(
        number=pl.lit(1) if adjust == "none" else p_value.count().clip(lower_bound=1),
        p_value=pl.col("__p_value"),
        p_adjusted=pl.when(repeated).then(of_both).otherwise("p_adjusted"),
    )


def error_of_a_test(field: Fields, tests: GapTests) -> pl.Expr:
    """Return the share of the error that one of the ``number`` of tests has."""
    return (1 - tests.level) / field("number")


def verdict_of(field: Fields, alike: pl.Expr, level: float) -> pl.Expr:
    """Judge a gap that may be shown to be ``alike`` by its adjusted p-value."""
    different = is_significant(field("p_adjusted"), level)
    known = (alike.fill_null(value=False), ALIKE), (different.fill_null(value=False), DIFFERENT)
    verdict = cases(*known, otherwise=TOO_LITTLE)
    return when(field("gap").is_not_null()).then(verdict)
