"""Options of the commands that judge: audits, their changes, and impact ratios."""

from __future__ import annotations

import argparse
from typing import Literal, get_args

from polars_wroc.audits.references import ReferenceKind
from polars_wroc.audits.result import SUFFIXES
from polars_wroc.charts.labels import ChangeMeasure, GapMetric
from polars_wroc.cli import decision_options, shared_options
from polars_wroc.cli.drawing import TABLE_OR_CHART
from polars_wroc.stats.equal_proportions import Exact


def add_audit(parser: argparse.ArgumentParser) -> None:
    """Take the options of `audit`."""
    parser.set_defaults(needs_by=True)
    shared_options.add_rows(parser)
    shared_options.add_counts(parser)
    shared_options.add_by(parser, "an attribute")
    decision_options.add_threshold(parser)
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
    decision_options.add_favorable(parser)
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
        "it holds in any segment with enough rows: auc_gap>0.05 (gaps without "
        "their sign, *_gap_low and *_gap_high with it) or, of decisions, tpr_gap>0.1, "
        "impact_ratio<0.8, impact_ratio_joint_high<0.8 (surely, whichever category has the "
        "highest rate), demographic_parity_ratio<0.8 or demographic_parity_ratio_high<0.8 (*_low "
        "and *_high of fairness metrics hold for all pairs of segments at once)",
    )
    shared_options.add_uncertainty(parser)
    shared_options.add_output(parser, SUFFIXES, prints_json=True, prints_table=True)


def add_impact(parser: argparse.ArgumentParser) -> None:
    """Take the options of `impact`."""
    shared_options.add_files(parser)
    parser.set_defaults(required=(), needs_by=True)
    decisions = parser.add_argument_group(
        "decisions", "recorded ones, or those of a threshold on a score"
    )
    decision_options.add_selected(decisions)
    shared_options.add_scores(decisions)
    shared_options.add_counts_alone(decisions, "--score")
    decisions.add_argument(
        "--threshold",
        type=_number_or_median,
        metavar="T",
        help="scores of at least T are selected; with median, scores above the median",
    )
    shared_options.add_by(parser, "an attribute")
    decision_options.add_favorable(parser)
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
        "--no-intersections",
        dest="intersections",
        action="store_false",
        help="do not compare the combinations of all attributes",
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
        "it holds in any category that is not left out: impact_ratio<0.8, "
        "impact_ratio_joint_high<0.8 (surely, whichever category has the highest rate), or "
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
        choices=get_args(GapMetric),
        help="metric in the chart; default the one that changed most surely",
    )
    parser.add_argument(
        "--measure",
        choices=get_args(ChangeMeasure),
        help="in the chart: changes of the gaps, or of the values themselves; default what changed "
        "most surely",
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
        "it holds in any segment with enough rows: auc_gap_change>0.02 (by how much the size of "
        "the gap has grown), auc_change<-0.02 (by how much the value has changed), or their "
        "limits, auc_change_high<0 or auc_gap_change_high<0 (of after less before, with its sign)",
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


def _number_or_median(text: str) -> float | Literal["median"]:
    if text == "median":
        return "median"
    try:
        return float(text)
    except ValueError:
        msg = f"must be a number or median; found {text!r}"
        raise argparse.ArgumentTypeError(msg) from None
