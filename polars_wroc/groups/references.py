"""Variances of two metrics of each group by a design, and their correlation."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_wroc.inputs.designs import SampleDesign
from polars_wroc.plans.formulas import Fields
from polars_wroc.stats.proportions import credible_correlation
from polars_wroc.stats.variances import linear_variances
from polars_wroc.thresholds.search import rate_variance


def other_name(name: str) -> str:
    """Name a column of the other of two metrics."""
    return f"__other_{name}"


def correlation(metric: str, field: Fields) -> pl.Expr:
    """Return the correlation of a metric with the other one; 0 if one has no variance."""
    variances = [field(rate_variance(name)) for name in (metric, other_name(metric))]
    return credible_correlation(field(_covariance(metric)), *variances)


def paired_variances(
    influences: pl.LazyFrame, keys: Sequence[str], design: SampleDesign, metrics: dict[str, str]
) -> pl.LazyFrame:
    """Return the variances of metrics and of the others, each named with the influence on it."""
    products: dict[str, tuple[str, str]] = {}
    for metric, value in metrics.items():
        products[rate_variance(metric)] = value, value
        products[rate_variance(other_name(metric))] = other_name(value), other_name(value)
        products[_covariance(metric)] = value, other_name(value)
    return linear_variances(influences, keys, design, products).select(*keys, *products)


def _covariance(metric: str) -> str:
    return f"__design_covariance_{metric}"
