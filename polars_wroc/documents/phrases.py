"""Words of sentences: lists, plurals and verbs."""

from __future__ import annotations

from collections.abc import Sequence

# The names in a list before the number of the others.
_NAMES = 5


def write_list(parts: Sequence[str], most: int | None = None) -> str:
    """Return parts of a sentence: ``a, b and c``; above ``most``, the others are counted."""
    if most is not None and len(parts) > most:
        parts = [*parts[: most - 1], f"{len(parts) - most + 1} others"]
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if parts[1:] else parts)


def many(count: int, thing: str) -> str:
    """Return a number of things, as in ``1 row`` and ``1,200 rows``."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def verb(count: int, one: str, several: str) -> str:
    """Return the verb for a number of things."""
    return one if count == 1 else several


def capitalise(text: str) -> str:
    """Return a text with a capital first letter."""
    return f"{text[:1].upper()}{text[1:]}"


def first_few(names: Sequence[str], separator: str = ", ", most: int = _NAMES) -> str:
    """Return the first few names and the number of the others."""
    more = len(names) - most
    return f"{separator.join(names[:most])}{f' and {more:,} more' if more > 0 else ''}"
