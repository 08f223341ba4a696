"""Files are read as the people who wrote them meant, or refused in one sentence."""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import io
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.datasets
import statsmodels.datasets
from polars.testing import assert_frame_equal
from sklearn.metrics import roc_auc_score

import polars_wroc as wroc
from polars_wroc.files import scan
from polars_wroc.files.csv_dialect import ANY_FORMAT, FileFormat
from polars_wroc.files.scan import describe_reading_error, scan_files

USED: dict[str, Any] = {"text": ["y", "g"], "numbers": ["s", "w"], "dates": ["day"]}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def save(content: str | bytes, name: str = "a.csv", encoding: str = "utf-8") -> str:
    """Write a file, and return its name."""
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
    return name


def read(name: str | Sequence[str], file_format: FileFormat = ANY_FORMAT) -> pl.DataFrame:
    """Read files, with the usual names of labels, groups, scores and weights."""
    files = [name] if isinstance(name, str) else name
    return scan_files(files, file_format, **USED).collect()


def refuse(name: str | Sequence[str], file_format: FileFormat = ANY_FORMAT) -> str:
    """Return the sentence with which files are refused, when they are scanned or read."""
    files = [name] if isinstance(name, str) else name
    with pytest.raises((ValueError, pl.exceptions.PolarsError)) as raised:
        read(files, file_format)
    if not isinstance(raised.value, pl.exceptions.PolarsError):
        return str(raised.value)
    return describe_reading_error(raised.value, files, file_format)


# Ways to write the same table. Of each: the text, its encoding, and what is told.
WRITTEN: dict[str, tuple[str, str, str | None]] = {
    "plain": ("y,s,g\n1,0.5,Köln\n0,1.25,Bonn\n", "utf-8", None),
    "byte order mark": ("y,s,g\n1,0.5,Köln\n0,1.25,Bonn\n", "utf-8-sig", None),
    "semicolons": ("y;s;g\n1;0.5;Köln\n0;1.25;Bonn\n", "utf-8", "semicolon-separated"),
    "decimal commas": (
        "y;s;g\n1;0,5;Köln\n0;1,25;Bonn\n",
        "utf-8",
        "semicolon-separated, decimal comma",
    ),
    "German Excel": (
        "y;s;g\r\n1;0,5;Köln\r\n0;1,25;Bonn\r\n",
        "windows-1252",
        "semicolon-separated, decimal comma, Windows-1252",
    ),
    "Excel that names the separator": (
        "sep=;\r\ny;s;g\r\n1;0,5;Köln\r\n0;1,25;Bonn\r\n",
        "utf-8-sig",
        "semicolon-separated, decimal comma",
    ),
    "Excel's Unicode text": (
        "y\ts\tg\r\n1\t0.5\tKöln\r\n0\t1.25\tBonn\r\n",
        "utf-16",
        "tab-separated, UTF-16",
    ),
    "UTF-16, big end first": (
        "\ufeffy,s,g\n1,0.5,Köln\n0,1.25,Bonn\n",
        "utf-16-be",
        "UTF-16",
    ),
    "UTF-16 without a mark": ("y,s,g\n1,0.5,Köln\n0,1.25,Bonn\n", "utf-16-le", "UTF-16"),
    "pipes": ("y|s|g\n1|0.5|Köln\n0|1.25|Bonn\n", "utf-8", "pipe-separated"),
    "tabs": ("y\ts\tg\n1\t0.5\tKöln\n0\t1.25\tBonn\n", "utf-8", "tab-separated"),
    "old Macintosh": ("y,s,g\r1,0.5,Köln\r0,1.25,Bonn\r", "utf-8", None),
    "spaces": ("y, s, g\n1, 0.5, Köln\n0, 1.25, Bonn\n", "utf-8", "comma-and-space-separated"),
    "quotes around all": ('"y","s","g"\n"1","0.5","Köln"\n"0","1.25","Bonn"\n', "utf-8", None),
    "single quotes": ("y,s,g\n1,0.5,'Köln'\n0,1.25,'Bonn'\n", "utf-8", "single quotes"),
    "names with another separator": (
        '"y";"s";"g"\n1;0.5;"Köln"\n0;1.25;"Bonn"\n',
        "utf-8",
        "semicolon-separated",
    ),
    "spaces between columns": ("y s g\n1 0.5 Köln\n0 1.25 Bonn\n", "utf-8", "space-separated"),
    "single quotes around names": (
        "'y';'s';'g'\n1;0,5;Köln\n0;1,25;Bonn\n",
        "utf-8",
        "semicolon-separated, decimal comma, single quotes",
    ),
    "no line end at the end": ("y,s,g\n1,0.5,Köln\n0,1.25,Bonn", "utf-8", None),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_one_table_in_many_dialects_is_the_same_table(name: str) -> None:
    text, encoding, described = WRITTEN[name]
    save(text, encoding=encoding)
    told: list[str] = []
    found = scan_files(["a.csv"], **USED, tell=told.append).collect()
    assert found.rows() == [(1, 0.5, "Köln"), (0, 1.25, "Bonn")]
    assert found.columns == ["y", "s", "g"]
    assert told == ([] if described is None else [f"read a.csv as {described}"])


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC])
def test_texts_with_separators_quotes_and_line_ends_are_those_that_python_wrote(
    separator: str, quoting: Any
) -> None:
    texts = ["a,b", "c;d", 'e "f" g', "h\ti", "j|k", "two\nlines", "5'10", " padded ", "-"]
    with Path("a.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=separator, quoting=quoting)
        writer.writerows([["y", "g", "s"], *([k % 2, text, k / 8] for k, text in enumerate(texts))])
    found = read("a.csv")
    assert found["g"].to_list() == texts
    assert found["s"].to_list() == [k / 8 for k in range(len(texts))]


FRAME = pd.DataFrame(
    {
        "y": [0, 1, 1, 0],
        "s": [0.125, -3.0, np.nan, 1e-7],
        "g": ["a", None, "Zürich", "€"],
        "w": [1.0, 2.0, 3.0, 4.0],
    }
)


@pytest.mark.parametrize("na_rep", ["", "NA", "nan", "N/A", "NULL"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sep": ";", "decimal": ","},
        {"sep": "\t", "encoding": "utf-16"},
        {"sep": ";", "decimal": ",", "encoding": "cp1252"},
        {"sep": "|", "quoting": csv.QUOTE_ALL},
    ],
    ids=str,
)
def test_what_pandas_writes_is_read_as_pandas_reads_it(options: Any, na_rep: str) -> None:
    FRAME.to_csv("a.csv", index=False, na_rep=na_rep, **options)
    found = read("a.csv").select(pl.col("y", "s", "w").cast(pl.Float64), "g")
    expected = pd.read_csv("a.csv", **{k: v for k, v in options.items() if k != "quoting"})
    for name in ("y", "s", "w"):
        numbers = found[name].fill_null(np.nan).to_numpy()
        np.testing.assert_array_equal(numbers, expected[name].to_numpy(float))
    assert found["g"].to_list() == ["a", None, "Zürich", "€"]


def test_none_and_a_dot_are_no_missing_values_unless_they_are_given() -> None:
    save("y,s,g\n1,0.5,None\n0,.,a\n")
    assert "pass --null=. if it means that the value is missing" in refuse("a.csv")
    assert read("a.csv", FileFormat(null=(".",)))["g"].to_list() == ["None", "a"]
    found = read("a.csv", FileFormat(null=(".", "None")))
    assert found.rows() == [(1, 0.5, None), (0, None, "a")]


GIVEN: dict[str, tuple[str | bytes, FileFormat, list[tuple[Any, ...]]]] = {
    "separator": ("y s\n1 0.5\n", FileFormat(separator=" "), [(1, 0.5)]),
    "tab": ("y\ts\n1\t0.5\n", FileFormat(separator="tab"), [(1, 0.5)]),
    "decimal comma": ('y,s\n1,"0,5"\n', FileFormat(decimal_comma=True), [(1, 0.5)]),
    "ambiguous decimal comma": ("y;s\n1;1,234\n", FileFormat(decimal_comma=True), [(1, 1.234)]),
    "no decimal comma": ("y;g\n1;1,5\n", FileFormat(decimal_comma=False), [(1, "1,5")]),
    "encoding": ("y,g\n1,Łódź\n".encode("cp1250"), FileFormat(encoding="cp1250"), [(1, "Łódź")]),
    "quote": ("y,g\n1,*a,b*\n", FileFormat(quote="*"), [(1, "a,b")]),
    "no quotes": ('y,g\n1,"a\n', FileFormat(quote="none"), [(1, '"a')]),
}


@pytest.mark.parametrize("name", GIVEN)
def test_what_is_given_is_not_recognised(name: str) -> None:
    content, file_format, rows = GIVEN[name]
    save(content)
    assert read("a.csv", file_format).rows() == rows


LATER = 60_000


def with_later(first: str, later: str) -> str:
    """Write a CSV file, too large to be looked at as a whole, whose last row is different."""
    rows = [first, *[f"{first},{'x' * 80}"] * LATER, f"{later},x"]
    return "y,s,g,more\n" + "\n".join(rows) + "\n"


def test_a_score_that_is_whole_for_a_long_time_is_a_number() -> None:
    save(with_later("1,3,a", "0,0.25,b"))
    found = read("a.csv")
    assert found["s"].dtype == pl.Float64
    assert found["s"][-1] == 0.25
    save(with_later("1,3,a", "0,4,b"))
    assert read("a.csv")["s"].dtype == pl.Int64


def test_codes_keep_what_numbers_would_lose_wherever_it_is() -> None:
    save(with_later("1,0.5,10001", "0,0.5,02139"))
    found = read("a.csv")["g"]
    assert found[0] == "10001"
    assert found[-1] == "02139"
    save(with_later("1,0.5,10001", "0,0.5,K1A"))
    assert read("a.csv")["g"][-1] == "K1A"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["007", "010"], ["007", "010"]),
        (["1.10", "1.9"], ["1.10", "1.9"]),
        (["12345678901234567890"], ["12345678901234567890"]),
        (["9007199254740993"], ["9007199254740993"]),
        (["1e5", "2e5"], ["1e5", "2e5"]),
        (["0", "1"], [0, 1]),
        (["-1", "1"], [-1, 1]),
        (["18", "65"], [18, 65]),
        (["1.0", "0.0"], [1.0, 0.0]),
        (["1.000000", "0.000000"], [1.0, 0.0]),
        (["0.5", "2.25"], [0.5, 2.25]),
        (["true", "false"], [True, False]),
    ],
    ids=str,
)
def test_groups_are_text_only_where_numbers_would_lose_something(
    values: list[str], expected: list[object]
) -> None:
    save("y,s,g\n" + "".join(f"1,0.5,{value}\n" for value in values))
    assert read("a.csv")["g"].to_list() == expected
    # A column that nobody uses as a group is read as Polars reads it.
    assert scan_files(["a.csv"]).collect().equals(pl.read_csv("a.csv"))


NO_NUMBERS: dict[str, tuple[str, str]] = {
    "thousands": ('"1,234"', "remove the separators of thousands, or pass --decimal-comma"),
    "millions": ('"1,234,567.5"', "remove the separators of thousands"),
    "percent": ("3%", "write it without the percent sign, for example 3% as 0.03"),
    "decimal comma": ('"0,5"', "pass --decimal-comma"),
    "word": ("high", "pass --null=high if it means that the value is missing"),
}


@pytest.mark.parametrize("name", NO_NUMBERS)
def test_a_score_that_is_no_number_is_named_with_its_line_and_what_to_do(name: str) -> None:
    value, advice = NO_NUMBERS[name]
    save(f'y,s,g\n1,0.5,"two\nlines"\n0,{value},b\n')
    said = refuse("a.csv")
    shown = value.strip('"')
    assert said.startswith(f"column 's' must be a number; line 4 of a.csv has {shown!r}: ")
    assert advice in said


def test_codes_and_numbers_after_spaces_are_looked_at_as_others_are() -> None:
    save("y, s, g\n1, 0.5, 007\n0, 1, 010\n")
    assert read("a.csv").rows() == [(1, 0.5, "007"), (0, 1.0, "010")]
    save("y, s, g\n1, 0.5, a\n0, 3%, b\n")
    assert refuse("a.csv").startswith("column 's' must be a number; line 3 of a.csv has '3%'")


def test_points_between_thousands_are_not_taken_for_decimal_points() -> None:
    save("y;s\n1;0,5\n0;1.234\n")
    assert refuse("a.csv").startswith("column 's' must be a number; line 3 of a.csv has '1.234'")


def test_a_value_far_down_that_is_no_number_is_named_with_its_line() -> None:
    save(with_later("1,0.5,a", "0,high,b"))
    said = refuse("a.csv")
    assert f"line {LATER + 3} of a.csv has 'high'" in said
    assert "column 's' must be a number in all rows" in said


@pytest.mark.parametrize("format_", ["parquet", "ndjson", "xlsx"])
def test_numbers_in_text_are_numbers_in_every_format(format_: str) -> None:
    texts = ["0.5", " 2 ", None, "NA"]
    frame = pl.DataFrame({"y": [0, 1, 1, 0], "s": texts, "g": ["a", "b", "NA", "d"]})
    writers: dict[str, Callable[[str], object]] = {
        "parquet": frame.write_parquet,
        "ndjson": frame.write_ndjson,
        "xlsx": frame.write_excel,
    }
    writers[format_](f"a.{format_}")
    found = read(f"a.{format_}")
    assert found["s"].to_list() == [0.5, 2.0, None, None]
    # Other formats have missing values of their own, so a text is a text there.
    assert found["g"].to_list() == ["a", "b", "NA", "d"]


def test_ndjson_with_fractions_far_down() -> None:
    save('{"y":1,"s":1}\n' * 3000 + '{"y":0,"s":0.5}\n', "a.ndjson")
    assert read("a.ndjson")["s"][-1] == 0.5


MOMENT = dt.datetime.fromisoformat
DATES: dict[str, tuple[list[str], list[object]]] = {
    "ISO": (["2026-01-31", "2026-02-01"], [dt.date(2026, 1, 31), dt.date(2026, 2, 1)]),
    "compact": (["20260131"], [dt.date(2026, 1, 31)]),
    "day first": (["31/01/2026", "01/02/2026"], [dt.date(2026, 1, 31), dt.date(2026, 2, 1)]),
    "month first": (["01/31/2026", "01/02/2026"], [dt.date(2026, 1, 31), dt.date(2026, 1, 2)]),
    "points": (["1.2.2026"], [dt.date(2026, 2, 1)]),
    "the same either way": (["01/01/2026", "2/2/2026"], [dt.date(2026, 1, 1), dt.date(2026, 2, 2)]),
    "some times": (
        ["2026-01-31", "2026-01-31T08:30", "2026-01-31 08:30:15.5", "2026-01-31T08:30:15+02:00"],
        [
            MOMENT("2026-01-31"),
            MOMENT("2026-01-31T08:30:00"),
            MOMENT("2026-01-31T08:30:15.500000"),
            MOMENT("2026-01-31T08:30:15"),
        ],
    ),
    "twelve hours": (["1/31/2026 3:05 PM"], [MOMENT("2026-01-31T15:05:00")]),
    "missing": (["2026-01-31", "NA"], [dt.date(2026, 1, 31), None]),
    "numbers for ranges": (["18", "65"], [18, 65]),
}


@pytest.mark.parametrize("name", DATES)
@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_dates_are_dates_where_they_are_asked_for(name: str, format_: str) -> None:
    texts, expected = DATES[name]
    save("y,day\n" + "".join(f"1,{text}\n" for text in texts))
    if format_ == "parquet":
        pl.read_csv("a.csv", null_values=["NA"]).write_parquet("a.parquet")
    assert read(f"a.{format_}")["day"].to_list() == expected


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["01/02/2026"], "may have the day or the month first; line 2 of a.csv has '01/02/2026'"),
        (["2026-01-31", "soon"], "must be a date or time; line 3 of a.csv has 'soon'"),
        (["2026-02-30"], "must be a date or time; line 2 of a.csv has '2026-02-30'"),
        (["31/01/2026", "01/31/2026"], "must be a date or time; line 3 of a.csv has '01/31/2026'"),
    ],
)
def test_dates_that_are_open_are_refused(texts: list[str], said: str) -> None:
    save("y,day\n" + "".join(f"1,{text}\n" for text in texts))
    assert f"column 'day' {said}" in refuse("a.csv")


REFUSED: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "a.csv is empty"),
    "header only": ("y,s,g\n", "a.csv has no rows"),
    "two columns of one name": ("y,s,s\n1,2,3\n", "a.csv has two columns named 's': rename one"),
    "no header": (
        "1,0.5,a\n0,0.25,b\n",
        "a.csv has no header: add a line of names above '1,0.5,a'",
    ),
    "long row": ("y,s,g\n1,0.5,a\n0,0.5,b,c\n", "line 3 of a.csv has more fields than the header"),
    "very long row": ("y,s\n1,0.5\n0,0.5,b,c,d\n", "line 3 of a.csv has more fields"),
    "long row after a text of two lines": (
        'y,s,g\n1,0.5,"a\nb"\n0,0.5,b,c\n',
        "line 4 of a.csv has more fields than the header",
    ),
    "another format": (b"PAR1\0\0\0\0" * 9, "a.csv holds no text"),
    "unknown encoding": (
        b"y,g\n1,\x81\x8d\xff\n",
        "a.csv cannot be read as Windows-1252: byte 0x81 at position 6 is no character; give its",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_files_that_cannot_be_read_are_refused_in_one_sentence(name: str) -> None:
    content, message = REFUSED[name]
    save(content)
    said = refuse("a.csv")
    assert said.startswith(message)
    assert "\n" not in said


def test_a_long_row_is_refused_even_if_columns_are_left_out() -> None:
    save("name,y,s,note\nAda,1,0.5,x\nHopper, Grace,0,0.25,y\n")
    plan = scan_files(["a.csv"], text=["y"]).select(pl.col("note").count())
    with pytest.raises(ValueError, match=r"^line 3 of a\.csv has more fields than the header"):
        plan.collect()


def test_short_rows_lack_the_last_values() -> None:
    save("y,s,g\n1,0.5,a\n0\n")
    assert read("a.csv").rows() == [(1, 0.5, "a"), (0, None, None)]


def test_bytes_of_another_encoding_far_down_are_named_with_their_line() -> None:
    save(with_later("1,0.5,a", "0,0.5,Köln"), encoding="windows-1252")
    said = refuse("a.csv")
    assert said.startswith(f"line {LATER + 3} of a.csv is not in UTF-8; give the encoding")
    assert read("a.csv", FileFormat(encoding="cp1252"))["g"][-1] == "Köln"


WRONG_FORMATS: dict[str, tuple[FileFormat, str]] = {
    "separator": (FileFormat(separator="::"), "`separator` must be one character, or tab"),
    "encoding": (FileFormat(encoding="klingon"), "`encoding` must be utf-8, utf-16, windows-1252"),
    "quote": (FileFormat(quote="<>"), "`quote` must be one character, or none"),
}


@pytest.mark.parametrize("name", WRONG_FORMATS)
def test_formats_that_no_file_has(name: str) -> None:
    file_format, message = WRONG_FORMATS[name]
    assert refuse(save("y\n1\n"), file_format).startswith(message)


def test_dialects_apply_to_csv_files_only() -> None:
    pl.DataFrame({"y": [1]}).write_parquet("a.parquet")
    said = refuse("a.parquet", FileFormat(separator=";"))
    assert said.endswith("apply to CSV files only; a.parquet is none")


ROWS = pl.DataFrame({"y": [0, 1], "s": [0.5, 0.25], "g": ["a", "b"]})
COMPRESSED: dict[str, Callable[[], object]] = {
    "a.csv.gz": lambda: ROWS.write_csv("a.csv.gz", compression="gzip"),
    "a.csv.zst": lambda: ROWS.write_csv("a.csv.zst", compression="zstd"),
    "a.tsv.gz": lambda: save(gzip.compress(ROWS.write_csv(separator="\t").encode()), "a.tsv.gz"),
    "a.ndjson.gz": lambda: save(gzip.compress(ROWS.write_ndjson().encode()), "a.ndjson.gz"),
    "a.txt": lambda: save(ROWS.write_csv(separator=";"), "a.txt"),
    "A.CSV": lambda: save(ROWS.write_csv(), "A.CSV"),
    "a.xlsx": lambda: ROWS.write_excel("a.xlsx"),
    "a.csv": lambda: save(gzip.compress(ROWS.write_csv().encode()), "a.csv"),
}


@pytest.mark.parametrize("name", COMPRESSED)
def test_formats_by_the_end_of_their_names(name: str) -> None:
    COMPRESSED[name]()
    assert read(name).equals(ROWS)


@pytest.mark.parametrize(
    ("content", "said"), [(b"y,s\n1,2\n", "cannot read a.xlsx: "), (b"", "cannot read a.xlsx: ")]
)
def test_workbooks_that_are_none_are_named(content: bytes, said: str) -> None:
    assert refuse(save(content, "a.xlsx")).startswith(said)


def test_workbooks_without_an_engine_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    ROWS.write_excel("a.xlsx")
    monkeypatch.setattr(scan, "find_spec", lambda _: None)
    assert refuse("a.xlsx") == "reading .xlsx files needs fastexcel: pip install fastexcel"


class Piped(io.TextIOWrapper):
    """A standard input."""

    def __init__(self, content: bytes) -> None:
        super().__init__(io.BytesIO(content))


def to_parquet() -> bytes:
    ROWS.write_parquet("piped.parquet")
    return Path("piped.parquet").read_bytes()


PIPED: dict[str, Callable[[], bytes]] = {
    "csv": lambda: ROWS.write_csv().encode(),
    "dialect": lambda: ROWS.write_csv(separator=";").encode("utf-16"),
    "gzip": lambda: gzip.compress(ROWS.write_csv().encode()),
    "ndjson": lambda: ROWS.write_ndjson().encode(),
    "parquet": to_parquet,
}


@pytest.mark.parametrize("name", PIPED)
def test_the_standard_input_is_read_in_any_format(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Piped(PIPED[name]()))
    # More than once, as a command does that counts rows first.
    assert read("-").equals(ROWS)
    assert read("-").equals(ROWS)


def test_the_standard_input_is_named_and_stands_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Piped(b"y,s\n1,high\n"))
    assert "; line 2 of standard input has 'high'" in refuse("-")
    said = refuse(["-", save("y,s\n1,0.5\n")])
    assert said == "the standard input, -, cannot be read together with files"


WRITERS: dict[str, Callable[[pl.DataFrame, str], object]] = {
    "parquet": pl.DataFrame.write_parquet,
    "arrow": pl.DataFrame.write_ipc,
    "csv": pl.DataFrame.write_csv,
    "ndjson": pl.DataFrame.write_ndjson,
}


@pytest.mark.parametrize("suffix", WRITERS)
@pytest.mark.parametrize(
    "names", [["h"], ["h/k=*/d=*/a.{}"], ["h/k=1/d=x/a.{}", "h/k=2/d=y/a.{}"]], ids=str
)
def test_folders_named_like_keys_make_columns_however_they_are_named(
    suffix: str, names: list[str]
) -> None:
    for k, d in ((1, "x"), (2, "y")):
        Path(f"h/k={k}/d={d}").mkdir(parents=True)
        WRITERS[suffix](ROWS, f"h/k={k}/d={d}/a.{suffix}")
    found = read([name.format(suffix) for name in names])
    keys = pl.DataFrame({"k": [1, 1, 2, 2], "d": ["x", "x", "y", "y"]})
    expected = pl.concat([ROWS, ROWS]).hstack(keys)
    assert_frame_equal(found, expected)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_keys_that_are_codes_stay_text_and_keys_above_a_folder_are_none(suffix: str) -> None:
    for k in ("01", "02"):
        Path(f"run=5/h/g={k}").mkdir(parents=True)
        WRITERS[suffix](ROWS.drop("g"), f"run=5/h/g={k}/a.{suffix}")
    assert read("run=5/h")["g"].to_list() == ["01", "01", "02", "02"]
    assert read("run=5/h").columns == ["y", "s", "g"]


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_folder_of_any_one_format_is_read(suffix: str) -> None:
    for name in ("a", "b/c"):
        Path("d", name).parent.mkdir(parents=True, exist_ok=True)
        WRITERS[suffix](ROWS, f"d/{name}.{suffix}")
    save("a note", "d/README.txt")
    save("", "d/_SUCCESS")
    for name in (".ipynb_checkpoints/a.csv", "_delta_log/a.parquet", "_temporary/a.ndjson"):
        save("of another program", f"d/{name}")
    assert read("d").equals(pl.concat([ROWS, ROWS]))


def test_a_folder_of_several_formats_names_two_files() -> None:
    save(ROWS.write_csv(), "d/a.csv")
    save(ROWS.write_ndjson(), "d/b.ndjson")
    said = (
        "folder d has files of several formats, d/a.csv, d/b.ndjson: give the files of one format"
    )
    assert refuse("d") == f"{said}, for example 'd/*.csv'"


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows: rows.drop("s"), "it lacks 's'"),
        (lambda rows: rows.rename({"s": "score"}), "it lacks 's' and it has 'score'"),
    ],
)
def test_a_file_with_other_columns_is_named(
    suffix: str, change: Callable[[pl.DataFrame], pl.DataFrame], said: str
) -> None:
    Path("d").mkdir()
    for name, frame in (("a", ROWS), ("b", ROWS), ("c", change(ROWS))):
        WRITERS[suffix](frame, f"d/{name}.{suffix}")
    assert refuse("d") == f"d/c.{suffix} has other columns than d/a.{suffix}: {said}"


def test_a_file_with_another_type_is_named() -> None:
    ROWS.write_parquet("a.parquet")
    ROWS.cast({"y": pl.String}).write_parquet("b.parquet")
    said = refuse(["a.parquet", "b.parquet"])
    assert said == "b.parquet has other columns than a.parquet: 'y' is String in place of Int64"


def test_numbers_that_are_whole_in_one_file_only_are_numbers_in_all() -> None:
    save("y,s,g\n1,2,10\n")
    save("y,s,g\n0,0.5,010\n", "b.csv")
    assert read(["a.csv", "b.csv"]).rows() == [(1, 2.0, "10"), (0, 0.5, "010")]
    Path("h/k=1").mkdir(parents=True)
    Path("h/k=2").mkdir()
    Path("a.csv").rename("h/k=1/a.csv")
    Path("b.csv").rename("h/k=2/b.csv")
    assert read("h").rows() == [(1, 2.0, "10", 1), (0, 0.5, "010", 2)]


def test_columns_in_another_order_are_read_by_their_names() -> None:
    save("y,s,g\n1,0.5,a\n")
    save("g,s,y\nb,1,0\n", "b.csv")
    assert read(["a.csv", "b.csv"]).rows() == [(1, 0.5, "a"), (0, 1.0, "b")]


def test_one_of_several_files_may_have_another_encoding() -> None:
    save("y,s,g\n1,0.5,Bonn\n")
    save("y,s,g\n0,1,Köln\n", "b.csv", "windows-1252")
    assert read(["a.csv", "b.csv"])["g"].to_list() == ["Bonn", "Köln"]


def test_a_file_without_rows_among_others_does_not_change_types() -> None:
    save("y,s,g\n", "a.csv")
    save("y,s,g\n0,1,b\n", "b.csv")
    assert read(["a.csv", "b.csv"]).rows() == [(0, 1, "b")]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("none.csv", "no such file: none.csv"),
        ("none", "no such file: none"),
        ("none/*.csv", "no file matches none/*.csv"),
        ("a.xls", "cannot tell the format of a.xls: its name must end in .parquet, "),
    ],
)
def test_names_that_are_no_files(name: str, said: str) -> None:
    save("", "a.xls")
    assert refuse(name).startswith(said)


def test_large_plain_files_are_scanned_lazily() -> None:
    save(with_later("1,0.5,a", "0,0.5,b"))
    plan = scan_files(["a.csv"], **USED).select("y", "s").explain()
    assert "Csv SCAN [a.csv]" in plan
    # The columns that are used, and the one that tells long rows.
    assert "PROJECT 3/5 COLUMNS" in plan
    ROWS.write_parquet("a.parquet")
    plan = scan_files(["a.parquet"], **USED).select("y").explain()
    assert "Parquet SCAN [a.parquet]" in plan
    assert "PROJECT 1/3 COLUMNS" in plan


SKLEARN = Path(sklearn.datasets.__file__).parent / "data"
STATSMODELS = Path(statsmodels.datasets.__file__).parent


# Real files as they come: the label, its positive value, the score, and what pandas must be told.
REAL: dict[str, tuple[Path, str, Any, str, dict[str, Any]]] = {
    # The header holds the numbers of rows and columns and the names of classes.
    "iris": (SKLEARN / "iris.csv", "virginica", 2, "versicolor", {}),
    "Fair's affairs": (STATSMODELS / "fair/fair.csv", "religious", 1.0, "affairs", {}),
    "anes96, by tabs": (
        STATSMODELS / "anes96/anes96.csv",
        "vote",
        1.0,
        "selfLR",
        {"sep": "\t", "quotechar": "'"},
    ),
    "modechoice, by semicolons": (
        STATSMODELS / "modechoice/modechoice.csv",
        "choice",
        1.0,
        "invc",
        {"sep": ";"},
    ),
    "spector, by spaces, names in single quotes": (
        STATSMODELS / "spector/spector.csv",
        "GRADE",
        1.0,
        "GPA",
        {"sep": " ", "quotechar": "'"},
    ),
    "heart, with labels such as 1.000000": (
        STATSMODELS / "heart/heart.csv",
        "censors",
        1,
        "survival",
        {},
    ),
}


@pytest.mark.parametrize("name", REAL)
def test_real_files_give_the_auc_that_pandas_and_scikit_learn_give(name: str) -> None:
    path, label, positive, score, options = REAL[name]
    frame = scan_files([str(path)], text=[label], numbers=[score])
    found = wroc.summary(frame, label, score, pos_label=positive).collect()
    table = pd.read_csv(path, **options).dropna(subset=[label, score])
    expected = roc_auc_score(table[label] == positive, table[score])
    assert found["n"].item() == len(table)
    assert found["auc"].item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", ["breast_cancer.csv", "wine_data.csv"])
def test_real_files_whose_header_names_too_few_columns_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="has more fields") as raised:
        scan_files([str(SKLEARN / name)]).select(
            "malignant" if "cancer" in name else "13"
        ).collect()
    said = str(raised.value)
    assert said.startswith(f"line 2 of {SKLEARN / name} has more fields than the header")


def test_files_of_two_formats_are_named() -> None:
    ROWS.write_parquet("a.parquet")
    said = refuse(["a.parquet", save(ROWS.write_csv())])
    assert said == "files must be of one format; a.parquet, a.csv are of two"


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["a.csv", "a.csv"], "a.csv is given twice"),
        (["a.csv", "./a.csv"], "a.csv and ./a.csv name the same file"),
        (["a.csv", "*.csv"], "a.csv and *.csv name the same file"),
    ],
)
def test_a_file_that_is_named_twice_is_refused(names: list[str], said: str) -> None:
    save(ROWS.write_csv())
    assert refuse(names) == said
