"""Lazy frames stay lazy, read little, stream, and hold no Python callback."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, TypeAlias

import polars as pl
import pytest
from polars.io.plugins import register_io_source
from polars.testing import assert_frame_equal

import polars_wroc as wroc

Engine: TypeAlias = Literal["in-memory", "streaming"]
Table: TypeAlias = Callable[[pl.LazyFrame], pl.LazyFrame]


def _gaps(reference: str) -> Table:
    return lambda f: wroc.group_gaps(f, "y", "s", weight="w", by="g", reference=reference)


# A score that may be a probability.
_SHARE = 1 / (1 + (-pl.col("s")).exp())

TABLES: dict[str, Table] = {
    "summary": lambda f: wroc.summary(f, "y", "s", weight="w", by="g"),
    "summary of two models": lambda f: wroc.summary(f, "y", ["s", "limit"], weight="w"),
    "confusion_curve": lambda f: wroc.confusion_curve(f, "y", "s", weight="w", by="g"),
    "roc_curve": lambda f: wroc.roc_curve(f, "y", "s", weight="w", by="g", drop_collinear=True),
    "roc_curve of few points": lambda f: wroc.roc_curve(f, "y", "s", by="g", max_points=5),
    "threshold_metrics": lambda f: wroc.threshold_metrics(f, "y", "s", weight="w", by="g"),
    "threshold_metrics asked for": lambda f: wroc.threshold_metrics(f, "y", "s", thresholds=1),
    "threshold_metrics with intervals": lambda f: wroc.threshold_metrics(
        f, "y", "s", weight="w", by="g", level=0.9
    ),
    "summary in clusters": lambda f: wroc.summary(
        f, "y", "s", weight="w", by="g", cluster=pl.col("w").floor()
    ),
    "compare": lambda f: wroc.compare(f, "y", ["s", "limit"], weight="w", by="g"),
    "compare in clusters": lambda f: wroc.compare(
        f, "y", ["s", "w"], cluster=pl.col("w").floor(), adjust="none"
    ),
    "gaps to the rest": _gaps("rest"),
    "gaps to everybody": _gaps("overall"),
    "gaps to the best": _gaps("best"),
    "gaps to a group": _gaps("b"),
    "tpr_at_fpr": lambda f: wroc.tpr_at_fpr(f, "y", "s", fpr=[0.1, 0.2], weight="w", by="g"),
    "fpr_at_tpr": lambda f: wroc.fpr_at_tpr(f, "y", "s", tpr=0.9, weight="w"),
    "roc_curve with a pointwise band": lambda f: wroc.roc_curve(
        f, "y", "s", weight="w", by="g", band="pointwise"
    ),
    "roc_curve with a simultaneous band": lambda f: wroc.roc_curve(
        f, "y", "s", weight="w", by="g", band="simultaneous", max_points=9
    ),
    "bootstrap": lambda f: wroc.bootstrap(
        f, "y", "s", metrics=["ks", "roc_auc"], weight="w", by="g", replicates=3
    ),
    "pr_curve": lambda f: wroc.pr_curve(f, "y", "s", weight="w", by="g"),
    "gain_curve": lambda f: wroc.gain_curve(f, "y", "s", weight="w", by="g"),
    "operating_points": lambda f: wroc.operating_points(
        f, "y", "s", weight="w", by="g", max_fpr=0.2
    ),
    "operating_points, common": lambda f: wroc.operating_points(
        f, "y", "s", weight="w", by="g", max_fpr=0.2, common=True, level=0.9
    ),
    "bootstrap_replicates": lambda f: wroc.bootstrap_replicates(
        f, "y", "s", metrics="ks", weight="w", replicates=3
    ),
    "auc_decomposition": lambda f: wroc.auc_decomposition(f, "y", "s", weight="w", by="g"),
    "abroca_test": lambda f: wroc.abroca_test(f, "y", "s", weight="w", by="g", permutations=20),
    "calibration_curve": lambda f: wroc.calibration_curve(f, "y", _SHARE, weight="w", by="g"),
    "calibration_error": lambda f: wroc.calibration_error(
        f, "y", _SHARE, weight="w", by="g", strategy="quantile"
    ),
}

# How the graph of a physical plan colours what does not stream.
IN_MEMORY_FALLBACK = 'fillcolor="0.0 0.3 1.0"'


@pytest.fixture
def scan(people: pl.DataFrame, tmp_path: Path) -> pl.LazyFrame:
    """A Parquet file with the people's five columns and three that nothing asks for."""
    path = tmp_path / "people.parquet"
    people.with_columns(extra=1, more=2, most=3).write_parquet(path)
    return pl.scan_parquet(path)


def _streaming_graph(plan: pl.LazyFrame) -> str:
    graph = plan.show_graph(engine="streaming", plan_stage="physical", raw_output=True, show=False)
    assert graph is not None
    return graph


@pytest.mark.parametrize("name", TABLES)
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


@pytest.mark.parametrize("name", TABLES)
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
        ("confusion_curve", 4),
        ("roc_curve", 4),
        ("roc_curve of few points", 3),
        ("threshold_metrics", 4),
        ("threshold_metrics asked for", 2),
        ("threshold_metrics with intervals", 4),
        ("summary in clusters", 4),
        ("compare", 5),
        ("compare in clusters", 3),
        ("gaps to the rest", 4),
        ("gaps to everybody", 4),
        ("gaps to the best", 4),
        ("gaps to a group", 4),
        ("bootstrap", 4),
        ("bootstrap_replicates", 3),
        ("auc_decomposition", 4),
        ("calibration_curve", 4),
        ("calibration_error", 4),
    ],
)
def test_only_the_columns_asked_for_are_read(scan: pl.LazyFrame, name: str, columns: int) -> None:
    plan = TABLES[name](scan).explain()
    assert plan.count("Parquet SCAN") >= 1
    assert plan.count("Parquet SCAN") == plan.count(f"PROJECT {columns}/8 COLUMNS")


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("tpr_at_fpr", 4),
        ("fpr_at_tpr", 3),
        ("roc_curve with a pointwise band", 4),
        ("roc_curve with a simultaneous band", 4),
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


@pytest.mark.parametrize("name", TABLES)
def test_filter_on_the_scan_is_pushed_down(scan: pl.LazyFrame, name: str) -> None:
    plan = TABLES[name](scan.filter(pl.col("extra") == 1)).explain()
    pushed = re.findall(r'SELECTION: .*col\("extra"\)', plan)
    assert plan.count("Parquet SCAN") == len(pushed) >= 1


@pytest.mark.parametrize("name", TABLES)
def test_plan_survives_serialising_without_python(people: pl.DataFrame, name: str) -> None:
    plan = TABLES[name](people.lazy())
    assert "python" not in plan.explain(optimized=False).lower()
    shipped = pl.LazyFrame.deserialize(io.BytesIO(plan.serialize()))
    assert_frame_equal(shipped.collect(), plan.collect(), rel_tol=1e-12)


@pytest.mark.parametrize(
    "name",
    [
        "summary",
        "summary of two models",
        "summary in clusters",
        "compare in clusters",
        "threshold_metrics with intervals",
    ],
)
def test_summary_streams(scan: pl.LazyFrame, name: str) -> None:
    known_fallback = scan.group_by("g").agg(pl.col("s").rank().sum())
    assert IN_MEMORY_FALLBACK in _streaming_graph(known_fallback)
    assert IN_MEMORY_FALLBACK not in _streaming_graph(TABLES[name](scan))


def test_comparison_streams_until_the_table_is_small(scan: pl.LazyFrame) -> None:
    plan = wroc.compare(scan, "y", ["s", "limit"], weight="w", by="g", adjust="none")
    assert IN_MEMORY_FALLBACK not in _streaming_graph(plan)


def test_import_imports_neither_altair_nor_pyarrow() -> None:
    code = "import sys, polars_wroc; print(*sys.modules)"
    finished = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    imported = set(finished.stdout.split())
    assert "polars_wroc" in imported
    assert imported.isdisjoint({"altair", "pyarrow", "jinja2", "vl_convert", "sklearn"})


def test_import_registers_the_namespaces() -> None:
    frame: Any = pl.DataFrame({"y": [1, 0], "s": [2, 1]})
    owners: list[Any] = [frame, frame.lazy(), pl.col("s")]
    for owner in owners:
        assert type(owner.wroc).__module__ == "polars_wroc.namespaces"
