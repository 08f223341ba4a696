"""Output of the command to streams that may be closed, full or not in Unicode."""

from __future__ import annotations

import codecs
import contextlib
import os
import sys
from collections.abc import Callable
from typing import TextIO

from polars_wroc.files.messages import first_line, one_line

# Standard input, output and error.
_STANDARD = range(3)


def say(text: str, *, json: bool = False) -> None:
    """Print on standard output and flush; characters outside its encoding are escaped."""
    try:
        if sys.stdout is None:
            msg = "that it is closed"
            raise OSError(msg)  # noqa: TRY301  (the same sentence for all)
        sys.stdout.write(_encodable(text, sys.stdout, _in_json if json else _in_python))
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        # A closed file is a bare ValueError.
        msg = f"standard output must be writable; found {first_line(error)}"
        raise OSError(msg) from error


def complain(message: str) -> None:
    """Print a line on standard error, if it is writable."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        line = f"polars-wroc: {one_line(message)}\n"
        sys.stderr.write(_encodable(line, sys.stderr, _in_python))
        sys.stderr.flush()


def reserve_numbers() -> None:
    """Open standard streams that are closed, so that no other file gets their numbers.

    Otherwise messages of the system for standard error would be written into that file.
    """
    with contextlib.suppress(OSError):
        number = os.open(os.devnull, os.O_RDWR)
        while number in _STANDARD:
            number = os.open(os.devnull, os.O_RDWR)
        os.close(number)


def finish() -> None:
    """Flush the standard streams; drop what cannot be written, so that Python does not retry."""
    for stream in (sys.stdout, sys.stderr):
        if stream is None or stream.closed:
            continue
        try:
            stream.flush()
        except OSError:
            silence(stream)


def silence(stream: TextIO | None) -> None:
    """Discard all further output to a stream."""
    if stream is not None:
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _encodable(text: str, stream: TextIO, escape: Callable[[str], str]) -> str:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    if escape is _in_json and codecs.lookup(encoding).name != "utf-8":
        # JSON is read as UTF-8, of which ASCII is a subset.
        encoding = "ascii"
    if _fits(text, encoding):
        return text
    return text.translate(
        {ord(sign): escape(sign) for sign in set(text) if not _fits(sign, encoding)}
    )


def _fits(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def _in_python(sign: str) -> str:
    return sign.encode("ascii", "backslashreplace").decode()


def _in_json(sign: str) -> str:
    """Escape a character of a JSON string."""
    units = sign.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
