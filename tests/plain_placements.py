"""Placement values of rows by comparing all pairs, and sums over classes."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from polars_wroc.stats.aucs import Auc, ClassMoments

Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]


class Placed(NamedTuple):
    """Rows of one segment with weights, and the complements of their placement values."""

    label: Flags
    weight: Floats
    x: Floats

    @property
    def complement(self) -> float:
        """1 - AUC."""
        return float(np.average(self.x[self.label], weights=self.weight[self.label]))


def place(score: Floats, label: Flags, weight: Floats | None = None) -> Placed:
    """Compare each row with all rows of the other class; ties count half."""
    weight = np.ones(len(score)) if weight is None else weight
    wrong = (score[:, None] < score) + (score[:, None] == score) / 2
    of_pos = wrong[label][:, ~label] @ weight[~label] / weight[~label].sum()
    of_neg = weight[label] @ wrong[label][:, ~label] / weight[label].sum()
    x = np.zeros(len(score))
    x[label], x[~label] = of_pos, of_neg
    return Placed(label, weight, x)


def class_moments(rows: Placed, *, positive: bool, counted: bool = False) -> ClassMoments:
    """Add up the rows of a class; ``counted`` weights are numbers of rows of weight 1."""
    inside = rows.label == positive
    w, x = rows.weight[inside], rows.x[inside]
    each = np.ones_like(w) if counted else w
    sums = {
        "rows": w.sum() if counted else float(len(w)),
        "weight": w.sum(),
        "squares": (w * each).sum(),
        "cubes": (w * each**2).sum(),
        "first": (w * each * x).sum(),
        "second": (w * each * x**2).sum(),
        "complement": rows.complement,
    }
    return ClassMoments.from_sums(**{name: np.array([value]) for name, value in sums.items()})


def auc_of(
    score: Floats, label: Flags, weight: Floats | None = None, *, counted: bool = False
) -> Auc:
    """Return the AUC of one segment from its rows."""
    rows = place(score, label, weight)
    pos, neg = (class_moments(rows, positive=side, counted=counted) for side in (True, False))
    complement = np.array([rows.complement])
    return Auc(1 - complement, complement, pos, neg)


def stack_aucs(*aucs: Auc) -> Auc:
    """Put AUCs of one segment each side by side."""

    def side(name: str) -> ClassMoments:
        each = [vars(getattr(auc, name)) for auc in aucs]
        return ClassMoments(**{key: np.concatenate([one[key] for one in each]) for key in each[0]})

    value, complement = (
        np.concatenate([getattr(auc, name) for auc in aucs]) for name in ("value", "complement")
    )
    return Auc(value, complement, side("pos"), side("neg"))


def unit_sums(values: Floats, unit: NDArray[np.int64], units: int) -> Floats:
    """Add up values of rows over units, as one column."""
    return np.bincount(unit, values, units).astype(np.float64)[:, np.newaxis]
