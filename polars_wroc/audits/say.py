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
from polars_wroc.documents.numbers import write_number, write_points
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

Row: TypeAlias = Mapping[str, Any]
AUC = ROC_AUC.column
# Mean errors of scores that are called right, and slopes.
_RIGHT, _STRAIGHT = 0.005, 0.05

# A comparison that differs, as a sentence that names the group; `limits` say how sure it is.
_HOW_MUCH = "{own}, against {other} of {others}, {size} {side}{limits}."
_AMONG = "Among {kind}, {who} {be} {selected} {often}: " + _HOW_MUCH
_DIFFERS = "{Who}, {heading}: {own}, against {other} of {others}; {size} {side}{limits}."
_SENTENCES = {
    "selection_rate": "{Who} {be} {selected} {often}: " + _HOW_MUCH,
    "tpr": _AMONG,
    "fpr": _AMONG,
    AUC: "The score ranks {who} {ranked}: AUC {own}, against {other} for {others}, {size} "
    "{side}{limits}.",
    IMPACT_RATIO: "{Who} {be} {good} {ratio} times as often as {others}{limits}, {four_fifths}.",
    CALIBRATION_ERROR: "The scores of {who} {own_off}{limits}; those of {others} {others_off}.",
    SLOPE: "{own_slope_of_group}, against {other_slope} for {others}.",
}
# The same as a line below the name of the group; other metrics have the first.
_LINE = "{Heading}: {own}, against {other}; {size} {side}{limits}."
_LINES = {
    IMPACT_RATIO: "Impact ratio: {ratio}{limits} of the rate of {others}, {four_fifths}.",
    CALIBRATION_ERROR: "Scores {own_off}{limits}; those of {others} {others_off}.",
    SLOPE: "{own_slope}, against {other_slope} for {others}.",
}
# All rows, whose calibration is compared with what is right.
_LINES_OF_ALL = {
    CALIBRATION_ERROR: "Scores {own_off}{limits}.",
    SLOPE: "{own_slope}.",
}
# The scores of a group differ from those of others in what they mean.
SCORES_ARE_OFF = (
    "The scores of {who} are too {high}: by {off} on average{limits}; those of {others} "
    "{others_off}."
)
# Comparisons that show no difference that matters, or nothing.
_BOTH = "{Who}, {heading}: {own}, against {other} for {others}"
_BOTH_BY_METRIC = {
    IMPACT_RATIO: "{Who} {be} {good} {ratio} times as often as {others}{limits}",
    CALIBRATION_ERROR: "The scores of {who} {own_off}; those of {others} {others_off}",
    SLOPE: "{Who}, slope of the scores: {slope}, against {other_slope} for {others}",
}
_OF_ALL = {
    CALIBRATION_ERROR: "The scores of {who} {own_off}",
    SLOPE: "The slope of the scores of {who} is {slope}, where 1 is right",
}


def write_sentence(row: Row, words: Words) -> str | None:
    """Write a row of the table as a sentence or two; None if nothing is compared."""
    metric, of_all = row["metric"], row["attribute"] == OVERALL
    if metric in FAIRNESS:
        text = _say_fairness(row, words)
    elif metric == SMD.name:
        if row["value"] is None or row["reason"] == THE_REFERENCE:
            return None
        text = _say_mean_scores(row, words)
    elif metric in CALIBRATION or metric == IMPACT_RATIO or (metric in GAP_METRICS and not of_all):
        text = _say_compared(row, words)
    else:
        return None
    return f"{name_score(row, words)}{text}"


def name_score(row: Row, words: Words) -> str:
    """Begin a sentence with the score that it is about, if there are several."""
    return f"Score {Phrase(row, words).model}: " if words.several else ""


def write_line(row: Row, words: Words) -> str:
    """Write a comparison that differs as one line, below the name of the group."""
    if row["attribute"] == OVERALL and row["metric"] in _LINES_OF_ALL:
        return fill(_LINES_OF_ALL[row["metric"]], row, words)
    return fill(_LINES.get(row["metric"], _LINE), row, words)


def fill(pattern: str, row: Row, words: Words, **others: str) -> str:
    """Put the pieces of a comparison into a pattern, and others that are not of the comparison."""
    return pattern.format_map(Phrase(row, words, others))


def _say_compared(row: Row, words: Words) -> str:
    """Say what a comparison shows, or why there is none."""
    metric, of_all = row["metric"], row["attribute"] == OVERALL
    if row["verdict"] is None:
        return explain_missing(row, words)
    if row["verdict"] in FINDINGS:
        found = find_sentence(metric)
        if of_all:
            found = "{own_slope_of_group}." if metric == SLOPE else f"{_OF_ALL[metric]}{{limits}}."
        return fill(found, row, words)
    patterns = _OF_ALL if of_all else _BOTH_BY_METRIC
    both = fill(patterns.get(metric, _BOTH), row, words)
    if row["verdict"] in CLEARED:
        return f"{both}{_say_cleared(row, words)}."
    return f"{both}: inconclusive{_say_why(row, words)}.{_say_needed(row, words)}"


def find_sentence(metric: str) -> str:
    """Return the pattern of the sentence on a group that differs in a metric."""
    return _SENTENCES.get(metric, _DIFFERS)


def _say_cleared(row: Row, words: Words) -> str:
    if row["verdict"] == AT_LEAST_FOUR_FIFTHS:
        return f", {Phrase(row, words).four_fifths}"
    within = write_margin(words.margin)
    if row["metric"] == SLOPE:
        least, most = right_slopes(words.margin)
        within = f"a factor of {least:.2f} to {most:.2f}"
    if row["attribute"] == OVERALL:
        return f": shown to be right within {within}"
    return f": no difference that matters (within {within})"


def _say_why(row: Row, words: Words) -> str:
    """Say why a comparison is inconclusive: few rows, several comparisons, or its limits."""
    phrase = Phrase(row, words)
    if row["reason"]:
        return f", {say_few(row, words)}"
    if row["metric"] == IMPACT_RATIO:
        return f", as it is {phrase.four_fifths}"
    if row["gap_low"] is None or row["gap_high"] is None:
        return ""
    one_sided = row["gap_low"] * row["gap_high"] > 0
    limits = f"{phrase.gap_limits}{f' {phrase.side}' if one_sided else ''}"
    if one_sided and (row["p_adjusted"] or 0) > (row["p_value"] or 0):
        return f", as it is one of many comparisons ({limits})"
    return f" ({limits})"


def say_few(row: Row, words: Words) -> str:
    """Say which side has too few rows for a test, or else the reason of the table."""
    reason: str = row["reason"]
    if not reason.startswith(FEW):
        return reason
    least = int(reason.removeprefix(FEW).split()[0].replace(",", ""))
    kinds = METRICS[row["metric"]].sample_sizes
    named = {"rows": words.rows, "selected": words.selected, "rejected": words.rejected}
    classes = {"positives": words.positive, "negatives": words.negative}
    unit = (named | classes)[kinds[0]] if len(kinds) == 1 else f"{words.rows} of a class"
    is_other = row["n"] is not None and row["n"] >= least
    where = f"among {words.name_reference(row)}" if is_other else "in the group"
    return f"with fewer than {least} {unit} {where}"


# What is known of the rows that would tell.
NEEDED = ("factor", "needed", "sampling_unit")


def _say_needed(row: Row, words: Words) -> str:
    """Say how many times as many rows would tell, and how many of the group that are."""
    factor, number, unit = map(row.get, NEEDED)
    if factor is None or number is None or factor <= 1:
        return ""
    times, rows = (f"{float(f'{each:.2g}'):,g}" for each in (factor, number))
    units = {
        "selected": words.selected,
        "rejected": words.rejected,
        # Only the words of classes that nobody chose are nouns.
        "positives": "positives" if words.positive == "positive" else words.positive,
        "negatives": "negatives" if words.negative == "negative" else words.negative,
        "rows": words.rows,
    }
    kind = units.get(str(unit), str(unit))
    return f" About {times} times as many would tell: {rows} {kind} in this group."


def explain_missing(row: Row, words: Words) -> str:
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
    why = explanations.get(reason, "undefined")
    if reason.startswith(SMALL_SHARE):
        why = f"not compared, as the group has less than {reason.removeprefix(SMALL_SHARE)}"
    return f"{phrase.Who}, {phrase.heading}: {why}."


def _say_fairness(row: Row, words: Words) -> str:
    """Write a fairness metric, with the rates of both groups."""
    kind = "ratio" if row["gap"] is None else "gap"
    if row["value"] is None or row["reference_value"] is None or row[kind] is None:
        return f"{METRICS[row['metric']].label}: {row['reason'] or UNDEFINED}."
    limits = write_in_brackets(_write_plain_limits(row, kind))
    own = words.group(row["attribute"], row["segment"])
    return (
        f"{METRICS[row['metric']].label}: {row[kind]:.2f}{limits}, from {row['value']:.2f} of "
        f"{own} and {row['reference_value']:.2f} of {words.name_reference(row)}."
    )


def _say_mean_scores(row: Row, words: Words) -> str:
    """Say how far the mean score of a group is from that of its reference."""
    phrase, value = Phrase(row, words), row["value"]
    side = "above" if value > 0 else "below"
    limits = write_interval(row["value_low"], row["value_high"], 2, 1, ("below", "above"))
    return (
        f"The mean score of {phrase.who} is {abs(value):.2f} standard deviations {side} that of "
        f"{phrase.others}{write_in_brackets(limits)}."
    )


def _write_plain_limits(row: Row, number: str) -> str:
    low, high = row[f"{number}_low"], row[f"{number}_high"]
    return "" if low is None or high is None else f"{low:.2f} to {high:.2f}"


@dataclass(frozen=True)
class Phrase:
    """The pieces of sentences on a comparison, by their names."""

    row: Row
    words: Words
    # Pieces that replace those of the comparison.
    given: Mapping[str, str] | None = None

    def __getitem__(self, name: str) -> str:
        """Return a piece: one that was given, of the comparison, or of the words."""
        if self.given and name in self.given:
            return self.given[name]
        piece: str = getattr(self, name) if hasattr(self, name) else getattr(self.words, name)
        return piece

    # Whom.

    @property
    def who(self) -> str:
        """The group."""
        return self.words.group(self.row["attribute"], self.row["segment"])

    @property
    def Who(self) -> str:  # noqa: N802  (a piece that begins a sentence)
        """The group, at the start of a sentence."""
        return capitalised(self.who)

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
        """What is measured, in the middle of a sentence."""
        return self.words.heading(self.row["metric"])

    @property
    def Heading(self) -> str:  # noqa: N802
        """What is measured, at the start of a line."""
        return capitalised(self.heading)

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
        """The impact ratio, with as many decimals as tell it from four fifths."""
        ratio = self.row["ratio"]
        digits = 2
        while (round(ratio, digits) >= FOUR_FIFTHS) != (ratio >= FOUR_FIFTHS) and digits < 6:  # noqa: PLR2004
            digits += 1
        return f"{ratio:.{digits}f}"

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
            # A limit must not round to the other side of four fifths.
            ends = [end for end in (low, high) if end is not None]
            crosses = any((round(end, 2) < FOUR_FIFTHS) != (end < FOUR_FIFTHS) for end in ends)
            return write_interval(low, high, 3 if crosses else 2, 1)
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
        of_all = self.row["attribute"] == OVERALL
        return self._say_slope(
            f" for all {self.words.rows} together" if of_all else f" for {self.who}"
        )

    def _say_slope(self, whose: str) -> str:
        limits = f", {self.bare_limits}" if self.bare_limits else ""
        slope = f"(slope {self.slope}{limits}; 1 is right)"
        value = self.row["value"]
        if value < 0:
            return f"The score ranks backwards{whose} {slope}"
        if abs(value - 1) < _STRAIGHT:
            return f"High and low scores are right{whose} {slope}"
        high, low = ("high", "low") if value < 1 else ("low", "high")
        return f"High scores are too {high} and low ones too {low}{whose} {slope}"


def say_off(error: float) -> str:
    """Say by how much scores are off on average: ``are 11 points too high``."""
    if abs(error) < _RIGHT:
        return "are right on average"
    return f"are {write_points(error)} too {'high' if error > 0 else 'low'}"
