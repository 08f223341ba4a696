"""Fairness metrics: the largest differences and smallest ratios between groups, with limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from polars_wroc.arrays import Array, Ints, Mask
from polars_wroc.bounds import MinRows
from polars_wroc.calls import check_call
from polars_wroc.groups import comparisons
from polars_wroc.groups.categories import Intersections
from polars_wroc.groups.comparisons import COMPARISON_SCHEMA, FairnessMetric
from polars_wroc.groups.divisions import name_segments
from polars_wroc.groups.group_columns import read_groups
from polars_wroc.inputs.columns import AUDIT_KEYS, MISSING, MODEL, IntoColumn, IntoWeight
from polars_wroc.inputs.decisions import Favorable
from polars_wroc.inputs.designs import Design
from polars_wroc.inputs.frames import require_groups
from polars_wroc.inputs.metric import SampleSize
from polars_wroc.inputs.reasons import EVERYBODY, NOBODY, UNDEFINED, few_rows
from polars_wroc.inputs.rows import IntoColumns, read_source
from polars_wroc.looks import ConfidenceLevel
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.metrics.segments import Needs, Segments, measure_segments
from polars_wroc.queries import FrameT
from polars_wroc.rows import Rows, check_level, table_of
from polars_wroc.stats.estimates import Wilson
from polars_wroc.stats.levels import Level
from polars_wroc.stats.spreads import ComparedGroups, Spread, equal_groups, find_spread
from polars_wroc.thresholds.registry import RateMetric
from polars_wroc.thresholds.rules import Threshold, read_threshold

_SELECTION_RATE = "selection_rate"


@check_call
def fairness(
    frame: FrameT,
    label: IntoColumn | None,
    score: IntoColumns | None = None,
    *,
    attributes: IntoColumns,
    intersections: Intersections = False,
    threshold: Threshold | None = None,
    selected: IntoColumn | None = None,
    weight: IntoWeight | None = None,
    pos_label: object = None,
    min_rows: MinRows = 30,
    level: ConfidenceLevel = 0.95,
    design: Design | None = None,
) -> FrameT:
    """Return the largest difference and the smallest ratio between groups in fairness metrics.

    Use it for one-number summaries of an attribute. With many small groups the largest difference
    is large by chance; the limits and ``p_value`` allow for picking the two most extreme groups. To
    see which group differs from the others, use `group_gaps`.

    The main columns are:

    - ``attribute, metric``: what the row describes;
    - ``segment, value`` and ``reference, reference_value``: the two extreme groups and their rates;
    - ``gap, gap_low, gap_high``: in rows of a difference, the largest one, with joint limits;
    - ``ratio, ratio_low, ratio_high``: in rows of a ratio, the smallest one, with joint limits;
    - ``p_value``: test that all groups have the same rate.

    Parameters
    ----------
    frame, label, score, weight, pos_label, level, design
        As for `summary`. Without a ``score`` there is no AUC; without a ``label``, only demographic
        parity. Rows where the label is null count in demographic parity alone.
    attributes, intersections
        As for `group_gaps`, but rows with a missing value belong to no group.
    threshold, selected
        As for `group_gaps`; pass exactly one.
    min_rows
        Fewest rows of a group that is compared; for an AUC, fewest rows of each class.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        The comparison table of `group_gaps`, with one row per attribute, score and metric:

        - ``demographic_parity_difference, demographic_parity_ratio``: of selection rates; a ratio
          below 0.8 fails the four-fifths rule;
        - ``equal_opportunity_difference, equal_opportunity_ratio``: of tpr;
        - ``predictive_equality_difference``: of fpr;
        - ``equalized_odds_difference, equalized_odds_ratio``: of tpr or fpr, whichever is worse;
        - ``predictive_parity_difference``: of ppv;
        - ``auc_difference``: of AUCs.

        In rows of a difference ``segment`` has the largest value and ``reference`` the smallest; in
        rows of a ratio it is the other way round. ``n, n_reference`` are the rows that both values
        are based on. All columns that are not named here are null.

        Groups with an undefined value or too few rows are left out; ``reason`` says how many, or
        why nothing can be compared. ``p_value`` is null for ``auc_difference``. Limits are null if
        any group has no limits.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also unless exactly one of ``threshold`` and ``selected`` is given.

    Notes
    -----
    Definitions follow fairlearn [1]_, except that 0/0 is null. With a ``design``, the correlation
    between groups that share sampling units is ignored, which is cautious if it is positive;
    `group_gaps` uses it. [Formulas](../explanation/statistics.md#fairness).

    References
    ----------
    .. [1] Weerts, H. et al. (2023), Journal of Machine Learning Research 24, 1-8.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> loans = wroc.data.loans()
    >>> table = wroc.fairness(loans, "approved", "score", attributes="race", threshold=0.5)
    >>> table.select("metric", "segment", "reference", pl.col("gap", "ratio").round(3)).head(3)
    shape: (3, 5)
    ┌───────────────────────────────┬──────────┬───────────┬───────┬───────┐
    │ metric                        ┆ segment  ┆ reference ┆ gap   ┆ ratio │
    │ ---                           ┆ ---      ┆ ---       ┆ ---   ┆ ---   │
    │ str                           ┆ str      ┆ str       ┆ f64   ┆ f64   │
    ╞═══════════════════════════════╪══════════╪═══════════╪═══════╪═══════╡
    │ demographic_parity_difference ┆ white    ┆ black     ┆ 0.1   ┆ null  │
    │ demographic_parity_ratio      ┆ black    ┆ white     ┆ null  ┆ 0.897 │
    │ equal_opportunity_difference  ┆ hispanic ┆ black     ┆ 0.053 ┆ null  │
    └───────────────────────────────┴──────────┴───────────┴───────┴───────┘
    """
    require_groups(attributes, called="attributes")
    choice = read_threshold(threshold, selected)
    if choice is None:
        msg = "exactly one of `threshold` and `selected` must be given; found none"
        raise ValueError(msg)
    groups = read_groups(
        read_source(frame),
        label,
        score,
        attributes,
        choice=choice,
        selected=selected,
        weight=weight,
        pos_label=pos_label,
        design=design,
        intersections=intersections,
    )
    level = check_level(level, frame)
    metrics = [
        metric
        for metric in comparisons.FAIRNESS.values()
        if (score is not None or ROC_AUC.column not in metric.compares)
        and (label is not None or metric.name in comparisons.UNLABELED)
    ]
    has_aucs = any(ROC_AUC.column in metric.compares for metric in metrics)

    def compute(rows: Rows) -> pl.DataFrame:
        needs = groups.find_needs(rows, Needs(aucs=has_aucs))
        table = list[dict[str, Any]]()
        for part in groups.parts(rows):
            segments = measure_segments(rows, part.division.keys, part.model, needs[part.model])
            if segments.number:
                names = name_segments(part.division, segments.keys).to_list()
                # Rows with a missing value are no group of people.
                compared = has_all_keys(segments)
                spreads = spread_rows(
                    segments, names, metrics, rows.level(level), min_rows, compared=compared
                )
                keys = {AUDIT_KEYS[0]: part.division.attribute, MODEL: part.score_name}
                table += [keys | spread for spread in spreads]
        return pl.DataFrame(table, schema=COMPARISON_SCHEMA, orient="row")

    return table_of(frame, groups.columns, COMPARISON_SCHEMA, compute)


@dataclass(frozen=True)
class _Measured:
    """A rate or an AUC of the segments that are compared.

    ``places`` are the places of segments with a value from enough rows, ``n`` the rows of each. The
    ``p_value`` is for the hypothesis that all have the same value; NaN without a test. The
    ``reason`` says why values mean nothing, or how many segments are left out.
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
    compared: Mask,
    compared_by_decisions: Mask | None = None,
) -> list[dict[str, Any]]:
    """Return a row of the comparison table for each fairness metric, without its keys.

    ``names`` are the names of the segments. Values that are undefined or based on too few rows are
    left out, and so are segments that are not ``compared``. Rates of all decisions are rates of the
    ``favorable`` one, and only for segments that are ``compared_by_decisions``.
    """
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
            # Each metric of a criterion gets its share of the error probability.
            criteria[metric.compares] = [
                find_spread(part.groups, level, metrics=len(parts)) for part in parts
            ]
        rows.append(_make_row(metric, parts, criteria[metric.compares], names))
    return rows


def has_all_keys(segments: Segments) -> Mask:
    """Return which segments have a value of each attribute."""
    known = np.ones(segments.number, dtype=bool)
    for key in segments.keys:
        if key.null_count():
            known &= key.is_not_null().to_numpy()
    return known


def _measure(
    name: str,
    segments: Segments,
    level: Level,
    min_rows: int,
    compared: Mask,
    favorable: Favorable | None,
) -> _Measured:
    metric = comparisons.GAP_METRICS[name]
    if name == _SELECTION_RATE and favorable == "rejected":
        assert isinstance(metric, RateMetric)
        metric = replace(metric, counted=metric.others, others=metric.counted)
    sizes = segments.sizes(metric)
    fewest, n = (each.reduce([*sizes.values()]) for each in (np.minimum, np.add))
    by_design, same, variances = segments.units is not None, None, None
    rows: Array | None = None
    if isinstance(metric, RateMetric):
        rate = segments.rates([metric])
        estimate, same = rate.estimate(), segments.same_decision(metric)
        sample = rate.sample()
        rows = 1 / sample.size_at(sample.value, sample.complement)
        # V = p (1 - p) rho
        variances = None if by_design else rate.value * rate.complement * rate.all.inverse_size
    else:
        auc = segments.auc.estimate("score")
        assert isinstance(auc, Wilson)
        estimate = auc
    enough = fewest >= min_rows
    places = np.flatnonzero(~np.isnan(estimate.value) & enough & compared)
    groups = ComparedGroups(estimate.at(places), None if variances is None else variances[places])
    number = int((compared & segments.have_rows(metric) & ~enough).sum())
    # The test of all groups holds at a single look only, and where groups can differ.
    p_value = np.nan
    if rows is not None and level.looks is None and same is None:
        p_value = equal_groups(groups, rows[places], by_design=by_design)
    reason = same or _name_left_out(number, [*sizes], min_rows)
    return _Measured(places, n[places], groups, p_value, reason)


def _name_left_out(number: int, kinds: Sequence[SampleSize], min_rows: int) -> str | None:
    """Return how many segments are left out for too few rows of some kinds; None if none is."""
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
) -> dict[str, Any]:
    """Return the columns of a criterion, which is as bad as its worst metric."""
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
    row: dict[str, Any] = {
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
) -> dict[str, Any]:
    """Return the columns of the two segments that are farthest apart; none for fewer than two."""
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
