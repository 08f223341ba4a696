"""The comparison table: a row for each segment and metric, tested and judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from polars_wroc.arrays import Array, Mask
from polars_wroc.checks import MARGIN
from polars_wroc.groups import comparisons
from polars_wroc.groups.comparisons import COMPARISON_SCHEMA
from polars_wroc.groups.group_columns import adjust_together, choose_texts, make_rows
from polars_wroc.inputs.metric import SampleSize
from polars_wroc.inputs.reasons import FEW_EVENTS, NO_VARIANCE, ONE_CLASS, UNDEFINED, few_rows
from polars_wroc.metrics.pairs import Pair, pair_metric
from polars_wroc.metrics.segments import Segments
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

    def find_pair(self, metric: str) -> tuple[int, int] | None:
        """Return the places of two segments that are compared with each other only."""
        places = np.flatnonzero(self.segments.have_rows(_METRICS[metric]))
        if not self.reference.is_mutual or len(places) != 2:  # noqa: PLR2004
            return None
        return int(places[0]), int(places[1])


@dataclass(frozen=True)
class Comparison:
    """The rows of one metric of the segments of a partition, before they are judged.

    ``test_df`` are the degrees of freedom of the tests. A segment or its reference may be
    ``too_small`` for a test, with a reason for each kind of rows. Segments with ``few_rows`` have
    no limits. ``repeats`` marks tests that duplicate another one; ``one_class`` marks values that
    no decision could change, which are not compared.
    """

    metric: str
    partition: Partition
    pair: Pair
    columns: Mapping[str, Array]
    test_df: Array
    too_small: Sequence[tuple[Mask, str]]
    few_rows: Mask
    repeats: Mask
    one_class: Mask | bool = False

    @property
    def enough(self) -> Mask:
        """Whether there are enough rows for a test."""
        return np.asarray(~np.logical_or.reduce([holds for holds, _ in self.too_small]))


def compare_segments(metric: str, partition: Partition, rules: GapRules) -> Comparison:
    """Return a metric of segments beside their references, with limits and a p-value."""
    pair = pair_metric(comparisons.GAPS_ON_REQUEST[metric], partition.segments, partition.reference)
    return compare_pair(metric, pair, partition, rules)


def compare_pair(metric: str, pair: Pair, partition: Partition, rules: GapRules) -> Comparison:
    """Return a pair with limits and a p-value, as `compare_segments` does."""
    segments, reference = partition.segments, partition.reference
    kind, contrast = _METRICS[metric], pair.contrast
    sizes = segments.sizes(kind)
    other_sizes = {each: reference.add_others(size) for each, size in sizes.items()}
    too_small = _find_too_small(sizes, other_sizes, rules.min_rows)
    if reference.includes_own:
        other_sizes = {each: size + other_sizes[each] for each, size in sizes.items()}
    n, n_reference = (np.add.reduce([*each.values()]) for each in (sizes, other_sizes))
    fewest, fewest_others = (np.minimum.reduce([*each.values()]) for each in (sizes, other_sizes))
    own_holds = both_hold = np.ones(n.shape, dtype=bool)
    few = ~own_holds
    if pair.is_wald:
        # A target has no rows.
        rows = pair.effective_rows or (fewest, np.fmin(fewest, fewest_others))
        own_holds = rules.level.enough(rows[0], least=pair.fewest_rows)
        both_hold = rules.level.enough(*rows, least=pair.fewest_rows)
        few = ~both_hold & ~np.isnan(np.minimum(*rows))
    shown = contrast.own.limits(np.where(own_holds, rules.level.quantile(contrast.own.df), np.nan))
    quantiles = gap_quantiles(pair, rules.level, partition.picked_from)
    own_quantile, other_quantile = (np.where(both_hold, each, np.nan) for each in quantiles)
    gap = contrast.limits(own_quantile, other_quantile)
    if not pair.is_wald:
        gap = Limits(np.clip(gap.low, -1.0, 1.0), np.clip(gap.high, -1.0, 1.0))
    is_own = reference.is_own(segments.number)
    columns = {
        "n": n,
        "value": contrast.own.value,
        "value_low": shown.low,
        "value_high": shown.high,
        "n_reference": n_reference,
        "reference_value": pair.reference_value,
    }
    compared = {"gap": contrast.gap, "gap_low": gap.low, "gap_high": gap.high}
    if kind.has_ratio and not pair.is_wald:
        compared |= _find_ratios(pair, own_quantile, other_quantile)
    test = pair.test(rules.level)
    enough = ~np.logical_or.reduce([holds for holds, _ in too_small])
    testable = enough & contrast.sign_is_known & both_hold
    if partition.same_decision(metric) is not None:
        testable = np.zeros(n.shape, dtype=bool)
    # Two segments compared with each other need one test, unless the reference includes the
    # segment.
    twins = None if pair.includes_own else partition.find_pair(metric)
    p_value = np.where(testable, test.p_value, np.nan)
    compared["p_value"] = _share_p_value(p_value, partition.picked_from, twins, rules.level)
    columns |= {name: np.where(is_own, np.nan, each) for name, each in compared.items()}
    repeats = np.zeros(n.shape, dtype=bool)
    if twins is not None:
        repeats[twins[1]] = True
    return Comparison(metric, partition, pair, columns, test.df, too_small, few, repeats)


def _find_too_small(
    sizes: Mapping[SampleSize, Array], others: Mapping[SampleSize, Array], min_rows: int
) -> list[tuple[Mask, str]]:
    """Return where segments or their references have too few rows of each kind, and the reason."""
    found = [(~(size >= min_rows), few_rows(min_rows, kind)) for kind, size in sizes.items()]
    found += [
        (size < min_rows, few_rows(min_rows, kind, in_reference=True))
        for kind, size in others.items()
    ]
    return found


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


def _share_p_value(
    p_value: Array, picked_from: int | None, twins: tuple[int, int] | None, level: Level
) -> Array:
    """Return p-values adjusted for a picked reference; both sides of one test share theirs."""
    if picked_from is not None:
        return adjust_picked(p_value, np.full(p_value.shape, picked_from), level)
    if twins is not None:
        places = list(twins)
        p_value[places] = np.fmax.reduce(p_value[places])
    return p_value


def add_verdicts(parts: Sequence[Comparison], rules: GapRules) -> pl.DataFrame:
    """Return the table of comparisons, with p-values adjusted together, and verdicts.

    The rows of each comparison follow the rows of the one before.
    """
    if not parts:
        return pl.DataFrame(schema=COMPARISON_SCHEMA)
    p_values, repeats = (
        [each.columns["p_value"] for each in parts],
        [each.repeats for each in parts],
    )
    adjusted = adjust_together(p_values, rules.adjust, repeats)
    number = families.count_tests(np.concatenate(p_values), rules.adjust, np.concatenate(repeats))
    judged = [
        _judge_comparison(each, p_adjusted, number, rules)
        for each, p_adjusted in zip(parts, adjusted, strict=True)
    ]
    # One table for all rows, since making a table takes longer than its arithmetic
    labels = pl.concat([each.partition.labels for each in parts], how="vertical_relaxed")
    numbers, texts = dict[str, Array](), dict[str, list[str | None]]()
    for name in dict.fromkeys(name for each, _ in judged for name in each):
        values = [each.get(name, np.full(each["gap"].shape, np.nan)) for each, _ in judged]
        numbers[name] = np.concatenate(values)
    for name in ("metric", "reference", "verdict", "reason"):
        texts[name] = [text for _, each in judged for text in each[name]]
    return make_rows(labels, numbers, texts)


def _judge_comparison(
    comparison: Comparison, p_adjusted: Array, number: int, rules: GapRules
) -> tuple[dict[str, Array], dict[str, list[str | None]]]:
    """Return the numbers and the texts of a comparison, given the number of tests."""
    pair, partition, level = comparison.pair, comparison.partition, rules.level
    gap = comparison.columns["gap"]
    picked_from = partition.picked_from
    # Each pair of the segments from which a reference was picked gets its share of the error.
    tests = number if picked_from is None else number * max(picked_from, 2) / 2
    limits = pair.contrast.limits(*(level.quantile(df, tests=tests, tails=1) for df in pair.df))
    has_limits = comparison.enough & ~comparison.few_rows
    equivalent = has_limits & pair.are_equivalent(limits, rules.margin)
    once = level.at_planned_rows()
    detectable = pair.detect(once.quantile(comparison.test_df, tests=tests))
    detectable = pair.contrast.share * detectable + pair.contrast.slack
    verdict = families.judge(p_adjusted, equivalent, level)
    known = ~np.isnan(gap)
    decided = partition.same_decision(comparison.metric) is None
    numbers = {
        **comparison.columns,
        "p_adjusted": p_adjusted,
        "detectable": np.where(has_limits & known, detectable, np.nan),
    }
    texts: dict[str, list[str | None]] = {
        "metric": [comparison.metric] * gap.size,
        "reference": [partition.reference_name] * gap.size,
        "verdict": [
            word if told else None for word, told in zip(verdict, known & decided, strict=True)
        ],
        "reason": _find_reasons(comparison, verdict, rules),
    }
    return numbers, texts


def _find_reasons(
    comparison: Comparison, verdict: NDArray[np.str_], rules: GapRules
) -> list[str | None]:
    """Return why each segment has no verdict or no test; None where it has both."""
    columns, partition = comparison.columns, comparison.partition
    unknown = np.isnan(columns["gap"])
    inconclusive = ~unknown & (verdict == families.INCONCLUSIVE)
    has_values = ~np.isnan(columns["value"]) & ~np.isnan(columns["reference_value"])
    is_own = partition.reference.is_own(unknown.size)
    twins = partition.find_pair(comparison.metric)
    repeated = "" if twins is None else partition.names[twins[0]]
    fewest = int(rules.level.fewest_rows(comparison.pair.fewest_rows))
    same = partition.same_decision(comparison.metric)
    few = [(comparison.few_rows, few_rows(fewest)), *comparison.pair.obstacles]
    no_variance = explain_unknown_variance(partition.segments.units, NO_VARIANCE)
    return choose_texts(
        [
            (unknown & is_own, comparisons.THE_REFERENCE),
            (unknown & (partition.reference_name is None), comparisons.NO_REFERENCE),
            (unknown & comparison.one_class, ONE_CLASS),
            (unknown & has_values, no_variance),
            (unknown, UNDEFINED),
            (same is not None, same),
            *((inconclusive & holds, why) for holds, why in [*comparison.too_small, *few]),
            (inconclusive & np.isnan(columns["gap_low"]), no_variance),
            (comparison.repeats, comparisons.REPEATS + repeated),
            (comparison.pair.few_events, FEW_EVENTS),
        ]
    )
