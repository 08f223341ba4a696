"""Bins of scores: monotone, the same for any data, and with bounds that hold with certainty."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from sklearn.metrics import roc_auc_score, roc_curve
from sweeps import sweep

import polars_wroc as wroc

summary_of = partial(wroc.summary, diagnostics=True)

Floats = npt.NDArray[np.float64]
# What adding up in another order may change.
ROUNDING = 1e-12
ROWS = 12


def numbered(scores: Floats, parts: int) -> list[int]:
    """Number the bins of some scores, of which 16 times so many are asked for."""
    frame = pl.DataFrame({"y": True, "s": scores})
    bins = wroc.score_counts(frame, "y", "s", bins=16 * parts).sort("score_low")
    low, high = (bins[f"score_{end}"].to_numpy() for end in ("low", "high"))
    assert (high[:-1] < low[1:]).all()
    found: list[int] = (np.searchsorted(low, scores, side="right") - 1).tolist()
    return found


@given(
    scores=st.lists(st.floats(allow_nan=False), min_size=2),
    bits=st.sampled_from([0, 1, 4, 8, 20, 48]),
)
def test_numbers_of_bins_rise_with_scores(scores: list[float], bits: int) -> None:
    numbers = numbered(np.array(sorted(scores)), 1 << bits)
    assert numbers == sorted(numbers)
    # Two bins of one are two of its halves.
    finer = numbered(np.array(sorted(scores)), 1 << min(bits + 1, 48))
    assert all(number is not None for number in finer)
    together: dict[int, set[int]] = {}
    for fine, coarse in zip(finer, numbers, strict=True):
        together.setdefault(fine, set()).add(coarse)
    assert all(len(coarse) == 1 for coarse in together.values())


@pytest.mark.parametrize("bits", [0, 4, 8])
def test_bins_end_at_powers_of_two_and_their_parts(bits: int) -> None:
    parts = 1 << bits
    for low in (2.0**-9, 0.125, 2.0, 1024.0):
        edges = low * (1 + np.arange(parts + 1) / parts)
        inside = np.nextafter(edges[1:], 0)
        numbers = numbered(np.sort(np.concatenate([edges[:-1], inside])), parts)
        assert numbers[::2] == numbers[1::2]
        assert len(set(numbers)) == parts
    # Towards one, bins are those towards zero, mirrored.
    small = np.arange(1, 300) / 1024
    steps = np.diff(numbered(small, parts))
    assert np.diff(numbered(1 - small, parts)).tolist() == (-steps).tolist()


@pytest.mark.parametrize(
    ("bins", "parts"), [(16, 1), (17, 2), (1000, 64), (4096, 256), (10**30, 1 << 48)]
)
def test_bins_are_at_least_as_many_as_asked_for(bins: int, parts: int) -> None:
    # So many parts of the scores from 2 to 4, or each score alone.
    frame = pl.DataFrame({"y": True, "s": 2 + np.arange(1024) / 512})
    assert wroc.score_counts(frame, "y", "s", bins=bins).height == min(parts, 1024)


def adversarial(random: np.random.Generator, cases: int) -> dict[str, Floats]:
    """Scores of each kind that bins may get wrong: a row of ``ROWS`` for each case."""
    shape = (cases, ROWS)
    place = random.random((cases, 1))
    steps = random.integers(-3, 4, shape)
    ulps = np.where(steps == 0, place, np.nextafter(place, np.sign(steps) * 10))
    special = [0.0, -0.0, np.inf, -np.inf, 5e-324, -5e-324, 1e-310, 0.5, 1.0, 1.7e308]
    edges = 2.0 ** random.integers(-4, 4, shape)
    return {
        "normal": random.normal(size=shape) * 10.0 ** random.integers(-5, 6, (cases, 1)),
        "probability": random.random(shape),
        "one bin": 1e6 + random.random(shape) * 1e-3,
        "one ulp": ulps,
        "tied": np.round(random.random(shape), 1),
        "near one": 1 - 10.0 ** random.uniform(-16, -1, shape),
        "near zero": 10.0 ** random.uniform(-320, -1, shape),
        "special": random.choice(special, shape),
        "edges": np.where(random.random(shape) < 0.5, edges, np.nextafter(edges, 0)),
        "huge": random.choice([-1.0, 1.0], shape) * 10.0 ** random.uniform(290, 308, shape),
    }


@pytest.fixture(scope="module")
def cases() -> pl.DataFrame:
    """Ten thousand small data sets, a tenth of them of each kind."""
    random, each = np.random.default_rng(11), 1000
    kinds = adversarial(random, each)
    scores = np.concatenate([*kinds.values()])
    labels = random.random(scores.shape) < 0.5
    return pl.DataFrame(
        {
            "case": np.repeat(np.arange(scores.shape[0]), ROWS),
            "kind": np.repeat([*kinds], each * ROWS),
            "s": scores.ravel(),
            "y": labels.ravel(),
            "w": random.choice([0.0, 0.5, 1.0, 7.0], scores.size),
        }
    )


@pytest.mark.parametrize(
    "options", sweep([{"bins": 16}, {"bins": 64}, {"bins": 4096}, {"tolerance": 0.02}])
)
def test_bounds_hold_in_ten_thousand_cases(cases: pl.DataFrame, options: dict[str, Any]) -> None:
    exact = summary_of(cases, "y", "s", weight="w", by="case")
    bounded = summary_of(cases, "y", "s", weight="w", by="case", **options)
    assert_frame_equal(
        bounded.select("case", "n_pos", "n_neg", "w_pos", "w_neg"),
        exact.select("case", "n_pos", "n_neg", "w_pos", "w_neg"),
    )
    assert exact["auc"].null_count() < exact.height / 100
    table = bounded.with_columns(exact=exact["auc"]).filter(pl.col("exact").is_not_null())
    low, high = pl.col("auc_min") - ROUNDING, pl.col("auc_max") + ROUNDING
    assert table.filter(~pl.col("exact").is_between(low, high)).is_empty()
    assert table.filter(~pl.col("auc").is_between(low, high)).is_empty()
    assert bounded.filter(pl.col("auc_min").is_null() != pl.col("auc").is_null()).is_empty()
    widths = (table["auc_max"] - table["auc_min"]).to_numpy()
    if "tolerance" in options:
        assert widths.max() <= options["tolerance"] + ROUNDING
    elif options["bins"] == 16:
        # Otherwise the bounds would be those of the exact curve.
        assert widths.mean() > 0.1


@pytest.mark.slow(reason="computes many tables")
@pytest.mark.parametrize(
    "area",
    [
        {"fpr": (0.0, 0.2)},
        {"fpr": (0.1, 0.6), "standardize": True},
        {"tpr": (0.5, 1.0)},
        {"fpr": (0.0, 0.5), "tpr": (0.5, 1.0)},
    ],
)
def test_bounds_of_partial_areas_hold(cases: pl.DataFrame, area: dict[str, Any]) -> None:
    areas = {"part": wroc.PartialAUC(**area)}
    exact = wroc.summary(cases, "y", "s", weight="w", by="case", areas=areas)
    bounded = wroc.summary(cases, "y", "s", weight="w", by="case", bins=16, areas=areas)
    table = bounded.select("part_min", "part_max", exact=exact["part"]).drop_nulls()
    assert table.height > 9000
    low, high = pl.col("part_min") - ROUNDING, pl.col("part_max") + ROUNDING
    assert table.filter(~pl.col("exact").is_between(low, high)).is_empty()
    assert (table["part_max"] > table["part_min"]).any()


@pytest.mark.parametrize(
    ("function", "given_rate", "found"),
    [(wroc.roc_point, "fpr", "tpr"), (wroc.roc_point, "tpr", "fpr")],
)
def test_bounds_of_rates_hold(
    cases: pl.DataFrame, function: Callable[..., pl.DataFrame], given_rate: str, found: str
) -> None:
    some = cases.filter(pl.col("case") % 10 == 0)
    rates = {given_rate: [0.0, 0.1, 0.25, 0.5, 1.0]}
    exact = function(some, "y", "s", weight="w", by="case", **rates)
    bounded = function(some, "y", "s", weight="w", by="case", bins=16, **rates)
    table = bounded.with_columns(exact=exact[found]).drop_nulls(found)
    low, high = pl.col(f"{found}_min") - ROUNDING, pl.col(f"{found}_max") + ROUNDING
    assert table.filter(~pl.col("exact").is_between(low, high)).is_empty()
    assert table.height > 4000


def test_binned_scores_are_ties_as_sklearn_sees_them() -> None:
    random = np.random.default_rng(2)
    scores, labels, weights = random.normal(size=500), random.random(500) < 0.4, random.random(500)
    frame = pl.DataFrame({"y": labels, "s": scores, "w": weights})
    tied = np.array(numbered(scores, 4))
    found = summary_of(frame, "y", "s", weight="w", bins=64).row(0, named=True)
    assert found["auc"] == pytest.approx(
        roc_auc_score(labels, tied, sample_weight=weights), rel=1e-12
    )
    # All in a bin in the best order and in the worst one.
    best = tied + 0.5 * labels
    worst = tied - 0.5 * labels
    for name, ranks in (("auc_max", best), ("auc_min", worst)):
        expected = roc_auc_score(labels, ranks, sample_weight=weights)
        assert found[name] == pytest.approx(expected, rel=1e-12)


def test_points_between_bins_are_points_of_the_curve() -> None:
    random = np.random.default_rng(3)
    scores, labels = random.random(400), random.random(400) < 0.5
    frame = pl.DataFrame({"y": labels, "s": scores})
    binned = wroc.roc_curve(frame, "y", "s", bins=32)
    fpr, tpr, thresholds = roc_curve(labels, scores, drop_intermediate=False)
    whole = pl.DataFrame({"threshold": thresholds, "fpr": fpr, "tpr": tpr})
    both = binned.select("threshold", "fpr", "tpr").join(whole, on="threshold", suffix="_whole")
    assert both.height == binned.height < 70
    for rate in ("fpr", "tpr"):
        np.testing.assert_allclose(both[rate], both[f"{rate}_whole"], atol=1e-14)
    exact = roc_auc_score(labels, scores)
    low, high = binned.row(0, named=True)["auc_min"], binned.row(0, named=True)["auc_max"]
    assert low <= exact <= high


@pytest.mark.parametrize(
    "scores",
    [
        lambda z: z,
        lambda z: 1 / (1 + np.exp(-z)),
        lambda z: 1 / (1 + np.exp(5 - z)),
        lambda z: 1 / (1 + np.exp(-2 * z - 4)),
        lambda z: z / 1000,
        lambda z: np.round(100 * z),
    ],
    ids=["logits", "probabilities", "rare", "common", "small", "integers"],
)
def test_the_default_is_sure_to_a_thousandth(scores: Callable[[Floats], Floats]) -> None:
    random = np.random.default_rng(4)
    labels = random.random(20_000) < 0.3
    frame = pl.DataFrame({"y": labels, "s": scores(random.normal(size=20_000) + labels)})
    found = summary_of(frame, "y", "s", bins=4096).row(0, named=True)
    assert found["auc_max"] - found["auc_min"] < 1e-3
    assert found["auc"] == pytest.approx(summary_of(frame, "y", "s")["auc"].item(), abs=1e-5)


@pytest.mark.parametrize("tolerance", sweep([1e-2, 1e-4, 0.0]))
def test_a_tolerance_is_kept_in_every_group(tolerance: float) -> None:
    random, rows = np.random.default_rng(6), 3000
    labels = random.random(rows) < 0.3
    frame = pl.DataFrame(
        {
            "a": random.choice(["x", "y"], rows),
            "b": random.choice([np.nan, 1.0, 2.0], rows),
            "y": labels,
            # In one bin, nearly: only single scores tell them apart.
            "s": 1e6 + random.normal(size=rows) + labels,
            "other": random.normal(size=rows) + labels,
        }
    )
    for by in (["a"], ["a", "b"], None):
        summary = partial(wroc.summary, frame, "y", ["s", "other"], by=by, diagnostics=True)
        exact, bounded = summary(), summary(tolerance=tolerance)
        low, high, auc = pl.col("auc_min"), pl.col("auc_max"), pl.lit(exact["auc"])
        assert bounded.select((high - low).max()).item() <= tolerance + ROUNDING
        assert bounded.select((low - auc).max()).item() <= ROUNDING
        assert bounded.select((auc - high).max()).item() <= ROUNDING
        counts = ["n", "n_pos", "w_pos"]
        assert_frame_equal(bounded.select(counts), exact.select(counts))
        if tolerance == 0:
            columns = ["auc", "auc_se", "auc_low", "auc_high", "ks"]
            found = bounded.select(columns)
            assert_frame_equal(found, exact.select(columns), rel_tol=1e-9, abs_tol=1e-9)
