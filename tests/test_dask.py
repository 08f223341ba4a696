"""What workers of a Dask cluster add up is what one machine gives, also when one of them dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from dask import config
from distributed import Client, LocalCluster
from polars.testing import assert_frame_equal
from processes import PLAIN
from sklearn.metrics import roc_auc_score
from sweeps import sweep

import polars_wroc as wroc
from polars_wroc import dask
from polars_wroc.audits.result import Audit


def assert_same_audits(audit: Audit, expected: Audit) -> None:
    for name in ("segments", "curves", "missing"):
        assert_frame_equal(
            getattr(audit, name), getattr(expected, name), rel_tol=1e-9, abs_tol=1e-11
        )
    # Slopes are not measured in ranges, so that calibration has fewer tests.
    others = ~pl.col("metric").str.starts_with("calibration_")
    tables = [each.table.filter(others).drop("rank") for each in (audit, expected)]
    assert_frame_equal(*tables, rel_tol=1e-9, abs_tol=1e-11)
    assert audit.settings == expected.settings


def assert_same(table: pl.DataFrame, expected: pl.DataFrame) -> None:
    assert_frame_equal(table, expected, check_exact=False, rel_tol=1e-12, abs_tol=1e-14)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Two processes for workers."""
    with (
        # On a busy machine processes take long to start and to answer.
        config.set({f"distributed.comm.timeouts.{what}": "5m" for what in ("connect", "tcp")}),
        # Several test processes may each have a cluster: any port that is free.
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as connected,
    ):
        yield connected


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    random = np.random.default_rng(11)
    rows = 6000
    positive = random.random(rows) < 0.3
    return pl.DataFrame(
        {
            "g": random.choice(["a", "b", "c"], rows),
            # Most rows are in one of the two groups.
            "h": random.random(rows) < 0.95,
            "y": positive,
            "s": np.where(random.random(rows) < 0.2, 0.5, random.normal(size=rows) + positive),
            "t": np.round(random.random(rows), 1),
            "w": random.lognormal(size=rows),
        }
    ).with_columns(pl.when(pl.int_range(pl.len()) % 50 != 0).then("s"))


@pytest.fixture(scope="module")
def files(frame: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five files, the last of which lacks a group."""
    folder = tmp_path_factory.mktemp("files")
    for number in range(5):
        part = frame[number::5]
        part = part.filter(pl.col("g") != "c") if number == 4 else part
        part.write_parquet(folder / f"{number}.parquet")
    return folder


@pytest.fixture(scope="module")
def whole(files: Path) -> pl.DataFrame:
    return pl.read_parquet(files / "*.parquet")


@pytest.mark.parametrize("score", sweep(["s", ["t", "s"]]))
@pytest.mark.parametrize("by", sweep([None, "g"], fast=["g"]))
def test_summary(
    client: Client, files: Path, whole: pl.DataFrame, score: str | list[str], by: str | None
) -> None:
    table = dask.summary(
        client, str(files / "*.parquet"), "y", score, weight="w", by=by, rows_per_range=500
    )
    assert_same(table, wroc.summary(whole, "y", score, weight="w", by=by))


def test_sklearn_agrees(client: Client, files: Path, whole: pl.DataFrame) -> None:
    parts = [pl.scan_parquet(file) for file in files.iterdir()]
    table = dask.summary(client, parts, "y", "s", weight="w", rows_per_range=1000)
    there = whole.drop_nulls()
    expected = roc_auc_score(there["y"], there["s"], sample_weight=there["w"])
    assert table["auc"].item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    "options",
    sweep(
        [
            {
                "score": ["t", "s"],
                "threshold": wroc.rules.youden(),
                "reference": "best",
                "favorable": "rejected",
            },
            {
                "score": "s",
                "threshold": 0.5,
                "reference": "overall",
                "favorable": "selected",
            },
            {
                "score": "s",
                "threshold": 0.5,
                "weight": wroc.frequency(pl.col("w").ceil()),
                "favorable": "selected",
            },
        ]
    ),
)
def test_audit(client: Client, files: Path, whole: pl.DataFrame, options: dict[str, Any]) -> None:
    named: dict[str, Any] = {"label": "y", "weight": "w", "attributes": ["g", "h"], **options}
    audit = dask.audit(client, files / "*.parquet", **named, rows_per_range=2000)
    assert_same_audits(audit, wroc.audit(whole, **named))


@pytest.mark.slow
def test_exact_counts_give_every_table(client: Client, files: Path, whole: pl.DataFrame) -> None:
    counts = dask.score_counts(client, files / "*.parquet", "y", "s", weight="w", by="g")
    assert_same(counts, wroc.score_counts(whole, "y", "s", weight="w", by="g"))
    tables = wroc.from_counts(counts)
    assert_same(tables.summary(by="g"), wroc.summary(whole, "y", "s", weight="w", by="g"))
    expected = wroc.audit(
        whole, "y", "s", weight="w", attributes="g", threshold=0.5, favorable="selected"
    )
    audit = tables.audit(attributes="g", threshold=0.5, favorable="selected")
    assert_same(audit.segments.drop("model"), expected.segments.drop("model"))
    assert_same(audit.table.drop("model"), expected.table.drop("model"))


def test_binned_counts(client: Client, files: Path, whole: pl.DataFrame) -> None:
    counts = dask.score_counts(client, files / "*.parquet", "y", "s", weight="w", bins=256)
    assert_same(counts, wroc.score_counts(whole, "y", "s", weight="w", bins=256))


@pytest.mark.slow
@pytest.mark.parametrize("what", sweep(["summary", "audit", "score_counts"], fast=2))
def test_a_worker_that_dies_costs_a_retry(
    client: Client, files: Path, whole: pl.DataFrame, tmp_path: Path, what: str
) -> None:
    # Each file is read once to count; those that rank read it again, to divide it.
    ranks = what != "score_counts"
    fatal = 2 if ranks else 1

    def plan(file: Path) -> pl.LazyFrame:
        def read(frame: pl.DataFrame) -> pl.DataFrame:
            (tmp_path / f"{file.stem} {len([*tmp_path.iterdir()])} {os.getpid()}").touch()
            reads = [*tmp_path.glob(f"{file.stem} *")]
            if file.stem == "3" and len(reads) == fatal:
                os.kill(os.getpid(), signal.SIGKILL)
            return frame

        return pl.scan_parquet(file).map_batches(read, streamable=False)

    before = set(client.run(os.getpid).values())
    parts = [plan(file) for file in sorted(files.iterdir())]
    function: Callable[..., Any] = getattr(dask, what)
    options: dict[str, Any] = {"rows_per_range": 2000} if ranks else {}
    groups = {"attributes" if what == "audit" else "by": "g"}
    result = function(client, parts, "y", "s", weight="w", **groups, **options)
    expected = getattr(wroc, what)(whole, "y", "s", weight="w", **groups)
    if what == "audit":
        assert_same_audits(result, expected)
    else:
        assert_same(result, expected)
    assert len([*tmp_path.glob("3 *")]) > fatal
    client.wait_for_workers(2)
    assert set(client.run(os.getpid).values()) != before


def test_errors_of_workers_are_sentences(client: Client) -> None:
    parts = [pl.LazyFrame({"y": [1, 0], "s": [0.5, 0.1], "w": [1, bad]}) for bad in (1, -1)]
    for function in (dask.summary, dask.score_counts):
        with pytest.raises(pl.exceptions.InvalidOperationError, match=r"^`weight` must be finite"):
            function(client, parts, "y", "s", weight="w")
    with pytest.raises(pl.exceptions.InvalidOperationError, match=r"^`weight` must be finite"):
        dask.audit(client, parts, "y", "s", weight="w", attributes="y")


def test_arguments_are_checked_at_once(client: Client) -> None:
    frame = pl.LazyFrame({"y": [1, 0], "s": [0.5, 0.1]})
    with pytest.raises(TypeError, match=r"`client` must be a distributed\.Client that"):
        dask.summary(None, frame, "y", "s")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="`parts` must be one or several LazyFrames or names of"):
        dask.summary(client, [], "y", "s")
    with pytest.raises(TypeError, match="`parts` must hold LazyFrames, DataFrames or names of"):
        dask.score_counts(client, [frame, 3], "y", "s")  # type: ignore[list-item]
    with pytest.raises(ValueError, match=r"`parts` must exist; found no 'nowhere\.parquet'"):
        dask.score_counts(client, "nowhere.parquet", "y", "s")
    with pytest.raises(ValueError, match="`rows_per_range` must be 1 or more"):
        dask.summary(client, frame, "y", "s", rows_per_range=0)
    with pytest.raises(TypeError, match=r"`client` must be a distributed\.Client that"):
        dask.audit(None, frame, "y", "s", attributes="y")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`rows_per_range` must be 1 or more"):
        dask.audit(client, frame, "y", "s", attributes="y", rows_per_range=0)
    with pytest.raises(ValueError, match="`parts` must have rows to audit; found none"):
        dask.audit(client, frame.clear(), "y", "s", attributes="y")
    grouped = [frame.with_columns(pl.lit(key).alias("g")) for key in ("a", 1)]
    with pytest.raises(ValueError, match="`parts` must all have the same groups"):
        dask.summary(client, grouped, "y", "s", by="g")


@pytest.mark.slow
def test_a_file_that_is_named_twice_is_refused(client: Client, files: Path) -> None:
    twice: list[dask.Part] = [files / "0.parquet", pl.scan_parquet(files / "1.parquet"), str(files)]
    for function in (dask.score_counts, dask.summary):
        with pytest.raises(ValueError, match=r"^`parts` must be different files; found '.*0\.parq"):
            function(client, twice, "y", "s")


@pytest.mark.slow
def test_a_name_that_exists_is_no_pattern(client: Client, tmp_path: Path) -> None:
    for name, height in (("q[1]", 4), ("q1", 2)):
        rows = pl.DataFrame({"y": [0, 1] * height, "s": [0.5] * 2 * height})
        rows.write_parquet(tmp_path / "written")
        (tmp_path / "written").rename(tmp_path / f"{name}.parquet")
    counts = dask.score_counts(client, tmp_path / "q[1].parquet", "y", "s")
    assert counts["n_pos"].to_list() == [4]


def _python(code: str) -> str:
    ran = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], env=PLAIN, capture_output=True, text=True, check=True
    )
    return ran.stdout.strip()


@pytest.mark.slow
def test_dask_is_imported_by_those_who_want_it() -> None:
    loaded = "import sys, polars_wroc; print({'dask', 'distributed'} & {*sys.modules})"
    assert _python(loaded) == "set()"


@pytest.mark.slow
def test_without_distributed_the_error_says_what_to_install() -> None:
    code = """
import sys
sys.modules["distributed"] = None
try:
    import polars_wroc.dask
except ImportError as error:
    print(error)
"""
    assert _python(code) == "polars_wroc.dask needs distributed: pip install 'polars-wroc[dask]'"
