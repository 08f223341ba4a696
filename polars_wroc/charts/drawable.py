"""Names that Vega and JavaScript draw as they are."""

from __future__ import annotations

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


def drawable(text: str) -> str:
    """Add an invisible character to a name that JavaScript objects have already."""
    return f"{text}{UNSEEN}" if text.rstrip(UNSEEN) in _JAVASCRIPT else text
