"""All tests of an audit share one error: gaps and calibration, each comparison once."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from families import CALIBRATION, GAPS, assert_one_family
from polars.testing import assert_frame_equal
from sweeps import sweep

import polars_wroc as wroc

OPTIONS: dict[str, Any] = {"threshold": 0.5, "favorable": "selected"}


def people(seed: int, lower: float = 0.0, n: int = 2_400) -> pl.DataFrame:
    """Probabilities, which are right; those of the first of four groups are lower."""
    random = np.random.default_rng(seed)
    score, group = random.beta(2, 2, n), random.integers(0, 4, n)
    return pl.DataFrame(
        {
            "g": np.array(list("abcd"))[group],
            "h": np.array(list("uv"))[random.integers(0, 2, n)],
            "y": random.random(n) < score,
            "s": np.clip(score - lower * (group == 0), 0.01, 0.99),
            "w": random.lognormal(sigma=0.4, size=n),
        }
    )


@pytest.mark.parametrize("weight", sweep([None, "w"]))
@pytest.mark.parametrize("lower", [0.0, 0.15])
def test_holm_over_the_p_values_of_the_table(lower: float, weight: str | None) -> None:
    audit = wroc.audit(people(1, lower), "y", "s", attributes=["g", "h"], weight=weight, **OPTIONS)
    family = assert_one_family(audit)
    # Both of all rows; six gaps and two tests of calibration of four groups and, once, of two.
    assert family.height == 2 + 8 * (4 + 1)
    assert set(family["metric"]) == {*GAPS, *CALIBRATION}
    assert family.filter(attribute="h").height == 8
    judged = audit.table.filter(pl.col("metric").is_in([*GAPS, *CALIBRATION]))
    different = judged.filter(verdict="different")
    assert (different["p_adjusted"] <= 0.05).all()
    others = judged.filter(verdict="inconclusive")
    assert (others["p_adjusted"] > 0.05).all()
    assert different.is_empty() == (lower == 0)
    if lower:
        calibrated = different.filter(pl.col("metric").is_in([*CALIBRATION]))
        assert set(calibrated["segment"]) >= {"a"}


def test_calibration_makes_gaps_harder_to_find() -> None:
    """The smallest gap to be found, and "equivalent", are those of one of all tests."""
    frame = people(2)
    audit = wroc.audit(frame, "y", "s", attributes=["g", "h"], margin=0.12, **OPTIONS)
    number = assert_one_family(audit).height
    one = wroc.group_gaps(
        frame,
        "y",
        "s",
        attributes=["g", "h"],
        threshold=0.5,
        margin=0.12,
        adjust="none",
        level=1 - 0.05 / number,
    )
    keys = ["attribute", "segment", "metric"]
    found = audit.table.select(*keys, "detectable", alike=pl.col("verdict") == "equivalent")
    both = one.select(*keys).join(found, on=keys, how="left", maintain_order="left")
    expected = one.select(*keys, "detectable", alike=pl.col("verdict") == "equivalent")
    assert_frame_equal(both, expected, rel_tol=1e-9)
    assert 0 < both["alike"].sum() < both.height


def test_scores_that_are_no_probabilities_have_no_tests_of_calibration() -> None:
    frame = people(3).with_columns(s=pl.col("s") * 2)
    audit = wroc.audit(frame, "y", "s", attributes="g", threshold=1.0, favorable="selected")
    assert assert_one_family(audit).height == 6 * 4


def test_impact_ratios_are_not_counted() -> None:
    audit = wroc.audit(people(4), "y", "s", attributes="g", **OPTIONS)
    impact = audit.table.filter(metric="impact_ratio").drop_nulls("p_value")
    order = impact["p_value"].sort().to_list()
    holm = np.maximum.accumulate([(3 - rank) * p for rank, p in enumerate(order)])
    assert impact["p_adjusted"].sort().to_list() == pytest.approx(np.minimum(holm, 1), rel=1e-9)
