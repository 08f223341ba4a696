"""Texts whose numbers stay together at the end of a line."""

from __future__ import annotations

import re

# Limits, a p-value, and a number with its unit.
_PAIR = re.compile(r"(?<=\d) to (?=[+\N{MINUS SIGN}]?\d)|(?<=\bp) (?=[<\d])|(?<=<) (?=\d)")
_UNIT = re.compile(r"(?<=\d) (?=(?:points?|pairs?|rows?)\b)")
_SPACE = "\N{NO-BREAK SPACE}"


def unbroken(text: str) -> str:
    """Put spaces that do not break into pairs of numbers, and before units."""
    paired = _PAIR.sub(lambda found: found[0].replace(" ", _SPACE), text)
    return _UNIT.sub(_SPACE, paired)
