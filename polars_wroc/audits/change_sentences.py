"""Sentences on the changes between two audits: how large, for whom, and what is unknown."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from polars_wroc.audits.audit_changes import (
    NO_LONGER_SHOWN,
    NOW_SHOWN,
    ONLY_AFTER,
    ONLY_BEFORE,
    Changes,
)
from polars_wroc.audits.say import AUC, ComparedRow, fill, fill_sentence, name_score
from polars_wroc.audits.words import Words, name_briefly
from polars_wroc.charts.wording import GAP_VERBS, write_gap_change
from polars_wroc.documents.numbers import value_form
from polars_wroc.documents.phrases import capitalise, first_few, many, verb, write_list
from polars_wroc.groups.comparisons import (
    CLOSED,
    GAP_CHANGES,
    IMPACT_RATIO,
    NEW,
)
from polars_wroc.inputs.columns import AUDIT_KEYS, MODEL, OVERALL
from polars_wroc.inputs.reasons import FEW
from polars_wroc.names import quote
from polars_wroc.thresholds.registry import GAP_RATES

# The most changes of a kind with a sentence each; tables have all of them.
_MOST_TOLD = 3
_GAP = "_gap"
_GAP_OF_AUC = f"{AUC}{_GAP}"
# A significant change; values are from the later audit.
_CHANGED_VALUE = "{who}, {heading}: {own}, against {other} before; {size} {side}{limits}."
_FOUR_FIFTHS = {
    NEW: ", now shown to be below four fifths (0.8)",
    CLOSED: ", no longer shown to be below four fifths (0.8)",
}


class ChangeKind(NamedTuple):
    """Metrics whose changes have the same unit and are listed together."""

    singular: str
    plural: str
    title: str
    metrics: tuple[str, ...]

    def select(self, changes: pl.DataFrame) -> pl.DataFrame:
        """Return the changes of these metrics."""
        return changes.filter(pl.col("metric").is_in(self.metrics))


KINDS = (
    ChangeKind(
        "gap in rates",
        "gaps in rates",
        "Gaps in rates, in percentage points",
        tuple(name for name in GAP_CHANGES if name != _GAP_OF_AUC),
    ),
    ChangeKind("gap in AUC", "gaps in AUC", "Gaps in AUC", (_GAP_OF_AUC,)),
    ChangeKind("impact ratio", "impact ratios", "Impact ratios", (IMPACT_RATIO,)),
    ChangeKind("rate", "rates", "Rates, with changes in percentage points", (*GAP_RATES,)),
    ChangeKind("AUC", "AUCs", "AUCs", (AUC,)),
)


def write_changes(changes: Changes) -> list[str]:
    """Return the sentences on significant changes, findings, and what was not compared."""
    return [
        _count_changes(changes),
        *_tell_changes(changes),
        *_name_detections(changes),
        *_name_other_references(changes),
        *_name_segments_of_one_audit(changes),
        *_name_small_segments(changes),
    ]


def count_others(others: pl.DataFrame) -> str:
    """Return the tally of changes that are neither significant nor findings."""
    are = verb(others.height, "is", "are")
    return f"{many(others.height, 'other change')} {are} not significant."


def name_metric(metric: str, words: Words) -> str:
    """Return the name of a changed metric, in plain words; for a gap, that of its metric."""
    return words.heading(metric.removesuffix(_GAP))


def _count_changes(changes: Changes) -> str:
    """Return the tally of the significant changes of each kind of metric."""
    tested = changes.table.filter(pl.col("p_value").is_not_null())
    if tested.is_empty():
        return "No change can be tested."
    parts = []
    counts = {kind: kind.select(tested).height for kind in KINDS}
    for kind, number in counts.items():
        n_changed = kind.select(tested).filter(changes.significant).height
        if n_changed:
            of_kind = f"{n_changed:,} of {number:,} {kind.plural}"
            parts.append(f"the only {kind.singular}" if number == 1 else of_kind)
    if not parts:
        return f"None of {many(tested.height, 'tested change')} is significant."
    others = "" if len(parts) == sum(number > 0 for number in counts.values()) else ", nothing else"
    return capitalise(f"{write_list(parts)} changed significantly{others}.")


def _tell_changes(changes: Changes) -> list[str]:
    """Return sentences on the clearest changes of each kind, with both values."""
    significant = changes.table.filter(changes.significant)
    return [
        _write_change(row, changes.words)
        for kind in KINDS
        for row in kind.select(significant)
        .sort("p_value", maintain_order=True)
        .head(_MOST_TOLD)
        .iter_rows(named=True)
    ]


def _write_change(row: ComparedRow, words: Words) -> str:
    metric, before, after = row["metric"], row["reference_value"], row["value"]
    score = name_score(row, words)
    if metric == IMPACT_RATIO:
        now = fill_sentence("{who}, impact ratio: {ratio}", {**row, "ratio": after}, words)
        then = fill("{ratio}", {**row, "ratio": before}, words)
        four_fifths = _FOUR_FIFTHS.get(row["finding"], "")
        return f"{score}{now}, against {then} before{four_fifths}."
    if metric not in GAP_CHANGES:
        return score + fill_sentence(_CHANGED_VALUE, row, words)
    # Gaps refer to the reference of both audits.
    reference = words.named.get(row["attribute"], words.kind)
    compared = {**row, "metric": metric.removesuffix(_GAP), "reference": reference}
    turned = write_gap_change(row["finding"], before, after)
    if metric == _GAP_OF_AUC:
        ends = [value_form(metric).write(gap) for gap in (before, after)]
        turned = f"{GAP_VERBS[row['finding']]} from {ends[0]} to {ends[1]}"
    gap = fill_sentence("{who}, {heading}: the gap to {others}", compared, words)
    return f"{score}{gap} {turned}."


def _name_detections(changes: Changes) -> list[str]:
    """Return sentences on gaps that only one audit finds, without a significant change."""
    sentences = []
    is_ratio = pl.col("metric") == IMPACT_RATIO
    for finding, when in ((NOW_SHOWN, "after"), (NO_LONGER_SHOWN, "before")):
        for is_of_kind, found in ((~is_ratio, "differ"), (is_ratio, "be below four fifths (0.8)")):
            rows = changes.table.filter(is_of_kind, finding=finding)
            names = [_name_row(row, changes.words) for row in rows.iter_rows(named=True)]
            if names:
                change = verb(len(names), "the change is", "the changes are")
                sentences.append(
                    f"Shown to {found} only {when}, though {change} not significant: "
                    f"{first_few(names, '; ')}."
                )
    return sentences


def _name_row(row: ComparedRow, words: Words) -> str:
    parts = [name_segment(row["attribute"], row["segment"], words)]
    if row["metric"] != IMPACT_RATIO:
        parts.append(name_metric(row["metric"], words))
    if words.several:
        parts.append(quote(row[MODEL]))
    return ", ".join(parts)


def _name_other_references(changes: Changes) -> list[str]:
    """Return the sentence on impact ratios whose reference differs between the audits."""
    keys, words = ["attribute", MODEL], changes.words
    old, new = (
        audit.table.filter(pl.col("reference").is_not_null(), metric=IMPACT_RATIO)
        .select(*keys, "reference")
        .unique(maintain_order=True)
        for audit in (changes.before, changes.after)
    )
    both = new.join(old, on=keys, nulls_equal=True, suffix="_before", maintain_order="left")
    return [
        f"{name_score(row, words)}Impact ratios by {row['attribute']} refer to "
        f"{words.group(row['attribute'], row['reference'])} after and to "
        f"{words.group(row['attribute'], row['reference_before'])} before, so their changes "
        "include those of the reference."
        for row in both.iter_rows(named=True)
        if row["reference"] != row["reference_before"]
    ]


def _name_segments_of_one_audit(changes: Changes) -> list[str]:
    """Return the sentence on segments that only one of the audits has."""
    sentences = []
    for reason in (ONLY_BEFORE, ONLY_AFTER):
        is_only = (pl.col("reason") == reason).fill_null(value=False).all()
        if names := _name_segments(changes, is_only):
            sentences.append(f"{capitalise(reason)}: {first_few(names, '; ')}.")
    return sentences


def _name_small_segments(changes: Changes) -> list[str]:
    """Return the sentence on segments whose changes are not tested for lack of rows."""
    is_few = pl.col("reason").str.starts_with(FEW).fill_null(value=False)
    is_untested = is_few.any() & pl.col("p_value").is_null().all()
    names = _name_segments(changes, is_untested)
    rows = changes.words.rows
    return [f"Too few {rows} for a test: {first_few(names, '; ')}."] if names else []


def _name_segments(changes: Changes, condition: pl.Expr) -> list[str]:
    """Return the names of the segments whose rows meet a condition."""
    segments = changes.table.group_by(AUDIT_KEYS, maintain_order=True).agg(condition.alias("met"))
    met = segments.filter("met").select(AUDIT_KEYS)
    return [name_segment(attribute, segment, changes.words) for attribute, segment in met.rows()]


def name_segment(attribute: str, segment: str | None, words: Words) -> str:
    """Return a group in a list or table: ``black (race)``, ``no recorded sex``, ``everyone``."""
    return words.everyone if attribute == OVERALL else name_briefly(attribute, segment)
