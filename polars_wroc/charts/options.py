"""What every chart lets a caller choose: order, names, colours, size and title."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypedDict, get_args

import polars as pl

from polars_wroc import checks
from polars_wroc.checks import did_you_mean
from polars_wroc.files import outputs


class _Altair:
    """Altair, imported when it is first used: only a chart should cost these two seconds."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module("altair"), name)


if TYPE_CHECKING:
    import altair  # noqa: ICN001  (`alt` is for the other modules)

    alt = altair
else:
    alt = _Altair()

# Format of gaps, which charts draw in points.
POINTS = "+.1f"
# Kinds of confidence limits.
INTERVAL = "confidence interval"
JOINT_INTERVAL = "joint confidence interval"
BAND = "confidence band"


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


def unlike(name: str, taken: Collection[str]) -> str:
    """Append invisible characters to a name that is taken."""
    while name in taken:
        name += UNSEEN
    return name


Chart: TypeAlias = "alt.LayerChart | alt.FacetChart"

# Altair refuses more rows, and a notebook would contain them all.
MAX_ROWS = 5_000
# Colours with a contrast of at least 3:1 on white and on dark grey, which differ in all kinds of
# sight: three of Okabe and Ito, and two blues. Each has its own dash pattern and shape.
COLOURS = ("#1E88D0", "#D55E00", "#009E73", "#CC79A7", "#606CFC")
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 4])
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross")
# Of lines; readable on white and on dark grey.
GREY = "#7F7F7F"
# The background of a chart is that of its theme, and texts are readable on it.
BACKGROUND = {"expr": "background"}
INK = {"expr": "luminance(background) < 0.3 ? '#FFFFFF' : '#333333'"}
TEXT: dict[str, Any] = {"fontSize": 11, "color": INK}
# Of a curve among many that is not in colour.
FAINT = "#B3B3B3"
# Where estimates are tolerated.
BAND_COLOR = "rgba(30, 136, 208, 0.2)"
PANEL = 260
# Texts in place of a curve.
ONE_CLASS, NO_ROWS = "one class only", "no rows"


def haloed(base: Any, place: dict[str, Any], **mark: Any) -> list[Any]:
    """Write a text with a halo of the background, readable on top of a line."""
    mark = {**TEXT, **mark}
    around = {"stroke": BACKGROUND, "strokeWidth": 4, "strokeJoin": "round"}
    halo = base.mark_text(**mark, **around, aria=False)
    return [halo.encode(**place), base.mark_text(**mark).encode(**place)]


# Columns of counts, which tooltips show with more digits, and those that select what is shown.
_COUNTS, _EXACT = ("tp", "fp", "fn", "tn", "n", "weight"), "__from"
_DIGITS, _DIGITS_OF_COUNTS = 5, 7
# Whole numbers up to this are exact in JavaScript.
_SAFE = 2**53


def inline(table: pl.DataFrame) -> Any:
    """Put rows into a spec: numbers rounded to 5 digits, counts to 7, and null left out."""
    return alt.InlineData(values=rounded_rows(table.to_dicts()))


def rounded_rows(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Round the numbers of rows to the digits that a chart shows, and leave out what is null."""
    return [
        {
            name: value if name == _EXACT else rounded(value, count=name in _COUNTS)
            for name, value in row.items()
            if value is not None and (not isinstance(value, float) or math.isfinite(value))
        }
        for row in rows
    ]


def rounded(value: Any, *, count: bool = False) -> Any:
    """Round a number to the digits that a chart shows, and write whole ones without a point."""
    if not isinstance(value, float):
        return value
    short = float(f"{value:.{_DIGITS_OF_COUNTS if count else _DIGITS}g}")
    whole = value if count and value.is_integer() else short
    return int(whole) if whole.is_integer() and abs(whole) < _SAFE else whole


def save_chart(chart: Chart | alt.VConcatChart, path: str | Path) -> None:
    """Write a chart as .html (which needs no network), .png or .svg, completely or not at all."""
    suffix = outputs.check_target(path, outputs.CHART_SUFFIXES)
    try:
        import vl_convert  # noqa: F401, PLC0415  (an extra)
    except ImportError as error:
        msg = "saving a chart needs vl-convert-python: pip install 'polars-wroc[report]'"
        raise ImportError(msg) from error
    inline = suffix == ".html"
    usermeta = chart.to_dict(validate=False).get("usermeta", {})
    scale = usermeta.get("embedOptions", {}).get("scaleFactor", 1)
    outputs.write(path, lambda part: chart.save(str(part), inline=inline, scale_factor=scale))


Sort: TypeAlias = Literal["rows", "name", "value"]
Show: TypeAlias = Literal["value", "gap", "ratio", "funnel"]
GainKind: TypeAlias = Literal["gain", "lift", "cap"]
Rate: TypeAlias = Literal[
    "selection_rate", "tpr", "fpr", "ppv", "npv", "tnr", "fnr", "fdr", "for", "accuracy"
]
# Fewest pixels of a panel, and how much smaller or larger a PNG may be.
_SMALLEST = 50
_SMALLEST_SCALE, _LARGEST_SCALE = 0.1, 20
# Widths of a letter in pixels, of a caption and of a title.
_LETTER, _BOLD_LETTER = 5.4, 7.5
_CAPTION_SIZE, _TITLE_SIZE = 11, 14


class ChartOptions(TypedDict, total=False):
    """What all charts let a caller choose; an editor completes the names.

    Attributes
    ----------
    color
        Column whose values get a color and a dash pattern, or a shape, each. Of more than five, the
        two highest and the two lowest do, and the others are grey: each chart says by which number.
        None takes the first group column other than ``facet``, unless the chart says otherwise.
    facet
        Column whose values get a panel each.
    columns
        Number of panels in a row, 3 by default.
    sort
        Order of curves, segments and panels: ``"rows"`` of the table, where an Enum has the order
        of its categories, ``"name"``, or ``"value"``, the highest first.
    highlight
        Values of ``color`` to draw in color, at most five; the others are thin and grey.
    width, height
        Pixels of a panel. By default rows of segments have the same height each.
    title
        Text above the chart, wrapped to its width.
    scale
        Pixels of a PNG for each of these, 2 by default.
    """

    color: str | None
    facet: str | None
    columns: int
    sort: Sort
    highlight: Sequence[object] | None
    width: int | None
    height: int | None
    title: str | None
    scale: float


@dataclass(frozen=True)
class Options:
    """These options, checked."""

    color: str | None = None
    facet: str | None = None
    columns: int = 3
    sort: Sort = "rows"
    highlight: Sequence[object] | None = None
    width: int | None = None
    height: int | None = None
    title: str | None = None
    scale: float = 2.0

    def __post_init__(self) -> None:
        """Check all of them."""
        checks.option("sort", self.sort, get_args(Sort))
        columns = checks.whole_number("columns", self.columns, low=1)
        scale = checks.number("scale", self.scale, low=_SMALLEST_SCALE, high=_LARGEST_SCALE)
        checks.hold(self, columns=columns, scale=scale)
        for name, pixels in (("width", self.width), ("height", self.height)):
            if pixels is not None:
                checked = checks.whole_number(name, pixels, low=_SMALLEST)
                checks.hold(self, **{name: checked})
        if self.title is not None:
            if not isinstance(self.title, str):
                checks.reject_type("title", "be text", self.title)
            checks.check_text("title", self.title)
        if self.highlight is not None:
            _check_values(self.highlight)


def _check_values(values: object) -> None:
    if not isinstance(values, Sequence) or isinstance(values, str | bytes):
        checks.reject_type("highlight", "be a list of values", values)
    if not 1 <= len(values) <= len(COLOURS):
        checks.reject("highlight", f"list 1 to {len(COLOURS)} values", len(values))


PLAIN = Options()


def read_options(given: ChartOptions, without: Sequence[str] = ()) -> Options:
    """Check options; ``without`` are those that a chart cannot have."""
    known = [name for name in ChartOptions.__annotations__ if name not in without]
    for name in given:
        if name not in known:
            hint = did_you_mean(name, known) or f"; there are {', '.join(known)}"
            msg = f"`{name}` must be an option of this chart; it is none{hint}"
            raise TypeError(msg)
    return Options(**given)


def captioned(options: Options, note: str | None, width: float) -> dict[str, Any]:
    """Properties of a chart for its title and its caption, wrapped to a width in pixels.

    A caption is below the chart, or below the title if there is one.
    """
    # What vega-embed saves as a PNG.
    scaled = {"usermeta": {"embedOptions": {"scaleFactor": options.scale}}}
    return scaled | _captions(options.title, note, width)


def _captions(title: str | None, note: str | None, width: float) -> dict[str, Any]:
    lines = wrapped(note, width) if note else None
    if not title:
        if lines is None:
            return {}
        small: dict[str, Any] = {"fontSize": _CAPTION_SIZE, "fontWeight": "normal"}
        return {"title": alt.TitleParams(lines, orient="bottom", anchor="start", **small)}
    below: dict[str, Any] = {} if lines is None else {"subtitle": lines, "subtitlePadding": 5}
    text = wrapped(title, width, _BOLD_LETTER)
    return {
        "title": alt.TitleParams(
            text,
            anchor="start",
            fontSize=_TITLE_SIZE,
            offset=12,
            subtitleFontSize=_CAPTION_SIZE,
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
