"""The chart of rates against the threshold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from drawings import drawn, scored, shown_texts, tooltip_fields

import polars_wroc as wroc

RATES = {
    "selection_rate": "Selection rate",
    "tpr": "True positive rate",
    "fpr": "False positive rate",
    "ppv": "Precision",
}


def table_of(rows: int = 60, groups: int = 2, **options: Any) -> pl.DataFrame:
    return wroc.threshold_metrics(
        scored(rows, groups=groups), "y", "s", by="g", **{"level": None} | options
    )


def points_of(chart: Any) -> pl.DataFrame:
    return pl.DataFrame(drawn(chart), infer_schema_length=None)


def test_every_rate_of_a_small_table_is_drawn() -> None:
    table = table_of()
    found = points_of(wroc.rates_chart(table))
    finite = table.filter(pl.col("threshold").is_finite())
    for rate, heading in RATES.items():
        part = found.filter(__rate=heading)
        assert part["threshold"].to_list() == finite["threshold"].to_list()
        assert part["__value"].to_list() == finite[rate].to_list()


def test_labels_are_the_rates_of_the_rows_that_the_threshold_selects(tmp_path: Path) -> None:
    data = scored(500, groups=2)
    table = wroc.threshold_metrics(data, "y", "s", by="g", level=None)
    chart = wroc.rates_chart(table, threshold=0.6, rates=["tpr", "ppv"])
    found = points_of(chart).filter(pl.col("__label").is_not_null())
    assert found["__at"].unique().to_list() == [0.6]
    for group in (0, 1):
        rows = data.filter(g=group)
        selected, positive = rows["s"] >= 0.6, rows["y"]
        hits = int((selected & positive).sum())
        labels = dict(found.filter(__group1=str(group)).select("__rate", "__label").iter_rows())
        assert labels["True positive rate"] == f"{group}: {hits / int(positive.sum()):.3f}"
        assert labels["Precision"] == f"{group}: {hits / int(selected.sum()):.3f}"
    assert "Grey dashes: the threshold 0.6, and each rate there" in shown_texts(chart, tmp_path)


@pytest.mark.slow
def test_large_tables_are_thinned_and_keep_the_threshold() -> None:
    table = table_of(30_000, groups=3)
    chart = wroc.rates_chart(table, threshold=0.4321)
    found = points_of(chart)
    assert found.height <= 2_400
    exact = points_of(
        wroc.rates_chart(table.filter(~pl.col("threshold").is_between(0.44, 9)), threshold=0.4321)
    )
    labels = [set(t["__label"].drop_nulls()) for t in (found, exact)]
    assert len(labels[0]) > 3
    assert labels[0] == labels[1]
    for _, part in found.group_by("__group1", "__rate"):
        assert part["threshold"].is_sorted(descending=True)
    assert "Drawn with " in str(wroc.rates_chart(table_of(30_000, groups=12)).to_dict()["title"])


def test_panels_are_rates_unless_told_otherwise(tmp_path: Path) -> None:
    table = table_of()
    assert wroc.rates_chart(table).to_dict()["facet"]["field"] == "__rate"
    assert wroc.rates_chart(table, facet="g").to_dict()["facet"]["field"] == "__group1"
    one = wroc.rates_chart(table, rates="fpr").to_dict()
    assert "facet" not in one
    assert "False positive rate" in str(one)
    whole = wroc.threshold_metrics(scored(60), "y", "s")
    line = next(
        x for x in wroc.rates_chart(whole).to_dict()["layer"] if x["mark"]["type"] == "line"
    )
    assert line["encoding"]["color"]["scale"]["domain"] == list(RATES.values())
    texts = shown_texts(wroc.rates_chart(table), tmp_path)
    assert [text for text in texts if text in RATES.values()] == list(RATES.values())


def test_models_in_groups_have_a_panel_for_each_group_and_rate(tmp_path: Path) -> None:
    data = scored(60, groups=2).with_columns(t=1 - pl.col("s"))
    table = wroc.threshold_metrics(data, "y", ["s", "t"], by="g", level=None)
    chart = wroc.rates_chart(table, rates=["tpr", "fpr"])
    panels = ["True positive rate", "False positive rate"]
    found = [text for text in shown_texts(chart, tmp_path) if ", " in text]
    assert found == [f"{group}, {rate}" for group in (0, 1) for rate in panels]
    line = next(x for x in chart.to_dict()["spec"]["layer"] if x["mark"]["type"] == "line")
    assert line["encoding"]["color"]["scale"]["domain"] == ["s", "t"]
    assert points_of(chart).height == 2 * table.filter(pl.col("threshold").is_finite()).height
    assert wroc.rates_chart(table, rates=["tpr", "fpr"], color="model").to_dict() == chart.to_dict()
    with pytest.raises(ValueError, match="must cover all group columns"):
        wroc.rates_chart(table, facet="g")
    one = wroc.threshold_metrics(data, "y", ["s"], by="g", level=None)
    plain = wroc.threshold_metrics(data, "y", "s", by="g", level=None)
    drawn_of = [points_of(wroc.rates_chart(each)).to_dicts() for each in (one, plain)]
    assert {row["__group1"] for row in drawn_of[0]} == {"0", "1"}
    assert len(drawn_of[0]) == len(drawn_of[1])


def test_crossed_groups_of_the_same_text_are_told_apart() -> None:
    data = scored(120, groups=2).with_columns(
        t=1 - pl.col("s"),
        g=pl.when(g=0).then(pl.lit("x, y")).otherwise(pl.lit("x")),
        h=pl.when(g=0).then(pl.lit("z")).otherwise(pl.lit("y, z")),
    )
    table = wroc.threshold_metrics(data, "y", ["s", "t"], by=["g", "h"], level=None)
    found = points_of(wroc.rates_chart(table, rates=["tpr", "fpr"]))
    assert found["__group1"].n_unique() == 4
    # Of one score groups have colours, however it is given.
    for score in ("s", ["s"]):
        one = wroc.threshold_metrics(data, "y", score, by=["g", "h"], level=None)
        chart = wroc.rates_chart(one, rates=["tpr", "fpr"])
        assert chart.to_dict()["facet"]["field"] == "__rate"
        assert points_of(chart)["__group1"].n_unique() == 2
    curves = wroc.roc_curve(data, "y", "s", by=["g", "h"])
    assert points_of(wroc.cost_chart(curves, cost_fn=1, cost_fp=1))["__group1"].n_unique() == 2


def test_intervals_are_bands(tmp_path: Path) -> None:
    table = table_of(300, level=0.9, threshold=[0.2, 0.5, 0.8], metrics=["tpr", "fpr", "tnr"])
    chart = wroc.rates_chart(table, rates=["tpr", "tnr"], level=0.9)
    found = points_of(chart)
    assert (
        found.filter(__rate="True positive rate")["__low"].to_list() == table["tpr_low"].to_list()
    )
    lows = found.filter(__rate="True negative rate")["__low"].to_list()
    assert lows == table["tnr_low"].to_list()
    layers = chart.to_dict()["spec"]["layer"]
    assert layers[0]["mark"]["type"] == "area"
    assert {"__low", "__high"} <= tooltip_fields(layers)
    assert "Shaded: 90% confidence interval" in " ".join(shown_texts(chart, tmp_path))
    plain = wroc.rates_chart(table_of(threshold=[0.5])).to_dict()["spec"]["layer"]
    assert "area" not in [layer["mark"]["type"] for layer in plain]


def test_a_group_may_be_called_rate() -> None:
    data = scored(60, groups=2).rename({"g": "rate"})
    chart = wroc.rates_chart(wroc.threshold_metrics(data, "y", "s", by="rate"))
    assert set(points_of(chart)["__group1"]) == {"0", "1"}


@pytest.mark.slow
def test_curves_are_sorted_and_highlighted_by_the_first_rate() -> None:
    data = scored(1_200, groups=7).with_columns(s=pl.col("s") + pl.col("g") / 8)
    table = wroc.threshold_metrics(data, "y", "s", by="g")
    chart = wroc.rates_chart(table, threshold=0.9, sort="value")
    line = next(x for x in chart.to_dict()["spec"]["layer"] if x["mark"]["type"] == "line")
    scale = line["encoding"]["color"]["scale"]
    assert scale["domain"] == list("6543210")
    assert "selection rate at the threshold" in str(chart.to_dict()["title"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rates": "auc"}, "`rates` must be one of .*; found 'auc'"),
        ({"rates": []}, "`rates` must name at least one rate; found none"),
        ({"threshold": float("inf")}, "`threshold` must be a finite number; found inf"),
        ({"color": "h"}, "`color` must be a group column of the table, .*; found 'h'"),
    ],
)
def test_options_that_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=rf"^{message}$"):
        wroc.rates_chart(table_of(), **options)


def test_tables_that_are_refused() -> None:
    recorded = scored(40).with_columns(d=pl.col("s") > 0.5)
    table = wroc.threshold_metrics(recorded, "y", "s", selected="d")
    with pytest.raises(ValueError, match=r"^`metrics` must hold a finite threshold; found none$"):
        wroc.rates_chart(table)
    with pytest.raises(ValueError, match=r"^`table` must have the columns "):
        wroc.rates_chart(wroc.roc_curve(scored(40), "y", "s"))
    sparse = table_of(threshold=[0.2, 0.8])
    with pytest.raises(ValueError, match=r"^`threshold` must be one of the table, .*; found 0\.5$"):
        wroc.rates_chart(sparse, threshold=0.5)
    wroc.rates_chart(sparse, threshold=0.8)
    many = table_of(3_000, groups=400, threshold=[0.5])
    with pytest.raises(ValueError, match=r"^`metrics` must hold at most 312 curves to be drawn"):
        wroc.rates_chart(many)


def test_the_precision_of_the_few_highest_scores_is_drawn() -> None:
    random = np.random.default_rng(0)
    score = random.beta(1, 8, 30_000)
    frame = pl.DataFrame(
        {"y": random.random(30_000) < score, "s": score, "g": random.choice([*"ABCDE"], 30_000)}
    )
    table = wroc.threshold_metrics(frame, "y", "s", by="g")
    points = pl.DataFrame(drawn(wroc.rates_chart(table, rates="ppv")), infer_schema_length=None)
    whole = table.filter(pl.col("threshold").is_finite()).select("g", "threshold", "ppv")
    for group in "ABCDE":
        own = points.filter(pl.col("__group1") == group).sort("threshold")
        of_table = whole.filter(g=group).sort("threshold")
        # Each threshold has the value of the next point that is drawn.
        steps = of_table.join_asof(
            own.select(pl.col("threshold") + 1e-5, "__value"), on="threshold", strategy="forward"
        )
        off = (steps["ppv"] - steps["__value"]).abs().max()
        assert isinstance(off, float)
        assert off < 0.1
