"""Simulate where assumptions bend: weighted rates, outliers, tests of gaps, whole audits.

The numbers go into a file, which makes the page.

    python benchmarks/simulations/bent_assumptions.py simulate numbers.csv
    python benchmarks/simulations/bent_assumptions.py simulate numbers.csv --only audits
    python benchmarks/simulations/bent_assumptions.py page numbers.csv

Cells have random numbers of their own, so that each part can be simulated alone, and versions of
the package can be compared on the same data.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import polars as pl
from agreement import check_rate_tests
from bent_audits import audit_cells
from bent_cells import Cell, auc_cells, auc_test_cells, rate_cells, rate_test_cells
from bent_page import COLUMNS, make_page

PARTS: dict[str, Callable[[], Iterator[Cell]]] = {
    "rates": rate_cells,
    "rate-tests": rate_test_cells,
    "aucs": auc_cells,
    "auc-tests": auc_test_cells,
    "audits": audit_cells,
}


def main() -> None:
    """Simulate, or write the page."""
    options = options_of()
    if options.mode == "page":
        versions = " and ".join(f"{name} {version(name)}" for name in ("polars-wroc", "polars"))
        make_page(options.file, options.seed, versions)
        return
    check_rate_tests()
    start = time.perf_counter()
    for name in options.only or PARTS:
        for cell in PARTS[name]():
            if options.match in f"{cell.design} {cell.size}":
                add(options.file, cell, options)
        print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)


def add(path: Path, cell: Cell, options: argparse.Namespace) -> None:
    """Simulate a cell and write its results at once, unless they are there."""
    schema = dict.fromkeys(COLUMNS, pl.String)
    done = pl.read_csv(path, schema=schema) if path.exists() else pl.DataFrame(schema=schema)
    if done.filter(part=cell.part, design=cell.design, size=cell.size).is_empty():
        rows = cell.results(options.seed, options.times)
        pl.concat([done, pl.DataFrame(rows, schema=schema, orient="row")]).write_csv(path)


def options_of() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=("simulate", "page"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", nargs="+", choices=PARTS)
    parser.add_argument("--match", default="", help="cells that have this in their name")
    parser.add_argument("--seed", type=int, default=2026112901)
    parser.add_argument("--times", type=float, default=1.0, help="times as many replicates")
    return parser.parse_args()


if __name__ == "__main__":
    main()
