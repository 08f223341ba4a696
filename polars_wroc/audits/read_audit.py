"""An audit that is compared with another one: its tables, from an `Audit` or from its JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import polars as pl

from polars_wroc.audits.formats import SCHEMA
from polars_wroc.audits.result import Audit
from polars_wroc.audits.tables import segment_keys
from polars_wroc.groups.auc_sums import GAP_METRICS
from polars_wroc.inputs.arguments import reject_type
from polars_wroc.inputs.columns import AUDIT_KEYS, MODEL, OVERALL

Auditable: TypeAlias = Audit | Mapping[str, Any] | str | Path

_PARTS = ("", "_low", "_high")
# Versions of the schema that are read.
_VERSION = "1."
_COUNTS, _WEIGHTS = ("n", "n_pos"), ("w_pos", "w_neg")
# So few rows may have the same counts by chance.
_FEW_ROWS = 100
# Of sums of the same weights in another order.
_ROUNDING = 1e-9


class Audited(NamedTuple):
    """The parts of an audit that are compared."""

    segments: pl.DataFrame
    gaps: pl.DataFrame
    level: float


def read_audit(argument: str, audit: Auditable) -> Audited:
    """Read an audit, or its JSON, which the ``argument`` holds or has the path of."""
    if isinstance(audit, Audit):
        return Audited(audit.segments, audit.gaps, audit.parameters.level)
    if isinstance(audit, str | Path):
        audit = _from_file(argument, audit)
    if not isinstance(audit, Mapping):
        reject_type(argument, "be an Audit, the path of its JSON, or the JSON", audit)
    rule = f"`{argument}` must be the JSON of an audit, of schema {SCHEMA} {_VERSION}x"
    named = audit.get("schema", SCHEMA), str(audit.get("schema_version", f"{_VERSION}0"))
    if named[0] != SCHEMA or not named[1].startswith(_VERSION):
        msg = f"{rule}; found {named[0]} {named[1]}"
        raise ValueError(msg)
    # Before there was a schema, the tables were not in a part of their own.
    tables = audit.get("tables", audit)
    try:
        segments = _table(tables["segments"], (*AUDIT_KEYS, "auc", "ci_low", "ci_high"))
        gaps = _table(tables["gaps"], AUDIT_KEYS)
        level = float(audit["settings"]["level"])
    except (KeyError, TypeError, ValueError, AttributeError, pl.exceptions.PolarsError):
        msg = f"{rule}; found no settings, segments or gaps in it"
        raise ValueError(msg) from None
    return Audited(segments, gaps, level)


def refuse_same_rows(before: Audited, after: Audited) -> None:
    """Refuse audits that have the same counts and weights in each segment of the same attributes.

    Attributes that only one of them has say nothing about the rows.
    """
    old, new = before.segments, after.segments
    if not {*_COUNTS, *_WEIGHTS} <= set(old.columns) & set(new.columns):
        return
    common = pl.col(AUDIT_KEYS[0]).is_in(set(old[AUDIT_KEYS[0]]) & set(new[AUDIT_KEYS[0]]))
    keys = segment_keys(new)
    both = new.filter(common).join(
        old.filter(common), on=keys, how="full", coalesce=True, nulls_equal=True, suffix="_before"
    )
    counts = (pl.col(name).eq(pl.col(f"{name}_before")) for name in _COUNTS)
    weights = (
        (pl.col(name) - pl.col(f"{name}_before")).abs() <= _ROUNDING * pl.col(name).abs()
        for name in _WEIGHTS
    )
    alike = both.select(pl.all_horizontal(*counts, *weights).fill_null(value=False)).to_series()
    segments = both.select(AUDIT_KEYS).n_unique()
    rows = new.filter(attribute=OVERALL)["n"].max()
    if alike.all() and segments > 1 and isinstance(rows, int) and rows >= _FEW_ROWS:
        msg = (
            "`before` and `after` must be audits of different rows; found the same numbers of rows "
            f"and of positives, and the same weights, in all {segments} segments. `compare` tests "
            "two scores on the same rows; set `different_rows` if these rows do differ"
        )
        raise ValueError(msg)


def _from_file(argument: str, path: str | Path) -> Any:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        found = "no such file" if isinstance(error, FileNotFoundError) else "no JSON"
        msg = f"`{argument}` must be the JSON of an audit; found {found} at {str(path)!r}"
        raise ValueError(msg) from None


def _table(rows: list[dict[str, Any]], needed: Sequence[str]) -> pl.DataFrame:
    """Read the columns that are compared; raise if one of those needed is not there."""
    numbers = [f"{name}{end}" for name in _columns() for end in _PARTS]
    words = [*AUDIT_KEYS, MODEL, *(f"{name}_gap_verdict" for name in GAP_METRICS)]
    known: dict[str, type[pl.DataType]] = {
        **dict.fromkeys(words, pl.String),
        **dict.fromkeys([*numbers, "ci_low", "ci_high", *_WEIGHTS], pl.Float64),
        **dict.fromkeys(_COUNTS, pl.Int64),
        "small": pl.Boolean,
    }
    there = {
        name: dtype
        for name, dtype in known.items()
        if name in needed or any(name in row for row in rows)
    }
    if not all(row.keys() >= set(needed) for row in rows):
        raise KeyError
    return pl.DataFrame(
        [{name: row.get(name) for name in there} for row in rows], there, orient="row"
    )


def _columns() -> list[str]:
    return [name for metric in GAP_METRICS for name in (metric, f"{metric}_gap")]
