"""The findings of an audit: a row for each segment and metric, the most serious first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

import polars as pl

from polars_wroc.audits.calibration_findings import (
    OBSERVED,
    PREDICTED,
    SIZE,
    calibration_metrics,
    of_all_rows,
    of_calibration,
    with_calibration,
)
from polars_wroc.audits.sentences import (
    IMPACT_RATIO,
    NO_REFERENCE,
    ONE_CLASS,
    calibration_sentence,
    is_of_calibration,
    sentence_of,
)
from polars_wroc.audits.tables import AuditSettings, AuditTables, compared_within, segment_keys
from polars_wroc.audits.words import Words, many
from polars_wroc.groups.auc_sums import GAP_METRICS
from polars_wroc.groups.categories import SMALL_SHARE
from polars_wroc.groups.impact_ratios import MIN_SHARE
from polars_wroc.groups.wide import BELOW, SURELY, SURELY_NOT
from polars_wroc.inputs.arguments import FOUR_FIFTHS
from polars_wroc.inputs.columns import MISSING, MODEL, OVERALL
from polars_wroc.inputs.metric import Metric, SampleSize
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.plans.queries import over


def impact_findings(audit: AuditTables) -> list[pl.DataFrame]:
    """Lay out the impact ratios, with their joint limits: a row for each category."""
    if audit.impact is None:
        return []
    settings, impact = audit.parameters, audit.enough_rows.for_ratios(audit.impact)
    ratio, low = pl.col("impact_ratio"), pl.col("impact_ratio_joint_low")
    itself = pl.col("segment") == pl.col("reference")
    rows = pl.col("n").filter(itself).first().over(compared_within(impact))
    below, few = pl.col(BELOW), ~pl.col("enough")
    compared = ratio.is_not_null() & ~itself & pl.col("excluded").is_null()
    verdict = (
        pl.when(~compared.fill_null(value=False))
        .then(pl.lit("not compared"))
        .when((below == SURELY_NOT) & ~few)
        .then(pl.lit("alike"))
        .when((below == SURELY) & ~few)
        .then(pl.lit("different"))
        .otherwise(pl.lit("too little data"))
    )
    reason = (
        pl.when(itself)
        .then(pl.lit("the reference"))
        .when(pl.col("excluded") == "unknown")
        .then(pl.lit("an unknown category"))
        .when(pl.col("excluded") == SMALL_SHARE)
        .then(pl.lit(f"under {100 * MIN_SHARE:g}% of the rows"))
        .when(ratio.is_null())
        .then(pl.lit("undefined"))
        .when((verdict == "too little data") & few)
        .then(pl.lit(f"fewer than {settings.min_rows} rows"))
    )
    worse = pl.when(ratio < 1).then(pl.lit("worse")).otherwise(pl.lit("either"))
    none = pl.lit(None, pl.Float64)
    found = impact.select(
        *segment_keys(impact),
        pl.lit(IMPACT_RATIO).alias("metric"),
        _of_good_decision("selection_rate", settings).alias("value"),
        "reference",
        _of_good_decision("reference_rate", settings).alias("reference_value"),
        none.alias("gap"),
        none.alias("gap_low"),
        none.alias("gap_high"),
        ratio.alias("ratio"),
        low.alias("ratio_low"),
        pl.col("impact_ratio_joint_high").alias("ratio_high"),
        "p_value",
        "p_adjusted",
        pl.col("n").alias("n_behind"),
        rows.alias("n_reference"),
        (ratio < FOUR_FIFTHS).alias("material"),
        worse.alias("side"),
        verdict.alias("verdict"),
        reason.alias("reason"),
        pl.lit(value=False).alias("mirror"),
        # As many times the margin as the ratio is four fifths.
        ((ratio.log() / math.log(FOUR_FIFTHS)).abs() * settings.margin).alias(SIZE),
    )
    return [found]


def _of_good_decision(rate: str, settings: AuditSettings) -> pl.Expr:
    return 1 - pl.col(rate) if settings.favorable == "rejected" else pl.col(rate)


Verdict: TypeAlias = Literal["different", "too little data", "alike", "not compared"]

# How many rows of a segment a metric is based on.
_BEHIND: dict[SampleSize, pl.Expr] = {
    "positives": pl.col("n_pos"),
    "negatives": pl.col("n_neg"),
    "rows": pl.col("n"),
    "selected": pl.col("n_selected"),
    "rejected": pl.col("n") - pl.col("n_selected"),
}
# These rows of a segment, and of all segments.
_OWN, _ALL = "__own_", "__all_"
_REFERENCE, _IS_SEGMENT = "__reference", "__reference_is_segment"
# First or second of two segments that are compared with each other, else null.
_PLACE = "__place_in_pair"
# Where one class lacks, these are 0 or 1 whatever the decisions.
_OF_BOTH_CLASSES = ("ppv", "npv")
_ONE_CLASS = "__one_class"


def findings_of(audit: AuditTables) -> pl.DataFrame:
    """Lay out the findings in their order, with their sentences."""
    segments = _with_references(audit)
    metrics = {name: one for name, one in GAP_METRICS.items() if f"{name}_gap" in segments.columns}
    parts = [_gaps(audit, segments, name, metric) for name, metric in metrics.items()]
    every = [*parts, *impact_findings(audit), *_calibration(audit, segments)]
    table = pl.concat(every, how="diagonal")
    ordered = _ordered(table, audit.parameters)
    words = Words.of(audit.parameters)
    sentences = [
        calibration_sentence(row, words) if is_of_calibration(row) else sentence_of(row, words)
        for row in ordered.iter_rows(named=True)
    ]
    told = ordered.with_columns(pl.Series("sentence", sentences, pl.String))
    return told.drop(PREDICTED, OBSERVED, strict=False)


def first_sentences(
    findings: pl.DataFrame, most: int, how: str = "see `findings`, or the JSON"
) -> list[str]:
    """Return the sentences of the most serious findings, how many more there are, and where."""
    told = findings.filter(~pl.col("mirror"), pl.col("verdict") != "not compared")
    serious = told.filter(pl.col("verdict") != "alike")
    shown = serious["sentence"].head(most).to_list()
    more = told.height - len(shown)
    if more and shown:
        return [*shown, f"{many(more, 'more comparison')}: {how}."]
    if more:
        all_are = "The only comparison is" if more == 1 else f"All {more:,} comparisons are"
        return [f"{all_are} alike: {how}."]
    return shown


def _calibration(audit: AuditTables, segments: pl.DataFrame) -> list[pl.DataFrame]:
    """Lay out the findings on calibration; none without probabilities."""
    found = []
    for name, metric in calibration_metrics(audit).items():
        of_segments = _gaps(audit, with_calibration(audit, segments), name, metric)
        rows = pl.concat([of_all_rows(audit, name, metric), of_segments])
        found.append(of_calibration(rows, audit, name))
    return found


def _with_references(audit: AuditTables) -> pl.DataFrame:
    """Add to the gaps which segment each is compared with, if it is one, and the rows of each."""
    gaps, reference = audit.gaps, audit.parameters.reference
    keys, partition = segment_keys(gaps), compared_within(gaps)
    counts = _rows_of_each_kind(audit.segments)
    gaps = gaps.join(counts, on=keys, how="left", nulls_equal=True, maintain_order="left")
    segment, attribute = pl.col("segment").fill_null(MISSING), pl.col("attribute")
    is_best = pl.col("auc").is_not_null() & (pl.col("auc") == pl.col("auc_reference"))
    best = segment.filter(is_best).first().over(partition)
    is_named = attribute.is_in([*reference.named])
    named = attribute.replace_strict(dict(reference.named), default=None, return_dtype=pl.String)
    by_kind = best if reference.kind == "best" else pl.lit(reference.kind.partition("_")[0])
    # Each of two segments is the complement of the other if none is left out.
    rows, of_all = (pl.col(f"{whose}rows") for whose in (_OWN, _ALL))
    some = rows > 0
    are_two = (some.sum().over(partition) == 2) & (rows.sum().over(partition) == of_all)  # noqa: PLR2004
    paired = are_two & some & ~is_named & pl.lit(reference.is_mutual)
    referred = gaps.with_columns(
        pl.when(is_named).then(named).otherwise(by_kind).alias(_REFERENCE),
        (is_named | pl.lit(reference.kind == "best")).alias(_IS_SEGMENT),
        pl.when(paired).then(some.cum_sum().over(partition)).alias(_PLACE),
    )
    smaller_classes = _rows_behind(ROC_AUC, referred, without_own=_is_without_own(audit))
    lacking = pl.min_horizontal(*smaller_classes.values()) == 0
    both = referred.with_columns(lacking.fill_null(value=True).alias(_ONE_CLASS))
    compared = pl.col(f"^({'|'.join(_OF_BOTH_CLASSES)})_(reference|gap|ratio).*$")
    return both.with_columns(pl.when(~pl.col(_ONE_CLASS)).then(compared))


def _rows_of_each_kind(segments: pl.DataFrame) -> pl.DataFrame:
    """Count the rows of each segment that metrics may be based on, and those of all segments."""
    is_overall = pl.col("attribute") == OVERALL
    models = [MODEL] if MODEL in segments.columns else []
    known = {
        size: count
        for size, count in _BEHIND.items()
        if set(count.meta.root_names()) <= set(segments.columns)
    }
    return segments.select(
        *segment_keys(segments),
        *(count.alias(f"{_OWN}{size}") for size, count in known.items()),
        *(
            over(count.filter(is_overall).first(), models).alias(f"{_ALL}{size}")
            for size, count in known.items()
        ),
    )


def comparable_gaps(audit: AuditTables) -> pl.DataFrame:
    """Leave out the gaps that are none: in precision, where one class lacks."""
    return _with_references(audit).select(audit.gaps.columns)


def _is_without_own(audit: AuditTables) -> bool:
    """Whether the rows of a segment are not in what it is compared with."""
    return not audit.parameters.reference.kind.startswith("overall")


def _rows_behind(metric: Metric, table: pl.DataFrame, *, without_own: bool) -> dict[str, pl.Expr]:
    """Count the rows that a metric of a segment, and of its reference, is based on.

    Of an AUC, those of the smaller class.
    """
    own = [pl.col(f"{_OWN}{size}") for size in metric.sample_sizes]
    every = [pl.col(f"{_ALL}{size}") for size in metric.sample_sizes]
    partition = compared_within(table)
    of_segment = [count.filter(_is_reference()).first().over(partition) for count in own]
    of_all = [
        whole - count if without_own else whole for whole, count in zip(every, own, strict=True)
    ]
    others = pl.when(_IS_SEGMENT).then(pl.min_horizontal(of_segment))
    return {
        "n_behind": pl.min_horizontal(own),
        "n_reference": others.otherwise(pl.min_horizontal(of_all)),
    }


def _gaps(audit: AuditTables, table: pl.DataFrame, name: str, metric: Metric) -> pl.DataFrame:
    """Lay out the gaps of a metric: a row for each segment."""
    settings, keys = audit.parameters, segment_keys(table)
    rate = f"{name}_ratio" in table.columns
    ratios = {
        f"ratio{end}": pl.col(f"{name}_ratio{end}") if rate else pl.lit(None, pl.Float64)
        for end in ("", "_low", "_high")
    }
    gap = pl.col(f"{name}_gap")
    # A gap without a variance is null, although both values are known.
    known = pl.all_horizontal(pl.col(name, f"{name}_reference").is_not_null()) & ~_is_reference()
    unknown = pl.when(known).then(pl.lit("too little data")).otherwise(pl.lit("not compared"))
    verdict = pl.coalesce(f"{name}_gap_verdict", unknown)
    enough = audit.enough_rows.where([f"{name}_gap"])
    judged = table.join(enough, on=keys, how="left", nulls_equal=True, maintain_order="left")
    side = _side(gap, metric, settings)
    return judged.select(
        *keys,
        pl.lit(name).alias("metric"),
        pl.col(name).alias("value"),
        pl.col(_REFERENCE).alias("reference"),
        pl.col(f"{name}_reference").alias("reference_value"),
        gap.alias("gap"),
        pl.col(f"{name}_gap_low").alias("gap_low"),
        pl.col(f"{name}_gap_high").alias("gap_high"),
        **ratios,
        p_value=pl.col(f"{name}_gap_p_value"),
        p_adjusted=pl.col(f"{name}_gap_p_adjusted"),
        **_rows_behind(metric, table, without_own=_is_without_own(audit)),
        material=gap.abs() >= settings.margin,
        side=side,
        verdict=verdict,
        reason=_reason(name, verdict, settings, compared_within(table)),
        mirror=_is_mirror(side, compared_within(table)),
        **{SIZE: gap.abs()},
    )


def _is_reference() -> pl.Expr:
    return pl.col(_IS_SEGMENT) & (pl.col("segment").fill_null(MISSING) == pl.col(_REFERENCE))


def _side(gap: pl.Expr, metric: Metric, settings: AuditSettings) -> pl.Expr:
    """Say for whom a gap is bad; where no decision is good, only if it is so either way."""
    worse = metric.worse_if(settings.favorable)
    if worse == "either":
        return pl.lit("either")
    is_worse = gap < 0 if worse == "lower" else gap > 0
    side = pl.when(is_worse).then(pl.lit("worse")).when(gap != 0).then(pl.lit("better"))
    return side.otherwise(pl.lit("either"))


def _is_mirror(side: pl.Expr, partition: Sequence[str]) -> pl.Expr:
    """Whether the other one of two segments says the same: the worse off, or else the first."""
    place = pl.col(_PLACE)
    told = place.filter(side == "worse").first().over(partition).fill_null(1)
    return (place != told).fill_null(value=False)


def _reason(
    name: str, verdict: pl.Expr, settings: AuditSettings, partition: Sequence[str]
) -> pl.Expr:
    """Say why there is no verdict; null where there is one, or the interval says enough."""
    one_class = pl.when(pl.col(_ONE_CLASS) & pl.lit(name in _OF_BOTH_CLASSES))
    undefined = (
        pl.when(_is_reference())
        .then(pl.lit("the reference"))
        .when(_IS_SEGMENT, ~_is_reference().fill_null(value=False).any().over(partition))
        .then(pl.lit(NO_REFERENCE))
        .otherwise(one_class.then(pl.lit(ONE_CLASS)).otherwise(pl.lit("undefined")))
    )
    too_few = ~pl.col("enough") & (verdict == "too little data")
    few = pl.when(too_few).then(pl.lit(f"fewer than {settings.min_rows} rows"))
    unknown = (verdict == "too little data") & pl.col(f"{name}_gap_low").is_null()
    return (
        pl.when(verdict == "not compared")
        .then(undefined)
        .otherwise(few.when(unknown).then(pl.lit("no variance")))
    )


def _ordered(table: pl.DataFrame, settings: AuditSettings) -> pl.DataFrame:
    """Rank findings: by verdict and side, single attributes before crossed ones, by size."""
    verdict, side = pl.col("verdict"), pl.col("side")
    different, little = verdict == "different", verdict == "too little data"
    ranks = [
        different & (side == "worse"),
        different & (side == "either"),
        little & (side == "worse") & pl.col("material"),
        different,
        little,
        verdict == "alike",
    ]
    place = pl.lit(len(ranks))
    for number, holds in reversed([*enumerate(ranks)]):
        place = pl.when(holds.fill_null(value=False)).then(number).otherwise(place)
    crossed = ~pl.col("attribute").is_in([OVERALL, *settings.by])
    ordered = table.sort(
        place,
        # What holds for all is said before what holds for some.
        pl.col("attribute") != OVERALL,
        crossed,
        pl.col("reason").is_not_null(),
        pl.col(SIZE).fill_null(0.0),
        descending=[False, False, False, False, True],
        maintain_order=True,
    )
    keys = segment_keys(table)
    return ordered.with_row_index("rank", offset=1).select(
        pl.col("rank").cast(pl.Int64), *keys, pl.exclude("rank", SIZE, *keys)
    )
