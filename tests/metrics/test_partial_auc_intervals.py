"""Partial AUCs of groups: those of the expression, with intervals, and by a survey's design."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from partial_areas import AREA_COLUMNS, summarise_area
from plain_survey import SAMPLE, covariance
from polars.testing import assert_frame_equal
from sweeps import sweep

import polars_wroc as wroc

RANGES: list[dict[str, Any]] = [{"fpr": (0.0, 0.3)}, {"tpr": (0.7, 1.0)}, {"fpr": (0.0, 1.0)}]


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


@pytest.mark.parametrize("area", [*RANGES, {"fpr": (0.1, 0.5)}, {"tpr": (0.4, 0.8)}])
@pytest.mark.parametrize("standardize", [False, True, "mean"])
def test_areas_are_those_of_the_expression(
    survey: pl.DataFrame, area: dict[str, Any], standardize: Any
) -> None:
    frame = survey.with_columns(s=pl.when(pl.int_range(pl.len()) % 9 > 0).then("s"))
    part = wroc.PartialAUC(**area, standardize=standardize)
    found = wroc.summary(frame, "y", "s", by="g", weight="w", areas={"part": part})
    options = {"standardize": standardize, "weight": "w", **area}
    expected = frame.group_by("g").agg(wroc.partial_auc("y", "s", **options)).sort("g")
    assert found["part"].to_list() == pytest.approx(expected["partial_auc"].to_list(), rel=1e-12)


@pytest.mark.parametrize("standardize", [False, True, "mean"])
@pytest.mark.parametrize("ranges", [((0.0, 0.5), (0.5, 1.0)), ((0.6, 0.9), (0.1, 0.3))])
@pytest.mark.parametrize("decimals", [0, 9])
def test_an_area_over_both_rates_has_no_limits(
    survey: pl.DataFrame,
    ranges: tuple[tuple[float, float], ...],
    standardize: Any,
    decimals: int,
) -> None:
    survey = survey.with_columns(pl.col("s").round(decimals))
    fpr, tpr = ranges
    part = wroc.PartialAUC(fpr=fpr, tpr=tpr, standardize=standardize)
    found = wroc.summary(survey, "y", "s", weight="w", areas={"part": part}).row(0, named=True)
    given: dict[str, Any] = {"fpr": fpr, "tpr": tpr, "standardize": standardize}
    expected = survey.select(wroc.partial_auc("y", "s", weight="w", **given)).item()
    one_class = wroc.summary(survey.filter(y=1), "y", "s", weight="w", areas={"part": part})
    assert one_class["part"].item() is None
    # There is no McClish's area where a random score has the area of a perfect one.
    assert found["part"] == (expected and pytest.approx(expected, rel=1e-12))
    assert [found[f"part_{name}"] for name in ("se", "low", "high")] == [None] * 3


def test_a_standardized_area_has_standardized_limits(survey: pl.DataFrame) -> None:
    areas = {
        "plain": wroc.PartialAUC(fpr=(0.0, 0.3)),
        "mean": wroc.PartialAUC(fpr=(0.0, 0.3), standardize="mean"),
        "mcclish": wroc.PartialAUC(fpr=(0.0, 0.3), standardize=True),
    }
    found = wroc.summary(survey, "y", "s", weight="w", areas=areas, bins=20).row(0, named=True)
    for end in ("", "_low", "_high", "_min", "_max"):
        plain = found[f"plain{end}"]
        assert found[f"mean{end}"] == pytest.approx(plain / 0.3)
        assert found[f"mcclish{end}"] == pytest.approx((1 + (plain - 0.045) / 0.255) / 2)
    exact = survey.select(wroc.partial_auc("y", "s", weight="w", fpr=(0.0, 0.3))).item()
    assert found["plain_min"] < exact < found["plain_max"]
    assert found["mean_se"] == pytest.approx(found["plain_se"] / 0.3)
    assert found["mcclish_se"] == pytest.approx(found["plain_se"] / 0.51)


def test_areas_follow_the_columns_of_the_curve(survey: pl.DataFrame) -> None:
    areas = {name: wroc.PartialAUC(fpr=(0.0, end)) for name, end in (("a", 0.1), ("b", 0.2))}
    found = wroc.summary(survey, "y", "s", areas=areas, bins=20, diagnostics=True).columns
    parts = [
        f"{name}{end}" for name in "ab" for end in ("", "_low", "_high", "_se", "_min", "_max")
    ]
    assert found[found.index("ks") :][:14] == ["ks", *parts, "n"]


@pytest.mark.parametrize("area", sweep(RANGES))
def test_standard_error_by_the_definition(survey: pl.DataFrame, area: dict[str, Any]) -> None:
    """The influence of a unit is the derivative of the area by a factor of all its weights."""
    found = summarise_area(survey, by="g", **SAMPLE, **area)
    units = {(h, c) for h, c in survey.select("h", "c").iter_rows()}
    small = 1e-6

    def measure(inside: pl.DataFrame, unit: tuple[int, int], factor: float) -> float:
        own = (pl.col("h") == unit[0]) & (pl.col("c") == unit[1])
        weight = pl.col("w") * pl.when(own).then(factor).otherwise(1.0)
        value: float = inside.select(wroc.partial_auc("y", "s", weight=weight, **area)).item()
        return value

    for g, se in found.select("g", "partial_auc_se").iter_rows():
        inside = survey.filter(g=g)
        of_units = {
            unit: (measure(inside, unit, 1 + small) - measure(inside, unit, 1 - small))
            / (2 * small)
            for unit in units
        }
        expected = math.sqrt(covariance(of_units, of_units, units))
        assert se == pytest.approx(expected, rel=1e-4)


def test_the_whole_area_is_the_auc(survey: pl.DataFrame) -> None:
    found = summarise_area(survey, by="g", fpr=(0.0, 1.0), **SAMPLE)
    limits = {f"partial_auc_{end}": f"auc_{end}" for end in ("se", "low", "high")}
    columns = [*limits.values(), "n_eff_pos", "n_eff_neg", "deff", "df", "df_segment"]
    expected = wroc.summary(survey, "y", "s", by="g", **SAMPLE, diagnostics=True)
    assert_frame_equal(found.rename(limits).select(columns), expected.select(columns))


def test_a_group_of_missing_rows_is_there(survey: pl.DataFrame) -> None:
    frame = survey.with_columns(s=pl.when(pl.col("g") != "b").then("s"))
    for options in ({"weight": "w"}, {"weight": "w", "design": "c"}, SAMPLE):
        given: dict[str, Any] = {"by": "g", "fpr": (0.0, 0.3), **options}
        found = summarise_area(frame, **given)
        alone = summarise_area(frame.filter(g="a"), **given)
        assert_frame_equal(found.filter(g="a"), alone, check_exact=False)
        values = found.select(AREA_COLUMNS)
        assert values.row(1) == (None,) * values.width


@pytest.mark.parametrize("options", [{}, SAMPLE])
def test_mixed_labels_are_refused(survey: pl.DataFrame, options: dict[str, Any]) -> None:
    mixed = survey.with_columns(y=pl.when(y=0).then(-(pl.int_range(pl.len()) % 2)).otherwise("y"))
    with pytest.raises(ValueError, match=r"`label` must hold 0 and 1 or -1 and 1; it"):
        summarise_area(mixed, fpr=(0.0, 0.3), **options)


@pytest.mark.parametrize(
    ("areas", "error", "message"),
    [
        (wroc.PartialAUC(fpr=(0, 0.1)), TypeError, "`areas` must map names of columns to"),
        (
            {"early": (0, 0.1)},
            TypeError,
            "`areas` must map names of columns to `PartialAUC`; found",
        ),
        (
            {"__early": wroc.PartialAUC(fpr=(0, 0.1))},
            ValueError,
            "must have names that do not start",
        ),
        ({"auc": wroc.PartialAUC(fpr=(0, 0.1))}, ValueError, "of a result column; found 'auc'"),
        ({"w_pos": wroc.PartialAUC(fpr=(0, 0.1))}, ValueError, "of a result column; found 'w_pos'"),
    ],
)
def test_areas_have_names_and_ranges(
    survey: pl.DataFrame, areas: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        wroc.summary(survey, "y", "s", areas=areas)


def test_a_group_column_must_not_have_the_name_of_an_area(survey: pl.DataFrame) -> None:
    areas = {"g": wroc.PartialAUC(fpr=(0, 0.1))}
    with pytest.raises(ValueError, match="`by` must not take the name of a result column"):
        wroc.summary(survey, "y", "s", by="g", areas=areas)
