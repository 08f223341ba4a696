"""The command that checks a release: its one or two files, and what is said of the result."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import polars as pl

from polars_wroc.audits.tables import segment_in_words
from polars_wroc.audits.words import first_few, many
from polars_wroc.cli import arguments, results, sources
from polars_wroc.cli.process import UsageError
from polars_wroc.cli.tables import Shown
from polars_wroc.documents.numbers import DIFFERENCE
from polars_wroc.documents.phrases import write_list
from polars_wroc.groups.comparisons import COMPARABLE
from polars_wroc.groups.release_check import (
    BETTER,
    NO_WORSE,
    RELEASE_MARGIN,
    SAME_SCORES,
    WITH_MARGIN,
    WORSE,
)
from polars_wroc.inputs.columns import AUDIT_KEYS, OVERALL
from polars_wroc.inputs.expressions import typed_column
from polars_wroc.metrics.paired_changes import RELEASE_METRICS
from polars_wroc.names import write_in_one_line
from polars_wroc.queries import collect

_DECISION = "__decision"
# How the decisions of rows change, which is shown in a table of its own.
_CHANGES = ("n_gained", "n_lost", "share_changed")
# The outcomes of the rows that become an event of a metric if they are newly selected.
_OUTCOMES = {"selection_rate": "all", "tpr": "positive", "fpr": "negative"}
# Metrics of which one side is worse.
_SIDED = [name for name in RELEASE_METRICS if COMPARABLE[name].better]


def read_release(options: argparse.Namespace) -> dict[str, Any]:
    """Read the rows, from one file or from two, and name their columns."""
    given = dict(text.partition("=")[::2] for text in options.selected)
    # Files that are matched do not have the same columns, which a message would ask for.
    options.score, options.selected = None if options.key else [options.old, options.new], None
    files = [options.files] * 2
    if options.key:
        if len(options.files) != 2:  # noqa: PLR2004  (one of each score)
            msg = f"--key needs two files, of the old and of the new score; found {options.files}"
            raise UsageError(msg)
        files = [[file] for file in options.files]
    elif len(options.files) == 2:  # noqa: PLR2004
        _check_columns(options)
    frames = [sources.watched(each, options.progress) for each in files]
    selected = {n: arguments.selected_of(frames[n == "new"], text) for n, text in given.items()}
    frame, new = frames[0], options.new
    if options.key:
        frame, new = _joined(frames, options, selected)
    thresholds = _numbers("--threshold", options.threshold)
    return {
        "frame": frame,
        "label": options.label,
        "old": options.old,
        "new": new,
        "weight": options.weight,
        "attributes": arguments.groups_of(options, frame),
        "pos_label": arguments.pos_label_of(frame, options.label, options.pos_label),
        "selected": selected or None,
        "threshold": thresholds[""] if [*thresholds] == [""] else thresholds or None,
    }


def check_new(options: argparse.Namespace, file: str) -> None:
    """Check that a file has the columns that the next run needs of the old file."""
    if not options.key:
        msg = "--first-run-ok is about two files, whose rows --key matches; found no --key"
        raise UsageError(msg)
    frame = sources.watched([file], None)
    for name in ("label", "key", "new"):
        typed_column(name, pl.col(getattr(options, name)), frame)


def _check_columns(options: argparse.Namespace) -> None:
    """Refuse two files of one score each that are not matched by a key."""
    old, new = (sources.watched([file], None).collect_schema() for file in options.files)
    apart = options.new in new and options.new not in old and options.old not in new
    if apart or options.new == options.old:
        msg = "--key must name the column by which rows of the two files are the same; found none"
        raise UsageError(msg)


def _joined(
    frames: Sequence[pl.LazyFrame], options: argparse.Namespace, selected: dict[str, Any]
) -> tuple[pl.LazyFrame, str]:
    """Add the new score, which is named, and its decision to the rows of the same key."""
    key, name, (old, new) = options.key, options.new, frames
    typed_column("new", pl.col(name), new)
    types = [typed_column("key", pl.col(key), frame).dtype for frame in frames]
    if types[0] != types[1]:
        found = f"found {key!r} of {types[0]} and {types[1]}"
        msg = f"--key must have the same type in both files; {found}"
        raise ValueError(msg)
    _check_keys([collect(frame.select(key)).to_series() for frame in frames], options)
    taken = old.collect_schema()
    if name == options.old:
        # Sentences name both scores.
        typed_column("old", pl.col(name), old)
        options.old = _unlike(name, taken, "old")
        old = old.with_columns(pl.col(name).alias(options.old))
    name = _unlike(name, taken, "new")
    columns = [pl.col(options.new).alias(name)]
    if "new" in selected:
        column = selected["new"]
        column = pl.col(column) if isinstance(column, str) else column
        columns.append(column.alias(_DECISION))
        selected["new"] = _DECISION
    return old.join(new.select(key, *columns), on=key, how="left", maintain_order="left"), name


def _unlike(name: str, taken: Collection[str], word: str) -> str:
    """Append a word in brackets while a name is taken."""
    while name in taken:
        name += f" ({word})"
    return name


def _check_keys(keys: Sequence[pl.Series], options: argparse.Namespace) -> None:
    """Check that each row of a file has one of the other."""
    old, new = options.files
    of_files = [*zip(keys, (old, new), strict=True)]
    for found, what in (
        *((rows.filter(rows.is_null()), f"missing in {file}") for rows, file in of_files),
        *(
            (rows.filter(rows.is_duplicated()), f"several times in {file}")
            for rows, file in of_files
        ),
        (keys[0].filter(~keys[0].is_in(keys[1].implode())), f"in {old}, but not in {new}"),
        (keys[1].filter(~keys[1].is_in(keys[0].implode())), f"in {new}, but not in {old}"),
    ):
        if len(found):
            more = f" (and {len(found) - 1:,} more)" if len(found) > 1 else ""
            msg = (
                f"--key {options.key} must match each row of one file with one row of the other; "
                f"found {_write_key(found[0])}{more} {what}"
            )
            raise ValueError(msg)


def _write_key(value: object) -> str:
    return "null" if value is None else write_in_one_line(str(value))


def _numbers(flag: str, texts: Sequence[str]) -> dict[str, float]:
    """Read numbers that may be those of a name, such as tpr=0.02."""
    found = dict[str, float]()
    for text in texts:
        name, _, number = text.rpartition("=")
        if name in found:
            msg = f"{flag} must be given once for {name or 'all'}; found {text!r} after another"
            raise UsageError(msg)
        try:
            found[name] = float(number)
        except ValueError:
            such = "tpr=0.02" if flag == "--margin" else "old=0.5, repeated for new"
            msg = f"{flag} must be a number, or such as {such}; found {text!r}"
            raise UsageError(msg) from None
    return found


def margins_of(options: argparse.Namespace) -> dict[str, float]:
    """Read margins: one of the AUC and rates, and those of named metrics."""
    named = _numbers("--margin", options.margin)
    return dict.fromkeys(WITH_MARGIN, named.pop("", RELEASE_MARGIN)) | named


def sentence_of(table: pl.DataFrame) -> str:
    """Say whether the new score is no worse in all comparisons, or where it is worse."""
    old, new = table["reference"][0], table["model"][0]
    if table["reason"].eq(SAME_SCORES).any():
        return f"{new} is the same as {old} in all rows."
    sided = table.filter(pl.col("metric").is_in(_SIDED))
    if sided.is_empty():
        found = [f"{_place(row)} {row['verdict']}" for row in table.iter_rows(named=True)]
        return f"No side of a selection rate is worse: {first_few(found, '; ')}."
    all_of, worse = many(sided.height, "comparison"), sided.filter(verdict=WORSE)
    shown = pl.col("verdict").is_in([NO_WORSE, BETTER])
    unclear, better = sided.filter(~shown), sided.filter(verdict=BETTER).height
    also = f", and better in {better:,}" if better else ""
    if worse.height:
        places = [
            f"{_place(row)} {DIFFERENCE.write(row['gap'])} "
            f"{DIFFERENCE.write_limits(row['gap_low'], row['gap_high'])}"
            for row in worse.iter_rows(named=True)
        ]
        return (
            f"{new} is worse than {old} in {worse.height:,} of {all_of}: {first_few(places, '; ')}."
        )
    if unclear.is_empty():
        return f"{new} is no worse than {old} in all {all_of}, within the margins{also}."
    lacking = first_few([_place(row) for row in unclear.iter_rows(named=True)], "; ")
    number = f"{sided.height - unclear.height:,} of {all_of}"
    return f"{new} is no worse than {old} in {number}{also}; inconclusive for {lacking}."


def _say_selections(table: pl.DataFrame) -> str:
    """Say first by which score nobody, or everybody, is selected."""
    overall = table.filter(attribute=OVERALL, metric="selection_rate")
    sentences = []
    for row in overall.iter_rows(named=True):
        for share, who in ((0.0, "Nobody"), (1.0, "Everybody")):
            names = [row[name] for name in ("value", "reference_value")]
            by = [
                model
                for model, rate in zip((row["model"], row["reference"]), names, strict=True)
                if rate == share
            ]
            if by:
                sentences.append(
                    f"{who} is selected by {write_list(by)}: decisions cannot be compared. "
                )
    return "".join(sentences)


def _place(row: dict[str, Any]) -> str:
    label = COMPARABLE[row["metric"]].label
    return f"{label} in {segment_in_words(row['attribute'], row['segment'])}"


def _left_out(rows: Mapping[str, Any]) -> str:
    """Say how many rows have no label, weight or score, if any."""
    names = (rows[name] for name in ("label", "weight", "old", "new"))
    lacks = pl.any_horizontal(pl.col(name).is_null() for name in names if isinstance(name, str))
    for name in (rows["old"], rows["new"]):
        lacks |= pl.col(name).cast(pl.Float64, strict=False).is_nan()
    number = collect(rows["frame"].select(lacks.sum())).item()
    if not number:
        return ""
    have, counts = ("has", "counts") if number == 1 else ("have", "count")
    decides = rows["threshold"] is not None or rows["selected"] is not None
    apart = ", but without a label in the selection rate" if decides else ""
    return (
        f" {many(number, 'row')} {have} no label, weight or score, and {counts} for neither "
        f"score{apart}."
    )


def release_shown(table: pl.DataFrame, rows: Mapping[str, Any]) -> list[Shown]:
    """Show the metrics with both scores, after a sentence, and whose decisions change."""
    heading, keys = "the new score against the old one", [*AUDIT_KEYS, "metric"]
    sentence = _say_selections(table) + sentence_of(table) + _left_out(rows)
    shown = [Shown(heading, table, keys, sentence, short=table.drop(_CHANGES, strict=False))]
    outcome = pl.col("metric").replace_strict(_OUTCOMES, default=None).alias("outcome")
    changes = table.select(*AUDIT_KEYS, outcome, "n", *_CHANGES).drop_nulls("outcome")
    if changes.is_empty():
        return shown
    heading, keys = "rows whose decision changes", [*AUDIT_KEYS, "outcome"]
    return [*shown, Shown(heading, changes, keys, asked=False)]


def show_release(table: pl.DataFrame, shown: Sequence[Shown], options: argparse.Namespace) -> None:
    """Print or write the check; a page has a chart of each metric, another chart the first."""
    metrics = table["metric"].unique(maintain_order=True).to_list()
    drawn: dict[str, Any] = {"show": "value"}
    if options.output not in (None, "-"):
        results.print_result(f"{shown[0].verdict}\n", options)
    if options.suffix != ".html":
        results.show_table("gap_chart", table, options, lambda: shown, metric=metrics[0], **drawn)
        return
    # Only a chart should cost the import of Altair.
    from polars_wroc.charts.gap_chart import gap_chart  # noqa: PLC0415

    charts: list[Any] = [gap_chart(table, metric=metric, **drawn) for metric in metrics]
    results.save_page(shown, charts, options)
