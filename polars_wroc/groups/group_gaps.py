"""Gaps of AUCs and rates between each segment and a reference, with intervals and tests."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
import polars as pl

from polars_wroc import checks
from polars_wroc.checks import MARGIN
from polars_wroc.groups.categories import CategoryReference, Grouping, Intersections
from polars_wroc.groups.compare_segments import (
    Comparison,
    GapRules,
    Partition,
    add_verdicts,
    compare_segments,
)
from polars_wroc.groups.comparisons import (
    COMPARISON_SCHEMA,
    GAPS_ON_REQUEST,
    METRICS,
    SMD,
    UNLABELED,
    score_name,
)
from polars_wroc.groups.divisions import (
    GAP_REFERENCES,
    find_reference,
    name_segments,
    read_divisions,
    read_references,
)
from polars_wroc.groups.many_groups import warn_of_many_groups
from polars_wroc.groups.within_strata import (
    WITHIN_SCHEMA,
    check_within,
    compare_within,
    measure_strata,
    read_strata,
)
from polars_wroc.inputs.columns import (
    AUDIT_KEYS,
    MISSING,
    MODEL,
    Frequency,
    IntoColumn,
    IntoWeight,
)
from polars_wroc.inputs.decisions import score_or_decisions
from polars_wroc.inputs.designs import Design
from polars_wroc.inputs.frames import require_groups
from polars_wroc.inputs.metric import check_metric
from polars_wroc.inputs.rows import IntoColumns, read_source
from polars_wroc.keywords import hint_keywords
from polars_wroc.looks import ConfidenceLevel
from polars_wroc.metrics.mean_sums import ROW_LOSSES, read_precision
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.metrics.segments import Decisions, Needs, Segments, measure_segments
from polars_wroc.queries import FrameT, select_schema
from polars_wroc.rows import Columns, Rows, check_level, read_columns, table_of
from polars_wroc.stats.families import Adjustment
from polars_wroc.stats.references import Reference
from polars_wroc.thresholds.choice import choose_thresholds
from polars_wroc.thresholds.registry import GAP_RATES, THRESHOLD_METRICS
from polars_wroc.thresholds.rules import Rule, Threshold, read_threshold

# Equal AUCs of different rows may round differently.
_ROUNDING = 1e-12


@hint_keywords
def group_gaps(
    frame: FrameT,
    label: IntoColumn | None = None,
    score: IntoColumns | None = None,
    *,
    attributes: IntoColumns,
    intersections: Intersections = False,
    reference: object = "rest",
    threshold: Threshold | None = None,
    selected: IntoColumn | None = None,
    metrics: Sequence[str] | None = None,
    within: IntoColumns | None = None,
    weight: IntoWeight | None = None,
    pos_label: object = None,
    margin: float = MARGIN,
    min_rows: int = 30,
    level: ConfidenceLevel = 0.95,
    adjust: Adjustment = "holm",
    design: Design | None = None,
) -> FrameT:
    """Return the gaps in AUC and rates between each segment and a reference, with tests.

    Read ``gap`` with its limits first, then ``verdict``, which allows for the number of tests.

    The main columns are:

    - ``attribute, segment, metric``: what the row describes;
    - ``value, value_low, value_high``: the metric in the segment, with its confidence interval;
    - ``reference, reference_value``: what it is compared with;
    - ``gap, gap_low, gap_high``: ``value - reference_value``, with its confidence interval;
    - ``verdict``: ``"different"``, ``"equivalent"`` (within the margin) or ``"inconclusive"``;
    - ``reason``: why there is no verdict or no test.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, pos_label, design
        As for `summary`. Without a ``score``, only the ``selected`` decisions are compared, without
        AUCs. Without a ``label``, the metrics are ``"selection_rate"`` and
        ``"standardized_mean_difference"``; rows with a null label count in these two alone.
    attributes
        One or several columns or expressions, for example race and sex. The segments of an
        attribute are its values; cut numbers into `ranges` first (a UserWarning advises some).
    intersections
        True: also compare the combinations of all attributes; ``"only"``: compare only these.
    reference
        What each segment is compared with. ``"rest"``: all other segments (for AUCs, their mean,
        weighted by pairs). ``"overall"``: all segments, itself included. ``"best"``: the segment
        with the highest AUC, the heaviest of several; tests and limits allow for this choice. Or a
        segment, or a mapping like ``{"race": "white"}``; attributes not named use ``"rest"``.
    threshold, selected
        The decisions that rates need. ``threshold``: rows with at least this score are selected; a
        number, or, chosen from rows with a label, ``"median"`` or a rule of `polars_wroc.rules`.
        ``selected``: a column or expression with recorded decisions, Boolean or of 0 and 1, where
        null counts as missing.
    metrics
        Instead of the AUC and default rates: ``"auc"``, ``"standardized_mean_difference"``,
        ``"brier_score"``, ``"log_loss"`` and, with decisions, any metric of `threshold_metrics`.
        ``margin`` is in the units of each metric.
    within
        Columns or expressions of strata, for example jobs or sites: segments are compared within
        each stratum, and the differences averaged. Not with ``metrics``, a ``design`` or the
        reference ``"overall"``.
    margin
        Largest gap that does not matter, between 0 and 1.
    min_rows
        Fewest rows in ``n`` for a test; for an AUC, fewest rows of each class.
    level
        Confidence level, from 0.001 to 0.9999, or `Looks`.
    adjust
        Adjustment of p-values for all tests of the table: ``"holm"`` (family-wise error), ``"bh"``
        (Benjamini-Hochberg, false discovery rate) or ``"none"``.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        The comparison table: one row per attribute, segment, score and metric. Besides the main
        columns:

        - ``model`` (String): name of the score; null without one.
        - ``n, n_reference`` (Int64): rows behind each value, for example positives for a tpr.
        - ``ratio, ratio_low, ratio_high`` (Float64): ``value / reference_value``; null for an AUC.
        - ``p_value, p_adjusted`` (Float64): test of no gap, alone and adjusted; null if untested.
        - ``detectable`` (Float64): the smallest gap that the test would find with 80 % power.

        Names are String, values Float64. Crossed attributes are joined by a multiplication sign,
        their values by commas. A null ``segment`` has the rows without a value. A rate is null if
        its denominator is 0, an AUC if a class is missing. The reference has no comparison.

        ``reason`` is ``"undefined"``, ``"no variance"``, ``"the reference"``, ``"no reference
        shown"``, ``"nobody is selected"`` or ``"everybody is selected"`` (nothing can be compared),
        ``"fewer than 30 positives"`` (or another number or kind of rows, in the segment or ``"in
        the reference"``), ``"few effective events"`` (so few weighted events that limits may be too
        narrow) or ``"repeats female"`` (if there are two segments, both rows are the same test).

        ``within`` adds ``gap_crude``, the gap without strata; ``gap_explained``, the share of that
        gap which the strata explain (null if the crude gap may be 0); and ``share_within``, the
        share of the segment's weight in strata where the reference has rows too.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for an unknown option, both ``threshold`` and ``selected``, a metric
        without its input, or a reference that does not exist.

    Notes
    -----
    AUCs have DeLong's variance [1]_. The interval of a gap combines the intervals of both values
    [2]_. Equivalence is shown by two one-sided tests [3]_. Verdicts are adjusted for the number of
    tests, intervals and ``p_value`` are not: a gap whose interval excludes 0 can be inconclusive.
    Near an AUC of 1 a test may be significant although the cautious interval includes 0. Formulas:
    [formulas](../explanation/formulas.md#group_gaps).

    References
    ----------
    .. [1] DeLong, E. R. et al. (1988), Biometrics 44, 837-845.
    .. [2] Zou, G. Y. (2007), Psychological Methods 12, 399-413.
    .. [3] Schuirmann, D. J. (1987), J. Pharmacokinet. Biopharm. 15, 657-680.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> loans = wroc.data.loans()
    >>> gaps = wroc.group_gaps(loans, "approved", "score", attributes="race")
    >>> gaps.select("segment", "metric", pl.col("gap", "gap_low", "gap_high").round(3), "verdict")
    shape: (3, 6)
    ┌──────────┬────────┬────────┬─────────┬──────────┬──────────────┐
    │ segment  ┆ metric ┆ gap    ┆ gap_low ┆ gap_high ┆ verdict      │
    │ ---      ┆ ---    ┆ ---    ┆ ---     ┆ ---      ┆ ---          │
    │ str      ┆ str    ┆ f64    ┆ f64     ┆ f64      ┆ str          │
    ╞══════════╪════════╪════════╪═════════╪══════════╪══════════════╡
    │ black    ┆ auc    ┆ -0.036 ┆ -0.132  ┆ 0.051    ┆ inconclusive │
    │ hispanic ┆ auc    ┆ 0.087  ┆ -0.046  ┆ 0.177    ┆ inconclusive │
    │ white    ┆ auc    ┆ 0.01   ┆ -0.066  ┆ 0.093    ┆ inconclusive │
    └──────────┴────────┴────────┴─────────┴──────────┴──────────────┘
    """
    require_groups(attributes, called="attributes")
    choice = read_threshold(threshold, selected)
    asked = None if metrics is None else read_comparable_metrics(metrics, GAPS_ON_REQUEST)
    if asked is not None:
        check_metrics(asked, has_score=score is not None, has_decisions=choice is not None)
    if within is not None:
        check_within(reference, asked, design)
    source = read_source(frame)
    name = score_name(source, score)
    every, number = read_strata(source, attributes, within)
    columns = read_columns(
        source,
        label,
        score_or_decisions(source, score, selected),
        weight=weight,
        by=every,
        pos_label=pos_label,
        design=design,
        selected=selected,
        argument="attributes",
    )
    keys = columns.keys[:number]
    level = check_level(level, frame)
    checks.option("adjust", adjust, get_args(Adjustment))
    least = checks.whole_number("min_rows", min_rows, low=0)
    margin = checks.margin(margin)
    of_attributes = replace(columns, names={key: columns.names[key] for key in keys})
    divisions = read_divisions(of_attributes, intersections)
    references = read_references(reference, GAP_REFERENCES, divisions, columns)
    if asked is None:
        asked = _default_metrics(has_score=name is not None, has_decisions=choice is not None)
        if label is None:
            # The selection rate, or the scores
            asked = ("selection_rate",) if choice is not None else (SMD.name,)
    # In the order of all comparison tables.
    compared = [each for each in METRICS | GAPS_ON_REQUEST if each in asked]
    if label is None:
        _check_unlabeled(compared, references)
    plan = GapPlan(
        divisions,
        references,
        compared,
        {model: model if columns.several else name for model in columns.models},
        Decisions(recorded=True) if selected is not None else choice,
        read_needs(
            compared,
            columns,
            aucs=ROC_AUC.column in compared or references.kind == "best",
            count_weights=isinstance(weight, Frequency),
        ),
        columns.keys[number:],
    )

    def compute(rows: Rows) -> pl.DataFrame:
        warn_of_many_groups(rows.keys.select(keys).rename(of_attributes.names).get_columns())
        rules = GapRules(rows.level(level), adjust, margin, least)
        return plan.table(rows, rules)

    schema = COMPARISON_SCHEMA if within is None else COMPARISON_SCHEMA | WITHIN_SCHEMA
    return table_of(frame, columns, schema, compute)


@dataclass(frozen=True)
class GapPlan:
    """What is compared between the segments of each division, and with which references.

    ``score_names`` are the models' names in the table, None without a score. ``choice`` are the
    decisions, a threshold, or a rule that chooses one for each score; ``strata`` are columns within
    whose values segments are compared.
    """

    divisions: Sequence[Grouping]
    references: CategoryReference
    metrics: Sequence[str]
    score_names: Mapping[str, str | None]
    choice: Decisions | Rule | float | None
    needs: Needs
    strata: Sequence[str] = ()

    def table(self, rows: Rows, rules: GapRules) -> pl.DataFrame:
        """Return the comparison table of the segments of all divisions."""
        needs = {
            model: replace(self.needs, decisions=find_decisions(rows, model, self.choice))
            for model in rows.scores
        }
        comparisons: list[Comparison] = []
        for number, division in enumerate(self.divisions):
            for place, model in enumerate(rows.scores):
                partition = self._partition(
                    rows, division, model, needs[model], rules.min_rows, (number, place)
                )
                if self.strata:
                    strata = measure_strata(rows, division.keys, self.strata, model, needs[model])
                    comparisons += [
                        compare_within(metric, partition, strata, rules) for metric in self.metrics
                    ]
                else:
                    comparisons += [
                        compare_segments(metric, partition, rules) for metric in self.metrics
                    ]
        schema = COMPARISON_SCHEMA | (WITHIN_SCHEMA if self.strata else {})
        return in_order(add_verdicts(comparisons, rules), self.metrics, schema)

    def _partition(
        self,
        rows: Rows,
        division: Grouping,
        model: str,
        needs: Needs,
        min_rows: int,
        place: tuple[int, int],
    ) -> Partition:
        segments = measure_segments(rows, division.keys, model, needs)
        name = self.score_names[model]
        return make_partition(segments, division, self.references, name, place, min_rows)


def make_partition(
    segments: Segments,
    division: Grouping,
    references: CategoryReference,
    model: str | None,
    place: tuple[int, int],
    min_rows: int,
) -> Partition:
    """Return the segments of a division with their names and what they are compared with.

    The ``place`` is that of the division and of the score, which has the name ``model`` in tables.
    """
    names = name_segments(division, segments.keys)
    reference = find_reference(references, division, names.to_list())
    picked_from = None
    if reference is None:
        reference, picked_from = pick_best(segments, min_rows)
    labels = label_segments(division, names, model, place)
    named = labels[AUDIT_KEYS[1]].fill_null(MISSING).to_list()
    kind = reference.kind
    reference_name = kind if isinstance(kind, str) else named[kind] if kind >= 0 else None
    return Partition(labels, named, segments, reference, reference_name, picked_from)


# Places of the division, of the segment and of the score, by which rows are ordered.
SEGMENT_PLACES = ("__division", "__segment", "__model")


def label_segments(
    division: Grouping, names: pl.Series, model: str | None, place: tuple[int, int]
) -> pl.DataFrame:
    """Return the columns that name segments, and the places of their rows in a table."""
    attribute, segment = AUDIT_KEYS
    return pl.DataFrame({segment: names.cast(pl.String)}).select(
        pl.lit(division.attribute).alias(attribute),
        segment,
        pl.lit(model, pl.String).alias(MODEL),
        pl.lit(place[0]).alias(SEGMENT_PLACES[0]),
        pl.int_range(pl.len()).alias(SEGMENT_PLACES[1]),
        pl.lit(place[1]).alias(SEGMENT_PLACES[2]),
    )


def in_order(
    table: pl.DataFrame,
    metrics: Sequence[str],
    schema: Mapping[str, pl.DataType | type[pl.DataType]] = COMPARISON_SCHEMA,
    within: Sequence[str] = (),
) -> pl.DataFrame:
    """Return a comparison table in the order of attributes, segments, scores and metrics.

    Rows of a segment and a score are first in the order of columns ``within`` them.
    """
    if set(SEGMENT_PLACES) <= set(table.columns):
        table = table.sort(*SEGMENT_PLACES, *within, pl.col("metric").cast(pl.Enum(list(metrics))))
    return select_schema(table, schema)


def pick_best(segments: Segments, min_rows: int) -> tuple[Reference, int]:
    """Return the segment with the highest AUC as reference, and of how many it was picked.

    Candidates have enough rows of both classes. As for the highest rate, ties go to the heavier
    segment, then to the first.
    """
    assert segments.aucs is not None
    is_candidate = (segments.rows >= min_rows).all(axis=0)
    aucs = np.where(is_candidate, segments.aucs.auc, np.nan)
    number = int((~np.isnan(aucs)).sum())
    if number == 0:
        return Reference(-1), 0
    is_best = aucs >= np.nanmax(aucs) - _ROUNDING
    weight = segments.aucs.weight.sum(axis=0)
    return Reference(int(np.argmax(np.where(is_best, weight, -1.0)))), number


def find_decisions(
    rows: Rows, model: str, choice: Decisions | Rule | float | None
) -> Decisions | None:
    """Return the decisions by one of the scores, at a threshold that is given or chosen.

    A rule chooses one threshold for all rows with a value of the score.
    """
    if choice is None or isinstance(choice, Decisions):
        return choice
    if isinstance(choice, Rule):
        chosen = choose_thresholds(rows.segments([], model), choice)
        return Decisions(float(chosen.value[0]), selects=bool(chosen.selects[0]))
    return Decisions(choice)


def _default_metrics(*, has_score: bool, has_decisions: bool) -> tuple[str, ...]:
    """Return the metrics that are compared unless others are asked for."""
    aucs = (ROC_AUC.column,) if has_score else ()
    return (*aucs, *GAP_RATES) if has_decisions else aucs


def read_comparable_metrics(metrics: Sequence[str], known: Collection[str]) -> tuple[str, ...]:
    """Check the names of the metrics that are to be compared, out of the known ones."""
    if isinstance(metrics, str) or not isinstance(metrics, Sequence) or not metrics:
        checks.reject_type("metrics", "be None or a sequence of names of metrics", metrics)
    for name in metrics:
        check_metric("metrics", name, known)
    return tuple(dict.fromkeys(metrics))


def check_metrics(metrics: Sequence[str], *, has_score: bool, has_decisions: bool) -> None:
    """Raise for a metric without what it is computed from."""
    for name in metrics:
        of_decisions = name in THRESHOLD_METRICS
        if not (has_decisions if of_decisions else has_score):
            needed = "a `score` for {}; found none"
            if of_decisions:
                needed = "a `threshold` or `selected` for {}; found neither"
            msg = f"`metrics` must come with {needed.format(name)}"
            raise ValueError(msg)


def _check_unlabeled(metrics: Sequence[str], references: CategoryReference) -> None:
    """Raise for what needs a label."""
    for name in metrics:
        if name not in UNLABELED:
            checks.reject("label", f"be given for {name}", None)
    if references.kind == "best":
        checks.reject("reference", "be another one without a `label`", "'best'")


def read_needs(
    metrics: Sequence[str], columns: Columns, *, aucs: bool, count_weights: bool
) -> Needs:
    """Return the sums that some metrics need, whatever the decisions are."""
    losses = [name for name in metrics if name in ROW_LOSSES]
    scores = SMD.name in metrics
    purpose = "mean losses" if losses else "mean scores"
    if losses or scores:
        columns.require_scores(purpose)
    return Needs(
        aucs=aucs,
        losses=losses,
        scores=scores,
        precision=read_precision(columns),
        count_weights=count_weights,
    )
