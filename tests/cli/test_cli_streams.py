"""Standard output and error that are closed, full, gone or not in Unicode; exit codes all the same.

All in processes of their own, in an environment that hides nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from processes import COMMAND, PLAIN
from sweeps import sweep

from polars_wroc.cli import main
from polars_wroc.cli.commands import audit
from polars_wroc.cli.source import Source

_SCORED = ["--label", "y", "--score", "s"]
COLUMNS = [*_SCORED, "--by", "g"]
AUC = ["auc", "rows.parquet", *COLUMNS]
AUDIT = ["audit", "rows.parquet", *_SCORED, "--attribute", "g"]
FAILING = [*AUDIT, "--fail-if", "auc.value>0.1"]
NAMES = ["é", "ł=", "😀", "a"]
UNBUFFERED = {**PLAIN, "PYTHONUNBUFFERED": "1"}
PRINTING = [AUC, [*AUC, "-o", "-"], [*AUC, "-o", "x.csv"], AUDIT, ["auc", "--help"], ["--version"]]
CALLS = [*((call, PLAIN) for call in PRINTING), (AUC, UNBUFFERED)]
FULL = "polars-wroc: cannot write to standard output: no space left on device\n"
CLOSED = "polars-wroc: cannot write to standard output: it is closed\n"
FAILED = "polars-wroc: FAILED auc > 0.1 in "


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with rows of groups with all sorts of names."""
    rows = {"y": [0, 1, 1, 0] * 80, "s": [k % 17 for k in range(320)], "g": NAMES * 80}
    frame = pl.DataFrame(rows).with_columns(pl.col("y").shuffle(seed=1))
    frame.write_parquet(tmp_path / "rows.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def in_shell(call: list[str], redirected: str, environment: dict[str, str]) -> tuple[int, str]:
    """Run a command with its streams redirected; the code and standard error."""
    line = f'"$@" {redirected}'
    done = subprocess.run(  # noqa: S603  (our own code)
        ["bash", "-c", line, "bash", *COMMAND, *call],  # noqa: S607
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr


def without_reader(call: list[str], environment: dict[str, str]) -> tuple[int, str]:
    """Run a command whose standard output nobody reads; the code and standard error."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        done = subprocess.run(  # noqa: S603  (our own code)
            [*COMMAND, *call],
            env=environment,
            stdout=pipe,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    return done.returncode, done.stderr


@pytest.mark.parametrize(("call", "environment"), sweep(CALLS))
@pytest.mark.parametrize(("redirected", "said"), [(">/dev/full", FULL), (">&-", CLOSED)])
@pytest.mark.usefixtures("folder")
def test_standard_output_that_cannot_be_written(
    redirected: str, said: str, call: list[str], environment: dict[str, str]
) -> None:
    code, errors = in_shell(call, redirected, environment)
    assert code == 2
    # What comes before is which file is written.
    assert errors.endswith(said.removeprefix("polars-wroc: "))
    assert errors.count("\n") == 1


@pytest.mark.parametrize(("redirected", "said"), [(">/dev/full", FULL), (">&-", CLOSED)])
def test_what_is_written_is_said_where_nothing_can_be_printed(
    redirected: str, said: str, folder: Path
) -> None:
    code, errors = in_shell([*AUDIT, "-o", "x.md", "-o", "x.json"], redirected, PLAIN)
    assert code == 2
    why = said.removeprefix("polars-wroc: ")
    assert errors == f"polars-wroc: x.md and x.json are written, but {why}"
    assert (folder / "x.md").read_text(encoding="utf-8").startswith("# ")
    json.loads((folder / "x.json").read_text(encoding="utf-8"))


@pytest.mark.slow(reason="starts processes")
@pytest.mark.parametrize(("call", "environment"), sweep(CALLS, fast=2))
@pytest.mark.usefixtures("folder")
def test_standard_output_that_nobody_reads(call: list[str], environment: dict[str, str]) -> None:
    assert without_reader(call, environment) == (0, "")


@pytest.mark.slow(reason="starts processes")
@pytest.mark.parametrize("redirected", sweep(["2>&-", "2>/dev/full", ">&- 2>&- <&-"]))
@pytest.mark.usefixtures("folder")
def test_standard_error_that_cannot_be_written(redirected: str) -> None:
    for call, expected in (([*AUC, "-o", "x.csv"], 0), (["auc", "none.csv"], 2), (FAILING, 1)):
        code, errors = in_shell(call, redirected, PLAIN)
        # Of the output that is lost the code tells, unless it tells of a gate.
        assert code == (2 if expected == 0 and ">&- " in redirected[:4] else expected)
        assert errors == ""


@pytest.mark.slow(reason="starts processes")
@pytest.mark.parametrize("output", sweep([[], ["-o", "x.csv"]]))
def test_no_output_hides_a_gate(output: list[str], folder: Path) -> None:
    for redirected, said in ((">/dev/full", FULL), (">&-", CLOSED)):
        code, errors = in_shell([*FAILING, *output], redirected, PLAIN)
        assert code == 1
        assert said.removeprefix("polars-wroc: ") in errors
        assert errors.splitlines()[1].startswith(FAILED)
    code, errors = without_reader([*FAILING, *output], PLAIN)
    assert code == 1
    assert errors.startswith(FAILED)
    assert errors.count("\n") == 1
    assert (folder / "x.csv").exists() == bool(output)


@pytest.mark.slow(reason="starts processes")
@pytest.mark.usefixtures("folder")
def test_gate_that_cannot_be_judged_is_no_success_without_a_reader() -> None:
    gate = ["--fail-if", "auc.gap>0.1", "--min-rows", "100000"]
    code, errors = without_reader([*AUDIT, *gate], PLAIN)
    assert code == 3
    assert "NOT JUDGED auc.gap > 0.1: fewer than 100000 " in errors


@pytest.mark.slow(reason="starts processes")
def test_file_that_cannot_be_written_hides_no_gate(folder: Path) -> None:
    (folder / "x.html").write_text("of yesterday")
    # In blocks of 1024 bytes: room for what is read, and not for a page.
    line = [*COMMAND, *FAILING, "-o", "x.html"]
    done = subprocess.run(  # noqa: S603  (our own code)
        ["bash", "-c", 'ulimit -f 8; "$@"', "bash", *line],  # noqa: S607
        # Python would cut its own compiled files short, too.
        env={**PLAIN, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    written, failed = done.stderr.splitlines()
    assert written.startswith("polars-wroc: cannot write x.html: File too large")
    assert failed.startswith(FAILED)
    assert (folder / "x.html").read_text() == "of yesterday"
    assert sorted(path.name for path in folder.iterdir()) == ["rows.parquet", "x.html"]


@pytest.mark.slow(reason="starts processes")
@pytest.mark.parametrize(
    ("encoding", "shown"),
    sweep(
        [
            ("ascii", ["\\xe9", "\\u0142=", "\\U0001f600", "a"]),
            ("latin-1", ["é", "\\u0142=", "\\U0001f600", "a"]),
            ("utf-8", NAMES),
        ]
    ),
)
@pytest.mark.usefixtures("folder")
def test_names_that_the_output_cannot_encode(encoding: str, shown: list[str]) -> None:
    environment = {**PLAIN, "PYTHONIOENCODING": encoding}

    def run(call: list[str], code: int) -> bytes:
        done = subprocess.run(  # noqa: S603  (our own code)
            [*COMMAND, *call], env=environment, capture_output=True, check=False
        )
        assert done.returncode == code
        assert done.stderr.startswith(FAILED.encode() if code else b"")
        assert done.stderr.count(b"\n") == code
        return done.stdout

    table = run(AUC, 0).decode(encoding)
    *printed, _ = table.split("\n\n")[-1].splitlines()
    headings, lines = printed[: -len(NAMES)], printed[-len(NAMES) :]
    assert headings[-1].split()[0] == "g"
    assert {line.split()[0] for line in lines} == {*shown}
    groups = json.loads(run([*AUC, "-o", "-"], 0))
    assert {group["g"] for group in groups} == {*NAMES}
    run([*FAILING, "-o", "ł.csv"], 1)
    assert Path("ł.csv").exists()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RuntimeError("broken\nlines"), "unexpected RuntimeError: broken"),
        (RecursionError("too deep"), "unexpected RecursionError: too deep"),
        (AttributeError(), "unexpected AttributeError: AttributeError"),
        (MemoryError(), "out of memory; try --memory 4GB, or --approximate 4096"),
        (pl.exceptions.PanicException("index"), "unexpected PanicException: index"),
        (UnicodeEncodeError("ascii", "é", 0, 1, "no"), "'ascii' codec can't encode character"),
    ],
)
@pytest.mark.parametrize("command", ["auc", "audit"])
@pytest.mark.usefixtures("folder")
def test_what_nobody_expects_is_one_line(
    command: str,
    error: BaseException,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(Source, "plan", fail)
    assert main(AUC if command == "auc" else AUDIT) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"polars-wroc: {said}")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "error", sweep([RuntimeError("no"), MemoryError(), pl.exceptions.PanicException("index")])
)
@pytest.mark.usefixtures("folder")
def test_what_nobody_expects_hides_no_gate(
    error: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(audit, "_show_audit", fail)
    assert main(AUDIT) == 2
    capsys.readouterr()
    assert main(FAILING) == 1
    assert capsys.readouterr().err.splitlines()[1].startswith(FAILED)


LONG = "a" * 5000


@pytest.mark.parametrize(
    "call",
    [
        ["auc", f"{LONG}.parquet", *COLUMNS],
        ["auc", f"{LONG}/*.parquet", *COLUMNS],
        ["counts", f"{LONG}.parquet", "-o", "x.csv"],
        [*AUC, "-o", f"{LONG}.csv"],
        [*AUC, "-o", f"{LONG}/x.csv"],
        [*AUC, "-o", f"{'a/' * 2500}x.csv"],
        [*AUC, "-o", f"{'a' * 252}.csv"],
    ],
)
def test_names_that_are_too_long(
    call: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(call) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("polars-wroc: ")
    assert err.count("\n") == 1
    assert [path.name for path in folder.iterdir()] == ["rows.parquet"]
    if call[:-1] == [*AUC, "-o"]:
        assert err.rstrip().endswith(": File name too long")


@pytest.mark.parametrize("suffix", sweep(["parquet", "csv", "json", "html"], fast=2))
def test_names_as_long_as_can_be(suffix: str, folder: Path) -> None:
    output = f"{'a' * (254 - len(suffix))}.{suffix}"
    assert main([*AUDIT, "-o", output]) == 0
    assert sorted(path.name for path in folder.iterdir()) == [output, "rows.parquet"]


def make_link(path: Path) -> None:
    path.symlink_to(path)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (os.mkfifo, "cannot write x.csv: it is a device or a pipe"),
        (make_link, "cannot write x.csv: "),
        (
            lambda path: path.symlink_to("none/x.csv"),
            "cannot write x.csv: there is no folder ",
        ),
    ],
)
def test_outputs_that_are_no_files_are_refused_before_any_work(
    make: Callable[[Path], None],
    message: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    make(folder / "x.csv")
    monkeypatch.setattr(Source, "plan", sys.exit)
    assert main([*AUC, "-o", "x.csv"]) == 2
    assert capsys.readouterr().err.startswith(f"polars-wroc: {message}")
    assert not (folder / "x.csv").is_file()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("output", "rule"),
    [
        ("\ud800.csv", "must be text in UTF-8"),
        ("\udcff/x.csv", "must be text in UTF-8"),
    ],
)
def test_outputs_that_cannot_be_named(
    output: str, rule: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*AUC, "-o", output]) == 2
    assert capsys.readouterr().err == f"polars-wroc: --output {rule}; found {output!r}\n"


@pytest.mark.parametrize("output", ["-", "x.json"])
def test_json_tells_what_is_no_number(
    output: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = pl.Series([None, float("nan"), float("inf"), 1.0] * 4)
    pl.DataFrame({"y": [0] * 8 + [1] * 8, "s": range(16), "g": keys}).write_parquet("rows.parquet")
    assert main([*AUC, "-o", output]) == 0
    text = capsys.readouterr().out if output == "-" else (folder / output).read_text()
    assert [row["g"] for row in json.loads(text)] == [None, 1.0, "inf", "nan"]


@pytest.mark.usefixtures("folder")
def test_standard_input_that_is_closed() -> None:
    code, errors = in_shell(["auc", "-", *COLUMNS], "<&-", PLAIN)
    assert code == 2
    assert errors == "polars-wroc: cannot read the standard input: it is closed\n"
