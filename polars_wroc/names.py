"""Names that users give, as texts that any page or picture can hold."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from functools import lru_cache

# A zero-width space.
UNSEEN = "\u200b"
# Control characters except tabs and line breaks, others that XML (and SVG) must not contain, and
# those that reverse the text after them.
_NOT_DRAWN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069]"
)


def escape_controls(text: str) -> str:
    r"""Return a text with the codes of undrawable characters, for example ``\x07`` for a bell."""
    return _NOT_DRAWN.sub(lambda found: ascii(found[0])[1:-1], text)


def write_in_one_line(text: str) -> str:
    """Return any text in one line, without control characters."""
    # Most texts need no change.
    plain = text if text.isprintable() else escape_controls(text)
    return " ".join(plain.split())


def quote(name: str) -> str:
    """Return a name in quotation marks."""
    left, right = "\N{LEFT DOUBLE QUOTATION MARK}", "\N{RIGHT DOUBLE QUOTATION MARK}"
    return f"{left}{escape_controls(name)}{right}"


# Many sentences have the same few names.
@lru_cache(maxsize=1024)
def show_name(name: str) -> str:
    """Return a name, in quotation marks if none of its characters is visible."""
    shown = escape_controls(name)
    is_invisible = all(unicodedata.category(character)[0] in "ZC" for character in shown)
    return quote(name) if is_invisible else shown


def unique_name(name: str, taken: Collection[str]) -> str:
    """Return a name with invisible characters appended if it is taken."""
    while name in taken:
        name += UNSEEN
    return name
