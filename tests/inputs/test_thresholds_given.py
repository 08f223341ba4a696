"""Thresholds of the wrong kind: a rule where a number is needed, a rule that is not called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import polars_wroc as wroc
from polars_wroc import rules

ROWS = pl.DataFrame(
    {
        "y": [1, 0, 1, 0],
        "s": [0.9, 0.8, 0.7, 0.1],
        "t": [0.8, 0.7, 0.9, 0.2],
        "g": ["a", "a", "b", "b"],
    }
)
WITHOUT_RULES: dict[str, Callable[[Any], object]] = {
    "impact_ratios": lambda threshold: wroc.impact_ratios(
        ROWS, "s", attributes="g", threshold=threshold, favorable="selected"
    ),
    "release_check": lambda threshold: wroc.release_check(ROWS, "y", "s", "t", threshold=threshold),
    "expected_metrics": lambda threshold: wroc.expected_metrics(ROWS, "s", threshold=threshold),
}
WITH_RULES: dict[str, Callable[[Any], object]] = {
    "group_gaps": lambda threshold: wroc.group_gaps(
        ROWS, "y", "s", attributes="g", threshold=threshold
    ),
    "audit": lambda threshold: wroc.audit(
        ROWS, "y", "s", attributes="g", threshold=threshold, favorable="selected"
    ),
    "threshold_metrics": lambda threshold: wroc.threshold_metrics(
        ROWS, "y", "s", threshold=threshold
    ),
    "confusion_matrix": lambda threshold: ROWS.select(
        wroc.confusion_matrix("y", "s", threshold=threshold)
    ),
}


@pytest.mark.parametrize("threshold", [rules.youden(), "youden"], ids=repr)
@pytest.mark.parametrize("call", WITHOUT_RULES.values(), ids=list(WITHOUT_RULES))
def test_rule_where_a_number_is_needed_says_what_works(
    call: Callable[[Any], object], threshold: object
) -> None:
    expected = (
        r"^`threshold` must be a number( or 'median')? here; found '?youden(\(\))?'?: take the "
        "number that a rule chooses from `threshold_metrics`, or pass decisions as `selected`; "
        "`audit` and `group_gaps` take rules$"
    )
    with pytest.raises(ValueError, match=expected):
        call(threshold)


@pytest.mark.parametrize(
    "call", [*WITH_RULES.values(), *WITHOUT_RULES.values()], ids=[*WITH_RULES, *WITHOUT_RULES]
)
def test_rule_that_is_not_called_shows_its_call(call: Callable[[Any], object]) -> None:
    expected = (
        r"^`threshold` must be a rule that is called, as in wroc.rules.max_fpr\(fpr=0.1\); found a "
        "function$"
    )
    with pytest.raises(TypeError, match=expected):
        call(rules.max_fpr)
