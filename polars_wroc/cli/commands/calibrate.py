"""The command ``calibrate``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import polars as pl
from cyclopts import Parameter

import polars_wroc as wroc
from polars_wroc.bounds import PositiveInt
from polars_wroc.cli import sentences
from polars_wroc.cli.bundles import ByGroups
from polars_wroc.cli.options import OUTPUT, FileNames, add_bounds, with_arguments_of
from polars_wroc.cli.report import Report, Shown, show_report
from polars_wroc.curves.calibration_curve import Strategy
from polars_wroc.documents.phrases import first_few, many
from polars_wroc.inputs.reasons import FEW_EVENTS
from polars_wroc.looks import ConfidenceLevel, Looks, as_number

CurveBins = Annotated[
    int | None,
    Parameter(
        help=add_bounds("Bins of the curve, which are printed then; default 10.", PositiveInt),
        group=OUTPUT,
    ),
]
BinWidths = Annotated[
    Strategy | None,
    Parameter(
        help="Bins of equal width, or of equal weight; default quantile, with a design or --looks "
        "uniform.",
        group=OUTPUT,
    ),
]
Smooth = Annotated[
    bool, Parameter(help="Add a smooth curve with its limits; not of counts.", group=OUTPUT)
]


@with_arguments_of(wroc.calibration_summary, "clip")
def calibrate(
    file: FileNames,
    /,
    *,
    options: ByGroups = ByGroups(),
    bins: CurveBins = None,
    strategy: BinWidths = None,
    smooth: Smooth = False,
    **given: Any,
) -> None:
    """Compare scores with the observed rates."""
    source = options.read(file)
    if smooth and source.counts is not None:
        msg = "--smooth needs single rows, which counts are not"
        raise ValueError(msg)
    # Bins that move with the sample have no limits by design.
    at_all_looks = isinstance(options.uncertainty.confidence, Looks)
    fixed: Strategy = "uniform" if at_all_looks or "design" in options.limits else "quantile"
    binned: dict[str, Any] = {"bins": 10 if bins is None else bins, "strategy": strategy or fixed}
    if smooth:
        binned["smooth"] = True
    plans = [
        source.plan(wroc.calibration_curve, **binned, **options.limits),
        source.plan(wroc.calibration_summary, **given, **options.limits),
    ]
    if not at_all_looks:
        plans.append(source.plan(wroc.calibration_test, **options.limits))
    curve, slopes, *tests = source.compute_all(*plans)
    source.check_positives(found=bool(curve.select((pl.col("observed_rate") > 0).any()).item()))
    keys = sentences.list_before(slopes.schema, "mean_calibration_error")
    said = _say_how_off(slopes, keys) + _say_of_few_events(slopes, keys)
    said += _say_of_slopes(slopes, keys, given["clip"])
    said += [_say_where_off(test, options.uncertainty.confidence) for test in tests]
    # The columns that are asked for are those of the curve.
    shown = [Shown("calibration slopes", slopes, keys, " ".join(said), asked=False)]
    output = options.output
    if smooth or output.output or any((bins, strategy, output.columns, output.rows)):
        heading = f"calibration curve{sentences.name_groups(keys)}"
        shown.append(Shown(heading, curve, [*keys, "bin"]))

    def draw() -> list[Any]:
        return [wroc.calibration_chart(curve, facet=source.facet)]

    show_report(Report(source, curve, shown, draw, row_keys=[*keys, "bin"]), options.output)


def _say_how_off(slopes: pl.DataFrame, keys: Sequence[str]) -> list[str]:
    """Return which scores are too high or too low, and whose slope is not 1."""
    low, high = pl.col("calibration_slope_low"), pl.col("calibration_slope_high")
    meanings = {
        "Scores rank backwards (slope below 0)": high < 0,
        "Scores are too high on average": pl.col("oe_ratio_high") < 1,
        "Scores are too low on average": pl.col("oe_ratio_low") > 1,
        "High scores are too high and low ones too low (slope below 1)": high.is_between(0, 1)
        & (high < 1),
        "Scores are too close to the middle (slope above 1)": low > 1,
    }
    said = []
    for text, condition in meanings.items():
        found = slopes.filter(condition)
        if not found.is_empty():
            listed = f": {sentences.name_places(found, keys)}" if keys else ""
            said.append(f"{text}{listed}.")
    if not said and slopes.select(low.is_null().all()).item():
        return ["O:E (observed to expected positives) is not shown to differ from 1."]
    if not said:
        return [
            "Neither O:E (observed to expected positives) nor a slope is shown to differ from 1."
        ]
    if keys:
        said.append("Limits are not adjusted for the number of groups.")
    return said


def _say_of_few_events(slopes: pl.DataFrame, keys: Sequence[str]) -> list[str]:
    """Return where limits of O:E may be too narrow."""
    found = slopes.filter(reason=FEW_EVENTS)
    if found.is_empty():
        return []
    listed = f" for {sentences.name_places(found, keys)}" if keys else ""
    return [f"The limits of O:E may be too narrow{listed}: {FEW_EVENTS}."]


def _say_of_slopes(slopes: pl.DataFrame, keys: Sequence[str], clip: float | None) -> list[str]:
    """Return which slopes are unknown, and how many rows are in no slope."""
    said = []
    unknown = slopes.filter(pl.col("calibration_slope_low").is_null())
    if not unknown.is_empty():
        listed = f" for {sentences.name_places(unknown, keys)}" if keys else ""
        said.append(
            f"The slope is unknown{listed}: it needs scores between 0 and 1 of both classes, which "
            "overlap."
        )
    extreme, impossible = slopes.select(pl.col("n_extreme", "n_impossible").sum()).row(0)
    if extreme and clip is None:
        said.append(f"Slopes are without {many(extreme, 'row')} with a score of 0 or 1.")
    elif extreme:
        taken = f"{clip:g} or {1 - (clip or 0):g}"
        said.append(f"Slopes take {many(extreme, 'row')} with a score of 0 or 1 as {taken}.")
    if impossible:
        said.append(
            f"{many(impossible, 'row')} came out against a score of 0 or 1, which no slope can "
            "mend."
        )
    return said


def _say_where_off(test: pl.DataFrame, level: ConfidenceLevel) -> str:
    """Return the ranges in which scores are off by more than chance."""
    keys = sentences.list_before(test.schema, "from_score")
    found = [
        f"{sentences.name_place(row, keys) or 'scores'} from {row['from_score']:.2f} to "
        f"{row['to_score']:.2f} ({100 * abs(row['mean_calibration_error']):.0f} points "
        f"{row['direction']})"
        for row in test.filter(pl.col("p_adjusted") <= 1 - as_number(level)).iter_rows(named=True)
    ]
    said = [f"Without bins, off most and by more than chance: {', '.join(found)}."]
    if not found:
        said = ["No range of scores is shown to be off."]
    if untested := [
        f"{sentences.name_place(row, keys) or 'the scores'} ({row['reason']})"
        for row in test.drop_nulls("reason").iter_rows(named=True)
    ]:
        said.append(f"Not tested: {first_few(untested, sentences.SEPARATOR)}.")
    return " ".join(said)
