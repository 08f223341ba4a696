"""What is left over of dead processes goes, and nothing else does."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from processes import PLAIN
from sweeps import sweep

import polars_wroc as wroc
from polars_wroc.files import outputs as files
from polars_wroc.files.outputs import new_name, remove_abandoned, save_chart, temporary

OTHER_BOOT = f".polars-wroc-{'0' * 12}-{'1' * 32}.parquet"
NOT_OURS = [
    ".x.parquet",
    "polars-wroc.parquet",
    f"x{OTHER_BOOT}",
    f"{OTHER_BOOT}.parquet",
    ".polars-wroc-backup.parquet",
]


@pytest.mark.parametrize("folder", [False, True])
def test_what_nobody_holds_is_removed(folder: bool, tmp_path: Path) -> None:
    with temporary(tmp_path, folder=folder) as path:
        if folder:
            (path / "data").write_bytes(b"much")
        remove_abandoned(tmp_path)
        assert path.exists()
    assert path.exists()
    remove_abandoned(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", sweep([".parquet", ".csv", ".json", ".svg"], fast=2))
def test_whatever_is_written_is_held_until_its_end(suffix: str, tmp_path: Path) -> None:
    rows = pl.DataFrame({"y": [0, 1] * 40, "s": [k % 7 for k in range(80)], "g": ["a", "b"] * 40})
    target = tmp_path / f"x{suffix}"
    seen: list[Path] = []
    replace = Path.replace

    def look(part: Path, to: Path) -> Path:
        # As another process would, that opens the file anew.
        remove_abandoned(tmp_path)
        seen.append(part)
        return replace(part, to)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", look)
        if suffix == ".svg":
            save_chart(wroc.roc_chart(wroc.roc_curve(rows, "y", "s")), target)
        else:
            wroc.audit(rows, "y", "s", attributes="g").save(target)
    assert len(seen) == 1
    assert [*tmp_path.iterdir()] == [target]
    assert target.stat().st_size > 0


def test_plan_that_is_sunk_is_held(tmp_path: Path) -> None:
    def look(batch: pl.DataFrame) -> pl.DataFrame:
        assert len([*tmp_path.iterdir()]) == 1
        remove_abandoned(tmp_path)
        return batch

    plan = pl.LazyFrame({"a": [1, 2]}).map_batches(look, streamable=True)
    for name in ("x.parquet", "x.csv"):
        files.sink_table(plan, tmp_path / name)
        assert [*tmp_path.iterdir()] == [tmp_path / name]
        (tmp_path / name).unlink()


def test_the_library_removes_what_was_left(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; import polars as pl\n"
        "from polars_wroc.files import outputs as files\n"
        "Path.replace = lambda *_: os.kill(os.getpid(), 9)\n"
        "files.save_table(pl.DataFrame({'a': [1]}), sys.argv[1])"
    )
    target = tmp_path / "x.csv"
    call = [sys.executable, "-c", code, str(target)]
    assert subprocess.run(call, env=PLAIN, check=False).returncode == -9  # noqa: S603
    assert len([*tmp_path.iterdir()]) == 1
    files.save_table(pl.DataFrame({"a": [2]}), target)
    assert [*tmp_path.iterdir()] == [target]


@pytest.mark.parametrize("name", NOT_OURS)
def test_other_names_are_left_alone(name: str, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    remove_abandoned(tmp_path)
    assert (tmp_path / name).exists()


def test_links_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    (tmp_path / new_name("")).symlink_to(tmp_path / "data")
    remove_abandoned(tmp_path)
    assert len([*tmp_path.iterdir()]) == 2


def test_what_belongs_to_others_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / new_name("")).touch()
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    remove_abandoned(tmp_path)
    assert len([*tmp_path.iterdir()]) == 1


def test_what_another_computer_may_hold_has_to_be_old(tmp_path: Path) -> None:
    part = tmp_path / OTHER_BOOT
    part.touch()
    remove_abandoned(tmp_path)
    assert part.exists()
    month_ago = time.time() - 31 * 24 * 3600
    os.utime(part, (month_ago, month_ago))
    remove_abandoned(tmp_path)
    assert not part.exists()


def test_without_locks_files_are_written_and_nothing_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", refuse)
    left = tmp_path / new_name("")
    left.touch()
    files.save_table(pl.DataFrame({"a": [1]}), tmp_path / "x.csv")
    assert {*tmp_path.iterdir()} == {left, tmp_path / "x.csv"}


def test_a_file_taken_for_abandoned_before_it_is_held_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    plain = os.open

    def open_late(path: str, flags: int, mode: int = 0o777) -> int:
        if not flags & os.O_CREAT:
            opened.append(path)
            if len(opened) == 1:
                Path(path).unlink()
        return plain(path, flags, mode)

    monkeypatch.setattr(os, "open", open_late)
    with temporary(tmp_path) as path:
        assert len(opened) == 2
        assert [*tmp_path.iterdir()] == [path]


def test_a_folder_that_cannot_be_listed_hinders_nobody(tmp_path: Path) -> None:
    remove_abandoned(tmp_path / "none")
