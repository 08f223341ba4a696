"""The threshold chosen by a rule, with the metrics at it."""

from __future__ import annotations

from functools import partial

import polars as pl

from polars_wroc.inputs import arguments
from polars_wroc.inputs.arguments import WeightType
from polars_wroc.inputs.columns import IntoColumn
from polars_wroc.inputs.expressions import from_expressions
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.rows import IntoColumns, Rows
from polars_wroc.plans.collect import FrameT, like_input
from polars_wroc.plans.steps import in_columns, in_struct
from polars_wroc.thresholds.confusion_metrics import Honest, ThresholdMetrics
from polars_wroc.thresholds.honest import Choice, HonestRates
from polars_wroc.thresholds.rules import Criterion, Rule, choose_rule
from polars_wroc.thresholds.search import (
    choose_in_list,
    choose_threshold,
    common_threshold,
    confusion_at,
    thresholds_of,
)


def operating_point(
    label: IntoColumn,
    score: IntoColumn,
    *,
    criterion: Criterion | None = None,
    cost_fn: float | None = None,
    cost_fp: float | None = None,
    prevalence: float | None = None,
    max_fpr: float | None = None,
    min_tpr: float | None = None,
    max_selection_rate: float | None = None,
    weight: IntoColumn | None = None,
    pos_label: object = None,
) -> pl.Expr:
    """Threshold chosen by a rule, with the metrics at it.

    Parameters
    ----------
    label, score, weight, pos_label
        As for `roc_auc`.
    criterion
        ``"youden"``: largest tpr - fpr. ``"closest_topleft"``: closest to (0, 1), which has no
        basis in decision theory. ``"accuracy"``: least weight of errors. ``"cost"``: lowest
        expected cost, with ``cost_fn`` and ``cost_fp``.
    cost_fn, cost_fp
        Costs of a false negative and of a false positive; only their ratio matters. If only one
        is given, it must be between 0 and 1, and the other is 1 minus it.
    prevalence
        Prevalence in the population that the decision is for, with ``criterion="cost"`` only; the
        metrics are then those of that population too. None takes the prevalence of the data.
    max_fpr, min_tpr, max_selection_rate
        Instead of a criterion: the largest tpr with at most this fpr, the smallest fpr with
        at least this tpr, or the lowest threshold with at most this selection rate. Of points with
        the same tpr the one with the smaller fpr is taken, and of those with the same fpr the one
        with the larger tpr; of equal points that of the highest threshold.

    Returns
    -------
    pl.Expr
        One struct per group, named ``operating_point``, with the fields of
        `confusion_matrix`. Of equally good thresholds it is the highest, and +inf where
        predicting nothing positive is best. All fields are null where a class has no weight;
        ``"accuracy"``, ``max_selection_rate`` and the cost without ``prevalence`` need only one
        class.

    Raises
    ------
    ValueError
        Unless exactly one rule is given, or for a cost or rate out of range; else as for
        `roc_auc`.

    Notes
    -----
    The metrics of a threshold are optimistic on the rows that it was chosen on. With normal
    scores of AUC 0.85 and three negatives for each positive, expect about 0.08 (20 positives),
    0.05 (50) or 0.02 (200) less tpr on other rows at the threshold of ``criterion="youden"``, and
    0.05, 0.02 or 0.005 less with ``max_fpr=0.1``. With ``max_fpr`` the limit holds for the rows
    at hand: on other rows fpr exceeds it in 41 to 45 % of such samples. `operating_points`
    estimates the rates on other rows with ``honest="bootstrap"``.

    All thresholds are searched, including the one that predicts nothing positive [1]_ [2]_.

    References
    ----------
    .. [1] Youden, W. J. (1950), Cancer 3, 32-35.
    .. [2] Metz, C. E. (1978), Seminars in Nuclear Medicine 8, 283-298.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> point = df.select(wroc.operating_point("y", "s", max_fpr=0.5)).unnest("operating_point")
    >>> point.select("threshold", "tpr", "fpr")
    shape: (1, 3)
    ┌───────────┬─────┬─────┐
    │ threshold ┆ tpr ┆ fpr │
    │ ---       ┆ --- ┆ --- │
    │ f64       ┆ f64 ┆ f64 │
    ╞═══════════╪═════╪═════╡
    │ 0.7       ┆ 1.0 ┆ 0.5 │
    └───────────┴─────┴─────┘
    """
    rule = choose_rule(
        criterion,
        cost_fn=cost_fn,
        cost_fp=cost_fp,
        prevalence=prevalence,
        max_fpr=max_fpr,
        min_tpr=min_tpr,
        max_selection_rate=max_selection_rate,
    )
    metrics = ThresholdMetrics(level=None, weight_type="probability", prevalence=prevalence)
    build = partial(_point, rule=rule, metrics=metrics)
    return from_expressions(label, score, weight, pos_label, build).alias("operating_point")


def operating_points(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    criterion: Criterion | None = None,
    cost_fn: float | None = None,
    cost_fp: float | None = None,
    prevalence: float | None = None,
    max_fpr: float | None = None,
    min_tpr: float | None = None,
    max_selection_rate: float | None = None,
    common: bool = False,
    weight: IntoColumn | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    level: float | None = None,
    weight_type: WeightType = "probability",
    honest: Honest | None = None,
    resamples: int = 200,
    seed: int = 0,
) -> FrameT:
    """Threshold chosen by a rule per group, or one for all groups, with the metrics at it.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, by, pos_label
        As for `summary`.
    criterion, cost_fn, cost_fp, prevalence, max_fpr, min_tpr, max_selection_rate
        The rule: see `operating_point`.
    common
        Choose one threshold on all rows, for each score, and measure every group at it.
    level, weight_type
        For confidence intervals of the rates, which treat the threshold as given: see
        `confusion_matrix`.
    honest
        None: the rates on the rows that the threshold was chosen on, which are optimistic. The
        others estimate the rates on other rows. ``"bootstrap"``: the rates of the chosen
        threshold, from which most of the optimism is subtracted, with intervals around them.
        ``"crossfit"``: those of the rule, when it chooses on other rows than are measured; without
        intervals (all limits are null), since these would not hold for the chosen threshold.
    resamples
        Number of resamples, 1 or more, for ``honest="bootstrap"``.
    seed
        Seed of the resamples and of the folds. Results repeat with the same seed and version of
        Polars, on both engines and in any order of the rows.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model), sorted by the ``by`` columns. After them come the columns
        of `threshold_metrics`. They are null where no threshold satisfies the rule. With
        ``honest`` the threshold, the cells and the prevalence stay those of the data, and a metric
        is null also if no resample or fold defines it.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary` and `operating_point`; also for an unknown option.

    Notes
    -----
    `operating_point` says how large the optimism is. The bootstrap [1]_ chooses the threshold
    again on each resample and subtracts the mean of (rate on the resample - rate on the data),
    both at the threshold of the resample, from tpr, fpr, ppv and npv, and clips the result to
    0 and 1. In simulations with 20 to 200 positives this removed 60 to 80 % of the bias of tpr, and
    95 % intervals, Wilson's around these rates with the effective sample sizes of the data, held
    the true tpr and fpr in 92 to 97 % of the samples (without ``honest`` tpr in 90 to 96 %). It
    corrects the rates, not the choice: with ``max_fpr`` the true fpr still exceeds the limit as
    often, and the corrected fpr may be above it.

    In a resample a Poisson variable of mean 1 multiplies the weight of each row, as in `bootstrap`
    without ``cluster``, and each class of each group keeps its total weight. A group of which no
    row of a class is drawn is left out of that resample. ``"crossfit"`` has ten folds, by a hash of
    the row; the cells that are measured in each, at the threshold chosen on the other nine, are
    added up. Folds in which no threshold satisfies the rule are left out.

    The other metrics follow from these rates: fnr, tnr, fdr, ``for`` and the zero-one loss are
    complements, selection rate and accuracy are means of tpr, fpr and tnr by the weights of the
    classes, and the rest are the formulas of `confusion_matrix`. With ``prevalence`` the predictive
    values follow from tpr and fpr, too.

    For a LazyFrame all resamples are one query, whose memory grows by some 50 bytes per row and
    resample; for a DataFrame they are computed a million rows at a time.

    References
    ----------
    .. [1] Efron, B. (1983), Journal of the American Statistical Association 78, 316-331.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame(
    ...     {
    ...         "g": ["a"] * 4 + ["b"] * 4,
    ...         "y": [1, 0, 1, 0, 1, 1, 0, 0],
    ...         "s": [0.9, 0.8, 0.7, 0.1, 0.6, 0.5, 0.4, 0.3],
    ...     }
    ... )
    >>> points = wroc.operating_points(df, "y", "s", by="g", criterion="youden")
    >>> points.select("g", "threshold", "tpr", "fpr")
    shape: (2, 4)
    ┌─────┬───────────┬─────┬─────┐
    │ g   ┆ threshold ┆ tpr ┆ fpr │
    │ --- ┆ ---       ┆ --- ┆ --- │
    │ str ┆ f64       ┆ f64 ┆ f64 │
    ╞═════╪═══════════╪═════╪═════╡
    │ a   ┆ 0.9       ┆ 0.5 ┆ 0.0 │
    │ b   ┆ 0.5       ┆ 1.0 ┆ 0.0 │
    └─────┴───────────┴─────┴─────┘
    """
    rule = choose_rule(
        criterion,
        cost_fn=cost_fn,
        cost_fp=cost_fp,
        prevalence=prevalence,
        max_fpr=max_fpr,
        min_tpr=min_tpr,
        max_selection_rate=max_selection_rate,
    )
    arguments.flag("common", common)
    resamples = arguments.whole_number("resamples", resamples, low=1)
    seed = arguments.whole_number("seed", seed, low=0)
    metrics = ThresholdMetrics(level, weight_type, prevalence, honest)
    rows: Rows
    rows = read_rows(frame, label, score, weight, by, pos_label, each_a_cluster=honest is not None)
    if common:
        cells = confusion_at(rows, common_threshold(rows, rule))
    else:
        cells = choose_threshold(rows, rule)
        if level is not None:
            cells = confusion_at(rows, thresholds_of(cells, rows.keys))
    if honest is not None:
        height = frame.height if isinstance(frame, pl.DataFrame) else None
        estimates = HonestRates(rows, Choice(rule, common), seed, height)
        cells = (
            estimates.by_bootstrap(cells, resamples)
            if honest == "bootstrap"
            else estimates.by_crossfit(cells)
        )
    table = in_columns(cells, metrics.steps)
    return like_input(frame, rows.result(table, metrics.columns))


def _point(rows: pl.Expr, *, rule: Rule, metrics: ThresholdMetrics) -> pl.Expr:
    return in_struct(choose_in_list(rows, rule), metrics.steps, metrics.columns)
