"""The steps of a page of the documentation: changes of files, commands and what they print."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from site_navigation import ROOT

_BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "*.egg-info")


@dataclass(frozen=True)
class Step:
    """A block of a page: a ``diff`` or another file with its path, commands, or their output."""

    kind: str
    path: str
    text: str


def steps(page: str) -> list[Step]:
    """List the blocks of a page in order."""
    return [Step(*found) for found in _BLOCK.findall(page)]


def copy_of_the_project(folder: Path) -> Path:
    """Copy what the steps may change or read."""
    return Path(shutil.copytree(ROOT, folder / "project", ignore=_LEFT_OUT, symlinks=True))


def change(step: Step, project: Path) -> None:
    """Write a new file, or replace the lines of a diff, which must be there once."""
    path = project / step.path
    if step.kind != "diff":
        path.write_text(step.text, encoding="utf-8")
        return
    lines = [line or " \n" for line in step.text.splitlines(keepends=True)]
    old = "".join(line[1:] or "\n" for line in lines if line[0] != "+")
    new = "".join(line[1:] or "\n" for line in lines if line[0] != "-")
    if not old:
        assert not path.exists(), f"{step.path} exists"
        path.write_text(new, encoding="utf-8")
        return
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{step.path} has {text.count(old)} times:\n{old}"
    path.write_text(text.replace(old, new), encoding="utf-8")


def commands_in(folder: Path) -> dict[str, str]:
    """Return an environment with the commands of pages: python, and polars-wroc of this python.

    What would be installed is only noted in the file ``installed``: no page or test may change the
    environment that it runs in.
    """
    bins = folder / "bin"
    bins.mkdir(exist_ok=True)
    note = f'{{ echo "$*" >> "{folder}/installed"; exit; }}'
    this = f'exec "{sys.executable}"'
    scripts = {
        "python": f'case "$1 $2" in "-m pip"*) {note};; esac\n{this} "$@"',
        "polars-wroc": f'{this} -m polars_wroc "$@"',
        **dict.fromkeys(("pip", "pip3", "uv"), note),
    }
    for name, text in scripts.items():
        script = bins / name
        script.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        script.chmod(0o755)
    places = {"PATH": f"{bins}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    return os.environ | places | {"COLUMNS": "80"}


def printed_by(commands: str, project: Path) -> str:
    """Run the commands of a step in the project, and return what they print."""
    own = {"PYTHONPATH": str(project)} if (project / "polars_wroc").exists() else {}
    done = subprocess.run(  # noqa: S603
        ["/bin/sh", "-ec", commands],
        cwd=project,
        env=commands_in(project) | own,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def follow(page: str, project: Path) -> list[tuple[str, str]]:
    """Make the changes of a page and run its commands: what it says they print, and what they do.

    Of commands whose output the page does not show, nothing is returned.
    """
    compared, printed = [], ""
    for step in steps(page):
        if step.path:
            change(step, project)
        elif step.kind == "sh":
            printed = printed_by(step.text, project)
        elif step.kind == "text":
            compared.append((step.text, printed))
    return compared


def _filled(page: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        found = iter(follow(page, copy_of_the_project(Path(folder))))

    def fill(block: re.Match[str]) -> str:
        is_printed = block[1] == "text" and not block[2]
        return f"```text\n{next(found)[1]}```" if is_printed else block[0]

    return _BLOCK.sub(fill, page)


def renew(path: Path) -> None:
    """Write what the commands of a page print."""
    path.write_text(_filled(path.read_text(encoding="utf-8")), encoding="utf-8")
