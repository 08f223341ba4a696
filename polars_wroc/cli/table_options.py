"""Options of the commands that make one table, and of counts."""

from __future__ import annotations

import argparse
from typing import get_args

from polars_wroc.audits.references import ReferenceKind
from polars_wroc.charts.labels import GapMetric
from polars_wroc.cli import decision_options, shared_options
from polars_wroc.cli.curve_kinds import CURVES
from polars_wroc.cli.drawing import TABLE_OR_CHART
from polars_wroc.curves.bands import BandKind
from polars_wroc.curves.calibration_curve import Strategy
from polars_wroc.files import outputs
from polars_wroc.metrics.paired_tests import ComparisonMethod

_GROUP = "a group column; with several, each combination of their values is a group"


def add_auc(parser: argparse.ArgumentParser) -> None:
    """Take the options of `auc`."""
    shared_options.add_rows(parser)
    shared_options.add_counts(parser)
    shared_options.add_by(parser, _GROUP)
    shared_options.add_uncertainty(parser)
    shared_options.add_output(parser, TABLE_OR_CHART, prints_json=True, prints_table=True)


def add_compare(parser: argparse.ArgumentParser) -> None:
    """Take the options of `compare`."""
    shared_options.add_rows(parser)
    shared_options.add_by(parser, _GROUP)
    parser.add_argument(
        "--method",
        choices=get_args(ComparisonMethod),
        default="delong",
        help="how AUCs are compared: by DeLong's test, or by their score-type intervals, for AUCs "
        "near 1 and few rows; default delong",
    )
    shared_options.add_adjust(parser, "tests in the table")
    shared_options.add_gates(
        parser,
        "it holds for any pair of scores: ci_high<0 (the AUC of the first score is surely lower), "
        "difference<-0.02, or another number of the table",
    )
    shared_options.add_uncertainty(parser)
    shared_options.add_output(parser, TABLE_OR_CHART, prints_json=True, prints_table=True)


def add_gaps(parser: argparse.ArgumentParser) -> None:
    """Take the options of `gaps`."""
    parser.set_defaults(needs_by=True)
    shared_options.add_rows(parser)
    shared_options.add_counts_alone(parser, "--label and --score")
    shared_options.add_by(parser, _GROUP)
    decisions = parser.add_argument_group("decisions", "for gaps of rates")
    decisions.add_argument(
        "--threshold", type=float, metavar="T", help="scores of at least T are selected"
    )
    decision_options.add_selected(decisions)
    parser.add_argument(
        "--reference",
        action="append",
        metavar="R",
        default=[],
        help=f"what groups are compared with: one of {', '.join(get_args(ReferenceKind))}; or a "
        "group such as sex=m; with several group columns give the option once for each; default "
        "rest",
    )
    parser.add_argument(
        "--within",
        action="append",
        metavar="A",
        help="column of strata such as jobs or sites, in which groups are compared; repeatable",
    )
    shared_options.add_margin(parser)
    parser.add_argument(
        "--min-rows",
        type=int,
        default=0,
        metavar="N",
        help="rows of each class that a group needs to be tested; default 0",
    )
    parser.add_argument(
        "--metric",
        choices=get_args(GapMetric),
        help="metric that is printed and drawn, rates with decisions only; default auc",
    )
    shared_options.add_adjust(parser, "tests in the table")
    shared_options.add_uncertainty(parser)
    shared_options.add_output(parser, TABLE_OR_CHART, prints_json=True, prints_table=True)


def add_thresholds(parser: argparse.ArgumentParser) -> None:
    """Take the options of `thresholds`."""
    shared_options.add_rows(parser)
    shared_options.add_counts_alone(parser, "--label and --score")
    shared_options.add_by(parser, _GROUP)
    group = parser.add_argument_group("thresholds", "given ones, or a rule that chooses one")
    group.add_argument(
        "--threshold",
        dest="thresholds",
        action="append",
        type=float,
        metavar="T",
        help="scores of at least T are selected; repeatable",
    )
    decision_options.add_rule(
        group, "that the cost of a rule is for; with --threshold, that the rates are for"
    )
    group.add_argument(
        "--common",
        action="store_true",
        help="choose one threshold for all groups, not one for each",
    )
    shared_options.add_level(parser)
    shared_options.add_output(parser, TABLE_OR_CHART, prints_json=True, prints_table=True)


def add_calibrate(parser: argparse.ArgumentParser) -> None:
    """Take the options of `calibrate`."""
    shared_options.add_rows(parser)
    shared_options.add_counts_alone(parser, "--label and --score")
    shared_options.add_by(parser, _GROUP)
    parser.add_argument(
        "--bins",
        dest="curve_bins",
        type=int,
        default=10,
        metavar="N",
        help="bins of the curve; default 10",
    )
    parser.add_argument(
        "--strategy",
        choices=get_args(Strategy),
        default="uniform",
        help="bins of equal width, or of equal weight; default uniform",
    )
    shared_options.add_level(parser)
    shared_options.add_output(parser, TABLE_OR_CHART, prints_json=True, prints_table=True)


def add_curve(parser: argparse.ArgumentParser) -> None:
    """Take the options of `curve`."""
    shared_options.add_rows(parser)
    shared_options.add_counts(parser)
    shared_options.add_by(parser, _GROUP)
    parser.add_argument("--kind", choices=[*CURVES], default="roc", help="which curve; default roc")
    parser.add_argument("--max-points", type=int, metavar="N", help="at most N points per curve")
    parser.add_argument(
        "--band", choices=get_args(BandKind), help="confidence band around the curve"
    )
    decision_options.add_costs(parser.add_argument_group("costs", "for --kind cost"))
    shared_options.add_uncertainty(parser)
    shared_options.add_output(parser, TABLE_OR_CHART, prints_json=False)


def add_score_counts(parser: argparse.ArgumentParser) -> None:
    """Take the options of `counts`."""
    parser.set_defaults(required=("score",))
    shared_options.add_rows(parser, "; without it the counts have impact ratios only")
    shared_options.add_by(parser, "a group column")
    shared_options.add_bins(parser, "count in about N bins of scores instead of by score")
    shared_options.add_output(parser, outputs.TABLE_SUFFIXES, prints_json=True, required=True)


def add_merge(parser: argparse.ArgumentParser) -> None:
    """Take the options of `merge`."""
    parser.set_defaults(counts=True)
    shared_options.add_files(parser)
    shared_options.add_bins(parser, "use about N bins of scores, unless the counts have wider ones")
    shared_options.add_output(parser, outputs.TABLE_SUFFIXES, prints_json=True, required=True)
