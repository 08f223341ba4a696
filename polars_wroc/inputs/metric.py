"""The attributes that all metrics of the registries share."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, TypeAlias

from polars_wroc.checks import did_you_mean, reject, show_value

# The sign of negative numbers in text and charts.
MINUS = "\N{MINUS SIGN}"
# The values of a segment that are worse for its members.
Worse: TypeAlias = Literal["lower", "higher", "either"]
# Families of metrics, whose tests share the error probability.
Family: TypeAlias = Literal["gaps", "impact", "scores", "calibration", "fairness"]
SampleSize: TypeAlias = Literal["positives", "negatives", "rows", "selected", "rejected"]


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A metric: its names in tables, charts and text, and its definition in one sentence.

    ``label`` is written as in the middle of a sentence. ``better`` is the better direction, None if
    neither is. ``in_short`` says whether tables on a terminal show the metric.
    """

    name: str
    label: str
    definition: str
    better: Literal["high", "low"] | None = "high"
    in_short: bool = False
    # Whether the ratio of two values is compared with 1, besides their difference with 0.
    has_ratio: bool = True
    # Whether only rows with a label count, or all rows with a score or decision.
    needs_label: bool = True
    # The value of an uninformative score, below which no gap extends.
    least: float = 0.0
    # The value with which all rows are compared, if there is one.
    target: float | None = None
    # Metrics of a family have their p-values adjusted together.
    family: Family = "gaps"
    # The worse values if being selected is good for a row, and if being rejected is.
    worse_if_selection_is_good: Worse = "either"
    worse_if_rejection_is_good: Worse = "either"

    def worse_if(self, favorable: str | None) -> Worse:
        """Return which values are worse for people if a decision is good for them."""
        if favorable == "selected":
            return self.worse_if_selection_is_good
        return self.worse_if_rejection_is_good if favorable == "rejected" else "either"

    @property
    def column(self) -> str:
        """Name of its column in tables."""
        return self.name

    @property
    def heading(self) -> str:
        """The label with a capital letter, for titles and the start of a sentence."""
        return self.label[0].upper() + self.label[1:]

    @property
    def sample_sizes(self) -> tuple[SampleSize, ...]:
        """Kinds of rows that the metric is based on; a test needs enough of each."""
        return ("rows",)


# Names of metrics in other packages and textbooks; no function knows both names of a pair.
_OTHER_NAMES: dict[str, tuple[str, ...]] = {
    "accuracy_score": ("accuracy",),
    "auc": ("roc_auc",),
    # Not precision, which is the ppv.
    "average_precision": (),
    "auroc": ("auc", "roc_auc"),
    "brier": ("brier_score",),
    "cross_entropy": ("log_loss",),
    "disparate_impact": ("impact_ratio",),
    "error_rate": ("zero_one_loss",),
    "f1_score": ("f1",),
    "fall_out": ("fpr",),
    "false_discovery_rate": ("fdr",),
    "false_negative_rate": ("fnr",),
    "false_omission_rate": ("for",),
    "false_positive_rate": ("fpr",),
    "hit_rate": ("tpr",),
    "logloss": ("log_loss",),
    "matthews_corrcoef": ("mcc",),
    "miss_rate": ("fnr",),
    "negative_predictive_value": ("npv",),
    "positive_predictive_value": ("ppv",),
    "positive_rate": ("selection_rate",),
    "precision": ("ppv",),
    "precision_score": ("ppv",),
    "recall": ("tpr",),
    "recall_score": ("tpr",),
    "roc_auc": ("auc",),
    "roc_auc_score": ("auc", "roc_auc"),
    "sensitivity": ("tpr",),
    "smd": ("standardized_mean_difference",),
    "specificity": ("tnr",),
    "true_negative_rate": ("tnr",),
    "true_positive_rate": ("tpr",),
}


def metric_hint(found: object, known: Collection[str]) -> str:
    """Return the end of a message: the known metric that an unknown name means, if any."""
    synonyms = dict[str, str]()
    for other, names in _OTHER_NAMES.items():
        for name in names:
            if name in known:
                synonyms[other] = name
    word = str(found).lower()
    if word in _OTHER_NAMES and word not in synonyms:
        # The metric is unavailable here, and a metric with a similar name is another one.
        return ""
    return did_you_mean(word, known, synonyms)


_CALIBRATION_NAMES = ("eo_ratio", "largest_miscalibration", "miscalibration", "oe_ratio")


def calibration_hint(found: object) -> str:
    """Return the end of a message on an unknown metric: where calibration is measured."""
    name = str(found).lower()
    if "calibration_" in name or name in ("calibration", "ece", "ici", *_CALIBRATION_NAMES):
        return ": for calibration, use `calibration_summary` by group"
    return ""


def check_metric(
    argument: str, name: object, known: Collection[str], where: str = "", hint: str = ""
) -> None:
    """Raise for an unknown metric; the message may say ``where`` it is unknown, and a hint."""
    if name not in known:
        rule = f"be one of {', '.join(known) or 'none'}{where}"
        reject(argument, rule, f"{show_value(name)}{hint or metric_hint(name, known)}")
