"""Values that are taken for another, and near-equal spellings, are pointed out."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import polars_wroc as wroc
from polars_wroc.cli import main


@pytest.fixture
def file(tmp_path: Path) -> str:
    hired = ["yes"] * 60 + ["Yes"] * 20 + ["yes "] * 5 + ["pending"] * 30 + ["no"] * 85
    rows = pl.DataFrame(
        {
            "hired": hired,
            "sex": ["Female", "Male", "Female "] * 66 + ["Male"] * 2,
            "s": [i / 200 for i in range(200)],
        }
    )
    rows.write_csv(tmp_path / "rows.csv")
    return str(tmp_path / "rows.csv")


@pytest.mark.parametrize(
    "options",
    [
        ["impact", "--selected", "hired=yes", "--attribute", "sex", "--favorable", "selected"],
        ["audit", "--selected", "hired=yes", "--attribute", "sex", "--favorable", "selected"],
        ["auc", "--label", "hired", "--pos-label", "yes", "--score", "s"],
    ],
)
def test_what_counts_is_said(
    file: str, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([options[0], file, *options[1:]]) == 0
    printed = capsys.readouterr()
    assert "hired = 'yes' counts as" in printed.err
    assert all(each in printed.err for each in ("60 rows", "'pending' (30)", "'no' (85)"))
    assert "'Yes', 'yes ' may be meant to be 'yes'" in printed.err
    if "--attribute" in options:
        assert "'Female', 'Female ' of sex are different groups" in printed.out.replace("\n", " ")


def test_a_published_summary_says_what_counts(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    dates = ["--distribution-date", "2026-01-01", "--audit-date", "2026-01-02"]
    command = ["new-york", file, "--selected", "hired=yes", "--attribute", "sex"]
    assert main([*command, "--source", "x", *dates]) == 0
    printed = capsys.readouterr()
    assert "'pending' (30)" in printed.out
    assert "are different groups" in printed.err


def test_two_values_need_no_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = pl.DataFrame({"y": ["yes", "no"] * 50, "s": range(100), "g": ["a"] * 50 + ["b"] * 50})
    rows.write_csv(tmp_path / "rows.csv")
    command = ["auc", str(tmp_path / "rows.csv"), "--label", "y", "--pos-label", "yes"]
    assert main([*command, "--score", "s"]) == 0
    assert capsys.readouterr().err == ""
    audit = wroc.audit(rows, "y", "s", attributes="g", pos_label="yes")
    assert "different groups" not in repr(audit)


@pytest.mark.parametrize("other", ["caf\u00e9\u200b", "cafe\u0301", "CAF\u00c9 "])
def test_groups_that_look_the_same_are_pointed_out(other: str) -> None:
    rows = pl.DataFrame({"g": ["caf\u00e9", other] * 40, "y": [1, 0, 0, 1] * 20})
    audit = wroc.audit(rows, attributes="g", selected="y", favorable="selected")
    remarks = json.loads(audit.to_json())["remarks"]
    assert any("of g are different groups: make the spellings one" in one for one in remarks)
