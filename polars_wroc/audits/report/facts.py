"""Facts about the audit for the report: what was audited, sizes, rule, terms and methods."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import polars as pl

from polars_wroc.audits.remarks import untested_segments
from polars_wroc.audits.tables import AuditSettings, AuditTables, segment_in_words
from polars_wroc.audits.words import DASH, Words, many, threshold_text, verb
from polars_wroc.groups.comparisons import is_finding
from polars_wroc.inputs.columns import AUDIT_KEYS, MODEL, OVERALL
from polars_wroc.inputs.designs import ReplicateKind
from polars_wroc.inputs.metric import MINUS, Metric
from polars_wroc.metrics.registry import CURVE_METRICS, ROC_AUC
from polars_wroc.stats.families import INCONCLUSIVE
from polars_wroc.thresholds.registry import AUDIT_RATES
from polars_wroc.thresholds.rules import Rule, expected_optimism

# Smaller shares are written with a decimal.
_RARE = 0.05


class Link(NamedTuple):
    """A text and where it leads on the page."""

    text: str
    target: str


def title_line(audit: AuditTables) -> list[str]:
    """Say in a line how many rows of which label were audited, and if there are no decisions."""
    settings = audit.settings
    overall = audit.segments.filter(attribute=OVERALL)
    one = overall.row(0, named=True)
    parts = [many(max(overall["n"].to_list()), "row")]
    share, what = positive_share(one), Words.of(settings).positive
    if not settings.labeled:
        rates = audit.table.filter(attribute=OVERALL, metric="selection_rate")
        share, what = rates["value"][0], Words.of(settings).selected
    if share is not None:
        weighted = " (weighted)" if settings.weight else ""
        percent = f"{share:.{1 if min(share, 1 - share) < _RARE else 0}%}"
        parts.append(f"{percent} {what}{weighted}")
    return parts if settings.decides else [*parts, "ranking only, no decisions"]


# Most pairs of scores that are told.
_PAIRS = 3


def better_scores(audit: AuditTables) -> list[str]:
    """Say which of two scores ranks better, by a test on the same rows."""
    sentences, alpha = [], 1 - audit.settings.confidence
    for row in audit.further().scores.head(_PAIRS).iter_rows(named=True):
        if row["gap_low"] is None:
            continue
        sign = -1 if row["gap"] < 0 else 1
        names = [(row["model"], row["value"]), (row["reference"], row["reference_value"])][::sign]
        (first, auc), (second, other) = names
        ends = sorted(sign * row[f"gap_{end}"] for end in ("low", "high"))
        limits = " to ".join(f"{end:.3f}".replace("-", MINUS) for end in ends)
        numbers = f"its AUC is {auc:.3f} against {other:.3f}, {auc - other:.3f} more ({limits})"
        if row["p_adjusted"] <= alpha:
            sentences.append(f"{first} ranks better than {second}: {numbers}.")
        else:
            sentences.append(f"{first} is not shown to rank better than {second}: {numbers}.")
    return sentences


def positive_share(overall: Mapping[str, Any]) -> float | None:
    """Return the proportion of positives in the weight of all rows; None if that is unknown."""
    positive, negative = overall["w_pos"], overall["w_neg"]
    # Weights that overflow are null.
    if positive is None or negative is None:
        return None
    total: float = positive + negative
    return positive / total if total and math.isfinite(total) else None


def next_steps(findings: pl.DataFrame, places: dict[str, int]) -> list[Link]:
    """Link what a reader should look at after the first screen."""
    different = findings.filter(is_finding())
    links = []
    if not different.is_empty():
        first = different.row(0, named=True)
        attribute = first["attribute"]
        segment = segment_in_words(attribute, first["segment"])
        what, tables = f"differs in {segment}", f"by {attribute}"
        if attribute == OVERALL:
            what, tables = "was found of the whole score", f"of {segment}"
        links += [
            Link(f"what {what}", f"finding-{first['rank']}"),
            Link(f"curves and tables {tables}", f"section-{places[attribute]}"),
        ]
    if little := findings.filter(verdict=INCONCLUSIVE).height:
        are = verb(little, "comparison that is", "comparisons that are")
        links.append(Link(f"the {little:,} {are} inconclusive", "findings"))
    return [*links, Link("the limits of this audit", "limits")]


_RULES = {
    "youden": "the largest difference between true and false positive rate",
    "closest_topleft": "the point of the ROC curve closest to the top left",
    "max_accuracy": "the fewest errors",
    "least_cost": "the least expected cost",
    "max_fpr": "the highest true positive rate with a false positive rate of at most {:g}",
    "min_tpr": "the lowest false positive rate with a true positive rate of at least {:g}",
    "max_selection_rate": "the highest selection rate that is at most {:g}",
}
_INTERVALS = "a score-type method, whose variance changes with the AUC"
_REPLICATES: dict[ReplicateKind, str] = {
    "brr": "replicate weights of balanced repeated replication",
    "fay": "replicate weights by Fay's method",
    "jk1": "jackknife replicate weights",
    "jkn": "replicate weights of a jackknife in strata",
    "jk2": "replicate weights of a jackknife of pairs",
    "bootstrap": "bootstrap replicate weights",
}
_LONELY = {
    "certainty": "the only unit of a stratum was certain to be sampled",
    "adjust": "the only unit of a stratum is compared with the mean of all units",
}
_COSTS = {
    "fn": "cost {:g} of a false negative",
    "fp": "cost {:g} of a false positive",
    "prevalence": "prevalence {:g}",
}

# Of `untested_segments`.
_UNTESTED = (
    "with too few rows to test a gap",
    "of one class only",
    "without a row to measure",
)
_LEAST_SHOWN = 0.01
_SELECTED = "a row is selected{} if its score is at least the threshold"


class Fact(NamedTuple):
    """A number at the top of the page: its name, the number, and a note."""

    term: str
    value: str
    note: str


def facts(audit: AuditTables) -> list[Fact]:
    """List what was audited: rows, positives, segments, threshold."""
    settings = audit.settings
    overall = audit.segments.filter(attribute=OVERALL)
    one = overall.row(0, named=True)
    used, missing = max(overall["n"].to_list()), max(overall["n_missing"].to_list())
    read = one["n"] + one["n_missing"]
    # Scores may be missing in different rows.
    up_to = "" if overall["n_missing"].n_unique() == 1 else "up to "
    # Rows without weight are not counted at all.
    counted = "whose weight is not 0" if settings.weight else "read"
    if audit.run.left_out_of_totals:
        counted += f" with a value of {' and '.join(audit.run.left_out_of_totals)}"
    left_out = (
        f"of {read:,} {counted}; {up_to}{missing:,} lack a value"
        if missing
        else f"all {'' if settings.weight else 'that were '}{counted}"
    )
    share = positive_share(one) if settings.weight else None
    weighted = "" if share is None else f"; {share:.1%} of the weight"
    listed = [Fact("Rows", f"{used:,}", left_out)]
    if one["n"] and settings.labeled:
        of_rows = f"{one['n_pos'] / one['n']:.1%}"
        listed.append(Fact("Positive", of_rows, f"{one['n_pos']:,} of {one['n']:,} rows{weighted}"))
    listed.append(_segments_fact(audit))
    if settings.decides:
        listed.append(_threshold_fact(overall, settings))
    if (error := audit.run.auc_error) is not None:
        note = "scores were counted in bins: the exact AUCs are at most this far from those shown"
        most = f"± {error:.2g}" if error else "exact"
        listed.append(Fact("AUCs", most, note))
    return listed


def _segments_fact(audit: AuditTables) -> Fact:
    named = audit.segments.filter(pl.col("attribute") != OVERALL).select(AUDIT_KEYS)
    others = named.unique(maintain_order=True)
    counts = others.group_by("attribute", maintain_order=True).len().rows()
    untested = [
        f"{segments.height:,} {what}"
        for segments, what in zip(untested_segments(audit), _UNTESTED, strict=True)
        if segments.height
    ]
    by = ", ".join(f"{attribute} ({count:,})" for attribute, count in counts)
    return Fact("Segments", f"{others.height:,}", "; ".join([f"by {by}", *untested]))


def _threshold_fact(overall: pl.DataFrame, settings: AuditSettings) -> Fact:
    if settings.selected is not None:
        return Fact("Decisions", "recorded", f"in {settings.selected}, not made by a threshold")
    thresholds = [threshold_text(value) for value in overall["threshold"]]
    note = "given" if settings.rule is None else rule_of(settings.rule)
    if thresholds == [DASH]:
        return Fact("Threshold", DASH, "none, as the rows are all of one class")
    if len(set(thresholds)) == 1:
        return Fact("Threshold", thresholds[0], note)
    each = "; ".join(f"{m} {t}" for m, t in zip(overall[MODEL], thresholds, strict=True))
    return Fact("Thresholds", each, note)


def rule_of(rule: Rule) -> str:
    """Describe the threshold that a rule chooses."""
    options = dict(rule.options)
    named = {name: _COSTS[name] for name in options if name in _COSTS}
    costs = ", ".join(text.format(options[name]) for name, text in named.items())
    return _RULES[rule.name].format(*options.values()) + (f" ({costs})" if costs else "")


def optimism(audit: AuditTables) -> str:
    """Say how optimistic tpr is at a threshold that was chosen on the same rows."""
    if audit.settings.selected is not None:
        return ""
    positives = audit.segments.filter(attribute=OVERALL)["n_pos"][0]
    if not positives:
        return ""
    rule = audit.settings.rule
    lower = expected_optimism(None if rule is None else rule.name, positives)
    chosen = "If the threshold was" if rule is None else "As the threshold was"
    start = f"{chosen} chosen on these same rows, with {many(positives, 'positive')},"
    if lower is None:
        return (
            f"{start} the true positive rate on other rows is likely to be lower; so few positives "
            "do not tell by how much."
        )
    size = f"about {lower:.2f}" if lower >= _LEAST_SHOWN else f"less than {_LEAST_SHOWN}"
    return f"{start} expect the true positive rate on other rows to be {size} lower."


def decision(settings: AuditSettings) -> str | None:
    """Say which decisions are measured: at which threshold, or that they were recorded."""
    if settings.selected is not None:
        return f"as they were recorded in {settings.selected}: a row was selected or not"
    threshold = settings.threshold
    if threshold is None:
        return None
    selected = _SELECTED.format(", that is predicted positive," if settings.labeled else "")
    if not isinstance(threshold, Rule):
        return f"at the given threshold of {threshold:.10g}: {selected}"
    chosen = "chosen for each score on all rows"
    return f"at the threshold with {rule_of(threshold)}, {chosen}: {selected}"


def glossary(audit: AuditTables) -> list[Metric]:
    """List the metrics in the tables of the page."""
    shown = set(audit.table["metric"])
    of_values = [ROC_AUC, CURVE_METRICS["average_precision"], *AUDIT_RATES.values()]
    return [metric for metric in of_values if metric.column in shown]


def intervals(audit: AuditTables) -> str:
    """Name the method of the confidence intervals of AUCs; empty without intervals."""
    if not audit.table.filter(metric="auc")["value_low"].count():
        return ""
    return _INTERVALS


def design(audit: AuditTables) -> str:
    """Describe the design of a survey; empty without one."""
    given, df = audit.settings.design, audit.run.design_df
    if df is None or given is None:
        return ""
    if "replicates" in given:
        return f"{_REPLICATES[given['replicates']]}; {_students(df)}"
    parts = [f"sampling units: {given.get('cluster', 'the rows')}"]
    if "strata" in given:
        parts.append(f"strata: {given['strata']}")
    if "fpc" in given:
        parts.append(f"finite population correction: {given['fpc']}")
    if given["lonely"] != "null":
        parts.append(_LONELY[given["lonely"]])
    return "; ".join([*parts, _students(df)])


def _students(df: int) -> str:
    degrees = f"Student's t with {many(df, 'degree')} of freedom"
    return f"{degrees}, fewer for segments with rows in few units"
