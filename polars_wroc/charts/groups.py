"""Groups of a table: which they are, and which of them colours and panels tell apart."""

from __future__ import annotations

import polars as pl

from polars_wroc.charts.common import COLOURS
from polars_wroc.groupings import MISSING
from polars_wroc.rows import collect

# Letters of a name beside the numbers of its curve.
_LONGEST = 20


def read_groups(
    argument: str, table: pl.DataFrame | pl.LazyFrame, expected: tuple[str, ...]
) -> tuple[pl.DataFrame, list[str]]:
    """Collect a table of this package and tell its group columns from its results."""
    if not isinstance(table, pl.DataFrame | pl.LazyFrame):
        msg = f"`{argument}` must be a table of this package; found {type(table).__name__}"
        raise TypeError(msg)
    collected = collect(table) if isinstance(table, pl.LazyFrame) else table
    missing = [name for name in expected if name not in collected.columns]
    if missing:
        msg = f"`{argument}` must have the columns {list(expected)}; found no {missing}"
        raise ValueError(msg)
    keys = collected.columns[: collected.columns.index(expected[0])]
    return collected.with_columns(_as_text(collected[key]) for key in keys), keys


def _as_text(groups: pl.Series) -> pl.Series:
    text = groups.cast(pl.String)
    missing = MISSING
    while missing in text:
        missing = f"({missing})"
    return text.fill_null(missing)


def check_names(argument: str, keys: list[str], taken: tuple[str, ...]) -> None:
    """Refuse groups with the name of a column that a chart adds."""
    for key in keys:
        if key in taken:
            msg = (
                f"`{argument}` must not have a group column with a name that the chart adds; "
                f"found {key!r}: rename it in the table"
            )
            raise ValueError(msg)


def check_colours(color: str, table: pl.DataFrame) -> None:
    """Refuse more colours than can be told apart."""
    if table[color].n_unique() > len(COLOURS):
        msg = (
            f"`color` must have at most {len(COLOURS)} values to be told apart; found "
            f"{table[color].n_unique()} in {color!r}: use facet={color!r}"
        )
        raise ValueError(msg)


def values_of(table: pl.DataFrame, key: str) -> list[str]:
    """List the values of a group column in the order in which they come."""
    return table[key].unique(maintain_order=True).to_list()


def check_channels(keys: list[str], color: str | None, facet: str | None) -> None:
    """Refuse a colour or a facet that is not one of the groups."""
    for argument, key in (("color", color), ("facet", facet)):
        if key is not None and key not in keys:
            msg = f"`{argument}` must be a group column of the table, {keys}; found {key!r}"
            raise ValueError(msg)


def channels_of_curves(
    keys: list[str], table: pl.DataFrame, color: str | None, facet: str | None
) -> tuple[str | None, str | None]:
    """Give the group that is left over a colour, and refuse curves that nothing tells apart."""
    check_channels(keys, color, facet)
    free = [key for key in keys if key not in (color, facet)]
    if color is None and free:
        color = free.pop(0)
    if free:
        msg = f"`color` and `facet` must tell all groups apart; left over are {free}"
        raise ValueError(msg)
    if color is not None:
        check_colours(color, table)
    return color, facet


def name_in_label(color: str | None) -> pl.Expr:
    """Name a curve before what is written about it; a long name would not fit into a panel."""
    if color is None:
        return pl.lit("")
    name = pl.col(color)
    cut = pl.format("{}\N{HORIZONTAL ELLIPSIS}", name.str.slice(0, _LONGEST - 1))
    return pl.format("{}: ", pl.when(name.str.len_chars() > _LONGEST).then(cut).otherwise(name))
