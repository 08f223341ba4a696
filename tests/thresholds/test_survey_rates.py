"""Intervals of rates by the design of a survey: against worked numbers and the definition."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from plain_survey import (
    SAMPLE,
    SURVEYS,
    Row,
    covariance,
    degrees_of_freedom,
    rate_influences,
    survey_frame,
    totals,
)
from polars.testing import assert_frame_equal
from scipy import optimize, stats

import polars_wroc as wroc

RATES = ("tpr", "fpr", "ppv", "npv", "selection_rate", "accuracy")


def wilson(rate: float, size: float, quantile: float) -> tuple[float, float]:
    """The rates at the distance of the quantile, in their own standard errors."""

    def excess(p: float) -> float:
        return (rate - p) ** 2 - quantile**2 * p * (1 - p) / size

    # A rate of 0 or 1 is a root itself, and of the other is known what it is.
    if rate in (0, 1):
        far = quantile**2 / (size + quantile**2)
        return (0.0, far) if rate == 0 else (1 - far, 1.0)
    return optimize.brentq(excess, 0, rate, xtol=1e-15), optimize.brentq(
        excess, rate, 1, xtol=1e-15
    )


@given(SURVEYS, st.sampled_from(RATES), st.integers(1, 6), st.sampled_from([0.9, 0.95]))
def test_limits_are_wilsons_with_the_variance_of_the_design(
    rows: list[Row], rate: str, threshold: int, level: float
) -> None:
    inside = [row for row in rows if row.weight > 0]
    assume(inside)
    thresholds = [threshold, 3]
    options: dict[str, Any] = {
        "threshold": thresholds,
        "level": level,
        "design": wroc.Survey("c", strata="h", lonely="certainty"),
    }
    found = wroc.threshold_metrics(survey_frame(rows), "y", "s", **SAMPLE | options)
    row = found.filter(threshold=threshold).row(0, named=True)
    value, weights, influences = rate_influences(inside, rate, threshold)
    assert row[rate] == (None if value is None else pytest.approx(value, abs=1e-12))
    if value is None:
        assert row[f"{rate}_low"] is None
        return
    units = {each.psu for each in rows}
    df = degrees_of_freedom(inside, units)
    z = totals(inside, influences)
    variance, size = covariance(z, z, units), sum(weights) ** 2 / sum(w * w for w in weights)
    if variance > 1e-20 and 0 < value < 1:
        size = min(size, value * (1 - value) / variance)
    limits = wilson(value, size, float(stats.t.ppf((1 + level) / 2, max(df, 1))))
    assert (row[f"{rate}_low"], row[f"{rate}_high"]) == pytest.approx(limits, abs=1e-8)


def test_units_without_rows_of_the_segment_count() -> None:
    toy = pl.DataFrame(
        {
            "h": [1, 1, 1, 2, 2, 2],
            "c": ["a", "a", "b", "c", "d", "d"],
            "w": [1, 1, 1, 2, 1, 1],
            # The rate of selected rows is the weighted mean of s.
            "s": [1, 0, 1, 1, 0, 1],
            "y": 1,
            "g": [0, 0, 1, 0, 0, 0],
        }
    )
    found = wroc.threshold_metrics(toy, "y", "s", by="g", threshold=0.5, level=0.95, **SAMPLE)
    row = found.filter(g=0).row(0, named=True)
    assert row["selection_rate"] == pytest.approx(2 / 3)
    size = min(2 / 9 / 0.0308642, 36 / 8)
    limits = wilson(2 / 3, size, float(stats.t.ppf(0.975, 2)))
    found_limits = row["selection_rate_low"], row["selection_rate_high"]
    assert found_limits == pytest.approx(limits, abs=1e-6)
    alone = toy.filter(g=0)
    unknown = wroc.threshold_metrics(alone, "y", "s", threshold=0.5, level=0.95, **SAMPLE)
    assert unknown.select("tpr_low", "selection_rate_high").row(0) == (None, None)


def test_clusters_alone_are_units_of_one_stratum() -> None:
    random = np.random.default_rng(3)
    frame = pl.DataFrame({"s": random.normal(size=90), "c": np.arange(90) // 6}).with_columns(
        y=(pl.col("s").mean().over("c") > 0).cast(pl.Int8)
    )
    options: dict[str, Any] = {"threshold": [0.0, float("inf")], "level": 0.9, "design": "c"}
    found = wroc.threshold_metrics(frame, "y", "s", **options)
    stratum = wroc.Survey("c", strata=pl.lit("all"))
    one = wroc.threshold_metrics(frame, "y", "s", **options | {"design": stratum})
    assert_frame_equal(found, one)
    rows = wroc.threshold_metrics(frame, "y", "s", threshold=[0.0, float("inf")], level=0.9)
    wider = pl.col("accuracy_high") - pl.col("accuracy_low")
    assert found.select(wider)[1].item() > rows.select(wider)[1].item()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": 0.9}, "`threshold` and `level` must be given .* `design`; found `level`$"),
        ({"threshold": 1, "level": None}, "`level` must be given .*; found `threshold`$"),
        ({"level": None}, "`threshold` and `level` must be given .* `design`; found none$"),
        (
            {"threshold": 1, "level": 0.9, "prevalence": 0.1},
            "`prevalence` must not be given with a design",
        ),
    ],
)
def test_rates_by_design_refuse_wrong_options(
    seven: pl.DataFrame, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        wroc.threshold_metrics(seven, "y", "s", design="w", **options)


@pytest.mark.parametrize("common", [False, True])
@pytest.mark.parametrize("design", ["c", wroc.Survey("c", strata="h", fpc=pl.lit(0.2))])
def test_limits_at_chosen_thresholds_are_those_at_given_ones(design: Any, common: bool) -> None:
    random = np.random.default_rng(8)
    unit = random.integers(0, 24, 300)
    y, g = random.random(300) < 0.4, random.choice([0, 1], 300)
    frame = pl.DataFrame(
        {
            "h": unit % 3,
            "c": unit,
            "g": g,
            "y": y,
            "s": np.round(y + g + random.normal(size=24)[unit] + random.normal(size=300), 1),
            "w": random.lognormal(sigma=0.5, size=300),
        }
    )
    options: dict[str, Any] = {"by": "g", "level": 0.9, "weight": "w", "design": design}
    rule = wroc.rules.max_fpr(0.2)
    points = wroc.threshold_metrics(
        frame.lazy(), "y", "s", threshold=rule, per_group=not common, **options
    ).collect()
    assert (points["threshold"].n_unique() == 1) == common
    for row in points.iter_slices(1):
        threshold = row["threshold"].item()
        given = wroc.threshold_metrics(frame, "y", "s", threshold=threshold, **options)
        assert_frame_equal(row, given.filter(g=row["g"].item()), rel_tol=1e-10)


def test_limits_are_null_where_no_threshold_is_allowed(seven: pl.DataFrame) -> None:
    rule = wroc.rules.max_selection_rate(0.0)
    options: dict[str, Any] = {"level": 0.9, "design": "w", "metrics": ["tpr", "fpr"]}
    one = wroc.threshold_metrics(
        seven.with_columns(s=pl.lit(1.0)), "y", "s", threshold=rule, per_group=True, **options
    )
    assert one.select("tpr", "fpr").row(0) == (0, 0)
    impossible = wroc.threshold_metrics(
        seven.filter(y=0), "y", "s", threshold=rule, per_group=True, **options
    )
    assert impossible.select("tpr", "tpr_low", "tpr_high").row(0) == (None,) * 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": None}, "`level` must be given (or `selected` and `level`) with a `design`"),
        (
            {"level": 0.9, "honest": "crossfit"},
            "`design` must be None with `honest`, which draws single rows: choose the threshold on",
        ),
        (
            {"level": 0.9, "threshold": wroc.rules.least_cost(fn=1, fp=1, prevalence=0.1)},
            "`prevalence` must not be given with a design, nor by a rule; found 0.1",
        ),
    ],
)
def test_wrong_options_of_chosen_thresholds(
    seven: pl.DataFrame, options: dict[str, Any], message: str
) -> None:
    given = {"threshold": wroc.rules.youden(), **options}
    with pytest.raises(ValueError, match=re.escape(message)):
        wroc.threshold_metrics(seven, "y", "s", per_group=True, design="w", **given)
