"""How many rows a width, a gap, a ratio, alike values, a margin or a calibration needs.

Each target is a condition on the number of rows of a segment that holds for all larger ones. What
a table says of its rows are the inverse sizes of its limits, which fall as rows are added.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

import polars as pl

from polars_wroc.counts.count_rules import BINS
from polars_wroc.counts.count_table import read_count_table
from polars_wroc.counts.score_sums import LOW
from polars_wroc.groups.categories import CROSSED
from polars_wroc.groups.comparisons import (
    COMPARABLE,
    COMPARISON_SCHEMA,
    FAIRNESS,
    IMPACT_RATIO,
    METRICS,
    REPEATS,
    SMD,
    THE_REFERENCE,
)
from polars_wroc.groups.row_search import (
    ASSUMES,
    MOST,
    OE_RATIO,
    Goal,
    compared,
    planned_sizes,
    searched,
    skew_of,
)
from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import AUDIT_KEYS, MISSING, MODEL, OVERALL
from polars_wroc.inputs.looks import Looks
from polars_wroc.inputs.rows import CLASSES
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.metrics.score_interval import (
    inverse_size,
    squared_placements,
)
from polars_wroc.plans.formulas import (
    Columns,
    Fields,
    Formula,
    first_of,
    in_columns,
    max_of,
    when,
)
from polars_wroc.plans.queries import collect
from polars_wroc.stats.difference_tests import POWER_QUANTILE, Deviations
from polars_wroc.stats.distributions import z_quantile
from polars_wroc.stats.proportions import TOLERANCE
from polars_wroc.thresholds.registry import RATES

# A smaller proportion of a number of rows is rounding error.
_ROUNDING = 1e-10
_SMALLER_CLASS = "smaller class"
_SELECTION_RATE = "selection_rate"
_AUC, _SLOPE = ROC_AUC.column, "calibration_slope"
# What is 1 unless something else is given.
_USUAL = ("ratio", "deff")
_MAKERS = "`group_gaps`, `impact_ratios`, `audit`, `release_check` or `score_counts`"
# Of a row: what its metric rests on and is compared with; inverse sizes and the error of one row;
# how many times more rows a design needs, the share of those that count, and rows in all for each.
_ROW: dict[str, type[pl.DataType]] = {
    **dict.fromkeys((*AUDIT_KEYS, MODEL, "metric"), pl.String),
    **dict.fromkeys(("have", "value", "other", "kappa", "low", "high", "test"), pl.Float64),
    **dict.fromkeys(("error", "gap", "part", "deff", "of_class", "total"), pl.Float64),
    # Of AUCs: what is planned with, the mean square of placement values, and the classes of a row.
    **dict.fromkeys(("auc", "second", *CLASSES), pl.Float64),
    "tests": pl.Int64,
    **dict.fromkeys(("unit", "note"), pl.String),
}


def rows_needed(
    table: pl.DataFrame | pl.LazyFrame | None = None,
    *,
    metric: str | None = None,
    value: float | None = None,
    prevalence: float | None = None,
    share: float | None = None,
    ratio: float = 1.0,
    half_width: float | None = None,
    gap: float | None = None,
    ratio_below: float | None = None,
    impact: float | None = None,
    alike_within: float | None = None,
    no_worse_by: float | None = None,
    changed: float | None = None,
    se: float | None = None,
    power: float = 0.8,
    level: float = 0.95,
    tests: int | None = None,
    deff: float = 1.0,
) -> pl.DataFrame:
    """Count the rows that one target needs, from assumptions or for each segment of a table.

    Parameters
    ----------
    table
        The comparison table of `group_gaps`, `impact_ratios` or `audit`: a row per segment and
        metric; or `score_counts` by score, for the calibration of each group. A LazyFrame is
        collected. None: one row from assumptions.
    metric
        ``"auc"``, a rate of `threshold_metrics` or ``"impact_ratio"``; for the calibration
        ``"calibration_slope"``, from counts, or ``"oe_ratio"``. None: all of a comparison table.
    value, prevalence, share, ratio
        Without a table: the rate or AUC that is expected, of two that are compared that of the
        reference; the proportion of positives; the segment's share of all rows, by default all, or
        all without the reference; and the number of rows of the reference for each of the segment.
    half_width
        Target: half the width of the confidence interval, for a calibration too.
    gap
        Target: a gap below the reference that is found with the given power. Choose one that
        matters: whether the gap that was observed would be found again says its p-value.
    ratio_below, impact
        Target: an impact ratio shown to be below this bound, such as 0.8, with the given power if
        it is truly ``impact``; or to be above it, if ``impact`` is.
    alike_within
        Target: equal values are shown to be alike within this margin with the given power.
    no_worse_by, changed
        Target: a new score that is as good as the old one is shown to be no worse by more than
        this margin. Without a table ``changed`` is the share of rows whose decision differs.
    se
        Target: the standard error of the calibration slope, or of the logarithm of the
        observed-to-expected ratio.
    power
        Probability to show it, from 0.5 to 1.
    level, tests
        Confidence level, and the number of tests that share the error ``1 - level``; None: 1, or
        those of the table, whose level must be given if it is not 0.95.
    deff
        Without a table: how many times more rows a design needs, such as ``1 + (m - 1) * icc`` for
        clusters of m rows. A table shows its own.

    Returns
    -------
    pl.DataFrame
        One row, or one per segment, score and metric:

        - ``attribute, segment, model, metric`` (String): as in the table; null without one.
        - ``target`` (String), ``goal`` (Float64): the target and its number.
        - ``have`` (Float64): rows that the value rests on, ``n`` of the table; ``factor``
          (Float64): how many times as many are needed.
        - ``needed`` (Int64): rows that the segment needs, of the ``sampling_unit`` (String): its
          ``"positives"``, ``"negatives"``, ``"selected"``, ``"rejected"``, all ``"rows"``, or for
          an AUC those of the ``"smaller class"``.
        - ``needed_reference`` (Int64): those of the reference, which grows as the segment does;
          null where nothing is compared.
        - ``needed_total`` (Int64): rows in all, if the prevalence is given or the table has
          selection rates.
        - ``note`` (String): what was assumed, or why there is no number: what it rests on is
          undefined, or not even a thousand million rows are enough.

    Raises
    ------
    TypeError, ValueError
        For none or several targets, metrics that a target does not apply to, and wrong numbers.

    Notes
    -----
    The gap of rates has the formula of [1]_, whose inverse is the ``detectable`` gap of a table:
    for that gap the factor is 1. From a table the effective sizes are those of its limits, with
    weights and design; they grow with the rows, in the reference too. How those of an AUC grow is
    planned for normal scores with equal variances in both classes, as all of it is without a table.
    Alike are values by two one-sided tests [2]_; the error of a slope follows from the information
    of the scores [3]_. Power is that of one comparison, not of all together.

    References
    ----------
    .. [1] Fleiss, J. L., Tytun, A. & Ury, H. K. (1980), Biometrics 36, 343-346.
    .. [2] Schuirmann, D. J. (1987), J. Pharmacokinet. Biopharm. 15, 657-680.
    .. [3] Riley, R. D. et al. (2021), Statistics in Medicine 40, 4230-4251.

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
        "ratio_below": ratio_below,
        "alike_within": alike_within,
        "no_worse_by": no_worse_by,
        "se": se,
    }
    numbers = {"value": value, "prevalence": prevalence, "share": share, "ratio": ratio}
    numbers |= {"impact": impact, "changed": changed, "deff": deff}
    if isinstance(level, Looks) and table is None:
        level = level.at(level.planned)
    goal = _read_goal(targets, numbers, arguments.level(level), power, tests)
    if table is None:
        return _solved(_of_assumptions(metric, goal), goal)
    if not isinstance(table, pl.DataFrame | pl.LazyFrame):
        arguments.reject_type("table", f"be None or a table of {_MAKERS}", table)
    goal.check({name: name == goal.assumes == "impact" for name in numbers}, "of a table")
    held = {*table.lazy().collect_schema()}
    read = _of_counts if BINS in held or {"score", "n_pos"} <= held else _of_comparisons
    return _solved(read(table, metric, goal), goal)


def _read_goal(
    targets: Mapping[str, float | None],
    numbers: Mapping[str, float | None],
    level: float,
    power: float,
    tests: int | None,
) -> Goal:
    """Check that there is one target, and all numbers."""
    names = arguments.given(**targets)
    if len(names) != 1:
        listed = ", ".join(f"`{name}`" for name in targets)
        msg = f"exactly one of {listed} must be given; found {arguments.named(names)}"
        raise ValueError(msg)
    (target,) = names
    most = math.inf if target in ("half_width", "se") else 1
    number = arguments.number(target, targets[target], low=0, high=most, open_ends=True)
    given = {}
    for name, each in numbers.items():
        unbounded, is_usual = name in ("ratio", "impact", "deff"), name in _USUAL and each == 1
        if each is not None and not is_usual:
            most, is_rate = math.inf if unbounded else 1, name in ("value", "prevalence")
            given[name] = arguments.number(name, each, low=0, high=most, open_ends=not is_rate)
    power = arguments.number("power", power, low=0.5, high=1, open_ends=True)
    if tests is not None:
        tests = arguments.whole_number("tests", tests, low=1)
    goal = Goal(target, number, given, level, power, tests)
    goal.check({name: False for owner, name in ASSUMES.items() if owner != target}, "at all")
    return goal


def _unit(metric: str) -> str:
    """Name the rows that decide a metric."""
    kind = (COMPARABLE | METRICS).get(metric)
    sizes = ("rows",) if kind is None else kind.sample_sizes
    return sizes[0] if len(sizes) == 1 else _SMALLER_CLASS


def _of_assumptions(metric: str | None, goal: Goal) -> pl.DataFrame:
    """Make the row of assumptions."""
    target, given = goal.target, goal.given
    rates = {"se": [], "ratio_below": [*RATES, IMPACT_RATIO]}.get(target, [*RATES])
    areas = [_AUC] if target in ("half_width", "gap", "alike_within") else []
    ratios = [OE_RATIO] if target in ("half_width", "se") else []
    metric = goal.check_metric(metric, [*areas, *rates, *ratios], "without a table")
    expected, is_auc, assumes = metric == OE_RATIO, metric == _AUC, goal.assumes
    needed = {"value": not expected and assumes != "changed"}
    needed |= ({"prevalence": True} if expected or is_auc else {}) | (
        {assumes: True} if assumes else {}
    )
    goal.check(needed, f"of {metric}")
    unit, prevalence, value = _unit(metric), given.get("prevalence"), given.get("value")
    shares, of_class, error = {"rows": 1.0, _SMALLER_CLASS: 1.0}, 1.0, None
    if prevalence is not None:
        shares |= {"positives": prevalence, "negatives": 1 - prevalence}
        of_class = min(prevalence, 1 - prevalence) if is_auc else 1.0
        error = math.sqrt(1 / prevalence - 1) if expected and 0 < prevalence < 1 else None
    share = 1 / (1 + given.get("ratio", 1.0)) if goal.compares else 1.0
    counted = shares.get(unit, 0.0) * given.get("share", share)
    row = {
        **dict.fromkeys(("low", "high", "test"), None if expected else 1.0),
        "metric": metric,
        "unit": unit,
        "error": error,
        "tests": goal.tests or 1,
        "value": value,
        "other": value,
        "kappa": given.get("ratio", 1.0),
        "deff": given.get("deff", 1.0),
        "of_class": of_class,
        "part": 1.0,
        "total": 1 / counted if counted else None,
        **({"auc": value, "pos": prevalence, "neg": 1 - (prevalence or 0.0)} if is_auc else {}),
        "note": f"assumed: {', '.join(f'{name} {each:g}' for name, each in given.items())}",
    }
    return _planned(pl.DataFrame([{name: row.get(name) for name in _ROW}], _ROW))


def _planned(table: pl.DataFrame) -> pl.DataFrame:
    """Add what scores of AUCs are planned to be: normal, with equal variances in both classes."""
    complements = (1 - table["auc"]).to_list()
    squares = [None if each is None else squared_placements(each) for each in complements]
    return table.with_columns(pl.Series("second", squares, pl.Float64))


def _of_counts(counts: pl.DataFrame | pl.LazyFrame, metric: str | None, goal: Goal) -> pl.DataFrame:
    """Make a row of each group of counts: the information of a row on its calibration."""
    state = read_count_table("table", counts)
    known = [_SLOPE, OE_RATIO] if goal.target in ("half_width", "se") else []
    metric = goal.check_metric(metric, known, "from counts")
    rows = collect(state.frame)
    if state.binned or not rows[LOW].is_between(0, 1).all():
        low, high = rows.select(pl.col(LOW).min(), pl.col(LOW).max().alias("high")).row(0)
        found = "bins" if state.binned else f"{low} to {high}"
        msg = f"`table` must have counts by scores from 0 to 1 for {metric}; found {found}"
        raise ValueError(msg)
    n, weight, squares = (
        pl.sum_horizontal(f"{of}_{side}" for side in CLASSES) for of in ("n", "w", "w2")
    )
    p, observed = pl.col(LOW), pl.col("w_pos").sum() / weight.sum()
    # A score of 0 or 1 has no variance, and a logit without end.
    logit = pl.when((p > 0) & (p < 1)).then((p / (1 - p)).log()).otherwise(0.0)
    i = [(weight * p * (1 - p) * logit**power).sum() / weight.sum() for power in range(3)]
    square = i[0] / (i[0] * i[2] - i[1] ** 2) if metric == _SLOPE else (1 - observed) / observed
    # Unequal weights need more rows, by Kish's factor.
    kish = n.sum() * squares.sum() / weight.sum() ** 2
    keys = [key for key in state.keys if key != MODEL]
    texts = [pl.col(key).cast(pl.String).fill_null(MISSING) for key in keys]
    named = {
        AUDIT_KEYS[0]: pl.lit(CROSSED.join(state.names[key] for key in keys) or OVERALL),
        AUDIT_KEYS[1]: pl.concat_str(texts, separator=", ") if keys else pl.lit(OVERALL),
        MODEL: pl.col(MODEL) if MODEL in state.keys else pl.lit(None, pl.String),
    }
    table = (
        rows.with_columns(**named)
        .group_by(*named, maintain_order=True)
        .agg(have=n.sum(), error=(square * kish).sqrt())
    )
    total = pl.col("have").sum().over(MODEL) / pl.col("have")
    return _rows(
        table.with_columns(
            total=total, tests=goal.tests or 1, metric=pl.lit(metric), unit=pl.lit("rows")
        )
    )


def _rows(table: pl.DataFrame) -> pl.DataFrame:
    """Lay out rows; what they do not have is null, and no design needs more rows."""
    ones = {name: pl.lit(1.0) for name in ("deff", "of_class", "part") if name not in table.columns}
    table = table.with_columns(**ones)
    given = (
        (pl.col(name) if name in table.columns else pl.lit(None)).cast(dtype).alias(name)
        for name, dtype in _ROW.items()
    )
    # Numbers that are undefined may be NaN here.
    return table.select(given).with_columns(pl.col(pl.Float64).fill_nan(None))


def _of_comparisons(
    given: pl.DataFrame | pl.LazyFrame, metric: str | None, goal: Goal
) -> pl.DataFrame:
    """Read the rows of a comparison table that the target applies to."""
    table = collect(given) if isinstance(given, pl.LazyFrame) else given
    missing = [name for name in COMPARISON_SCHEMA if name not in table.columns]
    if missing:
        msg = f"`table` must be a table of {_MAKERS}; found no column {missing[0]!r}"
        raise ValueError(msg)
    of_release = "n_changed" in table.columns
    if of_release != (goal.target == "no_worse_by"):
        rule = f"{'not ' * of_release}come from `release_check` for `{goal.target}`"
        arguments.reject("table", rule, f"one that does{' not' * (not of_release)}")
    held = set(table["metric"])
    if goal.target == "ratio_below":
        known = [name for name in (*RATES, IMPACT_RATIO) if name in held]
    else:
        without = [] if goal.target == "se" else {*FAIRNESS, IMPACT_RATIO, SMD.name}
        known = sorted(held - {*without}) if without else []
    chosen = known if metric is None else [goal.check_metric(metric, known, "of the table")]
    if not chosen:
        msg = f"`table` must have a metric for `{goal.target}`; found {sorted(held)}"
        raise ValueError(msg)
    of_impact, adjusted = pl.col("metric") == IMPACT_RATIO, pl.col("p_adjusted")
    repeated = pl.col("reason").str.starts_with(REPEATS).fill_null(value=False)
    several = (adjusted > pl.col("p_value")).any().over(of_impact)
    number = (adjusted.is_not_null() & ~repeated).sum().over(of_impact)
    # All rows of an attribute are in its selection rates.
    total = pl.col("n").filter(pl.col("metric") == _SELECTION_RATE).sum().over("attribute", MODEL)
    n, sized = pl.col("n"), pl.col("metric").is_in([_AUC, *RATES, IMPACT_RATIO])
    # A gap to all rows is a share of that to the others.
    of_all = sized & (pl.col("reference") == OVERALL) & (goal.target != "half_width")
    part = pl.when(of_all).then(1 - n / pl.col("n_reference")).otherwise(1.0)
    others = pl.col("n_reference") - pl.when(of_all).then(n).otherwise(0)
    table = table.with_columns(
        own_tests=pl.when(several).then(number).otherwise(1),
        total=pl.when(total > 0).then(total / n),
        have=n,
        part=part,
        kappa=others / n,
        other=(pl.col("reference_value") - (1 - part) * pl.col("value")) / part,
        # The share in the pairs of all AUCs is not known.
        sized=sized & (goal.target != "no_worse_by") & ~(of_all & (pl.col("metric") == _AUC)),
    ).filter(pl.col("metric").is_in(chosen))
    units = {name: _unit(name) for name in chosen}
    table = table.with_columns(unit=pl.col("metric").replace_strict(units, return_dtype=pl.String))
    if goal.target != "half_width":
        is_compared = pl.col("reason").ne_missing(THE_REFERENCE) & pl.col("reference").is_not_null()
        table = table.filter(is_compared)
    own_tests = table["own_tests"]
    table = table.with_columns(
        # Limits of one value, and what must hold in all segments, do not share an error.
        tests=goal.tests or (own_tests if goal.compares else 1),
        z=pl.Series(map(goal.quantile, own_tests), dtype=pl.Float64),
    )
    planned = "value" if goal.target == "half_width" else "other"
    auc = pl.when(pl.col("sized") & (pl.col("metric") == _AUC)).then(planned)
    table = table.with_columns(auc=auc, **dict.fromkeys(CLASSES, pl.lit(1.0)))
    return _rows(in_columns(_planned(table), [partial(_measured, goal=goal)]))


def _measured(field: Fields, goal: Goal) -> Formula[Columns]:
    """Add the inverse sizes of one row, and the error that one row would have."""
    z, n, value = z_quantile(goal.level), field("have"), field("value")
    skew = skew_of(field)
    low, high = yield [
        inverse_size(value, 1 - value, field("value_low"), skew, z),
        inverse_size(1 - value, value, 1 - field("value_high"), skew, z),
    ]
    low, high, test = yield [first_of(low, high), first_of(high, low), max_of(low, high)]
    ends = "value" if goal.target == "half_width" else "gap"
    error = (field(f"{ends}_high") - field(f"{ends}_low")) / (2 * z)
    plan = yield from planned_sizes(field, n)
    sized, is_planned = when(field("sized")), when(field("auc").is_not_null())
    if goal.target == "gap":
        # What the table says is found needs the rows that there are.
        found, z_of_table, kappa = field("detectable"), field("z"), field("kappa")
        more = yield from planned_sizes(field, n * kappa)
        other = test * is_planned.then(more[2] / plan[2]).otherwise(1 / kappa)
        gap = found / field("part")
        deviations = yield from Deviations.of(compared(field, (test, other)), z_of_table)
        of_test, of_power = deviations.at(gap)
        test = first_of(test * (gap / (of_test + of_power)) ** 2, test)
        error = first_of(found / (z_of_table + POWER_QUANTILE), error)
    sizes_of_one: Columns = {
        name: sized.then(is_planned.then(one / planned).otherwise(one * n))
        for name, one, planned in zip(("low", "high", "test"), (low, high, test), plan, strict=True)
    }
    of_others = when(~field("sized")).then(error * n.sqrt())
    return {**sizes_of_one, "error": of_others}


def _solved(rows: pl.DataFrame, goal: Goal) -> pl.DataFrame:
    """Search the number of rows of each row, and lay out the result."""
    tests = rows["tests"]
    rows = rows.with_columns(
        pl.Series("z", [goal.quantile(each) for each in tests], pl.Float64),
        pl.Series("z_one", [goal.quantile(each, tails=1) for each in tests], pl.Float64),
    )
    # The gap that was observed says nothing about the rows that another one needs.
    chance = (pl.col("gap").abs() - goal.number).abs() <= TOLERANCE
    observed = (goal.target == "gap") & chance.fill_null(value=False)
    # Sizes of AUCs take long to plan.
    placed, is_auc = rows.with_row_index("place"), pl.col("auc").is_not_null()
    parts = {True: placed.filter(is_auc), False: placed.filter(~is_auc)}
    found = pl.concat(
        in_columns(part, [partial(searched, goal=goal, has_aucs=has_aucs)])
        for has_aucs, part in parts.items()
    ).sort("place")
    exact = pl.when(~observed & (pl.col("found") <= MOST)).then(pl.col("found") * pl.col("deff"))
    needed = {
        "needed": pl.col("of_class"),
        "needed_reference": pl.when(goal.compares).then(pl.col("of_class") * pl.col("kappa")),
        "needed_total": pl.col("total"),
    }
    known = pl.all_horizontal(pl.col(name).is_not_null() for name in _rests_on(goal))
    why = (
        pl.when(observed)
        .then(pl.lit("the gap that was observed: choose one that matters"))
        .when(pl.col("error").is_null() & ~known)
        .then(pl.lit("undefined"))
        .when(pl.col("found").is_null() | (pl.col("found") > MOST))
        .then(pl.lit(f"not reachable with {MOST:,} rows"))
        .otherwise("note")
    )
    return found.select(
        *AUDIT_KEYS,
        MODEL,
        "metric",
        pl.lit(goal.target).alias("target"),
        pl.lit(goal.number).alias("goal"),
        "have",
        (exact / pl.col("have")).alias("factor"),
        *(
            (exact * times * (1 - _ROUNDING)).ceil().cast(pl.Int64).alias(name)
            for name, times in needed.items()
        ),
        pl.col("unit").alias("sampling_unit"),
        why.alias("note"),
    )


def _rests_on(goal: Goal) -> list[str]:
    """Name what the search needs."""
    if goal.target == "no_worse_by":
        return ["test"]
    return ["low", "value" if goal.target == "half_width" else "other"]
