"""Covariances over sampling units: clusters, strata and replicate weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import plain_score
import plain_survey
import polars as pl
import pytest
from plain_placements import Floats, auc_of, place, unit_sums

from polars_wroc.arrays import Array, Ints
from polars_wroc.stats.aucs import Auc, auc_influence
from polars_wroc.stats.contrasts import Contrast, credible_correlation
from polars_wroc.stats.designs import (
    Influence,
    ReplicateUnits,
    Term,
    Units,
    cluster_factor,
    design_effect,
    effective_carriers,
    ratio_influence,
    replicate_influence,
)
from polars_wroc.stats.levels import Level
from polars_wroc.stats.means import Share
from polars_wroc.stats.rates import Count
from polars_wroc.stats.references import Reference

pytestmark = pytest.mark.usefixtures("undefined_is_nan")

LEVEL = Level(0.05)
# Rows of statistics.md, section 1.
SCORE = np.array([0.9, 0.8, 0.7, 0.7, 0.6, 0.4, 0.3, 0.85, 0.5, 0.2])
LABEL = np.array([1, 0, 1, 0, 1, 0, 0, 1, 1, 0], bool)
WEIGHT = np.array([1, 2, 1, 1, 2, 1, 1, 1, 2, 1.0])
UNIT = np.array([0, 0, 1, 1, 1, 2, 2, 3, 3, 4])
ONES = np.ones(10)


def clusters(number: int, fraction: float = 0.0) -> Units:
    return Units(np.zeros(number, np.int64), np.array([float(number)]), np.array([fraction]))


def sums(values: Floats, unit: Ints = UNIT, units: int = 5) -> Floats:
    return unit_sums(values, unit, units)


def auc_by_clusters(weight: Floats) -> tuple[Auc, Influence]:
    placed = place(SCORE, LABEL, weight)
    of_class = [np.where(side, weight, 0.0) for side in (LABEL, ~LABEL)]
    weights = sums(of_class[0]), sums(of_class[1])
    wrong = sums(of_class[0] * placed.x), sums(of_class[1] * placed.x)
    return auc_of(SCORE, LABEL, weight), auc_influence(weights, wrong)


@pytest.mark.parametrize(
    ("weight", "value", "factors", "variance", "effect", "low", "high"),
    [
        pytest.param(
            ONES,
            0.78,
            (1.6544117647, 1.5350877193),
            0.0349458046,
            1.3039479337,
            0.1698033475,
            0.9958291076,
            id="unit weights",
        ),
        pytest.param(
            WEIGHT,
            0.6547619048,
            (1.7835249042, 1.4754098361),
            0.0491228616,
            0.9773771504,
            0.0974234390,
            # Heaviness is predicted from the other class.
            0.9688753071,
            id="weights",
        ),
    ],
)
def test_aucs_of_clusters_have_the_variance_of_the_worked_example(
    weight: Floats,
    value: float,
    factors: tuple[float, float],
    variance: float,
    effect: float,
    low: float,
    high: float,
) -> None:
    auc, influence = auc_by_clusters(weight)
    units = clusters(5)
    assert auc.value[0] == pytest.approx(value, abs=5e-11)
    found = [cluster_factor(term.share)[0] for term in influence.terms]
    assert found == pytest.approx(factors, abs=5e-11)
    assert units.variance(influence)[0] == pytest.approx(variance, abs=5e-11)
    df = units.df(influence)
    assert df.tolist() == [3]
    designed = Auc(auc.value, auc.complement, auc.pos, auc.neg, units.variance(influence), df)
    assert designed.effect[0] == pytest.approx(effect, abs=5e-11)
    frame = pl.DataFrame({"s": SCORE, "y": LABEL.astype(int), "w": weight})
    plain = plain_score.auc_of(frame)
    assert plain is not None
    found = list(plain_score.limits(plain, LEVEL.quantile(df)[0], designed.effect[0]))
    assert found == pytest.approx([low, high], abs=5e-11)
    limits = designed.estimate().limits(LEVEL.quantile(df))
    assert limits.low[0] == pytest.approx(low, abs=5e-11)
    assert limits.high[0] == pytest.approx(high, abs=5e-11)


def rate_by_clusters(rows: Floats, event: Floats) -> tuple[Share, Influence]:
    """Return the share of events in rows, by the clusters of the worked example."""
    influence = ratio_influence(sums(rows * event), sums(rows))
    variance = clusters(5).variance(influence)

    def count(weight: Floats) -> Count:
        squares, number = (weight**2).sum(), float((weight > 0).sum())
        return Count(np.array([weight.sum()]), np.array([squares]), np.array([number]))

    return Share(count(rows * event), count(rows), variance), influence


@pytest.mark.parametrize(
    ("weight", "value", "factor", "variance", "size", "low", "high"),
    [
        (ONES, 0.6, 1.3381995134, 0.0524574209, 0.2185725872, 0.1441177495, 0.9303729480),
        (
            WEIGHT,
            0.6153846154,
            1.3702702703,
            0.0511434511,
            0.2160810811,
            0.1520115787,
            0.9345584960,
        ),
    ],
)
def test_rates_of_clusters_have_the_variance_of_the_worked_example(
    weight: Floats,
    value: float,
    factor: float,
    variance: float,
    size: float,
    low: float,
    high: float,
) -> None:
    share, influence = rate_by_clusters(weight, (SCORE >= 0.6).astype(float))
    df = clusters(5).df(influence)
    assert df.tolist() == [4]
    estimate = share.estimate()
    limits = estimate.limits(LEVEL.quantile(df))
    factors = cluster_factor(influence.terms[0].share)
    found = [share.value, factors, share.variance, estimate.low, limits.low, limits.high]
    expected = [value, factor, variance, size, low, high]
    assert [each[0] for each in found] == pytest.approx(expected, abs=5e-11)


def test_a_gap_of_rates_has_the_covariance_of_the_worked_example() -> None:
    event = (SCORE >= 0.6).astype(float)
    group = np.isin(np.arange(10), [0, 1, 2, 4, 8]).astype(float)
    (one, own), (other, others) = (rate_by_clusters(rows, event) for rows in (group, 1 - group))
    units = clusters(5)
    covariance = units.covariance(own, others)
    variances = units.variance(own), units.variance(others)
    assert [each[0] for each in variances] == pytest.approx([0.0635294118, 0.0933333333], abs=5e-11)
    assert covariance[0] == pytest.approx(-0.0152988799, abs=5e-11)
    rho = credible_correlation(covariance, *variances)
    assert rho[0] == pytest.approx(-0.1986798536, abs=5e-11)
    df = units.df(own, others)
    assert df.tolist() == [3]
    contrast = Contrast(one.estimate(), other.estimate(), correlation=rho)
    limits = contrast.limits(LEVEL.quantile(df))
    expected = [0.4, -0.5304332285, 0.8441813444]
    assert [contrast.gap[0], limits.low[0], limits.high[0]] == pytest.approx(expected, abs=5e-11)


def test_equal_clusters_have_the_factor_of_a_survey_without_strata() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=(8, 3))
    influence = ratio_influence(values, np.ones((8, 3)))
    assert cluster_factor(influence.terms[0].share) == pytest.approx(8 / 7)
    expected = values.var(axis=0, ddof=1) / 8
    assert clusters(8).variance(influence) == pytest.approx(expected)
    # A finite population
    assert clusters(8, 0.25).variance(influence) == pytest.approx(0.75 * expected)


def test_the_factor_of_a_reference_is_that_of_its_summed_shares() -> None:
    rng = np.random.default_rng(2)
    part, whole = rng.random((12, 4)), 1 + rng.random((12, 4))
    rest = Reference("rest")
    units = clusters(12)
    of_rest = ratio_influence(rest.add_others(part), rest.add_others(whole))
    for own in range(4):
        others = [place_of for place_of in range(4) if place_of != own]
        direct = ratio_influence(
            part[:, others].sum(axis=1, keepdims=True), whole[:, others].sum(axis=1, keepdims=True)
        )
        assert units.variance(of_rest)[own] == pytest.approx(units.variance(direct)[0])


def test_a_mean_of_aucs_has_the_influences_of_its_rows() -> None:
    rng = np.random.default_rng(4)
    number, unit = 60, rng.integers(0, 9, 60)
    score, label, group = (
        rng.normal(size=number),
        rng.random(number) < 0.4,
        rng.integers(0, 3, number),
    )
    terms: dict[int, list[Floats]] = {}
    pairs = []
    for g in range(3):
        inside = group == g
        placed = place(score[inside], label[inside])
        x = np.zeros(number)
        x[inside] = placed.x
        sides = [np.where(inside & side, 1.0, 0.0) for side in (label, ~label)]
        terms[g] = [sums(values, unit, 9) for side in sides for values in (side, side * x)]
        pairs.append(sides[0].sum() * sides[1].sum())
    stacked = [np.hstack([terms[g][i] for g in range(3)]) for i in range(4)]
    influence = auc_influence((stacked[0], stacked[2]), (stacked[1], stacked[3]))
    overall, weights = Reference("rest"), np.array(pairs)
    mean = influence.average(lambda values: overall.average_others(values, weights))
    # For the first group the other two
    shares = weights[1:] / weights[1:].sum()
    for term, average in zip(influence.terms, mean.terms, strict=True):
        assert average.influence[:, 0] == pytest.approx(term.influence[:, 1:] @ shares)
        assert average.share[:, 0] == pytest.approx(term.share[:, 1:] @ shares)
        assert average.share.sum(axis=0) == pytest.approx(1)
    assert np.isfinite(clusters(9).variance(mean)).all()


def test_a_unit_that_is_a_whole_segment_has_no_influence_on_its_term_of_a_mean() -> None:
    part, whole = np.array([[3.0, 1.0], [0.0, 1.0]]), np.array([[9.0, 2.0], [0.0, 3.0]])
    influence = ratio_influence(part, whole)
    assert np.isnan(influence.total[:, 0]).all()
    mean = influence.average(lambda values: values @ np.array([[0.25], [0.75]]))
    assert mean.total == pytest.approx(0.75 * influence.total[:, 1:])
    assert mean.terms[0].share == pytest.approx(np.array([[0.25 + 0.75 * 0.4], [0.75 * 0.6]]))


def test_a_ratio_of_one_unit_has_a_reason_about_all_rows() -> None:
    influence = ratio_influence(np.array([[3.0], [0.0]]), np.array([[9.0], [0.0]]))
    reasons = clusters(2).unknown_reasons(influence)
    assert reasons == ["all rows are in one sampling unit"]


def test_no_design_effect_where_a_variance_is_0() -> None:
    by_design, rows = np.array([0.2, 0.2, 0.0, np.nan]), np.array([0.1, 0.0, 0.1, 0.1])
    expected = [2.0, 1.0, 1.0, np.nan]
    assert design_effect(by_design, rows) == pytest.approx(expected, nan_ok=True)


# Units a and b in stratum 1, of which b has no rows of the segment, c and d in stratum 2.
STRATUM = np.array([0, 0, 1, 1])


def toy(*, with_b: bool = True) -> tuple[Ints, Influence]:
    """Influences on the mean of methods2.md, section 5."""
    part, whole = np.array([1.0, 0.0, 2.0, 1.0]), np.array([2.0, 0.0, 2.0, 2.0])
    used = np.array([True, with_b, True, True])
    influence = ratio_influence(part[used, np.newaxis], whole[used, np.newaxis])
    return STRATUM[used], influence


def strata(
    stratum: Ints,
    lonely: Literal["null", "certainty", "adjust"] = "null",
    fraction: Sequence[float] = (0.0, 0.0),
) -> Units:
    size = np.bincount(stratum, minlength=len(fraction)).astype(float)
    return Units(stratum, size, np.array(fraction), lonely)


def test_units_without_rows_of_the_segment_count() -> None:
    stratum, influence = toy()
    units = strata(stratum)
    assert influence.total[:, 0] == pytest.approx([-1 / 18, 0, 1 / 9, -1 / 18])
    assert units.variance(influence)[0] == pytest.approx(0.0308642, abs=5e-8)
    assert units.df(influence).tolist() == [2]
    assert units.unknown_reasons(influence) == [""]


def test_a_single_unit_of_a_stratum_is_lonely() -> None:
    stratum, influence = toy(with_b=False)
    units = strata(stratum)
    assert np.isnan(units.variance(influence)[0])
    assert units.unknown_reasons(influence) == ["a stratum has one sampling unit"]
    certain = strata(stratum, "certainty")
    assert certain.variance(influence)[0] == pytest.approx(0.0277778, abs=5e-8)
    assert certain.unknown_reasons(influence) == [""]
    adjusted = strata(stratum, "adjust").variance(influence)[0]
    assert adjusted == pytest.approx(1 / 36 + 1 / 324)
    # The whole population of the stratum is in the sample.
    whole = strata(stratum, fraction=(1.0, 0.0))
    assert whole.variance(influence)[0] == pytest.approx(1 / 36)


def test_a_stratum_without_rows_of_the_segment_says_nothing() -> None:
    stratum, influence = toy()
    term = influence.terms[0]
    longer = Influence((Term(np.r_[term.influence, [[0.0]]], np.r_[term.share, [[0.0]]]),))
    units = strata(np.append(stratum, 2), fraction=(0.0, 0.0, 0.0))
    assert units.variance(longer)[0] == pytest.approx(0.0308642, abs=5e-8)


def test_an_auc_of_a_survey_has_the_variance_of_the_worked_example() -> None:
    # methods2.md, section 5: rows of methods.md 0.4
    score = np.array([0.9, 0.8, 0.7, 0.7, 0.6, 0.4, 0.3])
    label = np.array([1, 0, 1, 0, 1, 0, 0], bool)
    weight = np.array([1, 2, 1, 1, 2, 1, 1.0])
    unit, stratum = np.array([0, 0, 1, 1, 2, 2, 3]), np.array([0, 0, 1, 1])
    placed = place(score, label, weight)
    of_class = [np.where(side, weight, 0.0) for side in (label, ~label)]
    weights = sums(of_class[0], unit, 4), sums(of_class[1], unit, 4)
    wrong = sums(of_class[0] * placed.x, unit, 4), sums(of_class[1] * placed.x, unit, 4)
    influence = auc_influence(weights, wrong)
    assert influence.total[:, 0] == pytest.approx([-0.02375, -0.05875, -0.0025, 0.085])
    units = strata(stratum)
    variance = units.variance(influence)
    assert variance[0] == pytest.approx(0.00888125)
    auc = auc_of(score, label, weight)
    designed = Auc(auc.value, auc.complement, auc.pos, auc.neg, variance, units.df(influence))
    assert designed.effect[0] == pytest.approx(0.10302, abs=5e-6)
    low, high = designed.estimate().limits(LEVEL.quantile(designed.df))
    # Lower limit as there; the upper one rests on the predicted heaviness.
    assert low[0] == pytest.approx(0.19439, abs=5e-6)
    assert high[0] > 0.8688


@pytest.mark.parametrize("seed", range(6))
def test_covariances_in_strata_are_those_of_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    stratum = np.sort(rng.integers(0, 4, 14))
    stratum[:8] = [0, 0, 1, 1, 2, 2, 3, 3]
    one, other = (rng.normal(size=(14, 3)) * (rng.random((14, 3)) < 0.7) for _ in range(2))
    fraction = rng.random(4) * (seed % 2)
    shares = np.full((14, 3), 1 / 14)
    units = strata(stratum, fraction=fraction.tolist())
    found = units.covariance(Influence((Term(one, shares),)), Influence((Term(other, shares),)))
    psu = [(int(each), number) for number, each in enumerate(stratum)]
    for segment in range(3):
        expected = plain_survey.covariance(
            dict(zip(psu, one[:, segment], strict=True)),
            dict(zip(psu, other[:, segment], strict=True)),
            {*psu},
            dict(enumerate(fraction)),
        )
        assert found[segment] == pytest.approx(expected, rel=1e-12)


def test_degrees_of_freedom_rest_on_the_base_in_the_fewest_units() -> None:
    none = np.zeros((6, 1))
    few, many = np.array([[0.5, 0.5, 0, 0, 0, 0]]).T, np.full((6, 1), 1 / 6)
    both = Influence((Term(none, few), Term(none, many)))
    assert clusters(6).df(both).tolist() == [2]
    assert clusters(6).df(Influence((Term(none, many),))).tolist() == [5]
    stratum = np.array([0, 0, 0, 1, 1, 1])
    assert strata(stratum).df(both).tolist() == [2]
    assert strata(stratum).df(Influence((Term(none, many),))).tolist() == [4]
    # By strata the units with any rows count if they are given.
    assert strata(stratum).df(Influence(both.terms, present=many)).tolist() == [4]
    assert clusters(6).df(Influence(both.terms, present=many)).tolist() == [2]
    # Two of the units at least
    assert clusters(2).df(Influence((Term(none[:2], few[:2]),))).tolist() == [1]


def test_one_unit_with_a_whole_class_leaves_the_variance_unknown() -> None:
    weights = np.array([[2.0, 1.0], [0.0, 1.0], [0.0, 0.0]]), np.array([[1.0, 1.0]] * 3)
    wrong = weights[0] * 0.3, weights[1] * np.array([[0.1], [0.3], [0.5]])
    influence = auc_influence(weights, wrong)
    for units in (clusters(3), strata(np.array([0, 0, 1]), "certainty")):
        assert np.isnan(units.variance(influence)).tolist() == [True, False]
        assert np.isnan(units.df(influence)).tolist() == [True, False]
        assert units.unknown_reasons(influence) == [
            "all rows of a class are in one sampling unit",
            "",
        ]
    assert np.isnan(cluster_factor(np.array([[1.0], [0.0]])))[0]


def test_rounding_is_no_variance() -> None:
    rng = np.random.default_rng(8)
    whole = rng.lognormal(0, 2, (30, 2))
    influence = ratio_influence(0.1 * whole, whole)
    assert clusters(30).variance(influence).tolist() == [0, 0]
    assert strata(np.arange(30) % 3, fraction=(0, 0, 0)).variance(influence).tolist() == [0, 0]
    # Totals of strata that are all the same
    same = np.full((6, 1), 0.1 + 0.2)
    influence = Influence((Term(same, np.full((6, 1), 1 / 6)),))
    assert strata(np.array([0, 0, 0, 1, 1, 1])).variance(influence).tolist() == [0]


def test_influences_are_added_up_and_multiplied_term_by_term() -> None:
    rng = np.random.default_rng(9)
    one, other = (ratio_influence(rng.random((5, 2)), np.ones((5, 2))) for _ in range(2))
    slopes = np.array([2.0, 3.0])
    total = (slopes * one + -other).total
    assert total == pytest.approx(slopes * one.total - other.total)
    assert one.effective_units[0] == pytest.approx([5, 5])
    units = clusters(5)
    expected = slopes**2 * units.variance(one) + units.variance(other)
    expected -= 2 * slopes * units.covariance(one, other)
    assert units.variance(slopes * one - other) == pytest.approx(expected)


def test_replicates_are_compared_with_the_full_weights() -> None:
    rng = np.random.default_rng(10)
    factors = rng.random(7)
    part, whole = rng.random((8, 3)), 1 + rng.random((8, 3))
    units = ReplicateUnits(factors, 6.0)
    influence = units.ratio_influence(part, whole)
    ratios = part / whole
    for segment in range(3):
        expected = 0.0
        for replicate, factor in enumerate(factors):
            expected += factor * (ratios[replicate + 1, segment] - ratios[0, segment]) ** 2
        assert units.variance(influence)[segment] == pytest.approx(expected)
    assert units.df(influence).tolist() == [6, 6, 6]
    assert units.unknown_reasons(influence) == ["", "", ""]


def test_jackknife_replicates_have_the_variance_of_the_mean() -> None:
    values = np.random.default_rng(11).normal(size=9)
    left_out = [np.delete(values, place_of) for place_of in range(9)]
    means = np.array([values.mean(), *(each.mean() for each in left_out)])[:, np.newaxis]
    units = ReplicateUnits(np.full(9, 8 / 9), 8.0)
    variance = units.variance(replicate_influence(means))
    assert variance[0] == pytest.approx(values.var(ddof=1) / 9)


def test_a_replicate_without_an_estimate_leaves_the_variance_unknown() -> None:
    values = np.array([[0.5, 0.5], [np.nan, 0.4], [np.inf, 0.6]])
    units = ReplicateUnits(np.ones(2), 1.0)
    influence = replicate_influence(values)
    assert np.isnan(units.variance(influence)).tolist() == [True, False]
    assert units.unknown_reasons(influence) == ["no estimate in 2 of 2 replicates", ""]


def test_a_variance_of_zero_says_nothing_of_the_design() -> None:
    by_design = np.array([2.0, 0.0, np.nan, 1.0])
    of_rows = np.array([1.0, 1.0, 1.0, np.nan])
    assert design_effect(by_design, of_rows) == pytest.approx([2, 1, np.nan, 1], nan_ok=True)


def test_units_that_change_alike_carry_a_difference_together() -> None:
    sums_of_units: Array = np.array([[1.0, 3, 0, np.nan], [1.0, 0, 0, 1], [-1.0, 0, 0, 1]])
    assert effective_carriers(sums_of_units) == pytest.approx([3, 1, 0, np.nan], nan_ok=True)
    tiny = effective_carriers(1e-200 * sums_of_units)
    assert tiny == pytest.approx([3, 1, 0, np.nan], nan_ok=True)


def test_functions_hold_for_no_segments_and_no_units() -> None:
    for shape in ((3, 0), (0, 2), (0, 0)):
        influence = ratio_influence(np.zeros(shape), np.zeros(shape))
        stratum = np.arange(shape[0])
        for units in (clusters(shape[0]), strata(stratum, fraction=(0.0,) * shape[0])):
            assert np.isnan(units.variance(influence)).all()
            assert units.variance(influence).shape == shape[1:]
            assert units.df(influence).shape == shape[1:]
            assert len(units.unknown_reasons(influence)) == shape[1]
    replicates = ReplicateUnits(np.ones(2), 1.0)
    assert replicates.variance(replicate_influence(np.zeros((3, 0)))).shape == (0,)
