"""The command that checks a release: its one or two files, and what is said of the result."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import polars as pl

from polars_wroc.audits.formats import cell_text, limits_in_text
from polars_wroc.audits.tables import segment_in_words
from polars_wroc.audits.words import first_few, many
from polars_wroc.cli import arguments, results, sources
from polars_wroc.cli.arguments import groups_of
from polars_wroc.cli.process import UsageError
from polars_wroc.cli.results import Shown
from polars_wroc.groups.comparisons import COMPARABLE
from polars_wroc.groups.release_check import (
    BETTER,
    MARGIN,
    NO_WORSE,
    RELEASE_METRICS,
    SAME_SCORES,
    WITH_MARGIN,
    WORSE,
)
from polars_wroc.inputs.columns import AUDIT_KEYS, MISSING
from polars_wroc.metrics.paired_changes import BOTH
from polars_wroc.plans.queries import collect

_DECISION = "__decision"


def read_release(options: argparse.Namespace) -> dict[str, Any]:
    """Read the rows, from one file or from two, and name their columns."""
    decided = _of_both(options, "selected")
    files = [options.files] * 2
    if options.key:
        if len(options.files) != 2:  # noqa: PLR2004  (one of each score)
            msg = f"--key needs two files, of the old and of the new score; found {options.files}"
            raise UsageError(msg)
        files = [[file] for file in options.files]
    frame, others = (sources.watched(each, options.progress) for each in files)
    scores = {"old": options.old, "new": options.new}
    selected = {
        name: arguments.selected_of(others if name == "new" else frame, text)
        for name, text in decided.items()
    }
    if options.key:
        frame, scores["new"], selected = _joined(frame, others, options, selected)
    # What is wrong with a file of several is told by columns that both have.
    options.score, options.selected = None if options.key else [options.old, options.new], None
    return {
        "frame": frame,
        "label": options.label,
        **scores,
        "weight": options.weight,
        "attributes": groups_of(options, frame),
        "pos_label": arguments.pos_label_of(frame, options.label, options.pos_label),
        "selected": selected or None,
        "threshold": _thresholds(options),
    }


def _joined(
    old: pl.LazyFrame, new: pl.LazyFrame, options: argparse.Namespace, selected: dict[str, Any]
) -> tuple[pl.LazyFrame, str, dict[str, Any]]:
    """Add the new score, and its decision, to the rows of the old one with the same key."""
    key: list[str] = options.key
    schemas = [frame.collect_schema() for frame in (old, new)]
    for schema, file in zip(schemas, options.files, strict=True):
        for name in (*key, *([options.new] if file == options.files[1] else [])):
            if name not in schema:
                flag = "--key" if name in key else "--new"
                msg = f"{flag} must be a column of {file}; found none of the name {name!r}"
                raise ValueError(msg)
    for name in key:
        types = [schema[name] for schema in schemas]
        if types[0] != types[1]:
            msg = f"--key must have the same type in both files; found {name!r} of {types[0]} and "
            msg += f"{types[1]}"
            raise ValueError(msg)
    keys = [collect(frame.select(key)) for frame in (old, new)]
    _check_keys(keys, options)
    name = options.new
    while name in schemas[0]:
        name += " (new)"
    columns = [pl.col(options.new).alias(name)]
    if selected:
        column = selected["new"]
        column = pl.col(column) if isinstance(column, str) else column
        columns.append(column.alias(_DECISION))
        selected["new"] = _DECISION
    added = new.select(*key, *columns)
    return old.join(added, on=key, how="left", maintain_order="left"), name, selected


def _check_keys(keys: Sequence[pl.DataFrame], options: argparse.Namespace) -> None:
    """Check that each row of a file has one of the other."""
    named = " and ".join(options.key)
    rule = f"--key {named} must match each row of one file with one row of the other; found"
    pairs = [*zip(keys, options.files, keys[::-1], options.files[::-1], strict=True)]
    problems = [
        *(
            (rows.filter(pl.any_horizontal(pl.all().is_null())), f"missing in {file}")
            for rows, file, _, _ in pairs
        ),
        *(
            (
                rows.filter(pl.struct(pl.all()).is_duplicated()).unique(maintain_order=True),
                f"several times in {file}",
            )
            for rows, file, _, _ in pairs
        ),
        *(
            (
                rows.join(others, on=options.key, how="anti", maintain_order="left"),
                f"in {file}, but not in {other}",
            )
            for rows, file, others, other in pairs
        ),
    ]
    for found, what in problems:
        if found.height:
            value = ", ".join(cell_text(cell) or "null" for cell in found.row(0))
            more = f" (and {found.height - 1:,} more)" if found.height > 1 else ""
            msg = f"{rule} {value}{more} {what}"
            raise ValueError(msg)


def _of_both(options: argparse.Namespace, name: str) -> dict[str, str]:
    """Read an option that is given twice, as old=... and new=..."""
    given = dict(text.partition("=")[::2] for text in getattr(options, name))
    if given and (sorted(given) != sorted(BOTH) or len(getattr(options, name)) != len(BOTH)):
        found = " and ".join(getattr(options, name))
        msg = f"--{name} must be given as old=... and as new=...; found {found}"
        raise UsageError(msg)
    return given


def _thresholds(options: argparse.Namespace) -> float | dict[str, float] | None:
    given = options.threshold
    if len(given) == 1 and "=" not in given[0]:
        return _number("--threshold", given[0])
    each = _of_both(options, "threshold")
    return {name: _number("--threshold", text) for name, text in each.items()} or None


def margins_of(options: argparse.Namespace) -> float | dict[str, float]:
    """Read margins: one of the AUC and rates, and those of named metrics."""
    margins: dict[str, float] = {}
    for text in options.margin:
        name, sign, value = text.rpartition("=")
        names = (name,) if sign else WITH_MARGIN
        margins = (
            (margins if sign else {})
            | dict.fromkeys(names, _number("--margin", value))
            | ({} if sign else margins)
        )
    return margins or MARGIN


def _number(flag: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        msg = f"{flag} must be a number, or such as old=0.5; found {text!r}"
        raise UsageError(msg) from None


def sentence_of(table: pl.DataFrame) -> str:
    """Say whether the new score is no worse in all comparisons, or where it is worse."""
    old, new = table["reference"][0], table["model"][0]
    sided = table.filter(pl.col("metric").is_in(_SIDED))
    verdicts = sided["verdict"]
    tests, worse = many(sided.height, "comparison"), sided.filter(verdict=WORSE)
    if table["reason"].eq(SAME_SCORES).any():
        return f"{new} is the same score as {old} in all rows, with the same decisions."
    if worse.height:
        places = first_few([_change(row) for row in worse.iter_rows(named=True)], "; ")
        return f"{new} is worse than {old} in {worse.height:,} of {tests}: {places}."
    better = verdicts.eq(BETTER).sum()
    also = f", and better in {better:,}" if better else ""
    shown = sided.filter(pl.col("verdict").is_in([NO_WORSE, BETTER]))
    if shown.height == sided.height:
        return f"{new} is no worse than {old} in all {tests}, within the margins{also}."
    unclear = sided.filter(~pl.col("verdict").is_in([NO_WORSE, BETTER]))
    places = first_few([_place(row) for row in unclear.iter_rows(named=True)], "; ")
    start = f"{new} is shown to be no worse than {old} in {shown.height:,} of {tests}{also}"
    return f"{start}; too little data for {places}."


_SIDED = [name for name in RELEASE_METRICS if COMPARABLE[name].better]


def _place(row: dict[str, Any]) -> str:
    label = COMPARABLE[row["metric"]].label
    return f"{label} in {segment_in_words(row['attribute'], row['segment'])}"


def _change(row: dict[str, Any]) -> str:
    ends = (f"{row[name]:+.3f}" for name in ("gap", "gap_low", "gap_high"))
    return "{} {} ({} to {})".format(_place(row), *ends)


def release_shown(
    table: pl.DataFrame, changes: pl.DataFrame | None, *, designed: bool
) -> list[Shown]:
    """Show the metrics with both scores, after a sentence, and whose decisions change."""
    texts = [pl.col(key).fill_null(MISSING) for key in AUDIT_KEYS]
    short = table.select(
        *texts,
        "metric",
        pl.col("reference_value").alias("old"),
        pl.col("value").alias("new"),
        pl.col("gap").alias("change"),
        limits_in_text(table, "gap_low", "gap_high").alias("interval"),
        pl.concat_str("verdict", pl.format(" ({})", "reason"), ignore_nulls=True).alias("verdict"),
        "margin",
        "p_adjusted",
        "n",
    )
    keys = [*AUDIT_KEYS, "metric"]
    heading = "the new score against the old one"
    shown = [Shown(heading, table.with_columns(texts), short, keys, 5, sentence_of(table))]
    if changes is None:
        return shown
    limits = limits_in_text(changes, "net_low", "net_high").alias("interval")
    short = changes.select(
        *texts,
        "outcome",
        "n",
        pl.col("n_newly_selected").alias("newly selected"),
        pl.col("n_newly_rejected").alias("newly rejected"),
        "net",
        # Those of independent rows.
        *([] if designed else [limits, "p_value"]),
        pl.col("newly_selected").alias("share selected"),
        pl.col("newly_rejected").alias("share rejected"),
    )
    keys = [*AUDIT_KEYS, "outcome"]
    heading = "rows whose decision changes"
    return [*shown, Shown(heading, changes.with_columns(texts), short, keys, 4, asked=False)]


def show_release(table: pl.DataFrame, shown: Sequence[Shown], options: argparse.Namespace) -> None:
    """Print or write the check; a page has a chart of each metric, another chart the first."""
    drawn = {"show": "value", "level": options.level}
    metrics = table["metric"].unique(maintain_order=True).to_list()
    if options.suffix != ".html":
        results.show_table("gap_chart", table, options, lambda: shown, metric=metrics[0], **drawn)
        return
    # Only a chart should cost the import of Altair.
    from polars_wroc.audits.report.page import render_tables  # noqa: PLC0415
    from polars_wroc.charts.gap_chart import gap_chart  # noqa: PLC0415

    charts = [gap_chart(table, metric=metric, **drawn) for metric in metrics]
    results.save_text(render_tables(results.page_of(shown, options), *charts), options)
