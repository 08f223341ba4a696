"""Gaps of AUCs and rates between each segment and a reference, with intervals and tests."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
import polars as pl

from polars_wroc import checks
from polars_wroc.checks import MARGIN
from polars_wroc.groups.categories import CategoryReference, Grouping, Intersections
from polars_wroc.groups.compare_segments import (
    Comparison,
    GapRules,
    Partition,
    add_verdicts,
    compare_segments,
)
from polars_wroc.groups.comparisons import (
    COMPARISON_SCHEMA,
    GAPS_ON_REQUEST,
    METRICS,
    SMD,
    UNLABELED,
    score_name,
)
from polars_wroc.groups.divisions import (
    GAP_REFERENCES,
    find_reference,
    name_segments,
    read_divisions,
    read_references,
)
from polars_wroc.groups.within_strata import (
    WITHIN_SCHEMA,
    check_within,
    compare_within,
    measure_strata,
    read_strata,
)
from polars_wroc.inputs.columns import (
    AUDIT_KEYS,
    MISSING,
    MODEL,
    Frequency,
    IntoColumn,
    IntoWeight,
)
from polars_wroc.inputs.decisions import score_or_decisions
from polars_wroc.inputs.designs import Design
from polars_wroc.inputs.frames import require_groups
from polars_wroc.inputs.rows import IntoColumns, read_source
from polars_wroc.keywords import hint_keywords
from polars_wroc.looks import ConfidenceLevel
from polars_wroc.metrics.mean_sums import ROW_LOSSES, read_precision
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.metrics.segments import Decisions, Needs, Segments, measure_segments
from polars_wroc.queries import FrameT
from polars_wroc.rows import Columns, Rows, check_level, read_columns, table_of
from polars_wroc.stats.families import Adjustment
from polars_wroc.stats.references import Reference
from polars_wroc.thresholds.choice import choose_thresholds
from polars_wroc.thresholds.registry import GAP_RATES, THRESHOLD_METRICS
from polars_wroc.thresholds.rules import Rule, Threshold, read_threshold

# Equal AUCs of different rows may round differently.
_ROUNDING = 1e-12


@hint_keywords
def group_gaps(
    frame: FrameT,
    label: IntoColumn | None = None,
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
    min_rows: int = 30,
    level: ConfidenceLevel = 0.95,
    adjust: Adjustment = "holm",
    design: Design | None = None,
) -> FrameT:
    """Test how the weighted AUC and rates of each segment differ from those of a reference.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, pos_label
        As for `summary`. Without a ``score`` the ``selected`` are compared, and there is no AUC.
        Without a ``label`` there are the ``metrics`` ``"standardized_mean_difference"`` and
        ``"selection_rate"``.
    attributes
        One or several columns or expressions, such as race and sex. The values of each are its
        segments, which are compared with each other.
    intersections
        True: also compare the segments of all attributes crossed, whose names are joined by a
        multiplication sign; ``"only"``: compare these alone.
    reference
        ``"rest"``: the other segments: the mean of their AUCs, weighted by their pairs of a
        positive and a negative, and the rates of all their rows. ``"overall"``: the same of all
        segments, the segment's own included. Rows of different segments are never compared, so that
        an offset of all scores of a segment changes no other gap (`cross_auc` reports such
        offsets). ``"best"``: the segment with the highest AUC; because it is selected for that,
        gaps to it are biased away from 0, and p-values and limits allow for the choice (see Notes):
        a named segment or the rest finds more. Or a mapping of attributes to segments, such as
        ``{"race": "white"}``; the other attributes have the rest. With one attribute the segment
        alone is enough. Missing values cannot be the reference.
    threshold
        Rows with at least this score are predicted positive. Without it, and without ``selected``,
        there are no gaps of rates.
    selected
        Instead of ``threshold``: a Boolean column or expression, the decision that was recorded,
        which rates are then computed from; AUCs come from the score. Rows where it is null are
        missing.
    metrics
        Names of the metrics that are compared instead of those below: ``"auc"``;
        ``"standardized_mean_difference"``, by how much the scores of a segment are higher or lower,
        in standard deviations of all scores; for a score that is a probability ``"brier_score"``
        and ``"log_loss"``; and with ``threshold`` or ``selected`` any of `threshold_metrics`. The
        ``margin`` is then in units of each metric, and ``within`` must be None.
    level
        Confidence level of the intervals, from 0.001 to 0.9999, or `Looks`.
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
        How large a gap must be to matter: the verdict ``"equivalent"`` says that it is shown to be
        within the margin on either side. Between 0 and 1.
    within
        One or several columns or expressions, such as a job, a site or a credit band, whose values
        are strata; null is one of them. A group is compared with its reference within each
        stratum, and the differences are averaged, so that gaps that come from the strata alone
        vanish. ``reference`` must be ``"rest"``, ``"best"`` (by the AUC without strata) or a
        segment, and no ``design`` given.
    design
        Clusters, a `Survey` or `ReplicateWeights`: see `summary`.
        Intervals and tests of all gaps then use the variances of the design, with the correlation
        of groups that share units, and Student's t; each p-value belongs to the level at which the
        interval just excludes 0. Degrees of freedom are those of `summary` for the group or for its
        reference, whichever has fewer; for rates those of the units with rows of the denominator,
        or of any class where there are several strata. ``within`` must be None. With replicate
        weights the pairs of a reference keep the weights that the full sample gives them.

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
          interval. Null without its denominator, and of an AUC without both classes. For a
          standardized mean difference it is the distance of the segment's mean score from that of
          all rows, in standard deviations.
        - ``reference`` (String), ``n_reference`` (Int64), ``reference_value`` (Float64):
          ``"rest"``, ``"overall"`` or the name of a segment, the rows behind it, and its number.
          Null where no segment has enough rows to be the best.
        - ``gap, gap_low, gap_high`` (Float64): the difference, with its confidence interval; null
          of the reference itself.
        - ``ratio, ratio_low, ratio_high`` (Float64): null of an AUC, of the reference itself and
          where its rate is 0; the upper limit also where it is infinite. Limits and tests are null
          where squares of the weights overflow or underflow.
        - ``p_value, p_adjusted`` (Float64): test that there is no gap, alone and adjusted for all
          tests of the table together; null where it is not tested.
        - ``detectable`` (Float64): the smallest gap below the reference that would have been found
          with a probability of 80 %; null where none could have been, and of gaps that are not
          tested.
        - ``verdict`` (String): ``"different"``, ``"equivalent"`` or ``"inconclusive"``; null where
          nothing is compared.
        - ``reason`` (String): why there is no verdict or no test: ``"undefined"``,
          ``"no variance"``, ``"the reference"``, ``"no reference shown"``, ``"fewer than 30 rows"``
          (or another ``min_rows``); ``"repeats female"`` where two segments are each the other's
          rest, so that this is the same test; ``"few effective events"`` of weighted rates with
          fewer than five effective rows of the rarer outcome in the segment or in its reference,
          whose limits may be too narrow; ``"fewer than 25 rows"`` of mean scores of fewer effective
          rows in the segment or in its reference, which have no limits. Else null.

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
        As for `summary`; also for an unknown option, for both ``threshold`` and ``selected``, for a
        metric without what it is computed from, and for a reference that does not exist, which is
        found when the table is computed.

    Notes
    -----
    The variance of a gap is DeLong's [1]_, and intervals combine those of both AUCs [2]_. The
    score-type interval is that of `roc_auc_ci`; for a weighted mean of AUCs it uses the weighted
    sums of the moments of the groups. A group differs from the overall sample only through the
    other groups: with ``"overall"`` gap and interval are those to the rest times the rest's share
    of all pairs, and the p-value is the same. Two groups that are compared with each other are one
    test, whose p-value is the larger of both. Limits of a gap to the best of three groups or more
    are Tukey's [6]_, with Welch's degrees of freedom of the pair. Groups are compared within each
    model. The cost does not grow with the number of groups; for a survey it grows with their number
    times that of sampling units.

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

    Verdicts divide ``1 - level`` by the number of tests in the table (unless ``adjust="none"``). A
    gap is ``"equivalent"`` if two one-sided tests at that level reject that it is as large as the
    margin in either direction [3]_: the interval at a confidence of 1 minus twice that level lies
    inside the margin. Otherwise it is ``"different"`` if its adjusted p-value is at most
    ``1 - level``, else ``"inconclusive"``, as is any gap with fewer than ``min_rows``. Where scores
    are binned, intervals are wider by what the bins leave open. The detectable gap is that of one
    such two-sided test; to ``"overall"`` it is shrunk like the gap.

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

    A standardized mean difference divides by the unbiased standard deviation of all rows, with
    weights that of the divisor ``W - S / W`` of the sum of the weights and that of their squares.
    Its error is linearised: it adds up the squared influences of rows on both means and on the
    standard deviation, in each of both groups divided by ``1 - h2``, where ``1 / h2`` is its
    effective number of rows. Limits and the test use Student's t with Satterthwaite's degrees of
    freedom [7]_, as Welch's test does. Skewed scores, and weights that go with the score, are not
    solved: in simulations with 25 effective rows and more, limits of 95 % covered 0.92 to 0.94 of
    such differences, and 0.93 to 0.96 of others.

    References
    ----------
    .. [1] DeLong, E. R. et al. (1988), Biometrics 44, 837-845.
    .. [2] Zou, G. Y. (2007), Psychological Methods 12, 399-413.
    .. [3] Schuirmann, D. J. (1987), J. Pharmacokinet. Biopharm. 15, 657-680.
    .. [4] Mantel, N. & Haenszel, W. (1959), J. Natl. Cancer Inst. 22, 719-748.
    .. [5] Lancaster, H. O. (1961), J. Am. Stat. Assoc. 56, 223-234.
    .. [6] Hayter, A. J. (1984), The Annals of Statistics 12, 61-75.
    .. [7] Satterthwaite, F. E. (1946), Biometrics Bulletin 2, 110-114.

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
    asked = None if metrics is None else read_metrics(metrics, GAPS_ON_REQUEST)
    if asked is not None:
        check_metrics(asked, has_score=score is not None, has_decisions=choice is not None)
    if within is not None:
        check_within(reference, asked, design)
    source = read_source(frame)
    name = score_name(source, score)
    every, number = read_strata(source, attributes, within)
    columns = read_columns(
        source,
        label,
        score_or_decisions(source, score, selected),
        weight=weight,
        by=every,
        pos_label=pos_label,
        design=design,
        selected=selected,
        argument="attributes",
    )
    keys = columns.keys[:number]
    level = check_level(level, frame)
    checks.option("adjust", adjust, get_args(Adjustment))
    least = checks.whole_number("min_rows", min_rows, low=0)
    margin = checks.margin(margin)
    of_attributes = replace(columns, names={key: columns.names[key] for key in keys})
    divisions = read_divisions(of_attributes, intersections)
    references = read_references(reference, GAP_REFERENCES, divisions, columns)
    if asked is None:
        asked = _default_metrics(has_score=name is not None, has_decisions=choice is not None)
        if label is None:
            # The selection rate, or the scores
            asked = ("selection_rate",) if choice is not None else (SMD.name,)
    # In the order of all comparison tables.
    compared = [each for each in METRICS | GAPS_ON_REQUEST if each in asked]
    if label is None:
        _check_unlabeled(compared, references)
    plan = GapPlan(
        divisions,
        references,
        compared,
        {model: model if columns.several else name for model in columns.models},
        Decisions(recorded=True) if selected is not None else choice,
        read_needs(
            compared,
            columns,
            aucs=ROC_AUC.column in compared or references.kind == "best",
            count_weights=isinstance(weight, Frequency),
        ),
        columns.keys[number:],
    )

    def compute(rows: Rows) -> pl.DataFrame:
        rules = GapRules(rows.level(level), adjust, margin, least)
        return plan.table(rows, rules)

    schema = COMPARISON_SCHEMA if within is None else COMPARISON_SCHEMA | WITHIN_SCHEMA
    return table_of(frame, columns, schema, compute)


@dataclass(frozen=True)
class GapPlan:
    """What is compared between the segments of each division, and with which references.

    ``score_names`` are those of the models in the table, None without a score. ``choice`` are the
    decisions, a threshold, or a rule that chooses one for each score; ``strata`` are columns within
    whose values segments are compared.
    """

    divisions: Sequence[Grouping]
    references: CategoryReference
    metrics: Sequence[str]
    score_names: Mapping[str, str | None]
    choice: Decisions | Rule | float | None
    needs: Needs
    strata: Sequence[str] = ()

    def table(self, rows: Rows, rules: GapRules) -> pl.DataFrame:
        """Return the comparison table of the segments of all divisions."""
        needs = {
            model: replace(self.needs, decisions=find_decisions(rows, model, self.choice))
            for model in rows.scores
        }
        comparisons: list[Comparison] = []
        for number, division in enumerate(self.divisions):
            for place, model in enumerate(rows.scores):
                partition = self._partition(
                    rows, division, model, needs[model], rules.min_rows, (number, place)
                )
                if self.strata:
                    strata = measure_strata(rows, division.keys, self.strata, model, needs[model])
                    comparisons += [
                        compare_within(metric, partition, strata, rules) for metric in self.metrics
                    ]
                else:
                    comparisons += [
                        compare_segments(metric, partition, rules) for metric in self.metrics
                    ]
        schema = COMPARISON_SCHEMA | (WITHIN_SCHEMA if self.strata else {})
        return in_order(add_verdicts(comparisons, rules), self.metrics, schema)

    def _partition(
        self,
        rows: Rows,
        division: Grouping,
        model: str,
        needs: Needs,
        min_rows: int,
        place: tuple[int, int],
    ) -> Partition:
        segments = measure_segments(rows, division.keys, model, needs)
        names = name_segments(division, segments.keys)
        reference = find_reference(self.references, division, names.to_list())
        picked_from = None
        if reference is None:
            reference, picked_from = pick_best(segments, min_rows)
        labels = label_segments(division, names, self.score_names[model], place)
        named = names.fill_null(MISSING).to_list()
        kind = reference.kind
        reference_name = kind if isinstance(kind, str) else named[kind] if kind >= 0 else None
        return Partition(labels, named, segments, reference, reference_name, picked_from)


# Places of the division, of the segment and of the score, by which rows are ordered.
_PLACES = ("__division", "__segment", "__model")


def label_segments(
    division: Grouping, names: pl.Series, model: str | None, place: tuple[int, int]
) -> pl.DataFrame:
    """Return the columns that name segments, and the places of their rows in a table."""
    attribute, segment = AUDIT_KEYS
    return pl.DataFrame({segment: names.cast(pl.String)}).select(
        pl.lit(division.attribute).alias(attribute),
        segment,
        pl.lit(model, pl.String).alias(MODEL),
        pl.lit(place[0]).alias(_PLACES[0]),
        pl.int_range(pl.len()).alias(_PLACES[1]),
        pl.lit(place[1]).alias(_PLACES[2]),
    )


def in_order(
    table: pl.DataFrame,
    metrics: Sequence[str],
    schema: Mapping[str, pl.DataType | type[pl.DataType]] = COMPARISON_SCHEMA,
    within: Sequence[str] = (),
) -> pl.DataFrame:
    """Return a comparison table in the order of attributes, segments, scores and metrics.

    Rows of a segment and a score are first in the order of columns ``within`` them.
    """
    missing = [
        pl.lit(None, dtype).alias(name)
        for name, dtype in schema.items()
        if name not in table.columns
    ]
    if set(_PLACES) <= set(table.columns):
        table = table.sort(*_PLACES, *within, pl.col("metric").cast(pl.Enum(list(metrics))))
    return table.with_columns(missing).select([*schema])


def pick_best(segments: Segments, min_rows: int) -> tuple[Reference, int]:
    """Return the segment with the highest AUC as reference, and of how many it was picked.

    Candidates have enough rows of both classes. As for the highest rate, ties go to the heavier
    segment, then to the first.
    """
    assert segments.aucs is not None
    is_candidate = (segments.rows >= min_rows).all(axis=0)
    aucs = np.where(is_candidate, segments.aucs.auc, np.nan)
    number = int((~np.isnan(aucs)).sum())
    if number == 0:
        return Reference(-1), 0
    is_best = aucs >= np.nanmax(aucs) - _ROUNDING
    weight = segments.aucs.weight.sum(axis=0)
    return Reference(int(np.argmax(np.where(is_best, weight, -1.0)))), number


def find_decisions(
    rows: Rows, model: str, choice: Decisions | Rule | float | None
) -> Decisions | None:
    """Return the decisions by one of the scores, at a threshold that is given or chosen.

    A rule chooses one threshold for all rows with a value of the score.
    """
    if choice is None or isinstance(choice, Decisions):
        return choice
    if isinstance(choice, Rule):
        chosen = choose_thresholds(rows.segments([], model), choice)
        return Decisions(float(chosen.value[0]), selects=bool(chosen.selects[0]))
    return Decisions(choice)


def _default_metrics(*, has_score: bool, has_decisions: bool) -> tuple[str, ...]:
    """Return the metrics that are compared unless others are asked for."""
    aucs = (ROC_AUC.column,) if has_score else ()
    return (*aucs, *GAP_RATES) if has_decisions else aucs


def read_metrics(metrics: Sequence[str], known: Collection[str]) -> tuple[str, ...]:
    """Check the names of the metrics that are to be compared, out of those that are known."""
    if isinstance(metrics, str) or not isinstance(metrics, Sequence) or not metrics:
        checks.reject_type("metrics", "be None or a sequence of names of metrics", metrics)
    for name in metrics:
        if name not in known:
            hint = checks.did_you_mean(name, known)
            checks.reject("metrics", f"be out of {', '.join(known)}", f"{name!r}{hint}")
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


def _check_unlabeled(metrics: Sequence[str], references: CategoryReference) -> None:
    """Raise for what needs a label."""
    for name in metrics:
        if name not in UNLABELED:
            checks.reject("label", f"be given for {name}", None)
    if references.kind == "best":
        checks.reject("reference", "be another one without a `label`", "'best'")


def read_needs(
    metrics: Sequence[str], columns: Columns, *, aucs: bool, count_weights: bool
) -> Needs:
    """Return what is to be measured for some metrics, whatever the decisions are."""
    losses = [name for name in metrics if name in ROW_LOSSES]
    scores = SMD.name in metrics
    purpose = "mean losses" if losses else "mean scores"
    if losses or scores:
        columns.require_scores(purpose)
    return Needs(
        aucs=aucs,
        losses=losses,
        scores=scores,
        precision=read_precision(columns),
        count_weights=count_weights,
    )
