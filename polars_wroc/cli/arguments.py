"""Options as arguments of the package's functions."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import polars.selectors as cs

from polars_wroc.audits.tables import Text
from polars_wroc.checks import favorable_choice
from polars_wroc.cli.options import COMMANDS, CURVES
from polars_wroc.cli.process import complain, refuse
from polars_wroc.files.sources import is_address, name_sources
from polars_wroc.groups.categories import is_period, period_of, ranges
from polars_wroc.groups.many_groups import advise_fewer_groups, find_many_values, write_breaks
from polars_wroc.inputs import columns
from polars_wroc.inputs.columns import Typed
from polars_wroc.inputs.designs import Design, Survey
from polars_wroc.inputs.spellings import count_values, describe_values
from polars_wroc.queries import collect, require_at_collect

# Arguments of functions that have other names than the options.
_ALIASES = {
    "path": "output",
    "frame": "files",
    "frames": "files",
    "table": "files",
    "bins": "curve_bins",
    **dict.fromkeys(("by", "facet", "attributes"), "groups"),
    "design": "cluster",
    "planned": "looks",
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


def groups_of(options: argparse.Namespace, frame: pl.LazyFrame) -> list[str | pl.Expr] | None:
    """Return the group columns, some of them cut into ranges; None without any."""
    flag, schema = options.flags["groups"], frame.collect_schema()
    return [_group(text, schema, flag) for text in options.groups] or None


def _group(text: str, schema: pl.Schema, flag: str) -> str | pl.Expr:
    """Read a name, or a name and where its ranges begin or how long they are: day:1mo."""
    name, colon, listed = text.rpartition(":")
    check_one_column(flag, text, schema)
    if text in schema or not colon or name not in schema:
        return text
    dtype, column = schema[name], pl.col(name)
    if dtype == pl.String and is_period(listed):
        column, dtype = _read_times(name, listed, f"{flag} {text}")
    dated = dtype in (pl.Date, pl.Datetime)
    if not (dated or dtype.is_numeric()):
        kinds = "numbers, dates or times"
        msg = f"{flag} {text} must name {kinds}; found column {name!r} of {dtype}"
        raise ValueError(msg)
    try:
        if dated:
            return period_of(Typed(flag, column, dtype, name), listed)
        return ranges(name, [float(part) for part in listed.split(",")])
    except ValueError:
        such = "1mo, a length of time" if dated else "18,30,50 with increasing numbers"
        msg = f"{flag} must be such as {name}:{such}; found {text!r}"
        raise ValueError(msg) from None


def check_one_column(flag: str, text: str, schema: pl.Schema) -> None:
    """Refuse several columns in one text, which each have the option for themselves."""
    parts = text.split(",")
    if text not in schema and len(parts) > 1 and all(part in schema for part in parts):
        repeated = " ".join(f"{flag} {part}" for part in parts)
        refuse(f"{flag} must name one column; found {text!r}: repeat it, as in {repeated}")


# How the time of a day may be written after the date, without its zone.
_TIMES = ("T%H:%M:%S%.f", " %H:%M:%S%.f", "T%H:%M", " %H:%M", "")
_ZONE = r"(?:Z|[+-]\d\d:?\d\d)$"
# Ends of periods shorter than a day.
_WITHIN_A_DAY = ("h", "m", "s", "us", "ns")


def _read_times(name: str, every: str, option: str) -> tuple[pl.Expr, pl.DataType]:
    """Read texts such as 2026-01-31 or 2026-01-31T08:30 as dates, or times for short periods."""
    text = pl.col(name)
    dtype: pl.DataType
    if every.endswith(_WITHIN_A_DAY):
        dtype, zoneless = pl.Datetime("us"), text.str.replace(_ZONE, "")
        read = pl.coalesce(
            zoneless.str.to_datetime(f"%Y-%m-%d{time}", time_unit="us", strict=False)
            for time in _TIMES
        )
    else:
        dtype, day = pl.Date(), text.str.replace(r"^(\d{4}-\d\d-\d\d)[T ].*", "$1")
        read = day.str.to_date("%Y-%m-%d", strict=False)
    rule = f"{option} must name dates or times such as 2026-01-31 or 2026-01-31T08:30"
    known = require_at_collect(read.is_not_null() | text.is_null(), rule, text)
    return pl.when(known).then(read).alias(name), dtype


# Options about columns of rows.
_UNITS = ("cluster", "strata", "fpc", "lonely")
DESIGN = (*_UNITS, "replicate_weights")
_COLUMNS = ("label", "score", "selected", "weight", "pos_label", *DESIGN)
# Commands by the functions whose names are in messages.
_COMMANDS = {
    **{row.function.__name__: name for name, row in COMMANDS.items()},
    **{f"{kind}_curve": f"curve --kind {kind}" for kind in CURVES},
    "score_counts": "polars-wroc counts",
    "merge_counts": "polars-wroc merge",
    "calibration_summary": "calibrate",
    "auc": "auc",
    **{name: f"--{name}" for name in ("memory",)},
    **dict.fromkeys(("client", "--dask"), "--dask"),
}
# The name of an argument in a message.
_ARGUMENT = re.compile(r"`(--[\w-]+|\w+)`")


def check_column_options(options: argparse.Namespace) -> None:
    """Check that columns are named if, and only if, the files hold rows."""
    if options.attributes and not options.groups:
        refuse(f"{options.command} needs at least one --attribute")
    given = [name for name in _COLUMNS if getattr(options, name, None)]
    required = [name for name in options.required if name not in given]
    if options.command == "audit":
        by_score = options.score and options.threshold is not None
        alone = not options.label and (options.selected or by_score)
        required = [] if alone else [name for name in ("label", "score") if name not in given]
    if options.command == "audit" and options.selected and required == ["score"]:
        refuse("--score is needed with --label; to audit decisions alone, leave out --label")
    if not options.counts and required:
        flags = ", ".join(f"--{name}" for name in required)
        msg = f"the following arguments are required: {flags}; without them only with --counts"
        if options.command == "audit":
            msg += ", or for decisions alone: --selected, or --score and --threshold"
        refuse(msg)
    if options.counts and given:
        flag = f"--{given[0].replace('_', '-')}"
        refuse(f"{flag} is about columns of rows; with --counts there are none, only counts")


def is_first_run(options: argparse.Namespace, check: Callable[[str], object]) -> bool:
    """Whether there is no file yet to compare with, if that may be; check the other one, say so."""
    if not options.first_run_ok or len(options.files) != 2:  # noqa: PLR2004  (before and after)
        return False
    before, after = options.files
    if is_address(before) or re.search(r"[*?[]", before) or Path(before).exists():
        return False
    check(after)
    what = f"there is no {before!r} yet; save {after!r} as {before!r} for the next one"
    complain(f"nothing is compared on the first run: {what}")
    return True


def in_options(message: str, options: argparse.Namespace) -> str:
    """Name arguments in a message as the options that set them, and functions as commands."""
    known = _COMMANDS | {flag: flag for flag in options.flags.values()} | options.flags
    message = of_files(message, options.files)
    return _ARGUMENT.sub(lambda found: known.get(found[1], found[0]), message)


def of_files(message: str, files: Sequence[str]) -> str:
    """Name the one file in a message about the columns of a frame."""
    named = name_sources(files) if len(files) == 1 else "the files"
    return message.replace("a column of the frame", f"a column of {named}")


def read_column_options(options: argparse.Namespace, frame: pl.LazyFrame) -> dict[str, Any]:
    """Name the columns of labels, scores, weights and, if given, of recorded decisions."""
    columns = {
        "label": options.label,
        "score": scores_of(options, frame) if options.score else None,
        "weight": options.weight,
        "by": groups_of(options, frame),
        "pos_label": pos_label_of(frame, options.label, options.pos_label),
    }
    if getattr(options, "selected", None) is not None:
        columns["selected"] = selected_of(frame, options.selected)
    return columns


def require_favorable(options: argparse.Namespace, deciding: Sequence[str]) -> None:
    """Check that it is said which decision is good, if one of the options makes decisions."""
    given = [name for name in deciding if getattr(options, name) is not None]
    if given and options.favorable is None:
        choice = favorable_choice("being selected").replace("'", "")
        # An impact ratio needs a good side.
        choice += "" if options.command == "impact" else ", neither if it is neither"
        refuse(f"--favorable is needed with {options.flags[given[0]]}: {choice}")


def scores_of(options: argparse.Namespace, frame: pl.LazyFrame) -> list[str] | str:
    """Return the name of the score, or those of several."""
    scores: list[str] = options.score
    for text in scores:
        check_one_column("--score", text, frame.collect_schema())
    return scores if len(scores) > 1 else scores[0]


def decisions_of(options: argparse.Namespace, frame: pl.LazyFrame) -> dict[str, Any]:
    """Name the columns of decisions, or of scores that a threshold decides on."""
    return {
        "score": scores_of(options, frame) if options.score else None,
        "selected": None if options.selected is None else selected_of(frame, options.selected),
        "weight": options.weight,
        "attributes": groups_of(options, frame),
    }


def check_selected(options: argparse.Namespace, n_selected: object) -> None:
    """Check that the value that --selected gives, if it does, is that of some rows."""
    if "=" in (options.selected or "") and not n_selected:
        name, _, value = options.selected.partition("=")
        msg = f"--selected must name a value that column {name!r} holds; no row has {value!r}"
        raise ValueError(msg)


def uncertainty_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments about intervals and the design of a survey."""
    return {"level": options.level, **design_of(options)}


def reference_of(options: argparse.Namespace, default: str) -> str | dict[str, str]:
    """Read --reference: one kind, or segments by their attributes."""
    given = options.reference
    kinds = [text for text in given if "=" not in text]
    if kinds and len(given) > 1:
        rule = "be one of the kinds, or only segments such as sex=m"
        refuse(f"--reference must {rule}; found {' and '.join(given)}")
    if kinds or not given:
        return kinds[0] if kinds else default
    named = [text.partition("=")[::2] for text in given]
    if len(dict(named)) < len(named):
        refuse(f"--reference must name one segment per attribute; found {' and '.join(given)}")
    return dict(named)


def read_text_options(options: argparse.Namespace) -> Text:
    """Return the title, the note and the words of sentences."""
    words = {"selected": options.selected_word, "rejected": options.rejected_word}
    names = ("title", "note", "positive", "negative", "people")
    words |= {name: getattr(options, name) for name in names}
    return Text(**words, groups=_read_group_words(options.group_words))


def _read_group_words(given: Sequence[str]) -> dict[str, str] | None:
    """Read what the groups of attributes are called, such as ``region=applicants in {}``."""
    for text in given:
        name, _, pattern = text.partition("=")
        if not name or pattern.count("{}") != 1:
            refuse(f"--group-words must be such as 'region=applicants in {{}}'; found {text!r}")
    return dict(text.split("=", 1) for text in given) or None


def design_of(options: argparse.Namespace) -> dict[str, Design]:
    """Return the design of a survey, if the command knows one and it is given."""
    given = {name: value for name in _UNITS if (value := getattr(options, name, None))}
    if getattr(options, "replicate_weights", None) is not None:
        if given:
            refuse(f"--replicate-weights must not come with --{next(iter(given))}")
        return {"design": options.replicate_weights}
    if [*given] == ["cluster"]:
        return {"design": options.cluster}
    return {"design": Survey(**given)} if given else {}


def unknown_of(options: argparse.Namespace, types: Mapping[str, pl.DataType]) -> str | list[object]:
    """Read --unknown: one kind, or values of the attributes, which have these types."""
    given: Sequence[str] = options.unknown
    kinds = [text for text in given if text in ("exclude", "keep")]
    if kinds and len(given) > 1:
        refuse(f"--unknown must be exclude, keep, or values only; found {' and '.join(given)}")
    if kinds or not given:
        return kinds[0] if kinds else "exclude"
    listed = list[object]()
    for text in given:
        read = [columns.from_text(text, dtype) for dtype in types.values()]
        listed += [value for value in read if value is not None] or [text]
    return listed


def group_types(options: argparse.Namespace, frame: pl.LazyFrame) -> dict[str, pl.DataType]:
    """Return the names and types of the groups that there are."""
    schema = frame.collect_schema()
    groups = groups_of(options, frame) or []
    there = [group for group in groups if isinstance(group, pl.Expr) or group in schema]
    # One by one, since the same column twice is for the functions to refuse.
    types = dict[str, pl.DataType]()
    for group in there:
        types |= frame.select(group).collect_schema()
    return types


def selected_of(frame: pl.LazyFrame, text: str) -> str | pl.Expr:
    """Read --selected: a column of decisions, or a column and the value of the selected."""
    schema = frame.collect_schema()
    name, _, value = text.partition("=")
    dtype = schema.get(text, pl.Boolean())
    if not (dtype in (pl.Boolean, pl.Null) or dtype.is_numeric()):
        msg = (
            "--selected must name a column of true and false or 0 and 1, or a column and the value "
            f"of those who are selected, such as {text}=yes; found column {text!r} of type {dtype}"
        )
        raise ValueError(msg)
    if text in schema or name not in schema:
        return name if name != text and text not in schema else text
    read = columns.from_text(value, schema[name])
    held = None if read is None else columns.exact(read, schema[name])
    if held is None:
        msg = (
            f"--selected must be such as {name}=yes, with a value of the column; found {value!r} "
            f"for type {schema[name]}"
        )
        raise ValueError(msg)
    return (cs.by_name(name).as_expr() == columns.literal(held)).alias(text)


def describe_chosen_values(frame: pl.LazyFrame, options: argparse.Namespace) -> list[str]:
    """Say which values of the label and of decisions count, where there are others than two."""
    schema = frame.collect_schema()
    name, _, value = (getattr(options, "selected", None) or "").partition("=")
    chosen = [(name, value, "not selected")] if value else []
    label, positive = (getattr(options, each, None) for each in ("label", "pos_label"))
    if label is not None and positive is not None:
        chosen.append((label, positive, "not positive"))
    sentences = []
    for column, text, other in chosen:
        # Numbers have one spelling, and are no words for an outcome.
        if not isinstance(schema.get(column), (pl.String, pl.Categorical, pl.Enum)):
            continue
        sentences += describe_values(column, text, count_values(frame, column), other)
    return sentences


def advise_ranges(frame: pl.LazyFrame, options: argparse.Namespace) -> list[str]:
    """Advise ranges for numbers, and periods for dates, of which each value is a group."""
    schema = frame.collect_schema()
    flag = options.flags["groups"]
    names = [name for name in dict.fromkeys(options.groups) if name in schema]
    distinct = (collect(frame.select(pl.col(name).unique())).to_series() for name in names)
    return [
        advise_fewer_groups(
            values,
            ranges=f"{flag} {values.name}:{write_breaks(values, ',')}",
            periods=f"{flag} {values.name}:1mo",
        )
        for values in find_many_values(distinct)
    ]


def pos_label_of(frame: pl.LazyFrame, label: str | None, text: str | None) -> object:
    """Read the text of --pos-label as a value of the label's type."""
    if label is None:
        if text is not None:
            refuse("--pos-label must come with --label; found no --label")
        return None
    dtype = frame.collect_schema().get(label)
    if dtype is None:
        return text
    if text is None:
        columns.check_label_type(Typed("label", pl.col(label), dtype, f"column {label!r}"), frame)
        return None
    value = columns.from_text(text, dtype)
    if value is None:
        msg = f"`pos_label` must be a value of the label; found {text!r} for type {dtype}"
        raise ValueError(msg)
    return value
