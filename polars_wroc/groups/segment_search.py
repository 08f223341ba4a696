"""All segments of up to so many conditions, as sums of cells: their tests, and which are shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from polars_wroc.groups.categories import ATTRIBUTE, CROSSED, SEGMENT
from polars_wroc.groups.comparisons import COMPARISON_SCHEMA, DIFFERENT, PLACE, TARGET
from polars_wroc.inputs.columns import CLUSTER, MISSING, OVERALL, STRATUM
from polars_wroc.inputs.designs import FRACTION, UNITS, Lonely
from polars_wroc.inputs.metric import Metric, Worse
from polars_wroc.plans.formulas import Values
from polars_wroc.plans.queries import require_one_negative_label
from polars_wroc.stats.difference_tests import adjusted
from polars_wroc.stats.distributions import two_sided_p_value
from polars_wroc.stats.proportions import (
    EQUAL_WEIGHTS,
    Estimate,
    difference_limits,
    ratio_limits,
    reported_ratio,
)
from polars_wroc.stats.skewed_sums import (
    MOST_EXACT,
    Array,
    computed,
    exact_tail,
    lower_tail,
    normal_tail,
    rate_limits,
    student_tail,
    tail_quantiles,
    upper_tail,
)
from polars_wroc.thresholds.registry import RateMetric

IN_THE_LARGE = "calibration_in_the_large"
SEARCH_COLUMNS = {"depth": pl.Int64, "n_examined": pl.Int64, "explained_by": pl.String}
# Columns of cells, besides sums: whether negatives have the label 0, and whether -1.
ZEROS, MINUSES = "__zeros", "__minuses"
_MOST_SEGMENTS = 100_000
# Of a segment in a sample of clusters, or of weighted calibration, to be examined.
_FEWEST_CLUSTERS, _FEWEST_EVENTS = 10, 5
# The exact test of rates decides where a segment is so many standard errors from the others.
_FAR = 2.0


Numbers: TypeAlias = NDArray[np.integer[Any]]


class TooManySegmentsError(ValueError):
    """There are more segments than are examined."""


class _Segments:
    """All segments of up to so many conditions with enough rows, as sums of cells.

    They are in the order of the combinations of attributes. Those that are ``examined`` have enough
    rows outside too, and fewer than the segment without one of their conditions.
    """

    def __init__(self, codes: Sequence[Array], n: Array, depth: int, min_rows: int) -> None:
        self._places: dict[tuple[int, ...], Numbers] = {(): np.zeros(n.size, np.int64)}
        sizes: dict[tuple[int, ...], Array] = {(): np.array([n.sum()])}
        cells, examined, self.conditions = [], [], list[tuple[int, ...]]()
        for number in range(1, min(depth, len(codes)) + 1):
            for of in combinations(range(len(codes)), number):
                place, size, cell = self._divided(of[:-1], codes[of[-1]], n, min_rows)
                self._places[of], sizes[of] = place, size
                fewer = n.sum() - size >= min_rows
                for parent in combinations(of, number - 1):
                    fewer &= sizes[parent][self._places[parent][cell]] > size
                cells.append(cell)
                examined.append(fewer)
                self.conditions += [of] * size.size
                if sum(each.sum() for each in examined) > _MOST_SEGMENTS:
                    msg = (
                        f"`depth` must leave at most {_MOST_SEGMENTS:,} segments to examine; found "
                        f"more with {depth}: take {max(depth - 1, 1)}, fewer `attributes`, or more "
                        "`min_rows`"
                    )
                    raise TooManySegmentsError(msg)
        del self._places[()]
        # One of the cells of each segment.
        self.cell = np.concatenate(cells)
        self.examined = np.concatenate(examined)

    def _divided(
        self, parent: tuple[int, ...], code: Array, n: Array, min_rows: int
    ) -> tuple[Numbers, Array, Numbers]:
        """Divide segments by one more attribute: the place of each cell, sizes, and a cell."""
        inside = np.flatnonzero(self._places[parent] >= 0)
        numbers = self._places[parent][inside] * (code.max(initial=0) + 1) + code[inside]
        if numbers.max(initial=0) > 10 * n.size:
            _, numbers = np.unique(numbers, return_inverse=True)
        size = np.bincount(numbers, n[inside]).astype(np.float64)
        large, cell = size >= min_rows, np.zeros(size.size, np.int64)
        cell[numbers] = inside
        place: Numbers = np.full(n.size, -1)
        place[inside] = np.where(large, np.cumsum(large) - 1, -1)[numbers]
        return place, size[large], cell[large]

    def _by_combination(self) -> Iterator[tuple[slice, Numbers]]:
        first = 0
        for place in self._places.values():
            count = int(place.max(initial=-1)) + 1
            yield slice(first, first + count), place
            first += count

    def sums(self, values: Array) -> Array:
        """Add up the values of the cells of each segment."""
        total = np.zeros(self.cell.size)
        for part, place in self._by_combination():
            total[part] = np.bincount(place + 1, values, part.stop - part.start + 1)[1:]
        return total

    def has(self, number: int, codes: Sequence[Array]) -> NDArray[np.bool_]:
        """Whether each cell is in a segment."""
        cell = self.cell[number]
        held = (codes[of] == codes[of][cell] for of in self.conditions[number])
        inside: NDArray[np.bool_] = np.logical_and.reduce([*held])
        return inside

    def units(
        self, unit: Numbers, values: Array, share: Array, factor: Array
    ) -> tuple[Array, Array]:
        """Add up squared totals of units, and count the units of each segment.

        The total of a unit is that of its values in the segment less the ``share`` of all of them.
        Squares are multiplied by the ``factor`` of the unit.
        """
        total = np.bincount(unit, values, factor.size)
        squares = share**2 * (factor * total**2).sum()
        present = np.zeros(self.cell.size)
        for part, place in self._by_combination():
            inside = np.flatnonzero((place >= 0) & (values != 0))
            pairs = place[inside] * factor.size + unit[inside]
            pairs, number = np.unique(pairs, return_inverse=True)
            of, one = np.divmod(pairs, factor.size)
            own = np.bincount(number, values[inside], pairs.size)
            added = factor[one] * (own**2 - 2 * share[part][of] * own * total[one])
            squares[part] += np.bincount(of, added, part.stop - part.start)
            present[part] = np.bincount(of, minlength=part.stop - part.start)
        return squares, present


class _Test(NamedTuple):
    """What the tests of all segments rest on: sums of their own and of all, and standard errors.

    ``plain`` is the variance of independent rows.
    """

    own: Mapping[str, Array]
    whole: Mapping[str, Array]
    share: Array
    excess: Array
    variance: Array
    plain: Array
    skewness: Array
    least: Array
    df: Array | None

    @property
    def z(self) -> Array:
        """The excess in standard errors."""
        z: Array = self.excess / np.sqrt(self.variance)
        return z


@dataclass(frozen=True)
class Search:
    """How segments are compared with all other rows."""

    metric: Metric
    worse: Worse
    keys: Sequence[str]
    names: Sequence[str]
    depth: int
    min_rows: int
    top: int
    level: float
    redundant: bool
    lonely: Lonely = "null"

    @property
    def schema(self) -> dict[str, Any]:
        """Columns of the result."""
        return {PLACE: pl.Int64} | COMPARISON_SCHEMA | SEARCH_COLUMNS

    def table(self, cells: pl.DataFrame) -> pl.DataFrame:
        """Find the worst segments; the first row has all rows."""
        with np.errstate(all="ignore"):
            return FoundSegments(self, cells).table()


class FoundSegments:
    """The segments of some cells."""

    def __init__(self, search: Search, cells: pl.DataFrame) -> None:
        if ZEROS in cells.columns:
            mixed = (bool(cells[name].any()) for name in (ZEROS, MINUSES))
            require_one_negative_label(**dict(zip(("zeros", "minuses"), mixed, strict=True)))
        self.search = search
        self.is_rate = isinstance(search.metric, RateMetric)
        self.in_the_large = search.metric.name == IN_THE_LARGE
        # The order of cells decides the last digits of sums.
        designed = [name for name in (STRATUM, CLUSTER) if name in cells.columns]
        cells = cells.sort([*search.keys, *designed])
        self.texts = [cells[key].cast(pl.String) for key in search.keys]
        self.codes = [
            np.unique(text.fill_null("").to_numpy(), return_inverse=True)[1] * 2
            + text.is_null().to_numpy()
            for text in self.texts
        ]
        held = cells.select(pl.col("^(n|[bcpqx][1-3])$").cast(pl.Float64))
        self.values: dict[str, Array] = {each.name: each.to_numpy() for each in held}
        if self.is_rate:
            self.values |= dict.fromkeys(("x2", "x3"), self.values["x1"])
        self.levels: list[tuple[int, Numbers, Array]] = []
        if designed:
            self._read_units(cells, designed)
        options = search.depth, search.min_rows
        self.segments = _Segments(self.codes, self.values["n"], *options)
        self.all = self._tested(None)
        self.examined = self._examined()

    def _read_units(self, cells: pl.DataFrame, designed: Sequence[str]) -> None:
        """Number the sampling units and strata, with the factors of their squared totals."""
        units, fraction = cells[UNITS].to_numpy(), cells[FRACTION].to_numpy()
        alone = cells.filter(pl.col(UNITS) == 1)[STRATUM]
        if self.search.lonely != "certainty" and not alone.is_empty():
            msg = (
                "`design` must have two or more sampling units in each stratum, or "
                f"lonely='certainty'; found one in stratum {alone[0]}"
            )
            raise ValueError(msg)
        factor = np.where(units > 1, (1 - fraction) * units / np.maximum(units - 1, 1), 0.0)
        # Squared totals of units less those of strata are sums of squares within these.
        for sign, columns, of_cell in ((1, designed, factor), (-1, [STRATUM], factor / units)):
            number = (cells.select(pl.struct(columns).rank("dense")).to_series() - 1).to_numpy()
            factors = np.zeros(int(number.max(initial=0)) + 1)
            factors[number] = of_cell
            self.levels.append((sign, number.astype(int), factors))

    def _tested(self, inside: NDArray[np.bool_] | None) -> _Test:
        """Compare the part of each segment that is in some cells with the rest of these.

        Of all cells, calibration in the large is compared with its target.
        """
        values = self.values
        if inside is not None:
            values = {name: np.where(inside, each, 0.0) for name, each in values.items()}
        own = {name: self.segments.sums(each) for name, each in values.items()}
        whole = {name: each.sum() for name, each in values.items()}
        to_target = self.in_the_large and inside is None
        mean = 0.0 if to_target else whole["x1"] / whole["b1"]
        share = 0.0 * own["b1"] if to_target else own["b1"] / whole["b1"]

        def weighed(name: str, power: int) -> Array:
            rest = whole[name] - own[name]
            total: Array = (1 - share) ** power * own[name] + (-share) ** power * rest
            return total

        if self.in_the_large:
            plain, third = weighed("q2", 2), -weighed("q3", 3)
            skewness = third / plain**1.5
            least = skewness / 2
        else:
            second = whole["x2"] / whole["b1"] - mean**2
            third = whole["x3"] / whole["b1"] - 3 * mean * whole["x2"] / whole["b1"] + 2 * mean**3
            plain = second * weighed("b2", 2)
            skewness = third * weighed("b3", 3) / plain**1.5
            of_size = abs(third) / second**1.5 * np.sqrt(own["b2"]) / own["b1"]
            least = np.sign(skewness) * np.minimum(abs(skewness), of_size)
        variance, df = plain, None
        if not self.is_rate and not self.in_the_large:
            squares, of_all = (
                sums["c2"] - 2 * mean * sums["c1"] + mean**2 * sums["b2"] for sums in (own, whole)
            )
            variance = np.maximum(plain, (1 - 2 * share) * squares + share**2 * of_all)
        if self.levels:
            by_design, df = self._by_design(values["x1"] - mean * values["b1"], share, values["n"])
            variance = np.maximum(variance, by_design)
        excess = own["x1"] - mean * own["b1"]
        return _Test(own, whole, share, excess, variance, plain, skewness, least, df)

    def _by_design(self, values: Array, share: Array, n: Array) -> tuple[Array, Array]:
        """Compute the variances of the design, and their degrees of freedom."""
        variance, df = np.zeros_like(share), np.zeros_like(share)
        for sign, unit, factor in self.levels:
            variance += sign * self.segments.units(unit, values, share, factor)[0]
            df += sign * self.segments.units(unit, n, share, factor)[1]
        return variance, df

    def _examined(self) -> NDArray[np.bool_]:
        """Say which segments are tested, whatever the outcomes."""
        test, examined = self.all, self.segments.examined.copy()
        examined &= (test.variance > 0) & np.isfinite(test.skewness)
        if test.df is not None:
            examined &= test.df >= _FEWEST_CLUSTERS - 1
        if self.in_the_large:
            share = test.own["p1"] / test.own["b1"]
            kish = test.own["b1"] ** 2 / test.own["b2"]
            examined &= kish * np.minimum(share, 1 - share) >= _FEWEST_EVENTS
        return examined

    def p_values(self) -> Array:
        """Test the examined segments; of losses, whether they are higher alone."""
        test, chosen = self.all, self.examined
        z, skewness, least = test.z[chosen], test.skewness[chosen], test.least[chosen]
        tail = upper_tail(z, skewness, least)
        if self.is_rate or self.in_the_large:
            tail = np.minimum(tail, lower_tail(z, skewness, least))
        tail = np.minimum(tail, 0.5)
        if test.df is not None:
            tail = student_tail(tail, test.df[chosen])
        elif self.is_rate and self._has_equal_weights():
            unit = test.whole["b1"] / test.whole["n"]
            exact = (abs(z) > _FAR) & (test.plain[chosen] <= MOST_EXACT * unit**2)
            # The other outcome, where there are few events.
            low, rows = z[exact] < 0, test.own["n"][chosen][exact]
            both, total = test.own["x1"][chosen][exact] / unit, 0 * rows + test.whole["n"]
            events: Array = np.where(low, total - test.whole["x1"] / unit, test.whole["x1"] / unit)
            both = np.where(low, rows - both, both)
            tail[exact] = exact_tail(np.round(both), rows, np.round(events), total)
        return np.minimum(2 * tail, 1.0)

    def _has_equal_weights(self) -> bool:
        whole = self.all.whole
        return bool(abs(whole["b2"] * whole["n"] / whole["b1"] ** 2 - 1) < EQUAL_WEIGHTS)

    def limits(self, chosen: Numbers) -> dict[str, Array]:
        """Compute limits of chosen segments that hold for all examined ones at once."""
        test = self.all
        own = {name: each[chosen] for name, each in test.own.items()}
        tail = np.full(chosen.size, (1 - self.search.level) / 2 / max(self.examined.sum(), 1))
        if test.df is not None:
            tail = normal_tail(tail, test.df[chosen])
        if self.is_rate:
            rest = {name: test.whole[name] - each for name, each in own.items()}
            effect = (test.variance / test.plain)[chosen]
            return _limits_of_rates(own, rest, tail, effect)
        low, high = tail_quantiles(test.skewness[chosen], test.least[chosen], tail)
        scale = own["b1"] * (1 - test.share[chosen])
        gap, error = test.excess[chosen] / scale, np.sqrt(test.variance[chosen]) / scale
        limits = {"gap": gap, "gap_low": gap - error * low, "gap_high": gap + error * high}
        if self.in_the_large:
            limits |= {f"value{end}": limits[f"gap{end}"] for end in ("_low", "_high")}
        return limits

    def table(self) -> pl.DataFrame:
        """Return the segments that are surely worse, after all rows."""
        numbers = np.flatnonzero(self.examined)
        p_values = pl.DataFrame({"number": numbers, "p_value": self.p_values()})
        tests = adjusted(p_values, "holm")
        sure = tests.filter(pl.col("p_adjusted") <= 1 - self.search.level)
        chosen = sure["number"].to_numpy()
        limits = self.limits(chosen)
        lower, higher = -limits["gap_high"], limits["gap_low"]
        distance = {"lower": lower, "higher": higher, "either": np.maximum(lower, higher)}
        found = sure.with_columns(pl.Series(n, v, nan_to_null=True) for n, v in limits.items())
        found = found.with_columns(distance=pl.Series(distance[self.search.worse]))
        found = found.filter(pl.col("distance") > 0)
        found = found.sort(-pl.col("distance"), "number")
        shown = self._pruned(found["number"].to_list())
        return self._laid_out(found, shown)

    def _pruned(self, ranked: list[int]) -> dict[int, int | None]:
        """Keep the segments, by rank, that none above explains; with the one that does."""
        shown, explained = list[int](), dict[int, int | None]()
        left = ranked
        while left and len(shown) < self.search.top:
            best, *left = left
            shown.append(best)
            explained[best] = None
            inside = self.segments.has(best, self.codes)
            within, without = (self._stays(part) for part in (inside, ~inside))
            conditions = self._conditions(best)
            for other in left:
                if not (within if conditions <= self._conditions(other) else without)[other]:
                    explained[other] = best
            left = [other for other in left if other not in explained]
        kept = explained if self.search.redundant else shown
        return {number: explained[number] for number in ranked if number in kept}

    def _conditions(self, number: int) -> set[tuple[int, int]]:
        cell = self.segments.cell[number]
        return {(of, int(self.codes[of][cell])) for of in self.segments.conditions[number]}

    def _stays(self, inside: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Say which segments are worse in some cells too, by a test that is not adjusted."""
        test, least = self._tested(inside), self.search.min_rows
        side = {"lower": -1, "higher": 1, "either": np.sign(self.all.z)}[self.search.worse]
        p_value = computed(two_sided_p_value, np.nan_to_num(test.z))
        if test.df is not None:
            p_value = 2 * student_tail(np.minimum(p_value / 2, 0.5), np.maximum(test.df, 1.0))
        enough = (test.own["n"] >= least) & (test.whole["n"] - test.own["n"] >= least)
        stays: NDArray[np.bool_] = (np.sign(test.z) == side) & (p_value <= 1 - self.search.level)
        return stays & enough

    def named(self, number: int) -> tuple[str, str | None]:
        """Name a segment as those of crossed attributes are."""
        of, cell = self.segments.conditions[number], int(self.segments.cell[number])
        texts = [self.texts[each][cell] for each in of]
        names = CROSSED.join(self.search.names[each] for each in of)
        if len(of) == 1:
            return names, texts[0]
        return names, ", ".join(MISSING if text is None else text for text in texts)

    def _laid_out(self, found: pl.DataFrame, shown: Mapping[int, int | None]) -> pl.DataFrame:
        """Make the rows of the table."""
        whole, metric = self.all.whole, self.search.metric.name
        common = {"metric": metric, "n_examined": int(self.examined.sum())}
        value = whole["x1"] / whole["b1"] if whole["b1"] > 0 else None
        overall = {ATTRIBUTE: OVERALL, SEGMENT: OVERALL, "n": int(whole["n"]), "value": value}
        rows: list[dict[str, Any]] = [common | overall | {PLACE: 0, "depth": 0}]
        by_number = {row["number"]: row for row in found.iter_rows(named=True)}
        for number, by in shown.items():
            own = {name: each[number] for name, each in self.all.own.items()}
            row = common | by_number[number] | {PLACE: len(rows), "n": int(own["n"])}
            row |= zip((ATTRIBUTE, SEGMENT), self.named(number), strict=True)
            row |= {"value": own["x1"] / own["b1"], "depth": len(self.segments.conditions[number])}
            row |= {"reference": TARGET, "reference_value": 0.0, "verdict": DIFFERENT}
            if not self.in_the_large:
                rest = {name: whole[name] - own[name] for name in ("n", "x1", "b1")}
                row |= {"reference": "rest", "reference_value": rest["x1"] / rest["b1"]}
                row["n_reference"] = int(rest["n"])
            if by is not None:
                row["explained_by"] = " = ".join(each or MISSING for each in self.named(by))
            rows.append(row)
        return pl.DataFrame(rows, schema=self.search.schema)


def _limits_of_rates(
    own: Mapping[str, Array], rest: Mapping[str, Array], tail: Array, effect: Array
) -> dict[str, Array]:
    """Combine the limits of rates in segments and in all other rows."""
    sides = []
    for side in (own, rest):
        rate = side["x1"] / side["b1"]
        limits = rate_limits(rate, (side["b1"], side["b2"], side["b3"]), tail, effect)
        sides.append(Estimate(*(cast("Any", Values(each)) for each in (rate, *limits))))
    one, other = sides
    ratio = Estimate(one.value / other.value, *ratio_limits(one, other))
    estimates = {
        "value": one,
        "gap": Estimate(one.value - other.value, *difference_limits(one, other)),
        "ratio": reported_ratio(ratio, other.value),
    }
    return {
        f"{name}{end}": computed(lambda part=part: part)
        for name, estimate in estimates.items()
        for end, part in zip(("", "_low", "_high"), estimate, strict=True)
    }
