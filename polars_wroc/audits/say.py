"""Sentences on comparisons: patterns, and the pieces that fill them.

A row is a row of the table of an audit, as a dict. `fill` puts pieces into the braces of a pattern;
each piece is written in one way only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from string import Formatter
from typing import Any, TypeAlias

from polars_wroc.audits.amounts import (
    find_digits,
    subtract_rounded,
    write_in_brackets,
    write_interval,
    write_margin,
    write_percent,
)
from polars_wroc.audits.calibration_tests import right_slopes
from polars_wroc.audits.words import Words
from polars_wroc.checks import FOUR_FIFTHS
from polars_wroc.documents.numbers import write_number, write_points, write_signed_size
from polars_wroc.documents.phrases import capitalise
from polars_wroc.groups import comparisons
from polars_wroc.groups.comparisons import IMPACT_RATIO, METRICS
from polars_wroc.inputs import reasons
from polars_wroc.inputs.columns import MODEL, OVERALL
from polars_wroc.metrics.calibration import CALIBRATION_ERROR, SLOPE
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.names import quote

ComparedRow: TypeAlias = Mapping[str, Any]
AUC, SELECTION_RATE = ROC_AUC.column, "selection_rate"
# Mean errors of scores that are called right, and slopes.
_RIGHT, _STRAIGHT = 0.005, 0.05
# The most decimals of a ratio near four fifths.
_MOST_DIGITS = 6

# A comparison that differs, as a sentence that names the group, with limits.
_HOW_MUCH = "{own}, against {other} of {others}, {size} {side}{limits}."
_AMONG = "among {kind}, {who} {be} {selected} {often}: " + _HOW_MUCH
_DIFFERS = "{who}, {heading}: {own}, against {other} of {others}; {size} {side}{limits}."
_SENTENCES = {
    SELECTION_RATE: "{who} {be} {selected} {often}: " + _HOW_MUCH,
    "tpr": _AMONG,
    "fpr": _AMONG,
    AUC: "the score ranks {who} {ranked}: AUC {own}, against {other} for {others}, {size} "
    "{side}{limits}.",
    IMPACT_RATIO: "{who} {be} {good} {ratio} times as often as {others}{limits}, {four_fifths}.",
    CALIBRATION_ERROR: "the scores of {who} {own_off}{limits}; those of {others} {others_off}.",
    SLOPE: "{own_slope_of_group}, against {other_slope} for {others}.",
}
# The first sentence of an answer, if it is a different one.
_LEADS = {
    CALIBRATION_ERROR: "the scores of {who} are too {high}: by {off} on average{limits}; those of "
    "{others} {others_off}."
}
# The same, as a line below the name of the group.
_LINE = "{heading}: {own}, against {other}; {size} {side}{limits}."
_LINES = {
    IMPACT_RATIO: "impact ratio: {ratio}{limits} of the rate of {others}, {four_fifths}.",
    CALIBRATION_ERROR: "scores {own_off}{limits}; those of {others} {others_off}.",
    SLOPE: "{own_slope}, against {other_slope} for {others}.",
}
# The same in a few words.
_IN_SHORT = "{heading} {signed_gap}"
_IN_SHORT_BY_METRIC = {
    IMPACT_RATIO: "impact ratio {ratio}",
    CALIBRATION_ERROR: "scores {off} too {high}",
    SLOPE: "slope of the scores {slope}",
}
# The calibration of all rows, which is compared with its target.
_SENTENCES_OF_ALL = {
    CALIBRATION_ERROR: "the scores of {who} {own_off}{limits}.",
    SLOPE: "{own_slope_of_group}.",
}
_LINES_OF_ALL = {CALIBRATION_ERROR: "scores {own_off}{limits}.", SLOPE: "{own_slope}."}
# Comparisons that show no difference that matters, or are inconclusive.
_BOTH = "{who}, {heading}: {own}, against {other} for {others}"
_BOTH_BY_METRIC = {
    IMPACT_RATIO: "{who} {be} {good} {ratio} times as often as {others}{limits}",
    CALIBRATION_ERROR: "the scores of {who} {own_off}; those of {others} {others_off}",
    SLOPE: "{who}, slope of the scores: {slope}, against {other_slope} for {others}",
}
_BOTH_OF_ALL = {
    CALIBRATION_ERROR: "the scores of {who} {own_off}",
    SLOPE: "the slope of the scores of {who} is {slope}, where 1 is right",
}


def write_sentence(row: ComparedRow, words: Words) -> str | None:
    """Return a row of the table as one or two sentences; None if nothing is compared."""
    metric = row["metric"]
    if metric in comparisons.FAIRNESS:
        text = _say_fairness(row, words)
    elif metric == comparisons.SMD.name:
        if row["value"] is None or row["reason"] == comparisons.THE_REFERENCE:
            return None
        text = _say_mean_scores(row, words)
    elif (
        metric in comparisons.CALIBRATION
        or metric == IMPACT_RATIO
        or (metric in comparisons.GAP_METRICS and row["attribute"] != OVERALL)
    ):
        text = _say_compared(row, words)
    else:
        return None
    return name_score(row, words) + text


def name_score(row: ComparedRow, words: Words) -> str:
    """Return the beginning of a sentence: the score it is about, if there are several."""
    return f"Score {quote(row[MODEL])}: " if words.several else ""


def write_first_sentence(row: ComparedRow, words: Words) -> str:
    """Return the first sentence of an answer, in which limits name their level."""
    metric = row["metric"]
    pattern = _LEADS.get(metric) or _SENTENCES.get(metric, _DIFFERS)
    pattern = pattern.replace("{limits}", "{first_limits}")
    if words.names_score(metric):
        pattern = f"with the score {{model}}, {pattern}"
    return fill_sentence(pattern, row, words)


def write_line(row: ComparedRow, words: Words) -> str:
    """Return a comparison that differs as one line, below the name of the group."""
    patterns = _LINES_OF_ALL if row["attribute"] == OVERALL else _LINES
    return fill_sentence(patterns.get(row["metric"], _LINE), row, words)


def write_in_short(row: ComparedRow, words: Words) -> str:
    """Return a comparison that differs in a few words, with the score if there are several."""
    text = fill(_IN_SHORT_BY_METRIC.get(row["metric"], _IN_SHORT), row, words)
    return f"{quote(str(row[MODEL]))} {text}" if words.names_score(row["metric"]) else text


def fill(pattern: str, row: ComparedRow, words: Words) -> str:
    """Return a pattern filled with the pieces of a comparison and with words."""
    pieces = {}
    for _, name, _, _ in Formatter().parse(pattern):
        if name is None:
            continue
        if name in _PIECES:
            pieces[name] = _PIECES[name](row)
        elif name in _WORDED_PIECES:
            pieces[name] = _WORDED_PIECES[name](row, words)
        else:
            pieces[name] = getattr(words, name)
    return pattern.format(**pieces)


def fill_sentence(pattern: str, row: ComparedRow, words: Words) -> str:
    """Return a filled pattern as the beginning of a sentence."""
    return capitalise(fill(pattern, row, words))


def _say_compared(row: ComparedRow, words: Words) -> str:
    """Return what a comparison shows, or why there is none."""
    metric, is_all = row["metric"], row["attribute"] == OVERALL
    if row["verdict"] is None:
        return _explain_missing(row, words)
    if row["verdict"] in comparisons.FINDINGS:
        sentences = _SENTENCES_OF_ALL if is_all else _SENTENCES
        return fill_sentence(sentences.get(metric, _DIFFERS), row, words)
    patterns = _BOTH_OF_ALL if is_all else _BOTH_BY_METRIC
    both = fill_sentence(patterns.get(metric, _BOTH), row, words)
    if row["verdict"] in comparisons.CLEARED:
        return f"{both}{_say_cleared(row, words)}."
    return f"{both}: inconclusive{_say_why(row, words)}.{_say_needed(row, words)}"


def _say_cleared(row: ComparedRow, words: Words) -> str:
    if row["verdict"] == comparisons.AT_LEAST_FOUR_FIFTHS:
        return f", {_compare_with_four_fifths(row)}"
    within = write_margin(words.margin)
    if row["metric"] == SLOPE:
        least, most = right_slopes(words.margin)
        within = f"a factor of {least:.2f} to {most:.2f}"
    if row["attribute"] == OVERALL:
        return f": shown to be right within {within}"
    return f": no difference that matters (within {within})"


def _say_why(row: ComparedRow, words: Words) -> str:
    """Return why a comparison is inconclusive: few rows, several comparisons, or its limits."""
    if row["reason"]:
        return f", {_say_few(row, words)}"
    if row["metric"] == IMPACT_RATIO:
        return f", since it is {_compare_with_four_fifths(row)}"
    if row["gap_low"] is None or row["gap_high"] is None:
        return ""
    one_sided = row["gap_low"] * row["gap_high"] > 0
    limits = _write_gap_limits(row, words)
    if one_sided:
        limits += fill(" {side}", row, words)
    if one_sided and (row["p_adjusted"] or 0) > (row["p_value"] or 0):
        return f" once all comparisons are allowed for ({limits})"
    return f" ({limits})"


def _say_few(row: ComparedRow, words: Words) -> str:
    """Return which side has too few rows for a test, or else the reason of the table."""
    reason: str = row["reason"]
    if not reason.startswith(reasons.FEW):
        return reason
    least = int(reason.removeprefix(reasons.FEW).split()[0].replace(",", ""))
    kinds = METRICS[row["metric"]].sample_sizes
    rows = words.name_rows(kinds[0]) if len(kinds) == 1 else f"{words.rows} of a class"
    is_other = row["n"] is not None and row["n"] >= least
    where = f"among {words.name_reference(row)}" if is_other else "in the group"
    return f"with fewer than {least} {rows} {where}"


# Sentences on the rows that would be enough.
NEEDED = ("factor", "needed", "sampling_unit")


def _say_needed(row: ComparedRow, words: Words) -> str:
    """Return how many times as many rows would be enough, and how many in the group."""
    factor, number, unit = map(row.get, NEEDED)
    if factor is None or number is None or unit is None or factor <= 1:
        return ""
    times, rows = (f"{float(f'{each:.2g}'):,g}" for each in (factor, number))
    return f" About {times} times as many are needed: {rows} {words.name_rows(unit)} in this group."


def _explain_missing(row: ComparedRow, words: Words) -> str:
    """Return why a metric of a group is not compared."""
    reason = row["reason"] or ""
    if row["attribute"] == OVERALL:
        return f"{METRICS[row['metric']].heading} of {words.everyone}: undefined."
    if reason == comparisons.THE_REFERENCE and row["metric"] == IMPACT_RATIO:
        return fill("Impact ratios refer to {who}, most often {good}.", row, words)
    others = words.name_reference(row)
    explanations = {
        comparisons.NO_REFERENCE: "no reference is shown",
        comparisons.UNKNOWN_REASON: "the value is not known",
        reasons.ONE_CLASS: f"all outcomes in the group or of {others} are the same",
        reasons.NOBODY: f"nobody is {words.selected}",
        reasons.EVERYBODY: f"everybody is {words.selected}",
    }
    why: str = reasons.UNDEFINED
    if reason == comparisons.THE_REFERENCE:
        why = "the others are compared with this group"
    elif reason.startswith(comparisons.SMALL_SHARE):
        share = reason.removeprefix(comparisons.SMALL_SHARE)
        why = f"not compared, because its share is below {share}"
    elif reason in explanations:
        why = f"not compared, because {explanations[reason]}"
    return f"{fill_sentence('{who}, {heading}', row, words)}: {why}."


def _say_fairness(row: ComparedRow, words: Words) -> str:
    """Return the sentence on a fairness metric, with the rates of both groups."""
    label, kind = METRICS[row["metric"]].label, comparisons.NAMED_FOR[row["metric"]]
    number, own, other = row[kind], row["value"], row["reference_value"]
    if number is None or own is None or other is None:
        return f"{label}: {row['reason'] or reasons.UNDEFINED}."
    low, high = row[f"{kind}_low"], row[f"{kind}_high"]
    limits = "" if low is None or high is None else f" ({low:.2f} to {high:.2f})"
    group = words.group(row["attribute"], row["segment"])
    values = f"{own:.2f} of {group} and {other:.2f} of {words.name_reference(row)}"
    return f"{label}: {number:.2f}{limits}, from {values}."


def _say_mean_scores(row: ComparedRow, words: Words) -> str:
    """Return the sentence on the mean scores of a group and its reference."""
    value = row["value"]
    limits = write_interval(row["value_low"], row["value_high"], 2, 1, ("below", "above"))
    size = f"{abs(value):.2f} standard deviations {'above' if value > 0 else 'below'}"
    both = fill(f"The mean score of {{who}} is {size} that of {{others}}", row, words)
    return f"{both}{write_in_brackets(limits)}."


# Pieces of sentences on a comparison.


def _find_digits(row: ComparedRow, words: Words) -> int:
    """Return the decimals of the shares of both sides."""
    return find_digits(row["value"], row["reference_value"], words.margin)


def _write_value(row: ComparedRow, name: str, words: Words) -> str:
    if row["metric"] == AUC:
        return f"{row[name]:.2f}"
    return write_percent(row[name], _find_digits(row, words))


def _write_size(row: ComparedRow, words: Words) -> str:
    """Return the size of the gap between the shares as they are written."""
    if row["metric"] == AUC:
        return f"{abs(row['gap']):.3f}"
    digits = _find_digits(row, words)
    size = subtract_rounded(row["value"], row["reference_value"], digits)
    return write_points(size / 100, digits)


def _write_signed_gap(row: ComparedRow) -> str:
    return (
        write_number(row["gap"], "+.2f") if row["metric"] == AUC else write_signed_size(row["gap"])
    )


def _find_ratio_digits(ratio: float) -> int:
    """Return the decimals that keep a ratio on its side of four fifths, at least two."""
    digits = 2
    while (round(ratio, digits) < FOUR_FIFTHS) != (ratio < FOUR_FIFTHS) and digits < _MOST_DIGITS:
        digits += 1
    return digits


def _compare_with_four_fifths(row: ComparedRow) -> str:
    """Return whether a ratio, or its whole interval, is below four fifths."""
    if row["verdict"] == comparisons.BELOW_FOUR_FIFTHS:
        return "below four fifths (0.8) even at its upper limit"
    if row["verdict"] == comparisons.AT_LEAST_FOUR_FIFTHS:
        return "at least four fifths (0.8) even at its lower limit"
    if row["ratio"] < FOUR_FIFTHS:
        return "below four fifths (0.8), though its interval reaches above it"
    return "above four fifths (0.8), though its interval reaches below it"


def _write_own_limits(row: ComparedRow, words: Words) -> str:
    """Return the limits of the number that is reported; empty if unknown."""
    if row["metric"] == IMPACT_RATIO:
        low, high = row["ratio_low"], row["ratio_high"]
        most = max((_find_ratio_digits(end) for end in (low, high) if end is not None), default=2)
        return write_interval(low, high, most, 1)
    if row["metric"] not in (CALIBRATION_ERROR, SLOPE):
        return _write_gap_limits(row, words)
    low, high = row["value_low"], row["value_high"]
    if row["metric"] == SLOPE:
        # A slope is not a difference, so its limits have signs.
        ends = [write_number(end, ".2f") for end in (low, high)]
        return " to ".join(ends) if all(ends) else ""
    digits = 1 if "." in write_points(row["value"]) else 0
    return write_interval(low, high, digits, sides=("too low", "too high"))


def _write_gap_limits(row: ComparedRow, words: Words) -> str:
    low, high = row["gap_low"], row["gap_high"]
    if row["metric"] in (AUC, SLOPE):
        return write_interval(low, high, 3 if row["metric"] == AUC else 2, 1)
    # The limits get as many decimals as the gap.
    decimals = _write_size(row, words).split()[0].partition(".")[2]
    return write_interval(low, high, len(decimals))


def _write_first_limits(row: ComparedRow, words: Words) -> str:
    """Return the limits in brackets, with their level, for the first sentence of a page."""
    limits = _write_own_limits(row, words)
    return f" ({100 * words.confidence:.4g}% interval: {limits})" if limits else ""


def _say_off(error: float) -> str:
    """Return the mean error of scores: ``are 11 points too high``."""
    if abs(error) < _RIGHT:
        return "are right on average"
    return f"are {write_points(error)} too {'high' if error > 0 else 'low'}"


def _say_slope(row: ComparedRow, words: Words, whose: str) -> str:
    """Return the meaning of a calibration slope."""
    value, limits = row["value"], _write_own_limits(row, words)
    upper = value if row["value_high"] is None else row["value_high"]
    numbers = f"slope {write_number(value, '.2f')}{f', {limits}' if limits else ''}"
    high, low = ("high", "low") if value < 1 else ("low", "high")
    meaning = f"high scores are too {high} and low ones too {low}"
    if upper < 0:
        meaning = "the score ranks backwards"
    elif abs(value - 1) < _STRAIGHT:
        meaning = "high and low scores are right"
    return f"{meaning}{whose} ({numbers}; 1 is right)"


def _say_slope_of_group(row: ComparedRow, words: Words) -> str:
    """Return the meaning of a calibration slope, in a sentence that names the group."""
    if row["attribute"] == OVERALL:
        return _say_slope(row, words, f" for all {words.rows} together")
    return _say_slope(row, words, f" for {words.group(row['attribute'], row['segment'])}")


# Pieces of patterns: functions of a row, and of a row and the words of an audit.
_PIECES: Mapping[str, Callable[[ComparedRow], str]] = {
    "model": lambda row: quote(str(row[MODEL])),
    "signed_gap": _write_signed_gap,
    # The direction of a gap, of a rate and of an AUC.
    "side": lambda row: "higher" if row["gap"] > 0 else "lower",
    "often": lambda row: "more often" if row["gap"] > 0 else "less often",
    "ranked": lambda row: "better" if row["gap"] > 0 else "worse",
    "ratio": lambda row: f"{row['ratio']:.{_find_ratio_digits(row['ratio'])}f}",
    "four_fifths": _compare_with_four_fifths,
    # The mean errors of the group's scores and of the others' scores.
    "off": lambda row: write_points(row["value"]),
    "high": lambda row: "high" if row["value"] > 0 else "low",
    "own_off": lambda row: _say_off(row["value"]),
    "others_off": lambda row: _say_off(row["reference_value"]),
    "slope": lambda row: write_number(row["value"], ".2f"),
    "other_slope": lambda row: write_number(row["reference_value"], ".2f"),
}
_WORDED_PIECES: Mapping[str, Callable[[ComparedRow, Words], str]] = {
    "who": lambda row, words: words.group(row["attribute"], row["segment"]),
    "be": lambda row, words: "are" if words.is_plural(row["attribute"], row["segment"]) else "is",
    "others": lambda row, words: words.name_reference(row),
    # The people in the denominator of a rate, and the measured metric.
    "kind": lambda row, words: words.among("positive" if row["metric"] == "tpr" else "negative"),
    "heading": lambda row, words: words.heading(row["metric"]),
    "own": lambda row, words: _write_value(row, "value", words),
    "other": lambda row, words: _write_value(row, "reference_value", words),
    "size": _write_size,
    "limits": lambda row, words: write_in_brackets(_write_own_limits(row, words)),
    "first_limits": _write_first_limits,
    "own_slope": lambda row, words: _say_slope(row, words, ""),
    "own_slope_of_group": _say_slope_of_group,
}
