"""Gaps of metrics on request, against the metrics of each group and influences by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from polars.testing import assert_frame_equal
from scipy import stats
from sklearn.metrics import brier_score_loss, log_loss
from sweeps import sweep

import polars_wroc as wroc

Array = NDArray[Any]
LOSSES = ["brier_score", "log_loss"]
VALUES = ["balanced_accuracy", "f1", "mcc", "youden", "lift", "markedness", "f2", "jaccard"]
VALUES += ["lr_pos", "lr_neg", "net_benefit"]


def frame_of(seed: int, n: int = 400) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    y = random.random(n) < 0.4
    columns = {
        "y": y,
        "s": np.clip(0.25 * y + 0.7 * random.random(n), 0.001, 0.999),
        "w": random.lognormal(0, 0.6, n),
        "c": np.arange(n) // 5,
        "g": random.choice(["a", "b", "c"], n),
    }
    return pl.DataFrame(columns)


def gaps_of(frame: Any, metrics: list[str], **options: Any) -> Any:
    given: dict[str, Any] = {"attributes": "g", "threshold": 0.5, "weight": "w"} | options
    return wroc.group_gaps(frame, "y", "s", metrics=metrics, **given, min_rows=0)


def test_values_are_those_of_the_groups_and_of_the_others() -> None:
    frame = frame_of(1)
    metrics = ["tnr", "accuracy", *VALUES]
    found = gaps_of(frame, metrics)
    assert found.height == 3 * len(metrics)
    options: dict[str, Any] = {"threshold": 0.5, "metrics": metrics, "weight": "w"}
    own = wroc.threshold_metrics(frame, "y", "s", by="g", **options)
    for segment, metric, *numbers in found.select(
        "segment", "metric", "value", "value_low", "value_high", "reference_value", "gap"
    ).rows():
        ends = [f"{metric}{end}" for end in ("", "_low", "_high")]
        expected = own.filter(g=segment).select(ends).row(0)
        assert numbers[:3] == pytest.approx(expected, rel=1e-8, abs=1e-8)
        rest = wroc.threshold_metrics(frame.filter(pl.col("g") != segment), "y", "s", **options)
        other = rest[metric].item()
        assert numbers[3:] == pytest.approx([other, numbers[0] - other], rel=1e-8, abs=1e-12)


def test_limits_of_gaps_combine_both_intervals() -> None:
    # Of equal weights all quantiles are normal.
    frame = frame_of(2).with_columns(w=1.0)
    found = gaps_of(frame, [*VALUES, *LOSSES], reference="a").filter(segment="b")
    other = gaps_of(frame, [*VALUES, *LOSSES]).filter(segment="a")
    columns = ["value", "value_low", "value_high"]
    for row, of_a in zip(found.rows(named=True), other.select(columns).rows(), strict=True):
        one, low, high = (row[name] for name in columns)
        second, second_low, second_high = of_a
        gap = one - second
        below = math.hypot(one - low, second_high - second)
        above = math.hypot(high - one, second - second_low)
        assert (row["gap_low"], row["gap_high"]) == pytest.approx((gap - below, gap + above))


@pytest.mark.parametrize(
    ("reference", "design"),
    sweep(
        [("rest", None), ("overall", None), ("a", None), ("rest", "c"), ("overall", "c")], fast=2
    ),
)
def test_p_values_belong_to_the_interval_that_just_excludes_0(
    reference: str, design: str | None
) -> None:
    frame, options = frame_of(3, 150), {"reference": reference, "design": design}
    metrics = ["mcc", "lr_pos", "log_loss"]
    rows = gaps_of(frame, metrics, **options).filter(pl.col("segment") == "b")
    assert rows["p_value"].null_count() == 0
    for row in rows.filter(pl.col("p_value") < 0.99).rows(named=True):
        level = 1 - row["p_value"]
        at_level = gaps_of(frame, [row["metric"]], level=level, **options)
        near = at_level.filter(segment="b").row(0, named=True)
        end = near["gap_low"] if row["gap"] > 0 else near["gap_high"]
        assert end == pytest.approx(0, abs=1e-5 * (row["gap_high"] - row["gap_low"]))


def test_two_groups_of_all_rows_are_two_tests() -> None:
    frame = frame_of(3, 150).filter(pl.col("g").is_in(["a", "b"]))
    rows = gaps_of(frame, ["mcc"], reference="overall", adjust="none")
    assert rows["p_value"].n_unique() == 2
    assert rows["reason"].null_count() == 2
    for row in rows.rows(named=True):
        near = gaps_of(frame, ["mcc"], reference="overall", level=1 - row["p_value"])
        near = near.filter(segment=row["segment"])
        end = near["gap_low" if row["gap"] > 0 else "gap_high"].item()
        assert end == pytest.approx(0, abs=1e-5)


def losses_of(frame: pl.DataFrame, name: str) -> Array:
    y, s = frame["y"].to_numpy(), frame["s"].to_numpy()
    if name == "brier_score":
        return np.asarray((y - s) ** 2)
    return np.asarray(-np.log(np.where(y, s, 1 - s)))


def of_losses(frame: pl.DataFrame, name: str, inside: Array) -> tuple[float, Array, float]:
    """The mean loss of some rows, the influence of each row, and the slope of its scale."""
    w, loss = frame["w"].to_numpy() * inside, losses_of(frame, name)
    mean = (w @ loss).item() / w.sum()
    slope = 1 / (mean * (1 - mean)) if name == "brier_score" else 1 / mean
    return mean, w * (loss - mean) / w.sum(), slope


def limits_of(name: str, mean: float, margin: float) -> tuple[float, float]:
    if name == "log_loss":
        return mean * math.exp(-margin), mean * math.exp(margin)
    logit = math.log(mean / (1 - mean))
    return 1 / (1 + math.exp(margin - logit)), 1 / (1 + math.exp(-margin - logit))


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("reference", ["rest", "overall"])
@pytest.mark.parametrize("clustered", [False, True])
def test_losses_have_the_limits_of_influences_by_hand(
    name: str, reference: str, *, clustered: bool
) -> None:
    frame = frame_of(4, 200).with_columns(w=1.0)
    inside = (frame["g"] == "a").to_numpy()
    others = np.ones_like(inside) if reference == "overall" else ~inside
    found = gaps_of(frame, [name], reference=reference, design="c" if clustered else None)
    row = found.filter(segment="a").row(0, named=True)
    one, other = (of_losses(frame, name, rows) for rows in (inside, others))
    assert (row["value"], row["reference_value"]) == pytest.approx((one[0], other[0]), rel=1e-12)
    theirs = brier_score_loss if name == "brier_score" else log_loss
    assert row["value"] == pytest.approx(theirs(*frame.filter(g="a")["y", "s"]), rel=1e-12)

    def cluster_sums(influence: Array, rows: Array) -> Array:
        """Influences of clusters, with the factor of the weights that they have in the base."""
        if not clustered:
            return influence
        shares = np.bincount(frame["c"], rows) / rows.sum()
        s2, s3 = (shares**2).sum(), (shares**3).sum()
        return np.asarray(
            np.bincount(frame["c"], influence) * math.sqrt(s2 / (s2 - 2 * s3 + s2**2))
        )

    sums = [
        cluster_sums(each[1], rows)
        for each, rows in zip((one, other), (inside, others), strict=True)
    ]
    errors = [math.sqrt(each @ each) * of[2] for each, of in zip(sums, (one, other), strict=True)]
    related = (sums[0] @ sums[1]) * one[2] * other[2] / errors[0] / errors[1]
    quantiles = [float(stats.norm.ppf(0.975))] * 2
    if clustered:
        units = frame["c"].n_unique()
        of_a = frame.filter(g="a")["c"].n_unique()
        quantiles = [
            float(stats.t.ppf(0.975, df)) for df in (min(of_a, units - 1), min(of_a, units - 1))
        ]
    own = limits_of(name, one[0], quantiles[0] * errors[0])
    assert (row["value_low"], row["value_high"]) == pytest.approx(own, rel=1e-6)
    ends = [
        limits_of(name, each[0], quantiles[1] * e)
        for each, e in zip((one, other), errors, strict=True)
    ]
    for name_of, (first, second), sign in (
        ("gap_low", (one[0] - ends[0][0], ends[1][1] - other[0]), -1),
        ("gap_high", (ends[0][1] - one[0], other[0] - ends[1][0]), 1),
    ):
        margin = math.sqrt(first**2 + second**2 - 2 * related * first * second)
        assert row[name_of] == pytest.approx(row["gap"] + sign * margin, rel=1e-6)


@pytest.mark.parametrize("options", sweep([{}, {"reference": "best"}, {"design": "c"}], fast=2))
def test_lazy_tables_and_recorded_decisions_are_the_same(options: dict[str, Any]) -> None:
    frame, metrics = frame_of(5, 120), ["auc", "tpr", "accuracy", "f1", "brier_score"]
    found = gaps_of(frame, metrics, **options)
    lazy = gaps_of(frame.lazy(), metrics, **options)
    assert isinstance(lazy, pl.LazyFrame)
    assert_frame_equal(found, lazy.collect(), rel_tol=1e-8)
    recorded = {"threshold": None, "selected": pl.col("s") >= 0.5}
    assert_frame_equal(found, gaps_of(frame, metrics, **options | recorded), rel_tol=1e-8)
    assert {*found["metric"]} == {*metrics}
    # The tests of the table, and no others, share the error.
    tested = found["p_value"].drop_nulls()
    assert found["p_adjusted"].min() == pytest.approx(min(1, min(tested) * len(tested)))


def test_rows_that_metrics_share_with_the_table_without_them_are_the_same() -> None:
    frame = frame_of(6)
    usual = gaps_of(frame, None)  # type: ignore[arg-type]
    asked = gaps_of(frame, [*usual["metric"].unique()])
    assert_frame_equal(usual, asked)
    more = gaps_of(frame, ["auc", "tpr", "mcc"], adjust="none")
    same = more.filter(pl.col("metric") != "mcc").drop("p_adjusted", "detectable", "verdict")
    expected = gaps_of(frame, ["auc", "tpr"], adjust="none").select(same.columns)
    assert_frame_equal(same, expected)


def test_a_segment_of_one_class_has_no_number_that_is_undefined() -> None:
    frame = frame_of(7, 60).with_columns(y=pl.col("y") & (pl.col("g") != "a"))
    found = gaps_of(frame, ["lift", "mcc", "lr_pos", *LOSSES]).filter(segment="a")
    undefined = found.filter(pl.col("metric").is_in(["lift", "mcc", "lr_pos"]))
    assert undefined["value"].null_count() == undefined["gap_low"].null_count() == 3
    assert set(undefined["reason"]) == {"undefined"}
    assert found.filter(pl.col("metric").is_in(LOSSES))["gap_low"].null_count() == 0


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"metrics": ["mmc"]}, ValueError, "`metrics` must be one of auc, .*; did you mean 'mcc'?"),
        ({"metrics": "mcc"}, TypeError, "`metrics` must be None or a sequence of names of metrics"),
        ({"metrics": []}, TypeError, "`metrics` must be None or a sequence of names of metrics"),
        (
            {"metrics": ["f1"], "threshold": None},
            ValueError,
            "with a `threshold` or `selected` for f1; found neither$",
        ),
        ({"metrics": ["f1"], "within": "c"}, ValueError, "`metrics` must be None with `within`"),
    ],
)
def test_gaps_refuse_metrics_that_cannot_be_compared(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    given: dict[str, Any] = {"attributes": "g", "threshold": 0.5} | options
    with pytest.raises(error, match=message):
        wroc.group_gaps(frame_of(8, 20), "y", "s", **given, min_rows=0)


def test_losses_are_of_probabilities() -> None:
    frame = frame_of(9, 30).with_columns(s=pl.col("s") * 2)
    with pytest.raises(ValueError, match=r"^`score` must be a probability, from 0 to 1; found 1"):
        gaps_of(frame, LOSSES)


@pytest.mark.parametrize("design", [None, "m"])
def test_limits_of_net_benefits_are_those_at_thresholds(design: str | None) -> None:
    random = np.random.default_rng(8)
    rows = pl.DataFrame(
        {"g": random.choice(["a", "b"], 900, p=[0.3, 0.7]), "s": random.random(900)}
    )
    rows = rows.with_columns(
        y=pl.Series(random.random(900)) < pl.col("s"), m=pl.int_range(900) % 90
    )
    gaps = wroc.group_gaps(
        rows, "y", "s", attributes="g", threshold=0.6, metrics=["net_benefit"], design=design
    )
    matrices = wroc.threshold_metrics(
        rows, "y", "s", by="g", threshold=0.6, metrics="net_benefit", design=design
    )
    found = gaps.select("value", "value_low", "value_high").rows()
    assert found == matrices.select(r"^net_benefit.*$").rows()


def test_limits_of_gaps_of_net_benefits_are_normal_with_many_rows() -> None:
    random = np.random.default_rng(9)
    size = 20_000
    rows = pl.DataFrame({"g": random.choice(["a", "b"], size), "s": random.random(size)})
    rows = rows.with_columns(y=pl.Series(random.random(size)) < pl.col("s") * 0.8)
    found = wroc.group_gaps(
        rows, "y", "s", attributes="g", threshold=0.6, metrics=["net_benefit"]
    ).row(0, named=True)
    gain = pl.when(pl.col("s") >= 0.6).then(pl.when("y").then(1.0).otherwise(-1.5)).otherwise(0.0)
    of_groups = rows.group_by("g").agg(mean=gain.mean(), error=gain.var() / pl.len()).sort("g")
    gap = of_groups["mean"][0] - of_groups["mean"][1]
    half = 1.959964 * float(of_groups["error"].sum()) ** 0.5
    assert found["gap"] == pytest.approx(gap)
    assert found["gap_low"] == pytest.approx(gap - half, rel=0.02)
    assert found["gap_high"] == pytest.approx(gap + half, rel=0.02)
    z = abs(gap) / (half / 1.959964)
    assert found["p_value"] == pytest.approx(2 * stats.norm.sf(z), rel=0.1)
