"""The log loss against scikit-learn's, with weights, ties, and scores of 0 and 1."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.exceptions import InvalidOperationError
from sklearn import metrics

import polars_wroc as wroc

Row: TypeAlias = tuple[int, float, int]

# The ends, ties, what is closer to the ends than the precision, and what is just beyond that.
SCORES = [0.0, -0.0, 5e-324, 1e-17, 3e-16, 0.1, 0.25, 0.5, 0.9, 1 - 1e-9, 1 - 2**-53, 1.0]
ROWS = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from(SCORES), st.integers(1, 5)), min_size=1
)


def frame_of(rows: list[Row]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={"y": pl.Int64, "s": pl.Float64, "w": pl.Int64}, orient="row")


def expected(frame: pl.DataFrame, *, weighted: bool = True) -> float:
    weights = frame["w"].to_numpy() if weighted else None
    y, s = frame["y"].to_numpy(), frame["s"].to_numpy()
    return float(metrics.log_loss(y, s, sample_weight=weights, labels=[0, 1]))


@given(rows=ROWS)
def test_log_loss_is_that_of_scikit_learn(rows: list[Row]) -> None:
    frame = frame_of(rows)
    weighted = frame.select(wroc.log_loss("y", "s", weight="w")).item()
    assert weighted == pytest.approx(expected(frame), rel=1e-12, abs=1e-15)
    unweighted = frame.select(wroc.log_loss("y", "s")).item()
    assert unweighted == pytest.approx(expected(frame, weighted=False), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize(
    ("dtype", "eps"),
    [
        (pl.Float16, np.finfo(np.float16).eps),
        (pl.Float32, np.finfo(np.float32).eps),
        (pl.Float64, np.finfo(np.float64).eps),
        (pl.Int8, np.finfo(np.float64).eps),
    ],
)
def test_extremes_are_clipped_as_their_type_asks(dtype: pl.DataType, eps: float) -> None:
    # Wrong with certainty, whatever the class.
    frame = pl.LazyFrame({"y": [1, 0], "s": [0.0, 1.0]}).cast({"s": dtype})
    several = wroc.curve_metrics("y", "s", metrics=["log_loss", "ks"]).struct.field("log_loss")
    for expression in (wroc.log_loss("y", "s"), several):
        found = frame.select(expression).collect().item()
        assert found == pytest.approx(-np.log(float(eps)), rel=1e-12)
    if dtype.is_float():
        # That works in the type of the scores.
        theirs = expected(frame.collect(), weighted=False)
        assert found == pytest.approx(theirs, rel=float(eps) * 2)
    drawn = wroc.bootstrap(frame, "y", "s", metrics="log_loss", resamples=2, replicates=True)
    assert drawn.collect()["log_loss"][0] == pytest.approx(found, rel=1e-12)


def test_each_model_has_the_precision_of_its_type() -> None:
    models = {"half": pl.Float16, "single": pl.Float32, "double": pl.Float64}
    frame = pl.LazyFrame({"y": [1, 0], "s": [0.0, 1.0]}).with_columns(
        pl.col("s").cast(dtype).alias(name) for name, dtype in models.items()
    )
    drawn = wroc.bootstrap(frame, "y", list(models), metrics="log_loss", resamples=2)
    found = dict(drawn.select("model", "value").collect().iter_rows())
    for name in models:
        alone = frame.select(wroc.log_loss("y", name)).collect().item()
        assert found[name] == pytest.approx(alone, rel=1e-12)
    assert len(set(found.values())) == len(models)


@pytest.mark.parametrize("bad", [-1e-5, 1 + 1e-5, float("inf")])
def test_score_must_be_a_probability(bad: float) -> None:
    frame = frame_of([(1, 0.5, 1), (0, bad, 1)]).lazy()
    with pytest.raises(InvalidOperationError, match="`score` must be a probability, from 0 to 1"):
        frame.select(wroc.log_loss("y", "s")).collect()
    # A row of weight 0 is as if it were not there.
    gone = frame.with_columns(w=pl.when(pl.col("s") == 0.5).then("w").otherwise(0))
    found = gone.select(wroc.log_loss("y", "s", weight="w")).collect().item()
    assert found == pytest.approx(np.log(2), rel=1e-12)


def test_nothing_has_no_log_loss() -> None:
    assert frame_of([]).select(wroc.log_loss("y", "s")).item() is None
