"""The sections of an audit, each of which yields blocks, or none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from polars_wroc.audits import cautions, context
from polars_wroc.audits.amounts import write_margin
from polars_wroc.audits.answer import count_comparisons, find_mood, write_answer
from polars_wroc.audits.gate_lines import write_gates
from polars_wroc.audits.glance import GLANCE_METRICS, lay_out_groups
from polars_wroc.audits.method import write_method
from polars_wroc.audits.provenance import write_foot
from polars_wroc.audits.say import SELECTION_RATE, ComparedRow, write_in_short, write_line
from polars_wroc.audits.tables import AuditTables, name_of
from polars_wroc.audits.toned_audit import NOTABLE, TonedAudit, find_segment_keys
from polars_wroc.audits.words import Words, name_attribute
from polars_wroc.documents.blocks import (
    Beside,
    Block,
    Cell,
    Column,
    Figures,
    Fold,
    Line,
    Lines,
    Row,
    Table,
    TextBlock,
    Tone,
)
from polars_wroc.documents.numbers import (
    NumberForm,
    compared_form,
    gap_form,
    value_form,
    write_p_value,
)
from polars_wroc.documents.phrases import capitalise, many, write_list
from polars_wroc.groups.comparisons import (
    AT_LEAST_FOUR_FIFTHS,
    BELOW_FOUR_FIFTHS,
    FAIRNESS,
    IMPACT_RATIO,
    NAMED_FOR,
)
from polars_wroc.inputs.columns import MODEL, OVERALL
from polars_wroc.metrics.calibration import SLOPE
from polars_wroc.names import quote, show_name
from polars_wroc.stats.families import DIFFERENT, EQUIVALENT

# The most groups with lines for their differences, lines of other groups, attributes with charts,
# and rows of the table of all numbers.
_DETAILED, _IN_SHORT, _DRAWN, _NUMBERS = 3, 8, 6, 800
# Metrics whose differences are reported; others are in the table of all numbers.
_TOLD = (SELECTION_RATE, *GLANCE_METRICS, SLOPE)
_ALL_NUMBERS = "All numbers"
_CERTIFIES_NOTHING = "This audit is not a certification."


def write_report(audit: AuditTables, *, with_charts: bool) -> list[Block]:
    """Return an audit as a document; charts need vl-convert."""
    toned = TonedAudit.read(audit)
    return [
        *_write_first_screen(toned),
        *_list_differences(toned),
        *(_draw_charts(toned) if with_charts else ()),
        _add_context(toned),
        _list_numbers(toned),
        Fold("How this was measured", write_method(audit, toned.words)),
        *write_foot(audit.run, _CERTIFIES_NOTHING),
    ]


def write_summary(audit: AuditTables) -> list[Block]:
    """Return the blocks for a terminal or a notebook: the answer, and all groups."""
    toned = TonedAudit.read(audit)
    words, remarks = toned.words, list[str]()
    if not audit.settings.labeled:
        remarks += cautions.say_not_given(audit.settings)
    remarks += cautions.say_missing(audit, words)
    remarks += cautions.say_unlabeled(audit, words)
    remarks += cautions.say_left_out(audit, words)
    remarks += cautions.say_values(audit)
    # Rows without a label may be reported twice: as missing values, and as decisions.
    shown = [Lines([Line(text) for text in dict.fromkeys(remarks)])] if remarks else []
    return [*_write_first_screen(toned), *shown]


def _write_first_screen(toned: TonedAudit) -> Iterator[Block]:
    """Yield the title, the answer, the failed checks and the table of all groups."""
    text = toned.audit.settings.text
    yield TextBlock(context.write_title(toned.audit.settings), 1)
    yield TextBlock(context.write_deck(toned), style="deck")
    if text.note:
        yield TextBlock(text.note, style="deck")
    yield from _lay_out_answer(toned)
    if toned.audit.gates:
        yield from _list_checks(write_gates(toned.audit.gates, toned.words))
    yield lay_out_groups(toned)


def _lay_out_answer(toned: TonedAudit) -> Iterator[Block]:
    """Yield who is worse off, and the tally of comparisons if groups differ."""
    first, *others = write_answer(toned)
    lead, colon, rest = first.partition(": ")
    text = " ".join([rest, *others]).strip()
    yield TextBlock(text, style=f"answer {find_mood(toned)}".strip(), lead=f"{lead}{colon.strip()}")
    # Otherwise the answer contains the tally.
    if toned.notable and (counted := count_comparisons(toned)):
        yield TextBlock(counted, style="tally")


def _list_checks(lines: Sequence[Line]) -> Iterator[Block]:
    """Yield the conditions of a pipeline, with the numbers of failed and unjudged ones."""
    tones, parts = [line.tone for line in lines], []
    if failed := tones.count("failed"):
        parts.append(f"{failed} of {len(lines)} failed")
    if unjudged := tones.count("unjudged"):
        parts.append(f"{unjudged} of {len(lines)} not judged")
    passed = f"all {len(lines)} passed" if len(lines) > 1 else "passed"
    yield TextBlock(f"Pipeline checks: {', '.join(parts) or passed}", 2)
    yield Lines(lines, style="checks")


# Differences.


def _list_differences(toned: TonedAudit) -> Iterator[Block]:
    """Yield the differences, a line each, below their group; mirror images share a line."""
    pairs = [Line(text) for text in context.compare_pairs(toned)]
    groups = _find_differences(toned)
    rest = _say_rest(toned)
    if not pairs and not groups and not rest:
        return
    yield TextBlock("What differs", 2)
    if pairs:
        yield Lines(pairs, "The scores", "found")
    better = {group: rows for group, rows in groups.items() if _find_tone(rows) == "better"}
    others = [(group, rows) for group, rows in groups.items() if group not in better]
    for (attribute, segment), rows in others[:_DETAILED]:
        lines = [_write_difference(row, toned.words) for row in rows]
        yield Lines(lines, _head_group(attribute, segment, toned.words), "found")
    yield from _list_in_short("Other groups", dict(others[_DETAILED:]), toned.words)
    yield from _list_in_short("The other side", better, toned.words)
    if rest:
        yield TextBlock(rest, style="note")


_Groups = Mapping[tuple[str, str | None], Sequence[ComparedRow]]


def _find_differences(toned: TonedAudit) -> _Groups:
    """Return the differences to report, by group, the most serious group first."""
    groups: dict[tuple[str, str | None], list[ComparedRow]] = {}
    for row in toned.findings:
        if row["tone"] in NOTABLE and row["metric"] in _TOLD:
            groups.setdefault((row["attribute"], row["segment"]), []).append(row)
    for rows in groups.values():
        rows.sort(key=lambda row: _TOLD.index(row["metric"]))
    return groups


def _find_tone(rows: Sequence[ComparedRow]) -> Tone:
    """Return the tone of a group: worse or better if all its rows with a tone agree."""
    tones: set[Tone] = {row["tone"] for row in rows} - {"either"}
    return tones.pop() if len(tones) == 1 else "either"


def _head_group(attribute: str, segment: str | None, words: Words) -> str:
    name = capitalise(words.group(attribute, segment))
    if attribute == OVERALL or attribute in words.named:
        return name
    return f"{name}, against {words.others}"


def _write_difference(row: ComparedRow, words: Words) -> Line:
    """Return the line on a group's difference in one metric, with the score if several."""
    score = quote(str(row[MODEL])) if words.names_score(row["metric"]) else ""
    return Line(write_line(row, words), row["tone"], score)


def _list_in_short(heading: str, groups: _Groups, words: Words) -> Iterator[Block]:
    """Return one line for each group: ``White applicants (race): selected +21, ...``."""
    lines = [
        Line(
            f"{', '.join(write_in_short(row, words) for row in rows)}.",
            _find_tone(rows),
            f"{capitalise(words.group(attribute, segment))}:",
        )
        for (attribute, segment), rows in groups.items()
    ]
    if len(lines) > _IN_SHORT:
        more = Line(f"{len(lines) - _IN_SHORT} more, listed under {_ALL_NUMBERS}.")
        lines = [*lines[:_IN_SHORT], more]
    if lines:
        yield Lines(lines, heading, "found")


def _say_rest(toned: TonedAudit) -> str:
    """Return the tally of differences that are not listed above."""
    words, different = toned.words, [row for row in toned.findings if row["verdict"] == DIFFERENT]
    small = sum(not row["matters"] for row in different)
    others = [
        row["metric"] for row in different if row["tone"] in NOTABLE and row["metric"] not in _TOLD
    ]
    parts = []
    if others:
        names = sorted({f"“{words.heading(metric)}”" for metric in others})
        parts.append(f"{many(len(others), 'difference')} in {write_list(names)}")
    if small:
        parts.append(f"{many(small, 'difference')} too small to matter")
    return f"Also shown, and listed under {_ALL_NUMBERS}: {write_list(parts)}." if parts else ""


# Charts, and what surrounds the numbers.


def _draw_charts(toned: TonedAudit) -> Iterator[Block]:
    """Yield two charts of each attribute: ranking, and calibration or distributions."""
    # Only a page should cost the import of Altair.
    from polars_wroc.audits import figures  # noqa: PLC0415

    audit = toned.audit
    if not audit.settings.score:
        return
    known = {*audit.segments["attribute"]}
    attributes = [name for name in audit.settings.attributes if name in known]
    for attribute in attributes[:_DRAWN]:
        second = figures.draw_calibration(toned, attribute)
        second = second or figures.draw_distribution(toned, attribute)
        drawn = [figures.draw_ranking(toned, attribute), second]
        shown = [figure for figure in drawn if figure is not None]
        if shown:
            yield TextBlock(f"Scores by {attribute}", 2)
            yield Figures(shown)
    if left_out := attributes[_DRAWN:]:
        names = write_list(left_out, _DRAWN)
        yield TextBlock(
            f"Only the first {_DRAWN} attributes have charts. For charts of {names}, audit fewer "
            f"attributes, or call audit.chart({left_out[0]!r}) in Python.",
            style="note",
        )


def _add_context(toned: TonedAudit) -> Block:
    """Yield explanations of gaps, subgroups that do worse, and the limits of the audit."""
    told = {
        "Why these gaps?": context.explain_gaps(toned),
        "Other subgroups": context.name_subgroups(toned),
    }
    left = list[Block]()
    for title, sentences in told.items():
        if sentences:
            left += [TextBlock(title, 2), TextBlock(" ".join(sentences))]
    limits = Lines([Line(text) for text in cautions.write_cautions(toned.audit, toned.words)])
    right: list[Block] = [TextBlock("Limits of this audit", 2), limits]
    return Beside([left, right] if left else [right])


# All numbers.


def _list_numbers(toned: TonedAudit) -> Block:
    """Yield the table of all numbers."""
    interval = f"{100 * toned.words.confidence:.4g}% interval"
    columns = [
        Column("Measure"),
        Column("Rows"),
        Column("Value", interval),
        Column("Compared with", style="left"),
        Column("Difference", interval),
        Column("p", "adjusted"),
        Column("Result"),
    ]
    known = toned.table.filter(pl.col("value").is_not_null())
    rows, last = list[Row](), None
    for row in known.head(_NUMBERS).iter_rows(named=True):
        if find_segment_keys(row) != last:
            rows.append(Row(_name_group(row, toned.words), kind="group"))
            last = find_segment_keys(row)
        rows.append(_write_numbers(row, toned.words))
    left_out = max(known.height - _NUMBERS, 0)
    note = f"{left_out:,} more are in the CSV and JSON files." if left_out else ""
    label = f"{many(known.height - left_out, 'number')}, with intervals and tests"
    instead = (
        f"All {many(known.height, 'number')}, with intervals and p-values, are in the HTML, CSV "
        "and JSON versions of this report."
    )
    table = Table(columns, rows, label=label, note=note, style="numbers")
    return Fold(_ALL_NUMBERS, [table], instead)


def _name_group(row: ComparedRow, words: Words) -> str:
    name = f"{show_name(name_of(row['segment']))} ({name_attribute(row['attribute'])})"
    if row["attribute"] == OVERALL:
        name = capitalise(words.everyone)
    return f"{name}, score {row[MODEL]}" if words.several else name


def _write_numbers(row: ComparedRow, words: Words) -> Row:
    """Return a comparison as a row of the table of all numbers."""
    metric = row["metric"]
    # The value of a ratio or a criterion is the number it is named for.
    number = NAMED_FOR.get(metric, "value")
    against = ""
    if row["reference_value"] is not None:
        against = words.name_reference(row).removeprefix("the ")
        if metric != IMPACT_RATIO:
            against += f" {compared_form(metric).write(row['reference_value'])}"
    p = row["p_adjusted"] if row["p_adjusted"] is not None else row["p_value"]
    cells = [
        Cell(f"{row['n']:,}"),
        Cell(_write_estimate(row, number, value_form(metric))),
        Cell(against),
        Cell(_write_estimate(row, "gap", gap_form(metric)) if number == "value" else ""),
        Cell(write_p_value(p)),
        Cell(_write_result(row, words), tone=row["tone"]),
    ]
    return Row(capitalise(words.heading(metric)), cells)


def _write_estimate(row: ComparedRow, name: str, form: NumberForm) -> str:
    """Return a number with its limits in brackets; empty without a number."""
    value, low, high = row[name], row[f"{name}_low"], row[f"{name}_high"]
    if value is None:
        return ""
    if low is None or high is None:
        return form.write(value)
    return f"{form.write(value)} {form.write_limits(low, high)}"


def _write_result(row: ComparedRow, words: Words) -> str:
    """Return the verdict on a comparison, or why there is none."""
    if row["metric"] in FAIRNESS:
        return ""
    if row["verdict"] is None:
        return row["reason"] or ""
    results = {
        DIFFERENT: "differs",
        BELOW_FOUR_FIFTHS: "below 0.8",
        AT_LEAST_FOUR_FIFTHS: "at least 0.8",
        EQUIVALENT: f"within {write_margin(words.margin)}",
    }
    return results.get(row["verdict"], "inconclusive")
