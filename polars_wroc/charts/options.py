"""What every chart lets a caller choose: order, names, colours, size and title."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

import polars as pl

from polars_wroc.files import outputs
from polars_wroc.groups.auc_sums import GAP_METRICS
from polars_wroc.inputs import arguments

if TYPE_CHECKING:
    import altair as alt


GapMetric: TypeAlias = Literal["auc", "selection_rate", "tpr", "fpr", "ppv", "npv"]
# What of a metric changes between two audits: its gap to the reference, or its value.
ChangeMeasure: TypeAlias = Literal["gap", "value"]
MINUS = "\N{MINUS SIGN}"
# Format of gaps, which charts draw in points.
POINTS = "+.1f"
# Kinds of confidence limits.
INTERVAL = "confidence interval"
JOINT_INTERVAL = "joint confidence interval"
BAND = "confidence band"

NAMES: dict[GapMetric, str] = {name: GAP_METRICS[name].label for name in get_args(GapMetric)}


def heading(metric: GapMetric) -> str:
    """Name a number where a sentence or a title begins."""
    return GAP_METRICS[metric].heading


def in_points(title: str) -> str:
    """Add to the title of an axis that its numbers are in points."""
    return f"{title}, in points of 100,"


def interval_name(level: float | None, kind: str = INTERVAL) -> str:
    """Name confidence limits of a kind, with their level if that is known."""
    return f"{'' if level is None else f'{100 * level:g}% '}{kind}"


# A space without width.
UNSEEN = "\u200b"
# Properties of every JavaScript object; Vega keeps groups and titles in objects.
_JAVASCRIPT = frozenset(
    (
        *("__proto__", "constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable"),
        *("toLocaleString", "toString", "valueOf", "__defineGetter__", "__defineSetter__"),
        *("__lookupGetter__", "__lookupSetter__"),
    )
)


# Control characters but tabs and line breaks, and others that no XML, and so no SVG, may hold.
_NO_XML = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def visible(text: str) -> str:
    r"""Write characters that cannot be drawn as their code, such as ``\x07`` for a bell."""
    return _NO_XML.sub(lambda found: ascii(found[0])[1:-1], text)


def drawable(text: str) -> str:
    """Make a name visible, and add a character without width to one that JavaScript has."""
    text = visible(text)
    return f"{text}{UNSEEN}" if text.rstrip(UNSEEN) in _JAVASCRIPT else text


Chart: TypeAlias = "alt.LayerChart | alt.FacetChart"

# Altair refuses more rows, and a notebook would contain them all.
MAX_ROWS = 5_000
# The four colours of Okabe and Ito with a contrast of at least 3:1 on white, and black; each has
# its own dash pattern and shape.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000")
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 4])
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross")
INK, GREY, PALE = "#333333", "#595959", "#767676"
# Of a curve among many that is not in colour.
FAINT = "#B3B3B3"
# Where estimates are tolerated.
BAND_COLOR = "#DCE9F5"
PANEL = 260
# Texts in place of a curve.
ONE_CLASS, NO_ROWS = "one class only", "no rows"


def haloed(base: Any, place: dict[str, Any], **mark: Any) -> list[Any]:
    """Write a text with a white halo, readable on top of a line."""
    mark = {"fontSize": 11, "color": INK, **mark}
    halo = base.mark_text(**mark, stroke="white", strokeWidth=4, strokeJoin="round", aria=False)
    return [halo.encode(**place), base.mark_text(**mark).encode(**place)]


def save_chart(chart: Chart | alt.VConcatChart, path: str | Path) -> None:
    """Write a chart as .html (which needs no network), .png or .svg, completely or not at all."""
    suffix = outputs.check_target(path, outputs.CHART_SUFFIXES)
    try:
        import vl_convert  # noqa: F401, PLC0415  (an extra)
    except ImportError as error:
        msg = "saving a chart needs vl-convert-python: pip install 'polars-wroc[report]'"
        raise ImportError(msg) from error
    inline = suffix == ".html"
    outputs.write(path, lambda part: chart.save(str(part), inline=inline))


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


# Number of each value; null if none of its curves has one.
Numbers: TypeAlias = Mapping[str, float | None]
_VALUE = "__value"
# Of too many values, so many of the highest and of the lowest are drawn in colour.
_EXTREMES = 2


class Ranked(NamedTuple):
    """What ``sort="value"`` orders by: a number of each curve or segment, and its name."""

    number: pl.Expr
    label: str


def numbers_of(
    table: pl.DataFrame, groups: Sequence[str], column: str, ranked: Ranked | None
) -> Numbers:
    """Mean number of the curves, or segments, of each value of a column."""
    if ranked is None:
        return {}
    of_curves = table.group_by(groups).agg(ranked.number.first().alias(_VALUE))
    return dict(of_curves.group_by(column).agg(pl.col(_VALUE).mean()).rows())


def ordered(values: Iterable[str], sort: Sort, numbers: Numbers) -> list[str]:
    """Sort names as people do, or by number, the highest first and what has none last."""
    if sort == "name":
        return sorted(values, key=_natural)
    if sort == "value":
        return sorted(values, key=lambda value: _falling(numbers.get(value)))
    return list(values)


def extremes(
    values: Sequence[str], numbers: Numbers, ranked: Ranked | None
) -> tuple[list[str], str]:
    """Choose values to draw in colour where there are too many, and say which they are."""
    if ranked is None:
        return list(values[: len(COLOURS)]), "in colour the first five"
    known = [v for v in ordered(values, "value", numbers) if numbers.get(v) is not None]
    # Values without a number fill the places that are left.
    first = [*known[:_EXTREMES], *known[_EXTREMES:][-_EXTREMES:], *values]
    chosen = list(dict.fromkeys(first))[: 2 * _EXTREMES]
    return chosen, f"in colour the two highest and the two lowest by {ranked.label}"


def _falling(number: float | None) -> tuple[bool, float]:
    return number is None, -(number or 0.0)


def _natural(name: str) -> list[tuple[bool, int, str]]:
    """Compare digits in a name as numbers, so that 9 comes before 10."""
    parts = re.split(r"([0-9]+)", name.casefold())
    # Every second part is a number.
    return [
        (place % 2 == 0, int(part) if place % 2 else 0, part) for place, part in enumerate(parts)
    ]
