"""Tables of rows with missing values are tables of rows prepared by hand, as the contracts say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import polars as pl
import pytest
from calls import COMPARISONS, OF_ONE_SCORE, TABLES, Call
from polars.testing import assert_frame_equal
from sklearn.metrics import roc_auc_score
from sweeps import sweep

import polars_wroc as wroc

# Metrics that need no label: of decisions, or of scores alone.
WITHOUT_LABEL = ["selection_rate", "impact_ratio", "standardized_mean_difference"]
WITHOUT_LABEL += [f"demographic_parity_{kind}" for kind in ("difference", "ratio")]
WITHOUT_LABEL += ["shift_auc", "score_ks", "psi"]
# Tables that have such a metric, and the columns of others that depend on random draws.
COUNT_UNLABELED = {"group_gaps", "fairness", "audit", "audit's segments", "audit_in_ranges"}
WITHOUT_DRAWS = {"abroca_test": ["g", "abroca"], "bootstrap": ["g", "metric", "value"]}
EVERY_CALL: dict[str, Call] = {**TABLES, **OF_ONE_SCORE, **COMPARISONS}
FAST = ["summary", "roc_curve", "calibration_summary", "cross_auc", "expected_metrics", "compare"]
GROUP = "(missing)"


@pytest.fixture(scope="module")
def complete() -> pl.DataFrame:
    """Rows that lack nothing: two scores, decisions of two systems, groups, periods, a design."""
    random, size = np.random.default_rng(26), 900
    positive = random.random(size) < 0.4
    score = np.where(positive, random.random(size) ** 0.6, random.random(size))
    return pl.DataFrame(
        {
            "y": positive,
            "s": score.round(2),
            "t": (0.7 * score + 0.3 * random.random(size)).round(2),
            "d": random.random(size) < score,
            "e": random.random(size) < score,
            "w": random.lognormal(sigma=0.4, size=size),
            "g": random.choice(["a", "b", "c"], size),
            "h": random.choice(["u", "v"], size),
            "job": random.integers(0, 3, size),
            "month": random.integers(1, 4, size),
            "unit": random.integers(0, 8, size),
            "stratum": random.integers(0, 3, size),
        }
    )


def lose(frame: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """Make one in eight values of the columns null, and as many scores NaN."""
    for place, name in enumerate(columns):
        random = np.random.default_rng(place)
        lost = pl.Series(random.random(frame.height) < 1 / 8)
        frame = frame.with_columns(pl.when(~lost).then(name).alias(name))
        if name in ("s", "t"):
            lost = pl.Series(random.random(frame.height) < 1 / 8)
            frame = frame.with_columns(pl.when(lost).then(np.nan).otherwise(name).alias(name))
    return frame


def with_values(frame: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """Leave out rows in which a column is null or NaN."""
    for name in columns:
        frame = frame.filter(pl.col(name).is_not_null())
        if frame.schema[name].is_float():
            frame = frame.filter(pl.col(name).is_not_nan())
    return frame


@pytest.mark.parametrize("name", sweep(sorted(EVERY_CALL.keys() - COUNT_UNLABELED), FAST))
def test_rows_without_a_label_a_score_or_a_weight_are_only_counted(
    complete: pl.DataFrame, name: str
) -> None:
    score = ["s", "t"] if name in COMPARISONS else "s"
    used = ["y", "w", *score]
    rows = lose(complete, *used)
    found = EVERY_CALL[name](rows, "y", score, "g", weight="w")
    by_hand = with_values(rows, *used)
    expected = EVERY_CALL[name](by_hand, "y", score, "g", weight="w")
    numbers = found.drop("n_missing", strict=False)
    assert_frame_equal(numbers, expected.drop("n_missing", strict=False), rel_tol=1e-9)
    if "n_missing" in found.columns:
        missing = dict(rows["g"].value_counts().rows())
        for group, number in by_hand["g"].value_counts().rows():
            missing[group] -= number
        # The counts that are merged are those of all rows, twice.
        times = 2 if name == "counts" else 1
        group = "g" if "g" in found.columns else "segment"
        assert dict(found.select(group, pl.col("n_missing") // times).rows()) == missing


@pytest.mark.parametrize(
    "name",
    sweep(
        sorted(
            EVERY_CALL.keys() - {"fairness", "audit", "audit_in_ranges", "bootstrap_replicates"}
        ),
        FAST,
    ),
)
def test_rows_without_a_group_are_a_group(complete: pl.DataFrame, name: str) -> None:
    score = ["s", "t"] if name in COMPARISONS else "s"
    rows = lose(complete, "g")
    by_hand = rows.with_columns(pl.col("g").fill_null(GROUP))
    tables = []
    for frame in (rows, by_hand):
        table = EVERY_CALL[name](frame, "y", score, "g", weight="w")
        table = table.select(WITHOUT_DRAWS.get(name, table.columns))
        named = table.with_columns(pl.col(pl.String).replace(GROUP, None))
        groups = named.select(pl.col(pl.String)).columns
        tables.append(named.sort(groups, maintain_order=True))
    assert_frame_equal(*tables, rel_tol=1e-9)


GAPS: dict[str, Any] = {"attributes": "g", "weight": "w", "adjust": "none"}
AT: dict[str, Any] = {"threshold": 0.5}
RECORDED: dict[str, Any] = {"selected": "d"}
PSU: dict[str, Any] = {"design": wroc.Survey("unit", strata="stratum")}
Table = Callable[[pl.DataFrame], pl.DataFrame]
PARTLY_LABELED: dict[str, Table] = {
    "group_gaps": lambda rows: wroc.group_gaps(rows, "y", "s", **GAPS, **AT),
    "group_gaps of decisions": lambda rows: wroc.group_gaps(rows, "y", "s", **GAPS, **RECORDED),
    "group_gaps of decisions alone": lambda rows: wroc.group_gaps(rows, "y", **GAPS, **RECORDED),
    "group_gaps to all": lambda rows: wroc.group_gaps(
        rows, "y", "s", reference="overall", **GAPS, **AT
    ),
    "group_gaps to the best": lambda rows: wroc.group_gaps(
        rows, "y", "s", reference="best", min_rows=1, **GAPS, **AT
    ),
    "group_gaps within jobs": lambda rows: wroc.group_gaps(
        rows, "y", "s", within="job", **GAPS, **AT
    ),
    "group_gaps of a survey": lambda rows: wroc.group_gaps(rows, "y", "s", **GAPS, **AT, **PSU),
    "group_gaps crossed": lambda rows: wroc.group_gaps(
        rows, "y", "s", **GAPS | {"attributes": ["g", "h"]}, intersections=True, **AT
    ),
    "group_gaps of mean scores": lambda rows: wroc.group_gaps(
        rows, "y", "s", metrics=["standardized_mean_difference", "brier_score"], **GAPS
    ),
    "trend": lambda rows: wroc.trend(rows, "y", "s", over="month", **GAPS, **AT),
    "trend of decisions": lambda rows: wroc.trend(rows, "y", over="month", **GAPS, **RECORDED),
    "release_check": lambda rows: wroc.release_check(
        rows, "y", "s", "t", attributes="g", weight="w", **AT
    ),
    "release_check of decisions": lambda rows: wroc.release_check(
        rows, "y", "s", "t", attributes="g", weight="w", selected={"old": "d", "new": "e"}
    ),
    "fairness": lambda rows: wroc.fairness(rows, "y", "s", attributes="g", weight="w", **AT),
    "worst_segments": lambda rows: wroc.worst_segments(
        rows,
        "y",
        "s",
        attributes=["g", "job"],
        metric="selection_rate",
        favorable="selected",
        level=0.5,
        min_rows=1,
        **AT,
    ),
}


@pytest.mark.parametrize("name", sweep(PARTLY_LABELED, ["group_gaps", "trend", "release_check"]))
def test_numbers_without_a_label_are_of_all_rows_and_others_of_labeled_rows(
    complete: pl.DataFrame, name: str
) -> None:
    table = PARTLY_LABELED[name]
    rows = lose(complete, "y", "s", "t", "d", "e", "w", "g")
    found = table(rows)
    needs_none = pl.col("metric").is_in(WITHOUT_LABEL)
    # Any label will do where none is needed.
    any_label = rows.with_columns(pl.col("y").fill_null(value=True))
    # Adjusted for the tests of the whole table.
    adjusted = ["p_adjusted", "verdict", "detectable"]
    for metrics, by_hand in ((needs_none, any_label), (~needs_none, with_values(rows, "y"))):
        one, other = found.filter(metrics), table(by_hand).filter(metrics)
        assert_frame_equal(one.drop(adjusted), other.drop(adjusted), rel_tol=1e-9)
    assert not found.filter(needs_none).is_empty()


def test_rows_without_a_label_count_in_a_design_as_rows_of_weight_0_do(
    complete: pl.DataFrame,
) -> None:
    options: dict[str, Any] = {**GAPS, **AT, "design": wroc.Survey(strata="stratum")}
    rows = lose(complete, "y")
    found = wroc.group_gaps(rows, "y", "s", **options)
    weight = pl.when(pl.col("y").is_not_null()).then("w").otherwise(0.0)
    expected = wroc.group_gaps(rows.with_columns(w=weight), "y", "s", **options)
    needs_label = ~pl.col("metric").is_in(WITHOUT_LABEL)
    assert_frame_equal(found.filter(needs_label), expected.filter(needs_label), rel_tol=1e-9)
    # Without these rows the strata are smaller.
    fewer = wroc.group_gaps(with_values(rows, "y"), "y", "s", **options)
    assert not found["value_low"].equals(fewer["value_low"])


@pytest.mark.parametrize("threshold", ["median", wroc.rules.max_fpr(0.2), wroc.rules.youden()])
def test_a_rule_chooses_the_threshold_for_rows_with_a_label(
    complete: pl.DataFrame, threshold: Any
) -> None:
    # Of the high scores few have a label.
    rows = complete.with_columns(
        y=pl.when((pl.col("s") < 0.5) | (pl.int_range(pl.len()) % 4 == 0)).then("y")
    )
    labeled = with_values(rows, "y")
    chosen = wroc.threshold_metrics(labeled, "y", "s", threshold=threshold, weight="w")
    number = chosen["threshold"].item()
    found = wroc.group_gaps(rows, "y", "s", threshold=threshold, **GAPS)
    assert_frame_equal(found, wroc.group_gaps(rows, "y", "s", threshold=number, **GAPS))
    if threshold == "median":
        heavier = labeled.filter(pl.col("s") >= number)["w"].sum()
        assert heavier <= labeled["w"].sum() / 2 < rows.filter(pl.col("s") >= number)["w"].sum()


@pytest.mark.parametrize("reference", sweep(["rest", "overall", "a"]))
def test_n_is_the_number_of_rows_behind_a_value(
    complete: pl.DataFrame, reference: Literal["rest", "overall", "a"]
) -> None:
    """Each value and number of rows is that of rows that a filter finds."""
    rows = lose(complete, "y", "s", "w", "g")
    table = wroc.group_gaps(rows, "y", "s", reference=reference, **GAPS, **AT)
    scored = with_values(rows, "s", "w").with_columns(chosen=pl.col("s") >= 0.5)
    labeled = with_values(scored, "y")
    # The rows that a rate is a share of, and the ones that it counts.
    chosen, positive = pl.col("chosen"), pl.col("y")
    rates = {
        "selection_rate": (scored, pl.lit(value=True), chosen),
        "tpr": (labeled, positive, chosen),
        "fpr": (labeled, ~positive, chosen),
        "ppv": (labeled, chosen, positive),
        "npv": (labeled, ~chosen, ~positive),
    }
    assert table["segment"].unique().sort().to_list() == [None, "a", "b", "c"]
    for row in table.iter_rows(named=True):
        own = pl.col("g").eq_missing(pl.lit(row["segment"]))
        other = {
            "rest": ~own,
            "overall": pl.lit(value=True),
            "a": pl.col("g").eq_missing(pl.lit("a")),
        }
        if row["metric"] == "auc":
            of_segment = labeled.filter(own)
            expected = roc_auc_score(
                *(of_segment[name].to_numpy() for name in "ys"),
                sample_weight=of_segment["w"].to_numpy(),
            )
            assert (row["n"], row["value"]) == (of_segment.height, pytest.approx(expected))
            assert row["n_reference"] == labeled.filter(other[reference]).height
            continue
        frame, base, counted = rates[row["metric"]]
        for side, prefix in ((own, ""), (other[reference], "reference_")):
            behind = frame.filter(side, base)
            number = row["n_reference"] if prefix else row["n"]
            share = np.average(behind.select(counted).to_series(), weights=behind["w"])
            assert (number, row[f"{prefix}value"]) == (behind.height, pytest.approx(share))


def test_fairness_compares_the_rows_that_have_a_group(complete: pl.DataFrame) -> None:
    rows = lose(complete, "g", "h")
    # Without a group all negatives are selected and no positives.
    for name in ("g", "h"):
        score = pl.when(pl.col(name).is_not_null()).then("s").otherwise(1.0 - pl.col("y"))
        rows = rows.with_columns(s=score)
    options: dict[str, Any] = {"threshold": 0.5, "weight": "w"}
    found = wroc.fairness(rows, "y", "s", attributes=["g", "h"], intersections=True, **options)
    expected = [
        wroc.fairness(with_values(rows, name), "y", "s", attributes=name, **options)
        for name in ("g", "h")
    ]
    both = with_values(rows, "g", "h")
    expected[1:1] = [
        wroc.fairness(both, "y", "s", attributes=["g", "h"], intersections="only", **options)
    ]
    assert_frame_equal(found, pl.concat(expected), check_row_order=False, rel_tol=1e-9)


def test_impact_ratios_compare_known_categories(complete: pl.DataFrame) -> None:
    rows = lose(complete, "g", "d")
    options: dict[str, Any] = {"attributes": "g", "selected": "d"}
    found = wroc.impact_ratios(rows, favorable="selected", **options)
    known = pl.col("segment").is_not_null()
    by_hand = with_values(rows, "g")
    expected = wroc.impact_ratios(by_hand, favorable="selected", **options)
    assert_frame_equal(found.filter(known), expected, rel_tol=1e-9)
    unknown = with_values(rows, "d").filter(pl.col("g").is_null())
    rate = found.filter(~known, metric="selection_rate")
    assert rate.select("n", "value").row(0) == (unknown.height, unknown["d"].mean())
    given: dict[str, Any] = {"source": "applicants", "distribution_date": "2026-01-01"}
    published = wroc.new_york_summary(rows, **options, **given).table
    of_known = wroc.new_york_summary(by_hand, **options, **given).table
    assert_frame_equal(published.filter(known), of_known, rel_tol=1e-9)


DECIDED: dict[str, Table] = {
    "threshold_metrics": lambda rows: wroc.threshold_metrics(
        rows, "y", "s", by="g", weight="w", **RECORDED
    ),
    "group_gaps": PARTLY_LABELED["group_gaps of decisions"],
    "trend": PARTLY_LABELED["trend of decisions"],
    "fairness": lambda rows: wroc.fairness(rows, "y", "s", attributes="g", **RECORDED),
    "impact_ratios": lambda rows: wroc.impact_ratios(
        rows, attributes="g", favorable="selected", **RECORDED
    ),
}


@pytest.mark.parametrize("name", sweep(DECIDED, ["group_gaps"]))
def test_rows_without_a_decision_are_left_out(complete: pl.DataFrame, name: str) -> None:
    rows = lose(complete, "y", "d")
    expected = DECIDED[name](with_values(rows, "d"))
    assert_frame_equal(DECIDED[name](rows), expected, rel_tol=1e-9)


def test_release_checks_leave_out_rows_without_either_decision(complete: pl.DataFrame) -> None:
    check = PARTLY_LABELED["release_check of decisions"]
    rows = lose(complete, "s", "t", "w", "d", "e")
    expected = check(with_values(rows, "s", "t", "w", "d", "e"))
    assert_frame_equal(check(rows), expected, rel_tol=1e-9)


def test_trends_leave_out_rows_without_a_time(complete: pl.DataFrame) -> None:
    rows = lose(complete, "y", "month")
    expected = PARTLY_LABELED["trend"](with_values(rows, "month"))
    assert_frame_equal(PARTLY_LABELED["trend"](rows), expected, rel_tol=1e-9)


def test_each_of_several_scores_is_that_of_its_own_rows(complete: pl.DataFrame) -> None:
    rows = lose(complete, "y", "s", "t")
    both = wroc.summary(rows, "y", ["s", "t"], by="g")
    for score in ("s", "t"):
        alone = wroc.summary(rows, "y", score, by="g")
        assert_frame_equal(both.filter(model=score).drop("model"), alone, rel_tol=1e-9)
