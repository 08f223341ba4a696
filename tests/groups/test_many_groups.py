"""Numbers and dates of which each value is a group are pointed out."""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_wroc as wroc
from polars_wroc.cli import main

DAY = dt.date(2026, 1, 1)
# Each value of `few` occurs, and 40 of the others.
ROWS = pl.DataFrame(
    {
        "y": [0, 1] * 40,
        "s": [place / 80 for place in range(80)],
        "age": [20 + place // 2 for place in range(80)],
        "income": [1000.0 * (place // 2) for place in range(80)],
        "day": [DAY + dt.timedelta(days=place // 2) for place in range(80)],
        "few": [place % 30 for place in range(80)],
        "text": [f"t{place // 2}" for place in range(80)],
    }
)
CALLS: dict[str, Callable[[Any], Any]] = {
    "group_gaps": lambda attributes: wroc.group_gaps(ROWS, "y", "s", attributes=attributes),
    "group_gaps, lazy": lambda attributes: wroc.group_gaps(
        ROWS.lazy(), "y", "s", attributes=attributes
    ).collect(),
    "audit": lambda attributes: wroc.audit(ROWS, "y", "s", attributes=attributes),
}


@pytest.mark.parametrize("name", CALLS)
def test_each_age_and_day_as_a_group_warns_once(name: str) -> None:
    with pytest.warns(UserWarning, match="is a group") as caught:
        CALLS[name](["age", "day", "text"])
    expected = (
        "each of the 40 values of age is a group: if it is a quantity, cut it into ranges by "
        "wroc.ranges('age', [30, 40, 49]); each of the 40 values of day is a group: cut it into "
        "periods by pl.col('day').dt.truncate('1mo')"
    )
    assert [str(each.message) for each in caught] == [expected]
    if "lazy" not in name:
        assert caught[0].filename == __file__


@pytest.mark.parametrize("name", CALLS)
def test_advised_ranges_and_few_numbers_do_not_warn(name: str) -> None:
    with pytest.warns(UserWarning, match=r"wroc.ranges\('income', \[10000, 20000, 29000\]\)$"):
        CALLS[name]("income")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CALLS[name](wroc.ranges("income", [10000, 20000, 29000]))
        CALLS[name](["few", "text"])


@pytest.mark.parametrize("command", ["audit", "gaps"])
def test_command_gives_its_own_advice_alone(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.parquet"
    ROWS.write_parquet(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call = [command, str(path), "--label", "y", "--score", "s", "--attribute", "age"]
        assert main(call) == 0
    assert capsys.readouterr().err == (
        "polars-wroc: each of the 40 values of age is a group: if it is a quantity, cut it into "
        "ranges by --attribute age:30,40,49\n"
    )
