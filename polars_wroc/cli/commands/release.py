"""The command ``release``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any

import polars as pl
from cyclopts import Parameter

import polars_wroc as wroc
from polars_wroc.audits.gates import RELEASE_SCOPE
from polars_wroc.audits.tables import segment_in_words
from polars_wroc.cli import values
from polars_wroc.cli.bundles import Dialect
from polars_wroc.cli.options import (
    COLUMN,
    COLUMNS,
    DECISIONS,
    INPUT,
    TESTS,
    Attributes,
    ColumnName,
    Conditions,
    FileNames,
    FirstRun,
    RowColumns,
    Uncertainty,
    Weights,
    read_all_by,
    with_arguments_of,
)
from polars_wroc.cli.output import TABLES_AND_CHARTS, TableOutput
from polars_wroc.cli.report import Report, Shown, show_report
from polars_wroc.cli.source import Source, is_first_run
from polars_wroc.cli.terminal import print_text
from polars_wroc.documents.numbers import DIFFERENCE
from polars_wroc.documents.phrases import first_few, many, write_list
from polars_wroc.files.csv_dialect import FileFormat
from polars_wroc.groups.comparisons import COMPARABLE
from polars_wroc.groups.release_check import (
    BETTER,
    NO_WORSE,
    RELEASE_MARGIN,
    SAME_SCORES,
    WITH_MARGIN,
    WORSE,
    release_check,
)
from polars_wroc.inputs.columns import AUDIT_KEYS, OVERALL
from polars_wroc.inputs.expressions import typed_column
from polars_wroc.inputs.frames import require_positives
from polars_wroc.metrics.paired_changes import RELEASE_METRICS
from polars_wroc.names import write_in_one_line
from polars_wroc.queries import collect

_DECISION = "__decision"
# Changes of the decisions about rows, which have a table of their own.
_CHANGES = ("n_gained", "n_lost", "share_changed")
# The outcomes of the rows that become an event of a metric if they are newly selected.
_OUTCOMES = {"selection_rate": "all", "tpr": "positive", "fpr": "negative"}
# Metrics of which one side is worse.
_SIDED = [name for name in RELEASE_METRICS if COMPARABLE[name].better]


def _read_thresholds(texts: Sequence[str]) -> float | dict[str, float]:
    """Read one threshold for both scores, or one for each."""
    numbers = values.read_numbers(texts, "old=0.5, repeated for new")
    return numbers[""] if [*numbers] == [""] else numbers


def _read_margins(texts: Sequence[str]) -> dict[str, float]:
    """Read margins: one of the AUC and rates, and those of named metrics."""
    named = values.read_numbers(texts, "tpr=0.02")
    return dict.fromkeys(WITH_MARGIN, named.pop("", RELEASE_MARGIN)) | named


@Parameter(name="*", group=INPUT)
@dataclass(frozen=True, kw_only=True)
class BothScores:
    """Labels, weights and two scores of rows, of one file or of two."""

    label: Annotated[str, COLUMN]
    """Column of the labels."""
    old: ColumnName = None
    """Column of the old score; higher means more positive."""
    new: ColumnName = None
    """Column of the new score, with --key in the second file."""
    score: Annotated[list[str], COLUMNS] = field(default_factory=list)
    """Both, in place of --old and --new: first the old score, then the new one."""
    key: ColumnName = None
    """Column that identifies the rows in two files: the first with the old score and all other
    columns, the second with the new score."""
    pos_label: Annotated[str | None, Parameter(metavar="VALUE")] = None
    """Positive value of other labels than 0 and 1, such as yes."""
    weights: Weights = Weights()

    @property
    def names(self) -> tuple[str, str]:
        """The old and the new score."""
        named = [name for name in (self.old, self.new) if name is not None] + self.score
        if len(named) != 2 or (self.old is None) != (self.new is None):  # noqa: PLR2004
            msg = "--old and --new must be given, or --score twice, first the old score"
            raise ValueError(msg)
        return named[0], named[1]


@with_arguments_of(
    release_check,
    "intersections metrics net_benefit_at min_rows adjust",
    min_rows="Fewest rows for the test of a metric.",
)
def release(
    file: FileNames,
    /,
    *,
    rows: BothScores,
    first_run_ok: FirstRun = False,
    attributes: Attributes = (),
    threshold: Annotated[
        list[Any] | None,
        Parameter(
            help="Scores of at least this are selected; or old=T and new=T.",
            converter=read_all_by(_read_thresholds),
            metavar="NUMBER...",
            group=DECISIONS,
        ),
    ] = None,
    selected: Annotated[
        Sequence[str],
        Parameter(
            metavar="COLUMN...",
            help="Column of recorded decisions, as old=D and new=D: true and false or 0 and 1; or "
            "the value of those who are selected, as in old=decision=hired.",
            group=DECISIONS,
        ),
    ] = (),
    margin: Annotated[
        list[Any] | None,
        Parameter(
            help="How much worse is still no worse; for one metric as in tpr=0.02, repeatable; "
            "default 0.01 for the AUC and rates.",
            converter=read_all_by(_read_margins),
            metavar="NUMBER...",
            group=TESTS,
        ),
    ] = None,
    dialect: Dialect = FileFormat(),
    uncertainty: Uncertainty = Uncertainty(),
    conditions: Conditions = Conditions(),
    output: TableOutput = TableOutput(),
    **given: Any,
) -> None:
    """Check a new score against the old one; raise if a condition holds."""
    output.check(TABLES_AND_CHARTS, file)
    gates = conditions.read(RELEASE_SCOPE)
    decided = dict(text.partition("=")[::2] for text in selected)
    source = Source(
        files=file[:1] if rows.key else file,
        all_files=file,
        dialect=dialect,
        columns=RowColumns(
            label=rows.label, score=[*rows.names], pos_label=rows.pos_label, weights=rows.weights
        ),
        group_texts=attributes,
        codes=[rows.key or "", *decided.values(), *_name_columns(decided.values())],
        design=uncertainty.design,
    )
    if first_run_ok and len(file) == 2:  # noqa: PLR2004  (before and after)
        before, after = file
        if is_first_run(before, after, partial(_check_new, rows, source)):
            return
    columns = _read_columns(source, rows, decided)
    frame = columns["frame"]
    schema = frame.collect_schema()
    groups = [values.read_group("--attribute", text, schema) for text in attributes]
    given["margin"] = _read_margins([]) if margin is None else margin
    given |= {"threshold": threshold, "attributes": groups or None} | uncertainty.arguments
    with source.at_work():
        table = release_check(**columns, **given).collect()
    found = bool(table.filter(metric="auc")["n"].sum())
    require_positives(columns["pos_label"], frame, columns["label"], found=found)
    decides = threshold is not None or bool(selected)
    sentence = (
        _say_selections(table)
        + _say_which_is_worse(table)
        + _count_left_out(columns, decides=decides)
    )
    metrics = table["metric"].unique(maintain_order=True).to_list()

    def draw() -> list[Any]:
        return [wroc.gap_chart(table, metric=metric, show="value") for metric in metrics]

    report = Report(source, table, _lay_out(table, sentence), draw)
    if output.output and "-" not in output.output:
        print_text(f"{sentence}\n")
    show_report(report, output, conditions.judge(gates, table))


def _name_columns(decided: Iterable[str]) -> list[str]:
    """Name the columns of decisions such as decision=hired."""
    return [text.partition("=")[0] for text in decided]


def _read_columns(source: Source, rows: BothScores, decided: Mapping[str, str]) -> dict[str, Any]:
    """Read the rows, from one file or from two, and name their columns."""
    files = source.all_files
    if rows.key is not None and len(files) != 2:  # noqa: PLR2004  (one of each score)
        msg = f"--key needs two files, of the old and of the new score; found {', '.join(files)}"
        raise ValueError(msg)
    if rows.key is None and len(files) == 2:  # noqa: PLR2004
        schemas = [replace(source, files=[file]).frame.collect_schema() for file in files]
        _check_columns(schemas, *rows.names)
    frames = [source.frame, replace(source, files=files[1:]).frame if rows.key else source.frame]
    types = {"old": frames[0].collect_schema(), "new": frames[-1].collect_schema()}
    if unknown := [name for name in decided if name not in types]:
        msg = f"--selected must look like old=D and new=D; found {unknown[0]!r}"
        raise ValueError(msg)
    selected = {name: values.read_selected(text, types[name]) for name, text in decided.items()}
    frame, (old, new) = frames[0], rows.names
    if rows.key is not None:
        frame, old, new = _join(frames, files, rows, selected)
    return {
        "frame": frame,
        "label": rows.label,
        "old": old,
        "new": new,
        "weight": rows.weights.column,
        "pos_label": values.read_pos_label(rows.pos_label, rows.label, frame),
        "selected": selected or None,
    }


def _check_new(rows: BothScores, source: Source, file: str) -> None:
    """Check that a file has the columns that the next run needs of the old file."""
    if rows.key is None:
        msg = "--first-run-ok is about two files, whose rows --key matches; found no --key"
        raise ValueError(msg)
    frame = replace(source, files=[file]).frame
    for name, column in (("label", rows.label), ("key", rows.key), ("new", rows.names[1])):
        typed_column(name, pl.col(column), frame)


def _check_columns(schemas: Sequence[pl.Schema], old: str, new: str) -> None:
    """Refuse two files of one score each that are not matched by a key."""
    first, second = schemas
    apart = new in second and new not in first and old not in second
    if apart or new == old:
        msg = "--key must name the column by which rows of the two files are the same; found none"
        raise ValueError(msg)


def _join(
    frames: Sequence[pl.LazyFrame],
    files: Sequence[str],
    rows: BothScores,
    selected: dict[str, Any],
) -> tuple[pl.LazyFrame, str, str]:
    """Add the new score and its decision to the rows of the same key; return both scores' names."""
    key, (first, second), (old, new) = rows.key, frames, rows.names
    assert key is not None
    typed_column("new", pl.col(new), second)
    types = [typed_column("key", pl.col(key), frame).dtype for frame in frames]
    if types[0] != types[1]:
        found = f"found {key!r} of {types[0]} and {types[1]}"
        msg = f"--key must have the same type in both files; {found}"
        raise ValueError(msg)
    _check_keys([collect(frame.select(key)).to_series() for frame in frames], files, key)
    taken, old_name = first.collect_schema(), old
    if new == old:
        # Sentences name both scores.
        typed_column("old", pl.col(old), first)
        old_name = _unlike(old, taken, "old")
        first = first.with_columns(pl.col(old).alias(old_name))
    new_name = _unlike(new, taken, "new")
    columns = [pl.col(new).alias(new_name)]
    if "new" in selected:
        column = selected["new"]
        column = pl.col(column) if isinstance(column, str) else column
        columns.append(column.alias(_DECISION))
        selected["new"] = _DECISION
    joined = first.join(second.select(key, *columns), on=key, how="left", maintain_order="left")
    return joined, old_name, new_name


def _unlike(name: str, taken: Collection[str], word: str) -> str:
    """Append a word in brackets while a name is taken."""
    while name in taken:
        name += f" ({word})"
    return name


def _check_keys(keys: Sequence[pl.Series], files: Sequence[str], key: str) -> None:
    """Check that each row of a file has one of the other."""
    (old, new), (old_file, new_file) = keys, files
    for found, what in (
        (old.filter(old.is_null()), f"missing in {old_file}"),
        (new.filter(new.is_null()), f"missing in {new_file}"),
        (old.filter(old.is_duplicated()), f"several times in {old_file}"),
        (new.filter(new.is_duplicated()), f"several times in {new_file}"),
        (old.filter(~old.is_in(new.implode())), f"in {old_file}, but not in {new_file}"),
        (new.filter(~new.is_in(old.implode())), f"in {new_file}, but not in {old_file}"),
    ):
        if len(found):
            more = f" (and {len(found) - 1:,} more)" if len(found) > 1 else ""
            value = "null" if found[0] is None else write_in_one_line(str(found[0]))
            msg = (
                f"--key {key} must match each row of one file with one row of the other; found "
                f"{value}{more} {what}"
            )
            raise ValueError(msg)


def _say_which_is_worse(table: pl.DataFrame) -> str:
    """Return whether the new score is no worse in all comparisons, or where it is worse."""
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
    """Return by which score nobody, or everybody, is selected."""
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


def _count_left_out(rows: Mapping[str, Any], *, decides: bool) -> str:
    """Return how many rows have no label, weight or score, if any."""
    names = (rows[name] for name in ("label", "weight", "old", "new"))
    lacks = pl.any_horizontal(pl.col(name).is_null() for name in names if isinstance(name, str))
    for name in (rows["old"], rows["new"]):
        lacks |= pl.col(name).cast(pl.Float64, strict=False).is_nan()
    number = collect(rows["frame"].select(lacks.sum())).item()
    if not number:
        return ""
    have, counts = ("has", "counts") if number == 1 else ("have", "count")
    apart = ", but without a label in the selection rate" if decides else ""
    return (
        f" {many(number, 'row')} {have} no label, weight or score, and {counts} for neither "
        f"score{apart}."
    )


def _lay_out(table: pl.DataFrame, sentence: str) -> list[Shown]:
    """Show the metrics with both scores, after a sentence, and whose decisions change."""
    heading, keys = "the new score against the old one", [*AUDIT_KEYS, "metric"]
    shown = [Shown(heading, table, keys, sentence, short=table.drop(_CHANGES, strict=False))]
    outcome = pl.col("metric").replace_strict(_OUTCOMES, default=None).alias("outcome")
    changes = table.select(*AUDIT_KEYS, outcome, "n", *_CHANGES).drop_nulls("outcome")
    if changes.is_empty():
        return shown
    heading, keys = "rows whose decision changes", [*AUDIT_KEYS, "outcome"]
    return [*shown, Shown(heading, changes, keys, asked=False)]
