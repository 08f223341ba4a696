"""Parameters of tests of which some are tried in each run, and others with the slow tests.

Of two swept parameters the slow tests try each value with the first of the other, and of many
values eight; .ci/nightly tries all of them, and all pairs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest

_MOST = 8


def sweep(
    values: Iterable[Any], fast: int | Collection[Any] = 1, *, tuples: bool = False
) -> list[Any]:
    """Mark values of a parameter as slow, but for the first few or those that are named.

    A tuple holds the values of several parameters, unless ``tuples`` are values themselves.
    """
    listed = list(values)
    is_fast = [n < fast if isinstance(fast, int) else one in fast for n, one in enumerate(listed)]
    slow = [place for place, each in enumerate(is_fast) if not each]
    # Evenly spread, since neighbours are often alike.
    tried = set(slow[:: -(-len(slow) // _MOST) or 1])
    swept = []
    for place, value in enumerate(listed):
        several = value if isinstance(value, tuple) and not tuples else (value,)
        slow_mark = pytest.mark.slow(reason="a further value of a sweep")
        at_night = slow_mark, pytest.mark.nightly(reason="one of many values of a sweep")
        marks = () if is_fast[place] else at_night[:1] if place in tried else at_night
        swept.append(pytest.param(*several, marks=marks))
    return swept
