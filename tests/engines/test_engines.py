"""Plans run on both engines of Polars: they stream and spill."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from processes import PLAIN
from queries import EXPRESSIONS, TABLES
from sweeps import sweep

import polars_wroc as wroc

# How the graph of a physical plan colours what does not stream.
IN_MEMORY_FALLBACK = 'fillcolor="0.0 0.3 1.0"'
# What computes at once, or is no query.
CHARTS = {name for name in wroc.__all__ if name.endswith("_chart")}
# Groups by ranges are an expression of any column, which has tests of its own.
NO_PLANS = {
    "audit",
    "audit_changes",
    "frequency",
    "new_york_summary",
    "ranges",
    "rows_needed",
    "show",
} | CHARTS


def _streaming_graph(plan: pl.LazyFrame) -> str:
    graph = plan.show_graph(engine="streaming", plan_stage="physical", raw_output=True, show=False)
    assert graph is not None
    return graph


def test_plans_of_all_functions_are_tested() -> None:
    functions = {name for name in wroc.__all__ if inspect.isfunction(getattr(wroc, name))}
    tested = {re.split(r"\W", name)[0] for name in [*TABLES, *EXPRESSIONS]}
    assert functions - NO_PLANS - tested == set()


@pytest.mark.parametrize(
    "name",
    [
        "roc_curve",
        "pr_curve",
        "score_counts",
        "score_counts in bins",
        "merge_counts",
    ],
)
def test_tables_stream(scan: pl.LazyFrame, name: str) -> None:
    known_fallback = scan.group_by("g").agg(pl.col("s").rank().sum())
    assert IN_MEMORY_FALLBACK in _streaming_graph(known_fallback)
    assert IN_MEMORY_FALLBACK not in _streaming_graph(TABLES[name](scan))


@pytest.mark.parametrize("name", ["summary", "group_gaps to the rest", "score_counts in bins"])
@pytest.mark.parametrize("engine", [pl.InMemoryEngine(), pl.StreamingEngine()], ids=type)
def test_engines_may_be_objects(scan: pl.LazyFrame, name: str, engine: pl.Engine) -> None:
    plan = TABLES[name](scan)
    assert_frame_equal(plan.collect(engine=engine), plan.collect(), rel_tol=1e-12)


def test_what_computes_at_once_runs_on_the_engine_of_the_settings(people: pl.DataFrame) -> None:
    expected = wroc.audit(people, "y", "s", weight="w", attributes="g").segments
    with pl.Config(engine_affinity=pl.InMemoryEngine()):
        found = wroc.audit(people, "y", "s", weight="w", attributes="g").segments
    assert_frame_equal(found, expected, rel_tol=1e-12)
    # An engine that is not there is asked, and says so.
    absent = pl.GPUEngine(raise_on_fail=True)
    with pl.Config(engine_affinity=absent), pytest.raises(ModuleNotFoundError, match="cudf"):
        wroc.summary(people, "y", "s", weight="w", by="g")


CURVE = """
import sys
import polars as pl
import polars_wroc as wroc

scan = pl.scan_parquet(sys.argv[1])
wroc.roc_curve(scan, "y", "s", weight="w", by="g").collect().write_parquet(sys.argv[2])
"""


@pytest.mark.slow(reason="starts processes")
@pytest.mark.parametrize(("height", "megabytes"), sweep([(250_000, "5"), (2_500_000, "50")]))
def test_what_outgrows_the_memory_budget_is_spilled(
    height: int, megabytes: str, tmp_path: Path
) -> None:
    rows = pl.select(row=pl.int_range(height))
    row = pl.col("row")
    data = rows.select(
        g=row % 5, y=row.hash(1) % 3 == 0, s=row.hash(2) / 2.0**64, w=row.hash(3) / 2.0**64
    )
    data.write_parquet(tmp_path / "rows.parquet", row_group_size=100_000)
    found = {}
    for budget in ("", megabytes):
        settings = {"POLARS_OOC_SPILL_DIR": str(tmp_path), "POLARS_OOC_LOG_METRICS": "1"}
        if budget:
            settings["POLARS_OOC_MEMORY_BUDGET_MB"] = budget
        result = tmp_path / f"curve{budget}.parquet"
        finished = subprocess.run(  # noqa: S603
            [sys.executable, "-c", CURVE, tmp_path / "rows.parquet", result],
            env=PLAIN | settings,
            check=True,
            capture_output=True,
            text=True,
        )
        written = re.findall(r"written=([\d.]+)", finished.stderr)
        assert any(float(size) > 0 for size in written) == bool(budget)
        found[budget] = pl.read_parquet(result)
    assert_frame_equal(found[megabytes], found[""], rel_tol=1e-12)
