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
    """The result of `audit`.

    Attributes
    ----------
    table
        DataFrame with a row per attribute, segment, score and metric: all rows together first
        (``attribute`` and ``segment`` are ``"overall"``), then attributes, segments and scores as
        given.

        * ``attribute, segment, model, metric`` (String): a null ``segment`` is the missing value.
          The metrics are ``auc`` and the rates ``selection_rate, tpr, fpr, ppv, npv``;
          ``average_precision`` and ``accuracy``, of which there are values only; ``impact_ratio``;
          ``mean_calibration_error`` and ``calibration_slope``, of scores from 0 to 1; and the
          fairness metrics of `fairness`.
        * ``n`` (Int64): rows that the value rests on: of a rate its denominator, of an AUC or a
          slope the smaller class.
        * ``value, value_low, value_high`` (Float64): the number of the segment with its confidence
          limits. An impact ratio has the rate of the favorable decision, a fairness metric the
          rate that it compares. Without a label there are ``selection_rate``, ``impact_ratio``,
          demographic parity and, with a score, ``standardized_mean_difference``.
        * ``reference`` (String): what the segment is compared with, ``"rest"``, ``"overall"`` or a
          segment; ``"target"`` in overall rows of calibration, null where nothing is compared.
        * ``n_reference`` (Int64), ``reference_value`` (Float64): its rows and its number.
        * ``gap, gap_low, gap_high`` (Float64): ``value - reference_value`` with limits; null for
          ratios.
        * ``ratio, ratio_low, ratio_high`` (Float64): ``value / reference_value`` with limits; null
          for AUCs, calibration and differences. Limits of impact ratios and fairness metrics hold
          for all pairs of segments together.
        * ``p_value, p_adjusted`` (Float64): of the comparison, null if it is not tested.
        * ``detectable`` (Float64): the smallest gap that would be found.
        * ``verdict`` (String): ``"different"``, ``"equivalent"`` or ``"inconclusive"``, of impact
          ratios ``"below four fifths"`` or ``"at least four fifths"``; null where
          nothing is compared.
        * ``reason`` (String): why there is no verdict or no test, such as ``"the reference"``,
          ``"undefined"`` or ``"fewer than 30 rows"``; ``"repeats x"`` where two segments are each
          the other's reference and ``x`` is the one that counts.
        * ``direction`` (String): ``"worse"`` or ``"better"`` for the segment, or ``"either"``; null
          without a verdict.
        * ``rank`` (Int64): place among the findings; null without a verdict, and for a repeat.
        * ``sentence`` (String): the row in words; null where nothing is compared.
    segments
        DataFrame with the rows of each segment: ``attribute, segment, model`` (String); ``n, n_pos,
        n_neg, n_missing, n_selected`` (Int64); ``w_pos, w_neg``, the weights of the classes,
        ``threshold, tp, fp, fn, tn`` (Float64). Without decisions what counts them is null, and
        without a label what counts classes.
    curves
        DataFrame with the ROC curve of each segment, thinned to at most 200 points, and
        ``auc_change``; empty without a label.
    distributions
        DataFrame with the distribution of a score in each segment, if there is no label, as
        `score_distribution` has it; with ``min_cell`` empty.
    missing
        DataFrame with ``column, n_missing``: the number of rows without a label, score, weight or
        attribute. A missing attribute is a segment; the other rows are left out. Null for an
        attribute whose segment of missing values is left out by ``min_cell``, unless there are that
        many rows of it that are left out of the totals too.
    findings
        The rows of ``table`` with a rank, the most serious first.
    verdict
        The findings in a few sentences.
    reading
        Who is selected, and whether that counts as good for a person: how the verdict is to be
        read. Empty without decisions.
    settings
        The arguments, as attributes.
    gates
        The conditions of the command line's ``--fail-if``, each with ``gate, met, n_judged, where,
        not_judged`` and a ``sentence``; without conditions empty.
    further
        A function that looks at the rows again when a report, Markdown or JSON is first made, and
        returns the tables ``calibration, equal_scores, exploration`` with the columns of
        `calibration_test`, without and with a reference, and of `worst_segments`: for scores that
        are probabilities the test of each segment, and its outcomes against those of the others,
        adjusted over all segments of the score; and, with two or more attributes, combinations of
        up to three values that are surely worse, where ``named`` marks segments of the audit. Until
        then the audit keeps the rows in memory; a pickled copy has none. Rows that exceed the
        memory, bins, repeated looks and ``min_cell`` leave some of the tables empty: ``left_out``
        says so.
    run
        When and how the audit was made: ``date, command, files, versions``, of which only the
        command line knows command and files; ``design_df``, the degrees of freedom of a survey;
        ``auc_error``, how far the AUCs of binned scores may be off; ``left_out``, the segments that
        are left out by ``min_cell``, each after its attribute; ``left_out_of_totals``, attributes
        of which only the segment of missing values was to be left out: rows without a value of
        these are in no table.
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
        """Return the values and gaps as a flat dictionary, such as for a logger of experiments.

        The keys are metric, attribute and segment, ``auc.race.black``, with several scores after
        the score, and ``auc.race.black.gap`` for a gap, ``.ratio`` for a ratio; of all rows
        ``auc``. ``impact_ratio.race.black`` is the ratio, and a fairness metric the difference or
        ratio that it is named for; the rate behind it ends with ``.value``. In names whatever is
        not an ASCII letter, a digit, ``_`` or ``-`` becomes ``_``, and 60 characters of it stay.
        Segments, or scores, that would have the same name get eight digits that follow from their
        own, whatever the others are. Undefined numbers are left out.

        MLflow takes these keys. Names of Prometheus have no ``.`` and ``-``: make a gauge of each
        metric of ``table`` instead, whose labels are attribute and segment, which may be any text;
        or replace both by ``_`` where no two names become the same.
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

        Without a label the rates of decisions are drawn, by None those of all attributes.

        Crossed attributes are drawn by the name that they have in ``segments``. Of more than 50
        segments those with the most rows are drawn.
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

        ``.html`` is one file with tables and charts that opens without a network; ``.md`` is a
        section of a model card or a comment; ``.json`` is as in `to_json`; ``.xlsx`` has a sheet
        for each table; ``.parquet`` and ``.csv`` have the ``table``. The file is written whole or
        not at all.
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
        """Return all but curves and distributions as JSON: the tables and how they came about.

        Null is undefined. A threshold that selects no row is ``"inf"``, for which JSON has no
        number. The schema is `polars_wroc/audits/audit-2.0.schema.json`; later versions 2.x may
        have more fields.
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
