"""An audit as one HTML page that opens without a network."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import altair as alt
import jinja2
import polars as pl

from polars_wroc.audits.findings import findings_of, first_sentences
from polars_wroc.audits.phrases import ADJUSTED, first_few
from polars_wroc.audits.remarks import remarks_of
from polars_wroc.audits.report.facts import (
    decision,
    design,
    facts,
    glossary,
    intervals,
    meaning_of_weight,
    methods,
    optimism,
)
from polars_wroc.audits.report.figures import (
    Figure,
    auc_figure,
    curves_figure,
    gap_figures,
    slider_figures,
)
from polars_wroc.audits.report.packing import packed
from polars_wroc.audits.report.selection import (
    PANEL_SEGMENTS,
    TABLE_SEGMENTS,
    with_models,
    with_points,
    with_segments,
)
from polars_wroc.audits.report.steady import steady
from polars_wroc.audits.report.tables import ABOVE, Table, tables_of
from polars_wroc.audits.tables import AuditTables
from polars_wroc.audits.verdict import verdict_of
from polars_wroc.inputs.names import MODEL, OVERALL
from polars_wroc.ranking.thinning import AUC_CHANGE
from polars_wroc.stats.proportions import TOLERANCE

# Most rows of the chart of all AUCs.
_FEW_ROWS = 60
# Most findings in sentences.
_FINDINGS = 12


class Section(NamedTuple):
    """The part of the page about an attribute; ``left_out`` describes what is not shown."""

    attribute: str
    tables: list[Table]
    gaps: list[Figure]
    curves: Figure
    sliders: list[Figure]
    left_out: list[str]

    @property
    def figures(self) -> list[Figure]:
        """All charts, in the order of the page."""
        return [*self.gaps, self.curves, *self.sliders]


def render(audit: AuditTables) -> str:
    """Render the tables of an audit as a self-contained page.

    Raises
    ------
    ImportError
        When vl-convert-python is not installed, with the command that installs it.
    """
    audit = steady(audit)
    listed = with_segments(audit, TABLE_SEGMENTS)
    charted = with_models(listed)
    drawn, points = with_points(with_segments(charted, PANEL_SEGMENTS))
    moved = max(drawn.curves[AUC_CHANGE].abs().drop_nulls().to_list(), default=0.0)
    slider = _slider_caption(points, moved=moved > TOLERANCE)
    attributes = audit.segments["attribute"].unique(maintain_order=True).to_list()
    sections = [
        Section(
            attribute,
            tables_of(audit, listed, attribute),
            gap_figures(charted, attribute, place),
            curves_figure(drawn, attribute, place),
            slider_figures(drawn, attribute, place, slider),
            _left_out(audit, listed, drawn, attribute),
        )
        for place, attribute in enumerate(attributes, 1)
    ]
    few = max(_FEW_ROWS // (len(attributes) * _scores(charted)), 2)
    overview = auc_figure(with_segments(charted, few), whole=audit)
    figures = [overview, *(figure for one in sections for figure in one.figures)]
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("polars_wroc.audits.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    settings, findings = audit.parameters, findings_of(audit)
    scripts = [in_script(text) for text in (_bundle(), _script(environment))]
    return environment.get_template("report.html").render(
        settings=settings,
        facts=facts(audit),
        verdict=verdict_of(findings, settings),
        findings=first_sentences(findings, _FINDINGS),
        remarks=remarks_of(audit),
        adjusted=ADJUSTED[settings.adjust],
        decision=decision(settings),
        optimism=optimism(audit),
        files=first_few([file.name for file in audit.run.files]),
        today=audit.run.date.date(),
        overview=overview,
        sections=sections,
        specs=packed({figure.name: figure.spec for figure in figures}),
        points=points,
        moved=moved if moved > TOLERANCE else None,
        glossary=glossary(audit),
        methods=methods(audit),
        intervals=intervals(audit),
        design=design(audit),
        weights=meaning_of_weight(settings),
        scripts=scripts,
        hashes=[_hash(script) for script in scripts],
    )


def _scores(audit: AuditTables) -> int:
    return audit.segments[MODEL].n_unique() if MODEL in audit.segments.columns else 1


def _slider_caption(points: int, *, moved: bool) -> str:
    thinned = (
        f" On a curve of more than {points} points they are those of the next higher "
        "threshold that is drawn; the tables use all rows."
    )
    return (
        "Move the slider: the points and the numbers are those of the rows whose score is at least "
        f"the threshold.{thinned if moved else ''}"
    )


def _left_out(
    audit: AuditTables, listed: AuditTables, drawn: AuditTables, attribute: str
) -> list[str]:
    """Describe what of a large audit is not on the page."""

    def count(table: pl.DataFrame, name: str) -> int:
        return table.filter(attribute=attribute)[name].n_unique()

    segments, sentences = count(audit.segments, "segment"), []
    if (shown := count(listed.segments, "segment")) < segments:
        sentences.append(
            f"The tables show {shown} of {segments:,} segments: those with significant "
            "gaps, then those with the most rows. The audit as JSON has all tables in full, as CSV "
            "or Parquet the metrics of all segments."
        )
    if (shown := count(drawn.segments, "segment")) < segments:
        sentences.append(
            f"The charts of curves show {shown} of {segments:,} segments, chosen in the same way."
        )
    if MODEL in audit.segments.columns:
        models = _scores(audit)
        if (shown := _scores(drawn)) < models:
            sentences.append(
                f"The charts show the first {shown} of {models} scores, as a chart has no more "
                "colours; the tables have all."
            )
    return sentences if attribute != OVERALL else sentences[-1:]


def _script(environment: jinja2.Environment) -> str:
    return environment.get_template("report.js").render(above=ABOVE)


def _bundle() -> str:
    """Return the code that draws charts; the same on every page, it is made once."""
    try:
        import vl_convert  # noqa: PLC0415  (an extra)
    except ImportError as error:
        msg = "an HTML report needs vl-convert-python: pip install 'polars-wroc[report]'"
        raise ImportError(msg) from error
    return _made(vl_convert.javascript_bundle)


@cache
def _made(bundle: Callable[..., str]) -> str:
    version = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    return str(bundle("window.vegaEmbed = vegaEmbed;", vl_version=version))


def in_script(code: str) -> str:
    """Escape code so that it cannot close the script element around it."""
    # Only where a tag would begin: "</" may also be the end of a pattern.
    return re.sub(r"<(?=/script|!--)", r"\\x3c", code, flags=re.IGNORECASE)


def _hash(script: str) -> str:
    """Hash a script, so that the page runs no other."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
