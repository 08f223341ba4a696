"""Divisions of the rows into segments: categories of attributes and of all of them crossed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from polars_wroc.groups.references import other_name
from polars_wroc.inputs import arguments, columns
from polars_wroc.inputs.arguments import did_you_mean, shown
from polars_wroc.inputs.columns import AUDIT_KEYS, MISSING, OVERALL
from polars_wroc.inputs.decisions import Unknown, unknown_keys
from polars_wroc.inputs.frames import require_texts
from polars_wroc.inputs.rows import Rows
from polars_wroc.plans.queries import join_on_keys, over, require_at_collect
from polars_wroc.stats.proportions import TOLERANCE

# Between the names of columns whose groups are crossed.
CROSSED = " \N{MULTIPLICATION SIGN} "


@dataclass(frozen=True)
class Grouping:
    """A division of rows into segments: the columns that define them, with the caller's names."""

    keys: tuple[str, ...] = ()
    # The caller's names of these columns.
    names: tuple[str, ...] = ()

    @property
    def attribute(self) -> str:
        """The name of this division in results."""
        return CROSSED.join(self.names) if self.keys else OVERALL

    def named(self, table: pl.LazyFrame) -> pl.LazyFrame:
        """Replace the keys by ``attribute`` and ``segment``."""
        texts = [pl.col(key).cast(pl.String) for key in self.keys]
        if len(texts) > 1:
            texts = [text.fill_null(MISSING) for text in texts]
        segment = pl.concat_str(texts, separator=", ") if texts else pl.lit(OVERALL)
        names = pl.lit(self.attribute).alias("attribute"), segment.alias("segment")
        return table.select(*names, pl.exclude(self.keys))

    def check_names(self, segments: pl.DataFrame, models: Sequence[str]) -> None:
        """Check that segments, one row per segment and model, have different names."""
        named = segments.with_columns(pl.col("segment").fill_null(MISSING))
        repeated = named.filter(pl.struct("segment", *models).is_duplicated())["segment"]
        if not repeated.is_empty():
            msg = (
                "`by` must have values that name each segment differently; "
                f"found {repeated[0]!r} twice in {self.attribute!r}"
            )
            raise ValueError(msg)


def groupings(rows: Rows, *, intersections: bool) -> list[Grouping]:
    """List the divisions: overall, each attribute and, if wanted, all attributes crossed."""
    keys, names = tuple(rows.group_keys), tuple(rows.group_names)
    each = [Grouping((key,), (name,)) for key, name in zip(keys, names, strict=True)]
    crossed = [Grouping(keys, names)] if intersections and len(keys) > 1 else []
    return [Grouping(), *each, *crossed]


def named_segments(
    reference: Mapping[str, Any], groupings: Sequence[Grouping], schema: pl.Schema
) -> dict[str, str]:
    """Read the names of segments that are given for attributes; they need not exist."""
    ways = {grouping.attribute: grouping.keys for grouping in groupings if grouping.keys}
    for attribute in reference:
        if attribute not in ways:
            hint = did_you_mean(attribute, ways)
            msg = f"`reference` must name attributes out of {list(ways)}; found {attribute!r}{hint}"
            raise ValueError(msg)
    return {
        attribute: segment_name(attribute, value, [schema[key] for key in ways[attribute]])
        for attribute, value in reference.items()
    }


def segment_name(attribute: str, value: object, types: Sequence[pl.DataType]) -> str:
    """Name the segment of a value; a text is taken as the name."""
    if isinstance(value, str):
        return value
    held = columns.exact(value, types[0]) if len(types) == 1 else None
    if held is not None:
        return str(held.cast(pl.String)[0])
    named = ", ".join(str(dtype) for dtype in types)
    msg = (
        f"`reference` must give {attribute!r} ({named}) one of its values or the name of a "
        f"segment; found {shown(value)}"
    )
    raise ValueError(msg)


ATTRIBUTE, SEGMENT = AUDIT_KEYS
# Whether the category is unknown, whether it can be compared with others, and is their reference.
UNKNOWN, COMPARED, IS_REFERENCE = "__unknown", "__compared", "__is_reference"
# Why a category is not compared, besides being unknown.
SMALL_SHARE = "small share"
# Place of a category in its attribute, and number of the attribute.
PLACE, _NUMBER = "__place", "__attribute_number"
_VALUE, _HEAVIEST = "__value", "__heaviest"


@dataclass(frozen=True)
class Categories:
    """The categories that rows are in, by each attribute and by all crossed.

    ``unknown`` says of each key whether its value is unknown.
    """

    divisions: Sequence[Grouping]
    models: Sequence[str]
    unknown: Mapping[str, pl.Expr]

    @property
    def keys(self) -> list[str]:
        """Columns that identify a category."""
        return [ATTRIBUTE, SEGMENT, *self.models]

    @property
    def partition_keys(self) -> list[str]:
        """Columns within which categories are compared."""
        return [ATTRIBUTE, *self.models]

    def members(self, cells: pl.LazyFrame, values: Sequence[str]) -> pl.LazyFrame:
        """Name the categories that cells of all keys crossed belong to; one for each division."""
        # The cells are used several times but computed once.
        cells = cells.cache()
        return pl.concat(
            self._of_division(number, division, cells, values)
            for number, division in enumerate(self.divisions)
        )

    @property
    def aggregates(self) -> dict[str, pl.Expr]:
        """What is kept of the members of each category besides its keys."""
        return {name: pl.col(name).min() for name in (_NUMBER, PLACE, UNKNOWN)}

    def _of_division(
        self, number: int, division: Grouping, cells: pl.LazyFrame, values: Sequence[str]
    ) -> pl.LazyFrame:
        is_unknown = pl.any_horizontal(self.unknown[key] for key in division.keys)
        order = [UNKNOWN, *division.keys, *self.models]
        ordered = cells.with_columns(is_unknown.alias(UNKNOWN)).sort(order)
        texts = [pl.col(key).cast(pl.String).fill_null(MISSING) for key in division.keys]
        name = pl.concat_str(texts, separator=", ")
        repeated = pl.struct(division.keys).n_unique().over(name, UNKNOWN) > 1
        named_once = require_at_collect(
            ~repeated | pl.col(UNKNOWN),
            "`by` must have values that name each segment differently",
            pl.concat_str(name, pl.lit(f" twice in {division.attribute!r}")),
        )
        return ordered.with_row_index(PLACE).select(
            pl.lit(number, pl.Int32).alias(_NUMBER),
            PLACE,
            UNKNOWN,
            pl.lit(division.attribute).alias(ATTRIBUTE),
            pl.when(~pl.col(UNKNOWN) & named_once).then(name).alias(SEGMENT),
            *(pl.col(each) for each in (*self.models, *values)),
        )

    def with_shares(self, table: pl.LazyFrame, min_share: float) -> pl.LazyFrame:
        """Add ``share``, ``excluded`` and `COMPARED` to categories with a ``weight``."""
        weight, unknown = pl.col("weight"), pl.col(UNKNOWN)
        total = over(weight.filter(~unknown).sum(), self.partition_keys)
        share = pl.when(~unknown & (total > 0) & total.is_finite()).then(weight / total)
        few = (pl.col("share") < min_share - TOLERANCE).fill_null(min_share > 0)
        excluded = pl.when(unknown).then(pl.lit("unknown")).when(few).then(pl.lit(SMALL_SHARE))
        return (
            table.with_columns(share=share)
            .with_columns(excluded=excluded)
            .with_columns(pl.col("excluded").is_null().alias(COMPARED))
        )

    def ordered(self, table: pl.LazyFrame, columns: Sequence[str]) -> pl.LazyFrame:
        """Return the columns of categories in their order, with models as text."""
        models = [pl.col(key).cast(pl.String) for key in self.models]
        return table.sort(_NUMBER, PLACE).select(ATTRIBUTE, SEGMENT, *models, *columns)


def read_categories(rows: Rows, unknown: Unknown, *, intersections: bool) -> Categories:
    """Read how the groups of checked rows are divided into categories."""
    arguments.flag("intersections", intersections)
    require_texts(rows)
    divisions = groupings(rows, intersections=intersections)[1:]
    names = [division.attribute for division in divisions]
    if repeated := [name for name in names if names.count(name) > 1]:
        msg = f"`by` must not have a column with the name of all crossed; found {repeated[0]!r}"
        raise ValueError(msg)
    return Categories(divisions, rows.model_keys, unknown_keys(unknown, rows))


@dataclass(frozen=True)
class CategoryReference:
    """The categories that are named as references of attributes; others have the ``kind``."""

    kind: str
    named: Mapping[str, str]

    @property
    def is_named(self) -> pl.Expr:
        """Whether the reference of an attribute is a named category."""
        return pl.col(ATTRIBUTE).is_in([*self.named])

    def marked(self, table: pl.LazyFrame, partition_keys: Sequence[str]) -> pl.LazyFrame:
        """Add whether a category is the named reference, `IS_REFERENCE`; raise if there is none."""
        if not self.named:
            return table.with_columns(pl.lit(value=False).alias(IS_REFERENCE))
        wanted = pl.lit(None, pl.String)
        for attribute, segment in self.named.items():
            wanted = pl.when(pl.col(ATTRIBUTE) == attribute).then(pl.lit(segment)).otherwise(wanted)
        is_wanted = (pl.col(SEGMENT) == wanted).fill_null(value=False) & self.is_named
        exists = over(is_wanted.any(), partition_keys) | ~self.is_named
        rule = pl.format(f"`reference` must be {self.kind!r} or a category of {{}}", ATTRIBUTE)
        there = require_at_collect(exists, rule, pl.format("no category '{}'", wanted))
        large = require_at_collect(
            ~is_wanted | pl.col(COMPARED),
            "`reference` must have at least `min_share` of the weight",
            pl.format("'{}' with {}", SEGMENT, pl.col("share").fill_null(0.0)),
        )
        return table.with_columns((is_wanted & there & large).alias(IS_REFERENCE))

    def with_highest(
        self, table: pl.LazyFrame, value: pl.Expr, partition_keys: Sequence[str]
    ) -> pl.LazyFrame:
        """Mark the category with the highest value where no reference is named.

        Of equal ones the one with more weight, then the first.
        """
        candidate = pl.when(pl.col(COMPARED) & ~self.is_named).then(value)
        highest = over(pl.col(_VALUE).max(), partition_keys)
        is_high = pl.when(pl.col(_VALUE) >= highest - TOLERANCE)
        heaviest = over(pl.col(_HEAVIEST).max(), partition_keys)
        first = pl.when(pl.col(_HEAVIEST) == heaviest).then(PLACE)
        chosen = pl.col(PLACE) == over(pl.col(_VALUE).min(), partition_keys)
        return (
            table.with_columns(candidate.alias(_VALUE))
            .with_columns(is_high.then("weight").alias(_HEAVIEST))
            .with_columns(first.alias(_VALUE))
            .with_columns(
                (pl.col(IS_REFERENCE) | chosen.fill_null(value=False)).alias(IS_REFERENCE)
            )
        )


def read_category_reference(
    reference: object, kind: str, categories: Categories, schema: pl.Schema
) -> CategoryReference:
    """Read a reference: the ``kind``, or a category for each of some attributes, or of the only."""
    if isinstance(reference, str) and reference == kind:
        return CategoryReference(kind, {})
    if isinstance(reference, Mapping):
        return CategoryReference(kind, named_segments(reference, categories.divisions, schema))
    if reference is None or len(categories.divisions) > 1:
        msg = (
            f"`reference` must be {kind!r} or map attributes to categories"
            f"{'' if reference is None else ' where there are several'}; found {shown(reference)}"
        )
        raise ValueError(msg)
    (division,) = categories.divisions
    (key,) = division.keys
    name = segment_name(division.attribute, reference, [schema[key]])
    return CategoryReference(kind, {division.attribute: name})


def with_reference(
    table: pl.LazyFrame, columns: Iterable[str], partition_keys: Sequence[str]
) -> pl.LazyFrame:
    """Add columns of the reference, under their `other_name`; null where there is none."""
    # The table is used twice but computed once.
    table = table.cache()
    named = (pl.col(name).alias(other_name(name)) for name in columns)
    chosen = table.filter(IS_REFERENCE).select(*partition_keys, *named)
    return join_on_keys(table, chosen, partition_keys)


def check_min_share(min_share: Any) -> float:
    """Check the least share of the weight that a category must have."""
    return arguments.number("min_share", min_share, low=0.0, high=1.0)
