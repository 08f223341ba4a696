"""PSI by mid-weights and the KS test: the worked examples, definitions and symmetry."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_placements import Floats
from scipy import special, stats

from polars_wroc.arrays import Array, Ints
from polars_wroc.stats.levels import Level
from polars_wroc.stats.shifts import TENTHS, Shift, find_tenths, measure_ks, measure_psi, sum_tenths

pytestmark = pytest.mark.usefixtures("undefined_is_nan")

LEVEL = Level(0.05)
BEFORE = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 1, 1, 1, 1, 1.0])
AFTER = np.array([0.1, 0.3, 0.35, 0.6, 1, 1, 1, 1])


def places(scores: Floats, before: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return the shares of the weight before that are below scores, and up to them."""
    total = weight.sum()
    below = np.array([weight[before < score].sum() for score in scores]) / total
    through = np.array([weight[before <= score].sum() for score in scores]) / total
    return below, through


def psi_of(
    before: Floats,
    after: Floats,
    before_weight: Floats | None = None,
    after_weight: Floats | None = None,
) -> Shift:
    v = np.ones(len(before)) if before_weight is None else before_weight
    w = np.ones(len(after)) if after_weight is None else after_weight
    tenths, sizes = [], []
    for scores, weight in ((after, w), (before, v)):
        zero = np.zeros(len(scores), np.int64)
        tenths.append(sum_tenths(*places(scores, before, v), weight, zero, 1))
        sizes.append(np.array([weight.sum() ** 2 / (weight**2).sum()]))
    return measure_psi(tenths[0], tenths[1], sizes[0], sizes[1], LEVEL)


def numbers(shift: Shift) -> list[float]:
    return [float(each[0]) for each in (shift.value, shift.critical, shift.p_value)]


WORKED = [
    (BEFORE, AFTER, (0.1986869012, 9.7312170790, 0.9996784323), 7),
    (np.arange(100.0), np.arange(20.0, 120), (0.7889115897, 0.3967500248, 0.0001031772), 10),
    (np.arange(100.0), np.arange(200.0, 300), (4.6336776776, 0.4306648845, 0.0), 10),
    (np.full(1000, 0.4), np.full(1000, 0.5), (15.1942040166, 0.0077059664, 0.0), 2),
]


@pytest.mark.parametrize(("before", "after", "expected", "bins"), WORKED)
def test_psi_is_that_of_the_worked_examples(
    before: Floats, after: Floats, expected: Sequence[float], bins: int
) -> None:
    # statistics.md, section 4
    shift = psi_of(before, after)
    assert numbers(shift) == pytest.approx(expected, abs=5e-11)
    assert shift.bins is not None
    assert shift.bins.tolist() == [bins]
    assert numbers(psi_of(-before, -after)) == pytest.approx(expected, abs=5e-11)


def test_weighted_psi_is_that_of_the_worked_example() -> None:
    # statistics.md, section 4
    shift = psi_of(BEFORE, AFTER, np.arange(1, 11.0), np.arange(1, 9.0))
    assert numbers(shift) == pytest.approx([0.0124703383, 6.3265306422, 0.9994938812], abs=5e-11)


@pytest.mark.parametrize(
    ("rows", "p_value"), [(20, 0.1753786859), (25, 0.0428255695), (30, 0.0014859320)]
)
def test_a_total_shift_is_found_from_25_rows_on(rows: int, p_value: float) -> None:
    # statistics.md, section 4
    shift = psi_of(np.arange(float(rows)), np.arange(float(rows)) + rows)
    assert shift.p_value[0] == pytest.approx(p_value, abs=5e-11)


def test_one_score_before_and_after_has_no_test() -> None:
    shift = psi_of(np.full(9, 0.4), np.full(9, 0.4))
    assert shift.value.tolist() == [0]
    assert np.isnan(shift.p_value[0])
    assert np.isnan(shift.critical[0])
    assert shift.bins is not None
    assert shift.bins.tolist() == [1]


def test_a_mass_at_the_top_counts_as_one_at_the_bottom() -> None:
    # statistics.md, section 4: 95 %, then 57 % of scores at a cap of 1
    rng = np.random.default_rng(0)
    before = np.r_[rng.random(50), np.ones(950)]
    after = np.r_[rng.random(430), np.ones(570)]
    found = psi_of(before, after).value[0]
    assert found == pytest.approx(psi_of(1 - before, 1 - after).value[0])
    assert 0.9 < found < 1.2


@given(
    before=st.lists(st.tuples(st.integers(0, 12), st.integers(1, 4)), min_size=1, max_size=60),
    after=st.lists(st.tuples(st.integers(0, 12), st.integers(1, 4)), min_size=1, max_size=60),
)
@settings(max_examples=60)
def test_mirrored_scores_have_the_same_psi(
    before: list[tuple[int, int]], after: list[tuple[int, int]]
) -> None:
    (b, v), (a, w) = (np.array(each, float).T for each in (before, after))
    one, mirrored = psi_of(b, a, v, w), psi_of(-b, -a, v, w)
    assert numbers(one) == pytest.approx(numbers(mirrored), rel=1e-9, abs=1e-12, nan_ok=True)
    # Weights may have any scale.
    scaled = psi_of(b, a, 1e-3 * v, 1e4 * w)
    assert numbers(one) == pytest.approx(numbers(scaled), rel=1e-9, abs=1e-12, nan_ok=True)


def test_distinct_scores_fill_equal_tenths() -> None:
    scores = np.random.default_rng(3).permutation(200).astype(float)
    tenths = sum_tenths(
        *places(scores, scores, np.ones(200)), np.ones(200), np.zeros(200, np.int64), 1
    )
    assert tenths[:, 0].tolist() == [20] * TENTHS
    # As usual PSI then: the sum over tenths between quantiles.
    after = np.random.default_rng(4).integers(0, 200, 300).astype(float)
    shares = np.histogram(after, np.arange(0, 201, 20))[0] / 300
    expected = ((shares - 0.1) * np.log(shares / 0.1)).sum()
    shift = psi_of(scores, after)
    assert shift.value[0] == pytest.approx(expected)
    # Equal tenths of B bins: v (1 + .75 B v) times the quantile of chi-squared
    v = 1 / 300 + 1 / 200
    scale = v * (1 + 0.75 * 10 * v)
    assert shift.critical[0] == pytest.approx(scale * stats.chi2.ppf(0.95, 9), rel=2e-3)


@pytest.mark.parametrize(
    ("below", "through", "tenth", "part"),
    [
        pytest.param(0.0, 0.0, 0, 0, id="below all rows"),
        pytest.param(1.0, 1.0, 9, 0, id="above all rows"),
        pytest.param(0.0, 1.0, 4, 0, id="one score"),
        pytest.param(0.25, 0.35, 2, 0, id="on an edge below the middle"),
        pytest.param(0.65, 0.75, 7, 0, id="on an edge above the middle"),
        pytest.param(0.45, 0.55, 4, 0.5, id="in the middle"),
        pytest.param(0.4, 0.6, 4, 0, id="a large atom in the middle"),
        pytest.param(0.41, 0.46, 4, 0, id="inside a tenth"),
    ],
)
def test_a_score_is_in_the_tenth_of_its_mid_weight(
    below: float, through: float, tenth: int, part: float
) -> None:
    found = find_tenths(np.array([below]), np.array([through]))
    assert [each.tolist() for each in found] == [[tenth], [part]]


def test_several_segments_have_their_own_tenths() -> None:
    rng = np.random.default_rng(6)
    before, after = rng.normal(size=(3, 40)), rng.normal(size=(3, 50)) + 0.3
    alone = [psi_of(b, a) for b, a in zip(before, after, strict=True)]
    tenths: list[Array] = []
    for scores in (after, before):
        ends = [places(own, b, np.ones(40)) for own, b in zip(scores, before, strict=True)]
        segment: Ints = np.repeat(np.arange(3), scores.shape[1])
        below, through = (np.concatenate(each) for each in zip(*ends, strict=True))
        tenths.append(sum_tenths(below, through, np.ones(scores.size), segment, 3))
    together = measure_psi(tenths[0], tenths[1], np.full(3, 50.0), np.full(3, 40.0), LEVEL)
    for place_of, shift in enumerate(alone):
        found = [float(np.asarray(each)[place_of]) for each in together[:3]]
        assert found == pytest.approx(numbers(shift))


def test_a_period_without_rows_has_no_psi() -> None:
    tenths = np.zeros((TENTHS, 2))
    tenths[3] = [5, 5]
    none = np.array([[0.0, 1]] * TENTHS)
    shift = measure_psi(tenths, none, np.full(2, 5.0), np.array([np.nan, 10]), LEVEL)
    assert np.isnan(shift.value).tolist() == [True, False]
    assert np.isnan(shift.p_value).tolist() == [True, False]


def test_the_ks_test_is_the_asymptotic_one_with_stephens_factor() -> None:
    distance, n, m = np.array([0.05, 0.2, 0.9, 0.0]), np.full(4, 60.0), np.full(4, 90.0)
    shift = measure_ks(distance, n, m, LEVEL)
    root = np.sqrt(60 * 90 / 150)
    scale = root + 0.12 + 0.11 / root
    assert shift.p_value == pytest.approx(stats.kstwobign.sf(distance * scale))
    assert shift.critical == pytest.approx(stats.kstwobign.ppf(0.95) / scale)
    # The p-value at the critical distance
    assert special.kolmogorov(shift.critical[0] * scale) == pytest.approx(0.05)
    assert shift.p_value[3] == 1


def test_the_ks_test_is_near_the_exact_one() -> None:
    rng = np.random.default_rng(12)
    one, other = rng.normal(size=80), rng.normal(size=60) + 0.4
    exact = stats.ks_2samp(one, other, method="exact")
    shift = measure_ks(np.array([exact.statistic]), np.array([80.0]), np.array([60.0]), LEVEL)
    assert shift.p_value[0] == pytest.approx(exact.pvalue, abs=0.02)


def test_functions_hold_for_no_segments() -> None:
    none = np.zeros(0)
    tenths = sum_tenths(none, none, none, none.astype(np.int64), 0)
    assert tenths.shape == (TENTHS, 0)
    assert measure_psi(tenths, tenths, none, none, LEVEL).value.shape == (0,)
    assert measure_ks(none, none, none, LEVEL).p_value.shape == (0,)
    # Segments without rows
    empty, size = np.zeros((TENTHS, 1)), np.full(1, np.nan)
    assert np.isnan(measure_psi(empty, empty, size, size, LEVEL).value).all()
