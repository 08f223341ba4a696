"""AUCs from sums of placement values: limits, variances, tests and notes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import get_args

import numpy as np
import plain_score
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from plain_placements import Floats, auc_of, class_moments, place, stack_aucs, unit_sums
from scipy import special, stats

from polars_wroc.stats.aucs import (
    AUC_ESTIMATES,
    Auc,
    AucMethod,
    ClassMoments,
    End,
    auc_influence,
    average_aucs,
    combine,
    equal_aucs,
)
from polars_wroc.stats.designs import Units
from polars_wroc.stats.levels import Level
from polars_wroc.stats.references import Reference

pytestmark = pytest.mark.usefixtures("undefined_is_nan")

LEVEL = Level(0.05)


def exactly(expected: object) -> object:
    return pytest.approx(expected, rel=1e-12, abs=1e-13)


def of_letters(labels: str) -> Auc:
    """Make the AUC of rows in descending order of their scores, p for a positive."""
    label = np.array([letter == "p" for letter in labels])
    return auc_of(-np.arange(len(labels), dtype=float), label)


def limits(auc: Auc, method: AucMethod = "score") -> list[float]:
    estimate = auc.estimate(method)
    low, high = estimate.limits(LEVEL.quantile(estimate.df))
    return [float(low[0]), float(high[0])]


@pytest.mark.parametrize(
    ("labels", "low", "high"),
    [
        # methods2.md 1 and methods3c.md 3
        ("pppnnnnnn", 0.43850, 1.0),
        ("p" * 5 + "n" * 20, 0.56552, 1.0),
        ("ppnpnpnn", 0.3462500033, 0.9815114205),
        ("pppnpnnn", 0.4499682398, 0.9995612268),
        ("pppp" + "n" * 20 + "p", 0.3512652999, 0.9775376056),
    ],
)
def test_score_limits_of_worked_examples(labels: str, low: float, high: float) -> None:
    # They are for a quantile of 1.959964.
    digits = 5e-9 if len(f"{low}") > 8 else 5e-6
    assert limits(of_letters(labels)) == pytest.approx([low, high], abs=digits)


@pytest.mark.parametrize("method", ["delong", "logit"])
@pytest.mark.parametrize("labels", ["pppnnn", "nnnppp"])
def test_no_wald_limits_around_0_and_1_whatever_the_variance_of_a_design(
    labels: str, method: AucMethod
) -> None:
    auc = replace(of_letters(labels), design_variance=np.array([0.01]))
    assert np.isnan(limits(auc, method)).all()


def test_tied_scores_have_limits_around_one_half() -> None:
    # methods3c.md 3
    found = limits(auc_of(np.zeros(6), np.arange(6) < 3))
    assert found == pytest.approx([0.1643314442, 0.8356685558], abs=5e-9)


def test_misranked_rows_of_a_worked_example() -> None:
    # methods3c.md 3, A and B
    pos, neg = of_letters("ppnpnpnn").find_misranked("low")
    assert [pos.number[0], neg.number[0]] == pytest.approx([1.1618950039] * 2, abs=5e-11)
    pos, _ = of_letters("pppnpnnn").find_misranked("high")
    assert pos.number[0] == pytest.approx(3.8474188203, abs=5e-11)
    assert of_letters("pppnpnnn").limit_size("high")[0] == pytest.approx(0.2089749645, abs=5e-11)


def test_two_worked_aucs_are_not_shown_to_differ() -> None:
    # methods3c.md 4
    one, other = of_letters("ppnpnpnn"), of_letters("pppnpnnn")
    sizes = [each.sample().at_zero[0] for each in (one, other)]
    assert sizes == pytest.approx([0.2818926482, 0.3166666667], abs=5e-11)
    assert equal_aucs(one, other, LEVEL).p_value[0] == pytest.approx(0.6251695868, abs=5e-11)
    assert equal_aucs(one, one, LEVEL).p_value[0] == 1


def heavy_tailed() -> Auc:
    i, j = np.arange(1, 21.0), np.arange(1, 61.0)
    pos = special.stdtrit(2.5, (i + 1) / 22) + 3.3
    score = np.r_[pos, special.stdtrit(2.5, (j - 0.5) / 60)]
    return auc_of(score, np.arange(80) < 20, np.exp(-0.35 * np.clip(score, -6, 8)))


def test_heaviness_that_was_not_seen_is_predicted_from_the_other_class() -> None:
    # statistics.md, section 3
    auc = heavy_tailed()
    assert auc.value[0] == pytest.approx(0.9882244935, abs=5e-11)
    pos, neg = auc.find_misranked("low")
    found = [pos.number[0], neg.number[0], pos.heaviness[0], neg.heaviness[0]]
    expected = [1.0477993734, 1.6266406985, 1.3257141679, 0.1815640251]
    assert found == pytest.approx(expected, abs=5e-11)
    assert auc.limit_size("low")[0] == pytest.approx(0.0937756134, abs=5e-11)
    assert auc.limit_size("high")[0] == pytest.approx(0.0075397542, abs=5e-11)
    # A test is based on the same q = 1.5272180138 and 1, and on half a pseudo-row in each class:
    # the sum of (k min(v / (theta delta), 3 e) + q e / 2) / (k + q / 2), where e = h2 q^2
    assert auc.sample().at_zero[0] == pytest.approx(0.0646763589, abs=5e-11)
    assert limits(auc) == pytest.approx([0.7182148380, 0.9978501897], abs=5e-11)
    assert auc.notes().tolist() == ["weights depend on the score"]


@pytest.mark.parametrize(("n_pos", "n_neg"), [(60, 180), (30, 300)])
def test_few_tests_err_where_tails_are_heavy_and_weights_fall_with_the_score(
    n_pos: int, n_neg: int
) -> None:
    random = np.random.default_rng(2026)
    # Student's t with two degrees of freedom and exponential scores: the weighted AUC is 0.92 if
    # positives are higher by so much, by quadrature.
    shapes: list[tuple[Callable[[Floats], Floats], float]] = [
        (lambda p: special.stdtrit(2, p), 4.3222909),
        (lambda p: -np.log1p(-p), 1.1857578),
    ]
    label = np.arange(n_pos + n_neg) < n_pos

    def draw(quantile: Callable[[Floats], Floats], location: float) -> Auc:
        z, noise = random.normal(size=(2, label.size))
        score = quantile(special.ndtr(z)) + location * label
        return auc_of(score, label, np.exp(-0.6 * z + 0.5 * noise))

    one, other = (stack_aucs(*(draw(*shape) for _ in range(400))) for shape in shapes)
    # With misranked rows only as heavy as observed it would be 12%.
    assert np.mean(equal_aucs(one, other, LEVEL).p_value <= 0.05) <= 0.06


def test_notes_name_few_misranked_rows_of_equal_weights() -> None:
    auc = stack_aucs(of_letters("ppnpnpnn"), of_letters("pn" * 40), heavy_tailed())
    notes = ["few misranked rows", "", "weights depend on the score"]
    assert auc.notes().tolist() == notes


def test_a_class_of_few_effective_rows_has_a_degree_of_freedom() -> None:
    weight = np.r_[9.0, 1.0, np.ones(40)]
    auc = auc_of(np.r_[1.0, 0.0, np.arange(40) / 40 - 0.3], np.arange(42) < 2, weight)
    assert auc.pos.effective_rows < 1.3
    assert auc.pos.variance > 0.9 * auc.variance
    assert 1 <= auc.satterthwaite_df < 1.3


def test_three_misranked_rows_are_not_few() -> None:
    negatives = "n" * 20
    auc = stack_aucs(of_letters(f"pppp{negatives}pp"), of_letters(f"ppp{negatives}ppp"))
    assert auc.notes().tolist() == ["few misranked rows", ""]


def test_a_class_in_which_few_rows_carry_the_weight_has_a_note() -> None:
    weight = np.ones(80)
    weight[:2] = 200.0
    auc = auc_of(np.arange(80.0) % 7, np.arange(80) % 2 == 0, weight)
    assert auc.notes().tolist() == ["weights depend on the score"]


rows = st.lists(st.tuples(st.integers(0, 6), st.booleans(), st.integers(1, 9)), min_size=2)


def _arrays(drawn: list[tuple[int, bool, int]]) -> tuple[Floats, np.ndarray, Floats]:
    # At least a row of each class
    drawn = [*drawn, (3, True, 1), (3, False, 2)]
    score, label, weight = (np.array(column) for column in zip(*drawn, strict=True))
    return score.astype(float), label, weight.astype(float)


@given(drawn=rows)
@settings(max_examples=30)
def test_equal_weights_have_the_limits_of_the_definition(
    drawn: list[tuple[int, bool, int]],
) -> None:
    score, label, _ = _arrays(drawn)
    frame = pl.DataFrame({"s": score, "y": label.astype(int), "w": np.ones(len(score))})
    plain = plain_score.auc_of(frame)
    assert plain is not None
    auc = auc_of(score, label)
    assert limits(auc) == pytest.approx(plain_score.limits(plain, stats.norm.ppf(0.975)), rel=1e-9)
    k = [each.number[0] for each in auc.find_misranked()]
    assert k == pytest.approx(plain_score.misranked(plain), rel=1e-9, abs=1e-9)


def plain_size(auc: Auc, end: str) -> float:
    """1 divided by the effective size of a limit, as statistics.md, section 3, has it."""
    value, delta = auc.value[0], auc.complement[0]
    seen = []
    for moments in (auc.pos, auc.neg):
        h2, x1, x2 = moments.h2[0], moments.x1[0], moments.x2[0]
        m = delta if end == "low" else value
        first, second = (x1, x2) if end == "low" else (h2 - x1, max(h2 - 2 * x1 + x2, 0))
        some = value > 0 and delta > 0 and second > 1e-13
        k0 = m**2 / second if some else 0.0
        k = float(np.sqrt(k0 * min(k0, m / h2)))
        seen.append((k, first / (m * h2) if some else 1.0))
    total, pseudo, own = 0.0, [], 0.0
    for moments, (k, raw), (other_k, other_raw) in zip(
        (auc.pos, auc.neg), seen, seen[::-1], strict=True
    ):
        predicted = max(1, (other_k + 2) / (other_k * other_raw + 2))
        q = max(1, raw, (k * raw + 4 * predicted) / (k + 4))
        h2, variance = moments.h2[0], moments.variance[0]
        e = h2 * q**2
        c = 1.5 - min(1, moments.unweighted[0] / h2) / 2
        pseudo.append(e)
        if k == 0 or np.isnan(variance):
            total += e
            continue
        part = min(variance / (value * delta), 3 * e)
        own += part
        total += (k * part + c * q * e) / (k + c * q)
    return float(min(total, max(*pseudo, own)))


# The heavy one of two rows of a class is misranked: its variance is five times a pseudo-row's.
@example(drawn=[(0, True, 9), (2, False, 9)])
@example(drawn=[(6, True, 9), (4, False, 9)])
@given(drawn=rows)
@settings(max_examples=30)
def test_limits_of_weighted_rows_rest_on_predicted_heaviness(
    drawn: list[tuple[int, bool, int]],
) -> None:
    auc = auc_of(*_arrays(drawn))
    ends: list[End] = ["low", "high"]
    for end in ends:
        assert auc.limit_size(end)[0] == pytest.approx(plain_size(auc, end), rel=1e-9)


@given(one=rows, other=rows)
@settings(max_examples=30)
def test_aucs_of_weighted_rows_are_compared_at_their_mean(
    one: list[tuple[int, bool, int]], other: list[tuple[int, bool, int]]
) -> None:
    aucs, plain = [], []
    for drawn in (one, other):
        score, label, weight = _arrays(drawn)
        aucs.append(auc_of(score, label, weight))
        plain.append(
            plain_score.auc_of(pl.DataFrame({"s": score, "y": label.astype(int), "w": weight}))
        )
    assert plain[0] is not None
    assert plain[1] is not None
    found = equal_aucs(aucs[0], aucs[1], LEVEL).p_value[0]
    expected = 1.0
    if plain[0].delta != plain[1].delta:
        expected = plain_score.common_p_value(plain[0], plain[1])
    assert found == pytest.approx(expected, rel=1e-7, abs=1e-9)


@given(drawn=rows)
@settings(max_examples=30)
def test_the_variance_without_weights_is_that_of_delong(drawn: list[tuple[int, bool, int]]) -> None:
    score, label, _ = _arrays([*drawn, (1, True, 1), (2, False, 1)])
    x = place(score, label).x
    expected = x[label].var(ddof=1) / label.sum() + x[~label].var(ddof=1) / (~label).sum()
    auc = auc_of(score, label)
    assert auc.variance[0] == exactly(expected)
    assert auc.pos.effective_rows[0] == pytest.approx(label.sum())


@given(drawn=rows, scale=st.sampled_from([1e-6, 0.3, 1e9]))
@settings(max_examples=30)
def test_no_number_depends_on_the_scale_of_the_weights(
    drawn: list[tuple[int, bool, int]], scale: float
) -> None:
    score, label, weight = _arrays(drawn)
    one, other = auc_of(score, label, weight), auc_of(score, label, scale * weight)
    for method in AUC_ESTIMATES:
        assert limits(one, method) == pytest.approx(limits(other, method), rel=1e-9, nan_ok=True)
    assert one.notes().tolist() == other.notes().tolist()


@given(drawn=rows)
@settings(max_examples=30)
def test_frequency_weights_are_repeated_rows(drawn: list[tuple[int, bool, int]]) -> None:
    score, label, weight = _arrays(drawn)
    times = weight.astype(int)
    counted = auc_of(score, label, weight, counted=True)
    repeated = auc_of(np.repeat(score, times), np.repeat(label, times))
    for method in AUC_ESTIMATES:
        expected = limits(repeated, method)
        assert limits(counted, method) == pytest.approx(expected, rel=1e-9, nan_ok=True)


@given(drawn=rows)
@settings(max_examples=30)
def test_the_limits_of_a_reversed_score_are_mirrored(drawn: list[tuple[int, bool, int]]) -> None:
    score, label, weight = _arrays(drawn)
    low, high = limits(auc_of(score, label, weight))
    assert limits(auc_of(-score, label, weight)) == pytest.approx([1 - high, 1 - low], abs=1e-9)
    # Classes exchanged too
    assert limits(auc_of(-score, ~label, weight)) == pytest.approx([low, high], abs=1e-9)


def running_example() -> Auc:
    """Rows of methods.md 0.4."""
    score = np.array([0.9, 0.8, 0.7, 0.7, 0.6, 0.4, 0.3])
    label = np.array([1, 0, 1, 0, 1, 0, 0], bool)
    return auc_of(score, label, np.array([1, 2, 1, 1, 2, 1, 1.0]))


def test_moments_of_the_running_example() -> None:
    # methods.md 3.3, methods3c.md 3
    auc = running_example()
    assert auc.value[0] == exactly(0.575)
    found = [auc.pos.variance[0], auc.neg.variance[0], auc.variance[0]]
    assert found == pytest.approx([0.035625, 0.050581, 0.086206], abs=5e-7)
    effective = [auc.pos.effective_rows[0], auc.neg.effective_rows[0]]
    assert effective == pytest.approx([2.667, 3.571], abs=5e-4)
    assert auc.satterthwaite_df[0] == pytest.approx(4.23, abs=5e-3)
    k = [each.number[0] for each in auc.find_misranked()]
    assert k == pytest.approx([1.3921447702, 1.6110945125], abs=5e-11)
    # The upper limit rests on the heaviness that statistics.md, section 3, predicts.
    assert limits(auc) == pytest.approx([0.1244433037, 0.9218201104], abs=5e-9)


def test_analytic_limits_of_the_running_example() -> None:
    # methods.md 3.5
    auc = running_example()
    assert limits(auc, "logit") == pytest.approx([0.114, 0.934], abs=5e-4)
    margin = stats.norm.ppf(0.975) * np.sqrt(auc.variance[0])
    wald = [max(0.575 - margin, 0), min(0.575 + margin, 1)]
    assert limits(auc, "delong") == exactly(wald)


def test_perfect_separation_has_no_limits_by_the_variance() -> None:
    auc = of_letters("p" * 5 + "n" * 20)
    methods: list[AucMethod] = ["logit", "delong"]
    for method in methods:
        assert np.isnan(limits(auc, method)).all()


def test_each_method_has_an_estimate() -> None:
    assert AUC_ESTIMATES.keys() == {*get_args(AucMethod)}


def test_a_variance_by_design_changes_limits_by_the_design_effect() -> None:
    auc = of_letters("ppnpnpnn")
    variance = 0.4 * auc.variance
    designed = Auc(auc.value, auc.complement, auc.pos, auc.neg, variance, 2.0)
    assert designed.effect[0] == pytest.approx(0.4)
    assert designed.limit_size("low")[0] == pytest.approx(0.4 * auc.limit_size("low")[0])
    assert designed.variance[0] == variance[0]
    unknown = Auc(auc.value, auc.complement, auc.pos, auc.neg, np.array([np.nan]), np.nan)
    assert np.isnan(limits(unknown)).all()
    nothing = Auc(auc.value, auc.complement, auc.pos, auc.neg, np.zeros(1))
    assert limits(nothing) == limits(auc)


def test_one_row_in_a_class_has_limits_but_no_variance() -> None:
    auc = of_letters("npnn")
    assert np.isnan(auc.variance[0])
    frame = pl.DataFrame({"s": [4, 3, 2, 1], "y": [0, 1, 0, 0], "w": [1.0] * 4})
    plain = plain_score.auc_of(frame)
    assert plain is not None
    assert limits(auc) == pytest.approx(plain_score.limits(plain, stats.norm.ppf(0.975)), rel=1e-9)


def test_means_of_aucs_have_sums_of_moments() -> None:
    rng = np.random.default_rng(5)
    frames, aucs, pairs = [], [], []
    for size in (9, 14, 30, 4):
        score, label = rng.normal(size=size).round(1), rng.random(size) < 0.5
        label[:3] = [True, False, False]
        weight = rng.lognormal(0, 0.4, size)
        # A class of one row, which is misranked to some rows
        if size == 4:
            label[3] = False
            score = np.array([0.5, 0.1, 0.9, 0.2])
        aucs.append(auc_of(score, label, weight))
        pairs.append(weight[label].sum() * weight[~label].sum())
        frames.append(pl.DataFrame({"s": score, "y": label.astype(int), "w": weight}))
    plain = [each for each in map(plain_score.auc_of, frames) if each is not None]
    rest = Reference("rest")
    weights = np.array(pairs)
    means = average_aucs(stack_aucs(*aucs), lambda v, power: rest.average_others(v, weights, power))
    for place_of, own in enumerate(plain):
        expected = plain_score.mean_of([each for each in plain if each is not own])
        assert expected is not None
        assert means.complement[place_of] == exactly(expected.delta)
        for side, moments in zip((means.pos, means.neg), expected.classes, strict=True):
            found = [getattr(side, name)[place_of] for name in ("h2", "x1", "x2", "variance")]
            assert found == pytest.approx([*moments[:3], moments.variance], rel=1e-9)
            assert side.unweighted[place_of] == exactly(moments.equal)
        size = means.sample().at_zero[place_of]
        assert size == pytest.approx(plain_score.test_size(expected), rel=1e-9)


def test_combined_moments_of_one_segment_are_its_own() -> None:
    moments = class_moments(place(np.arange(5.0), np.arange(5) % 2 == 0), positive=True)
    same = combine(moments, lambda values: values)
    assert vars(same) == vars(moments)


def test_influences_of_clusters_add_up_to_the_variance_of_single_rows() -> None:
    rng = np.random.default_rng(3)
    score, label = rng.normal(size=25), rng.random(25) < 0.4
    placed = place(score, label)
    unit = np.arange(25)
    weights = tuple(unit_sums(np.where(side, 1.0, 0.0), unit, 25) for side in (label, ~label))
    wrong = tuple(unit_sums(np.where(side, placed.x, 0.0), unit, 25) for side in (label, ~label))
    influence = auc_influence((weights[0], weights[1]), (wrong[0], wrong[1]))
    units = Units(np.zeros(25, np.int64), np.array([25.0]), np.zeros(1))
    auc = auc_of(score, label)
    assert units.variance(influence)[0] == pytest.approx(auc.variance[0], rel=1e-12)
    assert units.df(influence)[0] == min(label.sum(), (~label).sum())


def test_a_segment_without_a_class_has_no_auc() -> None:
    none = np.zeros(1)
    sums = dict.fromkeys(("rows", "weight", "squares", "cubes", "first", "second"), none)
    empty = ClassMoments.from_sums(**sums, complement=np.full(1, np.nan))
    full = class_moments(place(np.arange(4.0), np.arange(4) < 2), positive=False)
    auc = Auc(np.full(1, np.nan), np.full(1, np.nan), empty, full)
    assert np.isnan(limits(auc)).all()
    assert auc.notes().tolist() == [""]


def test_cubes_that_underflow_leave_no_limits() -> None:
    auc = auc_of(np.arange(6.0), np.arange(6) % 2 == 0, np.full(6, 1e-110))
    assert np.isnan(limits(auc)).all()
    assert np.isnan(auc.variance).all()


def test_functions_hold_for_no_segments() -> None:
    none = np.zeros(0)
    names = ("rows", "weight", "squares", "cubes", "first", "second", "complement")
    moments = ClassMoments.from_sums(**dict.fromkeys(names, none))
    auc = Auc(none, none, moments, moments)
    for method in AUC_ESTIMATES:
        low, high = auc.estimate(method).limits(1.96)
        assert low.shape == high.shape == (0,)
    assert auc.notes().shape == (0,)
    assert equal_aucs(auc, auc, LEVEL).p_value.shape == (0,)
