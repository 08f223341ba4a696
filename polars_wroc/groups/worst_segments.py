"""Search all combinations of attributes for the segments that are significantly worse off."""

from __future__ import annotations

import polars as pl

from polars_wroc.bounds import Confidence, PositiveInt
from polars_wroc.calls import check_call
from polars_wroc.groups.comparisons import CALIBRATION, COMPARABLE
from polars_wroc.groups.crossed_cells import sum_crossed_cells
from polars_wroc.groups.group_columns import find_decisions, read_groups
from polars_wroc.groups.segment_search import SEARCH_SCHEMA, SearchRules, SegmentSearch
from polars_wroc.inputs.columns import MODEL, IntoColumn, IntoWeight
from polars_wroc.inputs.decisions import Favorable, check_favorable
from polars_wroc.inputs.designs import Design, read_design
from polars_wroc.inputs.frames import require_groups
from polars_wroc.inputs.metric import Metric, Worse, check_metric
from polars_wroc.inputs.rows import IntoColumns, read_source
from polars_wroc.metrics.calibration import CALIBRATION_ERROR
from polars_wroc.metrics.mean_sums import read_precision
from polars_wroc.metrics.registry import LOSSES
from polars_wroc.queries import FrameT
from polars_wroc.rows import Rows, table_of
from polars_wroc.thresholds.registry import AUDIT_RATES, RateMetric
from polars_wroc.thresholds.rules import Threshold, read_threshold

SEARCHED: dict[str, Metric] = {
    **AUDIT_RATES,
    **{name: COMPARABLE[name] for name in LOSSES},
    CALIBRATION_ERROR: CALIBRATION[CALIBRATION_ERROR],
}


@check_call
def worst_segments(
    frame: FrameT,
    label: IntoColumn | None = None,
    score: IntoColumns | None = None,
    *,
    attributes: IntoColumns,
    metric: str = "tpr",
    threshold: Threshold | None = None,
    selected: IntoColumn | None = None,
    favorable: Favorable | None = None,
    depth: PositiveInt = 3,
    weight: IntoWeight | None = None,
    pos_label: object = None,
    min_rows: PositiveInt = 30,
    top: PositiveInt = 20,
    redundant: bool = False,
    level: Confidence = 0.95,
    design: Design | None = None,
) -> FrameT:
    """Return the segments that are significantly worse than everyone else, from a search.

    It compares every combination of up to ``depth`` values with all other rows, and the limits
    allow for the whole search: each segment in the table is worse than everyone else by at least
    the limit nearer to 0.

    The main columns are:

    - ``segment``: the combination; the first row is ``"overall"``, all rows;
    - ``value, reference_value``: the metric in the segment and in all other rows;
    - ``gap, gap_low, gap_high``: their difference, with limits for all examined segments at once;
    - ``p_adjusted``: adjusted by Holm's method for all examined segments;
    - ``n_examined, n_worse``: how many segments were examined, and how many are worse.

    Parameters
    ----------
    frame, label, score, weight, pos_label
        As for `group_gaps`, with one score. ``selection_rate`` needs no label and counts all rows.
    attributes
        Two or more columns or expressions; null is a value. Cut numbers by `ranges` before looking
        at outcomes.
    metric
        ``"selection_rate", "tpr", "fpr", "ppv", "npv"`` or ``"accuracy"`` of decisions; for
        probabilities ``"brier_score", "log_loss"`` or ``"mean_calibration_error"``. For several
        searches of the same rows, divide ``1 - level`` by their number.
    threshold, selected, favorable
        The decisions, and which one is good for a person, as for `audit`. This says whether a lower
        or a higher rate is worse; with ``"neither"``, and for calibration, both are.
    depth
        Largest number of values that define a segment.
    min_rows
        Fewest rows in the denominator of the metric, in a segment and outside it.
    top
        Largest number of segments to return.
    redundant
        Also return segments that a segment of a higher rank explains.
    level
        1 minus the probability of finding anything if all segments are in truth equal.
    design
        A column of clusters or a `Survey`: see `summary`. Segments with rows in fewer than ten
        clusters are not examined. ``lonely`` must be ``"certainty"`` if a stratum has one unit.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        The comparison table of `group_gaps`: the row of all rows, then one row per segment, sorted
        by the limit of the gap that is nearer to 0, the largest first. Every ``verdict`` is
        ``"different"``; ``reference`` is ``"rest"``, or ``"target"`` (0) for calibration. Losses
        have no value limits, and only rates have ratios. ``reason`` is ``"no variance"`` in the row
        of all rows if their rate is 0 or 1.

        After these columns come ``depth, n_examined, n_worse`` (Int64), where ``n_worse`` does not
        depend on ``top`` or ``redundant``; and ``explained_by`` (String): with ``redundant``, the
        segment of a higher rank that explains this one, else null.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `group_gaps`; also for more than 100,000 segments to examine.

    Notes
    -----
    The test allows for the skewness of rare events [1]_; unweighted rates far from the rest use the
    hypergeometric test with the mid-p [2]_.
    [Formulas](../explanation/statistics.md#worst_segments).

    References
    ----------
    .. [1] Hall, P. (1992), The Bootstrap and Edgeworth Expansion, section 3.
    .. [2] Lancaster, H. O. (1961), J. Am. Stat. Assoc. 56, 223-234.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> loans = wroc.data.loans()
    >>> options = {"metric": "tpr", "threshold": 0.85, "favorable": "selected"}
    >>> table = wroc.worst_segments(
    ...     loans, "approved", "score", attributes=["race", "sex"], **options
    ... )
    >>> table.select("segment", "n", pl.col("value", "reference_value", "gap_high").round(3))
    shape: (2, 5)
    ┌─────────────┬──────┬───────┬─────────────────┬──────────┐
    │ segment     ┆ n    ┆ value ┆ reference_value ┆ gap_high │
    │ ---         ┆ ---  ┆ ---   ┆ ---             ┆ ---      │
    │ str         ┆ i64  ┆ f64   ┆ f64             ┆ f64      │
    ╞═════════════╪══════╪═══════╪═════════════════╪══════════╡
    │ overall     ┆ 1745 ┆ 0.822 ┆ null            ┆ null     │
    │ black, male ┆ 100  ┆ 0.62  ┆ 0.835           ┆ -0.084   │
    └─────────────┴──────┴───────┴─────────────────┴──────────┘
    """
    choice = read_threshold(threshold, selected)
    chosen = _read_metric(metric, has_label=label is not None, has_decisions=choice is not None)
    decides = isinstance(chosen, RateMetric)
    check_favorable(favorable, threshold, decided=decides)
    require_groups(attributes, called="attributes")
    survey = read_design(design)
    if survey.replicate_weights is not None:
        msg = "`design` must be clusters or a survey for a search; found replicate weights"
        raise ValueError(msg)
    groups = read_groups(
        read_source(frame),
        label,
        score,
        attributes,
        choice=choice,
        selected=selected,
        weight=weight,
        pos_label=pos_label,
        design=design,
    )
    if groups.columns.several:
        msg = "`score` must be one column; found several"
        raise ValueError(msg)
    model = groups.columns.models[0]
    name = groups.score_names[model]
    worse: Worse = chosen.worse_if(favorable)
    if not decides:
        groups.columns.require_scores(f"metric={metric!r}")
        worse = "higher" if chosen.better == "low" else "either"
    names = list(groups.attributes.values())
    rules = SearchRules(chosen, worse, names, depth, min_rows, top, level, redundant)
    precision = read_precision(groups.columns)[model]

    def compute(rows: Rows) -> pl.DataFrame:
        decisions = find_decisions(rows, model, groups.choice)
        rows = rows if chosen.needs_label else rows.ignore_labels()
        keys = groups.columns.keys
        cells = sum_crossed_cells(rows, keys, model, chosen, decisions, precision)
        table = SegmentSearch(cells, rules, rows.sample).table()
        return table.with_columns(pl.lit(name, pl.String).alias(MODEL))

    return table_of(frame, groups.columns, SEARCH_SCHEMA, compute)


def _read_metric(metric: str, *, has_label: bool, has_decisions: bool) -> Metric:
    """Return the metric to search, after a check that its arguments are given."""
    check_metric("metric", metric, SEARCHED)
    is_rate = isinstance(SEARCHED[metric], RateMetric)
    if is_rate and not has_decisions:
        msg = (
            f"`metric` {metric} needs decisions: pass a `threshold` or `selected`, or a metric of "
            "probabilities, for example brier_score"
        )
        raise ValueError(msg)
    if not is_rate and has_decisions:
        msg = f"`metric` must be a rate with decisions; found {metric!r}"
        raise ValueError(msg)
    if not has_label and metric != "selection_rate":
        msg = f"`label` must be given for {metric}; found None"
        raise ValueError(msg)
    return SEARCHED[metric]
