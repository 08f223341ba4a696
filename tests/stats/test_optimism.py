"""How much better a chosen threshold looks than it is, against simulations."""

from __future__ import annotations

import pytest

from polars_wroc.thresholds.rules import expected_optimism


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("youden", [0.084, 0.050, 0.017]),
        (None, [0.084, 0.050, 0.017]),
        ("max_fpr", [0.049, 0.020, 0.005]),
        ("min_tpr", [0.048, 0.020, 0.006]),
        ("max_selection_rate", [0.010, 0.004, 0.001]),
    ],
)
def test_expected_optimism_is_that_of_simulations(rule: str | None, expected: list[float]) -> None:
    found = [expected_optimism(rule, positives) for positives in (20, 50, 200)]
    assert found == pytest.approx(expected, abs=0.0045)


def test_expected_optimism_of_few_positives_is_not_known() -> None:
    assert expected_optimism("max_fpr", 9) is None
    assert expected_optimism("max_fpr", 10) == pytest.approx(0.1)
