"""`audit`: measure scores overall and in each segment, and test the gaps between segments."""

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
    """Measure scores overall and in each segment of each attribute, and test the gaps.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a lazy one is collected.
    label, score, weight, pos_label, level, method, weight_type, cluster
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
    intersections
        Whether to audit the combinations of all attributes too, as one more attribute.
    reference, adjust
        What each segment of an attribute is compared with, and how p-values are adjusted: see
        `group_gaps`. A mapping such as ``{"sex": "m", "age": 30}`` gives the reference segment of
        an attribute, crossed ones too, by its value or by its name in the result; attributes that
        are not in it use ``"rest"``. With ``cluster`` gaps are measured but not tested, and
        intervals of gaps, rates and calibration treat rows as independent.
    min_rows
        A segment with fewer rows in a class is measured and marked as ``small``. An estimate
        based on fewer rows is not tested, not compared in the fairness metrics and not chosen as
        the best: rows of each class for an AUC, positives for a tpr, negatives for an fpr,
        selected rows for a ppv, the others for an npv, all rows for a selection rate. A row
        with a frequency weight counts that many times.
    bins, tolerance
        Measure from binned scores: about so many ``bins`` in one pass and little memory, or in
        three passes as many as bound each AUC within ``tolerance``: see `summary`. Segments then
        have ``auc_low, auc_high``.

    Returns
    -------
    Audit
        The result tables, with the methods ``chart``, ``save`` and ``to_json``.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also if there is no row to audit, or if two segments would have the
        same name: ``"a, b"`` crossed with ``"c"`` and ``"a"`` with ``"b, c"``, or null and
        ``"(missing)"``.

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
    # The methods of `Counts` pass counts instead of a frame.
    counts = frame if isinstance(frame, RowSource) else None
    scores = [] if counts else list(named_columns("score", score, frame.lazy()))
    plan = AuditPlan(divided, references, choice, options, metrics, tests, binning, scores)
    measured = measure(rows, plan)
    check_positives(pos_label, found=bool(measured.segments["n_pos"].sum()))
    if counts and not _is_weighted(measured.segments):
        weight = None
    parameters = AuditSettings(
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
    tables["missing"] = missing.table(parameters.label, parameters.weight)
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


def _shown(column: IntoColumn) -> str:
    return (
        column
        if isinstance(column, str)
        else column.meta.output_name(raise_if_undetermined=False) or str(column)
    )
