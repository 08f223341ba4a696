"""The documentation: links resolve, every public name has a place, commands are those that exist.

Examples in Python run as doctests of the pages themselves.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from cyclopts.exceptions import MissingArgumentError
from fill_pages import ANY_LINES, BLOCK, printed_by, sessions
from public_surface import RESULT_TYPES, SNAPSHOT
from reference_pages import defined_in, pages
from site_navigation import DOCS, MADE_FILES, ROOT, navigation

import polars_wroc as wroc
from polars_wroc.cli.app import app

PAGES = sorted(
    path for path in DOCS.rglob("*.md") if "benchmarks" not in path.parts and path not in MADE_FILES
)
OUTSIDE = [ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY", "CHANGELOG")]
TEXTS = [*PAGES, *OUTSIDE]

# Characters of code beside both menus, in a window of 1280 dots.
_WIDEST = 87
_BLOCK = re.compile(r"^( *)(```+)(\w*)[^\n`]*\n(.*?)^\1\2$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_NAMED = re.compile(r"\]\[(polars_wroc[\w.]*)\]")
_DESCRIBED = re.compile(r"^::: (\S+)", re.MULTILINE)
_REFERENCE = re.compile(r"^ *(?:-|\.\. \[\d\]) ([A-Z][\w ]+?), [^\d]+\((\d{4})\)", re.MULTILINE)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def _name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _text_of(path: Path) -> str:
    """Return the text of a page without its blocks of code."""
    return _BLOCK.sub("", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", TEXTS, ids=_name_of)
def test_code_ends_where_text_begins(path: Path) -> None:
    assert "```" not in _text_of(path)
    blocks = _BLOCK.findall(path.read_text(encoding="utf-8"))
    assert [block for *_, kind, block in blocks if kind != "markdown" and "\n## " in block] == []


def _anchors(path: Path) -> set[str]:
    text = _text_of(path)
    headings = (re.sub(r"[^\w\s-]", "", found).strip().lower() for found in _HEADING.findall(text))
    return {re.sub(r"\s+", "-", heading) for heading in headings} | set(_DESCRIBED.findall(text))


def _public_paths() -> list[str]:
    """List the public names and the types of results, as they are imported."""
    names = [f"polars_wroc.{name}" for name in wroc.__all__]
    return [*names, *(f"polars_wroc.typing.{name}" for name in RESULT_TYPES)]


def _described() -> Counter[str]:
    texts = (path.read_text(encoding="utf-8") for path in PAGES)
    return Counter(name for text in texts for name in _DESCRIBED.findall(text))


@pytest.mark.parametrize("path", OUTSIDE, ids=_name_of)
def test_links_lead_to_files_and_headings(path: Path) -> None:
    """Links of the site are checked when it is built: `zensical build --strict`."""
    broken = []
    for link in _LINK.findall(_CODE.sub("", _text_of(path))):
        if re.match(r"\w+:", link):
            continue
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        if target in MADE_FILES:
            continue
        if not target.exists() or (anchor and anchor not in _anchors(target)):
            broken.append(link)
    assert not broken


@pytest.mark.parametrize("path", PAGES, ids=_name_of)
def test_printed_tables_fit_on_a_page(path: Path) -> None:
    """site.css wraps lines that are longer, which would break tables."""
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line[:1] in "┌│" and len(line) > _WIDEST] == []


def test_public_names_are_imported_from_where_they_are_defined() -> None:
    """Else the site may find a module of that name, and show it in place of the function."""
    imports = ast.parse(Path(wroc.__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    sources = {
        alias.name: f"polars_wroc.{node.module}"
        for node in imports
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    elsewhere = {n for n in wroc.__all__ if sources[n] != defined_in(n)}
    assert elsewhere == {"data", "rules"}, "a module is imported from its folder"


def test_every_public_name_is_described_once() -> None:
    assert _described() == Counter(_public_paths())


@pytest.mark.parametrize("path", list(pages()), ids=_name_of)
def test_generated_pages_are_fresh(path: Path) -> None:
    same = path.read_text(encoding="utf-8") == pages()[path]
    assert same, "run: python tools/renew.py reference"


def test_the_reference_links_to_guides_and_pictures() -> None:
    groups = (DOCS / "reference" / "groups.md").read_text(encoding="utf-8")
    assert "::: polars_wroc.trend\n\nSee also: [Over time](../guides/over-time.md).\n" in groups
    charts = (DOCS / "reference" / "charts.md").read_text(encoding="utf-8")
    assert "[Gallery](../gallery.md#roc_chart)." in charts


def test_the_reference_names_all_options_of_each_command() -> None:
    _, *sections = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8").split("\n## ")
    named = {name: text for name, _, text in (section.partition("\n") for section in sections)}
    surface = json.loads(SNAPSHOT.read_text(encoding="utf-8"))["command"]
    options = [(command, name.split()[0]) for command in surface for name in surface[command]]
    assert ("audit", "--separator") in options
    missing = [
        (command, name)
        for command, name in options
        if not re.search(rf"`{re.escape(name)}[`, ]", named[command])
    ]
    assert missing == []
    assert len(re.findall(r"^\* `--separator ", "".join(sections), re.MULTILINE)) == 1


def test_every_page_is_in_the_navigation_once() -> None:
    listed = Counter(path for _, _, path in navigation())
    notebooks = {path for path in MADE_FILES if path.suffix == ".md"}
    written = {path.relative_to(DOCS).as_posix() for path in (*PAGES, *notebooks)}
    assert listed == Counter(written)


def test_each_public_name_answers_a_question() -> None:
    page = DOCS / "guides" / "which-function.md"
    answers = set(_NAMED.findall(page.read_text(encoding="utf-8")))
    assert answers == set(_public_paths())


# What users of other packages type into the search.
_WORDS = [
    "roc_auc_score",
    "sample_weight",
    "MetricFrame",
    "ci.auc",
    "coords",
    "roc.test",
    "metric_set",
    "val.prob",
    "dca",
    "svydesign",
    "get_disparity_predefined_groups",
    "c-statistic",
    "AUPRC",
    "cutpoint",
    "disparate impact",
    "equalized odds",
    "four-fifths",
    "Youden",
    "reliability diagram",
    "Hosmer-Lemeshow",
    "ECE",
    "NRI",
    "PSI",
    "ABROCA",
    "Kish",
    "IPCW",
    "non-inferiority",
    "sample size",
    "TRIPOD",
    "Local Law 144",
    "drift",
    "intersectional",
    "80% rule",
    "binning",
    "challenger",
    "champion",
    "integrated calibration index",
    "linearization",
    "PSU",
    "Taylor",
]
# Words that are in the text of a page.
_WORDS_IN_TEXT = [
    "complex survey",
    "delimiter",
    "German",
    "locale",
    "multistage",
    "nein",
    "NHANES",
    "retrained",
    "savefig",
    "single PSU",
    "vl-convert",
]


@pytest.mark.parametrize("word", _WORDS)
def test_words_of_other_packages_are_in_a_heading_or_a_translation(word: str) -> None:
    headings = [
        heading for path in PAGES for heading in _HEADING.findall(path.read_text(encoding="utf-8"))
    ]
    guides = [DOCS / "guides" / name for name in ("coming-from.md", "weights.md")]
    translations = [path.read_text(encoding="utf-8") for path in guides]
    assert any(word.lower() in text.lower() for text in (*headings, *translations))


@pytest.mark.parametrize("word", _WORDS_IN_TEXT)
def test_words_that_readers_search_for_are_in_the_text_of_a_page(word: str) -> None:
    assert any(word in path.read_text(encoding="utf-8") for path in PAGES)


def test_the_glossary_is_in_order() -> None:
    _, *terms = _HEADING.findall((DOCS / "glossary.md").read_text(encoding="utf-8"))
    assert terms == sorted(set(terms), key=str.lower)


def _references(text: str) -> set[tuple[str, str]]:
    """Find the first author and the year of each reference in a list."""
    return set(_REFERENCE.findall(text))


def test_the_page_on_statistics_lists_the_references_of_all_functions() -> None:
    cited = {
        found for name in wroc.__all__ for found in _references(getattr(wroc, name).__doc__ or "")
    }
    page = (DOCS / "explanation" / "statistics.md").read_text(encoding="utf-8")
    assert ("DeLong", "1988") in cited
    assert cited <= _references(page)


def _commands(path: Path) -> Iterator[str]:
    for _, _, kind, block in _BLOCK.findall(path.read_text(encoding="utf-8")):
        joined = re.sub(r"\\\n\s*", " ", block)
        if kind in {"console", "sh", ""}:
            # Without what is for the shell.
            yield from re.findall(
                r"^(?:\$ )?(polars-wroc .*?)(?: (?:>|\|\|) .*)?$", joined, re.MULTILINE
            )


# Its commands have options that it adds; a test of its own runs them.
_WORKED_EXAMPLE = DOCS / "maintaining" / "add-a-metric.md"


@pytest.mark.parametrize("path", [p for p in TEXTS if p != _WORKED_EXAMPLE], ids=_name_of)
def test_commands_have_options_that_exist(path: Path) -> None:
    for command in _commands(path):
        try:
            app.parse_args(shlex.split(command)[1:])
        except MissingArgumentError:
            # What must be given may be in a variable of the shell.
            assert "$how" in command


def _sessions() -> list[tuple[str, str, str]]:
    """Find the pages and commands that are shown with what they print."""
    return [
        (str(path.relative_to(ROOT)), command, printed)
        for path in PAGES
        for block in BLOCK.findall(path.read_text(encoding="utf-8"))
        for command, printed in sessions(block)
        if printed
    ]


@pytest.mark.parametrize(("page", "command", "printed"), _sessions())
def test_commands_print_what_pages_show(page: str, command: str, printed: str) -> None:
    """A line of three dots stands for any lines."""
    found = printed_by(command)
    lines = printed.splitlines(keepends=True)
    expected = "".join(r"(?:.*\n)*" if line == ANY_LINES else re.escape(line) for line in lines)
    renew = f"If that is right: python tools/renew.py {page}"
    assert re.fullmatch(expected, found), f"{found}\n{renew}"


def test_the_guide_states_how_many_tests_its_audit_makes() -> None:
    audit = wroc.audit(
        wroc.data.loans(),
        "approved",
        "score",
        attributes=["race", "sex"],
        threshold=0.85,
        favorable="selected",
    )
    judged = audit.table.filter(pl.col("verdict").is_not_null())
    tested = judged.filter(pl.col("metric") != "impact_ratio", pl.col("p_value").is_not_null())
    page = (ROOT / "docs/guides/fairness-audit.md").read_text(encoding="utf-8")
    assert f"this audit makes {tested.height} tests" in page
