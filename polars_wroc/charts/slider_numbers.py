"""Counts and rates under the panels of a chart with a threshold slider."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from polars_wroc.charts.labels import NAMES
from polars_wroc.charts.style import INK, NO_ROWS, ONE_CLASS
from polars_wroc.ranking.curve import CELLS

# Columns of the drawn rows: the place of a curve among those of its panel, and its name.
SLOT, NAME = "__slot", "__name"
_KEY, _VALUE, _PLACE = "__key", "__value", "__place"

# Numbers under each curve: two columns of four.
_NUMBERS = {
    "tp": "true positives",
    "fp": "false positives",
    "fn": "false negatives",
    "tn": "true negatives",
    "tpr": NAMES["tpr"],
    "fpr": NAMES["fpr"],
    "__ppv": f"{NAMES['ppv']} (ppv)",
    "__selection_rate": NAMES["selection_rate"],
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


@dataclass(frozen=True)
class Place:
    """Where numbers are, under a panel of this height in pixels."""

    height: int

    def of_line(self, line: str) -> str:
        """Height of a line of text in units of the axis."""
        lines = (_IN_COLUMN + 1) * _LINE + _GAP
        return f"-({_TOP} + {lines} * datum.{SLOT} + {_LINE} * ({line})) / {self.height}"


def headings(at: Any, lines: dict[str, Any], shapes: dict[str, Any], place: Place) -> list[Any]:
    """Write a heading above the numbers of each curve: its name and the selected scores."""
    import altair as alt  # noqa: PLC0415

    placed = at.transform_calculate(
        **{
            _PLACE: place.of_line("0"),
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
        placed.mark_text(
            align="left", baseline="middle", fontSize=11, fontWeight="bold", color=INK
        ).encode(alt.XDatum(0.13), y, text=alt.Text(f"{_KEY}:N")),
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


def numbers(at: Any, place: Place, count: str, *, weighted: bool) -> list[Any]:
    """Write counts or weights, and rates, under each curve."""
    import altair as alt  # noqa: PLC0415

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
            __y=place.of_line(f"1 + datum.{_PLACE} % {_IN_COLUMN}"),
            __left=f"{column} ? 0.525 : 0",
            __right=f"{column} ? 1 : 0.485",
            __text=f"{labels}[datum.{_PLACE}]",
            __shown=f"!isValid(datum.{_VALUE}) ? '\N{EN DASH}' : "
            f"format(datum.{_VALUE}, {column} ? '.3f' : '{count}')",
        )
    )
    mark = {"baseline": "middle", "fontSize": 11, "color": INK}
    return [
        rows.mark_text(align=align, **mark).encode(
            alt.X(f"{x}:Q"), alt.Y("__y:Q"), text=alt.Text(f"{text}:N")
        )
        for align, x, text in (("left", "__left", "__text"), ("right", "__right", "__shown"))
    ]
