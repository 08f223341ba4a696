"""Segments of up to several conditions, as sums of cells: their tests, and a selection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np
import polars as pl

from polars_wroc.arrays import Array, Ints, Mask
from polars_wroc.groups.categories import CROSSED
from polars_wroc.groups.comparisons import COMPARISON_SCHEMA, TARGET
from polars_wroc.groups.crossed_cells import CrossedCells
from polars_wroc.groups.group_columns import make_rows
from polars_wroc.inputs.columns import AUDIT_KEYS, MISSING, OVERALL
from polars_wroc.inputs.metric import Metric, Worse
from polars_wroc.inputs.reasons import NO_VARIANCE
from polars_wroc.queries import select_schema
from polars_wroc.records import map_arrays
from polars_wroc.rows import Sampling
from polars_wroc.stats import skewed_sums
from polars_wroc.stats.contrasts import find_gap_limits, find_ratio_limits
from polars_wroc.stats.families import DIFFERENT, adjust_p_values
from polars_wroc.stats.part_means import (
    ErrorSums,
    PartTests,
    ValueSums,
    compare_errors,
    compare_values,
)
from polars_wroc.stats.rates import EQUAL_WEIGHTS
from polars_wroc.thresholds.registry import RateMetric

SEARCH_SCHEMA = COMPARISON_SCHEMA | {
    "depth": pl.Int64,
    "n_examined": pl.Int64,
    "n_worse": pl.Int64,
    "explained_by": pl.String,
}
_MOST_SEGMENTS = 100_000
# Segments with fewer clusters, or fewer effective events of weighted calibration, are not examined.
_FEWEST_CLUSTERS, _FEWEST_EVENTS = 10, 5
# An exact test decides on rates that differ from the others by at least so many standard errors.
_FAR = 2.0
# Decimals of the distances that decide the order of segments.
_DECIMALS = 9
# A sorted list of group numbers may be longer than the list of cells by this factor.
_SPARSE = 10


class TooManySegmentsError(ValueError):
    """There are too many segments to examine."""


class CrossedSegments:
    """All segments of up to ``depth`` conditions with enough rows, as sums of cells.

    They are in the order of the combinations of attributes. A segment ``is_examined`` if it has
    enough rows outside too, and fewer than the segments without one of its conditions.
    ``conditions`` has the attributes of each, and ``cell`` one of its cells.
    """

    def __init__(self, codes: Sequence[Ints], n: Array, depth: int, min_rows: int) -> None:
        # The number of each cell's segment in each combination of attributes; -1 in none.
        self._places: dict[tuple[int, ...], Ints] = {(): np.zeros(n.size, np.int64)}
        sizes: dict[tuple[int, ...], Array] = {(): np.array([n.sum()])}
        cells, examined = [np.zeros(0, np.int64)], [np.zeros(0, dtype=bool)]
        self.conditions: list[tuple[int, ...]] = []
        for number in range(1, min(depth, len(codes)) + 1):
            for attributes in combinations(range(len(codes)), number):
                place, size, cell = self._divide(
                    attributes[:-1], codes[attributes[-1]], n, min_rows
                )
                self._places[attributes], sizes[attributes] = place, size
                is_examined = n.sum() - size >= min_rows
                for parent in combinations(attributes, number - 1):
                    is_examined &= sizes[parent][self._places[parent][cell]] > size
                cells.append(cell)
                examined.append(is_examined)
                self.conditions += [attributes] * size.size
                if sum(each.sum() for each in examined) > _MOST_SEGMENTS:
                    msg = (
                        f"`depth` must leave at most {_MOST_SEGMENTS:,} segments to examine; found "
                        f"more with {depth}: take {max(depth - 1, 1)}, fewer `attributes`, or more "
                        "`min_rows`"
                    )
                    raise TooManySegmentsError(msg)
        del self._places[()]
        self.cell = np.concatenate(cells)
        self.is_examined = np.concatenate(examined)

    @property
    def number(self) -> int:
        """The number of segments."""
        return len(self.cell)

    def _divide(
        self, parent: tuple[int, ...], code: Ints, n: Array, min_rows: int
    ) -> tuple[Ints, Array, Ints]:
        """Return segments divided by one more attribute: the place of each cell, sizes, a cell."""
        inside = np.flatnonzero(self._places[parent] >= 0)
        numbers = self._places[parent][inside] * (code.max(initial=0) + 1) + code[inside]
        if numbers.max(initial=0) > _SPARSE * n.size:
            _, numbers = np.unique(numbers, return_inverse=True)
        size = np.bincount(numbers, n[inside]).astype(np.float64)
        is_large, cell = size >= min_rows, np.zeros(size.size, np.int64)
        cell[numbers] = inside
        place = np.full(n.size, -1)
        place[inside] = np.where(is_large, np.cumsum(is_large) - 1, -1)[numbers]
        return place, size[is_large], cell[is_large]

    def _combinations(self) -> Iterator[tuple[slice, Ints]]:
        """Yield the segments of each combination of attributes, with the place of each cell."""
        first = 0
        for place in self._places.values():
            count = int(place.max(initial=-1)) + 1
            yield slice(first, first + count), place
            first += count

    def total(self, values: Array) -> Array:
        """Return the sum of the values of the cells of each segment."""
        sums = np.zeros(self.number)
        for part, place in self._combinations():
            sums[part] = np.bincount(place + 1, values, part.stop - part.start + 1)[1:]
        return sums

    def find_cells(self, number: int, codes: Sequence[Ints]) -> Mask:
        """Return whether each cell is in a segment."""
        cell = self.cell[number]
        fits = [codes[each] == codes[each][cell] for each in self.conditions[number]]
        return np.asarray(np.logical_and.reduce(fits))

    def add_up_units(
        self, unit: Ints, values: Array, share: Array, factor: Array
    ) -> tuple[Array, Array]:
        """Return the sums of squared totals of units, and the numbers of units of each segment.

        A unit's total is the total of its values in the segment minus the ``share`` of all of them.
        Squares are multiplied by the ``factor`` of the unit. Only units with values count.
        """
        total = np.bincount(unit, values, factor.size)
        squares = share**2 * (factor * total**2).sum()
        present = np.zeros(self.number)
        for part, place in self._combinations():
            inside = np.flatnonzero((place >= 0) & (values != 0))
            # Most pairs of a segment and a unit do not occur.
            pairs = place[inside] * factor.size + unit[inside]
            pairs, number = np.unique(pairs, return_inverse=True)
            segment, own_unit = np.divmod(pairs, factor.size)
            own = np.bincount(number, values[inside], pairs.size)
            # (a - f t)^2 = a^2 - 2 f a t + f^2 t^2
            added = factor[own_unit] * (own**2 - 2 * share[part][segment] * own * total[own_unit])
            squares[part] += np.bincount(segment, added, part.stop - part.start)
            present[part] = np.bincount(segment, minlength=part.stop - part.start)
        return squares, present


class UnitLevel(NamedTuple):
    """Sampling units or strata: the number of each cell's, and factors of squared totals.

    Squared totals of units minus squared totals of strata are sums of squares within strata.
    """

    sign: int
    number: Ints
    factor: Array


def read_unit_levels(unit: Ints, sample: Sampling) -> tuple[UnitLevel, UnitLevel]:
    """Return the units and the strata of cells, each of which is in one unit."""
    size, fraction = sample.size, sample.fraction
    if sample.lonely != "certainty" and (size == 1).any():
        msg = (
            "`design` must have two or more sampling units in each stratum, or "
            "lonely='certainty'; found a stratum of one"
        )
        raise ValueError(msg)
    # (1 - f_h) n_h / (n_h - 1)
    factor = np.where(size > 1, (1 - fraction) * size / np.maximum(size - 1, 1), 0.0)
    return (
        UnitLevel(1, unit, factor[sample.stratum]),
        UnitLevel(-1, sample.stratum[unit], factor / size),
    )


@dataclass(frozen=True)
class SearchRules:
    """The rules by which segments are compared with all other rows, and which are shown.

    ``names`` are the names of the attributes.
    """

    metric: Metric
    worse: Worse
    names: Sequence[str]
    depth: int
    min_rows: int
    top: int
    level: float
    redundant: bool

    @property
    def is_rate(self) -> bool:
        """Whether the metric is a proportion of rows."""
        return isinstance(self.metric, RateMetric)


@dataclass(frozen=True)
class _Side:
    """Sums over some cells, of each segment and of all rows, with tests."""

    own: ValueSums | ErrorSums
    whole: ValueSums | ErrorSums
    tests: PartTests
    df: Array | None


class SegmentSearch:
    """The segments of some cells, with their tests."""

    def __init__(self, cells: CrossedCells, rules: SearchRules, sample: Sampling | None) -> None:
        self.cells, self.rules = cells, rules
        self.texts = [column.cast(pl.String) for column in cells.keys]
        self.codes = [
            np.unique(text.fill_null("").to_numpy(), return_inverse=True)[1] * 2
            + text.is_null().to_numpy()
            for text in self.texts
        ]
        self.levels: Sequence[UnitLevel] = ()
        if sample is not None and cells.unit is not None:
            self.levels = read_unit_levels(cells.unit, sample)
        self.segments = CrossedSegments(self.codes, cells.sums.n, rules.depth, rules.min_rows)
        self.all = self._compare(cells.sums, to_target=True)

    def _compare(self, sums: ValueSums | ErrorSums, *, to_target: bool = False) -> _Side:
        """Compare the part of each segment in some cells with the rest of these cells.

        Errors may be compared with their target instead.
        """
        own = map_arrays(sums, self.segments.total)
        whole = map_arrays(sums, np.sum)
        if isinstance(sums, ErrorSums):
            tests = compare_errors(own, whole, to_target=to_target)
        else:
            tests = compare_values(own, whole)
        if not self.levels:
            return _Side(own, whole, tests, None)
        values = sums.first - tests.mean * sums.weight
        variance, df = np.zeros(self.segments.number), np.zeros(self.segments.number)
        for sign, number, factor in self.levels:
            units = self.segments.add_up_units
            variance += sign * units(number, values, tests.share, factor)[0]
            df += sign * units(number, sums.n, tests.share, factor)[1]
        return _Side(own, whole, tests.at_least(variance), df)

    @cached_property
    def is_examined(self) -> Mask:
        """Whether each segment is tested, for any outcomes."""
        own, tests = self.all.own, self.all.tests
        examined = self.segments.is_examined & (tests.variance > 0) & np.isfinite(tests.skewness)
        if self.all.df is not None:
            examined &= self.all.df >= _FEWEST_CLUSTERS - 1
        if isinstance(own, ErrorSums):
            share = own.promised / own.weight
            kish = own.weight**2 / own.squares
            examined &= kish * np.minimum(share, 1 - share) >= _FEWEST_EVENTS
        return np.asarray(examined)

    @property
    def _worse_side(self) -> Array:
        """Whether higher or lower values of each segment are worse: 1 or -1."""
        z = self.all.tests.z
        if self.rules.worse == "either":
            return np.sign(z)
        return np.full(z.shape, 1.0 if self.rules.worse == "higher" else -1.0)

    def p_values(self) -> Array:
        """Return the p-values of the examined segments; for losses, one-sided ones."""
        chosen = self.is_examined
        tests = map_arrays(self.all.tests, lambda each: each[chosen])
        three = tests.z, tests.skewness, tests.least
        tail = skewed_sums.upper_tail(*three)
        if self.rules.is_rate or isinstance(self.all.own, ErrorSums):
            tail = np.minimum(tail, skewed_sums.lower_tail(*three))
        tail = np.minimum(tail, 0.5)
        if self.all.df is not None:
            tail = skewed_sums.student_tail(tail, self.all.df[chosen])
        elif self.rules.is_rate and self._has_equal_weights():
            own = map_arrays(self.all.own, lambda each: each[chosen])
            tail = self._replace_by_exact(tail, own, tests)
        return np.minimum(2 * tail, 1.0)

    def _has_equal_weights(self) -> bool:
        whole = self.all.whole
        return bool(abs(whole.squares * whole.n / whole.weight**2 - 1) < EQUAL_WEIGHTS)

    def _replace_by_exact(self, tail: Array, own: ValueSums, tests: PartTests) -> Array:
        """Return tail probabilities, which are exact for rates far from the rates of the others."""
        whole = self.all.whole
        unit = whole.weight / whole.n
        is_exact = (np.abs(tests.z) > _FAR) & (tests.plain <= skewed_sums.MOST_EXACT * unit**2)
        rows, both = own.n[is_exact], own.first[is_exact] / unit
        total = np.full_like(rows, whole.n)
        # The rarer outcome has the exact distribution
        is_low = tests.z[is_exact] < 0
        events: Array = np.where(is_low, total - whole.first / unit, whole.first / unit)
        both = np.where(is_low, rows - both, both)
        tail[is_exact] = skewed_sums.exact_tail(np.round(both), rows, np.round(events), total)
        return tail

    def limits(self, chosen: Ints) -> dict[str, Array]:
        """Return limits of chosen segments that hold for all examined ones at once."""
        tests = map_arrays(self.all.tests, lambda each: each[chosen])
        own = map_arrays(self.all.own, lambda each: each[chosen])
        tail = np.full(chosen.size, (1 - self.rules.level) / 2 / max(self.is_examined.sum(), 1))
        if self.all.df is not None:
            tail = skewed_sums.normal_tail(tail, self.all.df[chosen])
        if self.rules.is_rate:
            return self._limit_rates(own, tests, tail)
        low, high = skewed_sums.tail_quantiles(tests.skewness, tests.least, tail)
        scale = own.weight * (1 - tests.share)
        gap, error = tests.excess / scale, np.sqrt(tests.variance) / scale
        limits = {"gap": gap, "gap_low": gap - error * low, "gap_high": gap + error * high}
        if isinstance(own, ErrorSums):
            limits |= {f"value{end}": limits[f"gap{end}"] for end in ("_low", "_high")}
        return limits

    def _limit_rates(self, own: ValueSums, tests: PartTests, tail: Array) -> dict[str, Array]:
        """Combine the limits of rates in segments and in all other rows."""
        rest = self._rest_of(own)
        rates = own.first / own.weight, rest.first / rest.weight
        effect = tests.variance / tests.plain
        limits = [
            skewed_sums.limit_rates(rate, side.weight, side.squares, side.cubes, tail, effect)
            for rate, side in zip(rates, (own, rest), strict=True)
        ]
        gap = find_gap_limits(rates[0], limits[0], rates[1], limits[1])
        ratio = find_ratio_limits(rates[0], limits[0], rates[1], limits[1])
        is_bounded = (rates[1] > 0) & np.isfinite(ratio.high)
        return {
            "value_low": limits[0].low,
            "value_high": limits[0].high,
            "gap": rates[0] - rates[1],
            "gap_low": gap.low,
            "gap_high": gap.high,
            "ratio": np.where(rates[1] > 0, rates[0] / rates[1], np.nan),
            "ratio_low": ratio.low,
            "ratio_high": np.where(is_bounded, ratio.high, np.nan),
        }

    def _rest_of(self, own: ValueSums) -> ValueSums:
        """Return the sums over all rows outside of segments."""
        assert isinstance(self.all.whole, ValueSums)
        return self.all.whole.take_away(own)

    def table(self) -> pl.DataFrame:
        """Return a row for all rows, then the rows of segments that are significantly worse."""
        numbers = np.flatnonzero(self.is_examined)
        p_value = self.p_values()
        p_adjusted = adjust_p_values(p_value, "holm")
        is_sure = p_adjusted <= 1 - self.rules.level
        chosen = numbers[is_sure]
        limits = self.limits(chosen)
        columns = limits | {"p_value": p_value[is_sure], "p_adjusted": p_adjusted[is_sure]}
        is_higher = (self._worse_side > 0)[chosen]
        distance = np.where(is_higher, limits["gap_low"], -limits["gap_high"])
        # If each of two segments is the rest of the other, they are equally far, up to rounding.
        places = np.lexsort((chosen, -np.round(distance, _DECIMALS)))
        places = places[distance[places] > 0]
        n_worse = len(places)
        explained = self._explain(chosen[places].tolist())
        is_shown = [number in explained for number in chosen[places].tolist()]
        places = places[is_shown]
        return self._lay_out(
            chosen[places],
            {name: each[places] for name, each in columns.items()},
            explained,
            n_worse,
        )

    def _explain(self, ranked: list[int]) -> dict[int, int | None]:
        """Return the segments to show, with the segment above that explains each."""
        shown: list[int] = []
        explained: dict[int, int | None] = {}
        left = ranked
        while left and len(shown) < self.rules.top:
            best, *left = left
            shown.append(best)
            explained[best] = None
            inside = self.segments.find_cells(best, self.codes)
            within, without = (self._stay_worse(part) for part in (inside, ~inside))
            conditions = self._conditions_of(best)
            for other in left:
                is_part = conditions <= self._conditions_of(other)
                if not (within if is_part else without)[other]:
                    explained[other] = best
            left = [other for other in left if other not in explained]
        return explained if self.rules.redundant else dict.fromkeys(shown)

    def _conditions_of(self, number: int) -> set[tuple[int, int]]:
        cell = self.segments.cell[number]
        return {(each, int(self.codes[each][cell])) for each in self.segments.conditions[number]}

    def _stay_worse(self, inside: Mask) -> Mask:
        """Return which segments are also worse in some cells, by an unadjusted test."""
        part = self._compare(map_arrays(self.cells.sums, lambda each: np.where(inside, each, 0.0)))
        z, least = part.tests.z, self.rules.min_rows
        # Without skewness, a normal variable is equally often as far away on the other side.
        tail = skewed_sums.lower_tail(-np.abs(np.nan_to_num(z)), np.zeros_like(z), np.zeros_like(z))
        if part.df is not None:
            tail = skewed_sums.student_tail(tail, np.maximum(part.df, 1.0))
        is_enough = (part.own.n >= least) & (part.whole.n - part.own.n >= least)
        is_worse = (np.sign(z) == self._worse_side) & (2 * tail <= 1 - self.rules.level)
        return np.asarray(is_worse & is_enough)

    def name(self, number: int) -> tuple[str, str | None]:
        """Return the attribute and the name of a segment, as those of crossed attributes."""
        attributes, cell = self.segments.conditions[number], int(self.segments.cell[number])
        texts = [self.texts[each][cell] for each in attributes]
        names = CROSSED.join(self.rules.names[each] for each in attributes)
        if len(attributes) == 1:
            return names, texts[0]
        return names, ", ".join(MISSING if text is None else text for text in texts)

    def _is_same_everywhere(self) -> bool:
        """Return whether a rate is 0 or 1 in all rows, so that no segment can differ."""
        first, weight = float(self.all.whole.first), float(self.all.whole.weight)
        return isinstance(self.rules.metric, RateMetric) and (first in (0.0, weight))

    def _lay_out(
        self,
        numbers: Ints,
        columns: Mapping[str, Array],
        explained: Mapping[int, int | None],
        n_worse: int,
    ) -> pl.DataFrame:
        """Return the rows of the table."""
        own, whole = map_arrays(self.all.own, lambda each: each[numbers]), self.all.whole
        names = [self.name(number) for number in numbers.tolist()]
        above = [explained[number] for number in numbers.tolist()]
        labels = pl.DataFrame(names, schema=dict.fromkeys(AUDIT_KEYS, pl.String), orient="row")
        sums = {"n": own.n, "value": own.first / own.weight}
        if isinstance(own, ErrorSums):
            sums["reference_value"] = np.zeros(len(numbers))
        else:
            rest = self._rest_of(own)
            sums |= {"n_reference": rest.n, "reference_value": rest.first / rest.weight}
        sums["depth"] = np.array([len(self.segments.conditions[each]) for each in numbers], float)
        texts: dict[str, str | Sequence[str | None]] = {
            "reference": TARGET if isinstance(own, ErrorSums) else "rest",
            "verdict": DIFFERENT,
            "explained_by": [
                None if by is None else " = ".join(each or MISSING for each in self.name(by))
                for by in above
            ],
        }
        overall = make_rows(
            pl.DataFrame({key: [OVERALL] for key in AUDIT_KEYS}),
            {"n": [float(whole.n)], "value": [float(whole.first / whole.weight)], "depth": [0.0]},
            {"reason": NO_VARIANCE if self._is_same_everywhere() else None},
        )
        found = make_rows(labels, {**sums, **columns}, texts)
        table = pl.concat([overall, found], how="diagonal").with_columns(
            metric=pl.lit(self.rules.metric.name),
            n_examined=int(self.is_examined.sum()),
            n_worse=n_worse,
        )
        return select_schema(table, SEARCH_SCHEMA)
