"""Tables of counts by score: of rows, of frames of other engines, and of parts added up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, overload

import polars as pl

from polars_wroc.bounds import Bins
from polars_wroc.calls import check_call
from polars_wroc.checks import reject, reject_type, show_value
from polars_wroc.config import Division, division
from polars_wroc.counts.count_table import (
    STATE_COLUMNS,
    CountTable,
    count,
    merge,
    read_count_tables,
    with_same_keys,
)
from polars_wroc.counts.score_sums import HIGH, LOW, Binning
from polars_wroc.inputs.columns import (
    LABEL,
    MODEL,
    ROW_COUNT,
    ROW_CUBES,
    ROW_SQUARES,
    ROW_WEIGHT,
    SCORE,
    WEIGHT,
    ZERO_LABEL,
    Frequency,
    IntoColumn,
    IntoWeight,
    Typed,
    column_of,
    model_names,
    observe,
    score_column,
    shown_as,
)
from polars_wroc.inputs.expressions import named_columns, one_zero, typed_column
from polars_wroc.inputs.frames import frames_alike, read_rows, refuse_widened_scores
from polars_wroc.inputs.rows import IntoColumns, PlannedRows, polars_frame
from polars_wroc.queries import FrameT, collect, like_input

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw


@check_call
def merge_counts(counts: Sequence[FrameT], *, bins: Bins | None = None) -> FrameT:
    """Return the counts of all rows, added up from counts of parts.

    Parameters
    ----------
    counts
        A list of results of `score_counts`, all DataFrames or all LazyFrames, with the same groups
        and models. If they have scores and bins, or different numbers of bins, the result has the
        widest bins.
    bins
        Wider bins for the result; None keeps them.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        The result of `score_counts` for all rows at once, with the models in alphabetical order;
        sums may differ in the last digits. Scores of several types get the common one; Float32 is
        refused among other types, in which 0.7 is another number.

    Raises
    ------
    TypeError, ValueError
        For something that is not a table of counts, different groups, and ``bins`` below 16.
    polars.exceptions.InvalidOperationError
        As for `from_counts`; also for counts with and without labels together.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> days = [pl.DataFrame({"y": [1, 0], "s": scores}) for scores in ([0.9, 0.7], [0.7, 0.1])]
    >>> parts = [wroc.score_counts(day, "y", "s") for day in days]
    >>> wroc.merge_counts(parts).select("score", "n_pos", "n_neg")
    shape: (3, 3)
    ┌───────┬───────┬───────┐
    │ score ┆ n_pos ┆ n_neg │
    │ ---   ┆ ---   ┆ ---   │
    │ f64   ┆ i64   ┆ i64   │
    ╞═══════╪═══════╪═══════╡
    │ 0.9   ┆ 1     ┆ 0     │
    │ 0.7   ┆ 1     ┆ 1     │
    │ 0.1   ┆ 0     ┆ 1     │
    └───────┴───────┴───────┘
    """
    tables = read_count_tables("counts", counts)
    return like_input(counts[0], merge(tables, bins).table())


# The weight of a row if it is null or invalid, so that it is not summed; 0 in all other rows.
_INVALID_WEIGHT = "__invalid_weight"


def read_native_rows(
    frame: Any, label: Any, score: Any, weight: Any, by: Any, pos_label: object
) -> PlannedRows:
    """Check the arguments, and have the other engine count the rows of each label and score."""
    native = _open(frame)
    frequency = isinstance(weight, Frequency)
    weight = column_of(weight)
    for argument, value in {"label": label, "score": score, "weight": weight, "by": by}.items():
        _require_names(argument, value)
    schema = _polars_schema(native)
    empty = pl.LazyFrame(schema=schema)
    plan = read_rows(empty, label, score, weight, by, pos_label)
    models = [*named_columns("score", score, empty)]

    def observe_model(model: int) -> pl.LazyFrame:
        names = {"label": label, "score": models[model], "weight": weight}
        counted = _count(native, plan.names, label, models[model], weight, frequency=frequency)
        rows = _observe(counted, plan.group_keys, names, pos_label, frequency=frequency)
        if not plan.model_keys:
            return rows
        named = pl.lit(score_column(model)).alias(MODEL)
        return rows.with_columns(named).with_columns(model_names(models))

    counted = [observe_model(i) for i in range(len(models))]
    shown = [shown_as(pl.col(name)) for name in models]
    alike = frames_alike("score", counted, SCORE, shown=shown)
    parts = pl.concat(alike, how="vertical_relaxed")
    return replace(plan, frame=parts)


def _open(frame: Any) -> nw.LazyFrame[Any]:
    import narwhals.stable.v2 as nw  # noqa: PLC0415  (Polars frames do without it)

    try:
        native: nw.LazyFrame[Any] = nw.from_native(frame).lazy()
    except TypeError:
        native = nw.from_native(polars_frame(frame).lazy())
    return native


def _require_names(argument: str, value: Any) -> None:
    values = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    if value is not None and not all(isinstance(each, str) for each in values):
        reject_type(argument, "be column names for a frame that is not from Polars", value)


def _polars_schema(native: nw.LazyFrame[Any]) -> pl.Schema:
    """Return the data types, with Null for types that are unknown until rows are read."""
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
    *,
    frequency: bool,
) -> pl.DataFrame:
    """Return the engine's sums over rows with the same keys, label (if any) and score."""
    import narwhals.stable.v2 as nw  # noqa: PLC0415

    named = nw.col(ROW_WEIGHT)
    named_by = {**keys, **({} if label is None else {LABEL: label}), SCORE: score}
    rows = native.select(
        *(nw.col(name).alias(key) for key, name in named_by.items()),
        (nw.lit(1.0) if weight is None else nw.col(weight).cast(nw.Float64)).alias(ROW_WEIGHT),
    )
    # Engines differ in the order of NaN, not in whether it is finite.
    summed, number = (named >= 0) & named.is_finite(), nw.len()
    squares, cubes = named * named, named * named * named
    if frequency:
        summed, squares, cubes = summed & (named % 1 == 0), named, named
        number = nw.when(named.is_null()).then(nw.lit(1.0)).otherwise(named).sum()
    invalid = nw.when(summed).then(nw.lit(0.0)).otherwise(named)
    groups = rows.filter((named != 0) | named.is_null()).with_columns(
        invalid.alias(_INVALID_WEIGHT),
        squares.alias(ROW_SQUARES),
        cubes.alias(ROW_CUBES),
    )
    sums = nw.col(ROW_WEIGHT, ROW_SQUARES, ROW_CUBES).sum()
    by = [*named_by, _INVALID_WEIGHT]
    counted = groups.group_by(by).agg(number.alias(ROW_COUNT), sums).collect("polars")
    in_polars: pl.DataFrame = counted.to_native()
    return in_polars


def _observe(
    counted: pl.DataFrame,
    keys: Sequence[str],
    names: dict[str, str | None],
    pos_label: object,
    *,
    frequency: bool,
) -> pl.LazyFrame:
    """Check each group of rows as if it were one row with the weight of all."""
    invalid = pl.col(_INVALID_WEIGHT)
    frame = counted.lazy().with_columns(
        pl.when(invalid == 0).then(ROW_WEIGHT).otherwise(invalid).alias(ROW_WEIGHT),
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
    seen = observe(label, score, weight, pos_label, frequency=frequency)
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


@overload
def score_counts(
    frame: FrameT | list[FrameT],
    label: IntoColumn | None,
    score: IntoColumns,
    *,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    bins: Bins | None = None,
) -> FrameT: ...


@overload
def score_counts(
    frame: Any,
    label: str | None,
    score: str | Sequence[str],
    *,
    weight: str | None = None,
    by: str | Sequence[str] | None = None,
    pos_label: object = None,
    bins: Bins | None = None,
) -> pl.DataFrame: ...


@check_call
def score_counts(
    frame: Any,
    label: IntoColumn | None,
    score: IntoColumns,
    *,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    bins: Bins | None = None,
) -> pl.DataFrame | pl.LazyFrame:
    """Return row counts and sums of weights by score, which can be merged with others.

    Use it to reduce many rows, also in a database, to a small table for `from_counts`.

    The main columns are:

    - the ``by`` columns (and ``model``);
    - ``score``, or with ``bins``: ``bins, score_low, score_high``;
    - ``n_pos, n_neg, n_missing``: numbers of rows;
    - ``w_pos, w_neg``: sums of the weights of each class;
    - ``w2_pos, w2_neg, w3_pos, w3_neg``: sums of their squares and cubes.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; or, through `Narwhals <https://narwhals-dev.github.io/narwhals>`_, a
        frame of DuckDB, Ibis (and so BigQuery or Snowflake), Spark, SQLFrame, pandas or PyArrow,
        which adds up its rows itself. Or a list of frames that are parts of one; workers of a
        client of `Config` count LazyFrames.
    label, score, weight, by, pos_label
        As for `summary`; only names of columns if the frame is not a Polars frame. With
        ``label=None`` all rows count as negative. A row without a label is missing whatever its
        score: count with ``label=None`` for selection rates of all rows.
    bins
        Count bins of scores instead of distinct scores: about this many for probabilities, at least
        16, and more for scores that span more powers of two. Edges do not depend on the data, so
        counts of different parts fit together.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        The same kind of frame as the argument, or a DataFrame for other engines. One row per group
        (and model) and distinct score or bin, sorted by the ``by`` columns, then by descending
        score; missing rows of a group come last, with a null score. Scores keep their type, or get
        the common one of several; Float32 is refused among other types. Counts are Int64, sums
        Float64. Without a label the last column is ``labelled`` (Boolean), False.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`.

    Notes
    -----
    From counts by score all results are exact; from bins an AUC has bounds.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.7, 0.7, 0.1]})
    >>> wroc.score_counts(df, "y", "s").select("score", "n_pos", "n_neg")
    shape: (3, 3)
    ┌───────┬───────┬───────┐
    │ score ┆ n_pos ┆ n_neg │
    │ ---   ┆ ---   ┆ ---   │
    │ f64   ┆ i64   ┆ i64   │
    ╞═══════╪═══════╪═══════╡
    │ 0.9   ┆ 1     ┆ 0     │
    │ 0.7   ┆ 1     ┆ 1     │
    │ 0.1   ┆ 0     ┆ 1     │
    └───────┴───────┴───────┘
    """
    parts = frame if isinstance(frame, list) else [frame]
    if not parts:
        reject_type("frame", "be a frame, or a list of frames that are parts of one", parts)
    binning = Binning(bins)
    if label is None and pos_label is not None:
        reject("pos_label", "be None without a label", show_value(pos_label))
    counted = [_count_frame(part, label, score, weight, by, pos_label, binning) for part in parts]
    is_lazy = any(isinstance(part, pl.LazyFrame) for part in parts)
    if isinstance(frame, list):
        table = _add_up_parts(counted, division() if is_lazy else None)
    else:
        table = counted[0].table()
    return table if is_lazy else collect(table)


def _count_frame(
    frame: Any,
    label: IntoColumn | None,
    score: IntoColumns,
    weight: IntoWeight | None,
    by: IntoColumns | None,
    pos_label: object,
    binning: Binning,
) -> CountTable:
    """Return the counts of the rows of a frame."""
    if isinstance(frame, pl.DataFrame | pl.LazyFrame):
        # Several scores share a column of the counts.
        models = named_columns("score", score, frame.lazy())
        typed = [typed_column("score", column, frame.lazy()) for column in models.values()]
        refuse_widened_scores(typed)
    read = read_rows if isinstance(frame, pl.DataFrame | pl.LazyFrame) else read_native_rows
    rows = read(frame, label, score, weight, by, pos_label)
    # Groups must not have names of columns by which tables of counts are recognized.
    rows.check_names([*STATE_COLUMNS, MODEL])
    return count(rows, binning, labelled=label is not None)


def _add_up_parts(parts: Sequence[CountTable], divided: Division | None) -> pl.LazyFrame:
    """Return the sum of the counts of parts, made by the workers of a client if there is one."""
    tables = with_same_keys("frame", parts)
    plans = frames_alike("frame", [table.frame for table in tables], LOW, HIGH)
    merged = merge([replace(tables[0], frame=plan) for plan in plans], None)
    if divided is None or not divided.has_workers:
        return merged.table()
    # Workers need no plan of the rows to add up counts.
    shape = replace(merged, frame=pl.LazyFrame())

    def on_workers() -> pl.DataFrame:
        counts = divided.reduce(collect, plans, partial(_add_counts, shape=shape))
        return collect(replace(shape, frame=counts.lazy()).table())

    return pl.defer(on_workers, schema=merged.table().collect_schema())


def _add_counts(counts: Sequence[pl.DataFrame], shape: CountTable) -> pl.DataFrame:
    """Return the sum of counts, which are tables of the same shape."""
    return collect(merge([replace(shape, frame=each.lazy()) for each in counts], None).frame)
