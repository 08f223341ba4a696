"""Gaps of rates at a threshold: against fairlearn, scipy and the rows themselves."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import plain_picked
import polars as pl
import pytest
from fairlearn import metrics as fairlearn
from plain_rates import Rate, common_test, pair_quantile, rate_of
from plain_roc import ratio_limits
from polars.testing import assert_frame_equal
from scipy import stats
from sklearn.metrics import precision_score
from sweeps import sweep
from wide_tables import wide_gaps

import polars_wroc as wroc

RATES = ("selection_rate", "tpr", "fpr", "ppv", "npv")
ENDINGS = [
    "",
    "_reference",
    "_gap",
    "_gap_low",
    "_gap_high",
    "_gap_p_value",
    "_gap_p_adjusted",
    "_ratio",
    "_ratio_low",
    "_ratio_high",
]
COLUMNS = [f"{rate}{ending}" for rate in RATES for ending in ENDINGS]
THRESHOLD = 0.5


class Share(NamedTuple):
    """A rate with its limits, and what they rest on."""

    value: float
    low: float
    high: float
    rate: Rate


def share(frame: pl.DataFrame, rate: str, level: float = 0.95) -> Share | None:
    """From the rows."""
    selected = pl.col("s") >= THRESHOLD
    counted, among = {
        "selection_rate": (selected, pl.lit(value=True)),
        "tpr": (selected, pl.col("y")),
        "fpr": (selected, ~pl.col("y")),
        "ppv": (pl.col("y"), selected),
        "npv": (~pl.col("y"), ~selected),
    }[rate]
    rows = frame.drop_nulls(["s", "y", "w"]).filter(among, pl.col("w") > 0).select("w", k=counted)
    if not rows.height:
        return None
    w, k = rows["w"].to_numpy(), rows["k"].to_numpy()
    found = rate_of(w[k], w[~k])
    assert found
    return Share(found.value, *found.limits(level), found)


def with_picked(one: Share, other: Share, level: float, groups: int) -> list[Share]:
    """Both shares with the limits for a pair of which one was picked from several groups."""
    quantile = pair_quantile(plain_picked.multiplier(level, groups), one.rate, other.rate)
    return [
        Share(each.value, *each.rate.limits(level, quantile), each.rate) for each in (one, other)
    ]


def difference(one: Share, other: Share) -> list[float]:
    """Donner and Zou's interval of a difference."""
    gap = one.value - other.value
    below = np.hypot(one.value - one.low, other.high - other.value)
    above = np.hypot(one.high - one.value, other.value - other.low)
    return [gap, gap - below, gap + above]


def ratio(one: Share, other: Share) -> list[float | None]:
    if other.value == 0:
        return [None, one.low / other.high, None]
    return [one.value / other.value, *ratio_limits(one[:3], other[:3])]


def p_value(one: Share, other: Share) -> float | None:
    """The test of two shares with their common variance; of equal weights Fisher's for few."""
    if one.rate.lost or other.rate.lost:
        return common_test(one.rate, other.rate)[0]
    sizes = [1 / each.rate.inverse for each in (one, other)]
    both = float(np.average([one.value, other.value], weights=sizes))
    if not 0 < both < 1:
        return 1.0
    if min(sizes) * min(both, 1 - both) < 5:
        return None
    z = (one.value - other.value) / np.sqrt(both * (1 - both) * sum(sizes) / np.prod(sizes))
    return float(2 * stats.norm.sf(abs(z)))


def gaps(frame: Any, reference: Any = "rest", **options: Any) -> Any:
    options = {"weight": "w", "threshold": THRESHOLD, "reference": reference} | options
    return wide_gaps(frame, "y", "s", by="g", **options)


def assert_follows(
    table: pl.DataFrame, frame: pl.DataFrame, reference: str, picked_from: int = 2
) -> None:
    """Check rest or a named group, whose rows are others than the group's, or a picked one."""
    for row in table.rows(named=True):
        own_rows = frame.filter(pl.col("g").eq_missing(row["g"]))
        same = row["g"] == reference
        there = (
            ~pl.col("g").eq_missing(row["g"]) if reference == "rest" else pl.col("g") == reference
        )
        for rate in RATES:
            both = own_rows, frame.filter(there)
            own, other = (share(rows, rate) for rows in both)
            found = [row[f"{rate}{ending}"] for ending in ENDINGS if ending != "_gap_p_adjusted"]
            values = [each and each.value for each in (own, other)]
            expected: list[float | None] = [None] * 7
            if own and other and not same:
                alone = p_value(own, other)
                if picked_from > 2:
                    own, other = with_picked(own, other, 0.95, picked_from)
                picked = alone and plain_picked.p_value(alone, picked_from)
                expected = [*difference(own, other), picked, *ratio(own, other)]
            numbers = (np.array(each, np.float64) for each in (found, [*values, *expected]))
            assert next(numbers) == pytest.approx(next(numbers), rel=1e-7, abs=1e-9, nan_ok=True)


def by_group(frame: pl.DataFrame) -> Any:
    rates = {
        "selection_rate": fairlearn.selection_rate,
        "tpr": fairlearn.true_positive_rate,
        "fpr": fairlearn.false_positive_rate,
        "ppv": precision_score,
        "npv": partial(precision_score, pos_label=0),
    }
    return fairlearn.MetricFrame(
        metrics=rates,
        y_true=frame["y"].cast(pl.Int64).to_numpy(),
        y_pred=(frame["s"] >= THRESHOLD).cast(pl.Int64).to_numpy(),
        sensitive_features=frame["g"].to_numpy(),
        sample_params={name: {"sample_weight": frame["w"].to_numpy()} for name in rates},
    )


@pytest.mark.parametrize("reference", sweep(["overall", "rest", "best", "b"], fast=1))
def test_rates_are_those_of_fairlearn(people: pl.DataFrame, reference: str) -> None:
    table = gaps(people.lazy(), reference).collect()
    plain = wide_gaps(people, "y", "s", weight="w", by="g", reference=reference)
    assert table.select(COLUMNS).schema == dict.fromkeys(COLUMNS, pl.Float64())
    of_all_tests = {"auc_gap_p_adjusted", "auc_gap_detectable", "auc_gap_verdict"}
    same = [name for name in plain.columns if name not in of_all_tests]
    assert_frame_equal(table.select(same), plain.select(same))
    expected = by_group(people)
    names = {"b": "b", "best": plain.sort("auc")["g"][-1]}
    for rate in RATES:
        rates = expected.by_group[rate].astype(float)
        assert table[rate].to_list() == pytest.approx(rates.to_list(), abs=1e-12)
        if reference.startswith("overall"):
            others = [expected.overall[rate]] * 4
        elif reference.startswith("rest"):
            others = [by_group(people.filter(pl.col("g") != g)).overall[rate] for g in "abcd"]
        else:
            others = [rates[names[reference]]] * 4
        assert table[f"{rate}_reference"].to_list() == pytest.approx(others, abs=1e-12)
        gap = table[f"{rate}_gap"].to_list()
        shown = [None if reference in names and g == names[reference] else 0 for g in "abcd"]
        for found, one, other, known in zip(gap, rates, others, shown, strict=True):
            assert found == (None if known is None else pytest.approx(one - other, abs=1e-12))


@pytest.mark.parametrize("reference", sweep(["rest", "b"]))
@pytest.mark.parametrize("some", [False, True])
def test_intervals_and_tests_by_hand(people: pl.DataFrame, reference: str, some: bool) -> None:
    place = pl.int_range(pl.len())
    frame = people.with_columns(
        g=pl.when(pl.col("g") != "d").then("g"),
        s=pl.when(place % 7 > 0).then("s"),
        w=pl.when(place % 5 > 0).then("w").otherwise(0.0),
    )
    frame = frame if some else people
    assert_follows(gaps(frame, reference), frame, reference)


def test_best_is_the_group_with_the_highest_auc(people: pl.DataFrame) -> None:
    table = gaps(people, "best")
    name = table["g"][table["auc"].arg_max()]
    assert_follows(table, people, name, picked_from=4)


def test_level_sets_the_width_only(people: pl.DataFrame) -> None:
    tables = [gaps(people, "b", level=level) for level in (0.8, 0.95)]
    of_level = pl.selectors.ends_with("_low", "_high", "_gap_detectable", "_gap_verdict")
    assert_frame_equal(*(table.select(~of_level) for table in tables))
    row = tables[0].row(0, named=True)
    one, other = (share(people.filter(g=g), "fpr", 0.8) for g in "ab")
    assert one is not None
    assert other is not None
    assert [row[f"fpr_gap{end}"] for end in ("", "_low", "_high")] == pytest.approx(
        difference(one, other)
    )


def test_without_weights_the_test_is_that_of_a_table_of_two_by_two(people: pl.DataFrame) -> None:
    table = gaps(people, "rest", weight=None)
    selected = people["s"] >= THRESHOLD
    for row in table.rows(named=True):
        inside = people["g"] == row["g"]
        counts = [
            [(side & hit).sum() for hit in (selected, ~selected)] for side in (inside, ~inside)
        ]
        expected = stats.chi2_contingency(counts, correction=False).pvalue
        assert row["selection_rate_gap_p_value"] == pytest.approx(expected, rel=1e-9)


def test_a_group_is_part_of_everybody(people: pl.DataFrame) -> None:
    rest, overall = (gaps(people, reference) for reference in ("rest", "overall"))
    among = {
        "selection_rate": pl.lit(value=True),
        "tpr": pl.col("y"),
        "fpr": ~pl.col("y"),
        "ppv": pl.col("s") >= THRESHOLD,
        "npv": pl.col("s") < THRESHOLD,
    }
    for g, one, other in zip("abcd", rest.rows(named=True), overall.rows(named=True), strict=True):
        for rate, rows in among.items():
            known = people.filter(rows)
            part = known.filter(g=g)["w"].to_numpy().sum() / known["w"].to_numpy().sum()
            for end in ("", "_low", "_high"):
                gap = (1 - part) * one[f"{rate}_gap{end}"]
                assert other[f"{rate}_gap{end}"] == pytest.approx(gap, abs=1e-12)
                # To all rows, of which the group is a part: r / (part r + (1 - part)).
                r = one[f"{rate}_ratio{end}"]
                assert other[f"{rate}_ratio{end}"] == pytest.approx(r / (part * r + 1 - part))
            assert other[f"{rate}_gap_p_value"] == pytest.approx(one[f"{rate}_gap_p_value"])


@pytest.mark.parametrize("reference", sweep(["rest", "b"]))
def test_p_values_are_adjusted_over_the_whole_table(people: pl.DataFrame, reference: str) -> None:
    frame = people.with_columns(r=pl.col("s") + (pl.col("g") == "c").cast(pl.Float64))
    options: dict[str, Any] = {"weight": "w", "by": "g", "threshold": THRESHOLD}
    table = wide_gaps(frame, "y", ["s", "r"], reference=reference, **options)
    names = [f"{rate}_gap_p_value" for rate in ("auc", *RATES)]
    p = np.array([x for name in names for x in table[name].drop_nulls()])
    assert len(p) == (48 if reference == "rest" else 36)
    stepped = {x: min(1.0, max((p >= y).sum() * y for y in p if y <= x)) for x in p}
    for name in names:
        found = table[name.removesuffix("value") + "adjusted"].to_list()
        assert found == pytest.approx([None if x is None else stepped[x] for x in table[name]])
    assert min(stepped.values()) < 0.05


@pytest.mark.parametrize("reference", sweep(["rest", "b", "c", "d"], fast=2))
def test_nothing_is_said_of_what_is_undefined(people: pl.DataFrame, reference: str) -> None:
    # Group c has no positives and group d selects nobody.
    frame = people.filter((pl.col("g") != "c") | ~pl.col("y")).with_columns(
        s=pl.when(g="d").then(-1.0).otherwise("s")
    )
    table = gaps(frame, reference)
    assert_follows(table, frame, reference)
    assert [table["tpr"][2], table["ppv"][3]] == [None, None]
    assert table.select("tpr_gap", "tpr_gap_p_value", "tpr_ratio").row(2) == (None,) * 3
    assert table["tpr"][3] == 0


def test_a_single_group_has_no_rest(people: pl.DataFrame) -> None:
    alone = people.filter(g="a")
    row = gaps(alone).row(0, named=True)
    for rate in RATES:
        own = share(alone, rate)
        assert own is not None
        assert row[rate] == pytest.approx(own.value)
        assert [row[f"{rate}{end}"] for end in ENDINGS[1:]] == [None] * 9


def test_threshold_must_be_a_number(people: pl.DataFrame) -> None:
    with pytest.raises(ValueError, match="`threshold` must be a number; found nan"):
        gaps(people, threshold=float("nan"))


@pytest.mark.parametrize(
    ("outcomes", "weights", "expected"),
    [
        (
            ([1, 1, 0, 1, 0, 0, 0, 0], [1, *[0] * 9]),
            ([1, 2, 1, 1, 2, 1, 3, 1], [2, 1, 1, 1, 3, 1, 1, 2, 1, 1]),
            (0.1904761905, -0.2515076100, 0.5828489263, 0.3952598106),
        ),
        (
            ([1] * 30 + [0] * 10, [1] * 18 + [0] * 22),
            ([1, 2] * 20, [1, 2] * 20),
            (0.3, 0.0723308229, 0.4882205043, 0.0095664531),
        ),
    ],
)
def test_worked_gaps_of_weighted_rates(
    outcomes: tuple[list[int], list[int]],
    weights: tuple[list[int], list[int]],
    expected: tuple[float, ...],
) -> None:
    frame = pl.concat(
        pl.DataFrame({"g": g, "y": 1, "s": s, "w": [float(each) for each in w]})
        for g, s, w in zip("ab", outcomes, weights, strict=True)
    )
    table = wroc.group_gaps(
        frame, "y", "s", attributes="g", reference="b", weight="w", threshold=1, min_rows=0
    )
    found = table.filter(segment="a", metric="tpr").select("gap", "gap_low", "gap_high", "p_value")
    assert found.row(0) == pytest.approx(expected, abs=3e-10)


def test_weighted_rates_with_few_events_say_so() -> None:
    random = np.random.default_rng(5)
    frame = pl.DataFrame(
        {
            "g": ["a"] * 200 + ["b"] * 200,
            "y": 1,
            "s": np.r_[np.arange(200) < 3, np.arange(200) < 100].astype(float),
            "w": random.lognormal(size=400),
        }
    )
    for weight, reason in (("w", "few effective events"), (None, None)):
        options: dict[str, Any] = {"attributes": "g", "threshold": 1, "weight": weight}
        table = wroc.group_gaps(frame, "y", "s", **options, reference="b")
        row = table.filter(segment="a", metric="tpr").row(0, named=True)
        assert (row["verdict"], row["reason"]) == ("different", reason)
