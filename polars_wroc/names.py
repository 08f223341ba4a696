"""Names that users give, as texts that any page or picture can hold."""

from __future__ import annotations

import re
from collections.abc import Collection

# A space without width.
UNSEEN = "\u200b"
# Control characters but tabs and line breaks, and others that no XML, and so no SVG, may hold.
_NO_XML = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def escape_controls(text: str) -> str:
    r"""Write characters that cannot be drawn as their code, for example ``\x07`` for a bell."""
    return _NO_XML.sub(lambda found: ascii(found[0])[1:-1], text)


def unique_name(name: str, taken: Collection[str]) -> str:
    """Append invisible characters to a name that is taken."""
    while name in taken:
        name += UNSEEN
    return name
