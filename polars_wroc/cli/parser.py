"""What may stand on the command line."""

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
from polars_wroc.inputs.arguments import WeightType
from polars_wroc.stats.multiple_tests import Adjust
from polars_wroc.thresholds.rules import Criterion


class UsageError(Exception):
    """The command line does not fit its grammar."""


class _Parser(argparse.ArgumentParser):
    def __init__(self, **options: Any) -> None:
        # A short form that is clear today may not be so with the next option.
        super().__init__(**options, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        msg = f"{message}; see {self.prog} --help"
        raise UsageError(msg)

    def _print_message(self, message: str, file: Any = None) -> None:  # noqa: ARG002
        # Help and the version: what cannot be printed is an error for these as well.
        streams.say(message)


def build_parser(
    runs: Mapping[str, Callable[[argparse.Namespace], None]],
) -> argparse.ArgumentParser:
    """Describe the commands, each of which runs what is named after it."""
    parser = _Parser(
        prog="polars-wroc", description="Weighted ROC curves and AUCs of scored rows, per segment."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version('polars-wroc')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    audited = _command(commands, "audit", runs, "each segment of each attribute, as a report")
    _add_columns(audited)
    _add_counts(audited)
    _add_by(audited, "an attribute")
    _add_threshold(audited)
    audited.add_argument(
        "--intersections",
        action="store_true",
        help="audit also all attributes crossed",
    )
    audited.add_argument(
        "--reference",
        action="append",
        metavar="R",
        default=[],
        help=f"what segments are compared with: one of {', '.join(get_args(ReferenceKind))}; or "
        "as sex=m a segment of an attribute, repeatable; the rest unless something else is said",
    )
    audited.add_argument(
        "--min-rows",
        type=int,
        default=30,
        metavar="N",
        help="rows of each class that a segment needs to be tested; 30",
    )
    audited.add_argument(
        "--adjust",
        choices=get_args(Adjust),
        default="holm",
        help="how p-values allow for the number of all tests of the audit; holm",
    )
    audited.add_argument(
        "--fail-if",
        action="append",
        metavar="LIMIT",
        default=[],
        help="exit with 1 if it holds in any segment with rows enough, as auc_gap>0.05 (gaps are "
        "taken without their sign, *_gap_low and *_gap_high with it) or, with a threshold, "
        "tpr_gap>0.1, demographic_parity_ratio<0.8 or demographic_parity_ratio_high<0.8; signs are "
        "> >= < <=; repeatable",
    )
    _add_uncertainty(audited)
    _add_output(audited, SUFFIXES, prints_json=True)

    measured = _command(commands, "auc", runs, "one line of numbers per group")
    _add_columns(measured)
    _add_counts(measured)
    _add_by(measured, "a group column")
    _add_uncertainty(measured)
    _add_output(measured, outputs.TABLE_SUFFIXES, prints_json=True)

    drawn = _command(commands, "curve", runs, "ROC curves, as a table or a chart")
    _add_columns(drawn)
    _add_counts(drawn)
    _add_by(drawn, "a group column")
    drawn.add_argument("--max-points", type=int, metavar="N", help="at most N points a curve")
    drawn.add_argument("--band", choices=get_args(BandKind), help="limits around the curve")
    _add_uncertainty(drawn)
    _add_output(drawn, (*outputs.TABLE_SUFFIXES, *outputs.CHART_SUFFIXES), prints_json=False)

    counted = _command(
        commands, "counts", runs, "counts of rows by score, which add up and stand for the rows"
    )
    counted.set_defaults(counts=False)
    _add_columns(counted)
    _add_by(counted, "a group column")
    _add_bins(counted, "of about N bins of scores instead of each score")
    _add_output(counted, outputs.TABLE_SUFFIXES, prints_json=True, required=True)

    merged = _command(commands, "merge", runs, "counts of several files added up")
    merged.set_defaults(counts=True)
    _add_bins(merged, "in about N bins of scores, if they are not in wider ones")
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
        help="no line about rows and time, which a terminal shows while work takes long",
    )
    return parser


def _add_columns(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--label", metavar="L", help="column of the outcomes")
    parser.add_argument(
        "--score",
        action="append",
        metavar="S",
        help="column of a score, higher meaning more positive; repeatable",
    )
    parser.add_argument("--weight", metavar="W", help="column of the row weights")
    parser.add_argument("--pos-label", metavar="X", help="the label's positive value")


def _add_counts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--counts",
        action="store_true",
        help="the files are counts, not rows: they are added up, and name label and score already",
    )
    _add_bins(parser, "work with about N bins of scores: fast and small, with bounds of each AUC")


def _add_bins(parser: argparse.ArgumentParser, help_text: str) -> None:
    parser.add_argument("--bins", type=int, metavar="N", help=help_text)


def _add_by(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument(
        "--by", action="append", metavar="A", default=[], help=f"{what}; repeatable"
    )


def _add_threshold(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "threshold", "where to measure decisions: a threshold, or the rule that chooses it"
    )
    group.add_argument("--threshold", type=float, metavar="T", help="scores from here on")
    group.add_argument("--criterion", choices=get_args(Criterion), help="what is best")
    group.add_argument("--cost-fn", type=float, metavar="C", help="of a false negative")
    group.add_argument("--cost-fp", type=float, metavar="C", help="of a false positive")
    group.add_argument(
        "--prevalence", type=float, metavar="P", help="in the population that the cost is for"
    )
    group.add_argument("--max-fpr", type=float, metavar="R", help="most tpr with at most this fpr")
    group.add_argument(
        "--min-tpr", type=float, metavar="R", help="least fpr with at least this tpr"
    )
    group.add_argument(
        "--max-selection-rate", type=float, metavar="R", help="highest selection rate up to this"
    )


def _add_level(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--level", type=float, default=0.95, metavar="P", help="of the intervals; 0.95"
    )
    parser.add_argument(
        "--weight-type",
        choices=get_args(WeightType),
        default="probability",
        help="what a weight is: how much a row stands for, or how many rows it is",
    )


def _add_uncertainty(parser: argparse.ArgumentParser) -> None:
    _add_level(parser)
    parser.add_argument(
        "--cluster", metavar="C", help="column that is equal in rows that belong together"
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
