"""The table of impact ratios, from the weights that are selected in each category."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import add

import polars as pl

from polars_wroc.groups.categories import (
    COMPARED,
    IS_REFERENCE,
    SEGMENT,
    UNKNOWN,
    Categories,
    CategoryReference,
    with_reference,
)
from polars_wroc.groups.metric_gaps import TEST_BY_DESIGN, difference_by_design
from polars_wroc.groups.references import ReferenceGroup, other_name
from polars_wroc.groups.survey_gaps import SurveyGaps, correlation
from polars_wroc.inputs.arguments import FOUR_FIFTHS, WeightType
from polars_wroc.inputs.columns import CLUSTER, STRATUM
from polars_wroc.inputs.decisions import Favorable
from polars_wroc.inputs.designs import Design
from polars_wroc.inputs.rows import Rows
from polars_wroc.plans.queries import (
    Fields,
    aggregate,
    in_columns,
    join_on_keys,
    over,
    sum_unless_null,
)
from polars_wroc.ranking.curve import CELLS, SQUARES, cell
from polars_wroc.stats.difference_tests import (
    Adjust,
    Exact,
    Sample,
    adjusted,
    equal_proportions_test,
)
from polars_wroc.stats.distributions import (
    normal_quantile,
    simultaneous_quantile,
    student_quantile,
    student_score,
    upper_quantile,
)
from polars_wroc.stats.proportions import (
    TOLERANCE,
    Estimate,
    Proportion,
    Proportions,
    RatesByDesign,
    WeightedCount,
    proportion,
    proportion_column,
    ratio_limits,
    reported_ratio,
    wilson,
)
from polars_wroc.stats.variances import DESIGN_DF, design_df
from polars_wroc.thresholds.confusion_matrix import cell_counts, rate_variance
from polars_wroc.thresholds.search import (
    ROWS_MISSING,
    ROWS_REJECTED,
    ROWS_SELECTED,
    confusion_at,
    rate_variances,
    unit_cells,
)

BELOW = "below_four_fifths"
SURELY, LIKELY, LIKELY_NOT, SURELY_NOT = "surely", "likely", "likely not", "surely not"


def is_below(ratio: pl.Expr, low: pl.Expr, high: pl.Expr, limit: float = FOUR_FIFTHS) -> pl.Expr:
    """Say whether a ratio is below a limit: surely if its interval is, likely if only it is."""
    return (
        pl.when((high < limit).fill_null(value=False))
        .then(pl.lit(SURELY))
        .when(ratio < limit - TOLERANCE)
        .then(pl.lit(LIKELY))
        .when((low >= limit).fill_null(value=False))
        .then(pl.lit(SURELY_NOT))
        .when(ratio.is_not_null())
        .then(pl.lit(LIKELY_NOT))
    )


def judgement(ratio: pl.Expr, below: pl.Expr) -> pl.Expr:
    """Say of each category how its ratio was judged, or why it was not."""
    reference = pl.when(ratio.is_not_null()).then(pl.lit("reference"))
    return pl.coalesce("excluded", below, reference)


IMPACT_COLUMNS = (
    "n",
    "n_missing",
    "weight",
    "share",
    "n_selected",
    "selection_rate",
    "selection_rate_low",
    "selection_rate_high",
    "reference",
    "reference_rate",
    "impact_ratio",
    "impact_ratio_low",
    "impact_ratio_high",
    "impact_ratio_joint_low",
    "impact_ratio_joint_high",
    "z",
    "p_value",
    "p_adjusted",
    "p_method",
    "shortfall",
    "shortfall_four_fifths",
    BELOW,
    "excluded",
    "threshold",
)
# Categories with a smaller share of the weight are not compared, by default.
MIN_SHARE = 0.02

_RATE = "selection_rate"
# The rate of the favorable decision, and its value alone.
_FAVORABLE = "favorable"
_VALUE = proportion_column(_FAVORABLE, "value")
_OF_REFERENCE = (SEGMENT, _RATE, _VALUE, proportion_column(_FAVORABLE, "size"))
# Quantiles of the limits of one ratio, and of those that hold for all.
_QUANTILE, _JOINT_QUANTILE = "__quantile", "__joint_quantile"
_TEST = "__test_of_rates"


@dataclass(frozen=True)
class ImpactTable:
    """How categories are compared; decisions that were ``recorded`` have no threshold."""

    categories: Categories
    reference: CategoryReference
    favorable: Favorable
    min_share: float
    level: float
    weight_type: WeightType
    exact: Exact
    adjust: Adjust
    recorded: bool
    # By the design of a survey, which the rows have.
    designed: bool

    def table(self, rows: Rows, thresholds: pl.LazyFrame) -> pl.LazyFrame:
        """Compare the rate of each category of rows with that of its reference."""
        of_units = None if rows.design is None else unit_cells(rows, thresholds, rows.keys)
        return self.table_of(confusion_at(rows, thresholds), of_units, rows.design)

    def table_of(
        self, cells: pl.LazyFrame, of_units: pl.LazyFrame | None, design: Design | None
    ) -> pl.LazyFrame:
        """Compare rates of cells by all keys crossed; by a design, with those of its units."""
        units = None if of_units is None or design is None else self._units(of_units, design)
        rates = self._rates(cells, units)
        shares = self.categories.with_shares(rates, self.min_share)
        partition_keys = self.categories.partition_keys
        chosen = self.reference.with_highest(
            self.reference.marked(shares, partition_keys), pl.col(_VALUE), partition_keys
        )
        compared = with_reference(chosen, _OF_REFERENCE, partition_keys)
        tested = self._tested(compared) if units is None else self._by_design(compared, units)
        ratios = in_columns(tested, [self._quantiles, self._ratios])
        finished = in_columns(adjusted(ratios, self.adjust), [self._verdicts])
        return self.categories.ordered(finished, IMPACT_COLUMNS)

    def _units(self, cells: pl.LazyFrame, design: Design) -> SurveyGaps:
        """Return the sampling units of each category, by the design of a survey."""
        members = self.categories.members(cells, [STRATUM, CLUSTER, *CELLS])
        keys = [*self.categories.keys, STRATUM, CLUSTER]
        # Sorted, so that sums over units are the same to the last digit each time.
        units = members.group_by(keys).agg(**_sums(CELLS)).sort(keys).cache()
        return SurveyGaps(self.categories.keys, design, None, units, (_RATE,))

    def _rates(self, cells: pl.LazyFrame, units: SurveyGaps | None) -> pl.LazyFrame:
        """Compute the rates of each category, with their effective sizes and limits."""
        summed = (*CELLS, *SQUARES, ROWS_SELECTED, ROWS_REJECTED, ROWS_MISSING)
        members = self.categories.members(cells, ["threshold", *summed])
        aggregates = _sums(summed)
        # It is the same in all categories.
        aggregates["threshold"] = pl.col("threshold").min()
        table = aggregate(members, self.categories.keys, self.categories.aggregates | aggregates)
        design = None
        if units is not None:
            assert units.cells is not None
            keys = self.categories.keys
            variances = rate_variances(units.cells, keys, units.design, [_RATE])
            table = join_on_keys(table, variances, keys)
            # Both rates have the same variance.
            design = RatesByDesign(lambda _, field: field(rate_variance(_RATE)), design_df)
        proportions = Proportions(self._parts, self.level, design=design)
        rates = in_columns(table, [*proportions.steps, self._described])
        return rates if units is None else rates.drop(rate_variance(_RATE), DESIGN_DF)

    def _parts(self, field: Fields) -> dict[str, tuple[WeightedCount, WeightedCount]]:
        selected, rejected = cell_counts(_RATE, self.weight_type, field)
        favorable = selected, rejected
        if self.favorable == "rejected":
            favorable = rejected, selected
        return {_RATE: (selected, rejected), _FAVORABLE: favorable}

    def _described(self, field: Fields) -> dict[str, pl.Expr]:
        rate = proportion(_RATE, field)
        # Null where no row has a score and so there is no median.
        n = (field(ROWS_SELECTED) + field(ROWS_REJECTED)).fill_null(0)
        weight = reduce(add, (field(name) for name in CELLS))
        return {
            "n": n,
            "n_missing": field(ROWS_MISSING),
            "weight": pl.when(n == 0).then(0.0).otherwise(cell(weight)),
            "n_selected": field(ROWS_SELECTED).fill_null(0),
            _RATE: rate.value,
            f"{_RATE}_low": rate.low,
            f"{_RATE}_high": rate.high,
            "threshold": pl.lit(None, pl.Float64) if self.recorded else field("threshold"),
        }

    def _tested(self, table: pl.LazyFrame) -> pl.LazyFrame:
        """Test rates for independent rows."""
        own, other = (Sample(each.value, each.size) for each in _both(pl.col))
        test = pl.when(_is_tested(pl.col)).then(equal_proportions_test(own, other, self.exact))
        fields = ("z", "p_value", "p_method")
        tested = table.with_columns(test.alias(_TEST))
        return tested.with_columns(pl.col(_TEST).struct.field(*fields)).drop(_TEST)

    def _by_design(self, table: pl.LazyFrame, units: SurveyGaps) -> pl.LazyFrame:
        """Test rates by the design of a survey: where the interval just excludes 0."""
        is_reference = pl.col(IS_REFERENCE)
        reference = ReferenceGroup(self.categories.partition_keys, "row", lambda _: is_reference)
        table = units.with_variances(table, reference).cache()
        own, other = _both(pl.col)
        needed = difference_by_design(own, other, correlation(_RATE, pl.col), design_df(pl.col))
        keys = self.categories.keys
        narrow = table.filter(_is_tested(pl.col)).select(*keys, **needed)
        tests = in_columns(narrow, TEST_BY_DESIGN.steps).select(
            *keys,
            z=pl.col(TEST_BY_DESIGN.difference).sign() * pl.col(TEST_BY_DESIGN.quantile),
            p_value=pl.col(TEST_BY_DESIGN.p_value),
        )
        method = pl.when(pl.col("p_value").is_not_null()).then(pl.lit("t"))
        return join_on_keys(table, tests, keys).with_columns(p_method=method)

    def _quantiles(self, field: Fields) -> dict[str, pl.Expr]:
        """Add the quantiles of the limits of one ratio, and of those of all at once."""
        tail = (1 + self.level) / 2
        compared = field(COMPARED) & field(_VALUE).is_not_null()
        groups = over(compared.sum().cast(pl.Int64), self.categories.partition_keys)
        # Sidak's, for independent comparisons with one category that was named.
        several = pl.when(groups > 1).then(groups - 1)
        named = upper_quantile((1 - pl.lit(self.level) ** (1 / several)) / 2)
        highest = simultaneous_quantile(self.level, groups)
        joint = pl.when(self.reference.is_named).then(named).otherwise(highest)
        if not self.designed:
            return {_QUANTILE: pl.lit(normal_quantile(tail)), _JOINT_QUANTILE: joint}
        df = design_df(field)
        return {_QUANTILE: student_quantile(tail, df), _JOINT_QUANTILE: student_score(joint, df)}

    def _ratios(self, field: Fields) -> dict[str, pl.Expr]:
        own, other = _both(field)
        one = self._ratio(field, field(_QUANTILE))
        joint = self._ratio(field, field(_JOINT_QUANTILE))
        known, others = pl.when(~field(UNKNOWN)), pl.when(_is_other(field))
        tested = pl.when(_is_tested(field))
        missing = (other.value - own.value) * field("weight")
        # What is missing to four fifths of the rate of the reference.
        least = (FOUR_FIFTHS * other.value - own.value) * field("weight")
        return {
            "reference": known.then(field(other_name(SEGMENT))),
            "reference_rate": known.then(field(other_name(_RATE))),
            "impact_ratio": known.then(one.value),
            "impact_ratio_low": others.then(one.low),
            "impact_ratio_high": others.then(one.high),
            "impact_ratio_joint_low": tested.then(joint.low),
            "impact_ratio_joint_high": tested.then(joint.high),
            "shortfall": known.then(missing),
            "shortfall_four_fifths": known.then(least.clip(lower_bound=0.0)),
        }

    def _ratio(self, field: Fields, quantile: pl.Expr) -> Estimate:
        """Compute the ratio, with limits from those of both rates at a quantile."""
        own, other = (
            Estimate(each.value, *wilson(each.value, each.size, quantile)) for each in _both(field)
        )
        related = correlation(_RATE, field) if self.designed else None
        ratio = Estimate(own.value / other.value, *ratio_limits(own, other, related))
        return reported_ratio(ratio, other.value)

    def _verdicts(self, field: Fields) -> dict[str, pl.Expr]:
        ratio = "impact_ratio"
        below = is_below(field(ratio), field(f"{ratio}_joint_low"), field(f"{ratio}_joint_high"))
        return {BELOW: pl.when(_is_tested(field)).then(below)}


def _sums(columns: Iterable[str]) -> dict[str, pl.Expr]:
    """Add up columns; null where a term is, as one that overflows."""
    return {name: sum_unless_null(pl.col(name)) for name in columns}


def _both(field: Fields) -> tuple[Proportion, Proportion]:
    """Refer to the favorable rate of a category and to that of its reference."""

    def of_reference(name: str) -> pl.Expr:
        return field(other_name(name))

    return proportion(_FAVORABLE, field), proportion(_FAVORABLE, of_reference)


def _is_other(field: Fields) -> pl.Expr:
    """Whether a category is known and is not the reference."""
    return ~field(UNKNOWN) & ~field(IS_REFERENCE)


def _is_tested(field: Fields) -> pl.Expr:
    """Whether a category is compared with another one."""
    return field(COMPARED) & ~field(IS_REFERENCE)
