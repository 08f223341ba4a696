"""The ``polars-wroc`` command: files in, tables, charts and reports out."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

import polars as pl

from polars_wroc import files, inputs
from polars_wroc.audit import audit
from polars_wroc.audit_result import SUFFIXES, Audit
from polars_wroc.cli_parser import UsageError, build_parser
from polars_wroc.curves import roc_curve
from polars_wroc.findings import verdict
from polars_wroc.gates import read_gate
from polars_wroc.groupings import MISSING
from polars_wroc.rows import collect, collect_all
from polars_wroc.summary import summary

DONE, GATE_FAILED, BAD_INPUT = 0, 1, 2
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
_COMPARED = ("intersections", "min_rows")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    try:
        options = build_parser({"audit": _audit, "auc": _auc, "curve": _curve}).parse_args(
            arguments
        )
        options.run(options)
        sys.stdout.flush()
    except UsageError as error:
        return _complain(str(error))
    except _GateError as error:
        sys.stdout.flush()
        _complain(str(error))
        return GATE_FAILED
    except BrokenPipeError:
        # Whoever read the output has seen enough; say nothing more at the end either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (ValueError, TypeError, OSError, ImportError, pl.exceptions.PolarsError) as error:
        return _complain(inputs.sentence_of(error) or files.first_line(error))
    return DONE


class _GateError(Exception):
    """An audit meets a condition of --fail-if."""


def _audit(options: argparse.Namespace) -> None:
    _check_output(options, SUFFIXES)
    if not options.by:
        msg = "audit needs at least one --by"
        raise UsageError(msg)
    threshold = {name: getattr(options, name) for name in _THRESHOLD}
    decides = any(value is not None for value in threshold.values())
    gates = [read_gate(text, decides=decides) for text in options.fail_if]
    compared = {name: getattr(options, name) for name in _COMPARED}
    compared["reference"] = _reference(options.reference)
    result = audit(
        by=options.by, **_inputs(options), **threshold, **compared, **_uncertainty(options)
    )
    failures = [failure for gate in gates for failure in gate.failures(result)]
    _show(result, options)
    if failures:
        raise _GateError("; ".join(failures))


def _reference(given: Sequence[str]) -> str | dict[str, str]:
    """Read one kind of reference, or segments by the names of their attributes."""
    kinds = [text for text in given if "=" not in text]
    if kinds and len(given) > 1:
        msg = f"--reference must be one kind, or only as sex=m; found {' and '.join(given)}"
        raise UsageError(msg)
    if kinds or not given:
        return kinds[0] if kinds else "rest"
    named = [text.partition("=")[::2] for text in given]
    if len(dict(named)) < len(named):
        msg = f"--reference must name one segment of an attribute; found {' and '.join(given)}"
        raise UsageError(msg)
    return dict(named)


def _show(result: Audit, options: argparse.Namespace) -> None:
    if options.output == "-":
        sys.stdout.write(result.to_json())
        return
    if options.output:
        result.save(options.output)
    shown = result.segments.select(name for name in result.segments.columns if name in _SHOWN)
    _print(shown.with_columns(pl.col("segment").fill_null(MISSING)))
    sys.stdout.write(f"{verdict(result.gaps, result.settings)}\n")
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
        raise UsageError(msg)
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


_RUNS = {"audit": _audit, "auc": _auc, "curve": _curve}
