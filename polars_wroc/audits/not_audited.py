"""Limits of an audit: decisions without a threshold, rows without values, unknown categories."""

from __future__ import annotations

import polars as pl

from polars_wroc.audits.tables import AuditTables
from polars_wroc.audits.verdict import remarks_of
from polars_wroc.audits.words import first_few, many, of_models, quoted
from polars_wroc.curves.calibration_summary import IN_THE_LARGE
from polars_wroc.groups.categories import CROSSED
from polars_wroc.inputs.columns import AUDIT_KEYS, MODEL, OVERALL
from polars_wroc.inputs.decisions import seems_unknown


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
    are = "is" if len(found) == 1 else "are"
    text = f"{names} {are} compared like any other category"
    return [f"{text}. If this means that the value is not known, {remedy}."]


# A threshold that a reader may have had in mind, where the score is a probability.
_HALF = 0.5


def not_audited(audit: AuditTables) -> list[str]:
    """Say what was not audited or not tested, a sentence each."""
    return [
        *undecided(audit),
        *_uncalibrated(audit),
        *_left_out(audit),
        *unknown_remarks(audit),
        *remarks_of(audit).untested,
    ]


def unknown_remarks(audit: AuditTables) -> list[str]:
    """Name the segments that may be those of an unknown value."""
    return unknown_hint(audit.segments, "replace it with null")


def undecided(audit: AuditTables) -> list[str]:
    """Say that there are no decisions, if so, which comes before all else."""
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
    sentences = []
    for of_model in of_models(audit.curves.filter(attribute=OVERALL)):
        model = of_model[MODEL][0]
        if model in _calibrated(audit):
            continue
        of_score = f" of{quoted(model)}" if audit.settings.several else ""
        scores = _range_of(of_model, audit)
        sentences.append(
            f"Calibration{of_score} was not audited: scores {scores} are not probabilities."
        )
    return sentences


def _calibrated(audit: AuditTables) -> list[str]:
    """List the scores whose calibration was measured: those that may be probabilities."""
    models: list[str] = audit.table.filter(metric=IN_THE_LARGE)[MODEL].unique().to_list()
    return models


def _range_of(curve: pl.DataFrame, audit: AuditTables) -> str:
    """Name the least and the greatest score, which in few rows may be those of a person."""
    scores = curve["threshold"].filter(curve["threshold"].is_finite()).to_list()
    if not scores or audit.settings.min_cell is not None:
        return "outside 0 to 1"
    return f"from {min(scores):g} to {max(scores):g}"


def _left_out(audit: AuditTables) -> list[str]:
    """Count the rows that lack a value; those without an attribute are a segment."""
    settings = audit.settings
    sentences = []
    for name, rows in audit.missing.filter(pl.col("n_missing") > 0).rows():
        have = "has" if rows == 1 else "have"
        if name in audit.run.left_out_of_totals:
            continue
        if name in settings.attributes:
            sentences.append(f"{many(rows, 'row')} {have} no {name}: the segment (missing).")
        else:
            were = "was" if rows == 1 else "were"
            sentences.append(f"{many(rows, 'row')} {have} no {name}, and {were} left out.")
    return sentences
