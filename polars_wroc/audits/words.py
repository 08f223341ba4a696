"""The words of an audit for people, groups, classes and decisions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from polars_wroc.audits.tables import AuditSettings, repeats_attribute
from polars_wroc.documents.numbers import DASH
from polars_wroc.documents.phrases import write_list
from polars_wroc.groups.categories import CROSSED
from polars_wroc.groups.comparisons import DECISION_METRICS, FAIRNESS, IMPACT_RATIO, METRICS, TARGET
from polars_wroc.inputs.columns import MISSING, OVERALL
from polars_wroc.inputs.metric import MINUS, SampleSize
from polars_wroc.names import escape_controls, show_name

# The text of a threshold that selects no row.
ABOVE = "above every score"


def write_threshold(value: float | None) -> str:
    """Return a threshold with four digits, or all digits before the decimal point."""
    if value is None:
        return DASH
    if value == float("inf"):
        return ABOVE
    whole = 1_000
    return (f"{value:,.1f}" if abs(value) >= whole else f"{value:.4g}").replace("-", MINUS)


def required_values(*, recorded: bool, labeled: bool = True) -> str:
    """Return what a row must have to be measured, as text."""
    if not labeled:
        return "decision or weight" if recorded else "score or weight"
    return "label, score, weight or decision" if recorded else "label, score or weight"


# Names of labels that are adjectives of people, judging by their ending.
_PARTICIPLE = re.compile(r"(?:^|_|\b)([a-z]+(?:[^\W_e]ed|paid|sold|won|lost|taken|given))$")
_YES = ("1", "true", "yes", "y", "t")
# Values that follow the noun: "borrowers under 25", not "under 25 borrowers".
_AFTER_PEOPLE = re.compile(
    r"(under|over|below|above|from|up to|at least|less|more|between|aged|in|without|with|not) ",
    re.IGNORECASE,
)
# Names of ranges, from `ranges`.
_NUMBER = r"(-?[\d.,]+)"
_RANGES = (
    (re.compile(rf"<{_NUMBER}"), r"under \1"),
    (re.compile(rf"{_NUMBER}\+"), r"\1 or over"),
    (re.compile(rf"{_NUMBER}-{_NUMBER}"), r"\1 to \2"),
    (re.compile(rf"{_NUMBER} to <{_NUMBER}"), r"\1 to under \2"),
)
Class = Literal["positive", "negative", "selected", "rejected"]


@dataclass(frozen=True)
class Words:
    """The words of sentences for classes, decisions, rows and groups."""

    positive: str
    negative: str
    selected: str
    rejected: str
    favorable: str | None
    margin: float
    confidence: float
    # The noun for rows, for example "applicants", and patterns for groups of attributes.
    people: str | None = None
    groups: Mapping[str, str] = field(default_factory=dict)
    # The reference of groups: "rest" or "overall", or a group by attribute.
    kind: str = "rest"
    named: Mapping[str, str] = field(default_factory=dict)
    # Whether there are several scores, which sentences name.
    several: bool = False
    # Whether scores share their decisions: recorded ones, on the same rows.
    same_decisions: bool = False

    @classmethod
    def of(cls, settings: AuditSettings) -> Words:
        """Return the given words, with words from the label and the decisions as defaults."""
        text, reference = settings.text, settings.reference
        positive, negative = _name_classes(settings.label, settings.pos_label)
        if text.positive is not None:
            positive, negative = text.positive, f"not {text.positive}"
        selected = text.selected or "selected"
        return cls(
            escape_controls(positive),
            escape_controls(text.negative or negative),
            escape_controls(selected),
            escape_controls(text.rejected or f"not {selected}"),
            settings.favorable,
            settings.margin,
            settings.confidence,
            None if text.people is None else escape_controls(text.people),
            text.groups or {},
            reference.kind,
            dict(reference.named),
            settings.several,
        )

    def names_score(self, metric: str) -> bool:
        """Return whether a sentence on a metric must name the score."""
        return self.several and not (self.same_decisions and metric in DECISION_METRICS)

    @property
    def rows(self) -> str:
        """The noun for rows."""
        return self.people or "rows"

    @property
    def everyone(self) -> str:
        """All rows, within a sentence."""
        return f"all {self.people}" if self.people else "everyone"

    @property
    def others(self) -> str:
        """The reference of groups, unless it is a named group."""
        return self.everyone if self.kind == "overall" else "everyone else"

    @property
    def good(self) -> str:
        """The adjective of people with the decision that is good for them."""
        return self.rejected if self.favorable == "rejected" else self.selected

    @property
    def deserving(self) -> str:
        """The people whose outcome deserves the decision that is good for them."""
        return self.among("negative" if self.favorable == "rejected" else "positive")

    @property
    def knows_good(self) -> bool:
        """Whether one of the decisions is good for people."""
        return self.favorable in ("selected", "rejected")

    def is_plural(self, attribute: str, segment: str | None) -> bool:
        """Return whether the name of a group takes a plural verb."""
        return self.people is not None or attribute in self.groups or segment is None

    def group(self, attribute: str, segment: str | None) -> str:
        """Return a group in a sentence: ``black applicants (race)``, ``the group black (race)``."""
        if attribute == OVERALL:
            return self.everyone
        attributes = [show_name(name) for name in attribute.split(CROSSED)]
        if segment is None:
            return f"{self.rows} with no recorded {write_list(attributes)}"
        name = show_name(segment)
        if attribute in self.groups:
            return escape_controls(self.groups[attribute]).replace("{}", name)
        names = name.split(", ") if len(attributes) > 1 else [name]
        # Names may contain commas.
        is_split = len(names) == len(attributes)
        if self.people is not None and is_split:
            return self._name_people(attributes, [spell_range(one) for one in names])
        people = f"{self.people} of " if self.people is not None else ""
        is_told = is_split and any(map(repeats_attribute, attributes, names))
        return f"{people}the group {name}{'' if is_told else _add_attributes(attributes)}"

    def _name_people(self, attributes: Sequence[str], names: Sequence[str]) -> str:
        """Return people by values: ``male black applicants``, ``applicants aged 55 or over``."""
        before, behind, is_told = list[str](), list[str](), False
        for attribute, name in zip(attributes, names, strict=True):
            if name[:1].isdigit():
                is_age = attribute.casefold().startswith("age")
                behind.append(f"{'aged' if is_age else f'with {attribute}'} {name}")
                is_told = True
                continue
            if _AFTER_PEOPLE.match(name):
                behind.append(name)
            else:
                before.insert(0, name)
            is_told = is_told or repeats_attribute(attribute, name)
        told = "" if is_told else _add_attributes(attributes)
        return f"{' '.join([*before, str(self.people), *behind])}{told}"

    def name_reference(self, row: Mapping[str, Any]) -> str:
        """Return the reference of a comparison in a sentence."""
        attribute, reference = row["attribute"], row["reference"]
        picked = row["metric"] == IMPACT_RATIO or row["metric"] in FAIRNESS
        # A group may have the name of a kind, for example "rest".
        if picked or attribute in self.named:
            return self.group(attribute, None if reference == MISSING else reference)
        if reference == TARGET and attribute == OVERALL:
            return "the target"
        return self.everyone if reference == "overall" else "everyone else"

    def among(self, kind: Class) -> str:
        """Return the people of a class or decision: ``those approved``, ``the positives``."""
        word = getattr(self, kind)
        return f"the {word}s" if word in ("positive", "negative") else f"those {word}"

    def count_rows(self, number: int) -> str:
        """Return a number of rows: ``1 row``, ``15 applicants``."""
        return f"{number:,} {'row' if number == 1 and not self.people else self.rows}"

    def name_rows(self, kind: SampleSize) -> str:
        """Return the rows of a class or decision in a count: ``30 approved``, ``30 positives``."""
        if kind == "rows":
            return self.rows
        word: str = getattr(self, kind.removesuffix("s"))
        # Only the default words of classes are nouns.
        return kind if word in ("positive", "negative") else word

    def heading(self, metric: str) -> str:
        """Return a metric in plain words, for the middle of a sentence."""
        return self._headings.get(metric) or METRICS[metric].label

    @cached_property
    def _headings(self) -> dict[str, str]:
        return {
            "selection_rate": self.selected,
            "tpr": f"{self.selected} among {self.among('positive')}",
            "fpr": f"{self.selected} among {self.among('negative')}",
            "ppv": f"{self.positive} among {self.among('selected')}",
            "npv": f"{self.negative} among {self.among('rejected')}",
            IMPACT_RATIO: "impact ratio",
            "auc": "ranking (AUC)",
            "mean_calibration_error": "score too high by",
            "calibration_slope": "spread of scores (slope)",
            "accuracy": "right decisions",
            "standardized_mean_difference": "mean score (standardized)",
        }


def spell_range(segment: str) -> str:
    """Return the name of a range in words: ``55 or over`` for ``55+``."""
    for pattern, words in _RANGES:
        if pattern.fullmatch(segment):
            return pattern.sub(words, segment)
    return segment


def _add_attributes(attributes: Sequence[str]) -> str:
    """Return the attributes of a group in brackets, unless its name contains them."""
    return f" ({write_list(attributes)})"


def name_attribute(attribute: str) -> str:
    """Return an attribute for tables: ``race and sex`` for groups of both."""
    return write_list([show_name(name) for name in attribute.split(CROSSED)])


def name_briefly(attribute: str, segment: str | None) -> str:
    """Return a group for a list: ``black (race)``, ``no recorded sex``."""
    shown = name_attribute(attribute)
    if segment is None:
        return f"no recorded {shown}"
    return f"{show_name(segment)} ({shown})"


def _name_classes(label: str | None, value: object) -> tuple[str, str]:
    """Return the words of both classes: the label if it is an adjective, or else its value."""
    read = _PARTICIPLE.search(label.casefold()) if label is not None else None
    if read and (value is None or str(value).casefold() in _YES):
        return read[1], f"not {read[1]}"
    if label is None or value is None:
        return "positive", "negative"
    if _PARTICIPLE.search(str(value).casefold()):
        return str(value), f"not {value}"
    return f"with {label} = {value}", f"with {label} \N{NOT EQUAL TO} {value}"
