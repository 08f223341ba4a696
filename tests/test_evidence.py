"""The page on evidence says what the simulations show: what fails, and how far its claims hold."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from site_navigation import DOCS, ROOT

PAGE = (DOCS / "evidence.md").read_text(encoding="utf-8")
_VALUE = re.compile(r"\**(\d\.\d+)")


class Claim(NamedTuple):
    """A phrase of the page, and the range of a column of a simulation that it rests on."""

    phrase: str
    page: str
    section: str
    column: str
    low: float
    high: float
    # Rows count that have this text in a cell, or do not if it begins with "not".
    rows: str = ""


DESIGNED = "cluster and strata"
SOONER = "the higher the risk"
AUDITS = "Null audits of two-stage samples"
UNDECLARED = "clusters, not declared"
CLAIMS = [
    Claim("covers 93% or more, also", "bent_assumptions", "Intervals of AUCs", "coverage", 0.93, 1),
    Claim(
        "covers 94% or more in all of them",
        "coverage",
        "Intervals of an AUC by size, spread and weights",
        "score",
        0.94,
        1,
    ),
    Claim(
        "it covers 94% to 99.8%",
        "coverage",
        "Perfect separation and tiny groups",
        "score",
        0.94,
        0.998,
    ),
    Claim(
        "at most 6% errors, within the errors of the simulation",
        "bent_assumptions",
        "Tests of gaps of AUCs, two groups",
        "highest error",
        0,
        0.065,
    ),
    Claim("at most 3% errors", "coverage", "Gaps of AUCs: family error", "rest", 0, 0.03),
    Claim("4% against a named", "coverage", "Gaps of AUCs: family error", "largest", 0, 0.045),
    Claim(
        "in at most 6% of samples of equal groups",
        "coverage",
        "Largest gap of groups that are all alike",
        "equalized odds",
        0,
        0.06,
    ),
    Claim(
        "at most 6% errors with 30 to 3,000 rows",
        "smaller_intervals",
        "Differences of two scores on the same rows",
        "default",
        0,
        0.06,
    ),
    Claim(
        "92.5% in two of 108 settings",
        "smaller_intervals",
        "Partial areas over false positive rates",
        "coverage",
        0.925,
        1,
    ),
    Claim(
        "covers 95% to 99%",
        "coverage",
        "Partial areas over true positive rates",
        "score",
        0.95,
        0.995,
    ),
    Claim(
        "covers 95% to 100%",
        "coverage",
        "True positive rates near a false positive rate of 0",
        "fpr 0.1",
        0.945,
        1,
    ),
    Claim(
        "covers 93% or more if at least five rows",
        "bent_assumptions",
        "Intervals of weighted rates, by weights",
        "least, 5 rows or more",
        0.93,
        1,
        rows=f"not {UNDECLARED}",
    ),
    Claim(
        "92% or more with fewer",
        "bent_assumptions",
        "Intervals of weighted rates, by weights",
        "least",
        0.92,
        1,
        rows=f"not {UNDECLARED}",
    ),
    Claim(
        "up to 7% with weights that depend on the outcome",
        "bent_assumptions",
        "Tests of weighted rates, two groups",
        "highest error",
        0,
        0.07,
    ),
    Claim(
        "covers 93% to 96% with",
        "coverage",
        "Chosen thresholds",
        "its coverage",
        0.93,
        0.965,
        rows="bootstrap",
    ),
    Claim(
        "without it, 89% to 95% for the tpr",
        "coverage",
        "Chosen thresholds",
        "its coverage",
        0.89,
        0.953,
        rows="plain",
    ),
    Claim(
        "at most 5.5% errors",
        "smaller_intervals",
        "References that are picked",
        "all equal: picked",
        0,
        0.055,
    ),
    Claim(
        "found in 77% to 82% of samples",
        "bent_assumptions",
        "Detectable gaps",
        "power",
        0.765,
        0.825,
        rows="not falling",
    ),
    Claim(
        "64% to 89%", "bent_assumptions", "Detectable gaps", "power", 0.635, 0.895, rows="falling"
    ),
    Claim("a power of about 0.8", "rows_needed", "Power", "power", 0.75, 0.85),
    Claim(
        "limits of the range that was picked cover 94%",
        "calibration_ranges",
        "Scores that are off",
        "coverage of limits",
        0.94,
        1,
    ),
    Claim(
        "covers 94% or more in all 180",
        "smaller_intervals",
        "Calibration slope and O:E",
        "slope",
        0.935,
        1,
    ),
    Claim(
        "91% to 93% in three",
        "smaller_intervals",
        "Calibration slope and O:E",
        "O:E",
        0.905,
        1,
    ),
    Claim(
        "covers 93% to 97%, with skewed scores",
        "smaller_intervals",
        "Standardized mean differences",
        "coverage",
        0.93,
        0.975,
    ),
    Claim(
        "one family, which errs in at most 5%",
        "bent_assumptions",
        "Audits of segments that are all alike",
        "any",
        0,
        0.055,
    ),
    Claim(
        "at most 3.3% of searches",
        "worst_segments",
        "Nothing to find",
        "searches that find any",
        0,
        0.033,
    ),
    Claim("passes in at most 5%", "release_check", "AUCs", "false pass", 0, 0.05),
    Claim("a worse rate in about 7%", "release_check", "Rates", "false pass", 0, 0.07),
    Claim("in 1% to 3% of runs", "looks", "Runs in which some look misses", "all looks", 0, 0.03),
    Claim(
        "limits of one look in 15% to 53%",
        "looks",
        "Runs in which some look misses",
        "one look",
        0.145,
        0.535,
    ),
    Claim("intervals cover 96% or more", "coverage", "Clusters", "coverage with", 0.955, 1),
    Claim("72% or more without it", "coverage", "Clusters", "coverage without", 0.715, 1),
    Claim(
        "where there is none in up to 57%",
        "surveys",
        "Null audits of clusters",
        "without design=",
        0,
        0.575,
    ),
    Claim(
        "AUCs cover 94% to 98%",
        "surveys",
        "Two-stage samples: AUCs",
        "coverage",
        0.935,
        0.985,
        rows=DESIGNED,
    ),
    Claim("92% or more", "surveys", "Two-stage samples: curves", DESIGNED, 0.915, 1),
    Claim("[88% to 91%]", "other_shapes", "Other shapes: AUCs", "coverage", 0.88, 0.914),
    Claim("[85% to 91%]", "other_shapes", "Other shapes: weighted rates", "coverage", 0.85, 0.914),
    Claim(
        "in 84% of samples or more",
        "other_shapes",
        "Other shapes: weighted rates",
        "told",
        0.84,
        1,
    ),
    Claim(
        "90% or more in case-control studies",
        "other_shapes",
        "Other shapes: mean calibration errors, by weights",
        "least coverage",
        0.9,
        1,
        rows="case-control",
    ),
    Claim(
        "92% or more with equal ones, within the errors of the simulation",
        "other_shapes",
        "Other shapes: mean calibration errors, by weights",
        "least coverage",
        0.915,
        0.935,
        rows="none",
    ),
    *(
        Claim(
            "covers 94% or more with uneven weights",
            "other_shapes",
            "Other shapes: mean calibration errors, by weights",
            "least coverage",
            0.94,
            1,
            rows=weights,
        )
        for weights in ("gamma", "Pareto", "1 or 20", "U-shaped")
    ),
    Claim(
        "91% or more with 20 clusters",
        "other_shapes",
        "Other shapes: clusters that grow with their effect, by measure",
        "least coverage",
        0.91,
        1,
    ),
    Claim(
        "in 3% to 7% of samples, with replicate weights too, but in 11%",
        "surveys",
        AUDITS,
        "with design=",
        0.02,
        0.115,
    ),
    Claim("with replicate weights too, but", "surveys", AUDITS, "replicate weights", 0, 0.115),
    Claim("the design in up to 91%", "surveys", AUDITS, "without design=", 0, 0.915),
    Claim(
        "down to 9% for the tpr",
        "horizon",
        "Outcomes at a horizon",
        "tpr",
        0.085,
        1,
        rows=SOONER,
    ),
]


def values(claim: Claim) -> Iterator[float]:
    """Read the numbers of a column of a table in the page of a simulation."""
    text = (ROOT / "benchmarks" / f"{claim.page}.md").read_text(encoding="utf-8")
    section = text.partition(f"\n## {claim.section}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    header, _, *rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines)
    wanted = claim.rows.removeprefix("not ")
    for row in rows:
        counts = any(wanted in cell for cell in row) is not claim.rows.startswith("not ")
        found = _VALUE.search(row[header.index(claim.column)])
        if counts and found:
            yield float(found[1])


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim.section}: {claim.column}")
def test_a_claim_is_what_the_simulation_shows(claim: Claim) -> None:
    assert claim.phrase in " ".join(PAGE.split()), "the claim has changed: change it here too"
    found = list(values(claim))
    assert found
    assert claim.low <= min(found)
    assert max(found) <= claim.high


def test_the_page_has_the_failures_of_all_simulations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks" / "simulations")
    evidence = importlib.import_module("evidence")
    assert evidence.fill_page(PAGE) == PAGE, "run: python benchmarks/simulations/evidence.py"
