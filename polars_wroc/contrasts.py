"""From a difference and its variance to an interval, a test and an adjusted p-value."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import polars as pl

from polars_wroc import options
from polars_wroc.distributions import normal_quantile, two_sided_p_value

Adjust: TypeAlias = Literal["holm", "bh", "none"]

# A difference of two AUCs that is rounding.
_NOTHING = 1e-12

CONTRAST_COLUMNS = ("difference", "se", "ci_low", "ci_high", "z", "p_value")


def check_options(level: float, adjust: Adjust) -> None:
    """Check what every test of differences takes."""
    options.level(level)
    options.option("adjust", adjust, get_args(Adjust))


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
