"""Precision-recall, DET and gain curves: against scikit-learn and against plain counting."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from sklearn import metrics as sklearn_metrics

import polars_wroc as wroc

Row: TypeAlias = tuple[int, float, int]

CURVES: dict[str, Callable[..., Any]] = {
    "pr": wroc.pr_curve,
    "roc": wroc.roc_curve,
}
RATES = {
    "pr": ["recall", "precision"],
    "roc": ["fpr", "tpr"],
}
CELLS = ["tp", "fp", "fn", "tn"]
SCORES = [-math.inf, -1.5, 0.0, 0.5, 2.0, math.inf]
ROWS = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from(SCORES), st.integers(0, 4)), max_size=14
)


def frame_of(rows: list[Row]) -> pl.DataFrame:
    schema = {"y": pl.Int64, "s": pl.Float64, "w": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def counted(rows: list[Row]) -> Iterator[dict[str, float | None]]:
    """Every point of all curves from its definition, the origin first."""
    there = [row for row in rows if row[2]]
    cuts: list[float | None] = [None, *sorted({s for _, s, _ in there}, reverse=True)]
    for cut in cuts:
        selected = [(y, w) for y, s, w in there if cut is not None and s >= cut]
        tp, fp = (sum(w for y, w in selected if y == k) for k in (1, 0))
        fn, tn = (sum(w for y, _, w in there if y == k) - n for k, n in ((1, tp), (0, fp)))
        precision, prevalence = share(tp, tp + fp), share(tp + fn, tp + fp + fn + tn)
        yield {
            "threshold": math.inf if cut is None else cut,
            "recall": share(tp, tp + fn),
            "precision": precision,
            "tpr": share(tp, tp + fn),
            "fpr": share(fp, fp + tn),
            "fnr": share(fn, tp + fn),
            "selection_rate": share(tp + fp, tp + fp + fn + tn),
            "lift": precision / prevalence if precision is not None and prevalence else None,
            "tp": tp,
            "fp": fp,
            "fn": fn,
            "tn": tn,
        }


@pytest.mark.parametrize("name", CURVES)
@given(rows=ROWS)
def test_points_are_those_counted_by_hand(name: str, rows: list[Row]) -> None:
    """Ties, infinite scores, weights of 0, one class only and no rows at all."""
    found = CURVES[name](frame_of(rows), "y", "s", weight="w")
    columns = ["threshold", *RATES[name], *CELLS]
    assert found.schema == dict.fromkeys(columns, pl.Float64)
    assert list(found.schema) == columns
    expected = pl.DataFrame(list(counted(rows)), schema=dict.fromkeys(counted_columns()))
    assert_frame_equal(found, expected.select(columns).cast(pl.Float64), abs_tol=1e-12)


def counted_columns() -> list[str]:
    return [*next(counted([]))]


@pytest.mark.parametrize("weight", ["w", None], ids=["weighted", "unweighted"])
def test_pr_curve_equals_scikit_learn_in_each_group(people: pl.DataFrame, weight: str) -> None:
    curves = wroc.pr_curve(people, "y", "s", weight=weight, by="g")
    for (g,), part in people.group_by("g"):
        precision, recall, threshold = sklearn_metrics.precision_recall_curve(
            part["y"], part["s"], sample_weight=part[weight] if weight else None
        )
        ours = curves.filter(g=g).select("threshold", "recall", "precision")
        theirs = {"threshold": threshold, "recall": recall[:-1], "precision": precision[:-1]}
        assert ours.row(0) == (math.inf, 0.0, None)
        assert_frame_equal(ours[1:], pl.DataFrame(theirs).reverse(), abs_tol=1e-12)


@pytest.mark.parametrize("weight", ["w", None], ids=["weighted", "unweighted"])
def test_det_curve_equals_scikit_learn_in_each_group(people: pl.DataFrame, weight: str) -> None:
    curves = wroc.roc_curve(people, "y", "s", weight=weight, by="g")
    for (g,), part in people.group_by("g"):
        fpr, fnr, threshold = sklearn_metrics.det_curve(
            part["y"], part["s"], sample_weight=part[weight] if weight else None
        )
        theirs = pl.DataFrame({"threshold": threshold, "fpr": fpr, "fnr": fnr}).reverse()
        ours = curves.filter(g=g).select("threshold", "fpr", fnr=1 - pl.col("tpr"))
        # They leave out what comes before the last point without false positives, and what
        # comes after the first one without false negatives.
        start = (ours["fpr"] == 0).sum() - 1
        assert_frame_equal(ours[start : start + theirs.height], theirs, abs_tol=1e-12)
        assert (ours["fnr"][start + theirs.height :] == 0).all()


def test_steps_of_the_pr_curve_add_up_to_the_average_precision(people: pl.DataFrame) -> None:
    curve = wroc.pr_curve(people, "y", "s", weight="w")
    found = (curve["recall"].diff() * curve["precision"]).sum()
    expected = sklearn_metrics.average_precision_score(
        people["y"], people["s"], sample_weight=people["w"]
    )
    assert found == pytest.approx(expected, abs=1e-12)


def test_seven_rows_have_the_worked_curve(seven: pl.DataFrame) -> None:
    pr = wroc.pr_curve(seven, "y", "s", weight="w").filter(threshold=0.6)
    assert pr.select("recall", "precision").row(0) == pytest.approx((1, 4 / 7))
    roc = wroc.roc_curve(seven, "y", "s", weight="w").filter(threshold=0.7)
    assert roc.select("fpr", "tpr").row(0) == pytest.approx((0.6, 0.5))


# Groups, several scores and both engines.


@pytest.mark.parametrize("name", CURVES)
def test_rates_of_a_class_that_is_not_there_are_null(messy: pl.DataFrame, name: str) -> None:
    found = CURVES[name](messy, "y", "s", weight="w", by="g").filter(g="one")
    assert found["threshold"].to_list() == [math.inf, 2.0, 1.0]
    empty = {"fpr"}
    for rate in RATES[name]:
        assert (found[rate].null_count() == 3) == (rate in empty)
    negatives = CURVES[name](messy, ~pl.col("y"), "s", weight="w", by="g").filter(g="one")
    for rate in set(RATES[name]) & {"recall", "fnr", "tpr"}:
        assert negatives[rate].null_count() == 3


@pytest.mark.parametrize("name", CURVES)
def test_no_rows_have_an_origin_without_rates(messy: pl.DataFrame, name: str) -> None:
    none = messy.lazy().clear()
    found = CURVES[name](none, "y", "s", weight="w", by="g").collect()
    assert found.is_empty()
    columns = ["threshold", *RATES[name], *CELLS]
    assert found.schema == {"g": pl.String} | dict.fromkeys(columns, pl.Float64)
    origin = CURVES[name](none, "y", "s", weight="w").collect()
    assert origin["threshold"].to_list() == [math.inf]
