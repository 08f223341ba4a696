"""`polars-wroc release`: one file or two, gates, sentences and pages."""

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

import polars_wroc as wroc
from polars_wroc.cli import main

CALL = ["release", "val.parquet", "--label", "y", "--old", "s1", "--new", "s2"]
TWO = ["release", "old.csv", "new.csv", "--key", "id", "--label", "y", "--old", "s", "--new", "s"]
DECIDED = ["--threshold", "0.5", "--attribute", "g"]


def rows(shift: float = 0.6, n: int = 3000) -> pl.DataFrame:
    """Of the positives of group b the new score is lower."""
    random = np.random.default_rng(3)
    y, group = random.random(n) < 0.4, random.choice(["a", "b"], n)
    logit = random.normal(size=n) + 1.3 * y - 0.8
    other = logit + 0.1 * random.normal(size=n) - shift * ((group == "b") & y)
    scores = {name: 1 / (1 + np.exp(-each)) for name, each in (("s1", logit), ("s2", other))}
    return pl.DataFrame({"id": np.arange(n), "y": y, "g": group, **scores})


@pytest.fixture(autouse=True)
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pl.DataFrame:
    monkeypatch.chdir(tmp_path)
    data = rows()
    data.write_parquet("val.parquet")
    data.select("id", "y", "g", s="s1").write_csv("old.csv")
    data.select("id", s="s2", d=pl.col("s2") >= 0.5).sample(
        fraction=1, shuffle=True, seed=1
    ).write_csv("new.csv")
    return data


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main([*arguments])
    out, err = capsys.readouterr()
    return code, out, err


def table_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> pl.DataFrame:
    code, out, err = printed(capsys, *arguments, "-o", "-")
    assert (code, err) == (0, "")
    return pl.DataFrame(json.loads(out), infer_schema_length=None)


def test_a_worse_score_fails_the_gate(
    capsys: pytest.CaptureFixture[str], saved: pl.DataFrame
) -> None:
    code, out, err = printed(capsys, *CALL, *DECIDED, "--fail-if", "auc.gap_high<0")
    assert code == 1
    assert "FAILED auc.gap_high < 0 in 2 of 3 segments: all rows -0." in err
    assert "g = b" in err
    table = wroc.release_check(saved, "y", "s1", "s2", attributes="g", threshold=0.5)
    worse = table.filter(verdict="worse")
    first = (
        f"s2 is worse than s1 in {worse.height} of 18 comparisons: AUC in all rows \N{MINUS SIGN}0."
    )
    assert " ".join(out.split()).startswith(first)
    assert re.search("newly +newly +share", out)
    assert main([*CALL, *DECIDED, "--fail-if", "g=b:any.verdict=worse"]) == 1
    assert main([*CALL, *DECIDED, "--fail-if", "g=a:any.verdict=worse"]) == 0


def test_rows_are_those_of_the_function(
    capsys: pytest.CaptureFixture[str], saved: pl.DataFrame
) -> None:
    options = ["--margin", "0.02", "--margin", "brier_score=0.001", "--net-benefit-at", "0.3"]
    found = table_of(capsys, *CALL, *DECIDED, *options, "--adjust", "none", "--level", "0.9")
    rates = ("auc", "selection_rate", "tpr", "fpr", "accuracy", "ppv", "npv")
    expected = wroc.release_check(
        saved,
        "y",
        "s1",
        "s2",
        attributes="g",
        threshold=0.5,
        margin=dict.fromkeys(rates, 0.02) | {"brier_score": 0.001},
        net_benefit_at=0.3,
        adjust="none",
        level=0.9,
    )
    names = ["segment", "metric", "value", "gap_low", "p_adjusted", "verdict", "margin"]
    assert_frame_equal(found.select(names), expected.select(names), rel_tol=1e-12)


def test_two_files_are_one(capsys: pytest.CaptureFixture[str]) -> None:
    one, two = table_of(capsys, *CALL, *DECIDED), table_of(capsys, *TWO, *DECIDED)
    assert two["reference"].unique().to_list() == ["s (old)"]
    assert two["model"].unique().to_list() == ["s (new)"]
    others = pl.exclude("model", "reference")
    # Numbers in text are rounded.
    assert_frame_equal(one.select(others), two.select(others), rel_tol=1e-6, abs_tol=1e-9)


def test_decisions_of_two_files(capsys: pytest.CaptureFixture[str], saved: pl.DataFrame) -> None:
    saved.select("id", "y", "g", s="s1", d=pl.col("s1") >= 0.5).write_csv("old.csv")
    selected = ["--selected", "old=d", "--selected", "new=d=true", "--attribute", "g"]
    recorded = table_of(capsys, *TWO, *selected)
    assert_frame_equal(recorded, table_of(capsys, *TWO, *DECIDED))


@pytest.mark.parametrize("new", ["s", "t"])
def test_two_files_need_a_key(capsys: pytest.CaptureFixture[str], new: str) -> None:
    pl.read_csv("new.csv").rename({"s": new}).write_csv("new.csv")
    call = ["release", "old.csv", "new.csv", "--label", "y", "--old", "s", "--new", new]
    code, _, err = printed(capsys, *call)
    assert code == 2
    assert "--key must name the column by which rows of the two files are the same" in err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda new: new.head(2999), "in old.csv, but not in new.csv"),
        (
            lambda new: pl.concat([new, new.head(1).with_columns(id=-1)], how="vertical_relaxed"),
            "-1 in new.csv, but not in old.csv",
        ),
        (lambda new: pl.concat([new, new.head(1)]), "several times in new.csv"),
        (
            lambda new: new.with_columns(id=pl.when(pl.col("id") > 0).then("id")),
            "null missing in new.csv",
        ),
        (
            lambda new: new.with_columns(pl.format("row {}", "id").alias("id")),
            "found 'id' of Int64 and String",
        ),
        (lambda new: new.drop("id"), "--key must"),
        (lambda new: new.drop("s"), "--new must"),
    ],
)
def test_keys_must_match(capsys: pytest.CaptureFixture[str], change: Any, message: str) -> None:
    change(pl.read_csv("new.csv")).write_csv("new.csv")
    code, _, err = printed(capsys, *TWO)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*CALL, "--key", "id"], "--key needs two files"),
        ([*CALL, "--threshold", "old=0.5"], "--threshold must map 'old' and 'new'"),
        ([*CALL, "--threshold", "high"], "--threshold: must be a number"),
        ([*CALL, "--selected", "y"], "--selected must look like old=D and new=D"),
        (
            [*CALL, "--selected", "old=g", "--selected", "new=g"],
            "--selected must name a column of true and false",
        ),
        ([*CALL, "--margin", "much"], "--margin: must be a number"),
        ([*CALL, "--margin", "tprr=0.1"], "--margin must be one of auc, "),
        ([*CALL, "--metrics", "aucc"], "did you mean 'auc'?"),
        ([*CALL, "--metrics", "tpr"], "--metrics must come with a --threshold or --selected"),
        ([*CALL, "--net-benefit-at", "2", *DECIDED], "--net-benefit-at must lie strictly"),
        ([*CALL[:-1], "s3"], "--new must"),
        ([*CALL, "--fail-if", "any.verdict=bad"], "must name a verdict of"),
        ([*CALL, "--fail-if", "aucc.gap<0"], "did you mean 'auc'?"),
        (CALL[:2] + CALL[4:], "--label must be given"),
    ],
)
def test_errors_name_the_option(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    code, out, err = printed(capsys, *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_what_is_not_shown_does_not_pass(capsys: pytest.CaptureFixture[str]) -> None:
    rows(shift=0.0).write_parquet("val.parquet")
    strict = "any.verdict!=no worse"
    assert main([*CALL, "--threshold", "0.5", "--fail-if", strict, "--margin", "0.05"]) == 0
    assert "is no worse than s1 in all 6 comparisons" in capsys.readouterr().out
    code, out, err = printed(capsys, *CALL, *DECIDED, "--fail-if", strict, "--margin", "0.001")
    assert code == 1
    assert "inconclusive" in err
    assert "inconclusive for" in " ".join(out.split())
    # A selection rate has no side that is worse.
    assert "selection_rate" not in err


def test_equal_scores_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = printed(capsys, *CALL[:-1], "s1", *DECIDED)
    assert out.startswith("s1 is the same as s1 in all rows")


@pytest.mark.parametrize(
    "name", sweep(["check.html", "auc.svg", "check.md", "check.xlsx", "check.csv"], fast=2)
)
def test_files(capsys: pytest.CaptureFixture[str], name: str) -> None:
    code, out, _ = printed(capsys, *CALL, *DECIDED, "-o", name)
    said, wrote = out.splitlines()
    assert (code, wrote) == (0, f"wrote {name}")
    assert said.startswith("s2 is worse than s1 in")
    if name.endswith(("html", "md")):
        text = Path(name).read_text(encoding="utf-8")
        assert "s2 is worse than s1 in" in text
        assert "newly rejected" in text
    if name.endswith("html"):
        # A chart for each metric.
        assert text.count("<figure>") == 7
    if name.endswith("csv"):
        assert pl.read_csv(name).height == 21


def test_a_design_leaves_the_limits_of_changes_out(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = printed(
        capsys, *CALL, *DECIDED, "--cluster", "g", "--columns", "all", "--rows", "all"
    )
    changes = out[out.index("outcome") :]
    assert "interval" not in changes


def test_the_first_run_has_nothing_to_compare_with(
    capsys: pytest.CaptureFixture[str], saved: pl.DataFrame
) -> None:
    call = ["release", "none.csv", "new.csv", *TWO[3:]]
    # The next run needs the labels of this file.
    assert main([*call, "--first-run-ok"]) == 2
    assert "--label must name a column of " in capsys.readouterr().err
    saved.rename({"s2": "s"}).write_csv("new.csv")
    for refused in (call[:3] + call[5:], [*call[:3], "old.csv", *call[3:]]):
        assert main([*refused, "--first-run-ok"]) == 2
    assert "found no --key" in capsys.readouterr().err
    assert main([*call, "-o", "check.html"]) == 2
    assert "no such file: none.csv" in capsys.readouterr().err
    assert main([*call, "--first-run-ok", "-o", "check.html"]) == 0
    said = "there is no 'none.csv' yet; save 'new.csv' as 'none.csv' for the next one"
    assert f"nothing is compared on the first run: {said}\n" in capsys.readouterr().err
    assert not Path("check.html").exists()
    code, _, err = printed(capsys, "release", "none.csv", "gone.csv", *TWO[3:], "--first-run-ok")
    assert code == 2
    assert "no such file: gone.csv" in err
    # A pattern is no name of one file.
    assert main(["release", "none*.csv", "new.csv", *TWO[3:], "--first-run-ok"]) == 2


def test_scores_of_one_name_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = printed(capsys, *TWO, *DECIDED)
    assert " ".join(out.split()).startswith("s (new) is worse than s (old) in ")


def test_metrics_without_a_side_are_not_judged_as_worse(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = printed(capsys, *CALL, *DECIDED, "--fail-if", "any.verdict=worse")
    assert code == 1
    for name in ("check.html", "check.md"):
        assert main([*CALL, *DECIDED, "--fail-if", "any.verdict=worse", "-o", name]) == 1
        page = Path(name).read_text(encoding="utf-8")
        assert "FAILED any.verdict = worse in " in page.replace("\\", "")
    capsys.readouterr()
    (number,) = re.findall(r"worse than s1 in (\d+ of \d+) comparisons", " ".join(out.split()))
    assert f"FAILED any.verdict = worse in {number} comparisons: " in err


def test_a_release_reads_csv_files_as_other_commands_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [
        f"0{k % 2};{k % 3 == 0:d};{k * 7 % 50};{k * 11 % 50 if k else '.'}" for k in range(200)
    ]
    Path("x.csv").write_text("\n".join(["g;y;s;t", *lines]), encoding="utf-8")
    call = ["release", "x.csv", "--label", "y", "--old", "s", "--new", "t", "--attribute", "g"]
    assert main([*call, "--null", ".", "-o", "x.json"]) == 0
    assert capsys.readouterr().err == "polars-wroc: read x.csv as semicolon-separated\n"
    rows = json.loads(Path("x.json").read_text(encoding="utf-8"))
    assert [(row["segment"], row["n"]) for row in rows] == [
        ("overall", 199),
        ("00", 99),
        ("01", 100),
    ]
    assert main(call) == 2
    assert "column 't' must be a number; line 2 of x.csv has '.'" in capsys.readouterr().err
