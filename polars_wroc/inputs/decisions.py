"""Decisions without labels: recorded ones, or scores with a threshold."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Literal, TypeAlias, get_args

import polars as pl

from polars_wroc import checks
from polars_wroc.checks import reject_type, show_value
from polars_wroc.inputs import columns
from polars_wroc.inputs.columns import IntoColumn
from polars_wroc.inputs.expressions import boolean_column, named_columns
from polars_wroc.inputs.rows import IntoColumns, RowSource

# A number, or the median of the scores of all rows.
DecisionThreshold: TypeAlias = float | Literal["median"]
# The decision that is good for a person.
Favorable: TypeAlias = Literal["selected", "rejected", "neither"]
# The threshold of recorded decisions: selected rows have the score 1, all others 0.
RECORDED = 1.0


def check_favorable(
    value: object, threshold: object, *, decided: bool = True, ratios: bool = False
) -> None:
    """Check the argument ``favorable``, which is required if rows are ``decided`` on.

    ``threshold`` is a number, a rule that chooses one from the rows, or None for recorded
    decisions. Impact ``ratios`` compare the rates of the favorable decision.
    """
    if not decided:
        if value is not None:
            msg = (
                "`favorable` must come with decisions, from a `threshold` or `selected`; found "
                f"{value!r} alone"
            )
            raise ValueError(msg)
        return
    if value not in get_args(Favorable):
        msg = (
            "`favorable` must say which decision is good for a person: "
            f"{checks.favorable_choice(_selection(threshold))}, 'neither' if it is neither; found "
            f"{value!r}"
        )
        raise ValueError(msg)
    if ratios and value == "neither":
        msg = (
            "`favorable` must be 'selected' or 'rejected', since an impact ratio compares rates of "
            "the favorable decision; found 'neither'"
        )
        raise ValueError(msg)


def _selection(threshold: object) -> str:
    if isinstance(threshold, float) and isfinite(threshold):
        return f"a score of {threshold:.10g} or more"
    return "being selected" if threshold is None else "a score at the threshold or above"


def score_or_decisions(
    frame: pl.DataFrame | pl.LazyFrame | RowSource,
    score: IntoColumns | None,
    selected: IntoColumn | None,
) -> IntoColumns:
    """Return the score or, without one, recorded decisions as scores of 1 and 0."""
    if score is not None:
        return score
    if selected is None or isinstance(frame, RowSource):
        checks.reject("score", "be given unless decisions are `selected`", "None")
    decisions: pl.Expr = boolean_column("selected", selected, frame.lazy()).column
    return decisions.cast(pl.Float64)


# ``"exclude"``: only null is unknown. ``"keep"``: nothing is unknown, and null is a category. A
# list: its values and null are unknown.
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
    # For example "Unknown or not reported".
    return text in _WORDS or _WORDS.issuperset(re.split(r" ?(?:/|,| or ) ?", text))


def known_attributes(unknown: Unknown, attributes: IntoColumns, frame: pl.LazyFrame) -> list[Any]:
    """Return the attributes with null for the values listed as unknown."""
    named = named_columns("attributes", attributes, frame)
    schema = frame.select(**named).collect_schema()
    given = {name: (column, schema[name], name) for name, column in named.items()}
    are_unknown = unknown_conditions(unknown, given)
    if isinstance(unknown, str):
        return [column.alias(name) for name, column in named.items()]
    return [pl.when(~are_unknown[name]).then(column).alias(name) for name, column in named.items()]


def unknown_conditions(
    unknown: Unknown, keys: Mapping[str, tuple[pl.Expr, pl.DataType, str]]
) -> dict[str, pl.Expr]:
    """Return the condition that a key is unknown, for each column with its type and shown name."""
    found = {key: column.is_null() for key, (column, _, _) in keys.items()}
    if isinstance(unknown, str):
        if unknown not in ("exclude", "keep"):
            checks.reject("unknown", "be 'exclude', 'keep' or a list of values", repr(unknown))
        return dict.fromkeys(keys, pl.lit(value=False)) if unknown == "keep" else found
    if not isinstance(unknown, Sequence):
        reject_type("unknown", "be 'exclude', 'keep' or a list of values", unknown)
    for value in unknown:
        if value is None:
            continue
        held = {key: columns.exact(value, dtype) for key, (_, dtype, _) in keys.items()}
        if all(each is None for each in held.values()):
            types = ", ".join(f"{name!r} ({dtype})" for _, dtype, name in keys.values())
            checks.reject("unknown", f"hold possible values of {types}", show_value(value))
        for key, each in held.items():
            if each is not None:
                is_value = keys[key][0] == columns.literal(each)
                found[key] |= is_value.fill_null(value=False)
    return found
