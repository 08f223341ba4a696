"""The groups of a table: their names, colours and panels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from polars_wroc.charts.options import MOST_COLORS, Options, plain_name, protect_name
from polars_wroc.checks import did_you_mean, reject
from polars_wroc.inputs.columns import MISSING, MODEL
from polars_wroc.names import UNSEEN, escape_controls, unique_name
from polars_wroc.queries import collect
from polars_wroc.stats.estimates import name_limits

# Altair refuses more rows, and a notebook would contain them all.
MAX_ROWS = 5_000
_LONGEST_NAME = 34
# The most missing columns that a message names.
_NAMED = 4
_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
# If there are too many groups, so many of the highest and as many of the lowest have colours.
_EXTREMES = 2
# Properties of every JavaScript object; Vega keeps groups and titles in objects.
_JAVASCRIPT = re.compile(
    r"__\w+__|constructor|hasOwnProperty|isPrototypeOf|propertyIsEnumerable|toLocaleString"
    r"|toString|valueOf"
)


def read_table(
    argument: str, table: object, expected: Sequence[str], maker: str
) -> tuple[pl.DataFrame, list[str]]:
    """Return a table of this package, collected, and its group columns, which come first.

    Group columns get protected names, which differ from the names of roles. ``maker`` is the
    function that makes such tables, for messages.
    """
    if not isinstance(table, pl.DataFrame | pl.LazyFrame):
        has_table = isinstance(getattr(table, "table", None), pl.DataFrame)
        how = ": pass its `table`" if has_table else ""
        msg = f"`{argument}` must be a table of {maker}; found {type(table).__name__}{how}"
        raise TypeError(msg)
    rows = collect(table) if isinstance(table, pl.LazyFrame) else table
    require_columns(argument, rows, expected, maker)
    if rows.is_empty():
        reject(argument, "have rows to be drawn", "none")
    first = min(map(rows.columns.index, expected), default=0)
    protected = {name: protect_name(name) for name in rows.columns[:first]}
    return rows.rename(protected), list(protected.values())


def require_columns(argument: str, rows: pl.DataFrame, expected: Sequence[str], maker: str) -> None:
    """Raise for a table of another function, or without some columns."""
    missing = [name for name in expected if name not in rows.columns]
    if missing:
        without = f"{', '.join(missing[:_NAMED])}{' and others' if missing[_NAMED:] else ''}"
        reject(argument, f"be a table of {maker}", f"one without the columns {without}")


def find_limits(table: pl.DataFrame, name: str, role: str = "y") -> dict[str, pl.Expr]:
    """Return the roles of a column and of its limits, if the table has limits."""
    roles = zip((role, "low", "high"), name_limits(name), strict=True)
    return {
        role: pl.col(column)
        for role, column in roles
        if column == name or (column in table.columns and table[column].count())
    }


def check_size(argument: str, rows: pl.DataFrame) -> None:
    """Raise for more rows than a chart may have."""
    if rows.height > MAX_ROWS:
        reject(argument, f"have at most {MAX_ROWS:,} rows to be drawn", f"{rows.height:,}")


@dataclass(frozen=True)
class Groups:
    """The columns whose values have colours and panels, and the drawn names of these values.

    ``names`` are all values with a style, in the order of the table; ``labels`` the same in the
    caller's order, and ``shown`` the ones in colour.
    """

    color: str | None = None
    panel: str | None = None
    names: Sequence[str] = ("",)
    labels: Sequence[str] = ("",)
    shown: Sequence[str] = ("",)
    panels: Sequence[str] = ("",)
    colors: Mapping[str, Any] | None = None

    @property
    def n_grey(self) -> int:
        """The number of grey groups."""
        return len(self.names) - len(self.shown)

    def write_name(self, row: Mapping[str, Any]) -> str:
        """Return the groups of a row in a sentence: a group, then its model; "" without any."""
        parts = [(self.panel, row["panel"]), (self.color, row["color"])]
        parts.sort(key=lambda part: part[0] == MODEL)
        return ", ".join(name for _, name in parts if name)

    def styles(self, choices: Sequence[Any], grey: Any) -> list[Any]:
        """Return the style of each name, by its place: the place in the table, if there are few."""
        places = self.names if len(self.names) <= len(choices) else self.shown
        own = dict(zip(places, choices, strict=False))
        return [own[name] if name in self.shown else grey for name in self.names]


def assign_groups(
    table: pl.DataFrame, keys: Sequence[str], options: Options, *, panels_first: bool = False
) -> tuple[pl.DataFrame, Groups]:
    """Return a table with ``color`` and ``panel`` in place of ``keys``, and drawable names.

    ``sort="value"`` orders by the column ``rank``, a number of each group.
    """
    color, panel = _choose_columns(keys, options, panels_first=panels_first)
    if options.highlight is not None and color is None:
        reject("highlight", "name values of `color`", "no `color`")
    colors, panels = name_column(table, color), name_column(table, panel)
    rows = table.drop(set(keys)).with_columns(
        color=pl.Series(colors.texts, dtype=pl.String),
        panel=pl.Series(panels.texts, dtype=pl.String),
    )
    if "rank" not in rows.columns:
        rows = rows.with_columns(rank=pl.lit(None, pl.Float64))
    ranks = mean_ranks(rows, "color")
    shown = [colors.find("highlight", value) for value in options.highlight or []]
    shown = shown or _extremes(colors.names, ranks)
    own = options.colors or {}
    if isinstance(own, Mapping):
        own = {colors.find("colors", value): chosen for value, chosen in own.items()}
    else:
        own = dict(zip(colors.names, own, strict=False))
    groups = Groups(
        color,
        panel,
        colors.names,
        sort_names(colors.names, options, ranks),
        [name for name in colors.names if name in shown],
        sort_names(panels.names, options, mean_ranks(rows, "panel")),
        own,
    )
    return rows, groups


def _choose_columns(
    keys: Sequence[str], options: Options, *, panels_first: bool
) -> tuple[str | None, str | None]:
    """Return the columns of colours and panels: models have colours, the first other one panels.

    Without models, the first column has colours or, with ``panels_first``, the last one panels.
    """
    color, panel = options.color, options.facet
    for argument, key in (("color", color), ("facet", panel)):
        if key is not None and key not in keys:
            known = [plain_name(name) for name in keys]
            rule = f"out of {', '.join(known)}" if keys else "and this one has none"
            found = f"{plain_name(key)!r}{did_you_mean(plain_name(key), known)}"
            reject(argument, f"be a group column of the table, {rule}", found)
    free = [key for key in keys if key not in (color, panel)]
    if color is None and MODEL in free:
        color = MODEL
        free.remove(MODEL)
    if panels_first and panel is None and free:
        panel = free.pop()
    if color is None and free:
        color = free.pop(0)
    if panel is None and free:
        panel = free.pop(0)
    if free:
        left = [plain_name(name) for name in free]
        msg = f"`color` and `facet` must cover all group columns; found {left} in neither"
        raise ValueError(msg)
    return color, panel


def cross_panels(
    table: pl.DataFrame, keys: Sequence[str], options: Options
) -> tuple[pl.DataFrame, list[str], Options]:
    """Return a table with one group column, whose values have panels."""
    names = list(keys)
    if len(keys) > 1:
        names = [protect_name(", ".join(map(plain_name, keys)))]
        table = cross_columns(table, keys, names[0])
    return table, names, replace(options, facet=options.facet or next(iter(names), None))


def cross_columns(table: pl.DataFrame, keys: Sequence[str], name: str) -> pl.DataFrame:
    """Return a table with several group columns joined in the first, models last."""
    named = [name_column(table, key).texts for key in sorted(keys, key=lambda key: key == MODEL)]
    texts = [", ".join(parts) for parts in zip(*named, strict=True)]
    return table.drop(keys).insert_column(0, pl.Series(name, texts, pl.String))


@dataclass(frozen=True)
class NamedColumn:
    """A drawn group column: the name of each row, and of each value, in order."""

    texts: Sequence[str]
    of_values: Mapping[str | None, str]

    @property
    def names(self) -> list[str]:
        """The names in their order."""
        return list(self.of_values.values())

    def find(self, argument: str, value: object) -> str:
        """Return the name of a given value."""
        text = pl.Series([value]).cast(pl.String).item()
        if text not in self.of_values:
            reject(argument, f"name values of `color`, {[*self.of_values]}", repr(text))
        return self.of_values[text]


def name_column(table: pl.DataFrame, key: str | None, missing: str = MISSING) -> NamedColumn:
    """Return the names of a group column; values of an Enum keep the order of categories."""
    if key is None:
        return NamedColumn([""] * table.height, {None: ""})
    column = table[key]
    texts = column.cast(pl.String).to_list()
    values = list(dict.fromkeys(texts))
    if isinstance(column.dtype, pl.Enum):
        place = {name: number for number, name in enumerate(column.dtype.categories)}
        values.sort(key=lambda value: len(place) if value is None else place[value])
    while missing in values:
        missing = f"({missing})"
    names: dict[str | None, str] = {}
    whole = [missing if value is None else value for value in values]
    for value, short in zip(values, shorten(whole), strict=True):
        names[value] = unique_name(_drawable(short), names.values())
    return NamedColumn([names[text] for text in texts], names)


def _drawable(text: str) -> str:
    """Return a name without control characters that differs from JavaScript's own names."""
    text = escape_controls(text) or "(empty)"
    return f"{text}{UNSEEN}" if _JAVASCRIPT.fullmatch(text.rstrip(UNSEEN)) else text


def shorten(names: Sequence[str], longest: int = _LONGEST_NAME) -> list[str]:
    """Return long names cut at the end, in the middle or in front, if they stay distinct."""
    half = longest // 2

    def cut(name: str, front: int, back: int) -> str:
        is_long = len(name) > longest
        return f"{name[:front]}{_ELLIPSIS}{name[len(name) - back :]}" if is_long else name

    for front, back in ((longest - 1, 0), (half - 1, half), (0, longest - 1)):
        short = [cut(name, front, back) for name in names]
        if len(set(short)) == len(set(names)):
            return short
    return list(names)


def mean_ranks(rows: pl.DataFrame, role: str) -> dict[str, float | None]:
    """Return the mean rank of the groups of a role."""
    means = rows.group_by(role).agg(pl.col("rank").mean())
    return dict(means.select(role, "rank").iter_rows())


def sort_names(
    names: Iterable[str], options: Options, ranks: Mapping[str, float | None]
) -> list[str]:
    """Return names in the chosen order; by value, the highest first and missing values last."""
    if options.sort == "name":
        return sorted(names, key=_natural)
    if options.sort == "value":
        return sorted(names, key=lambda name: _falling(ranks.get(name)))
    return list(names)


def _falling(number: float | None) -> tuple[bool, float]:
    return number is None, -(number or 0.0)


def _natural(name: str) -> list[tuple[bool, int, str]]:
    """Return a sort key in which digits are numbers, so that 9 comes before 10."""
    parts = re.split(r"([0-9]+)", name.casefold())
    # Every second part is a number.
    return [
        (place % 2 == 0, int(part) if place % 2 else 0, part) for place, part in enumerate(parts)
    ]


def _extremes(names: Sequence[str], ranks: Mapping[str, float | None]) -> list[str]:
    """Return all names or, if there are too many, the two highest and the two lowest in rank."""
    if len(names) <= MOST_COLORS:
        return list(names)
    known = sorted((name for name in names if ranks[name] is not None), key=lambda n: ranks[n] or 0)
    # Names without a rank fill the places that are left.
    ordered = dict.fromkeys([*known[:_EXTREMES], *known[-_EXTREMES:], *names])
    return [*ordered][: 2 * _EXTREMES]
