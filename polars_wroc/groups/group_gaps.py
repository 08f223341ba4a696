"""Gaps of AUCs and rates between each segment and a reference, with intervals and tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from polars_wroc import checks
from polars_wroc.bounds import Margin, MinRows
from polars_wroc.calls import check_call
from polars_wroc.checks import MARGIN
from polars_wroc.groups import divisions, within_strata
from polars_wroc.groups.categories import SEGMENT, CategoryReference, Grouping, Intersections
from polars_wroc.groups.compare_segments import GapRules, Partition, add_verdicts, compare_segments
from polars_wroc.groups.comparisons import (
    COMPARISON_SCHEMA,
    GAPS_ON_REQUEST,
    METRICS,
    SMD,
    UNLABELED,
)
from polars_wroc.groups.group_columns import in_order, label_segments, read_groups
from polars_wroc.groups.many_groups import warn_of_many_groups
from polars_wroc.inputs.columns import MISSING, Frequency, IntoColumn, IntoWeight
from polars_wroc.inputs.designs import Design
from polars_wroc.inputs.frames import require_groups
from polars_wroc.inputs.metric import Metric, calibration_hint, check_metric
from polars_wroc.inputs.rows import IntoColumns, read_source
from polars_wroc.looks import ConfidenceLevel
from polars_wroc.metrics.mean_sums import ROW_LOSSES, read_precision
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.metrics.segments import Needs, Segments, measure_segments
from polars_wroc.queries import FrameT
from polars_wroc.rows import Columns, Rows, check_level, table_of
from polars_wroc.stats.families import Adjustment
from polars_wroc.stats.references import Reference, pick_highest
from polars_wroc.thresholds.registry import GAP_RATES, THRESHOLD_METRICS
from polars_wroc.thresholds.rules import Threshold, read_threshold

_SELECTION_RATE = "selection_rate"


@check_call
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
    margin: Margin = MARGIN,
    min_rows: MinRows = 30,
    level: ConfidenceLevel = 0.95,
    adjust: Adjustment = "holm",
    design: Design | None = None,
) -> FrameT:
    """Return the gaps in AUC and rates between each segment and a reference, with tests.

    Read ``gap`` with its limits first, then ``verdict``, which allows for the number of tests: a
    gap whose interval excludes 0 can be inconclusive.

    The main columns are:

    - ``attribute, segment, metric``: what the row describes;
    - ``value, value_low, value_high``: the metric in the segment, with its confidence interval;
    - ``reference, reference_value``: what it is compared with;
    - ``gap, gap_low, gap_high``: ``value - reference_value``, with its confidence interval;
    - ``verdict``: ``"different"``, ``"equivalent"`` (within the margin) or ``"inconclusive"``;
    - ``reason``: why there is no verdict or no test.

    Parameters
    ----------
    frame, label, score, weight, pos_label, design
        As for `summary`. Without a ``score``, only the ``selected`` decisions are compared, without
        AUCs. Without a ``label``, the metrics are ``"selection_rate"`` and
        ``"standardized_mean_difference"``; rows with a null label count in these two alone.
    attributes
        One or several columns or expressions, for example race and sex. The segments of an
        attribute are its values; cut numbers into `ranges` first.
    intersections
        True: also compare the combinations of all attributes; ``"only"``: compare only these.
    reference
        What each segment is compared with. ``"rest"``: all other segments. ``"overall"``: all
        segments, itself included. ``"best"``: the segment with the highest AUC; tests and limits
        allow for this choice. Or a segment, or a mapping like ``{"race": "white"}``; attributes not
        named use ``"rest"``.
    threshold, selected
        The decisions that rates need. ``threshold``: rows with at least this score are selected; a
        number, or, chosen from rows with a label, ``"median"`` or a rule of `polars_wroc.rules`.
        ``selected``: a column or expression with recorded decisions, Boolean or of 0 and 1, where
        null counts as missing.
    metrics
        Instead of the AUC and default rates: ``"auc"``, ``"standardized_mean_difference"``,
        ``"brier_score"``, ``"log_loss"`` and, with decisions, any metric of `threshold_metrics`.
    within
        Columns or expressions of strata, for example jobs or sites: segments are compared within
        each stratum, and the differences averaged. Not with ``metrics``, a ``design`` or the
        reference ``"overall"``.
    margin
        Largest gap that does not matter, between 0 and 1. It has the unit of the metric.
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

        Names are String, values Float64. Names of crossed attributes are joined by a multiplication
        sign, values by commas. A null ``segment`` has the rows without a value. Undefined values
        are null, and so is the comparison of the reference.

        ``reason`` is, for example, ``"fewer than 30 positives"``, ``"nobody is selected"`` or
        ``"few effective events"`` (limits may be too narrow): see
        [all reasons](../explanation/contracts.md#reasons).

        ``within`` adds ``gap_crude``, the gap without strata; ``gap_explained``, the share of that
        gap which the strata explain (null if the crude gap may be 0); and ``share_within``, the
        share of the segment's weight in strata where the reference has rows too.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for both ``threshold`` and ``selected``, a metric without its input,
        or a reference that does not exist.

    Notes
    -----
    AUCs have DeLong's variance [1]_. The interval of a gap combines the intervals of both values
    [2]_. Equivalence is shown by two one-sided tests [3]_.
    [Formulas](../explanation/statistics.md#group_gaps).

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
    >>> gaps.select("segment", pl.col("gap", "gap_low", "gap_high").round(3), "verdict")
    shape: (3, 5)
    ┌──────────┬────────┬─────────┬──────────┬──────────────┐
    │ segment  ┆ gap    ┆ gap_low ┆ gap_high ┆ verdict      │
    │ ---      ┆ ---    ┆ ---     ┆ ---      ┆ ---          │
    │ str      ┆ f64    ┆ f64     ┆ f64      ┆ str          │
    ╞══════════╪════════╪═════════╪══════════╪══════════════╡
    │ black    ┆ -0.036 ┆ -0.132  ┆ 0.051    ┆ inconclusive │
    │ hispanic ┆ 0.087  ┆ -0.046  ┆ 0.177    ┆ inconclusive │
    │ white    ┆ 0.01   ┆ -0.066  ┆ 0.093    ┆ inconclusive │
    └──────────┴────────┴─────────┴──────────┴──────────────┘
    """
    require_groups(attributes, called="attributes")
    choice = read_threshold(threshold, selected)
    compared = read_compared_metrics(
        metrics,
        GAPS_ON_REQUEST,
        has_label=label is not None,
        has_score=score is not None,
        has_decisions=choice is not None,
    ) or (SMD.name,)
    source = read_source(frame)
    strata = None
    if within is not None:
        within_strata.check_within(reference, metrics, design)
        strata = within_strata.read_strata(source, within)
    groups = read_groups(
        source,
        label,
        score,
        attributes,
        choice=choice,
        selected=selected,
        weight=weight,
        pos_label=pos_label,
        design=design,
        intersections=intersections,
        inner=strata,
    )
    level = check_level(level, frame)
    references = divisions.read_references(
        reference, divisions.GAP_REFERENCES, groups.divisions, groups.columns
    )
    if label is None:
        _check_unlabeled(compared, references)
    needs = read_needs(compared, groups.columns, weight, picks_best=references.kind == "best")
    schema = (
        COMPARISON_SCHEMA if within is None else COMPARISON_SCHEMA | within_strata.WITHIN_SCHEMA
    )

    def compute(rows: Rows) -> pl.DataFrame:
        given = rows.keys.select(*groups.attributes).rename(groups.attributes)
        warn_of_many_groups(given.get_columns())
        rules = GapRules(rows.level(level), adjust, margin, min_rows)
        measured = groups.find_needs(rows, needs)
        comparisons = []
        for part in groups.parts(rows):
            keys, model_needs = part.division.keys, measured[part.model]
            segments = measure_segments(rows, keys, part.model, model_needs)
            partition = make_partition(
                segments, part.division, references, part.score_name, part.place, min_rows
            )
            if within is None:
                comparisons += compare_segments(compared, partition, rules)
            else:
                sums = within_strata.measure_strata(
                    rows, keys, groups.inner, part.model, model_needs
                )
                comparisons += [
                    within_strata.compare_within(name, partition, sums, rules) for name in compared
                ]
        return in_order(add_verdicts(comparisons, rules), compared, schema)

    return table_of(frame, groups.columns, schema, compute)


def make_partition(
    segments: Segments,
    division: Grouping,
    references: CategoryReference,
    model: str | None,
    place: tuple[int, int],
    min_rows: int,
) -> Partition:
    """Return the segments of a division with their names and their reference.

    ``place`` has the places of the division and of the score, which tables call ``model``.
    """
    names = divisions.name_segments(division, segments.keys)
    reference = divisions.find_reference(references, division, names.to_list())
    picked_from = None
    if reference is None:
        reference, picked_from = pick_best(segments, min_rows)
    labels = label_segments(division, names, model, place)
    named = [MISSING if name is None else name for name in labels[SEGMENT].to_list()]
    kind = reference.kind
    reference_name = kind if isinstance(kind, str) else named[kind] if kind >= 0 else None
    return Partition(labels, named, segments, reference, reference_name, picked_from)


def pick_best(segments: Segments, min_rows: int) -> tuple[Reference, int]:
    """Return the segment with the highest AUC as reference, and the number of candidates.

    Candidates have enough rows of both classes. Ties go to the heavier segment, then to the first,
    as for the highest rate.
    """
    assert segments.aucs is not None
    is_candidate = (segments.rows >= min_rows).all(axis=0)
    aucs = np.where(is_candidate, segments.aucs.auc, np.nan)
    number = int((~np.isnan(aucs)).sum())
    return pick_highest(aucs, segments.aucs.weight.sum(axis=0)), number


def read_compared_metrics(
    metrics: Sequence[str] | None,
    known: dict[str, Metric],
    *,
    has_label: bool,
    has_score: bool,
    has_decisions: bool,
) -> tuple[str, ...]:
    """Return the metrics to compare, in the order of all comparison tables.

    The default is the AUC and, with decisions, the rates; without a label, the selection rate.
    """
    if metrics is None:
        rates = (*GAP_RATES,) if has_label else (_SELECTION_RATE,)
        aucs = (ROC_AUC.column,) if has_label and has_score else ()
        return (*aucs, *rates) if has_decisions else aucs
    if isinstance(metrics, str) or not isinstance(metrics, Sequence) or not metrics:
        checks.reject_type("metrics", "be None or a sequence of names of metrics", metrics)
    for name in metrics:
        check_metric("metrics", name, known, hint=calibration_hint(name))
    for name in metrics:
        if name in THRESHOLD_METRICS and not has_decisions:
            msg = f"`metrics` must come with a `threshold` or `selected` for {name}; found neither"
            raise ValueError(msg)
        if name not in THRESHOLD_METRICS and not has_score:
            msg = f"`metrics` must come with a `score` for {name}; found none"
            raise ValueError(msg)
    return tuple(name for name in METRICS | known if name in metrics)


def _check_unlabeled(metrics: Sequence[str], references: CategoryReference) -> None:
    """Raise for a metric or a reference that needs a label."""
    for name in metrics:
        if name not in UNLABELED:
            checks.reject("label", f"be given for {name}", None)
    if references.kind == "best":
        checks.reject("reference", "be 'rest', 'overall' or a segment without a `label`", "'best'")


def read_needs(
    metrics: Sequence[str], columns: Columns, weight: IntoWeight | None, *, picks_best: bool = False
) -> Needs:
    """Return the sums that the metrics need, for any decisions.

    AUCs are also needed to pick the best segment.
    """
    losses = [name for name in metrics if name in ROW_LOSSES]
    if losses or SMD.name in metrics:
        columns.require_scores("mean losses" if losses else "mean scores")
    return Needs(
        aucs=ROC_AUC.column in metrics or picks_best,
        losses=losses,
        scores=SMD.name in metrics,
        precision=read_precision(columns),
        count_weights=isinstance(weight, Frequency),
    )
