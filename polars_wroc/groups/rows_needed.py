"""The numbers of rows that are needed for a width, a gap, an equivalence or a margin."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import scipy

from polars_wroc import checks
from polars_wroc.arrays import Array, Mask
from polars_wroc.bounds import InnerProportion, Margin, Positive, PositiveInt, Power, Proportion
from polars_wroc.calls import check_call
from polars_wroc.groups import comparisons
from polars_wroc.groups.comparisons import COMPARISON_SCHEMA
from polars_wroc.groups.group_columns import choose_texts
from polars_wroc.inputs.columns import AUDIT_KEYS, MODEL, OVERALL
from polars_wroc.inputs.metric import check_metric
from polars_wroc.looks import ConfidenceLevel, Looks, require_seen
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.queries import collect
from polars_wroc.stats import sample_sizes
from polars_wroc.stats.levels import Level
from polars_wroc.stats.power import POWER, GapTest
from polars_wroc.thresholds.registry import RATES

# A result this little above a whole number of rows is that number, up to rounding.
_ROUNDING = 1e-10
# A gap this close to the observed gap is that gap.
_SAME_GAP = 1e-12
_SELECTION_RATE = "selection_rate"
_AUC, _OE_RATIO = ROC_AUC.column, "oe_ratio"
_MAKERS = "`group_gaps`, `audit` or `release_check`"


@check_call
def rows_needed(
    table: pl.DataFrame | pl.LazyFrame | None = None,
    *,
    metric: str | None = None,
    value: Proportion | None = None,
    prevalence: Proportion | None = None,
    share: InnerProportion | None = None,
    ratio: Positive = 1.0,
    half_width: Positive | None = None,
    gap: Margin | None = None,
    equivalent_within: Margin | None = None,
    no_worse_by: Margin | None = None,
    changed: InnerProportion | None = None,
    power: Power = 0.8,
    level: ConfidenceLevel = 0.95,
    tests: PositiveInt | None = None,
    deff: Positive = 1.0,
) -> pl.DataFrame:
    """Return how many rows one target needs, from assumptions or per segment of a table.

    Use it to plan a study, or to see how many more rows an inconclusive comparison needs. Give one
    target: ``half_width``, ``gap``, ``equivalent_within`` or ``no_worse_by``.

    The main columns are:

    - ``attribute, segment, model, metric`` (String): as in the table; null without one;
    - ``needed`` (Int64): rows that the segment needs, of the ``sampling_unit``;
    - ``needed_reference`` (Int64): rows that the reference needs; null where nothing is compared;
    - ``needed_total`` (Int64): rows in all, if prevalence or selection rates are known;
    - ``factor`` (Float64): how many times as many rows as the table has;
    - ``note`` (String): assumptions, or why there is no number.

    Parameters
    ----------
    table
        A comparison table of `group_gaps`, `audit` or `release_check`. A LazyFrame is collected.
        None: one row from assumptions.
    metric
        ``"auc"`` or a rate of `threshold_metrics`; without a table and for a ``half_width`` also
        ``"oe_ratio"``. None: all metrics of the table.
    value, prevalence, share, ratio
        Assumptions without a table: the rate or AUC (of the reference); the proportion of
        positives; the segment's share of all rows; and the rows of the reference for each row of
        the segment.
    half_width
        Target: half the width of the confidence interval.
    gap
        Target: a gap below the reference that is found with the given power. Not the observed one.
    equivalent_within
        Target: equal values are shown to be equivalent within this margin.
    no_worse_by, changed
        Target: a new score that is as good as the old one is shown to be no worse by more than this
        margin. Without a table ``changed`` is the share of rows whose decision differs.
    power
        Probability of reaching the target, above 0.5 and below 1.
    level, tests
        Confidence level, and the number of tests that share the error ``1 - level``. None: 1, or
        the number in the table, whose level must be given if it is not 0.95.
    deff
        Without a table: how many times more rows a design needs, for example ``1 + (m - 1) * icc``
        for clusters of m rows.

    Returns
    -------
    pl.DataFrame
        One row, or one per segment, score and metric. ``target`` (String) and ``goal`` (Float64)
        repeat the target; ``have`` (Float64) is ``n`` of the table. ``sampling_unit`` (String) says
        which rows are counted: ``"positives"``, ``"negatives"``, ``"selected"``, ``"rejected"`` or
        ``"rows"``, which for an AUC are those of both classes. There is no number above a billion.

    Raises
    ------
    TypeError, ValueError
        For no target or several, a metric to which it does not apply, and numbers out of range.

    Notes
    -----
    Gaps of rates use the formula of [1]_, the inverse of ``detectable`` in a table, and equivalence
    is two one-sided tests [2]_. AUCs are planned for normal scores with equal variances. The power
    is for one comparison.

    References
    ----------
    .. [1] Fleiss, J. L., Tytun, A. & Ury, H. K. (1980), Biometrics 36, 343-346.
    .. [2] Schuirmann, D. J. (1987), J. Pharmacokinet. Biopharm. 15, 657-680.

    Examples
    --------
    >>> import polars_wroc as wroc
    >>> rows = wroc.rows_needed(metric="tpr", value=0.8, gap=0.05, prevalence=0.2)
    >>> rows.select("needed", "needed_reference", "needed_total", "sampling_unit")
    shape: (1, 4)
    ┌────────┬──────────────────┬──────────────┬───────────────┐
    │ needed ┆ needed_reference ┆ needed_total ┆ sampling_unit │
    │ ---    ┆ ---              ┆ ---          ┆ ---           │
    │ i64    ┆ i64              ┆ i64          ┆ str           │
    ╞════════╪══════════════════╪══════════════╪═══════════════╡
    │ 1094   ┆ 1094             ┆ 10938        ┆ positives     │
    └────────┴──────────────────┴──────────────┴───────────────┘
    """
    targets = {
        "half_width": half_width,
        "gap": gap,
        "equivalent_within": equivalent_within,
        "no_worse_by": no_worse_by,
    }
    numbers = {"value": value, "prevalence": prevalence, "share": share, "ratio": ratio}
    numbers |= {"changed": changed, "deff": deff}
    if table is not None:
        require_seen(level)
    elif isinstance(level, Looks):
        level = level.at(level.planned)
    goal = _read_goal(targets, numbers, level, power, tests)
    with np.errstate(all="ignore"):
        if table is None:
            return _plan_assumptions(metric, goal)
        if not isinstance(table, pl.DataFrame | pl.LazyFrame):
            checks.reject_type("table", f"be None or a table of {_MAKERS}", table)
        goal.check(dict.fromkeys(numbers, False), "of a table")
        held = collect(table) if isinstance(table, pl.LazyFrame) else table
        return _plan_table(held, metric, goal)


@dataclass(frozen=True)
class _Goal:
    """A target with its number, and the other given numbers."""

    target: str
    number: float
    given: Mapping[str, float]
    level: ConfidenceLevel
    power: float
    tests: int | None

    @property
    def compares(self) -> bool:
        """Whether the reference needs rows too."""
        return self.target in ("gap", "equivalent_within")

    def check(self, needed: Mapping[str, bool], of: str) -> None:
        """Raise for a number that is needed but missing, or given but not needed."""
        for name, is_needed in needed.items():
            if is_needed != (name in self.given):
                rule = "be given" if is_needed else "not be given"
                found = f"{self.given[name]:g}" if name in self.given else "None"
                msg = f"`{name}` must {rule} for `{self.target}` {of}; found {found}"
                raise ValueError(msg)

    def check_metric(self, metric: str | None, known: Sequence[str], of: str) -> str:
        """Raise for a metric to which the target does not apply."""
        check_metric("metric", metric, known, f" for `{self.target}` {of}")
        assert metric is not None
        return metric

    def quantile(self, tests: Array) -> Array:
        """Return the quantiles of limits, given the number of tests.

        Equivalence is shown by one-sided tests. At repeated looks all planned rows are seen.
        """
        level = Level.of(self.level).at_planned_rows()
        return level.quantile(tests=tests, tails=1 if self.target == "equivalent_within" else 2)


def _read_goal(
    targets: Mapping[str, float | None],
    numbers: Mapping[str, float | None],
    level: ConfidenceLevel,
    power: float,
    tests: int | None,
) -> _Goal:
    """Check that there is one target."""
    names = checks.list_given(**targets)
    if len(names) != 1:
        listed = ", ".join(f"`{name}`" for name in targets)
        msg = f"exactly one of {listed} must be given; found {checks.quote_names(names)}"
        raise ValueError(msg)
    (target,) = names
    number = targets[target]
    assert number is not None
    factors = ("ratio", "deff")
    given = {
        name: each
        for name, each in numbers.items()
        if each is not None and not (name in factors and each == 1)
    }
    goal = _Goal(target, number, given, level, power, tests)
    if target != "no_worse_by":
        goal.check({"changed": False}, "at all")
    return goal


def _name_unit(metric: str) -> str:
    """Return the name of the rows that decide a metric."""
    kind = (comparisons.COMPARABLE | comparisons.METRICS).get(metric)
    sizes = ("rows",) if kind is None else kind.sample_sizes
    return sizes[0] if len(sizes) == 1 else "rows"


def _plan_assumptions(metric: str | None, goal: _Goal) -> pl.DataFrame:
    """Return the row of assumptions."""
    given = goal.given
    areas = [] if goal.target == "no_worse_by" else [_AUC]
    ratios = [_OE_RATIO] if goal.target == "half_width" else []
    metric = goal.check_metric(metric, [*areas, *RATES, *ratios], "without a table")
    needed = {"value": metric != _OE_RATIO and goal.target != "no_worse_by"}
    if metric in (_AUC, _OE_RATIO):
        needed["prevalence"] = True
    if goal.target == "no_worse_by":
        needed["changed"] = True
    goal.check(needed, f"of {metric}")
    unit, prevalence = _name_unit(metric), given.get("prevalence")
    kappa, shares = given.get("ratio", 1.0), {"rows": 1.0}
    if prevalence is not None:
        shares |= {"positives": prevalence, "negatives": 1 - prevalence}
    # Without a share, the segment is all rows, or all rows but the reference.
    share = given.get("share", 1 / (1 + kappa) if goal.compares else 1.0)
    counted = shares.get(unit, 0.0) * share
    none = pl.Series([None], dtype=pl.String)
    keys = {**dict.fromkeys((*AUDIT_KEYS, MODEL), none), "metric": metric, "unit": unit}
    return _lay_out(
        goal,
        pl.DataFrame(keys),
        have=np.array([np.nan]),
        found=_find_assumed(metric, goal),
        known=np.array([metric != _OE_RATIO or 0 < given["prevalence"] < 1]),
        kappa=np.array([kappa]),
        total=np.array([1 / counted if counted else np.nan]),
        observed=np.array([False]),
        times=given.get("deff", 1.0),
        note=f"assumed: {', '.join(f'{name} {each:g}' for name, each in given.items())}",
    )


def _find_assumed(metric: str, goal: _Goal) -> Array:
    """Return the rows that a target needs under the assumptions."""
    given = goal.given
    quantile = goal.quantile(np.array([goal.tests or 1.0]))
    if goal.target == "no_worse_by":
        return sample_sizes.find_rows_for_margin(
            given["changed"], goal.number, float(quantile[0]), goal.power
        )
    if metric == _OE_RATIO:
        # The error of its logarithm, on which limits are symmetric: sqrt((1 - p) / (n p))
        error = np.sqrt(1 / np.array([given["prevalence"]]) - 1)
        return sample_sizes.find_rows_for_error(error, math.asinh(goal.number), quantile)
    value, one = np.array([given["value"]]), np.ones(1)
    auc = None
    if metric == _AUC:
        shares = given["prevalence"], 1 - given["prevalence"]
        auc = sample_sizes.AucPlan(
            value, sample_sizes.square_placements(value), *shares, cautious=True
        )
    sizes = sample_sizes.RowSizes(sample_sizes.InverseSizes(one, one, one), auc)
    plan = sample_sizes.RowsPlan(value, sizes, np.array([given.get("ratio", 1.0)]), one)
    return _find_sized(value, plan, goal, quantile)


def _find_sized(value: Array, plan: sample_sizes.RowsPlan, goal: _Goal, quantile: Array) -> Array:
    """Return the rows that AUCs or rates need, given the ``value`` of the segment."""
    if goal.target == "half_width":
        return sample_sizes.find_rows_for_width(value, plan.sizes, goal.number, quantile)
    if goal.target == "gap":
        least = 0.0 if plan.sizes.plan is None else ROC_AUC.least
        return plan.find_rows_for_gap(goal.number, quantile, goal.power, least=least)
    return plan.find_rows_for_equivalence(goal.number, quantile, goal.power)


def _plan_table(
    given: pl.DataFrame | pl.LazyFrame, metric: str | None, goal: _Goal
) -> pl.DataFrame:
    """Return the rows of a comparison table that the target applies to."""
    table = collect(given) if isinstance(given, pl.LazyFrame) else given
    table = _select_rows(table, metric, goal)
    is_auc, is_rate = (table["metric"] == _AUC), table["metric"].is_in([*RATES])
    # A gap to all rows is a share of the gap to the other rows.
    includes_own = (table["reference"] == OVERALL).fill_null(value=False) & (is_auc | is_rate)
    includes_own &= goal.target != "half_width"
    table = table.with_columns(includes_own.alias("includes_own"))
    # The share of a segment in the pairs of all AUCs is unknown, and changes have the error of
    # their gap.
    is_sized = (is_rate | (is_auc & ~includes_own)) & (goal.target != "no_worse_by")
    found, known = np.full(table.height, np.nan), np.zeros(table.height, dtype=bool)
    for find, is_part in (
        (_find_for_sizes, is_sized & is_rate),
        (_find_for_sizes, is_sized & is_auc),
        (_find_for_errors, ~is_sized),
    ):
        places = np.flatnonzero(is_part.to_numpy())
        if len(places):
            found[places], known[places] = find(table[places], goal)
    n, gap, total = _arrays(table, "n", "gap", "total")
    units = {name: _name_unit(name) for name in table["metric"].unique()}
    unit = table["metric"].replace_strict(units, return_dtype=pl.String).alias("unit")
    return _lay_out(
        goal,
        table.select(*AUDIT_KEYS, MODEL, "metric").with_columns(unit),
        have=n,
        found=found,
        known=known,
        kappa=_find_kappa(table),
        total=total,
        observed=(np.abs(np.abs(gap) - goal.number) <= _SAME_GAP) & (goal.target == "gap"),
    )


def _arrays(table: pl.DataFrame, *names: str) -> list[Array]:
    """Return columns of numbers."""
    return [table[name].cast(pl.Float64).to_numpy() for name in names]


def _find_kappa(table: pl.DataFrame) -> Array:
    """Return the number of rows of the others, divided by the rows of the segment."""
    n, n_reference = _arrays(table, "n", "n_reference")
    return (n_reference - np.where(table["includes_own"].to_numpy(), n, 0.0)) / n


def _select_rows(table: pl.DataFrame, metric: str | None, goal: _Goal) -> pl.DataFrame:
    """Return the rows of the target's metrics, with the number of tests and the total rows."""
    missing = [name for name in COMPARISON_SCHEMA if name not in table.columns]
    if missing:
        msg = f"`table` must be a table of {_MAKERS}; found no column {missing[0]!r}"
        raise ValueError(msg)
    is_release = "n_changed" in table.columns
    if is_release != (goal.target == "no_worse_by"):
        rule = f"{'not ' if is_release else ''}come from `release_check` for `{goal.target}`"
        checks.reject("table", rule, "one that does" if is_release else "one that does not")
    held = set(table["metric"])
    known = sorted(held - {*comparisons.FAIRNESS, comparisons.IMPACT_RATIO, comparisons.SMD.name})
    chosen = known if metric is None else [goal.check_metric(metric, known, "of the table")]
    if not chosen:
        msg = f"`table` must have a metric for `{goal.target}`; found {sorted(held)}"
        raise ValueError(msg)
    is_impact, adjusted = pl.col("metric") == comparisons.IMPACT_RATIO, pl.col("p_adjusted")
    is_repeat = pl.col("reason").str.starts_with(comparisons.REPEATS).fill_null(value=False)
    several = (adjusted > pl.col("p_value")).any().over(is_impact)
    number = (adjusted.is_not_null() & ~is_repeat).sum().over(is_impact)
    # The selection rates of an attribute cover all its rows.
    selectable = pl.col("n").filter(pl.col("metric") == _SELECTION_RATE)
    # An audit has a row for all rows, even if segments are left out.
    is_overall = (pl.col("metric") == _SELECTION_RATE) & (pl.col("attribute") == OVERALL)
    overall = pl.col("n").filter(is_overall).first().over(MODEL)
    total = pl.coalesce(overall, selectable.sum().over("attribute", MODEL))
    table = table.with_columns(
        own_tests=pl.when(several).then(number).otherwise(1),
        total=pl.when(total > 0).then(total / pl.col("n")).cast(pl.Float64),
    ).filter(pl.col("metric").is_in(chosen))
    if goal.target == "half_width":
        return table
    is_compared = (
        pl.col("reason").ne_missing(comparisons.THE_REFERENCE) & pl.col("reference").is_not_null()
    )
    return table.filter(is_compared)


def _find_quantile(table: pl.DataFrame, goal: _Goal) -> Array:
    """Return the quantiles of limits, given the tests that share an error probability.

    Limits of a single value, and statements that must hold in all segments, do not share one.
    """
    if goal.tests is not None or not goal.compares:
        return goal.quantile(np.full(table.height, float(goal.tests or 1)))
    return goal.quantile(*_arrays(table, "own_tests"))


def _find_for_sizes(table: pl.DataFrame, goal: _Goal) -> tuple[Array, Mask]:
    """Return the rows that AUCs or rates need, and whether their effective sizes are known."""
    n, n_reference, value, reference = _arrays(
        table, "n", "n_reference", "value", "reference_value"
    )
    part = np.where(table["includes_own"].to_numpy(), 1 - n / n_reference, 1.0)
    other = (reference - (1 - part) * value) / part
    planned = value if goal.target == "half_width" else other
    are_aucs = bool((table["metric"] == _AUC).all())
    auc = (
        sample_sizes.AucPlan(planned, sample_sizes.square_placements(planned)) if are_aucs else None
    )
    low, high = _arrays(table, "value_low", "value_high")
    z = float(Level.of(goal.level).quantile())
    sizes = sample_sizes.RowSizes.from_limits(value, (low, high), n, z, auc)
    plan = sample_sizes.RowsPlan(other, sizes, _find_kappa(table), part)
    if goal.target == "gap":
        plan = _match_detectable(plan, table, goal)
    found = _find_sized(value, plan, goal, _find_quantile(table, goal))
    return found, ~np.isnan(plan.sizes.one_row.low) & ~np.isnan(planned)


def _match_detectable(
    plan: sample_sizes.RowsPlan, table: pl.DataFrame, goal: _Goal
) -> sample_sizes.RowsPlan:
    """Return a plan in which the detectable gap of a table needs exactly the table's rows.

    The size of a test is not in the table, but the gap that it detects is.
    """
    n, detectable, own_tests = _arrays(table, "n", "detectable", "own_tests")
    own, other = (plan.sizes.sample(plan.value, rows) for rows in (n, n * plan.kappa))
    gap = detectable / plan.part
    # Its reach is proportional to the root of the inverse sizes.
    factor = (gap / GapTest(own, other, goal.quantile(own_tests)).reach(gap)) ** 2
    one_row = plan.sizes.one_row
    test = one_row.test * np.where(np.isnan(factor), 1.0, factor)
    return replace(plan, sizes=replace(plan.sizes, one_row=one_row._replace(test=test)))


def _find_for_errors(table: pl.DataFrame, goal: _Goal) -> tuple[Array, Mask]:
    """Return the rows that other values need, whose errors fall with the root of the rows."""
    z = float(Level.of(goal.level).quantile())
    quantile = _find_quantile(table, goal)
    n, low, high = _arrays(table, "n", "gap_low", "gap_high")
    if goal.target == "half_width":
        low, high = _arrays(table, "value_low", "value_high")
    else:
        # A value within a margin is on the right side of both ends.
        is_within = goal.target == "equivalent_within"
        quantile = quantile + scipy.special.ndtri((1 + goal.power) / 2 if is_within else goal.power)
    error = (high - low) / (2 * z)
    if goal.target == "gap":
        detectable, own_tests = _arrays(table, "detectable", "own_tests")
        from_table = detectable / (goal.quantile(own_tests) + scipy.special.ndtri(POWER))
        error = np.where(np.isnan(from_table), error, from_table)
    found = sample_sizes.find_rows_for_error(error * np.sqrt(n), goal.number, quantile)
    return found, ~np.isnan(error)


def _lay_out(
    goal: _Goal,
    keys: pl.DataFrame,
    *,
    have: Array,
    found: Array,
    known: Mask,
    kappa: Array,
    total: Array,
    observed: Mask,
    times: float = 1.0,
    note: str = "",
) -> pl.DataFrame:
    """Return the table of the rows that are needed.

    ``keys`` has the columns up to the metric, and ``unit`` names the rows that are counted.
    ``have`` is the number of rows in the table, and ``found`` the number that the target needs: NaN
    if even `MOST_ROWS` are not enough, or if effective sizes are not ``known``. The reference needs
    ``kappa`` times as many, and there are ``total`` rows in all for each. A design multiplies the
    rows by ``times``. ``observed`` marks gaps that were observed, and ``note`` states the
    assumptions.
    """
    is_reachable = found <= sample_sizes.MOST_ROWS
    exact = np.where(is_reachable & known & ~observed, found * times, np.nan)
    notes = choose_texts(
        [
            (observed, "the gap that was observed: choose one that matters"),
            (~known, "undefined"),
            (~is_reachable, f"not reachable with {sample_sizes.MOST_ROWS:,} rows"),
            (True, note or None),
        ]
    )
    columns = {
        "target": pl.Series([goal.target] * len(exact), dtype=pl.String),
        "goal": np.full(len(exact), goal.number),
        "have": have,
        "factor": exact / have,
        "needed": _round_up(exact),
        "needed_reference": _round_up(
            exact * kappa if goal.compares else np.full(len(exact), np.nan)
        ),
        "needed_total": _round_up(exact * total),
        "sampling_unit": keys["unit"],
        "note": pl.Series(notes.tolist(), dtype=pl.String),
    }
    table = keys.drop("unit").hstack(pl.DataFrame(columns))
    return table.with_columns(pl.col(pl.Float64).fill_nan(None))


def _round_up(rows: Array) -> pl.Series:
    return pl.Series(np.ceil(rows * (1 - _ROUNDING)), nan_to_null=True).cast(pl.Int64)
