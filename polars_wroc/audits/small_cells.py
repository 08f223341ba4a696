"""Audits for publication: without numbers of few rows, or numbers that would reveal them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, TypeVar

import polars as pl

from polars_wroc.audits.tables import COMPARED, AuditSettings, AuditTables, name_of
from polars_wroc.groups.comparisons import (
    FAIRNESS,
    IMPACT_RATIO,
    NO_REFERENCE,
    SMD,
    UNKNOWN_REASON,
)
from polars_wroc.inputs.columns import AUDIT_KEYS, MISSING, OVERALL
from polars_wroc.inputs.reasons import UNDEFINED

Tables = TypeVar("Tables", bound=AuditTables)
# By attribute and name.
Segment: TypeAlias = tuple[str, str | None]
_ROUNDING = 1e-9
_SEGMENT = pl.col(AUDIT_KEYS[1]).fill_null(MISSING)
# Columns about the reference.
_REFERENCE_COLUMNS = ("reference", "n_reference", *COMPARED)
# Limits for all pairs, and a test of all segments, depend on each of them.
_JOINT_COLUMNS = ("gap_low", "gap_high", "ratio_low", "ratio_high", "p_value")


def publish(
    audited: Callable[[Sequence[str]], Tables], attributes: Sequence[str], min_cell: int | None
) -> Tables:
    """Return an audit without the numbers of segments that are too small to be published.

    ``audited`` takes attributes, and measures only rows that have a value of each. The rows without
    a value of these attributes are too few to be published, even in totals.
    """
    unknown: dict[str, int] = {}
    audit = audited([])
    while min_cell is not None:
        more = attributes_to_complete(audit.segments, attributes, min_cell)
        if not more:
            return without_small_cells(audit, min_cell, unknown)
        missing = dict(audit.missing.rows())
        unknown |= {name: missing[name] for name in more}
        audit = audited([*unknown])
    return audit


def without_small_cells(audit: Tables, min_cell: int, unknown: Mapping[str, int]) -> Tables:
    """Return an audit without small segments, and without others that would reveal them.

    A segment is left out if it has fewer than ``min_cell`` rows of a class or, with a threshold,
    of a decision. At least two segments, with that many rows together, must be left out of a
    published total: the smallest others are left out until that holds. Rows without a score, weight
    or decision are in no class or decision; only their total number is kept. The same applies to
    rows without a label, unless each segment has none or at least ``min_cell`` of them: see
    `have_few_unlabeled`. The audit has no rows without a value of the ``unknown`` attributes, which
    have these numbers of such rows.

    Raises
    ------
    ValueError
        If nothing is left: all rows together have too few of a class or of a decision.
    """
    hidden = hidden_segments(audit.segments, min_cell)
    if (OVERALL, OVERALL) in hidden:
        kind = "class or of a decision" if audit.settings.labeled else "decision"
        rule = "`min_cell` must leave something to show"
        msg = f"{rule}; found fewer than {min_cell} rows of a {kind} in all"
        raise ValueError(msg)
    # Numbers of few rows are left out like those of small segments.
    told = {name: rows if rows >= min_cell else None for name, rows in unknown.items()}
    told |= _count_without_value(audit, min_cell, unknown)
    told |= {attribute: None for attribute, segment in hidden if segment is None}
    n_missing = pl.col("n_missing")
    for name, rows in told.items():
        n_missing = pl.when(pl.col("column") == name).then(rows).otherwise(n_missing)
    segments = _without_few_missing(audit.segments, min_cell)
    run = replace(
        audit.run,
        left_out=[
            f"{attribute} {name_of(segment)}"
            for attribute, segment in (*((name, None) for name in unknown), *hidden)
        ],
        left_out_of_totals=[*unknown],
    )
    return replace(
        audit,
        table=_leave_out_hidden(audit.table, hidden, audit.settings),
        segments=segments.filter(~_is_hidden(_SEGMENT, hidden)),
        curves=audit.curves.filter(~_is_hidden(_SEGMENT, hidden)),
        missing=audit.missing.with_columns(n_missing=n_missing),
        run=run,
        # Bins of scores have few rows.
        distributions=audit.distributions.clear(),
    )


def have_few_unlabeled(segments: pl.DataFrame, min_cell: int) -> bool:
    """Return whether some segment has few decisions on rows without a label.

    Numbers with and without them would reveal these decisions.
    """
    unlabeled = segments["n_decided"] - segments["n"]
    return bool(unlabeled.is_between(1, min_cell - 1).any())


def _count_without_value(
    audit: AuditTables, min_cell: int, unknown: Mapping[str, int]
) -> dict[str, int | None]:
    """Return the numbers of rows without a value of each attribute, as in its segment.

    The number of all such rows would reveal how many lack a label or a score.
    """
    of_segments = audit.segments.filter(pl.col(AUDIT_KEYS[1]).is_null())
    counts = dict(of_segments.group_by(AUDIT_KEYS[0]).agg(pl.col("n").max()).rows())
    missing = dict(audit.missing.rows())
    told: dict[str, int | None] = {}
    for attribute in audit.settings.attributes:
        if attribute in counts:
            told[attribute] = counts[attribute]
        elif attribute not in unknown and 0 < (missing.get(attribute) or 0) < min_cell:
            told[attribute] = None
    return told


def _without_few_missing(segments: pl.DataFrame, min_cell: int) -> pl.DataFrame:
    """Return segments without numbers of unmeasured rows, if one of these is small."""
    overall, missing = pl.col("attribute") == OVERALL, pl.col("n_missing")
    few = (~overall & missing.is_between(1, min_cell - 1)).any()
    return segments.with_columns(pl.when(overall | ~few).then(missing).alias("n_missing"))


def _leave_out_hidden(
    table: pl.DataFrame, hidden: Sequence[Segment], settings: AuditSettings
) -> pl.DataFrame:
    """Return a table without hidden segments, and without what other rows say about them."""
    hidden_reference = _is_hidden(pl.col("reference"), hidden)
    is_fair = pl.col("metric").is_in([*FAIRNESS, SMD.name])
    is_impact = pl.col("metric") == IMPACT_RATIO
    of = pl.col("attribute")
    some_hidden = of.is_in([attribute for attribute, _ in hidden])
    # Rows of unknown categories reveal the sizes of others, and combinations are no segments.
    unknown = pl.col("reason").eq_missing(UNKNOWN_REASON) & (
        some_hidden | ~of.is_in(settings.attributes)
    )
    kept = table.filter(~_is_hidden(_SEGMENT, hidden), ~(is_fair & hidden_reference), ~unknown)
    # Other segments may have the name of the rest.
    named = of.is_in([*settings.reference.named])
    hides = hidden_reference & (named | is_impact)
    reason = pl.when(is_impact).then(pl.lit(UNDEFINED)).otherwise(pl.lit(NO_REFERENCE))
    of_all = is_fair & some_hidden
    return kept.with_columns(
        *(
            pl.when(~hides).then(name).alias(name)
            for name in _REFERENCE_COLUMNS
            if name not in _JOINT_COLUMNS
        ),
        *(pl.when(~hides & ~of_all).then(name).alias(name) for name in _JOINT_COLUMNS),
        *(
            pl.when(~(hides & is_impact)).then(name).alias(name)
            for name in ("value", "value_low", "value_high")
        ),
        pl.when(hides).then(reason).otherwise("reason").alias("reason"),
    )


def _is_hidden(name: pl.Expr, hidden: Sequence[Segment]) -> pl.Expr:
    """Return whether the segment of a name is hidden; false without a name."""
    names = [f"{attribute}\0{name_of(segment)}" for attribute, segment in hidden]
    return pl.concat_str("attribute", name, separator="\0").is_in(names).fill_null(value=False)


def attributes_to_complete(
    segments: pl.DataFrame, attributes: Sequence[str], min_cell: int
) -> list[str]:
    """Return the attributes of which only the segment of missing values is too small.

    Totals would reveal it. Instead of another segment, its rows are left out of the totals.
    """
    small: dict[str, list[str | None]] = {attribute: [] for attribute in attributes}
    sizes = dict.fromkeys(attributes, 0)
    for (attribute, segment), numbers in _counts(segments).items():
        if attribute in sizes:
            sizes[attribute] += 1
            small[attribute] += [segment] if min(numbers) < min_cell else []
    return [one for one in attributes if small[one] == [None] and sizes[one] > 1]


def hidden_segments(segments: pl.DataFrame, min_cell: int) -> list[Segment]:
    """Return the segments that are left out, in order.

    The segments of an attribute add up to all rows. So the smallest other segments are left out
    too, until there are several, large enough together.
    """
    counts = _counts(segments)
    by_attribute: dict[str, list[Segment]] = {}
    for segment in counts:
        by_attribute.setdefault(segment[0], []).append(segment)
    hidden: set[Segment] = set()
    for parts in by_attribute.values():
        out = [one for one in parts if min(counts[one]) < min_cell]
        shown = sorted((one for one in parts if one not in out), key=lambda one: sum(counts[one]))
        while out and shown and not _are_protected([counts[one] for one in out], min_cell):
            out.append(shown.pop(0))
        hidden.update(out)
    return [one for one in counts if one in hidden]


def _are_protected(counts: Sequence[Sequence[int]], min_cell: int) -> bool:
    """Return whether totals reveal nothing about left-out segments with these counts."""
    together = [sum(numbers) for numbers in zip(*counts, strict=True)]
    return len(counts) > 1 and min(together) >= min_cell


def _counts(segments: pl.DataFrame) -> dict[Segment, list[int]]:
    """Return the rows by class, decision and segment; the smallest number of several scores."""
    numbers = dict[str, pl.Expr]()
    if segments["n_pos"].count():
        numbers |= {"pos": pl.col("n_pos"), "neg": pl.col("n_neg")}
    if segments["n_selected"].count():
        numbers |= {
            "selected": pl.col("n_selected"),
            "not": pl.col("n_decided") - pl.col("n_selected"),
        }
    least = {name: value.min() for name, value in numbers.items()}
    table = segments.group_by(AUDIT_KEYS, maintain_order=True).agg(**least)
    return {(row[0], row[1]): list(row[2:]) for row in table.rows()}
