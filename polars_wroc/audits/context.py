"""What stands around the numbers: what was audited, why gaps may be, other groups, and checks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from polars_wroc.audits.amounts import (
    find_digits,
    write_in_brackets,
    write_interval,
    write_percent,
)
from polars_wroc.audits.answer import SELECTION_RATE, find_leading_row
from polars_wroc.audits.say import Row
from polars_wroc.audits.tables import ALL_KEYS, AuditSettings, AuditTables
from polars_wroc.audits.words import (
    ABOVE,
    Words,
    listed,
    quote,
    threshold_text,
)
from polars_wroc.documents.numbers import DASH, write_points
from polars_wroc.groups.worst_segments import SEARCHED
from polars_wroc.inputs.columns import MODEL, OVERALL
from polars_wroc.metrics.calibration import CALIBRATION_ERROR
from polars_wroc.names import escape_controls
from polars_wroc.thresholds.registry import RateMetric

_QUALITY = {"selected": "good", "rejected": "bad", "neither": "neither good nor bad"}
_NO_PROOF = (
    "That alone does not prove discrimination: a score that omits relevant features does the same."
)
# Most pairs of scores, and subgroups, that are named.
_PAIRS, _SUBGROUPS = 3, 3


def write_title(settings: AuditSettings) -> str:
    """Name the audit."""
    if settings.text.title:
        return settings.text.title
    names = listed([quote(name) for name in settings.audited])
    attributes = listed([escape_controls(name) for name in settings.attributes])
    return (
        f"Fairness audit of {names} by {attributes}" if names else f"Fairness audit by {attributes}"
    )


def write_deck(audit: AuditTables, words: Words) -> str:
    """Say what was audited: how many rows, their outcomes, and the decisions."""
    first = audit.segments.filter(attribute=OVERALL).row(0, named=True)
    text = f"{first['n']:,} {words.rows}"
    share = _share_positive(audit.segments.filter(attribute=OVERALL).head(1))
    if share is not None:
        weighted = " by weight" if audit.settings.weight is not None else ""
        text += f", {write_percent(share)} of them {words.positive}{weighted}"
    return f"{text}. {write_decisions(audit, words)}".strip()


def write_decisions(audit: AuditTables, words: Words) -> str:
    """Say who is selected, how many are, and for whom that is good; empty without decisions."""
    settings = audit.settings
    if settings.favorable is None:
        return ""
    overall = audit.table.filter(attribute=OVERALL, metric=SELECTION_RATE)
    rates = [write_percent(rate) for rate in overall["value"]]
    good = f"which is {_QUALITY[settings.favorable]} for them"
    if settings.selected is not None:
        return (
            f"{rates[0]} are {words.selected}, as recorded in {quote(settings.selected)}, {good}."
        )
    thresholds = audit.segments.filter(attribute=OVERALL).select(MODEL, "threshold").rows()
    texts = [threshold_text(threshold) for _, threshold in thresholds]
    if len(thresholds) == 1 and texts[0] in (ABOVE, DASH):
        why = "all rows are of one class"
        if texts[0] == ABOVE:
            why = "the threshold is above every score"
        return f"Nobody is {words.selected}, as {why}."
    same = len(set(texts)) == 1
    named = f" by {listed([quote(str(model)) for model, _ in thresholds])}" if words.several else ""
    cuts = texts[0] if same else listed(texts)
    return f"A score of {cuts} or more means {words.selected} ({listed(rates)}{named}), {good}."


def _share_positive(segments: pl.DataFrame) -> float | None:
    """Return the share of positives of one row, by weight."""
    if segments.height != 1:
        return None
    positive, negative = segments.select("w_pos", "w_neg").row(0)
    if positive is None or negative is None or positive + negative <= 0:
        return None
    return float(positive / (positive + negative))


# Why these gaps?


def explain_gaps(audit: AuditTables, words: Words) -> list[str]:
    """Say in at most three sentences what may explain the gap that the answer begins with."""
    row = find_leading_row(audit)
    if row is None or row["metric"] != SELECTION_RATE or not audit.settings.labeled:
        return []
    return [*compare_outcomes(audit, row, words), *_compare_at_equal_scores(audit, row, words)]


def compare_outcomes(audit: AuditTables, row: Row, words: Words) -> list[str]:
    """Compare outcomes and mean scores of a group and of what it is compared with."""
    own = _share_positive(_find_segment(audit.segments, row, row["attribute"], row["segment"]))
    other = _share_of_reference(audit, row, words)
    if own is None or other is None:
        return []
    who, others = words.group(row["attribute"], row["segment"]), words.name_reference(row)
    digits = find_digits(own, other)
    text = (
        f"In the data, {write_percent(own, digits)} of {who} are {words.positive}, against "
        f"{write_percent(other, digits)} of {others}"
    )
    errors = audit.table.filter(metric=CALIBRATION_ERROR)
    error = _find_segment(errors, row, row["attribute"], row["segment"]).to_dicts()
    if error and None not in (error[0]["value"], error[0]["reference_value"]):
        means = own + error[0]["value"], other + error[0]["reference_value"]
        scores = [write_percent(mean, digits) for mean in means]
        text += f"; their average score is {scores[0]}, against {scores[1]}"
    return [f"{text}."]


def _find_segment(
    table: pl.DataFrame, row: Row, attribute: str, segment: str | None
) -> pl.DataFrame:
    """Return the rows of a group by the score of another row."""
    wanted = {"attribute": attribute, "segment": segment, MODEL: row[MODEL]}
    same = (pl.col(name).eq_missing(pl.lit(wanted[name], pl.String)) for name in ALL_KEYS)
    return table.filter(*same)


def _share_of_reference(audit: AuditTables, row: Row, words: Words) -> float | None:
    """Return the share of positives of what a group is compared with."""
    attribute, segment = row["attribute"], row["segment"]
    if attribute in words.named:
        reference = _find_segment(audit.segments, row, attribute, words.named[attribute])
        return _share_positive(reference)
    everyone = _find_segment(audit.segments, row, OVERALL, OVERALL)
    if words.kind == "overall":
        return _share_positive(everyone)
    own = _find_segment(audit.segments, row, attribute, segment)
    if own.height != 1 or everyone.height != 1:
        return None
    weights = everyone.select(pl.col(name) - own[name] for name in ("w_pos", "w_neg"))
    return _share_positive(weights)


def _compare_at_equal_scores(audit: AuditTables, row: Row, words: Words) -> list[str]:
    """Compare outcomes at equal scores, and say what that means."""
    table = audit.further().equal_scores
    if table.is_empty():
        return []
    known = _find_segment(table, row, row["attribute"], row["segment"]).to_dicts()
    if not known or known[0]["p_adjusted"] is None:
        return []
    found = known[0]
    gap, low, high = (found[f"mean_gap{end}"] for end in ("", "_low", "_high"))
    crosses_zero = low is None or high is None or low * high <= 0
    if found["p_adjusted"] > 1 - words.confidence:
        return [
            "At the same score, outcomes are not shown to differ between this group and others."
        ]
    who = words.group(row["attribute"], row["segment"])
    meaning = "the same score means different things in different groups."
    if crosses_zero:
        # The test looks at ranges of scores, where gaps may go in both directions.
        return [
            f"At the same score, outcomes of {who} differ from those of others: {meaning}",
            _NO_PROOF,
        ]
    often, limits = "more" if gap > 0 else "less", write_in_brackets(write_interval(low, high))
    came_out = f"{who} came out {words.positive} {write_points(gap)} {often} often than others"
    return [f"At the same score, {came_out}{limits}: {meaning}", _NO_PROOF]


# Which of several scores ranks better.


def compare_pairs(audit: AuditTables, words: Words) -> list[str]:
    """Say of pairs of scores which one ranks better, if that is shown."""
    table = audit.further().scores
    return [_say_pair(row, words) for row in table.head(_PAIRS).to_dicts()]


def _say_pair(row: dict[str, Any], words: Words) -> str:
    first, second = quote(row[MODEL]), quote(row["reference"])
    if row["gap"] is None:
        return f"{first} and {second} could not be compared."
    aucs = f"AUC {row['value']:.2f} against {row['reference_value']:.2f}"
    if row["p_adjusted"] is None or row["p_adjusted"] > 1 - words.confidence:
        return f"{first} and {second} are not shown to rank differently: {aucs}."
    better, side = ("better", "higher") if row["gap"] > 0 else ("worse", "lower")
    limits = write_in_brackets(write_interval(row["gap_low"], row["gap_high"], 3, 1))
    return f"{first} ranks {better} than {second}: {aucs}, {abs(row['gap']):.3f} {side}{limits}."


# Other subgroups.


def name_subgroups(audit: AuditTables, words: Words) -> list[str]:
    """Say in at most two sentences which combinations of attributes do worst."""
    table = audit.further().exploration
    if table.is_empty():
        return []
    examined, depth = table["n_examined"][0], table["most_conditions"][0]
    most = min(depth, len(audit.settings.attributes))
    if not examined:
        return ["No subgroup has enough rows to be compared."]
    found = table.filter(pl.col("depth") > 0)
    new = found.filter(~pl.col("named"), pl.col("explained_by").is_null()).to_dicts()
    if not new:
        beyond = ", beyond the groups above" if found["named"].any() else ""
        subgroups = f"{examined:,} subgroups of up to {most} attributes"
        worse = "be worse off" if audit.settings.decides else "have worse scores"
        return [f"None of {subgroups} is shown to {worse}{beyond}."]
    return [_say_worst(new[0], examined, words), *_name_more(new[1:], words)]


def _say_worst(row: Row, examined: int, words: Words) -> str:
    metric = SEARCHED[row["metric"]]
    least = min(abs(row["gap_low"]), abs(row["gap_high"]))
    side = "lower" if row["gap"] < 0 else "higher"
    who = words.group(row["attribute"], row["segment"])
    start = f"{who[:1].upper()}{who[1:]}"
    if isinstance(metric, RateMetric):
        digits = find_digits(row["value"], row["reference_value"])
        own, other = (write_percent(row[name], digits) for name in ("value", "reference_value"))
        what, size = words.heading(row["metric"]), write_points(least, digits)
        text = f"{start}: {own} {what}, against {other} of everyone else, at least {size} {side}"
    else:
        own, other = (f"{row[name]:.3f}" for name in ("value", "reference_value"))
        size = f"{least:.3f}"
        text = f"{start}: {metric.label} {own}, against {other} of everyone else, at least {size}"
        text = f"{text} {side}"
    return f"{text}, allowing for all {examined:,} subgroups that were compared."


def _name_more(rows: Sequence[Row], words: Words) -> Iterator[str]:
    if rows:
        names = [words.group(row["attribute"], row["segment"]) for row in rows[:_SUBGROUPS]]
        more = len(rows) - len(names)
        if more:
            names.append(f"{more} more")
        yield f"Also worse off: {listed(names)}."
