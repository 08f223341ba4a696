"""`Audit`: the result of an audit, which displays, draws and saves itself."""

from __future__ import annotations

import html
import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from polars import selectors

from polars_wroc.audits.findings import findings_of, first_sentences
from polars_wroc.audits.formats import SEGMENTS, dossier_of, in_markdown, in_text
from polars_wroc.audits.tables import AuditTables, rows_with
from polars_wroc.audits.text_table import Screen
from polars_wroc.audits.verdict import remarks_of, verdict_of
from polars_wroc.audits.words import reading_of
from polars_wroc.files import outputs
from polars_wroc.inputs.arguments import did_you_mean
from polars_wroc.inputs.columns import OVERALL
from polars_wroc.metrics.registry import SUMMARY_METRICS
from polars_wroc.thresholds.registry import GAP_RATES

if TYPE_CHECKING:
    import altair as alt


SUFFIXES = (".html", ".md", ".json", ".parquet", ".csv")
# Most panels of a chart.
_PANELS = 50
# Most findings that a notebook shows.
_SENTENCES = 8
# Columns of the segments that a notebook shows.
SHOWN = (
    *("attribute", "segment", "model", "n", "n_pos", "small"),
    *(metric.column for metric in SUMMARY_METRICS if metric.in_short),
    *("ci_low", "ci_high", "threshold"),
    *(name for name, rate in GAP_RATES.items() if rate.in_short),
)


@dataclass(frozen=True, repr=False, eq=False)
class Audit(AuditTables):
    """The result of `audit`.

    Attributes
    ----------
    segments
        DataFrame with one row per attribute and segment (and model), overall first: ``attribute,
        segment`` and the columns of `summary`; ``small``, whether a class has too few rows for
        tests; with a threshold or recorded decisions also ``n_selected``, the number of rows
        selected, and the columns of `threshold_metrics`, with confidence intervals.
    curves
        DataFrame with the ROC curve of each segment, thinned to at most 200 points, and
        ``auc_change``.
    gaps
        DataFrame with the gap of each segment to its reference, in the columns of `group_gaps`;
        p-values are adjusted for all attributes and segments together.
    calibration
        DataFrame with the calibration in the large of each segment, as in `calibration_error`, and
        ``n_extreme`` and the columns from ``oe_ratio`` on of `calibration_slope`; for both metrics
        also ``_reference`` (overall 0 and 1, of a calibrated score), ``_gap`` to it with its limits
        ``_gap_low, _gap_high``, ``_gap_p_value``, ``_gap_p_adjusted`` for all of these tests, and
        ``_gap_verdict``. Only of scores with all values from 0 to 1; None if there is no such
        score, or with bins. Intercepts and slopes are null in `audit_in_ranges` and
        `polars_wroc.dask.audit`, which adjust for fewer tests; by the design of a survey they have
        no limits and tests.
    fairness
        DataFrame with the metrics of `fairness`, except ABROCA, for each attribute; each compares
        the segments with enough rows for it. The p-value of ``auc_difference`` is the smallest of
        the gaps in AUC of the attribute's segments, adjusted for their number by Holm; null where
        they are compared with the best. None without decisions.
    impact
        DataFrame with the columns of `impact_ratios`, with its defaults, for each attribute and
        for the attributes crossed if these are audited. None without decisions, and where neither
        decision is favorable.
    missing
        DataFrame with ``column, n_missing``: the number of rows without a label, score, weight or
        attribute. A missing attribute is a segment; the other rows are left out. Null for an
        attribute whose segment of missing values is left out by ``min_cell``, unless there are that
        many rows of it that are left out of the totals too.
    findings
        DataFrame with one row per attribute, segment (and model) and metric, the most serious
        first: ``rank``; the keys; ``metric, value, reference, reference_value``; ``gap`` and
        ``ratio``, with ``_low`` and ``_high``; ``p_value, p_adjusted``; ``n_behind, n_reference``,
        the numbers of rows that both values are based on; ``material, side, verdict, reason,
        mirror, sentence``.
    verdict
        The findings in a few sentences.
    reading
        Who is selected, and whether that counts as good for a person: how the verdict is to be
        read. Empty without decisions.
    settings
        Dictionary of the arguments.
    gates
        The conditions of the command line's ``--fail-if``, each with ``condition, met, where,
        not_judged`` and a ``sentence``; without conditions empty.
    run
        When and how the audit was made: ``date, command, files, versions``. Only the command line
        knows its command and files.
    left_out
        Names of the segments that are left out by ``min_cell``, each after its attribute.
    left_out_of_totals
        Attributes of which only the segment of missing values was to be left out by ``min_cell``:
        rows without a value of these are in no table.
    enough_rows
        Which segments have ``min_rows`` rows: its ``table`` has, besides the keys, a Boolean column
        for each metric and, with the suffix ``_gap``, for the test of its gap.
    design_df
        Degrees of freedom of the design of a survey; None without a design.
    parameters
        The same as ``settings``, as attributes.
    """

    @cached_property
    def findings(self) -> pl.DataFrame:
        """A row for each segment and metric, the most serious first."""
        return findings_of(self)

    @property
    def verdict(self) -> str:
        """The findings in a few sentences."""
        return verdict_of(self.findings, self.parameters).text

    @property
    def reading(self) -> str:
        """Who is selected, and whether that counts as good; empty without decisions."""
        return reading_of(self)

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments of the audit, as a dictionary."""
        return self.parameters.as_dict()

    def __repr__(self) -> str:
        width = shutil.get_terminal_size().columns
        screen = Screen(width, SEGMENTS, more_rows="see `segments`")
        return in_text(self, self.findings, screen)

    def _repr_html_(self) -> str:
        untested = remarks_of(self).untested
        shown = [
            *([self.reading] if self.reading else []),
            self.verdict,
            *first_sentences(self.findings, _SENTENCES),
            *untested,
        ]
        items = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in shown)
        columns = [name for name in SHOWN if name in self.segments.columns]
        table = self.segments.select(columns).with_columns(selectors.float().round(3))
        return f"<ul>{items}</ul>{table._repr_html_()}"

    def chart(self, attribute: str | None = None) -> alt.LayerChart | alt.FacetChart:
        """Draw the ROC curves of an attribute's segments; None draws the overall curve.

        Crossed attributes are drawn by the name that they have in ``segments``. Of more than 50
        segments those with the most rows are drawn.
        """
        # Only a chart should cost the import of Altair.
        from polars_wroc.audits.charts import (  # noqa: PLC0415
            largest_segments,
            segments_chart,
        )

        known = self.segments["attribute"].unique(maintain_order=True).to_list()
        if attribute is not None and attribute not in known:
            hint = did_you_mean(attribute, known)
            msg = f"`attribute` must be one of {known}; found {attribute!r}{hint}"
            raise ValueError(msg)
        kept = largest_segments(self.segments, _PANELS)
        curves, segments = (rows_with(table, kept) for table in (self.curves, self.segments))
        return segments_chart(curves, segments, attribute or OVERALL, self.parameters.level)

    def save(self, path: str | Path) -> None:
        """Write the audit in the format of the path's suffix.

        ``.html`` is one file with tables and charts that opens without a network; ``.md`` is a
        section of a model card or a comment; ``.json`` is as in `to_json`; ``.parquet`` and
        ``.csv`` have the ``segments``. The file is written whole or not at all.
        """
        suffix = outputs.check_target(path, SUFFIXES)
        if suffix == ".html":
            from polars_wroc.audits.report import render  # noqa: PLC0415

            text = render(self)
        elif suffix == ".md":
            text = in_markdown(self, self.findings)
        elif suffix == ".json":
            text = self.to_json()
        else:
            outputs.save_table(self.segments, path)
            return
        outputs.write(path, lambda part: part.write_text(text, encoding="utf-8"))

    def to_json(self) -> str:
        """Return the findings, all tables except ``curves``, and how they came about, as JSON.

        Null is undefined. A threshold that selects no row is ``"inf"``, for which JSON has no
        number. The schema is `polars_wroc/audits/audit-1.0.schema.json`; later versions 1.x may
        have more fields.
        """
        return outputs.as_json(dossier_of(self, self.findings))
