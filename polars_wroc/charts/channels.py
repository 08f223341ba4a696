"""Group columns of a table, and their assignment to colours and panels."""

from __future__ import annotations

import json
from typing import Any, NamedTuple, TypeAlias

import polars as pl

from polars_wroc.charts.style import COLOURS
from polars_wroc.inputs.names import MISSING
from polars_wroc.plans.collect import collect

# Most letters of a name in the label of a curve.
_LONGEST = 20
# The name of each group column, and its name in the drawn rows: a spec has no names of users,
# since Vega reads some of them as syntax, and JavaScript some as its own.
Keys: TypeAlias = dict[str, str]
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


class Channel(NamedTuple):
    """A group column: its name in the drawn rows, and its name in the table."""

    column: str
    name: str

    @property
    def heading(self) -> str:
        """The name above a legend or panels."""
        return _drawable(self.name)

    @property
    def title(self) -> str:
        """The name escaped for Vega-Lite expressions, where Vega-Lite escapes quotes only."""
        escaped = json.dumps(self.name, ensure_ascii=False)[1:-1].replace(r"\"", '"')
        return escaped.replace("\u2028", r"\u2028").replace("\u2029", r"\u2029")


def read_groups(
    argument: str, table: pl.DataFrame | pl.LazyFrame, expected: tuple[str, ...]
) -> tuple[pl.DataFrame, Keys]:
    """Collect a table of this package, and rename its group columns for charts."""
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
    """Add an invisible character to a name that JavaScript objects have already."""
    return f"{text}{UNSEEN}" if text.rstrip(UNSEEN) in _JAVASCRIPT else text


def check_colours(color: Channel, table: pl.DataFrame) -> None:
    """Refuse more values than there are colours."""
    if (found := table[color.column].n_unique()) > len(COLOURS):
        msg = (
            f"`color` must have at most {len(COLOURS)} values; found {found} in {color.name!r}: "
            f"use facet={color.name!r}"
        )
        raise ValueError(msg)


def values_of(table: pl.DataFrame, key: str) -> list[str]:
    """List the values of a group column in the order of the rows."""
    return table[key].unique(maintain_order=True).to_list()


def channel(argument: str, keys: Keys, key: str | None) -> Channel | None:
    """Return the channel of a group column; refuse other columns."""
    if key is None:
        return None
    if key not in keys:
        msg = f"`{argument}` must be a group column of the table, {list(keys)}; found {key!r}"
        raise ValueError(msg)
    return Channel(keys[key], key)


def channels_of_curves(
    keys: Keys, table: pl.DataFrame, color: str | None, facet: str | None
) -> tuple[Channel | None, Channel | None]:
    """Assign the group columns to colour and facet; refuse more than two of them."""
    coloured, faceted = channel("color", keys, color), channel("facet", keys, facet)
    free = [key for key in keys if key not in (color, facet)]
    if color is None and free:
        coloured = channel("color", keys, free.pop(0))
    if free:
        msg = f"`color` and `facet` must cover all group columns; found {free} in neither"
        raise ValueError(msg)
    if coloured is not None:
        check_colours(coloured, table)
    return coloured, faceted


def tooltip_of(group: Channel) -> Any:
    """Show a group in a tooltip, under its name and an invisible character.

    Vega turns a tooltip into an object whose properties are the titles. The character makes the
    name differ from those that JavaScript (``__proto__``), Vega (``image``) and the chart use.
    """
    import altair as alt  # noqa: PLC0415  (two seconds that only a chart should cost)

    return alt.Tooltip(f"{group.column}:N", title=f"{group.title}{UNSEEN}")


def name_in_label(color: Channel | None) -> pl.Expr:
    """Prefix of the label of a curve: its name, cut to fit into a panel."""
    if color is None:
        return pl.lit("")
    name = pl.col(color.column)
    cut = pl.format("{}\N{HORIZONTAL ELLIPSIS}", name.str.slice(0, _LONGEST - 1))
    return pl.format("{}: ", pl.when(name.str.len_chars() > _LONGEST).then(cut).otherwise(name))
