"""Groups that --by names: columns, or numeric columns that are cut into ranges."""

from __future__ import annotations

import argparse

import polars as pl

from polars_wroc.groups.ranges import ranges


def groups_of(options: argparse.Namespace, frame: pl.LazyFrame) -> list[str | pl.Expr] | None:
    """Return the group columns, some of them cut into ranges; None without --by."""
    return [_group(text, frame.collect_schema()) for text in options.by] or None


def _group(text: str, schema: pl.Schema) -> str | pl.Expr:
    """Read a name, or a name and where its ranges begin, as in age:18,30,50."""
    name, colon, listed = text.rpartition(":")
    if text in schema or not colon or name not in schema:
        return text
    if not schema[name].is_numeric():
        msg = f"--by {text} must name a numeric column; found column {name!r} of {schema[name]}"
        raise ValueError(msg)
    try:
        return ranges(name, [float(part) for part in listed.split(",")])
    except ValueError:
        msg = f"--by must be such as {name}:18,30,50 with increasing numbers; found {text!r}"
        raise ValueError(msg) from None
