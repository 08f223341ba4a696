"""What a browser reads of a page: its texts by element, and the cells of its tables."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any, TypeAlias

Table: TypeAlias = list[list[str]]


class ReadPage(HTMLParser):
    """The tables of a page, and the texts of other elements by their names."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: list[Table] = []
        self.texts: dict[str, list[str]] = {}
        self.classes: list[list[str | None]] = []
        self.language: str | None = None
        self._open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        given = dict(attrs)
        if tag == "html":
            self.language = given.get("lang")
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
            self.classes.append([])
        elif tag in ("th", "td"):
            self.tables[-1][-1].append("")
            self.classes[-1].append(given.get("class"))
        elif tag != "meta":
            self.texts.setdefault(tag, []).append("")
        if tag != "meta":
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data: str) -> None:
        if not self._open:
            return
        tag = self._open[-1]
        if {"th", "td"} & {*self._open}:
            self.tables[-1][-1][-1] += data
        elif tag in self.texts:
            self.texts[tag][-1] += data
