"""What changed between two audits: against MOVER by hand, and what is read and refused."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import stats
from statsmodels.stats.multitest import multipletests

import polars_wroc as wroc

GIVEN: dict[str, Any] = {"by": "g", "threshold": 0.5, "weight": "w", "favorable": "selected"}
METRICS = ("auc", "selection_rate", "tpr", "fpr", "ppv", "npv")


def rows(seed: int, shift: float, groups: str = "abc") -> pl.DataFrame:
    """Of the positives of group b fewer are selected, the more the larger the shift."""
    random = np.random.default_rng(seed)
    group = random.choice(list(groups), 1800)
    positive = random.random(1800) < 0.5
    score = random.normal(size=1800) + 1.2 * positive + 0.5 - shift * (group == "b")
    weight = random.lognormal(sigma=0.3, size=1800)
    return pl.DataFrame({"g": group, "y": positive, "s": score / 3, "w": weight})


@pytest.fixture(scope="module")
def before() -> wroc.Audit:
    return wroc.audit(rows(1, 0.0), "y", "s", **GIVEN)


@pytest.fixture(scope="module")
def after() -> wroc.Audit:
    return wroc.audit(rows(2, 1.0), "y", "s", **GIVEN)


def estimate(audit: wroc.Audit, row: dict[str, Any]) -> tuple[float, float, float]:
    """A metric or gap with its limits."""
    place = {name: row[name] for name in ("attribute", "segment")}
    name = row["metric"]
    if row["measure"] == "gap":
        found = audit.gaps.filter(**place).row(0, named=True)
        return tuple(found[f"{name}_gap{end}"] for end in ("", "_low", "_high"))
    found = audit.segments.filter(**place).row(0, named=True)
    ends = ("ci_low", "ci_high") if name == "auc" else (f"{name}_low", f"{name}_high")
    return found[name], found[ends[0]], found[ends[1]]


def test_changes_combine_the_limits_of_both(before: wroc.Audit, after: wroc.Audit) -> None:
    table = wroc.audit_changes(before, after)
    # Values of all rows and of three groups, gaps of three groups.
    assert table.height == len(METRICS) * (4 + 3)
    z = stats.norm.ppf(0.975)
    p_values = []
    for row in table.rows(named=True):
        old, old_low, old_high = estimate(before, row)
        new, new_low, new_high = estimate(after, row)
        low = new - old - math.hypot(new - new_low, old_high - old)
        high = new - old + math.hypot(new_high - new, old - old_low)
        found = [row[name] for name in ("before", "after", "change", "change_low", "change_high")]
        assert found == pytest.approx([old, new, new - old, low, high], abs=1e-12)
        toward = (new - old - low) if new > old else (high - new + old)
        p = 2 * stats.norm.sf(abs(new - old) / (toward / z))
        assert row["p_value"] == pytest.approx(p, rel=1e-8)
        assert (p <= 0.05) == (low > 0 or high < 0)
        p_values.append(p)
        growth = None if row["measure"] == "value" else abs(new) - abs(old)
        assert row["growth"] == (None if growth is None else pytest.approx(growth, abs=1e-12))
    adjusted = multipletests(p_values, method="holm")[1]
    assert table["p_adjusted"].to_list() == pytest.approx(list(adjusted), rel=1e-8)


def test_findings_are_new_gone_or_of_another_size(before: wroc.Audit, after: wroc.Audit) -> None:
    key = {"segment": "b", "metric": "selection_rate", "measure": "gap"}

    def finding(one: wroc.Audit, other: wroc.Audit) -> str | None:
        found: str | None = wroc.audit_changes(one, other).filter(**key)["finding"].item()
        return found

    assert finding(before, after) == "new"
    assert finding(after, before) == "gone"
    assert finding(after, after) is None
    more = wroc.audit(rows(3, 2.2), "y", "s", **GIVEN)
    assert finding(after, more) == "grown"
    assert finding(more, after) == "shrunk"
    values = wroc.audit_changes(before, after).filter(measure="value")
    assert values["finding"].null_count() == values.height


def test_nothing_changed(after: wroc.Audit) -> None:
    table = wroc.audit_changes(after, after)
    assert table["change"].unique().to_list() == [0.0]
    assert table["p_adjusted"].unique().to_list() == [1.0]


def test_segments_of_one_audit_only(before: wroc.Audit) -> None:
    other = wroc.audit(rows(4, 0.0, "abd"), "y", "s", **GIVEN)
    table = wroc.audit_changes(before, other)
    segments = table.filter(measure="value", metric="auc")["segment"].to_list()
    assert segments == ["overall", "a", "b", "d", "c"]
    for segment, known, unknown in (("c", "before", "after"), ("d", "after", "before")):
        one = table.filter(segment=segment)
        assert one[known].null_count() == 0
        names = [unknown, "change", "change_low", "growth", "p_value", "p_adjusted", "finding"]
        assert one.select(names).null_count().row(0) == (one.height,) * len(names)


def test_json_says_the_same(before: wroc.Audit, after: wroc.Audit, tmp_path: Path) -> None:
    expected = wroc.audit_changes(before, after)
    before.save(tmp_path / "before.json")
    found = wroc.audit_changes(tmp_path / "before.json", json.loads(after.to_json()))
    assert_frame_equal(found, expected, rel_tol=1e-12)
    # Of the schema there was no version once.
    old = json.loads(before.to_json())
    old = {"settings": old["settings"], **old["tables"]}
    assert_frame_equal(
        wroc.audit_changes(old, str(tmp_path / "before.json")).head(1),
        wroc.audit_changes(before, before).head(1),
    )


def test_several_scores_and_no_decisions() -> None:
    audits = [
        wroc.audit(rows(seed, 0.0).with_columns(t=-pl.col("s")), "y", ["s", "t"], by="g")
        for seed in (5, 6)
    ]
    table = wroc.audit_changes(*audits, adjust="none")
    assert table["model"].value_counts().sort("model").rows() == [("s", 7), ("t", 7)]
    assert table["metric"].unique().to_list() == ["auc"]
    assert_frame_equal(
        table.select(p_adjusted="p_value"), table.select("p_adjusted"), check_exact=True
    )


@pytest.mark.parametrize(
    ("audit", "error", "message"),
    [
        (3, TypeError, "`after` must be an Audit, the path of its JSON, or the JSON; found 3"),
        ("no.json", ValueError, "`after` must be the JSON of an audit; found no such file at "),
        (__file__, ValueError, "`after` must be the JSON of an audit; found no JSON at "),
        ({"schema": "x"}, ValueError, r"of schema polars-wroc/audit 1\.x; found x 1\.0"),
        (
            {"schema": "polars-wroc/audit", "schema_version": "2.0"},
            ValueError,
            r"of schema polars-wroc/audit 1\.x; found polars-wroc/audit 2\.0",
        ),
        ({}, ValueError, "found no settings, segments or gaps in it"),
        ({"segments": [], "gaps": 3, "settings": {"level": 0.9}}, ValueError, "found no settings"),
    ],
)
def test_what_is_no_audit(
    before: wroc.Audit, audit: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        wroc.audit_changes(before, audit)


def test_audits_must_be_alike(before: wroc.Audit) -> None:
    other = wroc.audit(rows(1, 0.0), "y", "s", by="g", level=0.9)
    with pytest.raises(ValueError, match=r"must have the same level; found 0\.95 and 0\.9"):
        wroc.audit_changes(before, other)
    several = wroc.audit(rows(1, 0.0).with_columns(t="s"), "y", ["s", "t"], by="g")
    with pytest.raises(ValueError, match="must both have one score, or both several"):
        wroc.audit_changes(before, several)
    with pytest.raises(ValueError, match="`adjust` must be one of 'holm', 'bh', 'none'"):
        wroc.audit_changes(before, before, adjust="fdr")  # type: ignore[arg-type]
