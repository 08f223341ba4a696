"""Bins filled in batches by the compiled engine hold what a plan puts into them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from sweeps import sweep

import polars_wroc as wroc
from polars_wroc.counts import compiled_counts
from polars_wroc.kernels import pooling
from polars_wroc.plans.config import Engine

ROWS = 3000
SAME: Any = {"rel_tol": 1e-12, "abs_tol": 1e-12}
SCORE = pl.col("s")


def people() -> pl.DataFrame:
    """Rows of groups that appear one after another, with missing values and weights of 0."""
    random = np.random.default_rng(5)
    row = np.arange(ROWS)
    positive = random.random(ROWS) < 0.4
    score = np.where(random.random(ROWS) < 0.3, 0.25, random.normal(0.4, 0.5, ROWS) + positive / 5)
    frame = pl.DataFrame(
        {
            "g": np.array(["a", "b", "c", "d", None])[
                np.minimum(row * random.random(ROWS) // 600, 4).astype(int)
            ].tolist(),
            "h": random.integers(0, 3, ROWS),
            "y": positive,
            "s": score,
            "other": random.random(ROWS),
            "w": random.choice([0.0, 0.1, 1.0, 2.5], ROWS, p=[0.05, 0.35, 0.3, 0.3]),
        }
    )
    lost = {name: pl.Series(random.random(ROWS) < 0.05) for name in ("y", "s", "w")}
    return frame.with_columns(pl.when(~none).then(name).alias(name) for name, none in lost.items())


PEOPLE = people()
LARGE = 2**53 + (SCORE * 10).cast(pl.Int64)
SCORES: dict[str, pl.Expr] = {
    "as they are": SCORE,
    "all equal": SCORE * 0 + 0.3,
    "probabilities": 1 / (1 + (-5 * SCORE).exp()),
    "near one": 1 - (SCORE.abs() * 1e-12),
    "zeros of both signs": pl.when(pl.col("h") == 1).then(SCORE * 0).otherwise(-0.0),
    "around zero": (pl.col("h") - 1) * 5e-324,
    "huge": SCORE * 1e300,
    "NaN and infinities": pl.when(SCORE > 1)
    .then(float("inf"))
    .when(SCORE < 0)
    .then(float("-inf"))
    .when(SCORE == 0.25)
    .then(float("nan"))
    .otherwise(SCORE),
    "Float32": SCORE.cast(pl.Float32),
    "integers": (SCORE * 100).cast(pl.Int16),
    "integers beyond 2**53": LARGE,
    "unsigned integers beyond 2**63": LARGE.cast(pl.UInt64) + 2**63,
    "integers of 128 bits": LARGE.cast(pl.Int128) * 2**40,
    "decimals": (SCORE * 100).cast(pl.Decimal(30, 2)),
}
KEYS: dict[str, pl.Expr | list[str] | None] = {
    "none": None,
    "text": ["g"],
    "two": ["g", "h"],
    "float": pl.when(pl.col("h") == 1).then(float("nan")).otherwise(pl.col("h") / 7),
    "falling": (-pl.int_range(pl.len()) // 100),
    "wide integers": pl.col("h") * 2**60,
    "Boolean": pl.col("h") == 1,
    "Enum": pl.col("g").cast(pl.Enum(["d", "c", "b", "a"])),
    "binary": pl.col("g").cast(pl.Binary),
    "all null": pl.lit(None, pl.Int32),
    "many": pl.int_range(pl.len()) // 2,
}
LABELS: dict[str, pl.Expr] = {
    "integers": pl.col("y").cast(pl.Int8),
    "unsigned": pl.col("y").cast(pl.UInt8),
    "-1 and 1": pl.col("y") * 2 - 1,
    "both in different groups": pl.when(pl.col("h") == 1)
    .then(pl.col("y") * 2 - 1)
    .otherwise(pl.col("y").cast(pl.Int32)),
}


@pytest.fixture(autouse=True, params=[64, 1 << 20], ids=["small batches", "one batch"])
def _batches(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_counts, "_ROWS", request.param)


def counts(frame: Any, **options: Any) -> Any:
    """Count a frame in bins; ``by`` may be left out."""
    return wroc.score_counts(frame, **{"label": "y", "score": "s", "bins": 64, **options})


def both(table: Callable[[Any], Any], frame: pl.DataFrame) -> pl.DataFrame:
    """Compute a table by both engines, at once and at collect, and return it."""
    with wroc.Config(engine="polars"):
        expected: pl.DataFrame = table(frame)
    with wroc.Config(engine="compiled"):
        eager: pl.DataFrame = table(frame)
        lazy: pl.DataFrame = table(frame.lazy()).collect()
    assert_frame_equal(eager, expected, **SAME)
    assert_frame_equal(lazy, expected, **SAME)
    return eager


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("kind", sweep(SCORES, fast=["around zero", *[*SCORES][::6]]))
def test_scores_of_every_kind(kind: str, weight: str | None) -> None:
    frame = PEOPLE.with_columns(s=SCORES[kind])
    both(lambda f: counts(f, weight=weight, by="g"), frame)
    both(lambda f: wroc.summary(f, "y", "s", weight=weight, by="g", bins=64), frame)


@pytest.mark.parametrize("kind", sweep(KEYS, fast=[*KEYS][::3]))
def test_groups_of_every_kind(kind: str) -> None:
    table = both(lambda f: counts(f, weight="w", by=KEYS[kind]), PEOPLE)
    assert table.select(pl.sum("n_pos", "n_neg", "n_missing")).sum_horizontal().item() == (
        PEOPLE.filter(pl.col("w").ne_missing(0)).height
    )


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_every_kind(kind: str) -> None:
    both(lambda f: counts(f, label=LABELS[kind], weight="w", by=["g", "h"]), PEOPLE)


@pytest.mark.parametrize("bins", sweep([16, 4096, 2**52], fast=[4096]))
def test_any_number_of_bins(bins: int) -> None:
    both(lambda f: counts(f, weight="w", by="g", bins=bins), PEOPLE)


@pytest.mark.parametrize("cut", sweep([0.25, 0.7]))
@pytest.mark.parametrize("dtype", [pl.Float64, pl.Float32])
def test_an_audit_cuts_bins_at_its_threshold(cut: float, dtype: Any) -> None:
    frame = PEOPLE.with_columns(SCORE.cast(dtype))
    found = {}
    engines: list[Engine] = ["polars", "compiled"]
    for engine in engines:
        with wroc.Config(engine=engine):
            found[engine] = wroc.audit(
                frame.lazy(),
                "y",
                "s",
                weight="w",
                attributes=["g", "h"],
                bins=16,
                threshold=cut,
                favorable="selected",
            )
    assert_frame_equal(found["compiled"].segments, found["polars"].segments, **SAME)
    assert_frame_equal(found["compiled"].missing, found["polars"].missing)


def test_several_models_and_a_tolerance() -> None:
    options: dict[str, Any] = {"weight": "w", "by": "g"}
    both(lambda f: wroc.summary(f, "y", ["s", "other"], bins=64, **options), PEOPLE)
    both(lambda f: wroc.summary(f, "y", ["s", "other"], tolerance=0.01, **options), PEOPLE)
    # Nothing is divided.
    both(lambda f: wroc.summary(f, "y", "s", tolerance=0.99, **options), PEOPLE)


@pytest.mark.parametrize("by", [None, "g"])
@pytest.mark.parametrize("rows", [0, 1, 2])
def test_few_rows(rows: int, by: str | None) -> None:
    both(lambda f: counts(f, weight="w", by=by), PEOPLE.head(rows))
    both(lambda f: wroc.summary(f, "y", "s", by=by, bins=16), PEOPLE.head(rows))


@pytest.mark.parametrize(
    "change",
    [
        {"y": pl.lit(2)},
        {"y": pl.col("h") - 1},
        {"y": pl.col("h") - 1, "w": pl.lit(0.5)},
        {"w": pl.lit(-1.0)},
        {"w": pl.lit(float("nan"))},
    ],
)
def test_bad_values_are_refused_alike(change: dict[str, pl.Expr]) -> None:
    frame = PEOPLE.with_columns(**change)
    said = set()
    engines: list[Engine] = ["polars", "compiled"]
    rows: Any
    for engine in engines:
        for rows in (frame, frame.lazy()):
            with (
                wroc.Config(engine=engine),
                pytest.raises(pl.exceptions.InvalidOperationError, match="must") as error,
            ):
                wroc.summary(rows, "y", "s", weight="w", bins=64).lazy().collect()
            said.add(
                str(error.value).partition("polars_wroc: ")[2].partition('"')[0] or str(error.value)
            )
    assert len(said) == 1


def test_sums_are_the_same_each_time() -> None:
    frame = PEOPLE.with_columns(w=pl.col("w") * pl.col("other"))
    with wroc.Config(engine="compiled"):
        tables = [counts(frame, weight="w", by=["g", "h"]) for _ in range(5)]
        tables += [counts(frame.lazy(), weight="w", by=["g", "h"]).collect() for _ in range(5)]
    for table in tables[1:]:
        assert_frame_equal(table, tables[0], check_exact=True)


def test_pools_that_leave_pages_mostly_empty_are_repacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pooling, "_MOST_RECORDS", 1 << 10)
    both(lambda f: counts(f, weight="w", by=["g", pl.int_range(pl.len()) // 3]), PEOPLE)


def test_sums_of_many_equal_weights_are_exact() -> None:
    rows = 300_000
    frame = pl.LazyFrame({"y": [True]}).select(pl.col("y").repeat_by(rows).explode(), s=0.3, w=0.1)
    with wroc.Config(engine="compiled"):
        table = counts(frame, weight="w").collect()
    assert table["w_pos"].item() == pytest.approx(rows * 0.1, rel=2e-13)
    assert table["w3_pos"].item() == pytest.approx(rows * 0.001, rel=2e-13)


def test_without_batches_the_plan_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise NotImplementedError

    monkeypatch.setattr(pl.LazyFrame, "collect_batches", refuse)
    both(lambda f: counts(f, weight="w", by="g"), PEOPLE)
