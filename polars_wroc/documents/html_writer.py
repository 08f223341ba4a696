"""Write the blocks of a document as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby
from typing import assert_never

from polars_wroc.documents.blocks import (
    TONE_MEANINGS,
    Beside,
    Block,
    Cell,
    Column,
    Dots,
    Figure,
    Figures,
    Fold,
    Lines,
    LineTone,
    Row,
    Sign,
    Table,
    TextBlock,
)
from polars_wroc.names import write_in_one_line

# The height of a dot plot in pixels, and the radius of its dots, alone and in a strip of several.
_HEIGHT, _RADIUS, _RADIUS_OF_SEVERAL = 24, 4.5, 3.5
# The parts of a dot plot in a legend.
_PARTS = {
    "dot": '<line class="i" x1="2" x2="30" y1="7" y2="7"/>'
    f'<circle class="d" cx="16" cy="7" r="{_RADIUS}"/>',
    "other": '<line class="r" x1="16" x2="16" y1="1" y2="13"/>',
    "fifths": '<line class="f" x1="16" x2="16" y1="0" y2="14"/>',
}
# The first letters of changes to a higher value.
_UP = "▲△↑"
# Tones for screen readers; other tones are not shown either.
_SPOKEN = ("worse", "better", "either")


def write_html(blocks: Iterable[Block]) -> str:
    """Return blocks as HTML, without the page around them."""
    return "".join(map(_write_block, blocks))


def escape_html(text: str) -> str:
    """Return a text escaped for HTML, in one line without control characters."""
    return escape(write_in_one_line(text))


def _write_block(block: Block) -> str:
    match block:
        case TextBlock(text, level, style, lead):
            tag = f"h{level}" if level else "p"
            return f"<{tag}{_class(style)}>{_with_lead(lead, text)}</{tag}>\n"
        case Lines():
            return _lines(block)
        case Table():
            return _table(block)
        case Figures(figures):
            return f'<div class="figures">{"".join(map(_figure, figures))}</div>\n'
        case Fold():
            return _fold(block)
        case Beside(parts):
            inside = "".join(f"<div>{write_html(part)}</div>" for part in parts)
            return f'<div class="beside">{inside}</div>\n'
        case _:
            assert_never(block)


def _class(*styles: str) -> str:
    style = " ".join(filter(None, styles))
    return f' class="{style}"' if style else ""


def _with_lead(lead: str, text: str) -> str:
    parts = [f"<b>{escape_html(lead)}</b>" if lead else "", escape_html(text)]
    return " ".join(filter(None, parts))


def _spoken(text: str) -> str:
    """Return a text for screen readers only."""
    return f'<i class="sr">{text}</i>'


# Lists.


def _lines(block: Lines) -> str:
    heading = f"<h3>{escape_html(block.heading)}</h3>" if block.heading else ""
    items = "".join(
        f"<li{_class(line.tone)}>{_spoken_tone(line.tone)}{_with_lead(line.lead, line.text)}</li>"
        for line in block.lines
    )
    return f"{heading}<ul{_class(block.style)}>{items}</ul>\n"


def _spoken_tone(tone: LineTone) -> str:
    """Return the tone of a line for screen readers."""
    return _spoken(f"{TONE_MEANINGS[tone]}: ") if tone in _SPOKEN else ""


# Tables.


def _table(block: Table) -> str:
    title = f"<h2>{escape_html(block.title)}</h2>" if block.title else ""
    legend = f'<p class="legend">{"".join(map(_sign, block.legend))}</p>' if block.legend else ""
    note = f'<p class="note">{escape_html(block.note)}</p>' if block.note else ""
    remarks = "".join(f'<p class="note">{escape_html(text)}</p>' for text in block.remarks)
    label = escape_html(block.title or block.label)
    rows = "".join(_row(row, block.columns) for row in block.rows)
    # A table that is wider than its page scrolls, also by keyboard.
    return (
        f"<section{_class(block.style)}>{title}{legend}"
        f'<div class="wide" tabindex="0" role="region" aria-label="{label}">'
        f"<table><thead>{_head(block.columns)}</thead><tbody>\n{rows}</tbody></table></div>"
        f"{remarks}{note}</section>\n"
    )


def _sign(sign: Sign) -> str:
    meaning = escape_html(sign.meaning)
    if sign.cell is not None:
        change = f" <b>{escape_html(sign.cell.change)}</b>" if sign.cell.change else ""
        example = f"{escape_html(sign.cell.text)}{change}"
        return f"<span><span{_class('key', sign.cell.tone)}>{example}</span> {meaning}</span>"
    if not sign.part:
        return f"<span>{meaning}</span>"
    picture = (
        f'<svg class="dots sample" viewBox="0 0 32 14" aria-hidden="true">{_PARTS[sign.part]}</svg>'
    )
    return f"<span>{picture} {meaning}</span>"


def _head(columns: Sequence[Column]) -> str:
    above = "".join(
        _heading_above(over, len([*neighbours]))
        for over, neighbours in groupby(columns, key=lambda column: column.over)
    )
    first = f'<tr class="over">{above}</tr>' if any(column.over for column in columns) else ""
    return f"{first}<tr>{''.join(map(_heading, columns))}</tr>"


def _heading_above(over: str, columns: int) -> str:
    if not over:
        return f'<td colspan="{columns}"></td>'
    return f'<th colspan="{columns}" scope="colgroup">{escape_html(over)}</th>'


def _heading(column: Column) -> str:
    note = f"<small>{escape_html(column.note)}</small>" if column.note else ""
    numbers = "".join(
        f'<text x="{place:g}%" y="11">{escape_html(text)}</text>' for place, text in column.axis
    )
    axis = f'<svg class="dots" height="14" aria-hidden="true">{numbers}</svg>' if numbers else ""
    heading = f"{escape_html(column.heading)}{note}{axis}"
    return f'<th scope="col"{_class(column.style)}>{heading}</th>'


def _row(row: Row, columns: Sequence[Column]) -> str:
    name = escape_html(row.name)
    if row.kind == "group":
        heading = f'<th colspan="{len(columns)}" scope="rowgroup">{name}</th>'
        return f'<tr class="group">{heading}</tr>\n'
    cells = "".join(map(_cell, row.cells, columns[1:]))
    style = _class(row.kind, "again" if row.again else "")
    return f'<tr{style}><th scope="row"{_class(columns[0].style)}>{name}</th>{cells}</tr>\n'


def _cell(cell: Cell, column: Column) -> str:
    if cell.dots is not None:
        return f'<td class="plot">{_dots(cell.dots)}</td>'
    change = f" {_change(cell)}" if cell.change else ""
    limits = f' <span class="limits">{escape_html(cell.limits)}</span>' if cell.limits else ""
    return f"<td{_class(cell.tone, column.style)}>{escape_html(cell.text)}{limits}{change}</td>"


def _change(cell: Cell) -> str:
    """Return a change, whose arrow screen readers read as words."""
    arrow, size = cell.change[0], cell.change[1:]
    spoken = TONE_MEANINGS[cell.tone] if cell.tone else ""
    if size:
        spoken += ", higher by " if arrow in _UP else ", lower by "
    seen = f'<i aria-hidden="true">{escape_html(arrow)}</i>'
    return f"<b>{seen}{_spoken(spoken)}{escape_html(size)}</b>"


# Dot plots, in the colours of the page; their numbers are in the next cell.


def _dots(plot: Dots) -> str:
    parts = [_upright("g", tick) for tick in plot.ticks]
    if plot.fifths is not None:
        parts.append(_upright("f", plot.fifths))
    if plot.other is not None and plot.dots and plot.tone:
        parts.append(_level(f"b {plot.tone}", plot.other, plot.dots[0]))
    if plot.other is not None:
        parts.append(_upright("r", plot.other, 5))
    if plot.interval is not None:
        parts.append(_level(f"i {plot.tone}".strip(), *plot.interval))
    several = len(plot.dots) > 1
    style = "s" if several else f"d {plot.tone}".strip()
    radius = _RADIUS_OF_SEVERAL if several else _RADIUS
    middle = _HEIGHT // 2
    parts += [
        f'<circle class="{style}" cx="{dot:g}%" cy="{middle}" r="{radius}"/>' for dot in plot.dots
    ]
    return f'<svg class="dots" height="{_HEIGHT}" aria-hidden="true">{"".join(parts)}</svg>'


def _upright(style: str, place: float, top: int = 0) -> str:
    ends = f'x1="{place:g}%" x2="{place:g}%" y1="{top}" y2="{_HEIGHT - top}"'
    return f'<line class="{style}" {ends}/>'


def _level(style: str, start: float, end: float) -> str:
    middle = _HEIGHT // 2
    ends = f'x1="{start:g}%" x2="{end:g}%" y1="{middle}" y2="{middle}"'
    return f'<line class="{style}" {ends}/>'


# Figures and folds.


def _figure(figure: Figure) -> str:
    label = f'<svg role="img" aria-label="{escape_html(figure.alt)}" '
    svg = figure.svg.replace("<svg ", label, 1)
    caption = f"<b>{escape_html(figure.title)}</b> <span>{escape_html(figure.how)}</span>"
    return f"<figure><figcaption>{caption}</figcaption>{svg}</figure>"


def _fold(block: Fold) -> str:
    style = "screen" if block.instead else "printed"
    title = f"<summary><h2>{escape_html(block.title)}</h2></summary>"
    folded = f'<details class="{style}">{title}{write_html(block.blocks)}</details>\n'
    on_paper = f'<p class="paper">{escape_html(block.instead)}</p>\n' if block.instead else ""
    return f"{folded}{on_paper}"
