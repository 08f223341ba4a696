"""Names that an attacker gives to columns, groups, scores and words, in every view of results.

Nothing that a name contains is run, and no name is lost: each view has it as a reader can tell it
from others. Charts are tried in `tests/charts/test_chart_options.py`.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import polars as pl
import pytest
from chromium import Chromium
from html_pages import ReadPage
from openpyxl.utils.escape import unescape

import polars_wroc as wroc
from polars_wroc.cli import main

LONG = "long " + 490 * "x"
# The first of each six are names of columns, too.
NAMES = (
    *("__proto__", "<img src=x onerror=alert(1)>", "{who}", "a|b", "=1+1", "%s"),
    *("\x1b[31mred", "constructor", "{0.__class__}", "+cmd|' /C calc'!A0", "@SUM(A1)", "{}"),
    *(
        "\u202egnp.exe",
        "</script><script>alert(1)</script>",
        "**bold**",
        "`tick`",
        "$x$",
        "datum.x",
    ),
    *(
        "tab\tnew\n::error::line\rnul\x00",
        "[link](javascript:alert(1))",
        "it's",
        'say "x"',
        "\\",
        ",",
    ),
    *(f"{LONG}a", f"{LONG}b", "\U0001f469\u200d\U0001f4bb e\u0301", "rest", "overall", "everyone"),
    *("", " ", "\u200b", "(missing)", "_x0041_", "a \N{MULTIPLICATION SIGN} b"),
)
GROUPS, ROWS = 6, 100
PARTS = [NAMES[start : start + GROUPS] for start in range(0, len(NAMES), GROUPS)]
ATTRIBUTES = [names[0] for names in PARTS]
SCORES = ["{s} <b>\x1b[1m", "=t"]
NOTE = "+ <script>alert(1)</script> $x$ {who}"
OPTIONS: dict[str, Any] = {"attributes": ATTRIBUTES, "threshold": 0.5}
NOT_PRINTED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def shown(name: str) -> str:
    """Write a name as a page shows it: in one line, with codes for control characters."""
    if name.strip(" \u200b") == "":
        return f"\u201c{name}\u201d"
    return " ".join(NOT_PRINTED.sub(lambda found: ascii(found[0])[1:-1], name).split())


def make_rows(seed: int) -> pl.DataFrame:
    """Make rows of which every attribute has six groups, every second with lower scores."""
    random = np.random.default_rng(seed)
    group = np.repeat(np.arange(GROUPS), ROWS)
    label = random.random(len(group)) < 0.5
    score = np.clip(random.normal(0.5 + 0.2 * label - 0.3 * (group % 2), 0.15), 0.01, 0.99)
    columns = {names[0]: [names[place] for place in group] for names in PARTS}
    return pl.DataFrame(columns | {"y": label, SCORES[0]: score, SCORES[1]: score**2})


@pytest.fixture(scope="module")
def audits() -> list[wroc.Audit]:
    text = wroc.Text(
        title="=1+1 <b>{title}</b>",
        note=NOTE,
        people="{people} %s<i>",
        groups={"\x1b[31mred": "the {} of {0.__class__}\n<b>"},
        positive="{positive}|<u>",
        selected="**{selected}**",
    )
    return [
        wroc.audit(make_rows(seed), "y", SCORES, favorable="selected", text=text, **OPTIONS)
        for seed in (1, 2)
    ]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read_html(html: str) -> str:
    """Return the texts of a page, where names made no elements of their own."""
    page = ReadPage(html)
    assert not {"b", "u", "img"} & {*re.findall(r"<(b|u|img)\b[^>]*\b(?:src|on)", html)}
    cells = [cell for table in page.tables for row in table for cell in row]
    return "\n".join([*cells, *(text for texts in page.texts.values() for text in texts)])


def read_markdown(text: str) -> str:
    """Return Markdown without its escapes, where no name has begun a list or a rule."""
    assert not re.search(r"(?<!\\)<", text)
    assert not re.search(r"(?m)^(\+|\d+[.)]) ", text)
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", text)


def read_workbook(path: Path) -> list[Any]:
    """Return the cells of a workbook, none of which is a formula or a link."""
    book = openpyxl.load_workbook(path)
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row]
    assert not [cell for cell in cells if cell.data_type == "f" or cell.hyperlink]
    values = [cell.value for cell in cells]
    return [*values, *(unescape(value) for value in values if isinstance(value, str))]


def view_markdown(audit: wroc.Audit, folder: Path) -> str:
    audit.save(folder / "report.md")
    return read_markdown((folder / "report.md").read_text(encoding="utf-8"))


def view_summary(name: str) -> Callable[[wroc.Audit, Path], str]:
    """Return the view of New York's summary in a format."""

    def view(_: wroc.Audit, folder: Path) -> str:
        data = make_rows(1).with_columns(pl.col(SCORES[0]) >= 0.5)
        texts = []
        for attribute in ATTRIBUTES:
            summary = wroc.new_york_summary(
                data,
                attributes=pl.col(attribute),
                selected=SCORES[0],
                source=NOTE,
                distribution_date="2026-01-15",
                title=NOTE,
            )
            summary.save(folder / name)
            if name.endswith(".xlsx"):
                texts += [str(cell) for cell in read_workbook(folder / name)]
                continue
            text = (folder / name).read_text(encoding="utf-8")
            texts.append((read_html if name.endswith(".html") else read_markdown)(text))
            texts.append(repr(summary))
        return "\n".join(texts)

    return view


def view_command(*call: str) -> Callable[[wroc.Audit, Path], str]:
    """Return the view of a page that a command writes."""

    def view(_: wroc.Audit, folder: Path) -> str:
        assert main([*call]) in (0, 1)
        text = (folder / call[-1]).read_text(encoding="utf-8")
        return read_html(text) if call[-1].endswith(".html") else read_markdown(text)

    return view


RELEASE = (
    *("release", "rows.parquet", "--label", "y", "--old", SCORES[0], "--new", SCORES[1]),
    *("--threshold", "0.5", *(word for name in ATTRIBUTES for word in ("--attribute", name))),
)
DIFF = ("diff", "0.json", "1.json")
VIEWS: dict[str, Callable[[wroc.Audit, Path], str]] = {
    "markdown": view_markdown,
    "terminal": lambda audit, _: repr(audit),
    "notebook": lambda audit, _: read_html(audit._repr_html_()),
    "show": lambda audit, _: repr(wroc.show(audit.table, rows=None)),
    "show in a notebook": lambda audit, _: read_html(show_html(audit.table)),
    "New York page": view_summary("a.html"),
    "New York Markdown": view_summary("a.md"),
    "release Markdown": view_command(*RELEASE, "-o", "release.md"),
    "changes page": view_command(*DIFF, "-o", "diff.html"),
    "changes Markdown": view_command(*DIFF, "-o", "diff.md"),
}


def show_html(table: pl.DataFrame) -> str:
    """Return a table as a notebook shows it."""
    return wroc.show(table, rows=None)._repr_html_()


@pytest.mark.parametrize("view", VIEWS)
def test_each_name_is_read_and_none_runs(
    view: str, audits: list[wroc.Audit], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So wide that no name is cut.
    monkeypatch.setenv("COLUMNS", "4000")
    make_rows(1).write_parquet("rows.parquet")
    for place, audit in enumerate(audits):
        audit.save(f"{place}.json")
    text = VIEWS[view](audits[0], folder)
    assert [name for name in NAMES if shown(name) not in text] == []
    assert not NOT_PRINTED.search(text)


def test_long_names_that_end_differently_differ_in_a_narrow_terminal(
    audits: list[wroc.Audit], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for text in (repr(audits[0]), repr(wroc.show(audits[0].table, rows=None))):
        assert {"a", "b"} <= {*re.findall(r"(?m)^ *long[ x]*…x+([ab]) ", text)}


def read_json(audit: wroc.Audit, folder: Path) -> list[Any]:
    """Return the segments of the table in JSON."""
    audit.save(folder / "audit.json")
    text = (folder / "audit.json").read_text(encoding="utf-8")
    return [row["segment"] for row in json.loads(text)["table"]]


def read_csv(audit: wroc.Audit, folder: Path) -> list[Any]:
    """Return the segments of the table in CSV, without the quotes before formulas."""
    audit.save(folder / "audit.csv")
    with (folder / "audit.csv").open(encoding="utf-8", newline="") as file:
        found = [row["segment"] for row in csv.DictReader(file)]
    assert not [name for name in found if name[:1] in {*"=+-@\t\r\n"} - {""}]
    return [name.removeprefix("'") for name in found]


def read_book(audit: wroc.Audit, folder: Path) -> list[Any]:
    """Return the cells of the workbook."""
    # The sheet of the curves is long.
    replace(audit, curves=audit.curves.head()).save(folder / "audit.xlsx")
    cells = read_workbook(folder / "audit.xlsx")
    assert any(NOTE in str(cell) for cell in cells)
    return ["" if cell is None else cell for cell in cells]


def read_prometheus(_: wroc.Audit, folder: Path) -> list[Any]:
    """Return the labels of the numbers for Prometheus, a line for each."""
    make_rows(1).write_parquet("rows.parquet")
    attributes = (word for name in ATTRIBUTES for word in ("--attribute", name))
    columns = ("--label", "y", "--score", SCORES[0])
    assert main(["gaps", "rows.parquet", *columns, *attributes, "-o", "gaps.prom"]) == 0
    found = []
    lines = (folder / "gaps.prom").read_bytes().decode().removesuffix("\n").split("\n")
    for line in (each for each in lines if not each.startswith("# TYPE ")):
        labels = re.fullmatch(r'\w+\{((?:\w+="(?:[^"\\]|\\["n\\])*",?)*)\} \S+', line)
        assert labels, line
        value = re.findall(r'segment="((?:[^"\\]|\\.)*)"', labels[1])[-1]
        found.append(re.sub(r"\\(.)", lambda sign: {"n": "\n"}.get(sign[1], sign[1]), value))
    return found


@pytest.mark.parametrize("read", [read_json, read_csv, read_book, read_prometheus])
def test_files_for_programs_have_the_names_as_they_are(
    read: Callable[[wroc.Audit, Path], list[Any]], audits: list[wroc.Audit], folder: Path
) -> None:
    assert {*NAMES} <= {*read(audits[0], folder)}


def test_failed_conditions_have_a_line_each(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a name has after a line break would be a command in the log of a pipeline."""
    make_rows(1).write_parquet(folder / "rows.parquet")
    columns = ["--label", "y", "--score", SCORES[0], "--threshold", "0.5"]
    for name in ATTRIBUTES:
        call = ["gaps", "rows.parquet", *columns, "--attribute", name]
        assert main([*call, "--fail-if", "tpr.gap>0.001"]) == 1
        said = "\n".join(capsys.readouterr())
        assert not re.search(r"(?m)^\s*::", said)
        assert not NOT_PRINTED.search(said)
        assert main([*call[:-1], f"{name}\n::error::"]) == 2
        assert not re.search(r"(?m)^\s*::", "\n".join(capsys.readouterr()))


def test_a_page_runs_nothing_and_shows_each_name(tmp_path: Path, chromium: Chromium) -> None:
    text = wroc.Text(title=NOTE, note=NOTE, people=NOTE)
    page = tmp_path / "report.html"
    wroc.audit(make_rows(1), "y", SCORES[0], favorable="selected", text=text, **OPTIONS).save(page)
    chromium.open(page)
    assert chromium.printed == []
    assert chromium.requests == [page.as_uri()]
    assert chromium.evaluate("document.querySelectorAll('main :is(img, script, a)').length") == 0
    words = chromium.evaluate("document.querySelector('main').textContent")
    assert [name for name in (*NAMES, NOTE) if shown(name) not in words] == []


def test_a_text_too_long_for_a_cell_is_refused(tmp_path: Path) -> None:
    text = wroc.Text(note=40_000 * "n")
    audit = wroc.audit(make_rows(1), "y", SCORES[0], attributes=ATTRIBUTES[0], text=text)
    with pytest.raises(ValueError, match=r"^`path` must have another format than \.xlsx, whose"):
        audit.save(tmp_path / "audit.xlsx")
    assert [*tmp_path.iterdir()] == []


def test_an_attribute_must_not_be_called_like_crossed_ones() -> None:
    name = "sex \N{MULTIPLICATION SIGN} race"
    rows = make_rows(1).with_columns(pl.lit("a").alias(name))
    with pytest.raises(ValueError, match=r"joins the names of .*; found 'sex . race': rename it$"):
        wroc.group_gaps(rows, "y", SCORES[0], attributes=name)
