"""Equalised thresholds against fairlearn, which searches a grid."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from fairlearn.postprocessing import ThresholdOptimizer
from sklearn.base import BaseEstimator, ClassifierMixin

import polars_wroc as wroc

Floats: TypeAlias = npt.NDArray[np.float64]


class Score(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A score that stands ready in the only column."""

    def fit(self, X: Floats, y: Floats) -> Score:  # noqa: N803
        self.columns_, self.classes_ = X.shape[1], np.unique(y)
        return self

    def predict(self, X: Floats) -> Floats:  # noqa: N803
        scores: Floats = X[:, 0]
        return scores


def errors_of_fairlearn(
    frame: pl.DataFrame, constraint: str, objective: str, grid: int
) -> tuple[float, float]:
    """Expected shares of missed positives and of selected negatives."""
    names = {"equal_opportunity": "true_positive_rate_parity"}
    scores, y = frame.select("s").to_numpy(), frame["y"].cast(pl.Int64).to_numpy()
    optimizer = ThresholdOptimizer(
        estimator=Score().fit(scores, y),
        constraints=names.get(constraint, constraint),
        objective=objective,
        grid_size=grid,
        prefit=True,
        predict_method="predict",
    )
    groups = frame["g"].to_numpy()
    optimizer.fit(scores, y, sensitive_features=groups)
    chance = optimizer._pmf_predict(scores, sensitive_features=groups)[:, 1]
    return 1 - float(chance[y == 1].mean()), float(chance[y == 0].mean())


@pytest.mark.parametrize("grid", [50, 1000])
@pytest.mark.parametrize(
    ("constraint", "objective"),
    [
        ("equalized_odds", "accuracy_score"),
        ("equalized_odds", "balanced_accuracy_score"),
        ("equal_opportunity", "accuracy_score"),
    ],
)
def test_costs_are_those_of_fairlearn_but_for_its_grid(
    people: pl.DataFrame, constraint: str, objective: str, grid: int
) -> None:
    frame = people.drop("w")
    positives, negatives = frame.filter("y").height, frame.filter(~pl.col("y")).height
    # An error costs 1, or what makes both classes as heavy.
    price = (1, 1) if objective == "accuracy_score" else (negatives, positives)
    fnr, fpr = errors_of_fairlearn(frame, constraint, objective, grid)
    theirs = (price[0] * positives * fnr + price[1] * negatives * fpr) / frame.height
    options: Any = {"constraint": constraint, "cost_fn": price[0], "cost_fp": price[1]}
    table = wroc.equalized_thresholds(frame, "y", "s", by="g", **options)
    ours = table["overall_cost"][0]
    # One step of the grid: to the right only false positives grow, below only the missed.
    step = max(price[0] * positives, price[1] * negatives) / frame.height / grid
    assert -1e-12 <= theirs - ours <= step
