# ruff: noqa: RUF001  (texts as they are printed)
"""Tables as people read them, from every public function that makes one, and others."""

from __future__ import annotations

import datetime as dt
import inspect
import os
import random
import re
from pathlib import Path
from unittest import mock

import polars as pl
import printed_tables
import pytest
from chromium import Chromium
from printed_tables import TABLES, table

import polars_wroc as wroc
from polars_wroc.documents.text_writer import text_width


def lines_of(table: object, width: int = 200, rows: int | None = 40) -> list[str]:
    """Show a table in a terminal of a width."""
    with mock.patch.dict(os.environ, COLUMNS=str(width)):
        return repr(wroc.show(table, rows=rows)).splitlines()


@pytest.mark.parametrize("file", printed_tables.PRINTED)
def test_printed_tables_are_those_of_the_files(file: str) -> None:
    text = (printed_tables.FOLDER / file).read_text(encoding="utf-8")
    assert printed_tables.PRINTED[file]() == text, "python tests/printed_tables.py renews it"


def test_every_function_that_makes_a_table_is_shown() -> None:
    functions = {
        name
        for name in wroc.__all__
        if inspect.isfunction(one := getattr(wroc, name))
        and inspect.signature(one).return_annotation in ("FrameT", "pl.DataFrame")
    }
    # These make columns of rows, counts of other counts, and a result of its own.
    others = {"at_horizon", "merge_counts", "audit_changes"}
    assert functions - others == {
        name.split()[0] for name in TABLES if name.split()[0] in functions
    }


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("width", [80, 100, 160])
def test_tables_fit_the_terminal(name: str, width: int) -> None:
    lines = lines_of(table(name), width)
    assert max(map(text_width, lines)) <= width
    count = f"{table(name).height:,} row"
    assert re.search(count, "\n".join(lines))


@pytest.mark.parametrize("name", TABLES)
def test_notebooks_show_every_row(name: str) -> None:
    shown = table(name)
    html = wroc.show(shown, rows=None)._repr_html_()
    rows = html.count('<th scope="row"')
    # The rates that impact ratios divide are beside them.
    assert rows == (shown.height // 2 if name == "impact_ratios" else shown.height)
    assert html.startswith('<div class="wroc"><style>')


@pytest.fixture
def gaps() -> pl.DataFrame:
    return table("group_gaps in one metric")


def test_gaps_are_in_points_below_their_attribute(gaps: pl.DataFrame) -> None:
    black = gaps.row(0, named=True)
    value, low, high = (100 * black[name] for name in ("value", "value_low", "value_high"))
    heading, attribute, line = lines_of(gaps)[:3]
    assert re.split(" {2,}", heading) == (
        ["group", "n", "selection rate", "others", "difference, points", "result", "p"]
    )
    assert attribute == "race"
    own = f"{value:.1f}% ({low:.1f} to {high:.1f})"
    found = ["", "black", "197", own, "80.2%", "−24.4 (−31.6 to −17.4)", "different", "<0.001"]
    assert re.split(" {2,}", line) == found
    assert lines_of(gaps)[-1] == "6 rows; 22 columns in the frame"


def test_a_gap_of_no_share_is_in_its_own_unit() -> None:
    text = "\n".join(lines_of(table("group_gaps")))
    assert "−0.036 (−0.132 to +0.051)" in text
    assert "−24.4 points (−31.6 to −17.4)" in text


def test_an_impact_ratio_is_beside_the_rates_that_it_divides() -> None:
    header, _, black = lines_of(table("impact_ratios"))[:3]
    assert header.split("  ")[0] == "group"
    found = (
        "55.8% (48.9 to 62.6)   81.0% (white)  0.69 (0.59 to 0.79)  below four fifths     <0.001"
    )
    assert black.endswith(found)


def test_a_fairness_criterion_has_the_number_that_it_is_named_for() -> None:
    lines = lines_of(table("fairness"))
    assert lines[1].endswith("+25.2 points (+16.8 to +33.8)       81.0%  55.8% (black)")
    assert lines[2].endswith("0.69 (0.59 to 0.79)       55.8%  81.0% (white)")


def test_both_scores_of_a_comparison_are_named() -> None:
    assert lines_of(table("compare"))[0].split("  ")[:2] == ["score", "other score"]
    assert lines_of(table("release_check"))[1].split()[3:5] == ["new", "score"]


def test_columns_that_say_nothing_are_left_out(gaps: pl.DataFrame) -> None:
    heading = lines_of(gaps)[0]
    for name in ("model", "metric", "detectable", "reason", "n_reference", "ratio"):
        assert name.replace("_", " ") not in heading
    missing = table("summary").with_columns(n_missing=pl.lit(3, pl.Int64))
    assert "missing" in lines_of(missing)[1]
    assert "missing" not in lines_of(table("summary"))[1]


def test_a_narrow_terminal_keeps_the_group_the_rows_and_the_result(gaps: pl.DataFrame) -> None:
    lines = lines_of(gaps, 56)
    assert lines[2] == "  black        197  55.8% (48.9 to 62.6)  different"
    assert " ".join(lines[-2:]) == (
        "6 rows; 22 columns in the frame; 3 more columns in a wider terminal"
    )


def test_intervals_go_before_estimates_do() -> None:
    lines = lines_of(table("threshold_metrics"), 100)
    assert lines[4].split() == (
        ["black", "0.5", "87.8%", "94.7%", "73.4%", "72.8%", "70.8%", "72.6%", "0.824"]
    )
    assert "more intervals and 5 more columns" in lines[-1]


def test_the_first_rows_of_many() -> None:
    curve = table("pr_curve")
    lines = lines_of(curve, rows=3)
    assert len(lines) == 5
    assert lines[-1] == "1,989 rows, the first 3 shown; 7 columns in the frame"
    assert len(lines_of(curve, rows=None)) == curve.height + 2


def test_counts_have_no_decimals_and_years_no_commas() -> None:
    years = pl.DataFrame({"year": [2019, 2020], "w_pos": [1234.0, 1.0], "auc": [0.5, None]})
    assert lines_of(years)[2:4] == ["2019      1,234  0.500", "2020          1      –"]


@pytest.mark.parametrize("name", ["direction", "n_region", "rank", "segment", "depth"])
def test_groups_may_have_any_name(name: str) -> None:
    renamed = table("threshold_metrics").rename({"race": name})
    lines = lines_of(renamed)
    assert lines[-2].split()[:2] == ["white", "0.5"]
    assert re.split(" {2,}", lines[2])[0] == name


def test_whole_numbers_that_name_groups_come_first() -> None:
    renamed = table("summary").with_columns(sex=pl.col("n") * 10).rename({"sex": "n_children"})
    lines = lines_of(renamed)
    assert lines[2].split()[:3] == ["2350", "score", "235"]


def test_other_tables_and_methods() -> None:
    lazy = printed_tables.LOANS.lazy()
    expected = lines_of(printed_tables.LOANS, rows=2)
    with mock.patch.dict(os.environ, COLUMNS="200"):
        assert repr(lazy.wroc.show(rows=2)).splitlines() == expected  # type: ignore[attr-defined]
        shown = printed_tables.LOANS.wroc.show(rows=2)  # type: ignore[attr-defined]
        assert repr(shown).splitlines() == expected
    assert lines_of(printed_tables.LOANS.to_arrow(), rows=2) == expected


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(TypeError, match="`table` must be a Polars DataFrame or LazyFrame"):
        wroc.show([1, 2])


NAMES = (
    *table("release_check").columns,
    *("mean_score", "observed_rate", "score_min", "score_max", "measure", "bin", "bin_low"),
    *("bin_high", "n_pos", "n_missing", "from_score", "to_score", "tpr", ""),
)
VALUES: tuple[object, ...] = (
    *(1, -1.5, float("nan"), float("inf"), 1e300, "x", "", None, True, [1], [], {"a": 1}),
    *(dt.date(2020, 1, 1), dt.timedelta(1), b"\xff", object(), "auc", "impact_ratio"),
)


@pytest.mark.parametrize("seed", range(100))
def test_tables_of_any_columns_are_shown(seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311  (no secret)
    columns = []
    for name in draw.sample(NAMES, draw.randint(0, 7)):
        value = draw.choice(VALUES)
        dtype = pl.Object if type(value) is object else None
        columns.append(pl.Series(name, [value, None, value][: draw.choice([3, 3, 0])], dtype))
    height = min(map(len, columns), default=0)
    drawn = pl.DataFrame([column[:height] for column in columns])
    assert f"{height} row" in "\n".join(lines_of(drawn))
    assert wroc.show(drawn)._repr_html_()


@pytest.mark.browser
@pytest.mark.parametrize(
    ("variables", "ink"),
    [
        ("", "rgb(28, 30, 33)"),
        ("--jp-content-font-color1: rgb(250, 250, 250)", "rgb(250, 250, 250)"),
        ("--vscode-editor-foreground: rgb(200, 200, 200)", "rgb(200, 200, 200)"),
    ],
)
def test_notebooks_give_their_colors(
    chromium: Chromium, gaps: pl.DataFrame, tmp_path: Path, variables: str, ink: str
) -> None:
    path = tmp_path / "notebook.html"
    html = wroc.show(gaps)._repr_html_()
    path.write_text(f"<style>:root{{{variables}}}</style>{html}", encoding="utf-8")
    chromium.show(path, until="document.querySelector('.wroc tbody th') !== null")
    color = "getComputedStyle(document.querySelector('.wroc tbody th')).color"
    assert chromium.evaluate(color) == ink
