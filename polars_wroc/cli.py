"""The ``polars-wroc`` command: files in, tables, charts and reports out."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn, get_args

import polars as pl

from polars_wroc import __version__, files, inputs
from polars_wroc.audit import SUFFIXES, audit
from polars_wroc.bands import BandKind
from polars_wroc.curves import roc_curve
from polars_wroc.rows import collect, collect_all
from polars_wroc.rules import Criterion
from polars_wroc.summary import summary
from polars_wroc.variance import WeightType

DONE, BAD_INPUT = 0, 2
# What a terminal has room for.
_SHOWN = (
    "attribute",
    "segment",
    "model",
    "n",
    "n_pos",
    "n_missing",
    "auc",
    "ci_low",
    "ci_high",
    "threshold",
    "selection_rate",
    "tpr",
    "fpr",
    "ppv",
)
_THRESHOLD = (
    "threshold",
    "criterion",
    "cost_fn",
    "cost_fp",
    "prevalence",
    "max_fpr",
    "min_tpr",
    "max_selection_rate",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    try:
        options = _parser().parse_args(arguments)
        options.run(options)
        sys.stdout.flush()
    except _UsageError as error:
        return _complain(str(error))
    except BrokenPipeError:
        # Whoever read the output has seen enough; say nothing more at the end either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (ValueError, TypeError, OSError, ImportError, pl.exceptions.PolarsError) as error:
        return _complain(inputs.sentence_of(error) or files.first_line(error))
    return DONE


class _UsageError(Exception):
    """The command line does not fit its grammar."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        msg = f"{message}; see {self.prog} --help"
        raise _UsageError(msg)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="polars-wroc", description="Weighted ROC curves and AUCs of scored rows, per segment."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    audited = _command(commands, "audit", _audit, "each segment of each attribute, as a report")
    _add_by(audited, "an attribute")
    _add_threshold(audited)
    _add_uncertainty(audited)
    _add_output(audited, SUFFIXES, prints_json=True)

    measured = _command(commands, "auc", _auc, "one line of numbers per group")
    _add_by(measured, "a group column")
    _add_uncertainty(measured)
    _add_output(measured, files.TABLE_SUFFIXES, prints_json=True)

    drawn = _command(commands, "curve", _curve, "ROC curves, as a table or a chart")
    _add_by(drawn, "a group column")
    drawn.add_argument("--max-points", type=int, metavar="N", help="at most N points a curve")
    drawn.add_argument("--band", choices=get_args(BandKind), help="limits around the curve")
    _add_uncertainty(drawn)
    _add_output(drawn, (*files.TABLE_SUFFIXES, *files.CHART_SUFFIXES), prints_json=False)
    return parser


def _command(commands: Any, name: str, run: Any, description: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=description, description=f"{description[0].upper()}{description[1:]}."
    )
    parser.set_defaults(run=run)
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="Parquet, Arrow, CSV or NDJSON; glob, folder, URL"
    )
    parser.add_argument("--label", required=True, metavar="L", help="column of the outcomes")
    parser.add_argument(
        "--score",
        required=True,
        action="append",
        metavar="S",
        help="column of a score, higher meaning more positive; repeatable",
    )
    parser.add_argument("--weight", metavar="W", help="column of the row weights")
    parser.add_argument("--pos-label", metavar="X", help="the label's positive value")
    return parser


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
        "--max-selection-rate", type=float, metavar="R", help="as many positives as this share"
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
    parser: argparse.ArgumentParser, suffixes: Sequence[str], *, prints_json: bool
) -> None:
    listed = ", ".join(suffixes)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        required=not prints_json,
        help=f"{listed}; - prints JSON" if prints_json else listed,
    )


def _audit(options: argparse.Namespace) -> None:
    _check_output(options, SUFFIXES)
    if not options.by:
        msg = "audit needs at least one --by"
        raise _UsageError(msg)
    threshold = {name: getattr(options, name) for name in _THRESHOLD}
    result = audit(by=options.by, **_inputs(options), **threshold, **_uncertainty(options))
    if options.output == "-":
        sys.stdout.write(result.to_json())
        return
    if options.output:
        result.save(options.output)
    _print(result.segments.select(name for name in result.segments.columns if name in _SHOWN))
    if options.output:
        _say_written(options)


def _auc(options: argparse.Namespace) -> None:
    _check_output(options, files.TABLE_SUFFIXES)
    table = collect(summary(by=options.by or None, **_inputs(options), **_uncertainty(options)))
    if options.output == "-":
        sys.stdout.write(table.write_json() + "\n")
    elif options.output:
        files.save_table(table, options.output)
        _say_written(options)
    else:
        _print(table)


def _curve(options: argparse.Namespace) -> None:
    suffix = _check_output(options, (*files.TABLE_SUFFIXES, *files.CHART_SUFFIXES))
    columns = _inputs(options) | {"by": options.by or None}
    level = {"level": options.level, "weight_type": options.weight_type}
    if options.cluster and (options.band or suffix in files.TABLE_SUFFIXES):
        msg = "--cluster is for the AUCs in a chart; a table and a --band do not know clusters"
        raise _UsageError(msg)
    curves = roc_curve(**columns, **level, max_points=options.max_points, band=options.band)
    if suffix in files.TABLE_SUFFIXES:
        files.save_table(collect(curves), options.output)
        _say_written(options)
        return
    # Only a chart should cost the import of Altair.
    from polars_wroc.charts import roc_chart, save_chart  # noqa: PLC0415

    table, sure = collect_all([curves, summary(**columns, **_uncertainty(options))])
    facet = options.by[0] if options.by else None
    save_chart(roc_chart(table, facet=facet, summary=sure), options.output)
    _say_written(options)


def _check_output(options: argparse.Namespace, allowed: Sequence[str]) -> str | None:
    if options.output in (None, "-"):
        return None
    return files.check_target(options.output, allowed, options.files)


def _say_written(options: argparse.Namespace) -> None:
    sys.stdout.write(f"wrote {options.output}\n")


def _inputs(options: argparse.Namespace) -> dict[str, Any]:
    frame = files.scan(options.files)
    scores = options.score
    return {
        "frame": frame,
        "label": options.label,
        "score": scores if len(scores) > 1 else scores[0],
        "weight": options.weight,
        "pos_label": _pos_label(frame, options.label, options.pos_label),
    }


def _uncertainty(options: argparse.Namespace) -> dict[str, Any]:
    return {
        "level": options.level,
        "weight_type": options.weight_type,
        "cluster": options.cluster,
    }


def _pos_label(frame: pl.LazyFrame, label: str, text: str | None) -> object:
    """Read the text of --pos-label as a value of the label's type."""
    dtype = frame.collect_schema().get(label)
    if text is None or dtype is None or not (dtype.is_numeric() or dtype == pl.Boolean):
        return text
    words = {"true": True, "false": False}
    try:
        return words[text.lower()] if dtype == pl.Boolean else float(text)
    except (KeyError, ValueError):
        msg = f"`pos_label` must be a value of the label; found {text!r} for type {dtype}"
        raise ValueError(msg) from None


def _print(table: pl.DataFrame) -> None:
    with pl.Config(
        tbl_rows=-1,
        tbl_cols=-1,
        tbl_width_chars=-1,
        tbl_hide_dataframe_shape=True,
        tbl_hide_column_data_types=True,
        tbl_formatting="MARKDOWN",
        float_precision=4,
    ):
        sys.stdout.write(f"{table}\n")


def _complain(message: str) -> int:
    sys.stderr.write(f"polars-wroc: {message}\n")
    return BAD_INPUT
