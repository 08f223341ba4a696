"""Which gaps are tested, and which tests count: of two groups there is one, of small ones none."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import stats
from sweeps import sweep
from wide_tables import fairness_of, gaps_of, segments_of, wide_gaps

import polars_wroc as wroc

Floats: TypeAlias = npt.NDArray[np.float64]

RATES = ["selection_rate", "tpr", "fpr", "ppv", "npv"]
P_VALUES = [f"{name}_gap_p_value" for name in ("auc", *RATES)]
ADJUSTED = [f"{name}_gap_p_adjusted" for name in ("auc", *RATES)]
TESTED = ("_p_value", "_p_adjusted", "_detectable", "_verdict")


def people(sizes: dict[str, int], seed: int = 3) -> pl.DataFrame:
    """Groups of these sizes, two scores that differ between them, and weights."""
    random = np.random.default_rng(seed)
    g = [name for name, size in sizes.items() for _ in range(size)]
    positive = np.arange(len(g)) % 2 == 0
    shift = positive * np.array([1 + "abcdef".index(name) / 3 for name in g])
    return pl.DataFrame(
        {
            "g": g,
            "y": positive,
            "s": random.normal(size=len(g)) + shift,
            "t": random.normal(size=len(g)) + positive,
            "w": random.lognormal(size=len(g), sigma=0.5),
        }
    )


def holm(values: Floats) -> list[float]:
    """Holm's step-down adjustment, from its definition."""
    order = np.argsort(values)
    steps = [(len(values) - place) * values[k] for place, k in enumerate(order)]
    adjusted = np.minimum(np.maximum.accumulate(steps), 1)
    return [float(adjusted[list(order).index(k)]) for k in range(len(values))]


@pytest.mark.parametrize("weight", sweep([None, "w"]))
@pytest.mark.parametrize("score", ["s", ["s", "t"]])
def test_two_groups_are_one_test(score: Any, weight: str | None) -> None:
    frame = people({"a": 160, "b": 90})
    gaps = wide_gaps(frame, "y", score, by="g", weight=weight, threshold=0.7)
    first, second = (gaps.filter(g=name) for name in "ab")
    assert_frame_equal(first.select(P_VALUES), second.select(P_VALUES), check_exact=True)
    assert_frame_equal(first.select(ADJUSTED), second.select(ADJUSTED), check_exact=True)
    values = first.select(P_VALUES).to_numpy().ravel()
    assert first.select(ADJUSTED).to_numpy().ravel() == pytest.approx(holm(values), abs=1e-14)


@pytest.mark.parametrize("reference", sweep(["rest", "overall"]))
def test_test_of_rates_of_two_groups_is_that_of_a_table_of_four(reference: str) -> None:
    frame = people({"a": 160, "b": 90})
    gaps = wide_gaps(frame, "y", "s", by="g", threshold=0.7, reference=reference)
    selected, positive = pl.col("s") >= 0.7, pl.col("y")
    counted = {
        "selection_rate": (pl.lit(value=True), selected),
        "tpr": (positive, selected),
        "fpr": (~positive, selected),
        "ppv": (selected, positive),
        "npv": (~selected, ~positive),
    }
    for rate, (among, event) in counted.items():
        table = (
            frame.filter(among)
            .group_by("g")
            .agg(event.sum().alias("yes"), (~event).sum().alias("no"))
            .select("yes", "no")
            .to_numpy()
        )
        p_value = stats.chi2_contingency(table, correction=False).pvalue
        assert gaps[f"{rate}_gap_p_value"].to_list() == pytest.approx([p_value] * 2, abs=1e-12)


@pytest.mark.parametrize("adjust", sweep(["bh", "none"]))
def test_two_groups_are_one_test_of_other_adjustments(adjust: Any) -> None:
    gaps = wide_gaps(people({"a": 160, "b": 90}), "y", "s", by="g", threshold=0.7, adjust=adjust)
    values = gaps.select(P_VALUES).to_numpy()[0]
    expected = values if adjust == "none" else stats.false_discovery_control(values)
    for row in gaps.select(ADJUSTED).to_numpy():
        assert row == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("reference", sweep(["best", "b"]))
def test_two_groups_with_another_reference_are_not_each_others_rest(reference: str) -> None:
    frame = people({"a": 160, "b": 90})
    gaps = wide_gaps(frame, "y", "s", by="g", threshold=0.7, reference=reference)
    values = gaps.select(P_VALUES).to_numpy()
    tested = np.isfinite(values)
    assert tested.sum() == 6
    found = gaps.select(ADJUSTED).to_numpy()[tested]
    assert found == pytest.approx(holm(values[tested]), abs=1e-14)


def test_pairs_are_told_from_three_groups_in_each_model() -> None:
    frame = people({"a": 160, "b": 90, "c": 100})
    frame = frame.with_columns(t=pl.when(pl.col("g") != "c").then("t"))
    gaps = wide_gaps(frame, "y", ["s", "t"], by="g")
    of_s, of_t = (gaps.filter(model=name)["auc_gap_p_value"].to_list() for name in "st")
    assert len({*of_s}) == 3
    assert of_t[2] is None
    assert of_t[0] == pytest.approx(of_t[1], abs=1e-12)


def expected_tests(sizes: dict[str, int], reference: str, min_rows: int) -> list[bool]:
    """Say of each group whether it and what it is compared with have enough rows in a class."""
    halves = {name: size // 2 for name, size in sizes.items()}
    tested = []
    for name, half in halves.items():
        if reference in sizes:
            enough = name != reference and halves[reference] >= min_rows
        else:
            enough = sum(halves.values()) - half >= min_rows
        tested.append(half >= min_rows and enough)
    return tested


TWO, FEW = {"a": 200, "b": 40}, {"a": 200, "b": 20, "c": 20}
MANY, ONE = {"a": 200, "b": 40, "c": 40}, {"a": 200, "b": 100, "c": 20}


@pytest.mark.parametrize(
    ("sizes", "reference"),
    sweep(
        [
            *((sizes, "rest") for sizes in (TWO, FEW, MANY, ONE)),
            *((sizes, "overall") for sizes in (TWO, MANY)),
            *((sizes, "a") for sizes in (FEW, ONE)),
            *((sizes, "b") for sizes in (TWO, FEW, ONE)),
        ],
        fast=[(TWO, "rest"), (MANY, "overall")],
    ),
)
def test_small_groups_and_small_references_are_not_tested(
    sizes: dict[str, int], reference: str
) -> None:
    frame = people(sizes)
    gaps = wide_gaps(
        frame, "y", "s", by="g", threshold=0.7, reference=reference, min_rows=30, adjust="none"
    )
    free = wide_gaps(frame, "y", "s", by="g", threshold=0.7, reference=reference)
    # As many positives as negatives: for all of them together half as many of each are enough.
    for rates, least in ((("auc", "tpr", "fpr"), 30), (("selection_rate",), 15)):
        tested = expected_tests(sizes, reference, least)
        names = [f"{rate}_gap_p_value" for rate in rates]
        p_values = gaps.select(names)
        assert [all(p is not None for p in row) for row in p_values.rows()] == tested
        assert [any(p is not None for p in row) for row in p_values.rows()] == tested
        kept = pl.Series(tested)
        assert_frame_equal(p_values.filter(kept), free.select(names).filter(kept))
    # Detectable gaps too are those of a test.
    measured = [name for name in gaps.columns if not name.endswith(TESTED)]
    assert_frame_equal(gaps.select(measured), free.select(measured))


@pytest.mark.parametrize(("min_rows", "tests"), [(20, 2), (21, 0)])
@pytest.mark.parametrize("reference", ["rest", "overall"])
def test_as_many_rows_as_needed_are_enough(reference: str, min_rows: int, tests: int) -> None:
    # The smaller group has 20 rows of each class.
    frame = people({"a": 200, "b": 40})
    gaps = wide_gaps(frame, "y", "s", by="g", reference=reference, min_rows=min_rows)
    assert gaps["auc_gap_p_value"].count() == tests


def test_rows_of_a_class_are_counted_not_weighed() -> None:
    frame = people({"a": 200, "b": 58}).with_columns(w=pl.col("w") * 1000)
    for limit, tests in ((29, 2), (30, 0)):
        gaps = wide_gaps(frame, "y", "s", by="g", weight="w", min_rows=limit)
        assert gaps["auc_gap_p_value"].count() == tests
    few = frame.with_columns(w=pl.when(pl.col("g") != "b").then("w").otherwise(0.0))
    gaps = wide_gaps(few, "y", "s", by="g", weight="w", min_rows=1)
    assert gaps.select("g", "auc_gap_p_value").rows() == [("a", None)]


# The group that lacks all scores comes between, first and last.
@pytest.mark.parametrize("names", sweep(["acb", "bca", "abc"]))
def test_groups_without_rows_do_not_make_three_of_two(names: str) -> None:
    frame = people({"a": 160, "b": 90})
    empty = people({"c": 40}).with_columns(s=None)
    renamed = pl.concat([frame, empty], how="vertical_relaxed").with_columns(
        g=pl.col("g").replace(dict(zip("abc", names, strict=True)))
    )
    two = renamed.filter(pl.col("s").is_not_null())
    found, expected = (
        wide_gaps(table, "y", "s", by="g", threshold=0.7) for table in (renamed, two)
    )
    there = pl.col("auc").is_not_null()
    assert_frame_equal(found.filter(there), expected)
    assert found.filter(~there).select(P_VALUES + ADJUSTED).rows() == [(None,) * 12]


def test_small_segments_are_those_of_few_frequencies() -> None:
    random = np.random.default_rng(6)
    frame = people({"a": 60, "b": 30, "c": 16}).with_columns(k=random.integers(1, 5, 106))
    expanded = frame.select(pl.exclude("k").repeat_by("k").explode(empty_as_null=False))
    found = wroc.audit(
        frame,
        "y",
        "s",
        attributes="g",
        weight=wroc.frequency("k"),
        threshold=0.7,
        favorable="selected",
    )
    expected = wroc.audit(expanded, "y", "s", attributes="g", threshold=0.7, favorable="selected")
    small = segments_of(expected).select("small")
    assert small["small"].to_list() == [False, False, False, True]
    assert_frame_equal(segments_of(found).select("small"), small)
    assert_frame_equal(gaps_of(found).select(P_VALUES), gaps_of(expected).select(P_VALUES))
    values = ["metric", "value", "group_max", "group_min"]
    assert_frame_equal(fairness_of(found).select(values), fairness_of(expected).select(values))


@pytest.mark.slow(reason="makes several audits")
@pytest.mark.parametrize("reference", sweep(["rest", "overall", "best"]))
def test_copies_in_clusters_show_no_more_than_one_of_them(reference: Any) -> None:
    frame = people({"a": 60, "b": 60, "c": 60}).with_row_index("c")
    given: dict[str, Any] = {"threshold": 0.7, "reference": reference, "min_rows": 0}

    def gaps(copies: int, cluster: str | None) -> pl.DataFrame:
        rows = pl.concat([frame] * copies)
        given["design"] = cluster
        return gaps_of(wroc.audit(rows, "y", "s", attributes="g", favorable="selected", **given))

    once, found = gaps(1, "c"), gaps(20, "c")
    assert_frame_equal(found.select(P_VALUES[1:]), once.select(P_VALUES[1:]), rel_tol=1e-6)
    # Their pseudo-observations are rows, of which the copies have more.
    assert_frame_equal(found.select(P_VALUES), once.select(P_VALUES), abs_tol=0.05)
    as_rows = gaps(20, None)
    least = (table.select(pl.min_horizontal(P_VALUES).min()).item() for table in (as_rows, found))
    assert next(least) < 1e-6 < next(least)
