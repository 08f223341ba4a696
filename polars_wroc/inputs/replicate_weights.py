"""Replicate weights of a survey: columns of weights that the variance is computed from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import IntoColumn

ReplicateKind: TypeAlias = Literal["brr", "fay", "jk1", "jkn", "jk2", "bootstrap"]


@dataclass(frozen=True)
class ReplicateWeights:
    """Columns of replicate weights, which replace the weights in each replicate of an estimate.

    The variance is ``scale`` times the sum over replicates of ``rscales`` times the squared
    difference from the estimate of the full weights.

    Parameters
    ----------
    columns
        Names, expressions or a selector of the replicate weights: finite, zero or more. Only rows
        with a full weight count.
    kind
        How they were made, which gives the scale: ``"brr"`` (balanced repeated replication) and
        ``"bootstrap"`` 1 / R for R replicates, ``"fay"`` ``1 / (R * (1 - rho)**2)``, ``"jk1"``
        (R - 1) / R, ``"jkn"`` and ``"jk2"`` 1.
    rho
        Fay's coefficient, from 0 to below 1; for ``"fay"`` only.
    scale
        Replaces the scale of the kind.
    rscales
        A factor for each replicate. ``"jkn"`` needs them: (n - 1) / n of the stratum with n units
        that the replicate leaves one out of. None is 1 for all others.
    df
        Degrees of freedom, 1 or more: of the design, its sampling units less its strata. By
        default R - 1, for ``"jk2"`` R, for ``"jkn"`` the replicates less the strata, which follow
        from the ``rscales``.

    Raises
    ------
    TypeError, ValueError
        For an unknown kind, or numbers that are missing, of the wrong type or out of range.

    Examples
    --------
    >>> import polars.selectors as cs
    >>> import polars_wroc as wroc
    >>> wroc.ReplicateWeights(cs.starts_with("brr"), "fay", rho=0.3).rho
    0.3
    """

    columns: IntoColumn | Sequence[IntoColumn]
    kind: ReplicateKind
    rho: float | None = None
    scale: float | None = None
    rscales: Sequence[float] | None = None
    df: int | None = None

    def __post_init__(self) -> None:
        """Check the options; columns are checked with the frame."""
        arguments.option("kind", self.kind, get_args(ReplicateKind))
        if (self.kind == "fay") != (self.rho is not None):
            msg = f"`rho` must be given for kind 'fay', and for no other; found {self.rho}"
            raise ValueError(msg)
        if self.rho is not None:
            arguments.hold(self, rho=arguments.number("rho", self.rho, low=0, high=1))
        if self.rho == 1:
            msg = f"`rho` must be below 1; found {self.rho}"
            raise ValueError(msg)
        if self.kind == "jkn" and self.rscales is None:
            msg = "`rscales` must be given for kind 'jkn'; found None"
            raise ValueError(msg)
        if self.scale is not None:
            scale = arguments.number("scale", self.scale, low=0, finite=True)
            arguments.hold(self, scale=scale)
        rscales = () if self.rscales is None else self.rscales
        if not isinstance(rscales, Sequence) or isinstance(rscales, str):
            arguments.reject_type("rscales", "be a number for each replicate", rscales)
        for each in rscales:
            arguments.number("rscales", each, low=0, finite=True)
        if self.df is not None:
            arguments.hold(self, df=arguments.whole_number("df", self.df, low=1))

    def factors(self, count: int) -> list[float]:
        """Return what the squared difference of each of so many replicates is multiplied by."""
        if count < 2:  # noqa: PLR2004  (one has no variance)
            msg = f"`columns` must hold two or more replicate weights; found {count}"
            raise ValueError(msg)
        rscales = self._rscales(count)
        if len(rscales) != count:
            msg = f"`rscales` must have one number for each of {count} replicates; found {rscales}"
            raise ValueError(msg)
        scale = self._scale(count) if self.scale is None else self.scale
        return [scale * factor for factor in rscales]

    def degrees_of_freedom(self, count: int) -> int:
        """Return those of the design with so many replicates."""
        if self.df is not None:
            return self.df
        if self.kind == "jkn":
            # In each stratum 1 less the factors add up to 1.
            return max(round(sum(self._rscales(count))), 1)
        return count - (0 if self.kind == "jk2" else 1)

    def _rscales(self, count: int) -> list[float]:
        return [1.0] * count if self.rscales is None else [float(each) for each in self.rscales]

    def _scale(self, count: int) -> float:
        scales: dict[ReplicateKind, float] = {"jk1": (count - 1) / count, "jkn": 1.0, "jk2": 1.0}
        return scales.get(self.kind, 1 / (count * (1 - (self.rho or 0.0)) ** 2))
