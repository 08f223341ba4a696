"""Confidence interval of the partial AUC over the highest true positive rates.

As in `score_interval`, the variance changes with the area, and each class has a pseudo-observation
that is misranked. Only the positives with the lowest scores are in the range: the narrower it is,
the more their pseudo-observation counts, and with fewer than three of them there are no limits.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from polars_wroc.inputs.rows import CLASSES
from polars_wroc.metrics.auc_variance import Moments
from polars_wroc.metrics.score_interval import class_inverse_size, wilson_limits
from polars_wroc.plans.steps import Fields, Step
from polars_wroc.ranking.areas import Range
from polars_wroc.stats.differences import Limits
from polars_wroc.stats.proportions import TOLERANCE

# Fewer positives than this in the range have no interval.
_LEAST_POSITIVES = 3
_FIRST, _SECOND = "__misranked_first", "__misranked_second"
_NUMBER, _HEAVIER, _PSEUDO = "__number", "__heavier", "__pseudo"
_INVERSE_SIZE = "__inverse_size"


@dataclass(frozen=True)
class RangeScoreInterval:
    """The interval of a partial AUC, as a proportion of that of a perfect score.

    ``auc``, ``one_minus_auc`` and the ``moments`` are columns, as for `ScoreInterval`, and so are
    the total ``weight`` of the positives, their effective number, ``size``, and the
    ``design_effect`` of correlated rows.
    """

    auc: str
    one_minus_auc: str
    moments: dict[str, Moments]
    size: str
    weight: str
    tpr: Range
    design_effect: str | None = None

    @property
    def steps(self) -> list[Step]:
        """Steps from the moments and `misranked_sums` to the column of the inverse size."""
        return [self._misranked, self._pseudo, self._inverse_size]

    def limits(self, field: Fields, quantile: pl.Expr) -> Limits:
        """Confidence limits for a quantile of the normal or of Student's distribution."""
        enough = field(self.size) * self._width >= _LEAST_POSITIVES * (1 - TOLERANCE)
        # There is no such interval for a range that ends below 1.
        size = pl.when(enough & (self.tpr[1] == 1)).then(field(_INVERSE_SIZE))
        shares = field(self.auc), field(self.one_minus_auc)
        return wilson_limits(*shares, (size, size), quantile, skewness=0.0)

    @property
    def _width(self) -> float:
        return self.tpr[1] - self.tpr[0]

    def _misranked(self, field: Fields) -> dict[str, pl.Expr]:
        """Add the effective numbers of misranked rows, and how much heavier they are."""
        pos, neg = (self.moments[side] for side in CLASSES)
        share, weight = field(self.one_minus_auc), field(self.weight)
        first, second = (field(name) / weight / weight for name in (_FIRST, _SECOND))
        some = (field(self.auc) > 0) & (share > 0)
        spreads = {
            "pos": second / self._width**2,
            "neg": field(neg.variance) + share**2 * field(neg.h2),
        }
        columns: dict[str, pl.Expr] = {}
        for side, spread in spreads.items():
            number = pl.when(some & (spread > 0)).then(share**2 / spread)
            columns[_NUMBER + side] = number.otherwise(0.0)
        ratio = first / (share * self._width * field(pos.h2))
        heavier = pl.when(some).then(ratio.clip(lower_bound=1.0)).otherwise(1.0)
        return columns | {_HEAVIER + "pos": heavier, _HEAVIER + "neg": pl.lit(1.0)}

    def _pseudo(self, field: Fields) -> dict[str, pl.Expr]:
        """Add the inverse sizes of the pseudo-observations."""
        pos, neg = (field(self.moments[side].h2) for side in CLASSES)
        of_range = pos * field(_HEAVIER + "pos") ** 2 / self._width
        return {_PSEUDO + "pos": of_range, _PSEUDO + "neg": neg}

    def _inverse_size(self, field: Fields) -> dict[str, pl.Expr]:
        """Add 1 divided by the effective size that both limits rest on."""
        spread = field(self.auc) * field(self.one_minus_auc)
        sizes = []
        for side, names in self.moments.items():
            number, heavier, pseudo = (field(part + side) for part in (_NUMBER, _HEAVIER, _PSEUDO))
            share = field(names.variance) / spread
            sizes.append(class_inverse_size(number, heavier, pseudo, share)[1])
        size = sizes[0] + sizes[1]
        if self.design_effect is not None:
            size *= field(self.design_effect)
        return {_INVERSE_SIZE: size}


def misranked_sums(weight: pl.Expr, misranked: pl.Expr, *, equal: bool) -> dict[str, pl.Expr]:
    """Aggregate the positives to the sums that an interval needs besides those of the variance.

    ``misranked`` is the part of a positive that is in the range, times the proportion of the
    negatives above it. With ``equal`` weights a row is as many observations as its weight says.
    """
    squares = weight if equal else weight * weight
    return {_FIRST: (squares * misranked).sum(), _SECOND: (squares * misranked**2).sum()}
