"""Whether a new score is no worse than the old one on the same rows, in every segment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TypeAlias, get_args

import numpy as np
import polars as pl

from polars_wroc import checks
from polars_wroc.arrays import Mask
from polars_wroc.groups.categories import Grouping, Intersections
from polars_wroc.groups.comparisons import (
    COMPARABLE,
    COMPARISON_SCHEMA,
    FEW_EVENTS,
    METRICS,
)
from polars_wroc.groups.divisions import name_segments, read_divisions
from polars_wroc.inputs.columns import (
    IntoColumn,
    IntoWeight,
    numeric,
    score_column,
)
from polars_wroc.inputs.designs import Design
from polars_wroc.inputs.expressions import as_column, boolean_column, named_columns, typed_column
from polars_wroc.inputs.frames import precision
from polars_wroc.inputs.metric import check_metric
from polars_wroc.inputs.reasons import EVERYBODY, NO_VARIANCE, NOBODY, UNDEFINED, few_rows
from polars_wroc.inputs.rows import IntoColumns, polars_frame
from polars_wroc.keywords import hint_keywords
from polars_wroc.looks import ConfidenceLevel
from polars_wroc.metrics.paired_aucs import have_same_scores, require_all_scores
from polars_wroc.metrics.paired_changes import (
    METRICS_OF_DECISIONS,
    RATES_OF_DECISIONS,
    RATES_OF_ROWS,
    RELEASE_METRICS,
    Change,
    change_metric,
)
from polars_wroc.metrics.paired_sums import NEW, OLD, PairedRows, measure_pairs
from polars_wroc.metrics.registry import LOSSES, ROC_AUC
from polars_wroc.queries import FrameT
from polars_wroc.rows import Columns, Rows, check_level, read_columns, table_of
from polars_wroc.stats.families import (
    DIFFERENT,
    EQUIVALENT,
    INCONCLUSIVE,
    Adjustment,
    adjust_p_values,
)
from polars_wroc.stats.levels import Level
from polars_wroc.thresholds.registry import THRESHOLD_METRICS
from polars_wroc.thresholds.rules import read_number

_AUC, _NET_BENEFIT = ROC_AUC.column, THRESHOLD_METRICS["net_benefit"].name
# Metrics whose unit is known, and so what is a small change.
WITH_MARGIN = (_AUC, *RATES_OF_ROWS, *RATES_OF_DECISIONS)
RELEASE_MARGIN = 0.01
BETTER, NO_WORSE, WORSE = "better", "no worse", "worse"
SAME_SCORES, SAME_ORDER, NO_CHANGE = "same scores", "same order", "no decision changed"
# A row may change its mean by any amount.
_UNBOUNDED = "log_loss"
_SCHEMA: dict[str, type[pl.DataType]] = COMPARISON_SCHEMA | {
    "margin": pl.Float64,
    "n_changed": pl.Int64,
    "n_gained": pl.Int64,
    "n_lost": pl.Int64,
    "share_changed": pl.Float64,
}
_GOOD = {"high": 1.0, "low": -1.0, None: 0.0}
# The order of metrics in a segment.
_ORDER = [metric for metric in METRICS | COMPARABLE if metric in RELEASE_METRICS]

PairedThresholds: TypeAlias = float | Mapping[str, float]
PairedDecisions: TypeAlias = Mapping[str, IntoColumn]


@hint_keywords
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
    net_benefit_at: float | None = None,
    min_rows: int = 30,
    design: Design | None = None,
    level: ConfidenceLevel = 0.95,
    adjust: Adjustment = "holm",
) -> FrameT:
    """Return the changes from an old to a new score on the same rows, in every segment.

    Use it before a release: a verdict of ``"no worse"`` means that the new score loses at most the
    ``margin``. "No worse in every row of the table" needs no adjustment for many tests [1]_; one
    row picked from many carries no such guarantee. The result holds for rows like these: rows that
    the old score kept from getting a label, for example rejected applications, are not among them.

    The main columns are:

    - ``attribute, segment, metric``: what the row describes; ``"overall"`` is all rows;
    - ``value, reference_value``: the metric with the new and with the old score;
    - ``gap, gap_low, gap_high``: new minus old, with its confidence interval;
    - ``verdict``: ``"better"``, ``"worse"``, ``"no worse"`` or ``"inconclusive"``;
    - ``n_changed``: rows that count differently with the new score.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, weight, pos_label, design
        As for `summary`.
    old, new
        Columns or numeric expressions of the two scores; higher means more likely positive.
    attributes, intersections
        As for `group_gaps`; None: all rows only.
    threshold
        Rows with at least this score are selected: one number for both scores, or ``{"old": 0.5,
        "new": 0.47}``.
    selected
        Instead of ``threshold``: columns or expressions, Boolean or of 0 and 1, with the decisions,
        ``{"old": "hired_by_old", "new": "hired_by_new"}``.
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
    level, adjust
        As for `group_gaps`.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        The comparison table of `group_gaps`: ``model`` is the new score and ``reference`` the old
        one. After its columns:

        - ``margin`` (Float64): null for a metric without one.
        - ``n_changed, n_gained, n_lost`` (Int64): rows that contribute differently, more and less
          with the new score. For a selection rate these are newly selected and newly rejected rows;
          for ppv and npv, rows that join or leave the denominator. Null for an AUC.
        - ``share_changed`` (Float64): the weight of the changed rows as a share of the rows that
          the metric uses with either score; null for an AUC.

        ``"better"`` and ``"worse"`` mean that ``p_adjusted`` is at most ``1 - level``; ``"no
        worse"`` that the worse limit is within the margin. Intervals and ``p_value`` are not
        adjusted, so a change whose interval excludes 0 can be ``"inconclusive"``. A selection rate
        has no good side: it is ``"equivalent"``, ``"different"`` or ``"inconclusive"``.

        ``reason`` is ``"undefined"``; ``"fewer than 30 positives"`` (or another number or kind of
        rows); ``"nobody is selected"`` or ``"everybody is selected"``; ``"no variance"``; ``"same
        scores"``, ``"same order"`` or ``"no decision changed"`` (nothing differs in these rows,
        which does not show that no other row would change); or ``"few effective events"`` (the
        changed rows are so heavy, or so few decide a log loss, that limits may be too narrow).

        A row without its weight, a score or a decision is left out of all metrics, one without its
        label of all but the selection rate. Columns of the table that are not named here are null.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for an unknown metric or option, a metric without its input, or a
        mean loss of scores outside 0 to 1.

    Notes
    -----
    Limits are too narrow where a few of some dozen clusters change as a whole. Formulas and
    simulations: [formulas](../explanation/formulas.md#release_check).

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
    least = checks.whole_number("min_rows", min_rows, low=0)
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
    checks.option("adjust", adjust, get_args(Adjustment))
    level = check_level(level, frame)
    margins = _read_metrics(metrics, margin, net_benefit_at, decided=choice.decides)
    divisions = _read_divisions(columns, attributes, intersections)
    schema = columns.plan.collect_schema()
    precisions = precision(schema[score_column(0)]), precision(schema[score_column(1)])
    plan = _ReleasePlan(
        names, choice, precisions, divisions, margins, _odds(net_benefit_at), least, level, adjust
    )
    return table_of(frame, columns, _SCHEMA, plan.table)


@dataclass(frozen=True)
class _Choice:
    """How both scores decide: by a threshold each, as it was recorded in columns, or not at all."""

    thresholds: tuple[float, float] | None = None
    recorded: list[pl.Expr] = field(default_factory=list)

    @property
    def decides(self) -> bool:
        return self.thresholds is not None or bool(self.recorded)

    def select(self, rows: Rows) -> tuple[Mask, Mask] | None:
        """Return which rows the old and the new score select."""
        if self.thresholds is not None:
            old, new = self.thresholds
            return rows.reach(OLD, old), rows.reach(NEW, new)
        if self.recorded:
            return rows.scores[_decision_name(OLD)] == 1, rows.scores[_decision_name(NEW)] == 1
        return None


def _decision_name(name: str) -> str:
    return f"{name} decision"


def _read_scores(
    frame: pl.LazyFrame, both: tuple[IntoColumn, IntoColumn]
) -> tuple[list[pl.Expr], list[str]]:
    """Return the columns of both scores, and the caller's names of them."""
    columns, names = list[pl.Expr](), list[str]()
    for argument, score in zip((OLD, NEW), both, strict=True):
        typed = typed_column(argument, as_column(argument, score), frame)
        numeric(typed)
        # In its own type, in which it is compared with a threshold.
        columns.append(typed.column.alias(argument))
        names += named_columns(argument, score, frame)
    return columns, names


def _read_decisions(
    frame: pl.LazyFrame, threshold: PairedThresholds | None, selected: PairedDecisions | None
) -> _Choice:
    """Check how both scores decide."""
    if threshold is not None and selected is not None:
        msg = "`threshold` must be None with `selected`, which has the decisions; found both"
        raise ValueError(msg)
    thresholds: Mapping[str, float | None] = (
        threshold if isinstance(threshold, Mapping) else dict.fromkeys((OLD, NEW), threshold)
    )
    for argument, given in (("threshold", thresholds), ("selected", selected)):
        if given is not None and (not isinstance(given, Mapping) or {*given} != {OLD, NEW}):
            checks.reject_type(argument, "map 'old' and 'new'", given)
    if selected is not None:
        columns = []
        for name in (OLD, NEW):
            decision = boolean_column("selected", selected[name], frame).column
            # Read as a score, so that rows without it are missing.
            columns.append(decision.cast(pl.Int8).alias(_decision_name(name)))
        return _Choice(recorded=columns)
    if threshold is None:
        return _Choice()
    old, new = (read_number(thresholds[name]) for name in (OLD, NEW))
    return _Choice((old, new))


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
    at = checks.number("net_benefit_at", net_benefit_at, low=0, high=1, open_ends=True)
    return at / (1 - at)


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
        of_decisions = (*RATES_OF_ROWS, *RATES_OF_DECISIONS) if decided else ()
        more = [_NET_BENEFIT] if net_benefit_at is not None else []
        metrics = [_AUC, *of_decisions, *more, *(name for name in LOSSES if name in margins)]
    elif isinstance(metrics, str) or not isinstance(metrics, Sequence) or not metrics:
        checks.reject_type("metrics", "be None or a sequence of names of metrics", metrics)
    for argument, names in (("metrics", metrics), ("margin", margins)):
        for name in names:
            check_metric(argument, name, RELEASE_METRICS)
    if not decided and (undecided := [name for name in metrics if name in METRICS_OF_DECISIONS]):
        msg = f"`metrics` must come with a `threshold` or `selected` for {undecided[0]}; found none"
        raise ValueError(msg)
    if (_NET_BENEFIT in metrics) != (net_benefit_at is not None):
        rule = f"`net_benefit_at` must be given for {_NET_BENEFIT!r}, and for nothing else"
        msg = f"{rule}; found {net_benefit_at}"
        raise ValueError(msg)
    checked = {
        name: checks.number(
            "margin", value, low=0, high=1 if name in WITH_MARGIN else inf, open_ends=True
        )
        for name, value in (dict.fromkeys(WITH_MARGIN, RELEASE_MARGIN) | dict(margins)).items()
    }
    return {name: checked.get(name) for name in dict.fromkeys(metrics)}


@dataclass(frozen=True)
class _ReleasePlan:
    """What is compared and how: the metrics, each with its margin if it has one, by divisions."""

    names: Sequence[str]
    choice: _Choice
    precisions: tuple[float, float]
    divisions: Sequence[Grouping]
    margins: Mapping[str, float | None]
    odds: float | None
    min_rows: int
    level: ConfidenceLevel
    adjust: Adjustment

    def table(self, rows: Rows) -> pl.DataFrame:
        """Return a row for each segment of each division and metric, with its verdict."""
        complete = require_all_scores(rows)
        paired = PairedRows(complete, self.choice.select(complete), self.precisions)
        level = complete.level(self.level)
        table = self._compare(paired, level).with_columns(same_decision=_find_same_decision(paired))
        # Where nobody, or everybody, is selected by both there is nothing to test.
        table = table.with_columns(pl.when(~_IS_UNDECIDED).then("p_value").alias("p_value"))
        p_adjusted = adjust_p_values(table["p_value"].fill_null(np.nan).to_numpy(), self.adjust)
        table = table.with_columns(pl.Series("p_adjusted", p_adjusted, nan_to_null=True))
        return table.with_columns(
            _find_verdicts(level),
            _find_reasons(),
            model=pl.lit(self.names[1]),
            reference=pl.lit(self.names[0]),
        )

    def _compare(self, paired: PairedRows, level: Level) -> pl.DataFrame:
        """Return the rows of the table before they are judged."""
        losses = [metric for metric in self.margins if metric in LOSSES]
        is_same = _has_same_scores(paired)
        tables = [pl.DataFrame(schema=_SCHEMA)]
        for place, division in enumerate(self.divisions):
            sums = measure_pairs(paired, division.keys, aucs=_AUC in self.margins, losses=losses)
            names = name_segments(division, sums.keys)
            for metric, margin in self.margins.items():
                change = change_metric(metric, sums, self.odds)
                too_small = _find_too_small(change, metric, self.min_rows)
                columns = _describe_change(change, level, too_small, is_same=is_same)
                table = pl.DataFrame([names.cast(pl.String).alias("segment"), *columns])
                tables.append(
                    table.with_row_index("number").with_columns(
                        attribute=pl.lit(division.attribute),
                        metric=pl.lit(metric),
                        margin=pl.lit(margin, pl.Float64),
                        good=pl.lit(_GOOD[COMPARABLE[metric].better]),
                        is_same=pl.lit(is_same),
                        division=pl.lit(place),
                        order=pl.lit(_ORDER.index(metric)),
                    )
                )
        table = pl.concat(tables, how="diagonal_relaxed")
        return table.sort("division", "number", "order")


_IS_UNDECIDED = pl.col("same_decision").is_not_null() & pl.col("metric").is_in(METRICS_OF_DECISIONS)


def _find_same_decision(paired: PairedRows) -> pl.Expr:
    """Return who is selected if all rows have the same decision by both scores, else null."""
    why = None
    if paired.selected is not None:
        has_decisions = ~np.isnan(paired.rows.ignore_labels().weight)
        old, new = (each[has_decisions] for each in paired.selected)
        if old.size and not (old | new).any():
            why = NOBODY
        elif old.size and (old & new).all():
            why = EVERYBODY
    return pl.lit(why, pl.String)


def _has_same_scores(paired: PairedRows) -> bool:
    """Return whether both scores, and both decisions, are the same in all rows."""
    if not have_same_scores(paired.rows, OLD, NEW):
        return False
    if paired.selected is None:
        return True
    complete = ~np.isnan(paired.rows.weight)
    old, new = (each[complete] for each in paired.selected)
    return np.array_equal(old, new)


def _find_too_small(change: Change, metric: str, min_rows: int) -> pl.Series:
    """Return why there are too few rows of a kind for a test of each segment, else null."""
    sizes = change.sizes
    if not sizes:
        (kind,) = COMPARABLE[metric].sample_sizes
        sizes = {kind: np.minimum(change.n_old, change.n_new)}
    reasons = np.select(
        [~(size >= min_rows) for size in sizes.values()],
        [few_rows(min_rows, kind) for kind in sizes],
        "",
    )
    return pl.Series("too_small", [reason or None for reason in reasons.tolist()], pl.String)


def _describe_change(
    change: Change, level: Level, too_small: pl.Series, *, is_same: bool
) -> list[pl.Series]:
    """Return the columns of a metric of each segment; with the same scores nothing differs."""
    limits, one_sided = change.limits(level), change.limits(level, one_sided=True)
    tested = {
        "gap": change.gap,
        "gap_low": limits.low,
        "gap_high": limits.high,
        "equivalent_low": one_sided.low,
        "equivalent_high": one_sided.high,
        "p_value": change.p_value(level),
    }
    if is_same:
        known = ~np.isnan(change.gap)
        nothing = dict.fromkeys(tested, 0.0) | {"p_value": 1.0}
        tested = {name: np.where(known, value, np.nan) for name, value in nothing.items()}
    tested["p_value"] = np.where(too_small.is_null().to_numpy(), tested["p_value"], np.nan)
    numbers = tested | {
        "value": change.new,
        "reference_value": change.old,
        "n": change.n_new,
        "n_reference": change.n_old,
    }
    if change.changed is not None:
        numbers |= {
            "n_changed": change.changed.number,
            "n_gained": change.changed.gained.rows,
            "n_lost": change.changed.lost.rows,
            "share_changed": change.changed.share,
        }
    # Infinite numbers tell no more than missing ones.
    columns = [
        pl.Series(name, np.where(np.isfinite(values), values, np.nan), nan_to_null=True)
        for name, values in numbers.items()
    ]
    masks = [
        pl.Series("few_events", np.broadcast_to(change.few_events, change.old.shape)),
        pl.Series("same_order", np.broadcast_to(change.same_order, change.old.shape)),
    ]
    return [*columns, too_small, *masks]


def _find_verdicts(level: Level) -> pl.Expr:
    good, margin, low, high = (pl.col(n) for n in ("good", "margin", "gap_low", "gap_high"))
    change = pl.col("gap") * good
    is_unsure = pl.col("few_events") & (pl.col("metric") == _UNBOUNDED)
    is_significant = (pl.col("p_adjusted") <= level.error) & ~is_unsure
    worst = pl.when(good > 0).then(low).otherwise(-high)
    is_small = (pl.col("is_same") | (worst > -margin)) & ~is_unsure
    is_within = (pl.col("equivalent_low") > -margin) & (pl.col("equivalent_high") < margin)
    cases = (
        (INCONCLUSIVE, pl.col("too_small").is_not_null() | pl.col("gap").is_null()),
        (INCONCLUSIVE, _IS_UNDECIDED),
        (EQUIVALENT, (good == 0) & is_within),
        (DIFFERENT, (good == 0) & is_significant),
        (BETTER, is_significant & (change > 0)),
        (NO_WORSE, (good != 0) & is_small),
        (WORSE, is_significant & (change < 0)),
        (INCONCLUSIVE, pl.lit(value=True)),
    )
    return _first_that_holds(*cases).alias("verdict")


def _find_reasons() -> pl.Expr:
    is_decision = pl.col("metric").is_in(METRICS_OF_DECISIONS)
    cases = (
        (UNDEFINED, pl.col("gap").is_null()),
        (NOBODY, _IS_UNDECIDED & (pl.col("same_decision") == NOBODY)),
        (EVERYBODY, _IS_UNDECIDED),
        (pl.col("too_small"), pl.col("too_small").is_not_null()),
        (SAME_SCORES, pl.col("is_same")),
        (NO_VARIANCE, pl.col("gap_low").is_null()),
        (SAME_ORDER, pl.col("same_order")),
        (NO_CHANGE, is_decision & (pl.col("n_changed") == 0)),
        (FEW_EVENTS, pl.col("few_events")),
    )
    return _first_that_holds(*cases).alias("reason")


def _first_that_holds(*cases: tuple[str | pl.Expr, pl.Expr]) -> pl.Expr:
    """Return the word of the first condition that holds."""
    return pl.coalesce(
        pl.when(holds).then(pl.lit(word) if isinstance(word, str) else word)
        for word, holds in cases
    )
