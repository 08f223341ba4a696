"""Decisions in an audit: one threshold for all segments, in tables, files, pages and commands."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from audit_words import page_words
from polars.testing import assert_frame_equal, assert_series_equal
from sweeps import sweep
from wide_tables import fairness_of, segments_of

import polars_wroc as wroc
from polars_wroc.cli import main
from polars_wroc.typing import Rule

RULES: dict[str, dict[str, Any]] = {
    "youden": {"threshold": wroc.rules.youden()},
    "closest_topleft": {"threshold": wroc.rules.closest_topleft()},
    "accuracy": {"threshold": wroc.rules.max_accuracy()},
    "cost": {"threshold": wroc.rules.least_cost(fn=3, fp=1, prevalence=0.2)},
    "max_fpr": {"threshold": wroc.rules.max_fpr(0.2)},
    "min_tpr": {"threshold": wroc.rules.min_tpr(0.8)},
    "max_selection_rate": {"threshold": wroc.rules.max_selection_rate(0.3)},
}
CHOICES = RULES | {"threshold": {"threshold": 0.5}}
GOOD: dict[str, Any] = {"favorable": "selected"}
# What the page says of each of them.
WORDS = {
    "youden": "the largest difference between true and false positive rate, chosen for each",
    "closest_topleft": "the point of the ROC curve closest to the top left, chosen for each",
    "accuracy": "the fewest errors, chosen for each score on all rows",
    "cost": "the least expected cost (cost 3 of a false negative, cost 1 of a false positive, "
    "prevalence 0.2), chosen for each",
    "max_fpr": "the highest true positive rate with a false positive rate of at most 0.2, chosen",
    "min_tpr": "the lowest false positive rate with a true positive rate of at least 0.8, chosen",
    "max_selection_rate": "the highest selection rate that is at most 0.3, chosen for each",
    "threshold": "A score of 0.5 or more means selected",
}
# How much lower the page expects tpr to be on other rows, by the number of positives.
LOWER: dict[str, dict[int, str | None]] = {
    "youden": {20: "8 points", 50: "5 points", 200: "2 points"},
    "max_fpr": {20: "5 points", 50: "2 points", 200: None},
    "threshold": {20: "8 points", 50: "5 points", 200: "2 points"},
}
CELLS = ["tp", "fp", "fn", "tn"]
COLUMNS = ["--label", "y", "--score", "s", "--weight", "w", "--attribute", "g"]


@pytest.fixture(scope="module")
def judged() -> pl.DataFrame:
    """160 weighted rows of two scores, with a segment without a name and missing values."""
    random = np.random.default_rng(11)
    rows, score = 160, random.random(160).round(2)
    return pl.DataFrame(
        {
            "g": [("f", "m", None)[k] for k in random.integers(3, size=rows)],
            "age": random.integers(2, 4, rows) * 10,
            "y": random.random(rows) < score,
            "s": [None if k % 40 == 0 else value for k, value in enumerate(score)],
            "t": (-2 * score + random.random(rows)).round(1),
            "w": random.lognormal(size=rows) * (random.random(rows) < 0.9),
        }
    )


@pytest.mark.parametrize("name", sweep(CHOICES, fast=1))
def test_segments_are_measured_at_the_one_threshold_of_all_rows(
    judged: pl.DataFrame, name: str
) -> None:
    given: dict[str, Any] = {"weight": "w"}
    found = wroc.audit(
        judged.lazy(), "y", ["t", "s"], attributes=["g", "age"], **given, **GOOD, **CHOICES[name]
    )
    plain = segments_of(wroc.audit(judged, "y", ["t", "s"], attributes=["g", "age"], **given))
    rates = ("selection_rate", "tpr", "fpr", "ppv", "npv", "accuracy")
    columns = ["threshold", *CELLS, *(f"{r}{end}" for r in rates for end in ("", "_low", "_high"))]
    values = ["attribute", "segment", "model", "n", "w_pos", "auc", "auc_low", "auc_high"]
    table = segments_of(found)
    assert_frame_equal(table.select(values), plain.select(values), abs_tol=1e-12)
    assert found.segments.height == 2 * (1 + 3 + 2)
    for attribute in ("overall", "g", "age"):
        key = None if attribute == "overall" else attribute
        segments = table.filter(attribute=attribute)
        chosen = dict.fromkeys(["t", "s"], 0.5)
        if name in RULES:
            cells = ["model", "threshold", "tp", "fp", "fn", "tn", "tpr", "fpr"]
            rule = RULES[name]["threshold"]
            points = wroc.threshold_metrics(
                judged, "y", ["t", "s"], threshold=rule, by=key, **given
            ).select(cells)
            assert_frame_equal(segments.select(points.columns), points, abs_tol=1e-12)
            chosen = dict(points.select("model", "threshold").rows())
        for model, value in chosen.items():
            there = segments.filter(model=model).select(columns)
            metrics = wroc.threshold_metrics(
                judged, "y", model, threshold=value, by=key, level=0.95, **given
            )
            assert_frame_equal(there, metrics.select(columns), abs_tol=1e-12)


def test_one_audit_has_one_definition_of_a_rate(judged: pl.DataFrame) -> None:
    found = wroc.audit(
        judged, "y", "s", attributes="g", weight="w", min_rows=0, **GOOD, **RULES["cost"]
    )
    segments = segments_of(found).filter(attribute="g")
    cells = found.segments.filter(attribute="g")
    ppv = (cells["tp"] / (cells["tp"] + cells["fp"])).alias("ppv")
    assert_series_equal(segments["ppv"], ppv, abs_tol=1e-12)
    # Rows without a value are no group.
    selected = segments.drop_nulls("segment")["selection_rate"]
    largest = fairness_of(found).filter(metric="demographic_parity_difference")["value"].item()
    assert largest == pytest.approx(selected.max() - selected.min())  # type: ignore[operator]


def test_cells_are_counted_in_each_segment(judged: pl.DataFrame) -> None:
    result = wroc.audit(
        judged, "y", "s", attributes="g", weight="w", threshold=0.5, favorable="selected"
    )
    found = result.segments.filter(attribute="g")
    assert found["segment"].to_list() == [None, "f", "m"]
    for g, *cells in found.select("segment", *CELLS).rows():
        part = judged.filter(pl.col("g").eq_missing(pl.lit(g)), pl.col("s").is_not_null())
        selected = pl.col("s") >= 0.5
        where = [selected & pl.col("y"), selected & ~pl.col("y"), ~selected & pl.col("y")]
        expected = [part.filter(rows)["w"].sum() for rows in [*where, ~selected & ~pl.col("y")]]
        assert cells == pytest.approx(expected)


def test_segment_of_one_class_and_data_of_one_class(judged: pl.DataFrame) -> None:
    frame = judged.with_columns(y=pl.col("y") | (pl.col("g") == "m").fill_null(value=False))
    audit = wroc.audit(
        frame,
        "y",
        "s",
        attributes="g",
        weight="w",
        threshold=wroc.rules.max_fpr(0.2),
        favorable="selected",
    )
    segments = segments_of(audit)
    one = segments.filter(segment="m").row(0, named=True)
    assert (one["fpr"], one["fpr_low"]) == (None, None)
    assert one["threshold"] == segments["threshold"][0]
    result = wroc.audit(
        judged.filter("y"),
        "y",
        "s",
        attributes="g",
        threshold=wroc.rules.max_fpr(0.2),
        favorable="selected",
    )
    assert result.segments.select("threshold", *CELLS).null_count().row(0) == (4,) * 5
    assert "Nobody is selected, because all rows are of one class." in page_words(result)
    assert json.loads(result.to_json())["segments"][0]["threshold"] is None


# Pages.


@pytest.mark.parametrize("name", sweep(CHOICES))
def test_page_says_which_threshold_and_why(judged: pl.DataFrame, name: str) -> None:
    result = wroc.audit(judged, "y", "s", attributes="g", weight="w", **GOOD, **CHOICES[name])
    text = page_words(result)
    assert WORDS[name] in text
    for one in segments_of(result).rows(named=True):
        low, value, high = (100 * one[f"tpr{end}"] for end in ("_low", "", "_high"))
        shown = f"{value:.1f}% ({low:.1f} to {high:.1f})"
        assert f"Selected among the positives {one['n_pos']:,} {shown}" in text


@pytest.mark.parametrize("name", sweep(LOWER))
@pytest.mark.parametrize("positives", sweep([20, 50, 200]))
def test_page_says_how_optimistic_the_rates_are(name: str, positives: int) -> None:
    frame = pl.DataFrame(
        {"y": [1] * positives + [0] * 90, "s": [k * 37 % 101 / 101 for k in range(positives + 90)]}
    ).with_columns(g=pl.int_range(pl.len()) % 2)
    audit = wroc.audit(frame, "y", "s", attributes="g", **GOOD, **CHOICES[name])
    size = LOWER[name][positives]
    lower = "less than 1 point" if size is None else f"about {size}"
    start = "If" if name == "threshold" else "Since"
    assert (
        f"{start} the threshold was chosen on these same rows, expect the share of the positives "
        f"who are selected to be {lower} lower on other rows."
    ) in page_words(audit)


@pytest.mark.parametrize("positives", [1, 9])
def test_page_gives_no_number_for_few_positives(positives: int) -> None:
    frame = pl.DataFrame({"y": [1] * positives + [0] * 9, "s": range(positives + 9), "g": "a"})
    audit = wroc.audit(frame, "y", "s", attributes="g", threshold=wroc.rules.max_fpr(0.2), **GOOD)
    assert (
        "expect the share of the positives who are selected to be lower on other rows; "
        f"{positives} are too few to say by how much."
    ) in page_words(audit)


def test_page_without_a_threshold_has_no_decisions(judged: pl.DataFrame) -> None:
    result = wroc.audit(judged, "y", "s", attributes="g")
    page = page_words(result)
    assert "No threshold or decision was given" in page
    assert "Decisions. None were audited, because no threshold was given." in page
    assert result.segments["threshold"].null_count() == result.segments.height


@pytest.mark.slow(reason="makes several audits")
@pytest.mark.parametrize("score", [[2.0, 1.0], [math.inf, -math.inf], [math.nan, 1.0]])
def test_threshold_that_selects_nobody_is_saved(score: list[float], tmp_path: Path) -> None:
    data = pl.DataFrame({"g": ["a", "a"], "y": [0, 1], "s": score})
    result = wroc.audit(
        data, "y", "s", attributes="g", threshold=wroc.rules.max_fpr(0), favorable="selected"
    )
    for suffix in ("html", "json"):
        result.save(tmp_path / f"report.{suffix}")


# Commands.


def flags_of(options: dict[str, Any]) -> list[str]:
    return [f"--{name}={in_words(value)}" for name, value in options.items()]


def in_words(value: Any) -> str:
    """Write a rule as the command line reads it."""
    if not isinstance(value, Rule):
        return str(value)
    name, options = value.name.replace("_", "-"), dict(value.options)
    if name == "least-cost":
        return f"{name}:" + ",".join(f"{key}={number}" for key, number in options.items())
    return "=".join([name, *map(str, options.values())])


@pytest.fixture(scope="module")
def file(judged: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("audit") / "rows.parquet"
    judged.write_parquet(path)
    return str(path)


@pytest.mark.slow(reason="makes several audits")
@pytest.mark.parametrize("name", sweep(CHOICES))
def test_command_measures_the_same(
    file: str, judged: pl.DataFrame, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", file, *COLUMNS, *flags_of(GOOD | CHOICES[name]), "-o", "-"]) == 0
    printed = json.loads(capsys.readouterr().out)
    result = wroc.audit(judged, "y", "s", attributes="g", weight="w", **GOOD, **CHOICES[name])
    threshold = CHOICES[name]["threshold"]
    shown = threshold if name == "threshold" else threshold.as_dict()
    assert printed["settings"]["threshold"] == shown
    for table in ("segments", "table"):
        expected = getattr(result, table)
        found = pl.DataFrame(printed[table], schema=expected.schema)
        assert_frame_equal(found, expected, abs_tol=1e-12)


def test_command_prints_decisions(
    file: str, judged: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", file, *COLUMNS, *flags_of(GOOD | RULES["youden"])]) == 0
    printed = capsys.readouterr().out
    result = wroc.audit(judged, "y", "s", attributes="g", weight="w", **GOOD, **RULES["youden"])
    words = " ".join(printed.split())
    assert " ".join(result.reading.split()) in words
    assert "All groups at a glance" in words


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--threshold", "high"], "for --threshold: must be a number, median or a rule"),
        (["--threshold", "yuden"], "found 'yuden'; did you mean 'youden'?"),
        (["--threshold", "max-fpr=1.5"], "found 'max-fpr=1.5': fpr must lie between 0 and 1"),
        (["--threshold", "max-fpr"], "must look like max-fpr=0.1; found"),
        (["--threshold", "least-cost:fn=-1,fp=1"], "found 'least-cost:fn=-1,fp=1': fn must be "),
        (["--threshold", "least-cost:fp=1,prevalence=1"], ": prevalence must lie"),
        (["--threshold", "least-cost:fp=1,cost=2"], "has no argument cost; it has fn, fp, preval"),
        (["--threshold", "least-cost=5:1"], "must look like least-cost:fn=5,fp=1; found 'least-c"),
        (["--threshold", "least-cost:5,1"], "must look like least-cost:fn=5,fp=1; found 'least-c"),
        (["--threshold", "youden()"], "found 'youden()'; did you mean 'youden'?"),
        (["--threshold", "min_tpr(0.9)"], "found 'min_tpr(0.9)'; did you mean 'min-tpr=0.9'?"),
    ],
)
def test_mistakes_are_one_line_and_exit_2(
    file: str, flags: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", file, *COLUMNS, *flags_of(GOOD), *flags]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("polars-wroc: ")
    assert err.count("\n") == 1
    assert message in err
