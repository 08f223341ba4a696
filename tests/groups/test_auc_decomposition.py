"""Everybody's AUC split within and between groups: against counting the pairs."""

from __future__ import annotations

import io
from collections.abc import Sequence
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from sklearn.metrics import roc_auc_score

import polars_wroc as wroc

Engine: TypeAlias = Any
Row: TypeAlias = tuple[str | None, bool, float, float]
Parts: TypeAlias = dict[str, float | None]

COLUMNS = ["auc", "auc_within", "auc_between", "within_share"]
SCHEMA: dict[str, Any] = {"g": pl.String, "y": pl.Boolean, "s": pl.Float64, "w": pl.Float64}
# One row in each of four groups, or in fewer.
LABELS, SCORES = (True, False, True, False), (4.0, 2.0, 1.0, 3.0)
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c", None]),
        st.booleans(),
        st.integers(0, 5).map(float),
        st.sampled_from([0.0, 0.5, 1.0, 1.7, 1e-3, 40.0]),
    ),
    max_size=40,
)


def frame_of(rows: Sequence[Row]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def by_pairs(frame: pl.DataFrame) -> Parts:
    """Count every pair of a positive and a negative: all, within a group, between two."""
    rows: list[Row] = frame.select(list(SCHEMA)).drop_nulls(["y", "s", "w"]).rows()
    won, pairs = {True: 0.0, False: 0.0}, {True: 0.0, False: 0.0}
    for (g, y, s, w), (g2, y2, s2, w2) in product(rows, rows):
        if y and not y2:
            won[g == g2] += w * w2 * ((s > s2) + (s == s2) / 2)
            pairs[g == g2] += w * w2
    both = sum(pairs.values())
    return {
        "auc": sum(won.values()) / both if both else None,
        "auc_within": won[True] / pairs[True] if pairs[True] else None,
        "auc_between": won[False] / pairs[False] if pairs[False] else None,
        "within_share": pairs[True] / both if both else None,
    }


def parts_of(frame: pl.DataFrame, **options: Any) -> Parts:
    return wroc.auc_decomposition(frame, "y", "s", weight="w", by="g", **options).row(0, named=True)


@given(ROWS)
def test_pairs_are_counted(rows: list[Row]) -> None:
    frame = frame_of(rows)
    found = parts_of(frame)
    assert list(found) == COLUMNS
    assert found == pytest.approx(by_pairs(frame), abs=1e-12)
    auc, within, between, share = found.values()
    if auc is not None and share is not None:
        parts = share * (within or 0.0) + (1 - share) * (between or 0.0)
        assert parts == pytest.approx(auc, abs=1e-12)


def test_worked_example(seven: pl.DataFrame) -> None:
    found = parts_of(seven.with_columns(g=pl.Series(list("abaabab"))))
    assert found == pytest.approx(
        {"auc": 0.575, "auc_within": 0.55, "auc_between": 0.6, "within_share": 0.5}
    )


def test_it_is_the_table_of_all_pairs_of_groups_added_up(
    people: pl.DataFrame, engine: Engine
) -> None:
    plan = wroc.auc_decomposition(people.lazy(), "y", "s", weight="w", by="g")
    found = plan.collect(engine=engine)
    assert found.schema == dict.fromkeys(COLUMNS, pl.Float64)
    table = wroc.cross_auc(people, "y", "s", weight="w", by="g")
    won = pl.col("xauc") * pl.col("pair_weight")
    within = pl.col("positive_g") == pl.col("negative_g")
    weight = pl.col("pair_weight")
    expected = table.select(
        auc=won.sum(),
        auc_within=won.filter(within).sum() / weight.filter(within).sum(),
        auc_between=won.filter(~within).sum() / weight.filter(~within).sum(),
        within_share=weight.filter(within).sum(),
    )
    assert_frame_equal(found, expected, abs_tol=1e-12)
    learned = roc_auc_score(people["y"], people["s"], sample_weight=people["w"])
    assert found["auc"].item() == pytest.approx(learned, abs=1e-12)


def test_a_score_that_only_tells_the_groups_apart() -> None:
    random = np.random.default_rng(1951)
    rows = 4000
    g = random.integers(0, 2, rows)
    y = random.random(rows) < np.where(g == 1, 0.8, 0.2)
    # Within a group the score falls with the label; between groups it follows the prevalence.
    s = 10 * g - y + random.normal(size=rows)
    found = parts_of(pl.DataFrame({"g": g, "y": y, "s": s, "w": np.ones(rows)}))
    assert found["auc"] == pytest.approx(roc_auc_score(y, s), abs=1e-12)
    assert found["auc"] > 0.7  # type: ignore[operator]
    assert found["auc_within"] < 0.3  # type: ignore[operator]
    assert found["auc_between"] > 0.9  # type: ignore[operator]


@pytest.mark.parametrize(
    ("groups", "undefined"),
    [("aaaa", ["auc_between"]), ("abab", ["auc_within"]), ("aabb", []), ("abcc", [])],
)
def test_parts_without_pairs_are_null(groups: str, undefined: list[str]) -> None:
    frame = frame_of([(g, y, s, 1.0) for g, y, s in zip(groups, LABELS, SCORES, strict=True)])
    found = parts_of(frame)
    assert [name for name, value in found.items() if value is None] == undefined
    assert found == pytest.approx(by_pairs(frame))


@pytest.mark.parametrize("rows", [0, 1])
def test_one_class_has_nothing(rows: int) -> None:
    frame = frame_of([("a", True, 1.0, 1.0), ("b", True, 2.0, 1.0)][: 2 * rows])
    assert parts_of(frame) == dict.fromkeys(COLUMNS)


def test_each_row_a_group_leaves_only_pairs_between_groups(people: pl.DataFrame) -> None:
    own = people.with_columns(g=pl.int_range(pl.len()))
    found = parts_of(own)
    assert found["within_share"] == 0
    assert found["auc_within"] is None
    assert found["auc_between"] == pytest.approx(found["auc"], abs=1e-12)


def test_nearly_all_pairs_within_one_group(people: pl.DataFrame) -> None:
    huge = people.with_columns(
        w=pl.when(pl.col("g") == "a").then(pl.col("w") * 1e13).otherwise("w")
    )
    found = parts_of(huge)
    auc, within, between, share = (found[name] for name in COLUMNS)
    assert 0 <= between <= 1  # type: ignore[operator]
    assert share * within + (1 - share) * between == pytest.approx(auc, abs=1e-12)  # type: ignore[operator]


def test_models_and_groups_of_several_columns(people: pl.DataFrame, engine: Engine) -> None:
    frame = people.with_columns(h=pl.int_range(pl.len()) % 3, r=(pl.col("s") + pl.col("w")).round())
    options: dict[str, Any] = {"weight": "w", "by": ["g", "h"]}
    plan = wroc.auc_decomposition(frame.lazy(), "y", ["s", "r"], **options)
    table = plan.collect(engine=engine)
    assert table.columns == ["model", *COLUMNS]
    assert table["model"].to_list() == ["s", "r"]
    one = frame.with_columns(g=pl.concat_str("g", "h"))
    for model, *values in table.rows():
        expected = by_pairs(one.with_columns(s=model))
        assert values == pytest.approx(list(expected.values()), abs=1e-12)


def test_rows_that_miss_something_count_nowhere(people: pl.DataFrame) -> None:
    some = pl.int_range(pl.len()) % 5
    frame = people.with_columns(
        s=pl.when(some == 1).then(float("nan")).when(some != 0).then("s"),
        y=pl.when(some != 2).then("y"),
        w=pl.when(some != 3).then("w"),
    )
    left = people.filter(some == 4)
    assert parts_of(frame) == pytest.approx(by_pairs(left), abs=1e-12)


@pytest.mark.plans
def test_lazy_frame_gives_a_plan_that_serialises(people: pl.DataFrame, engine: Engine) -> None:
    plan = people.lazy().wroc.auc_decomposition("y", "s", weight="w", by="g")  # type: ignore[attr-defined]
    assert "python" not in plan.explain(optimized=False).lower()
    shipped = pl.LazyFrame.deserialize(io.BytesIO(plan.serialize()))
    table = wroc.auc_decomposition(people, "y", "s", weight="w", by="g")
    assert_frame_equal(shipped.collect(engine=engine), table, abs_tol=1e-12)


def test_errors(people: pl.DataFrame) -> None:
    with pytest.raises(TypeError, match="`by` must name the groups to compare"):
        wroc.auc_decomposition(people, "y", "s", by=None)  # type: ignore[arg-type]
