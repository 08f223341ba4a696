"""The two costs of a wrong decision, and the prevalence that they are weighed with."""

from __future__ import annotations

import sys

from polars_wroc import options

_LARGEST = sys.float_info.max


def share_of_false_negatives(cost_fn: float | None, cost_fp: float | None) -> float:
    """Cost of a false negative as a share of the costs of both errors.

    With one cost given the other is what it lacks to 1.
    """
    if cost_fn is None and cost_fp is None:
        msg = "`cost_fn` or `cost_fp` must be given; found neither"
        raise ValueError(msg)
    if cost_fn is None or cost_fp is None:
        name, value = ("cost_fn", cost_fn) if cost_fn is not None else ("cost_fp", cost_fp)
        share = options.number(name, value, low=0, high=1)
        return share if name == "cost_fn" else 1 - share
    fn, fp = (
        options.number("cost_fn", cost_fn, low=0, high=_LARGEST),
        options.number("cost_fp", cost_fp, low=0, high=_LARGEST),
    )
    if fn + fp == 0:
        msg = "`cost_fn` and `cost_fp` must not both be 0; found 0 and 0"
        raise ValueError(msg)
    return fn / (fn + fp)


def target_prevalence(value: float | None) -> float | None:
    """Check the share of positives in the population that is meant, if not the data's."""
    if value is None:
        return None
    return options.number("prevalence", value, low=0, high=1, open_ends=True)
