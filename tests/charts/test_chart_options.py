"""What all charts let a caller choose, and what all charts hold: sizes, colours, names, errors."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl
import pytest
from every_chart import (
    CHARTS,
    MODELS,
    NO_COLORS,
    make_rows,
    rows_of,
    svg_of,
)
from sweeps import sweep

import polars_wroc as wroc
from polars_wroc.cli import main

# Names that break a page, a spec or an object of JavaScript.
ATTACKERS = [
    *("__proto__", "constructor", "toString", "a.b[c]:d", "it's", 'say "so"', "\\", "datum"),
    *("</script><b>", "${name}", "a\u2028b", "g\x00\x07\x85\ufffe", "", "a\nb", "%"),
]

START = Path(__file__).parents[2] / "docs" / "start.md"
OPTIONS: dict[str, dict[str, Any]] = {
    "none": {},
    "size": {"width": 200, "height": 150},
    "sort": {"sort": "value"},
    "name": {"sort": "name", "columns": 1},
    "texts": {"title": "A title", "subtitle": ""},
}


def test_every_chart_is_here() -> None:
    assert {name for name in wroc.__all__ if name.endswith("_chart")} == {*CHARTS} - {"det"}


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("models", MODELS)
@pytest.mark.parametrize("name", sweep([*CHARTS], fast=4))
def test_each_chart_is_drawn_with_each_option(name: str, models: str, option: str) -> None:
    chart = CHARTS[name](make_rows(["b", "a", "c"]), MODELS[models], **OPTIONS[option])
    # This validates the spec.
    spec = chart.to_dict()
    assert spec["description"]
    picture = svg_of(chart)
    assert "NaN" not in picture
    assert "undefined" not in re.sub(r"<[^>]*>", "", picture)
    if option == "texts":
        assert spec["title"]["text"] == ["A title"]
        assert "subtitle" not in spec["title"]


@pytest.mark.parametrize("name", CHARTS)
def test_charts_can_be_put_side_by_side(name: str) -> None:
    chart = CHARTS[name](make_rows(["a", "b"]), "s")
    assert svg_of(alt.hconcat(chart, chart))


def colors_of(chart: Any) -> dict[str, Any]:
    """Return the colour of each group."""
    for layer in re.findall(
        r'\{"domain": \[[^]]*\], "range": \[.*?\]\}', json.dumps(chart.to_dict())
    ):
        scale = json.loads(layer)
        if scale["range"] and "luminance" in json.dumps(scale["range"]):
            return dict(zip(scale["domain"], map(json.dumps, scale["range"]), strict=True))
    return {}


@pytest.mark.parametrize("name", [name for name in CHARTS if name not in NO_COLORS])
def test_colours_do_not_change_with_order_or_highlight(name: str) -> None:
    data = make_rows(["c", "a", "b"])
    options: dict[str, Any] = {} if name == "gap_chart" else {"color": "g"}
    if name == "time_chart":
        options = {"color": "segment"}
    scores = ["s", "t"] if name == "gap_chart" else "s"
    usual = colors_of(CHARTS[name](data, scores, **options))
    assert len(usual) >= 2
    for sort in ("name", "value"):
        assert colors_of(CHARTS[name](data, scores, **options, sort=sort)) == usual
    if name != "gap_chart":
        one = colors_of(CHARTS[name](data, scores, **options, highlight=["b"]))
        assert one["b"] == usual["b"]
        assert one["a"] == one["c"] != usual["a"]


def test_colours_can_be_chosen() -> None:
    data = make_rows(["a", "b"])
    for colors in (["teal", "#aa0000"], {"b": "#aa0000", "a": "teal"}):
        picture = svg_of(CHARTS["roc_chart"](data, "s", colors=colors))
        assert 'stroke="teal"' in picture
        assert 'stroke="#aa0000"' in picture
    with pytest.raises(ValueError, match="`colors` must name values of `color`"):
        CHARTS["roc_chart"](data, "s", colors={"z": "teal"})
    with pytest.raises(ValueError, match="`colors` must be CSS colors"):
        CHARTS["roc_chart"](data, "s", colors=["no colour;"])


def test_panels_have_one_legend() -> None:
    for name in ("roc_chart", "gap_chart", "time_chart", "calibration_chart"):
        picture = svg_of(CHARTS[name](make_rows(["a", "b", "c"]), ["s", "t"]))
        assert picture.count('class="mark-group role-legend"') == 1, name


def test_of_many_groups_the_extremes_are_in_colour() -> None:
    data = make_rows([f"r{n}" for n in range(8)])
    chart = CHARTS["roc_chart"](data, "s")
    auc = wroc.summary(data, "y", "s", by="g").sort("auc")["g"].to_list()
    labels = {row["text"].split("  ")[0] for row in rows_of(chart) if row["kind"] == "label"}
    assert labels == {*auc[:2], *auc[-2:]}
    assert "Grey: 4 others" in chart.to_dict()["description"]


def test_long_names_that_differ_at_their_end_are_told_apart() -> None:
    long = "a department with a long name, section "
    chart = CHARTS["roc_chart"](make_rows([f"{long}{n}" for n in "123"]), "s")
    names = {row["color"] for row in rows_of(chart) if "color" in row}
    assert len(names) == 3
    assert all(len(name) < len(long) for name in names)


@pytest.mark.parametrize("name", CHARTS)
def test_names_of_attackers_are_drawn(name: str) -> None:
    data = make_rows(ATTACKERS, 30)
    picture = svg_of(CHARTS[name](data, "s"))
    assert "<b>" not in picture
    assert not re.search("[\x00-\x08\x0e-\x1f\x7f-\x9f\ufffe\uffff]", picture)
    if name in ("calibration_chart", "gap_chart"):
        for attacker in ("__proto__", "constructor", "a.b[c]:d", "datum", "${name}", "%"):
            assert attacker in picture


def test_missing_groups_and_a_group_of_that_name_are_two() -> None:
    data = make_rows(["(missing)", "a", "b"])
    data = data.with_columns(g=pl.when(pl.col("g") != "b").then("g"))
    names = {row["color"] for row in rows_of(CHARTS["roc_chart"](data, "s")) if "color" in row}
    assert names == {"(missing)", "((missing))", "a"}


def test_categories_keep_their_order() -> None:
    data = make_rows(["low", "mid", "high"])
    data = data.with_columns(pl.col("g").cast(pl.Enum(["high", "mid", "low"])))
    rows = rows_of(CHARTS["calibration_chart"](data, "s"))
    assert [row["panel"] for row in rows if row["kind"] == "panel"] == ["high", "mid", "low"]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"colour": "g"},
            TypeError,
            "this chart has no option `colour`; did you mean `color`?",
        ),
        ({"title": 3}, TypeError, "`title` must be text"),
        ({"color": "h"}, ValueError, "`color` must be a group column of the table, out of g; "),
        ({"highlight": "a"}, TypeError, "`highlight` must be a list of values"),
        ({"highlight": ["z"]}, ValueError, "`highlight` must name values of `color`"),
        ({"highlight": list("abcdef")}, ValueError, "`highlight` must list 1 to 5 values"),
        ({"colors": "red"}, TypeError, "`colors` must be a list of colors"),
        ({"scale": 2}, TypeError, "this chart has no option `scale`; it has title, subtitle, wid"),
        ({"by": "g"}, TypeError, "this chart has no option `by`; did you mean `color`?"),
        ({"hue": "g"}, TypeError, "this chart has no option `hue`; did you mean `color`?"),
        ({"figsize": (5, 5)}, TypeError, "no option `figsize`; did you mean `width`?"),
    ],
)
def test_charts_refuse_unknown_options(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        CHARTS["roc_chart"](make_rows(["a", "b"]), "s", **options)


@pytest.mark.parametrize("by", [None, "g"])
def test_roc_curves_refuse_a_summary_with_other_weights(by: str | None) -> None:
    data = make_rows(["a", "b"]).with_columns(w=1 + pl.col("s") ** 2)
    curves = wroc.roc_curve(data, "y", "s", weight="w", by=by)
    weighted = wroc.summary(data, "y", "s", weight="w", by=by)
    rounded = weighted.with_columns(pl.col("auc", "auc_low", "auc_high").round(3))
    assert wroc.roc_chart(curves, summary=rounded).to_dict()
    unweighted = wroc.summary(data, "y", "s", by=by)
    own, other = (each.row(0, named=True) for each in (weighted, unweighted))
    where = "" if by is None else f" for g = {other['g']}"
    message = (
        "`summary` must be of the same rows and weights as the curves; "
        f"found AUC {other['auc']:.3f}{where}, and AUC {own['auc']:.3f} in the curve"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        wroc.roc_chart(curves, summary=unweighted)
    with pytest.raises(ValueError, match=r"^`summary` must be None with `det`"):
        wroc.roc_chart(curves, summary=weighted, det=True)


@pytest.mark.parametrize("name", [name for name in CHARTS if name != "det"])
def test_charts_of_rows_name_the_function_that_makes_their_table(name: str) -> None:
    rows = pl.DataFrame({"y": [1, 0], "s": [0.9, 0.1], "g": ["a", "b"]})
    given = {"cost_fn": 1.0} if name == "cost_chart" else {}
    for table, error in ((rows, ValueError), (rows.lazy(), ValueError), (rows.rows(), TypeError)):
        with pytest.raises(error, match=r"^`\w+` must be a table of `.*`; found "):
            getattr(wroc, name)(table, **given)


def test_chart_of_an_audit_is_of_its_table() -> None:
    rows = pl.DataFrame({"y": [1, 0] * 4, "s": [0.9, 0.1] * 4, "g": ["a", "a", "b", "b"] * 2})
    audit: Any = wroc.audit(rows, "y", "s", attributes="g")
    with pytest.raises(TypeError, match=r"; found Audit: pass its `table`$"):
        wroc.gap_chart(audit)
    wroc.gap_chart(audit.table)


@pytest.mark.parametrize("name", CHARTS)
def test_charts_of_groups_without_both_classes(name: str) -> None:
    data = make_rows(["a", "b"]).with_columns(y=pl.col("y") & (pl.col("g") == "a"))
    if name != "det":
        assert svg_of(CHARTS[name](data, "s"))


def test_charts_follow_a_dark_theme() -> None:
    with alt.theme.enable("dark"):
        picture = svg_of(CHARTS["roc_chart"](make_rows(["a", "b"]), "s"))
    assert "#61CDFD" in picture
    assert "#0067B2" not in picture


def test_saved_pictures_have_twice_the_pixels(tmp_path: Any) -> None:
    make_rows(["a", "b"]).write_parquet(tmp_path / "rows.parquet")
    curve = ["curve", str(tmp_path / "rows.parquet"), "--label", "y", "--score", "s"]
    assert main([*curve, "-o", str(tmp_path / "roc.png")]) == 0
    width = int.from_bytes((tmp_path / "roc.png").read_bytes()[16:20], "big")
    assert width > 600
    assert main([*curve, "-o", str(tmp_path / "roc.html")]) == 0
    assert not re.search(r'(src|href)="?https?:', (tmp_path / "roc.html").read_text("utf-8"))


def test_notebooks_without_a_network_show_pictures_of_twice_the_pixels() -> None:
    chart = CHARTS["roc_chart"](make_rows(["a", "b"]), "s", width=200, height=200)
    with alt.renderers.enable("png", scale_factor=2):
        shown, *_ = chart._repr_mimebundle_()
    assert int.from_bytes(shown["image/png"][16:20], "big") > 400
    assert 'altair.renderers.enable("png", scale_factor=2)' in START.read_text(encoding="utf-8")
