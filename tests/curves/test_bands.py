"""Bands around curves, and rates at rates: against plain interpolation and closed forms."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from scipy import stats

import polars_wroc as wroc

Engine: TypeAlias = Any
Floats: TypeAlias = npt.NDArray[np.float64]
Pair: TypeAlias = tuple[float, float]
Row: TypeAlias = tuple[bool, int, int]
Kind: TypeAlias = Literal["pointwise", "simultaneous"]

KINDS: tuple[Kind, ...] = ("pointwise", "simultaneous")
WEIGHT_TYPES = ("probability", "frequency")
CURVE = ["threshold", "fpr", "tpr", "tp", "fp", "fn", "tn"]
LIMITS = ["tpr_low", "tpr_high"]


class Roc(NamedTuple):
    """Every point of a ROC curve, from (0, 0) on, and the sizes of the two classes."""

    fpr: Floats
    tpr: Floats
    positives: float
    negatives: float

    def tpr_at(self, fpr: float) -> float:
        """On the straight line between two points; on a vertical step, its top."""
        return height(fpr, self.fpr, self.tpr)

    def fpr_at(self, tpr: float) -> float:
        """On the straight line between two points; on a level step, its left end."""
        return 1 - height(1 - tpr, 1 - self.tpr[::-1], 1 - self.fpr[::-1])

    def turned(self) -> Roc:
        """The curve with its axes exchanged."""
        return Roc(self.tpr, self.fpr, self.negatives, self.positives)


def height(x: float, xs: Floats, ys: Floats) -> float:
    """Where a rising line through points is at ``x``; the highest place on a vertical step."""
    before = max(i for i, place in enumerate(xs) if place <= x)
    if xs[before] == x:
        return float(ys[before])
    share = (x - xs[before]) / (xs[before + 1] - xs[before])
    return float(ys[before] + share * (ys[before + 1] - ys[before]))


def roc_of(frame: pl.DataFrame, weight_type: str = "probability") -> Roc:
    pos, s, w = (frame[name].to_numpy() for name in ("y", "s", "w"))
    sides = [np.where(pos == label, w, 0.0) for label in (1, 0)]
    counts = [[side[s >= t].sum() for t in sorted(set(s), reverse=True)] for side in sides]
    tpr, fpr = (np.array([0.0, *count]) / count[-1] for count in counts)
    sizes = [side.sum() for side in sides]
    if weight_type == "probability":
        sizes = [side.sum() ** 2 / (side**2).sum() for side in sides]
    return Roc(fpr, tpr, *sizes)


def wilson(rate: float, size: float, level: float) -> Pair:
    """The rates that a score test does not reject: the roots of a quadratic equation."""
    extra = stats.norm.ppf((1 + level) / 2) ** 2 / size
    low, high = sorted(np.roots([1 + extra, -2 * rate - extra, rate**2]).real)
    return (0.0 if rate == 0 else float(low)), (1.0 if rate == 1 else float(high))


def mover(rate: float, own: Pair, moved: Pair) -> Pair:
    """Combine what two sources of error each do to a rate."""
    below = np.hypot(rate - own[0], rate - min(moved[0], rate))
    above = np.hypot(own[1] - rate, max(moved[1], rate) - rate)
    return max(0.0, rate - below), min(1.0, rate + above)


def pointwise(roc: Roc, fpr: float, tpr: float, level: float = 0.95) -> Pair:
    """Interval of the true positive rate at a false positive rate."""
    low, high = wilson(fpr, roc.negatives, level)
    moved = roc.tpr_at(low), roc.tpr_at(high)
    return mover(tpr, wilson(tpr, roc.positives, level), moved)


def pointwise_turned(roc: Roc, tpr: float, fpr: float, level: float = 0.95) -> Pair:
    """Interval of the false positive rate at a true positive rate."""
    low, high = wilson(tpr, roc.positives, level)
    moved = roc.fpr_at(low), roc.fpr_at(high)
    return mover(fpr, wilson(fpr, roc.negatives, level), moved)


def simultaneous(roc: Roc, fpr: float, tpr: float, level: float = 0.95) -> Pair:  # noqa: ARG001
    """The curve moved by what each empirical distribution may be off, DKW with its constant."""
    error = 1 - np.sqrt(level)
    up, aside = (np.sqrt(np.log(2 / error) / (2 * n)) for n in (roc.positives, roc.negatives))
    low = roc.tpr_at(fpr - aside) - up if fpr >= aside else 0.0
    return max(0.0, low), min(1.0, roc.tpr_at(min(fpr + aside, 1.0)) + up)


BANDS = {"pointwise": pointwise, "simultaneous": simultaneous}


def frame_of(rows: list[Row]) -> pl.DataFrame:
    y, s, w = zip(*rows, strict=True)
    return pl.DataFrame({"y": [int(v) for v in y], "s": s, "w": [float(v) for v in w]})


FRAMES = (
    st.lists(
        st.tuples(st.booleans(), st.integers(0, 9), st.integers(1, 5)), min_size=4, max_size=30
    )
    .map(frame_of)
    .filter(lambda frame: frame["y"].n_unique() == 2)
)
RATES = st.integers(0, 16).map(lambda k: k / 16)


def drawn(frame: pl.DataFrame, kind: Kind, **options: Any) -> pl.DataFrame:
    return wroc.roc_curve(frame, "y", "s", weight="w", band=kind, **options)


def assert_follows(
    table: pl.DataFrame, roc: Roc, kind: Kind, level: float = 0.95, tolerance: float = 1e-9
) -> None:
    """Check the band at every row of a curve's table."""
    found = table.select(LIMITS).to_numpy()
    rates = table.select("fpr", "tpr").rows()
    expected = [BANDS[kind](roc, fpr, tpr, level) for fpr, tpr in rates]
    assert found == pytest.approx(np.array(expected), abs=tolerance)


@pytest.fixture
def groups(people: pl.DataFrame) -> dict[str | None, pl.DataFrame]:
    """The people of each group; those of d belong to no group that has a name."""
    named = people.with_columns(pl.col("y").cast(pl.Int64), g=pl.when(pl.col("g") != "d").then("g"))
    return {key: named.filter(pl.col("g").eq_missing(key)) for key in (None, "a", "b", "c")}


@pytest.fixture
def grouped(groups: dict[str | None, pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(groups.values()).sample(fraction=1.0, shuffle=True, seed=2)


@settings(max_examples=20)
@given(FRAMES, st.sampled_from(KINDS), st.sampled_from(WEIGHT_TYPES), st.floats(0.3, 0.999))
def test_bands_follow_their_definition(
    frame: pl.DataFrame, kind: Kind, weight_type: Any, level: float
) -> None:
    table = drawn(frame, kind, level=level, weight_type=weight_type)
    roc = roc_of(frame, weight_type)
    assert table.select("fpr", "tpr").to_numpy() == pytest.approx(np.c_[roc.fpr, roc.tpr])
    assert_follows(table, roc, kind, level)


@settings(max_examples=20)
@given(FRAMES, st.floats(0.05, 0.999))
def test_simultaneous_band_holds_the_pointwise_one_and_that_the_curve(
    frame: pl.DataFrame, level: float
) -> None:
    # Wilson's limits are at most z / (2 sqrt(n)) away, and exp(-z**2 / 2) bounds the tail.
    inner, outer = (drawn(frame, kind, level=level) for kind in KINDS)
    ladder = np.stack([np.zeros(inner.height), outer["tpr_low"], inner["tpr_low"], inner["tpr"]])
    assert (np.diff(ladder, axis=0) >= -1e-12).all()
    ladder = np.stack([inner["tpr"], inner["tpr_high"], outer["tpr_high"], np.ones(inner.height)])
    assert (np.diff(ladder, axis=0) >= -1e-12).all()


@settings(max_examples=10)
@given(FRAMES, st.sampled_from(KINDS))
def test_frequencies_are_repeated_rows(frame: pl.DataFrame, kind: Kind) -> None:
    times = pl.col("w").cast(pl.Int64)
    repeated = frame.select(pl.col("y", "s").repeat_by(times).explode(empty_as_null=False))
    found = drawn(frame, kind, weight_type="frequency")
    assert_frame_equal(found, wroc.roc_curve(repeated, "y", "s", band=kind), abs_tol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_bands_of_groups(
    grouped: pl.DataFrame,
    groups: dict[str | None, pl.DataFrame],
    kind: Kind,
    engine: Engine,
) -> None:
    plan = wroc.roc_curve(grouped.lazy(), "y", "s", weight="w", by="g", band=kind)
    table = plan.collect(engine=engine)
    assert table["g"].unique(maintain_order=True).to_list() == list(groups)
    for key, frame in groups.items():
        own = table.filter(pl.col("g").eq_missing(key))
        assert own["threshold"].to_list() == [np.inf, *sorted(set(frame["s"]), reverse=True)]
        assert_follows(own, roc_of(frame), kind)


@pytest.mark.parametrize("kind", KINDS)
def test_bands_of_models_do_not_meet(grouped: pl.DataFrame, kind: Kind) -> None:
    frame = grouped.with_columns(r=-pl.col("s") + pl.col("w").round(1))
    table = wroc.roc_curve(frame, "y", ["s", "r"], weight="w", by="g", band=kind)
    for model in ("s", "r"):
        own = wroc.roc_curve(frame, "y", model, weight="w", by="g", band=kind)
        assert_frame_equal(table.filter(model=model).drop("model"), own, rel_tol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_only_ratios_of_probability_weights_count(grouped: pl.DataFrame, kind: Kind) -> None:
    tables = [
        wroc.roc_curve(grouped, "y", "s", weight=pl.col("w") * k, by="g", band=kind)
        for k in (1.0, 2.0**-30)
    ]
    assert_frame_equal(tables[0].select("g", *LIMITS), tables[1].select("g", *LIMITS))


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
    grouped: pl.DataFrame, kind: Kind, thinning: dict[str, Any], fewer: int, engine: Engine
) -> None:
    options: dict[str, Any] = {"weight": "w", "by": "g", "band": kind}
    whole = wroc.roc_curve(grouped, "y", "s", **options)
    thin = wroc.roc_curve(grouped.lazy(), "y", "s", **options, **thinning).collect(engine=engine)
    assert thin.height <= whole.height - fewer
    there = whole.join(thin, on=["g", "threshold"], how="semi", nulls_equal=True)
    assert_frame_equal(thin.drop("auc_change", strict=False), there, rel_tol=1e-12)


@pytest.mark.parametrize("kind", [*KINDS, None])
@pytest.mark.parametrize("max_points", [5, None])
def test_columns_are_in_a_fixed_order(grouped: pl.DataFrame, kind: Any, max_points: Any) -> None:
    table = wroc.roc_curve(grouped, "y", "s", by="g", band=kind, max_points=max_points)
    change = ["auc_change"] if max_points else []
    assert table.columns == ["g", *CURVE, *change, *(LIMITS if kind else [])]
    assert set(table.dtypes[1:]) == {pl.Float64}


@pytest.mark.parametrize("kind", KINDS)
def test_band_changes_nothing_else(grouped: pl.DataFrame, kind: Kind) -> None:
    options: dict[str, Any] = {"weight": "w", "by": "g", "max_points": 9}
    plain = wroc.roc_curve(grouped, "y", "s", **options)
    banded = wroc.roc_curve(grouped, "y", "s", band=kind, **options)
    assert_frame_equal(banded.drop(LIMITS), plain)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("label", [0, 1])
def test_group_of_one_class_has_no_limits(
    grouped: pl.DataFrame, kind: Kind, label: int, engine: Engine
) -> None:
    frame = grouped.filter((pl.col("g") != "b") | (pl.col("y") == label))
    plan = wroc.roc_curve(frame.lazy(), "y", "s", weight="w", by="g", band=kind)
    table = plan.collect(engine=engine)
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


@pytest.mark.parametrize("kind", KINDS)
def test_lazy_frame_gives_a_plan_that_serialises(
    grouped: pl.DataFrame, kind: Kind, engine: Engine
) -> None:
    options: dict[str, Any] = {"weight": "w", "by": "g", "band": kind}
    plan = wroc.roc_curve(grouped.lazy(), "y", "s", **options)
    assert isinstance(plan, pl.LazyFrame)
    assert "python" not in plan.explain(optimized=False).lower()
    shipped = pl.LazyFrame.deserialize(io.BytesIO(plan.serialize()))
    table = wroc.roc_curve(grouped, "y", "s", **options)
    assert_frame_equal(shipped.collect(engine=engine), table, rel_tol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"band": "both"}, "`band` must be one of 'pointwise', 'simultaneous'; found 'both'"),
        ({"band": True}, "`band` must be one of .*; found True"),
        ({"level": 95}, "`level` must lie between 0.001 and 0.9999; found 95"),
        ({"band": "pointwise", "level": 0}, "`level` must lie between 0.001 and 0.9999; found 0"),
        ({"band": "pointwise", "level": 95}, "`level` must lie between .*; found 95"),
        ({"band": "simultaneous", "weight_type": "n"}, "`weight_type` must be one of .*; found"),
    ],
)
def test_band_options_that_do_not_exist(
    grouped: pl.DataFrame, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        wroc.roc_curve(grouped.lazy(), "y", "s", **options)


@pytest.mark.parametrize("name", LIMITS)
def test_group_must_not_be_called_like_a_limit(grouped: pl.DataFrame, name: str) -> None:
    frame = grouped.rename({"g": name})
    with pytest.raises(ValueError, match=f"`by` must not take .* found '{name}'"):
        wroc.roc_curve(frame, "y", "s", by=name, band="pointwise")
    assert wroc.roc_curve(frame, "y", "s", by=name).columns == [name, *CURVE]


def test_worked_example(seven: pl.DataFrame) -> None:
    found = wroc.tpr_at_fpr(seven, "y", "s", weight="w", fpr=0.3)
    assert found.columns == ["fpr", "tpr", "tpr_low", "tpr_high"]
    assert found.row(0) == pytest.approx((0.3, 0.25, 0.034, 1.0), abs=5e-4)


@settings(max_examples=20)
@given(FRAMES, st.lists(RATES, min_size=1, max_size=4), st.sampled_from(WEIGHT_TYPES))
def test_tpr_at_fpr_follows_its_definition(
    frame: pl.DataFrame, rates: list[float], weight_type: Any
) -> None:
    table = wroc.tpr_at_fpr(frame, "y", "s", weight="w", fpr=rates, weight_type=weight_type)
    roc = roc_of(frame, weight_type)
    expected = []
    for fpr in sorted(set(rates)):
        tpr = roc.tpr_at(fpr)
        expected.append((fpr, tpr, *pointwise(roc, fpr, tpr)))
    assert table.to_numpy() == pytest.approx(np.array(expected), abs=1e-9)


@settings(max_examples=20)
@given(FRAMES, st.lists(RATES, min_size=1, max_size=4), st.floats(0.3, 0.999))
def test_fpr_at_tpr_follows_its_definition(
    frame: pl.DataFrame, rates: list[float], level: float
) -> None:
    table = wroc.fpr_at_tpr(frame, "y", "s", weight="w", tpr=rates, level=level)
    assert table.columns == ["tpr", "fpr", "fpr_low", "fpr_high"]
    roc = roc_of(frame)
    expected = []
    for tpr in sorted(set(rates)):
        fpr = roc.fpr_at(tpr)
        expected.append((tpr, fpr, *pointwise_turned(roc, tpr, fpr, level)))
    assert table.to_numpy() == pytest.approx(np.array(expected), abs=1e-9)


@settings(max_examples=20)
@given(FRAMES, st.lists(RATES, min_size=1, max_size=4))
def test_exchanged_classes_and_negated_scores_mirror_the_curve(
    frame: pl.DataFrame, rates: list[float]
) -> None:
    """A point (x, y) of one curve is the point (1 - y, 1 - x) of the other."""
    other = frame.with_columns(y=1 - pl.col("y"), s=-pl.col("s"))
    mirrored = [1 - rate for rate in rates]
    found = wroc.tpr_at_fpr(frame, "y", "s", weight="w", fpr=rates)
    expected = wroc.fpr_at_tpr(other, "y", "s", weight="w", tpr=mirrored).reverse()
    columns = ["tpr", "fpr", "fpr_high", "fpr_low"]
    assert found.to_numpy() == pytest.approx(1 - expected.select(columns).to_numpy(), abs=1e-9)


@settings(max_examples=15)
@given(FRAMES)
def test_ends_of_the_curve(frame: pl.DataFrame) -> None:
    """At a rate of 1 the other is certain; at 0 it is what one class has beyond the other."""
    roc = roc_of(frame)
    above, below = roc.tpr[roc.fpr == 0].max(), roc.fpr[roc.tpr == 1].min()
    start, end = wroc.tpr_at_fpr(frame, "y", "s", weight="w", fpr=[0, 1]).rows(named=True)
    assert start["tpr"] == pytest.approx(above)
    assert (end["fpr"], end["tpr"], end["tpr_high"]) == (1, 1, 1)
    start, end = wroc.fpr_at_tpr(frame, "y", "s", weight="w", tpr=[0, 1]).rows(named=True)
    assert (start["tpr"], start["fpr"], start["fpr_low"]) == (0, 0, 0)
    assert end["fpr"] == pytest.approx(below)


def test_step_is_read_at_its_better_end() -> None:
    frame = pl.DataFrame({"y": [1, 0, 1, 0], "s": [4, 3, 2, 1]})
    assert wroc.tpr_at_fpr(frame, "y", "s", fpr=[0, 0.5])["tpr"].to_list() == [0.5, 1]
    assert wroc.fpr_at_tpr(frame, "y", "s", tpr=[0.5, 1])["fpr"].to_list() == [0, 0.5]


@pytest.mark.parametrize("unit", [0.1, 0.7, 1 / 3])
def test_step_is_found_whatever_the_unit_of_the_weights(unit: float) -> None:
    frame = pl.DataFrame({"y": [1, 0] * 10, "s": range(20, 0, -1)})
    rates = [0.3, 0.6, 0.7]
    for weight in (None, pl.lit(unit)):
        of_tpr = wroc.tpr_at_fpr(frame, "y", "s", fpr=rates, weight=weight)
        of_fpr = wroc.fpr_at_tpr(frame, "y", "s", tpr=rates, weight=weight)
        assert of_tpr["tpr"].to_list() == pytest.approx([0.4, 0.7, 0.8])
        assert of_fpr["fpr"].to_list() == pytest.approx([0.2, 0.5, 0.6])


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        (0.5, [0.5]),
        (1, [1.0]),
        ([0.5, 0.1, 0.5], [0.1, 0.5]),
        ((0, 1, 0.0), [0.0, 1.0]),
        (range(2), [0.0, 1.0]),
    ],
)
def test_rates_are_sorted_and_each_is_there_once(
    seven: pl.DataFrame, rates: Any, expected: list[float]
) -> None:
    assert wroc.tpr_at_fpr(seven, "y", "s", fpr=rates)["fpr"].to_list() == expected
    assert wroc.fpr_at_tpr(seven, "y", "s", tpr=rates)["tpr"].to_list() == expected


def test_points_of_groups(
    grouped: pl.DataFrame, groups: dict[str | None, pl.DataFrame], engine: Engine
) -> None:
    rates = [0.05, 0.3, 0.7]
    options: dict[str, Any] = {"weight": "w", "by": "g"}
    of_tpr = wroc.tpr_at_fpr(grouped.lazy(), "y", "s", fpr=rates, **options)
    of_fpr = wroc.fpr_at_tpr(grouped.lazy(), "y", "s", tpr=rates, **options)
    found, turned = (plan.collect(engine=engine) for plan in (of_tpr, of_fpr))
    assert found.select("g", "fpr").rows() == [(key, rate) for key in groups for rate in rates]
    for i, frame in enumerate(groups.values()):
        roc = roc_of(frame)
        for j, rate in enumerate(rates):
            tpr, fpr = roc.tpr_at(rate), roc.fpr_at(rate)
            row = tpr, *pointwise(roc, rate, tpr)
            assert found.row(3 * i + j)[2:] == pytest.approx(row, abs=1e-9)
            row = fpr, *pointwise_turned(roc, rate, fpr)
            assert turned.row(3 * i + j)[2:] == pytest.approx(row, abs=1e-9)


def test_points_of_models_stand_in_the_order_named(grouped: pl.DataFrame) -> None:
    frame = grouped.with_columns(r=-pl.col("s"))
    table = wroc.tpr_at_fpr(frame, "y", ["s", "r"], by="g", fpr=[0.2, 0.4])
    assert table["model"].to_list() == ["s", "s", "r", "r"] * 4


def test_points_of_models_do_not_meet(grouped: pl.DataFrame) -> None:
    frame = grouped.with_columns(r=-pl.col("s") + pl.col("w").round(1))
    table = wroc.tpr_at_fpr(frame, "y", ["s", "r"], weight="w", by="g", fpr=[0.2, 0.4])
    for model in ("s", "r"):
        own = wroc.tpr_at_fpr(frame, "y", model, weight="w", by="g", fpr=[0.2, 0.4])
        assert_frame_equal(table.filter(model=model).drop("model"), own, rel_tol=1e-12)


@pytest.mark.parametrize("label", [0, 1])
def test_points_of_one_class_are_null(grouped: pl.DataFrame, label: int, engine: Engine) -> None:
    frame = grouped.filter((pl.col("g") != "b") | (pl.col("y") == label))
    plan = wroc.tpr_at_fpr(frame.lazy(), "y", "s", weight="w", by="g", fpr=[0.2, 1])
    table = plan.collect(engine=engine)
    assert table.filter(g="b").rows() == [("b", 0.2, None, None, None), ("b", 1, None, None, None)]
    alone = wroc.tpr_at_fpr(frame.filter(g="c"), "y", "s", weight="w", fpr=[0.2, 1])
    assert_frame_equal(table.filter(g="c").drop("g"), alone, rel_tol=1e-12)


def test_rates_at_a_point_are_those_of_the_band(grouped: pl.DataFrame) -> None:
    band = wroc.roc_curve(grouped, "y", "s", by="g", band="pointwise", level=0.8)
    tops = band.group_by("g", "fpr", maintain_order=True).last().filter(g="a")
    rates = tops["fpr"].to_list()
    points = wroc.tpr_at_fpr(grouped.filter(g="a"), "y", "s", fpr=rates, level=0.8)
    assert_frame_equal(points, tops.select(points.columns), abs_tol=1e-12)


@pytest.mark.parametrize("rate", ["tpr", "fpr"])
def test_points_serialise(grouped: pl.DataFrame, rate: str, engine: Engine) -> None:
    function: Any = wroc.fpr_at_tpr if rate == "tpr" else wroc.tpr_at_fpr
    options: dict[str, Any] = {"weight": "w", "by": "g", rate: [0.1, 0.2]}
    plan = function(grouped.lazy(), "y", "s", **options)
    assert isinstance(plan, pl.LazyFrame)
    assert "python" not in plan.explain(optimized=False).lower()
    shipped = pl.LazyFrame.deserialize(io.BytesIO(plan.serialize()))
    table = function(grouped, "y", "s", **options)
    assert_frame_equal(shipped.collect(engine=engine), table, rel_tol=1e-12)


@pytest.mark.parametrize(
    ("rates", "error", "message"),
    [
        (1.01, ValueError, "must lie between 0 and 1; found 1.01"),
        (-0.1, ValueError, "must lie between 0 and 1; found -0.1"),
        ([0.1, 95], ValueError, "must lie between 0 and 1; found 95"),
        (float("nan"), ValueError, "must lie between 0 and 1; found nan"),
        ([], ValueError, "must hold at least one number; found none"),
        ("0.1", TypeError, "must be a number or several of them; found '0.1'"),
        (None, TypeError, "must be a number or several of them; found None"),
        (["0.1"], TypeError, "must be a number; found '0.1'"),
        ([None], TypeError, "must be a number; found None"),
        (True, TypeError, "must be a number; found True"),
    ],
)
def test_rates_that_are_none(
    seven: pl.DataFrame, rates: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"`fpr` {message}"):
        wroc.tpr_at_fpr(seven.lazy(), "y", "s", fpr=rates)
    with pytest.raises(error, match=f"`tpr` {message}"):
        wroc.fpr_at_tpr(seven.lazy(), "y", "s", tpr=rates)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": 1}, "`level` must lie between 0.001 and 0.9999; found 1"),
        ({"weight_type": "count"}, "`weight_type` must be one of .*; found 'count'"),
    ],
)
def test_point_options_that_do_not_exist(
    seven: pl.DataFrame, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        wroc.tpr_at_fpr(seven.lazy(), "y", "s", fpr=0.1, **options)
    with pytest.raises(ValueError, match=message):
        wroc.fpr_at_tpr(seven.lazy(), "y", "s", tpr=0.1, **options)


SHIFT = 1.2


def binormal(replicates: int, positives: int, negatives: int, seed: int) -> pl.DataFrame:
    """Samples of two normal distributions, each sample a group."""
    random = np.random.default_rng(seed)
    labels = np.tile(np.repeat([1, 0], [positives, negatives]), replicates)
    return pl.DataFrame(
        {
            "g": np.repeat(np.arange(replicates), positives + negatives),
            "y": labels,
            "s": random.normal(size=labels.size) + SHIFT * labels,
            "w": random.lognormal(sigma=0.5, size=labels.size),
        }
    )


def true_tpr(fpr: float | Floats) -> Any:
    return stats.norm.sf(stats.norm.isf(fpr) - SHIFT)


@pytest.mark.parametrize("weight", [None, "w"])
def test_interval_of_a_rate_covers_the_truth(weight: str | None) -> None:
    frame = binormal(400, 50, 100, seed=11)
    table = wroc.tpr_at_fpr(frame, "y", "s", weight=weight, by="g", fpr=0.1)
    inside = table["tpr_low"].le(true_tpr(0.1)) & table["tpr_high"].ge(true_tpr(0.1))
    assert 0.90 <= inside.mean() <= 1.0
    width = table["tpr_high"] - table["tpr_low"]
    assert width.median() < 0.5  # type: ignore[operator]


def test_simultaneous_band_covers_the_whole_curve() -> None:
    table = wroc.roc_curve(binormal(200, 50, 100, 12), "y", "s", by="g", band="simultaneous")
    truth = true_tpr(table["fpr"].to_numpy())
    inside = (table["tpr_low"] <= truth + 1e-12) & (table["tpr_high"] >= truth - 1e-12)
    covered: Sequence[bool] = (
        table.select("g", inside=inside).group_by("g").agg(pl.col("inside").all())["inside"]
    ).to_list()
    assert np.mean(covered) >= 0.95
