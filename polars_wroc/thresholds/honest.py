"""Rates at a chosen threshold, estimated for other rows than those that it was chosen on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import islice

import polars as pl

from polars_wroc.inputs.columns import CLUSTER, WEIGHT
from polars_wroc.inputs.rows import Rows
from polars_wroc.plans.by_keys import aggregate, join_on_keys
from polars_wroc.plans.collect import collect
from polars_wroc.ranking.cumulative_sums import NEGATIVES, POSITIVES, by_descending_score
from polars_wroc.ranking.curve import CELLS
from polars_wroc.ranking.walk_sums import REPLICATE
from polars_wroc.stats.resampling import in_batches, random_multiplier, seeds
from polars_wroc.thresholds.confusion import Confusion
from polars_wroc.thresholds.confusion_metrics import HONEST_RATES, honest_rate
from polars_wroc.thresholds.rules import Rule
from polars_wroc.thresholds.search import (
    choose_threshold,
    common_threshold,
    confusion_at,
    thresholds_of,
)

FOLDS = 10
# Rows of all resamples that are in memory at the same time.
_ROWS_AT_ONCE = 1_000_000
_POSITIVE, _DRAWN, _FACTOR, _SIGN = "__positive", "__drawn", "__factor", "__sign"
_OWN = "__own"


@dataclass(frozen=True)
class Choice:
    """A rule that chooses a threshold for each group, or a common one."""

    rule: Rule
    common: bool

    def thresholds(self, rows: Rows) -> pl.LazyFrame:
        """Return the thresholds for `confusion_at`."""
        if self.common:
            return common_threshold(rows, self.rule)
        return thresholds_of(choose_threshold(rows, self.rule), rows.keys)


@dataclass(frozen=True)
class HonestRates:
    """Estimates of `HONEST_RATES` for other rows, from rows that are a `CLUSTER` each.

    ``height`` is the number of rows of a DataFrame, or None for a plan.
    """

    rows: Rows
    choice: Choice
    seed: int
    height: int | None

    def by_bootstrap(self, cells: pl.LazyFrame, resamples: int) -> pl.LazyFrame:
        """Subtract the mean optimism in resamples from the rates of these ``cells``."""
        rows, draws = self._sorted_rows(), [*enumerate(islice(seeds(self.seed), resamples))]
        at_once = resamples if self.height is None else max(_ROWS_AT_ONCE // (self.height + 1), 1)
        tables = [
            self._differences(_resampled(rows, draws[first : first + at_once]))
            for first in range(0, resamples, at_once)
        ]
        lazily = self.height is None
        together = pl.concat(tables) if lazily else in_batches(tables, 1, "batches of resamples")
        # In their order, so that a seed repeats all digits.
        optimism = {name: pl.col(name).sort_by(REPLICATE).mean() for name in HONEST_RATES}
        means = aggregate(together, rows.keys, optimism)
        return self._joined(
            cells, means, {name: pl.col(name) for name in HONEST_RATES}
        ).with_columns(
            (rate - pl.col(honest_rate(name))).clip(0.0, 1.0).alias(honest_rate(name))
            for name, rate in _rates().items()
        )

    def by_crossfit(self, cells: pl.LazyFrame) -> pl.LazyFrame:
        """Add the rates in each fold at the threshold that is chosen on the other folds."""
        rows = self._sorted_rows()
        fold = (pl.col(CLUSTER).hash(next(seeds(self.seed))) % FOLDS).cast(pl.Int64)
        left_out = rows.frame.with_columns(fold.alias(REPLICATE))
        # Not by a join, which does not keep the order of the rows.
        others = pl.concat(
            rows.frame.filter(fold != number).with_columns(
                pl.lit(number).cast(pl.Int64).alias(REPLICATE)
            )
            for number in range(FOLDS)
        )
        thresholds = self.choice.thresholds(_replicated(rows, others))
        in_folds = confusion_at(_replicated(rows, left_out), thresholds)
        sums = {
            name: pl.col(name).sort_by(REPLICATE).sum() for name in (*CELLS, POSITIVES, NEGATIVES)
        }
        return self._joined(cells, aggregate(in_folds, rows.keys, sums), _rates())

    def _sorted_rows(self) -> Rows:
        ordered = by_descending_score(self.rows)
        ordered = ordered.cache() if self.height is None else collect(ordered).lazy()
        # Sorted once: the compiled engine would sort each replicate.
        return replace(self.rows, frame=ordered, in_order=True, compiled=None)

    def _differences(self, resampled: Rows) -> pl.LazyFrame:
        """Return the rates on each resample minus those on the data, both at its threshold."""
        thresholds = self.choice.thresholds(resampled).cache()
        own = resampled.frame.with_columns(pl.col(_OWN).alias(WEIGHT))
        both = pl.concat(
            confusion_at(rows, thresholds).with_columns(pl.lit(sign).alias(_SIGN))
            for rows, sign in ((resampled, 1.0), (replace(resampled, frame=own), -1.0))
        ).with_columns(**_rates())
        differences: dict[str, pl.Expr] = {
            name: pl.when(pl.col(name).null_count() == 0).then((pl.col(name) * pl.col(_SIGN)).sum())
            for name in HONEST_RATES
        }
        return aggregate(both, resampled.keys, differences)

    def _joined(
        self, cells: pl.LazyFrame, table: pl.LazyFrame, rates: dict[str, pl.Expr]
    ) -> pl.LazyFrame:
        keys = self.rows.keys
        named = {honest_rate(name): rate for name, rate in rates.items()}
        return join_on_keys(cells, table.select(*keys, **named), keys)


def _replicated(rows: Rows, frame: pl.LazyFrame) -> Rows:
    """Group rows by replicate too, for a threshold in each."""
    keys, models = ([*keys, REPLICATE] for keys in (rows.keys, rows.model_keys))
    return replace(rows, frame=frame, keys=keys, model_keys=models)


def _resampled(rows: Rows, draws: Iterable[tuple[int, int]]) -> Rows:
    """Draw rows of each class of each group with replacement; the class keeps its weight.

    ``draws`` are the numbers of replicates with their seeds. Where no row of a class is drawn, the
    group is left out.
    """
    weight, drawn, factor = pl.col(WEIGHT), pl.col(_DRAWN), pl.col(_FACTOR)
    frames = [
        rows.frame.with_columns(
            (weight * random_multiplier("poisson", seed)).alias(_DRAWN),
            pl.lit(number, pl.Int64).alias(REPLICATE),
        )
        for number, seed in draws
    ]
    replicated = _replicated(rows, pl.concat(frames).with_columns((weight > 0).alias(_POSITIVE)))
    of_class = [*replicated.keys, _POSITIVE]
    own_total, total = (each.sum().over(of_class) for each in (weight, drawn))
    frame = replicated.frame.with_columns((own_total / total).alias(_FACTOR))
    whole = (factor.is_finite() | weight.is_null()).all().over(replicated.keys)
    frame = frame.with_columns(
        pl.when(whole).then(drawn * factor).alias(WEIGHT), weight.alias(_OWN)
    )
    return replace(replicated, frame=frame.drop(CLUSTER, _POSITIVE, _DRAWN, _FACTOR).cache())


def _rates() -> dict[str, pl.Expr]:
    """Compute `HONEST_RATES` from columns of cells."""
    weights = (pl.col(name) for name in (*CELLS, POSITIVES, NEGATIVES))
    confusion = Confusion(pl.lit(None), *weights)
    return {name: getattr(confusion, name) for name in HONEST_RATES}
