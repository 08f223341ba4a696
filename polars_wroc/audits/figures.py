"""The charts of an audit, and the SVG charts of its page in the page's colours."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from zlib import crc32

import altair as alt
import polars as pl

from polars_wroc.audits.findings import favorable_rates
from polars_wroc.audits.say import AUC, SELECTION_RATE, ComparedRow, fill, fill_sentence
from polars_wroc.audits.tables import (
    ALL_KEYS,
    AuditTables,
    name_of,
    rows_with,
    without_model,
)
from polars_wroc.audits.toned_audit import NOTABLE, TonedAudit
from polars_wroc.audits.words import Words
from polars_wroc.charts.calibration_chart import calibration_chart
from polars_wroc.charts.distribution_chart import distribution_chart
from polars_wroc.charts.gap_chart import gap_chart
from polars_wroc.charts.look import LIGHT
from polars_wroc.charts.options import MOST_COLORS
from polars_wroc.charts.roc_charts import FPR, TPR, roc_chart
from polars_wroc.documents.blocks import Figure
from polars_wroc.documents.numbers import write_points
from polars_wroc.documents.phrases import capitalise
from polars_wroc.groups.comparisons import FAVORABLE_RATE, IMPACT_RATIO
from polars_wroc.inputs.columns import AUDIT_KEYS, MISSING, MODEL, OVERALL
from polars_wroc.metrics.calibration import CALIBRATION_ERROR, SLOPE
from polars_wroc.names import UNSEEN
from polars_wroc.stats.families import DIFFERENT, EQUIVALENT

if TYPE_CHECKING:
    from polars_wroc.charts.options import ChartOptions

# The colours of charts on a light background, by their names in the style sheet.
_VARIABLES = {
    "#1c1e21": "ink",
    "#5f6368": "soft",
    "#dee0e3": "line",
    "#b9bdc2": "faint",
    "white": "page",
    # Halos behind letters
    "black": "page",
    "#ffffff": "page",
    **{color.lower(): f"c{number}" for number, color in enumerate(LIGHT, 1)},
}
# The panels of calibration charts; the fewest rows for a panel, and the fewest of the smaller class
# for a ROC curve, since a curve of a handful of rows is noise; the panels of distributions.
_PANELS, _ENOUGH, _ENOUGH_OF_CLASS, _DISTRIBUTIONS = 3, 100, 20, 3
_WIDTH, _HEIGHT = 380, 250
# The width of each panel, by the number of panels beside each other.
_WIDTHS = {1: _WIDTH, 2: 184, 3: 118}
_CHANCE = "Higher curves rank better; the dashed line is chance."


# The charts of `Audit.chart`.


def segments_chart(audit: AuditTables, attribute: str) -> alt.LayerChart | alt.FacetChart:
    """Return the ROC curves of groups, side by side, with AUCs and intervals."""
    counts, limits = ("n", "n_pos", "n_neg", "small"), ("auc", "auc_low", "auc_high")
    aucs = audit.wide_table.select(*ALL_KEYS, *limits, *counts)
    tables = [without_model(table, audit.settings) for table in (audit.curves, aucs)]
    name, (curves, summary) = _select_attribute(attribute, *tables)
    return roc_chart(curves, color=None, facet=name, summary=summary)


def decisions_chart(
    audit: AuditTables, attribute: str | None = None
) -> alt.LayerChart | alt.VConcatChart:
    """Return the chart of rates of the decision by group, for all attributes or one."""
    table = audit.table.with_columns(pl.col("segment").fill_null(MISSING))
    if attribute is not None:
        table = table.filter(attribute=attribute)
    if audit.settings.favorable == "neither":
        return gap_chart(table, metric=SELECTION_RATE, show="value")
    rates = favorable_rates(table, audit.settings).with_columns(metric=pl.lit(FAVORABLE_RATE.name))
    with_ratios = pl.concat([table.filter(metric=IMPACT_RATIO), rates])
    return gap_chart(with_ratios, metric=FAVORABLE_RATE.name, show="value")


def largest_segments(segments: pl.DataFrame, most: int) -> pl.DataFrame:
    """Return the groups of each attribute with the most rows, up to a number."""
    named = segments.group_by(AUDIT_KEYS, maintain_order=True).agg(pl.col("n").max())
    ranked = named.sort("n", descending=True, maintain_order=True)
    return ranked.group_by("attribute", maintain_order=True).head(most).select(AUDIT_KEYS)


def _select_attribute(
    attribute: str, *tables: pl.DataFrame
) -> tuple[str | None, list[pl.DataFrame]]:
    """Return the name of the column of an attribute's groups, and the attribute's rows.

    If another column has that name, invisible characters are appended. All rows have no groups.
    """
    rows = [table.filter(attribute=attribute).drop("attribute") for table in tables]
    if attribute == OVERALL:
        return None, [table.drop("segment") for table in rows]
    name = attribute
    while any(name in table.columns for table in tables):
        name += UNSEEN
    return name, [table.rename({"segment": name}) for table in rows]


# The charts of the page.


def draw_ranking(toned: TonedAudit, attribute: str) -> Figure | None:
    """Return the ROC curves of groups with enough rows of both classes."""
    audit, words, settings = toned.audit, toned.words, toned.audit.settings
    is_large = pl.col("value").is_not_null() & (pl.col("n") >= _ENOUGH_OF_CLASS)
    aucs = toned.table.filter(is_large, attribute=attribute, metric=AUC)
    if audit.curves.is_empty() or aucs.is_empty():
        return None
    keys = without_model(aucs.select("segment", MODEL), settings)
    curves = audit.curves.filter(attribute=attribute).drop("attribute")
    curves = rows_with(without_model(curves, settings), keys)
    options: ChartOptions = {"title": "", "subtitle": "", "width": _WIDTH, "height": _HEIGHT}
    if aucs["segment"].n_unique() > MOST_COLORS:
        differ = aucs.filter(pl.col("tone").is_in(NOTABLE))["segment"].unique(maintain_order=True)
        options["highlight"] = [name_of(name) for name in differ.head(MOST_COLORS - 1)] or None
    summary = None
    how = f"{_CHANCE} Numbers: AUC."
    if settings.several:
        options |= {"facet": MODEL, "color": "segment", "columns": 2, "width": 196, "height": 210}
    else:
        summary = aucs.select("segment", auc="value", auc_low="value_low", auc_high="value_high")
        how = f"{_CHANCE} Brackets: {100 * words.confidence:.4g}% intervals of AUC."
    axes = {}
    if settings.selected is None and settings.decides:
        axes = {
            FPR.title: capitalise(words.heading("fpr")),
            TPR.title: f"↑ {capitalise(words.heading('tpr'))}",
        }
    chart = roc_chart(curves, band=False, summary=summary, **options)
    title = _say_ranking(aucs.to_dicts(), words)
    return Figure(draw_svg(chart, axes), title, how, f"ROC curves by {attribute}. {title}")


def _say_ranking(rows: Sequence[ComparedRow], words: Words) -> str:
    """Return the title: whether the score ranks some groups differently."""
    notable, different = _list_notable(rows), _list_different(rows)
    if notable:
        first = ([row for row in notable if row["gap"] < 0] or notable)[0]
        return fill("Ranks {who} {ranked}: AUC {own}, {others} {other}", first, words)
    if different:
        farthest = max(different, key=lambda row: abs(row["gap"]))
        return fill("Ranks {who} slightly {ranked}: AUC {own}, {others} {other}", farthest, words)
    values = [row["value"] for row in rows]
    same = "Ranks all groups about equally well"
    found = same if _are_equivalent(rows) else "Ranking: no difference is shown"
    return f"{found} (AUC {min(values):.2f} to {max(values):.2f})"


def draw_calibration(toned: TonedAudit, attribute: str) -> Figure | None:
    """Return calibration curves of the groups that are off, and of the largest others."""
    audit, words, settings = toned.audit, toned.words, toned.audit.settings
    curves, n = audit.further().calibration_curves, _count_groups(audit, attribute)
    table = toned.table.filter(attribute=attribute)
    errors = table.filter(pl.col("value").is_not_null(), metric=CALIBRATION_ERROR).to_dicts()
    rows = [row for row in errors if n.get(row["segment"], 0) >= _ENOUGH]
    if not curves.is_empty():
        curves = curves.filter(attribute=attribute)
    if curves.is_empty() or not rows:
        return None
    # The groups that the page names come first.
    named = {*table.filter(pl.col("tone").is_in(NOTABLE))["segment"]}
    groups = dict.fromkeys(row["segment"] for row in rows)
    most = 2 if settings.several else _PANELS
    chosen = sorted(groups, key=lambda name: (name not in named, -n[name]))[:most]
    options: ChartOptions = {"facet": "segment", "title": "", "subtitle": "", "height": 232}
    options["width"] = _WIDTHS[len(chosen)]
    if settings.several:
        options["color"] = MODEL
    drawn = _choose_groups(without_model(curves, settings), [*n], chosen)
    chart = calibration_chart(drawn, **options)
    slopes = table.filter(metric=SLOPE, verdict=DIFFERENT).to_dicts()
    title = _say_calibration(rows, slopes, words)
    part = f" {len(chosen)} of {len(n)} groups." if len(chosen) < len(n) else ""
    how = (
        f"Share {words.positive} by score: too high below the dashed line; "
        f"bigger dots: more {words.rows}.{part}"
    )
    axes = {"↑ Share that is positive": f"↑ {capitalise(words.positive)}"}
    return Figure(draw_svg(chart, axes), title, how, f"Calibration by {attribute}. {title}")


def _say_calibration(
    rows: Sequence[ComparedRow], slopes: Sequence[ComparedRow], words: Words
) -> str:
    """Return the title: whose scores are too high or too low, on average or along the scores.

    ``slopes`` are the groups whose slope differs.
    """
    off = _list_notable(rows) or ([] if slopes else _list_different(rows))
    if off:
        farthest = max(off, key=lambda row: abs(row["value"]))
        return fill("Scores {own_off} for {who}", farthest, words)
    if slopes:
        farthest = max(slopes, key=lambda row: abs(row["value"] - 1))
        pattern = "{own_slope_of_group}, {other_slope} for {others}"
        return fill_sentence(pattern, farthest, words)
    most = write_points(max(abs(row["value"]) for row in rows))
    same = "Average scores are right in every group"
    found = same if _are_equivalent(rows) else "Calibration: no difference is shown"
    return f"{found} (at most {most} off on average)"


def _list_notable(rows: Sequence[ComparedRow]) -> list[ComparedRow]:
    return [row for row in rows if row["tone"] in NOTABLE]


def _list_different(rows: Sequence[ComparedRow]) -> list[ComparedRow]:
    return [row for row in rows if row["verdict"] == DIFFERENT]


def _are_equivalent(rows: Sequence[ComparedRow]) -> bool:
    """Return whether all compared groups are shown to be within the margin."""
    return {row["verdict"] for row in rows if row["verdict"] is not None} == {EQUIVALENT}


def draw_distribution(toned: TonedAudit, attribute: str) -> Figure | None:
    """Return the distributions of the scores of the largest groups, with the threshold."""
    audit, words = toned.audit, toned.words
    table = audit.distributions
    if table.is_empty():
        table = audit.further().distributions
    n = _count_groups(audit, attribute)
    large = [name for name in n if n[name] >= _ENOUGH]
    chosen = sorted(large, key=lambda name: -n[name])[:_DISTRIBUTIONS]
    if not table.is_empty():
        table = table.filter(attribute=attribute, model=audit.settings.score[0]).drop(MODEL)
    if table.is_empty() or not chosen:
        return None
    drawn = _choose_groups(table, [*n], chosen)
    how = []
    if drawn["positive"].count():
        how.append(f"Blue: {words.positive}; grey: {words.negative}.")
    else:
        drawn = drawn.drop("positive")
    threshold = audit.segments.filter(attribute=OVERALL)["threshold"][0]
    if threshold is not None:
        if drawn["bin_low"].min() <= threshold <= drawn["bin_high"].max():
            how.append(f"Right of the upright line: {words.selected}.")
        else:
            threshold = None
    options: ChartOptions = {"facet": "segment", "title": "", "subtitle": ""}
    options |= {"width": _WIDTH, "height": max(50, 240 // len(chosen) - 34)}
    chart = distribution_chart(drawn, threshold=threshold, **options)
    title = "How the scores of each group spread"
    alt_text = f"Distribution of the score by {attribute}."
    return Figure(draw_svg(chart, {}), title, " ".join(how), alt_text)


def _count_groups(audit: AuditTables, attribute: str) -> dict[str | None, int]:
    """Return the numbers of rows of groups, in the order of the table, missing values last."""
    counts = dict(audit.segments.filter(attribute=attribute).select("segment", "n").rows())
    return {name: counts[name] for name in sorted(counts, key=lambda name: name is None)}


def _choose_groups(
    table: pl.DataFrame, names: Sequence[str | None], chosen: Sequence[str | None]
) -> pl.DataFrame:
    """Return the rows of some groups, in the order of all names."""
    shown = [name_of(name) for name in names if name in chosen]
    groups = table.drop("attribute").with_columns(pl.col("segment").fill_null(MISSING))
    groups = groups.filter(pl.col("segment").is_in(shown))
    return groups.sort(pl.col("segment").cast(pl.Enum(shown)), maintain_order=True)


def draw_svg(chart: Any, axes: Mapping[str, str]) -> str:
    """Return a chart as SVG in the colours of the page, which follow light and dark.

    ``axes`` are titles of axes in the words of the page.

    Raises
    ------
    ImportError
        When vl-convert-python is not installed, with the command that installs it.
    """
    try:
        import vl_convert  # noqa: PLC0415  (an extra)
    except ImportError as error:
        msg = "an HTML report needs vl-convert-python: pip install 'polars-wroc[report]'"
        raise ImportError(msg) from error
    # The page has its own colours, independent of the theme of the session.
    with alt.theme.enable("default"):
        drawn: dict[str, Any] = chart.to_dict(validate=False)
    # vl-convert would refuse the version of a newer Altair.
    drawn.pop("$schema", None)
    spec = json.dumps(drawn)
    for title, text in axes.items():
        spec = spec.replace(f'"title": {json.dumps(title)}', f'"title": {json.dumps(text)}')
    return _shorten_svg(vl_convert.vegalite_to_svg(spec))


# Attributes and elements of an SVG that are invisible.
_UNSEEN_ATTRIBUTES = re.compile(
    r" (aria-\w+|role|class|pointer-events|stroke-miterlimit|font-family|xmlns:xlink|version)"
    r'="[^"]*"| opacity="1"'
)
_UNSEEN_ELEMENTS = re.compile(
    # A hollow point has a `fill-opacity` of 0, and an outline.
    r'<(path|rect)[^>]* (display="none"|opacity="0")[^>]*/>'
    r'|<path d="M0,0h[\d.]+v[\d.]+h-[\d.]+Z"/>|<path d=""/>'
)
_EMPTY_GROUP = re.compile(r'<g(?: transform="translate\(0,0\)")?></g>')
_ATTRIBUTE = re.compile(r'="[^"]*"')
_DECIMALS = re.compile(r"-?\d*\.\d{2,}(e-?\d+)?")
_COLOR = re.compile(r'(fill|stroke)="([^"]+)"')
_CLIP = re.compile(r"(?<=[#\"])clip\d+(?=[)\"])")
_BACKGROUND = re.compile(r'<rect width="\d+" height="\d+" fill="var\(--page\)"/>')


def _shorten_svg(svg: str) -> str:
    """Return a shorter SVG: rounded, without invisible parts, with the page's colours."""
    svg = _UNSEEN_ELEMENTS.sub("", _UNSEEN_ATTRIBUTES.sub("", svg))
    svg = _ATTRIBUTE.sub(lambda found: _DECIMALS.sub(_round_number, found[0]), svg)
    svg = _COLOR.sub(_name_color, svg)
    svg = _BACKGROUND.sub("", svg, count=1)
    while (shorter := _EMPTY_GROUP.sub("", svg)) != svg:
        svg = shorter
    return _name_clips(svg)


def _name_clips(svg: str) -> str:
    """Return an SVG with names for clip paths, which vl-convert numbers per process.

    The names differ between the pictures of a page, and are the same for the same picture.
    """
    names = list(dict.fromkeys(_CLIP.findall(svg)))
    picture = f"{crc32(_CLIP.sub('', svg).encode()):08x}"
    places = {name: f"clip{picture}-{place}" for place, name in enumerate(names)}
    return _CLIP.sub(lambda found: places[found[0]], svg)


def _round_number(found: re.Match[str]) -> str:
    return f"{round(float(found[0]), 1):g}"


def _name_color(found: re.Match[str]) -> str:
    name = _VARIABLES.get(found[2].lower())
    return f'{found[1]}="var(--{name})"' if name else found[0]


def make_figure(chart: Any) -> Figure:
    """Return a figure of a chart, whose title, the finding, becomes the caption."""
    words = chart.title
    title, how = "", ""
    if words is not alt.Undefined:
        title, how = _join_lines(words.text), _join_lines(words.subtitle)
        chart = chart.copy(deep=False)
        chart.title = alt.Undefined
    return Figure(draw_svg(chart, {}), title, how, title or "Chart")


def _join_lines(lines: Any) -> str:
    """Return the lines of a title as one text."""
    if lines is alt.Undefined:
        return ""
    return lines if isinstance(lines, str) else " ".join(lines)
