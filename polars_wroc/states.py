"""Tables of counts by score, in and out: checked and laid out here and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

from polars_wroc.binning import Binning, bins_of, parts_of, score_bin
from polars_wroc.counts import (
    COUNTS,
    HIGH,
    LOW,
    SUMS,
    add_up,
    add_up_in_bins,
    check_labels,
    contributions,
    rows_of,
    with_common_score,
)
from polars_wroc.inputs import unless
from polars_wroc.options import reject_type
from polars_wroc.rows import MODEL, Rows, collect
from polars_wroc.score_types import frames_alike

BINS = "bins"
_LEAST_BINS = bins_of(1)
_EXACT, _BINNED = ("score",), (BINS, LOW, HIGH)
STATE_COLUMNS = (*_EXACT, *_BINNED, *SUMS)


@dataclass(frozen=True)
class State:
    """Counts by score: keys, the range of scores, sums, and of bins how many these are."""

    frame: pl.LazyFrame
    keys: list[str]
    binned: bool
    # The keys whose values keep the order in which the caller named them.
    ordered: list[str] = field(default_factory=list)

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
        return rows_of(added, keys, models, binned=self.binned)

    def table(self) -> pl.LazyFrame:
        """Lay out the counts as users see them."""
        last = [*(False for _ in self.keys), True]
        ordered = self.frame.sort(*self.keys, LOW, descending=last, nulls_last=last)
        scores = [BINS, LOW, HIGH] if self.binned else [pl.col(LOW).alias("score")]
        return ordered.select(
            *(pl.col(key).cast(pl.String) if key in self.ordered else key for key in self.keys),
            *scores,
            *SUMS,
        )


def count(rows: Rows, binning: Binning) -> State:
    """Count checked rows."""
    if binning:
        bins = pl.lit(bins_of(binning.parts), pl.Int64).alias(BINS)
        added = add_up_in_bins(rows, binning, binning.parts).with_columns(bins)
    else:
        added = add_up(contributions(rows), rows.keys, pl.col(LOW))
    return State(check_labels(added, rows.keys), rows.keys, bool(binning), rows.ordered)


def merge(states: Sequence[State], bins: int | None) -> State:
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
    return State(add_up(parts, [*keys, *beside], _together(binned=binned)), keys, binned)


def read_states(
    argument: str,
    frames: Sequence[pl.DataFrame | pl.LazyFrame],
    names: Sequence[str] | None = None,
) -> list[State]:
    """Check tables of counts, and that they are of the same groups; they may have names."""
    if not isinstance(frames, Sequence) or not frames:
        reject_type(argument, "be one or several tables of `score_counts`", frames)
    states = [read_state(argument, frame) for frame in frames]
    check_same_keys(argument, states, names)
    return states


def check_same_keys(
    argument: str, parts: Sequence[State | Rows], names: Sequence[str] | None = None
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


def read_state(argument: str, frame: pl.DataFrame | pl.LazyFrame) -> State:
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
    sums = [_checked_sum(argument, name) for name in SUMS]
    checked = frame.lazy().select(*keys, *scores, *sums).with_columns(_checked_range(argument))
    if binned:
        whole = (pl.col(BINS) >= _LEAST_BINS).fill_null(value=False)
        rule = f"`{argument}` must hold in column 'bins' how many there are, {_LEAST_BINS} or more"
        checked = checked.with_columns(pl.when(unless(whole, rule, pl.col(BINS))).then(BINS))
    return State(checked, keys, binned)


def _checked_range(argument: str) -> pl.Expr:
    """Let the range of scores through where it is one, and null where rows lack a score."""
    low, high = pl.col(LOW), pl.col(HIGH)
    # NaN is above all numbers.
    ordered = (low <= high) & (high.cast(pl.Float64) <= float("inf"))
    missing = low.is_null() & high.is_null() & (pl.col("n_pos") + pl.col("n_neg") == 0)
    rule = f"`{argument}` must hold scores that are numbers, the lowest of a bin first"
    good = ordered.fill_null(value=False) | missing
    return pl.when(unless(good, rule, pl.format("{} to {}", low, high))).then(LOW).alias(LOW)


def _checked_sum(argument: str, name: str) -> pl.Expr:
    value = pl.col(name).cast(pl.Int64 if name in COUNTS else pl.Float64)
    good = (value >= 0).fill_null(value=False)
    if name in COUNTS:
        rule = f"`{argument}` must hold whole numbers, zero or more in column {name!r}"
        return pl.when(unless(good & (pl.col(name) == value), rule, pl.col(name))).then(value)
    # Sums of powers may be more than a number where those of weights are not.
    good &= value.is_finite() if name in ("w_pos", "w_neg") else ~value.is_nan()
    rule = f"`{argument}` must hold numbers that are finite and zero or more in column {name!r}"
    return pl.when(unless(good, rule, value)).then(value).alias(name)


def _together(*, binned: bool) -> pl.Expr:
    """Number what is added up."""
    low = pl.col(LOW)
    return score_bin(low, parts_of(pl.col(BINS))) if binned else low


def _types_of_keys(part: State | Rows) -> dict[str, str]:
    schema = part.frame.select(part.keys).collect_schema()
    return {name: str(dtype) for name, dtype in sorted(schema.items())}


def is_counts(frame: object) -> bool:
    """Whether counts stand for the rows of a frame."""
    return isinstance(frame, State)


def bins_of_counts(frame: object) -> int | None:
    """Say in how many bins counts are; None for those by score and for rows."""
    if not isinstance(frame, State) or not frame.binned:
        return None
    found: int | None = collect(frame.frame.select(pl.col(BINS).min())).item()
    return found
