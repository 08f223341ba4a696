"""What an audit found of its scores and segments, in sentences that are made of its numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import polars as pl

from polars_wroc.audits.gap_findings import untested_attributes
from polars_wroc.audits.groupings import name_of, rows_with, segment_keys
from polars_wroc.audits.phrases import first_few, many, of_models, quoted, sized
from polars_wroc.audits.settings import AuditSettings
from polars_wroc.curves.calibration_error import IN_THE_LARGE
from polars_wroc.inputs.names import AUDIT_KEYS, MODEL, OVERALL

# Of more attributes than this only the one with the widest range of AUCs is named.
_RANGES = 3
# A share that differs so little from all is all.
_NOTHING = 1e-12
_NO_VARIANCE = (
    "{} {} an untested gap in AUC, as one of its AUCs has no variance, which a perfect ranking or "
    "a class of one row has not"
)
_BOTH = pl.min_horizontal("n_pos", "n_neg") > 0
_ANY = pl.max_horizontal("n_pos", "n_neg") > 0


def decision_findings(segments: pl.DataFrame) -> list[str]:
    """Say where a threshold selects nobody or everybody, so that nothing is decided."""
    if "selection_rate" not in segments.columns:
        return []
    found = []
    for everybody in segments.filter(attribute=OVERALL).iter_rows(named=True):
        share = everybody["selection_rate"]
        if share is None or _NOTHING < share < 1 - _NOTHING:
            continue
        whom = "nobody" if share <= _NOTHING else "everybody"
        score = f" of the score{quoted(everybody[MODEL])}" if MODEL in everybody else ""
        found.append(
            f"The threshold{score} selects {whom}, so that the decisions there tell no rows apart "
            "and no gap in them can be seen."
        )
    return found


def untested_findings(
    segments: pl.DataFrame, gaps: pl.DataFrame, settings: AuditSettings
) -> list[str]:
    """Say which segments were measured but not tested, and which attributes have no test."""
    least = settings.min_rows
    said = [
        (one_class_segments(segments), "{} {} rows of one class only, so that there is no AUC"),
        (
            empty_segments(segments),
            "{} {} no row that could be measured, as each lacks a label, score or weight",
        ),
    ]
    # Where nothing is tested the verdict says so, and why.
    tests = settings.cluster is None
    if tests:
        said = [
            (
                small_segments(segments),
                f"{{}} {{}} fewer than {least} rows in a class, too few to test a gap in AUC",
            ),
            (
                without_variance(segments, gaps, settings),
                _NO_VARIANCE,
            ),
            *said,
        ]
    found = [
        f"{text.format(many(one.height, 'segment'), 'has' if one.height == 1 else 'have')}: "
        f"{_listed(one)}"
        for one, text in said
        if not one.is_empty()
    ]
    if tests and (untested := untested_attributes(gaps)):
        found.append(f"Nothing could be tested by {', '.join(untested)}.")
    return found


def score_findings(segments: pl.DataFrame) -> list[str]:
    """Say how well each score ranks everybody, and how far its segments are apart.

    The range of AUCs is that of the segments with rows enough in both classes.
    """
    found = []
    for of_model in of_models(segments):
        everybody = of_model.row(0, named=True)
        name = f"The score{quoted(everybody.get(MODEL))}"
        if everybody["auc"] is None:
            found.append(f"{name} has no AUC: {_why_no_auc(everybody)}.")
            continue
        weighted = any(everybody[f"n_{side}"] != everybody[f"w_{side}"] for side in ("pos", "neg"))
        share = f"{everybody['auc']:.1%}{' of the weight' * weighted}"
        found.append(
            f"{name} has an AUC of {_auc(everybody)}: of the pairs of a positive and a negative, "
            f"it ranks {share} correctly, a tie as half."
        )
        if everybody["inverted"]:
            found.append(f"{name} ranks the wrong way around: its whole interval is below 0.5.")
        large = of_model.filter(~pl.col("small"))
        ranges = [
            one
            for of_attribute in large.partition_by("attribute", maintain_order=True)
            if of_attribute["attribute"][0] != OVERALL and (one := _range(of_attribute))
        ]
        if len(ranges) > _RANGES:
            ranges = [max(ranges, key=lambda one: one.width)]
        found += [one.text for one in ranges]
    return found


def _why_no_auc(everybody: dict[str, Any]) -> str:
    if not everybody["n"]:
        return "no row could be measured, as each lacks a label, score or weight"
    if everybody["n_pos"] and everybody["n_neg"]:
        return "the weights are too small or too large to be added up"
    return "the rows are all of one class"


def missing_finding(missing: pl.DataFrame) -> str | None:
    """Say in which columns values are missing, and in how many rows."""
    some = missing.filter(pl.col("n_missing") > 0)
    if some.is_empty():
        return None
    listed = [f"{name} in {many(rows, 'row')}" for name, rows in some.iter_rows()]
    return f"Values are missing: {', '.join(listed)}."


def small_segments(segments: pl.DataFrame) -> pl.DataFrame:
    """Segments, but for everybody, with both classes and too few rows in one, for some score."""
    return _distinct(segments.filter(pl.col("small"), _BOTH))


def one_class_segments(segments: pl.DataFrame) -> pl.DataFrame:
    """Segments, but for everybody, that have rows and lack a class, for some score."""
    return _distinct(segments.filter(_ANY, ~_BOTH))


def empty_segments(segments: pl.DataFrame) -> pl.DataFrame:
    """Segments, but for everybody, without a row that could be measured, for some score."""
    return _distinct(segments.filter(~_ANY))


def without_variance(
    segments: pl.DataFrame, gaps: pl.DataFrame, settings: AuditSettings
) -> pl.DataFrame:
    """Segments with rows enough whose gap in AUC has no variance to test it by."""
    known = pl.col("auc").is_not_null() & pl.col("auc_reference").is_not_null()
    enough = rows_with(gaps, segments.filter(~pl.col("small")).select(segment_keys(segments)))
    unknown = enough.filter(known, pl.col("auc_gap").is_null())
    unknown = settings.reference.without_references(unknown)
    return _distinct(unknown)


def _distinct(segments: pl.DataFrame) -> pl.DataFrame:
    others = segments.filter(pl.col("attribute") != OVERALL)
    return others.select(AUDIT_KEYS).unique(maintain_order=True)


def _listed(segments: pl.DataFrame) -> str:
    names = [f"{attribute} {name_of(segment)}" for attribute, segment in segments.rows()]
    return f"{first_few(names)}."


class _Range(NamedTuple):
    text: str
    width: float


def _range(segments: pl.DataFrame) -> _Range | None:
    ranked = segments.drop_nulls("auc").sort("auc").to_dicts()
    if len(ranked) < 2:  # noqa: PLR2004  (a range needs two)
        return None
    low, high = ranked[0], ranked[-1]
    text = (
        f"By {low['attribute']}, its AUC runs from {_auc(low)} in {sized(low)}, to "
        f"{_auc(high)} in {sized(high)}."
    )
    return _Range(text, high["auc"] - low["auc"])


def _auc(segment: dict[str, Any]) -> str:
    low, high = segment["ci_low"], segment["ci_high"]
    limits = "" if low is None else f" ({low:.3f} to {high:.3f})"
    return f"{segment['auc']:.3f}{limits}"


def calibration_findings(calibration: pl.DataFrame | None, settings: AuditSettings) -> list[str]:
    """Say how far the mean of each score is from the share of positives, and where most.

    Where most is asked of the segments with rows enough only.
    """
    if calibration is None:
        return []
    return [
        sentence
        for of_model in of_models(calibration)
        for sentence in _of_score(of_model, settings)
    ]


def _of_score(calibration: pl.DataFrame, settings: AuditSettings) -> list[str]:
    everybody = calibration.row(0, named=True)
    if everybody[IN_THE_LARGE] is None:
        return []
    share = "share" if settings.weight is None else "weighted share"
    of_everybody = (
        f"Read as a probability, the score{quoted(everybody.get(MODEL))} is "
        f"{everybody['mean_score']:.3f} on average, and the {share} of positives is "
        f"{everybody['observed_rate']:.3f}: {_difference(everybody)}."
    )
    # A row with a frequency is as many rows as that says.
    behind = "weight" if settings.weight_type == "frequency" else "n"
    enough = calibration.drop_nulls(IN_THE_LARGE).filter(
        pl.col("attribute") != OVERALL, pl.col(behind) >= settings.min_rows
    )
    if enough.height < 2:  # noqa: PLR2004  (a range needs two)
        return [of_everybody]
    ordered = enough.sort(IN_THE_LARGE).to_dicts()
    low, high = (
        f"{_difference(one)} in {one['attribute']} {sized(one)}"
        for one in (ordered[0], ordered[-1])
    )
    return [of_everybody, f"In the segments it is from {low}, to {high}; this is not tested."]


def _difference(one: dict[str, Any]) -> str:
    low, high = (one[f"{IN_THE_LARGE}_{end}"] for end in ("low", "high"))
    limits = "" if low is None else f" ({_off(low)} to {_off(high)})"
    return f"{_off(one[IN_THE_LARGE])}{limits}"


def _off(difference: float) -> str:
    size = f"{abs(difference):.3f}"
    if not float(size):
        return "about right"
    return f"{size} too {'high' if difference > 0 else 'low'}"
