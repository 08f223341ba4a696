"""The context of the numbers: what was audited, possible causes of gaps, and other groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from polars_wroc.audits.amounts import find_digits, write_limits, write_percent
from polars_wroc.audits.answer import find_named_rows
from polars_wroc.audits.say import SELECTION_RATE, ComparedRow
from polars_wroc.audits.tables import ALL_KEYS, AuditSettings
from polars_wroc.audits.toned_audit import TonedAudit, find_segment_keys
from polars_wroc.audits.words import ABOVE, Words, write_threshold
from polars_wroc.documents.numbers import DASH, write_points
from polars_wroc.documents.phrases import capitalise, many, write_list
from polars_wroc.groups.categories import CROSSED
from polars_wroc.groups.worst_segments import SEARCHED
from polars_wroc.inputs.columns import MODEL, OVERALL
from polars_wroc.metrics.calibration import CALIBRATION_ERROR
from polars_wroc.names import quote, show_name
from polars_wroc.thresholds.registry import RateMetric

_QUALITY = {"selected": "good", "rejected": "bad", "neither": "neither good nor bad"}
_NO_PROOF = (
    "That alone does not prove discrimination: a score that omits relevant features does the same."
)
_DIFFERENT_MEANINGS = "the same score means different things in different groups"
# The most groups whose gaps are explained, pairs of scores, and subgroups that are named.
_EXPLAINED, _PAIRS, _SUBGROUPS = 3, 3, 4


def write_title(settings: AuditSettings) -> str:
    """Return the title of the audit."""
    if settings.text.title:
        return settings.text.title
    names = write_list([quote(name) for name in settings.audited_columns])
    attributes = write_list([show_name(name) for name in settings.attributes])
    return (
        f"Fairness audit of {names} by {attributes}" if names else f"Fairness audit by {attributes}"
    )


def write_deck(toned: TonedAudit) -> str:
    """Return the summary of the audited rows, their outcomes and the decisions."""
    overall = toned.audit.segments.filter(attribute=OVERALL).row(0, named=True)
    text = f"{overall['n']:,} {toned.words.rows}"
    share = _share_positive(overall)
    if share is not None:
        weighted = ", by weight" if toned.audit.settings.weight is not None else ""
        outcome = f"{toned.words.positive} (the outcome{weighted})"
        text += f", {write_percent(share)} of them {outcome}"
    return f"{text}. {write_decisions(toned)}".strip()


def write_decisions(toned: TonedAudit) -> str:
    """Return who is selected, how many, and whether that is good; empty without decisions."""
    settings, words = toned.audit.settings, toned.words
    if settings.favorable is None:
        return ""
    overall = toned.table.filter(attribute=OVERALL, metric=SELECTION_RATE)
    rates = [write_percent(rate) for rate in overall["value"]]
    good = f"which is {_QUALITY[settings.favorable]} for them"
    if settings.selected is not None:
        recorded = f"as recorded in {quote(settings.selected)}"
        return f"{rates[0]} are {words.selected} ({recorded}), {good}."
    cuts = toned.audit.segments.filter(attribute=OVERALL)["threshold"].to_list()
    texts = [write_threshold(cut) for cut in cuts]
    if texts == [ABOVE]:
        return f"Nobody is {words.selected}, because the threshold is above every score."
    if texts == [DASH]:
        return f"Nobody is {words.selected}, because all rows are of one class."
    shares = write_list(rates)
    if words.several:
        shares += f" by {write_list([quote(name) for name in settings.score])}"
    cut = texts[0] if len(set(texts)) == 1 else write_list(texts)
    return f"A score of {cut} or more means {words.selected} ({shares}), {good}."


def _share_positive(row: Mapping[str, Any] | None) -> float | None:
    """Return the share of positives, by weight, in a row of the table of segments."""
    if row is None or row["w_pos"] is None or row["w_neg"] is None:
        return None
    total = row["w_pos"] + row["w_neg"]
    return float(row["w_pos"] / total) if total > 0 else None


# Why these gaps?


def explain_gaps(toned: TonedAudit) -> list[str]:
    """Return possible explanations of the gaps in decisions on groups that the answer names."""
    if not toned.audit.settings.labeled:
        return []
    rows = find_named_rows(toned)
    if not rows or rows[0]["metric"] != SELECTION_RATE:
        return []
    rates = [row for row in rows if row["metric"] == SELECTION_RATE]
    # An explanation for a group also holds for its parts.
    whole = [row for row in rates if CROSSED not in row["attribute"]]
    explained = (whole or rates)[:_EXPLAINED]
    outcomes = [
        text
        for row in explained
        for text in compare_outcomes(toned, row, is_first=row is explained[0])
    ]
    return [*outcomes, *_compare_at_equal_scores(toned, explained)]


def compare_outcomes(toned: TonedAudit, row: ComparedRow, *, is_first: bool = True) -> list[str]:
    """Return the comparison of outcomes and mean scores of a group and its reference."""
    own = _share_positive(_find_row(toned.audit.segments, *find_segment_keys(row)))
    other = _share_of_reference(toned, row)
    if own is None or other is None:
        return []
    words, digits = toned.words, find_digits(own, other)
    who, share = words.group(row["attribute"], row["segment"]), write_percent(own, digits)
    text = f"In the data, {share} of {who} are" if is_first else f"Among {who}, {share} are"
    others = f"{write_percent(other, digits)} of {words.name_reference(row)}"
    text += f" {words.positive}, against {others}"
    error = _find_row(toned.table.filter(metric=CALIBRATION_ERROR), *find_segment_keys(row))
    if error is not None and None not in (error["value"], error["reference_value"]):
        means = own + error["value"], other + error["reference_value"]
        scores = [write_percent(mean, digits) for mean in means]
        text += f"; their average score is {scores[0]}, against {scores[1]}"
    return [f"{text}."]


def _find_row(table: pl.DataFrame, *keys: str | None) -> ComparedRow | None:
    """Return the row of a group by a score, if there is one."""
    same = [
        pl.col(name).eq_missing(pl.lit(key, pl.String))
        for name, key in zip(ALL_KEYS, keys, strict=True)
    ]
    return next(table.filter(*same).iter_rows(named=True), None)


def _share_of_reference(toned: TonedAudit, row: ComparedRow) -> float | None:
    """Return the share of positives in the reference of a group."""
    segments, words = toned.audit.segments, toned.words
    attribute, _, model = find_segment_keys(row)
    if attribute in words.named:
        return _share_positive(_find_row(segments, attribute, words.named[attribute], model))
    everyone = _find_row(segments, OVERALL, OVERALL, model)
    own = _find_row(segments, *find_segment_keys(row))
    if words.kind == "overall" or everyone is None or own is None:
        return _share_positive(everyone)
    return _share_positive({name: everyone[name] - own[name] for name in ("w_pos", "w_neg")})


def _compare_at_equal_scores(toned: TonedAudit, rows: Sequence[ComparedRow]) -> list[str]:
    """Return the comparison of outcomes at equal scores, and its meaning."""
    table, words = toned.audit.further().equal_scores, toned.words
    if table.is_empty():
        return []
    different, others = [], []
    for row in rows:
        found = _find_row(table, *find_segment_keys(row))
        if found is None or found["p_adjusted"] is None:
            continue
        who = words.group(row["attribute"], row["segment"])
        if found["p_adjusted"] > 1 - words.confidence:
            others.append(who)
        else:
            different.append(_say_at_equal_scores(found, who, words))
    sentences = []
    if different:
        sentences.append(f"At the same score, {'; '.join(different)}: {_DIFFERENT_MEANINGS}.")
        sentences.append(_NO_PROOF)
    if others:
        compared = f"outcomes of {write_list(others)} are not shown to differ from those of others"
        sentences.append(f"At the same score, {compared}.")
    return sentences


def _say_at_equal_scores(found: ComparedRow, who: str, words: Words) -> str:
    """Return the sentence on outcomes of a group and of others with the same score."""
    gap, low, high = found["mean_gap"], found["mean_gap_low"], found["mean_gap_high"]
    if low is None or high is None or low * high <= 0:
        # The test is about ranges of scores, where gaps may go in both directions.
        return f"outcomes of {who} differ from those of others"
    size = f"{write_points(gap)} {'more' if gap > 0 else 'less'} often than others"
    return f"{who} came out {words.positive} {size}{write_limits(found, 'mean_gap')}"


# Which of several scores ranks better.


def compare_pairs(toned: TonedAudit) -> list[str]:
    """Return sentences on pairs of scores of which one is shown to rank better."""
    rows = toned.audit.further().scores.head(_PAIRS).to_dicts()
    return [_say_pair(row, toned.words) for row in rows]


def _say_pair(row: ComparedRow, words: Words) -> str:
    first, second = quote(row[MODEL]), quote(row["reference"])
    if row["gap"] is None:
        return f"{first} and {second} could not be compared."
    aucs = f"AUC {row['value']:.2f} against {row['reference_value']:.2f}"
    if row["p_adjusted"] is None or row["p_adjusted"] > 1 - words.confidence:
        return f"{first} and {second} are not shown to rank differently: {aucs}."
    better, side = ("better", "higher") if row["gap"] > 0 else ("worse", "lower")
    size = f"{abs(row['gap']):.3f} {side}{write_limits(row, 'gap', 3, 1)}"
    return f"{first} ranks {better} than {second}: {aucs}, {size}."


# Other subgroups.


def name_subgroups(toned: TonedAudit) -> list[str]:
    """Return at most two sentences on the combinations of attributes that do worst."""
    table, settings = toned.audit.further().exploration, toned.audit.settings
    if table.is_empty():
        return []
    examined, depth = table["n_examined"][0], table["most_conditions"][0]
    if not examined:
        return ["No subgroup has enough rows to be compared."]
    found = table.filter(pl.col("depth") > 0)
    new = found.filter(~pl.col("named"), pl.col("explained_by").is_null()).to_dicts()
    if not new:
        most = many(min(depth, len(settings.attributes)), "attribute")
        worse = "be worse off" if settings.decides else "have worse scores"
        beyond = ", beyond the groups above" if found["named"].any() else ""
        return [f"None of {examined:,} subgroups of up to {most} is shown to {worse}{beyond}."]
    sentences = [_say_worst(new[0], examined, toned.words)]
    names = [toned.words.group(row["attribute"], row["segment"]) for row in new[1:]]
    if names:
        sentences.append(f"Also worse off: {write_list(names, _SUBGROUPS)}.")
    return sentences


def _say_worst(row: ComparedRow, examined: int, words: Words) -> str:
    """Return the sentence on the worst subgroup, with the limit that allows for all of them."""
    metric, values = SEARCHED[row["metric"]], (row["value"], row["reference_value"])
    least = min(abs(row["gap_low"]), abs(row["gap_high"]))
    side = "lower" if row["gap"] < 0 else "higher"
    if isinstance(metric, RateMetric):
        digits = find_digits(*values)
        own, other = (write_percent(value, digits) for value in values)
        own, size = f"{own} {words.heading(row['metric'])}", write_points(least, digits)
    else:
        own, other = (f"{value:.3f}" for value in values)
        own, size = f"{metric.label} {own}", f"{least:.3f}"
    who = capitalise(words.group(row["attribute"], row["segment"]))
    return (
        f"{who}: {own}, against {other} of everyone else, at least {size} {side}, allowing for all "
        f"{examined:,} subgroups that were compared."
    )
