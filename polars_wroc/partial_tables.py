"""Partial areas as a table: for frames larger than memory, for counts, and within bounds."""

from __future__ import annotations

from polars_wroc.areas import PartialAUC, Range, Standardize
from polars_wroc.binning import Binning
from polars_wroc.bounds import curve_bounds
from polars_wroc.confusion import Curve
from polars_wroc.counts import collapse
from polars_wroc.inputs import IntoColumn
from polars_wroc.placements import place, row_curve
from polars_wroc.reading import read_rows
from polars_wroc.rows import FrameT, IntoColumns, Rows, deliver

_COLUMNS = ("partial_auc", "partial_auc_low", "partial_auc_high")


def partial_aucs(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    fpr: Range | None = None,
    tpr: Range | None = None,
    standardize: Standardize = False,
    weight: IntoColumn | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    bins: int | None = None,
    tolerance: float | None = None,
) -> FrameT:
    """Weighted area under a part of the ROC curve of each group.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; of a lazy one nothing is computed.
    label, score, weight, by, pos_label, bins, tolerance
        As for `summary`.
    fpr, tpr, standardize
        Which part, and how the area is scaled: see `partial_auc`.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model), sorted by the ``by`` columns. After them comes
        ``partial_auc`` (Float64), null where a class has no weight; with ``bins`` or
        ``tolerance`` also ``partial_auc_low, partial_auc_high``, between which the area of the
        rows is with certainty, but for rounding in the last digits.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary` and `partial_auc`.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> wroc.partial_aucs(df, "y", "s", fpr=(0.0, 0.5)).item()
    0.25
    """
    area = PartialAUC(fpr, tpr, standardize)
    rows: Rows
    rows = read_rows(frame, label, score, weight, by, pos_label, result_columns=_COLUMNS)
    rows = collapse(rows, Binning(bins, tolerance))
    curves: list[Curve] = [row_curve()]
    if rows.binned:
        curves += curve_bounds(row_curve(), over_tpr=fpr is None)
    areas = {name: area(curve) for name, curve in zip(_COLUMNS, curves, strict=False)}
    table = rows.arrange(rows.reduce(place(rows), areas))
    return deliver(frame, table.select(*rows.keys, *areas))
