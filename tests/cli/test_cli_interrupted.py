"""The command stopped half-way: no part of a file, nothing printed, and the code that says so."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest
from processes import COMMAND, PLAIN

# What does not end by then never will.
SECONDS = 120


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A few rows, and a file that is to be replaced."""
    pl.DataFrame({"y": [0, 1], "s": [0.1, 0.2], "g": [1, 1]}).write_parquet(
        tmp_path / "rows.parquet"
    )
    (tmp_path / "x.parquet").write_bytes(b"of yesterday")
    return tmp_path


@contextmanager
def counting(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start to write counts in a folder, up to the moment when the file is to be replaced."""
    script = [str(Path(__file__).parents[1] / "held_up.py")]
    call = ["counts", "rows.parquet", "--label", "y", "--score", "s", "--by", "g"]
    with subprocess.Popen(  # noqa: S603  (our own code)
        [sys.executable, *script, *call, "-o", "x.parquet"],
        env=PLAIN,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"here\n"
            yield process
        finally:
            # What is held up would otherwise be waited for, for ever.
            process.kill()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_an_interrupted_command_is_silent_and_leaves_no_part(folder: Path) -> None:
    with counting(folder) as process:
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=SECONDS) == (b"", b"")
    assert process.returncode == 130
    assert names(folder) == ["rows.parquet", "x.parquet"]
    assert (folder / "x.parquet").read_bytes() == b"of yesterday"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_command_leaves_the_target_as_it_was(number: signal.Signals, folder: Path) -> None:
    with counting(folder) as process:
        process.send_signal(number)
        assert process.communicate(timeout=SECONDS) == (b"", b"")
    assert process.returncode == -number
    assert (folder / "x.parquet").read_bytes() == b"of yesterday"


@pytest.mark.slow(reason="starts processes")
def test_a_query_is_interrupted(folder: Path) -> None:
    number = pl.int_range(20_000_000)
    rows = pl.select(y=number.hash(seed=1) % 3 == 0, s=number.hash(seed=2) / 2.0**64)
    rows.write_parquet(folder / "rows.parquet")
    call = [*COMMAND, "auc", "rows.parquet", "--label", "y", "--score", "s"]
    with subprocess.Popen(  # noqa: S603  (our own code)
        call, env=PLAIN, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        output = process.communicate(timeout=SECONDS)
    # A fast machine may be ready by then.
    assert process.returncode == 0 or (process.returncode, output) == (130, (b"", b""))
