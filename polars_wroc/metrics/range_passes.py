"""Passes over data larger than memory: one that counts its rows, and one for each range of scores.

What is measured in a range is a task, a function of the range and its rows. Passes differ in where
the tasks run: one after another in this process, or all at once on the workers of a cluster.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TypeVar

import polars as pl

from polars_wroc.inputs.rows import Rows
from polars_wroc.metrics.score_ranges import (
    ScoreRange,
    Span,
    add_bin_counts,
    count_in_bins,
    rows_by_score,
    span_of,
    together,
)
from polars_wroc.plans.collect import collect
from polars_wroc.plans.spill_guard import SpillWarning

ResultT = TypeVar("ResultT")


class RangePasses(ABC):
    """Passes over the rows of several parts of the data, which have the same groups."""

    def __init__(self, parts: Sequence[Rows]) -> None:
        """Set the parts."""
        self.parts = parts

    @property
    def keys(self) -> list[str]:
        """The keys of all parts."""
        return self.parts[0].keys

    @property
    def model_keys(self) -> list[str]:
        """The key that names the model, if there are several models."""
        return self.parts[0].model_keys

    @abstractmethod
    def count(self, parts: Sequence[Rows]) -> pl.DataFrame:
        """Count the rows in bins; the ``parts`` may have more keys than those of the passes."""

    def measure(
        self, ranges: Sequence[ScoreRange], task: Callable[[ScoreRange, Rows], ResultT]
    ) -> list[ResultT]:
        """Return what the task makes of each range, reading only those whose rows are not known."""
        read = iter(self.read([each for each in ranges if each.known is None], task))
        return [
            next(read)
            if each.known is None
            else run(task, each, rows_by_score(each.known.lazy(), self.keys, self.model_keys))
            for each in ranges
        ]

    @abstractmethod
    def read(
        self, ranges: Sequence[ScoreRange], task: Callable[[ScoreRange, Rows], ResultT]
    ) -> list[ResultT]:
        """Read the rows of each range, and return what the task makes of them."""


def run(task: Callable[[ScoreRange, Rows], ResultT], each: ScoreRange, rows: Rows) -> ResultT:
    """Measure a range, which fits in memory, so that nothing spills."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpillWarning)
        return task(each, rows)


class PassesInTurn(RangePasses):
    """Passes in this process: one part after another, then one range after another."""

    def __init__(self, parts: Sequence[Rows]) -> None:
        """Set the parts, whose scores are not known before the first pass."""
        super().__init__(parts)
        self._spans: list[Span | None] = [None] * len(parts)

    def count(self, parts: Sequence[Rows]) -> pl.DataFrame:
        """Count the parts one after another, and note the span of the scores of each."""
        first, *others = parts
        counts = collect(count_in_bins(first))
        self._spans = [span_of(counts)]
        for part in others:
            counted = collect(count_in_bins(part))
            self._spans.append(span_of(counted))
            counts = add_bin_counts([counts, counted], first.keys)
        return counts

    def read(
        self, ranges: Sequence[ScoreRange], task: Callable[[ScoreRange, Rows], ResultT]
    ) -> list[ResultT]:
        """Read one range after another, each from the parts that have scores in it."""
        return [run(task, each, self._rows_in(each.span)) for each in ranges]

    def _rows_in(self, span: Span) -> Rows:
        within = [
            span.of(part).frame
            for part, of_part in zip(self.parts, self._spans, strict=True)
            if of_part is None or span.meets(of_part)
        ]
        return together(within, self.keys, self.model_keys)
