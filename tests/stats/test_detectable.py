"""Smallest detectable differences: a worked number, roots by scipy and bisection, the power."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_rates import Floats, Side, smallest
from scipy import stats

from polars_wroc.plans.formulas import Columns, Fields, Formula, in_columns
from polars_wroc.stats.difference_tests import Comparison
from polars_wroc.stats.difference_tests import detectable as smallest_difference


def detectable(
    reference: float, sizes: tuple[Side, Side], level: float = 0.95, most: float | None = None
) -> float | None:
    """Compute it for one comparison."""
    largest = reference if most is None else most
    frame = pl.LazyFrame({"quantile": [stats.norm.ppf((1 + level) / 2)]})
    found: float | None = in_table(frame, comparison(reference, sizes, largest)).item()
    return found


def in_table(frame: pl.LazyFrame, compared: Comparison) -> pl.Series:
    """Compute it for a comparison in columns of a frame."""

    def step(field: Fields) -> Formula[Columns]:
        found = yield from smallest_difference(compared, field("quantile"))
        return {"found": found}

    return in_columns(frame, [step]).collect()["found"]


def comparison(reference: float, sizes: tuple[Side, Side], largest: float) -> Comparison:
    own, other = sizes
    return Comparison(
        pl.lit(reference),
        (pl.lit(own.pool), pl.lit(other.pool)),
        (pl.lit(own.at_zero), pl.lit(other.at_zero)),
        (pl.lit(own.at_one - own.at_zero), pl.lit(other.at_one - other.at_zero)),
        pl.lit(largest),
    )


def alike(*sizes: float) -> tuple[Side, Side]:
    """Inverse sizes that are the same for all rates."""
    own, other = (Side(size, size, size) for size in sizes)
    return own, other


def test_worked_number() -> None:
    assert detectable(0.8, alike(0.02, 0.02), most=0.3) == pytest.approx(0.2604, abs=5e-5)


SIZES = st.builds(Side, *(st.floats(1e-6, 0.5),) * 3)


@given(
    reference=st.floats(0.01, 0.999),
    sizes=st.tuples(SIZES, SIZES),
    level=st.sampled_from([0.5, 0.95, 0.9999]),
    is_auc=st.booleans(),
)
def test_is_the_solution(
    reference: float, sizes: tuple[Side, Side], level: float, *, is_auc: bool
) -> None:
    largest = reference - 0.5 if is_auc else reference
    quantile = stats.norm.ppf((1 + level) / 2)
    expected = smallest(reference, sizes, quantile, largest)
    found = detectable(reference, sizes, level, largest)
    if expected is not None and expected < largest * (1 - 1e-9):
        assert found == pytest.approx(expected, rel=1e-4)
    elif expected is None:
        # Rounding decides at the end.
        beyond = smallest(reference, sizes, quantile, largest * (1 + 1e-9))
        assert found is None or beyond is not None


def test_most_solutions_have_nine_digits() -> None:
    random = np.random.default_rng(0)
    reference, quantile = random.uniform(0.01, 0.999, 5_000), random.choice([0.7, 2.0, 3.9], 5_000)
    sizes = 10 ** random.uniform(-6, -0.3, (2, 5_000)) * random.uniform(0.5, 2, (3, 2, 5_000))
    names = [f"{part}_{side}" for part in ("pool", "zero", "one") for side in ("own", "other")]
    columns = dict(zip(names, sizes.reshape(6, -1), strict=True))
    columns |= {"reference": reference, "quantile": quantile}
    pools, zeros, ones = (
        (pl.col(f"{part}_own"), pl.col(f"{part}_other")) for part in ("pool", "zero", "one")
    )
    slopes = (ones[0] - zeros[0], ones[1] - zeros[1])
    each = Comparison(pl.col("reference"), pools, zeros, slopes, pl.col("reference"))
    found = in_table(pl.LazyFrame(columns), each).fill_null(float("nan")).to_numpy()
    (_, zero, one), low, high = sizes, np.zeros(5_000), reference
    share = sizes[0, 1] / sizes[0].sum(axis=0)

    def variance(rate: Floats, side: int) -> Floats:
        result: Floats = rate * (1 - rate) * ((1 - rate) * zero[side] + rate * one[side])
        return result

    for _ in range(60):
        difference = (low + high) / 2
        middle, below = reference - share * difference, reference - difference
        tested = np.sqrt(variance(middle, 0) + variance(middle, 1))
        true = np.sqrt(variance(reference, 1) + variance(below, 0))
        enough = difference >= quantile * tested + stats.norm.ppf(0.8) * true
        low, high = np.where(enough, low, difference), np.where(enough, difference, high)
    far = high < 0.999 * reference
    assert far.mean() > 0.5
    assert found[far] == pytest.approx(high[far], rel=1e-4)
    assert np.isclose(found[far], high[far], rtol=1e-9).mean() > 0.99


@pytest.mark.parametrize("reference", [1.0, 1 - 1e-12])
def test_perfect_reference(reference: float) -> None:
    """Where only the group ranks anything wrong, the smallest gap is not 0."""
    sizes = alike(0.01, 0.001)
    found = detectable(reference, sizes, most=0.5)
    expected = smallest(1 - 1e-12, sizes, stats.norm.ppf(0.975), 0.5)
    assert expected is not None
    assert found == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    ("reference", "most"), [(0.0, 0.0), (0.5, 0.0), (0.4, -0.1), (0.6, 0.1), (0.05, 0.05)]
)
def test_no_difference_would_be_found(reference: float, most: float) -> None:
    assert detectable(reference, alike(0.05, 0.05), most=most) is None


def test_unknown_sizes() -> None:
    sizes = pl.lit(None, pl.Float64), pl.lit(0.1)
    unknown = Comparison(pl.lit(0.8), sizes, sizes, (pl.lit(0.0), pl.lit(0.0)), pl.lit(0.3))
    assert in_table(pl.LazyFrame({"quantile": [1.96]}), unknown).to_list() == [None]


@pytest.mark.parametrize(("rate", "rows"), [(0.5, 100), (0.9, 60)])
def test_power_is_80_percent(rate: float, rows: int) -> None:
    """Of pooled z-tests of two samples whose true rates differ by so much."""
    difference = detectable(rate, alike(1 / rows, 1 / rows))
    assert difference is not None
    random = np.random.default_rng(8)
    draw: Callable[..., np.ndarray] = random.binomial
    p, q = (draw(rows, share, 40_000) / rows for share in (rate, rate - difference))
    pooled = (p + q) / 2
    found = np.abs(p - q) > 1.96 * np.sqrt(pooled * (1 - pooled) * 2 / rows)
    assert found.mean() == pytest.approx(0.8, abs=0.03)
