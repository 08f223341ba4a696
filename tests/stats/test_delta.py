"""Functions of the cells of confusion matrices: derivatives by hand and other packages."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from plain_placements import Flags, Floats, unit_sums
from plain_rates import ByHand, f1, lr_pos, youden
from plain_survey import covariance
from scipy import stats
from sklearn import metrics as peers

from polars_wroc.stats.delta import CellFunction, CellValue, evaluate
from polars_wroc.stats.designs import ReplicateUnits, Units
from polars_wroc.stats.estimates import Wald
from polars_wroc.stats.levels import Level
from polars_wroc.thresholds.limits import cell_function
from polars_wroc.thresholds.registry import RATES, THRESHOLD_METRICS

pytestmark = pytest.mark.usefixtures("undefined_is_nan")

LEVEL = Level(0.05)
NAMES = [name for name in THRESHOLD_METRICS if name not in RATES]
# A value on its scale, and its derivatives by tp, fp, fn and tn.


class Sample(NamedTuple):
    """Rows with weights, which cell each is in (one column per cell), and their clusters."""

    label: Flags
    selected: Flags
    weight: Floats
    cells: Floats
    cluster: np.ndarray


def sample(seed: int, *, weighted: bool = True, rows: int = 90) -> Sample:
    rng = np.random.default_rng(seed)
    y = rng.random(rows) < 0.35
    selected = 0.25 * y + 0.6 * rng.random(rows) >= 0.3
    weight = rng.lognormal(0, 0.8, rows) if weighted else np.ones(rows)
    cells = np.stack([y & selected, ~y & selected, y & ~selected, ~y & ~selected], axis=1)
    return Sample(y, selected, weight, cells.astype(float), np.arange(rows) // 6)


def function_of(name: str) -> CellFunction:
    return cell_function(THRESHOLD_METRICS[name], np.array([0.3]))


def value_of(name: str, drawn: Sample) -> CellValue:
    function = function_of(name)
    powers = drawn.weight, drawn.weight**2, np.ones_like(drawn.weight)
    sums = [(power @ drawn.cells)[:, np.newaxis] for power in powers]
    return evaluate(function, sums[0], sums[1], sums[2])


def limits(estimate: Wald) -> list[float]:
    low, high = estimate.limits(LEVEL.quantile(estimate.df))
    return [float(low[0]), float(high[0])]


def lift(tp: float, fp: float, fn: float, tn: float) -> ByHand:
    pos, chosen, total = tp + fn, tp + fp, tp + fp + fn + tn
    slopes = [
        1 / tp - 1 / chosen - 1 / pos + 1 / total,
        1 / total - 1 / chosen,
        1 / total - 1 / pos,
        1 / total,
    ]
    return np.log(tp * total / chosen / pos), np.array(slopes)


def mcc(tp: float, fp: float, fn: float, tn: float) -> ByHand:
    pos, neg, chosen, left = tp + fn, fp + tn, tp + fp, fn + tn
    root = np.sqrt(pos * neg * chosen * left)
    value = (tp * tn - fp * fn) / root
    halves = [1 / pos + 1 / chosen, 1 / neg + 1 / chosen, 1 / pos + 1 / left, 1 / neg + 1 / left]
    slopes = np.array([tn, -fn, -fp, tp]) / root - value * np.array(halves) / 2
    return np.log((1 + value) / (1 - value)), 2 * slopes / (1 - value**2)


def benefit(tp: float, fp: float, fn: float, tn: float) -> ByHand:
    odds, total = 0.3 / 0.7, tp + fp + fn + tn
    value = (tp - odds * fp) / total
    slopes = (np.array([1, -odds, 0, 0]) - value) / total
    return np.log((value + odds) / (1 - value)), slopes / (value + odds) + slopes / (1 - value)


BY_HAND: dict[str, Callable[..., ByHand]] = {
    "f1": f1,
    "lift": lift,
    "lr_pos": lr_pos,
    "mcc": mcc,
    "net_benefit": benefit,
    "youden": youden,
}


def invert(name: str, place_of: float) -> float:
    if name in ("lift", "lr_pos"):
        return float(np.exp(place_of))
    low = {"f1": 0.0, "net_benefit": -0.3 / 0.7}.get(name, -1.0)
    return float(low + (1 - low) / (1 + np.exp(-place_of)))


def limits_by_hand(name: str, drawn: Sample, *, clustered: bool = False) -> list[float]:
    w, cells = drawn.weight, drawn.cells
    mean = (w**2).sum() / w.sum()
    centre, slopes = BY_HAND[name](*(w @ cells + 0.5 * mean))
    variance = float(slopes**2 @ (w**2 @ cells))
    lost = mean / w.sum() - 1 / len(w)
    quantile = stats.t.ppf(0.975, 1 / lost) if lost > 1e-9 else stats.norm.ppf(0.975)
    if clustered:
        influences = (w[:, None] * (cells - w @ cells / w.sum())) @ slopes
        totals = [influences[drawn.cluster == c].sum() for c in range(15)]
        shares = np.array([w[drawn.cluster == c].sum() for c in range(15)]) / w.sum()
        s2, s3 = (shares**2).sum(), (shares**3).sum()
        by_design = s2 / (s2 - 2 * s3 + s2**2) * np.square(totals).sum()
        variance = max(variance, by_design)
        quantile = stats.t.ppf(0.975, 14)
    error = np.sqrt(variance + (slopes**2).sum() * 0.5 * mean**2)
    own, _ = BY_HAND[name](*(w @ cells))
    ends = min(own, centre) - quantile * error, max(own, centre) + quantile * error
    return [invert(name, each) for each in ends]


def unit_cells(drawn: Sample) -> Floats:
    columns = [unit_sums(drawn.weight * cell, drawn.cluster, 15) for cell in drawn.cells.T]
    return np.stack(columns)


@pytest.mark.parametrize("name", BY_HAND)
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("weighted", [True, False])
def test_limits_are_those_of_derivatives_by_hand(name: str, seed: int, weighted: bool) -> None:
    drawn = sample(seed, weighted=weighted)
    value = value_of(name, drawn)
    assert limits(value.estimate()) == pytest.approx(limits_by_hand(name, drawn), rel=1e-8)
    units = Units(np.zeros(15, np.int64), np.array([15.0]), np.zeros(1))
    influence = value.influence(units, unit_cells(drawn))
    by_design = value.estimate(units.variance(influence), units.df(influence))
    expected = limits_by_hand(name, drawn, clustered=True)
    assert limits(by_design) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("name", ["f1", "mcc"])
def test_influences_in_strata_have_the_variance_of_the_definition(name: str) -> None:
    drawn = sample(4)
    value = value_of(name, drawn)
    stratum = np.arange(15) % 3
    units = Units(stratum, np.full(3, 5.0), np.zeros(3))
    influence = value.influence(units, unit_cells(drawn))
    w = drawn.weight
    rows = (w[:, None] * (drawn.cells - w @ drawn.cells / w.sum())) @ value.slopes[:, 0]
    totals = {(int(stratum[c]), c): float(rows[drawn.cluster == c].sum()) for c in range(15)}
    expected = covariance(totals, totals, {*totals})
    assert units.variance(influence)[0] == pytest.approx(expected)
    assert units.df(influence).tolist() == [12]


def test_replicates_move_the_shares_of_cells() -> None:
    drawn = sample(5)
    value = value_of("f1", drawn)
    weights = drawn.weight * np.random.default_rng(6).poisson(1, (8, 90))
    cells = np.stack([each @ drawn.cells for each in (drawn.weight, *weights)], axis=1)
    units = ReplicateUnits(np.full(8, 1 / 8), 7.0)
    influence = value.influence(units, cells[:, :, np.newaxis])
    shares = cells / cells.sum(axis=0)
    moved = drawn.weight.sum() * value.slopes[:, 0] @ (shares[:, 1:] - shares[:, :1])
    assert units.variance(influence)[0] == pytest.approx((moved**2).mean())


def test_values_are_those_of_scikit_learn() -> None:
    drawn = sample(3)
    given = {"y_true": drawn.label, "y_pred": drawn.selected, "sample_weight": drawn.weight}
    ratios = peers.class_likelihood_ratios(**given)
    expected = {
        "balanced_accuracy": peers.balanced_accuracy_score(**given),
        "f1": peers.f1_score(**given),
        "f2": peers.fbeta_score(beta=2, **given),
        "jaccard": peers.jaccard_score(**given),
        "mcc": peers.matthews_corrcoef(**given),
        "youden": 2 * peers.balanced_accuracy_score(**given) - 1,
        "lr_pos": ratios[0],
        "lr_neg": ratios[1],
    }
    found = {name: value_of(name, drawn).value[0] for name in expected}
    assert found == pytest.approx(expected)
    tp, fp, fn, tn = drawn.weight @ drawn.cells
    assert value_of("lift", drawn).value[0] == pytest.approx(
        tp / (tp + fp) / ((tp + fn) / (tp + fp + fn + tn))
    )
    expected_markedness = tp / (tp + fp) + tn / (tn + fn) - 1
    assert value_of("markedness", drawn).value[0] == pytest.approx(expected_markedness)


@pytest.mark.parametrize("name", NAMES)
def test_the_variance_is_that_of_a_bootstrap(name: str) -> None:
    drawn = sample(8, weighted=False, rows=4000)
    value = value_of(name, drawn)
    counts = np.random.default_rng(9).multinomial(4000, drawn.cells.mean(axis=0), 4000).T
    function = function_of(name)
    places = function.scale.transform(function.formula(*counts.astype(float)))
    assert np.sqrt(value.row_variance[0]) == pytest.approx(places.std(), rel=0.05)


def test_the_covariance_with_all_rows_is_due_to_shared_rows() -> None:
    drawn = sample(10)
    inside = drawn.cluster < 5
    part = Sample(
        drawn.label[inside],
        drawn.selected[inside],
        drawn.weight[inside],
        drawn.cells[inside],
        drawn.cluster[inside],
    )
    own, whole = value_of("f1", part), value_of("f1", drawn)
    squares = (part.weight**2 @ part.cells)[:, np.newaxis]
    expected = 0.0
    for w, cell in zip(part.weight, part.cells, strict=True):
        expected += w**2 * (cell @ own.slopes[:, 0]) * (cell @ whole.slopes[:, 0])
    assert own.covariance(whole, squares)[0] == pytest.approx(expected)


def test_values_at_an_end_have_limits_on_one_side() -> None:
    cells = np.array([[12.0], [0.0], [0.0], [30.0]])
    value = evaluate(function_of("f1"), cells, cells, cells)
    low, high = limits(value.estimate())
    assert value.value.tolist() == [1]
    assert 0.7 < low < 1
    assert high == 1


@pytest.mark.parametrize("name", NAMES)
def test_values_that_are_undefined_have_no_limits(name: str) -> None:
    # Without rows, and where no row is selected or positive
    cells = np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 9.0]])
    value = evaluate(function_of(name), cells, cells, cells)
    low, high = value.estimate().limits(1.96)
    undefined = np.isnan(value.value)
    assert undefined[0]
    assert np.isnan(low[undefined]).all()
    assert np.isnan(high[undefined]).all()


def test_functions_hold_for_no_segments() -> None:
    none = np.zeros((4, 0))
    for name in NAMES:
        value = evaluate(cell_function(THRESHOLD_METRICS[name], np.zeros(0)), none, none, none)
        assert value.estimate().limits(1.96).low.shape == (0,)
