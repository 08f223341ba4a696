"""Tables of counts by score: made from rows, merged, and checked when users pass them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import polars as pl

from polars_wroc import checks
from polars_wroc.bounds import Bins
from polars_wroc.calls import check_call
from polars_wroc.checks import reject_type
from polars_wroc.counts.count_rules import BINS, LABELLED, bin_number, check_counts
from polars_wroc.counts.score_sums import (
    BIN,
    COUNTS,
    HIGH,
    LOW,
    SUMS,
    Binning,
    add_up_bins,
    add_up_in_bins,
    bins_of,
    check_labels,
    row_sums,
    rows_from_counts,
    with_common_score,
)
from polars_wroc.inputs.columns import MODEL, SCORE, SCORE_HIGH, SELECTED, internal_keys
from polars_wroc.inputs.designs import GivenDesign
from polars_wroc.inputs.frames import frames_alike, named_keys
from polars_wroc.inputs.rows import MISSING_MARKS, IntoColumns, MissingRows, PlannedRows, RowSource
from polars_wroc.queries import aggregate, collect, join_on_keys, require_at_collect

_EXACT, _BINNED = ("score",), (BINS, LOW, HIGH)
STATE_COLUMNS = (*_EXACT, *_BINNED, *SUMS, LABELLED)


PartT = TypeVar("PartT", "CountTable", PlannedRows)


@dataclass(frozen=True)
class CountTable(RowSource):
    """Counts by score: keys, lowest and highest score, sums and, if binned, the number of bins.

    The column `LABELLED` has the same value everywhere; without the column there are labels.
    """

    frame: pl.LazyFrame
    keys: list[str]
    is_binned: bool
    # The keys whose values keep the order in which the caller named them.
    model_keys: list[str] = field(default_factory=list)
    # The caller's names of the keys, without the model.
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def named_frame(self) -> pl.LazyFrame:
        """The counts, with the groups under the caller's names."""
        groups = [pl.col(key).alias(name) for key, name in self.names.items()]
        return self.frame.select(*groups, pl.exclude([*self.names]))

    @property
    def groups(self) -> pl.LazyFrame:
        """The groups alone, under the caller's names."""
        return self.frame.select(pl.col(key).alias(name) for key, name in self.names.items())

    def rows(self, by: dict[str, pl.Expr]) -> PlannedRows:
        """Turn the counts into rows, grouped by expressions of their keys and by model."""
        models = [key for key in self.keys if key == MODEL]
        names = internal_keys(by)
        keys, number = [*names, *models], bin_number(binned=self.is_binned)
        bins = [BINS] if self.is_binned else []
        groups = [by[name].alias(key) for key, name in names.items()]
        parts = self.named_frame.select(*groups, *models, *bins, LOW, HIGH, *SUMS)
        if self.is_binned:
            # Tables with different numbers of bins may have been stacked.
            parts = parts.with_columns(pl.col(BINS).min())
        added = with_common_score(add_up_bins(parts, [*keys, *bins], number), models, number)
        return replace(rows_from_counts(added, keys, models, binned=self.is_binned), names=names)

    def bins(self) -> int | None:
        """Return the number of bins; None for counts by score."""
        if not self.is_binned:
            return None
        bins: int | None = collect(self.frame.select(pl.col(BINS).min())).item()
        return bins

    @property
    def has_labels(self) -> bool:
        """Whether the rows had labels."""
        return not _marks(self.frame)

    def with_labels(self, purpose: str) -> CountTable:
        """Raise at collect for counts of rows without a label."""
        if not _marks(self.frame):
            return self
        rule = f"`counts` must have labels for `{purpose}`"
        there = require_at_collect(pl.col(LABELLED), rule, pl.lit("counts of rows without a label"))
        return replace(self, frame=self.frame.filter(there))

    def missing(self, by: IntoColumns, complete: Sequence[str] = ()) -> MissingRows:
        """Return the numbers of rows without a group; counts know of no other missing values.

        Only rows with a value in each of the ``complete`` groups are counted.
        """
        groups, rows = named_keys(by, self.groups, "by"), pl.sum_horizontal(COUNTS)
        known = pl.all_horizontal(True, *(groups[name].is_not_null() for name in complete))  # noqa: FBT003
        missing = {
            str(i): rows.filter(key.is_null() & known).sum()
            for i, key in enumerate(groups.values())
        }
        # Every model counts all rows.
        counts_of_models = collect(
            aggregate(self.named_frame, [MODEL] if MODEL in self.keys else [], missing)
        )
        counts = counts_of_models.select(pl.col([*missing]).max()).row(0)
        return MissingRows(dict(zip(groups, counts, strict=True)))

    def table(self) -> pl.LazyFrame:
        """Return the counts as users see them."""
        last = [*(False for _ in self.keys), True]
        ordered = self.frame.sort(*self.keys, LOW, descending=last, nulls_last=last)
        if not self.is_binned:
            ordered = ordered.rename({LOW: "score"})
        rows = PlannedRows(ordered, self.keys, self.model_keys, names=self.names)
        scores = _BINNED if self.is_binned else _EXACT
        return rows.sorted_result(ordered, [*scores, *SUMS, *_marks(ordered)])


def count(rows: PlannedRows, binning: Binning, *, labelled: bool = True) -> CountTable:
    """Count checked rows, which are all negative if they are not ``labelled``."""
    if binning:
        bins = pl.lit(bins_of(binning.parts), pl.Int64).alias(BINS)
        added = add_up_in_bins(rows, binning, binning.parts).with_columns(bins)
    else:
        added = add_up_bins(row_sums(rows), rows.keys, pl.col(LOW))
    counts = check_labels(added, rows.keys)
    if not labelled:
        counts = counts.with_columns(pl.lit(value=False).alias(LABELLED))
    return CountTable(counts, rows.keys, bool(binning), rows.model_keys, rows.names)


@check_call
def merge(
    tables: Sequence[CountTable], bins: Bins | None, names: Sequence[str] | None = None
) -> CountTable:
    """Return the sum of tables of the same groups, in the widest of their bins and ``bins``.

    Messages use the ``names`` of the tables, or their numbers. The command line calls this too.
    """
    binned = bins is not None or any(table.is_binned for table in tables)
    shown = None if names is None else [f"the score in {name}" for name in names]
    alike = frames_alike("counts", [table.frame for table in tables], LOW, HIGH, shown=shown)
    parts = pl.concat(alike, how="diagonal_relaxed")
    keys = tables[0].keys
    if binned:
        requested = pl.lit(None if bins is None else bins_of(Binning(bins).parts), pl.Int64)
        widest = [pl.col(BINS).min()] if BINS in parts.collect_schema() else []
        parts = parts.with_columns(pl.min_horizontal(*widest, requested).alias(BINS))
    by = [*keys, *([BINS] if binned else []), *_marks(parts)]
    added = add_up_bins(_unless_mixed(parts), by, bin_number(binned=binned))
    return replace(tables[0], frame=added, is_binned=binned)


def _unless_mixed(parts: pl.LazyFrame) -> pl.LazyFrame:
    """Raise at collect where counts with labels and without are to be added up."""
    if not _marks(parts):
        return parts
    labelled = pl.col(LABELLED)
    alike = require_at_collect(
        labelled == labelled.first(),
        "`counts` must all have labels, or none of them",
        pl.lit("counts with labels and without"),
    )
    return parts.with_columns(labelled.fill_null(value=True)).filter(alike)


def _marks(frame: pl.LazyFrame) -> list[str]:
    """Name the column `LABELLED` if there is one."""
    return [LABELLED] if LABELLED in frame.collect_schema() else []


def read_count_tables(
    argument: str,
    frames: Sequence[pl.DataFrame | pl.LazyFrame],
    names: Sequence[str] | None = None,
    stacked: Sequence[str] = (),
) -> list[CountTable]:
    """Return checked tables of counts, which must have the same groups.

    Tables named in ``stacked`` may hold several tables.
    """
    if not isinstance(frames, Sequence) or not frames:
        reject_type(argument, "be a list of tables of `score_counts`", frames)
    named_frame = zip(frames, names or [""] * len(frames), strict=True)
    tables = [
        read_count_table(argument, frame, once=name not in stacked) for frame, name in named_frame
    ]
    return with_same_keys(argument, tables, names)


def with_same_keys(
    argument: str, parts: Sequence[PartT], names: Sequence[str] | None = None
) -> list[PartT]:
    """Return parts of the data with the same keys, after a check that groups are the same."""
    places: list[str] = [f"number {number}" for number in range(2, len(parts) + 1)]
    called: Sequence[str] = names or ["the first", *places]
    first = _types_of_keys(parts[0])
    for name, part in zip(called, parts, strict=True):
        types = _types_of_keys(part)
        if types != first:
            msg = (
                f"`{argument}` must all have the same groups; "
                f"found {_write_types(first)} in {called[0]} and {_write_types(types)} in {name}"
            )
            raise ValueError(msg)
    return [_with_keys_of(parts[0], part) for part in parts]


def _with_keys_of(first: PartT, part: PartT) -> PartT:
    """Return a part with the keys of the first part, which may be in another order."""
    if part.names == first.names:
        return part
    keys = {name: key for key, name in first.names.items()}
    renamed = [pl.col(key).alias(keys[name]) for key, name in part.names.items()]
    frame = part.frame.select(*renamed, pl.exclude([*part.names]))
    return replace(part, frame=frame, keys=first.keys, names=first.names)


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
            checks.reject(argument, "be a table of `score_counts`", f"{found} in {[*schema]}")
    marks = _marks(frame.lazy())
    if marks and schema[LABELLED] != pl.Boolean:
        checks.reject(argument, f"have a Boolean {LABELLED!r}", f"type {schema[LABELLED]}")
    for name in schema:
        if name in (_EXACT if binned else _BINNED):
            found = f"{name!r} and {BINS if binned else 'score'!r}"
            checks.reject(argument, "be by score or in bins", f"{found} in {[*schema]}")
    names = internal_keys(name for name in schema if name not in (*STATE_COLUMNS, MODEL))
    models = {MODEL: MODEL} if MODEL in schema else {}
    keys = names | models
    groups = (pl.col(name).alias(key) for key, name in keys.items())
    columns = frame.lazy().select(*groups, *scores, *SUMS, *marks)
    counts = check_counts(argument, columns, keys, once=once)
    # A DataFrame is checked once, here; a LazyFrame whenever it is collected.
    eager = isinstance(frame, pl.DataFrame)
    return CountTable(collect(counts).lazy() if eager else counts, [*keys], binned, names=names)


def _write_types(types: Mapping[str, str]) -> str:
    """Write the groups with their types in words."""
    return " and ".join(f"{name} of type {dtype}" for name, dtype in types.items()) or "none"


def _types_of_keys(part: CountTable | PlannedRows) -> dict[str, str]:
    schema = part.frame.select(part.keys).collect_schema()
    types = {part.names.get(key, key): str(dtype) for key, dtype in schema.items()}
    return dict(sorted(types.items()))


# The proportion of pairs within a bin, and the end of names of totals.
_PAIRS, _ALL = "__pairs", "_all"


def refuse_design_in_bins(design: GivenDesign, binning: Binning) -> None:
    """Raise for rows of a design, which cannot be pooled."""
    if binning:
        options = checks.quote_names(
            checks.list_given(bins=binning.bins, tolerance=binning.tolerance)
        )
        design.require_none(f"with {options}, which keeps no single rows")


def pool_in_bins(rows: PlannedRows, binning: Binning) -> PlannedRows:
    """Pool the rows of a class that share a score bin, if there is a binning.

    A tolerance holds for each group of the keys.
    """
    if not binning:
        return rows
    # Rows that miss different values, or have different recorded decisions, must be counted
    # separately.
    apart = (MISSING_MARKS, SELECTED)
    marks = [name for name in apart if name in rows.frame.collect_schema()]
    marked = rows.group_by([*rows.group_keys, *marks])
    if binning.tolerance is None:
        counts = _count_in_bins(marked, binning, binning.parts)
    else:
        counts = _divide(marked, binning, rows.keys)
    pooled = rows_from_counts(check_labels(counts, marked.keys), marked.keys, rows.model_keys)
    return replace(pooled, keys=rows.keys, names=rows.names)


def _count_in_bins(rows: PlannedRows, binning: Binning, parts: int) -> pl.LazyFrame:
    """Return counts in bins that are the same in all groups."""
    counts = add_up_in_bins(rows, binning, parts)
    return with_common_score(counts, rows.model_keys, binning.number(pl.col(LOW), parts))


def _divide(rows: PlannedRows, binning: Binning, groups: Sequence[str]) -> pl.LazyFrame:
    """Return counts in bins, divided where bounds of a group's AUC would be too wide.

    The bins with the most pairs are divided into finer ones, and the finer ones with the most
    pairs into single scores, until the pairs left within bins are at most the tolerance times
    all pairs. A bin is divided in all groups or in none, so that the counts of groups can be added
    up.
    """
    assert binning.tolerance is not None
    on = [*rows.model_keys, BIN]
    kept: list[pl.LazyFrame] = []
    totals: pl.LazyFrame | None = None
    for parts in (binning.parts, binning.finer_parts):
        # Computed once, since sums that differ in the last digits could divide a bin in one place
        # only.
        number = binning.number(pl.col(LOW), parts).alias(BIN)
        counts = _count_in_bins(rows, binning, parts).with_columns(number).cache()
        if totals is None:
            sums = {f"{name}{_ALL}": pl.col(name).sum() for name in ("w_pos", "w_neg")}
            totals = aggregate(counts, groups, sums)
        divided = _too_many_pairs(counts, groups, totals, binning.tolerance / 2)
        divided = divided.select(on).unique().cache()
        kept.append(counts.join(divided, on=on, how="anti").drop(BIN))
        numbered = rows.frame.with_columns(binning.number(pl.col(SCORE), parts).alias(BIN))
        left = numbered.join(divided, on=on, how="semi").drop(BIN)
        rows = replace(rows, frame=left)
    scores = with_common_score(
        add_up_bins(row_sums(rows), rows.keys, pl.col(LOW)), rows.model_keys, pl.col(LOW)
    )
    return pl.concat([*kept, scores])


def _too_many_pairs(
    counts: pl.LazyFrame, keys: Sequence[str], totals: pl.LazyFrame, allowed: float
) -> pl.LazyFrame:
    """Return the bins with the most pairs; the others have at most the share ``allowed``."""
    several = pl.col(SCORE) < pl.col(SCORE_HIGH)
    sums = counts.filter(several).group_by(*keys, BIN).agg(pl.col("w_pos", "w_neg").sum())
    # Shares, since products of weights may overflow or underflow.
    shares = [pl.col(name) / pl.col(f"{name}{_ALL}") for name in ("w_pos", "w_neg")]
    pairs = pl.col(_PAIRS)
    within = pairs.cum_sum().over(keys or pl.lit(1), order_by=pairs)
    both = join_on_keys(sums, totals, keys).filter(shares[0].is_finite() & shares[1].is_finite())
    paired = both.with_columns((shares[0] * shares[1]).alias(_PAIRS))
    return paired.filter(within > allowed)
