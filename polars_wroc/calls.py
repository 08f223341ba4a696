"""Checks of the calls of public functions and classes, by their signatures and annotations."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial, wraps
from types import NoneType
from typing import Any, Literal, ParamSpec, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from polars_wroc import checks
from polars_wroc.bounds import find_number_type, list_alternatives
from polars_wroc.keywords import CHOICES, find_fault

P = ParamSpec("P")
T = TypeVar("T")
# Takes an argument's name and value; returns the value or raises.
Check: TypeAlias = Callable[[str, Any], Any]


def check_call(function: Callable[P, T]) -> Callable[P, T]:
    """Check each call of a function: the names of its arguments, and their values.

    Annotations say which values are checked here: switches (``bool``), words (a ``Literal``) and
    numbers with bounds (the types of `polars_wroc.bounds`). Each may be None where its annotation
    says so, and a number may be an instance of a class instead. NumPy numbers become Python
    numbers. The function checks its other arguments.
    """
    known = inspect.signature(function).parameters

    @wraps(function)
    def call_checked(*args: P.args, **kwargs: P.kwargs) -> T:
        return function(**read_call(function, known, args, kwargs))  # type: ignore[call-arg]

    return call_checked


def check_arguments(kind: type[T]) -> type[T]:
    """Check each call of a dataclass as `check_call` does for functions."""
    known, build = inspect.signature(kind).parameters, kind.__init__

    @wraps(build)
    def init_checked(self: T, *args: object, **kwargs: object) -> None:
        build(self, **read_call(kind, known, args, kwargs))

    kind.__init__ = init_checked  # type: ignore[method-assign,assignment]
    return kind


def read_call(
    called: Callable[..., Any],
    known: Mapping[str, inspect.Parameter],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the arguments of a call by name; raise if one does not fit the signature."""
    if fault := find_fault(known, len(args), kwargs):
        if args and "frame" in known and checks.holds_values(args[0]):
            # The caller passed bare columns, as other packages expect.
            kind = type(args[0]).__name__
            fault = f"needs a table as `frame`; found {kind}{checks.INTO_TABLE}"
        msg = f"`{called.__name__}` {fault}"
        raise TypeError(msg)
    given = {**dict(zip(known, args, strict=False)), **kwargs}
    found = find_checks(called)
    return {
        name: found[name](name, value) if name in found else value for name, value in given.items()
    }


@cache
def find_checks(called: Callable[..., Any]) -> dict[str, Check]:
    """Return the checks of arguments that follow from their annotations."""
    hints = get_type_hints(inspect.unwrap(called), include_extras=True)
    found = {name: find_check(hint) for name, hint in hints.items() if name != "return"}
    # The function checks these itself: its message explains each choice.
    return {name: check for name, check in found.items() if check and name not in CHOICES}


def find_check(hint: Any) -> Check | None:
    """Return the check of an argument with this annotation; None if the function checks it."""
    kinds = [kind for kind in list_alternatives(hint) if kind is not NoneType]
    classes = tuple(kind for kind in kinds if inspect.isclass(kind) and kind is not bool)
    number_type = find_number_type(hint)
    check: Check
    if number_type is not None and len(classes) == len(kinds) - 1:
        read = checks.whole_number if number_type.kind is int else checks.number
        check = partial(read, bounds=number_type.bounds)
    elif kinds == [bool]:
        check = checks.flag
    elif len(kinds) == 1 and get_origin(kinds[0]) is Literal:
        check = partial(checks.word, allowed=get_args(kinds[0]))
    else:
        return None
    passing = (*classes, NoneType) if NoneType in list_alternatives(hint) else classes
    return lambda name, value: value if isinstance(value, passing) else check(name, value)
