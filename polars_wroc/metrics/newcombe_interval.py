"""Newcombe's interval of an AUC: without a variance, for classes that spread alike."""

from __future__ import annotations

import polars as pl

from polars_wroc.plans.steps import Fields, Step

# Columns of the limits.
NEWCOMBE_LOW, NEWCOMBE_HIGH = "__low", "__high"
# Iterations: enough for nine digits.
_STEPS = 9
# Dividing by this, and squaring it, neither overflows nor underflows.
_LEAST_PAIRS = 1e-150


def newcombe_steps(quantile: float) -> list[Step]:
    """Steps from the columns ``auc``, ``n_eff_pos`` and ``n_eff_neg`` to those of the limits."""
    return [_start, *[_step(quantile)] * _STEPS]


def _start(field: Fields) -> dict[str, pl.Expr]:
    pos, neg = field("n_eff_pos"), field("n_eff_neg")
    return {
        NEWCOMBE_LOW: field("auc"),
        NEWCOMBE_HIGH: field("auc"),
        # Frequency weights may add up to less than one row.
        "__pairs": (pos * neg).clip(lower_bound=_LEAST_PAIRS),
        "__more": ((pos + neg) / 2 - 1).clip(lower_bound=0.0),
    }


def _step(quantile: float) -> Step:
    """Improve the two solutions of ``(auc - x)**2 = quantile**2 * V(x)``.

    Newcombe's variance of exponential scores, with both class sizes set to their mean, is
    ``x * (1 - x)`` times a factor that hardly changes with x. With that factor fixed the
    equation is Wilson's, which has a closed form; each step gains a digit.
    """

    def step(field: Fields) -> dict[str, pl.Expr]:
        auc = field("auc")
        columns = {}
        for name, side in ((NEWCOMBE_LOW, -1), (NEWCOMBE_HIGH, 1)):
            x = field(name)
            pairs = (1 - x) / (2 - x) + x / (1 + x)
            half = quantile**2 / 2 * (1 + field("__more") * pairs) / field("__pairs")
            root = (2 * half * auc * (1 - auc) + half**2).sqrt()
            columns[name] = ((auc + half + side * root) / (1 + 2 * half)).clip(0.0, 1.0)
        return columns

    return step
