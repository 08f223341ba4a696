"""Findings of an audit in plain sentences, with both values and what they may be by chance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polars_wroc.audits.segment_keys import segment_in_words
from polars_wroc.audits.words import Words
from polars_wroc.groups.min_rows import GAP_METRICS
from polars_wroc.inputs.names import MODEL

# Gaps below this are written with a decimal.
_SMALL = 0.02
_PAIRS = "auc"
IMPACT_RATIO = "impact_ratio"
# Why precisions are not compared.
ONE_CLASS = "one class only"
# Why segments are compared with no other: it is left out, or none has enough rows.
NO_REFERENCE = "no reference shown"


def sentence_of(finding: Mapping[str, Any], words: Words) -> str:
    """Write a finding as a sentence or two."""
    segment = segment_in_words(finding["attribute"], finding["segment"])
    if finding["metric"] == IMPACT_RATIO:
        return f"{_by_score(finding)}{_of_impact(finding, segment, words)}"
    metric = GAP_METRICS[finding["metric"]]
    if finding["verdict"] == "not compared":
        return not_compared(finding, metric.label, segment, words)
    both = metric.comparison.format(
        positive=words.positive,
        negative=words.negative,
        value=share(finding, "value"),
        other=share(finding, "reference_value"),
        segment=segment,
        rest=words.reference(finding),
        selected=words.selected,
        rejected=words.rejected,
    )
    return f"{_by_score(finding)}{both}{_conclusion(finding, words)}"


def not_compared(finding: Mapping[str, Any], label: str, segment: str, words: Words) -> str:
    """Say why a metric is not compared."""
    if finding["reason"] == "the reference":
        return f"The {label} of the others is compared with that of {segment}."
    if finding["reason"] == NO_REFERENCE:
        return f"The {label} of {segment} is not compared, as no reference is shown."
    if finding["reason"] == ONE_CLASS:
        return (
            f"The {label} of {segment} is not compared, as its rows or those of "
            f"{words.reference(finding)} are of one class only."
        )
    return f"The {label} of {segment}, or of {words.reference(finding)}, is undefined."


def _by_score(finding: Mapping[str, Any]) -> str:
    return f"Model {finding[MODEL]}: " if MODEL in finding else ""


def _of_impact(finding: Mapping[str, Any], segment: str, words: Words) -> str:
    """Compare how often a category has the good decision with the one that has it most often."""
    reason = finding["reason"]
    if finding["verdict"] == "not compared":
        if reason == "the reference":
            return f"Impact ratios refer to {segment}, the most often {words.good}."
        return f"{segment} has no impact ratio: {reason}."
    own, other = (f"{100 * finding[name]:.0f}%" for name in ("value", "reference_value"))
    reference = segment_in_words(finding["attribute"], finding["reference"])
    ratio, low, high = (finding[f"ratio{end}"] for end in ("", "_low", "_high"))
    limits = "" if low is None or high is None else f" ({low:.2f} to {high:.2f})"
    text = (
        f"{own} are {words.good} in {segment}, {other} in {reference}, the most: a ratio of "
        f"{ratio:.2f}{limits}"
    )
    if finding["verdict"] == "different":
        missing = abs(finding["reference_value"] - finding["value"]) * finding["n_behind"]
        return (
            f"{text}, surely below four fifths. At the rate of {reference}, {missing:,.0f} more of "
            f"{finding['n_behind']:,} would {_be(words.good)}."
        )
    if finding["verdict"] == "alike":
        return f"{text}, surely at least four fifths."
    why = f", with {reason}" if reason else ""
    return f"{text}. Too little data to tell whether that is below four fifths{why}."


def _be(decision: str | None) -> str:
    what = decision or ""
    return f"not be {what[4:]}" if what.startswith("not ") else f"be {what}"


def _conclusion(finding: Mapping[str, Any], words: Words) -> str:
    gap, low, high = (finding[name] for name in ("gap", "gap_low", "gap_high"))
    if finding["verdict"] == "alike":
        return f": alike within {_counted(size(words.margin), finding)}."
    if finding["verdict"] == "too little data":
        why = f", with {finding['reason']}" if finding["reason"] else ""
        if low is None:
            return f". Too little data to tell{why}."
        span = span_of(low, high, finding)
        if low * high > 0 and not why:
            why = ", as it is one of many comparisons"
        return f". Too little data to tell{why}: {span}."
    limits = "" if low is None else f" ({_limits(low, high, gap, finding)})"
    return f": {_signed(gap, finding)}{limits}."


def _limits(low: float, high: float, gap: float, finding: Mapping[str, Any]) -> str:
    """Write limits of one direction as sizes, and others with theirs."""
    if low * high <= 0:
        return span_of(low, high, finding)
    ends = (low, high) if gap > 0 else (-high, -low)
    decimals = decimals_of(gap)
    return " to ".join(f"{100 * end:.{decimals}f}" for end in ends)


def span_of(low: float, high: float, finding: Mapping[str, Any]) -> str:
    """Say how far the interval reaches."""
    decimals = decimals_of(max(abs(low), abs(high)))
    first, last = (f"{abs(100 * end):.{decimals}f}" for end in (low, high))
    if low < 0 < high:
        return f"from {_counted(first, finding)} fewer to {last} more"
    direction = "more" if low >= 0 else "fewer"
    ends = (first, last) if low >= 0 else (last, first)
    return f"{ends[0]} to {_counted(ends[1], finding)} {direction}"


def _signed(gap: float, finding: Mapping[str, Any]) -> str:
    return f"{_counted(size(gap), finding)} {'more' if gap > 0 else 'fewer'}"


def _counted(number: str, finding: Mapping[str, Any]) -> str:
    unit = "pair" if finding["metric"] == _PAIRS else "point"
    return f"{number} {unit}{'' if number == '1' else 's'}"


def size(gap: float) -> str:
    """Write a difference of proportions in points, without its sign."""
    return f"{abs(100 * gap):.{decimals_of(gap)}f}"


def decimals_of(gap: float | None) -> int:
    """Say how many decimals points are written with."""
    return 1 if gap is not None and 0 < abs(gap) < _SMALL else 0


def share(finding: Mapping[str, Any], column: str) -> str:
    """Write a proportion in whole percents; with a decimal where the gap is small."""
    text = f"{100 * finding[column]:.{decimals_of(finding['gap'])}f}"
    return text if finding["metric"] == _PAIRS else f"{text}%"
