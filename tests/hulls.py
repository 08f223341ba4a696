"""Metrics of the hull of a curve, and the exact curve."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Literal, TypeAlias

import polars as pl
from calls import one_metric

import polars_wroc as wroc

Density: TypeAlias = Literal["beta22", "hmeasure"]
DENSITIES: list[Density] = ["beta22", "hmeasure"]


def hull_auc(frame: pl.DataFrame) -> float:
    value: float = frame.select(one_metric("roc_hull_auc", weight="w")).item()
    return value


def h_measure(frame: pl.DataFrame, density: Density = "beta22") -> float:
    measure = one_metric(wroc.HMeasure(density=density), weight="w")
    value: float = frame.select(measure).item()
    return value


def path(frame: pl.DataFrame) -> Iterator[tuple[Fraction, Fraction]]:
    """Exact cumulative weights: of the negatives and of the positives."""
    fp = tp = Fraction(0)
    yield fp, tp
    rows = frame.filter(pl.col("w") > 0).sort("s", descending=True)
    ends = rows["s"].ne_missing(rows["s"].shift(-1))
    for y, w, ends_tie in zip(rows["y"], rows["w"], ends, strict=True):
        if y:
            tp += Fraction(w)
        else:
            fp += Fraction(w)
        if ends_tie:
            yield fp, tp
