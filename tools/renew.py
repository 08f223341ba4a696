"""Renew the files that follow from the code; read the differences before you commit them.

    python tools/renew.py                   everything, which takes minutes
    python tools/renew.py reference pages   some of it, by the names below
    python tools/renew.py docs/start.md     a page or a notebook

surface     tests/public_surface.json: public names, signatures, options and columns
reference   docs/reference, docs/llms.txt and the picture of the layers
snapshots   tests/snapshots: eight audits as Markdown, text and HTML, and sentences
printed     tests/printed: tables and commands in terminals
pages       what the examples and commands of README and of the documentation print
gallery     the pictures of the gallery
pictures    the pictures of README, of the notebooks and of the report
notebooks   what the notebooks print and draw
example     what pages print whose steps are followed in a copy of the project
site        pages of the site that are made of other files, and not under version control
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
# The calls whose columns are in the surface, and the browser that draws the report.
sys.path.append(str(ROOT / "tests"))

import audit_snapshots
import fill_gallery
import fill_notebooks
import fill_pages
import fill_pictures
import fill_site
import printed_tables
import public_surface
import reference_pages
import sentences
import worked_example
from site_navigation import DOCS, MADE, NOTEBOOKS

# Its commands have options that its steps add.
_ADD_A_METRIC = DOCS / "maintaining" / "add-a-metric.md"
EXAMPLES = [_ADD_A_METRIC, DOCS / "guides" / "gates-in-ci.md"]


def renew_file(path: Path) -> None:
    """Renew what a page or a notebook prints."""
    if path.suffix == ".ipynb":
        fill_notebooks.renew(path)
        return
    if path in EXAMPLES:
        worked_example.renew(path)
    if path in pages():
        fill_pages.renew(path)


def pages() -> list[Path]:
    """List the pages with examples that run by themselves."""
    written = [path for path in sorted(DOCS.rglob("*.md")) if MADE not in path.parents]
    own = [path for path in written if DOCS / "benchmarks" not in path.parents]
    return [ROOT / "README.md", *(path for path in own if path != _ADD_A_METRIC)]


def renew_snapshots() -> None:
    """Renew the snapshots of audits."""
    audit_snapshots.renew()
    sentences.renew()


def each_of(paths: Callable[[], list[Path]], renew: Callable[[Path], None]) -> Callable[[], None]:
    """Return a function that renews each of some files."""

    def renew_all() -> None:
        for path in paths():
            renew(path)

    return renew_all


# The surface comes first, and what prints the output of the others last.
KINDS: dict[str, Callable[[], None]] = {
    "surface": public_surface.renew,
    "reference": reference_pages.renew,
    "snapshots": renew_snapshots,
    "printed": printed_tables.renew,
    "pages": each_of(pages, fill_pages.renew),
    "gallery": fill_gallery.renew,
    "pictures": fill_pictures.renew,
    "notebooks": each_of(lambda: NOTEBOOKS, fill_notebooks.renew),
    "example": each_of(lambda: EXAMPLES, worked_example.renew),
    "site": fill_site.renew,
}


def main(names: list[str]) -> int:
    """Renew what is named, or everything."""
    if any(name not in KINDS and not Path(name).is_file() for name in names):
        print(__doc__)
        return 0 if "--help" in names else 2
    for name in names or KINDS:
        print(f"renewing {name}")
        renew_one = KINDS.get(name)
        if renew_one is None:
            renew_file(Path(name).resolve())
        else:
            renew_one()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
