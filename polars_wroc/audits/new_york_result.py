"""The result of `new_york_summary`: a document in the order of the rule, and a workbook."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from polars_wroc.audits.page import write_document
from polars_wroc.audits.provenance import list_provenance, write_foot
from polars_wroc.audits.tables import Run
from polars_wroc.audits.words import name_attribute
from polars_wroc.documents.blocks import Block, Line, Lines, Table, TextBlock
from polars_wroc.documents.notebook import write_for_notebook
from polars_wroc.documents.numbers import DASH, PLAIN, SHARE, NumberForm
from polars_wroc.documents.phrases import many, verb
from polars_wroc.documents.table_layout import lay_out_columns
from polars_wroc.documents.text_writer import Terminal, write_text
from polars_wroc.documents.workbook import write_workbook
from polars_wroc.files import outputs
from polars_wroc.groups.categories import split_crossed
from polars_wroc.groups.comparisons import SMALL_SHARE, UNKNOWN_REASON
from polars_wroc.inputs.columns import UNKNOWN_CATEGORY
from polars_wroc.names import show_name, unique_name

NEW_YORK_SUFFIXES = (".html", ".md", outputs.WORKBOOK, *outputs.TABLE_SUFFIXES)
_SIGNATURE = "Independent auditor, name, date and signature:"
_RULE = "Rules of the City of New York, title 6, sections 5-301 to 5-303"
_CAUTION = (
    f"This summary has the numbers that the rule asks for ({_RULE}). It certifies nothing: the "
    "independent auditor who signs it is responsible for the audit. The rule sets no limit "
    "for impact ratios."
)
_EXPLANATION = (
    "The {rate} of a category is the number of its individuals who {counted}, divided by the "
    "number who were assessed. The impact ratio is this rate divided by that of the category with "
    "the highest rate."
)
_NOBODY = "Nobody was assessed, so there are no rates and no ratios."
_TO_BE_GIVEN = "____________________ (to be given by the auditor)"


@dataclass(frozen=True, repr=False, eq=False)
class NewYorkSummary:
    """The result of `new_york_summary`, which displays and saves itself.

    Attributes
    ----------
    table
        One row per category of each attribute, then of all attributes crossed: ``attribute,
        segment`` (String; a null segment is the unknown category); ``n, n_selected`` (Int64),
        people assessed, and selected or scored above the median; ``rate, impact_ratio`` (Float64),
        the latter null for categories that are unknown or left out; ``share`` (Float64), of the
        people in known categories; and ``reason`` (String), why there is no impact ratio.
    n, n_missing
        People assessed, and people without a decision or score, who are in no other number.
    hints
        Sentences for the auditor about categories that may be unknown.
    source, distribution_date, audit_date, justification, title
        The arguments.
    run
        When and, for the command line, from which files it was made.
    """

    table: pl.DataFrame
    n: int
    n_missing: int
    attributes: Sequence[str]
    scored: bool
    source: str
    distribution_date: dt.date
    audit_date: dt.date
    justification: str | None
    title: str
    # A note on the median, for readers.
    remark: str
    hints: Sequence[str]
    # The values of a column that are decisions, for readers.
    decisions: str = ""
    run: Run = field(default_factory=Run)

    def __repr__(self) -> str:
        hints = [TextBlock(hint) for hint in self.hints]
        terminal = Terminal(shutil.get_terminal_size().columns)
        return write_text([*lay_out_new_york(self), *hints], terminal)

    def _repr_html_(self) -> str:
        return write_for_notebook([*lay_out_new_york(self), *map(TextBlock, self.hints)])

    def save(self, path: str | Path) -> None:
        """Write the summary in the format of the path's suffix.

        ``.html`` is one page to publish, which opens without a network and in word processors, and
        ``.md`` the same as Markdown; ``.xlsx`` has the facts and the ``table``; ``.csv``,
        ``.parquet``, ``.json`` and ``.ndjson`` have the table. The file is written whole or not at
        all.
        """
        suffix = outputs.check_target(path, NEW_YORK_SUFFIXES)
        if suffix in (".html", ".md"):
            document = [*lay_out_new_york(self), *write_foot(self.run, signature=_SIGNATURE)]
            outputs.save_text(write_document(document, self.title, suffix), path)
        elif suffix == outputs.WORKBOOK:
            _save_workbook(self, path)
        else:
            table = self.table
            if suffix == ".csv":
                # Else an empty cell.
                table = table.with_columns(pl.col("segment").fill_null(UNKNOWN_CATEGORY))
            outputs.save_table(table, path)


def lay_out_new_york(summary: NewYorkSummary) -> list[Block]:
    """Return the summary as blocks: facts, explanations and a table of each division."""
    facts = [
        Line(f"{value:,}" if isinstance(value, int) else str(value), lead=f"{name}:")
        for name, value in _list_facts(summary)
    ]
    blocks: list[Block] = [TextBlock(summary.title, 1), Lines(facts)]
    blocks += map(TextBlock, _explain(summary))
    if summary.n:
        blocks += [_lay_out_division(summary, name) for name in _list_divisions(summary)]
        blocks += _lay_out_small_categories(summary)
    return [*blocks, TextBlock(_CAUTION)]


def _save_workbook(summary: NewYorkSummary, path: str | Path) -> None:
    """Write the facts and the table of a summary to a workbook."""
    facts: list[tuple[str, object]] = [*_list_facts(summary)]
    facts += [("Explanation", text) for text in [*_explain(summary), _CAUTION]]
    if summary.justification:
        facts.append(("Justification of the independent auditor", summary.justification))
    facts += list_provenance(summary.run)
    table = summary.table.with_columns(pl.col("segment").fill_null(UNKNOWN_CATEGORY))
    write_workbook(summary.title, facts, {"table": table}, path, summary.run.date)


def _list_facts(summary: NewYorkSummary) -> Iterator[tuple[str, str | int]]:
    """Return the facts that the rule asks for, besides rates and ratios."""
    yield "Date of the bias audit", f"{summary.audit_date}"
    yield "Distribution date of the tool", f"{summary.distribution_date}"
    yield "Source and explanation of the data", summary.source
    yield "Individuals assessed", summary.n
    for name in _list_divisions(summary):
        yield f"In an unknown category by {name_attribute(name)}", _count_unknown(summary, name)
    if summary.n_missing:
        unit = "score" if summary.scored else "decision"
        yield f"Left out of all numbers, without a {unit}", summary.n_missing


def _explain(summary: NewYorkSummary) -> list[str]:
    """Return the explanation of the rates and ratios."""
    _, rate = _name_numbers(summary)
    counted = "have a score above the median of all scores" if summary.scored else "were selected"
    explanation = _EXPLANATION.format(rate=rate.lower(), counted=counted)
    said = ["" if summary.n else _NOBODY, summary.decisions, explanation, summary.remark]
    return [text for text in said if text]


def _name_numbers(summary: NewYorkSummary) -> tuple[str, str]:
    """Return the headings of the counted people, and of their rate."""
    if summary.scored:
        return "Above the median", "Scoring rate"
    return "Selected", "Selection rate"


def _list_divisions(summary: NewYorkSummary) -> list[str]:
    """Return the attributes, and all of them crossed."""
    divisions: list[str] = summary.table["attribute"].unique(maintain_order=True).to_list()
    return divisions


def _count_unknown(summary: NewYorkSummary, attribute: str) -> int:
    unknown = summary.table.filter(pl.col("reason") == UNKNOWN_REASON, attribute=attribute)
    return int(unknown["n"].sum())


def _find_known(summary: NewYorkSummary, attribute: str) -> pl.DataFrame:
    """Return the rows of the known categories of a division."""
    is_known = pl.col("reason").ne_missing(UNKNOWN_REASON)
    return summary.table.filter(is_known, attribute=attribute)


def _lay_out_division(summary: NewYorkSummary, attribute: str) -> Table:
    """Return the table of categories, as in the examples of the rule, with left-out ones."""
    rows = _find_known(summary, attribute).to_dicts()
    numbers = _write_numbers(summary, rows)
    numbers["Impact ratio"] = _write_column(rows, "impact_ratio", PLAIN)
    names = [attribute]
    parts: list[tuple[str | None, ...]] = [(row["segment"],) for row in rows]
    if attribute not in summary.attributes:
        names = [*summary.attributes]
        categories = [{*_find_known(summary, name)["segment"]} for name in names]
        divided = [split_crossed(row["segment"], categories) for row in rows]
        # An ambiguous name of a combination is not split, and is in the first column.
        parts = [tuple(part or None for part in each) for each in divided]
    # An attribute may have any name.
    keys = {
        unique_name(name, numbers): [part[place] for part in parts]
        for place, name in enumerate(names)
    }
    notes = []
    if number := _count_unknown(summary, attribute):
        notes.append(
            f"{many(number, 'more individual')} {verb(number, 'is', 'are')} in an unknown category "
            f"by {name_attribute(attribute)}, and not in the calculations above."
        )
    if any((row["reason"] or "").startswith(SMALL_SHARE) for row in rows):
        notes.append(f"{DASH} Left out of the impact ratios: see below.")
    return lay_out_columns(
        pl.DataFrame(keys | numbers),
        [*keys],
        essential=[*numbers],
        title=f"By {name_attribute(attribute)}",
        note=" ".join(notes),
    )


def _lay_out_small_categories(summary: NewYorkSummary) -> list[Table]:
    """Return the categories that are left out, for which the rule wants number and rate."""
    is_small = pl.col("reason").str.starts_with(SMALL_SHARE)
    rows = summary.table.filter(is_small).to_dicts()
    if not rows:
        return []
    columns = {
        "Category": [
            f"{name_attribute(row['attribute'])}: {show_name(row['segment'])}" for row in rows
        ],
        **_write_numbers(summary, rows),
        "Share": _write_column(rows, "share", SHARE),
    }
    note = (
        f"Each of these has a {rows[0]['reason']} of the data, and no impact ratio. "
        f"Justification of the independent auditor: {summary.justification or _TO_BE_GIVEN}"
    )
    title = "Categories left out of the impact ratios"
    table = pl.DataFrame(columns)
    return [lay_out_columns(table, ["Category"], essential=[*columns], title=title, note=note)]


def _write_numbers(summary: NewYorkSummary, rows: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    counted, rate = _name_numbers(summary)
    return {
        "Assessed": [row["n"] for row in rows],
        counted: [row["n_selected"] for row in rows],
        rate: _write_column(rows, "rate", SHARE),
    }


def _write_column(rows: Sequence[dict[str, Any]], name: str, form: NumberForm) -> list[str]:
    return [DASH if row[name] is None else form.write(row[name]) for row in rows]
