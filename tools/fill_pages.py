"""Write what the examples of pages print.

Python examples are those of doctest; commands are those in blocks of ``console``. Read the changes
before you commit them: this makes pages true, not right.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import tempfile
from pathlib import Path
from typing import Any

from site_navigation import ROOT

import polars_wroc as wroc
from polars_wroc.cli import main

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ polars-wroc (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
ANY_LINES = "...\n"


def sessions(block: str) -> list[tuple[str, str]]:
    """Find the commands of a block, each with what it prints."""
    return _COMMAND.findall(re.sub(r"\\\n\s*", " ", block))


def printed_by(command: str) -> str:
    """Run a command on the loans, in a folder of its own, and return all that it prints."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        loans = wroc.data.loans()
        loans.write_csv("loans.csv")
        if command.startswith("diff "):
            months = {"march": loans.head(1000), "april": loans.tail(989)}
            for name, rows in months.items():
                wroc.audit(rows, "approved", "score", attributes=["race", "sex"]).save(
                    f"{name}.json"
                )
        out, err = io.StringIO(), io.StringIO()
        width = os.environ.get("COLUMNS")
        os.environ["COLUMNS"] = "80"
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main(shlex.split(command))
        os.environ.pop("COLUMNS") if width is None else os.environ.update(COLUMNS=width)
        return out.getvalue() + err.getvalue()


def _with_commands(text: str) -> str:
    def fill(match: re.Match[str]) -> str:
        block = match[1]
        for command, printed in sessions(block):
            if printed and ANY_LINES not in printed.splitlines(keepends=True):
                block = block.replace(printed, printed_by(command))
        return f"```console\n{block}```"

    return BLOCK.sub(fill, text)


def _with_examples(text: str) -> str:
    lines = text.splitlines(keepends=True)
    known: dict[str, Any] = {}
    filled, at = [], 0
    for example in doctest.DocTestParser().get_examples(text):
        end = example.lineno + example.source.count("\n")
        # A fence that follows without an empty line is not what the example prints.
        printed, fence, _ = example.want.partition("```")
        old = end + printed.count("\n")
        new = printed
        if example.exc_msg is None and not example.options.get(doctest.SKIP):
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(example.source, "page", "single"), known)  # noqa: S102
            new = re.sub(r"^$\n", "<BLANKLINE>\n", out.getvalue(), flags=re.MULTILINE)
        if fence:
            new += "\n"
        filled += [*lines[at:end], new]
        at = old
    return "".join([*filled, *lines[at:]])


def renew(path: Path) -> None:
    """Write the output of the examples and commands of a page."""
    page = path.read_text(encoding="utf-8")
    with contextlib.chdir(ROOT):
        path.write_text(_with_commands(_with_examples(page)), encoding="utf-8")
