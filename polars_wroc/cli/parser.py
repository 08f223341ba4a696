"""Argument parser of the `polars-wroc` command."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any, NamedTuple, NoReturn

from polars_wroc.cli import report_options, shared_options, streams, table_options
from polars_wroc.cli.usage import UsageError
from polars_wroc.inputs.arguments import did_you_mean


class _Parser(argparse.ArgumentParser):
    def __init__(self, **options: Any) -> None:
        # An abbreviation may become ambiguous with a new option.
        super().__init__(**options, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        see = " See" if message.endswith("?") else "; see"
        msg = f"{message}{see} {self.prog} --help"
        raise UsageError(msg)

    def parse_known_args(  # type: ignore[override]
        self, args: Any = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        # Here the command knows its own options, and is named by the message.
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            hint = did_you_mean(unknown[0], self._option_string_actions)
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        return options, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            error.message += did_you_mean(value, map(str, action.choices or ()))
            raise

    def _print_message(self, message: str, file: Any = None) -> None:  # noqa: ARG002
        # Help and version use the same error as other output if they cannot be printed.
        streams.say(message)


class _Command(NamedTuple):
    description: str
    add_options: Callable[[argparse.ArgumentParser], None]
    # What must be given, and an example: what it does, and the command.
    usage: str
    does: str
    example: str


_COLUMNS = "--label L --score S"
_COMMANDS = {
    "audit": _Command(
        "AUCs, decisions and gaps of segments, as a report",
        report_options.add_audit,
        f"FILE... {_COLUMNS} --by A",
        "write a report on sex and on ranges of age",
        "polars-wroc audit loans.csv --label repaid --score s --threshold 0.5 \\\n"
        "    --favorable selected --by sex --by 'age:18,30,50' -o report.html",
    ),
    "diff": _Command(
        "what changed between two audits of different rows",
        report_options.add_diff,
        "BEFORE AFTER",
        "fail if a gap in AUC has grown by more than two points",
        "polars-wroc diff march.json april.json --fail-if 'auc_gap_change>0.02'",
    ),
    "impact": _Command(
        "selection rates of categories divided by the highest, without a label",
        report_options.add_impact,
        "FILE... --by A (--selected D | --score S --threshold T) --favorable F",
        "fail if the selection rate of a category is surely below four fifths",
        "polars-wroc impact hires.csv --selected hired --favorable selected --by sex --by race \\\n"
        "    --fail-if 'impact_ratio_joint_high<0.8'",
    ),
    "auc": _Command(
        "the AUC and other metrics of each group",
        table_options.add_auc,
        f"FILE... {_COLUMNS}",
        "draw the AUC of each site with its interval",
        "polars-wroc auc loans.parquet --label repaid --score s --by site -o auc.svg",
    ),
    "compare": _Command(
        "tests whether two or more scores have different AUCs on the same rows",
        table_options.add_compare,
        f"FILE... {_COLUMNS} --score S",
        "compare a new score with the old one",
        "polars-wroc compare loans.parquet --label repaid --score old --score new",
    ),
    "gaps": _Command(
        "tests whether groups differ from a reference in AUC or in rates",
        table_options.add_gaps,
        f"FILE... {_COLUMNS} --by A",
        "compare the true positive rate of each site with that of the others",
        "polars-wroc gaps loans.parquet --label repaid --score s --by site --threshold 0.5 \\\n"
        "    --metric tpr",
    ),
    "thresholds": _Command(
        "rates at thresholds, or at one that a rule chooses",
        table_options.add_thresholds,
        f"FILE... {_COLUMNS} (--threshold T | a rule)",
        "find the lowest threshold that at most a tenth of the negatives reach",
        "polars-wroc thresholds loans.parquet --label repaid --score s --max-fpr 0.1",
    ),
    "calibrate": _Command(
        "whether scores are probabilities: observed rates in bins, and the calibration slope",
        table_options.add_calibrate,
        f"FILE... {_COLUMNS}",
        "show the calibration of each sex in bins of equal weight",
        "polars-wroc calibrate loans.parquet --label repaid --score s --by sex --strategy quantile",
    ),
    "curve": _Command(
        "ROC and other curves, as a table or a chart",
        table_options.add_curve,
        f"FILE... {_COLUMNS} -o FILE",
        "draw the precision-recall curve of each site",
        "polars-wroc curve loans.parquet --label repaid --score s --by site --kind pr -o pr.png",
    ),
    "counts": _Command(
        "counts of rows by score, which add up and can replace the rows",
        table_options.add_score_counts,
        "FILE... --score S -o FILE",
        "count the rows of a day by sex",
        "polars-wroc counts monday.csv --label repaid --score s --by sex -o monday.parquet",
    ),
    "merge": _Command(
        "the sum of the counts in several files",
        table_options.add_merge,
        "FILE... -o FILE",
        "add up the counts of a week",
        "polars-wroc merge monday.parquet tuesday.parquet -o week.parquet",
    ),
}


def build_parser(
    runs: Mapping[str, Callable[[argparse.Namespace], None]],
) -> argparse.ArgumentParser:
    """Build the parser; ``runs`` maps the name of each command to its function."""
    parser = _Parser(
        prog="polars-wroc", description="Weighted ROC curves and AUCs of scored rows, per segment."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version('polars-wroc')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, row in _COMMANDS.items():
        command: argparse.ArgumentParser = commands.add_parser(
            name,
            help=row.description,
            description=f"{row.description[0].upper()}{row.description[1:]}.",
            usage=f"polars-wroc {name} {row.usage} [options]",
            epilog=f"example: {row.does}\n  {row.example}",
            # Lines of examples stay whole, to be copied.
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.set_defaults(
            run=runs[name], counts=False, bins=None, required=("label", "score"), needs_by=False
        )
        row.add_options(command)
        shared_options.mark_required(command)
        command.set_defaults(flags=shared_options.flags_of(command))
    return parser
