"""Decision curves: the net benefit of selecting by a score, at each threshold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl

from polars_wroc import checks
from polars_wroc.arrays import Array
from polars_wroc.bounds import Between, Prevalence
from polars_wroc.calls import check_call
from polars_wroc.inputs.columns import IntoColumn, IntoWeight
from polars_wroc.inputs.designs import Design
from polars_wroc.inputs.rows import IntoColumns
from polars_wroc.looks import ConfidenceLevel
from polars_wroc.metrics.mean_sums import require_all_probabilities, require_probabilities
from polars_wroc.queries import FrameT
from polars_wroc.rows import Rows, SegmentColumns, read_columns, table_of_segments
from polars_wroc.stats.estimates import Limits, limit_columns, name_limits
from polars_wroc.stats.levels import Level
from polars_wroc.stats.net_benefit import estimate_standardized
from polars_wroc.steps import SegmentRows
from polars_wroc.thresholds.cells import split_segments, sum_cells_at, sum_cells_at_each
from polars_wroc.thresholds.limits import DecidedRows, limit_net_benefit, measure_metrics
from polars_wroc.thresholds.registry import RATES

_COLUMNS = (
    "threshold",
    "selection_rate",
    "prevalence",
    *name_limits("net_benefit"),
    "net_benefit_all",
    *name_limits("standardized_net_benefit"),
    "interventions_avoided",
)
# The cells of the selected rows.
_SELECTED = ("tp", "fp")
_PERCENTS = [percent / 100 for percent in range(1, 100)]


@check_call
def decision_curve(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    thresholds: float | Sequence[float] | None = None,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    prevalence: Prevalence | None = None,
    level: ConfidenceLevel = 0.95,
    design: Design | None = None,
) -> FrameT:
    """Return the net benefit of selecting rows above each threshold, per group.

    Acting on a probability is worth it if ``net_benefit`` is above ``net_benefit_all`` and above 0,
    the net benefit of selecting nobody. Draw it with `decision_chart`.

    The main columns are:

    - the ``by`` columns (and ``model``), and ``threshold``;
    - ``net_benefit`` with limits: in true positives per row;
    - ``net_benefit_all``: the net benefit of selecting all rows;
    - ``standardized_net_benefit`` with limits: divided by the prevalence;
    - ``interventions_avoided``: net negatives per row that need not be selected, compared with
      selecting all.

    Parameters
    ----------
    frame, label, score, weight, by, pos_label, level, design
        As for `summary`; the score must lie between 0 and 1.
    thresholds
        One or several numbers from 0 to less than 1; None for 0.01 to 0.99 in steps of 0.01.
    prevalence
        Prevalence in the target population, strictly between 0 and 1. None: as in the data.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model) and threshold, sorted by the ``by`` columns, then by rising
        threshold. All numbers are Float64, also ``selection_rate`` and ``prevalence``. They are
        null where no row has weight, and with ``prevalence`` where a class has none; the
        standardized net benefit without positives; ``interventions_avoided`` at a threshold of 0;
        limits where the variance is unknown.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.ColumnNotFoundError
        As for `summary`; also for a threshold inside a bin of scores and, at collect, a score
        outside 0 to 1.

    Notes
    -----
    At the threshold ``t`` a false positive counts ``t / (1 - t)`` times as much as a true positive
    [1]_. Limits combine the intervals of the shares of true and false positives [2]_; they describe
    one curve, not a difference between curves.
    [Formulas](../explanation/statistics.md#decision_curve).

    References
    ----------
    .. [1] Vickers, A. J., Elkin, E. B. (2006), Medical Decision Making 26, 565-574.
    .. [2] Donner, A., Zou, G. Y. (2012), Statistical Methods in Medical Research 21, 347-359.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.4, 0.3, 0.1]})
    >>> curve = wroc.decision_curve(df, "y", "s", thresholds=[0.25, 0.5])
    >>> curve.select("threshold", "net_benefit", "net_benefit_all")
    shape: (2, 3)
    ┌───────────┬─────────────┬─────────────────┐
    │ threshold ┆ net_benefit ┆ net_benefit_all │
    │ ---       ┆ ---         ┆ ---             │
    │ f64       ┆ f64         ┆ f64             │
    ╞═══════════╪═════════════╪═════════════════╡
    │ 0.25      ┆ 0.388889    ┆ 0.333333        │
    │ 0.5       ┆ 0.166667    ┆ 0.0             │
    └───────────┴─────────────┴─────────────────┘
    """
    asked = _PERCENTS if thresholds is None else check_net_thresholds(thresholds)
    columns = read_columns(frame, label, score, weight, by, pos_label, design)
    measure = partial(measure_benefits, thresholds=np.array(asked), prevalence=prevalence)
    types = dict.fromkeys(_COLUMNS, pl.Float64())
    return table_of_segments(frame, columns, types, measure, level)


def check_net_thresholds(thresholds: object) -> list[float]:
    """Return thresholds in rising order, after a check that they have net benefits."""
    asked = checks.numbers("thresholds", thresholds, Between(0, 1))
    if asked[-1] == 1:
        checks.reject("thresholds", "be less than 1, where the odds are infinite", "1.0")
    return asked


def measure_benefits(
    rows: Rows,
    segments: SegmentRows,
    thresholds: Array,
    level: Level,
    prevalence: float | None = None,
) -> Iterator[SegmentColumns]:
    """Yield the columns of the points of curves; thresholds rise within each segment.

    If a ``prevalence`` is given, they describe a population with it.
    """
    require_all_probabilities(rows)
    if rows.bins is not None:
        require_probabilities(rows.bins.high)
    number, sample = np.arange(segments.number), rows.sample
    if sample is None:
        descending = thresholds[::-1]
        cells = sum_cells_at_each(segments, descending, argument="thresholds")
        threshold = np.tile(descending, segments.number)
        decided = DecidedRows(threshold, cells, prevalence=prevalence).at(slice(None, None, -1))
        segment = np.repeat(number, len(descending))[::-1]
        yield SegmentColumns(segment, _measure_points(decided, level))
        return
    for part, some in split_segments(segments, sample):
        for each in thresholds:
            cells = sum_cells_at(some, each, sample, argument="thresholds")
            threshold = np.full(some.number, each)
            decided = DecidedRows(threshold, cells, sample.units, prevalence)
            yield SegmentColumns(number[part], _measure_points(decided, level))


def _measure_points(decided: DecidedRows, level: Level) -> dict[str, Array]:
    """Return the columns of the points of curves."""
    odds = decided.threshold / (1 - decided.threshold)
    values = measure_metrics(decided, ["selection_rate", "prevalence", "net_benefit"])
    net, prevalence = values["net_benefit"], values["prevalence"]
    net_of_all = prevalence - odds * (1 - prevalence)
    limits = limit_net_benefit(decided, level)
    if decided.prevalence is None:
        standardized_limits = _limit_standardized(decided, odds, level)
    else:
        standardized_limits = Limits(*(limit / decided.prevalence for limit in limits))
    standardized = np.where(prevalence > 0, net / prevalence, np.nan)
    return {
        "threshold": decided.threshold,
        **values,
        **limit_columns("net_benefit", net, limits),
        "net_benefit_all": net_of_all,
        **limit_columns("standardized_net_benefit", standardized, standardized_limits),
        "interventions_avoided": np.where(odds > 0, (net - net_of_all) / odds, np.nan),
    }


def _limit_standardized(decided: DecidedRows, odds: Array, level: Level) -> Limits:
    """Return the limits of the net benefit divided by the prevalence of the rows."""
    cells = decided.cells
    found = estimate_standardized(cells.weight, cells.squares, odds)
    if decided.units is not None:
        positives = RATES["tpr"].cells
        gained, lost = (cells.influence(decided.units, (cell,), positives) for cell in _SELECTED)
        influence = gained - lost * odds
        error = np.sqrt(decided.units.variance(influence))
        found = replace(found, error=error, df=decided.units.df(influence))
    tp, fp, fn, tn = cells.rows
    enough = level.enough(tp + fn, fp + tn)
    return found.limits(np.where(enough, level.quantile(found.df), np.nan))
