"""Ranking across groups: against every pair of a positive of one and a negative of another."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import polars as pl
import pytest
from plain_roc import weight_as
from polars.testing import assert_frame_equal
from sklearn.metrics import roc_auc_score
from sweeps import sweep

import polars_wroc as wroc

summary_of = partial(wroc.summary, diagnostics=True)

Place: TypeAlias = tuple[Any, ...]

GAP = ["xauc_gap", "xauc_gap_low", "xauc_gap_high"]
COLUMNS = [
    "xauc",
    "xauc_low",
    "xauc_high",
    "xauc_gap",
    "xauc_gap_low",
    "xauc_gap_high",
    "xauc_se",
    "pair_weight",
    "ci_method",
]
KEYS = ["positive_g", "negative_g"]


def by_pairs(
    frame: pl.DataFrame, by: Sequence[str] = ("g",)
) -> dict[Place, tuple[float | None, float]]:
    """Ranked share and share of all pairs, for each two groups, by counting the pairs."""
    rows = frame.drop_nulls(["s", "y", "w"]).filter(pl.col("w") > 0)
    names = rows.select(by).unique().rows()
    won = {one + other: 0.0 for one, other in product(names, names)}
    pairs = dict.fromkeys(won, 0.0)
    positives, negatives = (rows.filter(y=side).rows(named=True) for side in (True, False))
    for one, other in product(positives, negatives):
        place = tuple(row[key] for row in (one, other) for key in by)
        weight = one["w"] * other["w"]
        won[place] += weight * ((one["s"] > other["s"]) + (one["s"] == other["s"]) / 2)
        pairs[place] += weight
    whole = sum(pairs.values())
    return {
        place: (won[place] / pairs[place] if pairs[place] else None, pairs[place] / whole)
        for place in won
    }


def assert_counts(table: pl.DataFrame, frame: pl.DataFrame) -> None:
    expected = by_pairs(frame)
    found = {row[:2]: row[2:] for row in table.select(*KEYS, "xauc", "pair_weight").rows()}
    assert found.keys() == expected.keys()
    for place, values in expected.items():
        numbers = (np.array(each, dtype=np.float64) for each in (found[place], values))
        assert next(numbers) == pytest.approx(next(numbers), rel=1e-10, nan_ok=True)


def exchanged(table: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """The table with the roles of the two groups exchanged, in the order of the first."""
    names = dict(zip(keys, [*keys[len(keys) // 2 :], *keys[: len(keys) // 2]], strict=True))
    return table.rename(names).select(table.columns).sort(keys)


@pytest.fixture
def few(people: pl.DataFrame) -> pl.DataFrame:
    """Few enough rows to count all pairs; some have no weight."""
    rows = pl.int_range(pl.len())
    return people.head(150).with_columns(w=pl.when(rows % 11 > 0).then("w").otherwise(0.0))


def test_pairs_are_counted(few: pl.DataFrame) -> None:
    table = wroc.cross_auc(few.lazy(), "y", "s", weight="w", by="g").collect()
    assert table.columns == [*KEYS, *COLUMNS]
    assert table.select(KEYS).rows() == list(product("abcd", "abcd"))
    types = {"ci_method": pl.String()}
    assert all(table.schema[name] == types.get(name, pl.Float64()) for name in COLUMNS)
    assert_counts(table, few)


def test_each_pair_of_groups_through_scikit_learn(people: pl.DataFrame) -> None:
    table = wroc.cross_auc(people, "y", "s", weight="w", by="g")
    for row in table.rows(named=True):
        one, other = (pl.col("g") == row[key] for key in KEYS)
        rows = people.filter((pl.col("y") & one) | (~pl.col("y") & other))
        expected = roc_auc_score(rows["y"], rows["s"], sample_weight=rows["w"])
        assert row["xauc"] == pytest.approx(expected, rel=1e-10)


def test_seven_rows_have_the_worked_cross_aucs(seven: pl.DataFrame) -> None:
    table = wroc.cross_auc(
        seven.with_columns(g=pl.Series(list("abaabab"))), "y", "s", weight="w", by="g"
    )
    assert table["xauc"].to_list() == pytest.approx([0.875, 2 / 3, 0.5, 1 / 3])
    assert (table["xauc"] * table["pair_weight"] * 20).to_list() == pytest.approx([3.5, 4, 2, 2])
    assert table["xauc_gap"].to_list() == [
        None,
        pytest.approx(1 / 6),
        pytest.approx(-1 / 6),
        None,
    ]
    within = table.gather([0, 3])
    assert within["pair_weight"].sum() == pytest.approx(0.5)
    assert (within["xauc"] * within["pair_weight"]).sum() == pytest.approx(0.5 * 0.55)


def test_the_mean_over_the_pairs_is_the_auc_of_everybody(
    people: pl.DataFrame, pair_auc: Callable[[pl.DataFrame], float]
) -> None:
    table = wroc.cross_auc(people, "y", "s", weight="w", by="g")
    mean = (table["xauc"] * table["pair_weight"]).sum()
    assert table["pair_weight"].sum() == pytest.approx(1, abs=1e-12)
    assert mean == pytest.approx(pair_auc(people), abs=1e-12)
    assert mean == pytest.approx(
        roc_auc_score(people["y"], people["s"], sample_weight=people["w"]), abs=1e-12
    )


@pytest.mark.parametrize("method", ["logit"])
def test_within_a_group_it_is_the_summary(people: pl.DataFrame, method: Any) -> None:
    options: dict[str, Any] = {"weight": "w", "by": "g", "method": method, "level": 0.9}
    table = wroc.cross_auc(people, "y", "s", **options)
    within = table.filter(pl.col("positive_g") == pl.col("negative_g"))
    summary = summary_of(people, "y", "s", **options)
    ends = ("", "_se", "_low", "_high")
    names = {f"xauc{end}": f"auc{end}" for end in ends}
    assert_frame_equal(
        within.select(pl.col("positive_g").alias("g"), *names, "ci_method").rename(names),
        summary.select("g", *names.values(), "ci_method"),
    )


@pytest.mark.parametrize("weight_type", sweep(["probability", "frequency"]))
def test_across_groups_it_is_the_summary_of_these_rows(
    people: pl.DataFrame, weight_type: Any
) -> None:
    frame = people.with_columns(pl.col("w").ceil())
    options: dict[str, Any] = {"weight": weight_as("w", weight_type)}
    for row in wroc.cross_auc(frame, "y", "s", by="g", **options).rows(named=True):
        one, other = (pl.col("g") == row[key] for key in KEYS)
        rows = frame.filter((pl.col("y") & one) | (~pl.col("y") & other))
        ends = ["", "_se", "_low", "_high"]
        found = [row[f"xauc{end}"] for end in ends]
        summary = summary_of(rows, "y", "s", **options)
        assert found == pytest.approx(summary.select(f"auc{end}" for end in ends).row(0))


def test_gaps_are_antisymmetric(people: pl.DataFrame) -> None:
    table = wroc.cross_auc(people, "y", "s", weight="w", by="g")
    other = exchanged(table, KEYS)
    apart = table["positive_g"] != table["negative_g"]
    assert table["xauc_gap"].is_not_null().to_list() == apart.to_list()
    found = table.filter(apart)
    back = other.filter(apart)
    assert (found["xauc_gap"] + back["xauc_gap"]).abs().max() == 0
    for one, two in (("low", "high"), ("high", "low")):
        total = found[f"xauc_gap_{one}"] + back[f"xauc_gap_{two}"]
        assert total.abs().max() == pytest.approx(0, abs=1e-15)
    assert table.filter(~apart).select(GAP).null_count().row(0) == (4,) * 3


def test_interval_of_the_gap_by_hand(people: pl.DataFrame) -> None:
    table = wroc.cross_auc(people, "y", "s", weight="w", by="g")
    found = {(row["positive_g"], row["negative_g"]): row for row in table.rows(named=True)}
    for one, other in product("abcd", "abcd"):
        if one == other:
            continue
        (x, low, high), (x2, low2, high2) = (
            [found[place][name] for name in ("xauc", "xauc_low", "xauc_high")]
            for place in ((one, other), (other, one))
        )
        below, above = np.hypot(x - low, high2 - x2), np.hypot(high - x, x2 - low2)
        gap = [found[one, other][name] for name in GAP]
        assert gap == pytest.approx([x - x2, x - x2 - below, x - x2 + above])


def test_groups_of_several_columns(few: pl.DataFrame) -> None:
    frame = few.with_columns(h=pl.int_range(pl.len()) % 2).filter(pl.col("g").is_in(["a", "b"]))
    keys = ["positive_g", "positive_h", "negative_g", "negative_h"]
    table = wroc.cross_auc(frame, "y", "s", weight="w", by=["g", "h"])
    assert table.columns == [*keys, *COLUMNS]
    assert table.select(keys).rows() == sorted(table.select(keys).rows())
    expected = by_pairs(frame, ["g", "h"])
    assert table.height == len(expected) == 16
    for row in table.select(*keys, "xauc", "pair_weight").rows():
        assert row[4:] == pytest.approx(expected[row[:4]], rel=1e-10)
    gaps = table["xauc"] - exchanged(table, keys)["xauc"]
    assert table["xauc_gap"].fill_null(0).to_list() == pytest.approx(gaps.to_list())


def test_a_group_of_one_class_has_half_a_row_and_column(few: pl.DataFrame) -> None:
    frame = few.filter((pl.col("g") != "c") | pl.col("y"))
    table = wroc.cross_auc(frame, "y", "s", weight="w", by="g")
    assert_counts(table, frame)
    assert table.height == 16
    none = table.filter(negative_g="c")
    assert none["pair_weight"].to_list() == [0.0] * 4
    assert none["xauc"].null_count() == none["ci_method"].null_count() == 4
    assert table.filter(positive_g="c")["xauc"].null_count() == 1
    assert table["xauc_gap"].count() == 6
    assert (table["xauc"] * table["pair_weight"]).sum() == pytest.approx(
        roc_auc_score(frame["y"], frame["s"], sample_weight=frame["w"]), abs=1e-12
    )


def test_groups_that_are_not_numbers_stay_apart_from_missing_ones() -> None:
    frame = pl.DataFrame(
        {"g": [math.nan, math.nan, None, None], "y": [1, 0, 1, 0], "s": [4.0, 2.0, 3.0, 1.0]}
    )
    table = wroc.cross_auc(frame, "y", "s", by="g")
    assert table["positive_g"].is_null().to_list() == [True, True, False, False]
    assert table["negative_g"].is_nan().to_list() == [None, True, None, True]
    rest = wroc.cross_auc(frame, "y", "s", by="g", against="rest")
    assert rest["g"].is_nan().to_list() == [None, True]


def test_mean_within_and_between_groups_give_the_overall_auc(people: pl.DataFrame) -> None:
    """The recipe of the guide."""
    pairs = wroc.cross_auc(people, "y", "s", weight="w", by="g")
    within = pl.col("positive_g") == pl.col("negative_g")
    parts = pairs.group_by(within.alias("within")).agg(
        auc=(pl.col("xauc") * pl.col("pair_weight")).sum() / pl.col("pair_weight").sum(),
        share=pl.col("pair_weight").sum(),
    )
    same_group = people.join(people, how="cross").filter(
        pl.col("y") & ~pl.col("y_right"), pl.col("g") == pl.col("g_right")
    )
    ranked = (pl.col("s") > pl.col("s_right")) + (pl.col("s") == pl.col("s_right")) / 2
    weight = pl.col("w") * pl.col("w_right")
    expected = same_group.select((ranked * weight).sum() / weight.sum()).item()
    assert parts.filter("within")["auc"].item() == pytest.approx(expected)
    learned = roc_auc_score(people["y"], people["s"], sample_weight=people["w"])
    assert (parts["auc"] * parts["share"]).sum() == pytest.approx(learned)


def test_there_must_be_groups(people: pl.DataFrame) -> None:
    with pytest.raises(TypeError, match="`by` must name the groups to compare"):
        wroc.cross_auc(people, "y", "s", by=None)  # type: ignore[arg-type]
    # Groups of positives and of negatives are columns of their own.
    named = people.rename({"g": "xauc"})
    assert {"positive_xauc", "negative_xauc"} <= {
        *wroc.cross_auc(named, "y", "s", by="xauc").columns
    }
    with pytest.raises(ValueError, match="`by` must not take the name of a result column"):
        wroc.cross_auc(people.rename({"g": "bpsn_auc"}), "y", "s", by="bpsn_auc", against="rest")
    with pytest.raises(ValueError, match=r"`against` must be .*; found 'others'"):
        wroc.cross_auc(people, "y", "s", by="g", against="others")  # type: ignore[arg-type]
