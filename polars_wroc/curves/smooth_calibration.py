"""Smooth calibration curves: R's loess of the labels on the scores, with limits by resampling.

Only `require_loess` says that the library is missing, before anything is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from polars_wroc.inputs.columns import CLUSTER, ROW_COUNT, SCORE, STRATUM, WEIGHT
from polars_wroc.inputs.designs import FRACTION, UNITS, SurveyDesign
from polars_wroc.inputs.looks import Looks
from polars_wroc.inputs.rows import Rows
from polars_wroc.plans.queries import join_on_keys

# Distances of the curve from the scores: the mean, the median and the ninth decile.
SMOOTH = ("ici", "e50", "e90")
SMOOTH_COLUMNS = tuple(f"{name}{end}" for name in SMOOTH for end in ("", "_low", "_high"))
# The curve at a score, and its limits.
SMOOTH_RATES = ("smooth_rate", "smooth_rate_low", "smooth_rate_high")
_Array: TypeAlias = NDArray[Any]
# Of more scores those in a quantile of the weight become one point.
_MOST_POINTS = 1_000
# With fewer scores there is no quadratic in each neighborhood.
_FEWEST_POINTS = 8
# The options of R's loess, in each neighborhood a quadratic of so large a share of the points.
_OPTIONS = {"span": 0.75, "degree": 2}
_REPLICATES, _SEED = 200, 20_150
# The sampling unit of a row, with the number of units in its stratum.
_UNIT, _UNIT_PLACE = [STRATUM, CLUSTER, UNITS], "__place"


def smooth_errors(rows: Rows, level: float) -> pl.LazyFrame:
    """Compute `SMOOTH_COLUMNS` of each group, in a step that is no part of a plan."""
    complete = _complete(rows)
    schema = {key: complete.collect_schema()[key] for key in rows.keys}
    schema |= dict.fromkeys(SMOOTH_COLUMNS, pl.Float64())

    def errors(group: pl.DataFrame) -> list[list[float | None]]:
        return [_Points.of(group).errors(level)]

    return complete.map_batches(partial(_of_groups, rows.keys, schema, errors), schema=schema)


def with_smooth_rates(binned: pl.LazyFrame, rows: Rows, level: float) -> pl.LazyFrame:
    """Add `SMOOTH_RATES`, at the mean score of each bin of a group."""
    binned, complete = binned.cache(), _complete(rows)
    # The places at which the curve is wanted, which have no weight.
    places = binned.select(*rows.keys, "bin", pl.col("mean_score").alias(SCORE))
    schema = {**{key: complete.collect_schema()[key] for key in rows.keys}, "bin": pl.Int64()}
    schema |= dict.fromkeys(SMOOTH_RATES, pl.Float64())

    def rates(group: pl.DataFrame) -> list[list[float | None]]:
        held = pl.col(WEIGHT).is_not_null()
        at = group.filter(~held)
        numbers = _Points.of(group.filter(held)).rates(at[SCORE].to_numpy(), level)
        return [[number, *row] for number, row in zip(at["bin"], numbers, strict=True)]

    both = pl.concat([complete, places], how="diagonal")
    found = both.map_batches(partial(_of_groups, rows.keys, schema, rates), schema=schema)
    return join_on_keys(binned, found, [*rows.keys, "bin"])


def _complete(rows: Rows) -> pl.LazyFrame:
    """Rows with a label, score and weight, and their units by a design."""
    design, frame, units = rows.design, rows.frame, [] if rows.design is None else _UNIT
    if isinstance(design, SurveyDesign):
        lonely = (pl.col(UNITS) == 1) & (pl.col(FRACTION) < 1) & (design.lonely != "certainty")
        strata = design.strata.with_columns(pl.when(~lonely).then(UNITS).alias(UNITS))
        frame = join_on_keys(frame, strata, [STRATUM])
    elif design is not None:
        # There are no limits of a single unit.
        frame = frame.with_columns(pl.lit(0, pl.Int64).alias(name) for name in units)
    counts, held = rows.multiplicity.alias(ROW_COUNT), pl.col(WEIGHT).is_not_null()
    score = pl.col(SCORE).cast(pl.Float64)
    return frame.filter(held).select(*rows.keys, score, WEIGHT, counts, *units)


def require_loess(instead: str) -> None:
    """Raise without the library, and say what to do ``instead``."""
    try:
        import skmisc.loess  # noqa: F401, PLC0415  (an extra)
    except ImportError as error:
        msg = (
            "a smooth calibration curve needs scikit-misc: pip install 'polars-wroc[smooth]', "
            f"or {instead}"
        )
        raise ImportError(msg) from error


def _of_groups(
    keys: list[str],
    schema: dict[str, Any],
    compute: Callable[[pl.DataFrame], list[list[float | None]]],
    rows: pl.DataFrame,
) -> pl.DataFrame:
    """Compute the rows of each group."""
    # In one order, so that a seed gives the same draws.
    by = [name for name in (STRATUM, CLUSTER, SCORE, WEIGHT) if name in rows.columns]
    groups = rows.sort(by).group_by(keys, maintain_order=True) if keys else [((), rows.sort(by))]
    found = [[*key, *row] for key, group in groups for row in compute(group)]
    return pl.DataFrame(found, schema=schema, orient="row")


class _Curve(NamedTuple):
    """The smooth rate at each score, with the weight of the score."""

    scores: _Array
    weights: _Array
    rates: _Array


class _Points(NamedTuple):
    """Rows of a group, and the point of each: a score, or the mean of neighboring ones.

    A row is as many as ``counts`` says. By a design ``sampled`` has its stratum, sampling unit, and
    the number of units in the stratum, null where that is unknown to vary.
    """

    scores: _Array
    place: _Array
    weights: _Array
    positive: _Array
    counts: _Array
    sampled: pl.DataFrame | None

    @classmethod
    def of(cls, rows: pl.DataFrame) -> _Points:
        score, signed = (rows[name].cast(pl.Float64).to_numpy() for name in (SCORE, WEIGHT))
        weights = np.abs(signed)
        scores, place = np.unique(score, return_inverse=True)
        if len(scores) > _MOST_POINTS:
            total = np.bincount(place, weights).cumsum()
            bins = np.minimum(total / total[-1] * _MOST_POINTS, _MOST_POINTS - 1).astype(np.int64)
            place = np.unique(bins, return_inverse=True)[1][place]
            sums = np.bincount(place, weights)
            scores = np.bincount(place, weights * score) / sums
        sampled = rows.select(_UNIT) if UNITS in rows.columns else None
        return cls(scores, place, weights, signed > 0, rows[ROW_COUNT].to_numpy(), sampled)

    def errors(self, level: float) -> list[float | None]:
        """Return each of `SMOOTH` with its limits."""

        def distances(weights: _Array) -> _Array | None:
            curve = self._curve(weights)
            if curve is None:
                return None
            distance = np.abs(np.clip(curve.rates, 0, 1) - curve.scores)
            order, total = np.argsort(distance), curve.weights.sum()
            cumulated = curve.weights[order].cumsum() / total
            ends = [distance[order][np.searchsorted(cumulated, share)] for share in (0.5, 0.9)]
            return np.array([distance @ curve.weights / total, *ends])

        return [each for row in self._limited(distances, len(SMOOTH), level) for each in row]

    def rates(self, scores: _Array, level: float) -> list[list[float | None]]:
        """Return the rate at each of the ``scores``, with its limits."""

        def at_scores(weights: _Array) -> _Array | None:
            curve = self._curve(weights)
            if curve is None:
                return None
            rates: _Array = np.interp(scores, curve.scores, np.clip(curve.rates, 0, 1))
            return rates

        return self._limited(at_scores, len(scores), level)

    def _limited(
        self, of_weights: Callable[[_Array], _Array | None], number: int, level: float
    ) -> list[list[float | None]]:
        """Return values, of which there are so many, with limits by resampling."""
        values = of_weights(self.weights)
        if values is None or not np.isfinite(values).all():
            return [[None] * 3] * number
        ends: _Array = np.full((2, number), np.nan)
        drawn = [each for w in self._resampled() if (each := of_weights(w)) is not None]
        drawn = [each for each in drawn if np.isfinite(each).all()]
        # Drawn limits hold at one look.
        if len(drawn) > _REPLICATES // 2 and not isinstance(level, Looks):
            ends = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
        rows = zip(values, *ends, strict=True)
        return [[None if np.isnan(each) else float(each) for each in row] for row in rows]

    def _curve(self, weights: _Array) -> _Curve | None:
        """Fit the curve; None if there is none."""
        from skmisc.loess import loess  # noqa: PLC0415  (an extra)

        number = len(self.scores)
        whole = np.bincount(self.place, weights, number)
        held = np.flatnonzero(whole > 0)
        if len(held) < _FEWEST_POINTS:
            return None
        part = np.bincount(self.place, weights * self.positive, number)[held]
        x, whole = self.scores[held], whole[held]
        # The curve does not depend on the scale of the weights.
        fit = loess(x, part / whole, weights=whole / whole.mean(), **_OPTIONS)
        try:
            fit.fit()
        except ValueError:
            return None
        return _Curve(x, whole, fit.outputs.fitted_values)

    def _resampled(self) -> Iterator[_Array]:
        """Draw rows, or of each stratum one unit less than it has; yield the weights of rows."""
        random, size = np.random.default_rng(_SEED), self.counts
        of_row = np.arange(len(size))
        # The places of units, how many units a stratum has, and how many are drawn.
        strata = [(of_row, size.sum(), size.sum())]
        if self.sampled is not None:
            # Rows are sorted by their units.
            places = pl.struct(STRATUM, CLUSTER).rle_id().alias(_UNIT_PLACE)
            of_row = self.sampled.select(places)[_UNIT_PLACE].to_numpy()
            units = self.sampled.select(STRATUM, UNITS, places).unique(maintain_order=True)
            # Where nothing is drawn, or a single unit has all rows, values do not vary.
            if len(units) == 1 or units[UNITS].has_nulls() or units[UNITS].max() == 1:
                return
            size, strata = np.ones(len(units), np.int64), []
            for (_, number), some in units.group_by(STRATUM, UNITS, maintain_order=True):
                strata.append((some[_UNIT_PLACE].to_numpy(), number, max(number - 1, 1)))
        for _ in range(_REPLICATES):
            times = np.zeros(len(size))
            for inside, total, drawn in strata:
                # The others of the stratum have no rows of the group.
                others = total - size[inside].sum()
                shares = np.append(size[inside], others)[: None if others else -1] / total
                often = random.multinomial(drawn, shares)[: len(inside)]
                times[inside] = often * total / drawn / size[inside]
            yield self.weights * times[of_row]
