"""The metrics by which groups are compared, and the table of the comparisons.

The table has a row for each attribute, segment, score and metric.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import polars as pl

from polars_wroc.inputs.columns import AUDIT_KEYS, MISSING, MODEL
from polars_wroc.inputs.metric import Metric, SampleSize
from polars_wroc.metrics.registry import CURVE_METRICS, LOSSES, ROC_AUC
from polars_wroc.stats.families import DIFFERENT, EQUIVALENT
from polars_wroc.thresholds.registry import GAP_RATES, RATES, THRESHOLD_METRICS

# Metrics whose gaps between groups are measured.
GAP_METRICS: dict[str, Metric] = {ROC_AUC.column: ROC_AUC, **GAP_RATES}


# These, and other metrics whose gaps are measured on request.
COMPARABLE: dict[str, Metric] = {
    **GAP_METRICS,
    **THRESHOLD_METRICS,
    **{name: CURVE_METRICS[name] for name in LOSSES},
}


# The compared values and the findings come first.
COMPARISON_SCHEMA: dict[str, type[pl.DataType]] = {
    **dict.fromkeys((*AUDIT_KEYS, MODEL, "metric"), pl.String),
    **dict.fromkeys(("value", "value_low", "value_high"), pl.Float64),
    "reference": pl.String,
    **dict.fromkeys(("reference_value", "gap", "gap_low", "gap_high"), pl.Float64),
    **dict.fromkeys(("verdict", "reason"), pl.String),
    **dict.fromkeys(("n", "n_reference"), pl.Int64),
    **dict.fromkeys(("ratio", "ratio_low", "ratio_high"), pl.Float64),
    **dict.fromkeys(("p_value", "p_adjusted", "detectable"), pl.Float64),
}
# The columns of changes between two audits.
CHANGES_SCHEMA = COMPARISON_SCHEMA | {"finding": pl.String, "growth": pl.Float64}
# Verdicts on impact ratios; those on gaps are in `stats/families.py`.
BELOW_FOUR_FIFTHS, AT_LEAST_FOUR_FIFTHS = "below four fifths", "at least four fifths"
# Verdicts that report a difference, and verdicts that rule out one that matters.
FINDINGS, CLEARED = (DIFFERENT, BELOW_FOUR_FIFTHS), (EQUIVALENT, AT_LEAST_FOUR_FIFTHS)
# Reasons: why there is no verdict, or no test.
THE_REFERENCE, NO_REFERENCE = "the reference", "no reference shown"
FIRST_PERIOD = "the first period"
UNKNOWN_REASON = "an unknown category"
REPEATS, SMALL_SHARE = "repeats ", "share below "
# The reference of the overall rows of calibration metrics.
TARGET = "target"
# The place of an attribute and segment in the order of the table.
PLACE = "__place"


def is_finding() -> pl.Expr:
    """Return whether the verdict reports a difference."""
    return pl.col("verdict").is_in(FINDINGS).fill_null(value=False)


def is_cleared() -> pl.Expr:
    """Return whether the verdict rules out a difference that matters."""
    return pl.col("verdict").is_in(CLEARED).fill_null(value=False)


def join_rates(ratios: pl.DataFrame, rates: pl.DataFrame) -> pl.DataFrame:
    """Add the rates of both categories to rows of impact ratios.

    The rows of ``rates`` have the rates of all segments as ``value``. The new columns are ``rate,
    rate_low, rate_high`` and ``reference_rate``, the rate of the reference; null without rates.
    """
    attribute, name = AUDIT_KEYS
    keys = [attribute, MODEL]
    segment = pl.col(name).fill_null(MISSING)
    segment_rates = rates.select(
        *keys,
        __segment=segment,
        __n="n",
        rate="value",
        rate_low="value_low",
        rate_high="value_high",
    )
    reference_rates = rates.select(*keys, reference=segment, reference_rate="value")
    joined = ratios.with_columns(__segment=segment)
    for other, column in ((segment_rates, "__segment"), (reference_rates, "reference")):
        joined = joined.join(
            other, on=[*keys, column], how="left", nulls_equal=True, maintain_order="left"
        )
    # The rows of an unknown category may be in several segments.
    same = pl.col("n") == pl.col("__n")
    known = pl.when(same).then(pl.col("rate", "rate_low", "rate_high"))
    return joined.with_columns(known).drop("__segment", "__n")


def select_rated_ratios(table: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of impact ratios of a table, with the rates from its other rows."""
    rates = table.filter(pl.col("metric").is_in(IMPACT_RATES))
    return join_rates(table.filter(metric=IMPACT_RATIO), rates)


def put_rates_for_values(table: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of impact ratios of a table, with the rates that they divide as values."""
    return select_rated_ratios(table).with_columns(
        value="rate",
        value_low="rate_low",
        value_high="rate_high",
        reference_value="reference_rate",
    )


def small_share(min_share: float) -> str:
    """Return the reason of a category with too small a share of the weight."""
    return f"{SMALL_SHARE}{100 * min_share:g}%"


@dataclass(frozen=True, kw_only=True)
class ComparedMetric(Metric):
    """A metric that only comparisons have, and the kinds of rows it is based on."""

    size_kinds: tuple[SampleSize, ...] = ("rows",)
    has_ratio: bool = False

    @property
    def sample_sizes(self) -> tuple[SampleSize, ...]:
        """Kinds of rows that the metric is based on; a test needs enough of each."""
        return self.size_kinds


IMPACT_RATIO = "impact_ratio"
IMPACT = ComparedMetric(
    name=IMPACT_RATIO,
    label="impact ratio",
    definition="Rate of the favorable decision divided by that of the reference.",
    has_ratio=True,
    needs_label=False,
    family="impact",
)
# The rate of the favorable decision in tables of impact ratios, if that is not selection.
FAVORABLE_RATE = ComparedMetric(
    name="favorable_rate",
    label="rate of the favorable decision",
    definition="Share of the weight that has the favorable decision.",
    needs_label=False,
    family="impact",
)
CALIBRATION: dict[str, ComparedMetric] = {
    metric.name: metric
    for metric in (
        ComparedMetric(
            name="mean_calibration_error",
            label="mean calibration error",
            definition="Mean score less the proportion of positives.",
            better=None,
            target=0.0,
            family="calibration",
        ),
        ComparedMetric(
            name="calibration_slope",
            label="calibration slope",
            definition="Slope of a logistic regression of the label on the logit of the score.",
            better=None,
            target=1.0,
            family="calibration",
            size_kinds=ROC_AUC.sample_sizes,
        ),
    )
}

SMD = ComparedMetric(
    name="standardized_mean_difference",
    label="standardized mean difference",
    definition="Mean score less that of the reference, in standard deviations of all scores.",
    better=None,
    needs_label=False,
    family="scores",
)

# The metrics of gaps, and the metric of scores that needs no label.
GAPS_ON_REQUEST: dict[str, Metric] = {**COMPARABLE, SMD.name: SMD}

Kind = Literal["difference", "ratio"]
_SPREADS: dict[Kind, str] = {
    "difference": "Largest difference between two groups in the",
    "ratio": "Smallest ratio of two groups in the",
}


@dataclass(frozen=True, kw_only=True)
class FairnessMetric(ComparedMetric):
    """The largest ``kind`` of difference between groups in one of the metrics it ``compares``."""

    criterion: str
    kind: Kind
    compares: tuple[str, ...]


# The rate that each fairness criterion compares.
COMPARED_RATES = {rate.fairness: name for name, rate in GAP_RATES.items() if rate.fairness}
_AUC = (ROC_AUC.column,)
_ODDS = tuple(COMPARED_RATES[name] for name in ("equal_opportunity", "predictive_equality"))


def _fairness(
    criterion: str, kind: Kind, label: str | None = None, compares: tuple[str, ...] = ()
) -> FairnessMetric:
    """Compare metrics between groups, or if none are named the rate of the criterion."""
    compares = compares or (COMPARED_RATES[criterion],)
    rates = [GAP_METRICS[name].label for name in compares]
    if label is None:
        words = criterion.replace("_", " ").capitalize()
        label = f"{words}, {kind} of the {rates[0]}s"
    return FairnessMetric(
        name=f"{criterion}_{kind}",
        label=label,
        definition=f"{_SPREADS[kind]} {' or the '.join(rates)}.",
        better="high" if kind == "ratio" else "low",
        has_ratio=kind == "ratio",
        needs_label=any(GAP_METRICS[name].needs_label for name in compares),
        family="fairness",
        size_kinds=GAP_METRICS[compares[0]].sample_sizes,
        criterion=criterion,
        kind=kind,
        compares=compares,
    )


FAIRNESS: dict[str, FairnessMetric] = {
    metric.name: metric
    for metric in (
        _fairness("demographic_parity", "difference"),
        _fairness("demographic_parity", "ratio"),
        _fairness("equal_opportunity", "difference"),
        _fairness("equal_opportunity", "ratio"),
        _fairness("predictive_equality", "difference"),
        _fairness(
            "equalized_odds", "difference", "Equalized odds, the larger of both differences", _ODDS
        ),
        _fairness("equalized_odds", "ratio", "Equalized odds, the smaller of both ratios", _ODDS),
        _fairness("predictive_parity", "difference"),
        _fairness("auc", "difference", f"Difference of the {ROC_AUC.label}s", _AUC),
    )
}
# Differences of the scores of a period from the scores of the periods before it.
SHIFTS: dict[str, ComparedMetric] = {
    name: ComparedMetric(
        name=name,
        label=label,
        definition=definition,
        better=None,
        needs_label=False,
        target=none,
        family="scores",
    )
    for name, label, none, definition in (
        ("shift_auc", "AUC after against before", 0.5, "AUC of later against earlier scores."),
        (
            "score_ks",
            "KS after against before",
            0.0,
            "Largest distance between the distribution functions of earlier and later scores.",
        ),
        ("psi", "PSI", 0.0, "Population stability index, by tenths of the earlier scores."),
    )
}
# All metrics of comparison tables, in the order of rows; some have values only.
METRICS: dict[str, Metric] = {
    metric.column: metric
    for metric in (
        *GAP_METRICS.values(),
        CURVE_METRICS["average_precision"],
        RATES["accuracy"],
        IMPACT,
        SMD,
        *CALIBRATION.values(),
        *FAIRNESS.values(),
    )
}
# Metrics of decisions, which are the same for all scores if decisions are recorded.
DECISION_METRICS = (
    *GAP_RATES,
    "accuracy",
    IMPACT_RATIO,
    *(name for name, metric in FAIRNESS.items() if metric.compares != _AUC),
)
# The gaps of metrics, as metrics of their own whose changes are measured.
GAP_CHANGES: dict[str, ComparedMetric] = {
    f"{name}_gap": ComparedMetric(
        name=f"{name}_gap",
        label=f"gap in {metric.label}",
        definition=f"{metric.heading} less that of the reference.",
        better=None,
        size_kinds=metric.sample_sizes,
    )
    for name, metric in GAP_METRICS.items()
}
# Significant changes of a gap.
GAP_FINDINGS = NEW, CLOSED, REVERSED, GROWN, SHRUNK = "new", "closed", "reversed", "grown", "shrunk"
# The metrics of tables of changes.
CHANGED_METRICS: dict[str, Metric] = {**GAP_METRICS, IMPACT_RATIO: IMPACT, **GAP_CHANGES}
# The number that a metric is named for, if that is not the value of the segment.
NAMED_FOR = {IMPACT_RATIO: "ratio"} | {
    metric.name: "gap" if metric.kind == "difference" else "ratio" for metric in FAIRNESS.values()
}
_SELECTION_RATE = "selection_rate"
# The rates whose ratios are impact ratios: of selection, or of the favorable decision.
IMPACT_RATES = (_SELECTION_RATE, FAVORABLE_RATE.name)
# Metrics of decisions or scores, which need no label.
UNLABELED = tuple(name for name, metric in METRICS.items() if not metric.needs_label)
