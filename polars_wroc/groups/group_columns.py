"""The columns of a comparison of groups, and the order of the rows of its table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np
import polars as pl

from polars_wroc.arrays import Array, Mask, Texts
from polars_wroc.checks import reject
from polars_wroc.groups.categories import Grouping, Intersections
from polars_wroc.groups.comparisons import COMPARISON_SCHEMA
from polars_wroc.groups.divisions import read_divisions
from polars_wroc.inputs.columns import AUDIT_KEYS, MODEL, IntoColumn, IntoWeight
from polars_wroc.inputs.decisions import score_or_decisions
from polars_wroc.inputs.designs import Design
from polars_wroc.inputs.expressions import named_columns
from polars_wroc.inputs.rows import IntoColumns, RowSource
from polars_wroc.metrics.segments import Decisions, Needs
from polars_wroc.queries import select_schema
from polars_wroc.rows import Columns, Rows, read_columns
from polars_wroc.stats.families import Adjustment, adjust_p_values
from polars_wroc.thresholds.choice import choose_thresholds
from polars_wroc.thresholds.rules import Rule

Choice: TypeAlias = Decisions | Rule | float | None

# Places of the division, the segment and the score, by which rows are ordered.
SEGMENT_PLACES = ("__division", "__segment", "__model")


@dataclass(frozen=True)
class ComparisonPart:
    """A division and a score of a comparison, with their places in the table.

    The score has no name if only recorded decisions are compared.
    """

    division: Grouping
    model: str
    score_name: str | None
    place: tuple[int, int]

    def label(self, names: pl.Series) -> pl.DataFrame:
        """Return the columns that name the segments."""
        return label_segments(self.division, names, self.score_name, self.place)


@dataclass(frozen=True)
class GroupColumns:
    """The columns of a comparison of groups: divisions into segments, scores, and decisions.

    ``attributes`` are the caller's names of the columns that define segments; ``inner`` columns
    divide these further. ``score_names`` are the names of models in the table. The ``choice`` is a
    threshold, a rule that chooses one for each score, or recorded decisions.
    """

    columns: Columns
    attributes: Mapping[str, str]
    inner: Sequence[str]
    divisions: Sequence[Grouping]
    score_names: Mapping[str, str | None]
    choice: Choice

    def find_needs(self, rows: Rows, needs: Needs) -> dict[str, Needs]:
        """Return the sums that each score needs, with its decisions."""
        return {
            model: replace(needs, decisions=find_decisions(rows, model, self.choice))
            for model in rows.scores
        }

    def parts(self, rows: Rows) -> Iterator[ComparisonPart]:
        """Yield each division and score."""
        for number, division in enumerate(self.divisions):
            for place, model in enumerate(rows.scores):
                yield ComparisonPart(division, model, self.score_names[model], (number, place))


class InnerColumns(NamedTuple):
    """Columns that divide segments further, and the rule that attributes have other names."""

    columns: Mapping[str, pl.Expr]
    argument: str
    rule: str


def read_groups(
    source: pl.DataFrame | pl.LazyFrame | RowSource,
    label: IntoColumn | None,
    score: IntoColumns | None,
    attributes: IntoColumns | None,
    *,
    choice: Rule | float | None,
    selected: IntoColumn | None,
    weight: IntoWeight | None,
    pos_label: object,
    design: Design | None,
    intersections: Intersections = False,
    inner: InnerColumns | None = None,
    overall: bool = False,
) -> GroupColumns:
    """Return the columns of a comparison, with checked types.

    Without ``attributes`` there are no divisions. With ``overall``, all rows are a segment too.
    """
    by = attributes
    if inner is not None:
        outer = {}
        if attributes is not None:
            outer = named_columns("attributes", attributes, table_of_groups(source))
        if both := sorted(outer.keys() & inner.columns.keys()):
            reject(inner.argument, inner.rule, f"{both[0]!r} in both")
        by = [column.alias(name) for name, column in {**outer, **inner.columns}.items()]
    columns = read_columns(
        source,
        label,
        score_or_decisions(source, score, selected),
        weight=weight,
        by=by,
        pos_label=pos_label,
        design=design,
        selected=selected,
        argument="attributes",
    )
    number = len(columns.keys) - (0 if inner is None else len(inner.columns))
    names = {key: columns.names[key] for key in columns.keys[:number]}
    divisions = [Grouping()] if overall else []
    if names:
        divisions += read_divisions(replace(columns, names=names), intersections)
    return GroupColumns(
        columns,
        names,
        columns.keys[number:],
        divisions,
        name_scores(columns, score),
        choice if selected is None else Decisions(recorded=True),
    )


def table_of_groups(source: pl.DataFrame | pl.LazyFrame | RowSource) -> pl.LazyFrame:
    """Return the table with the columns of groups."""
    return source.groups if isinstance(source, RowSource) else source.lazy()


def name_scores(columns: Columns, score: IntoColumns | None) -> dict[str, str | None]:
    """Return the names of models in the table: None without a score, given ones for counts."""
    names = {model: model for model in columns.models}
    if columns.is_counted and not columns.several:
        names = dict.fromkeys(columns.models, str(score))
    return dict.fromkeys(names) if score is None else dict(names)


def find_decisions(rows: Rows, model: str, choice: Choice) -> Decisions | None:
    """Return the decisions by one of the scores, at a given or chosen threshold.

    A rule chooses one threshold for all rows with a value of the score.
    """
    if choice is None or isinstance(choice, Decisions):
        return choice
    if isinstance(choice, Rule):
        chosen = choose_thresholds(rows.segments([], model), choice)
        return Decisions(float(chosen.value[0]), selects=bool(chosen.selects[0]))
    return Decisions(choice)


def label_segments(
    division: Grouping, names: pl.Series, model: str | None, place: tuple[int, int]
) -> pl.DataFrame:
    """Return the columns that name segments, and the places of their rows in a table."""
    attribute, segment = AUDIT_KEYS
    division_place, segment_place, model_place = SEGMENT_PLACES
    number = len(names)
    return pl.DataFrame(
        {
            attribute: [division.attribute] * number,
            segment: names.cast(pl.String),
            MODEL: pl.Series([model] * number, dtype=pl.String),
            division_place: np.full(number, place[0]),
            segment_place: np.arange(number),
            model_place: np.full(number, place[1]),
        },
    )


def make_rows(
    labels: pl.DataFrame,
    numbers: Mapping[str, Array | Sequence[float]],
    texts: Mapping[str, Iterable[str | None] | str | None],
) -> pl.DataFrame:
    """Return rows of labels, numbers (null for NaN) and texts, one for all or one for each."""
    columns = [
        pl.Series(name, values, pl.Float64, nan_to_null=True) for name, values in numbers.items()
    ]
    for name, each in texts.items():
        values = [each] * labels.height if each is None or isinstance(each, str) else [*each]
        columns.append(pl.Series(name, values, pl.String))
    return labels.hstack(columns)


def choose_texts(cases: Sequence[tuple[Mask | bool, Texts | str | None]]) -> Texts:
    """Return the text of the first case that holds for each row, or None."""
    texts = np.full(np.shape(cases[0][0]), None, dtype=object)
    for holds, text in reversed(cases):
        texts = np.where(holds, np.asarray(text, dtype=object), texts)
    return texts


def adjust_together(
    p_values: Sequence[Array], method: Adjustment, repeats: Sequence[Mask] = ()
) -> list[Array]:
    """Return the p-values of the parts of a table, adjusted for the number of all its tests.

    Tests that repeat others count once.
    """
    repeated = np.concatenate(repeats) if repeats else None
    adjusted = adjust_p_values(np.concatenate(p_values), method, repeated)
    return np.split(adjusted, np.cumsum([each.size for each in p_values])[:-1])


def in_order(
    table: pl.DataFrame,
    metrics: Sequence[str],
    schema: Mapping[str, pl.DataType | type[pl.DataType]] = COMPARISON_SCHEMA,
    within: Sequence[str] = (),
) -> pl.DataFrame:
    """Return a comparison table in the order of attributes, segments, scores and metrics.

    Rows of a segment and a score are ordered by the columns ``within`` first.
    """
    if set(SEGMENT_PLACES) <= set(table.columns):
        table = table.sort(*SEGMENT_PLACES, *within, pl.col("metric").cast(pl.Enum(list(metrics))))
    return select_schema(table, schema)
