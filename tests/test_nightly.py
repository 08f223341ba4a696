"""The page on gates: its five nights, its numbers for loggers, its workflows."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from polars.testing import assert_frame_equal
from site_navigation import DOCS
from test_action import ACTION, ran
from worked_example import commands_in, follow, steps

import polars_wroc as wroc

PAGE = (DOCS / "guides" / "gates-in-ci.md").read_text(encoding="utf-8")
FILES = {step.path: step.text for step in steps(PAGE) if step.path}
# What MLflow says of names, of which it takes 250 characters, and Prometheus of lines.
MLFLOW = re.compile(r"[/\w.\- :]{1,250}", re.ASCII)
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="[^"\\\n]*"'
PROMETHEUS = re.compile(rf"wroc_\w+\{{({LABEL},?)*\}} -?\d[\d.e+-]*|# TYPE wroc_\w+ gauge")


def steps_of(name: str) -> list[dict[str, Any]]:
    """List the steps of the only job of a workflow."""
    (job,) = yaml.safe_load(FILES[name])["jobs"].values()
    return list(job["steps"])


def in_shell(text: str, folder: Path, summary: Path) -> subprocess.CompletedProcess[str]:
    """Run commands of a workflow, in which yesterday is the fifth day."""
    date = folder / "bin" / "date"
    date.write_text("#!/bin/sh\necho 2026-03-05\n", encoding="utf-8")
    date.chmod(0o755)
    return subprocess.run(  # noqa: S603
        ["bash", "-eo", "pipefail", "-c", text],  # noqa: S607
        cwd=folder,
        env=commands_in(folder) | {"GITHUB_STEP_SUMMARY": str(summary)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow(reason="starts processes")
def test_the_page_from_top_to_bottom(tmp_path: Path) -> None:
    compared = follow(PAGE, tmp_path)
    assert len(compared) == PAGE.count("```text\n")
    for said, printed in compared:
        assert printed == said, "run: python tools/renew.py docs/guides/gates-in-ci.md"
    numbers = json.loads((tmp_path / "metrics.json").read_text(encoding="utf-8"))
    assert len(numbers) > 50
    assert all(MLFLOW.fullmatch(name) for name in numbers)
    lines = (tmp_path / "audit.prom").read_text(encoding="utf-8").splitlines()
    assert len(lines) > 50
    assert all(PROMETHEUS.fullmatch(line) for line in lines)
    # The last of these counts are those of the database.
    rows = pl.scan_parquet(tmp_path / "rows" / "2026-03-05.parquet")
    counts = wroc.score_counts(rows, "repaid", "score", by=["region", "sex"]).collect()
    found = pl.read_parquet(tmp_path / "state" / "counts" / "2026-03-05.parquet")
    assert_frame_equal(found, counts, check_row_order=False)
    gates = json.loads((tmp_path / "since.json").read_text(encoding="utf-8"))["gates"]
    assert [(gate["met"], gate["n_judged"]) for gate in gates] == [(True, 4), (False, 2)]
    # The workflow runs the same script, by its own way of naming the day.
    summary = tmp_path / "step_summary"
    (script,) = [step["run"] for step in steps_of("nightly.yml") if "nightly.sh" in str(step)]
    done = in_shell(script, tmp_path, summary)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("polars-wroc: FAILED auc.gap_high < -0.02")
    assert "Failed: AUC, upper limit of the gap below" in summary.read_text(encoding="utf-8")
    (audit,) = [step for step in steps_of("release.yml") if step.get("id") == "audit"]
    result = ran(tmp_path, **audit["with"])
    assert (result.code, result.kept) == (1, "audit.html")
    assert (tmp_path / "installed").read_text().startswith("-m pip install ")


def test_workflows_name_what_there_is() -> None:
    (audit,) = [step for step in steps_of("release.yml") if step.get("id") == "audit"]
    assert audit["with"].keys() <= ACTION["inputs"].keys()
    used = set(re.findall(r"steps\.audit\.outputs\.([\w-]+)", FILES["release.yml"]))
    assert used <= ACTION["outputs"].keys()
    inputs = re.findall(r"^\| `([\w-]+)` \|", PAGE, re.MULTILINE)
    assert inputs == [*ACTION["inputs"]]
