"""Sentences about gaps: how many are significant, and which are the largest."""

from __future__ import annotations

from typing import Any, NamedTuple

import polars as pl

from polars_wroc.audits.groupings import name_of, segment_keys
from polars_wroc.audits.phrases import many, quoted
from polars_wroc.audits.settings import AuditSettings
from polars_wroc.charts.labels import NAMES
from polars_wroc.inputs.names import MODEL
from polars_wroc.stats.multiple_tests import is_significant

_REFERENCES = {
    "rest": "the other segments",
    "rest_pooled": "the other segments",
    "overall": "the overall sample",
    "overall_pooled": "the overall sample",
    "best": "the best segment",
}
ADJUSTED = {
    "holm": "p-values adjusted for their number by Holm's method",
    "bh": "p-values adjusted for their number by Benjamini and Hochberg's method",
    "none": "p-values not adjusted for their number",
}
_PARTS = ("gap", "gap_low", "gap_high", "gap_p_value", "gap_p_adjusted")
# Most sentences about gaps: more are not read at a glance.
_SENTENCES = 8

# Smaller p-values are written as "below 0.001".
LEAST_P = 0.001
_ROWS = "__rows"


class Finding(NamedTuple):
    """A sentence about a gap, and whether the gap is significant."""

    text: str
    significant: bool


def verdict(gaps: pl.DataFrame, settings: AuditSettings) -> str:
    """Say how many of the tested gaps are significant."""
    tested = _tested(gaps, settings)
    if tested.is_empty():
        return f"Nothing could be compared: no gap has {_what_a_test_needs(gaps, settings)}."
    reference = settings.reference
    compared_with = "its reference" if reference.named else _REFERENCES[reference.kind]
    several = tested.height > 1
    compared = f"{many(tested.height, 'comparison')} of a segment with {compared_with}"
    how = f"at a level of {1 - settings.level:.2g}, with {ADJUSTED[settings.adjust]}"
    significant = tested["significant"].sum()
    if not significant:
        none = f"None of {compared} is" if several else f"The one {compared[2:]} is not"
        return (
            f"{none} significant {how}. That does not show that there is no gap: each confidence "
            "interval shows how large a gap may be."
        )
    are = "is" if significant == 1 else "are"
    return f"{significant:,} of {compared} {are} significant {how}."


def _what_a_test_needs(gaps: pl.DataFrame, settings: AuditSettings) -> str:
    needs = ["enough rows in both the segment and its reference"]
    if gaps["auc"].null_count():
        needs[0] += " (for an AUC, of both classes)"
    compared = pl.col("auc").is_not_null() & pl.col("auc_reference").is_not_null()
    unknown = pl.col("auc_gap_low").is_null()
    if settings.needs_variance and not gaps.filter(compared, unknown).is_empty():
        needs.append("two AUCs with a variance")
    if settings.bins or settings.tolerance:
        needs.append("a sign that binning the scores leaves certain")
    return " and ".join(needs) + (", to be tested" if len(needs) == 1 else ", as a test needs")


def reference_of(settings: AuditSettings, attribute: str) -> str:
    """Say what the segments of an attribute are compared with."""
    reference = settings.reference
    return reference.named.get(attribute, _REFERENCES[reference.kind])


def gap_findings(gaps: pl.DataFrame, settings: AuditSettings) -> list[Finding]:
    """Describe the largest gap in AUC and in decisions of each attribute (and score).

    A significant gap takes precedence over a larger one that is not; gaps without a test are left
    out. Of many such gaps the first few are described, and the others counted.
    """
    ranked = (
        _tested(gaps, settings)
        .with_columns(decides=pl.col("rate") != "auc", size=pl.col("gap").abs())
        .sort("significant", "size", descending=True, maintain_order=True)
    )
    kind = [name for name in ("attribute", MODEL) if name in ranked.columns]
    # Significant gaps first, then in the order of the page's sections.
    places = gaps.select(kind).unique(maintain_order=True).with_row_index("place")
    largest = ranked.unique([*kind, "decides"], keep="first", maintain_order=True)
    kept = largest.head(_SENTENCES).join(places, on=kind, how="left")
    kept = kept.sort(~pl.col("significant"), "place", "decides")
    findings = [
        Finding(_sentence(one, settings), significant=one["significant"])
        for one in kept.iter_rows(named=True)
    ]
    more = largest[_SENTENCES:]
    if not more.is_empty():
        count = more["significant"].sum()
        significant = f", {count:,} of them significant" if count else ""
        left_out = f"The tables have {many(more.height, 'more such gap')}{significant}."
        findings.append(Finding(left_out, significant=False))
    return findings


def untested_attributes(gaps: pl.DataFrame) -> list[str]:
    """List the attributes without any test, unless no attribute has one."""
    tests = _tests(gaps).group_by("attribute", maintain_order=True)
    count = tests.agg(pl.col("gap_p_value").count())
    untested: list[str] = count.filter(gap_p_value=0)["attribute"].to_list()
    return untested if len(untested) < count.height else []


def _tests(gaps: pl.DataFrame) -> pl.DataFrame:
    """Lay out one row per gap, tested or not."""
    keys = segment_keys(gaps)
    rows = pl.sum_horizontal("n_pos", "n_neg").alias(_ROWS)
    return pl.concat(
        gaps.select(*keys, rows, pl.lit(rate).alias("rate"), **{p: f"{rate}_{p}" for p in _PARTS})
        for rate in NAMES
        if f"{rate}_gap" in gaps.columns
    )


def _tested(gaps: pl.DataFrame, settings: AuditSettings) -> pl.DataFrame:
    """Lay out one row per test, with whether it is ``significant``."""
    tests = _tests(gaps).filter(pl.col(_ROWS) > 0)
    reference = settings.reference
    if reference.is_mutual:
        # Each of two segments is the complement of the other: one test.
        family = [name for name in ("attribute", MODEL, "rate") if name in tests.columns]
        place = pl.int_range(pl.len()).over(family)
        tests = tests.filter(
            (place == 0)
            | (pl.len().over(family) != 2)  # noqa: PLR2004
            | pl.col("attribute").is_in(list(reference.named))
        )
    significant = is_significant(pl.col("gap_p_adjusted"), settings.level).fill_null(value=False)
    return tests.filter(pl.col("gap_p_value").is_not_null()).with_columns(significant=significant)


def _sentence(test: dict[str, Any], settings: AuditSettings) -> str:
    model = f", with the score{quoted(test[MODEL])}" if MODEL in test else ""
    largest = "largest significant" if test["significant"] else "largest"
    what = (
        f"gap in decisions is in the {NAMES[test['rate']]} of"
        if test["decides"]
        else "gap in AUC is in"
    )
    ends = " to ".join(_side(test[end]) for end in ("gap_low", "gap_high"))
    p = test["gap_p_adjusted"]
    p_value = "p" if settings.adjust == "none" else "adjusted p"
    return (
        f"By {test['attribute']}{model}, the {largest} {what} {name_of(test['segment'])}: "
        f"{_side(test['gap'])} than in {reference_of(settings, test['attribute'])} "
        f"({100 * settings.level:g}% confidence interval: {ends}; "
        f"{p_value} {f'below {LEAST_P}' if p < LEAST_P else f'= {p:.3f}'})."
        f"{'' if test['significant'] else ' It is not significant.'}"
    )


def _side(gap: float) -> str:
    return f"{abs(gap):.3f} {'higher' if gap > 0 else 'lower'}"
