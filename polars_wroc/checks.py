"""Checks of arguments that are numbers, rates, limits or words."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Integral, Real
from typing import NoReturn

import polars as pl

from polars_wroc.bounds import ANY_NUMBER, Between, NumberBounds

# The most characters of a value that a message shows.
_LONGEST = 60


def number(argument: str, value: object, bounds: NumberBounds = ANY_NUMBER) -> float:
    """Check a number and its bounds."""
    # Numbers of NumPy are real numbers too.
    if isinstance(value, bool) or not isinstance(value, Real):
        # Looks say what to pass where a level must be a number.
        reject_type(argument, "be a number", value, getattr(value, f"_hint_for_{argument}", ""))
    try:
        held = float(value)
    except OverflowError:
        held = math.inf
    if held not in bounds:
        reject(argument, bounds.rule, f"{value!r}{_suggest_share(held, bounds)}")
    if held != value:
        reject(argument, "be a number that a float holds exactly", repr(value))
    return held


def _suggest_share(percent: float, bounds: NumberBounds) -> str:
    """End a message about a share that is most likely given in percent."""
    is_percent = 50 <= percent < 100 and percent / 100 in bounds  # noqa: PLR2004
    return f"; did you mean {percent / 100:g}?" if is_percent else ""


def numbers(argument: str, value: object, bounds: NumberBounds = ANY_NUMBER) -> list[float]:
    """Check one number or several, and sort them; zero has one sign."""
    if not isinstance(value, Real | Iterable) or isinstance(value, str | bytes):
        reject_type(argument, "be a number or several of them", value)
    listed = list(value) if isinstance(value, Iterable) else [value]
    if not listed:
        reject(argument, "hold at least one number", "none")
    return sorted({number(argument, each, bounds) + 0.0 for each in listed})


def rate_range(argument: str, value: object) -> tuple[float, float]:
    """Check a range of rates."""
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 2:  # noqa: PLR2004
        reject_type(argument, "be a range of two rates such as (0.0, 0.1)", value)
    low, high = (number(argument, end, Between(0, 1)) for end in value)
    if low >= high:
        reject(argument, "rise from a lower to a higher rate", repr(value))
    return low, high


def whole_number(argument: str, value: object, bounds: NumberBounds) -> int:
    """Check a whole number and its bounds."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        reject_type(argument, "be a whole number", value)
    held = int(value)
    if held not in bounds:
        reject(argument, f"be {bounds.text}", repr(value))
    return held


# Words of R's survey package for choices of this one, by argument.
OTHER_WORDS = {"lonely": {"remove": "certainty", "fail": "null"}}


def word(argument: str, value: object, allowed: Sequence[str]) -> str:
    """Check a word that must be one of a few."""
    if not isinstance(value, str) or value not in allowed:
        listed = ", ".join(repr(each) for each in allowed)
        hint = did_you_mean(value, allowed, OTHER_WORDS.get(argument))
        reject(argument, f"be one of {listed}", f"{show_value(value)}{hint}")
    return value


def did_you_mean(
    found: object, known: Iterable[str], synonyms: Mapping[str, str] | None = None
) -> str:
    """End a message with the known name that is closest to what was found, if one is close.

    Names of ``synonyms`` are as close as those that they stand for.
    """
    names = {name.lower(): name for name in known} | dict(synonyms or {})
    close = get_close_matches(str(found).lower(), names, 1)
    return f"; did you mean {names[close[0]]!r}?" if close else ""


def find_separator(names: Sequence[str]) -> str | None:
    """Return the separator in the only name of a table, a header that was read as one column."""
    if len(names) > 1:
        return None
    return next((each for each in (";", "\t") if any(each in name for name in names)), None)


def flag(argument: str, value: object) -> bool:
    """Return an argument that is True or False."""
    if not isinstance(value, bool):
        reject_type(argument, "be True or False", value)
    return value


def hold(options: object, **values: object) -> None:
    """Store checked values in a frozen dataclass: Python's numbers instead of NumPy's."""
    for name, value in values.items():
        object.__setattr__(options, name, value)


def list_given(**values: object) -> list[str]:
    """Return the names of the arguments that are not None."""
    return [name for name, value in values.items() if value is not None]


def favorable_choice(selection: str) -> str:
    """Return which decision to call favorable, given the words for a ``selection``."""
    return (
        f"'selected' if {selection} is good for a person, as for a loan, 'rejected' if it is bad, "
        "as for a fraud alert"
    )


def quote_names(arguments: Iterable[str]) -> str:
    """Return the names of arguments for a message."""
    return " and ".join(f"`{name}`" for name in arguments) or "none"


def check_text(argument: str, value: str) -> None:
    """Raise for a text that cannot be written in UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError:
        msg = f"`{argument}` must be text in UTF-8; found {show_value(value)}"
        raise ValueError(msg) from None


def reject(argument: str, rule: str, found: object) -> NoReturn:
    """Raise for a value of an argument, which the message calls ``found``."""
    msg = f"`{argument}` must {rule}; found {found}"
    raise ValueError(msg)


# A hint for values of columns in place of a table or the name of a column.
INTO_TABLE = ": put the values into pl.DataFrame({'label': y, 'score': s}), and name its columns"


def holds_values(value: object) -> bool:
    """Whether an argument is a Series, an array or a list of numbers: no table and no name."""
    if isinstance(value, list | tuple):
        return bool(value) and isinstance(value[0], Real)
    return isinstance(value, pl.Series) or getattr(value, "ndim", None) == 1


def reject_type(argument: str, rule: str, value: object, hint: str = "") -> NoReturn:
    """Raise for an argument of the wrong kind; the ``hint`` says what to do."""
    kind = type(value).__name__
    # A table has many lines, and the address of an object says nothing.
    is_long = re.search("^<|\n", repr(value)) is not None
    found = f"{'a value' if is_long else show_value(value)} of type {kind}"
    msg = f"`{argument}` must {rule}; found {found}{hint}"
    raise TypeError(msg)


def show_value(value: object) -> str:
    """Return a value as one short line for a message."""
    return shorten_text(" ".join(repr(value).split()))


def shorten_text(text: str, longest: int = _LONGEST) -> str:
    """Return a text, cut if it is too long for a message."""
    return text if len(text) <= longest else f"{text[:longest]}..."


@dataclass(frozen=True)
class Limit:
    """The ``most`` ``things`` that ``makers`` may give, and the ``argument`` that sets it."""

    argument: str
    most: int
    things: str
    makers: str = "by"

    def check(self, found: int) -> None:
        """Raise for a number that is known when the plan is built."""
        if found > self.most:
            msg = f"{self._rule}; found {self._advice.format(found, found)}"
            raise ValueError(msg)

    @property
    def _rule(self) -> str:
        return f"`{self.makers}` must give at most {self.most} {self.things}"

    @property
    def _advice(self) -> str:
        return f"{{}}: ask for fewer, or pass {self.argument}={{}}"


# The default margin: smaller gaps of rates and AUCs do not matter.
MARGIN = 0.05
# By convention, the least ratio of a selection rate to the highest (first in 29 CFR 1607.4 D).
FOUR_FIFTHS = 0.8
