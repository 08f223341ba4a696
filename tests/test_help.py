"""The help of public names is short enough to read."""

from __future__ import annotations

import pydoc

import pytest

import polars_wroc as wroc

_MOST_LINES = 120
_MOST_WORDS = 30_000
# Its help is mostly about the methods of a dict.
_NAMES = sorted({*wroc.__all__} - {"ChartOptions"})


@pytest.mark.parametrize("name", _NAMES)
def test_help_has_at_most_120_lines(name: str) -> None:
    assert len(pydoc.render_doc(getattr(wroc, name)).splitlines()) <= _MOST_LINES


def test_the_help_of_all_names_has_at_most_30_000_words() -> None:
    words = {name: len(pydoc.render_doc(getattr(wroc, name)).split()) for name in _NAMES}
    assert sum(words.values()) <= _MOST_WORDS, sorted(words.items(), key=lambda item: -item[1])[:5]
