"""Options that several commands share."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, get_args

import polars as pl
import polars.selectors as cs

from polars_wroc.cli import process
from polars_wroc.inputs.arguments import MARGIN, did_you_mean
from polars_wroc.inputs.columns import Frequency
from polars_wroc.inputs.decisions import Favorable
from polars_wroc.inputs.designs import Lonely, ReplicateWeights
from polars_wroc.stats.difference_tests import Adjust
from polars_wroc.thresholds import rules
from polars_wroc.thresholds.rules import Rule, Threshold

# Arguments of functions that have other names than the options.
_ALIASES = {
    "path": "output",
    "frame": "files",
    "frames": "files",
    "bins": "curve_bins",
    "by": "groups",
    "facet": "groups",
    "attributes": "groups",
    "design": "cluster",
}


def flags_of(parser: argparse.ArgumentParser) -> dict[str, str]:
    """Map arguments of functions to the options that set them, which messages then name."""
    flags = dict[str, str]()
    for action in parser._actions:  # noqa: SLF001  (argparse lists them nowhere else)
        if action.option_strings:
            flags[action.dest] = action.option_strings[-1]
        else:
            flags |= dict.fromkeys((action.dest, str(action.metavar).lower()), str(action.metavar))
    aliases = {name: flags[other] for name, other in _ALIASES.items() if other in flags}
    return {"counts": flags.get("files", "FILE")} | aliases | flags


def mark_required(parser: argparse.ArgumentParser) -> None:
    """Say in the help which options must be given."""
    required = parser.get_default("required")
    always = ("groups",) if parser.get_default("attributes") else ()
    for action in parser._actions:  # noqa: SLF001
        if action.option_strings and (action.required or action.dest in (*required, *always)):
            action.help = f"{action.help} (required)"


def add_files(parser: argparse.ArgumentParser) -> None:
    """Name the files, and whether progress is shown."""
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="Parquet, Arrow, CSV or NDJSON; glob, folder, URL",
    )
    parser.add_argument(
        "--no-progress",
        dest="progress",
        action="store_false",
        help="do not show time and rows on the terminal during long work",
    )


def add_rows(parser: argparse.ArgumentParser, without_label: str = "") -> None:
    """Name files, and the columns of labels, scores and weights."""
    add_files(parser)
    parser.add_argument("--label", metavar="L", help=f"column of the labels{without_label}")
    add_scores(parser)
    parser.add_argument(
        "--pos-label", metavar="X", help="positive value of other labels than 0 and 1, such as yes"
    )


def add_scores(parser: argparse._ActionsContainer) -> None:
    """Name the columns of scores and weights."""
    parser.add_argument(
        "--score",
        action="append",
        metavar="S",
        help="column of a score; higher means more positive; repeatable",
    )
    weights = parser.add_mutually_exclusive_group()
    weights.add_argument(
        "--frequency",
        dest="weight",
        type=Frequency,
        metavar="N",
        help="column of weights that count rows: how many a row is",
    )
    # The last option of an argument is the one that messages name.
    weights.add_argument(
        "--weight", metavar="W", help="column of weights: how much of a population a row represents"
    )


def add_counts(parser: argparse.ArgumentParser) -> None:
    """Read counts in place of rows, or bins of scores."""
    add_counts_alone(parser, "--label and --score")
    add_bins(parser, "use about N bins of scores: fast, in little memory, with bounds of each AUC")


def add_counts_alone(parser: argparse._ActionsContainer, columns: str) -> None:
    """Read counts in place of rows with ``columns``."""
    parser.add_argument(
        "--counts",
        action="store_true",
        help=f"the files are counts, not rows: they are added up and need no {columns}",
    )


def add_bins(parser: argparse.ArgumentParser, help_text: str) -> None:
    """Bin the scores."""
    parser.add_argument("--bins", type=int, metavar="N", help=help_text)


def add_attributes(parser: argparse.ArgumentParser) -> None:
    """Name the attributes whose segments are compared, of which there must be one."""
    parser.set_defaults(attributes=True)
    _add_groups(parser, "--attribute", "an attribute, such as sex, whose segments are compared")


def add_by(parser: argparse.ArgumentParser, what: str) -> None:
    """Name the groups."""
    _add_groups(parser, "--by", what)


def _add_groups(parser: argparse.ArgumentParser, flag: str, what: str) -> None:
    parser.add_argument(
        flag,
        dest="groups",
        action="append",
        metavar="A",
        default=[],
        help=f"{what}; repeatable. Numbers are cut into ranges by such as age:18,30,50, which has "
        "<18, 18-29, 30-49 and 50+: each number begins a range. A column of that very name is "
        "taken as it is",
    )


def add_adjust(parser: argparse.ArgumentParser, tests: str) -> None:
    """Choose how p-values are adjusted."""
    parser.add_argument(
        "--adjust",
        choices=get_args(Adjust),
        default="holm",
        help=f"how p-values are adjusted for the number of {tests}; default holm",
    )


def add_gates(parser: argparse.ArgumentParser, help_text: str) -> None:
    """Take conditions that fail the command."""
    parser.add_argument(
        "--fail-if",
        action="append",
        metavar="LIMIT",
        default=[],
        help=f"exit with 1 if {help_text}; comparisons are > >= < <=; repeatable",
    )


def add_margin(parser: argparse.ArgumentParser) -> None:
    """Choose how large a gap must be to matter."""
    parser.add_argument(
        "--margin",
        type=float,
        default=MARGIN,
        metavar="M",
        help=f"gaps within this do not matter to the verdicts; default {MARGIN:g}",
    )


def add_level(parser: argparse.ArgumentParser) -> None:
    """Choose the level of intervals and tests."""
    parser.add_argument(
        "--level", type=float, default=0.95, metavar="P", help="confidence level; default 0.95"
    )


def add_uncertainty(parser: argparse.ArgumentParser) -> None:
    """Choose the level, and the design of a survey."""
    add_level(parser)
    parser.add_argument(
        "--cluster",
        metavar="C",
        help="column of clusters or sampling units: rows with the same value belong together",
    )
    parser.add_argument("--strata", metavar="H", help="column of the strata of a survey")
    parser.add_argument(
        "--fpc",
        metavar="F",
        help="column of the finite population correction: the proportion of a stratum's sampling "
        "units that was sampled, or their number in the population",
    )
    parser.add_argument(
        "--lonely",
        choices=get_args(Lonely),
        help="what the only sampling unit of a stratum adds to a variance: null, the default, "
        "makes it unknown; certainty, nothing; adjust, its squared distance from the mean of all "
        "units",
    )
    parser.add_argument(
        "--replicate-weights",
        type=replicate_weights_of,
        metavar="R",
        help="columns of replicate weights and how they were made: such as 'rep_*:kind=jk2', or "
        "a,b,c:kind=fay,rho=0.3,df=60; df are the degrees of freedom: sampling units less strata",
    )


def add_output(
    parser: argparse.ArgumentParser,
    suffixes: Sequence[str],
    *,
    prints_json: bool,
    prints_table: bool = False,
    required: bool = False,
) -> None:
    """Choose the file that is written, or what is printed of a table."""
    listed = ", ".join(suffixes)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        required=required or not prints_json,
        help=f"{listed}; - prints JSON" if prints_json else listed,
    )
    if not prints_table:
        return
    parser.add_argument(
        "--columns",
        type=process.columns_of,
        metavar="LIST",
        help="columns that are printed, such as n,auc,auc_low, or all; default the first that fit",
    )
    parser.add_argument(
        "--rows",
        type=process.rows_of,
        metavar="N",
        help="most rows that are printed, or all; default what a terminal shows, elsewhere all",
    )


def add_selected(parser: argparse._ActionsContainer) -> None:
    """Name the column of recorded decisions."""
    parser.add_argument(
        "--selected",
        metavar="D",
        help="column of recorded decisions: a Boolean one, or such as decision=hired, the value "
        "of those who are selected",
    )


def add_favorable(parser: argparse.ArgumentParser) -> None:
    """Choose the decision that is good for a row."""
    parser.add_argument(
        "--favorable",
        choices=get_args(Favorable),
        help="which decision is good for a person, if any; needed where there are decisions",
    )


def add_threshold(parser: argparse.ArgumentParser) -> None:
    """Choose where decisions are measured."""
    group = parser.add_argument_group(
        "decisions", "of a threshold, of a rule that chooses it, or recorded ones"
    )
    add_selected(group)
    group.add_argument("--threshold", type=threshold_of, metavar="T", help=THRESHOLD)


# What is said of an option that takes numbers and rules.
THRESHOLD = (
    "scores of at least T are selected; or median, or a rule: youden, closest-topleft, "
    "max-accuracy, max-fpr=R, min-tpr=R, max-selection-rate=R, or such as least-cost:fn=5,fp=1"
)


def threshold_of(text: str) -> Threshold:
    """Read a threshold, the median, or a rule such as ``max-fpr=0.1``."""
    if text == "median":
        return "median"
    name, sign, options = text.partition(":" if ":" in text else "=")
    if (rule := name.replace("-", "_")) in rules.__all__:
        choose: Callable[..., Rule] = getattr(rules, rule)
        with _such_as("max-fpr=0.1 or least-cost:fn=5,fp=1", text):
            return choose(_value(options)) if sign == "=" else choose(**_values(options))
    value = _value(text)
    if isinstance(value, str):
        hint = did_you_mean(name, [each.replace("_", "-") for each in rules.__all__])
        msg = f"must be a number, median or a rule such as max-fpr=0.1; found {text!r}{hint}"
        raise argparse.ArgumentTypeError(msg)
    return float(value)


def replicate_weights_of(text: str) -> ReplicateWeights:
    """Read columns and kind of replicate weights, such as ``rep_*:kind=jk2``."""
    names, _, options = text.rpartition(":")
    columns = [_matching(name) if "*" in name else name for name in names.split(",") if name]
    with _such_as("'rep_*:kind=jk2' or a,b,c:kind=fay,rho=0.3,df=60", text):
        return ReplicateWeights(columns, **_values(options))


def _matching(pattern: str) -> pl.Expr:
    """Select the columns whose names match a pattern, in which * is any text."""
    return cs.matches("^" + ".*".join(map(re.escape, pattern.split("*"))) + "$")


def _values(text: str) -> dict[str, Any]:
    """Read arguments such as ``fn=5,fp=1``."""
    parts = (part.partition("=") for part in text.split(",") if part)
    return {name: _value(value) for name, _, value in parts}


def _value(text: str) -> int | float | str:
    """Read a number, or leave the text."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


@contextmanager
def _such_as(examples: str, text: str) -> Iterator[None]:
    """Show examples of an option in place of what an argument of it must be."""
    try:
        yield
    except (TypeError, ValueError) as error:
        msg = f"must be such as {examples}; found {text!r}: {str(error).replace('`', '')}"
        raise argparse.ArgumentTypeError(msg) from None


def add_costs(group: argparse._ActionsContainer) -> None:
    """Weigh errors by their costs."""
    group.add_argument("--cost-fn", type=float, metavar="C", help="cost of a false negative")
    group.add_argument("--cost-fp", type=float, metavar="C", help="cost of a false positive")
    add_prevalence(group, "that the cost is for")


def add_prevalence(group: argparse._ActionsContainer, purpose: str) -> None:
    """Choose the prevalence of a population."""
    group.add_argument(
        "--prevalence", type=float, metavar="P", help=f"prevalence in the population {purpose}"
    )
