"""Limits of metrics that are no proportions: derivatives by hand, and a bootstrap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from plain_rates import f1, lr_pos, youden
from polars.testing import assert_frame_equal
from scipy import stats

import polars_wroc as wroc

Array = NDArray[np.float64]
THRESHOLD = 0.3
# Metrics that are not a share of rows.
OTHERS = ["balanced_accuracy", "f1", "mcc", "youden", "lift", "markedness", "f2", "jaccard"]
OTHERS += ["lr_pos", "lr_neg", "net_benefit"]
ROWS: dict[str, Any] = {"threshold": THRESHOLD, "metrics": "all"}


def frame_of(seed: int, n: int = 90) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    y = random.random(n) < 0.35
    score = np.clip(0.25 * y + 0.6 * random.random(n), 0, 1)
    columns = {"y": y, "s": score, "w": random.lognormal(0, 0.8, n), "c": np.arange(n) // 6}
    return pl.DataFrame(columns)


def membership(frame: pl.DataFrame) -> Array:
    """One column per cell: tp, fp, fn, tn."""
    y, selected = frame["y"].to_numpy(), frame["s"].to_numpy() >= THRESHOLD
    return np.stack([y & selected, ~y & selected, y & ~selected, ~y & ~selected], axis=1).astype(
        float
    )


# Of each metric the value on its scale and its derivatives by tp, fp, fn and tn, by hand.


def mcc(tp: float, fp: float, fn: float, tn: float) -> tuple[float, Array]:
    pos, neg, chosen, left = tp + fn, fp + tn, tp + fp, fn + tn
    value = (tp * tn - fp * fn) / np.sqrt(pos * neg * chosen * left)
    root = np.sqrt(pos * neg * chosen * left)
    halves = [1 / pos + 1 / chosen, 1 / neg + 1 / chosen, 1 / pos + 1 / left, 1 / neg + 1 / left]
    slopes = np.array([tn, -fn, -fp, tp]) / root - value * np.array(halves) / 2
    return np.log((1 + value) / (1 - value)), 2 * slopes / (1 - value**2)


BY_HAND: dict[str, Callable[..., tuple[float, Array]]] = {
    "f1": f1,
    "mcc": mcc,
    "lr_pos": lr_pos,
    "youden": youden,
}


def unscaled(name: str, place: float) -> float:
    if name == "lr_pos":
        return float(np.exp(place))
    share = 1 / (1 + np.exp(-place))
    return float(share if name == "f1" else 2 * share - 1)


def limits_by_hand(
    name: str, frame: pl.DataFrame, *, clustered: bool = False
) -> tuple[float, float]:
    w, cells = frame["w"].to_numpy(), membership(frame)
    mean = (w**2).sum() / w.sum()
    added = 0.5 * mean
    centre, slopes = BY_HAND[name](*(w @ cells + added))
    variance = (slopes**2 @ (w**2 @ cells)).item()
    lost = mean / w.sum() - 1 / len(w)
    quantile = stats.t.ppf(0.975, 1 / lost) if lost > 1e-9 else stats.norm.ppf(0.975)
    if clustered:
        clusters = frame["c"].to_numpy()
        units = clusters.max() + 1
        shares = w @ cells / w.sum()
        influences = (w[:, None] * (cells - shares)) @ slopes
        totals, weights = (np.bincount(clusters, each) for each in (influences, w / w.sum()))
        s2, s3 = (weights**2).sum(), (weights**3).sum()
        factor = s2 / (s2 - 2 * s3 + s2**2)
        variance = max(variance, factor * (totals**2).sum())
        quantile = stats.t.ppf(0.975, units - 1)
    error = np.sqrt(variance + slopes**2 @ np.full(4, added * mean))
    own, _ = BY_HAND[name](*(w @ cells))
    ends = min(own, centre) - quantile * error, max(own, centre) + quantile * error
    return unscaled(name, ends[0]), unscaled(name, ends[1])


@pytest.mark.parametrize("name", BY_HAND)
@pytest.mark.parametrize("seed", [1, 2])
def test_limits_are_those_of_derivatives_by_hand(name: str, seed: int) -> None:
    frame = frame_of(seed)
    for weight, known in (("w", frame), (None, frame.with_columns(w=1.0))):
        found = wroc.threshold_metrics(frame, "y", "s", weight=weight, **ROWS)
        limits = found.select(f"{name}_low", f"{name}_high").row(0)
        assert limits == pytest.approx(limits_by_hand(name, known), rel=1e-8)
    found = wroc.threshold_metrics(frame, "y", "s", weight="w", design="c", **ROWS)
    limits = found.select(f"{name}_low", f"{name}_high").row(0)
    assert limits == pytest.approx(limits_by_hand(name, frame, clustered=True), rel=1e-8)


def test_other_ways_to_ask_give_the_same_limits() -> None:
    frame = frame_of(3).with_columns(g=pl.col("c") % 2)
    options: dict[str, Any] = {"weight": "w", "by": "g", **ROWS}
    found = wroc.threshold_metrics(frame, "y", "s", **options)
    lazy = wroc.threshold_metrics(frame.lazy(), "y", "s", **options).collect()
    assert_frame_equal(found, lazy, rel_tol=1e-9)
    recorded = wroc.threshold_metrics(
        frame, "y", weight="w", by="g", selected=pl.col("s") >= THRESHOLD, metrics=OTHERS[:-1]
    )
    assert_frame_equal(recorded.drop("threshold"), found.select(recorded.columns).drop("threshold"))
    scaled = wroc.threshold_metrics(frame.with_columns(w=pl.col("w") * 1e-6), "y", "s", **options)
    cells = ["tp", "fp", "fn", "tn"]
    assert_frame_equal(found.drop(cells), scaled.drop(cells), rel_tol=1e-9)
    twice = pl.concat([frame, frame])
    counted = wroc.threshold_metrics(
        frame.with_columns(n=2), "y", "s", weight=wroc.frequency("n"), **ROWS
    )
    assert_frame_equal(wroc.threshold_metrics(twice, "y", "s", **ROWS), counted, rel_tol=1e-9)


def test_limits_keep_to_the_range_and_include_the_metric() -> None:
    random = np.random.default_rng(7)
    tables = [
        frame_of(seed, n).with_columns(y=pl.Series(random.random(n) < share))
        for seed, n, share in ((1, 4, 0.5), (2, 8, 0.1), (3, 20, 0.9), (4, 5, 1.0), (5, 9, 0.0))
    ]
    perfect = pl.DataFrame({"y": [True, False] * 4, "s": [0.9, 0.1] * 4, "w": 1.0, "c": 0})
    both = pl.concat([*tables, perfect], how="vertical_relaxed")
    both = both.with_columns(g=pl.Series(np.repeat(range(6), [4, 8, 20, 5, 9, 8])))
    found = wroc.threshold_metrics(both, "y", "s", weight="w", by="g", **ROWS)
    ends: dict[str, tuple[float, float]] = {
        "mcc": (-1, 1),
        "youden": (-1, 1),
        "markedness": (-1, 1),
        "net_benefit": (-3 / 7, 1),
    }
    ends |= dict.fromkeys(("lift", "lr_pos", "lr_neg"), (0.0, np.inf))
    for name in OTHERS:
        value, low, high = (pl.col(f"{name}{end}") for end in ("", "_low", "_high"))
        known = found.filter(value.is_not_null())
        least, most = ends.get(name, (0, 1))
        inside = (least <= low) & (low <= value) & (value <= high) & (high <= most) & (low < high)
        assert known.select(inside.all()).item(), name
        assert (
            found.filter(value.is_null()).select(low.is_null().all() & high.is_null().all()).item()
        )


def test_limits_in_a_population_are_those_of_two_samples() -> None:
    frame, prevalence = frame_of(4, 200).with_columns(w=1.0), 0.1
    tp, fp, fn, tn = frame["w"].to_numpy() @ membership(frame)

    def lift(tp: float, fp: float, fn: float, tn: float) -> float:
        tpr, fpr = tp / (tp + fn), fp / (fp + tn)
        return float(np.log(tpr / (prevalence * tpr + (1 - prevalence) * fpr)))

    cells = np.array([tp, fp, fn, tn]) + 0.5
    steps = 1e-5 * np.diag(cells)
    slopes = [(lift(*(cells + s)) - lift(*(cells - s))) / (2 * s.sum()) for s in steps]
    error = np.sqrt(np.square(slopes) @ cells)
    found = wroc.threshold_metrics(frame, "y", "s", prevalence=prevalence, **ROWS)
    ends = sorted([lift(tp, fp, fn, tn), lift(*cells)])
    expected = np.exp(ends[0] - 1.959964 * error), np.exp(ends[1] + 1.959964 * error)
    assert found.select("lift_low", "lift_high").row(0) == pytest.approx(expected, rel=1e-6)
    exact = found.select("prevalence_low", "prevalence_high").row(0)
    assert exact == pytest.approx((prevalence, prevalence))


@pytest.mark.slow(reason="simulates many samples")
@pytest.mark.parametrize("name", OTHERS)
def test_limits_are_about_those_of_a_bootstrap(name: str) -> None:
    frame = frame_of(5, 1500)
    random, cells, w = np.random.default_rng(1), membership(frame), frame["w"].to_numpy()
    draws = random.multinomial(len(w), np.full(len(w), 1 / len(w)), 1500) * w
    rows = pl.DataFrame(draws @ cells, ["tp", "fp", "fn", "tn"]).with_row_index("draw")
    kinds = {"tp": (1, 1.0), "fp": (0, 1.0), "fn": (1, 0.0), "tn": (0, 0.0)}
    long = pl.concat(
        rows.select("draw", y=pl.lit(y), s=pl.lit(s), w=cell) for cell, (y, s) in kinds.items()
    )
    options: dict[str, Any] = {"threshold": THRESHOLD, "metrics": name, "weight": "w"}
    values = wroc.threshold_metrics(long, "y", "s", by="draw", level=None, **options)[name]
    found = wroc.threshold_metrics(frame, "y", "s", **options)
    low, high = found.select(f"{name}_low", f"{name}_high").row(0)
    expected = float(np.quantile(values, 0.025)), float(np.quantile(values, 0.975))
    assert (low, high) == pytest.approx(expected, abs=0.12 * (high - low))
