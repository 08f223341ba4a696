"""The attributes that all metrics of the registries share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

# The sign of negative numbers in text and charts.
MINUS = "\N{MINUS SIGN}"
# Which values of a segment are worse for its members.
Worse: TypeAlias = Literal["lower", "higher", "either"]
# Metrics whose tests share the error.
Family: TypeAlias = Literal["gaps", "impact", "scores", "calibration", "fairness"]
SampleSize: TypeAlias = Literal["positives", "negatives", "rows", "selected", "rejected"]


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A metric: its names in tables, charts and text, and its definition in one sentence.

    The ``label`` is written as in the middle of a sentence. ``better`` is the better direction;
    None if there is none. ``has_gap``: gaps between groups are computed. ``in_short``: tables
    on a terminal show it.
    """

    name: str
    label: str
    definition: str
    better: Literal["high", "low"] | None = "high"
    has_gap: bool = False
    in_short: bool = False
    # Whether the ratio of two values is compared with 1 besides their difference with 0.
    has_ratio: bool = True
    # Whether only rows with a label count; others are of all rows with a score or decision.
    needs_label: bool = True
    # Value of a score that tells nothing, below which no gap goes.
    least: float = 0.0
    # Value that all rows are compared with, if there is one.
    target: float | None = None
    # Whose p-values are adjusted together.
    family: Family = "gaps"
    # Which values are worse where being selected is good for a row, and where being rejected is.
    worse_if_selection_is_good: Worse = "either"
    worse_if_rejection_is_good: Worse = "either"
    # The metric in a segment and in its reference, as a sentence; empty if there are no gaps.
    comparison: str = ""
    # The same in a few words, after the name of the segment.
    brief: str = ""

    def worse_if(self, favorable: str | None) -> Worse:
        """Which values are worse for people where that decision is good for them."""
        if favorable == "selected":
            return self.worse_if_selection_is_good
        return self.worse_if_rejection_is_good if favorable == "rejected" else "either"

    @property
    def column(self) -> str:
        """Name of its column in tables."""
        return self.name

    @property
    def heading(self) -> str:
        """The label with a capital letter, for titles and the start of a sentence."""
        return self.label[0].upper() + self.label[1:]

    @property
    def sample_sizes(self) -> tuple[SampleSize, ...]:
        """Kinds of rows that the metric is based on; a test needs enough of each."""
        return ("rows",)
