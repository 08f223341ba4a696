"""The action for workflows on GitHub: its steps in a shell, and the workflow that uses it."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from site_navigation import ROOT
from worked_example import commands_in

import polars_wroc as wroc

ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
_FILLED = re.compile(r"\$\{\{ *([\w.-]+) *\}\}")
AUDIT = """
  audit loans.csv --label approved --score score --attribute race
  --threshold 0.85 --favorable selected --title 'Loans, "all" of $HOME'
"""


@dataclass(frozen=True)
class Ran:
    """What a run of the steps did."""

    code: int
    log: str
    summary: str
    outputs: dict[str, str]
    kept: str | None


def filled(text: str, known: dict[str, str]) -> str:
    """Fill in the inputs of the action and the outputs of its steps."""
    return _FILLED.sub(lambda found: known[found[1]], text)


def ran(folder: Path, **inputs: str) -> Ran:
    """Run the steps as a runner does; those of other actions only say what they would keep."""
    known = {f"inputs.{name}": one.get("default", "") for name, one in ACTION["inputs"].items()}
    known |= {f"inputs.{name.replace('_', '-')}": value for name, value in inputs.items()}
    assert known["inputs.command"]
    summary, log, code, kept = folder / "summary", "", 0, None
    summary.write_text("of an earlier step\n", encoding="utf-8")
    for step in ACTION["runs"]["steps"]:
        given = {k: filled(v, known) for k, v in (step.get("env") or step.get("with", {})).items()}
        if "uses" in step:
            if step["uses"].startswith("actions/upload-artifact@"):
                assert step["if"] == "steps.run.outputs.report != ''"
                kept = given["path"] or None
            continue
        assert step["shell"] == "bash"
        output = folder / "output"
        output.touch()
        files = {"GITHUB_STEP_SUMMARY": str(summary), "GITHUB_OUTPUT": str(output)}
        done = subprocess.run(  # noqa: S603
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],  # noqa: S607
            cwd=folder,
            env=commands_in(folder) | files | {"GITHUB_ACTION_PATH": str(ROOT)} | given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        log, code = log + done.stdout, done.returncode
        lines = output.read_text(encoding="utf-8").splitlines()
        known |= {
            f"steps.{step.get('id')}.outputs.{k}": v
            for k, _, v in (x.partition("=") for x in lines)
        }
        output.unlink()
        if code:
            assert step == ACTION["runs"]["steps"][-1], log
    outputs = {name: filled(one["value"], known) for name, one in ACTION["outputs"].items()}
    return Ran(code, log, summary.read_text(encoding="utf-8"), outputs, kept)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with rows."""
    wroc.data.loans().write_csv(tmp_path / "loans.csv")
    return tmp_path


@pytest.mark.slow(reason="starts processes")
def test_an_audit_that_passes(folder: Path) -> None:
    found = ran(folder, command=f"{AUDIT} --fail-if 'race:auc.gap_high<-0.5'")
    assert (folder / "installed").read_text() == f"-m pip install --quiet {ROOT}[report]\n"
    assert found.code == 0
    assert found.outputs == {"passed": "true", "report": "audit.html", "exit-code": "0"}
    assert found.kept == "audit.html"
    assert (folder / "audit.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    heading = r'# Loans, "all" of \$HOME'
    assert found.summary.startswith(f"of an earlier step\n\n{heading}\n")
    assert "**Passed: AUC of race, upper limit of the gap below" in found.summary
    assert "::warning::NOT JUDGED race:auc.gap_high < -0.5: fewer than 30 negatives in" in found.log
    assert "::error::" not in found.log


@pytest.mark.slow(reason="starts processes")
def test_an_audit_that_fails(folder: Path) -> None:
    gates = "--fail-if impact_ratio.ratio<0.8 --fail-if auc.gap_high<-0.5"
    found = ran(folder, command=f"{AUDIT}\n{gates}", report="audit.json", artifact="april")
    assert found.code == 1
    assert found.outputs == {"passed": "false", "report": "audit.json", "exit-code": "1"}
    report = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
    said = "FAILED impact_ratio < 0.8 in 1 of 2 segments: race = black 0.6892"
    assert f"::error::{said}\n" in found.log
    assert report["gates"][0]["sentence"] == said
    assert "**Failed: impact ratio below 0.8** in black (race) 0.689" in found.summary


@pytest.mark.slow(reason="starts processes")
@pytest.mark.parametrize(
    ("command", "report", "code", "said"),
    [
        (
            f"{AUDIT} --min-rows 9999 --fail-if auc.gap>0",
            "a.md",
            3,
            "::warning::NOT JUDGED auc.gap",
        ),
        ("audit none.csv --label y --score s --attribute g", "", 2, "::error::no such file"),
        ("auc loans.csv --label approved --score score --by 'race", "", 2, "::error::"),
        ("diff none.json none.json --first-run-ok", "", 2, "::error::AFTER must be the JSON"),
    ],
)
def test_other_codes(folder: Path, command: str, report: str, code: int, said: str) -> None:
    found = ran(folder, command=command, report=report or "a.html")
    assert (found.code, found.kept) == (code, report or None), found.log
    assert found.outputs == {"passed": "false", "report": report, "exit-code": f"{code}"}
    assert said in found.log


@pytest.mark.slow(reason="starts processes")
def test_another_command(folder: Path) -> None:
    decided = "impact loans.csv --score score --threshold 0.85 --favorable selected"
    command = f"{decided} --attribute race --fail-if impact_ratio.ratio<0.8"
    found = ran(folder, command=command, report="impact.csv")
    assert (found.code, found.kept) == (1, "impact.csv")
    assert found.summary.startswith("of an earlier step\n\n# Impact ratios by race\n")
    assert found.log.count("::error::FAILED impact_ratio < 0.8") == 1
