"""The numbers of every public function: written by one version, checked by another one.

    python benchmarks/kept_numbers.py write DIR  with the package as it was
    python benchmarks/kept_numbers.py check DIR  with the package as it is

Each call of `kept_calls.py` gives tables, which `write` keeps as Parquet. `check` makes them
again, in the shape that they had, and prints for each call the largest relative difference and its
column. It exits with 1 where numbers differ by more than 1e-12, where nulls, infinities or texts
differ, or where a table or column is missing that has a successor. The same version differs from
itself by up to 1e-13, as Polars adds up the rows of groups in any order.
"""

from __future__ import annotations

import os

os.environ["POLARS_MAX_THREADS"] = "1"  # Sums are added up in the same order.

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import kept_shapes
import polars as pl
from kept_calls import CALLS, GONE, RENAMED, run

RELATIVE, ABSOLUTE = 1e-12, 1e-14
ENGINES = ("polars", "compiled")


def write(folder: Path) -> None:
    """Keep the tables of every call, and the text of the calls."""
    folder.mkdir(parents=True, exist_ok=True)
    for engine in ENGINES:
        for name in CALLS:
            for table, frame in run(name, engine).items():
                frame.write_parquet(folder / f"{engine}, {name}, {table}.parquet")
    calls = {name: {"old": call.old, "new": call.now} for name, call in CALLS.items()}
    (folder / "calls.json").write_text(json.dumps(calls, indent=1), encoding="utf-8")


def check(folder: Path) -> bool:
    """Compare the tables of every call with those kept; return whether all are the same."""
    good = True
    for engine in ENGINES:
        for name in CALLS:
            kept = {
                path.stem.removeprefix(f"{engine}, {name}, "): pl.read_parquet(path)
                for path in sorted(folder.glob(f"{engine}, {name}, *.parquet"))
            }
            made = run(name, engine)
            for table, expected in kept.items():
                if (name, table) in GONE:
                    print(f"gone   {engine:8} {name} {table}: {GONE[name, table]}")
                    continue
                old, new = expected, made.get(table, expected)
                if name.startswith("audit"):
                    old, new = (kept_shapes.in_one_order(each, table) for each in (old, new))
                worst, where = (
                    compared(old, new, (name, name.split()[0], table, "*"))
                    if table in made
                    else (float("inf"), "no table")
                )
                good &= worst <= RELATIVE
                mark = "same  " if worst <= RELATIVE else "DIFFER"
                print(f"{mark} {engine:8} {name} {table}: {worst:.1e} {where}")
    return good


def compared(
    expected: pl.DataFrame, found: pl.DataFrame, names: Sequence[str]
) -> tuple[float, str]:
    """Return the largest relative difference and the column that has it; infinity if in kind."""
    if expected.height != found.height:
        return float("inf"), f"{found.height} rows instead of {expected.height}"
    worst, where = 0.0, ""
    for column in expected.columns:
        if any((each, column) in GONE for each in names):
            continue
        renamed = (RENAMED.get((name, column)) for name in names)
        now = next((name for name in renamed if name is not None), column)
        if now not in found.columns:
            return float("inf"), f"no {column}"
        difference = _difference(expected[column], found[now])
        if difference > worst:
            worst, where = difference, column
    return worst, where


def _difference(one: pl.Series, other: pl.Series) -> float:
    if not one.dtype.is_float():
        same = one.cast(pl.String, strict=False).eq_missing(other.cast(pl.String, strict=False))
        return 0.0 if same.all() else float("inf")
    other = other.cast(pl.Float64)
    if not (one.is_null() == other.is_null()).all():
        return float("inf")
    frame = pl.DataFrame({"a": one.cast(pl.Float64), "b": other}).drop_nulls()
    frame = frame.filter(pl.col("a") != pl.col("b"))
    apart = (pl.col("a") - pl.col("b")).abs()
    size = pl.max_horizontal(pl.col("a").abs(), pl.col("b").abs())
    largest = frame.select(pl.when(apart > ABSOLUTE).then(apart / size).otherwise(0).max()).item()
    return 0.0 if largest is None else float(largest)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["write", "check"])
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    if options.what == "write":
        write(options.folder)
    else:
        sys.exit(not check(options.folder))
