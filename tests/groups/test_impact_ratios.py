"""Impact ratios: worked numbers, the definition in plain Python, and other packages."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import plain_picked
import polars as pl
import pytest
from fairlearn.metrics import demographic_parity_ratio
from hypothesis import given
from hypothesis import strategies as st
from plain_rates import Rate, common_test, pair_quantile, rate_of, student_quantile
from plain_roc import ratio_limits
from polars.testing import assert_frame_equal
from scipy import stats
from statsmodels.stats.proportion import confint_proportions_2indep, proportions_ztest
from wide_tables import wide_gaps, wide_ratios

import polars_wroc as wroc

# Arguments of the wrong type are refused.
UNTYPED: Any = wroc
PAIR = pl.DataFrame(
    {
        "g": ["a"] * 8 + ["b"] * 10 + [None] * 2,
        "d": [True] * 2 + [False] * 6 + [True] * 8 + [False] * 2 + [True, False],
        "w": [1, 2] + [1] * 6 + [1, 1, 1, 1, 2, 2, 1, 1, 1, 3] + [1, 1],
    }
)
TIMES = "\N{MULTIPLICATION SIGN}"


def counts(table: dict[str, tuple[int, int]]) -> pl.DataFrame:
    """Rows with so many selected of so many in each category."""
    rows = [(name, i < selected) for name, (selected, n) in table.items() for i in range(n)]
    return pl.DataFrame(rows, {"g": pl.String, "d": pl.Boolean}, orient="row")


def of(table: pl.DataFrame, segment: str | None) -> dict[str, Any]:
    return table.filter(pl.col("segment").eq_missing(segment)).row(0, named=True)


def ratios(frame: Any, **options: Any) -> Any:
    """Impact ratios of recorded decisions by one attribute, where to be selected is good."""
    given: dict[str, Any] = {"attributes": "g", "selected": "d", "favorable": "selected"}
    return wide_ratios(frame, **given | options)


def test_eight_and_ten_people_have_the_worked_ratio_and_limits() -> None:
    table = ratios(PAIR)
    a, b, unknown = (of(table, name) for name in ("a", "b", None))
    expected = {
        "n": 8, "value": 0.25, "value_low": 0.0715, "value_high": 0.5907, "n_reference": 10,
        "reference_value": 0.8, "ratio": 0.3125, "ratio_low": 0.0888, "ratio_high": 0.8511,
        "p_value": 0.0392,
    }  # fmt: skip
    assert {name: a[name] for name in expected} == pytest.approx(expected, abs=5e-5)
    words = ["attribute", "model", "metric", "reference", "verdict", "reason", "gap", "detectable"]
    said = ["g", None, "impact_ratio", "b", "inconclusive", None, None, None]
    assert [a[name] for name in words] == said
    assert (b["ratio"], b["verdict"], b["reason"]) == (1, None, "the reference")
    assert b["ratio_low"] is b["ratio_high"] is b["p_value"] is None
    reason = "an unknown category"
    assert (unknown["n"], unknown["value"], unknown["reason"]) == (2, 0.5, reason)
    undefined = {name for name, value in unknown.items() if value is None}
    assert undefined >= {"reference", "n_reference", "reference_value", "ratio", "verdict"}


def test_fishers_test() -> None:
    a = of(ratios(PAIR, exact="fisher"), "a")
    assert a["p_value"] == pytest.approx(stats.fisher_exact([[2, 6], [8, 2]]).pvalue)
    assert a["p_value"] == pytest.approx(0.0536, abs=5e-5)


def test_worked_weights() -> None:
    a = of(ratios(PAIR, weight="w"), "a")
    found = [a[name] for name in ("value", "reference_value", "ratio")]
    assert found == pytest.approx([1 / 3, 5 / 7, 7 / 15])
    limits = [a["ratio_low"], a["ratio_high"]]
    rates = []
    for g in "ab":
        rows = PAIR.filter(g=g).select(pl.col("w").cast(pl.Float64), "d")
        rates.append(rate_of(*(rows.filter(d=d)["w"].to_numpy() for d in (True, False))))
    one, other = rates
    assert one
    assert other
    # The joint limits of two categories are those of the pair.
    t = pair_quantile(float(stats.norm.ppf(0.975)), one, other)
    shares = [(rate.value, *rate.limits(0.95, t)) for rate in (one, other)]
    assert limits == pytest.approx(ratio_limits(*shares))
    assert a["p_value"] == pytest.approx(common_test(one, other)[0])


def test_where_rejection_is_favorable() -> None:
    table = ratios(PAIR, favorable="rejected")
    b = of(table, "b")
    numbers = ["ratio", "ratio_low", "ratio_high"]
    assert [b[name] for name in numbers] == pytest.approx([0.2667, 0.0747, 0.8242], abs=5e-5)
    assert (b["reference"], b["value"]) == ("a", pytest.approx(0.2))
    # The same as of the opposite decisions.
    assert_frame_equal(table, ratios(PAIR, selected=~pl.col("d")))


# Numbers selected and of applicants, and the ratio that is printed.
PRINTED: dict[str, dict[str, tuple[int, int, float]]] = {
    "selected, by sex": {"men": (667, 1390, 1), "women": (555, 1181, 0.979)},
    "selected, by race": {"Black": (170, 390, 0.843), "White": (412, 797, 1)},
    "selected, crossed": {"Native women": (7, 17, 0.789), "White men": (215, 412, 1)},
    "above the median, by sex": {"men": (50, 92, 1), "women": (34, 76, 0.82)},
    "above the median, by race": {
        "Hispanic": (18, 28, 1),
        "White": (15, 40, 0.58),
        "Black": (16, 32, 0.78),
        "Pacific": (5, 8, 0.97),
        "Asian": (10, 24, 0.65),
    },
    "federal": {
        "first": (60, 100, 1),
        "second": (45, 100, 0.75),
        "third": (48, 100, 0.8),
        "fourth": (51, 100, 0.85),
    },
}


@pytest.mark.parametrize("name", PRINTED)
def test_printed_examples_of_the_rules(name: str) -> None:
    """New York's of 6 RCNY 5-301, and the federal questions and answers of 1979."""
    applicants = {group: (selected, n) for group, (selected, n, _) in PRINTED[name].items()}
    found = wide_ratios(counts(applicants), attributes="g", selected="d", favorable="selected")
    for group, (_, _, ratio) in PRINTED[name].items():
        digits = len(str(ratio).partition(".")[2])
        assert of(found, group)["ratio"] == pytest.approx(ratio, abs=0.51 * 10**-digits)
    below = (
        {"second"} if name == "federal" else {g for g, row in PRINTED[name].items() if row[2] < 0.8}
    )
    assert set(found.filter(pl.col("ratio") < 0.8 - 1e-12)["segment"]) == below
    judged = found.filter(pl.col("verdict").is_null())
    assert set(judged["segment"]) == set(found["reference"])


def test_exactly_four_fifths_is_not_below() -> None:
    table = wide_ratios(
        counts({"a": (60, 100), "b": (48, 100), "c": (47, 100)}),
        attributes="g",
        selected="d",
        favorable="selected",
    )
    assert of(table, "b")["ratio"] == pytest.approx(0.8)
    many = counts({"a": (60_000, 100_000), "b": (48_000, 100_000), "c": (47_000, 100_000)})
    assert ratios(many)["verdict"].to_list() == [None, "inconclusive", "below four fifths"]
    close = of(ratios(counts({"a": (600, 1000), "b": (590, 1000)})), "b")
    assert close["verdict"] == "at least four fifths"


def test_near_the_limits_of_koopman() -> None:
    table = wide_ratios(
        counts({"a": (110, 197), "b": (1362, 1681)}),
        attributes="g",
        selected="d",
        favorable="selected",
    )
    score = confint_proportions_2indep(110, 197, 1362, 1681, compare="ratio", method="score")
    a = of(table, "a")
    assert [a["ratio_low"], a["ratio_high"]] == pytest.approx(score, abs=5e-4)


@st.composite
def weighted_rows(draw: st.DrawFn) -> pl.DataFrame:
    size = draw(st.integers(2, 60))
    seed = draw(st.integers(0, 10**6))
    random = np.random.default_rng(seed)
    weights = random.integers(1, 4, size) if draw(st.booleans()) else random.lognormal(size=size)
    return pl.DataFrame(
        {
            "g": random.choice(list("abcd"), size),
            "d": random.random(size) < draw(st.sampled_from([0.05, 0.5, 0.9])),
            "w": weights.astype(float),
        }
    )


@given(weighted_rows(), st.sampled_from(["highest", "named"]))
def test_against_the_definition(frame: pl.DataFrame, reference: str) -> None:
    rates: dict[str, Rate] = {}
    for (g,), rows in frame.group_by("g", maintain_order=True):
        rate = rate_of(*(rows.filter(d=d)["w"].to_numpy() for d in (True, False)))
        assert rate
        rates[str(g)] = rate
    weight = {g: float(frame.filter(g=g)["w"].sum()) for g in rates}
    top = max(rate.value for rate in rates.values())
    ties = [g for g, rate in sorted(rates.items()) if rate.value >= top - 1e-12]
    named = reference == "named" and "a" in rates
    best = "a" if named else max(ties, key=lambda g: weight[g])
    table = wide_ratios(
        frame,
        attributes="g",
        selected="d",
        favorable="selected",
        weight="w",
        min_share=0,
        reference="a" if named else "highest",
    )
    assert table["segment"].to_list() == sorted(rates)
    k, other = len(rates), rates[best]
    joint = math.nan
    if k > 1:
        joint = float(stats.studentized_range.ppf(0.95, k, np.inf)) / math.sqrt(2)
    if k > 1 and named:
        joint = float(stats.norm.ppf((1 + 0.95 ** (1 / (k - 1))) / 2))
    for g, rate in rates.items():
        row = of(table, g)
        assert row["reference"] == best
        assert row["value"] == pytest.approx(rate.value)
        limits = [row["value_low"], row["value_high"]]
        assert limits == pytest.approx(rate.limits(0.95), abs=1e-9)
        if other.value == 0:
            assert row["ratio"] is row["verdict"] is None
            continue
        assert row["ratio"] == pytest.approx(rate.value / other.value)
        if g == best:
            assert row["ratio_low"] is row["ratio_high"] is row["p_value"] is None
            continue
        pair = rate, other
        quantiles = [pair_quantile(joint, *pair)] * 2
        if named:
            quantiles = [student_quantile(joint, each.lost) for each in pair]
        shares = [
            (each.value, *each.limits(0.95, quantile))
            for each, quantile in zip(pair, quantiles, strict=True)
        ]
        low, high = ratio_limits(*shares)
        found = row["ratio_low"], row["ratio_high"]
        assert found[0] == pytest.approx(low, abs=1e-7)
        assert found[1] is None if math.isinf(high) else found[1] == pytest.approx(high, rel=1e-6)
        if rate.lost or other.lost:
            p_value = common_test(rate, other)[0]
            p_value = p_value if named else plain_picked.p_value(p_value, k)
            assert row["p_value"] == pytest.approx(p_value, rel=1e-6, abs=1e-12)
        surely = found[1] is not None and found[1] < 0.8
        verdict = "at least four fifths" if found[0] >= 0.8 else "inconclusive"
        assert row["verdict"] == ("below four fifths" if surely else verdict)


@given(weighted_rows())
def test_fairlearn_has_the_same_smallest_ratio(frame: pl.DataFrame) -> None:
    table = wide_ratios(
        frame, attributes="g", selected="d", favorable="selected", weight="w", min_share=0
    )
    if table["ratio"].null_count() == 0:
        d, g = frame["d"].to_numpy(), frame["g"].to_numpy()
        expected = demographic_parity_ratio(
            y_true=d, y_pred=d, sensitive_features=g, sample_weight=frame["w"].to_numpy()
        )
        assert table["ratio"].min() == pytest.approx(expected)


def test_p_values_are_adjusted_for_all_tests_of_the_table() -> None:
    random = np.random.default_rng(5)
    frame = pl.DataFrame(
        {
            "g": random.choice(list("abc"), 600),
            "h": random.choice(["x", "y"], 600),
            "s": random.normal(size=600),
        }
    ).with_columns(s=pl.col("s") + (pl.col("g") == "a") * 0.4)
    table = wide_ratios(
        frame, "s", attributes=["g", "h"], intersections=True, threshold=0.3, favorable="selected"
    )
    tested = table.drop_nulls("p_value").sort("p_value")
    assert tested.height == 2 + 1 + 5
    factors = np.arange(tested.height, 0, -1)
    expected = np.minimum(np.maximum.accumulate(tested["p_value"].to_numpy() * factors), 1)
    assert tested["p_adjusted"].to_numpy() == pytest.approx(expected)
    plain = wide_ratios(
        frame,
        "s",
        attributes=["g", "h"],
        intersections=True,
        threshold=0.3,
        favorable="selected",
        adjust="none",
    )
    assert plain["p_adjusted"].equals(plain["p_value"])


@pytest.mark.parametrize("weight", [None, 0.1])
def test_five_expected_rows_are_not_fewer_by_rounding(weight: float | None) -> None:
    # Of 54 rows 15 are selected or 15 rejected: 5 are expected in a cell of the smaller group.
    tables = [(x, 15 - x) for x in range(16)] + [(18 - x, 21 + x) for x in range(16)]
    scores = {f"{x},{y}": [1] * x + [0] * (18 - x) + [1] * y + [0] * (36 - y) for x, y in tables}
    frame = pl.DataFrame({"g": ["a"] * 18 + ["b"] * 36, **scores})
    options: dict[str, Any] = {} if weight is None else {"weight": pl.lit(weight)}
    impact = wide_ratios(
        frame, [*scores], attributes="g", threshold=1, favorable="selected", **options
    )
    impact = impact.filter(pl.col("p_value").is_not_null())
    gaps = wide_gaps(
        frame, pl.int_range(pl.len()) % 2, [*scores], by="g", threshold=1, **options, min_rows=0
    ).filter(g="a")
    expected = {f"{x},{y}": proportions_ztest([x, y], [18, 36])[1] for x, y in tables}
    for table, p_value in ((impact, "p_value"), (gaps, "selection_rate_gap_p_value")):
        assert dict(table.select("model", p_value).rows()) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("size", [1, 2, 11, 40])
def test_median(size: int) -> None:
    random = np.random.default_rng(size)
    groups = random.choice(["a", "b", "?"], size)
    frame = pl.DataFrame({"g": groups, "s": random.normal(size=size).round(1)})
    frame = frame.with_columns(pl.col("g").replace("?", None))
    above = pl.col("s") > float(np.median(frame["s"].to_numpy()))
    found = wide_ratios(frame, "s", attributes="g", threshold="median", favorable="selected")
    expected = wide_ratios(frame, attributes="g", selected=above, favorable="selected")
    assert set(found["model"]) <= {"s"}
    assert_frame_equal(found.drop("model"), expected.drop("model"))


def test_rates_of_nine_thousand_categories() -> None:
    names = [f"category {place:04}" for place in range(9000)]
    scores = np.random.default_rng(3).random(18_000)
    frame = pl.DataFrame({"g": names * 2, "s": scores})
    table = wroc.impact_ratios(frame, "s", attributes="g", threshold=0.5, favorable="selected")
    rates = table.filter(metric="selection_rate").select("segment", "value")
    expected = frame.group_by(segment="g").agg(value=(pl.col("s") >= 0.5).mean()).sort("segment")
    assert_frame_equal(rates, expected)


def test_median_of_weights_and_of_each_model() -> None:
    frame = pl.DataFrame(
        {"g": list("aabb"), "s": [4, 3, 2, 1], "t": [1, 2, 3, 4], "w": [1, 2, 3, 2]}
    )
    table = wide_ratios(
        frame, ["s", "t"], attributes="g", weight="w", threshold="median", favorable="selected"
    )
    assert table["model"].to_list() == ["s", "t", "s", "t"]
    assert table["value"].to_list() == pytest.approx([1, 0, 0, 0.4])


def test_equal_scores_select_nobody_above_their_median() -> None:
    table = wide_ratios(
        pl.DataFrame({"g": ["a", "b"], "s": [1, 1]}),
        "s",
        attributes="g",
        threshold="median",
        favorable="selected",
    )
    assert table["value"].to_list() == [0, 0]
    assert table["ratio"].to_list() == [None, None]


def test_no_infinite_score_is_above_a_median_that_is_infinite() -> None:
    frame = pl.DataFrame({"g": ["a", "b"] * 20, "s": [float("inf")] * 40})
    table = wide_ratios(frame, "s", attributes="g", threshold="median", favorable="selected")
    assert table["value"].to_list() == [0, 0]


@pytest.mark.parametrize("rows", [0, 2])
def test_no_score_is_above_the_median_of_none(rows: int) -> None:
    schema = {"g": pl.String, "s": pl.Float64}
    frame = pl.DataFrame({"g": ["a", "b"], "s": [None, None]}, schema=schema).head(rows)
    table = wide_ratios(frame, "s", attributes="g", threshold="median", favorable="selected")
    assert table.select("segment", "n", "value", "reason").rows() == [
        (g, 0, None, "share below 2%") for g in "ab"[:rows]
    ]


def test_unknown_categories() -> None:
    frame = pl.DataFrame(
        {
            "race": ["a", "a", "b", "", None, "b", "a"],
            "sex": ["f", "m", "f", "m", "m", None, "f"],
            "d": [True, False, True, True, False, False, True],
        }
    )
    options: dict[str, Any] = {"attributes": ["race", "sex"], "selected": "d"}
    table = wide_ratios(
        frame,
        **options,
        intersections=True,
        unknown=["", "Prefer not to say"],
        favorable="selected",
    )
    assert table.select("attribute", "segment", "n").rows() == [
        ("race", "a", 3),
        ("race", "b", 2),
        ("race", None, 2),
        ("sex", "f", 3),
        ("sex", "m", 3),
        ("sex", None, 1),
        (f"race {TIMES} sex", "a, f", 2),
        (f"race {TIMES} sex", "a, m", 1),
        (f"race {TIMES} sex", "b, f", 1),
        (f"race {TIMES} sex", None, 3),
    ]
    kept = wide_ratios(frame, **options, unknown="keep", intersections=False, favorable="selected")
    races = kept.filter(attribute="race")
    assert races["segment"].to_list() == ["(missing)", "", "a", "b"]
    assert "an unknown category" not in races["reason"]
    assert set(races["reference"]) == {""}
    numbers = pl.DataFrame({"g": [1, 2, 2, 99], "d": [True, False, True, True]})
    found = wide_ratios(numbers, attributes="g", selected="d", favorable="selected", unknown=[99])
    assert found["segment"].to_list() == ["1", "2", None]


def test_small_categories_are_shown_and_left_out() -> None:
    frame = counts({"a": (1, 1), "b": (50, 99), "c": (20, 60)})
    table = wide_ratios(frame, attributes="g", selected="d", favorable="selected")
    a = of(table, "a")
    assert (a["reason"], a["reference"]) == ("share below 2%", "b")
    assert a["ratio"] == pytest.approx(99 / 50)
    assert a["ratio_low"] is a["p_value"] is a["verdict"] is None
    # Left out of the number of comparisons as well.
    two = wide_ratios(
        frame.filter(pl.col("g") != "a"), attributes="g", selected="d", favorable="selected"
    )
    joint = ["ratio_low", "ratio_high", "p_adjusted"]
    assert_frame_equal(
        table.filter(segment="c").select(joint), two.filter(segment="c").select(joint)
    )
    kept = wide_ratios(frame, attributes="g", selected="d", favorable="selected", min_share=0)
    assert set(kept["reference"]) == {"a"}
    exactly = wide_ratios(
        frame, attributes="g", selected="d", favorable="selected", min_share=1 / 160
    )
    assert "share below 0.625%" not in exactly["reason"]
    assert exactly["ratio_low"].null_count() == 1


def test_of_equal_rates_the_heavier_is_the_reference_then_the_first() -> None:
    equal = counts({"a": (1, 2), "b": (5, 10), "c": (5, 10)})
    assert set(
        wide_ratios(equal, attributes="g", selected="d", favorable="selected")["reference"]
    ) == {"b"}


def test_references_by_name() -> None:
    frame = PAIR.with_columns(h=pl.col("w") > 1)
    options: dict[str, Any] = {"attributes": ["g", "h"], "selected": "d", "min_share": 0}
    options["intersections"] = True
    crossed = f"g {TIMES} h"
    named = {"g": "a", "h": False, crossed: "b, false"}
    table = wide_ratios(frame, **options, reference=named, favorable="selected")
    found = dict(
        table.drop_nulls("reference").select("attribute", "reference").unique().iter_rows()
    )
    assert found == {"g": "a", "h": "false", crossed: "b, false"}
    some = wide_ratios(frame, **options, reference={"g": "a"}, favorable="selected")
    highest = wide_ratios(frame, **options, favorable="selected")
    kept = ["attribute", "segment", "reference", "ratio", "ratio_high"]
    others = pl.col("attribute") != "g"
    assert_frame_equal(some.filter(others).select(kept), highest.filter(others).select(kept))
    called = counts({"highest": (1, 4), "b": (3, 4)})
    one = wide_ratios(
        called, attributes="g", selected="d", favorable="selected", reference={"g": "highest"}
    )
    assert of(one, "b")["ratio"] == 3


def test_missing_rows_and_rows_without_weight_are_left_out() -> None:
    frame = pl.DataFrame(
        {
            "g": list("aaaabbb"),
            "s": [0.9, None, float("nan"), 0.1, 0.8, 0.7, 0.2],
            "w": [1.0, 1, 1, 1, None, 0, 2],
        }
    )
    table = wide_ratios(frame, "s", attributes="g", threshold=0.5, favorable="selected", weight="w")
    assert table["n"].to_list() == [2, 1]
    assert table["value"].to_list() == [0.5, 0]


@pytest.mark.parametrize("groups", [["a", "a"], [None, None], []])
def test_nothing_to_compare_with(groups: list[str | None]) -> None:
    frame = pl.DataFrame(
        {"g": groups, "d": [True, False][: len(groups)]}, {"g": pl.String, "d": pl.Boolean}
    )
    table = wide_ratios(frame, attributes="g", selected="d", favorable="selected")
    assert table.height == len(set(groups))
    assert table["ratio"].to_list() == ([1.0] if groups == ["a", "a"] else [None] * table.height)
    for name in ("ratio_low", "ratio_high", "p_value", "p_adjusted"):
        assert table[name].null_count() == table.height


def test_a_category_without_weight_has_no_rate() -> None:
    frame = pl.DataFrame({"g": ["a", "b", "c"], "d": [True, True, None]})
    c = of(
        wide_ratios(frame, attributes="g", selected="d", favorable="selected", min_share=0),
        "c",
    )
    assert (c["n"], c["value"], c["ratio"], c["reason"]) == (0, None, None, "undefined")
    none = wide_ratios(
        frame.with_columns(d=pl.lit(None)), attributes="g", selected="d", favorable="selected"
    )
    assert none["n"].to_list() == [0, 0, 0]
    assert none["value"].null_count() == 3


def test_nobody_selected_in_a_category() -> None:
    a = of(
        wide_ratios(
            counts({"a": (0, 50), "b": (25, 50)}),
            attributes="g",
            selected="d",
            favorable="selected",
        ),
        "a",
    )
    assert a["ratio"] == a["ratio_low"] == 0
    assert a["verdict"] == "below four fifths"


@pytest.mark.parametrize(
    ("favorable", "metric", "rates", "best"),
    [
        ("selected", "selection_rate", [0.25, 0.8, 0.5], "b"),
        ("rejected", "favorable_rate", [0.75, 0.2, 0.5], "a"),
    ],
)
def test_values_are_ratios_and_rates_have_rows(
    favorable: Any, metric: str, rates: list[float], best: str
) -> None:
    table = wroc.impact_ratios(PAIR, attributes="g", selected="d", favorable=favorable)
    assert table["metric"].to_list() == [metric, "impact_ratio"] * 3
    assert table["gap"].null_count() == table.height
    ratio, rate = (table.filter(metric=name) for name in ("impact_ratio", metric))
    for end in ("", "_low", "_high"):
        assert ratio[f"value{end}"].equals(ratio[f"ratio{end}"])
    assert ratio["reference_value"].to_list() == [1, 1, None]
    assert ratio["value"].drop_nulls().max() == 1
    assert rate["value"].to_list() == pytest.approx(rates)
    assert rate["value_low"].null_count() == 0
    assert rate["reference_value"].to_list() == [pytest.approx(max(rates[:2]))] * 2 + [None]
    for rows in (ratio, rate):
        assert rows["reference"].to_list() == [best, best, None]
    assert rate["verdict"].null_count() == rate["ratio"].null_count() == 3


DECISIONS = "^decisions must come from `selected`, or from `score` and `threshold`; found "
REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "no decision": ({}, ValueError, DECISIONS + "none$"),
    "score alone": ({"score": "w"}, ValueError, DECISIONS + "`score`$"),
    "threshold alone": ({"threshold": 1}, ValueError, DECISIONS + "`threshold`$"),
    "two decisions": (
        {"score": "w", "threshold": 1, "selected": "d"},
        ValueError,
        DECISIONS + "`score` and `selected` and `threshold`$",
    ),
    "threshold on a Boolean": (
        {"score": "d", "threshold": 1},
        TypeError,
        "^`score` must be numeric; found column 'd' of type Boolean$",
    ),
    "threshold of another kind": (
        {"score": "w", "threshold": "mean"},
        ValueError,
        "^`threshold` must be a number or 'median' here; found 'mean': take the number that a rule",
    ),
    "Boolean threshold": (
        {"score": "w", "threshold": True},
        TypeError,
        "^`threshold` must be a number",
    ),
    "groups as decisions": (
        {"selected": "g"},
        TypeError,
        "^`selected` must be Boolean or hold 0 and 1; found column 'g' of type String",
    ),
    "decisions of no column": (
        {"selected": "x"},
        pl.exceptions.ColumnNotFoundError,
        "^`selected` must",
    ),
    "no attribute": (
        {"selected": "d", "attributes": None},
        TypeError,
        "^`attributes` must name the groups",
    ),
    "several attributes with one reference": (
        {"selected": "d", "attributes": ["g", "w"], "reference": "a"},
        ValueError,
        "^`reference` must be 'highest' or map attributes to segments where there are several; f",
    ),
    "reference of no attribute": (
        {"selected": "d", "reference": {"h": "a"}},
        ValueError,
        r"^`reference` must name attributes out of \['g'\]; found 'h'$",
    ),
    "reference of another type": (
        {"selected": "d", "attributes": "w", "reference": 0.5},
        ValueError,
        "^`reference` must give 'w' .Int64. one of its values or the name of a segment; found 0.5$",
    ),
    "no reference": (
        {"selected": "d", "reference": None},
        ValueError,
        "^`reference` must be 'highest'",
    ),
    "unknown option": (
        {"selected": "d", "unknown": "drop"},
        ValueError,
        "^`unknown` must be 'exclude', 'keep' or a list of values; found 'drop'$",
    ),
    "unknown value of another type": (
        {"selected": "d", "attributes": "w", "unknown": ["?"]},
        ValueError,
        "^`unknown` must hold possible values of 'w' .Int64.; found '[?]'$",
    ),
    "unknown number": ({"selected": "d", "unknown": 3}, TypeError, "^`unknown` must be 'exclude'"),
    "favorable": (
        {"selected": "d", "favorable": "hired"},
        ValueError,
        "^`favorable` must say which decision is good for a person: 'selected' if being selected",
    ),
    "intersections": (
        {"selected": "d", "intersections": 1},
        TypeError,
        "^`intersections` must be True",
    ),
    "lists": (
        {"selected": "d", "attributes": pl.concat_list("w").alias("l")},
        TypeError,
        "^`attributes` must hold values that can be written as text",
    ),
    "design": (
        {"selected": "d", "design": 3},
        TypeError,
        "^`design` must be a column of clusters, a `Survey` or `ReplicateWeights`; found 3",
    ),
}
REFUSED_AT_COLLECT: dict[str, tuple[dict[str, Any], str]] = {
    "unknown reference": (
        {"selected": "d", "reference": "z"},
        r"^`reference` must be 'highest' or a segment of g \('a', 'b'\); found no segment 'z'$",
    ),
    "small reference": (
        {"selected": "d", "reference": "a", "min_share": 0.5},
        "^`reference` must have at least `min_share` of the weight; found 'a' with 0.4",
    ),
    "negative weights": (
        {"selected": "d", "weight": pl.col("w") - 2},
        "^`weight` must be finite and zero or more; column 'w' holds -1",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("lazy", [False, True])
def test_impact_ratios_refuse_wrong_arguments_at_once(name: str, lazy: bool) -> None:
    arguments, kind, message = REFUSED[name]
    with pytest.raises(kind, match=message):
        UNTYPED.impact_ratios(
            PAIR.lazy() if lazy else PAIR,
            **{"attributes": "g", "favorable": "selected", **arguments},
        )


@pytest.mark.parametrize("name", REFUSED_AT_COLLECT)
def test_impact_ratios_refuse_wrong_values_at_collect(name: str) -> None:
    arguments, message = REFUSED_AT_COLLECT[name]
    options = {"attributes": "g", **arguments, "favorable": "selected"}
    with pytest.raises(ValueError, match=message):
        UNTYPED.impact_ratios(PAIR, **options)
    plan = UNTYPED.impact_ratios(PAIR.lazy(), **options)
    with pytest.raises(ValueError, match=message):
        plan.collect()


def test_categories_must_have_different_names() -> None:
    frame = pl.DataFrame({"g": ["a, b", "a"], "h": ["c", "b, c"], "d": [True, False]})
    with pytest.raises(ValueError, match="`attributes` must have values that name each seg"):
        wide_ratios(
            frame, attributes=["g", "h"], intersections=True, selected="d", favorable="selected"
        )
    missing = pl.DataFrame({"g{}": ["(missing)", None], "d": [True, False]})
    with pytest.raises(ValueError, match=r"found \(missing\) twice in 'g\{\}'"):
        wide_ratios(missing, attributes="g{}", selected="d", favorable="selected", unknown="keep")


def test_counts_are_no_frames() -> None:
    counted = wroc.from_counts(wroc.score_counts(PAIR, "d", "w", by="g"))
    with pytest.raises(
        TypeError, match=r"`frame` must be a Polars DataFrame or LazyFrame, .* type Counts"
    ):
        UNTYPED.impact_ratios(counted, "w", attributes="g", threshold=1, favorable="selected")
