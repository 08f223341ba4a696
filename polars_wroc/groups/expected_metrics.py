"""Metrics implied by the predicted probabilities of rows, before or after labels are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import polars as pl

from polars_wroc import checks
from polars_wroc.arrays import Array, Mask, cumulate
from polars_wroc.calls import check_call
from polars_wroc.inputs.columns import IntoColumn, IntoWeight, numeric
from polars_wroc.inputs.designs import Design, read_design
from polars_wroc.inputs.expressions import as_column, typed_column
from polars_wroc.inputs.rows import IntoColumns, polars_frame
from polars_wroc.looks import ConfidenceLevel
from polars_wroc.metrics.mean_sums import require_probabilities, sum_in_units
from polars_wroc.queries import FrameT
from polars_wroc.ranking.curve import CELLS
from polars_wroc.rows import Rows, Sampling, check_level, read_columns, table_of
from polars_wroc.stats.expectations import ExpectedAuc, net_benefit_slopes, rate_slopes
from polars_wroc.stats.families import Adjustment, adjust_p_values
from polars_wroc.stats.levels import Level
from polars_wroc.stats.rates import Count
from polars_wroc.steps import RowPowers, SegmentRows, StepPlaces, descend, find_steps, map_segments
from polars_wroc.thresholds.cells import select_rows
from polars_wroc.thresholds.limits import make_matrix
from polars_wroc.thresholds.registry import RATES, THRESHOLD_METRICS
from polars_wroc.thresholds.rules import read_number

_AUC, _NET_BENEFIT = "auc", "net_benefit"
_RATES = ("tpr", "fpr", "ppv", "npv", "accuracy", _NET_BENEFIT)
# With fewer expected effective rows in a class or a cell there are no limits.
LEAST_ROWS = 10
_EXPECTED = ("expected", "expected_low", "expected_high")
_OBSERVED = ("value", "excess", "excess_p_value", "excess_p_adjusted")
_SIZES: Mapping[str, Any] = {
    "n": pl.Int64,
    "n_pos_expected": pl.Float64,
    "n_neg_expected": pl.Float64,
    "n_impossible": pl.Int64,
}
_SCORE, _PROBABILITY = "score", "probability"


@check_call
def expected_metrics(
    frame: FrameT,
    score: IntoColumn,
    *,
    probability: IntoColumn | None = None,
    label: IntoColumn | None = None,
    by: IntoColumns | None = None,
    threshold: float | None = None,
    weight: IntoWeight | None = None,
    pos_label: object = None,
    level: ConfidenceLevel = 0.95,
    adjust: Adjustment = "holm",
    design: Design | None = None,
) -> FrameT:
    """Return the AUC and the rates that probabilities imply, with or without labels.

    Use it before labels arrive, or to check labels against probabilities: labels that give clearly
    other values show that the probabilities are wrong; agreement shows only that this metric
    agrees.

    The main columns are:

    - the ``by`` columns, and ``metric``;
    - ``expected``: the value that the probabilities imply;
    - ``expected_low, expected_high``: limits between which the value from labels should be;
    - with a ``label``: ``value``, from the labels; ``excess``, the value minus the expected one;
      and ``excess_p_value, excess_p_adjusted``, of the test that the excess is chance.

    Parameters
    ----------
    frame, by, weight, pos_label, level
        As for `summary`.
    score
        Column or numeric expression that ranks the rows, and to which the threshold applies.
    probability
        Column or expression of the probability that a row is positive; None takes the score.
    label
        Labels to compare the expected values with.
    threshold
        Rows with at least this score are selected. Without it there is only the AUC.
    adjust
        As for `group_gaps`.
    design
        Clusters or a `Survey`; needs a ``label``, since only labels say how rows depend on each
        other.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group and metric, sorted by the ``by`` columns: ``auc`` and, with a
        ``threshold``, ``tpr, fpr, ppv, npv, accuracy, net_benefit``. ``metric`` is String, the
        numbers are Float64. After the main columns come ``n`` (Int64), the rows used;
        ``n_pos_expected, n_neg_expected``, the weight of each class that the probabilities imply;
        and ``n_impossible`` (Int64; null without labels), positives with a probability of 0 and
        negatives with 1.

        ``expected`` is null where a class or the denominator has no weight. Limits are null with
        fewer than ten expected effective rows of a class, or in a cell that a rate uses.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.ColumnNotFoundError
        As for `summary`; also for a probability outside 0 to 1.

    Notes
    -----
    The expected AUC is the expected weight of correctly ranked pairs divided by the expected weight
    of all pairs [1]_. [Formulas](../explanation/statistics.md#expected_metrics).

    References
    ----------
    .. [1] van Klaveren, D. et al. (2016), Statistics in Medicine 35, 4136-4152.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"p": [0.9, 0.8, 0.5, 0.3, 0.1] * 20})
    >>> table = wroc.expected_metrics(df, "p", threshold=0.5)
    >>> table.select("metric", pl.col("expected", "expected_low", "expected_high").round(3)).head(3)
    shape: (3, 4)
    ┌────────┬──────────┬──────────────┬───────────────┐
    │ metric ┆ expected ┆ expected_low ┆ expected_high │
    │ ---    ┆ ---      ┆ ---          ┆ ---           │
    │ str    ┆ f64      ┆ f64          ┆ f64           │
    ╞════════╪══════════╪══════════════╪═══════════════╡
    │ auc    ┆ 0.839    ┆ 0.765        ┆ 0.912         │
    │ tpr    ┆ 0.846    ┆ null         ┆ null          │
    │ fpr    ┆ 0.333    ┆ null         ┆ null          │
    └────────┴──────────┴──────────────┴───────────────┘
    """
    given = read_design(design)
    if given.is_given and label is None:
        checks.reject("design", "come with a `label`", "no label")
    if given.replicate_weights is not None:
        found = "replicate weights: give the clusters that they were made from instead"
        checks.reject("design", "be clusters or a `Survey`", found)
    source = polars_frame(frame)
    columns = read_columns(
        source,
        label,
        _read_scores(source, score, probability),
        weight=weight,
        by=by,
        pos_label=pos_label,
        design=design,
    )
    plan = _Plan(
        columns.keys,
        None if threshold is None else read_number(threshold),
        check_level(level, frame),
        adjust,
        labelled=label is not None,
        argument=_SCORE if probability is None else _PROBABILITY,
    )
    numbers = _EXPECTED + (_OBSERVED if label is not None else ())
    types = {"metric": pl.String, **dict.fromkeys(numbers, pl.Float64), **_SIZES}
    columns.check_names(types)
    return table_of(frame, columns, columns.key_types | types, plan.tabulate)


def _read_scores(
    frame: pl.DataFrame | pl.LazyFrame, score: IntoColumn, probability: IntoColumn | None
) -> list[pl.Expr]:
    """Return the score and the probability as columns, which may be the same."""
    argument = _SCORE if probability is None else _PROBABILITY
    ranking = typed_column(_SCORE, as_column(_SCORE, score), frame.lazy())
    chance = score if probability is None else probability
    chances = typed_column(argument, as_column(argument, chance), frame.lazy())
    for typed in (ranking, chances):
        numeric(typed)
    # Thresholds are compared with a score in its own type.
    return [ranking.column.alias(_SCORE), chances.column.alias(_PROBABILITY)]


@dataclass(frozen=True)
class _Plan:
    """The metrics to compute: of ranks and, at a threshold, of decisions, with tests of labels.

    ``argument`` is the argument with the probabilities.
    """

    keys: Sequence[str]
    threshold: float | None
    level: ConfidenceLevel
    adjust: Adjustment
    labelled: bool
    argument: str

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics."""
        if self.threshold is None:
            return (_AUC,)
        # Net benefit weighs errors by the odds of the threshold.
        has_odds = 0 <= self.threshold < 1
        return (_AUC, *(name for name in _RATES if has_odds or name != _NET_BENEFIT))

    def tabulate(self, rows: Rows) -> pl.DataFrame:
        """Return a row for each segment and metric."""
        chances = rows.scores[_PROBABILITY]
        require_probabilities(chances, self.argument)
        complete = rows.complete_in_all
        segments = descend(rows.segments(self.keys, _SCORE, complete=complete, ranks=True))
        level = rows.level(self.level)

        def measure(part: SegmentRows) -> dict[str, Array]:
            label = part.weight > 0 if self.labelled else None
            forecast = _Forecast(part, chances[part.order], label, rows.sample)
            return _measure_segments(forecast, self.threshold, self.metrics, level)

        parts = map_segments(segments, measure) if rows.sample is None else [measure(segments)]
        table = pl.DataFrame(
            {name: np.concatenate([part[name] for part in parts]).ravel() for name in parts[0]},
            nan_to_null=True,
        ).with_columns(metric=pl.Series(np.tile(self.metrics, segments.number)))
        if self.labelled:
            p_value = table["excess_p_value"].to_numpy()
            adjusted = pl.Series("excess_p_adjusted", adjust_p_values(p_value, self.adjust))
            table = table.with_columns(adjusted)
        keys = segments.segments
        if not keys.width:
            return table
        return keys[np.repeat(np.arange(segments.number), len(self.metrics))].hstack(table)


@dataclass(frozen=True)
class _Forecast:
    """Rows of segments in descending order of the score, with probabilities and perhaps labels."""

    rows: SegmentRows
    chance: Array
    label: Mask | None
    sample: Sampling | None

    @cached_property
    def powers(self) -> RowPowers:
        """The number of rows that each row stands for, and sums of powers of their weights."""
        return self.rows.powers

    @property
    def weight(self) -> Array:
        """The weight of each row."""
        return self.powers.weight

    @cached_property
    def own(self) -> Array:
        """The variance of the weight of each row that is positive, w^2 p (1 - p)."""
        return self.powers.squares * self.chance * (1 - self.chance)

    @cached_property
    def whole(self) -> Count:
        """All rows of each segment."""
        n, weight, squares = (self.rows.total(each) for each in self.powers)
        return Count(weight, squares, n)

    @cached_property
    def classes(self) -> tuple[Array, Array]:
        """The expected weights of the positives and of the negatives of each segment."""
        total = self.rows.total
        return total(self.weight * self.chance), total(self.weight * (1 - self.chance))

    def count_impossible(self) -> Array:
        """Return the numbers of rows whose label contradicts a probability of 0 or 1."""
        if self.label is None:
            return np.full(self.rows.number, np.nan)
        return self.rows.total(self.powers.n * (np.abs(self.chance - self.label) == 1))

    def error(self, slopes: Array) -> Array:
        """Return the standard error of a metric from its derivatives by the labels of rows."""
        if self.sample is None:
            return np.sqrt(self.rows.total(self.own * slopes**2))
        assert self.label is not None
        units = self.sample.units
        off = sum_in_units(self.rows, self.sample, (self.label - self.chance) * slopes)
        mean = units.ratio_influence(off, self._unit_weights)
        return np.sqrt(units.variance(mean)) * self.whole.weight

    @property
    def df(self) -> Array | float:
        """The degrees of freedom of the design."""
        if self.sample is None:
            return np.inf
        units = self.sample.units
        return units.df(units.ratio_influence(self._unit_weights, self._unit_weights))

    @cached_property
    def _unit_weights(self) -> Array:
        assert self.sample is not None
        return sum_in_units(self.rows, self.sample, np.ones(len(self.weight)))


@dataclass(frozen=True)
class _Expected:
    """A metric of segments: implied by probabilities, and computed from labels.

    ``error`` is the standard error of the metric computed from labels if the probabilities are
    right, and ``fewest`` the least expected weight of a class or in a cell.
    """

    metric: str
    value: Array
    observed: Array
    error: Array
    fewest: Array


def _measure_segments(
    forecast: _Forecast, threshold: float | None, metrics: Sequence[str], level: Level
) -> dict[str, Array]:
    """Return columns with a row for each segment and a column for each metric."""
    expected = [_measure_auc(forecast)]
    if threshold is not None:
        expected += _measure_rates(forecast, threshold, metrics[1:])
    columns = [_describe(each, forecast, level) for each in expected]
    return {name: np.stack([each[name] for each in columns], axis=1) for name in columns[0]}


def _describe(expected: _Expected, forecast: _Forecast, level: Level) -> dict[str, Array]:
    """Return the columns of a metric."""
    whole, df = forecast.whole, forecast.df
    # W / S effective rows per weight
    enough = expected.fewest * (whole.weight / whole.squares) >= LEAST_ROWS
    is_known = enough & level.enough(whole.rows) & ~np.isnan(whole.inverse_size)
    error = np.where(is_known, expected.error, np.nan)
    margin = level.quantile(df) * error
    low, excess = expected.value - margin, expected.observed - expected.value
    return {
        "n": whole.rows,
        "n_pos_expected": forecast.classes[0],
        "n_neg_expected": forecast.classes[1],
        "n_impossible": forecast.count_impossible(),
        "expected": expected.value,
        # A net benefit may be below 0.
        "expected_low": low if expected.metric == _NET_BENEFIT else np.maximum(low, 0.0),
        "expected_high": np.minimum(expected.value + margin, 1.0),
        "value": expected.observed,
        "excess": excess,
        "excess_p_value": level.p_value(excess / np.where(error > 0, error, np.nan), df),
    }


def _measure_auc(forecast: _Forecast) -> _Expected:
    """Return the expected AUC of each segment."""
    rows, weight = forecast.rows, forecast.weight
    places = find_steps(rows)

    def rank(positives: Array, negatives: Array) -> Array:
        """Return the weight of correctly ranked pairs, ties counting half."""
        return rows.total(positives * _find_lower(rows, places, negatives))

    right = rank(weight * forecast.chance, weight * (1 - forecast.chance))
    auc = ExpectedAuc(*forecast.classes, right, rows.total(forecast.own))
    error = forecast.error(auc.slopes(_find_lower(rows, places, weight), rows.spread))
    observed = np.full(rows.number, np.nan)
    if forecast.label is not None:
        positives, negatives = weight * forecast.label, weight * ~forecast.label
        observed = rank(positives, negatives) / rows.total(positives) / rows.total(negatives)
    return _Expected(_AUC, auc.value, observed, error, np.minimum(*forecast.classes))


def _find_lower(rows: SegmentRows, places: StepPlaces, values: Array) -> Array:
    """Return for each row the sum of values at lower scores, plus half the sum at its score."""
    firsts, starts = places
    pooled = values if len(firsts) == len(values) else np.add.reduceat(values, firsts)
    filled = starts[:-1][np.diff(starts) > 0]
    lower = pooled / 2 - (cumulate(pooled, filled) if len(filled) else 0.0)
    if len(firsts) < len(values):
        lower = np.repeat(lower, np.diff(firsts, append=len(values)))
    return np.asarray(lower + rows.spread(rows.total(values)))


def _measure_rates(
    forecast: _Forecast, threshold: float, metrics: Sequence[str]
) -> list[_Expected]:
    """Return the expected metrics of decisions at a threshold."""
    rows = forecast.rows
    selected = select_rows(rows, threshold)
    matrix = partial(make_matrix, threshold=np.full(rows.number, threshold))
    cells, observed = _sum_cells(forecast, forecast.chance, selected), None
    if forecast.label is not None:
        observed = matrix(*_sum_cells(forecast, forecast.label, selected))
    own = [rows.total(np.where(there, forecast.own, 0.0)) for there in (selected, ~selected)]
    found = []
    for name in metrics:
        if name == _NET_BENEFIT:
            slopes = net_benefit_slopes(cells, threshold / (1 - threshold))
        else:
            slopes = rate_slopes(cells, _places(RATES[name].counted), _places(RATES[name].others))
        if forecast.sample is None:
            # Rows with the same decision have the same slope.
            error = np.sqrt(own[0] * slopes.selected**2 + own[1] * slopes.rejected**2)
        else:
            both = rows.spread(slopes.selected), rows.spread(slopes.rejected)
            error = forecast.error(np.where(selected, *both))
        formula = THRESHOLD_METRICS[name].formula
        value = np.full(rows.number, np.nan) if observed is None else formula(observed)
        expected = formula(matrix(*cells))
        found.append(_Expected(name, expected, value, error, cells.min(axis=0)))
    return found


def _places(cells: Sequence[str]) -> list[int]:
    return [CELLS.index(cell) for cell in cells]


def _sum_cells(forecast: _Forecast, positive: Array | Mask, selected: Mask) -> Array:
    """Return the weights in tp, fp, fn and tn; rows may be positive in part."""
    positives = forecast.weight * positive
    negatives = forecast.weight - positives
    return np.stack(
        [
            forecast.rows.total(np.where(is_there, weight, 0.0))
            for is_there in (selected, ~selected)
            for weight in (positives, negatives)
        ]
    )
