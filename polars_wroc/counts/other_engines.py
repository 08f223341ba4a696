"""Counts by score of frames of other engines, which group and add up their rows themselves.

The other engine groups by the values of label and score as they are. Their meaning and validity
are checked on the groups, by the same code as for rows of Polars frames.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from polars_wroc.inputs.arguments import reject_type
from polars_wroc.inputs.columns import (
    LABEL,
    ROW_COUNT,
    ROW_CUBES,
    ROW_SQUARES,
    ROW_WEIGHT,
    SCORE,
    WEIGHT,
    ZERO_LABEL,
    Typed,
    observe,
    shown_as,
)
from polars_wroc.inputs.frames import model_names, read_rows, score_column
from polars_wroc.inputs.named_columns import named_columns, one_zero
from polars_wroc.inputs.names import MODEL
from polars_wroc.inputs.rows import Rows
from polars_wroc.inputs.score_types import frames_alike

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

# A weight that is null or invalid and must not be summed; zero for all others.
_UNSUMMED = "__unsummed"


def read_native_rows(
    frame: Any,
    label: Any,
    score: Any,
    weight: Any,
    by: Any,
    pos_label: object,
) -> Rows:
    """Check the arguments, and have the other engine count the rows of each label and score."""
    native = _open(frame)
    for argument, value in {"label": label, "score": score, "weight": weight, "by": by}.items():
        _require_names(argument, value)
    schema = _polars_schema(native)
    empty = pl.LazyFrame(schema=schema)
    plan = read_rows(empty, label, score, weight, by, pos_label)
    models = [*named_columns("score", score, empty)]

    def observed(model: int) -> pl.LazyFrame:
        names = {"label": label, "score": models[model], "weight": weight}
        counted = _count(native, plan.names, label, models[model], weight)
        rows = _observe(counted, plan.group_keys, names, pos_label)
        if not plan.model_keys:
            return rows
        named = pl.lit(score_column(model)).alias(MODEL)
        return rows.with_columns(named).with_columns(model_names(models))

    counted = [observed(i) for i in range(len(models))]
    shown = [shown_as(pl.col(name)) for name in models]
    alike = frames_alike("score", counted, SCORE, shown=shown)
    parts = pl.concat(alike, how="vertical_relaxed")
    return replace(plan, frame=parts)


def _open(frame: Any) -> nw.LazyFrame[Any]:
    import narwhals.stable.v2 as nw  # noqa: PLC0415  (Polars frames do without it)

    try:
        native: nw.LazyFrame[Any] = nw.from_native(frame).lazy()
    except TypeError:
        reject_type("frame", "be a Polars frame or one of another engine that Narwhals has", frame)
    return native


def _require_names(argument: str, value: Any) -> None:
    values = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    if value is not None and not all(isinstance(each, str) for each in values):
        reject_type(argument, "name columns where the frame is not of Polars", value)


def _polars_schema(native: nw.LazyFrame[Any]) -> pl.Schema:
    """Return the data types, with Null for those that are unknown until rows are read."""
    types = native.collect_schema().to_polars()
    return pl.Schema(
        {name: pl.Null() if t in (pl.Unknown, pl.Object) else t for name, t in types.items()}
    )


def _count(
    native: nw.LazyFrame[Any],
    keys: Mapping[str, str],
    label: str | None,
    score: str,
    weight: str | None,
) -> pl.DataFrame:
    """Have the engine add up the rows that have the same keys, label if any, and score."""
    import narwhals.stable.v2 as nw  # noqa: PLC0415

    named = nw.col(ROW_WEIGHT)
    named_by = {**keys, **({} if label is None else {LABEL: label}), SCORE: score}
    rows = native.select(
        *(nw.col(name).alias(key) for key, name in named_by.items()),
        (nw.lit(1.0) if weight is None else nw.col(weight).cast(nw.Float64)).alias(ROW_WEIGHT),
    )
    # Engines differ in the order of NaN, not in whether it is finite.
    summed = (named >= 0) & named.is_finite()
    unsummed = nw.when(summed).then(nw.lit(0.0)).otherwise(named)
    groups = rows.filter((named != 0) | named.is_null()).with_columns(
        unsummed.alias(_UNSUMMED),
        (named * named).alias(ROW_SQUARES),
        (named * named * named).alias(ROW_CUBES),
    )
    sums = nw.col(ROW_WEIGHT, ROW_SQUARES, ROW_CUBES).sum()
    by = [*named_by, _UNSUMMED]
    counted = groups.group_by(by).agg(nw.len().alias(ROW_COUNT), sums).collect("polars")
    in_polars: pl.DataFrame = counted.to_native()
    return in_polars


def _observe(
    counted: pl.DataFrame, keys: Sequence[str], names: dict[str, str | None], pos_label: object
) -> pl.LazyFrame:
    """Check each group of rows, as if it was one row with the weight of all."""
    unsummed = pl.col(_UNSUMMED)
    frame = counted.lazy().with_columns(
        pl.when(unsummed == 0).then(ROW_WEIGHT).otherwise(unsummed).alias(ROW_WEIGHT),
        pl.col(ROW_COUNT).cast(pl.Int64),
    )
    schema = frame.collect_schema()
    columns = dict(zip(names, (LABEL, SCORE, ROW_WEIGHT), strict=True))
    label, score, weight = (
        Typed(argument, pl.col(column), schema[column], shown_as(pl.col(names[argument] or "")))
        if column in schema
        else None
        for argument, column in columns.items()
    )
    assert score is not None
    seen = observe(label, score, weight, pos_label)
    zero = [] if seen.zero_label is None else [seen.zero_label.alias(ZERO_LABEL)]
    return frame.select(
        *(one_zero(pl.col(key), frame).alias(key) for key in keys),
        seen.score.alias(SCORE),
        seen.weight.alias(WEIGHT),
        *zero,
        ROW_COUNT,
        ROW_SQUARES,
        ROW_CUBES,
    )
