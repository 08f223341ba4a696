"""PNG pictures as vl-convert writes them: smaller without loss, and compared with others."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
# Red, green, blue and opacity of 8 bits each, and not interlaced; rows begin with their filter,
# of which 1 means: the difference to the pixel on the left.
_KIND, _FILTER = b"\x08\x06\x00\x00\x00", 1
# Keyword of a text, and what says that it is neither compressed nor in a language.
_SOURCE = b"Source" + b"\0" * 5
# Of a channel: smaller differences are those of the edges of letters.
_VISIBLE = 64


def smaller(png: bytes) -> bytes:
    """Compress a picture as much as zlib can, which vl-convert does not."""
    parts = list(_chunks(png))
    kept = [part for part in parts if part[0] != b"IDAT"]
    return _write([*kept[:-1], _pack(parts), kept[-1]])


def with_source(png: bytes, source: str) -> bytes:
    """Compress a picture, without the density of its pixels, and add the code that drew it."""
    parts = list(_chunks(png))
    text = (b"iTXt", _SOURCE + source.encode())
    return _write([parts[0], text, _pack(parts), parts[-1]])


def source_of(png: bytes) -> str:
    """Read the code that `with_source` added to a picture."""
    texts = [data for kind, data in _chunks(png) if kind == b"iTXt"]
    return texts[0].removeprefix(_SOURCE).decode() if texts else ""


def size_of(png: bytes) -> tuple[int, int]:
    """Width and height in pixels."""
    width, height = struct.unpack(">II", dict(_chunks(png))[b"IHDR"][:8])
    return width, height


def share_that_differs(one: bytes, other: bytes) -> float:
    """Share of the pixels that look different, of two pictures; 1 if their sizes differ."""
    if one == other:
        return 0.0
    if size_of(one) != size_of(other):
        return 1.0
    apart = np.abs(_pixels(one).astype(np.int16) - _pixels(other))
    return float((apart.max(axis=2) > _VISIBLE).mean())


def _pixels(png: bytes) -> NDArray[np.uint8]:
    width, height = size_of(png)
    parts = list(_chunks(png))
    assert dict(parts)[b"IHDR"][8:] == _KIND, "not a picture of vl-convert"
    rows = np.frombuffer(_rows_of(parts), np.uint8).reshape(height, 1 + 4 * width)
    assert (rows[:, 0] == _FILTER).all(), "not a picture of vl-convert"
    return np.cumsum(rows[:, 1:].reshape(height, width, 4), axis=1, dtype=np.uint8)


def _pack(parts: list[tuple[bytes, bytes]]) -> tuple[bytes, bytes]:
    return b"IDAT", zlib.compress(_rows_of(parts), 9)


def _write(parts: list[tuple[bytes, bytes]]) -> bytes:
    return _SIGNATURE + b"".join(_chunk(*part) for part in parts)


def _rows_of(parts: list[tuple[bytes, bytes]]) -> bytes:
    return zlib.decompress(b"".join(data for kind, data in parts if kind == b"IDAT"))


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    assert png.startswith(_SIGNATURE), "not a PNG"
    place = len(_SIGNATURE)
    while place < len(png):
        (length,) = struct.unpack(">I", png[place : place + 4])
        yield png[place + 4 : place + 8], png[place + 8 : place + 8 + length]
        place += 12 + length


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
