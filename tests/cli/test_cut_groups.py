"""`--by age:18,30`: ranges of numbers, named and in order, and names with colons."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import polars_wroc as wroc
from polars_wroc.cli import main
from polars_wroc.cli.values import read_group

DAY = dt.date(2026, 5, 17)
AGES = [17, 18, 29, 30, 49, 50, None]


def cut(frame: pl.DataFrame, text: str) -> pl.Series:
    return frame.select(read_group("--by", text, frame.schema)).to_series()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("18,30,50", ["<18", "18-29", "18-29", "30-49", "30-49", "50+", None]),
        ("18,19, 50", ["<18", "18", "19-49", "19-49", "19-49", "50+", None]),
        ("50", ["<50"] * 5 + ["50+", None]),
        ("-5,30", ["-5 to 29"] * 3 + ["30+"] * 3 + [None]),
        (f"50,{2**62}", ["<50"] * 5 + [f"50-{2**62 - 1}", None]),
        (f"50,{2**64}", ["<50"] * 5 + [f"50 to <{2.0**64}", None]),
        ("18.0,0050", ["<18"] + ["18-49"] * 4 + ["50+", None]),
        ("50,1e30", ["<50"] * 5 + ["50 to <1e+30", None]),
        ("17.5,30", ["<17.5"] + ["17.5 to <30"] * 2 + ["30+"] * 3 + [None]),
    ],
)
def test_names_of_ranges(text: str, names: list[str | None]) -> None:
    found = cut(pl.DataFrame({"age": AGES}), f"age:{text}")
    assert found.to_list() == names
    assert found.name == "age"
    assert isinstance(found.dtype, pl.Enum)


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt64, pl.Float32, pl.Decimal(10, 2)])
def test_types_of_numbers(dtype: Any) -> None:
    found = cut(pl.DataFrame({"age": pl.Series(AGES, dtype=dtype)}), "age:18,300")
    name = "18-299" if dtype in (pl.Int8, pl.UInt64) else "18 to <300"
    assert found.to_list() == ["<18", *[name] * 5, None]


def test_dates_are_cut_into_periods() -> None:
    times = pl.DataFrame({"day": [DAY, None], "at": [dt.datetime(2026, 5, 17, 8), None]})  # noqa: DTZ001
    assert cut(times, "day:1mo").to_list() == ["2026-05", None]
    assert cut(times, "at:1q").to_list() == ["2026-Q2", None]
    assert cut(times, "day:1y").to_list() == ["2026", None]
    assert cut(times, "day:2mo").to_list() == [dt.date(2026, 5, 1), None]
    assert cut(times, "at:1w").to_list() == [dt.date(2026, 5, 11), None]
    assert cut(times, "at:6h").to_list() == ["2026-05-17 06:00", None]


def test_periods_of_a_csv_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.csv"
    days = ["2026-01-05", "2026-01-20", "2026-02-03"]
    pl.DataFrame({"y": [0, 1, 1], "s": [1, 2, 3], "day": days}).write_csv(path)
    call = ["auc", str(path), "--label", "y", "--score", "s", "--by", "day:1mo", "-o", "-"]
    assert main(call) == 0
    rows = pl.read_json(capsys.readouterr().out.encode())
    assert rows.select("day", "n").rows() == [("2026-01", 2), ("2026-02", 1)]


def test_no_number_is_in_no_range() -> None:
    found = cut(pl.DataFrame({"x": [float("nan"), float("inf"), -float("inf"), 0.0]}), "x:0,1")
    assert found.to_list() == [None, "1+", "<0", "0 to <1"]


@given(
    st.lists(st.floats(-1e6, 1e6), max_size=20),
    st.lists(st.integers(-999, 999), min_size=1, max_size=5, unique=True),
)
def test_each_number_begins_a_range(values: list[float], edges: list[int]) -> None:
    edges.sort()
    found = cut(
        pl.DataFrame({"x": values}, schema={"x": pl.Float64}), f"x:{','.join(map(str, edges))}"
    )
    names = found.dtype.categories.to_list()  # type: ignore[attr-defined]
    ends = [float("-inf"), *edges, float("inf")]
    expected = [
        name
        for value in values
        for name, (low, high) in zip(names, pairwise(ends), strict=True)
        if low <= value < high
    ]
    assert found.to_list() == expected


def test_columns_with_colons() -> None:
    frame = pl.DataFrame({"a:1,2": [1.5], "a": [1.5], "b:c": [3], "d,e": [1]})
    assert cut(frame, "a:1,2").to_list() == [1.5]
    assert cut(frame, "a:1,3").to_list() == ["1 to <3"]
    assert cut(frame, "b:c").to_list() == [3]
    assert cut(frame, "b:c:3").to_list() == ["3+"]
    assert cut(frame, "d,e:0").to_list() == ["0+"]


@pytest.mark.parametrize("listed", ["", "x", "30,18", "18,18", "1,nan", "inf", "18,,30", "1e999"])
def test_what_is_no_list_of_increasing_numbers(listed: str) -> None:
    rule = "look like age:18,30,50 with increasing numbers"
    with pytest.raises(ValueError, match=f"^--by must {rule}; found 'age:{listed}'$"):
        cut(pl.DataFrame({"age": AGES}), f"age:{listed}")


def test_texts_are_not_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.parquet"
    pl.DataFrame({"y": [0, 1], "s": [1, 2], "g": ["a", "b"], "d": [DAY] * 2}).write_parquet(path)
    for by, said in (
        ("g:1", "--by g:1 must name numbers, dates or times; found column 'g' of String"),
        ("no:1", f"--by must name a column of {path}; found no column 'no:1'"),
        ("s:x", "--by must look like s:18,30,50"),
        ("d:month", "--by must look like d:1mo, a length of time; found 'd:month'"),
    ):
        assert main(["auc", str(path), "--label", "y", "--score", "s", "--by", by]) == 2
        assert said in capsys.readouterr().err


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pl.DataFrame:
    monkeypatch.chdir(tmp_path)
    rows = pl.DataFrame(
        {
            "y": [k % 3 == 0 for k in range(400)],
            "s": [k * 37 % 101 / 100 for k in range(400)],
            "age": [15 + k * 13 % 60 for k in range(400)],
            "hired": [k % 7 < 3 for k in range(400)],
        }
    )
    rows.write_parquet("rows.parquet")
    ages = ["<18" if age < 18 else "18-29" if age < 30 else "30+" for age in rows["age"]]
    return rows.with_columns(age=pl.Series(ages))


BY = ["--by", "age:18,30"]
COLUMNS = ["--label", "y", "--score", "s", *BY]


def test_tables_by_ranges(rows: pl.DataFrame) -> None:
    assert main(["auc", "rows.parquet", *COLUMNS, "-o", "x.csv"]) == 0
    expected = wroc.summary(rows, "y", "s", by="age").sort(pl.col("age") != "<18", "age")
    found = pl.read_csv("x.csv")
    assert_frame_equal(found, expected, rel_tol=1e-9)
    call = [
        "impact",
        "rows.parquet",
        "--selected",
        "hired",
        "--favorable",
        "selected",
        "--attribute",
        BY[1],
        "--reference",
        "age=30+",
    ]
    assert main([*call, "-o", "x.csv"]) == 0
    ratios = wroc.impact_ratios(
        rows, selected="hired", favorable="selected", attributes="age", reference={"age": "30+"}
    )
    found = pl.read_csv("x.csv").sort("segment").select("segment", "n", "ratio")
    assert_frame_equal(found, ratios.sort("segment").select(found.columns), rel_tol=1e-9)


def test_counts_by_ranges_and_ranges_of_counts(rows: pl.DataFrame) -> None:
    assert main(["counts", "rows.parquet", *COLUMNS, "-o", "cut.parquet"]) == 0
    plain = [*COLUMNS[:-1], "age", "-o", "plain.parquet"]
    assert main(["counts", "rows.parquet", *plain]) == 0
    tables = []
    for file, by in (("cut", ["--by", "age"]), ("plain", BY)):
        assert main(["auc", f"{file}.parquet", *by, "-o", "x.parquet"]) == 0
        tables.append(pl.read_parquet("x.parquet").cast({"age": pl.String}))
    assert_frame_equal(*tables)
    expected = wroc.summary(rows, "y", "s", by="age")
    assert_frame_equal(tables[0].sort("age"), expected.sort("age"), rel_tol=1e-9)


@pytest.mark.slow(reason="runs several commands")
@pytest.mark.usefixtures("rows")
def test_reports_and_charts_by_ranges() -> None:
    assert main(["audit", "rows.parquet", *COLUMNS[:4], "--attribute", BY[1], "-o", "x.html"]) == 0
    assert "18-29" in Path("x.html").read_text(encoding="utf-8")
    assert main(["auc", "rows.parquet", *COLUMNS, "-o", "x.svg"]) == 0
    drawn = Path("x.svg").read_text(encoding="utf-8")
    assert 0 < drawn.index("&lt;18") < drawn.index("18-29") < drawn.index("30+")


@pytest.mark.parametrize(
    ("command", "flag"),
    [("auc", "--by"), ("gaps", "--attribute"), ("audit", "--attribute")],
)
def test_groups_of_each_age_advise_ranges(
    command: str, flag: str, rows: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    del rows
    call = [command, "rows.parquet", "--label", "y", "--score", "s"]
    assert main([*call, flag, "age"]) == 0
    said = capsys.readouterr().err
    assert "each of the 60 values of age is a group: if it is a quantity, cut it into " in said
    advised = said.split()[-1]
    assert advised.startswith("age:")
    assert main([*call, flag, advised]) == 0
    assert capsys.readouterr().err == ""


def test_groups_of_each_day_advise_periods(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "days.parquet"
    days = [DAY + dt.timedelta(days) for days in range(40)]
    pl.DataFrame({"y": [0, 1] * 20, "s": range(40), "d": days}).write_parquet(path)
    assert main(["auc", str(path), "--label", "y", "--score", "s", "--by", "d"]) == 0
    assert "40 values of d is a group: cut it into periods by --by d:1mo" in capsys.readouterr().err
