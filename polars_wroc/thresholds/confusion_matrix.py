"""The confusion matrix and its metrics at a threshold, as an expression."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from numbers import Real

import polars as pl

from polars_wroc import checks
from polars_wroc.arrays import TOLERANCE
from polars_wroc.bounds import Prevalence
from polars_wroc.calls import check_call
from polars_wroc.inputs import expressions
from polars_wroc.inputs.columns import SCORE, WEIGHT, IntoColumn, IntoWeight
from polars_wroc.inputs.frames import at_least, is_moved, unless_moved
from polars_wroc.inputs.metric import check_metric
from polars_wroc.inputs.rows import class_weights
from polars_wroc.ranking.curve import CELLS, MOVED, cell, cells_of, ratio
from polars_wroc.ranking.sorting import ENDS_TIE, FP, NEGATIVES, POSITIVES, TP, cumulated_list
from polars_wroc.structs import add_fields, as_struct, element_field, first_fields
from polars_wroc.thresholds.registry import THRESHOLD_METRICS, Confusion
from polars_wroc.thresholds.rules import Point, Rule, refuse_functions

_IN_POPULATION, _MEASURE, _BEST = "__in_population_", "__measure", "__best"

DEFAULT_METRICS = ("selection_rate", "tpr", "fpr", "ppv", "npv", "accuracy", "f1", "mcc")


def read_threshold_metrics(metrics: str | Sequence[str]) -> tuple[str, ...]:
    """Read the names of one or several metrics, or ``"all"``."""
    if metrics == "all":
        return tuple(THRESHOLD_METRICS)
    names = [metrics] if isinstance(metrics, str) else metrics
    if not isinstance(names, Sequence) or not names:
        checks.reject_type("metrics", "be 'all' or names of metrics", metrics)
    for name in names:
        check_metric("metrics", name, THRESHOLD_METRICS)
    # Each once, in the requested order.
    return tuple(dict.fromkeys(names))


@check_call
def confusion_matrix(
    label: IntoColumn,
    score: IntoColumn,
    threshold: float | pl.Expr | Rule,
    *,
    metrics: str | Sequence[str] = DEFAULT_METRICS,
    weight: IntoWeight | None = None,
    pos_label: object = None,
    prevalence: Prevalence | None = None,
) -> pl.Expr:
    """Return the weighted confusion matrix and its metrics at one threshold.

    A row is predicted positive if ``score >= threshold``. Use it inside ``select``,
    ``group_by().agg()`` and ``over``; `threshold_metrics` gives the same metrics with confidence
    limits.

    The main fields are:

    - ``threshold``;
    - the ``metrics``, in the order given;
    - ``tp, fp, fn, tn``: the weight in each cell.

    Parameters
    ----------
    label, score, weight, pos_label
        As for `roc_auc`.
    threshold
        A number, an expression with one value per group, or a rule that chooses one in each group,
        for example ``wroc.rules.max_fpr(0.1)``: see `polars_wroc.rules`.
    metrics
        Names of the metrics, or ``"all"``: ``tpr``, ``fpr``, ``tnr``, ``fnr``, ``ppv``, ``npv``,
        ``selection_rate``, ``accuracy``, ``balanced_accuracy``, ``f1``, ``mcc``, ``youden`` (tpr -
        fpr), ``lift`` (ppv over prevalence), ``prevalence``, ``zero_one_loss``, ``fdr`` (1 - ppv),
        ``for`` (1 - npv, the false omission rate), ``markedness`` (ppv + npv - 1), ``f2``,
        ``jaccard``, ``lr_pos`` (tpr / fpr), ``lr_neg`` (fnr / tnr) and ``net_benefit``, which
        treats the threshold as a probability [1]_ and is null outside [0, 1).
    prevalence
        Prevalence in the population that the metrics are for, strictly between 0 and 1, if the data
        were sampled by class. None takes the prevalence of the rule, if it has one, or of the data.
        The cells always describe the data.

    Returns
    -------
    pl.Expr
        One struct per group, named ``confusion_matrix``, of Float64 fields. A rate whose
        denominator is 0 is null, and so is a cell that overflows. All fields are null for a null or
        NaN threshold, and where a class that the rule needs has no weight.

    Raises
    ------
    TypeError, ValueError
        For an invalid argument, when the expression is built or planned.
    polars.exceptions.InvalidOperationError
        As for `roc_auc`; also for a threshold that varies within a group.

    References
    ----------
    .. [1] Vickers, A. J., Elkin, E. B. (2006), Medical Decision Making 26, 565-574.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1], "w": [1, 2, 1, 1]})
    >>> metrics = ["tpr", "ppv"]
    >>> matrix = wroc.confusion_matrix("y", "s", threshold=0.5, weight="w", metrics=metrics)
    >>> df.select(matrix).item()
    {'threshold': 0.5, 'tpr': 1.0, 'ppv': 0.5, 'tp': 2.0, 'fp': 2.0, 'fn': 0.0, 'tn': 1.0}
    """
    names = read_threshold_metrics(metrics)
    carried = {}
    sum_cells: Callable[[pl.Expr], pl.Expr]
    if isinstance(threshold, Rule):
        sum_cells = partial(_choose_cells, rule=threshold)
        prevalence = threshold.prevalence if prevalence is None else prevalence
    elif isinstance(threshold, pl.Expr):
        carried["__threshold"] = expressions.one_per_group("threshold", threshold)
        sum_cells = partial(_sum_cells, threshold=element_field("__threshold"))
    elif isinstance(threshold, bool) or not isinstance(threshold, Real):
        refuse_functions(threshold)
        rule = "be a number, a Polars expression or a rule, for example wroc.rules.youden()"
        checks.reject_type("threshold", rule, threshold)
    else:
        value = pl.lit(checks.number("threshold", threshold) + 0.0)
        sum_cells = partial(_sum_cells, threshold=value)

    def build(rows: pl.Expr) -> pl.Expr:
        return _measure(sum_cells(rows), names, prevalence)

    matrix = expressions.from_expressions(label, score, weight, pos_label, build, **carried)
    return matrix.alias("confusion_matrix")


def _measure(cells: pl.Expr, metrics: Sequence[str], prevalence: float | None) -> pl.Expr:
    """Return the struct of a matrix and its metrics, given lists of one struct with the cells."""
    names = (*CELLS, POSITIVES, NEGATIVES)
    weights = {name: element_field(name) for name in names}
    if prevalence is not None:
        # Fields, since the metrics use them often.
        cells = add_fields(cells, _weight_classes(weights, prevalence))
        weights = {name: element_field(f"{_IN_POPULATION}{name}") for name in names}
    matrix = Confusion(element_field("threshold"), *weights.values())
    values = {name: THRESHOLD_METRICS[name].formula(matrix) for name in metrics}
    return first_fields(add_fields(cells, values), ["threshold", *metrics, *CELLS])


def _weight_classes(weights: dict[str, pl.Expr], prevalence: float) -> dict[str, pl.Expr]:
    """Return the weights of both classes in a population with a prevalence.

    The total weight stays as it is.
    """
    total = weights[POSITIVES] + weights[NEGATIVES]
    pos = ratio(prevalence * total, weights[POSITIVES])
    neg = ratio((1 - prevalence) * total, weights[NEGATIVES])
    factors = {"tp": pos, "fn": pos, POSITIVES: pos, "fp": neg, "tn": neg, NEGATIVES: neg}
    return {f"{_IN_POPULATION}{name}": weights[name] * factor for name, factor in factors.items()}


def _sum_cells(rows: pl.Expr, *, threshold: pl.Expr) -> pl.Expr:
    """Reduce each list of rows to a list of one struct with the cells; null without threshold."""
    predicted = at_least(element_field(SCORE), threshold)
    positive, negative = class_weights(element_field(WEIGHT))
    # Not a product, since the weight of other cells may be infinite.
    weights = {
        POSITIVES: positive,
        NEGATIVES: negative,
        "tp": pl.when(predicted).then(positive).otherwise(0.0),
        "fp": pl.when(predicted).then(negative).otherwise(0.0),
        "fn": pl.when(~predicted).then(positive).otherwise(0.0),
        "tn": pl.when(~predicted).then(negative).otherwise(0.0),
    }
    known = pl.when(threshold.first().is_not_null())
    sums: dict[str, pl.Expr] = {name: known.then(each.sum()) for name, each in weights.items()}
    sums |= {name: cell(sums[name]) for name in CELLS}
    return rows.list.eval(as_struct({"threshold": threshold.first()} | sums))


def _choose_cells(rows: pl.Expr, *, rule: Rule) -> pl.Expr:
    """Reduce each list of rows to a list of one struct with the cells that a rule chooses."""
    # The score of a row without weight is no threshold.
    weighted = rows.list.eval(pl.element().filter(element_field(WEIGHT) != 0))
    score = element_field(SCORE)
    curve = {
        "threshold": score.cast(pl.Float64),
        "tp": element_field(TP),
        "fp": element_field(FP),
        MOVED: is_moved(score),
    }
    origin = {
        "threshold": pl.lit(math.inf),
        "tp": pl.lit(0.0),
        "fp": pl.lit(0.0),
        MOVED: pl.lit(value=False),
    }
    ends = cumulated_list(weighted, [SCORE]).list.eval(pl.element().filter(element_field(ENDS_TIE)))
    points = ends.list.eval(as_struct(origin).append(as_struct(curve)))
    tp, fp = element_field("tp"), element_field("fp")
    point = Point(tp, fp, positives=tp.last(), negatives=fp.last())
    points = _mark_best(points, rule, point)
    best = element_field(_BEST)
    known = pl.when(best.any())
    positives, negatives = point.positives.max(), point.negatives.max()
    # The highest of the best thresholds, with the fewest selected
    threshold = element_field("threshold").filter(best).max()
    chosen = {
        # The first of the best points has the highest threshold.
        "threshold": unless_moved(threshold, element_field(MOVED).filter(best).first()),
        **cells_of(tp.filter(best).min(), fp.filter(best).min(), positives, negatives),
        POSITIVES: known.then(positives),
        NEGATIVES: known.then(negatives),
    }
    return points.list.eval(as_struct(chosen))


def _mark_best(points: pl.Expr, rule: Rule, point: Point[pl.Expr]) -> pl.Expr:
    """Return whether points are the best of their curve by a rule; null measures are not."""
    measures = rule.measures
    known = measures.known(point)
    if measures.allowed is not None:
        known &= measures.allowed(point)
    measured = add_fields(points, {_MEASURE: pl.when(known).then(measures.first(point))})
    marked = add_fields(measured, {_BEST: _is_best(element_field(_MEASURE))})
    if measures.second is None:
        return marked
    second = pl.when(element_field(_BEST)).then(measures.second(point))
    measured = add_fields(marked, {_MEASURE: second})
    return add_fields(measured, {_BEST: _is_best(element_field(_MEASURE))})


def _is_best(measure: pl.Expr) -> pl.Expr:
    """Return whether a point is one of the best, up to rounding."""
    return (measure >= measure.max() - TOLERANCE).fill_null(value=False)
