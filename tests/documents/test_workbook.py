"""Workbooks, as another library reads them: the numbers of the frames, their formats, and names."""

from __future__ import annotations

import datetime as dt
import hashlib
import sys
from pathlib import Path
from typing import Any

import openpyxl
import polars as pl
import pytest
from openpyxl.worksheet.worksheet import Worksheet

import polars_wroc as wroc
from polars_wroc.cli import main
from polars_wroc.documents import workbook
from polars_wroc.documents.workbook import write_workbook

MADE = dt.datetime(2026, 3, 9, 12, 30, tzinfo=dt.UTC)
# How the values and the gaps of metrics are shown.
PERCENT, POINTS = "0.0%", "+0.0%;-0.0%;0.0%"
NUMBER, DIFFERENCE = "#,##0.000", "+0.000;-0.000;0.000"
FORMATS = {
    **dict.fromkeys(("selection_rate", "tpr", "fpr", "ppv", "npv", "accuracy"), (PERCENT, POINTS)),
    "demographic_parity_difference": (PERCENT, POINTS),
    "mean_calibration_error": (POINTS, POINTS),
    "auc": (NUMBER, DIFFERENCE),
    "average_precision": (NUMBER, DIFFERENCE),
    "impact_ratio": ("0.00", ""),
}


def write(table: pl.DataFrame, path: Path) -> Worksheet:
    """Write a table as a workbook, and read its sheet."""
    write_workbook("Title", [], {"table": table}, path, MADE)
    return openpyxl.load_workbook(path)["table"]


def values_of(sheet: Worksheet) -> list[tuple[Any, ...]]:
    return [tuple(cell.value for cell in row) for row in sheet.iter_rows()]


def facts_of(path: Path) -> dict[str, Any]:
    about = openpyxl.load_workbook(path)["About"]
    return {row[0].value: row[1].value for row in about.iter_rows(min_row=3)}


@pytest.fixture(scope="module")
def audit() -> wroc.Audit:
    """An audit with crossed groups, one of which begins like a formula."""
    loans = wroc.data.loans().rename({"race": "=race"})
    hostile = pl.when(pl.col("=race") == "black").then(pl.lit("=1+1")).otherwise("=race")
    return wroc.audit(
        loans.with_columns(hostile.alias("=race")),
        "approved",
        "score",
        attributes=["=race", "sex"],
        intersections=True,
        threshold=0.85,
        favorable="selected",
    )


@pytest.fixture(scope="module")
def book(audit: wroc.Audit, tmp_path_factory: pytest.TempPathFactory) -> openpyxl.Workbook:
    path = tmp_path_factory.mktemp("book") / "x.xlsx"
    audit.save(path)
    return openpyxl.load_workbook(path)


@pytest.mark.parametrize("name", ["table", "segments", "curves", "missing"])
def test_sheets_have_the_numbers_of_the_frames(
    name: str, audit: wroc.Audit, book: openpyxl.Workbook
) -> None:
    header, *rows = values_of(book[name])
    table: pl.DataFrame = getattr(audit, name)
    others = [column for column in table.columns if column != "segment"]
    assert [column for column in header if column not in ("=race", "sex")] == others
    assert len(rows) == table.height
    for row, expected in zip(rows, table.iter_rows(named=True), strict=True):
        found = dict(zip(header, row, strict=True))
        for column in others:
            value = expected[column]
            if isinstance(value, float) and value != float("inf"):
                # A workbook keeps 16 digits.
                assert found[column] == pytest.approx(value, rel=1e-15)
            else:
                assert found[column] == ("inf" if value == float("inf") else value)
    assert {cell.data_type for row in book[name].iter_rows() for cell in row} <= {"s", "n", "b"}


def test_crossed_groups_have_a_column_for_each_attribute(
    audit: wroc.Audit, book: openpyxl.Workbook
) -> None:
    header, *rows = values_of(book["segments"])
    assert header[:3] == ("attribute", "=race", "sex")
    expected = []
    for attribute, segment in audit.segments.select("attribute", "segment").iter_rows():
        name = segment or "(missing)"
        expected.append(
            {
                "overall": (None, None),
                "=race": (name, None),
                "sex": (None, name),
            }.get(attribute, tuple(name.split(", ")))
        )
    assert [row[1:3] for row in rows] == expected
    assert ("=1+1", "female") in expected


def test_groups_that_are_not_crossed_stay_in_one_column(tmp_path: Path) -> None:
    table = pl.DataFrame({"attribute": ["sex", "sex"], "segment": ["f, g", None], "n": [1, 2]})
    rows = [("attribute", "segment", "n"), ("sex", "f, g", 1), ("sex", "(missing)", 2)]
    assert values_of(write(table, tmp_path / "x.xlsx")) == rows


@pytest.mark.parametrize(
    ("segment", "parts"),
    [
        ("a, b", ("a", "b")),
        ("unknown to the table, b", ("unknown to the table", "b")),
        ("a, b, c", ("a, b", "c")),
        ("x, y, z", ("x, y, z", None)),
        ("none, of, these", ("none, of, these", None)),
    ],
)
def test_names_of_crossed_groups_are_split(
    segment: str, parts: tuple[str, str | None], tmp_path: Path
) -> None:
    known = {"p": ["a", "a, b", "x", "x, y"], "q": ["b", "c", "z", "y, z"]}
    groups = [(attribute, name) for attribute, names in known.items() for name in names]
    groups.append(("p \N{MULTIPLICATION SIGN} q", segment))
    table = pl.DataFrame(groups, schema=["attribute", "segment"], orient="row")
    assert values_of(write(table, tmp_path / "x.xlsx"))[-1][1:3] == parts


def test_shares_are_shown_in_percent_and_counts_with_commas(book: openpyxl.Workbook) -> None:
    header, *rows = book["table"].iter_rows()
    places = {cell.value: place for place, cell in enumerate(header)}
    seen = set()
    for row in rows:
        metric = row[places["metric"]].value
        value, gap, ratio = (row[places[name]] for name in ("value", "gap", "ratio"))
        assert row[places["n"]].number_format == "#,##0"
        if metric in FORMATS:
            seen.add(metric)
            expected = FORMATS[metric]
            assert value.value is None or value.number_format == expected[0]
            assert gap.value is None or gap.number_format == expected[1]
            assert ratio.value is None or ratio.number_format == "0.00"
    assert seen == {*FORMATS}
    rates = [*book["curves"].iter_rows()]
    place = [cell.value for cell in rates[0]].index("tpr")
    assert rates[1][place].number_format == "0.0%"


def test_whole_numbers_that_name_groups_have_no_commas(tmp_path: Path) -> None:
    table = pl.DataFrame({"year": [2025], "n": [1172], "w_pos": [1172.0], "p_value": [1e-9]})
    sheet = write(table, tmp_path / "x.xlsx")
    formats = [cell.number_format for cell in sheet[2]]
    assert formats == ["0", "#,##0", "#,##0", '[<0.001]"<0.001";0.000']
    assert [cell.value for cell in sheet[2]] == [2025, 1172, 1172, 1e-9]


def test_headers_stay_and_columns_are_as_wide_as_their_texts(book: openpyxl.Workbook) -> None:
    for sheet in book.worksheets[1:]:
        assert sheet.freeze_panes == "A2"
        assert sheet.auto_filter.ref == sheet.dimensions
        assert sheet.print_title_rows == "$1:$1"
    widths = {
        cell.value: book["table"].column_dimensions[cell.column_letter].width
        for cell in book["table"][1]
    }
    assert widths["metric"] >= len("demographic_parity_difference")
    assert 40 < widths["sentence"] < 60


def test_the_first_sheet_says_what_the_workbook_is(
    audit: wroc.Audit, book: openpyxl.Workbook
) -> None:
    assert book.sheetnames == ["About", "table", "segments", "curves", "missing"]
    about = book["About"]
    assert about["A1"].value == "Fairness audit of “score” by =race and sex"
    rows = [(row[0].value, row[1].value) for row in about.iter_rows(min_row=3)]
    facts = dict(rows)
    assert facts["Audited"].startswith("1,989 rows, 88% of them approved (the outcome).")
    assert facts["Answer"] == audit.verdict
    assert facts["Date (UTC)"] == audit.run.date.replace(tzinfo=None)
    assert (facts["Setting: threshold"], facts["Setting: min_rows"]) == (0.85, 30)
    assert facts["Setting: attributes"] == "=race, sex"
    assert ("Limit", "Only =race and sex were compared; other groups may differ.") in rows


def test_the_command_names_files_with_their_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    wroc.data.loans().write_parquet("folder/loans.parquet")
    content = hashlib.sha256(Path("folder/loans.parquet").read_bytes()).hexdigest()
    columns = ["folder/loans.parquet", "--label", "approved", "--score", "score"]
    calls = {
        "audit.xlsx": ["audit", *columns, "--attribute", "race"],
        "gaps.xlsx": ["gaps", *columns, "--attribute", "race", "--threshold", "0.85"],
        "calibration.xlsx": ["calibrate", *columns],
    }
    for name, call in calls.items():
        assert main([*call, "-o", name]) == 0
        facts = facts_of(Path(name))
        assert facts["File"] == "loans.parquet"
        assert facts["Rows"] == 1989
        assert facts["SHA-256"] == content
        assert facts["Command"].startswith(f"polars-wroc {call[0]} loans.parquet ")
    answer = facts_of(Path("gaps.xlsx"))["Answer"]
    assert answer.startswith("Different from the rest, in points: ")
    loans = wroc.data.loans()
    expected = wroc.group_gaps(loans, "approved", "score", attributes="race", threshold=0.85)
    header, *rows = values_of(openpyxl.load_workbook("gaps.xlsx")["table"])
    assert list(header) == expected.columns
    place = header.index("value")
    assert [row[place] for row in rows] == pytest.approx(expected["value"].to_list())


def test_a_file_depends_on_nothing_but_its_contents(tmp_path: Path) -> None:
    table = pl.DataFrame({"x": [1.5]})
    for name in ("x.xlsx", "y.xlsx"):
        write(table, tmp_path / name)
    assert (tmp_path / "x.xlsx").read_bytes() == (tmp_path / "y.xlsx").read_bytes()


def test_values_that_a_sheet_has_no_number_for_are_texts(tmp_path: Path) -> None:
    table = pl.DataFrame(
        {
            "x": [1.5, float("nan"), float("inf"), None],
            "=t": ["a", "=1", "", "é"],
            "N": [2**53, 2**53 + 1, 0, -1],
            "n": [True, False, None, None],
            "day": [dt.date(2026, 3, 9), dt.date(1850, 1, 1), None, None],
            "time": [dt.datetime(2026, 3, 9, 1, 2, 3, tzinfo=dt.UTC), None, None, None],
            "list": [[1, 2], [3], None, None],
        }
    )
    rows = values_of(write(table, tmp_path / "x.xlsx"))
    # Sheets know no time zones.
    day = dt.datetime(2026, 3, 9, tzinfo=dt.UTC).replace(tzinfo=None)
    moment = day.replace(hour=1, minute=2, second=3)
    assert rows == [
        ("x", "=t", "N", "n", "day", "time", "list"),
        (1.5, "a", 2**53, True, day, moment, "1, 2"),
        (None, "=1", str(2**53 + 1), False, "1850-01-01", None, "3"),
        ("inf", "", 0, None, None, None, None),
        (None, "é", -1, None, None, None, None),
    ]


def test_what_cannot_be_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pl.DataFrame({"x": [1, 2]})
    with monkeypatch.context() as patched:
        patched.setattr(workbook, "_MOST_ROWS", 1)
        with pytest.raises(ValueError, match="`path` must have another format for more than 1 ro"):
            write(table, tmp_path / "y.xlsx")
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    with pytest.raises(ImportError, match=r"pip install 'polars-wroc\[report\]'"):
        write(table, tmp_path / "y.xlsx")
    assert not (tmp_path / "y.xlsx").exists()
