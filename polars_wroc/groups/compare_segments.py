"""The comparison table: a row for each segment and metric, tested and judged.

The arrays of a comparison have all segments of one metric after another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from polars_wroc.arrays import Array, Ints, Mask, Texts
from polars_wroc.checks import MARGIN
from polars_wroc.groups import comparisons
from polars_wroc.groups.comparisons import COMPARISON_SCHEMA
from polars_wroc.groups.group_columns import adjust_together, choose_texts, make_rows
from polars_wroc.inputs.reasons import FEW_EVENTS, NO_VARIANCE, ONE_CLASS, UNDEFINED, few_rows
from polars_wroc.metrics.pairs import Pair, pair_metrics
from polars_wroc.metrics.segments import Segments
from polars_wroc.records import join_records
from polars_wroc.stats import families
from polars_wroc.stats.designs import explain_unknown_variance
from polars_wroc.stats.estimates import Limits
from polars_wroc.stats.families import Adjustment
from polars_wroc.stats.levels import Level, adjust_picked
from polars_wroc.stats.references import Reference
from polars_wroc.thresholds.registry import THRESHOLD_METRICS

_METRICS = comparisons.GAPS_ON_REQUEST | comparisons.SHIFTS | comparisons.CALIBRATION


@dataclass(frozen=True)
class GapRules:
    """The rules by which gaps are tested and judged."""

    level: Level
    adjust: Adjustment = "holm"
    margin: float = MARGIN
    min_rows: int = 0


@dataclass(frozen=True)
class Partition:
    """Segments, and the reference with which each is compared.

    ``labels`` are the columns that name the segments, and ``names`` their names in texts. If the
    reference is the best of several segments, ``picked_from`` is their number.
    """

    labels: pl.DataFrame
    names: Sequence[str]
    segments: Segments
    reference: Reference
    reference_name: str | None
    picked_from: int | None = None

    def same_decision(self, metric: str) -> str | None:
        """Return why a metric says nothing about the segments: all have the same decision."""
        if metric not in THRESHOLD_METRICS:
            return None
        return self.segments.same_decision(THRESHOLD_METRICS[metric])

    def is_own(self, metrics: Sequence[str]) -> Mask:
        """Return whether each segment is its own reference, all segments for each metric."""
        return np.tile(self.reference.is_own(self.segments.number), len(metrics))

    def find_twins(self, metrics: Sequence[str]) -> Ints:
        """Return the place of the only segment that each is compared with, or its own place."""
        shape = len(metrics), self.segments.number
        twin = np.arange(len(metrics) * self.segments.number).reshape(shape)
        for place, metric in enumerate(metrics):
            (two,) = np.nonzero(self.segments.have_rows(_METRICS[metric]))
            if self.reference.is_mutual and len(two) == 2:  # noqa: PLR2004
                twin[place, two] = twin[place, two[::-1]]
        return twin.ravel()


@dataclass(frozen=True)
class ComparedRows:
    """The rows behind metrics of segments and of their references.

    ``n`` is their number, and ``fewest`` that of the rarest kind, for example of a class. Where
    they are not ``enough`` for a test, ``too_few`` says why; where values cannot differ,
    ``same_decision`` says why.
    """

    n: Array
    n_reference: Array
    fewest: Array
    fewest_of_reference: Array
    enough: Mask
    too_few: Texts
    can_differ: Mask
    same_decision: Texts


@dataclass(frozen=True)
class Comparison:
    """The rows of some metrics of the segments of a partition, before they are judged.

    ``test_df`` are the degrees of freedom of the tests. Segments with ``few_rows`` have no limits.
    ``twin`` is the place of the only segment with which a segment is compared, or its own place;
    ``one_class`` marks values that no decision could change, which are not compared.
    """

    metrics: Sequence[str]
    partition: Partition
    pair: Pair
    rows: ComparedRows
    columns: Mapping[str, Array]
    test_df: Array
    few_rows: Mask
    twin: Ints
    one_class: Mask | bool = False

    @property
    def repeats(self) -> Mask:
        """Whether a test duplicates the test of an earlier segment."""
        return np.asarray(self.twin < np.arange(self.twin.size))


def compare_segments(
    metrics: Sequence[str], partition: Partition, rules: GapRules
) -> list[Comparison]:
    """Return metrics of segments beside their references, with limits and p-values."""
    compared = {name: comparisons.GAPS_ON_REQUEST[name] for name in metrics}
    pairs = pair_metrics(compared, partition.segments, partition.reference)
    return [compare_pair(names, pair, partition, rules) for names, pair in pairs.items()]


def compare_pair(
    metrics: Sequence[str], pair: Pair, partition: Partition, rules: GapRules
) -> Comparison:
    """Return the comparisons of a pair, which holds some metrics: gaps, limits and p-values."""
    contrast, level = pair.contrast, rules.level
    rows = join_records(
        [_count_compared_rows(metric, partition, rules.min_rows) for metric in metrics]
    )
    own_holds = both_hold = np.ones(rows.n.shape, dtype=bool)
    few = ~own_holds
    if pair.is_wald:
        # The rows of a target are NaN, which fmin ignores.
        fewest = rows.fewest, np.fmin(rows.fewest, rows.fewest_of_reference)
        effective = pair.effective_rows or fewest
        own_holds = level.enough(effective[0], least=pair.fewest_rows)
        both_hold = level.enough(*effective, least=pair.fewest_rows)
        few = ~both_hold & ~np.isnan(np.minimum(*effective))
    shown = contrast.own.limits(np.where(own_holds, level.quantile(contrast.own.df), np.nan))
    quantiles = gap_quantiles(pair, level, partition.picked_from)
    own_quantile, other_quantile = (np.where(both_hold, each, np.nan) for each in quantiles)
    gap = contrast.limits(own_quantile, other_quantile)
    if not pair.is_wald:
        gap = Limits(np.clip(gap.low, -1.0, 1.0), np.clip(gap.high, -1.0, 1.0))
    compared = {"gap": contrast.gap, "gap_low": gap.low, "gap_high": gap.high}
    if all(_METRICS[metric].has_ratio for metric in metrics) and not pair.is_wald:
        compared |= _find_ratios(pair, own_quantile, other_quantile)
    # Two segments compared with each other need one test, unless the reference includes the
    # segment.
    twin = np.arange(rows.n.size) if pair.includes_own else partition.find_twins(metrics)
    test = pair.test(level)
    testable = rows.enough & rows.can_differ & contrast.sign_is_known & both_hold
    p_value = np.where(testable, test.p_value, np.nan)
    compared["p_value"] = _share_p_value(p_value, partition.picked_from, twin, level)
    is_own = partition.is_own(metrics)
    columns = {
        "n": rows.n,
        "value": contrast.own.value,
        "value_low": shown.low,
        "value_high": shown.high,
        "n_reference": rows.n_reference,
        "reference_value": pair.reference_value,
        **{name: np.where(is_own, np.nan, each) for name, each in compared.items()},
    }
    return Comparison(metrics, partition, pair, rows, columns, test.df, few, twin)


def _count_compared_rows(metric: str, partition: Partition, min_rows: int) -> ComparedRows:
    """Return the rows behind one metric."""
    segments, reference = partition.segments, partition.reference
    sizes = segments.sizes(_METRICS[metric])
    other_sizes = {kind: reference.add_others(size) for kind, size in sizes.items()}
    cases = [(~(size >= min_rows), few_rows(min_rows, kind)) for kind, size in sizes.items()]
    cases += [
        (size < min_rows, few_rows(min_rows, kind, in_reference=True))
        for kind, size in other_sizes.items()
    ]
    if reference.includes_own:
        other_sizes = {kind: size + other_sizes[kind] for kind, size in sizes.items()}
    own, others = [*sizes.values()], [*other_sizes.values()]
    same = partition.same_decision(metric)
    return ComparedRows(
        np.add.reduce(own),
        np.add.reduce(others),
        np.minimum.reduce(own),
        np.minimum.reduce(others),
        ~np.logical_or.reduce([is_small for is_small, _ in cases]),
        choose_texts(cases),
        np.full(segments.number, same is None),
        np.full(segments.number, same, dtype=object),
    )


def gap_quantiles(
    pair: Pair, level: Level, picked_from: int | None
) -> tuple[Array | float, Array | float]:
    """Return the quantiles of both estimates in the limits of a gap.

    With two segments, picking the best needs no adjustment.
    """
    if picked_from is None or picked_from <= 2:  # noqa: PLR2004
        return level.quantile(pair.df[0]), level.quantile(pair.df[1])
    quantile = level.picked_quantile(picked_from, pair.picked_df)
    return quantile, quantile


def _find_ratios(pair: Pair, quantile: Array, other_quantile: Array) -> dict[str, Array]:
    low, high = pair.contrast.ratio_limits(quantile, other_quantile)
    is_bounded = (pair.reference_value > 0) & np.isfinite(high)
    ratios = {
        "ratio": pair.contrast.ratio,
        "ratio_low": low,
        "ratio_high": np.where(is_bounded, high, np.nan),
    }
    return {name: np.where(pair.has_ratio, each, np.nan) for name, each in ratios.items()}


def _share_p_value(p_value: Array, picked_from: int | None, twin: Ints, level: Level) -> Array:
    """Return p-values adjusted for a picked reference; else twins share the larger of theirs."""
    if picked_from is not None:
        return adjust_picked(p_value, np.full(p_value.shape, picked_from), level)
    return np.fmax(p_value, p_value[twin])


def add_verdicts(parts: Sequence[Comparison], rules: GapRules) -> pl.DataFrame:
    """Return the table of comparisons, with p-values adjusted together, and verdicts.

    The rows of each comparison follow the rows of the one before.
    """
    if not parts:
        return pl.DataFrame(schema=COMPARISON_SCHEMA)
    p_values = [each.columns["p_value"] for each in parts]
    repeats = [each.repeats for each in parts]
    adjusted = adjust_together(p_values, rules.adjust, repeats)
    number = families.count_tests(np.concatenate(p_values), rules.adjust, np.concatenate(repeats))
    judged = [
        _judge_comparison(each, p_adjusted, number, rules)
        for each, p_adjusted in zip(parts, adjusted, strict=True)
    ]
    # One table for all rows, since making a table takes longer than its arithmetic
    tables = [each.partition.labels for each in parts for _ in each.metrics]
    labels = pl.concat(tables, how="vertical_relaxed")
    numbers, texts = dict[str, Array](), dict[str, list[str | None]]()
    for name in dict.fromkeys(name for each, _ in judged for name in each):
        values = [each.get(name, np.full(each["gap"].shape, np.nan)) for each, _ in judged]
        numbers[name] = np.concatenate(values)
    for name in ("metric", "reference", "verdict", "reason"):
        texts[name] = [text for _, each in judged for text in each[name]]
    return make_rows(labels, numbers, texts)


def _judge_comparison(
    comparison: Comparison, p_adjusted: Array, number: int, rules: GapRules
) -> tuple[dict[str, Array], dict[str, Iterable[str | None]]]:
    """Return the numbers and the texts of a comparison, given the number of tests."""
    pair, partition, level = comparison.pair, comparison.partition, rules.level
    gap = comparison.columns["gap"]
    picked_from = partition.picked_from
    # A reference that was picked from k segments has k - 1 tests, but it could have been in any of
    # the k (k - 1) / 2 pairs.
    tests = number if picked_from is None else number * max(picked_from, 2) / 2
    limits = pair.contrast.limits(*(level.quantile(df, tests=tests, tails=1) for df in pair.df))
    has_limits = comparison.rows.enough & ~comparison.few_rows
    equivalent = has_limits & pair.are_equivalent(limits, rules.margin)
    planned = level.at_planned_rows()
    detectable = pair.detect(planned.quantile(comparison.test_df, tests=tests))
    detectable = pair.contrast.share * detectable + pair.contrast.slack
    verdict = families.judge(p_adjusted, equivalent, level)
    known = ~np.isnan(gap)
    is_told = known & comparison.rows.can_differ
    numbers = {
        **comparison.columns,
        "p_adjusted": p_adjusted,
        "detectable": np.where(has_limits & known, detectable, np.nan),
    }
    segments = partition.segments.number
    texts: dict[str, Iterable[str | None]] = {
        "metric": [metric for metric in comparison.metrics for _ in range(segments)],
        "reference": [partition.reference_name] * gap.size,
        "verdict": choose_texts([(is_told, verdict.astype(object))]),
        "reason": _find_reasons(comparison, verdict, rules),
    }
    return numbers, texts


def _find_reasons(comparison: Comparison, verdict: NDArray[np.str_], rules: GapRules) -> Texts:
    """Return why each gap has no value, test or verdict, or else a caution about its limits."""
    columns, partition, rows = comparison.columns, comparison.partition, comparison.rows
    unknown = np.isnan(columns["gap"])
    inconclusive = ~unknown & (verdict == families.INCONCLUSIVE)
    has_values = ~np.isnan(columns["value"]) & ~np.isnan(columns["reference_value"])
    is_own = partition.is_own(comparison.metrics)
    fewest = int(rules.level.fewest_rows(comparison.pair.fewest_rows))
    few = [(comparison.few_rows, few_rows(fewest)), *comparison.pair.obstacles]
    no_variance = explain_unknown_variance(partition.segments.units, NO_VARIANCE)
    reasons = choose_texts(
        [
            (unknown & is_own, comparisons.THE_REFERENCE),
            (unknown & (partition.reference_name is None), comparisons.NO_REFERENCE),
            (unknown & comparison.one_class, ONE_CLASS),
            (unknown & has_values, no_variance),
            (unknown, UNDEFINED),
            (~rows.can_differ, rows.same_decision),
            (inconclusive & ~rows.enough, rows.too_few),
            *((inconclusive & holds, why) for holds, why in few),
            (inconclusive & np.isnan(columns["gap_low"]), no_variance),
            (comparison.repeats, comparisons.REPEATS),
            (comparison.pair.few_events, FEW_EVENTS),
        ]
    )
    for place in np.flatnonzero(comparison.repeats):
        if reasons[place] == comparisons.REPEATS:
            reasons[place] += partition.names[comparison.twin[place] % partition.segments.number]
    return reasons
