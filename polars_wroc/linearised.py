"""The influence of rows on a partial AUC, as placements like those of an AUC.

A row moves the area under its part of the curve, and it moves the end of the range along the
curve, since that is a quantile of the scores. Both are known from the curve and the row's
place on it; no density has to be estimated.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from polars_wroc.areas import Range, Segments
from polars_wroc.confusion import Curve
from polars_wroc.placements import ClassRows, Placements, list_row_curve
from polars_wroc.rates import TOLERANCE
from polars_wroc.staged import Fields, Step, with_named

PARTIAL_COLUMNS = (
    "partial_auc",
    "se",
    "ci_low",
    "ci_high",
    "ci_method",
    "n_eff_pos",
    "n_eff_neg",
)
_WEIGHTS, _LACKS = ("__weight_pos", "__weight_neg"), ("__lacks_pos", "__lacks_neg")
_SEGMENT = ("__x0", "__y0", "__x1", "__y1")


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
        """From placed rows to what `placements` refers to; each keeps only what follows need."""
        return [self._segments, self._worths]

    def placements(self, field: Fields) -> Placements:
        """What each row lacks to the worth of a perfect score's rows, as a share of it."""
        return Placements(
            *(ClassRows(field(w), field(p)) for w, p in zip(_WEIGHTS, _LACKS, strict=True))
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

    def _segments(self, _: Fields) -> dict[str, pl.Expr]:
        curve = list_row_curve()
        weights = dict(zip(_WEIGHTS, (of.weight for of in curve.placements), strict=True))
        return weights | dict(zip(_SEGMENT, self._segment_of(curve), strict=True))

    def _segment_of(self, curve: Curve) -> Segments:
        if self.tpr is None:
            return Segments(curve.fpr_before, curve.tpr_before, curve.fpr, curve.tpr)
        return Segments(1 - curve.tpr, 1 - curve.fpr, 1 - curve.tpr_before, 1 - curve.fpr_before)

    def _worths(self, field: Fields) -> dict[str, pl.Expr]:
        """What a row lacks: one of the class on the vertical axis, and one of the other."""
        low, high = (_worths_until(end, field) for end in self._range)
        worths = [above - below for above, below in zip(high, low, strict=True)]
        lacks = [1 - worth / self._width for worth in worths]
        weights = {name: field(name) for name in _WEIGHTS}
        by_class = lacks if self.tpr is None else reversed(lacks)
        return weights | dict(zip(_LACKS, by_class, strict=True))


def _worths_until(end: float, field: Fields) -> tuple[pl.Expr, pl.Expr]:
    """What rows are worth to the area from 0 to one end: upward, and along the curve."""
    if end == 0:
        return pl.lit(0.0), pl.lit(0.0)
    x0, y0, x1, y1 = (field(name) for name in _SEGMENT)
    height = _height_at(end, field)
    pieces = {"reach": end - x0, "width": x1 - x0, "y0": y0 - height, "rise": y1 - y0}

    def upward(of: Fields) -> pl.Expr:
        reach, width = of("reach"), of("width")
        inside = pl.when(reach >= width).then(reach - width / 2)
        return inside.when(reach > 0).then(reach**2 / (2 * width)).otherwise(0.0)

    def along(of: Fields) -> pl.Expr:
        passed = pl.when(of("width") > 0).then((of("reach") / of("width")).clip(0.0, 1.0))
        return with_named(
            {"passed": passed.otherwise(0.0), "y0": of("y0"), "rise": of("rise")},
            lambda part: part("passed") * (part("y0") + part("rise") * part("passed") / 2),
        )

    return with_named(pieces, upward), with_named(pieces, along) + end * height


def _height_at(end: float, field: Fields) -> pl.Expr:
    """How high the curve is at an end of the range, at the top of its steps."""
    x0, y0, x1, y1 = (field(name) for name in _SEGMENT)
    within = y0 + (end - x0) / (x1 - x0) * (y1 - y0)
    reached = pl.when(x1 <= end + TOLERANCE).then(y1)
    return reached.when(x0 <= end + TOLERANCE).then(within).max()
