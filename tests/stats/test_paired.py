"""Two scores on the same rows: the worked examples, DeLong's tests and properties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_placements import Flags, Floats, auc_of, place, unit_sums
from scipy import stats

from polars_wroc.arrays import Ints
from polars_wroc.stats.designs import ReplicateUnits, Units, effective_carriers, replicate_influence
from polars_wroc.stats.levels import Level, RepeatedLooks
from polars_wroc.stats.means import Difference
from polars_wroc.stats.paired import PairedAuc, PairedClass, difference_influence, unpaired_delong

pytestmark = pytest.mark.usefixtures("undefined_is_nan")

LEVEL = Level(0.05)
# Rows of methods3a.md, 1.5.
LABEL = np.array([1, 1, 1, 1, 0, 0, 0, 0, 0, 0], bool)
OLD = np.array([0.9, 0.7, 0.4, 0.2, 0.8, 0.5, 0.3, 0.3, 0.15, 0.1])
NEW = np.array([0.95, 0.6, 0.45, 0.5, 0.7, 0.35, 0.4, 0.2, 0.2, 0.05])
ONES = np.ones(10)
WEIGHT = np.array([1, 2, 1, 3, 1, 2, 1, 1, 2, 1.0])


def changes_of(old: Floats, new: Floats, label: Flags, weight: Floats) -> Floats:
    return place(old, label, weight).x - place(new, label, weight).x


def paired_of(
    old: Floats,
    new: Floats,
    label: Flags,
    weight: Floats | None = None,
    *,
    counted: bool = False,
) -> PairedAuc:
    """Compare two scores of one segment; ``counted`` weights are numbers of rows of weight 1."""
    weight = np.ones(len(old)) if weight is None else weight
    d = changes_of(old, new, label, weight)
    difference = np.array([np.average(d[label], weights=weight[label])])
    parts = []
    for side in (label, ~label):
        w, change = weight[side], d[side]
        each = np.ones_like(w) if counted else w
        sums = {
            "weight": w.sum(),
            "squares": (w * each).sum(),
            "cubes": (w * each**2).sum(),
            "first": (w * each * change).sum(),
            "second": (w * each * change**2).sum(),
            "fourth": (w * each**3 * change**4).sum(),
        }
        columns = {name: np.array([value]) for name, value in sums.items()}
        parts.append(PairedClass.from_sums(**columns, difference=difference))
    return PairedAuc(difference, parts[0], parts[1])


def described(difference: Difference, level: Level = LEVEL) -> list[float]:
    low, high = difference.limits(level.quantile(difference.df))
    return [low[0], high[0], difference.p_value(level)[0]]


@pytest.mark.parametrize(
    ("weight", "gap", "variance", "carriers", "careful", "df", "tested", "z", "of_delong"),
    [
        pytest.param(
            ONES,
            0.1666666667,
            0.0208333333,
            (1.2195121951, 2.0),
            0.0587876649,
            5.5653816685,
            (-0.4380295849, 0.7713629183, 0.5194340473),
            1.1547005384,
            (-0.1162297669, 0.4495631002, 0.2482130790),
            id="unit weights",
        ),
        pytest.param(
            WEIGHT,
            0.25,
            0.0469656678,
            (1.0555127217, 1.5791451386),
            0.1027629859,
            4.3042619439,
            (-0.6157639014, 1.1157639014, 0.4761339667),
            1.1535854186,
            (-0.1747548454, 0.6747548454, 0.2486701793),
            id="weights",
        ),
    ],
)
def test_a_difference_is_that_of_the_worked_example(
    weight: Floats,
    gap: float,
    variance: float,
    carriers: tuple[float, float],
    careful: float,
    df: float,
    tested: tuple[float, float, float],
    z: float,
    of_delong: tuple[float, float, float],
) -> None:
    # statistics.md, section 2
    paired = paired_of(OLD, NEW, LABEL, weight)
    numbers = [paired.value, paired.variance, paired.careful_variance, paired.df]
    found = [float(np.asarray(each)[0]) for each in numbers]
    assert found == pytest.approx([gap, variance, careful, df], abs=5e-11)
    assert [paired.pos.carriers[0], paired.neg.carriers[0]] == pytest.approx(carriers, abs=5e-11)
    assert described(paired.estimate()) == pytest.approx(tested, abs=5e-11)
    assert paired.by_delong().z[0] == pytest.approx(z, abs=5e-11)
    assert described(paired.by_delong()) == pytest.approx(of_delong, abs=5e-11)


def test_sixty_rows_of_the_worked_example() -> None:
    # statistics.md, section 2
    label = np.arange(60) < 20
    old = np.random.default_rng(1).normal(size=60) + label
    new = old + 0.2 * np.sin(np.arange(60.0))
    paired = paired_of(old, new, label)
    numbers = [paired.value, paired.variance, paired.careful_variance, paired.df]
    found = [float(np.asarray(each)[0]) for each in numbers]
    expected = [-0.0150000000, 0.0002695007, 0.0012088014, 26.4580235442]
    assert found == pytest.approx(expected, abs=5e-11)
    carriers = [paired.pos.carriers[0], paired.neg.carriers[0]]
    assert carriers == pytest.approx([3.6363636364, 11.0422535211], abs=5e-11)
    expected = [-0.0864061140, 0.0564061140, 0.6696484130]
    assert described(paired.estimate()) == pytest.approx(expected, abs=5e-11)


rows = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 5), st.booleans(), st.integers(1, 6)), min_size=3
)


def _arrays(
    drawn: list[tuple[int, int, bool, int]],
) -> tuple[Floats, Floats, Flags, Floats]:
    # At least two rows of each class
    added = [(1, 2, True, 1), (3, 1, True, 2), (0, 0, False, 1), (4, 2, False, 1)]
    old, new, label, weight = (np.array(column) for column in zip(*drawn, *added, strict=True))
    return old.astype(float), new.astype(float), label, weight.astype(float)


@given(drawn=rows)
@settings(max_examples=30)
def test_the_variance_is_delongs_for_correlated_curves(
    drawn: list[tuple[int, int, bool, int]],
) -> None:
    old, new, label, _ = _arrays([(a, b, y, 1) for a, b, y, _ in drawn])
    # DeLong, DeLong and Clarke-Pearson (1988): S = S10 / m + S01 / n, and the contrast (-1, 1)
    both = np.stack([place(each, label).x for each in (old, new)])
    s10, s01 = np.cov(both[:, label]), np.cov(both[:, ~label])
    s = s10 / label.sum() + s01 / (~label).sum()
    contrast = np.array([-1, 1])
    paired = paired_of(old, new, label)
    assert paired.variance[0] == pytest.approx(contrast @ s @ contrast, abs=1e-14)
    aucs = [auc_of(each, label).value[0] for each in (old, new)]
    assert paired.value[0] == pytest.approx(aucs[1] - aucs[0], abs=1e-14)


@given(drawn=rows)
@settings(max_examples=30)
def test_the_careful_variance_follows_its_definition(
    drawn: list[tuple[int, int, bool, int]],
) -> None:
    old, new, label, weight = _arrays(drawn)
    d = changes_of(old, new, label, weight)
    difference = np.average(d[label], weights=weight[label])
    total, inverse_df = 0.0, 0.0
    for side in (label, ~label):
        h, change = weight[side] / weight[side].sum(), d[side]
        h2, h3 = (h**2).sum(), (h**3).sum()
        v = h2 / (h2 - 2 * h3 + h2**2) * (h**2 * (change - difference) ** 2).sum()
        s2 = (h**2 * change**2).sum()
        k = s2**2 / (h**4 * change**4).sum() if s2 > 1e-20 else 0.0
        part = v + h2**2 / 2 * (16 / (16 + k)) ** 2
        total += part
        inverse_df += part**2 / max(1 / h2 - 1, 1)
    paired = paired_of(old, new, label, weight)
    assert paired.careful_variance[0] == pytest.approx(total, rel=1e-10)
    assert np.asarray(paired.df)[0] == pytest.approx(max(total**2 / inverse_df, 1), rel=1e-10)


@given(drawn=rows)
@settings(max_examples=30)
def test_frequency_weights_are_repeated_rows(drawn: list[tuple[int, int, bool, int]]) -> None:
    old, new, label, weight = _arrays(drawn)
    counted = paired_of(old, new, label, weight, counted=True)
    times = weight.astype(int)
    repeated = paired_of(np.repeat(old, times), np.repeat(new, times), np.repeat(label, times))
    assert described(counted.estimate()) == pytest.approx(
        described(repeated.estimate()), rel=1e-9, abs=1e-12
    )


@given(drawn=rows, scale=st.sampled_from([1e-5, 7.0, 1e8]))
@settings(max_examples=30)
def test_no_number_depends_on_the_scale_of_the_weights(
    drawn: list[tuple[int, int, bool, int]], scale: float
) -> None:
    old, new, label, weight = _arrays(drawn)
    one = paired_of(old, new, label, weight)
    other = paired_of(old, new, label, scale * weight)
    assert described(one.estimate()) == pytest.approx(
        described(other.estimate()), rel=1e-9, abs=1e-12
    )


@given(drawn=rows)
@settings(max_examples=30)
def test_exchanged_scores_have_mirrored_limits(drawn: list[tuple[int, int, bool, int]]) -> None:
    old, new, label, weight = _arrays(drawn)
    one, other = paired_of(old, new, label, weight), paired_of(new, old, label, weight)
    low, high, p_value = described(one.estimate())
    expected = [-high, -low, p_value]
    assert described(other.estimate()) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_scores_in_the_same_order_have_limits_around_zero() -> None:
    weight = np.random.default_rng(2).lognormal(size=10)
    paired = paired_of(OLD, OLD**3, LABEL, weight)
    assert paired.same_order.tolist() == [True]
    assert paired.value.tolist() == [0]
    assert paired.variance.tolist() == [0]
    # +-t sqrt(sum h2^2 / 2), since a few rows in the same order do not show that all are
    h2 = [((weight[side] / weight[side].sum()) ** 2).sum() for side in (LABEL, ~LABEL)]
    margin = LEVEL.quantile(paired.df)[0] * np.sqrt((h2[0] ** 2 + h2[1] ** 2) / 2)
    assert described(paired.estimate()) == pytest.approx([-margin, margin, 1])
    # pROC's z is 0 then.
    assert paired.by_delong().z.tolist() == [0]
    assert described(paired.by_delong()) == [0, 0, 1]


def test_one_row_in_a_class_has_no_variance_of_its_own() -> None:
    label = np.arange(10) == 3
    paired = paired_of(OLD, NEW, label)
    assert paired.pos.variance.tolist() == [0]
    assert paired.pos.carriers[0] == pytest.approx(1)
    assert np.isfinite(described(paired.estimate())).all()


def test_a_class_without_rows_has_no_difference() -> None:
    sums = dict.fromkeys(("weight", "squares", "cubes", "first", "second", "fourth"), np.zeros(1))
    none = PairedClass.from_sums(**sums, difference=np.full(1, np.nan))
    paired = PairedAuc(np.full(1, np.nan), none, none)
    assert np.isnan(described(paired.estimate())).all()
    assert np.isnan(described(paired.by_delong())).all()


def test_every_look_widens_the_limits() -> None:
    paired = paired_of(OLD, NEW, LABEL)
    looks = Level(0.05, RepeatedLooks(planned=10, seen=10))
    now, always = (described(paired.estimate(), level) for level in (LEVEL, looks))
    assert always[0] < now[0] < now[1] < always[1]
    assert always[2] > now[2]


def by_clusters(weight: Floats, unit: Ints) -> tuple[PairedAuc, Floats]:
    d = changes_of(OLD, NEW, LABEL, weight)
    number = int(unit.max()) + 1
    of_class = [np.where(side, weight, 0.0) for side in (LABEL, ~LABEL)]
    weights = [unit_sums(each, unit, number) for each in of_class]
    changes = [unit_sums(each * d, unit, number) for each in of_class]
    influence = difference_influence((weights[0], weights[1]), (changes[0], changes[1]))
    units = Units(np.zeros(number, np.int64), np.array([float(number)]), np.zeros(1))
    variance = units.variance(influence)
    carriers = effective_carriers(changes[0]), effective_carriers(changes[1])
    paired = paired_of(OLD, NEW, LABEL, weight)
    return paired.by_design(variance, units.df(influence), carriers), variance


@pytest.mark.parametrize("weight", [ONES, WEIGHT])
def test_clusters_of_one_row_have_the_variance_of_rows(weight: Floats) -> None:
    paired, variance = by_clusters(weight, np.arange(10))
    of_rows = paired_of(OLD, NEW, LABEL, weight)
    assert variance == pytest.approx(of_rows.variance)
    assert paired.careful_variance == pytest.approx(of_rows.careful_variance)
    assert np.asarray(paired.df).tolist() == [4]


def test_carriers_by_a_design_are_its_units() -> None:
    unit = np.array([0, 0, 1, 2, 0, 1, 1, 2, 3, 3])
    paired, variance = by_clusters(ONES, unit)
    d = changes_of(OLD, NEW, LABEL, ONES)
    total = variance[0]
    for side in (LABEL, ~LABEL):
        h = 1 / side.sum()
        z = np.array([(h * d[side & (unit == each)]).sum() for each in range(4)])
        k = (z**2).sum() ** 2 / (z**4).sum()
        total += h**2 / 2 * (16 / (16 + k)) ** 2
    assert paired.careful_variance[0] == pytest.approx(total)
    # By replicate weights rows are counted.
    replicates = ReplicateUnits(np.full(3, 1 / 3), 2.0)
    values = np.array([[0.16], [0.2], [0.1], [0.17]])
    by_weights = replicates.variance(replicate_influence(values))
    of_rows = paired_of(OLD, NEW, LABEL)
    paired = of_rows.by_design(by_weights, 2.0)
    added = of_rows.careful_variance - of_rows.variance
    assert paired.careful_variance == pytest.approx(by_weights + added)


def test_the_unpaired_test_is_welchs_as_proc_has_it() -> None:
    rng = np.random.default_rng(7)
    label, other_label = np.arange(30) < 9, np.arange(50) < 21
    score, other_score = rng.normal(size=30) + label, rng.normal(size=50) + 2 * other_label
    found = unpaired_delong(auc_of(score, label), auc_of(other_score, other_label))
    aucs, variances = [], []
    for s, y in ((score, label), (other_score, other_label)):
        v10 = 1 - place(s, y).x[y]
        v01 = 1 - place(s, y).x[~y]
        aucs.append(v10.mean())
        variances.append(v10.var(ddof=1) / y.sum() + v01.var(ddof=1) / (~y).sum())
    t = (aucs[0] - aucs[1]) / np.sqrt(sum(variances))
    df = sum(variances) ** 2 / (variances[0] ** 2 / 29 + variances[1] ** 2 / 49)
    assert found.z[0] == pytest.approx(t)
    assert np.asarray(found.df)[0] == pytest.approx(df)
    assert found.p_value(LEVEL)[0] == pytest.approx(2 * stats.t.sf(abs(t), df))


def test_powers_that_underflow_or_overflow_leave_no_limits() -> None:
    for new, scale in ((NEW, 1e-90), (OLD, 1e-120), (OLD, 1e120)):
        paired = paired_of(OLD, new, LABEL, scale * WEIGHT)
        assert np.isnan(described(paired.estimate())).all()


def test_functions_hold_for_no_segments() -> None:
    none = np.zeros(0)
    sums = dict.fromkeys(("weight", "squares", "cubes", "first", "second", "fourth"), none)
    part = PairedClass.from_sums(**sums, difference=none)
    difference = PairedAuc(none, part, part).estimate()
    assert difference.limits(LEVEL.quantile(difference.df)).low.shape == (0,)
    assert difference.p_value(LEVEL).shape == (0,)
