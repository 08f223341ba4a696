"""A threshold at which nobody, or everybody, is selected tells nothing of groups."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_wroc as wroc
from polars_wroc.cli import main

RATES = ("selection_rate", "tpr", "fpr", "ppv", "npv")
OFF_THE_SCALE = [(25, "nobody is selected"), (-1, "everybody is selected")]


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    random = np.random.default_rng(0)
    score, group = random.random(4000), random.integers(0, 2, 4000)
    positive = random.random(4000) < np.where(group == 1, 0.6 * score, score)
    return pl.DataFrame({"y": positive, "p": score, "q": score**2, "g": group})


@pytest.fixture(scope="module")
def file(people: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    people.write_parquet(path)
    return str(path)


@pytest.mark.parametrize(("threshold", "why"), OFF_THE_SCALE)
def test_no_rate_has_a_verdict(people: pl.DataFrame, threshold: float, why: str) -> None:
    table = wroc.group_gaps(people, "y", "p", attributes="g", threshold=threshold)
    rates = table.filter(pl.col("metric").is_in(RATES), pl.col("gap").is_not_null())
    assert rates["reason"].unique().to_list() == [why]
    assert rates["verdict"].null_count() == rates["p_value"].null_count() == rates.height
    assert table.filter(metric="auc")["verdict"].null_count() == 0
    ratios = wroc.impact_ratios(
        people, "p", attributes="g", threshold=threshold, favorable="rejected"
    )
    assert ratios["verdict"].null_count() == ratios.height
    releases = wroc.release_check(people, "y", "p", "q", threshold=threshold)
    decided = releases.filter(pl.col("metric") != "auc", pl.col("gap").is_not_null())
    assert decided["reason"].unique().to_list() == [why]
    assert decided["verdict"].unique().to_list() == ["inconclusive"]


@pytest.mark.parametrize(("threshold", "why"), OFF_THE_SCALE)
def test_fairness_says_that_all_decisions_are_the_same(
    people: pl.DataFrame, threshold: float, why: str
) -> None:
    table = wroc.fairness(people, "y", "p", attributes="g", threshold=threshold)
    of_decisions = table.filter(pl.col("metric") != "auc_difference")
    assert set(of_decisions["reason"]) == {why}
    numbers = of_decisions.select("gap", "gap_low", "gap_high", "ratio", "ratio_low", "p_value")
    assert numbers.null_count().row(0) == (of_decisions.height,) * numbers.width
    assert table.filter(metric="auc_difference")["reason"].item() is None


@pytest.mark.parametrize(("threshold", "why"), OFF_THE_SCALE)
def test_matrices_say_that_all_decisions_are_the_same(
    people: pl.DataFrame, threshold: float, why: str
) -> None:
    table = wroc.threshold_metrics(people, "y", "p", by="g", threshold=[threshold, 0.5])
    reasons = dict(table.select("threshold", "reason").unique().rows())
    assert reasons == {threshold: why, 0.5: None}
    curve = wroc.threshold_metrics(people, "y", "p")
    assert curve["reason"].null_count() == curve.height


def test_an_audit_names_a_threshold_that_selects_nearly_everybody(people: pl.DataFrame) -> None:
    options: dict[str, Any] = {"attributes": "g", "favorable": "rejected"}
    low = float(people["p"].sort()[1])
    audit = wroc.audit(people, "y", "p", threshold=low, **options)
    assert audit.verdict.startswith(
        "99.98% are selected at this threshold: nearly all decisions are the same"
    )
    hundredth = float(people["p"].sort()[40])
    assert "nearly all" not in wroc.audit(people, "y", "p", threshold=hundredth, **options).verdict


def test_a_search_says_that_nothing_can_be_found(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["search", file, "--label", "y", "--score", "p", "--attribute", "g", "--attribute"]
    command += ["half", "--metric", "tpr", "--favorable", "selected", "--threshold", "25"]
    rows = pl.read_parquet(file).with_columns(half=pl.int_range(pl.len()) % 2)
    rows.write_parquet(file.replace("rows.parquet", "halves.parquet"))
    command[1] = file.replace("rows.parquet", "halves.parquet")
    assert main(command) == 0
    assert capsys.readouterr().out.startswith("The tpr of all rows is 0: nothing can be compared.")


def test_recorded_decisions_that_are_all_the_same_have_no_verdict(people: pl.DataFrame) -> None:
    table = wroc.group_gaps(
        people, "y", None, attributes="g", selected=pl.lit(value=False), metrics=["fpr"]
    )
    assert table["verdict"].to_list() == [None, None]


def test_one_group_without_selected_rows_is_compared(people: pl.DataFrame) -> None:
    only = pl.col("p") * (pl.col("g") == 1)
    table = wroc.group_gaps(people, "y", only, attributes="g", threshold=0.5)
    assert table.filter(metric="selection_rate")["verdict"].to_list() == ["different"] * 2


@pytest.mark.parametrize("threshold", ["25", "-1"])
@pytest.mark.parametrize(
    "gate", ["fpr.gap_low>0.05", "tpr.verdict=different", "demographic_parity_difference.gap>0.1"]
)
def test_no_gate_passes_on_it(
    file: str, threshold: str, gate: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["audit", file, "--label", "y", "--score", "p", "--attribute", "g"]
    command += ["--favorable", "rejected", f"--threshold={threshold}", "--fail-if", gate]
    assert main(command) == 3
    printed = capsys.readouterr()
    said = " ".join(printed.out.split("\n\n")[1].replace("\N{LEFT HALF BLOCK}", "").split())
    assert re.match("(Nobody|Everybody) is selected at this threshold: ", said)
    assert "equivalent" not in said
    assert "is worse off" not in said
    assert "NOT JUDGED" in printed.err


@pytest.mark.parametrize(
    ("threshold", "gate", "code"),
    [
        (["50"], "fpr.verdict=worse", 3),
        (["50"], "fpr.gap_high>0.01", 3),
        # Inconclusive since all have the same decision, which is no finding.
        (["50"], "tpr.verdict!=no worse", 3),
        # Only by the new score nobody is selected, of which a condition may be met.
        (["old=0.5", "new=50"], "tpr.verdict=worse", 1),
        (["old=0.5", "new=50"], "fpr.verdict=worse", 3),
        (["0.5"], "fpr.verdict=worse", 0),
    ],
)
def test_no_release_passes_on_it(
    file: str, threshold: list[str], gate: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["release", file, "--label", "y", "--old", "p", "--new", "q", "--fail-if", gate]
    thresholds = [part for one in threshold for part in ("--threshold", one)]
    assert main([*command, *thresholds]) == code
    first = capsys.readouterr().out
    assert first.startswith("Nobody is selected by") == ("50" in threshold[-1])


@pytest.mark.parametrize(
    ("command", "start"),
    [
        (["gaps", "--label", "y", "--metric", "tpr"], "Nobody is selected: "),
        (["impact", "--favorable", "rejected"], "Nobody is selected: "),
        (["thresholds", "--label", "y"], "At a threshold of 25 nobody is selected."),
    ],
)
def test_other_commands_say_so_first(
    file: str, command: list[str], start: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name, *options = command
    groups: Any = [] if name == "thresholds" else ["--attribute", "g"]
    assert main([name, file, "--score", "p", "--threshold", "25", *options, *groups]) == 0
    assert capsys.readouterr().out.startswith(start)
