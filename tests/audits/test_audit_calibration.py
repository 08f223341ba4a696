"""The calibration of an audit's segments, against plain means and `calibration_summary`."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import polars as pl
import pytest
from audit_words import cautions
from divided import audit_in_ranges
from polars.testing import assert_frame_equal
from scipy.stats import norm
from sweeps import sweep
from wide_tables import calibration_of

import polars_wroc as wroc

LARGE, SLOPE = "mean_calibration_error", "calibration_slope"


@pytest.fixture(scope="module")
def data() -> pl.DataFrame:
    rng = np.random.default_rng(11)
    promised = rng.uniform(size=3_000)
    return pl.DataFrame(
        {
            "y": rng.random(3_000) < promised**1.3,
            "p": promised,
            "rating": rng.normal(size=3_000),
            "g": pl.Series(["a", "b", None]).gather(rng.integers(0, 3, 3_000)),
            "h": rng.integers(0, 3, 3_000),
            "w": rng.lognormal(size=3_000),
        }
    )


def test_mean_errors_by_definition(data: pl.DataFrame) -> None:
    found = calibration_of(wroc.audit(data, "y", "p", attributes="h"))
    assert found is not None
    for row in found.filter(attribute="h").iter_rows(named=True):
        rows = data.filter(h=int(row["segment"]))
        mean, rate = np.mean(rows["p"].to_numpy()), np.mean(rows["y"].to_numpy())
        off = (rows["p"] - rows["y"].cast(float)).to_numpy()
        margin = norm.ppf(0.975) * np.std(off) / rows.height**0.5
        limits = mean - rate - margin, mean - rate + margin
        names = [LARGE, f"{LARGE}_low", f"{LARGE}_high"]
        expected = (mean - rate, *limits)
        assert tuple(row[name] for name in names) == pytest.approx(expected, abs=1e-12)


def test_slopes_of_scores_that_are_small_and_close_together() -> None:
    rng = np.random.default_rng(3)
    logit = rng.normal(-4, 0.05, 3_000)
    promised = 1 / (1 + np.exp(-logit))
    y = rng.random(3_000) < 2 * promised
    frame = pl.DataFrame({"y": y, "p": promised, "g": rng.integers(0, 2, 3_000)})
    found = calibration_of(wroc.audit(frame, "y", "p", attributes="g"))
    assert found is not None
    for by, attribute in ((None, "overall"), ("g", "g")):
        expected = wroc.calibration_summary(frame, "y", "p", by=by)
        names = [f"{SLOPE}{end}" for end in ("", "_low", "_high")]
        of_segments = found.filter(attribute=attribute).select(names)
        assert_frame_equal(of_segments, expected.select(names), rel_tol=1e-10)


@pytest.mark.parametrize("weight", sweep([None, "w"]))
def test_segments_have_their_calibration_error(data: pl.DataFrame, weight: str | None) -> None:
    result = wroc.audit(
        data.lazy(), "y", "p", attributes=["g", "h"], weight=weight, intersections=True
    )
    found = calibration_of(result)
    assert found is not None
    for keys in ([], ["g"], ["h"], ["g", "h"]):
        options: dict[str, Any] = {"by": keys or None, "weight": weight}
        expected = wroc.calibration_summary(data, "y", "p", **options)
        attribute = " × ".join(keys) or "overall"  # noqa: RUF001
        rows = found.filter(attribute=attribute).drop("attribute", "segment")
        assert rows.height == expected.height
        errors = [name for name in expected.columns if name.startswith(LARGE)]
        assert_frame_equal(rows.select(errors), expected.select(errors), abs_tol=1e-12)
        fits = [f"{SLOPE}{end}" for end in ("", "_low", "_high")]
        assert_frame_equal(rows.select(fits), expected.select(fits), rel_tol=1e-8)


@pytest.mark.slow(reason="makes several audits")
def test_only_scores_that_may_be_probabilities_are_in_it(data: pl.DataFrame) -> None:
    both = calibration_of(wroc.audit(data, "y", ["p", "rating"], attributes="g"))
    alone = calibration_of(wroc.audit(data, "y", "p", attributes="g"))
    assert both is not None
    assert alone is not None
    names = ["attribute", "segment", f"{LARGE}_low", f"{SLOPE}_high"]
    found = both.filter(model="p").select(names)
    assert_frame_equal(found, alone.select(names), abs_tol=1e-12)
    assert both.filter(model="rating").select(LARGE, SLOPE).null_count().row(0) == (4, 4)
    assert calibration_of(wroc.audit(data, "y", "rating", attributes="g")).is_empty()
    one_beyond = data.with_columns(p=pl.when(pl.int_range(pl.len()) == 5).then(1.01).otherwise("p"))
    assert calibration_of(wroc.audit(one_beyond, "y", "p", attributes="g")).is_empty()


def test_counts_tell_it_exactly_and_bins_not_at_all(data: pl.DataFrame) -> None:
    rounded = data.with_columns(pl.col("p").round(2))
    expected = calibration_of(wroc.audit(rounded, "y", "p", attributes="g", weight="w"))
    counts = wroc.score_counts(rounded, "y", "p", by="g", weight="w")
    found = calibration_of(wroc.from_counts(counts).audit(attributes="g"))
    assert expected is not None
    assert found is not None
    assert_frame_equal(found, expected, abs_tol=1e-12)
    binned = wroc.score_counts(rounded, "y", "p", by="g", bins=64)
    assert calibration_of(wroc.from_counts(binned).audit(attributes="g")).is_empty()


def test_a_frequency_stands_for_rows(data: pl.DataFrame) -> None:
    times = data.with_columns(times=pl.int_range(pl.len()) % 3 + 1)
    repeated = times.select(pl.exclude("times").repeat_by("times")).explode(data.columns)
    found = calibration_of(
        wroc.audit(times, "y", "p", attributes="h", weight=wroc.frequency("times"))
    )
    expected = calibration_of(wroc.audit(repeated, "y", "p", attributes="h"))
    assert found is not None
    assert expected is not None
    # Robust limits are those of rows.
    names = [f"{LARGE}{end}" for end in ("", "_low", "_high", "_gap", "_gap_low", "_gap_p_value")]
    names += [SLOPE, f"{SLOPE}_reference", f"{SLOPE}_gap"]
    assert_frame_equal(found.select(names), expected.select(names), rel_tol=1e-8, abs_tol=1e-12)
    options: dict[str, Any] = {"weight": wroc.frequency("times")}
    slopes = wroc.calibration_summary(times, "y", "p", by="h", **options)
    fits = [f"{SLOPE}{end}" for end in ("", "_low", "_high")]
    assert_frame_equal(found.filter(attribute="h").select(fits), slopes.select(fits), rel_tol=1e-8)


def test_nothing_is_said_overall_where_nothing_is_known() -> None:
    rows = {"g": ["a"] * 80 + ["b"] * 80, "y": [0, 1] * 80, "p": [0.25, 0.5, 0.5, 0.75] * 40}
    frame = pl.DataFrame(rows).with_columns(w=pl.when(g="a").then(1.0).otherwise(1.7e308))
    result = wroc.audit(frame, "y", "p", attributes="g", weight="w")
    assert calibration_of(result)[LARGE].null_count() == 2
    assert "The score has no AUC: the sums of weights overflow or underflow." in cautions(result)


def test_segments_without_rows_are_null() -> None:
    rows = {"y": [1, 0, 1, None], "p": [0.9, 0.1, 0.6, 0.5], "g": ["a", "a", "b", "c"]}
    found = calibration_of(wroc.audit(pl.DataFrame(rows), "y", "p", attributes="g"))
    assert found is not None
    assert found["n"].to_list() == [3, 2, 1, 0]
    assert found[LARGE][-1] is None
    assert found[LARGE][2] == pytest.approx(0.6 - 1)


def test_json_says_it(data: pl.DataFrame) -> None:
    result = wroc.audit(data, "y", ["p", "rating"], attributes=["g", "h"])
    kept = pl.DataFrame(json.loads(result.to_json())["table"], schema=result.table.schema)
    assert_frame_equal(kept, result.table)
    without = wroc.audit(data, "y", "rating", attributes="g")
    metrics = {row["metric"] for row in json.loads(without.to_json())["table"]}
    assert not {LARGE, SLOPE} & metrics


NOT_PROBABILITIES = "are not probabilities (300 to 850), so calibration was not audited."


@pytest.fixture(scope="module")
def points(data: pl.DataFrame) -> pl.DataFrame:
    return data.with_columns(
        s=(
            300 + 550 * (pl.col("p") - pl.col("p").min()) / (pl.col("p").max() - pl.col("p").min())
        ).round()
    )


def test_scores_that_are_not_probabilities_are_named(points: pl.DataFrame) -> None:
    alone = wroc.audit(points, "y", "s", attributes="g")
    both = wroc.audit(points, "y", ["p", "s"], attributes="g")
    assert f"The scores {NOT_PROBABILITIES}" in cautions(alone)
    of_score = "\N{LEFT DOUBLE QUOTATION MARK}s\N{RIGHT DOUBLE QUOTATION MARK}"
    said = [text for text in cautions(both) if "calibration" in text]
    assert said == [f"The scores of {of_score} {NOT_PROBABILITIES}"]


@pytest.mark.slow(reason="makes several audits")
def test_they_are_named_wherever_the_rows_are(points: pl.DataFrame) -> None:
    counts = wroc.score_counts(points, "y", "s", by="g")
    audits = [
        wroc.from_counts(counts).audit(attributes="g"),
        audit_in_ranges([points.lazy()], "y", "s", attributes="g", rows_per_range=500),
    ]
    for result in audits:
        assert f"The scores {NOT_PROBABILITIES}" in cautions(result)
    binned = wroc.score_counts(points, "y", "s", by="g", bins=50)
    said = cautions(wroc.from_counts(binned).audit(attributes="g"))
    assert "Calibration was not audited: scores were counted in bins." in said
    # The least and the greatest score may be those of one person.
    said = cautions(wroc.audit(points, "y", "s", attributes="g", min_cell=5))
    outside = "are not probabilities (outside 0 to 1), so calibration was not audited."
    assert f"The scores {outside}" in said
    said = cautions(wroc.audit(points, "y", "p", attributes="g"))
    assert not any("alibration" in text for text in said)
