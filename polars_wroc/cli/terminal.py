"""The standard streams: what is printed, notes and errors, and progress."""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import sys
from json import dumps
from typing import TextIO

from polars_wroc.documents.text_writer import BOLD, RED, paint_text
from polars_wroc.files.sources import first_line, one_line

# The error output begins errors in bold and red.
_ERROR = f"{BOLD};{RED}"
_STANDARD_ERROR = 2
# Signs of tables where the encoding of the output lacks them.
_PLAIN = str.maketrans({"−": "-", "–": "-", "…": "...", "“": '"', "”": '"', "’": "'", "×": "x"})  # noqa: RUF001
_PLAIN |= str.maketrans({"≠": "!="})


def print_text(text: str, *, json: bool = False) -> None:
    """Print on standard output and flush; characters outside its encoding are replaced."""
    try:
        if sys.stdout is None:
            msg = "it is closed"
            raise OSError(msg)  # noqa: TRY301  (the same sentence for all)
        sys.stdout.write(_encodable(text, sys.stdout, json=json))
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        # A closed file is a bare ValueError.
        why = getattr(error, "strerror", None) or first_line(error)
        msg = f"cannot write to standard output: {why[0].lower()}{why[1:]}"
        raise OSError(msg) from error


def print_note(message: str, style: str = BOLD) -> None:
    """Print a line on standard error, if it is writable."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        program = paint_text("polars-wroc:", style if is_colored(sys.stderr) else "")
        sys.stderr.write(_encodable(f"{program} {one_line(message)}\n", sys.stderr))
        sys.stderr.flush()


def print_error(message: str) -> None:
    """Print an error in one line on standard error."""
    print_note(message, _ERROR)


def _encodable(text: str, stream: TextIO, *, json: bool = False) -> str:
    """Replace characters outside the encoding of a stream; in JSON they are escaped."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    if json:
        # JSON is read as UTF-8, of which ASCII is a subset.
        is_utf8 = codecs.lookup(encoding).name == "utf-8"
        outside = r"[\ud800-\udfff]" if is_utf8 else r"[^\x00-\x7f]"
        return re.sub(outside, lambda found: dumps(found[0])[1:-1], text)
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        plain = text.translate(_PLAIN)
        return plain.encode(encoding, "backslashreplace").decode(encoding)
    return text


def is_colored(stream: TextIO | None) -> bool:
    """Whether a stream shows colours: a terminal, unless variables that many programs know say."""
    if os.environ.get("NO_COLOR") or stream is None:
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    # The old console of Windows would print the codes.
    old = os.environ.get("TERM") == "dumb" or (os.name == "nt" and "WT_SESSION" not in os.environ)
    return not old and stream.isatty()


def open_closed_streams() -> None:
    """Give the numbers of standard streams that are closed to no other file.

    Otherwise messages of the system for standard error would be written into that file.
    """
    with contextlib.suppress(OSError):
        number = os.open(os.devnull, os.O_RDWR)
        while number <= _STANDARD_ERROR:
            number = os.open(os.devnull, os.O_RDWR)
        os.close(number)


def drop_unwritable() -> None:
    """Drop what a stream cannot write, so that Python does not complain of it when it ends."""
    for stream in (sys.stdout, sys.stderr):
        if stream is None or stream.closed:
            continue
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
