"""Pages break no rule of axe-core, folded or open, on a desk and on a phone."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import polars as pl
import pytest
from chromium import Chromium
from sweeps import sweep

import polars_wroc as wroc
from polars_wroc.cli import main

UNFOLD = "document.querySelectorAll('details').forEach(one => { one.open = true; })"


@pytest.fixture(scope="module")
def page(loans: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    audit = wroc.audit(
        loans,
        "approved",
        "score",
        attributes=["race", "sex"],
        threshold=0.85,
        favorable="selected",
        intersections=True,
    )
    audit.save(path)
    return path


@pytest.mark.slow(reason="opens a browser")
@pytest.mark.parametrize(
    ("width", "scheme", "unfolded"),
    sweep([(1280, "light", False), (390, "dark", True)]),
)
def test_no_rule_is_broken(
    page: Path, chromium: Chromium, width: int, scheme: Literal["light", "dark"], *, unfolded: bool
) -> None:
    chromium.open(page, width=width, scheme=scheme)
    if unfolded:
        chromium.evaluate(UNFOLD)
    assert chromium.broken_rules() == []


@pytest.mark.slow(reason="opens a browser")
@pytest.mark.parametrize(
    ("width", "scheme"),
    sweep([(1280, "light"), (390, "dark")]),
)
def test_tables_break_no_rule(
    loans: pl.DataFrame,
    tmp_path: Path,
    chromium: Chromium,
    width: int,
    scheme: Literal["light", "dark"],
) -> None:
    about: Any = {"source": "All applications.", "distribution_date": "2026-01-15"}
    summary = wroc.new_york_summary(loans, "score", attributes=["sex", "race"], **about)
    summary.save(tmp_path / "summary.html")
    chromium.open(tmp_path / "summary.html", width=width, scheme=scheme)
    assert chromium.broken_rules() == []
    loans.write_parquet(tmp_path / "loans.parquet")
    by = ["--attribute", "race", "--selected", "approved", "--favorable", "selected"]
    page = tmp_path / "impact.html"
    assert main(["impact", str(tmp_path / "loans.parquet"), *by, "-o", str(page)]) == 0
    chromium.open(page, width=width, scheme=scheme)
    assert chromium.broken_rules() == []
