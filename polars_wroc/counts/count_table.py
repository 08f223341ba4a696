"""Tables of counts by score, in and out: checked and laid out here and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

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
from polars_wroc.inputs.names import MODEL, internal_keys
from polars_wroc.inputs.rows import Rows, RowSource
from polars_wroc.inputs.score_types import frames_alike
from polars_wroc.plans.collect import collect

_EXACT, _BINNED = ("score",), (BINS, LOW, HIGH)
STATE_COLUMNS = (*_EXACT, *_BINNED, *SUMS)


PartT = TypeVar("PartT", "CountTable", Rows)


@dataclass(frozen=True)
class CountTable(RowSource):
    """Counts by score: keys, the range of scores, sums, and of bins how many these are."""

    frame: pl.LazyFrame
    keys: list[str]
    binned: bool
    # The keys whose values keep the order in which the caller named them.
    model_keys: list[str] = field(default_factory=list)
    # What the caller calls the keys; the model goes by its own name.
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def named(self) -> pl.LazyFrame:
        """The counts, with the groups under the caller's names."""
        groups = [pl.col(key).alias(name) for key, name in self.names.items()]
        return self.frame.select(*groups, pl.exclude([*self.names]))

    @property
    def groups(self) -> pl.LazyFrame:
        """The groups alone, under the caller's names."""
        return self.frame.select(pl.col(key).alias(name) for key, name in self.names.items())

    def rows(self, by: dict[str, pl.Expr]) -> Rows:
        """Turn the counts into rows of groups that are made of theirs; models stay apart."""
        models = [key for key in self.keys if key == MODEL]
        names = internal_keys(by)
        keys, together = [*names, *models], _together(binned=self.binned)
        beside = [BINS] if self.binned else []
        groups = [by[name].alias(key) for key, name in names.items()]
        parts = self.named.select(*groups, *models, *beside, LOW, HIGH, *SUMS)
        if self.binned:
            # Tables of different bins may have been stacked.
            parts = parts.with_columns(pl.col(BINS).min())
        added = with_common_score(add_up(parts, [*keys, *beside], together), models, together)
        return replace(rows_from_counts(added, keys, models, binned=self.binned), names=names)

    def multiplicity(self) -> pl.Expr:
        """Add up the rows that are counted."""
        return pl.sum_horizontal(COUNTS)

    def table(self) -> pl.LazyFrame:
        """Lay out the counts as users see them."""
        last = [*(False for _ in self.keys), True]
        ordered = self.frame.sort(*self.keys, LOW, descending=last, nulls_last=last)
        if not self.binned:
            ordered = ordered.rename({LOW: "score"})
        rows = Rows(ordered, self.keys, self.model_keys, names=self.names)
        return rows.sorted_result(ordered, [*(_BINNED if self.binned else _EXACT), *SUMS])


def count(rows: Rows, binning: Binning) -> CountTable:
    """Count checked rows."""
    if binning:
        bins = pl.lit(bins_of(binning.parts), pl.Int64).alias(BINS)
        added = add_up_in_bins(rows, binning, binning.parts).with_columns(bins)
    else:
        added = add_up(row_sums(rows), rows.keys, pl.col(LOW))
    state = check_labels(added, rows.keys)
    return CountTable(state, rows.keys, bool(binning), rows.model_keys, rows.names)


def merge(states: Sequence[CountTable], bins: int | None) -> CountTable:
    """Add up states of the same groups, in the widest bins that there are or are asked for."""
    binned = bins is not None or any(state.binned for state in states)
    alike = frames_alike("counts", [state.frame for state in states], LOW, HIGH)
    parts = pl.concat(alike, how="diagonal_relaxed")
    keys, names = states[0].keys, states[0].names
    if binned:
        asked = pl.lit(None if bins is None else bins_of(Binning(bins).parts), pl.Int64)
        widest = [pl.col(BINS).min()] if BINS in parts.collect_schema() else []
        parts = parts.with_columns(pl.min_horizontal(*widest, asked).alias(BINS))
    beside = [BINS] if binned else []
    added = add_up(parts, [*keys, *beside], _together(binned=binned))
    return CountTable(added, keys, binned, names=names)


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
    return with_same_keys(argument, states, names)


def with_same_keys(
    argument: str, parts: Sequence[PartT], names: Sequence[str] | None = None
) -> list[PartT]:
    """Check that parts of the data have the same groups, and give these the same keys."""
    places: list[str] = [f"number {number}" for number in range(2, len(parts) + 1)]
    called: Sequence[str] = names or ["the first", *places]
    first = _types_of_keys(parts[0])
    for name, part in zip(called, parts, strict=True):
        types = _types_of_keys(part)
        if types != first:
            msg = (
                f"`{argument}` must all have the same groups; "
                f"found {first} in {called[0]} and {types} in {name}"
            )
            raise ValueError(msg)
    return [_with_keys_of(parts[0], part) for part in parts]


def _with_keys_of(first: PartT, part: PartT) -> PartT:
    """Rename the keys of a part as the first part has them, whatever their order."""
    if part.names == first.names:
        return part
    keys = {name: key for key, name in first.names.items()}
    renamed = [pl.col(key).alias(keys[name]) for key, name in part.names.items()]
    frame = part.frame.select(*renamed, pl.exclude([*part.names]))
    return replace(part, frame=frame, keys=first.keys, names=first.names)


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
    _check_names(argument, schema, binned=binned)
    names = internal_keys(name for name in schema if name not in (*STATE_COLUMNS, MODEL))
    models = {MODEL: MODEL} if MODEL in schema else {}
    keys = names | models
    groups = (pl.col(name).alias(key) for key, name in keys.items())
    counts = checked(argument, frame.lazy().select(*groups, *scores, *SUMS), keys, once=once)
    # Frames are checked once and for all, plans whenever they run.
    eager = isinstance(frame, pl.DataFrame)
    return CountTable(collect(counts).lazy() if eager else counts, [*keys], binned, names=names)


def _check_names(argument: str, schema: pl.Schema, *, binned: bool) -> None:
    """Check that no column is of counts of the other kind."""
    for name in schema:
        if name in (_EXACT if binned else _BINNED):
            found = f"{name!r} beside {BINS if binned else 'score'!r}"
            msg = f"`{argument}` must be by score or in bins; found {found} in {[*schema]}"
            raise ValueError(msg)


def _together(*, binned: bool) -> pl.Expr:
    """Number what is added up."""
    low = pl.col(LOW)
    return score_bin(low, parts_of(pl.col(BINS))) if binned else low


def _types_of_keys(part: CountTable | Rows) -> dict[str, str]:
    schema = part.frame.select(part.keys).collect_schema()
    types = {part.names.get(key, key): str(dtype) for key, dtype in schema.items()}
    return dict(sorted(types.items()))


def is_counts(frame: object) -> bool:
    """Whether counts stand for the rows of a frame."""
    return isinstance(frame, CountTable)


def bins_of_counts(frame: object) -> int | None:
    """Say in how many bins counts are; None for those by score and for rows."""
    if not isinstance(frame, CountTable) or not frame.binned:
        return None
    found: int | None = collect(frame.frame.select(pl.col(BINS).min())).item()
    return found
