"""Steps of plans: aggregates and joins by keys, checks of values, and collecting."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, TypeVar

import polars as pl
from polars._typing import EngineType

_CONSTANT = "__constant"


def aggregate(
    frame: pl.LazyFrame, keys: Sequence[str], aggregates: dict[str, pl.Expr]
) -> pl.LazyFrame:
    """Return aggregates of the rows of each group of keys, or of all rows without keys."""
    if not keys:
        return frame.select(**aggregates)
    return frame.group_by(keys).agg(**aggregates)


def join_on_keys(
    table: pl.LazyFrame,
    other: pl.LazyFrame,
    keys: Sequence[str],
    *,
    how: Literal["left", "inner"] = "left",
    maintain_order: Literal["left", "none"] = "left",
    suffix: str = "_right",
) -> pl.LazyFrame:
    """Return two tables joined on their keys; without keys, every row with every row.

    Null keys match null keys, and NaN keys match NaN keys.
    """
    if not keys:
        return table.join(other, how="cross", maintain_order=maintain_order, suffix=suffix)
    on, constant = list(keys), pl.lit(0, pl.Int8).alias(_CONSTANT)
    # On a single sorted float column the engine may use a merge join, in which NaN never equals
    # NaN; a second, constant key prevents that.
    single_float = len(on) == 1 and other.collect_schema()[on[0]].is_float()
    if single_float:
        table, other = table.with_columns(constant), other.with_columns(constant)
        on.append(_CONSTANT)
    joined = table.join(
        other, on=on, how=how, nulls_equal=True, maintain_order=maintain_order, suffix=suffix
    )
    return joined.drop(_CONSTANT) if single_float else joined


def build_by_type(column: pl.Expr, build: Callable[[pl.Expr, pl.DataType], pl.Expr]) -> pl.Expr:
    """Return an expression of a column that is built once its data type is known."""
    return build_by_types([column], lambda columns: build(*columns[0]))


def build_by_types(
    columns: Sequence[pl.Expr], build: Callable[[list[tuple[pl.Expr, pl.DataType]]], pl.Expr]
) -> pl.Expr:
    """Return an expression of columns that is built once their data types are known."""

    def build_or_refuse(typed: list[tuple[pl.Expr, pl.DataType]]) -> pl.Expr:
        try:
            return build(typed)
        except TypeError as error:
            raise ColumnTypeError(error) from None
        except ValueError as error:
            raise CheckError(error) from None

    return pl.pipe_with_dtype(columns, build_or_refuse)


class ColumnTypeError(TypeError):
    """A refused type of a column: one sentence, to which Polars adds no plan."""

    def __init__(self, message: object = "") -> None:
        super().__init__(str(message).split(_ADDED, maxsplit=1)[0])


def over(value: pl.Expr, keys: Sequence[str]) -> pl.Expr:
    """Return a value within each group of keys, or over all rows without keys."""
    return value.over(keys) if keys else value


MIXED_LABELS = "`label` must hold 0 and 1 or -1 and 1; it holds -1, 0 and 1, or both 0 and -1"


# Rounding may bring probabilities this far beyond 0 and 1, including those that had 32 bits.
ROUNDING = 1e-6


def probability(argument: str, value: pl.Expr, shown: str) -> pl.Expr:
    """Return a column clipped to 0 and 1; raise at collect for values outside, beyond rounding.

    ``shown`` is what messages call the column.
    """
    bad = value.filter(~value.cast(pl.Float64).is_between(-ROUNDING, 1 + ROUNDING)).first()
    rule = f"`{argument}` must be a probability, from 0 to 1"
    found = pl.format("{} in {}", bad, pl.lit(shown))
    return pl.when(require_at_collect(bad.is_null(), rule, found)).then(value.clip(0, 1))


def unless_mixed(zeros: pl.Expr, minuses: pl.Expr) -> pl.Expr:
    """Return 0.0; raise at collect where a group has both 0 and -1 as negative labels."""
    return raise_at_collect(pl.when(zeros & minuses).then(pl.lit(MIXED_LABELS))).fill_null(0.0)


def require_at_collect(
    holds: pl.Expr, sentence: str | pl.Expr, found: pl.Expr | None = None
) -> pl.Expr:
    """Return True where a rule ``holds``; elsewhere raise the sentence at collect."""
    message = pl.lit(sentence) if isinstance(sentence, str) else sentence
    if found is not None:
        message += pl.lit("; found ") + found.cast(pl.String).fill_null("null")
    return raise_at_collect(pl.when(~holds).then(message)).is_null()


# Polars appends the plan or the expressions around an error to its message, in paragraphs.
_ADDED = "\n\n"


class CheckError(pl.exceptions.InvalidOperationError, ValueError):
    """A refused value: one sentence, which Polars does not lengthen."""

    def __init__(self, message: object = "") -> None:
        super().__init__(str(message).split(_ADDED, maxsplit=1)[0])

    def __str__(self) -> str:
        return str(self.args[0]).split(_ADDED, maxsplit=1)[0]


def raise_at_collect(sentence: pl.Expr) -> pl.Expr:
    """Return null where the sentence is null; elsewhere raise it."""
    return sentence.map_batches(_raise_first, return_dtype=pl.Float64, is_elementwise=True)


def _raise_first(sentences: pl.Series) -> pl.Series:
    if sentences.null_count() < len(sentences):
        raise CheckError(sentences.drop_nulls()[0])
    return pl.Series(sentences.name, [None], pl.Float64).new_from_index(0, len(sentences))


FrameT = TypeVar("FrameT", pl.DataFrame, pl.LazyFrame)


def select_schema(table: FrameT, schema: Mapping[str, pl.DataType | type[pl.DataType]]) -> FrameT:
    """Return the columns of a schema; null for those that a table lacks."""
    known = table.lazy().collect_schema()
    return table.select(
        (pl.col(name) if name in known else pl.lit(None)).cast(dtype).alias(name)
        for name, dtype in schema.items()
    )


def like_input(frame: FrameT, plan: pl.LazyFrame) -> FrameT:
    """Return a plan for a LazyFrame, and its result for a table in memory."""
    return collect(plan) if is_eager(frame) else plan  # type: ignore[return-value]


def is_eager(frame: object) -> bool:
    """Return whether the rows of a table are in memory, unlike those of LazyFrames and counts."""
    return hasattr(frame, "__arrow_c_stream__")


def collect(plan: pl.LazyFrame, *, reproducible: bool = False) -> pl.DataFrame:
    """Run a plan.

    If ``reproducible``, values are added up in their order, so that the same give the same bits.
    """
    return plan.collect(engine=_engine(reproducible=reproducible))


def find_height(plan: pl.LazyFrame) -> int:
    """Return the number of rows of a plan."""
    return int(collect(plan.select(pl.len())).item())


def collect_all(plans: Sequence[pl.LazyFrame], *, reproducible: bool = False) -> list[pl.DataFrame]:
    """Return the results of plans that share their source, which are run together."""
    return pl.collect_all(plans, engine=_engine(reproducible=reproducible))


def _engine(*, reproducible: bool) -> EngineType:
    return "in-memory" if reproducible else "auto"


class NoBatchesError(Exception):
    """Polars hands over no batches, or not in the expected way."""


def batches(plan: pl.LazyFrame, rows: int) -> Iterator[pl.DataFrame]:
    """Yield the rows of a plan in order, in batches of about a given size.

    Polars calls the method unstable; `NoBatchesError` is raised only before the first batch.
    """
    try:
        handed = plan.collect_batches(chunk_size=rows, maintain_order=True)
    except (AttributeError, TypeError, NotImplementedError) as error:
        raise NoBatchesError from error
    yield from handed
