"""The gallery: every chart has a picture, made by the code that the page shows.

The code itself runs as a doctest of the page.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fill_gallery import PAGE, codes
from pictures import source_of

import polars_wroc as wroc

_HEADING = re.compile(r"^### `(\w+)`(?: of \w+)?$", re.MULTILINE)
_CHARTS = sorted(name for name in wroc.__all__ if name.endswith("_chart"))


def chart_of(picture: Path) -> str:
    """The function that draws a picture; a chart may have several, such as gap_chart_of_ratios."""
    return picture.stem.partition("_of_")[0]


def test_every_chart_has_a_section_and_a_picture() -> None:
    assert sorted({*_HEADING.findall(PAGE.read_text(encoding="utf-8"))}) == _CHARTS
    assert sorted({chart_of(picture) for picture, _ in codes()}) == _CHARTS


@pytest.mark.parametrize(("picture", "code"), [pytest.param(*at, id=at[0].stem) for at in codes()])
def test_pictures_are_made_by_the_code_of_the_page(picture: Path, code: str) -> None:
    assert f"chart = wroc.{chart_of(picture)}(" in code
    assert source_of(picture.read_bytes()) == code, "run: python tools/renew.py gallery"
