"""Counts on the command line: from files to states, states added up, and tables from them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from sweeps import sweep

import polars_wroc as wroc
from polars_wroc.cli import main

pytestmark = pytest.mark.usefixtures("folder")
GOOD = ("--favorable", "selected")
COLUMNS = ["--label", "y", "--score", "s", "--weight", "w"]


@pytest.fixture
def rows() -> pl.DataFrame:
    """900 weighted rows of three days, with tied scores and a missing label."""
    random = np.random.default_rng(7)
    size = 900
    positive = random.random(size) < 0.4
    return pl.DataFrame(
        {
            "day": np.repeat([1, 2, 3], size // 3),
            "y": positive,
            "s": np.round(1 / (1 + np.exp(-random.normal(size=size) - positive)), 2),
            "s2": random.random(size),
            "w": random.lognormal(size=size),
            "sex": random.choice(["f", "m"], size),
            "age": random.choice([20, 40], size),
        }
    ).with_columns(y=pl.when(pl.int_range(pl.len()) > 4).then("y"))


@pytest.fixture
def folder(tmp_path: Path, rows: pl.DataFrame, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with a file of rows and a file of counts for each day."""
    monkeypatch.chdir(tmp_path)
    for (day,), part in rows.group_by("day"):
        part.write_parquet(f"day{day}.parquet")
        counts = wroc.score_counts(part, "y", "s", weight="w", by=["sex", "age"])
        counts.write_parquet(f"counts{day}.parquet")
    rows.write_parquet("rows.parquet")
    return tmp_path


def read(path: str) -> pl.DataFrame:
    if path.endswith(".parquet"):
        return pl.read_parquet(path)
    return pl.read_csv(path) if path.endswith(".csv") else pl.read_json(path)


@pytest.mark.parametrize("output", ["x.parquet", "x.csv", "x.json", "-"])
@pytest.mark.parametrize("bins", [None, 64])
def test_counts_are_those_of_the_function(
    output: str,
    bins: int | None,
    rows: pl.DataFrame,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    call = ["counts", "day1.parquet", "day2.parquet", "day3.parquet", *COLUMNS, "--by", "sex"]
    more = [] if bins is None else ["--bins", str(bins)]
    assert main([*call, *more, "-o", output]) == 0
    printed = capsys.readouterr().out
    found = pl.DataFrame(json.loads(printed)) if output == "-" else read(output)
    expected = wroc.score_counts(rows, "y", "s", weight="w", by="sex", bins=bins)
    assert_frame_equal(found, expected, rel_tol=1e-9)
    assert len(list(folder.iterdir())) == 7 + (output != "-")


def test_counts_of_several_scores_and_a_positive_label(rows: pl.DataFrame) -> None:
    call = ["counts", "rows.parquet", "--label", "sex", "--pos-label", "m"]
    assert main([*call, "--score", "s", "--score", "s2", "-o", "x.parquet"]) == 0
    expected = wroc.score_counts(rows, "sex", ["s", "s2"], pos_label="m")
    assert_frame_equal(pl.read_parquet("x.parquet"), expected)
    assert main(["auc", "x.parquet", "-o", "auc.parquet"]) == 0
    auc = wroc.summary(rows, "sex", ["s", "s2"], pos_label="m")
    assert_frame_equal(pl.read_parquet("auc.parquet"), auc, abs_tol=1e-12)


def test_merged_days_are_the_counts_of_all_rows(rows: pl.DataFrame) -> None:
    sources = ["counts1.parquet", "counts2.parquet", "counts3.parquet"]
    expected = wroc.score_counts(rows, "y", "s", weight="w", by=["sex", "age"])
    for names in (sources, ["counts?.parquet"]):
        assert main(["counts", *names, "-o", "year.parquet"]) == 0
        assert_frame_equal(pl.read_parquet("year.parquet"), expected, rel_tol=1e-9)
    assert main(["counts", *sources, "--bins", "32", "-o", "bins.csv"]) == 0
    wide = wroc.score_counts(rows, "y", "s", weight="w", by=["sex", "age"], bins=32)
    assert_frame_equal(pl.read_csv("bins.csv"), wide, rel_tol=1e-9)


def test_files_of_several_formats_and_bins_are_merged(rows: pl.DataFrame) -> None:
    day = ["counts", "day1.parquet", *COLUMNS, "--by", "sex", "--by", "age", "--bins", "32"]
    assert main([*day, "-o", "counts1.csv"]) == 0
    call = ["counts", "counts1.csv", "counts2.parquet", "counts3.parquet", "-o", "x.parquet"]
    assert main(call) == 0
    expected = wroc.score_counts(rows, "y", "s", weight="w", by=["sex", "age"], bins=32)
    assert_frame_equal(pl.read_parquet("x.parquet"), expected, rel_tol=1e-9)


@pytest.mark.parametrize(
    "more", sweep([[], ["--threshold", "0.5", *GOOD], ["--threshold", "youden", *GOOD]])
)
def test_audit_of_counts_is_that_of_the_labeled_rows(
    more: list[str], rows: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    # Counts do not hold the scores of rows without a label.
    labeled = rows.with_columns(s=pl.when(pl.col("y").is_not_null()).then("s"))
    labeled.write_parquet("labeled.parquet")
    by = ["--attribute", "sex", "--attribute", "age", *more, "-o", "-"]
    assert main(["audit", "labeled.parquet", *COLUMNS, *by]) == 0
    expected = json.loads(capsys.readouterr().out)
    assert main(["audit", "counts1.parquet", "counts[23].parquet", *by]) == 0
    found = json.loads(capsys.readouterr().out)
    for table in ("segments", "table"):
        one, other = (pl.DataFrame(part[table]).drop("model") for part in (found, expected))
        assert_frame_equal(one, other, abs_tol=1e-9)


@pytest.mark.slow(reason="runs several commands")
def test_audit_of_counts_as_a_report_with_a_gate(capsys: pytest.CaptureFixture[str]) -> None:
    call = ["audit", "counts?.parquet", "--attribute", "sex"]
    assert main([*call, "-o", "x.html", "--fail-if", "auc.gap>0.9"]) == 0
    assert "<html" in Path("x.html").read_text()
    assert main([*call, "--fail-if", "auc.value>0.1"]) == 1
    assert "FAILED auc > 0.1 in " in capsys.readouterr().err


@pytest.mark.slow(reason="runs several commands")
def test_auc_and_curve_of_counts_are_those_of_the_rows(rows: pl.DataFrame) -> None:
    assert main(["auc", "counts?.parquet", "--by", "sex", "-o", "auc.parquet"]) == 0
    expected = wroc.summary(rows, "y", "s", weight="w", by="sex")
    assert_frame_equal(pl.read_parquet("auc.parquet"), expected, abs_tol=1e-9)
    assert main(["curve", "counts?.parquet", "-o", "curve.parquet"]) == 0
    curve = wroc.roc_curve(rows, "y", "s", weight="w")
    assert_frame_equal(pl.read_parquet("curve.parquet"), curve, abs_tol=1e-9)
    assert main(["curve", "counts?.parquet", "--by", "sex", "-o", "curve.svg"]) == 0
    assert "AUC" in Path("curve.svg").read_text()


def test_counts_in_wider_bins(rows: pl.DataFrame) -> None:
    call = ["auc", "counts?.parquet", "--approximate", "32", "-o", "auc.parquet"]
    assert main(call) == 0
    counts = wroc.score_counts(rows, "y", "s", weight="w", bins=32)
    expected = wroc.from_counts(counts).summary()
    assert_frame_equal(pl.read_parquet("auc.parquet"), expected, abs_tol=1e-9)


@pytest.mark.parametrize(
    ("command", "function"), [("auc", wroc.summary), ("curve", wroc.roc_curve)]
)
@pytest.mark.parametrize("bins", [None, 16])
def test_rows_are_taken_in_bins_if_asked_for(
    command: str, function: Callable[..., pl.DataFrame], bins: int | None, rows: pl.DataFrame
) -> None:
    call = [command, "rows.parquet", *COLUMNS, "--by", "sex", "-o", "x.parquet"]
    assert main([*call, *([] if bins is None else ["--approximate", str(bins)])]) == 0
    expected = function(rows, "y", "s", weight="w", by="sex", bins=bins)
    assert_frame_equal(pl.read_parquet("x.parquet"), expected, rel_tol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            ["auc", "counts1.parquet", "--label", "y"],
            "--label needs rows, and counts1.parquet has counts",
        ),
        (
            ["auc", "counts1.parquet", "--score", "s"],
            "--score needs rows, and counts1.parquet has counts",
        ),
        (
            ["auc", "counts1.parquet", "--pos-label", "1"],
            "--pos-label needs rows, and counts1.parquet has counts",
        ),
        (
            ["auc", "counts1.parquet", "--cluster", "c"],
            "--replicate-weights) needs rows, and counts1.parquet has counts",
        ),
        (
            ["auc", "day1.parquet", "--label", "y"],
            "--score must be given, unless files hold counts",
        ),
        (["counts", "day1.parquet", *COLUMNS], "-o FILE must be given"),
        (["counts", "counts1.parquet"], "-o FILE must be given"),
        (["counts", "counts1.parquet", "-o", "x.html"], "--output must end in one of .parquet, "),
        (["counts", "counts1.parquet", "-o", "counts1.parquet"], "must not be a file that is read"),
        (["counts", "counts?.parquet", "--bins", "0", "-o", "x.csv"], "--bins must be 16 or more"),
        (["auc", "counts1.parquet", "--by", "no"], "--by must name a column"),
        (
            ["counts", "counts1.parquet", "day2.parquet", "-o", "x.parquet"],
            "must be a table of polars-wroc counts; found no 'score' in ",
        ),
        (["counts", "day1.parquet", "--label", "y", "-o", "x.csv"], "--score must be given"),
        (["counts", "day1.parquet", "--score", "s", "--pos-label", "1", "-o", "x.csv"], "--label"),
    ],
)
def test_mistakes_with_counts(
    call: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(folder.iterdir())
    assert main(call) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 1
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("command", [["counts", "-o", "x.parquet"], ["auc"]])
def test_counts_of_other_groups_are_named(
    command: list[str], rows: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    other = wroc.score_counts(rows, "y", "s", by="sex")
    other.write_parquet("counts2.parquet")
    sources = ["counts1.parquet", "counts2.parquet", "counts3.parquet"]
    assert main([command[0], *sources, *command[1:]]) == 2
    assert capsys.readouterr().err == (
        "polars-wroc: FILE must all have the same groups; found "
        "age of type Int64 and sex of type String in counts1.parquet and "
        "sex of type String in counts2.parquet\n"
    )
    assert not Path("x.parquet").exists()


@pytest.mark.parametrize("command", [["counts", "-o", "x.parquet"], ["auc"]])
def test_counts_of_scores_with_fewer_bits_are_named(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    frame = pl.DataFrame({"y": [1, 0], "s": [0.7, 0.1]})
    for name, dtype in (("wide", pl.Float64), ("narrow", pl.Float32)):
        counts = wroc.score_counts(frame.cast({"s": dtype}), "y", "s")
        counts.write_parquet(f"{name}.parquet")
    first, *options = command
    files = ["wide.parquet", "narrow.parquet"]
    assert main([first, *files, *options] if "-o" in options else [*command, *files]) == 2
    said = capsys.readouterr().err
    assert "must not mix Float32 scores with scores of another type" in said
    assert "the score in narrow.parquet of type Float32" in said
    assert "the score in wide.parquet of type Float64" in said
    assert said.count("\n") == 1


def test_counts_that_are_no_numbers_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    damaged = pl.read_parquet("counts2.parquet").with_columns(w_pos=-pl.col("w_pos"))
    damaged.write_parquet("counts2.parquet")
    assert main(["counts", "counts?.parquet", "-o", "x.parquet"]) == 2
    message = capsys.readouterr().err
    assert "must hold numbers that are finite and zero or more in column 'w_pos'" in message
    assert message.count("\n") == 1
    assert not Path("x.parquet").exists()


IMPACT = [
    "--threshold",
    "0.6",
    "--favorable",
    "selected",
    "--attribute",
    "sex",
    "--attribute",
    "age",
    "--unknown",
    "20",
]


@pytest.mark.slow(reason="runs several commands")
def test_impact_ratios_of_counts_without_a_label(
    rows: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = ["--score", "s", "--weight", "w"]
    for day in (1, 2, 3):
        call = ["counts", f"day{day}.parquet", *columns, "--by", "sex", "--by", "age"]
        assert main([*call, "-o", f"plain{day}.csv"]) == 0
    assert main(["impact", "plain?.csv", *IMPACT, "-o", "x.parquet"]) == 0
    expected = wroc.impact_ratios(
        rows,
        "s",
        attributes=["sex", "age"],
        threshold=0.6,
        favorable="selected",
        weight="w",
        unknown=[20],
    )
    found = pl.read_parquet("x.parquet")
    # Counts do not know the name of their score.
    assert_frame_equal(found.drop("model"), expected.drop("model"), rel_tol=1e-9)
    capsys.readouterr()
    # Labels that are there do not matter, but those that are not there are missed.
    assert (
        main(
            [
                "impact",
                "counts1.parquet",
                "--threshold",
                "0.6",
                "--favorable",
                "selected",
                "--attribute",
                "sex",
            ]
        )
        == 0
    )
    for call in (
        ["auc", "plain1.csv"],
        ["audit", "plain1.csv", "--attribute", "sex"],
    ):
        assert main(call) == 2
        assert f"FILE must have labels for polars-wroc {call[0]}; found" in capsys.readouterr().err
    assert main(["counts", "plain1.csv", "counts2.parquet", "-o", "x.csv"]) == 2
    assert "found counts with labels and without" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--attribute sex", "impact of counts needs --threshold"),
        (
            "--attribute sex --threshold 0.5 --score s",
            "--score needs rows, and counts1.parquet has counts",
        ),
        ("--attribute sex --selected s", "--selected needs rows, and counts1.parquet has counts"),
        (
            "--attribute no --threshold 0.5",
            "--attribute must name a column of counts1.parquet; found no column",
        ),
        (
            "--attribute sex --threshold 0.5 --strata age",
            "--replicate-weights) needs rows, and counts1.parquet has counts",
        ),
    ],
)
def test_mistakes_with_impact_ratios_of_counts(
    options: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["impact", "counts1.parquet", "--favorable", "selected"]
    assert main([*call, *options.split()]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 1
