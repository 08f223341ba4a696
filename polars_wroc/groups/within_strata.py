"""Gaps of segments within strata: each segment is compared with its reference in each stratum.

Values are averaged over the strata in which both have rows, with weights that are largest where
both have many: for rates, the weights of Mantel and Haenszel (1959). Gaps that come from the strata
alone disappear, for example if a segment applies where everyone is rejected.

Arrays have a row for each stratum and a column for each segment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from polars_wroc.arrays import Array
from polars_wroc.buckets import number_groups
from polars_wroc.checks import reject, show_value
from polars_wroc.groups import compare_segments
from polars_wroc.groups.compare_segments import Comparison, GapRules, Partition
from polars_wroc.groups.group_columns import InnerColumns, table_of_groups
from polars_wroc.inputs.designs import Design, read_design
from polars_wroc.inputs.expressions import named_columns
from polars_wroc.inputs.rows import IntoColumns, RowSource
from polars_wroc.metrics.auc_sums import AucSums, estimate_aucs
from polars_wroc.metrics.pairs import (
    Pair,
    average_reference,
    detect_auc,
    find_slack,
    make_pair,
    relative_pairs,
)
from polars_wroc.metrics.segments import Needs, measure_segments
from polars_wroc.records import map_arrays
from polars_wroc.rows import Rows
from polars_wroc.stats.aucs import average_aucs, equal_aucs
from polars_wroc.stats.contrasts import Contrast
from polars_wroc.stats.estimates import Wilson
from polars_wroc.stats.power import detectable_gap
from polars_wroc.stats.rates import Rate, Sample
from polars_wroc.stats.references import Reference
from polars_wroc.thresholds.cells import Cells
from polars_wroc.thresholds.registry import GAP_RATES, RATES

WITHIN_SCHEMA: dict[str, type[pl.DataType]] = {
    "gap_crude": pl.Float64,
    "gap_explained": pl.Float64,
    "share_within": pl.Float64,
}
# A segment with a larger inverse size than the first has a single row in the stratum: its variance
# is that of its reference, whose inverse size is at most the second.
_ONE_ROW, _MOST = 0.999, 0.95


def check_within(reference: object, metrics: Sequence[str] | None, design: Design | None) -> None:
    """Raise for arguments that have no meaning within strata."""
    if metrics is not None:
        reject("metrics", "be None with `within`", list(metrics))
    read_design(design).require_none("with `within`: give one of them")
    if isinstance(reference, str) and reference == "overall":
        msg = (
            "`reference` must be 'rest', 'best' or a segment with `within`; found "
            f"{show_value(reference)}"
        )
        raise ValueError(msg)


def read_strata(
    source: pl.DataFrame | pl.LazyFrame | RowSource, within: IntoColumns
) -> InnerColumns:
    """Return the columns of strata."""
    strata = named_columns("within", within, table_of_groups(source))
    return InnerColumns(strata, "within", "not name a column of `attributes`")


@dataclass(frozen=True)
class Strata:
    """Sums over the rows of each segment in each stratum, 0 where it has none.

    With decisions, ``cells`` has the confusion matrix of each rate.
    """

    aucs: AucSums
    cells: Mapping[str, Cells]

    def share_within(self, metric: str, reference: Reference) -> Array:
        """Return the share of each segment's weight in strata where its reference has rows."""
        weight = self.aucs.weight.sum(axis=0)
        if metric in self.cells:
            weight = self.cells[metric].weight.sum(axis=0)
        shared = np.where(reference.add_others(weight) > 0, weight, 0.0)
        return np.asarray(shared.sum(axis=0) / weight.sum(axis=0))


def measure_strata(
    rows: Rows, keys: Sequence[str], strata: Sequence[str], model: str, needs: Needs
) -> Strata:
    """Return the sums over the rows of each segment in each stratum, by one of the scores."""
    measured = measure_segments(rows, [*keys, *strata], model, replace(needs, aucs=True))
    assert measured.aucs is not None
    segments, segment = number_groups(measured.keys.select(keys))
    numbers, stratum = number_groups(measured.keys.select(strata))
    shape = numbers.height, segments.height

    def spread(values: Array) -> Array:
        spread_out = np.zeros((*values.shape[:-1], *shape))
        spread_out[..., stratum, segment] = values
        return spread_out

    cells = {}
    if needs.decisions is not None:
        cells = {
            name: map_arrays(measured.cells_of(metric), spread)
            for name, metric in GAP_RATES.items()
        }
    return Strata(map_arrays(measured.aucs, spread), cells)


def compare_within(
    metric: str, partition: Partition, strata: Strata, rules: GapRules
) -> Comparison:
    """Return a metric of segments beside the metric of their references, averaged over strata.

    More columns hold the gap without strata, the share of it that strata explain, and the share of
    the segment's weight in strata where its reference has rows.
    """
    (without_strata,) = compare_segments.compare_segments([metric], partition, rules)
    crude = without_strata.columns
    if metric in RATES:
        pair = pair_rates_within(metric, strata, partition.reference)
    else:
        pair = pair_aucs_within(strata, partition.reference)
    found = compare_segments.compare_pair([metric], pair, partition, rules)
    # A gap without strata whose interval includes 0 may not exist.
    is_gap = (crude["gap_low"] > 0) | (crude["gap_high"] < 0)
    more = {
        "gap_crude": crude["gap"],
        "gap_explained": np.where(is_gap, 1 - found.columns["gap"] / crude["gap"], np.nan),
        "share_within": strata.share_within(metric, partition.reference),
    }
    return replace(found, columns={**found.columns, **more})


def pair_rates_within(metric: str, strata: Strata, reference: Reference) -> Pair:
    """Return directly standardised rates of segments and of their references."""
    counted, others = RATES[metric].counted, RATES[metric].others
    cells = strata.cells[metric]
    own = cells.rate(counted, others)
    other = cells.combine(reference.add_others).rate(counted, others)
    shares = share_strata(own.all.weight, other.all.weight)
    one, two = _average_rate(own, other, shares), _average_rate(other, own, shares)
    contrast = Contrast(
        Wilson(one.value, one.complement, one.pool, one.pool),
        Wilson(two.value, two.complement, two.pool, two.pool),
    )
    pair = make_pair(contrast, lambda quantile: detectable_gap(one, two, quantile))
    # If both rates are 1, nothing is known of their ratio.
    return replace(pair, has_ratio=(one.complement > 0) | (two.complement > 0))


def share_strata(own: Array, other: Array) -> Array:
    """Return the share of each stratum in the averages of each segment.

    Strata are weighted by u v / (u + v) of the weights of both sides, 0 where one is absent. All
    are 0 where no stratum has both, or weights overflow.
    """
    weight = np.where((own > 0) & (other > 0), own * (other / (own + other)), 0.0)
    total = weight.sum(axis=0)
    return np.where((total > 0) & np.isfinite(total), weight / total, 0.0)


def average_strata(values: Array, shares: Array, power: int = 1) -> Array:
    """Return averages over strata, the axis before the last, weighted by a power of their shares.

    NaN without any share.
    """
    used = shares > 0
    total = np.where(used, shares**power * values, 0.0).sum(axis=-2)
    return np.where(used.any(axis=0), total, np.nan)


def _average_rate(rate: Rate, other: Rate, shares: Array) -> Sample:
    """Return an average rate with 1 divided by the effective size that its variance implies."""
    value, complement = (average_strata(each, shares) for each in (rate.value, rate.complement))
    # v = h2 p (1 - p) / (1 - h2) in each stratum, without bias
    h2, other_h2 = rate.all.inverse_size, np.minimum(other.all.inverse_size, _MOST)
    other_spread = other.value * other.complement / (1 - other_h2)
    own = rate.value * rate.complement / (1 - h2)
    variances = h2 * np.where(h2 > _ONE_ROW, other_spread, own)
    variance, size = (average_strata(each, shares, 2) for each in (variances, h2))
    spread = value * complement
    size = np.where((spread > 0) & (variance > 0), variance / spread, size)
    return Sample(value, complement, size, size, size)


def pair_aucs_within(strata: Strata, reference: Reference) -> Pair:
    """Return the averages of the AUCs of segments over strata, and of their references."""
    auc, pairs = estimate_aucs(strata.aucs), relative_pairs(strata.aucs)
    shares = share_strata(pairs, reference.add_others(pairs))
    own, other = (
        average_aucs(each, lambda values, power: average_strata(values, shares, power))
        for each in (auc, average_reference(auc, pairs, reference))
    )
    slack = average_strata(np.asarray(find_slack(strata.aucs, pairs, reference)), shares)
    contrast = Contrast(own.estimate(), other.estimate(), slack=slack)
    pair = make_pair(contrast, lambda quantile: detect_auc(own, other, quantile))
    return replace(pair, test=lambda level: equal_aucs(own, other, level))
