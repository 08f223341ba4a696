"""The blocks of documents, which `html_writer`, `markdown_writer` and `text_writer` write.

Texts have no markup: each writer escapes what its format would read as markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

# The tones of comparisons; "" means plain numbers.
Tone: TypeAlias = Literal["", "worse", "better", "either", "alike"]
# The kinds of rows of a table.
RowKind: TypeAlias = Literal["", "group", "all", "more"]
# The tones of lines of a list: comparisons, or conditions of a pipeline.
LineTone: TypeAlias = Tone | Literal["failed", "passed", "unjudged"]
# Parts that a column loses in a narrow terminal: the limits of estimates, the middle letters of
# names, or its place in the table.
GivesUp: TypeAlias = Literal["limits", "letters", "place"]
# The meaning of tones, for readers who do not see colours.
TONE_MEANINGS: dict[LineTone, str] = {
    "worse": "worse",
    "better": "better",
    "either": "different",
    "alike": "no difference that matters",
    "failed": "failed",
    "passed": "passed",
    "unjudged": "not judged",
}
# Signs of tones, so that nothing depends on colour alone.
TONE_SIGNS: dict[LineTone, str] = {
    "worse": "\N{BLACK CIRCLE}",
    "better": "\N{WHITE CIRCLE}",
    "either": "\N{BLACK DIAMOND}",
    "failed": "\N{BALLOT X}",
    "passed": "\N{CHECK MARK}",
    "unjudged": "\N{EN DASH}",
}


@dataclass(frozen=True)
class TextBlock:
    """A heading of level 1 to 3, or a paragraph (level 0), whose ``lead`` is bold.

    The style is a class of the page: ``answer``, with a tone, stands out.
    """

    text: str
    level: int = 0
    style: str = ""
    lead: str = ""


@dataclass(frozen=True)
class Line:
    """A line of a list, whose ``lead`` is bold."""

    text: str
    tone: LineTone = ""
    lead: str = ""


@dataclass(frozen=True)
class Lines:
    """A list, under a short heading if there is one."""

    lines: Sequence[Line]
    heading: str = ""
    style: str = ""


@dataclass(frozen=True)
class Dots:
    """A dot plot in a cell of a table; places are in percent of its width."""

    # One dot with its interval, or dots of several groups without intervals.
    dots: Sequence[float]
    ticks: Sequence[float] = ()
    interval: tuple[float, float] | None = None
    # The reference of the dot, and four fifths of the highest rate.
    other: float | None = None
    fifths: float | None = None
    tone: Tone = ""


@dataclass(frozen=True)
class Cell:
    """A cell of a table: a text with its change, for example ``56%`` and ``▼24``; or a dot plot.

    The limits of an estimate, for example ``(48.9 to 62.6)``, follow it if there is room.
    """

    text: str = ""
    change: str = ""
    tone: Tone = ""
    dots: Dots | None = None
    limits: str = ""


@dataclass(frozen=True)
class Row:
    """A row of a table: its name, in the first column, and the cells of the other columns.

    A row of the kind ``group`` has no cells and names the rows below it; ``all`` is everyone;
    ``more`` stands for several rows. If it comes ``again``, it belongs to the row above.
    """

    name: str
    cells: Sequence[Cell] = ()
    kind: RowKind = ""
    again: bool = False


@dataclass(frozen=True)
class Column:
    """The heading of a column, a technical name below it, and a text above several columns.

    Columns are aligned to the right unless their style is ``left``, or ``plot`` for dot plots. A
    column of the style ``name`` is also aligned to the left, and its names may be cut.
    """

    heading: str
    note: str = ""
    style: str = ""
    over: str = ""
    # Places, in percent, and numbers of an axis above dot plots.
    axis: Sequence[tuple[float, str]] = ()
    # A terminal always shows essential columns, which include the first one. Other columns are
    # shown if there is room, in order of priority.
    essential: bool = False
    priority: int = 0
    # The fewest letters to which a terminal cuts numbers with names; 0 without names.
    least: int = 0
    # Whether a terminal writes texts that are too wide on several lines, instead of cutting them.
    wraps: bool = False


@dataclass(frozen=True)
class Narrowing:
    """A step that makes a table narrower: what one of its columns loses.

    With ``or_else``, the next step is taken instead of this one, not after it.
    """

    column: int
    gives_up: GivesUp
    or_else: bool = False


@dataclass(frozen=True)
class Sign:
    """A sign that a table uses, and its meaning."""

    meaning: str
    # An example of a cell, or a part of a dot plot.
    cell: Cell | None = None
    part: Literal["", "dot", "other", "fifths"] = ""


@dataclass(frozen=True)
class Table:
    """A table with a title and a legend above it, kept together in print, and a note below.

    A table without a title has a ``label`` for screen readers. Remarks are sentences between the
    rows and the note. In a narrow terminal, the steps of ``narrowing`` are taken one after another
    until the table fits; without steps, essential columns and priorities decide.
    """

    columns: Sequence[Column]
    rows: Sequence[Row]
    title: str = ""
    label: str = "Table"
    legend: Sequence[Sign] = ()
    note: str = ""
    style: str = ""
    remarks: Sequence[str] = ()
    narrowing: Sequence[Narrowing] = ()


@dataclass(frozen=True)
class Figure:
    """A picture with its finding as title, and how to read it; ``alt`` replaces the picture.

    The SVG is trusted and not escaped.
    """

    svg: str
    title: str
    how: str
    alt: str


@dataclass(frozen=True)
class Figures:
    """Pictures beside each other, if there is room."""

    figures: Sequence[Figure]


@dataclass(frozen=True)
class Fold:
    """A part that is folded on screen; print and Markdown show it, or the sentence ``instead``."""

    title: str
    blocks: Sequence[Block]
    instead: str = ""


@dataclass(frozen=True)
class Beside:
    """Parts beside each other, if there is room."""

    parts: Sequence[Sequence[Block]]


Block: TypeAlias = TextBlock | Lines | Table | Figures | Fold | Beside
