"""Numbers of NumPy are as good as those of Python."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from wide_tables import by_attributes

import polars_wroc as wroc
from polars_wroc.typing import Rule

HALF, QUARTER = np.float32(0.5), np.float32(0.25)
DATA = pl.DataFrame(
    {
        "y": [0, 1, 0, 1, 1, 0, 1, 0],
        "s": [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9],
        "g": list("abababab"),
        "c": [1, 2, 3, 4, 1, 2, 3, 4],
    }
)


def of_python(number: Any) -> Any:
    if isinstance(number, Rule):
        return wroc.rules.least_cost(fn=QUARTER.item())
    return [of_python(each) for each in number] if isinstance(number, list) else number.item()


CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "summary": (wroc.summary, {"level": HALF, "bins": np.int32(64), "tolerance": QUARTER}),
    "roc_curve": (wroc.roc_curve, {"max_points": np.uint8(4), "level": HALF, "band": "pointwise"}),
    "threshold_metrics": (
        wroc.threshold_metrics,
        {"threshold": HALF, "level": HALF, "prevalence": QUARTER},
    ),
    "thresholds": (wroc.threshold_metrics, {"threshold": [QUARTER, HALF, np.int64(1)]}),
    "roc_point": (wroc.roc_point, {"fpr": [QUARTER, HALF], "level": HALF}),
    "threshold_metrics by a rule": (
        wroc.threshold_metrics,
        {
            "threshold": wroc.rules.least_cost(fn=cast(float, QUARTER)),
            "honest": "bootstrap",
            "resamples": np.int64(3),
            "seed": np.int64(2),
            "level": HALF,
        },
    ),
    "calibration_curve": (wroc.calibration_curve, {"bins": np.int64(3), "level": HALF}),
    "calibration_summary": (
        wroc.calibration_summary,
        {"bins": np.int64(3), "clip": QUARTER, "level": HALF},
    ),
    "decision_curve": (wroc.decision_curve, {"thresholds": [QUARTER], "level": HALF}),
    "score_distribution": (
        lambda frame, label, score, **named: wroc.score_distribution(
            frame, score, label=label, **named
        ),
        {"bins": np.int64(3), "range": [np.float32(0), np.int64(1)]},
    ),
    "bootstrap": (
        wroc.bootstrap,
        {"metrics": "ks", "resamples": np.int64(5), "seed": np.int64(3), "level": HALF},
    ),
    "group_gaps": (
        by_attributes(wroc.group_gaps),
        {"threshold": HALF, "level": HALF, "margin": QUARTER, "min_rows": np.int64(1)},
    ),
    "abroca_test": (wroc.abroca_test, {"permutations": np.int64(9), "seed": np.int64(1)}),
    "cross_auc": (wroc.cross_auc, {"level": HALF, "max_pairs": np.int64(99)}),
}


@pytest.mark.parametrize("name", CALLS)
def test_numbers_of_numpy_are_those_of_python(name: str) -> None:
    call, options = CALLS[name]
    plain = {
        key: value if isinstance(value, str) else of_python(value) for key, value in options.items()
    }
    found = call(DATA, "y", "s", by="g", **options)
    assert_frame_equal(found, call(DATA, "y", "s", by="g", **plain), check_exact=True)


@pytest.mark.slow(reason="makes several audits")
def test_an_audit_can_be_saved(tmp_path: Path) -> None:
    options: dict[str, Any] = {"level": HALF, "threshold": HALF, "min_rows": np.int64(1)}
    options |= {"margin": QUARTER, "min_cell": np.int64(2)}
    written = []
    for given in (options, {key: value.item() for key, value in options.items()}):
        path = tmp_path / "audit.json"
        wroc.audit(DATA, "y", "s", attributes="g", favorable="selected", **given).save(path)
        document = json.loads(path.read_text(encoding="utf-8"))
        written.append({name: value for name, value in document.items() if name != "run"})
    assert written[0] == written[1]


def test_numbers_that_are_neither_are_refused() -> None:
    for value in (np.bool_(1), np.array([0.5]), "0.5", 0.5j):
        bad: Any = value
        with pytest.raises(TypeError, match="`level` must be a number; found"):
            wroc.summary(DATA, "y", "s", level=bad)
    thirds: Any = Fraction(1, 3)
    with pytest.raises(ValueError, match="`level` must be a number that a float holds exactly"):
        wroc.summary(DATA, "y", "s", level=thirds)
    whole: Any = np.float64(3)
    with pytest.raises(TypeError, match="`bins` must be a whole number; found"):
        wroc.calibration_curve(DATA, "y", "s", bins=whole)
