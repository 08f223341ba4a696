"""The findings of a page: sentences, with what is significant and what is material."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from polars_wroc.audits.calibration_findings import TARGET
from polars_wroc.audits.calibration_tests import right_slopes
from polars_wroc.audits.matrix import SYMBOLS, Outcome
from polars_wroc.audits.phrases import many
from polars_wroc.audits.report.tables import p_value_text
from polars_wroc.audits.sentences import IMPACT_RATIO, size
from polars_wroc.audits.settings import AuditSettings
from polars_wroc.curves.calibration_fit import SLOPE
from polars_wroc.inputs.margins import FOUR_FIFTHS

# Most findings in the open, and of those so many that are not different.
_FIRST, _UNDECIDED = 12, 6


@dataclass(frozen=True)
class Found:
    """A finding: its rank, what it says, and what that is based on."""

    rank: int
    outcome: Outcome
    sentence: str
    note: str

    @property
    def symbol(self) -> str:
        """The sign that its cell of the matrix has."""
        return SYMBOLS[self.outcome]


@dataclass(frozen=True)
class FoldedFindings:
    """Findings below a heading, which are folded."""

    heading: str
    found: list[Found]


@dataclass(frozen=True)
class Findings:
    """The first findings, the others by their verdict, and how many are not on the page."""

    first: list[Found]
    folded: list[FoldedFindings]
    left_out: int

    @property
    def ranks(self) -> set[int]:
        """The findings that can be linked."""
        everything = [self.first, *(part.found for part in self.folded)]
        return {found.rank for part in everything for found in part}


def findings_on_page(
    findings: pl.DataFrame, shown: pl.DataFrame, settings: AuditSettings
) -> Findings:
    """Lay out the findings on the segments that are ``shown``."""
    told = findings.filter(~pl.col("mirror"))
    on_page = told.join(
        shown, on=shown.columns, how="semi", nulls_equal=True, maintain_order="left"
    )
    serious = on_page.filter(~pl.col("verdict").is_in(["alike", "not compared"]))
    first = _first(serious)
    others = on_page.filter(~pl.col("rank").is_in(first["rank"].implode()))
    margin = f"{size(settings.margin)} points"
    headings = {
        "different": "{} with a difference",
        "too little data": "{} with too little data to tell",
        "alike": f"{{}} alike within {margin}",
        "not compared": "{} that could not be made: undefined, or the reference itself",
    }
    more = "more " if first.height else ""
    folded = [
        FoldedFindings(
            heading.format(many(part.height, f"{more}comparison")), _found(part, settings)
        )
        for verdict, heading in headings.items()
        if not (part := others.filter(verdict=verdict)).is_empty()
    ]
    compared = pl.col("verdict") != "not compared"
    left_out = told.filter(compared).height - on_page.filter(compared).height
    return Findings(_found(first, settings), folded, left_out)


def found_on(findings: pl.DataFrame, attribute: str, settings: AuditSettings) -> list[Found]:
    """List what is different by an attribute."""
    different = findings.filter(~pl.col("mirror"), attribute=attribute, verdict="different")
    return _found(different, settings)


def _first(serious: pl.DataFrame) -> pl.DataFrame:
    """Take the first findings, and further ones only if they are different."""
    place = pl.int_range(pl.len())
    kept = (place < _UNDECIDED) | (pl.col("verdict") == "different")
    return serious.head(_FIRST).filter(kept)


def _found(part: pl.DataFrame, settings: AuditSettings) -> list[Found]:
    return [
        Found(row["rank"], _outcome(row), row["sentence"], _note(row, settings))
        for row in part.iter_rows(named=True)
    ]


def _outcome(finding: Mapping[str, Any]) -> Outcome:
    others: dict[str, Outcome] = {
        "alike": "alike",
        "too little data": "little",
        "not compared": "none",
    }
    side: Outcome = finding["side"]
    return others.get(finding["verdict"], side)


def _note(finding: Mapping[str, Any], settings: AuditSettings) -> str:
    """Say how sure a finding is, and whether it is at least the margin."""
    verdict, p_value = finding["verdict"], finding["p_adjusted"]
    if verdict in ("alike", "not compared"):
        return ""
    limit = _margin(finding, settings)
    p_text = "" if p_value is None else f" (p {p_value_text(p_value)})"
    if finding["metric"] == IMPACT_RATIO:
        if verdict == "different":
            return f"Surely: even its upper limit, for all segments jointly, is below {limit}."
        return f"Likely, but not surely, below {limit}." if finding["material"] else ""
    if verdict == "different":
        worth = "and at least" if finding["material"] else "but less than"
        return f"Different{p_text}, {worth} {limit}."
    little = f"Too little data{p_text}"
    return f"{little}, though at least {limit}." if finding["material"] else f"{little}."


def _margin(finding: Mapping[str, Any], settings: AuditSettings) -> str:
    """Name the margin of a metric."""
    if finding["metric"] == IMPACT_RATIO:
        return f"four fifths ({FOUR_FIFTHS:.2f})"
    if finding["metric"] == SLOPE:
        least, most = right_slopes(settings.margin)
        other = "" if finding["reference"] == TARGET else " times the other slope"
        return f"the margin of {least:.2f} to {most:.2f}{other}"
    return f"the margin of {size(settings.margin)} points"
