"""Tables for people hold nothing that a spreadsheet runs; tables that are read back are exact."""

from __future__ import annotations

import csv
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from processes import of_groups

import polars_wroc as wroc
from polars_wroc.cli import main
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
    counts = wroc.score_counts(rows.lazy(), "y", "s", by="=g")
    files.sink_table(counts, "counts.csv")
    assert_frame_equal(pl.read_csv("counts.csv"), counts.collect(), rel_tol=1e-12)
