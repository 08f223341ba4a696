"""Charts of gains, lift and accuracy profiles: their points, numbers and lines."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from drawings import caption, drawn, line_of, points_of, scored, with_one_class
from sklearn.metrics import roc_auc_score

import polars_wroc as wroc


def gains(data: pl.DataFrame) -> tuple[Any, Any]:
    """Cumulative shares of all weight and of that of the positives, from their definition."""
    rows = data.group_by("s").agg(
        pl.col("w").sum(), pl.col("w").filter("y").sum().alias("positive")
    )
    rows = rows.sort("s", descending=True)
    shares = rows.select(pl.col("w", "positive").cum_sum() / pl.col("w", "positive").sum())
    return tuple(np.concatenate([[0], shares[name].to_numpy()]) for name in ("w", "positive"))  # type: ignore[return-value]


def prevalence_of(rows: pl.DataFrame) -> float:
    positive = rows["y"].to_numpy()
    return float(np.average(positive, weights=rows["w"].to_numpy()))


@pytest.mark.parametrize("digits", [1, 9])
def test_points_are_cumulative_shares(digits: int) -> None:
    data = scored(200).with_columns(pl.col("s").round(digits))
    points = points_of(wroc.gain_chart(wroc.roc_curve(data, "y", "s", weight="w")))
    selected, gained = gains(data)
    assert np.allclose(points["selection_rate"], selected)
    assert np.allclose(points["tpr"], gained)


@pytest.mark.parametrize("digits", [1, 9])
def test_accuracy_ratio_is_an_area_divided_by_that_of_a_perfect_score(digits: int) -> None:
    data = scored(300, groups=2).with_columns(pl.col("s").round(digits))
    curve = wroc.roc_curve(data, "y", "s", weight="w", by="g")
    points = points_of(wroc.gain_chart(curve, kind="cap"))
    for (group,), part in points.group_by("__group1"):
        rows = data.filter(pl.col("g").cast(pl.String) == group)
        selected, gained = gains(rows)
        prevalence = prevalence_of(rows)
        ratio = (np.trapezoid(gained, selected) - 0.5) / (0.5 - prevalence / 2)
        auc = roc_auc_score(rows["y"], rows["s"], sample_weight=rows["w"])
        assert ratio == pytest.approx(2 * auc - 1)
        assert part["__label"].drop_nulls().to_list() == [f"{group}: accuracy ratio {ratio:.3f}"]


@pytest.mark.parametrize("digits", [1, 9])
def test_labels_are_gain_and_lift_of_the_top_decile(digits: int) -> None:
    data = scored(150).with_columns(pl.col("s").round(digits))
    curve = wroc.roc_curve(data, "y", "s", weight="w")
    gain = np.interp(0.1, *gains(data))
    for kind, text in (
        ("gain", f"{100 * gain:.1f}% of the positives"),
        ("lift", f"lift {10 * gain:.2f}"),
    ):
        points = points_of(wroc.gain_chart(curve, kind=kind))  # type: ignore[arg-type]
        assert points["__label"].drop_nulls().to_list() == [f"{text} in the top 10%"]


def test_lift_is_bent_between_tied_points() -> None:
    data = scored(400).with_columns(pl.col("s").round(1))
    points = points_of(wroc.gain_chart(wroc.roc_curve(data, "y", "s", weight="w"), kind="lift"))
    assert points["tp"].null_count() > 100
    points = points.filter(pl.col("selection_rate") > 0)
    x = points["selection_rate"].to_numpy()
    assert np.allclose(points["lift"], np.interp(x, *gains(data)) / x)
    assert np.allclose(points["__perfect_lift"], np.minimum(1 / prevalence_of(data), 1 / x))


def test_perfect_gains_reach_all_positives_at_the_prevalence() -> None:
    data = scored(100, groups=3)
    chart = wroc.gain_chart(wroc.roc_curve(data, "y", "s", weight="w", by="g"))
    perfect = chart.to_dict()["layer"][1]
    assert perfect["mark"]["type"] == "rule"
    assert perfect["encoding"]["x"]["field"] == "prevalence"
    assert [perfect["encoding"][name]["datum"] for name in ("y", "x2", "y2")] == [1, 0, 0]
    rows = points_of(chart).group_by("__group1").agg(pl.col("prevalence").first())
    for group, share in rows.iter_rows():
        of_group = data.filter(pl.col("g").cast(pl.String) == group)
        assert share == pytest.approx(prevalence_of(of_group))


@pytest.mark.slow
def test_thinned_curves_keep_the_numbers_of_the_whole() -> None:
    data = scored(40_000)
    curve = wroc.roc_curve(data, "y", "s", weight="w")
    gain = np.interp(0.1, *gains(data))
    auc = roc_auc_score(data["y"], data["s"], sample_weight=data["w"])
    for kind, number in (
        ("gain", f"{100 * gain:.1f}%"),
        ("lift", f"{10 * gain:.2f}"),
        ("cap", f"{2 * auc - 1:.3f}"),
    ):
        chart = wroc.gain_chart(curve, kind=kind)  # type: ignore[arg-type]
        points = points_of(chart)
        assert points.height <= (2_400 if kind == "lift" else 300)
        assert number in points["__label"].drop_nulls()[0]
        x = points["selection_rate"].to_numpy()
        assert np.abs(points["tpr"] - np.interp(x, *gains(data))).max() < 2e-3


def test_accuracy_ratio_of_a_thinned_table_is_that_of_the_whole_curve() -> None:
    data = scored(2_000)
    table = wroc.roc_curve(data, "y", "s", max_points=20)
    (row, *_) = drawn(wroc.gain_chart(table, kind="cap"))
    ratio = 2 * roc_auc_score(data["y"], data["s"]) - 1
    assert row["__label"] == f"accuracy ratio {ratio:.3f}"


def test_axis_of_lifts_is_not_stretched_by_the_first_rows() -> None:
    rare = pl.DataFrame({"y": [True] + [False] * 9_999, "s": np.linspace(1, 0, 10_000)})
    chart = wroc.gain_chart(wroc.roc_curve(rare, "y", "s"), kind="lift")
    assert line_of(chart)["y"]["scale"]["domain"] == pytest.approx([0, 54], rel=0.05)
    assert max(row["lift"] for row in drawn(chart) if row["lift"]) == pytest.approx(10_000)


@pytest.mark.parametrize("kind", ["gain", "lift", "cap"])
def test_curve_with_one_class_says_so(kind: Any) -> None:
    table = wroc.roc_curve(with_one_class(), "y", "s", by="g")
    points = points_of(wroc.gain_chart(table, kind=kind))
    labels = points.filter(__group1="b")["__label"].drop_nulls().to_list()
    assert labels == ["b: one class only: no curve"]


@pytest.mark.parametrize("kind", ["gain", "lift", "cap"])
def test_caption_says_what_the_lines_and_labels_are(kind: Any) -> None:
    chart = wroc.gain_chart(wroc.roc_curve(scored(50), "y", "s"), kind=kind)
    text = caption(chart)
    assert "Grey dashes: random order. Thin: perfect score" in text
    assert ("highest scores" in text) is (kind != "cap")


def test_grey_curves_have_no_label_and_no_perfect_line() -> None:
    data = scored(2_000, groups=8)
    points = points_of(wroc.gain_chart(wroc.roc_curve(data, "y", "s", by="g"), kind="lift"))
    named = set(points.filter(pl.col("__label").is_not_null())["__group1"])
    assert len(named) == 4
    assert set(points.filter(pl.col("__perfect_lift").is_not_null())["__group1"]) == named
    tops = {
        group: np.interp(0.1, *gains(rows.with_columns(w=1.0)))
        for (group,), rows in data.group_by(pl.col("g").cast(pl.String))
    }
    ranked = sorted(tops, key=lambda group: tops[group])
    assert named == {*ranked[:2], *ranked[-2:]}


def test_unknown_kind() -> None:
    table = wroc.roc_curve(scored(20), "y", "s")
    with pytest.raises(ValueError, match="`kind` must be one of 'gain', 'lift', 'cap'; found 'x'"):
        wroc.gain_chart(table, kind="x")  # type: ignore[arg-type]
