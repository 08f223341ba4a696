"""`audit`: measure scores overall and in each segment, and test the gaps between segments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from polars_wroc.audits.closer_look import CloserLook
from polars_wroc.audits.findings import auc_error, comparisons, counts_of, curves_of, with_findings
from polars_wroc.audits.in_ranges import measure_within
from polars_wroc.audits.measure import distributions_of, measure, scores_of
from polars_wroc.audits.ranked_segments import RankedSegments
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
from polars_wroc.groups.impact_ratios import MIN_SHARE
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
from polars_wroc.inputs.decisions import (
    Favorable,
    Unknown,
    check_favorable,
    known_attributes,
    score_or_decisions,
)
from polars_wroc.inputs.designs import SURVEY_COLUMNS, Design, GivenDesign, read_design
from polars_wroc.inputs.expressions import as_column, named_columns
from polars_wroc.inputs.frames import require_groups
from polars_wroc.inputs.rows import CLASSES, IntoColumns, polars_frame, read_source
from polars_wroc.metrics.auc_interval import Interval, Method
from polars_wroc.metrics.score_ranges import Frames, division_of, one_of, read_parts, together
from polars_wroc.stats.difference_tests import Adjust, check_options
from polars_wroc.thresholds.confusion_matrix import ThresholdMetrics
from polars_wroc.thresholds.registry import AUDIT_RATES
from polars_wroc.thresholds.rules import Rule, Threshold, read_threshold

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


def _read_output(min_cell: int | None, text: Text | None) -> tuple[int | None, Text]:
    """Check what is to be published, and its words."""
    if min_cell is not None:
        min_cell = arguments.whole_number("min_cell", min_cell, low=2)
    if text is not None and not isinstance(text, Text):
        arguments.reject_type("text", "be a `Text`", text)
    return min_cell, text or Text()


def _check_without_label(choice: float | Rule | None, reference: object, **others: object) -> None:
    """Check that what is asked for needs no label."""
    if choice is None:
        msg = (
            "`label` must be given unless decisions are audited alone, those that were `selected` "
            "or those at a `threshold`; found None"
        )
        raise ValueError(msg)
    if isinstance(choice, Rule) and choice.name != "max_selection_rate":
        msg = (
            "`threshold` must be a number, 'median' or rules.max_selection_rate(...) without a "
            f"`label`; found {choice!r}"
        )
        raise ValueError(msg)
    if reference == "best":
        msg = "`reference` must not be 'best', the segment with the highest AUC, without a `label`"
        raise ValueError(msg)
    for name, value in others.items():
        if value is not None:
            arguments.reject(name, "be None without a `label`", repr(value))


def _finished(audit: Audit, plan: AuditPlan, ranked: RankedSegments | None, *given: Any) -> Audit:
    """Add the findings, and what a report looks at further; ``given`` are the rows' arguments."""
    table = with_findings(audit.table, audit.segments, audit.settings)
    audit = replace(audit, table=table)
    return replace(audit, further=CloserLook(audit, plan, ranked, given))


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
    unknown: Unknown = "exclude",
    min_share: float = MIN_SHARE,
    text: Text | None = None,
) -> Audit:
    """Measure scores and decisions in each segment of each attribute, and test the gaps.

    Without a label decisions are audited alone, those that were ``selected`` or those at a
    ``threshold`` of the score: selection rates with their gaps and impact ratios, demographic
    parity, and of a score its mean and its distribution in each segment.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame, or a list of such that are parts of one; a lazy one is collected.
        More rows than fit into 60% of the memory are computed in ranges of scores: see `Config`.
    label, score, weight, pos_label, level
        As for `summary`. Without a label the score may be None too, if decisions are ``selected``.
    attributes
        The attributes: one or several columns or expressions. Each is audited separately; null
        is a segment of its own.
    threshold
        Threshold at which decisions are measured: rows with at least this score are predicted
        positive. ``"median"`` or a rule, such as ``wroc.rules.max_fpr(0.1)``, chooses one for each
        score on all rows: see `polars_wroc.rules`. The prevalence of ``least_cost`` affects this
        choice only, not the metrics at the threshold. Without a label a number, ``"median"`` or
        `rules.max_selection_rate`.
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
    unknown, min_share
        Which categories are unknown, and which are too small for impact ratios: see
        `impact_ratios`. Values that are listed as unknown are those of the segment without a value.
    text
        Title and note of reports, and the words of sentences for classes and decisions: see `Text`.
    min_cell
        For results that are published: segments with fewer rows of a class or of a decision are
        left out of all tables, and so are others from which their numbers could be computed with
        the totals, and comparisons with them. Where that is only the segment of those without a
        value of an attribute, no other is left out with it: its rows are left out of the totals and
        of all else, as if they were not there. Rows without a label, score, weight or decision are
        in no class or decision: of these only the number in all is kept. Two audits of the same
        rows, or other tables, may still give them away.

    Returns
    -------
    Audit
        The result tables, with the methods ``chart``, ``save`` and ``to_json``.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; without a label also for what needs one; if there is no row to audit, or
        nothing to show with ``min_cell``; and if two segments would have the same name: ``"a, b"``
        crossed with ``"c"`` and ``"a"`` with ``"b, c"``, or null and ``"(missing)"``.

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

    Decisions alone:

    >>> hires = pl.DataFrame({"hired": [True, False, False, True], "sex": list("ffmm")})
    >>> audit = wroc.audit(hires, attributes="sex", selected="hired", favorable="selected")
    >>> audit.table["metric"].unique(maintain_order=True).to_list()
    ['selection_rate', 'impact_ratio']
    """
    labeled, survey = label is not None, read_design(design)
    if score is None and (labeled or selected is None):
        msg = (
            "`score` must be given unless decisions are `selected` without a `label`; found None. "
            "With a label and no score, `group_gaps` and `fairness` compare recorded decisions"
        )
        raise ValueError(msg)
    margin = check_margin(margin)
    min_cell, text = _read_output(min_cell, text)
    require_groups(attributes, "name the attributes to audit", "attributes")
    min_rows = arguments.whole_number("min_rows", min_rows, low=0)
    min_share = arguments.number("min_share", min_share, low=0.0, high=1.0)
    bins = Binning(bins).bins
    choice = read_threshold(threshold, selected)
    at_threshold = choice if selected is None else None
    if not labeled:
        _check_without_label(choice, reference, pos_label=pos_label, bins=bins)
    check_favorable(favorable, at_threshold, decided=choice is not None)
    designed = survey.given
    tables = (
        [polars_frame(each) for each in frame] if isinstance(frame, list) else read_source(frame)
    )
    table = one_of(tables)
    counts = table if isinstance(table, CountTable) else None
    known = known_attributes(unknown, attributes, counts.groups if counts else table.lazy())
    measured_score = score_or_decisions(table, score, selected)
    parts = read_parts(
        *(tables, label, measured_score, weight, known, pos_label),
        designed=designed,
        mark_missing=True,
        survey=survey,
        selected=selected,
        called="attributes",
    )
    rows = together(parts)
    # An audit runs plans anyway.
    level = check_options(rows.look(level, None), adjust)
    interval = Interval.by_design(level, method, survey)
    groupings = [Grouping(), *read_attributes(rows, intersections)]
    references = read_category_reference(
        reference, KINDS, groupings[1:], rows.frame.collect_schema()
    )
    # Of the score there is a threshold only where no decisions were recorded.
    cuts = (choice,) if isinstance(choice, float) and not rows.recorded else ()
    tests = GapTests(
        level,
        adjust,
        min_rows,
        "score" if designed or method == "score" else "logit-t",
        margin,
        designed=designed,
        rates_alone=not labeled,
        metrics=None if labeled else ("selection_rate",),
    )
    plan = AuditPlan(
        groupings,
        references,
        choice,
        interval,
        ThresholdMetrics(level, designed=designed, shown=tuple(AUDIT_RATES)),
        tests,
        favorable,
        Binning(bins, cuts=cuts),
        [] if counts else list(named_columns("score", measured_score, table.lazy())),
        # Values that are listed are null.
        unknown if isinstance(unknown, str) else "exclude",
        min_share,
        labeled,
    )
    planned = designed or selected is not None or bins or not labeled
    divided = None if planned else division_of(tables, "60%")
    keys = dict(zip(rows.group_keys, known, strict=True))
    decision = [] if selected is None else [as_column("selected", selected)]

    # Of the last measurement.
    ranked: list[RankedSegments | None] = [None]

    def audited(complete: Sequence[str]) -> Audit:
        if divided:
            measured = measure_within([part.with_values(complete) for part in parts], plan, divided)
        else:
            measured = measure(rows.with_values(complete), plan)
        segments, scores, ranked[0] = measured.segments, None, measured.ranked
        if score is not None and not labeled:
            of_groups = [column for key, column in keys.items() if rows.name_of(key) in complete]
            scores = scores_of(
                *(tables, score, keys, plan, [*of_groups, *decision]),
                {"intersections": intersections, "weight": weight, "design": design},
            )
        if labeled:
            check_positives(pos_label, found=bool(segments["n_pos"].sum()))
        # Counts have a weight that is 1 where their rows had none.
        weighted = None if counts and not _is_weighted(segments) else weight
        settings = AuditSettings(
            label=None if counts or label is None else _shown(label),
            pos_label=pos_label,
            score=[] if score is None else _scores(segments, score),
            weight=None if weighted is None else _shown(column_of(weighted)),
            frequency=isinstance(weighted, Frequency),
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
            text=text,
            min_cell=min_cell,
            bins=counts.bins() if counts else bins,
            unknown=unknown,
            min_share=min_share,
            labeled=labeled,
        )
        missing = counts.missing(known, complete) if counts else measured.missing
        return Audit(
            comparisons(measured, settings, scores),
            counts_of(segments, settings),
            curves_of(measured.curves, settings),
            missing.table(settings.label, settings.weight, settings.selected),
            settings,
            Run(design_df=measured.design_df, auc_error=auc_error(segments)),
            distributions=distributions_of(scores, settings),
        )

    return _finished(
        *(published(audited, rows.group_names, min_cell), plan, ranked[0]),
        *(tables, label, score, {"weight": weight, "pos_label": pos_label, "design": design}),
    )
