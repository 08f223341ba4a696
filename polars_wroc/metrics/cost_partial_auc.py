"""The part of the area under a ROC curve where its decisions cost less than a baseline."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple, TypeAlias, get_args

import polars as pl

from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import IntoColumn
from polars_wroc.inputs.costs import Costs, read_costs, target_prevalence
from polars_wroc.inputs.expressions import from_expressions
from polars_wroc.plans.steps import as_struct, let
from polars_wroc.ranking.areas import LinePieces, _areas_above_zero, pieces, total
from polars_wroc.ranking.confusion_curve import Curve, fold

Baseline: TypeAlias = Literal["random", "trivial"]
CostAreaName: TypeAlias = Literal["area", "max_area", "chance_area", "ratio", "corrected"]

COST_AREAS: tuple[CostAreaName, ...] = get_args(CostAreaName)


@dataclass(frozen=True)
class CostPartialAUC:
    """How far a curve is above the points that cost no less than a rule without a score.

    The points that cost what the baseline costs lie on a straight line, whose slope is what a
    false positive costs in true positives. For `curve_metrics` and `bootstrap`, which get the
    number called ``value``; the other arguments are those of `cost_partial_auc`.
    """

    cost_fn: float | None = None
    cost_fp: float | None = None
    prevalence: float | None = None
    baseline: Baseline = "random"
    value: CostAreaName = "area"

    def __post_init__(self) -> None:
        """Check the costs and the words."""
        read_costs(self.cost_fn, self.cost_fp)
        target_prevalence(self.prevalence)
        arguments.option("baseline", self.baseline, get_args(Baseline))
        arguments.option("value", self.value, COST_AREAS)

    def __call__(self, curve: Curve) -> pl.Expr:
        """Write the ``value`` as a formula of the curve."""
        bounded = self._bounded(curve)
        return (bounded | shares_of_area(*bounded.values()))[self.value]

    def areas(self, curve: Curve) -> pl.Expr:
        """Write the struct of the area, of what bounds it, and of how far it is between."""
        bounded = self._bounded(curve)
        shares = shares_of_area(*(pl.field(name) for name in bounded))
        return as_struct(bounded).struct.with_fields(**shares)

    def _bounded(self, curve: Curve) -> dict[str, pl.Expr]:
        """Write the area, and what a perfect score and the diagonal have."""
        of_score, of_group = curve.prevalence, curve.positives / (curve.positives + curve.negatives)
        if self.prevalence is not None:
            of_score = of_group = pl.lit(self.prevalence)
        line = self._line(of_group)
        return {
            "area": total(curve, self._line(of_score).areas_above(pieces(curve))),
            "max_area": curve.if_both_classes(line.most()),
            "chance_area": curve.if_both_classes(line.by_chance()),
        }

    def _line(self, prevalence: pl.Expr) -> CostLine:
        costs = read_costs(self.cost_fn, self.cost_fp)
        return cost_line(costs, prevalence, self.baseline)


def cost_line(costs: Costs, prevalence: pl.Expr, baseline: Baseline) -> CostLine:
    """Find the points that cost what the baseline costs."""
    gain, loss = costs.fn * prevalence, costs.fp * (1 - prevalence)
    steep = loss > gain
    gradient = pl.min_horizontal(gain, loss) / pl.max_horizontal(gain, loss)
    if baseline == "random":
        return CostLine(steep, gradient, prevalence)
    # All predicted positive where that is the better, and else none.
    return CostLine(steep, gradient, pl.when(steep).then(0.0).when(~steep).then(1.0))


def shares_of_area(area: pl.Expr, most: pl.Expr, chance: pl.Expr) -> dict[str, pl.Expr]:
    """Put an area in relation to a perfect score's, and to what the diagonal has of it."""
    return {
        "ratio": pl.when(most > 0).then(area / most),
        "corrected": pl.when(most > chance).then((area - chance) / (most - chance)),
    }


class CostLine(NamedTuple):
    """A rising line through the point on the diagonal where both rates are ``meets``.

    ``gradient`` is its slope, or of a ``steep`` one what x gains with y: at most 1. Looked at
    along the axis that it is flat to, the line leaves the unit square at its ends only, and no
    curve there needs to be cut.
    """

    steep: pl.Expr
    gradient: pl.Expr
    meets: pl.Expr

    def distance(self, x: pl.Expr, y: pl.Expr) -> pl.Expr:
        """How far a point is above the line, or left of a steep one."""
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
            named, lambda field: _areas_above_zero(field("width"), field("start"), field("end"))
        )

    def most(self) -> pl.Expr:
        """Area between the line and the curve of a perfect score."""
        rest = self.gradient * (0.5 - self.meets)
        return pl.when(self.steep).then(self.meets + rest).otherwise(1 - self.meets - rest)

    def by_chance(self) -> pl.Expr:
        """Area between the line and the diagonal, where that is above or left of it."""
        side = pl.when(self.steep).then(self.meets).otherwise(1 - self.meets)
        return (1 - self.gradient) * side**2 / 2


def cost_partial_auc(
    label: IntoColumn,
    score: IntoColumn,
    *,
    cost_fn: float | None = None,
    cost_fp: float | None = None,
    prevalence: float | None = None,
    baseline: Baseline = "random",
    weight: IntoColumn | None = None,
    pos_label: object = None,
) -> pl.Expr:
    """Weighted area between the ROC curve and the points that are worth no more than a baseline.

    Decisions of the same expected cost lie on a straight line. The area is that under the
    curve and above the line of a rule that needs no score.

    Parameters
    ----------
    label, score, weight, pos_label
        As for `roc_auc`.
    cost_fn, cost_fp
        Costs of a false negative and of a false positive; only their ratio matters. With one
        of them, from 0 to 1, the other is what it lacks to 1.
    prevalence
        Share of positives in the population that the decision is for, strictly between 0 and
        1; None takes that of the data, by weight.
    baseline
        ``"random"``: select at random as many as are positive. ``"trivial"``: the better of
        selecting all and selecting none, which is the stricter.

    Returns
    -------
    pl.Expr
        One struct per group, named ``cost_partial_auc``, of Float64 fields: ``area``;
        ``max_area``, that of a perfect score; ``chance_area``, that of the diagonal; ``ratio``
        of the first to the second; ``corrected``, which is 0 for the diagonal and 1 for a
        perfect score. They are null where a class has no weight, and the ratios where there is
        nothing to win.

    Raises
    ------
    ValueError
        Without a cost, for negative costs or two of 0, or a prevalence out of range; else as
        for `roc_auc`.

    Notes
    -----
    The integral is exact, also where the line crosses a segment of the curve. With ``m`` for
    the cost of a false positive in true positives, the line of the baseline ``"random"`` goes
    through the prevalence on the diagonal with slope ``m``.

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
    area = CostPartialAUC(cost_fn, cost_fp, prevalence, baseline)
    build = partial(fold, formula=area.areas)
    return from_expressions(label, score, weight, pos_label, build).alias("cost_partial_auc")
