"""Numbers of a table in the text format of Prometheus, a line for each."""

from __future__ import annotations

import re

import polars as pl

from polars_wroc.files.outputs import text_of

SUFFIX = ".prom"
# The number that a metric is named for in tables with a row for each metric.
_VALUE = "value"
_METRIC, _MODEL = "metric", "model"
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


def write_numbers(table: pl.DataFrame) -> str:
    """Return a line for each number, such as ``auc{attribute="race",segment="black"} 0.7``.

    Names are those of metrics and columns, labels the other columns before the first number. A
    number that is null has no line, nor has the model a label if there is only one.
    """
    numbers = [
        name
        for name, dtype in table.schema.items()
        if dtype.is_numeric() and not name.startswith("reference_")
    ]
    first = table.columns.index(numbers[0]) if numbers else table.width
    labels = [name for name in table.columns[:first] if name not in (_METRIC, _MODEL, "reference")]
    if _MODEL in table.columns and table[_MODEL].n_unique() > 1:
        labels.append(_MODEL)
    lines = list[str]()
    for row in table.iter_rows(named=True):
        places = ",".join(f'{_escape_name(name)}="{_escape_value(row[name])}"' for name in labels)
        for name in numbers:
            if row[name] is None:
                continue
            metric = row.get(_METRIC)
            called = name if metric is None else f"{metric}_{name}".removesuffix(f"_{_VALUE}")
            called = called.replace(f"_{_VALUE}_", "_") if metric else called
            lines.append(f"{_escape_name(called)}{{{places}}} {float(row[name])!r}\n")
    # Prometheus wants the lines of a name together.
    return "".join(sorted(lines, key=lambda line: line.partition("{")[0]))


def _escape_name(name: str) -> str:
    """Return a name that Prometheus allows; others are escaped as it does itself, reversibly."""
    if _NAME.fullmatch(name):
        return name
    escaped = (
        "__" if sign == "_" else sign if re.match(r"[a-zA-Z0-9]", sign) else f"_{ord(sign):X}_"
        for sign in name
    )
    return f"U__{''.join(escaped)}"


def _escape_value(value: object) -> str:
    text = "" if value is None else value if isinstance(value, str) else text_of(value)
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
