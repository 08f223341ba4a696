"""What the workers of a client add up is what one process gives, also when one of them dies."""

from __future__ import annotations

import os
import re
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
from divided import assert_same, memory_of
from polars.testing import assert_frame_equal
from processes import PLAIN
from sklearn.metrics import roc_auc_score
from sweeps import sweep

import polars_wroc as wroc
from polars_wroc.cli import main


def assert_same_audits(audit: wroc.Audit, expected: wroc.Audit) -> None:
    for name in ("segments", "curves", "missing"):
        # Weights of some thousands, whose differences may be nearly 0.
        assert_frame_equal(
            getattr(audit, name), getattr(expected, name), rel_tol=1e-9, abs_tol=1e-9
        )
    assert_frame_equal(audit.table, expected.table, rel_tol=1e-9, abs_tol=1e-11)
    assert audit.settings == expected.settings


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


@pytest.fixture(scope="module")
def parts(files: Path) -> list[pl.LazyFrame]:
    return [pl.scan_parquet(file) for file in sorted(files.iterdir())]


@pytest.mark.parametrize("score", sweep(["s", ["t", "s"]]))
@pytest.mark.parametrize("by", sweep([None, "g"], fast=["g"]))
def test_summary(
    client: Client,
    parts: list[pl.LazyFrame],
    whole: pl.DataFrame,
    score: str | list[str],
    by: str | None,
) -> None:
    with wroc.Config(client=client, memory=memory_of(500)):
        table = wroc.summary(parts, "y", score, weight="w", by=by)
    assert_same(table.collect(), wroc.summary(whole, "y", score, weight="w", by=by))


def test_sklearn_agrees(client: Client, parts: list[pl.LazyFrame], whole: pl.DataFrame) -> None:
    with wroc.Config(client=client), wroc.Config(memory=memory_of(1000)):
        table = wroc.summary(parts, "y", "s", weight="w").collect()
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
def test_audit(
    client: Client, parts: list[pl.LazyFrame], whole: pl.DataFrame, options: dict[str, Any]
) -> None:
    named: dict[str, Any] = {"label": "y", "weight": "w", "attributes": ["g", "h"], **options}
    with wroc.Config(client=client, memory=memory_of(2000)):
        audit = wroc.audit(parts, **named)
    assert_same_audits(audit, wroc.audit(whole, **named))


@pytest.mark.slow(reason="starts workers")
@pytest.mark.parametrize("bins", [None, 256])
def test_counts_of_workers_are_those_of_one_process(
    client: Client, parts: list[pl.LazyFrame], whole: pl.DataFrame, bins: int | None
) -> None:
    call: dict[str, Any] = {"weight": "w", "by": "g", "bins": bins}
    expected = wroc.score_counts(whole, "y", "s", **call)
    assert_same(wroc.score_counts(parts, "y", "s", **call).collect(), expected)
    # More of them than are added up together.
    twice = [part[start:4000:2] for part in parts for start in range(2)]
    with wroc.Config(client=client):
        counts = wroc.score_counts(twice, "y", "s", **call)
    assert_same(counts.collect(), expected)


@pytest.mark.slow(reason="starts workers")
@pytest.mark.parametrize("what", sweep(["summary", "audit", "score_counts"], fast=2))
def test_a_worker_that_dies_costs_a_retry(
    client: Client, files: Path, whole: pl.DataFrame, tmp_path: Path, what: str
) -> None:
    # This process reads a file to know how many rows there are, and workers read it to count them
    # and for each range.
    fatal = 1 if what == "score_counts" else 3

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
    function: Callable[..., Any] = getattr(wroc, what)
    groups = {"attributes" if what == "audit" else "by": "g"}
    with wroc.Config(client=client, memory=memory_of(2000)):
        result = function(parts, "y", "s", weight="w", **groups)
        result = result if what == "audit" else result.collect()
    expected = function(whole, "y", "s", weight="w", **groups)
    if what == "audit":
        assert_same_audits(result, expected)
    else:
        assert_same(result, expected)
    assert len([*tmp_path.glob("3 *")]) > fatal
    client.wait_for_workers(2)
    assert set(client.run(os.getpid).values()) != before


def test_errors_of_workers_are_sentences(client: Client) -> None:
    parts = [pl.LazyFrame({"y": [1, 0], "s": [0.5, 0.1], "w": [1, bad]}) for bad in (1, -1)]
    message = "`weight` must be finite"
    with wroc.Config(client=client, memory=memory_of(1)):
        for function in (wroc.summary, wroc.score_counts):
            plan = function(parts, "y", "s", weight="w")
            with pytest.raises(pl.exceptions.PolarsError, match=message):
                plan.collect()
        with pytest.raises(pl.exceptions.InvalidOperationError, match=f"^{message}"):
            wroc.audit(parts, "y", "s", weight="w", attributes="y")


@pytest.mark.parametrize("client", [3, "tcp://localhost:8786", Client])
def test_a_client_is_connected(client: Any) -> None:
    with pytest.raises(TypeError, match=r"`client` must be a synchronous distributed\.Client"):
        wroc.Config(client=client)


@pytest.mark.slow(reason="starts workers")
@pytest.mark.parametrize("address", ["xx", "x://nowhere:1"])
def test_an_address_names_the_option(
    address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rule = f"must be the address of a running scheduler.*; found {address!r}: "
    monkeypatch.setenv("POLARS_WROC_DASK", address)
    with pytest.raises(ValueError, match=f"`POLARS_WROC_DASK` {rule}"):
        wroc.summary(pl.LazyFrame({"y": [0, 1], "s": [0.1, 0.2]}), "y", "s").collect()
    rows = tmp_path / "x.parquet"
    pl.DataFrame({"y": [0, 1], "s": [0.1, 0.2]}).write_parquet(rows)
    call = ["auc", str(rows), "--label", "y", "--score", "s"]
    assert main([*call, "--dask", address]) == 2
    assert re.search(f"--dask {rule}", capsys.readouterr().err)


@pytest.mark.slow(reason="starts workers")
def test_a_cluster_may_be_named_by_its_address(
    client: Client, files: Path, whole: pl.DataFrame, tmp_path: Path
) -> None:
    address, output = client.scheduler_info()["address"], tmp_path / "auc.parquet"
    call = ["auc", str(files), "--label", "y", "--score", "s", "-o", str(output)]
    assert main([*call, "--memory", memory_of(1000), "--dask", address]) == 0
    assert_same(pl.read_parquet(output), wroc.summary(whole, "y", "s"))
    assert main(["counts", *call[1:], "--dask", address]) == 0
    assert_same(pl.read_parquet(output), wroc.score_counts(whole, "y", "s"))
    code = f"""
import os
os.environ["POLARS_WROC_DASK"] = {address!r}
import polars as pl
import polars_wroc as wroc
print(wroc.summary(pl.scan_parquet({str(files)!r}), "y", "s").collect()["auc"].item())
"""
    auc = wroc.summary(whole, "y", "s")["auc"].item()
    assert float(_python(code)) == pytest.approx(auc, rel=1e-12)


def _python(code: str) -> str:
    ran = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], env=PLAIN, capture_output=True, text=True, check=True
    )
    return ran.stdout.strip()


@pytest.mark.slow(reason="starts processes")
def test_dask_is_imported_by_those_who_want_it() -> None:
    loaded = "import sys, polars_wroc; print({'dask', 'distributed'} & {*sys.modules})"
    assert _python(loaded) == "set()"


@pytest.mark.slow(reason="starts processes")
def test_without_distributed_the_error_says_what_to_install() -> None:
    code = """
import os, sys
import polars as pl
import polars_wroc as wroc
sys.modules["distributed"] = None
os.environ["POLARS_WROC_DASK"] = "localhost:1"
try:
    wroc.summary(pl.LazyFrame({"y": [1, 0], "s": [0, 1]}), "y", "s")
except ImportError as error:
    print(error)
"""
    assert _python(code) == "`POLARS_WROC_DASK` needs Dask: pip install distributed"
