"""Limits and tests of weighted rates, against SciPy, plain Python and worked numbers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import plain_rates
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint, proportions_ztest

from polars_wroc.arrays import Array
from polars_wroc.stats.contrasts import Contrast
from polars_wroc.stats.levels import Level, RepeatedLooks
from polars_wroc.stats.rates import (
    Count,
    Rate,
    Sample,
    compare_tables,
    equal_rates,
    equal_values,
    equal_weighted_rates,
    fisher_p_value,
)

pytestmark = pytest.mark.usefixtures("undefined_is_nan")

LEVEL = Level(0.05)
LOOKS = Level(0.05, RepeatedLooks(400.0, 200.0))
Rows = tuple[Sequence[float], Sequence[float]]

# Outcomes and weights of methods3c section 1
EIGHT: Rows = ([1, 1, 0, 1, 0, 0, 0, 0], [1, 2, 1, 1, 2, 1, 3, 1])
TEN: Rows = ([1, 0, 0, 0, 0, 0, 0, 0, 0, 0], [2, 1, 1, 1, 3, 1, 1, 2, 1, 1])


def count(weights: Array) -> Count:
    values = weights.sum(), (weights**2).sum(), float((weights > 0).sum())
    return Count(*(np.array([value]) for value in values))


def rate(rows: Rows) -> Rate:
    """Return the rate of rows with outcomes and weights."""
    outcome, weight = np.array(rows[0]), np.array(rows[1])
    cubes = np.array([(weight**3).sum()])
    return Rate(count(weight[outcome == 1]), count(weight[outcome == 0]), cubes)


def table(events: Array, rows: Array) -> Rate:
    """Return rates of rows of weight 1, of some rows many at once."""
    events, others = np.asarray(events, float), np.asarray(rows - events, float)
    return Rate(Count(events, events, events), Count(others, others, others), events + others)


def random_rows(rng: np.random.Generator, kind: str) -> Rows:
    size = int(rng.integers(3, 60))
    outcome = (rng.random(size) < rng.choice([0.05, 0.3, 0.9])).astype(float)
    weight = {
        "equal": np.full(size, 0.3),
        "lognormal": rng.lognormal(0, 0.8, size),
        "related": np.exp(0.6 * outcome + 0.5 * rng.normal(size=size)),
    }[kind]
    return outcome.tolist(), weight.tolist()


def plain(rows: Rows) -> plain_rates.Rate:
    outcome, weight = np.array(rows[0]), np.array(rows[1])
    found = plain_rates.rate_of(weight[outcome == 1], weight[outcome == 0])
    assert found is not None
    return found


# Limits


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (EIGHT, [0.3333333333, 0.1004816606, 0.7069948337]),
        (([0] * 8, EIGHT[1]), [0.0, 0.0, 0.4134902299]),
        (([1] * 3 + [0] * 7, [1.0] * 10), [0.3, 0.1077912674, 0.6032218525]),
        (TEN, [0.1428571429, 0.0231347682, 0.5185295779]),
    ],
)
def test_limits_of_worked_examples(rows: Rows, expected: list[float]) -> None:
    estimate = rate(rows).estimate()
    limits = estimate.limits(LEVEL.quantile(estimate.df))
    assert [*estimate.value, *np.ravel(limits)] == pytest.approx(expected, abs=5e-11)


def test_sizes_and_df_of_methods3c_section_1() -> None:
    value, complement, rho, at_zero, at_one, inverse_df = rate(EIGHT).sample()
    found = [*value, *rho, *at_zero, *at_one, *np.asarray(inverse_df)]
    expected = [0.3333333333, 0.1527777778, 0.1382850242, 0.1666666667, 0.0277777778]
    assert found == pytest.approx(expected, abs=5e-11)
    assert complement == pytest.approx(2 / 3)
    assert LEVEL.quantile(rate(EIGHT).df) == pytest.approx(2.0280940010, abs=5e-11)


@pytest.mark.parametrize("weight", [1.0, 0.3, 4e5])
def test_equal_weights_give_wilson_of_statsmodels_with_the_normal_quantile(weight: float) -> None:
    rows = [1.0] * 4 + [0.0] * 13, [weight] * 17
    estimate = rate(rows).estimate()
    assert np.isinf(estimate.df).all()
    limits = np.ravel(estimate.limits(LEVEL.quantile(estimate.df)))
    assert limits == pytest.approx(proportion_confint(4, 17, method="wilson"), abs=1e-12)


@pytest.mark.parametrize("kind", ["equal", "lognormal", "related"])
def test_limits_of_random_rows_equal_plain_python(kind: str) -> None:
    rng = np.random.default_rng(11)
    for _ in range(40):
        rows = random_rows(rng, kind)
        estimate = rate(rows).estimate()
        limits = np.ravel(estimate.limits(LEVEL.quantile(estimate.df)))
        assert limits == pytest.approx(plain(rows).limits(0.95), abs=1e-12)


@pytest.mark.parametrize(
    ("weights", "variance", "size", "expected"),
    [
        ((6.0, 4.0), 0.0524574209, 0.2185725872, [0.1441177495, 0.9303729480]),
        ((8.0, 5.0), 0.0511434511, 0.2160810811, [0.1520115787, 0.9345584960]),
    ],
)
def test_rates_by_clusters_of_statistics_md_section_1(
    weights: tuple[float, float], variance: float, size: float, expected: list[float]
) -> None:
    # Kish's size, for which any squares do, is larger than that of the variance.
    events, others = (Count(*[np.array([weight])] * 3) for weight in weights)
    by_clusters = Rate(events, others, np.array([sum(weights)]), np.array([variance]), 4.0)
    assert by_clusters.inverse_size == pytest.approx([size], rel=1e-8)
    limits = by_clusters.estimate().limits(LEVEL.quantile(by_clusters.df))
    assert np.ravel(limits) == pytest.approx(expected, abs=1e-9)


def test_variance_by_a_design_gives_at_most_kish_and_none_without() -> None:
    events, others = (
        Count(*(np.full(4, value) for value in (weight, weight, weight))) for weight in (3.0, 7.0)
    )
    rates = Rate(events, others, np.full(4, 10.0), np.array([0.001, 0.0, np.nan, 0.05]), 7.0)
    expected = [0.1, 0.1, np.nan, 0.05 / 0.21]
    assert rates.inverse_size == pytest.approx(expected, nan_ok=True)
    assert rates.df == 7
    low, high = rates.estimate().limits(2.0)
    assert np.isnan(low).tolist() == np.isnan(high).tolist() == [False, False, True, False]
    sample = rates.sample()
    assert sample.at_zero.tolist() == pytest.approx(sample.at_one.tolist(), nan_ok=True)


def test_a_rate_of_0_or_1_has_kishs_size_whatever_its_variance() -> None:
    everything, nothing = (Count(*[np.array([weight])] * 3) for weight in (8.0, 0.0))
    for rate_of_all in (
        Rate(everything, nothing, np.array([8.0]), np.array([0.03])),
        Rate(nothing, everything, np.array([8.0]), np.array([0.03])),
    ):
        assert rate_of_all.inverse_size.tolist() == [1 / 8]


def test_rates_of_no_rows_and_of_weights_that_overflow_are_undefined() -> None:
    weights = np.array([[0.0, 1e308, 1e-160, 1.0], [0.0, 1.5e308, 1e-160, 2.0]])
    events, others = (Count(each, each**2, np.array([0.0, 1, 1, 1])) for each in weights)
    cubes = (weights**3).sum(axis=0)
    found = Rate(events, others, cubes)
    assert np.isnan(found.value).tolist() == [True, True, False, False]
    assert np.isnan(found.inverse_size).tolist() == [True, True, True, False]
    low, _ = found.estimate().limits(2.0)
    assert np.isnan(low).tolist() == [True, True, True, False]
    p_value, _ = equal_rates(found, Rate(others, events, cubes), LEVEL)
    assert np.isnan(p_value).tolist() == [True, True, True, False]


@pytest.mark.parametrize("scale", [1e80, 1e-80])
def test_limits_do_not_depend_on_the_scale_of_weights(scale: float) -> None:
    outcome, weight = EIGHT
    one, other = (rate((outcome, [w * by for w in weight])).estimate() for by in (1.0, scale))
    assert np.ravel(one.limits(2.0)) == pytest.approx(np.ravel(other.limits(2.0)), rel=1e-12)


@pytest.mark.parametrize("scale", [1e110, 1e-110])
def test_limits_are_unknown_where_cubes_of_unequal_weights_overflow_or_underflow(
    scale: float,
) -> None:
    outcome, weight = EIGHT
    unequal, equal = (
        rate((outcome, [w * scale for w in weights])) for weights in (weight, [1.0] * 8)
    )
    assert np.isnan(unequal.estimate().limits(2.0)).all()
    expected = proportion_confint(3, 8, method="wilson")
    found = np.ravel(equal.estimate().limits(LEVEL.quantile(equal.df)))
    assert found == pytest.approx(expected, rel=1e-9)
    # The test needs squares only.
    assert equal_rates(unequal, equal, LEVEL).p_value[0] < 1


def test_few_effective_events_of_weighted_rows_are_flagged() -> None:
    assert rate(EIGHT).has_few_events.tolist() == [True]
    assert rate(([1] * 4 + [0] * 4, [1.0] * 8)).has_few_events.tolist() == [False]
    many = [1.0, 0.0] * 40, [1.0, 2.0, 2.0, 1.0] * 20
    assert rate(many).has_few_events.tolist() == [False]


# Tests at a common value


def test_the_gap_of_two_weighted_rates_worked_by_hand() -> None:
    p_value, df = equal_rates(rate(EIGHT), rate(TEN), LEVEL)
    assert p_value == pytest.approx(0.3952598106, abs=5e-11)
    assert 1 / df == pytest.approx(0.0126069893, abs=5e-11)
    contrast = Contrast(rate(EIGHT).estimate(), rate(TEN).estimate())
    limits = contrast.limits(LEVEL.quantile(rate(EIGHT).df), LEVEL.quantile(rate(TEN).df))
    assert contrast.gap == pytest.approx(0.1904761905)
    assert np.ravel(limits) == pytest.approx([-0.2515076100, 0.5828489263], abs=5e-11)


def test_30_and_18_of_40_rows_worked_by_hand() -> None:
    rates = [rate(([1.0] * events + [0.0] * (40 - events), [1.0, 2.0] * 20)) for events in (30, 18)]
    p_value, df = equal_rates(rates[0], rates[1], LEVEL)
    assert p_value == pytest.approx(0.0095664531, abs=5e-11)
    assert 1 / df == pytest.approx(0.0013888889, abs=5e-11)
    contrast = Contrast(rates[0].estimate(), rates[1].estimate())
    limits = contrast.limits(LEVEL.quantile(rates[0].df), LEVEL.quantile(rates[1].df))
    assert np.ravel(limits) == pytest.approx([0.0723308229, 0.4882205043], abs=5e-11)


def test_aucs_of_methods3c_section_4() -> None:
    # Both classes have four rows, so that both AUCs count alike in the common one.
    one, other = (
        Sample(*(np.array([x]) for x in (value, 1 - value, 0.5, size, size)))
        for value, size in ((0.8125, 0.2818926482), (0.9375, 0.3166666667))
    )
    p_value, df = equal_values(one, other, LEVEL, few=True)
    assert p_value == pytest.approx(0.6251695868, abs=1e-9)
    assert np.isinf(df).all()


@pytest.mark.parametrize(
    "kinds", [*itertools.combinations(("equal", "lognormal", "related"), 2), ("related",) * 2]
)
def test_common_rate_of_random_rows_equals_plain_python(kinds: tuple[str, str]) -> None:
    rng = np.random.default_rng(12)
    for _ in range(40):
        one, other = (random_rows(rng, kind) for kind in kinds)
        p_value, df = equal_weighted_rates(rate(one), rate(other), LEVEL)
        expected, lost = plain_rates.common_test(plain(one), plain(other))
        assert p_value == pytest.approx(expected, abs=1e-9)
        assert 1 / df == pytest.approx(lost, abs=1e-12)


def test_p_values_of_swapped_rates_and_of_their_complements_are_equal() -> None:
    rng = np.random.default_rng(13)
    for _ in range(30):
        one, other = (rate(random_rows(rng, "lognormal")) for _ in range(2))
        p_value = equal_rates(one, other, LEVEL).p_value
        assert equal_rates(other, one, LEVEL).p_value == pytest.approx(p_value, rel=1e-9)
        mirrored = equal_rates(
            Rate(one.others, one.events, one.cubes),
            Rate(other.others, other.events, other.cubes),
            LEVEL,
        )
        assert mirrored.p_value == pytest.approx(p_value, rel=1e-9)


def test_rates_of_0_or_1_on_both_sides_have_p_value_1() -> None:
    for outcome in (0.0, 1.0):
        one, other = ([outcome] * 8, EIGHT[1]), ([outcome] * 10, TEN[1])
        assert equal_rates(rate(one), rate(other), LEVEL).p_value == 1
    assert equal_rates(table(np.zeros(1), np.full(1, 5)), table(np.zeros(1), np.ones(1)), LEVEL)[
        0
    ].tolist() == [1.0]


# Tables of four


def mid_p(events: int, rows: int, other_events: int, other_rows: int) -> float:
    """Return the mid-p of Fisher's test by the probabilities of all tables."""
    law = stats.hypergeom(rows + other_rows, events + other_events, rows)
    numbers = np.arange(rows + 1)
    chances, own = law.pmf(numbers), law.pmf(events)
    tied = np.isclose(chances, own, rtol=1e-7, atol=0)
    return float(chances[(chances < own) & ~tied].sum() + chances[tied].sum() / 2)


def all_tables(rows: int, other_rows: int) -> tuple[Array, Array]:
    events, other_events = np.meshgrid(np.arange(rows + 1), np.arange(other_rows + 1))
    return events.ravel().astype(float), other_events.ravel().astype(float)


@pytest.mark.parametrize(("rows", "other_rows"), [(1, 1), (3, 9), (12, 5), (10, 10)])
def test_fisher_of_all_tables_equals_scipy_and_mid_p_the_sum_of_chances(
    rows: int, other_rows: int
) -> None:
    events, other_events = all_tables(rows, other_rows)
    sizes = np.full_like(events, rows), np.full_like(events, other_rows)
    by_fisher = fisher_p_value(events, sizes[0], other_events, sizes[1], "fisher")
    by_mid_p = fisher_p_value(events, sizes[0], other_events, sizes[1])
    for place, (a, b) in enumerate(zip(events.astype(int), other_events.astype(int), strict=True)):
        four = [[a, rows - a], [b, other_rows - b]]
        assert by_fisher[place] == pytest.approx(stats.fisher_exact(four).pvalue, rel=1e-9)
        assert by_mid_p[place] == pytest.approx(mid_p(a, rows, b, other_rows), rel=1e-9)


@pytest.mark.parametrize("four", [(3, 2000, 1, 9), (0, 5000, 4, 30), (2, 7, 900, 100_000)])
def test_rare_outcomes_of_many_rows_are_compared_by_fisher(four: tuple[int, ...]) -> None:
    events, rows, other_events, other_rows = (np.array([float(n)]) for n in four)
    one, other = table(events, rows), table(other_events, other_rows)
    a, n, b, m = four
    expected = stats.fisher_exact([[a, n - a], [b, m - b]]).pvalue
    assert equal_rates(one, other, LEVEL, "fisher").p_value == pytest.approx(expected, rel=1e-8)
    assert equal_rates(one, other, LEVEL).p_value == pytest.approx(mid_p(a, n, b, m), rel=1e-8)


def test_enough_expected_rows_are_compared_by_the_pooled_variance() -> None:
    events, rows = np.array([12.0, 40.0]), np.array([60.0, 400.0])
    other_events, other_rows = np.array([30.0, 90.0]), np.array([80.0, 500.0])
    p_value = equal_rates(table(events, rows), table(other_events, other_rows), LEVEL).p_value
    for place in range(2):
        counts = [events[place], other_events[place]], [rows[place], other_rows[place]]
        assert p_value[place] == pytest.approx(proportions_ztest(*counts)[1], rel=1e-10)


def test_exactly_five_expected_rows_need_no_exact_test() -> None:
    # 10 of 20 rows and 0 of 20: 5 are expected in each of two cells.
    one, other = table(np.array([10.0]), np.array([20.0])), table(np.zeros(1), np.array([20.0]))
    expected = proportions_ztest([10, 0], [20, 20])[1]
    assert equal_rates(one, other, LEVEL).p_value == pytest.approx(expected, rel=1e-10)


def test_frequency_weights_below_one_row_are_compared_at_the_common_rate() -> None:
    counts = [Count(*[np.array([w])] * 3) for w in (0.5, 2.25, 1.5, 3.0)]
    one, other = (
        Rate(events, rest, events.weight + rest.weight) for events, rest in (counts[:2], counts[2:])
    )
    assert np.isnan(compare_tables(one, other)).all()
    found, expected = equal_rates(one, other, LEVEL), equal_weighted_rates(one, other, LEVEL)
    assert found.p_value == expected.p_value


def test_equal_weights_of_a_third_have_the_p_value_of_weights_of_1() -> None:
    outcomes = [1.0] * 3 + [0.0] * 4, [1.0] + [0.0] * 8
    found = []
    for weight in (1.0, 1 / 3):
        one, other = (rate((each, [weight] * len(each))) for each in outcomes)
        found.append(equal_rates(one, other, LEVEL).p_value)
    assert found[0] == pytest.approx(mid_p(3, 7, 1, 9), rel=1e-9)
    assert found[1] == pytest.approx(found[0], rel=1e-9)


# Repeated looks


def test_equal_weights_at_looks_have_the_p_value_of_their_limits() -> None:
    events, other_events = all_tables(15, 40)
    one, other = (
        table(events, np.full_like(events, 15)),
        table(other_events, np.full(events.size, 40)),
    )
    low, high = Contrast(one.estimate(), other.estimate()).limits(LOOKS.quantile())
    p_value = equal_rates(one, other, LOOKS).p_value
    assert ((p_value <= 0.05) == ((low > 0) | (high < 0))).all()


def test_rates_at_looks_of_methods3a_section_2() -> None:
    hundred = np.array([100.0])
    one, other = table(np.array([15.0]), hundred), table(np.array([30.0]), hundred)
    assert equal_rates(one, other, LOOKS).p_value == pytest.approx(0.1739735863, abs=5e-11)


def test_weighted_rates_at_looks_have_larger_p_values() -> None:
    one, other = rate(EIGHT), rate(TEN)
    at_looks = equal_rates(one, other, LOOKS)
    assert (at_looks.p_value > equal_rates(one, other, LEVEL).p_value).all()
    assert at_looks.df == pytest.approx(equal_rates(one, other, LEVEL).df)


# Many at once


def test_thousands_of_tables_have_the_p_values_of_single_ones() -> None:
    rng = np.random.default_rng(14)
    rows, other_rows = rng.integers(1, 300, (2, 3000))
    events, other_events = rng.binomial(rows, 0.1), rng.binomial(other_rows, 0.12)
    found = equal_rates(table(events, rows), table(other_events, other_rows), LEVEL).p_value
    for place in range(0, 3000, 100):
        each = np.array([place])
        one, other = table(events[each], rows[each]), table(other_events[each], other_rows[each])
        assert found[place] == pytest.approx(equal_rates(one, other, LEVEL).p_value[0], rel=1e-12)


def test_no_segments_have_no_tests() -> None:
    none = np.zeros(0)
    empty = table(none, none)
    for level in (LEVEL, LOOKS):
        assert equal_rates(empty, empty, level).p_value.size == 0
    assert empty.estimate().limits(LEVEL.quantile(empty.df)).low.size == 0
