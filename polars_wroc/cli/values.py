"""Texts of the command line as values: thresholds, references, groups and decisions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, Literal

import polars as pl
import polars.selectors as cs

from polars_wroc.groups.categories import period_of, ranges
from polars_wroc.inputs import columns
from polars_wroc.inputs.columns import Typed
from polars_wroc.inputs.designs import ReplicateWeights
from polars_wroc.thresholds import rules
from polars_wroc.thresholds.rules import Rule, Threshold

# A rule, and what comes after its name.
_RULE = re.compile(r"([\w-]+)(?:([:=])(.*))?")


def parse_threshold(text: str) -> Threshold:
    """Read a number, the median, or a rule such as ``max-fpr=0.1`` or ``least-cost:fn=5,fp=1``."""
    if text == "median":
        return "median"
    parts = _RULE.fullmatch(text)
    name = parts[1].replace("-", "_") if parts else ""
    if parts and name in rules.__all__:
        choose: Callable[..., Rule] = getattr(rules, name)
        with _examples(_write_rule(name), text):
            return choose(_read_value(parts[3])) if parts[2] == "=" else choose(**_pairs(parts[3]))
    try:
        return float(text)
    except ValueError:
        begun = re.split(r"[^\w-]", text.replace("-", "_"), maxsplit=1)[0]
        close = get_close_matches(begun.lower(), rules.__all__, 1)
        hint = f"; did you mean {_write_rule(close[0])!r}?" if close else ""
        msg = f"must be a number, median or a rule such as max-fpr=0.1; found {text!r}{hint}"
        raise ValueError(msg) from None


def _write_rule(name: str) -> str:
    """Write a rule as the value of --threshold, with numbers as an example."""
    options = rules.SHOWN_OPTIONS.get(name, "")
    _, _, number = options.partition("=")
    if "," in options:
        options = f":{options.replace(', ', ',')}"
    elif options:
        options = f"={number}"
    return f"{name.replace('_', '-')}{options}"


def read_replicate_weights(text: str) -> ReplicateWeights:
    """Read columns and kind of replicate weights, such as ``rep_*:kind=jk2``."""
    names, _, options = text.rpartition(":")
    chosen = [_select_matching(name) if "*" in name else name for name in names.split(",") if name]
    with _examples("'rep_*:kind=jk2' or a,b,c:kind=fay,rho=0.3,df=60", text):
        return ReplicateWeights(chosen, **_pairs(options))


def _select_matching(pattern: str) -> pl.Expr:
    """Select the columns whose names match a pattern, in which * is any text."""
    return cs.matches("^" + ".*".join(map(re.escape, pattern.split("*"))) + "$")


def _pairs(text: str | None) -> dict[str, Any]:
    """Read arguments such as ``fn=5,fp=1``."""
    parts = (part.partition("=") for part in (text or "").split(",") if part)
    return {name: _read_value(value) for name, _, value in parts}


def _read_value(text: str) -> int | float | str:
    """Read a number, or leave the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


@contextmanager
def _examples(examples: str, text: str) -> Iterator[None]:
    """Show examples of an option in place of the name of its argument."""
    try:
        yield
    except (TypeError, ValueError) as error:
        msg = f"must look like {examples}; found {text!r}: {str(error).replace('`', '')}"
        raise ValueError(msg) from None


def read_names(text: str) -> list[str]:
    """Read names that commas separate."""
    names = [name.strip() for name in text.split(",")]
    if "" in names:
        msg = f"must be all, or names such as n,auc; found {text!r}"
        raise ValueError(msg)
    return names


def read_row_count(text: str) -> int | Literal["all"]:
    """Read the number of rows that are printed, or all."""
    number = int(text) if text.isdecimal() and len(text) < 10 else 0  # noqa: PLR2004
    if text != "all" and not number:
        msg = f"must be all, or a whole number above 0; found {text!r}"
        raise ValueError(msg)
    return number or "all"


def read_reference(texts: Sequence[str]) -> str | dict[str, str]:
    """Read what segments are compared with: one kind, or segments by their attributes."""
    kinds = [text for text in texts if "=" not in text]
    if kinds and len(texts) > 1:
        rule = "be one of the kinds, or only segments such as sex=m"
        msg = f"--reference must {rule}; found {_join(texts)}"
        raise ValueError(msg)
    if kinds:
        return kinds[0]
    named = [text.partition("=")[::2] for text in texts]
    if len(dict(named)) < len(named):
        msg = f"--reference must name one segment per attribute; found {_join(texts)}"
        raise ValueError(msg)
    return dict(named)


def _join(texts: Sequence[str]) -> str:
    return " and ".join(texts)


def read_numbers(texts: Sequence[str], example: str) -> dict[str, float]:
    """Read numbers with or without a name, such as tpr=0.02 or 0.02, which has an empty name."""
    found = dict[str, float]()
    for text in texts:
        name, _, number = text.rpartition("=")
        if name in found:
            msg = f"must be given once for {name or 'all'}; found {text!r} after another"
            raise ValueError(msg)
        try:
            found[name] = float(number)
        except ValueError:
            msg = f"must be a number, or look like {example}; found {text!r}"
            raise ValueError(msg) from None
    return found


def read_group_words(texts: Sequence[str]) -> list[tuple[str, str]]:
    """Read what the groups of attributes are called, such as ``region=applicants in {}``."""
    found = []
    for text in texts:
        name, _, pattern = text.partition("=")
        if not name or pattern.count("{}") != 1:
            msg = f"must look like 'region=applicants in {{}}'; found {text!r}"
            raise ValueError(msg)
        found.append((name, pattern))
    return found


def read_group(flag: str, text: str, schema: pl.Schema) -> str | pl.Expr:
    """Read a name, or a name and where its ranges begin or how long they are: day:1mo."""
    name, colon, cuts = text.rpartition(":")
    check_one_column(flag, text, schema)
    if text in schema or not colon or name not in schema:
        return text
    dtype, column = schema[name], pl.col(name)
    dated = dtype in (pl.Date, pl.Datetime)
    if not (dated or dtype.is_numeric()):
        kinds = "numbers, dates or times"
        msg = f"{flag} {text} must name {kinds}; found column {name!r} of {dtype}"
        raise ValueError(msg)
    try:
        if dated:
            return name_periods(period_of(Typed(flag, column, dtype, name), cuts), cuts)
        return ranges(name, [float(part) for part in cuts.split(",")])
    except ValueError:
        such = "1mo, a length of time" if dated else "18,30,50 with increasing numbers"
        msg = f"{flag} must look like {name}:{such}; found {text!r}"
        raise ValueError(msg) from None


# Names of periods of these lengths; longer ones are named by their first day.
_PERIODS = {"1mo": "%Y-%m", "1y": "%Y", "h": "%Y-%m-%d %H:%M", "m": "%Y-%m-%d %H:%M"}
_OF_DAYS = ("d", "w", "mo", "q", "y")


def name_periods(start: pl.Expr, every: str) -> pl.Expr:
    """Name periods: 2026-01, 2026-Q1, 2026, or their first day or minute."""
    unit = every.lstrip("0123456789")
    if every == "1q":
        return pl.format("{}-Q{}", start.dt.year(), start.dt.quarter())
    if form := _PERIODS.get(every, _PERIODS.get(unit)):
        return start.dt.to_string(form)
    return start.dt.date() if unit in _OF_DAYS else start


def check_one_column(flag: str, text: str, schema: pl.Schema) -> None:
    """Refuse several columns in one text, which each have the option for themselves."""
    parts = text.split(",")
    if text not in schema and len(parts) > 1 and all(part in schema for part in parts):
        repeated = " ".join(f"{flag} {part}" for part in parts)
        msg = f"{flag} must name one column; found {text!r}: repeat it, as in {repeated}"
        raise ValueError(msg)


def read_selected(text: str, schema: pl.Schema) -> str | pl.Expr:
    """Read a column of decisions, or a column and the value of the selected: decision=hired."""
    name, _, value = text.partition("=")
    dtype = schema.get(text, pl.Boolean())
    if not (dtype in (pl.Boolean, pl.Null) or dtype.is_numeric()):
        msg = (
            "--selected must name a column of true and false or 0 and 1, or a column and the value "
            f"of those who are selected, such as {text}=yes; found column {text!r} of type {dtype}"
        )
        raise ValueError(msg)
    if text in schema or not value:
        return text
    if name not in schema:
        return name
    read = columns.from_text(value, schema[name])
    held = None if read is None else columns.exact(read, schema[name])
    if held is None:
        msg = (
            f"--selected must look like {name}=yes, with a value of the column; found {value!r} "
            f"for type {schema[name]}"
        )
        raise ValueError(msg)
    return (cs.by_name(name).as_expr() == columns.literal(held)).alias(text)


def read_pos_label(text: str | None, label: str, frame: pl.LazyFrame) -> object:
    """Read the positive value of the label in its type."""
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


def parse_unknown(texts: Sequence[str], types: Sequence[pl.DataType]) -> str | list[object]:
    """Read which categories are unknown: one kind, or values of the attributes of these types."""
    kinds = [text for text in texts if text in ("exclude", "keep")]
    if kinds and len(texts) > 1:
        msg = f"--unknown must be exclude, keep, or values only; found {_join(texts)}"
        raise ValueError(msg)
    if kinds or not texts:
        return kinds[0] if kinds else "exclude"
    listed = list[object]()
    for text in texts:
        values = [columns.from_text(text, dtype) for dtype in types]
        listed += [value for value in values if value is not None] or [text]
    return listed
