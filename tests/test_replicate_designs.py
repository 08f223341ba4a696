"""Replicate weights in all functions: against the definition, and against sampling units.

If each replicate raises the weights of a unit by a tiny part, the differences of the estimates are
derivatives, and the variance is the linearised one of the units (the infinitesimal jackknife).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pytest
from audit_words import page_words
from plain_roc import wilson
from polars.testing import assert_frame_equal
from scipy import stats
from sweeps import sweep
from wide_tables import wide_gaps

import polars_wroc as wroc
from polars_wroc import ReplicateWeights

summary_of = partial(wroc.summary, diagnostics=True)


UNITS = 24
STEP = 1e-6
RATES = ("tpr", "fpr", "ppv", "npv", "selection_rate")
SOME = ReplicateWeights([f"r{i}" for i in range(6)], "fay", rho=0.5)
FACTOR = 1 / (6 * 0.25)


@pytest.fixture(scope="module")
def survey() -> pl.DataFrame:
    """Units whose rows are similar, with weights raised in each of them, and six replicates."""
    random = np.random.default_rng(20261)
    rows = 1800
    unit = random.integers(0, UNITS, rows)
    shared = random.normal(size=UNITS)[unit]
    y = random.random(rows) < 0.4
    weight = random.lognormal(sigma=0.5, size=rows)
    score = 1 / (1 + np.exp(-np.round(random.normal(size=rows) + 1.5 * y + 0.4 * shared, 1)))
    columns: dict[str, Any] = {
        "c": unit,
        "y": y.astype(int),
        "s": score,
        "t": np.round(score + 0.2 * random.random(rows), 2),
        "g": random.choice(list("abc"), rows),
        "k": random.choice(list("uv"), rows),
        "w": np.where(random.random(rows) < 0.05, 0, weight),
    }
    raised = {f"u{i}": weight * (1 + STEP * (unit == i)) for i in range(UNITS)}
    replicates = {f"r{i}": weight * random.choice([0.5, 1.5], UNITS)[unit] for i in range(6)}
    frame = pl.DataFrame(columns | raised | replicates)
    return frame.with_columns(y=pl.when(pl.Series(random.random(rows) < 0.98)).then("y"))


RAISED = ReplicateWeights(
    [f"u{i}" for i in range(UNITS)], "jk1", scale=UNITS / (UNITS - 1) / STEP**2, df=UNITS - 1
)
AREAS = {"early": wroc.PartialAUC(fpr=(0.1, 0.4)), "late": wroc.PartialAUC(tpr=(0.5, 1))}
TABLES: dict[str, Callable[..., pl.DataFrame | pl.LazyFrame]] = {
    "summary": lambda f, **o: summary_of(f, "y", ["s", "t"], by="g", **o).drop("df_segment"),
    "summary with areas": lambda f, **o: wroc.summary(
        f, "y", "s", areas=AREAS, by="g", level=0.95, **o
    ).drop("df_segment"),
    # Otherwise pseudo-rows rest on the units, or with replicate weights on the rows.
    "compare": lambda f, **o: wroc.compare(f, "y", ["s", "t"], by="g", method="delong", **o),
    "threshold_metrics": lambda f, **o: wroc.threshold_metrics(
        f, "y", "s", threshold=[0.4, 0.6], by="g", level=0.9, **o
    ),
    "roc_point": lambda f, **o: wroc.roc_point(f, "y", "s", fpr=[0.1, 0.3], by="g", **o),
    "roc_point at tpr": lambda f, **o: wroc.roc_point(f, "y", "s", tpr=[0.6, 0.9], **o),
    "cross_auc": lambda f, **o: wroc.cross_auc(f, "y", "s", by="g", **o),
    "cross_auc against the rest": lambda f, **o: wroc.cross_auc(
        f, "y", "s", by="g", against="rest", level=0.8, **o
    ),
    "threshold_metrics by a rule": lambda f, **o: wroc.threshold_metrics(
        f, "y", "s", threshold=wroc.rules.youden(), per_group=True, by="g", level=0.9, **o
    ),
    "roc_curve": lambda f, **o: wroc.roc_curve(
        f, "y", "s", by="g", band="pointwise", max_points=20, **o
    ),
    "decision_curve": lambda f, **o: wroc.decision_curve(
        f, "y", "s", thresholds=[0.4, 0.6], by="g", **o
    ),
    "calibration_curve": lambda f, **o: wroc.calibration_curve(f, "y", "s", by="g", bins=3, **o),
    "calibration_summary": lambda f, **o: wroc.calibration_summary(f, "y", "s", by="g", **o),
    "fairness": lambda f, **o: wroc.fairness(f, "y", "s", attributes="g", threshold=0.5, **o),
    **{
        f"group_gaps_{reference}": lambda f, reference=reference, **o: wide_gaps(
            f, "y", "s", by="g", threshold=0.5, reference=reference, **o
        )
        for reference in ("rest", "overall", "a", "best")
    },
}


def with_second_stratum(survey: pl.DataFrame) -> pl.DataFrame:
    """Add a stratum of rows without scores: of one stratum alone variances have other factors."""
    no_score = pl.lit(None, pl.Float64)
    outside = survey.head(2).with_columns(s=no_score, t=no_score, c=pl.Series([100, 101]), h=1)
    return pl.concat([survey.with_columns(h=0), outside])


@pytest.mark.parametrize("name", sweep(TABLES, fast=3))
def test_the_infinitesimal_jackknife_is_linearised(survey: pl.DataFrame, name: str) -> None:
    strata = with_second_stratum(survey)
    linear = TABLES[name](strata, weight="w", design=wroc.Survey("c", strata="h"))
    found = TABLES[name](strata, weight="w", design=RAISED)
    assert_frame_equal(found, linear, rel_tol=2e-5, abs_tol=1e-6)


@pytest.mark.slow(reason="makes several audits")
def test_audits_are_those_of_the_units(survey: pl.DataFrame) -> None:
    options: dict[str, Any] = {"attributes": ["g", "k"], "threshold": 0.5, "weight": "w"}
    options |= {"favorable": "selected"}
    strata = with_second_stratum(survey)
    linear = wroc.audit(strata, "y", "s", design=wroc.Survey("c", strata="h"), **options)
    found = wroc.audit(strata.lazy(), "y", "s", design=RAISED, **options)
    close: dict[str, Any] = {"rel_tol": 2e-5, "abs_tol": 1e-6}
    for name in ("segments", "table", "curves"):
        assert_frame_equal(getattr(found, name), getattr(linear, name), **close)
    assert found.settings.as_dict()["design"]["replicates"] == "jk1"
    assert "the design (replicate weights: jk1), with 23 degrees of freedom." in page_words(found)


# Effective number of rows.
KISH = pl.col("w").sum() ** 2 / pl.col("w").pow(2).sum()


def spread(values: list[float | None], full: float) -> float:
    """Standard error from the estimates of the replicates."""
    assert len(values) == 6
    known = [value for value in values if value is not None]
    return math.sqrt(FACTOR * sum((value - full) ** 2 for value in known))


def with_each_weight(survey: pl.DataFrame) -> list[pl.DataFrame]:
    """Give the rows that count each of the six weights in turn."""
    counted = survey.filter(pl.col("w") > 0)
    return [counted.with_columns(w=pl.col(f"r{i}")) for i in range(6)]


@pytest.mark.slow(reason="computes many tables")
def test_gaps_are_those_of_each_replicate(survey: pl.DataFrame) -> None:
    given: dict[str, Any] = {"by": "g", "threshold": 0.5, "weight": "w", "reference": "a"}
    plan = wide_gaps(survey.lazy(), "y", "s", design=SOME, **given)
    table = plan.collect()
    each = [wide_gaps(frame, "y", "s", **given)["tpr"] for frame in with_each_weight(survey)]
    full, quantile = table["tpr"].to_list(), float(stats.t.ppf(0.975, 5))
    away = np.array([rates.to_numpy() - full for rates in each])
    covariance = FACTOR * away.T @ away
    positives = survey.filter(y=1).group_by("g").agg(kish=KISH).sort("g")
    limits = []
    for place, kish in enumerate(positives["kish"]):
        size = min(full[place] * (1 - full[place]) / covariance[place, place], kish)
        limits.append(wilson(full[place], size, 2 * stats.norm.cdf(quantile) - 1))
    for place in (1, 2):
        related = covariance[0, place] / math.sqrt(covariance[0, 0] * covariance[place, place])
        below = full[place] - limits[place][0], limits[0][1] - full[0]
        above = limits[place][1] - full[place], full[0] - limits[0][0]
        gap = full[place] - full[0]
        ends = [
            gap + sign * math.sqrt(x * x + y * y - 2 * related * x * y)
            for sign, (x, y) in ((-1, below), (1, above))
        ]
        found = table.select("tpr_gap", "tpr_gap_low", "tpr_gap_high").row(place)
        assert found == pytest.approx((gap, *ends))


def test_differences_are_those_of_each_replicate(survey: pl.DataFrame) -> None:
    models = ["s", "t"]
    plan = wroc.compare(survey.lazy(), "y", models, weight="w", design=SOME, method="delong")
    row = plan.collect().row(0, named=True)
    each = [wroc.compare(frame, "y", models, weight="w") for frame in with_each_weight(survey)]
    se = spread([one["gap"].item() for one in each], row["gap"])
    assert row["gap_se"] == pytest.approx(se)
    assert row["p_value"] == pytest.approx(2 * stats.t.sf(abs(row["gap"] / row["gap_se"]), 5))


@pytest.mark.parametrize("span", [{"fpr": (0.05, 0.3)}, {"tpr": (0.7, 1.0)}])
def test_partial_areas_are_those_of_each_replicate(
    survey: pl.DataFrame, span: dict[str, Any]
) -> None:
    areas = {"part": wroc.PartialAUC(**span)}
    plan = wroc.summary(
        survey.lazy(), "y", "s", by="g", weight="w", level=0.9, design=SOME, areas=areas
    )
    table = plan.collect()
    each = [
        wroc.summary(frame, "y", "s", by="g", weight="w", areas=areas)
        for frame in with_each_weight(survey)
    ]
    for place, row in enumerate(table.rows(named=True)):
        parts = [one["part"][place] for one in each]
        assert row["part_se"] == pytest.approx(spread(parts, row["part"]))
        assert row["df"] == 5


def test_limits_of_rates_have_the_variance_of_the_replicates(survey: pl.DataFrame) -> None:
    given: dict[str, Any] = {"threshold": 0.5, "by": "g", "weight": "w"}
    table = wroc.threshold_metrics(survey, "y", "s", level=0.9, design=SOME, **given)
    each = [wroc.threshold_metrics(frame, "y", "s", **given) for frame in with_each_weight(survey)]
    t = float(stats.t.ppf(0.95, 5))
    for name in RATES:
        for place, row in enumerate(table.rows(named=True)):
            rate, low, high = (row[name + end] for end in ("", "_low", "_high"))
            variance = spread([one[name][place] for one in each], rate) ** 2
            size = rate * (1 - rate) / variance
            # The limits are as far from the rate as their own standard errors allow; the size is
            # at most Kish's, which gives the narrowest.
            for limit in (low, high):
                assert (rate - limit) ** 2 >= t**2 * limit * (1 - limit) / size * (1 - 1e-9)
                used = t**2 * limit * (1 - limit) / (rate - limit) ** 2
                assert used <= size * (1 + 1e-9)


@pytest.mark.slow(reason="computes many tables")
def test_a_replicate_without_negatives_leaves_gaps_unknown(survey: pl.DataFrame) -> None:
    none = survey.with_columns(
        r3=pl.when((pl.col("g") == "b") & (pl.col("y") == 0)).then(0.0).otherwise("r3")
    )
    given: dict[str, Any] = {"by": "g", "threshold": 0.5, "weight": "w"}
    table = wide_gaps(none, "y", "s", design=SOME, **given)
    # The rest of a and of c has group b in it.
    assert table["auc_gap_low"].to_list() == [None] * 3
    # Rates of the rest are pooled, and have negatives in each replicate.
    assert table["fpr_gap_low"].is_null().to_list() == [False, True, False]
    assert table["tpr_gap_low"].null_count() == 0
    named = wide_gaps(none, "y", "s", design=SOME, reference="a", **given)
    assert named["auc_gap_low"].is_null().to_list() == [True, True, False]
    notes = summary_of(none, "y", "s", by="g", weight="w", design=SOME)["ci_note"]
    assert notes.to_list() == [None, "no estimate in 1 of 6 replicates", None]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda f: wide_gaps(f, "y", "s", by="g", within="k", design=SOME),
            r"must be None with `within`: give one of them; found replicate weights$",
        ),
    ],
)
def test_what_replicate_weights_do_not_go_with(
    survey: pl.DataFrame, call: Callable[[pl.DataFrame], object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        call(survey)
