"""Methods that take their name, documentation and arguments from a function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from functools import update_wrapper
from typing import Any


def described(
    method: Callable[..., Any], function: Callable[..., Any], filled_in: Collection[str]
) -> Callable[..., Any]:
    """Give a method the name, documentation and remaining arguments of its function."""
    update_wrapper(method, function)
    own = inspect.signature(function)
    receiver = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    others = [value for name, value in own.parameters.items() if name not in filled_in]
    vars(method)["__signature__"] = own.replace(parameters=[receiver, *others])
    return method
