"""What the command line reads: the files that are named, each once, and the positive label."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from sweeps import sweep

import polars_wroc as wroc
from polars_wroc.cli import main, source
from polars_wroc.files.scan import scan_files
from polars_wroc.files.sources import each_file

COLUMNS = ["--label", "y", "--score", "s"]
WRITERS: dict[str, Callable[[pl.DataFrame, Path], object]] = {
    "parquet": pl.DataFrame.write_parquet,
    "arrow": pl.DataFrame.write_ipc,
    "csv": pl.DataFrame.write_csv,
    "ndjson": pl.DataFrame.write_ndjson,
}


def rows(number: int) -> pl.DataFrame:
    """As many rows as wanted, half of them positive."""
    return pl.select(
        y=pl.int_range(number) % 2,
        s=(pl.int_range(number) * 7 % 11).cast(pl.Float64),
        g=pl.lit("a"),
    )


def save(name: str, number: int) -> None:
    """Write rows under a name that the engine may take for a pattern."""
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    WRITERS[path.suffix[1:]](rows(number), Path("written"))
    Path("written").rename(path)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def numbers(capsys: pytest.CaptureFixture[str], *call: str) -> list[dict[str, Any]]:
    """Run a command and read what it prints."""
    assert main([*call, "-o", "-"]) == 0
    printed: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return printed


def assert_refused(capsys: pytest.CaptureFixture[str], call: list[str], *said: str) -> str:
    """Check that a command says one line, which is returned."""
    assert main(call) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert all(text in err for text in said), err
    return err


# Of each name that exists, another one that it would stand for as a pattern.
LIKE_PATTERNS = {"q[1]": "q1", "z*k": "zXk", "b?d": "bad", "[!a]": "b", "e[[]1]": "e[1]"}


@pytest.mark.parametrize("suffix", sweep(WRITERS, fast=2))
@pytest.mark.parametrize("name", LIKE_PATTERNS)
def test_a_name_that_exists_is_that_file(
    name: str, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    save(f"{name}.{suffix}", 40)
    save(f"{LIKE_PATTERNS[name]}.{suffix}", 10)
    assert numbers(capsys, "auc", f"{name}.{suffix}", *COLUMNS)[0]["n"] == 40
    both = [f"{name}.{suffix}", f"{LIKE_PATTERNS[name]}.{suffix}"]
    assert numbers(capsys, "auc", *both, *COLUMNS)[0]["n"] == 50
    assert numbers(capsys, "counts", f"{name}.{suffix}", *COLUMNS)[0].keys() >= {"n_pos"}


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_pattern_finds_files_whose_names_are_patterns(
    suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    save(f"day*.{suffix}", 40)
    save(f"day1.{suffix}", 10)
    Path(f"days.{suffix}").mkdir()
    assert numbers(capsys, "auc", f"day?.{suffix}", *COLUMNS)[0]["n"] == 50


def test_a_folder_whose_name_is_a_pattern(capsys: pytest.CaptureFixture[str]) -> None:
    for name, number in (("d[1]/a*.parquet", 40), ("d[1]/ab.pq", 0), ("d1/a.parquet", 10)):
        save(name.replace(".pq", ".parquet"), number or 20)
    Path("d[1]/ab.parquet").rename("d[1]/ab.pq")
    Path("d[1]/.hidden.parquet").touch()
    Path("d[1]/_SUCCESS").touch()
    assert numbers(capsys, "auc", "d[1]", *COLUMNS)[0]["n"] == 60


@pytest.mark.parametrize("name", ["h", "h[1]", "month=1/h", "./h", "h/"])
def test_folders_named_like_keys_are_columns(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    save(f"{name}/k=1/a.parquet", 40)
    save(f"{name}/k=2/a*.parquet", 20)
    save("h1/k=3/a.parquet", 10)
    Path(name, "k=1", ".a.parquet").touch()
    found = numbers(capsys, "auc", name, *COLUMNS, "--by", "k")
    assert [(row["k"], row["n"]) for row in found] == [(1, 40), (2, 20)]
    capsys.readouterr()
    assert_refused(capsys, ["auc", name, *COLUMNS, "--by", "month"], "no column 'month'")


@pytest.mark.parametrize("name", ["~/a.parquet", "~a.parquet", "a:b.parquet", "file:/a.parquet"])
def test_names_that_are_no_home_and_no_protocol(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    save(name, 40)
    assert numbers(capsys, "auc", name, *COLUMNS)[0]["n"] == 40


def test_files_named_with_their_protocol(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save("a b[1].parquet", 40)
    address = f"file://{folder}/a%20b[1].parquet"
    assert numbers(capsys, "auc", address, *COLUMNS)[0]["n"] == 40
    call = ["counts", address, *COLUMNS, "-o", "a b[1].parquet"]
    assert_refused(capsys, call, "--output must not be a file that is read")


TWICE = {
    "the same name": ["a.parquet", "a.parquet"],
    "another spelling": ["a.parquet", "./d/../a.parquet"],
    "symbolic link": ["a.parquet", "soft.parquet"],
    "hard link": ["a.parquet", "hard.parquet"],
    "pattern": ["a.parquet", "?.parquet"],
    "patterns": ["a*.parquet", "?.parquet"],
    "folder": ["d", "d/b.parquet"],
    "folder twice": ["d", "d/"],
    "address": ["a.parquet", "file://{here}/a.parquet"],
    "link in a folder": ["l"],
    "link to the folder": ["m"],
    "signed addresses": ["http://h/a.parquet?sig=1&v=2", "HTTP://H:80/a.parquet?sig=2&v=2#x"],
    "cloud": ["s3://b/a.parquet", "s3://b/a.parquet"],
}


@pytest.mark.parametrize("command", ["auc", "audit", "curve", "counts"])
@pytest.mark.parametrize("name", sweep(TWICE, fast=list(TWICE)[::4]))
def test_one_file_is_read_once(
    name: str, command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in ("a.parquet", "d/b.parquet", "l/c.parquet", "m/c.parquet"):
        save(path, 40)
    Path("soft.parquet").symlink_to("a.parquet")
    Path("hard.parquet").hardlink_to("a.parquet")
    Path("l/latest.parquet").symlink_to("c.parquet")
    Path("m/again").symlink_to(folder / "m")
    files = [file.format(here=folder) for file in TWICE[name]]
    output = [] if command.startswith("au") else ["-o", "x.csv"]
    by = ["--attribute", "g"] if command == "audit" else []
    call = [*command.split(), *files, *COLUMNS, *by, *output]
    err = assert_refused(capsys, call)
    assert "given twice" in err or "the same file" in err or "there twice, by a link" in err
    assert not Path("x.csv").exists()


def test_addresses_of_several_files_are_different() -> None:
    different = [
        "https://h/a.parquet?version=1&sig=1",
        "https://h/a.parquet?version=2&sig=1",
        "https://h:90/a.parquet",
        "http://h/a.parquet",
        "s3://b/a.parquet",
        "s3://B/a.parquet",
        "abfss://one@h/a.parquet",
        "abfss://two@h/a.parquet",
    ]
    assert each_file(different) == different


# Ways to make a file that has no end, or of which nothing ever comes.
ENDLESS: dict[str, Callable[[], None]] = {
    "x.parquet": lambda: os.mkfifo("x.parquet"),
    "x.csv": lambda: Path("x.csv").symlink_to("/dev/zero"),
    "d": lambda: os.mkfifo("d/x.parquet"),
    "?.csv": lambda: os.mkfifo("x.csv"),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_what_has_no_end_is_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("d").mkdir()
    ENDLESS[name]()
    said = " is a pipe or a device; "
    assert_refused(capsys, ["auc", name, *COLUMNS], said)
    assert_refused(capsys, ["counts", name, "-o", "y.csv"], said)


def test_a_folder_of_several_formats_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    save("d/a.parquet", 40)
    save("d/b.csv", 40)
    said = "folder d has files of several formats, d/a.parquet, d/b.csv: "
    assert_refused(capsys, ["auc", "d", *COLUMNS], said)


LONG = 5000 * "a"
NOT_UTF8 = os.fsdecode(b"a\xff.parquet")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (["auc", f"{LONG}.parquet", *COLUMNS], "cannot read aaa"),
        (["auc", LONG, *COLUMNS], "cannot read aaa"),
        (["counts", f"{LONG}.parquet", "-o", "x.csv"], "cannot read aaa"),
        (["auc", f"{LONG}*.parquet", *COLUMNS], "cannot read aaa"),
        (["auc", f"a\n{LONG}.parquet", *COLUMNS], "cannot read a a"),
        (["auc", "a\nb.parquet", *COLUMNS], "no such file: a b.parquet"),
        (["auc", "a\0b.parquet", *COLUMNS], r"cannot read a\x00b.parquet: embedded null byte"),
        (["auc", NOT_UTF8, *COLUMNS], r"FILE must be text in UTF-8; found 'a\udcff.parquet'"),
        (
            ["auc", "a*.parquet", *COLUMNS],
            r"FILE must be text in UTF-8; found 'a\udcff.parquet'",
        ),
        (["auc", "d", *COLUMNS], r"FILE must be text in UTF-8; found 'd/a\udcff.parquet'"),
        (
            ["auc", "b.parquet", *COLUMNS, "-o", NOT_UTF8],
            r"--output must be text in UTF-8; found 'a",
        ),
        (
            ["auc", "b.parquet", "--label", "\udcff", "--score", "s"],
            "--label must be text in UTF-8",
        ),
        (
            ["auc", "b.parquet", "--label", "y", "--score", "\udcff"],
            "--score must be text in UTF-8",
        ),
        (["auc", "b.parquet", *COLUMNS, "--by", "\udcff"], "--by must be text in UTF-8"),
        (["auc", "b.parquet", *COLUMNS, "--weight", "\udcff"], "--weight must be text in UTF-8"),
        (["auc", "b.parquet", *COLUMNS, "--pos-label", "\udcff"], "--pos-label must be a value"),
        (["auc", "b.parquet", *COLUMNS, "--by", "^g$"], "found the pattern '^g$'"),
        (["auc", "b.parquet", *COLUMNS, "--cluster", "*"], "found the pattern '*'"),
        (["auc", "b.parquet", "--label", "^y.*$", "--score", "s"], "found the pattern '^y.*$'"),
        (["auc", "b.parquet", "--label", "y", "--score", "s*"], "found no column 's*'"),
        (["auc", "b.parquet", "--label", "y", "--score", "^s"], "found no column '^s'"),
    ],
)
def test_names_that_nothing_can_have(
    call: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    save("b.parquet", 40)
    save("d/c.parquet", 40)
    for name in (NOT_UTF8, f"d/{NOT_UTF8}"):
        shutil.copy("b.parquet", name)
    err = assert_refused(capsys, call, said)
    assert len(err) < 400
    err.encode()


def test_columns_with_names_like_patterns(capsys: pytest.CaptureFixture[str]) -> None:
    rows(40).rename({"s": "s*", "y": "^y", "g": "[g]$"}).write_parquet("b.parquet")
    found = numbers(capsys, "auc", "b.parquet", "--label", "^y", "--score", "s*", "--by", "[g]$")
    assert [(row["[g]$"], row["n"]) for row in found] == [("a", 40)]


def test_a_fault_in_one_of_many_files_that_go_away(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    save("a.parquet", 40)
    save("b.parquet", 40)

    def scanned(*given: Any, **options: Any) -> pl.LazyFrame:
        frame = scan_files(*given, **options)
        Path("b.parquet").unlink(missing_ok=True)
        return frame

    monkeypatch.setattr(source, "scan_files", scanned)
    assert_refused(capsys, ["auc", "a.parquet", "b.parquet", *COLUMNS], "b.parquet")


ADDRESSES = [
    "https://ann:SE/CRET@127.0.0.1:1/a.parquet",
    "http://127.0.0.1:1/a.xls?sig=SECRET",
    "s3://SECRET@b/a.xls",
    "ftp://ann:SECRET@h/a.parquet",
]


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize(
    "call",
    [["auc", *COLUMNS], ["auc", *COLUMNS, "--frob"], ["counts", "-o", "x.csv"]],
)
def test_no_message_tells_credentials(
    address: str, call: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    err = assert_refused(capsys, [*call, address])
    assert "SE" not in err
    assert "CRET" not in err


MOMENT = datetime(2024, 1, 1, 12, 30, tzinfo=UTC)
EARLIER = datetime(2024, 1, 1, 12, 29, tzinfo=UTC)
LABELS: dict[str, tuple[pl.DataType, Any, Any, str]] = {
    "beyond 2**53": (pl.Int64(), 2**53 + 1, 2**53, "9007199254740993"),
    "unsigned": (pl.UInt64(), 2**64 - 1, 2**64 - 2, "18446744073709551615"),
    "128 bits": (pl.Int128(), 2**100 + 1, 2**100, str(2**100 + 1)),
    "small": (pl.Int8(), 2, 1, "2"),
    "whole with a point": (pl.Int8(), 2, 1, "2.0"),
    "decimal": (pl.Decimal(20, 2), Decimal("0.10"), Decimal("0.11"), "0.1"),
    "single": (pl.Float32(), 0.1, 0.2, "0.1"),
    "double": (pl.Float64(), 0.1, 0.1 + 2**-55, "0.1"),
    "boolean": (pl.Boolean(), False, True, "false"),
    "text": (pl.String(), "1", "2", "1"),
    "category": (pl.Categorical(), "x", "y", "x"),
    "enum": (pl.Enum(["y", "x"]), "x", "y", "x"),
    "date": (pl.Date(), date(2024, 1, 2), date(2024, 1, 1), "2024-01-02"),
    "time": (pl.Time(), time(9, 30), time(9, 31), "09:30"),
    "naive": (
        pl.Datetime("ms"),
        MOMENT.replace(tzinfo=None),
        EARLIER.replace(tzinfo=None),
        "2024-01-01T12:30",
    ),
    "zone": (pl.Datetime("us", "Europe/Berlin"), MOMENT, EARLIER, "2024-01-01 12:30:00Z"),
    "offset": (pl.Datetime("ns", "UTC"), MOMENT, EARLIER, "2024-01-01T14:30+02:00"),
}


@pytest.mark.parametrize("engine", sweep(["in-memory", "streaming"]))
@pytest.mark.parametrize("name", sweep(LABELS, fast=list(LABELS)[::2]))
def test_the_positive_label_is_a_value_of_the_labels_type(
    name: str, engine: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    dtype, positive, negative, text = LABELS[name]
    label = pl.Series("y", [positive, negative, negative] * 4, dtype=dtype)
    frame = pl.DataFrame([label, pl.Series("s", [0.5, 0.1, 0.9] * 4)])
    frame.write_parquet("a.parquet")
    found = numbers(capsys, "auc", "a.parquet", *COLUMNS, "--pos-label", text)[0]
    assert (found["n_pos"], found["n_neg"], found["auc"]) == (4, 8, 0.5)
    plan = wroc.summary(frame.lazy(), "y", "s", pos_label=positive)
    assert plan.select("n_pos", "n_neg").collect(engine=engine).row(0) == (4, 8)
    auc = frame.lazy().select(wroc.roc_auc("y", "s", pos_label=positive))
    assert auc.collect(engine=engine).item() == 0.5


@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        (pl.Int64(), "0.5"),
        (pl.Int64(), "nan"),
        (pl.Int64(), "1e999999999"),
        (pl.Int8(), "300"),
        (pl.UInt8(), "-1"),
        (pl.Float64(), "9007199254740993"),
        (pl.Float32(), "16777217"),
        (pl.Float64(), "one"),
        (pl.Decimal(10, 2), "0.125"),
        (pl.Boolean(), "1"),
        (pl.Enum(["a"]), "b"),
        (pl.Date(), "tomorrow"),
        (pl.Datetime("ns"), "2024-01-01T00:00:00.123456789"),
        (pl.Datetime("us", "UTC"), "2024-01-01T00:00"),
        (pl.Datetime("us"), "2024-01-01T00:00Z"),
        (pl.Duration("us"), "1"),
        (pl.List(pl.Int64), "1"),
    ],
    ids=str,
)
def test_texts_that_are_no_value_of_the_label(
    dtype: pl.DataType, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pl.DataFrame({"y": pl.Series([None] * 4, dtype=dtype), "s": [0.5] * 4}).write_parquet(
        "a.parquet"
    )
    said = f"--pos-label must be a value of the label; found '{text}' for type "
    assert_refused(capsys, ["auc", "a.parquet", *COLUMNS, "--pos-label", text], said)


@pytest.mark.parametrize(
    "output", sweep([[], ["-o", "-"], ["-o", "x.csv"], ["-o", "x.svg"]], fast=2)
)
@pytest.mark.parametrize("command", ["auc", "curve"])
@pytest.mark.parametrize("by", [[], ["--by", "g"]])
def test_a_positive_label_that_no_row_has(
    command: str, output: list[str], by: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    save("a.parquet", 40)
    save("b.parquet", 40)
    if command == "auc" and output[-1:] == ["x.svg"]:
        output = ["-o", "x.json"]
    elif command == "curve" and output in ([], ["-o", "-"]):
        output = ["-o", "x.html"]
    call = [command, "a.parquet", "b.parquet", *COLUMNS, *by, "--pos-label", "7", *output]
    said = "--pos-label must be the label of a row with a score and a weight; found none with 7"
    assert_refused(capsys, call, said)
    assert not [*Path().glob("x.*")]


def test_a_positive_label_that_some_group_has(capsys: pytest.CaptureFixture[str]) -> None:
    frame = rows(40).with_columns(g=pl.when(pl.col("y") == 1).then(pl.lit("b")).otherwise("g"))
    frame.write_parquet("a.parquet")
    call = ["a.parquet", *COLUMNS, "--by", "g", "--pos-label", "1"]
    assert [row["auc"] for row in numbers(capsys, "auc", *call)] == [None, None]
    assert main(["curve", *call, "-o", "x.csv"]) == 0


def test_settings_tell_the_positive_label(capsys: pytest.CaptureFixture[str]) -> None:
    moments = [date(2024, 1, 1), date(2024, 1, 2)] * 20
    frame = rows(40).with_columns(d=pl.Series(moments), f=pl.Series([0.5, float("nan")] * 20))
    frame.write_parquet("a.parquet")
    for label, text, told in (
        ("y", "1", 1),
        ("d", "2024-01-02", "2024-01-02"),
        ("f", "nan", "nan"),
    ):
        call = ["audit", "a.parquet", "--label", label, "--score", "s", "--attribute", "g", "-o"]
        assert main([*call, "a.json", "--pos-label", text]) == 0
        assert json.loads(Path("a.json").read_text())["settings"]["pos_label"] == told
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("separator", [";", "tab", "s"])
def test_a_wrong_separator_is_named(
    separator: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.csv"
    path.write_text("y,s\n0,0.1\n1,0.9\n", encoding="utf-8")
    call = ["auc", str(path), "--label", "y", "--score", "s"]
    assert main([*call, "--separator", separator]) == 2
    said = capsys.readouterr().err
    assert f"with --separator {separator!r}, but with ',': leave it out" in said
    # What no separator shows is an error of the name.
    assert main(["auc", str(path), "--label", "y", "--score", "t", "--separator", ","]) == 2
    assert "found no column 't' among y, s" in capsys.readouterr().err


def test_names_of_columns_that_are_no_words_are_quoted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.parquet"
    names = ["y", "a b", "it's", 'a"b', "a, b", "größe"]
    pl.DataFrame({name: [0, 1] for name in names}).write_parquet(path)
    assert main(["auc", str(path), "--label", "y", "--score", "zz"]) == 2
    listed = """y, 'a b', "it's", 'a"b', 'a, b', größe"""
    assert f"found no column 'zz' among {listed}" in capsys.readouterr().err


def test_the_label_that_is_meant_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    frame = rows(40).with_columns(y=pl.col("y").replace_strict({0: "nein", 1: "ja"}))
    frame.write_csv("a.csv", separator=";")
    for command, more in (
        ("auc", []),
        ("audit", ["--attribute", "g"]),
        ("gaps", ["--attribute", "g"]),
    ):
        assert main([command, "a.csv", *COLUMNS, "--pos-label", "Ja", *more]) == 2
        said, error = capsys.readouterr().err.splitlines()
        assert said == "polars-wroc: read a.csv as semicolon-separated"
        assert error.endswith("labels are 'ja', 'nein'; did you mean 'ja'?")


def test_a_file_is_written_once(capsys: pytest.CaptureFixture[str]) -> None:
    rows(40).write_parquet("a.parquet")
    call = ["auc", "a.parquet", *COLUMNS, "-o", "x.csv", "-o", "y.csv", "-o", "x.csv"]
    assert_refused(capsys, call, "--output must name each file once; found x.csv twice")
