"""What every chart lets a caller choose: order, colours, size and title."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, Literal, TypeAlias, get_args

from polars_wroc.charts.drawable import drawable
from polars_wroc.charts.style import COLOURS, GREY, INK
from polars_wroc.inputs import arguments

Sort: TypeAlias = Literal["rows", "name", "value"]
# Fewest pixels of a panel.
_SMALLEST = 50
# Widths of a letter in pixels, of a caption and of a title.
_LETTER, _BOLD_LETTER = 5.4, 7.5
_CAPTION_SIZE, _TITLE_SIZE = 11, 14


@dataclass(frozen=True)
class Options:
    """Order of curves or segments, values in colour, pixels of a panel, and a title."""

    sort: Sort = "rows"
    highlight: Sequence[object] | None = None
    width: int | None = None
    height: int | None = None
    title: str | None = None

    def __post_init__(self) -> None:
        """Check all of them."""
        arguments.option("sort", self.sort, get_args(Sort))
        for name, pixels in (("width", self.width), ("height", self.height)):
            if pixels is not None:
                checked = arguments.whole_number(name, pixels, low=_SMALLEST)
                arguments.hold(self, **{name: checked})
        if self.title is not None:
            if not isinstance(self.title, str):
                arguments.reject_type("title", "be text", self.title)
            arguments.check_text("title", self.title)
        if self.highlight is not None:
            _check_values(self.highlight)


def _check_values(values: object) -> None:
    if not isinstance(values, Sequence) or isinstance(values, str | bytes):
        arguments.reject_type("highlight", "be a list of values", values)
    if not 1 <= len(values) <= len(COLOURS):
        msg = f"`highlight` must list 1 to {len(COLOURS)} values; found {len(values)}"
        raise ValueError(msg)


PLAIN = Options()


def captioned(title: str | None, note: str | None, width: float) -> dict[str, Any]:
    """Properties of a chart for its title and its caption, wrapped to a width in pixels.

    A caption is below the chart, or below the title if there is one.
    """
    import altair as alt  # noqa: PLC0415  (two seconds that only a chart should cost)

    lines = wrapped(note, width) if note else None
    if not title:
        if lines is None:
            return {}
        small: dict[str, Any] = {"fontSize": _CAPTION_SIZE, "fontWeight": "normal", "color": GREY}
        return {"title": alt.TitleParams(lines, orient="bottom", anchor="start", **small)}
    below: dict[str, Any] = {} if lines is None else {"subtitle": lines, "subtitlePadding": 5}
    text = wrapped(title, width, _BOLD_LETTER)
    return {
        "title": alt.TitleParams(
            text,
            anchor="start",
            fontSize=_TITLE_SIZE,
            color=INK,
            offset=12,
            subtitleFontSize=_CAPTION_SIZE,
            subtitleColor=GREY,
            **below,
        )
    }


def wrapped(text: str, width: float, letter: float = _LETTER) -> str | list[str]:
    """Break a text into lines of a width in pixels, and where it has line breaks itself."""
    letters = width / letter
    lines = [part for line in text.splitlines() for part in wrap(line, max(int(letters), 1))]
    return [drawable(line) for line in lines] if len(lines) > 1 else drawable(text)


def sentences(*notes: str | None) -> str | None:
    """Join the parts of a caption."""
    return ". ".join(note for note in notes if note) or None
