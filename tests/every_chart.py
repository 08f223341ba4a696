"""Every chart of the same rows, and measures of its colours: for tests of all charts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import vl_convert

import polars_wroc as wroc


def make_rows(names: list[str], rows: int = 60) -> pl.DataFrame:
    """Rows of each group, with both classes, two scores and two months."""
    rng = np.random.default_rng(3)
    n = rows * len(names)
    label = np.arange(n) % 3 == 0
    score = np.clip(rng.normal(0.4 + 0.2 * label, 0.2), 0.01, 0.99)
    return pl.DataFrame(
        {
            "g": np.repeat(names, rows),
            "h": np.tile(["m", "f"], n // 2),
            "y": label,
            "s": score,
            "t": 1 - score,
            "month": np.arange(n) % 2,
        }
    )


COSTS: Any = {"cost_fn": 5, "cost_fp": 1}
Draw = Callable[..., Any]
CHARTS: dict[str, Draw] = {
    "roc_chart": lambda d, s, **o: wroc.roc_chart(
        wroc.roc_curve(d, "y", s, by="g"), summary=wroc.summary(d, "y", s, by="g"), **o
    ),
    "det": lambda d, s, **o: wroc.roc_chart(wroc.roc_curve(d, "y", s, by="g"), det=True, **o),
    "pr_chart": lambda d, s, **o: wroc.pr_chart(wroc.pr_curve(d, "y", s, by="g"), **o),
    "gain_chart": lambda d, s, **o: wroc.gain_chart(wroc.roc_curve(d, "y", s, by="g"), **o),
    "rates_chart": lambda d, s, **o: wroc.rates_chart(
        wroc.threshold_metrics(d, "y", s, by="g"), rates=["tpr"], threshold=0.5, **o
    ),
    "decision_chart": lambda d, s, **o: wroc.decision_chart(
        wroc.decision_curve(d, "y", s, by="g"), **o
    ),
    "calibration_chart": lambda d, s, **o: wroc.calibration_chart(
        wroc.calibration_curve(d, "y", s, by="g", bins=4), **o
    ),
    "cost_chart": lambda d, s, **o: wroc.cost_chart(
        wroc.roc_curve(d, "y", s, by="g"), **COSTS, **o
    ),
    "distribution_chart": lambda d, s, **o: wroc.distribution_chart(
        wroc.score_distribution(d, s, label="y", by="g", bins=5), threshold=0.5, **o
    ),
    "gap_chart": lambda d, s, **o: wroc.gap_chart(
        wroc.group_gaps(d, "y", s, attributes=["g", "h"], threshold=0.5), metric="tpr", **o
    ),
    "matrix_chart": lambda d, s, **o: wroc.matrix_chart(
        wroc.group_gaps(d, "y", s, attributes=["g", "h"], intersections=True), **o
    ),
    "time_chart": lambda d, s, **o: wroc.time_chart(
        wroc.trend(d, "y", s, over="month", attributes="g"), **o
    ),
}
NO_COLORS = ("cost_chart", "distribution_chart", "matrix_chart")
MODELS = {"one score": "s", "two scores": ["s", "t"]}


def rows_of(chart: Any) -> list[dict[str, Any]]:
    (rows,) = chart.to_dict()["datasets"].values()
    return list(rows)


def svg_of(chart: Any) -> str:
    return str(vl_convert.vegalite_to_svg(chart.to_dict()))


# Machado, Oliveira and Fernandes (2009), severity 1, of linear red, green and blue.
SIGHTS = {
    "normal": np.eye(3),
    "protan": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deutan": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.01182, 0.04294, 0.968881],
    ],
    "tritan": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.3039],
    ],
}
TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.072175],
        [0.0193339, 0.119192, 0.9503041],
    ]
)


def linear(color: str) -> Any:
    parts = np.array([int(color[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(color: str, sight: Any) -> Any:
    x, y, z = TO_XYZ @ np.clip(np.array(sight) @ linear(color), 0, 1) / [0.95047, 1.0, 1.08883]
    f, g, h = (t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116 for t in (x, y, z))
    return np.array([116 * g - 16, 500 * (f - g), 200 * (g - h)])


def contrast(color: str, background: str) -> float:
    light, dark = sorted((float(TO_XYZ[1] @ linear(c)) for c in (color, background)), reverse=True)
    return (light + 0.05) / (dark + 0.05)
