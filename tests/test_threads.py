"""Work that threads share: the same bits for any number of them, and an end when one fails."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from polars_wroc.threads import map_in_threads

MANY = """
import sys
from pathlib import Path
import polars as pl
import polars_wroc as wroc

many, folder = pl.read_parquet(sys.argv[1]), Path(sys.argv[2])
weighted = {"weight": "w", "design": pl.col("c")}
audit = wroc.audit(many, "y", "s", attributes=["g", "h"], **weighted)
tables = {
    "summary": wroc.summary(many, "y", "s", weight="w"),
    "diagnostics": wroc.summary(many, "y", "s", weight="w", by="g", diagnostics=True),
    "summary of groups": wroc.summary(many, "y", "s", by="h", **weighted),
    "gaps": wroc.group_gaps(many, "y", "s", attributes=["g", "h"], threshold=0.5, **weighted),
    "calibration": wroc.calibration_summary(many, "y", "s", weight="w", by="g"),
    "segments": audit.segments,
    "findings": audit.table,
    "curves": audit.curves,
    "gaps without clusters": wroc.group_gaps(
        many, "y", "s", attributes="g", weight="w", threshold=0.5
    ),
    "bootstrap": wroc.bootstrap(many, "y", "s", metrics="ks", by="g", resamples=3),
    "bootstrap of clusters": wroc.bootstrap(
        many, "y", "s", metrics="ks", design="c", resamples=3, replicates=True
    ),
    "abroca": wroc.abroca_test(many.head(5_000), "y", "s", by="g", permutations=9),
}
for name, table in tables.items():
    table.write_ipc(folder / f"{name}.arrow")
print(pl.thread_pool_size(), len(tables))
"""


def make_many() -> pl.DataFrame:
    """So many rows that threads share them."""
    random = np.random.default_rng(2)
    rows = 200_000
    return pl.DataFrame(
        {
            "g": random.integers(0, 3, rows),
            "h": random.integers(0, 40, rows),
            "c": random.integers(0, 2_000, rows),
            "y": random.random(rows) < 0.3,
            "s": random.random(rows).round(5),
            "w": random.lognormal(size=rows),
        }
    )


@pytest.mark.slow(reason="starts processes")
def test_tables_have_the_same_bits_for_any_number_of_threads(tmp_path: Path) -> None:
    make_many().write_parquet(tmp_path / "rows.parquet")
    for threads in ("1", "3"):
        (tmp_path / threads).mkdir()
        run = subprocess.run(  # noqa: S603  (our own script)
            [sys.executable, "-c", MANY, tmp_path / "rows.parquet", tmp_path / threads],
            env=os.environ | {"POLARS_MAX_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        )
        assert run.stdout.split() == [threads, "12"]
    for one in (tmp_path / "1").iterdir():
        other = pl.read_ipc(tmp_path / "3" / one.name)
        assert other.equals(pl.read_ipc(one)), one.stem


@pytest.mark.parametrize("number", [0, 1, 3, 50])
def test_results_are_in_the_order_of_the_values(number: int) -> None:
    assert map_in_threads(lambda value: value**2, range(number)) == [n * n for n in range(number)]


def test_an_interruption_ends_what_waits() -> None:
    begun = []

    def interrupt(number: int) -> None:
        begun.append(number)
        time.sleep(0.01)
        if number == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        map_in_threads(interrupt, range(1_000))
    assert len(begun) < 500


LAZY = """
from threading import Barrier
import polars as pl
from polars_wroc.threads import map_in_threads

def compute(rows):
    # It is passed only by two threads at once.
    both = Barrier(2, timeout=30)
    map_in_threads(lambda _: both.wait(), range(2), fewest=2)
    return rows

query = pl.LazyFrame({"a": [1]}).map_batches(compute, schema={"a": pl.Int64}, streamable=False)
for engine in ("streaming", "in-memory"):
    print(query.collect(engine=engine).height)
"""


@pytest.mark.slow(reason="starts processes")
def test_lazy_queries_have_as_many_threads_as_others() -> None:
    run = subprocess.run(  # noqa: S603  (our own text)
        [sys.executable, "-c", LAZY],
        env=os.environ | {"POLARS_MAX_THREADS": "2"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (run.stdout.split(), run.stderr) == (["1", "1"], "")


LATE = """
import threading
import polars as pl
import polars_wroc as wroc

rows = pl.int_range(200_000, eager=True)
frame = pl.DataFrame({"y": rows % 2, "s": rows % 1_000, "g": rows % 7})

def compute():
    threading.main_thread().join()
    print(wroc.summary(frame, "y", "s", by="g").height)
    print(wroc.abroca_test(frame.head(500), "y", "s", by="g", permutations=9).height)

threading.Thread(target=compute).start()
"""


@pytest.mark.slow(reason="starts processes")
def test_a_thread_that_outlives_the_main_one_computes() -> None:
    run = subprocess.run(  # noqa: S603  (our own text)
        [sys.executable, "-c", LATE], capture_output=True, text=True, check=True, timeout=120
    )
    assert (run.stdout.split(), run.stderr) == (["7", "7"], "")
