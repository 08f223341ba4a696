"""Numbers of a table in the text format of Prometheus, a line for each."""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl

from polars_wroc.files.outputs import text_of
from polars_wroc.inputs.columns import MISSING, MODEL

SUFFIX = ".prom"
# https://prometheus.io/docs/practices/naming/ wants the names of a program to begin alike.
_PREFIX = "wroc_"
# Columns whose values are names of numbers, and the column of the number that has this name alone.
_NAMES, _VALUE = ("metric", "measure"), "value"
# Names that begin with two underscores are reserved.
_ALLOWED = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")


def write_prometheus(table: pl.DataFrame, keys: Sequence[str]) -> str:
    """Return a line for each number, such as ``wroc_auc{attribute="race",segment="black"} 0.7``.

    Names are those of metrics and columns, labels the ``keys`` that tell rows apart. A number that
    is null has no line, nor has the model a label if there is only one.
    """
    single = [MODEL] if MODEL in keys and table[MODEL].n_unique() == 1 else []
    labels = [key for key in keys if key not in (*_NAMES, *single)]
    numbers = [
        name
        for name, dtype in table.schema.items()
        if dtype.is_numeric() and name not in keys and not name.startswith("reference_")
    ]
    families = dict[str, list[str]]()
    for row in table.iter_rows(named=True):
        named = next((row[column] for column in _NAMES if column in row), None)
        places = ",".join(f'{_escape_name(key)}="{_escape_value(row[key])}"' for key in labels)
        for column in numbers:
            if row[column] is not None:
                name = _escape_name(f"{_PREFIX}{_name_number(named, column)}")
                line = f"{name}{{{places}}} {float(row[column])!r}"
                families.setdefault(name, []).append(line)
    # Prometheus wants the lines of a name together, after its type.
    return "".join(
        f"# TYPE {name} gauge\n" + "".join(f"{line}\n" for line in families[name])
        for name in sorted(families)
    )


def _name_number(metric: str | None, column: str) -> str:
    """Name a column, or the number of a metric in it: auc, auc_low, auc_gap."""
    if metric is None:
        return column
    end = column.removeprefix(_VALUE) if column.startswith(_VALUE) else f"_{column}"
    return f"{metric}{end}"


def _escape_name(name: str) -> str:
    """Return a name that Prometheus allows; others are escaped as it does itself, reversibly."""
    if _ALLOWED.fullmatch(name):
        return name
    escaped = (
        "__" if sign == "_" else sign if re.match(r"[a-zA-Z0-9]", sign) else f"_{ord(sign):X}_"
        for sign in name
    )
    return f"U__{''.join(escaped)}"


def _escape_value(value: object) -> str:
    text = MISSING if value is None else value if isinstance(value, str) else text_of(value)
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
