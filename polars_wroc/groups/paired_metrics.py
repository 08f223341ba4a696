"""Metrics of two scores, and of their decisions, on the same rows: tested in each segment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, TypeAlias

import polars as pl

from polars_wroc.groups.categories import Grouping, Intersections, read_attributes
from polars_wroc.groups.comparisons import COMPARABLE, PLACE
from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import (
    AUDIT_KEYS,
    IntoColumn,
    IntoWeight,
    numeric,
    score_column,
)
from polars_wroc.inputs.designs import GivenDesign
from polars_wroc.inputs.expressions import as_column, boolean_column, named_columns, typed_column
from polars_wroc.inputs.frames import at_least, read_paired_rows
from polars_wroc.inputs.rows import IntoColumns, Rows
from polars_wroc.metrics.compare import placement_columns, sums_of_pairs
from polars_wroc.metrics.paired_changes import (
    AUC,
    BOTH,
    DECISIONS,
    NET_BENEFIT,
    RATES,
    RESULTS,
    SHARES,
    PairedChanges,
    PairedSums,
    column_of,
)
from polars_wroc.metrics.paired_tests import PairedTest
from polars_wroc.metrics.registry import LOSSES
from polars_wroc.plans.formulas import Step, in_columns
from polars_wroc.plans.queries import join_on_keys
from polars_wroc.ranking.placements import reduce_placements
from polars_wroc.stats.variances import DESIGN_DF

# Whether all rows have the same scores and decisions.
SAME = "__same_scores"
_SHARED = (*AUDIT_KEYS, PLACE, SAME)
_OF_ROW = ("metric", "n", "n_reference", "n_changed", "margin", "good")
_GOOD = {"high": 1.0, "low": -1.0, None: 0.0}

Thresholds: TypeAlias = float | Mapping[str, float]
Decisions: TypeAlias = Mapping[str, IntoColumn]


class PairedRows(NamedTuple):
    """Rows with two scores and perhaps two decisions, and the names of the scores."""

    rows: Rows
    names: list[str]
    decided: bool


def read_paired(
    frame: pl.DataFrame | pl.LazyFrame,
    label: IntoColumn | None,
    both: Sequence[IntoColumn],
    threshold: Thresholds | None,
    selected: Decisions | None,
    weight: IntoWeight | None,
    attributes: IntoColumns | None,
    pos_label: object,
    survey: GivenDesign | None = None,
) -> PairedRows:
    """Read scores and decisions; a row that lacks one of them is missing for all metrics."""
    lazy = frame.lazy()
    columns, names = list[pl.Expr](), list[str]()
    for argument, score in zip(BOTH, both, strict=True):
        typed = typed_column(argument, as_column(argument, score), lazy)
        columns.append(numeric(typed).alias(argument))
        names += named_columns(argument, score, lazy)
    if threshold is not None and selected is not None:
        msg = "`threshold` must be None with `selected`, which has the decisions; found both"
        raise ValueError(msg)
    thresholds = threshold if isinstance(threshold, Mapping) else dict.fromkeys(BOTH, threshold)
    for argument, given in (("threshold", thresholds), ("selected", selected)):
        if given is not None and (not isinstance(given, Mapping) or {*given} != {*BOTH}):
            arguments.reject_type(argument, "map 'old' and 'new'", given)
    if selected is not None:
        for argument in BOTH:
            column = boolean_column("selected", selected[argument], lazy).column
            columns.append(column.cast(pl.Int8).alias(f"{argument} decision"))
    given_rows = label, columns, weight, attributes, pos_label
    rows, _ = read_paired_rows(frame, *given_rows, survey=survey, called="attributes")
    decisions = {}
    for number, (argument, name) in enumerate(zip(BOTH, DECISIONS, strict=True)):
        if selected is not None:
            decisions[name] = pl.col(score_column(number + 2)) == 1
        elif threshold is not None:
            least = arguments.number("threshold", thresholds[argument])
            decisions[name] = at_least(pl.col(score_column(number)), pl.lit(least))
    table = rows.frame.with_columns(**decisions)
    return PairedRows(replace(rows, frame=table), names, bool(decisions))


@dataclass(frozen=True)
class SegmentChecks:
    """How the rows of each segment become rows of metrics."""

    rows: Rows
    metrics: Sequence[str]
    of_aucs: PairedTest
    tests: PairedChanges
    odds: float | None
    at_once: bool

    def table(
        self, groupings: Sequence[Grouping], margins: Mapping[str, float | None]
    ) -> pl.LazyFrame:
        """Test each metric in each segment."""
        sums = self.sums(groupings)
        kinds: list[tuple[Sequence[str], Step]] = [
            ((AUC,), partial(self.tests.of_aucs, test=self.of_aucs)),
            (RATES, self.tests.of_rates),
            ((*SHARES,), self.tests.of_shares),
            ((NET_BENEFIT, *LOSSES), self.tests.of_means),
        ]
        tables = []
        for names, step in kinds:
            rows = [rows_of(sums, name, margins[name]) for name in names if name in margins]
            if rows:
                table = in_columns(pl.concat(rows), [step], at_once=self.at_once)
                more = ["same_order"] if names == (AUC,) else []
                tables.append(table.select(*_SHARED, *_OF_ROW, *RESULTS, *more))
        both = pl.concat(tables, how="diagonal")
        return both if AUC in margins else both.with_columns(same_order=pl.lit(value=False))

    def sums(self, groupings: Sequence[Grouping]) -> pl.LazyFrame:
        """Add up the rows of each segment."""
        of_groupings = []
        for grouping in groupings:
            rows = self.rows.regrouped([*grouping.keys])
            sums = PairedSums(replace(rows, compiled=None), self.metrics, self.odds)
            table = rows.aggregate(rows.frame, sums.columns())
            if rows.design is not None:
                table = join_on_keys(table, sums.variances(rows.design), rows.keys)
            if AUC in self.metrics:
                reduce = partial(sums_of_pairs, models=2, test=self.of_aucs, rows=rows)
                pairs = reduce_placements(rows, placement_columns(2), reduce)
                names = [n for n in pairs.collect_schema() if n not in (*rows.keys, "n")]
                pairs = pairs.select(*rows.keys, pl.col(names).name.prefix(column_of(AUC, "")))
                table = join_on_keys(table, pairs, rows.keys)
            of_groupings.append(grouping.named_once(rows.sorted_by_keys(table), ()))
        same = [pl.col(score_column(0)) == pl.col(score_column(1))]
        if DECISIONS[0] in self.rows.frame.collect_schema():
            same.append(pl.col(DECISIONS[0]) == pl.col(DECISIONS[1]))
        of_all = self.rows.frame.select(pl.all_horizontal(same).all().alias(SAME))
        table = pl.concat(of_groupings).with_row_index(PLACE)
        return table.join(of_all, how="cross").cache()


def rows_of(sums: pl.LazyFrame, metric: str, margin: float | None) -> pl.LazyFrame:
    """Make the rows of a metric of the sums of segments."""
    start, names = column_of(metric, ""), sums.collect_schema().names()
    row: dict[str, pl.Expr] = {DESIGN_DF: pl.col(DESIGN_DF)} if DESIGN_DF in names else {}
    if metric == AUC:
        row |= {"n": pl.min_horizontal("n_pos", "n_neg"), "n_changed": pl.lit(None, pl.Int64)}
    row |= {name.removeprefix(start): pl.col(name) for name in names if name.startswith(start)}
    row.setdefault("n_reference", row["n"])
    return sums.select(
        *_SHARED,
        pl.lit(metric).alias("metric"),
        pl.lit(margin, pl.Float64).alias("margin"),
        pl.lit(_GOOD[COMPARABLE[metric].better]).alias("good"),
        pl.lit(metric in RATES).alias("is_rate"),
        **row,
    )


def groupings_of(
    rows: Rows, attributes: IntoColumns | None, intersections: Intersections
) -> list[Grouping]:
    """List all rows together, then the divisions by attributes."""
    if attributes is not None:
        return [Grouping(), *read_attributes(rows, intersections)]
    if intersections:
        msg = "`intersections` needs two or more `attributes`; found None"
        raise ValueError(msg)
    return [Grouping()]
