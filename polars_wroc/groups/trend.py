"""Metrics by period, compared with all earlier periods, and shifts of the scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
import polars as pl

from polars_wroc import checks
from polars_wroc.arrays import Array
from polars_wroc.buckets import number_groups
from polars_wroc.checks import MARGIN
from polars_wroc.counts.count_table import CountTable
from polars_wroc.groups.categories import Grouping, period_of
from polars_wroc.groups.compare_segments import (
    Comparison,
    GapRules,
    Partition,
    add_verdicts,
    compare_pair,
    compare_segments,
)
from polars_wroc.groups.comparisons import (
    COMPARABLE,
    COMPARISON_SCHEMA,
    METRICS,
    SHIFTS,
    score_name,
)
from polars_wroc.groups.divisions import name_segments, read_divisions
from polars_wroc.groups.group_gaps import (
    check_metrics,
    find_decisions,
    in_order,
    label_segments,
    read_comparable_metrics,
    read_needs,
)
from polars_wroc.inputs.columns import OVERALL, Frequency, IntoColumn, IntoWeight, Typed
from polars_wroc.inputs.decisions import score_or_decisions
from polars_wroc.inputs.designs import Design
from polars_wroc.inputs.expressions import as_column, named_columns, typed_column
from polars_wroc.inputs.frames import require_text
from polars_wroc.inputs.reasons import NO_VARIANCE, ONE_SCORE, UNDEFINED, few_rows
from polars_wroc.inputs.rows import IntoColumns, RowSource, read_source
from polars_wroc.keywords import hint_keywords
from polars_wroc.metrics.mean_sums import count_classes
from polars_wroc.metrics.pairs import pair_with_chance
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.metrics.score_shifts import measure_shifts
from polars_wroc.metrics.segments import (
    Decisions,
    Needs,
    Segments,
    measure_segments,
)
from polars_wroc.queries import FrameT
from polars_wroc.rows import Columns, Rows, read_columns, table_of
from polars_wroc.stats.families import Adjustment, adjust_p_values, judge
from polars_wroc.stats.references import Reference
from polars_wroc.stats.shifts import Shift
from polars_wroc.thresholds.registry import GAP_RATES
from polars_wroc.thresholds.rules import Rule, Threshold, read_threshold

PERIOD, CRITICAL = "period", "critical"
# The reason of rows that are compared with nothing.
FIRST = "the first period"
_SELECTION_RATE = "selection_rate"
_BEFORE = "before"
_SHIFT_AUC, _KS, _PSI = SHIFTS


@hint_keywords
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
    margin: float = MARGIN,
    min_rows: int = 30,
    level: float = 0.95,
    adjust: Adjustment = "holm",
    design: Design | None = None,
) -> FrameT:
    """Return metrics over time, overall and per segment, compared with all earlier periods.

    Use it to monitor a score: performance where labels have arrived, and shifts of the score
    distribution where they have not. With more than some ten thousand rows, tests find shifts that
    do not matter, so look at the values too.

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
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, pos_label
        As for `summary`. Without a ``label`` there are the selection rate and the shifts of the
        scores, all of which also use rows with a null label; without a ``score``, only the
        ``selected`` decisions.
    over
        Column or expression of each row's time: dates, numbers or anything that can be sorted. Rows
        where it is null are left out.
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
        As for `group_gaps`, but without `Looks`, since each period begins anew. Tests are adjusted
        within one table: for a new table in each of 12 months, ``level=1 - 0.05 / 12`` keeps the
        yearly error at 5 % for each family of tests.
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
        - ``score_ks``: largest distance between both distributions; no limits.
        - ``psi``: population stability index over tenths of the earlier weight. If all scores are
          in one tenth it is 0 and not tested (``"one score"``).

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `group_gaps`; also for ``every`` with values that are neither dates nor times.

    Notes
    -----
    ``p_adjusted`` covers the metrics of `group_gaps` in all segments and periods together; each of
    the three shift measures is a family of its own. Intervals and ``p_value`` are not adjusted, so
    a change whose interval excludes 0 can be inconclusive. PSI finds little in periods of fewer
    than 75 rows. With a ``design`` KS and PSI are not tested. PSI is compared with chi-squared [1]_
    and KS with Kolmogorov's distribution [2]_. Formulas:
    [formulas](../explanation/formulas.md#trend).

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
    >>> table.select("period", "metric", "value", "reference_value", "gap", "reason")
    shape: (4, 6)
    ┌────────┬───────────┬───────┬─────────────────┬───────┬──────────────────┐
    │ period ┆ metric    ┆ value ┆ reference_value ┆ gap   ┆ reason           │
    │ ---    ┆ ---       ┆ ---   ┆ ---             ┆ ---   ┆ ---              │
    │ i64    ┆ str       ┆ f64   ┆ f64             ┆ f64   ┆ str              │
    ╞════════╪═══════════╪═══════╪═════════════════╪═══════╪══════════════════╡
    │ 1      ┆ auc       ┆ 1.0   ┆ null            ┆ null  ┆ the first period │
    │ 1      ┆ shift_auc ┆ null  ┆ null            ┆ null  ┆ the first period │
    │ 2      ┆ auc       ┆ 0.75  ┆ 1.0             ┆ -0.25 ┆ null             │
    │ 2      ┆ shift_auc ┆ 0.5   ┆ 0.5             ┆ 0.0   ┆ null             │
    └────────┴───────────┴───────┴─────────────────┴───────┴──────────────────┘
    """
    # Their clock is the rows of the whole table; a period begins anew.
    level = checks.level_of_one_look(level, "periods, each of which begins anew")
    checks.option("adjust", adjust, get_args(Adjustment))
    choice = read_threshold(threshold, selected)
    source = read_source(frame)
    if isinstance(source, CountTable) and not source.labelled:
        label = None
    compared, shifts = _read_metrics(
        metrics, label=label is not None, score=score is not None, decided=choice is not None
    )
    name = score_name(source, score)
    columns = read_columns(
        source,
        label,
        score_or_decisions(source, score, selected),
        weight=weight,
        by=_with_periods(source, attributes, over, every),
        pos_label=pos_label if label is not None else None,
        design=design,
        selected=selected,
        argument="attributes",
    )
    # The periods are the last of the columns that group rows.
    period = columns.keys[-1]
    dtype = columns.plan.collect_schema()[period]
    require_text(Typed("over", pl.col(period), dtype, f"column {columns.names[period]!r}"))
    least = checks.whole_number("min_rows", min_rows, low=0)
    margin = checks.margin(margin)
    plan = _TrendPlan(
        _divide_attributes(columns),
        period,
        compared,
        shifts,
        {model: model if columns.several else name for model in columns.models},
        Decisions(recorded=True) if selected is not None else choice,
        read_needs(
            compared,
            columns,
            aucs=ROC_AUC.column in compared,
            count_weights=isinstance(weight, Frequency),
        ),
    )

    def compute(rows: Rows) -> pl.DataFrame:
        return plan.table(rows, GapRules(rows.level(level), adjust, margin, least))

    columns = replace(columns, names={**columns.names, period: PERIOD})
    schema = COMPARISON_SCHEMA | {PERIOD: dtype, CRITICAL: pl.Float64}
    return table_of(frame, columns, schema, compute)


def _read_metrics(
    metrics: Sequence[str] | None, *, label: bool, score: bool, decided: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Read which metrics are compared, and which measures of a shift there are."""
    if metrics is None:
        rates = [*GAP_RATES] if label else [_SELECTION_RATE]
        aucs = [ROC_AUC.column] if label and score else []
        return (*aucs, *(rates if decided else [])), tuple(SHIFTS) if score else ()
    asked = read_comparable_metrics(metrics, [*COMPARABLE, *SHIFTS])
    shifts = tuple(name for name in asked if name in SHIFTS)
    # In the order of all comparison tables.
    known = [name for name in METRICS | COMPARABLE if name in COMPARABLE]
    compared = tuple(name for name in known if name in asked)
    check_metrics(compared, has_score=score, has_decisions=decided)
    if shifts and not score:
        msg = f"`metrics` must come with a `score` for {shifts[0]}; found none"
        raise ValueError(msg)
    for name in compared:
        if not label and name != _SELECTION_RATE:
            msg = f"`metrics` must come with a `label` for {name}; found none"
            raise ValueError(msg)
    return compared, shifts


def _with_periods(
    source: pl.DataFrame | pl.LazyFrame | RowSource,
    attributes: IntoColumns | None,
    over: IntoColumn,
    every: str | None,
) -> list[pl.Expr]:
    """Return the columns of attributes, and last the column of periods."""
    table = source.groups if isinstance(source, RowSource) else source.lazy()
    given = {} if attributes is None else named_columns("attributes", attributes, table)
    time = typed_column("over", as_column("over", over), table)
    (name,) = named_columns("over", over, table)
    if name in given:
        checks.reject("attributes", "not name the column of `over`", f"{name!r} in both")
    period = time.column if every is None else period_of(time, every)
    return [*(column.alias(name) for name, column in given.items()), period]


def _divide_attributes(columns: Columns) -> list[Grouping]:
    """Return the division that has all rows in one segment, and those by each attribute."""
    *attributes, _ = columns.keys
    if not attributes:
        return [Grouping()]
    names = {key: columns.names[key] for key in attributes}
    return [Grouping(), *read_divisions(replace(columns, names=names), intersections=False)]


@dataclass(frozen=True)
class _TrendPlan:
    """What is followed over the periods of each segment, and the measures of shifts of scores.

    ``period`` is the column of the periods; ``score_names`` are the names of the models in the
    table, None without a score.
    """

    divisions: Sequence[Grouping]
    period: str
    metrics: Sequence[str]
    shifts: Sequence[str]
    score_names: Mapping[str, str | None]
    choice: Decisions | Rule | float | None
    needs: Needs

    def table(self, rows: Rows, rules: GapRules) -> pl.DataFrame:
        """Return the rows of all segments, periods and metrics, in order."""
        if rows.keys[self.period].null_count():
            rows = rows.at(rows.keys[self.period].is_not_null().to_numpy())
        tables = []
        if self.metrics:
            tables.append(add_verdicts(self._compare_metrics(rows, rules), rules))
        if self.shifts:
            # A shift of scores has nothing to do with labels or decisions.
            scored = rows.ignore_labels(ignore_decisions=True)
            tables += self._compare_scores(scored, rules)
        metrics = [*self.metrics, *self.shifts]
        table = pl.concat(tables, how="diagonal_relaxed").filter(pl.col("metric").is_in(metrics))
        schema: dict[str, pl.DataType | type[pl.DataType]] = {
            **COMPARISON_SCHEMA,
            self.period: rows.keys.schema[self.period],
            CRITICAL: pl.Float64,
        }
        return in_order(_mark_first(table), metrics, schema, [self.period])

    def _compare_metrics(self, rows: Rows, rules: GapRules) -> list[Comparison]:
        """Compare the metrics of each period with the earlier periods."""
        needs = {
            model: replace(self.needs, decisions=find_decisions(rows, model, self.choice))
            for model in rows.scores
        }
        comparisons = []
        for place, (division, model) in self._places(rows).items():
            keys = [*division.keys, self.period]
            segments = measure_segments(rows, keys, model, needs[model])
            partition = self._partition(division, segments, model, place)
            comparisons += [compare_segments(metric, partition, rules) for metric in self.metrics]
        return comparisons

    def _compare_scores(self, rows: Rows, rules: GapRules) -> list[pl.DataFrame]:
        """Compare the scores of each period with earlier ones: a table for each measure."""
        aucs, ks, psi = [], [], []
        for place, (division, model) in self._places(rows).items():
            periods = rows.segments([*division.keys, self.period], model)
            missing = periods.missing.astype(np.float64)
            segments = Segments(periods.segments, count_classes(periods), missing)
            partition = self._partition(division, segments, model, place)
            assert partition.reference.starts is not None
            sums = measure_shifts(rows, periods, partition.reference.starts)
            pair = pair_with_chance(sums.auc, sums.aucs.slack)
            aucs.append(compare_pair(_SHIFT_AUC, pair, partition, rules))
            ks.append(_describe_distances(_KS, sums.ks(rules.level), partition, rules))
            psi.append(_describe_distances(_PSI, sums.psi(rules.level), partition, rules))
        # Each is a family of its own, because all ask the same.
        distances = [_judge_distances(pl.concat(each), rules) for each in (ks, psi)]
        return [add_verdicts(aucs, rules), *distances]

    def _places(self, rows: Rows) -> dict[tuple[int, int], tuple[Grouping, str]]:
        """Return each division and score, by their places in the order of the table."""
        return {
            (number, place): (division, model)
            for number, division in enumerate(self.divisions)
            for place, model in enumerate(rows.scores)
        }

    def _partition(
        self, division: Grouping, segments: Segments, model: str, place: tuple[int, int]
    ) -> Partition:
        """Return the periods of all segments of a division, with the earlier ones as reference."""
        names, number = pl.Series([OVERALL]), np.zeros(segments.number, np.int64)
        if division.keys:
            groups, number = number_groups(segments.keys.select(division.keys))
            names = name_segments(division, groups)
        is_first = np.diff(number, prepend=-1) > 0
        labels = label_segments(division, names, self.score_names[model], place)[number]
        labels = labels.with_columns(segments.keys[self.period], pl.Series(_IS_FIRST, is_first))
        reference = Reference("earlier", starts=np.flatnonzero(is_first))
        return Partition(labels, [], segments, reference, _BEFORE)


# Whether a row is the first period of a segment.
_IS_FIRST = "__is_first"


def _mark_first(table: pl.DataFrame) -> pl.DataFrame:
    """Return the rows without comparisons in first periods."""
    first = pl.col(_IS_FIRST)
    return table.with_columns(
        pl.when(~first).then(pl.col("reference", "n_reference", "reference_value")),
        pl.when(first).then(pl.lit(FIRST)).otherwise("reason").alias("reason"),
    )


def _describe_distances(
    metric: str, shift: Shift, partition: Partition, rules: GapRules
) -> pl.DataFrame:
    """Return the rows of a distance of scores from earlier ones, before they are judged."""
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
    reasons = np.select([holds for holds, _ in cases], [reason for _, reason in cases], "")
    columns: dict[str, Array] = {
        "n": n,
        "value": shift.value,
        "n_reference": n_reference,
        "reference_value": np.zeros(n.shape),
        "gap": shift.value,
        "p_value": p_value,
        CRITICAL: shift.critical,
    }
    texts: dict[str, Sequence[str | None]] = {
        "metric": [metric] * n.size,
        "reference": [_BEFORE] * n.size,
        "reason": [reason or None for reason in reasons.tolist()],
    }
    table = partition.labels.hstack(
        [pl.Series(name, values, pl.Float64) for name, values in columns.items()]
    )
    return table.hstack([pl.Series(name, values, pl.String) for name, values in texts.items()])


def _judge_distances(table: pl.DataFrame, rules: GapRules) -> pl.DataFrame:
    """Add adjusted p-values and verdicts to rows of distances, which are never shown to be 0."""
    value, p_value = table["value"].to_numpy(), table["p_value"].to_numpy()
    p_adjusted = adjust_p_values(p_value, rules.adjust)
    verdict = judge(p_adjusted, np.zeros(value.shape, dtype=bool), rules.level)
    verdicts = [word or None for word in np.where(np.isnan(value), "", verdict).tolist()]
    return table.with_columns(p_adjusted=p_adjusted, verdict=pl.Series(verdicts, dtype=pl.String))
