"""Tables of counts by score: made from rows, merged, and checked when users pass them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

from polars_wroc.counts.binning import Binning, bins_of, parts_of, score_bin
from polars_wroc.counts.count_rules import BINS, checked
from polars_wroc.counts.score_sums import (
    COUNTS,
    HIGH,
    LOW,
    SUMS,
    add_up,
    add_up_in_bins,
    check_labels,
    row_sums,
    rows_from_counts,
    with_common_score,
)
from polars_wroc.inputs.arguments import reject_type
from polars_wroc.inputs.names import MODEL
from polars_wroc.inputs.rows import Rows, RowSource
from polars_wroc.inputs.score_types import frames_alike
from polars_wroc.plans.collect import collect

_EXACT, _BINNED = ("score",), (BINS, LOW, HIGH)
STATE_COLUMNS = (*_EXACT, *_BINNED, *SUMS)


@dataclass(frozen=True)
class CountTable(RowSource):
    """Counts by score: keys, lowest and highest score, sums and, if binned, the number of bins."""

    frame: pl.LazyFrame
    keys: list[str]
    binned: bool
    # The keys whose values keep the order in which the caller named them.
    model_keys: list[str] = field(default_factory=list)

    def rows(self, by: dict[str, pl.Expr]) -> Rows:
        """Turn the counts into rows, grouped by expressions of their keys and by model."""
        models = [key for key in self.keys if key == MODEL]
        keys, number = [*by, *models], _bin_number(binned=self.binned)
        bins = [BINS] if self.binned else []
        groups = [expression.alias(name) for name, expression in by.items()]
        parts = self.frame.select(*groups, *models, *bins, LOW, HIGH, *SUMS)
        if self.binned:
            # Tables with different numbers of bins may have been stacked.
            parts = parts.with_columns(pl.col(BINS).min())
        added = with_common_score(add_up(parts, [*keys, *bins], number), models, number)
        return rows_from_counts(added, keys, models, binned=self.binned)

    def multiplicity(self) -> pl.Expr:
        """Return the number of rows that are counted."""
        return pl.sum_horizontal(COUNTS)

    def table(self) -> pl.LazyFrame:
        """Return the counts as users see them."""
        last = [*(False for _ in self.keys), True]
        in_order = self.frame.sort(*self.keys, LOW, descending=last, nulls_last=last)
        scores = [BINS, LOW, HIGH] if self.binned else [pl.col(LOW).alias("score")]
        return in_order.select(
            *(pl.col(key).cast(pl.String) if key in self.model_keys else key for key in self.keys),
            *scores,
            *SUMS,
        )


def count(rows: Rows, binning: Binning) -> CountTable:
    """Count checked rows."""
    if binning:
        bins = pl.lit(bins_of(binning.parts), pl.Int64).alias(BINS)
        added = add_up_in_bins(rows, binning, binning.parts).with_columns(bins)
    else:
        added = add_up(row_sums(rows), rows.keys, pl.col(LOW))
    return CountTable(check_labels(added, rows.keys), rows.keys, bool(binning), rows.model_keys)


def merge(tables: Sequence[CountTable], bins: int | None) -> CountTable:
    """Add up tables of the same groups, in the widest of their bins and ``bins``."""
    binned = bins is not None or any(table.binned for table in tables)
    alike = frames_alike("counts", [table.frame for table in tables], LOW, HIGH)
    parts = pl.concat(alike, how="diagonal_relaxed")
    keys = tables[0].keys
    if binned:
        requested = pl.lit(None if bins is None else bins_of(Binning(bins).parts), pl.Int64)
        widest = [pl.col(BINS).min()] if BINS in parts.collect_schema() else []
        parts = parts.with_columns(pl.min_horizontal(*widest, requested).alias(BINS))
    by = [*keys, BINS] if binned else keys
    return CountTable(add_up(parts, by, _bin_number(binned=binned)), keys, binned)


def read_count_tables(
    argument: str,
    frames: Sequence[pl.DataFrame | pl.LazyFrame],
    names: Sequence[str] | None = None,
    stacked: Sequence[str] = (),
) -> list[CountTable]:
    """Check tables of counts, which may have names, and that they have the same groups.

    A table whose name is among the ``stacked`` may hold several tables.
    """
    if not isinstance(frames, Sequence) or not frames:
        reject_type(argument, "be one or several tables of `score_counts`", frames)
    named = zip(frames, names or [""] * len(frames), strict=True)
    tables = [read_count_table(argument, frame, once=name not in stacked) for frame, name in named]
    check_same_keys(argument, tables, names)
    return tables


def check_same_keys(
    argument: str, parts: Sequence[CountTable | Rows], names: Sequence[str] | None = None
) -> None:
    """Check that parts of the data have the same groups."""
    places = (f"number {number}" for number in range(2, len(parts) + 1))
    called = names or ["the first", *places]
    first = _types_of_keys(parts[0])
    for name, part in zip(called, parts, strict=True):
        types = _types_of_keys(part)
        if types != first:
            msg = (
                f"`{argument}` must all have the same groups; "
                f"found {first} in {called[0]} and {types} in {name}"
            )
            raise ValueError(msg)


def read_count_table(
    argument: str, frame: pl.DataFrame | pl.LazyFrame, *, once: bool = True
) -> CountTable:
    """Check that a frame is a table of counts."""
    if not isinstance(frame, pl.DataFrame | pl.LazyFrame):
        reject_type(argument, "be a table of `score_counts`", frame)
    schema = frame.lazy().collect_schema()
    binned = BINS in schema
    scores = [*_BINNED] if binned else [pl.col("score").alias(name) for name in (LOW, HIGH)]
    for name in (*(_BINNED if binned else _EXACT), *SUMS):
        if name not in schema or not schema[name].is_numeric():
            found = f"{name!r} of type {schema[name]}" if name in schema else f"no {name!r}"
            msg = f"`{argument}` must be a table of `score_counts`; found {found} in {[*schema]}"
            raise ValueError(msg)
    keys = [name for name in schema if name not in STATE_COLUMNS]
    _check_names(argument, schema, binned=binned)
    counts = checked(argument, frame.lazy().select(*keys, *scores, *SUMS), keys, once=once)
    # A DataFrame is checked once, here; a LazyFrame whenever it is collected.
    eager = isinstance(frame, pl.DataFrame)
    return CountTable(collect(counts).lazy() if eager else counts, keys, binned)


def _check_names(argument: str, schema: pl.Schema, *, binned: bool) -> None:
    """Check that the columns that are not of the counts can be groups."""
    for name in schema:
        if name in (_EXACT if binned else _BINNED):
            found = f"{name!r} and {BINS if binned else 'score'!r}"
            msg = f"`{argument}` must be by score or in bins; found {found} in {[*schema]}"
            raise ValueError(msg)
        if name.startswith("__"):
            msg = f"`{argument}` must have groups without two underscores first; found {name!r}"
            raise ValueError(msg)


def _bin_number(*, binned: bool) -> pl.Expr:
    """Number the bin of each row; a score is its own number."""
    low = pl.col(LOW)
    return score_bin(low, parts_of(pl.col(BINS))) if binned else low


def _types_of_keys(part: CountTable | Rows) -> dict[str, str]:
    schema = part.frame.select(part.keys).collect_schema()
    return {name: str(dtype) for name, dtype in sorted(schema.items())}


def is_counts(frame: object) -> bool:
    """Whether a frame holds counts instead of rows."""
    return isinstance(frame, CountTable)


def bins_of_counts(frame: object) -> int | None:
    """Return the number of bins of counts; None for counts by score and for rows."""
    if not isinstance(frame, CountTable) or not frame.binned:
        return None
    bins: int | None = collect(frame.frame.select(pl.col(BINS).min())).item()
    return bins
