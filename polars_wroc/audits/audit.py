"""`audit`: measure scores overall and in each segment, and test the gaps between segments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from polars_wroc.audits.findings import auc_error, comparisons, counts_of, curves_of, with_findings
from polars_wroc.audits.in_ranges import measure_within
from polars_wroc.audits.measure import measure
from polars_wroc.audits.result import Audit
from polars_wroc.audits.small_cells import published
from polars_wroc.audits.tables import AuditPlan, AuditReference, AuditSettings, Run, Text
from polars_wroc.counts.count_table import CountTable
from polars_wroc.counts.score_sums import Binning
from polars_wroc.groups.categories import (
    Grouping,
    Intersections,
    read_attributes,
    read_category_reference,
)
from polars_wroc.groups.comparison_tests import GapTests
from polars_wroc.groups.gaps import check_margin
from polars_wroc.groups.references import KINDS
from polars_wroc.inputs import arguments
from polars_wroc.inputs.arguments import MARGIN
from polars_wroc.inputs.columns import (
    MODEL,
    Frequency,
    IntoColumn,
    IntoWeight,
    check_positives,
    column_of,
)
from polars_wroc.inputs.decisions import Favorable, check_favorable
from polars_wroc.inputs.designs import SURVEY_COLUMNS, Design, GivenDesign, read_design
from polars_wroc.inputs.expressions import named_columns
from polars_wroc.inputs.frames import require_groups
from polars_wroc.inputs.rows import CLASSES, IntoColumns, polars_frame, read_source
from polars_wroc.metrics.auc_interval import Interval, Method
from polars_wroc.metrics.score_ranges import Frames, division_of, one_of, read_parts, together
from polars_wroc.stats.difference_tests import Adjust, check_options
from polars_wroc.thresholds.confusion_matrix import ThresholdMetrics
from polars_wroc.thresholds.rules import Threshold, read_threshold

_ROUNDING = 1e-9


def _is_weighted(segments: pl.DataFrame) -> bool:
    """Whether rows have a weight other than 1; sums of weights alone may equal row counts."""
    differences = [
        pl.col(f"{number}_{side}") - pl.col(f"n_{side}")
        for number in ("w", "n_eff")
        for side in CLASSES
    ]
    weighted = pl.any_horizontal(difference.abs() > _ROUNDING for difference in differences)
    return bool(segments.select(weighted.any()).item())


def _scores(segments: pl.DataFrame, score: IntoColumns) -> list[str]:
    """List the names of the audited scores."""
    if MODEL in segments.columns:
        names: list[str] = segments[MODEL].unique(maintain_order=True).to_list()
        return names
    return [_shown(one) for one in ([score] if isinstance(score, str | pl.Expr) else score)]


def _shown_design(given: GivenDesign) -> dict[str, Any] | None:
    """Return a design with the names of columns."""
    if given.kind is None:
        return None
    if given.replicate_weights is not None:
        return {"kind": given.kind, "replicates": given.replicate_weights.kind}
    names = {SURVEY_COLUMNS[name]: _shown(column) for name, column in given.columns.items()}
    return {"kind": given.kind, **names, "lonely": given.survey.lonely}


def _shown(column: IntoColumn) -> str:
    return (
        column
        if isinstance(column, str)
        else column.meta.output_name(raise_if_undetermined=False) or str(column)
    )


def audit(
    frame: Frames[pl.DataFrame] | Frames[pl.LazyFrame],
    label: IntoColumn | None = None,
    score: IntoColumns | None = None,
    *,
    attributes: IntoColumns,
    intersections: Intersections = False,
    threshold: Threshold | None = None,
    selected: IntoColumn | None = None,
    favorable: Favorable | None = None,
    reference: AuditReference = "rest",
    weight: IntoWeight | None = None,
    pos_label: object = None,
    design: Design | None = None,
    margin: float = MARGIN,
    min_rows: int = 30,
    min_cell: int | None = None,
    level: float = 0.95,
    method: Method = "score",
    adjust: Adjust = "holm",
    bins: int | None = None,
    text: Text | None = None,
) -> Audit:
    """Measure scores overall and in each segment of each attribute, and test the gaps.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame, or a list of such that are parts of one; a lazy one is collected.
        More rows than fit into 60% of the memory are computed in ranges of scores: see `Config`.
    label, score, weight, pos_label, level
        As for `summary`.
    attributes
        The attributes: one or several columns or expressions. Each is audited separately; null
        is a segment of its own.
    threshold
        Threshold at which decisions are measured: rows with at least this score are predicted
        positive. ``"median"`` or a rule, such as ``wroc.rules.max_fpr(0.1)``, chooses one for each
        score on all rows: see `polars_wroc.rules`. The prevalence of ``least_cost`` affects this
        choice only, not the metrics at the threshold.
    selected
        Instead of a threshold: a Boolean column or expression, the decision that was
        recorded. Rates are then those of these decisions, and their ``threshold`` is null; AUCs and
        curves come from the score. Rows where it is null are missing. Plans compute this, whatever
        the engine.
    intersections
        True: also audit the segments of all attributes crossed, as one more attribute;
        ``"only"``: these alone.
    reference, adjust
        What each segment of an attribute is compared with, and how p-values are adjusted: see
        `group_gaps`. A mapping such as ``{"sex": "m", "age": 30}`` gives the reference segment of
        an attribute, crossed ones too, by its value or by its name in the result; attributes that
        are not in it use ``"rest"``.
    min_rows
        A segment with fewer rows in a class is measured and marked as ``small``. An estimate
        based on fewer rows is not tested, not compared in the fairness metrics and not chosen as
        the best: rows of each class for an AUC, positives for a tpr, negatives for an fpr,
        selected rows for a ppv, the others for an npv, all rows for a selection rate.
    margin
        Gaps within this do not matter to the verdicts: see `group_gaps`.
    favorable
        Which decision is good for a person, which must be said where there are decisions:
        ``"selected"``, such as a loan or a job; ``"rejected"``, where being selected is bad, such
        as a denial or a suspicion; ``"neither"``, such as a diagnosis. It says who is worse off:
        always by a lower AUC; where being selected is good, by a lower selection rate or tpr; where
        being rejected is, by a higher selection rate or fpr, or a lower ppv. Impact ratios are of
        the good decision; where neither is good there are none.
    method
        Method of the intervals of AUCs: see `summary`. Gaps in AUC are tested by the method
        ``"score"`` of `group_gaps` if this is ``"score"``, and by its ``"logit-t"`` if this is any
        other. Fairness metrics, and the gaps of a survey or of clusters, always use ``"score"``.
    design
        Clusters, a `Survey` or `ReplicateWeights`: see `summary`. AUCs have the intervals of
        `summary`; rates, gaps and fairness metrics those of `threshold_metrics`, `group_gaps` and
        `fairness`, with their tests, whatever the ``method``. Intervals of calibration are
        linearised too, those of the calibration in the large and of the ratio of observed to
        expected positives from the scores and labels of each unit; calibration slopes and
        intercepts have none. Plans compute this, whatever the engine.
    bins
        Measure from about so many bins of scores, in one pass and little memory: see `summary`.
    text
        Title and note of reports, and the words of sentences for classes and decisions: see `Text`.
    min_cell
        For results that are published: segments with fewer rows of a class or of a decision are
        left out of all tables, and so are others from which their numbers could be computed with
        the totals, and comparisons with them. Where that is only the segment of those without a
        value of an attribute, no other is left out with it: its rows are left out of the totals and
        of all else, as if they were not there. Rows without a label, score, weight or decision are
        in no class or decision: their numbers are kept. Two audits of the same rows, or other
        tables, may still give them away.

    Returns
    -------
    Audit
        The result tables, with the methods ``chart``, ``save`` and ``to_json``.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also if there is no row to audit, or nothing to show with ``min_cell``, or
        if two segments would have the same name: ``"a, b"`` crossed with ``"c"`` and ``"a"`` with
        ``"b, c"``, or null and ``"(missing)"``.

    Notes
    -----
    Calibration slopes are fitted as by `calibration_summary`. An audit in ranges of scores fits all
    of them to bins of the logit, and slopes beyond 28 are null.

    Whether a score is calibrated is tested once, for all rows: its mean error against 0, with the
    standard error that the mean has if each score is the probability of its row, and its slope
    against 1. A segment is different only from its reference: in its mean error, of which the
    reference is that of all its rows, or in its slope, of which the reference is the mean of the
    slopes of its segments, weighted by their information. Slopes are tested by the larger of the
    model's and the robust standard error of each segment, as in `calibration_summary`, and by the
    design of a survey not at all; mean errors by those of the rows or, if larger, by those at the
    rates that are expected if segment and reference are off alike, by the design of a survey by its
    variance and Student's t. Five rows of each class must be expected. The verdicts are those of
    gaps. A slope is alike if it is shown to be between 0.8 and 1.25 times the other for a
    ``margin`` of 0.05: no probability then differs by more than that, if they agree at a half.

    P-values are adjusted for all gaps of AUCs and rates and all tests of calibration together, each
    comparison once: of two segments, each the rest of the other, one test counts. "Different" and
    "worse" come from this ``p_adjusted`` only, and "alike" from one-sided tests for as many
    comparisons. Impact ratios are not counted: they are judged by limits that hold for all
    categories of an attribute at once, and their ``p_adjusted`` is for themselves.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1], "sex": list("ffmm")})
    >>> audit = wroc.audit(df, "y", "s", attributes="sex")
    >>> audit.table.filter(metric="auc").select("attribute", "segment", "n", "value")
    shape: (3, 4)
    ┌───────────┬─────────┬─────┬───────┐
    │ attribute ┆ segment ┆ n   ┆ value │
    │ ---       ┆ ---     ┆ --- ┆ ---   │
    │ str       ┆ str     ┆ i64 ┆ f64   │
    ╞═══════════╪═════════╪═════╪═══════╡
    │ overall   ┆ overall ┆ 2   ┆ 0.75  │
    │ sex       ┆ f       ┆ 1   ┆ 1.0   │
    │ sex       ┆ m       ┆ 1   ┆ 1.0   │
    └───────────┴─────────┴─────┴───────┘
    """
    for name, column, others in (
        ("label", label, "`impact_ratios` compares decisions"),
        ("score", score, "`group_gaps` and `fairness` compare recorded decisions"),
    ):
        if column is None:
            msg = f"`{name}` must be given; found None. {others} without a {name}"
            raise ValueError(msg)
    assert label is not None
    assert score is not None
    survey = read_design(design)
    level = check_options(level, adjust)
    margin = check_margin(margin)
    if min_cell is not None:
        min_cell = arguments.whole_number("min_cell", min_cell, low=2)
    if text is not None and not isinstance(text, Text):
        arguments.reject_type("text", "be a `Text`", text)
    require_groups(attributes, "name the attributes to audit", "attributes")
    min_rows = arguments.whole_number("min_rows", min_rows, low=0)
    bins = Binning(bins).bins
    choice = read_threshold(threshold, selected)
    at_threshold = choice if selected is None else None
    check_favorable(favorable, at_threshold, decided=choice is not None)
    designed, by_score = survey.given, survey.given or method == "score"
    interval = Interval(
        level,
        method,
        clustered=designed and not survey.more_than_clusters,
        designed=survey.more_than_clusters,
    )
    tables = (
        [polars_frame(each) for each in frame] if isinstance(frame, list) else read_source(frame)
    )
    given = tables, label, score, weight, attributes, pos_label
    kinds: dict[str, Any] = {"survey": survey, "selected": selected, "called": "attributes"}
    parts = read_parts(*given, designed=designed, mark_missing=True, **kinds)
    rows, table = together(parts), one_of(tables)
    counts = table if isinstance(table, CountTable) else None
    groupings = [Grouping(), *read_attributes(rows, intersections)]
    schema = rows.frame.collect_schema()
    references = read_category_reference(reference, KINDS, groupings[1:], schema)
    # Of the score there is a threshold only where no decisions were recorded.
    cuts = (choice,) if isinstance(choice, float) and not rows.recorded else ()
    plan = AuditPlan(
        groupings,
        references,
        choice,
        interval,
        ThresholdMetrics(level, designed=designed),
        GapTests(level, adjust, min_rows, "score" if by_score else "logit-t", margin, designed),
        favorable,
        Binning(bins, cuts=cuts),
        [] if counts else list(named_columns("score", score, table.lazy())),
    )
    divided = None if designed or selected is not None or bins else division_of(tables, "60%")

    def audited(complete: Sequence[str]) -> Audit:
        if divided:
            measured = measure_within([part.with_values(complete) for part in parts], plan, divided)
        else:
            measured = measure(rows.with_values(complete), plan)
        segments = measured.segments
        check_positives(pos_label, found=bool(segments["n_pos"].sum()))
        # Counts have a weight that is 1 where their rows had none.
        known = None if counts and not _is_weighted(segments) else weight
        settings = AuditSettings(
            label=None if counts else _shown(label),
            pos_label=pos_label,
            score=_scores(segments, score),
            weight=None if known is None else _shown(column_of(known)),
            frequency=isinstance(known, Frequency),
            attributes=rows.group_names,
            intersections=intersections,
            threshold=at_threshold,
            selected=None if selected is None else _shown(selected),
            design=_shown_design(survey),
            reference=references,
            level=level,
            adjust=adjust,
            method=method,
            min_rows=min_rows,
            margin=margin,
            favorable=favorable,
            text=text or Text(),
            min_cell=min_cell,
            bins=counts.bins() if counts else bins,
        )
        missing = counts.missing(attributes, complete) if counts else measured.missing
        return Audit(
            comparisons(measured, settings),
            counts_of(segments, settings),
            curves_of(measured.curves, settings),
            missing.table(settings.label, settings.weight, settings.selected),
            settings,
            Run(design_df=measured.design_df, auc_error=auc_error(segments)),
        )

    audit = published(audited, rows.group_names, min_cell)
    found = with_findings(audit.table, audit.segments, audit.settings)
    return replace(audit, table=found)
