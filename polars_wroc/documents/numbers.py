"""Numbers for readers: shares in percent, differences in points, ratios, p-values."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from polars_wroc.groups.comparisons import (
    FAIRNESS,
    FAVORABLE_RATE,
    IMPACT_RATIO,
    METRICS,
    SHIFTS,
)
from polars_wroc.inputs.metric import MINUS
from polars_wroc.metrics.calibration import CALIBRATION_ERROR
from polars_wroc.metrics.registry import CURVE_METRICS
from polars_wroc.thresholds.registry import RATES, THRESHOLD_METRICS

# Stands for a missing number.
DASH = "\N{EN DASH}"
# Smaller differences, in points, are written with a decimal.
SMALL_POINTS = 2
# Smaller p-values are written as below this.
_LEAST_P = 0.001
# From here on, numbers are written with a power of ten.
_LARGE = 1e9


def write_number(value: float | None, form: str) -> str:
    """Return a number in a format, for example ``+.0f``, with a proper minus; empty for None."""
    text = "" if value is None else format(value, form)
    # A number that rounds to 0 has no sign.
    is_zero = not text.strip("+-0.%")
    return text.lstrip("+-") if is_zero else text.replace("-", MINUS)


def form_beside(value: float, limit: float | str | None, digits: int) -> str:
    """Return the format of a number with so many digits, and more if it would look like a limit.

    Large numbers have no power of ten: 12345, not 1.234e+04. Beside a limit of 0.05, 0.050001 is
    not 0.05.
    """
    form = ".0f" if abs(value) + 0.5 >= 10**digits else f".{digits}g"
    if isinstance(limit, str) or limit is None or abs(float(value)) == abs(limit):
        return form
    while abs(float(format(value, form))) == abs(limit):
        digits += 1
        form = f".{digits}g"
    return form


@dataclass(frozen=True)
class NumberForm:
    """The form of numbers: the format, the factor of the unit, and the mark after a number."""

    form: str
    units: float = 1
    mark: str = ""

    def write(self, value: float) -> str:
        """Return a number with its mark."""
        return f"{self._digits(value)}{self.mark}"

    def write_limits(self, low: float, high: float) -> str:
        """Return the limits of an estimate, without the mark: ``(48.9 to 62.6)``."""
        return f"({self._digits(low)} to {self._digits(high)})"

    def _digits(self, value: float) -> str:
        if not math.isfinite(value):
            return write_number(value, "f")
        number = self.units * value
        if abs(number) >= _LARGE:
            return write_number(number, ".3g")
        text = write_number(number, self.form)
        if number and self is PLAIN and not text.strip("0."):
            # A small number is not 0.
            return write_number(number, ".0e")
        return text


SHARE = NumberForm(".1f", 100, "%")
POINTS = NumberForm("+.1f", 100)
PLAIN = NumberForm(",.3f")
DIFFERENCE = NumberForm("+.3f")
RATIO = NumberForm(".2f")
CUT = NumberForm(".4g")
COUNT = NumberForm(",.0f")


def write_size(gap: float, digits: int = 0) -> str:
    """Return the size of a difference in percentage points: ``24``, or below 2 ``1.4``."""
    size = abs(100 * gap)
    text = f"{size:.{max(digits, int(0 < size < SMALL_POINTS))}f}"
    return text.rstrip("0").removesuffix(".") if "." in text and float(text) else text


def write_signed_size(gap: float) -> str:
    """Return a difference in percentage points with its sign: ``+24``; 0 has none."""
    size = write_size(gap)
    if not size.strip("0."):
        return size
    return f"{MINUS if gap < 0 else '+'}{size}"


def write_points(gap: float, digits: int = 0) -> str:
    """Return the size of a difference with its unit: ``24 points``, ``1.4 points``, ``1 point``."""
    text = write_size(gap, digits)
    return f"{text} point{'' if text == '1' else 's'}"


def write_p_value(p: float | None) -> str:
    """Return a p-value as text: ``0.014``, or ``<0.001``; empty for None."""
    if p is None:
        return ""
    return f"<{_LEAST_P}" if p < _LEAST_P else f"{p:.3f}"


def is_share(metric: str) -> bool:
    """Return whether a metric is a share of rows, which is written in percent."""
    return metric in RATES or metric == FAVORABLE_RATE.name


_GAP = "_gap"


def value_form(metric: str) -> NumberForm:
    """Return the form of the values of a metric; for a criterion, of its difference or ratio."""
    if metric in FAIRNESS:
        criterion = FAIRNESS[metric]
        return gap_form(criterion.compares[0]) if criterion.kind == "difference" else RATIO
    if is_share(metric):
        return SHARE
    if metric == CALIBRATION_ERROR:
        return POINTS
    if metric == IMPACT_RATIO or metric.endswith("_ratio"):
        return RATIO
    if metric in ("n", "events"):
        return COUNT
    # The gaps of metrics, whose changes are measured.
    return gap_form(metric.removesuffix(_GAP)) if metric.endswith(_GAP) else PLAIN


def compared_form(metric: str) -> NumberForm:
    """Return the form of the two values that a metric compares, for a fairness criterion."""
    return value_form(FAIRNESS[metric].compares[0] if metric in FAIRNESS else metric)


def gap_form(metric: str) -> NumberForm:
    """Return the form of differences between values of a metric."""
    has_points = is_share(metric) or value_form(metric) is POINTS
    return POINTS if has_points else DIFFERENCE


# Columns of shares that are not metrics, and of scores or their differences.
_SHARES = re.compile(
    r"(observed|smooth|expected|coin)_rate|rate|.*share.*|recall|precision|cumulative|.*_probability"
)
_CUTS = re.compile(r"score|(.*_)?threshold|(from|to)_score|score_(min|max)|bin_(low|high)|best_.*")


def column_form(column: str) -> NumberForm:
    """Return the form of the numbers of a column, by its name."""
    if is_share(column) or _SHARES.fullmatch(column):
        return SHARE
    if column in (CALIBRATION_ERROR, "gap", "mean_gap"):
        return POINTS
    if column.endswith(_GAP):
        return DIFFERENCE
    if column == "ratio" or column.endswith("_ratio"):
        return RATIO
    return CUT if _CUTS.fullmatch(column) else PLAIN


# Columns with numbers of the metric of their row.
VALUE_COLUMNS = ("value", "expected")
COMPARED_COLUMNS = ("group_value", "reference_value")
GAP_COLUMNS = ("gap",)
# Columns about an estimate, which have its form.
_ABOUT_ESTIMATES = re.compile(r"_(low|high|se)$")


def cell_form(column: str, metric: str | None) -> NumberForm:
    """Return the form of a number in a frame, by its column and the metric of its row, if any."""
    estimate = _ABOUT_ESTIMATES.sub("", column)
    if metric is not None and estimate in (*VALUE_COLUMNS, *COMPARED_COLUMNS):
        # In rows of a fairness criterion, frames also have the value of the group.
        return compared_form(metric)
    if metric is not None and estimate in (*GAP_COLUMNS, "detectable", "margin"):
        return gap_form(metric)
    form = column_form(column)
    return column_form(estimate) if form is PLAIN else form


_LABELS: Mapping[str, str] = {
    **{metric.column: metric.label for metric in CURVE_METRICS.values()},
    **{name: metric.label for name, metric in CURVE_METRICS.items()},
    **{name: metric.label for name, metric in THRESHOLD_METRICS.items()},
    **{name: metric.label for name, metric in METRICS.items() if name not in FAIRNESS},
    FAVORABLE_RATE.name: FAVORABLE_RATE.label,
    **{name: metric.label for name, metric in SHIFTS.items()},
    "oe_ratio": "O:E",
    "scaled_brier": "scaled Brier score",
}


_ABBREVIATIONS = {
    name.lower(): name
    for name in ("AUC", "ROC", "KS", "PSI", "BPSN", "BNSP", "xAUC", "ABROCA", "ICI", "E50", "E90")
}


def metric_label(metric: str) -> str:
    """Return the label of a metric; for others, the name in words."""
    words = (_ABBREVIATIONS.get(word, word) for word in metric.split("_"))
    return _LABELS.get(metric) or " ".join(words)
