"""What an import of the package, or of one of its names, imports."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import polars as pl
from processes import PLAIN

import polars_wroc as wroc


def _imported(code: str, known: str = "polars, lazy_loader, numpy.typing, scipy") -> set[str]:
    """Name the modules that code imports, except known ones and what they import.

    SciPy imports its modules when they are first used.
    """
    start, end = (
        f"import sys, {known}; before = {{*sys.modules}}",
        "print(*{*sys.modules} - before)",
    )
    finished = subprocess.run(  # noqa: S603
        [sys.executable, "-c", f"{start}\n{code}\n{end}"],
        env=PLAIN,
        check=True,
        capture_output=True,
        text=True,
    )
    modules = finished.stdout.split()
    return {name for name in modules if name.split(".")[0] not in sys.stdlib_module_names}


def test_import_imports_no_more_than_it_must() -> None:
    assert _imported("import polars_wroc") == {"polars_wroc"}


def test_a_name_imports_what_it_needs() -> None:
    imported = _imported("import polars_wroc; polars_wroc.summary")
    assert "polars_wroc.metrics.summary" in imported
    assert {name.split(".")[0] for name in imported} == {"polars_wroc"}
    assert imported.isdisjoint({"polars_wroc.charts", "polars_wroc.audits"})


def test_all_names_but_charts_import_polars_and_numpy_alone() -> None:
    names = ", ".join(name for name in wroc.__all__ if "chart" not in name)
    imported = _imported(f"from polars_wroc import {names}; polars.DataFrame().wroc")
    assert {name.split(".")[0] for name in imported} == {"polars_wroc"}


def test_help_of_a_command_imports_neither_charts_nor_special_functions() -> None:
    imported = _imported("from polars_wroc.cli import main; main(['auc', '--help'])")
    assert "polars_wroc.metrics.summary" in imported
    assert imported.isdisjoint({"altair", "scipy.special", "polars_wroc.namespaces"})


def test_list_of_commands_imports_no_numpy() -> None:
    imported = _imported("from polars_wroc.cli import main; main(['--help'])", known="polars")
    assert "polars_wroc.cli.app" in imported
    assert imported.isdisjoint({"numpy", "scipy", "polars_wroc.cli.commands"})


def test_import_registers_the_namespaces() -> None:
    frame: Any = pl.DataFrame({"y": [1, 0], "s": [2, 1]})
    owners: list[Any] = [frame, frame.lazy(), pl.col("s")]
    for owner in owners:
        assert type(owner.wroc).__module__ == "polars_wroc.namespaces"
