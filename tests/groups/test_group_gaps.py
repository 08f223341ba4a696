"""Gaps between groups: which are compared with which, named, picked, adjusted and left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import plain_picked
import plain_score
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from polars.exceptions import ColumnNotFoundError
from polars.testing import assert_frame_equal
from scipy import stats
from sweeps import sweep
from wide_tables import wide_gaps

import polars_wroc as wroc

Floats: TypeAlias = npt.NDArray[np.float64]
Row: TypeAlias = tuple[str, bool, int, int]

COLUMNS = [
    "auc",
    "auc_reference",
    "auc_gap",
    "auc_gap_low",
    "auc_gap_high",
    "auc_gap_p_value",
    "auc_gap_p_adjusted",
]
GAP = COLUMNS[2:]
REFERENCES = ["best", "b"]


def gaps_of(*args: Any, **options: Any) -> Any:
    return wide_gaps(*args, **{"reference": "b", "min_rows": 0} | options)


def frame_of(rows: list[Row]) -> pl.DataFrame:
    g, y, s, w = zip(*rows, strict=True)
    return pl.DataFrame({"g": g, "y": [int(v) for v in y], "s": s, "w": [float(v) for v in w]})


FRAMES = st.lists(
    st.tuples(st.sampled_from("abc"), st.booleans(), st.integers(0, 7), st.integers(1, 5)),
    min_size=15,
    max_size=50,
).map(frame_of)


def definition(
    frame: pl.DataFrame, reference: str, level: float = 0.95, *, frequency: bool = False
) -> dict[str, plain_score.Gap | None]:
    """The gap of each group in plain Python; to the best, with Tukey's quantile and test."""
    frame = frame.drop_nulls(["s", "y", "w"]).with_columns(pl.col("y").cast(pl.Int64))
    if reference != "best":
        return dict(plain_score.gaps(frame, reference, level, frequency=frequency))
    groups = frame.sort("g").group_by("g", maintain_order=True)
    aucs = {str(g): plain_score.auc_of(rows, frequency=frequency) for (g,), rows in groups}
    known = {g: round(auc.auc, 12) for g, auc in aucs.items() if auc}
    best = max(known, key=lambda g: known[g])
    # The level at which a single difference has the quantile of all pairs.
    z = plain_picked.multiplier(level, len(known))
    alone = plain_score.gaps(frame, best, 1 - 2 * float(stats.norm.sf(z)), frequency=frequency)
    return {
        g: gap and gap._replace(p_value=plain_picked.p_value(gap.p_value, len(known)))
        for g, gap in alone.items()
    }


def repeated(frame: pl.DataFrame) -> pl.DataFrame:
    """Each row as often as its weight says, with weights of one."""
    times = pl.col("w").cast(pl.Int64)
    return frame.select(pl.exclude("w").repeat_by(times).explode(empty_as_null=False)).with_columns(
        w=pl.lit(1.0)
    )


def holm(p_values: Sequence[float]) -> list[float]:
    p = np.array(p_values)
    stepped = np.array([(p >= one).sum() * one for one in p])
    return [min(1.0, stepped[p <= one].max()) for one in p]


def hochberg(p_values: Sequence[float]) -> list[float]:
    return [float(p) for p in stats.false_discovery_control(p_values)]


def adjusted(column: list[float | None], rule: Callable[[Sequence[float]], list[float]]) -> Any:
    values = iter(rule([p for p in column if p is not None]))
    return [None if p is None else next(values) for p in column]


def floats(values: Sequence[float | None]) -> Floats:
    return np.array(values, dtype=np.float64)


def assert_follows(found: pl.DataFrame, expected: dict[str, plain_score.Gap | None]) -> None:
    """Check a table of one model, up to the adjusted p-values."""
    assert found["g"].to_list() == [*expected]
    for row in found.rows(named=True):
        numbers, gap = [row[name] for name in GAP[:4]], expected[row["g"]]
        if gap is None:
            assert numbers == [None] * 4
        else:
            assert numbers[:3] == pytest.approx(gap[:3], abs=1e-8)
            if abs(gap.value) > 1e-9:
                assert numbers[3] == pytest.approx(gap.p_value, rel=1e-6, abs=1e-9)


@pytest.fixture
def models(people: pl.DataFrame) -> pl.DataFrame:
    """The people with a second score that some lack, which is better in group c."""
    noise = pl.Series(np.random.default_rng(5).normal(size=people.height)).round(1)
    second = noise + pl.col("y").cast(pl.Int64) * pl.when(g="c").then(3).otherwise(0.5)
    return people.with_columns(r=pl.when(pl.int_range(pl.len()) % 7 > 0).then(second))


@given(FRAMES, st.sampled_from(REFERENCES))
def test_gaps_follow_their_definition(frame: pl.DataFrame, reference: str) -> None:
    assume("b" in frame["g"])
    assume(any(plain_score.auc_of(rows) for _, rows in frame.group_by("g")))
    table = gaps_of(frame, "y", "s", weight="w", by="g", reference=reference)
    assert_follows(table, definition(frame, reference))


@given(FRAMES, st.sampled_from(REFERENCES))
def test_frequencies_are_repeated_rows(frame: pl.DataFrame, reference: str) -> None:
    assume("b" in frame["g"])
    options: dict[str, Any] = {"by": "g", "reference": reference}
    found = gaps_of(frame, "y", "s", weight=wroc.frequency("w"), **options)
    assume(found["auc"].count())
    assert_follows(found, definition(repeated(frame), reference))
    assert_follows(found, definition(frame, reference, frequency=True))


@given(FRAMES)
def test_without_weights_every_row_counts_once(frame: pl.DataFrame) -> None:
    assume("b" in frame["g"])
    table = gaps_of(frame, "y", "s", by="g")
    assert_follows(table, definition(frame.with_columns(w=pl.lit(1.0)), "b"))


@pytest.mark.parametrize("reference", sweep(REFERENCES))
def test_weighted_groups_on_both_engines(people: pl.DataFrame, reference: str) -> None:
    plan = gaps_of(people.lazy(), "y", "s", weight="w", by="g", reference=reference)
    table = plan.collect()
    assert table["g"].to_list() == ["a", "b", "c", "d"]
    assert_follows(table, definition(people, reference))


@pytest.mark.parametrize("reference", sweep(REFERENCES))
def test_groups_of_unequal_size_and_weight(people: pl.DataFrame, reference: str) -> None:
    heavy = {"a": 1.0, "b": 0.1, "c": 1.0, "d": 10.0}
    place = pl.int_range(pl.len()).over("g")
    frame = people.filter((pl.col("g") != "b") | (place < 20)).with_columns(
        pl.col("w") * pl.col("g").replace_strict(heavy)
    )
    table = gaps_of(frame, "y", "s", weight="w", by="g", reference=reference)
    assert_follows(table, definition(frame, reference))


@pytest.mark.parametrize("reference", sweep(REFERENCES))
def test_level_sets_the_width_only(people: pl.DataFrame, reference: str) -> None:
    options: dict[str, Any] = {"weight": "w", "by": "g", "reference": reference}
    table = gaps_of(people, "y", "s", level=0.8, **options)
    assert_follows(table, definition(people, reference, 0.8))
    at_default = gaps_of(people, "y", "s", **options)
    limits = ["auc_low", "auc_high", "auc_gap_low", "auc_gap_high"]
    judged = ["auc_gap_detectable", "auc_gap_verdict", *limits]
    assert_frame_equal(table.drop(judged), at_default.drop(judged))


def test_best_group_may_differ_between_models(models: pl.DataFrame) -> None:
    table = gaps_of(models, "y", ["s", "r"], weight="w", by="g", reference="best")
    best = table.filter(pl.col("auc_gap").is_null())
    assert best.filter(model="r")["g"].to_list() == ["c"]
    assert best.filter(model="s")["g"].to_list() != ["c"]
    assert best["auc"].to_list() == best["auc_reference"].to_list()
    assert table["auc_gap"].drop_nulls().max() < 0


@pytest.mark.parametrize(
    ("adjust", "rule"), sweep([("holm", holm), ("bh", hochberg), ("none", list)])
)
@pytest.mark.parametrize("reference", sweep(REFERENCES))
def test_p_values_are_adjusted_over_the_whole_table(
    models: pl.DataFrame, reference: str, adjust: Any, rule: Any
) -> None:
    table = gaps_of(models, "y", ["s", "r"], weight="w", by="g", reference=reference, adjust=adjust)
    expected = adjusted(table["auc_gap_p_value"].to_list(), rule)
    found = table["auc_gap_p_adjusted"].to_list()
    assert floats(found) == pytest.approx(floats(expected), rel=1e-12, nan_ok=True)
    assert len(set(expected)) > 2


def test_adjustments_by_hand() -> None:
    # The p-values of methods for several tests: .001, .02, .03 and .4.
    assert holm([0.02, 0.4, 0.001, 0.03]) == pytest.approx([0.06, 0.4, 0.004, 0.06])
    assert hochberg([0.02, 0.4, 0.001, 0.03]) == pytest.approx([0.04, 0.4, 0.004, 0.04])


@pytest.mark.parametrize("reference", sweep(["best", ("b", 1)], fast=1, tuples=True))
def test_groups_of_several_columns(people: pl.DataFrame, reference: Any) -> None:
    frame = people.with_columns(h=pl.int_range(pl.len()) % 3)
    by = ["g", "h"]
    plan = gaps_of(frame.lazy(), "y", "s", weight="w", by=by, reference=reference)
    table = plan.collect()
    assert table.select(by).rows() == [(g, h) for g in "abcd" for h in range(3)]
    crossed = frame.with_columns(g=pl.format("{}-{}", "g", "h"))
    named = reference if reference == "best" else "b-1"
    assert_follows(
        table.select(g=pl.format("{}-{}", *by), **{n: n for n in GAP}), definition(crossed, named)
    )


@pytest.mark.parametrize("reference", sweep(REFERENCES, fast=1))
def test_group_of_one_class_is_null_and_no_test(people: pl.DataFrame, reference: str) -> None:
    frame = people.filter((pl.col("g") != "c") | pl.col("y"))
    table = gaps_of(frame, "y", "s", weight="w", by="g", reference=reference)
    assert table.row(2, named=True)["auc"] is None
    assert table.select(GAP).row(2) == (None,) * 5
    assert_follows(table, definition(frame, reference))
    expected = adjusted(table["auc_gap_p_value"].to_list(), holm)
    assert table["auc_gap_p_adjusted"].to_list() == pytest.approx(expected)
    assert table["auc_gap_p_value"].count() == 2
    # Comparing two groups does not need the third.
    others = frame.filter(pl.col("g") != "c")
    without = gaps_of(others, "y", "s", weight="w", by="g", reference=reference)
    assert_frame_equal(table.filter(pl.col("g") != "c"), without)


@pytest.mark.parametrize("reference", sweep(["c", "rest"]))
def test_reference_that_lacks_a_class_leaves_no_gap(people: pl.DataFrame, reference: str) -> None:
    one_class = people.filter((pl.col("g") == "a") | pl.col("y"))
    table = gaps_of(one_class, "y", "s", weight="w", by="g", reference=reference)
    assert table.row(0, named=True)["auc"] is not None
    assert table["auc_reference"][0] is None
    assert table.select(GAP).row(0) == (None,) * 5


def test_single_group_has_no_rest(people: pl.DataFrame) -> None:
    alone = people.filter(g="a")
    rest = gaps_of(alone, "y", "s", weight="w", by="g", reference="rest")
    auc = plain_score.auc_of(alone.with_columns(pl.col("y").cast(pl.Int64)))
    assert auc
    assert rest["auc"][0] == pytest.approx(auc.auc)
    assert rest.select(COLUMNS[1:]).row(0) == (None,) * 6
    for reference in ("best", "a"):
        table = gaps_of(alone, "y", "s", weight="w", by="g", reference=reference)
        assert table["auc_reference"].to_list() == table["auc"].to_list()
        assert table.select(GAP).row(0) == (None,) * 5


def test_of_two_groups_each_is_the_rest_of_the_other(people: pl.DataFrame) -> None:
    frame = people.filter(pl.col("g").is_in(["a", "b"]))
    rest, named = (
        gaps_of(frame, "y", "s", weight="w", by="g", reference=reference)
        for reference in ("rest", "b")
    )
    assert rest["auc_gap"][0] == pytest.approx(-rest["auc_gap"][1], abs=1e-12)
    assert rest["auc_gap_low"][0] == pytest.approx(-rest["auc_gap_high"][1], abs=1e-12)
    assert rest["auc_gap_p_value"][0] == pytest.approx(rest["auc_gap_p_value"][1])
    unadjusted = [name for name in COLUMNS if name != "auc_gap_p_adjusted"]
    assert_frame_equal(rest.head(1).select(unadjusted), named.head(1).select(unadjusted))


def test_named_group_is_the_best_one(people: pl.DataFrame) -> None:
    best = gaps_of(people, "y", "s", weight="w", by="g", reference="best")
    name = best.filter(pl.col("auc_gap").is_null())["g"].item()
    assert best.filter(g=name)["auc"].item() == best["auc"].max()
    named = gaps_of(people, "y", "s", weight="w", by="g", reference=name)
    of_picked = [*GAP[1:], "auc_gap_detectable", "auc_gap_verdict"]
    assert_frame_equal(best.drop(of_picked), named.drop(of_picked))
    for found, alone in zip(best["auc_gap_p_value"], named["auc_gap_p_value"], strict=True):
        assert (found is None) == (alone is None)
        if alone is not None:
            assert found == pytest.approx(plain_picked.p_value(alone, 4), rel=1e-7)


def test_first_of_equally_good_groups_is_the_best() -> None:
    half = pl.DataFrame({"y": [1, 0, 1, 0, 0], "s": [4, 3, 3, 2, 1]})
    frame = pl.concat([half.with_columns(g=pl.lit(g)) for g in "ba"])
    table = gaps_of(frame, "y", "s", by="g", reference="best")
    assert table["auc_gap"].to_list() == [None, 0.0]
    assert table["auc_gap_p_adjusted"].to_list() == [None, pytest.approx(1)]


def test_heaviest_of_equally_good_groups_is_the_best() -> None:
    half = pl.DataFrame({"y": [1, 0, 1, 0, 0], "s": [4, 3, 3, 2, 1]})
    frame = pl.concat([half.with_columns(g=pl.lit(g), w=w) for g, w in (("a", 1), ("b", 2))])
    table = wroc.group_gaps(
        frame, "y", "s", attributes="g", weight="w", reference="best", min_rows=1
    )
    assert table["reference"].to_list() == ["b", "b"]


def test_small_groups_are_measured_but_not_tested(people: pl.DataFrame) -> None:
    place = pl.int_range(pl.len()).over("g", "y")
    frame = people.filter((pl.col("g") != "a") | ~pl.col("y") | (place < 9))
    options: dict[str, Any] = {"weight": "w", "by": "g", "reference": "b"}
    whole = gaps_of(frame, "y", "s", **options)
    for min_rows, tested in ((9, 4), (10, 3)):
        table = gaps_of(frame, "y", "s", min_rows=min_rows, **options)
        adjusted_columns = ["auc_gap_p_value", "auc_gap_p_adjusted"]
        judged = ["auc_gap_detectable", "auc_gap_verdict", *adjusted_columns]
        assert_frame_equal(table.drop(judged), whole.drop(judged))
        expected = [
            p if g < tested else None
            for g, p in zip((3, 0, 1, 2), whole["auc_gap_p_value"], strict=True)
        ]
        assert table["auc_gap_p_value"].to_list() == pytest.approx(expected)
        found = table["auc_gap_p_adjusted"].to_list()
        assert floats(found) == pytest.approx(floats(adjusted(expected, holm)), nan_ok=True)


def test_the_best_is_picked_from_groups_with_enough_rows(people: pl.DataFrame) -> None:
    """Of four groups the small one cannot be the best, which is one of the three others."""
    place = pl.int_range(pl.len()).over("g", "y")
    frame = people.filter((pl.col("g") != "a") | ~pl.col("y") | (place < 9))
    options: dict[str, Any] = {"weight": "w", "by": "g", "min_rows": 10}
    best = gaps_of(frame, "y", "s", reference="best", **options)
    name = best.filter(pl.col("auc_gap").is_null())["g"].item()
    named = gaps_of(frame, "y", "s", reference=name, **options)
    for found, alone in zip(best["auc_gap_p_value"], named["auc_gap_p_value"], strict=True):
        assert (found is None) == (alone is None)
        if alone is not None:
            assert found == pytest.approx(plain_picked.p_value(alone, 3), rel=1e-7)


def test_p_values_do_not_exceed_one() -> None:
    half = pl.DataFrame({"y": [1, 0, 1, 0, 0], "s": [4, 3, 3, 2, 1]})
    frame = pl.concat([half.with_columns(g=pl.lit(g)) for g in "ba"])
    table = gaps_of(frame, "y", "s", by="g", reference="rest", adjust="none")
    assert all(p <= 1 for p in table["auc_gap_p_value"])


@pytest.mark.parametrize(
    ("values", "reference"),
    sweep(
        [
            (["rest", "best", "overall", "x"], ("best",)),
            ([1, 2, 3, 4], 2),
            ([0.5, 1.5, 2.0, 3.0], 1.5),
            ([True, False, None, None], True),
        ],
        fast=1,
    ),
)
def test_groups_are_named_by_their_value(
    people: pl.DataFrame, values: list[Any], reference: Any
) -> None:
    names = dict(zip("abcd", values, strict=True))
    frame = people.with_columns(g=pl.col("g").replace_strict(names, default=None))
    table = gaps_of(frame, "y", "s", weight="w", by="g", reference=reference)
    value = reference[0] if isinstance(reference, tuple) else reference
    own = table.filter(g=value).row(0, named=True)
    assert own["auc_gap"] is None
    assert own["auc"] == own["auc_reference"]
    assert table["auc_reference"].to_list() == pytest.approx([own["auc"]] * table.height)


@pytest.mark.parametrize("reference", sweep(["e", "A"]))
def test_reference_group_that_does_not_exist(people: pl.DataFrame, reference: Any) -> None:
    plan = gaps_of(people.lazy(), "y", "s", by="g", reference=reference)
    with pytest.raises(ValueError, match=r"`reference` must be .* found no segment"):
        plan.collect()
    with pytest.raises(ValueError, match=r"^`reference` must be .* found no segment"):
        gaps_of(people, "y", "s", by="g", reference=reference)


def test_reference_group_that_one_model_lacks(people: pl.DataFrame) -> None:
    # The rows are there, but without a score: that is a group without an AUC.
    frame = people.with_columns(r=pl.when(pl.col("g") != "b").then("s"))
    table = gaps_of(frame, "y", ["s", "r"], by="g", reference="b")
    assert table.filter(model="r")["auc_gap"].null_count() == 4
    assert table.filter(model="s")["auc_gap"].null_count() == 1


@pytest.mark.parametrize("reference", [("a", 1), (), ["a"], None])
def test_reference_that_can_be_no_group(people: pl.DataFrame, reference: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=r"`reference` must "):
        wroc.group_gaps(people.lazy(), "y", "s", attributes="g", reference=reference, min_rows=0)
    with pytest.raises(ValueError, match=r"map attributes to segments where there are several"):
        wroc.group_gaps(people, "y", "s", attributes=["g", "y"], reference="a", min_rows=0)


def test_there_must_be_attributes(people: pl.DataFrame) -> None:
    for wrong, message in {
        None: "name the groups to compare",
        (): "be one or several column names",
    }.items():
        with pytest.raises(TypeError, match=f"`attributes` must {message}"):
            wroc.group_gaps(people, "y", "s", attributes=wrong, min_rows=0)  # type: ignore[arg-type]
    with pytest.raises(ColumnNotFoundError, match="`attributes` must name a column"):
        wroc.group_gaps(people, "y", "s", attributes="nowhere", min_rows=0)
    with pytest.raises(ValueError, match="`intersections` needs two or more `attributes`"):
        wroc.group_gaps(people, "y", "s", attributes="g", intersections=True, min_rows=0)
    called = people.rename({"g": "overall"})
    with pytest.raises(ValueError, match="must not name a column 'overall'"):
        wroc.group_gaps(called, "y", "s", attributes="overall", min_rows=0)
    with pytest.raises(ValueError, match="`score` must be given unless decisions are `selected`"):
        wroc.group_gaps(people, "y", attributes="g", threshold=1, min_rows=0)
