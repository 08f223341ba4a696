"""Paired tests of scores: against DeLong's test and the definitions, pair by pair."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from conftest import TWO_SCORES, Groups
from hypothesis import assume, given
from hypothesis import strategies as st
from polars.exceptions import ColumnNotFoundError
from scipy import stats

import polars_wroc as wroc

Floats: TypeAlias = npt.NDArray[np.float64]

COLUMNS = [
    "model",
    "reference",
    "metric",
    "value",
    "reference_value",
    "gap",
    "gap_low",
    "gap_high",
    "verdict",
    "reason",
    "gap_se",
    "p_value",
    "p_adjusted",
    "n",
    "n_missing",
]
TEST = ["gap", "gap_se", "gap_low", "gap_high", "p_value"]
FLOATS = ["value", "reference_value", *TEST, "p_adjusted"]

Row: TypeAlias = tuple[bool, int, int, int, int]


def frame_of(rows: list[Row]) -> pl.DataFrame:
    y, a, b, w, c = zip(*rows, strict=True)
    return pl.DataFrame(
        {"y": [int(v) for v in y], "a": a, "b": b, "w": [float(v) for v in w], "c": c}
    )


def two_in_each_class(frame: pl.DataFrame) -> bool:
    """Both classes have two clusters, and so two rows."""
    clusters = (frame.filter(y=label)["c"].n_unique() for label in (0, 1))
    return min(clusters) > 1


FRAMES = (
    st.lists(
        st.tuples(
            st.booleans(),
            st.integers(0, 9),
            st.integers(0, 9),
            st.integers(1, 5),
            st.integers(0, 6),
        ),
        min_size=12,
        max_size=40,
    )
    .map(frame_of)
    .filter(two_in_each_class)
)


@pytest.fixture
def models(people: pl.DataFrame) -> pl.DataFrame:
    """The people with three correlated scores, and clusters that occur in every group."""
    random = np.random.default_rng(7)
    s, rows = people["s"].to_numpy(), people.height
    return people.select(
        "g",
        pl.col("y").cast(pl.Int64),
        "w",
        a=pl.Series(np.round(s + random.normal(size=rows) / 2, 1)),
        b=pl.Series(np.round(s + random.normal(size=rows), 1)),
        c=pl.Series(random.normal(size=rows)),
        house=pl.Series(random.integers(0, 70, rows)),
    )


def compared(frame: pl.DataFrame, *scores: str, **options: Any) -> dict[str, Any]:
    """Compare the scores (``a`` and ``b`` unless named), without groups."""
    table: pl.DataFrame = wroc.compare(frame, "y", scores or ("a", "b"), **options)
    assert table.columns == COLUMNS
    return table.row(0, named=True)


def placements(frame: pl.DataFrame, score: str, weight: str | None) -> Floats:
    """The share of the other class that each row is ranked correctly against, pair by pair."""
    pos, s = frame["y"].to_numpy() == 1, frame[score].to_numpy().astype(np.float64)
    w = np.ones(len(s)) if weight is None else frame[weight].to_numpy()
    right = (np.sign(s[:, None] - s[None, :]) * np.where(pos, 1, -1)[:, None] + 1) / 2
    other = np.where(pos[:, None] != pos[None, :], w[None, :], 0.0)
    return np.asarray((right * other).sum(axis=1) / other.sum(axis=1))


def auc_of(frame: pl.DataFrame, score: str, weight: str | None) -> float:
    """The mean placement value of the positives."""
    w = np.ones(frame.height) if weight is None else frame[weight].to_numpy()
    pos = frame["y"].to_numpy() == 1
    return float((w * placements(frame, score, weight))[pos].sum() / w[pos].sum())


class Expected(NamedTuple):
    """A difference, the variance that its limits rest on, and the degrees of freedom of that."""

    difference: float
    variance: float
    df: float


def definition(
    frame: pl.DataFrame,
    a: str,
    b: str,
    *,
    weight: str | None = None,
    cluster: str | None = None,
    method: Literal["delong"] | None = None,
    clusters: int | None = None,
) -> Expected:
    """Difference of two AUCs and its variance: squares of sums over the clusters, or rows.

    There are so many ``clusters``, of which some may be in other groups.
    """
    w = np.ones(frame.height) if weight is None else frame[weight].to_numpy()
    d = placements(frame, a, weight) - placements(frame, b, weight)
    ids = range(frame.height) if cluster is None else frame[cluster].to_list()
    pos = frame["y"].to_numpy() == 1
    difference = float((w * d)[pos].sum() / w[pos].sum())
    together: Floats = np.zeros(len(set(ids)))
    parts, pseudo, sizes, units = [], [], [], []
    for side in (pos, ~pos):
        h = np.where(side, w / w[side].sum(), 0.0)
        h2 = (h**2).sum()
        totals = sums_of(ids, h)
        squares, cubes = ((totals**power).sum() for power in (2, 3))
        left = squares - 2 * cubes + squares**2
        factor = squares / left if left > 1e-12 * squares else 0.0
        of_class = np.sqrt(factor) * sums_of(ids, h * (d - difference))
        together += of_class
        parts.append((of_class**2).sum())
        carried = sums_of(ids, h * d) ** 2
        carriers = carried.sum() ** 2 / (carried**2).sum() if carried.any() else 0.0
        pseudo.append(h2**2 / 2 * (16 / (16 + carriers)) ** 2)
        sizes.append(1 / h2)
        units.append((totals > 0).sum())
    variance = float((together**2).sum())
    df = np.inf
    if method is None:
        variance += sum(pseudo)
        each = [part + added for part, added in zip(parts, pseudo, strict=True)]
        df = satterthwaite(each, sizes)
    if cluster is not None:
        df = max(min(*units, (clusters or len(set(ids))) - 1), 1)
    return Expected(difference, variance, df)


def sums_of(ids: Sequence[Any], values: Floats) -> Floats:
    names = list(dict.fromkeys(ids))
    return np.array([sum(v for k, v in zip(ids, values, strict=True) if k == c) for c in names])


def satterthwaite(parts: Sequence[float], sizes: Sequence[float]) -> float:
    """Degrees of freedom of the sum of the variances of both classes."""
    squares = (part**2 / max(size - 1, 1) for part, size in zip(parts, sizes, strict=True))
    return max(float(sum(parts) ** 2 / sum(squares)), 1.0)


def assert_is_test_of(
    found: dict[str, Any], difference: float, variance: float, df: float, level: float = 0.95
) -> None:
    """Check interval, ``z`` and p-value of a difference; the limits end at -1 and 1."""
    se = float(np.sqrt(variance))
    margin = stats.t.ppf((1 + level) / 2, df) * se
    assert found["gap"] == pytest.approx(difference, abs=1e-12)
    assert found["gap_se"] == pytest.approx(se, abs=1e-12)
    limits = found["gap_low"], found["gap_high"]
    expected = max(difference - margin, -1), min(difference + margin, 1)
    assert limits == pytest.approx(expected, abs=1e-11)

    p_value = 2 * stats.t.sf(abs(difference / se), df)
    assert found["p_value"] == pytest.approx(p_value, rel=1e-9, abs=0)


def kernels(frame: pl.DataFrame, *scores: str) -> list[Floats]:
    """Whether each positive is ranked above each negative."""
    found = []
    for score in scores:
        pos, neg = (frame.filter(y=label)[score].to_numpy() for label in (1, 0))
        found.append((np.sign(pos[:, None] - neg[None, :]) + 1) / 2)
    return found


def delong(frame: pl.DataFrame, a: str, b: str) -> Expected:
    """DeLong's difference and its variance, from covariances of the placements by two scores."""
    both = kernels(frame, a, b)
    contrast = np.array([1.0, -1.0])
    variance = sum(
        contrast @ np.cov([kernel.mean(axis=1 - axis) for kernel in both]) @ contrast / size
        for axis, size in enumerate(both[0].shape)
    )
    return Expected(float(both[0].mean() - both[1].mean()), float(variance), np.inf)


def unpaired(frame: pl.DataFrame, a: str, b: str) -> Expected:
    """As `delong.unpaired.test` of R's pROC has it: Welch's t, on all rows of each curve."""
    both = kernels(frame, a, b)
    variances = [
        sum(kernel.mean(axis=1 - axis).var(ddof=1) / size for axis, size in enumerate(kernel.shape))
        for kernel in both
    ]
    df = sum(variances) ** 2 / sum(each**2 / (frame.height - 1) for each in variances)
    return Expected(float(both[0].mean() - both[1].mean()), float(sum(variances)), float(df))


METHODS: list[Literal["delong"] | None] = [None, "delong"]


@given(FRAMES)
def test_delongs_tests_are_those_of_proc(frame: pl.DataFrame) -> None:
    for expected, options in (
        (delong(frame, "a", "b"), {"method": "delong"}),
        (unpaired(frame, "a", "b"), {"paired": False}),
    ):
        assume(expected.variance > 1e-4)
        for weight in (None, wroc.frequency(pl.lit(1)), pl.lit(0.3)):
            found = compared(frame, weight=weight, **options)
            assert_is_test_of(found, *expected)
            assert (found["model"], found["reference"]) == ("a", "b")
            assert (found["n"], found["n_missing"]) == (frame.height, 0)


# Difference, squared standard error, limits and p-value, by hand.
BY_HAND: dict[tuple[str | None, str | None], tuple[float, ...]] = {
    (None, None): (0.1666666667, 0.0587876649, -0.4380295849, 0.7713629183, 0.5194340473),
    (None, "delong"): (0.1666666667, 0.0208333333, -0.1162297669, 0.4495631002, 0.2482130790),
    # The upper limit is 1.1157639014.
    ("w", None): (0.2500000000, 0.1027629859, -0.6157639014, 1.0, 0.4761339667),
    ("w", "delong"): (0.2500000000, 0.0469656678, -0.1747548454, 0.6747548454, 0.2486701793),
}


@pytest.mark.parametrize(("weight", "method"), BY_HAND)
def test_two_scores_have_the_difference_by_hand(weight: str | None, method: Any) -> None:
    found = compared(TWO_SCORES, "new", "old", weight=weight, method=method)
    numbers = [found[name] for name in ("gap", "gap_se", *TEST[2:4], "p_value")]
    numbers[1] **= 2
    assert numbers == pytest.approx(BY_HAND[weight, method], abs=1e-10)


def test_sixty_rows_by_hand() -> None:
    y = np.arange(60) < 20
    old = np.random.default_rng(1).normal(size=60) + y
    frame = pl.DataFrame({"y": y, "old": old, "new": old + 0.2 * np.sin(np.arange(60.0))})
    found = compared(frame, "new", "old")
    numbers = [found[name] for name in ("gap", *TEST[2:4], "p_value")]
    by_hand = (-0.0150000000, -0.0864061140, 0.0564061140, 0.6696484130)
    assert numbers == pytest.approx(by_hand, abs=1e-10)
    assert found["gap_se"] ** 2 == pytest.approx(0.0012088014, abs=1e-10)
    by_delong = compared(frame, "new", "old", method="delong")
    assert by_delong["gap_se"] ** 2 == pytest.approx(0.0002695007, abs=1e-10)


@pytest.mark.parametrize("method", METHODS)
@given(frame=FRAMES)
def test_weights_give_squares_of_changes_of_placements(
    frame: pl.DataFrame, method: Literal["delong"] | None
) -> None:
    expected = definition(frame, "a", "b", weight="w", method=method)
    assume(expected.variance > 1e-4)
    assert_is_test_of(compared(frame, weight="w", method=method), *expected)
    scaled = compared(frame, weight=pl.col("w") * 1e-9, method=method)
    assert_is_test_of(scaled, *expected)


@pytest.mark.parametrize("method", METHODS)
@given(frame=FRAMES)
def test_frequencies_are_repeated_rows(
    frame: pl.DataFrame, method: Literal["delong"] | None
) -> None:
    repeated = frame.select(
        pl.col("y", "a", "b").repeat_by(pl.col("w").cast(pl.Int64)).explode(empty_as_null=False)
    )
    expected = definition(repeated, "a", "b", method=method)
    assume(expected.variance > 1e-4)
    found = compared(frame, weight=wroc.frequency("w"), method=method)
    assert_is_test_of(found, *expected)
    assert found["n"] == repeated.height


@pytest.mark.parametrize("method", METHODS)
@given(frame=FRAMES, weight=st.sampled_from(["w", None]))
def test_clusters_add_up_the_changes_of_their_rows(
    frame: pl.DataFrame, weight: str | None, method: Literal["delong"] | None
) -> None:
    expected = definition(frame, "a", "b", weight=weight, cluster="c", method=method)
    assume(expected.variance > 1e-4)
    found = compared(frame, weight=weight, design="c", method=method)
    assert_is_test_of(found, *expected)


@given(FRAMES)
def test_clusters_of_one_row_have_the_variance_of_rows(frame: pl.DataFrame) -> None:
    expected = definition(frame, "a", "b", weight="w")
    found = compared(frame, weight="w", design=pl.int_range(pl.len()))
    assert found["gap_se"] ** 2 == pytest.approx(expected.variance, abs=1e-12)


@given(FRAMES, st.sampled_from([0.1, 0.5, 0.95, 0.99]))
def test_significant_exactly_where_the_interval_excludes_0(
    frame: pl.DataFrame, level: float
) -> None:
    found = compared(frame, weight="w", level=level)
    assume(abs(found["p_value"] - (1 - level)) > 1e-9)
    excluded = found["gap_low"] > 0 or found["gap_high"] < 0
    assert excluded == (found["p_value"] < 1 - level)


def test_perfect_scores_in_opposite_orders() -> None:
    frame = pl.DataFrame({"y": [1] * 3 + [0] * 6, "a": range(9, 0, -1), "b": range(9)})
    found = compared(frame)
    assert (found["value"], found["reference_value"], found["gap"]) == (1, 0, 1)
    assert_is_test_of(found, *definition(frame, "a", "b"))
    assert found["gap_high"] == 1
    assert 0 < found["gap_low"] < 1
    assert 0 < found["p_value"] < 0.05


@pytest.mark.parametrize("level", [0.5, 0.9, 0.999])
def test_level_is_that_of_the_interval(models: pl.DataFrame, level: float) -> None:
    found = compared(models, weight="w", level=level)
    assert_is_test_of(found, *definition(models, "a", "b", weight="w"), level=level)


@pytest.mark.parametrize("cluster", [None, "house"])
def test_every_pair_of_three_scores_in_every_group(
    models: pl.DataFrame, groups: Groups, cluster: str | None
) -> None:
    plan = wroc.compare(models.lazy(), "y", ["b", "a", "c"], weight="w", by="g", design=cluster)
    found = plan.collect()
    assert found.columns == ["g", *COLUMNS]
    pairs = [("b", "a"), ("b", "c"), ("a", "c")]
    expected = [(name, rows, pair) for name, rows in groups(models) for pair in pairs]
    for row, (name, rows, (a, b)) in zip(found.rows(named=True), expected, strict=True):
        assert (row["g"], row["model"], row["reference"]) == (name, a, b)
        clusters = models["house"].n_unique()
        by_hand = definition(rows, a, b, weight="w", cluster=cluster, clusters=clusters)
        assert_is_test_of(row, *by_hand)
        aucs = [auc_of(rows, score, "w") for score in (a, b)]
        assert [row["value"], row["reference_value"]] == pytest.approx(aucs, abs=1e-12)
        assert row["n"] == rows.height


def test_types_of_the_columns(models: pl.DataFrame) -> None:
    table = wroc.compare(models, "y", ["a", "b"], by="g")
    counts, names = table.select("n", "n_missing"), table.select("g", "model", "reference")
    assert set(table.select(FLOATS).dtypes) == {pl.Float64}
    assert set(counts.dtypes) == {pl.Int64}
    assert set(names.dtypes) == {pl.String}


def with_gaps(models: pl.DataFrame) -> pl.DataFrame:
    rows = pl.int_range(pl.len())
    return models.with_columns(
        y=pl.when(rows % 23 != 0).then("y"),
        a=pl.when(rows % 5 != 0).then("a"),
        b=pl.when(rows % 7 == 0).then(float("nan")).otherwise("b"),
        c=pl.when(rows % 11 != 0).then("c"),
        w=pl.when(rows % 13 == 0).then(0.0).when(rows % 17 != 0).then("w"),
    )


def test_rows_without_all_scores_are_left_out_of_every_pair(models: pl.DataFrame) -> None:
    frame = with_gaps(models)
    plan = wroc.compare(frame.lazy(), "y", ["a", "b", "c"], weight="w")
    there = frame.filter(pl.col("w").ne_missing(0))
    complete = there.filter(pl.col("b").is_not_nan()).drop_nulls()
    for row in plan.collect().rows(named=True):
        pair = row["model"], row["reference"]
        assert_is_test_of(row, *definition(complete, *pair, weight="w"))
        assert (row["n"], row["n_missing"]) == (complete.height, there.height - complete.height)


def holm(p_values: list[float]) -> list[float]:
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted, highest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        highest = max(highest, (len(p_values) - rank) * p_values[index])
        adjusted[index] = min(highest, 1.0)
    return adjusted


def benjamini_hochberg(p_values: list[float]) -> list[float]:
    adjusted: list[float] = stats.false_discovery_control(p_values, method="bh").tolist()
    return adjusted


def unadjusted(p_values: list[float]) -> list[float]:
    return p_values


ADJUSTMENTS = {"holm": holm, "bh": benjamini_hochberg, "none": unadjusted}


@pytest.mark.parametrize("adjust", ADJUSTMENTS)
def test_all_tests_of_the_table_are_one_family(models: pl.DataFrame, adjust: Any) -> None:
    one_class = models.filter(y=1).head(20).with_columns(g=pl.lit("bb"))
    one_row = models.filter(y=0).head(20).vstack(models.filter(y=1).head(1))
    frame = pl.concat([models, one_class, one_row.with_columns(g=pl.lit("cc"))])
    frame = frame.with_columns(same=pl.col("a") * 2)
    scores, options = ["a", "b", "c", "same"], {"by": "g", "adjust": adjust}
    plan = wroc.compare(frame.lazy(), "y", scores, method="delong", **options)
    found = plan.collect()
    assert found["g"].to_list() == [g for g in ["a", "b", "bb", "c", "cc", "d"] for _ in range(6)]
    no_tests = found.filter(pl.col("p_value").is_null())
    assert no_tests.group_by("g", maintain_order=True).len().rows() == [("bb", 6), ("cc", 6)]
    assert no_tests["p_adjusted"].null_count() == no_tests.height
    # The score that ranks like another is a test with a p-value of 1.
    tests = found.filter(pl.col("p_value").is_not_null())
    expected = ADJUSTMENTS[adjust](tests["p_value"].to_list())
    assert tests["p_adjusted"].to_list() == pytest.approx(expected, rel=1e-12)


def test_holm_is_the_default(models: pl.DataFrame) -> None:
    table = wroc.compare(models, "y", ["a", "b", "c"], by="g")
    assert table["p_adjusted"].to_list() == pytest.approx(holm(table["p_value"].to_list()))
    assert table["p_adjusted"].to_list() != pytest.approx(table["p_value"].to_list())


@pytest.mark.parametrize("options", [{}, {"weight": "w"}, {"weight": "w", "design": "house"}])
def test_scores_that_rank_alike_do_not_differ(
    models: pl.DataFrame, options: dict[str, Any]
) -> None:
    alike = models.with_columns(b=pl.col("a").exp())
    plan = wroc.compare(alike.lazy(), "y", ["a", "b"], **options)
    found = plan.collect().row(0, named=True)
    assert [found[name] for name in ("gap", "p_value", "p_adjusted")] == [0, 1, 1]
    assert found["value"] == pytest.approx(found["reference_value"], rel=1e-12)
    # These rows in the same order do not show that all rows are: two pseudo-rows are not.
    weighted = models if "weight" in options else models.with_columns(w=1.0)
    share = pl.col("w") / pl.col("w").sum()
    h2 = weighted.group_by("y").agg(h2=(share**2).sum())["h2"].to_numpy()
    assert found["gap_se"] == pytest.approx(math.sqrt((h2**2).sum() / 2))
    assert found["gap_high"] == -found["gap_low"] > 0
    by_delong = wroc.compare(alike, "y", ["a", "b"], method="delong", **options)
    assert by_delong.select(TEST).row(0) == pytest.approx((0, 0, 0, 0, 1), abs=1e-9)


@pytest.mark.parametrize("options", [{}, {"weight": "w"}, {"weight": "w", "design": "house"}])
def test_equal_columns_do_not_differ(models: pl.DataFrame, options: dict[str, Any]) -> None:
    table = wroc.compare(models.with_columns(b="a"), "y", ["a", "b"], by="g", **options)
    assert set(table.select(TEST).rows()) == {(0.0, 0.0, 0.0, 0.0, 1.0)}


def test_difference_without_a_variance_is_tested_with_pseudo_rows() -> None:
    frame = pl.DataFrame({"y": [1, 1, 0, 0], "a": [4, 3, 2, 1], "b": [1, 1, 1, 1]})
    found = compared(frame)
    # Both rows of each class change by one half: each of two classes has one degree of freedom.
    variance = 2 * 0.5**2 / 2 * (16 / 18) ** 2
    assert_is_test_of(found, 0.5, variance, df=2)
    by_delong = compared(frame, method="delong")
    assert [by_delong[name] for name in TEST] == [0.5, 0.0, 0.5, 0.5, 0.0]


@pytest.mark.parametrize("rows", [2, 3, 4, 5, 6, 7, 10, 13])
def test_equal_differences_of_all_placements_have_no_variance(rows: int) -> None:
    """Classes take turns; one score starts with a negative, the other with a positive."""
    turns = list(range(2 * rows))
    swapped = [place + 1 if place % 2 == 0 else place - 1 for place in turns]
    frame = pl.DataFrame({"y": [0, 1] * rows, "a": turns, "b": swapped})
    found = compared(frame, method="delong")
    assert found["gap"] == pytest.approx(1 / rows)
    assert found["gap_se"] == pytest.approx(0, abs=1e-7)
    careful = compared(frame)
    # All rows carry the difference.
    assert careful["gap_se"] == pytest.approx(16 / (16 + rows) / rows)


def test_one_class_has_nothing_but_counts(models: pl.DataFrame) -> None:
    frame = models.with_columns(y=pl.when(g="b").then(1).otherwise("y"))
    plan = wroc.compare(frame.lazy(), "y", ["a", "b"], weight="w", by="g")
    found = plan.collect()
    row = found.row(1, named=True)
    assert row["g"] == "b"
    assert {row[name] for name in FLOATS} == {None}
    assert row["n"] == frame.filter(g="b").height
    others = found.filter(pl.col("g") != "b")
    assert others.select(FLOATS).null_count().row(0) == (0,) * len(FLOATS)


def test_one_cluster_in_a_class_has_a_difference_but_no_test(models: pl.DataFrame) -> None:
    frame = models.with_columns(house=pl.when(y=1).then(99).otherwise("house"))
    found = compared(frame, weight="w", design="house")
    assert found["gap"] == pytest.approx(
        auc_of(frame, "a", "w") - auc_of(frame, "b", "w"), abs=1e-12
    )
    assert {found[name] for name in [*TEST[1:], "p_adjusted"]} == {None}


def test_one_row_in_a_class_has_the_variance_of_pseudo_rows(models: pl.DataFrame) -> None:
    frame = pl.concat([models.filter(y=0), models.filter(y=1).head(1)])
    found = compared(frame, weight="w")
    assert_is_test_of(found, *definition(frame, "a", "b", weight="w"))
    for options in ({"method": "delong"}, {"paired": False}):
        without = compared(frame, weight="w", **options)
        assert without["gap"] == pytest.approx(found["gap"], abs=1e-12)
        assert {without[name] for name in [*TEST[1:], "p_adjusted"]} == {None}


@pytest.mark.parametrize("options", [{}, {"weight": "w", "design": "house"}])
def test_swapping_the_scores_flips_the_sign(models: pl.DataFrame, options: dict[str, Any]) -> None:
    found, turned = (compared(models, *pair, **options) for pair in (("a", "b"), ("b", "a")))
    assert (turned["model"], turned["reference"]) == ("b", "a")
    assert (turned["value"], turned["reference_value"]) == pytest.approx(
        (found["reference_value"], found["value"])
    )
    flipped = [-found[name] for name in ("gap", "gap_high", "gap_low")]
    names = ("gap", "gap_low", "gap_high")
    assert [turned[name] for name in names] == pytest.approx(flipped, rel=1e-11)
    for name in ("gap_se", "p_value"):
        assert turned[name] == pytest.approx(found[name], rel=1e-10)


def test_scores_labels_and_keys_may_be_expressions(models: pl.DataFrame) -> None:
    label = pl.when(y=1).then(pl.lit("yes")).otherwise(pl.lit("no"))
    scores = [pl.col("a"), (pl.col("a") - pl.col("c")).alias("less")]
    key = (pl.col("g") == "a").alias("first")
    table = wroc.compare(models, label, scores, by=key, pos_label="yes")
    assert table.select("first", "model", "reference").rows() == [
        (False, "a", "less"),
        (True, "a", "less"),
    ]
    frame = models.with_columns(less=scores[1])
    for row, rows in zip(
        table.rows(named=True),
        (frame.filter(pl.col("g") != "a"), frame.filter(g="a")),
        strict=True,
    ):
        assert_is_test_of(row, *definition(rows, "a", "less"))


@pytest.mark.parametrize("cluster", [None, "house"])
def test_no_rows_have_no_difference(models: pl.DataFrame, cluster: str | None) -> None:
    empty = models.clear().lazy()
    grouped = wroc.compare(empty, "y", ["a", "b"], by="g", design=cluster)
    assert grouped.collect().height == 0
    assert grouped.collect_schema().names() == ["g", *COLUMNS]
    whole = wroc.compare(empty, "y", ["a", "b"], design=cluster).collect()
    assert whole.select(FLOATS).row(0) == (None,) * len(FLOATS)
    assert whole.select("n", "n_missing").row(0) == (0, 0)


ERRORS: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "one score": (
        {"score": "a"},
        ValueError,
        r"^`score` must hold two or more columns to compare; found \['a'\]$",
    ),
    "list of one score": (
        {"score": ["a"]},
        ValueError,
        r"^`score` must hold two or more columns to compare; found \['a'\]$",
    ),
    "score twice": (
        {"score": ["a", "a"]},
        ValueError,
        r"^`score` must not name a column twice; found 'a' twice$",
    ),
    "text score": (
        {"score": ["a", "g"]},
        TypeError,
        r"^`score` must be numeric; found column 'g' of type String$",
    ),
    "unpaired in a design": (
        {"paired": False, "design": "house"},
        ValueError,
        r"^`paired` must be True with a `design`; found False$",
    ),
    "unknown cluster": (
        {"design": "family"},
        ColumnNotFoundError,
        r"^`design` must name a column of the frame; found no column 'family' among \['g', ",
    ),
    "by named like a result": (
        {"by": pl.col("g").alias("p_value")},
        ValueError,
        r"^`by` must not take the name of a result column; found 'p_value'",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.parametrize("lazy", [False, True], ids=["frame", "lazy"])
def test_bad_arguments_are_refused_at_once(models: pl.DataFrame, name: str, lazy: bool) -> None:
    options, error, message = ERRORS[name]
    frame: Any = models.lazy() if lazy else models
    with pytest.raises(error, match=message):
        wroc.compare(frame, "y", **({"score": ["a", "b"]} | options))


def test_verdicts_are_those_of_adjusted_p_values(models: pl.DataFrame) -> None:
    table = wroc.compare(models, "y", ["a", "b", "c"], weight="w", by="g", level=0.8)
    tested = table.drop_nulls("p_adjusted")
    is_different = tested["p_adjusted"] <= 0.2
    assert (tested["verdict"] == "different").to_list() == is_different.to_list()
    assert set(tested.filter(~is_different)["verdict"]) <= {"inconclusive"}
    assert tested["reason"].null_count() == tested.height
    one_class = models.with_columns(y=1)
    row = wroc.compare(one_class, "y", ["a", "b"], weight="w").row(0, named=True)
    assert (row["verdict"], row["reason"]) == (None, "undefined")
