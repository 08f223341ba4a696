"""From a difference and its variance to an interval, a test and an adjusted p-value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias, get_args

import polars as pl

from polars_wroc import options
from polars_wroc.distributions import (
    normal_quantile,
    normal_score,
    student_quantile,
    two_sided_p_value,
)
from polars_wroc.rates import Estimate, difference_limits, logit_limits
from polars_wroc.rows import beside

Adjust: TypeAlias = Literal["holm", "bh", "none"]

# A difference of two AUCs that is rounding.
_NOTHING = 1e-12

_TEST = "__test"

CONTRAST_COLUMNS = ("difference", "se", "ci_low", "ci_high", "z", "p_value")


def check_options(level: float, adjust: Adjust) -> None:
    """Check what every test of differences takes."""
    options.level(level)
    options.option("adjust", adjust, get_args(Adjust))


class Area(NamedTuple):
    """An AUC, what it lacks to 1, its variance and the degrees of freedom of that."""

    auc: pl.Expr
    missing: pl.Expr
    variance: pl.Expr
    df: pl.Expr

    @property
    def slope(self) -> pl.Expr:
        """How much the logit moves with the AUC."""
        return 1 / (self.auc * self.missing)

    def limits(self, level: float) -> Estimate:
        """Interval by Student's t on the logit."""
        margin = student_quantile((1 + level) / 2, self.df) * self.variance.sqrt()
        return Estimate(self.auc, *logit_limits(self.auc, self.missing, margin))


def area_contrast(one: Area, other: Area, variance: pl.Expr, level: float) -> dict[str, pl.Expr]:
    """Interval and test of the difference of two AUCs, given its ``variance``.

    The test is Student's t on the difference of the logits, and the interval is put together
    from those of both: small groups hold their level on the logit, not on the AUC.
    """
    covariance = (one.variance + other.variance - variance) / 2
    correlation = covariance / (one.variance * other.variance).sqrt()
    limits = difference_limits(one.limits(level), other.limits(level), correlation)
    logits = [(area.auc / area.missing).log() for area in (one, other)]
    parts = [area.variance * area.slope**2 for area in (one, other)]
    spread = parts[0] + parts[1] - 2 * covariance * one.slope * other.slope
    df = (parts[0] + parts[1]) ** 2 / (parts[0] ** 2 / one.df + parts[1] ** 2 / other.df)
    t = (logits[0] - logits[1]) / spread.sqrt()
    known = pl.when(variance > 0)
    return {
        "difference": pl.when(variance.is_not_null()).then(one.auc - other.auc),
        "se": variance.sqrt(),
        "ci_low": known.then(limits.low),
        "ci_high": known.then(limits.high),
        "p_value": known.then(two_sided_p_value(normal_score(t, df.clip(lower_bound=1.0)))),
    }


def contrast(difference: pl.Expr, variance: pl.Expr, level: float) -> dict[str, pl.Expr]:
    """Normal interval and test of a difference, as `CONTRAST_COLUMNS`.

    Without a variance there is no interval, and no evidence either where nothing differs.
    """
    se = variance.sqrt()
    known = pl.when(se > 0)
    nothing = (se == 0) & (difference.abs() <= _NOTHING)
    margin = normal_quantile((1 + level) / 2) * se
    z = difference / se
    return {
        "difference": difference,
        "se": se,
        "ci_low": known.then(difference - margin),
        "ci_high": known.then(difference + margin),
        "z": known.then(z),
        "p_value": known.then(two_sided_p_value(z)).when(nothing).then(1.0),
    }


def adjusted(table: pl.LazyFrame, method: Adjust, p_value: str = "p_value") -> pl.LazyFrame:
    """Add the p-values adjusted for all tests of the table, in the order of the p-values.

    Holm's hold the share of tables with any false finding at the level, Benjamini and
    Hochberg's (``"bh"``) the share of false findings. Null p-values are no tests.
    """
    p = pl.col(p_value)
    tests, place = p.count(), pl.int_range(1, pl.len() + 1)
    values = {
        "holm": ((tests - place + 1) * p).cum_max(),
        "bh": (tests / place * p).cum_min(reverse=True),
        "none": p,
    }
    name = p_value.removesuffix("value") + "adjusted"
    return table.sort(p, nulls_last=True).with_columns(
        pl.when(p.is_not_null()).then(values[method].clip(upper_bound=1.0)).alias(name)
    )


def adjusted_together(
    table: pl.LazyFrame,
    keys: Sequence[str],
    method: Adjust,
    p_values: Sequence[str],
    counted: pl.Expr,
) -> pl.LazyFrame:
    """Adjust the p-values of several columns for all tests of the rows that are ``counted``."""
    # Each column is read from the table, which is planned and computed once all the same.
    table = table.cache()
    tests = table.filter(counted)
    stacked = pl.concat(
        tests.select(*keys, pl.lit(name).alias(_TEST), pl.col(name).alias("p_value"))
        for name in p_values
    )
    of_test = adjusted(stacked, method)
    named = {
        name.removesuffix("value") + "adjusted": pl.col("p_adjusted").filter(pl.col(_TEST) == name)
        for name in p_values
    }
    of_row = of_test.group_by(keys).agg(**{name: p.first() for name, p in named.items()})
    return beside(table, of_row, keys)
