"""Pairs: a metric of segments beside the metric of their references.

One function for each kind of metric computes the reference from other segments. Rates and other
formulas of cells, mean losses and mean scores are computed from their rows together. AUCs are
averaged, weighted by pairs of a positive and a negative, since rows of different segments are never
compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from polars_wroc.arrays import Array, Mask
from polars_wroc.inputs.metric import Metric
from polars_wroc.metrics.auc_sums import AucSums
from polars_wroc.metrics.mean_sums import ROW_LOSSES
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.metrics.segments import Segments
from polars_wroc.records import map_arrays
from polars_wroc.stats.aucs import Auc, ClassMoments, average_aucs, combine, equal_aucs
from polars_wroc.stats.contrasts import (
    Contrast,
    DirectContrast,
    GapEstimate,
    credible_correlation,
)
from polars_wroc.stats.delta import evaluate
from polars_wroc.stats.designs import Influence, SamplingUnits
from polars_wroc.stats.estimates import Limits, Scale, Wald
from polars_wroc.stats.families import are_equivalent
from polars_wroc.stats.levels import Level, welch_df
from polars_wroc.stats.mean_differences import FEWEST_SCORES, compare_means
from polars_wroc.stats.means import BRIER_SCALE, LOG_LOSS_SCALE, covariance_of_means
from polars_wroc.stats.power import detectable_difference, detectable_gap, detectable_shift
from polars_wroc.stats.rates import Equality, Rate, equal_rates
from polars_wroc.stats.references import Reference
from polars_wroc.thresholds.limits import DecidedRows, cell_function, contrast_net_benefit
from polars_wroc.thresholds.registry import THRESHOLD_METRICS, RateMetric, ThresholdMetric

STANDARDIZED_MEAN_DIFFERENCE = "standardized_mean_difference"
NET_BENEFIT = "net_benefit"
# The inverse size of a known AUC, as a share of the other inverse size.
_NEGLIGIBLE = 1e-5
LOSS_SCALES: dict[str, Scale] = {"brier_score": BRIER_SCALE, "log_loss": LOG_LOSS_SCALE}


@dataclass(frozen=True)
class Pair:
    """An estimate of each segment and of its reference, with the test of their equality.

    ``reference_value`` is the metric of the reference, which may include the segment. ``df`` are
    the degrees of freedom of both in their contrast, and ``picked_df`` the ones for a picked
    reference. ``detect`` returns the smallest gap that a test at a quantile detects; ``few_events``
    marks rates whose limits may be too narrow. At repeated looks, limits of an ``is_wald`` estimate
    need enough rows: ``effective_rows`` of the segment and of the reference, if they are given, and
    then ``fewest_rows`` at a single look too. If the reference ``includes_own``, its estimate uses
    the segment's rows; otherwise it is estimated from other rows, and the gap is a share of the
    difference. ``are_equivalent`` says where limits of the gap are within a margin, and
    ``obstacles`` where nothing is shown and why.
    """

    contrast: Contrast | DirectContrast
    reference_value: Array
    df: tuple[Array | float, Array | float]
    picked_df: Array | float
    test: Callable[[Level], Equality]
    detect: Callable[[Array], Array]
    few_events: Mask
    is_wald: bool = False
    includes_own: bool = False
    effective_rows: tuple[Array, Array] | None = None
    fewest_rows: int = 0
    has_ratio: Mask | bool = True
    are_equivalent: Callable[[Limits, float], Mask] = are_equivalent
    obstacles: Sequence[tuple[Mask, str]] = ()


def pair_metrics(
    metrics: Mapping[str, Metric], segments: Segments, reference: Reference
) -> dict[tuple[str, ...], Pair]:
    """Return metrics of segments beside the metrics of their references, by their names.

    All rates are one pair, since a function of arrays of a few numbers takes as long as one of
    several times as many.
    """
    rates = {name: each for name, each in metrics.items() if isinstance(each, RateMetric)}
    pairs: dict[tuple[str, ...], Pair] = {
        (name,): pair_metric(each, segments, reference)
        for name, each in metrics.items()
        if name not in rates
    }
    if rates:
        compared = measure_rates([*rates.values()], segments, reference)
        pairs[tuple(rates)] = pair_rates(compared, reference)
    return pairs


def pair_metric(metric: Metric, segments: Segments, reference: Reference) -> Pair:
    """Return a metric that is no rate beside the metric of references."""
    if metric.name == NET_BENEFIT:
        return pair_net_benefits(segments, reference)
    if isinstance(metric, ThresholdMetric):
        return pair_cells(metric, segments, reference)
    if metric.name in ROW_LOSSES:
        return pair_losses(metric.name, segments, reference)
    if metric.name == STANDARDIZED_MEAN_DIFFERENCE:
        return pair_scores(segments, reference)
    return pair_aucs(segments, reference)


def make_pair(
    contrast: Contrast | DirectContrast,
    detect: Callable[[Array], Array],
    df: Array | float = np.inf,
) -> Pair:
    """Return a pair whose p-value is the level at which a limit of the gap is 0."""

    def test(level: Level) -> Equality:
        return Equality(contrast.p_value(level, df), np.broadcast_to(df, contrast.gap.shape))

    none = np.zeros(contrast.gap.shape, dtype=bool)
    return Pair(contrast, contrast.reference, (df, df), df, test, detect, none)


@dataclass(frozen=True)
class ComparedRates:
    """Rates of segments and of their references, and their correlation under a design."""

    own: Rate
    other: Rate
    correlation: Array


def measure_rates(
    metrics: Sequence[RateMetric], segments: Segments, reference: Reference
) -> ComparedRates:
    """Return rates of segments and of their references, all segments of one metric after another.

    With a design, the degrees of freedom of a reference are those of the difference.
    """
    units = segments.units
    cells, all_cells = map_arrays((segments.cells, segments.all_cells), reference.add_others)
    others = replace(segments, cells=cells, all_cells=all_cells)
    own, other = segments.rates(metrics), others.rates(metrics)
    if units is None:
        return ComparedRates(own, other, np.zeros_like(own.value))
    relations = []
    for metric in metrics:
        both = segments.cells_of(metric), others.cells_of(metric)
        influences = [each.influence(units, metric.counted, metric.cells) for each in both]
        relations.append(_relate(units, *influences))
    correlation, df = np.concatenate(relations, axis=-1)
    return ComparedRates(own, replace(other, design_df=df), correlation)


def pair_rates(rates: ComparedRates, reference: Reference) -> Pair:
    """Return rates of segments beside the rates of their references."""
    own, other = rates.own, rates.other
    share = _share_of_others(own.all.weight, other.all.weight, reference)
    contrast = Contrast(own.estimate(), other.estimate(), share, rates.correlation)
    df = np.inf if other.design_df is None else other.design_df
    pair = make_pair(
        contrast, lambda quantile: detectable_gap(own.sample(), other.sample(), quantile), df
    )
    pair = replace(pair, few_events=own.has_few_events | other.has_few_events)
    if other.design_df is not None:
        return pair
    variances = [each.value * each.complement * each.inverse_size for each in (own, other)]
    return replace(
        pair,
        df=(own.df, other.df),
        picked_df=welch_df(variances[0], own.df, variances[1], other.df),
        test=lambda level: equal_rates(own, other, level),
    )


def pair_aucs(segments: Segments, reference: Reference) -> Pair:
    """Return the AUC of segments beside the mean AUC of their references, weighted by pairs."""
    assert segments.aucs is not None
    own, pairs, units = segments.auc, relative_pairs(segments.aucs), segments.units
    other = average_reference(own, pairs, reference)
    correlation: Array | float = 0.0
    df: Array | float = np.inf
    if units is not None:
        assert segments.influence is not None
        influence = segments.influence.average(
            lambda values: reference.average_others(values, pairs)
        )
        correlation, df = _relate(units, segments.influence, influence)
        other = replace(other, design_variance=units.variance(influence), df=df)
    share = _share_of_others(pairs, reference.add_others(pairs), reference)
    slack = share * find_slack(segments.aucs, pairs, reference)
    contrast = Contrast(own.estimate(), other.estimate(), share, correlation, slack)
    pair = make_pair(contrast, lambda quantile: detect_auc(own, other, quantile), df)
    pair = replace(pair, reference_value=_reference_auc(contrast))
    if units is not None:
        return pair
    return replace(pair, test=lambda level: equal_aucs(own, other, level))


def _relate(units: SamplingUnits, own: Influence, other: Influence) -> tuple[Array, Array]:
    """Return the correlation of two statistics under a design, and the df of their difference."""
    covariance = units.covariance(own, other)
    correlation = credible_correlation(covariance, units.variance(own), units.variance(other))
    return correlation, units.df(own, other)


def _share_of_others(own: Array, others: Array, reference: Reference) -> Array | float:
    """Return the gap as a share of the gap to others, if a reference includes the segment."""
    return others / (own + others) if reference.includes_own else 1.0


def pair_cells(metric: ThresholdMetric, segments: Segments, reference: Reference) -> Pair:
    """Return a metric of the cells of segments beside the metric of their references."""
    assert segments.cells is not None
    assert segments.decisions is not None
    function = cell_function(metric, np.full(segments.number, segments.decisions.threshold))
    own_cells = segments.cells
    other_cells = own_cells.combine(lambda values: _add_reference(values, reference))
    own, other = (
        evaluate(function, cells.weight, cells.squares, cells.rows)
        for cells in (own_cells, other_cells)
    )
    if segments.units is None:
        covariance = np.zeros(segments.number)
        if reference.includes_own:
            covariance = own.covariance(other, own_cells.squares)
        estimates = own.estimate(), other.estimate()
        df = np.minimum(estimates[0].df, estimates[1].df)
        return _pair_walds(*estimates, covariance, df, reference)
    units = segments.units
    assert own_cells.units is not None
    assert other_cells.units is not None
    influences = own.influence(units, own_cells.units), other.influence(units, other_cells.units)
    df = _find_df(units, influences[0], own_cells.unit_present, reference)
    estimates = (
        own.estimate(units.variance(influences[0]), units.df(influences[0])),
        other.estimate(units.variance(influences[1]), df),
    )
    return _pair_walds(*estimates, units.covariance(*influences), df, reference)


def pair_net_benefits(segments: Segments, reference: Reference) -> Pair:
    """Return the net benefits of segments, with limits, beside those of their references."""
    # Detectable gaps and correlations come from errors by the delta method.
    pair = pair_cells(THRESHOLD_METRICS[NET_BENEFIT], segments, reference)
    assert isinstance(pair.contrast, Contrast)
    assert segments.cells is not None
    assert segments.decisions is not None
    thresholds = np.full(segments.number, segments.decisions.threshold)
    own, other = (
        GapEstimate(contrast_net_benefit(DecidedRows(thresholds, cells, segments.units)))
        for cells in (
            segments.cells,
            segments.cells.combine(lambda values: _add_reference(values, reference)),
        )
    )
    contrast = Contrast(own, other, correlation=pair.contrast.correlation)
    df = np.minimum(own.df, other.df)
    limited = make_pair(contrast, pair.detect, df)
    return replace(limited, is_wald=True, includes_own=reference.includes_own)


def pair_losses(name: str, segments: Segments, reference: Reference) -> Pair:
    """Return the mean loss of segments beside the mean loss of their references."""
    sums = (
        segments.losses[name],
        segments.losses[name].combine(lambda values: _add_reference(values, reference)),
    )
    own, other = (each.mean(segments.units) for each in sums)
    scale = LOSS_SCALES[name]
    if segments.units is None:
        covariance = np.zeros(segments.number)
        if reference.includes_own:
            shared = own.whole, own.cross, own.cross
            covariance = covariance_of_means(own, other, own.second, shared)
        df = np.minimum(own.df, other.df)
    else:
        units = segments.units
        influences = [each.influence(units) for each in sums]
        assert sums[0].unit_whole is not None
        df = _find_df(units, influences[0], sums[0].unit_whole, reference)
        other = replace(other, design_df=df)
        covariance = units.covariance(*influences)
    slopes = scale.slope(own.value) * scale.slope(other.value)
    estimates = own.estimate(scale), other.estimate(scale)
    return _pair_walds(*estimates, covariance / slopes, df, reference)


def _find_df(
    units: SamplingUnits, influence: Influence, weight: Array, reference: Reference
) -> Array:
    """Return degrees of freedom of segments and of their references.

    ``weight`` is the weight of each sampling unit in each segment.
    """
    others = reference.add_others(weight)
    return units.df(influence, units.ratio_influence(others, others))


def _add_reference(values: Array, reference: Reference) -> Array:
    """Return the sums of values over references, which may include the segment itself."""
    others = reference.add_others(values)
    return values + others if reference.includes_own else others


def _pair_walds(
    own: Wald, other: Wald, covariance: Array, df: Array | float, reference: Reference
) -> Pair:
    """Return a pair of two values with errors and a covariance on a scale."""
    correlation = covariance / own.error / other.error
    correlation = np.where(np.isfinite(correlation), np.clip(correlation, -1.0, 1.0), 0.0)
    pair = make_pair(
        Contrast(own, other, correlation=correlation),
        lambda quantile: detectable_difference(own, other, quantile, correlation=correlation),
        df,
    )
    return replace(pair, is_wald=True, includes_own=reference.includes_own)


def pair_scores(segments: Segments, reference: Reference) -> Pair:
    """Return the mean scores of segments beside the mean scores of their references.

    Scores are distances from the mean of all scores, in standard deviations.
    """
    assert segments.scores is not None
    weight = segments.scores.first[0]
    share = _share_of_others(weight, reference.add_others(weight), reference)
    difference = compare_means(segments.scores, reference, segments.units)
    gap = difference.estimate(share)
    # A segment differs from all rows only through the other rows.
    overall = Reference("overall")
    from_rest = compare_means(segments.scores, Reference("rest"), segments.units)
    own = from_rest.estimate(_share_of_others(weight, overall.add_others(weight), overall))
    own = replace(own, value=segments.scores.mean)
    contrast = DirectContrast(own, difference.own - gap.value, gap)
    pair = make_pair(
        contrast, lambda quantile: detectable_shift(gap.standard_error, quantile), difference.df
    )
    return replace(
        pair,
        is_wald=True,
        effective_rows=difference.effective_rows,
        fewest_rows=FEWEST_SCORES,
    )


def pair_with_chance(auc: Auc, slack: Array) -> Pair:
    """Return AUCs, each known up to the slack, beside the AUC of a random score, 0.5."""
    half = np.where(np.isnan(auc.pos.h2), np.nan, 0.5)
    # The reference is known, as if measured in so many rows that its error does not matter; all
    # placement values are 0.5. An error of exactly 0 would divide likelihoods by 0.
    h2 = _NEGLIGIBLE * auc.pos.h2
    moments = ClassMoments(h2=h2, x1=h2 / 2, x2=h2 / 4, unweighted=h2, variance=h2)
    chance = Auc(half, half, moments, moments)
    contrast = Contrast(auc.estimate(), chance.estimate(), slack=slack)
    pair = make_pair(contrast, lambda quantile: detect_auc(auc, chance, quantile), auc.df)
    if auc.design_variance is not None:
        return pair
    return replace(pair, test=lambda level: equal_aucs(auc, chance, level))


def _reference_auc(contrast: Contrast) -> Array:
    """Return the AUC of references; if one side has no pairs it is the AUC of the other side."""
    own, other = contrast.own.value, contrast.other.value
    if np.all(contrast.share == 1):
        return other
    return np.where(np.isnan(own), other, np.where(np.isnan(other), own, contrast.reference))


def relative_pairs(aucs: AucSums) -> Array:
    """Return the number of pairs of a positive and a negative, up to a common factor.

    The number is 0 where a segment has no AUC.
    """
    # Divided by the largest, so that no product overflows or underflows.
    positives, negatives = (weight / weight.max(initial=0.0) for weight in aucs.weight)
    return np.where(np.isnan(aucs.auc), 0.0, positives * negatives)


def average_reference(auc: Auc, pairs: Array, reference: Reference) -> Auc:
    """Return the mean AUC of the reference segments of each segment, weighted by pairs."""
    if isinstance(reference.kind, int):
        return Auc(
            reference.add_others(auc.value),
            reference.add_others(auc.complement),
            combine(auc.pos, reference.add_others),
            combine(auc.neg, reference.add_others),
        )
    return average_aucs(auc, lambda values, power: reference.average_others(values, pairs, power))


def find_slack(aucs: AucSums, pairs: Array, reference: Reference) -> Array | float:
    """Return the largest error of a difference, since the order of scores in bins is unknown."""
    if aucs.lowest is None:
        return 0.0
    return aucs.slack + reference.average_others(aucs.slack, pairs)


def detect_auc(own: Auc, other: Auc, quantile: Array) -> Array:
    """Return the smallest gap below the AUC of the reference that a test detects."""
    return detectable_gap(own.sample(), other.sample(), quantile, least=ROC_AUC.least)
