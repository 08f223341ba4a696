"""What an audit cannot show: rows and groups that are missing, and what it takes as given."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from polars_wroc.audits.amounts import write_percent
from polars_wroc.audits.hints import say_unknown
from polars_wroc.audits.tables import (
    ALL_KEYS,
    AuditSettings,
    AuditTables,
    name_of,
    rows_with,
    with_small,
)
from polars_wroc.audits.words import (
    Words,
    first_few,
    listed,
    many,
    name_briefly,
    quote,
    required_values,
    threshold_text,
    verb,
)
from polars_wroc.groups.categories import CROSSED
from polars_wroc.groups.comparisons import GAP_METRICS
from polars_wroc.inputs.columns import AUDIT_KEYS, MODEL, OVERALL
from polars_wroc.inputs.reasons import NO_VARIANCE
from polars_wroc.inputs.spellings import say_near_equal
from polars_wroc.metrics.calibration import CALIBRATION_ERROR, SLOPE
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.names import escape_controls

# From more numbers than this ranges are suggested.
_NUMBERS = 50


def write_cautions(audit: AuditTables, words: Words) -> list[str]:
    """Say what this audit cannot show, a sentence each, the most important first."""
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
    """Point out values that may be spelled in two ways, unknown, or numbers to be cut."""
    return [*_say_spellings(audit.segments), *say_unknown(audit), *_say_numbers(audit.segments)]


def say_not_given(settings: AuditSettings) -> list[str]:
    """Say that there is no label or no decision, if so."""
    if not settings.labeled:
        return ["No outcomes were given: whether the decisions were right cannot be seen."]
    if not settings.decides:
        return ["No threshold or decision was given: decisions were not audited."]
    return []


def say_missing(audit: AuditTables, words: Words) -> Iterator[str]:
    """Count the rows that lack a value; those without an attribute are a group."""
    settings = audit.settings
    for name, rows in audit.missing.filter(pl.col("n_missing") > 0).rows():
        shown = escape_controls(name)
        counted = f"{rows:,} {words.rows if rows != 1 or words.people else 'row'}"
        if name in audit.run.left_out_of_totals:
            continue
        if name in settings.attributes:
            have = verb(rows, "has", "have")
            yield f"{counted} {have} no recorded {shown}: the group {name_of(None)}."
        elif name == settings.label and settings.decides:
            yield from say_unlabeled(audit, words)
        else:
            what = f"a decision ({shown})" if name == settings.selected else shown
            yield f"{counted} without {what} {verb(rows, 'was', 'were')} left out."


def say_unlabeled(audit: AuditTables, words: Words) -> list[str]:
    """Say in which numbers the rows without a label are, if there are such rows."""
    settings = audit.settings
    if not settings.labeled or not settings.decides or "n_decided" not in audit.segments.columns:
        return []
    overall = audit.segments.filter(attribute=OVERALL)
    rows = overall.select((pl.col("n_decided") - pl.col("n")).max()).item() or 0
    if not rows:
        return []
    counted = f"{rows:,} {words.rows if rows != 1 or words.people else 'row'}"
    label = escape_controls(settings.label or "a label")
    counts = verb(rows, "counts", "count")
    sentence = (
        f"{counted} without {label} {counts} only where no outcome is needed: in selection rates, "
        "impact ratios and demographic parity."
    )
    return [sentence]


def say_left_out(audit: AuditTables, words: Words) -> Iterator[str]:
    """Name the groups that are not shown, and the rows that are not in the totals either."""
    least = audit.settings.min_cell
    kind = "class or decision" if audit.settings.labeled else "decision"
    missing = dict(audit.missing.rows())
    for name in audit.run.left_out_of_totals:
        rows = (
            words.rows.capitalize() if missing[name] is None else f"{missing[name]:,} {words.rows}"
        )
        yield (
            f"{rows} with no recorded {escape_controls(name)} are left out of all numbers, totals "
            f"included: too few to show, with fewer than {least} of a {kind}."
        )
    without = {f"{name} {name_of(None)}" for name in audit.run.left_out_of_totals}
    if names := [name for name in audit.run.left_out if name not in without]:
        few = f"fewer than {least} {words.rows} of a {kind}"
        why = f"{few}, or numbers that would give such a group away"
        shown = first_few([escape_controls(name) for name in names], separator="; ")
        yield f"{many(len(names), 'group')} not shown, with {why}: {shown}."


def _say_no_auc(audit: AuditTables) -> Iterator[str]:
    """Say of scores without an AUC of all rows why there is none."""
    for row in audit.table.filter(
        pl.col("value").is_null(), attribute=OVERALL, metric=ROC_AUC.column
    ).iter_rows(named=True):
        score = f"The score{f' {quote(row[MODEL])}' if audit.settings.several else ''} has no AUC"
        overall = rows_with(audit.segments, pl.DataFrame([{key: row[key] for key in ALL_KEYS}]))
        n, positives, negatives = overall.select("n", "n_pos", "n_neg").row(0)
        if not n:
            yield f"{score}: no row has all that is needed."
        elif positives and negatives:
            yield f"{score}: the sums of weights overflow or underflow."
        else:
            yield f"{score}: all outcomes are the same."


def _say_scale(audit: AuditTables) -> Iterator[str]:
    """Point out a threshold between 0 and 1 of scores that may be percentages."""
    threshold = audit.settings.threshold
    if not isinstance(threshold, float) or not 0 < threshold < 1:
        return
    overall = pl.col("attribute") == OVERALL
    rates = audit.table.filter(overall, metric="selection_rate").drop_nulls("value")
    for model, selected in rates.select(MODEL, "value").rows():
        curve = audit.curves.filter(overall, pl.col(MODEL).eq_missing(model))
        scores = curve["threshold"].filter(curve["threshold"].is_finite()).to_list()
        if not scores or min(scores) < 0 or max(scores) <= 1:
            continue
        named = f" of {quote(model)}" if audit.settings.several else ""
        # In few rows the least and the greatest score may be those of a person.
        places = f"from {threshold_text(min(scores))} to {threshold_text(max(scores))}"
        if audit.settings.min_cell is not None:
            places = "beyond 1"
        yield (
            f"The scores{named} go {places}, and the threshold of {threshold_text(threshold)} "
            f"selects {write_percent(selected)}: if the scores are percentages, use a threshold of "
            f"{threshold_text(100 * threshold)}."
        )


def _say_untested(audit: AuditTables, words: Words) -> Iterator[str]:
    """Name the groups that were measured but not tested, and the attributes without a test."""
    settings = audit.settings
    lacking = required_values(recorded=settings.selected is not None, labeled=settings.labeled)
    small, one_class, empty = find_untested(audit)
    of_class = " in a class" if settings.labeled else ""
    named = [
        (small, f"Too few {words.rows} for some comparisons (under {settings.min_rows}{of_class})"),
        (
            _find_without_variance(audit),
            "No test of the AUC, as a stratum with a single sampling unit has no variance",
        ),
        (one_class, "No AUC, as all outcomes are the same"),
        (empty, f"Not measured, as every row lacks a {lacking}"),
    ]
    for groups, why in named:
        if groups.height:
            names = [name_briefly(*keys) for keys in groups.rows()]
            # Names of crossed groups have commas.
            yield f"{why}: {first_few(names, '; ')}."
    if untested := _find_untested_attributes(audit.table):
        yield f"Nothing could be tested by {listed(untested)}."


def find_untested(audit: AuditTables) -> list[pl.DataFrame]:
    """Return the groups with too few rows in a class, those of one class, and empty ones."""
    segments = with_small(audit.segments, audit.settings.min_rows)
    crossed = pl.col("attribute").str.contains(CROSSED, literal=True)
    if audit.settings.intersections != "only":
        segments = segments.filter(~crossed)
    fewest = pl.coalesce(pl.min_horizontal("n_pos", "n_neg"), "n")
    most = pl.coalesce(pl.max_horizontal("n_pos", "n_neg"), "n")
    conditions = (pl.col("small") & (fewest > 0), (most > 0) & (fewest == 0), most == 0)
    return [_list_groups(segments.filter(condition)) for condition in conditions]


def _find_without_variance(audit: AuditTables) -> pl.DataFrame:
    """Return the groups with enough rows whose gap in AUC has no variance by the design."""
    large = with_small(audit.segments, audit.settings.min_rows).filter(~pl.col("small"))
    unknown = audit.table.filter(metric=ROC_AUC.column, reason=NO_VARIANCE).select(ALL_KEYS)
    return _list_groups(rows_with(large, unknown).filter(audit.settings.by_design))


def _list_groups(segments: pl.DataFrame) -> pl.DataFrame:
    others = segments.filter(pl.col("attribute") != OVERALL)
    return others.select(AUDIT_KEYS).unique(maintain_order=True)


def _find_untested_attributes(table: pl.DataFrame) -> list[str]:
    """List the attributes without any test of a gap, unless no attribute has one."""
    gaps = table.filter(pl.col("attribute") != OVERALL, pl.col("metric").is_in([*GAP_METRICS]))
    tested = pl.col("p_value").is_not_null().any()
    attributes = gaps.group_by("attribute", maintain_order=True).agg(tested=tested)
    untested: list[str] = attributes.filter(~pl.col("tested"))["attribute"].to_list()
    if len(untested) == attributes.height:
        return []
    return [escape_controls(name) for name in untested]


def _say_uncalibrated(audit: AuditTables) -> Iterator[str]:
    """Say of which scores calibration was not audited, and why."""
    settings = audit.settings
    if not settings.labeled or not settings.score:
        return
    if settings.bins is not None:
        yield "Calibration was not audited: scores were counted in bins."
        return
    calibrated = audit.table.filter(metric=CALIBRATION_ERROR)[MODEL].unique().to_list()
    curves = audit.curves.filter(~pl.col(MODEL).is_in(calibrated), attribute=OVERALL)
    for curve in curves.partition_by(MODEL, maintain_order=True):
        named = f" of {quote(curve[MODEL][0])}" if settings.several else ""
        scores = _write_range(curve, audit)
        yield f"The scores{named} are not probabilities ({scores}), so calibration was not audited."


def _write_range(curve: pl.DataFrame, audit: AuditTables) -> str:
    """Name the least and the greatest score, which in few rows may be those of a person."""
    scores = curve["threshold"].filter(curve["threshold"].is_finite()).to_list()
    if not scores or audit.settings.min_cell is not None:
        return "outside 0 to 1"
    return f"{threshold_text(min(scores))} to {threshold_text(max(scores))}"


def say_unknown_slopes(audit: AuditTables) -> list[str]:
    """Name the scores that are probabilities whose slope is unknown, which is no good slope."""
    rows = audit.table.filter(pl.col("value").is_null(), attribute=OVERALL, metric=SLOPE)
    both = audit.segments.filter(pl.col("n_pos") > 0, pl.col("n_neg") > 0, attribute=OVERALL)
    return [
        f"The slope of the score{f' {quote(row[MODEL])}' if audit.settings.several else ''} is "
        "unknown: it needs scores between 0 and 1 of both classes, which overlap."
        for row in rows_with(rows, both.select(ALL_KEYS)).iter_rows(named=True)
    ]


def _say_impossible(audit: AuditTables, words: Words) -> Iterator[str]:
    """Count the rows whose score of 0 or 1 ruled out what happened."""
    table = audit.further().calibration
    if table.is_empty():
        return
    found = table.filter(pl.col("n_impossible") > 0, attribute=OVERALL)
    for model, number in found.select(MODEL, "n_impossible").rows():
        score = f" by {quote(model)}" if audit.settings.several else ""
        yield f"{number:,} {words.rows} with a score of 0 or 1{score} did not come true."


def _say_numbers(segments: pl.DataFrame) -> list[str]:
    """Suggest ranges for attributes of many numbers, each of which is a group."""
    grouped = segments.drop_nulls("segment").group_by("attribute", maintain_order=True)
    read = pl.col("segment").cast(pl.Float64, strict=False)
    numbers = grouped.agg(n=pl.col("segment").n_unique(), numeric=read.is_not_null().all())
    found = numbers.filter("numeric", pl.col("n") > _NUMBERS).select("attribute", "n")
    return [
        f"Each of the {n:,} numbers in {attribute} is a group. To compare larger groups, cut it "
        f"into ranges: wroc.ranges({attribute!r}, [...]) in Python, or on the command line "
        f"--attribute '{attribute}:...', with the numbers at which ranges begin."
        for attribute, n in found.rows()
    ]


def _say_spellings(segments: pl.DataFrame) -> list[str]:
    """Name the groups that differ in capitals and white space alone."""
    alone = ~pl.col("attribute").str.contains(CROSSED, literal=True)
    others = segments.filter(alone, pl.col("attribute") != OVERALL).drop_nulls("segment")
    values = others.group_by("attribute", maintain_order=True).agg("segment")
    return [text for name, names in values.rows() for text in say_near_equal(name, names)]


def _say_taken_as_given(settings: AuditSettings) -> Iterator[str]:
    """Say what an audit of these columns cannot show."""
    names = listed([escape_controls(name) for name in settings.attributes])
    was = verb(len(settings.attributes), "was", "were")
    yield f"Only {names} {was} compared; other groups may differ."
    if settings.labeled and settings.label is not None:
        yield (
            f"The column {quote(settings.label)} is taken as the truth: the audit cannot detect "
            "bias in it."
        )
    elif settings.labeled:
        yield "Outcomes are taken as the truth: the audit cannot detect bias in them."
