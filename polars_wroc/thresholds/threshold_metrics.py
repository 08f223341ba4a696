"""Confusion matrices and their metrics at thresholds that are given or chosen by a rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import polars as pl

from polars_wroc import checks
from polars_wroc.arrays import Array, Ints
from polars_wroc.bounds import MinRows, PositiveInt, Prevalence, Seed
from polars_wroc.calls import check_call
from polars_wroc.inputs.columns import MODEL, IntoColumn, IntoWeight, refuse_frequency
from polars_wroc.inputs.decisions import score_or_decisions
from polars_wroc.inputs.designs import Design, read_design
from polars_wroc.inputs.reasons import EVERYBODY, FEW_EVENTS, NOBODY, few_rows
from polars_wroc.inputs.rows import IntoColumns, read_source
from polars_wroc.looks import ConfidenceLevel
from polars_wroc.queries import FrameT
from polars_wroc.ranking.curve import CELLS, ratio
from polars_wroc.rows import Rows, check_level, read_columns, table_of
from polars_wroc.stats.estimates import Limits
from polars_wroc.stats.levels import Level
from polars_wroc.steps import SegmentRows
from polars_wroc.thresholds.cells import (
    split_segments,
    sum_cells_at,
    sum_cells_at_each,
    sum_decided_cells,
)
from polars_wroc.thresholds.choice import Thresholds, choose_per_group, trace_curves
from polars_wroc.thresholds.confusion_matrix import DEFAULT_METRICS, read_threshold_metrics
from polars_wroc.thresholds.honest import Honest, HonestRates, number_rows
from polars_wroc.thresholds.limits import DecidedRows, limit_metrics, measure_metrics
from polars_wroc.thresholds.registry import RATES
from polars_wroc.thresholds.rules import Rule, Threshold, read_threshold, refuse_functions

COST, _REASON = "expected_cost", "reason"
_NO_THRESHOLD = "no threshold"
# The number of a row's score, in the order of the call.
_PLACE = "__place"
# Metrics of so many points are computed together, since their arrays fit into the caches.
_POINTS_AT_ONCE = 8192
_NOT_HONEST = (
    "with `honest`, which draws single rows: choose the threshold on some of the sampling units, "
    "and give it to `threshold_metrics` with the others"
)


@check_call
def threshold_metrics(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns | None = None,
    *,
    threshold: Threshold | Sequence[float] | None = None,
    selected: IntoColumn | None = None,
    metrics: str | Sequence[str] = DEFAULT_METRICS,
    per_group: bool = False,
    min_rows: MinRows = 30,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    prevalence: Prevalence | None = None,
    level: ConfidenceLevel | None = 0.95,
    design: Design | None = None,
    honest: Honest | None = None,
    resamples: PositiveInt = 200,
    seed: Seed = 0,
) -> FrameT:
    """Return rates and other metrics at thresholds, with confidence limits, per group.

    Use it at given thresholds, at a threshold that a rule chooses, or for recorded decisions. Rows
    with a score of at least the threshold are selected. Rates at a threshold chosen from the same
    rows are optimistic; ``honest`` corrects them.

    The main columns are:

    - the ``by`` columns (and ``model``), and ``threshold``;
    - each metric, for example ``tpr``, with its limits ``tpr_low, tpr_high``;
    - ``tp, fp, fn, tn``: the weight in each cell of the confusion matrix;
    - ``expected_cost``: for a rule with costs, ``cost of fn * share of fn + cost of fp * share of
      fp``;
    - ``reason``: why rates are uncertain or missing, for example ``"nobody is selected"`` or, with
      weights, ``"few effective events: tpr, npv"``.

    Parameters
    ----------
    frame, label, score, weight, by, pos_label
        As for `summary`. Rows without a label are left out, also of the selection rate:
        `impact_ratios` and `group_gaps` have the selection rates of all rows.
    threshold
        One or several numbers, converted to the type of the score; ``"median"``, of all rows; or a
        rule, for example ``wroc.rules.max_fpr(0.1)``: see `polars_wroc.rules`. None: a curve, with
        a row at +inf and at every distinct score.
    selected
        Instead of ``threshold``: recorded decisions, as for `group_gaps`. Rows without a score, if
        one is given, are left out too.
    metrics
        Names of the metrics, or ``"all"``: see `confusion_matrix`.
    per_group
        True: a rule chooses a threshold for each group. False: one threshold for all groups.
    min_rows
        Groups with fewer rows of a class have a ``reason``, but are not left out.
    prevalence
        Prevalence in the target population: see `confusion_matrix`. By default that of a rule with
        a prevalence.
    level
        Level of the confidence intervals, or `Looks`; None for no intervals. Without ``honest``,
        intervals treat the threshold as given.
    design
        As for `summary`. It needs a ``level``, and a ``threshold`` or ``selected``, and cannot be
        combined with ``prevalence``.
    honest
        Estimate the metrics on rows other than the ones from which the rule chose. ``"bootstrap"``
        subtracts most of the optimism from the metrics at the chosen threshold, with intervals.
        ``"crossfit"`` chooses from some folds and measures on the others. Both
        draw single rows and take no ``design``.
    resamples
        Number of resamples, 1 or more, for ``honest="bootstrap"``.
    seed
        Seed of the resamples and folds.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group and threshold, sorted by the ``by`` columns, then by descending threshold.
        A rule gives one row per group, and so do recorded decisions, whose ``threshold`` is null.
        Numbers are Float64; ``reason`` is null at all points of a curve.

        A metric and its limits are null if the denominator is 0, and all numbers if no threshold
        satisfies the rule; limits also if the variance is unknown, and with ``"crossfit"``.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for both ``threshold`` and ``selected``, and for ``per_group`` or
        ``honest`` without a rule.

    Notes
    -----
    Proportions have Wilson's intervals [1]_, with effective sample sizes if there are weights;
    other metrics use the delta method [2]_. The bootstrap [3]_ corrects the rates, not the choice:
    with ``max_fpr`` the true fpr exceeds the limit as often as before.
    [Formulas](../explanation/statistics.md#threshold_metrics).

    References
    ----------
    .. [1] Wilson, E. B. (1927), Journal of the American Statistical Association 22, 209-212.
    .. [2] Agresti, A. (1999), Biometrics 55, 597-602.
    .. [3] Efron, B. (1983), Journal of the American Statistical Association 78, 316-331.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> loans = wroc.data.loans()
    >>> table = wroc.threshold_metrics(loans, "approved", "score", threshold=0.5, by="race")
    >>> table.select("race", pl.col("tpr", "tpr_low", "tpr_high", "fpr").round(3))
    shape: (3, 5)
    ┌──────────┬───────┬─────────┬──────────┬───────┐
    │ race     ┆ tpr   ┆ tpr_low ┆ tpr_high ┆ fpr   │
    │ ---      ┆ ---   ┆ ---     ┆ ---      ┆ ---   │
    │ str      ┆ f64   ┆ f64     ┆ f64      ┆ f64   │
    ╞══════════╪═══════╪═════════╪══════════╪═══════╡
    │ black    ┆ 0.947 ┆ 0.895   ┆ 0.974    ┆ 0.734 │
    │ hispanic ┆ 1.0   ┆ 0.957   ┆ 1.0      ┆ 0.885 │
    │ white    ┆ 0.987 ┆ 0.98    ┆ 0.992    ┆ 0.896 │
    └──────────┴───────┴─────────┴──────────┴───────┘

    A rule chooses a threshold for each group:

    >>> rule = wroc.rules.max_fpr(0.1)
    >>> options = {"threshold": rule, "per_group": True, "by": "race"}
    >>> points = wroc.threshold_metrics(loans, "approved", "score", **options)
    >>> points["threshold"].round(3).to_list()
    [0.921, 0.915, 0.947]
    """
    given = read_design(design)
    decisions = _read_decisions(threshold, selected, per_group=per_group)
    shown = read_threshold_metrics(metrics)
    honest_rates = None
    if honest is not None:
        rule = _require_rule(decisions, "honest", honest)
        given.require_none(_NOT_HONEST)
        refuse_frequency(weight, "with `honest`, which draws rows")
        honest_rates = HonestRates(rule, honest, resamples, seed, per_group=per_group)
    if prevalence is None and decisions.rule is not None:
        prevalence = decisions.rule.prevalence
    if given.is_given:
        _check_design(decisions, threshold=threshold, selected=selected, level=level)
        if prevalence is not None:
            checks.reject("prevalence", "not be given with a design, nor by a rule", prevalence)
    source = read_source(frame)
    score = score_or_decisions(source, score, selected)
    columns = read_columns(
        source,
        label,
        score,
        weight=weight,
        by=by,
        pos_label=pos_label,
        design=design,
        selected=selected,
    )
    level = None if level is None else check_level(level, source)
    plan = _Plan(
        columns.keys, columns.models, decisions, shown, level, prevalence, honest_rates, min_rows
    )
    schema = columns.schema(dict.fromkeys(plan.names, pl.Float64()) | {_REASON: pl.String()})
    columns = columns.group_by_model()
    return table_of(frame, columns, schema, partial(_measure, plan=plan))


@dataclass(frozen=True)
class _Decisions:
    """The decisions on rows: by descending thresholds, by a rule, or recorded ones.

    Without any of these, every score is a threshold.
    """

    thresholds: Array
    rule: Rule | None
    per_group: bool
    recorded: bool

    @property
    def at_every_score(self) -> bool:
        """Whether each score is a threshold."""
        return self.rule is None and not self.recorded and not len(self.thresholds)


@dataclass(frozen=True)
class _Plan:
    """The computation for the rows of a call, for each of its scores, in groups by ``keys``."""

    keys: Sequence[str]
    models: Sequence[str]
    decisions: _Decisions
    metrics: Sequence[str]
    level: ConfidenceLevel | None
    prevalence: float | None
    honest: HonestRates | None
    min_rows: int

    @property
    def has_limits(self) -> bool:
        """Whether metrics have limits: ``"crossfit"`` leaves their columns null."""
        crossfits = self.honest is not None and self.honest.honest == "crossfit"
        return self.level is not None and not crossfits

    @property
    def names(self) -> list[str]:
        """The columns of numbers after the group."""
        ends = ("",) if self.level is None else ("", "_low", "_high")
        names = ["threshold", *(f"{name}{end}" for name in self.metrics for end in ends), *CELLS]
        rule = self.decisions.rule
        return names if rule is None or rule.costs is None else [*names, COST]


def _read_decisions(threshold: object, selected: object, *, per_group: bool) -> _Decisions:
    """Return the decisions of a call: thresholds, a rule or recorded decisions."""
    thresholds: list[float] = []
    rule: Rule | None = None
    if threshold is None or selected is not None or isinstance(threshold, str | Rule):
        choice = read_threshold(threshold, selected)  # type: ignore[arg-type]
        rule = choice if isinstance(choice, Rule) else None
    else:
        refuse_functions(threshold)
        thresholds = checks.numbers("threshold", threshold)
    decisions = _Decisions(np.array(thresholds[::-1]), rule, per_group, selected is not None)
    if per_group:
        _require_rule(decisions, "per_group", per_group)
    return decisions


def _require_rule(decisions: _Decisions, argument: str, value: object) -> Rule:
    """Return the rule that chooses thresholds, for an argument that needs one."""
    if decisions.rule is None:
        rule = "come with a rule as `threshold`, for example wroc.rules.youden()"
        checks.reject(argument, rule, f"{value!r} without one")
    return decisions.rule


def _check_design(
    decisions: _Decisions, *, threshold: object, selected: object, level: object
) -> None:
    """Raise for a design without limits, or with the limits of a curve."""
    if decisions.at_every_score or level is None:
        given = checks.list_given(threshold=threshold, selected=selected, level=level)
        msg = (
            "`threshold` and `level` must be given (or `selected` and `level`) with a `design`; "
            f"found {checks.quote_names(given)}"
        )
        raise ValueError(msg)


def _measure(rows: Rows, plan: _Plan) -> pl.DataFrame:
    """Return the table of metrics."""
    level = None
    if plan.level is not None:
        largest = max(_split_models(rows, plan), key=lambda each: each[1].count_complete())
        level = largest[1].level(plan.level)
    numbers = None if plan.honest is None else number_rows(rows)
    tables = []
    for place, (model, own) in enumerate(_split_models(rows, plan)):
        segments = own.segments(plan.keys, model if model in own.scores else None)
        for segment, decided in _decide(own, segments, plan):
            honest = None
            if plan.honest is not None and numbers is not None:
                honest = plan.honest.estimate(segments, numbers[segments.order], decided.cells)
            points = _measure_points(replace(decided, honest=honest), plan, level)
            named = points.with_columns(pl.lit(model).alias(MODEL), pl.lit(place).alias(_PLACE))
            groups = segments.segments
            tables.append(named.hstack(groups[segment]) if groups.width else named)
    table = pl.concat(tables)
    if len(tables) > 1:
        table = table.sort(*plan.keys, _PLACE, maintain_order=True)
    return table


def _split_models(rows: Rows, plan: _Plan) -> Iterator[tuple[str, Rows]]:
    """Yield the name of each score with its rows, which are all rows unless they are counted."""
    for model in plan.models:
        if MODEL in rows.keys.columns:
            yield model, rows.at((rows.keys[MODEL] == model).to_numpy())
        else:
            yield model, rows


def _decide(rows: Rows, segments: SegmentRows, plan: _Plan) -> Iterator[tuple[Ints, DecidedRows]]:
    """Yield the number of the segment of each confusion matrix, and the matrices."""
    decisions, sample = plan.decisions, rows.sample
    number = np.arange(segments.number)
    if decisions.at_every_score:
        points = trace_curves(segments)
        yield (
            points.segment,
            DecidedRows(points.threshold, points.cells, prevalence=plan.prevalence),
        )
        return
    if sample is None and len(decisions.thresholds):
        cells = sum_cells_at_each(segments, decisions.thresholds)
        threshold = np.tile(decisions.thresholds, segments.number)
        segment = np.repeat(number, len(decisions.thresholds))
        yield segment, DecidedRows(threshold, cells, prevalence=plan.prevalence)
        return
    units = None if sample is None else sample.units
    thresholds = _find_thresholds(segments, decisions)
    for part, some in split_segments(segments, sample):
        for each in thresholds:
            value = np.broadcast_to(each.value, segments.number)[part]
            if decisions.recorded:
                cells = sum_decided_cells(some, rows, sample)
            else:
                selects = np.broadcast_to(each.selects, segments.number)[part]
                cells = sum_cells_at(some, value, sample, selects=selects)
            yield number[part], DecidedRows(value, cells, units, plan.prevalence)


def _find_thresholds(segments: SegmentRows, decisions: _Decisions) -> list[Thresholds]:
    """Return thresholds for all segments or for each; NaN for recorded decisions."""
    if decisions.rule is not None:
        return [choose_per_group(segments, decisions.rule, per_group=decisions.per_group)]
    values = [np.nan] if decisions.recorded else decisions.thresholds
    return [Thresholds(np.array([value]), np.array([True])) for value in values]


def _measure_points(decided: DecidedRows, plan: _Plan, level: Level | None) -> pl.DataFrame:
    """Return the columns of matrices after the group."""
    starts = range(0, max(len(decided.threshold), 1), _POINTS_AT_ONCE)
    parts = (decided.at(slice(start, start + _POINTS_AT_ONCE)) for start in starts)
    return pl.concat([pl.DataFrame(_columns(part, plan, level)) for part in parts])


def _columns(
    decided: DecidedRows, plan: _Plan, level: Level | None
) -> dict[str, Array | pl.Series]:
    """Return the threshold, cells, metrics with limits, cost and reason of each matrix."""
    values = measure_metrics(decided, plan.metrics)
    columns: dict[str, Array | pl.Series] = {"threshold": decided.threshold}
    for cell, weight in zip(CELLS, decided.cells.weight, strict=True):
        # Undefined where it overflows
        columns[cell] = np.where(np.isfinite(weight), weight, np.nan)
    limits: dict[str, Limits] = {}
    if level is not None:
        unknown = np.full(decided.threshold.shape, np.nan)
        limits = dict.fromkeys(values, Limits(unknown, unknown))
        if plan.has_limits:
            limits = limit_metrics(decided, values, level)
    for name, value in values.items():
        columns[name] = value
        if level is not None:
            columns[f"{name}_low"], columns[f"{name}_high"] = limits[name]
    rule = plan.decisions.rule
    if rule is not None and rule.costs is not None:
        matrix = decided.matrix()
        false_negatives = ratio(matrix.fn, matrix.total)
        false_positives = ratio(matrix.fp, matrix.total)
        columns[COST] = rule.costs.fn * false_negatives + rule.costs.fp * false_positives
    columns[_REASON] = _find_reasons(decided, plan)
    return columns


def _find_reasons(decided: DecidedRows, plan: _Plan) -> pl.Series:
    """Return the first reason why each matrix says little; null for points of a curve."""
    tp, fp, fn, tn = decided.cells.rows
    if plan.decisions.at_every_score:
        return pl.Series(_REASON, [None] * len(tp), pl.String)
    positives, negatives = tp + fn, fp + tn
    has_rows = positives + negatives > 0
    cases = [
        (np.isnan(tp), _NO_THRESHOLD),
        (has_rows & (tp + fp == 0), NOBODY),
        (has_rows & (fn + tn == 0), EVERYBODY),
        (positives < plan.min_rows, few_rows(plan.min_rows, "positives")),
        (negatives < plan.min_rows, few_rows(plan.min_rows, "negatives")),
    ]
    reasons = np.select([holds for holds, _ in cases], [reason for _, reason in cases], "")
    uncertain = _list_uncertain_rates(decided, plan)
    found = [
        reason or (f"{FEW_EVENTS}: {', '.join(rates)}" if rates else None)
        for reason, rates in zip(reasons.tolist(), uncertain, strict=True)
    ]
    return pl.Series(_REASON, found, pl.String)


def _list_uncertain_rates(decided: DecidedRows, plan: _Plan) -> list[list[str]]:
    """Return the rates of each matrix whose limits may be too narrow, because events are few."""
    names = [name for name in plan.metrics if name in RATES] if plan.has_limits else []
    few = {}
    for name in names:
        rate = decided.cells.rate(RATES[name].counted, RATES[name].others, decided.units)
        few[name] = rate.has_few_events.tolist()
    places = range(len(decided.threshold))
    return [[name for name in names if few[name][place]] for place in places]
