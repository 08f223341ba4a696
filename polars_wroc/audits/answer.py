"""The answer of an audit: who is worse off, on what, by how much and how sure that is.

A group is named as worse off only if it receives favorable decisions significantly and materially
less often, overall or among people whose outcome deserves them, and no such gap favors it; or if
the whole interval of its impact ratio is below four fifths. Precision, the other error rate, AUC
and calibration name nobody: two groups with different base rates cannot have equal precision and
equal error rates, so that one of them would always be "worse off". Without decisions, the AUC may
name who is ranked worse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from polars_wroc.arrays import TOLERANCE
from polars_wroc.audits.amounts import write_in_brackets, write_interval, write_margin
from polars_wroc.audits.findings import add_tones
from polars_wroc.audits.say import AUC, SCORES_ARE_OFF, Row, fill, find_sentence, write_sentence
from polars_wroc.audits.tables import ALL_KEYS, AuditTables
from polars_wroc.audits.words import Words, capitalised, many, quote, verb
from polars_wroc.groups.comparisons import (
    CALIBRATION,
    IMPACT_RATIO,
    is_cleared,
    is_finding,
)
from polars_wroc.inputs.columns import MODEL, OVERALL
from polars_wroc.metrics.calibration import CALIBRATION_ERROR, SLOPE
from polars_wroc.stats.families import DIFFERENT, EQUIVALENT, INCONCLUSIVE

SELECTION_RATE = "selection_rate"
# How comparisons are shown that differ and matter.
SHOWN = ("worse", "better", "either")
# Second sentences, of what else differs of the same group.
_SAME = "the same holds among {kind} ({own} against {other})"
_RATIO = "the impact ratio, {ratio}{limits}, is {four_fifths}"
_BY_OTHER = "With {model} it is {own} against {other}, {size} {side}{limits}."
# Other groups that are worse off, in a list.
_OTHER = "{who}, {size} {side}{limits}"
_OTHER_BY_METRIC = "{who}, {heading} {size} {side}{limits}"
_OTHER_RATIO = "{who}, impact ratio {ratio}{limits}"
_NOBODY = "No group is shown to be worse off."
_NOBODY_ELSE = "No other group is shown to be worse off."
# Most other groups that are named.
_NAMED = 3
# Decisions are nearly all the same if so small a share of them differs from the others.
_NEARLY_NOBODY = 0.001
# An AUC of chance.
_CHANCE = 0.5


def write_answer(audit: AuditTables, words: Words) -> list[str]:
    """Write the answer; findings that invalidate the rest come first."""
    same = say_same_decisions(audit, words)
    sentences = [*_say_backwards(audit, words), *same]
    rows = _rank_groups(audit)
    shown = [row for row in rows if row["tone"] in SHOWN]
    if not rows:
        sentences.append("Nothing could be compared: there are too few groups, or rows in them.")
    elif shown:
        sentences += _say_groups(audit, rows, shown, words)
    elif not same or words.several:
        sentences += _say_nothing(rows, words)
    return sentences if shown else [*sentences, *say_all_rows(audit, words)]


def find_mood(audit: AuditTables) -> str:
    """Return the tone of the answer: worse, either, or empty if no difference matters."""
    if any(side.is_worse for side in _find_sides(audit).values()):
        return "worse"
    tones = {row["tone"] for row in _rank_groups(audit, with_all=True)}
    if "worse" in tones and audit.settings.favorable is None:
        return "worse"
    return "either" if tones & {*SHOWN} else ""


def count_comparisons(audit: AuditTables, words: Words) -> str:
    """Count the comparisons of groups by what they show; impact ratios repeat selection rates."""
    judged = (row for row in _rank_groups(audit) if row["verdict"] is not None)
    rows = [row for row in judged if row["metric"] != IMPACT_RATIO]
    margin = write_margin(words.margin)
    said = {
        DIFFERENT: "differ",
        EQUIVALENT: f"show no difference that matters (within {margin})",
        INCONCLUSIVE: "are inconclusive",
    }
    singular = {DIFFERENT: "differs", INCONCLUSIVE: "is inconclusive"}
    singular[EQUIVALENT] = said[EQUIVALENT].replace("show", "shows", 1)
    parts = []
    for verdict, differ in said.items():
        found = [row for row in rows if row["verdict"] == verdict]
        small = sum(verdict == DIFFERENT and not row["matters"] for row in found)
        if found:
            part = f"{len(found):,} {singular[verdict] if len(found) == 1 else differ}"
            parts.append(f"{part} ({small:,} by less than {margin})" if small else part)
    if not parts:
        return ""
    chance = "Chance findings among so many are allowed for."
    if audit.settings.adjust == "none":
        chance = "Chance findings among so many are not allowed for."
    if len(parts) == 1 and len(rows) > 1:
        differ = parts[0].partition(" ")[2]
        every = "Both" if len(rows) == 2 else f"All {len(rows):,}"  # noqa: PLR2004
        return f"{every} comparisons of groups {differ}. {chance}"
    return f"{many(len(rows), 'comparison')} of groups: {', '.join(parts)}. {chance}"


def count_verdicts(findings: pl.DataFrame) -> dict[str, int]:
    """Count the comparisons of groups by their verdicts, impact ratios among them."""
    groups = findings.filter(pl.col("attribute") != OVERALL)
    kinds = {
        DIFFERENT: is_finding(),
        EQUIVALENT: is_cleared(),
        INCONCLUSIVE: pl.col("verdict") == INCONCLUSIVE,
    }
    return {name: groups.filter(holds).height for name, holds in kinds.items()}


def find_leading_row(audit: AuditTables) -> Row | None:
    """Return the comparison that the answer begins with, if something differs."""
    shown = [row for row in _rank_groups(audit) if row["tone"] in SHOWN]
    return _find_first(_choose_named(shown, _find_sides(audit))) if shown else None


def _rank_groups(audit: AuditTables, *, with_all: bool = False) -> Sequence[Row]:
    """Return the findings on groups with their tones, the most serious first."""
    ranked = add_tones(audit.table, audit.settings).filter(pl.col("rank").is_not_null())
    if not with_all:
        ranked = ranked.filter(pl.col("attribute") != OVERALL)
    return ranked.sort("rank").to_dicts()


@dataclass(frozen=True)
class _Side:
    """Whether a group is worse off, and whether gaps in its decisions go in both directions."""

    is_worse: bool
    is_mixed: bool


def _find_sides(audit: AuditTables) -> dict[tuple[str, ...], _Side]:
    """Return, by group and score, whether the group is worse off and whether its gaps are mixed.

    Rows that mirror a reported comparison are included.
    """
    rows = add_tones(audit.table, audit.settings).filter(
        pl.col("tone").is_in(["worse", "better"]), pl.col("metric") != AUC
    )
    is_ratio = pl.col("metric") == IMPACT_RATIO
    tones = rows.group_by(ALL_KEYS, maintain_order=True).agg(
        ratio=is_ratio.any(),
        worse=((pl.col("tone") == "worse") & ~is_ratio).any(),
        better=((pl.col("tone") == "better") & ~is_ratio).any(),
    )
    return {
        tuple(keys): _Side(ratio or (worse and not better), (ratio or worse) and better)
        for *keys, ratio, worse, better in tones.rows()
    }


def _keys(row: Row) -> tuple[str, ...]:
    return tuple(row[key] for key in ALL_KEYS)


def _choose_named(shown: Sequence[Row], sides: Mapping[tuple[str, ...], _Side]) -> list[Row]:
    """Choose what the answer begins with: who is worse off, or else better off, or what differs."""
    for tone in ("worse", "better"):
        rows = [row for row in shown if row["tone"] == tone and _is_on_side(row, sides)]
        if rows:
            return rows
    # Groups whose gaps go in both directions are named last.
    return [row for row in shown if row["tone"] == "either"] or [*shown]


def _is_on_side(row: Row, sides: Mapping[tuple[str, ...], _Side]) -> bool:
    """Whether the row's tone agrees with the overall judgment of its group."""
    side = sides.get(_keys(row))
    if side is None:
        return True
    return side.is_worse if row["tone"] == "worse" else not side.is_mixed


def _find_first(rows: Sequence[Row]) -> Row:
    """Return the first group's selection-rate row, or its first row if there is none."""
    same = [row for row in rows if _keys(row) == _keys(rows[0])]
    return next((row for row in same if row["metric"] == SELECTION_RATE), rows[0])


def _say_groups(
    audit: AuditTables, rows: Sequence[Row], shown: Sequence[Row], words: Words
) -> list[str]:
    """Say who is worse off, or what else differs."""
    sides = _find_sides(audit)
    named = _choose_named(shown, sides)
    first = _find_first(named)
    sentences = [_say_first(first, words)]
    same = [row for row in shown if _keys(row) == _keys(first)]
    if words.several:
        sentences += [fill(_BY_OTHER, row, words) for row in rows if _is_by_other(row, first)][:2]
    elif second := _say_second(same, first, words):
        sentences.append(second)
    is_worse = first["tone"] == "worse" and _is_on_side(first, sides)
    if is_worse:
        sentences += _say_others(named, first, words)
    if not is_worse or words.favorable is None:
        sentences += _say_nobody_worse(words)
    return [*sentences, *_say_both_ways(shown, sides, words)]


def _say_first(row: Row, words: Words) -> str:
    """Write the first sentence, whose limits name their level."""
    pattern = find_sentence(row["metric"])
    if row["metric"] == CALIBRATION_ERROR:
        pattern = SCORES_ARE_OFF
    pattern = pattern.replace("{limits}", "{first_limits}")
    if words.several:
        pattern = pattern.replace("{Who}", "{who}")
        if pattern[0].isalpha():
            pattern = pattern[0].lower() + pattern[1:]
        pattern = f"With the score {{model}}, {pattern}"
    return fill(pattern, row, words)


def _is_by_other(row: Row, first: Row) -> bool:
    """Whether a row is the same comparison by another score."""
    same = [key for key in (*ALL_KEYS, "metric") if key != MODEL]
    if row["metric"] in (IMPACT_RATIO, *CALIBRATION):
        return False
    return row[MODEL] != first[MODEL] and all(row[key] == first[key] for key in same)


def _say_second(same: Sequence[Row], first: Row, words: Words) -> str:
    """Say what else differs: the rate among those with the same outcome, and the impact ratio."""
    by_metric = {row["metric"]: row for row in same if row is not first}
    parts = []
    if first["metric"] == SELECTION_RATE:
        alike = [by_metric[name] for name in ("tpr", "fpr") if name in by_metric]
        rates = [row for row in alike if row["tone"] == first["tone"]]
        parts += [fill(_SAME, row, words) for row in rates[:1]]
    ratio = by_metric.get(IMPACT_RATIO)
    if ratio is not None and ratio["tone"] == "worse":
        parts.append(fill(_RATIO, ratio, words))
    return f"{capitalised(', and '.join(parts))}." if parts else ""


def _say_others(worse: Sequence[Row], first: Row, words: Words) -> list[str]:
    """Say which other groups are worse off: by the same metric, if they are by that."""
    found: dict[tuple[str, str], Row] = {}
    for row in worse:
        if row["tone"] != "worse" or row[MODEL] != first[MODEL]:
            continue
        key = (row["attribute"], row["segment"])
        is_first = key == (first["attribute"], first["segment"])
        # The same metric as that of the first group says more than another one.
        is_preferred = key not in found or found[key]["metric"] != first["metric"] == row["metric"]
        if not is_first and is_preferred:
            found[key] = row
    rows = [*found.values()]
    if not rows:
        is_ranked = first["metric"] == AUC
        return ["No other group is shown to be ranked worse."] if is_ranked else [_NOBODY_ELSE]
    alike = all(row["metric"] == SELECTION_RATE for row in (first, *rows))
    also = "Also ranked worse" if first["metric"] == AUC else "Also worse off"
    if alike:
        also = fill("Also {selected} {often}", first, words)
    if len(rows) > _NAMED:
        largest = max(rows, key=lambda row: abs(row["gap"] or 0))
        most = _write_size(largest, words, named=not alike)
        return [f"{also}: {len(rows)} other groups, most of all {most}."]
    return [f"{also}: {'; '.join(_write_size(row, words, named=not alike) for row in rows)}."]


def _write_size(row: Row, words: Words, *, named: bool) -> str:
    """Say how far another group is off, and by which metric unless that is the same for all."""
    if row["metric"] == IMPACT_RATIO:
        return fill(_OTHER_RATIO, row, words)
    return fill(_OTHER_BY_METRIC if named and row["metric"] != AUC else _OTHER, row, words)


def _say_nobody_worse(words: Words) -> list[str]:
    """Say why nobody is called worse off, although something differs."""
    if words.favorable is None:
        return ["No decisions were audited, as no threshold was given."]
    if words.favorable == "neither":
        neither = f"Being {words.selected} counts as neither good nor bad"
        return [f"{neither}, so no group is called worse off."]
    return [_NOBODY]


def _say_both_ways(
    shown: Sequence[Row], sides: Mapping[tuple[str, ...], _Side], words: Words
) -> list[str]:
    """Report groups with favorable decisions less often overall but more often among the deserving.

    Or vice versa. Of two mirrored groups only one is reported.
    """
    sentences = list[str]()
    deserving = words.among("positive" if words.favorable == "selected" else "negative")
    for row in shown:
        side = sides.get(_keys(row))
        if row["metric"] != SELECTION_RATE or side is None or not side.is_mixed:
            continue
        less, more = "less", "more"
        if row["tone"] == "better":
            less, more = more, less
        text = fill("{Who} {be} {good} {less} often than {others}, but ", row, words, less=less)
        text += f"{more} often among {deserving}"
        if not side.is_worse:
            text += ", so that this group is not called worse off"
        sentences.append(f"{text}.")
    return sentences[:_NAMED]


def _say_nothing(rows: Sequence[Row], words: Words) -> list[str]:
    """Say that nothing is shown to differ, and whether that is for want of data."""
    judged = (row for row in rows if row["verdict"] is not None)
    compared = [row for row in judged if row["metric"] != IMPACT_RATIO]
    small = sum(row["verdict"] == DIFFERENT for row in compared)
    unsure = sum(row["verdict"] == INCONCLUSIVE for row in compared)
    nobody = _NOBODY if words.knows_good else "No group is shown to differ."
    number, margin = many(len(compared), "comparison"), write_margin(words.margin)
    sentences = [nobody]
    if words.favorable is None:
        sentences.append("No decisions were audited, as no threshold was given.")
    if unsure:
        are = f"{unsure} of {number} {verb(unsure, 'is', 'are')}"
        if unsure == len(compared):
            are = f"all {number} are" if unsure > 1 else "the only comparison is"
        sentences.append(f"But {are} inconclusive: with more data, differences may appear.")
    elif compared:
        others = "their reference" if words.named else words.others
        every = f"All {number} show" if len(compared) > 1 else "The only comparison shows"
        sentences.append(
            f"{every} no difference that matters: within {margin} of {others}."
            if not small
            else f"{every} no difference that matters."
        )
    return sentences


def say_all_rows(audit: AuditTables, words: Words) -> list[str]:
    """Say by how much the scores of all rows are off, if they are and it matters."""
    rows = _rank_groups(audit, with_all=True)
    off = [row for row in rows if row["attribute"] == OVERALL and row["tone"] in SHOWN]
    # That a score ranks backwards is said before all else.
    told = [row for row in off if row["metric"] != SLOPE or row["value"] >= 0]
    return [text for row in told if (text := write_sentence(row, words))]


def _say_backwards(audit: AuditTables, words: Words) -> list[str]:
    """Name the scores that rank backwards: with an AUC significantly below that of chance."""
    rows = audit.table.filter(pl.col("value_high") < _CHANCE, attribute=OVERALL, metric=AUC)
    return [
        f"The score{f' {quote(row[MODEL])}' if words.several else ''} ranks backwards: AUC "
        f"{row['value']:.2f}"
        f"{write_in_brackets(write_interval(row['value_low'], row['value_high'], 2, 1))}, where "
        "0.5 is chance."
        for row in rows.iter_rows(named=True)
    ]


def say_same_decisions(audit: AuditTables, words: Words) -> list[str]:
    """Say that a threshold, or the recorded decisions, select nobody or everybody, or nearly so."""
    sentences = []
    share = pl.min_horizontal("value", 1 - pl.col("value"))
    rates = audit.table.filter(share < _NEARLY_NOBODY, attribute=OVERALL, metric=SELECTION_RATE)
    for row in rates.iter_rows(named=True):
        by = f" by {quote(row[MODEL])}" if words.several else ""
        how = "at this threshold" if audit.settings.selected is None else "as recorded"
        if TOLERANCE < row["value"] < 1 - TOLERANCE:
            sentences.append(
                f"{row['value']:.2%} are {words.selected}{by} {how}: nearly all decisions are the "
                "same, so that comparing groups by them tells little."
            )
            continue
        body = "Nobody" if row["value"] <= TOLERANCE else "Everybody"
        sentences.append(
            f"{body} is {words.selected}{by} {how}: all decisions are the same, so that groups "
            "cannot be compared by them."
        )
    return sentences
