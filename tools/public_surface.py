"""What users rely on: public names, signatures, options of the command, columns of results.

The snapshot of it, which a test compares with the package, makes every change a decision.
"""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, is_typeddict

import numpy as np
import polars as pl
import queries
from cyclopts.argument import Argument
from site_navigation import ROOT

import polars_wroc as wroc
from polars_wroc import typing
from polars_wroc.audits.formats import SCHEMA, SCHEMA_VERSION
from polars_wroc.bounds import find_number_type, list_alternatives
from polars_wroc.cli.app import app
from polars_wroc.cli.catalog import COMMANDS

SNAPSHOT = ROOT / "tests" / "public_surface.json"
# Classes of `polars_wroc.typing` whose methods users call; functions return them.
RESULT_TYPES = ("Counts", "NewYorkSummary")
JSON_SCHEMA = Path(wroc.__file__).with_name("audits") / "audit-2.0.schema.json"


def surface() -> dict[str, Any]:
    """Describe the package."""
    return {
        "names": {name: _described(getattr(wroc, name)) for name in sorted(wroc.__all__)},
        "types of results": {name: _described(getattr(typing, name)) for name in RESULT_TYPES},
        "expression namespace": _methods(type(pl.col("s").wroc)),  # type: ignore[attr-defined]
        "frame namespace": _methods(type(pl.LazyFrame().wroc).__mro__[1]),  # type: ignore[attr-defined]
        "options": options(),
        "numbers": numbers(),
        "command": _commands(),
        "tables": {name: _schema(table(_rows().lazy())) for name, table in queries.TABLES.items()},
        "expressions": {
            name: str(_rows().lazy().select(value).collect_schema().dtypes()[0])
            for name, value in queries.EXPRESSIONS.items()
        },
        "tables that collect": _collected(),
        "audit": _audit(),
        "JSON": {f"{SCHEMA} {SCHEMA_VERSION}": dict(json_fields())},
    }


def options() -> dict[str, list[str]]:
    """List the values of each type of `polars_wroc.typing` that has some."""
    found = {name: literals(getattr(typing, name)) for name in typing.__all__}
    return {name: values for name, values in found.items() if values}


def numbers() -> dict[str, str]:
    """Describe each type of `polars_wroc.typing` that is a number with bounds."""
    described = {name: describe_number(getattr(typing, name)) for name in typing.__all__}
    return {name: text for name, text in described.items() if text is not None}


def describe_number(kind: object) -> str | None:
    """Write the bounds of a type that is a number, by itself or in a union; None for others."""
    found = find_number_type(kind)
    if found is None:
        return None
    sort = "a whole number, " if found.kind is int else ""
    classes = [each for each in list_alternatives(kind) if inspect.isclass(each)]
    return f"{sort}{found.bounds.text}{''.join(f' or `{each.__name__}`' for each in classes)}"


def literals(kind: object) -> list[str]:
    """List the values of a Literal, or of those in a union."""
    if get_origin(kind) is Literal:
        return [repr(value) for value in get_args(kind)]
    if get_origin(kind) in {Union, UnionType, Sequence, Mapping}:
        return [*dict.fromkeys(value for part in get_args(kind) for value in literals(part))]
    return []


def json_fields() -> Iterator[tuple[str, str]]:
    """List the fields of the JSON of an audit, with their types."""
    schema = json.loads(JSON_SCHEMA.read_text(encoding="utf-8"))
    return ((path, kind) for path, kind, _ in fields_of(schema, ""))


def fields_of(schema: Mapping[str, Any], place: str) -> Iterator[tuple[str, str, str]]:
    """List the fields of a JSON Schema: path, type and description."""
    for name, field in schema.get("properties", {}).items():
        path = f"{place}{name}"
        yield path, _json_type(field), field.get("description", "")
        yield from fields_of(field, f"{path}.")
        yield from fields_of(field.get("items", {}), f"{path}[].")


def _json_type(field: Mapping[str, Any]) -> str:
    if "$ref" in field:
        return "number or null"
    if "const" in field:
        return f"`{json.dumps(field['const'])}`"
    if "enum" in field:
        return ", ".join(f"`{json.dumps(value)}`" for value in field["enum"])
    kinds = field["type"]
    return " or ".join([kinds] if isinstance(kinds, str) else kinds)


def _described(value: object) -> object:
    if is_typeddict(value):
        return {name: str(kind) for name, kind in sorted(value.__annotations__.items())}
    if inspect.isclass(value):
        return {"": _signature(value), **_methods(value)}
    if inspect.ismodule(value):
        return {name: _signature(getattr(value, name)) for name in value.__all__}
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
    return {name: _options(app[name].assemble_argument_collection()) for name in COMMANDS}


def _options(arguments: Iterable[Argument]) -> dict[str, str]:
    """Return the default of each option, and what it may be."""
    described = {}
    for argument in arguments:
        if argument.show:
            default = argument.field_info.default
            shown = "None" if default is argument.field_info.empty else repr(default)
            choices = argument.get_choices(force=True)
            of = f" of {', '.join(choices)}" if choices else ""
            described[" ".join(argument.names)] = f"{shown}{of}"
    return described


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


def _collected() -> dict[str, Any]:
    """Describe tables that are computed at once."""
    changes = wroc.audit_changes(_audited(), _audited(), different_rows=True)
    return {"audit_changes": _schema(changes)}


def _audited() -> wroc.Audit:
    rows = _rows().with_columns(s=1 / (1 + (-pl.col("s")).exp()))
    return wroc.audit(
        rows, "y", "s", weight="w", attributes="g", threshold=0.5, favorable="selected"
    )


def _audit() -> dict[str, Any]:
    audit = _audited()
    tables = {
        name: _schema(value)
        for name, value in vars(audit).items()
        if isinstance(value, pl.DataFrame)
    }
    written = json.loads(audit.to_json())
    findings = {"findings": _schema(audit.findings)}
    return {**tables, **findings, "settings": sorted(vars(audit.settings)), "json": sorted(written)}


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


def renew() -> None:
    """Write the snapshot."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SNAPSHOT.write_text(json.dumps(surface(), indent=1) + "\n", encoding="utf-8")
