"""Partial AUC: the area under a ROC curve over a range of rates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

import polars as pl

from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import IntoColumn
from polars_wroc.inputs.expressions import from_expressions
from polars_wroc.ranking.areas import (
    WHOLE_RANGE,
    LinePieces,
    Range,
    areas_between,
    areas_in_rectangle,
    pieces,
    total,
)
from polars_wroc.ranking.curve import Curve, fold


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
        Range of false positive rates; the area is the one under the curve over it [1]_.
    tpr
        Range of true positive rates; the area is the one to the right of the curve [2]_. With
        both, the area under the curve within their rectangle: the two-way partial AUC.
    standardize
        True rescales the area to 0.5 for the diagonal and 1 for a perfect score, after McClish
        [1]_; ``"mean"`` divides it by the area of a perfect score, which makes it a mean rate.
        With both ranges, True gives null where all of ``fpr`` is above all of ``tpr``: there a
        random score has the area of a perfect one.

    Returns
    -------
    pl.Expr
        One Float64 per group, named ``partial_auc``; null where a class has no weight. McClish's
        standardized area is below 0.5 for a curve below the diagonal, and may be negative.

    Raises
    ------
    ValueError
        Without a range, or for one that does not rise or leaves [0, 1]; else as for `roc_auc`.

    Notes
    -----
    The integral is exact: the curve is interpolated at the ends of a range.
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


Standardize: TypeAlias = bool | Literal["mean"]


@dataclass(frozen=True)
class PartialAUC:
    """Partial AUC as a metric for `curve_metrics` and `bootstrap`.

    The arguments are those of `partial_auc`.

    Raises
    ------
    TypeError, ValueError
        As for `partial_auc`.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> early = {"early": wroc.PartialAUC(fpr=(0.0, 0.5))}
    >>> df.select(wroc.curve_metrics("y", "s", metrics=early)).item()
    {'early': 0.25}
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
                arguments.hold(self, **{name: arguments.rate_range(name, value)})
        if not isinstance(self.standardize, bool) and self.standardize != "mean":
            msg = f"`standardize` must be True, False or 'mean'; found {self.standardize!r}"
            raise ValueError(msg)

    def __call__(self, curve: Curve) -> pl.Expr:
        """Return the area as an expression of the curve."""
        area = total(curve, self._areas(pieces(curve)))
        most, chance = self._most(), self._by_chance()
        if self.standardize is False:
            return area
        if self.standardize == "mean":
            return area / most
        above = pl.lit(None if self._is_below_diagonal else most - chance, pl.Float64)
        return (1 + (area - chance) / above) / 2

    def _areas(self, pieces: LinePieces) -> pl.Expr:
        if self.tpr is None:
            return areas_between(pieces, self.fpr or WHOLE_RANGE)
        if self.fpr is None:
            return areas_between(pieces.turned(), self.tpr)
        return areas_in_rectangle(pieces, self.fpr, self.tpr)

    @property
    def _is_below_diagonal(self) -> bool:
        """Whether the diagonal passes above the ranges, so that a random score has all the area."""
        (left, _), (_, high) = self.fpr or WHOLE_RANGE, self.tpr or WHOLE_RANGE
        return left >= high

    def _most(self) -> float:
        """The area of a perfect score."""
        (left, right), (low, high) = self.fpr or WHOLE_RANGE, self.tpr or WHOLE_RANGE
        return (right - left) * (high - low)

    def _by_chance(self) -> float:
        """The area under the diagonal."""
        (left, right), (low, high) = self.fpr or WHOLE_RANGE, self.tpr or WHOLE_RANGE

        def until(fpr: float) -> float:
            return (max(fpr - low, 0.0) ** 2 - max(fpr - high, 0.0) ** 2) / 2

        return until(right) - until(left)
