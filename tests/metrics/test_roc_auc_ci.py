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
from plain_roc import frame_of
from polars.testing import assert_frame_equal
from scipy import special, stats

import polars_wroc as wroc
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
        summary_of(frame, "y", "s", weight=weight, **({"method": "logit"} | options))
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


ROWS = st.lists(
    st.tuples(st.booleans(), st.integers(0, 8), st.integers(1, 6)), min_size=8, max_size=40
).filter(lambda rows: 1 < sum(y for y, _, _ in rows) < len(rows) - 1)


def test_worked_example() -> None:
    found = interval(SEVEN, "w")
    assert found["auc_se"] ** 2 == pytest.approx(0.08620614, abs=1e-8)
    assert (found["n_eff_pos"], found["n_eff_neg"]) == pytest.approx((8 / 3, 25 / 7))
    limits = {
        "logit": (0.114, 0.934),
    }
    for method, expected in limits.items():
        found = interval(SEVEN, "w", method=method)
        assert (found["auc_low"], found["auc_high"]) == pytest.approx(expected, abs=5e-4)
        assert found["ci_method"] == method
    assert interval(SEVEN, wroc.frequency("w"))["auc_se"] ** 2 == pytest.approx(0.05125)


def test_delongs_limits_are_a_normal_margin_from_the_auc() -> None:
    found = interval(SEVEN, "w", method="delong", level=0.8)
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


@given(ROWS, st.sampled_from(["score", "logit", "delong"]))
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


@given(ROWS, st.floats(0.5, 0.999))
def test_limits_follow_their_definition(rows: list[tuple[bool, int, int]], level: float) -> None:
    found = interval(frame_of(rows), "w", level=level)
    auc = found["auc"]
    if found["ci_method"] is None:
        assert found["auc_se"] == 0
        assert (found["auc_low"], found["auc_high"]) == (None, None)
        return
    margin = stats.norm.ppf((1 + level) / 2) * found["auc_se"] / (auc * (1 - auc))
    limits = special.expit(special.logit(auc) + np.array([-margin, margin]))
    assert (found["auc_low"], found["auc_high"]) == pytest.approx(tuple(limits), abs=1e-7)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_perfect_or_inverted_ranking_of_weighted_rows_has_no_variance(sign: int) -> None:
    random = np.random.default_rng(0)
    y = random.integers(0, 2, 200)
    score, weight = sign * y * 10 + random.random(200).round(1), random.lognormal(size=200)
    found = interval(pl.DataFrame({"y": y, "s": score, "w": weight}), "w")
    assert (found["auc_se"], found["ci_method"]) == (0.0, None)


@pytest.mark.parametrize("method", ["logit", "delong"])
def test_perfect_separation_has_no_limits_by_the_variance(method: str) -> None:
    frame = pl.DataFrame({"y": [1] * 5 + [0] * 20, "s": [2.0] * 5 + [1.0] * 20})
    found = interval(frame, method=method)
    assert [found[name] for name in COLUMNS[:5]] == [1.0, 0.0, None, None, None]
    found = interval(frame, method="score")
    assert (found["auc_high"], found["ci_method"]) == (1.0, "score")
    assert 0.5 < found["auc_low"] < 0.9


def test_all_tied() -> None:
    frame = pl.DataFrame({"y": [1, 0] * 10, "s": [1] * 20})
    found = interval(frame)
    assert (found["auc"], found["auc_se"], found["ci_method"]) == (0.5, 0.0, None)
    found = interval(frame, method="score")
    assert found["auc_low"] < 0.5 < found["auc_high"]


def test_one_row_in_a_class_has_no_variance() -> None:
    found = interval(pl.DataFrame({"y": [1, 0, 0, 0], "s": [2, 1, 3, 1]}))
    assert [found[name] for name in COLUMNS[1:5]] == [None] * 4


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
