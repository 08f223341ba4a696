"""Group columns of a table, and their assignment to colours and panels."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import altair as alt
import polars as pl

from polars_wroc.charts.options import (
    COLOURS,
    UNSEEN,
    Options,
    Ranked,
    Sort,
    drawable,
    extremes,
    numbers_of,
    ordered,
    unlike,
    visible,
)
from polars_wroc.checks import did_you_mean, reject
from polars_wroc.groups.categories import CROSSED
from polars_wroc.inputs.columns import MISSING, MODEL
from polars_wroc.queries import collect

# Most letters of a name in the label of a curve.
_LONGEST = 20
_TWO = 2
_BOTH = "__both"


class Keys(dict[str, str]):
    """The name of each group column, and its name in the drawn rows.

    A spec has no names of users, since Vega reads some of them as syntax, and JavaScript some as
    its own. Columns of an Enum have the order of its categories.
    """

    categories: Mapping[str, Sequence[str]] = {}


class Channel(NamedTuple):
    """A group column: its name in the drawn rows, and its name in the table.

    ``values`` are in the order in which they are drawn, ``shown`` those in colour; ``note`` says
    of the others that they are grey.
    """

    column: str
    name: str
    values: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    note: str = ""

    @property
    def heading(self) -> str:
        """The name above a legend or panels."""
        return drawable(self.name)

    @property
    def title(self) -> str:
        """The name escaped for Vega-Lite expressions, where Vega-Lite escapes quotes only."""
        escaped = json.dumps(visible(self.name), ensure_ascii=False)[1:-1].replace(r"\"", '"')
        return escaped.replace("\u2028", r"\u2028").replace("\u2029", r"\u2029")


def read_table(argument: str, table: object, maker: str) -> pl.DataFrame:
    """Collect a table of this package, which ``maker`` makes."""
    if not isinstance(table, pl.DataFrame | pl.LazyFrame):
        found = f"{type(table).__name__}: make it with {maker}"
        msg = f"`{argument}` must be a table of this package; found {found}"
        raise TypeError(msg)
    return collect(table) if isinstance(table, pl.LazyFrame) else table


def read_groups(
    argument: str,
    table: pl.DataFrame | pl.LazyFrame,
    expected: tuple[str, ...],
    maker: str,
    missing_name: str = MISSING,
) -> tuple[pl.DataFrame, Keys]:
    """Collect a table of this package, and rename its group columns for charts.

    ``maker`` is the function that makes such tables, for messages.
    """
    collected = read_table(argument, table, maker)
    missing = [name for name in expected if name not in collected.columns]
    if missing:
        found = f"no {missing}: make it with {maker}"
        reject(argument, f"have the columns {list(expected)}", found)
    # The groups come before the columns of the table.
    names = collected.columns[: min(map(collected.columns.index, expected))]
    keys = Keys({name: f"__group{number}" for number, name in enumerate(names, 1)})
    texts = [_as_text(collected[name], missing_name) for name in names]
    keys.categories = {
        keys[name]: _categories(collected[name], kind, missing_name)
        for name in names
        if isinstance(kind := collected.schema[name], pl.Enum)
    }
    return collected.with_columns(texts).rename(keys), keys


def _as_text(groups: pl.Series, missing_name: str) -> pl.Series:
    text = groups.cast(pl.String)
    # Of a small column in Python, since a query takes longer.
    values = dict.fromkeys(text.to_list())
    missing, names = _missing(values, missing_name), dict[str, str]()
    for value in (missing if value is None else value for value in values):
        # Another value may be what a control character is written as.
        names[value] = unlike(drawable(value), names.values())
    shown = [names[missing if value is None else value] for value in text.to_list()]
    return pl.Series(groups.name, shown, dtype=pl.String)


def _missing(values: Collection[str | None], name: str) -> str:
    """Name for what is missing, unlike all that is not."""
    while name in values:
        name = f"({name})"
    return name


def _categories(groups: pl.Series, kind: pl.Enum, missing_name: str) -> list[str]:
    """List the categories of an Enum as they are drawn, then what is missing."""
    names = [drawable(name) for name in kind.categories]
    return [*names, _missing(groups.cast(pl.String).to_list(), missing_name)]


def values_of(table: pl.DataFrame, key: str) -> list[str]:
    """List the values of a group column in the order of the rows."""
    return list(dict.fromkeys(table[key].to_list()))


def channel(argument: str, keys: Keys, key: str | None) -> Channel | None:
    """Return the channel of a group column; refuse other columns."""
    if key is None:
        return None
    if key not in keys:
        hint = did_you_mean(key, keys)
        reject(argument, f"be a group column of the table, {list(keys)}", f"{key!r}{hint}")
    return Channel(keys[key], key)


def crossed(table: pl.DataFrame, keys: Keys, names: Sequence[str]) -> tuple[pl.DataFrame, Keys]:
    """Make one group column of several, for a panel of each combination."""
    columns = [keys[name] for name in names]
    column, groups = columns[0], table.select(columns).unique(maintain_order=True)
    texts = list[str]()
    for parts in groups.rows():
        # Other parts may have the same text.
        texts.append(unlike(", ".join(parts), texts))
    groups = groups.with_columns(pl.Series(_BOTH, texts, pl.String))
    table = table.join(groups, on=columns, how="left", maintain_order="left")
    others = {name: other for name, other in keys.items() if name not in names}
    made = Keys({CROSSED.join(names): column} | others)
    made.categories = {name: of for name, of in keys.categories.items() if name != column}
    return table.with_columns(pl.col(_BOTH).alias(column)).drop(_BOTH), made


def channels_of_curves(
    keys: Keys,
    table: pl.DataFrame,
    options: Options,
    ranked: Ranked | None = None,
) -> tuple[Channel | None, Channel | None]:
    """Assign the group columns to colour and facet; refuse more than two of them.

    Without a choice several models have colours, and groups have panels.

    ``ranked`` is a number of each curve, constant on its rows, to sort and to highlight by.
    """
    color, facet = options.color, options.facet
    if color is None and facet is None and MODEL in keys and len(keys) == _TWO:
        # Scores are compared within each group.
        color, facet = MODEL, next(key for key in keys if key != MODEL)
    coloured, faceted = channel("color", keys, color), channel("facet", keys, facet)
    free = [key for key in keys if key not in (color, facet)]
    if color is None and free:
        coloured = channel("color", keys, free.pop(0))
    if free:
        msg = f"`color` and `facet` must cover all group columns; found {free} in neither"
        raise ValueError(msg)
    coloured, faceted = (
        with_values(found, keys, table, options.sort, ranked) for found in (coloured, faceted)
    )
    return highlighted(coloured, keys, table, options, ranked), faceted


def with_values(
    found: Channel | None,
    keys: Keys,
    table: pl.DataFrame,
    sort: Sort = "rows",
    ranked: Ranked | None = None,
) -> Channel | None:
    """List the values of a channel, if there is one, in the order in which they are drawn."""
    if found is None:
        return None
    values = values_of(table, found.column)
    if found.column in keys.categories:
        values = [value for value in keys.categories[found.column] if value in set(values)]
    numbers = numbers_of(table, list(keys.values()), found.column, ranked)
    return found._replace(values=tuple(ordered(values, sort, numbers)))


def highlighted(
    color: Channel | None, keys: Keys, table: pl.DataFrame, options: Options, ranked: Ranked | None
) -> Channel | None:
    """Choose the values that are drawn in colour, at most five."""
    if color is None:
        if options.highlight is not None:
            reject("highlight", "list values of `color`", "no `color`")
        return None
    why = ""
    if options.highlight is not None:
        chosen = _listed(color, options.highlight)
    elif len(color.values) <= len(COLOURS):
        return color._replace(shown=color.values)
    else:
        numbers = numbers_of(table, list(keys.values()), color.column, ranked)
        chosen, why = extremes(color.values, numbers, ranked)
    shown = tuple(value for value in color.values if value in chosen)
    left = len(color.values) - len(shown)
    grey = f"{left} {'other' if left == 1 else 'others'} in grey"
    note = f"{grey}, {why}" if why else grey
    return color._replace(shown=shown, note=note if left else "")


def _listed(color: Channel, highlight: Sequence[object]) -> list[str]:
    """Write values as the chart does, and refuse those that it does not have."""
    texts = [pl.Series([value]).cast(pl.String).item() for value in highlight]
    listed = [drawable(text) for text in texts if text is not None]
    unknown = [text for text in listed if text not in color.values]
    if unknown or len(listed) < len(texts):
        found = unknown[0] if unknown else None
        reject("highlight", f"list values of {color.name!r} as the chart has them", repr(found))
    return listed


def tooltip_of(group: Channel) -> Any:
    """Show a group in a tooltip, under its name and an invisible character.

    Vega turns a tooltip into an object whose properties are the titles. The character makes the
    name differ from those that JavaScript (``__proto__``), Vega (``image``) and the chart use.
    """
    return alt.Tooltip(f"{group.column}:N", title=f"{group.title}{UNSEEN}")


def tooltips_of(keys: Keys) -> list[Any]:
    """Show all group columns in a tooltip."""
    return [tooltip_of(Channel(column, name)) for name, column in keys.items()]


def numbers(form: str, names: Iterable[str]) -> list[Any]:
    """Show numbers in a tooltip; a mapping of columns has their titles."""
    titles = names if isinstance(names, Mapping) else {}
    return [
        alt.Tooltip(f"{name}:Q", title=titles.get(name, alt.Undefined), format=form)
        for name in names
    ]


def name_in_label(color: Channel | None, longest: int = _LONGEST) -> pl.Expr:
    """Prefix of the label of a curve: its name, cut to fit into a panel."""
    if color is None:
        return pl.lit("")
    return pl.format("{}: ", shortened(pl.col(color.column), longest))


def shortened(name: pl.Expr, longest: int = _LONGEST) -> pl.Expr:
    """Cut a name that is longer than this."""
    cut = pl.format("{}\N{HORIZONTAL ELLIPSIS}", name.str.slice(0, longest - 1))
    return pl.when(name.str.len_chars() > longest).then(cut).otherwise(name)


def slot_of(color: Channel | None) -> pl.Expr:
    """Place of a curve among those in colour; null for a grey one."""
    if color is None:
        return pl.lit(0)
    return slot_in(color.column, color.shown)


def in_drawn_order(
    points: pl.DataFrame, color: Channel | None, facet: Channel | None
) -> pl.DataFrame:
    """Order rows as panels are, with the grey curves first, below the others."""
    if color is not None and color.note:
        points = points.sort(slot_of(color).is_not_null(), maintain_order=True)
    if facet is not None and tuple(values_of(points, facet.column)) != facet.values:
        points = points.sort(slot_in(facet.column, facet.values), maintain_order=True)
    return points


def slot_in(column: str, values: Sequence[str]) -> pl.Expr:
    """Place of a row's value in a list; null where it is not there."""
    places = {value: place for place, value in enumerate(values)}
    return pl.col(column).replace_strict(places, default=None, return_dtype=pl.Int64)
