"""The first lines of a page: what was audited, and what to look at next."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import polars as pl

from polars_wroc.audits.phrases import many
from polars_wroc.audits.segment_keys import segment_in_words
from polars_wroc.audits.tables import AuditTables
from polars_wroc.audits.words import Words
from polars_wroc.inputs.names import OVERALL

# Smaller shares are written with a decimal.
_RARE = 0.05


class Link(NamedTuple):
    """A text and where it leads on the page."""

    text: str
    target: str


def title_line(audit: AuditTables) -> list[str]:
    """Say in a line how many rows of which label were audited, and if there are no decisions."""
    settings = audit.parameters
    overall = audit.segments.filter(attribute=OVERALL)
    one = overall.row(0, named=True)
    parts = [many(max(overall["n"].to_list()), "row")]
    share = positive_share(one)
    if share is not None:
        of_weight = " of the weight" if settings.weight else ""
        percent = f"{share:.{1 if min(share, 1 - share) < _RARE else 0}%}"
        parts.append(f"{percent}{of_weight} {Words.of(settings).positive}")
    return parts if settings.favorable else [*parts, "ranking only, no decisions"]


def positive_share(overall: Mapping[str, Any]) -> float | None:
    """Return the proportion of positives in the weight of all rows; None if that is unknown."""
    positive, negative = overall["w_pos"], overall["w_neg"]
    # Weights that overflow are null.
    if positive is None or negative is None:
        return None
    total: float = positive + negative
    return positive / total if total and math.isfinite(total) else None


def next_steps(findings: pl.DataFrame, places: dict[str, int]) -> list[Link]:
    """Link what a reader should look at after the first screen."""
    told = findings.filter(~pl.col("mirror"))
    different = told.filter(verdict="different")
    links = []
    if not different.is_empty():
        first = different.row(0, named=True)
        attribute = first["attribute"]
        segment = segment_in_words(attribute, first["segment"])
        what, tables = f"differs in {segment}", f"by {attribute}"
        if attribute == OVERALL:
            what, tables = "was found of the whole score", f"of {segment}"
        links += [
            Link(f"what {what}", f"finding-{first['rank']}"),
            Link(f"curves and tables {tables}", f"section-{places[attribute]}"),
        ]
    little = told.filter(verdict="too little data").height
    if little:
        have = "comparison that has" if little == 1 else "comparisons that have"
        links.append(Link(f"the {little:,} {have} too little data", "findings"))
    return links
