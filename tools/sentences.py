"""Sentences of audits on single findings, and names of groups and classes, for a snapshot.

The findings are those of the documentation's loans, and cases at the edge of the rules: gaps that
round to the margin, limits on either side of 0, or values without limits. The snapshot,
`tests/snapshots/sentences.txt`, shows what a change of words does; what numbers a sentence must
have is tested in `tests/audits`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from site_navigation import ROOT

import polars_wroc as wroc
from polars_wroc.audits.say import write_sentence
from polars_wroc.audits.tables import segment_in_words
from polars_wroc.audits.words import Words
from polars_wroc.groups.categories import CROSSED

FILE = ROOT / "tests" / "snapshots" / "sentences.txt"
WORDS = Words("approved", "not approved", "selected", "not selected", "selected", 0.05, 0.95)
PEOPLE = replace(WORDS, people="applicants", groups={"region": "applicants in {}"})
Parts = dict[str, Any]

DIFFERENT: Parts = {"verdict": "different", "p_value": 0.001, "p_adjusted": 0.01}
OPEN: Parts = {"verdict": "inconclusive"}
ALIKE: Parts = {"verdict": "equivalent"}
UNDEFINED: Parts = {"verdict": None, "reason": "undefined"}
WHOLE: Parts = {"attribute": "overall", "segment": "overall", "reference": "target"}


def gap(value: float, reference_value: float, low: float | None, high: float | None) -> Parts:
    """Return a value, its reference, and the gap between them with its limits."""
    known = {"value": value, "reference_value": reference_value}
    return known | {"gap": value - reference_value, "gap_low": low, "gap_high": high}


def ratio(value: float | None, low: float | None, high: float | None, verdict: str | None) -> Parts:
    """Return an impact ratio to the white applicants, with its limits."""
    limits = {"ratio": value, "ratio_low": low, "ratio_high": high}
    return {**limits, "verdict": verdict, "reference": "white", "n": 197}


FPR = gap(0.38, 0.49, -0.25, 0.02) | OPEN
NEEDED = {"factor": 38.29, "needed": 2451, "sampling_unit": "negatives"}
ERROR = gap(0.108, -0.012, 0.06, 0.18) | {"value_low": 0.05, "value_high": 0.17}
# The scores may be too low, too.
BOTH_SIDES = {"value_low": -0.01, "value_high": 0.19}
SLOPE = gap(0.65, 0.9, -0.45, -0.05)
# Metrics, and what is known of a finding on black applicants.
FINDINGS: list[tuple[str, Parts]] = [
    ("impact_ratio", ratio(0.689, 0.585, 0.791, "below four fifths")),
    ("impact_ratio", ratio(0.9, 0.85, 0.96, "at least four fifths")),
    ("impact_ratio", ratio(0.7996, 0.7, 0.9, "inconclusive")),
    # Limits are written on their side of four fifths.
    ("impact_ratio", ratio(0.75, 0.7, 0.79996, "below four fifths")),
    ("impact_ratio", ratio(0.75, 0.7, 0.7951, "below four fifths")),
    ("impact_ratio", ratio(None, None, None, None) | {"reason": "share below 2%"}),
    ("impact_ratio", ratio(1.0, None, None, None) | {"reason": "the reference"}),
    ("selection_rate", gap(0.558, 0.8, -0.315, -0.17)),
    # Rates and their gap add up as they are written, and keep to their side of the margin.
    *(
        ("selection_rate", gap(*rates, -0.2, -0.12))
        for rates in (
            (0.22, 0.38),
            (0.217, 0.383),
            (0.346, 0.403),
            (0.504, 0.509),
            (0.3, 0.347),
            (0.3, 0.3497),
        )
    ),
    # Limits have as many digits as tell them apart.
    ("selection_rate", gap(0.613, 0.5, 0.112, 0.114)),
    ("selection_rate", gap(0.527, 0.5, 0.004, 0.05)),
    ("tpr", gap(0.647, 0.837, -0.276, -0.11)),
    ("fpr", FPR),
    ("fpr", FPR | NEEDED),
    ("auc", gap(0.7, 0.74, -0.14, 0.04) | OPEN | {"reason": "fewer than 30 rows", "n": 9}),
    ("auc", {"value": None, "gap": None} | UNDEFINED),
    ("ppv", gap(0.931, 0.926, -0.02, 0.03) | ALIKE | {"segment": None}),
    ("npv", gap(0.46, 0.26, None, None) | OPEN | {"reason": "no variance"}),
    ("tpr", gap(0.5, 0.6, -0.19, -0.01) | OPEN | {"model": "s", "p_adjusted": 0.2}),
    ("mean_calibration_error", ERROR),
    ("mean_calibration_error", ERROR | OPEN | {"gap_low": -0.01}),
    ("mean_calibration_error", ERROR | ALIKE | {"reference_value": 1e-4}),
    ("mean_calibration_error", gap(0.09, -0.06, 0.05, 0.25) | BOTH_SIDES),
    ("calibration_slope", SLOPE),
    ("calibration_slope", SLOPE | OPEN | {"reason": "no variance"}),
    ("calibration_slope", SLOPE | ALIKE),
    ("calibration_slope", {"value": None, "gap": None} | UNDEFINED),
    *(
        (metric, {**parts, **WHOLE})
        for metric, parts in (
            ("calibration_slope", {"value": 1.4, "gap": 0.4, "value_low": 1.2, "value_high": 1.6}),
            ("calibration_slope", {"value": -0.4, "gap": -1.4}),
            ("calibration_slope", {"value": 1.02, "gap": 0.02} | ALIKE),
            ("calibration_slope", {"value": None, "gap": None} | UNDEFINED),
            ("mean_calibration_error", ERROR),
            ("mean_calibration_error", {"value": 0.002, "gap": 0.002} | ALIKE),
        )
    ),
]
GROUPS: list[tuple[str, str | None]] = [
    ("race", "black"),
    ("black", "yes"),
    ("Region", "Region 12"),
    ("region", "north"),
    ("age", "under 25"),
    ("age", "aged 30"),
    ("age", "55+"),
    ("age", "<30"),
    ("age_band", "30-39"),
    ("branch", "7"),
    ("g", "gold"),
    ("a", "a"),
    (f"race{CROSSED}sex", "black, male"),
    (f"sex{CROSSED}branch", "male, 7"),
    (f"sex{CROSSED}age", "female, 55+"),
    (f"a{CROSSED}b", "x, y, z"),
    ("sex", None),
    ("overall", "overall"),
]
CLASSES: list[tuple[str | None, object]] = [
    ("approved", None),
    ("loan_approved", None),
    ("is_repaid", 1),
    ("Churned", "yes"),
    ("y", None),
    ("label", None),
    ("target", None),
    ("outcome", None),
    ("default", None),
    ("need", None),
    ("speed", None),
    ("seed", None),
    ("status", "denied"),
    ("status", "bad"),
    ("approved", "no"),
    (None, None),
]


def finding(metric: str, parts: Parts) -> Parts:
    """Return the row of a finding on black applicants."""
    unknown = ("value_low", "value_high", "gap_low", "gap_high", "n", "p_value", "p_adjusted")
    place = {"attribute": "race", "segment": "black", "metric": metric, "reference": "rest"}
    return {**dict.fromkeys(unknown), "reason": None, **place, **DIFFERENT, **parts}


def lines() -> Iterator[str]:
    """Write a line for each finding, group and label."""
    for metric, parts in FINDINGS:
        words = replace(WORDS, several="model" in parts)
        yield f"{metric}: {write_sentence(finding(metric, parts), words)}"
    yield ""
    for attribute, segment in GROUPS:
        names = [PEOPLE.group(attribute, segment), WORDS.group(attribute, segment)]
        yield " | ".join([segment_in_words(attribute, segment), *names])
    yield ""
    rows = wroc.data.loans().head(100)
    settings = wroc.audit(rows, "approved", "score", attributes="sex", min_rows=0).settings
    for label, positive in CLASSES:
        words = Words.of(replace(settings, label=label, pos_label=positive))
        yield f"{label} {positive}: {words.positive} | {words.negative}"


def write() -> str:
    """Return the text of the snapshot."""
    return "\n".join(lines()) + "\n"


def renew() -> None:
    """Write the snapshot."""
    FILE.write_text(write(), encoding="utf-8")
