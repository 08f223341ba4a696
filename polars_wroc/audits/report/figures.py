"""The charts of an audit and of its report: their specs, descriptions and captions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from polars_wroc.audits.findings import favorable_rates
from polars_wroc.audits.tables import (
    ALL_KEYS,
    ALL_ROWS,
    AuditTables,
    name_of,
    wide_table,
    without_model,
)
from polars_wroc.audits.words import Words, listed, reference_of
from polars_wroc.charts.calibration_chart import calibration_chart
from polars_wroc.charts.distribution_chart import distribution_chart
from polars_wroc.charts.gap_chart import gap_chart
from polars_wroc.charts.options import Show
from polars_wroc.charts.roc_charts import roc_chart
from polars_wroc.groups.comparisons import (
    CALIBRATION,
    CHANGED_METRICS,
    FAVORABLE_RATE,
    GAP_METRICS,
    IMPACT_RATIO,
    METRICS,
    REPEATS,
)
from polars_wroc.inputs.columns import AUDIT_KEYS, MISSING, MODEL, OVERALL
from polars_wroc.metrics.calibration import CALIBRATION_ERROR
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.names import UNSEEN

if TYPE_CHECKING:
    import altair as alt

# What calibration in the large is called.
PREDICTED = "Predicted minus observed"
SELECTION_RATE = "selection_rate"


def segments_chart(
    audit: AuditTables, attribute: str, *, overlaid: bool = False, with_all: bool = False
) -> alt.LayerChart | alt.FacetChart:
    """Draw the ROC curve of each segment with its AUC and its interval.

    At most five segments can be ``overlaid`` in one panel, or one for each score; one of the five
    is that of all rows, if it is asked for.
    """
    settings = audit.settings
    tables = [without_model(audit.curves, settings), aucs_of(audit)]
    if with_all:
        tables = [_and_all(table, attribute) for table in tables]
    name, (curves, aucs) = _of_attribute(attribute, *tables)
    of_scores = MODEL if settings.several else None
    color, facet = (name, of_scores) if overlaid else (None, name)
    return roc_chart(curves, color=color, facet=facet, summary=aucs)


def aucs_of(audit: AuditTables) -> pl.DataFrame:
    """Lay out the AUCs of segments, with all of their rows, as `summary` does."""
    counts, limits = ("n", "n_pos", "n_neg", "small"), ("auc", "auc_low", "auc_high")
    aucs = wide_table(audit).select(*ALL_KEYS, *limits, *counts)
    return without_model(aucs, audit.settings)


def _and_all(table: pl.DataFrame, attribute: str) -> pl.DataFrame:
    """Add all rows as a segment of the attribute, the last one."""
    label = ALL_ROWS
    while label in table.filter(attribute=attribute)["segment"]:
        label += UNSEEN
    whole = table.filter(attribute=OVERALL).with_columns(
        pl.lit(attribute).alias("attribute"), pl.lit(label).alias("segment")
    )
    return pl.concat([table.filter(attribute=attribute), whole])


def largest_segments(segments: pl.DataFrame, most: int) -> pl.DataFrame:
    """Name at most so many segments of each attribute, those with the most rows."""
    named = segments.group_by(AUDIT_KEYS, maintain_order=True).agg(pl.col("n").max())
    ranked = named.sort("n", descending=True, maintain_order=True)
    return ranked.group_by("attribute", maintain_order=True).head(most).select(AUDIT_KEYS)


def _of_attribute(attribute: str, *tables: pl.DataFrame) -> tuple[str | None, list[pl.DataFrame]]:
    """Select the rows of an attribute; the column of its segments gets its name, also returned.

    If another column has that name, invisible characters follow. All rows have no segments.
    """
    rows = [table.filter(attribute=attribute).drop("attribute") for table in tables]
    if attribute == OVERALL:
        return None, [table.drop("segment") for table in rows]
    name = attribute
    while any(name in table.columns for table in tables):
        name += UNSEEN
    return name, [table.rename({"segment": name}) for table in rows]


_NOT_ON_A_PAGE = ("$schema", "usermeta", "datasets")


@dataclass(frozen=True)
class Figure:
    """A chart with its place in the page, its caption and, in the spec, its description."""

    name: str
    spec: dict[str, Any]
    caption: str


def _some_shown(audit: AuditTables, whole: AuditTables) -> str:
    """Say that not all segments of the ``whole`` audit were kept, if so."""
    kept, of_all = (each.segments.select(AUDIT_KEYS).n_unique() for each in (audit, whole))
    text = " Only some segments of each attribute are shown; its charts and tables have more."
    return text if kept < of_all else ""


def decisions_chart(
    audit: AuditTables, attribute: str | None = None
) -> alt.LayerChart | alt.VConcatChart:
    """Draw the rate of the decision in each segment, of all attributes or one."""
    table = audit.table.with_columns(pl.col("segment").fill_null(MISSING))
    if attribute is not None:
        table = table.filter(attribute=attribute)
    if audit.settings.favorable == "neither":
        return gap_chart(table, metric=SELECTION_RATE, show="value")
    rates = favorable_rates(table, audit.settings).with_columns(metric=pl.lit(FAVORABLE_RATE.name))
    of_ratios = pl.concat([table.filter(metric=IMPACT_RATIO), rates])
    return gap_chart(of_ratios, metric=FAVORABLE_RATE.name, show="value")


def values_figure(audit: AuditTables, whole: AuditTables, metric: str) -> Figure:
    """Draw a metric of the segments kept of the ``whole`` audit, and what each is compared with."""
    settings = audit.settings
    table = audit.table.filter(pl.col("attribute").is_in(audit.segments["attribute"].implode()))
    title = PREDICTED if metric == CALIBRATION_ERROR else METRICS[metric].heading
    what, words = f"{title} of each segment", Words.of(settings)
    of_whom = {"tpr": words.positive, "fpr": words.negative}.get(metric)
    if of_whom is not None:
        what = f"{title} ({words.selected} of those actually {of_whom}) of each segment"
    return figure_of(
        f"chart-{metric}",
        gap_chart(table, metric=metric, show="value", margin=settings.margin),
        f"{what}. The same numbers are in the tables.",
        f"{what}, with its {100 * settings.confidence:g}% confidence interval. "
        f"A filled point on a thick line is different.{_some_shown(audit, whole)}",
    )


def score_figures(
    audit: AuditTables, distributions: pl.DataFrame, attribute: str, place: int
) -> list[Figure]:
    """Draw the distribution of the scores of an attribute's segments, if it is known."""
    if distributions.is_empty() or (bins := distributions.filter(attribute=attribute)).is_empty():
        return []
    _, (bins,) = _of_attribute(attribute, without_model(bins, audit.settings))
    words = Words.of(audit.settings)
    classes = f": blue is {words.positive}, grey {words.negative}"
    return [
        figure_of(
            f"scores-{place}",
            distribution_chart(bins),
            f"Distribution of the scores{_by(attribute)}.",
            "How the scores are distributed: the share of each bin of scores"
            f"{classes if bins['positive'].count() else ''}.",
        )
    ]


def gap_figures(
    audit: AuditTables, attribute: str, place: int, serious: pl.DataFrame | None = None
) -> list[Figure]:
    """Draw gaps in each metric, that of the first finding first; two segments are one row."""
    repeats = pl.col("reason").str.starts_with(REPEATS).fill_null(value=False)
    whole = audit.table.filter(attribute=attribute)
    if attribute == OVERALL or (gaps := whole.filter(~repeats)).is_empty():
        return []
    segment = pl.col("segment").fill_null(MISSING)
    both = whole.select(segment).to_series().unique(maintain_order=True)
    if gaps.height < whole.height and both.len() == 2:  # noqa: PLR2004
        pair = pl.format("{} against {}", segment, segment.replace_strict(both, both.reverse()))
        gaps = gaps.with_columns(pair.alias("segment"))
    reference = reference_of(audit.settings, attribute)
    found = () if serious is None else serious.filter(attribute=attribute)["metric"]
    # The gap of an impact ratio is that of the rates.
    order = [SELECTION_RATE if metric == IMPACT_RATIO else metric for metric in found]
    ordered = [metric for metric in dict.fromkeys([*order, *GAP_METRICS]) if metric in GAP_METRICS]
    measured = [metric for metric in ordered if metric in gaps["metric"]]
    return [
        figure_of(
            f"gap-{place}" if metric == ROC_AUC.column else f"gap-{place}-{metric}",
            gap_chart(gaps, metric=metric),
            f"Gap in {GAP_METRICS[metric].label} of each segment by {attribute} to {reference}. "
            "The same numbers are in the table of gaps.",
            f"How many points of 100 the {GAP_METRICS[metric].label} of each segment is above or "
            f"below that of {reference}; the line marks no gap. A filled point on a thick line is "
            "different.",
        )
        for metric in measured
    ]


# Most segments of a calibration curve.
_CALIBRATED = 3


def calibration_figures(
    audit: AuditTables, attribute: str, place: int, serious: pl.DataFrame
) -> list[Figure]:
    """Draw the calibration curves of an attribute where a finding is about calibration."""
    further = audit.further()
    known = serious.filter(pl.col("metric").is_in([*CALIBRATION]), attribute=attribute)
    found = known.select(AUDIT_KEYS).unique(maintain_order=True).head(_CALIBRATED)
    in_order: Any = {"on": AUDIT_KEYS, "nulls_equal": True, "maintain_order": "left"}
    curves, distributions = (
        table if table.is_empty() else found.join(table, **in_order)
        for table in (further.calibration_curves, further.distributions)
    )
    if curves.is_empty():
        return []
    _, (curves,) = _of_attribute(attribute, without_model(curves, audit.settings))
    chart = calibration_chart(curves)
    return [
        figure_of(
            f"calibration-{place}",
            chart,
            f"Calibration curves{_by(attribute)}. Differences are in the table of calibration.",
            "How often it came true, against what the score predicts: below the dashed line the "
            "score is too high, above it too low. The larger a point, the more rows it has.",
        ),
        *score_figures(audit, distributions, attribute, place),
    ]


def curves_figure(
    audit: AuditTables,
    attribute: str,
    place: int,
    reasons: Mapping[str, Sequence[str | None]] | None = None,
) -> Figure:
    """Draw the ROC curves of an attribute's segments.

    With ``reasons`` for which they were chosen, that of all rows is drawn too.
    """
    overlaid = attribute != OVERALL
    chart = segments_chart(audit, attribute, overlaid=overlaid, with_all=bool(reasons))
    named = [
        f"{reason} ({'; '.join(map(name_of, names))})" for reason, names in (reasons or {}).items()
    ]
    whose = f" of {listed(['all rows', *named])}" if named else ""
    return figure_of(
        f"chart-{place}",
        chart,
        f"ROC curves{_by(attribute)}. Their AUCs are in the table of AUCs.",
        f"ROC curves{whose}: the true positive rate against the false positive rate, as the "
        "threshold falls. The straight line is the curve of a random score.",
    )


def change_figure(changes: pl.DataFrame, metric: str, show: Show) -> Figure:
    """Draw the values of a metric after another audit, or their changes."""
    chart = gap_chart(changes, metric=metric, show=show)
    what = CHANGED_METRICS[metric].label
    of_gap = f"Change of the {what}, after minus before; the line marks no change."
    of_value = f"The {what} in the second audit; an upright mark is at that of the first."
    return figure_of(
        f"change-{show}-{metric}",
        chart,
        f"Change of the {what} of each segment. The tables have the numbers.",
        f"{of_value if show == 'value' else of_gap} A filled point on a thick line differs by more "
        "than chance.",
    )


def _by(attribute: str) -> str:
    return " of all rows" if attribute == OVERALL else f" of the segments by {attribute}"


def figure_of(name: str, drawn: Any, description: str, caption: str) -> Figure:
    """Make a chart one of the page."""
    # The tests of the charts validate specs; here it would take most of the time.
    spec: dict[str, Any] = drawn.to_dict(validate=False)
    # A spec names the URL of its schema, which a page without a network does not need.
    kept = {key: part for key, part in spec.items() if key not in _NOT_ON_A_PAGE}
    # Altair names rows by a hash, which differs in the last digit of any number.
    (rows,) = spec["datasets"].values()
    of_page = {**kept, "data": {"name": "rows"}, "description": description}
    return Figure(name, {**of_page, "datasets": {"rows": rows}}, caption)
