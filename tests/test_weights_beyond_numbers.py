"""Weights whose squares are no numbers: what is then not known is null, and nothing is wrong."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_wroc as wroc

Table: TypeAlias = Callable[..., pl.DataFrame]

LEVEL: Any = {"thresholds": [0.3, 0.6], "level": 0.95}
TABLES: dict[str, Table] = {
    # Where there is no variance the interval is Newcombe's anyway.
    "summary": partial(wroc.summary, method="newcombe"),
    "summary, clusters": partial(wroc.summary, cluster="c", method="newcombe"),
    "compare": lambda frame, label, score, **named: wroc.compare(
        frame, label, [score, "t"], **named
    ),
    "threshold_metrics": partial(wroc.threshold_metrics, **LEVEL),
    "threshold_metrics, prevalence": partial(wroc.threshold_metrics, prevalence=0.2, **LEVEL),
    "operating_points": partial(wroc.operating_points, criterion="youden", level=0.95),
    "tpr_at_fpr": partial(wroc.tpr_at_fpr, fpr=[0.2, 0.5]),
    "roc_curve": partial(wroc.roc_curve, band="pointwise"),
    "roc_curve, simultaneous": partial(wroc.roc_curve, band="simultaneous"),
    "calibration_curve": partial(wroc.calibration_curve, bins=2),
    "calibration_error": partial(wroc.calibration_error, bins=2),
    "group_gaps": partial(wroc.group_gaps, threshold=0.5),
    "group_gaps, overall": partial(wroc.group_gaps, reference="overall", threshold=0.5),
    "group_gaps, best": partial(wroc.group_gaps, reference="best", threshold=0.5),
    "subgroup_auc": partial(wroc.subgroup_auc, method="newcombe"),
    "cross_auc": partial(wroc.cross_auc, method="newcombe"),
}
ENDS = ("_low", "_high", "se", "_p_value", "_se", "n_eff_pos", "n_eff_neg")


@pytest.fixture
def rows(people: pl.DataFrame) -> pl.DataFrame:
    """Rows of weights that differ little; scores are probabilities."""
    chance = 1 / (1 + (-pl.col("s")).exp())
    return people.head(80).select(
        "g",
        "y",
        s=chance.round(2),
        t=chance.round(1),
        w=1 + pl.col("w") / 10,
        c=pl.int_range(pl.len()) // 2,
    )


def limits(table: pl.DataFrame) -> pl.DataFrame:
    return table.select(name for name in table.columns if name.endswith(ENDS))


@pytest.mark.parametrize("weight", [1e-300, 1e-160, 1e160, 1e200, 1e305, 1e308])
@pytest.mark.parametrize("table", TABLES)
def test_no_limits_where_squares_are_no_numbers(
    table: str, weight: float, rows: pl.DataFrame
) -> None:
    scaled = rows.with_columns(w=pl.lit(weight))
    found = limits(TABLES[table](scaled, "y", "s", weight="w", by="g"))
    assert found.width
    names = [name for name in found.columns if not name.endswith("_p_value")]
    assert set(found.select(names).null_count().row(0)) == {found.height}
    # Where nothing differs there is no evidence, whatever the variance.
    assert not found.select(pl.any_horizontal((pl.all() < 1) | pl.all().is_nan()).any()).item()


@pytest.mark.parametrize(
    "power", [-320, -200, -145, -120, -97, -80, -70, 70, 77, 102, 130, 200, 305]
)
@pytest.mark.parametrize("table", TABLES)
def test_limits_are_right_or_null_at_any_scale(table: str, power: int, rows: pl.DataFrame) -> None:
    measure = partial(TABLES[table], label="y", score="s", weight="w", by="g")
    expected = limits(measure(rows))
    found = limits(measure(rows.with_columns(pl.col("w") * float(f"1e{power}"))))
    there = found.select(pl.all().is_not_null())
    known = expected.select(
        pl.when(there[name]).then(pl.col(name)).alias(name) for name in expected.columns
    )
    assert_frame_equal(found, known, rel_tol=1e-6, abs_tol=1e-9)
    if abs(power) <= 70:
        assert_frame_equal(found, expected, rel_tol=1e-6, abs_tol=1e-9)


@pytest.mark.parametrize("weight", [1e-300, 1e-160, 0.1, 1e160, 1e200, 1e305, 1e308])
def test_frequencies_are_never_wrong(weight: float, rows: pl.DataFrame) -> None:
    scaled = rows.with_columns(w=pl.lit(weight))
    tables = [
        wroc.summary(scaled, "y", "s", weight="w", weight_type="frequency"),
        wroc.threshold_metrics(scaled, "y", "s", weight="w", weight_type="frequency", **LEVEL),
        wroc.tpr_at_fpr(scaled, "y", "s", fpr=0.3, weight="w", weight_type="frequency"),
    ]
    for table in tables:
        found = limits(table)
        assert not found.select(pl.any_horizontal(pl.all().is_nan()).any()).item()
