"""Areas of the part of a ROC curve that matters: a range of rates, or what costs allow."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

import polars as pl

from polars_wroc.counts.binned_rows import pool_in_bins
from polars_wroc.counts.binning import Binning
from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import IntoColumn
from polars_wroc.inputs.expressions import from_expressions
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.rows import IntoColumns, Rows
from polars_wroc.metrics.auc_bounds import curve_bounds
from polars_wroc.plans.collect import FrameT, like_input
from polars_wroc.ranking.areas import (
    _ALL,
    LinePieces,
    Range,
    _areas,
    _areas_in_rectangle,
    pieces,
    total,
)
from polars_wroc.ranking.confusion_curve import Curve, fold
from polars_wroc.ranking.cumulative_sums import by_descending_score
from polars_wroc.ranking.placements import add_placements, row_curve


def partial_auc(
    label: IntoColumn,
    score: IntoColumn,
    *,
    fpr: Range | None = None,
    tpr: Range | None = None,
    standardize: Standardize = False,
    weight: IntoColumn | None = None,
    pos_label: object = None,
) -> pl.Expr:
    """Weighted area under a part of the ROC curve.

    Parameters
    ----------
    label, score, weight, pos_label
        As for `roc_auc`.
    fpr
        Range of false positive rates: the area under the curve over it [1]_.
    tpr
        Range of true positive rates: the area to the right of the curve beside it [2]_. With
        both, the area of their rectangle that is under the curve: the two-way partial AUC.
    standardize
        True maps the area to 0.5 for the diagonal and 1 for a perfect score, after McClish
        [1]_; ``"mean"`` divides it by the perfect score's, which makes it a mean rate.

    Returns
    -------
    pl.Expr
        One Float64 per group, named ``partial_auc``; null where a class has no weight. McClish's
        is below 0.5 for a curve under the diagonal, and may be below 0.

    Raises
    ------
    ValueError
        For a range that does not rise or leaves [0, 1], or without a range; else as for
        `roc_auc`.

    Notes
    -----
    The integral is exact: a segment of the curve that crosses the end of a range is cut there.
    ``fpr=(0, b), standardize=True`` is scikit-learn's ``roc_auc_score(max_fpr=b)``.

    References
    ----------
    .. [1] McClish, D. K. (1989), Medical Decision Making 9, 190-195.
    .. [2] Jiang, Y. et al. (1996), Radiology 201, 745-750.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> df.select(wroc.partial_auc("y", "s", fpr=(0.0, 0.5))).item()
    0.25
    >>> df.select(wroc.partial_auc("y", "s", fpr=(0.0, 0.5), standardize=True)).item()
    0.6666666666666666
    """
    build = partial(fold, formula=PartialAUC(fpr, tpr, standardize))
    return from_expressions(label, score, weight, pos_label, build).alias("partial_auc")


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
    rows = pool_in_bins(rows, Binning(bins, tolerance))
    curves: list[Curve] = [row_curve()]
    if rows.binned:
        curves += curve_bounds(row_curve(), over_tpr=fpr is None)
    areas = {name: area(curve) for name, curve in zip(_COLUMNS, curves, strict=False)}
    placed = add_placements(by_descending_score(rows), rows.keys, rows.observations.signed_weight)
    table = rows.sorted_by_keys(rows.aggregate(placed, areas))
    return like_input(frame, table.select(*rows.keys, *areas))


Standardize: TypeAlias = bool | Literal["mean"]


@dataclass(frozen=True)
class PartialAUC:
    """Part of the area under a curve, over a range of the false or true positive rate, or both.

    It is the integral, over the false positive rates, of how far the true positive rate is
    into its range. For `curve_metrics` and `bootstrap`; the arguments are those of
    `partial_auc`.
    """

    fpr: Range | None = None
    tpr: Range | None = None
    standardize: Standardize = False

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.fpr is None and self.tpr is None:
            msg = "`fpr` or `tpr` must be a range such as (0.0, 0.1); found neither"
            raise ValueError(msg)
        for name, value in (("fpr", self.fpr), ("tpr", self.tpr)):
            if value is not None:
                object.__setattr__(self, name, arguments.rate_range(name, value))
        if not isinstance(self.standardize, bool) and self.standardize != "mean":
            msg = f"`standardize` must be True, False or 'mean'; found {self.standardize!r}"
            raise ValueError(msg)

    def __call__(self, curve: Curve) -> pl.Expr:
        """Write the area as a formula of the curve."""
        area = total(curve, self._areas(pieces(curve)))
        most, chance = self._most(), self._by_chance()
        if self.standardize is False:
            return area
        if self.standardize == "mean":
            return area / most
        return (1 + (area - chance) / (most - chance)) / 2

    def _areas(self, pieces: LinePieces) -> pl.Expr:
        if self.tpr is None:
            return _areas(pieces, self.fpr or _ALL)
        if self.fpr is None:
            return _areas(pieces.turned(), self.tpr)
        return _areas_in_rectangle(pieces, self.fpr, self.tpr)

    def _most(self) -> float:
        """The area that a perfect score has."""
        (left, right), (low, high) = self.fpr or _ALL, self.tpr or _ALL
        return (right - left) * (high - low)

    def _by_chance(self) -> float:
        """The area under the diagonal."""
        (left, right), (low, high) = self.fpr or _ALL, self.tpr or _ALL

        def until(fpr: float) -> float:
            return (max(fpr - low, 0.0) ** 2 - max(fpr - high, 0.0) ** 2) / 2

        return until(right) - until(left)
