"""Names that users give, as texts that any page or picture can hold."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection

# A space without width.
UNSEEN = "\u200b"
# Control characters but tabs and line breaks, others that no XML, and so no SVG, may hold, and
# those that reverse what is written after them.
_NOT_DRAWN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069]"
)


def escape_controls(text: str) -> str:
    r"""Write characters that cannot be drawn as their code, for example ``\x07`` for a bell."""
    return _NOT_DRAWN.sub(lambda found: ascii(found[0])[1:-1], text)


def write_in_one_line(text: str) -> str:
    """Write a text that may hold anything in one line, without control characters."""
    # Most texts hold nothing of all that.
    plain = text if text.isprintable() else escape_controls(text)
    return " ".join(plain.split())


def quote(name: str) -> str:
    """Write a name in quotation marks."""
    left, right = "\N{LEFT DOUBLE QUOTATION MARK}", "\N{RIGHT DOUBLE QUOTATION MARK}"
    return f"{left}{escape_controls(name)}{right}"


def show_name(name: str) -> str:
    """Write a name, in quotation marks if none of its characters is visible."""
    shown = escape_controls(name)
    is_invisible = all(unicodedata.category(character)[0] in "ZC" for character in shown)
    return quote(name) if is_invisible else shown


def unique_name(name: str, taken: Collection[str]) -> str:
    """Append invisible characters to a name that is taken."""
    while name in taken:
        name += UNSEEN
    return name
