"""The pages of the documentation site, in the order of its menu."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def navigation() -> list[tuple[str, str, str]]:
    """List each page of the site: section, title and path."""
    with (ROOT / "zensical.toml").open("rb") as file:
        entries = tomllib.load(file)["project"]["nav"]
    found = []
    for entry in entries:
        ((title, value),) = entry.items()
        if isinstance(value, str):
            found.append(("", title, value))
        else:
            found.extend((title, name, path) for page in value for name, path in page.items())
    return found


def index_for_models(generated: Mapping[Path, str]) -> str:
    """List the pages for language models (llmstxt.org), each with its first sentence."""
    with (ROOT / "zensical.toml").open("rb") as file:
        about = tomllib.load(file)["project"]["site_description"]
    lines, section = ["# polars-wroc", "", f"> {about}.", "", "## Start", ""], ""
    for part, title, path in navigation():
        if part and part != section:
            section = part
            lines += ["", f"## {part}", ""]
        page = generated.get(DOCS / path) or (DOCS / path).read_text(encoding="utf-8")
        text = _first_sentence(page)
        # Reports of simulations begin with the command that made them.
        what = f": {text}" if text and not path.startswith("benchmarks/") else ""
        lines.append(f"- [{title}]({_html(path)}){what}")
    return "\n".join(lines) + "\n"


def _html(path: str) -> str:
    return re.sub(r"(README)?\.md$", lambda match: "index.html" if match[1] else ".html", path)


_NOT_TEXT = ("#", ">", "|", "```", "<", "!", "- ")


def _first_sentence(page: str) -> str:
    paragraphs = (" ".join(part.split()) for part in page.split("\n\n"))
    text = next((part for part in paragraphs if not part.startswith(_NOT_TEXT)), "")
    plain = re.sub(r"\[([^]]+)\](\([^)]*\)|\[[^]]*\])", r"\1", text)
    return re.split(r"(?<=\.)\s", plain, maxsplit=1)[0]
