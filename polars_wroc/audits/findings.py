"""The findings of an audit: a row for each segment and metric, the most serious first."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import polars as pl

from polars_wroc.audits.calibration_findings import SIZE, calibration_findings
from polars_wroc.audits.calibration_sentences import calibration_sentence, is_of_calibration
from polars_wroc.audits.phrases import many
from polars_wroc.audits.segment_keys import segment_keys
from polars_wroc.audits.sentences import IMPACT_RATIO, ONE_CLASS, Words, sentence_of
from polars_wroc.audits.settings import AuditSettings
from polars_wroc.audits.tables import AuditTables
from polars_wroc.groups.impact_table import MIN_SHARE
from polars_wroc.groups.min_rows import GAP_METRICS
from polars_wroc.inputs.margins import FOUR_FIFTHS
from polars_wroc.inputs.metric import Metric, SampleSize
from polars_wroc.inputs.names import MISSING, MODEL
from polars_wroc.metrics.registry import ROC_AUC

Verdict: TypeAlias = Literal["different", "too little data", "alike", "not compared"]

# How many rows of a segment a metric is based on.
_BEHIND: dict[SampleSize, pl.Expr] = {
    "positives": pl.col("n_pos"),
    "negatives": pl.col("n_neg"),
    "rows": pl.col("n"),
    "selected": pl.col("n_selected"),
    "rejected": pl.col("n") - pl.col("n_selected"),
}
_REFERENCE, _IS_SEGMENT, _MIRROR = "__reference", "__reference_is_segment", "__mirror"
# Where one class lacks, these are 0 or 1 whatever the decisions.
_OF_BOTH_CLASSES = ("ppv", "npv")
_ONE_CLASS = "__one_class"


def findings_of(audit: AuditTables) -> pl.DataFrame:
    """Lay out the findings in their order, with their sentences."""
    segments = _with_references(audit)
    metrics = {name: one for name, one in GAP_METRICS.items() if f"{name}_gap" in segments.columns}
    parts = [_gaps(audit, segments, name, metric) for name, metric in metrics.items()]
    if audit.impact is not None:
        parts.append(_impact_ratios(audit.impact, audit))
    table = pl.concat([*parts, *calibration_findings(audit)])
    ordered = _ordered(table, audit.parameters)
    words = Words.of(audit.parameters)
    sentences = [
        calibration_sentence(row, words.margin)
        if is_of_calibration(row)
        else sentence_of(row, words)
        for row in ordered.iter_rows(named=True)
    ]
    return ordered.with_columns(pl.Series("sentence", sentences, pl.String))


def first_sentences(
    findings: pl.DataFrame, most: int, how: str = "see `findings`, or the JSON"
) -> list[str]:
    """Return the sentences of the most serious findings, how many more there are, and where."""
    told = findings.filter(~pl.col("mirror"), pl.col("verdict") != "not compared")
    serious = told.filter(pl.col("verdict") != "alike")
    shown = serious["sentence"].head(most).to_list()
    if more := told.height - len(shown):
        shown.append(f"{many(more, 'more comparison')}: {how}.")
    return shown


def _partition(table: pl.DataFrame) -> list[str]:
    return [name for name in ("attribute", MODEL) if name in table.columns]


def _with_references(audit: AuditTables) -> pl.DataFrame:
    """Add to the gaps which segment each is compared with, if it is one, and the rows of each."""
    gaps, reference = audit.gaps, audit.parameters.reference
    keys, partition = segment_keys(gaps), _partition(gaps)
    of_rows = ["n", "n_selected"] if "n_selected" in audit.segments.columns else ["n"]
    counts = audit.segments.select(*keys, *of_rows)
    gaps = gaps.join(counts, on=keys, how="left", nulls_equal=True, maintain_order="left")
    segment, attribute = pl.col("segment").fill_null(MISSING), pl.col("attribute")
    is_best = pl.col("auc").is_not_null() & (pl.col("auc") == pl.col("auc_reference"))
    best = segment.filter(is_best).first().over(partition)
    is_named = attribute.is_in([*reference.named])
    named = attribute.replace_strict(dict(reference.named), default=None, return_dtype=pl.String)
    by_kind = best if reference.kind == "best" else pl.lit(reference.kind.partition("_")[0])
    # Each of two segments is the complement of the other: the second says nothing new.
    some = pl.col("n") > 0
    of_two = some.sum().over(partition) == 2  # noqa: PLR2004
    second = of_two & (some.cum_sum().over(partition) == 2)  # noqa: PLR2004
    referred = gaps.with_columns(
        pl.when(is_named).then(named).otherwise(by_kind).alias(_REFERENCE),
        (is_named | pl.lit(reference.kind == "best")).alias(_IS_SEGMENT),
        (second & some & ~is_named & pl.lit(reference.is_mutual)).alias(_MIRROR),
    )
    smaller_classes = _rows_behind(ROC_AUC, referred, without_own=_is_without_own(audit))
    lacking = pl.min_horizontal(*smaller_classes.values()) == 0
    both = referred.with_columns(lacking.fill_null(value=True).alias(_ONE_CLASS))
    compared = pl.col(f"^({'|'.join(_OF_BOTH_CLASSES)})_(reference|gap|ratio).*$")
    return both.with_columns(pl.when(~pl.col(_ONE_CLASS)).then(compared))


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
    partition = _partition(table)
    own = [_BEHIND[size] for size in metric.sample_sizes]
    is_reference = pl.col("segment").fill_null(MISSING) == pl.col(_REFERENCE)
    of_segment = [count.filter(is_reference).first().over(partition) for count in own]
    of_all = [count.sum().over(partition) - (count if without_own else 0) for count in own]
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
        side=_side(gap, metric, settings),
        verdict=verdict,
        reason=_reason(name, verdict, settings),
        mirror=pl.col(_MIRROR),
        **{SIZE: gap.abs()},
    )


def _is_reference() -> pl.Expr:
    return pl.col(_IS_SEGMENT) & (pl.col("segment").fill_null(MISSING) == pl.col(_REFERENCE))


def _impact_ratios(impact: pl.DataFrame, audit: AuditTables) -> pl.DataFrame:
    """Lay out the impact ratios, with their joint limits: a row for each category."""
    settings, partition = audit.parameters, _partition(impact)
    ratio, low = pl.col("impact_ratio"), pl.col("impact_ratio_joint_low")
    itself = pl.col("segment") == pl.col("reference")
    rows = pl.col("n").filter(itself).first().over(partition)
    few = (pl.col("n") < settings.min_rows) | (rows < settings.min_rows)
    compared = ratio.is_not_null() & ~itself & pl.col("excluded").is_null()
    verdict = (
        pl.when(~compared.fill_null(value=False))
        .then(pl.lit("not compared"))
        .when((low >= FOUR_FIFTHS) & ~few)
        .then(pl.lit("alike"))
        .when((pl.col("below_four_fifths") == "surely") & ~few)
        .then(pl.lit("different"))
        .otherwise(pl.lit("too little data"))
    )
    reason = (
        pl.when(itself)
        .then(pl.lit("the reference"))
        .when(pl.col("excluded") == "unknown")
        .then(pl.lit("an unknown category"))
        .when(pl.col("excluded") == "share")
        .then(pl.lit(f"under {100 * MIN_SHARE:g}% of the rows"))
        .when(ratio.is_null())
        .then(pl.lit("undefined"))
        .when((verdict == "too little data") & few)
        .then(pl.lit(f"fewer than {settings.min_rows} rows"))
    )
    worse = pl.when(ratio < 1).then(pl.lit("worse")).otherwise(pl.lit("either"))
    none = pl.lit(None, pl.Float64)
    return impact.select(
        *segment_keys(impact),
        pl.lit(IMPACT_RATIO).alias("metric"),
        pl.col("selection_rate").alias("value"),
        "reference",
        pl.col("reference_rate").alias("reference_value"),
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


def _side(gap: pl.Expr, metric: Metric, settings: AuditSettings) -> pl.Expr:
    """Say for whom a gap is bad: where the favourable decision is what it is."""
    selected = settings.favourable == "selected"
    worse = metric.worse_if_selection_is_good if selected else metric.worse_if_rejection_is_good
    if worse == "either":
        return pl.lit("either")
    is_worse = gap < 0 if worse == "lower" else gap > 0
    side = pl.when(is_worse).then(pl.lit("worse")).when(gap != 0).then(pl.lit("better"))
    return side.otherwise(pl.lit("either"))


def _reason(name: str, verdict: pl.Expr, settings: AuditSettings) -> pl.Expr:
    """Say why there is no verdict; null where there is one, or the interval says enough."""
    one_class = pl.when(pl.col(_ONE_CLASS) & pl.lit(name in _OF_BOTH_CLASSES))
    undefined = (
        pl.when(_is_reference())
        .then(pl.lit("the reference"))
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
    crossed = ~pl.col("attribute").is_in(settings.by)
    ordered = table.sort(
        place,
        crossed,
        pl.col("reason").is_not_null(),
        pl.col(SIZE).fill_null(0.0),
        descending=[False, False, False, True],
        maintain_order=True,
    )
    keys = segment_keys(table)
    return ordered.with_row_index("rank", offset=1).select(
        pl.col("rank").cast(pl.Int64), *keys, pl.exclude("rank", SIZE, *keys)
    )
