"""Rates of a chosen threshold on other rows than those from which it was chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Literal, TypeAlias

import numpy as np
import polars as pl

from polars_wroc.arrays import Array, Ints, Mask
from polars_wroc.progress import Progress
from polars_wroc.ranking.curve import CELLS
from polars_wroc.rows import Rows
from polars_wroc.stats.resampling import count_poisson, hash_evenly, seeds
from polars_wroc.steps import SegmentRows
from polars_wroc.thresholds.cells import Cells, sum_cells_at
from polars_wroc.thresholds.choice import choose_per_group, choose_points
from polars_wroc.thresholds.limits import HONEST_RATES, make_matrix
from polars_wroc.thresholds.rules import Rule

# ``"bootstrap"``: the rates at the chosen threshold, without most of their optimism.
# ``"crossfit"``: the rates of the rule if it chooses on other rows than are measured.
Honest: TypeAlias = Literal["bootstrap", "crossfit"]

_FOLDS = 10
# The most rows of resamples of a curve in memory at the same time.
_ROWS_AT_ONCE = 250_000


def number_rows(rows: Rows) -> pl.Series:
    """Return row numbers in the order of values, independent of the order of the rows."""
    # Rows without a weight come last, after those that are missing for some models, so that they do
    # not change other numbers. Equal rows are interchangeable.
    missing = np.isnan(rows.weight).astype(np.uint8) + ~rows.complete_in_all
    columns = {"missing": pl.Series(missing)} if missing.any() else {}
    columns |= {each.name: each for each in rows.keys}
    columns["positive"] = pl.Series(rows.weight > 0)
    columns["weight"] = pl.Series(np.abs(rows.weight), nan_to_null=True)
    for number, score in enumerate(rows.scores.values()):
        columns[f"score_{number}"] = pl.Series(score, nan_to_null=True)
    order = pl.DataFrame(columns).select(pl.arg_sort_by(*columns)).to_series().to_numpy()
    numbers = np.empty_like(order)
    numbers[order] = np.arange(len(order), dtype=order.dtype)
    return pl.Series(numbers)


@dataclass(frozen=True)
class HonestRates:
    """Estimates of `HONEST_RATES` at the thresholds that a rule chooses, for other rows.

    The seed gives the resamples, or the folds.
    """

    rule: Rule
    honest: Honest
    resamples: int
    seed: int
    per_group: bool

    def estimate(self, rows: SegmentRows, numbers: pl.Series, cells: Cells) -> dict[str, Array]:
        """Return the rates of segments.

        ``numbers`` identify rows, and ``cells`` are the cells at the thresholds of the rule.
        """
        draws = [*islice(seeds(self.seed), self.resamples)]
        if self.honest == "crossfit":
            return self._crossfit(rows, numbers.hash(draws[0]))
        optimism = self._bootstrap_optimism(rows, numbers, draws)
        apparent = compute_honest_rates(cells.weight)
        return {name: np.clip(apparent[name] - optimism[name], 0.0, 1.0) for name in HONEST_RATES}

    def _crossfit(self, rows: SegmentRows, hashes: pl.Series) -> dict[str, Array]:
        """Return rates from the cells of each fold, at the threshold chosen on the other folds."""
        fold = (hashes % _FOLDS).to_numpy()
        weight = np.zeros((len(CELLS), rows.number))
        for number in range(_FOLDS):
            others, left_out = rows.at(fold != number), rows.at(fold == number)
            threshold = choose_per_group(others, self.rule, per_group=self.per_group)
            cells = sum_cells_at(left_out, threshold.value, selects=threshold.selects)
            # Folds in which no threshold satisfies the rule are left out.
            weight += np.nan_to_num(cells.weight)
        return compute_honest_rates(weight)

    def _bootstrap_optimism(
        self, rows: SegmentRows, numbers: pl.Series, draws: Sequence[int]
    ) -> dict[str, Array]:
        """Return the means of (rate on a resample - rate on the data) of each segment.

        Both rates are at the threshold that the rule chooses on the resample.
        """
        optimism = np.full((rows.number, len(HONEST_RATES)), np.nan)
        with Progress(len(rows.score) * len(draws), "rows of resamples") as progress:
            if not self.per_group:
                curve = _Curve.from_rows(rows, numbers)
                optimism = curve.optimism(self.rule, draws, progress)
                return dict(zip(HONEST_RATES, optimism.T, strict=True))
            for place, (start, stop) in enumerate(pairwise(rows.starts.tolist())):
                curve = _Curve.from_rows(rows.between(place, place + 1), numbers[start:stop])
                optimism[place] = curve.optimism(self.rule, draws, progress)
        return dict(zip(HONEST_RATES, optimism.T, strict=True))


def compute_honest_rates(weight: Array) -> dict[str, Array]:
    """Return `HONEST_RATES` of the weights in the four cells."""
    matrix = make_matrix(*weight, threshold=np.full(weight.shape[1:], np.nan))
    return {name: getattr(matrix, name) for name in HONEST_RATES}


@dataclass(frozen=True)
class _Curve:
    """Rows of one or several groups that share a curve, from the highest score down.

    ``weights`` has the weights of positives and of negatives, and ``group`` is the number of each
    row's group. ``ends`` are the last rows of each score; within a tie there is no point of the
    curve.
    """

    weights: Array
    numbers: pl.Series
    group: Ints
    groups: int
    ends: Ints

    @classmethod
    def from_rows(cls, rows: SegmentRows, numbers: pl.Series) -> _Curve:
        """Sort the rows of segments."""
        order = np.argsort(-rows.score, kind="stable")
        signed, score = rows.weight[order], rows.score[order]
        weights = np.stack([np.maximum(signed, 0.0), np.maximum(-signed, 0.0)])
        is_end = np.ones(len(score), bool)
        is_end[:-1] = score[1:] != score[:-1]
        ends = np.flatnonzero(is_end)
        return cls(weights, numbers[order], rows.segment[order], rows.number, ends)

    def optimism(self, rule: Rule, draws: Sequence[int], progress: Progress) -> Array:
        """Return the mean difference of each rate of each group; NaN if no draw has one."""
        at_once = max(_ROWS_AT_ONCE // max(len(self.group), 1), 1)
        differences = []
        for first in range(0, len(draws), at_once):
            differences.append(self.differences(rule, draws[first : first + at_once]))
            progress.advance(len(self.group) * len(differences[-1]))
        found = np.concatenate(differences)
        known = ~np.isnan(found)
        return np.asarray(np.where(known, found, 0).sum(axis=0) / known.sum(axis=0))

    def differences(self, rule: Rule, draws: Sequence[int]) -> Array:
        """Return the rates on resamples minus those on the data: resample, group, rate."""
        drawn, is_whole = self._resample(draws)
        is_selected, is_chosen = self._select(drawn, rule)
        rates = [self._rates(weights, is_selected) for weights in (drawn, self.weights[:, None])]
        known = is_whole & is_chosen[:, None]
        return np.where(known[..., None], rates[0] - rates[1], np.nan)

    def _resample(self, draws: Sequence[int]) -> tuple[Array, Mask]:
        """Return weights of rows drawn with replacement; each class of a group keeps its weight.

        If no row of a class is drawn, the group has no weight and is not whole. The axes of weights
        are class, resample and row.
        """
        # Poisson variables of mean 1, from the hashes of the rows
        times = np.stack([count_poisson(hash_evenly(self.numbers, seed)) for seed in draws])
        drawn = self.weights[:, None] * times
        factors = self._total(self.weights[:, None]) / self._total(drawn)
        # NaN for a class without rows
        is_whole = np.asarray(~np.isinf(factors).any(axis=0))
        factors = np.where(is_whole & (factors > 0), factors, 0.0)
        return drawn * factors[..., self.group], is_whole

    def _select(self, drawn: Array, rule: Rule) -> tuple[Mask, Mask]:
        """Return the rows that the rule selects in each resample, and whether it allows a point."""
        origin = np.zeros((*drawn.shape[:2], 1))
        points = np.concatenate([origin, drawn.cumsum(axis=-1)[..., self.ends]], axis=-1)
        starts = np.arange(points.shape[1] + 1) * points.shape[2]
        tp, fp = points.reshape(2, -1)
        place = choose_points(tp, fp, starts, rule)
        reached = np.where(place < 0, 0, place - starts[:-1])
        last = np.append(-1, self.ends)[reached]
        return np.arange(len(self.group)) <= last[:, None], place >= 0

    def _rates(self, weights: Array, is_selected: Mask) -> Array:
        """Return the rates of each group in each resample, along the last axis."""
        selected, rejected = (self._total(weights * each) for each in (is_selected, ~is_selected))
        rates = compute_honest_rates(np.concatenate([selected, rejected]))
        return np.stack([*rates.values()], axis=-1)

    def _total(self, weights: Array) -> Array:
        """Return the sums of weights of each group: class, resample, group."""
        if self.groups == 1:
            return np.asarray(weights.sum(axis=-1, keepdims=True))
        sums = np.zeros((*weights.shape[:-1], self.groups))
        for place in np.ndindex(*weights.shape[:-1]):
            sums[place] = np.bincount(self.group, weights[place], self.groups)
        return sums
