"""`audit`: measure scores overall and in each segment, and test the gaps between segments."""

from __future__ import annotations

import polars as pl

from polars_wroc.audits.arguments import AuditArguments
from polars_wroc.audits.measure import measure
from polars_wroc.audits.references import AuditReference
from polars_wroc.audits.result import Audit
from polars_wroc.audits.text import Text
from polars_wroc.inputs.arguments import WeightType
from polars_wroc.inputs.columns import IntoColumn
from polars_wroc.inputs.decisions import Favorable
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.margins import MARGIN
from polars_wroc.inputs.named_columns import named_columns
from polars_wroc.inputs.replicate_weights import ReplicateWeights
from polars_wroc.inputs.rows import IntoColumns, RowSource
from polars_wroc.inputs.survey_design import Lonely, SurveyArguments
from polars_wroc.metrics.auc_interval import Method
from polars_wroc.stats.multiple_tests import Adjust
from polars_wroc.thresholds.rules import Criterion


def audit(
    frame: pl.DataFrame | pl.LazyFrame,
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
    selected: IntoColumn | None = None,
    intersections: bool = False,
    reference: AuditReference = "rest",
    level: float = 0.95,
    adjust: Adjust = "holm",
    min_rows: int = 30,
    margin: float = MARGIN,
    favorable: Favorable | None = None,
    method: Method = "score",
    weight_type: WeightType = "probability",
    cluster: IntoColumn | None = None,
    strata: IntoColumn | None = None,
    fpc: IntoColumn | None = None,
    lonely: Lonely = "null",
    replicate_weights: ReplicateWeights | None = None,
    bins: int | None = None,
    tolerance: float | None = None,
    text: Text | None = None,
    min_cell: int | None = None,
) -> Audit:
    """Measure scores overall and in each segment of each attribute, and test the gaps.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a lazy one is collected. See `audit_in_ranges` for data larger than
        memory.
    label, score, weight, pos_label, level, weight_type
        As for `summary`.
    by
        The attributes: one or several columns or expressions. Each is audited separately; null
        is a segment of its own.
    threshold
        Threshold at which decisions are measured: rows with at least this score are predicted
        positive.
    criterion, cost_fn, cost_fp, prevalence, max_fpr, min_tpr, max_selection_rate
        Rule that chooses a threshold for each score on all rows, instead of ``threshold``: see
        `operating_point`. The ``prevalence`` affects this choice only, not the metrics at the
        threshold.
    selected
        Instead of a threshold or a rule: a Boolean column or expression, the decision that was
        recorded. Rates are then those of these decisions, and their ``threshold`` is null; AUCs and
        curves come from the score. Rows where it is null are missing. Plans compute this, whatever
        the engine.
    intersections
        Whether to audit the combinations of all attributes too, as one more attribute.
    reference, adjust
        What each segment of an attribute is compared with, and how p-values are adjusted: see
        `group_gaps`. A mapping such as ``{"sex": "m", "age": 30}`` gives the reference segment of
        an attribute, crossed ones too, by its value or by its name in the result; attributes that
        are not in it use ``"rest"``.
    min_rows
        A segment with fewer rows in a class is measured and marked as ``small``. An estimate
        based on fewer rows is not tested, not compared in the fairness metrics and not chosen as
        the best: rows of each class for an AUC, positives for a tpr, negatives for an fpr,
        selected rows for a ppv, the others for an npv, all rows for a selection rate. A row
        with a frequency weight counts that many times.
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
    cluster, strata, fpc, lonely, replicate_weights
        The design of a survey: see `summary`. AUCs have the intervals of `summary`; rates, gaps and
        fairness metrics those of `threshold_metrics`, `group_gaps` and `fairness`, with their
        tests, whatever the ``method``. ``reference`` must be neither ``"rest_pooled"`` nor
        ``"overall_pooled"``. Intervals of calibration are linearised too, those of the calibration
        in the large and of the ratio of observed to expected positives from the scores and labels
        of each unit; calibration slopes and intercepts have none. Plans compute this, whatever the
        engine.
    bins, tolerance
        Measure from binned scores: about so many ``bins`` in one pass and little memory, or in
        three passes as many as bound each AUC within ``tolerance``: see `summary`. Segments then
        have ``auc_low, auc_high``.
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
    Calibration slopes are fitted to a few thousand rows per segment, which have the first moments
    of all in narrow bins of the logit: they agree with `calibration_slope` to some 1e-9.

    Whether a score is calibrated is tested once, for all rows: its mean error against 0, with the
    standard error that the mean has if each score is the probability of its row, and its slope
    against 1. A segment is different only from its reference: in its mean error, of which the
    reference is that of all its rows, or in its slope, of which the reference is the mean of the
    slopes of its segments, weighted by their information. Slopes are tested by robust standard
    errors, mean errors by those of the rows or, if larger, by those at the rates that are expected
    if segment and reference are off alike; by the design of a survey by its variance and Student's
    t. Five rows of each class must be expected. P-values are adjusted for all tests of calibration
    together, not with those of the gaps. The verdicts are those of gaps. A slope is alike if it is
    shown to be between 0.8 and 1.25 times the other for a ``margin`` of 0.05: no probability then
    differs by more than that, if they agree at a half.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1], "sex": list("ffmm")})
    >>> wroc.audit(df, "y", "s", by="sex").segments.select("attribute", "segment", "n", "auc")
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
    survey = SurveyArguments(cluster, strata, fpc, lonely, replicate_weights)
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
        selected=selected,
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
        survey=survey,
        bins=bins,
        tolerance=tolerance,
    )
    rows = read_rows(
        frame,
        label,
        score,
        weight,
        by,
        pos_label,
        survey=survey if survey.given else None,
        mark_missing=True,
        selected=selected,
    )
    # The methods of `Counts` pass counts instead of a frame.
    counts = frame if isinstance(frame, RowSource) else None
    plan = asked.plan(rows, [] if counts else list(named_columns("score", score, frame.lazy())))
    return asked.result(
        lambda complete: measure(rows.with_values(complete), plan), plan, rows, counts
    )
