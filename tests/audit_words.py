"""What readers of an audit see, without the work of files and charts: the one way in for tests."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from polars_wroc.audits.audit_changes import changes_between
from polars_wroc.audits.cautions import write_cautions
from polars_wroc.audits.change_sentences import write_changes
from polars_wroc.audits.sections import write_report, write_summary
from polars_wroc.audits.words import Words
from polars_wroc.documents.html_writer import write_html
from polars_wroc.documents.markdown_writer import write_markdown
from polars_wroc.documents.text_writer import Terminal, write_text


def page_of(audit: Any) -> str:
    """Return the page as HTML, but for its charts."""
    return write_html(write_report(audit, with_charts=False))


def page_words(audit: Any) -> str:
    """Return the words of the page, but for its charts, in one line."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page_of(audit))).split())


def markdown_of(audit: Any) -> str:
    """Return the report as Markdown."""
    return write_markdown(write_report(audit, with_charts=False))


def text_of(audit: Any, width: int = 160) -> str:
    """Return the report as a terminal shows it."""
    return write_text(write_report(audit, with_charts=False), Terminal(width))


def summary_of(audit: Any, width: int = 160) -> str:
    """Return what a terminal shows first."""
    return write_text(write_summary(audit), Terminal(width))


def cautions(audit: Any) -> list[str]:
    """Return the limits of the audit, a sentence each."""
    return write_cautions(audit, Words.of(audit.settings))


def changes_told(before: Any, after: Any) -> list[str]:
    """Return what changed from one audit, or its JSON, to another, a sentence each."""
    return write_changes(changes_between(before, after, "holm"))
