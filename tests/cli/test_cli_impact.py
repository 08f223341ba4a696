"""`polars-wroc impact`: the numbers of `impact_ratios`, gates on them, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from sweeps import sweep
from wide_tables import wide_ratios

import polars_wroc as wroc
from polars_wroc.cli import main

pytestmark = pytest.mark.usefixtures("folder")
GOOD = ("--favorable", "selected")
CALL = ["impact", "rows.parquet", "--selected", "hired", *GOOD]


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    """Women are hired less often; one category is small, and some are unknown."""
    random = np.random.default_rng(5)
    size = 900
    sex = random.choice(["f", "m"], size)
    score = random.normal(size=size) - 0.8 * (sex == "f")
    return pl.DataFrame(
        {
            "sex": sex,
            "race": random.choice(["a", "b", "c", "none"], size, p=[0.5, 0.39, 0.01, 0.1]),
            "code": random.choice([1, 2, 9], size),
            "hired": score > 0,
            "decision": np.where(score > 0, "hired", "sent home"),
            "s": score,
            "t": random.random(size),
            "w": random.lognormal(sigma=0.3, size=size),
            "n": random.integers(1, 4, size),
            "site": np.arange(size) % 40,
            **{f"brr{k}": random.lognormal(sigma=0.3, size=size) for k in range(4)},
        }
    )


@pytest.fixture
def folder(tmp_path: Path, rows: pl.DataFrame, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with the rows in it."""
    monkeypatch.chdir(tmp_path)
    rows.write_parquet("rows.parquet")
    return tmp_path


RATIOS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "recorded": (["--selected", "hired"], {"selected": "hired"}),
    "a value": (["--selected", "decision=hired"], {"selected": "hired"}),
    "a score": (["--score", "s", "--threshold", "0.3"], {"score": "s", "threshold": 0.3}),
    "the median": (
        ["--score", "s", "--score", "t", "--threshold", "median"],
        {"score": ["s", "t"], "threshold": "median"},
    ),
    "options": (
        [
            *("--selected", "hired", "--frequency", "n", "--favorable", "rejected"),
            *("--reference", "sex=m", "--reference", "race=a", "--unknown", "none"),
            *("--min-share", "0", "--level", "0.9"),
            *("--exact", "fisher", "--adjust", "bh"),
        ],
        {
            "selected": "hired",
            "weight": wroc.frequency("n"),
            "favorable": "rejected",
            "reference": {"sex": "m", "race": "a"},
            "unknown": ["none"],
            "min_share": 0.0,
            "level": 0.9,
            "exact": "fisher",
            "adjust": "bh",
        },
    ),
    "a survey": (
        ["--selected", "hired", "--cluster", "site", "--strata", "code", "--lonely", "adjust"],
        {"selected": "hired", "design": wroc.Survey("site", strata="code", lonely="adjust")},
    ),
    "replicate weights": (
        [
            *(
                "--selected",
                "hired",
                "--weight",
                "w",
                "--replicate-weights",
                "brr*:kind=fay,rho=0.3",
            ),
        ],
        {
            "selected": "hired",
            "weight": "w",
            "design": wroc.ReplicateWeights(["brr0", "brr1", "brr2", "brr3"], kind="fay", rho=0.3),
        },
    ),
}


@pytest.mark.parametrize("name", sweep(RATIOS, fast=3))
def test_impact_writes_the_ratios(name: str, rows: pl.DataFrame) -> None:
    options, arguments = RATIOS[name]
    favorable = () if "favorable" in arguments else GOOD
    call = ["impact", "rows.parquet", *favorable, *options]
    call += ["--attribute", "sex", "--attribute", "race"]
    assert main([*call, "-o", "x.parquet"]) == 0
    expected = wroc.impact_ratios(
        rows,
        attributes=["sex", "race"],
        **{"favorable": "selected"} | arguments,
    )
    assert_frame_equal(pl.read_parquet("x.parquet"), expected, rel_tol=1e-9)


@pytest.mark.parametrize("output", ["x.csv", "x.json", "-"])
def test_formats(output: str, rows: pl.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*CALL, "--attribute", "sex", "-o", output]) == 0
    printed = capsys.readouterr().out
    expected = wroc.impact_ratios(rows, selected="hired", favorable="selected", attributes="sex")
    if output == "x.csv":
        assert pl.read_csv(output)["ratio"].to_list() == pytest.approx(expected["ratio"].to_list())
        return
    listed = json.loads(printed if output == "-" else Path(output).read_text(encoding="utf-8"))
    assert [row["segment"] for row in listed] == ["f", "f", "m", "m"]
    assert list(listed[0]) == expected.columns
    assert listed[1]["ratio"] == pytest.approx(expected["ratio"][1])


def test_values_of_numbers_in_csv_files(rows: pl.DataFrame) -> None:
    numbered = rows.with_columns(pl.col("hired").cast(pl.Int64))
    numbered.write_csv("rows.csv")
    call = [
        "impact",
        "rows.csv",
        *GOOD,
        "--selected",
        "hired=1",
        "--attribute",
        "code",
        "--attribute",
        "race",
    ]
    unknown = ["--unknown", "9", "--unknown", "none"]
    assert main([*call, *unknown, "-o", "x.parquet"]) == 0
    expected = wroc.impact_ratios(
        rows,
        selected="hired",
        favorable="selected",
        attributes=["code", "race"],
        unknown=[9, "none"],
    )
    assert_frame_equal(pl.read_parquet("x.parquet"), expected, rel_tol=1e-9)
    assert expected.filter(reason="an unknown category").height == 4


def test_keep_makes_null_a_category(rows: pl.DataFrame) -> None:
    kept = rows.with_columns(pl.col("race").replace("none", None))
    kept.write_parquet("rows.parquet")
    assert main([*CALL, "--attribute", "race", "--unknown", "keep", "-o", "x.parquet"]) == 0
    assert "(missing)" in pl.read_parquet("x.parquet")["segment"]


@pytest.fixture
def hires(folder: Path) -> pl.DataFrame:
    """Some have no decision, some no sex, and some a race that may not be known."""
    sex, race = ["f"] * 40 + ["m"] * 54 + [None] * 6, ["a", "b", "Not stated", "b", "a"] * 20
    decided = [None if i % 10 == 3 else i % 3 == 0 for i in range(100)]
    hires = pl.DataFrame({"sex": sex, "race": race, "hired": decided})
    hires.write_parquet(folder / "rows.parquet")
    return hires


HINT = "'Not stated' of race is compared like any other category."


def test_rows_without_a_decision_are_said(
    hires: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    assert hires["hired"].null_count() == 10
    said = "10 rows have no decision and were left out."
    assert main([*CALL, "--attribute", "sex", "--attribute", "race"]) == 0
    assert said in " ".join(capsys.readouterr().out.split())
    for output in ("x.csv", "-"):
        assert main([*CALL, "--attribute", "sex", "-o", output]) == 0
        printed, err = capsys.readouterr()
        assert f"polars-wroc: {said}\n" in err
    listed = json.loads(printed)
    assert [row["n"] for row in listed] == pl.read_csv("x.csv")["n"].to_list()
    ratios = [row for row in listed if row["metric"] == "impact_ratio"]
    assert sum(row["n"] for row in ratios) == hires.height - 10
    hires.drop_nulls("hired").write_parquet("rows.parquet")
    assert main([*CALL, "--attribute", "sex"]) == 0
    assert "left out" not in capsys.readouterr().out


def test_a_missing_score_or_weight_is_said(
    rows: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    place = pl.int_range(pl.len())
    rows.with_columns(
        s=pl.when(place > 2).then("s"), w=pl.when(place != 10).then("w")
    ).write_parquet("rows.parquet")
    call = [
        "impact",
        "rows.parquet",
        *GOOD,
        "--threshold",
        "0",
        "--score",
        "s",
        "--attribute",
        "sex",
    ]
    assert main([*call, "--weight", "w"]) == 0
    assert "4 rows have no decision or weight and were" in " ".join(capsys.readouterr().out.split())
    assert main([*call, "--score", "t"]) == 0
    assert "Up to 3 rows have no decision and were" in " ".join(capsys.readouterr().out.split())


@pytest.mark.slow(reason="runs several commands")
def test_a_category_that_may_be_unknown_gives_a_hint(
    hires: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    call = [*CALL, "--attribute", "sex", "--attribute", "race"]
    remedy = "If this means that the value is not known, give --unknown 'Not stated'."
    assert main(call) == 0
    assert f"{HINT} {remedy}" in " ".join(capsys.readouterr().out.split())
    assert main([*call, "-o", "x.csv"]) == 0
    assert f"polars-wroc: {HINT} {remedy}\n" in capsys.readouterr().err
    # Doing what it says ends it, and so does saying that nothing is unknown.
    for unknown in ("Not stated", "keep"):
        assert main([*call, "--unknown", unknown, "-o", "x.csv"]) == 0
        assert "compared like" not in capsys.readouterr().err
    hires.with_columns(race=pl.col("race").replace("Not stated", "c")).write_parquet("rows.parquet")
    assert main(call) == 0
    assert "compared like" not in capsys.readouterr().out


def test_all_outputs_say_the_same_words(
    hires: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    both = wroc.impact_ratios(
        hires,
        selected="hired",
        favorable="selected",
        attributes=["sex", "race"],
        unknown=["Not stated"],
    )
    table = both.filter(metric="impact_ratio")
    call = [*CALL, "--attribute", "sex", "--attribute", "race", "--unknown", "Not stated"]
    assert main([*call, "-o", "x.csv"]) == 0
    written = pl.read_csv("x.csv").filter(metric="impact_ratio")
    assert main(call) == 0
    lines = capsys.readouterr().out.split("\n\n")[1].splitlines()
    # Below the headings and the names of attributes.
    capsys_lines = [line for line in lines if line.startswith("  ")]
    drawn = wroc.gap_chart(table, metric="impact_ratio", show="ratio").to_dict()
    (rows,) = drawn["datasets"].values()
    marks = [row for row in rows if row["kind"] == "row"]
    assert len(marks) == table.height
    for row, line, text, mark in zip(
        table.rows(named=True), capsys_lines, written.rows(named=True), marks, strict=False
    ):
        unknown = row["segment"] is None
        said = row["verdict"] or row["reason"]
        assert f"  {said}" in line, (said, line)
        assert mark["note"] == said
        assert text["segment"] == ("(unknown)" if unknown else row["segment"])
        assert ("(unknown)" in line) == ("(unknown)" in mark["label"]) == unknown
    assert table["segment"].null_count() == 2


AUDIT = [
    "audit",
    "rows.parquet",
    "--label",
    "y",
    "--score",
    "t",
    "--attribute",
    "sex",
    "--attribute",
    "race",
]
GATES = [f"impact_ratio.{end}" for end in ("ratio<0.8", "ratio_high<0.8", "ratio>=0.99")]
GATE = "impact_ratio.p_value>0"


@pytest.fixture
def labelled(folder: Path, rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with a label that decisions can be compared with."""
    labelled = rows.with_columns(y=pl.col("t") > 0.5)
    labelled.write_parquet(folder / "rows.parquet")
    return labelled


@pytest.mark.parametrize("selected", sweep(["hired", "decision=hired"]))
def test_audits_of_recorded_decisions(
    selected: str, labelled: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*AUDIT, *GOOD, "--selected", selected, "-o", "-"]) == 0
    printed = json.loads(capsys.readouterr().out)
    audit = wroc.audit(
        labelled, "y", "t", attributes=["sex", "race"], selected="hired", favorable="selected"
    )
    expected = json.loads(audit.to_json())
    for table in ("table", "segments"):
        assert printed[table] == expected[table]
    assert {row["column"] for row in printed["missing"]} >= {selected}
    assert printed["settings"]["selected"] == selected


@pytest.mark.parametrize("gate", sweep(GATES))
@pytest.mark.parametrize(
    "decisions", sweep([["--selected", "hired", *GOOD], ["--threshold", "0.5", *GOOD]])
)
def test_audits_have_the_gates_of_impact_ratios(
    gate: str,
    decisions: list[str],
    labelled: pl.DataFrame,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert labelled["y"].any()
    code = main([*AUDIT, *decisions, "--fail-if", gate, "-o", "x.md"])
    said = capsys.readouterr().err
    scored = ["--score", "t"] if "--threshold" in decisions else []
    call = ["impact", "rows.parquet", *decisions, *scored, *AUDIT[-4:]]
    assert main([*call, "--fail-if", gate, "-o", "x.csv"]) == code
    assert capsys.readouterr().err == said
    assert re.search(r"NOT JUDGED impact_ratio.*: share below 2% in [^:]*race = c\n", said)


@pytest.mark.parametrize(
    ("options", "message"),
    sweep(
        [
            (
                "--selected hired --threshold 0.5",
                "--threshold must be None with --selected, which has the decisions",
            ),
            (
                "--selected decision",
                "--selected must name a column of true and false or 0 and 1, or a column and the",
            ),
            ("--selected decision=gone", "a value that column 'decision' holds; no row has 'gone'"),
            (
                "--selected no",
                "--selected must name a column of rows.parquet; found no column 'no'",
            ),
            (
                "--selected hired --min-cell 1000",
                "--min-cell must leave something to show",
            ),
            (
                "--fail-if impact_ratio.ratio<0.8",
                "decisions: those of a threshold, or recorded ones",
            ),
        ],
        fast=3,
    ),
)
@pytest.mark.usefixtures("labelled")
def test_what_audits_of_decisions_refuse(
    options: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = GOOD if "--selected" in options else ()
    assert main([*AUDIT, *good, *options.split(), "-o", "x.html"]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert "`selected`" not in err
    assert err.count("\n") == 1
    assert [path.name for path in folder.iterdir()] == ["rows.parquet"]


def test_many_scores_at_the_median_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    """Two of ten rows are above the median, and half of them without ties."""
    call = [
        "impact",
        "rows.csv",
        *GOOD,
        "--score",
        "s",
        "--threshold",
        "median",
        "--attribute",
        "g",
    ]
    for scores, said in (
        ([1, 2, 2, 2, 2, 2, 3, 3, 1, 2], " Only 20% score above the median,"),
        ([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], None),
    ):
        pl.DataFrame({"s": scores, "g": list("ab" * 5)}).write_csv("rows.csv")
        assert main(call) == 0
        printed = " ".join(capsys.readouterr().out.split())
        assert said in printed if said else "above the median" not in printed
    assert (
        main(["impact", "rows.csv", *GOOD, "--score", "s", "--threshold", "5", "--attribute", "g"])
        == 0
    )
    assert "above the median" not in capsys.readouterr().out


@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_table_fits_the_terminal(
    width: int,
    rows: pl.DataFrame,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    long = rows.with_columns(pl.col("race").replace("b", "b" * 50))
    long.write_parquet("rows.parquet")
    monkeypatch.setenv("COLUMNS", str(width))
    assert main([*CALL, "--attribute", "sex", "--attribute", "race"]) == 0
    verdict, printed = capsys.readouterr().out.split("\n\n")
    table = wide_ratios(long, selected="hired", favorable="selected", attributes=["sex", "race"])
    lines = printed.splitlines()
    assert max(map(len, [*verdict.splitlines(), *lines])) <= width
    below = table.filter(verdict="below four fifths")["ratio"].sort()
    assert verdict.startswith("The whole interval is below four fifths: ")
    assert all(f"({ratio:.2f})" in verdict for ratio in below.head(5))
    assert f"all {table.width + 4} columns: --columns all" in printed
    groups = [line for line in lines if re.match("  [^ ]", line)]
    assert len(groups) == table.height
    assert any("b" * 50 in line for line in groups) == (width == 200)
    for line, row in zip(groups, table.rows(named=True), strict=True):
        if width == 200:
            assert f"{row['n']:,}" in line.split()
        assert f"{row['ratio']:.2f}" in line
        assert (row["verdict"] or row["reason"]) in line
        if row["ratio_low"] is not None:
            assert f"({row['ratio_low']:.2f} to {row['ratio_high']:.2f})" in line


@pytest.mark.parametrize(
    ("gate", "met"),
    sweep(
        [
            ("impact_ratio.ratio<0.8", lambda row: row["ratio"] < 0.8),
            ("impact_ratio.ratio_high<0.8", lambda row: row["ratio_high"] < 0.8),
            ("impact_ratio.p_adjusted<=0.05", lambda row: row["p_adjusted"] <= 0.05),
            ("impact_ratio.value<0.4", lambda row: row["value"] < 0.4),
            ("impact_ratio.n<5", lambda _: False),
        ],
        fast=2,
    ),
)
def test_gates(gate: str, met: Any, rows: pl.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    name = gate.partition("<")[0].partition(".")[2]
    call = [*CALL, "--attribute", "sex", "--attribute", "race", "--fail-if", gate, "-o", "x.csv"]
    table = wroc.impact_ratios(
        rows, selected="hired", favorable="selected", attributes=["sex", "race"]
    ).filter(metric="impact_ratio")
    judged = pl.col("reason").is_null()
    if name == "value":
        judged |= pl.col("reason") == "the reference"
    elif name == "n":
        # Numbers of rows are known of small categories, too.
        judged = pl.lit(value=True)
    known = table.filter(judged, pl.col(name).is_not_null())
    failing = [row for row in known.rows(named=True) if met(row)]
    assert main(call) == (1 if failing else 0)
    err = capsys.readouterr().err
    written = gate.replace(".ratio<", "<")
    sign = "<=" if "<=" in gate else "<"
    written = written.replace(sign, f" {sign} ")
    found = "; ".join(f"{row['attribute']} = {row['segment']} {row[name]:.4g}" for row in failing)
    among = f"in {len(failing)} of {known.height} segments"
    assert (f"FAILED {written} {among}: {found}\n" in err) == bool(failing)
    # Small categories are named; references have nothing to be judged.
    others = table.filter(pl.col("reason").ne_missing("the reference")).rows(named=True)
    others = [row for row in others if row not in known.rows(named=True)]
    for row in others:
        assert re.search(rf"NOT JUDGED {written}: .*{row['attribute']} = {row['segment']}\b", err)
    assert err.count(" = ") == len(others) + len(failing)
    # What failed is written all the same.
    assert Path("x.csv").exists()


def test_gate_names_an_unknown_category(
    rows: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    unknown = rows.with_columns(
        sex=pl.when(pl.col("n") <= 2).then("sex"),
        hired=(pl.col("n") <= 2) & pl.col("hired"),
    )
    unknown.write_parquet("rows.parquet")
    call = [*CALL, "--attribute", "sex", "--fail-if", "impact_ratio<0.1", "-o", "x.csv"]
    line = "an unknown category (not compared without --unknown keep) in sex = (missing)\n"
    assert main(call) == 0
    err = capsys.readouterr().err
    assert re.search(rf"^polars-wroc: NOT JUDGED impact_ratio.*: {re.escape(line)}", err)
    assert main([*call, "--fail-unjudged"]) == 3
    assert line in capsys.readouterr().err
    assert main([*call, "--unknown", "keep"]) == 1
    assert "sex = (missing) 0" in capsys.readouterr().err


def test_gate_that_judges_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*CALL, "--attribute", "sex", "--min-share", "1", "--fail-if", GATE]) == 3
    err = capsys.readouterr().err
    assert re.search(r"NOT JUDGED impact_ratio.*: share below 100% in sex = ", err)


@pytest.mark.parametrize("output", sweep([[], ["-o", "-"], ["-o", "x.csv"]]))
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--selected hired", "--attribute must be given"),
        (
            "--attribute sex",
            "impact needs --selected, or --score and --threshold; found none of them",
        ),
        ("--score s --attribute sex", "or --score and --threshold; found --score\n"),
        ("--selected hired --threshold 1 --attribute sex", "found --selected and --threshold\n"),
        (
            "--score s --threshold mean --attribute sex",
            "must be a number, median or a rule such as max-fpr=0.1; found 'mean'",
        ),
        ("--score s --threshold nan --attribute sex", "--threshold must be a number; found nan"),
        (
            "--selected decision --attribute sex",
            "--selected must name a column of true and false or 0 and 1, or a column and",
        ),
        (
            "--selected decision=gone --attribute sex",
            "must name a value that column 'decision' holds; no row",
        ),
        (
            "--selected code=x --attribute sex",
            "with a value of the column; found 'x' for type Int64",
        ),
        (
            "--selected no=x --attribute sex",
            "--selected must name a column of rows.parquet; found no",
        ),
        (
            "--selected hired --attribute no",
            "--attribute must name a column of rows.parquet; found no",
        ),
        (
            "--selected hired --attribute sex --weight no",
            "--weight must name a column of rows.parquet",
        ),
        ("--selected hired --attribute sex --min-share 2", "--min-share must lie between 0 and 1"),
        (
            "--selected hired --attribute sex --level 95",
            "--level must lie between 0.001 and 0.9999",
        ),
        (
            "--selected hired --attribute sex --unknown 1 --unknown keep",
            "exclude, keep, or values only",
        ),
        (
            "--selected hired --attribute code --unknown x",
            "--unknown must hold possible values of 'code'",
        ),
        (
            "--selected hired --attribute sex --attribute race --reference m",
            "where there are several attributes",
        ),
        (
            "--selected hired --attribute sex --reference x",
            "must be 'highest' or a segment of sex",
        ),
        (
            "--selected hired --attribute sex --reference race=a",
            "--reference must name attributes out of",
        ),
        (
            "--selected hired --attribute race --reference c",
            "--reference must have at least --min-share",
        ),
        (
            "--selected hired --attribute sex --strata no",
            "--strata must name a column of rows.parquet",
        ),
        (
            "--selected hired --attribute sex --replicate-weights r",
            "must look like 'rep_*:kind=jk2'",
        ),
        (
            "--selected hired --attribute sex --exact exactly",
            'Invalid value "exactly" for --exact. Choose from: "mid-p", "fisher"',
        ),
        (
            "--selected hired --attribute sex --fail-if ration<1",
            "found 'ration<1'; did you mean 'ratio'?",
        ),
        ("--selected hired --attribute sex --label hired", "and takes no --label"),
    ],
)
def test_what_is_refused(
    options: str,
    message: str,
    output: list[str],
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["impact", "rows.parquet", *GOOD, *options.split(), *output]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.startswith("polars-wroc: ")
    assert err.count("\n") == 1
    assert [path.name for path in folder.iterdir()] == ["rows.parquet"]


def test_the_one_bad_file_of_several_is_named(
    rows: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    rows.drop("hired").write_parquet("bad.parquet")
    rows.write_parquet("more.parquet")
    call = [
        "impact",
        "rows.parquet",
        "bad.parquet",
        "more.parquet",
        *CALL[2:],
        "--attribute",
        "sex",
    ]
    assert main(call) == 2
    message = "bad.parquet has other columns than rows.parquet: it lacks 'hired'"
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        (["b"], "Below four fifths, though its interval reaches above it: g b (0.67)."),
        (
            ["b", "c"],
            "Below four fifths, though their intervals reach above it: g b (0.67); g c (0.67).",
        ),
    ],
)
def test_ratios_that_may_be_four_fifths(
    folder: Path, groups: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rates = {"a": 0.6} | dict.fromkeys(groups, 0.4)
    parts = [
        pl.DataFrame({"g": group, "hired": [place < 50 * rate for place in range(50)]})
        for group, rate in rates.items()
    ]
    pl.concat(parts).write_parquet(folder / "rows.parquet")
    assert main([*CALL, "--attribute", "g"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert said in printed
    assert "by the estimate" not in printed
