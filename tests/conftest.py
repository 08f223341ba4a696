"""Data and independent definitions that several test files share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import polars as pl
import pytest
from chromium import Chromium
from hypothesis import settings

Engine: TypeAlias = Literal["in-memory", "streaming"]

settings.register_profile("tests", deadline=None, max_examples=20)
settings.load_profile("tests")


@pytest.fixture(params=["in-memory", "streaming"])
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each engine in turn."""
    chosen: Engine = request.param
    return chosen


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """One browser for all tests that open pages."""
    opened = Chromium(tmp_path_factory.mktemp("chromium"))
    yield opened
    opened.close()


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
def groups() -> Callable[[pl.DataFrame], Sequence[tuple[str, pl.DataFrame]]]:
    """Each group of a frame as a frame of its own, in the order of their names."""

    def of(frame: pl.DataFrame) -> Sequence[tuple[str, pl.DataFrame]]:
        names = frame["g"].unique().sort()
        return [(name, frame.filter(pl.col("g") == name)) for name in names]

    return of
