"""How much memory tables may take, and what is computed in ranges of scores when it is exceeded."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from divided import memory_of
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from processes import COMMAND, PLAIN

import polars_wroc as wroc
from polars_wroc import config, progress
from polars_wroc.cli import main
from polars_wroc.config import MEMORY, Division, division, in_words, usable_memory
from polars_wroc.metrics.score_ranges import ScoreRange, cut_ranges

TWO = pl.LazyFrame({"y": [1, 0], "s": [0.5, 0.1], "g": ["a", "b"]})


@pytest.fixture(autouse=True)
def nothing_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """No memory is chosen by the environment."""
    monkeypatch.delenv(MEMORY, raising=False)


@pytest.fixture
def ranges(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many ranges each table was cut into."""
    found: list[int] = []

    def counted(*arguments: Any) -> Any:
        cuts = cut_ranges(*arguments)
        found.append(len(cuts))
        return cuts

    monkeypatch.setattr("polars_wroc.metrics.counted_parts.cut_ranges", counted)
    return found


@pytest.mark.parametrize(
    ("given", "bytes_of"),
    [
        ("4GB", 4e9),
        ("1.5 TB", 1.5e12),
        ("500mb", 5e8),
        ("20KB", 2e4),
        ("17B", 17),
        ("50%", usable_memory() / 2),
    ],
)
def test_amounts(given: str, bytes_of: float) -> None:
    with wroc.Config(memory=given):
        divided = division()
    assert divided is not None
    assert divided.memory == pytest.approx(bytes_of)


@pytest.mark.parametrize("given", ["4", "GB", "0GB", "4 GiB", "-1GB", "all", ""])
def test_other_texts_are_no_amounts(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = f"must be an amount like '4GB', '500MB' or '60%', or 'none'; found {given!r}"
    with pytest.raises(ValueError, match=f"`memory` {rule}"):
        wroc.Config(memory=given)
    if given:
        monkeypatch.setenv(MEMORY, given)
        with pytest.raises(ValueError, match=f"`{MEMORY}` {rule}"):
            wroc.summary(TWO, "y", "s")


def test_numbers_are_no_amounts() -> None:
    with pytest.raises(TypeError, match=r"`memory` must be an amount like .*; found 4000000000"):
        wroc.Config(memory=4_000_000_000)  # type: ignore[arg-type]


def test_blocks_keep_what_the_enclosing_one_says(monkeypatch: pytest.MonkeyPatch) -> None:
    assert division() is None
    monkeypatch.setenv(MEMORY, "3GB")
    client = SimpleNamespace(map=map, gather=list)
    with wroc.Config(client=client):
        assert division() == (3e9, client)
        with wroc.Config(memory="2GB"), wroc.Config():
            assert division() == (2e9, client)
            with wroc.Config(memory="none"):
                assert division() is None
        assert division() == (3e9, client)
    assert division("60%") == (3e9, None)
    monkeypatch.delenv(MEMORY)
    assert division("60%") == (0.6 * usable_memory(), None)
    with wroc.Config(client=client):
        assert division("60%") == (2e9, client)


def test_each_thread_has_its_own_choices() -> None:
    both_inside = threading.Barrier(2, timeout=30)

    def choose(memory: str) -> Division | None:
        with wroc.Config(memory=memory):
            both_inside.wait()
            chosen = division()
            both_inside.wait()
        assert division() is None
        return chosen

    with ThreadPoolExecutor(2) as pool:
        assert [*pool.map(choose, ["1GB", "2GB"])] == [(1e9, None), (2e9, None)]
    with wroc.Config(memory="3GB"):
        # A thread that is started in a block has not entered it.
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(division).result() is None
        assert division() == (3e9, None)


@pytest.mark.parametrize(
    ("groups", "files", "limit"),
    [
        ("0::/\n", {"memory.max": "1000\n"}, 1000),
        ("0::/a/b\n", {"a/memory.max": "500\n", "a/b/memory.max": "max\n"}, 500),
        ("4:memory:/x\n1:cpu:/\n", {"memory/memory.limit_in_bytes": "700\n"}, 700),
        ("0::/\n", {}, math.inf),
    ],
)
def test_the_limit_of_a_container(
    groups: str,
    files: dict[str, str],
    limit: float,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "cgroup").write_text(groups)

    def path(first: str, *parts: str) -> Path:
        places = {"/proc/self/cgroup": tmp_path / "cgroup", "/sys/fs/cgroup": tmp_path}
        return places[first].joinpath(*parts)

    usable_memory.cache_clear()
    machine = usable_memory()
    monkeypatch.setattr(config, "Path", path)
    usable_memory.cache_clear()
    try:
        assert usable_memory() == min(limit, machine)
    finally:
        usable_memory.cache_clear()


@pytest.mark.slow
def test_what_is_divided(people: pl.DataFrame, ranges: list[int]) -> None:
    lazy = people.lazy()
    calls: dict[str, Callable[[], Any]] = {
        "summary": lambda: wroc.summary(lazy, "y", "s").collect(),
        "audit": lambda: wroc.audit(lazy, "y", "s", attributes="g"),
        "a plan": wroc.summary(lazy, "y", "s").collect,
        "an audit in memory": lambda: wroc.audit(people, "y", "s", attributes="g"),
        "a DataFrame": lambda: wroc.summary(people, "y", "s"),
        "an audit of clusters": lambda: wroc.audit(lazy, "y", "s", attributes="g", design="limit"),
        "clusters": lambda: wroc.summary(lazy, "y", "s", design="limit").collect(),
        "bins": lambda: wroc.summary(lazy, "y", "s", bins=64).collect(),
    }
    found = {}
    for memory in ("20KB", "none", "1GB"):
        with wroc.Config(memory=memory):
            # Audits are slow.
            for name, call in [*calls.items()][:: 1 if memory == "20KB" else 2]:
                ranges.clear()
                call()
                found[memory, name] = bool(ranges)
    assert {key for key, divided in found.items() if divided} == {
        ("20KB", "audit"),
        ("20KB", "summary"),
    }


def test_the_choice_is_that_of_the_call(people: pl.DataFrame, ranges: list[int]) -> None:
    with wroc.Config(memory="20KB"):
        plan = wroc.summary(people.lazy(), "y", "s", weight="w", by="g")
    expected = wroc.summary(people, "y", "s", weight="w", by="g")
    assert plan.collect_schema() == expected.schema
    assert ranges == []
    assert_frame_equal(plan.collect(), expected, rel_tol=1e-12)
    assert ranges[0] > 2


def some_rows(seed: int, rows: int) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    positive = random.random(rows) < 0.4
    score = 1 / (1 + np.exp(-random.normal(size=rows) - positive))
    frame = pl.DataFrame(
        {
            "g": random.choice(["a", "b", ""], rows),
            "y": positive,
            "s": np.round(score, int(random.integers(1, 12))),
            "t": random.random(rows),
            "w": random.lognormal(size=rows) * (random.random(rows) < 0.9),
        }
    )
    missing = [pl.when(pl.int_range(rows) % 13 > i).then(n) for i, n in enumerate("ysw")]
    return frame.with_columns(pl.col("g").replace("", None), *missing)


@given(
    st.integers(0, 999),
    st.integers(20, 300),
    st.integers(5, 60),
    st.sampled_from(["s", ["s", "t"]]),
    st.sampled_from([None, "w", wroc.frequency(pl.col("w").ceil())]),
    st.sampled_from([None, 0.5, wroc.rules.youden(), wroc.rules.max_fpr(0.2)]),
)
def test_any_rows_in_any_ranges(
    seed: int, rows: int, per_range: int, score: Any, weight: Any, threshold: Any
) -> None:
    frame = some_rows(seed, rows)
    parts = [frame[: rows // 3].lazy(), frame[rows // 3 :].lazy()]
    with wroc.Config(memory=memory_of(per_range)):
        table = wroc.summary(parts, "y", score, weight=weight, by="g").collect()
        assert_frame_equal(
            table,
            wroc.summary(frame, "y", score, weight=weight, by="g"),
            rel_tol=1e-12,
            abs_tol=1e-14,
        )
        decided = {} if threshold is None else {"threshold": threshold, "favorable": "selected"}
        options: dict[str, Any] = {"attributes": "g", "weight": weight, **decided}
        audit = wroc.audit(parts, "y", score, **options)
        expected = wroc.audit(frame, "y", score, **options)
    assert_frame_equal(audit.segments, expected.segments, rel_tol=1e-12, abs_tol=1e-13)
    of_aucs = [each.table.filter(metric="auc")["value", "gap"] for each in (audit, expected)]
    assert_frame_equal(*of_aucs, rel_tol=1e-11, abs_tol=1e-13)


@pytest.mark.parametrize("what", ["summary", "audit"])
def test_rows_that_change_between_passes_raise(what: str, people: pl.DataFrame) -> None:
    reads: list[int] = []

    def read(frame: pl.DataFrame) -> pl.DataFrame:
        reads.append(frame.height)
        # After some passes a row is gone.
        return frame if len(reads) < 5 else frame[1:]

    lazy = people.with_columns(s=3 + pl.int_range(600) / 6000).lazy()
    changing = lazy.map_batches(read, streamable=False)
    message = r"^`frame` must have the same rows whenever it is read; found \d+ rows in a range"
    with wroc.Config(memory=memory_of(100)):
        if what == "audit":
            with pytest.raises(ValueError, match=message):
                wroc.audit(changing, "y", "s", attributes="g")
        else:
            with pytest.raises(Exception, match=message[1:]):
                wroc.summary(changing, "y", "s").collect()
    assert len(reads) >= 5


def test_rows_that_vanish_between_passes_are_not_measured(
    people: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads, reads_before_formulas = list[int](), list[int]()

    def read(frame: pl.DataFrame) -> pl.DataFrame:
        reads.append(frame.height)
        return frame if len(reads) < 5 else frame.clear()

    def weigh(each: ScoreRange, segments: Any) -> Any:
        reads_before_formulas.append(len(reads))
        return outside(each, segments)

    outside = ScoreRange.outside
    monkeypatch.setattr(ScoreRange, "outside", weigh)
    lazy = people.with_columns(s=3 + pl.int_range(600) / 6000).lazy()
    vanishing = lazy.map_batches(read, streamable=False)
    with (
        wroc.Config(memory=memory_of(100)),
        pytest.raises(ValueError, match="must have the same rows whenever it is read"),
    ):
        wroc.audit(vanishing, "y", "s", attributes="g")
    assert len(reads) >= 5
    assert all(number < 5 for number in reads_before_formulas)


@pytest.fixture
def rows(people: pl.DataFrame, tmp_path: Path) -> str:
    path = tmp_path / "rows.parquet"
    people.write_parquet(path)
    return str(path)


COLUMNS = ["--label", "y", "--score", "s"]


@pytest.mark.parametrize("by_variable", [False, True])
def test_the_command_divides(
    by_variable: bool,
    rows: str,
    people: pl.DataFrame,
    ranges: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    output = Path(rows).with_name("auc.parquet")
    options = [] if by_variable else ["--memory", "20KB"]
    if by_variable:
        monkeypatch.setenv(MEMORY, "20KB")
    assert main(["auc", rows, *COLUMNS, "--by", "g", "-o", str(output), *options]) == 0
    assert ranges[0] > 2
    expected = wroc.summary(people, "y", "s", by="g")
    assert_frame_equal(pl.read_parquet(output), expected, rel_tol=1e-12)


def test_a_wrong_amount_of_memory(rows: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["auc", rows, *COLUMNS, "--memory", "much"]) == 2
    assert "--memory must be an amount like '4GB'" in capsys.readouterr().err


def test_ctrl_c_between_ranges(people: pl.DataFrame) -> None:
    def read(frame: pl.DataFrame) -> pl.DataFrame:
        reads.append(None)
        if len(reads) == 4:
            threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
            time.sleep(0.3)
        return frame

    reads: list[None] = []
    lazy = people.with_columns(s=3 + pl.int_range(600) / 6000).lazy()
    with wroc.Config(memory=memory_of(30)):
        with pytest.raises(KeyboardInterrupt):
            wroc.audit(lazy.map_batches(read, streamable=False), "y", "s", attributes="g")
        assert len(reads) < 15
    assert progress.Progress._open == []
    assert division() is None


@pytest.mark.slow
def test_the_command_interrupted_in_a_range(tmp_path: Path) -> None:
    rows = 200_000
    frame = pl.select(y=pl.int_range(rows) % 3 == 0, s=pl.int_range(rows).hash(1) / 2.0**64, g=1)
    frame.write_parquet(tmp_path / "rows.parquet")
    call = ["audit", str(tmp_path / "rows.parquet"), *COLUMNS, "--attribute", "g"]
    (tmp_path / "out").mkdir()
    with subprocess.Popen(  # noqa: S603  (our own code)
        [*COMMAND, *call, "--memory", memory_of(100), "-o", str(tmp_path / "out" / "x.html")],
        env={**PLAIN, "TMPDIR": str(tmp_path / "out")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        time.sleep(6)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=120) == (b"", b"")
    assert process.returncode == 130
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full")
def test_a_full_disk(rows: str) -> None:
    call = [*COMMAND, "auc", rows, *COLUMNS, "--memory", "20KB"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(  # noqa: S603
            call, env=PLAIN, stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 2
    assert done.stderr.startswith(b"polars-wroc: cannot write to standard output: ")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    ("size", "words"),
    [(0.0, "0 B"), (999, "999 B"), (45_000, "45 KB"), (999_600_000, "1 GB"), (7.5e13, "75 TB")],
)
def test_amounts_of_memory_in_words(size: float, words: str) -> None:
    assert in_words(size) == words
