"""Divisions of the rows into segments: categories of attributes, and of all crossed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Literal, TypeAlias

import polars as pl

from polars_wroc.groups.comparisons import PLACE
from polars_wroc.groups.references import IS_REFERENCE, Reference, other_name, read_reference
from polars_wroc.inputs import arguments, columns
from polars_wroc.inputs.arguments import did_you_mean, shown
from polars_wroc.inputs.columns import (
    AUDIT_KEYS,
    MISSING,
    OVERALL,
    IntoColumn,
    Typed,
    numeric,
    shown_as,
)
from polars_wroc.inputs.decisions import Unknown, unknown_keys
from polars_wroc.inputs.expressions import one_column
from polars_wroc.inputs.frames import require_texts
from polars_wroc.inputs.rows import Rows
from polars_wroc.plans.queries import join_on_keys, over, require_at_collect
from polars_wroc.stats.proportions import TOLERANCE

ATTRIBUTE, SEGMENT = AUDIT_KEYS
# Between the names of columns whose groups are crossed.
CROSSED = " \N{MULTIPLICATION SIGN} "
# The rule of two segments of one attribute that would have the same name.
NAMED_ONCE = "`attributes` must have values that name each segment differently"
# Whether attributes are crossed too, or alone.
Intersections: TypeAlias = bool | Literal["only"]


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

    @property
    def segment(self) -> pl.Expr:
        """The name of the segment of a row; null where the only key is."""
        if not self.keys:
            return pl.lit(OVERALL)
        texts = [pl.col(key).cast(pl.String) for key in self.keys]
        if len(texts) == 1:
            return texts[0]
        return pl.concat_str([text.fill_null(MISSING) for text in texts], separator=", ")

    def is_named_once(self, alone: pl.Expr, name: pl.Expr) -> pl.Expr:
        """Return True where a segment is ``alone`` with its name; raise at collect elsewhere."""
        twice = pl.lit(f" twice in {self.attribute!r}")
        return require_at_collect(alone, NAMED_ONCE, pl.concat_str(name, twice))

    def named(self, table: pl.LazyFrame) -> pl.LazyFrame:
        """Replace the keys by ``attribute`` and ``segment``."""
        return table.select(
            pl.lit(self.attribute).alias(ATTRIBUTE),
            self.segment.alias(SEGMENT),
            pl.exclude(self.keys),
        )

    def named_once(self, table: pl.LazyFrame, others: Sequence[str]) -> pl.LazyFrame:
        """Name segments, which have a row for each of the ``others``; raise at collect for two."""
        name = pl.col(SEGMENT).fill_null(MISSING)
        once = self.is_named_once(pl.len().over(name, *others) == 1, name)
        return self.named(table).with_columns(pl.when(once).then(SEGMENT).alias(SEGMENT))

    def check_names(self, segments: pl.DataFrame, models: Sequence[str]) -> None:
        """Check that segments, one row per segment and model, have different names."""
        named = segments.with_columns(pl.col("segment").fill_null(MISSING))
        repeated = named.filter(pl.struct("segment", *models).is_duplicated())["segment"]
        if not repeated.is_empty():
            msg = f"{NAMED_ONCE}; found {repeated[0]!r} twice in {self.attribute!r}"
            raise ValueError(msg)


def read_attributes(rows: Rows, intersections: Intersections) -> list[Grouping]:
    """Read the divisions of checked rows: by each attribute and, if wanted, by all crossed."""
    if intersections != "only":
        arguments.flag("intersections", intersections)
    require_texts(rows, "attributes")
    names = rows.group_names
    if intersections and len(names) == 1:
        msg = f"`intersections` needs two or more `attributes`; found {names}"
        raise ValueError(msg)
    keys = rows.group_keys
    crossed = [Grouping(tuple(keys), tuple(names))] if intersections else []
    for reserved in (OVERALL, *(division.attribute for division in crossed)):
        if reserved in names:
            msg = f"`attributes` must not have a column of the name {reserved!r}, which is taken"
            raise ValueError(msg)
    each = [Grouping((key,), (name,)) for key, name in zip(keys, names, strict=True)]
    return crossed if intersections == "only" else [*each, *crossed]


def _segment_name(attribute: str, value: object, types: Sequence[pl.DataType]) -> str:
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


# Whether the category is unknown, and whether it can be compared with others.
UNKNOWN, COMPARED = "__unknown", "__compared"
# Why a category is not compared, besides being unknown.
SMALL_SHARE = "small share"
_VALUE, _HEAVIEST = "__value", "__heaviest"


@dataclass(frozen=True)
class Categories:
    """The categories that rows are in, by each attribute and by all crossed.

    ``unknown`` says of each key whether its value is unknown. Categories with less than
    ``min_share`` of the weight are not compared.
    """

    divisions: Sequence[Grouping]
    models: Sequence[str]
    unknown: Mapping[str, pl.Expr]
    reference: CategoryReference
    min_share: float

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
        return {name: pl.col(name).min() for name in (PLACE, UNKNOWN)}

    def _of_division(
        self, number: int, division: Grouping, cells: pl.LazyFrame, values: Sequence[str]
    ) -> pl.LazyFrame:
        is_unknown = pl.any_horizontal(self.unknown[key] for key in division.keys)
        order = [UNKNOWN, *division.keys, *self.models]
        ordered = cells.with_columns(is_unknown.alias(UNKNOWN)).sort(order)
        name = division.segment.fill_null(MISSING)
        alone = pl.struct(division.keys).n_unique().over(name, UNKNOWN) == 1
        named_once = division.is_named_once(alone | pl.col(UNKNOWN), name)
        return ordered.with_row_index(PLACE).select(
            (pl.lit(number, pl.Int64) * (1 << 32) + pl.col(PLACE)).alias(PLACE),
            UNKNOWN,
            pl.lit(division.attribute).alias(ATTRIBUTE),
            pl.when(~pl.col(UNKNOWN) & named_once).then(name).alias(SEGMENT),
            *(pl.col(each) for each in (*self.models, *values)),
        )

    def marked(self, table: pl.LazyFrame) -> pl.LazyFrame:
        """Add ``share``, ``excluded``, `COMPARED` and `IS_REFERENCE` to a table with a ``weight``.

        Raise at collect for a named reference that is too small to be compared.
        """
        weight, unknown = pl.col("weight"), pl.col(UNKNOWN)
        total = over(weight.filter(~unknown).sum(), self.partition_keys)
        share = pl.when(~unknown & (total > 0) & total.is_finite()).then(weight / total)
        few = (pl.col("share") < self.min_share - TOLERANCE).fill_null(self.min_share > 0)
        excluded = pl.when(unknown).then(pl.lit("unknown")).when(few).then(pl.lit(SMALL_SHARE))
        shares = (
            table.with_columns(share=share)
            .with_columns(excluded=excluded)
            .with_columns(pl.col("excluded").is_null().alias(COMPARED))
        )
        large = require_at_collect(
            ~pl.col(IS_REFERENCE) | pl.col(COMPARED),
            "`reference` must have at least `min_share` of the weight",
            pl.format("'{}' with {}", SEGMENT, pl.col("share").fill_null(0.0)),
        )
        marked = self.reference.marked(shares, self.partition_keys)
        return marked.with_columns(pl.col(IS_REFERENCE) & large)

    def with_highest(self, table: pl.LazyFrame, value: pl.Expr) -> pl.LazyFrame:
        """Mark the category with the highest value where no reference is named.

        Of equal ones the one with more weight, then the first.
        """
        candidate = pl.when(pl.col(COMPARED) & ~self.reference.is_named).then(value)
        highest = over(pl.col(_VALUE).max(), self.partition_keys)
        is_high = pl.when(pl.col(_VALUE) >= highest - TOLERANCE)
        heaviest = over(pl.col(_HEAVIEST).max(), self.partition_keys)
        first = pl.when(pl.col(_HEAVIEST) == heaviest).then(PLACE)
        chosen = pl.col(PLACE) == over(pl.col(_VALUE).min(), self.partition_keys)
        return (
            table.with_columns(candidate.alias(_VALUE))
            .with_columns(is_high.then("weight").alias(_HEAVIEST))
            .with_columns(first.alias(_VALUE))
            .with_columns(
                (pl.col(IS_REFERENCE) | chosen.fill_null(value=False)).alias(IS_REFERENCE)
            )
        )

    def with_reference(self, table: pl.LazyFrame, columns: Iterable[str]) -> pl.LazyFrame:
        """Add columns of the reference, under their `other_name`; null where there is none."""
        # The table is used twice but computed once.
        table, keys = table.cache(), self.partition_keys
        named = (pl.col(name).alias(other_name(name)) for name in columns)
        return join_on_keys(table, table.filter(IS_REFERENCE).select(*keys, *named), keys)

    def ordered(self, table: pl.LazyFrame, columns: Sequence[str]) -> pl.LazyFrame:
        """Return the columns of categories in their order, with models as text."""
        models = [pl.col(key).cast(pl.String) for key in self.models]
        return table.sort(PLACE).select(ATTRIBUTE, SEGMENT, *models, *columns)


def read_categories(
    rows: Rows,
    unknown: Unknown,
    intersections: Intersections,
    reference: object,
    kind: str,
    min_share: float,
) -> Categories:
    """Read how the groups of checked rows are divided into categories, and how these compare.

    The ``kind`` of reference is that of attributes without a named one.
    """
    divisions = read_attributes(rows, intersections)
    schema = rows.frame.collect_schema()
    return Categories(
        divisions,
        rows.model_keys,
        unknown_keys(unknown, rows),
        read_category_reference(reference, (kind,), divisions, schema),
        arguments.number("min_share", min_share, low=0.0, high=1.0),
    )


@dataclass(frozen=True)
class CategoryReference:
    """The segments that are named as references of attributes; others have the ``kind``."""

    kind: str
    named: Mapping[str, str]
    kinds: Sequence[str] = ()

    @property
    def given(self) -> str | dict[str, str]:
        """The argument, with the names of segments."""
        return dict(self.named) if self.named else self.kind

    @property
    def is_mutual(self) -> bool:
        """Whether each of two segments is the reference of the other, unless one is named."""
        return self.kind in ("rest", "overall")

    def check(self, segments: pl.DataFrame) -> None:
        """Check that the named segments are there."""
        for attribute, segment in self.named.items():
            known = segments.filter(pl.col(ATTRIBUTE) == attribute)[SEGMENT].unique(
                maintain_order=True
            )
            if segment not in known:
                msg = (
                    f"`reference` must name a segment by {attribute!r}, one of "
                    f"{known.drop_nulls().to_list()}; found {segment!r}"
                    f"{arguments.did_you_mean(segment, [*known.drop_nulls(), *self.kinds])}"
                )
                raise ValueError(msg)

    @property
    def is_named(self) -> pl.Expr:
        """Whether the reference of an attribute is a named category."""
        return pl.col(ATTRIBUTE).is_in([*self.named])

    def marked(self, table: pl.LazyFrame, partition_keys: Sequence[str]) -> pl.LazyFrame:
        """Add whether a category is the named reference, `IS_REFERENCE`; raise if there is none."""
        if not self.named:
            return table.with_columns(pl.lit(value=False).alias(IS_REFERENCE))
        wanted = pl.col(ATTRIBUTE).replace_strict(
            dict(self.named), default=None, return_dtype=pl.String
        )
        is_wanted = (pl.col(SEGMENT) == wanted).fill_null(value=False)
        exists = over(is_wanted.any(), partition_keys) | ~self.is_named
        kinds = ", ".join(repr(kind) for kind in self.kinds or (self.kind,))
        rule = pl.format(f"`reference` must be {kinds} or a segment of {{}}", ATTRIBUTE)
        # Of one alone it is known which one is not there.
        only = next(iter(self.named.values())) if len(self.named) == 1 else ""
        # A kind is for all attributes.
        hint = "" if only in self.kinds else did_you_mean(only, self.kinds)
        found = f"no segment '{{}}'{hint}"
        there = require_at_collect(exists, rule, pl.format(found, wanted))
        return table.with_columns((is_wanted & there).alias(IS_REFERENCE))

    def of_segments(self, segments: Rows, min_rows: int) -> list[tuple[pl.Expr, Reference]]:
        """Pair each reference of `marked` segments with the condition on those it applies to."""
        kind = read_reference(self.kind, segments, min_rows)
        if not self.named:
            return [(pl.lit(value=True), kind)]
        named = Reference(segments.model_keys, kind.units)
        return [(self.is_named, named), (~self.is_named, kind)]


def read_category_reference(
    reference: object, kinds: Sequence[str], divisions: Sequence[Grouping], schema: pl.Schema
) -> CategoryReference:
    """Read a reference: a kind, or a segment for each of some attributes, or of the only one.

    Attributes without a named segment have the first of the ``kinds``.
    """
    if isinstance(reference, str) and reference in kinds:
        return CategoryReference(reference, {}, kinds)
    types = {each.attribute: [schema[key] for key in each.keys] for each in divisions if each.keys}
    if isinstance(reference, Mapping):
        named = reference
    elif reference is not None and len(divisions) == 1:
        named = dict.fromkeys(types, reference)
    else:
        msg = (
            f"`reference` must be {', '.join(repr(kind) for kind in kinds)} or map attributes to "
            f"segments{'' if reference is None else ' where there are several'}; "
            f"found {shown(reference)}"
        )
        raise ValueError(msg)
    for attribute in named:
        if attribute not in types:
            hint = did_you_mean(attribute, types)
            arguments.reject(
                "reference", f"name attributes out of {list(types)}", f"{attribute!r}{hint}"
            )
    names = {each: _segment_name(each, value, types[each]) for each, value in named.items()}
    return CategoryReference(kinds[0], names, kinds)


# From here on Polars has no integer literals.
_INTEGERS = 2.0**63


def ranges(column: IntoColumn, breaks: Sequence[float]) -> pl.Expr:
    """Cut numbers into ranges, to be groups: ages into <30, 30-44 and 45+.

    Parameters
    ----------
    column
        Column of numbers, by name or as an expression.
    breaks
        Where a range begins, in increasing order.

    Returns
    -------
    pl.Expr
        An Enum of the names of the ranges, in their order, under the name of the column. ``[30,
        45]`` gives ``<30``, then ``30-44`` of whole numbers and ``30 to <45`` of others, and
        ``45+``. Null is in no range, and neither is NaN: both give null.

    Raises
    ------
    TypeError, ValueError
        For breaks that are not finite numbers in increasing order, or none; when a query is
        planned, for a column that is not numeric.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> people = pl.DataFrame({"age": [17, 30, 44, 61, None], "hired": [0, 1, 0, 1, 1]})
    >>> people.select(wroc.ranges("age", [30, 45])).to_series().to_list()
    ['<30', '30-44', '30-44', '45+', None]
    >>> rates = wroc.impact_ratios(
    ...     people,
    ...     attributes=wroc.ranges("age", [45]),
    ...     selected=pl.col("hired") == 1,
    ...     favorable="selected",
    ... )
    >>> rates["segment"].to_list()
    ['<45', '45+', None]
    """
    cuts = _increasing(breaks)
    return pl.pipe_with_dtype([one_column("column", column)], partial(_cut, cuts=cuts))


def _increasing(breaks: object) -> list[float]:
    """Check where ranges begin; whole numbers are integers, others floats."""
    if not isinstance(breaks, Iterable) or isinstance(breaks, str | bytes):
        arguments.reject_type("breaks", "be a list of numbers", breaks)
    cuts = [arguments.number("breaks", cut, finite=True) for cut in breaks]
    if not cuts or any(low >= high for low, high in pairwise(cuts)):
        found = arguments.shown(breaks)
        arguments.reject("breaks", "be one or more numbers in increasing order", found)
    return [int(cut) if cut.is_integer() and abs(cut) < _INTEGERS else cut + 0.0 for cut in cuts]


def _cut(columns: list[tuple[pl.Expr, pl.DataType]], *, cuts: Sequence[float]) -> pl.Expr:
    """Name the range of each number."""
    ((column, dtype),) = columns
    value = numeric(Typed("column", column, dtype, shown_as(column)))
    if not dtype.is_integer():
        value = (value.cast(pl.Float64) if dtype.is_decimal() else value).fill_nan(None)
    names = _names(cuts, whole=dtype.is_integer() and all(isinstance(cut, int) for cut in cuts))
    below = [*(value < cut for cut in cuts), value.is_not_null()]
    named = pl.coalesce(
        pl.when(holds).then(pl.lit(name)) for holds, name in zip(below, names, strict=True)
    )
    return named.cast(pl.Enum(names)).alias(column.meta.output_name())


def _names(cuts: Sequence[float], *, whole: bool) -> list[str]:
    """Name the ranges; of ``whole`` numbers by their first and last, as in 30-44."""
    between = []
    for low, high in pairwise(cuts):
        if not whole:
            between.append(f"{low} to <{high}")
        elif high - low == 1:
            between.append(f"{low}")
        else:
            between.append(f"{low}{'-' if cuts[0] >= 0 else ' to '}{high - 1}")
    return [f"<{cuts[0]}", *between, f"{cuts[-1]}+"]


def period_of(time: Typed, every: object) -> pl.Expr:
    """Truncate a column of dates or times to the start of its period."""
    if not isinstance(every, str):
        arguments.reject_type("every", "be a length of time such as '1mo'", every)
    if time.dtype not in (pl.Date, pl.Datetime):
        msg = f"`{time.argument}` must hold dates or times with `every`; found {time}"
        raise TypeError(msg)
    try:
        pl.select(pl.date(2000, 1, 1).dt.truncate(every))
    except pl.exceptions.PolarsError:
        msg = f"`every` must be a length of time such as '1mo', '1w' or '1q'; found {every!r}"
        raise ValueError(msg) from None
    return time.column.dt.truncate(every)
