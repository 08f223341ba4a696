"""Sentences that several commands have, and how they name groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl

from polars_wroc.documents.numbers import metric_label
from polars_wroc.documents.phrases import capitalise, first_few, write_list
from polars_wroc.inputs.columns import AUDIT_KEYS, MISSING, MODEL
from polars_wroc.inputs.reasons import EVERYBODY, NOBODY
from polars_wroc.metrics.compare import PAIR

SEPARATOR = "; "
# The AUC of an uninformative score.
_CHANCE = 0.5


def list_before(columns: Iterable[str], first: str) -> list[str]:
    """List the columns before another, which are the groups of a table."""
    names = [*columns]
    return names[: names.index(first)]


def list_keys(table: pl.DataFrame) -> list[str]:
    """List the keys of comparisons, with the score if there are several."""
    return [*AUDIT_KEYS, *([MODEL] if table[MODEL].n_unique() > 1 else [])]


def list_attributes(table: pl.DataFrame) -> list[str]:
    """List the attributes of comparisons."""
    return table[AUDIT_KEYS[0]].unique(maintain_order=True).to_list()


def name_groups(keys: Sequence[str]) -> str:
    """Return the columns of groups, without scores, as text: `` by race and sex``."""
    groups = [key for key in keys if key not in (MODEL, *PAIR)]
    return f" by {write_list(groups)}" if groups else ""


def name_place(row: dict[str, Any], keys: Sequence[str]) -> str:
    """Name a group and, if it is a key, the metric: sex f, or race a selection rate."""
    parts = []
    for key in keys:
        name = MISSING if row[key] is None else str(row[key])
        parts.append(metric_label(name) if key == "metric" else name)
    return " ".join(parts)


def name_places(found: pl.DataFrame, keys: Sequence[str]) -> str:
    """Name the first few groups."""
    return first_few([name_place(row, keys) for row in found.iter_rows(named=True)], SEPARATOR)


def say_backwards(table: pl.DataFrame, keys: Sequence[str]) -> str:
    """Return where a score ranks backwards: with an AUC significantly below 0.5."""
    names = ("auc", "auc_low", "auc_high")
    if "metric" in table.columns:
        table, names = table.filter(metric="auc"), ("value", "value_low", "value_high")
    places = []
    for row in table.filter(pl.col(names[2]) < _CHANCE).iter_rows(named=True):
        value, low, high = (f"{row[name]:.2f}" for name in names)
        group = f"{name_place(row, keys)}: " if keys else ""
        places.append(f"{group}AUC {value} ({low} to {high})")
    if not places:
        return ""
    where = f" in {first_few(places, SEPARATOR)}" if keys else f": {places[0]}"
    return f"The score ranks backwards{where}. "


def say_same_decision(table: pl.DataFrame) -> str:
    """Return that nobody, or everybody, is selected, which leaves nothing to compare."""
    found = table.filter(pl.col("reason").is_in([NOBODY, EVERYBODY]))["reason"].unique().sort()
    return "".join(f"{capitalise(why)}: decisions cannot be compared. " for why in found)
