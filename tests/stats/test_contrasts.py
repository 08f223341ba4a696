"""Differences and ratios of estimates, against statsmodels, root finding and worked numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize, stats
from statsmodels.stats.proportion import confint_proportions_2indep

from polars_wroc.arrays import Array
from polars_wroc.stats.contrasts import (
    Contrast,
    combine_margins,
    credible_correlation,
    find_gap_limits,
    p_value_of_limits,
)
from polars_wroc.stats.estimates import Limits, Scale, Wald, Wilson
from polars_wroc.stats.levels import Level, RepeatedLooks

pytestmark = pytest.mark.usefixtures("undefined_is_nan")

LEVEL = Level(0.05)
Z = float(LEVEL.quantile())
LOOKS = Level(0.05, RepeatedLooks(400.0, 200.0))


def rate(value: float, size: float) -> Wilson:
    """Return a rate with an effective sample size."""
    inverse = np.array([1 / size])
    return Wilson(np.array([value]), 1 - np.array([value]), inverse, inverse)


def random_rates(seed: int, segments: int = 400) -> Wilson:
    rng = np.random.default_rng(seed)
    events = rng.binomial(60, rng.choice([0.0, 0.05, 0.3, 0.9, 1.0], segments))
    size = 1 / rng.uniform(10, 300, segments)
    return Wilson(events / 60, 1 - events / 60, size, size)


def random_contrast(correlation: float = 0.0) -> Contrast:
    return Contrast(random_rates(1), random_rates(2), correlation=correlation)


# Limits


@pytest.mark.parametrize(("a", "n", "b", "m"), [(15, 100, 30, 100), (0, 20, 3, 41), (7, 7, 1, 9)])
def test_difference_of_rates_is_newcombe_of_statsmodels(a: int, n: int, b: int, m: int) -> None:
    expected = confint_proportions_2indep(a, n, b, m, method="newcomb", compare="diff")
    low, high = Contrast(rate(a / n, n), rate(b / m, m)).limits(Z)
    assert [*low, *high] == pytest.approx(expected, abs=1e-12)


def test_difference_and_ratio_of_methods2_section_6() -> None:
    contrast = Contrast(rate(0.3, 100), rate(0.15, 100))
    joint = LEVEL.joint_quantile(np.array([3.0]))
    for quantile, expected in ((Z, [0.03411, 0.26149]), (joint, [0.01104, 0.28267])):
        assert np.ravel(contrast.limits(quantile)) == pytest.approx(expected, abs=5e-6)
    for quantile, expected in ((Z, [0.28894, 0.86105]), (joint, [0.26045, 0.95327])):
        inverse = Contrast(contrast.other, contrast.own).ratio_limits(quantile)
        assert np.ravel(inverse) == pytest.approx(expected, abs=5e-6)


def test_difference_and_ratio_at_looks_of_methods3a_section_2() -> None:
    contrast, quantile = Contrast(rate(0.15, 100), rate(0.3, 100)), LOOKS.quantile()
    expected = [-0.3227040851, 0.0335282602]
    assert np.ravel(contrast.limits(quantile)) == pytest.approx(expected, abs=5e-11)
    expected = [0.2143448301, 1.1524502356]
    assert np.ravel(contrast.ratio_limits(quantile)) == pytest.approx(expected, abs=5e-11)
    assert contrast.p_value(LEVEL) == pytest.approx(0.0115012320, abs=5e-11)
    assert contrast.p_value(LOOKS) == pytest.approx(0.1739735863, abs=5e-11)


def test_gap_by_clusters_of_statistics_md_section_1() -> None:
    # Both effective sizes follow from V; rho is -.1986798536, and there are 3 degrees of freedom.
    own, other = rate(0.8, 0.16 / 0.0635294118), rate(0.4, 0.24 / 0.0933333333)
    contrast = Contrast(own, other, correlation=-0.1986798536)
    expected = [-0.5304332285, 0.8441813444]
    assert np.ravel(contrast.limits(LEVEL.quantile(3.0))) == pytest.approx(expected, abs=5e-10)


def test_difference_of_aucs_of_methods3c_section_4() -> None:
    sizes = np.array([[0.25], [0.25], [0.25], [0.2089749645]])
    one = Wilson(np.array([0.8125]), np.array([0.1875]), sizes[0], sizes[1], skewness=1 / 12)
    other = Wilson(np.array([0.9375]), np.array([0.0625]), sizes[2], sizes[3], skewness=1 / 12)
    limits = Contrast(one, other).limits(1.959964)
    assert np.ravel(limits) == pytest.approx([-0.5953622596, 0.3909961991], abs=1e-9)


def test_each_side_may_have_a_quantile_of_its_own() -> None:
    contrast = random_contrast()
    one, other = contrast.own.limits(1.5), contrast.other.limits(2.5)
    expected = find_gap_limits(contrast.own.value, one, contrast.other.value, other)
    assert np.ravel(contrast.limits(1.5, 2.5)) == pytest.approx(np.ravel(expected))


def test_independent_means_have_the_limits_of_the_sum_of_variances() -> None:
    own, other = Wald(np.array([3.0]), np.array([0.3])), Wald(np.array([1.0]), np.array([0.4]))
    limits = Contrast(own, other).limits(Z)
    assert np.ravel(limits) == pytest.approx(stats.norm.interval(0.95, 2.0, 0.5))


@pytest.mark.parametrize("rho", [-0.9, 0.0, 0.6])
def test_correlated_means_have_the_limits_of_their_variance(rho: float) -> None:
    own, other = Wald(np.array([3.0]), np.array([0.3])), Wald(np.array([1.0]), np.array([0.4]))
    error = np.sqrt(0.25 - 2 * rho * 0.12)
    contrast = Contrast(own, other, correlation=rho)
    assert np.ravel(contrast.limits(Z)) == pytest.approx(stats.norm.interval(0.95, 2.0, error))
    expected = 2 * stats.t.sf(2 / error, 7)
    assert contrast.p_value(LEVEL, 7.0) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("correlation", [-0.8, 0.0, 0.8])
def test_limits_contain_the_gap_and_widen_with_the_quantile(correlation: float) -> None:
    contrast = random_contrast(correlation)
    limits = [contrast.limits(quantile) for quantile in (0.5, 1.0, 2.0)]
    for low, high in limits:
        assert ((low <= contrast.gap) & (contrast.gap <= high)).all()
    if correlation <= 0:
        assert (np.diff([each.low for each in limits], axis=0) <= 1e-15).all()
        assert (np.diff([each.high for each in limits], axis=0) >= -1e-15).all()


def test_swapped_sides_have_mirrored_limits_and_the_same_p_value() -> None:
    contrast = random_contrast(0.3)
    swapped = replace(contrast, own=contrast.other, other=contrast.own)
    low, high = contrast.limits(2.0)
    assert swapped.limits(2.0).low == pytest.approx(-high)
    assert swapped.limits(2.0).high == pytest.approx(-low)
    assert swapped.p_value(LEVEL) == pytest.approx(contrast.p_value(LEVEL), abs=1e-12)


def test_share_of_a_difference_scales_gap_and_limits_and_keeps_the_p_value() -> None:
    whole = random_contrast()
    part = replace(whole, share=0.3)
    assert part.gap == pytest.approx(0.3 * whole.gap)
    assert part.limits(1.7).low == pytest.approx(0.3 * whole.limits(1.7).low)
    assert part.p_value(LEVEL) == pytest.approx(whole.p_value(LEVEL), abs=1e-12)


def test_slack_of_bins_widens_limits_and_leaves_the_sign_of_small_gaps_open() -> None:
    size = np.full(3, 0.001)
    own, other = (
        Wilson(np.array(value), 1 - np.array(value), size, size)
        for value in ([0.5, 0.5, 0.5], [0.45, 0.45, 0.495])
    )
    slack = np.array([0.0, 0.01, 0.01])
    binned = Contrast(own, other, slack=slack)
    plain = Contrast(own, other)
    assert binned.limits(2.0).low == pytest.approx(plain.limits(2.0).low - slack)
    assert binned.limits(2.0).high == pytest.approx(plain.limits(2.0).high + slack)
    assert binned.sign_is_known.tolist() == [True, True, False]
    assert binned.p_value(LEVEL)[:2].tolist() == plain.p_value(LEVEL)[:2].tolist()
    assert np.isnan(binned.p_value(LEVEL)[2])
    # A gap that is the slack but for its last digits may be 0.
    assert not replace(binned, slack=np.nextafter(np.abs(binned.gap), 0)).sign_is_known.any()


# P-values


@pytest.mark.parametrize("level", [Level(0.05), Level(0.3), LOOKS])
@pytest.mark.parametrize("correlation", [-0.9, 0.0, 0.9])
def test_p_value_is_below_the_error_exactly_where_limits_exclude_0(
    level: Level, correlation: float
) -> None:
    contrast, df = random_contrast(correlation), 6.0
    low, high = contrast.limits(level.quantile(df))
    p_value = contrast.p_value(level, df)
    assert ((p_value <= level.error) == ((low > 0) | (high < 0))).all()
    assert 0 < (p_value <= level.error).mean() < 1


def test_p_value_equals_that_of_brentq() -> None:
    contrast = Contrast(rate(0.3, 50.0), rate(0.15, 80.0))
    root = optimize.brentq(lambda q: float(contrast.limits(q).low[0]), 0.1, 10.0, xtol=1e-14)
    assert contrast.p_value(LEVEL) == pytest.approx(2 * stats.norm.sf(root), rel=1e-11)
    assert contrast.p_value(LEVEL, 4.0) == pytest.approx(2 * stats.t.sf(root, 4), rel=1e-11)


def test_equal_values_have_p_value_1_and_undefined_ones_none() -> None:
    value, size = np.array([0.3, 0.3, np.nan, 0.2]), np.array([0.1, np.nan, 0.1, 0.1])
    own = Wilson(value, 1 - value, size, size)
    other = Wilson(np.full(4, 0.3), np.full(4, 0.7), np.full(4, 0.1), np.full(4, 0.1))
    p_value = Contrast(own, other).p_value(LEVEL)
    assert p_value[0] == 1
    assert np.isnan(p_value[1:3]).all()
    assert 0 < p_value[3] < 1


def test_values_on_a_logarithm_that_overflow_still_have_a_p_value() -> None:
    own = Wald(np.array([1.0]), np.array([3.0]), Scale(0.0))
    other = Wald(np.array([9.0]), np.array([2.0]), Scale(0.0))
    contrast = Contrast(own, other)
    p_value = contrast.p_value(LEVEL, 1.0)
    quantile = Level(float(p_value[0])).quantile(1.0)
    assert contrast.limits(quantile).high == pytest.approx(0, abs=1e-9)


def test_correlated_limits_that_never_reach_0_give_p_value_0() -> None:
    # A rate of no width at all against another one
    own, other = rate(0.9, np.inf), rate(0.1, np.inf)
    assert Contrast(own, other).p_value(LEVEL).tolist() == [0.0]


def test_no_segments_have_no_p_values() -> None:
    none = np.zeros(0)
    empty = Contrast(Wilson(none, none, none, none), Wilson(none, none, none, none))
    assert empty.p_value(LEVEL).size == empty.ratio_limits(none).low.size == 0


# Ratios


@pytest.mark.parametrize("correlation", [-0.9, 0.0, 0.7])
@pytest.mark.parametrize("values", [(0.3, 0.15), (0.05, 0.9), (0.97, 0.95)])
def test_ratio_limits_are_where_limits_of_own_less_r_times_other_end_at_0(
    values: tuple[float, float], correlation: float
) -> None:
    contrast = Contrast(rate(values[0], 80.0), rate(values[1], 120.0), correlation=correlation)
    one, two = contrast.own.limits(1.5), contrast.other.limits(1.5)
    a, b = contrast.own.value, contrast.other.value

    def end(r: float, side: int) -> float:
        scaled = Limits(r * two.low, r * two.high)
        return float(find_gap_limits(a, one, r * b, scaled, correlation)[side][0])

    low, high = contrast.ratio_limits(1.5)
    assert low[0] < contrast.ratio[0] < high[0]
    # The ratio is too small if own - r * other is surely above 0.
    assert end(float(low[0]), 0) == pytest.approx(0, abs=1e-12)
    assert end(float(high[0]), 1) == pytest.approx(0, abs=1e-12)


def test_ratio_limits_exclude_1_exactly_where_limits_of_the_gap_exclude_0() -> None:
    for correlation in (-0.8, 0.0, 0.8):
        contrast = random_contrast(correlation)
        gap, ratio = contrast.limits(1.9), contrast.ratio_limits(1.9)
        # If the reference is 0, only what the segment has itself limits the ratio from below.
        known = contrast.other.value > 0
        assert ((gap.low > 0) == (ratio.low > 1))[known].all()
        assert ((gap.high < 0) == (ratio.high < 1)).all()


def test_ratio_limits_of_swapped_sides_are_inverse() -> None:
    contrast = random_contrast()
    low, high = contrast.ratio_limits(2.0)
    swapped = Contrast(contrast.other, contrast.own).ratio_limits(2.0)
    known = (contrast.own.value > 0) & (contrast.other.value > 0)
    assert swapped.low[known] == pytest.approx(1 / high[known], rel=1e-9)
    assert swapped.high[known] == pytest.approx(1 / low[known], rel=1e-9)


def test_ratio_to_a_rate_of_0_has_a_lower_limit_only() -> None:
    contrast = Contrast(rate(0.4, 30.0), rate(0.0, 20.0))
    low, high = contrast.ratio_limits(Z)
    assert np.isnan(contrast.ratio[0])
    # Methods3c section 2: l_a / u_b
    assert low == pytest.approx(contrast.own.limits(Z).low / contrast.other.limits(Z).high)
    assert high[0] == np.inf


def test_ratio_of_a_rate_of_0_is_0_with_an_upper_limit() -> None:
    contrast = Contrast(rate(0.0, 20.0), rate(0.4, 30.0))
    low, high = contrast.ratio_limits(Z)
    assert [contrast.ratio[0], low[0]] == [0, 0]
    assert 0 < high[0] < 1


def test_ratio_without_limits_is_undefined() -> None:
    low, high = Contrast(rate(0.3, np.nan), rate(0.4, 30.0)).ratio_limits(Z)
    assert np.isnan([low, high]).all()
    low, high = Contrast(rate(0.0, 10.0), rate(0.4, np.nan)).ratio_limits(Z)
    assert np.isnan([low, high]).all()


def test_ratio_to_all_rows_is_that_to_a_mean_with_the_segment() -> None:
    own, other = rate(0.3, 50.0), rate(0.6, 150.0)
    contrast = Contrast(own, other, share=0.75)
    assert contrast.reference == pytest.approx(0.25 * 0.3 + 0.75 * 0.6)
    assert contrast.ratio == pytest.approx(0.3 / (0.25 * 0.3 + 0.75 * 0.6))
    low, high = Contrast(own, other).ratio_limits(Z)
    found = contrast.ratio_limits(Z)
    assert found.low == pytest.approx(low / (0.25 * low + 0.75))
    assert found.high == pytest.approx(high / (0.25 * high + 0.75))


def test_ratio_to_all_rows_of_which_the_others_have_no_events_is_finite() -> None:
    contrast = Contrast(rate(0.4, 30.0), rate(0.0, 20.0), share=0.5)
    assert contrast.ratio == pytest.approx(2.0)
    assert contrast.ratio_limits(Z).high == pytest.approx(2.0)


def test_ratio_limits_near_0_keep_their_digits() -> None:
    contrast = Contrast(rate(1e-9, 1e12), rate(3e-9, 1e12))
    low, high = contrast.ratio_limits(Z)
    # Scaled by 1e8, the variances being those of Poisson's law
    scaled = Contrast(rate(1e-5, 1e8), rate(3e-5, 1e8)).ratio_limits(Z)
    assert [low[0], high[0]] == pytest.approx([scaled.low[0], scaled.high[0]], rel=1e-3)


# Tests that follow from limits


@pytest.mark.parametrize("level", [LEVEL, Level(0.2), LOOKS])
def test_the_p_value_of_limits_is_that_of_their_error(level: Level) -> None:
    gap, error = np.array([0.1, -0.2, 0.0, 0.3]), np.array([0.05, 0.04, 0.02, 0.0])
    margin = level.quantile() * error
    found = p_value_of_limits(gap, Limits(gap - margin, gap + margin), level)
    z = gap[:2] / error[:2]
    np.testing.assert_allclose(found[:2], level.p_value(z), rtol=1e-10)
    assert found[2] == 1
    # Without an error there is no test.
    assert np.isnan(found[3])


def test_the_p_value_of_limits_is_their_error_where_one_is_0() -> None:
    level = Level(0.05)
    limits = Limits(np.array([0.0, -0.9]), np.array([0.9, 0.0]))
    found = p_value_of_limits(np.array([0.3, -0.2]), limits, level)
    np.testing.assert_allclose(found, 0.05, rtol=1e-12)


# Parts


def test_margins_of_independent_estimates_add_up_in_squares() -> None:
    assert combine_margins(np.array([3.0]), np.array([4.0])) == pytest.approx(5)
    assert combine_margins(np.array([3.0]), np.array([3.0]), 1.0).tolist() == [0.0]


def test_correlation_is_clipped_and_0_without_variances() -> None:
    covariance: Array = np.array([0.5, 2.0, -2.0, 0.5, np.nan, 1e-200])
    one, other = np.array([1.0, 1, 1, 0, 1, 1e-200]), np.array([1.0, 1, 1, 1, 1, 1e-200])
    found = credible_correlation(covariance, one, other)
    assert found == pytest.approx([0.5, 0.95, -0.95, 0, 0, 0.95])
