"""Partial AUCs over a range of rates, and over a range of costs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import nan
from typing import Literal, NamedTuple, TypeAlias, get_args

import polars as pl

from polars_wroc import checks
from polars_wroc.bounds import NonNegative, Prevalence
from polars_wroc.calls import check_arguments, check_call
from polars_wroc.inputs.columns import IntoColumn, IntoWeight
from polars_wroc.inputs.costs import Costs, read_costs
from polars_wroc.inputs.expressions import from_expressions
from polars_wroc.ranking.curve import (
    WHOLE_RANGE,
    Curve,
    LinePieces,
    Range,
    areas_above_zero,
    areas_between,
    areas_in_rectangle,
    fold,
    pieces,
    total,
)
from polars_wroc.structs import as_struct, let


@check_call
def partial_auc(
    label: IntoColumn,
    score: IntoColumn,
    *,
    fpr: Range | None = None,
    tpr: Range | None = None,
    standardize: Standardize = False,
    weight: IntoWeight | None = None,
    pos_label: object = None,
) -> pl.Expr:
    """Return the weighted area under a part of the ROC curve.

    Use it if only low false positive rates, or only high true positive rates, matter. For
    confidence intervals use ``summary(areas=)``.

    Parameters
    ----------
    label, score, weight, pos_label
        As for `roc_auc`.
    fpr
        Range of false positive rates: the area under the curve over this range [1]_.
    tpr
        Range of true positive rates: the area to the right of the curve [2]_. With both ranges, the
        area under the curve within their rectangle: the two-way partial AUC.
    standardize
        True rescales the area to 0.5 for the diagonal and 1 for a perfect score, after McClish
        [1]_; ``"mean"`` divides it by the area of a perfect score, which makes it a mean rate. With
        both ranges, True gives null if all of ``fpr`` is above all of ``tpr``, where a random score
        has the same area as a perfect one.

    Returns
    -------
    pl.Expr
        One Float64 per group, named ``partial_auc``; null where a class has no weight. McClish's
        area is below 0.5 for a curve below the diagonal, and may be negative.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.InvalidOperationError
        As for `roc_auc`; also without a range, or for one that does not rise or leaves [0, 1].

    Notes
    -----
    The curve is interpolated at the ends of a range. ``fpr=(0, b), standardize=True`` is
    scikit-learn's ``roc_auc_score(max_fpr=b)``.

    References
    ----------
    .. [1] McClish, D. K. (1989), Medical Decision Making 9, 190-195.
    .. [2] Jiang, Y. et al. (1996), Radiology 201, 745-750.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> df.select(wroc.partial_auc("y", "s", fpr=(0.0, 0.5))).item()
    0.25
    >>> standardized = wroc.partial_auc("y", "s", fpr=(0.0, 0.5), standardize=True)
    >>> round(df.select(standardized).item(), 3)
    0.667
    """
    build = partial(fold, formula=PartialAUC(fpr=fpr, tpr=tpr, standardize=standardize))
    return from_expressions(label, score, weight, pos_label, build).alias("partial_auc")


Standardize: TypeAlias = bool | Literal["mean"]


@check_arguments
@dataclass(frozen=True, kw_only=True)
class PartialAUC:
    """Partial AUC as a metric for `curve_metrics`, `bootstrap` and the ``areas`` of `summary`.

    It takes the arguments of `partial_auc`.

    Raises
    ------
    TypeError, ValueError
        As for `partial_auc`.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> early = {"early": wroc.PartialAUC(fpr=(0.0, 0.5))}
    >>> df.select(wroc.curve_metrics("y", "s", metrics=early)).item()
    {'early': 0.25}
    """

    fpr: Range | None = None
    tpr: Range | None = None
    standardize: Standardize = False

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.fpr is None and self.tpr is None:
            msg = "`fpr` or `tpr` must be a range, for example (0.0, 0.1); found neither"
            raise ValueError(msg)
        for name, value in (("fpr", self.fpr), ("tpr", self.tpr)):
            if value is not None:
                checks.hold(self, **{name: checks.rate_range(name, value)})
        if not isinstance(self.standardize, bool) and self.standardize != "mean":
            checks.reject("standardize", "be True, False or 'mean'", repr(self.standardize))

    def __call__(self, curve: Curve) -> pl.Expr:
        """Return the area as an expression of the curve."""
        intercept, slope = self.standardizing_line
        line = pieces(curve)
        if self.tpr is None:
            areas = areas_between(line, self.fpr or WHOLE_RANGE)
        elif self.fpr is None:
            areas = areas_between(line.rotate(), self.tpr)
        else:
            areas = areas_in_rectangle(line, self.fpr, self.tpr)
        area = {"area": intercept + slope * total(curve, areas)}
        # As a field, since `fill_nan` repeats its expression.
        return let(area, lambda field: field("area").fill_nan(None))

    @property
    def standardizing_line(self) -> tuple[float, float]:
        """Intercept and slope of the line that standardizes an area; NaN if that is impossible."""
        if self.standardize is False:
            return 0.0, 1.0
        if self.standardize == "mean":
            return 0.0, 1 / self.largest
        if self.is_below_diagonal:
            return nan, nan
        # The area by chance becomes 1 / 2, and the largest area 1.
        slope = 0.5 / (self.largest - self.by_chance)
        return 0.5 - slope * self.by_chance, slope

    @property
    def is_below_diagonal(self) -> bool:
        """Whether the diagonal passes above the ranges, so that a random score has all the area."""
        (left, _), (_, high) = self.fpr or WHOLE_RANGE, self.tpr or WHOLE_RANGE
        return left >= high

    @property
    def largest(self) -> float:
        """The area of a perfect score."""
        (left, right), (low, high) = self.fpr or WHOLE_RANGE, self.tpr or WHOLE_RANGE
        return (right - left) * (high - low)

    @property
    def by_chance(self) -> float:
        """The area under the diagonal."""
        (left, right), (low, high) = self.fpr or WHOLE_RANGE, self.tpr or WHOLE_RANGE

        def until(fpr: float) -> float:
            return (max(fpr - low, 0.0) ** 2 - max(fpr - high, 0.0) ** 2) / 2

        return until(right) - until(left)


Baseline: TypeAlias = Literal["random", "trivial"]
CostAreaName: TypeAlias = Literal["area", "max_area", "chance_area", "ratio", "corrected"]

COST_AREAS: tuple[CostAreaName, ...] = get_args(CostAreaName)


@check_arguments
@dataclass(frozen=True, kw_only=True)
class CostPartialAUC:
    """Cost-based partial AUC as a metric for `curve_metrics` and `bootstrap`.

    ``value`` is the field of `cost_partial_auc` to compute; the other arguments are the arguments
    of that function.

    Raises
    ------
    TypeError, ValueError
        As for `cost_partial_auc`; also for a ``value`` that is not one of its fields.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> costly = {"costly": wroc.CostPartialAUC(cost_fn=0.7, value="ratio")}
    >>> df.select(wroc.curve_metrics("y", "s", metrics=costly)).item()
    {'costly': 0.5}
    """

    cost_fn: NonNegative | None = None
    cost_fp: NonNegative | None = None
    prevalence: Prevalence | None = None
    baseline: Baseline = "random"
    value: CostAreaName = "area"

    def __post_init__(self) -> None:
        """Check the arguments."""
        read_costs(self.cost_fn, self.cost_fp)

    def __call__(self, curve: Curve) -> pl.Expr:
        """Return the ``value`` as an expression of the curve."""
        areas = self._measure_areas(curve)
        return (areas | shares_of_area(*areas.values()))[self.value]

    def areas(self, curve: Curve) -> pl.Expr:
        """Return the struct of all areas and ratios."""
        areas = self._measure_areas(curve)
        shares = shares_of_area(*(pl.field(name) for name in areas))
        return as_struct(areas).struct.with_fields(**shares)

    def _measure_areas(self, curve: Curve) -> dict[str, pl.Expr]:
        """Return the areas of the curve, of a perfect score and of the diagonal."""
        score_prevalence = curve.prevalence
        group_prevalence = curve.positives / (curve.positives + curve.negatives)
        if self.prevalence is not None:
            score_prevalence = group_prevalence = pl.lit(self.prevalence)
        line = self._line(group_prevalence)
        return {
            "area": total(curve, self._line(score_prevalence).areas_above(pieces(curve))),
            "max_area": curve.if_both_classes(line.most()),
            "chance_area": curve.if_both_classes(line.by_chance()),
        }

    def _line(self, prevalence: pl.Expr) -> CostLine:
        costs = read_costs(self.cost_fn, self.cost_fp)
        return cost_line(costs, prevalence, self.baseline)


def cost_line(costs: Costs, prevalence: pl.Expr, baseline: Baseline) -> CostLine:
    """Return the line of the points that cost as much as the baseline."""
    scaled = costs.unit_costs
    gain, loss = scaled.fn * prevalence, scaled.fp * (1 - prevalence)
    steep = loss > gain
    gradient = pl.min_horizontal(gain, loss) / pl.max_horizontal(gain, loss)
    if baseline == "random":
        return CostLine(steep, gradient, prevalence)
    # All predicted positive where that is cheaper, else none.
    return CostLine(steep, gradient, pl.when(steep).then(0.0).when(~steep).then(1.0))


def shares_of_area(area: pl.Expr, most: pl.Expr, chance: pl.Expr) -> dict[str, pl.Expr]:
    """Return an area divided by a perfect score's area, and corrected for the diagonal's."""
    return {
        "ratio": pl.when(most > 0).then(area / most),
        "corrected": pl.when(most > chance).then((area - chance) / (most - chance)),
    }


class CostLine(NamedTuple):
    """A rising line that ``meets`` the diagonal at the point with this value of both rates.

    ``gradient`` is its slope against x, or against y for a ``steep`` line: at most 1. Along that
    axis the line stays inside the unit square, so no curve has to be cut.
    """

    steep: pl.Expr
    gradient: pl.Expr
    meets: pl.Expr

    def distance(self, x: pl.Expr, y: pl.Expr) -> pl.Expr:
        """Distance of a point above the line, or left of a steep one."""
        along = pl.when(self.steep).then(self.gradient).otherwise(1.0)
        up = pl.when(self.steep).then(1.0).otherwise(self.gradient)
        return along * (y - self.meets) - up * (x - self.meets)

    def areas_above(self, pieces: LinePieces) -> pl.Expr:
        """Area between each piece and the line, where the piece is above or left of it."""
        named = {
            "width": pl.when(self.steep)
            .then(pieces.y1 - pieces.y0)
            .otherwise(pieces.x1 - pieces.x0),
            "start": self.distance(pieces.x0, pieces.y0),
            "end": self.distance(pieces.x1, pieces.y1),
        }
        return let(
            named, lambda field: areas_above_zero(field("width"), field("start"), field("end"))
        )

    def most(self) -> pl.Expr:
        """Area between the line and the curve of a perfect score."""
        slant = self.gradient * (0.5 - self.meets)
        return pl.when(self.steep).then(self.meets + slant).otherwise(1 - self.meets - slant)

    def by_chance(self) -> pl.Expr:
        """Area between the line and the diagonal, where the diagonal is above or left."""
        side = pl.when(self.steep).then(self.meets).otherwise(1 - self.meets)
        return (1 - self.gradient) * side**2 / 2


@check_call
def cost_partial_auc(
    label: IntoColumn,
    score: IntoColumn,
    *,
    cost_fn: NonNegative | None = None,
    cost_fp: NonNegative | None = None,
    prevalence: Prevalence | None = None,
    baseline: Baseline = "random",
    weight: IntoWeight | None = None,
    pos_label: object = None,
) -> pl.Expr:
    """Return the area under the ROC curve where decisions cost less than a baseline.

    The area lies below the curve and above the line of all points that cost as much as the
    baseline, a rule that needs no score.

    The fields are:

    - ``area, max_area, chance_area``: of the score, of a perfect score and of the diagonal;
    - ``ratio``: ``area / max_area``;
    - ``corrected``: rescaled to 0 for the diagonal and 1 for a perfect score.

    Parameters
    ----------
    label, score, weight, pos_label
        As for `roc_auc`.
    cost_fn, cost_fp
        Costs of a false negative and a false positive; only their ratio matters. If one is given,
        it must be between 0 and 1, and the other is 1 minus it.
    prevalence
        Prevalence in the population that the decision is for, strictly between 0 and 1. None: the
        prevalence in the data.
    baseline
        ``"random"``: select at random as many rows as are positive. ``"trivial"``: the cheaper of
        selecting all and selecting none, a stricter baseline.

    Returns
    -------
    pl.Expr
        One struct per group, named ``cost_partial_auc``, of Float64 fields. All are null where a
        class has no weight; the last two also where even a perfect score gains nothing.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.InvalidOperationError
        As for `roc_auc`; also without a cost, and for costs or a prevalence out of range.

    Notes
    -----
    The slope of the line is ``cost_fp * (1 - prevalence) / (cost_fn * prevalence)``. For
    ``"random"`` it crosses the diagonal where both rates equal the prevalence.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> area = df.select(wroc.cost_partial_auc("y", "s", cost_fn=0.5))
    >>> area.unnest("cost_partial_auc").select("area", "max_area", "corrected")
    shape: (1, 3)
    ┌──────┬──────────┬───────────┐
    │ area ┆ max_area ┆ corrected │
    │ ---  ┆ ---      ┆ ---       │
    │ f64  ┆ f64      ┆ f64       │
    ╞══════╪══════════╪═══════════╡
    │ 0.25 ┆ 0.5      ┆ 0.5       │
    └──────┴──────────┴───────────┘
    """
    area = CostPartialAUC(
        cost_fn=cost_fn, cost_fp=cost_fp, prevalence=prevalence, baseline=baseline
    )
    build = partial(fold, formula=area.areas)
    return from_expressions(label, score, weight, pos_label, build).alias("cost_partial_auc")
