"""The process of the command: streams, signals, progress, and values of options as text."""

from __future__ import annotations

import argparse
import atexit
import codecs
import contextlib
import os
import re
import shutil
import signal
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from json import dumps
from pathlib import Path
from tempfile import mkdtemp
from types import FrameType
from typing import Any, Literal, NoReturn, TextIO, TypeVar

import polars as pl
import polars.selectors as cs

from polars_wroc import config
from polars_wroc.config import CLEAR_LINE, clock
from polars_wroc.documents.screen import Columns, Screen
from polars_wroc.documents.text_writer import BOLD, RED, paint_text
from polars_wroc.files.sources import first_line, one_line
from polars_wroc.inputs.designs import ReplicateWeights
from polars_wroc.thresholds import rules
from polars_wroc.thresholds.rules import Rule, Threshold

# Exit codes. 1 is only for a failed gate, 3 for one that could not be judged.
DONE, GATE_FAILED, BAD_INPUT, NOT_JUDGED, INTERRUPTED = 0, 1, 2, 3, 130
# Standard input, output and error.
_STANDARD = range(3)
# How errors begin: bold and red.
ERROR = f"{BOLD};{RED}"


def print_text(text: str, *, json: bool = False) -> None:
    """Print on standard output and flush; characters outside its encoding are escaped."""
    try:
        if sys.stdout is None:
            msg = "that it is closed"
            raise OSError(msg)  # noqa: TRY301  (the same sentence for all)
        sys.stdout.write(_encodable(text, sys.stdout, json=json))
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        # A closed file is a bare ValueError.
        msg = f"standard output must be writable; found {first_line(error)}"
        raise OSError(msg) from error


def is_colored(stream: TextIO | None) -> bool:
    """Whether a stream shows colours: a terminal, unless variables that many programs know say."""
    if os.environ.get("NO_COLOR") or stream is None:
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    # The old console of Windows would print the codes.
    old = os.environ.get("TERM") == "dumb" or (os.name == "nt" and "WT_SESSION" not in os.environ)
    return not old and stream.isatty()


def complain(message: str, style: str = BOLD) -> None:
    """Print a line on standard error, if it is writable."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        program = paint_text("polars-wroc:", style if is_colored(sys.stderr) else "")
        line = f"{program} {one_line(message)}\n"
        sys.stderr.write(_encodable(line, sys.stderr))
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


def _encodable(text: str, stream: TextIO, *, json: bool = False) -> str:
    """Escape characters outside the encoding of a stream, as Python does or in JSON strings."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    if not json:
        return text.encode(encoding, "backslashreplace").decode(encoding)
    # JSON is read as UTF-8, of which ASCII is a subset.
    is_utf8 = codecs.lookup(encoding).name == "utf-8"
    outside = r"[\ud800-\udfff]" if is_utf8 else r"[^\x00-\x7f]"
    return re.sub(outside, lambda sign: dumps(sign[0])[1:-1], text)


_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
# Seconds.
_INTERVAL = 0.5

Result = TypeVar("Result")


def run_stoppable(work: Callable[[], Result], clean: Callable[[], None]) -> Result:
    """Run ``work``; on a signal run ``clean`` and exit with 128 plus the signal's number.

    Signals that are ignored, as in a background job, stay ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    known = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in known}
    taken = [number for number in known if before[number] not in (signal.SIG_IGN, None)]

    def stop(number: int, _: FrameType | None) -> None:
        for other in taken:
            signal.signal(other, signal.SIG_IGN)
        try:
            clean()
        finally:
            os._exit(128 + number)

    for number in taken:
        signal.signal(number, stop)
    try:
        # Python handles signals in this thread, which a query of Polars would block.
        with ThreadPoolExecutor(1) as other_thread:
            future = other_thread.submit(work)
            # On Windows a wait without a timeout cannot be interrupted.
            while wait([future], timeout=_INTERVAL).not_done:
                pass
            return future.result()
    finally:
        for number in taken:
            signal.signal(number, before[number])


# Polars makes a folder named after the process number here.
_VARIABLE = "POLARS_OOC_SPILL_DIR"
# On disk; /tmp may be in memory.
_LASTING = Path("/var/tmp")  # noqa: S108  (whose folder it is gets checked)
_ATTEMPTS = 100

# Folders by process number, as a fork must not take its parent's.
_own: dict[int, Path] = {}


def name_spill_folder() -> None:
    """Let Polars spill to a folder of this process, inside the one that the user set, if any."""
    if os.getpid() in _own:
        return
    chosen = os.environ.get(_VARIABLE)
    for _ in range(_ATTEMPTS):
        # Another process may be removing the parent folder.
        with contextlib.suppress(FileNotFoundError):
            _make_own(Path(chosen) if chosen else _folder(), is_ours=not chosen)
            return


def remove_spilled() -> None:
    """Remove what this process spilled, even while Polars runs, and the parent if it is empty."""
    own = _own.get(os.getpid())
    if own is None:
        return
    for _ in range(_ATTEMPTS):
        if not own.exists():
            break
        shutil.rmtree(own, ignore_errors=True)
    if own.parent == _folder():
        with contextlib.suppress(OSError):
            own.parent.rmdir()


def _make_own(parent: Path, *, is_ours: bool) -> None:
    try:
        parent.mkdir(mode=0o700, parents=not is_ours, exist_ok=True)
        status = parent.lstat()
        if is_ours and not (stat.S_ISDIR(status.st_mode) and status.st_uid == _user()):
            return
        own = Path(mkdtemp(dir=parent))
    except FileNotFoundError:
        raise
    except OSError:
        # Polars reports what is wrong with the folder if it needs it.
        return
    _own[os.getpid()] = own
    os.environ[_VARIABLE] = str(own)
    atexit.register(remove_spilled)


def _folder() -> Path:
    lasting = _LASTING if _LASTING.is_dir() and not os.environ.get("TMPDIR") else None
    return (lasting or Path(tempfile.gettempdir())) / f"polars-wroc-{_user()}"


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0


# Seconds before the line appears, and between its updates.
_PATIENCE, _PROGRESS_INTERVAL = 0.5, 0.5


class Progress:
    """Draws the time that has passed until it is stopped, without changing the queries."""

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal
        self._started = time.monotonic()
        self._not_counted: list[pl.LazyFrame | None] = []
        self._rows: int | None = 0
        self._shown = False
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        config.Progress.drawn = False
        threading.Thread(target=self._draw_on, daemon=True).start()

    def add(self, frame: pl.LazyFrame | None) -> None:
        """Add a frame that is read; None if its files do not store their number of rows."""
        self._not_counted.append(frame)

    def stop(self) -> None:
        """Remove the line."""
        with self._lock:
            if self._shown and not self._stopped.is_set():
                self._write(CLEAR_LINE)
            self._stopped.set()
            config.Progress.drawn = True

    def _draw_on(self) -> None:
        wait = _PATIENCE
        while not self._stopped.wait(wait):
            self._count()
            text = sentence(self._rows, time.monotonic() - self._started)
            columns = shutil.get_terminal_size().columns
            with self._lock:
                if not self._stopped.is_set():
                    self._write(CLEAR_LINE + text[: columns - 1])
                    self._shown = True
            wait = _PROGRESS_INTERVAL

    def _count(self) -> None:
        while self._not_counted:
            rows = _rows_of(self._not_counted.pop())
            self._rows = None if rows is None or self._rows is None else self._rows + rows

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            self._terminal.write(text)
            self._terminal.flush()


def sentence(rows: int | None, seconds: float) -> str:
    """Say how long the work has taken, and on how many rows if that is known."""
    work = f"working on {rows:,} rows" if rows else "working"
    return ", ".join([work, *map(str, config.Progress.counting[-1:]), clock(seconds)])


def _rows_of(frame: pl.LazyFrame | None) -> int | None:
    if frame is None:
        return None
    try:
        return int(frame.select(pl.len()).collect().item())
    except (OSError, pl.exceptions.PolarsError):
        # The query itself reports a file that cannot be read.
        return None


class UsageError(Exception):
    """The command line does not fit its grammar."""


def refuse(message: str) -> NoReturn:
    """Raise for a command line that does not fit."""
    raise UsageError(message)


# Where output is no terminal, lines are not wrapped, and tables have all columns that may be shown.
_UNLIMITED = 1_000_000
# Lines of the terminal that are not rows of the table: the command, the verdict, a heading, what
# is left out and the prompt.
_OTHER_LINES = 8
_FEWEST_ROWS = 10


def screen_of(options: argparse.Namespace, rows: int | None = None) -> Screen:
    """Return what is shown: at most ``rows``, or those that fit, unless the options say."""
    width, lines = shutil.get_terminal_size((_UNLIMITED, 0))
    if rows is None and sys.stdout is not None and sys.stdout.isatty():
        rows = max(lines - _OTHER_LINES, _FEWEST_ROWS)
    # Not all commands have these options.
    if (given := getattr(options, "rows", None)) is not None:
        rows = None if given == "all" else given
    columns: Columns | None = getattr(options, "columns", None)
    how = "--rows all", "--columns all"
    return Screen(width, rows, columns, *how, colored=is_colored(sys.stdout))


def parse_columns(text: str) -> Columns:
    """Read the value of --columns."""
    names = [name.strip() for name in text.split(",")]
    if "" in names:
        msg = f"must be all, or names of columns such as n,auc; found {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return "all" if names == ["all"] else names


def rows_of(text: str) -> int | Literal["all"]:
    """Read the value of --rows."""
    if text == "all":
        return "all"
    number = int(text) if text.isdecimal() and len(text) < 10 else 0  # noqa: PLR2004
    if not number:
        msg = f"must be all, or a whole number above 0; found {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return number


# A rule, and what comes after its name.
_RULE = re.compile(r"([\w-]+)(?:([:=])(.*))?")


def parse_threshold(text: str) -> Threshold:
    """Read a threshold, the median, or a rule such as ``max-fpr=0.1``."""
    if text == "median":
        return "median"
    parts = _RULE.fullmatch(text)
    name = parts[1].replace("-", "_") if parts else ""
    if parts and name in rules.__all__:
        choose: Callable[..., Rule] = getattr(rules, name)
        with _such_as(_write_rule(name), text):
            return choose(_value(parts[3])) if parts[2] == "=" else choose(**_values(parts[3]))
    value = _value(text)
    if isinstance(value, str):
        begun = re.split(r"[^\w-]", text.replace("-", "_"), maxsplit=1)[0]
        close = get_close_matches(begun.lower(), rules.__all__, 1)
        hint = f"; did you mean {_write_rule(close[0])!r}?" if close else ""
        msg = f"must be a number, median or a rule such as max-fpr=0.1; found {text!r}{hint}"
        raise argparse.ArgumentTypeError(msg)
    return float(value)


def _write_rule(name: str) -> str:
    """Write a rule as the value of --threshold, with numbers as an example."""
    options = rules.SHOWN_OPTIONS.get(name, "")
    _, _, number = options.partition("=")
    if "," in options:
        options = f":{options.replace(', ', ',')}"
    elif options:
        options = f"={number}"
    return f"{name.replace('_', '-')}{options}"


def replicate_weights_of(text: str) -> ReplicateWeights:
    """Read columns and kind of replicate weights, such as ``rep_*:kind=jk2``."""
    names, _, options = text.rpartition(":")
    columns = [_matching(name) if "*" in name else name for name in names.split(",") if name]
    with _such_as("'rep_*:kind=jk2' or a,b,c:kind=fay,rho=0.3,df=60", text):
        return ReplicateWeights(columns, **_values(options))


def _matching(pattern: str) -> pl.Expr:
    """Select the columns whose names match a pattern, in which * is any text."""
    return cs.matches("^" + ".*".join(map(re.escape, pattern.split("*"))) + "$")


def _values(text: str | None) -> dict[str, Any]:
    """Read arguments such as ``fn=5,fp=1``."""
    parts = (part.partition("=") for part in (text or "").split(",") if part)
    return {name: _value(value) for name, _, value in parts}


def _value(text: str) -> int | float | str:
    """Read a number, or leave the text."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


@contextmanager
def _such_as(examples: str, text: str) -> Iterator[None]:
    """Show examples of an option in place of what an argument of it must be."""
    try:
        yield
    except (TypeError, ValueError) as error:
        msg = f"must be such as {examples}; found {text!r}: {str(error).replace('`', '')}"
        raise argparse.ArgumentTypeError(msg) from None
