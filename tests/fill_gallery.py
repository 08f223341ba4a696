"""Draw the pictures of the gallery with the code that it shows: ``python tests/fill_gallery.py``.

Look at the pictures before you commit them. Each holds the code that made it, so that a test can
say which pictures are out of date.
"""

from __future__ import annotations

import doctest
import os
import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from site_navigation import DOCS, ROOT

PAGE = DOCS / "gallery.md"
PICTURE = re.compile(r"^!\[.+\]\((pictures/gallery/(\w+)\.png)\)$", re.MULTILINE)
# As sharp as a screen with two dots per pixel; site.css shows them half as wide.
_SCALE = 2
_KEYWORD = b"Source"
_NO_LANGUAGE = b"\0" * 5
_SIGNATURE = 8


def codes() -> Iterator[tuple[Path, str]]:
    """List the picture of each chart, and all code of the page up to it since the last picture."""
    text = PAGE.read_text(encoding="utf-8")
    parser, start = doctest.DocTestParser(), 0
    for match in PICTURE.finditer(text):
        examples = parser.get_examples(text[start : match.start()])
        yield PAGE.parent / match[1], "".join(example.source for example in examples)
        start = match.end()


def code_in(picture: Path) -> str:
    """Read the code that made a picture."""
    for kind, data in _chunks(picture.read_bytes()):
        if kind == b"iTXt":
            return data.removeprefix(_KEYWORD + _NO_LANGUAGE).decode()
    return ""


def _chunks(image: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = _SIGNATURE
    while at < len(image):
        length, kind = struct.unpack(">I4s", image[at : at + 8])
        yield kind, image[at + 8 : at + 8 + length]
        at += length + 12


def _small(image: bytes, code: str) -> bytes:
    """Compress an image well, and add a chunk of text with the code that made it."""
    chunks = list(_chunks(image))
    pixels = zlib.decompress(b"".join(data for kind, data in chunks if kind == b"IDAT"))
    kept = [
        chunks[0],
        (b"iTXt", _KEYWORD + _NO_LANGUAGE + code.encode()),
        (b"IDAT", zlib.compress(pixels, 9)),
        chunks[-1],
    ]
    return image[:_SIGNATURE] + b"".join(_chunk(kind, data) for kind, data in kept)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _draw() -> None:
    known: dict[str, Any] = {}
    for picture, code in codes():
        exec(code, known)  # noqa: S102
        known.pop("chart").save(str(picture), scale_factor=_SCALE)
        picture.write_bytes(_small(picture.read_bytes(), code))


if __name__ == "__main__":
    os.chdir(ROOT)
    _draw()
