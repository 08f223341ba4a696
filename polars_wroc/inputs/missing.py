"""Which values a row lacks, as one small number that goes with it, and how many rows lack each."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_wroc.inputs.columns import LABEL, ROW_WEIGHT, Typed
from polars_wroc.inputs.names import MODEL

MISSING_MARKS = "__missing_marks"
_LABEL, _SCORE, _WEIGHT = 1, 2, 4


def lacks_score(score: Typed) -> pl.Expr:
    """Whether a score is missing, as NaN is too."""
    missing = score.column.is_null()
    return missing | score.column.is_nan() if score.dtype.is_float() else missing


def missing_marks(label: Typed, score: Typed, weight: Typed | None) -> pl.Expr:
    """Mark what a row lacks of these."""
    lacks = {_LABEL: label.column.is_null(), _SCORE: lacks_score(score)}
    if weight is not None:
        lacks[_WEIGHT] = weight.column.is_null()
    marks = [missing.cast(pl.UInt8) * pl.lit(mark, pl.UInt8) for mark, missing in lacks.items()]
    return pl.sum_horizontal(marks).cast(pl.UInt8).alias(MISSING_MARKS)


def count_missing(
    table: pl.DataFrame, groups: Sequence[str], scores: Sequence[str]
) -> dict[str, int]:
    """Count the marked rows that lack a value, by column; each row is there for each score."""
    no_group = [pl.col(key).is_null() for key in groups]
    lacking = table.filter(pl.any_horizontal(pl.col(MISSING_MARKS) != 0, *no_group))
    of_score = dict.fromkeys(scores, lacking)
    if MODEL in table.columns:
        of_score = {name: lacking.filter(pl.col(MODEL) == name) for name in scores}
    first = of_score[scores[0]]
    counts = {LABEL: _count(first, _LABEL)}
    counts |= {name: _count(rows, _SCORE) for name, rows in of_score.items()}
    counts[ROW_WEIGHT] = _count(first, _WEIGHT)
    # A score that is an attribute too lacks more than nulls.
    return counts | {key: first[key].null_count() for key in groups if key not in counts}


def _count(lacking: pl.DataFrame, mark: int) -> int:
    return lacking.filter((pl.col(MISSING_MARKS) & mark) != 0).height
