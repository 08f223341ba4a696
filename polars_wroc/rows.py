"""From a frame to arrays: the columns of a call, checks of their values, and results.

A public function reads its arguments into `Columns`, which checks their types against the schema,
and passes these to `table_of` with a function that makes a table from `Rows`. Values are checked
once the rows are read: immediately for a DataFrame, at collect for a LazyFrame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, NoReturn

import numpy as np
import polars as pl
from numpy.typing import NDArray

from polars_wroc import checks
from polars_wroc.arrays import Array, Ints, Mask
from polars_wroc.buckets import (
    EXACT_FLOATS,
    MOST_BUCKETS,
    CodedGroups,
    Codes,
    code_groups,
    move_to_buckets,
    number_groups,
    sort_groups,
    sort_into_groups,
)
from polars_wroc.checks import show_value
from polars_wroc.inputs.columns import (
    CLUSTER,
    LABEL,
    LABEL_RULE,
    MODEL,
    ROW_COUNT,
    ROW_CUBES,
    ROW_SQUARES,
    ROW_WEIGHT,
    SCORE,
    SCORE_HIGH,
    SELECTED,
    SEVERAL_SCORES,
    STRATUM,
    WEIGHT,
    Frequency,
    IntoColumn,
    IntoWeight,
    Typed,
    check_label_type,
    check_positives,
    column_of,
    exact,
    internal_keys,
    list_labels,
    literal,
    numeric,
    score_column,
)
from polars_wroc.inputs.designs import FPC, Design, GivenDesign, ReplicateWeights, read_design
from polars_wroc.inputs.expressions import (
    as_column,
    boolean_column,
    named_columns,
    typed_column,
    unit_columns,
)
from polars_wroc.inputs.frames import named_keys
from polars_wroc.inputs.rows import IntoColumns, PlannedRows, RowSource, read_source
from polars_wroc.looks import ConfidenceLevel, Looks, require_seen
from polars_wroc.queries import MIXED_LABELS, FrameT, collect, collect_all, is_eager
from polars_wroc.stats.designs import LonelyUnit, ReplicateUnits, SamplingUnits, Units
from polars_wroc.stats.levels import Level
from polars_wroc.steps import FloatType, RowCounts, ScoreBins, SegmentRows, round_to_type

# From this many rows on, threads move them, in chunks that fit into the processor's cache.
_MANY_ROWS = 1 << 18


class RowsError(ValueError):
    """A wrong value in rows, found when they are read."""


@dataclass(frozen=True)
class Sampling:
    """The sample design of rows: the sampling unit of each row, or replicate weights.

    ``unit`` numbers the sampling units. ``stratum`` is the number of each unit's stratum. For each
    stratum, ``size`` is the number of its units in the sample, and ``fraction`` the sampled
    fraction of its units in the population. ``replicates`` are columns of weights, with a factor
    for the squared deviation of each; in a jackknife each leaves out units. ``cluster`` has the
    caller's values of the rows' clusters.
    """

    unit: Ints
    stratum: Ints
    size: Array
    fraction: Array
    lonely: LonelyUnit = "null"
    replicates: Array | None = None
    factors: Array | None = None
    replicate_df: int | None = None
    is_jackknife: bool = False
    cluster: pl.Series | None = None

    @property
    def units(self) -> SamplingUnits:
        """The units of the design, without their rows."""
        if self.factors is not None:
            assert self.replicate_df is not None
            return ReplicateUnits(self.factors, self.replicate_df, self.is_jackknife)
        return Units(self.stratum, self.size, self.fraction, self.lonely)

    def at(self, places: Ints | Mask | slice) -> Sampling:
        """Return the design of some rows, in which all units still count."""
        replicates = None if self.replicates is None else self.replicates[:, places]
        unit = self.unit if self.replicates is not None else self.unit[places]
        cluster = self.cluster
        if cluster is not None:
            of_row = np.arange(len(cluster))[places]
            cluster = cluster.gather(of_row)
        return replace(self, unit=unit, replicates=replicates, cluster=cluster)


@dataclass(frozen=True)
class Rows:
    """The rows of a call as arrays, in the order of the frame, without rows of weight 0.

    ``weight`` is negative in rows of negatives, and NaN without a label, a weight or, if decisions
    are needed, a decision. A missing score is NaN. ``scores`` are named by their models. ``keys``
    has the columns that group the rows.
    """

    keys: pl.DataFrame
    scores: Mapping[str, Array]
    weight: Array
    counts: RowCounts | None = None
    bins: ScoreBins | None = None
    selected: Mask | None = None
    sample: Sampling | None = None
    # The weights of all rows, and whether they have a decision, if some have no label or decision.
    row_weight: Array | None = None
    decided: Mask | None = None
    # The model of each row of counts, which has no score by other models.
    model: NDArray[np.str_] | None = None
    # The types that scores came in, if they do not have 64 bits.
    score_types: Mapping[str, FloatType] = field(default_factory=dict)

    def at(self, places: Mask | slice) -> Rows:
        """Return some of the rows; all sampling units still count."""
        keys = self.keys
        if keys.width:
            keys = keys[places] if isinstance(places, slice) else keys.filter(places)
        return replace(
            self,
            keys=keys,
            scores={model: score[places] for model, score in self.scores.items()},
            weight=self.weight[places],
            counts=None if self.counts is None else self.counts.at(places),
            bins=None if self.bins is None else self.bins.at(places),
            selected=None if self.selected is None else self.selected[places],
            sample=None if self.sample is None else self.sample.at(places),
            row_weight=None if self.row_weight is None else self.row_weight[places],
            decided=None if self.decided is None else self.decided[places],
            model=None if self.model is None else self.model[places],
        )

    @property
    def lack_labels(self) -> bool:
        """Whether there may be rows without a label, but with a weight and a decision."""
        return self.row_weight is not None

    def ignore_labels(self, *, ignore_decisions: bool = False) -> Rows:
        """Return the rows as if there were no labels, so that all are negatives.

        Rows without a recorded decision are still missing, unless decisions are ignored too.
        """
        weight = np.abs(self.weight) if self.row_weight is None else self.row_weight
        if self.decided is not None and not ignore_decisions:
            weight = np.where(self.decided, weight, np.nan)
        return replace(self, weight=-weight, row_weight=None, decided=None)

    def complete(self, model: str) -> Mask:
        """Whether each row has a score, a label and a weight."""
        return ~np.isnan(self.scores[model]) & ~np.isnan(self.weight)

    def reach(self, model: str, threshold: float) -> Mask:
        """Return whether each score is at least a threshold, compared in the score's own type."""
        score_type = self.score_types.get(model, np.float64)
        return np.asarray(self.scores[model] >= round_to_type(threshold, score_type))

    @property
    def complete_in_all(self) -> Mask:
        """Whether each row has all scores, a label and a weight."""
        complete = [self.complete(model) for model in self.scores]
        return np.asarray(np.logical_and.reduce(complete))

    @property
    def n(self) -> Array:
        """The number of rows that each row stands for."""
        return np.ones(len(self.weight)) if self.counts is None else self.counts.n

    def segments(
        self,
        keys: Sequence[str],
        model: str | None = None,
        *,
        complete: Mask | None = None,
        ranks: bool = False,
    ) -> SegmentRows:
        """Return the complete rows, segment by segment, for one score.

        Segments are sorted by their ``keys``. Without a ``model`` the first score is taken. Rows
        that are not ``complete`` are counted as missing; by default these are the rows that lack
        the score, the label or the weight. The rows of a segment keep their order, unless the next
        task ``ranks`` them: then many rows are sorted by score at once.
        """
        model = next(iter(self.scores)) if model is None else model
        score = self.scores[model]
        complete = self.complete(model) if complete is None else complete
        # The rows of a single segment that keep their order need not be moved.
        is_moved = bool(keys) or ranks
        if is_moved and len(score) >= _MANY_ROWS:
            groups = code_groups(self.keys.select(keys), len(score))
            if groups is not None and groups.number <= MOST_BUCKETS:
                return self._sort_segments(groups, model, complete, ranks=ranks)
        segments, starts, order = sort_into_groups(self.keys.select(keys), len(score))
        missing = np.zeros(len(starts) - 1, np.int64)
        if not complete.all():
            taken = complete[order]
            segment = np.repeat(np.arange(len(missing)), np.diff(starts))
            missing = self._count_missing(model, order[~taken], segment[~taken], len(missing))
            order = order[taken]
            starts = np.append(0, np.bincount(segment[taken], minlength=len(missing)).cumsum())
        in_order = not keys and len(order) == len(score)
        places: Ints | slice = slice(None) if in_order else order
        return SegmentRows(
            segments,
            starts,
            order,
            score[places],
            self.weight[places],
            missing,
            None if self.counts is None else self.counts.at(places),
            self._find_bins(score, places, len(keys)),
            score_type=self.score_types.get(model, np.float64),
        )

    def _sort_segments(
        self, groups: CodedGroups, model: str, complete: Mask, *, ranks: bool
    ) -> SegmentRows:
        """Return the rows of large segments; if ranked, in descending order of the score."""
        score, weight, codes = self.scores[model], self.weight, groups.codes
        missing = np.zeros(groups.number, np.int64)
        taken = None
        if not complete.all():
            lost = np.flatnonzero(~complete)
            missing = self._count_missing(model, lost, codes[lost], groups.number)
            taken = np.flatnonzero(complete)
            score, weight, codes = score[taken], weight[taken], codes[taken]
        sort = sort_groups if ranks else move_to_buckets
        found = sort(codes, groups.number, [score, weight])
        order = found.places if taken is None else taken[found.places]
        score, weight = found.columns
        return SegmentRows(
            groups.keys,
            found.starts,
            order,
            score,
            weight,
            missing,
            None if self.counts is None else self.counts.at(order),
            self._find_bins(self.scores[model], order, groups.keys.width),
            in_order=ranks,
            score_type=self.score_types.get(model, np.float64),
        )

    def _count_missing(self, model: str, rows: Ints, segment: Ints | Codes, number: int) -> Ints:
        """Return the number of incomplete rows in each segment, from some of these rows."""
        if self.model is not None:
            # Counts of another model do not lack this score.
            is_own = self.model[rows] == model
            rows, segment = rows[is_own], segment[is_own]
        lost = np.bincount(segment, self.n[rows], number)
        return np.round(lost).astype(np.int64)

    def _find_bins(self, score: Array, places: Ints | slice, keys: int) -> ScoreBins | None:
        """Return the bins of rows; scores of a bin may differ between merged groups."""
        if self.bins is None:
            return None
        bins = self.bins
        if keys < self.keys.width:
            bins = bins.merge_scores(score)
        return bins.at(places)

    def count_complete(self) -> float:
        """Return the number of complete rows; with several scores, of the score with the most."""
        used = {model: np.where(self.complete(model), self.n, 0.0) for model in self.scores}
        if MODEL not in self.keys.columns:
            return float(max([1.0, *(each.sum() for each in used.values())]))
        # Rows of counts belong to one score each
        (counted,) = used.values()
        by_model = self.keys.select(MODEL, used=counted).group_by(MODEL).agg(pl.col("used").sum())
        return float(max([1.0, *by_model["used"]]))

    def level(self, level: ConfidenceLevel) -> Level:
        """Return a confidence level, at one look or at repeated looks at these rows."""
        return Level.at_look(level, self.count_complete)


def join_rows(parts: Sequence[Rows]) -> Rows:
    """Return the rows of several tables, without a design or bins, joined."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    counts = [part.counts for part in parts if part.counts is not None]
    selected = [part.selected for part in parts if part.selected is not None]
    types = [part.score_types for part in parts]
    row_weight = None
    if any(part.lack_labels for part in parts):
        row_weight = np.concatenate([-part.ignore_labels().weight for part in parts])
    return Rows(
        pl.concat([part.keys for part in parts], how="vertical_relaxed"),
        {model: np.concatenate([part.scores[model] for part in parts]) for model in first.scores},
        np.concatenate([part.weight for part in parts]),
        RowCounts(*map(np.concatenate, zip(*counts, strict=True))) if counts else None,
        selected=np.concatenate(selected) if selected else None,
        row_weight=row_weight,
        score_types=first.score_types if all(each == first.score_types for each in types) else {},
    )


def read_tables(columns: Sequence[Columns], tables: Sequence[pl.DataFrame]) -> Rows:
    """Return the rows of all tables as arrays, after a check of their values."""
    rows = join_rows([each.rows(table) for each, table in zip(columns, tables, strict=True)])
    if len(tables) > 1 and columns[0].pos_label is None:
        numbers = [
            each.find_negatives(table)
            for each, table in zip(columns, tables, strict=True)
            if LABEL in table.columns and table[LABEL].dtype.is_numeric()
        ]
        _refuse_mixed(numbers)
    return rows


def _refuse_mixed(tables: Sequence[pl.DataFrame]) -> None:
    """Raise for a group of `Columns.find_negatives` that has both 0 and -1 in some tables."""
    if not any(table["minus"].any() for table in tables):
        return
    written = pl.concat(tables, how="vertical_relaxed")
    groups = written.columns[:-2] or pl.lit(0)
    found = written.group_by(groups).agg(pl.col("zero", "minus").any())
    if (found["zero"] & found["minus"]).any():
        raise RowsError(MIXED_LABELS)


def require_exact(score: pl.Series, shown_as: str) -> None:
    """Raise for whole numbers that a float cannot hold."""
    if not score.dtype.is_integer() or not len(score):
        return
    low, high = score.min() or 0, score.max() or 0
    largest = max(abs(int(low)), abs(int(high)))  # type: ignore[arg-type]
    if largest > EXACT_FLOATS:
        found = f"{largest} in {shown_as}: rank it, as in pl.col(...).rank('dense')"
        checks.reject("score", "hold whole numbers up to 2**53", found)


def replicate_rows(sample: Sampling, segments: SegmentRows) -> list[SegmentRows]:
    """Yield the rows of segments with their full weights, then with each replicate's weights."""
    assert sample.replicates is not None
    side = np.sign(segments.weight)
    weights = [side * replicate_weights[segments.order] for replicate_weights in sample.replicates]
    if np.isnan(weights).any():
        rule = "not be null in complete rows"
        checks.reject("replicate_weights", rule, "null")
    return [segments, *(replace(segments, weight=weight) for weight in weights)]


def check_level(level: ConfidenceLevel, frame: object) -> ConfidenceLevel:
    """Return a checked confidence level, whose number of rows seen may still be open."""
    if isinstance(level, Looks) and not level.is_known:
        counts_rows = not isinstance(frame, pl.LazyFrame) or level.seen == "count"
        return level if counts_rows else require_seen(level)
    return level


@dataclass(frozen=True)
class Columns:
    """The columns that a call names, with their types checked, as a plan of internal names."""

    plan: pl.LazyFrame
    # The caller's names of the columns that group the rows.
    names: Mapping[str, str]
    models: Sequence[str]
    several: bool
    arguments: Mapping[str, Typed] = field(default_factory=dict)
    pos_label: pl.Series | None = None
    frequency: bool = False
    design: GivenDesign | None = None
    # Whether the plan has checked rows, each of which may stand for several rows.
    is_counted: bool = False
    # Whether rows of several groups are added up, for example groups of an attribute.
    pools_groups: bool = False
    # The types that scores came in, in the order of models, if they do not have 64 bits.
    score_types: Sequence[FloatType] = ()

    @property
    def keys(self) -> list[str]:
        """Internal names of the columns that group the rows."""
        return [*self.names]

    @property
    def is_binned(self) -> bool:
        """Whether rows stand for the rows in a bin of scores."""
        return self.is_counted and SCORE_HIGH in self.plan.collect_schema()

    def require_scores(self, purpose: str) -> None:
        """Raise for counts in bins of scores."""
        if self.is_binned:
            msg = f"`counts` must be by score for {purpose}; found counts in bins of scores"
            raise ValueError(msg)

    @property
    def key_types(self) -> dict[str, pl.DataType]:
        """Types of the columns that group the rows, by the caller's names."""
        schema = self.plan.collect_schema()
        return {name: schema[key] for key, name in self.names.items()}

    def check_names(self, columns: Iterable[str]) -> None:
        """Raise for a group column with the name of another column of the result."""
        taken = {*columns, *([MODEL] if self.several else [])}
        for name in self.names.values():
            if name in taken:
                msg = (
                    f"`by` must not take the name of a result column; found {name!r}: "
                    f"rename it, as in pl.col({name!r}).alias(...)"
                )
                raise ValueError(msg)

    def schema(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        """Return the schema of a table with a row for each group, and each model if several."""
        self.check_names(columns)
        models = {MODEL: pl.String()} if self.several else {}
        return self.key_types | models | dict(columns)

    def group_by_model(self) -> Columns:
        """Return counted rows, which belong to one model each, with the model as another key."""
        if not (self.is_counted and self.several):
            return self
        names = {**self.names, MODEL: MODEL}
        return replace(self, names=names, models=[_ONE_MODEL], several=False)

    def take_model(self, model: str) -> Columns:
        """Return the columns with a single score, for rows that are not counted."""
        place = self.models.index(model)
        own, first = score_column(place), score_column(0)
        others = [name for name in self.arguments if name in _ROW_COLUMNS]
        return replace(
            self,
            plan=self.plan.select(*self.keys, *others, pl.col(own).alias(first)),
            models=[model],
            several=False,
            arguments={**self.arguments, first: self.arguments[own]},
            score_types=self.score_types[place : place + 1],
        )

    def rows(self, table: pl.DataFrame) -> Rows:
        """Return the columns as arrays, after a check of their values."""
        if self.is_counted:
            return self._counted_rows(table)
        sample = self._sample(table)
        if ROW_WEIGHT in table.columns:
            self._check_weights(table[ROW_WEIGHT])
            used = table[ROW_WEIGHT].ne_missing(0)
            if not used.all():
                # Such a row is ignored, whatever its other values.
                table = table.filter(used)
                sample = None if sample is None else sample.at(used.to_numpy())
        names = [score_column(i) for i in range(len(self.models))]
        scores = {
            model: self._score(table[name], name)
            for model, name in zip(self.models, names, strict=True)
        }
        selected = decided = row_weight = None
        weight = self._signed_weight(table)
        if SELECTED in table.columns:
            decided = table[SELECTED].is_not_null().to_numpy()
            weight = np.where(decided, weight, np.nan)
            selected = table[SELECTED].fill_null(value=False).to_numpy()
        optional = [table[name] for name in (LABEL, SELECTED) if name in table.columns]
        if any(column.has_nulls() for column in optional):
            row_weight = -self._signed_weight(table.drop(LABEL, strict=False))
        return Rows(
            table.select(self.keys),
            scores,
            weight,
            self._counts(table),
            selected=selected,
            sample=sample,
            row_weight=row_weight,
            decided=None if row_weight is None else decided,
            score_types=self._types_by_model(),
        )

    def require_positives(self, table: pl.DataFrame) -> None:
        """Raise for a positive label that no row has, if there are labels at all."""
        if self.pos_label is None or LABEL not in table.columns:
            return
        label = table[LABEL]
        if label.null_count() < label.len():
            found = table.lazy().select((pl.col(LABEL) == literal(self.pos_label)).any()).collect()
            check_positives(self.pos_label.item(), found=bool(found.item()), labels=label)

    def _signed_weight(self, table: pl.DataFrame) -> Array:
        """Return weights with the sign of the class; without a label all rows are negatives."""
        if LABEL not in table.columns:
            if ROW_WEIGHT not in table.columns:
                return np.full(table.height, -1.0)
            return -_to_floats(table[ROW_WEIGHT].cast(pl.Float64))
        weight = pl.lit(1.0)
        if ROW_WEIGHT in table.columns:
            weight = pl.col(ROW_WEIGHT).cast(pl.Float64)
        positive = self._positive(table)
        signed = pl.when(positive).then(weight).when(~positive).then(-weight)
        return _to_floats(table.lazy().select(signed).collect().to_series())

    def _positive(self, table: pl.DataFrame) -> pl.Expr:
        """Return whether rows are positive, with checked labels."""
        column, label = pl.col(LABEL), table[LABEL]
        if self.pos_label is not None:
            return column == literal(self.pos_label)
        if label.dtype in (pl.Boolean, pl.Null):
            return column.cast(pl.Boolean)
        low, high = label.min(), label.max()
        if not (label.dtype.is_integer() and low in (0, 1) and high in (0, 1)):
            self._check_labels(table)
        return column == 1

    def _check_labels(self, table: pl.DataFrame) -> None:
        """Raise for other labels than 0 and 1 or -1 and 1, and for groups that mix 0 and -1."""
        # Floats, since there are types without -1.
        label = table[LABEL].cast(pl.Float64)
        is_zero, is_minus = label == 0, label == -1
        invalid = label.filter(~(is_zero | is_minus | (label == 1)))
        if len(invalid):
            hint = list_labels(table[LABEL])
            self._reject_value("label", LABEL_RULE, invalid[0], hint)
        if is_zero.any() and is_minus.any():
            _refuse_mixed([self.find_negatives(table)])

    def find_negatives(self, table: pl.DataFrame) -> pl.DataFrame:
        """Return the groups of rows with numbers for labels, and whether each has 0 and -1."""
        # Each group may encode its negatives in its own way, unless groups are pooled.
        groups = [] if self.pools_groups else self.keys
        label = table[LABEL].cast(pl.Float64)
        return table.select(*groups, zero=label == 0, minus=label == -1)

    def _check_weights(self, weight: pl.Series) -> None:
        value = pl.col(weight.name).cast(pl.Float64)
        valid, rule = (value >= 0) & value.is_finite(), "be finite and zero or more"
        if self.frequency:
            valid &= (value == value.floor()) & (value <= EXACT_FLOATS)
            rule = "be whole numbers of rows"
        invalid = weight.to_frame().lazy().filter(~valid).select(value).collect().to_series()
        if len(invalid):
            self._reject_value("weight", rule, invalid[0])

    def _score(self, score: pl.Series, name: str) -> Array:
        """Return a score as floats, NaN where it is missing."""
        shown_as = self.arguments[name].shown if name in self.arguments else "the counts"
        require_exact(score, shown_as)
        return _to_floats(score.cast(pl.Float64))

    def _counts(self, table: pl.DataFrame) -> RowCounts | None:
        if not self.frequency:
            return None
        number = table[ROW_WEIGHT].cast(pl.Float64).fill_null(1.0).to_numpy()
        return RowCounts(number, number, number)

    def _reject_value(self, argument: str, rule: str, value: float, hint: str = "") -> NoReturn:
        typed = self.arguments[argument]
        msg = f"`{typed.argument}` must {rule}; {typed.shown} holds {_write_number(value)}{hint}"
        raise RowsError(msg)

    def _sample(self, table: pl.DataFrame) -> Sampling | None:
        if self.design is None or not self.design.is_given:
            return None
        if self.design.replicate_weights is not None:
            return self._replicates(table, self.design.replicate_weights)
        units, strata = _columns_of_units(table)
        stratum_keys, stratum_of_row = number_groups(strata)
        unit_keys, unit = number_groups(units.with_columns(stratum=stratum_of_row))
        stratum = unit_keys["stratum"].to_numpy()
        size = np.bincount(stratum, minlength=stratum_keys.height).astype(np.float64)
        fraction = np.zeros(len(size))
        if FPC in table.columns:
            is_stratified = STRATUM in table.columns
            fraction = _read_fractions(table[FPC], stratum_of_row, size, is_stratified)
        cluster = table[CLUSTER] if CLUSTER in table.columns else None
        lonely = self.design.survey.lonely
        return Sampling(unit, stratum, size, fraction, lonely, cluster=cluster)

    def _replicates(self, table: pl.DataFrame, weights: ReplicateWeights) -> Sampling:
        names = [name for name in table.columns if name.startswith(_REPLICATE)]
        for name in names:
            value = table[name].cast(pl.Float64)
            invalid = value.filter(~((value >= 0) & value.is_finite()))
            if len(invalid):
                self._reject_value(name, "be finite and zero or more", invalid[0])
        columns = np.stack([_to_floats(table[name].cast(pl.Float64)) for name in names])
        number = len(names)
        return Sampling(
            np.arange(number),
            np.zeros(number, np.int64),
            np.array([float(number)]),
            np.zeros(1),
            replicates=columns,
            factors=np.array(weights.factors(number)),
            replicate_df=weights.degrees_of_freedom(number),
            is_jackknife=weights.is_jackknife,
        )

    def _counted_rows(self, table: pl.DataFrame) -> Rows:
        """Return checked rows, which may each stand for several rows."""
        weight = table[WEIGHT].cast(pl.Float64)
        missing = table[SCORE].is_null()
        counts, bins = None, None
        if ROW_COUNT in table.columns:
            names = (ROW_COUNT, ROW_SQUARES, ROW_CUBES)
            counts = RowCounts(*(_to_floats(table[name].cast(pl.Float64)) for name in names))
        if SCORE_HIGH in table.columns:
            high = _to_floats(table[SCORE_HIGH].cast(pl.Float64))
            bins = ScoreBins(high, table[SEVERAL_SCORES].fill_null(value=False).to_numpy())
        selected = None
        if SELECTED in table.columns:
            selected = table[SELECTED].fill_null(value=False).to_numpy()
        score = self._score(table[SCORE], SCORE)
        score = np.where(missing.to_numpy(), np.nan, score)
        scores = dict.fromkeys(self.models, score)
        model = None
        if self.several:
            model = table[MODEL].cast(pl.String).to_numpy().astype(np.str_)
            scores = {name: np.where(model == name, score, np.nan) for name in self.models}
        return Rows(
            table.select(self.keys),
            scores,
            _to_floats(weight),
            counts,
            bins,
            selected,
            model=model,
            score_types=self._types_by_model(),
        )

    def _types_by_model(self) -> dict[str, FloatType]:
        return dict(zip(self.models, self.score_types, strict=False))


def align_keys(tables: Sequence[Columns]) -> list[Columns]:
    """Return the columns of tables with the same groups, with the keys of the first table."""
    names = tables[0].names
    keys = {name: key for key, name in names.items()}
    return [
        replace(
            each,
            plan=each.plan.rename({key: keys[name] for key, name in each.names.items()}),
            names=names,
        )
        if each.names != names
        else each
        for each in tables
    ]


# Types of scores with fewer bits than Python's floats.
_FLOAT_TYPES: dict[type[pl.DataType], FloatType] = {
    pl.Float16: np.float16,
    pl.Float32: np.float32,
}
_REPLICATE = "__replicate_"
# Columns of rows that are not keys or scores
_ROW_COLUMNS = (LABEL, ROW_WEIGHT, SELECTED)
_ONE_MODEL = "score"
# The number of a row's score, in the order of the call.
_MODEL_PLACE = "__model_place"


def read_columns(
    frame: object,
    label: IntoColumn | None,
    score: IntoColumns,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    design: Design | None = None,
    *,
    selected: IntoColumn | None = None,
    argument: str = "by",
) -> Columns:
    """Return the columns of a call, after a check against the schema of its frame.

    Messages call the columns that group the rows ``argument``. Without a label every row is
    negative. Rows without a recorded decision are missing where decisions are ``selected``.
    """
    source = read_source(frame)
    if isinstance(source, RowSource):
        keys = {} if by is None else named_keys(by, source.groups, argument)
        return read_counted(source.rows(keys))
    lazy = source.lazy()
    groups = {} if by is None else named_keys(by, lazy, argument)
    names = internal_keys(groups)
    models = named_columns("score", score, lazy)
    several = not isinstance(score, str | pl.Expr) or len(models) > 1
    given = read_design(design)
    columns: dict[str, Typed] = {}
    if label is not None:
        columns[LABEL] = typed_column("label", as_column("label", label), lazy)
    if weight is not None:
        columns[ROW_WEIGHT] = typed_column("weight", as_column("weight", column_of(weight)), lazy)
        numeric(columns[ROW_WEIGHT])
    if selected is not None:
        columns[SELECTED] = boolean_column("selected", selected, lazy)
    columns |= unit_columns(lazy, given)
    if given.replicate_weights is not None:
        columns |= _replicate_columns(lazy, given.replicate_weights)
    for number, column in enumerate(models.values()):
        columns[score_column(number)] = typed_column("score", column, lazy)
        numeric(columns[score_column(number)])
    plan = lazy.select(
        *(groups[name].alias(key) for key, name in names.items()),
        *(typed.column.alias(name) for name, typed in columns.items()),
    )
    label_column = columns.get(LABEL)
    described = {"label": LABEL, "weight": ROW_WEIGHT}
    return Columns(
        plan,
        names,
        [*models],
        several,
        columns | {name: columns[key] for name, key in described.items() if key in columns},
        _read_pos_label(label_column, pos_label, lazy if is_eager(source) else None),
        # With a design, units count instead of rows.
        frequency=isinstance(weight, Frequency) and not given.is_given,
        design=given,
        pools_groups=argument != "by",
        score_types=[
            find_score_type(columns[score_column(number)].dtype) for number in range(len(models))
        ],
    )


def find_score_type(dtype: pl.DataType) -> FloatType:
    """Return the type of floats in which scores are compared with a threshold."""
    return _FLOAT_TYPES.get(dtype.base_type(), np.float64)


def read_counted(rows: PlannedRows) -> Columns:
    """Return the columns of checked rows, for example of counts by score."""
    models = [_ONE_MODEL]
    if rows.model_keys:
        dtype = rows.frame.collect_schema()[MODEL]
        if isinstance(dtype, pl.Enum):
            models = dtype.categories.to_list()
        else:
            found = collect(rows.frame.select(pl.col(MODEL).cast(pl.String)).unique())
            models = found[MODEL].sort().to_list()
    names = {key: rows.name_of(key) for key in rows.group_keys}
    # Several scores share one column and its type.
    score_type = find_score_type(rows.frame.collect_schema()[SCORE])
    return Columns(
        rows.frame,
        names,
        models,
        bool(rows.model_keys),
        is_counted=True,
        score_types=[score_type] * len(models),
    )


def _replicate_columns(frame: pl.LazyFrame, weights: ReplicateWeights) -> dict[str, Typed]:
    argument = "replicate_weights"
    given = named_columns(argument, weights.columns, frame).values()
    typed = [typed_column(argument, column, frame) for column in given]
    for each in typed:
        numeric(each)
    weights.factors(len(typed))
    return {f"{_REPLICATE}{number}": each for number, each in enumerate(typed)}


def _read_pos_label(
    label: Typed | None, pos_label: object, frame: pl.LazyFrame | None
) -> pl.Series | None:
    """Return the positive label in the type of the label, after a check of the type.

    Messages name the labels of a ``frame``, if it may be read.
    """
    if label is None:
        return None
    if pos_label is None:
        check_label_type(label, frame)
        return None
    value = exact(pos_label, label.dtype)
    if value is None:
        found = f"found {show_value(pos_label)} for {label}"
        msg = f"`pos_label` must be a possible value of the label; {found}"
        raise TypeError(msg)
    return value


def _columns_of_units(table: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return columns that identify the sampling units and the strata of rows."""
    height = table.height
    if CLUSTER in table.columns:
        units = table.select(CLUSTER)
    else:
        units = pl.DataFrame({CLUSTER: np.arange(height)})
    if STRATUM in table.columns:
        return units, table.select(STRATUM)
    return units, pl.DataFrame({STRATUM: np.zeros(height, np.int8)})


def _read_fractions(fpc: pl.Series, stratum: Ints, size: Array, is_stratified: bool) -> Array:  # noqa: FBT001
    """Return the sampled fraction of the population's units in each stratum."""
    unknown = fpc.filter(fpc.is_null() | fpc.is_nan())
    if len(unknown):
        text = "null" if unknown[0] is None else "NaN"
        checks.reject("fpc", "be a number in all rows", text)
    values = fpc.to_numpy()
    low, high = np.full(len(size), np.inf), np.full(len(size), -np.inf)
    np.minimum.at(low, stratum, values)
    np.maximum.at(high, stratum, values)
    rule = "be the same number in all rows"
    rule += " of a stratum" if is_stratified else ", as `strata` is not given"
    for place in np.flatnonzero(low != high):
        checks.reject("fpc", rule, f"{low[place]} to {high[place]}")
    for place in np.flatnonzero(low < 0):
        checks.reject("fpc", "be zero or more", f"{low[place]}")
    for place in np.flatnonzero((low > 1) & (low < size)):
        rule = "above 1 must be the number of units in the population, at least those sampled"
        found = f"{low[place]}, with {int(size[place])} units"
        msg = f"`fpc` {rule}; found {found}"
        raise ValueError(msg)
    return np.where(low <= 1, low, size / np.maximum(low, 1.0))


def _write_number(value: float) -> str:
    """Return a number as Polars writes it."""
    return str(pl.Series([value], dtype=pl.Float64).cast(pl.String)[0])


def _to_floats(values: pl.Series) -> Array:
    """Return numbers as an array, with NaN for null."""
    return values.to_numpy()


def alternate_models(tables: Mapping[str, pl.DataFrame], *, several: bool) -> pl.DataFrame:
    """Return the rows of the tables of models, with a column ``model`` if there may be several.

    All tables have the same groups; the models of a group are next to each other.
    """
    if not several:
        (table,) = tables.values()
        return table
    named = [table.with_columns(pl.lit(model).alias(MODEL)) for model, table in tables.items()]
    models = pl.concat(named)
    places = np.arange(models.height).reshape(len(named), -1)
    return models[places.T.ravel()]


Compute = Callable[[Rows], pl.DataFrame]


def table_of(
    frame: FrameT,
    columns: Columns,
    schema: Mapping[str, Any],
    compute: Compute,
    *,
    key_names: Mapping[str, str] | None = None,
) -> FrameT:
    """Return the table that ``compute`` makes from rows: now, or when a plan is collected.

    The table has the columns of the schema in order, with the caller's names of group columns; NaN
    becomes null. The source is read once. ``key_names`` maps the names that ``compute`` uses for
    group columns to the caller's, unless they are the names of the rows.
    """
    make = partial(
        _make_table,
        columns=columns,
        schema=dict(schema),
        compute=compute,
        key_names=columns.names if key_names is None else key_names,
    )
    if is_eager(frame):
        return make(collect(columns.plan))  # type: ignore[return-value]
    return columns.plan.map_batches(make, schema=dict(schema), streamable=False)  # type: ignore[return-value]


def table_of_all(
    frame: FrameT, tables: Sequence[Columns], schema: Mapping[str, Any], compute: Compute
) -> FrameT:
    """Return the table of `table_of` for the rows of several tables, without a design."""
    if len(tables) == 1:
        return table_of(frame, tables[0], schema, compute)

    def make() -> pl.DataFrame:
        read = collect_all([columns.plan for columns in tables])
        with np.errstate(all="ignore"):
            made = compute(read_tables(tables, read))
        return name_columns(made, schema, tables[0].names)

    return make() if is_eager(frame) else pl.defer(make, schema=dict(schema))  # type: ignore[return-value]


def _make_table(
    table: pl.DataFrame,
    columns: Columns,
    schema: Mapping[str, Any],
    compute: Compute,
    key_names: Mapping[str, str],
) -> pl.DataFrame:
    # Infinite and undefined numbers are expected: NaN means undefined.
    columns.require_positives(table)
    with np.errstate(all="ignore"):
        made = compute(columns.rows(table))
    return name_columns(made, schema, key_names)


def name_columns(
    made: pl.DataFrame, schema: Mapping[str, Any], key_names: Mapping[str, str]
) -> pl.DataFrame:
    """Return the columns of a schema, given the names of the keys; NaN becomes null."""
    keys = {name: key for key, name in key_names.items() if key in made.columns}
    # A group may have the name of a column that the result lacks, for example the model.
    named = made.select(pl.col(keys.get(name, name)).alias(name) for name in schema)
    numbers = [
        name for name, dtype in named.schema.items() if dtype.is_float() and name not in keys
    ]
    return named.with_columns(pl.col(numbers).fill_nan(None)).cast(pl.Schema(schema))


def make_table(columns: Mapping[str, NDArray[Any]]) -> pl.DataFrame:
    """Return arrays as the columns of a table; arrays of objects are texts, or None."""
    return pl.DataFrame(
        {
            # A None of NumPy would stay an object.
            name: pl.Series(values.tolist(), dtype=pl.String) if values.dtype == object else values
            for name, values in columns.items()
        }
    )


def add_keys(table: pl.DataFrame, keys: pl.DataFrame, segment: Ints) -> pl.DataFrame:
    """Return a table with the keys of each row's segment, if any, before its columns."""
    return keys[segment].hstack(table) if keys.width else table


class SegmentColumns(NamedTuple):
    """Rows of a table: the number of each row's segment, and the columns."""

    segment: Ints
    columns: Mapping[str, NDArray[Any]]


# Makes columns from the rows of one score and their segments
Tabulate = Callable[[Rows, SegmentRows], Iterable[SegmentColumns]]


def table_of_segments(
    frame: FrameT,
    columns: Columns,
    types: Mapping[str, Any],
    tabulate: Callable[..., Iterable[SegmentColumns]],
    level: ConfidenceLevel | None = None,
) -> FrameT:
    """Return the table that ``tabulate`` makes from the segments of each score.

    ``types`` are the types of its columns after the groups and the model. A ``level`` is passed to
    ``tabulate`` as a keyword, with the number of rows seen at repeated looks.
    """
    checked = None if level is None else check_level(level, frame)

    def compute(rows: Rows) -> pl.DataFrame:
        if checked is None:
            return tabulate_models(rows, columns, tabulate)
        return tabulate_models(rows, columns, partial(tabulate, level=rows.level(checked)))

    return table_of(frame, columns, columns.schema(types), compute)


def tabulate_models(rows: Rows, columns: Columns, tabulate: Tabulate) -> pl.DataFrame:
    """Return the rows that ``tabulate`` makes from the segments of each score in turn.

    They are sorted by the columns that group the rows, then by model; rows of a segment keep their
    order. ``tabulate`` gets rows with a single score. Rows of counts belong to one score each, so
    scores may have different segments.
    """
    tables = []
    for place, model in enumerate(columns.models):
        own = rows if rows.model is None else rows.at(rows.model == model)
        own = replace(own, scores={model: own.scores[model]})
        segments = own.segments(columns.keys, model, ranks=True)
        parts = [*tabulate(own, segments)]
        segment = np.concatenate([part.segment for part in parts])
        order = np.argsort(segment, kind="stable")
        values = {
            name: np.concatenate([part.columns[name] for part in parts])[order]
            for name in parts[0].columns
        }
        table = make_table(values).with_columns(
            pl.lit(model).alias(MODEL), pl.lit(place).alias(_MODEL_PLACE)
        )
        tables.append(add_keys(table, segments.segments, segment[order]))
    if len(tables) == 1:
        return tables[0]
    return pl.concat(tables).sort(*columns.keys, _MODEL_PLACE, maintain_order=True)
