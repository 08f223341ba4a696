"""The findings of an audit as sentences, for the report, notebooks and the terminal."""

from __future__ import annotations

from typing import NamedTuple

from polars_wroc.audits.gap_findings import Finding, gap_findings, verdict
from polars_wroc.audits.segment_findings import (
    calibration_findings,
    decision_findings,
    missing_finding,
    score_findings,
    untested_findings,
)
from polars_wroc.audits.tables import AuditTables


class Findings(NamedTuple):
    """Sentences about gaps, about what was not tested, and about the scores and their rows."""

    verdict: str
    gaps: list[Finding]
    untested: list[str]
    scores: list[str]

    @property
    def sentences(self) -> list[str]:
        """All sentences, in reading order."""
        gaps = [finding.text for finding in self.gaps]
        return [self.verdict, *gaps, *self.untested, *self.scores]


def findings_of(audit: AuditTables) -> Findings:
    """Write the findings of an audit as sentences."""
    segments, settings = audit.segments, audit.parameters
    missing = missing_finding(audit.missing)
    return Findings(
        verdict(audit.gaps, settings),
        gap_findings(audit.gaps, settings),
        [*decision_findings(segments), *untested_findings(segments, audit.gaps, settings)],
        [
            *score_findings(audit),
            *calibration_findings(audit.calibration, settings),
            *([] if missing is None else [missing]),
        ],
    )
