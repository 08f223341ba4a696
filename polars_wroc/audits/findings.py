"""The comparison table of an audit, and the findings in it, most serious first."""

from __future__ import annotations

import math
from collections import defaultdict

import polars as pl
from polars import selectors

from polars_wroc.audits.calibration_tests import slope_in_points
from polars_wroc.audits.say import NEEDED, write_sentence
from polars_wroc.audits.tables import (
    ALL_KEYS,
    AuditSettings,
)
from polars_wroc.audits.words import Words
from polars_wroc.checks import FOUR_FIFTHS
from polars_wroc.groups.comparisons import (
    CALIBRATION,
    GAP_METRICS,
    IMPACT_RATIO,
    METRICS,
    REPEATS,
    is_cleared,
    is_finding,
)
from polars_wroc.groups.rows_needed import rows_needed
from polars_wroc.inputs.columns import MISSING, MODEL, OVERALL
from polars_wroc.inputs.reasons import FEW_EVENTS
from polars_wroc.metrics.calibration import CALIBRATION_ERROR, SLOPE
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.stats.families import INCONCLUSIVE

_SELECTION_RATE = "selection_rate"
# More digits than sentences show; rounded, so that they do not depend on the order of rows.
_DIGITS = 12
_WITHIN = ["attribute", MODEL, "metric"]
_OTHER, _ORDER = "__other", "__order"
_IS_REPEAT = "__is_repeat"
# Metrics that compare two segments with each other.
_PAIRED = [*GAP_METRICS, *CALIBRATION]


def with_findings(
    table: pl.DataFrame, segments: pl.DataFrame, settings: AuditSettings
) -> pl.DataFrame:
    """Add columns ``direction``, ``rank``, ``sentence`` and repeats to comparisons."""
    rows = round_numbers(_by_metric(table.with_row_index("__place")))
    pairs = _pair_segments(segments, settings)
    keys = [*ALL_KEYS, "metric"]
    rows = rows.join(pairs, on=keys, how="left", nulls_equal=True, maintain_order="left")
    compared = pl.col("verdict").is_not_null()
    rows = rows.with_columns(_direction(settings).alias("direction"))
    rows = rows.with_columns(_is_repeat().alias(_IS_REPEAT))
    rows, words = _with_needed(rows, settings), Words.of(settings)
    ranked = _order_findings(rows.filter(compared, ~pl.col(_IS_REPEAT)), settings)
    ranks = ranked.with_row_index("rank", offset=1).select("__place", pl.col("rank").cast(pl.Int64))
    sentences = [write_sentence(row, words) for row in rows.iter_rows(named=True)]
    known = pl.col("reason").is_not_null() & (pl.col("reason") != FEW_EVENTS)
    is_told = pl.when(compared & pl.col(_IS_REPEAT) & ~known)
    repeats = is_told.then(pl.lit(REPEATS) + pl.col(_OTHER))
    added = rows.select(
        "__place",
        pl.coalesce(repeats, "reason").alias("reason"),
        pl.when(compared).then("direction").alias("direction"),
        pl.Series("sentence", sentences, pl.String),
    ).join(ranks, on="__place", how="left", maintain_order="left")
    added = added.sort("__place").select("reason", "direction", "rank", "sentence")
    return table.with_columns(added)


def favorable_rates(table: pl.DataFrame, settings: AuditSettings) -> pl.DataFrame:
    """Return the selection rates of an audit, or the rejection rates if rejection is good."""
    rates = table.filter(metric=_SELECTION_RATE)
    if settings.favorable != "rejected":
        return rates
    opposite = {"value": "value", "value_low": "value_high", "value_high": "value_low"}
    return rates.with_columns(**{name: 1 - pl.col(of) for name, of in opposite.items()})


def _with_needed(rows: pl.DataFrame, settings: AuditSettings) -> pl.DataFrame:
    """Add the column `NEEDED`: the rows that would show equivalence if the gap is 0."""
    gaps = rows.filter(pl.col("metric").is_in([*GAP_METRICS]), verdict=INCONCLUSIVE)
    # With a picked reference, tests involve more than two segments.
    if gaps.is_empty():
        return rows.with_columns(pl.lit(None, pl.Float64).alias(name) for name in NEEDED)
    tested = pl.col("p_adjusted").is_not_null() & ~pl.col(_IS_REPEAT)
    tests = rows.filter(tested, pl.col("metric") != IMPACT_RATIO).height
    number = 1 if settings.adjust == "none" else max(tests, 1)
    needed = rows_needed(
        gaps, equivalent_within=settings.margin, level=settings.level, tests=number
    )
    keys = [*ALL_KEYS, "metric"]
    needed = needed.select(*keys, *NEEDED)
    return rows.join(needed, on=keys, how="left", nulls_equal=True, maintain_order="left")


def round_numbers(table: pl.DataFrame, digits: int = _DIGITS) -> pl.DataFrame:
    """Return rounded numbers, which do not depend on the order of the rows."""
    numbers = selectors.float() - selectors.by_name("threshold", require_all=False)
    finite = pl.when(numbers.is_finite()).then(numbers.round_sig_figs(digits) + 0.0)
    return table.with_columns(finite.otherwise(numbers))


def findings_of(table: pl.DataFrame) -> pl.DataFrame:
    """Return the comparisons with a verdict, without mirror images, serious ones first."""
    return table.filter(pl.col("rank").is_not_null()).sort("rank")


def _by_metric(table: pl.DataFrame) -> pl.DataFrame:
    return table.sort(pl.col("metric").cast(pl.Enum(list(METRICS))), maintain_order=True)


def _pair_segments(segments: pl.DataFrame, settings: AuditSettings) -> pl.DataFrame:
    """Return the pairs of segments that are each the complement of the other, by metric.

    Each row has the place of a segment, 1 or 2, and the name of the other one.
    """
    pairs = list[tuple[str, str | None, str | None, str, int, str]]()
    for count, needs_label in (("n", True), ("n_decided", False)):
        if count not in segments.columns:
            continue
        whole = dict[str | None, int]()
        parts = defaultdict[tuple[str, str | None], list[tuple[str | None, int]]](list)
        for attribute, segment, model, rows in segments.select(*ALL_KEYS, count).iter_rows():
            if attribute == OVERALL:
                whole[model] = rows
            elif rows and attribute not in settings.reference.named:
                parts[attribute, model].append((segment, rows))
        metrics = [each for each in _PAIRED if METRICS[each].needs_label == needs_label]
        for (attribute, model), some in parts.items():
            if len(some) != 2 or some[0][1] + some[1][1] != whole.get(model):  # noqa: PLR2004
                continue
            names = [segment for segment, _ in some]
            for order, (segment, other) in enumerate(zip(names, reversed(names), strict=True), 1):
                shown = MISSING if other is None else other
                pairs += [(attribute, segment, model, each, order, shown) for each in metrics]
    schema = dict.fromkeys((*ALL_KEYS, "metric"), pl.String) | {_ORDER: pl.Int64, _OTHER: pl.String}
    paired = pairs if settings.reference.is_mutual else []
    return pl.DataFrame(paired, schema, orient="row")


def _direction(settings: AuditSettings) -> pl.Expr:
    """Return for whom a gap is bad, which only a gap in good decisions is.

    These are gaps in the selection rate and in the rate of the good decision among those whose
    outcome deserves it. A significant gap that does not matter is bad for nobody.
    """
    gap, metric = pl.col("gap"), pl.col("metric")
    lower, higher = (
        [name for name, one in GAP_METRICS.items() if one.worse_if(settings.favorable) == side]
        for side in ("lower", "higher")
    )
    worse = (metric == IMPACT_RATIO) & (pl.col("ratio") < 1)
    worse = worse | (metric.is_in(lower) & (gap < 0)) | (metric.is_in(higher) & (gap > 0))
    better = metric.is_in([*lower, *higher]) & (gap != 0)
    sides = pl.when(worse).then(pl.lit("worse")).when(better).then(pl.lit("better"))
    is_small = is_finding() & ~is_material(settings)
    either = pl.lit("either")
    return pl.when(is_small.fill_null(value=False)).then(either).otherwise(sides.otherwise(either))


def _is_repeat() -> pl.Expr:
    """Return whether a row is the mirror image of one that is reported.

    Reported is the segment that is worse off, else the one ranked worse, else the first.
    """
    place = pl.col(_ORDER)
    is_ranked_lower = (pl.col("metric") == ROC_AUC.column) & (pl.col("gap") < 0)
    first_worse, first_lower = (
        place.filter(holds).first().over(_WITHIN)
        for holds in (pl.col("direction") == "worse", is_ranked_lower)
    )
    told = pl.coalesce(first_worse, first_lower, 1)
    paired = pl.col("metric").is_in(_PAIRED)
    return (paired & (place != told)).fill_null(value=False)


def size_of(settings: AuditSettings) -> pl.Expr:
    """Return the size of a comparison, in the unit of the margin."""
    # A ratio of four fifths is as large as a gap of the margin.
    of_ratio = (pl.col("ratio").log() / math.log(FOUR_FIFTHS)).abs() * settings.margin
    of_slope = slope_in_points(pl.col("value"), pl.col("reference_value"))
    by_metric = pl.when(metric=IMPACT_RATIO).then(of_ratio).when(metric=SLOPE).then(of_slope)
    return by_metric.otherwise(pl.col("gap").abs())


def is_material(settings: AuditSettings) -> pl.Expr:
    """Return whether a comparison matters: a gap of at least the margin, or a ratio below 4/5.

    Ratios are the impact ratio, and the ratio of the good decision in a gap of selection rates.
    """
    of_gap = size_of(settings) >= settings.margin
    rates = [pl.col("value"), pl.col("reference_value")]
    if settings.favorable == "rejected":
        rates = [1 - rate for rate in rates]
    share = pl.min_horizontal(rates) / pl.max_horizontal(rates)
    is_rare = share < FOUR_FIFTHS
    if settings.favorable not in ("selected", "rejected"):
        is_rare = pl.lit(value=False)
    of_ratio = pl.when(metric=IMPACT_RATIO).then(pl.col("ratio") < FOUR_FIFTHS)
    return of_ratio.when(metric=_SELECTION_RATE).then(of_gap | is_rare).otherwise(of_gap)


def add_tones(table: pl.DataFrame, settings: AuditSettings) -> pl.DataFrame:
    """Add columns: the ``tone`` of comparisons, and whether differences would matter.

    The tone is ``worse``, ``better`` or ``either`` for a difference that matters, ``alike`` where
    equivalence is shown, and otherwise empty. A score that ranks a group differently is worse or
    better only without decisions.
    """
    value, reference = pl.col("value"), pl.col("reference_value")
    side = pl.col("direction")
    if settings.favorable is None:
        lower = pl.when(pl.col("gap") < 0).then(pl.lit("worse")).otherwise(pl.lit("better"))
        side = pl.when(metric=ROC_AUC.column).then(lower).otherwise(side)
    # If the others are farther off, it is the others that differ.
    is_error, is_slope = pl.col("metric") == CALIBRATION_ERROR, pl.col("metric") == SLOPE
    right = pl.when(is_slope).then(1.0).otherwise(0.0)
    is_nearer = (value - right).abs() < (reference - right).abs()
    is_group = (is_error | is_slope) & (pl.col("attribute") != OVERALL)
    others_are_off = (is_group & is_nearer).fill_null(value=False)
    matters = is_material(settings).fill_null(value=False)
    is_shown = is_finding() & matters & ~others_are_off
    shown = pl.when(is_shown).then(side).when(is_cleared()).then(pl.lit("alike"))
    return table.with_columns(tone=shown.otherwise(pl.lit("")), matters=matters)


def _order_findings(rows: pl.DataFrame, settings: AuditSettings) -> pl.DataFrame:
    """Return findings sorted by verdict, direction, single attributes first, and size."""
    verdict, side = pl.col("verdict"), pl.col("direction")
    different, little = is_finding(), verdict == INCONCLUSIVE
    ranks = [
        different & (side == "worse"),
        different & (side == "either"),
        little & (side == "worse") & is_material(settings),
        different,
        little,
        is_cleared(),
    ]
    first = (pl.when(holds).then(place) for place, holds in enumerate(ranks))
    return rows.sort(
        pl.coalesce(*first, len(ranks)),
        # Findings on everyone come before findings on groups.
        pl.col("attribute") != OVERALL,
        ~pl.col("attribute").is_in([OVERALL, *settings.attributes]),
        pl.col("reason").is_not_null(),
        size_of(settings).fill_null(0.0),
        descending=[False, False, False, False, True],
        maintain_order=True,
    )
