"""An audit reads the rows of a LazyFrame in batches; what is in which changes nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from sweeps import sweep

import polars_wroc as wroc

TABLES = ("table", "segments", "curves", "missing")


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    """600 rows of 300 groups, each of which first comes with row 2 g, and others of few groups."""
    random = np.random.default_rng(5)
    rows = 1200
    place = pl.Series("place", np.arange(rows))
    label = random.integers(0, 2, rows)
    frame = pl.DataFrame(
        {
            "many": np.minimum(np.arange(rows) // 2, 299),
            "text": random.choice(["a", "b", "c"], rows),
            "y": label,
            "s": (random.normal(label) * 8).round() / 16,
            "t": random.normal(label),
            "w": random.lognormal(size=rows),
        }
    )
    return frame.with_columns(
        pl.when(place % 41 > 0).then("s"),
        pl.when(place % 43 > 0).then("w"),
        pl.when(place % 47 > 0).then("text"),
        pl.when(place % 53 > 0).then("y"),
    )


@pytest.fixture(params=[100, 5000])
def batch_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    rows: int = request.param
    monkeypatch.setattr("polars_wroc.audits.audit_rows._ROWS", rows)
    return rows


def audits(frame: pl.DataFrame, **options: Any) -> list[wroc.Audit]:
    """Audit a frame, and the same one as a scan."""
    options = {
        "label": "y",
        "score": "s",
        "attributes": ["text", "many"],
    } | options
    return [wroc.audit(each, **options) for each in (frame, frame.lazy())]


def assert_same(one: wroc.Audit, other: wroc.Audit, **options: Any) -> None:
    for name in TABLES:
        left, right = getattr(one, name), getattr(other, name)
        assert (left is None) == (right is None)
        if left is not None:
            assert_frame_equal(left, right, **options)


@pytest.mark.filterwarnings("ignore:each of the .* is a group")
@pytest.mark.slow(reason="makes several audits")
@pytest.mark.usefixtures("batch_rows")
@pytest.mark.parametrize(
    "options",
    sweep(
        [
            {"weight": "w", "threshold": 0.25, "favorable": "selected", "reference": "overall"},
            {"score": ["s", "t"], "threshold": wroc.rules.youden(), "favorable": "selected"},
            {
                "score": ["t", "s"],
                "weight": "w",
                "threshold": 0.1,
                "favorable": "selected",
                "attributes": "text",
            },
        ]
    ),
)
def test_rows_in_batches(people: pl.DataFrame, options: Any) -> None:
    eager, lazy = audits(people, **options)
    assert_same(eager, lazy, check_exact=True)


@pytest.mark.slow(reason="makes several audits")
@pytest.mark.usefixtures("batch_rows")
@pytest.mark.parametrize("dtype", sweep([pl.Int128, pl.Decimal(30, 4), pl.Float32, pl.Int8]))
def test_scores_of_other_types(people: pl.DataFrame, dtype: Any) -> None:
    frame = people.with_columns((pl.col("s") * 16).cast(dtype))
    floats = people.with_columns((pl.col("s") * 16).cast(pl.Float64))
    options: dict[str, Any] = {"attributes": "text", "threshold": 1, "favorable": "selected"}
    for one, other in zip(audits(frame, **options), audits(floats, **options), strict=True):
        assert_same(one, other, rel_tol=1e-12, abs_tol=1e-11)


@pytest.mark.usefixtures("batch_rows")
def test_labels_of_all_batches_are_checked(people: pl.DataFrame) -> None:
    last = pl.int_range(pl.len()) >= pl.len() - 3
    frame = people.with_columns(y=pl.when(last).then(-1).otherwise("y"))
    for each in (frame, frame.lazy()):
        with pytest.raises(ValueError, match="it holds -1, 0 and 1"):
            wroc.audit(each, "y", "s", attributes="text")


@pytest.mark.filterwarnings("ignore:each of the .* is a group")
@pytest.mark.slow(reason="makes several audits")
def test_an_engine_without_batches(people: pl.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = audits(people)
    monkeypatch.delattr(pl.LazyFrame, "collect_batches")
    for one, other in zip(audits(people), expected, strict=True):
        assert_same(one, other, rel_tol=1e-12, abs_tol=1e-11)
