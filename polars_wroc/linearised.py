"""The influence of rows on a partial AUC, as placements like those of an AUC.

A row moves the area under its part of the curve, and it moves the end of the range along the
curve, since that is a quantile of the scores. Both are known from the curve and the row's
place on it; no density has to be estimated.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from polars_wroc.areas import Range, Segments
from polars_wroc.placements import ClassRows, Placements, row_curve
from polars_wroc.rates import TOLERANCE
from polars_wroc.staged import Fields, Step

PARTIAL_COLUMNS = (
    "partial_auc",
    "se",
    "ci_low",
    "ci_high",
    "ci_method",
    "n_eff_pos",
    "n_eff_neg",
)
_ENDS = ("low", "high")
# What a row of the class on the vertical axis is worth, and one on the horizontal axis.
_UPWARD, _ALONG = "__upward", "__along"


@dataclass(frozen=True)
class LinearisedArea:
    """A partial AUC over a range of one rate.

    A range of true positive rates is one of false positive rates on the curve that exchanges
    the classes and turns the scores around.
    """

    fpr: Range | None
    tpr: Range | None

    @property
    def steps(self) -> list[Step]:
        """From placed rows to what `placements` refers to."""
        return [self._heights, self._worths]

    def placements(self, field: Fields) -> Placements:
        """What each row lacks to the worth of a perfect score's rows, as a share of it."""
        pos, neg = row_curve(field).placements
        names = (_UPWARD, _ALONG) if self.tpr is None else (_ALONG, _UPWARD)
        rows = zip((pos, neg), names, strict=True)
        return Placements(
            *(ClassRows(of.weight, 1 - field(name) / self._width) for of, name in rows)
        )

    def scale(self, field: Fields) -> dict[str, pl.Expr]:
        """From shares of a perfect score's area to areas."""
        names = {"auc": "partial_auc", "se": "se", "ci_low": "ci_low", "ci_high": "ci_high"}
        return {area: field(share) * self._width for share, area in names.items()}

    @property
    def _range(self) -> Range:
        if self.tpr is None:
            assert self.fpr is not None
            return self.fpr
        return 1 - self.tpr[1], 1 - self.tpr[0]

    @property
    def _width(self) -> float:
        return self._range[1] - self._range[0]

    def _segment(self, field: Fields) -> Segments:
        curve = row_curve(field)
        if self.tpr is None:
            return Segments(curve.fpr_before, curve.tpr_before, curve.fpr, curve.tpr)
        return Segments(1 - curve.tpr, 1 - curve.fpr, 1 - curve.tpr_before, 1 - curve.fpr_before)

    def _heights(self, field: Fields) -> dict[str, pl.Expr]:
        """How high the curve is at the ends of the range, at the top of its steps."""
        x0, y0, x1, y1 = self._segment(field)
        columns = {}
        for name, end in self._ends():
            within = y0 + (end - x0) / (x1 - x0) * (y1 - y0)
            reached = pl.when(x1 <= end + TOLERANCE).then(y1)
            columns[f"__height_{name}"] = reached.when(x0 <= end + TOLERANCE).then(within).max()
        return columns

    def _worths(self, field: Fields) -> dict[str, pl.Expr]:
        low, high = (self._worths_until(name, end, field) for name, end in self._ends())
        return {_UPWARD: high[0] - low[0], _ALONG: high[1] - low[1]}

    def _ends(self) -> list[tuple[str, float]]:
        return list(zip(_ENDS, self._range, strict=True))

    def _worths_until(self, name: str, end: float, field: Fields) -> tuple[pl.Expr, pl.Expr]:
        """The same for the area from 0 to one end."""
        x0, y0, x1, y1 = self._segment(field)
        height = field(f"__height_{name}")
        upward = (
            pl.when(x1 <= end)
            .then(end - (x0 + x1) / 2)
            .when(x0 >= end)
            .then(0.0)
            .otherwise((end - x0) ** 2 / (2 * (x1 - x0)))
        )
        passed = pl.when(x1 > x0).then(((end - x0) / (x1 - x0)).clip(0.0, 1.0)).otherwise(0.0)
        along = passed * (y0 + (y1 - y0) * passed / 2 - height) + end * height
        return upward, along
