"""Calibration slope and intercept against statsmodels; O:E ratios against their definition."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import polars as pl
import polars.selectors as cs
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from plain_calibration import Coefficient, Z, intercept, oe_ratio, slope
from plain_roc import weight_as
from polars.testing import assert_frame_equal
from statsmodels.stats.proportion import proportion_confint
from sweeps import sweep

import polars_wroc as wroc

Array: TypeAlias = Any

FEW = "few effective events"
OE = ["oe_ratio", "oe_ratio_low", "oe_ratio_high"]
INTERCEPT = ["calibration_intercept", "calibration_intercept_low", "calibration_intercept_high"]
SLOPE = [
    "calibration_slope",
    "calibration_slope_low",
    "calibration_slope_high",
    "calibration_slope_se",
]
TWELVE = pl.DataFrame(
    {
        "s": [0.9, 0.8, 0.75, 0.7, 0.6, 0.55, 0.5, 0.4, 0.35, 0.3, 0.2, 0.1],
        "y": [1, 1, 0, 1, 1, 0, 1, 0, 1, 0, 0, 0],
        "w": [1, 2, 1, 1, 3, 1, 1, 2, 1, 1, 2, 1],
    }
)


def sample(seed: int, rows: int = 600, slope: float = 0.7) -> pl.DataFrame:
    """Weighted rows of three groups, whose scores are too far apart and too low."""
    random = np.random.default_rng(seed)
    s = random.beta(1, 2, rows).round(6).clip(0.001, 0.999)
    true = 1 / (1 + np.exp(-0.4 - slope * np.log(s / (1 - s))))
    return pl.DataFrame(
        {
            "g": random.choice(["a", "b", "c"], rows),
            "y": random.random(rows) < true,
            "s": s,
            "w": random.lognormal(size=rows, sigma=0.5),
        }
    )


def fitted(y: Array, s: Array, w: Array, weight_type: str) -> tuple[Coefficient, Coefficient]:
    """Slope and intercept with their standard errors, which statsmodels has too."""
    squares = w if weight_type == "frequency" else w**2
    found = slope(y, s, w, squares), intercept(y, s, w, squares)
    x = np.log(s / (1 - s))
    weights = {"var_weights" if weight_type == "probability" else "freq_weights": w}
    family = sm.families.Binomial()
    for (columns, offset), ours in zip(
        [(sm.add_constant(x), None), (1 + 0 * x, x)], found, strict=True
    ):
        model = sm.GLM(y, columns, family=family, offset=offset, **weights)
        fit: dict[str, Any] = {"maxiter": 100, "tol": 1e-12}
        robust = model.fit(cov_type="HC0", **fit)
        # Its weights are those of the step before.
        assert (robust.params[-1], robust.bse[-1]) == pytest.approx(
            (ours.value, ours.of_residuals), rel=1e-6
        )
        if weight_type == "frequency" or (w == 1).all():
            assert model.fit(**fit).bse[-1] == pytest.approx(ours.of_model, rel=1e-6)
    return found


@pytest.mark.parametrize(
    ("weight", "oe", "of_slope"),
    [
        (
            None,
            (0.9756097561, 0.5096620001, 1.3437888349),
            (1.2621800951, -0.2632153562, 2.7875755464, 0.7782772862),
        ),
        (
            "w",
            (1.0285714286, 0.5113593840, 1.4136919120),
            (1.7354778742, -0.3654486117, 3.8364043600, 1.0719209648),
        ),
    ],
)
def test_the_worked_example(
    weight: str | None, oe: tuple[float, ...], of_slope: tuple[float, ...]
) -> None:
    row = wroc.calibration_summary(TWELVE.lazy(), "y", "s", weight=weight).collect()
    assert row.select(OE).row(0) == pytest.approx(oe, abs=6e-11)
    assert row.select(SLOPE).row(0) == pytest.approx(of_slope, abs=6e-10)


def test_the_residuals_of_the_worked_example_vary_less_than_the_model() -> None:
    y, s, w = (TWELVE[name].cast(float).to_numpy() for name in ("y", "s", "w"))
    assert slope(y, s, 1 + 0 * w, 1 + 0 * w).of_residuals == pytest.approx(0.6488128213, abs=6e-11)
    assert slope(y, s, w, w**2).of_residuals == pytest.approx(0.8704440356, abs=6e-11)


@pytest.mark.parametrize("weight_type", ["probability", "frequency"])
@pytest.mark.parametrize(("weight", "true"), [("w", 0.7), (None, 0.1), ("w", 4.0)])
def test_statsmodels_has_the_same_coefficients(
    weight_type: Any, weight: str | None, true: float
) -> None:
    frame = sample(5, slope=true).with_columns(pl.col("w").ceil())
    table = wroc.calibration_summary(
        frame.lazy(), "y", "s", weight=weight_as(weight, weight_type), by="g"
    ).collect()
    for row in table.rows(named=True):
        part = frame.filter(g=row["g"])
        y, s = part["y"].to_numpy().astype(float), part["s"].to_numpy()
        w = part["w"].to_numpy() if weight else np.ones(part.height)
        of_slope, of_intercept = fitted(y, s, w, weight_type)
        assert row["calibration_slope"] == pytest.approx(of_slope.value, rel=1e-9)
        assert row["calibration_slope_se"] == pytest.approx(of_slope.se, rel=1e-9)
        limits = [of_intercept.value + side * Z * of_intercept.se for side in (0, -1, 1)]
        assert [row[name] for name in INTERCEPT] == pytest.approx(limits, rel=1e-9)
        squares = w if weight_type == "frequency" else w**2
        assert [row[name] for name in OE] == pytest.approx(oe_ratio(y, s, w, squares))
        assert row["mean_score"] == pytest.approx(np.average(s, weights=w))
        assert row["observed_rate"] == pytest.approx(np.average(y, weights=w))


@pytest.mark.parametrize("rows", [2000, 2001])
def test_rows_and_the_bins_of_more_rows_have_the_same_slope(rows: int) -> None:
    frame = sample(7, rows)
    table = wroc.calibration_summary(frame, "y", "s", weight="w")
    y, s, w = (frame[name].to_numpy() for name in "ysw")
    expected, _ = fitted(y, s, w, "probability")
    assert table["calibration_slope"].item() == pytest.approx(expected.value, rel=1e-8)
    assert table["calibration_slope_se"].item() == pytest.approx(expected.se, rel=1e-8)


@pytest.mark.parametrize("weight", [None, "w"])
def test_the_larger_variance_counts(weight: str | None) -> None:
    rng = np.random.default_rng(31)
    x = rng.normal(size=40 * 60) * 1.5
    curved = np.where(rng.random(len(x)) < 0.3, x**2, x)
    frame = pl.DataFrame(
        {
            "g": np.repeat(np.arange(60), 40),
            "y": rng.random(len(x)) < 1 / (1 + np.exp(-curved)),
            "s": 1 / (1 + np.exp(-x)),
            "w": rng.lognormal(size=len(x), sigma=0.6),
        }
    )
    table = wroc.calibration_summary(frame, "y", "s", weight=weight, by="g")
    larger = set()
    for row, part in zip(table.rows(named=True), frame.partition_by("g"), strict=True):
        y, s, w = (part[name].cast(float).to_numpy() for name in ("y", "s", "w"))
        w = w if weight else np.ones(len(y))
        of_slope = slope(y, s, w, w**2)
        larger.add(of_slope.of_model > of_slope.of_residuals)
        assert row["calibration_slope_se"] == pytest.approx(of_slope.se, rel=1e-8)
        assert [row[name] for name in OE] == pytest.approx(oe_ratio(y, s, w, w**2), rel=1e-9)
    assert larger == {True, False}


def newton(y: Array, x: Array, steps: int = 20) -> float:
    """The slope after so many steps from no slope."""
    design = np.column_stack([np.ones_like(x), x])
    coefficients = np.array([math.log(y.mean() / (1 - y.mean())), 0.0])
    for _ in range(steps):
        mean = 1 / (1 + np.exp((-design @ coefficients).clip(-500, 500)))
        hessian = design.T @ (design * (mean * (1 - mean))[:, None])
        coefficients += np.linalg.solve(hessian, design.T @ (y - mean))
    return float(coefficients[1])


@pytest.mark.parametrize("width", [0.3, 1e-2, 2e-3])
def test_classes_that_overlap_little_have_a_steep_slope(width: float) -> None:
    # Narrower than the bins in which rows are pooled at first.
    random = np.random.default_rng(8)
    x = random.normal(size=3000)
    x[:200] *= width
    y = random.random(3000) < 1 / (1 + np.exp(np.clip(-4 * x / width, -30, 30)))
    s = 1 / (1 + np.exp(-x))
    frame = pl.DataFrame({"y": y, "s": s})
    expected = newton(y.astype(float), np.log(s / (1 - s)))
    found = wroc.calibration_summary(frame, "y", "s")["calibration_slope"][0]
    assert expected > 2 / width
    assert found == pytest.approx(expected, rel=1e-7)


def test_a_slope_is_there_unless_the_score_separates_the_classes() -> None:
    random = np.random.default_rng(1)
    parts = []
    for g in range(200):
        x = random.normal(random.normal(), random.uniform(0.2, 2), random.integers(6, 120))
        x = x.round(1) if g % 3 == 0 else x
        slope = np.exp(random.uniform(np.log(0.05), np.log(15)))
        y = random.random(len(x)) < 1 / (1 + np.exp(-random.normal() - slope * x))
        parts.append(pl.DataFrame({"g": g, "y": y, "s": 1 / (1 + np.exp(-x))}))
    table = wroc.calibration_summary(pl.concat(parts), "y", "s", by="g")
    separated = 0
    for part, found in zip(parts, table["calibration_slope"], strict=True):
        y, s = part["y"].to_numpy(), part["s"].to_numpy()
        ends = [(s[y == each].min(initial=1), s[y == each].max(initial=0)) for each in (0, 1)]
        if ends[0][1] <= ends[1][0] or ends[1][1] <= ends[0][0]:
            separated += 1
            assert found is None
        else:
            assert found == pytest.approx(newton(y.astype(float), np.log(s / (1 - s))), rel=1e-7)
    assert 10 < separated < 60


@pytest.mark.parametrize(
    "y",
    [[0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 1, 1], [0, 1, 1, 1, 1, 1]],
    ids=["up", "down", "with a tie in a class", "one below"],
)
def test_no_slope_where_the_score_separates_the_classes(y: list[int]) -> None:
    frame = pl.DataFrame({"y": y, "s": [0.1, 0.2, 0.4, 0.6, 0.7, 0.7]})
    row = wroc.calibration_summary(frame, "y", "s").row(0, named=True)
    assert {row[name] for name in SLOPE} == {None}
    assert None not in {row[name] for name in (*OE, *INTERCEPT)}


def test_no_slope_where_only_a_tie_is_in_both_classes() -> None:
    frame = pl.DataFrame({"y": [0, 0, 1, 1, 1], "s": [0.1, 0.5, 0.5, 0.6, 0.9]})
    assert wroc.calibration_summary(frame, "y", "s")["calibration_slope"].to_list() == [None]


@given(
    cut=st.floats(-3, 3), rows=st.integers(2, 400), shift=st.floats(-5, 5), scale=st.floats(0.1, 3)
)
def test_separated_rows_never_have_a_slope(
    cut: float, rows: int, shift: float, scale: float
) -> None:
    x = np.random.default_rng(rows).normal(size=rows)
    frame = pl.DataFrame({"y": x > cut, "s": 1 / (1 + np.exp(-(x - shift) * scale))})
    assert wroc.calibration_summary(frame, "y", "s")["calibration_slope"].to_list() == [None]


def test_equal_scores_have_an_intercept_but_no_slope() -> None:
    frame = pl.DataFrame({"y": [1, 0, 0, 0, 1], "s": [0.3] * 5})
    row = wroc.calibration_summary(frame, "y", "s").row(0, named=True)
    assert {row[name] for name in SLOPE} == {None}
    expected = math.log(0.4 / 0.6) - math.log(0.3 / 0.7)
    assert row["calibration_intercept"] == pytest.approx(expected)
    rates = (0.4, *proportion_confint(2, 5, method="wilson"))
    assert [row[name] for name in OE] == pytest.approx([rate / 0.3 for rate in rates])


def test_one_class_has_a_ratio_alone() -> None:
    frame = pl.DataFrame(
        {"g": ["n"] * 4 + ["p"] * 2, "y": [0] * 4 + [1, 1], "s": [0.1, 0.2, 0.3, 0.4, 0.5, 0.5]}
    )
    table = wroc.calibration_summary(frame, "y", "s", by="g")
    assert set(table.select(*INTERCEPT, *SLOPE).null_count().row(0)) == {2}
    none, two = table.select(OE).rows()
    a, b = 1.0, sum(s**2 for s in (0.1, 0.2, 0.3, 0.4))
    assert none == pytest.approx((0, 0, Z**2 * a / (1 + Z**2 * b)), abs=1e-12)
    # With equal scores the limits are those of the rate.
    low, high = proportion_confint(2, 2, method="wilson")
    assert two == pytest.approx((2, 2 * low, 2 * high), abs=1e-12)


def test_scores_of_zero_and_one_are_left_out_of_regressions_and_counted() -> None:
    place = pl.int_range(pl.len())
    frame = sample(6).with_columns(
        s=pl.when(place % 100 == 7)
        .then(pl.col("y").cast(pl.Float64))
        .when(place % 100 == 8)
        .then(1 - pl.col("y").cast(pl.Float64))
        .otherwise("s")
    )
    table = wroc.calibration_summary(frame, "y", "s", weight="w", by="g")
    assert table["n_extreme"].sum() == 12
    assert table["n_impossible"].sum() == 6
    names = [*INTERCEPT, *SLOPE]
    inner = frame.filter(pl.col("s").is_between(0, 1, closed="none"))
    expected = wroc.calibration_summary(inner, "y", "s", weight="w", by="g")
    assert_frame_equal(table.select(names), expected.select(names), rel_tol=1e-12)
    assert table.select(OE).null_count().sum_horizontal().item() == 0
    clipped = wroc.calibration_summary(frame, "y", "s", weight="w", by="g", clip=1e-3)
    moved = frame.with_columns(pl.col("s").clip(1e-3, 1 - 1e-3))
    expected = wroc.calibration_summary(moved, "y", "s", weight="w", by="g")
    assert_frame_equal(clipped.select(names), expected.select(names), rel_tol=1e-9)
    assert_frame_equal(clipped.drop(names), table.drop(names), rel_tol=1e-12)


@pytest.mark.parametrize(
    ("more", "counts"), [([(1.0, 1)], (1, 0)), ([(1.0, 1), (1.0, 0), (0.0, 0)], (3, 1))]
)
def test_the_worked_slope_is_the_same_with_scores_of_zero_and_one(
    more: list[tuple[float, int]], counts: tuple[int, int]
) -> None:
    added = pl.DataFrame(more, schema={"s": pl.Float64, "y": pl.Int64}, orient="row")
    frame = pl.concat([TWELVE.select("s", "y"), added])
    row = wroc.calibration_summary(frame, "y", "s")
    slope = ["calibration_slope", "calibration_slope_low", "calibration_slope_high"]
    expected = (1.2621800951, -0.2632153559, 2.7875755460)
    assert row.select(slope).row(0) == pytest.approx(expected, abs=6e-10)
    assert row["calibration_intercept"].item() == pytest.approx(-0.0648305310, abs=6e-11)
    assert row.select("n_extreme", "n_impossible").row(0) == counts
    thirteen = pl.concat([TWELVE.select("s", "y"), added[:1]])
    clipped = wroc.calibration_summary(thirteen, "y", "s", clip=0.05)
    assert clipped["calibration_slope"].item() == pytest.approx(1.3026367568, abs=6e-11)


@pytest.mark.parametrize("by", [None, "g"])
def test_many_rows_with_scores_of_zero_and_one_have_the_slope_of_the_others(
    by: str | None,
) -> None:
    frame = sample(9, rows=12_000)
    extreme = pl.DataFrame({"g": ["a"] * 2_500, "y": True, "s": 1.0, "w": 1.0})
    names = [*INTERCEPT, *SLOPE]
    expected = wroc.calibration_summary(frame, "y", "s", weight="w", by=by)
    both = pl.concat([frame, extreme])
    found = wroc.calibration_summary(both, "y", "s", weight="w", by=by)
    assert_frame_equal(found.select(names), expected.select(names), rel_tol=1e-9)
    clusters = both.with_columns(c=pl.int_range(pl.len()) % 50)
    found = wroc.calibration_summary(clusters, "y", "s", weight="w", by=by, design="c")
    assert found.select(names).null_count().sum_horizontal().item() == 0


def test_what_is_undefined_is_null() -> None:
    nothing = sample(1).with_columns(
        s=pl.when(pl.col("g") != "b").then("s").otherwise(pl.lit(None, pl.Float64))
    )
    table = wroc.calibration_summary(nothing, "y", "s", by="g")
    assert table["n"].to_list()[1] == 0
    assert table["n_missing"].to_list()[1] > 0
    assert set(table.drop("g", "n", "n_pos", cs.starts_with("n_")).row(1)) == {None}
    empty = nothing.clear()
    assert wroc.calibration_summary(empty, "y", "s").row(0) == (*[None] * 25, 0, 0, 0, 0, 0, None)
    assert wroc.calibration_summary(empty, "y", "s", by="g").height == 0
    zeros = pl.DataFrame({"y": [0, 1], "s": [0, 0]})
    row = wroc.calibration_summary(zeros, "y", "s").row(0, named=True)
    assert {row[name] for name in (*OE, *INTERCEPT, *SLOPE)} == {None}
    assert row["n_extreme"] == 2


def test_ratios_and_limits_that_overflow_are_null() -> None:
    frame = pl.DataFrame({"y": [1, 0, 0, 0, 0], "s": [1e-308, 0, 0, 0, 0]})
    ratio, low, high = wroc.calibration_summary(frame, "y", "s").select(OE).row(0)
    assert ratio == pytest.approx(1e308)
    assert 0 < low < ratio
    assert high is None or high >= ratio * (1 - 1e-9)
    tiny = frame.with_columns(pl.col("s") / 100)
    assert wroc.calibration_summary(tiny, "y", "s").select(OE).row(0) == (None, None, None)


@pytest.mark.parametrize("factor", [1e-90, 1e-3, 1e90])
def test_limits_do_not_depend_on_the_scale_of_the_weights(factor: float) -> None:
    frame = sample(2)
    expected = wroc.calibration_summary(frame, "y", "s", weight="w", by="g")
    scaled = frame.with_columns(pl.col("w") * factor)
    found = wroc.calibration_summary(scaled, "y", "s", weight="w", by="g")
    assert_frame_equal(found, expected, rel_tol=1e-9)


@pytest.mark.parametrize("factor", [1e-200, 1e200])
def test_limits_are_null_where_squares_overflow_or_underflow(factor: float) -> None:
    frame = sample(2)
    values = ["calibration_slope", "calibration_intercept", "oe_ratio"]
    expected = wroc.calibration_summary(frame, "y", "s", weight="w")
    scaled = frame.with_columns(pl.col("w") * factor)
    found = wroc.calibration_summary(scaled, "y", "s", weight="w")
    assert_frame_equal(found.select(values), expected.select(values), rel_tol=1e-9)
    limits = found.select(cs.ends_with("_se", "_low", "_high"))
    assert limits.null_count().sum_horizontal().item() == limits.width


@pytest.mark.parametrize("weight_type", sweep(["probability", "frequency"]))
def test_counts_by_score_give_the_same(weight_type: str) -> None:
    frame = sample(9, rows=3000).with_columns(pl.col("s").round(2).clip(0.01, 0.99))
    weight = weight_as(pl.col("w").ceil(), weight_type)
    counts = wroc.score_counts(frame, "y", "s", weight=weight, by="g")
    for by in ("g", None):
        found = wroc.from_counts(counts).calibration_summary(by=by)
        expected = wroc.calibration_summary(frame, "y", "s", weight=weight, by=by)
        assert_frame_equal(found, expected, rel_tol=1e-9)
    binned = wroc.score_counts(frame, "y", "s", bins=64)
    with pytest.raises(ValueError, match="`counts` must be by score for a calibration"):
        wroc.from_counts(binned).calibration_summary()


def few_events_frame() -> pl.DataFrame:
    """Return 40 rows, 4 of them positive, with weights 1 and 3 in turn."""
    return pl.DataFrame(
        {
            "y": [1] * 4 + [0] * 36,
            "s": np.linspace(0.35, 0.05, 40),
            "w": [1.0, 3.0] * 20,
            "c": np.arange(40) // 2,
        }
    )


def test_few_weighted_events_are_a_reason() -> None:
    # Kish's effective size is (20 + 60)^2 / (20 + 180) = 32. One in ten is positive: 3.2 effective
    # rows are fewer than 5.
    frame = few_events_frame()
    enough = frame.with_columns(y=(pl.int_range(40) < 8).cast(pl.Int64))
    cases: dict[str, tuple[pl.DataFrame, dict[str, Any], str | None]] = {
        "few positives": (frame, {"weight": "w"}, FEW),
        "few negatives": (frame.with_columns(y=1 - pl.col("y")), {"weight": "w"}, FEW),
        "clusters": (frame, {"weight": "w", "design": "c"}, FEW),
        "equal weights": (frame, {}, None),
        "counts": (frame, {"weight": wroc.frequency("w")}, None),
        "6.4 effective rows": (enough, {"weight": "w"}, None),
        "no rows": (frame.head(0), {"weight": "w"}, None),
    }
    for name, (rows, options, reason) in cases.items():
        table = wroc.calibration_summary(rows, "y", "s", **options)
        assert (name, table["reason"].to_list()) == (name, [reason])
    both = pl.concat([frame.with_columns(g=pl.lit("a")), enough.with_columns(g=pl.lit("b"))])
    table = wroc.calibration_summary(both, "y", "s", weight="w", by="g")
    assert table["reason"].to_list() == [FEW, None]


def test_a_calibration_summary_refuses_what_is_no_probability() -> None:
    frame = sample(8)
    for bad in (1.5, -0.1, math.inf):
        off = frame.with_columns(s=pl.when(pl.int_range(pl.len()) == 3).then(bad).otherwise("s"))
        with pytest.raises(
            ValueError, match=f"`score` must be a probability.*{bad} in column 's'$"
        ):
            wroc.calibration_summary(off, "y", "s", by="g")
    with pytest.raises(ValueError, match=r"`by` must not take .* found 'oe_ratio'"):
        wroc.calibration_summary(frame.rename({"g": "oe_ratio"}), "y", "s", by="oe_ratio")
    mixed = frame.with_columns(y=pl.when("y").then(1).otherwise(pl.int_range(pl.len()) % 2 - 1))
    with pytest.raises(ValueError, match="`label` must hold 0 and 1"):
        wroc.calibration_summary(mixed, "y", "s", by="g")
