"""Rules that choose a threshold: which points they allow, and which of these is best.

A rule is a formula of one point of the confusion curve, the origin included, that measures how
good it is. Of equally good points the one with the highest threshold is chosen; with a limit on the
tpr or the fpr, of two points with the same rate the one that is better in the other rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import polars as pl

from polars_wroc.inputs import arguments
from polars_wroc.inputs.arguments import Costs, read_costs, target_prevalence
from polars_wroc.inputs.columns import IntoColumn
from polars_wroc.inputs.decisions import RECORDED
from polars_wroc.ranking.curve import are_both_classes, is_divisor
from polars_wroc.stats.proportions import TOLERANCE

Criterion: TypeAlias = Literal["youden", "closest_topleft", "accuracy", "cost"]
# The arguments of `choose_rule`.
RULE_ARGUMENTS = (
    *("criterion", "cost_fn", "cost_fp", "prevalence"),
    *("max_fpr", "min_tpr", "max_selection_rate"),
)


class Point(NamedTuple):
    """A point of the confusion curve: weights predicted positive, and all weights."""

    tp: pl.Expr
    fp: pl.Expr
    positives: pl.Expr
    negatives: pl.Expr

    @property
    def tpr(self) -> pl.Expr:
        """True positive rate."""
        return self.tp / self.positives

    @property
    def fpr(self) -> pl.Expr:
        """False positive rate."""
        return self.fp / self.negatives

    @property
    def all_rows(self) -> pl.Expr:
        """Weight of both classes."""
        return self.positives + self.negatives


Measure: TypeAlias = Callable[[Point], pl.Expr]


@dataclass(frozen=True)
class Rule:
    """Choose the ``allowed`` point with the largest ``first``, then the largest ``second``.

    All measures are rates, or of the size of rates. ``known`` says for which curves the measures
    are defined.
    """

    first: Measure
    known: Measure
    allowed: Measure | None = None
    second: Measure | None = None


def choose_rule(
    criterion: Criterion | None = None,
    *,
    cost_fn: float | None = None,
    cost_fp: float | None = None,
    prevalence: float | None = None,
    max_fpr: float | None = None,
    min_tpr: float | None = None,
    max_selection_rate: float | None = None,
) -> Rule:
    """Read the arguments of an operating point, exactly one of which must choose the rule."""
    if criterion != "cost":
        for name, value in (("cost_fn", cost_fn), ("cost_fp", cost_fp), ("prevalence", prevalence)):
            if value is not None:
                msg = f"`{name}` must come with `criterion` 'cost'; found {value!r}"
                raise ValueError(msg)
    limits = {"max_fpr": max_fpr, "min_tpr": min_tpr, "max_selection_rate": max_selection_rate}
    given = arguments.given(criterion=criterion, **limits)
    if len(given) != 1:
        msg = (
            "exactly one of `criterion`, `max_fpr`, `min_tpr` and `max_selection_rate` must be "
            f"given; found {arguments.named(given)}"
        )
        raise ValueError(msg)
    if criterion is not None:
        arguments.option("criterion", criterion, get_args(Criterion))
        if criterion == "cost":
            return _least_cost(read_costs(cost_fn, cost_fp), target_prevalence(prevalence))
        return _CRITERIA[criterion]
    (name,) = given
    return _LIMITS[name](arguments.number(name, limits[name], low=0, high=1))


def expected_optimism(rule: str | None, positives: int) -> float | None:
    """Return how much lower tpr is expected to be on other rows than on those of the choice.

    ``rule`` is a criterion, the name of a limit, or None if it is not known. The formulas fit
    simulations with normal scores and 20 to 200 positives; below 10 positives the result is None.
    With AUC 0.85 and three times as many negatives, Youden's index had 0.084, 0.050 and 0.017 with
    20, 50 and 200 positives, and a limit of fpr 0.049, 0.020 and 0.005. From AUC 0.95 to 0.7, and
    with one to nine times as many negatives, Youden's index had 0.066 to 0.107 with 20 positives, a
    limit of fpr 0.045 to 0.050.
    """
    if positives < _FEWEST_POSITIVES:
        return None
    if rule in _OPTIMISM:
        return _OPTIMISM[rule] / positives
    return 0.62 * math.pow(positives, -2 / 3)


def threshold_or_rule(
    threshold: float | None, selected: IntoColumn | None = None, **rule: Any
) -> float | Rule | None:
    """Read a threshold that is given or chosen by a rule; None without either.

    Decisions that were ``selected`` must be given alone; the threshold is then `RECORDED`.
    """
    if selected is not None:
        if given := arguments.given(threshold=threshold, **rule):
            msg = (
                "`selected` has the decisions and must not come with a threshold or a rule that "
                f"chooses one; found {arguments.named(given)}"
            )
            raise ValueError(msg)
        return RECORDED
    if threshold is None:
        return choose_rule(**rule) if rule else None
    if rule:
        found = arguments.named(rule)
        msg = f"`threshold` must not come with a rule that chooses one; found {found}"
        raise ValueError(msg)
    return arguments.number("threshold", threshold) + 0.0


def _both(point: Point) -> pl.Expr:
    return are_both_classes(point.positives, point.negatives)


def _any(point: Point) -> pl.Expr:
    return is_divisor(point.all_rows)


def _least_cost(costs: Costs, prevalence: float | None) -> Rule:
    """The rule of the lowest expected cost, up to terms that all points have in common."""

    def gain(point: Point) -> pl.Expr:
        if prevalence is None:
            return (costs.fn * point.tp - costs.fp * point.fp) / point.all_rows
        return -costs.expected(1 - point.tpr, point.fpr, prevalence)

    return Rule(gain, known=_any if prevalence is None else _both)


def _max_fpr(limit: float) -> Rule:
    return Rule(
        first=lambda point: point.tpr,
        second=lambda point: -point.fpr,
        allowed=lambda point: point.fpr <= limit + TOLERANCE,
        known=_both,
    )


def _min_tpr(limit: float) -> Rule:
    return Rule(
        first=lambda point: -point.fpr,
        second=lambda point: point.tpr,
        allowed=lambda point: point.tpr >= limit - TOLERANCE,
        known=_both,
    )


def _max_selection_rate(limit: float) -> Rule:
    def selected(point: Point) -> pl.Expr:
        return (point.tp + point.fp) / point.all_rows

    return Rule(first=selected, allowed=lambda p: selected(p) <= limit + TOLERANCE, known=_any)


_CRITERIA: dict[str, Rule] = {
    "youden": Rule(lambda point: point.tpr - point.fpr, known=_both),
    "closest_topleft": Rule(lambda point: -(point.fpr**2) - (1 - point.tpr) ** 2, known=_both),
    "accuracy": Rule(lambda point: (point.tp - point.fp) / point.all_rows, known=_any),
}
# With fewer positives the formulas of the expected optimism say nothing.
_FEWEST_POSITIVES = 10
# Times the number of positives; by a limit of the selection rate tpr is hardly optimised.
_OPTIMISM = {"max_fpr": 1.0, "min_tpr": 1.0, "max_selection_rate": 0.2}
_LIMITS = {
    "max_fpr": _max_fpr,
    "min_tpr": _min_tpr,
    "max_selection_rate": _max_selection_rate,
}
