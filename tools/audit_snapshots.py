"""Eight audits as Markdown, text and the body of their page: what readers see of them.

The diff of their files in `tests/snapshots/audits` is what a change does to words and layout.
Pictures are left out: each is named by its finding.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from site_navigation import ROOT

import polars_wroc as wroc
from polars_wroc.audits.gates import find_audit_scope, judge_gates, read_gate
from polars_wroc.audits.sections import write_report, write_summary
from polars_wroc.audits.tables import AuditedFile
from polars_wroc.documents.html_writer import write_html
from polars_wroc.documents.markdown_writer import write_markdown
from polars_wroc.documents.text_writer import Terminal, write_text

FOLDER = ROOT / "tests" / "snapshots" / "audits"
LOANS: dict[str, Any] = {"attributes": ["race", "sex"], "threshold": 0.85, "favorable": "selected"}
GATES = ("impact_ratio.ratio_high<0.8", "tpr.gap>0.05", "auc.value<0.7", "sex:tpr.gap_low>0.1")


def plain() -> wroc.Audit:
    """A score with a threshold, two attributes, and no words."""
    return wroc.audit(wroc.data.loans(), "approved", "score", **LOANS)


def gates() -> wroc.Audit:
    """Words for people, and conditions of which some fail."""
    text = wroc.Text(title="Mortgage score", note="Applications to lenders.", people="applicants")
    audit = wroc.audit(wroc.data.loans(), "approved", "score", **LOANS, text=text)
    conditions = [read_gate(gate, find_audit_scope(decides=True, ratios=True)) for gate in GATES]
    return replace(audit, gates=judge_gates(conditions, audit.table).gates)


def rejected() -> wroc.Audit:
    """A risk: being selected is bad."""
    rng, n = np.random.default_rng(3), 6_000
    group = rng.choice(["Black", "Hispanic", "White"], n, p=[0.2, 0.2, 0.6])
    risk = rng.normal(-1.5, 1, n) + 0.35 * (group == "Black")
    score = 1 / (1 + np.exp(-(risk + rng.normal(0, 0.5, n) + 0.5 * (group == "Black"))))
    frame = pl.DataFrame(
        {
            "defaulted": rng.random(n) < 1 / (1 + np.exp(-risk)),
            "risk": score,
            "ethnicity": group,
            "age": pl.Series(rng.integers(18, 70, n)),
        }
    )
    text = wroc.Text(
        positive="in default",
        negative="repaying",
        selected="turned down",
        rejected="accepted",
        people="borrowers",
    )
    return wroc.audit(
        frame.with_columns(wroc.ranges("age", [25, 45])),
        "defaulted",
        "risk",
        attributes=["ethnicity", "age"],
        threshold=0.3,
        favorable="rejected",
        text=text,
    )


def neither() -> wroc.Audit:
    """Weights, crossed groups, and decisions that are neither good nor bad."""
    return wroc.audit(
        wroc.data.diabetes(),
        "progressed",
        "score",
        attributes=["sex", "age_band"],
        intersections=True,
        weight="weight",
        threshold=0.5,
        favorable="neither",
        text=wroc.Text(people="patients"),
    )


def scores() -> wroc.Audit:
    """Two scores."""
    rng, frame = np.random.default_rng(1), wroc.data.loans()
    logit = (pl.col("score") / (1 - pl.col("score"))).log()
    noisy = 1 / (1 + (-(logit + pl.Series(rng.normal(0, 0.9, frame.height)))).exp())
    frame = frame.rename({"score": "current"}).with_columns(simple=frame.select(noisy).to_series())
    return wroc.audit(frame, "approved", ["current", "simple"], **LOANS)


def decisions() -> wroc.Audit:
    """Decisions alone: no label, no score."""
    rng, n = np.random.default_rng(17), 1_200
    race = rng.choice(["Asian", "Black", "Hispanic", "White"], n, p=[0.16, 0.2, 0.18, 0.46])
    hired = rng.random(n) < 0.34 - 0.15 * (race == "Black")
    frame = pl.DataFrame({"race": race, "hired": hired})
    text = wroc.Text(selected="hired", people="applicants")
    return wroc.audit(frame, attributes="race", selected="hired", favorable="selected", text=text)


def survey() -> wroc.Audit:
    """Clusters, no threshold, and a score in points."""
    rng, n = np.random.default_rng(13), 4_000
    branch = rng.choice(["A", "B", "C"], n, p=[0.5, 0.3, 0.2])
    quality = rng.normal(0, 1, n) - 0.8 * (branch == "C") * rng.random(n)
    frame = pl.DataFrame(
        {
            "repaid": rng.random(n) < 1 / (1 + np.exp(-(1 + 1.1 * quality))),
            "score": np.clip(640 + 80 * (quality + rng.normal(0, 0.7, n)), 300, 850).round(),
            "branch": branch,
            "shop": rng.integers(0, 200, n),
        }
    )
    text = wroc.Text(people="customers", groups={"branch": "customers of branch {}"})
    return wroc.audit(frame, "repaid", "score", attributes="branch", design="shop", text=text)


def regions() -> wroc.Audit:
    """Many groups."""
    rng, n = np.random.default_rng(5), 20_000
    region = rng.choice(17, n)
    skill = rng.normal(0, 1, n) - 0.5 * (region == 4)
    frame = pl.DataFrame(
        {
            "approved": rng.random(n) < 1 / (1 + np.exp(-(0.6 + 1.2 * skill))),
            "score": 1 / (1 + np.exp(-(0.6 + 1.1 * skill + rng.normal(0, 0.5, n)))),
            "region": [f"Region {1 + number:02d}" for number in region],
        }
    )
    return wroc.audit(
        frame,
        "approved",
        "score",
        attributes="region",
        threshold=0.6,
        favorable="selected",
    )


AUDITS: list[Callable[[], wroc.Audit]] = [
    plain,
    gates,
    rejected,
    neither,
    scores,
    decisions,
    survey,
    regions,
]


def steady(audit: wroc.Audit) -> wroc.Audit:
    """Give an audit a date, versions and a file that stay."""
    run = replace(
        audit.run,
        date=dt.datetime(2026, 1, 15, 9, 30, tzinfo=dt.UTC),
        versions={"python": "3", "polars-wroc": "0.1", "polars": "2"},
        command="polars-wroc audit rows.csv -o report.html",
        files=[AuditedFile("rows.csv", 1_000, "0" * 64, audit.segments["n"][0])],
    )
    return replace(audit, run=run)


def texts_of(audit: wroc.Audit) -> dict[str, str]:
    """The audit in each format, by the suffix of its file."""
    audit = steady(audit)
    page = write_html(write_report(audit, with_charts=True))
    page = re.sub(r'<svg role="img".*?</svg>', "<svg></svg>", page, flags=re.DOTALL)
    return {
        "md": write_markdown(write_report(audit, with_charts=False)),
        "txt": write_text(write_summary(audit), Terminal(100)) + "\n",
        "html": page,
    }


def renew() -> None:
    """Write the files."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for make in AUDITS:
        for suffix, text in texts_of(make()).items():
            (FOLDER / f"{make.__name__}.{suffix}").write_text(text, encoding="utf-8")
