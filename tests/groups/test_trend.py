"""Trends: against tables of two groups, scikit-learn, SciPy and plain sums."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from polars.testing import assert_frame_equal
from scipy import special, stats
from sklearn.metrics import roc_auc_score

import polars_wroc as wroc

Array = NDArray[Any]
METRICS = ["auc", "selection_rate", "tpr", "ppv", "f1", "brier_score"]
SHIFTS = ["shift_auc", "score_ks", "psi"]
COMPARED = [
    *("metric", "n", "value", "value_low", "value_high", "n_reference", "reference_value"),
    *("gap", "gap_low", "gap_high", "ratio", "ratio_low", "ratio_high"),
    *("p_value", "detectable", "verdict", "reason"),
]
DESIGNS: dict[str, dict[str, Any]] = {
    "equal": {},
    "weighted": {"weight": "w"},
    "clusters": {"weight": "w", "design": "c"},
    "survey": {"weight": "w", "design": wroc.Survey("c", strata=pl.col("c") % 3)},
}


def frame_of(seed: int, n: int = 600, periods: int = 3) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    y = random.random(n) < 0.4
    period = random.integers(1, periods + 1, n)
    columns = {
        "y": y,
        "s": np.clip(0.2 * y + 0.02 * period + 0.7 * random.random(n), 0.001, 0.999),
        "w": random.lognormal(0, 0.6, n),
        "c": random.integers(0, 20, n),
        "g": random.choice(["a", "b"], n),
        "period": period,
    }
    return pl.DataFrame(columns)


def trend(frame: Any, metrics: list[str] | None = None, **options: Any) -> pl.DataFrame:
    given: dict[str, Any] = {"over": "period", "threshold": 0.5, "metrics": metrics, "min_rows": 0}
    table: pl.DataFrame = wroc.trend(frame, "y", "s", **given | options).lazy().collect()
    return table


@pytest.mark.slow(reason="tries each design, in memory and lazily")
@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("lazy", [False, True])
def test_the_last_period_is_compared_as_a_segment_with_the_rest(design: str, lazy: bool) -> None:
    frame, options = frame_of(1), {"margin": 0.1, "adjust": "none", **DESIGNS[design]}
    given = frame.lazy() if lazy else frame
    found = trend(given, METRICS, attributes="g", **options)
    for segment, rows in (("overall", frame), ("a", frame.filter(g="a"))):
        for last in (2, 3):
            gaps = wroc.group_gaps(
                rows.filter(pl.col("period") <= last),
                *("y", "s"),
                attributes="period",
                threshold=0.5,
                metrics=METRICS,
                # Two segments that are each other's rest share a p-value.
                reference="1" if last == 2 else "rest",
                **options,
            )
            assert_frame_equal(
                found.filter(segment=segment, period=last).select(COMPARED),
                gaps.filter(segment=str(last)).select(COMPARED),
                rel_tol=1e-9,
            )


def test_later_periods_change_nothing() -> None:
    frame = frame_of(2, periods=5)
    whole = trend(frame, [*METRICS, *SHIFTS], adjust="none", weight="w", attributes="g")
    part = trend(
        frame.filter(pl.col("period") <= 3),
        [*METRICS, *SHIFTS],
        adjust="none",
        weight="w",
        attributes="g",
    )
    assert_frame_equal(whole.filter(pl.col("period") <= 3), part, rel_tol=1e-9)


def test_the_auc_before_is_the_mean_over_pairs_of_scikit_learns() -> None:
    frame = frame_of(3)
    found = trend(frame, ["auc"], weight="w").filter(period=3)
    aucs, pairs = [], []
    for period in (1, 2, 3):
        rows = frame.filter(period=period)
        aucs.append(roc_auc_score(rows["y"], rows["s"], sample_weight=rows["w"]))
        pairs.append(math.prod(rows.group_by("y").agg(pl.col("w").sum())["w"]))
    assert found["value"].item() == pytest.approx(aucs[2], rel=1e-12)
    mean = np.average(aucs[:2], weights=pairs[:2])
    assert found["reference_value"].item() == pytest.approx(mean, rel=1e-12)


def plain_tenths(score: float, before: Array, weight: Array) -> dict[int, float]:
    """Return the tenths of the weight before that a score is in, by the middle of its weight."""
    below, through = (
        weight[each].sum() / weight.sum() for each in (before < score, before <= score)
    )
    place = 10 * (below + through) / 2
    edge = round(place)
    if abs(place - edge) > 1e-9:
        return {int(place): 1.0}
    if edge == 5 and through - below < 0.2 - 1e-9:
        return {4: 0.5, 5: 0.5}
    return {max(edge - 1, 0) if edge <= 5 else min(edge, 9): 1.0}


def plain_psi(before: pl.DataFrame, after: pl.DataFrame) -> tuple[float, float, int]:
    """Return PSI, the scale of its distribution and the number of its bins."""
    sides = [(rows["s"].to_numpy(), rows["w"].to_numpy()) for rows in (after, before)]
    sums = np.zeros((2, 10))
    for side, rows in enumerate(sides):
        for score, weight in zip(*rows, strict=True):
            for tenth, part in plain_tenths(score, *sides[1]).items():
                sums[side, tenth] += part * weight
    n, m = (w.sum() ** 2 / (w**2).sum() for _, w in sides)
    total, crowded, bins = 0.0, 0.0, 0
    for a, b in (sums / sums.sum(axis=1, keepdims=True)).T:
        if a + b > 0:
            crowded, bins = crowded + (n + m) / (n * a + m * b), bins + 1
            one, other = a or 0.5 / n, b or 0.5 / m
            total += (one - other) * math.log(one / other)
    v = 1 / n + 1 / m
    return total, v * (1 + 0.75 * crowded / bins * v), bins


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("digits", [None, 1])
def test_shifts_are_those_of_scipy_scikit_learn_and_plain_sums(
    weight: str | None, digits: int | None
) -> None:
    frame = frame_of(4, n=900)
    if digits is not None:
        # Many ties, and fewer than ten different scores before.
        frame = frame.with_columns(pl.col("s").round(digits))
    frame = frame if weight else frame.with_columns(w=pl.lit(1.0))
    found = wroc.trend(frame, None, "s", over="period", weight=weight, level=0.9)
    for period in (2, 3):
        after, before = frame.filter(period=period), frame.filter(pl.col("period") < period)
        rows = {row["metric"]: row for row in found.filter(period=period).iter_rows(named=True)}
        assert [*rows] == SHIFTS
        for row in rows.values():
            assert (row["n"], row["n_reference"]) == (after.height, before.height)
        both = pl.concat([after, before])
        is_after = np.arange(both.height) < after.height
        auc = rows["shift_auc"]
        expected = roc_auc_score(is_after, both["s"], sample_weight=both["w"])
        assert auc["value"] == pytest.approx(expected, rel=1e-12)
        own = wroc.summary(both.with_columns(y=is_after), "y", "s", weight=weight, level=0.9)
        limits = own.select("auc_low", "auc_high").row(0)
        assert (auc["value_low"], auc["value_high"]) == pytest.approx(limits, rel=1e-12)
        gaps = [auc["gap_low"] + 0.5, auc["gap_high"] + 0.5]
        assert gaps == pytest.approx(limits, rel=1e-4)
        weights = [each["w"].to_numpy() for each in (after, before)]
        size = 1 / sum((w**2).sum() / w.sum() ** 2 for w in weights)
        ks = rows["score_ks"]
        assert ks["value"] == pytest.approx(own["ks"].item(), rel=1e-12)
        factor = size**0.5 + 0.12 + 0.11 / size**0.5
        assert ks["p_value"] == pytest.approx(special.kolmogorov(factor * ks["value"]), rel=1e-9)
        assert ks["critical"] == pytest.approx(special.kolmogi(0.1) / factor, rel=1e-9)
        psi, scale, bins = plain_psi(before, after)
        assert rows["psi"]["value"] == pytest.approx(psi, rel=1e-9)
        p_value = stats.chi2.sf(psi / scale, bins - 1)
        assert rows["psi"]["p_value"] == pytest.approx(p_value, rel=1e-9)
        critical = scale * stats.chi2.ppf(0.9, bins - 1)
        assert rows["psi"]["critical"] == pytest.approx(critical, rel=1e-9)
        if weight is None:
            of_scipy = stats.ks_2samp(after["s"], before["s"], method="asymp")
            assert ks["value"] == pytest.approx(of_scipy.statistic, rel=1e-12)
            assert ks["p_value"] == pytest.approx(of_scipy.pvalue, abs=0.01)


def test_shift_auc_is_tested_where_its_interval_excludes_one_half() -> None:
    frame = frame_of(5, n=900)
    for options in (DESIGNS["weighted"], DESIGNS["survey"]):
        p_value = (
            wroc.trend(frame, None, "s", over="period", min_rows=0, **options)
            .filter(metric="shift_auc", period=3)["p_value"]
            .item()
        )
        for level in (1 - 1.1 * p_value, 1 - 0.9 * p_value):
            row = wroc.trend(
                frame, None, "s", over="period", min_rows=0, level=level, **options
            ).filter(metric="shift_auc", period=3)
            excluded = not (row["gap_low"].item() < 0 < row["gap_high"].item())
            assert excluded == (level < 1 - p_value)


def test_clusters_leave_distances_without_a_test() -> None:
    found = trend(frame_of(6), design="c").filter(period=3, metric="psi").row(0, named=True)
    assert found["reason"] == "no variance"
    assert found["value"] is not None
    assert found["p_value"] is found["critical"] is None
    clustered = trend(frame_of(6), design="c").filter(period=3, metric="shift_auc")
    frame = frame_of(6).with_columns(y=pl.col("period") == 3)
    # With a single stratum these are clusters.
    own = wroc.summary(frame, "y", "s", design=wroc.Survey("c", strata=pl.lit(1)))
    expected = own.select("auc_low", "auc_high").row(0)
    assert clustered.select("value_low", "value_high").row(0) == pytest.approx(expected, rel=1e-9)
    # The p-value belongs to the level at which a limit of the gap is 0.
    level = 1 - clustered["p_value"].item()
    touching = trend(frame_of(6), design="c", level=level).filter(period=3, metric="shift_auc")
    limits = touching.select("gap_low", "gap_high").row(0)
    assert min(map(abs, limits)) == pytest.approx(0, abs=1e-9)


def test_counts_have_the_trend_of_the_rows() -> None:
    frame = frame_of(7)
    days = [wroc.score_counts(rows, "y", "s", by=["period", "g"], weight="w") for rows in (
        frame.filter(pl.col("c") < 9), frame.filter(pl.col("c") >= 9)
    )]  # fmt: skip
    counts = wroc.from_counts(wroc.merge_counts(days))
    expected = trend(frame, weight="w", attributes="g")
    found = counts.trend(over="period", attributes="g", threshold=0.5)
    assert_frame_equal(found.drop("model"), expected.drop("model"), rel_tol=1e-6)
    unlabelled = wroc.from_counts(wroc.score_counts(frame, None, "s", by="period", weight="w"))
    expected = wroc.trend(frame, None, "s", over="period", threshold=0.5, weight="w")
    found = unlabelled.trend(over="period", threshold=0.5)
    assert found["metric"].unique(maintain_order=True).to_list() == ["selection_rate", *SHIFTS]
    assert_frame_equal(found.drop("model"), expected.drop("model"), rel_tol=1e-6)
    with pytest.raises(ValueError, match="must come with a `label` for auc; found none"):
        unlabelled.trend(over="period", metrics=["auc"])


def test_bins_leave_the_sign_of_a_small_gap_open() -> None:
    counts = wroc.score_counts(frame_of(8), "y", "s", by="period", bins=16)
    found = wroc.from_counts(counts).trend(over="period").filter(period=3)
    exact = trend(frame_of(8)).filter(period=3)
    both = found.join(exact, on="metric", suffix="_exact").filter(metric="auc")
    assert both.select((pl.col("gap") - pl.col("gap_exact")).abs() < 0.1).to_series().all()
    assert both.select(pl.col("gap_high") > pl.col("gap_high_exact") - 0.05).to_series().all()


def test_the_first_period_of_a_segment_is_compared_with_nothing() -> None:
    late = (pl.col("g") == "b") & (pl.col("period") == 1)
    found = trend(frame_of(9).filter(~late), attributes="g")
    first = found.filter(reason="the first period")
    assert first.filter(metric="psi").select("segment", "period").rows() == [
        *(("overall", 1), ("a", 1), ("b", 2))
    ]
    empty = ["reference", "n_reference", "reference_value", "gap", "p_value", "verdict", "ratio"]
    assert first.select(pl.col(empty).null_count()).row(0) == (first.height,) * len(empty)
    assert first.filter(metric="auc")["value"].null_count() == 0
    assert first.filter(pl.col("metric").is_in(SHIFTS))["value"].count() == 0
    assert found.filter(pl.col("reason").ne_missing("the first period"))["gap"].null_count() == 0


def test_periods_are_truncated_and_rows_without_one_are_left_out() -> None:
    days = pl.date_range(dt.date(2025, 11, 3), dt.date(2026, 1, 31), eager=True)
    frame = frame_of(10, n=len(days) * 8).with_columns(day=pl.Series([*days] * 8))
    frame = frame.with_columns(day=pl.when(pl.col("c") > 0).then("day"))
    found = trend(frame, over="day", every="1mo")
    month = pl.col("day").dt.truncate("1mo")
    expected = trend(frame.filter(pl.col("c") > 0), over=month)
    assert_frame_equal(found, expected)
    months = found["period"].unique(maintain_order=True).to_list()
    assert months == [dt.date(2025, 11, 1), dt.date(2025, 12, 1), dt.date(2026, 1, 1)]
    counted = wroc.score_counts(frame, "y", "s", by="day")
    assert_frame_equal(
        wroc.from_counts(counted).trend(over="day", every="1mo", threshold=0.5).drop("model"),
        found.drop("model"),
        rel_tol=1e-6,
    )


def test_a_label_that_is_missing_leaves_the_shift() -> None:
    frame = frame_of(11)
    delayed = frame.with_columns(y=pl.when(pl.col("period") < 3).then("y"))
    found, whole = trend(delayed), trend(frame)
    of_shift = pl.col("metric").is_in(SHIFTS)
    assert_frame_equal(found.filter(of_shift), whole.filter(of_shift))
    last = found.filter(~of_shift, period=3)
    # Rows are selected or not, whether or not their label is known.
    is_rate = pl.col("metric") == "selection_rate"
    assert last.filter(~is_rate)["n"].to_list() == [0] * 5
    assert last.filter(~is_rate)["value"].null_count() == 5
    numbers = ["value", "n", "gap", "gap_low", "gap_high"]
    expected = whole.filter(is_rate, period=3).select(numbers)
    assert_frame_equal(last.filter(is_rate).select(numbers), expected)


BEFORE = [0.1, 0.2, 0.3, 0.4, 0.5, 1, 1, 1, 1, 1]
AFTER = [0.1, 0.3, 0.35, 0.6, 1, 1, 1, 1]


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize(
    ("before", "after", "weighted", "expected"),
    [
        (BEFORE, AFTER, False, (0.1986869012, 9.7312170790, 0.9996784323)),
        (BEFORE, AFTER, True, (0.0124703383, 6.3265306422, 0.9994938812)),
        (range(100), range(20, 120), False, (0.7889115897, 0.3967500248, 0.0001031772)),
        (range(100), range(200, 300), False, (4.6336776776, 0.4306648845, 0.0)),
        ([0.4] * 1000, [0.5] * 1000, False, (15.1942040166, 0.0077059664, 0.0)),
    ],
)
def test_psi_of_worked_examples(
    before: Sequence[float],
    after: Sequence[float],
    weighted: bool,
    expected: tuple[float, ...],
    mirrored: bool,
) -> None:
    weights = [*range(1, len(before) + 1), *range(1, len(after) + 1)]
    frame = pl.DataFrame(
        {"t": [1] * len(before) + [2] * len(after), "s": [*before, *after], "w": weights},
        strict=False,
    )
    frame = frame.with_columns(pl.col("s") * (-1 if mirrored else 1))
    found = wroc.trend(
        *(frame, None, "s"),
        over="t",
        weight="w" if weighted else None,
        metrics=["psi"],
        min_rows=0,
    )
    row = found.filter(period=2).select("value", "critical", "p_value").row(0)
    assert row == pytest.approx(expected, abs=5e-11)


def test_one_score_has_no_shift_and_no_test_of_psi() -> None:
    frame = pl.DataFrame({"t": [1] * 20 + [2] * 20, "s": [0.5] * 40})
    same = wroc.trend(frame, None, "s", over="t", min_rows=0).filter(period=2)
    assert same.select("metric", "value", "p_value", "critical", "reason").rows() == [
        ("shift_auc", 0.5, 1.0, None, None),
        ("score_ks", 0.0, 1.0, same["critical"][1], None),
        ("psi", 0.0, None, None, "one score"),
    ]
    few = wroc.trend(frame, None, "s", over="t", min_rows=30).filter(period=2)
    assert few["reason"].to_list() == ["fewer than 30 rows"] * 3
    assert few["verdict"].to_list() == ["inconclusive"] * 3


@pytest.mark.parametrize(
    ("rows", "p_value", "verdict"),
    [(20, 0.1753786859, "inconclusive"), (25, 0.0428255695, "different")],
)
def test_a_total_shift_has_a_finite_psi(rows: int, p_value: float, verdict: str) -> None:
    place = pl.int_range(pl.len())
    frame = pl.select(t=pl.int_range(2 * rows) // rows).with_columns(s=pl.col("t") + place / 1000)
    moved = wroc.trend(frame, None, "s", over="t", min_rows=0).filter(period=1)
    assert moved["value"].to_list()[:2] == [1.0, 1.0]
    assert moved["p_value"][2] == pytest.approx(p_value, abs=5e-11)
    assert moved["verdict"].to_list() == ["different", "different", verdict]
    assert moved["reason"].null_count() == 3


@pytest.mark.parametrize("design", DESIGNS)
def test_a_segment_is_followed_as_if_it_were_alone(design: str) -> None:
    frame = frame_of(16).with_columns(pl.when(pl.col("c") < 17).then("g"))
    options = {"adjust": "none", **DESIGNS[design]}
    found = trend(frame, [*METRICS, *SHIFTS], attributes="g", **options)
    for segment in ("a", "b", None):
        rows = frame.with_columns(pl.when(pl.col("g").eq_missing(segment)).then(pl.col("s", "y")))
        alone = trend(rows, [*METRICS, *SHIFTS], **options)
        own = found.filter(pl.col("segment").eq_missing(segment), attribute="g")
        compared = [*COMPARED, "period", "critical"]
        assert_frame_equal(own.select(compared), alone.select(compared), rel_tol=1e-9)


SEASONS = ["winter", "spring", "summer"]


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(
    ("over", "dtype"),
    [
        (pl.col("period") > 1, pl.Boolean()),
        (pl.when(pl.col("period") < 3).then(pl.col("period") / 2.0).otherwise(math.nan),
         pl.Float64()),
        (pl.col("period").cast(pl.Decimal(5, 2)), pl.Decimal(5, 2)),
        (pl.date(2026, "period", 1), pl.Date()),
        (pl.datetime(2026, "period", 1, time_zone="UTC"), pl.Datetime("us", "UTC")),
        (pl.col("period").replace_strict([1, 2, 3], SEASONS, return_dtype=pl.Enum(SEASONS)),
         pl.Enum(SEASONS)),
    ],
)  # fmt: skip
def test_periods_keep_their_type_and_order(over: pl.Expr, dtype: pl.DataType, lazy: bool) -> None:
    frame = frame_of(17)
    given: Any = frame.lazy() if lazy else frame
    table = wroc.trend(given, "y", "s", over=over.alias("month"))
    schema = table.lazy().collect_schema()
    assert schema["period"] == dtype
    found = table.lazy().collect()
    assert found.schema == schema
    periods = frame.select(over.alias("month"))["month"].unique().sort()
    assert found.filter(metric="psi")["period"].equals(periods)


def test_decisions_alone_have_no_model() -> None:
    found = wroc.trend(frame_of(14), "y", over="period", selected=pl.col("s") > 0.5)
    assert found["model"].null_count() == found.height
    both = wroc.trend(frame_of(14), None, ["s", "w"], over="period")
    assert both["model"].unique(maintain_order=True).to_list() == ["s", "w"]
    alone = wroc.trend(frame_of(14), None, "w", over="period")
    assert alone["model"].unique().to_list() == ["w"]
    compared = [name for name in COMPARED if name != "p_adjusted"]
    assert_frame_equal(
        both.filter(model="w").select(compared), alone.select(compared), check_exact=True
    )


@pytest.mark.parametrize("lazy", [False, True])
def test_a_frame_without_rows_has_a_table_without_rows(lazy: bool) -> None:
    frame = frame_of(18).clear()
    for attributes in (None, ["g"]):
        found = trend(frame.lazy() if lazy else frame, [*METRICS, *SHIFTS], attributes=attributes)
        assert found.schema == trend(frame_of(18), attributes=attributes).schema
        assert found.height == 0


def test_each_measure_of_a_shift_is_a_family() -> None:
    found = trend(frame_of(12), attributes="g")
    for metrics in (["score_ks"], ["psi"], ["shift_auc"], ["auc", *METRICS[1:4], "fpr", "npv"]):
        tested = found.filter(pl.col("metric").is_in(metrics)).drop_nulls("p_value")
        order = tested.sort("p_value")
        p, m = order["p_value"].to_numpy(), order.height
        holm = np.minimum(np.maximum.accumulate(p * (m - np.arange(m))), 1)
        assert order["p_adjusted"].to_numpy() == pytest.approx(holm, rel=1e-9)


@settings(deadline=None, max_examples=8)
@given(seed=st.integers(0, 10**6), power=st.sampled_from([0.5, 3.0]), scale=st.floats(1e-3, 1e3))
def test_a_shift_depends_on_ranks_and_relative_weights(
    seed: int, power: float, scale: float
) -> None:
    frame = frame_of(seed, n=150)
    other = frame.with_columns(pl.col("s") ** power, pl.col("w") * scale).sample(
        fraction=1, shuffle=True, seed=seed
    )
    one, two = (
        wroc.trend(rows, None, "s", over="period", weight="w", attributes="g")
        for rows in (frame, other)
    )
    assert_frame_equal(one, two, rel_tol=1e-6, abs_tol=1e-6)


ERRORS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"over": "nothing"}, pl.exceptions.ColumnNotFoundError, "nothing"),
    ({"every": "1mo"}, TypeError, "`over` must hold dates or times with `every`; found column"),
    ({"every": 3}, TypeError, "`every` must be a length of time, for example '1mo'"),
    (
        {"over": "day", "every": "month"},
        ValueError,
        "`every` must be a length of time, for example",
    ),
    ({"metrics": ["aux"]}, ValueError, "`metrics` must be one of auc.*found 'aux'.*'auc'"),
    ({"metrics": []}, TypeError, "`metrics` must be None or a sequence"),
    ({"metrics": ["tpr"]}, ValueError, "must come with a `threshold` or `selected` for tpr"),
    (
        {"attributes": ["g", "period"]},
        ValueError,
        "^`attributes` must not name the column of `over`; found 'period' in both$",
    ),
    (
        {"attributes": "day", "over": "day", "every": "1mo"},
        ValueError,
        "^`attributes` must not name the column of `over`; found 'day' in both$",
    ),
    ({"attributes": ["g", "g"]}, ValueError, "^`attributes` must not name a column twice"),
    ({"margin": 2}, ValueError, "`margin` must"),
    ({"min_rows": -1}, ValueError, "`min_rows` must"),
]


@pytest.mark.parametrize(("options", "error", "match"), ERRORS)
def test_errors_name_the_argument(
    options: dict[str, Any], error: type[Exception], match: str
) -> None:
    frame = frame_of(13).with_columns(day=pl.lit(dt.date(2026, 1, 1)))
    with pytest.raises(error, match=match):
        wroc.trend(frame, "y", "s", **{"over": "period"} | options)


def test_what_needs_a_label_or_a_score_says_so() -> None:
    frame = frame_of(14)
    with pytest.raises(ValueError, match="must come with a `score` for psi; found none"):
        wroc.trend(frame, "y", over="period", selected=pl.col("s") > 0.5, metrics=["psi"])
    with pytest.raises(ValueError, match="must come with a `label` for tpr; found none"):
        wroc.trend(frame, None, "s", over="period", threshold=0.5, metrics=["tpr"])
    decided = wroc.trend(frame, "y", over="period", selected=pl.col("s") > 0.5)
    rates = ["selection_rate", "tpr", "fpr", "ppv", "npv"]
    assert decided["metric"].unique(maintain_order=True).to_list() == rates
    assert decided["critical"].null_count() == decided.height


@pytest.mark.slow(reason="simulates many samples")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("before", "after"), [(1000, 100), (200, 200), (600, 300)])
def test_shifts_err_in_five_percent_of_periods_without_change(
    before: int,
    after: int,
    weighted: bool,
) -> None:
    tables = 1500
    random = np.random.default_rng(before + after + weighted)
    n = before + after
    frame = pl.DataFrame(
        {
            "table": np.repeat(np.arange(tables), n),
            "period": np.tile(np.arange(n) >= before, tables),
            "s": random.random(tables * n),
            "w": random.lognormal(0, 0.8, tables * n) if weighted else np.ones(tables * n),
        }
    )
    found = wroc.trend(
        *(frame, None, "s"),
        over="period",
        attributes="table",
        weight="w" if weighted else None,
        adjust="none",
    ).filter(attribute="table", period=True)
    low, high = stats.binom.ppf([0.001, 0.999], tables, 0.05) / tables
    for metric in SHIFTS:
        tested = found.filter(metric=metric).drop_nulls("p_value")
        share = (tested["p_value"] <= 0.05).mean()
        assert isinstance(share, float)
        # With weights PSI errs in fewer, since its tenths have fewer effective rows.
        assert low - (0.02 if weighted else 0.0) <= share <= high
        if metric != "shift_auc":
            above = tested.select((pl.col("value") > pl.col("critical")).mean()).item()
            assert above == pytest.approx(share, abs=1e-9)
