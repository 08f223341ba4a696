"""Cost curves, and the models that no cost makes the best choice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import comb
from typing import Any

import numpy as np
import polars as pl

from polars_wroc import checks
from polars_wroc.arrays import Array
from polars_wroc.bounds import NonNegative, PositiveInt, Prevalence
from polars_wroc.calls import check_call
from polars_wroc.checks import Limit
from polars_wroc.inputs.columns import MODEL, IntoColumn, IntoWeight
from polars_wroc.inputs.costs import Costs, read_costs
from polars_wroc.inputs.rows import IntoColumns, polars_frame
from polars_wroc.metrics.paired_aucs import require_all_scores
from polars_wroc.queries import FrameT
from polars_wroc.ranking.curve import CELLS, are_both_classes
from polars_wroc.ranking.hulls import find_corners, is_nowhere_above, is_smaller, measure_areas
from polars_wroc.rows import (
    Columns,
    Rows,
    SegmentColumns,
    add_keys,
    read_columns,
    table_of,
    table_of_segments,
)
from polars_wroc.steps import SegmentRows
from polars_wroc.thresholds.choice import CurvePoints, trace_curves

_COLUMNS = ("threshold", "fpr", "fnr", "dominated", "best_from", "best_to")
_EXPECTED = "expected_cost"


@check_call
def cost_curve(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    cost_fn: NonNegative | None = None,
    cost_fp: NonNegative | None = None,
    prevalence: Prevalence | None = None,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
) -> FrameT:
    """Return the cost of each threshold, and the costs for which it is optimal, per group.

    The normalised cost of a threshold is ``fpr * (1 - q) + fnr * q``, a straight line in ``q``,
    which combines prevalence and costs. The lower envelope of the lines is the cost curve [1]_.

    The main columns are:

    - the ``by`` columns (and ``model``), and ``threshold``, descending from +inf;
    - ``fpr, fnr``: the cost at ``q = 0`` and at ``q = 1``;
    - ``dominated``: the line of this threshold has no part in the cost curve;
    - ``best_from, best_to``: the values of ``q`` between which no other threshold costs less;
    - with costs, ``expected_cost``: per row, in the unit of the costs.

    Parameters
    ----------
    frame, label, score, weight, by, pos_label
        As for `summary`.
    cost_fn, cost_fp
        Costs of both errors: see `rules.least_cost`.
    prevalence
        Prevalence in the population that the decision is for. None: as in the data.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group and distinct score, after an origin row, sorted by the ``by`` columns,
        then by descending threshold; last come ``tp, fp, fn, tn``. ``dominated`` is Boolean, the
        rest Float64. Where a class has no weight, all but ``threshold`` and the cells are null;
        ``best_from, best_to`` are null for a dominated threshold.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for costs or a prevalence out of range.

    Notes
    -----
    ``q = prevalence * cost_fn / (prevalence * cost_fn + (1 - prevalence) * cost_fp)``.

    References
    ----------
    .. [1] Drummond, C., Holte, R. C. (2006), Machine Learning 65, 95-130.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> curve = wroc.cost_curve(df, "y", "s", cost_fn=0.5)
    >>> curve.select("threshold", "best_from", "best_to", "expected_cost")
    shape: (5, 4)
    ┌───────────┬───────────┬─────────┬───────────────┐
    │ threshold ┆ best_from ┆ best_to ┆ expected_cost │
    │ ---       ┆ ---       ┆ ---     ┆ ---           │
    │ f64       ┆ f64       ┆ f64     ┆ f64           │
    ╞═══════════╪═══════════╪═════════╪═══════════════╡
    │ inf       ┆ 0.0       ┆ 0.0     ┆ 0.25          │
    │ 0.9       ┆ 0.0       ┆ 0.5     ┆ 0.125         │
    │ 0.8       ┆ null      ┆ null    ┆ 0.25          │
    │ 0.7       ┆ 0.5       ┆ 1.0     ┆ 0.125         │
    │ 0.1       ┆ 1.0       ┆ 1.0     ┆ 0.25          │
    └───────────┴───────────┴─────────┴───────────────┘
    """
    with_costs = cost_fn is not None or cost_fp is not None
    costs = read_costs(cost_fn, cost_fp) if with_costs else None
    if prevalence is not None and costs is None:
        msg = f"`prevalence` must be None without `cost_fn` or `cost_fp`; found {prevalence!r}"
        raise ValueError(msg)
    columns = read_columns(frame, label, score, weight, by, pos_label)
    expected: list[str] = [] if costs is None else [_EXPECTED]
    types: dict[str, Any] = dict.fromkeys([*_COLUMNS, *expected, *CELLS], pl.Float64())
    types["dominated"] = pl.Boolean()
    draw = partial(_draw_segments, costs=costs, prevalence=prevalence)
    return table_of_segments(frame, columns, types, draw)


def _draw_segments(
    _rows: Rows,
    segments: SegmentRows,
    costs: Costs | None,
    prevalence: float | None,
) -> list[SegmentColumns]:
    points = trace_curves(segments)
    tp, fp, fn, tn = points.cells.weight
    positives, negatives = tp + fn, fp + tn
    # Quotients lose no digits for small weights, unlike sums.
    is_known = (positives > 0) & (negatives > 0) & np.isfinite(positives + negatives)
    fpr = np.where(is_known, fp / negatives, np.nan)
    fnr = np.where(is_known, fn / positives, np.nan)
    columns = {"threshold": points.threshold, "fpr": fpr, "fnr": fnr}
    columns |= _find_ranges(points, fpr, fnr)
    if costs is not None:
        share = positives / (positives + negatives) if prevalence is None else prevalence
        columns[_EXPECTED] = costs.expected_cost(fnr, fpr, share)
    for cell, weight in zip(CELLS, points.cells.weight, strict=True):
        # Undefined where it overflows
        columns[cell] = np.where(np.isfinite(weight), weight, np.nan)
    return [SegmentColumns(points.segment, columns)]


def _find_ranges(points: CurvePoints, fpr: Array, fnr: Array) -> dict[str, Array]:
    """Return the costs at which each threshold is optimal, and whether it is dominated."""
    is_known = ~np.isnan(fpr)
    is_corner = np.zeros(len(fpr), dtype=bool)
    tp, fp, _, _ = points.cells.weight
    is_corner[find_corners(tp, fp, points.starts)] = True
    is_origin = np.zeros(len(fpr), dtype=bool)
    is_origin[points.starts[:-1]] = True
    is_corner = (is_corner | is_origin) & is_known
    corners = np.flatnonzero(is_corner)
    gained, lost = np.diff(fpr[corners], prepend=0.0), -np.diff(fnr[corners], prepend=0.0)
    # The cost at which the line of a corner crosses the line of the corner before; 1 at an origin,
    # where the last corner of the previous curve ceases to be optimal.
    crossing = np.where(is_origin[corners], 1.0, gained / (gained + lost))
    best_from, best_to = (np.full(len(fpr), np.nan) for _ in range(2))
    best_from[corners] = np.where(is_origin[corners], 0.0, crossing)
    best_to[corners] = np.append(crossing, 1.0)[1:]
    dominated = np.where(is_known, ~is_corner, np.nan)
    return {"best_from": best_from, "best_to": best_to, "dominated": dominated}


_DOMINATED_TYPES: Mapping[str, Any] = {
    "auc": pl.Float64,
    "roc_hull_auc": pl.Float64,
    "dominated": pl.Boolean,
    "dominated_by": pl.List(pl.String),
}
_MOST_PAIRS = 2_000


@check_call
def dominated_models(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    max_pairs: PositiveInt = _MOST_PAIRS,
) -> FrameT:
    """Return which models are never better than another, at any costs of errors, per group.

    A dominated model is never the better choice, at any costs of errors and any prevalence [1]_.
    This describes the sample only; `compare` tests differences.

    The columns are:

    - the ``by`` columns, and ``model`` (String);
    - ``auc, roc_hull_auc`` (Float64): area under the curve, and under its convex hull;
    - ``dominated`` (Boolean), and ``dominated_by`` (List of String): the models that dominate it.

    Parameters
    ----------
    frame, label, weight, by, pos_label
        As for `summary`.
    score
        Two or more columns or expressions, one for each model.
    max_pairs
        Largest number of pairs of models, since time and memory grow with it; 63 models have fewer
        than 2,000 pairs.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group and model, sorted by the ``by`` columns, then in the order of ``score``.
        Two models with the same hull do not dominate each other. All but the model are null where a
        class has no weight.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for fewer than two scores or more pairs than ``max_pairs``.

    References
    ----------
    .. [1] Provost, F., Fawcett, T. (2001), Machine Learning 42, 203-231.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "a": [4, 3, 2, 1], "b": [4, 2, 3, 1]})
    >>> wroc.dominated_models(df, "y", ["a", "b"]).drop("auc", "roc_hull_auc")
    shape: (2, 3)
    ┌───────┬───────────┬──────────────┐
    │ model ┆ dominated ┆ dominated_by │
    │ ---   ┆ ---       ┆ ---          │
    │ str   ┆ bool      ┆ list[str]    │
    ╞═══════╪═══════════╪══════════════╡
    │ a     ┆ true      ┆ ["b"]        │
    │ b     ┆ false     ┆ []           │
    └───────┴───────────┴──────────────┘
    """
    limit = Limit("max_pairs", max_pairs, "pairs", "score")
    columns: Columns = read_columns(polars_frame(frame), label, score, weight, by, pos_label)
    number = len(columns.models)
    if number < 2:  # noqa: PLR2004  (two make a pair)
        checks.reject("score", "hold two or more columns to compare", [*columns.models])
    limit.check(comb(number, 2))
    compare = partial(_compare_hulls, columns=columns)
    return table_of(frame, columns, columns.schema(_DOMINATED_TYPES), compare)


@dataclass(frozen=True)
class _Hull:
    """The hull of the ROC curve of a model in a segment: the rates at its corners, and areas.

    The area of the curve itself is ``auc``, NaN where a class has no weight.
    """

    tpr: Array
    fpr: Array
    area: float
    auc: float

    def is_under(self, other: _Hull) -> bool:
        """Return whether this hull is nowhere above the other hull, and somewhere below it."""
        return is_smaller(self.area, other.area) and is_nowhere_above(
            self.tpr, self.fpr, other.tpr, other.fpr
        )


def _compare_hulls(rows: Rows, columns: Columns) -> pl.DataFrame:
    """Return a row for each segment and model, with the models that dominate it."""
    complete = require_all_scores(rows)
    hulls: dict[str, list[_Hull]] = {}
    for model in columns.models:
        segments = complete.segments(columns.keys, model)
        hulls[model] = _find_hulls(segments)
    names, groups = [*columns.models], segments.segments
    table = pl.DataFrame(
        [
            _describe_hull(model, {name: hulls[name][place] for name in names})
            for place in range(segments.number)
            for model in names
        ],
        schema={MODEL: pl.String, **_DOMINATED_TYPES},
        orient="row",
    )
    return add_keys(table, groups, np.repeat(np.arange(segments.number), len(names)))


def _find_hulls(segments: SegmentRows) -> list[_Hull]:
    points = trace_curves(segments)
    tp, fp, _, _ = points.cells.weight
    starts = points.starts
    last = starts[1:] - 1
    known = are_both_classes(tp[last], fp[last])
    lengths = np.diff(starts)
    tpr, fpr = (each / np.repeat(each[last], lengths) for each in (tp, fp))
    aucs = np.where(known, measure_areas(tpr, fpr, starts), np.nan)
    corners = find_corners(tp, fp, starts)
    hull_starts = np.searchsorted(corners, starts)
    hull_tpr, hull_fpr = tpr[corners], fpr[corners]
    areas = np.where(known, measure_areas(hull_tpr, hull_fpr, hull_starts), np.nan)
    parts = [slice(*ends) for ends in pairwise(hull_starts.tolist())]
    return [
        _Hull(hull_tpr[part], hull_fpr[part], area, auc)
        for part, area, auc in zip(parts, areas.tolist(), aucs.tolist(), strict=True)
    ]


def _describe_hull(
    model: str, hulls: dict[str, _Hull]
) -> tuple[str, float, float, bool | None, list[str] | None]:
    """Return the row of a model, given the hulls of all models in a segment."""
    own = hulls[model]
    if np.isnan(own.auc):
        return model, own.auc, own.area, None, None
    over = [name for name, other in hulls.items() if own.is_under(other)]
    return model, own.auc, own.area, bool(over), over
