"""`Audit`: the result of an audit, which displays, draws and saves itself."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import polars as pl

from polars_wroc.audits.answer import (
    count_comparisons,
    find_named_rows,
    say_all_rows,
    write_answer,
)
from polars_wroc.audits.audit_workbook import save_audit_workbook
from polars_wroc.audits.cautions import say_unknown_slopes
from polars_wroc.audits.context import compare_outcomes, write_decisions, write_title
from polars_wroc.audits.findings import findings_of, round_numbers
from polars_wroc.audits.formats import json_of
from polars_wroc.audits.page import write_document
from polars_wroc.audits.sections import write_report, write_summary
from polars_wroc.audits.tables import AuditTables, Further, name_of, restrict_audit, with_tables
from polars_wroc.audits.toned_audit import TonedAudit
from polars_wroc.checks import did_you_mean, reject
from polars_wroc.documents.blocks import TextBlock
from polars_wroc.documents.notebook import write_for_notebook
from polars_wroc.documents.text_writer import Terminal, write_text
from polars_wroc.files import outputs
from polars_wroc.groups.comparisons import NAMED_FOR
from polars_wroc.inputs.columns import OVERALL

if TYPE_CHECKING:
    import altair as alt


AUDIT_SUFFIXES = (".html", ".md", outputs.WORKBOOK, *outputs.TABLE_SUFFIXES)
# The reproducible digits of limits that are found by iteration.
_DIGITS = 7
# The most panels of a chart.
_PANELS = 50
# The line below the table in a notebook.
_HINT = 'audit.save("report.html") adds charts, all numbers and the method.'
# Characters that loggers do not accept in names.
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
# MLflow accepts names of 250 characters: at most four parts, and a number for equal ones.
_LONGEST = 60


@dataclass(frozen=True, repr=False, eq=False)
class Audit(AuditTables):
    """The result of `audit`: print it for a first look, and ``save`` it as a report.

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
        Rows, threshold and confusion matrix of each segment; ROC curves; without a label, the
        distribution of the score; rows without a label, score, weight or attribute.
    settings, run
        The arguments, and how the audit was made, for example ``run.left_out`` for ``min_cell``.
    gates
        Conditions of ``--fail-if``: ``gate, met, n_judged, where, not_judged, sentence``.
    further, ordered
        Function that computes further tables for reports; attributes whose groups have an order.
    """

    @property
    def findings(self) -> pl.DataFrame:
        """The rows of the table that are findings, the most serious first."""
        return findings_of(self.table)

    @property
    def verdict(self) -> str:
        """Who is worse off, on what, by how much and how sure that is, in a few sentences."""
        toned = TonedAudit.read(self)
        sentences = write_answer(toned)
        leading = next(iter(find_named_rows(toned)), None)
        if leading is not None and leading["tone"] == "worse" and self.settings.labeled:
            sentences += compare_outcomes(toned, leading)
        counted = []
        if leading is not None:
            sentences += say_all_rows(toned)
            counted.append(count_comparisons(toned))
        return " ".join(filter(None, [*sentences, *counted, *say_unknown_slopes(self)]))

    @property
    def reading(self) -> str:
        """Who is selected, and whether that counts as good; empty without decisions."""
        return write_decisions(TonedAudit.read(self))

    def __repr__(self) -> str:
        return write_text(write_summary(self), Terminal(shutil.get_terminal_size().columns))

    def _repr_html_(self) -> str:
        return write_for_notebook([*write_summary(self), TextBlock(_HINT, style="tally")])

    def metrics(self) -> dict[str, float]:
        """Return values and gaps as a flat dictionary, for example for MLflow.

        Keys are ``auc`` for all rows, ``auc.race.black`` for a segment (after the score, if there
        are several), and end with ``.gap``, ``.ratio`` or, for the rate behind a ratio, ``.value``.
        Other characters than ASCII letters, digits, ``_`` and ``-`` become ``_``.
        """
        numbers = dict[str, float]()
        keys = self.table.select("model", "attribute", "segment").rows()
        models = _name_records((model,) for model, *_ in keys)
        places = _name_records((attribute, name_of(segment)) for _, attribute, segment in keys)
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
        from polars_wroc.audits import figures  # noqa: PLC0415

        known = self.segments["attribute"].unique(maintain_order=True).to_list()
        if attribute is not None and attribute not in known:
            hint = did_you_mean(attribute, known)
            reject("attribute", f"be one of {known}", f"{attribute!r}{hint}")
        drawn = restrict_audit(self, figures.largest_segments(self.segments, _PANELS))
        if not self.settings.labeled:
            return figures.decisions_chart(drawn, attribute)
        return figures.segments_chart(drawn, attribute or OVERALL)

    def save(self, path: str | Path) -> None:
        """Write a file: ``.html``, ``.md``, ``.json``, ``.xlsx``, or the ``table``.

        ``.html`` is a report in one file; ``.md`` the same without charts; ``.xlsx`` has a sheet
        for each table, after one that says what they are. ``.csv``, ``.parquet`` and ``.ndjson``
        (or ``.jsonl``) have the ``table``; each line of ``.ndjson`` begins with ``time`` and
        ``title``, for a collector of logs.
        """
        suffix = outputs.check_target(path, AUDIT_SUFFIXES)
        if suffix == outputs.WORKBOOK:
            save_audit_workbook(self, self.verdict, path)
            return
        if suffix in (".html", ".md"):
            document = write_report(_steady(self), with_charts=suffix == ".html")
            text = write_document(document, write_title(self.settings), suffix)
        elif suffix == ".json":
            text = self.to_json()
        else:
            table = self.table
            if suffix in outputs.LINE_SUFFIXES:
                time, title = self.run.date.isoformat(), write_title(self.settings)
                table = table.select(pl.lit(time).alias("time"), pl.lit(title).alias("title"), "*")
            outputs.save_table(table, path)
            return
        outputs.save_text(text, path)

    def to_json(self) -> str:
        """Return all but curves and distributions as JSON.

        Null is undefined; a threshold that selects no row is ``"inf"``. The schema is
        `polars_wroc/audits/audit-2.0.schema.json`; later versions 2.x may add fields.
        """
        return outputs.as_json(json_of(self, reading=self.reading, verdict=self.verdict))


def _steady(audit: Audit) -> AuditTables:
    """Return an audit with rounded numbers, so that pages do not depend on the order of rows."""

    def look_further() -> Further:
        further = audit.further()
        tables: dict[str, Any] = {
            name: round_numbers(table, _DIGITS)
            for name, table in further._asdict().items()
            if isinstance(table, pl.DataFrame)
        }
        return further._replace(**tables)

    return replace(with_tables(audit, round_numbers), further=look_further)


def _name_records(places: Iterable[tuple[str | None, ...]]) -> dict[tuple[str | None, ...], str]:
    """Return a logger's name for each place, independent of the order of places.

    If several places would have the same name, only the one that is written so gets it.
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
