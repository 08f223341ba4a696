"""The verdict of an audit in a few sentences: who is worse off, and what else differs.

A segment is named only for good decisions that are rarer, among all or among those whose outcome
deserves them, if the gap is significant and material and no other such gap is in its favor; or for
an impact ratio whose whole interval is below four fifths. Precision, the other error rate, AUC and
calibration name nobody: two groups with other shares of positives cannot have equal precision and
equal error rates, so that one of them would always be "worse off".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from polars_wroc.audits.findings import findings_of, is_material
from polars_wroc.audits.remarks import (
    backwards_remarks,
    decision_remarks,
    nearly_same_remarks,
    unknown_slopes,
)
from polars_wroc.audits.sentences import (
    decimals_of,
    gap_with_limits,
    in_short,
    limits_of,
    margin_in_points,
    share,
)
from polars_wroc.audits.tables import (
    ALL_KEYS,
    AuditSettings,
    AuditTables,
    rows_with,
    segment_in_words,
)
from polars_wroc.audits.words import Words, first_few, listed, verb
from polars_wroc.groups.comparisons import (
    AT_LEAST_FOUR_FIFTHS,
    BELOW_FOUR_FIFTHS,
    CALIBRATION,
    GAP_METRICS,
    IMPACT_RATIO,
    TARGET,
    is_cleared,
    is_finding,
)
from polars_wroc.inputs.columns import MODEL, OVERALL
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.stats.families import DIFFERENT, EQUIVALENT, INCONCLUSIVE

# Most metrics of the segment that is named first, and segments after it that have their numbers.
_METRICS, _FIGURES = 3, 2
_IS_AUC = pl.col("metric") == ROC_AUC.column
_IS_CALIBRATION = pl.col("metric").is_in([*CALIBRATION])


class Verdict(NamedTuple):
    """The sentences, and how many comparisons of segments have which outcome.

    First comes who is worse off on what, or that nobody is shown to be; last the whole score.
    """

    text: str
    counts: dict[str, int]
    first: str
    of_all: Sequence[str]


def counts_of_verdicts(findings: pl.DataFrame) -> dict[str, int]:
    """Count the comparisons with each verdict."""
    kinds = {
        DIFFERENT: is_finding(),
        EQUIVALENT: is_cleared(),
        INCONCLUSIVE: pl.col("verdict") == INCONCLUSIVE,
    }
    return {name: findings.filter(holds).height for name, holds in kinds.items()}


def verdict_of(audit: AuditTables) -> Verdict:
    """Sum up findings; each comparison of two segments counts once."""
    settings, words = audit.settings, Words.of(audit.settings)
    findings = findings_of(audit.table)
    groups = findings.filter(pl.col("attribute") != OVERALL)
    different = groups.filter(is_finding())
    of_all = pl.col("reference") == TARGET, pl.col("attribute") == OVERALL
    whole = findings.filter(*of_all, is_finding())["sentence"].to_list()
    whole += unknown_slopes(audit)

    sentences = _name_segments(audit, different, words)
    others = [*_say_aucs(different, words), *_say_calibration(different, words)]
    counted = [*_count_gaps(groups, settings, words), *_count_ratios(groups)]
    alike_decisions = decision_remarks(audit)
    if groups.is_empty():
        sentences.append("Nothing could be compared.")
    elif alike_decisions and not sentences and not settings.several:
        # That nobody is shown to be worse off would be no news.
        pass
    elif not sentences and not others:
        is_shown = "be worse off" if _knows_good(settings.favorable) else "differ"
        sentences += [f"No segment is shown to {is_shown}.", *counted]
        counted = []
    elif not sentences and _knows_good(settings.favorable):
        sentences.append("No segment is shown to be worse off.")
    alike_decisions += nearly_same_remarks(audit)
    sentences = [*backwards_remarks(audit), *alike_decisions, *sentences, *others]
    decided = [] if settings.decides else ["Decisions were not audited."]
    text = " ".join([*decided, *sentences, *counted, *whole])
    return Verdict(text, counts_of_verdicts(groups), " ".join(sentences), [*decided, *whole])


def _knows_good(favorable: str | None) -> bool:
    return favorable in ("selected", "rejected")


def _name_segments(audit: AuditTables, different: pl.DataFrame, words: Words) -> list[str]:
    """Name the segments that are worse off, or else better off, and those that are both."""
    favorable = audit.settings.favorable
    if not _knows_good(favorable):
        rates = different.filter(~_IS_AUC, ~_IS_CALIBRATION)
        return [] if rates.is_empty() else _named_first("differs", rates, words)
    sides = _find_sides(audit)
    named = different.filter(pl.col("direction") != "either")
    sentences: list[str] = []
    for side in ("worse", "better"):
        segments = sides.filter(side=side).select(ALL_KEYS)
        rows = rows_with(named, segments).filter(direction=side)
        if rows.height:
            sentences += _named_first(f"is {side} off", rows, words)
            sentences += _say_outcomes(audit, rows, words)
            break
    deserving = words.positive if favorable == "selected" else words.negative
    return [*sentences, *_say_both(rows_with(sides, _told_once(named)), deserving, words)]


def _told_once(named: pl.DataFrame) -> pl.DataFrame:
    """Return the segments whose selection rate is told, which of a pair is one."""
    return named.filter(metric="selection_rate").select(ALL_KEYS).unique(maintain_order=True)


def _find_sides(audit: AuditTables) -> pl.DataFrame:
    """Return which segments are worse off, better off, or both, of those that differ.

    The mirror of a comparison of two segments counts, too: fewer good decisions in one are more
    in the other.
    """
    rows = audit.table.filter(
        pl.col("direction") != "either",
        is_material(audit.settings),
        pl.col("attribute") != OVERALL,
        is_finding(),
    )
    is_ratio = pl.col("metric") == IMPACT_RATIO
    is_worse, is_better = (pl.col("direction") == side for side in ("worse", "better"))
    sides = rows.group_by(ALL_KEYS, maintain_order=True).agg(
        ratio=is_ratio.any(),
        worse=pl.col("metric").filter(is_worse, ~is_ratio),
        better=pl.col("metric").filter(is_better, ~is_ratio),
    )
    some_worse, some_better = (pl.col(side).list.len() > 0 for side in ("worse", "better"))
    is_worse = pl.col("ratio") | (some_worse & ~some_better)
    worse, both = pl.when(is_worse).then(pl.lit("worse")), pl.when(some_worse).then(pl.lit("both"))
    return sides.with_columns(side=pl.coalesce(worse, both, pl.lit("better")))


def _say_both(sides: pl.DataFrame, deserving: str, words: Words) -> list[str]:
    """Say of segments that good decisions are rarer among all, and not among those who deserve it.

    Or the other way around.
    """
    sentences = []
    for row in sides.filter(pl.col("better").list.len() > 0).iter_rows(named=True):
        if row["side"] == "better":
            continue
        among_all, among_deserving = "less often", "more often"
        if "selection_rate" in row["better"]:
            among_all, among_deserving = among_deserving, among_all
        sentences.append(
            f"{_name(row, words)} is {words.good} {among_all}, but of those actually {deserving} "
            f"{among_deserving}."
        )
    return sentences


def _say_outcomes(audit: AuditTables, named: pl.DataFrame, words: Words) -> list[str]:
    """Say which share of the segment that is named first is positive, and of its reference."""
    if not audit.settings.labeled:
        return []
    first = rows_with(named, named.select(ALL_KEYS).head(1))
    gaps = first.filter(pl.col("metric") != IMPACT_RATIO)
    (finding,) = (first if gaps.is_empty() else gaps).head(1).to_dicts()
    own, other = _observed_rates(audit, finding)
    if own is None or other is None:
        return []
    attribute = finding["attribute"]
    place, reference = (
        segment_in_words(attribute, finding[name]) for name in ("segment", "reference")
    )
    if gaps.height:
        reference = words.reference(finding)
    return [f"{own:.0%} are actually {words.positive} in {place}, {other:.0%} in {reference}."]


def _observed_rates(
    audit: AuditTables, finding: Mapping[str, Any]
) -> tuple[float | None, float | None]:
    """Return the shares of positives in a segment and in its reference."""
    own = audit.segments.filter(
        pl.col(key).eq_missing(pl.lit(finding[key], pl.String)) for key in ALL_KEYS
    )
    is_model = pl.col(MODEL).eq_missing(pl.lit(finding[MODEL], pl.String))
    whole = audit.segments.filter(is_model, attribute=OVERALL)
    reference, named = finding["reference"], audit.settings.reference.named
    # A segment may have the name of a kind of reference.
    is_segment = finding["attribute"] in named or finding["metric"] == IMPACT_RATIO
    if is_segment:
        other = audit.segments.filter(is_model, attribute=finding["attribute"], segment=reference)
    elif reference == "overall":
        other = whole
    else:
        other = whole.select(pl.col(name) - own[name] for name in ("w_pos", "w_neg"))
    return _share_positive(own), _share_positive(other)


def _share_positive(weights: pl.DataFrame) -> float | None:
    if weights.height != 1:
        return None
    positive, negative = weights.select("w_pos", "w_neg").row(0)
    if positive is None or negative is None or positive + negative <= 0:
        return None
    return float(positive / (positive + negative))


def _say_aucs(different: pl.DataFrame, words: Words) -> list[str]:
    """Say which segments the score ranks less well, or else better."""
    aucs = different.filter(_IS_AUC)
    lower = aucs.filter(pl.col("gap") < 0)
    rows = aucs if lower.is_empty() else lower
    if rows.is_empty():
        return []
    how = "better" if lower.is_empty() else "less well"
    first, *others = rows.to_dicts()
    named = [f"{_name(first, words)} {how}: {_in_numbers(first, words, with_reference=True)}"]
    named += [f"{_name(one, words)}: {_in_numbers(one, words)}" for one in others[:_FIGURES]]
    named += [_name(one, words) for one in others[_FIGURES:]]
    return [f"The score ranks {first_few(named, separator='; ')}."]


def _say_calibration(different: pl.DataFrame, words: Words) -> list[str]:
    """Say which segments have scores that are off otherwise than those of the others."""
    rows = different.filter(_IS_CALIBRATION)
    return [] if rows.is_empty() else _named_first("differs in calibration", rows, words)


def _count_gaps(groups: pl.DataFrame, settings: AuditSettings, words: Words) -> list[str]:
    """Count the comparisons of segments by their verdicts; impact ratios are not among them."""
    gaps = groups.filter(pl.col("metric") != IMPACT_RATIO)
    margin = f"{margin_in_points(words.margin)} points"
    different = gaps.filter(is_finding())
    small = different.filter(~is_material(settings)).height
    harmless = different.filter(is_material(settings), direction="either").height
    notes = [(small, f"by less than {margin}")]
    if _knows_good(settings.favorable):
        notes.append((harmless, "without making anyone better or worse off"))
    noted = ", ".join(f"{count:,} of them {what}" for count, what in notes if count)
    noted = f" ({noted})" if noted else ""
    for count, what in notes:
        if count == different.height:
            noted = f" {what}"
    endings = {
        DIFFERENT: (different.height, "differs", "differ", noted),
        EQUIVALENT: (gaps.filter(is_cleared()).height, "is", "are", f" equivalent within {margin}"),
        INCONCLUSIVE: (gaps.filter(verdict=INCONCLUSIVE).height, "is", "are", " inconclusive"),
    }
    return _count_by_verdict(gaps.height, "comparison of segments", [*endings.values()])


def _count_ratios(groups: pl.DataFrame) -> list[str]:
    """Count the impact ratios by their verdicts."""
    ratios = groups.filter(metric=IMPACT_RATIO)
    verdicts = (BELOW_FOUR_FIFTHS, AT_LEAST_FOUR_FIFTHS, INCONCLUSIVE)
    endings = [(ratios.filter(verdict=one).height, "is", "are", f" {one}") for one in verdicts]
    return _count_by_verdict(ratios.height, "impact ratio", endings)


def _count_by_verdict(
    total: int, thing: str, endings: Sequence[tuple[int, str, str, str]]
) -> list[str]:
    """Write one sentence on the number of things with each verdict; nothing if there are none.

    Each ending has a number, the verb for one, the verb for several, and what follows the verb.
    """
    known = [one for one in endings if one[0]]
    things = thing.replace("comparison", "comparisons").replace("ratio", "ratios")
    if not known:
        return []
    if len(known) == 1:
        _, one, several, what = known[0]
        subjects = {1: f"The only {thing}", 2: f"Both {things}"}
        subject = subjects.get(total, f"All {total:,} {things}")
        return [f"{subject} {verb(total, one, several)}{what}."]
    parts = [f"{count:,} {verb(count, one, several)}{what}" for count, one, several, what in known]
    return [f"{total:,} {things}: {listed(parts)}."]


def _named_first(what: str, findings: pl.DataFrame, words: Words) -> list[str]:
    """Name the segment with the most serious finding, on what, and the other segments."""
    places = findings.select(ALL_KEYS).unique(maintain_order=True)
    first = rows_with(findings, places.head(1))
    shown = first.head(_METRICS).to_dicts()
    first_gap = next((n for n, one in enumerate(shown) if one["metric"] != IMPACT_RATIO), None)
    parts = [_in_numbers(one, words, with_reference=n == first_gap) for n, one in enumerate(shown)]
    sentences = [f"{_name(shown[0], words)} {what}: {'; '.join(parts)}."]
    # The most serious finding of each of the others; crossed segments have commas in their names.
    worst = findings.unique(ALL_KEYS, keep="first", maintain_order=True).to_dicts()[1:]
    others = [f"{_name(one, words)}: {_in_numbers(one, words)}" for one in worst[:_FIGURES]]
    others += [_name(one, words) for one in worst[_FIGURES:]]
    if others:
        forms = ("is", "are") if what.startswith("is") else ("does", "do")
        sentences.append(f"So {verb(len(others), *forms)} {first_few(others, separator='; ')}.")
    return sentences


def _name(finding: Mapping[str, Any], words: Words) -> str:
    model = f" (model {finding[MODEL]})" if words.several else ""
    return f"{segment_in_words(finding['attribute'], finding['segment'])}{model}"


def _in_figures(finding: Mapping[str, Any], words: Words, *, with_reference: bool) -> str:
    """Say in a few words what the segment's number is, and that of the reference."""
    if finding["metric"] == IMPACT_RATIO:
        reference = segment_in_words(finding["attribute"], finding["reference"])
        return f"{words.good} {finding['ratio']:.2f} times as often as {reference}"
    if finding["metric"] in CALIBRATION:
        return in_short(finding, words)
    metric = GAP_METRICS[finding["metric"]]
    value, other = (
        _auc(finding, column, words) if metric is ROC_AUC else share(finding, column, words)
        for column in ("value", "reference_value")
    )
    return metric.brief.format(
        **vars(words),
        value=value,
        other=other,
        of_rest=f" in {words.reference(finding)}" if with_reference else "",
    )


def _in_numbers(finding: Mapping[str, Any], words: Words, *, with_reference: bool = False) -> str:
    """Say both numbers, and the limits of what is between them."""
    both = _in_figures(finding, words, with_reference=with_reference)
    if finding["metric"] == IMPACT_RATIO:
        return f"{both}{limits_of(finding, 'ratio')}, with its whole interval below four fifths"
    low, high = finding["gap_low"], finding["gap_high"]
    if finding["metric"] in CALIBRATION or low is None:
        return both
    if GAP_METRICS[finding["metric"]] is ROC_AUC and low * high > 0:
        nearer, farther = sorted(("gap_low", "gap_high"), key=lambda end: abs(finding[end]))
        least, most = (_auc(finding, end, words).lstrip("-") for end in (nearer, farther))
        return f"{both} ({least} to {most} {'higher' if low > 0 else 'lower'})"
    return f"{both}, {gap_with_limits(finding, words)}"


def _auc(finding: Mapping[str, Any], column: str, words: Words) -> str:
    """Write an AUC, or a difference of two, whose hundredths are the points of other metrics."""
    return f"{finding[column]:.{2 + decimals_of(finding, words.margin)}f}"
