"""What charts draw equals their tables: the rows of the spec, read by their kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_wroc as wroc


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    rng = np.random.default_rng(7)
    label = rng.random(900) < 0.4
    score = np.clip(rng.normal(0.4 + 0.2 * label, 0.2), 0.01, 0.99)
    return pl.DataFrame(
        {
            "y": label,
            "s": score,
            "t": np.clip(score + rng.normal(0, 0.2, 900), 0.01, 0.99),
            "g": rng.choice(["a", "b", "c"], 900),
            "h": rng.choice(["m", "f"], 900),
            "day": pl.Series(np.arange(900) // 300 + 1),
        }
    )


def drawn(chart: Any, kind: str) -> pl.DataFrame:
    """Return the rows of a chart that a drawing draws."""
    (listed,) = chart.to_dict()["datasets"].values()
    return pl.DataFrame(listed, infer_schema_length=None).filter(kind=kind)


def title(chart: Any) -> str:
    """Return the title of a chart in one line."""
    text = chart.to_dict()["title"]["text"]
    return text if isinstance(text, str) else " ".join(text)


def assert_points_of(found: pl.DataFrame, table: pl.DataFrame, names: dict[str, str]) -> None:
    """Each point that is drawn is a row of the table."""
    texts = [name for name in names if found.schema[name] == pl.String]
    numbers = [name for name in names if name not in texts]
    known = table.select(**{name: pl.col(column) for name, column in names.items()}).drop_nulls()
    keys = known.select(texts).rows() or [()] * known.height
    points = known.select(pl.col(numbers).cast(pl.Float64)).to_numpy()
    for row in found.select(*texts, *numbers).rows():
        own, place = row[: len(texts)], np.array(row[len(texts) :], float)
        same = np.array([key == own for key in keys])
        assert np.isclose(points[same], place, rtol=1e-4, atol=1e-9).all(axis=1).any(), row


def test_roc_curves_have_points_of_the_table_and_its_auc(rows: pl.DataFrame) -> None:
    table = wroc.roc_curve(rows, "y", "s", by="g")
    chart = wroc.roc_chart(table, summary=(summary := wroc.summary(rows, "y", "s", by="g")))
    curve = drawn(chart, "curve")
    assert_points_of(curve, table, {"color": "g", "x": "fpr", "y": "tpr"})
    ends = curve.group_by("color").agg(pl.col("x", "y").max()).sort("color")
    assert ends.rows() == [("a", 1.0, 1.0), ("b", 1.0, 1.0), ("c", 1.0, 1.0)]
    labels = drawn(chart, "label")["text"].to_list()
    for g, auc, low, high in summary.select("g", "auc", "auc_low", "auc_high").rows():
        assert f"{g}  {auc:.3f} ({low:.2f}\N{EN DASH}{high:.2f})" in labels
    best, worst = summary.sort("auc")["g"][-1], summary.sort("auc")["g"][0]
    assert title(chart).startswith("AUC from ")
    assert f"({worst}) to " in title(chart)
    assert title(chart).endswith(f"({best})")


def test_labels_are_those_of_the_whole_curve_where_it_was_thinned() -> None:
    rng = np.random.default_rng(1)
    label = rng.random(30_000) < 0.3
    big = pl.DataFrame({"y": label, "s": rng.normal(label, 1)})
    auc = wroc.summary(big, "y", "s")["auc"][0]
    chart = wroc.roc_chart(wroc.roc_curve(big, "y", "s"))
    assert drawn(chart, "curve").height <= 161
    assert drawn(chart, "label")["text"].to_list() == [f"{auc:.3f}"]
    thin = wroc.roc_chart(wroc.roc_curve(big, "y", "s", max_points=50))
    assert drawn(thin, "label")["text"].to_list() == [f"{auc:.3f}"]


def test_det_curves_cross_the_diagonal_at_the_equal_error_rate(rows: pl.DataFrame) -> None:
    chart = wroc.roc_chart(wroc.roc_curve(rows, "y", "s"), det=True)
    metrics = rows.select(wroc.curve_metrics("y", "s", metrics=["equal_error_rate"])).item()
    assert drawn(chart, "label")["text"].to_list() == [f"{metrics['equal_error_rate']:.1%}"]
    curve = drawn(chart, "curve").drop_nulls("x")
    assert_points_of(curve, wroc.roc_curve(rows, "y", "s"), {"fpr": "fpr", "tpr": "tpr"})


def test_marked_points_are_those_of_the_thresholds(rows: pl.DataFrame) -> None:
    table = wroc.roc_curve(rows, "y", "s", by="g")
    points = wroc.threshold_metrics(rows, "y", "s", by="g", threshold=0.5)
    marks = drawn(wroc.roc_chart(table, points=points), "mark").sort("color")
    expected = points.sort("g").select(color="g", x="fpr", y="tpr")
    assert_frame_equal(marks.select("color", "x", "y"), expected, rel_tol=1e-4)


def test_precision_is_drawn_with_the_average_precision(rows: pl.DataFrame) -> None:
    table = wroc.pr_curve(rows, "y", "s", by="g")
    chart = wroc.pr_chart(table)
    curve = drawn(chart, "curve").filter(pl.col("x") > 0)
    assert_points_of(curve, table, {"color": "g", "x": "recall", "y": "precision"})
    average = wroc.summary(rows, "y", "s", by="g").select("g", "average_precision").rows()
    labels = drawn(chart, "label")["text"].to_list()
    assert sorted(labels) == sorted(f"{g}  {value:.2f}" for g, value in average)


@pytest.mark.parametrize("lift", [False, True])
def test_gains_are_the_positives_among_the_highest_scores(rows: pl.DataFrame, lift: bool) -> None:
    chart = wroc.gain_chart(wroc.roc_curve(rows, "y", "s"), lift=lift, at=0.1)
    found: Any = rows.top_k(90, by="s")["y"].sum()
    top = found / rows["y"].sum()
    text = f"{top / 0.1:.1f}" if lift else f"{top:.0%}"
    assert drawn(chart, "label")["text"].to_list() == [text]
    assert drawn(chart, "curve").filter(pl.col("x") == 1)["y"].to_list() == [1]


def test_the_tail_of_precision_is_as_in_the_table(rows: pl.DataFrame) -> None:
    table = wroc.threshold_metrics(rows, "y", "s")
    chart = wroc.rates_chart(table, rates="ppv", threshold=0.5)
    curve = drawn(chart, "curve")
    assert_points_of(curve, table, {"x": "threshold", "y": "ppv"})
    assert curve["x"].max() == pytest.approx(rows["s"].max(), rel=1e-4)
    selected: Any = rows.filter(pl.col("s") >= 0.5)["y"].mean()
    assert drawn(chart, "label")["text"].to_list() == [f"{selected:.0%}"]


def test_rates_of_models_in_groups_have_a_panel_for_each_group_and_rate(
    rows: pl.DataFrame,
) -> None:
    table = wroc.threshold_metrics(rows, "y", ["s", "t"], by="h", threshold=[0.3, 0.5, 0.7])
    curve = drawn(wroc.rates_chart(table, rates=["tpr", "fpr"]), "curve")
    panels = {f"{h}, {rate} positive rate" for h in "mf" for rate in ("True", "False")}
    assert set(curve["panel"]) == panels
    assert set(curve["color"]) == {"s", "t"}
    assert curve.height == 2 * 2 * 2 * 3


def test_calibration_has_a_point_for_each_bin(rows: pl.DataFrame) -> None:
    table = wroc.calibration_curve(rows, "y", "s", by="g", bins=5)
    chart = wroc.calibration_chart(table)
    names = {"panel": "g", "x": "mean_score", "y": "observed_rate"}
    dots = drawn(chart, "dot")
    assert dots.height == table.height
    assert_points_of(dots, table, names)
    assert dots.group_by("panel").agg(pl.col("share").sum())["share"].to_list() == pytest.approx(
        [1, 1, 1], rel=1e-3
    )


def test_a_score_that_is_off_in_both_directions_is_not_called_right() -> None:
    table = pl.DataFrame(
        {
            "bin": [1, 2],
            "mean_score": [0.2, 0.8],
            "observed_rate": [0.36, 0.56],
            "n": [600, 400],
            "weight": [600.0, 400.0],
        }
    )
    said = title(wroc.calibration_chart(table))
    assert said == "Scores are off by 19 points, in both directions"


def test_rare_events_do_not_lie_in_a_corner(rows: pl.DataFrame) -> None:
    rare = rows.with_columns(p=pl.col("s") / 50)
    spec = wroc.calibration_chart(
        wroc.calibration_curve(rare, pl.col("y") & (pl.col("s") > 2), "p")
    )
    (domain,) = {
        tuple(layer["encoding"]["x"]["scale"]["domain"])
        for layer in spec.to_dict()["layer"]
        if "scale" in layer["encoding"]["x"] and layer["encoding"]["x"]["scale"]
    }
    assert domain[1] < 0.05


def test_smooth_calibration_curves_are_drawn_with_their_limits(rows: pl.DataFrame) -> None:
    table = wroc.calibration_curve(rows, "y", "s", by="g", bins=5, smooth=True)
    names = {"panel": "g", "x": "mean_score", "y": "smooth_rate"}
    names |= {end: f"smooth_rate_{end}" for end in ("low", "high")}
    curve = drawn(wroc.calibration_chart(table), "curve")
    assert curve.height == table["smooth_rate"].count() > 0
    assert_points_of(curve, table, names)


def test_curves_have_their_names_where_no_threshold_is_drawn(rows: pl.DataFrame) -> None:
    table = wroc.threshold_metrics(rows, "y", "s", by="g", threshold=[0.3, 0.5, 0.7])
    chart = wroc.rates_chart(table, rates="tpr")
    assert title(chart) == "True positive rate by threshold"
    labels = drawn(chart, "label")
    assert sorted(text.strip() for text in labels["text"]) == ["a", "b", "c"]
    # Right of the panel.
    assert all(place > 320 for place in labels["text_x"])


def test_net_benefit_is_that_of_the_table(rows: pl.DataFrame) -> None:
    table = wroc.decision_curve(rows, "y", ["s", "t"])
    chart = wroc.decision_chart(table)
    assert_points_of(
        drawn(chart, "curve"), table, {"color": "model", "x": "threshold", "y": "net_benefit"}
    )
    # Both scores are of the same rows, so that selecting all is one line.
    assert drawn(chart, "everyone")["x"].is_duplicated().sum() == 0


def test_the_useful_area_is_that_of_the_metric(rows: pl.DataFrame) -> None:
    costs: dict[str, Any] = {"cost_fn": 5, "cost_fp": 1}
    chart = wroc.cost_chart(wroc.roc_curve(rows, "y", "s"), **costs)
    area = rows.select(wroc.cost_partial_auc("y", "s", **costs)).unnest("cost_partial_auc")
    best = drawn(chart, "best").row(0, named=True)
    assert best["rank"] == pytest.approx(area["ratio"][0], rel=1e-4)
    curve = wroc.cost_curve(rows, "y", "s", **costs)
    cost = next(name for name in curve.columns if name.startswith("expected_cost"))
    cheapest = curve.sort(cost, "threshold", descending=[False, True]).row(0, named=True)
    assert best["threshold"] == pytest.approx(cheapest["threshold"], rel=1e-4)


def test_several_costs_have_a_panel_each(rows: pl.DataFrame) -> None:
    chart = wroc.cost_chart(wroc.roc_curve(rows, "y", "s"), cost_fn=[0.3, 0.5, 0.8])
    assert drawn(chart, "panel")["panel"].to_list() == [
        f"a miss costs {cost}" for cost in (0.3, 0.5, 0.8)
    ]


def test_bars_of_a_group_add_up_to_its_rows(rows: pl.DataFrame) -> None:
    table = wroc.score_distribution(rows, "s", label="y", by="g", bins=10)
    chart = wroc.distribution_chart(table, threshold=0.5)
    bars = drawn(chart, "bar")
    assert bars["n"].sum() == rows.height
    heights = bars.group_by("panel").agg((pl.col("top") - pl.col("bottom").fill_null(0)).sum())
    assert heights["top"].to_list() == pytest.approx([1, 1, 1], rel=1e-3)
    above = rows.group_by("g").agg((pl.col("s") >= 0.5).mean()).rows()
    labels = dict(drawn(chart, "label").select("panel", "text").rows())
    assert labels == {g: f"{share:.0%} at or above 0.5" for g, share in above}


@pytest.mark.parametrize("show", ["value", "gap", "ratio"])
def test_estimates_are_those_of_the_table(rows: pl.DataFrame, show: Any) -> None:
    table = wroc.group_gaps(rows, "y", "s", attributes=["g", "h"], threshold=0.5)
    chart = wroc.gap_chart(table, metric="tpr", show=show)
    known = table.filter(metric="tpr")
    found = drawn(chart, "row")
    for role, end in (("x", ""), ("low", "_low"), ("high", "_high")):
        if end == "":
            expected = known[f"{show}{end}"].to_list()
            assert found[role].to_list() == pytest.approx(expected, rel=1e-4)
    assert found["note"].to_list() == known["verdict"].to_list()
    assert found["panel"].to_list() == known["attribute"].to_list()


def test_no_point_is_off_its_axis(rows: pl.DataFrame) -> None:
    few = pl.concat([rows, rows.head(9).with_columns(g=pl.lit("few"))])
    table = wroc.group_gaps(few, "y", "s", attributes="g", threshold=0.5)
    for show in ("gap", "value"):
        spec = wroc.gap_chart(table, metric="tpr", show=show).to_dict()
        (found,) = spec["datasets"].values()
        domains = {
            tuple(layer["encoding"]["x"]["scale"]["domain"])
            for layer in spec["layer"]
            if (layer["encoding"].get("x") or {}).get("scale")
        }
        ((low, high),) = domains
        for row in found:
            assert all(
                low <= row[role] <= high for role in ("x", "mark", "low", "high") if role in row
            )


def test_tables_of_summary_compare_fairness_and_release_are_read(rows: pl.DataFrame) -> None:
    summary = wroc.summary(rows, "y", ["s", "t"], by="g")
    found = drawn(wroc.gap_chart(summary, show="value"), "row")
    assert sorted(found["x"]) == pytest.approx(sorted(summary["auc"]), rel=1e-4)
    pairs = wroc.compare(rows, "y", ["s", "t"], by="g")
    found = drawn(wroc.gap_chart(pairs), "row")
    assert found["x"].to_list() == pytest.approx(pairs["gap"].to_list(), rel=1e-4)
    fair = wroc.fairness(rows, "y", "s", attributes=["g", "h"], threshold=0.5)
    name = "demographic_parity_difference"
    found = drawn(wroc.gap_chart(fair, metric=name), "row")
    assert found["x"].to_list() == pytest.approx(
        fair.filter(metric=name)["gap"].to_list(), rel=1e-4
    )
    check = wroc.release_check(rows, "y", old="t", new="s", attributes="g", threshold=0.5)
    found = drawn(wroc.gap_chart(check, show="value"), "row")
    known = check.filter(metric="auc")
    assert found["x"].to_list() == pytest.approx(known["value"].to_list(), rel=1e-4)
    assert found["mark"].to_list() == pytest.approx(known["reference_value"].to_list(), rel=1e-4)
    better = [verdict == "better" for verdict in known["verdict"]]
    assert [tone == "better" for tone in found["tone"]] == better


def test_impact_ratios_have_a_line_at_four_fifths(rows: pl.DataFrame) -> None:
    table = wroc.impact_ratios(rows, "s", attributes="g", threshold=0.5, favorable="selected")
    ratio = drawn(wroc.gap_chart(table, metric="impact_ratio", show="ratio"), "row")
    assert ratio["limit"].unique().to_list() == [0.8]
    value = drawn(wroc.gap_chart(table, metric="impact_ratio", show="value"), "row")
    highest: Any = table["reference_value"].max()
    assert value["limit"].to_list() == pytest.approx([0.8 * highest] * 3, rel=1e-4)
    with pytest.raises(ValueError, match="`show` may be 'value' or 'ratio'"):
        wroc.gap_chart(table, metric="impact_ratio", show="gap")


@pytest.mark.parametrize("favorable", ["selected", "rejected"])
def test_impact_ratios_are_drawn_unless_told_otherwise(rows: pl.DataFrame, favorable: Any) -> None:
    table = wroc.impact_ratios(rows, "s", attributes="g", threshold=0.9, favorable=favorable)
    chart = wroc.gap_chart(table)
    ratios = table.filter(metric="impact_ratio")["ratio"].to_list()
    assert drawn(chart, "row")["x"].to_list() == pytest.approx(ratios, rel=1e-4)
    rate = "Selection rate" if favorable == "selected" else "Rate of the favorable decision"
    axes = [layer["encoding"]["x"] for layer in chart.to_dict()["layer"]]
    titles = {axis["title"] for x in axes if (axis := x.get("axis"))}
    assert titles == {f"{rate}, divided by that of {table['reference'][0]}"}


def test_tables_without_gaps_are_drawn_by_their_values(rows: pl.DataFrame) -> None:
    summary = wroc.summary(rows, "y", "s", by="g")
    assert drawn(wroc.gap_chart(summary), "row")["x"].to_list() == pytest.approx(
        summary["auc"].to_list(), rel=1e-4
    )
    fair = wroc.fairness(rows, "y", "s", attributes="g", threshold=0.5)
    (ratio,) = fair.filter(metric="equal_opportunity_ratio")["ratio"]
    (found,) = drawn(wroc.gap_chart(fair, metric="equal_opportunity_ratio"), "row")["x"]
    assert found == pytest.approx(ratio, rel=1e-4)


def test_gaps_are_in_points_if_their_metric_is_a_share(rows: pl.DataFrame) -> None:
    table = wroc.group_gaps(rows, "y", "s", attributes="g", threshold=0.5)
    for metric, form, unit in (("tpr", "+.1f", 100), ("auc", "+.3f", 1)):
        numbers = drawn(wroc.gap_chart(table, metric=metric), "row")["number"]
        expected = [f"{unit * gap:{form}}" for gap in table.filter(metric=metric)["gap"]]
        assert [number.replace("\N{MINUS SIGN}", "-") for number in numbers] == expected


def test_tiles_are_the_crossed_groups(rows: pl.DataFrame) -> None:
    table = wroc.group_gaps(
        rows, "y", "s", attributes=["g", "h"], intersections=True, threshold=0.5
    )
    tiles = drawn(wroc.matrix_chart(table, metric="selection_rate"), "tile")
    crossed = table.filter(
        pl.col("attribute").str.contains("\N{MULTIPLICATION SIGN}"), metric="selection_rate"
    )
    assert tiles.height == crossed.height == 6
    found = dict(zip(tiles["down"] + ", " + tiles["across"], tiles["number"], strict=True))
    for segment, value in crossed.select("segment", "value").rows():
        assert found[segment].startswith(f"{value:.0%}")
    pairs = wroc.cross_auc(rows, "y", "s", by="g")
    tiles = drawn(wroc.matrix_chart(pairs), "tile")
    assert tiles["number"].to_list() == [f"{value:.2f}" for value in pairs["xauc"]]


def test_periods_are_those_of_the_trend(rows: pl.DataFrame) -> None:
    table = wroc.trend(rows, "y", "s", over="day", attributes="g", threshold=0.5)
    curve = drawn(wroc.time_chart(table, metric="selection_rate"), "curve")
    known = table.filter(metric="selection_rate")
    assert curve["x"].to_list() == known["period"].to_list()
    assert curve["y"].to_list() == pytest.approx(known["value"].to_list(), rel=1e-4)


def test_shifts_of_scores_are_drawn(rows: pl.DataFrame) -> None:
    table = wroc.trend(rows, "y", "s", over="day", attributes="g", threshold=0.5)
    for metric in table["metric"].unique():
        known = table.filter(pl.col("value").is_not_null(), metric=metric)
        curve = drawn(wroc.time_chart(table, metric=metric), "curve").drop_nulls("y")
        assert curve["y"].to_list() == pytest.approx(known["value"].to_list(), rel=1e-4)
    chart = wroc.time_chart(table, metric="psi")
    assert title(chart) == "PSI: no period is shown to differ from those before"


def test_tiles_of_few_rows_of_a_class_are_pale() -> None:
    rows = pl.DataFrame(
        {
            "g": ["a", "b"] * 100,
            "h": ["u", "u", "v", "v"] * 50,
            "s": [number / 200 for number in range(200)],
            "y": [number >= 180 or number % 4 == 0 for number in range(200)],
        }
    )
    table = wroc.group_gaps(rows, "y", "s", attributes=["g", "h"], intersections=True)
    tiles = drawn(wroc.matrix_chart(table, metric="auc"), "tile")
    crossed = table.filter(metric="auc", attribute="g \N{MULTIPLICATION SIGN} h")
    # All have 50 rows, and those of which the others are few of a class are not tested.
    assert crossed["n"].to_list() == [50] * 4
    few = crossed["reason"].str.starts_with("fewer than ").fill_null(value=False)
    assert few.any()
    assert tiles["is_small"].sort().to_list() == few.sort().to_list()


def test_the_range_of_thresholds_where_a_score_is_useful_has_no_gap() -> None:
    net_benefit = [0.2, 0.2, 0.1, 0.1, -0.1, -0.1, 0.1, 0.1, 0.1, 0.1]
    table = pl.DataFrame(
        {
            "threshold": [number / 20 for number in range(1, 11)],
            "net_benefit": net_benefit,
            "net_benefit_all": [0.3, 0.0] + 8 * [-0.2],
        }
    )
    chart = wroc.decision_chart(table)
    # From 10 % to 20 %, and from 35 % to 50 %.
    assert drawn(chart, "label")["text"].to_list() == ["35% to 50%"]
    said = "The score is better than selecting all or none at thresholds from 35% to 50%"
    assert title(chart) == said
    useless = table.with_columns(net_benefit=pl.lit(-0.1))
    assert title(wroc.decision_chart(useless)) == "Nowhere better than selecting all or none"


def test_bins_of_few_rows_are_points_but_not_on_the_line(rows: pl.DataFrame) -> None:
    score = pl.when(pl.int_range(pl.len()) < 3).then(0.999).otherwise(pl.col("s") * 0.8)
    table = wroc.calibration_curve(rows.with_columns(p=score), "y", "p", bins=5)
    few = table.filter(pl.col("n") < 5)
    assert few["n"].to_list() == [3]
    chart = wroc.calibration_chart(table)
    assert drawn(chart, "dot")["n"].to_list() == table["n"].to_list()
    assert drawn(chart, "curve").height == table.height - 1
    assert drawn(chart, "curve").filter(pl.col("x") > 0.9).is_empty()


def test_titles_of_rates_say_the_lowest_and_the_highest(rows: pl.DataFrame) -> None:
    groups = wroc.threshold_metrics(rows, "y", "s", by="h")
    models = wroc.threshold_metrics(rows, "y", ["s", "t"])
    of_groups = rows.group_by("h").agg((pl.col("s") >= 0.5).mean()).rows()
    of_models = [(name, rows.select((pl.col(name) >= 0.5).mean()).item()) for name in "st"]
    for table, word, shares in ((groups, "of", of_groups), (models, "with", of_models)):
        low, high = sorted(shares, key=lambda share: share[1])
        said = f"{low[1]:.0%} {word} {low[0]} and {high[1]:.0%} {word} {high[0]}"
        chart = wroc.rates_chart(table, threshold=0.5)
        assert title(chart) == f"At a threshold of 0.5, {said} are selected"


def test_grey_curves_have_fewer_points_of_the_table(rows: pl.DataFrame) -> None:
    many = rows.with_columns(g=pl.int_range(pl.len()) % 8)
    table = wroc.roc_curve(
        pl.concat([many] * 3).with_columns(s=pl.col("s").shuffle(1)), "y", "s", by="g"
    )
    curve = drawn(wroc.roc_chart(table, highlight=[3]), "curve")
    assert_points_of(
        curve.with_columns(pl.col("color").cast(pl.Int64)),
        table,
        {"color": "g", "x": "fpr", "y": "tpr"},
    )
    points = dict(curve.group_by("color").len().rows())
    assert points.pop("3") > 2 * max(points.values())


def test_tiles_have_an_arrow_and_a_tone_where_the_verdict_finds_a_difference(
    rows: pl.DataFrame,
) -> None:
    selected = (pl.col("s") >= 0.5) & ~((pl.col("g") == "a") & (pl.col("h") == "m"))
    shifted = rows.with_columns(s=pl.when(selected).then(0.9).otherwise(0.1))
    table = wroc.group_gaps(
        shifted, "y", "s", attributes=["g", "h"], intersections=True, threshold=0.5
    )
    chart = wroc.matrix_chart(table, metric="selection_rate")
    tiles = drawn(chart, "tile")
    known = table.filter(
        pl.col("attribute").str.contains("\N{MULTIPLICATION SIGN}"), metric="selection_rate"
    )
    for segment, verdict, gap in known.select("segment", "verdict", "gap").rows():
        down, across = segment.split(", ")
        (tile,) = tiles.filter(down=down, across=across).to_dicts()
        assert (tile["tone"] != "none") == (verdict == "different")
        arrow = "\N{BLACK DOWN-POINTING TRIANGLE}" if gap < 0 else "\N{BLACK UP-POINTING TRIANGLE}"
        assert tile["number"].endswith(arrow) == (verdict == "different")
    least: Any = known.filter(segment="a, m")["gap"][0]
    assert title(chart) == f"a, m: selection rate {-100 * least:.0f} points below everyone else"


def test_tiles_without_a_number_have_a_dash(rows: pl.DataFrame) -> None:
    positive = rows.with_columns(y=pl.col("y") | ((pl.col("g") == "a") & (pl.col("h") == "m")))
    table = wroc.group_gaps(positive, "y", "s", attributes=["g", "h"], intersections=True)
    tiles = drawn(wroc.matrix_chart(table, metric="auc"), "tile")
    assert tiles.filter(down="a", across="m")["number"].to_list() == ["\N{EN DASH}"]
    assert tiles.filter(number="\N{EN DASH}").height == 1
