"""What an audit found, and the ways to show and to keep it."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polars import selectors

from polars_wroc.audits.findings import findings_of
from polars_wroc.audits.groupings import rows_with
from polars_wroc.audits.tables import AuditTables
from polars_wroc.files import outputs
from polars_wroc.inputs.names import OVERALL
from polars_wroc.metrics.registry import SUMMARY_METRICS
from polars_wroc.thresholds.registry import GAP_RATES

if TYPE_CHECKING:
    import altair as alt

SUFFIXES = (".html", ".json", ".parquet", ".csv")
# Panels that one chart is still looked at with.
_PANELS = 50
# What a notebook shows of the segments.
SHOWN = (
    *("attribute", "segment", "model", "n", "n_pos", "small"),
    *(metric.column for metric in SUMMARY_METRICS if metric.in_short),
    *("ci_low", "ci_high", "threshold"),
    *(name for name, rate in GAP_RATES.items() if rate.in_short),
)


@dataclass(frozen=True, repr=False, eq=False)
class Audit(AuditTables):
    """What `audit` found.

    Attributes
    ----------
    segments
        One row per attribute and segment (and model), everybody first: ``attribute,
        segment`` and the columns of `summary`; ``small``, whether a class has too few rows for
        tests; with a threshold also ``n_selected``, the rows that are predicted positive, and the
        columns of `threshold_metrics` there, with intervals.
    curves
        The ROC curve of each of them, thinned to at most 200 points, with ``auc_change``.
    gaps
        How far each segment is from the reference, as `group_gaps` says; p-values are adjusted
        for all attributes and segments together.
    calibration
        The calibration in the large of each segment, as `calibration_error` says it; only of
        scores that are all from 0 to 1, and None where none is or rows were counted in bins.
    fairness
        The metrics of `fairness` for each attribute, but for ABROCA, over the segments with rows
        enough for each of them; None without a threshold.
    missing
        ``column`` and ``n_missing``: the rows that lack a label, score, weight or attribute. All
        but those that lack only an attribute are left out; a missing attribute is a segment.
    settings
        What was asked for; the command line adds the ``files``.
    """

    @property
    def settings(self) -> dict[str, Any]:
        """What was asked for, as a dictionary."""
        return self.asked.as_dict()

    def __repr__(self) -> str:
        return f"Audit of {self.asked.score} by {self.asked.by}\n{self.segments}"

    def _repr_html_(self) -> str:
        sentences = findings_of(self).sentences
        items = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in sentences)
        shown = [name for name in SHOWN if name in self.segments.columns]
        table = self.segments.select(shown).with_columns(selectors.float().round(3))
        return f"<ul>{items}</ul>{table._repr_html_()}"

    def chart(self, attribute: str | None = None) -> alt.LayerChart | alt.FacetChart:
        """Draw the ROC curves of one attribute's segments; None draws everybody's.

        Intersections are an attribute too, under the name that they have in ``segments``.
        Of more than 50 segments those with the most rows are drawn.
        """
        # Only a chart should cost the import of Altair.
        from polars_wroc.audits.charts import (  # noqa: PLC0415
            largest_segments,
            segments_chart,
        )

        known = self.segments["attribute"].unique(maintain_order=True).to_list()
        if attribute is not None and attribute not in known:
            msg = f"`attribute` must be one of {known}; found {attribute!r}"
            raise ValueError(msg)
        kept = largest_segments(self.segments, _PANELS)
        curves, segments = (rows_with(table, kept) for table in (self.curves, self.segments))
        return segments_chart(curves, segments, attribute or OVERALL)

    def save(self, path: str | Path) -> None:
        """Write the audit as its suffix says.

        ``.html`` is one file that opens without a network, with tables and charts;
        ``.json`` holds the settings and all tables but the curves; ``.parquet`` and ``.csv``
        the segments. The file is written whole or not at all.
        """
        suffix = outputs.check_target(path, SUFFIXES)
        if suffix == ".html":
            from polars_wroc.audits.report import render  # noqa: PLC0415

            page = render(self)
            outputs.write(path, lambda part: part.write_text(page, encoding="utf-8"))
        elif suffix == ".json":
            text = self.to_json()
            outputs.write(path, lambda part: part.write_text(text, encoding="utf-8"))
        else:
            outputs.save_table(self.segments, path)

    def to_json(self) -> str:
        """Write settings and tables, but for the curves, as JSON.

        A threshold that selects nobody is ``"Infinity"``, as JSON has no number for it.
        """
        result: dict[str, Any] = {
            "settings": {name: outputs.in_json(value) for name, value in self.settings.items()},
            "segments": outputs.rows_in_json(self.segments),
            "gaps": outputs.rows_in_json(self.gaps),
            "missing": outputs.rows_in_json(self.missing),
        }
        for name in ("calibration", "fairness"):
            table = getattr(self, name)
            if table is not None:
                result[name] = outputs.rows_in_json(table)
        return json.dumps(result, indent=2, allow_nan=False, default=outputs.text_of) + "\n"
