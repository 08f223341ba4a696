"""The folders of the package as the floors of a house, and a picture of them."""

from __future__ import annotations

import ast
import html
import textwrap
import tomllib

from site_navigation import ROOT

PACKAGE = ROOT / "polars_wroc"
_CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
# The layers that import-linter checks, the lowest first.
FLOORS: tuple[tuple[str, ...], ...] = tuple(
    tuple(layer.split(" | "))
    for layer in reversed(_CONTRACTS["tool"]["importlinter"]["contracts"][0]["layers"])
)


def purpose(name: str) -> str:
    """Say in one line what a folder or a file of the top folder is for."""
    path = PACKAGE / name / "__init__.py" if (PACKAGE / name).is_dir() else PACKAGE / f"{name}.py"
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0].replace("``", "`").removesuffix(".")


_WIDTH, _LEFT, _GAP, _LINE = 720, 34, 10, 17
_STYLE = """text { font: 13px system-ui, sans-serif; fill: #1b1b1b }
.name { font-weight: 700 }
.floor { fill: #5c5c5c }
rect { fill: #eef3fa; stroke: #4a6a94 }
.page { fill: #ffffff; stroke: none }"""


def picture() -> str:
    """Draw the floors as SVG, the highest first, each folder with its purpose."""
    parts, y = [], _GAP
    for number, folders in reversed([*enumerate(FLOORS, 1)]):
        width = (_WIDTH - _LEFT - _GAP * len(folders)) // len(folders)
        texts = [
            textwrap.wrap(purpose(name).replace("`", ""), (width - 20) // 7) for name in folders
        ]
        height = _LINE * (max(map(len, texts)) + 1) + 16
        parts.append(f'<text class="floor" x="12" y="{y + 20}">{number}</text>')
        for i, (name, lines) in enumerate(zip(folders, texts, strict=True)):
            parts += _box(_LEFT + i * (width + _GAP), y, width, height, name, lines)
        y += height + _GAP
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y}" role="img">'
    title = "<title>The folders of the package: each imports only what is below it</title>"
    page = f'<rect class="page" width="{_WIDTH}" height="{y}"/>'
    return "\n".join([head, title, f"<style>\n{_STYLE}\n</style>", page, *parts, "</svg>"]) + "\n"


def _box(x: int, y: int, width: int, height: int, name: str, lines: list[str]) -> list[str]:
    shown = "\n".join(
        f'<text x="{x + 10}" y="{y + 20 + _LINE * i}">{html.escape(line)}</text>'
        for i, line in enumerate(lines, 1)
    )
    called = name if (PACKAGE / name).is_dir() else f"{name}.py"
    return [
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="4"/>',
        f'<text class="name" x="{x + 10}" y="{y + 20}">{called}</text>',
        shown,
    ]
