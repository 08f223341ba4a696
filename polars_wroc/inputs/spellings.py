"""Easily confused values of a column: near-equal spellings, and values left out."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping

import polars as pl

from polars_wroc.queries import collect

# The most values that are named.
_MOST = 5


def near_equal(values: Iterable[str]) -> list[list[str]]:
    """Return groups of values that differ only in capitals, white space and Unicode encoding.

    Invisible characters are ignored, and so is whether an accent is a separate character.
    """
    alike: dict[str, list[str]] = {}
    for value in dict.fromkeys(values):
        plain = value if value.isascii() else _compose(value)
        alike.setdefault(" ".join(plain.casefold().split()), []).append(value)
    return [spellings for spellings in alike.values() if len(spellings) > 1]


def _compose(text: str) -> str:
    """Return a text without characters of zero width, with letters and accents composed."""
    visible = "".join(letter for letter in text if unicodedata.category(letter) != "Cf")
    return unicodedata.normalize("NFC", visible)


def count_values(frame: pl.LazyFrame, column: str) -> dict[str, int]:
    """Return the number of rows with each value of a column, as text, the most frequent first."""
    text = pl.col(column).cast(pl.String).drop_nulls().alias("value")
    counts = collect(frame.select(text).group_by("value").len().sort("len", "value"))
    return dict(reversed(counts.rows()))


def describe_values(column: str, chosen: str, counts: Mapping[str, int], other: str) -> list[str]:
    """Return which value counts and how often it occurs, and what the other values count as.

    The text is empty for a column with two values that are spelled differently.
    """
    others = [value for value in counts if value != chosen]
    similar = next((each for each in near_equal([chosen, *others]) if chosen in each), [chosen])
    if len(others) < 2 and len(similar) < 2:  # noqa: PLR2004  (this value and its contrary)
        return []
    named = [f"{value!r} ({counts[value]:,})" for value in others[:_MOST]]
    if len(others) > _MOST:
        named.append(f"{len(others) - _MOST:,} more")
    rows = f"{counts.get(chosen, 0):,} rows"
    first = f"{column} = {chosen!r} counts as {other.removeprefix('not ')}, in {rows}"
    sentences = [f"{first}; as {other} count {', '.join(named)}."]
    if len(similar) > 1:
        alike = ", ".join(repr(value) for value in similar if value != chosen)
        sentences.append(f"{alike} may be meant to be {chosen!r}: make the spellings one.")
    return sentences


def say_near_equal(column: str, values: Iterable[str]) -> list[str]:
    """Return the warning that values of a column look alike but are different groups."""
    return [
        f"{', '.join(map(repr, alike))} of {column} are different groups: make the spellings one "
        "if they are not."
        for alike in near_equal(values)
    ]
