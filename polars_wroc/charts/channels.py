"""Groups of a table: which they are, and which of them colours and panels tell apart."""

from __future__ import annotations

import json
from typing import Any, NamedTuple, TypeAlias

import polars as pl

from polars_wroc.charts.style import COLOURS
from polars_wroc.inputs.names import MISSING
from polars_wroc.plans.collect import collect

# Letters of a name beside the numbers of its curve.
_LONGEST = 20
# Of each group column its name and what it is called in the drawn rows: a spec has no name that
# somebody chose, since Vega reads some as syntax, and JavaScript some as its own.
Keys: TypeAlias = dict[str, str]
# A space without width.
UNSEEN = "\u200b"
# What a JavaScript object has before anything is put into it; Vega keeps groups and titles in such.
_JAVASCRIPT = frozenset(
    (
        *("__proto__", "constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable"),
        *("toLocaleString", "toString", "valueOf", "__defineGetter__", "__defineSetter__"),
        *("__lookupGetter__", "__lookupSetter__"),
    )
)


class Channel(NamedTuple):
    """What tells curves apart: its column in the drawn rows, and its name."""

    column: str
    name: str

    @property
    def heading(self) -> str:
        """Its name over a legend or panels."""
        return _drawable(self.name)

    @property
    def title(self) -> str:
        """Its name as Vega-Lite puts it into expressions, where it escapes quotes alone."""
        escaped = json.dumps(self.name, ensure_ascii=False)[1:-1].replace(r"\"", '"')
        return escaped.replace("\u2028", r"\u2028").replace("\u2029", r"\u2029")


def read_groups(
    argument: str, table: pl.DataFrame | pl.LazyFrame, expected: tuple[str, ...]
) -> tuple[pl.DataFrame, Keys]:
    """Collect a table of this package and give its group columns names that any chart draws."""
    if not isinstance(table, pl.DataFrame | pl.LazyFrame):
        msg = f"`{argument}` must be a table of this package; found {type(table).__name__}"
        raise TypeError(msg)
    collected = collect(table) if isinstance(table, pl.LazyFrame) else table
    missing = [name for name in expected if name not in collected.columns]
    if missing:
        msg = f"`{argument}` must have the columns {list(expected)}; found no {missing}"
        raise ValueError(msg)
    names = collected.columns[: collected.columns.index(expected[0])]
    keys = {name: f"__group{number}" for number, name in enumerate(names, 1)}
    texts = [_as_text(collected[name]) for name in names]
    return collected.with_columns(texts).rename(keys), keys


def _as_text(groups: pl.Series) -> pl.Series:
    text = groups.cast(pl.String)
    missing = MISSING
    while missing in text:
        missing = f"({missing})"
    text = text.fill_null(missing)
    return text.replace({value: _drawable(value) for value in text.unique()})


def _drawable(text: str) -> str:
    """Add what nobody sees to a name of JavaScript's own."""
    return f"{text}{UNSEEN}" if text.rstrip(UNSEEN) in _JAVASCRIPT else text


def check_colours(color: Channel, table: pl.DataFrame) -> None:
    """Refuse more colours than can be told apart."""
    if (found := table[color.column].n_unique()) > len(COLOURS):
        msg = (
            f"`color` must have at most {len(COLOURS)} values to be told apart; found "
            f"{found} in {color.name!r}: use facet={color.name!r}"
        )
        raise ValueError(msg)


def values_of(table: pl.DataFrame, key: str) -> list[str]:
    """List the values of a group column in the order in which they come."""
    return table[key].unique(maintain_order=True).to_list()


def channel(argument: str, keys: Keys, key: str | None) -> Channel | None:
    """Refuse a colour or a facet that is not one of the groups."""
    if key is None:
        return None
    if key not in keys:
        msg = f"`{argument}` must be a group column of the table, {list(keys)}; found {key!r}"
        raise ValueError(msg)
    return Channel(keys[key], key)


def channels_of_curves(
    keys: Keys, table: pl.DataFrame, color: str | None, facet: str | None
) -> tuple[Channel | None, Channel | None]:
    """Give the group that is left over a colour, and refuse curves that nothing tells apart."""
    coloured, faceted = channel("color", keys, color), channel("facet", keys, facet)
    free = [key for key in keys if key not in (color, facet)]
    if color is None and free:
        coloured = channel("color", keys, free.pop(0))
    if free:
        msg = f"`color` and `facet` must tell all groups apart; left over are {free}"
        raise ValueError(msg)
    if coloured is not None:
        check_colours(coloured, table)
    return coloured, faceted


def tooltip_of(group: Channel) -> Any:
    """Show a group under its name, to which is added what nobody sees, in a tooltip.

    Vega makes a tooltip an object whose properties are the titles. So the name is another than
    those that JavaScript (``__proto__``), Vega (``image``) and the chart have.
    """
    import altair as alt  # noqa: PLC0415  (two seconds that only a chart should cost)

    return alt.Tooltip(f"{group.column}:N", title=f"{group.title}{UNSEEN}")


def name_in_label(color: Channel | None) -> pl.Expr:
    """Name a curve before what is written about it; a long name would not fit into a panel."""
    if color is None:
        return pl.lit("")
    name = pl.col(color.column)
    cut = pl.format("{}\N{HORIZONTAL ELLIPSIS}", name.str.slice(0, _LONGEST - 1))
    return pl.format("{}: ", pl.when(name.str.len_chars() > _LONGEST).then(cut).otherwise(name))
