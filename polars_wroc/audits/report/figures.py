"""The charts of an audit and of its report: their specs, descriptions and captions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from polars_wroc.audits.findings import favorable_rates
from polars_wroc.audits.tables import (
    ALL_KEYS,
    ALL_ROWS,
    AuditTables,
    name_of,
    restricted,
    wide_table,
    without_model,
)
from polars_wroc.audits.words import Words, listed, reference_of
from polars_wroc.charts.calibration_chart import calibration_chart
from polars_wroc.charts.channels import values_of
from polars_wroc.charts.distribution_chart import distribution_chart
from polars_wroc.charts.estimates import (
    LIMIT_VALUE,
    LINE_VALUE,
    REMARK,
    VALUE,
    VERDICT,
    read_estimates,
)
from polars_wroc.charts.gap_chart import Drawing, draw, drawing, gap_chart
from polars_wroc.charts.interval_layers import ROW
from polars_wroc.charts.options import (
    BACKGROUND,
    BAND_COLOR,
    GREY,
    INK,
    MAX_ROWS,
    UNSEEN,
    ChartOptions,
    Show,
    captioned,
    rounded,
    rounded_rows,
)
from polars_wroc.charts.roc_chart import roc_chart
from polars_wroc.charts.threshold_chart import threshold_chart
from polars_wroc.checks import FOUR_FIFTHS
from polars_wroc.groups.comparisons import (
    CALIBRATION,
    FAVORABLE_RATE,
    GAP_METRICS,
    IMPACT_RATIO,
    METRICS,
    REPEATS,
    rated_ratios,
)
from polars_wroc.inputs.columns import AUDIT_KEYS, MISSING, MODEL, OVERALL, ROC_COLUMNS
from polars_wroc.metrics.calibration import CALIBRATION_ERROR
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.ranking.curve import ratio

if TYPE_CHECKING:
    import altair as alt

    from polars_wroc.charts.options import Chart


# What calibration in the large is called.
PREDICTED = "Predicted minus observed"
SELECTION_RATE = "selection_rate"


def segments_chart(
    audit: AuditTables, attribute: str, *, overlaid: bool = False, with_all: bool = False
) -> Chart:
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
    return roc_chart(curves, color=color, facet=facet, summary=aucs, level=settings.confidence)


def aucs_of(audit: AuditTables) -> pl.DataFrame:
    """Lay out the AUCs of segments, with all of their rows, as `summary` does."""
    counts, limits = ("n", "n_pos", "n_neg", "small"), ("auc", "auc_low", "auc_high")
    aucs = wide_table(audit).select(*ALL_KEYS, *counts, *limits)
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
    facet, (shown,) = _of_attribute(attribute, without_model(curves, audit.settings))
    drawn = shown["threshold"].filter(shown["threshold"].is_finite())
    inside = start is not None and drawn.min() <= start <= drawn.max()
    return threshold_chart(
        shown,
        facet=facet,
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


# Colours of a chart that follow the page, which may be dark.
_INKS = {
    INK["expr"]: "var(--ink)",
    GREY: "var(--soft)",
    BAND_COLOR: "var(--band)",
    BACKGROUND["expr"]: "var(--page)",
    "white": "var(--page)",
}
# Properties of a spec that are colours or say where colours come from.
_COLOURED = ("color", "fill", "stroke", "background", "subtitleColor")
# Of these, the properties that give colours.
_GIVE_COLOURS = ("value", "scale", "range", "condition")
_NOT_ON_A_PAGE = ("$schema", "usermeta", "datasets")
# Long names are cut before the number of rows, which the table has with the whole name.
_LONGEST = 34
_CUT_LABELS = {
    "labelExpr": f"lastindexof(datum.label, ' (n = ') > {_LONGEST} ? "
    f"slice(datum.label, 0, {_LONGEST - 1}) + "
    "'\N{HORIZONTAL ELLIPSIS}' + slice(datum.label, lastindexof(datum.label, ' (n = ')) : "
    "datum.label",
    "labelLimit": 420,
}


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
    level = audit.settings.confidence
    if audit.settings.favorable == "neither":
        return gap_chart(table, metric=SELECTION_RATE, show="value", level=level)
    rates = favorable_rates(table, audit.settings).with_columns(metric=pl.lit(FAVORABLE_RATE.name))
    of_ratios = pl.concat([table.filter(metric=IMPACT_RATIO), rates])
    return gap_chart(of_ratios, metric=FAVORABLE_RATE.name, show="value", level=level)


# Rates up to this share are written with a decimal.
_RARE = 0.1


def values_figure(audit: AuditTables, whole: AuditTables, metric: str) -> Figure:
    """Draw a metric of the segments kept of the ``whole`` audit, and what each is compared with."""
    settings = audit.settings
    table = audit.table.filter(pl.col("attribute").is_in(audit.segments["attribute"].implode()))
    read, judged = (
        read_estimates(table, metric, "value", margin, settings.confidence)
        for margin in (settings.margin, None)
    )
    # Of the margin there is the band; verdicts are those of the audit.
    rows = read.rows.with_columns(judged.rows.select(VERDICT, REMARK))
    note = read.note or ""
    if metric == SELECTION_RATE and settings.favorable == "selected":
        rows = rows.drop(LINE_VALUE).with_columns(_four_fifths(table).alias(LIMIT_VALUE))
        note = note.replace("Dotted: all rows", "Dashed: four fifths of the highest rate")
    most = rows[VALUE].max()
    rare = metric == CALIBRATION_ERROR or (isinstance(most, float) and most < _RARE)
    number = ".3f" if metric == ROC_AUC.column else ".1%" if rare else ".0%"
    title = PREDICTED if metric == CALIBRATION_ERROR else METRICS[metric].heading
    titled: ChartOptions = {"title": f"{title} of each segment"}
    what, words = titled["title"], Words.of(settings)
    of_whom = {"tpr": words.positive, "fpr": words.negative}.get(metric)
    if of_whom is not None:
        what = f"{title} ({words.selected} of those actually {of_whom}) of each segment"
    for kind, named in (("positives", words.positive), ("negatives", words.negative)):
        note = note.replace(f"number of {kind}", f"number of rows actually {named}")
    read = replace(read, rows=rows, note=None, number=number, title=title)
    drawn = drawing(read, titled, settings.confidence)
    return figure_of(
        f"chart-{metric}",
        draw(drawn),
        f"{what}. The same numbers are in the tables.",
        f"{what}, with its {100 * settings.confidence:g}% confidence interval. {note}. "
        f"A filled point on a thick line is different.{_some_shown(audit, whole)}",
    )


def _four_fifths(table: pl.DataFrame) -> pl.Series:
    """Return four fifths of the highest selection rate for each segment."""
    keys = ["attribute", MODEL]
    highest = rated_ratios(table).group_by(keys).agg(pl.col("reference_rate").max())
    rates = table.filter(pl.col("attribute") != OVERALL, metric=SELECTION_RATE)
    lines = rates.join(highest, on=keys, how="left", nulls_equal=True, maintain_order="left")
    return FOUR_FIFTHS * lines["reference_rate"]


def score_figures(
    audit: AuditTables, distributions: pl.DataFrame, attribute: str, place: int
) -> list[Figure]:
    """Draw the distribution of the scores of an attribute's segments, if it is known."""
    if distributions.is_empty() or (bins := distributions.filter(attribute=attribute)).is_empty():
        return []
    name, (bins,) = _of_attribute(attribute, without_model(bins, audit.settings))
    words = Words.of(audit.settings)
    small: ChartOptions = {"facet": name, "columns": 1, "width": 280, "height": 110}
    classes = f": {words.positive} above the line, {words.negative} below"
    return [
        figure_of(
            f"scores-{place}",
            distribution_chart(bins, **small),
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
            spec,
            f"Gap in {(name := GAP_METRICS[metric].label)} of each segment by {attribute} to "
            f"{reference}. The same numbers are in the table of gaps.",
            f"How many points of 100 the {name} of each segment is above or below that of "
            f"{reference}; the line marks no gap. A filled point on a thick line is different.",
        )
        for metric, spec in gap_specs(gaps, measured, audit.settings.confidence).items()
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
    name, (curves,) = _of_attribute(attribute, without_model(curves, audit.settings))
    facet = MODEL if audit.settings.several else None
    chart = calibration_chart(curves, color=name, facet=facet, level=audit.settings.confidence)
    return [
        figure_of(
            f"calibration-{place}",
            chart,
            f"Calibration curves{_by(attribute)}. Differences are in the table of calibration.",
            "How often it came true, against what the score predicts: below the dashed line the "
            "score is too high, above it too low. Each point is of as many rows; the bars below "
            "span their scores.",
        ),
        *score_figures(audit, distributions, attribute, place),
    ]


# Of more segments a funnel shows at once which are beyond chance.
_MANY = 25
_IN_FUNNEL = (ROC_AUC.column, SELECTION_RATE)


def funnel_figures(audit: AuditTables, attribute: str, place: int) -> list[Figure]:
    """Draw the gaps of many segments against their numbers of rows."""
    table = audit.table.filter(pl.col("verdict").is_not_null(), attribute=attribute)
    metrics = [name for name in _IN_FUNNEL if name in table["metric"]]
    if table["segment"].n_unique() <= _MANY or not metrics or table.height > MAX_ROWS:
        return []
    chart = gap_chart(table, metric=metrics, show="funnel", level=audit.settings.confidence)
    return [
        figure_of(
            f"funnel-{place}",
            chart,
            f"Gaps of all segments by {attribute}, against their numbers of rows.",
            f"Gaps of all segments by {attribute}. Small segments have large gaps by chance: the "
            "lines say how large. A filled mark is different.",
        )
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


def slider_figures(audit: AuditTables, attribute: str, place: int, caption: str) -> list[Figure]:
    """Draw the ROC curves of each score with its own slider: scores may differ in scale."""
    several, figures = audit.settings.several, []
    for number, model in enumerate(audit.segments[MODEL].unique(maintain_order=True), 1):
        of_model = restricted(audit, pl.DataFrame({MODEL: [model]}))
        chart = segments_threshold_chart(of_model, attribute)
        if chart is not None:
            score = f" of {model}" if several else ""
            figures.append(
                figure_of(
                    f"slider-{place}-{number}" if several else f"slider-{place}",
                    chart,
                    f"ROC curves{score}{_by(attribute)}, with a slider of thresholds.",
                    f"{f'Score {model}. ' if several else ''}{caption}",
                )
            )
    return figures


def change_figure(changes: pl.DataFrame, metric: str, show: Show, level: float) -> Figure:
    """Draw the changes of a metric, or of its gaps, between two audits."""
    chart = gap_chart(changes, metric=metric, show=show, level=level)
    what = f"{'gap in ' if show == 'gap' else ''}{METRICS[metric].label}"
    of_gap = f"Change of the {what} in points, after minus before; the line marks no change."
    of_value = f"The {what} in the second audit; an upright mark is at that of the first."
    return figure_of(
        f"change-{show}-{metric}",
        chart,
        f"Change of the {what} of each segment. The tables have the numbers.",
        f"{of_value if show == 'value' else of_gap} A filled point on a thick line is significant.",
    )


def _by(attribute: str) -> str:
    return " of all rows" if attribute == OVERALL else f" of the segments by {attribute}"


def figure_of(name: str, drawn: Any, description: str, caption: str) -> Figure:
    """Make a chart or a spec one of the page, with its colours and rounded numbers."""
    # The tests of the charts validate specs; here it would take most of the time.
    spec: dict[str, Any] = drawn if isinstance(drawn, dict) else drawn.to_dict(validate=False)
    # Altair names rows by a hash, which differs in the last digit of any number.
    datasets = spec["datasets"]
    names = {hashed: f"rows-{place}" for place, hashed in enumerate(datasets, 1)}
    # A spec names the URL of its schema, which a page without a network does not need.
    kept = {key: part for key, part in spec.items() if key not in _NOT_ON_A_PAGE}
    data = {names[hashed]: rounded_rows(rows) for hashed, rows in datasets.items()}
    of_page = {**_adapted(kept, names), "description": description, "datasets": data}
    return Figure(name, of_page, caption)


def _adapted(spec: Any, names: Mapping[str, str], *, coloured: bool = False) -> Any:
    """Rename the data sets, round the ends of scales, cut labels, and take the page's colours.

    Texts that happen to be a colour stay: ``coloured`` is what a colour is given by.
    """
    if isinstance(spec, list):
        return [_adapted(part, names, coloured=coloured) for part in spec]
    name = spec["expr"] if isinstance(spec, dict) and "expr" in spec else spec
    if coloured and isinstance(name, str) and name in _INKS:
        return _INKS[name]
    if not isinstance(spec, dict):
        return spec
    adapted: dict[str, Any] = {}
    for name, part in spec.items():
        if name == "data" and isinstance(part, dict):
            adapted[name] = {"name": names[part["name"]]}
        elif name == "domain" and isinstance(part, list):
            adapted[name] = [rounded(end) for end in part]
        else:
            gives = name in _COLOURED or (coloured and name in _GIVE_COLOURS)
            adapted[name] = _adapted(part, names, coloured=gives)
    # Only labels of segments have a limit.
    return adapted | (_CUT_LABELS if "labelLimit" in spec else {})


def gap_specs(
    gaps: pl.DataFrame, metrics: Sequence[str], level: float
) -> dict[str, dict[str, Any]]:
    """Make the spec of `gap_chart` for each metric of one attribute."""
    drawings = [
        drawing(read_estimates(gaps, metric, "gap", None, level), {}, level) for metric in metrics
    ]
    spec: dict[str, Any] = draw(drawings[0]).to_dict(validate=False)
    return {metric: _of_gap(spec, each) for metric, each in zip(metrics, drawings, strict=True)}


def _of_gap(spec: dict[str, Any], drawn: Drawing) -> dict[str, Any]:
    """Put rows and titles of another gap into a spec, which is much faster than Altair."""
    (name,) = spec["datasets"]
    caption = captioned(drawn.shown.options, drawn.read.note, drawn.shown.width).get("title")
    titled = {} if caption is None else {"title": caption.to_dict(validate=False)}
    layers = [_with_axes_of(layer, drawn) for layer in spec["layer"]]
    rows = drawn.rows.select(drawn.columns).to_dicts()
    untitled = {key: part for key, part in spec.items() if key != "title"}
    described = {"description": drawn.shown.description}
    return untitled | titled | described | {"layer": layers, "datasets": {name: rows}}


def _with_axes_of(layer: dict[str, Any], drawn: Drawing) -> dict[str, Any]:
    """Set title and scale of the axis of a layer, and the names of its segments, if it has them."""
    encoding, shown = layer["encoding"], drawn.shown
    axes = {}
    if "title" in (x := encoding["x"]):
        axes["x"] = x | {"title": shown.title, "scale": x["scale"] | {"domain": shown.domain}}
    if y := encoding.get("y"):
        # They tell how many rows the metric is of.
        axes["y"] = y | {"scale": {"domain": values_of(drawn.rows, ROW)}}
    return layer | {"encoding": encoding | axes}
