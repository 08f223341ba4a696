"""The options of every chart."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, TypedDict

from polars_wroc import checks
from polars_wroc.bounds import Pixels, PositiveInt
from polars_wroc.calls import check_arguments
from polars_wroc.inputs.columns import MODEL
from polars_wroc.keywords import hint_keyword
from polars_wroc.names import UNSEEN

Sort: TypeAlias = Literal["rows", "name", "value"]
Show: TypeAlias = Literal["value", "gap", "ratio"]
RateName: TypeAlias = Literal[
    "selection_rate", "tpr", "fpr", "ppv", "npv", "tnr", "fnr", "fdr", "for", "accuracy"
]
# The most groups with distinct colours, dashes and shapes.
MOST_COLORS = 5


class ChartOptions(TypedDict, total=False):
    """The keyword arguments that every chart takes.

    Attributes
    ----------
    title, subtitle
        Texts above the chart; ``""`` leaves a text out. By default the title says what the chart
        shows, and the subtitle how to read it.
    width, height
        Pixels of each panel, or of the chart if it has no panels.
    color
        Group column: each of its values gets a color, and a dash or a shape. If it has more than
        five values, only the two highest and the two lowest do; the others are grey.
    facet
        Group column: each of its values gets a panel. By default, several models get colors and
        groups get panels; with one model, the first group column gets colors and the second one
        panels.
    columns
        Panels in a row, 3 by default.
    sort
        Order of labels, rows and panels: ``"rows"``, as in the table (an Enum in the order of its
        categories); ``"name"``; or ``"value"``, the highest first. Groups keep their colors.
    highlight
        Values of ``color`` to draw in color, at most five; the others are grey.
    colors
        CSS colors in the order of the table's groups, or a mapping from a group to its color.
    """

    title: str
    subtitle: str
    width: Pixels
    height: Pixels
    color: str | None
    facet: str | None
    columns: PositiveInt
    sort: Sort
    highlight: Sequence[object] | None
    colors: Sequence[str] | Mapping[Any, str] | None


@check_arguments
@dataclass(frozen=True)
class Options:
    """The checked options of a chart; None where the chart decides.

    ``color`` and ``facet`` are protected names.
    """

    title: str | None = None
    subtitle: str | None = None
    width: Pixels | None = None
    height: Pixels | None = None
    color: str | None = None
    facet: str | None = None
    columns: PositiveInt | None = None
    sort: Sort = "rows"
    highlight: Sequence[object] | None = None
    colors: Sequence[str] | Mapping[Any, str] | None = None

    def __post_init__(self) -> None:
        """Check all of them."""
        for name in ("title", "subtitle"):
            text = getattr(self, name)
            if text is not None and not isinstance(text, str):
                checks.reject_type(name, "be text", text)
            checks.check_text(name, text or "")
        if self.highlight is not None:
            _check_highlight(self.highlight)
        if self.colors is not None:
            _check_colors(self.colors)

    def check_room(self, *, width: float = 0, height: float = 0) -> None:
        """Raise for a chosen size in which texts would overlap."""
        for name, least in (("width", width), ("height", height)):
            chosen = getattr(self, name)
            if chosen is not None and chosen < least:
                rule = f"be {math.ceil(least)} or more, so that the texts of this chart fit"
                checks.reject(name, rule, f"{chosen}")


def _check_highlight(values: object) -> None:
    if not isinstance(values, Sequence) or isinstance(values, str | bytes):
        checks.reject_type("highlight", "be a list of values", values)
    if not 1 <= len(values) <= MOST_COLORS:
        checks.reject("highlight", f"list 1 to {MOST_COLORS} values", len(values))


# The beginnings of colors; browsers know the names.
_CSS_COLOR = re.compile(r"#[0-9a-fA-F]{3,8}|[a-zA-Z]+(\(.*\))?")


def _check_colors(colors: object) -> None:
    if isinstance(colors, str | bytes) or not isinstance(colors, Sequence | Mapping):
        checks.reject_type("colors", "be a list of colors, or a mapping of groups to them", colors)
    for color in colors.values() if isinstance(colors, Mapping) else colors:
        if not isinstance(color, str) or not _CSS_COLOR.fullmatch(color):
            checks.reject("colors", "be CSS colors, for example 'teal' or '#0067B2'", repr(color))


def protect_name(name: str) -> str:
    """Return the name of a group column in a chart, which no role has."""
    return name if name == MODEL else f"{name}{UNSEEN}"


def plain_name(name: str) -> str:
    """Return the name of a group column in the table."""
    return name if name == MODEL else name.removesuffix(UNSEEN)


def read_options(given: ChartOptions, without: Sequence[str] = ()) -> Options:
    """Return checked options; ``without`` names the options that a chart does not have."""
    known = [name for name in ChartOptions.__annotations__ if name not in without]
    for name in given:
        if name not in known:
            msg = f"this chart has no option `{name}`{hint_keyword(name, known)}"
            raise TypeError(msg)
    options = Options(**given)
    color, facet = (name and protect_name(name) for name in (options.color, options.facet))
    return replace(options, color=color, facet=facet)
