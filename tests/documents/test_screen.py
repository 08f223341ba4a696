"""What a screen shows of a table: rows that are left out, and columns that are asked for."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polars_wroc.documents.blocks import TextBlock
from polars_wroc.documents.screen import Screen
from polars_wroc.documents.text_writer import write_text

TABLE = pl.DataFrame({"g": ["a", "b", "c"], "n": [1, 2, 3], "auc": [0.5, 0.6, 0.7], "t": ["x"] * 3})


def write_asked(screen: Screen, table: pl.DataFrame = TABLE) -> list[str]:
    return write_text([screen.lay_out_asked(table, ["g"])], screen.terminal).splitlines()


def test_rows_that_are_left_out_are_counted() -> None:
    assert write_asked(Screen(80, 2, "all", more_rows="--rows all"))[1:] == [
        "a  1  0.500  x",
        "b  2  0.600  x",
        "1 more row: --rows all",
    ]
    assert len(write_asked(Screen(80, 3, "all", more_rows="--rows all"))) == 4
    assert write_asked(Screen(80, 1, "all"))[-1] == "2 more rows"


def test_all_columns_are_counted_unless_some_are_asked_for() -> None:
    screen = Screen(80, 1, more_rows="--rows all", more_columns="--columns all")
    assert screen.count_left_out(TABLE) == "2 more rows: --rows all; all 4 columns: --columns all"
    asked = Screen(80, columns=["n"], more_columns="--columns all")
    assert asked.count_left_out(TABLE) == ""


def test_columns_that_are_asked_for() -> None:
    assert write_asked(Screen(80, columns=["t", "n", "t"]))[:2] == ["g  t  n", "a  x  1"]
    assert write_asked(Screen(80, columns="all"))[0].split() == TABLE.columns
    with pytest.raises(
        ValueError, match=r"must be all, or name columns of the table .g, n, auc, t.; found 'm'"
    ):
        write_asked(Screen(80, columns=["n", "m"]))


def test_a_pipe_breaks_no_line() -> None:
    sentence = "word " * 100
    assert len(write_text([TextBlock(sentence)], Screen(200).terminal).splitlines()) == 5
    assert write_text([TextBlock(sentence)], Screen(1_000_000).terminal) == sentence.strip()


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
    text = "\n".join(write_asked(Screen(width, columns="all"), table))
    blocks = [block.splitlines() for block in text.split("\n\n")]
    assert [name for block in blocks for name in block[0].split()[1:]] == [*wide]
    for block in blocks:
        assert len(block) == 2
        assert max(map(len, block)) <= width
        assert block[1].startswith("k")
