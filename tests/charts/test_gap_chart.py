"""Chart of gaps: what it draws, how it marks what is found, and what it refuses."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sweeps import sweep

import polars_wroc as wroc
from polars_wroc.charts.options import BACKGROUND

# As in the table, to be compared with it.
in_rows = partial(wroc.gap_chart, sort="rows")
PARTS = {"": "__value", "_low": "__low", "_high": "__high", "_p_adjusted": "__p_adjusted"}
DIFFERENT, ALIKE, LITTLE = "different", "equivalent", "inconclusive"


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    """Segment c ranks worse; d is small, and e has one class only."""
    rng = np.random.default_rng(8)
    groups = np.repeat(list("abcde"), [500, 500, 500, 12, 9])
    positive = rng.random(groups.size) < np.where(groups == "e", 1.0, 0.4)
    worse = np.where(groups == "c", 0.2, 1.6)
    return pl.DataFrame(
        {
            "g": groups,
            "h": rng.integers(0, 2, groups.size),
            "y": positive,
            "s": rng.normal(size=groups.size) + worse * positive,
            "t": rng.normal(size=groups.size) + positive,
        }
    )


@pytest.fixture(scope="module")
def gaps(rows: pl.DataFrame) -> pl.DataFrame:
    return wroc.group_gaps(rows, "y", "s", attributes="g", threshold=0.8, min_rows=30)


def drawn(chart: Any) -> pl.DataFrame:
    (data,) = chart.to_dict()["datasets"].values()
    return pl.DataFrame(data, infer_schema_length=None)


def texts_of(chart: Any, folder: Path) -> list[str]:
    chart.save(str(folder / "chart.svg"))
    root = ET.parse(folder / "chart.svg").getroot()  # noqa: S314  (our own file)
    return [text for text in root.itertext() if text.strip()]


@pytest.mark.parametrize(
    "metric", sweep(["auc", "selection_rate", "tpr", "fpr", "ppv", "npv"], fast=2)
)
def test_each_segment_is_drawn_with_its_gap_interval_and_p(gaps: pl.DataFrame, metric: Any) -> None:
    for table in (gaps, gaps.lazy()):
        found = drawn(in_rows(table, metric=metric))
        rows = gaps.filter(metric=metric)
        sizes = rows.select("segment", "n").rows()
        assert found["__row"].to_list() == [f"{g} (n = {n})" for g, n in sizes]
        for part, column in PARTS.items():
            # Gaps are in points.
            factor = 1 if part == "_p_adjusted" else 100
            name = part.strip("_") if part == "_p_adjusted" else f"gap{part}"
            assert found[column].to_list() == (rows[name] * factor).to_list()


@pytest.mark.parametrize("metric", ["auc", "tpr"])
def test_verdict_is_that_of_the_table(rows: pl.DataFrame, metric: Any) -> None:
    table = wroc.group_gaps(rows, "y", "s", attributes="g", threshold=0.8, min_rows=30, margin=0.3)
    found = drawn(in_rows(table, metric=metric))
    table = table.filter(metric=metric)
    assert found["__verdict"].to_list() == table["verdict"].to_list()
    assert {DIFFERENT, ALIKE, LITTLE} >= set(found["__verdict"].drop_nulls())
    # A significant gap within the margin is alike.
    alike, p = pl.col("verdict") == ALIKE, pl.col("p_adjusted")
    assert metric == "auc" or table.filter(alike, p < 0.05).height


@pytest.mark.parametrize("level", sweep([0.5, 0.95, 0.999]))
def test_scores_are_different_by_the_adjusted_p_value(rows: pl.DataFrame, level: float) -> None:
    table = wroc.compare(rows, "y", ["s", "t"], by="g", level=level)
    found = drawn(in_rows(table))
    expected = [
        None if difference is None else DIFFERENT if p is not None and p <= 1 - level else LITTLE
        for difference, p in table.select("gap", "p_adjusted").rows()
    ]
    assert found["__verdict"].to_list() == expected
    assert {DIFFERENT, LITTLE} <= set(expected)


@pytest.mark.slow
def test_what_is_found_differs_by_shape_width_and_words(gaps: pl.DataFrame, tmp_path: Path) -> None:
    chart = wroc.gap_chart(gaps)
    layers = chart.to_dict()["layer"]
    test = f"datum.__verdict === '{DIFFERENT}'"
    marks = {
        (layer["mark"]["type"], layer["transform"][0]["filter"] == test): layer["mark"]
        for layer in layers
        if "transform" in layer
    }
    assert marks["rule", True]["strokeWidth"] > 2 * marks["rule", False]["strokeWidth"]
    assert marks["point", True]["filled"]
    hollow = marks["point", False]
    assert (hollow["filled"], hollow["fill"]) == (False, BACKGROUND)
    texts = texts_of(chart, tmp_path)
    words = [text for text in texts if text in (DIFFERENT, ALIKE, LITTLE)]
    assert words == drawn(chart)["__verdict"].drop_nulls().to_list()
    assert DIFFERENT in words
    of_auc = gaps.filter(metric="auc").select("gap_low", "gap_high")
    for low, high in of_auc.drop_nulls().rows():
        points = f"{100 * low:+.1f} to {100 * high:+.1f}"
        assert points.replace("-", "\N{MINUS SIGN}") in texts


def test_line_stands_at_no_gap_and_inside_the_panel(gaps: pl.DataFrame) -> None:
    first, *others = wroc.gap_chart(
        gaps.filter(pl.col("metric") == "auc", pl.col("gap") > 0.01)
    ).to_dict()["layer"]
    assert first["encoding"]["x"] == {"datum": 0}
    (domain,) = {
        tuple(layer["encoding"]["x"]["scale"]["domain"])
        for layer in others
        if "scale" in layer["encoding"].get("x", {})
    }
    assert domain[0] <= 0 < domain[1]


def test_segment_without_a_gap_is_named(gaps: pl.DataFrame, tmp_path: Path) -> None:
    assert gaps.filter(segment="e", metric="auc")["gap"].to_list() == [None]
    texts = texts_of(in_rows(gaps), tmp_path)
    assert [text[0] for text in texts if re.search(r"\(n = \d+\)", text)] == list("abcde")
    assert texts.count("not defined") == 1
    assert "null" not in texts


def test_audit_has_a_panel_for_each_attribute_and_a_shape_for_each_score(
    rows: pl.DataFrame,
) -> None:
    audit = wroc.audit(
        rows, "y", ["s", "t"], attributes=["g", "h"], threshold=0.8, favorable="selected"
    )
    spec = in_rows(audit.table, metric="fpr").to_dict()
    assert [panel["title"]["text"] for panel in spec["vconcat"]] == ["g", "h"]
    for panel in spec["vconcat"]:
        attribute = panel["title"]["text"]
        shown = spec["datasets"][panel["data"]["name"]]
        expected = audit.table.filter(attribute=attribute, metric="fpr")
        assert [row["__value"] for row in shown] == (expected["gap"] * 100).to_list()
        points = [layer for layer in panel["layer"] if "shape" in layer["encoding"]]
        assert len(points) == 2
        for layer in points:
            scales = [layer["encoding"][name]["scale"] for name in ("color", "shape")]
            assert [scale["domain"] for scale in scales] == [["s", "t"]] * 2
            assert all(len(set(scale["range"])) == 2 for scale in scales)


def test_values_have_their_limits_and_that_of_all_rows(rows: pl.DataFrame, tmp_path: Path) -> None:
    options: dict[str, Any] = {"threshold": 0.8, "favorable": "selected"}
    table = wroc.audit(rows, "y", ["s", "t"], attributes="g", **options).table
    chart = in_rows(table, metric="tpr", show="value")
    found, expected = drawn(chart), table.filter(attribute="g", metric="tpr")
    for column, end in (("__value", ""), ("__low", "_low"), ("__high", "_high")):
        assert found[column].to_list() == expected[f"value{end}"].to_list()
    overall = dict(table.filter(attribute="overall", metric="tpr").select("model", "value").rows())
    assert found["__line_value"].to_list() == [overall[model] for model in expected["model"]]
    said = [verdict or reason for verdict, reason in expected.select("verdict", "reason").rows()]
    assert found["__remark"].to_list() == said
    rates = wroc.group_gaps(rows, "y", "s", attributes="g", threshold=0.8)
    caption = "Upright mark: the rest. n is the number of positives"
    assert caption in texts_of(in_rows(rates, metric="tpr", show="value"), tmp_path)


def test_what_a_metric_does_not_have_is_refused(gaps: pl.DataFrame, rows: pl.DataFrame) -> None:
    with pytest.raises(
        ValueError, match=r"`show` must be one of \['value', 'gap'\] for auc; found"
    ):
        wroc.gap_chart(gaps, show="ratio")
    assert wroc.gap_chart(gaps, metric="tpr", show="ratio")
    fairness = wroc.fairness(rows, "y", "s", attributes="g", threshold=0.8)
    with pytest.raises(ValueError, match=r"must be one of \['ratio'\] for equalized_odds_ratio"):
        wroc.gap_chart(fairness, metric="equalized_odds_ratio")
    ratios = wroc.impact_ratios(rows, "s", attributes="g", threshold=0.8, favorable="selected")
    with pytest.raises(ValueError, match=r"must be one of \['value', 'ratio'\] for impact_ratio"):
        wroc.gap_chart(ratios, metric="impact_ratio")
    with pytest.raises(
        ValueError, match=r"^`show` must be one of 'value', 'gap', 'ratio', 'funnel'"
    ):
        wroc.gap_chart(gaps, show="gaps")  # type: ignore[arg-type]


def test_chart_says_what_it_is_and_names_its_level(gaps: pl.DataFrame) -> None:
    spec = wroc.gap_chart(gaps, metric="ppv", level=0.9).to_dict()
    assert spec["description"].startswith("Gap in precision of each segment")
    titles = {layer["encoding"].get("x", {}).get("title") for layer in spec["layer"]}
    assert "Gap in precision, in points of 100, with its 90% confidence interval" in titles
    assert spec["title"]["subtitle"] == "n is the number of rows that are selected"
    plain = wroc.gap_chart(gaps, metric="ppv", title=None).to_dict()
    assert plain["title"]["text"] == "n is the number of rows that are selected"


@pytest.mark.slow
def test_title_is_the_largest_gap_that_is_different(rows: pl.DataFrame, gaps: pl.DataFrame) -> None:
    def title(table: Any, **given: Any) -> Any:
        return wroc.gap_chart(table, **given).to_dict().get("title", {}).get("text")

    gap = gaps.filter(metric="auc", segment="c")["gap"].item()
    for show in ("gap", "value"):
        assert title(gaps, show=show) == f"c: AUC {-100 * gap:.0f} points below the rest"
    # Of two segments with the same gap, that which is below.
    for value, said in ((0.114, "11 points"), (0.0103, "1 point"), (0.0032, "0.32 points")):
        mirrored = gaps.filter(metric="auc", segment="a").with_columns(verdict=pl.lit(DIFFERENT))
        both = [
            mirrored.with_columns(gap=pl.lit(gap), segment=pl.lit(name))
            for gap, name in ((value + 1e-15, "above"), (-value, "under"))
        ]
        assert title(pl.concat(both)) == f"under: AUC {said} below the rest"
    # Nothing is different: the caption alone.
    same = gaps.with_columns(verdict=pl.lit(LITTLE))
    assert title(same) == "n is the number of rows of the smaller class"
    ratios = wroc.impact_ratios(rows, "s", attributes="g", threshold=0.8, favorable="selected")
    worst = ratios.filter(verdict="below four fifths").sort("ratio").row(0, named=True)
    expected = f"{worst['segment']}: rate of the favorable decision {worst['ratio']:.2f} times that"
    found = title(ratios, metric="selection_rate", show="value")
    assert found == f"{expected} of {worst['reference']}"
    release = wroc.release_check(rows, "y", "s", "t", attributes=["g", "h"], threshold=0.8)
    worse = release.filter(metric="auc", verdict="worse").sort("gap").row(0, named=True)
    segment = "all rows" if worse["attribute"] == "overall" else f"g = {worse['segment']}"
    points = f"{-100 * worse['gap']:.0f} points below the old score"
    assert title(release) == f"{segment}: AUC {points}"


def test_segments_are_sorted_by_value_unless_they_have_an_order() -> None:
    def names(groups: list[str], dtype: Any = pl.String) -> list[str]:
        """Of groups that are selected more and more."""
        each = [group for place, group in enumerate(groups) for _ in range(4 + place)]
        chosen = [n == 0 or n > 3 for place in range(len(groups)) for n in range(4 + place)]
        data = pl.DataFrame({"g": pl.Series(each, dtype=dtype), "y": chosen, "d": chosen})
        table = wroc.group_gaps(data, "y", selected="d", attributes="g")
        rows = drawn(wroc.gap_chart(table, metric="selection_rate", show="value"))["__row"]
        return [name.partition(" (")[0] for name in rows]

    assert names(["a", "b", "c"]) == ["c", "b", "a"]
    assert names(["18-39", "40-64", "65+"]) == ["18-39", "40-64", "65+"]
    assert names(["<40", "<65", ">=65"]) == ["<40", "<65", ">=65"]
    assert names(["low", "middle", "high"], pl.Enum(["low", "middle", "high"])) == [
        "low",
        "middle",
        "high",
    ]


def test_axis_is_cut_only_if_it_were_a_third_longer(gaps: pl.DataFrame) -> None:
    def domain(table: pl.DataFrame) -> Any:
        (each,) = {
            tuple(x["scale"]["domain"])
            for layer in wroc.gap_chart(table).to_dict()["layer"]
            if "scale" in (x := layer["encoding"].get("x", {}))
        }
        return each

    usual = gaps.filter(pl.col("metric") == "auc", pl.col("gap").is_not_null()).with_columns(
        gap=pl.lit(0.0), gap_low=pl.lit(-0.1), gap_high=pl.lit(0.1)
    )
    last = pl.int_range(pl.len()) == pl.len() - 1
    for high, ends in ((0.35, (-10.0, 10.0)), (0.15, (-10.0, 15.0))):
        wide = usual.with_columns(gap_high=pl.when(last).then(high).otherwise("gap_high"))
        assert domain(wide) == pytest.approx(ends)


def test_panels_have_one_axis_below_the_last(rows: pl.DataFrame) -> None:
    table = wroc.group_gaps(rows, "y", "s", attributes=["g", "h"])
    first, last = wroc.gap_chart(table).to_dict()["vconcat"]
    for panel, labelled in ((first, False), (last, True)):
        axes = [x for layer in panel["layer"] if "axis" in (x := layer["encoding"].get("x", {}))]
        assert axes
        assert all(axis["axis"]["labels"] is labelled for axis in axes)
        assert all((axis["title"] is not None) is labelled for axis in axes)
    # Each panel has its own segments alone, and intervals end at its edges.
    spec = wroc.gap_chart(table, show="value", margin=0.1).to_dict()
    for panel, segments in zip(spec["vconcat"], (5, 2), strict=True):
        for layer in panel["layer"]:
            if "y" in (encoding := layer["encoding"]):
                assert len(encoding["y"]["scale"]["domain"]) == segments
            if layer["mark"]["type"] == "rule" and "x2" in encoding:
                assert layer["mark"]["clip"]


def test_auc_chart_names_the_level_that_it_is_told(rows: pl.DataFrame) -> None:
    summary = wroc.summary(rows, "y", "s", by="g", level=0.8)
    for level, words in ((0.8, "80% confidence interval"), (None, "confidence interval")):
        spec = wroc.auc_chart(summary, level=level).to_dict()
        titles = {layer["encoding"]["x"].get("title") for layer in spec["layer"]}
        assert f"AUC with its {words}" in titles
    for level in (95, 0, 1):
        with pytest.raises(ValueError, match=f"`level` must lie between 0.001 .* found {level}"):
            wroc.auc_chart(summary, level=level)


def test_everything_may_be_undefined_without_a_warning(tmp_path: Path) -> None:
    data = pl.DataFrame({"g": list("ab"), "y": [1, 0], "s": [0.1, 0.2]})
    chart = wroc.gap_chart(wroc.group_gaps(data, "y", "s", attributes="g"))
    assert [text[0] for text in texts_of(chart, tmp_path) if "(n = " in text] == ["a", "b"]


def test_options_and_tables_that_are_refused(rows: pl.DataFrame, gaps: pl.DataFrame) -> None:
    with pytest.raises(ValueError, match=r"`metric` must be one of the table, .*; found 'f1'"):
        wroc.gap_chart(gaps, metric="f1")
    with pytest.raises(ValueError, match="found 'tprr'; did you mean 'tpr'"):
        wroc.gap_chart(gaps, metric="tprr")
    for level in (2, 0, 1):
        with pytest.raises(ValueError, match=f"`level` must lie between 0.001 .* found {level}"):
            wroc.gap_chart(gaps, level=level)
    plain = wroc.group_gaps(rows, "y", "s", attributes="g")
    with pytest.raises(ValueError, match=r"^`metric` must be one of the table, \['auc'\]; found"):
        wroc.gap_chart(plain, metric="tpr")
    with pytest.raises(
        TypeError, match=r"^`table` must be a table of this package; found list: make it"
    ):
        wroc.gap_chart([])  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match=r"^`table` must have 1 to 5,000 rows to be drawn; found 0$"
    ):
        wroc.gap_chart(gaps.with_columns(attribute=pl.lit("overall")))
    with pytest.raises(ValueError, match=r"^`facet` must be a group column of the table, "):
        wroc.gap_chart(gaps, facet="auc")
    with pytest.raises(TypeError, match=r"`colour` must be an option .*; did you mean 'color'"):
        wroc.gap_chart(gaps, colour="g")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="`columns` must be an option of this chart; it is none"):
        wroc.gap_chart(gaps, columns=3)


def test_differences_between_scores_have_a_panel_for_each_pair(rows: pl.DataFrame) -> None:
    data = rows.with_columns(u=pl.col("s") + pl.col("t"))
    table = wroc.compare(data, "y", ["s", "t", "u"], by="g")
    spec = in_rows(table, level=0.95).to_dict()
    pairs = [panel["title"]["text"] for panel in spec["vconcat"]]
    scores = [("s", "t"), ("s", "u"), ("t", "u")]
    assert pairs == [f"{a} \N{MINUS SIGN} {b}" for a, b in scores]
    for panel, (first, second) in zip(spec["vconcat"], scores, strict=True):
        expected = table.filter(model=first, reference=second)
        shown = spec["datasets"][panel["data"]["name"]]
        columns = ("gap", "gap_low", "gap_high", "p_adjusted")
        for name, column in zip(PARTS.values(), columns, strict=True):
            factor = 1 if column == "p_adjusted" else 100
            assert [row[name] for row in shown] == (expected[column] * factor).to_list()
        sizes = expected.select("g", "n").rows()
        assert [row["__row"] for row in shown] == [f"{g} (n = {n})" for g, n in sizes]
    title = "Difference in AUC, in points of 100, with its 95% confidence interval"
    assert title in str(spec)


def test_differences_without_groups_are_rows(rows: pl.DataFrame) -> None:
    table = wroc.compare(rows, "y", ["s", "t"])
    (row,) = wroc.gap_chart(table.lazy()).to_dict()["datasets"].values()
    assert [each["__row"].partition(" (")[0] for each in row] == ["s \N{MINUS SIGN} t"]
    with pytest.raises(ValueError, match=r"^`metric` must be 'auc' for the table of `compare`; "):
        wroc.gap_chart(table, metric="tpr")


def test_pairs_of_scores_may_have_colours(rows: pl.DataFrame) -> None:
    table = wroc.compare(rows.rename({"g": "comparison"}), "y", ["s", "t"], by="comparison")
    assert "vconcat" in in_rows(table).to_dict()
    table = wroc.compare(rows, "y", ["s", "t"], by="g")
    found = drawn(in_rows(table, color="comparison"))
    assert found["__row"].str.slice(0, 1).to_list() == list("abcde")


@pytest.fixture(scope="module")
def many() -> pl.DataFrame:
    """Gaps of 60 sites, of which two are truly different."""
    rng = np.random.default_rng(3)
    sites = np.repeat(np.arange(60), rng.integers(20, 400, 60))
    score = rng.normal(size=sites.size) + (sites < 2) * 1.5
    positive = rng.random(sites.size) < 0.4
    rows = pl.DataFrame({"site": sites.astype(str), "y": positive, "s": score})
    return wroc.group_gaps(rows, "y", "s", attributes="site", threshold=0.8)


def test_funnel(many: pl.DataFrame) -> None:
    spec = wroc.gap_chart(many, metric="selection_rate", show="funnel").to_dict()
    of_metric = many.filter(metric="selection_rate")
    marks, named, limits = (
        next(
            rows
            for rows in spec["datasets"].values()
            if name in rows[0] and name_not not in rows[0]
        )
        for name, name_not in (("__verdict", "limit"), ("__row", "__verdict"), ("limit", "__n"))
    )
    assert [row["__n"] for row in marks] == of_metric["n"].to_list()
    assert [row["__value"] for row in marks] == (100 * of_metric["gap"]).to_list()
    assert {row["__row"] for row in named} <= {"0", "1"}
    # Limits fall with the root of the number of rows; a segment's own are close to them.
    table = pl.DataFrame(limits)
    inner = table.filter(pl.col("limit") > 0, ~pl.col("all")).select(
        pl.col("limit") * pl.col("n").sqrt()
    )
    half = 50 * (of_metric["gap_high"] - of_metric["gap_low"]) * of_metric["n"].sqrt()
    assert inner.to_series().to_list() == pytest.approx([half.median()] * inner.height)
    shapes = {
        layer["encoding"]["shape"]["scale"]["range"][0]
        for layer in spec["layer"]
        if "shape" in layer["encoding"]
    }
    assert shapes == {"diamond"}


def test_funnel_of_several_metrics(many: pl.DataFrame) -> None:
    chart = wroc.gap_chart(many, metric=["auc", "tpr"], show="funnel")
    assert [panel["title"]["text"] for panel in chart.to_dict()["vconcat"]] == [
        "AUC",
        "True positive rate",
    ]
    # Of AUC none is different; verdicts look the same in both panels all the same.
    scales = [
        layer["encoding"][name]["scale"]
        for panel in chart.to_dict()["vconcat"]
        for layer in panel["layer"]
        for name in ("shape", "color")
        if name in layer["encoding"]
    ]
    first, second = scales[:2], scales[2:]
    assert first == second
    assert first[0]["range"][first[0]["domain"].index(DIFFERENT)] == "diamond"


@pytest.mark.parametrize("segments", [2, 3, 8, 25])
def test_funnel_is_drawn(segments: int, many: pl.DataFrame, tmp_path: Path) -> None:
    some = many.filter(pl.col("segment").cast(pl.Int64) < segments)
    chart = wroc.gap_chart(some, metric="selection_rate", show="funnel")
    texts = texts_of(chart, tmp_path)
    assert "number of rows, n" in texts
    assert {"different", "0"} <= set(texts)


def test_no_funnel(many: pl.DataFrame) -> None:
    with pytest.raises(ValueError, match="must have gaps with a verdict to be drawn as a funnel"):
        wroc.gap_chart(many.with_columns(verdict=None), show="funnel")


@pytest.mark.slow
def test_a_new_score_is_drawn_with_a_mark_at_the_old_one(
    rows: pl.DataFrame, tmp_path: Path
) -> None:
    table = wroc.release_check(rows, "y", "s", "t", attributes="g", threshold=0.8)
    for metric, show in (("tpr", "value"), ("auc", "gap"), ("accuracy", "gap")):
        chart = in_rows(table, metric=metric, show=show)  # type: ignore[arg-type]
        data = chart.to_dict()["datasets"].values()
        found = pl.DataFrame([row for each in data for row in each], infer_schema_length=None)
        expected = table.filter(metric=metric)
        # All rows, then the segments.
        assert found["__remark"].to_list() == expected["verdict"].to_list()
        old, unit = expected["reference_value"], 1
        if show == "gap":
            old, unit = old * 0, 100
            assert "__mark" not in found.columns
        else:
            assert found["__mark"].to_list() == old.to_list()
        for column, end in (("__value", ""), ("__low", "_low"), ("__high", "_high")):
            drawn_at = unit * (old + expected[f"gap{end}"])
            assert found[column].to_list() == pytest.approx(drawn_at.to_list(), nan_ok=True)
        texts = " ".join(texts_of(chart, tmp_path))
        mark = "Shaded: gaps within 1 points" if show == "gap" else "Upright mark: the old score"
        assert mark in texts
    with pytest.raises(ValueError, match="`show` must be 'value' or 'gap' of one metric"):
        in_rows(table, metric="tpr", show="ratio")
    losses = wroc.release_check(
        rows.with_columns(pl.col("s", "t") / 20 + 0.5), "y", "s", "t", metrics=["brier_score"]
    )
    assert "Brier score of the new score" in " ".join(
        texts_of(in_rows(losses, metric="brier_score", show="value"), tmp_path)
    )


@pytest.mark.parametrize("metric", ["tpr", "brier_score"])
def test_worst_segments_are_one_panel_with_joint_limits(tmp_path: Path, metric: str) -> None:
    rng = np.random.default_rng(3)
    a, b = (pl.Series(rng.choice(["x", "z"], 3000).tolist()) for _ in "ab")
    bad = ((a == "x") & (b == "z")).to_numpy()
    score = rng.beta(5, 3, 3000)
    rows = pl.DataFrame({"a": a, "b": b, "s": score, "y": rng.random(3000) < score})
    rows = rows.with_columns(s=pl.Series(np.where(bad, 0.4 * score, score)))
    decisions: dict[str, Any] = {"threshold": 0.5, "favorable": "selected"}
    given = decisions if metric == "tpr" else {"metric": metric}
    table = wroc.worst_segments(rows, "y", "s", attributes=["a", "b"], redundant=True, **given)
    assert table.height > 2
    chart = wroc.gap_chart(table, metric=metric)
    names = [
        f"{row['attribute']} = {row['segment']} (n = {row['n']:,})"
        for row in table[1:].iter_rows(named=True)
    ]
    assert drawn(chart)["__row"].to_list() == names
    assert "joint" in " ".join(texts_of(chart, tmp_path))
