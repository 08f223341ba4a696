"""Tables for people hold nothing that a spreadsheet runs; tables that are read back are exact."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import openpyxl
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from processes import of_groups

import polars_wroc as wroc
from polars_wroc.cli.main import main
from polars_wroc.files import outputs as files

WIDE = "\N{FULLWIDTH HYPHEN-MINUS}1"
FORMULAS = ["=1+1", "+a", "-a", "@sum(a)", "\t=1", "\r=1", "\n=1", "-1-1", "=a,b", '="x"', WIDE]
HARMLESS = ["a", "a=1", "-1", "+1.5", "-2e-3", "", "'=1", "é"]


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pl.DataFrame:
    """Rows of groups, and of a group column, whose names are formulas."""
    monkeypatch.chdir(tmp_path)
    groups = [*FORMULAS, *HARMLESS[:4]]
    data = pl.DataFrame({"y": [0, 1, 1, 0] * 150, "s": [k % 17 - 8.5 for k in range(600)]})
    data = data.with_columns(pl.Series("=g", groups * 40), pl.col("y").shuffle(seed=1))
    data.write_parquet("rows.parquet")
    return data


def cells(path: str) -> list[list[str]]:
    """Read all cells as texts, with the reader of the standard library."""
    with Path(path).open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, pl.Enum([*FORMULAS, *HARMLESS])])
def test_formulas_are_quoted_and_nothing_else(dtype: pl.DataType, tmp_path: Path) -> None:
    texts = [*FORMULAS, *HARMLESS, None]
    size = len(texts)
    table = pl.DataFrame(
        {
            "=a": pl.Series(texts, dtype=dtype),
            "'=a": pl.Series([-1.5] * size),
            "n": pl.Series([-1] * size),
        }
    )
    files.save_table(table, tmp_path / "x.csv")
    header, *lines = cells(str(tmp_path / "x.csv"))
    assert header == ["''=a", "'=a", "n"]
    expected = [*(f"'{text}" for text in FORMULAS), *HARMLESS, ""]
    assert [line[0] for line in lines] == expected
    assert {tuple(line[1:]) for line in lines} == {("-1.5", "-1")}


@pytest.mark.parametrize("height", [0, 1])
def test_tables_without_texts_are_as_they_were(height: int, tmp_path: Path) -> None:
    table = pl.DataFrame({"n": [-1], "x": [float("-inf")]}).head(height)
    files.save_table(table, tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text() == table.write_csv()


def test_audits_and_tables_of_the_command(rows: pl.DataFrame) -> None:
    columns = ["--label", "y", "--score", "s"]
    wroc.audit(rows, "y", "s", attributes="=g").save("audit.csv")
    for command in ("audit", "auc", "curve"):
        assert (
            main(
                [
                    command,
                    "rows.parquet",
                    *columns,
                    *of_groups(command, "=g"),
                    "-o",
                    f"{command}2.csv",
                ]
            )
            == 0
        )
    for path in ("audit.csv", "audit2.csv", "auc2.csv", "curve2.csv"):
        texts = {text for line in cells(path) for text in line}
        assert {f"'{name}" for name in FORMULAS} < texts
        assert "'=g" in texts
        assert texts.isdisjoint({*FORMULAS, "=g"})
    thresholds = pl.read_csv("curve2.csv")["threshold"]
    assert thresholds.dtype == pl.Float64
    assert thresholds.min() == -8.5


def test_parquet_and_json_are_exact(rows: pl.DataFrame) -> None:
    wroc.audit(rows, "y", "s", attributes="=g").save("audit.parquet")
    segments = pl.read_parquet("audit.parquet")["segment"]
    assert {*FORMULAS} < {*segments}
    files.save_table(rows, "rows.json")
    assert {*pl.read_json("rows.json")["=g"]} == {*rows["=g"]}


def test_counts_are_exact(rows: pl.DataFrame) -> None:
    call = ["counts", "rows.parquet", "--label", "y", "--score", "s", "--by", "=g"]
    assert main([*call, "-o", "counts.csv"]) == 0
    assert main(["merge", "counts.csv", "-o", "merged.csv"]) == 0
    expected = wroc.score_counts(rows, "y", "s", by="=g")
    for path in ("counts.csv", "merged.csv"):
        assert_frame_equal(pl.read_csv(path), expected, rel_tol=1e-12)


@pytest.mark.slow
def test_a_workbook_holds_the_tables(tmp_path: Path) -> None:
    loans = wroc.data.loans().rename({"race": "=race"})
    hostile = pl.when(pl.col("=race") == "black").then(pl.lit("=1+1")).otherwise("=race")
    audit = wroc.audit(
        loans.with_columns(hostile.alias("=race")),
        "approved",
        "score",
        attributes=["=race", "sex"],
        threshold=0.85,
        favorable="selected",
    )
    audit.save(tmp_path / "x.xlsx")
    book = openpyxl.load_workbook(tmp_path / "x.xlsx")
    assert book.sheetnames == ["table", "segments", "curves", "missing"]
    for sheet in book:
        header, *rows = sheet.iter_rows()
        table: pl.DataFrame = getattr(audit, sheet.title)
        assert [cell.value for cell in header] == table.columns
        assert sheet.freeze_panes == "A2"
        assert {cell.data_type for row in rows for cell in row} <= {"s", "n", "b"}
        for row, expected in zip(rows, table.iter_rows(), strict=True):
            for cell, value in zip(row, expected, strict=True):
                shown = str(value) if value == float("inf") else value
                # A workbook keeps 16 digits.
                is_float = isinstance(shown, float)
                assert cell.value == (pytest.approx(shown, rel=1e-15) if is_float else shown)
    assert "=1+1" in [cell.value for cell in book["table"]["B"]]


def test_a_table_is_a_workbook_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pl.DataFrame({"x": [1.5, float("nan"), float("inf"), None], "=t": ["a", "=1", "", "é"]})
    files.save_table(table, tmp_path / "x.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "x.xlsx")["table"]
    rows = [tuple(cell.value for cell in row) for row in sheet.iter_rows()]
    assert rows == [("x", "=t"), (1.5, "a"), (None, "=1"), ("inf", None), (None, "é")]
    large = pl.DataFrame({"N": [2**53, 2**53 + 1], "n": [True, False], "n_": ["a", "b"]})
    files.save_table(large, tmp_path / "x.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "x.xlsx")["table"]
    rows = [tuple(cell.value for cell in row) for row in sheet.iter_rows()]
    assert rows == [("N", "n_", "n__"), (2**53, True, "a"), (str(2**53 + 1), False, "b")]
    monkeypatch.setattr(files, "_MOST_ROWS_OF_SHEET", 1)
    with pytest.raises(ValueError, match="`path` must have another format for more than 1 rows"):
        files.save_table(large, tmp_path / "y.xlsx")
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    with pytest.raises(ImportError, match=r"pip install 'polars-wroc\[report\]'"):
        files.save_table(table, tmp_path / "y.xlsx")
    assert not (tmp_path / "y.xlsx").exists()
