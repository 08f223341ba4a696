"""Search all combinations of attributes for the segments that are surely worse off."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import combinations
from operator import or_
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from polars_wroc.groups.categories import ATTRIBUTE, CROSSED, SEGMENT, read_attributes
from polars_wroc.groups.comparisons import (
    CALIBRATION,
    COMPARABLE,
    COMPARISON_SCHEMA,
    DIFFERENT,
    PLACE,
    TARGET,
    comparison_table,
    score_name,
)
from polars_wroc.groups.segment_tests import (
    MOST_EXACT,
    Array,
    computed,
    exact_tail,
    normal_tail,
    rate_limits,
    student_tail,
    tail_quantiles,
    tails,
)
from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import (
    CLUSTER,
    MISSING,
    OVERALL,
    SCORE,
    STRATUM,
    WEIGHT,
    ZERO_LABEL,
    IntoColumn,
    IntoWeight,
)
from polars_wroc.inputs.decisions import Favorable, check_favorable, score_or_decisions
from polars_wroc.inputs.designs import FRACTION, UNITS, Design, Lonely, SurveyDesign, read_design
from polars_wroc.inputs.frames import read_rows, require_groups
from polars_wroc.inputs.metric import Metric, Worse
from polars_wroc.inputs.rows import IntoColumns, Rows, RowSource, read_source
from polars_wroc.metrics.mean_losses import LossesOfRows
from polars_wroc.metrics.registry import LOSSES
from polars_wroc.plans.queries import (
    FrameT,
    collect,
    is_eager,
    join_on_keys,
    like_input,
    require_one_negative_label,
)
from polars_wroc.stats.difference_tests import adjusted
from polars_wroc.stats.distributions import two_sided_p_value
from polars_wroc.stats.proportions import (
    EQUAL_WEIGHTS,
    Estimate,
    difference_limits,
    ratio_limits,
    reported_ratio,
)
from polars_wroc.thresholds.registry import AUDIT_RATES, RateMetric
from polars_wroc.thresholds.rules import Threshold, read_threshold
from polars_wroc.thresholds.search import common_threshold, is_selected, rows_at

_IN_THE_LARGE = "calibration_in_the_large"
SEARCHED: dict[str, Metric] = {
    **AUDIT_RATES,
    **{name: COMPARABLE[name] for name in LOSSES},
    _IN_THE_LARGE: CALIBRATION[_IN_THE_LARGE],
}
SEARCH_COLUMNS = {"depth": pl.Int64, "n_examined": pl.Int64, "explained_by": pl.String}
_MOST_SEGMENTS = 100_000
# Of a segment in a sample of clusters, or of weighted calibration, to be examined.
_FEWEST_CLUSTERS, _FEWEST_EVENTS = 10, 5
# In large samples the exact test of rates decides where a segment is so far from the others.
_FAR = 2.0
_ZEROS, _MINUSES = "__zeros", "__minuses"


def _sums(weights: tuple[pl.Expr, ...], values: Mapping[str, pl.Expr]) -> dict[str, pl.Expr]:
    """Add up the powers of weights, and named values."""
    named = {f"b{power}": weight for power, weight in enumerate(weights, 1)}
    return {name: value.sum() for name, value in (named | dict(values)).items()}


def cells_of(rows: Rows, metric: Metric, choice: Any) -> pl.LazyFrame:
    """Add up the rows of each combination of values: all that the search needs of them.

    Each has the number of rows in the base ``n``, the sums of powers of their weights ``b1`` to
    ``b3``, and that of the weighted values ``x1``; others as their variances need.
    """
    weight = pl.col(WEIGHT).cast(pl.Float64)
    known, positive = weight.is_not_null(), weight > 0
    powers = (weight.abs(), rows.signed_squares.abs(), rows.signed_cubes.abs())
    w, w2, w3 = (power.cast(pl.Float64) for power in powers)
    if isinstance(metric, RateMetric):
        frame = rows_at(rows, common_threshold(rows, choice))
        chosen = is_selected()
        cells = {
            "tp": positive & chosen,
            "fp": ~positive & chosen,
            "fn": positive & ~chosen,
            "tn": ~positive & ~chosen,
        }
        base, hit = (
            reduce(or_, (cells[name] for name in names)) for names in (metric.cells, metric.counted)
        )
        if len(metric.cells) == len(cells):
            base = known
        inside = tuple(pl.when(base).then(power).otherwise(0.0) for power in (w, w2, w3))
        sums = _sums(inside, {"x1": pl.when(hit).then(w).otherwise(0.0)})
    elif metric.name == _IN_THE_LARGE:
        rows.require_scores(f"metric={metric.name!r}")
        frame, base, score = rows.as_probabilities().frame, known, pl.col(SCORE)
        spread = score * (1 - score)
        excess = score - positive.cast(pl.Float64)
        values = {"x1": w * excess, "p1": w * score, "q2": w2 * spread}
        sums = _sums((w, w2), values | {"q3": w3 * spread * (1 - 2 * score)})
    else:
        losses = LossesOfRows.of(rows)
        frame, base, (of_positive, of_negative) = losses.rows.frame, known, losses.values[metric.name]
        loss = pl.when(positive).then(of_positive).otherwise(of_negative)
        values = {f"x{power}": w * loss**power for power in (1, 2, 3)}
        values |= {f"c{power}": w2 * loss**power for power in (1, 2)}
        sums = _sums((w, w2, w3), values)
    sums = {"n": rows.count_where(base)} | sums
    if ZERO_LABEL in rows.frame.collect_schema():
        negative = weight < 0
        sums[_ZEROS] = (negative & pl.col(ZERO_LABEL)).any()
        sums[_MINUSES] = (negative & ~pl.col(ZERO_LABEL)).any()
    design = rows.design
    if not isinstance(design, SurveyDesign):
        return frame.group_by(rows.keys).agg(**sums)
    # A cell then has the rows of one sampling unit.
    cells_of_units = frame.group_by(*rows.keys, STRATUM, CLUSTER).agg(**sums)
    return join_on_keys(cells_of_units, design.strata, [STRATUM])


class _Segments:
    """All segments of up to so many conditions with enough rows, as sums of cells.

    They are in the order of the combinations of attributes. Those that are ``examined`` have enough
    rows outside too, and fewer than the segment without one of their conditions.
    """

    def __init__(self, codes: Sequence[Array], n: Array, depth: int, min_rows: int) -> None:
        self._places: dict[tuple[int, ...], NDArray[np.int64]] = {(): np.zeros(n.size, np.int64)}
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
                    raise ValueError(msg)
        del self._places[()]
        # One of the cells of each segment.
        self.cell = np.concatenate(cells)
        self.examined = np.concatenate(examined)

    def _divided(
        self, parent: tuple[int, ...], code: Array, n: Array, min_rows: int
    ) -> tuple[NDArray[np.int64], Array, NDArray[np.int64]]:
        """Divide segments by one more attribute: the place of each cell, sizes, and a cell."""
        inside = np.flatnonzero(self._places[parent] >= 0)
        numbers = self._places[parent][inside] * (code.max(initial=0) + 1) + code[inside]
        _, first, numbers = np.unique(numbers, return_index=True, return_inverse=True)
        size = np.bincount(numbers, n[inside], minlength=first.size)
        large = size >= min_rows
        place = np.full(n.size, -1)
        place[inside] = np.where(large, np.cumsum(large) - 1, -1)[numbers]
        return place, size[large], inside[first[large]]

    def _by_combination(self) -> Iterator[tuple[slice, NDArray[np.int64]]]:
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
        return np.logical_and.reduce([*held])

    def units(
        self, unit: NDArray[np.int64], values: Array, share: Array, factor: Array
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
        return self.excess / np.sqrt(self.variance)


@dataclass(frozen=True)
class Search:
    """How segments are compared with all other rows."""

    metric: Metric
    worse: Worse
    keys: Sequence[str]
    names: Sequence[str]
    depth: int
    min_rows: int
    level: float
    top: int
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
        if _ZEROS in cells.columns:
            mixed = (bool(cells[name].any()) for name in (_ZEROS, _MINUSES))
            require_one_negative_label(**dict(zip(("zeros", "minuses"), mixed, strict=True)))
        self.search = search
        self.is_rate = isinstance(search.metric, RateMetric)
        self.in_the_large = search.metric.name == _IN_THE_LARGE
        # The order of cells decides the last digits of sums.
        designed = [name for name in (STRATUM, CLUSTER) if name in cells.columns]
        cells = cells.sort([*search.keys, *designed])
        self.texts = [cells[key].cast(pl.String) for key in search.keys]
        self.codes = [
            np.unique(text.fill_null("").to_numpy(), return_inverse=True)[1] * 2
            + text.is_null().to_numpy()
            for text in self.texts
        ]
        held = [name for name in cells.columns if len(name) == 2 or name == "n"]
        self.values: dict[str, Array] = {name: cells[name].to_numpy() * 1.0 for name in held}
        if self.is_rate:
            self.values |= dict.fromkeys(("x2", "x3"), self.values["x1"])
        self.designed = bool(designed)
        if designed:
            self._read_units(cells)
        options = search.depth, search.min_rows
        self.segments = _Segments(self.codes, self.values["n"], *options)
        self.all = self._tested(None)
        self.examined = self._examined()

    def _read_units(self, cells: pl.DataFrame) -> None:
        """Number the sampling units and strata, with the factors of their squared totals."""
        unit = cells.select(pl.struct(STRATUM, CLUSTER).rank("dense") - 1).to_series()
        stratum = cells[STRATUM].fill_null(pl.lit(None)).rank("dense").fill_null(0)
        self.unit, self.stratum = unit.to_numpy().astype(int), stratum.to_numpy().astype(int)
        units, fraction = cells[UNITS].to_numpy(), cells[FRACTION].to_numpy()
        alone = cells.filter(pl.col(UNITS) == 1)[STRATUM]
        if self.search.lonely != "certainty" and not alone.is_empty():
            msg = (
                "`design` must have two or more sampling units in each stratum, or "
                f"lonely='certainty'; found one in stratum {alone[0]}"
            )
            raise ValueError(msg)
        factor = np.where(units > 1, (1 - fraction) * units / np.maximum(units - 1, 1), 0.0)
        self.factors = []
        for each, values in ((self.unit, factor), (self.stratum, factor / units)):
            of = np.zeros(each.max(initial=0) + 1)
            of[each] = values
            self.factors.append(of)

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
            return (1 - share) ** power * own[name] + (-share) ** power * rest

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
        if self.designed:
            by_design, df = self._by_design(values["x1"] - mean * values["b1"], share, values["n"])
            variance = np.maximum(variance, by_design)
        excess = own["x1"] - mean * own["b1"]
        return _Test(own, whole, share, excess, variance, plain, skewness, least, df)

    def _by_design(self, values: Array, share: Array, n: Array) -> tuple[Array, Array]:
        """Compute the variances of the design, and their degrees of freedom."""
        parts = zip((self.unit, self.stratum), self.factors, strict=True)
        (units, _), (strata, _) = (
            self.segments.units(each, values, share, factor) for each, factor in parts
        )
        counts = [
            self.segments.units(each, n, share, np.ones(factor.size))[1]
            for each, factor in zip((self.unit, self.stratum), self.factors, strict=True)
        ]
        return units - strata, counts[0] - counts[1]

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
        upper, lower = tails(z, skewness, least)
        tail = np.minimum(upper, lower) if self.is_rate or self.in_the_large else upper
        tail = np.minimum(tail, 0.5)
        if test.df is not None:
            tail = student_tail(tail, test.df[chosen])
        elif self.is_rate and self._equal_weights():
            unit = test.whole["b1"] / test.whole["n"]
            variance = test.plain[chosen] / unit**2
            exact = (abs(z) > _FAR) & (variance <= MOST_EXACT)
            rows, both = test.own["n"][chosen][exact], test.own["x1"][chosen][exact] / unit
            events, total = np.full_like(rows, test.whole["x1"] / unit), test.whole["n"]
            low = z[exact] < 0
            both, events = np.where(low, rows - both, both), np.where(low, total - events, events)
            total = np.full_like(rows, total)
            tail[exact] = exact_tail(np.round(both), rows, np.round(events), total)
        return np.minimum(2 * tail, 1.0)

    def _equal_weights(self) -> bool:
        whole = self.all.whole
        return bool(abs(whole["b2"] * whole["n"] / whole["b1"] ** 2 - 1) < EQUAL_WEIGHTS)

    def limits(self, chosen: NDArray[np.int64]) -> dict[str, Array]:
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
            within, without = (self._stays(part) for part in (inside, ~inside)) if left else ((), ())
            conditions = self._conditions(best)
            for other in left:
                if not (within if conditions <= self._conditions(other) else without)[other]:
                    explained[other] = best
            left = [other for other in left if other not in explained]
        kept = (number for number in ranked if number in explained)
        redundant = self.search.redundant
        return {number: explained[number] for number in kept if redundant or explained[number] is None}

    def _conditions(self, number: int) -> set[tuple[int, int]]:
        cell = self.segments.cell[number]
        return {(of, int(self.codes[of][cell])) for of in self.segments.conditions[number]}

    def _stays(self, inside: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Say which segments are worse in some cells too, by a test that is not adjusted."""
        test, least = self._tested(inside), self.search.min_rows
        sides = {"lower": test.z < 0, "higher": test.z > 0, "either": np.sign(test.z) != 0}
        if self.search.worse == "either":
            sides["either"] = np.sign(test.z) == np.sign(self.all.z)
        p_value = computed(two_sided_p_value, np.nan_to_num(test.z))
        if test.df is not None:
            p_value = 2 * student_tail(np.minimum(p_value / 2, 0.5), np.maximum(test.df, 1.0))
        enough = (test.own["n"] >= least) & (test.whole["n"] - test.own["n"] >= least)
        stays: NDArray[np.bool_] = sides[self.search.worse] & (p_value <= 1 - self.search.level)
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
        test = self.all
        whole = test.whole["x1"] / test.whole["b1"] if test.whole["b1"] > 0 else None
        common = {"metric": self.search.metric.name, "n_examined": int(self.examined.sum())}
        rows: list[dict[str, Any]] = [
            {ATTRIBUTE: OVERALL, SEGMENT: OVERALL, "n": test.whole["n"], "value": whole, "depth": 0}
        ]
        by_number = {row["number"]: row for row in found.iter_rows(named=True)}
        for number, by in shown.items():
            attribute, segment = self.named(number)
            own = {name: each[number] for name, each in test.own.items()}
            row = {ATTRIBUTE: attribute, SEGMENT: segment, "n": own["n"]}
            row |= {"value": own["x1"] / own["b1"], "depth": len(self.segments.conditions[number])}
            row |= {"reference": TARGET, "reference_value": 0.0}
            if not self.in_the_large:
                rest = {name: test.whole[name] - each for name, each in own.items()}
                row |= {"reference": "rest", "reference_value": rest["x1"] / rest["b1"]}
                row["n_reference"] = int(rest["n"])
            row |= by_number[number] | {"verdict": DIFFERENT}
            if by is not None:
                row["explained_by"] = " = ".join(each or MISSING for each in self.named(by))
            rows.append(row)
        for place, row in enumerate(rows):
            row |= common | {PLACE: place, "n": int(row["n"])}
        return pl.DataFrame(rows, schema=self.search.schema)


def _limits_of_rates(
    own: Mapping[str, Array], rest: Mapping[str, Array], tail: Array, effect: Array
) -> dict[str, Array]:
    """Combine the limits of rates in segments and in all other rows."""
    rates, sides = [], []
    for side in (own, rest):
        rate = side["x1"] / side["b1"]
        limits = rate_limits(rate, (side["b1"], side["b2"], side["b3"]), tail, effect)
        rates.append(rate)
        sides += [rate, *limits]

    def combined(*columns: pl.Expr) -> tuple[Estimate, Estimate]:
        one, other = Estimate(*columns[:3]), Estimate(*columns[3:])
        gap = Estimate(one.value - other.value, *difference_limits(one, other))
        ratio = Estimate(one.value / other.value, *ratio_limits(one, other))
        return gap, reported_ratio(ratio, other.value)

    named = {"value_low": sides[1], "value_high": sides[2]}
    for number, name in enumerate(("gap", "ratio")):
        for part, end in enumerate(("", "_low", "_high")):
            named[name + end] = computed(
                lambda *columns, n=number, p=part: combined(*columns)[n][p], *sides
            )
    return named


def worst_segments(
    frame: FrameT,
    label: IntoColumn | None = None,
    score: IntoColumns | None = None,
    *,
    attributes: IntoColumns,
    metric: str = "tpr",
    threshold: Threshold | None = None,
    selected: IntoColumn | None = None,
    favorable: Favorable | None = None,
    depth: int = 3,
    weight: IntoWeight | None = None,
    pos_label: object = None,
    min_rows: int = 30,
    top: int = 20,
    redundant: bool = False,
    level: float = 0.95,
    design: Design | None = None,
) -> FrameT:
    """Search all combinations of attributes for segments that are surely worse than the rest.

    Exploration: segments that nobody named before. Each combination of up to ``depth`` values of
    different attributes is compared with all other rows, and what is found allows for the search.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, pos_label
        As for `group_gaps`, but one score. The ``selection_rate`` needs no label.
    attributes
        Two or more columns or expressions; null is a value. Cut numbers by `ranges` before looking
        at outcomes: attributes and cuts that are chosen after looking are a search of their own.
    metric
        ``"selection_rate", "tpr", "fpr", "ppv", "npv"`` or ``"accuracy"`` of decisions; of a
        score that is a probability ``"brier_score", "log_loss"`` or
        ``"calibration_in_the_large"``. Several searches of the same rows share no error: divide
        ``1 - level`` by their number.
    threshold, selected, favorable
        Decisions, and which one is good for a person, as for `audit`: it says whether a lower or a
        higher rate is worse. With ``"neither"``, and of calibration, both are.
    depth
        Most conditions of a segment.
    min_rows
        Fewest rows of the metric's denominator in a segment and outside it.
    top
        Most segments that are returned, besides those that they explain.
    redundant
        Whether to return segments that one with a higher rank explains, too.
    level
        Confidence level: 1 less the probability that anything is found where all segments are
        alike.
    design
        A column of clusters or a `Survey`: see `summary`. Segments with rows in fewer than ten
        clusters are not examined. ``lonely`` must be ``"certainty"`` where a stratum has one unit.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        The comparison table of `group_gaps`: first a row of all rows, whose ``attribute`` and
        ``segment`` are ``"overall"``, then a row for each segment that is surely worse, the one
        with the largest limit of the gap nearest 0 first; none if none is. Segments are named as
        crossed attributes are: ``"race × sex"`` and ``"black, f"``.

        - ``value_low, value_high, gap_low, gap_high, ratio_low, ratio_high`` hold for all examined
          segments at once, and so for those that were picked. Null: value limits of losses, and
          ratios of other metrics than rates.
        - ``reference`` is ``"rest"``: all other rows; of calibration ``"target"``: 0.
        - ``p_value, p_adjusted``: of the test, alone and by Holm's method for all segments that
          were examined; ``verdict`` is ``"different"``.
        - ``depth`` (Int64): number of conditions.
        - ``n_examined`` (Int64): how many segments were examined.
        - ``explained_by`` (String): with ``redundant``, the segment of a higher rank, as
          ``"race × sex = black, f"``, without whose rows this one is not surely worse, or within
          which it is not; null of others.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `group_gaps`; for several scores, replicate weights, and more than 100,000 segments
        to examine.

    Notes
    -----
    "Surely worse" means worse than the rest by at least the limit. It does not say that no other
    segment is worse, as one of few rows may be, nor why. Finding nothing says little with uneven
    weights or few clusters, where the test is cautious. Verdicts of an audit rest on attributes
    that were named before, never on this.

    One ``group_by`` of all attributes adds up cells, of which segments are sums: the cost hardly
    depends on the number of rows. A segment is examined if it has enough rows, whatever the
    outcomes, and differs from that without one of its conditions; so the number of tests is known
    before. The difference to the rest is divided by its standard error if all rows were alike, and
    compared with Pearson's distribution of type III, which has the skewness that the sum then has
    [1]_: the normal distribution finds differences in up to half of all searches where there are
    none, if events are rare. Unweighted rates far from the rest have the hypergeometric test with
    the mid-p [2]_. Of losses only higher ones are tested. In clusters the variance is the larger of
    that of rows and of clusters, with Student's t. Limits of rates are the rates that the
    same test would not reject at ``1 - level`` divided by the number of segments; those of gaps
    combine both. In simulations of alike segments, rare events, weights and clusters included, at
    most 4.4 % of searches found any.

    Segments overlap, so that one effect shows in many. From the top, a segment is left out if a
    simple test finds no difference without the rows of one above it (or, if it is part of
    that, within it). That is for reading, not a statement with an error rate.

    References
    ----------
    .. [1] Hall, P. (1992), The Bootstrap and Edgeworth Expansion, section 3.
    .. [2] Lancaster, H. O. (1961), J. Am. Stat. Assoc. 56, 223-234.
    .. [3] Holm, S. (1979), Scandinavian Journal of Statistics 6, 65-70.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> counts = {"f, old": (40, 20), "f, young": (60, 15), "m, old": (50, 27), "m, young": (50, 26)}
    >>> people = pl.DataFrame(
    ...     [
    ...         {"sex": name[0], "age": name[3:], "hired": number < hired}
    ...         for name, (rows, hired) in counts.items()
    ...         for number in range(rows)
    ...     ]
    ... )
    >>> table = wroc.worst_segments(
    ...     people,
    ...     attributes=["sex", "age"],
    ...     selected="hired",
    ...     metric="selection_rate",
    ...     favorable="selected",
    ... )
    >>> rounded = pl.col("value", "reference_value", "gap_high").round(3)
    >>> table.select("attribute", "segment", "n", rounded, "n_examined")
    """
    if metric not in SEARCHED:
        hint = arguments.did_you_mean(metric, SEARCHED)
        msg = f"`metric` must be one of {', '.join(SEARCHED)}; found {metric!r}{hint}"
        raise ValueError(msg)
    chosen, choice = SEARCHED[metric], read_threshold(threshold, selected)
    of_decisions = isinstance(chosen, RateMetric)
    if of_decisions and choice is None:
        msg = f"`metric` must come with a `threshold` or `selected` for {metric}; found neither"
        raise ValueError(msg)
    if not of_decisions and choice is not None:
        msg = f"`metric` must be a rate with decisions; found {metric!r}"
        raise ValueError(msg)
    if label is None and metric != "selection_rate":
        msg = f"`label` must be given for {metric}; found None"
        raise ValueError(msg)
    check_favorable(favorable, threshold, decided=of_decisions)
    require_groups(attributes, called="attributes")
    level, survey = arguments.level(level), read_design(design)
    if survey.replicate_weights is not None:
        msg = "`design` must be clusters or a survey for a search; found replicate weights"
        raise ValueError(msg)
    arguments.flag("redundant", redundant)
    numbers = {"depth": depth, "min_rows": min_rows, "top": top}
    numbers = {name: arguments.whole_number(name, n, low=1) for name, n in numbers.items()}
    source = read_source(frame)
    name = score_name(source, score)
    given = score_or_decisions(source, score, selected), weight, attributes, pos_label
    rows: Rows = read_rows(
        source, label, *given, survey=survey, selected=selected, called="attributes"
    )
    if rows.model_keys:
        msg = "`score` must be one column; found several"
        raise ValueError(msg)
    names = [division.attribute for division in read_attributes(rows, intersections=False)]
    worse: Worse = chosen.worse_if(favorable)
    if not of_decisions:
        worse = "higher" if chosen.better == "low" else "either"
    options = {"level": level, "redundant": redundant, "lonely": survey.survey.lonely, **numbers}
    search = Search(chosen, worse, rows.keys, names, **options)
    cells = cells_of(rows, chosen, choice)
    if is_eager(frame):
        table = search.table(collect(cells)).lazy()
    else:
        table = cells.map_batches(search.table, schema=search.schema)
    return like_input(frame, comparison_table(table, rows, name, [*SEARCH_COLUMNS]))
