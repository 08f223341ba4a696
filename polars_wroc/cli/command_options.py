"""Options of single commands: audits, changes, impact ratios, tables and curves."""

from __future__ import annotations

import argparse
from typing import NamedTuple, get_args

from polars_wroc.audits.result import SUFFIXES
from polars_wroc.audits.tables import ReferenceKind
from polars_wroc.cli import process, shared_options
from polars_wroc.cli.results import TABLE_OR_CHART
from polars_wroc.cli.sources import Name
from polars_wroc.curves.calibration_curve import Strategy
from polars_wroc.curves.roc_curve import BandKind
from polars_wroc.files import outputs
from polars_wroc.groups.auc_sums import GAP_METRICS
from polars_wroc.metrics.paired_tests import ComparisonMethod
from polars_wroc.stats.difference_tests import Exact
from polars_wroc.thresholds.threshold_rates import DEFAULT_METRICS


def add_audit(parser: argparse.ArgumentParser) -> None:
    """Take the options of `audit`."""
    shared_options.add_rows(parser)
    shared_options.add_counts(parser)
    shared_options.add_attributes(parser)
    shared_options.add_threshold(parser)
    parser.add_argument(
        "--intersections",
        action="store_true",
        help="also audit the combinations of all attributes",
    )
    parser.add_argument(
        "--reference",
        action="append",
        metavar="R",
        default=[],
        help=f"what segments are compared with: one of {', '.join(get_args(ReferenceKind))}; or "
        "such as sex=m, the reference segment of an attribute, repeatable; default rest",
    )
    parser.add_argument(
        "--min-rows",
        type=int,
        default=30,
        metavar="N",
        help="rows of each class that a segment needs to be tested; default 30",
    )
    shared_options.add_margin(parser)
    shared_options.add_favorable(parser)
    _add_text(parser)
    parser.add_argument(
        "--min-cell",
        type=int,
        metavar="N",
        help="leave out numbers of fewer rows, and what would give them away",
    )
    shared_options.add_adjust(parser, "tests in the audit")
    shared_options.add_gates(
        parser,
        "it holds in any segment with enough rows: a metric and a column of the table, such as "
        "auc.gap>0.05 (without its sign; gap_low and gap_high have one) or auc.value<0.7; of "
        "decisions also tpr.gap>0.1, impact_ratio.ratio_high<0.8 (surely, whichever category has "
        "the highest rate) or demographic_parity_ratio.ratio<0.8. Begin with race: or race=black: "
        "for a place, and write tpr.verdict=different for a verdict",
    )
    shared_options.add_uncertainty(parser)
    shared_options.add_output(parser, SUFFIXES, prints_json=True, prints_table=True)


def add_impact(parser: argparse.ArgumentParser) -> None:
    """Take the options of `impact`."""
    shared_options.add_files(parser)
    parser.set_defaults(required=())
    decisions = parser.add_argument_group(
        "decisions", "recorded ones, or those of a threshold on a score"
    )
    shared_options.add_selected(decisions)
    shared_options.add_scores(decisions)
    shared_options.add_counts_alone(decisions, "--score")
    decisions.add_argument(
        "--threshold",
        type=shared_options.threshold_of,
        metavar="T",
        help="scores of at least T are selected; with median, scores above the median",
    )
    shared_options.add_attributes(parser)
    shared_options.add_favorable(parser)
    parser.add_argument(
        "--reference",
        action="append",
        metavar="R",
        default=[],
        help="what categories are compared with: highest, the one with the highest rate; or such "
        "as sex=m, the reference category of an attribute, repeatable; default highest",
    )
    parser.add_argument(
        "--unknown",
        action="append",
        metavar="V",
        default=[],
        help="which categories are unknown: exclude, those without a value; a value such as '' or "
        "'not stated', which is unknown too, repeatable; keep, none; default exclude",
    )
    parser.add_argument(
        "--min-share",
        type=float,
        default=0.02,
        metavar="P",
        help="categories with a smaller share of the weight are shown, not judged; default 0.02",
    )
    parser.add_argument(
        "--intersections",
        action="store_true",
        help="compare the combinations of all attributes too",
    )
    parser.add_argument(
        "--exact",
        choices=get_args(Exact),
        default="mid-p",
        help="the test of small categories; default mid-p",
    )
    shared_options.add_adjust(parser, "tests in the table")
    shared_options.add_gates(
        parser,
        "it holds in any category that is not left out: impact_ratio.ratio<0.8, "
        "impact_ratio.ratio_high<0.8 (surely, whichever category has the highest rate), or "
        "another number of the table",
    )
    shared_options.add_uncertainty(parser)
    shared_options.add_output(parser, TABLE_OR_CHART, prints_json=True, prints_table=True)


def add_diff(parser: argparse.ArgumentParser) -> None:
    """Take the options of `diff`."""
    parser.set_defaults(required=(), progress=False)
    for name in ("before", "after"):
        # Both are files that must not be written.
        parser.add_argument(
            "files",
            action="append",
            metavar=name.upper(),
            help=f"the audit {name}, as JSON: what audit -o x.json writes",
        )
    parser.add_argument(
        "--metric",
        choices=[*GAP_METRICS],
        help="metric in the chart; default the one that changed most surely",
    )
    parser.add_argument(
        "--show",
        choices=("value", "gap"),
        help="what the chart is of: changes of values or of gaps; default what changed most surely",
    )
    shared_options.add_adjust(parser, "changes that are tested")
    parser.add_argument(
        "--different-rows",
        action="store_true",
        help="the audits are of different rows, although all segments have the same numbers of "
        "rows and positives and the same weights",
    )
    shared_options.add_gates(
        parser,
        "it holds in any segment with enough rows: auc.gap.growth>0.02 (by how much the size of "
        "the gap has grown), auc.change<-0.02 (by how much the value has changed), or their "
        "limits, auc.change_high<0 or auc.gap.change_high<0 (of after less before, with its sign)",
    )
    shared_options.add_output(parser, TABLE_OR_CHART, prints_json=True, prints_table=True)


def _add_text(parser: argparse.ArgumentParser) -> None:
    """Take the title and note of a report, and the words of its sentences."""
    for name, what in {
        "title": "title of the report",
        "note": "what readers of the report should know about its rows",
        "positive": "what people of the positive class are, such as repaid",
        "negative": "what people of the negative class are, such as 'in default'",
        "selected-word": "what people are who are selected, such as hired",
        "rejected-word": "what people are who are not selected, such as turned down",
    }.items():
        parser.add_argument(f"--{name}", metavar="TEXT", help=what)


class CurveKind(NamedTuple):
    """A function that makes a curve, and the options that not all kinds have."""

    function: Name
    options: tuple[str, ...] = ()
    # Whether its chart is drawn from the ROC curve, and whether there is only a chart.
    drawn_from_roc: bool = False
    only_chart: bool = False


# What `--kind` names, as the kinds of tables that have charts.
CURVES = {
    "roc": CurveKind("roc_curve", ("level", "max_points", "band", "bins")),
    "pr": CurveKind("pr_curve"),
    "det": CurveKind("roc_curve", only_chart=True),
    "gain": CurveKind("roc_curve", only_chart=True),
    "cost": CurveKind("cost_curve", ("cost_fn", "cost_fp", "prevalence"), drawn_from_roc=True),
    "decision": CurveKind("decision_curve", ("level",)),
}


_GROUP = "a group column; with several, each combination of their values is a group"


def add_auc(parser: argparse.ArgumentParser) -> None:
    """Take the options of `auc`."""
    shared_options.add_rows(parser)
    shared_options.add_counts(parser)
    shared_options.add_by(parser, _GROUP)
    parser.add_argument(
        "--diagnostics",
        action="store_true",
        help="add columns that say what each interval rests on",
    )
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
        "it holds for any pair of scores: auc.difference_high<0 (the AUC of the first score is "
        "surely lower), auc.difference<-0.02, or another number of the table",
    )
    shared_options.add_uncertainty(parser)
    shared_options.add_output(parser, TABLE_OR_CHART, prints_json=True, prints_table=True)


def add_gaps(parser: argparse.ArgumentParser) -> None:
    """Take the options of `gaps`."""
    shared_options.add_rows(parser)
    shared_options.add_counts_alone(parser, "--label and --score")
    shared_options.add_attributes(parser)
    decisions = parser.add_argument_group("decisions", "for gaps of rates")
    decisions.add_argument(
        "--threshold",
        type=shared_options.threshold_of,
        metavar="T",
        help=shared_options.THRESHOLD,
    )
    shared_options.add_selected(decisions)
    parser.add_argument(
        "--reference",
        action="append",
        metavar="R",
        default=[],
        help=f"what groups are compared with: one of {', '.join(get_args(ReferenceKind))}; or a "
        "group such as sex=m, the reference of an attribute, repeatable; default rest",
    )
    parser.add_argument(
        "--within",
        action="append",
        metavar="A",
        help="column of strata such as jobs or sites, in which groups are compared; repeatable",
    )
    parser.add_argument(
        "--intersections",
        action="store_true",
        help="compare the combinations of all attributes too",
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
        choices=[*GAP_METRICS],
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
        action="append",
        type=shared_options.threshold_of,
        metavar="T",
        help=f"{shared_options.THRESHOLD}; numbers may be repeated",
    )
    shared_options.add_prevalence(group, "that the rates are for")
    group.add_argument("--common", action="store_true", help="choose one threshold for all groups")
    parser.add_argument(
        "--metrics",
        type=process.columns_of,
        metavar="LIST",
        default=DEFAULT_METRICS,
        help=f"metrics such as tpr,lift, or all; default {','.join(DEFAULT_METRICS)}",
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
    shared_options.add_costs(parser.add_argument_group("costs", "for --kind cost"))
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
