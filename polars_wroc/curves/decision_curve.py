"""Decision curves: the net benefit of selecting by a score, at each threshold."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import polars as pl

from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import IntoColumn, IntoWeight
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.rows import IntoColumns, Rows
from polars_wroc.plans.queries import Fields, FrameT, Step, in_columns, like_input
from polars_wroc.ranking.curve import SQUARES, curve_frame, ratio
from polars_wroc.ranking.sorting import NEGATIVES, POSITIVES
from polars_wroc.stats.proportions import ROUNDING, is_exact, normal_limits
from polars_wroc.thresholds.confusion_matrix import ThresholdMetrics

_NET, _STANDARDIZED, _ALL = "net_benefit", "standardized_net_benefit", "net_benefit_all"
_AVOIDED = "interventions_avoided"
_COLUMNS = (
    *("threshold", "selection_rate", "prevalence"),
    *(_NET, f"{_NET}_low", f"{_NET}_high", _ALL),
    *(_STANDARDIZED, f"{_STANDARDIZED}_low", f"{_STANDARDIZED}_high"),
    _AVOIDED,
)
_PERCENTS = [percent / 100 for percent in range(1, 100)]


def decision_curve(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    thresholds: float | Sequence[float] | None = None,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    prevalence: float | None = None,
    level: float = 0.95,
) -> FrameT:
    """Net benefit of selecting the rows with a score of at least each threshold, per group.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, by, pos_label
        As for `summary`; the score must lie between 0 and 1.
    thresholds
        One or several numbers from 0 to less than 1; None for 0.01 to 0.99 in steps of 0.01.
    prevalence
        Prevalence in the target population, strictly between 0 and 1; None for that of the rows.
    level
        Confidence level of the intervals, from 0.001 to 0.9999.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model) and threshold, sorted by the ``by`` columns, then by rising
        threshold. After the ``by`` columns (and ``model``) come Float64 columns: ``threshold``;
        ``selection_rate``, the proportion of rows selected; ``prevalence``, the proportion of
        positives; ``net_benefit``, in true positives per row, with its limits ``net_benefit_low,
        net_benefit_high``; ``net_benefit_all``, that of selecting all rows (that of selecting none
        is 0); ``standardized_net_benefit``, the net benefit divided by the prevalence, with its
        limits ``standardized_net_benefit_low, standardized_net_benefit_high``; and
        ``interventions_avoided``, the net number of negatives per row that need not be selected,
        compared with selecting all. All but the threshold are null where no row has weight, or
        where sums of weights overflow or underflow; with ``prevalence`` also where a class has no
        weight. The standardized net benefit is null without positives, ``interventions_avoided``
        at a threshold of 0, and limits where the rows say nothing about the variance, as where
        nobody is selected, or where squares of the weights overflow or underflow.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for thresholds that are not numbers from 0 to less than 1, for one
        inside a bin of scores and, at collect, for a score that is not between 0 and 1.

    Notes
    -----
    At the threshold ``t`` a false positive counts ``t / (1 - t)`` times as much as a true positive
    [1]_. The limits are normal, with the linearised variance of the net benefit, which includes
    that of the prevalence unless it is given. They are those of one curve, not of a difference
    between curves; tests of decision curves are advised against [2]_.

    References
    ----------
    .. [1] Vickers, A. J., Elkin, E. B. (2006), Medical Decision Making 26, 565-574.
    .. [2] Vickers, A. J. et al. (2023), Diagnostic and Prognostic Research 7, 11.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.4, 0.3, 0.1]})
    >>> curve = wroc.decision_curve(df, "y", "s", thresholds=[0.25, 0.5])
    >>> curve.select("threshold", "net_benefit", "net_benefit_all", "interventions_avoided")
    shape: (2, 4)
    ┌───────────┬─────────────┬─────────────────┬───────────────────────┐
    │ threshold ┆ net_benefit ┆ net_benefit_all ┆ interventions_avoided │
    │ ---       ┆ ---         ┆ ---             ┆ ---                   │
    │ f64       ┆ f64         ┆ f64             ┆ f64                   │
    ╞═══════════╪═════════════╪═════════════════╪═══════════════════════╡
    │ 0.25      ┆ 0.388889    ┆ 0.333333        ┆ 0.166667              │
    │ 0.5       ┆ 0.166667    ┆ 0.0             ┆ 0.166667              │
    └───────────┴─────────────┴─────────────────┴───────────────────────┘
    """
    asked = _PERCENTS if thresholds is None else _checked(thresholds)
    level = arguments.level(level)
    metrics: ThresholdMetrics = ThresholdMetrics(None, prevalence)
    rows: Rows = read_rows(frame, label, score, weight, by, pos_label).as_probabilities()
    curve = curve_frame(rows, asked, squares=True)
    chosen = curve.filter(pl.col("threshold").is_in(asked)).sort("threshold")
    variances = partial(_variances, prevalence=prevalence)
    steps: list[Step] = [*metrics.steps, _benefits, variances, partial(_limits, level=level)]
    table = in_columns(chosen, steps)
    return like_input(frame, rows.result(table, _COLUMNS))


def _checked(thresholds: object) -> list[float]:
    asked = arguments.numbers("thresholds", thresholds, low=0, high=1)
    if asked[-1] == 1:
        msg = "`thresholds` must be less than 1, where the odds are infinite; found 1.0"
        raise ValueError(msg)
    return asked


def _odds(field: Fields) -> pl.Expr:
    return field("threshold") / (1 - field("threshold"))


def _benefits(field: Fields) -> dict[str, pl.Expr]:
    """Add the net benefit of selecting all, the standardised one, and interventions avoided."""
    net, prevalence, odds = field(_NET), field("prevalence"), _odds(field)
    of_all = prevalence - odds * (1 - prevalence)
    return {
        _ALL: of_all,
        _STANDARDIZED: pl.when(prevalence > 0).then(net / prevalence),
        _AVOIDED: pl.when(odds > 0).then((net - of_all) / odds),
    }


def _variances(field: Fields, prevalence: float | None) -> dict[str, pl.Expr]:
    """Add the variances of both net benefits, from the sums of squares of weights in the cells.

    They are null where they are no more than errors of rounding.
    """
    squares = [field(name) for name in SQUARES]
    parts_of = _in_sample(field) if prevalence is None else _in_population(field, prevalence)
    known = is_exact(pl.sum_horizontal(squares))
    found: dict[str, pl.Expr] = {}
    for name, parts in parts_of.items():
        variance, size = pl.lit(0.0), pl.lit(0.0)
        for square, (value, expected) in zip(squares, parts, strict=True):
            variance += square * (value - expected) ** 2
            size += square * (value**2 + expected**2)
        found[_variance(name)] = pl.when(known & (variance > ROUNDING * size)).then(variance)
    return found


def _limits(field: Fields, level: float) -> dict[str, pl.Expr]:
    errors = {name: field(_variance(name)).sqrt() for name in (_NET, _STANDARDIZED)}
    return normal_limits(field, errors, level)


def _in_sample(field: Fields) -> dict[str, list[tuple[pl.Expr, pl.Expr]]]:
    """Return for a row in each cell its contribution, and the one expected of any row."""
    net, standardized, prevalence = field(_NET), field(_STANDARDIZED), field("prevalence")
    total = field(POSITIVES) + field(NEGATIVES)
    # Of a row in each of `CELLS`: what it adds to the net benefit, and whether it is positive.
    rows = ((pl.lit(1.0), 1.0), (-_odds(field), 0.0), (pl.lit(0.0), 1.0), (pl.lit(0.0), 0.0))
    return {
        _NET: [(ratio(gain, total), ratio(net, total)) for gain, _ in rows],
        _STANDARDIZED: [
            (
                ratio(gain, total) / prevalence,
                ratio(net + standardized * (positive - prevalence), total) / prevalence,
            )
            for gain, positive in rows
        ],
    }


def _in_population(field: Fields, prevalence: float) -> dict[str, list[tuple[pl.Expr, pl.Expr]]]:
    """Return the same for a given prevalence: positives and negatives are separate samples."""
    positive = ratio(pl.lit(prevalence), field(POSITIVES))
    negative = -ratio(pl.lit(1 - prevalence), field(NEGATIVES)) * _odds(field)
    # In the order of `CELLS`.
    parts = [
        (scale * selected, scale * field(rate))
        for selected in (1.0, 0.0)
        for scale, rate in ((positive, "tpr"), (negative, "fpr"))
    ]
    divided = [(value / prevalence, mean / prevalence) for value, mean in parts]
    return {_NET: parts, _STANDARDIZED: divided}


def _variance(name: str) -> str:
    return f"__variance_of_{name}"
