"""The findings of an audit: which comparisons are the most serious, and for whom they are bad."""

from __future__ import annotations

import math

import polars as pl
from polars import selectors

from polars_wroc.audits.calibration_tests import slope_in_points
from polars_wroc.audits.sentences import OBSERVED, sentence_of
from polars_wroc.audits.tables import ALL_KEYS, AuditSettings, AuditTables
from polars_wroc.audits.words import Words, many
from polars_wroc.curves.calibration_fit import SLOPE
from polars_wroc.groups.auc_sums import GAP_METRICS
from polars_wroc.groups.comparisons import (
    ALIKE,
    CALIBRATION,
    DIFFERENT,
    FAIRNESS,
    IMPACT_RATIO,
    METRICS,
    REPEATS,
    TOO_LITTLE,
)
from polars_wroc.inputs.arguments import FOUR_FIFTHS
from polars_wroc.inputs.columns import MISSING, MODEL, OVERALL

# More digits than sentences have, so that they are the same for any order of the rows.
_DIGITS = 12
_WITHIN = ["attribute", MODEL, "metric"]
_OTHER, _ORDER = "__other", "__order"
_IS_REPEAT = "__is_repeat"


def with_findings(
    table: pl.DataFrame, segments: pl.DataFrame, settings: AuditSettings
) -> pl.DataFrame:
    """Add ``direction``, ``rank`` and ``sentence`` to comparisons, and which repeat another."""
    rows = rounded(_by_metric(table.with_row_index("__place"))).join(
        _counted(segments, settings),
        on=list(ALL_KEYS),
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )
    compared = pl.col("verdict").is_not_null()
    rows = rows.with_columns(_direction(settings).alias("direction"))
    rows = rows.with_columns(_is_repeat().alias(_IS_REPEAT))
    words = Words.of(settings)
    ranked = _ordered(rows.filter(compared, ~pl.col(_IS_REPEAT)), settings)
    ranks = ranked.with_row_index("rank", offset=1).select("__place", pl.col("rank").cast(pl.Int64))
    sentences = [sentence_of(row, words) for row in rows.iter_rows(named=True)]
    repeats = pl.when(compared & pl.col(_IS_REPEAT)).then(pl.lit(REPEATS) + pl.col(_OTHER))
    added = rows.select(
        "__place",
        pl.coalesce("reason", repeats).alias("reason"),
        pl.when(compared).then("direction").alias("direction"),
        pl.Series("sentence", sentences, pl.String),
    ).join(ranks, on="__place", how="left", maintain_order="left")
    added = added.sort("__place").select("reason", "direction", "rank", "sentence")
    return table.with_columns(added)


def rounded(table: pl.DataFrame) -> pl.DataFrame:
    """Round numbers, so that they are the same for any order of the rows."""
    numbers = selectors.float() - selectors.by_name("threshold", require_all=False)
    finite = pl.when(numbers.is_finite()).then(numbers.round_sig_figs(_DIGITS))
    return table.with_columns(finite.otherwise(numbers))


def findings_of(table: pl.DataFrame) -> pl.DataFrame:
    """List the comparisons that have a verdict, each of two segments once, serious ones first."""
    return table.filter(pl.col("rank").is_not_null()).sort("rank")


def by_severity(audit: AuditTables) -> pl.DataFrame:
    """List all comparisons, the most serious first, with the ``number`` that a page gives them.

    It is the rank; of a repeat that of the other; those that could not be made come last.
    """
    told = pl.col("sentence").is_not_null() & ~pl.col("metric").is_in([*FAIRNESS])
    ordered = _ordered(_by_metric(audit.table.filter(told)), audit.settings)
    unmade = pl.col("verdict").is_null()
    last = pl.col("rank").max().fill_null(0) + unmade.cum_sum()
    other = pl.coalesce("rank", pl.col("rank").min().over(_WITHIN))
    return ordered.with_columns(number=pl.when(unmade).then(last).otherwise(other))


def _by_metric(table: pl.DataFrame) -> pl.DataFrame:
    return table.sort(pl.col("metric").cast(pl.Enum(list(METRICS))), maintain_order=True)


def first_sentences(
    findings: pl.DataFrame, most: int, how: str = "see `findings`, or the JSON"
) -> list[str]:
    """Return the sentences of the most serious findings, how many more there are, and where."""
    shown = findings.filter(pl.col("verdict") != ALIKE)["sentence"].head(most).to_list()
    more = findings.height - len(shown)
    if more and shown:
        return [*shown, f"{many(more, 'more comparison')}: {how}."]
    if more:
        all_are = "The only comparison is" if more == 1 else f"All {more:,} comparisons are"
        return [f"{all_are} alike: {how}."]
    return shown


def _counted(segments: pl.DataFrame, settings: AuditSettings) -> pl.DataFrame:
    """Say what of a segment its sentences need, and which other segment is its complement."""
    rows, attribute = pl.col("n"), pl.col("attribute")
    within = ["attribute", MODEL]
    whole = rows.filter(attribute == OVERALL).first().over(MODEL)
    some = rows > 0
    are_two = (some.sum().over(within) == 2) & (rows.sum().over(within) == whole)  # noqa: PLR2004
    mutual = ~attribute.is_in([*settings.reference.named]) & settings.reference.is_mutual
    paired = are_two & some & mutual & (attribute != OVERALL)
    name = pl.col("segment").fill_null(MISSING)
    first, last = (getattr(name.filter(some), end)().over(within) for end in ("first", "last"))
    return segments.select(
        *ALL_KEYS,
        (pl.col("w_pos") / (pl.col("w_pos") + pl.col("w_neg"))).alias(OBSERVED),
        # First or second of two segments that are compared with each other, else null.
        pl.when(paired).then(some.cum_sum().over(within)).alias(_ORDER),
        pl.when(paired).then(pl.when(name == first).then(last).otherwise(first)).alias(_OTHER),
    )


def _direction(settings: AuditSettings) -> pl.Expr:
    """Say for whom a gap is bad; where no decision is good, only if it is so either way."""
    gap, metric = pl.col("gap"), pl.col("metric")
    of_impact = (metric == IMPACT_RATIO) & (pl.col("ratio") < 1)
    worse, better = of_impact, pl.lit(value=False)
    for name, one in GAP_METRICS.items():
        bad = one.worse_if(settings.favorable)
        if bad != "either":
            is_worse = gap < 0 if bad == "lower" else gap > 0
            worse = worse | ((metric == name) & is_worse)
            better = better | ((metric == name) & (gap != 0))
    said = pl.when(worse).then(pl.lit("worse")).when(better).then(pl.lit("better"))
    return said.otherwise(pl.lit("either"))


def _is_repeat() -> pl.Expr:
    """Whether the other one of two segments says the same: the worse off, or else the first."""
    place = pl.col(_ORDER)
    told = place.filter(pl.col("direction") == "worse").first().over(_WITHIN).fill_null(1)
    paired = pl.col("metric").is_in([*GAP_METRICS, *CALIBRATION])
    return (paired & (place != told)).fill_null(value=False)


def size_of(settings: AuditSettings) -> pl.Expr:
    """Measure a comparison in the unit of the margin."""
    # As many times the margin as the ratio is four fifths.
    of_ratio = (pl.col("ratio").log() / math.log(FOUR_FIFTHS)).abs() * settings.margin
    of_slope = slope_in_points(pl.col("value"), pl.col("reference_value"))
    return (
        pl.when(metric=IMPACT_RATIO)
        .then(of_ratio)
        .when(metric=SLOPE)
        .then(of_slope)
        .otherwise(pl.col("gap").abs())
    )


def is_material(settings: AuditSettings) -> pl.Expr:
    """Whether a comparison matters: its gap is at least the margin, or its ratio below 4/5."""
    of_slope = slope_in_points(pl.col("value"), pl.col("reference_value"))
    size = pl.when(metric=SLOPE).then(of_slope).otherwise(pl.col("gap").abs())
    of_ratio = pl.col("ratio") < FOUR_FIFTHS
    return pl.when(metric=IMPACT_RATIO).then(of_ratio).otherwise(size >= settings.margin)


def _ordered(rows: pl.DataFrame, settings: AuditSettings) -> pl.DataFrame:
    """Sort findings by verdict and direction, single attributes before crossed ones, and size."""
    verdict, side = pl.col("verdict"), pl.col("direction")
    different, little = verdict == DIFFERENT, verdict == TOO_LITTLE
    ranks = [
        different & (side == "worse"),
        different & (side == "either"),
        little & (side == "worse") & is_material(settings),
        different,
        little,
        verdict == ALIKE,
    ]
    place = pl.lit(len(ranks))
    for number, holds in reversed([*enumerate(ranks)]):
        place = pl.when(holds.fill_null(value=False)).then(number).otherwise(place)
    return rows.sort(
        place,
        # What holds for all is said before what holds for some.
        pl.col("attribute") != OVERALL,
        ~pl.col("attribute").is_in([OVERALL, *settings.attributes]),
        pl.col("reason").is_not_null(),
        size_of(settings).fill_null(0.0),
        descending=[False, False, False, False, True],
        maintain_order=True,
    )
