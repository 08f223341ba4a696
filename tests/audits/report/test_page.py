"""The report in a real browser: what it shows, sorts and moves, and what it never asks for."""

from __future__ import annotations

import html
import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from chromium import DRAWN, Chromium
from sweeps import sweep
from wide_tables import fairness_of

import polars_wroc as wroc
from polars_wroc.audits.gates import of_audit, read_gate

SIZES = "[...document.querySelectorAll('.wide')].map(e => e.scrollWidth - e.clientWidth)"
# Opens what is folded.
UNFOLD = "document.querySelectorAll('main details').forEach(one => { one.open = true; })"
ROWS = """(column => [...document.querySelectorAll('table')[NUMBER].tBodies[0].rows].map(
  row => row.cells[column].firstChild.textContent.trim()))(COLUMN)"""
# Contrast of two colours as WCAG 2 defines it; a mark's colour may be written with a variable.
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
    words: least('p, li, h1, h2, h3, dt, dd, th, td, small, caption, figcaption, summary', 'color'),
    buttons: least('button, output, label, code', 'color'),
    chart: least('svg text[fill]:not([stroke])', 'fill'),
    // Halos under the samples of lines have the colour of the page.
    lines: least('.role-mark.mark-line path, '
      + '.role-mark.mark-rule line:not([stroke-width="8"])', 'stroke'),
    page: light(getComputedStyle(document.body).backgroundColor),
  };
})()"""


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    """Segment c ranks worse, d is small, e has positives only, and one has no name."""
    rng = np.random.default_rng(4)
    groups = rng.choice([*"abcde", None], 3_000, p=[0.3, 0.3, 0.3, 0.01, 0.01, 0.08])
    positive = (rng.random(3_000) < 0.4) | (groups == "e")
    worse = np.where(groups == "c", 0.3, 1.5)
    return pl.DataFrame(
        {
            "g": groups.tolist(),
            "age": rng.integers(2, 8, 3_000) * 10,
            "y": positive,
            "s": rng.normal(size=3_000) + worse * positive,
            "t": rng.normal(size=3_000) * 100 + 90 * positive,
            "w": rng.lognormal(size=3_000),
        }
    )


@pytest.fixture(scope="module")
def audit(people: pl.DataFrame) -> wroc.Audit:
    return wroc.audit(
        people,
        "y",
        ["s", "t"],
        attributes=["g", "age"],
        weight="w",
        threshold=wroc.rules.max_fpr(0.2),
        favorable="selected",
    )


@pytest.fixture(scope="module")
def page(audit: wroc.Audit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    audit.save(path)
    return path


@pytest.fixture(scope="module")
def small_page(people: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Few charts, which are drawn sooner."""
    path = tmp_path_factory.mktemp("small_page") / "report.html"
    wroc.audit(
        people,
        "y",
        "s",
        attributes="g",
        weight="w",
        threshold=wroc.rules.max_fpr(0.2),
        favorable="selected",
    ).save(path)
    return path


def place_of(chromium: Chromium, section: int, title: str) -> int:
    """Say which table of the page is the one of a section with this title."""
    titles = chromium.evaluate(
        "[...document.querySelectorAll('table')].map(table => ["
        "table.parentElement.getAttribute('aria-labelledby').split(' ')[0],"
        "table.caption.textContent])"
    )
    (place,) = (
        place
        for place, (of_section, text) in enumerate(titles)
        if of_section == f"section-{section}" and text.startswith(title)
    )
    return int(place)


def column(chromium: Chromium, table: int, number: int) -> list[str]:
    text = ROWS.replace("NUMBER", str(table)).replace("COLUMN", str(number))
    return list(chromium.evaluate(text))


def test_page_loads_nothing_and_prints_nothing(page: Path, chromium: Chromium) -> None:
    chromium.show(page, until=DRAWN)
    assert chromium.printed == []
    assert chromium.requests == [page.as_uri()]


def test_every_chart_is_drawn_and_named(page: Path, audit: wroc.Audit, chromium: Chromium) -> None:
    chromium.show(page, until=DRAWN)
    charts = chromium.evaluate(
        "[...document.querySelectorAll('.chart')].map(chart => [chart.id,"
        "chart.querySelectorAll('svg .mark-line path, svg .mark-rule line').length,"
        "chart.getAttribute('aria-label'), chart.getAttribute('role')])"
    )
    # Of values, curves and gaps.
    assert len(charts) == 2 + 3 + 2 * 6
    assert audit.settings.as_dict()["attributes"] == ["g", "age"]
    for name, marks, label, role in charts:
        assert marks > 0, name
        assert label.endswith((".", "thresholds."))
        assert role == "graphics-document"


def test_tables_have_captions_and_headers(page: Path, chromium: Chromium) -> None:
    chromium.show(page, until=DRAWN)
    tables = chromium.evaluate(
        "[...document.querySelectorAll('.wide:not(.matrix) table')].map(table => ["
        "table.caption.textContent,"
        "[...table.tHead.rows[0].cells].every(cell => cell.scope === 'col'),"
        "[...table.tBodies[0].rows].every(row => row.cells[0].scope === 'row'),"
        "table.parentElement.getAttribute('aria-labelledby').endsWith(` ${table.caption.id}`)])"
    )
    assert len(tables) == 2 + 2 * 5
    assert all(all(parts) for parts in tables)


def test_first_screen_says_what_was_found(
    page: Path, audit: wroc.Audit, chromium: Chromium
) -> None:
    chromium.show(page, until=DRAWN)
    first = chromium.evaluate(
        "[...document.querySelectorAll('.verdict, .facts, .findings')].filter(e =>"
        "!e.closest('noscript')).map(e => e.innerText).join('\\n')"
    )
    for expected in (
        "3,000",
        "g = c (model s) is worse off: 27.3% of those actually positive are selected, against",
        "Model s: The score ranks ",
        "fewer than 30 rows in a class, too few to test a gap in AUC: g = d.",
        "rows of one class only, so that there is no AUC: g = e.",
        "false positive rate of at most 0.2",
    ):
        assert expected in first
    shown = chromium.evaluate("document.querySelector('.facts').innerText")
    overall = audit.segments.filter(attribute="overall")
    assert f"{overall['n_pos'][0] / 3_000:.1%}" in shown
    assert f"s {overall['threshold'][0]:.4g}; t " in shown


@pytest.mark.slow
def test_numbers_of_the_matrix_lead_to_folded_findings(page: Path, chromium: Chromium) -> None:
    chromium.open(page, until=DRAWN)
    # Whole names, and numbers with signs: nothing is said by a colour alone.
    rows = chromium.evaluate(
        "[...document.querySelectorAll('.matrix tbody tr')].map(row => [row.cells[0].title,"
        "[...row.querySelectorAll('td')].slice(1).map("
        "one => one.textContent.trim().split(/\\s+/).join(' '))])"
    )
    assert len(rows) == 2 * (6 + 6)
    assert rows[0][0] == "g c"
    assert any(text.endswith("\N{BLACK DOWN-POINTING TRIANGLE} worse") for text in rows[0][1])
    links = "[...document.querySelectorAll('.matrix a')]"
    lost = "a => !document.getElementById(a.hash.slice(1))"
    assert chromium.evaluate(f"{links}.length") > 50
    assert chromium.evaluate(f"{links}.filter({lost}).length") == 0
    folded = f"{links}.findLast(a => document.querySelector('details:not([open]) ' + a.hash))"
    target = chromium.evaluate(f"{folded}.hash")
    chromium.evaluate(f"{folded}.click()")
    chromium.wait(f"document.querySelector('{target}').closest('details').open")
    seen = f"document.querySelector('{target}').getBoundingClientRect()"
    chromium.wait(f"{seen}.top >= 0 && {seen}.bottom <= innerHeight")


@pytest.mark.slow
def test_contents_stay_in_view_and_are_a_menu_on_a_phone(page: Path, chromium: Chromium) -> None:
    menu = "document.querySelector('.contents details')"
    for width, folded in ((1200, False), (390, True)):
        chromium.open(page, width=width, until=DRAWN)
        assert chromium.evaluate(f"{menu}.open") is not folded
        chromium.evaluate("scrollTo(0, 2000)")
        assert chromium.evaluate(f"{menu}.getBoundingClientRect().top") >= 0
        assert chromium.evaluate(f"{menu}.getBoundingClientRect().bottom") < 100
    chromium.evaluate(f"{menu}.querySelector('summary').click()")
    chromium.evaluate(f"{menu}.querySelector('a[href=\"#findings\"]').click()")
    chromium.wait(f"!{menu}.open && location.hash === '#findings'")


def test_page_shows_gates_and_what_was_not_decided(people: pl.DataFrame, tmp_path: Path) -> None:
    result = wroc.audit(people, "y", "t", attributes="g")
    gates = [
        read_gate(text, of_audit(decides=False, ratios=False)).judge(result.table)
        for text in ("auc.gap>0.001", "auc.value<0.1")
    ]
    path = tmp_path / "report.html"
    replace(result, gates=gates).save(path)
    text = path.read_text(encoding="utf-8")
    lines = [line for gate in gates for line in gate.lines]
    kinds = {"NOT": "little", "FAILED": "worse", "PASSED": "alike"}
    assert {line.split()[0] for line in lines} == kinds.keys()
    for line in lines:
        assert f'<li class="{kinds[line.split()[0]]}">{html.escape(line)}</li>' in text
    undecided = '<p class="lacking"><span>No threshold was given.<'
    assert text.count(undecided) == 1


@pytest.mark.slow
def test_page_runs_no_script_but_its_own(small_page: Path, chromium: Chromium) -> None:
    chromium.open(small_page, until=DRAWN)
    chromium.evaluate(
        "(() => { const one = document.createElement('script');"
        "one.textContent = 'window.foreign = true'; document.body.append(one);"
        "fetch('https://example.org').catch(() => { window.refused = true; }); })()"
    )
    chromium.wait("window.refused")
    assert chromium.evaluate("window.foreign === undefined")
    assert any("Content Security Policy" in text for text in chromium.printed)


@pytest.mark.slow
def test_an_older_browser_shows_the_tables_and_says_what_charts_need(
    small_page: Path, chromium: Chromium
) -> None:
    lacking = "delete window.DecompressionStream"
    added = chromium.call("Page.addScriptToEvaluateOnNewDocument", source=lacking)
    try:
        chromium.open(small_page, until=DRAWN)
    finally:
        chromium.call("Page.removeScriptToEvaluateOnNewDocument", **added)
    texts = chromium.evaluate("[...document.querySelectorAll('.chart')].map(e => e.textContent)")
    said = "This chart could not be drawn: charts need a newer browser"
    assert texts == [said] * len(texts)
    assert chromium.evaluate("document.querySelectorAll('table thead button').length") > 0


@pytest.mark.slow
def test_tables_sort_by_click_and_by_keyboard(
    page: Path, audit: wroc.Audit, chromium: Chromium
) -> None:
    chromium.open(page, until=DRAWN)
    chromium.evaluate(UNFOLD)
    segments = audit.segments.filter(attribute="g")
    aucs = audit.table.filter(attribute="g", metric="auc")["value"]
    table = place_of(chromium, 2, "Ranking")
    head = f"document.querySelectorAll('table')[{table}].tHead.rows[0].cells"
    names = chromium.evaluate(f"[...{head}].map(cell => cell.innerText.split('\\u00a0')[0].trim())")
    auc = next(number for number, name in enumerate(names) if name.startswith("AUC"))
    before = column(chromium, table, auc)
    assert "\N{EN DASH}" in before
    known = aucs.drop_nulls().sort().to_list()
    nulls = aucs.null_count() * ["\N{EN DASH}"]

    def state() -> str:
        return str(chromium.evaluate(f"{head}[{auc}].getAttribute('aria-sort')"))

    assert state() == "none"
    chromium.evaluate(f"{head}[{auc}].querySelector('button').click()")
    assert (state(), column(chromium, table, auc)) == (
        "ascending",
        [*(f"{one:.3f}" for one in known), *nulls],
    )
    chromium.evaluate(f"{head}[{auc}].querySelector('button').focus()")
    chromium.press("Enter", "\r")
    assert (state(), column(chromium, table, auc)) == (
        "descending",
        [*(f"{one:.3f}" for one in reversed(known)), *nulls],
    )
    chromium.press(" ", " ")
    assert (state(), column(chromium, table, auc)) == ("none", before)
    # Numbers sort by their value: 1,000 is more than 999; text as text.
    chromium.evaluate(f"{head}[3].querySelector('button').click()")
    rows = [int(text.replace(",", "")) for text in column(chromium, table, 3)]
    assert rows == sorted(segments["n"])
    assert max(rows) > 1000 / 2
    chromium.evaluate(f"{head}[0].querySelector('button').click()")
    assert column(chromium, table, 0) == sorted(s or "(missing)" for s in segments["segment"])
    sorted_by = f"[...{head}].filter(cell => cell.getAttribute('aria-sort') !== 'none').length"
    assert chromium.evaluate(sorted_by) == 1


@pytest.mark.slow
def test_limits_of_all_pairs_sort_by_their_lower_end(
    small_page: Path, people: pl.DataFrame, chromium: Chromium
) -> None:
    chromium.open(small_page, until=DRAWN)
    chromium.evaluate(UNFOLD)
    table = place_of(chromium, 2, "Fairness")
    head = f"[...document.querySelectorAll('table')[{table}].tHead.rows[0].cells]"
    texts = list(chromium.evaluate(f"{head}.map(cell => cell.innerText)"))
    place = next(number for number, text in enumerate(texts) if text.startswith("For all"))
    chromium.evaluate(f"{head}[{place}].querySelector('button').click()")
    fairness = fairness_of(
        wroc.audit(
            people,
            "y",
            "s",
            attributes="g",
            weight="w",
            threshold=wroc.rules.max_fpr(0.2),
            favorable="selected",
        )
    )
    assert fairness is not None
    ends = sorted(fairness.select("joint_low", "joint_high").rows())
    shown = column(chromium, table, place)
    assert sorted(shown) == sorted(f"{low:.3f} to {high:.3f}" for low, high in ends)
    assert [text.split(" to ")[0] for text in shown] == [f"{low:.3f}" for low, _ in ends]


@pytest.mark.parametrize("scheme", sweep(["light", "dark"]))
def test_words_and_charts_can_be_read(small_page: Path, chromium: Chromium, scheme: Any) -> None:
    chromium.open(small_page, scheme=scheme, until=DRAWN)
    chromium.evaluate(UNFOLD)
    seen = chromium.evaluate(CONTRAST)
    assert (seen["page"] < 0.1) == (scheme == "dark")
    assert min(seen["words"], seen["buttons"], seen["chart"]) >= 4.5, seen
    assert seen["lines"] >= 3, seen


@pytest.mark.slow
def test_everything_fits_at_1200_and_scrolls_inside_its_region_at_390(
    page: Path, chromium: Chromium
) -> None:
    for width in (1200, 390):
        chromium.open(page, width=width, until=DRAWN)
        # The first screens need no scrolling to the side, and neither do charts.
        drawn = SIZES.replace(".wide", ".matrix, .chart")
        shown = drawn.replace("].map", "].filter(e => e.offsetParent).map")
        assert set(chromium.evaluate(shown)) == {0}
        chromium.evaluate(UNFOLD)
        if width == 1200:
            assert set(chromium.evaluate(SIZES)) == {0}
        assert chromium.evaluate("document.documentElement.scrollWidth") <= width
    wide = (
        "[...document.querySelectorAll('.wide, .chart')].filter(e => e.scrollWidth > e.clientWidth)"
    )
    chromium.wait(f"{wide}.length > 10 && {wide}.every(e => e.tabIndex === 0)")
    assert chromium.evaluate(f"{wide}.every(e => e.tabIndex === 0)")


def test_first_columns_stay_where_tables_are_scrolled(small_page: Path, chromium: Chromium) -> None:
    chromium.open(small_page, width=400, height=3_000, until=DRAWN)
    chromium.evaluate(UNFOLD)
    scrolled = """[...document.querySelectorAll('.wide:not(.matrix)')].filter(wide =>
      (wide.scrollLeft = 1e6) && wide.querySelector('tbody tr:nth-child(2)')).map(wide => {
        wide.scrollIntoView();
        const place = element => element.getBoundingClientRect();
        const color = element => getComputedStyle(element).backgroundColor;
        const { left } = place(wide);
        const cells = [...wide.querySelectorAll('tr > :first-child')];
        const middle = cell => [place(cell).left + 40, (place(cell).top + place(cell).bottom) / 2];
        const buttons = wide.querySelectorAll('button');
        buttons[buttons.length - 1].focus();
        buttons[1].focus();
        return {
          cells: cells.every(cell => Math.abs(place(cell).left - left) < 0.01),
          // What is scrolled goes under them.
          seen: cells.every(cell => cell.contains(document.elementFromPoint(...middle(cell)))),
          paper: cells.every(cell => color(cell) === color(document.body)),
          focus: place(buttons[1]).left >= place(cells[0]).right,
        };
      })"""
    tables = chromium.evaluate(scrolled)
    assert len(tables) > 3
    assert all(all(table.values()) for table in tables), tables


@pytest.mark.slow
@pytest.mark.parametrize("scheme", sweep(["light", "dark"]))
def test_a_shadow_is_where_more_is_to_the_side(
    small_page: Path, chromium: Chromium, scheme: Any
) -> None:
    def sides(selector: str) -> list[bool]:
        """Whether the left and the right end of a region differ from the page next to it."""
        box = chromium.evaluate(
            f"(({{left, right, top}}) => [left, right, top + scrollY])"
            f"(document.querySelector({selector!r}).getBoundingClientRect())"
        )
        ends = [picture(x, box[2]) for x in (box[0], box[1] - 8)]
        return [end != picture(4, box[2]) for end in ends]

    def picture(x: float, y: float) -> str:
        clip = {"x": x, "y": y, "width": 8, "height": 4, "scale": 1}
        shot = chromium.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        return str(shot["data"])

    # The first column of a table stays, and needs none next to it. Charts shrink on a phone.
    of_table = (".wide:not(.matrix)", 400, [False, False])
    # A picture has none, and what is wrapped would move.
    chromium.call("Emulation.setScrollbarsHidden", hidden=True)
    for selector, width, at_the_end in (of_table,):
        chromium.open(small_page, width=width, scheme=scheme, until=DRAWN)
        chromium.evaluate(UNFOLD)
        assert sides(selector) == [False, True]
        chromium.evaluate(f"document.querySelector({selector!r}).scrollLeft = 1e6")
        assert sides(selector) == at_the_end
    chromium.call("Emulation.setScrollbarsHidden", hidden=False)


@pytest.mark.slow
def test_paper_has_what_is_open_or_everything_and_fits(
    small_page: Path, chromium: Chromium
) -> None:
    chromium.open(small_page, width=700, scheme="dark", media="print", until=DRAWN)
    chromium.evaluate(UNFOLD)
    assert set(chromium.evaluate(SIZES)) == {0}
    assert chromium.evaluate("document.documentElement.scrollWidth") <= 700
    assert chromium.evaluate(CONTRAST)["page"] == 1
    first = "[...document.querySelectorAll('caption span:not(.unseen), tr > :first-child')]"
    assert chromium.evaluate(f"{first}.every(e => getComputedStyle(e).position === 'static')")
    # Buttons would not be repeated on the next sheet.
    head = "[...document.querySelectorAll('.wide:not(.matrix) thead th')]"
    assert "" not in chromium.evaluate(f"{head}.map(one => one.innerText)")
    assert not chromium.evaluate(f"{head}.some(e => e.querySelector('button')?.offsetWidth)")
    chromium.open(small_page, until=DRAWN)
    closed = "document.querySelectorAll('main details:not([open])').length"
    folded = chromium.evaluate(closed)
    assert folded > 0
    chromium.evaluate(f"addEventListener('beforeprint', () => {{ window.left = {closed}; }})")
    for whole, left in ((False, folded), (True, 0)):
        box = "document.getElementById('print-folded')"
        chromium.evaluate(f"{box}.checked = {json.dumps(whole)}")
        chromium.call("Page.printToPDF")
        assert chromium.evaluate("window.left") == left
        assert chromium.evaluate(closed) == folded


def test_keyboard_skips_to_the_explanation(small_page: Path, chromium: Chromium) -> None:
    chromium.open(small_page, until=DRAWN)
    chromium.press("Tab")
    assert chromium.evaluate("document.activeElement.className") == "skip"
    assert chromium.evaluate("document.activeElement.getBoundingClientRect().left >= 0")
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert chromium.evaluate(outline) == "solid"
    chromium.press("Enter", "\r")
    assert chromium.evaluate("document.activeElement.id") == "method"
    assert chromium.evaluate("document.querySelectorAll('noscript').length") == 1


def opened(result: wroc.Audit, folder: Path, chromium: Chromium) -> str:
    """Save and open a page, and check what is true of every page."""
    path = folder / "report.html"
    result.save(path)
    chromium.open(path, until=DRAWN)
    assert chromium.printed == []
    undrawn = "[...document.querySelectorAll('.chart')].filter(e => !e.querySelector('svg')).length"
    assert chromium.evaluate(undrawn) == 0
    text = path.read_text(encoding="utf-8")
    # With the numbers that can be saved.
    assert len(text.encode()) < 2_100_000
    chromium.evaluate(UNFOLD)
    return str(chromium.evaluate("document.body.innerText"))


@pytest.mark.slow
def test_ten_thousand_segments(tmp_path: Path, chromium: Chromium) -> None:
    rng = np.random.default_rng(0)
    groups = np.concatenate([np.arange(10_000), rng.integers(0, 10_000, 30_000)])
    data = pl.DataFrame(
        {"zip": groups, "y": rng.random(40_000) < 0.4, "s": rng.random(40_000)}
    ).with_columns(y=pl.col("y") ^ ((pl.col("zip") == 7) & (pl.col("s") > 0.5)))
    result = wroc.audit(data, "y", "s", attributes="zip", threshold=0.5, favorable="selected")
    text = opened(result, tmp_path, chromium)
    assert "The tables show 50 of 10,000 segments, those with the most serious findings" in text
    assert (
        "ROC curves of all rows, the segment with the least AUC (2) and the segment with " in text
    )
    assert " on segments with less serious findings: not included in this report" in text
    rows = "[...document.querySelectorAll('table')].map(table => table.tBodies[0].rows.length)"
    assert chromium.evaluate(rows) == [20, 40, 1, 1, 1, 50, 50, 50, 50, 50]


@pytest.mark.slow
def test_more_scores_than_charts_can_tell_apart(tmp_path: Path, chromium: Chromium) -> None:
    rng = np.random.default_rng(0)
    data = pl.DataFrame({"g": rng.choice(["a", "b"], 300), "y": rng.random(300) < 0.4})
    scores = [f"m{number}" for number in range(7)]
    data = data.with_columns(pl.Series(name, rng.random(300)) for name in scores)
    text = opened(
        wroc.audit(data, "y", scores, attributes="g", threshold=0.5, favorable="selected"),
        tmp_path,
        chromium,
    )
    assert "The charts show the first 5 of 7 scores" in text
    assert set(column(chromium, place_of(chromium, 2, "Ranking"), 1)) == set(scores)


@pytest.mark.slow
def test_intersections_fit_into_a_page(tmp_path: Path, chromium: Chromium) -> None:
    rng = np.random.default_rng(0)
    names = "abc"
    data = pl.DataFrame({name: rng.integers(0, 5, 9_000).astype(str) for name in names})
    data = data.with_columns(
        pl.format("{}, {}", one, two).alias(f"{one} \N{MULTIPLICATION SIGN} {two}")
        for one, two in itertools.combinations(names, 2)
    ).with_columns(
        y=pl.Series(rng.random(9_000) < 0.4),
        s=pl.Series(rng.random(9_000)),
        t=pl.Series(rng.normal(size=9_000)),
        w=pl.Series(rng.lognormal(size=9_000)),
    )
    by = data.columns[:6]
    result = wroc.audit(
        data, "y", ["s", "t"], attributes=by, weight="w", threshold=0.5, favorable="selected"
    )
    text = opened(result, tmp_path, chromium)
    assert "By a \N{MULTIPLICATION SIGN} b" in text
    # The attributes and what is drawn of their intersections.
    assert text.count("ROC curves of all rows, the segment with the least AUC (") == 3


@pytest.mark.slow
def test_page_of_one_class_says_so(tmp_path: Path, chromium: Chromium) -> None:
    data = pl.DataFrame({"g": list("aabb"), "y": [1] * 4, "s": [0.1, 0.2, 0.3, 0.4]})
    text = opened(
        wroc.audit(data, "y", "s", attributes="g", threshold=0.2, favorable="selected"),
        tmp_path,
        chromium,
    )
    assert (
        "No segment is shown to be worse off. All 3 comparisons of segments are inconclusive."
        in text
    )
    assert "The score has no AUC: the rows are all of one class." in text
    curves = chromium.evaluate("document.querySelector('#chart-2 svg').textContent")
    assert all(f"{name}  one class only" in curves for name in "ab")
