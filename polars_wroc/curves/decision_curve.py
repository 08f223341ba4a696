"""Decision curves: the net benefit of selecting by a score, at each threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import IntoColumn, IntoWeight
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.rows import IntoColumns, Rows
from polars_wroc.plans.queries import Fields, FrameT, Step, in_columns, like_input
from polars_wroc.ranking.curve import CELLS, SQUARES, curve_frame, ratio
from polars_wroc.ranking.sorting import NEGATIVES, POSITIVES
from polars_wroc.stats.distributions import normal_quantile
from polars_wroc.stats.proportions import ROUNDING, is_exact
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
    limits = _Limits(prevalence, level)
    steps: list[Step] = [*metrics.steps, _benefits, limits.variances, limits.limits]
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


@dataclass(frozen=True)
class _Limits:
    """Limits of both net benefits, from the sums of squares of weights in the cells."""

    prevalence: float | None
    level: float

    def variances(self, field: Fields) -> dict[str, pl.Expr]:
        """Add the variances; null where they are no more than errors of rounding."""
        squares = [field(name) for name in SQUARES]
        influences = self._in_sample if self.prevalence is None else self._in_population
        known = is_exact(pl.sum_horizontal(squares))
        found: dict[str, pl.Expr] = {}
        for name, parts in influences(field).items():
            variance, size = pl.lit(0.0), pl.lit(0.0)
            for square, (value, expected) in zip(squares, parts, strict=True):
                variance += square * (value - expected) ** 2
                size += square * (value**2 + expected**2)
            found[_variance(name)] = pl.when(known & (variance > ROUNDING * size)).then(variance)
        return found

    def limits(self, field: Fields) -> dict[str, pl.Expr]:
        """Add the limits."""
        quantile = normal_quantile((1 + self.level) / 2)
        return {
            f"{name}_{end}": field(name) + side * quantile * field(_variance(name)).sqrt()
            for name in (_NET, _STANDARDIZED)
            for end, side in (("low", -1), ("high", 1))
        }

    def _in_sample(self, field: Fields) -> dict[str, list[tuple[pl.Expr, pl.Expr]]]:
        """Return for a row in each cell its contribution, and the one expected of any row."""
        net, standardized, prevalence = field(_NET), field(_STANDARDIZED), field("prevalence")
        total = field(POSITIVES) + field(NEGATIVES)
        gains = dict(zip(CELLS, (pl.lit(1.0), -_odds(field), *[pl.lit(0.0)] * 2), strict=True))
        positive = {"tp": 1.0, "fn": 1.0}
        return {
            _NET: [(ratio(gain, total), ratio(net, total)) for gain in gains.values()],
            _STANDARDIZED: [
                (
                    ratio(gain, total) / prevalence,
                    ratio(net + standardized * (positive.get(name, 0.0) - prevalence), total)
                    / prevalence,
                )
                for name, gain in gains.items()
            ],
        }

    def _in_population(self, field: Fields) -> dict[str, list[tuple[pl.Expr, pl.Expr]]]:
        """Return the same for a given prevalence: positives and negatives are separate samples."""
        assert self.prevalence is not None
        positive = ratio(pl.lit(self.prevalence), field(POSITIVES))
        negative = -ratio(pl.lit(1 - self.prevalence), field(NEGATIVES)) * _odds(field)
        scales = dict(zip(CELLS, (positive, negative) * 2, strict=True))
        rates = dict(zip(CELLS, ("tpr", "fpr") * 2, strict=True))
        parts = [
            (scale * (1.0 if name in {"tp", "fp"} else 0.0), scale * field(rates[name]))
            for name, scale in scales.items()
        ]
        divided = [(value / self.prevalence, mean / self.prevalence) for value, mean in parts]
        return {_NET: parts, _STANDARDIZED: divided}


def _variance(name: str) -> str:
    return f"__variance_of_{name}"
