"""The answer of an audit: who is worse off, in which metric, by how much, and how sure it is.

A group is called worse off only if it receives favorable decisions significantly and materially
less often, overall or among people whose outcome deserves them, and no such gap favors it; or if
the whole interval of its impact ratio is below four fifths. Precision, the other error rate, AUC
and calibration name nobody: two groups with different base rates cannot have equal precision and
equal error rates, so one of them would always be "worse off". Without decisions, the AUC may name a
group that is ranked worse.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_wroc.arrays import TOLERANCE
from polars_wroc.audits.amounts import write_limits, write_margin
from polars_wroc.audits.say import (
    AUC,
    SELECTION_RATE,
    ComparedRow,
    fill,
    fill_sentence,
    write_first_sentence,
    write_sentence,
)
from polars_wroc.audits.toned_audit import NOTABLE, TonedAudit, find_segment_keys
from polars_wroc.audits.words import Words
from polars_wroc.documents.phrases import capitalise, many, verb
from polars_wroc.groups.comparisons import CALIBRATION, IMPACT_RATIO, is_cleared, is_finding
from polars_wroc.inputs.columns import MODEL, OVERALL
from polars_wroc.metrics.calibration import SLOPE
from polars_wroc.names import quote
from polars_wroc.stats.designs import LONELY_UNIT
from polars_wroc.stats.families import DIFFERENT, EQUIVALENT, INCONCLUSIVE

# Second sentences, on other differences of the same group.
_SAME = "the same holds among {kind} ({own} against {other})"
_RATIO = "the impact ratio, {ratio}{limits}, is {four_fifths}"
_RATIO_OF_GOOD = "the impact ratio of the shares {good}, {ratio}{limits}, is {four_fifths}"
_BY_OTHER = "With {model} it is {own} against {other}, {size} {side}{limits}."
# Other groups that are worse off, in a list.
_OTHER = "{who}, {size} {side}{limits}"
_OTHER_BY_METRIC = "{who}, {heading} {size} {side}{limits}"
_OTHER_RATIO = "{who}, impact ratio {ratio}{limits}"
# A group whose gaps go in both directions.
_LESS = "{who} {be} {good} less often than {others}, but more often among {deserving}"
_MORE = "{who} {be} {good} more often than {others}, but less often among {deserving}"
_NOBODY = "No group is shown to be worse off."
_TOO_FEW, _ALONE = "too few rows to tell", "a stratum has one sampling unit; see lonely"
_NO_DECISIONS = "No decisions were audited, because no threshold was given."
# The most other groups, scores and groups with gaps in both directions that are named.
_NAMED, _OTHER_SCORES, _MIXED = 3, 2, 3
# Nearly all decisions are the same if at most this share of them differs.
_NEARLY_NOBODY = 0.001
# The AUC of a random score.
_CHANCE = 0.5


def write_answer(toned: TonedAudit) -> list[str]:
    """Return the sentences of the answer; findings that invalidate the rest come first."""
    same = _say_same_decisions(toned)
    first = [*_say_backwards(toned), *same]
    if toned.notable:
        return [*first, *_say_groups(toned)]
    if not toned.groups:
        first.append("Nothing could be compared: there are too few groups, or rows in them.")
    elif not same or toned.words.several:
        first += _say_nothing(toned)
    return [*first, *say_all_rows(toned)]


def find_mood(toned: TonedAudit) -> str:
    """Return the tone of the answer: worse, either, or empty if it reports no difference."""
    if _list_worse_off(toned):
        return "worse"
    return "either" if toned.notable or _say_backwards(toned) or say_all_rows(toned) else ""


def count_comparisons(toned: TonedAudit) -> str:
    """Return the tally of the comparisons of groups; impact ratios repeat selection rates."""
    rows, margin = _list_compared(toned), write_margin(toned.words.margin)
    why = _ALONE if _find_lonely(rows) else _TOO_FEW
    no_difference = f"no difference that matters (within {margin})"
    kinds = {
        DIFFERENT: ("differs", "differ"),
        EQUIVALENT: (f"shows {no_difference}", f"show {no_difference}"),
        INCONCLUSIVE: (f"is inconclusive ({why})", f"are inconclusive ({why})"),
    }
    parts = []
    for verdict, (differs, differ) in kinds.items():
        found = [row for row in rows if row["verdict"] == verdict]
        small = sum(verdict == DIFFERENT and not row["matters"] for row in found)
        if found:
            part = f"{len(found):,} {verb(len(found), differs, differ)}"
            parts.append(f"{part} ({small:,} by less than {margin})" if small else part)
    if not parts:
        return ""
    are = "are not" if toned.audit.settings.adjust == "none" else "are"
    counted = f"{many(len(rows), 'comparison')} of groups: {', '.join(parts)}"
    if len(parts) == 1 and len(rows) > 1:
        every = "Both" if len(rows) == 2 else f"All {len(rows):,}"  # noqa: PLR2004
        counted = f"{every} comparisons of groups {parts[0].partition(' ')[2]}"
    return f"{counted}. Tests {are} adjusted for the number of comparisons."


def count_verdicts(findings: pl.DataFrame) -> dict[str, int]:
    """Return the numbers of comparisons of groups by verdict, including impact ratios."""
    groups = findings.filter(pl.col("attribute") != OVERALL)
    kinds = {
        DIFFERENT: is_finding(),
        EQUIVALENT: is_cleared(),
        INCONCLUSIVE: pl.col("verdict") == INCONCLUSIVE,
    }
    return {name: groups.filter(holds).height for name, holds in kinds.items()}


def find_named_rows(toned: TonedAudit) -> list[ComparedRow]:
    """Return a row for each group that the answer names, in the order of the answer.

    Groups that are worse off are named together, with the same metric if possible.
    """
    worse = _list_worse_off(toned)
    if not worse:
        return [_find_first(_list_others(toned))] if toned.notable else []
    leading = _find_first(worse)
    found = {find_segment_keys(leading): leading}
    for row in worse:
        # The metric of the first group says more than another metric.
        is_preferred = find_segment_keys(row) not in found or row["metric"] == leading["metric"]
        if row[MODEL] == leading[MODEL] and is_preferred:
            found[find_segment_keys(row)] = row
    return [*found.values()]


def _list_compared(toned: TonedAudit) -> list[ComparedRow]:
    """Return the findings on groups that are counted."""
    return [row for row in toned.groups if row["metric"] != IMPACT_RATIO]


def _find_lonely(rows: Sequence[ComparedRow]) -> bool:
    """Return whether a stratum with a single sampling unit makes comparisons inconclusive."""
    return any(row["reason"] == LONELY_UNIT for row in rows)


def _list_worse_off(toned: TonedAudit) -> list[ComparedRow]:
    """Return the notable findings on groups that are worse off."""
    return [row for row in toned.notable if row["tone"] == "worse" and toned.is_worse_off(row)]


def _list_others(toned: TonedAudit) -> Sequence[ComparedRow]:
    """Return the notable findings on better-off groups, else on differing ones, else all."""
    better = [row for row in toned.notable if row["tone"] == "better" and not toned.is_mixed(row)]
    return better or [row for row in toned.notable if row["tone"] == "either"] or toned.notable


def _find_first(rows: Sequence[ComparedRow]) -> ComparedRow:
    """Return the first group's selection-rate row, or its first row if there is none."""
    same = [row for row in rows if find_segment_keys(row) == find_segment_keys(rows[0])]
    return next((row for row in same if row["metric"] == SELECTION_RATE), rows[0])


def _say_groups(toned: TonedAudit) -> list[str]:
    """Return the sentences on who is worse off, or on other differences."""
    words = toned.words
    first, *others = find_named_rows(toned)
    sentences = [write_first_sentence(first, words)]
    if words.names_score(first["metric"]):
        by_other = [row for row in toned.groups if _is_by_other(row, first)]
        sentences += [fill(_BY_OTHER, row, words) for row in by_other[:_OTHER_SCORES]]
    else:
        sentences += _say_second(toned, first)
    is_worse = bool(_list_worse_off(toned))
    if is_worse:
        sentences.append(_say_others(words, first, others))
    if not is_worse or words.favorable is None:
        sentences.append(_say_nobody_worse(words))
    return [*sentences, *_say_both_ways(toned)]


def _is_by_other(row: ComparedRow, first: ComparedRow) -> bool:
    """Return whether a row is the same comparison by another score."""
    same = all(row[key] == first[key] for key in ("attribute", "segment", "metric"))
    return same and row[MODEL] != first[MODEL] and row["metric"] not in (IMPACT_RATIO, *CALIBRATION)


def _say_second(toned: TonedAudit, first: ComparedRow) -> list[str]:
    """Return the sentence on the rate among people with the same outcome, and the impact ratio."""
    by_metric = {
        row["metric"]: row
        for row in toned.notable
        if find_segment_keys(row) == find_segment_keys(first)
    }
    parts = []
    if first["metric"] == SELECTION_RATE:
        alike = [by_metric[name] for name in ("tpr", "fpr") if name in by_metric]
        rates = [row for row in alike if row["tone"] == first["tone"]]
        parts += [fill(_SAME, row, toned.words) for row in rates[:1]]
    ratio = by_metric.get(IMPACT_RATIO)
    if ratio is not None and ratio is not first:
        is_same = toned.words.good == toned.words.selected
        parts.append(fill(_RATIO if is_same else _RATIO_OF_GOOD, ratio, toned.words))
    return [f"{capitalise(', and '.join(parts))}."] if parts else []


def _say_others(words: Words, first: ComparedRow, others: Sequence[ComparedRow]) -> str:
    """Return the sentence on other groups that are worse off; the tally says what is unknown."""
    is_ranked = first["metric"] == AUC
    if not others:
        return f"No other group is shown to be {'ranked worse' if is_ranked else 'worse off'}."
    also, pattern = "Also worse off", _OTHER_BY_METRIC
    if is_ranked:
        also, pattern = "Also ranked worse", _OTHER
    elif all(row["metric"] == SELECTION_RATE for row in (first, *others)):
        also, pattern = fill("Also {selected} {often}", first, words), _OTHER
    sizes = [
        fill(_OTHER_RATIO if row["metric"] == IMPACT_RATIO else pattern, row, words)
        for row in others
    ]
    if len(others) > _NAMED:
        gaps = [abs(row["gap"] or 0) for row in others]
        most = sizes[gaps.index(max(gaps))]
        return f"{also}: {len(others)} other groups; the largest gap is that of {most}."
    return f"{also}: {'; '.join(sizes)}."


def _say_nobody_worse(words: Words) -> str:
    """Return why nobody is called worse off, although something differs."""
    if words.favorable is None:
        return _NO_DECISIONS
    if words.favorable == "neither":
        neither = f"Being {words.selected} counts as neither good nor bad"
        return f"{neither}, so no group is called worse off."
    return _NOBODY


def _say_both_ways(toned: TonedAudit) -> list[str]:
    """Return the sentences on groups whose gaps go in both directions.

    They get favorable decisions less often overall, but more often among the deserving, or vice
    versa. Of two mirrored groups, only one is reported.
    """
    sentences = []
    for row in toned.notable:
        if row["metric"] == SELECTION_RATE and toned.is_mixed(row):
            text = fill_sentence(_MORE if row["tone"] == "better" else _LESS, row, toned.words)
            if not toned.is_worse_off(row):
                text += ", so that this group is not called worse off"
            sentences.append(f"{text}.")
    return sentences[:_MIXED]


def _say_nothing(toned: TonedAudit) -> list[str]:
    """Return the sentences if no difference is shown, possibly for lack of data."""
    words, compared = toned.words, _list_compared(toned)
    verdicts = [row["verdict"] for row in compared]
    unsure = verdicts.count(INCONCLUSIVE)
    number = many(len(compared), "comparison")
    sentences = [_NOBODY if words.knows_good else "No group is shown to differ."]
    if words.favorable is None:
        sentences.append(_NO_DECISIONS)
    if unsure:
        are = f"{unsure} of {number} {verb(unsure, 'is', 'are')}"
        if unsure == len(compared):
            are = f"all {number} are" if unsure > 1 else "the only comparison is"
        why = "with more data, differences may appear"
        if _find_lonely(compared):
            why = (
                f"{LONELY_UNIT}, so its variance is unknown. Set `lonely` (--lonely) to "
                "certainty or adjust, or merge the stratum with another one"
            )
        sentences.append(f"But {are} inconclusive: {why}.")
    elif compared:
        others = "their reference" if words.named else words.others
        every = f"All {number} show" if len(compared) > 1 else "The only comparison shows"
        within = f": within {write_margin(words.margin)} of {others}"
        sure = "" if DIFFERENT in verdicts else within
        sentences.append(f"{every} no difference that matters{sure}.")
    return sentences


def say_all_rows(toned: TonedAudit) -> list[str]:
    """Return the sentence on the calibration of all rows, if it is materially off."""
    rows = [row for row in toned.findings if row["attribute"] == OVERALL]
    backwards = {row[MODEL] for row in _list_backwards(toned)}
    sentences = [
        write_sentence(row, toned.words)
        for row in rows
        # A score that ranks backwards is reported before anything else.
        if row["tone"] in NOTABLE and not (row["metric"] == SLOPE and row[MODEL] in backwards)
    ]
    return [text for text in sentences if text]


def _list_backwards(toned: TonedAudit) -> Sequence[ComparedRow]:
    """Return the AUCs of all rows that are significantly below 0.5."""
    is_backwards = pl.col("value_high") < _CHANCE
    return toned.table.filter(is_backwards, attribute=OVERALL, metric=AUC).to_dicts()


def _say_backwards(toned: TonedAudit) -> list[str]:
    """Return the sentence that names scores that rank backwards."""
    sentences = []
    for row in _list_backwards(toned):
        score = f"score {quote(row[MODEL])}" if toned.words.several else "score"
        auc = f"{row['value']:.2f}{write_limits(row, 'value', 2, 1)}"
        sentences.append(f"The {score} ranks backwards: AUC {auc}, where 0.5 is chance.")
    return sentences


def _say_same_decisions(toned: TonedAudit) -> list[str]:
    """Return the sentence on decisions that select nobody or everybody, or nearly so."""
    sentences = []
    words = toned.words
    how = "at this threshold" if toned.audit.settings.selected is None else "as recorded"
    share = pl.min_horizontal("value", 1 - pl.col("value"))
    rates = toned.table.filter(share < _NEARLY_NOBODY, attribute=OVERALL, metric=SELECTION_RATE)
    names_score = words.names_score(SELECTION_RATE)
    for model, rate in (rates if names_score else rates.head(1)).select(MODEL, "value").rows():
        selected = f"{words.selected} by {quote(model)}" if names_score else words.selected
        if TOLERANCE < rate < 1 - TOLERANCE:
            sentences.append(
                f"{rate:.2%} are {selected} {how}: nearly all decisions are the same, so that "
                "comparing groups by them tells little."
            )
        else:
            body = "Nobody" if rate <= TOLERANCE else "Everybody"
            sentences.append(
                f"{body} is {selected} {how}: all decisions are the same, so that groups cannot "
                "be compared by them."
            )
    return sentences
