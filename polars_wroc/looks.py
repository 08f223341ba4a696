"""A level at which limits hold at all looks at growing data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, TypeAlias


@dataclass(frozen=True)
class Looks:
    """A confidence level at which limits hold at all looks at growing data.

    Valid for data that only grow from a fixed start, such as `merge_counts` of all days so far; not
    for the last month, nor for counts that start anew after an alarm. Passed as the ``level`` of
    the functions that have one, it makes limits that all contain the true value at all looks
    together with the probability ``level``, however many there are and whenever you stop, and
    p-values that fall below ``1 - level`` at any look with at most that probability.

    Parameters
    ----------
    planned
        The number of rows, above 0, at which limits are to be tightest: a third to the whole of
        what you expect. Choose it before the first look, and use the same at each look.
    level
        The confidence level of all looks together, from 0.001 to 0.9999.
    seen
        The rows used of the whole table, whatever their group or class; with `frequency` weights
        the sum of the weights. They are counted from a DataFrame, from counts and by `audit`. For a
        LazyFrame give their number, or ``"count"``, which runs its plan once to count them; in
        expressions the number.

    Raises
    ------
    TypeError, ValueError
        For an argument that is not a number, or not a finite one above 0.

    Notes
    -----
    Normal quantiles are replaced by those of an asymptotic confidence sequence [1]_, from a mixture
    of normal laws [2]_: with ``t = seen / planned``, ``a = 1 - level`` and ``x = t * r``, where
    ``r = -2 * log(a) + log(1 - 2 * log(a))``,

        ``c = sqrt((1 + 1 / x) * log((1 + x) / a**2))``

    At 95 % it is 3.04 where 1.96 stands else, 3.86 at a tenth of the planned rows and 3.24 at ten
    times as many. A p-value is the smallest ``a``, for this ``r``, whose limits exclude 0. Limits
    of several groups at once share ``a`` among all pairs. One-sided tests use ``2 * a``.

    With a level of this kind, rates are compared by their intervals and never by an exact test;
    limits that rest on a variance alone, as by DeLong's method, are null with fewer than 100 rows
    of a class, those of means with fewer than 100 rows; and there is no p-value of all groups at
    once, of permutations, or by a bootstrap.

    References
    ----------
    .. [1] I. Waudby-Smith, D. Arbour, R. Sinha, E. H. Kennedy and A. Ramdas (2024). Time-uniform
       central limit theory and asymptotic confidence sequences. Annals of Statistics 52, 2613-2640.
    .. [2] H. Robbins (1970). Statistical methods related to the law of the iterated logarithm.
       Annals of Mathematical Statistics 41, 1397-1409.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> day = pl.DataFrame({"y": [1] * 50 + [0] * 50, "s": [0.9] * 41 + [0.1] * 59})
    >>> for level in (0.95, wroc.Looks(1000)):
    ...     table = wroc.threshold_metrics(day, "y", "s", threshold=0.5, level=level)
    ...     print(table.select(pl.col("tpr", "tpr_low", "tpr_high").round(3)).row(0))
    (0.82, 0.692, 0.902)
    (0.82, 0.549, 0.945)
    """

    planned: float
    level: float = 0.95
    seen: float | Literal["count"] | None = None

    def __post_init__(self) -> None:
        """Check the numbers; a level out of range is found where it is used."""
        numbers = {"planned": self.planned, "level": self.level}
        if self.seen is not None and self.seen != "count":
            numbers["seen"] = self.seen
        for name, value in numbers.items():
            if isinstance(value, bool) or not isinstance(value, Real):
                msg = f"`{name}` must be a number; found {value!r} of type {type(value).__name__}"
                raise TypeError(msg)
            if not 0 < value < math.inf:
                msg = f"`{name}` must be finite and above 0; found {value!r}"
                raise ValueError(msg)
            object.__setattr__(self, name, float(value))

    def __repr__(self) -> str:
        """Show the arguments."""
        seen = f"{self.seen:.15g}" if isinstance(self.seen, float) else repr(self.seen)
        return f"Looks({self.planned:.15g}, level={self.level:g}, seen={seen})"

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers of rows, as values for JSON."""
        return {"planned": self.planned, "seen": self.seen}

    @property
    def note(self) -> str:
        """Say where the looks are."""
        return f"looks: {self.seen:.15g} of {self.planned:.15g} rows"

    @property
    def is_known(self) -> bool:
        """Whether the number of rows seen is known."""
        return isinstance(self.seen, float)

    def at(self, seen: float) -> Looks:
        """Return the looks when so many rows have been seen."""
        return Looks(self.planned, self.level, seen)


# What functions with limits take as ``level``.
ConfidenceLevel: TypeAlias = float | Looks


def as_number(level: ConfidenceLevel) -> float:
    """Return a confidence level as a number, that of all looks together if there are several."""
    return level.level if isinstance(level, Looks) else level
