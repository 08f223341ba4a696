"""Tables that fit a screen: what is shown, what is cut, and what is said about it."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polars_wroc.audits.table_pages import Screen, fitted_table, limits_in_text

TABLE = pl.DataFrame({"g": ["a", "b", "c"], "n": [1, 2, 3], "auc": [0.5, 0.6, 0.7], "t": ["x"] * 3})
SHORT = TABLE.select("g", "n", "auc")


def test_columns_that_fit_come_after_those_that_must() -> None:
    def heading(width: int, least: int) -> str:
        return fitted_table(TABLE, TABLE, Screen(width), ["g"], least).splitlines()[0]

    assert heading(80, 1).split() == ["g", "n", "auc", "t"]
    assert heading(11, 1).split() == ["g", "n", "auc"]
    assert heading(10, 1).split() == ["g", "n"]
    # No table is wider than its screen.
    assert heading(10, 2).split() == ["g", "n"]


def test_limits() -> None:
    table = pl.DataFrame({"low": [-0.0123, None], "high": [1.0, 0.5]})
    assert limits_in_text(table, "low", "high").to_list() == ["-0.012 to 1.000", None]


def test_rows_that_are_left_out_are_counted() -> None:
    screen = Screen(80, 2, more_rows="--rows all", more_columns="--columns all")
    lines = fitted_table(TABLE, SHORT, screen, ["g"], 2).splitlines()
    assert [line[0] for line in lines[:3]] == ["g", "a", "b"]
    assert lines[3:] == ["1 more row: --rows all; all 4 columns: --columns all"]
    assert len(fitted_table(TABLE, SHORT, Screen(80, 3), ["g"], 2).splitlines()) == 4
    assert fitted_table(TABLE, SHORT, Screen(80, 1), ["g"], 2).endswith("\n2 more rows")


def test_columns_that_are_asked_for() -> None:
    screen = Screen(80, columns=["t", "n", "t"], more_columns="--columns all")
    assert fitted_table(TABLE, SHORT, screen, ["g"], 2).splitlines()[:2] == ["g  t  n", "a  x  1"]
    everything = fitted_table(TABLE, SHORT, Screen(80, columns="all"), ["g"], 2)
    assert everything.splitlines()[0].split() == TABLE.columns
    with pytest.raises(ValueError, match=r"must be all, or columns out of g, n, auc, t; found 'm'"):
        fitted_table(TABLE, SHORT, Screen(80, columns=["n", "m"]), ["g"], 2)


@pytest.mark.slow
@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=12),
    st.integers(1, 60),
    st.integers(50, 90),
)
def test_blocks_have_each_column_once_next_to_the_groups(
    widths: list[int], key: int, width: int
) -> None:
    wide = {f"{i:02}".ljust(taken, "x"): [1] for i, taken in enumerate(widths)}
    table = pl.DataFrame({"g": ["k" * key], **wide})
    text = fitted_table(table, table, Screen(width, columns="all"), ["g"], 1)
    blocks = [block.splitlines() for block in text.split("\n\n")]
    assert [name for block in blocks for name in block[0].split()[1:]] == [*wide]
    for block in blocks:
        assert len(block) == 2
        assert max(map(len, block)) <= width
        assert block[1].startswith("k")
