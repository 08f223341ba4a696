"""Paired tests by score-type intervals: against the definition in plain Python, and properties."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import plain_score
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from plain_roc import weight_as
from polars.testing import assert_frame_equal
from scipy import stats
from wide_tables import wide_gaps

import polars_wroc as wroc

Engine = Literal["in-memory", "streaming"]
TEST = ["difference", "difference_low", "difference_high", "p_value"]
NUMBERS = ["auc_a", "auc_b", *TEST, "difference_se", "z", "p_adjusted"]
ROWS = st.lists(
    st.tuples(
        st.booleans(),
        st.integers(0, 5),
        st.integers(0, 5),
        st.sampled_from([0.0, 0.25, 1.0, 3.0]),
    ),
    min_size=4,
    max_size=40,
).map(lambda rows: pl.DataFrame(rows, schema=["y", "a", "b", "w"], orient="row"))
LEVELS = st.sampled_from([0.1, 0.5, 0.95, 0.99])


def covariance(frame: pl.DataFrame, *, frequency: bool) -> npt.NDArray[np.float64] | None:
    """Covariance matrix of the AUCs of a and b, with all pairs; None with one row in a class."""
    total = np.zeros((2, 2))
    for sign in (1, -1):
        sides = [frame.filter(pl.col("y") == (y == sign), pl.col("w") > 0) for y in (1, -1)]
        w, v = (side["w"].to_numpy() for side in sides)
        h = w / w.sum()
        each = np.full(len(h), 1 / w.sum()) if frequency else h
        influence = []
        for score in ("a", "b"):
            s, t = (side[score].to_numpy().astype(float) for side in sides)
            x = (np.sign(sign * (t - s[:, None])) + 1) / 2 @ v / v.sum()
            influence.append(x - h @ x)
        h2, h3 = h @ each, h @ each**2
        if h2 - 2 * h3 + h2**2 < 1e-12 * h2:
            return None
        total += (
            h2 / (h2 - 2 * h3 + h2**2) * (h * each * np.array(influence)) @ np.transpose(influence)
        )
    return total


def definition(
    frame: pl.DataFrame, level: float, *, frequency: bool = False
) -> tuple[plain_score.Gap, float | None] | None:
    """The difference, its limits and p-value, and its variance; None without both classes."""
    models = [
        plain_score.auc_of(
            frame.with_columns(y=pl.col("y").cast(int), s=score), frequency=frequency
        )
        for score in ("a", "b")
    ]
    one, other = models
    if one is None or other is None:
        return None
    matrix = covariance(frame, frequency=frequency)
    correlation, variance = 0.0, None
    if matrix is not None:
        variance = float(np.array([1, -1]) @ matrix @ np.array([1, -1]))
        if min(np.diag(matrix)) > 1e-12:
            correlation = float(matrix[0, 1] / np.sqrt(matrix[0, 0] * matrix[1, 1]))
    difference = other.delta - one.delta
    if abs(difference) < 1e-12:
        difference = 0.0
    correlation = min(max(correlation, -0.95), 0.95)
    return plain_score.gap(one, other, level, difference, correlation=correlation), variance


def compared(frame: pl.DataFrame, *scores: str, **options: Any) -> dict[str, Any]:
    table = wroc.compare(frame, "y", scores or ("a", "b"), method="score", **options)
    return table.row(0, named=True)


def assert_numbers(found: dict[str, Any], expected: dict[str, Any]) -> None:
    tables = (pl.DataFrame([row]).select(pl.col(NUMBERS).cast(float)) for row in (found, expected))
    # The standard error is the root of a difference.
    assert_frame_equal(*tables, rel_tol=1e-9, abs_tol=1e-7)


def models(seed: int, rows: int = 400, good: float = 2.0) -> pl.DataFrame:
    """Three correlated scores in groups of different sizes."""
    random = np.random.default_rng(seed)
    y = random.random(rows) < 0.4
    common = random.normal(size=rows)
    scores = {
        name: (better * y + common + spread * random.normal(size=rows)).round(1)
        for name, better, spread in (("a", good, 0.5), ("b", good * 1.3, 1.0), ("c", good, 2.0))
    }
    g = np.array(list("uvwx"))[random.choice(4, size=rows, p=[0.05, 0.15, 0.3, 0.5])]
    return pl.DataFrame({"g": g, "y": y, "w": random.lognormal(size=rows), **scores})


@given(ROWS, LEVELS, st.booleans())
def test_against_the_definition(frame: pl.DataFrame, level: float, frequency: bool) -> None:
    weight_type = "frequency" if frequency else "probability"
    if frequency:
        frame = frame.with_columns(pl.col("w").ceil())
    expected = definition(frame, level, frequency=frequency)
    found = compared(frame, weight=weight_as("w", weight_type), level=level)
    if expected is None:
        assert [found[name] for name in (*TEST, "difference_se", "z")] == [None] * 6
        return
    gap, variance = expected
    assert [found[name] for name in TEST] == pytest.approx(gap, rel=1e-10, abs=1e-10)
    if variance is None:
        assert found["difference_se"] is None
    else:
        assert found["difference_se"] ** 2 == pytest.approx(variance, abs=1e-12)
    z = -np.sign(gap.value) * stats.norm.ppf(gap.p_value / 2)
    assert found["z"] == pytest.approx(z, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_pairs_of_three_scores_in_groups(seed: int, engine: Engine) -> None:
    frame = models(seed)
    plan = wroc.compare(
        frame.lazy(), "y", ["b", "a", "c"], weight="w", by="g", method="score", level=0.9
    )
    found = plan.collect(engine=engine)
    pairs = [("b", "a"), ("b", "c"), ("a", "c")]
    groups = [(g, *pair) for g in "uvwx" for pair in pairs]
    assert found.select("g", "model_a", "model_b").rows() == groups
    for row, (g, a, b) in zip(found.rows(named=True), groups, strict=True):
        rows = frame.filter(g=g).select("y", "w", a=a, b=b)
        gap, variance = definition(rows, 0.9) or (None, None)
        assert [row[name] for name in TEST] == pytest.approx(gap, rel=1e-10, abs=1e-10)
        assert row["difference_se"] ** 2 == pytest.approx(variance, rel=1e-10)
        assert (row["n"], row["n_missing"]) == (rows.height, 0)
    p_values = sorted(found["p_value"])
    holm = np.maximum.accumulate(np.array(p_values) * np.arange(len(p_values), 0, -1)).clip(max=1)
    assert found.sort("p_value")["p_adjusted"].to_list() == pytest.approx(holm.tolist())


def test_an_infinite_quantile_is_null() -> None:
    frame = pl.DataFrame({"y": [0, 0, 1, 1], "a": [0, 0, 0, 1], "b": [1, 1, 0, 1]})
    found = compared(frame, "a", "b")
    assert found["difference_low"] > 0
    assert (found["z"], found["p_value"]) == (None, 0.0)


@pytest.mark.slow
@given(ROWS)
def test_turning_the_pair_round_negates_the_interval(frame: pl.DataFrame) -> None:
    found, turned = (compared(frame, *pair, weight="w") for pair in (("a", "b"), ("b", "a")))
    assume(found["z"] is not None)
    negated = [-turned[name] for name in ("difference", "z", "difference_high", "difference_low")]
    names = ("difference", "z", "difference_low", "difference_high")
    assert [found[name] for name in names] == pytest.approx(negated, rel=1e-9, abs=1e-12)
    assert found["p_value"] == pytest.approx(turned["p_value"], rel=1e-9)


@given(ROWS, LEVELS)
def test_significant_exactly_where_the_interval_excludes_0(
    frame: pl.DataFrame, level: float
) -> None:
    found = compared(frame, weight="w", level=level)
    assume(found["p_value"] is not None and abs(found["p_value"] - (1 - level)) > 1e-9)
    excluded = found["difference_low"] > 0 or found["difference_high"] < 0
    assert excluded == (found["p_value"] < 1 - level)


@pytest.mark.parametrize("seed", range(4))
def test_interval_at_the_level_of_the_p_value_ends_at_0(seed: int) -> None:
    found = compared(models(seed, 80))
    assert 0.001 < found["p_value"] < 0.999
    again = compared(models(seed, 80), level=1 - found["p_value"])
    end = "difference_low" if found["difference"] > 0 else "difference_high"
    assert again[end] == pytest.approx(0, abs=1e-9)
    if found["z"] is None:
        assert found["p_value"] == 0
        return
    assert found["p_value"] == pytest.approx(2 * stats.norm.sf(abs(found["z"])), rel=1e-10)


def test_scores_that_rank_alike_do_not_differ(engine: Engine) -> None:
    alike = models(1).with_columns(b=pl.col("a").exp())
    plan = wroc.compare(alike.lazy(), "y", ["a", "b"], weight="w", method="score")
    found = plan.collect(engine=engine).row(0, named=True)
    assert [found[name] for name in ("difference", "difference_se", "z", "p_value")] == [
        0.0,
        0.0,
        0.0,
        1.0,
    ]
    auc = wroc.summary(alike, "y", "a", weight="w").row(0, named=True)
    below, above = auc["auc"] - auc["auc_low"], auc["auc_high"] - auc["auc"]
    # The correlation is 1, but counts as 0.95.
    margin = np.sqrt(below**2 + above**2 - 2 * 0.95 * below * above)
    limits = [found["difference_low"], found["difference_high"]]
    assert limits == pytest.approx([-margin, margin], rel=1e-10)


def test_perfect_scores() -> None:
    y = [1, 1, 1, 0, 0, 0, 0, 0, 0]
    perfect = [9, 8, 7, 6, 5, 4, 3, 2, 1]
    frame = pl.DataFrame({"y": y, "a": perfect, "b": perfect[::-1], "c": [0] * 9})
    # 3 against 6 rows: the interval of a perfect score is 0.4385 to 1 (methods2.md, section 1).
    below = 1 - 0.43850
    found = compared(frame.with_columns(d=-pl.col("b")), "a", "d")
    limits = (0.0, 0.0, -below, below, 1.0)
    assert [
        found[name]
        for name in ("difference", "difference_se", "difference_low", "difference_high", "p_value")
    ] == (pytest.approx(limits, abs=6e-6))
    found = compared(frame, "a", "b")
    assert [found[name] for name in ("difference", "difference_se")] == [1.0, 0.0]
    # Without variances there is no correlation.
    assert found["difference_low"] == pytest.approx(1 - below * np.sqrt(2), abs=1e-5)
    assert found["difference_high"] == 1.0
    assert 0 < found["p_value"] < 0.05
    turned = compared(frame, "b", "a")
    assert (turned["difference"], turned["p_value"]) == (-1.0, pytest.approx(found["p_value"]))
    tied = compared(frame, "a", "c")
    assert tied["difference"] == 0.5
    assert tied["difference_low"] < 0.5 < tied["difference_high"] < 1


def test_one_row_in_a_class_has_limits_but_no_standard_error() -> None:
    frame = pl.DataFrame({"y": [1, 0, 0, 0, 0], "a": [5, 4, 3, 2, 1], "b": [2, 4, 3, 1, 1]})
    found = compared(frame)
    assert (found["difference_se"], found["difference"]) == (None, 0.5)
    assert found["difference_low"] < 0 < found["difference"] < found["difference_high"] <= 1
    assert 0.05 < found["p_value"] < 1


def test_one_class_has_nothing_but_counts(engine: Engine) -> None:
    frame = models(2).with_columns(y=pl.col("y") | (pl.col("g") == "v"))
    plan = wroc.compare(frame.lazy(), "y", ["a", "b"], weight="w", by="g", method="score")
    found = plan.collect(engine=engine)
    alone = found.row(1, named=True)
    assert [alone[name] for name in NUMBERS] == [None] * len(NUMBERS)
    assert alone["n"] == frame.filter(g="v").height
    assert found["p_value"].null_count() == 1


@given(ROWS)
def test_frequencies_are_repeated_rows(frame: pl.DataFrame) -> None:
    counted = frame.with_columns(w=pl.col("w").ceil())
    repeated = counted.select(
        pl.col("y", "a", "b").repeat_by(pl.col("w").cast(pl.Int64)).explode(empty_as_null=False)
    )
    assume(repeated.height > 0)
    found = compared(counted, weight=wroc.frequency("w"))
    expected = compared(repeated)
    assert_numbers(found, expected)


@given(ROWS, st.sampled_from([1e-9, 1e9]))
def test_scale_of_the_weights_makes_no_difference(frame: pl.DataFrame, scale: float) -> None:
    found, scaled = (compared(frame, weight=weight) for weight in ("w", pl.col("w") * scale))
    assert_numbers(scaled, found)


@pytest.mark.slow
def test_shared_rows_are_worth_more_than_separate_ones() -> None:
    """The scores are correlated, so that the interval is shorter than that of other rows."""
    frame = models(3)
    shared = compared(frame, weight="w")
    apart = pl.concat([frame.select("y", "w", s=name, g=pl.lit(name)) for name in ("a", "b")])
    gap = wide_gaps(apart, "y", "s", weight="w", by="g", reference="b").row(0, named=True)
    assert shared["difference"] == pytest.approx(gap["auc_gap"], abs=1e-12)
    width = shared["difference_high"] - shared["difference_low"]
    assert width < 0.85 * (gap["auc_gap_high"] - gap["auc_gap_low"])


def methods(frame: pl.DataFrame, **options: Any) -> list[dict[str, Any]]:
    """The same difference by default, by DeLong's method and by score."""
    given: tuple[Literal["delong", "score"] | None, ...] = (None, "delong", "score")
    tables = [wroc.compare(frame, "y", ["a", "b"], method=each, **options) for each in given]
    return [table.row(0, named=True) for table in tables]


def test_default_is_delongs_where_enough_rows_are_misranked() -> None:
    default, delong, by_score = methods(models(4))
    assert default == delong
    assert default["difference_se"] == pytest.approx(by_score["difference_se"], rel=1e-12)
    assert default["p_value"] != pytest.approx(by_score["p_value"])


def misranked(rows: int, lost: float, *, turned: bool = False) -> pl.DataFrame:
    """Positives of which one score ranks ``lost`` below all negatives, as many in each class."""
    wrong = np.repeat([True, False], [round(lost), rows - round(lost)])
    a = np.append(np.where(wrong, -1.0, 2.0), np.zeros(rows))
    sign = -1 if turned else 1
    b = np.append(np.linspace(-1, 2, rows), np.linspace(-0.5, 0.5, rows))
    return pl.DataFrame({"y": [1] * rows + [0] * rows, "a": a * sign, "b": b, "w": 0.1})


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("lost", "by_score"), [(2, True), (3, False)])
def test_default_is_by_score_where_fewer_than_three_rows_are_misranked(
    lost: float, by_score: bool, turned: bool
) -> None:
    """With 20 rows in each class the AUC is 1 - 3 / 20, and 20 * (3 / 20) is 3 but for rounding."""
    for options in ({}, {"weight": "w"}):
        default, delong, score = methods(misranked(20, lost, turned=turned), **options)
        assert default == (score if by_score else delong)
        assert delong["p_value"] != pytest.approx(score["p_value"])


def number_misranked(frame: pl.DataFrame, row: dict[str, Any], *, frequency: bool = False) -> float:
    """The smallest effective number of misranked rows, or of those that are not."""
    shares = [share for name in ("auc_a", "auc_b") for share in (row[name], 1 - row[name])]
    w = [frame.filter(y=y)["w"].to_numpy() for y in (True, False)]
    sizes = [each.sum() if frequency else each.sum() ** 2 / (each**2).sum() for each in w]
    return float(min(shares) * min(sizes))


@given(ROWS, st.booleans())
def test_default_counts_effective_misranked_rows(frame: pl.DataFrame, frequency: bool) -> None:
    frame = frame.with_columns(pl.col("w").ceil()) if frequency else frame
    weight = weight_as("w", "frequency" if frequency else "probability")
    default, delong, score = methods(frame, weight=weight)
    assume(delong["auc_a"] is not None)
    number = number_misranked(frame, delong, frequency=frequency)
    assume(abs(number - 3) > 1e-9)
    assert default == (score if number < 3 else delong)


def test_pairs_of_one_table_have_the_method_that_each_needs(engine: Engine) -> None:
    frame = models(3, 600, 1.0).with_columns(b=pl.col("y").cast(float))
    plan = wroc.compare(frame.lazy(), "y", ["a", "b", "c"], weight="w", by="g", adjust="none")
    few = []
    for row in plan.collect(engine=engine).partition_by("g", "model_a", "model_b"):
        rows, pair = frame.filter(g=row["g"].item()), row.select("model_a", "model_b").row(0)
        few.append(number_misranked(rows, row.row(0, named=True)) < 3)
        method: Literal["delong", "score"] = "score" if few[-1] else "delong"
        alone = wroc.compare(rows, "y", pair, weight="w", method=method, adjust="none")
        assert_frame_equal(row.drop("g"), alone, rel_tol=1e-10, abs_tol=1e-12)
    assert set(few) == {True, False}


@pytest.mark.parametrize("design", ["c", wroc.Survey("c", strata="h")])
def test_default_in_designs(design: Any) -> None:
    """Clusters are units of one stratum but by DeLong's method."""
    frame = models(5).with_columns(c=pl.int_range(pl.len()) // 5, h=pl.int_range(pl.len()) % 4)
    frame = frame.with_columns(c=pl.struct("c", "h"))
    default, delong, score = methods(frame, weight="w", design=design)
    one = wroc.Survey("c", strata=pl.lit("all")) if design == "c" else design
    _, expected, _ = methods(frame, weight="w", design=one)
    assert [default[name] for name in NUMBERS] == pytest.approx(
        [expected[name] for name in NUMBERS]
    )
    of_rows = delong["difference_se"] == pytest.approx(score["difference_se"], rel=1e-10)
    assert of_rows == (design != "c")
    perfect = frame.with_columns(b=pl.col("y").cast(float))
    default, _, score = methods(perfect, weight="w", design=design)
    assert_numbers(default, score)


@pytest.mark.slow
def test_pairs_in_several_batches_are_those_of_two_scores_each() -> None:
    frame = models(5).with_columns(
        (pl.col("a") * i + pl.col("b")).alias(f"s{i}") for i in range(12)
    )
    names = [f"s{i}" for i in range(12)]
    together = wroc.compare(frame, "y", names, weight="w", method="score", adjust="none")
    assert together.height == 66
    for row in together.partition_by("model_a", "model_b")[::9]:
        pair = row.select("model_a", "model_b").row(0)
        alone = wroc.compare(frame, "y", pair, weight="w", method="score", adjust="none")
        assert_frame_equal(row, alone, rel_tol=1e-9, abs_tol=1e-9)
