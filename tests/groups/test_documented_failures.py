"""What the pages say that these methods cannot do stays so, or the pages are wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.special import expit, logit

import polars_wroc as wroc


def sample(seed: int, n: int = 4_000) -> pl.DataFrame:
    """Scores that are right, in two groups of which b has the less spread out ones."""
    draw = np.random.default_rng(seed)
    risk = np.concatenate([draw.beta(0.5, 0.5, n), draw.beta(4, 8, n)]).clip(1e-6, 1 - 1e-6)
    g = np.repeat(["a", "b"], n)
    return pl.DataFrame({"g": g, "p": risk, "y": draw.random(2 * n) < risk})


def test_without_labels_a_wrong_score_is_taken_at_its_word() -> None:
    """What a score means has changed: nobody sees it until labels come."""
    frame = sample(1)
    wrong = frame.with_columns(p=expit(2 * logit(frame["p"].to_numpy())))
    before = wroc.expected_metrics(wrong, "p").row(0, named=True)
    after = wroc.expected_metrics(wrong, "p", label="y").row(0, named=True)
    assert after["value"] < before["expected_low"]
    assert after["excess_p_value"] < 1e-6
    right = wroc.expected_metrics(frame, "p", label="y").row(0, named=True)
    assert right["expected_low"] < right["value"] < right["expected_high"]


def test_few_rows_can_hide_a_worse_segment() -> None:
    """That nothing is significantly worse does not say that nothing is."""
    draw = np.random.default_rng(5)
    rows = pl.DataFrame({"a": draw.choice(list("xyz"), 3_000), "d": draw.random(3_000) < 0.6})
    options: dict[str, Any] = {
        "selected": "d",
        "attributes": ["a", "b"],
        "metric": "selection_rate",
        "favorable": "selected",
    }
    for hidden, found in ((29, False), (31, True)):
        b = pl.when(pl.int_range(pl.len()) < hidden).then(pl.lit("few")).otherwise(pl.lit("many"))
        never = rows.with_columns(b=b).with_columns(d=pl.col("d") & (pl.col("b") == "many"))
        table = wroc.worst_segments(never, **options)
        assert ("few" in table["segment"].to_list()) == found


def test_the_range_grows_with_the_rows_that_it_covers() -> None:
    """Groups are compared by the miscalibration, not by the range."""
    parts = []
    for g, wrong in (("few rows", 200), ("many rows", 800)):
        # Half of the rows with 0.5 are positive, and 3 out of 10 with 0.4 or 4 out of 10.
        for s, rate, n in ((0.4, 0.3, wrong), (0.5, 0.5, 1_000 - wrong)):
            y = [i < rate * n for i in range(n)]
            parts.append(pl.DataFrame({"g": g, "s": [s] * n, "y": y}))
    table = wroc.calibration_test(pl.concat(parts), "y", "s", by="g")
    assert table["mean_calibration_error"].to_list() == pytest.approx([0.1, 0.1])
    assert table["largest_miscalibration"].to_list() == pytest.approx([0.02, 0.08])


def test_equal_scores_differ_by_any_feature_that_is_left_out() -> None:
    """A score that is right for each group alone but knows less: that is no discrimination."""
    draw = np.random.default_rng(6)
    n = 6_000
    g, x = draw.random(n) < 0.5, draw.normal(size=n)
    # The groups are treated alike: risk depends on the features, one of which is not in the score.
    z = draw.normal(size=n) + 0.8 * g
    y = draw.random(n) < expit(x + z)
    frame = pl.DataFrame({"s": expit(x), "y": y, "g": g})

    def compare(rows: pl.DataFrame) -> dict[str, float]:
        table = wroc.calibration_test(rows, "y", "s", attributes="g", reference="rest")
        return table.filter(segment="true").row(0, named=True)

    found = compare(frame)
    assert found["mean_gap_low"] > 0.05
    complete = frame.with_columns(s=expit(x + z))
    equal = compare(complete)
    assert equal["mean_gap_low"] < 0 < equal["mean_gap_high"]


def test_plain_limits_of_an_interval_that_was_picked_miss_more_often_than_they_say() -> None:
    draw = np.random.default_rng(7)
    samples, n = 200, 300
    s = draw.beta(1, 2, samples * n)
    frame = pl.DataFrame(
        {"g": np.repeat(np.arange(samples), n), "s": s, "y": draw.random(samples * n) < s}
    )
    table = wroc.calibration_test(frame, "y", "s", by="g", adjust="none")
    inside = frame.join(table.select("g", "from_score", "to_score"), on="g").filter(
        pl.col("s").is_between("from_score", "to_score")
    )
    plain = inside.group_by("g", maintain_order=True).agg(
        (pl.col("s") - pl.col("y")).sum().alias("sum"),
        (pl.col("s") * (1 - pl.col("s"))).sum().sqrt().alias("error"),
    )
    missed = plain.filter(pl.col("sum").abs() > 1.96 * pl.col("error")).height
    ends = pl.col("mean_calibration_error_low") > 0, pl.col("mean_calibration_error_high") < 0
    assert missed > 0.3 * samples
    assert table.filter(pl.any_horizontal(ends)).height <= 0.08 * samples


def test_plain_limits_of_the_worst_segment_miss_more_often_than_they_say() -> None:
    draw = np.random.default_rng(8)
    names, missed, found, searches = ["a", "b", "c"], 0, 0, 25
    for _ in range(searches):
        rows = pl.DataFrame({name: draw.integers(0, 4, 2_000) for name in names})
        rows = rows.with_columns(d=pl.Series(draw.random(2_000) < 0.3))
        table = wroc.worst_segments(
            rows, selected="d", attributes=names, metric="selection_rate", favorable="selected"
        )
        found += table.height - 1
        each = pl.col("d").mean().alias("rate"), pl.len()
        segments = pl.concat(
            rows.group_by(some).agg(*each).select("rate", "len")
            for some in (["a"], ["b"], ["c"], ["a", "b"], ["a", "c"], ["b", "c"], names)
        ).filter(pl.col("len") >= 30)
        rate, size = segments.sort("rate").row(0)
        missed += rate + 1.96 * (rate * (1 - rate) / size) ** 0.5 < 0.3
    assert missed > 0.3 * searches
    assert found <= 2
