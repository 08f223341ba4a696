"""Intervals of partial AUCs of groups: those of the expression, and by the design of a survey."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import polars as pl
import pytest
from plain_survey import Row, covariance, totals
from polars.exceptions import InvalidOperationError
from polars.testing import assert_frame_equal
from sweeps import sweep

import polars_wroc as wroc

Engine = Literal["in-memory", "streaming"]
RANGES: list[dict[str, Any]] = [{"fpr": (0.0, 0.3)}, {"tpr": (0.7, 1.0)}, {"fpr": (0.0, 1.0)}]
PARTIAL_VALUES = [
    "partial_auc",
    "partial_auc_se",
    "partial_auc_low",
    "partial_auc_high",
    "ci_method",
]
SAMPLE: dict[str, Any] = {"weight": "w", "design": wroc.Survey("c", strata="h")}


@pytest.fixture(scope="module")
def survey() -> pl.DataFrame:
    """Eight strata of three units, and two groups with rows in most of them."""
    random = np.random.default_rng(8)
    rows = 240
    stratum, unit = random.integers(0, 8, rows), random.integers(0, 3, rows)
    shared = random.normal(size=(8, 3))[stratum, unit]
    y = random.random(rows) < 0.4
    columns = {
        "h": stratum,
        "c": unit,
        "g": random.choice(list("ab"), rows),
        "y": y.astype(int),
        "s": random.normal(size=rows) + (1.2 + 0.7 * shared) * y,
        "w": random.lognormal(sigma=0.5, size=rows),
    }
    return pl.DataFrame(columns)


def of_groups(frame: pl.DataFrame, **options: Any) -> pl.DataFrame:
    interval = wroc.partial_auc_ci("y", "s", weight="w", **options)
    return frame.group_by("g").agg(interval).unnest("partial_auc_ci").sort("g")


@pytest.mark.parametrize("area", RANGES)
@pytest.mark.parametrize("clustered", [False, True])
def test_the_same_as_the_expression(
    survey: pl.DataFrame, area: dict[str, Any], clustered: bool
) -> None:
    frame = survey.with_columns(s=pl.when(pl.int_range(pl.len()) % 9 > 0).then("s"))
    options = {"level": 0.9, **area, **({"design": "c"} if clustered else {})}
    found = wroc.partial_auc_summary(frame, "y", "s", by="g", weight="w", **options)
    assert_frame_equal(found, of_groups(frame, **options))
    plain = wroc.partial_auc_summary(frame, "y", "s", by="g", weight="w", **area)
    assert found["partial_auc"].to_list() == pytest.approx(plain["partial_auc"].to_list())


def test_of_all_rows(survey: pl.DataFrame) -> None:
    found = wroc.partial_auc_summary(survey, "y", "s", fpr=(0.0, 0.3), weight="w", level=0.95)
    expected = survey.select(wroc.partial_auc_ci("y", "s", fpr=(0.0, 0.3), weight="w"))
    assert_frame_equal(found, expected.unnest("partial_auc_ci"))


@pytest.mark.slow
@pytest.mark.parametrize("area", sweep(RANGES))
def test_standard_error_by_the_definition(survey: pl.DataFrame, area: dict[str, Any]) -> None:
    """The influence of a row is its weight times the derivative of the area by it."""
    found = wroc.partial_auc_summary(survey, "y", "s", by="g", level=0.95, **SAMPLE, **area)
    units = {(h, c) for h, c in survey.select("h", "c").iter_rows()}
    for g, se in found.select("g", "partial_auc_se").iter_rows():
        inside = survey.filter(g=g)
        steps = pl.int_range(pl.len())
        small = 1e-6
        changed = [
            inside.select(
                wroc.partial_auc(
                    "y",
                    "s",
                    weight=pl.col("w") * (1 + pl.when(steps == i).then(sign * small).otherwise(0)),
                    **area,
                )
            ).item()
            for i in range(inside.height)
            for sign in (1, -1)
        ]
        influences = (np.array(changed[::2]) - np.array(changed[1::2])) / (2 * small)
        rows = [Row(*row) for row in inside.select("h", "c", "y", "s", "w").iter_rows()]
        of_units = totals(rows, [float(each) for each in influences])
        expected = math.sqrt(covariance(of_units, of_units, units))
        assert se == pytest.approx(expected, rel=1e-4)


def test_the_whole_area_is_the_auc(survey: pl.DataFrame) -> None:
    found = wroc.partial_auc_summary(survey, "y", "s", by="g", fpr=(0.0, 1.0), level=0.95, **SAMPLE)
    limits = {f"partial_auc_{end}": f"auc_{end}" for end in ("se", "low", "high")}
    columns = [*limits.values(), "n_eff_pos", "n_eff_neg", "deff", "df", "df_segment"]
    expected = wroc.summary(survey, "y", "s", by="g", **SAMPLE, diagnostics=True)
    assert_frame_equal(found.rename(limits).select(columns), expected.select(columns))


def test_a_group_of_missing_rows_is_there(survey: pl.DataFrame) -> None:
    frame = survey.with_columns(s=pl.when(pl.col("g") != "b").then("s"))
    for options in ({"weight": "w"}, {"weight": "w", "design": "c"}, SAMPLE):
        given: dict[str, Any] = {"by": "g", "fpr": (0.0, 0.3), "level": 0.95, **options}
        found = wroc.partial_auc_summary(frame, "y", "s", **given)
        alone = wroc.partial_auc_summary(frame.filter(g="a"), "y", "s", **given)
        assert_frame_equal(found.filter(g="a"), alone, check_exact=False)
        values = found.select(PARTIAL_VALUES)
        assert values.row(1) == (None,) * values.width


@pytest.mark.parametrize("options", [{}, SAMPLE])
def test_mixed_labels_are_refused(survey: pl.DataFrame, options: dict[str, Any]) -> None:
    mixed = survey.with_columns(y=pl.when(y=0).then(-(pl.int_range(pl.len()) % 2)).otherwise("y"))
    with pytest.raises(InvalidOperationError, match=r"`label` must hold 0 and 1 or -1 and 1; it"):
        wroc.partial_auc_summary(mixed, "y", "s", fpr=(0.0, 0.3), level=0.95, **options)


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_lazily(survey: pl.DataFrame, engine: Engine) -> None:
    given: dict[str, Any] = {"by": "g", "tpr": (0.7, 1.0), "level": 0.95, **SAMPLE}
    expected = wroc.partial_auc_summary(survey, "y", "s", **given)
    lazy = wroc.partial_auc_summary(survey.lazy(), "y", "s", **given)
    assert_frame_equal(lazy.collect(engine=engine), expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"fpr": (0, 0.5), "level": 0.9, "bins": 64},
            "`standardize`, `bins` and `tolerance` must not be .* `level`; found `bins`$",
        ),
        ({"fpr": (0, 0.5), "level": 0.9, "standardize": True}, "found `standardize`$"),
        # Checked also where there are no intervals.
        ({"tpr": (0.5, 1), "method": "nonsense"}, "`method` must be one of .*; found 'nonsense'"),
        (
            {"fpr": (0, 0.5), "design": wroc.Survey(strata="h")},
            "`level` must be given with `design`; found None",
        ),
        ({"fpr": (0, 0.5), "tpr": (0, 1), "level": 0.9}, "`fpr` or `tpr` must be given, not both"),
        ({"fpr": (0, 0.5), "level": 2}, "`level`"),
    ],
)
def test_wrong_arguments(survey: pl.DataFrame, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wroc.partial_auc_summary(survey, "y", "s", **options)
