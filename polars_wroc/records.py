"""Records of arrays, for example sums of segments, and functions of all their arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np

from polars_wroc.arrays import Array

RecordT = TypeVar("RecordT")


def join_records(records: Sequence[RecordT]) -> RecordT:
    """Return several records joined along the last axis of their arrays."""
    first: Any = records[0]
    if first is None:
        return records[0]
    if isinstance(first, np.ndarray):
        joined: Any = np.concatenate(records, axis=-1)  # type: ignore[arg-type]
        return joined  # type: ignore[no-any-return]
    assert is_dataclass(first)
    values = {
        each.name: join_records([getattr(record, each.name) for record in records])
        for each in fields(first)
    }
    return replace(first, **values)  # type: ignore[type-var, return-value]


def map_arrays(record: Any, function: Callable[[Array], Array]) -> Any:
    """Return a record with a function applied to all its arrays, in nested records too."""
    if isinstance(record, np.ndarray):
        return function(record)
    if isinstance(record, Mapping):
        return {name: map_arrays(each, function) for name, each in record.items()}
    if is_dataclass(record) and not isinstance(record, type):
        parts = {each.name: getattr(record, each.name) for each in fields(record)}
        return replace(record, **map_arrays(parts, function))
    if isinstance(record, tuple):
        values = [map_arrays(each, function) for each in record]
        return type(record)(*values) if hasattr(record, "_fields") else tuple(values)
    return record
