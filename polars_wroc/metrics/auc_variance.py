"""Variance of estimates whose influence function is linear in the placement values.

An AUC, a partial AUC and a difference of two AUCs are such estimates. The *units* are what is
independent: each row, or each cluster.
Every row has the sums over its own unit, so that one formula serves all three, and clusters of
one row each give the same results as rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Literal, NamedTuple, TypeAlias

import polars as pl

from polars_wroc.inputs.columns import CLUSTER, ROW_COUNT, ROW_CUBES, ROW_SQUARES, SCORE, STRATUM
from polars_wroc.inputs.designs import Replicates
from polars_wroc.inputs.rows import CLASSES, Rows, class_weights
from polars_wroc.plans.formulas import (
    Columns,
    Fields,
    Formula,
    as_struct,
    in_columns,
    kept,
    min_of,
    when,
)
from polars_wroc.plans.queries import aggregate, join_on_keys, over
from polars_wroc.ranking.placements import Placements, row_curve, walk_sum
from polars_wroc.stats.proportions import ROUNDING, effective_sample_size, is_exact
from polars_wroc.stats.variances import (
    PRESENT_CLASSES,
    in_rows,
    of_full_weights,
    residual,
    signed_weights,
    unit_totals,
    with_signed_weights,
)

Units: TypeAlias = Literal["row", "cluster", "counted"]

# Sums over the rows of a class.
_SUMS = ("weight", "squares", "cubes", "first", "second")
_WALKED = (*_SUMS, "rows")
# The number of rows with weight in a row's cluster, and that of clusters.
UNIT_ROWS, CLUSTERS = "__unit_rows", "__clusters"
# Below this proportion of its terms the denominator of a class's factor is 0: it has one unit.
_ONE_UNIT = 1e-12


class Moments(NamedTuple):
    """The moments of a class, and its contribution to the variance of the AUC.

    The moments are sums over rows of squared weights, which add up to 1, times powers of the
    placement values: the 0th, the first and the second power. ``unweighted`` is the 0th one if the
    rows had equal weights.
    """

    h2: pl.Expr
    x1: pl.Expr
    x2: pl.Expr
    unweighted: pl.Expr
    variance: pl.Expr


class VarianceEstimate(NamedTuple):
    """The variance; null where a class has one unit, or cubes over- or underflow.

    Of each class there are its contribution, and Kish's effective sample size in units. Without
    clusters there is no number of these.
    """

    total: pl.Expr
    parts: dict[str, pl.Expr]
    effective: dict[str, pl.Expr]
    clusters: pl.Expr | None

    @property
    def df(self) -> pl.Expr:
        """Satterthwaite's degrees of freedom, from the contribution and size of each class.

        At most those of the clusters, which may have rows of both classes.
        """
        # From the parts alone: the covariance of classes that share clusters cancels out.
        both = self.parts["pos"] + self.parts["neg"]
        of_pos, of_neg = (
            (self.parts[side] / both) ** 2 / (self.effective[side] - 1).clip(lower_bound=1.0)
            for side in CLASSES
        )
        spread = of_pos + of_neg
        if self.clusters is None:
            return 1 / spread
        return min_of(1 / spread, self.clusters - 1).clip(lower_bound=1.0)


def units_of(*, clustered: bool = False, counted: bool = False) -> Units:
    """Choose the independent units; ``counted`` rows may represent several."""
    if clustered:
        # Counting a row several times changes nothing in the sum over its cluster.
        return "cluster"
    return "counted" if counted else "row"


@dataclass(frozen=True)
class Variance:
    """The variance of one estimate, from sums over the rows of a group.

    ``name`` is a suffix that distinguishes the columns of several estimates.
    """

    units: Units
    name: str = ""

    @property
    def unit_weights(self) -> list[str]:
        """Columns of the rows and weights of a row's cluster, whatever the placement values."""
        return [UNIT_ROWS, *(self.column("unit_weight", side) for side in CLASSES)]

    def cluster_sums(self, placements: Placements) -> dict[str, pl.Expr]:
        """Values whose sums over its cluster `sums` needs in each row."""
        columns: dict[str, pl.Expr] = {}
        for side, (weight, placement) in placements._asdict().items():
            columns[self.column("unit_weight", side)] = weight
            columns[self.column("unit_sum", side)] = weight * placement
        return columns | {UNIT_ROWS: _has_weight(placements)}

    def sums(self, placements: Placements, field: Fields) -> dict[str, pl.Expr]:
        """Aggregate the rows of a group to the sums that `estimate` needs."""
        return self.sums_of_weights(placements, field) | self.sums_of_values(placements, field)

    def sums_of_weights(self, placements: Placements, field: Fields) -> dict[str, pl.Expr]:
        """Aggregate what is the same for all estimates of the same rows."""
        columns: dict[str, pl.Expr] = {}
        for side, (weight, placement) in placements._asdict().items():
            own, _ = self._unit(weight, placement, side, field)
            columns[self.column("weight", side)] = weight.sum()
            columns[self.column("squares", side)] = (weight * own).sum()
            columns[self.column("cubes", side)] = self._cubes(weight, own, field).sum()
            columns[self.column("rows", side)] = self._rows(weight, field).sum()
        if self.units == "cluster":
            of_unit = field(self.column("unit_weight", "neg"))
            columns[self._cross("weight", "unit_weight")] = (placements.pos.weight * of_unit).sum()
            of_row = when(_has_weight(placements)).then(1 / field(UNIT_ROWS))
            columns[CLUSTERS] = of_row.sum()
        return columns

    def sums_of_values(self, placements: Placements, field: Fields) -> dict[str, pl.Expr]:
        """Aggregate what depends on the placement values."""
        columns: dict[str, pl.Expr] = {}
        for side, (weight, placement) in placements._asdict().items():
            _, unit_sum = self._unit(weight, placement, side, field)
            columns[self.column("first", side)] = (weight * unit_sum).sum()
            columns[self.column("second", side)] = (weight * placement * unit_sum).sum()
        if self.units == "cluster":
            weight, placement = placements.pos
            of_unit = {
                name: field(self.column(name, "neg")) for name in ("unit_weight", "unit_sum")
            }
            columns[self._cross("weight", "unit_sum")] = (weight * of_unit["unit_sum"]).sum()
            for name, value in of_unit.items():
                columns[self._cross("sum", name)] = (weight * placement * value).sum()
        return columns

    def rows_of_classes(self, field: Fields) -> list[pl.Expr]:
        """Refer to the numbers of rows of both classes, or of clusters with some."""
        return [field(self.column("rows", side)) for side in CLASSES]

    def walk_sums(self) -> dict[str, pl.Expr]:
        """Name the sums of a walk along the rows of a group as `sums` does."""
        return {
            self.column(name, side): pl.col(walk_sum(name, side))
            for side in CLASSES
            for name in _WALKED
        }

    def estimate(self, field: Fields, centre: pl.Expr) -> Formula[VarianceEstimate]:
        """Estimate the variance from the sums of a group, given the mean placement value.

        The factor of each class makes its contribution unbiased when weights and placement values
        are unrelated; for equal weights it is n / (n - 1). The cubes are the first sums to overflow
        or underflow.
        """
        values: dict[tuple[str, str], pl.Expr] = {}
        for side in CLASSES:
            weight, squares, cubes, first, second = (
                field(self.column(name, side)) for name in _SUMS
            )
            unbiased = squares - 2 * (cubes / weight) + (squares / weight) ** 2
            several = unbiased > _ONE_UNIT * squares
            factor = when(several & is_exact(cubes)).then(squares / unbiased)
            level = centre**2 * squares
            spread = _without_rounding(second - 2 * centre * first + level, second + level)
            # Without misranked pairs all placement values are 0, whatever rounding left of them.
            spread = when(centre == 0).then(0.0).otherwise(spread)
            values["factor", side] = factor
            values["part", side] = factor * (spread / weight / weight)
            values["effective", side] = effective_sample_size(weight, squares)
        values = yield from kept(values)
        factors, parts, effective = (
            {side: values[name, side] for side in CLASSES}
            for name in ("factor", "part", "effective")
        )
        total, clusters = parts["pos"] + parts["neg"], None
        if self.units == "cluster":
            clusters = field(CLUSTERS)
            covariance, terms = self._covariance(field, centre, factors)
            total = _without_rounding(total + covariance, total + terms)
        (total,) = yield [total]
        return VarianceEstimate(total, parts, effective, clusters)

    def moments(self, field: Fields, estimate: VarianceEstimate) -> Formula[dict[str, Moments]]:
        """Compute the moments of each class; null where the cubes overflow or underflow."""
        values: dict[tuple[str, str], pl.Expr] = {}
        for side in CLASSES:
            weight, *sums = (
                field(self.column(name, side)) for name in ("weight", "squares", "first", "second")
            )
            known = when(is_exact(field(self.column("cubes", side))))
            for name, value in zip(Moments._fields[:3], sums, strict=True):
                values[name, side] = known.then(value / weight / weight)
            values["unweighted", side] = known.then(1 / field(self.column("rows", side)))
            values["variance", side] = estimate.parts[side]
        values = yield from kept(values)
        return {side: Moments(*(values[n, side] for n in Moments._fields)) for side in CLASSES}

    def _unit(
        self, weight: pl.Expr, placement: pl.Expr, side: str, field: Fields
    ) -> tuple[pl.Expr, pl.Expr]:
        """Weight of a row's unit, and the unit's sum of weighted placement values."""
        if self.units == "cluster":
            return field(self.column("unit_weight", side)), field(self.column("unit_sum", side))
        own = self.unit_weight(weight, field)
        return own, own * placement

    def unit_weight(self, weight: pl.Expr, field: Fields) -> pl.Expr:
        """Weight of a row; where it represents several, their weighted mean weight."""
        if self.units != "counted":
            return weight
        return when(weight > 0).then(field(ROW_SQUARES) / weight).otherwise(0.0)

    def _cubes(self, weight: pl.Expr, unit: pl.Expr, field: Fields) -> pl.Expr:
        """Weight of a row times that of its unit squared."""
        if self.units == "counted":
            return when(weight > 0).then(field(ROW_CUBES)).otherwise(0.0)
        return weight * unit * unit

    def _rows(self, weight: pl.Expr, field: Fields) -> pl.Expr:
        """Number of rows that a row represents; 0 for a row of the other class."""
        number = field(ROW_COUNT) if self.units == "counted" else pl.lit(1, pl.Int64)
        return when(weight > 0).then(number).otherwise(0)

    def _covariance(
        self, field: Fields, centre: pl.Expr, factors: Mapping[str, pl.Expr]
    ) -> tuple[pl.Expr, pl.Expr]:
        """Twice the covariance of the classes, which share clusters, and the size of its terms."""
        weights, weight_sums, sum_weights, sums = (
            field(self._cross(of_pos, of_neg))
            for of_pos in ("weight", "sum")
            for of_neg in ("unit_weight", "unit_sum")
        )
        level = centre**2 * weights + sums
        spread = level - centre * (weight_sums + sum_weights)
        totals = field(self.column("weight", "pos")) * field(self.column("weight", "neg"))
        scale = 2 * (factors["pos"] * factors["neg"]).sqrt() / totals
        return scale * spread, scale * level

    def _cross(self, of_pos: str, of_neg: str) -> str:
        """Column of a sum over positives, of products with a sum over the unit's negatives."""
        return f"__{of_pos}_by_{of_neg}{self.name}"

    def column(self, name: str, side: str) -> str:
        """Column of one of the sums of a class."""
        return f"__{name}_{side}{self.name}"


def _has_weight(placements: Placements) -> pl.Expr:
    return placements.pos.weight + placements.neg.weight > 0


def _without_rounding(difference: pl.Expr, terms: pl.Expr) -> pl.Expr:
    """Replace by 0 a difference that may be the rounding error of terms that cancel out."""
    known = terms.is_finite()
    zero = when(known & (difference <= ROUNDING * terms)).then(0.0)
    return zero.when(known).then(difference)


_ABOVE = "__negatives_above"


def replicate_influences(rows: Rows, design: Replicates, scores: Mapping[str, str]) -> pl.LazyFrame:
    """Compute named influences on the AUC of each segment by a column of scores.

    Null where a replicate has one class only.
    """
    of_scores = [_one_minus_aucs(rows, design, score, name) for name, score in scores.items()]
    unit = [*rows.keys, STRATUM, CLUSTER]
    table = reduce(lambda one, other: join_on_keys(one, other, unit), of_scores)
    differences = {name: of_full_weights(pl.col(name), rows.keys) - pl.col(name) for name in scores}
    return table.with_columns(**differences)


def _one_minus_aucs(rows: Rows, design: Replicates, score: str, name: str) -> pl.LazyFrame:
    """Compute 1 - AUC of each segment with each column of weights."""
    weights = signed_weights(design)
    sums: dict[str, pl.Expr] = {}
    for weight in weights:
        for side, of_row in zip(CLASSES, class_weights(pl.col(weight)), strict=True):
            sums[f"{weight}_{side}"] = of_row.sum()
    # Ties are added up first, so that each score has one place.
    signed = with_signed_weights(rows.frame, design)
    by_score = aggregate(signed, [*rows.keys, score], sums).sort(score, descending=True)
    above = {weight: pl.col(f"{weight}_neg").cum_sum() for weight in weights}
    placed = by_score.with_columns(over(as_struct(above), rows.keys).alias(_ABOVE))
    areas: dict[str, pl.Expr] = {}
    for weight in weights:
        pos, neg = (pl.col(f"{weight}_{side}") for side in CLASSES)
        # Shares of the positives, since products of weights may overflow or underflow.
        misranked = pos / pos.sum() * (pl.col(_ABOVE).struct.field(weight) - neg / 2)
        both = when((pos.sum() > 0) & (neg.sum() > 0))
        area = both.then(misranked.sum() / neg.sum())
        areas[weight] = when(area.is_finite()).then(area)
    table = aggregate(placed, rows.keys, areas)
    return in_rows(table, rows.keys, [{name: pl.col(weight)} for weight in weights])


# The influence of a unit on the AUC, and the variance of the AUC of a segment.
AUC_INFLUENCE, AUC_VARIANCE = "__auc_influence", "__design_variance"


def auc_influences(placed: pl.LazyFrame, rows: Rows) -> pl.LazyFrame:
    """Compute the influence on the AUC of each segment of the units that have rows of it."""
    if isinstance(rows.design, Replicates):
        return replicate_influences(rows, rows.design, {AUC_INFLUENCE: SCORE})
    return unit_influences(placed, rows.keys, {AUC_INFLUENCE: row_curve().placements})


def unit_influences(
    placed: pl.LazyFrame, keys: Sequence[str], aucs: Mapping[str, Placements]
) -> pl.LazyFrame:
    """Compute named influences on AUCs of the same rows, and `PRESENT_CLASSES`, of each unit.

    Null where a class has no weight.
    """
    sums: dict[str, pl.Expr] = {}
    for name, placements in aucs.items():
        for side, (weight, placement) in placements._asdict().items():
            sums[_weight(side)] = weight.sum()
            sums[_misranked(side, name)] = (weight * placement).sum()
    totals = unit_totals(placed, keys, sums)
    totals = totals.filter(pl.any_horizontal(pl.col(_weight(side)) > 0 for side in CLASSES))

    def influences(field: Fields) -> Formula[Columns]:
        of_segment = yield from kept({name: over(field(name).sum(), keys) for name in sums})
        weights = {side: of_segment[_weight(side)] for side in CLASSES}
        known = when((weights["pos"] > 0) & (weights["neg"] > 0))
        centres = yield from kept(
            {n: known.then(of_segment[_misranked("pos", n)] / weights["pos"]) for n in aucs}
        )
        columns: Columns = {}
        for name, centre in centres.items():
            parts = [
                -residual(field(_misranked(side, name)), centre * field(_weight(side))) / weight
                for side, weight in weights.items()
            ]
            columns[name] = when(centre.is_not_null()).then(parts[0] + parts[1])
        for present, side in zip(PRESENT_CLASSES, CLASSES, strict=True):
            columns[present] = (field(_weight(side)) > 0).cast(pl.Int64)
        return columns

    return in_columns(totals, [influences])


def _weight(side: str) -> str:
    return f"__unit_weight_{side}"


def _misranked(side: str, name: str) -> str:
    return f"__unit_misranked_{side}_{name}"
