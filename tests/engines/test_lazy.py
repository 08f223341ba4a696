"""Lazy frames stay lazy and read little."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

import polars as pl
import pytest
from polars.io.plugins import register_io_source
from polars.testing import assert_frame_equal
from processes import PLAIN
from queries import TABLES
from sweeps import sweep

import polars_wroc as wroc

Engine: TypeAlias = Literal["in-memory", "streaming"]


@pytest.mark.parametrize("name", sweep(TABLES, fast=7))
def test_lazy_source_is_not_read_before_collect(people: pl.DataFrame, name: str) -> None:
    reads = []

    def read(
        with_columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,  # noqa: ARG001
        batch_size: int | None,  # noqa: ARG001
    ) -> Iterator[pl.DataFrame]:
        reads.append(with_columns)
        rows = people if predicate is None else people.filter(predicate)
        yield rows if with_columns is None else rows.select(with_columns)

    source = register_io_source(read, schema=people.schema)
    plan = TABLES[name](source)
    assert isinstance(plan, pl.LazyFrame)
    assert reads == []
    assert_frame_equal(plan.collect(), TABLES[name](people.lazy()).collect(), rel_tol=1e-12)
    assert reads != []


@pytest.mark.parametrize("name", sweep(TABLES, fast=6))
def test_scanned_file_gives_what_the_frame_gives(
    scan: pl.LazyFrame, people: pl.DataFrame, name: str, engine: Engine
) -> None:
    expected = TABLES[name](people.lazy()).collect()
    assert_frame_equal(TABLES[name](scan).collect(engine=engine), expected, rel_tol=1e-12)


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("summary", 4),
        ("summary of two models", 4),
        ("roc_curve", 4),
        ("roc_curve of few points", 3),
        ("threshold_metrics", 4),
        ("threshold_metrics at thresholds", 2),
        ("threshold_metrics, all", 4),
        ("summary in clusters", 4),
        ("compare", 5),
        ("compare in clusters", 3),
        ("group_gaps to the rest", 4),
        ("group_gaps to overall", 4),
        ("group_gaps to the best", 4),
        ("group_gaps to a group", 4),
        ("bootstrap", 4),
        ("bootstrap_replicates", 3),
        ("calibration_curve", 4),
        ("decision_curve", 4),
        ("score_distribution without a label", 3),
    ],
)
def test_only_the_columns_asked_for_are_read(scan: pl.LazyFrame, name: str, columns: int) -> None:
    plan = TABLES[name](scan).explain()
    assert plan.count("Parquet SCAN") >= 1
    assert plan.count("Parquet SCAN") == plan.count(f"PROJECT {columns}/8 COLUMNS")


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("roc_point", 4),
        ("roc_point at tpr", 3),
        ("roc_curve with a pointwise band", 4),
        ("roc_curve with a simultaneous band", 4),
        ("calibration_summary", 4),
        ("score_distribution", 4),
    ],
)
def test_bands_read_no_more_than_the_columns_asked_for(
    scan: pl.LazyFrame, name: str, columns: int
) -> None:
    plan = TABLES[name](scan).explain()
    read = [int(count) for count in re.findall(r"PROJECT (\d)/8 COLUMNS", plan)]
    assert plan.count("Parquet SCAN") == len(read)
    assert max(read) == columns


def test_expressions_read_only_their_columns(scan: pl.LazyFrame) -> None:
    plan = scan.group_by("g").agg(wroc.roc_auc("y", "s"), wroc.ks("y", "s")).explain()
    assert "PROJECT 3/8 COLUMNS" in plan


@pytest.mark.parametrize("name", sweep(TABLES, fast=list(TABLES)[::8]))
def test_filter_on_the_scan_is_pushed_down(scan: pl.LazyFrame, name: str) -> None:
    plan = TABLES[name](scan.filter(pl.col("extra") == 1)).explain()
    pushed = re.findall(r'SELECTION: .*col\("extra"\)', plan)
    assert plan.count("Parquet SCAN") == len(pushed) >= 1


def _imported(code: str) -> set[str]:
    """Name the modules that code imports, but for Polars, SciPy and what is there for importing."""
    start, end = (
        "import sys, polars, lazy_loader, scipy.special; before = {*sys.modules}",
        "print(*{*sys.modules} - before)",
    )
    finished = subprocess.run(  # noqa: S603
        [sys.executable, "-c", f"{start}\n{code}\n{end}"],
        env=PLAIN,
        check=True,
        capture_output=True,
        text=True,
    )
    modules = finished.stdout.split()
    return {name for name in modules if name.split(".")[0] not in sys.stdlib_module_names}


def test_import_imports_no_more_than_it_must() -> None:
    assert _imported("import polars_wroc") == {"polars_wroc"}


def test_a_name_imports_what_it_needs() -> None:
    imported = _imported("import polars_wroc; polars_wroc.summary")
    assert "polars_wroc.metrics.summary" in imported
    assert {name.split(".")[0] for name in imported} == {"polars_wroc"}
    assert imported.isdisjoint({"polars_wroc.charts", "polars_wroc.audits"})


def test_all_names_but_charts_import_polars_numpy_and_special_functions_alone() -> None:
    names = ", ".join(name for name in wroc.__all__ if "chart" not in name)
    imported = _imported(f"from polars_wroc import {names}; polars.DataFrame().wroc")
    assert {name.split(".")[0] for name in imported} == {"polars_wroc"}


def test_import_registers_the_namespaces() -> None:
    frame: Any = pl.DataFrame({"y": [1, 0], "s": [2, 1]})
    owners: list[Any] = [frame, frame.lazy(), pl.col("s")]
    for owner in owners:
        assert type(owner.wroc).__module__ == "polars_wroc.namespaces"
