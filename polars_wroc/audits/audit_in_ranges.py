"""The audit of data larger than memory, computed one range of scores at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import polars as pl

from polars_wroc.audits.added_ranges import AddedSegments
from polars_wroc.audits.arguments import AuditArguments
from polars_wroc.audits.measure import (
    Measured,
    measure_segments,
    reference_of,
)
from polars_wroc.audits.plan import AuditPlan
from polars_wroc.audits.range_sums import GroupingKeys, SumsOfAudit, decisions
from polars_wroc.audits.read_rows import refuse_no_rows
from polars_wroc.audits.references import AuditReference
from polars_wroc.audits.result import Audit
from polars_wroc.audits.text import Text
from polars_wroc.counts.score_sums import LOW, check_labels
from polars_wroc.groups.auc_sums import AucSums
from polars_wroc.groups.references import Reference
from polars_wroc.inputs import arguments
from polars_wroc.inputs.arguments import WeightType
from polars_wroc.inputs.columns import IntoColumn
from polars_wroc.inputs.decisions import Favorable
from polars_wroc.inputs.margins import MARGIN
from polars_wroc.inputs.missing import MISSING_MARKS, MissingRows, count_missing
from polars_wroc.inputs.named_columns import named_columns
from polars_wroc.inputs.rows import CLASSES, IntoColumns, Rows
from polars_wroc.metrics.auc_interval import Method
from polars_wroc.metrics.range_passes import PassesInTurn, RangePasses
from polars_wroc.metrics.score_ranges import ScoreRange, cut_ranges, rows_by_score
from polars_wroc.metrics.summary_in_ranges import ROWS_PER_RANGE, Frames, read_parts
from polars_wroc.plans.by_keys import aggregate
from polars_wroc.plans.collect import collect
from polars_wroc.stats.multiple_tests import Adjust
from polars_wroc.thresholds.rules import Criterion
from polars_wroc.thresholds.search import THRESHOLD


def audit_in_ranges(
    frames: Frames,
    label: IntoColumn,
    score: IntoColumns,
    *,
    by: IntoColumns,
    weight: IntoColumn | None = None,
    pos_label: object = None,
    threshold: float | None = None,
    criterion: Criterion | None = None,
    cost_fn: float | None = None,
    cost_fp: float | None = None,
    prevalence: float | None = None,
    max_fpr: float | None = None,
    min_tpr: float | None = None,
    max_selection_rate: float | None = None,
    intersections: bool = False,
    reference: AuditReference = "rest",
    level: float = 0.95,
    adjust: Adjust = "holm",
    min_rows: int = 30,
    margin: float = MARGIN,
    favorable: Favorable | None = None,
    method: Method = "score",
    weight_type: WeightType = "probability",
    rows_per_range: int = ROWS_PER_RANGE,
    text: Text | None = None,
    min_cell: int | None = None,
) -> Audit:
    """`audit` of data larger than memory, computed one range of scores at a time.

    Parameters
    ----------
    frames
        One or several LazyFrames or DataFrames, whose rows are audited together. A frame is read
        for a range only if it has scores in it: see `summary_in_ranges`.
    label, score, by, weight, pos_label, threshold, intersections, reference, level, adjust
        As for `audit`.
    criterion, cost_fn, cost_fp, prevalence, max_fpr, min_tpr, max_selection_rate
        As for `audit`. The range with the chosen threshold is read twice.
    min_rows, margin, favorable, method, weight_type, text, min_cell
        As for `audit`.
    rows_per_range
        About how many rows are in memory at once, each counted once for each score. The frames
        are read once to count and once for each range, so that smaller ranges take longer.

    Returns
    -------
    Audit
        The result of `audit` for all rows, with one row per attribute and segment (and model) in
        ``segments``; numbers may differ in the last digits.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `audit`; also for frames with different groups and for ``rows_per_range`` below 1.

    Notes
    -----
    The method is that of `summary_in_ranges`: a first pass counts the rows of each combination of
    attributes in bins of scores, and then one pass for each range adds up the sums of all segments.
    Besides a range the counts are in memory, whose number grows with these combinations and the
    bins that have rows of them. There is no ``cluster``, since rows of one cluster may be in
    different ranges, no ``selected``, since counts by score have no decisions, and no calibration
    slope or intercept. Ranges are measured by Polars, whatever the engine. `polars_wroc.dask.audit`
    does the same on several machines, all ranges at once.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> monday = pl.LazyFrame({"y": [1, 0], "s": [0.9, 0.8], "sex": ["f", "f"]})
    >>> tuesday = pl.LazyFrame({"y": [1, 0], "s": [0.7, 0.1], "sex": ["m", "m"]})
    >>> audit = wroc.audit_in_ranges([monday, tuesday], "y", "s", by="sex", rows_per_range=2)
    >>> audit.segments.select("attribute", "segment", "n", "auc")
    shape: (3, 4)
    ┌───────────┬─────────┬─────┬──────┐
    │ attribute ┆ segment ┆ n   ┆ auc  │
    │ ---       ┆ ---     ┆ --- ┆ ---  │
    │ str       ┆ str     ┆ i64 ┆ f64  │
    ╞═══════════╪═════════╪═════╪══════╡
    │ overall   ┆ overall ┆ 4   ┆ 0.75 │
    │ sex       ┆ f       ┆ 2   ┆ 1.0  │
    │ sex       ┆ m       ┆ 2   ┆ 1.0  │
    └───────────┴─────────┴─────┴──────┘
    """
    asked = AuditArguments(
        label=label,
        score=score,
        by=by,
        weight=weight,
        pos_label=pos_label,
        threshold=threshold,
        criterion=criterion,
        cost_fn=cost_fn,
        cost_fp=cost_fp,
        prevalence=prevalence,
        max_fpr=max_fpr,
        min_tpr=min_tpr,
        max_selection_rate=max_selection_rate,
        intersections=intersections,
        reference=reference,
        level=level,
        adjust=adjust,
        min_rows=min_rows,
        margin=margin,
        favorable=favorable,
        text=text,
        min_cell=min_cell,
        method=method,
        weight_type=weight_type,
    )
    return audit_by(PassesInTurn, "frames", frames, asked, rows_per_range)


def audit_by(
    passes: Callable[[Sequence[Rows]], RangePasses],
    argument: str,
    frames: Frames,
    asked: AuditArguments,
    rows_per_range: int,
) -> Audit:
    """Audit the rows of several frames by passes over them, in ranges of about so many rows."""
    rows_per_range = arguments.whole_number("rows_per_range", rows_per_range, low=1)
    columns = (asked.label, asked.score, asked.weight, asked.by, asked.pos_label)
    parts = read_parts(argument, frames, *columns, mark_missing=True)
    first = frames if isinstance(frames, pl.DataFrame | pl.LazyFrame) else frames[0]
    plan = asked.plan(parts[0], list(named_columns("score", asked.score, first.lazy())))

    def measure(complete: Sequence[str]) -> Measured:
        marked = [part.with_values(complete) for part in parts]
        unmarked = [replace(part, frame=part.frame.drop(MISSING_MARKS)) for part in marked]
        return _measure(passes(unmarked), marked, plan, argument, rows_per_range)

    return asked.result(measure, plan, parts[0])


def _measure(
    passes: RangePasses,
    marked: Sequence[Rows],
    plan: AuditPlan,
    argument: str,
    rows_per_range: int,
) -> Measured:
    """Count the rows in one pass, measure each range, and add up the sums of all."""
    marks = [part.regrouped([*part.group_keys, MISSING_MARKS]) for part in marked]
    counts = collect(check_labels(passes.count(marks).lazy(), []))
    if not counts.select(pl.sum_horizontal("n_pos", "n_neg").sum()).item():
        refuse_no_rows(argument, int(counts["n_missing"].sum()))
    rows = rows_by_score(counts.lazy(), passes.keys, passes.model_keys)
    reference = reference_of(rows, plan)
    ranges = cut_ranges(counts, passes.keys, rows_per_range)
    task = SumsOfAudit(plan, _nearly_all(counts, rows, plan, reference))
    ranked = AddedSegments(
        reference,
        plan.interval.for_rows(rows),
        rows,
        passes.measure(ranges, task),
        counts,
        partial(_decide, passes, ranges, counts),
    )
    return measure_segments(plan, ranked, _missing(counts, marks[0], plan))


def _missing(counts: pl.DataFrame, marked: Rows, plan: AuditPlan) -> MissingRows:
    """Count the rows that miss a value from the counts of marked rows."""
    rows = rows_by_score(counts.lazy(), marked.keys, marked.model_keys)
    return count_missing(collect(rows.frame), marked.names, plan.scores)


def _nearly_all(
    counts: pl.DataFrame, rows: Rows, plan: AuditPlan, reference: Reference
) -> dict[GroupingKeys, pl.DataFrame]:
    """List the segments whose complements have to be summed themselves, in each grouping."""
    own = AucSums("own", reference.units)
    powers = {"weight": "w", "squares": "w" if reference.units == "frequency" else "w2"}
    totals = {
        own.power(name, side): pl.col(f"{power}_{side}").sum()
        for name, power in powers.items()
        for side in CLASSES
    }
    found = {}
    for grouping in plan.groupings:
        # The overall sample is compared with nothing.
        if grouping.keys:
            keys = rows.regrouped(grouping.keys).keys
            large = reference.nearly_all(aggregate(counts.lazy(), keys, totals)).select(keys)
            found[grouping.keys] = collect(large)
    return {keys: large for keys, large in found.items() if not large.is_empty()}


def _decide(
    passes: RangePasses,
    ranges: Sequence[ScoreRange],
    counts: pl.DataFrame,
    thresholds: pl.DataFrame,
) -> list[pl.DataFrame]:
    """Count the decisions of all ranges, reading only those that a threshold may divide."""
    given = thresholds[THRESHOLD].drop_nulls()
    return passes.measure(
        [_undivided(each, counts, given) for each in ranges],
        partial(decisions, thresholds=thresholds),
    )


def _undivided(each: ScoreRange, counts: pl.DataFrame, thresholds: pl.Series) -> ScoreRange:
    """Let the counts of a range that no threshold divides stand for its rows."""
    low, high = each.span.low, each.span.high
    if each.known is not None or thresholds.is_between(float(low), float(high)).any():
        return each
    return replace(each, known=counts.filter(pl.col(LOW).is_between(low, high)))
