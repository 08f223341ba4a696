"""Types of arguments that are numbers, with their bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, ClassVar, NamedTuple, TypeAlias, Union, get_args, get_origin


@dataclass(frozen=True)
class NumberBounds:
    """Bounds of a number; the base class allows any."""

    low: float = -math.inf
    high: float = math.inf
    _rule: ClassVar[str] = "be a number"
    _text: ClassVar[str] = "any number"

    @property
    def rule(self) -> str:
        """The rule for an argument, as messages state it."""
        return self._rule.format(low=self.low, high=self.high)

    @property
    def text(self) -> str:
        """The numbers that are allowed, for a description."""
        return self._text.format(low=self.low, high=self.high)

    def __contains__(self, value: float) -> bool:
        """Whether a number is allowed; NaN never is."""
        return self.low <= value <= self.high


class Between(NumberBounds):
    """Numbers from ``low`` to ``high``, both included."""

    _rule = "lie between {low:g} and {high:g}"
    _text = "from {low:g} to {high:g}"


class _OpenBounds(NumberBounds):
    """Bounds that are not allowed themselves."""

    def __contains__(self, value: float) -> bool:
        """Whether a number is allowed; NaN never is."""
        return self.low < value < self.high


class StrictlyBetween(_OpenBounds):
    """Numbers between ``low`` and ``high``, both excluded."""

    _rule = "lie strictly between {low:g} and {high:g}"
    _text = "above {low:g} and below {high:g}"


class Above(_OpenBounds):
    """Finite numbers above ``low``."""

    _rule = "be finite and more than {low:g}"
    _text = "more than {low:g}"


class Finite(_OpenBounds):
    """Any finite number."""

    _rule = "be a finite number"
    _text = "any finite number"


class AtLeast(NumberBounds):
    """Finite numbers from ``low`` up."""

    _rule = "be finite and {low:g} or more"
    _text = "{low:g} or more"

    def __contains__(self, value: float) -> bool:
        """Whether a number is allowed; NaN never is."""
        return self.low <= value < self.high


ANY_NUMBER = NumberBounds()

Proportion: TypeAlias = Annotated[float, Between(0, 1)]
# A share strictly between 0 and 1.
InnerProportion: TypeAlias = Annotated[float, StrictlyBetween(0, 1)]
Confidence: TypeAlias = Annotated[float, Between(0.001, 0.9999)]
Power: TypeAlias = Annotated[float, StrictlyBetween(0.5, 1)]
# The size within which a gap does not matter.
Margin: TypeAlias = InnerProportion
# The share of positives in a target population.
Prevalence: TypeAlias = InnerProportion
Positive: TypeAlias = Annotated[float, Above(0)]
NonNegative: TypeAlias = Annotated[float, AtLeast(0)]
# The largest factor of weights, where 1 is no change.
WeightLimit: TypeAlias = Annotated[float, AtLeast(1)]
FiniteNumber: TypeAlias = Annotated[float, Finite()]

PositiveInt: TypeAlias = Annotated[int, AtLeast(1)]
# The fewest bins of scores.
FEWEST_BINS = 16
Bins: TypeAlias = Annotated[int, AtLeast(FEWEST_BINS)]
# A curve has two ends and a point between them.
MaxPoints: TypeAlias = Annotated[int, AtLeast(3)]
# The fewest rows of a published cell: a cell of one row would identify a person.
MinCell: TypeAlias = Annotated[int, AtLeast(2)]
MinRows: TypeAlias = Annotated[int, AtLeast(0)]
Pixels: TypeAlias = Annotated[int, AtLeast(50)]
# One replicate has no variance.
Resamples: TypeAlias = Annotated[int, AtLeast(2)]
Seed: TypeAlias = Annotated[int, AtLeast(0)]


class NumberType(NamedTuple):
    """The type of an argument that is a number: int or float, and its bounds."""

    kind: type[float]
    bounds: NumberBounds


def list_alternatives(hint: Any) -> tuple[Any, ...]:
    """Return the types that an argument may have: those of a union, or the only one."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def find_number_type(hint: Any) -> NumberType | None:
    """Return the number type, with bounds, that an argument may have; None if it has none."""
    for each in list_alternatives(hint):
        if get_origin(each) is Annotated:
            kind, *about = get_args(each)
            for bounds in about:
                if isinstance(bounds, NumberBounds):
                    return NumberType(kind, bounds)
    return None
