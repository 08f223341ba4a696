"""AUCs across groups: sums over the positives of some groups and the negatives of others.

Rows of all groups are ranked once. Each group's share of a class above a score is a step function,
from which the rows of the other class get their placement values. No row is repeated: time grows
with the number of rows times the number of groups, memory with the numbers of rows and results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from polars_wroc.arrays import Array, Ints
from polars_wroc.metrics.auc_sums import AucSums, auc_influences
from polars_wroc.metrics.sampled_aucs import take_units
from polars_wroc.records import map_arrays
from polars_wroc.rows import Rows
from polars_wroc.stats.contrasts import credible_correlation
from polars_wroc.stats.designs import Influence, SamplingUnits
from polars_wroc.stats.references import Reference
from polars_wroc.steps import SegmentRows, add_up


@dataclass(frozen=True)
class _ClassRows:
    """The rows of one class, with the rows of each group next to each other.

    ``step`` is the place of each row's score among the ``number`` of all scores, from the highest
    down. ``squares`` are the squared weights. ``starts`` are the places of the first rows of the
    groups, followed by the number of rows.
    """

    are_positive: bool
    step: Ints
    number: int
    weight: Array
    squares: Array
    starts: Ints

    def places(self, group: int) -> slice:
        """Return the places of the rows of a group."""
        return slice(self.starts[group], self.starts[group + 1])

    def shares_above(self, group: int) -> Array:
        """Return the share of a group's weight above each step; its rows at the step count half."""
        step, weight = self.step[self.places(group)], self.weight[self.places(group)]
        # Half of each row is above the steps from its own step on, the other half from the next.
        half = np.tile(weight / (2 * weight.sum()), 2)
        edges = np.concatenate([step, step + 1])
        order = np.argsort(edges, kind="stable")
        shares = np.append(0.0, half[order].cumsum())
        return np.repeat(shares, np.diff(edges[order], prepend=0, append=self.number))

    def sum_placed(self, above: Array) -> Array:
        """Return the `AucSums` of one class: misranked or ranked, first and second.

        They are sums over the rows of each group; ``above`` is the share of the other class that
        outranks each row.
        """
        # One array at a time, since allocating memory again for each group is slow.
        ranked = add_up(self.weight * above, self.starts)
        misranked = above if self.are_positive else 1 - above
        terms = self.squares * misranked
        first = add_up(terms, self.starts)
        terms *= misranked
        return np.stack([ranked, first, add_up(terms, self.starts)])


def sum_pairs(rows: SegmentRows) -> AucSums:
    """Return the sums over the positives of each group and the negatives of each group.

    Pairs of groups are in the order of the positives' group, then of the negatives' group.
    Average precision and KS are not defined.
    """
    positives, negatives = _split_classes(rows)
    # The last axis is the group of the negatives.
    positive_sums = np.zeros((3, rows.number, rows.number))
    negative_sums = np.zeros_like(positive_sums)
    for group in range(rows.number):
        above = negatives.shares_above(group)[positives.step]
        positive_sums[:, :, group] = positives.sum_placed(above)
        above = positives.shares_above(group)[negatives.step]
        negative_sums[:, group, :] = negatives.sum_placed(above)
    powers = _total_powers(rows)
    return _make_sums(
        np.repeat(powers[0], rows.number, axis=1),
        np.tile(powers[1], rows.number),
        positive_sums.reshape(3, -1),
        negative_sums.reshape(3, -1),
    )


def sum_against_rest(rows: SegmentRows) -> tuple[AucSums, AucSums]:
    """Return the sums over the rows of one class of each group and the others of all other groups.

    The first result is over the negatives of a group and the positives of the others, the second
    over its positives and the negatives of the others.
    """
    positives, negatives = _split_classes(rows)
    own_positives, other_positives = _place_in_groups(positives, negatives)
    own_negatives, other_negatives = _place_in_groups(negatives, positives)
    own = _total_powers(rows)
    others = Reference("rest").add_others(own)
    return (
        _make_sums(others[0], own[1], other_positives, own_negatives),
        _make_sums(own[0], others[1], own_positives, other_negatives),
    )


def _place_in_groups(rows: _ClassRows, opposed: _ClassRows) -> tuple[Array, Array]:
    """Return sums over a group's rows, placed among the others' opposed rows, and the reverse.

    The reverse sums are over the rows of all other groups, placed among the group's opposed rows.
    """
    weight = add_up(opposed.weight, opposed.starts)
    number = len(weight)
    above_by_others = np.zeros(len(rows.step))
    other_sums = np.zeros((3, number))
    for group in range(number):
        above = opposed.shares_above(group)[rows.step]
        other_sums[:, group] = np.delete(rows.sum_placed(above), group, axis=1).sum(axis=1)
        above *= weight[group]
        above[rows.places(group)] = 0.0
        above_by_others += above
    weight_of_others = np.repeat(Reference("rest").add_others(weight), np.diff(rows.starts))
    return rows.sum_placed(above_by_others / weight_of_others), other_sums


def _split_classes(rows: SegmentRows) -> tuple[_ClassRows, _ClassRows]:
    """Return the positives and the negatives, with places among the scores of both."""
    rank = pl.Series(rows.score).rank("dense", descending=True).to_numpy()
    step = rank.astype(np.int64) - 1
    number = int(step.max(initial=-1)) + 1
    classes = []
    for are_positive in (True, False):
        is_side = rows.weight > 0 if are_positive else rows.weight < 0
        side = rows.at(is_side)
        _, weight, squares = side.powers
        each = _ClassRows(are_positive, step[is_side], number, weight, squares, side.starts)
        classes.append(each)
    return classes[0], classes[1]


def _total_powers(rows: SegmentRows) -> Array:
    """Return numbers of rows and sums of powers of weights, for both classes of each group."""
    sides = np.stack([rows.weight > 0, rows.weight < 0]).astype(np.float64)
    totals = [rows.total(sides * values) for values in (*rows.powers, rows.cubes)]
    return np.stack(totals, axis=1)


def _make_sums(
    positives: Array, negatives: Array, positive_sums: Array, negative_sums: Array
) -> AucSums:
    n, weight, squares, cubes = np.stack([positives, negatives], axis=1)
    first, second = np.stack([positive_sums, negative_sums], axis=1)[1:]
    unknown = np.full(n.shape[1:], np.nan)
    return AucSums(
        n=n,
        weight=weight,
        squares=squares,
        cubes=cubes,
        first=first,
        second=second,
        misranked=positive_sums[0],
        ranked=negative_sums[0],
        precision=unknown,
        distance=unknown,
    )


@dataclass(frozen=True)
class SampledPairs:
    """Variances by a design of the AUC of each pair of groups, in the order of `sum_pairs`.

    ``correlation`` is the correlation with the AUC of the same groups in exchanged roles.
    """

    variance: Array
    df: Array
    correlation: Array


def sample_pairs(rows: Rows, segments: SegmentRows) -> SampledPairs:
    """Return variances by the design of the ``rows`` for each pair of groups.

    Each pair of groups is measured separately, so that arrays have only its sampling units.
    """
    groups = segments.number
    variance, df, correlation = np.full((3, groups, groups), np.nan)
    positives, negatives = _find_classes(segments)
    for one in range(groups):
        for other in range(one, groups):
            pairs = [(positives[one], negatives[other]), (positives[other], negatives[one])]
            influence, units = _measure_samples(rows, segments, pairs)
            exchanged = map_arrays(influence, lambda values: values[:, ::-1])
            variances = units.variance(influence)
            covariance = units.covariance(influence, exchanged)
            places = [one, other], [other, one]
            variance[places] = variances
            df[places] = units.df(influence)
            correlation[places] = credible_correlation(covariance, variances, variances[::-1])
    return SampledPairs(variance.ravel(), df.ravel(), correlation.ravel())


def sample_against_rest(rows: Rows, segments: SegmentRows) -> tuple[Array, Array]:
    """Return variances and degrees of freedom of both AUCs of `sum_against_rest`."""
    groups = segments.number
    variance, df = np.full((2, 2, groups), np.nan)
    positives, negatives = _find_classes(segments)
    for group in range(groups):
        others = [
            np.concatenate([*places[:group], *places[group + 1 :]])
            for places in (positives, negatives)
        ]
        samples = [(others[0], negatives[group]), (positives[group], others[1])]
        influence, units = _measure_samples(rows, segments, samples)
        variance[:, group], df[:, group] = units.variance(influence), units.df(influence)
    return variance, df


def _find_classes(segments: SegmentRows) -> tuple[list[Ints], list[Ints]]:
    """Return the places of the positives and of the negatives of each group."""
    classes = []
    for is_side in (segments.weight > 0, segments.weight < 0):
        places = np.flatnonzero(is_side)
        starts = np.searchsorted(places, segments.starts)
        # Without rows before the first group and after the last
        classes.append(np.split(places, starts)[1:-1])
    return classes[0], classes[1]


def _measure_samples(
    rows: Rows, segments: SegmentRows, samples: Sequence[tuple[Ints, Ints]]
) -> tuple[Influence, SamplingUnits]:
    """Return the influences of sampling units on the AUCs of some positives and some negatives.

    Only units with such rows are included.
    """
    lengths = [len(positives) + len(negatives) for positives, negatives in samples]
    places = np.concatenate([place for sample in samples for place in sample])
    taken = SegmentRows(
        pl.DataFrame(),
        np.append(0, np.cumsum(lengths)),
        segments.order[places],
        segments.score[places],
        segments.weight[places],
        np.zeros(len(samples), np.int64),
    )
    part = take_units(rows, taken)
    assert part.sample is not None
    return auc_influences(part, taken), part.sample.units
