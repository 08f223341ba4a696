"""An audit that is compared with another one: its tables, from an `Audit` or from its JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import polars as pl

from polars_wroc.audits.findings import SEGMENT_COLUMNS
from polars_wroc.audits.formats import SCHEMA
from polars_wroc.audits.result import Audit
from polars_wroc.audits.tables import ALL_KEYS, fewer_than
from polars_wroc.groups.comparisons import COMPARISON_SCHEMA
from polars_wroc.inputs.arguments import reject_type
from polars_wroc.inputs.columns import AUDIT_KEYS, MODEL, OVERALL

Auditable: TypeAlias = Audit | Mapping[str, Any] | str | Path

# Versions of the schema that are read, and those of a development version.
_VERSION, _OLD = "2.", "1."
_COUNTS, _WEIGHTS = ("n", "n_pos"), ("w_pos", "w_neg")
# So few rows may have the same counts by chance.
_FEW_ROWS = 100
# Of sums of the same weights in another order.
_ROUNDING = 1e-9
# What of the tables is compared.
_ROWS = ("value", "value_low", "value_high", "gap", "gap_low", "gap_high", "verdict")


class Audited(NamedTuple):
    """The parts of an audit that are compared."""

    table: pl.DataFrame
    segments: pl.DataFrame
    level: float

    @property
    def models(self) -> list[str | None]:
        """The scores."""
        names: list[str | None] = self.segments[MODEL].unique(maintain_order=True).to_list()
        return names


def read_audit(argument: str, audit: Auditable) -> Audited:
    """Read an audit, or its JSON, which the ``argument`` holds or has the path of."""
    if isinstance(audit, Audit):
        few = fewer_than(audit.settings.min_rows)
        segments = audit.segments.with_columns(few.alias("small"))
        return Audited(audit.table, segments, audit.settings.level)
    if isinstance(audit, str | Path):
        audit = _from_file(argument, audit)
    if not isinstance(audit, Mapping):
        reject_type(argument, "be an Audit, the path of its JSON, or the JSON", audit)
    rule = f"`{argument}` must be the JSON of an audit, of schema {SCHEMA} {_VERSION}x"
    # Before there was a schema, it had no name.
    schema, version = audit.get("schema", SCHEMA), str(audit.get("schema_version", f"{_OLD}0"))
    if schema != SCHEMA or not version.startswith(_VERSION):
        made = ", made by a development version" if version.startswith(_OLD) else ""
        msg = f"{rule}; found {schema} {version}{made}"
        raise ValueError(msg)
    try:
        settings = audit["settings"]
        table = _table(audit["table"], COMPARISON_SCHEMA, (*ALL_KEYS, "metric", *_ROWS))
        segments = _table(
            audit["segments"], SEGMENT_COLUMNS, (*ALL_KEYS, *_COUNTS, "n_neg", *_WEIGHTS)
        )
        level = float(settings["level"])
        few = fewer_than(int(settings["min_rows"]))
    except (KeyError, TypeError, ValueError, AttributeError, pl.exceptions.PolarsError):
        msg = f"{rule}; found no settings, segments or table in it"
        raise ValueError(msg) from None
    return Audited(table, segments.with_columns(few.alias("small")), level)


def refuse_same_rows(before: Audited, after: Audited) -> None:
    """Refuse audits that have the same counts and weights in each segment of the same attributes.

    Attributes that only one of them has say nothing about the rows.
    """
    old, new = before.segments, after.segments
    common = pl.col(AUDIT_KEYS[0]).is_in(set(old[AUDIT_KEYS[0]]) & set(new[AUDIT_KEYS[0]]))
    both = new.filter(common).join(
        old.filter(common),
        on=list(ALL_KEYS),
        how="full",
        coalesce=True,
        nulls_equal=True,
        suffix="_before",
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


def _table(
    rows: list[dict[str, Any]], columns: Mapping[str, type[pl.DataType]], needed: Sequence[str]
) -> pl.DataFrame:
    """Read the columns that are compared; raise if one of those needed is not there."""
    if not all(row.keys() >= set(needed) for row in rows):
        raise KeyError
    known = {name: columns[name] for name in needed}
    return pl.DataFrame([{name: row[name] for name in known} for row in rows], known, orient="row")
