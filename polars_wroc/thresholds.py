"""The confusion matrix at a threshold and the metrics that follow from it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, get_args

import polars as pl

from polars_wroc import inputs
from polars_wroc.confusion import CURVE_COLUMNS, curve_frame, squares_of_cells, totals
from polars_wroc.inputs import SCORE, WEIGHT, IntoColumn
from polars_wroc.rates import Part, share_interval
from polars_wroc.reading import read_rows
from polars_wroc.rows import FrameT, IntoColumns, deliver
from polars_wroc.staged import as_struct
from polars_wroc.variance import WeightType

METRIC_COLUMNS = (
    "threshold",
    "tp",
    "fp",
    "fn",
    "tn",
    "tpr",
    "fpr",
    "tnr",
    "fnr",
    "ppv",
    "npv",
    "selection_rate",
    "accuracy",
    "balanced_accuracy",
    "f1",
    "mcc",
    "youden",
    "lift",
)
_RATES = ("tpr", "fpr", "ppv", "npv", "selection_rate", "accuracy")
LIMIT_COLUMNS = tuple(f"{rate}_{end}" for rate in _RATES for end in ("low", "high"))


def confusion_matrix(
    label: IntoColumn,
    score: IntoColumn,
    *,
    threshold: float | pl.Expr,
    weight: IntoColumn | None = None,
    pos_label: object = None,
    level: float | None = None,
    weight_type: WeightType = "probability",
) -> pl.Expr:
    """Weighted confusion matrix and its metrics at one threshold.

    A row is predicted positive when ``score >= threshold``. Nothing is sorted.

    Parameters
    ----------
    label
        Column name or expression: Boolean, 0 and 1, -1 and 1, or anything with ``pos_label``.
    score
        Column name or numeric expression; higher means more positive.
    threshold
        A number, or an expression with one value per group.
    weight
        Column name or expression of the row weights, zero or more; None counts rows.
    pos_label
        The positive value of a label that is not Boolean, 0/1 or -1/1.
    level
        Confidence level of intervals for the rates; None leaves them out.
    weight_type
        What a weight means to them: see `roc_auc_ci`.

    Returns
    -------
    pl.Expr
        One struct per group, named ``confusion_matrix``, of Float64 fields: ``threshold``;
        the weights ``tp``, ``fp``, ``fn``, ``tn``; ``tpr``, ``fpr``, ``tnr``, ``fnr``,
        ``ppv``, ``npv``, ``selection_rate``, ``accuracy``, ``balanced_accuracy``, ``f1``,
        ``mcc``, ``youden`` (tpr - fpr) and ``lift`` (ppv over prevalence); with ``level`` also
        ``tpr_low``, ``tpr_high`` and the same for ``fpr``, ``ppv``, ``npv``,
        ``selection_rate`` and ``accuracy``. A rate with nothing to divide by is null; with a
        null or NaN threshold all fields are.

    Raises
    ------
    TypeError, ValueError
        For an argument of the wrong kind, when the expression is built or planned.
    polars.exceptions.InvalidOperationError
        At collect, for labels or weights that are not allowed or a threshold that varies
        inside a group.

    Notes
    -----
    The intervals are Wilson's [1]_, with the effective number of rows where there are weights.
    They take the threshold as given, not as chosen on the same rows.

    References
    ----------
    .. [1] Wilson, E. B. (1927), Journal of the American Statistical Association 22, 209-212.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1], "w": [1, 2, 1, 1]})
    >>> matrix = df.select(wroc.confusion_matrix("y", "s", threshold=0.5, weight="w"))
    >>> matrix.unnest("confusion_matrix").select("tp", "fp", "fn", "tn", "ppv")
    shape: (1, 5)
    ┌─────┬─────┬─────┬─────┬─────┐
    │ tp  ┆ fp  ┆ fn  ┆ tn  ┆ ppv │
    │ --- ┆ --- ┆ --- ┆ --- ┆ --- │
    │ f64 ┆ f64 ┆ f64 ┆ f64 ┆ f64 │
    ╞═════╪═════╪═════╪═════╪═════╡
    │ 2.0 ┆ 2.0 ┆ 0.0 ┆ 1.0 ┆ 0.5 │
    └─────┴─────┴─────┴─────┴─────┘
    """
    beside = {}
    if isinstance(threshold, pl.Expr):
        beside["__threshold"] = inputs.one_per_group("threshold", threshold)
        value = pl.element().struct.field("__threshold")
    else:
        value = pl.lit(_ordered_number("threshold", threshold))
    intervals = _intervals(level, weight_type)
    build = partial(_matrix, threshold=value, intervals=intervals)
    matrix = inputs.from_expressions(label, score, weight, pos_label, build, **beside)
    return matrix.alias("confusion_matrix")


def threshold_metrics(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    thresholds: float | Sequence[float] | None = None,
    weight: IntoColumn | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    level: float | None = None,
    weight_type: WeightType = "probability",
) -> FrameT:
    """Metrics at each threshold asked for, per group.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame.
    label, score, weight, by, pos_label
        As for `summary`.
    thresholds
        Numbers; None for every point of the confusion curve, its origin at +inf included.
    level, weight_type
        For intervals of the rates: see `confusion_matrix`.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group and threshold, sorted by the ``by`` columns, then by descending
        threshold. After the ``by`` columns (and ``model``) come the Float64 columns
        ``threshold, tp, fp, fn, tn, tpr, fpr, tnr, fnr, ppv, npv, selection_rate, accuracy,
        balanced_accuracy, f1, mcc, youden, lift``; with ``level`` also ``tpr_low, tpr_high``
        and the same for ``fpr``, ``ppv``, ``npv``, ``selection_rate`` and ``accuracy``. A rate
        with nothing to divide by is null.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for thresholds that are not numbers.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> metrics = wroc.threshold_metrics(df, "y", "s", thresholds=[0.5, 0.75])
    >>> metrics.select("threshold", "tpr", "fpr", "accuracy")
    shape: (2, 4)
    ┌───────────┬─────┬─────┬──────────┐
    │ threshold ┆ tpr ┆ fpr ┆ accuracy │
    │ ---       ┆ --- ┆ --- ┆ ---      │
    │ f64       ┆ f64 ┆ f64 ┆ f64      │
    ╞═══════════╪═════╪═════╪══════════╡
    │ 0.75      ┆ 0.5 ┆ 0.5 ┆ 0.5      │
    │ 0.5       ┆ 1.0 ┆ 0.5 ┆ 0.75     │
    └───────────┴─────┴─────┴──────────┘
    """
    asked = _asked(thresholds)
    intervals: _Intervals | None = _intervals(level, weight_type)
    names = [*METRIC_COLUMNS, *(LIMIT_COLUMNS if intervals else ())]
    rows = read_rows(frame, label, score, weight, by, pos_label, result_columns=names)
    curve = curve_frame(rows, asked, squares=intervals is not None)
    if asked:
        # The origin's threshold is +inf too: it is told by what it predicts.
        origin = pl.int_range(pl.len()).over(rows.keys or pl.lit(0)) == 0
        curve = curve.filter(pl.col("threshold").is_in(asked) & ~origin)
    cells = Cells(*(pl.col(name) for name in CURVE_COLUMNS))
    columns = metrics_at_threshold(cells, *totals())
    if intervals:
        columns |= intervals.columns(cells, Cells(cells.threshold, *squares_of_cells()))
    metrics = curve.select(*rows.keys, *(column.alias(name) for name, column in columns.items()))
    return deliver(frame, metrics)


class Cells(NamedTuple):
    """Something of each cell of the confusion matrix at a threshold: weights or their squares."""

    threshold: pl.Expr
    tp: pl.Expr
    fp: pl.Expr
    fn: pl.Expr
    tn: pl.Expr


class _Intervals(NamedTuple):
    """Which intervals to give the rates at a threshold."""

    level: float
    weight_type: WeightType

    def columns(self, cells: Cells, squares: Cells) -> dict[str, pl.Expr]:
        if self.weight_type == "frequency":
            squares = cells
        tp, fp, fn, tn = (Part(*both) for both in zip(cells[1:], squares[1:], strict=True))
        shares = {
            "tpr": (tp, fn),
            "fpr": (fp, tn),
            "ppv": (tp, fp),
            "npv": (tn, fn),
            "selection_rate": (tp + fp, fn + tn),
            "accuracy": (tp + tn, fp + fn),
        }
        columns: dict[str, pl.Expr] = {}
        for name, (part, others) in shares.items():
            limits = share_interval(part, others, self.level)
            columns |= {f"{name}_{end}": limit for end, limit in limits._asdict().items()}
        return columns


def _intervals(level: float | None, weight_type: WeightType) -> _Intervals | None:
    inputs.option("weight_type", weight_type, get_args(WeightType))
    if level is None:
        return None
    return _Intervals(inputs.number("level", level, low=0, high=1, open_ends=True), weight_type)


def metrics_at_threshold(
    cells: Cells, positives: pl.Expr, negatives: pl.Expr
) -> dict[str, pl.Expr]:
    """Write every metric of a confusion matrix, once."""
    threshold, tp, fp, fn, tn = cells
    selected, total = tp + fp, positives + negatives
    tpr, fpr = _ratio(tp, positives), _ratio(fp, negatives)
    tnr, fnr = _ratio(tn, negatives), _ratio(fn, positives)
    ppv, npv = _ratio(tp, selected), _ratio(tn, tn + fn)
    # In rates, so that no product of four weights overflows.
    missed = _ratio(fp, selected) * fnr * fpr * _ratio(fn, tn + fn)
    mcc = (ppv * tpr * tnr * npv).sqrt() - missed.sqrt()
    return {
        "threshold": threshold,
        "tp": tp,
        "fp": fp,
        "fn": fn,
        "tn": tn,
        "tpr": tpr,
        "fpr": fpr,
        "tnr": tnr,
        "fnr": fnr,
        "ppv": ppv,
        "npv": npv,
        "selection_rate": _ratio(selected, total),
        "accuracy": _ratio(tp + tn, total),
        "balanced_accuracy": (tpr + tnr) / 2,
        "f1": _ratio(2 * tp, 2 * tp + fp + fn),
        "mcc": mcc,
        "youden": tpr - fpr,
        "lift": _ratio(ppv, _ratio(positives, total)),
    }


def _matrix(rows: pl.Expr, *, threshold: pl.Expr, intervals: _Intervals | None) -> pl.Expr:
    """Sum the four cells of each list of rows and derive the metrics from the sums."""
    field = pl.element().struct.field
    weight = field(WEIGHT).cast(pl.Float64)
    predicted = field(SCORE).cast(pl.Float64) >= threshold
    positive, negative = weight > 0, weight < 0
    where = {
        "tp": positive & predicted,
        "fp": negative & predicted,
        "fn": positive & ~predicted,
        "tn": negative & ~predicted,
    }
    values = {"threshold": threshold.first()}
    values |= {name: pl.when(rows).then(weight.abs()).sum() for name, rows in where.items()}
    if intervals:
        values |= {
            f"{name}_squares": pl.when(rows).then(weight * weight).sum()
            for name, rows in where.items()
        }
    sums = rows.list.eval(as_struct(values))
    known = pl.when(field("threshold").is_not_null())
    cells = Cells(*(known.then(field(name)) for name in CURVE_COLUMNS))
    metrics = metrics_at_threshold(cells, cells.tp + cells.fn, cells.fp + cells.tn)
    if intervals:
        squares = Cells(cells.threshold, *(field(f"{name}_squares") for name in where))
        metrics |= intervals.columns(cells, squares)
    return sums.list.agg(as_struct({name: value.first() for name, value in metrics.items()}))


def _ratio(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
    return pl.when(whole > 0).then(part / whole)


def _asked(thresholds: float | Sequence[float] | None) -> list[float]:
    if thresholds is None:
        return []
    listed = [thresholds] if isinstance(thresholds, int | float) else list(thresholds)
    if not listed:
        msg = "`thresholds` must hold at least one number; found none"
        raise ValueError(msg)
    return sorted({_ordered_number("thresholds", value) for value in listed}, reverse=True)


def _ordered_number(argument: str, value: object) -> float:
    """Check a number that may be infinite but not NaN; zero has one sign."""
    return inputs.number(argument, value) + 0.0
