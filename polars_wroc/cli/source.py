"""The contents of a command's files: rows or counts, to which functions are applied."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import polars as pl

from polars_wroc.audits.hints import list_missing
from polars_wroc.audits.tables import AuditedFile, audited_files, saved_audits
from polars_wroc.checks import did_you_mean, favorable_choice
from polars_wroc.cli import values
from polars_wroc.cli.options import RowColumns
from polars_wroc.cli.settings import shared_options
from polars_wroc.cli.terminal import print_note
from polars_wroc.config import division
from polars_wroc.counts.count_table import CountTable, merge, read_count_table, with_same_keys
from polars_wroc.counts.score_sums import WEIGHT_SUMS
from polars_wroc.documents.phrases import first_few, verb
from polars_wroc.files import sources
from polars_wroc.files.csv_dialect import FileFormat
from polars_wroc.files.scan import describe_reading_error, scan_files
from polars_wroc.groups.categories import is_period
from polars_wroc.groups.many_groups import advise_fewer_groups, find_many_values, write_breaks
from polars_wroc.inputs.columns import MISSING
from polars_wroc.inputs.designs import Design, Survey
from polars_wroc.inputs.frames import require_positives
from polars_wroc.inputs.spellings import count_values, describe_values
from polars_wroc.metrics.summary import summary
from polars_wroc.progress import Progress
from polars_wroc.queries import CheckError, aggregate, collect, collect_all, find_height

# Functions that take a list of frames, which workers of a cluster read.
_OF_PARTS = ("summary", "audit", "score_counts")
_LEFT_OUT = "Rows that lack one are left out."


@dataclass(frozen=True, kw_only=True)
class Files:
    """Files that a command reads."""

    files: Sequence[str]

    def describe(self, *, contents: bool) -> list[AuditedFile]:
        """Name the files, with sums of their contents if these are asked for."""
        return audited_files(self.files, contents=contents)

    def say_values(self) -> None:
        """Return notes on values of the rows, for readers."""


class Audits(Files):
    """Audits that were saved as JSON."""

    def describe(self, *, contents: bool) -> list[AuditedFile]:  # noqa: ARG002
        """Name the audits with their date and files."""
        return saved_audits(self.files)


@dataclass(frozen=True, kw_only=True)
class Source(Files):
    """Rows or counts, and the columns that functions of the library are applied to."""

    columns: RowColumns
    dialect: FileFormat = FileFormat()
    # Group columns as they were asked for, and the option that did.
    group_texts: Sequence[str] = ()
    flag: str = "--attribute"
    selected: str | None = None
    # Other columns that may be codes, such as 007.
    codes: Sequence[str] = ()
    # The column of times, if there is one.
    over: str | None = None
    approximate: int | None = None
    # A day without rows may be counted.
    may_be_empty: bool = False
    # The sample design that limits are based on.
    design: Design | None = None
    # All files that a result is made from, if they are not read as one.
    all_files: Sequence[str] = ()

    def describe(self, *, contents: bool) -> list[AuditedFile]:
        """Name the files, with sums of their contents if these are asked for."""
        return audited_files(self.all_files or self.files, contents=contents)

    def _names(self, *options: str) -> list[str]:
        """Return the columns that options name."""
        given = [self.columns.option_values[option] for option in options]
        listed = [[each] if isinstance(each, str) else each or [] for each in given]
        return [name for names in listed for name in names]

    @cached_property
    def frame(self) -> pl.LazyFrame:
        """The rows, or what the files have of counts."""
        decision, _, _ = (self.selected or "").partition("=")
        cut = [
            name
            for name, _, period in (text.rpartition(":") for text in self.group_texts)
            if is_period(period)
        ]
        text = [*self._names("label"), decision, self.selected or "", *self.group_texts]
        frame = scan_files(
            self.files,
            self.dialect,
            text=[*text, *self.codes],
            numbers=self._names("score", "weight", "frequency"),
            dates=[*cut, *([] if self.over is None else [self.over])],
            tell=print_note,
        )
        if not self.may_be_empty and sources.store_row_counts(self.files):
            sources.require_rows(frame, self.files)
        return frame

    @cached_property
    def counts(self) -> CountTable | None:
        """The counts in all files added up, if they hold counts and not rows."""
        first, *others = sources.each_file(self.files)
        frame = scan_files([first], self.dialect) if others else self.frame
        if not {*WEIGHT_SUMS} <= {*frame.collect_schema()}:
            return None
        return merge_files(self.files, self.approximate)

    @property
    def schema(self) -> pl.Schema:
        """The types of the columns that groups may be of."""
        return self._groups_frame.collect_schema()

    @property
    def _groups_frame(self) -> pl.LazyFrame:
        """The frame that has the groups."""
        return self.frame if self.counts is None else self.counts.groups

    @cached_property
    def groups(self) -> list[str | pl.Expr]:
        """The group columns, some of them cut into ranges."""
        return [values.read_group(self.flag, text, self.schema) for text in self.group_texts]

    @cached_property
    def group_types(self) -> dict[str, pl.DataType]:
        """The names and types of the groups that there are."""
        frame, types = self._groups_frame, dict[str, pl.DataType]()
        for group in self.groups:
            if isinstance(group, pl.Expr) or group in frame.collect_schema():
                types |= frame.select(group).collect_schema()
        return types

    @property
    def facet(self) -> str | None:
        """The groups that have a panel of a chart each."""
        return next(iter(self.group_types), None)

    @cached_property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the library that name columns of rows."""
        named: dict[str, Any] = {"weight": self.columns.weights.column}
        schema = self.frame.collect_schema()
        if self.columns.score:
            for text in self.columns.score:
                values.check_one_column("--score", text, schema)
            several = len(self.columns.score) > 1
            named["score"] = self.columns.score if several else self.columns.score[0]
        label, pos_label = self.columns.label, self.columns.pos_label
        if label is not None:
            named |= {
                "label": label,
                "pos_label": values.read_pos_label(pos_label, label, self.frame),
            }
        elif pos_label is not None:
            msg = "--pos-label must come with --label"
            raise ValueError(msg)
        if self.selected is not None:
            named["selected"] = values.read_selected(self.selected, schema)
        return named

    def require(self, *names: str, or_else: str = "") -> None:
        """Check that columns of rows are named, and that none is of counts."""
        given = [f"--{name}" for name, value in self.columns.option_values.items() if value]
        given += [] if self.selected is None else ["--selected"]
        # Columns for all commands are those of rows.
        own = [flag for flag in given if flag not in shared_options.get()]
        if own:
            self.refuse_counts(own[0])
        lacking = [f"--{name}" for name in names if f"--{name}" not in given]
        if self.counts is None and lacking:
            also = f", or for {or_else}" if or_else else ""
            msg = f"{' and '.join(lacking)} must be given, unless files hold counts{also}"
            raise ValueError(msg)

    def refuse_counts(self, what: str) -> None:
        """Refuse counts where a command or an option needs single rows."""
        if self.counts is not None:
            have = verb(len(self.files), "has", "have")
            msg = f"{what} needs rows, and {sources.name_sources(self.files)} {have} counts"
            raise ValueError(msg)

    def read_unknown(self, texts: Sequence[str]) -> str | list[object]:
        """Read which categories are unknown, as values of the groups."""
        return values.parse_unknown(texts, [*self.group_types.values()])

    def plan(self, function: Callable[..., Any], **given: Any) -> Any:
        """Apply a function of the library to the rows or counts."""
        known = inspect.signature(function).parameters
        if self.groups:
            given["by" if self.flag == "--by" else "attributes"] = self.groups
        if "design" in given:
            self.refuse_counts("a design (--cluster, --strata, --replicate-weights)")
        if self.counts is not None:
            # Only counts should cost the import of all functions.
            from polars_wroc.namespaces import Counts  # noqa: PLC0415

            return getattr(Counts(self.counts, eager=False), function.__name__)(**given)
        if self.approximate is not None:
            given["bins"] = self.approximate
        if known.get("label") and known["label"].default is inspect.Parameter.empty:
            # Notes that do not depend on the label have None for it.
            given["label"] = None
        given |= {name: value for name, value in self.arguments.items() if name in known}
        return function(self._list_parts(function, given), **given)

    def _list_parts(self, function: Callable[..., Any], given: dict[str, Any]) -> Any:
        """Scan each file by itself, if workers are to read them."""
        divided = division()
        is_whole = divided is None or not divided.has_workers or "design" in given
        if is_whole or function.__name__ not in _OF_PARTS:
            return self.frame
        return [replace(self, files=[file]).frame for file in sources.each_file(self.files)]

    def compute(self, function: Callable[..., Any], **given: Any) -> pl.DataFrame:
        """Return the table of a function, and say what the rows lack."""
        (table,) = self.compute_all(self.plan(function, **given))
        return table

    def compute_all(self, *plans: pl.LazyFrame, left_out: str = _LEFT_OUT) -> list[pl.DataFrame]:
        """Return tables of the rows, and say what these lack, and what that means."""
        with self.at_work():
            *tables, missing = collect_all([*plans, self._count_missing()])
        for sentence in list_missing(missing):
            print_note(f"{sentence} {left_out}")
        return tables

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Show on a terminal what is worked on, and name the file that cannot be read."""
        with Progress(describe=self._describe_work):
            try:
                yield
            except CheckError:
                raise
            except ValueError as error:
                if str(error).startswith("`pos_label` must be the label"):
                    self._refuse_positives()
                raise
            except pl.exceptions.PolarsError as error:
                if str(error).startswith("`"):
                    # A sentence of the library on an argument.
                    raise
                msg = describe_reading_error(error, self.files, self.dialect)
                raise ValueError(msg) from error

    def _describe_work(self) -> str:
        if self.counts is None and sources.store_row_counts(self.files):
            return f"working on {find_height(self.frame):,} rows"
        return "working"

    def _count_missing(self) -> pl.LazyFrame:
        """Return how many rows lack a value of each column: its name, and their number."""
        if self.counts is not None:
            # Rows are there once for each score.
            table = self.counts
            sums = aggregate(table.frame, table.model_keys, {"n_missing": pl.sum("n_missing")})
            return sums.select(
                column=pl.lit("a label, score or weight"), n_missing=pl.max("n_missing")
            )
        types = self.frame.collect_schema()
        named = [name for name in self._names("label", "weight", "score") if name in types]
        lacking = {
            name: pl.col(name).fill_nan(None) if types[name].is_float() else pl.col(name)
            for name in named
        }
        counts = self.frame.select(column.null_count() for column in lacking.values())
        return counts.unpivot(variable_name="column", value_name="n_missing")

    def check_positives(self, *, found: bool) -> None:
        """Check that a row has the positive label, which a table may not show."""
        if self.columns.pos_label is None or found or self.counts is not None:
            return
        named = {name: value for name, value in self.arguments.items() if name != "selected"}
        if not summary(self.frame, **named).collect()["n_pos"].sum():
            self._refuse_positives()

    def _refuse_positives(self) -> None:
        """Raise for a positive label that no row has, with the labels that there are."""
        named = self.arguments
        require_positives(named["pos_label"], self.frame, named["label"], found=False)

    def check_selected(self, n_selected: object) -> None:
        """Check that the value that --selected gives, if it does, is that of some rows."""
        name, sign, value = (self.selected or "").partition("=")
        if sign and not n_selected:
            values = collect(self.frame.select(pl.col(name).drop_nulls().unique())).to_series()
            msg = (
                f"--selected must name a value that column {name!r} holds; no row has {value!r}"
                f"{did_you_mean(value, [each for each in values if isinstance(each, str)])}"
            )
            raise ValueError(msg)

    def say_values(self) -> None:
        """Return which values count, and which are too many for groups."""
        if self.counts is None:
            for sentence in (
                *self._advise_ranges(),
                *self.describe_chosen_values(),
                *self._say_lonely_units(),
            ):
                print_note(sentence)

    def describe_chosen_values(self) -> list[str]:
        """Return which values of the label and of decisions count, if there are more than two."""
        if self.counts is not None:
            return []
        schema = self.frame.collect_schema()
        name, _, value = (self.selected or "").partition("=")
        chosen = [(name, value, "not selected")] if value else []
        label, positive = self.columns.label, self.columns.pos_label
        if label is not None and positive is not None:
            chosen.append((label, positive, "not positive"))
        # Numbers have one spelling, and are no words for an outcome.
        texts = (pl.String, pl.Categorical, pl.Enum)
        return [
            sentence
            for column, text, other in chosen
            if isinstance(schema.get(column), texts)
            for sentence in describe_values(column, text, count_values(self.frame, column), other)
        ]

    def _say_lonely_units(self) -> list[str]:
        """Return which strata have a single sampling unit, so that limits are unknown."""
        survey = self.design
        if not isinstance(survey, Survey) or survey.strata is None or survey.lonely != "null":
            return []
        strata = cast("str", survey.strata)
        units = (
            pl.len() if survey.cluster is None else pl.col(cast("str", survey.cluster)).n_unique()
        )
        is_lonely = units == 1
        if survey.fpc is not None:
            # All units of these strata are in the sample.
            is_lonely &= (pl.col(cast("str", survey.fpc)) != 1).first()
        found = self.frame.group_by(strata).agg(is_lonely=is_lonely).filter("is_lonely")
        names = collect(found.select(pl.col(strata).cast(pl.String).fill_null(MISSING)))
        if names.is_empty():
            return []
        noun = verb(names.height, "stratum", "strata")
        have = verb(names.height, "has", "each have")
        sentence = (
            f"{noun} {first_few(sorted(names.to_series()))} {have} one sampling unit, so numbers "
            "based on such rows have no confidence limits: pass --lonely certainty or adjust"
        )
        return [sentence]

    def _advise_ranges(self) -> list[str]:
        """Advise ranges for numbers, and periods for dates, of which each value is a group."""
        schema, flag = self.frame.collect_schema(), self.flag
        names = [name for name in dict.fromkeys(self.group_texts) if name in schema]
        distinct = (collect(self.frame.select(pl.col(name).unique())).to_series() for name in names)
        return [
            advise_fewer_groups(
                column,
                ranges=f"{flag} {column.name}:{write_breaks(column, ',')}",
                periods=f"{flag} {column.name}:1mo",
            )
            for column in find_many_values(distinct)
        ]


def merge_files(files: Sequence[str], bins: int | None) -> CountTable:
    """Add up the counts in files."""
    each = sources.each_file(files)
    tables = [
        # A message begins with the name of the file.
        read_count_table(
            sources.name_sources([file]), scan_files([file]), once=not sources.is_address(file)
        )
        for file in each
    ]
    return merge(with_same_keys("files", tables, each), bins, each)


def require_favorable(favorable: str | None, **deciding: object) -> None:
    """Check that it is said which decision is good, if there are decisions."""
    given = [f"--{name}" for name, value in deciding.items() if value is not None]
    if given and favorable is None:
        choice = favorable_choice("being selected").replace("'", "")
        msg = f"--favorable must be given with {given[0]}: {choice}, neither if it is neither"
        raise ValueError(msg)


def is_first_run(before: str, after: str, check: Callable[[str], object]) -> bool:
    """Whether there is no file yet to compare with; if so check the other one, and say so."""
    if sources.is_address(before) or re.search(r"[*?[]", before) or Path(before).exists():
        return False
    check(after)
    what = f"there is no {before!r} yet; save {after!r} as {before!r} for the next one"
    print_note(f"nothing is compared on the first run: {what}")
    return True
