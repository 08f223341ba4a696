"""Charts and reports of names that hold what no SVG may: control characters and their like."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import polars as pl
import pytest
import vl_convert
from sweeps import sweep

import polars_wroc as wroc
from polars_wroc.charts.options import visible

FORBIDDEN = [*map(chr, [*range(9), *range(0xB, 0x20), *range(0x7F, 0xA0), 0xFFFE, 0xFFFF])]
HOSTILE = "g\x00\x07\x1b\x85\ufffe"
COSTS: dict[str, Any] = {"cost_fn": 5, "cost_fp": 1}


def rows(names: list[str], column: str) -> pl.DataFrame:
    random = np.random.default_rng(3)
    label = np.arange(60 * len(names)) % 3 == 0
    score = np.clip(random.normal(0.4 + 0.2 * label, 0.2), 0.01, 0.99)
    decided = {"y": label, "s": score, "t": 1 - score, "d": score > 0.5}
    return pl.DataFrame({column: np.repeat(names, 60), **decided})


def decided_audit(frame: pl.DataFrame, by: str, threshold: float) -> wroc.Audit:
    return wroc.audit(frame, "y", "s", attributes=by, threshold=threshold, favorable="selected")


CHARTS: dict[str, Callable[[pl.DataFrame, str], Any]] = {
    "roc_chart": lambda f, g: wroc.roc_chart(
        wroc.roc_curve(f, "y", "s", by=g), summary=wroc.summary(f, "y", "s", by=g), color=g, ks=True
    ),
    "pr_chart": lambda f, g: wroc.pr_chart(wroc.pr_curve(f, "y", "s", by=g), facet=g),
    "det_chart": lambda f, g: wroc.det_chart(wroc.roc_curve(f, "y", "s", by=g), color=g),
    "gain_chart": lambda f, g: wroc.gain_chart(wroc.roc_curve(f, "y", "s", by=g), color=g),
    "cost_chart": lambda f, g: wroc.cost_chart(wroc.roc_curve(f, "y", "s", by=g), facet=g, **COSTS),
    "decision_chart": lambda f, g: wroc.decision_chart(
        wroc.decision_curve(f, "y", "s", by=g), color=g
    ),
    "calibration_chart": lambda f, g: wroc.calibration_chart(
        wroc.calibration_curve(f, "y", "s", by=g), color=g
    ),
    "distribution_chart": lambda f, g: wroc.distribution_chart(
        wroc.score_distribution(f, "s", label="y", by=g), facet=g
    ),
    "threshold_chart": lambda f, g: wroc.threshold_chart(
        wroc.roc_curve(f, "y", "s", by=g), facet=g
    ),
    "rates_chart": lambda f, g: wroc.rates_chart(
        wroc.threshold_metrics(f, "y", "s", by=g), facet=g
    ),
    "auc_chart": lambda f, g: wroc.auc_chart(wroc.summary(f, "y", "s", by=g)),
    "gap_chart": lambda f, g: wroc.gap_chart(wroc.group_gaps(f, "y", "s", attributes=g)),
    "time_chart": lambda f, g: wroc.time_chart(
        wroc.trend(f.with_columns(t=pl.col("s") > 0), "y", "s", over="t", attributes=g)
    ),
    "matrix_chart": lambda f, g: wroc.matrix_chart(wroc.cross_auc(f, "y", "s", by=g)),
    "tradeoff_chart": lambda f, g: wroc.tradeoff_chart(
        wroc.equalized_thresholds(f, "y", "s", by=g, **COSTS)
    ),
}


def test_all_charts_are_drawn() -> None:
    assert {name for name in wroc.__all__ if name.endswith("_chart")} == set(CHARTS)


def check(name: str, names: list[str], column: str) -> None:
    chart = CHARTS[name](rows(names, column), column)
    spec = json.dumps(chart.to_dict(), ensure_ascii=False)
    # What is in the specification was escaped, whatever draws it.
    assert not any(json.dumps(sign, ensure_ascii=False)[1:-1] in spec for sign in HOSTILE[1:])
    # The chart of trade-offs has a row for all groups together.
    if name != "tradeoff_chart":
        for text in (vl_convert.vegalite_to_svg(spec), spec):
            assert r"g\x00" in text.replace("\\\\", "\\")
    assert vl_convert.vegalite_to_png(spec).startswith(b"\x89PNG")
    ET.fromstring(vl_convert.vegalite_to_svg(spec))  # noqa: S314  (it was made here)


@pytest.mark.parametrize("name", sweep(CHARTS, fast=3))
def test_names_are_escaped_visibly(name: str) -> None:
    check(name, [HOSTILE, "plain", r"g\x00\x07\x1b\x85\ufffe"], f"by {HOSTILE}")


@pytest.mark.slow
@pytest.mark.parametrize("name", CHARTS)
@pytest.mark.parametrize("start", range(0, len(FORBIDDEN), 16))
def test_each_forbidden_character(name: str, start: int) -> None:
    some = [f"{HOSTILE}{sign}" for sign in FORBIDDEN[start : start + 16]]
    check(name, [*some, "plain"], f"by {HOSTILE}{''.join(FORBIDDEN)}")


def test_titles_are_escaped() -> None:
    curves = wroc.roc_curve(rows(["a"], "g"), "y", "s")
    chart = wroc.roc_chart(curves, title=f"Title {HOSTILE}")
    text = vl_convert.vegalite_to_svg(json.dumps(chart.to_dict()))
    assert r"Title g\x00\x07\x1b" in text
    ET.fromstring(text)  # noqa: S314  (it was made here)


@pytest.mark.slow
def test_reports_are_escaped(tmp_path: Path) -> None:
    column = f"by {HOSTILE}"
    audit = wroc.audit(
        *(rows([HOSTILE, "plain"], column), "y", "s"),
        attributes=column,
        threshold=0.5,
        favorable="selected",
        text=wroc.Text(title=f"Title {HOSTILE}", note=HOSTILE, positive=HOSTILE),
    )
    for suffix in ("html", "md"):
        audit.save(tmp_path / f"x.{suffix}")
        text = (tmp_path / f"x.{suffix}").read_text("utf-8")
        # Code of the page is its own.
        page = text.split("<script", maxsplit=1)[0]
        assert not any(sign in page for sign in FORBIDDEN)
        assert r"g\x00\x07" in page.replace("\\\\", "\\")
    assert not any(sign in repr(audit) for sign in FORBIDDEN)


def test_only_what_cannot_be_drawn_is_escaped() -> None:
    assert visible("\x07 \x85 \ufffe") == r"\x07 \x85 \ufffe"
    assert visible("a\tb\nc é 日本 \N{ZERO WIDTH SPACE}") == "a\tb\nc é 日本 \N{ZERO WIDTH SPACE}"
