"""Intervals of an AUC by the design of a survey: against worked numbers and the definition."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from plain_survey import (
    SAMPLE,
    SURVEYS,
    Row,
    auc_degrees_of_freedom,
    auc_influences,
    covariance,
    rows_of,
    survey_frame,
    totals,
)
from polars.testing import assert_frame_equal
from scipy import special, stats

import polars_wroc as wroc

summary_of = partial(wroc.summary, diagnostics=True)


def of_both_classes(rows: list[Row]) -> bool:
    return len({row.label for row in rows}) > 1


@pytest.fixture
def sampled(seven: pl.DataFrame) -> pl.DataFrame:
    """The seven rows, in two strata of two sampling units."""
    return seven.with_columns(c=pl.Series([1, 1, 2, 2, 3, 3, 4]), h=pl.Series([1] * 4 + [2] * 3))


@pytest.fixture
def survey() -> pl.DataFrame:
    """Rows of 12 strata with three units each; half of the units have no rows of group b."""
    random = np.random.default_rng(1965)
    rows = 700
    stratum, unit = random.integers(0, 12, rows), random.integers(0, 3, rows)
    y = random.random(rows) < 0.4
    score = np.round(random.normal(size=rows) + 1.1 * y + 0.3 * unit, 1)
    in_b = (unit + stratum) % 2 == 0
    group = np.where(in_b & (random.random(rows) < 0.3), "b", "a")
    weight = random.lognormal(size=rows)
    return pl.DataFrame(
        {"h": stratum, "c": unit, "y": y.astype(int), "s": score, "w": weight, "g": group}
    )


def test_example_by_hand(sampled: pl.DataFrame) -> None:
    found = summary_of(sampled, "y", "s", **SAMPLE).row(0, named=True)
    assert found["auc"] == pytest.approx(0.575, rel=1e-12)
    assert found["auc_se"] ** 2 == pytest.approx(0.00888125, rel=1e-12)
    assert found["deff"] == pytest.approx(0.10302, abs=5e-6)
    assert (found["df"], found["df_segment"]) == (2, 2)
    limits = found["auc_low"], found["auc_high"]
    assert limits == pytest.approx((0.19439, 0.87387), abs=5e-6)


def test_other_methods_use_students_quantile(sampled: pl.DataFrame) -> None:
    se, quantile = math.sqrt(0.00888125), stats.t.ppf(0.95, 2)
    wald = summary_of(sampled, "y", "s", **SAMPLE, method="delong", level=0.9).row(0, named=True)
    assert wald["auc_high"] == pytest.approx(0.575 + quantile * se, rel=1e-9)
    found = summary_of(sampled, "y", "s", **SAMPLE, method="logit", level=0.9)
    expected = special.expit(special.logit(0.575) - quantile * se / (0.575 * 0.425))
    assert found["auc_low"].item() == pytest.approx(expected, rel=1e-9)


@given(SURVEYS, st.booleans(), st.sampled_from(["certainty", "adjust"]))
def test_variance_is_that_of_the_totals_of_units(
    rows: list[Row], corrected: bool, lonely: Any
) -> None:
    inside = [row for row in rows if row.weight > 0]
    assume(of_both_classes(inside))
    fractions = {0: 0.25, 1: 0.5, 2: 0.0} if corrected else {}
    frame = survey_frame(rows)
    fpc = pl.col("h").replace_strict({0: 0.25, 1: 0.5, 2: 0.0}) if corrected else None
    found = summary_of(
        frame,
        "y",
        "s",
        **(SAMPLE | {"design": wroc.Survey("c", strata="h", fpc=fpc, lonely=lonely)}),
    ).row(0, named=True)
    auc, influences = auc_influences(inside)
    z, units = totals(inside, influences), {row.psu for row in rows}
    expected = covariance(z, z, units, fractions, adjust=lonely == "adjust")
    assert found["auc"] == pytest.approx(auc, abs=1e-12)
    assert found["auc_se"] ** 2 == pytest.approx(expected, abs=1e-13)
    assert found["df"] == auc_degrees_of_freedom(inside, units)
    present = {row.psu for row in inside}
    assert found["df_segment"] == len(present) - len({row.stratum for row in inside})


@given(SURVEYS)
def test_without_clusters_each_row_is_a_unit(rows: list[Row]) -> None:
    numbered = [row._replace(unit=i) for i, row in enumerate(rows)]
    inside = [row for row in numbered if row.weight > 0]
    # A class in one row has no variance.
    assume(min(sum(row.label == label for row in inside) for label in (0, 1)) > 1)
    options: dict[str, Any] = {"weight": "w", "design": wroc.Survey(strata="h", lonely="certainty")}
    found = summary_of(survey_frame(rows), "y", "s", **options)
    _, influences = auc_influences(inside)
    z = totals(inside, influences)
    expected = covariance(z, z, {row.psu for row in numbered})
    assert found["auc_se"].item() ** 2 == pytest.approx(expected, abs=1e-13)


def test_units_of_other_groups_count(survey: pl.DataFrame) -> None:
    plan = summary_of(survey.lazy(), "y", "s", by="g", **SAMPLE)
    units = {row.psu for row in rows_of(survey)}
    for found in plan.collect().rows(named=True):
        rows = rows_of(survey.filter(g=found["g"]))
        z = totals(rows, auc_influences(rows)[1])
        assert found["auc_se"] ** 2 == pytest.approx(covariance(z, z, units), rel=1e-10)
        assert found["df"] == auc_degrees_of_freedom(rows, units)
        alone = summary_of(
            survey.filter(g=found["g"]),
            "y",
            "s",
            **(SAMPLE | {"design": wroc.Survey("c", strata="h", lonely="certainty")}),
        )
        if found["g"] == "b":
            assert alone["auc_se"].item() != pytest.approx(found["auc_se"], rel=1e-3)


def test_rows_that_are_missing_or_weigh_nothing_count_as_units(sampled: pl.DataFrame) -> None:
    nothing = pl.DataFrame(
        {
            "s": [None, 0.5, 0.5],
            "y": [1, None, 1],
            "w": [1.0, 1.0, 0.0],
            "c": [5, 6, 7],
            "h": [1] * 3,
        }
    )
    found = summary_of(pl.concat([sampled, nothing]), "y", "s", **SAMPLE).row(0, named=True)
    z = {1: (-0.02375, -0.05875, 0.0, 0.0, 0.0), 2: (-0.0025, 0.085)}
    expected = sum(len(values) * np.var(values, ddof=1) for values in z.values())
    assert found["auc_se"] ** 2 == pytest.approx(expected, rel=1e-10)
    assert (found["df"], found["df_segment"], found["n"]) == (3, 2, 7)


def test_each_model_has_its_variance(survey: pl.DataFrame) -> None:
    two = survey.with_columns(t=-pl.col("s").round(0))
    found = summary_of(two, "y", ["t", "s"], **SAMPLE)
    bare = [summary_of(two, "y", score, **SAMPLE) for score in ("t", "s")]
    assert_frame_equal(found.drop("model"), pl.concat(bare), rel_tol=1e-9)


def test_a_lonely_unit_leaves_the_variance_unknown(sampled: pl.DataFrame) -> None:
    lonely = sampled.with_columns(h=pl.when(pl.col("c") == 4).then(3).otherwise("h"))
    found = summary_of(lonely, "y", "s", **SAMPLE).row(0, named=True)
    assert found["auc"] == pytest.approx(0.575)
    names = ("auc_se", "auc_low", "auc_high", "ci_method", "deff")
    assert [found[name] for name in names] == [None] * len(names)
    assert found["ci_note"] == "a stratum has one sampling unit"
    for method in ("logit", "delong"):
        other = summary_of(lonely, "y", "s", **SAMPLE, method=method).row(0, named=True)
        assert (other["auc_low"], other["ci_note"]) == (None, found["ci_note"])
    # Both strata that the unit was moved between have one.
    certain = pl.when(pl.col("h") > 1).then(1.0).otherwise(0.0)
    by_fpc = summary_of(
        lonely, "y", "s", **(SAMPLE | {"design": wroc.Survey("c", strata="h", fpc=certain)})
    )
    by_option = summary_of(
        lonely, "y", "s", **(SAMPLE | {"design": wroc.Survey("c", strata="h", lonely="certainty")})
    )
    assert_frame_equal(by_fpc, by_option)
    assert by_fpc["auc_se"].item() > 0


def test_one_class_has_no_variance(sampled: pl.DataFrame) -> None:
    found = summary_of(
        sampled.filter(y=1),
        "y",
        "s",
        **(SAMPLE | {"design": wroc.Survey("c", strata="h", lonely="adjust")}),
    )
    assert found.select("auc", "auc_se", "auc_low", "deff", "ci_note").row(0) == (None,) * 5


def test_population_sizes_are_fractions(survey: pl.DataFrame) -> None:
    sizes = survey.with_columns(n=3 * (pl.col("h") + 2))
    by_size = summary_of(
        sizes, "y", "s", **(SAMPLE | {"design": wroc.Survey("c", strata="h", fpc="n")})
    )
    by_fraction = summary_of(
        sizes,
        "y",
        "s",
        **(SAMPLE | {"design": wroc.Survey("c", strata="h", fpc=1 / (pl.col("h") + 2))}),
    )
    assert_frame_equal(by_size, by_fraction)
    decimals = sizes.with_columns(pl.col("n").cast(pl.Decimal(38, 1)))
    assert_frame_equal(
        summary_of(
            decimals, "y", "s", **(SAMPLE | {"design": wroc.Survey("c", strata="h", fpc="n")})
        ),
        by_size,
    )
    bare = summary_of(sizes, "y", "s", **SAMPLE)
    assert by_size["auc_se"].item() < bare["auc_se"].item()


@pytest.mark.parametrize(
    ("fpc", "message"),
    [
        # Of several strata any may be named.
        (pl.col("c") / 4, r"must be the same number in all rows of a stratum; found 0\.[27]5 to "),
        (pl.lit(-1.0), "must be zero or more; found -1.0$"),
        (
            pl.lit(1.5),
            r"above 1 must be the number of units .*, at least those sampled; found 1\.5, with \d",
        ),
        (pl.when(pl.col("c") > 1).then(0.5), "must be a number in all rows; found null$"),
        (
            pl.when(pl.col("c") > 1).then(0.5).otherwise(float("nan")),
            "must be a number in all rows; found NaN$",
        ),
    ],
)
def test_population_corrections_outside_their_range_are_refused(
    sampled: pl.DataFrame, fpc: pl.Expr, message: str
) -> None:
    with pytest.raises(ValueError, match=f"`fpc` {message}"):
        summary_of(
            sampled, "y", "s", **(SAMPLE | {"design": wroc.Survey("c", strata="h", fpc=fpc)})
        )


def test_corrections_that_vary_need_strata(sampled: pl.DataFrame) -> None:
    fpc = pl.when(pl.col("h") == pl.col("h").first()).then(0.25).otherwise(0.5)
    summary_of(sampled, "y", "s", **(SAMPLE | {"design": wroc.Survey("c", strata="h", fpc=fpc)}))
    message = r"^`fpc` must be .* in all rows, as `strata` is not given; found 0\.25 to 0\.5$"
    with pytest.raises(ValueError, match=message):
        summary_of(sampled, "y", "s", weight="w", design=wroc.Survey("c", fpc=fpc))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bins": 20}, "must be None with `bins`, which keeps .*; found a survey$"),
    ],
)
def test_summary_refuses_options_that_do_not_go_with_a_survey(
    sampled: pl.DataFrame, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        summary_of(sampled, "y", "s", **(SAMPLE | options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lonely": "adjust"}, "`lonely` must be 'null' without `strata`; found 'adjust'"),
        (
            {"strata": "h", "lonely": "remove"},
            r"^`lonely` must be one of .*; found 'remove'; did you mean 'certainty'\?$",
        ),
    ],
)
def test_a_survey_refuses_wrong_columns_and_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wroc.Survey("c", **options)


def test_stages_and_several_strata_are_refused(sampled: pl.DataFrame) -> None:
    stages: Any = ["c", "h"]
    for argument, read in (
        ("cluster", lambda: wroc.Survey(stages)),
        ("design", lambda: summary_of(sampled, "y", "s", design=stages)),
    ):
        message = rf"^`{argument}` must be one column: pass the first stage only, .*; found \['c', "
        with pytest.raises(TypeError, match=message):
            read()
    with pytest.raises(TypeError, match=r"^`strata` must be one column .*pl\.struct\("):
        wroc.Survey("c", strata=stages)
    both = wroc.Survey(strata=pl.struct("h", "c"), lonely="certainty")
    assert summary_of(sampled, "y", "s", design=both).height == 1


def test_what_is_no_design(sampled: pl.DataFrame) -> None:
    message = "`design` must be a column of clusters, a `Survey` or `ReplicateWeights`; found 3"
    with pytest.raises(TypeError, match=message):
        summary_of(sampled, "y", "s", design=3)  # type: ignore[arg-type]


def test_text_is_no_correction(sampled: pl.DataFrame) -> None:
    with pytest.raises(TypeError, match=r"^`fpc` must be numeric; found"):
        summary_of(
            sampled.with_columns(n=pl.lit("a")),
            "y",
            "s",
            **(SAMPLE | {"design": wroc.Survey("c", strata="h", fpc="n")}),
        )
