"""Given tables, plans of their checked rows, and numbers of missing values."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from os import PathLike
from typing import Any, TypeAlias

import polars as pl

from polars_wroc.checks import INTO_TABLE, holds_values
from polars_wroc.inputs.columns import (
    MODEL,
    ROW_COUNT,
    ROW_CUBES,
    ROW_SQUARES,
    SCORE,
    SCORE_HIGH,
    WEIGHT,
    ZERO_LABEL,
    IntoColumn,
    Observations,
    Typed,
    has_no_score,
)
from polars_wroc.looks import ConfidenceLevel, Looks
from polars_wroc.queries import (
    aggregate,
    collect,
)

IntoColumns: TypeAlias = IntoColumn | Sequence[IntoColumn]


class RowSource(ABC):
    """A frame whose rows each represent several rows, for example a table of counts."""

    @property
    @abstractmethod
    def groups(self) -> pl.LazyFrame:
        """The groups alone, under the caller's names."""

    @abstractmethod
    def rows(self, by: dict[str, pl.Expr]) -> PlannedRows:
        """Return the rows, grouped by expressions of the `groups` and by model."""


def polars_frame(frame: object, name: str = "frame") -> pl.DataFrame | pl.LazyFrame:
    """Return an argument that is a table as a frame of Polars; a LazyFrame stays lazy."""
    if isinstance(frame, pl.DataFrame | pl.LazyFrame):
        return frame
    if hasattr(frame, "__arrow_c_stream__") and not holds_values(frame):
        return _from_arrow(frame)
    kind = type(frame)
    package = kind.__module__.split(".")[0]
    of_package = "" if package == "builtins" else f" of {package}"
    msg = (
        f"`{name}` must be a Polars DataFrame or LazyFrame, or a table of pandas, PyArrow or "
        f"another package that exports Arrow; found an object{of_package} of type {kind.__name__}"
    )
    if package == "numpy" or holds_values(frame):
        msg += INTO_TABLE
    elif isinstance(frame, str | PathLike):
        msg += ": scan the file, for example with pl.scan_parquet or pl.scan_csv"
    raise TypeError(msg)


def _from_arrow(table: Any) -> pl.DataFrame:
    """Return a table that exports Arrow as a frame; for pandas, without index and NaN."""
    pandas = sys.modules.get("pandas")
    try:
        if pandas is not None and isinstance(table, pandas.DataFrame):
            return pl.from_pandas(table)
        return pl.DataFrame(table)
    except (ValueError, TypeError, pl.exceptions.PolarsError) as error:
        reason = str(error).splitlines()[0]
        msg = f"`frame` must have columns of distinct names and of one type each; found: {reason}"
        raise ValueError(msg) from error


def read_source(frame: object) -> pl.DataFrame | pl.LazyFrame | RowSource:
    """Return counts unchanged, and a table as a frame of Polars."""
    return frame if isinstance(frame, RowSource) else polars_frame(frame)


@dataclass(frozen=True)
class PlannedRows:
    """A plan of checked rows, to be streamed: for counts by score or in bins, and for curves.

    It has keys, `SCORE`, `WEIGHT` and perhaps `ZERO_LABEL`. Rows of weight zero are dropped;
    missing rows have a null score and weight. Several scores have a row each, with the model as a
    key. A row may represent `ROW_COUNT` rows of a class, with the sums `ROW_SQUARES` and
    `ROW_CUBES` of powers of their weights. In a bin their scores extend to `SCORE_HIGH`, and
    `SEVERAL_SCORES` says whether they differ. Recorded decisions are in the column `SELECTED`,
    which is not null in complete rows.

    The keys have internal names (`internal_keys`), so that a group may have the name of any column
    of a plan. `sorted_result` restores the caller's names.
    """

    frame: pl.LazyFrame
    keys: list[str]
    # The keys whose values keep the order in which the caller named them.
    model_keys: list[str] = field(default_factory=list)
    # The caller's names of keys; keys without one go by their own names.
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def group_keys(self) -> list[str]:
        """The keys without the model."""
        return [key for key in self.keys if key not in self.model_keys]

    @property
    def group_names(self) -> list[str]:
        """The caller's names of the `group_keys`."""
        return [self.name_of(key) for key in self.group_keys]

    def name_of(self, key: str) -> str:
        """Return the caller's name of a key."""
        return self.names.get(key, key)

    @property
    def observations(self) -> Observations:
        """The checked columns as expressions."""
        columns = self.frame.collect_schema()
        zero = pl.col(ZERO_LABEL) if ZERO_LABEL in columns else None
        return Observations(pl.col(SCORE), pl.col(WEIGHT), zero)

    @property
    def is_counted(self) -> bool:
        """Whether a row may represent several."""
        return ROW_COUNT in self.frame.collect_schema()

    @property
    def is_binned(self) -> bool:
        """Whether a row may represent rows of several scores."""
        return SCORE_HIGH in self.frame.collect_schema()

    @property
    def signed_squares(self) -> pl.Expr:
        """The squared weights, with a minus sign in negative rows."""
        weight = pl.col(WEIGHT)
        return self._sign_sums(ROW_SQUARES, weight * weight.abs())

    @property
    def signed_cubes(self) -> pl.Expr:
        """The cubed weights, with a minus sign in negative rows."""
        weight = pl.col(WEIGHT)
        return self._sign_sums(ROW_CUBES, weight * weight * weight)

    def _sign_sums(self, sums: str, row_values: pl.Expr) -> pl.Expr:
        """Return sums of powers of weights with the sign of the row's weight."""
        if not self.is_counted:
            return row_values
        weight = pl.col(WEIGHT)
        return pl.when(weight > 0).then(sums).when(weight < 0).then(-pl.col(sums))

    @property
    def multiplicity(self) -> pl.Expr:
        """The number of rows that a row represents: Int64, as sums can exceed four billion."""
        return pl.col(ROW_COUNT) if self.is_counted else pl.lit(1, pl.Int64)

    def look(self, level: ConfidenceLevel, frame: object) -> ConfidenceLevel:
        """Return a level with the number of used rows, if it is to be counted."""
        if not isinstance(level, Looks) or level.is_known:
            return level
        if isinstance(frame, pl.LazyFrame) and level.seen != "count":
            return level
        # Each score has its own rows.
        is_used = pl.col(WEIGHT).is_not_null()
        used = {"used": pl.when(is_used).then(self.multiplicity).otherwise(0).sum()}
        seen = collect(aggregate(self.frame, self.model_keys, used).select(pl.col("used").max()))
        return level.at(max(seen.item() or 0, 1))

    def group_by(self, groups: Sequence[str]) -> PlannedRows:
        """Return the same rows grouped by other keys; the model key stays."""
        return replace(self, keys=[*groups, *self.model_keys])

    def key_values(self) -> pl.LazyFrame:
        """Return one row per group; without keys, one for all rows."""
        return self.frame.select(self.keys).unique() if self.keys else pl.LazyFrame({"__one": [0]})

    def sorted_by_keys(self, result: pl.LazyFrame) -> pl.LazyFrame:
        """Return a result sorted by the keys, with the order inside a group preserved."""
        return result.sort(self.keys, maintain_order=True) if self.keys else result

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


def class_weights(signed: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """Return the weights of a row as a positive and as a negative, from its signed weight."""
    # Each class has a sum of its own, since a difference of sums would not be monotone.
    positive, negative = signed.clip(lower_bound=0), (-signed).clip(lower_bound=0)
    return positive.cast(pl.Float64), negative.cast(pl.Float64)


CLASSES = ("pos", "neg")


# The bits of a small number that each row carries, so that one scan suffices.
MISSING_MARKS = "__missing_marks"
_MARKS = {"label": 1, "score": 2, "weight": 4, "decision": 8}


@dataclass(frozen=True)
class MissingRows:
    """Numbers of rows without a value in a column; counts know only the numbers of groups."""

    groups: Mapping[str, int]
    scores: Mapping[str, int] = field(default_factory=dict)
    # Numbers of the label, the weight and the decision.
    others: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: MissingRows) -> MissingRows:
        """Return the sum over two parts of the data that were counted in the same way."""
        return MissingRows(
            groups=_sum(self.groups, other.groups),
            scores=_sum(self.scores, other.scores),
            others=_sum(self.others, other.others),
        )

    def table(
        self, label: str | None, weight: str | None, decision: str | None = None
    ) -> pl.DataFrame:
        """Return one row per column that was used, under the caller's names."""
        of_label, *later = (
            [(name, self.others[kind])] if name is not None and kind in self.others else []
            for kind, name in (("label", label), ("weight", weight), ("decision", decision))
        )
        counts = [*of_label, *self.scores.items(), *chain(*later)]
        # A score that is also an attribute may be NaN besides null, and is already listed.
        counts += [(name, rows) for name, rows in self.groups.items() if name not in self.scores]
        schema = {"column": pl.String, "n_missing": pl.Int64}
        return pl.DataFrame(counts, schema, orient="row").unique(maintain_order=True)


def missing_marks(
    label: Typed | None, score: Typed, weight: Typed | None, decision: Typed | None = None
) -> pl.Expr:
    """Return a number whose bits mark the missing values of a row."""
    missing = {"score": has_no_score(score)}
    for name, typed in (("label", label), ("weight", weight), ("decision", decision)):
        if typed is not None:
            missing[name] = typed.column.is_null()
    marks = [gone.cast(pl.UInt8) * pl.lit(_MARKS[name], pl.UInt8) for name, gone in missing.items()]
    return pl.sum_horizontal(marks).cast(pl.UInt8).alias(MISSING_MARKS)


def count_missing(
    table: pl.DataFrame, groups: Mapping[str, str], scores: Sequence[str]
) -> MissingRows:
    """Return the counts of marked rows; each row occurs once for each of the ``scores``.

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
        scores={name: _count(rows, _has("score")) for name, rows in of_score.items()},
        others={name: _count(first, _has(name)) for name in ("label", "weight", "decision")},
    )


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + rows for name, rows in other.items()}


def _has(name: str) -> pl.Expr:
    return (pl.col(MISSING_MARKS) & _MARKS[name]) != 0


def _count(rows: pl.DataFrame, condition: pl.Expr) -> int:
    those = rows.filter(condition)
    # In bins a row may represent several.
    return int(those[ROW_COUNT].sum()) if ROW_COUNT in those.columns else those.height
