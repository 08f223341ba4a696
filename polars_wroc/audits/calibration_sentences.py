"""Findings on calibration in plain sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polars_wroc.audits.calibration_tests import CALIBRATION_METRICS, right_slopes
from polars_wroc.audits.phrases import capitalised
from polars_wroc.audits.segment_keys import name_of
from polars_wroc.audits.sentences import decimals_of, share
from polars_wroc.curves.calibration_fit import SLOPE
from polars_wroc.inputs.names import MODEL


def is_of_calibration(finding: Mapping[str, Any]) -> bool:
    """Whether a finding is on calibration."""
    return finding["metric"] in CALIBRATION_METRICS


def calibration_sentence(finding: Mapping[str, Any], margin: float) -> str:
    """Write a finding on calibration as a sentence or two."""
    segment = f"{finding['attribute']} {name_of(finding['segment'])}"
    model = f"Model {finding[MODEL]}, " if MODEL in finding else ""
    of_slope = finding["metric"] == SLOPE
    text = _of_slope(finding, margin) if of_slope else _in_the_large(finding, margin)
    sentence = f"{model}{segment}: {text}"
    return capitalised(sentence)


def in_short(finding: Mapping[str, Any]) -> str:
    """Say in a few words what is not right."""
    if finding["metric"] == SLOPE:
        return f"its slope is {finding['value']:.2f}, not 1"
    value, observed = (share(finding, name) for name in ("value", "reference_value"))
    return f"the score promises {value}, and {observed} came true"


def _in_the_large(finding: Mapping[str, Any], margin: float) -> str:
    verdict = finding["verdict"]
    if verdict == "not compared":
        return "what the score promises, or what came true, is undefined."
    value, observed = (share(finding, name) for name in ("value", "reference_value"))
    both = f"the score promises {value} on average, {observed} came true"
    if verdict == "alike":
        return f"{both}: right within {_points(margin)}."
    gap, low, high = (finding[name] for name in ("gap", "gap_low", "gap_high"))
    decimals = decimals_of(gap)
    if verdict == "different":
        ends = (low, high) if gap > 0 else (-high, -low)
        limits = " to ".join(f"{100 * end:.{decimals}f}" for end in ends)
        return f"{both}: {_too(gap, decimals)} ({limits})."
    span = "" if low is None else f": from {_too(low, decimals)} to {_too(high, decimals)}"
    return f"{both}. Too little data to tell{_why(finding)}{span}."


def _of_slope(finding: Mapping[str, Any], margin: float) -> str:
    slope, verdict = finding["value"], finding["verdict"]
    if verdict == "not compared":
        return "the slope is undefined."
    ends = (finding[name] for name in ("gap_low", "gap_high"))
    low, high = (None if end is None else f"{1 + end:.2f}" for end in ends)
    limits = "" if low is None else f", {low} to {high}"
    numbers = f"(slope {slope:.2f}{limits}; 1 is right)"
    if verdict == "different":
        return f"differences between scores are too {'large' if slope < 1 else 'small'} {numbers}."
    if verdict == "alike":
        least, most = right_slopes(margin)
        return f"differences between scores are right within {least:.2f} to {most:.2f} {numbers}."
    return (
        f"too little data to tell if differences between scores are right{_why(finding)} {numbers}."
    )


def _why(finding: Mapping[str, Any]) -> str:
    if finding["reason"]:
        return f", with {finding['reason']}"
    alone = finding["gap_low"] * finding["gap_high"] > 0
    several = finding["p_adjusted"] > finding["p_value"]
    return ", as it is one of many comparisons" if alone and several else ""


def _too(size: float, decimals: int) -> str:
    return f"{_points(size, decimals)} too {'high' if size > 0 else 'low'}"


def _points(size: float, decimals: int | None = None) -> str:
    number = f"{abs(100 * size):.{decimals_of(size) if decimals is None else decimals}f}"
    return f"{number} point{'' if number == '1' else 's'}"
