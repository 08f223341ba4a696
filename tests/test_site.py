"""Pages of the documentation site, after `zensical build`: they are accessible, and fit."""

from __future__ import annotations

from typing import Literal

import pytest
from chromium import Chromium
from site_navigation import ROOT

SITE = ROOT / "build" / "site"
# A page with cards, one with pictures, one with columns of functions, one with long code, and one
# with tables of a notebook.
PAGES = [
    "index",
    "gallery",
    "reference/audits",
    "guides/fairness-audit",
    "examples/tour",
]
# The rules of WCAG 2; the theme's menus break recommendations beyond it.
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa")
# site.js has named what scrolls and the menus of blocks of code.
IS_READY = "document.querySelector('.md-code__nav[aria-label]') !== null"
# Elements that are wider than the screen and not in a box that scrolls.
CUT_OFF = """[...document.querySelectorAll('article *')].filter(part => {
  const box = part.getBoundingClientRect();
  if (box.width === 0 || box.right <= document.documentElement.clientWidth + 1) return false;
  for (let above = part.parentElement; above !== document.body; above = above.parentElement) {
    if (getComputedStyle(above).overflowX !== 'visible') return false;
  }
  return true;
}).map(part => part.outerHTML.slice(0, 200))"""

pytestmark = [
    pytest.mark.slow(reason="opens a browser"),
    pytest.mark.skipif(not SITE.exists(), reason="the site is not built"),
]


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_pages_break_no_rule_and_fit_the_screen(
    chromium: Chromium, page: str, width: int, scheme: Literal["light", "dark"]
) -> None:
    chromium.open(SITE / f"{page}.html", width=width, scheme=scheme, until=IS_READY)
    assert chromium.broken_rules(*RULES) == []
    assert chromium.evaluate(CUT_OFF) == []
    assert [url for url in chromium.requests if not url.startswith(("file:", "data:"))] == []
