"""The pages for maintainers: the worked example works, and files that they name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from floors import PACKAGE
from site_navigation import DOCS, ROOT
from worked_example import change, copy_of_the_project, follow, steps

PAGES = [*(DOCS / "maintaining").glob("*.md"), DOCS / "explanation" / "stability.md"]
EXAMPLE = (DOCS / "maintaining" / "add-a-metric.md").read_text(encoding="utf-8")
_FILE = re.compile(r"`((?:[\w.-]+/)+[\w*.-]*)`")


def test_changes_of_the_example_fit(tmp_path: Path) -> None:
    project = copy_of_the_project(tmp_path)
    changed = [step for step in steps(EXAMPLE) if step.path]
    for step in changed:
        change(step, project)
    assert len(changed) > 10
    for path in {step.path for step in changed if not step.path.endswith(".md")}:
        compile((project / path).read_text(encoding="utf-8"), path, "exec")


@pytest.mark.slow(reason="starts processes")
def test_the_example_works(tmp_path: Path) -> None:
    project = copy_of_the_project(tmp_path)
    compared = follow(EXAMPLE, project)
    assert len(compared) == EXAMPLE.count("```text")
    for said, printed in compared:
        assert printed == said, "run: python tools/renew.py example"
    reference = {
        name: (project / "docs" / "reference" / f"{name}.md").read_text(encoding="utf-8")
        for name in ("options", "cli")
    }
    assert "max_f1" in reference["options"]
    assert "arcsine" in reference["options"]
    assert "detection_rate" in reference["cli"]
    snapshot = (project / "tests" / "public_surface.json").read_text(encoding="utf-8")
    assert '"detection_rate_low": "Float64"' in snapshot


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_files_that_are_named_exist(page: Path) -> None:
    named = set(_FILE.findall(page.read_text(encoding="utf-8")))
    places = (ROOT, PACKAGE, DOCS)
    assert [name for name in named if not any(any(top.glob(name)) for top in places)] == []
