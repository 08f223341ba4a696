"""Derivatives of expected metrics by labels, against differences of the metrics."""

from __future__ import annotations

import numpy as np
import pytest

from polars_wroc.arrays import Array
from polars_wroc.stats.expectations import ExpectedAuc, net_benefit_slopes, rate_slopes

STEP = 1e-6
RATES = {"tpr": ([0], [2]), "fpr": ([1], [3]), "ppv": ([0], [1]), "accuracy": ([0, 3], [1, 2])}


def auc_of(p: Array, w: Array) -> tuple[float, ExpectedAuc]:
    """The AUC of rows with rising scores, with pairs of a row with itself."""
    pos, neg = w * p, w * (1 - p)
    lower = neg.cumsum() - neg / 2
    sums = pos.sum(), neg.sum(), (pos * lower).sum(), (w**2 * p * (1 - p)).sum()
    auc = ExpectedAuc(*(np.array([each]) for each in sums))
    return auc.with_own_pairs.item(), auc


def test_slopes_of_the_auc_are_its_derivatives() -> None:
    random = np.random.default_rng(2)
    p, w = random.random(12), random.lognormal(size=12)
    value, auc = auc_of(p, w)
    found = auc.slopes(w.cumsum() - w / 2, lambda values: values)
    for row in range(12):
        moved = p.copy()
        moved[row] += STEP
        derivative = (auc_of(moved, w)[0] - value) / STEP / w[row]
        assert found[row] == pytest.approx(derivative, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("name", RATES)
def test_slopes_of_rates_are_their_derivatives(name: str) -> None:
    counted, others = RATES[name]
    cells = np.array([[5.0], [2.0], [3.0], [7.0]])

    def rate(at: Array) -> float:
        return float(at[counted].sum() / at[[*counted, *others]].sum())

    slopes = rate_slopes(cells, counted, others)
    for found, (positive, negative) in (((slopes.selected), (0, 1)), (slopes.rejected, (2, 3))):
        moved = cells.copy()
        moved[positive] += STEP
        moved[negative] -= STEP
        expected = (rate(moved) - rate(cells)) / STEP
        assert found.item() == pytest.approx(expected, rel=1e-5, abs=1e-9)


def test_a_label_of_a_selected_row_moves_the_net_benefit() -> None:
    slopes = net_benefit_slopes(np.array([[5.0], [2.0], [3.0], [7.0]]), 0.25)
    assert slopes.selected.item() == pytest.approx(1.25 / 17)
    assert slopes.rejected.item() == 0
