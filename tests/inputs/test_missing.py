"""Missing rows, missing classes and unusual values: one test per rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_wroc as wroc

NAN, INFINITY = float("nan"), float("inf")

METRICS = ["roc_auc", "gini", "ks", "average_precision"]
SUMMARY_METRICS = ["auc", "average_precision", "ks"]
TABLES: list[Callable[..., Any]] = [
    wroc.summary,
    wroc.roc_curve,
    wroc.threshold_metrics,
]

COMPLETE: dict[str, list[Any]] = {
    "y": [1, 0, 1, 0],
    "s": [4.0, 3.0, 2.0, 1.0],
    "w": [1.0, 2.0, 3.0, 4.0],
}


def _metrics() -> list[pl.Expr]:
    return [getattr(wroc, name)("y", "s", weight="w") for name in METRICS]


def _with_row(**values: object) -> pl.DataFrame:
    """Put one more row in the middle of the complete ones; each metric would notice it."""
    row: dict[str, object] = {"y": 0, "s": 3.5, "w": 5.0} | values
    middle = {name: [*column[:2], row[name], *column[2:]] for name, column in COMPLETE.items()}
    return pl.DataFrame(middle, schema={"y": pl.Int64, "s": pl.Float64, "w": pl.Float64})


MISSING = [{"y": None}, {"s": None}, {"s": NAN}, {"w": None}, {"y": None, "s": NAN, "w": None}]
MISSING_IDS = ["null label", "null score", "NaN score", "null weight", "all three"]


@pytest.mark.parametrize("missing", MISSING, ids=MISSING_IDS)
def test_missing_row_is_left_out_and_counted(missing: dict[str, object]) -> None:
    complete = wroc.summary(pl.DataFrame(COMPLETE), "y", "s", weight="w")
    plan = wroc.summary(_with_row(**missing).lazy(), "y", "s", weight="w")
    expected = complete.with_columns(n_missing=pl.lit(1, pl.Int64))
    assert_frame_equal(plan.collect(), expected)


@pytest.mark.parametrize("missing", MISSING, ids=MISSING_IDS)
def test_missing_row_is_left_out_of_expressions(missing: dict[str, object]) -> None:
    complete, rows = pl.DataFrame(COMPLETE), _with_row(**missing)
    values = [*_metrics(), wroc.confusion_matrix("y", "s", threshold=3, weight="w", metrics="all")]
    assert_frame_equal(rows.lazy().select(values).collect(), complete.select(values))


@pytest.mark.parametrize("table", TABLES[1:])
@pytest.mark.parametrize("missing", MISSING, ids=MISSING_IDS)
def test_missing_row_is_left_out_of_tables(
    missing: dict[str, object], table: Callable[..., pl.DataFrame]
) -> None:
    expected = table(pl.DataFrame(COMPLETE), "y", "s", weight="w")
    assert_frame_equal(table(_with_row(**missing), "y", "s", weight="w"), expected)


def test_null_label_is_missing_with_a_positive_label() -> None:
    rows = pl.DataFrame({"y": ["yes", "no", None, "yes"], "s": [4, 3, 2, 1]})
    numbers = wroc.summary(rows, "y", "s", pos_label="yes").row(0, named=True)
    assert (numbers["n_pos"], numbers["n_neg"], numbers["n_missing"]) == (2, 1, 1)
    assert numbers["auc"] == 0.5


def test_bad_row_of_weight_zero_is_not_counted_as_missing() -> None:
    numbers = wroc.summary(_with_row(y=None, w=0.0), "y", "s", weight="w")
    assert numbers["n_missing"].item() == 0


@pytest.mark.parametrize("label", [1, 0])
def test_group_of_one_class_has_null_metrics(label: int) -> None:
    rows = pl.LazyFrame({"y": [label] * 3, "s": [1.0, 2.0, 2.0]})
    numbers = wroc.summary(rows, "y", "s", diagnostics=True).collect()
    assert numbers.select(SUMMARY_METRICS).row(0) == (None,) * 3
    assert numbers.select("n_pos", "n_neg").row(0) == (3 * label, 3 * (1 - label))
    assert numbers.select("w_pos", "w_neg").row(0) == (3.0 * label, 3.0 * (1 - label))
    values = [getattr(wroc, name)("y", "s") for name in METRICS]
    assert rows.select(values).collect().row(0) == (None,) * 4


def test_group_of_one_class_has_a_curve_with_null_rates() -> None:
    rows = pl.DataFrame({"y": [1, 1], "s": [1.0, 2.0]})
    curve = wroc.roc_curve(rows, "y", "s", max_points=10)
    assert curve["fpr"].to_list() == [None] * 3
    assert curve["tpr"].to_list() == [0.0, 0.5, 1.0]
    assert curve["auc_change"].to_list() == [None] * 3


def test_curve_of_one_class_is_cut_where_that_class_is() -> None:
    # Three parts of the length from 0 to 2, of which this curve has a half.
    rows = pl.DataFrame({"y": [0] * 12, "s": range(12)})
    curve = wroc.roc_curve(rows, "y", "s", max_points=8)
    assert (curve["fpr"] * 12).round(9).to_list() == [0, 1, 8, 9, 12]


def test_group_of_one_class_has_null_metrics_at_a_threshold() -> None:
    rows = pl.DataFrame({"y": [1, 1], "s": [1.0, 2.0]})
    at_threshold = wroc.threshold_metrics(
        rows, "y", "s", threshold=2, metrics="all", level=None
    ).row(0, named=True)
    undefined = [name for name, value in at_threshold.items() if value is None]
    of_negatives = ["fpr", "tnr", "balanced_accuracy", "mcc", "youden", "lr_pos", "lr_neg"]
    assert undefined == [*of_negatives, "net_benefit"]
    assert at_threshold["tpr"] == 0.5
    assert at_threshold["npv"] == 0.0


def test_empty_frame_has_one_row_and_an_origin() -> None:
    rows = pl.LazyFrame(schema={"y": pl.Int64, "s": pl.Float64})
    numbers = wroc.summary(rows, "y", "s").collect()
    assert numbers.row(0) == (*[None] * 6, *[0] * 4)
    curve = wroc.roc_curve(rows, "y", "s").collect()
    assert curve.rows() == [(INFINITY, None, None, 0.0, 0.0, 0.0, 0.0)]
    values = [getattr(wroc, name)("y", "s") for name in METRICS]
    assert rows.select(values).collect().row(0) == (None,) * 4


@pytest.mark.parametrize("table", TABLES)
def test_empty_frame_has_no_groups_but_all_columns(table: Callable[..., pl.DataFrame]) -> None:
    rows = pl.DataFrame({"y": [1, 0], "s": [2.0, 1.0], "g": ["a", "a"]})
    empty = table(rows.clear(), "y", "s", by="g")
    assert empty.height == 0
    assert empty.schema == table(rows, "y", "s", by="g").schema


def test_group_of_one_missing_row_is_kept() -> None:
    rows = pl.DataFrame({"y": [1, 0, None], "s": [2.0, 1.0, 3.0], "g": ["a", "a", "b"]})
    counts = wroc.summary(rows, "y", "s", by="g").select("g", "n_pos", "n_neg", "n_missing")
    curve = wroc.roc_curve(rows, "y", "s", by="g")
    assert counts.rows() == [("a", 1, 1, 0), ("b", 0, 0, 1)]
    assert curve["g"].to_list() == ["a", "a", "a", "b"]


def test_group_of_only_missing_rows_is_kept() -> None:
    rows = pl.LazyFrame(
        {"y": [1, 0, None, 1], "s": [2.0, 1.0, 3.0, NAN], "g": ["a", "a", "b", "b"]}
    )
    numbers = wroc.summary(rows, "y", "s", by="g").collect()
    assert numbers.row(1) == ("b", *[None] * 6, 0, 0, 0, 2)
    curve = wroc.roc_curve(rows, "y", "s", by="g").collect()
    only = curve.filter(pl.col("g") == "b").rows()
    assert only == [("b", INFINITY, None, None, 0.0, 0.0, 0.0, 0.0)]
    aggregated = rows.group_by("g").agg(wroc.roc_auc("y", "s")).collect()
    assert dict(aggregated.rows()) == {"a": 1.0, "b": None}


@pytest.mark.parametrize("options", [{}, {"drop_collinear": True}, {"max_points": 3}])
def test_neighbouring_groups_of_only_missing_rows_keep_their_origins(
    options: dict[str, Any],
) -> None:
    rows = pl.DataFrame({"y": [None, None, None, 1, 0], "s": [1, 2, 3, 2, 1], "g": list("abcdd")})
    curve = wroc.roc_curve(rows, "y", "s", by="g", **options)
    assert curve["g"].to_list() == list("abcddd")
    assert curve["threshold"].to_list() == [INFINITY] * 4 + [2.0, 1.0]


@pytest.mark.parametrize("table", TABLES)
def test_group_of_only_weight_zero_is_absent(table: Callable[..., pl.DataFrame]) -> None:
    rows = pl.DataFrame(COMPLETE).with_columns(g=pl.lit("a"))
    weightless = rows.with_columns(w=0.0, g=pl.lit("b"))
    both = pl.concat([rows, weightless])
    assert_frame_equal(
        table(both, "y", "s", weight="w", by="g"), table(rows, "y", "s", weight="w", by="g")
    )


@pytest.mark.parametrize("table", TABLES)
def test_null_key_is_a_group_of_its_own(table: Callable[..., pl.LazyFrame]) -> None:
    rows = pl.LazyFrame(COMPLETE).with_columns(g=pl.Series(["a", None, "a", None]))
    grouped = table(rows, "y", "s", weight="w", by="g").collect()
    assert grouped["g"].unique(maintain_order=True).to_list() == [None, "a"]
    alone = table(rows.filter(pl.col("g").is_null()), "y", "s", weight="w").collect()
    assert_frame_equal(grouped.filter(pl.col("g").is_null()).drop("g"), alone)


def test_infinite_scores_are_the_highest_and_the_lowest_rank() -> None:
    scores = [INFINITY, INFINITY, 5.0, 5.0, -INFINITY, -INFINITY]
    rows = pl.DataFrame({"y": [1, 0, 1, 0, 1, 0], "s": scores, "w": [3.0, 1.0, 1.0, 1.0, 1.0, 3.0]})
    ranks = rows.with_columns(pl.Series("s", [3, 3, 2, 2, 1, 1]))
    numbers = wroc.summary(rows, "y", "s", weight="w")
    assert_frame_equal(numbers, wroc.summary(ranks, "y", "s", weight="w"))
    assert numbers["n_missing"].item() == 0
    assert numbers["auc"].item() == pytest.approx((3 * 4.5 + 1 * 3.5 + 1 * 1.5) / 25, abs=1e-12)


def test_curve_has_an_origin_beside_an_infinite_score() -> None:
    rows = pl.DataFrame({"y": [1, 0], "s": [INFINITY, -INFINITY]})
    curve = wroc.roc_curve(rows, "y", "s")
    assert curve.select("threshold", "tp", "fp").rows() == [
        (INFINITY, 0.0, 0.0),
        (INFINITY, 1.0, 0.0),
        (-INFINITY, 1.0, 1.0),
    ]


def test_minus_zero_ties_with_zero() -> None:
    rows = pl.LazyFrame({"y": [1, 0, 1, 0], "s": [0.0, -0.0, -0.0, 0.0]})
    assert rows.select(wroc.roc_auc("y", "s")).collect().item() == 0.5
    curve = wroc.roc_curve(rows, "y", "s").collect()
    assert curve.select("threshold", "tp", "fp").rows() == [(INFINITY, 0.0, 0.0), (0.0, 2.0, 2.0)]


@pytest.mark.parametrize("dtype", [pl.Int64, pl.UInt64, pl.Int128])
def test_large_integer_scores_are_not_rounded_into_ties(dtype: type[pl.DataType]) -> None:
    """Float64 cannot tell these scores apart, so that tables refuse them."""
    scores = [2**53 + 1, 2**53, 2**53 + 3, 2**53 + 2]
    rows = pl.DataFrame({"y": [1, 0, 1, 0]}).with_columns(pl.Series("s", scores, dtype)).lazy()
    assert rows.select(wroc.roc_auc("y", "s")).collect().item() == 0.75
    with pytest.raises(ValueError, match=r"`score` must hold whole numbers up to 2\*\*53"):
        wroc.summary(rows, "y", "s").collect()


def test_several_keys_make_sorted_combinations() -> None:
    rows = pl.LazyFrame(
        {
            "g": ["b", "b", "a", "a", "b", "b"],
            "h": [1, 1, 2, 2, None, None],
            "y": [1, 0, 1, 0, 1, 0],
            "s": [2.0, 1.0, 1.0, 2.0, 1.0, 1.0],
        }
    )
    numbers = wroc.summary(rows, "y", "s", by=["g", pl.col("h").alias("key")])
    table = numbers.collect().select("g", "key", "auc")
    assert table.rows() == [("a", 2, 0.0), ("b", None, 0.5), ("b", 1, 1.0)]


def test_several_scores_make_a_model_column_in_the_order_given() -> None:
    rows = pl.LazyFrame(
        {"y": [1, 0, 1, 0], "z": [4.0, 3.0, 2.0, 1.0], "a": [4, 1, 3, 2], "m": [1, 1, 1, None]}
    )
    scores: list[str | pl.Expr] = ["z", "a", pl.col("m"), (-pl.col("a")).alias("b")]
    numbers = wroc.summary(rows, "y", scores).collect()
    assert numbers.schema["model"] == pl.String
    assert numbers.select("model", "auc", "n_missing").rows() == [
        ("z", 0.75, 0),
        ("a", 1.0, 0),
        ("m", 0.5, 1),
        ("b", 0.0, 0),
    ]


def test_one_score_in_a_list_has_a_model_column_too() -> None:
    numbers = wroc.summary(pl.DataFrame(COMPLETE), "y", ["s"], weight="w")
    alone = wroc.summary(pl.DataFrame(COMPLETE), "y", "s", weight="w")
    assert numbers["model"].to_list() == ["s"]
    assert_frame_equal(numbers.drop("model"), alone)


def test_selector_of_several_scores_gives_a_row_each() -> None:
    rows = pl.DataFrame({"y": [True, False], "a": [0.9, 0.1], "b": [0.1, 0.9]})
    numbers = wroc.summary(rows, "y", pl.col("a", "b"))
    assert numbers.select("model", "auc").rows() == [("a", 1.0), ("b", 0.0)]


def test_label_of_a_row_of_weight_zero_does_not_matter() -> None:
    rows = pl.DataFrame({"y": [1, 0, 2], "s": [0.9, 0.1, 0.5], "w": [1.0, 1.0, 0.0]})
    assert rows.select(wroc.roc_auc("y", "s", weight="w")).item() == 1.0
    assert wroc.summary(rows, "y", "s", weight="w")["n"].item() == 2


def test_negative_zero_is_the_group_zero() -> None:
    rows = pl.DataFrame({"y": [1, 0, 1, 0], "s": [4, 3, 2, 1], "z": [0.0, -0.0, -0.0, 1.0]})
    assert wroc.roc_curve(rows, "y", "s", by="z")["z"].unique().to_list() == [0.0, 1.0]
    segments = wroc.audit(rows, "y", "s", attributes="z").segments
    assert segments.select("segment", "n").rows() == [("overall", 4), ("0.0", 3), ("1.0", 1)]


def test_weights_beyond_what_a_number_holds_give_null() -> None:
    rows = pl.DataFrame({"y": [1, 1, 0, 0], "s": [4, 2, 3, 1], "w": [1.5e308] * 4})
    assert wroc.summary(rows, "y", "s", weight="w")["auc"].item() is None
    assert rows.select(wroc.roc_auc("y", "s", weight="w")).item() is None


@pytest.mark.parametrize("name", ["*", "^.*$"])
def test_a_string_is_a_name_and_no_pattern(name: str) -> None:
    rows = pl.DataFrame({"y": [1, 0], "s": [2, 1]})
    with pytest.raises(ValueError, match="`by` must be the name of a column; found the pattern"):
        wroc.summary(rows, "y", "s", by=name)
