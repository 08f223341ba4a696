"""Compile functions of arrays and numbers, without Python objects and its global lock.

Three rules keep a kernel as fast as C. It takes no view of an array inside a loop, since each
view counts references. Its indices are unsigned, since a signed index is tested for "from the
end". Its constants are `U`, since an unsigned number with a plain int becomes a float.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

FunctionT = TypeVar("FunctionT", bound=Callable[..., object])

U = np.uint64
ZERO, ONE, TWO = U(0), U(1), U(2)


def read_only(values: NDArray[Any]) -> NDArray[Any]:
    """Make an array read-only; to a compiled kernel a writable array is of another type."""
    values.flags.writeable = False
    return values


def kernel(function: FunctionT) -> FunctionT:
    """Compile a function on its first call, and keep the machine code on disk if possible."""
    # "numpy": a division by zero is not an error, and needs no test.
    try:
        compiled = njit(nogil=True, error_model="numpy", cache=True)(function)
    except RuntimeError:
        # Neither the package's folder nor the user's cache can be written.
        compiled = njit(nogil=True, error_model="numpy")(function)
    return cast("FunctionT", compiled)


def inlined(function: FunctionT) -> FunctionT:
    """Compile a function into the kernels of the same file that call it."""
    return cast("FunctionT", njit(inline="always", error_model="numpy")(function))
