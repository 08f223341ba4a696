"""`Audit`: the result of an audit, which displays, draws and saves itself."""

from __future__ import annotations

import html
import re
import shutil
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import polars as pl
from polars import selectors

from polars_wroc.audits.findings import findings_of, first_sentences
from polars_wroc.audits.formats import SEGMENTS, in_markdown, in_text, json_of
from polars_wroc.audits.remarks import lacking, remarks_of
from polars_wroc.audits.table_pages import Screen
from polars_wroc.audits.tables import (
    AuditTables,
    keys_of,
    name_of,
    restricted,
    wide_table,
    without_model,
)
from polars_wroc.audits.verdicts import verdict_of
from polars_wroc.audits.words import reading_of
from polars_wroc.checks import did_you_mean, reject
from polars_wroc.files import outputs
from polars_wroc.groups.comparisons import NAMED_FOR
from polars_wroc.inputs.columns import OVERALL

if TYPE_CHECKING:
    import altair as alt


SUFFIXES = (".html", ".md", ".json", ".xlsx", ".parquet", ".csv")
# Most panels of a chart.
_PANELS = 50
# Most findings that a notebook shows.
_SENTENCES = 8
# What a notebook shows of the segments.
_SHOWN = ("auc", "auc_low", "auc_high", "threshold", "selection_rate", "tpr", "fpr")
# What in a name may not be part of the name of a number for a logger.
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
# MLflow takes 250 characters of a name, which has at most four parts and the number of equal ones.
_LONGEST = 60


@dataclass(frozen=True, repr=False, eq=False)
class Audit(AuditTables):
    """The result of `audit`: its tables, findings and reports.

    Print it for a first look, read ``verdict`` and ``findings``, and ``save`` it as a report.

    Attributes
    ----------
    table
        One row per attribute, segment, score and metric, all rows (``"overall"``) first: the
        columns of `group_gaps`, then ``direction`` (``"worse"``, ``"better"`` or ``"either"``),
        ``rank`` (place among the findings) and ``sentence``. Metrics: ``auc``, rates,
        ``impact_ratio``, ``average_precision``, ``accuracy``, those of `fairness`,
        ``mean_calibration_error`` and ``calibration_slope`` (compared with the ``"target"`` in
        overall rows). Limits of impact ratios and fairness metrics are joint.
    segments, curves, distributions, missing
        Rows, threshold and confusion matrix of each segment; ROC curves of at most 200 points;
        without a label, the distribution of the score; rows without a label, score, weight or
        attribute.
    settings, run
        The arguments, and how the audit was made, for example ``run.left_out`` for ``min_cell``.
    gates
        Conditions of ``--fail-if``: ``gate, met, n_judged, where, not_judged, sentence``.
    further
        Function that computes the tables of `calibration_test` and `worst_segments` for reports.
    """

    @property
    def findings(self) -> pl.DataFrame:
        """The rows of the table that are findings, the most serious first."""
        return findings_of(self.table)

    @property
    def verdict(self) -> str:
        """The findings in a few sentences."""
        return verdict_of(self).text

    @property
    def reading(self) -> str:
        """Who is selected, and whether that counts as good; empty without decisions."""
        return reading_of(self)

    def __repr__(self) -> str:
        width = shutil.get_terminal_size().columns
        return in_text(self, Screen(width, SEGMENTS, more_rows="see `segments`"))

    def _repr_html_(self) -> str:
        shown = [
            *([self.reading] if self.reading else []),
            self.verdict,
            *first_sentences(self.findings, _SENTENCES),
            *lacking(self),
            *remarks_of(self).untested,
        ]
        items = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in shown)
        table = without_model(wide_table(self), self.settings)
        columns = [name for name in ("n", "n_pos", *_SHOWN) if name in table.columns]
        columns = [name for name in columns if self.settings.labeled or table[name].count()]
        keys = keys_of(table)
        rounded = table.select(*keys, *columns).with_columns(selectors.float().round(3))
        return f"<ul>{items}</ul>{rounded._repr_html_()}"

    def metrics(self) -> dict[str, float]:
        """Return values and gaps as a flat dictionary, for example for MLflow.

        Keys are ``auc`` for all rows, ``auc.race.black`` for a segment (after the score, if there
        are several), and end with ``.gap``, ``.ratio`` or, for the rate behind a ratio, ``.value``.
        Other characters than ASCII letters, digits, ``_`` and ``-`` become ``_``.
        """
        numbers = dict[str, float]()
        keys = self.table.select("model", "attribute", "segment").rows()
        models = _named((model,) for model, *_ in keys)
        places = _named((attribute, name_of(segment)) for _, attribute, segment in keys)
        for row in self.table.iter_rows(named=True):
            place = places[row["attribute"], name_of(row["segment"])]
            named = [models[row["model"],]] * self.settings.several + [row["metric"]]
            named += [] if row["attribute"] == OVERALL else [place]
            key = ".".join(named)
            own = NAMED_FOR.get(row["metric"], "value")
            others = (column for column in ("value", "gap", "ratio") if column != own)
            found = {key: row[own]} | {f"{key}.{column}": row[column] for column in others}
            numbers |= {name: value for name, value in found.items() if value is not None}
        return numbers

    def chart(
        self, attribute: str | None = None
    ) -> alt.LayerChart | alt.FacetChart | alt.VConcatChart:
        """Draw the ROC curves of an attribute's segments; None draws the overall curve.

        Without a label, rates of decisions are drawn instead. Crossed attributes go by their name
        in ``segments``. At most 50 segments are drawn, those with the most rows.
        """
        # Only a chart should cost the import of Altair.
        from polars_wroc.audits.report import figures  # noqa: PLC0415

        known = self.segments["attribute"].unique(maintain_order=True).to_list()
        if attribute is not None and attribute not in known:
            hint = did_you_mean(attribute, known)
            reject("attribute", f"be one of {known}", f"{attribute!r}{hint}")
        drawn = restricted(self, figures.largest_segments(self.segments, _PANELS))
        if not self.settings.labeled:
            return figures.decisions_chart(drawn, attribute)
        return figures.segments_chart(drawn, attribute or OVERALL)

    def save(self, path: str | Path) -> None:
        """Write the audit in the format of the path's suffix.

        ``.html`` is a report in one file; ``.md`` a section of a model card; ``.json`` as
        `to_json`; ``.xlsx`` has a sheet for each table; ``.parquet`` and ``.csv`` the ``table``.
        """
        suffix = outputs.check_target(path, SUFFIXES)
        if suffix == outputs.WORKBOOK:
            tables = ("table", "segments", "curves", "distributions", "missing")
            sheets = {name: getattr(self, name) for name in tables}
            outputs.save_workbook({n: t for n, t in sheets.items() if t.height}, path)
            return
        if suffix == ".html":
            from polars_wroc.audits.report import render  # noqa: PLC0415

            text = render(self)
        elif suffix == ".md":
            text = in_markdown(self)
        elif suffix == ".json":
            text = self.to_json()
        else:
            outputs.save_table(self.table, path)
            return
        outputs.save_text(text, path)

    def to_json(self) -> str:
        """Return all but curves and distributions as JSON.

        Null is undefined; a threshold that selects no row is ``"inf"``. The schema is
        `polars_wroc/audits/audit-2.0.schema.json`; later versions 2.x may add fields.
        """
        return outputs.as_json(json_of(self))


def _named(places: Iterable[tuple[str | None, ...]]) -> dict[tuple[str | None, ...], str]:
    """Give each place a name for a logger, which does not depend on the order of places.

    Of those that would have the same name, only the one that is written so has it.
    """
    plain = {
        place: ".".join(_UNSAFE.sub("_", str(part))[:_LONGEST] for part in place)
        for place in places
    }
    taken = Counter(plain.values())
    names = {}
    for place, name in plain.items():
        written = ".".join(map(str, place))
        is_own = taken[name] == 1 or written == name
        names[place] = name if is_own else f"{name}_{crc32(repr(place).encode()):08x}"
    return names
