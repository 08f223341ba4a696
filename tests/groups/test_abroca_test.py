"""The permutation test of ABROCA: against permutations by numpy and all there are."""

from __future__ import annotations

from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from plain_roc import distance
from polars.testing import assert_frame_equal
from scipy.stats import binomtest
from sweeps import sweep
from wide_tables import wide_gaps

import polars_wroc as wroc

Array: TypeAlias = npt.NDArray[Any]

COLUMNS = ["abroca", "abroca_null", "p_value"]


def by_numpy(frame: pl.DataFrame, group: str, permutations: int, seed: int) -> Array:
    """Areas after the groups have been permuted in each class, the first as they are."""
    random = np.random.default_rng(seed)
    y, s, w = (frame[name].to_numpy() for name in ("y", "s", "w"))
    inside = (frame["g"] == group).to_numpy()
    areas = [distance(y, s, w, inside)]
    for _ in range(permutations):
        dealt = inside.copy()
        for side in (True, False):
            dealt[y == side] = random.permutation(inside[y == side])
        areas.append(distance(y, s, w, dealt))
    return np.array(areas)


def measured(frame: pl.DataFrame, **options: Any) -> pl.DataFrame:
    return wroc.abroca_test(frame, "y", "s", weight="w", by="g", **options)


def alike(seed: int, rows: int = 60) -> pl.DataFrame:
    """Two groups that differ by nothing but chance."""
    random = np.random.default_rng(seed)
    y = random.random(rows) < 0.4
    return pl.DataFrame(
        {
            "g": random.choice(["a", "b"], rows, p=[0.4, 0.6]),
            "y": y,
            "s": random.normal(size=rows) + y,
            "w": random.lognormal(size=rows, sigma=0.5),
        }
    )


def test_areas_between_curves_of_scikit_learn(people: pl.DataFrame) -> None:
    plan = wroc.abroca_test(people.lazy(), "y", "s", weight="w", by="g", permutations=3)
    table = plan.collect()
    assert table.schema == {"g": pl.String, **dict.fromkeys(COLUMNS, pl.Float64)}
    for group, area in table.select("g", "abroca").rows():
        y, s, w = (people[name].to_numpy() for name in ("y", "s", "w"))
        inside = (people["g"] == group).to_numpy()
        assert area == pytest.approx(distance(y, s, w, inside), abs=1e-12)


@pytest.mark.parametrize(("group", "permutations"), sweep([("a", 150), ("a", 600), ("c", 600)]))
def test_permutations_are_those_of_numpy(
    people: pl.DataFrame, group: str, permutations: int
) -> None:
    expected = by_numpy(people, group, permutations, seed=5)[1:]
    table = measured(people, permutations=permutations).filter(g=group)
    error = expected.std() * np.sqrt(2 / permutations)
    assert table["abroca_null"].item() == pytest.approx(expected.mean(), abs=4 * error)
    share = np.mean(expected >= table["abroca"].item())
    error = np.sqrt(2 * share * (1 - share) / permutations)
    assert 0.01 < share < 0.99
    assert table["p_value"].item() == pytest.approx(share, abs=4 * error + 1 / permutations)


@pytest.mark.parametrize("seed", sweep(range(4)))
def test_few_rows_against_all_permutations(seed: int) -> None:
    random = np.random.default_rng(seed)
    y = np.repeat([True, False], [5, 4])
    s = random.integers(0, 6, 9).astype(float)
    w = random.choice([1.0, 2.0], 9)
    g = np.array(list("aabbbaabb"))
    areas = []
    for positives in combinations(range(5), 2):
        for negatives in combinations(range(5, 9), 2):
            inside = np.zeros(9, dtype=bool)
            inside[[*positives, *negatives]] = True
            areas.append(distance(y, s, w, inside))
    table = measured(pl.DataFrame({"g": g, "y": y, "s": s, "w": w}), permutations=2000)
    area, mean, p_value = table.select(COLUMNS).row(0)
    # Of the 60 permutations many have the same area: ties, to within rounding, are as far.
    share = float(np.mean(np.array(areas) >= area - 1e-9))
    assert mean == pytest.approx(np.mean(areas), abs=4 * np.std(areas) / np.sqrt(2000))
    assert binomtest(round(p_value * 2001) - 1, 2000, share).pvalue > 1e-4
    assert table.row(0)[1:] == pytest.approx(table.row(1)[1:], abs=1e-12)


@pytest.mark.slow(reason="simulates many samples")
@pytest.mark.parametrize("tables", sweep([40, 250]))
def test_p_values_are_uniform_where_groups_are_alike(tables: int) -> None:
    p_values = np.array(
        [measured(alike(seed), permutations=39, seed=seed)["p_value"][0] for seed in range(tables)]
    )
    assert np.allclose(p_values * 40, np.round(p_values * 40))
    assert p_values.min() >= 1 / 40
    for level in (0.05, 0.1, 0.25, 0.5, 0.75):
        found = int(np.sum(p_values <= level + 1e-9))
        assert binomtest(found, len(p_values), level).pvalue > 1e-3


def test_curves_that_cross_are_found_although_the_areas_under_them_agree() -> None:
    random = np.random.default_rng(3)
    rows = 400
    y = random.random(rows) < 0.5
    g = random.choice(["a", "b"], rows)
    # The positives of one group are all in the middle, those of the other at both ends.
    ends = random.choice([0.05, 0.95], rows)
    of_positives = np.where(g == "a", 0.5, ends) + random.normal(size=rows) / 50
    s = np.where(y, of_positives, random.random(rows))
    frame = pl.DataFrame({"g": g, "y": y, "s": s, "w": np.ones(rows)})
    gaps = wide_gaps(frame, "y", "s", by="g")
    assert gaps["auc_gap_p_value"].min() > 0.1
    table = measured(frame, permutations=199)
    assert table["p_value"].to_list() == [1 / 200] * 2
    assert (table["abroca"] > 2 * table["abroca_null"]).all()


def test_a_seed_repeats_the_permutations(people: pl.DataFrame) -> None:
    table = measured(people, permutations=40, seed=7)
    assert_frame_equal(table, measured(people, permutations=40, seed=7))
    other = measured(people, permutations=40, seed=8)
    assert (table["abroca_null"] != other["abroca_null"]).all()
    assert table["abroca"].equals(other["abroca"])


def test_threads_and_the_order_of_rows_do_not_matter(
    people: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = measured(people, permutations=30)
    shuffled = people.sample(fraction=1.0, shuffle=True, seed=1)
    assert_frame_equal(measured(shuffled, permutations=30), table, check_exact=True)
    monkeypatch.setattr("polars_wroc.threads._THREADS", 1)
    assert_frame_equal(measured(people, permutations=30), table, check_exact=True)


@pytest.mark.slow(reason="has a large table")
def test_more_rows_than_the_engine_takes_at_once() -> None:
    frame = alike(1, rows=250_000).with_columns(pl.col("s").round(3))
    plan = wroc.abroca_test(frame.lazy(), "y", "s", weight="w", by="g", permutations=2)
    found = plan.collect()
    assert_frame_equal(found, measured(frame, permutations=2), abs_tol=1e-12)
    inside = (frame["g"] == "a").to_numpy()
    y, s, w = (frame[name].to_numpy() for name in ("y", "s", "w"))
    expected = distance(y, s, w, inside)
    assert found["abroca"][0] == pytest.approx(expected, abs=1e-11)


@pytest.mark.slow(reason="draws thousands of permutations")
def test_each_group_keeps_its_classes_and_each_row_its_weight() -> None:
    # All rows of a class are the same, so that every permutation is the data again.
    frame = pl.DataFrame(
        {"g": list("aabbbb"), "y": [1, 0, 1, 1, 0, 0], "s": [2.0, 1, 2, 2, 1, 1], "w": 3.0}
    )
    table = measured(frame, permutations=19)
    assert table.select(COLUMNS).rows() == [(0.0, 0.0, 1.0)] * 2
    lone = frame.with_columns(s=pl.when(g="a").then(-pl.col("s")).otherwise("s"))
    table = measured(lone, permutations=5000)
    assert table["abroca"].to_list() == pytest.approx([1.0, 1.0], rel=1e-14)
    # The group's positive is one of three, and is below every negative, whichever it gets.
    assert table["p_value"][0] == pytest.approx(1 / 3, abs=0.03)


def test_models_and_groups_of_several_columns(people: pl.DataFrame) -> None:
    place = pl.int_range(pl.len())
    frame = people.with_columns(
        h=pl.when(place % 3 > 0).then(place % 2), r=pl.when(place % 7 > 0).then(-pl.col("w"))
    )
    options: dict[str, Any] = {"weight": "w", "by": ["g", "h"], "permutations": 30}
    table = wroc.abroca_test(frame, "y", ["s", "r"], **options)
    assert table.columns == ["g", "h", "model", *COLUMNS]
    keys = [(g, h, model) for g in "abcd" for h in (None, 0, 1) for model in ("s", "r")]
    assert table.select("g", "h", "model").rows() == keys
    for model in ("s", "r"):
        alone = wroc.abroca_test(frame, "y", model, **options)
        assert_frame_equal(table.filter(model=model).drop("model"), alone, abs_tol=1e-12)


def test_what_is_undefined_is_null(people: pl.DataFrame) -> None:
    frame = people.filter((pl.col("g") != "c") | pl.col("y"))
    table = measured(frame, permutations=9)
    assert table.select(COLUMNS).row(2) == (None, None, None)
    assert table.select(COLUMNS).null_count().row(0) == (1, 1, 1)
    alone = measured(people.filter(g="a"), permutations=9)
    assert alone.rows() == [("a", None, None, None)]
    one_class = measured(people.filter("y"), permutations=9)
    assert one_class.select(COLUMNS).null_count().row(0) == (4, 4, 4)
    gone = measured(people.filter(g="a").with_columns(s=pl.lit(None, pl.Float64)), permutations=9)
    assert gone.rows() == [("a", None, None, None)]
    empty = measured(people.clear(), permutations=9)
    assert empty.height == 0
    assert empty.schema == table.schema


@pytest.mark.parametrize("group", ["a", "b"])
@pytest.mark.parametrize("positive", [False, True])
def test_no_area_where_one_of_two_groups_lacks_a_class(
    people: pl.DataFrame, group: str, positive: bool
) -> None:
    pair = people.filter(pl.col("g").is_in(["a", "b"]))
    frame = pair.filter((pl.col("g") != group) | (pl.col("y") != positive))
    table = measured(frame, permutations=9)
    assert table.select(COLUMNS).rows() == [(None, None, None)] * 2


def test_an_abroca_test_refuses_wrong_options(people: pl.DataFrame) -> None:
    with pytest.raises(TypeError, match="`by` must name the groups to compare"):
        wroc.abroca_test(people, "y", "s", by=None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"`by` must not take .* found 'p_value'"):
        wroc.abroca_test(people.rename({"g": "p_value"}), "y", "s", by="p_value")
    mixed = people.with_columns(y=pl.when("y").then(1).otherwise(pl.int_range(pl.len()) % 2 - 1))
    with pytest.raises(ValueError, match="`label` must hold 0 and 1"):
        measured(mixed, permutations=1)
