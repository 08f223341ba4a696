"""Tables of commands as text: a verdict first, if there is one, then the most important columns."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TypeAlias

import polars as pl

from polars_wroc.audits.fitted_table import Screen, fitted_table
from polars_wroc.audits.text_table import limits_in_text, points_in_text
from polars_wroc.charts.labels import GapMetric
from polars_wroc.cli import verdicts
from polars_wroc.groups.four_fifths import BELOW, judgement
from polars_wroc.inputs.names import MISSING, UNKNOWN_CATEGORY

_Columns: TypeAlias = list[str | pl.Expr | pl.Series]

_OF_AUCS = ("n_pos", "ks", "average_precision", "gini", "se", "n_missing", "ci_note")
_OF_DECISIONS = (
    *("threshold", "selection_rate", "tpr", "fpr", "ppv", "npv"),
    *("accuracy", "f1", "tp", "fp", "fn", "tn"),
)


def aucs_in_text(table: pl.DataFrame, screen: Screen) -> str:
    """Write the AUC of each group."""
    bounds = [name for name in ("auc_low", "auc_high") if name in table.columns]
    limits = _limits(table, "ci_low", "ci_high", "interval")
    columns: _Columns = ["n", "auc", limits, *bounds, *_OF_AUCS]
    return _written(table, columns, screen, _before(table, "n"), 3)


def pairs_in_text(table: pl.DataFrame, level: float, screen: Screen) -> str:
    """Write which AUCs of pairs of scores differ."""
    keys = _before(table, "auc_a")
    limits = _limits(table, "ci_low", "ci_high", "interval")
    columns: _Columns = ["difference", limits, "p_adjusted", "auc_a", "auc_b", "n"]
    return _written(table, columns, screen, keys, 3, verdicts.of_pairs(table, keys, level))


def gaps_in_text(
    table: pl.DataFrame, metric: GapMetric, reference: str, margin: float, screen: Screen
) -> str:
    """Write the gaps of a metric, in points."""
    gap, keys = f"{metric}_gap", _before(table, "n_pos")
    sizes = table.select(
        pl.col(gap).alias("gap, points"), pl.col(f"{gap}_detectable").alias("detectable")
    )
    columns: _Columns = [
        pl.sum_horizontal("n_pos", "n_neg").alias("n"),
        metric,
        points_in_text(sizes, "gap, points"),
        points_in_text(table, f"{gap}_low", f"{gap}_high").alias("interval"),
        pl.col(f"{gap}_verdict").alias("verdict"),
        pl.col(f"{metric}_reference").alias("reference"),
        pl.col(f"{gap}_p_adjusted").alias("p_adjusted"),
        # A size has no sign.
        points_in_text(sizes, "detectable").str.replace("+", " ", literal=True),
    ]
    verdict = verdicts.of_gaps(table, keys, metric, reference, margin)
    return _written(table, columns, screen, keys, 5, verdict)


def decisions_in_text(table: pl.DataFrame, screen: Screen) -> str:
    """Write the rates at thresholds."""
    keys = _before(table, "threshold")
    return _written(table, [*_OF_DECISIONS], screen, keys, 4, verdicts.of_decisions(table, keys))


def calibration_in_text(curve: pl.DataFrame, slopes: pl.DataFrame, screen: Screen) -> str:
    """Write the calibration of each group, then the curves."""
    keys = _before(slopes, "n")
    columns: _Columns = [
        "n",
        *(pl.col("oe_ratio").alias("O:E"), _limits(slopes, "oe_low", "oe_high", "interval")),
        pl.col("calibration_slope").alias("slope"),
        _limits(slopes, "calibration_slope_low", "calibration_slope_high", "interval of slope"),
        *("mean_score", "observed_rate"),
        pl.col("calibration_intercept").alias("intercept"),
    ]
    # The columns that are asked for are those of the curve.
    plain = Screen(screen.width, screen.rows, more_rows=screen.more_rows)
    first = _written(slopes, columns, plain, keys, 5, verdicts.of_calibration(slopes, keys))
    columns = [
        _limits(curve, "score_min", "score_max", "scores"),
        *("n", "mean_score", "observed_rate"),
        _limits(curve, "observed_rate_low", "observed_rate_high", "interval"),
        "difference",
    ]
    return f"{first}\n\n{_written(curve, columns, screen, [*keys, 'bin'], 4)}"


def impact_in_text(
    table: pl.DataFrame, keys: Sequence[str], notes: Sequence[str], screen: Screen
) -> str:
    """Write the impact ratio of each category, after a verdict and notes."""
    verdict = " ".join([verdicts.of_impact(table, keys), *notes])
    named = table.with_columns(pl.col(key).fill_null(UNKNOWN_CATEGORY) for key in keys)
    columns: _Columns = [
        "n",
        pl.col("selection_rate").alias("rate"),
        pl.col("impact_ratio").alias("ratio"),
        _limits(table, "impact_ratio_joint_low", "impact_ratio_joint_high", "joint limits"),
        judgement(pl.col("impact_ratio"), pl.col(BELOW)).alias("below 4/5"),
        "reference",
        "p_adjusted",
        "shortfall",
    ]
    return _written(named, columns, screen, keys, 5, verdict)


def _written(
    table: pl.DataFrame,
    columns: _Columns,
    screen: Screen,
    keys: Sequence[str],
    least: int,
    verdict: str | None = None,
) -> str:
    """Write the verdict, and the ``least`` of the columns with others that fit."""
    texts = [pl.col(key).cast(pl.String).fill_null(MISSING) for key in keys]
    short = table.select(*texts, *columns)
    text = fitted_table(table.with_columns(texts), short, screen, keys, least)
    return f"{textwrap.fill(verdict, screen.width)}\n\n{text}" if verdict else text


def _before(table: pl.DataFrame, first: str) -> list[str]:
    """List the groups, which come before the columns of the table."""
    return table.columns[: table.columns.index(first)]


def _limits(table: pl.DataFrame, low: str, high: str, name: str) -> pl.Series:
    return limits_in_text(table, low, high).alias(name)
