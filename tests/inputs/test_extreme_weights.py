"""Weights whose squares are no numbers: what is then not known is null, and nothing is wrong."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, get_args

import numpy as np
import polars as pl
import pytest
from calls import OF_ONE_SCORE
from polars.testing import assert_frame_equal
from queries import LOSSES
from sweeps import sweep
from wide_tables import by_attributes, segments_of, wide_gaps

import polars_wroc as wroc
from polars_wroc.typing import MetricName

summary_of = partial(wroc.summary, diagnostics=True)

Table: TypeAlias = Callable[..., pl.DataFrame]


LEVEL: Any = {"threshold": [0.3, 0.6], "level": 0.95}
TABLES: dict[str, Table] = {
    # Where there is no variance the interval is Newcombe's anyway.
    "summary": partial(wroc.summary, diagnostics=True, method="delong"),
    "summary, clusters": partial(wroc.summary, diagnostics=True, design="c"),
    "compare": lambda frame, label, score, **named: wroc.compare(
        frame, label, [score, "t"], **named
    ),
    "compare by delong": lambda frame, label, score, **named: wroc.compare(
        frame, label, [score, "t"], method="delong", **named
    ),
    "threshold_metrics": partial(wroc.threshold_metrics, **LEVEL),
    "threshold_metrics, prevalence": partial(wroc.threshold_metrics, prevalence=0.2, **LEVEL),
    "threshold_metrics by a rule": partial(
        wroc.threshold_metrics, threshold=wroc.rules.youden(), per_group=True, level=0.95
    ),
    "roc_point": partial(wroc.roc_point, fpr=[0.2, 0.5]),
    "roc_curve": partial(wroc.roc_curve, band="pointwise"),
    "roc_curve, simultaneous": partial(wroc.roc_curve, band="simultaneous"),
    "calibration_curve": partial(wroc.calibration_curve, bins=2),
    "calibration_summary": partial(wroc.calibration_summary, bins=2),
    "calibration_test": wroc.calibration_test,
    "calibration_test at equal scores": partial(
        by_attributes(wroc.calibration_test), reference="rest"
    ),
    "expected_metrics": OF_ONE_SCORE["expected_metrics"],
    "decision_curve": partial(wroc.decision_curve, thresholds=[0.3, 0.6]),
    "group_gaps": partial(wide_gaps, threshold=0.5),
    "group_gaps, overall": partial(wide_gaps, reference="overall", threshold=0.5),
    "group_gaps, best": partial(wide_gaps, reference="best", threshold=0.5),
    "group_gaps, within": partial(wide_gaps, within=pl.col("c") % 2, threshold=0.5),
    "cross_auc against the rest": partial(wroc.cross_auc, against="rest"),
    "cross_auc": wroc.cross_auc,
}
ENDS = ("_low", "_high", "_p_value", "_se", "n_eff_pos", "n_eff_neg")


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


@pytest.mark.parametrize("weight", sweep([1e-300, 1e-160, 1e160, 1e200, 1e305, 1e308]))
@pytest.mark.parametrize("table", sweep(TABLES, fast=list(TABLES)[::3]))
def test_no_limits_where_squares_are_no_numbers(
    table: str, weight: float, rows: pl.DataFrame
) -> None:
    scaled = rows.with_columns(w=pl.lit(weight))
    found = limits(TABLES[table](scaled, "y", "s", weight="w", by="g"))
    assert found.width
    # Variances by units rest on shares of the weight, which are numbers at any scale.
    by_units = {"auc_se", "n_eff_pos", "n_eff_neg"} if table == "summary, clusters" else set()
    names = [name for name in found.columns if not name.endswith("_p_value")]
    found = found.drop(by_units)
    names = [name for name in names if name not in by_units]
    assert set(found.select(names).null_count().row(0)) == {found.height}
    # Where nothing differs there is no evidence, whatever the variance.
    assert not found.select(pl.any_horizontal((pl.all() < 1) | pl.all().is_nan()).any()).item()


@pytest.mark.parametrize(
    "power", sweep([-320, -145, -120, -80, -70, 70, 102, 130, 305], fast=[-145])
)
@pytest.mark.parametrize("table", sweep(TABLES, fast=list(TABLES)[::4]))
def test_limits_are_right_or_null_at_any_scale(table: str, power: int, rows: pl.DataFrame) -> None:
    check_limits(table, power, rows)


def test_limits_are_right_or_null_where_products_of_four_weights_are_no_numbers(
    rows: pl.DataFrame,
) -> None:
    for power in (-81, 78):
        check_limits("group_gaps, overall", power, rows)


def check_limits(table: str, power: int, rows: pl.DataFrame) -> None:
    """Compare limits with those of weights that are no power of ten as large."""
    measure = partial(TABLES[table], label="y", score="s", weight="w", by="g")
    expected = limits(measure(rows))
    found = limits(measure(rows.with_columns(pl.col("w") * float(f"1e{power}"))))
    there = found.select(pl.all().is_not_null())
    known = expected.select(
        pl.when(there[name]).then(pl.col(name)).alias(name) for name in expected.columns
    )
    # Weights of 1e-320 have four digits.
    assert_frame_equal(found, known, rel_tol=1e-3 if power < -307 else 1e-6, abs_tol=1e-9)
    if abs(power) <= 70:
        assert_frame_equal(found, expected, rel_tol=1e-6, abs_tol=1e-9)


@pytest.mark.parametrize("weight", [1, 10**9, 2**53])
def test_frequencies_are_never_wrong(weight: float, rows: pl.DataFrame) -> None:
    scaled = rows.with_columns(w=pl.lit(weight))
    tables = [
        summary_of(scaled, "y", "s", weight=wroc.frequency("w")),
        wroc.threshold_metrics(
            scaled, "y", "s", weight=wroc.frequency("w"), **LEVEL, metrics="all"
        ),
        wroc.roc_point(scaled, "y", "s", fpr=0.3, weight=wroc.frequency("w")),
    ]
    for table in tables:
        found = limits(table)
        assert not found.select(pl.any_horizontal(pl.all().is_nan()).any()).item()


SCALES = [1e-311, 1e-307, 1e-200, 1e200, 1e305, 1e308]


def times(rows: pl.DataFrame, scale: float) -> pl.DataFrame:
    """Multiply the weights, each of which stays a number."""
    return rows.with_columns((pl.col("w") * scale).clip(upper_bound=1.7e308))


ACROSS: dict[str, Table] = {
    "cross_auc": lambda *columns, **named: wroc.cross_auc(*columns, **named).select(
        "xauc", "pair_weight", "xauc_gap"
    ),
    "cross_auc against the rest": lambda *columns, **named: wroc.cross_auc(
        *columns, **named, against="rest"
    ).select("subgroup_auc", "bpsn_auc", "bnsp_auc"),
}


@pytest.mark.parametrize("scores", sweep(["s", ["s", "t"]]))
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("table", ACROSS)
def test_pairs_of_weights_whose_products_are_no_numbers(
    table: str, scale: float, scores: str | list[str], rows: pl.DataFrame
) -> None:
    scaled = times(rows, scale)
    measure = partial(ACROSS[table], label="y", score=scores, weight="w", by="g")
    found, expected = measure(scaled), measure(rows)
    if 1e-307 <= scale <= 1e305:
        assert_frame_equal(found, expected, rel_tol=1e-9)
    else:
        values = found.select(pl.selectors.float())
        assert not values.select(pl.any_horizontal(pl.all().is_nan()).any()).item()
        assert values[values.columns[-1]].null_count() == found.height


def test_pairs_without_weight_beside_weights_whose_sum_is_no_number() -> None:
    rows = pl.DataFrame(
        {"y": [1, 1, 0, 0], "s": [4, 2, 3, 1], "g": [*"aabb"], "w": [1e308, 1e308, 1.0, 1.0]}
    )
    table = wroc.cross_auc(rows, "y", "s", weight="w", by="g")
    assert table["pair_weight"].to_list() == [None] * 4


CELLS = ["tp", "fp", "fn", "tn"]


def test_cells_that_are_no_numbers_are_null(rows: pl.DataFrame) -> None:
    huge = rows.with_columns(w=pl.when("y").then(1e308).otherwise(1e300))
    matrix = wroc.confusion_matrix("y", "s", threshold=0.5, weight="w", metrics="all")
    at_half = partial(wroc.threshold_metrics, threshold=0.5, metrics="all")
    tables = [
        huge.select(matrix).unnest("confusion_matrix"),
        at_half(huge, "y", "s", weight="w", level=None),
        at_half(huge, "y", "s", weight="w", level=0.9),
        wroc.threshold_metrics(
            huge,
            "y",
            "s",
            threshold=wroc.rules.max_fpr(0.5),
            level=None,
            weight="w",
            by="g",
            metrics="all",
        ),
    ]
    scores = rows.filter(~pl.col("y"))["s"].to_list()
    above = 1e300 * sum(score >= 0.5 for score in scores)
    below = 1e300 * sum(score < 0.5 for score in scores)
    for table in tables[:3]:
        assert table.select(CELLS).row(0) == (
            None,
            pytest.approx(above),
            None,
            pytest.approx(below),
        )
    assert_frame_equal(tables[0], tables[1].drop("reason"))
    assert tables[3].select(CELLS).null_count().row(0) == (4,) * 4


@pytest.mark.parametrize("drop_collinear", [False, True])
def test_curves_of_cells_that_are_no_numbers(drop_collinear: bool, rows: pl.DataFrame) -> None:
    huge = rows.with_columns(w=pl.lit(1e308))
    for curve in (
        wroc.roc_curve(huge, "y", "s", weight="w", drop_collinear=drop_collinear),
        wroc.roc_curve(huge, "y", "s", weight="w", max_points=5),
    ):
        cells = curve.select(CELLS)
        assert cells.row(0) == (0.0, 0.0, None, None)
        assert cells.row(-1) == (None,) * 4
        assert not cells.select(pl.any_horizontal(~pl.all().is_finite()).any()).item()


def test_weights_of_classes_that_overflow_are_null(rows: pl.DataFrame) -> None:
    huge = rows.with_columns(w=pl.when("y").then(1e308).otherwise(1e300))
    negative = 1e300 * rows.filter(~pl.col("y")).height
    for table in (
        summary_of(huge, "y", "s", weight="w"),
        wroc.audit(huge, "y", "s", weight="w", attributes="g").segments.filter(attribute="overall"),
    ):
        assert table.select("w_pos", "w_neg").row(0) == (None, pytest.approx(negative))


METRICS: list[MetricName] = [name for name in get_args(MetricName) if name not in LOSSES]


@pytest.mark.parametrize("scale", sweep([*SCALES, 1e-320]))
def test_expressions_say_what_tables_say(scale: float, rows: pl.DataFrame) -> None:
    scaled = times(rows, scale)
    table = summary_of(scaled, "y", "s", weight="w")
    named: dict[str, Any] = {"label": "y", "score": "s", "weight": "w"}
    found, original = (
        frame.select(
            wroc.curve_metrics(metrics=METRICS, **named).struct.unnest(),
            wroc.partial_auc(fpr=(0.0, 0.3), **named),
            wroc.roc_auc_ci(**named).struct.field("auc"),
            wroc.cost_partial_auc(cost_fn=0.3, **named).struct.field("area"),
            wroc.confusion_matrix(
                threshold=wroc.rules.youden(), **named, metrics="all"
            ).struct.field("threshold", "tpr"),
            wroc.brier_score(**named),
        )
        for frame in (scaled, rows)
    )
    assert_frame_equal(
        found.select("ks", "average_precision", auc="roc_auc"),
        table.select("ks", "average_precision", "auc"),
    )
    if 1e-307 <= scale <= 1e305:
        assert_frame_equal(found, original, rel_tol=1e-9)
    else:
        assert set(found.row(0)) == {None}
    point = wroc.threshold_metrics(
        scaled,
        "y",
        "s",
        threshold=wroc.rules.youden(),
        per_group=True,
        level=None,
        weight="w",
        metrics="all",
    )
    assert_frame_equal(found.select("threshold", "tpr"), point.select("threshold", "tpr"))


@pytest.mark.parametrize("scale", sweep(SCALES, fast=2))
def test_areas_between_curves_are_numbers_or_null(scale: float, rows: pl.DataFrame) -> None:
    scaled = times(rows, scale)
    found, expected = (
        wroc.abroca_test(frame, "y", "s", weight="w", by="g", permutations=2)["abroca"]
        for frame in (scaled, rows)
    )
    there = found.is_not_null()
    assert there.all() == (1e-307 <= scale <= 1e305)
    assert found.filter(there).to_list() == pytest.approx(expected.filter(there).to_list())


@pytest.mark.slow(reason="makes several audits")
@pytest.mark.parametrize("heavy", [1e307, 1.7e308, 1e308])
def test_an_audit_of_weights_beyond_numbers_is_that_of_its_groups(
    heavy: float, tmp_path: Path
) -> None:
    rng = np.random.default_rng(5)
    group = np.where(rng.random(300) < 0.4, "a", "b")
    columns = {"g": group, "y": rng.random(300) < 0.4, "s": rng.random(300)}
    frame = pl.DataFrame(columns).with_columns(w=pl.when(g="a").then(1.0).otherwise(heavy))
    result = wroc.audit(
        frame, "y", "s", attributes="g", weight="w", threshold=0.5, favorable="selected"
    )
    for by, attribute in ((None, "overall"), ("g", "g")):
        expected = wroc.threshold_metrics(
            frame, "y", "s", threshold=0.5, by=by, weight="w", metrics="all", level=None
        )
        found = segments_of(result).filter(attribute=attribute)
        names = [name for name in expected.columns if name in found.columns]
        assert {"threshold", "tp", "tpr", "ppv", "accuracy"} <= set(names)
        assert_frame_equal(found.select(names), expected.select(names), rel_tol=1e-12)
    assert result.curves.select(pl.selectors.float().is_nan().any()).sum_horizontal().item() == 0
    result.save(tmp_path / "audit.html")
    result.save(tmp_path / "audit.json")


@pytest.mark.parametrize("seed", sweep(range(6)))
def test_an_audit_of_the_smallest_weights(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    columns = {"g": rng.choice(["a", "b"], 80), "y": rng.random(80) < 0.4, "s": rng.random(80)}
    frame = pl.DataFrame(columns).with_columns(w=pl.Series(rng.integers(1, 9, 80) * 1e-318))
    result = wroc.audit(
        frame, "y", "s", attributes="g", weight="w", threshold=0.5, favorable="selected"
    )
    assert result.table.filter(metric="auc")["value"].null_count() == 3
    result.save(tmp_path / "audit.html")
