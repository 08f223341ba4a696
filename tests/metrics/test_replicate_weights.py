"""Standard errors from replicate weights: against the definition."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import plain_score
import polars as pl
import polars.selectors as cs
import pytest
from plain_survey import Row, auc_influences
from scipy import stats
from sweeps import sweep

import polars_wroc as wroc
from polars_wroc import ReplicateWeights

summary_of = partial(wroc.summary, diagnostics=True)


# Of eight replicates, with Fay's coefficient 0.3 and with stratum sizes 2, 2, 4.
FACTORS: dict[str, tuple[dict[str, Any], list[float], int]] = {
    "brr": ({}, [1 / 8] * 8, 7),
    "fay": ({"rho": 0.3}, [1 / (8 * 0.49)] * 8, 7),
    "jk1": ({}, [7 / 8] * 8, 7),
    "jkn": ({"rscales": [0.5] * 4 + [0.75] * 4}, [0.5] * 4 + [0.75] * 4, 5),
    "jk2": ({}, [1.0] * 8, 8),
    "bootstrap": ({}, [1 / 8] * 8, 7),
}


@pytest.fixture(scope="module")
def survey() -> pl.DataFrame:
    """Rows in two groups, with eight columns of replicate weights and a few zeros in them."""
    random = np.random.default_rng(11)
    rows = 120
    y = random.random(rows) < 0.4
    weight = random.lognormal(sigma=0.5, size=rows)
    frame = pl.DataFrame(
        {
            "g": random.choice(list("ab"), rows),
            "y": y.astype(int),
            "s": np.round(random.normal(size=rows) + y, 1),
            "w": np.where(random.random(rows) < 0.1, 0, weight),
        }
    )
    replicates = {f"r{i}": weight * random.choice([0, 1, 2], rows) for i in range(8)}
    return frame.with_columns(**{name: pl.Series(v) for name, v in replicates.items()})


def auc(frame: pl.DataFrame, weight: str) -> float:
    inside = frame.filter(pl.col("w") > 0, pl.col(weight) > 0)
    columns = inside.select("y", "s", weight).iter_rows()
    return auc_influences([Row(0, 0, y, s, w) for y, s, w in columns])[0]


def deviations(frame: pl.DataFrame) -> list[float]:
    return [auc(frame, f"r{i}") - auc(frame, "w") for i in range(8)]


@pytest.mark.parametrize("kind", sweep(FACTORS, fast=3))
def test_variance_is_the_sum_over_replicates(survey: pl.DataFrame, kind: Any) -> None:
    options, factors, df = FACTORS[kind]
    weights = ReplicateWeights(cs.starts_with("r"), kind, **options)
    found = summary_of(survey, "y", "s", weight="w", design=weights)
    row = found.row(0, named=True)
    variance = sum(f * d * d for f, d in zip(factors, deviations(survey), strict=True))
    assert row["auc_se"] ** 2 == pytest.approx(variance, rel=1e-10)
    assert (row["df"], row["df_segment"]) == (df, None)
    plain = plain_score.auc_of(survey)
    assert plain is not None
    assert plain.variance is not None
    effect = variance / plain.variance
    assert row["deff"] == pytest.approx(effect, rel=1e-9)
    limits = plain_score.limits(plain, float(stats.t.ppf(0.975, df)), effect)
    assert (row["auc_low"], row["auc_high"]) == pytest.approx(limits, abs=1e-9)


def test_scales_and_df_may_be_given(survey: pl.DataFrame) -> None:
    names = [f"r{i}" for i in range(8)]
    weights = ReplicateWeights(names, "brr", scale=0.25, rscales=range(8), df=3)
    found = summary_of(survey, "y", "s", weight="w", design=weights)
    variance = sum(0.25 * i * d * d for i, d in enumerate(deviations(survey)))
    assert found["auc_se"].item() ** 2 == pytest.approx(variance, rel=1e-10)
    assert found["df"].item() == 3


def test_df_of_a_group_are_those_of_the_strata_that_it_has_rows_in() -> None:
    random = np.random.default_rng(3)
    stratum, unit, y = (
        np.repeat(np.arange(8), 40),
        np.arange(320) // 20 % 2,
        random.random(320) < 0.4,
    )
    # One of both units of a stratum is left out in each replicate, and the other one counts twice.
    replicates = {
        f"r{left_out}": np.where(stratum == left_out, 2.0 * unit, 1.0) for left_out in range(8)
    }
    frame = pl.DataFrame(
        {
            "g": np.where(stratum < 2, "two strata", "others"),
            "crossing": np.arange(320) % 3,
            "y": y,
            "s": random.normal(size=320) + y,
            **replicates,
        }
    )
    design = ReplicateWeights(cs.starts_with("r"), "jk2")
    assert summary_of(frame, "y", "s", design=design)["df"].to_list() == [8]
    assert summary_of(frame, "y", "s", by="g", design=design)["df"].to_list() == [6, 2]
    assert summary_of(frame, "y", "s", by="crossing", design=design)["df"].to_list() == [8] * 3
    bootstrap = ReplicateWeights(cs.starts_with("r"), "bootstrap", df=20)
    assert summary_of(frame, "y", "s", by="g", design=bootstrap)["df"].to_list() == [20, 20]


def test_groups_and_models(survey: pl.DataFrame) -> None:
    two = survey.with_columns(t=-pl.col("s").round(0))
    weights = ReplicateWeights(cs.starts_with("r"), "jk1")
    options: dict[str, Any] = {"weight": "w", "design": weights}
    plan = summary_of(two.lazy(), "y", ["s", "t"], by="g", **options)
    for row in plan.collect().rows(named=True):
        frame = two.filter(g=row["g"]).with_columns(s=row["model"])
        variance = sum(7 / 8 * d * d for d in deviations(frame))
        assert row["auc_se"] ** 2 == pytest.approx(variance, rel=1e-10)


@pytest.mark.parametrize("scale", [1e-250, 1e-170, 1e155, 1e300])
def test_scale_of_weights_does_not_matter(survey: pl.DataFrame, scale: float) -> None:
    weights = ReplicateWeights(cs.starts_with("r"), "brr")
    scaled = survey.with_columns(cs.starts_with("r", "w") * scale)
    found, expected = (
        summary_of(frame, "y", "s", weight="w", design=weights) for frame in (scaled, survey)
    )
    assert found["auc_se"].item() == pytest.approx(expected["auc_se"].item(), rel=1e-9)


def test_replicates_whose_sums_are_no_numbers(survey: pl.DataFrame) -> None:
    weights = ReplicateWeights(cs.starts_with("r"), "brr")
    scaled = survey.with_columns(r3=pl.lit(1.7e308))
    found = summary_of(scaled, "y", "s", weight="w", design=weights)
    assert found.select("auc_se", "auc_low", "deff").row(0) == (None,) * 3


def test_a_replicate_without_a_class_has_no_variance(survey: pl.DataFrame) -> None:
    empty = survey.with_columns(r3=pl.when(pl.col("y") == 0).then("r3").otherwise(0.0))
    weights = ReplicateWeights(cs.starts_with("r"), "brr")
    found = summary_of(empty, "y", "s", weight="w", design=weights)
    assert found.select("auc_se", "auc_low", "ci_method", "deff").row(0) == (None,) * 4
    assert found["auc"].item() == pytest.approx(auc(survey, "w"))
    assert found["ci_note"].item() == "no estimate in 1 of 8 replicates"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "fay"}, "`rho` must be given for kind 'fay', and for no other; found None"),
        ({"kind": "brr", "rho": 0.5}, "`rho` must be given for kind 'fay', and for no other"),
        ({"kind": "fay", "rho": 1}, "`rho` must be below 1; found 1"),
        ({"kind": "jkn"}, "`rscales` must be given for kind 'jkn'"),
    ],
)
def test_replicate_weights_refuse_wrong_scales_and_degrees_of_freedom(
    arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        ReplicateWeights("r", **arguments)


@pytest.mark.parametrize(
    ("weights", "options", "message"),
    [
        (("r1", "brr"), {}, "`columns` must hold two or more replicate weights; found 1"),
        ((["r1", "r2"], "brr"), {"rscales": [1]}, "`rscales` must have one number for each of 2"),
    ],
)
def test_replicate_weights_refuse_columns_that_are_no_weights(
    survey: pl.DataFrame, weights: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        summary_of(survey, "y", "s", design=ReplicateWeights(*weights, **options))


def test_replicate_weights_stand_alone(survey: pl.DataFrame) -> None:
    weights = ReplicateWeights(["r1", "r2"], "brr")
    with pytest.raises(
        ValueError, match=r"`design` must be None with `bins`, .*; found replicate weights$"
    ):
        summary_of(survey, "y", "s", bins=20, design=weights)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (3, "^`design` must be .*, a `Survey` or `ReplicateWeights`; found .* of type int$"),
        (["r1", "r2"], "^`design` must be one column: pass the first stage only"),
    ],
)
def test_replicate_weights_are_of_their_class(
    survey: pl.DataFrame, weights: Any, message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        summary_of(survey, "y", "s", design=weights)


@pytest.mark.parametrize("rscales", [3, "11"])
def test_factors_are_several_numbers(rscales: Any) -> None:
    with pytest.raises(TypeError, match=r"^`rscales` must be a number for each replicate; found"):
        ReplicateWeights(["r1", "r2"], "brr", rscales=rscales)


@pytest.mark.parametrize("value", [None, -1.0])
def test_replicate_weights_are_weights(survey: pl.DataFrame, value: float | None) -> None:
    wrong = survey.with_columns(r1=pl.lit(value, pl.Float64))
    weights = ReplicateWeights(["r1", "r2"], "brr")
    with pytest.raises(ValueError, match=r"`replicate_weights` must .*(column 'r1' holds|null)"):
        summary_of(wrong, "y", "s", weight="w", design=weights)
