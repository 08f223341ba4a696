"""Rows without a label are selected or not: they count in selection rates and impact ratios."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
import pytest
from divided import audit_in_ranges
from polars.testing import assert_frame_equal

import polars_wroc as wroc

WITHOUT_LABEL = ["selection_rate", "impact_ratio"]
WITHOUT_LABEL += [f"demographic_parity_{kind}" for kind in ("difference", "ratio")]
NUMBERS = ["attribute", "segment", "metric", "n", "value", "value_low", "value_high", "reference"]
NUMBERS += ["n_reference", "reference_value", "gap", "gap_low", "gap_high", "ratio", "p_value"]
OPTIONS: dict[str, Any] = {"attributes": "g", "favorable": "selected", "adjust": "none"}
AT: dict[str, Any] = OPTIONS | {"threshold": 0.5}


@pytest.fixture(scope="module")
def loans() -> pl.DataFrame:
    """Labels are known of nearly all who were selected, and of half of the others."""
    random = np.random.default_rng(3)
    size = 1500
    score = random.random(size)
    known = random.random(size) < np.where(score >= 0.5, 0.97, 0.5)
    hired = (score + random.normal(scale=0.1, size=size)) > 0.5
    frame = pl.DataFrame(
        {
            "g": random.choice(["a", "b", "c"], size),
            "s": score,
            "w": random.lognormal(size=size),
            "m": random.integers(0, 60, size),
            "y": random.random(size) < score,
            "known": known,
            "hired": hired,
        }
    )
    return frame.with_columns(y=pl.when("known").then("y"))


@pytest.mark.parametrize(
    "given",
    [
        {"threshold": 0.5},
        {"threshold": 0.5, "weight": "w"},
        {"threshold": 0.5, "weight": "w", "design": "m"},
        {"selected": "hired"},
        {"threshold": 0.5, "favorable": "rejected"},
    ],
    ids=["threshold", "weight", "design", "recorded", "rejected"],
)
def test_numbers_of_decisions_are_those_of_all_rows(
    loans: pl.DataFrame, given: dict[str, Any]
) -> None:
    options = OPTIONS | given
    found = wroc.audit(loans, "y", "s", **options).table
    is_alone = pl.col("metric").is_in(WITHOUT_LABEL)
    alone = wroc.audit(loans, None, "s", **options).table
    known = wroc.audit(loans.drop_nulls("y"), "y", "s", **options).table
    # Mean scores are compared where there is no label at all.
    alone = alone.filter(pl.col("metric") != "standardized_mean_difference")
    for chosen, expected in ((is_alone, alone), (~is_alone, known)):
        numbers = found.filter(chosen).select(NUMBERS)
        assert_frame_equal(numbers, expected.filter(chosen).select(NUMBERS), rel_tol=1e-9)
    rate = found.filter(segment="a", metric="selection_rate")
    of_group = loans.filter(g="a")
    assert rate["n"].item() == of_group.height
    if given == {"threshold": 0.5}:
        assert rate["value"].item() == pytest.approx((of_group["s"] >= 0.5).mean())


@pytest.mark.parametrize("given", [{}, {"weight": "w"}, {"threshold": wroc.rules.max_fpr(0.1)}])
def test_audits_in_ranges_have_the_same_rows(loans: pl.DataFrame, given: dict[str, Any]) -> None:
    expected = wroc.audit(loans, "y", "s", **AT | given)
    parts = [loans[:700], loans[700:]]
    found = audit_in_ranges(parts, "y", "s", rows_per_range=150, **AT | given)
    assert_frame_equal(found.table, expected.table, rel_tol=1e-9)
    assert_frame_equal(found.segments, expected.segments, rel_tol=1e-9)


def test_an_audit_says_how_many_rows_have_no_label(loans: pl.DataFrame, tmp_path: Path) -> None:
    unscored = loans.with_columns(s=pl.when(pl.int_range(1500) > 4).then("s"))
    audit = wroc.audit(unscored, "y", "s", **AT)
    unlabeled = loans[5:]["y"].null_count()
    said = " ".join(str(audit).split())
    where = "in selection rates, impact ratios and demographic parity"
    expected = [
        f"{unlabeled} rows without y count only where no outcome is needed: {where}.",
        "5 rows without s were left out.",
    ]
    assert expected[0] in said
    audit.save(tmp_path / "audit.json")
    content = json.loads((tmp_path / "audit.json").read_text())
    assert [text for text in content["remarks"] if text in expected] == expected
    (overall,) = [row for row in content["segments"] if row["attribute"] == "overall"]
    assert (overall["n_decided"], overall["n"]) == (1495, 1495 - unlabeled)
    complete = wroc.audit(loans.drop_nulls("y"), "y", "s", **AT)
    assert "without y" not in str(complete)


@pytest.mark.parametrize("reference", ["rest", "overall"])
def test_selection_rates_of_a_group_without_labels_count_beside_two_others(
    loans: pl.DataFrame, reference: Literal["rest", "overall"]
) -> None:
    rows = loans.with_columns(y=pl.when(pl.col("g") != "c").then("y"))
    table = wroc.audit(rows, "y", "s", **AT, reference=reference).table
    compared = table.filter(pl.col("attribute") == "g", pl.col("verdict").is_not_null())
    repeats = pl.col("reason").str.starts_with("repeats ").fill_null(value=False)
    number = compared.group_by("metric").agg(
        pl.len(), repeats=repeats.sum(), ranks=pl.count("rank")
    )
    found = {metric: numbers for metric, *numbers in number.rows()}
    assert found["selection_rate"] == [3, 0, 3]
    # Of two groups with labels, each of which is compared with the other.
    assert found["tpr"] == [2, 1, 1]


@pytest.mark.parametrize("reference", ["rest", "overall"])
def test_precisions_are_not_compared_with_a_group_of_one_class(
    loans: pl.DataFrame, reference: Literal["rest", "overall"]
) -> None:
    rows = (
        loans.filter(pl.col("g") != "c").drop_nulls("y").filter((pl.col("g") == "a") | pl.col("y"))
    )
    table = wroc.audit(rows, "y", "s", **AT, reference=reference).table
    precisions = table.filter(pl.col("metric") == "ppv", pl.col("attribute") == "g")
    assert precisions.select("segment", "gap", "p_value", "reason").rows() == [
        ("a", None, None, "one class only"),
        ("b", None, None, "one class only"),
    ]


def test_few_rows_without_a_label_are_not_told_by_a_published_audit(loans: pl.DataFrame) -> None:
    labeled = loans.with_columns(y=pl.col("y").fill_null(value=False))
    few = labeled.with_columns(y=pl.when(pl.int_range(pl.len()).over("g") > 2).then("y"))
    found = wroc.audit(few, "y", "s", min_cell=10, **AT)
    expected = wroc.audit(few.drop_nulls("y"), "y", "s", min_cell=10, **AT)
    assert_frame_equal(found.table, expected.table)
    many = wroc.audit(loans, "y", "s", min_cell=10, **AT).table
    assert many.filter(attribute="overall", metric="selection_rate")["n"].item() == loans.height


def test_mean_scores_and_strata_count_all_rows(loans: pl.DataFrame) -> None:
    options: dict[str, Any] = {"attributes": "g", "adjust": "none"}
    rows = loans.with_columns(job=pl.col("m") % 4)
    for given in (
        {"metrics": ["standardized_mean_difference"]},
        {"threshold": 0.5, "within": "job"},
    ):
        found = wroc.group_gaps(rows, "y", "s", **options, **given)
        expected = wroc.group_gaps(rows, None, "s", **options, **given)
        assert_frame_equal(found.filter(metric=expected["metric"][0]), expected, rel_tol=1e-9)
