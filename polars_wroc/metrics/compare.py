"""Compare the AUCs of several scores on the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import comb

import polars as pl

from polars_wroc.inputs.arguments import WeightType
from polars_wroc.inputs.columns import IntoColumn
from polars_wroc.inputs.frames import read_paired_rows
from polars_wroc.inputs.limits import Limit
from polars_wroc.inputs.replicate_weights import ReplicateWeights
from polars_wroc.inputs.rows import IntoColumns
from polars_wroc.inputs.survey_design import Lonely, SurveyArguments
from polars_wroc.metrics.auc_variance import units_of
from polars_wroc.metrics.paired_sums import FIRST, SECOND, placement_columns, sums_of_pairs
from polars_wroc.metrics.paired_tests import ONE_MINUS, ComparisonMethod, paired_test
from polars_wroc.plans.collect import FrameT, like_input
from polars_wroc.plans.steps import in_columns
from polars_wroc.ranking.reduce_placed import reduce_placements
from polars_wroc.stats.difference_tests import CONTRAST_COLUMNS
from polars_wroc.stats.multiple_tests import Adjust, adjusted, check_options

COMPARISON_COLUMNS = (
    "model_a",
    "model_b",
    "auc_a",
    "auc_b",
    *CONTRAST_COLUMNS,
    "p_adjusted",
    "n",
    "n_missing",
)
_MOST_PAIRS = 5_000


def compare(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoColumn | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    level: float = 0.95,
    method: ComparisonMethod = "delong",
    weight_type: WeightType = "probability",
    cluster: IntoColumn | None = None,
    adjust: Adjust = "holm",
    max_pairs: int = _MOST_PAIRS,
    strata: IntoColumn | None = None,
    fpc: IntoColumn | None = None,
    lonely: Lonely = "null",
    replicate_weights: ReplicateWeights | None = None,
) -> FrameT:
    """Compare the weighted AUCs of two or more scores on the same rows, per group.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, weight, by, pos_label
        As for `summary`.
    score
        Two or more columns or numeric expressions. A row with any score missing is left out
        of all comparisons, so that all AUCs are of the same rows.
    level
        Confidence level of the intervals, from 0.001 to 0.9999.
    method
        ``"delong"``: the normal interval and test of the difference, which other software has too.
        ``"score"``: from the score-type intervals of both AUCs, see `roc_auc_ci`, and the
        correlation of the AUCs. For AUCs near 1 and few rows in a class, where DeLong's interval
        is too narrow; wider than that, most of all where the AUCs are alike.
    weight_type, cluster
        Meaning of the weights, and clusters: see `roc_auc_ci`.
    adjust
        How p-values are adjusted for the number of tests in the table. ``"holm"`` controls the
        family-wise error rate (the probability of any false positive), ``"bh"``
        (Benjamini-Hochberg) the false discovery rate (the expected proportion of false positives
        among significant differences); or ``"none"``.
    max_pairs
        Raise for more pairs of scores than this: time grows with their number times that of the
        rows, memory with the rows times the scores. The default allows 100 scores.
    strata, fpc, lonely, replicate_weights
        The design of a survey: see `summary`. With these, and for ``"score"`` with ``cluster``
        alone, variances are those of the design, and intervals and tests use Student's t; ``z`` is
        then a t statistic.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group and pair of scores, sorted by the ``by`` columns, then in the order
        of the scores. After the ``by`` columns come ``model_a, model_b`` (String), the Float64
        columns ``auc_a, auc_b, difference`` (a minus b), ``se, ci_low, ci_high, z, p_value,
        p_adjusted``, and ``n, n_missing`` (Int64 numbers of rows used and left out). The AUCs and
        all that depends on them are null where a class has no weight. ``se`` is null where a class
        has only one row or cluster. Where the variance of the difference is 0 or unknown,
        ``ci_low, ci_high, z`` and ``p_value`` are null, but the p-value is 1 if difference and
        variance are both 0. With ``method="score"`` these four need no variance, and are null only
        where squares or cubes of the weights overflow or underflow; the p-value is 1 wherever the
        difference is 0. ``z`` is also null where the interval excludes 0 at every level; the
        p-value is then 0.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for fewer than two scores, more pairs than ``max_pairs``, an unknown
        option.

    Notes
    -----
    With weights of 1 ``"delong"`` is DeLong's test [1]_: its variance is that of the difference of
    each row's two placement values, which accounts for the correlation of the scores. Adjusted
    p-values treat all rows of the table as one family of tests [2]_. Near an AUC of 1, or where
    few rows carry most of the weight, the test is conservative: it rejects equal AUCs less often
    than its level allows. But its interval then misses unequal ones: in simulations of AUCs of
    0.97 and 0.9 with 10 to 20 positives, the 95 % interval covered 0.80 to 0.92 of the differences;
    that of ``"score"`` covered 0.97 to 1, and 0.94 or more of all differences between AUCs of 0.8
    to 0.99 with up to 100 positives. The price is power: of the former differences it found a
    quarter to two thirds as many.

    ``"score"`` combines the limits of both AUCs (MOVER, [3]_) with an estimated correlation of at
    most 0.95, and 0 where one of their variances is 0 or unknown. The p-value belongs to the level
    at which one end of the interval is 0, and ``z`` to the p-value: a difference is significant
    exactly where the interval excludes 0.

    References
    ----------
    .. [1] DeLong, E. R. et al. (1988), Biometrics 44, 837-845.
    .. [2] Holm, S. (1979), Scandinavian Journal of Statistics 6, 65-70.
    .. [3] Zou, G. Y. (2007), Psychological Methods 12, 399-413.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame(
    ...     {
    ...         "y": [1, 1, 1, 0, 0, 0],
    ...         "old": [0.9, 0.6, 0.4, 0.7, 0.5, 0.2],
    ...         "new": [0.9, 0.8, 0.4, 0.5, 0.3, 0.1],
    ...     }
    ... )
    >>> result = wroc.compare(df, "y", ["old", "new"])
    >>> result.select("model_a", "model_b", pl.col("difference", "se", "p_value").round(3))
    shape: (1, 5)
    ┌─────────┬─────────┬────────────┬───────┬─────────┐
    │ model_a ┆ model_b ┆ difference ┆ se    ┆ p_value │
    │ ---     ┆ ---     ┆ ---        ┆ ---   ┆ ---     │
    │ str     ┆ str     ┆ f64        ┆ f64   ┆ f64     │
    ╞═════════╪═════════╪════════════╪═══════╪═════════╡
    │ old     ┆ new     ┆ -0.222     ┆ 0.157 ┆ 0.157   │
    └─────────┴─────────┴────────────┴───────┴─────────┘
    """
    level = check_options(level, adjust)
    limit = Limit("max_pairs", max_pairs, "pairs", "score")
    survey = SurveyArguments(cluster, strata, fpc, lonely, replicate_weights)
    designed = survey.more_than_clusters or (survey.given and method == "score")
    clustered = survey.given and not designed
    test = paired_test(method, units_of(weight_type, clustered=clustered), designed=designed)
    rows, models = read_paired_rows(
        frame,
        label,
        score,
        weight,
        by,
        pos_label,
        cluster=cluster,
        survey=survey if designed else None,
    )
    limit.check(comb(len(models), 2))
    sums = reduce_placements(
        rows,
        placement_columns(len(models)),
        partial(sums_of_pairs, models=len(models), test=test, rows=rows),
    )
    table = in_columns(sums, test.steps)
    named = table.with_columns(**_names_and_aucs(models), **test.result(level))
    in_order = adjusted(named, adjust).sort(FIRST, SECOND)
    return like_input(frame, rows.result(in_order, COMPARISON_COLUMNS))


def _names_and_aucs(models: Sequence[str]) -> dict[str, pl.Expr]:
    names = pl.Enum(models)
    first, second = (1 - pl.col(name) for name in ONE_MINUS)
    return {
        "model_a": pl.col(FIRST).cat.to(names).cast(pl.String),
        "model_b": pl.col(SECOND).cat.to(names).cast(pl.String),
        "auc_a": first,
        "auc_b": second,
    }
