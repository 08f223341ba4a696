"""The pages of the documentation site, in the order of its menu."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
# What `python tools/renew.py site` writes, and is not under version control.
MADE = DOCS / "examples"
REPORT = MADE / "report.html"
MADE_FILES = {REPORT, *(MADE / f"{path.stem}.md" for path in NOTEBOOKS)}

_Page: TypeAlias = tuple[str, str, str]


def navigation() -> list[_Page]:
    """List each page of the site: section, title and path."""
    with (ROOT / "zensical.toml").open("rb") as file:
        return list(_pages(tomllib.load(file)["project"]["nav"], ()))


def _pages(entries: list[dict[str, Any]], within: tuple[str, ...]) -> Iterator[_Page]:
    for entry in entries:
        ((title, value),) = entry.items()
        if isinstance(value, str):
            yield ": ".join(within), title, value
        else:
            yield from _pages(value, (*within, title))


def index_for_models(generated: Mapping[Path, str]) -> str:
    """List the pages for language models (llmstxt.org), each with its first sentence."""
    with (ROOT / "zensical.toml").open("rb") as file:
        about = tomllib.load(file)["project"]["site_description"]
    lines, section = ["# polars-wroc", "", f"> {about}."], None
    for part, title, path in navigation():
        if part != section:
            section = part
            lines += ["", f"## {part or title}", ""]
        page = generated.get(DOCS / path) or _text_of(DOCS / path)
        text = _first_sentence(page)
        what = f": {text}" if text else ""
        lines.append(f"- [{title}]({_html(path)}){what}")
    return "\n".join(lines) + "\n"


def _text_of(page: Path) -> str:
    """Read a page, or the notebook that it is made of."""
    if page not in MADE_FILES:
        return page.read_text(encoding="utf-8")
    notebook = json.loads((ROOT / "notebooks" / page.name).with_suffix(".ipynb").read_bytes())
    return "".join(notebook["cells"][0]["source"])


def _html(path: str) -> str:
    return re.sub(r"(README)?\.md$", lambda match: "index.html" if match[1] else ".html", path)


_NOT_TEXT = ("---", "#", ">", "|", "```", "<", "!", "- ")


def _first_sentence(page: str) -> str:
    paragraphs = (" ".join(part.split()) for part in page.split("\n\n"))
    text = next((part for part in paragraphs if not part.startswith(_NOT_TEXT)), "")
    plain = re.sub(r"\[([^]]+)\](\([^)]*\)|\[[^]]*\])", r"\1", text)
    return re.split(r"(?<=\.)\s", plain, maxsplit=1)[0]
