"""Missing values: how many rows have no label, score, weight or group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from polars_wroc.inputs.columns import ROW_COUNT, Typed
from polars_wroc.inputs.names import MODEL

# Bits of a small number that each row carries, so that one scan is enough.
MISSING_MARKS = "__missing_marks"
_LABEL, _SCORE, _WEIGHT, _DECISION = 1, 2, 4, 8


@dataclass(frozen=True)
class MissingRows:
    """Numbers of rows without a value in a column; counts know those of groups only."""

    groups: Mapping[str, int]
    scores: Mapping[str, int] = field(default_factory=dict)
    label: int | None = None
    weight: int | None = None
    decision: int | None = None

    def __add__(self, other: MissingRows) -> MissingRows:
        """Add up the rows of two parts of the data, which were counted alike."""
        return MissingRows(
            groups=_sum(self.groups, other.groups),
            scores=_sum(self.scores, other.scores),
            label=(self.label or 0) + (other.label or 0),
            weight=(self.weight or 0) + (other.weight or 0),
            decision=(self.decision or 0) + (other.decision or 0),
        )

    def table(
        self, label: str | None, weight: str | None, decision: str | None = None
    ) -> pl.DataFrame:
        """Return one row per column that was used, under the caller's names."""
        counts = [(label, self.label)] if self.label is not None else []
        counts += self.scores.items()
        for name, rows in ((weight, self.weight), (decision, self.decision)):
            if name is not None and rows is not None:
                counts.append((name, rows))
        # A score that is an attribute too may be NaN besides null, and is there already.
        counts += [(name, rows) for name, rows in self.groups.items() if name not in self.scores]
        schema = {"column": pl.String, "n_missing": pl.Int64}
        return pl.DataFrame(counts, schema, orient="row").unique(maintain_order=True)


def has_no_score(score: Typed) -> pl.Expr:
    """Whether a score is null or NaN."""
    missing = score.column.is_null()
    return missing | score.column.is_nan() if score.dtype.is_float() else missing


def missing_marks(
    label: Typed | None, score: Typed, weight: Typed | None, decision: Typed | None = None
) -> pl.Expr:
    """Mark which of these a row does not have."""
    missing = {_SCORE: has_no_score(score)}
    for mark, typed in ((_LABEL, label), (_WEIGHT, weight), (_DECISION, decision)):
        if typed is not None:
            missing[mark] = typed.column.is_null()
    marks = [there.cast(pl.UInt8) * pl.lit(mark, pl.UInt8) for mark, there in missing.items()]
    return pl.sum_horizontal(marks).cast(pl.UInt8).alias(MISSING_MARKS)


def count_missing(
    table: pl.DataFrame, groups: Mapping[str, str], scores: Sequence[str]
) -> MissingRows:
    """Count the marked rows; each row is there once for each of the ``scores``.

    ``groups`` maps the key columns of the table to the caller's names.
    """
    no_group = [pl.col(key).is_null() for key in groups]
    incomplete = table.filter(pl.any_horizontal(pl.col(MISSING_MARKS) != 0, *no_group))
    of_score = dict.fromkeys(scores, incomplete)
    if MODEL in table.columns:
        of_score = {name: incomplete.filter(pl.col(MODEL) == name) for name in scores}
    first = of_score[scores[0]]
    return MissingRows(
        groups={name: _count(first, pl.col(key).is_null()) for key, name in groups.items()},
        scores={name: _count(rows, _has(_SCORE)) for name, rows in of_score.items()},
        label=_count(first, _has(_LABEL)),
        weight=_count(first, _has(_WEIGHT)),
        decision=_count(first, _has(_DECISION)),
    )


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + rows for name, rows in other.items()}


def _has(mark: int) -> pl.Expr:
    return (pl.col(MISSING_MARKS) & mark) != 0


def _count(rows: pl.DataFrame, condition: pl.Expr) -> int:
    those = rows.filter(condition)
    # In bins a row may represent several.
    return int(those[ROW_COUNT].sum()) if ROW_COUNT in those.columns else those.height
