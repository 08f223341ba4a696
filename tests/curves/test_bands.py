"""Bands around curves: against plain interpolation and closed forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_roc import (
    FRAMES,
    WEIGHT_TYPES,
    Pair,
    Roc,
    binormal,
    pointwise,
    roc_of,
    true_tpr,
    weight_as,
)
from polars.testing import assert_frame_equal

import polars_wroc as wroc

Kind: TypeAlias = Literal["pointwise", "simultaneous"]

KINDS: tuple[Kind, ...] = ("pointwise", "simultaneous")

CURVE = ["threshold", "fpr", "tpr", "tp", "fp", "fn", "tn"]
LIMITS = ["tpr_low", "tpr_high"]
ONE_SIDED = "one_sided"


def simultaneous(roc: Roc, fpr: float, tpr: float, level: float = 0.95) -> Pair:  # noqa: ARG001
    """The curve moved by what each empirical distribution may be off, DKW with its constant."""
    error = 1 - np.sqrt(level)
    up, aside = (np.sqrt(np.log(2 / error) / (2 * n)) for n in (roc.positives, roc.negatives))
    low = roc.tpr_at(fpr - aside) - up if fpr >= aside else 0.0
    return max(0.0, low), min(1.0, roc.tpr_at(min(fpr + aside, 1.0)) + up)


BANDS = {"pointwise": pointwise, "simultaneous": simultaneous}


def drawn(frame: pl.DataFrame, kind: Kind, **options: Any) -> pl.DataFrame:
    return wroc.roc_curve(frame, "y", "s", band=kind, **{"weight": "w", **options})


def assert_follows(
    table: pl.DataFrame, roc: Roc, kind: Kind, level: float = 0.95, tolerance: float = 1e-9
) -> None:
    """Check the band at every row of a curve's table."""
    found = table.select(LIMITS).to_numpy()
    rates = table.select("fpr", "tpr").rows()
    expected = [BANDS[kind](roc, fpr, tpr, level) for fpr, tpr in rates]
    assert found == pytest.approx(np.array(expected), abs=tolerance)


@given(FRAMES, st.sampled_from(KINDS), st.sampled_from(WEIGHT_TYPES), st.floats(0.3, 0.999))
def test_bands_follow_their_definition(
    frame: pl.DataFrame, kind: Kind, weight_type: Any, level: float
) -> None:
    table = drawn(frame, kind, level=level, weight=weight_as("w", weight_type))
    roc = roc_of(frame, weight_type)
    assert table.select("fpr", "tpr").to_numpy() == pytest.approx(np.c_[roc.fpr, roc.tpr])
    assert_follows(table, roc, kind, level)


@given(FRAMES, st.floats(0.05, 0.999))
def test_simultaneous_band_holds_the_pointwise_one_and_that_the_curve(
    frame: pl.DataFrame, level: float
) -> None:
    # Wilson's limits are at most z / (2 sqrt(n)) away, and exp(-z**2 / 2) bounds the tail.
    inner, outer = (drawn(frame, kind, level=level, weight=None) for kind in KINDS)
    ladder = np.stack([np.zeros(inner.height), outer["tpr_low"], inner["tpr_low"], inner["tpr"]])
    assert (np.diff(ladder, axis=0) >= -1e-12).all()
    ladder = np.stack([inner["tpr"], inner["tpr_high"], outer["tpr_high"], np.ones(inner.height)])
    assert (np.diff(ladder, axis=0) >= -1e-12).all()


@pytest.mark.parametrize("kind", KINDS)
def test_bands_of_groups(
    grouped: pl.DataFrame,
    named_groups: dict[str | None, pl.DataFrame],
    kind: Kind,
) -> None:
    plan = wroc.roc_curve(grouped.lazy(), "y", "s", weight="w", by="g", band=kind)
    table = plan.collect()
    assert table["g"].unique(maintain_order=True).to_list() == list(named_groups)
    for key, frame in named_groups.items():
        own = table.filter(pl.col("g").eq_missing(key))
        assert own["threshold"].to_list() == [np.inf, *sorted(set(frame["s"]), reverse=True)]
        assert_follows(own, roc_of(frame), kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("thinning", "fewer"),
    [
        ({"drop_collinear": True}, 5),
        ({"max_points": 9}, 100),
        ({"drop_collinear": True, "max_points": 9}, 100),
    ],
)
def test_points_kept_keep_their_limits(
    grouped: pl.DataFrame, kind: Kind, thinning: dict[str, Any], fewer: int
) -> None:
    options: dict[str, Any] = {"weight": "w", "by": "g", "band": kind}
    whole = wroc.roc_curve(grouped, "y", "s", **options)
    thin = wroc.roc_curve(grouped.lazy(), "y", "s", **options, **thinning).collect()
    assert thin.height <= whole.height - fewer
    there = whole.join(thin, on=["g", "threshold"], how="semi", nulls_equal=True)
    assert_frame_equal(thin.drop("auc_change", strict=False), there, rel_tol=1e-12)


@pytest.mark.parametrize("kind", [*KINDS, None])
@pytest.mark.parametrize("max_points", [5, None])
def test_columns_are_in_a_fixed_order(grouped: pl.DataFrame, kind: Any, max_points: Any) -> None:
    table = wroc.roc_curve(grouped, "y", "s", by="g", band=kind, max_points=max_points)
    change = ["auc_change"] if max_points else []
    flags = [ONE_SIDED] if kind == "pointwise" else []
    assert table.columns == ["g", *CURVE, *change, *(LIMITS if kind else []), *flags]
    assert set(table.drop("g", *flags).dtypes) == {pl.Float64}
    assert table.select(flags).dtypes == [pl.Boolean] * len(flags)


def test_flag_follows_the_bounds_of_binned_scores(grouped: pl.DataFrame) -> None:
    table = wroc.roc_curve(grouped, "y", "s", by="g", band="pointwise", bins=16)
    assert table.columns == ["g", *CURVE, *LIMITS, "auc_min", "auc_max", ONE_SIDED]
    # Of the binned curve, so that 0 is a limit where the flag says so.
    assert (table.filter(ONE_SIDED)["tpr_low"] == 0).all()
    assert table[ONE_SIDED].any()
    assert not table[ONE_SIDED].all()


@pytest.mark.parametrize("kind", KINDS)
def test_band_changes_nothing_else(grouped: pl.DataFrame, kind: Kind) -> None:
    options: dict[str, Any] = {"weight": "w", "by": "g", "max_points": 9}
    plain = wroc.roc_curve(grouped, "y", "s", **options)
    banded = wroc.roc_curve(grouped, "y", "s", band=kind, **options)
    assert_frame_equal(banded.drop(*LIMITS, ONE_SIDED, strict=False), plain)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("label", [0, 1])
def test_group_of_one_class_has_no_limits(grouped: pl.DataFrame, kind: Kind, label: int) -> None:
    frame = grouped.filter((pl.col("g") != "b") | (pl.col("y") == label))
    plan = wroc.roc_curve(frame.lazy(), "y", "s", weight="w", by="g", band=kind)
    table = plan.collect()
    assert table.filter(g="b").height > 3
    assert set(table.filter(g="b").select(LIMITS).rows()) == {(None, None)}
    whole = drawn(frame.filter(g="c"), kind)
    assert_frame_equal(table.filter(g="c").drop("g"), whole, rel_tol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_infinite_scores_are_ranks(kind: Kind) -> None:
    finite = pl.DataFrame({"y": [1, 0, 1, 0], "s": [4.0, 3.0, 2.0, 1.0], "w": 1.0})
    infinite = finite.with_columns(s=pl.Series([np.inf, 3.0, 2.0, -np.inf]))
    limits = [drawn(frame, kind).select(LIMITS) for frame in (finite, infinite)]
    assert_frame_equal(limits[0], limits[1])


def test_simultaneous_band_covers_the_whole_curve() -> None:
    table = wroc.roc_curve(binormal(200, 50, 100, 12), "y", "s", by="g", band="simultaneous")
    truth = true_tpr(table["fpr"].to_numpy())
    inside = (table["tpr_low"] <= truth + 1e-12) & (table["tpr_high"] >= truth - 1e-12)
    covered: Sequence[bool] = (
        table.select("g", inside=inside).group_by("g").agg(pl.col("inside").all())["inside"]
    ).to_list()
    assert np.mean(covered) >= 0.95
