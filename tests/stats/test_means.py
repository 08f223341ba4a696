"""Shares, means and their changes: worked examples, other packages and definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_placements import Flags, Floats
from scipy import stats
from sklearn.metrics import brier_score_loss, log_loss
from statsmodels.stats.proportion import proportion_confint
from statsmodels.stats.weightstats import DescrStatsW

from polars_wroc.stats.contrasts import Contrast
from polars_wroc.stats.levels import Level
from polars_wroc.stats.means import (
    BRIER_SCALE,
    LOG_LOSS_SCALE,
    Difference,
    Mean,
    Share,
    change_of_mean,
    change_of_rate,
    change_of_rate_by_design,
    change_of_share,
    covariance_of_means,
    has_few_changed_losses,
    has_heavy_changed_rows,
    relative_brier,
)
from polars_wroc.stats.rates import Count

pytestmark = pytest.mark.usefixtures("undefined_is_nan")

LEVEL = Level(0.05)
# Rows of methods3a.md, 1.5, with thresholds of .5 and .45.
LABEL = np.array([1, 1, 1, 1, 0, 0, 0, 0, 0, 0], bool)
OLD = np.array([0.9, 0.7, 0.4, 0.2, 0.8, 0.5, 0.3, 0.3, 0.15, 0.1])
NEW = np.array([0.95, 0.6, 0.45, 0.5, 0.7, 0.35, 0.4, 0.2, 0.2, 0.05])
ONES = np.ones(10)
WEIGHT = np.array([1, 2, 1, 3, 1, 2, 1, 1, 2, 1.0])
OLD_DECISION, NEW_DECISION = OLD >= 0.5, NEW >= 0.45


def count(weight: Floats, where: Flags | None = None) -> Count:
    inside = weight if where is None else weight[where]
    sums = inside.sum(), (inside**2).sum(), float(len(inside))
    return Count(*(np.array([each]) for each in sums))


def mean_of(values: Floats, weight: Floats) -> Mean:
    sums = weight * values, weight**2 * values, weight**2 * values**2
    first, cross, second = (np.array([each.sum()]) for each in sums)
    return Mean(count(weight), first, cross, second)


def described(change: Contrast | Difference) -> list[float]:
    df = change.df if isinstance(change, Difference) else np.inf
    low, high = change.limits(LEVEL.quantile(df))
    return [float(each[0]) for each in (low, high, change.p_value(LEVEL))]


RATES = {
    "tpr": (LABEL, False),
    "fpr": (~LABEL, False),
    "selection_rate": (np.ones(10, bool), False),
    "accuracy": (np.ones(10, bool), True),
}


@pytest.mark.parametrize(
    ("metric", "weight", "expected"),
    [
        ("tpr", ONES, (-0.1020512775, 0.8499610108, 0.1094909919)),
        ("fpr", ONES, (-0.5635028222, 0.2468838734, 0.3349888676)),
        ("selection_rate", ONES, (-0.2571796285, 0.4335045539, 0.5644929140)),
        ("accuracy", ONES, (-0.0375924346, 0.6032218525, 0.0763396286)),
        ("tpr", WEIGHT, (-0.1035843959, 0.8986689295, 0.1076706822)),
        ("fpr", WEIGHT, (-0.6856092031, 0.2146690342, 0.2568262260)),
        ("selection_rate", WEIGHT, (-0.3104316774, 0.5388979428, 0.5705481639)),
        ("accuracy", WEIGHT, (-0.0040713422, 0.7196649848, 0.0522074141)),
    ],
)
def test_changes_of_rates_are_those_of_the_worked_examples(
    metric: str, weight: Floats, expected: tuple[float, float, float]
) -> None:
    # methods3a.md, 1.5
    rows, is_right = RATES[metric]
    events = [each == LABEL if is_right else each for each in (OLD_DECISION, NEW_DECISION)]
    whole = count(weight, rows)
    gained = Share(count(weight, rows & events[1] & ~events[0]), whole)
    lost = Share(count(weight, rows & events[0] & ~events[1]), whole)
    assert described(change_of_rate(gained, lost)) == pytest.approx(expected, abs=5e-9)


@pytest.mark.parametrize(
    ("is_positive", "weight", "rho", "expected"),
    [
        (True, ONES, 0.6708203932, (-0.0214774402, 0.5690703871, 0.0732541352)),
        (True, WEIGHT, 0.4743416490, (-0.0670292692, 0.6966392327, 0.1106666215)),
        (False, ONES, 0, (-0.1613752225, 0.7000066849, 0.1722116904)),
        (False, WEIGHT, 0, (-0.1144826055, 0.8087922242, 0.1218765084)),
    ],
)
def test_changes_of_predictive_values_are_those_of_the_worked_examples(
    is_positive: bool, weight: Floats, rho: float, expected: tuple[float, float, float]
) -> None:
    # methods3a.md, 1.5
    old, new = ((each if is_positive else ~each) for each in (OLD_DECISION, NEW_DECISION))
    event = LABEL if is_positive else ~LABEL
    shares = [Share(count(weight, each & event), count(weight, each)) for each in (old, new)]
    both = count(weight, old & new), count(weight, old & new & event)
    change = change_of_share(shares[0], shares[1], *both)
    assert np.asarray(change.correlation)[0] == pytest.approx(rho, abs=5e-11)
    assert described(change) == pytest.approx(expected, abs=5e-9)


def brier(score: Floats) -> Floats:
    left: Floats = score - LABEL
    return left**2


def logs(score: Floats) -> Floats:
    return np.asarray(-np.log(np.where(LABEL, score, 1 - score)))


def benefit(decision: Flags) -> Floats:
    return np.where(decision, np.where(LABEL, 1.0, -0.3 / 0.7), 0.0)


@pytest.mark.parametrize(
    ("metric", "weight", "gap", "expected"),
    [
        ("brier", ONES, -0.06325, (-0.2505338482, 0.1240338482, 0.4644350484)),
        ("brier", WEIGHT, -0.0968333333, (-0.3556949079, 0.1620282412, 0.4085722228)),
        ("benefit", ONES, 0.2428571429, (-0.0980443917, 0.5837586774, 0.1415185393)),
        ("benefit", WEIGHT, 0.3238095238, (-0.1292982776, 0.7769173252, 0.1360099475)),
        ("log loss", ONES, -0.1574642994, (-0.5287832695, 0.2138546707, 0.3624646439)),
        ("log loss", WEIGHT, -0.2303208947, (-0.7626152810, 0.3019734916, 0.3429502626)),
    ],
)
def test_changes_of_means_are_those_of_the_worked_examples(
    metric: str, weight: Floats, gap: float, expected: tuple[float, float, float]
) -> None:
    # methods3a.md, 1.5
    changes = {
        "brier": brier(NEW) - brier(OLD),
        "benefit": benefit(NEW_DECISION) - benefit(OLD_DECISION),
        "log loss": logs(NEW) - logs(OLD),
    }
    d = changes[metric]
    most = 2 * np.abs(d).max() if metric == "log loss" else 1.0
    found = change_of_mean(mean_of(d, weight), most)
    assert found.gap[0] == pytest.approx(gap, abs=5e-11)
    assert described(found) == pytest.approx(expected, abs=5e-11)


def test_changes_of_mean_losses_rest_on_few_rows() -> None:
    # methods3a.md, 1.5: k of the log loss
    d = logs(NEW) - logs(OLD)
    for weight, k in ((ONES, 4.603774), (WEIGHT, 2.615968)):
        size, second = (weight * np.abs(d)).sum(), (weight**2 * d**2).sum()
        assert size**2 / second == pytest.approx(k, abs=5e-7)
        assert has_few_changed_losses(np.array([size]), np.array([second])).tolist() == [True]
    # Equal changes of 1 have as many effective rows as there are.
    rows = np.array([29.0, 30.0, 31.0])
    assert has_few_changed_losses(rows, rows).tolist() == [True, False, False]


def test_eight_of_fifty_rows_that_gain_and_one_that_loses() -> None:
    # methods3a.md, 1.5
    whole = count(np.ones(50))
    shares = [Share(count(np.ones(number)), whole) for number in (8, 1)]
    found = described(change_of_rate(shares[0], shares[1]))
    assert found == pytest.approx([0.0220996114, 0.2672335710, 0.0235488293], abs=5e-9)


def test_no_changed_decision_has_the_rule_of_three() -> None:
    # methods3a.md, 1.4
    none = Share(count(np.ones(0)), count(np.ones(50)))
    assert described(change_of_rate(none, none)) == pytest.approx(
        [-0.0713475991, 0.0713475991, 1], abs=5e-9
    )


def test_a_share_of_equal_weights_has_wilsons_limits() -> None:
    share = Share(count(np.ones(7)), count(np.ones(40)))
    low, high = share.estimate().limits(LEVEL.quantile())
    expected = proportion_confint(7, 40, method="wilson")
    assert [low[0], high[0]] == pytest.approx(expected)
    assert share.variance[0] == pytest.approx(7 / 40 * 33 / 40 / 40)


def test_a_share_by_design_has_the_size_of_its_variance() -> None:
    part, whole = count(np.ones(10)), count(np.ones(40))
    variances = np.array([0.02, 0.0001, 0.0, np.nan])
    shares = [Share(part, whole, np.array([each])).estimate().low[0] for each in variances]
    # At least Kish's; a variance of 0 says nothing.
    expected = [0.02 / (0.25 * 0.75), 1 / 40, 1 / 40, np.nan]
    assert shares == pytest.approx(expected, nan_ok=True)


SCORE = np.array([0.9, 0.2, 0.6, 0.5, 0.1, 0.7, 0.4, 0.3, 0.8, 0.35])


def test_mean_losses_are_those_of_scikit_learn() -> None:
    brier_score = mean_of(brier(SCORE), WEIGHT).estimate(BRIER_SCALE)
    log = mean_of(logs(SCORE), WEIGHT).estimate(LOG_LOSS_SCALE)
    expected = [
        brier_score_loss(LABEL, SCORE, sample_weight=WEIGHT),
        log_loss(LABEL, SCORE, sample_weight=WEIGHT),
    ]
    assert [brier_score.value[0], log.value[0]] == pytest.approx(expected)


def test_the_error_of_a_mean_is_that_of_statsmodels() -> None:
    values = np.random.default_rng(1).normal(size=50)
    found = mean_of(values, np.ones(50))
    assert np.sqrt(found.variance[0] * 50 / 49) == pytest.approx(DescrStatsW(values).std_mean)
    change = change_of_mean(found, 0.0)
    assert change.error[0] == pytest.approx(DescrStatsW(values).std_mean)
    assert np.asarray(change.df)[0] == pytest.approx(49)
    t, p_value, _ = DescrStatsW(values).ttest_mean(0)
    assert [change.z[0], change.p_value(LEVEL)[0]] == pytest.approx([t, p_value])


@given(
    drawn=st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 9), st.booleans(), st.integers(1, 5)),
        min_size=1,
    )
)
@settings(max_examples=40)
def test_covariances_of_means_follow_their_definition(
    drawn: list[tuple[int, int, bool, int]],
) -> None:
    values, others, inside, weight = (np.array(column) for column in zip(*drawn, strict=True))
    h = weight / weight.sum()
    one, other = mean_of(values, weight), mean_of(others, weight)
    left = values - one.value[0], others - other.value[0]
    found = covariance_of_means(one, other, np.array([(weight**2 * values * others).sum()]))
    assert found[0] == pytest.approx((h**2 * left[0] * left[1]).sum(), abs=1e-13)
    assert one.variance[0] == pytest.approx((h**2 * left[0] ** 2).sum(), abs=1e-13)
    # The covariance of some rows and of all is due to the shared rows.
    if not inside.any():
        return
    own_weight = np.where(inside, weight, 0)
    own = mean_of(values, own_weight)
    shared = count(weight, inside), own.cross, mean_of(others, own_weight).cross
    product = np.array([(own_weight**2 * values * others).sum()])
    found = covariance_of_means(own, other, product, shared)
    g = own_weight / own_weight.sum()
    expected = (g * h * (values - own.value[0]) * left[1]).sum()
    assert found[0] == pytest.approx(expected, abs=1e-13)


def test_equal_values_have_no_variance() -> None:
    for seed in range(20):
        random = np.random.default_rng(seed)
        weight = random.lognormal(size=60)
        assert mean_of(np.full(60, random.random()), weight).variance.tolist() == [0]


def test_limits_of_losses_are_symmetric_on_their_scales() -> None:
    losses = mean_of(brier(SCORE), WEIGHT)
    estimate = losses.estimate(BRIER_SCALE)
    quantile = LEVEL.quantile(estimate.df)
    low, high = estimate.limits(quantile)
    value, error = losses.value[0], np.sqrt(losses.variance[0])
    margin = quantile[0] * error / (value * (1 - value))
    logit = np.log(value / (1 - value))
    expected = 1 / (1 + np.exp(-np.array([logit - margin, logit + margin])))
    assert [low[0], high[0]] == pytest.approx(expected)
    # With unequal weights Student's t, 1 / df = sum h^2 - 1 / n
    h = WEIGHT / WEIGHT.sum()
    assert np.asarray(estimate.df)[0] == pytest.approx(1 / ((h**2).sum() - 0.1))
    losses = mean_of(logs(SCORE), ONES)
    low, high = losses.estimate(LOG_LOSS_SCALE).limits(LEVEL.quantile())
    factor = np.exp(LEVEL.quantile() * np.sqrt(losses.variance[0]) / losses.value[0])
    assert [low[0], high[0]] == pytest.approx([losses.value[0] / factor, losses.value[0] * factor])


@pytest.mark.parametrize("weight", [ONES, WEIGHT])
def test_the_relative_brier_score_has_the_error_of_its_influences(weight: Floats) -> None:
    h, share = weight / weight.sum(), np.average(LABEL, weights=weight)
    loss = np.average(brier(SCORE), weights=weight)
    positives = mean_of(LABEL.astype(float), weight)
    product = np.array([(weight**2 * brier(SCORE) * LABEL).sum()])
    found = relative_brier(mean_of(brier(SCORE), weight), positives, product)
    assert found.value[0] == pytest.approx(loss / (share * (1 - share)))
    influence = h * (brier(SCORE) - loss) / loss
    influence -= h * (LABEL - share) * (1 - 2 * share) / (share * (1 - share))
    assert found.error[0] == pytest.approx(np.sqrt((influence**2).sum()))
    given_variance = np.array([0.04])
    by_design = relative_brier(mean_of(brier(SCORE), weight), positives, product, given_variance)
    assert by_design.error[0] == pytest.approx(0.2)


def test_changes_by_a_design_have_its_variance_and_two_pseudo_rows() -> None:
    d = NEW_DECISION.astype(float) - OLD_DECISION
    of_rows = mean_of(d, WEIGHT)
    h2 = (WEIGHT**2).sum() / WEIGHT.sum() ** 2
    for variance, largest in ((0.4, 0.4), (1e-6, of_rows.variance[0])):
        changes = Mean(
            of_rows.whole, of_rows.first, of_rows.cross, of_rows.second, np.array([variance]), 3.0
        )
        mean, rate = change_of_mean(changes, 1.0), change_of_rate_by_design(changes)
        assert mean.error[0] ** 2 == pytest.approx(variance + h2**2 / 2)
        assert rate.error[0] ** 2 == pytest.approx(largest + 2 * h2**2)
        assert (mean.df, rate.df) == (3, 3)


def test_changed_rows_that_are_heavy_make_limits_too_narrow() -> None:
    whole = count(np.r_[np.ones(96), np.full(4, 3.0)])
    # The mean weight is 1.08.
    changed = [count(np.full(4, weight)) for weight in (3.0, 2.2, 2.1, 1.0)] + [count(np.ones(0))]
    found = [has_heavy_changed_rows(each, whole)[0] for each in changed]
    assert found == [True, True, False, False, False]


def test_a_difference_without_an_error_is_taken_at_its_word() -> None:
    difference = Difference(np.array([0.2, 0.0, 0.1]), np.array([0.0, 0.0, np.nan]))
    assert difference.p_value(LEVEL) == pytest.approx([0, 1, np.nan], nan_ok=True)
    low, high = difference.limits(1.96)
    assert low[:2].tolist() == high[:2].tolist() == [0.2, 0]
    p_value = Difference(np.array([0.2]), np.array([0.1]), 5.0).p_value(LEVEL)
    assert p_value[0] == pytest.approx(2 * stats.t.sf(2, 5))


def test_functions_hold_for_no_segments() -> None:
    none = np.zeros(0)
    rows = Count(none, none, none)
    share = Share(rows, rows)
    assert change_of_rate(share, share).limits(1.96).low.shape == (0,)
    assert change_of_share(share, share, rows, rows).limits(1.96).low.shape == (0,)
    mean = Mean(rows, none, none, none)
    assert change_of_mean(mean, 1.0).p_value(LEVEL).shape == (0,)
    assert mean.estimate(BRIER_SCALE).limits(1.96).low.shape == (0,)
    assert relative_brier(mean, mean, none).limits(1.96).low.shape == (0,)


def test_no_rows_have_no_mean() -> None:
    mean = mean_of(np.zeros(0), np.zeros(0))
    assert np.isnan(mean.value[0])
    assert np.isnan(mean.estimate().limits(1.96).low[0])
    share = Share(count(np.zeros(0)), count(np.zeros(0)))
    assert np.isnan(share.estimate().limits(1.96).low[0])
