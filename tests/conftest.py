"""Data and independent definitions that several test files share."""

from __future__ import annotations

import gc
import math
import os
import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeAlias

# Tests run side by side, one process for each core; Polars reads this when it is imported.
os.environ.setdefault("POLARS_MAX_THREADS", "1")
# Output that tests read has no colours.
os.environ.pop("FORCE_COLOR", None)
# Processes that run tests side by side are given a width, which output in a pipe does not have.
os.environ.pop("COLUMNS", None)

import numpy as np
import polars as pl
import pytest
from chromium import Chromium, browser
from hypothesis import is_hypothesis_test, settings
from sweeps import sweep

import polars_wroc as wroc

Engine: TypeAlias = Literal["in-memory", "streaming"]
Groups: TypeAlias = Callable[[pl.DataFrame], Sequence[tuple[str, pl.DataFrame]]]

# Ten rows with an old and a new score, worked by hand.
TWO_SCORES = pl.DataFrame(
    {
        "y": [1, 1, 1, 1, 0, 0, 0, 0, 0, 0],
        "old": [0.9, 0.7, 0.4, 0.2, 0.8, 0.5, 0.3, 0.3, 0.15, 0.1],
        "new": [0.95, 0.6, 0.45, 0.5, 0.7, 0.35, 0.4, 0.2, 0.2, 0.05],
        "w": [1, 2, 1, 3, 1, 2, 1, 1, 2, 1],
    }
)

# Values that cannot be used: found in arrays, or by a plan.
INVALID_VALUES = (ValueError, pl.exceptions.InvalidOperationError)

# Tests of random rows (hypothesis) try few examples, the same each time; with `-m slow` they run
# again and try more. `--hypothesis-profile nightly` tries many others, and says how to repeat them.
settings.register_profile("quick", deadline=None, max_examples=1, derandomize=True)
settings.register_profile("thorough", deadline=None, max_examples=6, derandomize=True)
settings.register_profile("nightly", deadline=None, max_examples=300, print_blob=True)

_LEFT_OUT = pytest.StashKey[int]()
_OPENING = "Tests that open pages in a browser:"


def pytest_configure(config: pytest.Config) -> None:
    """Choose how many examples tests of random rows try."""
    if config.getoption("--hypothesis-profile") is None:
        settings.load_profile("thorough" if _asks_for_slow(config) else "quick")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell starts what runs in the background so, and tests' processes would never stop.
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let a worker without tests take some of another, since a few tests take most of the time."""
    from xdist.scheduler import WorkStealingScheduling  # noqa: PLC0415  (pytest runs without it)

    return WorkStealingScheduling(config, log)


def _asks_for_slow(config: pytest.Config) -> bool:
    return str(config.option.markexpr).startswith("slow")


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None]:
    """Mark the tests that open pages, and leave out those that are wanted without a browser.

    Where the slow tests are asked for, those of random rows are among them. What is slow for two
    reasons, such as two values of sweeps together, is for .ci/nightly.
    """
    for item in items:
        _require_reasons(item)
        if len(list(item.iter_markers("slow"))) > 1:
            item.add_marker(pytest.mark.nightly(reason="slow for two reasons"))
        if "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")
        if _asks_for_slow(config) and is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker(pytest.mark.slow(reason="tries more random rows"))
    yield
    if browser() is None:
        left_out = [item for item in items if item.get_closest_marker("browser")]
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)
        _note(config, len(left_out))


def _require_reasons(item: pytest.Item) -> None:
    """Raise for a test that is left out of the fast run without saying why."""
    for mark in item.iter_markers():
        if mark.name in ("slow", "nightly") and not mark.kwargs.get("reason"):
            msg = f"{item.nodeid} must say why: pytest.mark.{mark.name}(reason='starts processes')"
            raise pytest.UsageError(msg)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say in one line how many tests opened pages, or that they were left out and why."""
    if left_out := config.stash.get(_LEFT_OUT, 0):
        why = "no Chromium or Chrome is on the PATH"
        terminalreporter.write_line(f"{_OPENING} {left_out} left out, as {why}", yellow=True)
    stats = terminalreporter.stats.values()
    reports = [one for some in stats for one in some if isinstance(one, pytest.TestReport)]
    if ran := len({one.nodeid for one in reports if "browser" in one.keywords}):
        terminalreporter.write_line(f"{_OPENING} {ran} ran in {browser()}")


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what a process of several (pytest-xdist) left out; all of them collect the same."""
    if left_out := getattr(node, "workeroutput", {}).get("left_out"):
        node.config.stash[_LEFT_OUT] = left_out


def _note(config: pytest.Config, left_out: int) -> None:
    config.stash[_LEFT_OUT] = left_out
    if hasattr(config, "workeroutput"):
        config.workeroutput["left_out"] = left_out


def pytest_collection_finish() -> None:
    """Leave what was collected out of all searches for garbage, which would take a while."""
    gc.freeze()


@pytest.fixture(params=sweep(["in-memory", "streaming"]))
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each engine; that which Polars takes by itself, as most tests do, with the slow tests."""
    chosen: Engine = request.param
    return chosen


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """One browser for all tests that open pages; each process of several has its own."""
    path = browser()
    assert path is not None
    opened = Chromium(path, tmp_path_factory.mktemp("chromium"))
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def loans() -> pl.DataFrame:
    """Loan applications that come with the notebooks: the lenders' decisions, and a score."""
    return wroc.data.loans()


@pytest.fixture
def weighted_roc() -> pl.DataFrame:
    """The example of the R package WeightedROC; its AUC is 0.325."""
    return pl.DataFrame(
        {"y": [-1, -1, 1, 1, 1], "w": [1, 1, 1, 4, 5], "s": [1, 2, 3, 1, 1]},
        schema={"y": pl.Int64, "w": pl.Int64, "s": pl.Int64},
    )


@pytest.fixture
def seven() -> pl.DataFrame:
    """Seven rows with one tie between the classes, worked by hand."""
    return pl.DataFrame(
        {
            "s": [0.9, 0.8, 0.7, 0.7, 0.6, 0.4, 0.3],
            "y": [1, 0, 1, 0, 1, 0, 0],
            "w": [1.0, 2.0, 1.0, 1.0, 2.0, 1.0, 1.0],
        }
    )


@pytest.fixture
def people() -> pl.DataFrame:
    """600 weighted rows in four groups, each with tied scores; ``limit`` is fixed per group."""
    random = np.random.default_rng(1982)
    rows = 600
    positive = random.random(rows) < 0.35
    return pl.DataFrame(
        {
            "g": random.choice(["a", "b", "c", "d"], rows),
            "y": positive,
            "s": np.round(random.normal(size=rows) + positive, 1),
            "w": random.lognormal(size=rows),
        }
    ).with_columns(limit=pl.col("s").mean().over("g"))


@pytest.fixture
def messy(people: pl.DataFrame) -> pl.DataFrame:
    """People with a group without a name, infinite scores, and rows that are not there."""
    strange = {
        "g": ["a", "a", "b", "b", None, None, None, "one", "one"],
        "y": [True, None, False, True, True, False, True, True, True],
        "s": [math.nan, 9.0, math.inf, -math.inf, math.inf, 0.5, 0.5, 1.0, 2.0],
        "w": [1.0, 1.0, 2.0, 3.0, 1.0, 2.0, 0.0, 1.0, 1.0],
        "limit": [0.0] * 9,
    }
    return pl.concat([people, pl.DataFrame(strange)]).sample(fraction=1, shuffle=True, seed=2)


@pytest.fixture
def named_groups(people: pl.DataFrame) -> dict[str | None, pl.DataFrame]:
    """The people of each group; those of d belong to no group that has a name."""
    named = people.with_columns(pl.col("y").cast(pl.Int64), g=pl.when(pl.col("g") != "d").then("g"))
    return {key: named.filter(pl.col("g").eq_missing(key)) for key in (None, "a", "b", "c")}


@pytest.fixture
def grouped(named_groups: dict[str | None, pl.DataFrame]) -> pl.DataFrame:
    """The rows of all these groups, in any order."""
    return pl.concat(named_groups.values()).sample(fraction=1.0, shuffle=True, seed=2)


@pytest.fixture
def any_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Test however few rows are expected."""
    # The module of a function is imported when the function is first used, and must not take over
    # the number for good.
    import_module("polars_wroc.groups.calibration_test")
    monkeypatch.setattr("polars_wroc.stats.walks.LEAST_EXPECTED", 0)


@pytest.fixture
def scan(people: pl.DataFrame, tmp_path: Path) -> pl.LazyFrame:
    """A Parquet file with the people's five columns and three that nothing asks for."""
    path = tmp_path / "people.parquet"
    people.with_columns(extra=1, more=2, most=3).write_parquet(path)
    return pl.scan_parquet(path)


@pytest.fixture
def pair_auc() -> Callable[[pl.DataFrame], float]:
    """The definition of the weighted AUC: every positive against every negative."""

    def of(frame: pl.DataFrame) -> float:
        positives = frame.filter(pl.col("y")).select("s", "w").rows()
        negatives = frame.filter(~pl.col("y")).select("s", "w").rows()
        won = pairs = 0.0
        for high, weight in positives:
            for low, other in negatives:
                won += weight * other * ((high > low) + (high == low) / 2)
                pairs += weight * other
        return won / pairs

    return of


@pytest.fixture
def groups() -> Groups:
    """Each group of a frame as a frame of its own, in the order of their names."""

    def of(frame: pl.DataFrame) -> Sequence[tuple[str, pl.DataFrame]]:
        names = frame["g"].unique().sort()
        return [(name, frame.filter(pl.col("g") == name)) for name in names]

    return of


@pytest.fixture
def undefined_is_nan() -> Iterator[None]:
    """Let divisions by 0 and the like give NaN or infinity without a warning, as callers do."""
    with np.errstate(all="ignore"):
        yield
