"""Rules that choose a threshold, as ``wroc.rules``.

Pass a rule as the ``threshold`` of a function: ``threshold=wroc.rules.max_fpr(0.1)``. Among equally
good thresholds the highest is chosen; with a limit on the tpr or fpr, the one that is better in the
other rate comes first. The threshold is +inf if selecting nobody is best, and null if a class that
the rule needs has no weight.

Metrics at the chosen threshold are optimistic if they are measured on the same rows: with 20
positives the tpr is about 0.05 to 0.08 too high. A limit holds for these rows only: on other rows
the fpr exceeds it in 41 to 45 % of samples. `threshold_metrics` estimates the rates on other rows
with ``honest="bootstrap"``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, TypeAlias

from polars_wroc import checks
from polars_wroc.arrays import TOLERANCE
from polars_wroc.bounds import NonNegative, Prevalence, Proportion
from polars_wroc.calls import check_call
from polars_wroc.inputs.columns import IntoColumn
from polars_wroc.inputs.costs import Costs, read_costs
from polars_wroc.inputs.decisions import RECORDED
from polars_wroc.ranking.curve import ColumnT, are_both_classes, is_divisor

__all__ = [
    "closest_topleft",
    "least_cost",
    "max_accuracy",
    "max_fpr",
    "max_selection_rate",
    "min_tpr",
    "youden",
]


class Point(NamedTuple, Generic[ColumnT]):
    """Points of confusion curves, as columns or arrays: weights predicted positive, and all."""

    tp: ColumnT
    fp: ColumnT
    positives: ColumnT
    negatives: ColumnT

    @property
    def tpr(self) -> ColumnT:
        """True positive rate."""
        return self.tp / self.positives

    @property
    def fpr(self) -> ColumnT:
        """False positive rate."""
        return self.fp / self.negatives

    @property
    def all_rows(self) -> ColumnT:
        """Weight of both classes."""
        return self.positives + self.negatives


Measure: TypeAlias = Callable[[Point[Any]], Any]


class Measures(NamedTuple):
    """Choose the ``allowed`` point with the largest ``first``, then the largest ``second``.

    All measures are rates, or of the size of rates. ``known`` says for which curves the measures
    are defined.
    """

    first: Measure
    known: Measure
    allowed: Measure | None = None
    second: Measure | None = None


@dataclass(frozen=True, repr=False)
class Rule:
    """A rule that chooses a threshold, from a function of this module."""

    name: str
    options: tuple[tuple[str, float], ...] = ()

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value:g}" for name, value in self.options)
        return f"{self.name}({given})"

    @property
    def measures(self) -> Measures:
        """The measures of the rule at each point."""
        return _MEASURES[self.name](**dict(self.options))

    @property
    def costs(self) -> Costs | None:
        """The costs of errors of the rule, if it has any."""
        given = dict(self.options)
        if self.name != "least_cost":
            return None
        return read_costs(given.get("fn"), given.get("fp"))

    @property
    def prevalence(self) -> float | None:
        """The prevalence of the rule's population, if it has one."""
        return dict(self.options).get("prevalence")

    def as_dict(self) -> dict[str, Any]:
        """Return the rule as values for JSON."""
        return {"rule": self.name, **dict(self.options)}


# The options of rules, as messages show them.
SHOWN_OPTIONS = {
    "least_cost": "fn=5, fp=1",
    "max_fpr": "fpr=0.1",
    "max_selection_rate": "rate=0.1",
    "min_tpr": "tpr=0.9",
}
Threshold: TypeAlias = float | Literal["median"] | Rule


@check_call
def youden() -> Rule:
    """Return the rule that maximizes tpr - fpr."""
    return Rule("youden")


@check_call
def closest_topleft() -> Rule:
    """Return the rule for the point closest to (0, 1), which no decision theory supports."""
    return Rule("closest_topleft")


@check_call
def max_accuracy() -> Rule:
    """Return the rule that minimizes the weight of errors. One class is enough."""
    return Rule("max_accuracy")


@check_call
def least_cost(
    *,
    fn: NonNegative | None = None,
    fp: NonNegative | None = None,
    prevalence: Prevalence | None = None,
) -> Rule:
    """Return the rule that minimizes the expected cost.

    Parameters
    ----------
    fn, fp
        Costs of a false negative and a false positive; only their ratio matters for the choice.
        ``expected_cost`` of `threshold_metrics` is in their unit. If one is given, it must be
        between 0 and 1, and the other is 1 minus it.
    prevalence
        Prevalence in the population that the decision is for; metrics at the threshold then
        describe this population too. None: the prevalence in the data; one class is then enough.

    Raises
    ------
    TypeError, ValueError
        For costs or a prevalence that are missing or out of range.

    Examples
    --------
    >>> import polars_wroc as wroc
    >>> wroc.rules.least_cost(fn=5, fp=1)
    least_cost(fn=5, fp=1)
    """
    read_costs(fn, fp, names=("fn", "fp"))
    given = {"fn": fn, "fp": fp, "prevalence": prevalence}
    numbers = ((name, float(value)) for name, value in given.items() if value is not None)
    return Rule("least_cost", tuple(numbers))


@check_call
def max_fpr(fpr: Proportion) -> Rule:
    """Return the rule for the largest tpr with at most this fpr."""
    return Rule("max_fpr", (("fpr", fpr),))


@check_call
def min_tpr(tpr: Proportion) -> Rule:
    """Return the rule for the smallest fpr with at least this tpr."""
    return Rule("min_tpr", (("tpr", tpr),))


@check_call
def max_selection_rate(rate: Proportion) -> Rule:
    """Return the rule for the lowest threshold with at most this selection rate.

    One class is enough.
    """
    return Rule("max_selection_rate", (("rate", rate),))


def expected_optimism(rule: str | None, positives: int) -> float | None:
    """Return the expected loss of tpr on rows that the threshold was not chosen on.

    ``rule`` is the name of a rule, or None if it is unknown. The formulas fit simulations with
    normal scores and 20 to 200 positives; below 10 positives the result is None. With AUC 0.85 and
    three times as many negatives, Youden's index had 0.084, 0.050 and 0.017 with 20, 50 and 200
    positives, and a limit of fpr 0.049, 0.020 and 0.005. From AUC 0.95 to 0.7, and with one to nine
    times as many negatives, Youden's index had 0.066 to 0.107 with 20 positives, a limit of fpr
    0.045 to 0.050.
    """
    if positives < _FEWEST_POSITIVES:
        return None
    if rule in _OPTIMISM:
        return _OPTIMISM[rule] / positives
    return 0.62 * math.pow(positives, -2 / 3)


def read_threshold(
    threshold: Threshold | None, selected: IntoColumn | None = None
) -> float | Rule | None:
    """Return a threshold that is given or chosen by a rule; None without either.

    ``"median"`` is the median of all rows with a label. With recorded decisions (``selected``) no
    threshold may be given; it is then `RECORDED`.
    """
    if selected is not None:
        if threshold is not None:
            msg = (
                "`threshold` must be None with `selected`, which has the decisions; found "
                f"{threshold!r}"
            )
            raise ValueError(msg)
        return RECORDED
    if threshold is None or isinstance(threshold, Rule):
        return threshold
    if isinstance(threshold, str):
        _require_median(threshold)
        return max_selection_rate(0.5)
    refuse_functions(threshold)
    return checks.number("threshold", threshold) + 0.0


def read_decision_threshold(
    score: object, selected: object, threshold: object
) -> float | Literal["median"] | None:
    """Return the threshold of decisions without labels; None for recorded decisions."""
    given = checks.list_given(score=score, selected=selected, threshold=threshold)
    if given not in (["selected"], ["score", "threshold"]):
        rule = "decisions must come from `selected`, or from `score` and `threshold`"
        msg = f"{rule}; found {checks.quote_names(given)}"
        raise ValueError(msg)
    if threshold is None:
        return None
    if threshold == "median" and isinstance(threshold, str):
        return "median"
    return read_number(threshold, "a number or 'median'")


def read_number(threshold: object, kinds: str = "a number") -> float:
    """Return a threshold that is not chosen by a rule; messages name the allowed ``kinds``."""
    if isinstance(threshold, str | Rule):
        msg = (
            f"`threshold` must be {kinds} here; found {threshold!r}: take the number that a rule "
            "chooses from `threshold_metrics`, or pass decisions as `selected`; `audit` and "
            "`group_gaps` take rules"
        )
        raise ValueError(msg)  # noqa: TRY004  (for words too)
    refuse_functions(threshold)
    return checks.number("threshold", threshold) + 0.0


def refuse_functions(threshold: object) -> None:
    """Raise for the function of a rule that was not called."""
    if callable(threshold):
        name = getattr(threshold, "__name__", "")
        called = _shown_call(name if name in __all__ else "youden")
        msg = f"`threshold` must be a rule that is called, as in {called}; found a function"
        raise TypeError(msg)


def _shown_call(name: str) -> str:
    return f"wroc.rules.{name}({SHOWN_OPTIONS.get(name, '')})"


def _require_median(word: str) -> None:
    """Raise for any word but ``"median"``, with the list of rules."""
    if word == "median":
        return
    name = word.lower().replace("-", "_")
    hint = checks.did_you_mean(word, ["median"])
    if name in __all__:
        hint = f"; did you mean {_shown_call(name)}?"
    rule = f"be a number, 'median' or a rule: {', '.join(map(_shown_call, __all__))}"
    checks.reject("threshold", rule, f"{word!r}{hint}")


def _has_both_classes(point: Point[Any]) -> Any:
    return are_both_classes(point.positives, point.negatives)


def _has_rows(point: Point[Any]) -> Any:
    return is_divisor(point.all_rows)


def _least_cost(
    fn: float | None = None, fp: float | None = None, prevalence: float | None = None
) -> Measures:
    """Return the rule of the lowest expected cost, without terms common to all points."""
    costs = read_costs(fn, fp).unit_costs

    def gain(point: Point[Any]) -> Any:
        if prevalence is None:
            return (costs.fn * point.tp - costs.fp * point.fp) / point.all_rows
        return -costs.expected_cost(1 - point.tpr, point.fpr, prevalence)

    return Measures(gain, known=_has_rows if prevalence is None else _has_both_classes)


def _max_fpr(fpr: float) -> Measures:
    return Measures(
        first=lambda point: point.tpr,
        second=lambda point: -point.fpr,
        allowed=lambda point: point.fpr <= fpr + TOLERANCE,
        known=_has_both_classes,
    )


def _min_tpr(tpr: float) -> Measures:
    return Measures(
        first=lambda point: -point.fpr,
        second=lambda point: point.tpr,
        allowed=lambda point: point.tpr >= tpr - TOLERANCE,
        known=_has_both_classes,
    )


def _max_selection_rate(rate: float) -> Measures:
    def find_rate(point: Point[Any]) -> Any:
        return (point.tp + point.fp) / point.all_rows

    return Measures(
        first=find_rate, allowed=lambda p: find_rate(p) <= rate + TOLERANCE, known=_has_rows
    )


_MEASURES: dict[str, Callable[..., Measures]] = {
    "youden": lambda: Measures(lambda at: at.tpr - at.fpr, _has_both_classes),
    "closest_topleft": lambda: Measures(
        lambda at: -(at.fpr**2) - (1 - at.tpr) ** 2, _has_both_classes
    ),
    "max_accuracy": lambda: Measures(lambda at: (at.tp - at.fp) / at.all_rows, _has_rows),
    "least_cost": _least_cost,
    "max_fpr": _max_fpr,
    "min_tpr": _min_tpr,
    "max_selection_rate": _max_selection_rate,
}
# With fewer positives the formulas of the expected optimism do not hold.
_FEWEST_POSITIVES = 10
# Optimism times the number of positives; a limit of the selection rate hardly optimises tpr.
_OPTIMISM = {"max_fpr": 1.0, "min_tpr": 1.0, "max_selection_rate": 0.2}
