"""What changes if a new score, or its decisions, replaces an old one on the same rows.

A rate changes by two shares of rows: of those that become an event, and of those that no longer are
one. Mean losses change by the mean of the differences of rows. Differences of AUCs and of means
have two pseudo-rows that change as much as one row can, one each way: where few rows change, the
variance of the others would say that no row can.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from polars_wroc.inputs.columns import WEIGHT, score_column
from polars_wroc.inputs.designs import SampleDesign
from polars_wroc.inputs.frames import precision
from polars_wroc.inputs.looks import if_enough, with_level
from polars_wroc.inputs.rows import CLASSES, Rows
from polars_wroc.metrics.paired_tests import (
    ONE_MINUS,
    PairedTest,
    ScoreDifference,
    variance_by_design,
)
from polars_wroc.metrics.registry import LOSSES, ROC_AUC
from polars_wroc.metrics.score_interval import Sized
from polars_wroc.plans.formulas import Columns, Fields, Formula, first_of, max_of, when
from polars_wroc.plans.queries import probability
from polars_wroc.ranking.curve import ratio
from polars_wroc.stats.distributions import (
    p_value_at,
    student_p_value,
    t_quantile,
    two_sided_p_value,
    z_quantile,
)
from polars_wroc.stats.proportions import (
    credible_correlation,
    effective_sample_size,
    size_by_design,
)
from polars_wroc.stats.variances import (
    DESIGN_DF,
    design_df,
    linear_variances,
    ratio_influence,
    unit_sums,
)

# The scores, in the order of their columns, and what each decides on a row.
BOTH = ("old", "new")
DECISIONS = ("__old_decision", "__new_decision")
# Rates of the same rows; and shares of a class in rows with the same decision, and whether these
# are the positives in the selected rows.
AUC, NET_BENEFIT = ROC_AUC.column, "net_benefit"
RATES = ("selection_rate", "tpr", "fpr", "accuracy")
SHARES = {"ppv": True, "npv": False}
# Sums of weights and of their squares, over all rows or those of a kind.
_SUMS = ("weight", "squares")
# By a design: the variances of both shares, and their covariance; and the variance of a mean.
_COVARIANCES = {name: name.split("_")[1:] for name in ("var_old_old", "var_new_new", "var_old_new")}
_VARIANCE = {"variance": ["change", "change"]}
# What tests give: "alike" are the limits of two one-sided tests.
RESULTS = ("old", "new", "gap", "gap_low", "gap_high", "alike_low", "alike_high", "p_value", "few")
# With fewer rows that change, of effective size, an interval of unbounded losses says too little.
_FEWEST_LOSSES = 30
# If rows that change are more times as heavy as all rows, limits of rates are too narrow.
_HEAVY = 2

_POSITIVE, _COMPLETE = pl.col(WEIGHT) > 0, pl.col(WEIGHT).is_not_null()
_WEIGHT = pl.col(WEIGHT).abs()


def column_of(metric: str, part: str) -> str:
    """Column of a sum or a variance of a metric, before each metric has a row."""
    return f"__{metric}_{part}"


@dataclass(frozen=True)
class PairedSums:
    """Rows with two scores and `DECISIONS`, and the sums that tests of ``metrics`` need.

    ``odds`` weigh false positives in the net benefit.
    """

    rows: Rows
    metrics: Sequence[str]
    odds: float | None = None

    def columns(self) -> dict[str, pl.Expr]:
        """Aggregate the rows of a group."""
        found: dict[str, pl.Expr] = self.rows.class_counts()
        for metric in self.metrics:
            if metric != AUC:
                kind = self._of_shares if metric in SHARES else self._of_changes
                found |= {column_of(metric, name): sums for name, sums in kind(metric).items()}
        return found

    def _contribution(self, metric: str) -> tuple[pl.Expr, pl.Expr, pl.Expr]:
        """Say which rows count, and what they contribute with the old and with the new score."""
        old, new = (pl.col(name).cast(pl.Float64) for name in DECISIONS)
        if metric in LOSSES:
            return _COMPLETE, self._loss(metric, 0), self._loss(metric, 1)
        if metric == NET_BENEFIT:
            benefit = pl.when(_POSITIVE).then(1.0).otherwise(-(self.odds or 0.0))
            return _COMPLETE, old * benefit, new * benefit
        if metric == "accuracy":
            old, new = ((pl.col(n) == _POSITIVE).cast(pl.Float64) for n in DECISIONS)
        return {"tpr": _POSITIVE, "fpr": ~_POSITIVE}.get(metric, _COMPLETE), old, new

    def _loss(self, metric: str, number: int) -> pl.Expr:
        name = score_column(number)
        least = pl.lit(precision(self.rows.frame.collect_schema()[name]))
        score = probability(BOTH[number], pl.col(name).cast(pl.Float64))
        positive, negative = LOSSES[metric](score, least)
        return pl.when(_POSITIVE).then(positive).otherwise(negative)

    def _shared(self, metric: str) -> tuple[pl.Expr, pl.Expr, pl.Expr]:
        """Say which rows have each decision, and which the class whose share in them counts."""
        old, new = map(pl.col, DECISIONS)
        return (old, new, _POSITIVE) if SHARES[metric] else (~old, ~new, ~_POSITIVE)

    def _where(self, **holds: pl.Expr) -> dict[str, pl.Expr]:
        """Add up `_SUMS` of the rows for which conditions hold."""
        values = _WEIGHT, self.rows.signed_squares.abs()
        return {
            f"{name}_{of}": _added(value, where)
            for name, where in holds.items()
            for of, value in zip(_SUMS, values, strict=True)
        }

    def _of_changes(self, metric: str) -> dict[str, pl.Expr]:
        """Add up what rows contribute to a rate or a mean, and by how much that changes."""
        counts, old, new = self._contribution(metric)
        change, squares = new - old, self.rows.signed_squares.abs()
        gained, lost = counts & (change > 0), counts & (change < 0)
        sums = {
            "n": self.rows.count_where(counts),
            "n_changed": self.rows.count_where(gained | lost),
            **self._where(all=counts),
            "old_sum": _added(_WEIGHT * old, counts),
            "new_sum": _added(_WEIGHT * new, counts),
        }
        if metric in RATES:
            numbers = {"n_gained": gained, "n_lost": lost}
            sums |= {name: self.rows.count_where(holds) for name, holds in numbers.items()}
            sums |= self._where(gained=gained, lost=lost)
        most = 2 * change.abs().max() if metric == "log_loss" else max(1.0, self.odds or 0.0)
        return sums | {
            "first": _added(_WEIGHT * change, counts),
            "size": _added(_WEIGHT * change.abs(), counts),
            "cross": _added(squares * change, counts),
            "second": _added(squares * change**2, counts),
            # By a design two rows of a rate change, one each way.
            "most": pl.lit(2.0) if metric in RATES else 0.0 * _WEIGHT.sum() + most,
        }

    def _of_shares(self, metric: str) -> dict[str, pl.Expr]:
        old, new, event = self._shared(metric)
        wholes = {"old": old, "new": new, "both": old & new}
        return {
            "n": self.rows.count_where(new & _COMPLETE),
            "n_reference": self.rows.count_where(old & _COMPLETE),
            "n_changed": self.rows.count_where((old != new) & _COMPLETE),
            **self._where(**wholes),
            **self._where(**{f"{name}_part": whole & event for name, whole in wholes.items()}),
        }

    def _ratios(self, metric: str) -> dict[str, tuple[pl.Expr, pl.Expr]]:
        """Name ratios, with what a row contributes and which rows count."""
        if metric in SHARES:
            *wholes, event = self._shared(metric)
            each = [((whole & event).cast(pl.Float64), whole) for whole in wholes]
            return dict(zip(BOTH, each, strict=True))
        counts, old, new = self._contribution(metric)
        return {"change": (pl.when(counts).then(new - old), counts)}

    def variances(self, design: SampleDesign) -> pl.LazyFrame:
        """Compute variances of differences and shares by a design, and `DESIGN_DF`."""
        keys, metrics = self.rows.keys, [metric for metric in self.metrics if metric != AUC]
        ratios = {
            column_of(metric, name): parts
            for metric in metrics
            for name, parts in self._ratios(metric).items()
        }

        def totals(weight: pl.Expr) -> dict[str, pl.Expr]:
            parts = {name: (weight.abs() * part).sum() for name, (part, _) in ratios.items()}
            wholes = {f"{n}_whole": _added(weight.abs(), w) for n, (_, w) in ratios.items()}
            return parts | wholes

        units = unit_sums(self.rows.frame, keys, totals, design)
        influences = {
            name: ratio_influence(pl.col(name), pl.col(f"{name}_whole"), keys, design)
            for name in ratios
        }
        products = {
            column_of(metric, name): (column_of(metric, one), column_of(metric, other))
            for metric in metrics
            for name, (one, other) in (_COVARIANCES if metric in SHARES else _VARIANCE).items()
        }
        table = linear_variances(units.with_columns(**influences), keys, design, products)
        return table.select(*keys, *products, DESIGN_DF)


def _added(value: pl.Expr, holds: pl.Expr) -> pl.Expr:
    return pl.when(holds).then(value).otherwise(0.0).sum()


class Share(NamedTuple):
    """A weighted share with its inverse size, and its variance."""

    sized: Sized
    variance: pl.Expr

    @property
    def value(self) -> pl.Expr:
        """The share itself."""
        return self.sized.value


def share_of(
    field: Fields, whole: str, part: str, variance: pl.Expr | None = None
) -> Formula[Share]:
    """Compute the share of the ``part`` in a ``whole``, by a design with its ``variance``."""
    weight, squares = (field(f"{whole}_{name}") for name in _SUMS)
    of_part, part_squares = (field(f"{part}_{name}") for name in _SUMS)
    value, kish = yield [ratio(of_part, weight), effective_sample_size(weight, squares)]
    if variance is None:
        spread = part_squares * (1 - 2 * value) + value**2 * squares
        variance = (spread / weight / weight).clip(lower_bound=0.0)
    size, variance = yield [1 / size_by_design(value, kish, variance), variance]
    return Share(Sized(value, 1 - value, size, size), variance)


def changed_shares(field: Fields) -> Formula[tuple[Share, Share]]:
    """Compute the shares of rows that become an event, and that no longer are one."""
    gained = yield from share_of(field, "all", "gained")
    lost = yield from share_of(field, "all", "lost")
    return gained, lost


class PairedChanges(NamedTuple):
    """Tests of rows of metrics at a level; by a design with its variances and Student's t."""

    level: float
    designed: bool = False

    @property
    def _levels(self) -> dict[str, float]:
        """The levels of limits: two-sided, and of two one-sided tests."""
        return {"gap": self.level, "alike": with_level(self.level, 2 * self.level - 1)}

    def of_rates(self, field: Fields) -> Formula[Columns]:
        """Test rates by the shares that change either way; by a design as means."""
        if self.designed:
            return (yield from self.of_means(field))
        gained, lost = yield from changed_shares(field)
        p, q = gained.value, lost.value
        correlation = -((p * q) / ((1 - p) * (1 - q))).sqrt()
        (correlation,) = yield [when((p < 1) & (q < 1)).then(correlation).otherwise(0.0)]
        columns = yield from self._between(gained.sized, lost.sized, correlation)
        # In simulations 95 % limits left out 10 % where changed rows were three times as heavy.
        heavy = (field("gained_weight") + field("lost_weight")) / field("n_changed")
        heavy = heavy > _HEAVY * field("all_weight") / field("n")
        return columns | _values(field) | {"few": heavy & (field("n_changed") > 0)}

    def of_shares(self, field: Fields) -> Formula[Columns]:
        """Test shares of rows that are not the same, such as precision."""
        variances = [field(name) if self.designed else None for name in _COVARIANCES]
        old = yield from share_of(field, "old", "old_part", variances[0])
        new = yield from share_of(field, "new", "new_part", variances[1])
        covariance = variances[2]
        if covariance is None:
            rest = old.value * new.value * field("both_squares")
            rest += (1 - old.value - new.value) * field("both_part_squares")
            covariance = rest / field("old_weight") / field("new_weight")
        (correlation,) = yield [credible_correlation(covariance, old.variance, new.variance)]
        df = design_df(field) if self.designed else None
        columns = yield from self._between(new.sized, old.sized, correlation, df)
        return columns | {"old": old.value, "new": new.value}

    def of_means(self, field: Fields) -> Formula[Columns]:
        """Test the mean of the changes of rows, by Student's t."""
        weight, squares = (field(f"all_{name}") for name in _SUMS)
        first, size, cross, second, most = (
            field(name) for name in ("first", "size", "cross", "second", "most")
        )
        gap, h2 = yield [ratio(first, weight), 1 / effective_sample_size(weight, squares)]
        spread = (second - 2 * gap * cross + gap**2 * squares) / weight / weight
        (variance,) = yield [spread.clip(lower_bound=0.0)]
        df = (1 / h2 - 1).clip(lower_bound=1.0)
        if self.designed:
            by_design, df = field("variance"), design_df(field)
            larger = max_of(by_design, when(field("is_rate")).then(variance).otherwise(0.0))
            variance = when(by_design.is_not_null()).then(larger)
        else:
            variance = when(h2 < 1).then(variance / (1 - h2))
        (variance,) = yield [variance + most**2 * h2**2 / 2]
        columns = yield from self._by_error(gap, variance, df, field("n"))
        few = (size**2 < _FEWEST_LOSSES * second).fill_null(value=False)
        return columns | _values(field) | {"few": few}

    def of_aucs(self, field: Fields, test: PairedTest) -> Formula[Columns]:
        """Test the difference of two AUCs, from the sums of `compare`; say if no row moved."""
        complements = [field(column) for column in ONE_MINUS]
        centre, gap = yield [complements[0] - complements[1], complements[0] - complements[1]]
        estimate = yield from test.variance.estimate(field, centre)
        moments = yield from test.variance.moments(field, estimate)
        # One row in a class has no variance.
        of_pos, of_neg = (first_of(estimate.parts[side], 0.0) for side in CLASSES)
        variance = variance_by_design(field) if test.designed else of_pos + of_neg
        pseudo = (moments["pos"].h2 ** 2 + moments["neg"].h2 ** 2) / 2
        same = test.variance.is_zero(field).fill_null(value=False)
        variance, same = yield [variance + pseudo, same & gap.is_not_null()]
        df = design_df(field) if test.designed else None
        columns = yield from self._by_error(
            gap, variance, df, *test.variance.rows_of_classes(field)
        )
        ends = [f"{name}_{end}" for name in self._levels for end in ("low", "high")]
        nothing = dict.fromkeys(("gap", *ends), 0.0) | {"p_value": 1.0}
        for name, value in nothing.items():
            columns[name] = when(same).then(value).otherwise(columns[name])
        values = {name: 1 - each for name, each in zip(BOTH, complements, strict=True)}
        return columns | values | {"same_order": same}

    def _between(
        self, one: Sized, other: Sized, correlation: pl.Expr, df: pl.Expr | None = None
    ) -> Formula[Columns]:
        """Compare two shares by the limits of each, and their correlation."""
        quantiles = [_quantile(level, df) for level in self._levels.values()]
        difference, scale, *quantiles = yield [one.value - other.value, pl.lit(1.0), *quantiles]
        test = ScoreDifference(one, other, difference, (scale, scale), correlation, df)
        _, p_value = yield from test.tested()
        p_value = p_value_at(self.level, p_value)
        columns: Columns = {"gap": difference, "p_value": p_value, "few": pl.lit(value=False)}
        for name, quantile in zip(self._levels, quantiles, strict=True):
            limits = test.limits(quantile)
            columns |= {f"{name}_low": limits.low, f"{name}_high": limits.high}
        return columns

    def _by_error(
        self, gap: pl.Expr, variance: pl.Expr, df: pl.Expr | None, *rows: pl.Expr
    ) -> Formula[Columns]:
        """Compute symmetric limits and the test; normal ones without degrees of freedom."""
        variance = if_enough(self.level, variance, *rows)
        quantiles = [_quantile(level, df) for level in self._levels.values()]
        se, *quantiles = yield [variance.sqrt(), *quantiles]
        p_value = two_sided_p_value(gap / se) if df is None else student_p_value(gap / se, df)
        p_value = when(gap == 0).then(1.0).otherwise(p_value_at(self.level, p_value))
        known = when(se.is_not_null())
        columns: Columns = {"gap": gap, "p_value": known.then(p_value), "few": pl.lit(value=False)}
        for name, quantile in zip(self._levels, quantiles, strict=True):
            margin = quantile * se
            columns |= {f"{name}_low": gap - margin, f"{name}_high": gap + margin}
        return columns


def _values(field: Fields) -> Columns:
    return {name: ratio(field(f"{name}_sum"), field("all_weight")) for name in BOTH}


def _quantile(level: float, df: pl.Expr | None) -> pl.Expr:
    return pl.lit(z_quantile(level)) if df is None else t_quantile(level, df)
