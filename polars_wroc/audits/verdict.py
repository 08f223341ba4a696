"""What an audit comes to, in a few sentences: who is worse off, on what, and what is not known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import polars as pl

from polars_wroc.audits.findings import findings_of
from polars_wroc.audits.sentences import in_short, share, size, span_of
from polars_wroc.audits.tables import (
    ALL_KEYS,
    AuditSettings,
    AuditTables,
    name_of,
    segment_in_words,
    wide_table,
)
from polars_wroc.audits.words import (
    Words,
    capitalised,
    first_few,
    many,
    of_models,
    quoted,
    required_values,
    sized,
)
from polars_wroc.curves.calibration_summary import IN_THE_LARGE
from polars_wroc.groups.auc_sums import GAP_METRICS
from polars_wroc.groups.comparisons import (
    ALIKE,
    CALIBRATION,
    DIFFERENT,
    IMPACT_RATIO,
    NO_VARIANCE,
    TARGET,
    TOO_LITTLE,
)
from polars_wroc.inputs.columns import AUDIT_KEYS, MODEL, OVERALL
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.stats.proportions import TOLERANCE

# Most metrics of the segment that is named first.
_METRICS = 3


class Verdict(NamedTuple):
    """The sentences, and how many comparisons have which outcome."""

    text: str
    counts: dict[str, int]


def counts_of_verdicts(findings: pl.DataFrame) -> dict[str, int]:
    """Count the comparisons with each verdict."""
    verdicts = (DIFFERENT, ALIKE, TOO_LITTLE)
    return {name: findings.filter(verdict=name).height for name in verdicts}


def verdict_of(audit: AuditTables) -> Verdict:
    """Sum up findings; each comparison of two segments counts once."""
    findings, words = findings_of(audit.table), Words.of(audit.settings)
    outcomes = counts_of_verdicts(findings)
    of_all = (pl.col("reference") == TARGET) & (pl.col("attribute") == OVERALL)
    different, whole = (findings.filter(some, verdict=DIFFERENT) for some in (~of_all, of_all))
    calibrated = pl.col("metric").is_in([*CALIBRATION])
    calibration, gaps = different.filter(calibrated), different.filter(~calibrated)
    worse, either = (gaps.filter(direction=side) for side in ("worse", "either"))
    sentences = []
    if not worse.is_empty():
        sentences += _named_first(worse, words, "is worse off")
    elif not either.is_empty():
        sentences += _named_first(either, words, "differs")
    elif not gaps.is_empty():
        # What is better for a segment is worse for the others.
        sentences += _named_first(gaps, words, "is better off")
    elif not calibration.is_empty():
        sentences += _named_first(calibration, words, "differs in calibration")
    rest = _others(outcomes, words)
    if sentences:
        sentences += [f"{capitalised(rest)}."] if rest else []
    elif not any(outcomes.values()):
        sentences.append("Nothing could be compared.")
    else:
        sentences.append(f"No segment is shown to be worse off{': ' if rest else ''}{rest}.")
    text = " ".join([*sentences, *whole["sentence"]])
    if not audit.settings.decides:
        text = f"Decisions were not audited. {text}"
    return Verdict(text, outcomes)


def _others(outcomes: Mapping[str, int], words: Words) -> str:
    """Count the comparisons that show no difference."""
    alike, little = outcomes[ALIKE], outcomes[TOO_LITTLE]
    parts = []
    if alike:
        are = "is" if alike == 1 else "are"
        parts.append(f"{many(alike, 'comparison')} {are} alike within {size(words.margin)} points")
    if little:
        have = "has" if little == 1 else "have"
        counted = f"{little:,}" if parts else many(little, "comparison")
        parts.append(f"{counted} {have} too little data")
    return " and ".join(parts)


def _named_first(findings: pl.DataFrame, words: Words, what: str) -> list[str]:
    """Name the segment with the most serious finding, on what, and the other segments."""
    keys = list(ALL_KEYS)
    places = findings.select(keys).unique(maintain_order=True)
    first = findings.join(places.head(1), on=keys, nulls_equal=True, maintain_order="left")
    shown = first.head(_METRICS).to_dicts()
    first_gap = next((n for n, one in enumerate(shown) if one["metric"] != IMPACT_RATIO), None)
    parts = [_against(one, words, with_reference=n == first_gap) for n, one in enumerate(shown)]
    sentences = [f"{_name(shown[0], words)} {what}: {'; '.join(parts)}."]
    others = [_name(one, words) for one in places[1:].to_dicts()]
    if others:
        several = len(others) > 1
        verb = (
            ("are" if several else "is") if what.startswith("is") else ("do" if several else "does")
        )
        # Crossed segments have commas in their names.
        sentences.append(f"So {verb} {first_few(others, separator='; ')}.")
    return sentences


def _name(finding: Mapping[str, Any], words: Words) -> str:
    model = f" (model {finding[MODEL]})" if words.several else ""
    return f"{segment_in_words(finding['attribute'], finding['segment'])}{model}"


def _against(finding: Mapping[str, Any], words: Words, *, with_reference: bool) -> str:
    """Say in a few words what the segment's number is, that of the reference, and the limits."""
    if finding["metric"] == IMPACT_RATIO:
        reference = segment_in_words(finding["attribute"], finding["reference"])
        low, high = finding["ratio_low"], finding["ratio_high"]
        return (
            f"{words.good} {finding['ratio']:.2f} times as often as {reference} ({low:.2f} to "
            f"{high:.2f}), surely below four fifths"
        )
    if finding["metric"] in CALIBRATION:
        return in_short(finding, words)
    metric = GAP_METRICS[finding["metric"]]
    value, other = (
        f"{finding[column]:.2f}" if metric is ROC_AUC else share(finding, column)
        for column in ("value", "reference_value")
    )
    both = metric.brief.format(
        positive=words.positive,
        negative=words.negative,
        selected=words.selected,
        rejected=words.rejected,
        value=value,
        other=other,
        of_rest=f" in {words.reference(finding)}" if with_reference else "",
    )
    low, high = finding["gap_low"], finding["gap_high"]
    if low is None:
        return both
    if metric is ROC_AUC and low * high > 0:
        least, most = sorted((abs(low), abs(high)))
        return f"{both} ({least:.2f} to {most:.2f} {'higher' if low > 0 else 'lower'})"
    return f"{both} ({span_of(low, high, finding)})"


# Of more attributes than this only the widest range of AUCs is described.
_RANGES = 3
# An AUC of chance.
_HALF = 0.5
# From more numbers than this ranges are suggested.
_NUMBERS = 50
_NO_VARIANCE = (
    "{} {} an untested gap in AUC, as one of its AUCs has no variance: its ranking is perfect, or "
    "a class has one row"
)
_NO_VARIANCE_BY_DESIGN = (
    "{} {} an untested gap in AUC, as one of its AUCs has rows in a stratum with a single sampling "
    "unit, whose variance is unknown"
)
_BOTH = pl.min_horizontal("n_pos", "n_neg") > 0
_ANY = pl.max_horizontal("n_pos", "n_neg") > 0


class Remarks(NamedTuple):
    """Sentences about what was not tested, and about the scores and their rows."""

    untested: list[str]
    scores: list[str]


def remarks_of(audit: AuditTables) -> Remarks:
    """Write what should be known beside the findings."""
    segments, settings = wide_table(audit), audit.settings
    missing = missing_remark(audit.missing)
    return Remarks(
        [
            *(decision_remarks(segments, settings) if settings.decides else []),
            *number_remarks(segments),
            *untested_remarks(segments, settings),
            *left_out_remarks(audit),
        ],
        [
            *score_remarks(segments, settings),
            *calibration_remarks(segments, settings),
            *([] if missing is None else [missing]),
        ],
    )


def decision_remarks(segments: pl.DataFrame, settings: AuditSettings) -> list[str]:
    """Name the thresholds, or the recorded decisions, that select no row or every row."""
    sentences = []
    for overall in segments.filter(attribute=OVERALL).iter_rows(named=True):
        share = overall["selection_rate"]
        if share is None or TOLERANCE < share < 1 - TOLERANCE:
            continue
        selected = "no row" if share <= TOLERANCE else "every row"
        if settings.selected is not None:
            sentences.append(f"The recorded decisions select {selected}: they are all the same.")
            continue
        score = f" of the score{_quoted(overall, settings)}"
        score = score if settings.several else ""
        sentences.append(
            f"The threshold{score} selects {selected}, so that all decisions there are the same."
        )
    return sentences


def _quoted(overall: Mapping[str, Any], settings: AuditSettings) -> str:
    return quoted(overall[MODEL] if settings.several else None)


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


def untested_remarks(segments: pl.DataFrame, settings: AuditSettings) -> list[str]:
    """Name the segments that were measured but not tested, and the attributes without a test."""
    least = settings.min_rows
    lacking = required_values(recorded=settings.selected is not None)
    said = [
        (
            small_segments(segments),
            f"{{}} {{}} fewer than {least} rows in a class, too few to test a gap in AUC",
        ),
        (
            without_variance(segments, settings),
            _NO_VARIANCE_BY_DESIGN if settings.by_design else _NO_VARIANCE,
        ),
        (one_class_segments(segments), "{} {} rows of one class only, so that there is no AUC"),
        (
            empty_segments(segments),
            f"{{}} {{}} no row that could be measured, as each lacks a {lacking}",
        ),
    ]
    sentences = [
        f"{text.format(many(one.height, 'segment'), 'has' if one.height == 1 else 'have')}: "
        f"{_listed(one)}"
        for one, text in said
        if not one.is_empty()
    ]
    if untested := _untested_attributes(segments):
        sentences.append(f"Nothing could be tested by {', '.join(untested)}.")
    return sentences


def left_out_remarks(audit: AuditTables) -> list[str]:
    """Name the segments that are not shown, and the rows that are not in the totals either."""
    least = audit.settings.min_cell
    missing = dict(audit.missing.rows())
    sentences = []
    for name in audit.run.left_out_of_totals:
        rows = missing[name]
        which = "Rows" if rows is None else many(rows, "row")
        sentences.append(
            f"{which} without a value of {name} are left out of all numbers, totals included: too "
            f"few to show, with fewer than {least} of a class or decision."
        )
    without = {f"{name} {name_of(None)}" for name in audit.run.left_out_of_totals}
    if names := [name for name in audit.run.left_out if name not in without]:
        why = (
            f"of fewer than {least} rows of a class or decision, or from which such could be "
            "computed"
        )
        listed = first_few(names, separator="; ")
        sentences.append(f"{many(len(names), 'segment')} not shown, {why}: {listed}.")
    return sentences


def score_remarks(segments: pl.DataFrame, settings: AuditSettings) -> list[str]:
    """Describe the overall AUC of each score, and the range of its AUCs over segments.

    The ranges of crossed segments, which are many and small, are left out, as they are mostly due
    to chance.
    """
    sentences, words = [], Words.of(settings)
    for of_model in of_models(segments):
        overall = of_model.row(0, named=True)
        name = f"The score{_quoted(overall, settings)}"
        if overall["auc"] is None:
            sentences.append(f"{name} has no AUC: {_why_no_auc(overall, settings)}.")
            continue
        share = f"{overall['auc']:.1%}{' of the weight' * (settings.weight is not None)}"
        sentences.append(
            f"{name} has an overall AUC of {_auc(overall)}: of one {words.positive} and one "
            f"{words.negative} it ranks the former higher in {share} of the pairs, where "
            "a tie counts half."
        )
        if overall["auc_high"] is not None and overall["auc_high"] < _HALF:
            sentences.append(
                f"{name} ranks the wrong way around: its confidence interval lies below 0.5."
            )
        ranges = [
            one
            for attribute in settings.attributes
            if (one := _range(of_model.filter(attribute=attribute), settings))
        ]
        if len(ranges) > _RANGES:
            ranges = [max(ranges, key=lambda one: one.width)]
        sentences += [one.text for one in ranges]
    return sentences


def _why_no_auc(overall: dict[str, Any], settings: AuditSettings) -> str:
    if not overall["n"]:
        lacking = required_values(recorded=settings.selected is not None)
        return f"no row could be measured, as each lacks a {lacking}"
    if overall["n_pos"] and overall["n_neg"]:
        return "the sums of weights overflow or underflow"
    return "the rows are all of one class"


def missing_remark(missing: pl.DataFrame) -> str | None:
    """Name the columns with missing values, and the number of rows."""
    some = missing.filter(pl.col("n_missing") > 0)
    if some.is_empty():
        return None
    listed = [f"{name} in {many(rows, 'row')}" for name, rows in some.iter_rows()]
    return f"Values are missing: {', '.join(listed)}."


def _untested_attributes(segments: pl.DataFrame) -> list[str]:
    """List the attributes without any test of a gap, unless no attribute has one."""
    names = [f"{name}_gap_p_value" for name in GAP_METRICS if name in segments.columns]
    tested = pl.any_horizontal(pl.col(names).is_not_null()).any()
    of_segments = segments.filter(pl.col("attribute") != OVERALL)
    of_attributes = of_segments.group_by("attribute", maintain_order=True).agg(tested=tested)
    untested: list[str] = of_attributes.filter(~pl.col("tested"))["attribute"].to_list()
    return untested if len(untested) < of_attributes.height else []


def small_segments(segments: pl.DataFrame) -> pl.DataFrame:
    """Segments with both classes, but too few rows in one of them, for some score."""
    return _distinct(segments.filter(pl.col("small"), _BOTH))


def one_class_segments(segments: pl.DataFrame) -> pl.DataFrame:
    """Segments with rows of one class only, for some score."""
    return _distinct(segments.filter(_ANY, ~_BOTH))


def empty_segments(segments: pl.DataFrame) -> pl.DataFrame:
    """Segments without a row that could be measured, for some score."""
    return _distinct(segments.filter(~_ANY))


def without_variance(segments: pl.DataFrame, settings: AuditSettings) -> pl.DataFrame:
    """Segments with enough rows whose gap in AUC has no variance to test it by."""
    unknown = pl.col("auc_gap_reason") == NO_VARIANCE
    return _distinct(segments.filter(~pl.col("small"), unknown, settings.needs_variance))


def _distinct(segments: pl.DataFrame) -> pl.DataFrame:
    others = segments.filter(pl.col("attribute") != OVERALL)
    return others.select(AUDIT_KEYS).unique(maintain_order=True)


def _listed(segments: pl.DataFrame) -> str:
    names = [segment_in_words(attribute, segment) for attribute, segment in segments.rows()]
    return f"{first_few(names)}."


class _Range(NamedTuple):
    text: str
    width: float


def _range(segments: pl.DataFrame, settings: AuditSettings) -> _Range | None:
    """Name the ends of the AUCs of the segments with enough rows, and small ones beyond them."""
    known = segments.drop_nulls("auc").sort("auc")
    large = known.filter(~pl.col("small")).to_dicts()
    if len(large) < 2:  # noqa: PLR2004  (a range needs two)
        return None
    low, high = large[0], large[-1]
    farthest = pl.max_horizontal(low["auc"] - pl.col("auc"), pl.col("auc") - high["auc"])
    beyond = known.filter(farthest > 0).sort(farthest, descending=True).to_dicts()
    text = f"its AUC runs from {_auc(low)} in {sized(low)}, to {_auc(high)} in {sized(high)}"
    if beyond:
        words = Words.of(settings)
        names = [
            f"{name_of(one['segment'])} ({_smaller_class(one, words)}) has {one['auc']:.3f}"
            for one in beyond
        ]
        least = f"at least {settings.min_rows} rows of each class"
        text = f"{text}, of the segments with {least}; {first_few(names)}"
    return _Range(f"By {low['attribute']}, {text}.", high["auc"] - low["auc"])


def _smaller_class(segment: dict[str, Any], words: Words) -> str:
    """Count the rows of the smaller class."""
    classes = {words.positive: segment["n_pos"], words.negative: segment["n_neg"]}
    name = min(classes, key=lambda name: classes[name])
    return f"{classes[name]:,.0f} {name}"


def _auc(segment: dict[str, Any]) -> str:
    low, high = segment["auc_low"], segment["auc_high"]
    limits = "" if low is None else f" ({low:.3f} to {high:.3f})"
    return f"{segment['auc']:.3f}{limits}"


def calibration_remarks(segments: pl.DataFrame, settings: AuditSettings) -> list[str]:
    """Compare the mean of each score with the proportion of positives, overall and by segment.

    The range over segments leaves out those with too few rows.
    """
    if IN_THE_LARGE not in segments.columns:
        return []
    weight = pl.col("w_pos") + pl.col("w_neg")
    with_rates = segments.with_columns(weight=weight, observed=pl.col("w_pos") / weight)
    return [
        sentence for of_model in of_models(with_rates) for sentence in _of_score(of_model, settings)
    ]


def _of_score(calibration: pl.DataFrame, settings: AuditSettings) -> list[str]:
    overall = calibration.row(0, named=True)
    if overall[IN_THE_LARGE] is None:
        return []
    share = "share" if settings.weight is None else "weighted share"
    of_all = (
        f"Read as a probability, the score{_quoted(overall, settings)} is "
        f"{overall['observed'] + overall[IN_THE_LARGE]:.3f} on average, and the {share} of those "
        f"{Words.of(settings).positive} is {overall['observed']:.3f}: {_difference(overall)}."
    )
    # Of crossed segments the range is mostly chance.
    enough = calibration.drop_nulls(IN_THE_LARGE).filter(
        pl.col("attribute").is_in(settings.attributes), pl.col("n") >= settings.min_rows
    )
    if enough.height < 2:  # noqa: PLR2004  (a range needs two)
        return [of_all]
    ordered = enough.sort(IN_THE_LARGE).to_dicts()
    low, high = (
        f"{_difference(one)} in {segment_in_words(one['attribute'], one['segment'])} "
        f"({many(one['n'], 'row')})"
        for one in (ordered[0], ordered[-1])
    )
    least = settings.min_rows
    over = f"Over the segments with at least {least} rows it ranges from {low}, to {high}."
    return [of_all, over]


def _difference(one: dict[str, Any]) -> str:
    low, high = (one[f"{IN_THE_LARGE}_{end}"] for end in ("low", "high"))
    limits = "" if low is None else f" ({_off(low)} to {_off(high)})"
    return f"{_off(one[IN_THE_LARGE])}{limits}"


def _off(difference: float) -> str:
    size = f"{abs(difference):.3f}"
    if not float(size):
        return "about right"
    return f"{size} too {'high' if difference > 0 else 'low'}"
