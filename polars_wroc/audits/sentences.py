"""Findings of an audit in plain sentences, with both values and what they may be by chance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polars_wroc.audits.calibration_tests import right_slopes
from polars_wroc.audits.tables import segment_in_words
from polars_wroc.audits.words import Words
from polars_wroc.groups.comparisons import (
    AT_LEAST_FOUR_FIFTHS,
    BELOW_FOUR_FIFTHS,
    CALIBRATION,
    FAIRNESS,
    GAP_METRICS,
    IMPACT_RATIO,
    METRICS,
    NO_REFERENCE,
    ONE_CLASS,
    SMALL_SHARE,
    SMD,
    TARGET,
    THE_REFERENCE,
)
from polars_wroc.inputs.columns import OVERALL
from polars_wroc.inputs.reasons import EVERYBODY, NOBODY
from polars_wroc.metrics.calibration import SLOPE
from polars_wroc.stats.families import DIFFERENT, EQUIVALENT, INCONCLUSIVE

# Gaps below this are written with a decimal, and no number of points with more than two.
_SMALL, _MOST_DECIMALS = 0.02, 2
_PAIRS = "auc"
# The share of positives, which calibration is told with.
OBSERVED = "observed_rate"


def sentence_of(finding: Mapping[str, Any], words: Words) -> str | None:
    """Write a comparison as a sentence or two; None if nothing is compared."""
    name = finding["metric"]
    if name in CALIBRATION:
        text = _of_calibration(finding, words)
    elif name == IMPACT_RATIO:
        text = _of_impact(finding, words)
    elif name in FAIRNESS and finding["reason"] not in (NOBODY, EVERYBODY):
        text = _of_fairness(finding)
    elif name == SMD.name and finding["value"] is not None and finding["reason"] != THE_REFERENCE:
        text = _of_scores(finding, words)
    elif name in GAP_METRICS and finding["attribute"] != OVERALL:
        text = _of_gap(finding, words)
    else:
        return None
    return f"{words.model(finding)}{text}"


def is_target(finding: Mapping[str, Any]) -> bool:
    """Whether a finding is on all rows, which are compared with what is right."""
    return bool(finding["reference"] == TARGET and finding["attribute"] == OVERALL)


def _of_gap(finding: Mapping[str, Any], words: Words) -> str:
    metric = GAP_METRICS[finding["metric"]]
    segment = segment_in_words(finding["attribute"], finding["segment"])
    if finding["verdict"] is None:
        return not_compared(finding, metric.label, segment, words)
    both = metric.comparison.format(
        **vars(words),
        value=share(finding, "value", words),
        other=share(finding, "reference_value", words),
        segment=segment,
        rest=words.reference(finding),
    )
    return f"{both}{_conclusion(finding, words)}"


def _of_fairness(finding: Mapping[str, Any]) -> str:
    """Write a fairness metric, with the rates of both segments."""
    kind = "ratio" if finding["gap"] is None else "gap"
    own, other = (
        segment_in_words(finding["attribute"], finding[one]) for one in ("segment", "reference")
    )
    return (
        f"{METRICS[finding['metric']].label}: {finding[kind]:.2f}{limits_of(finding, kind)}, from "
        f"{finding['value']:.2f} in {own} and {finding['reference_value']:.2f} in {other}."
    )


def _of_scores(finding: Mapping[str, Any], words: Words) -> str:
    """Say how far the mean score of a segment is from that of its reference."""
    segment = segment_in_words(finding["attribute"], finding["segment"])
    value = finding["value"]
    side = "above" if value > 0 else "below"
    return (
        f"The mean score of {segment} is {abs(value):.2f} standard deviations {side} that of "
        f"{words.reference(finding)}{_of_sides(finding)}."
    )


def _of_sides(finding: Mapping[str, Any]) -> str:
    """Write the limits of a difference that is above or below, in brackets."""
    low, high = finding["value_low"], finding["value_high"]
    if low is None or high is None:
        return ""
    if low < 0 < high:
        return f" (from {-low:.2f} below to {high:.2f} above)"
    first, last = sorted((abs(low), abs(high)))
    return f" ({first:.2f} to {last:.2f})"


def limits_of(row: Mapping[str, Any], number: str, decimals: int = 2) -> str:
    """Write the limits of a number behind it, in brackets; nothing where they are not known."""
    low, high = (row[f"{number}_{end}"] for end in ("low", "high"))
    if low is None or high is None:
        return ""
    return f" ({low:.{decimals}f} to {high:.{decimals}f})"


def not_compared(finding: Mapping[str, Any], label: str, segment: str, words: Words) -> str:
    """Say why a metric is not compared."""
    if finding["reason"] == THE_REFERENCE:
        return f"The {label} of the others is compared with that of {segment}."
    if finding["reason"] == NO_REFERENCE:
        return f"The {label} of {segment} is not compared, as no reference is shown."
    if finding["reason"] == ONE_CLASS:
        return (
            f"The {label} of {segment} is not compared, as its rows or those of "
            f"{words.reference(finding)} are of one class only."
        )
    if finding["reason"] in (NOBODY, EVERYBODY):
        return f"The {label} of {segment} is not compared, as {finding['reason']}."
    return f"The {label} of {segment}, or of {words.reference(finding)}, is undefined."


def _of_impact(finding: Mapping[str, Any], words: Words) -> str:
    """Compare how often a category has the good decision with the one that has it most often."""
    segment = segment_in_words(finding["attribute"], finding["segment"])
    reason = finding["reason"]
    if finding["verdict"] is None:
        few = reason.startswith(SMALL_SHARE)
        if reason == THE_REFERENCE:
            return f"Impact ratios refer to {segment}, the most often {words.good}."
        why = f"under {reason.removeprefix(SMALL_SHARE)} of the rows" if few else reason
        return f"{segment} has no impact ratio: {why}."
    own, other = (f"{100 * finding[name]:.0f}%" for name in ("rate", "reference_rate"))
    reference = segment_in_words(finding["attribute"], finding["reference"])
    text = (
        f"{own} are {words.good} in {segment}, {other} in {reference}, the most: a ratio of "
        f"{finding['ratio']:.2f}{limits_of(finding, 'ratio')}"
    )
    if finding["verdict"] == BELOW_FOUR_FIFTHS:
        text = f"{text}, with its whole interval below four fifths."
        if words.weighted:
            # A weighted rate is not that of these rows.
            return text
        missing = abs(finding["reference_rate"] - finding["rate"]) * finding["n"]
        return (
            f"{text} At the rate of {reference}, {missing:,.0f} more of {finding['n']:,} would "
            f"{_be(words.good)}."
        )
    if finding["verdict"] == AT_LEAST_FOUR_FIFTHS:
        return f"{text}, with its whole interval at least four fifths."
    why = f", with {reason}" if reason else ""
    return f"{text}. Whether that is below four fifths is inconclusive{why}."


def _be(decision: str | None) -> str:
    what = decision or ""
    return f"not be {what[4:]}" if what.startswith("not ") else f"be {what}"


def _conclusion(finding: Mapping[str, Any], words: Words) -> str:
    low, high = finding["gap_low"], finding["gap_high"]
    if finding["verdict"] == EQUIVALENT:
        return f": equivalent within {_counted(margin_in_points(words.margin), finding)}."
    if finding["verdict"] == INCONCLUSIVE:
        why = f", with {finding['reason']}" if finding["reason"] else ""
        if low is None:
            return f". Inconclusive{why}.{_needed(finding)}"
        span = _span_of_gap(finding, words)
        if low * high > 0 and not why:
            why = ", as it is one of many comparisons"
        return f". Inconclusive{why}: {span}.{_needed(finding)}"
    return f": {gap_with_limits(finding, words)}."


def gap_with_limits(finding: Mapping[str, Any], words: Words) -> str:
    """Say how much more or less it is, with its limits if they are known."""
    gap, low, high = (finding[name] for name in ("gap", "gap_low", "gap_high"))
    size_of_gap = size(gap, decimals_of(finding, words.margin))
    text = f"{_counted(size_of_gap, finding)} {'more' if gap > 0 else 'fewer'}"
    if low is None:
        return text
    limits = _span_of_gap(finding, words) if low * high <= 0 else _ends(finding, words)
    return f"{text} ({limits})"


# What is known of the rows that would tell.
NEEDED = ("factor", "needed", "sampling_unit")
_UNITS = {
    "selected": "selected rows",
    "rejected": "rows that are not selected",
}


def _needed(finding: Mapping[str, Any]) -> str:
    """Say how many times as many rows would tell, and how many that are of the segment."""
    factor, number, unit = map(finding.get, NEEDED)
    if factor is None or factor <= 1:
        return ""
    times, rows = (f"{float(f'{each:.2g}'):,g}" for each in (factor, number))
    return (
        f" About {times} times as many rows would tell: {rows} {_UNITS.get(str(unit), unit)} in "
        "this segment."
    )


def _span_of_gap(finding: Mapping[str, Any], words: Words) -> str:
    """Say how far the interval of a gap reaches, in points or pairs."""
    low, high = finding["gap_low"], finding["gap_high"]
    first, last = _sizes(finding, words)
    if low < 0 < high:
        return f"from {_counted(first, finding)} fewer to {last} more"
    nearer, farther = (first, last) if low >= 0 else (last, first)
    return f"{nearer} to {_counted(farther, finding)} {'more' if low >= 0 else 'fewer'}"


def _counted(number: str, finding: Mapping[str, Any]) -> str:
    unit = "pair" if finding["metric"] == _PAIRS else "point"
    return f"{number} {unit}{'' if number == '1' else 's'}"


def margin_in_points(margin: float) -> str:
    """Write the margin with the digits that it was given."""
    return f"{100 * margin:.12g}"


def size(gap: float, decimals: int | None = None) -> str:
    """Write a difference of proportions in points, without its sign; small ones with a decimal."""
    if decimals is None:
        decimals = int(0 < abs(gap) < _SMALL)
    return f"{abs(100 * gap):.{decimals}f}"


def decimals_of(finding: Mapping[str, Any], margin: float) -> int:
    """Return the decimals of a gap and its limits in points: the fewest that read right."""
    decimals = int(_is_small(finding))
    while decimals < _MOST_DECIMALS and not _keep_sides(finding, margin, decimals):
        decimals += 1
    return decimals


def _is_small(finding: Mapping[str, Any]) -> bool:
    """Whether a gap is small, or its interval narrow, so that whole points are too coarse."""
    gap, low, high = (finding.get(name) for name in ("gap", "gap_low", "gap_high"))
    if gap is not None and 0 < abs(gap) < _SMALL:
        return True
    return low is not None and high is not None and bool(0 < high - low < _SMALL)


def _keep_sides(finding: Mapping[str, Any], margin: float, decimals: int) -> bool:
    """Whether rounded numbers are on the side of the margin, and of 0, where exact ones are."""
    gap, low, high = (finding.get(name) for name in ("gap", "gap_low", "gap_high"))
    if gap is not None:
        reaches = abs(_in_points(gap, decimals)) >= _in_points(margin, 9)
        if reaches != (abs(gap) >= margin):
            return False
    if low is None or high is None or low * high <= 0:
        return True
    return _in_points(low, decimals) * _in_points(high, decimals) != 0


def _in_points(number: float, decimals: int) -> float:
    return float(f"{100 * number:.{decimals}f}")


def share(finding: Mapping[str, Any], column: str, words: Words) -> str:
    """Write one of two proportions in percents, so that rounded ones differ by the rounded gap."""
    decimals = decimals_of(finding, words.margin)
    own, other, gap = (finding[name] for name in ("value", "reference_value", "gap"))
    text = _in_percents(finding[column], (own, other, gap), decimals)
    return text.removesuffix("%") if finding["metric"] == _PAIRS else text


def _in_percents(
    number: float, difference: tuple[float | None, float | None, float | None], decimals: int
) -> str:
    """Write a term of a difference, with one more decimal if it would not come out."""
    if None not in difference:
        first, second, result = (_in_points(one or 0.0, decimals) for one in difference)
        decimals += round(first - second - result, decimals) != 0
    return f"{100 * number:.{decimals}f}%"


def _of_calibration(finding: Mapping[str, Any], words: Words) -> str:
    of_slope, of_all = finding["metric"] == SLOPE, is_target(finding)
    segment = segment_in_words(finding["attribute"], finding["segment"])
    if finding["verdict"] is None:
        label = CALIBRATION[finding["metric"]].label
        undefined = f"The {label} of all rows is undefined."
        return undefined if of_all else not_compared(finding, label, segment, words)
    of_slopes = _slope_of_all if of_all else _slope
    text = of_slopes(finding, words) if of_slope else _mean(finding, words)
    return f"{'Overall,' if of_all else f'{segment}:'} {text}"


def in_short(finding: Mapping[str, Any], words: Words) -> str:
    """Say in a few words how a segment differs from its reference."""
    of_slope = finding["metric"] == SLOPE
    if of_slope:
        return f"{_both_slopes(finding, words)}{_in_brackets(finding, words)}"
    return f"the score is {_both(finding, words)}{_by_how_much(finding, words)}"


def _slope_of_all(finding: Mapping[str, Any], words: Words) -> str:
    slope, verdict = finding["value"], finding["verdict"]
    ends = [finding[name] for name in ("gap_low", "gap_high")]
    limits = "" if None in ends else f" ({' to '.join(f'{1 + end:.2f}' for end in ends)})"
    if verdict == DIFFERENT:
        signs = ("high", "low") if slope < 1 else ("low", "high")
        return (
            f"the score is {_confidence(slope)}: its slope is {slope:.2f}{limits}, not 1: high "
            f"scores are too {signs[0]} and low ones too {signs[1]}."
        )
    both = f"the slope of the score is {slope:.2f}{limits}"
    if verdict == EQUIVALENT:
        return f"{both}: right within {_factors(words)}."
    return f"{both}, where 1 is right. Inconclusive{_why(finding)}."


def _slope(finding: Mapping[str, Any], words: Words) -> str:
    slope, gap, verdict = (finding[name] for name in ("value", "gap", "verdict"))
    both = _both_slopes(finding, words)
    if verdict == DIFFERENT:
        more = "more" if (gap < 0) == (slope < 1) else "less"
        return (
            f"{both}, so that it is {more} {_confidence(slope)} here{_in_brackets(finding, words)}."
        )
    if verdict == EQUIVALENT:
        return f"{both}: equivalent within {_factors(words)}."
    return f"{both}. Inconclusive{_why(finding)}{_span(finding, words)}."


def _mean(finding: Mapping[str, Any], words: Words) -> str:
    of_all, verdict = is_target(finding), finding["verdict"]
    text = _predicted(finding, words)
    if not of_all:
        text = f"{text}: {_both(finding, words)}"
    if verdict == EQUIVALENT:
        within = f"within {margin_in_points(words.margin)} points"
        return f"{text}: right {within}." if of_all else f"{text}, equivalent {within}."
    if verdict == DIFFERENT:
        if not of_all:
            return f"{text}{_by_how_much(finding, words)}."
        return f"{text}: {_off(finding, 'value', words)} ({_ends(finding, words)})."
    what = " if that is right" if of_all else ""
    return f"{text}. Inconclusive{what}{_why(finding)}{_span(finding, words)}."


def _by_how_much(finding: Mapping[str, Any], words: Words) -> str:
    """Say by how many points a segment's score is off otherwise than that of the reference."""
    low, high = finding["gap_low"], finding["gap_high"]
    if low is None or high is None:
        return ""
    if low * high <= 0:
        return _in_brackets(finding, words)
    return f", a difference of {_ends(finding, words)} points"


def _both_slopes(finding: Mapping[str, Any], words: Words) -> str:
    slope, other = finding["value"], finding["reference_value"]
    return f"the slope of the score is {slope:.2f}, {other:.2f} in {words.reference(finding)}"


def _both(finding: Mapping[str, Any], words: Words) -> str:
    own, other = (_off(finding, name, words) for name in ("value", "reference_value"))
    return f"{own}, against {other} in {words.reference(finding)}"


def _predicted(finding: Mapping[str, Any], words: Words) -> str:
    """Say what the score predicts, and what happened."""
    observed, off = finding[OBSERVED], finding["value"]
    difference = observed + off, observed, off
    decimals = decimals_of(finding, words.margin)
    mean, rate = (_in_percents(one, difference, decimals) for one in difference[:2])
    return f"the score predicts {mean} on average, and {rate} were {words.positive}"


def _off(finding: Mapping[str, Any], name: str, words: Words) -> str:
    """Say by how much the mean of a score is off."""
    text = _points(finding[name], decimals_of(finding, words.margin))
    if not float(text.split()[0]):
        return "about right"
    return f"{text} too {'high' if finding[name] > 0 else 'low'}"


def _confidence(slope: float) -> str:
    if slope < 0:
        return "backwards"
    return "overconfident" if slope < 1 else "underconfident"


def _factors(words: Words) -> str:
    least, most = right_slopes(words.margin)
    return f"a factor of {least:.2f} to {most:.2f}"


def _why(finding: Mapping[str, Any]) -> str:
    if finding["reason"]:
        return f", with {finding['reason']}"
    alone = finding["gap_low"] * finding["gap_high"] > 0
    several = finding["p_adjusted"] > finding["p_value"]
    return ", as it is one of many comparisons" if alone and several else ""


def _in_brackets(finding: Mapping[str, Any], words: Words) -> str:
    return _span(finding, words, " ({})")


def _span(finding: Mapping[str, Any], words: Words, form: str = ": {}") -> str:
    """Say how far the interval of a gap reaches, after a colon; empty without an interval."""
    low, high = finding["gap_low"], finding["gap_high"]
    if low is None or high is None:
        return ""
    below, above = ("too low", "too high") if is_target(finding) else ("lower", "higher")
    unit = "" if finding["metric"] == SLOPE else " points"
    if low < 0 < high:
        first, last = _sizes(finding, words)
        one = unit.removesuffix("s") if first == "1" else unit
        return form.format(f"from {first}{one} {below} to {last} {above}")
    return form.format(f"{_ends(finding, words)}{unit} {above if low >= 0 else below}")


def _ends(finding: Mapping[str, Any], words: Words) -> str:
    """Write the limits of a gap on one side of 0 as sizes, the smaller one first."""
    low, high = _sizes(finding, words)
    return f"{low} to {high}" if finding["gap"] > 0 else f"{high} to {low}"


def _sizes(finding: Mapping[str, Any], words: Words) -> tuple[str, str]:
    """Write the sizes of both limits of a gap."""
    low, high = finding["gap_low"], finding["gap_high"]
    if finding["metric"] == SLOPE:
        return f"{abs(low):.2f}", f"{abs(high):.2f}"
    decimals = decimals_of(finding, words.margin)
    return size(low, decimals), size(high, decimals)


def _points(gap: float, decimals: int) -> str:
    number = size(gap, decimals)
    return f"{number} point{'' if number == '1' else 's'}"
