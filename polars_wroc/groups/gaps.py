"""Gaps of AUCs and rates: one estimate for both, a row for each segment and metric.

Rows are summed in each segment; the sums of segments and of what they are compared with become a
row for each metric; these rows are tested and judged, whatever the metric.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import polars as pl

from polars_wroc.groups.categories import CategoryReference, Grouping
from polars_wroc.groups.comparison_tests import SIDES, GapTests, judged, tested
from polars_wroc.groups.comparisons import (
    COMPARABLE,
    OF_GROUP,
    OF_REFERENCE,
    OWN_WEIGHTS,
    PLACE,
    AucSums,
    sample_sizes,
    with_bin_slack,
)
from polars_wroc.groups.references import (
    AUC_DF,
    DIFFERENCE,
    IS_REFERENCE,
    PAIR,
    PICKED_FROM,
    REFERENCE_AUC,
    REPEATED,
    SHARE,
    SLACK,
    Overall,
    Reference,
    SurveyGaps,
    correlation,
    other_name,
    own_df,
)
from polars_wroc.groups.value_gaps import (
    value_columns,
    value_row,
    with_both_sides,
    with_value_covariances,
)
from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import AUDIT_KEYS
from polars_wroc.inputs.metric import Metric
from polars_wroc.inputs.rows import Rows
from polars_wroc.metrics.auc_variance import auc_influences, units_of
from polars_wroc.metrics.brier_and_log_loss import LOSS_SUMS, LossesOfRows
from polars_wroc.metrics.registry import LOSSES, ROC_AUC
from polars_wroc.metrics.score_interval import SKEWNESS
from polars_wroc.plans.config import run
from polars_wroc.plans.formulas import (
    Columns,
    Fields,
    Formula,
    all_of,
    first_of,
    in_columns,
    kept,
    min_of,
    together,
    when,
)
from polars_wroc.plans.queries import FrameT, collect, join_on_keys
from polars_wroc.ranking.curve import CELL_SUMS
from polars_wroc.ranking.placements import add_placements, row_curve, walked_class_counts
from polars_wroc.ranking.sorting import by_descending_score
from polars_wroc.stats.difference_tests import auc_difference_test
from polars_wroc.stats.proportions import Side, WeightedCount, rate_side
from polars_wroc.stats.variances import DESIGN_DF, design_df, design_effect, unit_sums
from polars_wroc.thresholds.registry import RATES
from polars_wroc.thresholds.search import (
    cell_counts,
    cells_added_up,
    confusion_at,
    rate_variance,
    unit_cells,
    walked_confusion_at,
)

_AUC = ROC_AUC.column


def place(sorted_rows: pl.LazyFrame, rows: Rows) -> pl.LazyFrame:
    """Compute placements of sorted rows in each group."""
    return add_placements(sorted_rows, rows.keys, rows.observations.signed_weight)


class Measured(NamedTuple):
    """The sums of segments, their cells if there is a threshold, and the units of a survey."""

    sums: pl.LazyFrame
    cells: pl.LazyFrame | None
    survey: SurveyGaps | None = None


def check_margin(margin: float) -> float:
    """Check the size within which a gap does not matter."""
    return arguments.number("margin", margin, low=0.0, high=1.0, open_ends=True)


def added_up(parts: Sequence[Measured]) -> Measured:
    """Stack the segments of all divisions."""

    def stacked(tables: Sequence[pl.LazyFrame | None]) -> pl.LazyFrame | None:
        known = [table for table in tables if table is not None]
        return pl.concat(known) if known else None

    sums, cells, surveys = zip(*parts, strict=True)
    survey = surveys[0]
    if survey is not None:
        survey = replace(
            survey,
            influences=stacked([each.influences for each in surveys]),
            cells=stacked([each.cells for each in surveys]),
            losses=stacked([each.losses for each in surveys]),
        )
    return Measured(pl.concat(sums), stacked(cells), survey)


# How the cells of each side are named.
NAMES_OF_SIDES: dict[str, Callable[[str], str]] = {"own": str, "other": other_name}
_COUNTS = tuple(
    f"{part}{end}" for part in ("counted", "others") for end in ("", "_squares", "_rows")
)


def with_references(
    measured: Measured,
    keys: Sequence[str],
    reference: Reference,
    *,
    values: Sequence[str] = (),
    at_once: bool = False,
) -> pl.LazyFrame:
    """Add to the sums and cells of segments those of what they are compared with.

    ``values`` are metrics that have errors on a scale.
    """
    sums, cells, survey = measured
    held = [name for name in LOSS_SUMS if name in sums.collect_schema()]
    table = in_columns(in_columns(sums, reference.choosing), reference.steps, at_once=at_once)
    if survey is not None:
        table = survey.with_variances(table, reference)
        if values:
            table = with_value_covariances(table, survey, reference)
    if cells is not None:
        others = {other_name(name): reference.cell(pl.col(name)) for name in CELL_SUMS}
        table = join_on_keys(table, cells, keys).with_columns(**others)
        held += CELL_SUMS
    if values:
        table = with_both_sides(table, held, reference)
    return reference.with_pairs(table)


def compare(table: FrameT, keys: Sequence[str], reference: Reference, tests: GapTests) -> FrameT:
    """Compare segments: a row for each metric, with p-values that are not adjusted yet.

    The difference that is tested is a ``share`` of that of both values, and may be off by the
    ``slack``. Limits of AUCs are corrected for skewness.
    """
    names = table.collect_schema().names()
    of_segment = (PLACE, *keys, *OWN_WEIGHTS, PAIR, REPEATED, IS_REFERENCE)
    shared = {name: pl.col(name) for name in of_segment if name in names}
    shared[PICKED_FROM] = reference.picked_from
    has_rates = CELL_SUMS[0] in names
    if has_rates and not tests.rates_alone and isinstance(table, pl.LazyFrame):
        # Used twice but computed once. Where it is used once, a cache would keep filters above it.
        table = table.cache()
    rows: list[FrameT] = []
    if not tests.rates_alone:
        aucs = in_columns(table, [partial(auc_sides, designed=tests.designed)])
        rows.append(aucs.select(**shared, **_auc_row(reference, tests)))
    if has_rates and tests.rates:
        of_rates = {rate: _rate_row(rate, reference, tests) for rate in tests.rates}
        # Of all rates in one step, which takes less time to plan than one of each.
        wide = table.with_columns(
            each.alias(f"__{rate}_{name}")
            for rate, row in of_rates.items()
            for name, each in row.items()
        )
        wide = wide.cache() if isinstance(wide, pl.LazyFrame) else wide
        counts = [
            wide.select(**shared, **{name: pl.col(f"__{rate}_{name}") for name in row})
            for rate, row in of_rates.items()
        ]
        rows.append(in_columns(pl.concat(counts), [partial(_rates, designed=tests.designed)]))
    if tests.values:
        values = partial(
            value_columns, metrics=tests.values, reference=reference, designed=tests.designed
        )
        wide = in_columns(table, [values])
        if isinstance(reference, Overall):
            # The gaps of two groups are no shares of one difference, as those of rates are.
            shared |= dict.fromkeys((PAIR, REPEATED), pl.lit(value=False))
        for name in tests.values:
            of_metric = _shared(name, COMPARABLE[name], reference, tests)
            rows.append(wide.select(**(shared | of_metric | value_row(name))))
    both = pl.concat(rows, how="diagonal")
    return tested(both, reference.partition_keys, tests, of_tables=True)


def _shared(name: str, metric: Metric, reference: Reference, tests: GapTests) -> dict[str, pl.Expr]:
    """What the rows of all metrics have."""
    counts = sample_sizes(name)
    enough = [count >= tests.min_rows for count in counts]
    in_reference = [reference.sample_size(count) >= tests.min_rows for count in counts]
    row = {
        "metric": pl.lit(name),
        "reference": reference.name,
        "n": min_of(counts),
        "n_reference": min_of(reference.rows(count) for count in counts),
        "enough": all_of(enough),
        "enough_for_test": all_of(*enough, *in_reference),
        "has_ratio": pl.lit(metric.has_ratio),
        "of_all": pl.lit(value=False),
        "least": pl.lit(metric.least, pl.Float64),
        "share": pl.lit(1.0),
        "slack": pl.lit(0.0),
    }
    if tests.designed:
        df = AUC_DF if name == _AUC else DESIGN_DF
        related = pl.lit(0.0) if name in tests.values else correlation(name, pl.col)
        row |= {"correlation": related, "df": design_df(pl.col, df)}
        row["df_own"] = design_df(pl.col, own_df(df))
        # The fewer, where there is an AUC.
        row["df_of_verdict"] = first_of(design_df(pl.col, AUC_DF), design_df(pl.col))
    return row


def auc_sides(field: Fields, *, designed: bool = False) -> Formula[Columns]:
    """Add what limits and tests of both AUCs rest on, with the design effects of a survey."""
    compared = {OF_GROUP: _AUC, OF_REFERENCE: other_name(_AUC)}
    effects = dict.fromkeys(compared, pl.lit(1.0))
    if designed:
        known = when(field(AUC_DF).is_not_null())
        for each, name in compared.items():
            of_rows = field(each.column("variance"))
            effects[each] = known.then(design_effect(field(rate_variance(name)), of_rows))
    effects = yield from kept(effects)
    both = yield from together({each.name: each.side(field, effects[each]) for each in compared})
    return {f"{p}_{name}": v for name, side in both.items() for p, v in side._asdict().items()}


# What `auc_sides` and the references have of a comparison.
OF_AUCS = (
    *(DIFFERENCE, SHARE, SLACK, REFERENCE_AUC),
    *(f"{part}_{side}" for side in SIDES for part in Side._fields),
)


def _auc_row(reference: Reference, tests: GapTests) -> Columns:
    row = _shared(_AUC, ROC_AUC, reference, tests)
    row |= {name: pl.col(name) for name in OF_AUCS} | {"skew": pl.lit(SKEWNESS)}
    if not tests.on_logits:
        return row
    picked_from = reference.picked_from if tests.picked else None
    test, own = _logit_test(tests.level, picked_from), OF_GROUP.estimate(pl.col).limits(tests.level)
    return row | {
        "gap": test["difference"],
        "logit_value_low": own.low.fill_nan(None),
        "logit_value_high": own.high.fill_nan(None),
        "logit_gap_low": test["difference_low"],
        "logit_gap_high": test["difference_high"],
        "logit_p_value": test["p_value"],
    }


def _logit_test(level: float, picked_from: pl.Expr | None) -> dict[str, pl.Expr]:
    """Test the difference by Student's t on the logits, as `auc_difference_test` does."""
    own, other = (each.estimate(pl.col) for each in (OF_GROUP, OF_REFERENCE))
    # With perfect separation the estimated variance is 0, which is no estimate of precision.
    known = (own.variance > 0) & (other.variance > 0)
    known &= pl.col(DIFFERENCE).is_not_null()
    variance = when(known).then(own.variance + other.variance)
    parts = auc_difference_test(own, other, variance, level, picked_from)
    share = pl.col(SHARE)
    return {name: v if name == "p_value" else share * v for name, v in parts.items()}


def _rate_row(rate: str, reference: Reference, tests: GapTests) -> dict[str, pl.Expr]:
    row = _shared(rate, RATES[rate], reference, tests)
    row["skew"] = pl.lit(0.0)
    for side, name in NAMES_OF_SIDES.items():
        sums = [s for each in cell_counts(rate, pl.col, name) for s in vars(each).values()]
        row |= {f"{part}_{side}": value for part, value in zip(_COUNTS, sums, strict=True)}
        if tests.designed:
            row[f"variance_{side}"] = pl.col(rate_variance(name(rate)))
    weights = (
        pl.sum_horizontal(pl.col(name(cell)) for cell in RATES[rate].cells)
        for name in NAMES_OF_SIDES.values()
    )
    share = reference.share_of_group(*weights)
    return row if share is None else row | {"share": 1 - share, "of_all": pl.lit(value=True)}


def _rates(field: Fields, *, designed: bool) -> Formula[Columns]:
    """Compute rates and gaps from the counts of both sides."""
    columns: Columns = {}
    for side in SIDES:
        sums = [field(f"{part}_{side}") for part in _COUNTS]
        variance = field(f"variance_{side}") if designed else None
        rate = rate_side(WeightedCount(*sums[:3]), WeightedCount(*sums[3:]), variance)
        columns |= {f"{part}_{side}": value for part, value in rate._asdict().items()}
    columns = yield from kept(columns)
    own, other, share = columns["value_own"], columns["value_other"], field("share")
    # The rate of all rows is a mean of those of the segment and of the others.
    of_all = when(field("of_all")).then((1 - share) * own + share * other)
    return columns | {
        "gap": when(~field(IS_REFERENCE)).then(share * (own - other)),
        "reference_value": of_all.otherwise(other),
    }


def gap_rows(
    measured: Measured,
    keys: Sequence[str],
    references: Sequence[tuple[pl.Expr, Reference]],
    tests: GapTests,
    *,
    at_once: bool,
) -> pl.LazyFrame:
    """Compare the segments for which a condition holds with a reference each, as `compare` does.

    If ``at_once``, the few rows of segments are computed, which takes less time than to plan them.
    """
    sums = measured.sums.with_row_index(PLACE)
    compared = []
    for some, reference in references:
        of_some = measured._replace(sums=sums.filter(some))
        table = with_references(of_some, keys, reference, values=tests.values, at_once=at_once)
        step = partial(compare, keys=keys, reference=reference, tests=tests)
        compared.append(_few_rows(table, step, tests, at_once=at_once))
    return pl.concat(compared)


def _few_rows(
    table: pl.LazyFrame,
    step: Callable[[Any], Any],
    tests: GapTests,
    *,
    at_once: bool,
) -> pl.LazyFrame:
    """Compute the few rows of segments by a step, which takes a DataFrame or LazyFrame.

    That of metrics with errors on a scale takes long to plan: it is done when the plan runs.
    """
    if at_once:
        result: pl.LazyFrame = step(collect(table)).lazy()
        return result
    if tests.values:
        schema = step(pl.DataFrame(schema=table.collect_schema())).schema
        return table.map_batches(step, schema=schema)
    planned: pl.LazyFrame = step(table)
    return planned


@dataclass(frozen=True)
class GroupGaps:
    """How the segments of checked rows are compared with their references."""

    rows: Rows
    divisions: Sequence[Grouping]
    references: CategoryReference
    thresholds: pl.LazyFrame | None
    tests: GapTests
    # Whether the segments are computed at once, as those of rows in memory.
    at_once: bool
    # Keys whose values are compared in each segment, instead of segments with each other.
    periods: Sequence[str] = ()

    @property
    def auc_sums(self) -> AucSums:
        """The sums over the rows of a segment."""
        return AucSums(units_of(counted=self.rows.counted))

    @property
    def keys(self) -> list[str]:
        """Columns that identify a segment, or a period of it."""
        return [*AUDIT_KEYS, *self.periods, *self.rows.model_keys]

    @property
    def partition_keys(self) -> list[str]:
        """Columns within which segments, or their periods, are compared."""
        return [*AUDIT_KEYS[: 2 if self.periods else 1], *self.rows.model_keys]

    def of_segments(self, partition_keys: Sequence[str]) -> list[tuple[pl.Expr, Reference]]:
        """Pair each reference with the condition on the segments that it applies to."""
        segments = replace(self.rows, keys=self.keys, model_keys=[*partition_keys])
        return self.references.of_segments(segments, self.tests.min_rows)

    def planned(self, within: Sequence[str] = ()) -> Measured:
        """Plan the sums of each segment, ``within`` strata of it, and cells at its threshold."""
        thresholds, others = self.thresholds, [*within, *self.rows.model_keys]

        def measured(division: Grouping) -> Measured:
            rows = self.rows.regrouped([*division.keys, *within])
            placed = place(by_descending_score(rows), rows)
            cells = survey = of_units = None
            if thresholds is not None:
                cells = division.named(confusion_at(rows, thresholds))
            if rows.design is not None:
                placed = placed.cache()
                if thresholds is not None:
                    of_units = division.named(unit_cells(rows, thresholds, rows.keys))
                influences = division.named(auc_influences(placed, rows))
                keys = [*AUDIT_KEYS, *others]
                survey = SurveyGaps(
                    keys,
                    rows.design,
                    influences,
                    of_units,
                    self.tests.rates,
                    losses=self._units(division, within),
                )
            aggregates = self.auc_sums.sums(row_curve()) | rows.class_counts()
            sums = self._with_losses(rows.aggregate(placed, aggregates), rows)
            return Measured(_named_once(sums, rows, division, others), cells, survey)

        return added_up([measured(division) for division in self.divisions])

    @property
    def _losses(self) -> bool:
        """Whether mean losses are compared."""
        return any(name in LOSSES for name in self.tests.values)

    def _with_losses(self, sums: pl.LazyFrame, rows: Rows) -> pl.LazyFrame:
        """Add the sums of losses, if they are compared."""
        if not self._losses:
            return sums
        of_rows = LossesOfRows.of(replace(rows, compiled=None))
        added = rows.aggregate(of_rows.rows.frame, of_rows.sums())
        return join_on_keys(sums, added, rows.keys)

    def _units(self, division: Grouping, within: Sequence[str]) -> pl.LazyFrame | None:
        """Add up the losses of sampling units, if they are compared."""
        design = self.rows.design
        if design is None or not self._losses:
            return None
        rows = self.rows.regrouped([*division.keys, *within])
        of_rows = LossesOfRows.of(rows)
        units = unit_sums(of_rows.rows.frame, rows.keys, of_rows.of_units, design)
        return division.named(units)

    def _walked(self) -> Measured:
        """Sum each segment, and compute its cells at its threshold, by the compiled engine."""
        # Needs numba, which is an extra.
        from polars_wroc.ranking.compiled_rows import compile_rows  # noqa: PLC0415

        thresholds, models = self.thresholds, self.rows.model_keys
        others, types = [*self.periods, *models], self.rows.frame.collect_schema()
        compiled = compile_rows(self.rows, models)
        smallest = None if thresholds is None else walked_confusion_at(compiled, thresholds)

        def measured(division: Grouping) -> Measured:
            rows, cells = self.rows.regrouped([*division.keys, *self.periods]), None
            keys = [pl.col(key).cast(types[key]) for key in rows.keys]
            walked = compiled.walk(rows.group_keys).sums
            columns = self.auc_sums.walk_sums() | walked_class_counts()
            sums = walked.select(*rows.keys, **columns).lazy().with_columns(keys)
            sums = self._with_losses(sums, rows)
            if smallest is not None:
                added = rows.aggregate(smallest, cells_added_up()).with_columns(keys)
                cells = division.named(added)
            return Measured(_named_once(sums, rows, division, others), cells)

        return added_up([measured(division) for division in self.divisions])

    def table(self) -> pl.LazyFrame:
        """Compute the gaps, by the engine that is to compute them."""
        if self.rows.compiled is None:
            return self._of(self.planned(self.periods), at_once=self.at_once)

        def table() -> pl.DataFrame:
            return collect(self._of(self._walked(), at_once=True), reproducible=True)

        def schema() -> pl.Schema:
            return self._of(self.planned(self.periods), at_once=False).collect_schema()

        return run(self.rows.compiled, table, schema)

    def _of(self, measured: Measured, *, at_once: bool) -> pl.LazyFrame:
        marked = self.references.marked(measured.sums, self.partition_keys)
        references = self.of_segments(self.partition_keys)
        tests = self.tests.of(reference for _, reference in references)
        of_marked = measured._replace(sums=marked)
        rows = gap_rows(of_marked, self.keys, references, tests, at_once=at_once)
        step = partial(judged, partition_keys=self.partition_keys, tests=tests)
        return _few_rows(rows, step, tests, at_once=at_once)


def _named_once(
    sums: pl.LazyFrame, rows: Rows, division: Grouping, others: Sequence[str]
) -> pl.LazyFrame:
    """Name the segments of sums, each of which has a name of its own."""
    # Sorted, because the first of several groups with the highest AUC is the reference.
    return division.named_once(with_bin_slack(sums.sort(rows.keys), rows), others)
