"""Argument parser of the `polars-wroc` command."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any, Literal, NoReturn, get_args

from polars_wroc.audits.references import ReferenceKind
from polars_wroc.audits.result import SUFFIXES
from polars_wroc.charts.labels import ChangeMeasure, GapMetric
from polars_wroc.cli import shared_options, streams
from polars_wroc.curves.bands import BandKind
from polars_wroc.files import outputs
from polars_wroc.inputs.margins import MARGIN
from polars_wroc.stats.equal_proportions import Exact

_ROWS = "Parquet, Arrow, CSV or NDJSON; glob, folder, URL"


class UsageError(Exception):
    """The command line does not fit its grammar."""


class _Parser(argparse.ArgumentParser):
    def __init__(self, **options: Any) -> None:
        # An abbreviation may become ambiguous with a new option.
        super().__init__(**options, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        msg = f"{message}; see {self.prog} --help"
        raise UsageError(msg)

    def _print_message(self, message: str, file: Any = None) -> None:  # noqa: ARG002
        # Help and version use the same error as other output if they cannot be printed.
        streams.say(message)


def build_parser(
    runs: Mapping[str, Callable[[argparse.Namespace], None]],
) -> argparse.ArgumentParser:
    """Build the parser; ``runs`` maps the name of each command to its function."""
    parser = _Parser(
        prog="polars-wroc", description="Weighted ROC curves and AUCs of scored rows, per segment."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version('polars-wroc')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (description, add_options) in _COMMANDS.items():
        command: argparse.ArgumentParser = commands.add_parser(
            name,
            help=description,
            description=f"{description[0].upper()}{description[1:]}.",
            # Lines of examples stay whole, to be copied.
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.set_defaults(run=runs[name], counts=False, required=("label", "score"), flags={})
        add_options(command)
    return parser


def _audit(parser: argparse.ArgumentParser) -> None:
    _add_files(parser)
    shared_options.add_columns(parser)
    shared_options.add_counts(parser)
    shared_options.add_by(parser, "an attribute")
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
    parser.add_argument(
        "--margin",
        type=float,
        default=MARGIN,
        metavar="M",
        help=f"gaps of less than this are taken for none in the verdicts; default {MARGIN:g}",
    )
    shared_options.add_favourable(parser)
    parser.add_argument("--title", metavar="TEXT", help="title of the report")
    parser.add_argument(
        "--note", metavar="TEXT", help="what readers of the report should know about its rows"
    )
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
        "their sign, *_gap_low and *_gap_high with it) or, with a threshold, tpr_gap>0.1, "
        "demographic_parity_ratio<0.8 or demographic_parity_ratio_high<0.8 (*_low and *_high of "
        "fairness metrics hold for all pairs of segments at once)",
    )
    shared_options.add_uncertainty(parser)
    shared_options.add_output(parser, SUFFIXES, prints_json=True)


def _auc(parser: argparse.ArgumentParser) -> None:
    _add_files(parser)
    shared_options.add_columns(parser)
    shared_options.add_counts(parser)
    shared_options.add_by(parser, "a group column")
    shared_options.add_uncertainty(parser)
    shared_options.add_output(parser, outputs.TABLE_SUFFIXES, prints_json=True)


def _curve(parser: argparse.ArgumentParser) -> None:
    _add_files(parser)
    shared_options.add_columns(parser)
    shared_options.add_counts(parser)
    shared_options.add_by(parser, "a group column")
    parser.add_argument("--max-points", type=int, metavar="N", help="at most N points per curve")
    parser.add_argument(
        "--band", choices=get_args(BandKind), help="confidence band around the curve"
    )
    shared_options.add_uncertainty(parser)
    suffixes = (*outputs.TABLE_SUFFIXES, *outputs.CHART_SUFFIXES)
    shared_options.add_output(parser, suffixes, prints_json=False)


def _counts(parser: argparse.ArgumentParser) -> None:
    _add_files(parser)
    shared_options.add_columns(parser)
    shared_options.add_by(parser, "a group column")
    shared_options.add_bins(parser, "count in about N bins of scores instead of by score")
    shared_options.add_output(parser, outputs.TABLE_SUFFIXES, prints_json=True, required=True)


def _merge(parser: argparse.ArgumentParser) -> None:
    _add_files(parser)
    parser.set_defaults(counts=True)
    shared_options.add_bins(parser, "use about N bins of scores, unless the counts have wider ones")
    shared_options.add_output(parser, outputs.TABLE_SUFFIXES, prints_json=True, required=True)


def _impact(parser: argparse.ArgumentParser) -> None:
    _add_files(parser)
    parser.set_defaults(required=())
    decisions = parser.add_argument_group(
        "decisions", "recorded ones, or those of a threshold on a score"
    )
    parser.epilog = (
        "example: fail if the selection rate of a category is surely below four fifths\n"
        "  polars-wroc impact hires.csv --selected hired --by sex --by race \\\n"
        "    --fail-if 'impact_ratio_joint_high<0.8'"
    )
    decisions.add_argument(
        "--selected",
        metavar="D",
        help="column of decisions: a Boolean one, or such as decision=hired, the value of those "
        "who are selected",
    )
    shared_options.add_scores(decisions)
    decisions.add_argument(
        "--threshold",
        type=_number_or_median,
        metavar="T",
        help="scores of at least T are selected; with median, scores above the median",
    )
    shared_options.add_by(parser, "an attribute")
    shared_options.add_favourable(parser)
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
    shared_options.add_output(parser, outputs.TABLE_SUFFIXES, prints_json=True)
    _name_options(parser)


def _diff(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(required=(), progress=False)
    parser.epilog = (
        "example: fail if a gap in AUC has grown by more than two points\n"
        "  polars-wroc diff march.json april.json --fail-if 'auc_gap_change>0.02'"
    )
    for name in ("before", "after"):
        # Both are files that must not be written.
        parser.add_argument(
            "files",
            action="append",
            metavar=name.upper(),
            help=f"the audit {name}, as JSON: what audit -o x.json writes",
        )
    parser.add_argument(
        "--metric", choices=get_args(GapMetric), help="metric in the chart; default auc"
    )
    parser.add_argument(
        "--measure",
        choices=get_args(ChangeMeasure),
        help="in the chart: changes of the gaps, or of the values themselves; default gap",
    )
    shared_options.add_adjust(parser, "changes that are tested")
    shared_options.add_gates(
        parser,
        "it holds in any segment with enough rows: auc_gap_change>0.02 (by how much the size of "
        "the gap has grown), auc_change<-0.02 (by how much the value has changed), or their "
        "limits, auc_change_high<0 or auc_gap_change_low>0 (of after less before, with its sign)",
    )
    suffixes = (*outputs.TABLE_SUFFIXES, *outputs.CHART_SUFFIXES)
    shared_options.add_output(parser, suffixes, prints_json=True)
    _name_options(parser)


_COMMANDS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None]]] = {
    "audit": ("AUCs, decisions and gaps of segments, as a report", _audit),
    "diff": ("what changed between two audits of different rows", _diff),
    "impact": ("selection rates of categories divided by the highest, without a label", _impact),
    "auc": ("the AUC and other metrics of each group", _auc),
    "curve": ("ROC curves, as a table or a chart", _curve),
    "counts": ("counts of rows by score, which add up and can replace the rows", _counts),
    "merge": ("the sum of the counts in several files", _merge),
}


def _number_or_median(text: str) -> float | Literal["median"]:
    if text == "median":
        return "median"
    try:
        return float(text)
    except ValueError:
        msg = f"must be a number or median; found {text!r}"
        raise argparse.ArgumentTypeError(msg) from None


def _name_options(parser: argparse.ArgumentParser) -> None:
    """Let error messages name options, not the arguments of functions."""
    options = {
        "path" if action.dest == "output" else action.dest: action.option_strings[-1]
        for action in parser._actions  # noqa: SLF001  (argparse lists them nowhere else)
        if action.option_strings
    }
    parser.set_defaults(flags=options)


def _add_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help=_ROWS)
    parser.add_argument(
        "--no-progress",
        dest="progress",
        action="store_false",
        help="do not show time and rows on the terminal during long work",
    )
