"""Write the blocks of a document as text for a terminal, with or without colours.

Colours are never needed: signs, for example ``●``, say the same.
"""

from __future__ import annotations

import textwrap
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import assert_never
from unicodedata import category, east_asian_width

from polars_wroc.documents.blocks import (
    TONE_SIGNS,
    Beside,
    Block,
    Cell,
    Column,
    Dots,
    Figures,
    Fold,
    GivesUp,
    Line,
    Lines,
    LineTone,
    Narrowing,
    Row,
    Sign,
    Table,
    TextBlock,
)
from polars_wroc.names import write_in_one_line

ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
# Codes of a terminal's styles.
BOLD, DIM, RED, CYAN = "1", "2", "31", "36"
# Bold orange and blue, which people with red-green blindness can distinguish.
_TONE_STYLES: dict[LineTone, str] = {
    "worse": f"{BOLD};38;5;166",
    "failed": f"{BOLD};38;5;166",
    "better": "38;5;32",
    "passed": "38;5;32",
    "either": BOLD,
}
_PARTS = {"dot": "○", "other": "│", "fifths": "┊"}
_BULLET, _BAR, _BETWEEN, _INDENT = "•", "▌", "  ", "  "
# The letters of a dot plot, a heading and a paragraph, if there is room.
_DOTS, _HEADING, _PARAGRAPH = 26, 11, 100
# No terminal is wider; a pipe is, and its lines are not broken.
_WIDEST = 10_000
# The fewest letters of a cut name: if nothing else helps, and while columns can be left out; and
# the share of letters from its end.
_LEAST, _READABLE, _PART_AT_END = 4, 12, 3
# The most letters that are kept only to keep names distinct.
_MOST_TO_TELL_APART = 24


def paint_text(text: str, style: str) -> str:
    """Return a text with the codes of a style, for example `BOLD`; unchanged without one."""
    return f"\x1b[{style}m{text}\x1b[0m" if style and text.strip() else text


@dataclass(frozen=True)
class Terminal:
    """The width of a terminal, and whether it shows colours.

    Columns of a table that do not fit are left out, or written ``below`` the others.
    """

    width: int = 80
    colored: bool = False
    below: bool = False

    def paint(self, text: str, style: str) -> str:
        """Return a text in a style, for example `BOLD`, if there are colours."""
        return paint_text(text, style) if self.colored else text


def write_text(blocks: Iterable[Block], terminal: Terminal) -> str:
    """Return blocks as lines, with an empty line between them except below headings."""
    return "\n".join(_separate(_write_block(block, terminal) for block in blocks))


def _separate(parts: Iterable[tuple[Sequence[str], bool]]) -> Iterator[str]:
    is_below_heading = True
    for lines, is_heading in parts:
        if not lines:
            continue
        if not is_below_heading:
            yield ""
        yield from lines
        is_below_heading = is_heading


def _write_block(block: Block, terminal: Terminal) -> tuple[Sequence[str], bool]:
    """Return the lines of a block, and whether they are a heading."""
    is_heading = isinstance(block, TextBlock) and block.level > 0
    match block:
        case TextBlock(text) if is_heading:
            lines = [terminal.paint(line, BOLD) for line in _wrap(text, terminal.width)]
        case TextBlock():
            lines = _paragraph(block, terminal)
        case Lines():
            lines = [*_list(block, terminal)]
        case Table():
            lines = [*_table(block, terminal)]
        case Figures(figures):
            lines = [line for one in figures for line in _item(Line(one.title), terminal)]
        case Fold(title, inside, instead):
            blocks = [TextBlock(instead)] if instead else [TextBlock(title, 2), *inside]
            lines = write_text(blocks, terminal).splitlines()
        case Beside(parts):
            lines = write_text([one for part in parts for one in part], terminal).splitlines()
        case _:
            assert_never(block)
    return lines, is_heading


# Paragraphs and lists.


def _wrap(text: str, width: int, *, break_words: bool = False) -> list[str]:
    """Return a text as lines, broken at spaces, and inside words only if allowed."""
    text = write_in_one_line(text)
    room = width if width > _WIDEST else max(min(_PARAGRAPH, width), 1)
    return textwrap.wrap(text, room, break_long_words=break_words, break_on_hyphens=False)


def _wrap_with_lead(lead: str, text: str, width: int, terminal: Terminal) -> list[str]:
    """Return a text as lines, with bold first words."""
    lead = write_in_one_line(lead)
    left, lines = len(lead), list[str]()
    for line in _wrap(f"{lead} {text}", width):
        lines.append(f"{terminal.paint(line[:left], BOLD)}{line[left:]}" if left else line)
        # Lines end at spaces.
        left = max(left - len(line) - 1, 0)
    return lines


def _paragraph(block: TextBlock, terminal: Terminal) -> list[str]:
    """Return the lines of a paragraph; an answer has a bar at its left."""
    styles = block.style.split()
    if "answer" not in styles:
        return _wrap_with_lead(block.lead, block.text, terminal.width, terminal)
    bar = terminal.paint(_BAR, _TONE_STYLES["worse"] if "worse" in styles else "")
    lines = _wrap_with_lead(block.lead, block.text, terminal.width - 2, terminal)
    return [f"{bar} {line}" for line in lines]


def _list(block: Lines, terminal: Terminal) -> Iterator[str]:
    if block.heading:
        yield terminal.paint(write_in_one_line(block.heading), BOLD)
    for line in block.lines:
        yield from _item(line, terminal)


def _item(line: Line, terminal: Terminal) -> Iterator[str]:
    sign = terminal.paint(TONE_SIGNS.get(line.tone, _BULLET), _TONE_STYLES.get(line.tone, ""))
    width = terminal.width - len(_INDENT)
    first, *others = _wrap_with_lead(line.lead, line.text, width, terminal) or [""]
    yield f"{sign} {first}"
    for other in others:
        yield f"{_INDENT}{other}"


# Tables.


@dataclass(frozen=True)
class _Written:
    """A column of a table as texts: the lines of its heading, and its cells by row."""

    column: Column
    heading: Sequence[str]
    cells: Sequence[str]
    is_name: bool = False

    @property
    def is_left(self) -> bool:
        """Whether the column is aligned to the left."""
        return self.is_name or self.column.style in ("name", "left", "plot")

    @property
    def has_names(self) -> bool:
        """Whether the column has names of groups, which may be cut."""
        return self.is_name or self.column.style == "name" or self.column.least > 0

    @property
    def least(self) -> int:
        """The width of the column if its texts are cut as far as possible."""
        if self.column.least:
            return min(self.width, self.column.least)
        if self.column.wraps:
            words = [word for text in [*self.heading, *self.cells] for word in text.split()]
            return max(map(text_width, words), default=0)
        is_text = self.is_left and self.column.style != "plot"
        return min(self.width, _LEAST) if is_text else self.width

    @cached_property
    def least_told_apart(self) -> int:
        """The width of the column if its names are cut as far as they stay distinct."""
        if self.column.wraps:
            return self.least
        told_apart = max(_READABLE, _count_letters_that_tell_apart(self.cells))
        return max(self.least, min(self.width, told_apart))

    @cached_property
    def width(self) -> int:
        """The width of the column."""
        return max(map(text_width, [*self.heading, *self.cells]), default=0)


def _count_letters_that_tell_apart(names: Sequence[str]) -> int:
    """Return the fewest letters to which names can be cut and stay distinct."""
    different = {*names}
    for width in range(_LEAST, _MOST_TO_TELL_APART):
        if len({_cut(name, width) for name in different}) == len(different):
            return width
    return _MOST_TO_TELL_APART


@dataclass(frozen=True)
class _Chosen:
    """The columns of a table, the places of visible ones, and whether limits are dropped."""

    columns: Sequence[_Written]
    places: Sequence[int]
    lacks_limits: bool = False


def _table(block: Table, terminal: Terminal) -> Iterator[str]:
    """Return the lines of a table with the columns that fit, and how many are left out."""
    width = terminal.width
    if block.title:
        title = _wrap(block.title, width, break_words=True)
        yield from (terminal.paint(line, BOLD) for line in title)
    if block.legend:
        signs = " · ".join(map(_sign, block.legend))
        yield from (terminal.paint(line, DIM) for line in _wrap(signs, width))
    if terminal.below:
        columns: Sequence[_Written] = _write_columns(block)
        parts = _divide(columns, width)
        left_out = list[str]()
    else:
        chosen = _narrow(block, width) if block.narrowing else _choose_columns(block, width)
        columns, parts = chosen.columns, [_leave_out_last(chosen, width)]
        n_columns = len(columns) - len(parts[0])
        left_out = _say_left_out(n_columns, limits=chosen.lacks_limits)
    for number, places in enumerate(parts):
        if number:
            yield ""
        widths = _fit([columns[place] for place in places], width)
        at_places = dict(zip(places, widths, strict=True))
        yield from _write_lines(block.rows, columns, at_places, terminal)
    notes = [block.note] if block.note else []
    for text in [*block.remarks, "; ".join([*notes, *left_out])]:
        for line in _wrap(text, width, break_words=True):
            yield terminal.paint(line, DIM)


def _choose_columns(block: Table, width: int) -> _Chosen:
    """Return the essential columns and others by priority, without limits if more fit then."""
    columns = _write_columns(block)
    places = _choose(columns, width)
    if len(places) == len(columns):
        return _Chosen(columns, places)
    others = [place for place, one in enumerate(columns) if not one.column.essential]
    without = _write_columns(block, without_limits=others)
    more = _choose(without, width)
    is_more = _rank_shown(columns, more) > _rank_shown(columns, places)
    if is_more and _have_limits(columns, without, places):
        return _Chosen(without, more, lacks_limits=True)
    return _Chosen(columns, places)


def _narrow(block: Table, width: int) -> _Chosen:
    """Return the columns of a table after the steps that make it narrow enough.

    A step that a later one made unnecessary is undone, the last one first.
    """
    full = _write_columns(block)
    bare = _write_columns(block, without_limits=range(len(full)))
    taken = list[Narrowing]()
    for step in block.narrowing:
        if _narrowed_width(full, bare, taken) <= width:
            break
        if taken and taken[-1].or_else:
            taken.pop()
        taken.append(step)
    for step in reversed(taken.copy()):
        place = taken.index(step)
        # Letters of names matter more than columns that are dropped before them, and less than
        # others.
        after = (one for one in taken[place + 1 :] if one.gives_up != "letters")
        others = [*taken[:place], *after]
        if _narrowed_width(full, bare, others) <= width:
            taken = others
    without_limits, left_out = _find_columns(taken, "limits"), _find_columns(taken, "place")
    columns = [
        bare[place] if place in without_limits else full[place] for place in range(len(full))
    ]
    places = [place for place in range(len(full)) if place not in left_out]
    return _Chosen(columns, places, lacks_limits=not without_limits <= left_out)


def _find_columns(steps: Iterable[Narrowing], gives_up: GivesUp) -> set[int]:
    return {step.column for step in steps if step.gives_up == gives_up}


def _narrowed_width(
    full: Sequence[_Written], bare: Sequence[_Written], steps: Sequence[Narrowing]
) -> int:
    """Return the width of a table after some steps, with names that can still be read."""
    without_limits, cut = _find_columns(steps, "limits"), _find_columns(steps, "letters")
    left_out = _find_columns(steps, "place")
    widths = []
    for place in range(len(full)):
        width = bare[place].width if place in without_limits else full[place].width
        if place not in left_out:
            readable = max(_READABLE, full[place].least)
            widths.append(min(width, readable) if place in cut else width)
    return _total_width(widths)


def _leave_out_last(chosen: _Chosen, width: int) -> list[int]:
    """Return columns without the last ones, if the table does not fit even with cut names."""
    places = [*chosen.places]
    while len(places) > 1 and _total_width([chosen.columns[one].least for one in places]) > width:
        places.pop()
    return places


def _rank_shown(columns: Sequence[_Written], shown: Sequence[int]) -> list[int]:
    """Return the numbers of visible columns, by descending priority."""
    priorities = sorted({one.column.priority for one in columns}, reverse=True)
    priorities_shown = [columns[place].column.priority for place in shown]
    return [priorities_shown.count(priority) for priority in priorities]


def _have_limits(
    columns: Sequence[_Written], without: Sequence[_Written], shown: Sequence[int]
) -> bool:
    """Return whether estimates that are left out have limits, without which they are narrower."""
    left_out = (place for place in range(len(columns)) if place not in shown)
    return any(columns[place].width > without[place].width for place in left_out)


def _say_left_out(columns: int, *, limits: bool) -> list[str]:
    """Return the sentence on what does not fit."""
    parts = ["more intervals"] if limits else []
    if columns:
        parts.append(f"{columns} more column{'' if columns == 1 else 's'}")
    return [f"{' and '.join(parts)} in a wider terminal"] if parts else []


def _sign(sign: Sign) -> str:
    if sign.cell is not None:
        return f"{sign.cell.text} {sign.cell.change} {sign.meaning}"
    return f"{_PARTS.get(sign.part, '')} {sign.meaning}"


def _write_columns(block: Table, *, without_limits: Container[int] = ()) -> list[_Written]:
    """Return the cells of all columns, with indented names of grouped rows."""
    grouped = any(row.kind == "group" for row in block.rows)
    names = [_name(row, grouped=grouped) for row in block.rows if row.kind != "group"]
    heading = [write_in_one_line(block.columns[0].heading)]
    first = _Written(block.columns[0], heading, names, is_name=True)
    rows = [row for row in block.rows if row.kind != "group"]
    columns = [first]
    for place, column in enumerate(block.columns[1:], 1):
        has_limits = place not in without_limits
        cells = _write_cells([row.cells[place - 1] for row in rows], limits=has_limits)
        columns.append(_Written(column, _heading(column, cells), cells))
    return columns


def _name(row: Row, *, grouped: bool) -> str:
    name = write_in_one_line(row.name)
    return f"{_INDENT}{name}" if grouped and row.kind != "all" and name else name


def _write_cells(cells: Sequence[Cell], *, limits: bool) -> list[str]:
    """Return the cells of a column, whose changes have the same width."""
    changes = [write_in_one_line(cell.change) for cell in cells]
    width = max(map(text_width, changes), default=0)
    written = []
    for cell, change in zip(cells, changes, strict=True):
        if cell.dots is not None:
            written.append(draw_dots(cell.dots))
        else:
            text = write_in_one_line(f"{cell.text} {cell.limits}" if limits else cell.text)
            written.append(f"{text} {fit_text(change, width)}" if width else text)
    return written


def _heading(column: Column, cells: Sequence[str]) -> list[str]:
    """Return a heading as lines, about as wide as its cells."""
    if column.axis:
        return [_draw_axis(column)]
    width = max(_HEADING, *map(text_width, cells)) if cells else _HEADING
    return _wrap(f"{column.over} {column.heading}", width)


def _choose(columns: Sequence[_Written], width: int) -> list[int]:
    """Return the places of the essential columns, and of the others that fit beside them."""
    places = _essential(columns)
    used = _total_width([columns[place].width for place in places])
    others = [place for place in range(len(columns)) if place not in places]
    priorities = {columns[place].column.priority for place in others}
    for priority in sorted(priorities, reverse=True):
        for place in others:
            column = columns[place].column
            if column.priority != priority:
                continue
            wider = used + len(_BETWEEN) + columns[place].width
            if wider <= width:
                places.append(place)
                used = wider
            elif column.style != "plot":
                # Columns after a missing one would seem to follow the column before it.
                break
    return sorted(places)


def _divide(columns: Sequence[_Written], width: int) -> list[list[int]]:
    """Return places of columns in parts that fit, each beginning with the essential ones.

    Names take at most half of the width.
    """
    essential = _essential(columns)
    others = [place for place in range(len(columns)) if place not in essential]
    taken = min(_total_width([columns[place].width for place in essential]), width // 2)
    parts, used = [list[int]()], taken
    for place in others:
        wider = used + len(_BETWEEN) + columns[place].width
        if parts[-1] and wider > width:
            parts.append([])
            wider = taken + len(_BETWEEN) + columns[place].width
        parts[-1].append(place)
        used = wider
    return [[*essential, *part] for part in parts]


def _essential(columns: Sequence[_Written]) -> list[int]:
    return [place for place, one in enumerate(columns) if one.is_name or one.column.essential]


def _total_width(widths: Sequence[int]) -> int:
    return sum(widths) + len(_BETWEEN) * max(len(widths) - 1, 0)


def _fit(columns: Sequence[_Written], width: int) -> list[int]:
    """Return the widths of columns: names are cut until all fit, other texts if necessary.

    Names stay distinct as long as others can be cut.
    """
    widths = [one.width for one in columns]
    names = [place for place, one in enumerate(columns) if one.has_names]
    least = [one.least for one in columns]
    told_apart = [one.least_told_apart for one in columns]
    for places, limits in ((names, told_apart), (names, least), (range(len(columns)), least)):
        for _ in range(_total_width(widths) - width):
            cut = [place for place in places if widths[place] > limits[place]]
            if not cut:
                break
            widths[max(cut, key=lambda place: widths[place])] -= 1
    return widths


def _write_lines(
    rows: Sequence[Row],
    columns: Sequence[_Written],
    widths: Mapping[int, int],
    terminal: Terminal,
) -> Iterator[str]:
    """Return the lines of headings and rows of the columns at some places."""
    shown = [columns[place] for place in widths]
    height = max(len(one.heading) for one in shown)
    for number in range(height):
        # The last lines of all headings are beside each other.
        texts = [
            ["", *one.heading][max(number - height + len(one.heading) + 1, 0)] for one in shown
        ]
        parts = map(_align, texts, widths.values(), shown)
        yield terminal.paint(_BETWEEN.join(parts).rstrip(), BOLD)
    number = 0
    for row in rows:
        if row.kind == "group":
            yield terminal.paint(
                fit_text(write_in_one_line(row.name), terminal.width).rstrip(), BOLD
            )
            continue
        cells = [_break_cell(columns[place], number, width) for place, width in widths.items()]
        styles = [_style(row, place) for place in widths]
        for line in zip_longest(*cells, fillvalue=""):
            parts = map(_align, line, widths.values(), shown)
            painted = map(_paint_inside, parts, styles, [terminal] * len(styles))
            yield _BETWEEN.join(painted).rstrip()
        number += 1


def _break_cell(column: _Written, row: int, width: int) -> list[str]:
    """Return the lines of a cell in a column of a width; a line that is too wide is cut later."""
    text = column.cells[row]
    return _wrap(text, width) if column.column.wraps and text else [text]


def _style(row: Row, place: int) -> str:
    """Return the style of a cell, or of the name of a row."""
    if not place:
        return ""
    cell = row.cells[place - 1]
    tone = cell.dots.tone if cell.dots else cell.tone
    return DIM if tone == "alike" else _TONE_STYLES.get(tone, "")


def _paint_inside(text: str, style: str, terminal: Terminal) -> str:
    """Return a painted text, without painting the spaces around it."""
    inside = text.strip()
    return text.replace(inside, terminal.paint(inside, style), 1) if inside else text


def _align(text: str, width: int, column: _Written) -> str:
    return fit_text(text, width, right=not column.is_left)


def text_width(text: str) -> int:
    """Return the number of screen columns of a text."""
    return len(text) if text.isascii() else sum(map(_sign_width, text))


def _sign_width(sign: str) -> int:
    if category(sign) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(sign) in "WF" else 1


def fit_text(text: str, width: int, *, right: bool = False) -> str:
    """Return a text cut or padded to a width."""
    text = _cut(text, width)
    room = " " * (width - text_width(text))
    return room + text if right else text + room


def _cut(text: str, width: int) -> str:
    """Return a text cut in its middle, since names with equal beginnings differ at the end."""
    if text_width(text) <= width:
        return text
    room = max(width - 1, 0)
    end = _take(text[::-1], room // _PART_AT_END)[::-1]
    return f"{_take(text, room - text_width(end))}{ELLIPSIS}{end}"


def _take(text: str, width: int) -> str:
    """Return as many characters as fit from the beginning of a text."""
    taken = ""
    for sign in text:
        if text_width(taken + sign) > width:
            break
        taken += sign
    return taken


# Dot plots.


def draw_dots(plot: Dots) -> str:
    """Return a dot plot as letters: ``──●──   │``."""
    line = [" "] * _DOTS
    if plot.fifths is not None:
        line[_letter(plot.fifths)] = _PARTS["fifths"]
    if plot.interval is not None:
        low, high = map(_letter, plot.interval)
        line[low : high + 1] = "─" * (high + 1 - low)
    if plot.other is not None:
        line[_letter(plot.other)] = _PARTS["other"]
    several = len(plot.dots) > 1
    for dot in plot.dots:
        line[_letter(dot)] = "●" if plot.tone else "·" if several else _PARTS["dot"]
    return "".join(line)


def _letter(percent: float) -> int:
    """Return the letter of a dot plot that contains a place."""
    return min(_DOTS - 1, max(0, round(percent / 100 * (_DOTS - 1))))


def _draw_axis(column: Column) -> str:
    """Return the numbers of an axis at their places, if there is room."""
    line = [" "] * _DOTS
    for percent, number in column.axis:
        text = write_in_one_line(number)
        start = _letter(percent) - len(text) // 2
        around = line[max(0, start - 1) : start + len(text) + 1]
        if 0 <= start <= _DOTS - len(text) and not "".join(around).strip():
            line[start : start + len(text)] = text
    return "".join(line)
