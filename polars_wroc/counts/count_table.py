"""Tables of counts by score, in and out: checked and laid out here and nowhere else."""

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
    """Counts by score: keys, the range of scores, sums, and of bins how many these are."""

    frame: pl.LazyFrame
    keys: list[str]
    binned: bool
    # The keys whose values keep the order in which the caller named them.
    model_keys: list[str] = field(default_factory=list)

    def rows(self, by: dict[str, pl.Expr]) -> Rows:
        """Turn the counts into rows of groups that are made of theirs; models stay apart."""
        models = [key for key in self.keys if key == MODEL]
        keys, together = [*by, *models], _together(binned=self.binned)
        beside = [BINS] if self.binned else []
        groups = [expression.alias(name) for name, expression in by.items()]
        parts = self.frame.select(*groups, *models, *beside, LOW, HIGH, *SUMS)
        if self.binned:
            # Tables of different bins may have been stacked.
            parts = parts.with_columns(pl.col(BINS).min())
        added = with_common_score(add_up(parts, [*keys, *beside], together), models, together)
        return rows_from_counts(added, keys, models, binned=self.binned)

    def multiplicity(self) -> pl.Expr:
        """Add up the rows that are counted."""
        return pl.sum_horizontal(COUNTS)

    def table(self) -> pl.LazyFrame:
        """Lay out the counts as users see them."""
        last = [*(False for _ in self.keys), True]
        model_keys = self.frame.sort(*self.keys, LOW, descending=last, nulls_last=last)
        scores = [BINS, LOW, HIGH] if self.binned else [pl.col(LOW).alias("score")]
        return model_keys.select(
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


def merge(states: Sequence[CountTable], bins: int | None) -> CountTable:
    """Add up states of the same groups, in the widest bins that there are or are asked for."""
    binned = bins is not None or any(state.binned for state in states)
    alike = frames_alike("counts", [state.frame for state in states], LOW, HIGH)
    parts = pl.concat(alike, how="diagonal_relaxed")
    keys = states[0].keys
    if binned:
        asked = pl.lit(None if bins is None else bins_of(Binning(bins).parts), pl.Int64)
        widest = [pl.col(BINS).min()] if BINS in parts.collect_schema() else []
        parts = parts.with_columns(pl.min_horizontal(*widest, asked).alias(BINS))
    beside = [BINS] if binned else []
    return CountTable(add_up(parts, [*keys, *beside], _together(binned=binned)), keys, binned)


def read_count_tables(
    argument: str,
    frames: Sequence[pl.DataFrame | pl.LazyFrame],
    names: Sequence[str] | None = None,
    stacked: Sequence[str] = (),
) -> list[CountTable]:
    """Check tables of counts, and that they are of the same groups; they may have names.

    What has one of the names of those that are ``stacked`` may be several tables.
    """
    if not isinstance(frames, Sequence) or not frames:
        reject_type(argument, "be one or several tables of `score_counts`", frames)
    named = zip(frames, names or [""] * len(frames), strict=True)
    states = [read_count_table(argument, frame, once=name not in stacked) for frame, name in named]
    check_same_keys(argument, states, names)
    return states


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
    """Check that a table is one of counts."""
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
    # Frames are checked once and for all, plans whenever they run.
    eager = isinstance(frame, pl.DataFrame)
    return CountTable(collect(counts).lazy() if eager else counts, keys, binned)


def _check_names(argument: str, schema: pl.Schema, *, binned: bool) -> None:
    """Check that columns beside those of the counts can be groups."""
    for name in schema:
        if name in (_EXACT if binned else _BINNED):
            found = f"{name!r} beside {BINS if binned else 'score'!r}"
            msg = f"`{argument}` must be by score or in bins; found {found} in {[*schema]}"
            raise ValueError(msg)
        if name.startswith("__"):
            msg = f"`{argument}` must have groups without two underscores first; found {name!r}"
            raise ValueError(msg)


def _together(*, binned: bool) -> pl.Expr:
    """Number what is added up."""
    low = pl.col(LOW)
    return score_bin(low, parts_of(pl.col(BINS))) if binned else low


def _types_of_keys(part: CountTable | Rows) -> dict[str, str]:
    schema = part.frame.select(part.keys).collect_schema()
    return {name: str(dtype) for name, dtype in sorted(schema.items())}


def is_counts(frame: object) -> bool:
    """Whether counts stand for the rows of a frame."""
    return isinstance(frame, CountTable)


def bins_of_counts(frame: object) -> int | None:
    """Say in how many bins counts are; None for those by score and for rows."""
    if not isinstance(frame, CountTable) or not frame.binned:
        return None
    found: int | None = collect(frame.frame.select(pl.col(BINS).min())).item()
    return found
