"""Cost curves: the cost of each threshold, and the costs at which it is optimal."""

from __future__ import annotations

import polars as pl

from polars_wroc.inputs.columns import IntoColumn
from polars_wroc.inputs.costs import Costs, read_costs, target_prevalence
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.rows import IntoColumns
from polars_wroc.plans.collect import FrameT, like_input
from polars_wroc.ranking.convex_hull import on_hull
from polars_wroc.ranking.curve import CELLS, curve_frame, is_origin, totals

_COLUMNS = ("threshold", "fpr", "fnr", "dominated", "best_from", "best_to")
_EXPECTED = "expected_cost"


def cost_curve(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    cost_fn: float | None = None,
    cost_fp: float | None = None,
    prevalence: float | None = None,
    weight: IntoColumn | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
) -> FrameT:
    """Weighted cost curve per group: the cost of each threshold, and where it is optimal.

    The normalised cost of a threshold is ``fpr * (1 - q) + fnr * q``, a straight line in ``q``,
    which combines prevalence and costs (see Notes). The lower envelope of all lines is the cost
    curve [1]_; a threshold whose line has no part in it is dominated.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, by, pos_label
        As for `summary`.
    cost_fn, cost_fp
        Costs of a false negative and of a false positive, for the expected cost; only their ratio
        matters. If only one is given, it must be between 0 and 1, and the other is 1 minus it.
    prevalence
        Prevalence in the population that the decision is for, for the expected cost; None takes
        the weighted prevalence of the data.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group and distinct score, sorted by the ``by`` columns, then by descending
        threshold, after an origin row with ``threshold = +inf``. After the ``by`` columns (and
        ``model``) come ``threshold``; ``fpr, fnr`` (the cost at q = 0 and at q = 1);
        ``dominated`` (Boolean); ``best_from, best_to``, the values of q between which no other
        threshold costs less, null for a dominated one; with costs ``expected_cost``, per row and
        with costs scaled to the sum 1; ``tp, fp, fn, tn``. All but ``dominated`` are Float64.
        Where a class has no weight, all but ``threshold`` and the last four are null.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for costs or a prevalence out of range.

    Notes
    -----
    ``q = prevalence * cost_fn / (prevalence * cost_fn + (1 - prevalence) * cost_fp)``. The
    thresholds that are not dominated are the corners of the hull of the ROC curve, which a
    Python function inside the query computes.

    References
    ----------
    .. [1] Drummond, C., Holte, R. C. (2006), Machine Learning 65, 95-130.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> curve = wroc.cost_curve(df, "y", "s", cost_fn=0.5)
    >>> curve.select("threshold", "dominated", "best_from", "best_to", "expected_cost")
    shape: (5, 5)
    ┌───────────┬───────────┬───────────┬─────────┬───────────────┐
    │ threshold ┆ dominated ┆ best_from ┆ best_to ┆ expected_cost │
    │ ---       ┆ ---       ┆ ---       ┆ ---     ┆ ---           │
    │ f64       ┆ bool      ┆ f64       ┆ f64     ┆ f64           │
    ╞═══════════╪═══════════╪═══════════╪═════════╪═══════════════╡
    │ inf       ┆ false     ┆ 0.0       ┆ 0.0     ┆ 0.25          │
    │ 0.9       ┆ false     ┆ 0.0       ┆ 0.5     ┆ 0.125         │
    │ 0.8       ┆ true      ┆ null      ┆ null    ┆ 0.25          │
    │ 0.7       ┆ false     ┆ 0.5       ┆ 1.0     ┆ 0.125         │
    │ 0.1       ┆ false     ┆ 1.0       ┆ 1.0     ┆ 0.25          │
    └───────────┴───────────┴───────────┴─────────┴───────────────┘
    """
    with_costs = cost_fn is not None or cost_fp is not None
    costs = read_costs(cost_fn, cost_fp) if with_costs else None
    prevalence = target_prevalence(prevalence)
    if prevalence is not None and costs is None:
        msg = f"`prevalence` goes with `cost_fn` or `cost_fp` only; found {prevalence!r}"
        raise ValueError(msg)
    expected: list[str] = [] if costs is None else [_EXPECTED]
    names = (*_COLUMNS, *expected, *CELLS)
    rows = read_rows(frame, label, score, weight, by, pos_label)
    curve = _with_ranges(_with_rates(curve_frame(rows)))
    if costs is not None:
        curve = curve.with_columns(_expected_cost(costs, prevalence).alias(_EXPECTED))
    return like_input(frame, rows.sorted_result(curve, names))


def _with_rates(curve: pl.LazyFrame) -> pl.LazyFrame:
    positives, negatives = totals()
    rates = {"fpr": pl.col("fp") / negatives, "fnr": pl.col("fn") / positives}
    # Unlike sums, quotients lose no digits for small weights.
    known = (positives > 0) & (negatives > 0) & (positives + negatives).is_finite()
    return curve.with_columns(pl.when(known).then(rate).alias(name) for name, rate in rates.items())


def _with_ranges(curve: pl.LazyFrame) -> pl.LazyFrame:
    """Add the costs at which each threshold is optimal, and whether it is dominated."""
    fpr, fnr = pl.col("fpr"), pl.col("fnr")
    corner = pl.col("__corner") & fpr.is_not_null()

    def before(rate: pl.Expr) -> pl.Expr:
        return pl.when(corner).then(rate).forward_fill().shift(1)

    gained, lost = fpr - before(fpr), before(fnr) - fnr
    # Where the cost line of this threshold crosses that of the corner before it; at an origin 1,
    # up to which the last corner of the curve before it is optimal.
    crossing = pl.when(is_origin()).then(1.0).when(corner).then(gained / (gained + lost))
    marked = curve.with_columns(
        on_hull(is_origin(), pl.col("tp"), pl.col("fp")).alias("__corner")
    ).with_columns(crossing.alias("__crossing"))
    following = pl.col("__crossing").backward_fill().shift(-1)
    return marked.with_columns(
        dominated=pl.when(fpr.is_not_null()).then(~pl.col("__corner")),
        best_from=pl.when(corner).then(pl.when(is_origin()).then(0.0).otherwise("__crossing")),
        best_to=pl.when(corner).then(following.fill_null(1.0)),
    )


def _expected_cost(costs: Costs, prevalence: float | None) -> pl.Expr:
    positives, negatives = totals()
    used = positives / (positives + negatives) if prevalence is None else prevalence
    return costs.expected(pl.col("fnr"), pl.col("fpr"), used)
