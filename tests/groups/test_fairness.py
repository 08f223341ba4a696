"""Fairness metrics: against fairlearn with sample weights, and intervals by hand."""

from __future__ import annotations

import io
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from fairlearn import metrics as fairlearn
from plain_roc import ratio_limits
from polars.testing import assert_frame_equal
from scipy import stats
from sklearn.metrics import precision_score, roc_auc_score
from sweeps import sweep
from wide_tables import wide_gaps

import polars_wroc as wroc

Engine: TypeAlias = Any
Floats: TypeAlias = npt.NDArray[np.float64]

METRICS = [
    "demographic_parity_difference",
    "demographic_parity_ratio",
    "equal_opportunity_difference",
    "equal_opportunity_ratio",
    "predictive_equality_difference",
    "equalized_odds_difference",
    "equalized_odds_ratio",
    "predictive_parity_difference",
    "auc_difference",
    "max_abroca",
]
COLUMNS = ["metric", "value", "group_max", "group_min", "ci_low", "ci_high"]
COLUMNS += ["joint_low", "joint_high", "p_value"]
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
    scalars = [name for name in METRICS if hasattr(fairlearn, name)]
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


def values_of(table: pl.DataFrame) -> dict[str, float]:
    return dict(table.select("metric", "value").rows())


def share(frame: pl.DataFrame, rate: str, threshold: float, level: float) -> Floats:
    """A rate with Wilson's limits, at the smaller of two effective numbers of rows."""
    selected = pl.col("s") >= threshold
    among = {"tpr": pl.col("y"), "fpr": ~pl.col("y"), "ppv": selected}.get(rate, pl.lit(value=True))
    counted = pl.col("y") if rate == "ppv" else selected
    rows = frame.filter(among).select("w", k=counted)
    w, k = rows["w"].to_numpy(), rows["k"].to_numpy().astype(np.float64)
    p, h = (w * k).sum() / w.sum(), w / w.sum()
    size = 1 / (h**2).sum()
    if 0 < p < 1:
        size = min(size, p * (1 - p) / (h**2 * (k - p) ** 2).sum())
    z2 = stats.norm.ppf((1 + level) / 2) ** 2 / size
    # What is as far from the rate as its own standard error says it may be.
    low, high = sorted(np.roots([1 + z2, -2 * p - z2, p**2]).real)
    return np.array([p, min(max(low, 0), p), max(min(high, 1), p)])


def difference(one: Floats, other: Floats) -> list[float]:
    """Donner and Zou's interval of a difference."""
    below = np.hypot(one[0] - one[1], other[2] - other[0])
    above = np.hypot(one[2] - one[0], other[0] - other[1])
    return [one[0] - other[0] - below, one[0] - other[0] + above]


def fair(frame: pl.DataFrame, threshold: float = 0.5, **options: Any) -> pl.DataFrame:
    return wroc.fairness(
        frame, "y", "s", weight="w", attributes="g", threshold=threshold, **options
    )


@pytest.mark.parametrize("threshold", sweep([-0.5, 0.3, 0.5, 1.1]))
def test_values_are_those_of_fairlearn(
    people: pl.DataFrame, threshold: float, engine: Engine
) -> None:
    assert people["s"].is_in([threshold]).any()
    plan = wroc.fairness(people.lazy(), "y", "s", weight="w", attributes="g", threshold=threshold)
    table = plan.collect(engine=engine)
    assert table.columns == COLUMNS
    assert table["metric"].to_list() == METRICS
    values = values_of(table)
    for name, expected in by_fairlearn(people, threshold).items():
        assert values[name] == pytest.approx(expected, abs=1e-12)
    areas = wroc.subgroup_auc(people, "y", "s", weight="w", by="g")["abroca"]
    assert values["max_abroca"] == areas.max()


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
    for name, most, least in table.select("metric", "group_max", "group_min").rows():
        notion, _, kind = name.rpartition("_")
        if notion in RATES:
            column = rates[RATES[notion]]
            assert (most, least) == (column.idxmax(), column.idxmin())
        elif notion == "equalized_odds":
            parts = table.filter(
                pl.col("metric").is_in([f"equal_opportunity_{kind}", f"predictive_equality_{kind}"])
            )
            value = table.filter(metric=name)["value"].item()
            same = parts.filter(value=value)
            if same.height:
                assert same.select(COLUMNS[2:4]).row(0) == (most, least)
    summary = wroc.summary(people, "y", "s", weight="w", by="g", method="score").sort("auc")
    auc = table.filter(metric="auc_difference").row(0, named=True)
    assert (auc["group_max"], auc["group_min"]) == (summary["g"][-1], summary["g"][0])
    assert auc["value"] == pytest.approx(summary["auc"][-1] - summary["auc"][0])
    ends = [
        np.array(summary.select("auc", "ci_low", "ci_high").row(place), dtype=np.float64)
        for place in (-1, 0)
    ]
    assert [auc["ci_low"], auc["ci_high"]] == pytest.approx(difference(*ends))
    farthest = wroc.subgroup_auc(people, "y", "s", weight="w", by="g").sort("abroca")["g"][-1]
    assert table.filter(metric="max_abroca").row(0)[2:] == (farthest, *[None] * 6)


@pytest.mark.parametrize("level", [0.95, 0.8])
def test_intervals_by_hand(people: pl.DataFrame, level: float) -> None:
    table = fair(people, level=level)
    for row in table.rows(named=True):
        notion, _, kind = row["metric"].rpartition("_")
        if notion not in RATES:
            continue
        most, least = (
            share(people.filter(g=row[f"group_{end}"]), RATES[notion], 0.5, level)
            for end in ("max", "min")
        )
        limits = row["ci_low"], row["ci_high"]
        if kind == "difference":
            assert limits == pytest.approx(difference(most, least), abs=1e-9)
        else:
            assert limits == pytest.approx(ratio_limits(least, most), abs=1e-9)


def test_limits_of_a_rate_without_weights_are_scipys(people: pl.DataFrame) -> None:
    frame = people.with_columns(w=pl.lit(1.0))
    for _, rows in frame.group_by("g"):
        count = (rows["s"] >= 0.5).sum()
        expected = stats.binomtest(count, rows.height).proportion_ci(0.9, "wilson")
        assert share(rows, "selection_rate", 0.5, 0.9)[1:] == pytest.approx([*expected])


def test_interval_of_a_ratio_with_a_rate_of_zero() -> None:
    frame = pl.DataFrame(
        {"g": ["a"] * 20 + ["b"] * 20, "y": [True, False] * 20, "s": [1.0] * 10 + [0.0] * 30}
    ).with_columns(w=pl.lit(1.0))
    row = fair(frame).filter(metric="demographic_parity_ratio").row(0, named=True)
    most, least = (share(frame.filter(g=g), "selection_rate", 0.5, 0.95) for g in "ab")
    assert (row["value"], row["ci_low"]) == (0.0, 0.0)
    assert row["ci_high"] == pytest.approx(ratio_limits(least, most)[1])


def test_an_undefined_ratio_has_no_limits(people: pl.DataFrame) -> None:
    nobody = wroc.fairness(people, "y", "s", attributes="g", threshold=1e9)
    limits = ["value", "ci_low", "ci_high", "joint_low", "joint_high"]
    ratios = nobody.filter(pl.col("metric").str.ends_with("_ratio")).select(limits)
    assert ratios.height == 3
    assert ratios.null_count().row(0) == (3,) * 5
    gap = nobody.filter(metric="demographic_parity_difference").row(0, named=True)
    assert (gap["value"], gap["p_value"]) == (0.0, 1.0)
    assert gap["ci_low"] < 0 < gap["ci_high"]


def test_an_infinite_limit_of_a_ratio_is_null(people: pl.DataFrame) -> None:
    # With next to no rows the lower limit of every rate is 0.
    tiny = people.with_columns(w=pl.lit(1e-160))
    named: dict[str, Any] = {"by": "g", "threshold": 0.5, "weight": "w"}
    named["weight_type"] = "frequency"
    table = wroc.fairness(tiny, "y", "s", **named)
    ratio = table.filter(metric="demographic_parity_ratio").row(0, named=True)
    assert ratio["value"] > 0
    assert [ratio[f"{kind}_low"] for kind in ("ci", "joint")] == [0.0, 0.0]
    assert (ratio["ci_high"], ratio["joint_high"]) == (None, 1.0)
    gaps = wide_gaps(tiny, "y", "s", **named)
    assert (gaps["tpr_ratio"] > 0).all()
    assert (gaps["tpr_ratio_low"] == 0).all()
    assert gaps["tpr_ratio_high"].to_list() == [None] * gaps.height


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
    table = fair(people.filter(g="a")).filter(pl.col("metric") != "max_abroca")
    assert set(table.select(pl.exclude("metric")).rows()) == {(None,) * 8}


@pytest.mark.parametrize("weight", sweep([None, "w"]))
def test_groups_with_few_rows_are_left_out(people: pl.DataFrame, weight: str | None) -> None:
    few = people.head(12).with_columns(g=pl.lit("few"), s=pl.lit(9.0))
    rows = pl.concat([people, few])
    call: dict[str, Any] = {"by": "g", "threshold": 0.5, "weight": weight}
    table = wroc.fairness(rows, "y", "s", min_rows=10, **call)
    of_audit = wroc.audit(rows, "y", "s", min_rows=10, favorable="selected", **call).fairness
    assert of_audit is not None
    shown = table.filter(pl.col("metric") != "max_abroca")
    # Only the audit has the gaps of AUCs, and their tests.
    of_audit = of_audit.drop("attribute").with_columns(
        p_value=pl.when(pl.col("metric") != "auc_difference").then("p_value")
    )
    assert_frame_equal(shown, of_audit, abs_tol=1e-12)
    assert "few" not in shown.filter(metric="auc_difference").row(0)
    with_all = wroc.fairness(rows, "y", "s", **call)
    assert "few" in with_all.filter(metric="demographic_parity_ratio").row(0)
    without_few, people_alone = (
        table.filter(pl.col("metric") != "max_abroca")
        for table in (
            wroc.fairness(rows, "y", "s", min_rows=13, **call),
            wroc.fairness(people, "y", "s", min_rows=13, **call),
        )
    )
    assert_frame_equal(without_few, people_alone, abs_tol=1e-12)
    with pytest.raises(ValueError, match=r"^`min_rows` must be "):
        wroc.fairness(rows, "y", "s", min_rows=-1, **call)


def test_an_area_to_a_rest_of_few_rows_is_left_out_too(people: pl.DataFrame) -> None:
    rows = pl.concat([people.filter(g="a"), people.filter(g="b").head(19)])
    table = wroc.fairness(rows, "y", "s", attributes="g", threshold=0.5, min_rows=20)
    assert set(table.select(pl.exclude("metric")).rows()) == {(None,) * 8}
    of_all = wroc.fairness(rows, "y", "s", attributes="g", threshold=0.5, min_rows=1)
    assert of_all.filter(metric="max_abroca")["value"].item() > 0


def test_equalized_odds_need_both_rates(people: pl.DataFrame) -> None:
    positives_alone = people.filter(pl.col("y") | ~pl.col("g").is_in(["a", "b"]))
    values = values_of(fair(positives_alone.filter(pl.col("g").is_in(["a", "b", "c"]))))
    assert values["equal_opportunity_difference"] > 0
    assert values["predictive_equality_difference"] is None
    assert values["equalized_odds_difference"] is None
    assert values["equalized_odds_ratio"] is None


@pytest.mark.parametrize(("groups", "threshold"), [("a", 0.5), ("ab", 100.0)])
def test_every_metric_has_a_row(people: pl.DataFrame, groups: str, threshold: float) -> None:
    table = fair(people.filter(pl.col("g").is_in(list(groups))), threshold)
    assert table["metric"].to_list() == METRICS


@pytest.mark.plans
def test_lazy_frame_gives_a_plan_that_serialises(people: pl.DataFrame, engine: Engine) -> None:
    plan = wroc.fairness(people.lazy(), "y", "s", weight="w", attributes="g", threshold=0.5)
    assert "python" not in plan.explain(optimized=False).lower()
    shipped = pl.LazyFrame.deserialize(io.BytesIO(plan.serialize()))
    table = wroc.fairness(people, "y", "s", weight="w", attributes="g", threshold=0.5)
    assert_frame_equal(shipped.collect(engine=engine), table, rel_tol=1e-9)


def test_models_are_compared_each_for_itself(people: pl.DataFrame, engine: Engine) -> None:
    models = people.with_columns(r=pl.when(pl.int_range(pl.len()) % 7 > 0).then(-pl.col("s")))
    options: dict[str, Any] = {"weight": "w", "by": "g", "threshold": 0.5}
    table = wroc.fairness(models.lazy(), "y", ["s", "r"], **options).collect(engine=engine)
    assert table.columns == ["model", *COLUMNS]
    assert sorted(table.select("metric", "model").rows()) == sorted(
        (name, model) for name in METRICS for model in ("s", "r")
    )
    for model in ("s", "r"):
        alone = models.select("g", "y", "w", s=model).drop_nulls()
        found = table.filter(model=model).drop("model")
        assert found["metric"].to_list() == METRICS
        assert_frame_equal(found, fair(alone), rel_tol=1e-9)


def test_groups_of_several_columns_are_named_by_all(people: pl.DataFrame) -> None:
    h = pl.int_range(pl.len()) % 3
    frame = people.with_columns(h=pl.when(h > 0).then(h))
    table = wroc.fairness(frame, "y", "s", weight="w", attributes=["g", "h"], threshold=0.5)
    name = pl.format("{}, {}", "g", pl.col("h").cast(pl.String).fill_null("(missing)"))
    assert_frame_equal(table, fair(frame.with_columns(g=name)))


def test_frequencies_are_repeated_rows(people: pl.DataFrame) -> None:
    counted = people.with_columns(w=pl.col("w").ceil())
    times = pl.col("w").cast(pl.Int64)
    rows = counted.select(pl.exclude("w").repeat_by(times).explode(empty_as_null=False))
    found = fair(counted, weight_type="frequency")
    assert_frame_equal(found, fair(rows.with_columns(w=pl.lit(1.0))), rel_tol=1e-9)


def test_order_of_the_rows_does_not_matter(people: pl.DataFrame) -> None:
    shuffled = people.sample(fraction=1.0, shuffle=True, seed=1)
    assert_frame_equal(fair(people), fair(shuffled), rel_tol=1e-9)


def test_options_are_checked(people: pl.DataFrame) -> None:
    with pytest.raises(TypeError, match="`by` must name the groups to compare"):
        wroc.fairness(people, "y", "s", attributes=None, threshold=0.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`threshold` must be a number; found nan"):
        fair(people, float("nan"))
    with pytest.raises(ValueError, match="`level` must lie"):
        fair(people, level=1)
