"""Names that Vega, JavaScript and XML can draw."""

from __future__ import annotations

import re

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


# Control characters but tabs and line breaks, and others that no XML, and so no SVG, may hold.
_NO_XML = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def visible(text: str) -> str:
    r"""Write characters that cannot be drawn as their code, such as ``\x07`` for a bell."""
    return _NO_XML.sub(lambda found: ascii(found[0])[1:-1], text)


def drawable(text: str) -> str:
    """Make a name visible, and add a character without width to one that JavaScript has."""
    text = visible(text)
    return f"{text}{UNSEEN}" if text.rstrip(UNSEEN) in _JAVASCRIPT else text
