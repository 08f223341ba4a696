"""A page has the same bytes for any number of threads and order of rows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sweeps import sweep

import polars_wroc as wroc

ROOT = Path(__file__).parents[3]
# Of the order in which the rows come, nothing may be left in the page.
AUDIT = """
import sys
import polars as pl
import polars_wroc as wroc

data, seed, out, label, *scores, weight, first, second = sys.argv[1:]
frame = pl.read_parquet(data)
if int(seed):
    frame = frame.sample(fraction=1, shuffle=True, seed=int(seed))
decided = {"threshold": wroc.rules.max_fpr(0.2), "favorable": "selected"}
audit = wroc.audit(frame, label, scores, weight=weight, attributes=[first, second], **decided)
audit.save(out)
"""
DIABETES = ["progressed", "score", "score_b", "weight", "sex", "age_band"]
RANDOM = ["y", "s", "t", "w", "g", "h"]


def random(folder: Path, rows: int, groups: int) -> Path:
    """Weighted rows of 5 and of many groups, with scores that are tied or not."""
    rng = np.random.default_rng(7)
    positive = rng.random(rows) < 0.3
    path = folder / "random.parquet"
    pl.DataFrame(
        {
            "y": positive,
            "s": rng.normal(size=rows) + positive,
            "t": (rng.normal(size=rows) + positive).round(2),
            "w": rng.lognormal(size=rows),
            "g": rng.choice(list("abcde"), rows, p=[0.5, 0.3, 0.1, 0.0999, 0.0001]),
            "h": rng.integers(0, groups, rows),
        }
    ).write_parquet(path)
    return path


def saved(data: Path, columns: list[str], out: Path, *, threads: int, seed: int) -> bytes:
    """Audit in a process of its own, and return its page."""
    env = {
        "POLARS_MAX_THREADS": str(threads),
        "PYTHONHASHSEED": str(threads + seed),
        "SOURCE_DATE_EPOCH": "1000000000",
    }
    subprocess.run(  # noqa: S603  (our own code)
        [sys.executable, "-c", AUDIT, str(data), str(seed), str(out), *columns],
        cwd=ROOT,
        env=os.environ | env,
        check=True,
        timeout=300,
    )
    return out.read_bytes()


@pytest.mark.slow(reason="starts processes")
@pytest.mark.parametrize("columns", [DIABETES, RANDOM], ids=["diabetes", "random"])
def test_bytes_depend_on_neither_threads_nor_order_nor_hashes(
    columns: list[str], tmp_path: Path
) -> None:
    bundled = ROOT / "polars_wroc" / "data" / "diabetes.parquet"
    data = bundled if columns is DIABETES else random(tmp_path, 100_000, 60)
    first, other = (
        saved(data, columns, tmp_path / f"{threads}-{seed}.html", threads=threads, seed=seed)
        for threads, seed in ((1, 0), (4, 5))
    )
    assert b"Made 9 September 2001 with" in first
    assert other == first


@pytest.mark.slow(reason="makes several audits")
def test_bytes_do_not_depend_on_the_order_of_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")
    frame = pl.read_parquet(random(tmp_path, 300, 3))
    pages = []
    for rows in (frame, frame.sample(fraction=1, shuffle=True, seed=5)):
        wroc.audit(
            rows,
            "y",
            "t",
            weight="w",
            attributes="g",
            threshold=wroc.rules.max_fpr(0.2),
            favorable="selected",
        ).save(tmp_path / "page.html")
        pages.append((tmp_path / "page.html").read_bytes())
    assert pages[0] == pages[1]


@pytest.mark.parametrize("given", sweep(["yesterday", "1.5", "9" * 30]))
def test_date_that_is_no_number_of_seconds(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", given)
    rows = pl.DataFrame({"y": [1, 0], "s": [2, 1], "g": "a"})
    message = f"^SOURCE_DATE_EPOCH must be a number of seconds since 1970; found '{given}'$"
    with pytest.raises(ValueError, match=message):
        wroc.audit(rows, "y", "s", attributes="g")
