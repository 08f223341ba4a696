"""Intervals of an AUC: against plain definitions, in the hard cases too."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from scipy import optimize, stats

import polars_wroc as wroc
from polars_wroc.plans.config import Engine
from polars_wroc.stats.aucs import Newcombe
from polars_wroc.stats.estimates import Limits
from polars_wroc.typing import IntoWeight

summary_of = partial(wroc.summary, diagnostics=True)

Floats = npt.NDArray[np.float64]
COLUMNS = ["auc", "auc_se", "auc_low", "auc_high", "ci_method", "n_eff_pos", "n_eff_neg"]
SEVEN = pl.DataFrame(
    {
        "s": [0.9, 0.8, 0.7, 0.7, 0.6, 0.4, 0.3],
        "y": [1, 0, 1, 0, 1, 0, 0],
        "w": [1, 2, 1, 1, 2, 1, 1],
    }
)


def interval(
    frame: pl.DataFrame, weight: IntoWeight | None = None, **options: Any
) -> dict[str, Any]:
    return (
        summary_of(frame, "y", "s", weight=weight, **({"method": "logit-t"} | options))
        .select(COLUMNS)
        .row(0, named=True)
    )


def pairs(frame: pl.DataFrame) -> tuple[Floats, Floats, Floats]:
    """Whether each positive stands above each negative, and the weights of both."""
    pos, neg = (frame.filter(pl.col("y") == y) for y in (1, 0))
    s, t = pos["s"].to_numpy()[:, None], neg["s"].to_numpy()[None, :]
    return (s > t) + (s == t) / 2, pos["w"].to_numpy(), neg["w"].to_numpy()


def delong_variance(frame: pl.DataFrame) -> float:
    above, _, _ = pairs(frame)
    by_pos, by_neg = above.mean(axis=1), above.mean(axis=0)
    return float(by_pos.var(ddof=1) / len(by_pos) + by_neg.var(ddof=1) / len(by_neg))


def weighted_variance(frame: pl.DataFrame) -> float:
    """Linearised variance, from placements by counting pairs."""
    above, w_pos, w_neg = pairs(frame)
    variance = 0.0
    for below, w in (
        (1 - above @ w_neg / w_neg.sum(), w_pos),
        (1 - w_pos @ above / w_pos.sum(), w_neg),
    ):
        share = w / w.sum()
        centre = (share * below).sum()
        base = (share**2).sum()
        factor = base / (base - 2 * (share**3).sum() + base**2)
        variance += factor * (share**2 * (below - centre) ** 2).sum()
    return float(variance)


def newcombe(auc: float, n_pos: float, n_neg: float, level: float = 0.95) -> tuple[float, float]:
    z = stats.norm.ppf((1 + level) / 2)

    def excess(x: float) -> float:
        more = max((n_pos + n_neg) / 2 - 1, 0)
        inner = 1 + more * ((1 - x) / (2 - x) + x / (1 + x))
        return float((auc - x) ** 2 - z**2 * x * (1 - x) * inner / (n_pos * n_neg))

    low = 0.0 if auc == 0 else optimize.brentq(excess, 1e-15, min(auc, 1 - 1e-9), xtol=1e-14)
    high = 1.0 if auc == 1 else optimize.brentq(excess, max(auc, 1e-9), 1 - 1e-15, xtol=1e-14)
    return low, high


def newcombe_limits(auc: list[float], n_pos: list[float], n_neg: list[float]) -> Limits:
    return Newcombe(np.array(auc), np.array(n_pos), np.array(n_neg)).limits(stats.norm.ppf(0.975))


@pytest.mark.parametrize(
    ("auc", "n_pos", "n_neg"),
    [(0.7, 30.0, 40.0), (0.7, 1.0, 1.0), (0.7, 0.5, 0.5), (0.4, 0.3, 1.2), (0.9, 1.2, 1.1)],
)
def test_newcombe_of_few_rows(auc: float, n_pos: float, n_neg: float) -> None:
    limits = [end[0] for end in newcombe_limits([auc], [n_pos], [n_neg])]
    assert limits == pytest.approx(newcombe(auc, n_pos, n_neg), abs=1e-8)


def test_newcombe_of_next_to_no_rows() -> None:
    limits = [end[0] for end in newcombe_limits([0.7], [1e-200], [1e-200])]
    assert limits == pytest.approx([0, 1])


def test_newcombe_is_within_0_and_1() -> None:
    random = np.random.default_rng(0)
    auc = [*([0.0] * 500), *([1.0] * 500), *(10 ** random.uniform(-18, -6, 1000))]
    n_pos, n_neg = (list(10 ** random.uniform(-3, 6, 2000)) for _ in range(2))
    limits = newcombe_limits(auc, n_pos, n_neg)
    assert (limits.low >= 0).all()
    assert (limits.high <= 1).all()


ROWS = st.lists(
    st.tuples(st.booleans(), st.integers(0, 8), st.integers(1, 6)), min_size=8, max_size=40
).filter(lambda rows: 1 < sum(y for y, _, _ in rows) < len(rows) - 1)


def frame_of(rows: list[tuple[bool, int, int]]) -> pl.DataFrame:
    y, s, w = zip(*rows, strict=True)
    return pl.DataFrame({"y": [int(v) for v in y], "s": s, "w": [float(v) for v in w]})


def test_worked_example() -> None:
    found = interval(SEVEN, "w")
    assert found["auc_se"] ** 2 == pytest.approx(0.08620614, abs=1e-8)
    assert (found["n_eff_pos"], found["n_eff_neg"]) == pytest.approx((8 / 3, 25 / 7))
    limits = {
        "logit-t": (0.049, 0.973),
        "logit": (0.114, 0.934),
        "newcombe": (0.195, 0.881),
    }
    for method, expected in limits.items():
        found = interval(SEVEN, "w", method=method)
        assert (found["auc_low"], found["auc_high"]) == pytest.approx(expected, abs=5e-4)
        assert found["ci_method"] == method
    assert interval(SEVEN, wroc.frequency("w"))["auc_se"] ** 2 == pytest.approx(0.05125)


def test_wald_limits_are_a_normal_margin_from_the_auc() -> None:
    found = interval(SEVEN, "w", method="wald", level=0.8)
    normal = stats.norm(found["auc"], found["auc_se"])
    assert (found["auc_low"], found["auc_high"]) == pytest.approx(normal.interval(0.8), abs=1e-9)


@given(ROWS)
def test_unit_weights_give_delongs_variance(rows: list[tuple[bool, int, int]]) -> None:
    frame = frame_of(rows)
    expected = delong_variance(frame)
    for weight in (None, wroc.frequency(pl.lit(1))):
        assert interval(frame, weight)["auc_se"] ** 2 == pytest.approx(expected, abs=1e-13)


@given(ROWS)
def test_weights_give_the_variance_of_a_weighted_sample(
    rows: list[tuple[bool, int, int]],
) -> None:
    frame = frame_of(rows)
    found = interval(frame, "w")
    assert found["auc_se"] ** 2 == pytest.approx(weighted_variance(frame), abs=1e-13)
    scaled = interval(frame.with_columns(pl.col("w") * 1e-7), "w")
    assert [scaled[k] for k in COLUMNS if k != "ci_method"] == pytest.approx(
        [found[k] for k in COLUMNS if k != "ci_method"], rel=1e-9
    )


@given(ROWS)
def test_frequencies_are_repeated_rows(rows: list[tuple[bool, int, int]]) -> None:
    frame = frame_of(rows)
    repeated = frame.select(
        pl.col("y", "s").repeat_by(pl.col("w").cast(pl.Int64)).explode(empty_as_null=False)
    )
    found, expected = interval(frame, wroc.frequency("w")), interval(repeated)
    assert found.pop("ci_method") == expected.pop("ci_method")
    assert list(found.values()) == pytest.approx(list(expected.values()), abs=1e-9)


@given(ROWS, st.sampled_from(["logit-t", "logit", "wald", "newcombe"]))
def test_expression_and_summary_agree_on_both_engines(
    rows: list[tuple[bool, int, int]], method: Any
) -> None:
    frame = frame_of(rows).with_columns(g=pl.int_range(pl.len()) % 2)
    plan = summary_of(frame.lazy(), "y", "s", weight="w", by="g", method=method)
    expected = (
        frame.group_by("g")
        .agg(wroc.roc_auc_ci("y", "s", weight="w", method=method))
        .sort("g")
        .unnest("roc_auc_ci")
    )
    engines: tuple[Literal["in-memory"], Literal["streaming"]] = ("in-memory", "streaming")
    for engine in engines:
        found = plan.collect(engine=engine).select(expected.columns)
        assert_frame_equal(found, expected, abs_tol=1e-7)


def logit_t_limits(
    frame: pl.DataFrame, auc: float, n_pos: float, n_neg: float, level: float
) -> tuple[float, float]:
    above, w_pos, w_neg = pairs(frame)
    variances = []
    for below, w in (
        (1 - above @ w_neg / w_neg.sum(), w_pos),
        (1 - w_pos @ above / w_pos.sum(), w_neg),
    ):
        share = w / w.sum()
        base = (share**2).sum()
        factor = base / (base - 2 * (share**3).sum() + base**2)
        variances.append(factor * (share**2 * (below - (share * below).sum()) ** 2).sum())
    spread = variances[0] ** 2 / max(n_pos - 1, 1) + variances[1] ** 2 / max(n_neg - 1, 1)
    df = max(sum(variances) ** 2 / spread, 1)
    margin = stats.t.ppf((1 + level) / 2, df) * np.sqrt(sum(variances)) / (auc * (1 - auc))
    logit = np.log(auc / (1 - auc))
    return 1 / (1 + np.exp(-(logit - margin))), 1 / (1 + np.exp(-(logit + margin)))


@given(ROWS, st.floats(0.5, 0.999))
def test_limits_follow_their_definition(rows: list[tuple[bool, int, int]], level: float) -> None:
    frame = frame_of(rows)
    found = interval(frame, "w", level=level)
    auc, n_pos, n_neg = found["auc"], found["n_eff_pos"], found["n_eff_neg"]
    if found["ci_method"] == "newcombe":
        assert found["auc_se"] == 0
        assert (found["auc_low"], found["auc_high"]) == pytest.approx(
            newcombe(auc, n_pos, n_neg, level), abs=1e-8
        )
        return
    limits = logit_t_limits(frame, auc, n_pos, n_neg, level)
    assert (found["auc_low"], found["auc_high"]) == pytest.approx(limits, abs=1e-7)


def test_degrees_of_freedom_of_little_more_than_one_effective_row() -> None:
    frame = pl.DataFrame(
        {"y": [1, 1, 0, 0, 0], "s": [3, 1, 2, 0, 4], "w": [1.0, 9.0, 1.0, 2.0, 1.0]}
    )
    found = interval(frame, "w")
    assert found["n_eff_pos"] == pytest.approx(100 / 82)
    limits = logit_t_limits(frame, found["auc"], found["n_eff_pos"], found["n_eff_neg"], 0.95)
    assert (found["auc_low"], found["auc_high"]) == pytest.approx(limits, abs=1e-9)


@pytest.mark.parametrize("engine", ["polars", "compiled"])
def test_a_perfect_ranking_of_weighted_rows_has_no_variance(engine: Engine) -> None:
    random = np.random.default_rng(0)
    y = random.integers(0, 2, 200)
    score, weight = y * 10 + random.random(200).round(1), random.lognormal(size=200)
    with wroc.Config(engine=engine):
        found = interval(pl.DataFrame({"y": y, "s": score, "w": weight}), "w")
    assert (found["auc_se"], found["ci_method"]) == (0.0, "newcombe")


@pytest.mark.parametrize("method", ["logit-t", "logit", "wald", "newcombe"])
def test_perfect_separation_is_not_certain(method: str) -> None:
    frame = pl.DataFrame({"y": [1] * 5 + [0] * 20, "s": [2.0] * 5 + [1.0] * 20})
    found = interval(frame, method=method)
    assert (found["auc"], found["auc_high"], found["ci_method"]) == (1.0, 1.0, "newcombe")
    assert found["auc_low"] == pytest.approx(0.7607, abs=5e-5)
    turned = interval(frame.with_columns(-pl.col("s")), method=method)
    assert turned["auc_low"] == 0.0
    assert turned["auc_high"] == pytest.approx(0.2393, abs=5e-5)


def test_all_tied() -> None:
    found = interval(pl.DataFrame({"y": [1, 0] * 10, "s": [1] * 20}))
    assert (found["auc"], found["auc_se"], found["ci_method"]) == (0.5, 0.0, "newcombe")
    assert found["auc_low"] < 0.5 < found["auc_high"]


def test_one_row_in_a_class_has_an_interval_without_a_variance() -> None:
    found = interval(pl.DataFrame({"y": [1, 0, 0, 0], "s": [2, 1, 3, 1]}))
    assert (found["auc_se"], found["ci_method"]) == (None, "newcombe")
    assert (found["auc_low"], found["auc_high"]) == pytest.approx(newcombe(2 / 3, 1, 3), abs=1e-8)


def test_one_class_has_no_interval() -> None:
    found = interval(pl.DataFrame({"y": [1, 1], "s": [2, 1]}))
    assert found.pop("n_eff_pos") == 2
    assert set(found.values()) == {None}


def test_infinite_scores_are_ranks() -> None:
    finite = pl.DataFrame({"y": [1, 0, 1, 0, 1], "s": [9.0, 8.0, 5.0, 2.0, 1.0]})
    infinite = finite.with_columns(s=pl.Series([float("inf"), 8.0, 5.0, 2.0, -float("inf")]))
    assert interval(infinite) == interval(finite)


def test_one_wrong_pair_in_many_is_not_lost_to_rounding() -> None:
    rows = 2_000
    score = np.arange(2.0 * rows)
    score[rows - 1], score[rows] = score[rows], score[rows - 1]
    frame = pl.DataFrame({"y": [0] * rows + [1] * rows, "s": score, "w": 1.0})
    assert interval(frame)["auc_se"] ** 2 == pytest.approx(weighted_variance(frame), rel=1e-9)


def test_weights_of_very_different_sizes() -> None:
    rng = np.random.default_rng(3)
    frame = pl.DataFrame(
        {
            "y": rng.integers(0, 2, 300),
            "s": rng.integers(0, 50, 300),
            "w": 10.0 ** rng.uniform(-9, 9, 300),
        }
    )
    assert interval(frame, "w")["auc_se"] ** 2 == pytest.approx(weighted_variance(frame), rel=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": 1}, "`level` must lie between 0.001 and 0.9999; found 1"),
        ({"level": 95}, "`level` must lie between 0.001 and 0.9999; found 95"),
        ({"method": "obuchowski"}, "`method` must be one of 'score', .*; found 'obuchowski'"),
    ],
)
def test_options_that_do_not_exist(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wroc.roc_auc_ci("y", "s", **options)
    with pytest.raises(ValueError, match=message):
        summary_of(SEVEN, "y", "s", **options)
