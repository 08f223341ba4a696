"""Charts draw groups and models under any name, in a browser, and say the name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from chromium import Chromium
from sweeps import sweep

import polars_wroc as wroc
from polars_wroc.audits.report.page import _bundle

NAMES = [
    *("__proto__", "constructor", "toString", "hasOwnProperty", "valueOf", "__defineGetter__"),
    *("a\u2028b", "a\u2029b", "a[0].b\\", "\\", "it's", 'say "so"', "a.b[c]:d", "datum", "@"),
    *("title", "image", "</script><b>", "<!--", "${name}", "__group1", "a\nb", "%"),
]
# A space without width, which stands behind some names.
UNSEEN = "\u200b"
# What a chart shows, and what a tooltip of each kind of mark would.
DRAW = """
(async () => {
  window.seen = [];
  for (const spec of JSON.parse(document.getElementById('specs').textContent)) {
    const place = document.body.appendChild(document.createElement('div'));
    const options = {mode: 'vega-lite', renderer: 'svg', actions: false};
    const {view} = await vegaEmbed(place, spec, options);
    const tooltips = [];
    const walk = item => {
      if (item.tooltip) tooltips.push(item.tooltip);
      (item.items || []).forEach(walk);
    };
    walk(view.scenegraph().root);
    window.seen.push({
      lines: place.querySelectorAll('.mark-line path').length,
      points: place.querySelectorAll('.mark-symbol.role-mark path').length,
      texts: [...place.querySelectorAll('svg text')].map(text => text.textContent),
      tooltips: [...new Map(tooltips.map(one => [JSON.stringify(one), one])).values()],
    });
  }
  window.done = true;
})().catch(error => { console.error(String(error)); window.done = true; });
"""


def seen(charts: list[Any], folder: Path, chromium: Chromium) -> list[dict[str, Any]]:
    """Draw charts on one page, as a notebook does, and read what is there."""
    page = folder / "charts.html"
    specs = json.dumps([chart.to_dict() for chart in charts]).replace("<", r"\u003c")
    page.write_text(
        '<!doctype html><meta charset="utf-8"><body>'
        f'<script type="application/json" id="specs">{specs}</script>'
        f"<script>{_bundle()}</script><script>{DRAW}</script>",
        encoding="utf-8",
    )
    chromium.open(page, until="window.done")
    assert chromium.printed == []
    assert chromium.requests == [page.as_uri()]
    found = list(chromium.evaluate("window.seen"))
    assert len(found) == len(charts)
    return found


def rows(names: dict[str, list[str]]) -> pl.DataFrame:
    """Some rows of each crossing of groups, with both classes in each."""
    rng = np.random.default_rng(1)
    crossed = pl.DataFrame({"y": [True, False] * 20})
    for name, values in names.items():
        crossed = crossed.join(pl.DataFrame({name: values}), how="cross")
    score = rng.normal(size=crossed.height).round(2)
    scored = crossed.with_columns(s=pl.Series(score) + pl.col("y"))
    return scored.with_columns(p=1 / (1 + (-pl.col("s")).exp()))


@pytest.mark.slow
@pytest.mark.parametrize("number", sweep(range(0, len(NAMES), 3), fast=3))
def test_columns_and_values_of_any_name_are_drawn(
    number: int, tmp_path: Path, chromium: Chromium
) -> None:
    color, facet, *others = (NAMES * 2)[number : number + 5]
    colours, panels = [color, facet, *others], [facet, others[0]]
    data, by = rows({"g": colours, "h": panels}), ["g", "h"]
    # Only tables may have names with two underscores.
    names = {"g": color, "h": facet}
    roc, one, precisions, summary = (
        table.rename(names, strict=False)
        for table in (
            wroc.roc_curve(data, "y", "s", by=by),
            wroc.roc_curve(data, "y", "s", by="g"),
            wroc.pr_curve(data, "y", "s", by=by),
            wroc.summary(data, "y", "s", by=by),
        )
    )
    curves = seen(
        [
            wroc.roc_chart(roc, color=color, facet=facet, summary=summary),
            wroc.pr_chart(precisions, color=color, facet=facet),
            wroc.threshold_chart(roc, color=color, facet=facet),
            wroc.cost_chart(one, cost_fn=0.8),
        ],
        tmp_path,
        chromium,
    )
    assert [chart["lines"] for chart in curves] == [10, 10, 10, 5]
    for chart in curves[:3]:
        assert_said([*colours, *panels, facet], chart)
        assert groups_of(chart, color, facet) == {(a, b) for a in colours for b in panels}
    assert_said([color, *colours], curves[0])
    calibration, distribution, decision = (
        table.rename(names, strict=False)
        for table in (
            wroc.calibration_curve(data, "y", "p", by=by, bins=3),
            wroc.score_distribution(data, "p", label="y", by=by, bins=3),
            wroc.decision_curve(data, "y", "p", by=by, thresholds=[0.2, 0.5, 0.7]),
        )
    )
    more = seen(
        [
            wroc.calibration_chart(calibration, color=color, facet=facet),
            wroc.det_chart(roc, color=color, facet=facet),
            wroc.gain_chart(roc, color=color, facet=facet),
            # These have two lines for each curve.
            wroc.gain_chart(roc, kind="lift", color=color, facet=facet),
            wroc.distribution_chart(distribution, color=color, facet=facet, threshold=0.5),
            wroc.decision_chart(decision, color=color, facet=facet),
        ],
        tmp_path,
        chromium,
    )
    assert [chart["lines"] for chart in more] == [10, 10, 10, 20, 20, 20]
    for chart in more:
        assert_said([color, *colours, *panels, facet], chart)
        assert groups_of(chart, color, facet) == {(a, b) for a in colours for b in panels}
    assert_said([color, *colours], curves[3])
    assert groups_of(curves[3], color) == {(value,) for value in colours}
    intervals = seen(
        [
            wroc.auc_chart(summary, color=first, facet=second)
            for first in (None, color)
            for second in (None, facet)
        ],
        tmp_path,
        chromium,
    )
    for chart, (first, second) in zip(
        intervals, [(a, b) for a in (None, color) for b in (None, facet)], strict=True
    ):
        # A legend has points too.
        assert chart["points"] == 10
        assert_said([*colours, *panels], chart)
        segment = [name for name in (color, facet) if name not in (first, second)]
        rows_of = {text[0] for text in groups_of(chart, ", ".join(segment) or "rows")}
        assert {text.rpartition(" (n = ")[0] for text in rows_of} == {
            ", ".join(text) or "all rows"
            for text in {
                tuple(v for v, name in ((a, color), (b, facet)) if name in segment)
                for a in colours
                for b in panels
            }
        }


@pytest.mark.slow
@pytest.mark.parametrize("number", sweep(range(0, len(NAMES), 3)))
def test_charts_of_fairness_draw_columns_and_values_of_any_name(
    number: int, tmp_path: Path, chromium: Chromium
) -> None:
    color, facet, *others = (NAMES * 2)[number : number + 5]
    colours, panels = [color, facet, *others], [facet, others[0]]
    data = rows({"g": colours, "h": panels})
    names = {"g": color, "h": facet}
    rates, compared, costs = (
        table.rename(names, strict=False)
        for table in (
            wroc.threshold_metrics(data, "y", "s", by=["g", "h"]),
            wroc.compare(data, "y", ["s", -pl.col("s").alias("t")], by="g"),
            wroc.equalized_thresholds(data, "y", "s", by="g"),
        )
    )
    pairs = wroc.cross_auc(data, "y", "s", by="g")
    pairs = pairs.rename({f"{side}_g": f"{side}_{color}" for side in ("positive", "negative")})
    gaps, impact = (
        table.with_columns(attribute=pl.lit(color))
        for table in (
            wroc.group_gaps(data, "y", "s", attributes="g"),
            wroc.impact_ratios(data, "s", attributes="g", threshold=0.5, favorable="selected"),
        )
    )
    charts = seen(
        [
            wroc.rates_chart(rates, rates="tpr", threshold=0.5, color=color, facet=facet),
            wroc.gap_chart(gaps, margin=0.1),
            wroc.gap_chart(impact, metric="impact_ratio", show="ratio"),
            wroc.gap_chart(compared),
            wroc.matrix_chart(pairs),
            wroc.tradeoff_chart(dict.fromkeys(colours, costs), title=color),
        ],
        tmp_path,
        chromium,
    )
    lines, bands, ratios, differences, cells, trade = charts
    assert lines["lines"] == 10
    assert groups_of(lines, color, facet) == {(a, b) for a in colours for b in panels}
    assert {text.rpartition(" (n = ")[0] for (text,) in groups_of(bands, color)} == {*colours}
    assert_said([*colours, *panels], lines)
    for chart in (bands, ratios, differences, cells, trade):
        assert_said([color, *colours] if chart in (cells, trade) else colours, chart)
    assert len(groups_of(cells, f"Positives: {color}", f"Negatives: {color}")) == 25


@pytest.mark.slow
def test_long_and_empty_names_are_drawn_and_many_are_grey(
    tmp_path: Path, chromium: Chromium
) -> None:
    names = [*NAMES[:9], "", "a very long name " * 12, "'\"`"]
    data = rows({"g": names, "h": ["", "b"]})
    by = ["g", "h"]
    curve, metrics = (
        make(data, "y", "s", by=by) for make in (wroc.roc_curve, wroc.threshold_metrics)
    )
    gaps = wroc.group_gaps(data, "y", "s", attributes="g")
    charts = seen(
        [
            wroc.roc_chart(curve, facet="h", ks=True, title=names[0]),
            wroc.pr_chart(wroc.pr_curve(data, "y", "s", by=by), facet="h", sort="value"),
            wroc.threshold_chart(curve, facet="h", sort="name"),
            wroc.rates_chart(metrics, rates="fpr", facet="h", threshold=0.5),
            wroc.roc_chart(curve, color="h", facet="g", abroca=True, highlight=["b"]),
            wroc.gap_chart(gaps, color="g", highlight=names[-3:]),
            wroc.gap_chart(gaps, color="g", margin=0.1, sort="name"),
            wroc.matrix_chart(wroc.cross_auc(data, "y", "s", by="g"), sort="value"),
        ],
        tmp_path,
        chromium,
    )
    for chart in charts[:4]:
        assert chart["lines"] == 24
        assert groups_of(chart, "g", "h") == {(a, b) for a in names for b in ("", "b")}
        assert "8 others in grey" in " ".join(chart["texts"])
    assert groups_of(charts[4], "g", "h") == {(a, b) for a in names for b in ("", "b")}
    for chart in charts[5:7]:
        assert groups_of(chart, "g") == {(name,) for name in names}
    assert len(groups_of(charts[7], "Positives: g", "Negatives: g")) == 144


@pytest.mark.slow
@pytest.mark.parametrize("number", range(0, len(NAMES), 5))
def test_models_of_any_name_are_drawn(number: int, tmp_path: Path, chromium: Chromium) -> None:
    models = (NAMES * 2)[number : number + 5]
    data = rows({"g": ["a", "b"]})
    data = data.with_columns((pl.col("s") * place).alias(f"m{place}") for place in range(1, 6))
    scores = [f"m{place}" for place in range(1, 6)]

    def named(table: pl.DataFrame) -> pl.DataFrame:
        return table.with_columns(pl.col("model").replace(dict(zip(scores, models, strict=True))))

    curve = named(wroc.roc_curve(data, "y", scores, by="g"))
    shares = [(pl.col(name) > 1).mul(0.5).alias(name) for name in scores]
    data_of_shares = data.with_columns(shares)
    calibration = named(wroc.calibration_curve(data_of_shares, "y", scores, by="g", bins=2))
    audit = wroc.audit(data, "y", scores, attributes="g")
    charts = seen(
        [
            wroc.roc_chart(curve, facet="g"),
            wroc.roc_chart(curve, facet="model"),
            wroc.pr_chart(named(wroc.pr_curve(data, "y", scores, by="g")), facet="g"),
            wroc.threshold_chart(curve, facet="g"),
            wroc.calibration_chart(calibration, facet="g"),
            wroc.det_chart(curve, facet="g"),
            wroc.gain_chart(curve, kind="cap", facet="g"),
            wroc.auc_chart(named(wroc.summary(data, "y", scores, by="g"))),
            wroc.gap_chart(named(wroc.group_gaps(data, "y", scores, attributes="g"))),
            wroc.gap_chart(named(wroc.audit_changes(audit, audit, different_rows=True))),
        ],
        tmp_path,
        chromium,
    )
    for chart in charts:
        assert (chart["lines"] or chart["points"]) == 10
        assert_said(models, chart)
    for chart in charts[:-1]:
        assert groups_of(chart, "model") == {(model,) for model in models}


def assert_said(texts: list[str], chart: dict[str, Any]) -> None:
    """All texts are in the picture; a curve's name is cut where it is long."""
    said = "\n".join(chart["texts"])
    assert [text for text in texts if text not in said] == []


def groups_of(chart: dict[str, Any], *names: str) -> set[tuple[str, ...]]:
    """What tooltips say of groups; a space that nobody sees may stand behind each text."""
    tooltips = [
        {title.replace(UNSEEN, ""): text for title, text in tooltip.items()}
        for tooltip in chart["tooltips"]
    ]
    return {tuple(one[name].replace(UNSEEN, "") for name in names) for one in tooltips}
