"""What an audit calls classes, decisions, segments and references, and phrases of its sentences."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from polars_wroc.audits.tables import AuditSettings, AuditTables, segment_in_words
from polars_wroc.groups.comparisons import CALIBRATION
from polars_wroc.inputs.columns import MODEL, OVERALL
from polars_wroc.inputs.metric import MINUS
from polars_wroc.looks import Looks
from polars_wroc.names import escape_controls

_NAMES = 5
DASH = "\N{EN DASH}"
# A threshold that selects no row.
ABOVE = "above every score"
ADJUSTED = {
    "holm": "p-values are adjusted for their number by Holm's method",
    "bh": "p-values are adjusted for their number by Benjamini and Hochberg's method",
    "none": "p-values are not adjusted for their number",
}


def is_calibrated(audit: AuditTables) -> bool:
    """Whether the calibration of a score was audited."""
    return bool(audit.table["metric"].is_in([*CALIBRATION]).any())


def adjustment_of(audit: AuditTables) -> str:
    """Say how the p-values of an audit are adjusted, and which are not counted."""
    settings = audit.settings
    text = ADJUSTED[settings.adjust]
    if isinstance(settings.level, Looks):
        text = f"all holds at all looks, tightest at {settings.level.planned:,.0f} rows; {text}"
    if settings.adjust == "none":
        return text
    apart = settings.favorable in ("selected", "rejected")
    together = "of gaps and of calibration" if is_calibrated(audit) else "of gaps"
    text = f"{text}, those {together} together"
    return f"{text} (impact ratios are not counted)" if apart else text


# Where to find what a report leaves out.
NOT_HERE = "not included in this report"


def threshold_text(value: float | None) -> str:
    """Write a threshold with four digits, or all digits before the decimal point."""
    if value is None:
        return DASH
    if value == float("inf"):
        return ABOVE
    whole = 1_000
    return (f"{value:,.1f}" if abs(value) >= whole else f"{value:.4g}").replace("-", MINUS)


def required_values(*, recorded: bool, labeled: bool = True) -> str:
    """Say what a row must have to be measured."""
    if not labeled:
        return "decision or weight" if recorded else "score or weight"
    return "label, score, weight or decision" if recorded else "label, score or weight"


def many(count: int, thing: str) -> str:
    """Write a number of things."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def verb(count: int, one: str, several: str) -> str:
    """Choose the verb of a number of things."""
    return one if count == 1 else several


def points(difference: float) -> str:
    """Write a difference of proportions in points, with its sign."""
    return f"{round(100 * difference, 1) + 0.0:+.1f}".replace("-", MINUS)


def capitalised(text: str) -> str:
    """Begin a sentence with the text."""
    return f"{text[0].upper()}{text[1:]}"


def first_few(names: list[str], separator: str = ", ", most: int = _NAMES) -> str:
    """Write the first few names and the number of the others."""
    more = len(names) - most
    return f"{separator.join(names[:most])}{f' and {more:,} more' if more > 0 else ''}"


def listed(parts: list[str]) -> str:
    """Write parts of a sentence one after the other."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if parts[1:] else parts)


REFERENCES = {"rest": "the rest", "overall": "all rows"}
# Names of labels that say what people are, as far as an ending tells.
_PARTICIPLE = re.compile(r"(?:^|_|\b)([a-z]+(?:[^\W_e]ed|paid|sold|won|lost|taken|given))$")
_YES = ("1", "true", "yes", "y", "t")


@dataclass(frozen=True)
class Words:
    """What a sentence calls the classes, the decisions and the references."""

    positive: str
    negative: str
    selected: str
    rejected: str
    margin: float
    # What those are who have the favorable decision; None if neither is.
    good: str | None
    # Attributes whose segments are compared with one of them.
    kind: str
    named: Mapping[str, str]
    # Whether there are several scores, which sentences name.
    several: bool = False
    # Whether rows stand for others, so that rates are not those of the rows.
    weighted: bool = False

    @classmethod
    def of(cls, settings: AuditSettings) -> Words:
        """Take the words that are given, and otherwise those of the label and of decisions."""
        text, reference = settings.text, settings.reference
        positive, negative = _classes(settings.label, settings.pos_label)
        if text.positive is not None:
            positive, negative = text.positive, f"not {text.positive}"
        selected = escape_controls(text.selected or "selected")
        rejected = escape_controls(text.rejected or f"not {selected}")
        good = {"selected": selected, "rejected": rejected}.get(settings.favorable or "")
        words = (
            escape_controls(positive),
            escape_controls(text.negative or negative),
            selected,
            rejected,
        )
        kind, named = reference.kind, dict(reference.named)
        weighted = settings.weight is not None and not settings.frequency
        return cls(*words, settings.margin, good, kind, named, settings.several, weighted)

    def model(self, finding: Mapping[str, Any]) -> str:
        """Name the score that a sentence is about, if there are several."""
        return f"Model {finding[MODEL]}: " if self.several else ""

    def reference(self, finding: Mapping[str, Any]) -> str:
        """Name what a segment is compared with."""
        attribute, reference = finding["attribute"], finding["reference"]
        if attribute in self.named:
            return segment_in_words(attribute, reference)
        return REFERENCES[reference]


def reference_of(settings: AuditSettings, attribute: str) -> str:
    """Say what the segments of an attribute are compared with."""
    reference = settings.reference
    if attribute in reference.named:
        return segment_in_words(attribute, reference.named[attribute])
    return REFERENCES[reference.kind]


def reading_of(audit: AuditTables) -> str:
    """Say who is selected, and whether that counts as good; empty without decisions."""
    settings = audit.settings
    if settings.favorable is None:
        return ""
    words = Words.of(settings)
    counts = {
        "selected": "counts as good.",
        "rejected": f"counts as bad; impact ratios are of those {words.rejected}.",
        "neither": "counts as neither good nor bad, so there are no impact ratios.",
    }
    return f"Being {words.selected} ({_selection(audit)}) {counts[settings.favorable]}"


def _selection(audit: AuditTables) -> str:
    """Say whom the threshold, or which column, selects."""
    settings = audit.settings
    if settings.selected is not None:
        return f"as recorded in {settings.selected}"
    overall = audit.segments.filter(attribute=OVERALL)
    if overall["threshold"].n_unique() == 1:
        return _of_threshold(overall["threshold"][0])
    each = overall.select(MODEL, "threshold").rows()
    return "; ".join(f"{_of_threshold(threshold)} by {model}" for model, threshold in each)


def _of_threshold(threshold: float | None) -> str:
    text = threshold_text(threshold)
    if text == DASH:
        return "nobody: all rows are of one class"
    return f"nobody: the threshold is {text}" if text == ABOVE else f"a score of {text} or more"


def _classes(label: str | None, value: object) -> tuple[str, str]:
    """Name both classes by the label, if it says what people are, or by its value."""
    read = _PARTICIPLE.search(label.casefold()) if label is not None else None
    if read and (value is None or str(value).casefold() in _YES):
        return read[1], f"not {read[1]}"
    if label is None or value is None:
        return "positive", "negative"
    if _PARTICIPLE.search(str(value).casefold()):
        return str(value), f"not {value}"
    return f"with {label} = {value}", f"with another {label}"
