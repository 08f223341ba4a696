"""Fairness metrics: against fairlearn with sample weights, and intervals by hand."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pytest
from fairlearn import metrics as fairlearn
from polars.testing import assert_frame_equal
from sklearn.metrics import precision_score, roc_auc_score
from sweeps import sweep
from wide_tables import FAIRNESS

import polars_wroc as wroc

# The rate that a metric is about; equalised odds are about two.
RATES = {
    "demographic_parity": "selection_rate",
    "equal_opportunity": "tpr",
    "predictive_equality": "fpr",
    "predictive_parity": "ppv",
}


def frame_of_rates(frame: pl.DataFrame, threshold: float) -> Any:
    """Fairlearn's rates of each group."""
    rates = {
        "selection_rate": fairlearn.selection_rate,
        "tpr": fairlearn.true_positive_rate,
        "fpr": fairlearn.false_positive_rate,
        "ppv": partial(precision_score, zero_division=0),
    }
    weights = {"sample_weight": frame["w"].to_numpy()}
    return fairlearn.MetricFrame(
        metrics=rates,
        y_true=frame["y"].cast(pl.Int64).to_numpy(),
        y_pred=(frame["s"] >= threshold).cast(pl.Int64).to_numpy(),
        sensitive_features=frame["g"].to_numpy(),
        sample_params=dict.fromkeys(rates, weights),
    )


def by_fairlearn(frame: pl.DataFrame, threshold: float) -> dict[str, float]:
    rows = frame["y"].cast(pl.Int64).to_numpy(), (frame["s"] >= threshold).cast(pl.Int64).to_numpy()
    options = {"sensitive_features": frame["g"].to_numpy(), "sample_weight": frame["w"].to_numpy()}
    scalars = [name for name in FAIRNESS if hasattr(fairlearn, name)]
    assert len(scalars) == 6
    differences = frame_of_rates(frame, threshold).difference()
    aucs = [
        roc_auc_score(rows["y"], rows["s"], sample_weight=rows["w"])
        for _, rows in frame.group_by("g")
    ]
    return {name: getattr(fairlearn, name)(*rows, **options) for name in scalars} | {
        "predictive_equality_difference": differences["fpr"],
        "predictive_parity_difference": differences["ppv"],
        "auc_difference": max(aucs) - min(aucs),
    }


def values_of(table: pl.DataFrame) -> dict[str, float | None]:
    """The difference or ratio of each metric."""
    return dict(table.select("metric", pl.coalesce("gap", "ratio")).rows())


def fair(frame: pl.DataFrame, threshold: float = 0.5, **options: Any) -> pl.DataFrame:
    given = {"weight": "w", "attributes": "g"} | options
    return wroc.fairness(frame, "y", "s", threshold=threshold, **given, min_rows=0)


@pytest.mark.parametrize("threshold", sweep([-0.5, 0.3, 0.5, 1.1]))
def test_values_are_those_of_fairlearn(people: pl.DataFrame, threshold: float) -> None:
    assert people["s"].is_in([threshold]).any()
    plan = wroc.fairness(
        people.lazy(), "y", "s", weight="w", attributes="g", threshold=threshold, min_rows=0
    )
    table = plan.collect()
    assert table["metric"].to_list() == FAIRNESS
    values = values_of(table)
    for name, expected in by_fairlearn(people, threshold).items():
        assert values[name] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", sweep(range(5)))
def test_values_on_few_tied_rows(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows = 60
    frame = pl.DataFrame(
        {
            "g": random.choice(list("abc"), rows),
            "y": random.random(rows) < 0.5,
            "s": random.integers(0, 4, rows),
            "w": random.integers(1, 5, rows).astype(np.float64),
        }
    )
    values = values_of(fair(frame, 2))
    for name, expected in by_fairlearn(frame, 2).items():
        assert values[name] == pytest.approx(expected, abs=1e-12)


def test_the_two_groups_are_the_extremes(people: pl.DataFrame) -> None:
    table = fair(people)
    rates = frame_of_rates(people, 0.5).by_group.astype(float)
    counts = people.group_by("g").agg(
        selection_rate=pl.len(), tpr=pl.col("y").sum(), fpr=(~pl.col("y")).sum(),
        ppv=(pl.col("s") >= 0.5).sum(),
    )  # fmt: skip
    for row in table.filter(pl.col("metric").str.contains("odds|auc").not_()).rows(named=True):
        notion, _, kind = row["metric"].rpartition("_")
        column = rates[RATES[notion]]
        ends = column.idxmax(), column.idxmin()
        assert (row["segment"], row["reference"]) == (ends if kind == "difference" else ends[::-1])
        for name, count, value in (
            ("segment", "n", "value"),
            ("reference", "n_reference", "reference_value"),
        ):
            assert row[value] == pytest.approx(column[row[name]])
            assert row[count] == counts.filter(g=row[name])[RATES[notion]].item()
    for kind in ("difference", "ratio"):
        odds = table.filter(metric=f"equalized_odds_{kind}").drop("metric", "^.*(_low|_high)$")
        parts = table.filter(
            pl.col("metric").is_in([f"equal_opportunity_{kind}", "predictive_equality_difference"])
        )
        if kind == "difference":
            worst = parts.sort("gap").tail(1).drop("metric", "^.*(_low|_high)$")
            assert_frame_equal(odds.drop("p_value"), worst.drop("p_value"))
    summary = wroc.summary(people, "y", "s", weight="w", by="g", method="score").sort("auc")
    auc = table.filter(metric="auc_difference").row(0, named=True)
    assert (auc["segment"], auc["reference"]) == (summary["g"][-1], summary["g"][0])
    assert auc["gap"] == pytest.approx(summary["auc"][-1] - summary["auc"][0])


def test_an_undefined_ratio_has_no_limits(people: pl.DataFrame) -> None:
    nobody = wroc.fairness(people, "y", "s", attributes="g", threshold=1e9, min_rows=0)
    ratios = nobody.filter(pl.col("metric").str.ends_with("_ratio"))
    assert ratios.select("ratio", "ratio_low", "ratio_high").null_count().row(0) == (3,) * 3
    assert ratios["reason"].to_list() == ["nobody is selected"] * 3
    # One selected row has a rate above 0, and the smallest ratio is 0.
    highest = people["s"].to_numpy().max().item()
    one = wroc.fairness(people, "y", "s", attributes="g", threshold=highest, min_rows=0)
    assert one.filter(metric="demographic_parity_ratio")["ratio"].item() == 0


def test_undefined_rates_are_left_out(people: pl.DataFrame) -> None:
    # Group c has no negatives, group d selects nobody.
    frame = people.filter((pl.col("g") != "c") | pl.col("y")).with_columns(
        s=pl.when(g="d").then(-1.0).otherwise("s")
    )
    values, without_c = values_of(fair(frame)), values_of(fair(frame.filter(pl.col("g") != "c")))
    name = "predictive_equality_difference"
    expected = frame_of_rates(frame.filter(pl.col("g") != "c"), 0.5).difference()["fpr"]
    assert [values[name], without_c[name]] == pytest.approx([expected] * 2)
    selected = frame.filter(pl.col("g") != "d")
    name = "predictive_parity_difference"
    assert values[name] == pytest.approx(frame_of_rates(selected, 0.5).difference()["ppv"])
    assert values["demographic_parity_ratio"] == 0
    assert values["demographic_parity_ratio"] == fairlearn.demographic_parity_ratio(
        frame["y"], (frame["s"] >= 0.5), sensitive_features=frame["g"], sample_weight=frame["w"]
    )


def test_a_single_group_is_compared_with_nobody(people: pl.DataFrame) -> None:
    table = fair(people.filter(g="a"))
    shown = table.select(pl.exclude("attribute", "model", "metric", "reason"))
    assert shown.null_count().row(0) == (table.height,) * shown.width
    assert set(table["reason"]) == {"undefined"}


@pytest.mark.parametrize("weight", sweep([None, "w"]))
def test_groups_with_few_rows_are_left_out(people: pl.DataFrame, weight: str | None) -> None:
    few = people.head(12).with_columns(g=pl.lit("few"), s=pl.lit(9.0))
    rows = pl.concat([people, few])
    call: dict[str, Any] = {"attributes": "g", "threshold": 0.5, "weight": weight}
    table = wroc.fairness(rows, "y", "s", min_rows=10, **call)
    auc = table.filter(metric="auc_difference").row(0, named=True)
    assert "few" not in (auc["segment"], auc["reference"])
    with_all = wroc.fairness(rows, "y", "s", **call, min_rows=0)
    assert with_all.filter(metric="demographic_parity_ratio")["reference"].item() == "few"
    without_few, people_alone = (
        wroc.fairness(each, "y", "s", min_rows=13, **call) for each in (rows, people)
    )
    numbers = pl.exclude("reason")
    assert_frame_equal(without_few.select(numbers), people_alone.select(numbers), abs_tol=1e-12)
    assert people_alone["reason"].null_count() == people_alone.height
    positives = few["y"].sum()
    reasons = dict(without_few.select("metric", "reason").rows())
    assert 0 < positives < 12
    few_of = "1 group with fewer than 13 {} left out"
    assert reasons["demographic_parity_ratio"] == few_of.format("rows")
    assert reasons["equal_opportunity_difference"] == few_of.format("positives")
    both = f"{few_of.format('positives')}; {few_of.format('negatives')}"
    assert reasons["equalized_odds_difference"] == both
    assert reasons["auc_difference"] == few_of.format("rows of a class")
    with pytest.raises(ValueError, match=r"^`min_rows` must be "):
        wroc.fairness(rows, "y", "s", min_rows=-1, **call)


def test_equalized_odds_need_both_rates(people: pl.DataFrame) -> None:
    positives_alone = people.filter(pl.col("y") | ~pl.col("g").is_in(["a", "b"]))
    values = values_of(fair(positives_alone.filter(pl.col("g").is_in(["a", "b", "c"]))))
    assert values["equal_opportunity_difference"]
    assert values["predictive_equality_difference"] is None
    assert values["equalized_odds_difference"] is None
    assert values["equalized_odds_ratio"] is None


@pytest.mark.parametrize(("groups", "threshold"), [("a", 0.5), ("ab", 100.0)])
def test_every_metric_has_a_row(people: pl.DataFrame, groups: str, threshold: float) -> None:
    table = fair(people.filter(pl.col("g").is_in(list(groups))), threshold)
    assert table["metric"].to_list() == FAIRNESS


def test_attributes_are_compared_each_alone_or_crossed(people: pl.DataFrame) -> None:
    h = pl.int_range(pl.len()) % 3
    frame = people.with_columns(h=pl.when(h > 0).then(h))
    given: dict[str, Any] = {"weight": "w", "threshold": 0.5, "attributes": ["g", "h"]}
    table = wroc.fairness(frame, "y", "s", **given, intersections=True, min_rows=0)
    alone = [fair(frame), fair(frame, attributes="h")]
    assert_frame_equal(table.head(18), pl.concat(alone))
    crossed = wroc.fairness(frame, "y", "s", **given, intersections="only", min_rows=0)
    assert_frame_equal(table.tail(9), crossed)
    # Rows without a value are no group.
    name = pl.format("{}, {}", "g", "h")
    named = fair(frame.with_columns(g=name)).drop("attribute")
    assert_frame_equal(crossed.drop("attribute"), named)


def test_fairness_refuses_wrong_options(people: pl.DataFrame) -> None:
    with pytest.raises(TypeError, match="`attributes` must name the groups to compare"):
        wroc.fairness(people, "y", "s", attributes=None, threshold=0.5, min_rows=0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`threshold` must be a number; found nan"):
        fair(people, float("nan"))


def test_rows_without_a_value_are_no_group(people: pl.DataFrame) -> None:
    some = people.with_columns(g=pl.when(pl.col("g") != "a").then("g"))
    assert_frame_equal(fair(some), fair(some.drop_nulls("g")))


def test_without_a_label_there_is_demographic_parity_alone(people: pl.DataFrame) -> None:
    given: dict[str, Any] = {"attributes": "g", "selected": pl.col("s") > 0.5}
    table = wroc.fairness(people, None, **given, min_rows=0)
    assert table["metric"].to_list() == [
        "demographic_parity_difference",
        "demographic_parity_ratio",
    ]
    gaps = wroc.group_gaps(people, None, **given, min_rows=0)
    assert gaps["metric"].unique().to_list() == ["selection_rate"]


@pytest.mark.parametrize("favorable", ["selected", "rejected"])
@pytest.mark.parametrize("unknown", ["exclude", "keep", ["a"]])
def test_demographic_parity_is_the_least_impact_ratio(
    people: pl.DataFrame, favorable: Any, unknown: Any
) -> None:
    some = people.with_columns(g=pl.when(pl.col("g") != "c").then("g"))
    table = wroc.audit(
        some,
        "y",
        "s",
        attributes="g",
        threshold=0.5,
        favorable=favorable,
        unknown=unknown,
        min_rows=0,
    ).table
    ratios = table.filter(metric="impact_ratio").drop_nulls("ratio").sort("ratio")
    (parity,) = table.filter(metric="demographic_parity_ratio").to_dicts()
    least = ratios.row(0, named=True)
    assert parity["ratio"] == pytest.approx(least["ratio"])
    assert (parity["segment"] or "(missing)") == least["segment"]
    assert least["value"] == least["ratio"]
    rates = table.filter(metric="selection_rate").with_columns(
        pl.col("segment").fill_null("(missing)")
    )
    of_least, of_reference = (
        rates.filter(segment=least[name])["value"].item() for name in ("segment", "reference")
    )
    if favorable == "rejected":
        of_least, of_reference = 1 - of_least, 1 - of_reference
    assert (parity["value"], parity["reference_value"]) == pytest.approx((of_least, of_reference))
