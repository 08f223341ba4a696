"""An audit, or what changed between two, as one HTML page that opens without a network."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import altair as alt
import polars as pl

from polars_wroc.audits.audit_changes import (
    KINDS,
    Changes,
    not_significant,
    sentences_of,
    what_to_show,
)
from polars_wroc.audits.closer_look import ALONG_SCORES, EXPLORATION, exploration_sentences
from polars_wroc.audits.findings import findings_of
from polars_wroc.audits.findings import rounded as rounded_table
from polars_wroc.audits.formats import json_of
from polars_wroc.audits.remarks import lacking, not_audited, remarks_of
from polars_wroc.audits.report import facts
from polars_wroc.audits.report.figures import Figure, change_figure, figure_of
from polars_wroc.audits.report.matrix import SYMBOLS, blocks_of, matrix_of, shown_in
from polars_wroc.audits.report.sections import sections_of
from polars_wroc.audits.report.tables import Table, change_table, findings_on_page
from polars_wroc.audits.sentences import margin_in_points
from polars_wroc.audits.table_pages import Page, in_markdown, pages
from polars_wroc.audits.tables import AuditTables, Further, restricted, rows_with, with_tables
from polars_wroc.audits.verdicts import verdict_of
from polars_wroc.audits.words import (
    ABOVE,
    ADJUSTED,
    NOT_HERE,
    Words,
    adjustment_of,
    first_few,
    is_calibrated,
    many,
    reading_of,
    reference_of,
)
from polars_wroc.charts.gap_chart import gap_chart
from polars_wroc.charts.options import Show
from polars_wroc.documents import blocks
from polars_wroc.documents.table_layout import lay_out_columns
from polars_wroc.files.outputs import text_of
from polars_wroc.groups.comparisons import COMPARABLE, METRICS
from polars_wroc.inputs.columns import MISSING, OVERALL
from polars_wroc.looks import as_number

# Limits in brackets.
_LIMITS = re.compile(r"\([\N{MINUS SIGN}\d.,]+ to [\N{MINUS SIGN}\d]")


def render(audit: AuditTables) -> str:
    """Render the tables of an audit as a self-contained page.

    Raises
    ------
    ImportError
        When vl-convert-python is not installed, with the command that installs it.
    """
    audit = steady(audit)
    settings, findings = audit.settings, findings_of(audit.table)
    matrix = matrix_of(audit)
    sections = sections_of(audit, findings)
    figures = sections.figures
    places = {one.attribute: place for place, one in enumerate(sections.parts, 1)}
    blocks, explored = blocks_of(matrix), _exploration(audit)
    verdict, better = verdict_of(audit), facts.better_scores(audit)
    figures += explored
    shown = shown_in(blocks, findings)
    return page_of(
        "report.html",
        figures,
        _data_of(audit, shown),
        audit=audit,
        settings=settings,
        facts=facts,
        reading=reading_of(audit),
        verdict=verdict,
        better_scores=better,
        ranged=any(map(_LIMITS.search, [verdict.first, *verdict.of_all, *better])),
        next_steps=facts.next_steps(findings, places),
        matrix_table=matrix,
        blocks=blocks,
        symbols=SYMBOLS,
        references=sorted({reference_of(settings, attribute) for attribute in settings.attributes}),
        margin=margin_in_points(settings.margin),
        good=Words.of(settings).good,
        lacking=lacking(audit),
        not_audited=not_audited(audit)[len(lacking(audit)) :],
        findings=findings_on_page(audit, shown),
        remarks=remarks_of(audit),
        adjusted=adjustment_of(audit),
        files=first_few([file.name for file in audit.run.files]),
        sections=sections,
        parts=ALONG_SCORES,
        exploration=EXPLORATION,
        exploration_sentences=exploration_sentences(audit),
        exploration_figures=explored,
        calibrated=is_calibrated(audit),
    )


# As many digits as charts have: of limits that are computed in steps further ones differ.
_short = partial(rounded_table, digits=7)


def _data_of(audit: AuditTables, shown: pl.DataFrame) -> dict[str, Any]:
    """Return the audit as JSON has it, with the segments and about the digits of the page."""
    whole, verdict = audit.segments.filter(attribute=OVERALL), verdict_of(audit)
    kept = pl.concat([shown, whole.select(shown.columns)])
    # Segments that a search found have other names.
    further: dict[str, Any] = audit.further()._asdict()
    for name, table in further.items():
        if isinstance(table, pl.DataFrame) and table.height:
            named = name in ("exploration", "scores")
            further[name] = _short(table if named else rows_with(table, kept))
    of_page = with_tables(restricted(audit, kept), _short)
    of_page = replace(of_page, further=partial(Further, **further))
    return json_of(of_page) | {"verdict": {"text": verdict.text, "counts": verdict.counts}}


def _exploration(audit: AuditTables) -> list[Figure]:
    """Draw the segments that a search found, if any."""
    table = audit.further().exploration
    if table.height < 2:  # noqa: PLR2004  (the first row has all rows)
        return []
    mark = pl.when("named").then(
        pl.format("{} (named above)", pl.col("segment").fill_null(MISSING))
    )
    told = table.filter(pl.col("explained_by").is_null())
    drawn = told.with_columns(pl.coalesce(mark, "segment").alias("segment"))
    metric = COMPARABLE[drawn["metric"][0]]
    caption = (
        f"The gap in {metric.label} of each segment to all other rows, with limits that hold for "
        "all compared segments at once; the line marks no gap."
    )
    chart = gap_chart(drawn, metric=metric.column)
    return [figure_of("exploration-gaps", chart, f"{EXPLORATION}. {caption}", caption)]


def page_of(template: str, figures: Sequence[Figure], /, data: Any = None, **values: Any) -> str:
    """Render a template as a self-contained page with charts, and data that can be saved."""
    environment = pages()
    environment.filters["unbroken"] = unbroken
    environment.globals |= {"many": many, "not_here": NOT_HERE}
    words = {name: metric.label for name, metric in METRICS.items()}
    script = environment.get_template("report.js").render(above=ABOVE, words=words)
    scripts = [in_script(text) for text in (_bundle(), script)]
    return environment.get_template(template).render(
        specs=packed({"charts": {one.name: one.spec for one in figures}, "data": data}),
        scripts=scripts,
        hashes=[_hash(script) for script in scripts],
        **values,
    )


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


def packed(value: Any) -> str:
    """Encode data as compressed JSON in base64, always with the same bytes."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"), default=text_of)
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def steady(audit: AuditTables) -> AuditTables:
    """Round the numbers of an audit, so that a page is the same for any order of its rows."""
    return with_tables(audit, rounded_table)


# Limits, a p-value, and a number with its unit.
_PAIR = re.compile(r"(?<=\d) to (?=[+\N{MINUS SIGN}]?\d)|(?<=\bp) (?=[<\d])|(?<=<) (?=\d)")
_UNIT = re.compile(r"(?<=\d) (?=(?:points?|pairs?|rows?)\b)")
_SPACE = "\N{NO-BREAK SPACE}"


def unbroken(text: str) -> str:
    """Put spaces that do not break into pairs of numbers, and before units."""
    paired = _PAIR.sub(lambda found: found[0].replace(" ", _SPACE), text)
    return _UNIT.sub(_SPACE, paired)


# Most charts, and most changes that are not significant.
_CHARTS, _OTHERS = 4, 500


def render_tables(page: Page, *charts: Any) -> str:
    """Render a page of tables with charts below them.

    Raises
    ------
    ImportError
        When vl-convert-python is not installed, with the command that installs it.
    """
    description = f"Chart of {page.title}."
    figures = [
        figure_of(f"chart{number or ''}", chart, description, "")
        for number, chart in enumerate(charts)
    ]
    return page_of("tables.html", figures, page=page, figures=figures)


def changes_in_markdown(changes: Changes, names: tuple[str, str]) -> str:
    """Write the changes between the audits of these names as Markdown."""
    notable, others = changes.divided()
    sections = [_section(table) for table in _tables(changes, notable)]
    closing = [not_significant(others)] if others.height else []
    facts = {"Rows": " and ".join(_rows(changes))}
    return in_markdown(Page(_title(names), facts, sentences_of(changes), sections, closing))


def _title(names: tuple[str, str]) -> str:
    return f"What changed from {names[0]} to {names[1]}"


def _tables(changes: Changes, notable: pl.DataFrame) -> list[Table]:
    return [
        change_table(rows, kind.heading, changes)
        for kind in KINDS
        if not (rows := kind.rows(notable)).is_empty()
    ]


def _section(table: Table) -> blocks.Table:
    """Lay out a table of the page for Markdown, with its notes in brackets."""
    rows = [
        {name: " ".join([cell.text, *(f"({note})" for note in cell.notes)]) for name, cell in row}
        for row in table.rows
    ]
    keys = [name for name in ("Segment", "Score", "Metric") if name in rows[0]]
    return lay_out_columns(pl.DataFrame(rows), keys, title=table.title)


def render_changes(
    changes: Changes, names: tuple[str, str], metric: str | None = None, show: Show | None = None
) -> str:
    """Render the changes between the audits of these names, and the charts that are asked for.

    Raises
    ------
    ImportError
        When vl-convert-python is not installed, with the command that installs it.
    """
    notable, others = changes.divided()
    level = as_number(changes.level)
    figures = [
        change_figure(changes.table, each, show or what_to_show(each))
        for each in changes.most_changed(metric)[:_CHARTS]
    ]
    listed = others.head(_OTHERS)
    return page_of(
        "changes.html",
        figures,
        page_title=_title(names),
        title_line=_rows(changes),
        significant=not notable.filter(changes.significant).is_empty(),
        sentences=sentences_of(changes),
        figures=figures,
        tables=_tables(changes, notable),
        others=None if listed.is_empty() else change_table(listed, "Not significant", changes),
        others_counted=not_significant(others),
        left_out=others.height - listed.height,
        level=f"{100 * level:g}%",
        alpha=f"{1 - level:.2g}",
        adjusted=ADJUSTED[changes.adjust],
    )


def _rows(changes: Changes) -> list[str]:
    """Count the rows of both audits, where that is known."""
    return [
        f"{many(overall['n'], 'row')} {when}"
        for when in ("before", "after")
        for overall in getattr(changes, when).segments.filter(attribute=OVERALL).head(1).to_dicts()
        if overall.get("n") is not None
    ]
