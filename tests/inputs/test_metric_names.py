"""Metrics under the names of other packages lead to those of this one."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest

import polars_wroc as wroc

ROWS = pl.DataFrame(
    {"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1], "g": ["a", "a", "b", "b"], "m": [1, 2, 1, 2]}
)
CALLS: dict[str, Callable[[str], object]] = {
    "threshold_metrics": lambda name: wroc.threshold_metrics(
        ROWS, "y", "s", threshold=0.5, metrics=[name]
    ),
    "group_gaps": lambda name: wroc.group_gaps(
        ROWS, "y", "s", attributes="g", threshold=0.5, metrics=[name]
    ),
    "trend": lambda name: wroc.trend(ROWS, "y", "s", over="m", threshold=0.5, metrics=[name]),
    "release_check": lambda name: wroc.release_check(
        ROWS, "y", "s", "m", threshold=0.5, metrics=[name]
    ),
    "worst_segments": lambda name: wroc.worst_segments(
        ROWS, "y", "s", attributes="g", threshold=0.5, favorable="selected", metric=name
    ),
    "rows_needed": lambda name: wroc.rows_needed(
        metric=name, value=0.5, prevalence=0.1, half_width=0.05
    ),
}
MEANT = {
    "recall": "tpr",
    "sensitivity": "tpr",
    "precision": "ppv",
    "accuracy_score": "accuracy",
}


@pytest.mark.parametrize(("name", "meant"), MEANT.items())
@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_rate_of_other_packages_names_the_rate_that_is_meant(
    call: Callable[[str], object], name: str, meant: str
) -> None:
    expected = rf"^`metrics?` must be one of .*; found '{name}'; did you mean '{meant}'\?$"
    with pytest.raises(ValueError, match=expected):
        call(name)


@pytest.mark.parametrize(("name", "meant"), [("specificity", "tnr"), ("f1_score", "f1")])
def test_name_is_answered_only_by_a_metric_that_the_function_has(name: str, meant: str) -> None:
    with pytest.raises(ValueError, match=rf"; did you mean '{meant}'\?$"):
        CALLS["threshold_metrics"](name)
    with pytest.raises(ValueError, match=f"; found '{name}'$"):
        CALLS["worst_segments"](name)


def test_area_is_named_as_the_function_names_it() -> None:
    with pytest.raises(ValueError, match=r"; found 'roc_auc'; did you mean 'auc'\?$"):
        CALLS["group_gaps"]("roc_auc")
    with pytest.raises(ValueError, match=r"; found 'auc'; did you mean 'roc_auc'\?$"):
        wroc.bootstrap(ROWS, "y", "s", metrics="auc")  # type: ignore[arg-type]
