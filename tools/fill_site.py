"""Write the pages of the site that other files contain already.

The notebooks become pages, and the audit of the loan applications a report. `zensical build` needs
them; they are not under version control.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path

import nbformat
from fill_notebooks import read
from fill_pictures import loan_audit
from site_navigation import MADE, NOTEBOOKS, REPORT

# What every step of a notebook ends with, as a box.
_BOXES = {"Conclusion": "success", "Caution": "warning"}
_BOX = re.compile(rf"^\*\*({'|'.join(_BOXES)})\.\*\* (.+)$", re.MULTILINE)
# Of Polars' tables: the site has its own style, and needs no quotes around texts.
_STYLE = re.compile(r'<style>.*?</style>|\n| border="1" class="dataframe"', re.DOTALL)
_QUOTED = re.compile(r"(?<=<td>)&quot;(.*?)&quot;(?=</td>)")


def page_of(notebook: Path, folder: Path) -> Path:
    """Write a notebook as it is stored, with its pictures, as a page in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = []
    for number, cell in enumerate(read(notebook).cells):
        if cell.cell_type == "markdown":
            parts.append(_text(cell.source))
        else:
            parts.append(f"```python\n{cell.source}\n```")
            picture = folder / f"{notebook.stem}_{number}.png"
            parts += [_shown(output, picture) for output in cell.outputs]
    page = folder / f"{notebook.stem}.md"
    page.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return page


def _text(source: str) -> str:
    """Link to pages of the site, and make boxes."""
    linked = re.sub(r"\((?:\.\./docs/)([\w/-]+\.md)\)", r"(../\1)", source)
    linked = re.sub(r"\[([^]]+)\]\(\w+\.py\)", r"\1", linked.replace(".ipynb)", ".md)"))
    return _BOX.sub(lambda box: f'!!! {_BOXES[box[1]]} "{box[1]}"\n\n    {box[2]}', linked)


def _shown(output: nbformat.NotebookNode, picture: Path) -> str:
    data = output.get("data", {})
    if "image/png" in data:
        picture.write_bytes(base64.b64decode(data["image/png"]))
        # Only charts have a height; they have two dots for each pixel, as in the gallery.
        about = output.metadata["image/png"]
        mark = "{ .chart }" if "height" in about else ""
        return f"![{about['alt']}]({picture.name}){mark}"
    if "text/html" in data:
        return _QUOTED.sub(r"\1", _STYLE.sub("", data["text/html"]))
    return f"```text\n{output.get('text') or data['text/plain']}\n```"


def renew() -> None:
    """Write the pages and the report."""
    for path in NOTEBOOKS:
        page_of(path, MADE)
    loan_audit().save(REPORT)
