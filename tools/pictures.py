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


def png_of(pixels: NDArray[np.uint8]) -> bytes:
    """Write pixels, which have four channels, as vl-convert does."""
    height, width, channels = pixels.shape
    steps = np.diff(pixels, axis=1, prepend=np.zeros((height, 1, channels), np.uint8))
    rows = np.insert(steps.reshape(height, -1), 0, _FILTER, axis=1)
    header = (b"IHDR", struct.pack(">II", width, height) + _KIND)
    parts = [header, (b"IDAT", zlib.compress(rows.tobytes(), 1)), (b"IEND", b"")]
    return _SIGNATURE + b"".join(_chunk(*part) for part in parts)


def smaller(png: bytes, source: str = "") -> bytes:
    """Compress a picture as much as zlib can, which vl-convert does not, and add its source."""
    parts = list(_chunks(png))
    texts = [(b"iTXt", _SOURCE + source.encode())] if source else []
    pixels = [(b"IDAT", zlib.compress(_rows_of(parts), 9))]
    first, *kept, last = [part for part in parts if part[0] != b"IDAT"]
    return _SIGNATURE + b"".join(_chunk(*part) for part in [first, *texts, *kept, *pixels, last])


def source_of(png: bytes) -> str:
    """Read the source that `smaller` added to a picture."""
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
