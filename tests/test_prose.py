"""Comments, docstrings and pages are written in idiomatic English, as far as a list can tell."""

from __future__ import annotations

import ast
import re
import tokenize

from floors import PACKAGE

ROOT = PACKAGE.parent
SOURCES = sorted(PACKAGE.rglob("*.py"))
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
# The pages that benchmarks write.
MEASURED = (ROOT / "docs" / "benchmarks", ROOT / "docs" / "speed.md")
# Where "significantly", "the whole interval", "is based on", "distinguish", "up to" or "except" is
# meant, and messages that demand something of the system.
BANNED = re.compile(
    r"\b(surely|rests? on|tells? apart|told apart|that which|in vain|must suffice"
    r"|(?<!none )(?<!nothing )but for)\b|must be writable; found",
    re.IGNORECASE,
)
# A docstring names what comes out, and a comment its topic, without a relation in front.
INDIRECT = re.compile(r"(Of|Say|What|How|Those|That)\b")


def test_no_text_has_a_word_of_another_dialect() -> None:
    pages = [page for page in PAGES if not any(page.is_relative_to(each) for each in MEASURED)]
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]}"
        for path in (*SOURCES, *pages)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (match := BANNED.search(line))
    ]
    assert found == []


def test_docstrings_begin_with_what_comes_out() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}: {getattr(node, 'name', 'module')}"
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module)
        if INDIRECT.match(ast.get_docstring(node) or "")
    ]
    assert found == []


def test_comments_begin_with_their_topic() -> None:
    found = []
    for path in SOURCES:
        with tokenize.open(path) as file:
            tokens = [*tokenize.generate_tokens(file.readline)]
        for previous, token in zip([tokens[0], *tokens], tokens, strict=False):
            is_first = previous.type != tokenize.NL or previous.line.lstrip()[:1] != "#"
            text = token.string.removeprefix("# ")
            if token.type == tokenize.COMMENT and is_first and INDIRECT.match(text):
                found.append(f"{path.relative_to(PACKAGE)}:{token.start[0]}: {text}")
    assert found == []
