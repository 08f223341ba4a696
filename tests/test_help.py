"""The help of public names is short enough to read."""

from __future__ import annotations

import pydoc

import pytest

import polars_wroc as wroc

_MOST_LINES = 120
# Their help is that of all functions of counts, and of a dict, whose methods they have.
_NAMES = sorted({*wroc.__all__} - {"ChartOptions"})


@pytest.mark.parametrize("name", _NAMES)
def test_help_has_at_most_120_lines(name: str) -> None:
    assert len(pydoc.render_doc(getattr(wroc, name)).splitlines()) <= _MOST_LINES
