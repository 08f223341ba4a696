"""Ranges of cumulative differences: worked numbers, brute force, and what must not change them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_ranges import calibration_steps, picked, range_quantile, range_tail
from polars.testing import assert_frame_equal

import polars_wroc as wroc

ROWS = pl.DataFrame(
    {
        "s": [0.9, 0.8, 0.8, 0.6, 0.5, 0.4, 0.3, 0.2, 0.2, 0.1],
        "y": [1, 1, 0, 1, 0, 1, 0, 0, 1, 0],
        "w": [1, 2, 1, 1, 1, 1, 2, 1, 1, 3],
    }
)
DISTINCT = ROWS.with_columns(
    s=pl.Series([0.95, 0.85, 0.8, 0.7, 0.6, 0.5, 0.45, 0.3, 0.2, 0.1]),
    y=pl.Series([1, 0, 1, 0, 0, 1, 0, 0, 0, 0]),
)
PLACE = ["direction", "from_score", "to_score"]


def one(table: pl.DataFrame) -> dict[str, Any]:
    assert table.height == 1
    return table.row(0, named=True)


def sample(seed: int, rows: int, *, digits: int = 2) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    s = random.beta(1, 2, rows).round(digits).clip(0.01, 0.99)
    return pl.DataFrame(
        {
            "s": s,
            "y": random.random(rows) < s,
            "w": random.integers(1, 5, rows),
            "g": random.integers(0, 3, rows),
            "c": random.integers(0, 12, rows),
        }
    )


@pytest.mark.usefixtures("any_rows")
@pytest.mark.parametrize(
    ("frame", "weight", "size", "share", "off", "p_value", "place"),
    [
        (ROWS, None, 0.09, 0.4, -0.225, 0.9762121327, ("too low", 0.2, 0.4)),
        (ROWS, "w", 0.0428571429, 0.1428571429, -0.3, 0.9999956619, ("too low", 0.2, 0.2)),
        (DISTINCT, "w", 0.2857142857, 13 / 14, 4 / 13, 0.0749879275, ("too high", 0.1, 0.85)),
    ],
)
def test_worked_rows_have_the_worked_miscalibration(
    frame: pl.DataFrame,
    weight: str | None,
    size: float,
    share: float,
    off: float,
    p_value: float,
    place: tuple[object, ...],
) -> None:
    found = one(wroc.calibration_test(frame, "y", "s", weight=weight))
    names = ("largest_miscalibration", "weight_share", "mean_calibration_error", "p_value")
    assert [found[name] for name in names] == pytest.approx([size, share, off, p_value], abs=1e-10)
    assert tuple(found[name] for name in PLACE) == place
    assert found["mean_score"] - found["observed_rate"] == pytest.approx(off)


def test_ten_rows_have_the_worked_limits() -> None:
    s, y, w = (ROWS[name].to_list() for name in "syw")
    ones = [1.0] * 10
    range_ = picked(calibration_steps(s, y, ones, ones), 1e-9)
    assert range_.sd / 10 == pytest.approx(0.1326649916, abs=1e-10)
    assert range_.correction == pytest.approx(0.2202731785, abs=1e-10)
    x = range_.size / range_.sd
    assert (x, range_tail(x)) == pytest.approx((0.6784005253, 0.9995989725), abs=1e-10)
    sd = math.sqrt(sum((p - label) ** 2 for p, label in zip(s, y, strict=True)))
    # The quantile behind these was off by 1.3e-5 of its size.
    limits = range_.limits(range_quantile(0.05), sd)
    assert limits == pytest.approx((-1.1595558138, 0.7095558138), rel=2e-5)
    weighted = picked(calibration_steps(s, y, w, [x * x for x in w]), 1e-9)
    assert weighted.sd / 14 == pytest.approx(0.1353378237, abs=1e-10)
    assert weighted.correction == pytest.approx(0.2455750778, abs=1e-10)
    limits = weighted.limits(range_quantile(0.05), weighted.sd)
    assert limits == pytest.approx((-2.6662381625, 2.0662381625), rel=2e-5)


def test_mcgrad_orders_tied_rows() -> None:
    """`mcgrad.metrics.ecce` of MCGrad 0.1.5: 0.12, of the same rows in reverse order 0.09."""
    for rows, theirs in ((ROWS, 0.12), (ROWS.reverse(), 0.09)):
        # Each row is a step of its own there.
        ordered = rows.sort("s", maintain_order=True)
        sums = np.cumsum([0.0, *(ordered["s"] - ordered["y"])]) / 10
        assert sums.max() - sums.min() == pytest.approx(theirs, abs=1e-12)
        found = one(wroc.calibration_test(rows, "y", "s"))["largest_miscalibration"]
        assert found == pytest.approx(0.09, abs=1e-12)


def test_mcgrad_on_distinct_scores() -> None:
    """`mcgrad.metrics.ecce`, `ecce_sigma` and `ecce_pvalue` of MCGrad 0.1.5, without correction."""
    s, y, w = (DISTINCT[name].to_list() for name in "syw")
    range_ = picked(calibration_steps(s, y, w, [x * x for x in w]), 1e-9)
    assert range_.size / 14 == pytest.approx(0.2857142857, abs=1e-10)
    assert range_.size / range_.sd == pytest.approx(2.1118547094, abs=1e-10)
    assert range_tail(range_.size / range_.sd) == pytest.approx(0.1386034040, abs=1e-10)


@pytest.mark.slow(reason="compares all intervals in plain Python")
@pytest.mark.usefixtures("any_rows")
@pytest.mark.parametrize("kind", ["none", "weights", "frequency"])
@pytest.mark.parametrize("seed", range(4))
def test_brute_force(kind: str, seed: int) -> None:
    frame = sample(seed, 60, digits=1 if seed % 2 else 3).cast({"y": pl.Int64})
    weight: Any = {"none": None, "weights": "w", "frequency": wroc.frequency("w")}[kind]
    table = wroc.calibration_test(frame.lazy(), "y", "s", weight=weight, by="g").collect()
    tests = table.height
    for row in table.iter_rows(named=True):
        rows = frame.filter(g=row["g"])
        s, y, w = (rows[name].to_list() for name in "syw")
        w = [1] * len(s) if kind == "none" else w
        squares = w if kind == "frequency" else [x * x for x in w]
        total = sum(w)
        range_ = picked(calibration_steps(s, y, w, squares), 1e-12 * total)
        residuals = sum(a * (p - b) ** 2 for a, p, b in zip(squares, s, y, strict=True))
        sd = math.sqrt(max(range_.sd**2, residuals))
        low, high = range_.limits(range_quantile(0.05 / tests), sd)
        expected = {
            "n": total if kind == "frequency" else len(s),
            "n_scores": len(set(s)),
            "largest_miscalibration": range_.size / total,
            "from_score": range_.low,
            "to_score": range_.high,
            "weight_share": range_.weight / total,
            "mean_calibration_error": range_.difference / range_.weight,
            "mean_calibration_error_low": max(low, -1),
            "mean_calibration_error_high": min(high, 1),
            "p_value": range_.p_value,
        }
        assert {name: row[name] for name in expected} == pytest.approx(expected, rel=1e-8)
        assert row["direction"] == ("too high" if range_.difference > 0 else "too low")
    p = sorted(table["p_value"])
    holm = [min(1.0, max((3 - j) * p[j] for j in range(i + 1))) for i in range(3)]
    assert sorted(table["p_adjusted"]) == pytest.approx(holm)


@pytest.mark.slow(reason="tries many random rows")
@settings(max_examples=10)
@given(st.integers(0, 10**6), st.floats(0.001, 1000))
def test_what_changes_nothing(seed: int, scale: float) -> None:
    frame = sample(seed, 120)
    table = wroc.calibration_test(frame, "y", "s", weight="w")
    for other in (frame.reverse(), frame.with_columns(pl.col("w") * scale)):
        found = wroc.calibration_test(other, "y", "s", weight="w")
        assert_frame_equal(found, table, rel_tol=1e-7)
    expected = one(table)
    mirrored = frame.with_columns(s=1 - pl.col("s"), y=~pl.col("y"))
    turned = one(wroc.calibration_test(mirrored, "y", "s", weight="w"))
    same = ("largest_miscalibration", "p_value", "effective_steps")
    assert [turned[name] for name in same] == pytest.approx([expected[name] for name in same])
    repeated = frame.select(pl.all().repeat_by("w").explode(empty_as_null=False))
    counted = wroc.calibration_test(frame, "y", "s", weight=wroc.frequency("w"))
    once = wroc.calibration_test(repeated, "y", "s")
    assert_frame_equal(counted, once, rel_tol=1e-9)


def test_clusters_by_hand() -> None:
    frame = sample(5, 400).with_columns(y=pl.when(pl.col("c") > 2).then("y").otherwise(True))
    table = wroc.calibration_test(frame, "y", "s", weight="w", design="c")
    found, alone = one(table), one(wroc.calibration_test(frame, "y", "s", weight="w"))
    s, y, w = (frame[name].to_list() for name in "syw")
    range_ = picked(calibration_steps(s, y, w, [x * x for x in w]), 1e-9)
    total = frame["w"].sum()
    z = pl.col("w") * (pl.col("s") - pl.col("y"))
    inside = pl.col("s").is_between(range_.low, range_.high)
    totals = frame.group_by("c").agg(all=z.sum(), inside=z.filter(inside).sum(), w=pl.sum("w"))
    share = totals["w"].to_numpy() / total
    s2, s3 = float((share**2).sum()), float((share**3).sum())
    factor = s2 / (s2 - 2 * s3 + s2**2)

    def variance(column: str) -> float:
        sums = totals[column].to_numpy()
        return factor * float(((sums - share * sums.sum()) ** 2).sum())

    of_picked = sum(step.variance for step in range_.steps)
    effect = max(1.0, variance("all") / range_.sd**2, variance("inside") / of_picked)
    x = range_.size / range_.sd / math.sqrt(effect) + range_.correction / math.sqrt(effect)
    assert effect > 1
    assert found["p_value"] == pytest.approx(range_tail(x))
    width = [
        each["mean_calibration_error_high"] - each["mean_calibration_error_low"]
        for each in (found, alone)
    ]
    assert width[0] == pytest.approx(width[1] * math.sqrt(effect))
    same = ["largest_miscalibration", *PLACE]
    assert [found[name] for name in same] == [alone[name] for name in same]


def test_replicate_weights_of_a_jackknife_are_nearly_clusters() -> None:
    frame = sample(6, 300)
    units = sorted(frame["c"].unique())
    factor = len(units) / (len(units) - 1)
    weights = [
        pl.when(pl.col("c") == unit).then(0.0).otherwise(pl.col("w") * factor).alias(f"r{unit}")
        for unit in units
    ]
    replicates = wroc.ReplicateWeights(weights, "jk1")
    found = one(wroc.calibration_test(frame, "y", "s", weight="w", design=replicates))
    clusters = one(wroc.calibration_test(frame, "y", "s", weight="w", design="c"))
    assert found["p_value"] == pytest.approx(clusters["p_value"], rel=0.1)
    names = ("mean_calibration_error_low", "mean_calibration_error_high")
    expected = [clusters[name] for name in names]
    assert [found[name] for name in names] == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("design", [None, "c", wroc.Survey("c", strata=pl.col("c") % 3)])
def test_segments_of_attributes_are_groups_with_one_family_of_tests(design: Any) -> None:
    frame = sample(7, 600).with_columns(pl.col("g").cast(pl.String), h=pl.col("c") % 2 > 0)
    options: dict[str, Any] = {"weight": "w", "design": design}
    found = wroc.calibration_test(frame, "y", "s", attributes=["g", "h"], **options)
    assert found["attribute"].to_list() == ["g"] * 3 + ["h"] * 2
    parts = []
    for name in ("g", "h"):
        part = wroc.calibration_test(frame, "y", "s", by=name, adjust="none", **options)
        parts.append(part.rename({name: "segment"}).cast({"segment": pl.String}))
    alone = pl.concat(parts)
    own = ["segment", "n", "direction", "from_score", "mean_calibration_error", "p_value"]
    assert_frame_equal(found.select(own), alone.select(own))
    p_value = alone["p_value"].drop_nulls().to_numpy()
    assert found["p_adjusted"].min() == pytest.approx(len(p_value) * p_value.min())
    two = frame.with_columns(t=pl.col("s") ** 2)
    both = wroc.calibration_test(two.lazy(), "y", ["t", "s"], attributes=["g", "h"], **options)
    assert both.collect()["model"].to_list() == ["t", "s"] * 5
    assert both.collect_schema() == both.collect().schema


def test_few_rows_have_a_range_but_no_test() -> None:
    found = one(wroc.calibration_test(ROWS, "y", "s"))
    assert found["largest_miscalibration"] == pytest.approx(0.09)
    nothing = ("p_value", "p_adjusted", "mean_calibration_error_low", "mean_calibration_error_high")
    assert [found[name] for name in nothing] == [None] * 4
    equal = pl.DataFrame({"y": [1, 0] * 40, "s": [0.4] * 80})
    found = one(wroc.calibration_test(equal, "y", "s"))
    assert (found["effective_steps"], found["p_value"]) == (pytest.approx(1), None)
    assert found["mean_calibration_error"] == pytest.approx(-0.1)


def test_impossible_rows_and_perfect_scores() -> None:
    frame = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.0, 0.0, 1.0, 1.0]})
    found = one(wroc.calibration_test(frame, "y", "s"))
    assert (found["n_impossible"], found["p_value"], found["effective_steps"]) == (2, None, None)
    right = frame.with_columns(s=pl.col("y").cast(pl.Float64))
    found = one(wroc.calibration_test(right, "y", "s"))
    assert found["largest_miscalibration"] == 0
    assert [found[name] for name in (*PLACE, "mean_calibration_error")] == [None] * 4


def test_no_rows_have_no_miscalibration() -> None:
    empty = pl.DataFrame(schema={"y": pl.Int8, "s": pl.Float64, "g": pl.String})
    assert wroc.calibration_test(empty, "y", "s", by="g").is_empty()
    found = one(wroc.calibration_test(empty, "y", "s"))
    assert (found["n"], found["largest_miscalibration"]) == (0, None)


def test_a_calibration_test_refuses_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="`score` must be a probability, from 0 to 1"):
        wroc.calibration_test(ROWS.with_columns(pl.col("s") * 2), "y", "s")
    counts = wroc.from_counts(wroc.score_counts(ROWS, "y", "s", bins=16))
    with pytest.raises(ValueError, match="`counts` must be by score for a calibration"):
        counts.calibration_test()
    mixed = pl.DataFrame({"y": [1, 0, -1], "s": [0.5, 0.4, 0.3]})
    with pytest.raises(ValueError, match="`label` must hold 0 and 1 or -1 and 1"):
        wroc.calibration_test(mixed, "y", "s")
    with pytest.raises(ValueError, match="`reference` must come with `attributes`; found 'rest'"):
        wroc.calibration_test(ROWS, "y", "s", reference="rest")
    with pytest.raises(ValueError, match="`by` must be None with `attributes`; found 'w'"):
        wroc.calibration_test(ROWS, "y", "s", by="w", attributes="w")


@pytest.mark.parametrize(
    ("scores", "labels", "reason"),
    [
        ([0.5] * 200, [0, 1] * 100, "one score"),
        ([0.4, 0.6] * 4, [0, 1] * 4, "fewer than 5 expected rows of a class"),
        ([0.5] * 199 + [0.501], [0, 1] * 100, "few scores"),
        ([0.0, 1.0] * 100, [0, 1] * 100, "no variance"),
        ([None] * 10, [0, 1] * 5, "undefined"),
        ([0.2, 0.4, 0.6, 0.8] * 50, [0, 0, 1, 1] * 50, None),
    ],
)
def test_a_missing_test_has_a_reason(
    scores: list[float | None], labels: list[int], reason: str | None
) -> None:
    rows = pl.DataFrame({"s": scores, "y": labels}, schema={"s": pl.Float64, "y": pl.Int64})
    found = wroc.calibration_test(rows, "y", "s").row(0, named=True)
    assert found["reason"] == reason
    assert (found["p_value"] is None) == (reason is not None)


def test_groups_without_equal_scores_have_a_reason() -> None:
    group = ["a", "a", "b", "b"] * 20
    rows = pl.DataFrame({"s": [0.1, 0.2, 0.8, 0.9] * 20, "y": [0, 1] * 40, "g": group})
    found = wroc.calibration_test(rows, "y", "s", attributes="g", reference="rest")
    assert found["reason"].to_list() == ["one block of scores"] * 2
