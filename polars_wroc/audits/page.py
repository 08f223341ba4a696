"""Write a document as one HTML page, which needs no network and no script but for sorting."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from polars_wroc.audits.table_pages import Page
from polars_wroc.documents.blocks import Block, Figures, Line, Lines, Text
from polars_wroc.documents.html_writer import escape_html, write_html

_FILES = Path(__file__).with_name("report")
# More facts have a line each.
_MOST_IN_ONE_LINE = 2
# The tables that the script sorts.
_SORTED = '<section class="numbers">'
_FRAME = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; \
style-src 'unsafe-inline'; script-src {allowed}">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<main>
{body}</main>
{script}</body>
</html>
"""


def write_page(blocks: Sequence[Block], title: str) -> str:
    """Return the page of a document, with a script only if it has a table to sort."""
    body = write_html(blocks)
    is_sorted = _SORTED in body
    return _FRAME.format(
        allowed=f"'sha256-{_hash_script()}'" if is_sorted else "'none'",
        title=escape_html(title),
        style=_read("page.css"),
        body=body,
        script=f"<script>{_read('sort.js')}</script>\n" if is_sorted else "",
    )


@cache
def _read(name: str) -> str:
    return _FILES.joinpath(name).read_text(encoding="utf-8")


@cache
def _hash_script() -> str:
    """Hash the script, so that the page runs no other."""
    return base64.b64encode(hashlib.sha256(_read("sort.js").encode()).digest()).decode()


def write_tables_page(page: Page, *charts: Any) -> str:
    """Write a page of tables, with charts below them.

    Raises
    ------
    ImportError
        When vl-convert-python is not installed, with the command that installs it.
    """
    blocks: list[Block] = [Text(page.title, 1)]
    if len(page.facts) > _MOST_IN_ONE_LINE:
        blocks.append(Lines([Line(text, lead=f"{name}:") for name, text in page.facts.items()]))
    elif page.facts:
        facts = (f"{name}: {text}" for name, text in page.facts.items())
        blocks.append(Text(" · ".join(facts), style="deck"))
    blocks += [Text(text, style="answer") for text in page.verdicts]
    blocks += [Text(text) for text in page.explanations]
    # A table without a title is the only one.
    blocks += [replace(table, label=table.title or page.title) for table in page.sections]
    if charts:
        # Only a page with charts should cost the import of Altair.
        from polars_wroc.audits.figures import make_figure  # noqa: PLC0415

        blocks.append(Figures([make_figure(chart) for chart in charts]))
    blocks += [Text(text, style="foot") for text in page.closing]
    return write_page(blocks, page.title)
