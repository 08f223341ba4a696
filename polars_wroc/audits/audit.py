"""`audit`: measure scores overall and in each segment, and test the gaps between segments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
import polars as pl

from polars_wroc import checks
from polars_wroc.audits.audit_rows import AuditRows, TooManyRowsError, read_audit_rows
from polars_wroc.audits.closer_look import CloserLook
from polars_wroc.audits.findings import (
    auc_error,
    comparisons,
    counts_of,
    curves_of,
    with_findings,
)
from polars_wroc.audits.in_ranges import measure_in_ranges
from polars_wroc.audits.measure import Measured, measure
from polars_wroc.audits.result import Audit
from polars_wroc.audits.score_tables import compare_scores, distribute_scores
from polars_wroc.audits.small_cells import published
from polars_wroc.audits.tables import (
    DISTRIBUTION_SCHEMA,
    AuditAdjustment,
    AuditPlan,
    AuditReference,
    AuditSettings,
    Run,
    Text,
)
from polars_wroc.checks import MARGIN
from polars_wroc.config import Division
from polars_wroc.counts.count_table import CountTable, refuse_design_in_bins
from polars_wroc.counts.score_sums import Binning
from polars_wroc.groups.categories import Grouping, Intersections
from polars_wroc.groups.divisions import read_divisions, read_references
from polars_wroc.inputs.columns import (
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
from polars_wroc.inputs.expressions import named_columns
from polars_wroc.inputs.frames import require_groups
from polars_wroc.inputs.rows import CLASSES, IntoColumns, polars_frame, read_source
from polars_wroc.keywords import hint_keywords
from polars_wroc.looks import ConfidenceLevel, Looks
from polars_wroc.metrics.counted_parts import Part
from polars_wroc.metrics.given_tables import Frames, GivenTables, division_of, one_of
from polars_wroc.rows import (
    Columns,
    check_level,
    find_score_type,
)
from polars_wroc.stats.levels import Level
from polars_wroc.steps import FloatType
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


def _name_scores(score: IntoColumns | None, columns: Columns) -> list[str]:
    """Return the names of the audited scores."""
    if score is None:
        return []
    if columns.several:
        return [*columns.models]
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
        min_cell = checks.whole_number("min_cell", min_cell, low=2)
    if text is not None and not isinstance(text, Text):
        checks.reject_type("text", "be a `Text`", text)
    return min_cell, text or Text()


def _check_without_label(choice: float | Rule | None, **others: object) -> None:
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
    for name, value in others.items():
        if value is not None:
            checks.reject(name, "be None without a `label`", repr(value))


@dataclass(frozen=True)
class _Source:
    """The rows of an audit in memory, or plans of more rows than fit into it."""

    rows: AuditRows | None
    parts: Sequence[Part]
    division: Division | None

    def measure(
        self, plan: AuditPlan, level: ConfidenceLevel, complete: Sequence[str]
    ) -> tuple[Measured, ConfidenceLevel]:
        """Return the tables of rows with a value of some groups, and the level at the rows seen."""
        if self.rows is None:
            assert self.division is not None
            parts = [part.with_values(complete) for part in self.parts]
            return measure_in_ranges(parts, plan, self.division, level)
        if isinstance(level, Looks) and not level.is_known:
            level = level.at(self.rows.seen)
        rows = self.rows.at(complete)
        rows.check_number(labeled=plan.labeled)
        return measure(rows, plan, level), level


def _read_source(
    given: GivenTables, columns: Sequence[Columns], plan: AuditPlan, division: Division | None
) -> _Source:
    """Return all rows, each source read once, unless they turn out to exceed the memory."""
    if division is None:
        return _Source(read_audit_rows(columns, plan.scores), [], None)
    try:
        return _Source(read_audit_rows(columns, plan.scores, division), [], division)
    except TooManyRowsError:
        parts = given.read_parts()
        return _Source(None, [each.with_types(plan.score_types) for each in parts], division)


@hint_keywords
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
    level: ConfidenceLevel = 0.95,
    adjust: AuditAdjustment = "holm",
    unknown: Unknown = "exclude",
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
        curves come from the score. Rows where it is null are missing.
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
        based on fewer rows is not tested, and not compared in the fairness metrics: rows of each
        class for an AUC, positives for a tpr, negatives for an fpr, selected rows for a ppv, the
        others for an npv, all rows for a selection rate.
    margin
        Gaps within this do not matter to the verdicts: see `group_gaps`.
    favorable
        Which decision is good for a person, which must be said where there are decisions:
        ``"selected"``, such as a loan or a job; ``"rejected"``, where being selected is bad, such
        as a denial or a suspicion; ``"neither"``, such as a diagnosis. It says who is worse off:
        where being selected is good, by a lower selection rate or tpr; where being rejected is, by
        a higher selection rate or fpr, if the gap is significant and at least the ``margin``, or by
        an impact ratio below four fifths. Precision, AUC and calibration name nobody. Impact
        ratios are of the good decision; where neither is good there are none.
    design
        Clusters, a `Survey` or `ReplicateWeights`: see `summary`. AUCs have the intervals of
        `summary`; rates, gaps and fairness metrics those of `threshold_metrics`, `group_gaps` and
        `fairness`, with their tests. Intervals of the calibration
        in the large are linearised too; calibration slopes have none.
    unknown
        Which categories are unknown: see `impact_ratios`. Values that are listed are those of the
        segment without a value.
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
    gaps. A slope is equivalent if it is shown to be between 0.8 and 1.25 times the other for a
    ``margin`` of 0.05: no probability then differs by more than that, if they agree at a half.

    P-values are adjusted for all gaps of AUCs and rates and all tests of calibration together, each
    comparison once: of two segments, each the rest of the other, one test counts. "Different" and
    "worse" come from this ``p_adjusted`` only, and "equivalent" from one-sided tests for as many
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
    margin = checks.margin(margin)
    min_cell, text = _read_output(min_cell, text)
    if min_cell is not None and intersections:
        rule = "be False with `min_cell`: too many crossed segments would have to be left out"
        checks.reject("intersections", rule, repr(intersections))
    require_groups(attributes, "name the attributes to audit", "attributes")
    min_rows = checks.whole_number("min_rows", min_rows, low=0)
    refuse_design_in_bins(survey, Binning(None))
    choice = read_threshold(threshold, selected)
    at_threshold = choice if selected is None else None
    if not labeled:
        _check_without_label(choice, pos_label=pos_label)
    check_favorable(favorable, at_threshold, decided=choice is not None)
    checks.option("adjust", adjust, get_args(AuditAdjustment))
    level = check_level(level, None)
    tables = (
        [polars_frame(each) for each in frame] if isinstance(frame, list) else read_source(frame)
    )
    table = one_of(tables)
    counts = table if isinstance(table, CountTable) else None
    known = known_attributes(unknown, attributes, counts.groups if counts else table.lazy())
    measured_score = score_or_decisions(table, score, selected)
    given = GivenTables(
        tables,
        label,
        measured_score,
        weight,
        known,
        pos_label,
        design,
        selected,
        argument="attributes",
        mark_missing=True,
    )
    columns = given.read_columns()
    groupings = [Grouping(), *read_divisions(columns[0], intersections)]
    references = read_references(reference, ("rest", "overall"), groupings[1:], columns[0])
    score_types = columns[0].score_types
    if counts is None:
        score_types = _read_score_types(tables, measured_score)
    plan = AuditPlan(
        groupings,
        references,
        choice,
        selected is not None,
        adjust,
        margin,
        min_rows,
        favorable,
        [] if counts else [*named_columns("score", measured_score, table.lazy())],
        # Values that are listed are null.
        unknown if isinstance(unknown, str) else "exclude",
        labeled,
        score_types,
    )
    is_held = survey.given or selected is not None or not labeled
    source = _read_source(given, columns, plan, None if is_held else division_of(tables, "60%"))
    settings = AuditSettings(
        label=None if counts or label is None else _shown(label),
        pos_label=pos_label,
        score=_name_scores(score, columns[0]),
        weight=None if weight is None else _shown(column_of(weight)),
        frequency=isinstance(weight, Frequency),
        attributes=[*columns[0].names.values()],
        intersections=intersections,
        threshold=at_threshold,
        selected=None if selected is None else _shown(selected),
        design=_shown_design(survey),
        reference=references,
        level=level,
        adjust=adjust,
        min_rows=min_rows,
        margin=margin,
        favorable=favorable,
        text=text,
        min_cell=min_cell,
        bins=counts.bins() if counts else None,
        unknown=unknown,
        labeled=labeled,
    )
    auditor = _Auditor(source, plan, settings, counts, known)
    audit = published(auditor, settings.attributes, min_cell)
    audit = replace(audit, table=with_findings(audit.table, audit.segments, audit.settings))
    held = None if source.rows is None else source.rows.at(audit.run.left_out_of_totals)
    options = {"weight": weight, "pos_label": pos_label, "design": design}
    look = CloserLook(audit, plan, held, (tables, label, score, options))
    return replace(audit, further=look)


def _read_score_types(frames: Any, score: IntoColumns) -> list[FloatType]:
    """Return the types that scores came in; of several tables the first that has more bits."""
    tables = frames if isinstance(frames, list) else [frames]
    types = []
    for table in tables:
        lazy = table.lazy()
        columns = named_columns("score", score, lazy).values()
        schema = lazy.select(column.alias(f"{n}") for n, column in enumerate(columns))
        types.append([find_score_type(dtype) for dtype in schema.collect_schema().dtypes()])
    return [max(each, key=lambda kind: np.finfo(kind).bits) for each in zip(*types, strict=True)]


@dataclass(frozen=True)
class _Auditor:
    """Makes audits of all rows, or of those with a value of some attributes.

    Counts tell which rows lack a value of the ``known`` attributes.
    """

    source: _Source
    plan: AuditPlan
    settings: AuditSettings
    counts: CountTable | None
    known: Sequence[pl.Expr]

    def __call__(self, complete: Sequence[str]) -> Audit:
        """Return the audit of the rows with a value of some attributes."""
        plan, settings = self.plan, self.settings
        measured, level = self.source.measure(plan, settings.level, complete)
        settings = replace(settings, level=level)
        segments, missing = measured.segments, measured.missing
        if plan.labeled:
            check_positives(settings.pos_label, found=bool(segments["n_pos"].sum()))
        if self.counts is not None:
            missing = self.counts.missing(self.known, complete)
            # Counts have a weight that is 1 where their rows had none.
            if not _is_weighted(segments):
                settings = replace(settings, weight=None, frequency=False)
        differences, distributions = None, DISTRIBUTION_SCHEMA.to_frame()
        if settings.score and not plan.labeled and self.source.rows is not None:
            rows = self.source.rows.at(complete)
            differences = compare_scores(
                rows, plan, Level.of(level), count_weights=settings.frequency
            )
            if settings.min_cell is None:
                distributions = distribute_scores(rows, plan)
        return Audit(
            comparisons(measured, settings, differences),
            counts_of(segments, settings),
            curves_of(measured.curves, settings),
            missing.table(settings.label, settings.weight, settings.selected),
            settings,
            Run(design_df=measured.design_df, auc_error=auc_error(segments)),
            distributions=distributions,
        )
