"""What readers should know besides the findings: limits of an audit, its scores and their rows."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from polars_wroc.arrays import TOLERANCE
from polars_wroc.audits.sentences import limits_of
from polars_wroc.audits.tables import (
    ALL_KEYS,
    AuditSettings,
    AuditTables,
    name_of,
    rows_with,
    segment_in_words,
    wide_table,
    with_small,
)
from polars_wroc.audits.words import (
    Words,
    capitalised,
    first_few,
    many,
    required_values,
    threshold_text,
    verb,
)
from polars_wroc.groups.categories import CROSSED
from polars_wroc.groups.comparisons import GAP_METRICS, NO_VARIANCE
from polars_wroc.inputs.columns import AUDIT_KEYS, MODEL, OVERALL
from polars_wroc.inputs.decisions import Unknown, seems_unknown
from polars_wroc.inputs.spellings import say_near_equal
from polars_wroc.metrics.calibration import CALIBRATION_ERROR, SLOPE
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.names import escape_controls

# Of more attributes than this only the widest range of AUCs is described.
_RANGES = 3
# An AUC of chance; a threshold that a reader may have had in mind, if scores are probabilities.
_HALF = 0.5
# Decisions are nearly all the same where so small a share of rows differs from the others.
_NEARLY_NONE = 0.001
# From more numbers than this ranges are suggested.
_NUMBERS = 50
_NO_VARIANCE_BY_DESIGN = (
    "{} {} an untested gap in AUC, as one of its AUCs has rows in a stratum with a single sampling "
    "unit, whose variance is unknown"
)


_NO_LABEL = (
    "No outcome was looked at: from decisions alone nobody can say whether people who would do "
    "equally well were treated alike."
)


class Remarks(NamedTuple):
    """Sentences about what was not tested, and about the scores and their rows."""

    untested: list[str]
    scores: list[str]


def remarks_of(audit: AuditTables) -> Remarks:
    """Write what should be known beside the findings."""
    return Remarks(
        [
            *number_remarks(audit.segments),
            *spelling_remarks(audit.segments),
            *untested_remarks(audit),
            *unlabeled_remarks(audit),
            *left_out_remarks(audit),
        ],
        [*score_remarks(audit), *missing_remarks(audit.missing)],
    )


def decision_remarks(audit: AuditTables) -> list[str]:
    """Name the thresholds, or the recorded decisions, that select no row or every row."""
    settings, sentences = audit.settings, []
    extreme = ~pl.col("value").is_between(TOLERANCE, 1 - TOLERANCE, closed="none")
    rates = audit.table.filter(extreme, attribute=OVERALL, metric="selection_rate")
    for overall in rates.iter_rows(named=True):
        selected = "no row" if overall["value"] <= TOLERANCE else "every row"
        score = f" of the score{_quoted(overall, settings)}" if settings.several else ""
        sentences.append(
            f"The threshold{score} selects {selected}: all decisions there are the same, so that "
            "segments cannot be compared by them."
            if settings.selected is None
            else f"The recorded decisions select {selected}: they are all the same, so that "
            "segments cannot be compared by them."
        )
    return sentences


def nearly_same_remarks(audit: AuditTables) -> list[str]:
    """Name the thresholds, or the recorded decisions, that select nearly no row or nearly all."""
    settings, value = audit.settings, pl.col("value")
    nearly = (value < _NEARLY_NONE) | (value > 1 - _NEARLY_NONE)
    differ = value.is_between(TOLERANCE, 1 - TOLERANCE, closed="none")
    rates = audit.table.filter(nearly, differ, attribute=OVERALL, metric="selection_rate")
    sentences = []
    for overall in rates.iter_rows(named=True):
        score = f" of the score{_quoted(overall, settings)}" if settings.several else ""
        what = f"The threshold{score} selects"
        if settings.selected is not None:
            what = "The recorded decisions select"
        sentences.append(
            f"{what} {overall['value']:.2%} of the rows: nearly all decisions are the same, so "
            "that comparisons by them tell little."
        )
    return sentences


def _quoted(row: Mapping[str, Any], settings: AuditSettings) -> str:
    """Quote the name of a score after a space; nothing if there is only one."""
    left, right = "\N{LEFT DOUBLE QUOTATION MARK}", "\N{RIGHT DOUBLE QUOTATION MARK}"
    return f" {left}{row[MODEL]}{right}" if settings.several else ""


def number_remarks(segments: pl.DataFrame) -> list[str]:
    """Suggest ranges for attributes of many numbers, each of which is a segment."""
    of_attributes = segments.drop_nulls("segment").group_by("attribute", maintain_order=True)
    read = pl.col("segment").cast(pl.Float64, strict=False)
    many_numbers = of_attributes.agg(
        n=pl.col("segment").n_unique(), numeric=read.is_not_null().all()
    ).filter("numeric", pl.col("n") > _NUMBERS)
    return [
        f"Each of the {n:,} numbers in {attribute} is a segment. To compare larger groups, cut it "
        f"into ranges: wroc.ranges({attribute!r}, [...]) in Python, or on the command line "
        f"--attribute '{attribute}:...', with the numbers at which ranges begin."
        for attribute, n in many_numbers.select("attribute", "n").rows()
    ]


def spelling_remarks(segments: pl.DataFrame) -> list[str]:
    """Name the segments that differ in capitals and white space alone."""
    alone = ~pl.col("attribute").str.contains(CROSSED, literal=True)
    of_attributes = segments.filter(alone, pl.col("attribute") != OVERALL).drop_nulls("segment")
    listed = of_attributes.group_by("attribute", maintain_order=True).agg("segment")
    return [text for name, values in listed.rows() for text in say_near_equal(name, values)]


def untested_remarks(audit: AuditTables) -> list[str]:
    """Name the segments that were measured but not tested, and the attributes without a test."""
    settings = audit.settings
    lacking = _required(settings)
    few = f"fewer than {settings.min_rows} rows{' in a class' if settings.labeled else ''}"
    small, one_class, empty = untested_segments(audit)
    said = [
        (small, f"{{}} {{}} {few}, too few to test a gap{' in AUC' if settings.labeled else ''}"),
        (_without_variance(audit), _NO_VARIANCE_BY_DESIGN),
        (one_class, "{} {} rows of one class only, so that there is no AUC"),
        (empty, f"{{}} {{}} no row that could be measured, as each lacks a {lacking}"),
    ]
    sentences = [
        f"{text.format(many(one.height, 'segment'), verb(one.height, 'has', 'have'))}: "
        f"{_listed(one)}"
        for one, text in said
        if not one.is_empty()
    ]
    if untested := _untested_attributes(audit.table):
        sentences.append(f"Nothing could be tested by {', '.join(untested)}.")
    return sentences


def unlabeled_remarks(audit: AuditTables) -> list[str]:
    """Say how many rows lack a value, and in which numbers those without a label are."""
    overall = audit.segments.filter(attribute=OVERALL)
    decided = (pl.col("n_decided") - pl.col("n")).fill_null(0)
    unlabeled, others = overall.select(decided.max(), (pl.col("n_missing") - decided).max()).row(0)
    sentences = []
    if unlabeled:
        label = f" ({escape_controls(audit.settings.label)})" if audit.settings.label else ""
        have = verb(unlabeled, "has", "have")
        they = verb(unlabeled, "it counts", "they count")
        sentences.append(
            f"{many(unlabeled, 'row')} {have} no label{label}: {they} in selection rates, impact "
            "ratios and demographic parity alone."
        )
    if others:
        are = verb(others, "lacks a value and is", "lack a value and are")
        sentences.append(f"{many(others, 'row')} {are} left out of all numbers.")
    return sentences


def left_out_remarks(audit: AuditTables) -> list[str]:
    """Name the segments that are not shown, and the rows that are not in the totals either."""
    least = audit.settings.min_cell
    kind = "class or decision" if audit.settings.labeled else "decision"
    missing = dict(audit.missing.rows())
    sentences = [
        f"{'Rows' if missing[name] is None else many(missing[name], 'row')} without a value of "
        f"{name} are left out of all numbers, totals included: too few to show, with fewer than "
        f"{least} of a {kind}."
        for name in audit.run.left_out_of_totals
    ]
    without = {f"{name} {name_of(None)}" for name in audit.run.left_out_of_totals}
    if names := [name for name in audit.run.left_out if name not in without]:
        why = f"fewer than {least} rows of a {kind}, or numbers that would give such a one away"
        listed = first_few(names, separator="; ")
        sentences.append(f"{many(len(names), 'segment')} not shown, with {why}: {listed}.")
    return sentences


def score_remarks(audit: AuditTables) -> list[str]:
    """Describe the overall AUC of each score, and the range of its AUCs over segments.

    The ranges of crossed segments, which are many and small, are left out, as they are mostly due
    to chance.
    """
    sentences, settings = list[str](), audit.settings
    if not settings.labeled:
        return sentences
    words = Words.of(settings)
    for of_model in wide_table(audit).partition_by(MODEL, maintain_order=True):
        overall = of_model.row(0, named=True)
        name = f"The score{_quoted(overall, settings)}"
        if overall["auc"] is None:
            sentences.append(f"{name} has no AUC: {_why_no_auc(overall, settings)}.")
            continue
        share = f"{overall['auc']:.1%}{' of the weight' * (settings.weight is not None)}"
        sentences.append(
            f"{name} has an overall AUC of {_auc(overall)}: it ranks {share} of the pairs of one "
            f"{words.positive} and one {words.negative} in the right order, where a tie counts "
            "half."
        )
        ranges = [
            one
            for attribute in settings.attributes
            if (one := _range(of_model.filter(attribute=attribute), settings))
        ]
        if len(ranges) > _RANGES:
            ranges = [max(ranges, key=lambda one: one[0])]
        sentences += [text for _, text in ranges]
    return sentences


def backwards_remarks(audit: AuditTables) -> list[str]:
    """Name the scores that rank backwards: with an AUC significantly below that of chance."""
    rows = audit.table.filter(pl.col("value_high") < _HALF, attribute=OVERALL, metric="auc")
    return [
        f"The score{_quoted(row, audit.settings)} ranks backwards: "
        f"AUC {row['value']:.2f}{limits_of(row, 'value')}."
        for row in rows.iter_rows(named=True)
    ]


def unknown_slopes(audit: AuditTables) -> list[str]:
    """Name the scores that are probabilities whose slope is unknown, which is no good slope."""
    rows = audit.table.filter(pl.col("value").is_null(), attribute=OVERALL, metric=SLOPE)
    both = audit.segments.filter(pl.col("n_pos") > 0, pl.col("n_neg") > 0, attribute=OVERALL)
    return [
        f"The slope of the score{_quoted(row, audit.settings)} is unknown: it needs scores between "
        "0 and 1 of both classes, which overlap."
        for row in rows_with(rows, both.select(ALL_KEYS)).iter_rows(named=True)
    ]


def _required(settings: AuditSettings) -> str:
    recorded = settings.selected is not None
    return required_values(recorded=recorded, labeled=settings.labeled)


def _why_no_auc(overall: dict[str, Any], settings: AuditSettings) -> str:
    if not overall["n"]:
        lacking = _required(settings)
        return f"no row could be measured, as each lacks a {lacking}"
    if overall["n_pos"] and overall["n_neg"]:
        return "the sums of weights overflow or underflow"
    return "the rows are all of one class"


def missing_remarks(missing: pl.DataFrame) -> list[str]:
    """Name the columns with missing values, and the number of rows."""
    some = missing.filter(pl.col("n_missing") > 0)
    listed = [f"{name} in {many(rows, 'row')}" for name, rows in some.iter_rows()]
    return [f"Values are missing: {', '.join(listed)}."] if listed else []


def _untested_attributes(table: pl.DataFrame) -> list[str]:
    """List the attributes without any test of a gap, unless no attribute has one."""
    gaps = table.filter(pl.col("attribute") != OVERALL, pl.col("metric").is_in([*GAP_METRICS]))
    tested = pl.col("p_value").is_not_null().any()
    of_attributes = gaps.group_by("attribute", maintain_order=True).agg(tested=tested)
    untested: list[str] = of_attributes.filter(~pl.col("tested"))["attribute"].to_list()
    return untested if len(untested) < of_attributes.height else []


def untested_segments(audit: AuditTables) -> list[pl.DataFrame]:
    """Name the segments with too few rows in a class, those of one class, and empty ones."""
    segments = with_small(audit.segments, audit.settings.min_rows)
    both, some = (
        pl.coalesce(of("n_pos", "n_neg"), "n") > 0 for of in (pl.min_horizontal, pl.max_horizontal)
    )
    conditions = (pl.col("small") & both, some & ~both, ~some)
    return [_distinct(segments.filter(condition)) for condition in conditions]


def _without_variance(audit: AuditTables) -> pl.DataFrame:
    """Return the segments with enough rows whose gap in AUC has no variance by the design."""
    large = with_small(audit.segments, audit.settings.min_rows).filter(~pl.col("small"))
    unknown = audit.table.filter(metric=ROC_AUC.column, reason=NO_VARIANCE).select(ALL_KEYS)
    return _distinct(rows_with(large, unknown).filter(audit.settings.by_design))


def _distinct(segments: pl.DataFrame) -> pl.DataFrame:
    others = segments.filter(pl.col("attribute") != OVERALL)
    return others.select(AUDIT_KEYS).unique(maintain_order=True)


def _listed(segments: pl.DataFrame) -> str:
    names = [segment_in_words(attribute, segment) for attribute, segment in segments.rows()]
    return f"{first_few(names)}."


def _range(segments: pl.DataFrame, settings: AuditSettings) -> tuple[float, str] | None:
    """Name the ends of the AUCs of the segments with enough rows, and small ones beyond them.

    The width of the range comes first.
    """
    known = segments.drop_nulls("auc").sort("auc")
    large = known.filter(~pl.col("small")).to_dicts()
    if len(large) < 2:  # noqa: PLR2004  (a range needs two)
        return None
    low, high = large[0], large[-1]
    farthest = pl.max_horizontal(low["auc"] - pl.col("auc"), pl.col("auc") - high["auc"])
    beyond = known.filter(farthest > 0).sort(farthest, descending=True).to_dicts()
    lowest, highest = (
        f"{_auc(one)} in {name_of(one['segment'])} ({many(one['n'], 'row')})" for one in (low, high)
    )
    text = f"its AUC runs from {lowest}, to {highest}"
    if beyond:
        words = Words.of(settings)
        names = [
            f"{name_of(one['segment'])} ({_smaller_class(one, words)}) has {one['auc']:.3f}"
            for one in beyond
        ]
        least = f"at least {settings.min_rows} rows of each class"
        text = f"{text}, of the segments with {least}; {first_few(names)}"
    return high["auc"] - low["auc"], f"By {low['attribute']}, {text}."


def _smaller_class(segment: dict[str, Any], words: Words) -> str:
    """Count the rows of the smaller class."""
    classes = {words.positive: segment["n_pos"], words.negative: segment["n_neg"]}
    name = min(classes, key=lambda name: classes[name])
    return f"{classes[name]:,.0f} {name}"


def _auc(segment: dict[str, Any]) -> str:
    return f"{segment['auc']:.3f}{limits_of(segment, 'auc', 3)}"


def seemingly_unknown(table: pl.DataFrame) -> list[tuple[str, str]]:
    """List the attributes with such a category, and the category; crossed ones are not listed."""
    attribute = pl.col("attribute")
    alone = (attribute != OVERALL) & ~attribute.str.contains(CROSSED, literal=True)
    listed = table.filter(alone).select(AUDIT_KEYS).drop_nulls().unique(maintain_order=True)
    return [(name, category) for name, category in listed.rows() if seems_unknown(category)]


def unknown_hint(table: pl.DataFrame, remedy: str) -> list[str]:
    """Say that such categories are compared like others, and what to do if they are unknown."""
    found = seemingly_unknown(table)
    if not found:
        return []
    named = [f"{category!r} of {attribute}" for attribute, category in found]
    names = first_few(named, separator=" and ")
    text = f"{names} {verb(len(found), 'is', 'are')} compared like any other category"
    return [f"{text}. If this means that the value is not known, {remedy}."]


# A share above the median that needs an explanation, which is ties.
_FEW_ABOVE_MEDIAN = 0.45


def of_missing(decided: pl.DataFrame, what: str) -> str:
    """Say how many rows lack one of these, if any do."""
    found = decided["missing"]
    most = max(found.to_list(), default=0)
    if not most:
        return ""
    up_to = "" if found.n_unique() == 1 else "up to "
    have, were = ("has", "was") if most == 1 else ("have", "were")
    return capitalised(f"{up_to}{many(most, 'row')} {have} no {what} and {were} left out.")


def of_median(decided: pl.DataFrame) -> str:
    """Say that far fewer than half of the rows score above the median, if so."""
    least = decided["share"].min()
    if not isinstance(least, float) or least >= _FEW_ABOVE_MEDIAN:
        return ""
    return f"Only {least:.0%} score above the median, since many scores are equal to it."


def not_audited(audit: AuditTables) -> list[str]:
    """Say what was not audited or not tested, a sentence each."""
    return [
        *lacking(audit),
        *_uncalibrated(audit),
        *left_out_rows(audit),
        *unknown_remarks(audit),
        *remarks_of(audit).untested,
        *audit.further().left_out,
        *_taken_as_given(audit.settings),
    ]


def _taken_as_given(settings: AuditSettings) -> list[str]:
    """Say what an audit of these columns cannot show."""
    names = [escape_controls(name) for name in settings.attributes]
    only = f"Only {first_few(names)} {verb(len(names), 'is', 'are')} compared"
    compared = f"{only}: groups by anything else may differ too."
    if not settings.labeled:
        return [compared]
    label = "" if settings.label is None else f" in {escape_controls(settings.label)}"
    taken = f"Outcomes are taken as recorded{label}: a bias in them cannot be seen here."
    return [compared, taken]


def unknown_remarks(audit: AuditTables) -> list[str]:
    """Name the segments that may be those of an unknown value."""
    listed = all_unknown(audit.segments, audit.settings.unknown)
    remedy = f"give unknown={listed} in Python, or {unknown_flags(listed)} on the command line"
    return unknown_hint(audit.segments, remedy)


def all_unknown(table: pl.DataFrame, unknown: Unknown) -> list[Any]:
    """List the values that are unknown, and after them those that may be."""
    given = [] if isinstance(unknown, str) else unknown
    return [*dict.fromkeys([*given, *(category for _, category in seemingly_unknown(table))])]


def unknown_flags(values: Sequence[object]) -> str:
    """Write values as options of the command line."""
    return " ".join(f"--unknown {shlex.quote(str(value))}" for value in values)


def lacking(audit: AuditTables) -> list[str]:
    """Say that there is no label or no decision, if so, which comes before all else."""
    if not audit.settings.labeled:
        return [_NO_LABEL]
    if audit.settings.decides:
        return []
    selected = _selected_at_half(audit)
    would = f" At 0.5 the score selects {_percent(selected)}." if selected is not None else ""
    return [f"No threshold was given.{would}"]


def _percent(share: float) -> str:
    if 0 < round(share, 2) < 1:
        return f"about {share:.0%}"
    return "hardly any" if share < _HALF else "nearly all"


def _selected_at_half(audit: AuditTables) -> float | None:
    """Share of the rows, or of their weight, that a probability selects at a half."""
    if not _calibrated(audit) or audit.settings.several:
        return None
    points = audit.curves.filter(pl.col("attribute") == OVERALL, pl.col("threshold") >= _HALF)
    total = audit.segments.filter(attribute=OVERALL).select(pl.col("w_pos") + pl.col("w_neg"))
    selected = points.select((pl.col("tp") + pl.col("fp")).max()).item()
    return selected / total.item() if selected is not None and total.item() else None


def _uncalibrated(audit: AuditTables) -> list[str]:
    """Say of which scores calibration was not audited, and why."""
    if audit.settings.bins is not None:
        return ["Calibration was not audited: scores were counted in bins."]
    sentences, settings = [], audit.settings
    calibrated = pl.col(MODEL).is_in(_calibrated(audit))
    others = audit.curves.filter(~calibrated, attribute=OVERALL)
    for of_model in others.partition_by(MODEL, maintain_order=True):
        of = f" of{_quoted(of_model.row(0, named=True), settings)}" if settings.several else ""
        scores = _range_of(of_model, audit)
        sentences.append(f"Calibration{of} was not audited: scores {scores} are not probabilities.")
    return sentences


def _calibrated(audit: AuditTables) -> list[str]:
    """List the scores whose calibration was measured: those that may be probabilities."""
    models: list[str] = audit.table.filter(metric=CALIBRATION_ERROR)[MODEL].unique().to_list()
    return models


def _range_of(curve: pl.DataFrame, audit: AuditTables) -> str:
    """Name the least and the greatest score, which in few rows may be those of a person."""
    scores = curve["threshold"].filter(curve["threshold"].is_finite()).to_list()
    if not scores or audit.settings.min_cell is not None:
        return "outside 0 to 1"
    return f"from {threshold_text(min(scores))} to {threshold_text(max(scores))}"


def left_out_rows(audit: AuditTables) -> list[str]:
    """Count the rows that lack a value; those without an attribute are a segment."""
    settings = audit.settings
    sentences = []
    for name, rows in audit.missing.filter(pl.col("n_missing") > 0).rows():
        if name not in audit.run.left_out_of_totals:
            ending = f" and {verb(rows, 'was', 'were')} left out"
            if name in settings.attributes:
                ending = f" and {verb(rows, 'is', 'are')} the segment (missing)"
            decision = " (the decision)" if name == settings.selected else ""
            have = verb(rows, "has", "have")
            sentences.append(f"{many(rows, 'row')} {have} no value in {name}{decision}{ending}.")
    return sentences
