"""Fairness metrics of segments: how far apart their rates and AUCs are, with joint limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from polars_wroc.arrays import Array, Ints, Mask
from polars_wroc.groups.comparisons import (
    COMPARISON_SCHEMA,
    GAP_METRICS,
    FairnessMetric,
)
from polars_wroc.inputs.columns import MISSING
from polars_wroc.inputs.decisions import Favorable
from polars_wroc.inputs.metric import SampleSize
from polars_wroc.inputs.reasons import EVERYBODY, NOBODY, UNDEFINED, few_rows
from polars_wroc.metrics.segments import Segments
from polars_wroc.stats.estimates import Wilson
from polars_wroc.stats.levels import Level
from polars_wroc.stats.spreads import ComparedGroups, Spread, equal_groups, find_spread
from polars_wroc.thresholds.registry import RateMetric

_SELECTION_RATE = "selection_rate"


@dataclass(frozen=True)
class _Measured:
    """A rate or an AUC of the segments that are compared.

    ``places`` are the places of segments with a value from enough rows, ``n`` the rows of each. The
    ``p_value`` belongs to the test that all have the same value, NaN without a test. The
    ``reason`` says why values tell nothing, or how many segments are left out.
    """

    places: Ints
    n: Array
    groups: ComparedGroups
    p_value: float
    reason: str | None


def spread_rows(
    segments: Segments,
    names: Sequence[str | None],
    metrics: Sequence[FairnessMetric],
    level: Level,
    min_rows: int,
    *,
    favorable: Favorable | None = None,
    compared: Mask | None = None,
    compared_by_decisions: Mask | None = None,
) -> pl.DataFrame:
    """Return a row of the comparison table for each fairness metric, without its keys.

    The ``names`` are those of the segments. Values that are undefined or rest on too few rows are
    left out, and so are segments that are not ``compared``: by default those of a missing value,
    which is no group of people. Rates of all decisions are those of the ``favorable`` one, and only
    of segments that are ``compared_by_decisions``.
    """
    if compared is None:
        compared = has_all_keys(segments)
    if compared_by_decisions is None:
        compared_by_decisions = compared
    measured = {}
    for name in dict.fromkeys(name for metric in metrics for name in metric.compares):
        among = compared_by_decisions if name == _SELECTION_RATE else compared
        measured[name] = _measure(name, segments, level, min_rows, among, favorable)
    criteria: dict[tuple[str, ...], list[Spread]] = {}
    rows = []
    for metric in metrics:
        parts = [measured[name] for name in metric.compares]
        if metric.compares not in criteria:
            # Each metric of a criterion has its share of the error.
            criteria[metric.compares] = [
                find_spread(part.groups, level, metrics=len(parts)) for part in parts
            ]
        rows.append(_make_row(metric, parts, criteria[metric.compares], names))
    return pl.DataFrame(rows, schema=COMPARISON_SCHEMA, orient="row")


def has_all_keys(segments: Segments) -> Mask:
    """Return which segments have a value of each attribute."""
    if not segments.keys.width:
        return np.ones(segments.number, dtype=bool)
    known = pl.all_horizontal(pl.all().is_not_null())
    return np.asarray(segments.keys.select(known).to_series().to_numpy(), dtype=bool)


def _measure(
    name: str,
    segments: Segments,
    level: Level,
    min_rows: int,
    compared: Mask,
    favorable: Favorable | None,
) -> _Measured:
    metric = GAP_METRICS[name]
    if name == _SELECTION_RATE and favorable == "rejected":
        assert isinstance(metric, RateMetric)
        metric = replace(metric, counted=metric.others, others=metric.counted)
    sizes = segments.sizes(metric)
    fewest, n = (each.reduce([*sizes.values()]) for each in (np.minimum, np.add))
    by_design = segments.units is not None
    if isinstance(metric, RateMetric):
        rate = segments.cells_of(metric).rate(metric.counted, metric.others, segments.units)
        estimate = rate.estimate()
        # V = p (1 - p) rho
        variances = None if by_design else rate.value * rate.complement * rate.all.inverse_size
    else:
        score_type = segments.auc.estimate("score")
        assert isinstance(score_type, Wilson)
        estimate, variances = score_type, None
    places = np.flatnonzero(~np.isnan(estimate.value) & (fewest >= min_rows) & compared)
    groups = ComparedGroups(
        estimate.at(places), variances if variances is None else variances[places]
    )
    is_small = compared & segments.have_rows(metric) & ~(fewest >= min_rows)
    reason = _name_left_out(int(is_small.sum()), [*sizes], min_rows)
    same = segments.same_decision(metric) if isinstance(metric, RateMetric) else None
    if same is not None:
        reason = same
    # The test of all groups holds at one look, where they may differ.
    tested = isinstance(metric, RateMetric) and level.looks is None and same is None
    p_value = equal_groups(groups, by_design=by_design) if tested else np.nan
    return _Measured(places, n[places], groups, p_value, reason)


def _name_left_out(number: int, kinds: Sequence[SampleSize], min_rows: int) -> str | None:
    """Say how many segments are left out, which have too few rows of some kinds; None if none."""
    if number == 0:
        return None
    few = few_rows(min_rows, kinds[0]) if len(kinds) == 1 else f"{few_rows(min_rows)} of a class"
    groups = "1 group" if number == 1 else f"{number:,} groups"
    return f"{groups} with {few} left out"


def _make_row(
    metric: FairnessMetric,
    measured: Sequence[_Measured],
    spreads: Sequence[Spread],
    names: Sequence[str | None],
) -> dict[str, object]:
    """Return the columns of a criterion, which is as bad as the worst of what it compares."""
    is_ratio = metric.kind == "ratio"
    shown = "ratio" if is_ratio else "gap"
    bounds = [each.ratio if is_ratio else each.difference for each in spreads]
    values, lows, highs = np.array(bounds).T
    worst = int(np.argmin(values) if is_ratio else np.argmax(values))
    # A criterion of several metrics needs all of them.
    is_known = len(measured) == 1 or not np.isnan(values).any()
    reasons = dict.fromkeys(each.reason for each in measured if each.reason is not None)
    tells = not {NOBODY, EVERYBODY} & reasons.keys()
    number = values[worst] if is_known and tells else np.nan
    low = lows.min() if is_ratio else lows.max()
    high = highs.min() if is_ratio else highs.max()
    p_values = np.array([each.p_value for each in measured])
    row: dict[str, object] = {
        "metric": metric.name,
        shown: number,
        f"{shown}_low": np.maximum(low, 0.0) if tells else np.nan,
        f"{shown}_high": np.minimum(high, 1.0) if tells else np.nan,
        "p_value": np.minimum(p_values.min() * len(p_values), 1.0),
        "reason": "; ".join(reasons) or (UNDEFINED if np.isnan(number) else None),
    }
    if is_known and tells:
        row |= _name_extremes(measured[worst], spreads[worst], names, is_ratio=is_ratio)
    return row


def _name_extremes(
    measured: _Measured, spread: Spread, names: Sequence[str | None], *, is_ratio: bool
) -> dict[str, object]:
    """Return the columns of the two segments that are farthest apart; none without two."""
    if spread.highest < 0:
        return {}
    own, other = spread.highest, spread.lowest
    if is_ratio:
        own, other = other, own
    value = measured.groups.estimate.value
    reference = names[measured.places[other]]
    return {
        "segment": names[measured.places[own]],
        "n": int(measured.n[own]),
        "value": value[own],
        "reference": MISSING if reference is None else reference,
        "n_reference": int(measured.n[other]),
        "reference_value": value[other],
    }
