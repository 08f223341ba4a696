"""Metrics over time: each period of a segment against those before, and the shift of its scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from polars_wroc.counts.count_table import CountTable
from polars_wroc.groups.categories import (
    CategoryReference,
    Grouping,
    period_of,
    read_attributes,
)
from polars_wroc.groups.comparison_tests import GapTests, verdict_of
from polars_wroc.groups.comparisons import (
    COMPARABLE,
    NO_VARIANCE,
    OF_GROUP,
    OF_REFERENCE,
    PLACE,
    SHIFTS,
    UNDEFINED,
    comparison_table,
    few_rows,
    score_name,
    sum_of_earlier_over,
)
from polars_wroc.groups.gaps import GroupGaps, check_margin
from polars_wroc.groups.group_gaps import check_metrics, read_metrics
from polars_wroc.groups.references import Reference, Rest, UnitWeights
from polars_wroc.inputs import arguments
from polars_wroc.inputs.arguments import MARGIN
from polars_wroc.inputs.columns import AUDIT_KEYS, WEIGHT, ZERO_LABEL, IntoColumn, IntoWeight
from polars_wroc.inputs.decisions import score_or_decisions
from polars_wroc.inputs.designs import Design, read_design
from polars_wroc.inputs.expressions import as_column, named_columns, typed_column
from polars_wroc.inputs.frames import read_rows, require_texts
from polars_wroc.inputs.rows import IntoColumns, Rows, RowSource, read_source
from polars_wroc.metrics.auc_variance import units_of
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.plans.formulas import Columns, Fields
from polars_wroc.plans.queries import FrameT, is_eager, join_on_keys, like_input
from polars_wroc.ranking.placements import reduce_placed, row_curve
from polars_wroc.ranking.sorting import PlacedRows
from polars_wroc.stats.difference_tests import Adjust, adjusted, check_options
from polars_wroc.stats.distributions import (
    LEAST_KOLMOGOROV,
    chi_squared_p_value,
    chi_squared_quantile,
    kolmogorov_quantile,
    kolmogorov_tail,
)
from polars_wroc.thresholds.registry import GAP_RATES
from polars_wroc.thresholds.rules import Threshold, read_threshold
from polars_wroc.thresholds.search import common_threshold

PERIOD, CRITICAL = "period", "critical"
# The reason of rows that are compared with nothing.
FIRST = "the first period"
_SELECTION_RATE = "selection_rate"
_LATER, _BIN = "__later", "__bin"
_TENTHS = 10
# How much larger PSI is in few rows, times the tenths and the inverse size: found by simulation.
_SKEWNESS = 0.75
# What a share of a sum may be below a whole number of tenths by rounding.
_ROUNDING = 1e-9

# Of the inverse size of an AUC: more than the rounding error of a likelihood, and no more.
_NEGLIGIBLE = 1e-5


def trend(
    frame: FrameT,
    label: IntoColumn | None,
    score: IntoColumns | None = None,
    *,
    over: IntoColumn,
    every: str | None = None,
    attributes: IntoColumns | None = None,
    threshold: Threshold | None = None,
    selected: IntoColumn | None = None,
    metrics: Sequence[str] | None = None,
    weight: IntoWeight | None = None,
    pos_label: object = None,
    margin: float = MARGIN,
    min_rows: int = 0,
    level: float = 0.95,
    adjust: Adjust = "holm",
    design: Design | None = None,
) -> FrameT:
    """Metrics of all rows and of each segment in each period, compared with the periods before.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, pos_label
        As for `summary`. Without a ``label``, if it is None, there are the selection rate and the
        shift of the scores, which do not need one. Without a ``score`` there are the ``selected``.
    over
        Column or expression of the time of a row, whose values are the periods: dates, numbers or
        anything else that can be sorted. Rows in which it is null are left out.
    every
        Length of a period, such as ``"1mo"``, ``"1w"`` or ``"1q"``, to which dates and times are
        truncated, as by ``dt.truncate`` of Polars. None takes the values as they are.
    attributes
        One or several columns or expressions, whose segments are followed one by one besides all
        rows together.
    threshold, selected, design
        As for `group_gaps`. Give clusters if people, or other units, come again in later periods.
    metrics
        Names of metrics of `group_gaps`, and ``"shift_auc"``, ``"score_ks"`` and ``"psi"``; None
        for the AUC, with ``threshold`` or ``selected`` its rates, and these three.
    margin, min_rows, level, adjust
        As for `group_gaps`. Tests are adjusted for those of one table; for a new table in each of
        12 months, ``level=1 - 0.05 / 12`` errs, in each family, in at most 5 % of years.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        The comparison table of `group_gaps`, with one row per segment, score, period and metric, in
        the order of the arguments, of segments and of time, all rows first (``"overall"``). The
        ``reference`` is ``"before"``: all earlier periods of the segment together. In its first
        period it is null, with all columns of the comparison, and the ``reason`` is ``"the first
        period"``. There follow ``period``, in the type of ``over``, and ``critical``.

        The shift of the scores needs no label, and rests on all rows with a score; ``n`` are those
        of the period, ``n_reference`` those before:

        - ``shift_auc``: probability that a score of the period is above one before it, ties
          counting half; ``reference_value`` is 0.5.
        - ``score_ks``: the largest distance between the distributions of the scores before and
          after. ``reference_value`` is 0, and neither value nor gap has limits.
        - ``psi``: the population stability index, the sum of ``(after - before) * log(after /
          before)`` of the shares of tenths, whose ends are scores that divide the weight before
          into equal parts. Scores that tie are in the same tenth, so that there may be fewer. Null,
          because infinite, where one of them has no rows of the period.

        ``critical`` (Float64) is what KS or PSI exceed without any change with a probability of
        ``1 - level``, before any adjustment; null for other metrics, and with a ``design``, by
        which neither is tested (``reason`` ``"no variance"``).

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `group_gaps`; also for ``every`` of something that is not a date or a time.

    Notes
    -----
    An AUC is compared with the mean of the AUCs of the periods before, weighted by their pairs, and
    other metrics with those of all rows before, all with the limits and tests of `group_gaps`.
    ``p_adjusted`` is for all of these metrics in all segments and periods together; each of the
    three measures of a shift is a family of its own, because they ask the same.

    With Kish's effective sizes n and m of the period and of those before, ``v = 1/n + 1/m`` and B
    tenths, PSI divided by ``v * (1 + 0.75 * B * v)`` is compared with chi-squared of B - 1 degrees
    of freedom [1]_; the second factor, found by simulation, makes up for the skewness of few rows.
    KS has the distribution of Kolmogorov with Stephens' factor for few rows [2]_. In simulations
    without any change and with 75 to 1,000 rows in a period, PSI erred in 4.2 to 5.4 % with equal
    weights and in 2.6 to 4.3 % with lognormal ones, and KS in 4 to 5.7 %. With more than some ten
    thousand rows tests find shifts that do not matter: look at the values too.

    The shift uses the rows of a period once for each later one; counts in bins take less time.

    References
    ----------
    .. [1] Yurdakul, B., Naranjo, J. (2020), Journal of Risk Model Validation 14, 89-100.
    .. [2] Stephens, M. A. (1970), Journal of the Royal Statistical Society B 32, 115-122.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame(
    ...     {
    ...         "month": [1] * 4 + [2] * 4,
    ...         "y": [1, 1, 0, 0, 1, 0, 1, 0],
    ...         "s": [0.9, 0.6, 0.5, 0.2, 0.8, 0.7, 0.4, 0.3],
    ...     }
    ... )
    >>> table = wroc.trend(df, "y", "s", over="month", metrics=["auc", "shift_auc"])
    >>> table.select("period", "metric", "value", "reference_value", "gap", "reason")
    shape: (4, 6)
    ┌────────┬───────────┬───────┬─────────────────┬───────┬──────────────────┐
    │ period ┆ metric    ┆ value ┆ reference_value ┆ gap   ┆ reason           │
    │ ---    ┆ ---       ┆ ---   ┆ ---             ┆ ---   ┆ ---              │
    │ i64    ┆ str       ┆ f64   ┆ f64             ┆ f64   ┆ str              │
    ╞════════╪═══════════╪═══════╪═════════════════╪═══════╪══════════════════╡
    │ 1      ┆ auc       ┆ 1.0   ┆ null            ┆ null  ┆ the first period │
    │ 1      ┆ shift_auc ┆ null  ┆ null            ┆ null  ┆ the first period │
    │ 2      ┆ auc       ┆ 0.75  ┆ 1.0             ┆ -0.25 ┆ null             │
    │ 2      ┆ shift_auc ┆ 0.5   ┆ 0.5             ┆ 0.0   ┆ null             │
    └────────┴───────────┴───────┴─────────────────┴───────┴──────────────────┘
    """
    # Their clock is the rows of the whole table; a period begins anew.
    arguments.refuse_looks(level, "periods, each of which begins anew")
    level = check_options(level, adjust)
    choice, survey = read_threshold(threshold, selected), read_design(design)
    source = read_source(frame)
    if isinstance(source, CountTable) and not source.labelled:
        label = None
    compared: tuple[str, ...]
    shifts: tuple[str, ...]
    compared, shifts = _read_metrics(
        metrics, label=label is not None, score=score is not None, decided=choice is not None
    )
    name = score_name(source, score)
    score = score_or_decisions(source, score, selected)
    groups = _with_periods(source, attributes, over, every)

    def read(label: IntoColumn | None, selected: IntoColumn | None = None) -> Rows:
        given = source, label, score, weight, groups, pos_label if label is not None else None
        rows: Rows = read_rows(*given, survey=survey, selected=selected, called="attributes")
        return rows.with_values([rows.group_names[-1]])

    rows: Rows = read(label, selected)
    of_scores: Rows = rows
    if shifts and label is not None and not isinstance(source, RowSource):
        of_scores = read(None)
    *attribute_keys, period = rows.group_keys
    require_texts(rows.regrouped([period]), "over")
    divisions = [Grouping()]
    if attribute_keys:
        divisions += read_attributes(rows.regrouped(attribute_keys), intersections=False)
    tests = GapTests(
        level,
        adjust,
        arguments.whole_number("min_rows", min_rows, low=0),
        margin=check_margin(margin),
        designed=survey.given,
    )

    def gaps(rows: Rows, kind: str, tests: GapTests, thresholds: pl.LazyFrame | None) -> GroupGaps:
        to = _OverTime(kind, {})
        return GroupGaps(rows, divisions, to, thresholds, tests, is_eager(frame), (period,))

    parts = []
    if compared:
        thresholds = None if choice is None else common_threshold(rows, choice)
        of_rates = tests._replace(metrics=compared, rates_alone=ROC_AUC.column not in compared)
        parts.append(gaps(rows, "before", of_rates, thresholds).table())
    keys = [*AUDIT_KEYS, period, *rows.model_keys]
    if shifts:
        moved = _after_and_before(of_scores, period)
        aucs = gaps(moved, "chance", tests, None).table()
        parts += _shifts(aucs, moved, divisions, keys, tests)
    seen = (of_scores if shifts else rows).frame
    table = _in_order(parts, seen, divisions, keys, (*compared, *shifts))
    return like_input(frame, comparison_table(table, rows, name, (PERIOD, CRITICAL)))


def _in_order(
    parts: Sequence[pl.LazyFrame],
    seen: pl.LazyFrame,
    divisions: Sequence[Grouping],
    keys: Sequence[str],
    metrics: Sequence[str],
) -> pl.LazyFrame:
    """Stack the rows of segments and periods that were ``seen``, and mark the first periods."""
    _, _, period, *models = keys
    orders = [(each, [*each.keys, *models, period]) for each in divisions]
    places = pl.concat(each.named(seen.select(by).unique().sort(by)) for each, by in orders)
    table = pl.concat([part.drop(PLACE, strict=False) for part in parts], how="diagonal")
    table = table.filter(pl.col("metric").is_in(metrics))
    table = join_on_keys(table, places.with_row_index(PLACE), keys, how="inner")
    first = pl.col(PLACE) == pl.col(PLACE).min().over(*AUDIT_KEYS, *models)
    none = pl.lit(None, pl.Float64).alias(CRITICAL)
    return table.with_columns(
        pl.when(~first).then(pl.col("reference", "n_reference", "reference_value")),
        pl.when(first).then(pl.lit(FIRST)).otherwise("reason").alias("reason"),
        pl.col(period).alias(PERIOD),
        *([] if CRITICAL in table.collect_schema() else [none]),
    )


def _read_metrics(
    metrics: Sequence[str] | None, *, label: bool, score: bool, decided: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Read which metrics are compared, and which measures of a shift there are."""
    if metrics is None:
        rates = [*GAP_RATES] if label else [_SELECTION_RATE]
        of_score = [ROC_AUC.column] if label and score else []
        return (*of_score, *(rates if decided else [])), tuple(SHIFTS) if score else ()
    asked = read_metrics(metrics, [*COMPARABLE, *SHIFTS])
    shifts = tuple(name for name in asked if name in SHIFTS)
    compared = [name for name in asked if name in COMPARABLE]
    check_metrics(compared, has_score=score, has_decisions=decided)
    if shifts and not score:
        msg = f"`metrics` must come with a `score` for {shifts[0]}; found none"
        raise ValueError(msg)
    for name in compared:
        if not label and name != _SELECTION_RATE:
            msg = f"`metrics` must come with a `label` for {name}; found none"
            raise ValueError(msg)
    return tuple(compared), shifts


def _with_periods(
    source: pl.DataFrame | pl.LazyFrame | RowSource,
    attributes: IntoColumns | None,
    over: IntoColumn,
    every: str | None,
) -> list[pl.Expr]:
    """Return the columns of attributes, and last that of periods."""
    table = source.groups if isinstance(source, RowSource) else source.lazy()
    given = {} if attributes is None else named_columns("attributes", attributes, table)
    time = typed_column("over", as_column("over", over), table)
    period = time.column if every is None else period_of(time, every)
    return [*(column.alias(name) for name, column in given.items()), period]


def _after_and_before(rows: Rows, period: str) -> Rows:
    """Repeat the rows for each period from theirs on, as positive in theirs, negative in later."""
    later = rows.frame.select(pl.col(period).alias(_LATER)).unique()
    weight, now = pl.col(WEIGHT).abs(), pl.col(period) == pl.col(_LATER)
    repeated = (
        rows.frame.join(later, how="cross")
        .filter(pl.col(period) <= pl.col(_LATER))
        .with_columns(
            pl.when(now).then(weight).otherwise(-weight).alias(WEIGHT),
            pl.col(_LATER).alias(period),
        )
    )
    return replace(rows, frame=repeated.drop(_LATER, ZERO_LABEL, strict=False))


def _shifts(
    aucs: pl.LazyFrame,
    rows: Rows,
    divisions: Sequence[Grouping],
    keys: Sequence[str],
    tests: GapTests,
) -> list[pl.LazyFrame]:
    """Name the AUCs of rows after and before, and add KS and PSI."""
    distances = pl.concat(
        division.named(_distances(rows.regrouped([*division.keys, keys[2]])))
        for division in divisions
    ).cache()
    sizes = distances.select(*keys, "n", "n_reference")
    aucs = join_on_keys(aucs.drop("n", "n_reference"), sizes, keys)
    parts = [aucs.with_columns(pl.lit("shift_auc").alias("metric"))]
    for metric, step in (("score_ks", _kolmogorov), ("psi", _chi_squared)):
        statistic, p_value, critical = step(tests.level)
        few = pl.min_horizontal("n", "n_reference") < tests.min_rows
        known = pl.col("value").is_not_null() & (pl.col("n_eff") > 0) & pl.lit(not tests.designed)
        table = distances.rename({metric: "value"}).with_columns(statistic=statistic)
        table = table.with_columns(
            pl.lit(metric).alias("metric"),
            pl.lit("before").alias("reference"),
            pl.lit(0.0).alias("reference_value"),
            gap=pl.col("value"),
            p_value=pl.when(known & ~few).then(p_value),
            critical=pl.when(known).then(critical),
        )
        verdict = verdict_of(pl.col, pl.lit(value=False), tests.level)
        found = adjusted(table, tests.adjust).with_columns(verdict=verdict)
        reason = (
            pl.when(pl.col("value").is_null())
            .then(pl.lit(UNDEFINED))
            .when(few)
            .then(pl.lit(few_rows(tests.min_rows)))
            .when(pl.col("p_value").is_null())
            .then(pl.lit(NO_VARIANCE))
        )
        parts.append(found.with_columns(reason=reason))
    return parts


def _distances(rows: Rows) -> pl.LazyFrame:
    """Compute KS and PSI of the positive rows against the negative, and what tests rest on."""
    curve, sums = row_curve(), ("after", "before")
    # A score is in the tenth of the weight before that is below it.
    tenth = ((1 - curve.fpr) * _TENTHS + _ROUNDING).fill_nan(0.0).floor().cast(pl.Int32)

    def reduce(placed: PlacedRows) -> pl.LazyFrame:
        counts = rows.class_counts()
        return placed.with_columns(**{_BIN: tenth.fill_null(0)}).aggregate(
            {
                "after": curve.dp.sum(),
                "before": curve.dn.sum(),
                "after_squares": rows.signed_squares.clip(lower_bound=0).sum(),
                "before_squares": (-rows.signed_squares).clip(lower_bound=0).sum(),
                "score_ks": (curve.tpr - curve.fpr).fill_nan(None).abs().max(),
                "n": counts["n_pos"],
                "n_reference": counts["n_neg"],
            },
            [_BIN],
        )

    after, before = map(pl.col, sums)
    # Scores above all before are in the last tenth that has rows before.
    last = pl.col(_BIN).filter(before > 0).max().over(rows.keys)
    tenths = reduce_placed(rows, reduce).with_columns(pl.min_horizontal(_BIN, last))
    added = [*sums, *(f"{name}_squares" for name in sums), "n", "n_reference"]
    tenths = tenths.group_by(*rows.keys, _BIN).agg(pl.col(added).sum(), pl.col("score_ks").max())
    one, other = after / after.sum(), before / before.sum()
    psi = ((one - other) * (one / other).log()).filter(before > 0).sum()
    sizes = [pl.col(f"{name}_squares").sum() / pl.col(name).sum() ** 2 for name in sums]
    table = tenths.group_by(rows.keys).agg(
        pl.col("n", "n_reference").sum(),
        pl.col("score_ks").max(),
        psi=psi,
        bins=(before > 0).sum().cast(pl.Int64),
        n_eff=1 / (sizes[0] + sizes[1]),
    )
    defined = pl.col("psi").is_finite() & (pl.col("bins") > 0)
    both = (pl.col("n") > 0) & (pl.col("n_reference") > 0)
    return table.with_columns(
        pl.when(both & defined).then("psi").alias("psi"),
        pl.when(both).then("score_ks").alias("score_ks"),
        pl.col("n_eff").fill_nan(None),
    )


def _chi_squared(level: float) -> tuple[pl.Expr, pl.Expr, pl.Expr]:
    """Return the statistic of a PSI, the p-value of that, and the critical PSI."""
    size, df = 1 / pl.col("n_eff"), pl.col("bins") - 1
    scale = size * (1 + _SKEWNESS * pl.col("bins") * size)
    quantiles = {number: chi_squared_quantile(level, number) for number in range(1, _TENTHS)}
    quantile = df.replace_strict(quantiles, default=None, return_dtype=pl.Float64)
    p_value = chi_squared_p_value(pl.col("statistic"), df)
    return pl.col("value") / scale, p_value, scale * quantile


def _kolmogorov(level: float) -> tuple[pl.Expr, pl.Expr, pl.Expr]:
    """Return the statistic of a KS, the p-value of that, and the critical KS."""
    size = pl.col("n_eff").sqrt()
    # Stephens' factor for few rows.
    scale = size + 0.12 + 0.11 / size
    statistic = pl.col("statistic")
    known = pl.when(statistic > LEAST_KOLMOGOROV)
    p_value = known.then(kolmogorov_tail(statistic, pl.Expr.exp)).otherwise(1.0).clip(0.0, 1.0)
    return pl.col("value") * scale, p_value, kolmogorov_quantile(level) / scale


class Earlier(Rest):
    """The groups before it in the order of the table, such as the periods before a period."""

    @property
    def name(self) -> pl.Expr:
        """What results call it."""
        return pl.lit("before")

    def of_others(self, terms: pl.Expr, field: Fields) -> pl.Expr:
        """Add up the terms of the groups before it."""
        return sum_of_earlier_over(terms, self.partition_keys, field)

    def cell(self, own: pl.Expr, field: Fields = pl.col) -> pl.Expr:
        """Add up the cells of the groups before it."""
        return self.of_others(own, field)

    def sample_size(self, own: pl.Expr) -> pl.Expr:
        """Count the rows of the groups before it."""
        return self.of_others(own, pl.col)

    def auc_weights(self) -> UnitWeights:
        """Weight the groups before it by their pairs."""
        return super().auc_weights()._replace(of="earlier")

    def row_weights(self) -> UnitWeights:
        """Leave out the units of the group and of those after it."""
        return super().row_weights()._replace(of="earlier")

    def with_pairs(self, table: FrameT) -> FrameT:
        """Mark none: no group is compared with a later one."""
        return Reference.with_pairs(self, table)


class Chance(Reference):
    """The AUC of a random score, as if measured in so many rows that its error does not matter."""

    def compared(self, field: Fields) -> Columns:
        """Give the parts of such an AUC, whose placements are all one half."""
        size = _NEGLIGIBLE * field(OF_GROUP.column("h2_pos"))
        half = 0.0 * size + 0.5
        parts = dict.fromkeys(OF_GROUP.parts(field), size)
        parts |= {name: half * size for name in parts if name.startswith("x1")}
        parts |= {name: half**2 * size for name in parts if name.startswith("x2")}
        parts |= {"auc": half, "one_minus_auc": half, "slack": 0.0 * size}
        return OF_REFERENCE.columns(parts)

    @property
    def name(self) -> pl.Expr:
        """What results call it."""
        return pl.lit("before")

    def auc_weights(self) -> UnitWeights:
        """No unit has any influence on it."""
        return UnitWeights(pl.lit(0.0), pl.lit(0.0), pl.lit(1.0), "none")

    def cell(self, own: pl.Expr, field: Fields = pl.col) -> pl.Expr:  # noqa: ARG002
        """Take the rows of the group itself, of both classes, as those that it rests on."""
        return own


class _OverTime(CategoryReference):
    """What all periods are compared with: those before, or chance."""

    def of_segments(self, segments: Rows, min_rows: int) -> list[tuple[pl.Expr, Reference]]:  # noqa: ARG002
        """Return the reference of all of them."""
        kind = Earlier if self.kind == "before" else Chance
        units = units_of(counted=segments.counted)
        return [(pl.lit(value=True), kind(segments.model_keys, units))]
