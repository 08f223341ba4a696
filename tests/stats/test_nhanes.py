"""A published survey: NHANES II, whose standard errors of rates are in Stata's survey manual."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import numpy as np
import polars as pl
import pytest
from samplics.estimation import TaylorEstimator
from samplics.utils.types import PopParam

import polars_wroc as wroc
from polars_wroc.rows import read_columns
from polars_wroc.thresholds.cells import sum_cells_at

SAMPLE: dict[str, Any] = {"weight": "finalwgt", "design": wroc.Survey("psuid", strata="stratid")}


@pytest.fixture(scope="module")
def nhanes() -> pl.DataFrame:
    path = files("samplics") / "datasets" / "data" / "nhanes2.csv"
    return pl.read_csv(str(path), infer_schema_length=None)


def standard_errors(
    nhanes: pl.DataFrame, values: pl.Series, weights: pl.Series, of: PopParam, **given: Any
) -> dict[Any, float]:
    estimator = TaylorEstimator(of)
    units = nhanes["stratid"] * 10 + nhanes["psuid"]
    estimator.estimate(
        y=values.to_numpy(),
        samp_weight=weights.to_numpy(),
        stratum=nhanes["stratid"].to_numpy(),
        psu=units.to_numpy(),
        **given,
    )
    found: Any = estimator.stderror
    return dict(found) if isinstance(found, dict) else {None: float(found)}


def test_shares_with_diabetes(nhanes: pl.DataFrame) -> None:
    """Race 3 has rows in one unit alone of 13 of its 25 strata."""
    known = nhanes.with_columns(score=1.0)
    columns = read_columns(
        known,
        "diabetes",
        "score",
        weight="finalwgt",
        by="race",
        design=SAMPLE["design"],
    )
    rows = columns.rows(columns.plan.collect())
    assert rows.sample is not None
    units = rows.sample.units
    # Where all rows are selected, the precision is the share of positives.
    cells = sum_cells_at(rows.segments(columns.keys), 0.5, rows.sample)
    weights = cells.unit_weight(["tp"]), cells.unit_weight(["tp", "fp"]), cells.unit_present
    errors = (units.variance(units.ratio_influence(*weights)) ** 0.5).tolist()
    assert errors == pytest.approx([0.0019733, 0.0061443, 0.0076440], abs=5e-8)
    shares = wroc.threshold_metrics(
        known, "diabetes", "score", weight="finalwgt", by="race", threshold=[0.5]
    )
    assert shares["ppv"].to_list() == pytest.approx([0.03200, 0.05903, 0.02034], abs=5e-6)
    complete = nhanes.filter(pl.col("diabetes").is_not_null())
    of_samplics = standard_errors(
        complete,
        complete["diabetes"],
        complete["finalwgt"],
        PopParam.mean,
        domain=complete["race"].to_numpy(),
    )
    assert errors == pytest.approx([of_samplics[race] for race in (1, 2, 3)], rel=1e-10)


def influences_on_auc(rows: pl.DataFrame, label: str, score: str, weight: str) -> pl.Series:
    """The influence of each row, by the weight of the other class below and above its score."""
    complete = rows.with_row_index("row").drop_nulls([label, score])
    y, s, w = (complete[name].to_numpy().astype(float) for name in (label, score, weight))
    values = np.zeros(rows.height)
    for side in (0.0, 1.0):
        own, other = y == side, y != side
        order = np.argsort(s[other])
        below = np.append(0.0, w[other][order].cumsum())
        ends = (np.searchsorted(s[other][order], s[own], each) for each in ("left", "right"))
        ranked = sum(below[place] for place in ends) / 2 / below[-1]
        ranked = ranked if side else 1 - ranked
        auc = np.average(ranked, weights=w[own])
        values[complete["row"].to_numpy()[own]] = w[own] * (ranked - auc) / w[own].sum()
    return pl.Series(values)


@pytest.mark.parametrize("label", ["highbp", "highlead", "diabetes"])
def test_standard_error_of_an_auc(nhanes: pl.DataFrame, label: str) -> None:
    table = wroc.summary(nhanes, label, "zinc", **SAMPLE)
    influences = influences_on_auc(nhanes, label, "zinc", "finalwgt")
    ones = pl.Series([1.0] * nhanes.height)
    expected = standard_errors(nhanes, influences, ones, PopParam.total)[None]
    assert table["auc_se"].item() == pytest.approx(expected, rel=1e-10)
    assert table["df"].item() == 31
