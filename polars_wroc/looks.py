"""Confidence levels for repeated looks at growing data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

from polars_wroc.bounds import Above, Confidence, Positive
from polars_wroc.calls import check_arguments
from polars_wroc.checks import hold, number

# The end of the message of a function whose level must be a number.
_SINGLE_LOOK = ": the results hold for a single look; for 12 looks, pass level=1 - 0.05 / 12"


@check_arguments
@dataclass(frozen=True)
class Looks:
    """Confidence level for repeated looks at growing data.

    Pass it as the ``level`` of a function. Limits then contain the true value at all looks together
    with the probability ``level``, however often you look and whenever you stop, and p-values fall
    below ``1 - level`` at any look with at most that probability. It holds for data that only grow
    from a fixed start, for example `merge_counts` of all days so far; not for the last month.

    Parameters
    ----------
    planned
        The number of rows, above 0, at which limits are tightest: a third to the whole of what you
        expect. Choose it before the first look and use the same at each look.
    level
        The confidence level of all looks together, from 0.001 to 0.9999.
    seen
        Number of rows seen so far in the whole table, or the sum of `frequency` weights. For a
        DataFrame, counts and `audit` it is counted by default. For a LazyFrame give the number, or
        ``"count"`` to run its plan once more; in expressions give the number.

    Raises
    ------
    TypeError, ValueError
        For an argument that is not a finite number above 0.

    Notes
    -----
    Normal quantiles are replaced by an asymptotic confidence sequence [1]_: at 95 %, 3.04 instead
    of 1.96 at the planned rows, 3.86 at a tenth and 3.24 at ten times as many. Limits that use a
    variance alone are null with fewer than 100 rows of a class, limits of means with fewer than 100
    rows. There are no exact tests, permutation tests, bootstrap p-values or tests of all groups at
    once. [Formulas](../explanation/statistics.md#looks).

    References
    ----------
    .. [1] Waudby-Smith, I. et al. (2024), Annals of Statistics 52, 2613-2640.

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

    _hint_for_level: ClassVar[str] = _SINGLE_LOOK

    planned: Positive
    level: Confidence = 0.95
    seen: float | Literal["count"] | None = None

    def __post_init__(self) -> None:
        """Check the number of rows seen, which may be a word."""
        if self.seen is not None and self.seen != "count":
            hold(self, seen=number("seen", self.seen, Above(0)))

    def __repr__(self) -> str:
        """Show the arguments."""
        seen = f"{self.seen:.15g}" if isinstance(self.seen, float) else repr(self.seen)
        return f"Looks({self.planned:.15g}, level={self.level:g}, seen={seen})"

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers of rows, as values for JSON."""
        return {"planned": self.planned, "seen": self.seen}

    @property
    def note(self) -> str:
        """The number of rows seen, as a text."""
        return f"looks: {self.seen:.15g} of {self.planned:.15g} rows"

    @property
    def is_known(self) -> bool:
        """Whether the number of rows seen is known."""
        return isinstance(self.seen, float)

    def at(self, seen: float) -> Looks:
        """Return the looks at a number of rows seen."""
        return Looks(self.planned, self.level, seen)


# The type of the argument ``level``.
ConfidenceLevel: TypeAlias = Confidence | Looks


def as_number(level: ConfidenceLevel) -> float:
    """Return a confidence level as a number; for repeated looks, the joint level."""
    return level.level if isinstance(level, Looks) else level


def require_seen(level: ConfidenceLevel) -> ConfidenceLevel:
    """Return a level; raise for repeated looks if the number of rows seen is not known."""
    if isinstance(level, Looks) and not level.is_known:
        msg = f"`level` must say how many rows were seen, as in {level.at(1000)}; found {level}"
        raise ValueError(msg)
    return level


def refuse_looks(level: object, what: str) -> None:
    """Raise for a level of repeated looks, at which there is no such thing."""
    if isinstance(level, Looks):
        msg = f"`level` must be a number with {what}; found {level}{_SINGLE_LOOK}"
        raise TypeError(msg)
