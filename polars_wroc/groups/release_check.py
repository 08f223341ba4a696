"""Whether a new score is no worse than the old one on the same rows, in every segment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import inf

import polars as pl

from polars_wroc.groups.categories import Intersections
from polars_wroc.groups.comparisons import (
    ALIKE,
    DIFFERENT,
    FEW_EVENTS,
    NO_VARIANCE,
    PLACE,
    TOO_LITTLE,
    UNDEFINED,
    comparison_table,
    few_rows,
)
from polars_wroc.groups.paired_metrics import (
    SAME,
    Decisions,
    SegmentChecks,
    Thresholds,
    groupings_of,
    read_paired,
    rows_of,
)
from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import AUDIT_KEYS, Frequency, IntoColumn, IntoWeight
from polars_wroc.inputs.designs import Design, read_design
from polars_wroc.inputs.looks import Looks
from polars_wroc.inputs.rows import IntoColumns, polars_frame
from polars_wroc.metrics.auc_variance import units_of
from polars_wroc.metrics.paired_changes import (
    AUC,
    BOTH,
    NET_BENEFIT,
    RATES,
    RESULTS,
    SHARES,
    PairedChanges,
    changed_shares,
)
from polars_wroc.metrics.paired_tests import PairedTest
from polars_wroc.metrics.registry import LOSSES
from polars_wroc.plans.formulas import Columns, Fields, Formula, Step, in_columns, when
from polars_wroc.plans.queries import FrameT, is_eager, like_input
from polars_wroc.stats.difference_tests import (
    Adjust,
    adjusted,
    check_options,
    is_significant,
    mcnemar_mid_p,
)
from polars_wroc.stats.distributions import z_quantile

_OF_DECISIONS = (*RATES, *SHARES, NET_BENEFIT)
RELEASE_METRICS = (AUC, *_OF_DECISIONS, *LOSSES)
# Metrics whose unit is known, and so what is a small change.
WITH_MARGIN = (AUC, *RATES, *SHARES)
MARGIN = 0.01
BETTER, NO_WORSE, WORSE = "better", "no worse", "worse"
SAME_SCORES, SAME_ORDER, NO_CHANGE = "same scores", "same order", "no decision changed"
# A row may change its mean by any amount.
_UNBOUNDED = "log_loss"


def release_check(
    frame: FrameT,
    label: IntoColumn,
    old: IntoColumn,
    new: IntoColumn,
    *,
    attributes: IntoColumns | None = None,
    intersections: Intersections = False,
    threshold: Thresholds | None = None,
    selected: Decisions | None = None,
    weight: IntoWeight | None = None,
    pos_label: object = None,
    metrics: Sequence[str] | None = None,
    margin: float | Mapping[str, float] = MARGIN,
    net_benefit_at: float | None = None,
    min_rows: int = 0,
    design: Design | None = None,
    level: float = 0.95,
    adjust: Adjust = "holm",
) -> FrameT:
    """Test whether a new score is no worse than the old one on the same rows, in every segment.

    That holds of rows like these. Rows that the old score kept from getting a label, such as
    rejected applications, are not there: what the new score would do to them is not answered.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, weight, pos_label, design
        As for `summary`.
    old, new
        Columns or numeric expressions of the two scores; higher means more positive.
    attributes, intersections
        As for `group_gaps`; None: all rows together only, which come first in any case.
    threshold
        Rows with at least this score are selected: one number for both scores, or ``{"old": 0.5,
        "new": 0.47}``. Without it, and without ``selected``, decisions are not compared.
    selected
        Instead of ``threshold``: the recorded decisions, such as ``{"old": "hired_by_old", "new":
        "hired_by_new"}``: Boolean columns or expressions.
    metrics
        Names out of ``auc``, of decisions ``selection_rate, tpr, fpr, ppv, npv, accuracy,
        net_benefit``, and of scores that are probabilities ``brier_score, log_loss``. None: the
        AUC, and with decisions all of theirs but the net benefit.
    margin
        How much worse still counts as no worse, above 0: a number for the AUC and rates, or a
        mapping of metrics to numbers; the AUC and rates have 0.01 by default. `brier_score`,
        `log_loss` and `net_benefit` have none unless it is given: what is little depends on the
        use.
    net_benefit_at
        Threshold probability between 0 and 1, whose odds weigh false positives in the net benefit;
        with it that is a metric too.
    min_rows
        Fewest rows that a metric rests on, with either score, to be tested.
    level
        Confidence level of the intervals, from 0.001 to 0.9999, or `Looks`.
    adjust
        How p-values are adjusted for the number of tests in the table: see `group_gaps`.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        The comparison table of `group_gaps`: one row per attribute, segment and metric, after those
        of ``"overall"``, all rows. In each row ``gap = value - reference_value``.

        - ``attribute, segment, metric`` (String); ``model, reference`` (String): names of the new
          and of the old score.
        - ``n, n_reference`` (Int64): rows that the values rest on, which are the same but for ppv
          and npv: of an AUC the smaller class.
        - ``value, reference_value`` (Float64): the metric with the new and with the old score; null
          where undefined.
        - ``gap, gap_low, gap_high`` (Float64): the difference, with its confidence limits.
        - ``p_value, p_adjusted`` (Float64): test that nothing changed, alone and adjusted for all
          tests of the table together.
        - ``verdict`` (String): ``"better"`` or ``"worse"`` where ``p_adjusted`` is at most ``1 -
          level``; ``"no worse"`` where the worse limit is within the margin, though the difference
          may be significant; else ``"too little data"``. A selection rate has no good side: it is
          ``"alike"`` (within the margin by two one-sided tests), ``"different"`` or ``"too little
          data"``.
        - ``reason`` (String): ``"undefined"``; ``"fewer than 30 rows"`` (or another ``min_rows``);
          ``"no variance"`` by a design; ``"same scores"``, and the same decisions, in all rows;
          ``"same order"`` of all rows, so that AUCs are equal; ``"no decision changed"``, which
          does not show that none will; ``"few effective events"``, where changed rows are so heavy
          that limits may be too narrow, or too few decide a log loss, which is then not judged.
          Else null.
        - ``margin`` (Float64), null without; ``n_changed`` (Int64): rows that contribute otherwise
          with the new score; null of an AUC.

        The other columns of the table are null. A row with its label, weight, a score or a decision
        missing is left out of all metrics.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for an unknown metric or option, for a metric without what it is
        computed from, and at collect for a mean loss of scores outside 0 to 1.

    Notes
    -----
    "No worse in all rows" needs no adjustment: each verdict is a one-sided test at half of ``1 -
    level``, and all are wrong together at most that often, however many there are [1]_. One that
    is picked among many has no such guarantee. "Worse in some" and "better in some" rest on
    adjusted p-values.

    A rate changes by the shares of rows that become an event and that no longer are one: the
    interval combines Wilson's of both with their negative correlation [2]_, and the p-value belongs
    to the level at which it just excludes 0. For ppv and npv, of rows that differ, it combines
    those of both values. The variance of AUCs is DeLong's, of means that of the rows' differences,
    with Student's t; both have two pseudo-rows that change as much as one row can, one each way:
    where few rows change, the variance of the others would say that no row can. By a design rates
    are treated as means; of a few dozen clusters that change as a whole limits are too narrow.

    References
    ----------
    .. [1] Berger, R. L. (1982), Technometrics 24, 295-300.
    .. [2] Newcombe, R. G. (1998), Statistics in Medicine 17, 2635-2650.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> rows = pl.DataFrame(
    ...     {
    ...         "y": [1, 1, 1, 1, 0, 0, 0, 0, 0, 0],
    ...         "old": [0.9, 0.7, 0.4, 0.2, 0.8, 0.5, 0.3, 0.3, 0.15, 0.1],
    ...         "new": [0.95, 0.6, 0.45, 0.5, 0.7, 0.35, 0.4, 0.2, 0.2, 0.05],
    ...     }
    ... )
    >>> table = wroc.release_check(rows, "y", "old", "new", threshold=0.45, metrics=["auc", "tpr"])
    >>> table.select("metric", pl.col("value", "gap", "gap_low").round(3), "verdict")
    shape: (2, 5)
    ┌────────┬───────┬───────┬─────────┬─────────────────┐
    │ metric ┆ value ┆ gap   ┆ gap_low ┆ verdict         │
    │ ---    ┆ ---   ┆ ---   ┆ ---     ┆ ---             │
    │ str    ┆ f64   ┆ f64   ┆ f64     ┆ str             │
    ╞════════╪═══════╪═══════╪═════════╪═════════════════╡
    │ auc    ┆ 0.875 ┆ 0.167 ┆ -0.337  ┆ too little data │
    │ tpr    ┆ 1.0   ┆ 0.5   ┆ -0.102  ┆ too little data │
    └────────┴───────┴───────┴─────────┴─────────────────┘
    """
    least = arguments.whole_number("min_rows", min_rows, low=0)
    survey = read_design(design)
    given = label, (old, new), threshold, selected, weight, attributes, pos_label
    paired = read_paired(polars_frame(frame), *given, survey)
    level = check_options(paired.rows.look(level, frame), adjust)
    asked: dict[str, float | None] = _read_metrics(
        metrics, margin, net_benefit_at, decided=paired.decided
    )
    check = SegmentChecks(
        paired.rows,
        [*asked],
        PairedTest("delong", units_of(counted=paired.rows.counted), designed=survey.given),
        PairedChanges(level, survey.given),
        _odds(net_benefit_at),
        is_eager(frame),
    )
    tested = check.table(groupings_of(paired.rows, attributes, intersections), asked)
    table = adjusted(tested.with_columns(**_before_verdicts(least)), adjust)
    table = table.with_columns(**_verdicts(level), **_reasons(least))
    named = table.with_columns(pl.lit(paired.names[0]).alias("reference"))
    named = named.rename({"old": "reference_value", "new": "value"})
    more = ("margin", "n_changed")
    return like_input(frame, comparison_table(named, paired.rows, paired.names[1], more))


def _odds(net_benefit_at: float | None) -> float | None:
    if net_benefit_at is None:
        return None
    at = arguments.number("net_benefit_at", net_benefit_at, low=0, high=1, open_ends=True)
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
        of_decisions = (*RATES, *SHARES) if decided else ()
        more = [NET_BENEFIT] if net_benefit_at is not None else []
        metrics = [AUC, *of_decisions, *more, *(name for name in LOSSES if name in margins)]
    elif isinstance(metrics, str) or not isinstance(metrics, Sequence) or not metrics:
        arguments.reject_type("metrics", "be None or a sequence of names of metrics", metrics)
    for argument, names in (("metrics", metrics), ("margin", margins)):
        for name in names:
            if name not in RELEASE_METRICS:
                known, hint = (
                    ", ".join(RELEASE_METRICS),
                    arguments.did_you_mean(name, RELEASE_METRICS),
                )
                msg = f"`{argument}` must name metrics out of {known}; found {name!r}{hint}"
                raise ValueError(msg)
    if not decided and (undecided := [name for name in metrics if name in _OF_DECISIONS]):
        msg = f"`metrics` must come with a `threshold` or `selected` for {undecided[0]}; found none"
        raise ValueError(msg)
    if (NET_BENEFIT in metrics) != (net_benefit_at is not None):
        rule = f"`net_benefit_at` must be given for {NET_BENEFIT!r}, and for nothing else"
        msg = f"{rule}; found {net_benefit_at}"
        raise ValueError(msg)
    checked = {
        name: arguments.number(
            "margin", value, low=0, high=1 if name in WITH_MARGIN else inf, open_ends=True
        )
        for name, value in (dict.fromkeys(WITH_MARGIN, MARGIN) | dict(margins)).items()
    }
    return {name: checked.get(name) for name in dict.fromkeys(metrics)}


def _before_verdicts(least: int) -> Columns:
    """Leave the tests of too few rows out; of equal scores nothing differs."""
    same = pl.col(SAME).fill_null(value=False) & pl.col("gap").is_not_null()
    numbers = [name for name in RESULTS if name not in (*BOTH, "few")]
    found: Columns = {
        name: pl.when(same).then(1.0 if name == "p_value" else 0.0).otherwise(_finite(name))
        for name in numbers
    }
    enough = pl.min_horizontal("n", "n_reference") >= least
    return found | {
        "p_value": pl.when(enough).then(found["p_value"]),
        "enough": enough,
        "few": pl.col("few") & pl.col("metric").is_in([*RATES, _UNBOUNDED]),
        **{name: _finite(name) for name in BOTH},
    }


def _finite(name: str) -> pl.Expr:
    return pl.when(pl.col(name).is_finite()).then(name)


def _verdicts(level: float) -> Columns:
    good, margin, low, high = (pl.col(n) for n in ("good", "margin", "gap_low", "gap_high"))
    change = pl.col("gap") * good
    unsure = pl.col("few") & (pl.col("metric") == _UNBOUNDED)
    significant = is_significant(pl.col("p_adjusted"), level) & ~unsure
    worst = pl.when(good > 0).then(low).otherwise(-high)
    small = (pl.col(SAME) | (worst > -margin)) & ~unsure
    within = (pl.col("alike_low") > -margin) & (pl.col("alike_high") < margin)
    cases = (
        (TOO_LITTLE, ~(pl.col("enough") & pl.col("gap").is_not_null())),
        (ALIKE, (good == 0) & within),
        (DIFFERENT, (good == 0) & significant),
        (BETTER, significant & (change > 0)),
        (NO_WORSE, (good != 0) & small),
        (WORSE, significant & (change < 0)),
        (TOO_LITTLE, pl.lit(value=True)),
    )
    return {"verdict": _first(*cases)}


def _reasons(least: int) -> Columns:
    of_decisions = pl.col("metric").is_in(_OF_DECISIONS)
    cases = (
        (UNDEFINED, pl.col("gap").is_null()),
        (few_rows(least), ~pl.col("enough")),
        (SAME_SCORES, pl.col(SAME)),
        (NO_VARIANCE, pl.col("gap_low").is_null()),
        (SAME_ORDER, pl.col("same_order")),
        (NO_CHANGE, of_decisions & (pl.col("n_changed") == 0)),
        (FEW_EVENTS, pl.col("few")),
    )
    return {"reason": _first(*cases)}


def _first(*cases: tuple[str, pl.Expr]) -> pl.Expr:
    """Return the word of the first condition that holds."""
    return pl.coalesce(pl.when(holds).then(pl.lit(word)) for word, holds in cases)


CHANGE_COLUMNS = (
    *("outcome", "n", "weight", "n_newly_selected", "n_newly_rejected"),
    *(f"newly_selected{end}" for end in ("", "_low", "_high")),
    *(f"newly_rejected{end}" for end in ("", "_low", "_high")),
    *("net", "net_low", "net_high", "p_value", "p_mid"),
)
# The outcomes, and the rates whose rows have them; of all rows no label is needed.
_OUTCOMES = {"positive": "tpr", "negative": "fpr", "all": "selection_rate"}


def decision_changes(
    frame: FrameT,
    label: IntoColumn | None,
    old: IntoColumn,
    new: IntoColumn,
    *,
    attributes: IntoColumns | None = None,
    intersections: Intersections = False,
    threshold: Thresholds | None = None,
    selected: Decisions | None = None,
    weight: IntoWeight | None = None,
    pos_label: object = None,
    level: float = 0.95,
) -> FrameT:
    """Count the rows whose decision changes with a new score, and test the net change.

    Parameters
    ----------
    frame, old, new, attributes, intersections, threshold, selected, weight, pos_label, level
        As for `release_check`; decisions must be given.
    label
        As for `summary`. None: only ``"all"`` rows are counted, for which no label is needed.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per attribute, segment and outcome, after those of ``"overall"``, all rows.

        - ``attribute, segment`` (String): as in `group_gaps`.
        - ``outcome`` (String): ``"positive"`` and ``"negative"`` labels, and ``"all"`` rows, also
          those without a label.
        - ``n`` (Int64), ``weight`` (Float64): number and weight of the rows.
        - ``n_newly_selected, n_newly_rejected`` (Int64): rows that only the new score selects, and
          that only the old one does.
        - ``newly_selected, newly_selected_low, newly_selected_high, newly_rejected,
          newly_rejected_low, newly_rejected_high`` (Float64): their shares of the weight, with
          Wilson's limits.
        - ``net, net_low, net_high`` (Float64): the newly selected less the newly rejected, which is
          the change of the tpr, of the fpr or of the selection rate, with its limits.
        - ``p_value`` (Float64): test that it is 0, by the interval; ``p_mid`` (Float64): McNemar's
          exact test with the mid-p; null with weights, unless they are a `frequency`.

        Shares, limits and tests are null without rows of the outcome.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `release_check`.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> rows = pl.DataFrame(
    ...     {"y": [1, 1, 0, None], "old": [0.9, 0.4, 0.7, 0.6], "new": [0.8, 0.6, 0.3, 0.2]}
    ... )
    >>> changes = wroc.decision_changes(rows, "y", "old", "new", threshold=0.5)
    >>> changes.select("outcome", "n", "n_newly_selected", "n_newly_rejected", "net")
    shape: (3, 5)
    ┌──────────┬─────┬──────────────────┬──────────────────┬───────┐
    │ outcome  ┆ n   ┆ n_newly_selected ┆ n_newly_rejected ┆ net   │
    │ ---      ┆ --- ┆ ---              ┆ ---              ┆ ---   │
    │ str      ┆ i64 ┆ i64              ┆ i64              ┆ f64   │
    ╞══════════╪═════╪══════════════════╪══════════════════╪═══════╡
    │ positive ┆ 2   ┆ 1                ┆ 0                ┆ 0.5   │
    │ negative ┆ 1   ┆ 0                ┆ 1                ┆ -1.0  │
    │ all      ┆ 4   ┆ 1                ┆ 2                ┆ -0.25 │
    └──────────┴─────┴──────────────────┴──────────────────┴───────┘
    """
    exact = weight is None or isinstance(weight, Frequency)
    exact &= not isinstance(level, Looks)
    tables = []
    for outcome, rate in _OUTCOMES.items():
        labels = (None, None) if outcome == "all" else (label, pos_label)
        if labels[0] is None and outcome != "all":
            continue
        given = (old, new), threshold, selected, weight, attributes, labels[1]
        rows, _, decided = read_paired(polars_frame(frame), labels[0], *given)
        if not decided:
            msg = "`threshold` or `selected` must be given, to compare decisions; found neither"
            raise ValueError(msg)
        at = arguments.level(rows.look(level, frame))
        tests = PairedChanges(at)
        check = SegmentChecks(
            rows, [rate], PairedTest("delong", "row"), tests, None, is_eager(frame)
        )
        sums = rows_of(check.sums(groupings_of(rows, attributes, intersections)), rate, None)
        steps: list[Step] = [tests.of_rates, partial(_changed, level=at, exact=exact)]
        table = in_columns(sums, steps, at_once=is_eager(frame))
        table = table.with_columns(outcome=pl.lit(outcome)).rename(_RENAMED)
        tables.append(table.select(PLACE, *AUDIT_KEYS, *CHANGE_COLUMNS))
    both = pl.concat(tables).sort(PLACE, maintain_order=True)
    return like_input(frame, both.drop(PLACE))


_RENAMED = {
    "all_weight": "weight",
    "n_gained": "n_newly_selected",
    "n_lost": "n_newly_rejected",
    "gap": "net",
    "gap_low": "net_low",
    "gap_high": "net_high",
}


def _changed(field: Fields, level: float, *, exact: bool) -> Formula[Columns]:
    """Compute the shares of rows whose decision changes, with Wilson's limits, and the mid-p."""
    shares = yield from changed_shares(field)
    (quantile,) = yield [pl.lit(z_quantile(level))]
    columns: Columns = {}
    for name, share in zip(("newly_selected", "newly_rejected"), shares, strict=True):
        limits = share.sized.limits(quantile)
        columns |= {name: share.value, f"{name}_low": limits.low, f"{name}_high": limits.high}
    numbers = [field(name).cast(pl.Float64) for name in ("n_gained", "n_lost")]
    p_mid = mcnemar_mid_p(*numbers) if exact else pl.lit(None, pl.Float64)
    return columns | {"p_mid": when(field("n") > 0).then(p_mid)}
