"""The page of an audit in a real browser: what it loads, sorts, shows and prints."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from chromium import Chromium
from sweeps import sweep

import polars_wroc as wroc

UNFOLD = "document.querySelectorAll('details').forEach(one => { one.open = true; })"
ROWS = """[...document.querySelector('.numbers tbody').rows].map(
  row => [...row.cells].map(cell => cell.textContent.trim()))"""
# Contrast of two colours as WCAG 2 defines it.
CONTRAST = """(() => {
  const parse = color => color.match(/[\\d.]+/g).map(Number);
  const light = color => {
    const [r, g, b] = parse(color).map(part => part / 255).map(
      part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = element => {
    for (let at = element; at; at = at.parentElement) {
      const [, , , alpha = 1] = parse(getComputedStyle(at).backgroundColor);
      if (alpha > 0) return getComputedStyle(at).backgroundColor;
    }
    return 'rgb(255, 255, 255)';
  };
  const contrast = (color, other) => {
    const [a, b] = [light(color), light(other)].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  };
  const least = (selector, property) => Math.min(...[...document.querySelectorAll(selector)]
    .map(element => [element, getComputedStyle(element)[property]])
    .filter(([element, color]) => color.startsWith('rgb') && element.getClientRects().length)
    .map(([element, color]) => contrast(color, behind(element))));
  return {
    words: least('p, li, h1, h2, h3, th, td, small, b, span, figcaption, summary', 'color'),
    chart: least('figure svg text[fill]:not([stroke])', 'fill'),
    page: light(getComputedStyle(document.body).backgroundColor),
  };
})()"""
# Words that a reader may see, in a name of a column, a group and a file.
HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "__proto__",
    "{who}",
    "a|b",
    "**c**",
    "\x1b[31md",
    "e\u202ef",
]


@pytest.fixture(scope="module")
def audit() -> wroc.Audit:
    options: dict[str, Any] = {"attributes": ["race", "sex"], "threshold": 0.85}
    return wroc.audit(
        wroc.data.loans(), "approved", "score", favorable="selected", intersections=True, **options
    )


@pytest.fixture(scope="module")
def page(audit: wroc.Audit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    audit.save(path)
    return path


def test_page_loads_nothing_and_prints_nothing(page: Path, chromium: Chromium) -> None:
    chromium.show(page, until="true")
    assert chromium.printed == []
    assert chromium.requests == [page.as_uri()]


def test_page_runs_no_script_but_its_own(page: Path, chromium: Chromium) -> None:
    chromium.open(page)
    chromium.evaluate(
        "(() => { const one = document.createElement('script');"
        "one.textContent = 'window.foreign = true'; document.body.append(one);"
        "fetch('https://example.org').catch(() => { window.refused = true; }); })()"
    )
    chromium.wait("window.refused")
    assert chromium.evaluate("window.foreign === undefined")
    assert any("Content Security Policy" in text for text in chromium.printed)


def test_page_is_small_and_short(page: Path, chromium: Chromium) -> None:
    assert page.stat().st_size < 150_000
    for width, most in ((1280, 3_600), (390, 6_000)):
        chromium.open(page, width=width)
        assert chromium.evaluate("document.documentElement.scrollHeight") < most
        # Nothing but tables scrolls to the side.
        assert chromium.evaluate("document.documentElement.scrollWidth") <= width


def test_every_chart_has_a_finding_and_the_colours_of_the_page(
    page: Path, chromium: Chromium
) -> None:
    text = page.read_text(encoding="utf-8")
    charts = re.findall(r'<svg role="img" aria-label="([^"]+)".*?</svg>', text, re.DOTALL)
    assert len(charts) == 4
    assert all(label.startswith(("ROC curves by ", "Calibration by ")) for label in charts)
    pictures = re.findall(r'<svg role="img".*?</svg>', text, re.DOTALL)
    colors = {color for one in pictures for color in re.findall(r'(?:fill|stroke)="([^"]+)"', one)}
    assert {color for color in colors if not color.startswith("var(--")} <= {"none", "transparent"}
    chromium.show(page, until="true")
    assert chromium.evaluate("document.querySelectorAll('figure figcaption b').length") == 4


def test_the_table_of_all_numbers_sorts_by_click_and_by_keyboard(
    page: Path, audit: wroc.Audit, chromium: Chromium
) -> None:
    chromium.open(page)
    chromium.evaluate(UNFOLD)
    before = chromium.evaluate(ROWS)
    assert len([row for row in before if len(row) > 1]) == audit.table["value"].count()
    head = "document.querySelectorAll('.numbers thead th')"
    chromium.evaluate(f"{head}[1].querySelector('button').click()")
    counts = [int(row[1].replace(",", "")) for row in chromium.evaluate(ROWS)]
    assert counts == sorted(counts)
    chromium.evaluate(f"{head}[1].querySelector('button').focus()")
    chromium.press("Enter", "\r")
    assert chromium.evaluate(f"{head}[1].getAttribute('aria-sort')") == "descending"
    counts = [int(row[1].replace(",", "")) for row in chromium.evaluate(ROWS)]
    assert counts == sorted(counts, reverse=True)
    # Rows tell their group when they are no longer below its name.
    assert "black (race)" in " ".join(row[0] for row in chromium.evaluate(ROWS))


@pytest.mark.parametrize("scheme", sweep(["light", "dark"]))
def test_words_can_be_read(page: Path, chromium: Chromium, scheme: Any) -> None:
    chromium.open(page, scheme=scheme)
    chromium.evaluate(UNFOLD)
    seen = chromium.evaluate(CONTRAST)
    assert (seen["page"] < 0.1) == (scheme == "dark")
    assert min(seen["words"], seen["chart"]) >= 4.5, seen


@pytest.mark.slow(reason="opens a browser")
def test_first_columns_stay_where_tables_are_scrolled(page: Path, chromium: Chromium) -> None:
    chromium.open(page, width=390, height=3_000)
    chromium.evaluate("document.querySelector('.glance .wide').scrollLeft = 300")
    left = "document.querySelector('.glance tbody tr:nth-child(3) th').getBoundingClientRect().left"
    assert chromium.evaluate(left) == chromium.evaluate(
        "document.querySelector('.glance .wide').getBoundingClientRect().left"
    )


def test_paper_has_three_pages_with_the_method_and_a_line_to_sign(
    tmp_path: Path, chromium: Chromium
) -> None:
    options: dict[str, Any] = {"attributes": ["race", "sex"], "threshold": 0.85}
    audit = wroc.audit(wroc.data.loans(), "approved", "score", favorable="selected", **options)
    audit.save(tmp_path / "report.html")
    chromium.open(tmp_path / "report.html", scheme="dark")
    paper = chromium.call(
        "Page.printToPDF", paperWidth=8.27, paperHeight=11.69, preferCSSPageSize=True
    )
    content = base64.b64decode(paper["data"])
    assert content.count(b"/Type /Page\n") or content.count(b"/Type /Page/") <= 4
    chromium.open(tmp_path / "report.html", media="print", scheme="dark")
    shown = "getComputedStyle(document.querySelector('{}')).display"
    assert chromium.evaluate(shown.format(".sign")) == "block"
    assert chromium.evaluate(shown.format(".paper")) == "block"
    assert chromium.evaluate(shown.format("details.screen")) == "none"
    assert chromium.evaluate(CONTRAST)["page"] == 1


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_shown_as_they_are(name: str, tmp_path: Path, chromium: Chromium) -> None:
    random = np.random.default_rng(5)
    positive = random.random(400) < 0.5
    score = random.normal(size=400) + positive
    groups = np.where(np.arange(400) % 2, name, "other")
    # A column of Polars has no control characters in its name here, as no file would.
    column = name if name.isprintable() else "g"
    rows = pl.DataFrame({column: groups, "y": positive, "s": score, "t": -score})
    text = wroc.Text(note=name, people=name)
    options: dict[str, Any] = {"attributes": column, "threshold": 0.5, "favorable": "selected"}
    audit = wroc.audit(rows, "y", ["s", "t"], text=text, **options)
    for suffix in ("html", "md"):
        audit.save(tmp_path / f"report.{suffix}")
    chromium.open(tmp_path / "report.html")
    assert chromium.printed == []
    assert chromium.evaluate("document.querySelectorAll('img').length") == 0
    shown = chromium.evaluate("document.querySelector('main').textContent")
    drawn = chromium.evaluate("document.querySelector('figure svg').textContent")
    seen = name.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e")
    assert seen in shown
    assert seen[:8] in drawn
    assert "\x1b" not in repr(audit)
    assert "\u202e" not in repr(audit)
    markdown = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert re.search(r"(?<!\\)<img", markdown) is None


def saved(audit: wroc.Audit, folder: Path, chromium: Chromium) -> str:
    """Save and open a page, and return its words."""
    audit.save(folder / "report.html")
    chromium.open(folder / "report.html")
    assert chromium.printed == []
    return str(chromium.evaluate("document.body.innerText"))


@pytest.mark.filterwarnings("ignore:each of the .* is a group")
@pytest.mark.slow(reason="opens a browser")
def test_ten_thousand_groups(tmp_path: Path, chromium: Chromium) -> None:
    random = np.random.default_rng(0)
    groups = np.concatenate([np.arange(10_000), random.integers(0, 10_000, 30_000)])
    data = pl.DataFrame(
        {"zip": groups, "y": random.random(40_000) < 0.4, "s": random.random(40_000)}
    ).with_columns(zip=pl.when(pl.int_range(pl.len()) % 5 == 0).then(7).otherwise("zip"))
    data = data.with_columns(s=pl.when(zip=7).then(pl.col("s") / 2).otherwise("s"))
    audit = wroc.audit(data, "y", "s", attributes="zip", threshold=0.5, favorable="selected")
    text = saved(audit, tmp_path, chromium)
    assert f"{data['zip'].n_unique() - 1:,} others, inconclusive or alike" in text
    assert "The group 7 (zip)" in text
    assert (tmp_path / "report.html").stat().st_size < 1_000_000


def test_page_of_one_class_says_so(tmp_path: Path, chromium: Chromium) -> None:
    data = pl.DataFrame({"g": list("aabb"), "y": [1] * 4, "s": [0.1, 0.2, 0.3, 0.4]})
    audit = wroc.audit(data, "y", "s", attributes="g", threshold=0.2, favorable="selected")
    text = saved(audit, tmp_path, chromium)
    assert "No group is shown to be worse off. But all 3 comparisons are inconclusive" in text
    assert "The score has no AUC: all outcomes are the same." in text


@pytest.mark.parametrize("intersections", [True, "only"])
def test_crossed_groups_alone_can_be_saved(
    intersections: Any, tmp_path: Path, chromium: Chromium
) -> None:
    options: dict[str, Any] = {"attributes": ["race", "sex"], "threshold": 0.85}
    audit = wroc.audit(
        wroc.data.loans(),
        "approved",
        "score",
        favorable="selected",
        intersections=intersections,
        **options,
    )
    text = saved(audit, tmp_path, chromium)
    assert "race and sex" in text
    assert ("Scores by race" in text) == (intersections is True)


@pytest.mark.slow(reason="opens a browser")
def test_attributes_without_charts_are_named(tmp_path: Path, chromium: Chromium) -> None:
    random = np.random.default_rng(6)
    score = random.random(1_000)
    names = [f"a{number}" for number in range(8)]
    frame = pl.DataFrame({"y": random.random(1_000) < score, "s": score}).with_columns(
        pl.Series(name, random.choice(["u", "v"], 1_000)) for name in names
    )
    text = saved(wroc.audit(frame, "y", "s", attributes=names), tmp_path, chromium)
    assert "Scores by a5" in text
    assert "Scores by a6" not in text
    assert (
        "Only the first 6 attributes have charts. For charts of a6 and a7, audit fewer "
        "attributes, or call audit.chart('a6') in Python."
    ) in text
    assert "have charts" not in saved(
        wroc.audit(frame, "y", "s", attributes=names[:6]), tmp_path, chromium
    )


def test_figures_are_titled_by_what_differs(tmp_path: Path) -> None:
    """Equal mean errors and other slopes are no equal calibration."""
    random = np.random.default_rng(0)
    size = 6000
    logit = random.normal(0, 1.2, 2 * size)
    slope = np.repeat([1.0, 2.2], size)
    frame = pl.DataFrame(
        {
            "g": np.repeat(["a", "b"], size),
            "y": random.random(2 * size) < 1 / (1 + np.exp(-logit)),
            "s": 1 / (1 + np.exp(-logit * slope)),
        }
    )
    audit = wroc.audit(frame, "y", "s", attributes="g", threshold=0.5, favorable="selected")
    (row,) = audit.table.filter(metric="calibration_slope", segment="b").to_dicts()
    assert (row["verdict"], row["value"] < 0.55) == ("different", True)
    audit.save(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    slope_of_b = f"for the group b (g) (slope {row['value']:.2f}"
    assert f"High scores are too high and low ones too low {slope_of_b}" in text
    assert "Calibration: no difference is shown" not in text
