"""Gaps by the score-type intervals: worked numbers, the definition in plain Python, properties."""

from __future__ import annotations

from typing import Any

import numpy as np
import plain_score
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from plain_rates import statistic
from sweeps import sweep
from wide_tables import wide_gaps

import polars_wroc as wroc

NUMBERS = ["auc_gap", "auc_gap_low", "auc_gap_high", "auc_gap_p_value"]
REFERENCES = ["rest", "overall", "best", "b"]
ROWS = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.booleans(),
        st.integers(0, 5),
        st.sampled_from([0.0, 0.25, 1.0, 3.0]),
    ),
    min_size=4,
    max_size=40,
)


def labelled_at_random() -> pl.DataFrame:
    random = np.random.default_rng(0)
    y = random.integers(0, 2, 60)
    groups, units = random.choice(list("ab"), 60), random.integers(0, 2, 60)
    return pl.DataFrame({"g": groups, "y": y, "s": random.normal(size=60) + y, "h": units})


@pytest.mark.parametrize("weight", sweep([1e-160, 1e155], fast=2))
@pytest.mark.parametrize(
    "options",
    [{"design": wroc.Survey(strata="h"), "threshold": 0.5}, {"reference": "overall"}],
)
def test_numbers_of_extreme_weights(weight: float, options: dict[str, Any]) -> None:
    frame = labelled_at_random().with_columns(w=pl.lit(weight))
    found = wide_gaps(frame, "y", "s", by="g", weight="w", **options, min_rows=0)
    numbers = found.select(pl.selectors.float()).unpivot().drop_nulls()["value"]
    assert numbers.is_finite().all()


def labelled(**groups: tuple[list[float], str]) -> pl.DataFrame:
    return pl.concat(
        pl.DataFrame({"g": g, "s": scores, "y": [int(y) for y in labels]})
        for g, (scores, labels) in groups.items()
    )


A = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2], "11010100"
B = [0.95, 0.9, 0.8, 0.7, 0.35, 0.3, 0.2, 0.1], "11101000"
C = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4], "101100"
WORKED = labelled(A=A, B=B, C=C)


def people(seed: int, sizes: dict[str, int], good: float = 2.0) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    n = sum(sizes.values())
    positive = random.random(n) < 0.4
    return pl.DataFrame(
        {
            "g": np.repeat([*sizes], [*sizes.values()]),
            "y": positive.astype(int),
            "s": (good * positive + random.normal(size=n)).round(1),
            "w": random.lognormal(size=n),
        }
    )


@pytest.mark.parametrize(
    ("reference", "auc", "numbers"),
    [
        ("B", 0.9375, (-0.125, -0.5953622596, 0.3909961991, 0.6251695868)),
        ("rest", 0.88, (-0.0675, -0.5457479651, 0.3462156149, 0.7744220124)),
        ("overall", 0.8536585, (-0.0411585366, -0.3327731494, 0.2111070823, 0.7744220124)),
    ],
)
def test_worked_numbers(reference: str, auc: float, numbers: tuple[float, ...]) -> None:
    found = wide_gaps(WORKED, "y", "s", by="g", reference=reference, min_rows=0).filter(g="A")
    assert found["auc_reference"].item() == pytest.approx(auc, abs=6e-6)
    assert found.select(NUMBERS[:3]).row(0) == pytest.approx(numbers[:3], abs=1e-8)
    assert found[NUMBERS[3]].item() == pytest.approx(numbers[3], abs=1e-7)


@given(ROWS, st.sampled_from(["rest", "overall", "b"]), st.sampled_from([0.5, 0.95]), st.booleans())
def test_against_the_definition(
    rows: list[Any], reference: str, level: float, frequency: bool
) -> None:
    frame = pl.DataFrame(rows, ["g", "y", "s", "w"], orient="row").cast({"y": int})
    assume(reference != "b" or frame.filter(pl.col("g") == "b", pl.col("w") > 0).height)
    if frequency:
        # Quarters become whole numbers.
        frame = frame.with_columns(pl.col("w") * 4)
    weight: Any = wroc.frequency("w") if frequency else "w"
    table = wide_gaps(
        frame, "y", "s", weight=weight, by="g", reference=reference, level=level, min_rows=0
    )
    expected = plain_score.gaps(frame, reference, level, frequency=frequency)
    for row in table.rows(named=True):
        found, gap = [row[name] for name in NUMBERS], expected[row["g"]]
        if gap is None:
            assert found == [None] * 4
        else:
            assert found[:3] == pytest.approx(gap[:3], abs=1e-9)
            if abs(gap.value) > 1e-9:
                assert found[3] == pytest.approx(gap.p_value, abs=1e-8)


@pytest.mark.slow(reason="computes many tables")
@pytest.mark.parametrize("reference", sweep(REFERENCES))
def test_the_test_is_mostly_significant_where_the_interval_excludes_0(reference: str) -> None:
    """The test has the variances at the common value, and the interval those at its limits."""
    worse = 2.0 if reference == "best" else 1.0
    frame = pl.concat(
        people(seed, {"a": 40, "b": 60, "c": 30}, good).with_columns(k=seed * 10 + int(good * 2))
        for seed in range(8)
        for good in (0.5, 1.5, 3.0)
    ).with_columns(s=pl.col("s") - (pl.col("g") == "a") * (pl.col("y") * worse))
    tables = [
        wide_gaps(rows, "y", "s", weight="w", by="g", reference=reference, min_rows=0)
        for (_,), rows in frame.group_by("k")
    ]
    table = pl.concat(tables).drop_nulls("auc_gap")
    excluded = (table["auc_gap_low"] > 0) | (table["auc_gap_high"] < 0)
    # The best is one of three, which are compared twice.
    level = 0.05 / 2 if reference == "best" else 0.05
    assert (excluded == (table["auc_gap_p_value"] < level)).mean() > 0.85
    assert 0.02 < excluded.sum() / table.height < 0.98
    inside = table["auc_gap"].is_between(table["auc_gap_low"], table["auc_gap_high"])
    assert inside.all()


def test_a_group_of_one_class_has_the_others_as_its_reference() -> None:
    frame = people(7, {"a": 50, "b": 90, "c": 40}).filter((pl.col("g") != "c") | (pl.col("y") == 1))
    table = wide_gaps(frame, "y", "s", weight="w", by="g", reference="overall", min_rows=0)
    aucs = [plain_score.auc_of(frame.filter(g=g)) for g in ("a", "b")]
    others = plain_score.mean_of([auc for auc in aucs if auc])
    assert others
    assert table["auc_reference"].to_list() == pytest.approx([others.auc] * 3, rel=1e-12)
    assert table.filter(g="c").select("auc", "auc_gap").row(0) == (None, None)


def test_an_offset_of_all_scores_of_a_group_is_no_gap() -> None:
    """Three groups with the same curve, one of which scores 2 higher."""
    one = people(3, {"a": 300})
    frame = pl.concat(
        one.with_columns(g=pl.lit(g), s=pl.col("s") + 2 * (g == "c")) for g in ("a", "b", "c")
    )
    within = wide_gaps(frame, "y", "s", by="g", min_rows=0)
    assert within["auc_gap"].abs().max() == pytest.approx(0, abs=1e-12)
    assert within["auc_gap_p_value"].to_list() == pytest.approx([1.0] * 3, abs=1e-9)


@pytest.mark.parametrize("reference", sweep(REFERENCES, fast=3))
def test_groups_that_rank_perfectly_have_gaps(reference: str) -> None:
    frame = people(11, {"a": 30, "b": 60, "c": 60}).with_columns(
        s=pl.when(pl.col("g") == "a").then(pl.col("y") * 3.0).otherwise("s")
    )
    row = wide_gaps(frame, "y", "s", by="g", reference=reference, min_rows=0).filter(g="a")
    if reference == "best":
        assert row["auc_gap"].item() is None
        return
    assert row["auc"].item() == 1
    low, high = row["auc_gap_low"].item(), row["auc_gap_high"].item()
    assert low < row["auc_gap"].item() < high
    assert 0 < row["auc_gap_p_value"].item() < 1


def test_no_group_takes_digits_from_the_others() -> None:
    """Sums over the others are not differences, in which a large group would round them away."""
    frame = people(17, {"a": 400, "b": 40, "c": 60})
    heavy = frame.with_columns(w=pl.when(pl.col("g") == "a").then(pl.col("w") * 1e9).otherwise("w"))
    alone = frame.filter(pl.col("g") != "a")
    expected = wide_gaps(alone, "y", "s", weight="w", by="g", reference="overall", min_rows=0)
    found = wide_gaps(heavy, "y", "s", weight="w", by="g", min_rows=0).filter(g="a")
    assert found["auc_reference"].item() == pytest.approx(expected["auc_reference"][0], rel=1e-13)


def test_worked_test_at_a_common_auc() -> None:
    one, other = (plain_score.auc_of(WORKED.filter(g=g).with_columns(w=1.0)) for g in "AB")
    assert one
    assert other
    sizes = [plain_score.test_size(each) for each in (one, other)]
    assert sizes == pytest.approx([0.2818926482, 0.3166666667], abs=1e-10)
    values = [one.delta, other.delta]
    z = statistic(values, 0.125, sizes, few=False)
    root = statistic(values, 0.125, sizes, few=True)
    assert (z, min(z, 0.4962685180)) == pytest.approx((0.4885369122, root), abs=1e-10)


def test_an_auc_does_not_differ_from_itself(seven: pl.DataFrame) -> None:
    both = pl.concat(seven.with_columns(g=pl.lit(g)) for g in "ab")
    table = wroc.group_gaps(both, "y", "s", attributes="g", weight="w", min_rows=0)
    assert table["p_value"].to_list() == [1, 1]
