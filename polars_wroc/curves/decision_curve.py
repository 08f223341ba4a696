"""Decision curves: the net benefit of selecting by a score, at each threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import polars as pl

from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import IntoColumn, IntoWeight
from polars_wroc.inputs.designs import Design, read_design
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.looks import if_enough
from polars_wroc.inputs.rows import IntoColumns, Rows
from polars_wroc.plans.formulas import Columns, Fields, Formula, Step, in_columns, together
from polars_wroc.plans.queries import FrameT, join_on_keys, like_input
from polars_wroc.ranking.curve import CELLS, SQUARES, curve_frame, ratio
from polars_wroc.ranking.sorting import NEGATIVES, POSITIVES
from polars_wroc.stats.proportions import (
    ROUNDING,
    Estimate,
    WeightedCount,
    credible_correlation,
    difference_limits,
    is_exact,
    limited_rate,
    symmetric_limits,
)
from polars_wroc.stats.variances import design_df, limit_quantile, linear_variances, ratio_influence
from polars_wroc.thresholds.confusion_matrix import ThresholdMetrics
from polars_wroc.thresholds.search import (
    THRESHOLD,
    cell_counts,
    given_thresholds,
    rate_variance,
    unit_cells,
)

_NET, _STANDARDIZED, _ALL = "net_benefit", "standardized_net_benefit", "net_benefit_all"
_AVOIDED = "interventions_avoided"
_VARIANCE = "__variance_of_standardized"
# By a design, of the proportions of both classes that are selected.
_COVARIANCE = "__design_covariance"
# The selected of both classes, of which there are proportions.
_SELECTED = ("tp", "fp")
Parts: TypeAlias = dict[str, tuple[WeightedCount, WeightedCount]]
_COLUMNS = (
    *("threshold", "selection_rate", "prevalence"),
    *(_NET, f"{_NET}_low", f"{_NET}_high", _ALL),
    *(_STANDARDIZED, f"{_STANDARDIZED}_low", f"{_STANDARDIZED}_high"),
    _AVOIDED,
)
_PERCENTS = [percent / 100 for percent in range(1, 100)]


def decision_curve(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    thresholds: float | Sequence[float] | None = None,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    prevalence: float | None = None,
    level: float = 0.95,
    design: Design | None = None,
) -> FrameT:
    """Net benefit of selecting the rows with a score of at least each threshold, per group.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, by, pos_label
        As for `summary`; the score must lie between 0 and 1.
    thresholds
        One or several numbers from 0 to less than 1; None for 0.01 to 0.99 in steps of 0.01.
    prevalence
        Prevalence in the target population, strictly between 0 and 1; None for that of the rows.
    level
        Confidence level of the intervals, from 0.001 to 0.9999, or `Looks`.
    design
        Clusters, a `Survey` or `ReplicateWeights`: see `summary`. Limits then use its variances
        and Student's t; those of the shares are as in `threshold_metrics`.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model) and threshold, sorted by the ``by`` columns, then by rising
        threshold. After the ``by`` columns (and ``model``) come Float64 columns: ``threshold``;
        ``selection_rate``, the proportion of rows selected; ``prevalence``, the proportion of
        positives; ``net_benefit``, in true positives per row, with its limits ``net_benefit_low,
        net_benefit_high``; ``net_benefit_all``, that of selecting all rows (that of selecting none
        is 0); ``standardized_net_benefit``, the net benefit divided by the prevalence, with its
        limits ``standardized_net_benefit_low, standardized_net_benefit_high``; and
        ``interventions_avoided``, the net number of negatives per row that need not be selected,
        compared with selecting all. All but the threshold are null where no row has weight, or
        where sums of weights overflow or underflow; with ``prevalence`` also where a class has no
        weight. The standardized net benefit is null without positives, ``interventions_avoided``
        at a threshold of 0, and limits where squares of the weights overflow or underflow; those
        of the standardized net benefit also where the rows say nothing about its variance, as
        where nobody is selected; and where a design leaves the variances unknown.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for thresholds that are not numbers from 0 to less than 1, for one
        inside a bin of scores and, at collect, for a score that is not between 0 and 1.

    Notes
    -----
    At the threshold ``t`` a false positive counts ``t / (1 - t)`` times as much as a true positive
    [1]_. The limits combine those of the shares of true and of false positives in all rows [3]_,
    which are those of `threshold_metrics`; with ``prevalence`` those of the tpr and the fpr. By a
    design the covariance of both is linearised as their variances are. Of the standardized net
    benefit without ``prevalence`` they are normal or Student's, with its linearised variance.
    They are those of one curve, not of a difference between curves; tests of decision curves are
    advised against [2]_.

    References
    ----------
    .. [1] Vickers, A. J., Elkin, E. B. (2006), Medical Decision Making 26, 565-574.
    .. [2] Vickers, A. J. et al. (2023), Diagnostic and Prognostic Research 7, 11.
    .. [3] Donner, A., Zou, G. Y. (2012), Statistical Methods in Medical Research 21, 347-359.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.4, 0.3, 0.1]})
    >>> curve = wroc.decision_curve(df, "y", "s", thresholds=[0.25, 0.5])
    >>> curve.select("threshold", "net_benefit", "net_benefit_all", "interventions_avoided")
    shape: (2, 4)
    ┌───────────┬─────────────┬─────────────────┬───────────────────────┐
    │ threshold ┆ net_benefit ┆ net_benefit_all ┆ interventions_avoided │
    │ ---       ┆ ---         ┆ ---             ┆ ---                   │
    │ f64       ┆ f64         ┆ f64             ┆ f64                   │
    ╞═══════════╪═════════════╪═════════════════╪═══════════════════════╡
    │ 0.25      ┆ 0.388889    ┆ 0.333333        ┆ 0.166667              │
    │ 0.5       ┆ 0.166667    ┆ 0.0             ┆ 0.166667              │
    └───────────┴─────────────┴─────────────────┴───────────────────────┘
    """
    asked = _PERCENTS if thresholds is None else _checked(thresholds)
    metrics: ThresholdMetrics = ThresholdMetrics(None, prevalence)
    survey = read_design(design)
    read = read_rows(frame, label, score, weight, by, pos_label, survey=survey)
    rows: Rows = read.as_probabilities()
    level = arguments.level(rows.look(level, frame))
    curve = curve_frame(rows, asked, squares=True)
    chosen = curve.filter(pl.col("threshold").is_in(asked)).sort("threshold")
    if survey.given:
        keys = [*rows.keys, "threshold"]
        chosen = join_on_keys(chosen, _design_variances(rows, asked, prevalence), keys)
    limits = _Limits(level, metrics.prevalence, survey.given)
    steps: list[Step] = [*metrics.steps, _benefits, limits.of_net_benefit]
    if prevalence is None:
        steps += [] if survey.given else [_variance]
        steps.append(limits.of_standardized)
    return like_input(frame, rows.result(in_columns(chosen, steps), _COLUMNS))


def _checked(thresholds: object) -> list[float]:
    asked = arguments.numbers("thresholds", thresholds, low=0, high=1)
    if asked[-1] == 1:
        arguments.reject("thresholds", "be less than 1, where the odds are infinite", "1.0")
    return asked


def _odds(field: Fields) -> pl.Expr:
    return field("threshold") / (1 - field("threshold"))


def _benefits(field: Fields) -> dict[str, pl.Expr]:
    """Add the net benefit of selecting all, the standardised one, and interventions avoided."""
    net, prevalence, odds = field(_NET), field("prevalence"), _odds(field)
    of_all = prevalence - odds * (1 - prevalence)
    return {
        _ALL: of_all,
        _STANDARDIZED: pl.when(prevalence > 0).then(net / prevalence),
        _AVOIDED: pl.when(odds > 0).then((net - of_all) / odds),
    }


def _counts(field: Fields, *, of_class: bool) -> Parts:
    """Count the selected of each class, and all other rows or those of the class."""
    (tp, fn), (fp, tn) = (cell_counts(rate, field) for rate in ("tpr", "fpr"))
    return {
        "tp": (tp, fn if of_class else fp + tn + fn),
        "fp": (fp, tn if of_class else tp + fn + tn),
    }


@dataclass(frozen=True)
class _Limits:
    """Limits at a level: of the rows, or of a population that has the ``prevalence``."""

    level: float
    prevalence: float | None
    # With the columns of `_design_variances`.
    designed: bool

    def of_net_benefit(self, field: Fields) -> Formula[Columns]:
        """Add limits from those of both shares of all rows, or in a population of both rates."""
        counts, limited = _counts(field, of_class=self.prevalence is not None), {}
        for name in _SELECTED:
            design = (field(rate_variance(name)), design_df(field)) if self.designed else None
            limited[name] = limited_rate(*counts[name], self.level, design=design)
        rates = yield from together(limited)
        tp, fp = (rates[name].estimate for name in _SELECTED)
        gain, loss, divisors = 1.0, _odds(field), {_NET: 1.0}
        if self.prevalence is not None:
            gain, loss = self.prevalence, (1 - self.prevalence) * loss
            divisors[_STANDARDIZED] = self.prevalence
        related = self._correlation(field, tp.value, fp.value)
        limits = difference_limits(_times(pl.lit(gain), tp), _times(loss, fp), related)
        return {
            f"{name}_{end}": limit / divisor
            for name, divisor in divisors.items()
            for end, limit in limits._asdict().items()
        }

    def _correlation(self, field: Fields, tp: pl.Expr, fp: pl.Expr) -> pl.Expr | None:
        if self.designed:
            variances = (field(rate_variance(name)) for name in _SELECTED)
            return credible_correlation(field(_COVARIANCE), *variances)
        if self.prevalence is not None:
            # The classes are two samples.
            return None
        related = (tp * fp / ((1 - tp) * (1 - fp))).sqrt()
        # The shares of one sample: the more there are of one, the fewer there are of the other.
        return -pl.when(related.is_finite()).then(related).otherwise(0.0)

    def of_standardized(self, field: Fields) -> dict[str, pl.Expr]:
        """Add the limits of the standardised net benefit of the rows."""
        variance = field(_VARIANCE)
        error = pl.when((variance > 0) & variance.is_finite()).then(variance.sqrt())
        quantile = limit_quantile(field, self.level, designed=self.designed)
        rows = [
            one.rows + other.rows for one, other in (cell_counts(r, field) for r in ("tpr", "fpr"))
        ]
        quantile = if_enough(self.level, quantile, *rows)
        return symmetric_limits(field, {_STANDARDIZED: error}, quantile)


def _times(factor: pl.Expr, estimate: Estimate) -> Estimate:
    return Estimate(*(factor * each for each in estimate))


def _variance(field: Fields) -> dict[str, pl.Expr]:
    """Add the variance of the standardised net benefit, from the sums of squares in the cells.

    It is null where it is no more than an error of rounding.
    """
    squares = [field(name) for name in SQUARES]
    net, standardized, prevalence = field(_NET), field(_STANDARDIZED), field("prevalence")
    total = field(POSITIVES) + field(NEGATIVES)
    # Of a row in each of `CELLS`: what it adds to the net benefit, and whether it is positive.
    rows = ((pl.lit(1.0), 1.0), (-_odds(field), 0.0), (pl.lit(0.0), 1.0), (pl.lit(0.0), 0.0))
    variance, size = pl.lit(0.0), pl.lit(0.0)
    for square, (gain, positive) in zip(squares, rows, strict=True):
        value = ratio(gain, total) / prevalence
        expected = ratio(net + standardized * (positive - prevalence), total) / prevalence
        variance += square * (value - expected) ** 2
        size += square * (value**2 + expected**2)
    known = is_exact(pl.sum_horizontal(squares)) & (variance > ROUNDING * size)
    return {_VARIANCE: pl.when(known).then(variance)}


def _design_variances(
    rows: Rows, thresholds: Sequence[float], prevalence: float | None
) -> pl.LazyFrame:
    """Variances by a design, at each threshold, of what the limits rest on."""
    assert rows.design is not None
    keys, design = [*rows.keys, THRESHOLD], rows.design
    units = unit_cells(rows, given_thresholds(thresholds), keys)
    tp, fp, fn, tn = (pl.col(name) for name in CELLS)
    of_rows, positives, negatives = tp + fn + fp + tn, tp + fn, fp + tn
    wholes = (of_rows, of_rows) if prevalence is None else (positives, negatives)

    def influences(*of: pl.Expr) -> list[pl.Expr]:
        return [ratio_influence(*each, keys, design) for each in zip((tp, fp), of, strict=True)]

    columns = dict(zip(_SELECTED, influences(*wholes), strict=True))
    gained, lost = influences(positives, positives)
    columns[_STANDARDIZED] = gained - pl.col(THRESHOLD) / (1 - pl.col(THRESHOLD)) * lost
    products = {rate_variance(name): (name, name) for name in _SELECTED}
    products |= {_COVARIANCE: _SELECTED, _VARIANCE: (_STANDARDIZED, _STANDARDIZED)}
    table = linear_variances(units.with_columns(**columns), keys, design, products)
    return table.rename({THRESHOLD: "threshold"})
