"""Metrics by period, compared with all earlier periods, and shifts of the scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from polars_wroc.arrays import Array
from polars_wroc.bounds import Confidence, Margin, MinRows
from polars_wroc.buckets import number_groups
from polars_wroc.calls import check_call
from polars_wroc.checks import MARGIN
from polars_wroc.counts.count_table import CountTable
from polars_wroc.groups import compare_segments, group_columns
from polars_wroc.groups.categories import period_of
from polars_wroc.groups.compare_segments import GapRules, Partition
from polars_wroc.groups.comparisons import COMPARABLE, COMPARISON_SCHEMA, FIRST_PERIOD, SHIFTS
from polars_wroc.groups.divisions import name_segments
from polars_wroc.groups.group_columns import (
    ComparisonPart,
    GroupColumns,
    InnerColumns,
    choose_texts,
)
from polars_wroc.groups.group_gaps import read_compared_metrics, read_needs
from polars_wroc.inputs.columns import OVERALL, IntoColumn, IntoWeight, Typed
from polars_wroc.inputs.designs import Design
from polars_wroc.inputs.expressions import as_column, named_columns, typed_column
from polars_wroc.inputs.frames import require_text
from polars_wroc.inputs.reasons import NO_VARIANCE, ONE_SCORE, UNDEFINED, few_rows
from polars_wroc.inputs.rows import IntoColumns, RowSource, read_source
from polars_wroc.metrics.mean_sums import count_classes
from polars_wroc.metrics.pairs import pair_with_chance
from polars_wroc.metrics.score_shifts import measure_shifts
from polars_wroc.metrics.segments import Needs, Segments, measure_segments
from polars_wroc.queries import FrameT
from polars_wroc.rows import Rows, table_of
from polars_wroc.stats.families import Adjustment, adjust_p_values, judge
from polars_wroc.stats.references import Reference
from polars_wroc.stats.shifts import Shift
from polars_wroc.thresholds.rules import Threshold, read_threshold

PERIOD, CRITICAL = "period", "critical"
_SELECTION_RATE = "selection_rate"
_BEFORE = "before"
_SHIFT_AUC, _KS, _PSI = SHIFTS


@check_call
def trend(
    frame: FrameT,
    label: IntoColumn | None,
    score: IntoColumns | None = None,
    *,
    over: IntoColumn,
    every: str | None = None,
    attributes: IntoColumns | None = None,
    threshold: Threshold | None = None,
    selected: IntoColumn | None = None,
    metrics: Sequence[str] | None = None,
    weight: IntoWeight | None = None,
    pos_label: object = None,
    margin: Margin = MARGIN,
    min_rows: MinRows = 30,
    level: Confidence = 0.95,
    adjust: Adjustment = "holm",
    design: Design | None = None,
) -> FrameT:
    """Return metrics over time, overall and per segment, compared with all earlier periods.

    Use it to monitor a score: performance where labels have arrived, and shifts of the score
    distribution where they have not.

    The main columns are:

    - ``period, attribute, segment, metric``: what the row describes; ``"overall"`` is all rows;
    - ``value, value_low, value_high``: the metric in the period;
    - ``reference_value``: the metric in all earlier periods of the segment together;
    - ``gap, gap_low, gap_high``: the change, with its confidence interval;
    - ``verdict, reason``: as in `group_gaps`; the first period has the reason ``"the first
      period"``;
    - ``critical``: what KS or PSI would exceed by chance with a probability of ``1 - level``.

    Parameters
    ----------
    frame, label, score, weight, pos_label
        As for `summary`. Without a ``label`` there are the selection rate and the shifts of the
        scores, all of which also use rows with a null label; without a ``score``, only the
        ``selected`` decisions.
    over
        Column or expression of each row's time: anything that can be sorted. Rows where it is null
        are left out.
    every
        Length of a period, for example ``"1mo"``, ``"1w"`` or ``"1q"``, to which dates and times
        are truncated as by ``dt.truncate``. None takes the values as they are.
    attributes
        Columns or expressions whose segments are followed separately, besides all rows.
    threshold, selected, margin, min_rows
        As for `group_gaps`.
    metrics
        Metrics of `group_gaps`, and ``"shift_auc"``, ``"score_ks"`` and ``"psi"``. None: the AUC,
        with decisions their rates, and these three.
    level, adjust
        As for `group_gaps`, but without `Looks`. Tests are adjusted within one table: for a new
        table in each of 12 months, ``level=1 - 0.05 / 12`` keeps the yearly error at 5 %.
    design
        As for `group_gaps`. Give clusters if people or other units return in later periods.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        The comparison table of `group_gaps` with the reference ``"before"``, then ``period`` (in
        the type of ``over``) and ``critical`` (Float64; null for other metrics and with a
        ``design``). Rows are sorted by segment, all rows first, then by score, period and metric.
        In the first period all columns of the comparison are null.

        Three metrics describe the shift of all scores, labelled or not:

        - ``shift_auc``: probability that a score of this period exceeds an earlier one, ties
          counting half; the reference is 0.5.
        - ``score_ks``: largest distance between both distributions.
        - ``psi``: population stability index over tenths of the earlier weight. If all scores are
          in one tenth it is 0 and not tested (``"one score"``).

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `group_gaps`; also for ``every`` with values that are neither dates nor times.

    Notes
    -----
    ``p_adjusted`` covers the metrics of `group_gaps` in all segments and periods together; each of
    the three shift measures is a family of its own. With a ``design`` KS and PSI are not tested.
    PSI is compared with chi-squared [1]_ and KS with Kolmogorov's distribution [2]_.
    [Formulas](../explanation/statistics.md#trend).

    References
    ----------
    .. [1] Yurdakul, B., Naranjo, J. (2020), Journal of Risk Model Validation 14, 89-100.
    .. [2] Stephens, M. A. (1970), Journal of the Royal Statistical Society B 32, 115-122.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame(
    ...     {
    ...         "month": [1] * 4 + [2] * 4,
    ...         "y": [1, 1, 0, 0, 1, 0, 1, 0],
    ...         "s": [0.9, 0.6, 0.5, 0.2, 0.8, 0.7, 0.4, 0.3],
    ...     }
    ... )
    >>> metrics = ["auc", "shift_auc"]
    >>> table = wroc.trend(df, "y", "s", over="month", metrics=metrics, min_rows=0)
    >>> table.filter(period=2).select("metric", "value", "reference_value", "gap")
    shape: (2, 4)
    ┌───────────┬───────┬─────────────────┬───────┐
    │ metric    ┆ value ┆ reference_value ┆ gap   │
    │ ---       ┆ ---   ┆ ---             ┆ ---   │
    │ str       ┆ f64   ┆ f64             ┆ f64   │
    ╞═══════════╪═══════╪═════════════════╪═══════╡
    │ auc       ┆ 0.75  ┆ 1.0             ┆ -0.25 │
    │ shift_auc ┆ 0.5   ┆ 0.5             ┆ 0.0   │
    └───────────┴───────┴─────────────────┴───────┘
    """
    choice = read_threshold(threshold, selected)
    source = read_source(frame)
    if isinstance(source, CountTable) and not source.has_labels:
        label = None
    compared = _read_metrics(
        metrics, label=label is not None, score=score is not None, decided=choice is not None
    )
    groups = group_columns.read_groups(
        source,
        label,
        score,
        attributes,
        choice=choice,
        selected=selected,
        weight=weight,
        pos_label=pos_label if label is not None else None,
        design=design,
        inner=_read_periods(source, over, every),
        overall=True,
    )
    columns = groups.columns
    period = groups.inner[0]
    dtype = columns.plan.collect_schema()[period]
    require_text(Typed("over", pl.col(period), dtype, f"column {columns.names[period]!r}"))
    needs = read_needs(compared, columns, weight)
    row_metrics = [name for name in compared if name not in SHIFTS]

    def compute(rows: Rows) -> pl.DataFrame:
        rules = GapRules(rows.level(level), adjust, margin, min_rows)
        if rows.keys[period].null_count():
            rows = rows.at(rows.keys[period].is_not_null().to_numpy())
        tables = []
        if row_metrics:
            tables.append(_compare_metrics(rows, groups, row_metrics, needs, rules))
        if len(row_metrics) < len(compared):
            # A shift of scores depends on neither labels nor decisions.
            tables += _compare_scores(rows.ignore_labels(ignore_decisions=True), groups, rules)
        table = pl.concat(tables, how="diagonal_relaxed").filter(pl.col("metric").is_in(compared))
        types: dict[str, Any] = {**COMPARISON_SCHEMA, period: dtype, CRITICAL: pl.Float64}
        return group_columns.in_order(_mark_first(table), compared, types, [period])

    named = replace(columns, names={**columns.names, period: PERIOD})
    schema = COMPARISON_SCHEMA | {PERIOD: dtype, CRITICAL: pl.Float64}
    return table_of(frame, named, schema, compute)


def _read_metrics(
    metrics: Sequence[str] | None, *, label: bool, score: bool, decided: bool
) -> tuple[str, ...]:
    """Return the metrics to compare, then the measures of a shift of scores."""
    compared = read_compared_metrics(
        metrics, COMPARABLE | SHIFTS, has_label=label, has_score=score, has_decisions=decided
    )
    if metrics is None:
        return (*compared, *SHIFTS) if score else compared
    for name in compared:
        if not label and name not in (_SELECTION_RATE, *SHIFTS):
            msg = f"`metrics` must come with a `label` for {name}; found none"
            raise ValueError(msg)
    return compared


def _read_periods(
    source: pl.DataFrame | pl.LazyFrame | RowSource, over: IntoColumn, every: str | None
) -> InnerColumns:
    """Return the column of periods."""
    table = group_columns.table_of_groups(source)
    time = typed_column("over", as_column("over", over), table)
    (name,) = named_columns("over", over, table)
    period = time.column if every is None else period_of(time, every)
    return InnerColumns({name: period}, "attributes", "not name the column of `over`")


def _compare_metrics(
    rows: Rows, groups: GroupColumns, metrics: Sequence[str], needs: Needs, rules: GapRules
) -> pl.DataFrame:
    """Compare the metrics of each period with the earlier periods."""
    measured = groups.find_needs(rows, needs)
    comparisons = []
    for part in groups.parts(rows):
        keys = [*part.division.keys, *groups.inner]
        segments = measure_segments(rows, keys, part.model, measured[part.model])
        partition = _refer_to_earlier(part, segments)
        comparisons += compare_segments.compare_segments(metrics, partition, rules)
    return compare_segments.add_verdicts(comparisons, rules)


def _compare_scores(rows: Rows, groups: GroupColumns, rules: GapRules) -> list[pl.DataFrame]:
    """Return a table for each measure, comparing the scores of each period with earlier ones."""
    aucs, ks, psi = [], [], []
    for part in groups.parts(rows):
        periods = rows.segments([*part.division.keys, *groups.inner], part.model)
        missing = periods.missing.astype(np.float64)
        segments = Segments(periods.segments, count_classes(periods), missing)
        partition = _refer_to_earlier(part, segments)
        assert partition.reference.starts is not None
        sums = measure_shifts(rows, periods, partition.reference.starts)
        pair = pair_with_chance(sums.auc, sums.aucs.slack)
        aucs.append(compare_segments.compare_pair([_SHIFT_AUC], pair, partition, rules))
        ks.append(_describe_distances(_KS, sums.ks(rules.level), partition, rules))
        psi.append(_describe_distances(_PSI, sums.psi(rules.level), partition, rules))
    # Each measure is a family of its own, because all answer the same question.
    distances = [_judge_distances(pl.concat(each), rules) for each in (ks, psi)]
    return [compare_segments.add_verdicts(aucs, rules), *distances]


def _refer_to_earlier(part: ComparisonPart, segments: Segments) -> Partition:
    """Return the periods of all segments of a division, with earlier periods as reference."""
    *keys, period = segments.keys.columns
    names, number = pl.Series([OVERALL]), np.zeros(segments.number, np.int64)
    if keys:
        found, number = number_groups(segments.keys.select(keys))
        names = name_segments(part.division, found)
    is_first = np.diff(number, prepend=-1) > 0
    labels = part.label(names)[number]
    labels = labels.with_columns(segments.keys[period], pl.Series(_IS_FIRST, is_first))
    reference = Reference("earlier", starts=np.flatnonzero(is_first))
    return Partition(labels, [], segments, reference, _BEFORE)


# Whether a row is the first period of a segment.
_IS_FIRST = "__is_first"


def _mark_first(table: pl.DataFrame) -> pl.DataFrame:
    """Return the rows without the comparisons of first periods."""
    first = pl.col(_IS_FIRST)
    return table.with_columns(
        pl.when(~first).then(pl.col("reference", "n_reference", "reference_value")),
        pl.when(first).then(pl.lit(FIRST_PERIOD)).otherwise("reason").alias("reason"),
    )


def _describe_distances(
    metric: str, shift: Shift, partition: Partition, rules: GapRules
) -> pl.DataFrame:
    """Return the rows of a distance between scores and earlier scores, before verdicts."""
    n = partition.segments.rows.sum(axis=0)
    n_reference = partition.reference.add_others(n)
    enough = np.minimum(n, n_reference) >= rules.min_rows
    p_value = np.where(enough, shift.p_value, np.nan)
    cases = [
        (np.isnan(shift.value), UNDEFINED),
        (~enough, few_rows(rules.min_rows)),
        (shift.bins == 1, ONE_SCORE),
        (np.isnan(p_value), NO_VARIANCE),
    ]
    numbers: dict[str, Array] = {
        "n": n,
        "value": shift.value,
        "n_reference": n_reference,
        "reference_value": np.zeros(n.shape),
        "gap": shift.value,
        "p_value": p_value,
        CRITICAL: shift.critical,
    }
    texts = {"metric": metric, "reference": _BEFORE, "reason": choose_texts(cases)}
    return group_columns.make_rows(partition.labels, numbers, texts)


def _judge_distances(table: pl.DataFrame, rules: GapRules) -> pl.DataFrame:
    """Add adjusted p-values and verdicts to rows of distances, which are never equivalent."""
    value, p_value = table["value"].to_numpy(), table["p_value"].to_numpy()
    p_adjusted = adjust_p_values(p_value, rules.adjust)
    verdict = judge(p_adjusted, np.zeros(value.shape, dtype=bool), rules.level)
    verdicts = [word or None for word in np.where(np.isnan(value), "", verdict).tolist()]
    return table.with_columns(p_adjusted=p_adjusted, verdict=pl.Series(verdicts, dtype=pl.String))
