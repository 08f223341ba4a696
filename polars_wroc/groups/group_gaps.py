"""Gaps of AUCs and rates between each segment and a reference, with intervals and tests."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import get_args

from polars_wroc.groups.categories import Intersections, read_attributes, read_category_reference
from polars_wroc.groups.comparison_tests import GapMethod, GapTests
from polars_wroc.groups.comparisons import COMPARABLE, comparison_table, score_name
from polars_wroc.groups.gaps import GroupGaps, check_margin
from polars_wroc.groups.references import KINDS
from polars_wroc.groups.within_strata import WITHIN_COLUMNS, GapsWithinStrata, check_within
from polars_wroc.inputs import arguments
from polars_wroc.inputs.arguments import MARGIN
from polars_wroc.inputs.columns import IntoColumn, IntoWeight
from polars_wroc.inputs.decisions import score_or_decisions
from polars_wroc.inputs.designs import Design, read_design
from polars_wroc.inputs.frames import read_rows, read_rows_within, require_groups
from polars_wroc.inputs.rows import IntoColumns, Rows, read_source
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.plans.queries import FrameT, is_eager, like_input
from polars_wroc.stats.difference_tests import Adjust, check_options
from polars_wroc.thresholds.registry import THRESHOLD_METRICS
from polars_wroc.thresholds.rules import Threshold, read_threshold
from polars_wroc.thresholds.search import common_threshold


def group_gaps(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns | None = None,
    *,
    attributes: IntoColumns,
    intersections: Intersections = False,
    reference: object = "rest",
    threshold: Threshold | None = None,
    selected: IntoColumn | None = None,
    metrics: Sequence[str] | None = None,
    within: IntoColumns | None = None,
    weight: IntoWeight | None = None,
    pos_label: object = None,
    margin: float = MARGIN,
    min_rows: int = 0,
    level: float = 0.95,
    method: GapMethod = "score",
    adjust: Adjust = "holm",
    design: Design | None = None,
) -> FrameT:
    """Test how the weighted AUC and rates of each segment differ from those of a reference.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, pos_label
        As for `summary`. Without a ``score`` the ``selected`` are compared, and there is no AUC.
    attributes
        One or several columns or expressions, such as race and sex. The values of each are its
        segments, which are compared with each other.
    intersections
        True: also compare the segments of all attributes crossed, whose names are joined by a
        multiplication sign; ``"only"``: compare these alone.
    reference
        ``"rest"``: the other segments: the mean of their AUCs, weighted by their pairs of a
        positive and a negative, and the rates of all their rows. ``"overall"``: the same of all
        segments, the segment's own included. Rows of different segments are never compared, so
        that an offset of all scores of a segment changes no other gap (`cross_auc` and
        `auc_decomposition` report such offsets). ``"best"``: the segment with the highest AUC;
        because it is selected for that, gaps to it are biased away from 0, and p-values and limits
        allow for the choice (see Notes): a named segment or the rest finds more. Or a mapping of
        attributes to segments, such as ``{"race": "white"}``; the other attributes have the rest.
        With one attribute the segment alone is enough. Missing values cannot be the reference.
    threshold
        Rows with at least this score are predicted positive. Without it, and without ``selected``,
        there are no gaps of rates.
    selected
        Instead of ``threshold``: a Boolean column or expression, the decision that was recorded,
        which rates are then computed from; AUCs come from the score. Rows where it is null are
        missing.
    metrics
        Names of the metrics that are compared instead of those below: ``"auc"``; of a score that is
        a probability ``"brier_score"`` and ``"log_loss"``; and with ``threshold`` or ``selected``
        any of `threshold_metrics`. The ``margin`` is then in units of each metric. ``method`` must
        be ``"score"``, and ``within`` None.
    level
        Confidence level of the intervals, from 0.001 to 0.9999, or `Looks`.
    method
        How AUCs are compared. ``"score"``: the interval combines the score-type limits of both
        AUCs, and the p-value is that of the test at their mean; holds its level near an AUC of 1
        and in small groups too. ``"logit-t"``: Student's t on the difference of
        the logits; rejects too often near 1.
    adjust
        How p-values are adjusted for the number of tests in the table. ``"holm"`` controls the
        family-wise error rate (the probability of any false positive), ``"bh"``
        (Benjamini-Hochberg) the false discovery rate (the expected proportion of false positives
        among significant gaps); or ``"none"``.
    min_rows
        Minimum sample size of a test, in the segment and in the reference without the segment: rows
        of each class for an AUC, positives for a tpr, negatives for an fpr, selected rows for a
        ppv, the other rows for an npv, all rows for a selection rate. Estimates from fewer rows
        are reported but not tested, and such a segment cannot be ``"best"``.
    margin
        How large a gap must be to matter: the verdict ``"alike"`` says that it is shown to be
        within the margin on either side. Between 0 and 1.
    within
        One or several columns or expressions, such as a job, a site or a credit band, whose values
        are strata; null is one of them. A group is compared with its reference within each
        stratum, and the differences are averaged, so that gaps that come from the strata alone
        vanish. ``reference`` must be ``"rest"``, ``"best"`` (by the AUC without strata) or a
        segment, ``method`` ``"score"``, and no survey design given. Plans compute this, whatever
        the engine.
    design
        Clusters, a `Survey` or `ReplicateWeights`: see `summary`.
        Intervals and tests of all gaps then use the variances of the design, with the correlation
        of groups that share units, and Student's t; each p-value belongs to the level at which the
        interval just excludes 0. Degrees of freedom are those of `summary` for the group or for its
        reference, whichever has fewer; for rates those of the units with rows of any class.
        ``method`` must be ``"score"``, and ``within`` None. With replicate weights the pairs of a
        reference keep the weights that the full sample gives them.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        The comparison table: one row per attribute, segment, score and metric, in the order of the
        arguments, of values, and of the metrics ``auc`` and, with ``threshold`` or ``selected``,
        ``selection_rate, tpr, fpr, ppv, npv``. In each row ``gap = value - reference_value`` and
        ``ratio = value / reference_value``.

        - ``attribute, segment`` (String): names of the attribute and of its value; several are
          joined by a multiplication sign and by commas. The segment null is the missing value.
        - ``model`` (String): name of the score; null without one.
        - ``metric`` (String).
        - ``n`` (Int64): rows that the value rests on: of a rate its denominator, of an AUC the
          smaller class.
        - ``value, value_low, value_high`` (Float64): the metric in the segment, with its confidence
          interval. Null without its denominator, and of an AUC without both classes.
        - ``reference`` (String), ``n_reference`` (Int64), ``reference_value`` (Float64):
          ``"rest"``, ``"overall"`` or the name of a segment, the rows behind it, and its number.
          Null where no segment has enough rows to be the best.
        - ``gap, gap_low, gap_high`` (Float64): the difference, with its confidence interval; null
          of the reference itself. With ``"logit-t"`` gaps are null where a variance is unknown or,
          with perfect separation, 0.
        - ``ratio, ratio_low, ratio_high`` (Float64): null of an AUC, of the reference itself and
          where its rate is 0; the upper limit also where it is infinite. Limits and tests are null
          where squares of the weights overflow or underflow.
        - ``p_value, p_adjusted`` (Float64): test that there is no gap, alone and adjusted for all
          tests of the table together; null where it is not tested.
        - ``detectable`` (Float64): the smallest gap below the reference that would have been found
          with a probability of 80 %; null where none could have been, and of gaps that are not
          tested.
        - ``verdict`` (String): ``"different"``, ``"alike"`` or ``"too little data"``; null where
          nothing is compared.
        - ``reason`` (String): why there is no verdict or no test: ``"undefined"``,
          ``"no variance"``, ``"the reference"``, ``"no reference shown"``, ``"fewer than 30 rows"``
          (or another ``min_rows``); ``"repeats female"`` where two segments are each the other's
          rest, so that this is the same test; ``"few effective events"`` of weighted rates with
          fewer than five effective rows of the rarer outcome in the segment or in its reference,
          whose limits may be too narrow. Else null.

        With ``within`` values and their references are averages over the strata in which a segment
        and its reference have rows of the metric (``n`` counts all rows): rates are directly
        standardised rates with common weights, and ratios are also null where every row is an
        outcome. There follow ``gap_crude``, the gap without strata; ``gap_explained``, the share
        of it that the strata explain, 1 minus the gap divided by that without strata, which may be
        negative or above 1 and is null where the interval of the gap without strata includes 0;
        and ``share_within``, the share of the segment's weight in strata where the reference has
        rows (Float64).

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for an unknown option, for both ``threshold`` and ``selected``, and
        at collect for a reference that does not exist.

    Notes
    -----
    The variance of a gap is DeLong's [1]_, and intervals combine those of both AUCs [2]_. The
    score-type interval is that of `roc_auc_ci`; for a weighted mean of AUCs it uses the weighted
    sums of the moments of the groups. A group differs from the overall sample only through the
    other groups: with ``"overall"`` gap and interval are those to the rest times the rest's share
    of all pairs, and the p-value is the same. With ``"logit-t"`` degrees of freedom are
    Satterthwaite's. Two groups that are compared with each other are one test, whose p-value is
    the larger of both. Groups are compared within each model. The cost does not grow with the
    number of groups; for a survey it grows with their number times that of sampling units.

    Rates are compared by the z-test with their pooled variance. Where fewer than five rows are
    expected in a cell of the table of four, it is Fisher's exact test with the mid-p [5]_. With
    unequal weights the variance of each rate is that at the pooled rate, from how heavy the events
    and the other rows of both sides are, with Student's t; where fewer than five effective events
    are expected, z is at most the root of the likelihood ratio. AUCs are compared in the same way,
    with the variances at their mean; their p-value decides whether they differ, and the interval,
    which is cautious near 1, says how much. In simulations tests of equal weighted rates erred in
    at most 6 %, with weights that depend on the outcome and fewer than about ten rows of the rarer
    one in up to 7 %, and those of equal AUCs in at most 6 %; where one segment has much heavier
    tails than the other and weights fall with the score, in up to 12 %.

    Verdicts divide ``1 - level`` by the number of tests in the table (unless ``adjust="none"``).
    A gap is ``"alike"`` if two one-sided tests at that level reject that it is as large as the
    margin in either direction [3]_: the interval at a confidence of 1 minus twice that level lies
    inside the margin. Otherwise it is ``"different"`` if its adjusted p-value is at most ``1 -
    level``, else ``"too little data"``, as is any gap with fewer than ``min_rows``. AUCs use
    their score-type intervals for this whatever the ``method``, widened as the table's where
    scores are binned. The detectable gap is that of one such two-sided test; to ``"overall"`` it
    is shrunk like the gap.

    Strata have the weights ``u * v / (u + v)``: of the weights u and v of the group and its
    reference in a rate, those of Mantel and Haenszel [4]_, and of their weights of pairs for an
    AUC. The limits of an average rate are Wilson's for the effective size that its variance
    implies, and p-values of rates too belong to the level at which the interval just excludes 0.

    Other ``metrics`` have the limits of `threshold_metrics`; those of the Brier score are on the
    logit, of the log loss on the logarithm, from the variance of the losses. Gaps combine both
    intervals [2]_, with the covariance where ``"overall"`` includes the group or units of a design
    have rows of both, and Student's t; p-values belong to the level at which the interval just
    excludes 0, and the detectable gap is that of a test with the errors of both values. With
    ``"overall"`` two groups are two tests of such a metric.

    References
    ----------
    .. [1] DeLong, E. R. et al. (1988), Biometrics 44, 837-845.
    .. [2] Zou, G. Y. (2007), Psychological Methods 12, 399-413.
    .. [3] Schuirmann, D. J. (1987), J. Pharmacokinet. Biopharm. 15, 657-680.
    .. [4] Mantel, N. & Haenszel, W. (1959), J. Natl. Cancer Inst. 22, 719-748.
    .. [5] Lancaster, H. O. (1961), J. Am. Stat. Assoc. 56, 223-234.
    .. [6] Hayter, A. J. (1984), The Annals of Statistics 12, 61-75.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame(
    ...     {
    ...         "g": ["a"] * 5 + ["b"] * 5,
    ...         "y": [1, 0, 1, 0, 0, 1, 0, 1, 0, 0],
    ...         "s": [0.9, 0.4, 0.3, 0.2, 0.1, 0.5, 0.8, 0.6, 0.7, 0.2],
    ...     }
    ... )
    >>> gaps = wroc.group_gaps(df, "y", "s", attributes="g")
    >>> gaps.select("segment", "metric", pl.col("value", "reference_value", "gap").round(3))
    shape: (2, 5)
    ┌─────────┬────────┬───────┬─────────────────┬──────┐
    │ segment ┆ metric ┆ value ┆ reference_value ┆ gap  │
    │ ---     ┆ ---    ┆ ---   ┆ ---             ┆ ---  │
    │ str     ┆ str    ┆ f64   ┆ f64             ┆ f64  │
    ╞═════════╪════════╪═══════╪═════════════════╪══════╡
    │ a       ┆ auc    ┆ 0.833 ┆ 0.333           ┆ 0.5  │
    │ b       ┆ auc    ┆ 0.333 ┆ 0.833           ┆ -0.5 │
    └─────────┴────────┴───────┴─────────────────┴──────┘
    """
    require_groups(attributes, called="attributes")
    choice = read_threshold(threshold, selected)
    asked = None if metrics is None else read_metrics(metrics, COMPARABLE)
    survey = read_design(design)
    if asked is not None:
        check_metrics(asked, has_score=score is not None, has_decisions=choice is not None)
        if within is not None or method != "score":
            other = "`within`" if within is not None else f"`method` {method!r}"
            arguments.reject("metrics", f"be None with {other}", list(asked))
    source = read_source(frame)
    name = score_name(source, score)
    score = score_or_decisions(source, score, selected)
    given = source, label, score, weight, attributes, pos_label
    by_strata: list[str] = []
    if within is None:
        rows: Rows = read_rows(*given, survey=survey, selected=selected, called="attributes")
    else:
        survey.require_none("with `within`: give one of them")
        check_within(reference, method)
        rows, by_strata = read_rows_within(*given, within, selected)
    level = check_options(rows.look(level, frame), adjust)
    groups = rows.regrouped([key for key in rows.group_keys if key not in by_strata])
    divisions = read_attributes(groups, intersections)
    schema = rows.frame.collect_schema()
    references = read_category_reference(reference, KINDS, divisions, schema)
    thresholds = None if choice is None else common_threshold(rows, choice)
    least = arguments.whole_number("min_rows", min_rows, low=0)
    arguments.option("method", method, get_args(GapMethod))
    if survey.given and method != "score":
        arguments.reject("method", "be 'score' with `design`", repr(method))
    tests = GapTests(
        level,
        adjust,
        least,
        method,
        margin=check_margin(margin),
        designed=survey.given,
        rates_alone=name is None or (asked is not None and ROC_AUC.column not in asked),
        metrics=asked,
    )
    compared = GroupGaps(groups, divisions, references, thresholds, tests, is_eager(frame))
    more: tuple[str, ...] = ()
    if by_strata:
        more, table = WITHIN_COLUMNS, GapsWithinStrata(compared, by_strata).table()
    else:
        table = compared.table()
    return like_input(frame, comparison_table(table, groups, name, more))


def read_metrics(metrics: Sequence[str], known: Collection[str]) -> tuple[str, ...]:
    """Check the names of the metrics that are to be compared, out of those that are known."""
    if isinstance(metrics, str) or not isinstance(metrics, Sequence) or not metrics:
        arguments.reject_type("metrics", "be None or a sequence of names of metrics", metrics)
    for name in metrics:
        if name not in known:
            hint = arguments.did_you_mean(name, known)
            arguments.reject("metrics", f"be out of {', '.join(known)}", f"{name!r}{hint}")
    return tuple(dict.fromkeys(metrics))


def check_metrics(metrics: Sequence[str], *, has_score: bool, has_decisions: bool) -> None:
    """Raise for a metric without what it is computed from."""
    for name in metrics:
        of_decisions = name in THRESHOLD_METRICS
        if not (has_decisions if of_decisions else has_score):
            needed = "a `score` for {}; found none"
            if of_decisions:
                needed = "a `threshold` or `selected` for {}; found neither"
            msg = f"`metrics` must come with {needed.format(name)}"
            raise ValueError(msg)
