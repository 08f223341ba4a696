"""The fairness metrics: their names, and the metrics of groups that each compares."""

from __future__ import annotations

from typing import NamedTuple

from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.thresholds.registry import GAP_RATES

# The rate that each fairness criterion compares.
COMPARED_RATES = {rate.fairness: name for name, rate in GAP_RATES.items() if rate.fairness}
EQUALIZED_ODDS = ("equal_opportunity", "predictive_equality")
ABROCA = "max_abroca"


class FairnessMetric(NamedTuple):
    """A fairness metric: its name, its label in tables, and the metrics that it compares."""

    name: str
    label: str
    compares: tuple[str, ...]


def _of_rate(criterion: str, *kinds: str) -> list[FairnessMetric]:
    """Metrics that compare the rate of a fairness criterion between groups."""
    rate = COMPARED_RATES[criterion]
    words, rates = criterion.replace("_", " ").capitalize(), f"{GAP_RATES[rate].label}s"
    return [
        FairnessMetric(f"{criterion}_{kind}", f"{words}, {kind} of the {rates}", (rate,))
        for kind in kinds
    ]


_ODDS_RATES = tuple(COMPARED_RATES[criterion] for criterion in EQUALIZED_ODDS)
# In the order of the table.
METRICS: dict[str, FairnessMetric] = {
    metric.name: metric
    for metric in (
        *_of_rate("demographic_parity", "difference", "ratio"),
        *_of_rate("equal_opportunity", "difference", "ratio"),
        *_of_rate("predictive_equality", "difference"),
        FairnessMetric(
            "equalized_odds_difference",
            "Equalized odds, the larger of both differences",
            _ODDS_RATES,
        ),
        FairnessMetric(
            "equalized_odds_ratio", "Equalized odds, the smaller of both ratios", _ODDS_RATES
        ),
        *_of_rate("predictive_parity", "difference"),
        FairnessMetric("auc_difference", f"Difference of the {ROC_AUC.label}s", (ROC_AUC.column,)),
        FairnessMetric(
            ABROCA,
            "ABROCA, the largest area between the ROC curves of a group and of its complement",
            (ROC_AUC.column,),
        ),
    )
}
