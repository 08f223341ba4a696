"""What an audit comes to, in a few sentences: who is worse off, on what, and what is not known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import polars as pl

from polars_wroc.audits.calibration_findings import CALIBRATION, TARGET
from polars_wroc.audits.calibration_sentences import in_short, is_of_calibration
from polars_wroc.audits.phrases import capitalised, first_few, many
from polars_wroc.audits.segment_keys import segment_in_words, segment_keys
from polars_wroc.audits.sentences import IMPACT_RATIO, share, size, span_of
from polars_wroc.audits.settings import AuditSettings
from polars_wroc.audits.words import Words
from polars_wroc.groups.min_rows import GAP_METRICS
from polars_wroc.inputs.names import MODEL
from polars_wroc.metrics.registry import ROC_AUC

# Most metrics of the segment that is named first.
_METRICS = 3


class Verdict(NamedTuple):
    """The sentences, and how many comparisons have which outcome."""

    text: str
    counts: dict[str, int]


def verdict_of(findings: pl.DataFrame, settings: AuditSettings) -> Verdict:
    """Sum up findings; each comparison of two segments counts once."""
    counted = findings.filter(~pl.col("mirror"))
    words = Words.of(settings)
    outcomes = {
        name: counted.filter(pl.col("verdict") == name).height
        for name in ("different", "alike", "too little data")
    }
    of_all = pl.col("reference").eq_missing(TARGET)
    different, whole = (counted.filter(some, verdict="different") for some in (~of_all, of_all))
    calibrated = pl.col("metric").is_in([*CALIBRATION])
    calibration, gaps = different.filter(calibrated), different.filter(~calibrated)
    worse, either = (gaps.filter(side=side) for side in ("worse", "either"))
    sentences = []
    if not worse.is_empty():
        sentences += _named_first(worse, words, "is worse off")
    elif not either.is_empty():
        sentences += _named_first(either, words, "differs")
    elif not gaps.is_empty():
        # What is better for a segment is worse for the others.
        sentences += _named_first(gaps, words, "is better off")
    elif not calibration.is_empty():
        sentences += _named_first(calibration, words, "differs in calibration")
    rest = _others(outcomes, words)
    if sentences:
        sentences += [f"{capitalised(rest)}."] if rest else []
    elif not any(outcomes.values()):
        sentences.append("Nothing could be compared.")
    else:
        sentences.append(f"No segment is shown to be worse off{': ' if rest else ''}{rest}.")
    text = " ".join([*sentences, *whole["sentence"]])
    if "selection_rate" not in findings["metric"]:
        text = f"Decisions were not audited. {text}"
    return Verdict(text, outcomes)


def _others(outcomes: Mapping[str, int], words: Words) -> str:
    """Count the comparisons that show no difference."""
    alike, little = outcomes["alike"], outcomes["too little data"]
    parts = []
    if alike:
        are = "is" if alike == 1 else "are"
        parts.append(f"{many(alike, 'comparison')} {are} alike within {size(words.margin)} points")
    if little:
        have = "has" if little == 1 else "have"
        counted = f"{little:,}" if parts else many(little, "comparison")
        parts.append(f"{counted} {have} too little data")
    return " and ".join(parts)


def _named_first(findings: pl.DataFrame, words: Words, what: str) -> list[str]:
    """Name the segment with the most serious finding, on what, and the other segments."""
    keys = segment_keys(findings)
    places = findings.select(keys).unique(maintain_order=True)
    first = findings.join(places.head(1), on=keys, nulls_equal=True, maintain_order="left")
    shown = first.head(_METRICS).to_dicts()
    first_gap = next((n for n, one in enumerate(shown) if one["metric"] != IMPACT_RATIO), None)
    parts = [_against(one, words, with_reference=n == first_gap) for n, one in enumerate(shown)]
    sentences = [f"{_name(shown[0])} {what}: {'; '.join(parts)}."]
    others = [_name(one) for one in places[1:].to_dicts()]
    if others:
        several = len(others) > 1
        verb = (
            ("are" if several else "is") if what.startswith("is") else ("do" if several else "does")
        )
        # Crossed segments have commas in their names.
        sentences.append(f"So {verb} {first_few(others, separator='; ')}.")
    return sentences


def _name(finding: Mapping[str, Any]) -> str:
    model = f" (model {finding[MODEL]})" if MODEL in finding else ""
    return f"{segment_in_words(finding['attribute'], finding['segment'])}{model}"


def _against(finding: Mapping[str, Any], words: Words, *, with_reference: bool) -> str:
    """Say in a few words what the segment's number is, that of the reference, and the limits."""
    if finding["metric"] == IMPACT_RATIO:
        reference = segment_in_words(finding["attribute"], finding["reference"])
        low, high = finding["ratio_low"], finding["ratio_high"]
        return (
            f"{words.good} {finding['ratio']:.2f} times as often as {reference} ({low:.2f} to "
            f"{high:.2f}), surely below four fifths"
        )
    if is_of_calibration(finding):
        return in_short(finding, words)
    metric = GAP_METRICS[finding["metric"]]
    value, other = (
        f"{finding[column]:.2f}" if metric is ROC_AUC else share(finding, column)
        for column in ("value", "reference_value")
    )
    both = metric.brief.format(
        positive=words.positive,
        negative=words.negative,
        selected=words.selected,
        rejected=words.rejected,
        value=value,
        other=other,
        of_rest=f" in {words.reference(finding)}" if with_reference else "",
    )
    low, high = finding["gap_low"], finding["gap_high"]
    if low is None:
        return both
    if metric is ROC_AUC and low * high > 0:
        least, most = sorted((abs(low), abs(high)))
        return f"{both} ({least:.2f} to {most:.2f} {'higher' if low > 0 else 'lower'})"
    return f"{both} ({span_of(low, high, finding)})"
