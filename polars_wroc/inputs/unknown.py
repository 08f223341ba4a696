"""Values of attributes that say that the category of a row is unknown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import polars as pl

from polars_wroc.inputs import values
from polars_wroc.inputs.arguments import reject_type, shown
from polars_wroc.inputs.rows import Rows

# ``"exclude"``: only null is unknown. ``"keep"``: nothing is, and null is a category. A list: its
# values are unknown, and so is null.
Unknown: TypeAlias = Literal["exclude", "keep"] | Sequence[Any]

# Texts that often stand for an unknown value, as `seems_unknown` reads them.
_WORDS = frozenset(
    {
        *("", "?", "unknown", "unk", "n/a", "#n/a", "na", "n.a.", "nan", "null", "missing"),
        *("unspecified", "undisclosed", "undeclared", "declined", "refused", "withheld"),
        *("no answer", "no response", "no data", "none given", "none stated", "none specified"),
        *(
            f"not {word}"
            for word in (
                *("known", "given", "stated", "specified", "disclosed", "declared", "provided"),
                *("reported", "recorded", "available", "applicable", "answered", "collected"),
            )
        ),
        *(f"prefer not to {word}" for word in ("say", "answer", "disclose", "state", "respond")),
        *(f"decline to {word}" for word in ("say", "answer", "disclose", "state", "identify")),
        *(f"declined to {word}" for word in ("say", "answer", "disclose", "state", "identify")),
    }
)


def seems_unknown(category: str) -> bool:
    """Whether the name of a category may mean that the value is not known."""
    text = re.sub(r"[\s_-]+", " ", category).strip(" ()[]<>").casefold()
    # Such as "Unknown or not reported".
    return text in _WORDS or _WORDS.issuperset(re.split(r" ?(?:/|,| or ) ?", text))


def unknown_keys(unknown: Unknown, rows: Rows) -> dict[str, pl.Expr]:
    """Say of each key of the rows but the model whether its value is unknown."""
    schema = rows.frame.collect_schema()
    if isinstance(unknown, str):
        if unknown not in ("exclude", "keep"):
            msg = f"`unknown` must be 'exclude', 'keep' or a list of values; found {unknown!r}"
            raise ValueError(msg)
        keep = unknown == "keep"
        return {k: pl.lit(value=False) if keep else pl.col(k).is_null() for k in rows.group_keys}
    if not isinstance(unknown, Sequence):
        reject_type("unknown", "be 'exclude', 'keep' or a list of values", unknown)
    found = {key: pl.col(key).is_null() for key in rows.group_keys}
    for value in unknown:
        if value is None:
            continue
        held = {key: values.exact(value, schema[key]) for key in rows.group_keys}
        if all(each is None for each in held.values()):
            types = ", ".join(f"{rows.name_of(key)!r} ({schema[key]})" for key in held)
            msg = f"`unknown` must hold possible values of {types}; found {shown(value)}"
            raise ValueError(msg)
        for key, each in held.items():
            if each is not None:
                found[key] |= (pl.col(key) == values.literal(each)).fill_null(value=False)
    return found
