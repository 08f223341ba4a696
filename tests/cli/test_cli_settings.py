"""Options in ``wroc.toml`` and in variables: what commands take of them, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from polars_wroc.cli import main

SETTINGS = Path("wroc.toml")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder with rows that have a label, a score and a decision."""
    monkeypatch.chdir(tmp_path)
    rows = {
        "y": ["yes", "no"] * 40,
        "s": [k % 17 for k in range(80)],
        "d": [0, 1, 1, 1] * 20,
        "g": ["a", "b", "b", "a"] * 20,
    }
    pl.DataFrame(rows).write_csv("rows.csv")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[audti]\nmargin = 0.1",
            (
                "wroc.toml: each section must be named after a command; found [audti]; did you "
                "mean [audit]?"
            ),
        ),
        (
            "fail-fi = ['auc.value<1']",
            "wroc.toml: no command has an option 'fail-fi'; did you mean 'fail-if'?",
        ),
        ("lable = 'y'", "wroc.toml: no command has an option 'lable'; did you mean 'label'?"),
        (
            "[auc]\nscores = 's'",
            "wroc.toml: there is no option 'scores' in the section [auc]; did you mean 'score'?",
        ),
        (
            "score = 's'\nlabel = Gut",
            (
                "wroc.toml cannot be read: Invalid value (at line 2, column 9); texts need quotes, "
                'as in label = "repaid"'
            ),
        ),
    ],
)
def test_a_mistake_in_the_file_is_an_error_that_names_the_file(
    text: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    SETTINGS.write_text(text, encoding="utf-8")
    assert main(["auc", "rows.csv", "--label", "y", "--pos-label", "yes", "--score", "s"]) == 2
    assert capsys.readouterr().err == f"polars-wroc: {said}\n"


def test_an_option_of_another_command_is_fine_before_the_sections() -> None:
    SETTINGS.write_text("label = 'y'\npos-label = 'yes'\nevery = '1mo'", encoding="utf-8")
    assert main(["auc", "rows.csv", "--score", "s"]) == 0


DECISIONS = ["rows.csv", "--selected", "d", "--attribute", "g"]
SUMMARY = ["--source", "all", "--distribution-date", "2026-01-15"]


@pytest.mark.parametrize(
    ("call", "settings"),
    [
        (["impact", *DECISIONS, "--favorable", "selected"], "score = ['s']\nthreshold = 3\n"),
        (["new-york", *DECISIONS, *SUMMARY], "score = ['s']\n"),
        (["audit", *DECISIONS, "--favorable", "selected"], ""),
        (["audit", *DECISIONS, "--favorable", "selected"], "threshold = 3\n"),
    ],
)
def test_options_for_all_commands_give_way_where_a_command_takes_none(
    call: list[str], settings: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main([*call, "-o", "alone.json"]) == 0
    SETTINGS.write_text(f"pos-label = 'yes'\n{settings}", encoding="utf-8")
    monkeypatch.setenv("POLARS_WROC_LABEL", "y")
    assert main([*call, "-o", "settings.json"]) == 0
    alone, with_settings = (
        json.loads(Path(name).read_text(encoding="utf-8"))
        for name in ("alone.json", "settings.json")
    )
    tables = [
        each.get("table", each) if isinstance(each, dict) else each
        for each in (alone, with_settings)
    ]
    assert tables[0] == tables[1]


def test_impact_neither_lists_nor_takes_a_label(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["impact", "--help"]) == 0
    assert "-label" not in capsys.readouterr().out
    assert main(["impact", *DECISIONS, "--favorable", "selected", "--label", "y"]) == 2
    assert capsys.readouterr().err.startswith(
        "polars-wroc: impact is about how often people are selected, and takes no --label"
    )


def test_a_score_of_the_call_comes_before_decisions_for_all_commands() -> None:
    call = ["impact", "rows.csv", "--score", "s", "--threshold", "3", "--attribute", "g"]
    call += ["--favorable", "selected", "-o"]
    assert main([*call, "alone.csv"]) == 0
    SETTINGS.write_text("selected = 'd'", encoding="utf-8")
    assert main([*call, "settings.csv"]) == 0
    assert Path("settings.csv").read_bytes() == Path("alone.csv").read_bytes()


def test_an_option_that_does_not_fit_the_file_is_said_to_come_from_elsewhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["auc", "rows.csv", "--score", "s"]
    monkeypatch.setenv("POLARS_WROC_LABEL", "no")
    assert main(call) == 2
    assert "; --label comes from the variable POLARS_WROC_LABEL\n" in capsys.readouterr().err
    SETTINGS.write_text('label = "nil"\n', encoding="utf-8")
    assert main(call) == 2
    assert "; --label comes from wroc.toml\n" in capsys.readouterr().err
    SETTINGS.write_text('[auc]\nlabel = "nil"\n', encoding="utf-8")
    assert main(call) == 2
    assert "; --label comes from wroc.toml [auc]\n" in capsys.readouterr().err
    assert main([*call, "--label", "nil"]) == 2
    assert "comes from" not in capsys.readouterr().err


def test_columns_for_all_commands_are_left_out_of_counts_and_releases(
    capsys: pytest.CaptureFixture[str],
) -> None:
    SETTINGS.write_text('label = "y"\nscore = "s"\npos-label = "yes"\n', encoding="utf-8")
    assert main(["counts", "rows.csv", "-o", "counts.parquet"]) == 0
    assert main(["auc", "rows.csv", "-o", "x.json"]) == 0
    assert main(["auc", "counts.parquet", "-o", "y.json"]) == 0
    found = [json.loads(Path(name).read_text(encoding="utf-8")) for name in ("x.json", "y.json")]
    assert found[1][0]["auc"] == pytest.approx(found[0][0]["auc"])
    assert main(["release", "rows.csv", "--old", "s", "--new", "d"]) == 0
    capsys.readouterr()
    assert main(["auc", "counts.parquet", "--label", "y"]) == 2
    assert "--label needs rows, and counts.parquet has counts" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('level = "x"', "Invalid value for --level from wroc.toml: unable to convert"),
        ('[auc]\nlevel = "x"', "Invalid value for --level from wroc.toml [auc]: unable to convert"),
        ("rows = 0", "whole number above 0; found '0'; --rows comes from wroc.toml; see"),
    ],
)
def test_a_value_that_cannot_be_read_is_said_to_come_from_the_file(
    text: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    SETTINGS.write_text(text, encoding="utf-8")
    call = ["auc", "rows.csv", "--label", "y", "--pos-label", "yes", "--score", "s"]
    assert main(call) == 2
    assert said in capsys.readouterr().err
