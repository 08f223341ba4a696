"""Tests that open pages are run, or left out where no browser is, and the run says which."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Two tests that open pages, and one that does not.
CHOSEN = "small_and_short or titled_by_what_differs or table_of_all_numbers_sorts"


def run(path: str) -> str:
    """Run three tests with such a PATH; give what pytest says at the end."""
    options = ["-p", "no:cacheprovider", "-m", "slow or not slow", "-k", CHOSEN]
    options.append("tests/audits/report/test_page.py")
    done = subprocess.run(  # noqa: S603  (our own tests)
        [sys.executable, "-m", "pytest", *options],
        cwd=ROOT,
        check=False,
        env={"PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.slow
def test_without_a_browser_one_line_says_how_many_are_left_out(tmp_path: Path) -> None:
    said = run(str(tmp_path))
    assert said.count("Tests that open pages in a browser") == 1
    line = "Tests that open pages in a browser: 2 left out, as no Chromium or Chrome is on the PATH"
    assert f"\n{line}\n" in said
    assert "1 passed" in said.splitlines()[-1]
    assert "skipped" not in said
