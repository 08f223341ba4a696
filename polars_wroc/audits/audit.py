"""`audit`: measure scores overall and in each segment, and test the gaps between segments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from polars_wroc import checks
from polars_wroc.audits.audit_rows import AuditRows, TooManyRowsError, read_audit_rows
from polars_wroc.audits.closer_look import CloserLook
from polars_wroc.audits.findings import with_findings
from polars_wroc.audits.in_ranges import measure_in_ranges
from polars_wroc.audits.measure import Measured, measure
from polars_wroc.audits.result import Audit
from polars_wroc.audits.small_cells import have_few_unlabeled, publish
from polars_wroc.audits.tables import (
    AuditAdjustment,
    AuditPlan,
    AuditReference,
    AuditSettings,
    Run,
    Text,
)
from polars_wroc.bounds import Margin, MinCell, MinRows
from polars_wroc.calls import check_call
from polars_wroc.checks import MARGIN
from polars_wroc.config import Division
from polars_wroc.counts.count_table import CountTable, refuse_design_in_bins
from polars_wroc.counts.score_sums import Binning
from polars_wroc.groups.categories import Grouping, Intersections
from polars_wroc.groups.divisions import read_divisions, read_references
from polars_wroc.groups.known_categories import find_unknown
from polars_wroc.groups.many_groups import warn_of_many_groups
from polars_wroc.inputs.columns import (
    Frequency,
    IntoColumn,
    IntoWeight,
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
from polars_wroc.inputs.frames import require_groups, require_positives
from polars_wroc.inputs.rows import IntoColumns, polars_frame, read_source
from polars_wroc.looks import ConfidenceLevel, Looks
from polars_wroc.metrics.counted_parts import Part
from polars_wroc.metrics.given_tables import Frames, GivenTables, division_of, one_of
from polars_wroc.rows import (
    Columns,
    check_level,
    find_score_type,
)
from polars_wroc.steps import FloatType
from polars_wroc.thresholds.rules import Rule, Threshold, read_threshold


def _name_scores(score: IntoColumns | None, columns: Columns) -> list[str]:
    """Return the names of the audited scores."""
    if score is None:
        return []
    if columns.several:
        return [*columns.models]
    return [_name_column(one) for one in ([score] if isinstance(score, str | pl.Expr) else score)]


def _describe_design(given: GivenDesign) -> dict[str, Any] | None:
    """Return a design with the names of columns."""
    if given.kind is None:
        return None
    if given.replicate_weights is not None:
        return {"kind": given.kind, "replicates": given.replicate_weights.kind}
    names = {SURVEY_COLUMNS[name]: _name_column(column) for name, column in given.columns.items()}
    return {"kind": given.kind, **names, "lonely": given.survey.lonely}


def _name_column(column: IntoColumn) -> str:
    return (
        column
        if isinstance(column, str)
        else column.meta.output_name(raise_if_undetermined=False) or str(column)
    )


def _check_without_label(choice: float | Rule | None, **others: object) -> None:
    """Raise for arguments that need a label."""
    if choice is None:
        msg = (
            "`label` must be given unless only decisions are audited, recorded ones (`selected`) "
            "or decisions at a `threshold`; found None"
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


def _read_rows(
    given: GivenTables, columns: Sequence[Columns], plan: AuditPlan, division: Division | None
) -> tuple[AuditRows | None, Sequence[Part]]:
    """Return all rows, from one read of each source, or parts if they exceed the memory."""
    try:
        return read_audit_rows(columns, plan.scores, division), []
    except TooManyRowsError:
        return None, [each.with_types(plan.score_types) for each in given.read_parts()]


@check_call
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
    margin: Margin = MARGIN,
    min_rows: MinRows = 30,
    min_cell: MinCell | None = None,
    level: ConfidenceLevel = 0.95,
    adjust: AuditAdjustment = "holm",
    unknown: Unknown = "exclude",
    text: Text | None = None,
) -> Audit:
    """Return a fairness audit: metrics and tested gaps of every segment, and a verdict in words.

    Use it to audit scores and decisions by several attributes, with a report. Without a label, it
    audits the decisions only.

    The result shows:

    - ``verdict``: the findings in a few sentences;
    - ``findings``: comparisons with a verdict, the most serious first;
    - ``table``: one row per attribute, segment, score and metric, with the columns of `group_gaps`;
    - ``chart()``, ``save("report.html")``, ``to_json()``: chart, report, and JSON for programs.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame, or a list of frames that are parts of one; a LazyFrame is collected.
        If this takes more than 60 % of the memory, it is done in ranges of scores: see `Config`.
    label, score, weight, pos_label, level
        As for `summary`. Without a label, the score is optional too if there are ``selected``
        decisions. Rows with a null label count only in selection rates, impact ratios and
        demographic parity.
    attributes, intersections
        As for `group_gaps`. A null value is a segment of its own.
    adjust
        Adjustment of p-values for all tests of the audit: ``"holm"`` or ``"none"``.
    threshold
        Rows with at least this score are selected: a number; or ``"median"`` or a rule of
        `polars_wroc.rules`, which choose one threshold per score from all rows with a label.
        Without a label, the only rule is `rules.max_selection_rate`.
    selected
        Instead of a threshold: recorded decisions, as for `group_gaps`. AUCs and curves still come
        from the score.
    favorable
        Which decision is good for a person; required if there are decisions. ``"selected"``: a
        loan, a job. ``"rejected"``: a suspicion of fraud. ``"neither"``: a diagnosis; there are
        then no impact ratios.
    reference
        What each segment is compared with: ``"rest"`` (everyone else) or ``"overall"`` (all rows).
        A mapping, for example ``{"sex": "m", "age": 30}``, names reference segments, also for
        crossed attributes; attributes it does not name use ``"rest"``.
    design
        As for `summary`. Calibration slopes are then not tested, and have no limits here;
        `calibration_summary` has them.
    margin
        Largest gap that does not matter: see `group_gaps`.
    min_rows
        Fewest rows for a test; for an AUC, fewest rows of each class. Smaller segments are marked
        as ``small``, and left out of fairness metrics.
    min_cell
        For published results: leave out segments with fewer rows of a class or a decision, other
        segments from which these could be computed, and comparisons with them. If only the segment
        of missing values is that small, its rows are left out of the totals too. Not with
        ``intersections``.
    unknown
        Values that count as unknown in impact ratios: see `impact_ratios`.
    text
        Title and note of reports, and words for classes and decisions: see `Text`.

    Returns
    -------
    Audit
        The tables, with the methods ``chart``, ``save``, ``metrics`` and ``to_json``.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for a missing label or option that the arguments need, if nothing is
        left to show, or if two segments would have the same name.

    Notes
    -----
    All gaps of AUCs and rates and all tests of calibration are adjusted together. Impact ratios are
    not counted: their limits hold for all categories of an attribute at once.

    A segment is worse off if its impact ratio is below four fifths, or if a gap is significant and
    at least the ``margin``: a lower selection rate or tpr if being selected is good, a higher
    selection rate or fpr if it is bad. [Formulas](../explanation/statistics.md#audit).

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> loans = wroc.data.loans()
    >>> options = {"threshold": 0.85, "favorable": "selected"}
    >>> audit = wroc.audit(loans, "approved", "score", attributes="race", **options)
    >>> audit.findings.select("segment", "metric", pl.col("gap").round(3), "verdict").head(3)
    shape: (3, 4)
    ┌─────────┬────────────────┬────────┬───────────────────┐
    │ segment ┆ metric         ┆ gap    ┆ verdict           │
    │ ---     ┆ ---            ┆ ---    ┆ ---               │
    │ str     ┆ str            ┆ f64    ┆ str               │
    ╞═════════╪════════════════╪════════╪═══════════════════╡
    │ black   ┆ selection_rate ┆ -0.244 ┆ different         │
    │ black   ┆ tpr            ┆ -0.19  ┆ different         │
    │ black   ┆ impact_ratio   ┆ null   ┆ below four fifths │
    └─────────┴────────────────┴────────┴───────────────────┘
    """
    labeled, survey = label is not None, read_design(design)
    if score is None and (labeled or selected is None):
        msg = (
            "`score` must be given unless decisions are `selected` without a `label`; found None. "
            "With a label and no score, `group_gaps` and `fairness` compare recorded decisions"
        )
        raise ValueError(msg)
    if text is not None and not isinstance(text, Text):
        checks.reject_type("text", "be a `Text`", text)
    if min_cell is not None and intersections:
        msg = (
            "`min_cell` cannot be combined with `intersections`, since too many segments would be "
            "left out: drop one of the two"
        )
        raise ValueError(msg)
    require_groups(attributes, "name the attributes to audit", "attributes")
    refuse_design_in_bins(survey, Binning(None))
    choice = read_threshold(threshold, selected)
    at_threshold = choice if selected is None else None
    if not labeled:
        _check_without_label(choice, pos_label=pos_label)
    check_favorable(favorable, at_threshold, decided=choice is not None)
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
    score_names = _name_scores(score, columns[0])
    names_in_tables: list[str | None] = [*score_names] or [None]
    settings = AuditSettings(
        label=None if counts or label is None else _name_column(label),
        pos_label=pos_label,
        score=score_names,
        weight=None if weight is None else _name_column(column_of(weight)),
        frequency=isinstance(weight, Frequency),
        attributes=[*columns[0].names.values()],
        intersections=intersections,
        threshold=at_threshold,
        selected=None if selected is None else _name_column(selected),
        design=_describe_design(survey),
        reference=references,
        level=level,
        adjust=adjust,
        min_rows=min_rows,
        margin=margin,
        favorable=favorable,
        text=text or Text(),
        min_cell=min_cell,
        bins=counts.bins() if counts else None,
        unknown=unknown,
        labeled=labeled,
    )
    plan = AuditPlan(
        settings,
        groupings,
        choice,
        [] if counts else [*named_columns("score", measured_score, table.lazy())],
        dict(zip(columns[0].models, names_in_tables, strict=True)),
        # Listed values are null here.
        find_unknown(unknown if isinstance(unknown, str) else "exclude", columns[0]),
        score_types,
    )
    is_held = survey.is_given or selected is not None or not labeled
    division = None if is_held else division_of(tables, "60%")
    rows, parts = _read_rows(given, columns, plan, division)
    auditor = _Auditor(rows, parts, division, plan, counts, known, tables, label)
    audit = publish(auditor, settings.attributes, min_cell)
    audit = replace(audit, table=with_findings(audit.table, audit.segments, audit.settings))
    held = None if rows is None else rows.at(audit.run.left_out_of_totals)
    options = {"weight": weight, "pos_label": pos_label, "design": design}
    look = CloserLook(audit, plan, held, (tables, label, score, options))
    types = columns[0].plan.collect_schema()
    warn_of_many_groups(_read_values(audit.segments, columns[0].names, types))
    ordered = [name for key, name in columns[0].names.items() if types[key] == pl.Enum]
    return replace(audit, further=look, ordered=ordered)


def _read_values(
    segments: pl.DataFrame, names: Mapping[str, str], types: pl.Schema
) -> Iterator[pl.Series]:
    """Return the values of attributes of numbers and dates, from the names of segments."""
    for key, name in names.items():
        texts = segments.filter(attribute=name)["segment"].alias(name)
        if types[key].is_numeric():
            yield texts.cast(types[key], strict=False)
        elif types[key] == pl.Date:
            yield texts.str.to_date("%Y-%m-%d", strict=False)


def _read_score_types(frames: Any, score: IntoColumns) -> list[FloatType]:
    """Return the types that scores came in: for several tables, the most precise one."""
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
    """Makes audits of all rows, or of the rows with a value of some attributes.

    ``rows`` are in memory; otherwise ``parts`` are read in ranges of scores. Counts know which rows
    lack a value of the ``known`` attributes. The given ``tables`` have the ``label``.
    """

    rows: AuditRows | None
    parts: Sequence[Part]
    division: Division | None
    plan: AuditPlan
    counts: CountTable | None
    known: Sequence[pl.Expr]
    tables: Any
    label: IntoColumn | None

    def _measure(
        self, plan: AuditPlan, complete: Sequence[str]
    ) -> tuple[Measured, ConfidenceLevel]:
        """Return the tables of rows with a value of some attributes, and the level at this look."""
        level = plan.settings.level
        if self.rows is None:
            assert self.division is not None
            parts = [part.without_missing(complete) for part in self.parts]
            return measure_in_ranges(parts, plan, self.division, level)
        if isinstance(level, Looks) and not level.is_known:
            level = level.at(self.rows.n_complete)
        rows = self.rows.at(complete)
        rows.check_number(labeled=plan.settings.labeled)
        return measure(rows, plan, level), level

    def __call__(self, complete: Sequence[str]) -> Audit:
        """Return the audit of the rows with a value of some attributes."""
        settings, least = self.plan.settings, self.plan.settings.min_cell
        measured, level = self._measure(self.plan, complete)
        labeled = settings.labeled
        if least is not None and labeled and have_few_unlabeled(measured.segments, least):
            measured, level = self._measure(replace(self.plan, labeled_only=True), complete)
        settings = replace(settings, level=level)
        missing = measured.missing
        if labeled:
            found = bool(measured.segments["n_pos"].sum())
            require_positives(settings.pos_label, self.tables, self.label, found=found)
        if self.counts is not None:
            missing = self.counts.missing(self.known, complete)
            # The weight of counts is 1 if their rows had no weight.
            if not measured.weighted:
                settings = replace(settings, weight=None, frequency=False)
        return Audit(
            measured.table,
            measured.segments,
            measured.curves,
            missing.table(settings.label, settings.weight, settings.selected),
            settings,
            Run(design_df=measured.design_df, auc_error=measured.auc_error),
            distributions=measured.distributions,
        )
