"""What fits a terminal, and help: usage, what must be given, and an example of each command."""

from __future__ import annotations

import io
import os
import shlex
import sys
from pathlib import Path

import polars as pl
import pytest

from polars_wroc.cli.main import build_parser, main
from polars_wroc.cli.options import COMMANDS

COLUMNS = ["--label", "y", "--score", "s"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with rows of a hundred groups in it."""
    rows = {"y": [0, 1, 1, 0] * 100, "s": [*range(400)], "g": [k // 4 for k in range(400)]}
    pl.DataFrame(rows).write_parquet(tmp_path / "rows.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Terminal(io.StringIO):
    """Standard output that is a terminal."""

    def isatty(self) -> bool:
        return True


def printed(monkeypatch: pytest.MonkeyPatch, lines: int, *call: str) -> list[str]:
    """Return the lines that a command prints on a terminal."""
    terminal = Terminal()
    size = os.terminal_size((80, lines))
    monkeypatch.setattr("shutil.get_terminal_size", lambda *_: size)
    monkeypatch.setattr(sys, "stdout", terminal)
    assert main([*call, "--no-progress"]) == 0
    return terminal.getvalue().splitlines()


AUC = ("auc", "rows.parquet", *COLUMNS, "--by", "g")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("lines", [5, 24, 60, 200])
def test_rows_beyond_a_screen_are_counted(lines: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = printed(monkeypatch, lines, *AUC)
    rows = min(max(lines - 8, 10), 100)
    assert len(found) == rows + 2
    said = "all 11 columns: --columns all"
    assert found[-1] == (f"{100 - rows} more rows: --rows all; {said}" if rows < 100 else said)
    assert len(printed(monkeypatch, lines, *AUC, "--rows", "all")) == 102
    assert len(printed(monkeypatch, lines, *AUC, "--rows", "3")) == 5


@pytest.mark.usefixtures("folder")
def test_elsewhere_all_rows_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*AUC]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 102


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
def test_an_audit_has_twenty_segments_or_those_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    call = ["audit", "rows.parquet", *COLUMNS, "--attribute", "g", "--min-rows", "0"]
    for more, rows in (([], 20), (["--rows", "5"], 5), (["--rows", "all"], 101)):
        assert main([*call, *more]) == 0
        out = capsys.readouterr().out
        table = out.split("\n\n")[1].splitlines()
        assert len(table) == rows + 2
        assert table[-1].startswith("81 more rows: --rows all" if rows == 20 else "") or rows == 5
        assert "more comparisons: write them all with -o FILE.json." in out
    assert main([*call, "--columns", "n_pos,small", "--rows", "2"]) == 0
    table = capsys.readouterr().out.split("\n\n")[1].splitlines()
    assert table[0].split() == ["attribute", "segment", "n_pos", "small"]
    assert table[1].split() == ["overall", "overall", "200", "no"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example_that_can_be_copied(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--help"]) == 0
    text = capsys.readouterr().out
    head, example = text.split("\nexample: ")
    assert head.startswith(f"usage: polars-wroc {command} ")
    what, line = example.split("\n", 1)
    assert what
    program, *arguments = shlex.split(line.replace("\\\n", " "))
    assert program == "polars-wroc"
    # Its options are those that there are.
    parser = build_parser()
    assert parser.parse_args(arguments).command == command


def test_what_must_be_given_is_marked() -> None:
    parser = build_parser()
    (commands,) = (each for each in parser._actions if isinstance(each.choices, dict))
    assert isinstance(commands.choices, dict)
    for command, required in {
        "audit": ["groups"],
        "impact": ["groups"],
        "auc": ["label", "score"],
        "gaps": ["label", "score", "groups"],
        "counts": ["score", "output"],
        "diff": [],
    }.items():
        options = commands.choices[command]._actions
        marked = [each.dest for each in options if str(each.help).endswith(" (required)")]
        assert marked == required
