"""Changes between two audits as text that fits a terminal: those that count, and a summary."""

from __future__ import annotations

import textwrap

import polars as pl

from polars_wroc.audits.audit_changes import Changes
from polars_wroc.audits.fitted_table import Screen, check_columns, fitted_table
from polars_wroc.audits.phrases import first_few, many
from polars_wroc.audits.segment_keys import segment_keys
from polars_wroc.audits.text_table import limits_in_text
from polars_wroc.inputs.names import AUDIT_KEYS, MISSING
from polars_wroc.stats.multiple_tests import is_significant

_HEADINGS = {"gap": "Gaps to the reference:", "value": "Values:"}
_FINDINGS = ("new", "gone", "grown", "shrunk")


def changes_in_text(changes: Changes, screen: Screen) -> str:
    """Write what changed in a sentence, and in tables what is significant or a finding."""
    table = changes.table
    check_columns(table, screen)
    significant = is_significant(pl.col("p_adjusted"), changes.level).fill_null(value=False)
    known = table.filter(pl.col("change").is_not_null())
    counts = f"{known.filter(significant).height:,} of {many(known.height, 'change')}"
    are = "is" if known.height == 1 else "are"
    sentences = [f"{_findings(table)} {counts} {are} significant.", *_of_one_audit(table)]
    parts = [textwrap.fill(" ".join(sentences), screen.width)]
    shown = known.filter(significant | pl.col("finding").is_not_null())
    parts += [
        f"{heading}\n{_table(rows, screen)}"
        for measure, heading in _HEADINGS.items()
        if not (rows := shown.filter(measure=measure)).is_empty()
    ]
    if (more := known.height - shown.height) and shown.height:
        verb = "is" if more == 1 else "are"
        text = f"{many(more, 'other change')} {verb} neither significant nor a finding."
        parts.append(textwrap.fill(text, screen.width))
    return "\n\n".join(parts)


def _findings(table: pl.DataFrame) -> str:
    """Count the gaps that are new, gone or of another size."""
    counts = [table.filter(finding=finding).height for finding in _FINDINGS]
    if not any(counts):
        return "No gap is new, gone, grown or shrunk."
    (new, *others), are = counts, "is" if counts[0] == 1 else "are"
    rest = [f"{count:,} {name}" for count, name in zip(others, _FINDINGS[1:], strict=True)]
    return f"{many(new, 'gap')} {are} new, {', '.join(rest[:-1])} and {rest[-1]}."


def _of_one_audit(table: pl.DataFrame) -> list[str]:
    """Name the segments that only one of the audits has."""
    sentences = []
    for one, other in (("before", "after"), ("after", "before")):
        known = pl.col(one).is_not_null().any() & pl.col(other).is_null().all()
        segments = table.group_by(AUDIT_KEYS, maintain_order=True).agg(known.alias("only"))
        names = [
            f"{attribute} {MISSING if segment is None else segment}"
            for attribute, segment, only in segments.rows()
            if only
        ]
        if names:
            sentences.append(f"Only {one}: {first_few(names, '; ')}.")
    return sentences


def _table(changes: pl.DataFrame, screen: Screen) -> str:
    segments = segment_keys(changes)
    changes = changes.with_columns(pl.col(key).fill_null(MISSING) for key in segments)
    keys = [*segments, "metric"]
    short = changes.select(
        *keys,
        *("before", "after", "change"),
        limits_in_text(changes, "change_low", "change_high").alias("interval"),
        *(["finding"] if changes["finding"].count() else []),
    )
    return fitted_table(changes, short, screen, keys, least=short.width)
