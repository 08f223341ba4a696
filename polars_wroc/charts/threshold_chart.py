"""Charts of ROC curves with an operating point on a threshold slider."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from statistics import median
from typing import Any, Unpack

import altair as alt
import polars as pl

from polars_wroc import checks
from polars_wroc.charts.channels import Channel, name_in_label, read_groups, slot_of
from polars_wroc.charts.curve_layers import (
    CELL_WORDS,
    POINT,
    chance,
    count_curves,
    curve_chart,
    drawn_of,
    fpr_axis,
    most_points,
    numbered,
    styles,
    thinned,
    tooltip,
    tpr_axis,
)
from polars_wroc.charts.options import (
    BACKGROUND,
    MAX_ROWS,
    NO_ROWS,
    ONE_CLASS,
    PANEL,
    TEXT,
    Chart,
    ChartOptions,
    Ranked,
    inline,
)
from polars_wroc.groups.comparisons import GAP_METRICS
from polars_wroc.inputs.columns import ROC_COLUMNS
from polars_wroc.ranking.curve import CELLS
from polars_wroc.ranking.curve_points import with_auc

# About this many steps, of 1, 2 or 5 times a power of ten.
_STEPS = 200
# Points of each curve beside those that the slider selects.
_AT_LEAST = 60
_ROW = "__row"


@dataclass(frozen=True)
class Slider:
    """Thresholds from ``low`` to ``high`` at equal steps, and the initial one."""

    low: float
    high: float
    step: float
    start: float

    @property
    def values(self) -> list[float]:
        """All thresholds of the slider."""
        steps = round((self.high - self.low) / self.step)
        return sorted({self.start, *(self.at(step) for step in range(steps + 1))})

    def at(self, step: int) -> float:
        """Threshold after ``step`` steps, without rounding errors in the last digits."""
        return _rounded(self.low + step * self.step, self.step)


def slider_of(thresholds: pl.Series, start: float | None) -> Slider:
    """Return a slider over the finite thresholds; it starts at ``start`` or their median."""
    finite = thresholds.filter(thresholds.is_finite()).to_list()
    if not finite:
        checks.reject("curves", "hold a finite threshold", "none")
    lowest, highest, middle = min(finite), max(finite), median(finite)
    step = _step(highest - lowest, max(abs(lowest), abs(highest)))
    low, high = (_rounded(round(end / step) * step, step) for end in (lowest, highest))
    if low > lowest:
        low = _rounded(low - step, step)
    if high < highest or high == low:
        high = _rounded(high + step, step)
    if start is None:
        nearest = _rounded(round(middle / step) * step, step)
        return Slider(low, high, step, nearest)
    return Slider(low, high, step, checks.number("threshold", start, low=low, high=high))


def chosen(table: pl.DataFrame, keys: list[str], values: list[float]) -> pl.DataFrame:
    """Keep the points of each curve that one of the values selects.

    A value selects the point with the smallest threshold that is not below it.
    """
    steps = pl.DataFrame({"threshold": values})
    numbered = table.with_row_index(_ROW)
    points = numbered.filter(pl.col("threshold").is_finite())
    if keys:
        steps = table.select(keys).unique(maintain_order=True).join(steps, how="cross")
    rows = steps.sort("threshold").join_asof(
        points.select(*keys, "threshold", _ROW).sort("threshold"),
        on="threshold",
        by=keys or None,
        strategy="forward",
        check_sortedness=False,
    )
    return numbered.join(rows.select(_ROW).unique(), on=_ROW, how="semi").drop(_ROW)


def _step(span: float, largest: float) -> float:
    """Find a round step; for equal thresholds a small one, relative to their size."""
    wanted = max(span / _STEPS, largest * 1e-12) or 1.0 / _STEPS
    power = math.floor(math.log10(wanted))
    choices = [_rounded(factor * 10.0**power, 10.0**power) for factor in (1, 2, 5, 10)]
    return min(choices, key=lambda step: abs(math.log(step / wanted)))


def _rounded(value: float, step: float) -> float:
    """Remove rounding errors from a multiple of a step."""
    return round(value, -math.floor(math.log10(step * 1.0000001))) + 0.0


# Columns of the drawn rows: the place of a curve among those of its panel, and its name.
SLOT, NAME = "__slot", "__name"
_KEY, _VALUE, _PLACE = "__key", "__value", "__place"

# Numbers under each curve: two columns of four.
_NUMBERS = {
    **CELL_WORDS,
    "tpr": GAP_METRICS["tpr"].label,
    "fpr": GAP_METRICS["fpr"].label,
    "__ppv": f"{GAP_METRICS['ppv'].label} (ppv)",
    "__selection_rate": GAP_METRICS["selection_rate"].label,
}
# The same for weighted rows.
_WEIGHTS = {name: f"{name.upper()} weight" for name in CELLS}
_IN_COLUMN = 4
# From these on counts are written without fractions, and in millions.
_UNITS, _MILLIONS = 100_000, 10_000_000
# Pixels from the panel to the first line, and from one to the next.
_TOP, _LINE, _GAP = 58, 15, 8
# Total weight of a curve.
_TOTAL = " + ".join(f"datum.{name}" for name in CELLS)


def _place_of(line: str, height: int) -> str:
    """Place of a line of text under a panel of this height in pixels, in units of the axis."""
    lines = (_IN_COLUMN + 1) * _LINE + _GAP
    return f"-({_TOP} + {lines} * datum.{SLOT} + {_LINE} * ({line})) / {height}"


def headings(at: Any, lines: dict[str, Any], shapes: dict[str, Any], height: int) -> list[Any]:
    """Write a heading above the numbers of each curve: its name and the selected scores."""
    placed = at.transform_calculate(
        **{
            _PLACE: _place_of("0", height),
            _KEY: f"datum.{NAME} + ((datum.tp + datum.fn) * (datum.fp + datum.tn) > 0 ? "
            "'selected at ' + format(threshold, abs(threshold) < 1e6 ? '.6~g' : '.10~g') + "
            f"' or more' : ({_TOTAL} > 0 ? '{ONE_CLASS}' : '{NO_ROWS}') + ': no curve')",
        }
    )
    y = alt.Y(f"{_PLACE}:Q")
    return [
        placed.mark_rule(aria=False).encode(alt.XDatum(0), y, x2=alt.X2Datum(0.1), **lines),
        placed.mark_point(filled=True, size=80, opacity=1, aria=False).encode(
            alt.XDatum(0.05), y, **shapes
        ),
        placed.mark_text(**TEXT, align="left", baseline="middle", fontWeight="bold").encode(
            alt.XDatum(0.13), y, text=alt.Text(f"{_KEY}:N")
        ),
    ]


def are_whole(points: pl.DataFrame) -> bool:
    """Whether all counts are whole numbers."""
    return bool(points.select(pl.all_horizontal(pl.col(CELLS) % 1 == 0).all()).item())


def count_format(points: pl.DataFrame, *, whole: bool) -> str:
    """Number format of counts that fits: with fractions, without, or in millions."""
    largest = points.select(pl.max_horizontal(pl.col(CELLS).max())).item()
    if largest >= _MILLIONS:
        return ".5~s"
    return ",.0f" if whole or largest >= _UNITS else ",.1f"


def numbers(at: Any, height: int, count: str, *, weighted: bool) -> list[Any]:
    """Write counts or weights, and rates, under each curve."""
    names, labels = list(_NUMBERS), list((_NUMBERS | (_WEIGHTS if weighted else {})).values())
    number, column = f"indexof({names}, datum.{_KEY})", f"datum.{_PLACE} >= {_IN_COLUMN}"
    rows = (
        at.transform_calculate(
            __ppv="datum.tp + datum.fp > 0 ? datum.tp / (datum.tp + datum.fp) : null",
            __selection_rate=f"(datum.tp + datum.fp) / ({_TOTAL})",
        )
        .transform_fold(names, as_=[_KEY, _VALUE])
        .transform_calculate(**{_PLACE: number})
        .transform_calculate(
            __y=_place_of(f"1 + datum.{_PLACE} % {_IN_COLUMN}", height),
            __left=f"{column} ? 0.525 : 0",
            __right=f"{column} ? 1 : 0.485",
            __text=f"{labels}[datum.{_PLACE}]",
            __shown=f"!isValid(datum.{_VALUE}) ? '\N{EN DASH}' : "
            f"format(datum.{_VALUE}, {column} ? '.3f' : '{count}')",
        )
    )
    mark = {**TEXT, "baseline": "middle"}
    return [
        rows.mark_text(align=align, **mark).encode(
            alt.X(f"{x}:Q"), alt.Y("__y:Q"), text=alt.Text(f"{text}:N")
        )
        for align, x, text in (("left", "__left", "__text"), ("right", "__right", "__shown"))
    ]


# Columns that are added to the drawn rows.
_FROM, _LAST = "__from", "__last"


def threshold_chart(
    curves: pl.DataFrame | pl.LazyFrame,
    *,
    threshold: float | None = None,
    weighted: bool | None = None,
    **options: Unpack[ChartOptions],
) -> Chart:
    """Draw ROC curves with a threshold slider, and the counts and rates at the threshold.

    Parameters
    ----------
    curves
        The table of `roc_curve`; a LazyFrame is collected.
    threshold
        Initial threshold; None takes the step that is nearest to the median threshold.
    weighted
        Whether to label the counts as weights; None does so if one of them is not whole.
    **options
        `ChartOptions`. Curves are sorted, and chosen for color, by AUC; one slider moves the points
        in all panels.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        The slider is the parameter ``threshold``; it covers the finite thresholds in about 200
        round steps. The point of a curve is that of ``score >= threshold``; its counts and rates
        are below the curve. Long curves are thinned as by `roc_chart`.

    Raises
    ------
    TypeError, ValueError
        For a table that does not come from `roc_curve`, a column that is not one of its groups,
        an unknown option, or a threshold outside the range of the slider.

    Notes
    -----
    Thinning keeps the points that the steps of the slider select, so that the counts remain
    exact. If there are too many curves for that, the counts are those of the next higher
    threshold that is drawn, and the line under the chart says so. A picture (.png, .svg) shows
    the initial threshold.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> chart = wroc.threshold_chart(wroc.roc_curve(df, "y", "s"), threshold=0.7)
    >>> chart.to_dict()["params"][0]["value"]
    0.7
    """
    table, keys = read_groups("curves", curves, ROC_COLUMNS, "`roc_curve`")
    groups = list(keys.values())
    count_curves(table, groups)
    of_curves = with_auc(table.lazy(), groups).collect()
    chart = curve_chart(keys, of_curves, options, Ranked(pl.col("auc"), "AUC"))
    if weighted is not None:
        checks.flag("weighted", weighted)
    slider = slider_of(table["threshold"], threshold)
    points, thinning = _fit(table, groups, slider)
    kept = [*groups, POINT, *ROC_COLUMNS, _FROM, SLOT, NAME]
    base = alt.Chart(inline(_with_slots(chart.in_order(points), chart.color).select(kept)))
    # No legend, since each curve has a heading with its line and its point.
    lines = chart.styles()
    shapes = styles(chart.color, points=True, legend=False)
    fpr, tpr = fpr_axis(), tpr_axis()
    shown = tooltip(keys, ("fpr", "tpr"))
    at, height = _at_threshold(base), chart.options.height or PANEL
    outlined = {"stroke": BACKGROUND, "strokeWidth": 1}
    point = at.mark_point(filled=True, size=130, opacity=1, **outlined).encode(
        fpr, tpr, tooltip=shown, **shapes
    )
    param = alt.param(
        name="threshold",
        value=slider.start,
        bind=alt.binding_range(min=slider.low, max=slider.high, step=slider.step, name="threshold"),
    )
    whole = are_whole(points)
    weights = not whole if weighted is None else weighted
    # A parameter of the first layer becomes one of the whole chart.
    layers = [
        chance(base).add_params(param),
        *chart.lines(base, fpr, tpr, shown, known="threshold"),
        point,
        *headings(at, lines, shapes, height),
        *numbers(at, height, count_format(points, whole=whole), weighted=weights),
    ]
    return chart.chart(
        layers,
        "ROC curves with the point, the counts and the rates at the threshold that a slider "
        f"chooses, which starts at {slider.start:g}",
        thinning,
        own_axes=True,
    )


def _fit(table: pl.DataFrame, keys: list[str], slider: Slider) -> tuple[pl.DataFrame, str | None]:
    """Thin the curves if they do not fit, and keep the points of the slider if they fit."""
    curves, values = count_curves(table, keys), slider.values
    if MAX_ROWS // curves < 2 * len(values):
        points = thinned(table, keys).select(table.columns)
        note = drawn_of(points, table, keys)
        return points, note and f"{note}: counts of the next higher threshold drawn"
    # Thinning may keep fewer, and the slider needs its own.
    points = thinned(table, keys, most=max(most_points(curves) - len(values), _AT_LEAST))
    if points.height == table.height:
        return table, None
    # An infinite score has the threshold of the origin; both are kept.
    rows = pl.concat([points.select(table.columns), chosen(table, keys, values)]).unique()
    points = table.with_row_index(_ROW).join(rows, on=[*keys, "threshold"], how="semi")
    return points.sort(_ROW).drop(_ROW), None


def _with_slots(points: pl.DataFrame, color: Channel | None) -> pl.DataFrame:
    """Number the curves of a panel, and add the lowest score that each point selects."""
    threshold = pl.col("threshold")
    # The origin selects no row and gets null.
    starts = threshold.clip(lower_bound=-sys.float_info.max)
    selected = pl.when(threshold < float("inf")).then(starts).alias(_FROM)
    return numbered(
        points.with_columns(selected, slot_of(color).alias(SLOT), name_in_label(color).alias(NAME))
    )


def _at_threshold(base: Any) -> Any:
    """Keep the last point of each curve in colour that is not below the threshold."""
    return (
        base.transform_filter(f"isValid(datum.{SLOT})")
        .transform_filter(f"!isValid(datum.{_FROM}) || datum.{_FROM} >= threshold")
        .transform_joinaggregate(groupby=[SLOT], **{_LAST: f"max({POINT})"})
        .transform_filter(f"datum.{POINT} === datum.{_LAST}")
    )
