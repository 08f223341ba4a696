"""Thresholds for each group that equalize error rates between groups, and their cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from polars_wroc.arrays import TOLERANCE, Array, Ints, Mask
from polars_wroc.bounds import MinRows, NonNegative
from polars_wroc.calls import check_call
from polars_wroc.inputs.columns import IntoColumn, IntoWeight
from polars_wroc.inputs.costs import Costs, read_costs
from polars_wroc.inputs.frames import require_groups
from polars_wroc.inputs.rows import IntoColumns
from polars_wroc.metrics.mean_sums import count_classes
from polars_wroc.queries import FrameT
from polars_wroc.ranking.curve import are_both_classes
from polars_wroc.ranking.hulls import find_corners
from polars_wroc.rows import Rows, SegmentColumns, read_columns, table_of_segments
from polars_wroc.steps import SegmentRows
from polars_wroc.thresholds.choice import choose_points, merge_segments, trace_weights
from polars_wroc.thresholds.rules import least_cost

Constraint: TypeAlias = Literal["equalized_odds", "equal_opportunity"]

_COLUMNS = (
    "upper_threshold",
    "lower_threshold",
    "lower_probability",
    "coin_probability",
    "coin_rate",
    "tpr",
    "fpr",
    "expected_cost",
    "overall_cost",
    "overall_cost_common",
    "overall_cost_unconstrained",
)


@check_call
def equalized_thresholds(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    by: IntoColumns,
    constraint: Constraint = "equalized_odds",
    cost_fn: NonNegative | None = None,
    cost_fp: NonNegative | None = None,
    weight: IntoWeight | None = None,
    pos_label: object = None,
    min_rows: MinRows = 0,
) -> FrameT:
    """Return thresholds that give all groups equal error rates at the least cost.

    Decisions are randomized between two thresholds or by a coin, so that each group can reach any
    point below the convex hull of its ROC curve [1]_.

    The main columns are:

    - the ``by`` columns (and ``model``);
    - ``upper_threshold, lower_threshold, lower_probability``: the thresholds, and the probability
      of using the lower one;
    - ``coin_probability, coin_rate``: the probability of deciding by a coin instead, and of the
      coin selecting a row; 0 without a coin;
    - ``tpr, fpr, expected_cost``: the results of the rule in the group;
    - ``overall_cost``: the cost over all groups.

    Parameters
    ----------
    frame, label, score, weight, by, pos_label
        As for `summary`.
    constraint
        ``"equalized_odds"``: the same tpr and fpr in all groups. ``"equal_opportunity"``: the same
        tpr.
    cost_fn, cost_fp
        Costs of both errors: see `rules.least_cost`. Without both, each error costs 1.
    min_rows
        Leave out groups with fewer rows in a class: the poor curve of a small group can limit the
        rates of all.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model), sorted by the ``by`` columns, with Float64 columns. The last
        two are ``overall_cost_common``, the cost of the best single threshold for all groups, and
        ``overall_cost_unconstrained``, the cost of the best threshold for each group. All costs are
        per row. Groups that are left out, or have no weight in a class, have null in all columns.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for costs out of range.

    Notes
    -----
    A row is selected with the probability ``coin_probability * coin_rate + (1 - coin_probability) *
    (lower_probability * (score >= lower_threshold) + (1 - lower_probability) * (score >=
    upper_threshold))``. On new data the rates differ by chance, and costs are likely to be higher.

    References
    ----------
    .. [1] Hardt, M., Price, E., Srebro, N. (2016), Advances in Neural Information Processing
       Systems 29.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame(
    ...     {
    ...         "g": ["a"] * 2 + ["b"] * 8,
    ...         "y": [1, 0, 1, 1, 1, 0, 1, 0, 0, 0],
    ...         "s": [0.9, 0.3] + [0.8] * 4 + [0.4] * 4,
    ...     }
    ... )
    >>> table = wroc.equalized_thresholds(df, "y", "s", by="g")
    >>> table.select("g", "upper_threshold", "lower_threshold", "tpr", "fpr")
    shape: (2, 5)
    ┌─────┬─────────────────┬─────────────────┬──────┬──────┐
    │ g   ┆ upper_threshold ┆ lower_threshold ┆ tpr  ┆ fpr  │
    │ --- ┆ ---             ┆ ---             ┆ ---  ┆ ---  │
    │ str ┆ f64             ┆ f64             ┆ f64  ┆ f64  │
    ╞═════╪═════════════════╪═════════════════╪══════╪══════╡
    │ a   ┆ 0.9             ┆ 0.3             ┆ 0.75 ┆ 0.25 │
    │ b   ┆ 0.8             ┆ 0.8             ┆ 0.75 ┆ 0.25 │
    └─────┴─────────────────┴─────────────────┴──────┴──────┘
    """
    require_groups(by)
    neither = cost_fn is None and cost_fp is None
    costs = read_costs(1, 1) if neither else read_costs(cost_fn, cost_fp)
    columns = read_columns(frame, label, score, weight=weight, by=by, pos_label=pos_label)

    def tabulate(_: Rows, segments: SegmentRows) -> list[SegmentColumns]:
        are_large = count_classes(segments).min(axis=0) >= min_rows
        rules = _find_rules(segments, are_large, constraint, costs)
        return [SegmentColumns(np.arange(segments.number), rules)]

    return table_of_segments(frame, columns, dict.fromkeys(_COLUMNS, pl.Float64()), tabulate)


class Edges(NamedTuple):
    """The edges of the hulls of some groups, in order from the origin within each group.

    Each edge belongs to a ``group``. The rates and thresholds have one row for the beginnings of
    the edges and one for their ends.
    """

    group: Ints
    fpr: Array
    tpr: Array
    threshold: Array

    @property
    def run(self) -> Array:
        """The growth of the fpr along each edge."""
        return np.asarray(self.fpr[1] - self.fpr[0])

    @property
    def rise(self) -> Array:
        """The growth of the tpr along each edge."""
        return np.asarray(self.tpr[1] - self.tpr[0])

    def find(self, rates: Array, target: float) -> Ints:
        """Return the first edge of each group on which a rate reaches the target."""
        is_inside = (rates[0] < target) & (target <= rates[1])
        begins_at_origin = (self.fpr[0] == 0) & (self.tpr[0] == 0)
        return np.flatnonzero(is_inside | (begins_at_origin & (target == 0)))

    def at(self, places: Ints) -> Edges:
        """Return some of the edges."""
        pairs = self.fpr[:, places], self.tpr[:, places], self.threshold[:, places]
        return Edges(self.group[places], *pairs)


@dataclass(frozen=True)
class GroupSizes:
    """The weights of the classes of each group, as shares of the weight of all groups."""

    positives: Array
    negatives: Array

    @property
    def prevalence(self) -> float:
        """The share of the positives of all groups."""
        return float(self.positives.sum())

    def cost(self, costs: Costs, groups: Ints, tpr: Array, fpr: Array) -> Array:
        """Return the contribution of errors in each group to the overall cost."""
        false_negatives = self.positives[groups] * (1 - tpr)
        return costs.fn * false_negatives + costs.fp * self.negatives[groups] * fpr


class Mixture(NamedTuple):
    """The edge of each group's decisions, the share along it, and a coin's probability."""

    edge: Ints
    share: Array
    coin_probability: Array
    coin_rate: Array


def _find_rules(
    segments: SegmentRows, are_large: Mask, constraint: Constraint, costs: Costs
) -> dict[str, Array]:
    """Return the columns of the table, NaN for groups that are left out."""
    found = {name: np.full(segments.number, np.nan) for name in _COLUMNS}
    points = trace_weights(segments)
    tp, fp, last = points.tp, points.fp, points.starts[1:] - 1
    positives, negatives = tp[last], fp[last]
    groups = np.flatnonzero(are_both_classes(positives, negatives) & are_large)
    overall = (positives[groups] + negatives[groups]).sum()
    # The sum of finite weights may overflow.
    if not len(groups) or not np.isfinite(overall):
        return found
    sizes = GroupSizes(positives[groups] / overall, negatives[groups] / overall)
    corners = np.union1d(points.starts[:-1], find_corners(tp, fp, points.starts))
    segment = np.searchsorted(points.starts, corners, side="right") - 1
    is_decided = np.isin(segment, groups)
    corners, segment = corners[is_decided], segment[is_decided]
    group = np.searchsorted(groups, segment)
    fpr, tpr = fp[corners] / negatives[segment], tp[corners] / positives[segment]
    threshold = points.threshold[corners]
    least_costs = np.full(len(groups), np.inf)
    np.minimum.at(least_costs, group, sizes.cost(costs, group, tpr, fpr))
    ends = np.flatnonzero(np.diff(group, prepend=-1) == 0)
    both = np.stack([ends - 1, ends])
    edges = Edges(group[ends], fpr[both], tpr[both], threshold[both])
    rules = _mix_thresholds(edges, _EQUALIZE[constraint](edges, sizes, costs.unit_costs))
    fnr, prevalence = 1 - rules["tpr"], sizes.positives / (sizes.positives + sizes.negatives)
    rules["expected_cost"] = costs.expected_cost(fnr, rules["fpr"], prevalence)
    shares = sizes.cost(costs, np.arange(len(groups)), rules["tpr"], rules["fpr"])
    rules["overall_cost"] = shares.sum(keepdims=True)
    rules["overall_cost_common"] = _find_common_cost(segments, groups, costs)
    rules["overall_cost_unconstrained"] = least_costs.sum()
    for name, values in rules.items():
        found[name][groups] = values
    return found


def _mix_thresholds(edges: Edges, mixture: Mixture) -> dict[str, Array]:
    """Return the decision rule of each group, and its rates."""
    edge, share, coin, coin_rate = edges.at(mixture.edge), *mixture[1:]
    upper, lower = edge.threshold
    fpr, tpr = (
        coin * coin_rate + (1 - coin) * _place_between(rates, share)
        for rates in (edge.fpr, edge.tpr)
    )
    return {
        "upper_threshold": np.where(share == 1, lower, upper),
        "lower_threshold": np.where(share == 0, upper, lower),
        "lower_probability": np.where(share == 0, 1.0, share),
        "coin_probability": coin,
        "coin_rate": coin_rate,
        "tpr": tpr,
        "fpr": fpr,
    }


def _find_common_cost(segments: SegmentRows, groups: Ints, costs: Costs) -> Array:
    """Return the cost of the best single threshold for some groups."""
    together = merge_segments(segments.at(np.isin(segments.segment, groups)))
    starts, _, tp, fp = trace_weights(together)
    best = choose_points(tp, fp, starts, least_cost(fn=costs.fn, fp=costs.fp))
    # Below 0 by rounding only
    missed = np.maximum(tp[-1] - tp[best], 0.0)
    both = tp[-1] + fp[-1]
    return np.asarray(costs.fn * (missed / both) + costs.fp * (fp[best] / both))


def equalize_odds(edges: Edges, sizes: GroupSizes, costs: Costs) -> Mixture:
    """Return the point of least cost that all groups can reach (Hardt, Price and Srebro, 2016).

    Along each edge the saved cost is a linear function of the fpr. All groups must reach the point,
    so the saving is the minimum of these lines, and the common fpr is where this is largest.
    """
    saved, spent = costs.fn * sizes.prevalence, costs.fp * (1 - sizes.prevalence)
    slope = edges.rise / edges.run
    height = saved * (edges.tpr[0] - slope * edges.fpr[0])
    is_line = np.isfinite(slope)
    target = find_highest(saved * slope[is_line] - spent, height[is_line])
    reached = edges.find(edges.fpr, target)
    edge = edges.at(reached)
    is_vertical = edge.run == 0
    share = np.where(is_vertical, 1.0, _find_share(target, edge.fpr))
    own = _place_between(edge.tpr, share)
    common = own.min()
    # On a vertical edge the common tpr is reached without a coin toss.
    share = np.where(is_vertical, _find_share(common, edge.tpr), share)
    # q target + (1 - q) own = common
    has_coin = ~is_vertical & (own - common > TOLERANCE)
    coin = np.where(has_coin, (own - common) / (own - target), 0.0)
    return Mixture(reached, share, coin, np.where(coin > 0, target, 0.0))


def equalize_tpr(edges: Edges, sizes: GroupSizes, costs: Costs) -> Mixture:
    """Return the points at the tpr above which costs exceed savings.

    The marginal cost of the tpr is the sum of the groups' marginal costs on their edges, and grows
    at each corner.
    """
    rising = np.flatnonzero(edges.rise > 0)
    edge = edges.at(rising)
    spent = costs.fp * sizes.negatives[edge.group] * edge.run / edge.rise
    is_first = np.diff(edge.group, prepend=-1) != 0
    growth = spent - np.where(is_first, 0.0, np.roll(spent, 1))
    order = np.argsort(edge.tpr[0], kind="stable")
    too_much = growth[order].cumsum() >= costs.fn * sizes.prevalence * (1 - TOLERANCE)
    target = float(edge.tpr[0][order][too_much].min(initial=1.0))
    reached = edge.find(edge.tpr, target)
    share = _find_share(target, edge.tpr[:, reached])
    none = np.zeros(len(reached))
    return Mixture(rising[reached], share, none, none)


_EQUALIZE: dict[Constraint, Callable[[Edges, GroupSizes, Costs], Mixture]] = {
    "equalized_odds": equalize_odds,
    "equal_opportunity": equalize_tpr,
}


def _place_between(rates: Array, share: Array) -> Array:
    """Return the rates at a share of each edge."""
    return np.asarray((1 - share) * rates[0] + share * rates[1])


def _find_share(target: float, rates: Array) -> Array:
    """Return where along an edge a rate reaches the target, rounded to an end if close to it."""
    share = (target - rates[0]) / (rates[1] - rates[0])
    return np.where(share < TOLERANCE, 0.0, np.where(share > 1 - TOLERANCE, 1.0, share))


def find_highest(slope: Array, height: Array) -> float:
    """Return the first place from 0 to 1 where the minimum of all lines is largest.

    ``height`` is the height of each line at 0.
    """
    # Lines of the lower envelope from left to right, and where each begins.
    envelope: list[tuple[float, float, float]] = []
    for place in np.lexsort((height, -slope)):
        own_slope, own_height, begin = float(slope[place]), float(height[place]), -np.inf
        # If several lines are parallel, only the first and lowest can be part of it.
        if envelope and envelope[-1][0] == own_slope:
            continue
        while envelope:
            last_slope, last_height, last_begin = envelope[-1]
            begin = (own_height - last_height) / (last_slope - own_slope)
            if begin > last_begin:
                break
            envelope.pop()
        envelope.append((own_slope, own_height, begin))
    stops = [begin for own_slope, _, begin in envelope if own_slope <= TOLERANCE]
    return min(max(stops[0] if stops else 1.0, 0.0), 1.0)
