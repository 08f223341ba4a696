"""The confusion matrix and its metrics at a threshold, as an expression."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real

import polars as pl

from polars_wroc.inputs import arguments, expressions
from polars_wroc.inputs.arguments import target_prevalence
from polars_wroc.inputs.columns import SCORE, WEIGHT, IntoColumn, IntoWeight
from polars_wroc.inputs.frames import at_least
from polars_wroc.inputs.rows import class_weights
from polars_wroc.plans.formulas import (
    Columns,
    Fields,
    Formula,
    Step,
    as_struct,
    in_struct,
    kept,
    together,
)
from polars_wroc.ranking.curve import CELLS, ratio
from polars_wroc.ranking.sorting import NEGATIVES, POSITIVES
from polars_wroc.stats.proportions import Limits, Proportion, limited_rate
from polars_wroc.stats.variances import design_df
from polars_wroc.thresholds.metric_limits import matrix_of
from polars_wroc.thresholds.registry import COMPLEMENTS, RATES, THRESHOLD_METRICS
from polars_wroc.thresholds.rules import Rule
from polars_wroc.thresholds.search import cell_counts, cell_sums, choose_in_list, rate_variance

DEFAULT_METRICS = ("selection_rate", "tpr", "fpr", "ppv", "npv", "accuracy", "f1", "mcc")


def read_metrics(metrics: str | Sequence[str]) -> tuple[str, ...]:
    """Read the names of one or several metrics, or ``"all"``."""
    if metrics == "all":
        return tuple(THRESHOLD_METRICS)
    names = [metrics] if isinstance(metrics, str) else metrics
    if not isinstance(names, Sequence) or not names:
        arguments.reject_type("metrics", "be 'all' or names of metrics", metrics)
    for name in names:
        if name not in THRESHOLD_METRICS:
            hint = arguments.did_you_mean(str(name), THRESHOLD_METRICS)
            msg = f"`metrics` must be out of {', '.join(THRESHOLD_METRICS)}; found {name!r}{hint}"
            raise ValueError(msg)
    # Each once, in the order that is asked for.
    return tuple(dict.fromkeys(names))


@dataclass(frozen=True)
class ThresholdMetrics:
    """Options of the metrics: with a level rates have confidence intervals.

    They come from the fields threshold, tp, fp, fn and tn, `POSITIVES` and `NEGATIVES`, and
    `SQUARES` and `ROWS` for intervals. With a ``prevalence`` they are those of a population that
    has it, as if the classes had been weighted to it; the cells remain those of the data.
    """

    level: float | None
    prevalence: float | None = None
    # With the columns of `metric_variances` for the metrics that are shown.
    designed: bool = False
    shown: Sequence[str] = tuple(THRESHOLD_METRICS)

    def __post_init__(self) -> None:
        """Check the options."""
        if self.level is not None:
            arguments.hold(self, level=arguments.level(self.level))
        arguments.hold(self, prevalence=target_prevalence(self.prevalence))

    @property
    def columns(self) -> tuple[str, ...]:
        """The threshold, the cells, and the metrics that are shown, rates with their limits."""
        ends = ("", "_low", "_high") if self.level is not None else ("",)
        metrics = (
            f"{name}{end}" for name in self.shown for end in (ends if name in RATES else ("",))
        )
        return ("threshold", *CELLS, *metrics)

    @property
    def steps(self) -> list[Step]:
        """Steps from cells to metrics."""
        return [self._measured]

    def _measured(self, field: Fields) -> Formula[Columns]:
        known = {name: field(name) for name in (POSITIVES, NEGATIVES, *CELLS)}
        target = yield from kept(self._in_population(known))
        confusion = matrix_of(field("threshold"), target)
        metrics = yield from kept(
            {name: metric.formula(confusion) for name, metric in THRESHOLD_METRICS.items()}
        )
        if self.level is None:
            return metrics
        limited: dict[str, Formula[Proportion]] = {}
        rates = [name for name in RATES if name in self.shown]
        for name in dict.fromkeys(COMPLEMENTS.get(name, name) for name in rates):
            design = (field(rate_variance(name)), design_df(field)) if self.designed else None
            limited[name] = limited_rate(*cell_counts(name, field), self.level, design=design)
        found = yield from together(limited)
        limits: dict[str, Proportion | Limits] = dict(found)
        for name in rates:
            if (base := COMPLEMENTS.get(name)) in found:
                limits[name] = Limits(1 - found[base].high, 1 - found[base].low)
        for name, each in limits.items():
            metrics |= {f"{name}_low": each.low, f"{name}_high": each.high}
        for name, rate in found.items():
            metrics |= rate.columns(name)
        return metrics

    def _in_population(self, cells: Columns) -> Columns:
        """Weight both classes to the prevalence, without changing the total weight."""
        pos = neg = pl.lit(1.0)
        if self.prevalence is not None:
            total = cells[POSITIVES] + cells[NEGATIVES]
            pos = ratio(self.prevalence * total, cells[POSITIVES])
            neg = ratio((1 - self.prevalence) * total, cells[NEGATIVES])
        factors = dict(zip((POSITIVES, NEGATIVES, *CELLS), (pos, neg) * 3, strict=True))
        return {name: cells[name] * factor for name, factor in factors.items()}


def confusion_matrix(
    label: IntoColumn,
    score: IntoColumn,
    threshold: float | pl.Expr | Rule,
    *,
    metrics: str | Sequence[str] = DEFAULT_METRICS,
    weight: IntoWeight | None = None,
    pos_label: object = None,
    prevalence: float | None = None,
) -> pl.Expr:
    """Weighted confusion matrix and its metrics at one threshold.

    A row is predicted positive when ``score >= threshold``. Only a rule sorts the rows.

    Parameters
    ----------
    label
        Column name or expression: Boolean, 0 and 1, -1 and 1, or anything with ``pos_label``.
    score
        Column name or numeric expression; higher means more likely positive.
    threshold
        A number, an expression with one value per group, or a rule that chooses one in each group,
        such as ``wroc.rules.max_fpr(0.1)``: see `polars_wroc.rules`. All fields are null where a
        class that the rule needs has no weight.
    metrics
        Names of the metrics, in this order, or ``"all"``: ``tpr``, ``fpr``, ``tnr``, ``fnr``,
        ``ppv``, ``npv``, ``selection_rate``, ``accuracy``, ``balanced_accuracy``, ``f1``, ``mcc``,
        ``youden`` (tpr - fpr), ``lift`` (ppv over prevalence), ``prevalence``, ``zero_one_loss``,
        ``fdr`` (1 - ppv), ``for`` (1 - npv, the false omission rate), ``markedness`` (ppv + npv -
        1), ``f2``, ``jaccard``, ``lr_pos`` (tpr / fpr), ``lr_neg`` (fnr / tnr) and ``net_benefit``,
        which treats the threshold as a probability [1]_ and is null for one outside [0, 1).
    weight
        Column name or expression of the row weights, zero or more; None counts rows.
    pos_label
        The positive value of a label that is not Boolean, 0/1 or -1/1.
    prevalence
        Prevalence in the population that the metrics are for, strictly between 0 and 1, if the
        data were sampled by class; None takes the prevalence of the data, or that of the rule. The
        cells remain those of the data.

    Returns
    -------
    pl.Expr
        One struct per group, named ``confusion_matrix``, of Float64 fields: ``threshold``;
        the weights ``tp``, ``fp``, ``fn``, ``tn``, null where they overflow; and the ``metrics``,
        of which `threshold_metrics` has confidence intervals. A rate whose denominator is 0 is
        null; with a null or NaN threshold all fields are null. Rows with a null label, score or
        weight or a NaN score are left out.

    Raises
    ------
    TypeError, ValueError
        For an invalid argument, when the expression is built or planned.
    polars.exceptions.InvalidOperationError
        At collect, for invalid labels or weights or a threshold that varies within a group.

    References
    ----------
    .. [1] Vickers, A. J., Elkin, E. B. (2006), Medical Decision Making 26, 565-574.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1], "w": [1, 2, 1, 1]})
    >>> matrix = df.select(wroc.confusion_matrix("y", "s", threshold=0.5, weight="w"))
    >>> matrix.unnest("confusion_matrix").select("tp", "fp", "fn", "tn", "ppv")
    shape: (1, 5)
    ┌─────┬─────┬─────┬─────┬─────┐
    │ tp  ┆ fp  ┆ fn  ┆ tn  ┆ ppv │
    │ --- ┆ --- ┆ --- ┆ --- ┆ --- │
    │ f64 ┆ f64 ┆ f64 ┆ f64 ┆ f64 │
    ╞═════╪═════╪═════╪═════╪═════╡
    │ 2.0 ┆ 2.0 ┆ 0.0 ┆ 1.0 ┆ 0.5 │
    └─────┴─────┴─────┴─────┴─────┘
    """
    if isinstance(threshold, Rule) and prevalence is None:
        prevalence = threshold.prevalence
    at = ThresholdMetrics(None, prevalence, shown=read_metrics(metrics))
    carried = {}
    build: Callable[..., pl.Expr]
    if isinstance(threshold, Rule):
        build = partial(_at_chosen, rule=threshold, metrics=at)
    else:
        if isinstance(threshold, pl.Expr):
            carried["__threshold"] = expressions.one_per_group("threshold", threshold)
            value = pl.element().struct.field("__threshold")
        elif isinstance(threshold, bool) or not isinstance(threshold, Real):
            rule = "be a number, a Polars expression or a rule, such as wroc.rules.youden()"
            arguments.reject_type("threshold", rule, threshold)
        else:
            value = pl.lit(arguments.number("threshold", threshold) + 0.0)
        build = partial(_matrix, threshold=value, metrics=at)
    matrix = expressions.from_expressions(label, score, weight, pos_label, build, **carried)
    return matrix.alias("confusion_matrix")


def _at_chosen(rows: pl.Expr, *, rule: Rule, metrics: ThresholdMetrics) -> pl.Expr:
    return in_struct(choose_in_list(rows, rule), metrics.steps, metrics.columns)


def _matrix(rows: pl.Expr, *, threshold: pl.Expr, metrics: ThresholdMetrics) -> pl.Expr:
    """Sum the four cells of each list of rows and derive the metrics from the sums."""
    field = pl.element().struct.field
    predicted = at_least(field(SCORE), threshold)
    sums = cell_sums(class_weights(field(WEIGHT)), predicted, threshold)
    matrix = rows.list.eval(as_struct({"threshold": threshold.first()} | sums))
    return in_struct(matrix, metrics.steps, metrics.columns)
