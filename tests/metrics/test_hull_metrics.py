"""Metrics of the hull: against integrals over all costs, in groups and in plans."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from calls import one_metric
from hulls import DENSITIES, Density, h_measure, hull_auc, path
from polars.exceptions import InvalidOperationError
from polars.testing import assert_frame_equal
from processes import PLAIN
from scipy import stats
from sweeps import sweep

import polars_wroc as wroc


def sample(seed: int, prevalence: float = 0.3, rows: int = 60) -> pl.DataFrame:
    """Weighted rows with tied scores, of which the positives weigh a given share."""
    random = np.random.default_rng(seed)
    y = np.arange(rows) % 2
    w = random.lognormal(size=rows)
    for label, share in ((1, prevalence), (0, 1 - prevalence)):
        w[y == label] *= share / w[y == label].sum()
    return pl.DataFrame({"y": y, "s": np.round(random.normal(size=rows) + y, 1), "w": w})


def test_worked_values(seven: pl.DataFrame) -> None:
    # The corners (0, 0), (0, 1), (3, 4) and (5, 4), in weight.
    assert hull_auc(seven) == pytest.approx((3 * 2.5 + 2 * 4) / 20, abs=1e-12)
    assert h_measure(seven) == pytest.approx(0.32333, abs=5e-6)


def loss_over_costs(frame: pl.DataFrame, density: Density) -> float:
    """The H-measure as one integral over a grid that is fine at both ends."""
    logit = np.linspace(-40, 40, 100_001)
    # The two costs of an error, each without the rounding of 1 - the other.
    cost, rest = 1 / (1 + np.exp(-logit)), 1 / (1 + np.exp(logit))
    fp, tp = (np.array(v, dtype=float) for v in zip(*path(frame), strict=True))
    negatives, positives = fp[-1], tp[-1]
    prevalence = positives / (positives + negatives)
    second = 2 if density == "beta22" else 1 / prevalence
    share = stats.beta.pdf(cost, 2, second) * cost * rest
    best = np.full_like(cost, np.inf)
    for false_pos, true_pos in zip(fp, tp, strict=True):
        best = np.minimum(best, cost * false_pos + rest * (positives - true_pos))
    without = np.minimum(cost * negatives, rest * positives)
    return float(1 - (best * share).sum() / (without * share).sum())


@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize("prevalence", sweep([1e-4, 0.02, 0.3, 0.5, 0.9, 1 - 1e-4], fast=3))
def test_h_measure_is_the_loss_averaged_over_costs(density: Density, prevalence: float) -> None:
    for seed in range(3):
        frame = sample(seed, prevalence)
        expected = loss_over_costs(frame, density)
        assert 0 < expected < 1
        assert h_measure(frame, density) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize("prevalence", [1e-4, 0.3, 1 - 1e-4])
def test_perfect_and_useless_scores(density: Density, prevalence: float) -> None:
    frame = sample(1, prevalence)
    assert h_measure(frame.with_columns(s="y"), density) == pytest.approx(1, abs=1e-6)
    assert h_measure(frame.with_columns(s=1), density) == pytest.approx(0, abs=1e-6)
    assert h_measure(frame.with_columns(s=-pl.col("y")), density) == pytest.approx(0, abs=1e-6)


MEASURES = [
    one_metric("roc_hull_auc", weight="w").alias("hull"),
    one_metric("h_measure", weight="w").alias("beta22"),
    one_metric(wroc.HMeasure(density="hmeasure"), weight="w").alias("hmeasure"),
]


@pytest.mark.slow(reason="computes many tables")
def test_groups_are_as_if_alone(people: pl.DataFrame) -> None:
    groups = [people.with_columns(pl.col("g") + str(k), pl.col("w") + k) for k in range(12)]
    alien = pl.DataFrame(
        {
            "g": ["d1", "d1", "d1", "d1", "one class", "nobody"],
            "y": [True, False, None, True, True, False],
            "s": [float("nan"), 99.0, 99.0, None, 1.0, 1.0],
            "w": [1.0, 0.0, 1.0, 1.0, 1.0, 0.0],
        }
    )
    rows = pl.concat([*groups, alien], how="diagonal").sample(fraction=1, shuffle=True, seed=1)
    found = rows.lazy().group_by("g").agg(MEASURES).sort("g").collect()
    parts = pl.concat(groups).partition_by("g", as_dict=True)
    alone = [parts[key].select(pl.lit(key[0]).alias("g"), *MEASURES) for key in sorted(parts)]
    names = ["one class", "nobody"]
    known = found.filter(~pl.col("g").is_in(names))
    assert_frame_equal(known, pl.concat(alone), abs_tol=1e-12)
    others = found.filter(pl.col("g").is_in(names))
    assert others.select(pl.exclude("g")).rows() == [(None,) * 3] * 2
    windows = rows.lazy().select("g", *(one.over("g") for one in MEASURES)).unique().sort("g")
    assert_frame_equal(windows.collect(), found, abs_tol=1e-12)


def test_no_rows_and_bad_rows(people: pl.DataFrame) -> None:
    none = people.lazy().clear()
    assert none.select(MEASURES).collect().row(0) == (None,) * 3
    assert none.group_by("g").agg(MEASURES).collect().is_empty()
    with pytest.raises(InvalidOperationError, match="`weight` must be finite and zero or more"):
        people.lazy().with_columns(w=pl.lit(-1)).select(MEASURES).collect()


def test_plan_can_be_shipped(people: pl.DataFrame, tmp_path: Path) -> None:
    plan = people.lazy().group_by("g").agg(MEASURES).sort("g")
    shipped = pl.LazyFrame.deserialize(io.BytesIO(plan.serialize()))
    assert_frame_equal(shipped.collect(), plan.collect(), rel_tol=1e-12)
    (tmp_path / "plan").write_bytes(plan.serialize())
    # Where nothing of this package was imported.
    code = "import polars, sys; polars.LazyFrame.deserialize(sys.argv[1]).collect().write_csv()"
    call = [sys.executable, "-c", code, str(tmp_path / "plan")]
    subprocess.run(call, env=PLAIN, check=True)  # noqa: S603
