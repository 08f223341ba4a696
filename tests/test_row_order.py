"""What is drawn with a seed: the same in whatever order the rows come, on any threads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_wroc as wroc

Draw = Callable[..., Any]

DRAWS: dict[str, Draw] = {
    "replicates": lambda frame, **options: wroc.bootstrap(
        frame,
        "y",
        metrics=["ks", "pr_auc"],
        resamples=5,
        weight="w",
        by="g",
        **options,
        replicates=True,
    ),
    "clusters": lambda frame, **options: wroc.bootstrap(
        frame, "y", metrics="ks", resamples=5, by="g", design="c", multiplier="gamma", **options
    ),
    "resamples": lambda frame, **options: wroc.threshold_metrics(
        frame,
        "y",
        threshold=wroc.rules.youden(),
        per_group=True,
        weight="w",
        by="g",
        level=0.9,
        honest="bootstrap",
        resamples=5,
        **options,
    ),
    "folds": lambda frame, **options: wroc.threshold_metrics(
        frame,
        "y",
        threshold=wroc.rules.max_fpr(0.3),
        weight="w",
        by="g",
        honest="crossfit",
        **options,
    ),
    "permutations": lambda frame, **options: wroc.abroca_test(
        frame, "y", by="g", weight="w", permutations=9, **options
    ),
}
EQUAL: Any = {"rel_tol": 1e-12}


@pytest.fixture(scope="module")
def tied() -> pl.DataFrame:
    """Rows with many ties, of which some are alike, some miss something and some weigh nothing."""
    random = np.random.default_rng(1936)
    size = 240
    positive = random.random(size) < 0.4
    score = np.round(random.normal(size=size) + positive, 1)
    return pl.DataFrame(
        {
            "g": random.choice(["a", "b", "c"], size),
            "c": pl.Series(random.choice(["u", "v", "w", "x", "y"], size), dtype=pl.Categorical),
            "y": positive,
            "s": np.where(random.random(size) < 0.05, np.nan, score),
            "t": random.integers(5, size=size),
            "w": random.choice([0.0, 0.5, 1.0, 2.0], size),
        }
    )


@pytest.mark.parametrize("score", ["s", ["s", "t"]], ids=str)
@pytest.mark.parametrize("draw", DRAWS.values(), ids=list(DRAWS))
def test_order_of_the_rows_is_of_no_account(tied: pl.DataFrame, draw: Draw, score: Any) -> None:
    expected = draw(tied, score=score)
    shuffled = tied.sample(fraction=1, shuffle=True, seed=4)
    for frame in (shuffled, tied.reverse()):
        assert_frame_equal(draw(frame, score=score), expected, **EQUAL)
    plan = draw(shuffled.lazy(), score=score)
    assert_frame_equal(plan.collect(), expected, **EQUAL)


@pytest.mark.parametrize("draw", DRAWS.values(), ids=list(DRAWS))
def test_chunks_and_row_groups_are_of_no_account(
    tied: pl.DataFrame, draw: Draw, tmp_path: Path
) -> None:
    expected = draw(tied, score="s")
    parts = [tied.slice(start, 7) for start in range(0, tied.height, 7)]
    chunks = pl.concat(parts[::-1], rechunk=False)
    assert chunks.n_chunks() > 1
    assert_frame_equal(draw(chunks, score="s"), expected, **EQUAL)
    path = tmp_path / "rows.parquet"
    chunks.write_parquet(path, row_group_size=50)
    plan = draw(pl.scan_parquet(path), score="s")
    assert_frame_equal(plan.collect(), expected, **EQUAL)


@pytest.mark.parametrize("draw", DRAWS.values(), ids=list(DRAWS))
def test_rows_that_take_no_part_change_no_draw(tied: pl.DataFrame, draw: Draw) -> None:
    there = tied.filter(pl.col("s").is_not_nan())
    nothing = there.head(20).with_columns(w=0.0, y=None, g=pl.lit("a"))
    lacking = there.head(20).with_columns(s=None, g=pl.lit("b"))
    more = pl.concat([nothing, there, lacking], how="vertical_relaxed")
    assert_frame_equal(draw(more, score="s"), draw(there, score="s"), **EQUAL)


def test_rows_that_differ_in_their_group_only_are_drawn_differ(tied: pl.DataFrame) -> None:
    alike = pl.concat([tied.with_columns(g=pl.lit(name)) for name in "ab"])
    drawn = DRAWS["replicates"](alike, score="s")
    first, second = (drawn.filter(g=name).drop("g") for name in "ab")
    assert_frame_equal(first.filter(replicate=0), second.filter(replicate=0), **EQUAL)
    differ = (first["ks"] - second["ks"]).abs() > 1e-6
    assert differ.sum() > 2
