"""The folders of the package as the floors of a house, what they import, and a picture of them."""

from __future__ import annotations

import ast
import html
import textwrap
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "polars_wroc"
# What is on a floor imports what is on its own floor in its own folder, and what is below.
FLOORS: tuple[tuple[str, ...], ...] = (
    ("arrays", "threads", "plans", "data", "early_interruption"),
    ("inputs", "buckets"),
    ("stats", "ranking", "files"),
    ("counts", "steps"),
    ("rows",),
    ("thresholds",),
    ("metrics",),
    ("groups", "curves"),
    ("charts",),
    ("audits",),
    ("namespaces", "typing"),
    ("cli", "__init__"),
)
FLOOR = {folder: floor for floor, folders in enumerate(FLOORS, 1) for folder in folders} | {
    "__main__": len(FLOORS) + 1
}


def modules(package: Path) -> dict[str, Path]:
    """Name each file as it is imported."""
    names = {}
    for path in sorted(package.rglob("*.py")):
        parts = [package.name, *path.relative_to(package).with_suffix("").parts]
        names[".".join(part for part in parts if part != "__init__")] = path
    return names


def imports(name: str, path: Path, known: dict[str, Path]) -> Iterator[str]:
    """Name the files that a file imports, inside functions and for types too."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} imports by a relative name"
            found = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for target in found:
            module = target if target in known else target.rpartition(".")[0]
            if module in known and module != name:
                yield module


def graph(package: Path) -> dict[str, set[str]]:
    """Say of each file what it imports."""
    known = modules(package)
    return {name: set(imports(name, path, known)) for name, path in known.items()}


def folder(name: str) -> str:
    """Name the folder of a file, or the file where it is in none."""
    return (name.split(".")[1:] or ["__init__"])[0]


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
