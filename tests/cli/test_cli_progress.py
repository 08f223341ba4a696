"""Progress on a terminal: how many rows there are, how long it takes, and nothing that stays."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from processes import PLAIN

from polars_wroc import progress
from polars_wroc.cli import main
from polars_wroc.progress import Progress

# The command, which shows from the start what it works on: how fast the machine is does not matter.
IMPATIENT = """
import sys
from polars_wroc import progress
from polars_wroc.cli import main
progress._PATIENCE = 0.01
sys.exit(main())
"""
ROWS = 2_000_000
_CODES = re.compile(r"\x1b\[[?\d;]*[a-zA-Z]|\r|\n")


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows that keep a processor busy for a second or more."""
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    number = pl.int_range(ROWS)
    score = number.hash(seed=1) / 2.0**64
    label = number.hash(seed=2) % 3 == 0
    pl.select(y=label, s=score, w=1 + number % 7, g=number % 5).write_parquet(path)
    return path


def on_terminal(*arguments: str) -> tuple[int, str, str]:
    """Run a command with standard error on a terminal; the code and both outputs."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(  # noqa: S603  (our own code)
        [sys.executable, "-c", IMPATIENT, *arguments],
        env=PLAIN | {"TERM": "xterm"},
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    with process, os.fdopen(ours, "rb", buffering=0) as terminal:
        while True:
            try:
                part = terminal.read(65536)
            except OSError:
                # How Linux says that the other side is closed.
                break
            if not part:
                break
            shown += part
        assert process.stdout is not None
        printed = process.stdout.read().decode()
    return process.returncode, printed, shown.decode()


@pytest.mark.slow(reason="starts processes")
def test_rows_and_time_are_shown_and_removed(rows: Path, tmp_path: Path) -> None:
    output = tmp_path / "x.parquet"
    columns = ["--label", "y", "--score", "s", "--weight", "w", "--by", "g"]
    code, printed, shown = on_terminal("counts", str(rows), *columns, "-o", str(output))
    assert (code, printed) == (0, f"wrote {output}\n")
    assert re.search(r"working on 2,000,000 rows, 0:\d\d", shown)
    # The line is erased at the end, and the cursor is shown again.
    assert shown.rstrip().endswith("\x1b[2K")
    assert "\x1b[?25h" in shown


@pytest.mark.slow(reason="starts processes")
def test_an_error_stands_alone(rows: Path) -> None:
    code, printed, shown = on_terminal(
        "auc", str(rows), "--label", "y", "--score", "y", "--by", "h"
    )
    assert (code, printed) == (2, "")
    last = shown.rstrip().split("\x1b[2K")[-1]
    assert _CODES.sub("", last).startswith("polars-wroc: --by must name a column of ")


class Terminal(io.StringIO):
    """Standard error that is a terminal."""

    def isatty(self) -> bool:
        return True


def open_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Make standard error a terminal; a fixture would do so before the output is captured."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    return terminal


def wait_for(terminal: Terminal, text: str) -> None:
    end = time.monotonic() + 20
    while text not in terminal.getvalue():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_the_innermost_work_is_counted_too(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    with Progress(describe=lambda: "working"), Progress(7, "passes over the rows") as passes:
        passes.advance(3)
        wait_for(terminal, "working, 3 of 7 passes over the rows, 0:0")


def test_nothing_is_shown_for_short_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    terminal = open_terminal(monkeypatch)
    monkeypatch.setattr(progress, "_PATIENCE", 1000)
    path = tmp_path / "rows.parquet"
    pl.DataFrame({"y": [0, 1], "s": [0.1, 0.2]}).write_parquet(path)
    assert main(["auc", str(path), "--label", "y", "--score", "s"]) == 0
    assert terminal.getvalue() == ""


def test_nothing_is_shown_elsewhere(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    with Progress(3, "rows"):
        time.sleep(0.05)
    assert capsys.readouterr().err == ""
