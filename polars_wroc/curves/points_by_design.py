"""Effective sample sizes of points of a ROC curve by the design of a survey."""

from __future__ import annotations

import polars as pl

from polars_wroc.curves.bands import CURVE, Axes
from polars_wroc.inputs.rows import Rows
from polars_wroc.plans.by_keys import join_on_keys
from polars_wroc.stats.design_variance import DESIGN_DF
from polars_wroc.stats.proportions import TOLERANCE, size_by_design
from polars_wroc.thresholds.rate_design import rate_variance
from polars_wroc.thresholds.search import SELECTS, THRESHOLD, thresholds_of
from polars_wroc.thresholds.unit_cells import rate_variances, unit_cells

_GIVEN, _FOUND = "__rate_given", "__rate_found"


def with_sizes_by_design(
    points: pl.LazyFrame, curve: pl.LazyFrame, rows: Rows, axes: Axes
) -> pl.LazyFrame:
    """Give ``points`` the effective sample sizes of the design, at the nearest threshold.

    ``points`` and the whole ``curve`` have the columns of `Band.prepare`.
    """
    assert rows.design is not None
    rates = pl.col(axes.given).alias(_GIVEN), pl.col(axes.found).alias(_FOUND)
    vertices = thresholds_of(curve, [CURVE], *rates)
    shift = TOLERANCE if axes.highest else -TOLERANCE
    at_vertices = points.join_asof(
        vertices,
        left_on=pl.col(axes.given) + shift,
        right_on=_GIVEN,
        by=CURVE,
        strategy="backward" if axes.highest else "forward",
        coalesce=False,
        # Both rise along each curve, which the engine cannot know.
        check_sortedness=False,
    ).cache()
    keys = [*rows.keys, THRESHOLD, SELECTS]
    cells = unit_cells(rows, at_vertices.select(keys).unique(), keys)
    variances = rate_variances(cells, keys, rows.design)
    joined = join_on_keys(at_vertices, variances, keys)
    sizes = {
        size: size_by_design(pl.col(value), pl.col(size), pl.col(rate_variance(rate)))
        for value, rate, size in (
            (_GIVEN, axes.given, axes.given_size),
            (_FOUND, axes.found, axes.found_size),
        )
    }
    return joined.with_columns(**sizes).select(*points.collect_schema(), DESIGN_DF)
