"""The help of public names: short enough to read, with links that lead somewhere."""

from __future__ import annotations

import inspect
import pydoc
import re
from pathlib import Path

import pytest
from site_navigation import DOCS

import polars_wroc as wroc

_MOST_LINES = 120
_LINK = re.compile(r"\]\(\.\./([\w/-]+\.md)#([\w-]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
# Their help is that of all functions of counts, and of a dict, whose methods they have.
_NAMES = sorted({*wroc.__all__} - {"ChartOptions"})


@pytest.mark.parametrize("name", _NAMES)
def test_help_has_at_most_120_lines(name: str) -> None:
    assert len(pydoc.render_doc(getattr(wroc, name)).splitlines()) <= _MOST_LINES


@pytest.mark.parametrize("name", _NAMES)
def test_links_of_docstrings_lead_to_headings(name: str) -> None:
    links = _LINK.findall(re.sub(r"\s+", " ", inspect.getdoc(getattr(wroc, name)) or ""))
    assert [link for link in links if link[1] not in _anchors(DOCS / link[0])] == []


def _anchors(page: Path) -> set[str]:
    headings = _HEADING.findall(page.read_text(encoding="utf-8"))
    return {heading.lower().replace(" ", "-") for heading in headings}
