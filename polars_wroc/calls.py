"""Checks of the calls of public functions and classes, by their signatures and annotations."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache, partial, wraps
from types import NoneType
from typing import Any, Literal, ParamSpec, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from polars_wroc import checks
from polars_wroc.bounds import find_number_type, list_alternatives
from polars_wroc.keywords import CHOICES, find_fault

P = ParamSpec("P")
T = TypeVar("T")
# Returns the value of an argument, whose name it gets too, or raises.
Check: TypeAlias = Callable[[str, Any], Any]


def check_call(function: Callable[P, T]) -> Callable[P, T]:
    """Check each call of a function: the names of its arguments, and their values.

    Annotations say which values are checked here: switches (``bool``), words (a ``Literal``) and
    numbers with bounds (the types of `polars_wroc.bounds`), each also beside None or a class.
    Numbers of NumPy become numbers of Python. The function checks its other arguments.
    """
    known = inspect.signature(function).parameters

    @wraps(function)
    def call_checked(*args: P.args, **kwargs: P.kwargs) -> T:
        if fault := find_fault(known, len(args), kwargs):
            if args and "frame" in known and checks.holds_values(args[0]):
                # Columns by themselves, as for functions of other packages.
                kind = type(args[0]).__name__
                fault = f"needs a table as `frame`; found {kind}{checks.INTO_TABLE}"
            msg = f"`{function.__name__}` {fault}"
            raise TypeError(msg)
        given = dict(zip(known, args, strict=False)) | kwargs
        return function(**check_values(function, given))  # type: ignore[call-arg]

    return call_checked


def check_arguments(kind: type[T]) -> type[T]:
    """Check each call of a dataclass as `check_call` does for functions."""
    known, build = inspect.signature(kind).parameters, kind.__init__

    @wraps(build)
    def init_checked(self: T, *args: object, **kwargs: object) -> None:
        if fault := find_fault(known, len(args), kwargs):
            msg = f"`{kind.__name__}` {fault}"
            raise TypeError(msg)
        given = dict(zip(known, args, strict=False)) | kwargs
        build(self, **check_values(kind, given))

    kind.__init__ = init_checked  # type: ignore[method-assign,assignment]
    return kind


def check_values(called: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call; raise for a value that its annotation excludes."""
    known = find_checks(called)
    return {
        name: known[name](name, value) if name in known else value for name, value in given.items()
    }


@cache
def find_checks(called: Callable[..., Any]) -> dict[str, Check]:
    """Return the checks of arguments that follow from their annotations."""
    hints = get_type_hints(inspect.unwrap(called), include_extras=True)
    found = {name: find_check(hint) for name, hint in hints.items() if name != "return"}
    # A message of the function says what the words of these mean.
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
