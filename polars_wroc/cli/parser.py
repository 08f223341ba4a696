"""Argument parser of the `polars-wroc` command."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any, NoReturn, get_args

from polars_wroc.audits.references import ReferenceKind
from polars_wroc.audits.result import SUFFIXES
from polars_wroc.cli import streams
from polars_wroc.curves.bands import BandKind
from polars_wroc.files import outputs
from polars_wroc.groups.impact_table import Favourable
from polars_wroc.groups.verdicts import MARGIN
from polars_wroc.inputs.arguments import WeightType
from polars_wroc.inputs.replicate_weights import ReplicateKind
from polars_wroc.inputs.survey_design import Lonely
from polars_wroc.stats.multiple_tests import Adjust
from polars_wroc.thresholds.rules import Criterion


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

    audited = _command(commands, "audit", runs, "AUCs, decisions and gaps of segments, as a report")
    _add_columns(audited)
    _add_counts(audited)
    _add_by(audited, "an attribute")
    _add_threshold(audited)
    audited.add_argument(
        "--intersections",
        action="store_true",
        help="also audit the combinations of all attributes",
    )
    audited.add_argument(
        "--reference",
        action="append",
        metavar="R",
        default=[],
        help=f"what segments are compared with: one of {', '.join(get_args(ReferenceKind))}; or "
        "such as sex=m, the reference segment of an attribute, repeatable; default rest",
    )
    audited.add_argument(
        "--min-rows",
        type=int,
        default=30,
        metavar="N",
        help="rows of each class that a segment needs to be tested; default 30",
    )
    audited.add_argument(
        "--margin",
        type=float,
        default=MARGIN,
        metavar="M",
        help=f"gaps of less than this are taken for none in the verdicts; default {MARGIN:g}",
    )
    audited.add_argument(
        "--favourable",
        choices=get_args(Favourable),
        default="selected",
        help="which decision is good for a row; default selected",
    )
    audited.add_argument("--title", metavar="TEXT", help="title of the report")
    audited.add_argument(
        "--note", metavar="TEXT", help="what readers of the report should know about its rows"
    )
    audited.add_argument(
        "--min-cell",
        type=int,
        metavar="N",
        help="leave out numbers of fewer rows, and what would give them away",
    )
    audited.add_argument(
        "--adjust",
        choices=get_args(Adjust),
        default="holm",
        help="how p-values are adjusted for the number of tests in the audit; default holm",
    )
    audited.add_argument(
        "--fail-if",
        action="append",
        metavar="LIMIT",
        default=[],
        help="exit with 1 if it holds in any segment with enough rows: auc_gap>0.05 (gaps without "
        "their sign, *_gap_low and *_gap_high with it) or, with a threshold, tpr_gap>0.1, "
        "demographic_parity_ratio<0.8 or demographic_parity_ratio_high<0.8 (*_low and *_high of "
        "fairness metrics hold for all pairs of segments at once); comparisons are > >= < <=; "
        "repeatable",
    )
    _add_uncertainty(audited)
    _add_output(audited, SUFFIXES, prints_json=True)

    measured = _command(commands, "auc", runs, "the AUC and other metrics of each group")
    _add_columns(measured)
    _add_counts(measured)
    _add_by(measured, "a group column")
    _add_uncertainty(measured)
    _add_output(measured, outputs.TABLE_SUFFIXES, prints_json=True)

    drawn = _command(commands, "curve", runs, "ROC curves, as a table or a chart")
    _add_columns(drawn)
    _add_counts(drawn)
    _add_by(drawn, "a group column")
    drawn.add_argument("--max-points", type=int, metavar="N", help="at most N points per curve")
    drawn.add_argument(
        "--band", choices=get_args(BandKind), help="confidence band around the curve"
    )
    _add_uncertainty(drawn)
    _add_output(drawn, (*outputs.TABLE_SUFFIXES, *outputs.CHART_SUFFIXES), prints_json=False)

    counted = _command(
        commands, "counts", runs, "counts of rows by score, which add up and can replace the rows"
    )
    counted.set_defaults(counts=False)
    _add_columns(counted)
    _add_by(counted, "a group column")
    _add_bins(counted, "count in about N bins of scores instead of by score")
    _add_output(counted, outputs.TABLE_SUFFIXES, prints_json=True, required=True)

    merged = _command(commands, "merge", runs, "the sum of the counts in several files")
    merged.set_defaults(counts=True)
    _add_bins(merged, "use about N bins of scores, unless the counts have wider ones")
    _add_output(merged, outputs.TABLE_SUFFIXES, prints_json=True, required=True)
    return parser


def _command(
    commands: Any, name: str, runs: Mapping[str, Any], description: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=description, description=f"{description[0].upper()}{description[1:]}."
    )
    parser.set_defaults(run=runs[name])
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="Parquet, Arrow, CSV or NDJSON; glob, folder, URL"
    )
    parser.add_argument(
        "--no-progress",
        dest="progress",
        action="store_false",
        help="do not show time and rows on the terminal during long work",
    )
    return parser


def _add_columns(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--label", metavar="L", help="column of the labels")
    parser.add_argument(
        "--score",
        action="append",
        metavar="S",
        help="column of a score; higher means more positive; repeatable",
    )
    parser.add_argument("--weight", metavar="W", help="column of the row weights")
    parser.add_argument("--pos-label", metavar="X", help="positive value of the label")


def _add_counts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--counts",
        action="store_true",
        help="the files are counts, not rows: they are added up and need no --label and --score",
    )
    _add_bins(parser, "use about N bins of scores: fast, in little memory, with bounds of each AUC")


def _add_bins(parser: argparse.ArgumentParser, help_text: str) -> None:
    parser.add_argument("--bins", type=int, metavar="N", help=help_text)


def _add_by(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument(
        "--by", action="append", metavar="A", default=[], help=f"{what}; repeatable"
    )


def _add_threshold(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "threshold", "where to measure decisions: a threshold, or a rule that chooses it"
    )
    group.add_argument(
        "--threshold", type=float, metavar="T", help="scores of at least T are positive"
    )
    group.add_argument(
        "--criterion", choices=get_args(Criterion), help="what the threshold optimises"
    )
    group.add_argument("--cost-fn", type=float, metavar="C", help="cost of a false negative")
    group.add_argument("--cost-fp", type=float, metavar="C", help="cost of a false positive")
    group.add_argument(
        "--prevalence",
        type=float,
        metavar="P",
        help="prevalence in the population that the cost is for",
    )
    group.add_argument(
        "--max-fpr", type=float, metavar="R", help="highest tpr with an fpr of at most R"
    )
    group.add_argument(
        "--min-tpr", type=float, metavar="R", help="lowest fpr with a tpr of at least R"
    )
    group.add_argument(
        "--max-selection-rate", type=float, metavar="R", help="highest selection rate of at most R"
    )


def _add_uncertainty(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--level", type=float, default=0.95, metavar="P", help="confidence level; default 0.95"
    )
    parser.add_argument(
        "--weight-type",
        choices=get_args(WeightType),
        default="probability",
        help="what a weight is: how much of a population a row represents, or how many rows",
    )

    parser.add_argument(
        "--cluster",
        metavar="C",
        help="column of clusters or sampling units: rows with the same value belong together",
    )
    parser.add_argument("--strata", metavar="H", help="column of the strata of a survey")
    parser.add_argument(
        "--fpc",
        metavar="F",
        help="column of the sampled proportion, or of the number, of a stratum's sampling units",
    )
    parser.add_argument(
        "--lonely",
        choices=get_args(Lonely),
        help="what the only sampling unit of a stratum adds to a variance: it is unknown (null, "
        "the default), nothing, or its squared distance from the mean of all units",
    )
    parser.add_argument(
        "--replicate-weights",
        action="append",
        metavar="R",
        help="column of replicate weights, or several as in 'brr*'; repeat for more",
    )
    parser.add_argument(
        "--replicate-kind",
        # The jackknife in strata needs a factor for each column.
        choices=[kind for kind in get_args(ReplicateKind) if kind != "jkn"],
        help="how the replicate weights were made",
    )
    parser.add_argument(
        "--replicate-rho", type=float, metavar="RHO", help="Fay's coefficient, for kind fay"
    )
    parser.add_argument(
        "--replicate-df",
        type=int,
        metavar="DF",
        help="degrees of freedom of the design: sampling units less strata",
    )


def _add_output(
    parser: argparse.ArgumentParser,
    suffixes: Sequence[str],
    *,
    prints_json: bool,
    required: bool = False,
) -> None:
    listed = ", ".join(suffixes)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        required=required or not prints_json,
        help=f"{listed}; - prints JSON" if prints_json else listed,
    )
