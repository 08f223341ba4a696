"""From what the caller names to checked rows of a frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import polars as pl

from polars_wroc.inputs.arguments import reject_type
from polars_wroc.inputs.columns import (
    CLUSTER,
    LABEL,
    ROW_WEIGHT,
    SCORE,
    WEIGHT,
    ZERO_LABEL,
    IntoColumn,
    Observations,
    Typed,
    numeric,
    observe,
)
from polars_wroc.inputs.expressions import as_column, of_length
from polars_wroc.inputs.missing import lacks_score, missing_marks
from polars_wroc.inputs.named_columns import named_columns, one_zero, typed_column
from polars_wroc.inputs.names import MODEL
from polars_wroc.inputs.rows import IntoColumns, Rows, RowSource
from polars_wroc.inputs.score_types import in_one_type


def require_groups(by: object, rule: str = "name the groups to compare") -> None:
    """Check that the argument ``by`` is there; what it names is checked with the frame."""
    if by is None:
        reject_type("by", rule, by)


def read_rows(
    frame: pl.DataFrame | pl.LazyFrame | RowSource,
    label: IntoColumn,
    score: IntoColumns,
    weight: IntoColumn | None,
    by: IntoColumns | None,
    pos_label: object,
    *,
    result_columns: Sequence[str],
    cluster: IntoColumn | None = None,
    each_a_cluster: bool = False,
    mark_missing: bool = False,
) -> Rows:
    """Check the arguments against the frame's schema and lay out its rows.

    Nothing is computed: only the schema of a lazy frame is looked at. ``result_columns``
    are the names that a group column must not take. Where the frame holds counts a row stands
    for several. ``each_a_cluster`` numbers the rows, the same in all models; ``mark_missing`` adds
    `MISSING_MARKS` to those of a frame.
    """
    if isinstance(frame, RowSource):
        return _read_counts(frame, by, result_columns)
    columns = _read(frame, label, score, weight, by, cluster, result_columns)
    if each_a_cluster:
        columns = _numbered(columns)
    selected, keys, typed_score = columns.frame, columns.keys, columns.scores[0]
    if columns.several:
        names = [score_column(i) for i in range(len(columns.models))]
        alike = in_one_type(columns.scores)
        selected = selected.with_columns(
            score.alias(name) for name, score in zip(names, alike, strict=True)
        )
        selected = selected.unpivot(
            on=names,
            index=[name for name in selected.collect_schema() if name not in names],
            variable_name=MODEL,
            value_name=SCORE,
        ).with_columns(model_names(columns.models))
        keys = [*keys, MODEL]
        typed_score = typed_score._replace(
            column=pl.col(SCORE), dtype=selected.collect_schema()[SCORE]
        )
    seen = observe(columns.label, typed_score, columns.weight, pos_label)
    marks = [missing_marks(columns.label, typed_score, columns.weight)] if mark_missing else []
    observed = selected.select(*keys, seen.score.alias(SCORE), *_beside(columns, seen), *marks)
    return Rows(observed, keys, [MODEL] if columns.several else [])


def _read_counts(source: RowSource, by: IntoColumns | None, result_columns: Sequence[str]) -> Rows:
    groups = source.frame.select(key for key in source.keys if key != MODEL)
    keys = {} if by is None else _named_keys(by, groups)
    _check_key_names(keys, result_columns)
    return source.rows(keys)


def read_paired_rows(
    frame: pl.DataFrame | pl.LazyFrame,
    label: IntoColumn,
    score: IntoColumns,
    weight: IntoColumn | None,
    by: IntoColumns | None,
    pos_label: object,
    *,
    result_columns: Sequence[str],
    cluster: IntoColumn | None = None,
) -> tuple[Rows, list[str]]:
    """Lay out the rows with their scores side by side, and name the models.

    The scores are in the columns `score_column`. A row that lacks one of them is missing.
    """
    columns = _read(frame, label, score, weight, by, cluster, result_columns)
    if len(columns.models) < 2:  # noqa: PLR2004  (two make a pair)
        msg = f"`score` must hold two or more columns to compare; found {columns.models}"
        raise ValueError(msg)
    seen = [observe(columns.label, typed, columns.weight, pos_label) for typed in columns.scores]
    complete = pl.all_horizontal(each.weight.is_not_null() for each in seen)
    first = replace(seen[0], weight=pl.when(complete).then(seen[0].weight))
    scores = [
        pl.when(complete).then(each.score).alias(score_column(i)) for i, each in enumerate(seen)
    ]
    observed = columns.frame.select(*columns.keys, *scores, *_beside(columns, first))
    return Rows(observed, columns.keys), columns.models


def missing_values(
    frame: pl.DataFrame | pl.LazyFrame | RowSource,
    label: IntoColumn,
    score: IntoColumns,
    weight: IntoColumn | None,
    by: IntoColumns,
) -> pl.LazyFrame:
    """Count the rows that lack a value, a NaN score included: one row with a column for each.

    Counts tell this of groups only.
    """
    if isinstance(frame, RowSource):
        keys = _named_keys(by, frame.frame.select(frame.keys))
        rows_of = frame.multiplicity()
        lacking = {name: rows_of.filter(key.is_null()).sum() for name, key in keys.items()}
        return frame.frame.select(**lacking)
    columns = _read(frame, label, score, weight, by, None, ())
    counted = {LABEL: columns.label.column.null_count()}
    for name, typed in zip(columns.models, columns.scores, strict=True):
        counted[name] = lacks_score(typed).sum()
    if columns.weight is not None:
        counted[ROW_WEIGHT] = columns.weight.column.null_count()
    # A score that is an attribute too lacks more than nulls.
    counted |= {key: pl.col(key).null_count() for key in columns.keys if key not in counted}
    return columns.frame.select(count.cast(pl.Int64).alias(n) for n, count in counted.items())


def model_names(models: Sequence[str]) -> pl.Expr:
    """Name the models after a column of names of score columns."""
    # By code: a branch for each name would hold all rows once for each model. Not replace_strict,
    # which the streaming engine hands to the other one.
    columns = pl.Enum([score_column(i) for i in range(len(models))])
    return pl.col(MODEL).cast(columns).cat.physical().cat.to(pl.Enum(models)).alias(MODEL)


def score_column(model: int) -> str:
    """Name the score of one of several models."""
    return f"{SCORE}_{model}"


class _Columns(NamedTuple):
    """What the arguments name, as columns of one frame without the rows of weight zero."""

    frame: pl.LazyFrame
    keys: list[str]
    models: list[str]
    several: bool
    label: Typed
    scores: list[Typed]
    weight: Typed | None
    clustered: bool


def _read(
    frame: pl.DataFrame | pl.LazyFrame,
    label: IntoColumn,
    score: IntoColumns,
    weight: IntoColumn | None,
    by: IntoColumns | None,
    cluster: IntoColumn | None,
    result_columns: Sequence[str],
) -> _Columns:
    if not isinstance(frame, pl.DataFrame | pl.LazyFrame):
        kind = type(frame)
        msg = (
            "`frame` must be a Polars DataFrame or LazyFrame; "
            f"found one of {kind.__module__.split('.')[0]} of type {kind.__name__}"
        )
        raise TypeError(msg)
    lazy = frame.lazy()
    keys = {} if by is None else _named_keys(by, lazy)
    models = named_columns("score", score, lazy)
    several = not isinstance(score, str | pl.Expr) or len(models) > 1
    _check_key_names(keys, [*result_columns, *([MODEL] if several else [])])

    typed_scores = [typed_column("score", column, lazy) for column in models.values()]
    for typed in typed_scores:
        numeric(typed)
    named = {LABEL: typed_column("label", as_column("label", label), lazy)}
    if weight is not None:
        named[ROW_WEIGHT] = typed_column("weight", as_column("weight", weight), lazy)
    if cluster is not None:
        named[CLUSTER] = typed_column("cluster", as_column("cluster", cluster), lazy)
    score_names = [score_column(i) if several else SCORE for i in range(len(models))]
    named |= dict(zip(score_names, typed_scores, strict=True))
    selected = lazy.select(
        *(column.alias(name) for name, column in keys.items()),
        *(typed.column.alias(name) for name, typed in named.items()),
    )
    if weight is not None:
        # As if the row were not there, whatever else it holds.
        selected = selected.filter(pl.col(ROW_WEIGHT).ne_missing(0))
    named = {name: typed._replace(column=pl.col(name)) for name, typed in named.items()}
    return _Columns(
        frame=selected,
        keys=list(keys),
        models=list(models),
        several=several,
        label=named[LABEL],
        scores=[named[name] for name in score_names],
        weight=named.get(ROW_WEIGHT),
        clustered=cluster is not None,
    )


def _numbered(columns: _Columns) -> _Columns:
    """Number the rows by what they hold, in whatever order they come."""
    missing = pl.all_horizontal(lacks_score(typed) for typed in columns.scores)
    for typed in (columns.label, columns.weight):
        if typed is not None:
            missing |= typed.column.is_null()
    # Missing rows come last, as if they were not there. Those that are alike may be exchanged.
    ordered = columns.frame.sort(missing, pl.all(), maintain_order=False)
    return columns._replace(frame=ordered.with_row_index(CLUSTER), clustered=True)


def _beside(columns: _Columns, seen: Observations) -> list[pl.Expr]:
    """What stands beside the keys and scores of checked rows."""
    carried = [seen.weight.alias(WEIGHT)]
    if seen.zero_label is not None:
        carried.append(seen.zero_label.alias(ZERO_LABEL))
    if columns.clustered:
        carried.append(pl.col(CLUSTER))
    return carried


def _named_keys(by: IntoColumns, frame: pl.LazyFrame) -> dict[str, pl.Expr]:
    columns = named_columns("by", by, frame)
    return {
        name: one_zero(of_length("by", column, pl.len()), frame) for name, column in columns.items()
    }


def _check_key_names(keys: dict[str, pl.Expr], taken: Sequence[str]) -> None:
    for name in keys:
        if name.startswith("__"):
            msg = f"`by` must not start with two underscores; found {name!r}"
            raise ValueError(msg)
        if name in taken:
            msg = (
                f"`by` must not take the name of a result column; found {name!r}: "
                f"rename it, as in pl.col({name!r}).alias(...)"
            )
            raise ValueError(msg)


def require_texts(rows: Rows) -> None:
    """Check that groups can be named: the types of their values have texts."""
    for name, dtype in rows.frame.select(rows.keys).collect_schema().items():
        if dtype.is_nested() or dtype in (pl.Duration, pl.Binary):
            msg = (
                "`by` must hold values that can be written as text; "
                f"found column {name!r} of type {dtype}"
            )
            raise TypeError(msg)
