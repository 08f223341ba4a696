"""Changes of metrics if a new score or its decisions replace an old one on the same rows.

A rate changes by two shares of rows: rows that become events, and rows that no longer are. A mean
changes by the mean change of the rows. Differences of AUCs and of means get two pseudo-rows that
change as much as a row can, one up and one down: if few rows change, the variance of the rows alone
would say that none can.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from polars_wroc.arrays import Array, Mask
from polars_wroc.inputs.metric import SampleSize
from polars_wroc.metrics.paired_sums import (
    NEW_SCORE,
    OLD_SCORE,
    PairedCells,
    PairedSegments,
    ValueChanges,
)
from polars_wroc.metrics.registry import LOSSES, ROC_AUC
from polars_wroc.ranking.curve import CELLS
from polars_wroc.stats import means
from polars_wroc.stats.contrasts import Contrast
from polars_wroc.stats.estimates import Limits
from polars_wroc.stats.levels import Level
from polars_wroc.stats.rates import Count
from polars_wroc.thresholds.registry import RATES, THRESHOLD_METRICS, RateMetric

_AUC, _NET_BENEFIT = ROC_AUC.column, THRESHOLD_METRICS["net_benefit"].name
# Rates whose rows do not depend on the decisions, and shares of rows with the same decision.
RATES_OF_ROWS = ("selection_rate", "tpr", "fpr", "accuracy")
RATES_OF_DECISIONS = ("ppv", "npv")
METRICS_OF_DECISIONS = (*RATES_OF_ROWS, *RATES_OF_DECISIONS, _NET_BENEFIT)
RELEASE_METRICS = (_AUC, *METRICS_OF_DECISIONS, *LOSSES)
_BOUNDED_LOSS = "brier_score"


@dataclass(frozen=True)
class ChangedRows:
    """The rows that contribute more to a metric with the new score, and those that contribute less.

    ``whole`` are the rows in the denominator of the metric, with either score.
    """

    gained: Count
    lost: Count
    whole: Count

    @property
    def number(self) -> Array:
        """The number of rows that change."""
        return self.gained.rows + self.lost.rows

    @property
    def share(self) -> Array:
        """The share of the weight in rows that change."""
        return (self.gained.weight + self.lost.weight) / self.whole.weight


@dataclass(frozen=True)
class Change:
    """A metric of segments with the old and with the new score, and the difference of both.

    ``n_old`` and ``n_new`` are the numbers of rows that it is based on; ``sizes`` are the numbers
    of each kind of rows, if a test needs enough of each. Limits are at most ``most`` from 0, and at
    repeated looks need enough of the ``wald_rows``, if there are any. They may be too narrow where
    there are ``few_events``.
    """

    old: Array
    new: Array
    difference: Contrast | means.Difference
    df: Array | float
    n_old: Array
    n_new: Array
    few_events: Mask | bool = False
    same_order: Mask | bool = False
    changed: ChangedRows | None = None
    sizes: Mapping[SampleSize, Array] = field(default_factory=dict)
    wald_rows: tuple[Array, ...] = ()
    most: float = np.inf

    @property
    def gap(self) -> Array:
        """The new value less the old one."""
        return self.difference.gap

    def limits(self, level: Level, *, one_sided: bool = False) -> Limits:
        """Return the limits of the difference; if ``one_sided``, each one alone has the level."""
        quantile = level.quantile(self.df, tails=1 if one_sided else 2)
        low, high = self.difference.limits(np.where(self._has_enough(level), quantile, np.nan))
        return Limits(np.maximum(low, -self.most), np.minimum(high, self.most))

    def p_value(self, level: Level) -> Array:
        """Return the p-value of the test that the metric does not change."""
        if isinstance(self.difference, Contrast):
            return self.difference.p_value(level, self.df)
        return np.where(self._has_enough(level), self.difference.p_value(level), np.nan)

    def _has_enough(self, level: Level) -> Mask:
        return level.enough(*self.wald_rows) if self.wald_rows else np.ones(self.old.shape, bool)


def change_metric(metric: str, segments: PairedSegments, odds: float | None = None) -> Change:
    """Return a metric of segments with both scores.

    The ``odds`` weigh false positives in the net benefit.
    """
    if metric == _AUC:
        return change_aucs(segments)
    if metric in LOSSES:
        return change_losses(segments.losses[metric], is_bounded=metric == _BOUNDED_LOSS)
    needs_label = THRESHOLD_METRICS[metric].needs_label
    cells = segments.cells if needs_label else segments.all_cells
    assert cells is not None
    if metric == _NET_BENEFIT:
        assert odds is not None
        return change_net_benefits(cells, odds)
    if metric in RATES_OF_ROWS:
        return change_rates(RATES[metric], cells)
    return change_shares(RATES[metric], cells)


def change_aucs(segments: PairedSegments) -> Change:
    """Return the AUCs of segments with both scores."""
    assert segments.aucs is not None
    paired, n = segments.aucs.difference, segments.n.sum(axis=0)
    difference = paired.estimate()
    return Change(
        segments.aucs.old,
        segments.aucs.new,
        difference,
        difference.df,
        n,
        n,
        same_order=paired.same_order,
        sizes=dict(zip(ROC_AUC.sample_sizes, segments.n, strict=True)),
        wald_rows=tuple(segments.n),
        most=1.0,
    )


def change_losses(changes: ValueChanges, *, is_bounded: bool) -> Change:
    """Return mean losses with both scores; a Brier score ``is_bounded`` by 0 and 1."""
    if is_bounded:
        return _change_means(changes, means.change_of_mean(changes.mean, 1.0))
    assert changes.largest is not None
    # Another row might change by twice as much as any of these.
    difference = means.change_of_mean(changes.mean, 2 * changes.largest)
    few = means.has_few_changed_losses(changes.size, changes.mean.second)
    return replace(_change_means(changes, difference), few_events=few)


def change_net_benefits(cells: PairedCells, odds: float) -> Change:
    """Return net benefits of the decisions by both scores."""
    changes = cells.changes({"tp": 1.0, "fp": -odds, "fn": 0.0, "tn": 0.0})
    return _change_means(changes, means.change_of_mean(changes.mean, max(1.0, odds)))


def change_rates(metric: RateMetric, cells: PairedCells) -> Change:
    """Return rates whose rows do not depend on the decisions.

    With a design they are means of rows of 1 and 0.
    """
    events = dict.fromkeys(metric.counted, 1.0) | dict.fromkeys(metric.others, 0.0)
    changes = cells.changes(events)
    if cells.units is not None:
        few = means.has_few_changed_losses(changes.size, changes.mean.second)
        difference = means.change_of_rate_by_design(changes.mean)
        return replace(_change_means(changes, difference), few_events=few)
    whole, gained, lost = changes.mean.whole, changes.gained, changes.lost
    return Change(
        changes.old,
        changes.new,
        means.change_of_rate(means.Share(gained, whole), means.Share(lost, whole)),
        np.inf,
        whole.rows,
        whole.rows,
        few_events=means.has_heavy_changed_rows(gained + lost, whole),
        changed=ChangedRows(gained, lost, whole),
    )


def change_shares(metric: RateMetric, cells: PairedCells) -> Change:
    """Return shares of the rows with a decision, which may be other rows by the other score."""
    counted, base = metric.counted, metric.cells
    others = [cell for cell in CELLS if cell not in base]
    old = means.Share(cells.count(old=counted), cells.count(old=base))
    new = means.Share(cells.count(new=counted), cells.count(new=base))
    covariance: Array | None = None
    df: Array | float = np.inf
    if cells.units is not None:
        influences = [cells.influence(counted, base, model) for model in (OLD_SCORE, NEW_SCORE)]
        old, new = (
            replace(share, design_variance=cells.units.variance(influence))
            for share, influence in zip((old, new), influences, strict=True)
        )
        covariance, df = cells.units.covariance(*influences), cells.units.df(*influences)
    both, both_part = cells.count(base, base), cells.count(counted, counted)
    gained, lost = cells.count(others, base), cells.count(base, others)
    return Change(
        old.value,
        new.value,
        means.change_of_share(old, new, both, both_part, covariance),
        df,
        old.whole.rows,
        new.whole.rows,
        changed=ChangedRows(gained, lost, old.whole + gained),
    )


def _change_means(changes: ValueChanges, difference: means.Difference) -> Change:
    whole = changes.mean.whole
    return Change(
        changes.old,
        changes.new,
        difference,
        difference.df,
        whole.rows,
        whole.rows,
        changed=ChangedRows(changes.gained, changes.lost, whole),
        wald_rows=(whole.rows,),
    )
