"""What users rely on: public names, signatures, options of the command, columns of results.

``python tests/public_surface.py`` writes it to the snapshot that tests compare with, so that a
change of it is a decision.
"""

from __future__ import annotations

import argparse
import inspect
import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import queries

import polars_wroc as wroc
from polars_wroc import dask
from polars_wroc.cli.parser import build_parser

SNAPSHOT = Path(__file__).with_name("public_surface.json")
COMMANDS = (
    *("audit", "diff", "impact", "auc", "compare", "gaps", "thresholds", "calibrate", "curve"),
    *("counts", "merge"),
)


def surface() -> dict[str, Any]:
    """Describe the package."""
    return {
        "names": {name: _described(getattr(wroc, name)) for name in sorted(wroc.__all__)},
        "expression namespace": _methods(type(pl.col("s").wroc)),  # type: ignore[attr-defined]
        "frame namespace": _methods(type(pl.LazyFrame().wroc)),  # type: ignore[attr-defined]
        "dask": {name: _signature(getattr(dask, name)) for name in dask.__all__},
        "command": _commands(),
        "tables": {name: _schema(table(_rows().lazy())) for name, table in queries.TABLES.items()},
        "expressions": {
            name: str(_rows().lazy().select(value).collect_schema().dtypes()[0])
            for name, value in queries.EXPRESSIONS.items()
        },
        "audit": _audit(),
    }


def _described(value: object) -> object:
    if inspect.isclass(value):
        return {"": _signature(value), **_methods(value)}
    return _signature(value) if callable(value) else type(value).__name__


def _methods(kind: type) -> dict[str, str]:
    members = ((name, value) for name, value in vars(kind).items() if not name.startswith("_"))
    return {
        name: _signature(value) if callable(value) else "attribute"
        for name, value in sorted(members)
    }


def _signature(value: Any) -> str:
    return str(inspect.signature(value))


def _commands() -> dict[str, Any]:
    parser = build_parser({name: lambda _: None for name in COMMANDS})
    (commands,) = (
        action.choices
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    return {name: _options(command) for name, command in commands.items()}


def _options(command: argparse.ArgumentParser) -> dict[str, str]:
    return {
        " ".join(action.option_strings) or action.dest: repr(action.default)
        + (f" of {', '.join(action.choices)}" if action.choices else "")
        for action in command._actions
    }


def _schema(table: pl.LazyFrame | pl.DataFrame) -> dict[str, str]:
    return {name: str(dtype) for name, dtype in table.collect_schema().items()}


def _rows() -> pl.DataFrame:
    random = np.random.default_rng(1)
    positive = random.random(400) < 0.4
    return pl.DataFrame(
        {
            "g": random.choice(["a", "b"], 400),
            "y": positive,
            "s": random.normal(size=400) + positive,
            "w": random.lognormal(size=400),
        }
    ).with_columns(limit=pl.col("s").mean().over("g"))


def _audit() -> dict[str, Any]:
    rows = _rows().with_columns(s=1 / (1 + (-pl.col("s")).exp()))
    audit = wroc.audit(rows, "y", "s", weight="w", by="g", threshold=0.5)
    tables = {
        name: _schema(value)
        for name, value in vars(audit).items()
        if isinstance(value, pl.DataFrame)
    }
    written = json.loads(audit.to_json())
    return {**tables, "settings": sorted(audit.settings), "json": sorted(written)}


def differences(old: Any, new: Any, place: str = "") -> list[str]:
    """Name each place in which two descriptions differ."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        names = dict.fromkeys((*old, *new))
        found = [
            differences(old.get(n), new.get(n), f"{place} / {n}" if place else n) for n in names
        ]
        order = [f"{place}: in another order"] if list(old) != list(new) else []
        return [line for lines in found for line in lines] or order
    return [] if old == new else [f"{place}: {old} became {new}"]


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SNAPSHOT.write_text(json.dumps(surface(), indent=1) + "\n", encoding="utf-8")
