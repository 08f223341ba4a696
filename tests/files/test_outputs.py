"""Files are written completely or not at all, and what hinders it is one sentence."""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest

import polars_wroc as wroc
from polars_wroc.files import outputs

TABLE = pl.DataFrame({"g": ["a", "b"], "x": [1.5, None]})
SAVERS: dict[str, Callable[[Path], object]] = {
    "x.csv": lambda path: outputs.save_table(TABLE, path),
    "x.parquet": lambda path: outputs.save_table(TABLE, path),
    "x.json": lambda path: outputs.save_table(TABLE, path),
    "x.txt": lambda path: outputs.save_text("a line\n" * 20, path),
    "sunk.csv": lambda path: outputs.sink_table(TABLE.lazy(), path),
    "sunk.parquet": lambda path: outputs.sink_table(TABLE.lazy(), path),
}


@pytest.fixture
def full_disk() -> Iterator[None]:
    """Let no file have more than a few bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("name", SAVERS)
def test_a_file_replaces_the_old_one_and_nothing_else_is_left(name: str, tmp_path: Path) -> None:
    target = tmp_path / name
    target.write_text("of yesterday")
    SAVERS[name](target)
    assert [*tmp_path.iterdir()] == [target]
    assert target.read_bytes() != b"of yesterday"


@pytest.mark.parametrize("name", SAVERS)
@pytest.mark.usefixtures("full_disk")
def test_a_full_disk_leaves_the_old_file(name: str, tmp_path: Path) -> None:
    target = tmp_path / name
    target.touch()
    with pytest.raises(OSError, match=rf"^cannot write {re.escape(str(target))}: File too large"):
        SAVERS[name](target)
    assert [*tmp_path.iterdir()] == [target]
    assert target.read_bytes() == b""


def test_a_writer_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "x.txt"
    target.write_text("of yesterday")

    def save(part: Path) -> None:
        part.write_text("half of")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        outputs.write(target, save)
    assert [*tmp_path.iterdir()] == [target]
    assert target.read_text() == "of yesterday"


def test_two_writers_of_one_file_do_not_mix(tmp_path: Path) -> None:
    target = tmp_path / "x.txt"

    def save_twice(part: Path) -> None:
        part.write_text("first")
        outputs.save_text("second", target)
        assert part.read_text() == "first"

    outputs.write(target, save_twice)
    assert target.read_text() == "first"


def test_a_link_stays_a_link_to_the_written_file(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    link = tmp_path / "x.csv"
    link.symlink_to("kept/y.csv")
    outputs.save_table(TABLE, link)
    assert link.is_symlink()
    assert pl.read_csv(tmp_path / "kept" / "y.csv").equals(TABLE)


def test_a_new_file_has_the_rights_of_any_new_file(tmp_path: Path) -> None:
    outputs.save_table(TABLE, tmp_path / "x.csv")
    (tmp_path / "plain").touch()
    assert (tmp_path / "x.csv").stat().st_mode == (tmp_path / "plain").stat().st_mode


def make_loop(path: Path) -> None:
    path.symlink_to(path)


OBSTACLES: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "no folder": ("none/x.csv", lambda _: None, "there is no folder .*none"),
    "a folder": ("x.csv", Path.mkdir, "it is a folder"),
    "a pipe": ("x.csv", os.mkfifo, "it is a device or a pipe"),
    "a loop of links": ("x.csv", make_loop, "[Ss]ymlink loop|Too many levels of symbolic links"),
    "too long": (f"{'a' * 300}.csv", lambda _: None, "File name too long"),
    "null character": ("a\0.csv", lambda _: None, "embedded null"),
}


@pytest.mark.parametrize("name", OBSTACLES)
def test_a_target_that_cannot_be_written_is_refused_in_one_sentence(
    name: str, tmp_path: Path
) -> None:
    target, make, message = OBSTACLES[name]
    make(tmp_path / target)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ValueError, match=rf"(?s)^cannot write .*: .*({message})") as raised:
        outputs.save_table(TABLE, tmp_path / target)
    assert "\n" not in str(raised.value)
    assert sorted(tmp_path.iterdir()) == before


def test_an_audit_is_saved_under_the_longest_name_that_the_system_takes(tmp_path: Path) -> None:
    target = tmp_path / f"{'a' * 250}.json"
    rows = wroc.data.loans().head(200)
    wroc.audit(rows, "approved", "score", attributes="sex").save(target)
    assert [*tmp_path.iterdir()] == [target]
