"""How much memory tables may take, and what is computed in ranges of scores when it is exceeded."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
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
from polars_wroc.cli import main

MEMORY = "POLARS_WROC_MEMORY"
TWO = pl.LazyFrame({"y": [1, 0], "s": [0.5, 0.1], "g": ["a", "b"]})


@pytest.fixture(autouse=True)
def nothing_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """No memory is chosen by the environment."""
    monkeypatch.delenv(MEMORY, raising=False)


@pytest.fixture(scope="module")
def scores() -> pl.DataFrame:
    """600 rows with as many scores, in two groups."""
    number = pl.int_range(600)
    return pl.select(y=number % 3 == 0, s=3 + number.hash(1) / 2.0**64, g=number % 2, unit=number)


def count_reads(frame: pl.DataFrame, call: Callable[[pl.LazyFrame], Any]) -> int:
    """Count how often a call reads rows: at least once for each range that it is divided into."""
    reads: list[int] = []

    def read(part: pl.DataFrame) -> pl.DataFrame:
        reads.append(part.height)
        return part

    call(frame.lazy().map_batches(read, streamable=False))
    return len(reads)


def summarise(lazy: pl.LazyFrame) -> pl.DataFrame:
    """Return the AUC of all rows."""
    return wroc.summary(lazy, "y", "s").collect()


def audit(lazy: pl.LazyFrame) -> wroc.Audit:
    """Audit the groups."""
    return wroc.audit(lazy, "y", "s", attributes="g")


def count_reads_within(memory: str, scores: pl.DataFrame) -> int:
    """Count how often `summary` reads rows with an amount of memory."""
    with wroc.Config(memory=memory):
        return count_reads(scores, summarise)


@pytest.mark.parametrize(
    ("given", "bytes_of"),
    [("4GB", 4e9), ("1.5 TB", 1.5e12), ("500mb", 5e8), ("20KB", 2e4), ("17B", 17)],
)
def test_amounts(given: str, bytes_of: float) -> None:
    assert wroc.Config(memory=given).memory == pytest.approx(bytes_of)


def test_a_percentage_is_of_the_memory_of_the_machine() -> None:
    half, whole = (wroc.Config(memory=given).memory for given in ("50%", "100%"))
    assert half is not None
    assert whole is not None
    assert half == pytest.approx(whole / 2)
    assert 0 < whole <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


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


class Client:
    """Workers that are this process, and how many tasks they got."""

    def __init__(self, workers: int = 1) -> None:
        self.workers, self.tasks = workers, 0

    def map(self, task: Callable[[Any], Any], items: Sequence[Any], *, pure: bool) -> list[Any]:
        assert not pure
        self.tasks += len(items)
        return [*map(task, items)]

    def submit(self, task: Callable[[Any], Any], item: Any, *, pure: bool, priority: int) -> Any:
        assert not pure
        assert priority > 0
        return task(item)

    def gather(self, result: Any) -> Any:
        return result

    def ncores(self) -> dict[str, int]:
        return {f"tcp://worker:{port}": 1 for port in range(self.workers)}


def test_blocks_keep_what_the_enclosing_one_says(
    scores: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, thirds, sixths = (count_reads_within(m, scores) for m in ("none", "40KB", "20KB"))
    assert whole < thirds < sixths
    assert count_reads(scores, summarise) == whole
    monkeypatch.setenv(MEMORY, "40KB")
    assert count_reads(scores, summarise) == thirds
    client = Client()
    with wroc.Config(client=client):
        assert count_reads(scores, summarise) == thirds
        assert (tasks := client.tasks) > 1
        with wroc.Config(memory="20KB"), wroc.Config():
            assert count_reads(scores, summarise) == sixths
            assert client.tasks > 2 * tasks
            with wroc.Config(memory="none"):
                assert count_reads(scores, summarise) == whole
        tasks = client.tasks
        assert count_reads(scores, summarise) == thirds
        assert client.tasks > tasks
    tasks = client.tasks
    assert count_reads(scores, summarise) == thirds
    assert client.tasks == tasks


@pytest.mark.parametrize(("workers", "ranges"), [(1, 3), (2, 4), (3, 3), (4, 4), (50, 6)])
def test_workers_get_equally_many_ranges_but_not_many_more_than_fit(
    scores: pl.DataFrame, workers: int, ranges: int
) -> None:
    client = Client(workers)
    with wroc.Config(client=client, memory="24KB"):
        table = wroc.summary(scores.lazy(), "y", "s", by="g").collect()
    # They also count the rows, and count them in bins.
    assert client.tasks == ranges + 2
    assert_frame_equal(table, wroc.summary(scores, "y", "s", by="g"), rel_tol=1e-12)


def test_audits_take_most_of_the_memory_of_the_machine(
    scores: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = count_reads(scores, audit)
    with wroc.Config(memory="30KB"):
        divided = count_reads(scores, audit)
    assert whole < divided
    monkeypatch.setattr("polars_wroc.config.usable_memory", lambda: 50_000)
    assert count_reads(scores, audit) == divided
    assert count_reads(scores, summarise) == 1
    # A worker may have other memory than this machine, and counts the rows first.
    with wroc.Config(client=Client()):
        assert count_reads(scores, audit) == whole + 1
    monkeypatch.setenv(MEMORY, "1GB")
    assert count_reads(scores, audit) == whole


def test_each_thread_has_its_own_choices(scores: pl.DataFrame) -> None:
    both_inside = threading.Barrier(2, timeout=30)

    def choose(memory: str) -> tuple[int, int]:
        with wroc.Config(memory=memory):
            both_inside.wait()
            inside = count_reads(scores, summarise)
            both_inside.wait()
        return inside, count_reads(scores, summarise)

    amounts = ["20KB", "40KB"]
    expected = [count_reads_within(memory, scores) for memory in amounts]
    with ThreadPoolExecutor(2) as pool:
        assert [*pool.map(choose, amounts)] == [(reads, 1) for reads in expected]
    with wroc.Config(memory="20KB"):
        # A thread that is started in a block has not entered it.
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(count_reads, scores, summarise).result() == 1
        assert count_reads(scores, summarise) == expected[0]


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

    machine = wroc.Config(memory="100%").memory
    assert machine is not None
    monkeypatch.setattr("polars_wroc.config.Path", path)
    assert wroc.Config(memory="100%").memory == min(limit, machine)


def test_what_is_divided(scores: pl.DataFrame) -> None:
    calls: dict[str, Callable[[pl.LazyFrame], Any]] = {
        "summary": summarise,
        "audit": audit,
        "an audit of clusters": lambda lazy: wroc.audit(
            lazy, "y", "s", attributes="g", design="unit"
        ),
        "clusters": lambda lazy: wroc.summary(lazy, "y", "s", design="unit").collect(),
        "bins": lambda lazy: wroc.summary(lazy, "y", "s", bins=64).collect(),
    }
    reads = {}
    for memory in ("20KB", "1GB", "none"):
        with wroc.Config(memory=memory):
            reads[memory] = {name: count_reads(scores, call) for name, call in calls.items()}
    assert set(reads["none"].values()) == {1}
    # One more, to count them.
    assert max(reads["1GB"].values()) == 2
    divided = {name for name in calls if reads["20KB"][name] > reads["1GB"][name]}
    assert divided == {"summary", "audit"}


def test_the_choice_is_that_of_the_call(people: pl.DataFrame) -> None:
    plans: list[pl.LazyFrame] = []
    expected = wroc.summary(people, "y", "s", weight="w", by="g")

    def plan(lazy: pl.LazyFrame) -> None:
        with wroc.Config(memory="20KB"):
            plans.append(wroc.summary(lazy, "y", "s", weight="w", by="g"))

    def plan_and_collect(lazy: pl.LazyFrame) -> None:
        plan(lazy)
        assert_frame_equal(plans[-1].collect(), expected, rel_tol=1e-12)

    assert count_reads(people, plan) == 0
    assert plans[0].collect_schema() == expected.schema
    assert count_reads(people, plan_and_collect) > 2


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


@pytest.mark.parametrize("left", [599, 0])
@pytest.mark.parametrize("what", ["summary", "audit"])
def test_rows_that_change_between_passes_raise(what: str, left: int, people: pl.DataFrame) -> None:
    reads: list[int] = []

    def read(frame: pl.DataFrame) -> pl.DataFrame:
        reads.append(frame.height)
        # After some passes a row or all are gone.
        return frame if len(reads) < 5 else frame.tail(left)

    lazy = people.with_columns(s=3 + pl.int_range(600) / 6000).lazy()
    changing = lazy.map_batches(read, streamable=False)
    message = r"^`frame` must have the same rows whenever it is read; a range of scores had \d+"
    with wroc.Config(memory=memory_of(100)):
        if what == "audit":
            with pytest.raises(ValueError, match=message):
                wroc.audit(changing, "y", "s", attributes="g")
        else:
            with pytest.raises(Exception, match=message[1:]):
                wroc.summary(changing, "y", "s").collect()
    assert len(reads) >= 5


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
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = Path(rows).with_name("auc.parquet")
    options = [] if by_variable else ["--memory", "20KB"]
    if by_variable:
        monkeypatch.setenv(MEMORY, "20KB")
    command = ["auc", rows, *COLUMNS, "--by", "g", "-o", str(output)]
    assert main([*command, *options]) == 0
    expected = wroc.summary(people, "y", "s", by="g")
    assert_frame_equal(pl.read_parquet(output), expected, rel_tol=1e-12)

    def stop(*_: Any) -> None:
        message = "cut into ranges"
        raise ValueError(message)

    monkeypatch.setattr("polars_wroc.metrics.counted_parts.cut_ranges", stop)
    assert main([*command, *options]) == 2
    assert "cut into ranges" in capsys.readouterr().err
    assert main([*command, "--memory", "none"]) == 0


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
    # Nothing of it remains: the next call is not divided, and shows its own progress.
    assert count_reads(people, summarise) == 1


# The command, which says when it begins to measure the first range.
SAYS_WHEN = """
import sys
from polars_wroc.cli import main
from polars_wroc.metrics import counted_parts

measure, is_first = counted_parts._measure, iter([True])

def say_and_measure(*given):
    if next(is_first, False):
        print("here", flush=True)
    return measure(*given)

counted_parts._measure = say_and_measure
sys.exit(main())
"""


@pytest.mark.slow(reason="starts processes")
def test_the_command_interrupted_in_a_range(tmp_path: Path) -> None:
    rows = 200_000
    frame = pl.select(y=pl.int_range(rows) % 3 == 0, s=pl.int_range(rows).hash(1) / 2.0**64, g=1)
    frame.write_parquet(tmp_path / "rows.parquet")
    (tmp_path / "out").mkdir()
    call = ["audit", str(tmp_path / "rows.parquet"), *COLUMNS, "--attribute", "g"]
    call += ["--memory", memory_of(100), "-o", str(tmp_path / "out" / "x.html")]
    with subprocess.Popen(  # noqa: S603  (our own code)
        [sys.executable, "-c", SAYS_WHEN, *call],
        env={**PLAIN, "TMPDIR": str(tmp_path / "out")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"here\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=120) == (b"", b"")
    assert process.returncode == 130
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []


@pytest.mark.slow(reason="starts processes")
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
