"""The command stopped half-way: no part of a file, nothing spilled, and the code that says so."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest

SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows that take a second or more to count and to write."""
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    number = pl.int_range(2_000_000)
    score = number.hash(seed=1) / 2.0**64
    pl.select(y=number.hash(seed=2) % 3 == 0, s=score, g=number % 5).write_parquet(path)
    return path


@contextmanager
def counting(
    rows: Path, folder: Path, *, times: int = 1, budget: int | None = None, **variables: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Start to write counts in a folder, with another one for what is spilled."""
    (folder / "out").mkdir()
    (folder / "spilled").mkdir()
    (folder / "out" / "x.parquet").write_bytes(b"of yesterday")
    outside = {name: value for name, value in os.environ.items() if name != "POLARS_OOC_SPILL_DIR"}
    memory = {} if budget is None else {"POLARS_OOC_MEMORY_BUDGET_MB": str(budget)}
    call = ["counts", *[str(rows)] * times, "--label", "y", "--score", "s", "--by", "g"]
    with subprocess.Popen(  # noqa: S603  (our own code)
        [sys.executable, "-m", "polars_wroc", *call, "-o", str(folder / "out" / "x.parquet")],
        env={**outside, "TMPDIR": str(folder / "spilled"), **memory, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        yield process


def wait_for(holds: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    while not holds():
        assert process.poll() is None
        time.sleep(0.002)


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(("number", "code"), SIGNALS[:2])
def test_stopped_while_writing(
    number: signal.Signals, code: int, rows: Path, tmp_path: Path
) -> None:
    with counting(rows, tmp_path) as process:
        wait_for(lambda: len(names(tmp_path / "out")) == 2, process)
        process.send_signal(number)
        assert process.communicate() == (b"", b"")
    assert process.returncode == code
    assert (tmp_path / "out" / "x.parquet").read_bytes() == b"of yesterday"
    assert names(tmp_path) == ["out/x.parquet"]


@pytest.mark.parametrize(("number", "code"), SIGNALS)
@pytest.mark.parametrize("own", [False, True])
def test_stopped_while_memory_is_short(
    number: signal.Signals, code: int, own: bool, rows: Path, tmp_path: Path
) -> None:
    chosen = {"POLARS_OOC_SPILL_DIR": str(tmp_path / "chosen")} if own else {}
    with counting(rows, tmp_path, times=4, budget=50, **chosen) as process:
        spilled = tmp_path / ("chosen" if own else "spilled")
        wait_for(lambda: any(spilled.rglob("*.ipc")), process)
        process.send_signal(number)
        assert process.communicate() == (b"", b"")
    assert process.returncode == code
    assert names(tmp_path) == ["out/x.parquet"]
    assert list((tmp_path / "spilled").iterdir()) == []
    if own:
        assert list(spilled.iterdir()) == []


def test_nothing_spilled_stays_after_the_end(rows: Path, tmp_path: Path) -> None:
    few = tmp_path / "few.parquet"
    pl.scan_parquet(rows).head(400_000).sink_parquet(few)
    with counting(few, tmp_path, budget=20) as process:
        wait_for(lambda: any((tmp_path / "spilled").rglob("*.ipc")), process)
        _, errors = process.communicate()
    assert (process.returncode, errors) == (0, b"")
    counts = pl.read_parquet(tmp_path / "out" / "x.parquet")
    assert counts.select(pl.col("n_pos").sum() + pl.col("n_neg").sum()).item() == 400_000
    assert list((tmp_path / "spilled").iterdir()) == []


def test_killed_while_writing_leaves_the_target_as_it_was(rows: Path, tmp_path: Path) -> None:
    with counting(rows, tmp_path) as process:
        wait_for(lambda: len(names(tmp_path / "out")) == 2, process)
        process.kill()
        process.communicate()
    assert (tmp_path / "out" / "x.parquet").read_bytes() == b"of yesterday"


def test_signals_ignored_from_outside_stay_ignored(rows: Path, tmp_path: Path) -> None:
    few = tmp_path / "few.parquet"
    pl.scan_parquet(rows).head(1000).sink_parquet(few)
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "from polars_wroc import cli_commands\n"
        "plain = cli_commands.run_auc\n"
        "def interrupted(options):\n"
        "    signal.raise_signal(signal.SIGINT)\n"
        "    plain(options)\n"
        "cli_commands.run_auc = interrupted\n"
        "from polars_wroc.cli import main; sys.exit(main())"
    )
    call = [sys.executable, "-c", code, "auc", str(few), "--label", "y", "--score", "s"]
    done = subprocess.run(call, capture_output=True, check=False)  # noqa: S603  (our own code)
    assert (done.returncode, done.stderr) == (0, b"")
