"""Checks of values that raise when a plan runs."""

from __future__ import annotations

import re

import polars as pl

# Prefix of the message of a failed check, to extract it from the engine's error.
MARK = "polars_wroc: "
_MIXED = "`label` must hold 0 and 1 or -1 and 1; it holds -1, 0 and 1, or both 0 and -1"


def probability(argument: str, value: pl.Expr) -> pl.Expr:
    """Return the column; raise at collect for values outside 0 to 1."""
    bad = value.filter(~value.cast(pl.Float64).is_between(0, 1)).first()
    rule = f"`{argument}` must be a probability, from 0 to 1"
    return pl.when(require_at_collect(bad.is_null(), rule, bad)).then(value)


def unless_mixed(zeros: pl.Expr, minuses: pl.Expr) -> pl.Expr:
    """Return 0.0; raise at collect where a group has both 0 and -1 as negative labels."""
    return raise_at_collect(pl.when(zeros & minuses).then(pl.lit(MARK + _MIXED))).fill_null(0.0)


def require_one_negative_label(*, zeros: bool, minuses: bool) -> None:
    """Raise where rows in memory have both 0 and -1 as negative labels."""
    if zeros and minuses:
        raise pl.exceptions.InvalidOperationError(_MIXED)


def require_at_collect(
    holds: pl.Expr, sentence: str | pl.Expr, found: pl.Expr | None = None
) -> pl.Expr:
    """Return True where a rule ``holds``; raise the sentence at collect where it does not."""
    message = pl.lit(MARK) + (pl.lit(sentence) if isinstance(sentence, str) else sentence)
    if found is not None:
        message += pl.lit("; found ") + found.cast(pl.String).fill_null("null")
    return raise_at_collect(pl.when(~holds).then(message)).is_null()


def message_of(error: Exception) -> str | None:
    """Return the message of a failed check without the engine's text; None for other errors."""
    # The engine's text may also hold its plan, in which all messages are.
    _, mark, message = str(error).partition(f'["{MARK}')
    # The message is the first of a list of texts in quotation marks, and may have some itself.
    return re.split(r'"(?:\]|, )', message, maxsplit=1)[0] if mark else None


def raise_at_collect(sentence: pl.Expr) -> pl.Expr:
    """Return null where the sentence is null; elsewhere the cast fails, and its error shows it."""
    return sentence.cast(pl.Float64, strict=True)
