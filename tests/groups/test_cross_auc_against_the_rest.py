"""Each group against the rest: against scikit-learn on the rows, and their summary."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score
from sweeps import sweep

import polars_wroc as wroc

SAMPLES = ("subgroup_auc", "bpsn_auc", "bnsp_auc")
COLUMNS = [f"{name}{end}" for name in SAMPLES for end in ("", "_low", "_high")]


def against_rest(frame: Any, score: Any = "s", **options: Any) -> Any:
    return wroc.cross_auc(frame, "y", score, against="rest", **{"weight": "w", "by": "g"} | options)


def samples_of(frame: pl.DataFrame, group: pl.Expr) -> dict[str, pl.DataFrame]:
    """The rows of each AUC: within the group, and two that cross its border."""
    positive = pl.col("y").cast(pl.Boolean)
    return {
        "subgroup_auc": frame.filter(group),
        "bpsn_auc": frame.filter((positive & ~group) | (~positive & group)),
        "bnsp_auc": frame.filter((positive & group) | (~positive & ~group)),
    }


def learned(rows: pl.DataFrame) -> float | None:
    """AUC by scikit-learn, which leaves out rows without weight."""
    rows = rows.drop_nulls(["s", "y", "w"]).filter(pl.col("w") > 0)
    if rows["y"].n_unique() < 2:
        return None
    return float(roc_auc_score(rows["y"], rows["s"], sample_weight=rows["w"]))


FRAMES = st.lists(
    st.tuples(st.sampled_from("abc"), st.booleans(), st.integers(0, 6), st.integers(1, 5)),
    max_size=40,
).map(lambda rows: pl.DataFrame(rows, ["g", "y", "s", "w"], orient="row"))


@given(FRAMES)
def test_areas_are_those_of_the_rows(frame: pl.DataFrame) -> None:
    if frame.is_empty():
        return
    for row in against_rest(frame).rows(named=True):
        for name, rows in samples_of(frame, pl.col("g") == row["g"]).items():
            assert row[name] == pytest.approx(learned(rows), abs=1e-12)


def test_columns(people: pl.DataFrame) -> None:
    table = against_rest(people.lazy()).collect()
    assert table.schema == {"g": pl.String, **dict.fromkeys(COLUMNS, pl.Float64)}
    assert table["g"].to_list() == ["a", "b", "c", "d"]
    empty = against_rest(people.clear())
    assert empty.is_empty()
    assert empty.schema == table.schema


METHODS = ["score", "delong", "logit"]


@pytest.mark.parametrize("method", sweep(METHODS))
def test_intervals_are_those_of_the_summary(people: pl.DataFrame, method: Any) -> None:
    options: dict[str, Any] = {"weight": "w", "method": method, "level": 0.9}
    for row in against_rest(people, **options).rows(named=True):
        for name, rows in samples_of(people, pl.col("g") == row["g"]).items():
            summary = wroc.summary(rows, "y", "s", **options)
            limits = row[f"{name}_low"], row[f"{name}_high"]
            assert limits == pytest.approx(summary.select("auc_low", "auc_high").row(0))


def test_seven_rows_have_the_worked_aucs_against_the_rest(seven: pl.DataFrame) -> None:
    table = against_rest(seven.with_columns(g=pl.Series(list("abaabab"))))
    assert table["subgroup_auc"].to_list() == pytest.approx([0.875, 1 / 3])
    assert table["bnsp_auc"].to_list() == pytest.approx([2 / 3, 0.5])
    assert table["bpsn_auc"].to_list() == pytest.approx([0.5, 2 / 3])


def test_of_two_groups_they_are_the_pairs(people: pl.DataFrame) -> None:
    two = people.filter(pl.col("g").is_in(["a", "b"]))
    pairs = wroc.cross_auc(two, "y", "s", weight="w", by="g")
    rest = against_rest(two)
    ends = ("", "_low", "_high")
    crossed = [pairs.row(1, named=True)[f"xauc{end}"] for end in ends]
    assert rest.select(f"bnsp_auc{end}" for end in ends).row(0) == pytest.approx(crossed)
    assert rest.select(f"bpsn_auc{end}" for end in ends).row(1) == pytest.approx(crossed)


def test_digits_of_light_groups_do_not_vanish_beside_a_heavy_one() -> None:
    light = pl.DataFrame({"y": [1, 0, 1, 0], "s": [4.0, 3.0, 2.0, 1.0], "g": [*"aabb"], "w": 1.0})
    heavy = pl.DataFrame({"y": [1, 0], "s": [2.5, 3.5], "g": ["c", "c"], "w": [1e20, 1e20]})
    table = against_rest(pl.concat([light, heavy]))
    # Against the rest of the heavy group there are only light rows: (4 and 2) above 3.5.
    assert table.filter(g="c")["bpsn_auc"].item() == 0.5
    assert table.filter(g="c")["bnsp_auc"].item() == 0.5


def test_undefined_where_a_class_is_missing(people: pl.DataFrame) -> None:
    frame = people.filter((pl.col("g") != "c") | pl.col("y"))
    row = against_rest(frame).row(2, named=True)
    assert [row[name] for name in SAMPLES[:2]] == [None] * 2
    expected = learned(samples_of(frame, pl.col("g") == "c")["bnsp_auc"])
    assert row["bnsp_auc"] == pytest.approx(expected)
    alone = against_rest(people.filter(g="a")).row(0, named=True)
    assert alone["subgroup_auc"] == pytest.approx(learned(people.filter(g="a")))
    assert [alone[name] for name in SAMPLES[1:]] == [None] * 2


def test_null_and_several_columns_and_rows_that_miss_something(people: pl.DataFrame) -> None:
    place = pl.int_range(pl.len())
    frame = people.with_columns(
        h=pl.when(place % 3 > 0).then(place % 3),
        s=pl.when(place % 7 > 0).then("s"),
        w=pl.when(place % 11 > 0).then("w").otherwise(0.0),
    )
    table = against_rest(frame, by=["g", "h"])
    assert table.select("g", "h").rows() == [(g, h) for g in "abcd" for h in (None, 1, 2)]
    for row in table.rows(named=True):
        group = (pl.col("g") == row["g"]) & pl.col("h").eq_missing(row["h"])
        for name, rows in samples_of(frame, group).items():
            assert row[name] == pytest.approx(learned(rows))
