"""The rules that every row of a table of counts must follow.

Sums of powers of n positive weights bound each other: ``w**2 / n <= w2 <= w**2`` and
``w2**2 / w <= w3 <= w2**1.5`` (Cauchy-Schwarz, and powers of a sum). This holds for sums in any
order and merged from any parts, up to rounding, which grows with the number of terms.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from string import Formatter
from typing import NamedTuple

import polars as pl

from polars_wroc.counts.score_sums import COUNTS, HIGH, LOW, is_number_of_bins, parts_of, score_bin
from polars_wroc.inputs.rows import CLASSES
from polars_wroc.queries import require_at_collect

BINS = "bins"
# Whether rows have a label; rows without one are all counted as negative. Counts with labels that
# were made from rows do not have this column.
LABELLED = "labelled"
# A float64 rounds larger numbers of rows, and an Int64 holds the sum of a thousand such numbers.
_MOST_ROWS = 2**53
# The rounding error of a sum of so many squares that are too small to keep all their digits.
_TINY = _MOST_ROWS * (sys.float_info.min * sys.float_info.epsilon)
_ROW, _BROKEN, _TIMES = "__row", "__broken", "__times"


class CountRule(NamedTuple):
    """A condition, its text in a message, and the columns that the message shows."""

    holds: pl.Expr
    text: str
    found: str


def check_counts(
    argument: str, frame: pl.LazyFrame, keys: Mapping[str, str], *, once: bool
) -> pl.LazyFrame:
    """Cast counts to their working types, and raise at collect for a row that breaks a rule.

    The check is a filter, since a column that a result does not need would be dropped together with
    its check. ``once`` requires that each group has each score once, which is not so in stacked
    tables. ``keys`` has the names of the groups for messages.
    """
    schema = frame.collect_schema()
    rules = _list_rules(argument, binned=BINS in schema, once=once, marked=LABELLED in schema)
    names = [BINS] if BINS in schema else []
    same = [*keys, *names, bin_number(binned=BINS in schema)]
    broken = pl.coalesce(
        pl.when(~rule.holds.fill_null(value=False)).then(pl.lit(number, pl.UInt8))
        for number, rule in enumerate(rules)
    )
    numbered = frame.with_row_index(_ROW)
    if once:
        numbered = numbered.with_columns(pl.len().over(same).alias(_TIMES))
    # Only the first such row, so that the message does not depend on how the rows are divided.
    first = broken.is_not_null().cum_sum() == 1
    marked = numbered.with_columns(pl.when(first).then(broken).alias(_BROKEN))
    message = _message(rules, {key: keys[key] for key in keys if _is_shown(schema[key])})
    kept = marked.filter(require_at_collect(pl.col(_BROKEN).is_null(), message))
    types = {name: _whole(name) for name in (*COUNTS, *names)}
    types |= {name: _float(name) for side in CLASSES for name in _sums(side)}
    return kept.select(types.get(name, pl.col(name)) for name in schema)


def _list_rules(argument: str, *, binned: bool, once: bool, marked: bool) -> list[CountRule]:
    """Return the rules, the simplest first: a message names the first one that is broken."""
    rows = pl.sum_horizontal(_whole(name).cast(pl.Float64) for name in COUNTS)
    in_all = CountRule(
        rows.cum_sum() <= _MOST_ROWS,
        f"count {_MOST_ROWS} rows or fewer in all",
        "more, with n_pos {n_pos}, n_neg {n_neg} and n_missing {n_missing}",
    )
    rules = [*_list_type_rules(), in_all, *_list_score_rules(binned=binned)]
    rules += [rule for side in CLASSES for rule in _list_class_rules(side)]
    if marked:
        rules += _list_label_rules()
    if once:
        text = "hold each score or bin of a group once, as from `merge_counts`"
        rules.append(CountRule(pl.col(_TIMES) == 1, text, f"it {{{_TIMES}}} times"))
    return [rule._replace(text=f"`{argument}` must {rule.text}; found ") for rule in rules]


def _list_type_rules() -> list[CountRule]:
    rules = [
        CountRule(
            (_whole(name) >= 0) & (_whole(name) == pl.col(name)),
            f"hold whole numbers, zero or more in column '{name}'",
            f"{{{name}}}",
        )
        for name in COUNTS
    ]
    for side in CLASSES:
        for power, name in enumerate(_sums(side), 1):
            # Sums of powers may overflow where sums of weights do not.
            most = sys.float_info.max if power == 1 else float("inf")
            text = f"hold numbers that are finite and zero or more in column '{name}'"
            rules.append(CountRule(_float(name).is_between(0.0, most), text, f"{{{name}}}"))
    return rules


def _list_label_rules() -> list[CountRule]:
    labelled = pl.col(LABELLED)
    return [
        CountRule(
            labelled == labelled.first(),
            f"hold one value in column '{LABELLED}', true with labels or false without",
            f"{{{LABELLED}}}",
        ),
        CountRule(
            labelled | (_whole("n_pos") == 0),
            f"count no positives where '{LABELLED}' is false",
            "n_pos {n_pos}",
        ),
    ]


def _list_score_rules(*, binned: bool) -> list[CountRule]:
    low, high = pl.col(LOW), pl.col(HIGH)
    n_pos, n_neg, n_missing = (_whole(name) for name in COUNTS)
    known = low.is_not_null() & high.is_not_null()
    # NaN is above all numbers.
    ordered = (low <= high) & (high.cast(pl.Float64) <= float("inf"))
    missing = low.is_null() & high.is_null() & (n_missing > 0)
    rules = [
        CountRule(
            ordered.fill_null(value=False) | missing,
            "hold scores that are numbers, the lowest of a bin first",
            f"{{{LOW}}} to {{{HIGH}}}",
        ),
        CountRule(
            ((n_pos + n_neg > 0) == known) & ((n_missing > 0) == ~known),
            "count positives or negatives at a score, and missing rows at none",
            "n_pos {n_pos}, n_neg {n_neg} and n_missing {n_missing}",
        ),
    ]
    if not binned:
        return rules
    bins = _whole(BINS)
    legal = is_number_of_bins(bins) & (bins == pl.col(BINS))
    same = score_bin(low, parts_of(bins)).eq_missing(score_bin(high, parts_of(bins)))
    return [
        *rules,
        CountRule(
            legal,
            f"hold the number of bins in column '{BINS}', 16 times a power of two",
            f"{{{BINS}}}",
        ),
        # With an invalid number of bins, the bin of a score is unknown.
        CountRule(
            same | ~legal,
            f"hold scores of one bin in columns '{LOW}' and '{HIGH}'",
            f"{{{LOW}}} to {{{HIGH}}} with {{{BINS}}} bins",
        ),
        CountRule(
            (low == high).fill_null(value=True) | (n_pos + n_neg > 1),
            "count a row for each of the scores of a bin",
            f"n_pos {{n_pos}} and n_neg {{n_neg}} from {{{LOW}}} to {{{HIGH}}}",
        ),
    ]


def _list_class_rules(side: str) -> list[CountRule]:
    """Bound the sums of the powers of the weights of one class by each other."""
    count, names = f"n_{side}", _sums(side)
    n = _whole(count).cast(pl.Float64)
    w, w2, w3 = (_float(name) for name in names)
    # The rounding error of sums of n terms and a few products.
    rounding = 1 + (n + 4) * (8 * sys.float_info.epsilon)
    # Products also hold without rows, and where both sides overflow.
    squares = ((w2 + _TINY) * n * rounding >= w * w) & (w2 <= w * w * rounding + _TINY)
    most = w2.sqrt() * w2 * rounding + _TINY
    cubes = ((w3 + _TINY) * w * rounding >= w2 * w2) & (w3 <= most)
    found = ", ".join(f"{name} {{{name}}}" for name in names)
    return [
        CountRule(
            (n > 0) == (w > 0),
            f"hold weights above zero in column '{names[0]}' where '{count}' counts rows, and none "
            "elsewhere",
            f"{count} {{{count}}}, {found}",
        ),
        CountRule(
            squares,
            f"hold sums of squares in column '{names[1]}' that the rows and their weights allow",
            f"{count} {{{count}}}, {found}",
        ),
        CountRule(
            cubes,
            f"hold sums of cubes in column '{names[2]}' that the rows and their weights allow",
            f"{count} {{{count}}}, {found}",
        ),
    ]


def _message(rules: Sequence[CountRule], keys: Mapping[str, str]) -> pl.Expr:
    """Return the rule that a row breaks, its values and the row; null if it breaks none."""
    broken = pl.coalesce(
        pl.when(pl.col(_BROKEN) == number).then(pl.lit(rule.text) + _fill_template(rule.found))
        for number, rule in enumerate(rules)
    )
    place = pl.lit(" in row ") + _text(_ROW) + pl.lit(" (counted from 0)")
    for key, name in keys.items():
        place += pl.lit(f", {_one_line(name)} ") + _text(key)
    return broken + place + pl.lit(", score ") + _text(LOW)


def _fill_template(template: str) -> pl.Expr:
    """Replace the names of columns by their values."""
    parts = [
        part
        for text, name, *_ in Formatter().parse(template)
        for part in ([pl.lit(text)] if text else []) + ([] if name is None else [_text(name)])
    ]
    return pl.concat_str(parts)


def _text(name: str) -> pl.Expr:
    """Return a value as text where a rule is broken, since texts of all rows take long."""
    value = pl.when(pl.col(_BROKEN).is_not_null()).then(pl.col(name))
    return _one_line_of(value.cast(pl.String)).fill_null("null")


def _one_line_of(value: pl.Expr) -> pl.Expr:
    # A quote would end the text inside the engine's message.
    return value.str.replace_all(r'["\p{Cc}]', " ").str.slice(0, 60)


def _one_line(name: str) -> str:
    return str(pl.select(_one_line_of(pl.lit(name))).item())


def _is_shown(dtype: pl.DataType) -> bool:
    return not (dtype.is_nested() or dtype in (pl.Binary, pl.Object))


def bin_number(*, binned: bool) -> pl.Expr:
    """Return the number of the bin of each row; a score without bins is its own number."""
    low = pl.col(LOW)
    return score_bin(low, parts_of(_whole(BINS))) if binned else low


def _sums(side: str) -> tuple[str, str, str]:
    return f"w_{side}", f"w2_{side}", f"w3_{side}"


def _whole(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.Int64, strict=False)


def _float(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.Float64, strict=False)
