"""The command stopped half-way: no part of a file, nothing spilled, and the code that says so."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest
from processes import COMMAND, PLAIN
from sweeps import sweep

SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
ENTRIES = ["module", "script"]
# What does not end by then never will.
SECONDS = 120


@pytest.fixture
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few rows."""
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    pl.DataFrame({"y": [0, 1], "s": [0.1, 0.2], "g": [1, 1]}).write_parquet(path)
    return path


@contextmanager
def counting(
    point: str, rows: Path, folder: Path, **variables: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Start to write counts in a folder up to a point, with a folder for what is spilled."""
    for name in ("out", "spilled"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "out" / "x.parquet").write_bytes(b"of yesterday")
    memory = {"POLARS_OOC_MEMORY_BUDGET_MB": "50"}
    call = ["counts", str(rows), "--label", "y", "--score", "s", "--by", "g"]
    script = [str(Path(__file__).parents[1] / "held_up.py"), point, str(folder)]
    with subprocess.Popen(  # noqa: S603  (our own code)
        [sys.executable, *script, *call, "-o", str(folder / "out" / "x.parquet")],
        env={**PLAIN, "TMPDIR": str(folder / "spilled"), **memory, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            # What is held up would otherwise be waited for, for ever.
            process.kill()


def wait_for(process: subprocess.Popen[bytes]) -> None:
    """Wait until a process says that it is held up."""
    assert process.stdout is not None
    assert process.stdout.readline() == b"here\n"


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(("number", "code"), sweep(SIGNALS))
def test_stopped_while_writing(
    number: signal.Signals, code: int, rows: Path, tmp_path: Path
) -> None:
    with counting("written", rows, tmp_path) as process:
        wait_for(process)
        assert len(names(tmp_path / "out")) == 2
        process.send_signal(number)
        assert process.communicate(timeout=SECONDS) == (b"", b"")
    assert process.returncode == code
    assert (tmp_path / "out" / "x.parquet").read_bytes() == b"of yesterday"
    assert names(tmp_path) == ["out/x.parquet"]


@pytest.mark.parametrize(("number", "code"), sweep(SIGNALS))
@pytest.mark.parametrize("own", [False, True])
def test_stopped_while_memory_is_short(
    number: signal.Signals, code: int, own: bool, rows: Path, tmp_path: Path
) -> None:
    chosen = {"POLARS_OOC_SPILL_DIR": str(tmp_path / "chosen")} if own else {}
    with counting("spilled", rows, tmp_path, **chosen) as process:
        wait_for(process)
        assert any((tmp_path / ("chosen" if own else "spilled")).rglob("*.ipc"))
        process.send_signal(number)
        assert process.communicate(timeout=SECONDS) == (b"", b"")
    assert process.returncode == code
    assert names(tmp_path) == ["out/x.parquet"]
    assert list((tmp_path / "spilled").iterdir()) == []
    if own:
        assert list((tmp_path / "chosen").iterdir()) == []


@pytest.mark.slow
def test_nothing_spilled_stays_after_the_end(rows: Path, tmp_path: Path) -> None:
    with counting("spilled once", rows, tmp_path) as process:
        output, errors = process.communicate(timeout=SECONDS)
    assert (process.returncode, errors) == (0, b"")
    counts = pl.read_parquet(tmp_path / "out" / "x.parquet")
    total = counts.select(pl.col("n_pos").sum() + pl.col("n_neg").sum()).item()
    assert f"{total} rows" in output.decode().splitlines()
    assert list((tmp_path / "spilled").iterdir()) == []


def test_killed_while_writing_leaves_the_target_as_it_was(rows: Path, tmp_path: Path) -> None:
    with counting("written", rows, tmp_path) as process:
        wait_for(process)
        process.kill()
        process.communicate()
    assert (tmp_path / "out" / "x.parquet").read_bytes() == b"of yesterday"


@pytest.mark.slow
@pytest.mark.parametrize("own", sweep([False, True]))
def test_what_a_killed_process_left_is_removed_by_the_next(
    own: bool, rows: Path, tmp_path: Path
) -> None:
    chosen = {"POLARS_OOC_SPILL_DIR": str(tmp_path / "chosen")} if own else {}
    for point, kept in (("spilled", "*.ipc"), ("written", ".polars-wroc-*.parquet")):
        with counting(point, rows, tmp_path, **chosen) as process:
            wait_for(process)
            process.kill()
            process.communicate()
        assert any(tmp_path.rglob(kept))
    with counting("never", rows, tmp_path, **chosen) as process:
        assert process.communicate()[1] == b""
    assert names(tmp_path) == ["out/x.parquet"]


@pytest.mark.slow
def test_what_a_living_process_holds_is_left_to_it(rows: Path, tmp_path: Path) -> None:
    with counting("spilled", rows, tmp_path) as spilling:
        wait_for(spilling)
        spilled = names(tmp_path / "spilled")
        with counting("written", rows, tmp_path) as writing:
            wait_for(writing)
            written = names(tmp_path / "out")
            with counting("never", rows, tmp_path) as process:
                assert process.communicate()[1] == b""
            assert {*spilled} <= {*names(tmp_path / "spilled")}
            assert names(tmp_path / "out") == written
            assert spilled
            assert len(written) == 3
            writing.terminate()
            writing.communicate()
        spilling.terminate()
        spilling.communicate()
    assert names(tmp_path) == ["out/x.parquet"]


@pytest.mark.parametrize(("number", "code"), sweep(SIGNALS))
@pytest.mark.parametrize("entry", ENTRIES)
def test_stopped_while_importing(
    entry: str, number: signal.Signals, code: int, tmp_path: Path
) -> None:
    # Instead of Polars, something that is never imported to its end.
    (tmp_path / "polars.py").write_text("import time; print('here', flush=True); time.sleep(3600)")
    script = tmp_path / "polars-wroc"
    script.write_text("import sys; from polars_wroc.cli import main; sys.exit(main())")
    call = COMMAND if entry == "module" else [sys.executable, str(script)]
    with subprocess.Popen(  # noqa: S603  (our own code)
        [*call, "auc", "rows.parquet"],
        env={**PLAIN, "PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        wait_for(process)
        process.send_signal(number)
        assert process.communicate(timeout=SECONDS) == (b"", b"")
    assert process.returncode == code


@pytest.mark.slow
def test_a_program_that_imports_the_package_keeps_its_signals(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    program = tmp_path / "other" / "__main__.py"
    program.write_text(
        "import signal, polars_wroc.cli\n"
        "assert signal.getsignal(signal.SIGINT) is signal.default_int_handler\n"
        "assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL"
    )
    for call in (["-m", "other"], ["-m", "other", "-m", "polars_wroc"], [str(program)]):
        subprocess.run([sys.executable, *call], env=PLAIN, cwd=tmp_path, check=True)  # noqa: S603


@pytest.mark.slow
def test_signals_ignored_from_outside_stay_ignored(rows: Path) -> None:
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "from polars_wroc.cli import commands as cli_commands\n"
        "plain = cli_commands.run_auc\n"
        "def interrupted(options):\n"
        "    signal.raise_signal(signal.SIGINT)\n"
        "    plain(options)\n"
        "cli_commands.run_auc = interrupted\n"
        "from polars_wroc.cli import main; sys.exit(main())"
    )
    call = [sys.executable, "-c", code, "auc", str(rows), "--label", "y", "--score", "s"]
    done = subprocess.run(call, env=PLAIN, capture_output=True, check=False)  # noqa: S603
    assert (done.returncode, done.stderr) == (0, b"")
