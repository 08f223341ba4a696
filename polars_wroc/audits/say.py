"""Sentences on comparisons: patterns, and the pieces that stand in their places.

A row is one of the table of an audit, as a dict. `fill` puts the pieces of a `Phrase` into the
braces of a pattern; each piece is written in one way only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
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
from polars_wroc.audits.words import Words, capitalised, quote
from polars_wroc.checks import FOUR_FIFTHS
from polars_wroc.documents.numbers import write_number, write_points, write_signed_size
from polars_wroc.groups.comparisons import (
    AT_LEAST_FOUR_FIFTHS,
    BELOW_FOUR_FIFTHS,
    CALIBRATION,
    CLEARED,
    FAIRNESS,
    FINDINGS,
    GAP_METRICS,
    IMPACT_RATIO,
    METRICS,
    NAMED_FOR,
    NO_REFERENCE,
    SMALL_SHARE,
    SMD,
    THE_REFERENCE,
    UNKNOWN_REASON,
)
from polars_wroc.inputs.columns import MODEL, OVERALL
from polars_wroc.inputs.reasons import EVERYBODY, FEW, NOBODY, ONE_CLASS, UNDEFINED
from polars_wroc.metrics.calibration import CALIBRATION_ERROR, SLOPE
from polars_wroc.metrics.registry import ROC_AUC

ComparedRow: TypeAlias = Mapping[str, Any]
AUC, SELECTION_RATE = ROC_AUC.column, "selection_rate"
# Mean errors of scores that are called right, and slopes.
_RIGHT, _STRAIGHT = 0.005, 0.05
# Most decimals of a ratio near four fifths.
_MOST_DIGITS = 6

# A comparison that differs, as a sentence that names the group; `limits` say how sure it is.
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
# The first sentence of an answer, where that is another one.
_LEADS = {
    CALIBRATION_ERROR: "the scores of {who} are too {high}: by {off} on average{limits}; those of "
    "{others} {others_off}."
}
# The same as a line below the name of the group.
_LINE = "{heading}: {own}, against {other}; {size} {side}{limits}."
_LINES = {
    IMPACT_RATIO: "impact ratio: {ratio}{limits} of the rate of {others}, {four_fifths}.",
    CALIBRATION_ERROR: "scores {own_off}{limits}; those of {others} {others_off}.",
    SLOPE: "{own_slope}, against {other_slope} for {others}.",
}
# The same in a few words.
_IN_SHORT = "{heading} {signed_size}"
_IN_SHORT_BY_METRIC = {
    IMPACT_RATIO: "impact ratio {ratio}",
    CALIBRATION_ERROR: "scores {off} too {high}",
    SLOPE: "slope of the scores {slope}",
}
# All rows, whose calibration is compared with what is right.
_SENTENCES_OF_ALL = {
    CALIBRATION_ERROR: "the scores of {who} {own_off}{limits}.",
    SLOPE: "{own_slope_of_group}.",
}
_LINES_OF_ALL = {CALIBRATION_ERROR: "scores {own_off}{limits}.", SLOPE: "{own_slope}."}
# Comparisons that show no difference that matters, or nothing.
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
    """Write a row of the table as a sentence or two; None if nothing is compared."""
    metric = row["metric"]
    if metric in FAIRNESS:
        text = _say_fairness(row, words)
    elif metric == SMD.name:
        if row["value"] is None or row["reason"] == THE_REFERENCE:
            return None
        text = _say_mean_scores(row, words)
    elif (
        metric in CALIBRATION
        or metric == IMPACT_RATIO
        or (metric in GAP_METRICS and row["attribute"] != OVERALL)
    ):
        text = _say_compared(row, words)
    else:
        return None
    return name_score(row, words) + text


def name_score(row: ComparedRow, words: Words) -> str:
    """Begin a sentence with the score that it is about, if there are several."""
    return f"Score {quote(row[MODEL])}: " if words.several else ""


def write_first_sentence(row: ComparedRow, words: Words) -> str:
    """Write the first sentence of an answer, in which limits name their level."""
    metric = row["metric"]
    pattern = _LEADS.get(metric) or _SENTENCES.get(metric, _DIFFERS)
    pattern = pattern.replace("{limits}", "{first_limits}")
    if words.several:
        pattern = f"with the score {{model}}, {pattern}"
    return fill_sentence(pattern, row, words)


def write_line(row: ComparedRow, words: Words) -> str:
    """Write a comparison that differs as one line, below the name of the group."""
    patterns = _LINES_OF_ALL if row["attribute"] == OVERALL else _LINES
    return fill_sentence(patterns.get(row["metric"], _LINE), row, words)


def write_in_short(row: ComparedRow, words: Words) -> str:
    """Write a comparison that differs in a few words, by which score if there are several."""
    text = fill(_IN_SHORT_BY_METRIC.get(row["metric"], _IN_SHORT), row, words)
    return f"{quote(str(row[MODEL]))} {text}" if words.several else text


def fill(pattern: str, row: ComparedRow, words: Words) -> str:
    """Put the pieces of a comparison into a pattern."""
    return pattern.format_map(Phrase(row, words))


def fill_sentence(pattern: str, row: ComparedRow, words: Words) -> str:
    """Put the pieces of a comparison into a pattern that begins a sentence."""
    return capitalised(fill(pattern, row, words))


def _say_compared(row: ComparedRow, words: Words) -> str:
    """Say what a comparison shows, or why there is none."""
    metric, is_all = row["metric"], row["attribute"] == OVERALL
    if row["verdict"] is None:
        return _explain_missing(row, words)
    if row["verdict"] in FINDINGS:
        sentences = _SENTENCES_OF_ALL if is_all else _SENTENCES
        return fill_sentence(sentences.get(metric, _DIFFERS), row, words)
    patterns = _BOTH_OF_ALL if is_all else _BOTH_BY_METRIC
    both = fill_sentence(patterns.get(metric, _BOTH), row, words)
    if row["verdict"] in CLEARED:
        return f"{both}{_say_cleared(row, words)}."
    return f"{both}: inconclusive{_say_why(row, words)}.{_say_needed(row, words)}"


def _say_cleared(row: ComparedRow, words: Words) -> str:
    if row["verdict"] == AT_LEAST_FOUR_FIFTHS:
        return f", {Phrase(row, words).four_fifths}"
    within = write_margin(words.margin)
    if row["metric"] == SLOPE:
        least, most = right_slopes(words.margin)
        within = f"a factor of {least:.2f} to {most:.2f}"
    if row["attribute"] == OVERALL:
        return f": shown to be right within {within}"
    return f": no difference that matters (within {within})"


def _say_why(row: ComparedRow, words: Words) -> str:
    """Say why a comparison is inconclusive: few rows, several comparisons, or its limits."""
    phrase = Phrase(row, words)
    if row["reason"]:
        return f", {_say_few(row, words)}"
    if row["metric"] == IMPACT_RATIO:
        return f", as it is {phrase.four_fifths}"
    if row["gap_low"] is None or row["gap_high"] is None:
        return ""
    one_sided = row["gap_low"] * row["gap_high"] > 0
    limits = f"{phrase.gap_limits}{f' {phrase.side}' if one_sided else ''}"
    if one_sided and (row["p_adjusted"] or 0) > (row["p_value"] or 0):
        return f", as it is one of many comparisons ({limits})"
    return f" ({limits})"


def _say_few(row: ComparedRow, words: Words) -> str:
    """Say which side has too few rows for a test, or else the reason of the table."""
    reason: str = row["reason"]
    if not reason.startswith(FEW):
        return reason
    least = int(reason.removeprefix(FEW).split()[0].replace(",", ""))
    kinds = METRICS[row["metric"]].sample_sizes
    rows = words.name_rows(kinds[0]) if len(kinds) == 1 else f"{words.rows} of a class"
    is_other = row["n"] is not None and row["n"] >= least
    where = f"among {words.name_reference(row)}" if is_other else "in the group"
    return f"with fewer than {least} {rows} {where}"


# What is known of the rows that would tell.
NEEDED = ("factor", "needed", "sampling_unit")


def _say_needed(row: ComparedRow, words: Words) -> str:
    """Say how many times as many rows would tell, and how many of the group that are."""
    factor, number, unit = map(row.get, NEEDED)
    if factor is None or number is None or factor <= 1:
        return ""
    times, rows = (f"{float(f'{each:.2g}'):,g}" for each in (factor, number))
    return f" About {times} times as many would tell: {rows} {words.name_rows(unit)} in this group."


def _explain_missing(row: ComparedRow, words: Words) -> str:
    """Say why a metric of a group is not compared."""
    phrase, reason = Phrase(row, words), row["reason"] or ""
    if row["attribute"] == OVERALL:
        return f"{METRICS[row['metric']].heading} of {phrase.who}: undefined."
    if reason == THE_REFERENCE and row["metric"] == IMPACT_RATIO:
        return f"Impact ratios refer to {phrase.who}: most often {words.good}."
    explanations = {
        THE_REFERENCE: "the others are compared with this group",
        NO_REFERENCE: "not compared, as no reference is shown",
        ONE_CLASS: f"not compared, as all outcomes in the group or of {phrase.others} are the same",
        NOBODY: f"not compared, as nobody is {words.selected}",
        EVERYBODY: f"not compared, as everybody is {words.selected}",
        UNKNOWN_REASON: "not compared, as the value is not known",
    }
    why = explanations.get(reason, UNDEFINED)
    if reason.startswith(SMALL_SHARE):
        why = f"not compared, as the group has less than {reason.removeprefix(SMALL_SHARE)}"
    return capitalised(f"{phrase.who}, {phrase.heading}: {why}.")


def _say_fairness(row: ComparedRow, words: Words) -> str:
    """Write a fairness metric, with the rates of both groups."""
    label, kind = METRICS[row["metric"]].label, NAMED_FOR[row["metric"]]
    number, own, other = row[kind], row["value"], row["reference_value"]
    if number is None or own is None or other is None:
        return f"{label}: {row['reason'] or UNDEFINED}."
    low, high = row[f"{kind}_low"], row[f"{kind}_high"]
    limits = "" if low is None or high is None else f" ({low:.2f} to {high:.2f})"
    group, reference = words.group(row["attribute"], row["segment"]), words.name_reference(row)
    return (
        f"{label}: {number:.2f}{limits}, from {own:.2f} of {group} and {other:.2f} of {reference}."
    )


def _say_mean_scores(row: ComparedRow, words: Words) -> str:
    """Say how far the mean score of a group is from that of its reference."""
    phrase, value = Phrase(row, words), row["value"]
    side = "above" if value > 0 else "below"
    limits = write_interval(row["value_low"], row["value_high"], 2, 1, ("below", "above"))
    return (
        f"The mean score of {phrase.who} is {abs(value):.2f} standard deviations {side} that of "
        f"{phrase.others}{write_in_brackets(limits)}."
    )


@dataclass(frozen=True)
class Phrase:
    """The pieces of sentences on a comparison, by their names."""

    row: ComparedRow
    words: Words

    def __getitem__(self, name: str) -> str:
        """Return a piece of the comparison, or one of the words."""
        piece: str = getattr(self if hasattr(self, name) else self.words, name)
        return piece

    # Whom.

    @property
    def who(self) -> str:
        """The group."""
        return self.words.group(self.row["attribute"], self.row["segment"])

    @property
    def be(self) -> str:
        """The verb of the group."""
        return "are" if self.words.is_plural(self.row["attribute"]) else "is"

    @property
    def others(self) -> str:
        """What the group is compared with."""
        return self.words.name_reference(self.row)

    @property
    def model(self) -> str:
        """The score."""
        return quote(str(self.row[MODEL]))

    @property
    def kind(self) -> str:
        """The people that a rate is of: those approved."""
        return self.words.among("positive" if self.row["metric"] == "tpr" else "negative")

    @property
    def heading(self) -> str:
        """What is measured."""
        return self.words.heading(self.row["metric"])

    # How much.

    @cached_property
    def digits(self) -> int:
        """The decimals of both shares."""
        own, other = self.row["value"], self.row["reference_value"]
        return find_digits(own, other, self.words.margin)

    @property
    def own(self) -> str:
        """The value of the group."""
        return self._write_value(self.row["value"])

    @property
    def other(self) -> str:
        """The value of the others."""
        return self._write_value(self.row["reference_value"])

    def _write_value(self, value: float) -> str:
        if self.row["metric"] == AUC:
            return f"{value:.2f}"
        return write_percent(value, self.digits)

    @property
    def size(self) -> str:
        """The size of the gap: 24 points."""
        if self.row["metric"] == AUC:
            return f"{abs(self.row['gap']):.3f}"
        # That of the shares as they are written, which add up.
        own, other = self.row["value"], self.row["reference_value"]
        return write_points(subtract_rounded(own, other, self.digits) / 100, self.digits)

    @property
    def signed_size(self) -> str:
        """The gap with its sign: +24."""
        if self.row["metric"] == AUC:
            return write_number(self.row["gap"], "+.2f")
        return write_signed_size(self.row["gap"])

    @property
    def side(self) -> str:
        """The direction of the gap."""
        return "higher" if self.row["gap"] > 0 else "lower"

    @property
    def often(self) -> str:
        """The direction of a rate."""
        return "more often" if self.row["gap"] > 0 else "less often"

    @property
    def ranked(self) -> str:
        """The direction of an AUC."""
        return "better" if self.row["gap"] > 0 else "worse"

    @property
    def ratio(self) -> str:
        """The impact ratio."""
        return f"{self.row['ratio']:.{_find_ratio_digits(self.row['ratio'])}f}"

    @property
    def four_fifths(self) -> str:
        """Whether the ratio is below four fifths, and how sure that is: by its own interval."""
        if self.row["verdict"] == BELOW_FOUR_FIFTHS:
            return "below four fifths (0.8) even at its upper limit"
        if self.row["verdict"] == AT_LEAST_FOUR_FIFTHS:
            return "at least four fifths (0.8) even at its lower limit"
        if self.row["ratio"] < FOUR_FIFTHS:
            return "below four fifths (0.8), though its interval reaches above it"
        return "above four fifths (0.8), though its interval reaches below it"

    # How sure.

    @property
    def limits(self) -> str:
        """The limits in brackets after a space; nothing where they are not known."""
        return write_in_brackets(self.bare_limits)

    @property
    def first_limits(self) -> str:
        """The limits in brackets, with the level, for the first sentence of a page."""
        if not self.bare_limits:
            return ""
        return f" ({100 * self.words.confidence:.4g}% interval: {self.bare_limits})"

    @property
    def bare_limits(self) -> str:
        """The limits of the number that a metric is told by."""
        row, metric = self.row, self.row["metric"]
        if metric == IMPACT_RATIO:
            low, high = row["ratio_low"], row["ratio_high"]
            digits = [_find_ratio_digits(end) for end in (low, high) if end is not None]
            return write_interval(low, high, max(digits, default=2), 1)
        if metric == CALIBRATION_ERROR:
            sides = ("too low", "too high")
            return write_interval(
                row["value_low"], row["value_high"], self._off_digits, sides=sides
            )
        if metric == SLOPE:
            # A slope is no difference, so its limits have signs.
            ends = [write_number(row[f"value_{end}"], ".2f") for end in ("low", "high")]
            return " to ".join(ends) if all(ends) else ""
        return self.gap_limits

    @property
    def gap_limits(self) -> str:
        """The limits of the gap."""
        if self.row["metric"] == AUC:
            return write_interval(self.row["gap_low"], self.row["gap_high"], 3, 1)
        if self.row["metric"] == SLOPE:
            return write_interval(self.row["gap_low"], self.row["gap_high"], 2, 1)
        # As many decimals as the gap has
        digits = len(self.size.split()[0].partition(".")[2])
        return write_interval(self.row["gap_low"], self.row["gap_high"], digits)

    # How far scores are off.

    @property
    def _off_digits(self) -> int:
        return 1 if "." in self.off else 0

    @property
    def off(self) -> str:
        """By how much the scores are off."""
        return write_points(self.row["value"])

    @property
    def high(self) -> str:
        """Whether the scores are too high or too low."""
        return "high" if self.row["value"] > 0 else "low"

    @property
    def own_off(self) -> str:
        """How the scores of the group are off."""
        return say_off(self.row["value"])

    @property
    def others_off(self) -> str:
        """How the scores of the others are off."""
        return say_off(self.row["reference_value"])

    @property
    def slope(self) -> str:
        """The slope of the scores of the group."""
        return write_number(self.row["value"], ".2f")

    @property
    def other_slope(self) -> str:
        """The slope of the scores of the others."""
        return write_number(self.row["reference_value"], ".2f")

    @property
    def own_slope(self) -> str:
        """What the slope means, below the name of the group."""
        return self._say_slope("")

    @property
    def own_slope_of_group(self) -> str:
        """What the slope means, in a sentence that names the group."""
        if self.row["attribute"] == OVERALL:
            return self._say_slope(f" for all {self.words.rows} together")
        return self._say_slope(f" for {self.who}")

    def _say_slope(self, whose: str) -> str:
        limits = f", {self.bare_limits}" if self.bare_limits else ""
        slope = f"(slope {self.slope}{limits}; 1 is right)"
        value, upper = self.row["value"], self.row["value_high"]
        if (value if upper is None else upper) < 0:
            return f"the score ranks backwards{whose} {slope}"
        if abs(value - 1) < _STRAIGHT:
            return f"high and low scores are right{whose} {slope}"
        high, low = ("high", "low") if value < 1 else ("low", "high")
        return f"high scores are too {high} and low ones too {low}{whose} {slope}"


def _find_ratio_digits(ratio: float) -> int:
    """Return the decimals that leave a ratio on its side of four fifths, at least two."""
    digits = 2
    while (round(ratio, digits) < FOUR_FIFTHS) != (ratio < FOUR_FIFTHS) and digits < _MOST_DIGITS:
        digits += 1
    return digits


def say_off(error: float) -> str:
    """Say by how much scores are off on average: ``are 11 points too high``."""
    if abs(error) < _RIGHT:
        return "are right on average"
    return f"are {write_points(error)} too {'high' if error > 0 else 'low'}"
