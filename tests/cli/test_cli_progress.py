"""Progress on a terminal: the rows that are read, no more, and nothing that stays."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from processes import COMMAND, PLAIN

from polars_wroc.cli import progress
from polars_wroc.cli.main import main
from polars_wroc.cli.progress import Progress, sentence

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


def on_terminal(arguments: list[str], stop_at: str | None = None) -> tuple[int, str, str]:
    """Run the command with standard error on a terminal; the code and both outputs.

    Once it shows a text it may be stopped.
    """
    ours, theirs = pty.openpty()
    process = subprocess.Popen(  # noqa: S603  (our own code)
        [*COMMAND, *arguments], env=PLAIN, stdout=subprocess.PIPE, stderr=theirs
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
            if stop_at is not None and stop_at.encode() in shown:
                process.terminate()
        assert process.stdout is not None
        printed = process.stdout.read().decode()
    return process.returncode, printed, shown.decode()


def test_rows_read_are_shown_and_removed(rows: Path, tmp_path: Path) -> None:
    output = tmp_path / "x.parquet"
    call = ["counts", str(rows), *COLUMNS, "--weight", "w", "--by", "g", "-o", str(output)]
    code, printed, shown = on_terminal(call)
    assert code == 0
    assert printed == f"wrote {output}\n"
    lines = shown.split(CLEAR)
    assert lines[0] == lines[-1] == ""
    drawn = [
        re.fullmatch(r"read ([\d,]+) of 2,000,000 rows, (\d+)%, 0:\d\d", line) for line in lines
    ]
    reads = [int(found[1].replace(",", "")) for found in drawn if found]
    assert reads == sorted(reads)
    assert f"read all {ROWS:,} rows, computing, 0:" in shown
    assert "\n" not in shown


@pytest.mark.slow
@pytest.mark.parametrize(
    "more", [["--label", "w"], ["--label", "y", "--weight", "s", "--bins", "x"]]
)
def test_error_stands_alone(more: list[str], rows: Path) -> None:
    code, printed, shown = on_terminal(["auc", str(rows), "--score", "s", "--by", "g", *more])
    assert code == 2
    assert printed == ""
    assert shown.split(CLEAR)[-1].startswith("polars-wroc: ")
    assert shown.count("\n") == 1


@pytest.mark.slow
def test_nothing_is_shown_when_not_wanted(rows: Path) -> None:
    code, printed, shown = on_terminal(["auc", str(rows), *COLUMNS, "--by", "g", "--no-progress"])
    assert (code, shown) == (0, "")
    assert "auc" in printed


@pytest.mark.slow
def test_nothing_is_shown_for_short_work(
    rows: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(progress, "_PATIENCE", 1000)
    assert main(["auc", str(rows), *COLUMNS]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.slow
@pytest.mark.parametrize("terminal", [False, True])
def test_nothing_is_watched_without_a_terminal_to_say_it_on(
    terminal: bool, rows: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    watched: list[pl.LazyFrame] = []
    plain = pl.LazyFrame.map_batches

    def watch(
        frame: pl.LazyFrame, function: Callable[[pl.DataFrame], pl.DataFrame], **more: Any
    ) -> pl.LazyFrame:
        watched.append(frame)
        return plain(frame, function, **more)

    monkeypatch.setattr(pl.LazyFrame, "map_batches", watch)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    assert main(["auc", str(rows), *COLUMNS, "-o", "-"]) == 0
    assert bool(watched) == terminal
    assert capsys.readouterr().err.split(CLEAR)[-1] == ""


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_every_row_is_counted_once_whatever_is_filtered(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_PATIENCE", 0)
    monkeypatch.setattr(progress, "_INTERVAL", 0.001)
    path = tmp_path / f"rows.{suffix}"
    data = pl.select(n=pl.int_range(1000))
    data.write_parquet(path) if suffix == "parquet" else data.write_csv(path)
    frame = pl.scan_parquet(path) if suffix == "parquet" else pl.scan_csv(path)
    terminal = io.StringIO()
    shown = Progress(terminal)
    kept = shown.watch(frame, known=suffix == "parquet").filter(pl.col("n") < 10).select("n")
    expected = ["read all 1,000 rows, computing, "] * 2
    if suffix == "csv":
        expected = ["read 1,000 rows, ", "read 2,000 rows, "]
    for text in expected:
        assert kept.collect().height == 10
        wait_for(lambda: text in terminal.getvalue().split(CLEAR)[-1])  # noqa: B023
    shown.stop()
    assert terminal.getvalue().endswith(CLEAR)


def wait_for(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.mark.parametrize(
    ("rows", "total", "seconds", "said"),
    [
        (0, 4000, 0.6, "read 0 of 4,000 rows, 0%, 0:00"),
        (1000, 4000, 9.9, "read 1,000 of 4,000 rows, 25%, 0:09"),
        (4000, 4000, 61, "read all 4,000 rows, computing, 1:01"),
        (5000, 4000, 3600, "read 1,000 of 4,000 rows again, 25%, 60:00"),
        (8000, 4000, 61, "read all 4,000 rows, computing, 1:01"),
        (1000, None, 1, "read 1,000 rows, 0:01"),
        (0, 0, 1, "read 0 rows, 0:01"),
    ],
)
def test_sentence(rows: int, total: int | None, seconds: float, said: str) -> None:
    assert sentence(rows, total, seconds) == said
