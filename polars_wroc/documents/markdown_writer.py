"""Write the blocks of a document as Markdown, with titles in place of pictures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from polars_wroc.documents.blocks import (
    Beside,
    Block,
    Column,
    Figures,
    Fold,
    Lines,
    Row,
    Sign,
    Table,
    TextBlock,
)
from polars_wroc.names import write_in_one_line

# A bullet, a number of a list, or a rule.
_BEGINS_BLOCK = re.compile(r"^(\d*)([-+=.)])(?= |[-= ]*$)")


def write_markdown(blocks: Iterable[Block]) -> str:
    """Return blocks as Markdown, with an empty line between them."""
    return "\n\n".join(part for block in blocks for part in _write_block(block)) + "\n"


def escape_markdown(text: str) -> str:
    """Return a text escaped for Markdown and HTML, in one line."""
    text = write_in_one_line(text)
    for sign in "\\`*_[]<>|#&~$":
        text = text.replace(sign, f"\\{sign}")
    return text


def _escape_line(text: str) -> str:
    """Return a text escaped for the start of a line, where it could begin a list or be a rule."""
    return _BEGINS_BLOCK.sub(r"\1\\\2", escape_markdown(text))


def markdown_table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[bool]
) -> str:
    """Return a table of escaped cells, with some columns aligned to the right."""
    rule = ["---:" if is_right else "---" for is_right in right]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (headings, rule, *rows))


def _write_block(block: Block) -> Iterator[str]:
    match block:
        case TextBlock(text, level, _, lead):
            yield f"{'#' * level} {_with_lead(lead, text)}".strip()
        case Lines():
            yield from _lines(block)
        case Table():
            yield from _table(block)
        case Figures(figures):
            yield "\n".join(f"- {_escape_line(figure.title)}" for figure in figures)
        case Fold(_, _, instead) if instead:
            yield _escape_line(instead)
        case Fold(title, inside):
            yield write_markdown([TextBlock(title, 2), *inside]).rstrip()
        case Beside(parts):
            yield write_markdown([one for part in parts for one in part]).rstrip()
        case _:
            assert_never(block)


def _lines(block: Lines) -> Iterator[str]:
    if block.heading:
        yield f"**{escape_markdown(block.heading)}**"
    yield "\n".join(f"- {_with_lead(line.lead, line.text)}" for line in block.lines)


def _with_lead(lead: str, text: str) -> str:
    if not lead:
        return _escape_line(text)
    return " ".join(filter(None, [f"**{escape_markdown(lead)}**", escape_markdown(text)]))


def _table(block: Table) -> Iterator[str]:
    if block.title:
        yield f"## {escape_markdown(block.title)}"
    if any(sign.cell for sign in block.legend):
        yield _escape_line(" · ".join(_write_legend(block.legend)))
    # Dot plots are left out: their numbers are in the next column.
    places = [place for place, column in enumerate(block.columns[1:]) if column.style != "plot"]
    columns = [block.columns[0], *(block.columns[1 + place] for place in places)]
    right = [False, *(column.style not in ("left", "name") for column in columns[1:])]
    rows = [_cells(row, places) for row in block.rows]
    yield markdown_table([_heading(column) for column in columns], rows, right)
    yield from map(_escape_line, block.remarks)
    if block.note:
        yield _escape_line(block.note)


def _write_legend(legend: Sequence[Sign]) -> Iterator[str]:
    """Return the explanation of the signs in cells, without those of dot plots."""
    for sign in legend:
        if sign.cell is not None:
            yield f"{sign.cell.text} {sign.cell.change} {sign.meaning}"
        elif not sign.part:
            yield sign.meaning


def _heading(column: Column) -> str:
    return escape_markdown(f"{column.over} {column.heading}")


def _cells(row: Row, places: Sequence[int]) -> list[str]:
    name = escape_markdown(row.name)
    if row.kind == "group":
        return [f"**{name}**", *("" for _ in places)]
    cells = [row.cells[place] for place in places]
    return [name, *(escape_markdown(f"{cell.text} {cell.limits} {cell.change}") for cell in cells)]
