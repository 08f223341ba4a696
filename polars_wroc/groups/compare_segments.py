"""The comparison table: a row for each segment and metric, tested and judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from polars_wroc.arrays import Array, Mask
from polars_wroc.checks import MARGIN
from polars_wroc.groups.comparisons import (
    CALIBRATION,
    COMPARISON_SCHEMA,
    FEW_EVENTS,
    GAPS_ON_REQUEST,
    NO_REFERENCE,
    REPEATS,
    SHIFTS,
    THE_REFERENCE,
)
from polars_wroc.inputs.metric import SampleSize
from polars_wroc.inputs.reasons import NO_VARIANCE, ONE_CLASS, UNDEFINED, few_rows
from polars_wroc.metrics.pairs import Pair, pair_metric
from polars_wroc.metrics.segments import Segments
from polars_wroc.stats.estimates import Limits
from polars_wroc.stats.families import (
    INCONCLUSIVE,
    Adjustment,
    adjust_p_values,
    count_tests,
    judge,
)
from polars_wroc.stats.levels import Level, adjust_picked
from polars_wroc.stats.references import Reference
from polars_wroc.thresholds.registry import THRESHOLD_METRICS

_METRICS = GAPS_ON_REQUEST | SHIFTS | CALIBRATION


@dataclass(frozen=True)
class GapRules:
    """How gaps are tested and judged."""

    level: Level
    adjust: Adjustment = "holm"
    margin: float = MARGIN
    min_rows: int = 0


@dataclass(frozen=True)
class Partition:
    """Segments that are compared with each other, and what each is compared with.

    ``labels`` are the columns that name the segments, and ``names`` their names in texts.
    ``picked_from`` is the number of segments that the reference was picked from as the best.
    """

    labels: pl.DataFrame
    names: Sequence[str]
    segments: Segments
    reference: Reference
    reference_name: str | None
    picked_from: int | None = None

    def same_decision(self, metric: str) -> str | None:
        """Return why a metric tells nothing of the segments: all have the same decision."""
        if metric not in THRESHOLD_METRICS:
            return None
        return self.segments.same_decision(THRESHOLD_METRICS[metric])

    def find_pair(self, metric: str) -> tuple[int, int] | None:
        """Return the places of two segments that are each compared with the other alone."""
        places = np.flatnonzero(self.segments.have_rows(_METRICS[metric]))
        if not self.reference.is_mutual or len(places) != 2:  # noqa: PLR2004
            return None
        return int(places[0]), int(places[1])


@dataclass(frozen=True)
class Comparison:
    """The rows of one metric of the segments of a partition, before they are judged.

    ``test_df`` are the degrees of freedom of the tests, for which the segment or its reference may
    be ``too_small``, with a reason for each kind of rows. Where there are ``few_rows``, there are
    no limits; ``repeats`` marks tests that duplicate another, and ``one_class`` values that no
    decision could change, which are not compared.
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
        """Where there are enough rows for a test."""
        return np.asarray(~np.logical_or.reduce([holds for holds, _ in self.too_small]))


def compare_segments(metric: str, partition: Partition, rules: GapRules) -> Comparison:
    """Return a metric of segments beside their references, with limits and a p-value."""
    pair = pair_metric(GAPS_ON_REQUEST[metric], partition.segments, partition.reference)
    return compare_pair(metric, pair, partition, rules)


def compare_pair(metric: str, pair: Pair, partition: Partition, rules: GapRules) -> Comparison:
    """Return a given pair with limits and a p-value, as `compare_segments` does."""
    segments, reference = partition.segments, partition.reference
    kind, contrast = _METRICS[metric], pair.contrast
    sizes = segments.sizes(kind)
    other_sizes = {each: reference.add_others(size) for each, size in sizes.items()}
    too_small = _find_too_small(sizes, other_sizes, rules.min_rows)
    if reference.includes_own:
        other_sizes = {each: size + other_sizes[each] for each, size in sizes.items()}
    n, n_reference = (np.add.reduce([*each.values()]) for each in (sizes, other_sizes))
    fewest, fewest_others = (np.minimum.reduce([*each.values()]) for each in (sizes, other_sizes))
    own_holds = np.ones(n.shape, dtype=bool)
    both_hold, few = own_holds, ~own_holds
    if pair.is_wald:
        # A target has no rows.
        rows = pair.effective_rows or (fewest, np.fmin(fewest, fewest_others))
        own_holds = rules.level.enough(rows[0], least=pair.fewest_rows)
        both_hold = rules.level.enough(*rows, least=pair.fewest_rows)
        few = ~both_hold & ~np.isnan(np.minimum(*rows))
    shown = contrast.own.limits(np.where(own_holds, rules.level.quantile(contrast.own.df), np.nan))
    own_quantile, other_quantile = gap_quantiles(pair, rules.level, partition.picked_from)
    quantiles = (
        np.where(both_hold, own_quantile, np.nan),
        np.where(both_hold, other_quantile, np.nan),
    )
    gap = contrast.limits(*quantiles)
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
        compared |= _find_ratios(pair, quantiles)
    test = pair.test(rules.level)
    enough = ~np.logical_or.reduce([holds for holds, _ in too_small])
    testable = enough & contrast.sign_is_known & both_hold
    if partition.same_decision(metric) is not None:
        testable = np.zeros(n.shape, dtype=bool)
    # Two segments compared with each other are one test, unless the reference includes the segment.
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


def _find_ratios(pair: Pair, quantiles: tuple[Array, Array]) -> dict[str, Array]:
    low, high = pair.contrast.ratio_limits(*quantiles)
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
    """Return p-values that allow for a picked reference; two that are one test are the same."""
    if picked_from is not None:
        return adjust_picked(p_value, np.full(p_value.shape, picked_from), level)
    if twins is not None:
        places = list(twins)
        p_value[places] = np.fmax.reduce(p_value[places])
    return p_value


def add_verdicts(comparisons: Sequence[Comparison], rules: GapRules) -> pl.DataFrame:
    """Return the table of comparisons, with p-values adjusted together, and verdicts.

    The rows of one comparison come after the rows of another.
    """
    if not comparisons:
        return pl.DataFrame(schema=COMPARISON_SCHEMA)
    p_values = np.concatenate([each.columns["p_value"] for each in comparisons])
    repeats = np.concatenate([each.repeats for each in comparisons])
    adjusted = adjust_p_values(p_values, rules.adjust, repeats)
    number = count_tests(p_values, rules.adjust, repeats)
    ends = np.cumsum([each.repeats.size for each in comparisons])[:-1]
    judged = [
        _judge_comparison(each, p_adjusted, number, rules)
        for each, p_adjusted in zip(comparisons, np.split(adjusted, ends), strict=True)
    ]
    # One table of all rows, since a table of each comparison takes longer than its arithmetic
    labels = pl.concat([each.partition.labels for each in comparisons], how="vertical_relaxed")
    names = dict.fromkeys(name for each in judged for name in each.numbers)
    columns = []
    for name in names:
        parts = [
            each.numbers.get(name, np.full(one.repeats.size, np.nan))
            for one, each in zip(comparisons, judged, strict=True)
        ]
        columns.append(pl.Series(name, np.concatenate(parts), pl.Float64).fill_nan(None))
    for name in judged[0].texts:
        texts = [text for each in judged for text in each.texts[name]]
        columns.append(pl.Series(name, texts, pl.String))
    return labels.hstack(columns)


class JudgedRows(NamedTuple):
    """The columns of the rows of a comparison: numbers, NaN where there is none, and texts."""

    numbers: Mapping[str, Array]
    texts: Mapping[str, Sequence[str | None]]


def _judge_comparison(
    comparison: Comparison, p_adjusted: Array, number: int, rules: GapRules
) -> JudgedRows:
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
    verdict = judge(p_adjusted, equivalent, level)
    known = ~np.isnan(gap)
    decided = partition.same_decision(comparison.metric) is None
    numbers = {
        **comparison.columns,
        "p_adjusted": p_adjusted,
        "detectable": np.where(has_limits & known, detectable, np.nan),
    }
    texts: dict[str, Sequence[str | None]] = {
        "metric": [comparison.metric] * gap.size,
        "reference": [partition.reference_name] * gap.size,
        "verdict": [
            word if holds and decided else None for word, holds in zip(verdict, known, strict=True)
        ],
        "reason": _find_reasons(comparison, verdict, rules),
    }
    return JudgedRows(numbers, texts)


def _find_reasons(
    comparison: Comparison, verdict: NDArray[np.str_], rules: GapRules
) -> list[str | None]:
    """Return why there is no verdict or no test of each segment, None where there is."""
    columns, partition = comparison.columns, comparison.partition
    gap = columns["gap"]
    known = ~np.isnan(gap)
    inconclusive = known & (verdict == INCONCLUSIVE)
    has_values = ~np.isnan(columns["value"]) & ~np.isnan(columns["reference_value"])
    is_own = partition.reference.is_own(gap.size)
    no_reference = np.full(gap.shape, partition.reference_name is None)
    twins = partition.find_pair(comparison.metric)
    repeated = "" if twins is None else partition.names[twins[0]]
    fewest = int(rules.level.fewest_rows(comparison.pair.fewest_rows))
    same = partition.same_decision(comparison.metric)
    cases = [
        (~known & is_own, THE_REFERENCE),
        (~known & no_reference, NO_REFERENCE),
        (~known & comparison.one_class, ONE_CLASS),
        (~known & has_values, NO_VARIANCE),
        (~known, UNDEFINED),
        *([(known, same)] if same is not None else []),
        *((inconclusive & holds, reason) for holds, reason in comparison.too_small),
        (inconclusive & comparison.few_rows, few_rows(fewest)),
        *((inconclusive & holds, reason) for holds, reason in comparison.pair.obstacles),
        (inconclusive & np.isnan(columns["gap_low"]), NO_VARIANCE),
        (comparison.repeats, REPEATS + repeated),
        (comparison.pair.few_events, FEW_EVENTS),
    ]
    reasons = np.full(gap.shape, None, dtype=object)
    # The first that holds is the reason.
    for holds, reason in reversed(cases):
        reasons[holds] = reason
    found: list[str | None] = reasons.tolist()
    return found
