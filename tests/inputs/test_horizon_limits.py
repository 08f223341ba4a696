"""Limits at a horizon: those of before, which were printed, and those of today; survival packages.

The worked example was printed with limits of formulas that were replaced since: of its limits only
the lower one of the AUC did not change. Its values and errors are those of today.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from plain_calibration import oe_ratio
from plain_horizon import WORKED
from plain_rates import rate_of
from plain_score import auc_of, limits

import polars_wroc as wroc

# Worked examples have few rows.
pytestmark = pytest.mark.filterwarnings("ignore:limits may be too narrow")
Z = 1.959963984540054
B = WORKED.with_columns(
    e=pl.Series([1, 0, 2, 1, 0, 1, 0, 2, 0, 1]), c=pl.Series([1, 2, 1, 1, 3, 1, 2, 1, 1, 2])
)
OUTCOME: dict[str, Any] = {"label": "y", "score": "s", "weight": "w"}
# The limits of the AUC, of the tpr at 0.5 and of O:E.
PRINTED = {
    "A": [(0.3694464070, 0.9992468648), (0.2956192305, 0.9539927541), (0.5077696712, 1.7031804327)],
    "B": [(0.3218979680, 0.9960281179), (0.2166937154, 0.9492498494), (0.2142704052, 1.5822305810)],
}


def at_five(name: str) -> pl.DataFrame:
    """The rows of an example whose label is known."""
    given: dict[str, Any] = {"competing_code": 2, "weight": "c"} if name == "B" else {}
    table = wroc.at_horizon({"A": WORKED, "B": B}[name], "t", "e", 5, **given)
    return table.select("s", y="horizon_label", w="horizon_weight").drop_nulls()


def wilson(p: float, r: float, sign: int) -> float:
    """Wilson's limit for 1 divided by a size."""
    spread = math.sqrt(p * (1 - p) * r + (Z * r / 2) ** 2)
    return (p + Z**2 * r / 2 + sign * Z * spread) / (1 + Z**2 * r)


def auc_before(frame: pl.DataFrame) -> tuple[float, float]:
    """Score-type limits with the misranked rows by their own moments, and one pseudo-observation.

    Today their number is the geometric mean with that of average rows, and more is added where
    weights differ.
    """
    auc = auc_of(frame)
    assert auc is not None
    ends = []
    for value, mean, sign in ((auc.auc, auc.delta, -1), (auc.delta, auc.auc, 1)):
        both, pseudos, owns = 0.0, list[float](), list[float]()
        for h2, x1, x2, _, variance in auc.classes:
            assert variance is not None
            first, second = (x1, x2) if sign < 0 else (h2 - x1, h2 - 2 * x1 + x2)
            number, heavier = mean**2 / second, max(1.0, first / (mean * h2))
            pseudos.append(h2 * heavier**2)
            owns.append(min(variance / (auc.auc * auc.delta), 3 * pseudos[-1]))
            both += (number * owns[-1] + heavier * pseudos[-1]) / (number + heavier)
        r = min(both, max(*pseudos, sum(owns)))
        moved = max(0.0, value - (Z**2 - 1) / 12 * max(mean - value, 0.0) * r)
        ends.append(wilson(moved, r, -1))
    return ends[0], 1 - ends[1]


def tpr_before(frame: pl.DataFrame) -> tuple[float, float]:
    """Wilson's limits for Kish's size; today each limit has the size of its own rate."""
    w, found = (frame.filter(y=1)[name].to_numpy() for name in ("w", "s"))
    rate, r = np.average(found >= 0.5, weights=w), (w**2).sum() / w.sum() ** 2
    return wilson(rate, r, -1), wilson(rate, r, 1)


def oe_before(frame: pl.DataFrame) -> tuple[float, float]:
    """Limits on the logarithm, by the residuals; today they are those of a score test."""
    y, s, w = (frame[name].to_numpy() for name in "ysw")
    ratio = (w @ y) / (w @ s)
    factor = math.exp(Z * np.linalg.norm(w * (y - ratio * s)) / (w @ y))
    return ratio / factor, ratio * factor


@pytest.mark.parametrize("name", PRINTED)
def test_the_printed_limits_are_those_of_before(name: str) -> None:
    frame = at_five(name)
    found = [auc_before(frame), tpr_before(frame), oe_before(frame)]
    np.testing.assert_allclose(found, PRINTED[name], atol=6e-11)


@pytest.mark.parametrize("name", PRINTED)
def test_limits_of_today(name: str) -> None:
    frame = at_five(name)
    tables = (
        (wroc.summary(frame, **OUTCOME), "auc"),
        (wroc.threshold_metrics(frame, **OUTCOME, threshold=0.5), "tpr"),
        (wroc.calibration_summary(frame, **OUTCOME), "oe_ratio"),
    )
    found = [table.select(f"{metric}_low", f"{metric}_high").row(0) for table, metric in tables]
    y, s, w = (frame[name].to_numpy() for name in "ysw")
    auc, selected = auc_of(frame), s[y == 1] >= 0.5
    tpr = rate_of(w[y == 1][selected], w[y == 1][~selected])
    assert auc is not None
    assert tpr is not None
    expected = [limits(auc, Z), tpr.limits(0.95), oe_ratio(y, s, w, w**2)[1:]]
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    same = np.isclose(found, PRINTED[name], rtol=0, atol=6e-11)
    assert same.tolist() == [[False, False], [False, False], [False, False]]


def test_errors_of_the_share_with_known_and_with_estimated_weights() -> None:
    """Known weights, which limits rest on, say no less than is there: Greenwood's error is less."""
    y, w = (at_five("A")[name].to_numpy() for name in "yw")
    share = w @ y / w.sum()
    known = np.linalg.norm(w * (y - share)) / w.sum()
    assert known == pytest.approx(0.1898712140, abs=6e-11)
    # Of lifelines 0.30.3: its survival, and Greenwood's sum over its table of events.
    free, terms = 1.0, 0.0
    for time in range(1, 6):
        events = WORKED.filter(pl.col("e") == 1, t=time).height
        at_risk = WORKED.filter(pl.col("t") >= time).height
        free *= 1 - events / at_risk
        terms += events / at_risk / (at_risk - events)
    assert 1 - free == pytest.approx(share, abs=1e-12)
    assert free * math.sqrt(terms) == pytest.approx(0.1724378453, abs=6e-11)


def test_scikit_survival_divides_by_the_uncensored_share_after_a_tied_time() -> None:
    """scikit-survival 0.28.0, at times 2 and 5 of which an event and a censoring are equal."""
    uncensored = {1: 1.0, 2: 1.0, 3: 0.875, 5: 0.875 * 5 / 6}
    after = {1: 1.0, 2: 0.875, 3: 0.875, 5: 0.546875}
    found = []
    for shares in (uncensored, after):
        weight = pl.col("t").replace_strict(shares, default=0.546875, return_dtype=pl.Float64)
        table = WORKED.filter((pl.col("e") == 1) | (pl.col("t") > 5)).with_columns(
            y=pl.col("t") <= 5, w=1 / weight
        )
        # Sums of Graf's score are divided by the number of rows, the censored too.
        loss = (
            pl.col("w") * (pl.col("y").cast(pl.Float64) - pl.col("s")) ** 2
        ).sum() / WORKED.height
        found.append((wroc.summary(table, **OUTCOME)["auc"].item(), table.select(loss).item()))
    assert found[0] == pytest.approx((0.9156118143, 0.1284285714), abs=6e-11)
    assert found[1] == pytest.approx((0.9255121043, 0.1331142857), abs=6e-11)
