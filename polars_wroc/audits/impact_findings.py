"""The findings on impact ratios: a row for each category."""

from __future__ import annotations

import math

import polars as pl

from polars_wroc.audits.calibration_findings import SIZE
from polars_wroc.audits.segment_keys import compared_within, segment_keys
from polars_wroc.audits.sentences import IMPACT_RATIO
from polars_wroc.audits.settings import AuditSettings
from polars_wroc.audits.tables import AuditTables
from polars_wroc.groups.categories import SMALL_SHARE
from polars_wroc.groups.four_fifths import BELOW, SURELY, SURELY_NOT
from polars_wroc.groups.impact_table import MIN_SHARE
from polars_wroc.inputs.margins import FOUR_FIFTHS


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
