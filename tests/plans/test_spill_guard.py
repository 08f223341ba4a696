"""A budget of memory with which Polars may hang on many rows: warned of, or done without."""

from __future__ import annotations

import warnings
from pathlib import Path

import polars as pl
import pytest
from divided import audit_in_ranges, memory_of, summary_in_ranges
from polars.testing import assert_frame_equal

import polars_wroc as wroc
from polars_wroc.cli import sources as cli_inputs
from polars_wroc.cli.main import main
from polars_wroc.plans import config
from polars_wroc.plans.config import BUDGET, SpillWarning


@pytest.fixture
def budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough for Polars not to spill."""
    monkeypatch.setenv(BUDGET, "100000")


@pytest.fixture
def many(people: pl.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file with more rows than a query may have."""
    monkeypatch.setenv(BUDGET, "100000")
    for module in (cli_inputs, config):
        monkeypatch.setattr(module, "MOST_ROWS", 100)
    path = tmp_path / "many.parquet"
    people.write_parquet(path)
    return str(path)


@pytest.mark.plans
@pytest.mark.usefixtures("budget")
@pytest.mark.parametrize("table", ["roc_curve", "confusion_curve"])
def test_plans_with_windows_warn(table: str, people: pl.DataFrame) -> None:
    with pytest.warns(SpillWarning, match=r"beyond 30,000,000 rows .* `Config.memory=.`"):
        getattr(wroc, table)(people.lazy(), "y", "s", by="g")


@pytest.mark.usefixtures("budget")
def test_what_needs_no_window_does_not_warn(people: pl.DataFrame) -> None:
    frame = people.lazy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wroc.score_counts(frame, "y", "s", by="g", bins=64).collect()
        summary_in_ranges(frame, "y", "s", by="g", rows_per_range=100)
        audit_in_ranges(
            frame,
            "y",
            "s",
            attributes="g",
            rows_per_range=300,
            threshold=wroc.rules.max_fpr(0.1),
            favorable="selected",
        )
        frame.group_by("g").agg(wroc.roc_auc("y", "s")).collect()


def test_no_budget_no_warning(people: pl.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(BUDGET, raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wroc.summary(people.lazy(), "y", "s", by="g").collect()


def test_auc_of_many_rows_takes_the_ranges(many: str, people: pl.DataFrame, tmp_path: Path) -> None:
    output = tmp_path / "auc.parquet"
    words = ["--label", "y", "--score", "s", "--weight", "w", "--by", "g", "--level", "0.9"]
    assert main(["--memory", memory_of(100), "auc", many, *words, "-o", str(output)]) == 0
    with config.without_spilling():
        expected = wroc.summary(people, "y", "s", weight="w", by="g", level=0.9)
    assert_frame_equal(pl.read_parquet(output), expected, rel_tol=1e-12)


@pytest.mark.parametrize(
    ("words", "instead"),
    [
        (
            ["gaps", "--attribute", "g"],
            "count the rows with polars-wroc counts --bins, and pass --counts",
        ),
        (["curve", "--kind", "pr", "-o", "x.csv"], "count the rows with polars-wroc counts --bins"),
        (["compare", "--score", "y"], "compare fewer rows"),
    ],
)
def test_what_can_be_done_instead(
    words: list[str], instead: str, many: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command, *others = words
    assert main([command, many, "--label", "y", "--score", "s", *others]) == 2
    assert instead in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["audit", "--attribute", "g", "--cluster", "limit"],
        ["curve", "-o", "curve.csv"],
        ["auc", "--cluster", "limit"],
        ["auc", "--strata", "g"],
    ],
)
def test_what_has_no_ranges_is_refused(
    words: list[str],
    many: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    command, *others = words
    assert main([command, many, "--label", "y", "--score", "s", *others]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"polars-wroc: {BUDGET} must not be set for more than 100 rows")
    assert "found 600: unset it, or pass --bins" in error
    assert error.count("\n") == 1


def test_bins_need_no_spilling(many: str) -> None:
    assert (
        main(["audit", many, "--label", "y", "--score", "s", "--attribute", "g", "--bins", "64"])
        == 0
    )
