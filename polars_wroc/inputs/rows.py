"""The checked rows of a frame, from which every result is computed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import polars as pl

from polars_wroc.inputs.columns import (
    OUTSIDE,
    ROW_COUNT,
    ROW_CUBES,
    ROW_SQUARES,
    SCORE,
    SCORE_HIGH,
    SELECTED,
    WEIGHT,
    ZERO_LABEL,
    IntoColumn,
    Observations,
)
from polars_wroc.inputs.survey_design import Design
from polars_wroc.plans.by_keys import aggregate
from polars_wroc.plans.checks import probability, require_at_collect
from polars_wroc.plans.engine import When

IntoColumns: TypeAlias = IntoColumn | Sequence[IntoColumn]


class RowSource(ABC):
    """A frame whose rows each represent several, such as a table of counts."""

    @property
    @abstractmethod
    def named(self) -> pl.LazyFrame:
        """The frame, with the groups under the caller's names."""

    @property
    @abstractmethod
    def groups(self) -> pl.LazyFrame:
        """The groups alone, under the caller's names."""

    @abstractmethod
    def rows(self, by: dict[str, pl.Expr]) -> Rows:
        """Return its rows, grouped by expressions of its `groups` and by model."""

    @abstractmethod
    def multiplicity(self) -> pl.Expr:
        """Return how many rows each row of the frame represents, missing ones included."""

    @abstractmethod
    def bins(self) -> int | None:
        """Return the number of bins of scores, or None if each score is there."""


@dataclass(frozen=True)
class Rows:
    """Checked rows of a frame: keys, `SCORE` and `WEIGHT`, perhaps `ZERO_LABEL` and `CLUSTER`.

    Rows of weight zero are dropped; missing rows have a null score and weight. A row may represent
    `ROW_COUNT` rows of a class, with the sums `ROW_SQUARES` and `ROW_CUBES` of powers of their
    weights. In a bin these have scores up to `SCORE_HIGH`, and `SEVERAL_SCORES` says whether they
    differ. Decisions that were recorded are in the column `SELECTED`, which complete rows have.
    If there is a column `OUTSIDE`, the rows are those of a range of scores, and one row for
    each class of each group stands for all rows above the range, and one for those below.

    The keys have internal names (`internal_keys`), so that a group may have the name of any column
    of a plan. `result` restores the caller's names.
    """

    frame: pl.LazyFrame
    keys: list[str]
    # The keys whose values keep the order in which the caller named them.
    model_keys: list[str] = field(default_factory=list)
    # Whether the rows are in descending order of the score already, the missing ones first.
    in_order: bool = False
    # What the caller calls the keys; the others go by their own names.
    names: Mapping[str, str] = field(default_factory=dict)
    # When the compiled engine computes sums over these rows; None if plans do.
    compiled: When | None = None
    # How they were sampled: they have the columns `STRATUM` and `CLUSTER`, or replicate weights.
    design: Design | None = None

    @property
    def group_keys(self) -> list[str]:
        """The keys but for the model."""
        return [key for key in self.keys if key not in self.model_keys]

    @property
    def group_names(self) -> list[str]:
        """What the caller calls the `group_keys`."""
        return [self.name_of(key) for key in self.group_keys]

    def name_of(self, key: str) -> str:
        """Say what the caller calls a key."""
        return self.names.get(key, key)

    @property
    def observations(self) -> Observations:
        """The checked columns as expressions."""
        columns = self.frame.collect_schema()
        zero = pl.col(ZERO_LABEL) if ZERO_LABEL in columns else None
        return Observations(pl.col(SCORE), pl.col(WEIGHT), zero)

    @property
    def counted(self) -> bool:
        """Whether a row may represent several."""
        return ROW_COUNT in self.frame.collect_schema()

    @property
    def binned(self) -> bool:
        """Whether a row may represent rows of several scores."""
        return SCORE_HIGH in self.frame.collect_schema()

    @property
    def recorded(self) -> bool:
        """Whether the decisions on the rows were recorded."""
        return SELECTED in self.frame.collect_schema()

    @property
    def in_range(self) -> bool:
        """Whether the rows are those of a range of scores, and some stand for all others."""
        return OUTSIDE in self.frame.collect_schema()

    def inside(self, frame: pl.LazyFrame) -> pl.LazyFrame:
        """Leave out of a frame made of the rows those that stand for others."""
        return frame.filter(~pl.col(OUTSIDE)).drop(OUTSIDE) if self.in_range else frame

    def cut_at(self, argument: str, thresholds: Iterable[pl.Expr]) -> Rows:
        """Raise at collect if a bin has scores on both sides of a threshold."""
        frame = self.frame
        if not self.binned:
            return self
        low, high = pl.col(SCORE), pl.col(SCORE_HIGH)
        for threshold in thresholds:
            outside = ((low >= threshold) | (high < threshold)).fill_null(value=True)
            found = pl.format("{} in one from {} to {}", threshold, low, high)
            checked = require_at_collect(
                outside, f"`{argument}` must not be inside a bin of scores", found
            )
            frame = frame.with_columns(pl.when(checked).then(WEIGHT).alias(WEIGHT))
        return replace(self, frame=frame)

    def as_probabilities(self) -> Rows:
        """Cast the scores to floats; raise at collect for one that is not between 0 and 1."""
        scores = [SCORE, SCORE_HIGH] if self.binned else [SCORE]
        checked = (
            probability("score", pl.col(name).cast(pl.Float64)).alias(name) for name in scores
        )
        return replace(self, frame=self.frame.with_columns(checked))

    def require_scores(self, purpose: str) -> None:
        """Raise for counts in bins of scores."""
        if self.binned:
            msg = f"`counts` must be by score for {purpose}; found counts in bins of scores"
            raise ValueError(msg)

    @property
    def signed_squares(self) -> pl.Expr:
        """The squared weights, with a minus sign in negative rows."""
        weight = pl.col(WEIGHT)
        if self.counted:
            return pl.when(weight > 0).then(ROW_SQUARES).when(weight < 0).then(-pl.col(ROW_SQUARES))
        return weight * weight.abs()

    @property
    def signed_cubes(self) -> pl.Expr:
        """The cubed weights, with a minus sign in negative rows."""
        weight = pl.col(WEIGHT)
        if self.counted:
            return pl.when(weight > 0).then(ROW_CUBES).when(weight < 0).then(-pl.col(ROW_CUBES))
        return weight * weight * weight

    @property
    def multiplicity(self) -> pl.Expr:
        """How many rows a row represents, as Int64, whose sums can exceed four billion."""
        return pl.col(ROW_COUNT) if self.counted else pl.lit(1, pl.Int64)

    def count_where(self, condition: pl.Expr) -> pl.Expr:
        """Count the rows for which a condition holds."""
        if self.counted:
            return pl.when(condition).then(ROW_COUNT).otherwise(0).sum()
        return condition.sum().cast(pl.Int64)

    def class_counts(self) -> dict[str, pl.Expr]:
        """Count the rows of each class."""
        weight = pl.col(WEIGHT)
        return {"n_pos": self.count_where(weight > 0), "n_neg": self.count_where(weight < 0)}

    def regrouped(self, groups: Sequence[str]) -> Rows:
        """Return the same rows grouped by other keys; the model key stays."""
        return replace(self, keys=[*groups, *self.model_keys])

    def with_values(self, names: Sequence[str]) -> Rows:
        """Return the rows with a value of these groups, by the caller's names."""
        known = [pl.col(key).is_not_null() for key in self.keys if self.name_of(key) in names]
        return replace(self, frame=self.frame.filter(known)) if known else self

    def key_values(self) -> pl.LazyFrame:
        """One row per group."""
        return self.frame.select(self.keys).unique()

    def sorted_by_keys(self, result: pl.LazyFrame) -> pl.LazyFrame:
        """Sort a result by the keys, keeping the order inside a group."""
        return result.sort(self.keys, maintain_order=True) if self.keys else result

    def result(self, table: pl.LazyFrame, columns: Sequence[str]) -> pl.LazyFrame:
        """Return these columns under the caller's names, sorted by the keys."""
        return self.sorted_result(self.sorted_by_keys(table), columns)

    def sorted_result(self, table: pl.LazyFrame, columns: Sequence[str]) -> pl.LazyFrame:
        """Return columns of a sorted table, with the caller's names and models as text."""
        self.check_names(columns)
        models = [pl.col(key).cast(pl.String) for key in self.model_keys]
        groups = [pl.col(key).alias(self.name_of(key)) for key in self.group_keys]
        return table.select(*groups, *models, *columns)

    def check_names(self, columns: Sequence[str]) -> None:
        """Raise for a group with the name of another column of the result."""
        for name in self.group_names:
            if name in columns or name in self.model_keys:
                msg = (
                    f"`by` must not take the name of a result column; found {name!r}: "
                    f"rename it, as in pl.col({name!r}).alias(...)"
                )
                raise ValueError(msg)

    def aggregate(self, frame: pl.LazyFrame, aggregates: dict[str, pl.Expr]) -> pl.LazyFrame:
        """Aggregate each group of a frame that has the keys."""
        return aggregate(frame, self.keys, aggregates)


def class_weights(signed: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """Split the signed weight into that of a positive and that of a negative row."""
    # Each class has its own sum: one minus the other would not be monotone.
    positive, negative = signed.clip(lower_bound=0), (-signed).clip(lower_bound=0)
    return positive.cast(pl.Float64), negative.cast(pl.Float64)


CLASSES = ("pos", "neg")
