"""Parameters of tests of which some are tried in each run, and all with the slow tests.

Of two swept parameters each value is tried with the first of the other; .ci/nightly tries all
pairs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def sweep(
    values: Iterable[Any], fast: int | Collection[Any] = 1, *, tuples: bool = False
) -> list[Any]:
    """Mark values of a parameter as slow, but for the first few or those that are named.

    A tuple holds the values of several parameters, unless ``tuples`` are values themselves.
    """
    swept = []
    for place, value in enumerate(values):
        several = value if isinstance(value, tuple) and not tuples else (value,)
        is_fast = place < fast if isinstance(fast, int) else value in fast
        swept.append(pytest.param(*several, marks=() if is_fast else pytest.mark.slow))
    return swept
