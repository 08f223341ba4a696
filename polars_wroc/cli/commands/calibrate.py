"""The command ``calibrate``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import polars as pl
from cyclopts import Parameter

import polars_wroc as wroc
from polars_wroc.audits.words import first_few, many
from polars_wroc.cli.options import OUTPUT, By, Files, Rows, Uncertainty, with_arguments_of
from polars_wroc.cli.output import TABLES_AND_CHARTS, Report, Shown, TableOutput, show_report
from polars_wroc.cli.sentences import (
    SEPARATOR,
    columns_before,
    name_groups,
    name_place,
    name_places,
)
from polars_wroc.cli.source import Source
from polars_wroc.curves.calibration_curve import Strategy, calibration_curve
from polars_wroc.curves.calibration_summary import calibration_summary
from polars_wroc.groups.calibration_test import calibration_test
from polars_wroc.looks import ConfidenceLevel, Looks, as_number

Bins = Annotated[
    int | None,
    Parameter(help="Bins of the curve, which are printed then; default 10.", group=OUTPUT),
]
BinWidths = Annotated[
    Strategy | None,
    Parameter(
        help="Bins of equal width, or of equal weight; default quantile, with a design or --looks "
        "uniform.",
        group=OUTPUT,
    ),
]


@with_arguments_of(calibration_summary, "clip")
def calibrate(
    file: Files,
    /,
    *,
    rows: Rows = Rows(),
    by: By = None,
    bins: Bins = None,
    strategy: BinWidths = None,
    smooth: Annotated[
        bool,
        Parameter(help="Add a smooth curve with its limits; not of counts.", group=OUTPUT),
    ] = False,
    uncertainty: Uncertainty = Uncertainty(),
    output: TableOutput = TableOutput(),
    **given: Any,
) -> None:
    """Compare scores with the observed rates."""
    targets = output.find_targets(TABLES_AND_CHARTS, file)
    source = Source(files=file, columns=rows, group_texts=by or (), flag="--by")
    source.require("label", "score")
    limits = uncertainty.arguments
    if smooth and source.counts is not None:
        msg = "--smooth needs single rows, which counts are not"
        raise ValueError(msg)
    # Bins that move with the sample have no limits by design.
    at_all_looks = isinstance(uncertainty.confidence, Looks)
    fixed: Strategy = "uniform" if at_all_looks or "design" in limits else "quantile"
    binned: dict[str, Any] = {"bins": 10 if bins is None else bins, "strategy": strategy or fixed}
    if smooth:
        binned["smooth"] = True
    plans = [source.plan(calibration_curve, **binned, **limits)]
    plans.append(source.plan(calibration_summary, **given, **limits))
    if not at_all_looks:
        plans.append(source.plan(calibration_test, **limits))
    curve, slopes, *tests = source.compute_all(*plans)
    source.check_positives(found=bool(curve.select((pl.col("observed_rate") > 0).any()).item()))
    keys = columns_before(slopes.columns, "mean_calibration_error")
    ranges = [_say_where_off(test, uncertainty.confidence) for test in tests]
    verdict = " ".join(
        [*_say_how_off(slopes, keys), *_say_of_slopes(slopes, keys, given["clip"]), *ranges]
    )
    # The columns that are asked for are those of the curve.
    shown = [Shown("calibration slopes", slopes, keys, verdict, asked=False)]
    asked = (bins, strategy, output.columns, output.asked_rows)
    if smooth or targets or any(value is not None for value in asked):
        shown.append(Shown(f"calibration curve{name_groups(keys)}", curve, [*keys, "bin"]))
    report = Report(
        source, curve, shown, lambda: [wroc.calibration_chart(curve, facet=source.facet)]
    )
    show_report(report, output, targets)


def _say_how_off(slopes: pl.DataFrame, keys: Sequence[str]) -> list[str]:
    """Say which scores are too high or too low, and of which the slope is not 1."""
    low, high = pl.col("calibration_slope_low"), pl.col("calibration_slope_high")
    said = {
        "Scores rank backwards (slope below 0)": high < 0,
        "Scores are too high on average": pl.col("oe_ratio_high") < 1,
        "Scores are too low on average": pl.col("oe_ratio_low") > 1,
        "High scores are too high and low ones too low (slope below 1)": high.is_between(0, 1)
        & (high < 1),
        "Scores are too close to the middle (slope above 1)": low > 1,
    }
    sentences = []
    for text, condition in said.items():
        found = slopes.filter(condition)
        if not found.is_empty():
            listed = f": {name_places(found, keys)}" if keys else ""
            sentences.append(f"{text}{listed}.")
    if not sentences and slopes.select(low.is_null().all()).item():
        return ["O:E (observed to expected positives) is not shown to differ from 1."]
    if not sentences:
        return [
            "Neither O:E (observed to expected positives) nor a slope is shown to differ from 1."
        ]
    if keys:
        sentences.append("Limits are not adjusted for the number of groups.")
    return sentences


def _say_of_slopes(slopes: pl.DataFrame, keys: Sequence[str], clip: float | None) -> list[str]:
    """Say which slopes are unknown, and how many rows are in no slope."""
    sentences = []
    unknown = slopes.filter(pl.col("calibration_slope_low").is_null())
    if not unknown.is_empty():
        listed = f" for {name_places(unknown, keys)}" if keys else ""
        sentences.append(
            f"The slope is unknown{listed}: it needs scores between 0 and 1 of both classes, which "
            "overlap."
        )
    extreme, impossible = slopes.select(pl.col("n_extreme", "n_impossible").sum()).row(0)
    if extreme and clip is None:
        sentences.append(f"Slopes are without {many(extreme, 'row')} with a score of 0 or 1.")
    elif extreme:
        taken = f"{clip:g} or {1 - (clip or 0):g}"
        sentences.append(f"Slopes take {many(extreme, 'row')} with a score of 0 or 1 as {taken}.")
    if impossible:
        sentences.append(
            f"{many(impossible, 'row')} came out against a score of 0 or 1, which no slope can "
            "mend."
        )
    return sentences


def _say_where_off(test: pl.DataFrame, level: ConfidenceLevel) -> str:
    """Say in which ranges scores are off by more than chance."""
    keys = columns_before(test.columns, "from_score")
    found = [
        f"{name_place(row, keys) or 'scores'} from {row['from_score']:.2f} to "
        f"{row['to_score']:.2f} ({100 * abs(row['mean_calibration_error']):.0f} points "
        f"{row['direction']})"
        for row in test.filter(pl.col("p_adjusted") <= 1 - as_number(level)).iter_rows(named=True)
    ]
    sentences = [f"Without bins, off most and by more than chance: {', '.join(found)}."]
    if not found:
        sentences = ["No range of scores is shown to be off."]
    if untested := [
        f"{name_place(row, keys) or 'the scores'} ({row['reason']})"
        for row in test.drop_nulls("reason").iter_rows(named=True)
    ]:
        sentences.append(f"Not tested: {first_few(untested, SEPARATOR)}.")
    return " ".join(sentences)
