"""Write a document as one HTML page without network access; a script only sorts tables."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from polars_wroc.documents.blocks import Block
from polars_wroc.documents.html_writer import escape_html, write_html
from polars_wroc.documents.markdown_writer import write_markdown

_FILES = Path(__file__).with_name("report")
# The tables that the script sorts.
_SORTED = '<section class="numbers">'
# Word processors recognize the encoding only in this form.
_FRAME = """<!doctype html>
<html lang="en">
<head>
<meta http-equiv="Content-Type" content="text/html; charset=utf-8">
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


def write_document(blocks: Sequence[Block], title: str, suffix: str) -> str:
    """Return a document as the HTML or Markdown for a file with this suffix."""
    return write_page(blocks, title) if suffix == ".html" else write_markdown(blocks)


@cache
def _read(name: str) -> str:
    return _FILES.joinpath(name).read_text(encoding="utf-8")


@cache
def _hash_script() -> str:
    """Return the hash of the script, so that the page runs no other."""
    return base64.b64encode(hashlib.sha256(_read("sort.js").encode()).digest()).decode()
