"""Conditions of --fail-if: examples in the help work; those that cannot hold are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import polars_wroc as wroc
from polars_wroc.cli import main
from polars_wroc.cli.catalog import COMMANDS

pytestmark = pytest.mark.usefixtures("folder")
SCORED = "rows.parquet --label y --score s"
DECIDED = f"{SCORED} --threshold 0.5 --attribute race"
CALLS = {
    "audit": f"{DECIDED} --favorable selected",
    "diff": "before.json after.json",
    "impact": "rows.parquet --selected hired --favorable selected --attribute race",
    "auc": SCORED,
    "compare": f"{SCORED} --score t",
    "release": "rows.parquet --label y --old s --new t --threshold 0.5 --attribute race",
    "gaps": DECIDED,
    "fairness": DECIDED,
    "trend": f"{SCORED} --over month",
    "validate": SCORED,
    "thresholds": f"{SCORED} --threshold 0.5",
}
IMPACT = ["impact", *CALLS["impact"].split()]


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    """Probabilities with a second score, decisions, and a group that is hired less often."""
    random = np.random.default_rng(8)
    size = 2400
    score = random.random(size)
    race = random.choice(["black", "white"], size)
    return pl.DataFrame(
        {
            "y": random.random(size) < score,
            "s": score,
            "t": np.clip(score + random.normal(scale=0.1, size=size), 0, 1),
            "race": race,
            "hired": random.random(size) < np.where(race == "black", 0.2, 0.5),
            "month": np.arange(size) % 4,
        }
    )


@pytest.fixture
def folder(tmp_path: Path, rows: pl.DataFrame, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with the rows and two audits in it."""
    monkeypatch.chdir(tmp_path)
    rows.write_parquet("rows.parquet")
    for name, half in (("before", rows[:1200]), ("after", rows[1200:])):
        audit = wroc.audit(half, "y", "s", attributes="race", threshold=0.5, favorable="selected")
        Path(f"{name}.json").write_text(audit.to_json(), encoding="utf-8")
    return tmp_path


def test_commands_with_conditions_have_examples() -> None:
    assert {name for name, about in COMMANDS.items() if about.conditions} == CALLS.keys()


@pytest.mark.parametrize("command", CALLS)
def test_conditions_in_the_help_are_judged(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = [flag for each in COMMANDS[command].conditions for flag in ("--fail-if", each)]
    assert main([command, *CALLS[command].split(), *flags]) in (0, 1)
    assert "NOT JUDGED" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("sum(gap) > 1", "sum reads several rows, and a condition is about one row"),
        ("gap > avg(gap)", "avg reads several rows"),
        ("COUNT(*) > 3", "COUNT reads several rows"),
        ("row_number() > 2", "row_number reads several rows"),
        ("sum(gap) OVER (PARTITION BY metric) > 1", "sum reads several rows"),
        ("1 = 1", "it reads no column"),
        ("n > (SELECT n)", "write the condition alone, without SELECT"),
        ("verdict > 0.5", "it compares a text with a number"),
        ("verdict = 'diferent'", "there is no verdict 'diferent'; did you mean 'different'?"),
        ("gap > 0 AND verdict NOT IN ('x', 'different')", "there is no verdict 'x'"),
        ("metric = 'trp' AND gap > 0", "there is no metric 'trp'; did you mean 'tpr'?"),
        ("auc<70%", "write 70% as 0.7"),
        ("auc.gap", "or a condition in SQL; found 'auc.gap'\n"),
        ("tpr.gap = 0.5", "compare a number by one of > >= < <="),
        ("tpr.verdict > 0.5", "a verdict with a word, as in tpr.verdict=different"),
    ],
)
def test_conditions_that_no_row_or_every_row_meets_are_refused(
    condition: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", *CALLS["audit"].split(), "--fail-if", condition]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("metric = 'tpr' AND attribute = 'race' AND gap IS NULL", 0),
        ("gap IS NOT NULL", 1),
        ("metric = 'tpr' AND reason IS NOT NULL", 1),
        ("metric = 'tpr' AND coalesce(gap, 1) > 0.5", 1),
    ],
)
def test_sql_may_ask_for_what_is_missing(
    condition: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", *CALLS["audit"].split(), "--fail-if", condition]) == code
    assert "NOT JUDGED" not in capsys.readouterr().err


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in CALLS])
def test_commands_that_judge_nothing_take_no_condition(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    call = f"{command} rows.parquet --fail-if gap<2".split()
    assert main(call if command != "demo" else ["demo", "--fail-if", "gap<2"]) == 2
    assert "there is no option --fail-if" in capsys.readouterr().err


def test_sql_on_an_empty_column_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*IMPACT, "--fail-if", "abs(gap) > 0.05 AND n > 500"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "found 'gap', which is empty in all rows; there are value, " in line
    assert ", ratio, " in line
    assert ", gap" not in line


def test_a_condition_is_met_by_one_column_where_another_is_null(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([*IMPACT, "--fail-if", "gap > 0.05 OR ratio < 2"]) == 2
    assert "found 'gap', which is empty in all rows" in capsys.readouterr().err
    assert main([*IMPACT, "--fail-if", "ratio < 0 OR value > 0"]) == 1
    assert "ratio null, value 0." in capsys.readouterr().err


def test_a_number_that_no_segment_has_is_not_judged(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*IMPACT, "--fail-if", "impact_ratio.gap>0.05"]) == 3
    said = "NOT JUDGED impact_ratio.gap > 0.05: no such number in any segment\n"
    assert capsys.readouterr().err.endswith(said)


def test_a_segment_that_is_not_judged_is_named_once(
    rows: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its selection rate and its impact ratio are two rows of the table."""
    few = rows.with_columns(
        race=pl.when(pl.int_range(pl.len()) < 5).then(pl.lit("x")).otherwise("race")
    )
    few.write_parquet("rows.parquet")
    main([*IMPACT, "--fail-if", "value_low > 0.9"])
    assert capsys.readouterr().err.count("race = x") == 1


@pytest.mark.parametrize(
    ("command", "condition", "metric"),
    [
        ("auc", "auc<62", "auc"),
        ("thresholds", "tpr_high < 62", "tpr"),
        ("gaps", "auc.value<62", "auc"),
    ],
)
def test_a_percentage_is_no_limit_of_a_proportion(
    command: str, condition: str, metric: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, *CALLS[command].split(), "--fail-if", condition]) == 2
    said = f"must have a limit between 0 and 1 for {metric}, so that 0.62 is 62%; found "
    assert said in capsys.readouterr().err


def test_a_measure_without_a_threshold_is_named_without_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    call = ["validate", *SCORED.split(), "--threshold", "0.3", "--fail-if"]
    call.append("value < 1 AND measure IN ('auc', 'net_benefit')")
    assert main(call) == 1
    said = capsys.readouterr().err
    assert "measure = auc 0." in said
    assert "measure = net_benefit, threshold = 0.3 0." in said


def test_first_periods_are_not_listed_as_unjudged(capsys: pytest.CaptureFixture[str]) -> None:
    for groups in ("", " --attribute race"):
        call = f"trend {SCORED} --over month{groups} --fail-if auc.gap_high<-0.9 --fail-unjudged"
        assert main(call.split()) == 0
        assert "NOT JUDGED" not in capsys.readouterr().err
