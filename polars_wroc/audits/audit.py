"""The audit: every segment of every attribute, beside everybody, in one result."""

from __future__ import annotations

from importlib.metadata import version

import polars as pl

from polars_wroc.audits.groupings import Grouping, groupings
from polars_wroc.audits.measure import measure
from polars_wroc.audits.plan import AuditPlan
from polars_wroc.audits.references import AuditReference, read_references
from polars_wroc.audits.result import Audit
from polars_wroc.audits.settings import AuditSettings
from polars_wroc.counts.binning import Binning
from polars_wroc.groups.gaps import GapTests
from polars_wroc.inputs import arguments
from polars_wroc.inputs.arguments import WeightType
from polars_wroc.inputs.columns import IntoColumn, check_positives
from polars_wroc.inputs.frames import missing_in_counts, read_rows, require_groups, require_texts
from polars_wroc.inputs.named_columns import named_columns
from polars_wroc.inputs.names import MODEL, OVERALL
from polars_wroc.inputs.rows import CLASSES, IntoColumns, Rows, RowSource
from polars_wroc.metrics.roc_auc_ci import IntervalOptions, Method
from polars_wroc.stats.multiple_tests import Adjust, check_options
from polars_wroc.thresholds.confusion_metrics import ThresholdMetrics
from polars_wroc.thresholds.rules import Criterion, threshold_or_rule

_ROUNDING = 1e-9


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
    intersections: bool = False,
    reference: AuditReference = "rest",
    level: float = 0.95,
    adjust: Adjust = "holm",
    min_rows: int = 30,
    method: Method = "logit-t",
    weight_type: WeightType = "probability",
    cluster: IntoColumn | None = None,
    bins: int | None = None,
    tolerance: float | None = None,
) -> Audit:
    """Measure a score for everybody and for each segment of each attribute.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a lazy one is collected.
    label, score, weight, pos_label, level, method, weight_type, cluster
        As for `summary`.
    by
        The attributes: one or several columns or expressions. Each is audited by itself; a
        null is a segment of its own.
    threshold
        Where to measure decisions: rows that score at least so much are predicted positive.
    criterion, cost_fn, cost_fp, prevalence, max_fpr, min_tpr, max_selection_rate
        Instead of a threshold, the rule that chooses one for each score on all rows: see
        `operating_point`. The ``prevalence`` matters to that choice only: what is measured
        there is measured on the rows as they are.
    intersections
        Whether to audit also all attributes crossed, as one more of them.
    reference, adjust
        What segments are compared with, of the same attribute, and how p-values are adjusted:
        see `group_gaps`. A mapping as ``{"sex": "m", "age": 30}`` names for an attribute, crossed
        ones too, the segment that stands for it, by its value or by its name in the result;
        attributes that it does not name are compared with the rest. With ``cluster`` gaps are
        measured but not tested; intervals of gaps, rates and calibration take rows as independent.
    min_rows
        A segment with fewer rows in a class is measured and marked as small. No number is tested,
        compared in the fairness metrics or taken for the best that has fewer rows behind it: of
        each class for an AUC, positives for a tpr, negatives for an fpr, selected rows for a ppv.
        A row with a frequency is as many rows as that says.
    bins, tolerance
        Measure rows in bins of scores, in one pass and little memory, or in three passes so many
        that AUCs are as sure as that: see `summary`. Segments then have ``auc_low, auc_high``.

    Returns
    -------
    Audit
        The tables, a chart and ``save``.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also where nothing is left to audit, and for two segments that would
        have the same name, as ``"a, b"`` with ``"c"`` and ``"a"`` with ``"b, c"`` crossed, or a
        null and ``"(missing)"``.

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
    check_options(level, adjust)
    require_groups(by, "name the attributes to audit")
    rule = {
        "criterion": criterion,
        "cost_fn": cost_fn,
        "cost_fp": cost_fp,
        "prevalence": prevalence,
        "max_fpr": max_fpr,
        "min_tpr": min_tpr,
        "max_selection_rate": max_selection_rate,
    }
    rule = {name: value for name, value in rule.items() if value is not None}
    choice = threshold_or_rule(threshold, **rule)
    options = IntervalOptions(level, method, weight_type, clustered=cluster is not None)
    metrics = ThresholdMetrics(level, weight_type)
    rows = read_rows(
        frame,
        label,
        score,
        weight,
        by,
        pos_label,
        cluster=cluster,
        mark_missing=True,
    )
    require_texts(rows)
    least = arguments.whole_number("min_rows", min_rows, low=0)
    tests = GapTests(level, weight_type, adjust, least, clustered=cluster is not None)
    divided = _groupings(rows, intersections=intersections)
    references = read_references(reference, divided, rows.frame.collect_schema())
    binning = Binning(bins, tolerance, (choice,) if isinstance(choice, float) else ())
    # Counts are passed by the methods of `Counts`.
    counts = frame if isinstance(frame, RowSource) else None
    scores = [] if counts else list(named_columns("score", score, frame.lazy()))
    plan = AuditPlan(divided, references, choice, options, metrics, tests, binning, scores)
    measured = measure(rows, plan)
    check_positives(pos_label, found=bool(measured.segments["n_pos"].sum()))
    if counts and not _is_weighted(measured.segments):
        weight = None
    asked = AuditSettings(
        label=None if counts else _shown(label),
        pos_label=pos_label,
        score=_scores(measured.segments, score),
        weight=None if weight is None else _shown(weight),
        by=rows.group_names,
        intersections=intersections,
        threshold=threshold,
        rule=rule or None,
        cluster=None if cluster is None else _shown(cluster),
        reference=references,
        level=level,
        adjust=adjust,
        method=method,
        weight_type=weight_type,
        min_rows=min_rows,
        bins=counts.bins() if counts else bins,
        tolerance=tolerance,
        polars_wroc=version("polars-wroc"),
    )
    missing = missing_in_counts(counts, by) if counts else measured.missing
    tables = measured._asdict()
    tables["missing"] = missing.table(asked.label, asked.weight)
    return Audit(**tables, asked=asked)


def _groupings(rows: Rows, *, intersections: bool) -> list[Grouping]:
    attributes = rows.group_names
    if OVERALL in attributes:
        msg = f"`by` must not name an attribute {OVERALL!r}, which is what all rows are called"
        raise ValueError(msg)
    arguments.flag("intersections", intersections)
    if intersections and len(attributes) == 1:
        msg = f"`intersections` needs two or more attributes in `by`; found {attributes}"
        raise ValueError(msg)
    return groupings(rows, intersections=intersections)


def _is_weighted(segments: pl.DataFrame) -> bool:
    """Whether rows have a weight other than 1: sums of weights alone may be numbers of rows."""
    apart = [
        pl.col(f"{number}_{side}") - pl.col(f"n_{side}")
        for number in ("w", "n_eff")
        for side in CLASSES
    ]
    weighted = pl.any_horizontal(difference.abs() > _ROUNDING for difference in apart)
    return bool(segments.select(weighted.any()).item())


def _scores(segments: pl.DataFrame, score: IntoColumns) -> list[str]:
    """Name the scores that were audited."""
    if MODEL in segments.columns:
        names: list[str] = segments[MODEL].unique(maintain_order=True).to_list()
        return names
    return [_shown(one) for one in ([score] if isinstance(score, str | pl.Expr) else score)]


def _shown(column: IntoColumn) -> str:
    return (
        column
        if isinstance(column, str)
        else column.meta.output_name(raise_if_undetermined=False) or str(column)
    )
