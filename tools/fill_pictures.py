"""Draw the pictures of README and of the notebooks.

Look at them before you commit them. That of the report needs Chromium or Chrome.
"""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Callable
from pathlib import Path
from textwrap import wrap

import altair as alt
import polars as pl
import vl_convert
from chromium import Chromium, browser
from pictures import smaller
from site_navigation import ROOT

import polars_wroc as wroc

DATA = ROOT / "polars_wroc" / "data"
REPORT = ROOT / "notebooks" / "report.png"
# Pixels of a page's width, and of the picture for each of these.
_PAGE, _SCALE = 1200, 1
_INK = "#333333"
_KEY = (
    "Filled: significant after adjustment for the number of comparisons; the intervals are those "
    "of single comparisons. 15 applicants without a recorded sex are not shown."
)


def loan_audit() -> wroc.Audit:
    """Audit the loan applications of README."""
    return wroc.audit(
        pl.read_parquet(DATA / "loans.parquet"),
        "approved",
        "score",
        attributes=["race", "sex"],
        threshold=0.85,
        favorable="selected",
        text=wroc.Text(
            title="Loan score",
            note="The label is the lenders' own decision",
            people="applicants",
        ),
    )


def audit_picture() -> bytes:
    """Draw the verdict of an audit in words, and the gaps behind it."""
    audit = loan_audit()
    answer = audit.verdict.partition(" In the data, ")[0]
    gaps = audit.table.drop_nulls("segment")
    title = alt.TitleParams(
        "Whom does the score select less often? An audit of 1,989 loan applications",
        subtitle=[*wrap(answer, 106), *wrap(_KEY, 106)],
        anchor="start",
        fontSize=15,
        subtitleFontSize=12.5,
        subtitleLineHeight=17,
        subtitlePadding=7,
        color=_INK,
        subtitleColor=_INK,
        offset=8,
    )
    chart = wroc.gap_chart(gaps, metric="selection_rate", width=360).properties(title=title)
    return _png(chart, 1.74)


def roc_picture() -> bytes:
    """Draw ROC curves of two scores in three age bands."""
    curves = wroc.roc_curve(
        pl.read_parquet(DATA / "diabetes.parquet"),
        "progressed",
        ["score", "score_b"],
        weight="weight",
        by="age_band",
    )
    return _png(wroc.roc_chart(curves, color="model", facet="age_band"), 2)


def report_picture() -> bytes:
    """Show the top of a report in a browser: the answer, and all groups at a glance."""
    path = browser()
    assert path is not None, "a browser is needed: Chromium or Chrome"
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        loan_audit().save(page)
        opened = Chromium(path, Path(folder))
        try:
            opened.open(page, width=_PAGE)
            top, bottom = (
                opened.evaluate(f"document.querySelector({place!r}).getBoundingClientRect().{side}")
                for place, side in (("h1", "top"), (".glance", "bottom"))
            )
            clip = {
                "x": 0,
                "y": top - 12,
                "width": _PAGE,
                "height": bottom - top + 24,
                "scale": _SCALE,
            }
            shot = opened.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        finally:
            opened.close()
    return smaller(base64.b64decode(shot["data"]))


CHARTS: dict[Path, Callable[[], bytes]] = {
    ROOT / "docs" / "pictures" / "audit.png": audit_picture,
    ROOT / "notebooks" / "roc_by_age.png": roc_picture,
}


def _png(chart: alt.TopLevelMixin, scale: float) -> bytes:
    return smaller(vl_convert.vegalite_to_png(chart.to_dict(), scale=scale))


def renew() -> None:
    """Draw all pictures."""
    for path, draw in {**CHARTS, REPORT: report_picture}.items():
        path.write_bytes(draw())
