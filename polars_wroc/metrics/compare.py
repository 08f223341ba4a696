"""Compare the AUCs of several scores on the same rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from math import comb
from typing import Literal, TypeAlias

import numpy as np
import polars as pl

from polars_wroc import checks
from polars_wroc.arrays import Array, Mask
from polars_wroc.bounds import PositiveInt
from polars_wroc.calls import check_call
from polars_wroc.checks import Limit
from polars_wroc.inputs.columns import MODEL, IntoColumn, IntoWeight
from polars_wroc.inputs.designs import Design, read_design
from polars_wroc.inputs.reasons import NO_VARIANCE, UNDEFINED
from polars_wroc.inputs.rows import IntoColumns, polars_frame
from polars_wroc.looks import ConfidenceLevel
from polars_wroc.metrics import paired_aucs
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.queries import FrameT
from polars_wroc.rows import Rows, add_keys, check_level, make_table, read_columns, table_of
from polars_wroc.stats.designs import explain_unknown_variance
from polars_wroc.stats.families import DIFFERENT, INCONCLUSIVE, Adjustment, adjust_p_values
from polars_wroc.stats.levels import Level
from polars_wroc.stats.means import Difference
from polars_wroc.stats.paired import unpaired_delong

ComparisonMethod: TypeAlias = Literal["delong"]

# The scores of a row, and the metric by which they are compared.
PAIR = (MODEL, "reference")
_VALUES = ("value", "reference_value", "gap", "gap_low", "gap_high")
_TESTS_OF_GAPS = ("gap_se", "p_value", "p_adjusted")
PAIR_SCHEMA: dict[str, type[pl.DataType]] = {
    **dict.fromkeys((*PAIR, "metric"), pl.String),
    **dict.fromkeys(_VALUES, pl.Float64),
    **dict.fromkeys(("verdict", "reason"), pl.String),
    **dict.fromkeys(_TESTS_OF_GAPS, pl.Float64),
    "n": pl.Int64,
    "n_missing": pl.Int64,
}
_MOST_PAIRS = 5_000


@check_call
def compare(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    level: ConfidenceLevel = 0.95,
    method: ComparisonMethod | None = None,
    paired: bool = True,
    design: Design | None = None,
    adjust: Adjustment = "holm",
    max_pairs: PositiveInt = _MOST_PAIRS,
) -> FrameT:
    """Return the differences in AUC between scores of the same rows, tested, per group.

    Use it to find out which of several models ranks better. To check that a new score is no worse
    than an old one in any segment, with rates and a margin, use `release_check`. For calibration,
    see [two scores on the same rows](../guides/calibration.md#two-scores-on-the-same-rows).

    The main columns are:

    - the ``by`` columns;
    - ``model, reference``: the two scores;
    - ``value, reference_value``: their AUCs;
    - ``gap, gap_low, gap_high``: ``value - reference_value`` with its confidence interval;
    - ``verdict``: ``"different"`` if ``p_adjusted`` is at most ``1 - level``, else
      ``"inconclusive"``.

    Parameters
    ----------
    frame, label, weight, by, pos_label, design
        As for `summary`.
    score
        Two or more columns or numeric expressions. A row in which any score is missing is left out
        of all comparisons.
    level, adjust
        As for `group_gaps`.
    method
        None: DeLong's variance with two additional rows in each class, and Student's t, so that the
        interval also holds its level if the scores rank only few rows differently. ``"delong"``:
        DeLong's test with normal quantiles, as other software prints it.
    paired
        False: DeLong's test for scores of different rows, to reproduce other software.
    max_pairs
        Largest number of pairs of scores, since time grows with it. The default allows 100 scores.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group and pair of scores, sorted by the ``by`` columns, then in the order of the
        scores. Besides the main columns: ``metric`` (``"auc"``) and ``reason``, why there is no
        verdict (String); ``gap_se, p_value, p_adjusted`` (Float64; the test statistic is ``gap /
        gap_se``); ``n, n_missing`` (Int64), rows used and left out.

        AUCs are null if a class has no weight. The standard error, limits and ``p_value`` are null
        also if the variance is unknown. Two identical scores differ by 0, with limits of 0.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for fewer than two scores, or ``paired=False`` with a ``design``.

    Notes
    -----
    DeLong's interval [1]_ is too narrow if few rows decide the difference; the default is wider for
    highly correlated scores. ``"delong"`` is the paired test of ``roc.test`` in R's pROC, and
    ``paired=False`` its unpaired test; both also take weights.
    [Formulas](../explanation/statistics.md#compare).

    References
    ----------
    .. [1] DeLong, E. R. et al. (1988), Biometrics 44, 837-845.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> patients = wroc.data.diabetes()
    >>> table = wroc.compare(patients, "progressed", ["score", "score_b"], weight="weight")
    >>> table.select("model", "reference", pl.col("gap", "gap_low", "gap_high").round(3), "verdict")
    shape: (1, 6)
    ┌───────┬───────────┬───────┬─────────┬──────────┬───────────┐
    │ model ┆ reference ┆ gap   ┆ gap_low ┆ gap_high ┆ verdict   │
    │ ---   ┆ ---       ┆ ---   ┆ ---     ┆ ---      ┆ ---       │
    │ str   ┆ str       ┆ f64   ┆ f64     ┆ f64      ┆ str       │
    ╞═══════╪═══════════╪═══════╪═════════╪══════════╪═══════════╡
    │ score ┆ score_b   ┆ 0.068 ┆ 0.033   ┆ 0.102    ┆ different │
    └───────┴───────────┴───────┴─────────┴──────────┴───────────┘
    """
    limit = Limit("max_pairs", max_pairs, "pairs", "score")
    survey = read_design(design)
    if survey.is_given and not paired:
        checks.reject("paired", "be True with a `design`", "False")
    columns = read_columns(polars_frame(frame), label, score, weight, by, pos_label, design)
    number = len(columns.models)
    if number < 2:  # noqa: PLR2004  (two make a pair)
        checks.reject("score", "hold two or more columns to compare", list(columns.models))
    limit.check(comb(number, 2))
    level = check_level(level, frame)
    # Each row of the table names two models, in columns of its own.
    columns = replace(columns, several=False)
    compute = partial(
        _compare_scores,
        keys=columns.keys,
        test=_TESTS[method] if paired else _test_unpaired,
        level=level,
        adjust=adjust,
    )
    return table_of(frame, columns, columns.schema(PAIR_SCHEMA), compute)


def _test_carefully(placed: paired_aucs.ScoredRows, one: str, other: str) -> Difference:
    return placed.difference(one, other).estimate()


def _test_by_delong(placed: paired_aucs.ScoredRows, one: str, other: str) -> Difference:
    return placed.difference(one, other).by_delong()


def _test_unpaired(placed: paired_aucs.ScoredRows, one: str, other: str) -> Difference:
    return unpaired_delong(placed.auc(one), placed.auc(other))


_Test: TypeAlias = Callable[[paired_aucs.ScoredRows, str, str], Difference]
_TESTS: dict[ComparisonMethod | None, _Test] = {None: _test_carefully, "delong": _test_by_delong}


def _compare_scores(
    rows: Rows, *, keys: Sequence[str], test: _Test, level: ConfidenceLevel, adjust: Adjustment
) -> pl.DataFrame:
    """Return a row for each group and pair of scores."""
    complete = paired_aucs.require_all_scores(rows)
    placed = paired_aucs.place_scores(complete, keys, [*rows.scores])
    known_level = complete.level(level)
    aucs = {model: 1 - placed.complement(model) for model in rows.scores}
    pairs = [*combinations(rows.scores, 2)]
    found = []
    for one, other in pairs:
        difference = test(placed, one, other)
        if paired_aucs.have_same_scores(complete, one, other):
            difference = replace(difference, error=0.0 * difference.value)
        values = aucs[one], aucs[other]
        found.append(_describe(difference, values, known_level.enough(*placed.n), known_level))
    # All pairs of one segment, then those of the next.
    numbers = {name: np.stack([each[name] for each in found], axis=1).ravel() for name in found[0]}
    p_adjusted = adjust_p_values(numbers["p_value"], adjust)
    is_different = p_adjusted <= known_level.error
    verdict = np.where(is_different, DIFFERENT, INCONCLUSIVE).astype(object)
    verdict[np.isnan(numbers["gap"])] = None
    units = None if rows.sample is None else rows.sample.units
    no_variance = explain_unknown_variance(units, NO_VARIANCE)
    reason = np.where(np.isnan(numbers["gap"]), UNDEFINED, no_variance).astype(object)
    reason[~np.isnan(numbers["p_value"])] = None
    segments = len(placed.missing)
    segment = np.repeat(np.arange(segments), len(pairs))
    table = make_table(
        {
            MODEL: np.tile([one for one, _ in pairs], segments),
            "reference": np.tile([other for _, other in pairs], segments),
            "metric": np.full(len(segment), ROC_AUC.column),
            **numbers,
            "verdict": verdict,
            "reason": reason,
            "p_adjusted": p_adjusted,
            "n": placed.n.sum(axis=0)[segment],
            "n_missing": placed.missing[segment],
        }
    )
    return add_keys(table, placed.keys, segment)


def _describe(
    difference: Difference, values: tuple[Array, Array], enough: Mask, level: Level
) -> dict[str, Array]:
    """Return the columns of the difference of two AUCs of each segment."""
    low, high = difference.limits(level.quantile(difference.df))
    return {
        "value": values[0],
        "reference_value": values[1],
        "gap": difference.value,
        "gap_low": np.where(enough, np.maximum(low, -1.0), np.nan),
        "gap_high": np.where(enough, np.minimum(high, 1.0), np.nan),
        "gap_se": difference.error,
        "p_value": np.where(enough, difference.p_value(level), np.nan),
    }
