"""Rates at a chosen threshold, estimated for other rows than those that it was chosen on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import islice

import polars as pl

from polars_wroc.inputs.columns import CLUSTER, SCORE, WEIGHT
from polars_wroc.inputs.rows import Rows, class_weights
from polars_wroc.plans.by_keys import aggregate, join_on_keys, over
from polars_wroc.plans.collect import collect
from polars_wroc.plans.steps import Fields, as_struct
from polars_wroc.ranking.cumulative_sums import (
    FP,
    NEGATIVES,
    POSITIVES,
    TP,
    by_descending_score,
    window_sums,
    with_window_sums,
)
from polars_wroc.ranking.curve import CELLS, totals, with_marks
from polars_wroc.ranking.walk_sums import REPLICATE
from polars_wroc.stats.resampling import in_batches, random_multiplier, seeds
from polars_wroc.thresholds.confusion import Confusion
from polars_wroc.thresholds.confusion_metrics import HONEST_RATES, honest_rate, weights_in_cells
from polars_wroc.thresholds.rules import Point, Rule
from polars_wroc.thresholds.search import (
    CHOSEN,
    choose_threshold,
    common_threshold,
    confusion_at,
    thresholds_of,
    with_best,
)

FOLDS = 10
# Rows of all resamples that are in memory at the same time.
_ROWS_AT_ONCE = 1_000_000
_GROUP, _CURVE, _OWN, _WHOLE = "__group", "__curve_number", "__own", "__whole"
_PLACE, _SELECTED = "__place", "__selected"
_STRIDE = 2**32


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
        rows, draws = self._numbered_rows(), [*enumerate(islice(seeds(self.seed), resamples))]
        at_once = resamples if self.height is None else max(_ROWS_AT_ONCE // (self.height + 1), 1)
        tables = [
            self._differences(_resampled(rows, draws[first : first + at_once]))
            for first in range(0, resamples, at_once)
        ]
        lazily = self.height is None
        together = pl.concat(tables) if lazily else in_batches(tables, 1, "batches of resamples")
        number = pl.col(_GROUP)
        optimism = together.group_by(number % _STRIDE).agg(
            # In their order, so that a seed repeats all digits.
            pl.col(HONEST_RATES).sort_by(number).mean()
        )
        keys = rows.group_by(_GROUP).agg(pl.col(self.rows.keys).first())
        means = optimism.join(keys, on=_GROUP)
        return self._joined(
            cells, means, {name: pl.col(name) for name in HONEST_RATES}
        ).with_columns(
            (rate - pl.col(honest_rate(name))).clip(0.0, 1.0).alias(honest_rate(name))
            for name, rate in _rates(pl.col).items()
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
        return self._joined(cells, aggregate(in_folds, rows.keys, sums), _rates(pl.col))

    def _sorted_rows(self) -> Rows:
        ordered = by_descending_score(self.rows)
        ordered = ordered.cache() if self.height is None else collect(ordered).lazy()
        # Sorted once: the compiled engine would sort each replicate.
        return replace(self.rows, frame=ordered, in_order=True, compiled=None)

    def _numbered_rows(self) -> pl.LazyFrame:
        """Sort the rows by curve and descending score, and number groups and curves.

        Windows over one sorted number are several times faster than over keys and replicate.
        """
        rows = self.rows
        weight = rows.observations.signed_weight.fill_null(0).cast(pl.Float64)
        number = pl.col(_PLACE).first()
        curve = rows.model_keys if self.choice.common else rows.keys
        marked = with_marks(rows, rows.frame.with_columns(weight.alias(WEIGHT))).with_row_index(_PLACE)
        numbered = marked.with_columns(
            over(number, rows.keys).alias(_GROUP), over(number, curve).alias(_CURVE)
        ).sort(_CURVE, SCORE, descending=[False, True], nulls_last=False, maintain_order=True)
        return numbered.cache() if self.height is None else collect(numbered).lazy()

    def _differences(self, resampled: pl.LazyFrame) -> pl.LazyFrame:
        """Return the rates on each resample minus those on the data, both at its threshold."""
        sums = window_sums()
        # Within a tie there is no point of the curve.
        points = {name: pl.when(sums.ends_tie).then(sum_) for name, sum_ in ((TP, sums.tp), (FP, sums.fp))}
        placed = with_window_sums(resampled, [_CURVE], pl.col(WEIGHT), points)
        point = Point(pl.col(TP), pl.col(FP), *totals())
        best = with_best(placed, [_CURVE], self.choice.rule, point).with_row_index(_PLACE)
        # Of the best the highest threshold.
        last = pl.when(CHOSEN).then(_PLACE).min().over(_CURVE)
        cells = {
            drawn_cell: value
            for weight, name in ((WEIGHT, _on_resample), (_OWN, str))
            for drawn_cell, value in weights_in_cells(
                class_weights(pl.col(weight)), pl.col(_SELECTED), [name(cell) for cell in CELLS]
            ).items()
        }
        known = pl.col(_WHOLE).all() & pl.col(_SELECTED).is_not_null().all()
        summed = best.with_columns((pl.col(_PLACE) <= last).alias(_SELECTED)).group_by(_GROUP).agg(
            pl.when(known).then(value.sum()).alias(name) for name, value in cells.items()
        )
        here, there = (_rates(field) for field in (lambda c: pl.col(_on_resample(c)), pl.col))
        return summed.select(_GROUP, *((here[name] - there[name]).alias(name) for name in HONEST_RATES))

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


def _resampled(rows: pl.LazyFrame, draws: Iterable[tuple[int, int]]) -> pl.LazyFrame:
    """Draw rows of each class of each group with replacement; the class keeps its weight.

    ``draws`` are the numbers of replicates with their seeds. Where no row of a class is drawn, the
    group is left out.
    """
    weight = pl.col(WEIGHT)
    drawn = pl.concat(
        rows.select(
            SCORE,
            weight.alias(_OWN),
            (weight * random_multiplier("poisson", seed)).fill_null(0.0).alias(WEIGHT),
            (pl.col(_GROUP, _CURVE).cast(pl.Int64) + number * _STRIDE),
        )
        for number, seed in draws
    )
    totals_of = [
        total.sum()
        for column in (_OWN, WEIGHT)
        for total in class_weights(pl.col(column))
    ]
    own_pos, own_neg, pos, neg = totals_of
    factors = as_struct({"pos":own_pos/pos,"neg":own_neg/neg,"whole":((own_pos==0)|(own_pos/pos).is_finite())&((own_neg==0)|(own_neg/neg).is_finite())}).over(_GROUP).struct.unnest()
    scaled = drawn.with_columns(factors)
    return scaled.select(SCORE,_OWN,_GROUP,_CURVE,
        (pl.when("whole").then(weight*pl.when(weight>0).then("pos").otherwise("neg")).otherwise(0.0).fill_nan(0.0)).alias(WEIGHT), pl.col("whole").alias(_WHOLE))


def _on_resample(cell: str) -> str:
    return f"__drawn_{cell}"


def _rates(field: Fields) -> dict[str, pl.Expr]:
    """Compute `HONEST_RATES` from columns of cells."""
    tp, fp, fn, tn = (field(name) for name in CELLS)
    confusion = Confusion(pl.lit(None), tp, fp, fn, tn, tp + fn, fp + tn)
    return {name: getattr(confusion, name) for name in HONEST_RATES}
