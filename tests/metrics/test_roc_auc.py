"""Area under the curve and the other numbers of a whole curve."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pytest
from conftest import Groups
from sklearn import metrics as sklearn_metrics

import polars_wroc as wroc

summary_of = partial(wroc.summary, diagnostics=True)


EARLY, LATE = date(2020, 1, 1), date(2021, 1, 1)


def _gini(*args: Any, **weights: Any) -> float:
    return 2 * float(sklearn_metrics.roc_auc_score(*args, **weights)) - 1


def _ks(*args: Any, **weights: Any) -> float:
    fpr, tpr, _ = sklearn_metrics.roc_curve(*args, drop_intermediate=False, **weights)
    return float(np.max(np.abs(tpr - fpr)))


SKLEARN_NUMBERS: dict[str, Callable[..., float]] = {
    "roc_auc": sklearn_metrics.roc_auc_score,
    "gini": _gini,
    "ks": _ks,
    "average_precision": sklearn_metrics.average_precision_score,
}


def _tied(frame: pl.DataFrame, decimals: int | None) -> pl.DataFrame:
    jitter = np.random.default_rng(5).normal(scale=0.05, size=frame.height)
    spread = frame.with_columns(pl.col("s") + pl.Series(jitter))
    return spread if decimals is None else spread.with_columns(pl.col("s").round(decimals))


@pytest.mark.parametrize(
    "label",
    [
        pl.col("y"),
        (pl.col("y") + 1) / 2,
        ((pl.col("y") + 1) / 2).cast(pl.UInt8),
        pl.col("y") == 1,
        pl.col("y").cast(pl.Float32),
        pl.col("y").cast(pl.Decimal(4, 1)),
    ],
    ids=["-1 and 1", "0 and 1", "unsigned", "boolean", "float", "decimal"],
)
def test_weighted_roc_example_in_every_label_encoding(
    weighted_roc: pl.DataFrame, label: pl.Expr
) -> None:
    assert weighted_roc.select(wroc.roc_auc(label, "s", weight="w")).item() == 0.325
    assert summary_of(weighted_roc, label, "s", weight="w")["auc"].item() == 0.325


@pytest.mark.parametrize(
    ("label", "pos_label"),
    [
        (pl.col("y").replace_strict({1: "yes", -1: "no"}), "yes"),
        (pl.col("y").replace_strict({1: "yes", -1: "no"}).cast(pl.Categorical), "yes"),
        (pl.col("y").replace_strict({1: "b", -1: "a"}).cast(pl.Enum(["a", "b"])), "b"),
        (pl.col("y").replace_strict({1: 7, -1: 3}), 7),
        (pl.when(pl.col("y") == 1).then(EARLY).otherwise(LATE), EARLY),
        (pl.col("y") == -1, False),
        ((pl.col("y") == 1).cast(pl.Int8), 1),
    ],
    ids=["text", "categorical", "enum", "number", "date", "boolean", "0 and 1"],
)
def test_weighted_roc_example_with_a_positive_label(
    weighted_roc: pl.DataFrame, label: pl.Expr, pos_label: object
) -> None:
    numbers = summary_of(weighted_roc, label, "s", weight="w", pos_label=pos_label)
    assert numbers["auc"].item() == 0.325
    auc = wroc.roc_auc(label, "s", weight="w", pos_label=pos_label)
    assert weighted_roc.select(auc).item() == 0.325


INTERVAL = ["auc_se", "auc_low", "auc_high", "ci_method", "n_eff_pos", "n_eff_neg"]


def test_seven_rows_by_hand(seven: pl.DataFrame) -> None:
    numbers = summary_of(seven, "y", "s", weight="w").drop(INTERVAL).row(0, named=True)
    assert numbers == {
        "n": 7,
        "n_pos": 3,
        "n_neg": 4,
        "n_missing": 0,
        "w_pos": 4.0,
        "w_neg": 5.0,
        "auc": pytest.approx(0.575, abs=1e-12),
        "ks": pytest.approx(0.4, abs=1e-12),
        # At .9, .7 and .6: (1/4)(1/1) + (1/4)(2/5) + (2/4)(4/7).
        "average_precision": pytest.approx(1 / 4 + 1 / 10 + 2 / 7, abs=1e-12),
        "inverted": False,
        # The complement squared, divided by the sums of squared weights times squared placements.
        "k_pos": pytest.approx(1.3921447702),
        "k_neg": pytest.approx(1.6110945125),
        "ci_note": "few misranked rows",
    }


def test_a_score_without_values_comes_before_others() -> None:
    frame = pl.DataFrame({"y": [0, 0, 1, 1], "none": pl.Series([None] * 4, dtype=pl.Float64)})
    frame = frame.with_columns(tied=pl.Series([1.0, 2.0, 1.0, 2.0]))
    found = summary_of(frame, "y", ["none", "tied"]).select("model", "auc", "inverted", "ci_note")
    assert found.rows() == [
        ("none", None, None, None),
        ("tied", 0.5, False, "few misranked rows"),
    ]


@pytest.mark.parametrize(
    ("positive_scores", "negative_scores", "auc"),
    [
        ([3.0, 4.0], [1.0, 2.0], 1.0),
        ([1.0, 2.0], [3.0, 4.0], 0.0),
        ([1.0, 1.0], [1.0, 1.0], 0.5),
        ([1.0, 3.0], [2.0, 4.0], 0.25),
        ([2.0, 4.0], [1.0, 2.0], 0.875),
    ],
    ids=["separated", "reversed", "all tied", "one of four pairs", "one tied pair"],
)
def test_auc_by_hand(
    positive_scores: list[float], negative_scores: list[float], auc: float
) -> None:
    frame = pl.DataFrame({"s": positive_scores + negative_scores, "y": [1, 1, 0, 0]})
    assert frame.select(wroc.roc_auc("y", "s")).item() == auc


@pytest.mark.parametrize("decimals", [None, 1, 0], ids=["no ties", "ties", "many ties"])
@pytest.mark.parametrize("weight", ["w", None], ids=["weighted", "unweighted"])
@pytest.mark.parametrize("name", SKLEARN_NUMBERS)
def test_number_equals_scikit_learn_in_each_group(
    people: pl.DataFrame, groups: Groups, name: str, weight: str | None, decimals: int | None
) -> None:
    rows = _tied(people, decimals)
    ours = rows.group_by("g").agg(getattr(wroc, name)("y", "s", weight=weight)).sort("g")
    theirs = [
        (g, SKLEARN_NUMBERS[name](part["y"], part["s"], sample_weight=part[weight or "one"]))
        for g, part in groups(rows.with_columns(one=1.0))
    ]
    assert ours["g"].to_list() == [g for g, _ in theirs]
    assert ours[name].to_list() == pytest.approx([value for _, value in theirs], abs=1e-12)


def test_auc_equals_the_weighted_share_of_pairs(
    people: pl.DataFrame, groups: Groups, pair_auc: Callable[[pl.DataFrame], float]
) -> None:
    ours = summary_of(people, "y", "s", weight="w", by="g")
    counted = [pair_auc(part) for _, part in groups(people)]
    assert ours["auc"].to_list() == pytest.approx(counted, abs=1e-12)


def test_auc_of_equal_scores_is_one_half(people: pl.DataFrame) -> None:
    tied = people.with_columns(s=0.1)
    assert tied.select(wroc.roc_auc("y", "s", weight="w")).item() == 0.5
    assert summary_of(tied, "y", "s", by="g")["auc"].to_list() == [0.5] * 4
    weighted = summary_of(tied, "y", "s", weight="w", by="g")["auc"].to_list()
    assert weighted == pytest.approx([0.5] * 4, rel=1e-15)


def test_auc_close_to_one_against_exact_fractions() -> None:
    """One negative of a million beats one positive of tiny weight."""
    frame = pl.DataFrame(
        {"s": [4.0, 3.0, 2.0, 1.0], "y": [1, 0, 1, 0], "w": [1.0, 2.0**-20, 2.0**-20, 1.0]}
    )
    small = Fraction(1, 2**20)
    lost = small * small / ((1 + small) * (1 + small))
    auc = frame.select(wroc.roc_auc("y", "s", weight="w")).item()
    assert auc == pytest.approx(float(1 - lost), abs=1e-15)


def test_result_column_is_named_after_the_function() -> None:
    frame = pl.DataFrame({"y": [1, 0], "s": [2.0, 1.0]})
    result = frame.select(getattr(wroc, name)("y", "s") for name in SKLEARN_NUMBERS)
    assert result.schema == dict.fromkeys(SKLEARN_NUMBERS, pl.Float64())


def test_label_score_and_weight_may_be_expressions(people: pl.DataFrame) -> None:
    changed = people.with_columns(status=pl.when("y").then(pl.lit("bad")).otherwise(pl.lit("good")))
    auc = wroc.roc_auc(pl.col("status") == "good", -pl.col("s"), weight=pl.col("w") * 2)
    theirs = sklearn_metrics.roc_auc_score(~people["y"], -people["s"], sample_weight=people["w"])
    assert changed.select(auc).item() == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt16, pl.Float32, pl.Decimal(10, 2)])
def test_weights_of_any_numeric_type(dtype: pl.DataType) -> None:
    """The sum of the weights is far beyond what an Int8 holds."""
    frame = pl.DataFrame({"y": [1, 0] * 100, "s": range(200)}).with_columns(
        w=pl.lit(100).cast(dtype)
    )
    numbers = summary_of(frame, "y", "s", weight="w")
    theirs = sklearn_metrics.roc_auc_score(frame["y"], frame["s"])
    assert numbers["w_pos"].item() == 10_000.0
    assert numbers["auc"].item() == pytest.approx(theirs, abs=1e-12)
    auc = frame.select(wroc.roc_auc("y", "s", weight="w")).item()
    assert auc == pytest.approx(theirs, abs=1e-12)
