"""Tables as text: what is cut, and how wide texts are on the screen."""

from __future__ import annotations

import math

import polars as pl
import pytest

from polars_wroc.audits.table_pages import limits_in_text, text_table, texts_of


def test_numbers_are_aligned_and_null_is_empty() -> None:
    table = pl.DataFrame({"g": ["a", "bb"], "n": [12345, 1], "auc": [0.5, None]})
    assert text_table(table, 80, ["g"]).splitlines() == [
        "g        n    auc",
        "a   12,345  0.500",
        "bb       1",
    ]


@pytest.mark.parametrize("width", [20, 24, 30])
def test_the_widest_names_are_cut_first(width: int) -> None:
    table = pl.DataFrame({"g": ["a" * 40], "h": ["b" * 9], "n": [1]})
    heading, line = text_table(table, width, ["g", "h"]).splitlines()
    assert len(line) == width
    assert len(heading) == width
    long, short, number = line.split()
    assert long.endswith("…")
    assert abs(len(long) - len(short)) <= 1 or short == "b" * 9
    assert number == "1"


def test_only_names_are_cut() -> None:
    table = pl.DataFrame({"g": ["a" * 40], "verdict": ["inconclusive"]})
    assert text_table(table, 10, ["g"]).splitlines()[1] == "aaa…  inconclusive"


def test_wide_and_unprintable_signs() -> None:
    table = pl.DataFrame({"g": ["日本国", "a\nb\x1b[2J", "e\u0301"], "n": [1, 2, 3]})
    assert text_table(table, 80, ["g"]).splitlines() == [
        "g        n",
        "日本国   1",
        "a b [2J  2",
        "e\u0301        3",
    ]
    assert text_table(table, 6, ["g"]).splitlines()[1] == "日…   1"


def test_limits() -> None:
    table = pl.DataFrame({"low": [-0.0123, None], "high": [1.0, 0.5]})
    assert limits_in_text(table, "low", "high").to_list() == ["-0.012 to 1.000", None]


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("tp", [963.0, None, 12_345.0], ["963", "", "12,345"]),
        ("tp", [963.5, 1.0], ["963.500", "1.000"]),
        ("tpr", [1.0, 0.0], ["1.000", "0.000"]),
        ("threshold", [math.inf, 2.0], ["inf", "2.000"]),
        ("p_value", [0.0, 3e-15, 0.001, None], ["<0.001", "<0.001", "0.001", ""]),
        ("gap_low", [0.051, -0.2, 0.0], ["+0.051", "-0.200", "0.000"]),
        ("auc_se", [3e-15], ["3e-15"]),
        ("n", [1234, None], ["1,234", ""]),
    ],
)
def test_numbers_by_columns(name: str, values: list[float | None], expected: list[str]) -> None:
    assert texts_of(pl.Series(name, values)) == expected


def test_verdicts_are_colored_and_names_are_not() -> None:
    table = pl.DataFrame(
        {"g": ["equivalent", "worse"], "verdict": ["equivalent", "no worse (why)"]}
    )
    assert text_table(table, 80, ["g"], colored=True).splitlines() == [
        "\x1b[1mg           verdict\x1b[0m",
        "equivalent  \x1b[32mequivalent\x1b[0m",
        "worse       \x1b[32mno worse (why)\x1b[0m",
    ]
