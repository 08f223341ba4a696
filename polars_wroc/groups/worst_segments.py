"""Search all combinations of attributes for the segments that are surely worse off."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import Any

import polars as pl

from polars_wroc.groups.categories import read_attributes
from polars_wroc.groups.comparisons import CALIBRATION, COMPARABLE, comparison_table, score_name
from polars_wroc.groups.segment_search import IN_THE_LARGE, MINUSES, SEARCH_COLUMNS, ZEROS, Search
from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import (
    CLUSTER,
    SCORE,
    STRATUM,
    WEIGHT,
    ZERO_LABEL,
    IntoColumn,
    IntoWeight,
)
from polars_wroc.inputs.decisions import (
    Favorable,
    check_favorable,
    score_or_decisions,
    with_recorded_scores,
)
from polars_wroc.inputs.designs import Design, SurveyDesign, read_design
from polars_wroc.inputs.frames import at_least, read_rows, require_groups
from polars_wroc.inputs.metric import Metric, Worse
from polars_wroc.inputs.rows import IntoColumns, Rows, read_source
from polars_wroc.metrics.brier_and_log_loss import LossesOfRows
from polars_wroc.metrics.registry import LOSSES
from polars_wroc.plans.queries import FrameT, collect, is_eager, join_on_keys, like_input
from polars_wroc.thresholds.registry import AUDIT_RATES, RateMetric
from polars_wroc.thresholds.rules import Rule, Threshold, read_threshold
from polars_wroc.thresholds.search import common_threshold, is_selected, rows_at

SEARCHED: dict[str, Metric] = {
    **AUDIT_RATES,
    **{name: COMPARABLE[name] for name in LOSSES},
    IN_THE_LARGE: CALIBRATION[IN_THE_LARGE],
}
# Loss of a row.
_LOSS = "__loss"


def _sums(weights: tuple[pl.Expr, ...], values: Mapping[str, pl.Expr]) -> dict[str, pl.Expr]:
    """Add up the powers of weights, and named values."""
    named = {f"b{power}": weight for power, weight in enumerate(weights, 1)}
    return {name: value.sum() for name, value in (named | dict(values)).items()}


def cells_of(rows: Rows, metric: Metric, choice: Any) -> pl.LazyFrame:
    """Add up the rows of each combination of values: all that the search needs of them.

    Each has the number of rows in the base ``n``, the sums of powers of their weights ``b1`` to
    ``b3``, and that of the weighted values ``x1``; others as their variances need.
    """
    weight, frame = pl.col(WEIGHT).cast(pl.Float64), rows.frame
    base, positive = weight.is_not_null(), weight > 0
    kept, is_marked = base, ZERO_LABEL in frame.collect_schema()
    powers = (weight.abs(), rows.signed_squares.abs(), rows.signed_cubes.abs())
    w, w2, w3 = (power.cast(pl.Float64) for power in powers)
    if isinstance(metric, RateMetric):
        if isinstance(choice, Rule):
            frame, chosen = rows_at(rows, common_threshold(rows, choice)), is_selected()
        else:
            # A number needs no join.
            frame = with_recorded_scores(rows).cut_at("threshold", [pl.lit(choice)]).frame
            chosen = at_least(pl.col(SCORE), pl.lit(choice))
        cells = {
            "tp": positive & chosen,
            "fp": ~positive & chosen,
            "fn": positive & ~chosen,
            "tn": ~positive & ~chosen,
        }
        base, hit = (
            reduce(or_, (cells[name] for name in names)) for names in (metric.cells, metric.counted)
        )
        if is_marked:
            # The labels of all rows are checked.
            w, w2, w3 = (pl.when(base).then(power).otherwise(0.0) for power in (w, w2, w3))
        else:
            kept = base
        sums = _sums((w, w2, w3), {"x1": pl.when(hit).then(w).otherwise(0.0)})
    elif metric.name == IN_THE_LARGE:
        rows.require_scores(f"metric={metric.name!r}")
        frame, score = rows.as_probabilities().frame, pl.col(SCORE)
        spread = score * (1 - score)
        excess = score - positive.cast(pl.Float64)
        values = {"x1": w * excess, "p1": w * score, "q2": w2 * spread}
        sums = _sums((w, w2), values | {"q3": w3 * spread * (1 - 2 * score)})
    else:
        losses = LossesOfRows.of(rows)
        frame, (of_positive, of_negative) = losses.rows.frame, losses.values[metric.name]
        # A column first: each sum would compute it again.
        loss = pl.col(_LOSS)
        frame = frame.with_columns(
            pl.when(positive).then(of_positive).otherwise(of_negative).alias(_LOSS)
        )
        values = {"x1": w * loss, "x2": w * loss * loss, "x3": w * loss * loss * loss}
        sums = _sums((w, w2, w3), values | {"c1": w2 * loss, "c2": w2 * loss * loss})
    sums["n"] = rows.count_where(base)
    if is_marked:
        negative = weight < 0
        sums[ZEROS] = (negative & pl.col(ZERO_LABEL)).any()
        sums[MINUSES] = (negative & ~pl.col(ZERO_LABEL)).any()
    design, frame = rows.design, frame.filter(kept)
    if not isinstance(design, SurveyDesign):
        return frame.group_by(rows.keys).agg(**sums)
    # A cell then has the rows of one sampling unit.
    cells_of_units = frame.group_by(*rows.keys, STRATUM, CLUSTER).agg(**sums)
    return join_on_keys(cells_of_units, design.strata, [STRATUM])


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
    depth: int = 3,
    weight: IntoWeight | None = None,
    pos_label: object = None,
    min_rows: int = 30,
    top: int = 20,
    redundant: bool = False,
    level: float = 0.95,
    design: Design | None = None,
) -> FrameT:
    """Search all combinations of attributes for segments that are surely worse than the rest.

    Exploration: segments that nobody named before. Each combination of up to ``depth`` values of
    different attributes is compared with all other rows, and what is found allows for the search.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, pos_label
        As for `group_gaps`, but one score. The ``selection_rate`` needs no label.
    attributes
        Two or more columns or expressions; null is a value. Cut numbers by `ranges` before looking
        at outcomes: attributes and cuts that are chosen after looking are a search of their own.
    metric
        ``"selection_rate", "tpr", "fpr", "ppv", "npv"`` or ``"accuracy"`` of decisions; of a
        score that is a probability ``"brier_score", "log_loss"`` or
        ``"calibration_in_the_large"``. Several searches of the same rows share no error: divide
        ``1 - level`` by their number.
    threshold, selected, favorable
        Decisions, and which one is good for a person, as for `audit`: it says whether a lower or a
        higher rate is worse. With ``"neither"``, and of calibration, both are.
    depth
        Most conditions of a segment.
    min_rows
        Fewest rows of the metric's denominator in a segment and outside it.
    top
        Most segments that are returned, besides those that they explain.
    redundant
        Whether to return segments that one with a higher rank explains, too.
    level
        Confidence level: 1 less the probability that anything is found where all segments are
        alike.
    design
        A column of clusters or a `Survey`: see `summary`. Segments with rows in fewer than ten
        clusters are not examined. ``lonely`` must be ``"certainty"`` where a stratum has one unit.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        The comparison table of `group_gaps`: first a row of all rows, whose ``attribute`` and
        ``segment`` are ``"overall"``, then a row for each segment that is surely worse, the one
        with the largest limit of the gap nearest 0 first; none if none is. Segments are named as
        those of crossed attributes are.

        - ``value_low, value_high, gap_low, gap_high, ratio_low, ratio_high`` hold for all examined
          segments at once, and so for those that were picked. Null: value limits of losses, and
          ratios of other metrics than rates.
        - ``reference`` is ``"rest"``: all other rows; of calibration ``"target"``: 0.
        - ``p_value, p_adjusted``: of the test, alone and by Holm's method for all segments that
          were examined; ``verdict`` is ``"different"``.
        - ``depth`` (Int64): number of conditions.
        - ``n_examined`` (Int64): how many segments were examined.
        - ``explained_by`` (String): with ``redundant``, the attribute and segment of a higher rank
          without whose rows this one is not surely worse, or within which it is not; null of
          others.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `group_gaps`; for several scores, replicate weights, and more than 100,000 segments
        to examine.

    Notes
    -----
    "Surely worse" means worse than the rest by at least the limit. It does not say that no other
    segment is worse, as one of few rows may be, nor why. Finding nothing says little with uneven
    weights or few clusters, where the test is cautious. Verdicts of an audit rest on attributes
    that were named before, never on this.

    One ``group_by`` of all attributes adds up cells, of which segments are sums: the cost hardly
    depends on the number of rows. A segment is examined if it has enough rows, whatever the
    outcomes, and differs from that without one of its conditions; so the number of tests is known
    before. The difference to the rest is divided by its standard error if all rows were alike, and
    compared with Pearson's distribution of type III, which has the skewness that the sum then has
    [1]_: the normal distribution finds differences in up to half of all searches where there are
    none, if events are rare. Unweighted rates far from the rest have the hypergeometric test with
    the mid-p [2]_. Of losses only higher ones are tested. In clusters the variance is the larger of
    that of rows and of clusters, with Student's t. Limits of rates are the rates that the
    same test would not reject at ``1 - level`` divided by the number of segments; those of gaps
    combine both. In simulations of alike segments, rare events, weights and clusters included, at
    most 3.3 % of searches found any.

    Segments overlap, so that one effect shows in many. From the top, a segment is left out if a
    simple test finds no difference without the rows of one above it (or, if it is part of
    that, within it). That is for reading, not a statement with an error rate.

    References
    ----------
    .. [1] Hall, P. (1992), The Bootstrap and Edgeworth Expansion, section 3.
    .. [2] Lancaster, H. O. (1961), J. Am. Stat. Assoc. 56, 223-234.
    .. [3] Holm, S. (1979), Scandinavian Journal of Statistics 6, 65-70.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> cells = [("f", "old", 40, 20), ("f", "young", 60, 15), ("m", "old", 50, 27)]
    >>> cells.append(("m", "young", 50, 26))
    >>> people = pl.DataFrame(
    ...     {"sex": sex, "age": age, "hired": number < hired}
    ...     for sex, age, rows, hired in cells
    ...     for number in range(rows)
    ... )
    >>> table = wroc.worst_segments(
    ...     people,
    ...     attributes=["sex", "age"],
    ...     selected="hired",
    ...     metric="selection_rate",
    ...     favorable="selected",
    ... )
    >>> rounded = pl.col("value", "reference_value", "gap_high").round(3)
    >>> table.select("segment", "n", rounded, "depth", "n_examined")
    shape: (2, 7)
    ┌──────────┬─────┬───────┬─────────────────┬──────────┬───────┬────────────┐
    │ segment  ┆ n   ┆ value ┆ reference_value ┆ gap_high ┆ depth ┆ n_examined │
    │ ---      ┆ --- ┆ ---   ┆ ---             ┆ ---      ┆ ---   ┆ ---        │
    │ str      ┆ i64 ┆ f64   ┆ f64             ┆ f64      ┆ i64   ┆ i64        │
    ╞══════════╪═════╪═══════╪═════════════════╪══════════╪═══════╪════════════╡
    │ overall  ┆ 200 ┆ 0.44  ┆ null            ┆ null     ┆ 0     ┆ 8          │
    │ f, young ┆ 60  ┆ 0.25  ┆ 0.521           ┆ -0.065   ┆ 2     ┆ 8          │
    └──────────┴─────┴───────┴─────────────────┴──────────┴───────┴────────────┘
    """
    if metric not in SEARCHED:
        hint = arguments.did_you_mean(metric, SEARCHED)
        msg = f"`metric` must be one of {', '.join(SEARCHED)}; found {metric!r}{hint}"
        raise ValueError(msg)
    chosen, choice = SEARCHED[metric], read_threshold(threshold, selected)
    of_decisions = isinstance(chosen, RateMetric)
    if of_decisions and choice is None:
        msg = f"`metric` must come with a `threshold` or `selected` for {metric}; found neither"
        raise ValueError(msg)
    if not of_decisions and choice is not None:
        msg = f"`metric` must be a rate with decisions; found {metric!r}"
        raise ValueError(msg)
    if label is None and metric != "selection_rate":
        msg = f"`label` must be given for {metric}; found None"
        raise ValueError(msg)
    check_favorable(favorable, threshold, decided=of_decisions)
    require_groups(attributes, called="attributes")
    arguments.refuse_looks(level, "a search")
    level, survey = arguments.level(level), read_design(design)
    if survey.replicate_weights is not None:
        msg = "`design` must be clusters or a survey for a search; found replicate weights"
        raise ValueError(msg)
    arguments.flag("redundant", redundant)
    for argument, number in (("depth", depth), ("min_rows", min_rows), ("top", top)):
        arguments.whole_number(argument, number, low=1)
    source = read_source(frame)
    name = score_name(source, score)
    given = score_or_decisions(source, score, selected), weight, attributes, pos_label
    rows: Rows = read_rows(
        source, label, *given, survey=survey, selected=selected, called="attributes"
    )
    if rows.model_keys:
        msg = "`score` must be one column; found several"
        raise ValueError(msg)
    names = [division.attribute for division in read_attributes(rows, intersections=False)]
    worse: Worse = chosen.worse_if(favorable)
    if not of_decisions:
        worse = "higher" if chosen.better == "low" else "either"
    options = depth, min_rows, top, level, redundant, survey.survey.lonely
    search = Search(chosen, worse, rows.keys, names, *options)
    cells = cells_of(rows, chosen, choice)
    if is_eager(frame):
        table = search.table(collect(cells)).lazy()
    else:
        table = cells.map_batches(search.table, schema=search.schema)
    return like_input(frame, comparison_table(table, rows, name, [*SEARCH_COLUMNS]))
