"""Bad input on the command line: one line that says what is wrong, and nothing left behind."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from processes import of_groups
from sweeps import sweep

from polars_wroc.cli import main

SCORED = ["--label", "y", "--score", "s"]
COLUMNS = [*SCORED, "--attribute", "g"]
HTML = ["-o", "report.html"]


@pytest.fixture
def rows() -> pl.DataFrame:
    """80 rows with a column for every mistake."""
    return pl.DataFrame(
        {
            "y": [0, 1] * 40,
            "s": [float(k % 17) for k in range(80)],
            "g": ["a", "b", "b", "a"] * 20,
            "two": [1, 2] * 40,
            "text": ["x", "y"] * 40,
            "nothing": pl.Series([None] * 80, dtype=pl.Float64),
            "negative": [-1.0, 1.0] * 40,
            "one_class": ["x", "y"] * 40,
        }
    )


@pytest.fixture
def folder(tmp_path: Path, rows: pl.DataFrame, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with the rows in it."""
    rows.write_parquet(tmp_path / "rows.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def assert_refused(
    call: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> str:
    """Check that a call says one line, which is returned, and leaves the folder as it was."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert main(call) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("polars-wroc: ")
    assert message in err
    assert err.count("\n") == 1
    after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert after == before
    return err


@pytest.mark.parametrize(
    "repeated",
    [
        ["--cluster", "g", "--cluster", "two"],
        ["--threshold", "1", "--threshold", "2"],
        ["--adjust", "none", "--adjust", "holm"],
        ["--columns", "n", "--columns", "value"],
        ["--fail-unjudged", "--fail-unjudged"],
    ],
    ids=lambda repeated: repeated[0],
)
def test_an_option_with_one_value_is_given_once(
    repeated: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    message = f"{repeated[0]} must be given once; see polars-wroc gaps --help"
    assert_refused(["gaps", "rows.parquet", *COLUMNS, *repeated], message, folder, capsys)
    repeatable = ["--attribute", "two", "--fail-if", "n<1", "--fail-if", "n>99"]
    assert main(["gaps", "rows.parquet", *COLUMNS, *repeatable]) == 0


def test_an_option_with_one_value_has_one_in_the_file(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "wroc.toml").write_text('columns = ["n", "value"]')
    message = "--columns must be given once; --columns comes from wroc.toml; see polars-wroc gaps"
    assert_refused(["gaps", "rows.parquet", *COLUMNS], message, folder, capsys)


@pytest.mark.parametrize("output", [[], ["-o", "-"], HTML, ["-o", "segments.csv"]])
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"--label": "no"}, "--label must name a column of rows.parquet; found no column 'no'"),
        ({"--score": "no"}, "--score must name a column of rows.parquet; found no column 'no'"),
        (
            {"--attribute": "no"},
            "--attribute must name a column of rows.parquet; found no column 'no'",
        ),
        ({"--weight": "no"}, "--weight must name a column of rows.parquet; found no column 'no'"),
        ({"--cluster": "no"}, "--cluster must name a column of rows.parquet; found no column 'no'"),
        ({"--strata": "no"}, "--strata must name a column of rows.parquet; found no column 'no'"),
        ({"--fpc": "text"}, "--fpc must be numeric; found column 'text' of type String"),
        ({"--lonely": "adjust"}, "--lonely must be 'null' without --strata; found 'adjust'"),
        ({"--score": "text"}, "column 'text' must be a number; rows.parquet has 'x'"),
        ({"--label": "two"}, "--label must be Boolean, hold 0 and 1 or -1 and 1, or come with"),
        (
            {"--label": "text"},
            "of type String: pass one of its values as --pos-label: ",
        ),
        (
            {"--attribute": "g,two"},
            "must name one column; found 'g,two': repeat it, as in --attribute g --attribute two\n",
        ),
        ({"--score": "s,two"}, "repeat it, as in --score s --score two\n"),
        ({"--weight": "negative"}, "--weight must be finite and zero or more"),
        ({"--score": "nothing"}, "FILE must have rows to audit; found none: 80 rows lack"),
        ({"--label": "nothing"}, "FILE must have rows to audit; found none: 80 rows lack"),
        ({"--threshold": "nan", "--favorable": "selected"}, "--threshold must be "),
        ({"--fail-if": "auc.gapp>0.1"}, "found 'gapp'; did you mean 'gap'?\n"),
        ({"--fail-if": "tpr.gap>0.1"}, "found 'tpr' (it needs decisions: those of a thr"),
        (
            {"--fail-if": "auc.gap"},
            "--fail-if must be a metric, a column, one of > >= < <= and a nu",
        ),
        ({"--fail-if": "auc.gap>high"}, "found 'auc.gap>high'"),
        (
            {"--fail-if": "any.verdict=different"},
            "found 'any': write a condition for each metric, for example tpr.verdict=different",
        ),
        ({"--fail-if": "recall.gap>0.1"}, "found 'recall'"),
        (
            {"--fail-if": "auc.verdict=worse"},
            "a verdict of the audit: different, equivalent, inconclusive, below four fifths, at ",
        ),
        (
            {"--fail-if": "verdict=different"},
            "for example tpr.gap>0.05 or tpr.verdict=different, or",
        ),
        ({"--fail-if": "gapp > 0.1 AND n > 5"}, "no column 'gapp'; did you mean 'gap'?\n"),
        ({"--fail-if": "abs(gap > 0.05"}, "found 'abs(gap > 0.05': close each bracket\n"),
        (
            {"--fail-if": "gap > 'x'"},
            "it compares a text with a number: write only texts in single quotes\n",
        ),
        ({"--fail-if": "metric = 'auc"}, ": close each single quote\n"),
        ({"--fail-if": ""}, "found '': write a condition, or leave out --fail-if\n"),
        ({"--fail-if": "SELECT gap"}, "write the condition alone, without SELECT, WHERE and ;\n"),
        ({"--fail-if": "gap >"}, "found 'gap >': complete it, and leave out what is not SQL\n"),
        ({"--fail-if": "gap + 1"}, "found 'gap + 1': it has no comparison by one of > >= < <= "),
        ({"--fail-if": "f(gap) > 1"}, ": there is no function 'f'; use one such as abs\n"),
        (
            {"--favorable": "selected"},
            "must come with decisions, from a --threshold or --selected; fo",
        ),
        ({"--weigh": "w"}, "did you mean '--weight'? See polars-wroc audit --help"),
    ],
)
def test_bad_columns_and_options(
    changed: dict[str, str],
    message: str,
    output: list[str],
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = dict(zip(COLUMNS[::2], COLUMNS[1::2], strict=True)) | changed
    flags = [word for option in options.items() for word in option]
    assert_refused(["audit", "rows.parquet", *flags, *output], message, folder, capsys)


def damaged(path: Path, start: float, stop: float) -> bytes:
    """Bytes of a file with a part of them set to ones."""
    content = path.read_bytes()
    places = int(start * len(content)), int(stop * len(content))
    return content[: places[0]] + b"\xff" * (places[1] - places[0]) + content[places[1] :]


FILES: dict[str, tuple[str, Callable[[Path], bytes], str]] = {
    "junk": ("x.parquet", lambda _: np.random.default_rng(0).bytes(500), "The file must end with"),
    "truncated": ("x.parquet", lambda path: path.read_bytes()[:900], "The file must end with"),
    "damaged page": ("x.parquet", lambda path: damaged(path, 0.01, 0.2), ""),
    "damaged footer": ("x.parquet", lambda path: damaged(path, 0.6, 0.8), ""),
    "empty": ("x.parquet", lambda _: b"", "cannot read x.parquet: "),
    "empty csv": ("x.csv", lambda _: b"", "x.csv is empty"),
    "header only": ("x.csv", lambda _: b"y,s,g\n", "x.csv has no rows"),
    "junk csv": ("x.csv", lambda _: bytes(range(256)) * 4, ""),
    "ragged csv": (
        "x.csv",
        lambda _: b"y,s,g\n1,2,a\n1,2,3,4,5\n",
        "line 3 of x.csv has more fields",
    ),
    "late text": ("x.csv", lambda _: b"y,s,g\n" + b"1,2,a\n" * 999 + b"0,high,b\n", "'s'"),
    "junk arrow": ("x.arrow", lambda _: b"junk" * 40, "cannot read x.arrow: "),
    "junk ndjson": ("x.ndjson", lambda _: b"{nope\n", "cannot read x.ndjson: "),
    "no ndjson": ("x.ndjson", lambda _: b"", ""),
}


@pytest.mark.parametrize("command", ["audit", "auc", "curve"])
@pytest.mark.parametrize("name", FILES)
def test_bad_files(
    name: str, command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, content, message = FILES[name]
    (folder / file).write_bytes(content(folder / "rows.parquet"))
    output = {"audit": "x.html", "auc": "x.json", "curve": "x.svg"}[command]
    assert_refused(
        [command, file, *SCORED, *of_groups(command, "g"), "-o", output], message, folder, capsys
    )


def save_half(rows: pl.DataFrame, path: Path) -> None:
    """Write the first half of a file."""
    rows.write_parquet(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def save_lines(*lines: str) -> Callable[[pl.DataFrame, Path], object]:
    """Write many good lines, then others."""
    good = ["y,s,g", *["1,2.5,a"] * 999]
    return lambda _, path: path.write_text("\n".join([*good, *lines]))


UNREADABLE = "cannot read bad."
ONE_BAD: dict[str, tuple[str, Callable[[pl.DataFrame, Path], object], str]] = {
    "truncated": ("bad.parquet", save_half, UNREADABLE),
    "empty": ("bad.parquet", lambda _, path: path.touch(), UNREADABLE),
    "column missing": (
        "bad.parquet",
        lambda rows, path: rows.with_columns(s=pl.lit("x")).write_parquet(path),
        " has other columns than ",
    ),
    "another type": (
        "bad.parquet",
        lambda rows, path: rows.cast({"s": pl.Int64}).write_parquet(path),
        " has other columns than ",
    ),
    "text": (
        "bad.parquet",
        lambda rows, path: rows.cast({"s": pl.String}).write_parquet(path),
        " has other columns than ",
    ),
    "late text": ("bad.csv", save_lines("0,high,b"), "bad.csv"),
    "ragged": ("bad.csv", save_lines("0,1.5,b,c,d"), "line 1001 of bad.csv has more fields"),
    "other header": (
        "bad.csv",
        lambda _, path: path.write_text("y,s\n1,2.5\n"),
        "bad.csv",
    ),
}


@pytest.mark.parametrize("command", ["auc", "audit", "counts"])
@pytest.mark.parametrize("place", sweep([0, 1, 2]))
@pytest.mark.parametrize("name", ONE_BAD)
def test_the_one_bad_file_of_several_is_named(
    name: str,
    place: int,
    command: str,
    rows: pl.DataFrame,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    bad, save, message = ONE_BAD[name]
    suffix = Path(bad).suffix
    good = [f"{letter}{suffix}" for letter in "ac"]
    for path in good:
        used = rows.select("y", "s", "g")
        used.write_csv(path) if suffix == ".csv" else rows.write_parquet(path)
    save(rows, folder / bad)
    call = [command, *good[:place], bad, *good[place:], *SCORED]
    call += [*of_groups(command, "g"), "-o", "x.csv"]
    assert bad in assert_refused(call, message, folder, capsys)


def test_columns_that_are_not_used_may_be_there_or_not(rows: pl.DataFrame, folder: Path) -> None:
    rows.with_columns(more=1).write_parquet(folder / "more.parquet")
    rows.select("y", "s", "g").write_parquet(folder / "less.parquet")
    files = ["more.parquet", "rows.parquet", "less.parquet"]
    for sources in (files, files[::-1]):
        assert main(["auc", *sources, *SCORED, "--by", "g", "-o", "x.csv"]) == 0
        assert pl.read_csv("x.csv")["n"].sum() == 240


def test_a_mistake_in_every_file_is_not_blamed_on_one(
    rows: pl.DataFrame, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows.write_parquet(folder / "more.parquet")
    for label, message in (
        ("no", "negative, one_class\n"),
        ("two", "as --pos-label: 1, 2\n"),
    ):
        call = ["auc", "rows.parquet", "more.parquet", "--label", label, "--score", "s"]
        assert_refused(call, message, folder, capsys)


@pytest.mark.parametrize("command", sweep(["auc", "audit", "curve", "counts", "gaps"], fast=2))
@pytest.mark.parametrize("suffix", sweep(["parquet", "csv", "json", "html"], fast=2))
def test_full_disk(
    command: str,
    suffix: str,
    rows: pl.DataFrame,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Python would cut its own compiled files short, too.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    if suffix == "html" and command in ("auc", "counts"):
        suffix = "csv"
    rows.write_parquet(folder / "more.parquet")
    call = [command, "rows.parquet", "more.parquet", *SCORED]
    call += [*of_groups(command, "g"), "-o", f"x.{suffix}"]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, hard))
    try:
        message = f"cannot write x.{suffix}: "
        assert_refused(call, message, folder, capsys)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_folder_that_cannot_be_written(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "kept").mkdir()
    # The superuser may write anywhere.
    monkeypatch.setattr(os, "access", lambda path, _: Path(path).name != "kept")
    message = "cannot write kept/x.html: folder kept is not writable"
    call = ["audit", "rows.parquet", *COLUMNS, "-o", "kept/x.html"]
    assert_refused(call, message, folder, capsys)


def test_table_without_rows(
    rows: pl.DataFrame, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows.clear().write_parquet(folder / "x.parquet")
    message = "x.parquet has no rows\n"
    for command in ("audit", "gaps"):
        assert_refused([command, "x.parquet", *COLUMNS, *HTML], message, folder, capsys)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("none/rows.parquet", "no such file: none/rows.parquet"),
        ("none/*.parquet", "no file matches none/*.parquet"),
        ("empty", "folder empty has no file whose name ends in "),
        ("rows", "no such file: rows"),
    ],
)
def test_sources_that_are_not_there(
    source: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "empty").mkdir()
    assert_refused(["audit", source, *COLUMNS, *HTML], message, folder, capsys)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("none/report.html", "cannot write none/report.html: there is no folder none"),
        (
            "empty",
            "must end in one of .html, .md, .xlsx, .parquet, .csv, .json, .ndjson, .jsonl, .prom;",
        ),
        ("report.xls", "--output must end in one of .html, .md, .xlsx, .parquet, .csv, .json"),
        ("rows.parquet", "--output must not be a file that is read; found 'rows.parquet'"),
        ("folder.html", "cannot write folder.html: it is a folder"),
    ],
)
def test_targets_that_cannot_be_written(
    target: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "empty").mkdir()
    (folder / "folder.html").mkdir()
    assert_refused(["audit", "rows.parquet", *COLUMNS, "-o", target], message, folder, capsys)


def test_segments_of_one_class_are_no_mistake(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["audit", "rows.parquet", "--label", "y", "--score", "s", "--attribute", "one_class"]
    assert main([*call, "--threshold", "8", "--favorable", "selected", "-o", "x.csv"]) == 0
    assert capsys.readouterr().err == ""
    aucs = pl.read_csv(folder / "x.csv").filter(attribute="one_class", metric="auc")
    assert aucs["value"].to_list() == [None, None]
    assert sorted(path.name for path in folder.iterdir()) == ["rows.parquet", "x.csv"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            "auc rows.parquet --label y --score s --by tow",
            "among y, s, g, two, text, nothing, negative, one_class; did you mean 'two'?",
        ),
        ("audit rows.parquet --min-rows 0.5", "--min-rows must be a whole number; found 0.5\n"),
        ("counts rows.parquet --bins 64.5", "--bins must be a whole number; found 64.5\n"),
        ("acu rows.parquet", "no command 'acu'; did you mean 'auc'? See polars-wroc --help"),
        (
            "audit rows.parquet --favourable selected",
            "--favourable; did you mean '--favorable'? See polars-wroc audit --help",
        ),
        ("gaps rows.parquet --by two --x", "--by; did you mean '--attribute'? See "),
        ("auc rows.parquet --attribute=two", "--attribute; did you mean '--by'? See "),
        (
            "new-york rows.parquet --sex two --race two --source x --distribution-date 2026-01-01",
            "no option --sex; see polars-wroc new-york",
        ),
        ("auc rows.parquet --group two", "--group; did you mean '--by'? See "),
        ("gaps rows.parquet --segments two", "--segments; did you mean '--attribute'? See "),
        (
            "auc rows.parquet --target y --prob s",
            "--target; did you mean '--label'? See ",
        ),
        ("auc rows.parquet --label y --sample-weight w", "; did you mean '--weight'? See "),
        (
            "auc rows.csv --label y --score s --sep x",
            "--sep; did you mean '--separator'? See ",
        ),
        (
            "impact rows.parquet --label y --attribute two --favorable selected",
            "impact is about how often people are selected, and takes no --label",
        ),
        ("gaps rows.parquet --threshhold 1", "; did you mean '--threshold'? See "),
        ("curve rows.parquet -o x.csv --kind rok", 'Did you mean "roc"? See polars-wroc curve'),
        ("auc rows.parquet --label y --score s --columns aucc", "; did you mean 'auc'?"),
        (
            "diff a.json b.json --fail-if auc.drop<0",
            "found 'drop'; there are value, value_low, value_high, gap, gap_low, gap_high, n, ",
        ),
    ],
)
def test_the_closest_name_is_suggested(
    call: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_refused(call.split(), message, folder, capsys)


OVER_MONTHS = "--over day --every 1mo"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            ["trend", *SCORED, "--by", "day:1mo"],
            f"must be given; give the length of periods as {OVER_MONTHS};",
        ),
        (["trend", *SCORED, "--over", "day:1mo"], f"give the length of periods as {OVER_MONTHS}\n"),
        (["auc", "--label", "text", "--pos-label", "X", "--score", "s"], "; did you mean 'x'?\n"),
        (
            ["impact", "--selected", "text=X", "--favorable", "selected", "--attribute", "g"],
            "no row has 'X'; did you mean 'x'?\n",
        ),
    ],
)
def test_what_is_meant_is_named(
    call: list[str],
    message: str,
    folder: Path,
    rows: pl.DataFrame,
    capsys: pytest.CaptureFixture[str],
) -> None:
    day = pl.date_range(pl.date(2025, 1, 1), pl.date(2025, 3, 21), "1d")
    rows.with_columns(day=day).write_parquet("rows.parquet")
    command, *options = call
    assert_refused([command, "rows.parquet", *options], message, folder, capsys)


def test_audits_of_the_same_rows_are_referred_to_the_command_release(
    folder: Path, rows: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    pl.concat([rows] * 20).write_parquet("rows.parquet")
    second = pl.concat([rows] * 20).with_columns(s=-pl.col("s"))
    second.write_parquet("second.parquet")
    for name in ("rows", "second"):
        assert main(["audit", f"{name}.parquet", *COLUMNS, "-o", f"{name}.json"]) == 0
    capsys.readouterr()
    message = "test a new score on the same rows by polars-wroc release, or set --different-rows"
    assert_refused(["diff", "rows.json", "second.json"], message, folder, capsys)


@pytest.mark.parametrize("call", [["--help"], ["diff", "--help"], ["auc", "--help"]])
def test_help_names_the_exit_codes(call: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(call) == 0
    line = "Exit codes: 0 done, 1 condition met, 2 error, 3 not judged, 130 stopped."
    assert line in [each.strip() for each in capsys.readouterr().out.splitlines()]
