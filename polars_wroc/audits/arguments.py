"""The arguments of an audit: read and checked in one place, whatever rows are audited."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from numbers import Real
from typing import Any

import polars as pl

from polars_wroc.audits.measure import Measured
from polars_wroc.audits.plan import AuditPlan
from polars_wroc.audits.references import AuditReference, read_references
from polars_wroc.audits.result import Audit
from polars_wroc.audits.settings import AuditSettings
from polars_wroc.audits.small_cells import attributes_to_complete, without_small_cells
from polars_wroc.audits.text import Text
from polars_wroc.counts.binning import Binning
from polars_wroc.groups.gaps import GapTests
from polars_wroc.groups.groupings import Grouping, groupings
from polars_wroc.groups.verdicts import check_margin
from polars_wroc.inputs import arguments
from polars_wroc.inputs.arguments import WeightType
from polars_wroc.inputs.columns import IntoColumn, check_positives
from polars_wroc.inputs.decisions import Favorable, check_favorable
from polars_wroc.inputs.frames import missing_in_counts, require_groups, require_texts
from polars_wroc.inputs.names import MODEL, OVERALL
from polars_wroc.inputs.rows import CLASSES, IntoColumns, Rows, RowSource
from polars_wroc.inputs.survey_design import SurveyArguments
from polars_wroc.metrics.auc_interval import IntervalOptions, Method
from polars_wroc.stats.multiple_tests import Adjust, check_options
from polars_wroc.thresholds.confusion_metrics import ThresholdMetrics
from polars_wroc.thresholds.rules import RULE_ARGUMENTS, Criterion, Rule, threshold_or_rule

_ROUNDING = 1e-9
_NO_SURVEY = SurveyArguments()


@dataclass(frozen=True, kw_only=True)
class AuditArguments:
    """The arguments of an audit but for its rows; those that need no rows are checked at once."""

    label: IntoColumn
    score: IntoColumns
    by: IntoColumns
    weight: IntoColumn | None
    pos_label: object
    threshold: float | None
    criterion: Criterion | None
    cost_fn: float | None
    cost_fp: float | None
    prevalence: float | None
    max_fpr: float | None
    min_tpr: float | None
    max_selection_rate: float | None
    intersections: bool
    reference: AuditReference
    level: float
    adjust: Adjust
    min_rows: int
    method: Method
    weight_type: WeightType
    margin: float
    favorable: Favorable | None
    text: Text | None
    min_cell: int | None
    survey: SurveyArguments = _NO_SURVEY
    bins: int | None = None
    tolerance: float | None = None
    selected: IntoColumn | None = None

    def __post_init__(self) -> None:
        """Check what needs no rows."""
        level = check_options(self.level, self.adjust)
        arguments.hold(self, level=level, margin=check_margin(self.margin))
        if self.min_cell is not None:
            min_cell = arguments.whole_number("min_cell", self.min_cell, low=2)
            arguments.hold(self, min_cell=min_cell)
        if self.text is not None and not isinstance(self.text, Text):
            arguments.reject_type("text", "be a `Text`", self.text)
        require_groups(self.by, "name the attributes to audit")
        arguments.hold(self, min_rows=arguments.whole_number("min_rows", self.min_rows, low=0))
        binning = Binning(self.bins, self.tolerance)
        arguments.hold(self, bins=binning.bins, tolerance=binning.tolerance)
        choice = self._choice()
        if self.threshold is not None:
            arguments.hold(self, threshold=choice)
        recorded = self.selected is not None
        threshold = None if recorded else choice
        check_favorable(self.favorable, threshold, decided=choice is not None)
        numbers = {name: value for name, value in self._rule.items() if isinstance(value, Real)}
        arguments.hold(self, **{name: float(value) for name, value in numbers.items()})
        self._interval()

    @property
    def _rule(self) -> dict[str, Any]:
        given = {name: getattr(self, name) for name in RULE_ARGUMENTS}
        return {name: value for name, value in given.items() if value is not None}

    def _choice(self) -> float | Rule | None:
        return threshold_or_rule(self.threshold, self.selected, **self._rule)

    def _interval(self) -> IntervalOptions:
        survey = self.survey
        return IntervalOptions(
            self.level,
            self.method,
            self.weight_type,
            clustered=survey.given and not survey.more_than_clusters,
            designed=survey.more_than_clusters,
        )

    def plan(self, rows: Rows, scores: Sequence[str]) -> AuditPlan:
        """Check the arguments against checked rows; ``scores`` are the names of the columns."""
        require_texts(rows)
        divided = _groupings(rows, intersections=self.intersections)
        choice = self._choice()
        # Of the score there is a threshold only where no decisions were recorded.
        cuts = (choice,) if isinstance(choice, float) and not rows.recorded else ()
        return AuditPlan(
            groupings=divided,
            references=read_references(self.reference, divided, rows.frame.collect_schema()),
            choice=choice,
            interval=self._interval(),
            metrics=ThresholdMetrics(self.level, self.weight_type, designed=self.survey.given),
            tests=GapTests(
                self.level,
                self.weight_type,
                self.adjust,
                self.min_rows,
                method="score" if self.method == "score" else "logit-t",
                margin=self.margin,
                designed=self.survey.given,
            ),
            favorable=self.favorable,
            binning=Binning(self.bins, self.tolerance, cuts),
            scores=scores,
        )

    def result(
        self,
        measure: Callable[[Sequence[str]], Measured],
        plan: AuditPlan,
        rows: Rows,
        counts: RowSource | None = None,
    ) -> Audit:
        """Measure the rows, or the ``counts`` of rows, and return their audit.

        ``measure`` takes the attributes without a value of which a row is not measured: of these
        the rows without a value are too few to be published, also as a part of totals.
        """
        unknown: dict[str, int] = {}
        while True:
            audit = self._result(measure([*unknown]), plan, rows, counts, [*unknown])
            if self.min_cell is None:
                return audit
            more = attributes_to_complete(audit.segments, rows.group_names, self.min_cell)
            if not more:
                return without_small_cells(audit, self.min_cell, unknown)
            missing = dict(audit.missing.rows())
            unknown |= {name: missing[name] for name in more}

    def _result(
        self,
        measured: Measured,
        plan: AuditPlan,
        rows: Rows,
        counts: RowSource | None,
        complete: Sequence[str],
    ) -> Audit:
        """Return the audit of what was measured, of rows with a ``complete`` value of these."""
        segments = measured.segments
        check_positives(self.pos_label, found=bool(segments["n_pos"].sum()))
        weight = None if counts and not _is_weighted(segments) else self.weight
        parameters = AuditSettings(
            label=None if counts else _shown(self.label),
            pos_label=self.pos_label,
            score=_scores(segments, self.score),
            weight=None if weight is None else _shown(weight),
            by=rows.group_names,
            intersections=self.intersections,
            threshold=self.threshold,
            rule=self._rule or None,
            selected=None if self.selected is None else _shown(self.selected),
            **_shown_survey(self.survey),
            reference=plan.references,
            level=self.level,
            adjust=self.adjust,
            method=self.method,
            weight_type=self.weight_type,
            min_rows=self.min_rows,
            margin=self.margin,
            favorable=self.favorable,
            text=self.text or Text(),
            min_cell=self.min_cell,
            bins=counts.bins() if counts else self.bins,
            tolerance=self.tolerance,
            polars_wroc=version("polars-wroc"),
        )
        missing = missing_in_counts(counts, self.by, complete) if counts else measured.missing
        tables = measured._asdict()
        tables["missing"] = missing.table(parameters.label, parameters.weight, parameters.selected)
        return Audit(**tables, parameters=parameters)


def _groupings(rows: Rows, *, intersections: bool) -> list[Grouping]:
    attributes = rows.group_names
    if OVERALL in attributes:
        msg = f"`by` must not name an attribute {OVERALL!r}, the name of all rows in the result"
        raise ValueError(msg)
    arguments.flag("intersections", intersections)
    if intersections and len(attributes) == 1:
        msg = f"`intersections` needs two or more attributes in `by`; found {attributes}"
        raise ValueError(msg)
    return groupings(rows, intersections=intersections)


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


def _shown_survey(survey: SurveyArguments) -> dict[str, Any]:
    columns = {"cluster": survey.cluster, "strata": survey.strata, "fpc": survey.fpc}
    names = {name: None if value is None else _shown(value) for name, value in columns.items()}
    replicates = survey.replicate_weights
    kind = None if replicates is None else replicates.kind
    return {**names, "lonely": survey.lonely, "replicate_weights": kind}


def _shown(column: IntoColumn) -> str:
    return (
        column
        if isinstance(column, str)
        else column.meta.output_name(raise_if_undetermined=False) or str(column)
    )
