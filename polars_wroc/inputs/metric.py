"""What a registry says of every metric, whatever the metric is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

SampleSize: TypeAlias = Literal["positives", "negatives", "rows", "selected", "rejected"]


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A metric: its column, what tables and charts call it, and what it is in one sentence.

    The ``label`` is what stands in the middle of a sentence. ``better`` says which values are
    the better ones, if any are. The gap of one that ``has_gap`` between groups is measured, and
    one that is ``in_short`` is among the few columns that a terminal has room for.
    """

    name: str
    label: str
    definition: str
    better: Literal["high", "low"] | None = "high"
    has_gap: bool = False
    in_short: bool = False

    @property
    def column(self) -> str:
        """Name of its column in tables."""
        return self.name

    @property
    def heading(self) -> str:
        """Call the metric where a sentence or a title begins."""
        return self.label[0].upper() + self.label[1:]

    @property
    def sample_sizes(self) -> tuple[SampleSize, ...]:
        """The rows that the metric is about, of each of which a test needs enough."""
        return ("rows",)
