"""The limits of an audit: missing rows and groups, and what it takes for granted."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Literal, TypeAlias

import polars as pl

from polars_wroc.audits.amounts import write_percent
from polars_wroc.audits.hints import say_unknown
from polars_wroc.audits.say import AUC, SELECTION_RATE
from polars_wroc.audits.tables import ALL_KEYS, AuditSettings, AuditTables, rows_with
from polars_wroc.audits.toned_audit import find_segment_keys
from polars_wroc.audits.words import Words, name_briefly, required_values, write_threshold
from polars_wroc.documents.phrases import capitalise, first_few, many, verb, write_list
from polars_wroc.groups.categories import CROSSED
from polars_wroc.groups.comparisons import GAP_METRICS
from polars_wroc.inputs.columns import MISSING, MODEL, OVERALL
from polars_wroc.inputs.reasons import NO_VARIANCE
from polars_wroc.inputs.spellings import say_near_equal
from polars_wroc.metrics.calibration import CALIBRATION_ERROR, SLOPE
from polars_wroc.names import escape_controls, quote, show_name
from polars_wroc.stats.designs import LONELY_UNIT

# From more numbers than this ranges are suggested.
_NUMBERS = 50
# The reasons why a group was not tested.
_Obstacle: TypeAlias = Literal["few", "no variance", "lonely", "one class", "no rows"]


def write_cautions(audit: AuditTables, words: Words) -> list[str]:
    """Return the limits of this audit, a sentence each, the most important first."""
    return [
        *say_not_given(audit.settings),
        *say_missing(audit, words),
        *say_left_out(audit, words),
        *_say_no_auc(audit),
        *_say_scale(audit),
        *_say_untested(audit, words),
        *_say_uncalibrated(audit),
        *say_unknown_slopes(audit),
        *_say_impossible(audit, words),
        *say_values(audit),
        *audit.further().left_out,
        *_say_taken_as_given(audit.settings),
    ]


def say_values(audit: AuditTables) -> list[str]:
    """Return warnings about values: near-equal spellings, unknown ones, and many numbers."""
    return [*_say_spellings(audit.segments), *say_unknown(audit), *_say_numbers(audit.segments)]


def say_not_given(settings: AuditSettings) -> list[str]:
    """Return the sentence on a missing label or missing decisions."""
    if not settings.labeled:
        return ["No outcomes were given, so the audit cannot tell whether decisions were right."]
    if not settings.decides:
        return ["No threshold or decision was given, so decisions were not audited."]
    return []


def say_missing(audit: AuditTables, words: Words) -> Iterator[str]:
    """Return the numbers of rows that lack a value; rows without an attribute are a group."""
    settings = audit.settings
    for name, rows in audit.missing.filter(pl.col("n_missing") > 0).rows():
        shown = show_name(name)
        counted = words.count_rows(rows)
        if name in audit.run.left_out_of_totals:
            continue
        if name in settings.attributes:
            have = verb(rows, "has", "have")
            form = verb(rows, "forms", "form")
            yield f"{counted} {have} no recorded {shown} and {form} the group {MISSING}."
        elif name == settings.label and settings.decides:
            yield from say_unlabeled(audit, words)
        else:
            what = f"a decision ({shown})" if name == settings.selected else shown
            yield f"{counted} without {what} {verb(rows, 'was', 'were')} left out."


def say_unlabeled(audit: AuditTables, words: Words) -> Iterator[str]:
    """Return the sentence on the numbers that include rows without a label."""
    settings = audit.settings
    if not settings.labeled or not settings.decides or "n_decided" not in audit.segments.columns:
        return
    overall = audit.segments.filter(attribute=OVERALL)
    rows = overall.select((pl.col("n_decided") - pl.col("n")).max()).item()
    if rows:
        label = escape_controls(settings.label or "a label")
        yield (
            f"{words.count_rows(rows)} without {label} {verb(rows, 'counts', 'count')} only where "
            "no outcome is needed: in selection rates, impact ratios and demographic parity."
        )


def say_left_out(audit: AuditTables, words: Words) -> Iterator[str]:
    """Return the sentences on groups that are not shown, and on rows missing in totals."""
    least, missing = audit.settings.min_cell, dict(audit.missing.rows())
    kind = "class or decision" if audit.settings.labeled else "decision"
    for name in audit.run.left_out_of_totals:
        rows = capitalise(words.rows)
        if missing[name] is not None:
            rows = f"{missing[name]:,} {words.rows}"
        yield (
            f"{rows} with no recorded {show_name(name)} are left out of all numbers, totals "
            f"included, since fewer than {least} of a {kind} are too few to show."
        )
    without = [f"{name} {MISSING}" for name in audit.run.left_out_of_totals]
    if names := [show_name(name) for name in audit.run.left_out if name not in without]:
        yield (
            f"{many(len(names), 'group')} not shown, with fewer than {least} {words.rows} of a "
            f"{kind}, or numbers that would reveal such a group: {first_few(names, '; ')}."
        )


def _name_score(audit: AuditTables, model: str | None, before: str = "") -> str:
    """Return the name of a score after a preposition, if there are several."""
    return f" {before}{quote(str(model))}" if audit.settings.several else ""


def _say_no_auc(audit: AuditTables) -> Iterator[str]:
    """Return why scores have no AUC of all rows."""
    unknown = audit.table.filter(pl.col("value").is_null(), attribute=OVERALL, metric=AUC)
    for row in rows_with(audit.segments, unknown.select(ALL_KEYS)).iter_rows(named=True):
        why = "all outcomes are the same"
        if not row["n"]:
            why = "no row has all that is needed"
        elif row["n_pos"] and row["n_neg"]:
            why = "the sums of weights overflow or underflow"
        yield f"The score{_name_score(audit, row[MODEL])} has no AUC: {why}."


def _say_scale(audit: AuditTables) -> Iterator[str]:
    """Return the warning that scores may be percentages, if the threshold is below 1."""
    threshold = audit.settings.threshold
    if not isinstance(threshold, float) or not 0 < threshold < 1:
        return
    rates = audit.table.filter(attribute=OVERALL, metric=SELECTION_RATE).drop_nulls("value")
    for model, selected in rates.select(MODEL, "value").rows():
        low, high = _find_scores(audit, model)
        if low is None or high is None or low < 0 or high <= 1:
            continue
        # In few rows the least and the greatest score may be those of a person.
        places = f"from {write_threshold(low)} to {write_threshold(high)}"
        if audit.settings.min_cell is not None:
            places = "beyond 1"
        yield (
            f"The scores{_name_score(audit, model, 'of ')} go {places}, and the threshold of "
            f"{write_threshold(threshold)} selects {write_percent(selected)}: if the scores are "
            f"percentages, use a threshold of {write_threshold(100 * threshold)}."
        )


def _find_scores(audit: AuditTables, model: str | None) -> tuple[float | None, float | None]:
    """Return the least and the greatest score of all rows."""
    curve = audit.curves.filter(pl.col(MODEL).eq_missing(model), attribute=OVERALL)
    scores = curve["threshold"].filter(curve["threshold"].is_finite())
    low, high = scores.min(), scores.max()
    return (low, high) if isinstance(low, float) and isinstance(high, float) else (None, None)


def _say_untested(audit: AuditTables, words: Words) -> Iterator[str]:
    """Return the sentences on groups and attributes that were measured but not tested."""
    settings = audit.settings
    lacking = required_values(recorded=settings.selected is not None, labeled=settings.labeled)
    of_a_class = " in a class" if settings.labeled else ""
    reasons: dict[_Obstacle, str] = {
        "few": f"Too few {words.rows} for some comparisons (under {settings.min_rows}{of_a_class})",
        "no variance": "No test of the AUC, because its variance is unknown",
        "lonely": "No test of the AUC, because a stratum with a single sampling unit has no "
        "variance (set lonely to certainty or adjust)",
        "one class": "No AUC, because all outcomes are the same",
        "no rows": f"Not measured, because every row lacks a {lacking}",
    }
    obstacles = [*_find_obstacles(audit)]
    for obstacle, reason in reasons.items():
        # Several scores may share an obstacle.
        names = dict.fromkeys(name for name, found in obstacles if found == obstacle)
        if names:
            # Names of crossed groups contain commas.
            yield f"{reason}: {first_few([*names], '; ')}."
    if untested := _find_untested_attributes(audit.table):
        yield f"Nothing could be tested by {write_list(untested)}."


def _find_obstacles(audit: AuditTables) -> Iterator[tuple[str, _Obstacle]]:
    """Return the groups that were not tested, by reason."""
    settings = audit.settings
    aucs = audit.table.filter(metric=AUC)
    lonely = {*aucs.filter(reason=LONELY_UNIT).select(ALL_KEYS).rows()}
    no_variance = aucs.filter(reason=NO_VARIANCE).select(ALL_KEYS)
    without_variance = {*no_variance.rows()} if settings.by_design else set()
    for row in audit.segments.filter(pl.col("attribute") != OVERALL).iter_rows(named=True):
        if CROSSED in row["attribute"] and settings.intersections != "only":
            continue
        name = name_briefly(row["attribute"], row["segment"])
        sizes = [row[size] for size in ("n_pos", "n_neg") if row[size] is not None] or [row["n"]]
        if max(sizes) == 0:
            yield name, "no rows"
        elif min(sizes) == 0:
            yield name, "one class"
        elif min(sizes) < settings.min_rows:
            yield name, "few"
        elif find_segment_keys(row) in lonely:
            yield name, "lonely"
        elif find_segment_keys(row) in without_variance:
            yield name, "no variance"


def _find_untested_attributes(table: pl.DataFrame) -> list[str]:
    """Return the attributes without any test of a gap, unless no attribute has one."""
    gaps = table.filter(pl.col("attribute") != OVERALL, pl.col("metric").is_in([*GAP_METRICS]))
    tested = pl.col("p_value").is_not_null().any()
    attributes = gaps.group_by("attribute", maintain_order=True).agg(tested=tested)
    untested: list[str] = attributes.filter(~pl.col("tested"))["attribute"].to_list()
    if len(untested) == attributes.height:
        return []
    return [show_name(name) for name in untested]


def _say_uncalibrated(audit: AuditTables) -> Iterator[str]:
    """Return the sentence on scores whose calibration was not audited."""
    settings = audit.settings
    if not settings.labeled or not settings.score:
        return
    if settings.bins is not None:
        yield "Calibration was not audited: scores were counted in bins."
        return
    calibrated = {*audit.table.filter(metric=CALIBRATION_ERROR)[MODEL]}
    curves = audit.curves.filter(attribute=OVERALL)
    for model in curves[MODEL].unique(maintain_order=True):
        if model in calibrated:
            continue
        low, high = _find_scores(audit, model)
        scores = "outside 0 to 1"
        # In few rows the least and the greatest score may be those of a person.
        if low is not None and high is not None and settings.min_cell is None:
            scores = f"{write_threshold(low)} to {write_threshold(high)}"
        yield (
            f"The scores{_name_score(audit, model, 'of ')} are not probabilities ({scores}), so "
            "calibration was not audited."
        )


def say_unknown_slopes(audit: AuditTables) -> list[str]:
    """Return the sentence on probabilities whose slope is unknown, not necessarily good."""
    rows = audit.table.filter(pl.col("value").is_null(), attribute=OVERALL, metric=SLOPE)
    both = audit.segments.filter(pl.col("n_pos") > 0, pl.col("n_neg") > 0, attribute=OVERALL)
    return [
        f"The slope of the score{_name_score(audit, model)} is unknown: it needs scores between 0 "
        "and 1 of both classes, which overlap."
        for model in rows_with(rows, both.select(ALL_KEYS))[MODEL]
    ]


def _say_impossible(audit: AuditTables, words: Words) -> Iterator[str]:
    """Return the sentence on rows whose score of 0 or 1 ruled out what happened."""
    table = audit.further().calibration
    if table.is_empty():
        return
    found = table.filter(pl.col("n_impossible") > 0, attribute=OVERALL)
    for model, number in found.select(MODEL, "n_impossible").rows():
        score = f"a score of 0 or 1{_name_score(audit, model, 'by ')}"
        yield f"{number:,} {words.rows} with {score} did not come true."


def _say_numbers(segments: pl.DataFrame) -> list[str]:
    """Return the suggestion of ranges for attributes with many numbers as groups."""
    grouped = segments.drop_nulls("segment").group_by("attribute", maintain_order=True)
    read = pl.col("segment").cast(pl.Float64, strict=False)
    numbers = grouped.agg(n=pl.col("segment").n_unique(), numeric=read.is_not_null().all())
    found = numbers.filter("numeric", pl.col("n") > _NUMBERS).select("attribute", "n")
    return [
        f"Each of the {n:,} numbers in {attribute} is a group. To compare larger groups, cut it "
        f"into ranges: wroc.ranges({attribute!r}, [...]) in Python, or on the command line "
        f"--attribute {shlex.quote(f'{attribute}:...')}, with the numbers at which ranges begin."
        for attribute, n in found.rows()
    ]


def _say_spellings(segments: pl.DataFrame) -> list[str]:
    """Return the sentences on groups that differ only in capitals and white space."""
    alone = ~pl.col("attribute").str.contains(CROSSED, literal=True)
    others = segments.filter(alone, pl.col("attribute") != OVERALL).drop_nulls("segment")
    values = others.group_by("attribute", maintain_order=True).agg("segment")
    return [text for name, names in values.rows() for text in say_near_equal(name, names)]


def _say_taken_as_given(settings: AuditSettings) -> Iterator[str]:
    """Return the assumptions of an audit of these columns."""
    names = write_list([show_name(name) for name in settings.attributes])
    was = verb(len(settings.attributes), "was", "were")
    yield f"Only {names} {was} compared; other groups may differ."
    if settings.labeled and settings.label is not None:
        yield (
            f"The column {quote(settings.label)} is taken as the truth: the audit cannot detect "
            "bias in it."
        )
    elif settings.labeled:
        yield "Outcomes are taken as the truth: the audit cannot detect bias in them."
