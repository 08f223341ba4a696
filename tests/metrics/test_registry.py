"""Every metric is known wherever metrics are named, and is the same number everywhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, get_args

import numpy as np
import polars as pl
import pytest
from calls import one_metric
from conftest import INVALID_VALUES

import polars_wroc as wroc
from polars_wroc.typing import MetricName

# Metrics of a curve, those with a column in summaries, and those of the scores themselves.
CURVES = get_args(MetricName)
SUMMARY_COLUMNS = {"roc_auc": "auc", "average_precision": "average_precision", "ks": "ks"}
LOSSES = ["brier_score", "log_loss"]
# The cells that rates count, of all cells that they are about.
RATES = {
    "tpr": ("tp", "tp fn"),
    "fpr": ("fp", "fp tn"),
    "tnr": ("tn", "fp tn"),
    "fnr": ("fn", "tp fn"),
    "ppv": ("tp", "tp fp"),
    "npv": ("tn", "tn fn"),
    "selection_rate": ("tp fp", "tp fp fn tn"),
    "accuracy": ("tp tn", "tp fp fn tn"),
    "prevalence": ("tp fn", "tp fp fn tn"),
    "zero_one_loss": ("fp fn", "tp fp fn tn"),
    "fdr": ("fp", "tp fp"),
    "for": ("fn", "fn tn"),
}
CELLS = ["tp", "fp", "fn", "tn"]
LOWER_IS_BETTER = {
    "equal_error_rate",
    *LOSSES,
    "fpr",
    "fnr",
    "zero_one_loss",
    "fdr",
    "for",
    "lr_neg",
}
WITHOUT_SIDE = {"selection_rate", "prevalence"}


def rows(seed: int = 1, good: float = 1.0) -> pl.DataFrame:
    """Weighted rows of three groups, with a score that may be a probability and has ties."""
    random = np.random.default_rng(seed)
    positive = random.random(300) < 0.4
    logit = good * (2 * positive - 1) + random.normal(size=300)
    return pl.DataFrame(
        {
            "g": random.choice(["a", "b", "c"], 300),
            "y": positive,
            "s": (1 / (1 + np.exp(-logit))).round(2),
            "w": random.lognormal(size=300),
        }
    )


def alone(name: str, frame: pl.DataFrame) -> float:
    """The metric of a curve by itself."""
    value: float = frame.select(one_metric(name, weight="w")).item()
    return value


def at_half(frame: pl.DataFrame) -> dict[str, Any]:
    return wroc.threshold_metrics(
        frame, "y", "s", threshold=0.5, weight="w", metrics="all", level=None
    ).row(0, named=True)


THRESHOLDS = [name for name in at_half(rows()) if name not in ("threshold", *CELLS, "reason")]


def release(old: str, new: str, metrics: list[str]) -> pl.DataFrame:
    """Compare a bad and a good score of the same rows."""
    frame = rows(good=0.2).with_columns(good=rows(good=2.0)["s"])
    at = 0.3 if "net_benefit" in metrics else None
    options: dict[str, Any] = {"metrics": metrics, "net_benefit_at": at, "threshold": 0.5}
    return wroc.release_check(frame, "y", old=old, new=new, **options)


def list_known(call: Callable[[Any], Any]) -> list[str]:
    """List the metrics that the message on an unknown one names."""
    with pytest.raises(ValueError, match="`metrics` must be one of ") as raised:
        call(["nope"])
    return re.findall(r"\w+", str(raised.value).partition(" of ")[2].partition(";")[0])


# A metric is named wherever metrics are.


def test_each_metric_of_a_curve_is_known_to_functions_that_take_one() -> None:
    of_curve = partial(wroc.curve_metrics, "y", "s")
    assert list_known(lambda metrics: of_curve(metrics=metrics)) == [*CURVES]
    resampled = partial(wroc.bootstrap, rows(), "y", "s")
    assert list_known(lambda metrics: resampled(metrics=metrics)) == [*CURVES]


@pytest.mark.parametrize("name", CURVES)
def test_documentation_names_each_metric_of_a_curve(name: str) -> None:
    assert f'``"{name}"``' in str(wroc.curve_metrics.__doc__)
    assert hasattr(pl.col("s").wroc, name) == (name in wroc.__all__)  # type: ignore[attr-defined]


def test_columns_of_tables_are_the_metrics_that_can_be_asked_for() -> None:
    frame = rows()
    summary = wroc.summary(frame, "y", "s", weight="w").columns
    assert [name for name in summary if name in SUMMARY_COLUMNS.values()] == [
        *SUMMARY_COLUMNS.values()
    ]
    at_threshold = partial(wroc.threshold_metrics, frame, "y", "s", threshold=0.5)
    assert list_known(lambda metrics: at_threshold(metrics=metrics)) == THRESHOLDS
    limits = at_threshold(level=0.9, metrics="all").columns
    assert [name[:-4] for name in limits if name.endswith("_low")] == THRESHOLDS
    compared = partial(wroc.group_gaps, frame, "y", "s", attributes="g", threshold=0.5, min_rows=1)
    known = list_known(lambda metrics: compared(metrics=metrics))
    assert {*known} == {"auc", *THRESHOLDS, *LOSSES, "standardized_mean_difference"}
    assert {*compared()["metric"]} == {"auc", "selection_rate", "tpr", "fpr", "ppv", "npv"}


def test_no_two_metrics_are_called_the_same_in_tables() -> None:
    names = ["auc", *THRESHOLDS, *LOSSES]
    gaps = wroc.group_gaps(rows(), "y", "s", attributes="g", threshold=0.5, metrics=names)
    _, *lines = str(wroc.show(gaps.filter(segment="a"))).splitlines()
    called = [re.split(r"  +", line.removeprefix("a").strip())[0] for line in lines]
    called = called[: len(names)]
    assert len({*called}) == len(names), called
    assert all(re.fullmatch(r"[A-Za-z]([\w' -]*\w)?", each) for each in called), called


# It is what its name says.


@pytest.mark.parametrize("name", CURVES)
def test_metric_is_the_same_number_everywhere(name: Any) -> None:
    frame = rows()
    expected = pytest.approx(alone(name, frame), abs=1e-12)
    several = wroc.curve_metrics("y", "s", weight="w", metrics={"it": name, "other": "ks"})
    assert frame.select(several).unnest("curve_metrics")["it"].item() == expected
    drawn = wroc.bootstrap(frame, "y", "s", weight="w", metrics=name, resamples=2, replicates=True)
    assert drawn[name][0] == expected
    assert drawn[name].n_unique() == 3
    if name in SUMMARY_COLUMNS:
        summary = wroc.summary(frame, "y", "s", weight="w")
        assert summary[SUMMARY_COLUMNS[name]].item() == expected


@pytest.mark.parametrize("name", CURVES)
def test_better_scores_have_better_values(name: str) -> None:
    better, worse = (alone(name, rows(good=good)) for good in (2.0, 0.2))
    assert (better < worse) == (name in LOWER_IS_BETTER)


@pytest.mark.parametrize("name", [name for name in THRESHOLDS if name not in WITHOUT_SIDE])
def test_better_decisions_have_better_values(name: str) -> None:
    better, worse = (at_half(rows(good=good))[name] for good in (2.0, 0.2))
    assert (better < worse) == (name in LOWER_IS_BETTER)


def test_a_better_score_is_better_in_each_metric_of_a_release() -> None:
    known = list_known(lambda metrics: release("s", "good", metrics))
    assert {*known} >= {"auc", "tpr", "fpr", "ppv", "npv", "accuracy", *LOSSES}
    sided = [name for name in known if name not in WITHOUT_SIDE]
    better, worse = release("s", "good", sided), release("good", "s", sided)
    assert {*zip(better["metric"], better["verdict"], strict=True)} == {
        (n, "better") for n in sided
    }
    assert {*zip(worse["metric"], worse["verdict"], strict=True)} == {(n, "worse") for n in sided}


@pytest.mark.parametrize("name", RATES)
def test_a_rate_is_the_share_of_its_cells(name: str) -> None:
    found = at_half(rows())
    counted, cells = (sum(found[cell] for cell in side.split()) for side in RATES[name])
    assert found[name] == pytest.approx(counted / cells, abs=1e-12)


# Metrics that need the scores.


@pytest.mark.parametrize("name", LOSSES)
def test_scores_must_be_probabilities(name: Any) -> None:
    frame = rows().lazy().with_columns(s=pl.when(pl.col("w") > 1).then(1.5).otherwise("s"))
    message = "`score` must be a probability, from 0 to 1; found 1.5"
    for plan in (
        frame.select(wroc.curve_metrics("y", "s", metrics=name)),
        wroc.bootstrap(frame, "y", "s", metrics=name, by="g", resamples=2),
    ):
        with pytest.raises(INVALID_VALUES, match=message):
            plan.collect()
    gone = frame.with_columns(w=pl.when(pl.col("s") <= 1).then("w").otherwise(0.0))
    kept = wroc.bootstrap(gone, "y", "s", weight="w", metrics=name, resamples=2).collect()
    assert kept["value"].item() == pytest.approx(alone(name, gone.collect()), abs=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_one_class_is_enough_for_a_loss(name: Any) -> None:
    frame = rows().with_columns(y=pl.col("y") & (pl.col("g") != "a"))
    table = wroc.bootstrap(frame, "y", "s", by="g", metrics=name, resamples=2, replicates=True)
    assert table[name].null_count() == 0
    nothing = frame.with_columns(w=0.0).select(
        wroc.curve_metrics("y", "s", metrics=name, weight="w")
    )
    assert nothing.unnest("curve_metrics").item() is None


@pytest.mark.parametrize("names", [["ks", "roc_auc"], ["ks", "brier_score"]])
def test_scores_are_carried_only_where_a_metric_needs_them(names: list[Any]) -> None:
    frame = rows().lazy()
    plan = frame.select(wroc.curve_metrics("y", "s", metrics=names))
    assert ("must be a probability" in plan.explain()) == ("brier_score" in names)
