"""Whether a new score is no worse than the old one on the same rows, in every segment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import polars as pl

from polars_wroc import checks
from polars_wroc.arrays import Array, Mask, Texts
from polars_wroc.bounds import Above, InnerProportion, MinRows, StrictlyBetween
from polars_wroc.calls import check_call
from polars_wroc.groups.categories import Grouping, Intersections
from polars_wroc.groups.comparisons import COMPARABLE, COMPARISON_SCHEMA, METRICS
from polars_wroc.groups.divisions import name_segments, read_divisions
from polars_wroc.groups.group_columns import (
    adjust_together,
    choose_texts,
    in_order,
    label_segments,
    make_rows,
)
from polars_wroc.inputs.columns import IntoColumn, IntoWeight, numeric, score_column
from polars_wroc.inputs.designs import Design
from polars_wroc.inputs.expressions import as_column, boolean_column, named_columns, typed_column
from polars_wroc.inputs.frames import precision
from polars_wroc.inputs.metric import calibration_hint, check_metric
from polars_wroc.inputs.reasons import (
    EVERYBODY,
    FEW_EVENTS,
    NO_VARIANCE,
    NOBODY,
    UNDEFINED,
    few_rows,
)
from polars_wroc.inputs.rows import IntoColumns, polars_frame
from polars_wroc.looks import ConfidenceLevel
from polars_wroc.metrics import paired_changes
from polars_wroc.metrics.paired_aucs import have_same_scores, require_all_scores
from polars_wroc.metrics.paired_changes import METRICS_OF_DECISIONS, RELEASE_METRICS, Change
from polars_wroc.metrics.paired_sums import NEW_SCORE, OLD_SCORE, PairedRows, measure_pairs
from polars_wroc.metrics.registry import LOSSES, ROC_AUC
from polars_wroc.queries import FrameT
from polars_wroc.rows import Columns, Rows, check_level, read_columns, table_of
from polars_wroc.stats.designs import explain_unknown_variance
from polars_wroc.stats.estimates import Limits
from polars_wroc.stats.families import DIFFERENT, EQUIVALENT, INCONCLUSIVE, Adjustment
from polars_wroc.stats.levels import Level
from polars_wroc.thresholds.registry import THRESHOLD_METRICS
from polars_wroc.thresholds.rules import read_number

_AUC, _NET_BENEFIT = ROC_AUC.column, THRESHOLD_METRICS["net_benefit"].name
_RATES = (*paired_changes.RATES_OF_ROWS, *paired_changes.RATES_OF_DECISIONS)
# Metrics with a known unit, so that it is known which change is small.
WITH_MARGIN = (_AUC, *_RATES)
RELEASE_MARGIN = 0.01
BETTER, NO_WORSE, WORSE = "better", "no worse", "worse"
SAME_SCORES, SAME_ORDER, NO_CHANGE = "same scores", "same order", "no decision changed"
# One row can change its mean by any amount.
_UNBOUNDED = "log_loss"
_SCHEMA: dict[str, type[pl.DataType]] = COMPARISON_SCHEMA | {
    "margin": pl.Float64,
    "n_changed": pl.Int64,
    "n_gained": pl.Int64,
    "n_lost": pl.Int64,
    "share_changed": pl.Float64,
}
# The order of metrics in a segment.
_ORDER = [metric for metric in METRICS | COMPARABLE if metric in RELEASE_METRICS]

PairedThresholds: TypeAlias = float | Mapping[str, float]
PairedDecisions: TypeAlias = Mapping[str, IntoColumn]


@check_call
def release_check(
    frame: FrameT,
    label: IntoColumn,
    old: IntoColumn,
    new: IntoColumn,
    *,
    attributes: IntoColumns | None = None,
    intersections: Intersections = False,
    threshold: PairedThresholds | None = None,
    selected: PairedDecisions | None = None,
    weight: IntoWeight | None = None,
    pos_label: object = None,
    metrics: Sequence[str] | None = None,
    margin: float | Mapping[str, float] = RELEASE_MARGIN,
    net_benefit_at: InnerProportion | None = None,
    min_rows: MinRows = 30,
    design: Design | None = None,
    level: ConfidenceLevel = 0.95,
    adjust: Adjustment = "holm",
) -> FrameT:
    """Return the changes from an old to a new score on the same rows, in every segment.

    Use it before a release: a verdict of ``"no worse"`` means that the new score loses at most the
    ``margin``. "No worse in every row of the table" needs no adjustment for many tests [1]_; one
    row picked from many carries no such guarantee. Rows without a label, for example applications
    that the old score rejected, are not compared. For calibration see [two scores on the same
    rows](../guides/calibration.md#two-scores-on-the-same-rows).

    The main columns are:

    - ``attribute, segment, metric``: what the row describes; ``"overall"`` is all rows;
    - ``value, reference_value``: the metric with the new and with the old score;
    - ``gap, gap_low, gap_high``: new minus old, with its confidence interval;
    - ``verdict``: ``"better"``, ``"worse"``, ``"no worse"`` or ``"inconclusive"``;
    - ``n_changed``: rows that count differently with the new score.

    Parameters
    ----------
    frame, label, weight, pos_label, design
        As for `summary`.
    old, new
        Columns or numeric expressions of the two scores; higher means more likely positive.
    attributes, intersections, level, adjust
        As for `group_gaps`. Without attributes: all rows only.
    threshold
        Rows with at least this score are selected: one number for both scores, or ``{"old": 0.5,
        "new": 0.47}``.
    selected
        Instead of ``threshold``: recorded decisions, ``{"old": "hired_by_old", "new":
        "hired_by_new"}``, as for `group_gaps`.
    metrics
        ``auc``; with decisions ``selection_rate, tpr, fpr, ppv, npv, accuracy, net_benefit``; for
        probabilities ``brier_score, log_loss``. None: the AUC, and with decisions all of their
        metrics except the net benefit.
    margin
        How much worse still counts as no worse: a number for the AUC and rates (0.01 by default),
        or a mapping of metrics to numbers. `brier_score`, `log_loss` and `net_benefit` have no
        default.
    net_benefit_at
        Threshold probability whose odds weigh false positives in the net benefit; adds this metric.
    min_rows
        Fewest rows, or rows of each class for an AUC, for a test.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        The comparison table of `group_gaps`: ``model`` is the new score and ``reference`` the old
        one. After its columns:

        - ``margin`` (Float64): null for a metric without one.
        - ``n_changed, n_gained, n_lost`` (Int64): rows that contribute differently, more and less
          with the new score. For ppv and npv, these rows join or leave the denominator. Null for an
          AUC.
        - ``share_changed`` (Float64): the weight of the changed rows as a share of the rows that
          the metric uses with either score; null for an AUC.

        ``"no worse"`` means that the worse limit is within the margin; the other verdicts use
        ``p_adjusted``. A selection rate has no good side: it is ``"equivalent"``, ``"different"``
        or ``"inconclusive"``.

        ``reason`` is as in `group_gaps`, or ``"same scores"``, ``"same order"`` or ``"no decision
        changed"``, which does not show that no other row would change.

        A row without its weight, a score or a decision is left out of all metrics, one without its
        label of all but the selection rate.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for a metric without its input, or a mean loss of scores outside 0 to
        1.

    Notes
    -----
    Limits are too narrow where a few of some dozen clusters change as a whole.
    [Formulas](../explanation/statistics.md#release_check).

    References
    ----------
    .. [1] Berger, R. L. (1982), Technometrics 24, 295-300.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> patients = wroc.data.diabetes()
    >>> table = wroc.release_check(patients, "progressed", "score_b", "score", threshold=0.5)
    >>> table.select("metric", pl.col("value", "gap", "gap_low").round(3), "verdict").head(3)
    shape: (3, 5)
    ┌────────────────┬───────┬───────┬─────────┬──────────────┐
    │ metric         ┆ value ┆ gap   ┆ gap_low ┆ verdict      │
    │ ---            ┆ ---   ┆ ---   ┆ ---     ┆ ---          │
    │ str            ┆ f64   ┆ f64   ┆ f64     ┆ str          │
    ╞════════════════╪═══════╪═══════╪═════════╪══════════════╡
    │ auc            ┆ 0.836 ┆ 0.074 ┆ 0.042   ┆ better       │
    │ selection_rate ┆ 0.514 ┆ 0.011 ┆ -0.028  ┆ inconclusive │
    │ tpr            ┆ 0.751 ┆ 0.054 ┆ -0.002  ┆ no worse     │
    └────────────────┴───────┴───────┴─────────┴──────────────┘
    """
    source = polars_frame(frame).lazy()
    scores, names = _read_scores(source, (old, new))
    choice = _read_decisions(source, threshold, selected)
    columns = read_columns(
        source,
        label,
        scores + choice.recorded,
        weight=weight,
        by=attributes,
        pos_label=pos_label,
        design=design,
        argument="attributes",
    )
    level = check_level(level, frame)
    margins = _read_metrics(metrics, margin, net_benefit_at, decided=choice.decides)
    divisions = _read_divisions(columns, attributes, intersections)
    types = columns.plan.collect_schema()
    precisions = precision(types[score_column(0)]), precision(types[score_column(1)])
    odds = _odds(net_benefit_at)

    def compute(rows: Rows) -> pl.DataFrame:
        complete = require_all_scores(rows)
        paired = PairedRows(complete, choice.select(complete), precisions)
        units = None if rows.sample is None else rows.sample.units
        no_variance = explain_unknown_variance(units, NO_VARIANCE)
        rules = _Rules(complete.level(level), min_rows, odds, *_find_same(paired), no_variance)
        changes = []
        for number, division in enumerate(divisions):
            changes += _measure_changes(paired, division, number, margins, rules)
        adjusted = adjust_together([each.numbers["p_value"] for each in changes], adjust)
        tables = [
            each.tabulate(p_adjusted, rules)
            for each, p_adjusted in zip(changes, adjusted, strict=True)
        ]
        in_place = in_order(pl.concat(tables, how="diagonal"), _ORDER, _SCHEMA)
        return in_place.with_columns(model=pl.lit(names[1]), reference=pl.lit(names[0]))

    return table_of(frame, columns, _SCHEMA, compute)


class _Choice(NamedTuple):
    """The decisions of both scores: by thresholds, recorded in columns, or none."""

    thresholds: tuple[float, float] | None
    recorded: list[pl.Expr]

    @property
    def decides(self) -> bool:
        """Whether there are decisions."""
        return self.thresholds is not None or bool(self.recorded)

    def select(self, rows: Rows) -> tuple[Mask, Mask] | None:
        """Return which rows the old and the new score select."""
        if self.thresholds is not None:
            old, new = self.thresholds
            return rows.reach(OLD_SCORE, old), rows.reach(NEW_SCORE, new)
        if self.recorded:
            return rows.scores[_decision_name(OLD_SCORE)] == 1, rows.scores[
                _decision_name(NEW_SCORE)
            ] == 1
        return None


def _decision_name(name: str) -> str:
    return f"{name} decision"


def _read_scores(
    frame: pl.LazyFrame, both: tuple[IntoColumn, IntoColumn]
) -> tuple[list[pl.Expr], list[str]]:
    """Return the columns of both scores, and the caller's names of them."""
    columns, names = list[pl.Expr](), list[str]()
    for argument, score in zip((OLD_SCORE, NEW_SCORE), both, strict=True):
        typed = typed_column(argument, as_column(argument, score), frame)
        numeric(typed)
        # Thresholds are compared with a score in its own type.
        columns.append(typed.column.alias(argument))
        names += named_columns(argument, score, frame)
    return columns, names


def _read_decisions(
    frame: pl.LazyFrame, threshold: PairedThresholds | None, selected: PairedDecisions | None
) -> _Choice:
    """Return the decisions of both scores, after a check of the arguments."""
    if threshold is not None and selected is not None:
        msg = "`threshold` must be None with `selected`, which has the decisions; found both"
        raise ValueError(msg)
    thresholds: Mapping[str, float | None] = (
        threshold
        if isinstance(threshold, Mapping)
        else dict.fromkeys((OLD_SCORE, NEW_SCORE), threshold)
    )
    for argument, given in (("threshold", thresholds), ("selected", selected)):
        if given is not None and (
            not isinstance(given, Mapping) or {*given} != {OLD_SCORE, NEW_SCORE}
        ):
            checks.reject_type(argument, "map 'old' and 'new'", given)
    if selected is not None:
        columns = []
        for name in (OLD_SCORE, NEW_SCORE):
            decision = boolean_column("selected", selected[name], frame).column
            # Read as a score, so that rows without it are missing.
            columns.append(decision.cast(pl.Int8).alias(_decision_name(name)))
        return _Choice(None, columns)
    if threshold is None:
        return _Choice(None, [])
    old, new = (read_number(thresholds[name]) for name in (OLD_SCORE, NEW_SCORE))
    return _Choice((old, new), [])


def _read_divisions(
    columns: Columns, attributes: IntoColumns | None, intersections: Intersections
) -> list[Grouping]:
    """Return all rows together, then the divisions by attributes."""
    if attributes is not None:
        return [Grouping(), *read_divisions(columns, intersections)]
    if intersections:
        msg = "`intersections` needs two or more `attributes`; found None"
        raise ValueError(msg)
    return [Grouping()]


def _odds(net_benefit_at: float | None) -> float | None:
    if net_benefit_at is None:
        return None
    return net_benefit_at / (1 - net_benefit_at)


def _read_metrics(
    metrics: Sequence[str] | None,
    margin: float | Mapping[str, float],
    net_benefit_at: float | None,
    *,
    decided: bool,
) -> dict[str, float | None]:
    """Return the metrics, each with its margin if it has one."""
    margins = margin if isinstance(margin, Mapping) else dict.fromkeys(WITH_MARGIN, margin)
    if metrics is None:
        metrics = [_AUC, *(_RATES if decided else ())]
        metrics += [_NET_BENEFIT] if net_benefit_at is not None else []
        metrics += [name for name in LOSSES if name in margins]
    elif isinstance(metrics, str) or not isinstance(metrics, Sequence) or not metrics:
        checks.reject_type("metrics", "be None or a sequence of names of metrics", metrics)
    for argument, names in (("metrics", metrics), ("margin", margins)):
        for name in names:
            check_metric(argument, name, RELEASE_METRICS, hint=calibration_hint(name))
    if not decided and (undecided := [name for name in metrics if name in METRICS_OF_DECISIONS]):
        msg = f"`metrics` must come with a `threshold` or `selected` for {undecided[0]}; found none"
        raise ValueError(msg)
    if (_NET_BENEFIT in metrics) != (net_benefit_at is not None):
        rule = f"`net_benefit_at` must be given for {_NET_BENEFIT!r}, and for nothing else"
        msg = f"{rule}; found {net_benefit_at}"
        raise ValueError(msg)
    checked = {
        name: checks.number(
            "margin", value, StrictlyBetween(0, 1) if name in WITH_MARGIN else Above(0)
        )
        for name, value in (dict.fromkeys(WITH_MARGIN, RELEASE_MARGIN) | dict(margins)).items()
    }
    return {name: checked.get(name) for name in dict.fromkeys(metrics)}


class _Rules(NamedTuple):
    """The rules by which changes are tested, and what both scores have in common.

    ``odds`` is the weight of false positives in the net benefit. ``same_decision`` says who is
    selected if all rows have the same decision by both scores; ``same_scores`` says whether scores
    and decisions are identical. Unknown variances have the reason ``no_variance``.
    """

    level: Level
    min_rows: int
    odds: float | None
    same_decision: str | None
    same_scores: bool
    no_variance: str


def _find_same(paired: PairedRows) -> tuple[str | None, bool]:
    """Return who is selected if all rows have one decision, and whether scores are identical."""
    rows, selected = paired.rows, paired.selected
    same_scores = have_same_scores(rows, OLD_SCORE, NEW_SCORE)
    if selected is None:
        return None, same_scores
    complete, decided = (~np.isnan(each.weight) for each in (rows, rows.ignore_labels()))
    old, new = (each[complete] for each in selected)
    same_scores = same_scores and np.array_equal(old, new)
    old, new = (each[decided] for each in selected)
    if old.size and not (old | new).any():
        return NOBODY, same_scores
    return (EVERYBODY if old.size and (old & new).all() else None), same_scores


def _measure_changes(
    paired: PairedRows,
    division: Grouping,
    number: int,
    margins: Mapping[str, float | None],
    rules: _Rules,
) -> list[_TestedChange]:
    """Return the changes of metrics in the segments of one of the divisions."""
    losses = [metric for metric in margins if metric in LOSSES]
    sums = measure_pairs(paired, division.keys, aucs=_AUC in margins, losses=losses)
    labels = label_segments(division, name_segments(division, sums.keys), None, (number, 0))
    return [
        _test_change(
            metric, margin, paired_changes.change_metric(metric, sums, rules.odds), labels, rules
        )
        for metric, margin in margins.items()
    ]


def _test_change(
    metric: str, margin: float | None, change: Change, labels: pl.DataFrame, rules: _Rules
) -> _TestedChange:
    """Return the change of a metric with its limits and p-value; with the same scores it is 0."""
    sizes = change.sizes
    if not sizes:
        (kind,) = COMPARABLE[metric].sample_sizes
        sizes = {kind: np.minimum(change.n_old, change.n_new)}
    too_small = [
        (~(size >= rules.min_rows), few_rows(rules.min_rows, kind)) for kind, size in sizes.items()
    ]
    gap, limits, p_value = change.gap, change.limits(rules.level), change.p_value(rules.level)
    one_sided = change.limits(rules.level, one_sided=True)
    if rules.same_scores:
        gap = np.where(np.isnan(gap), np.nan, 0.0)
        limits = one_sided = Limits(gap, gap)
        p_value = gap + 1.0
    same_decision = rules.same_decision if metric in METRICS_OF_DECISIONS else None
    is_tested = ~np.logical_or.reduce([holds for holds, _ in too_small])
    numbers = {
        "value": change.new,
        "reference_value": change.old,
        "gap": gap,
        "gap_low": limits.low,
        "gap_high": limits.high,
        "n": change.n_new,
        "n_reference": change.n_old,
        "p_value": np.where(is_tested & (same_decision is None), p_value, np.nan),
        "margin": np.full(gap.shape, np.nan if margin is None else margin),
    }
    if change.changed is not None:
        numbers |= {
            "n_changed": change.changed.number,
            "n_gained": change.changed.gained.rows,
            "n_lost": change.changed.lost.rows,
            "share_changed": change.changed.share,
        }
    # An infinite number says no more than a missing one.
    numbers = {
        name: np.where(np.isfinite(values), values, np.nan) for name, values in numbers.items()
    }
    return _TestedChange(metric, change, labels, numbers, one_sided, too_small, same_decision)


@dataclass(frozen=True)
class _TestedChange:
    """The rows of a metric of the segments of a division, before they are judged.

    Both ``one_sided`` limits together can show that a change is small. Segments may be
    ``too_small``, with a reason for each kind of rows.
    """

    metric: str
    change: Change
    labels: pl.DataFrame
    numbers: Mapping[str, Array]
    one_sided: Limits
    too_small: Sequence[tuple[Mask, str]]
    same_decision: str | None

    def tabulate(self, p_adjusted: Array, rules: _Rules) -> pl.DataFrame:
        """Return the rows with their verdicts and reasons."""
        texts = {
            "metric": self.metric,
            "verdict": self._find_verdicts(p_adjusted, rules),
            "reason": self._find_reasons(rules),
        }
        return make_rows(self.labels, {**self.numbers, "p_adjusted": p_adjusted}, texts)

    def _find_verdicts(self, p_adjusted: Array, rules: _Rules) -> Texts:
        gap, margin = self.numbers["gap"], self.numbers["margin"]
        is_untold = np.isnan(gap) | (self.same_decision is not None)
        for holds, _ in self.too_small:
            is_untold |= holds
        is_sure = np.logical_not(self.change.few_events) | (self.metric != _UNBOUNDED)
        is_significant = (p_adjusted <= rules.level.error) & is_sure
        better = COMPARABLE[self.metric].better
        if better is None:
            is_within = (self.one_sided.low > -margin) & (self.one_sided.high < margin)
            found = [(is_within, EQUIVALENT), (is_significant, DIFFERENT)]
        else:
            is_high = better == "high"
            gain = gap if is_high else -gap
            worst = self.numbers["gap_low"] if is_high else -self.numbers["gap_high"]
            is_small = (rules.same_scores | (worst > -margin)) & is_sure
            found = [
                (is_significant & (gain > 0), BETTER),
                (is_small, NO_WORSE),
                (is_significant & (gain < 0), WORSE),
            ]
        return choose_texts([(is_untold, INCONCLUSIVE), *found, (True, INCONCLUSIVE)])

    def _find_reasons(self, rules: _Rules) -> Texts:
        numbers = self.numbers
        no_change = self.metric in METRICS_OF_DECISIONS and numbers["n_changed"] == 0
        return choose_texts(
            [
                (np.isnan(numbers["gap"]), UNDEFINED),
                (self.same_decision is not None, self.same_decision),
                *self.too_small,
                (rules.same_scores, SAME_SCORES),
                (np.isnan(numbers["gap_low"]), rules.no_variance),
                (self.change.same_order, SAME_ORDER),
                (no_change, NO_CHANGE),
                (self.change.few_events, FEW_EVENTS),
            ]
        )
