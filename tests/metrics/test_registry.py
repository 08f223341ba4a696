"""Every metric of a registry is known wherever metrics are named, and is what its row says."""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from typing import Any, get_args

import numpy as np
import polars as pl
import pytest
from calls import one_metric
from conftest import INVALID_VALUES
from wide_tables import wide_gaps

import polars_wroc as wroc
from polars_wroc.groups.comparisons import FAIRNESS as METRICS
from polars_wroc.groups.comparisons import GAP_METRICS
from polars_wroc.inputs.metric import Metric
from polars_wroc.metrics.auc_sums import INTERVAL_TYPES
from polars_wroc.metrics.registry import CURVE_METRICS, CurveMetric, MetricName
from polars_wroc.namespaces import ExprNamespace
from polars_wroc.thresholds.registry import RATES, THRESHOLD_METRICS, RateMetric

summary_of = partial(wroc.summary, diagnostics=True)

CURVES = list(CURVE_METRICS.values())
SUMMARY_METRICS = [metric for metric in CURVES if metric.summary_column]
THRESHOLDS = list(THRESHOLD_METRICS.values())
# Columns of a summary that are no metrics: counts, weights, and what belongs to an AUC.
NO_METRICS = [
    *("n", "n_pos", "n_neg", "n_missing", "w_pos", "w_neg", "inverted"),
    *("k_pos", "k_neg", "ci_note"),
]


def named(metric: Metric) -> str:
    return metric.name


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


def alone(metric: CurveMetric, frame: pl.DataFrame) -> float:
    """The metric by itself."""
    value: float = frame.select(one_metric(metric.name, weight="w")).item()
    return value


def at_half(frame: pl.DataFrame) -> dict[str, Any]:
    return wroc.threshold_metrics(
        frame, "y", "s", threshold=0.5, weight="w", metrics="all", level=None
    ).row(0, named=True)


# A metric is named wherever metrics are.


def test_literals_name_the_metrics() -> None:
    assert get_args(MetricName) == tuple(CURVE_METRICS)


@pytest.mark.parametrize("metric", CURVES, ids=named)
def test_documentation_names_each_metric_of_a_curve(metric: CurveMetric) -> None:
    assert f'``"{metric.name}"``' in str(wroc.curve_metrics.__doc__)
    if metric.name in wroc.__all__:
        function = getattr(wroc, metric.name)
        returned = function.__doc__.splitlines()[0].removeprefix("Return ").removeprefix("the ")
        assert returned[0].upper() + returned[1:] == metric.definition
        assert metric.name in vars(ExprNamespace)


@pytest.mark.parametrize("metric", [*CURVES, *THRESHOLDS], ids=named)
def test_metric_is_described(metric: Metric) -> None:
    assert re.fullmatch(r"[A-Z][^.]*\.", metric.definition)
    assert metric.label.strip(". ") == metric.label != ""
    assert metric.heading[0].isupper()


def test_no_two_metrics_are_called_the_same() -> None:
    for metrics in (CURVES, THRESHOLDS, [*GAP_METRICS.values()]):
        for name in ("name", "label", "definition", "column"):
            called = Counter(getattr(metric, name) for metric in metrics)
            assert [value for value, times in called.items() if times > 1] == []


def test_columns_of_tables_are_metrics_of_a_registry() -> None:
    frame = rows()
    summary = summary_of(frame, "y", "s", weight="w")
    metrics = [metric.column for metric in SUMMARY_METRICS]
    others = {*NO_METRICS, *[*INTERVAL_TYPES][1:]}
    assert [name for name in summary.columns if name not in others] == metrics
    decisions = [*at_half(frame)]
    assert decisions == ["threshold", *THRESHOLD_METRICS, "tp", "fp", "fn", "tn", "reason"]
    limits = wroc.threshold_metrics(
        frame, "y", "s", threshold=0.5, level=0.9, metrics="all"
    ).columns
    limited = [name.removesuffix("_low") for name in limits if name.endswith("_low")]
    assert limited == [*THRESHOLD_METRICS]
    gaps = wide_gaps(frame, "y", "s", by="g", threshold=0.5).columns
    assert [name.removesuffix("_gap") for name in gaps if name.endswith("_gap")] == [*GAP_METRICS]
    fairness = wroc.fairness(frame, "y", "s", attributes="g", threshold=0.5)
    assert fairness["metric"].to_list() == [*METRICS]


def test_fairness_metrics_compare_metrics_with_gaps() -> None:
    compared = {rate for metric in METRICS.values() for rate in metric.compares}
    assert compared <= GAP_METRICS.keys()
    assert {rate.name for rate in RATES.values() if rate.fairness} == compared - {"auc"}


# It is what its row says.


@pytest.mark.parametrize("metric", CURVES, ids=named)
def test_metric_is_the_same_number_everywhere(metric: CurveMetric) -> None:
    frame = rows()
    name: Any = metric.name
    expected = pytest.approx(alone(metric, frame), abs=1e-12)
    several = wroc.curve_metrics("y", "s", weight="w", metrics={"it": name, "other": "ks"})
    assert frame.select(several).unnest("curve_metrics")["it"].item() == expected
    drawn = wroc.bootstrap(frame, "y", "s", weight="w", metrics=name, resamples=2, replicates=True)
    assert drawn[name][0] == expected
    assert drawn[name].n_unique() == 3
    if metric.summary_column:
        assert not metric.uses_scores
        summary = summary_of(frame, "y", "s", weight="w")
        assert summary[metric.summary_column].item() == expected


@pytest.mark.parametrize("metric", CURVES, ids=named)
def test_better_scores_have_better_values(metric: CurveMetric) -> None:
    better, worse = (alone(metric, rows(good=good)) for good in (2.0, 0.2))
    assert (better > worse) == (metric.better == "high")


@pytest.mark.parametrize("metric", THRESHOLDS, ids=named)
def test_better_decisions_have_better_values(metric: Metric) -> None:
    if metric.better is None:
        assert metric.name in {"selection_rate", "prevalence"}
        return
    better, worse = (at_half(rows(good=good))[metric.name] for good in (2.0, 0.2))
    assert (better > worse) == (metric.better == "high")


@pytest.mark.parametrize("rate", RATES.values(), ids=named)
def test_a_rate_is_the_share_of_its_cells(rate: RateMetric) -> None:
    found = at_half(rows())
    share = sum(found[cell] for cell in rate.counted) / sum(found[cell] for cell in rate.cells)
    assert found[rate.name] == pytest.approx(share, abs=1e-12)
    assert len(rate.sample_sizes) == 1


# Metrics that need the scores.


@pytest.mark.parametrize("metric", [each for each in CURVES if each.uses_scores], ids=named)
def test_scores_must_be_probabilities(metric: CurveMetric) -> None:
    frame = rows().lazy().with_columns(s=pl.when(pl.col("w") > 1).then(1.5).otherwise("s"))
    name: Any = metric.name
    message = "`score` must be a probability, from 0 to 1; found 1.5"
    for plan in (
        frame.select(wroc.curve_metrics("y", "s", metrics=name)),
        wroc.bootstrap(frame, "y", "s", metrics=name, by="g", resamples=2),
    ):
        with pytest.raises(INVALID_VALUES, match=message):
            plan.collect()
    gone = frame.with_columns(w=pl.when(pl.col("s") <= 1).then("w").otherwise(0.0))
    kept = wroc.bootstrap(gone, "y", "s", weight="w", metrics=name, resamples=2).collect()
    assert kept["value"].item() == pytest.approx(alone(metric, gone.collect()), abs=1e-12)


@pytest.mark.parametrize("metric", [each for each in CURVES if each.uses_scores], ids=named)
def test_one_class_is_enough_for_a_loss(metric: CurveMetric) -> None:
    frame = rows().with_columns(y=pl.col("y") & (pl.col("g") != "a"))
    name: Any = metric.name
    table = wroc.bootstrap(frame, "y", "s", by="g", metrics=name, resamples=2, replicates=True)
    assert table[metric.name].null_count() == 0
    nothing = frame.with_columns(w=0.0).select(
        wroc.curve_metrics("y", "s", metrics=name, weight="w")
    )
    assert nothing.unnest("curve_metrics").item() is None


@pytest.mark.parametrize("names", [["ks", "roc_auc"], ["ks", "brier_score"]])
def test_scores_are_carried_only_where_a_metric_needs_them(names: list[Any]) -> None:
    frame = rows().lazy()
    plan = frame.select(wroc.curve_metrics("y", "s", metrics=names))
    assert ("must be a probability" in plan.explain()) == ("brier_score" in names)
