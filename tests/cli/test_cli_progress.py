"""Progress on a terminal: how many rows there are, how long it takes, and nothing that stays."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl
import pytest
from processes import COMMAND, PLAIN

from polars_wroc.cli import commands, process
from polars_wroc.cli import main
from polars_wroc.cli.process import Progress, sentence

# The command, which shows from the start what it works on: how fast the machine is does not matter.
IMPATIENT = """
import sys
from polars_wroc.cli import process
from polars_wroc.cli import main
process._PATIENCE = process._PROGRESS_INTERVAL = 0.01
sys.exit(main())
"""
CLEAR = "\r\x1b[K"
ROWS = 2_000_000
COLUMNS = ["--label", "y", "--score", "s"]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows that keep a processor busy for a second or more."""
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    number = pl.int_range(ROWS)
    score = number.hash(seed=1) / 2.0**64
    label = number.hash(seed=2) % 3 == 0
    pl.select(y=label, s=score, w=1 + number % 7, g=number % 5).write_parquet(path)
    return path


def on_terminal(arguments: list[str], command: Sequence[str] = COMMAND) -> tuple[int, str, str]:
    """Run a command with standard error on a terminal; the code and both outputs."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(  # noqa: S603  (our own code)
        [*command, *arguments], env=PLAIN, stdout=subprocess.PIPE, stderr=theirs
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


@pytest.mark.slow
def test_rows_and_time_are_shown_and_removed(rows: Path, tmp_path: Path) -> None:
    output = tmp_path / "x.parquet"
    call = ["counts", str(rows), *COLUMNS, "--weight", "w", "--by", "g", "-o", str(output)]
    code, printed, shown = on_terminal(call, [sys.executable, "-c", IMPATIENT])
    assert code == 0
    assert printed == f"wrote {output}\n"
    lines = shown.split(CLEAR)
    assert lines[0] == lines[-1] == ""
    assert len(lines) > 2
    # Until the number of rows is known there is the time alone.
    for line in lines[1:-1]:
        assert re.fullmatch(r"working( on 2,000,000 rows)?, 0:\d\d", line)
    assert "on 2,000,000 rows" in shown
    assert "\n" not in shown


@pytest.mark.slow
@pytest.mark.parametrize(
    "more", [["--label", "w"], ["--label", "y", "--weight", "s", "--bins", "x"]]
)
def test_error_stands_alone(more: list[str], rows: Path) -> None:
    code, printed, shown = on_terminal(["auc", str(rows), "--score", "s", "--by", "g", *more])
    assert code == 2
    assert printed == ""
    assert shown.split(CLEAR)[-1].startswith("\x1b[1;31mpolars-wroc:\x1b[0m ")
    assert shown.count("\n") == 1


@pytest.mark.slow
def test_nothing_is_shown_when_not_wanted(rows: Path) -> None:
    code, printed, shown = on_terminal(["auc", str(rows), *COLUMNS, "--by", "g", "--no-progress"])
    assert (code, shown) == (0, "")
    assert "AUC" in printed


@pytest.mark.slow
def test_nothing_is_shown_for_short_work(
    rows: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(process, "_PATIENCE", 1000)
    assert main(["auc", str(rows), *COLUMNS]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_a_terminal_changes_no_query(
    rows: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plans: list[str] = []

    def collect(plan: pl.LazyFrame) -> pl.DataFrame:
        plans.append(plan.explain())
        return plan.collect()

    monkeypatch.setattr(commands, "collect", collect)
    for terminal in (False, True):
        monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)  # noqa: B023
        assert main(["auc", str(rows), *COLUMNS, "-o", "-"]) == 0
        assert capsys.readouterr().err.split(CLEAR)[-1] == ""
    assert plans[0] == plans[1]


def test_rows_of_all_files_are_added_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_PATIENCE", 0)
    monkeypatch.setattr(process, "_PROGRESS_INTERVAL", 0.001)
    pl.select(n=pl.int_range(1000)).write_parquet(tmp_path / "rows.parquet")
    frame = pl.scan_parquet(tmp_path / "rows.parquet")
    missing = pl.scan_parquet(tmp_path / "none.parquet")
    for frames, expected in (
        ([], "working, "),
        ([frame], "working on 1,000 rows, "),
        ([frame, frame], "working on 2,000 rows, "),
        ([frame, None], "working, "),
        ([frame, missing, frame], "working, "),
    ):
        terminal = io.StringIO()
        shown = Progress(terminal)
        for each in frames:
            shown.add(each)
        wait_for(lambda: terminal.getvalue().split(CLEAR)[-1].startswith(expected))  # noqa: B023
        shown.stop()
        assert terminal.getvalue().endswith(CLEAR)


def wait_for(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.mark.parametrize(
    ("rows", "seconds", "said"),
    [
        (0, 0.6, "working, 0:00"),
        (1000, 9.9, "working on 1,000 rows, 0:09"),
        (4_000_000, 61, "working on 4,000,000 rows, 1:01"),
        (None, 3600, "working, 60:00"),
    ],
)
def test_sentence(rows: int | None, seconds: float, said: str) -> None:
    assert sentence(rows, seconds) == said
