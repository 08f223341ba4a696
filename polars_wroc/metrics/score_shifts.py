"""Shifts of scores: the rows of each period against all earlier rows of its segment."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from polars_wroc.arrays import Array, Ints
from polars_wroc.metrics.auc_sums import AucSums, auc_influences, estimate_aucs, sum_steps
from polars_wroc.rows import Rows
from polars_wroc.stats.aucs import Auc
from polars_wroc.stats.levels import Level
from polars_wroc.stats.shifts import Shift, measure_ks, measure_psi, sum_tenths
from polars_wroc.steps import SegmentRows, Steps, Sums, reduce_steps


@dataclass(frozen=True)
class ShiftSums:
    """Sums over the rows of periods and over the rows of the earlier periods.

    Rows of the period are the positives of ``aucs``, earlier ones are the negatives. ``after`` and
    ``before`` are the weights of both in tenths of the earlier weight, a row for each tenth. With a
    design, ``variance`` is the variance of the AUCs, with its ``df``.
    """

    aucs: AucSums
    after: Array
    before: Array
    variance: Array | None = None
    df: Array | float = np.inf

    @property
    def auc(self) -> Auc:
        """The AUC of the rows of each period against earlier ones."""
        return estimate_aucs(self.aucs, self.variance, self.df)

    @property
    def effective_rows(self) -> tuple[Array, Array]:
        """Kish's effective numbers of rows of each period and of the earlier ones."""
        # n = W^2 / S, without overflow
        after, before = self.aucs.weight / self.aucs.squares * self.aucs.weight
        return after, before

    def ks(self, level: Level) -> Shift:
        """Return the largest distance between distributions of scores; untested with a design."""
        shift = measure_ks(self.aucs.ks, *self.effective_rows, level)
        return shift if self.variance is None else shift.without_test()

    def psi(self, level: Level) -> Shift:
        """Return the population stability index, which is not tested with a design."""
        shift = measure_psi(self.after, self.before, *self.effective_rows, level)
        return shift if self.variance is None else shift.without_test()


def measure_shifts(rows: Rows, periods: SegmentRows, starts: Ints) -> ShiftSums:
    """Return sums over the rows of each period and over the earlier rows of its series.

    The ``periods`` are segments of ``rows``, and ``starts`` the places of the first of each series.
    """
    first = np.repeat(starts, np.diff(starts, append=periods.number))
    number = np.arange(periods.number) - first
    order = np.argsort(number, kind="stable")
    # One period of each series at a time, which together have at most all rows.
    cuts = np.flatnonzero(np.diff(number[order])) + 1
    found = [
        _sum_shifts(rows, _join_earlier(periods, first[places], places))
        for places in np.split(order, cuts)
    ]
    places = np.argsort(order)
    sums = {
        name: np.concatenate([each[name] for each in found], axis=-1)[..., places]
        for name in found[0]
    }
    tenths = sums.pop("after"), sums.pop("before")
    variance, df = sums.pop("variance", None), sums.pop("df", np.inf)
    return ShiftSums(AucSums(**sums), *tenths, variance, df)


def _join_earlier(periods: SegmentRows, first: Ints, places: Ints) -> SegmentRows:
    """Return the rows of some periods as positives, with earlier rows as negatives.

    ``first`` are the places of the first periods of their series.
    """
    begin, own, end = periods.starts[first], periods.starts[places], periods.starts[places + 1]
    starts = np.append(0, (end - begin).cumsum())
    segment = np.repeat(np.arange(len(places)), end - begin)
    row = np.arange(starts[-1]) + (begin - starts[:-1])[segment]
    moved = periods.move(row)
    weight = np.abs(moved.weight)
    return replace(
        moved,
        segments=periods.segments[places],
        starts=starts,
        weight=np.where(row >= own[segment], weight, -weight),
        missing=periods.missing[places],
        bins=None if moved.bins is None else moved.bins.merge_scores(moved.score),
    )


def _sum_shifts(rows: Rows, segments: SegmentRows) -> Sums:
    sums = reduce_steps(segments, _sum_steps, maxima=frozenset({"distance"}))
    if rows.sample is None:
        return sums
    influence, units = auc_influences(rows, segments), rows.sample.units
    return {**sums, "variance": units.variance(influence), "df": units.df(influence)}


@np.errstate(all="ignore")
def _sum_steps(steps: Steps) -> Sums:
    """Return the sums of `ShiftSums` over some steps of each segment."""
    total = steps.spread(steps.totals[1])
    # F- and F: the shares of the earlier weight below a score, and up to it
    below = 1 - steps.weights_reached[1] / total
    through = below + steps.w[1] / total
    number = len(steps.starts)
    segment = np.repeat(np.arange(number), np.diff(steps.starts, append=len(steps.score)))
    after, before = (sum_tenths(below, through, w, segment, number) for w in steps.w)
    return {**sum_steps(steps), "after": after, "before": before}
