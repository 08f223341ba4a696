"""Draw the pictures of the gallery with the code that it shows.

Look at the pictures before you commit them. Each holds the code that made it, so that a test can
say which pictures are out of date.
"""

from __future__ import annotations

import contextlib
import doctest
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pictures import with_source
from site_navigation import DOCS, ROOT

PAGE = DOCS / "gallery.md"
PICTURE = re.compile(r"^!\[.+\]\((pictures/gallery/(\w+)\.png)\)$", re.MULTILINE)
# As sharp as a screen with two dots per pixel; site.css shows them half as wide.
_SCALE = 2


def codes() -> Iterator[tuple[Path, str]]:
    """List the picture of each chart, and all code of the page up to it since the last picture."""
    text = PAGE.read_text(encoding="utf-8")
    parser, start = doctest.DocTestParser(), 0
    for match in PICTURE.finditer(text):
        examples = parser.get_examples(text[start : match.start()])
        yield PAGE.parent / match[1], "".join(example.source for example in examples)
        start = match.end()


def renew() -> None:
    """Draw all pictures."""
    known: dict[str, Any] = {}
    for picture, code in codes():
        with contextlib.chdir(ROOT):
            exec(code, known)  # noqa: S102
        known.pop("chart").save(str(picture), scale_factor=_SCALE)
        picture.write_bytes(with_source(picture.read_bytes(), code))
