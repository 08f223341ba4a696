"""All columns of a table by their names, in plain numbers."""

from __future__ import annotations

import math
import re

import polars as pl
import pytest

from polars_wroc.documents.table_layout import lay_out_columns, write_column
from polars_wroc.documents.text_writer import Terminal, write_text


def test_numbers_are_aligned_and_null_is_empty() -> None:
    table = pl.DataFrame({"g": ["a", "bb"], "n": [12345, 1], "auc": [0.5, None], "t": ["x", "y"]})
    assert write_text([lay_out_columns(table, ["g"])], Terminal()).splitlines() == [
        "g        n    auc  t",
        "a   12,345  0.500  x",
        "bb       1         y",
    ]


@pytest.mark.parametrize("width", [20, 24, 30])
def test_the_widest_keys_are_cut_first(width: int) -> None:
    table = pl.DataFrame({"g": ["a" * 39 + "z"], "h": ["b" * 9], "n": [1]})
    laid_out = lay_out_columns(table, ["g", "h"], essential=["n"])
    heading, line = write_text([laid_out], Terminal(width)).splitlines()
    assert len(line) == width
    assert len(heading) == width
    long, short, number = line.split()
    # What tells names apart is often at their end.
    assert re.fullmatch("a+…a*z", long)
    assert abs(len(long) - len(short)) <= 1 or short == "b" * 9
    assert number == "1"


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("tp", [963.0, None, 12_345.0], ["963", "", "12,345"]),
        ("tp", [963.5, 1.0], ["963.500", "1.000"]),
        ("tpr", [1.0, 0.0], ["1.000", "0.000"]),
        ("threshold", [math.inf, 2.0], ["inf", "2.000"]),
        ("p_value", [0.0, 3e-15, 0.001, None], ["<0.001", "<0.001", "0.001", ""]),
        ("gap_low", [0.051, -0.2, 0.0], ["+0.051", "\N{MINUS SIGN}0.200", "0.000"]),
        ("auc_se", [3e-15], ["3e\N{MINUS SIGN}15"]),
        ("n", [1234, None], ["1,234", ""]),
        ("day", [-1234, 0], ["\N{MINUS SIGN}1,234", "0"]),
        ("g", ["a\nb", None], ["a\nb", ""]),
    ],
)
def test_numbers_by_columns(name: str, values: list[float | None], expected: list[str]) -> None:
    assert write_column(pl.Series(name, values)) == expected


def test_verdicts_are_colored_and_names_are_not() -> None:
    verdicts = ["no worse (why)", "worse", "different", "inconclusive"]
    table = pl.DataFrame({"g": ["worse"] * 4, "verdict": verdicts})
    text = write_text([lay_out_columns(table, ["g"])], Terminal(colored=True))
    assert text.splitlines() == [
        "\x1b[1mg      verdict\x1b[0m",
        "worse  \x1b[2mno worse (why)\x1b[0m",
        "worse  \x1b[1;38;5;166mworse\x1b[0m",
        "worse  \x1b[1mdifferent\x1b[0m",
        "worse  inconclusive",
    ]
