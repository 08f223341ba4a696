"""The report draws names as they are, and says what it has of which segment."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from chromium import DRAWN, Chromium
from plain_roc import weight_as
from sweeps import sweep

import polars_wroc as wroc

NAMES = ["white", "#333333", "#000000", "other"]


def rows(names: list[str], attribute: str = "g") -> pl.DataFrame:
    """As many rows of each segment, which differ little."""
    rng = np.random.default_rng(5)
    positive = rng.random(400) < 0.5
    score = rng.normal(size=400) + positive
    groups = np.resize(names, 400)
    return pl.DataFrame({attribute: groups, "y": positive, "s": score, "t": -score})


@pytest.mark.slow
@pytest.mark.parametrize("name", sweep(["parent's", 'a"b', "a.b[c]:d", "'a.b'"]))
def test_any_name_of_a_column_is_drawn(name: str, tmp_path: Path, chromium: Chromium) -> None:
    path = tmp_path / "report.html"
    wroc.audit(
        rows(["a'", 'b"', "c"], name),
        "y",
        "s",
        attributes=name,
        threshold=0.5,
        favorable="selected",
    ).save(path)
    chromium.open(path, until=DRAWN)
    assert chromium.printed == []
    drawn = chromium.evaluate("document.querySelector('#chart-2 svg').textContent")
    assert 'b"' in drawn


@pytest.mark.slow
@pytest.mark.parametrize(
    "column", sweep(["constructor", "hasOwnProperty", "a[0].b\\", "line\u2028separator"])
)
def test_a_page_of_names_of_javascript_is_drawn(
    column: str, tmp_path: Path, chromium: Chromium
) -> None:
    names = ["__proto__", "constructor", "toString", "hasOwnProperty", "a\u2028b", "a[0].b\\"]
    data = rows(names, column).rename({"s": "toString", "t": "valueOf"})
    path = tmp_path / "report.html"
    wroc.audit(
        data, "y", ["toString", "valueOf"], attributes=column, threshold=0.5, favorable="selected"
    ).save(path)
    chromium.open(path, until=DRAWN)
    assert chromium.printed == []
    empty = "[...document.querySelectorAll('.chart')].filter(e => !e.querySelector('svg')).length"
    assert chromium.evaluate(empty) == 0
    drawn = chromium.evaluate("document.querySelector('#gap-2 svg').textContent")
    assert all(name in drawn for name in names)


@pytest.mark.slow
def test_a_chart_that_fails_costs_no_other(tmp_path: Path, chromium: Chromium) -> None:
    path = tmp_path / "report.html"
    wroc.audit(
        rows(["a", "b"]), "y", "s", attributes="g", threshold=0.5, favorable="selected"
    ).save(path)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('id="chart-auc"', 'id="chart-lost"'), encoding="utf-8")
    chromium.open(path, until=DRAWN)
    assert len(chromium.printed) == 1
    empty = "[...document.querySelectorAll('.chart')].filter(e => !e.querySelector('svg'))"
    (said,) = chromium.evaluate(f"{empty}.map(e => e.innerText)")
    assert said.startswith("This chart could not be drawn: ")


@pytest.mark.slow
def test_headings_go_down_by_one_and_thresholds_sort_by_size(
    tmp_path: Path, chromium: Chromium
) -> None:
    path = tmp_path / "report.html"
    data = rows(["a", "b"]).with_columns(u=pl.col("s") * 10)
    # The row that scores best by t is a negative.
    result = wroc.audit(
        data,
        "y",
        ["t", "u", "s"],
        attributes="g",
        threshold=wroc.rules.max_fpr(0.0),
        favorable="selected",
    )
    thresholds = result.segments.filter(attribute="overall")["threshold"].to_list()
    assert thresholds[0] == float("inf")
    result.save(path)
    chromium.open(path, until=DRAWN)
    levels = chromium.evaluate(
        "[...document.querySelectorAll('h1, h2, h3, h4')].map(e => Number(e.tagName[1]))"
    )
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    table = "document.getElementById('table-1-2').parentElement"
    for turn in (1, -1):
        chromium.evaluate(f"{table}.tHead.rows[0].cells[2].querySelector('button').click()")
        shown = chromium.evaluate(
            f"[...{table}.tBodies[0].rows].map(row => row.cells[2].firstChild.textContent.trim())"
        )
        assert shown[::turn][-1] == "above every score"
        assert [float(one) for one in shown[::turn][:2]] == pytest.approx(
            sorted(thresholds[1:]), rel=1e-3
        )
    text = " ".join(str(chromium.evaluate("document.body.textContent")).split())
    assert "The threshold of the score “t” selects no row: all" in text
    assert "A row is positive where y is 1 or true; all rows have the same weight" in text
    assert (
        "a row is selected, that is predicted positive, if its score is at least the threshold"
        in text
    )
    assert "It is about the decision that is good for a person" in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("weight_type", "said", "kish"),
    [
        ("probability", "how much of the population a row represents", True),
        ("frequency", "the number of rows that a row represents", False),
    ],
)
def test_page_says_what_a_weight_means(
    tmp_path: Path, weight_type: Any, said: str, kish: bool
) -> None:
    path = tmp_path / "report.html"
    data = rows(["a", "b", "c"]).with_columns(w=pl.int_range(pl.len()) % 3)
    result = wroc.audit(
        data,
        "y",
        "s",
        attributes="g",
        weight=weight_as("w", weight_type),
        threshold=0,
        favorable="selected",
    )
    assert result.settings.as_dict()["frequency"] == (weight_type == "frequency")
    result.save(path)
    text = path.read_text(encoding="utf-8").split('<script type="text/plain"')[0]
    assert said in text
    assert ("Kish" in text) == kish
    assert "Its confidence interval is a score-type method" in text
    assert "all whose weight is not 0" in text


@pytest.mark.slow
def test_page_made_of_counts_names_scores_but_no_other_column(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    data = rows(["a", "b"]).with_columns(t=-pl.col("s"), w=pl.int_range(pl.len()) % 3)
    counts = wroc.score_counts(data, "y", ["s", "t"], by="g", weight="w")
    result = wroc.from_counts(counts).audit(attributes="g")
    assert (result.settings.as_dict()["score"], result.settings.as_dict()["label"]) == (
        ["s", "t"],
        None,
    )
    result.save(path)
    text = path.read_text(encoding="utf-8").split('<script type="text/plain"')[0]
    assert "<h1>Audit of s and t by g</h1>" in text
    audited = text[text.index('id="audited"') :]
    (first,) = re.findall('<p class="soft">(.*?)</p>', audited, re.DOTALL)[:1]
    assert "made from counts of positive and negative rows" in " ".join(first.split())
    assert "rows are weighted (a weight is" in " ".join(first.split())
    assert "<code>" not in first


@pytest.mark.slow
def test_intersections_have_a_chart() -> None:
    data = rows(["a", "b"]).with_columns(h=pl.int_range(pl.len()) // 200)
    result = wroc.audit(data, "y", "s", attributes=["g", "h"], intersections=True)
    for attribute in result.segments["attribute"].unique():
        assert result.chart(attribute).to_dict()["datasets"]
