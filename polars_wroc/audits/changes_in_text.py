"""Changes between two audits in words: sentences, and tables that fit a terminal."""

from __future__ import annotations

import textwrap

import polars as pl

from polars_wroc.audits.audit_changes import CHANGED, DETECTED, GAP, VALUE, Changes
from polars_wroc.audits.fitted_table import Screen, check_columns, fitted_table
from polars_wroc.audits.phrases import capitalised, first_few, many
from polars_wroc.audits.segment_keys import segment_in_words, segment_keys
from polars_wroc.audits.text_table import points_in_text
from polars_wroc.inputs.names import AUDIT_KEYS, MISSING

HEADINGS = {
    GAP: "Gaps to the reference, in points",
    VALUE: "Values (AUCs and rates), with changes in points",
}


def changes_in_text(changes: Changes, screen: Screen) -> str:
    """Write what changed in sentences, and in tables what is significant or a finding."""
    check_columns(changes.table, screen)
    notable, others = changes.divided()
    parts = [textwrap.fill(" ".join(sentences_of(changes)), screen.width)]
    parts += [
        f"{HEADINGS[measure]}:\n{_table(rows, measure, screen)}"
        for measure in HEADINGS
        if not (rows := notable.filter(measure=measure)).is_empty()
    ]
    if notable.height and others.height:
        parts.append(not_significant(others))
    return "\n\n".join(parts)


def not_significant(others: pl.DataFrame) -> str:
    """Count the changes that are neither significant nor a finding."""
    return f"{many(others.height, 'other change')} {_are(others.height)} not significant."


def sentences_of(changes: Changes) -> list[str]:
    """Count what changed and what is only detected, and name what only one audit has."""
    table = changes.table
    sentences = [_counts(changes)]
    for finding in DETECTED:
        if number := table.filter(finding=finding).height:
            themselves = "the gap itself is" if number == 1 else "the gaps themselves are"
            count = f"{many(number, 'gap')} {_are(number)} {finding}"
            sentences.append(f"{count}; {themselves} not shown to have changed.")
    return [*sentences, *_of_one_audit(table)]


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _counts(changes: Changes) -> str:
    """Count the significant changes of gaps, by what became of them, and of the metrics."""
    parts = []
    for measure, noun in ((GAP, "gap"), (VALUE, "value")):
        tested = changes.table.filter(pl.col("p_value").is_not_null(), measure=measure)
        changed = tested.filter(changes.significant)
        if tested.height:
            how = [
                f"{number:,} {finding}"
                for finding in CHANGED
                if (number := changed.filter(finding=finding).height)
            ]
            count = f"{changed.height:,}" if changed.height else "none"
            of_all = f"{count} of {many(tested.height, noun)}"
            parts.append(f"{of_all} ({', '.join(how)})" if how else of_all)
    text = f"{' and '.join(parts)} changed significantly." if parts else "no change can be tested."
    return capitalised(text)


def _of_one_audit(table: pl.DataFrame) -> list[str]:
    """Name the segments that only one of the audits has."""
    sentences = []
    for one, other in (("before", "after"), ("after", "before")):
        known = pl.col(one).is_not_null().any() & pl.col(other).is_null().all()
        segments = table.group_by(AUDIT_KEYS, maintain_order=True).agg(known.alias("only"))
        names = [
            segment_in_words(attribute, segment)
            for attribute, segment, only in segments.rows()
            if only
        ]
        if names:
            sentences.append(f"Only {one}: {first_few(names, '; ')}.")
    return sentences


def _table(changes: pl.DataFrame, measure: str, screen: Screen) -> str:
    segments = segment_keys(changes)
    changes = changes.with_columns(pl.col(key).fill_null(MISSING) for key in segments)
    keys = [*segments, "metric"]
    in_points = ("before", "after", "change") if measure == GAP else ("change",)
    short = changes.select(*keys, "before", "after", "change").with_columns(
        *(points_in_text(changes, name) for name in in_points),
        points_in_text(changes, "change_low", "change_high").alias("interval"),
        *([changes["finding"]] if measure == GAP else []),
    )
    return fitted_table(changes, short, screen, keys, least=short.width)
