"""`polars-wroc size`: the numbers of `rows_needed`, from assumptions, audits and tables."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_wroc as wroc
from polars_wroc.cli import main

LOANS = wroc.data.loans()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows_of(text: str) -> pl.DataFrame:
    return pl.DataFrame(json.loads(text), infer_schema_length=None)


def test_from_assumptions(capsys: pytest.CaptureFixture[str]) -> None:
    call = ["size", "--metric", "tpr", "--value", "0.8", "--gap", "0.05", "--prevalence", "0.2"]
    assert main(call) == 0
    *_, heading, row, _ = capsys.readouterr().out.splitlines()
    assert [name.strip() for name in heading.split("  ") if name][-1] == "note"
    assert re.split(" {2,}", row)[:5] == (
        ["true positive rate", "1,094", "1,094", "10,938", "positives"]
    )
    assert main([*call, "-o", "size.md"]) == 0
    text = Path("size.md").read_text()
    assert "rows needed for gap 0.05" in text.lower()
    assert "Data:" not in text


def test_from_an_audit(capsys: pytest.CaptureFixture[str]) -> None:
    """Its level is that of the JSON."""
    audit = wroc.audit(
        LOANS,
        "approved",
        "score",
        attributes="sex",
        threshold=0.85,
        favorable="selected",
        level=0.9,
    )
    audit.save("audit.json")
    assert (
        main(["size", "audit.json", "--metric", "tpr", "--equivalent-within", "0.05", "-o", "-"])
        == 0
    )
    found = rows_of(capsys.readouterr().out)
    expected = wroc.rows_needed(audit.table, metric="tpr", equivalent_within=0.05, level=0.9)
    assert found["needed"].to_list() == expected["needed"].to_list()
    call = ["size", "audit.json", "--metric", "tpr", "--gap", "0.1", "--rows", "2"]
    assert main(call) == 0
    assert "(missin" in capsys.readouterr().out


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_from_a_table(suffix: str, capsys: pytest.CaptureFixture[str]) -> None:
    table = wroc.group_gaps(
        LOANS, "approved", "score", attributes="race", threshold=0.85, metrics=["auc", "tpr"]
    )
    file = f"gaps.{suffix}"
    table.write_csv(file) if suffix == "csv" else table.write_parquet(file)
    assert main(["size", file, "--gap", "0.1", "-o", "size.parquet"]) == 0
    assert capsys.readouterr().out == "wrote size.parquet\n"
    assert_frame_equal(pl.read_parquet("size.parquet"), wroc.rows_needed(table, gap=0.1))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ([], "exactly one of --half-width, --gap, .* must be given; found none"),
        (["--metric", "tpr", "--gap", "0.1"], "--value must be given for --gap of tpr"),
        (["--metric", "tpr", "--gap", "9", "--value", "0.5"], "--gap must lie strictly between"),
        (["loans.parquet", "--gap", "0.1"], "FILE must be a table of .*; found no column"),
        (["none.json", "--gap", "0.1"], "FILE must be the JSON of an audit; found no such file"),
        (["none.parquet", "--gap", "0.1"], "none.parquet"),
        (["a.json", "b.json", "--gap", "0.1"], "cannot use b.json"),
        (["--metric", "tpr", "--gap", "x"], 'unable to convert "x" into float'),
    ],
)
def test_messages(call: list[Any], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    LOANS.write_parquet("loans.parquet")
    assert main(["size", *call]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert re.search(message, error)
