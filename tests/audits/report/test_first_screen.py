"""What a reader of a report sees first, takes along and prints, in a real browser."""

from __future__ import annotations

import io
import itertools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from chromium import DRAWN, Chromium
from polars.testing import assert_frame_equal
from sweeps import sweep

import polars_wroc as wroc
from polars_wroc.audits.findings import by_severity
from polars_wroc.audits.report.facts import better_scores, intervals
from polars_wroc.audits.report.figures import calibration_figures, values_figure

CSS = Path(wroc.__file__).parent / "audits" / "report" / "templates" / "report.css"
OPTIONS: dict[str, Any] = {"threshold": 0.85, "favorable": "selected"}


@pytest.fixture(scope="module")
def audit(loans: pl.DataFrame) -> wroc.Audit:
    return wroc.audit(loans, "approved", "score", attributes=["race", "sex"], **OPTIONS)


@pytest.fixture(scope="module")
def page(audit: wroc.Audit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    audit.save(path)
    return path


def test_the_verdict_a_chart_of_values_and_a_count_come_first(
    page: Path, audit: wroc.Audit, chromium: Chromium
) -> None:
    chromium.show(page, until=DRAWN)
    order = chromium.evaluate(
        "[...document.querySelectorAll('.verdict, .chart, .counts, .matrix')].slice(0, 4)"
        ".map(one => one.id || one.className)"
    )
    assert order == ["verdict significant", "chart-selection_rate", "counts", "wide matrix"]
    verdict = chromium.evaluate("document.querySelector('.verdict').textContent")
    assert verdict.startswith("race = black is worse off: 56% are selected")
    assert "inconclusive" not in verdict
    findings = audit.findings.filter(pl.col("attribute") != "overall")
    counts = dict(findings["verdict"].value_counts().rows())
    said = chromium.evaluate("document.querySelector('.counts').textContent").split(
        "\N{MIDDLE DOT}"
    )
    kinds = [
        ("different", "below four fifths"),
        ("equivalent", "at least four fifths"),
        ("inconclusive",),
    ]
    assert said[0].split()[0] == "Comparisons:"
    found = [int(re.sub(r"\D", "", one.replace("5 points", ""))) for one in said]
    assert found == [sum(counts.get(word, 0) for word in kind) for kind in kinds]
    widths = chromium.evaluate(
        "[...document.querySelectorAll('.bar span')].map(e => e.getBoundingClientRect().width)"
    )
    assert widths[2] / widths[0] == pytest.approx(found[2] / found[0], rel=0.05)


def test_the_method_of_intervals_has_a_description(audit: wroc.Audit) -> None:
    assert intervals(audit)


def test_values_are_those_of_the_table_with_verdicts_of_the_audit(audit: wroc.Audit) -> None:
    spec = values_figure(audit, audit, "selection_rate").spec
    drawn = [row for row in spec["datasets"]["rows"] if row["kind"] == "row"]
    table = audit.table.filter(pl.col("attribute") != "overall", metric="selection_rate")
    assert len(drawn) == table.height
    names = {f"{row['segment'] or '(missing)'}  n = {row['n']:,}": row for row in table.to_dicts()}
    for row in drawn:
        expected = names[row["label"]]
        assert row["x"] == pytest.approx(expected["value"], rel=1e-4)
        assert row["mark"] == pytest.approx(expected["reference_value"], rel=1e-4)
        assert row["note"] == expected["verdict"]
        assert (row["tone"] != "none") == (expected["verdict"] == "different")


def test_the_chart_of_the_most_serious_finding_is_open(page: Path, chromium: Chromium) -> None:
    chromium.show(page, until=DRAWN)
    shown = chromium.evaluate(
        "[...document.querySelectorAll('section[aria-labelledby=section-2] .chart')]"
        ".filter(one => !one.closest('details')).map(one => one.id)"
    )
    assert shown == ["gap-2-selection_rate", "calibration-2", "scores-2", "chart-2"]


def test_calibration_curves_are_where_a_finding_is(audit: wroc.Audit, loans: pl.DataFrame) -> None:
    serious = by_severity(audit)
    assert calibration_figures(audit, "sex", 3, serious) == []
    curve, scores = calibration_figures(audit, "race", 2, serious)
    expected = wroc.calibration_curve(
        loans, "approved", "score", by="race", bins=8, strategy="quantile"
    )
    columns = ["mean_score", "observed_rate", "observed_rate_low", "observed_rate_high"]
    found = pl.DataFrame(curve.spec["datasets"]["rows"], infer_schema_length=None)
    names = ["panel", "x", "y", "low", "high"]
    found = found.filter(kind="dot").select(names)
    found = found.rename(dict(zip(names, ["race", *columns], strict=True)))
    found = found.sort("race", "mean_score")
    assert_frame_equal(
        found.select("race", *columns),
        expected.select("race", *columns),
        rel_tol=1e-4,
    )
    bins = pl.DataFrame(scores.spec["datasets"]["rows"], infer_schema_length=None)
    assert bins["n"].sum() == loans.height


def test_which_score_ranks_better_is_tested_on_the_same_rows() -> None:
    data = pl.read_parquet(Path(wroc.__file__).parent / "data" / "diabetes.parquet")
    given: Any = {"attributes": "sex", "weight": "weight"}
    both = wroc.audit(data, "progressed", ["score_b", "score"], **given)
    row = wroc.compare(data, "progressed", ["score", "score_b"], weight="weight").to_dicts()[0]
    low, high = row["gap_low"], row["gap_high"]
    (said,) = better_scores(both)
    assert said == (
        f"score ranks better than score_b: its AUC is {row['value']:.3f} against "
        f"{row['reference_value']:.3f}, {row['gap']:.3f} more ({low:.3f} to {high:.3f})."
    )
    like = data.with_columns(other=pl.col("score").round(1))
    (said,) = better_scores(wroc.audit(like, "progressed", ["score", "other"], **given))
    assert " is not shown to rank better than " in said
    assert better_scores(wroc.audit(data, "progressed", "score", **given)) == []


def test_the_legend_has_only_what_occurs(tmp_path: Path, chromium: Chromium) -> None:
    rng = np.random.default_rng(3)
    z = rng.normal(size=20_000)
    data = {"g": rng.choice([*"abc"], 20_000), "y": rng.random(20_000) < 1 / (1 + np.exp(-z))}
    frame = pl.DataFrame(data | {"s": 1 / (1 + np.exp(-z))})
    path = tmp_path / "fair.html"
    wroc.audit(
        frame, "y", "s", attributes="g", threshold=0.5, favorable="selected", margin=0.1
    ).save(path)
    chromium.open(path, until=DRAWN)
    keys = chromium.evaluate("[...document.querySelectorAll('.legend li')].map(e => e.innerText)")
    expected = (
        "\N{ALMOST EQUAL TO} equivalent within 10 points; impact ratio: the whole interval is at "
        "least four fifths"
    )
    assert [key.split() for key in keys] == [expected.split()]
    verdict = chromium.evaluate("document.querySelector('.verdict').textContent")
    assert re.fullmatch(
        r"No segment is shown to be worse off\. All \d+ comparisons of segments are equivalent "
        r"within 10\xa0points\. Both impact ratios are at least four fifths\.",
        verdict,
    )
    assert "most serious" not in chromium.evaluate("document.querySelector('.matrix').innerText")


def saved(chromium: Chromium, kind: str) -> str:
    """Text of the file that a button saves."""
    chromium.evaluate(
        "URL.createObjectURL = file => { window.saved = file.text(); return '#'; };"
        f"document.querySelector('[data-save={kind}]').click()"
    )
    chromium.wait("window.saved")
    text = str(chromium.evaluate("window.saved"))
    chromium.evaluate("delete window.saved")
    return text


def test_the_numbers_of_the_page_can_be_saved(
    page: Path, audit: wroc.Audit, chromium: Chromium
) -> None:
    chromium.open(page, until=DRAWN)
    document = json.loads(saved(chromium, "json"))
    expected = json.loads(audit.to_json())
    assert document.keys() == expected.keys()
    for name in expected.keys() - {"table", "further"}:
        assert document[name] == expected[name], name
    table = pl.DataFrame(document["table"], schema=audit.table.schema)
    assert_frame_equal(table, audit.table, rel_tol=1e-6)
    read = pl.read_csv(io.StringIO(saved(chromium, "csv")), schema=audit.table.schema)
    assert_frame_equal(read, audit.table, rel_tol=1e-6)
    assert chromium.requests == [page.as_uri()]


def test_tooltips_are_a_few_lines_of_words(page: Path, chromium: Chromium) -> None:
    chromium.open(page, until=DRAWN)
    lines = []
    for chart in ("chart-selection_rate", "chart-2"):
        place = chromium.evaluate(
            f"(() => {{ const one = document.querySelectorAll('#{chart} .mark-symbol path')[30]"
            f" || document.querySelector('#{chart} .mark-symbol path');"
            "one.scrollIntoView({block: 'center'}); const box = one.getBoundingClientRect();"
            "return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        chromium.call("Input.dispatchMouseEvent", type="mouseMoved", x=place[0], y=place[1])
        element = "document.getElementById('vg-tooltip-element')"
        chromium.wait(f"{element}?.classList.contains('visible')")
        lines.append(
            chromium.evaluate(f"[...{element}.querySelectorAll('p')].map(one => one.textContent)")
        )
    values, curve = lines
    assert re.fullmatch(r".+  n = [\d,]+", values[0])
    assert any(re.fullmatch(r"value \d+\.\d%", line) for line in values)
    assert all(2 <= len(each) <= 5 for each in lines)
    assert [line.rsplit(" ", 1)[0] for line in curve[1:4]] == [
        "selected from a score of",
        "false positive rate",
        "true positive rate",
    ]


@pytest.mark.slow
def test_paper_has_no_folded_lists_and_no_buttons(page: Path, chromium: Chromium) -> None:
    chromium.open(page, width=700, media="print", until=DRAWN)
    seen = "e => e.getClientRects().length > 0"
    for hidden in ("details:not([open])", ".options", ".contents", ".skip"):
        assert not chromium.evaluate(f"[...document.querySelectorAll('{hidden}')].some({seen})")
    chromium.open(page, until=DRAWN)
    # The choice is at the top, where a reader looks for it.
    place = "document.getElementById('print-folded').getBoundingClientRect().bottom"
    assert chromium.evaluate(place) < 250


# Machado, Oliveira and Fernandes (2009), severity 1, of linear red, green and blue.
BLINDNESS = {
    "protan": [
        *([0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216]),
        [-0.003882, -0.048116, 1.051998],
    ],
    "deutan": [
        *([0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413]),
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritan": [
        *([1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602]),
        [0.004733, 0.691367, 0.303900],
    ],
}
# Linear sRGB to XYZ, and white of D65.
TO_XYZ = [
    *([0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750]),
    [0.0193339, 0.1191920, 0.9503041],
]
WHITE = [0.95047, 1.0, 1.08883]


def seen_by(colour: str, eyes: list[list[float]]) -> np.ndarray[Any, Any]:
    """CIELAB of a colour as these eyes see it."""
    parts = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    x, y, z = np.array(TO_XYZ) @ np.clip(np.array(eyes) @ linear, 0, 1) / WHITE
    f, g, h = (t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116 for t in (x, y, z))
    return np.array([116 * g - 16, 500 * (f - g), 200 * (g - h)])


@pytest.mark.parametrize("eyes", sweep([*BLINDNESS]))
def test_colours_of_outcomes_differ_for_all_eyes(eyes: str) -> None:
    """Gaps of one size: CIE76 differences of more than 15; △ and ◆ must not look alike."""
    themes = CSS.read_text(encoding="utf-8").split("@media", 2)[:2]
    for theme in themes:
        colours = dict(re.findall(r"--((?:worse|better|either)-\d): (#\w{6})", theme))
        assert len(colours) == 12
        for size, pair in itertools.product(
            "1234", itertools.combinations(("worse", "better", "either"), 2)
        ):
            one, other = (seen_by(colours[f"{kind}-{size}"], BLINDNESS[eyes]) for kind in pair)
            assert np.linalg.norm(one - other) > 15, (eyes, size, pair)
