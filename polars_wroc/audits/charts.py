"""ROC charts of the segments of one attribute, from the tables of an audit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from polars_wroc.audits.tables import ALL_KEYS, ALL_ROWS, AuditTables
from polars_wroc.audits.views import is_small, without_model
from polars_wroc.charts.options import UNSEEN
from polars_wroc.charts.roc_chart import roc_chart
from polars_wroc.charts.threshold_chart import threshold_chart
from polars_wroc.inputs.columns import AUDIT_KEYS, MODEL, OVERALL, ROC_COLUMNS
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.ranking.curve import ratio

if TYPE_CHECKING:
    from polars_wroc.charts.options import Chart


def segments_chart(audit: AuditTables, attribute: str) -> Chart:
    """Draw the ROC curve of each segment with its AUC and its interval."""
    curves, aucs = _drawn(audit)
    name = _unlike_columns(attribute, curves, aucs)
    shown, summary = (_of_attribute(table, attribute, name) for table in (curves, aucs))
    facet = _facet(attribute, name)
    return roc_chart(shown, facet=facet, summary=summary, level=audit.settings.level)


def overlaid_chart(audit: AuditTables, attribute: str, *, with_all: bool) -> Chart:
    """Draw the ROC curves of at most five segments in one panel, or one for each score.

    One of the five is that of all rows, if it is asked for.
    """
    curves, aucs = _drawn(audit)
    name = _unlike_columns(attribute, curves, aucs)
    shown, summary = (
        _of_attribute(_and_all(table, attribute) if with_all else table, attribute, name)
        for table in (curves, aucs)
    )
    facet = MODEL if audit.settings.several else None
    level = audit.settings.level
    return roc_chart(shown, color=name, facet=facet, summary=summary, level=level)


def _drawn(audit: AuditTables) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return curves and AUCs without the name of the only score."""
    return without_model(audit.curves, audit.settings), aucs_of(audit)


def aucs_of(audit: AuditTables) -> pl.DataFrame:
    """Lay out the AUCs of segments, with all of their rows, as `summary` does."""
    limits = {f"auc{end}": f"value{end}" for end in ("", "_low", "_high")}
    aucs = audit.table.filter(metric=ROC_AUC.column).select(*ALL_KEYS, **limits)
    known = is_small(audit.settings).alias("small")
    segments = audit.segments.select(*ALL_KEYS, "n", "n_pos", "n_neg", known)
    joined = segments.join(aucs, on=ALL_KEYS, how="left", nulls_equal=True, maintain_order="left")
    return without_model(joined, audit.settings)


def _and_all(table: pl.DataFrame, attribute: str) -> pl.DataFrame:
    """Add all rows as a segment of the attribute, the last one."""
    label = ALL_ROWS
    while label in table.filter(attribute=attribute)["segment"]:
        label += UNSEEN
    whole = table.filter(attribute=OVERALL).with_columns(
        pl.lit(attribute).alias("attribute"), pl.lit(label).alias("segment")
    )
    return pl.concat([table.filter(attribute=attribute), whole])


def segments_threshold_chart(audit: AuditTables, attribute: str) -> Chart | None:
    """Draw the ROC curve of each segment with a slider that starts at the audit's threshold.

    The audit is of one score. None if no score is finite: the slider would have no range.
    """
    curves = audit.curves
    if not curves.filter(attribute=attribute)["threshold"].is_finite().any():
        return None
    start = None
    if audit.settings.decides:
        curves, start = _with_decisions(curves, audit.segments), audit.segments["threshold"][0]
    curves = without_model(curves, audit.settings)
    name = _unlike_columns(attribute, curves)
    shown = _of_attribute(curves, attribute, name)
    drawn = shown["threshold"].filter(shown["threshold"].is_finite())
    inside = start is not None and drawn.min() <= start <= drawn.max()
    return threshold_chart(
        shown,
        facet=_facet(attribute, name),
        threshold=start if inside else None,
        weighted=audit.settings.weight is not None,
    )


def largest_segments(segments: pl.DataFrame, most: int) -> pl.DataFrame:
    """Name at most so many segments of each attribute, those with the most rows."""
    named = segments.group_by(AUDIT_KEYS, maintain_order=True).agg(pl.col("n").max())
    ranked = named.sort("n", descending=True, maintain_order=True)
    return ranked.group_by("attribute", maintain_order=True).head(most).select(AUDIT_KEYS)


def _with_decisions(curves: pl.DataFrame, segments: pl.DataFrame) -> pl.DataFrame:
    """Add the points at the audit's threshold to the curves, which may have been thinned."""
    decided = segments.filter(pl.col("threshold").is_finite()).with_columns(
        fpr=ratio(pl.col("fp"), pl.col("w_neg")), tpr=ratio(pl.col("tp"), pl.col("w_pos"))
    )
    points = pl.concat([curves, decided.select(*ALL_KEYS, *ROC_COLUMNS)], how="diagonal")
    place = pl.int_range(pl.len()).min().over(ALL_KEYS)
    # The number of selected rows grows along a curve.
    return points.sort(place, pl.col("tp") + pl.col("fp"), maintain_order=True)


def _unlike_columns(attribute: str, *tables: pl.DataFrame) -> str:
    """Append invisible characters to an attribute that has the name of a column."""
    columns = {column for table in tables for column in table.columns}
    while attribute in columns:
        attribute += UNSEEN
    return attribute


def _of_attribute(table: pl.DataFrame, attribute: str, name: str) -> pl.DataFrame:
    """Select the rows of one attribute; the segment column gets its name."""
    rows = table.filter(attribute=attribute).drop("attribute")
    return rows.drop("segment") if attribute == OVERALL else rows.rename({"segment": name})


def _facet(attribute: str, name: str) -> str | None:
    return None if attribute == OVERALL else name
