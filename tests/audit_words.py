"""The words of the page of an audit, as a reader has them."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from polars_wroc.audits.cautions import write_cautions
from polars_wroc.audits.sections import write_report
from polars_wroc.audits.words import Words
from polars_wroc.documents.html_writer import write_html


def page_words(audit: Any) -> str:
    """The words of the page, but for its charts, in one line."""
    page = write_html(write_report(audit, with_charts=False))
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())


def cautions(audit: Any) -> list[str]:
    """The limits of the audit, a sentence each."""
    return write_cautions(audit, Words.of(audit.settings))
