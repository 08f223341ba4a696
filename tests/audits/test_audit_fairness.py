"""Fairness metrics of an audit: limits of all pairs of segments, and tests that all are alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from sweeps import sweep
from wide_tables import fairness_of, fairness_rows, gaps_of, wide_gaps

import polars_wroc as wroc


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    """Scores that rank worse in c, of clients with one to three rows."""
    rng = np.random.default_rng(8)
    group = rng.choice([*"abcd"], 900)
    label = rng.random(900) < 0.4
    helped = np.where(group == "c", 0.4, 1.4)
    return pl.DataFrame(
        {
            "g": group,
            "h": rng.choice(["x", "y"], 900),
            "y": label,
            "s": rng.normal(size=900) + helped * label,
            "w": rng.lognormal(sigma=0.3, size=900),
            "client": rng.integers(0, 450, 900),
        }
    )


def audited(rows: pl.DataFrame, **options: Any) -> wroc.Audit:
    call: dict[str, Any] = {
        "attributes": ["g", "h"],
        "threshold": 1,
        "weight": "w",
        "favorable": "selected",
    }
    return wroc.audit(rows, "y", "s", **call | options)


def fairness(audit: wroc.Audit) -> pl.DataFrame:
    return fairness_of(audit)


def p_values(audit: wroc.Audit, metric: str = "auc_difference") -> list[float | None]:
    return fairness(audit).filter(metric=metric)["p_value"].to_list()


@pytest.mark.parametrize("reference", sweep(["rest", "overall", {"g": "b"}]))
def test_aucs_are_tested_by_their_gaps(rows: pl.DataFrame, reference: Any) -> None:
    audit = audited(rows, reference=reference)
    expected = []
    for attribute in ("g", "h"):
        gaps = gaps_of(audit).filter(attribute=attribute)["auc_gap_p_value"].drop_nulls().to_list()
        # Two segments that are each other's rest have one test.
        both = attribute == "h"
        tests = sorted(gaps[:1] if both else gaps)
        # Holm's procedure begins with the smallest.
        expected.append(min(1.0, len(tests) * tests[0]))
    assert p_values(audit) == pytest.approx(expected)
    assert expected[0] < 0.01


def test_segments_with_few_rows_are_in_no_pair(rows: pl.DataFrame) -> None:
    few = rows.head(20).with_columns(g=pl.lit("few"), s=pl.lit(9.0))
    both = pl.concat([rows, few])
    found, expected = (
        fairness(audited(each, attributes="g", min_rows=30)) for each in (both, rows)
    )
    # They are in the rest that AUCs are compared with.
    tested = pl.col("metric") != "auc_difference"
    assert_frame_equal(found.filter(tested), expected.filter(tested), rel_tol=1e-9)
    assert_frame_equal(found.drop("p_value"), expected.drop("p_value"), rel_tol=1e-9)


def test_clusters_have_limits_and_tests_by_their_design(rows: pl.DataFrame) -> None:
    audit = audited(rows, attributes="g", design="client", min_rows=0)
    expected = wroc.fairness(
        rows, "y", "s", attributes="g", threshold=1, weight="w", design="client", min_rows=0
    )
    expected = fairness_rows(expected, ["metric"]).sort("metric")
    found = fairness(audit).drop("attribute").sort("metric")
    of_aucs = pl.col("metric") == "auc_difference"
    assert_frame_equal(found.drop("p_value"), expected.drop("p_value"), rel_tol=1e-9)
    assert_frame_equal(found.filter(~of_aucs), expected.filter(~of_aucs), rel_tol=1e-9)
    gaps = gaps_of(audit)["auc_gap_p_value"].to_list()
    assert found.filter(of_aucs)["p_value"].to_list() == [pytest.approx(4 * min(gaps))]


@pytest.mark.slow(reason="simulates many samples")
def test_gate_on_equal_segments_holds_where_the_pair_picked_by_chance_fails() -> None:
    random = np.random.default_rng(0)
    failed = 0
    for _ in range(10):
        rows = pl.DataFrame(
            {
                "g": np.repeat(np.arange(20), 100),
                "y": random.random(2_000) < 0.5,
                "s": (random.random(2_000) < 0.2).astype(float),
            }
        )
        audit = wroc.audit(rows, "y", "s", attributes="g", threshold=0.5, favorable="selected")
        ratio = fairness(audit).filter(metric="demographic_parity_ratio")
        # The limit of the pair alone, as if it had been named beforehand.
        groups = ratio.select("group_min", "group_max").row(0)
        lowest, highest = groups
        pair = rows.filter(pl.col("g").cast(pl.String).is_in(groups))
        named = wide_gaps(pair, "y", "s", by="g", threshold=0.5, reference=int(highest))
        alone = named.filter(g=int(lowest))["selection_rate_ratio_high"].item()
        failed += alone < 0.8
        assert ratio["joint_high"].item() >= 0.8
    assert failed > 1
