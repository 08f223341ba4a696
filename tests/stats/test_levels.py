"""Quantiles and p-values, at one look or at every look, against SciPy, ville and worked numbers."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import ville
from scipy import stats

import polars_wroc as wroc
from polars_wroc.arrays import Array
from polars_wroc.stats.levels import (
    Level,
    RepeatedLooks,
    adjust_picked,
    range_tail,
    student_quantile,
    welch_df,
)

pytestmark = pytest.mark.usefixtures("undefined_is_nan")

LEVEL = Level(0.05)


def looks_at(share: float, error: float = 0.05) -> Level:
    """Return a level of repeated looks once this share of the planned rows has been seen."""
    return Level(error, RepeatedLooks(1000.0, 1000.0 * share))


# Quantiles of one limit


def test_student_quantiles_of_statistics_md_section_8() -> None:
    found = LEVEL.quantile(np.array([3.0, 5.0, 8.0, 20.0]))
    expected = [3.1824463053, 2.5705818356, 2.3060041352, 2.0859634473]
    assert found == pytest.approx(expected, abs=5e-11)


@pytest.mark.parametrize("error", [0.999, 0.1, 0.05, 0.01, 1e-4])
def test_quantiles_of_fractional_and_infinite_df_equal_scipy(error: float) -> None:
    df = np.array([1.0, 1.5, 4.0, 17.3, 500.0, np.inf])
    expected = [*stats.t.ppf(1 - error / 2, df[:-1]), stats.norm.ppf(1 - error / 2)]
    assert Level(error).quantile(df) == pytest.approx(expected, rel=1e-9)


def test_five_tests_have_a_fifth_of_the_error_each() -> None:
    found = LEVEL.quantile(np.array([7.0, np.inf]), tests=np.array([5.0, 1.0]))
    assert found == pytest.approx([stats.t.ppf(0.995, 7), stats.norm.ppf(0.975)], rel=1e-12)


def test_one_tail_has_all_of_the_error() -> None:
    assert LEVEL.quantile(tails=1) == pytest.approx(stats.norm.ppf(0.95), rel=1e-12)
    assert LEVEL.quantile(9.0, tests=2, tails=1) == pytest.approx(stats.t.ppf(0.975, 9), rel=1e-12)


def test_one_tail_at_more_than_half_the_error_is_at_the_median() -> None:
    assert Level(0.8).quantile(tails=1) == 0


def test_unknown_df_have_no_quantile() -> None:
    assert np.isnan(LEVEL.quantile(np.array([np.nan]))).all()


def test_quantiles_rise_with_the_level_and_fall_with_df() -> None:
    df = np.array([1.0, 2.0, 5.0, 30.0, np.inf])
    by_level = np.array([Level(error).quantile(df) for error in (0.2, 0.1, 0.05, 0.01)])
    assert (np.diff(by_level, axis=0) > 0).all()
    assert (np.diff(by_level, axis=1) < 0).all()


def test_quantile_of_extreme_tails_is_finite_for_any_df() -> None:
    found = student_quantile(np.array([37.0]), np.array([1.0, 1.3, 3.7, 8.0, 100.0, np.inf]))
    assert np.isfinite(found).all()
    tail = mpmath.erfc(37 / mpmath.sqrt(2)) / 2
    share = 100 / (100 + mpmath.mpf(found[4]) ** 2)
    beyond = mpmath.betainc(50, 0.5, 0, share, regularized=True) / 2
    assert float(beyond / tail) == pytest.approx(1, rel=1e-9)


def test_independent_limits_share_the_error_by_sidak() -> None:
    found = LEVEL.independent_quantile(np.array([1.0, 4.0]))
    expected = stats.norm.ppf((1 + 0.95 ** np.array([1, 0.25])) / 2)
    assert found == pytest.approx(expected, rel=1e-12)


def test_no_segments_have_no_quantiles() -> None:
    none = np.zeros(0)
    assert LEVEL.quantile(none).size == LEVEL.joint_quantile(none, none).size == 0
    assert LEVEL.p_value(none, none).size == adjust_picked(none, none, LEVEL).size == 0


# Welch's degrees of freedom, and all pairs of groups


def test_pair_of_statistics_md_section_8_has_19_df() -> None:
    assert welch_df(np.array([0.01]), 8.0, np.array([0.02]), 12.0) == pytest.approx(19.6363636364)


def test_joint_quantiles_of_statistics_md_section_8() -> None:
    groups = np.array([3.0, 5.0, 10.0])
    z = [2.3437005864, 2.7277743709, 3.1636835771]
    assert LEVEL.joint_quantile(groups) == pytest.approx(z, abs=5e-11)
    df = welch_df(np.array([0.01]), 8.0, np.array([0.02]), 12.0)
    q = [2.5537154852, 3.0526849053, 3.6697835423]
    assert LEVEL.joint_quantile(groups, df) == pytest.approx(q, abs=5e-11)


def test_studentized_ranges_of_methods2_section_6() -> None:
    found = LEVEL.joint_quantile(np.array([2.0, 3.0, 4.0, 5.0, 10.0, 20.0])) * np.sqrt(2)
    expected = [2.771808, 3.314493, 3.633160, 3.857656, 4.474124, 5.011689]
    assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("error", "groups"), [(0.05, 3), (0.01, 7), (0.3, 25), (0.001, 4)])
def test_joint_quantile_equals_scipy_studentized_range(error: float, groups: int) -> None:
    expected = stats.studentized_range.ppf(1 - error, groups, np.inf) / np.sqrt(2)
    assert Level(error).joint_quantile(groups) == pytest.approx(expected, rel=1e-7)


def test_two_metrics_share_the_error_of_all_pairs() -> None:
    found = LEVEL.joint_quantile(np.array([6.0]), 11.0, metrics=2)
    assert found == pytest.approx(Level(0.025).joint_quantile(np.array([6.0]), 11.0), rel=1e-12)


def test_joint_quantile_of_one_group_or_an_unknown_number_is_undefined() -> None:
    assert np.isnan(LEVEL.joint_quantile(np.array([0.0, 1.0, np.nan]))).all()
    assert np.isnan(looks_at(1.0).joint_quantile(np.array([0.0, 1.0, np.nan]))).all()


def test_joint_quantile_of_two_groups_is_that_of_one_limit() -> None:
    assert LEVEL.joint_quantile(2, 6.0) == pytest.approx(LEVEL.quantile(6.0), rel=1e-12)


def test_range_tail_equals_scipy_far_out() -> None:
    z, groups = np.array([0.0, 0.5, 2.0, 4.0, 5.0]), np.array([2.0, 3.0, 5.0, 20.0, 3.0])
    expected = stats.studentized_range.sf(z * np.sqrt(2), groups, np.inf)
    assert range_tail(z, groups) == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_range_tail_of_two_groups_is_the_normal_tail_to_the_smallest_p_values() -> None:
    z = np.array([0.1, 1.0, 3.0, 8.0, 20.0, 36.0])
    assert range_tail(z, np.full(6, 2.0)) == pytest.approx(2 * stats.norm.sf(z), rel=1e-10)


def test_welch_df_lie_between_the_fewer_and_the_sum_of_both() -> None:
    rng = np.random.default_rng(1)
    one, other, one_df, other_df = rng.uniform(0.1, 9, (4, 200))
    found = welch_df(one, one_df, other, other_df)
    assert (found >= np.minimum(one_df, other_df) * (1 - 1e-12)).all()
    assert (found <= (one_df + other_df) * (1 + 1e-12)).all()
    assert found == pytest.approx(welch_df(other, other_df, one, one_df), rel=1e-12)


def test_welch_df_of_two_samples_equal_those_of_scipy() -> None:
    rng = np.random.default_rng(2)
    one, other = rng.normal(size=9), 3 * rng.normal(size=14)
    variances = one.var(ddof=1) / 9, other.var(ddof=1) / 14
    expected = stats.ttest_ind(one, other, equal_var=False).df
    assert welch_df(variances[0], 8.0, variances[1], 13.0) == pytest.approx(expected, rel=1e-12)


def test_welch_df_without_variances_are_the_fewer() -> None:
    none = np.zeros(1)
    assert welch_df(none, 8.0, none, np.inf) == 8
    assert welch_df(none, 8.0, np.ones(1), np.inf) == np.inf


# P-values


def test_p_value_of_two_scores_in_statistics_md_section_2() -> None:
    # D, V* and its degrees of freedom
    found = LEVEL.p_value(0.1666666667 / np.sqrt(0.0587876649), 5.5653816685)
    assert found == pytest.approx(0.5194340473, abs=1e-9)


def test_p_values_equal_those_of_scipy_and_are_symmetric() -> None:
    z, df = np.array([0.0, 0.7, 2.0, 9.0]), np.array([3.0, 11.5, np.inf, 2.0])
    expected = [2 * stats.t.sf(a, b) for a, b in zip(z, df, strict=True)]
    assert LEVEL.p_value(z, df) == pytest.approx(expected, rel=1e-10)
    assert LEVEL.p_value(-z, df).tolist() == LEVEL.p_value(z, df).tolist()


@pytest.mark.parametrize("level", [Level(0.1), Level(0.003), looks_at(0.2), looks_at(3.0, 0.01)])
def test_p_value_of_the_quantile_is_the_error(level: Level) -> None:
    df = np.array([2.0, 8.5, 100.0, np.inf])
    assert level.p_value(level.quantile(df), df) == pytest.approx(level.error, rel=1e-9)


# Picked references


def test_picked_p_values_of_methods3c_section_5() -> None:
    p_value, groups = np.array([0.01, 0.0025, 0.03]), np.array([5.0, 20.0, 2.0])
    expected = [0.0187111175, 0.0115218075, 0.03]
    assert adjust_picked(p_value, groups, LEVEL) == pytest.approx(expected, abs=5e-11)


def test_picked_p_value_times_comparisons_is_that_of_tukey() -> None:
    p_value, groups = np.array([1e-6, 1e-4, 0.001]), np.array([3.0, 4.0, 6.0])
    z = stats.norm.isf(p_value / 2)
    tukey = stats.studentized_range.sf(z * np.sqrt(2), groups, np.inf)
    found = adjust_picked(p_value, groups, LEVEL) * (groups - 1)
    assert found == pytest.approx(tukey, rel=1e-6)


def test_picked_p_value_of_unknown_groups_stays() -> None:
    p_value = np.array([0.2, 0.2])
    assert adjust_picked(p_value, np.array([np.nan, 2.0]), LEVEL).tolist() == [0.2, 0.2]
    found = adjust_picked(p_value, np.array([np.nan, 3.0]), looks_at(1.0))
    assert found == pytest.approx([0.2, 0.3])


def test_picked_p_values_keep_their_order_and_stay_within_1() -> None:
    p_value = np.append(np.geomspace(1e-300, 1, 200), [0.0, np.nan])
    for groups in (3.0, 12.0, 900.0):
        found = adjust_picked(p_value, np.full(202, groups), LEVEL)
        assert (np.diff(found[:200]) >= 0).all()
        assert ((found[:200] >= p_value[:200]) & (found[:200] <= 1)).all()
        assert found[200] == 0
        assert np.isnan(found[201])


def test_quantile_to_a_picked_reference_is_joint_from_three_groups_on() -> None:
    found = LEVEL.picked_quantile(np.array([np.nan, 2.0, 5.0]), np.array([9.0, 9.0, 9.0]))
    one, joint = float(LEVEL.quantile(9.0)), float(LEVEL.joint_quantile(5.0, 9.0))
    assert found == pytest.approx([one, one, joint], rel=1e-12)


# Repeated looks


def test_quantiles_at_looks_of_methods3a_section_2() -> None:
    shares = [0.01, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10]
    expected = [9.084, 4.719, 3.855, 3.364, 3.084, 3.035, 3.061, 3.153, 3.242]
    found = [float(looks_at(share).quantile()) for share in shares]
    assert found == pytest.approx(expected, abs=5e-4)
    assert looks_at(0.1).quantile() == pytest.approx(3.8550546335, abs=5e-11)
    assert looks_at(1.0).quantile() == pytest.approx(3.0352089904, abs=5e-11)
    assert looks_at(2.0).quantile() == pytest.approx(3.0614772189, abs=5e-11)


@pytest.mark.parametrize("share", [0.05, 1.0, 7.0])
def test_quantiles_at_looks_equal_the_mixture_boundary_of_ville(share: float) -> None:
    log = -2 * np.log(0.05)
    tuned = 1 / (log + np.log1p(log))
    expected = ville.normal_mixture(share, 0.05, tuned) / np.sqrt(share)
    assert looks_at(share).quantile() == pytest.approx(float(expected), rel=1e-10)


def test_student_and_joint_quantiles_at_looks_of_methods3a_section_2() -> None:
    assert looks_at(1.0).quantile(12.0) == pytest.approx(3.8281362216, abs=5e-11)
    found = looks_at(1.0).joint_quantile(np.array([3.0, 5.0]))
    assert found == pytest.approx([3.4122813807, 3.7754155474], abs=5e-11)


def test_p_value_at_looks_of_methods3a_section_2() -> None:
    assert LEVEL.p_value(2.5270890996) == pytest.approx(0.0115012320, abs=5e-10)
    assert looks_at(0.5).p_value(2.5270890996) == pytest.approx(0.1739735863, abs=5e-10)
    single = np.array([0.0115012320, 1.0])
    found = looks_at(0.5).sequential_p_value(single)
    assert found == pytest.approx([0.1739735863, 1.0], abs=5e-9)


def test_limits_at_the_first_rows_have_the_largest_normal_quantile() -> None:
    assert looks_at(1e-9).quantile() == 37
    assert np.isfinite(looks_at(1e-9).quantile(np.array([1.0, 4.0, 30.0]))).all()


def test_one_sided_tests_at_looks_have_twice_the_error() -> None:
    assert looks_at(0.3).quantile(tails=1) == RepeatedLooks(1000.0, 300.0).quantile(0.1)
    # An error above 1 would have an infinite quantile.
    assert np.isfinite(looks_at(0.3, 0.9).quantile(tails=1))


def test_independent_limits_at_looks_share_the_error_by_bonferroni() -> None:
    found = looks_at(0.4).independent_quantile(4.0)
    assert found == looks_at(0.4).quantile(tests=4)


def test_level_at_planned_rows_is_that_of_the_last_look() -> None:
    assert looks_at(0.2).at_planned_rows().quantile() == looks_at(1.0).quantile()
    assert LEVEL.at_planned_rows() is LEVEL


def test_wald_limits_at_looks_need_100_rows_of_each_class() -> None:
    positives, negatives = np.array([99.0, 100.0, 500.0, np.nan]), np.array([500.0, 100.0, 80.0, 1])
    assert looks_at(1.0).enough(positives, negatives).tolist() == [False, True, False, False]
    assert LEVEL.enough(positives, negatives).all()


def test_level_of_a_number_and_of_repeated_looks() -> None:
    assert Level.of(0.9) == Level(1 - 0.9)
    expected = Level(1 - 0.9, RepeatedLooks(1000.0, 250.0))
    assert Level.of(wroc.Looks(1000, 0.9, 250)) == expected


def test_level_of_looks_without_the_rows_seen_is_refused() -> None:
    with pytest.raises(TypeError):
        Level.of(wroc.Looks(1000))


def reject_at_some_look(values: Array, level: float) -> float:
    """Return the share of samples (rows) whose mean is found to differ from 0 at some look."""
    seen = np.arange(1, values.shape[1] + 1)
    z = np.cumsum(values, axis=1) / np.sqrt(seen)
    at_looks = [
        Level(level, RepeatedLooks(200.0, float(n))).p_value(z[:, n - 1]) <= level for n in seen
    ]
    return float(np.any(at_looks, axis=0).mean())


def test_p_values_of_equal_means_fall_below_the_error_at_some_look_in_few_samples() -> None:
    values = np.random.default_rng(3).normal(size=(2000, 400))
    assert reject_at_some_look(values, 0.05) <= 0.05
