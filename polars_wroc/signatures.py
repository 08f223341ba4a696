"""Methods that are functions with some arguments filled in, for readers and for `help`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from functools import update_wrapper
from typing import Any


def described(
    method: Callable[..., Any], function: Callable[..., Any], filled_in: Collection[str]
) -> Callable[..., Any]:
    """Give a method the name, the documentation and the other arguments of its function."""
    update_wrapper(method, function)
    own = inspect.signature(function)
    receiver = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    others = [value for name, value in own.parameters.items() if name not in filled_in]
    vars(method)["__signature__"] = own.replace(parameters=[receiver, *others])
    return method
