"""What an audit's segments are called and in which order, what is missing, and its errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.exceptions import ColumnNotFoundError
from polars.testing import assert_frame_equal
from sweeps import sweep
from wide_tables import fairness_of, gaps_of, segments_of

import polars_wroc as wroc

CROSS = " \N{MULTIPLICATION SIGN} "
SIZES = ["small", "large"]


@pytest.fixture
def rows() -> pl.DataFrame:
    """120 rows with two scores; every fifth lacks the first one, every seventh its age."""
    random = np.random.default_rng(7)
    place = np.arange(120)
    return pl.DataFrame(
        {
            "g": random.choice(["m", "f"], 120).tolist(),
            "age": pl.Series([None if k % 7 == 0 else int(k % 3) * 5 + 2 for k in place]),
            "size": pl.Series(random.choice(SIZES, 120).tolist(), dtype=pl.Enum(SIZES)),
            "y": random.random(120) < 0.4,
            "s": [None if k % 5 == 0 else float(k % 11) for k in place],
            "t": random.normal(size=120),
            "w": random.lognormal(size=120),
        }
    )


def names(table: pl.DataFrame) -> list[tuple[Any, ...]]:
    """Attributes and segments in the order of a table, each once."""
    return table.select("attribute", "segment").unique(maintain_order=True).rows()


def test_attributes_in_the_order_given_and_segments_in_that_of_their_values(
    rows: pl.DataFrame,
) -> None:
    audit = wroc.audit(
        rows, "y", ["t", "s"], attributes=["size", "age", "g"], threshold=2, favorable="selected"
    )
    segments = [
        *(("size", size) for size in SIZES),
        *(("age", age) for age in (None, "2", "7", "12")),
        *(("g", g) for g in ("f", "m")),
    ]
    assert names(audit.segments) == [("overall", "overall"), *segments]
    assert names(audit.curves) == [("overall", "overall"), *segments]
    assert names(gaps_of(audit)) == segments
    assert audit.segments["model"].to_list() == ["t", "s"] * 9
    assert gaps_of(audit)["model"].to_list() == ["t", "s"] * 8
    of_attribute = fairness_of(audit).select("attribute", "model").unique()
    expected = {(key, model) for key in ("size", "age", "g") for model in ("t", "s")}
    assert set(of_attribute.rows()) == expected - {("age", "s")}


def test_crossed_attributes_come_last_in_the_order_of_their_values(rows: pl.DataFrame) -> None:
    audit = wroc.audit(rows, "y", "s", attributes=["age", "size"], intersections=True)
    crossed = [name for attribute, name in names(audit.segments) if attribute == f"age{CROSS}size"]
    expected = [f"{age}, {size}" for age in ("(missing)", 2, 7, 12) for size in SIZES]
    assert crossed == expected
    assert names(audit.segments)[-8:] == [(f"age{CROSS}size", name) for name in expected]


def test_first_of_equal_segments_is_named_in_the_order_of_their_values() -> None:
    frame = pl.DataFrame(
        {"age": [10, 2] * 8, "y": [0, 0, 1, 1] * 4, "s": [0, 0, 0, 0, 1, 1, 1, 1] * 2}
    )
    audit = wroc.audit(
        frame, "y", "s", attributes="age", threshold=1, favorable="selected", min_rows=0
    )
    alone = wroc.fairness(frame, "y", "s", attributes="age", threshold=1, min_rows=0)
    is_ratio = pl.col("metric").str.ends_with("_ratio")
    for table in (audit.table, alone):
        fair = table.filter(pl.col("metric").is_in(fairness_of(audit)["metric"].to_list()))
        for kind, extremes in ((is_ratio, ("10", "2")), (~is_ratio, ("2", "10"))):
            found = fair.filter(kind).select("segment", "reference").unique()
            assert found.rows() == [extremes]


@pytest.mark.slow(reason="makes several audits")
def test_lazy_frame_gives_the_same(rows: pl.DataFrame) -> None:
    options: dict[str, Any] = {"attributes": ["g", "age"], "weight": "w", "threshold": 2}
    options |= {"favorable": "selected"}
    eager, lazy = (
        wroc.audit(frame, "y", ["s", "t"], **options, intersections=True)
        for frame in (rows, rows.lazy())
    )
    for one, other in (
        (eager.segments, lazy.segments),
        (eager.curves, lazy.curves),
        (gaps_of(eager), gaps_of(lazy)),
        (fairness_of(eager), fairness_of(lazy)),
        (eager.missing, lazy.missing),
    ):
        assert_frame_equal(one, other, abs_tol=1e-12)


@pytest.mark.slow(reason="makes several audits")
def test_order_of_the_rows_does_not_matter(rows: pl.DataFrame) -> None:
    options: dict[str, Any] = {"attributes": ["g", "age"], "weight": "w", "threshold": 2}
    options |= {"favorable": "selected"}
    one, other = (
        wroc.audit(frame, "y", "s", **options, intersections=True)
        for frame in (rows, rows.sample(fraction=1, shuffle=True, seed=3))
    )
    assert_frame_equal(one.segments, other.segments, abs_tol=1e-12)
    assert_frame_equal(gaps_of(one), gaps_of(other), abs_tol=1e-12)
    assert_frame_equal(one.curves, other.curves, abs_tol=1e-12)


def test_points_of_a_curve_are_there_once() -> None:
    random = np.random.default_rng(5)
    ties = random.integers(0, 4, 1000) / 1.0
    frame = pl.DataFrame({"g": "a", "y": random.random(1000) < 0.4, "s": ties})
    curve = wroc.audit(frame, "y", "s", attributes="g").curves.filter(attribute="g")
    assert curve["threshold"].to_list() == [math.inf, 3, 2, 1, 0]


@pytest.mark.parametrize("size", [300, 3000])
def test_curves_have_at_most_200_points(size: int) -> None:
    random = np.random.default_rng(5)
    frame = pl.DataFrame({"g": "a", "y": random.random(size) < 0.4, "s": random.random(size)})
    audit = wroc.audit(frame, "y", "s", attributes="g")
    curve = audit.curves.filter(attribute="g")
    assert 150 < curve.height <= 200
    area = np.trapezoid(curve["tpr"], curve["fpr"]) - curve["auc_change"][0]
    assert area == pytest.approx(segments_of(audit)["auc"][1], abs=1e-12)


# What is missing.


def lacking(frame: pl.DataFrame, label: Any, score: Any, **options: Any) -> list[tuple[str, int]]:
    found = wroc.audit(frame, label, score, **options).missing
    assert found.schema == {"column": pl.String, "n_missing": pl.Int64}
    return [(str(column), int(count)) for column, count in found.rows()]


def test_missing_values_are_counted_in_each_column(rows: pl.DataFrame) -> None:
    place = pl.int_range(pl.len())
    frame = rows.with_columns(
        y=pl.when(place > 2).then("y"),
        t=pl.when(place < 4).then(float("nan")).when(place > 5).then("t"),
        w=pl.when(place > 0).then("w"),
    )
    found = lacking(frame, "y", ["s", "t"], weight="w", attributes=["g", "age"])
    assert found == [("y", 3), ("s", 24), ("t", 6), ("w", 1), ("g", 0), ("age", 18)]


def test_rows_of_weight_zero_lack_nothing(rows: pl.DataFrame) -> None:
    frame = rows.with_columns(w=pl.when(pl.col("s").is_null()).then(0.0).otherwise("w"))
    assert lacking(frame, "y", "s", weight="w", attributes="g") == [
        ("y", 0),
        ("s", 0),
        ("w", 0),
        ("g", 0),
    ]


@pytest.mark.filterwarnings("ignore:each of the .* is a group")
@pytest.mark.parametrize(("column", "count"), sweep([("y", 3), ("s", 5), ("w", 4)]))
def test_column_that_is_an_attribute_too_is_counted_once(
    rows: pl.DataFrame, column: str, count: int
) -> None:
    place = pl.int_range(pl.len())
    frame = rows.with_columns(
        y=pl.when(place > 2).then("y"),
        s=pl.when(place < 2).then(None).when(place < 5).then(float("nan")).otherwise(pl.lit(1.0)),
        w=pl.when(place > 3).then("w"),
    )
    found = lacking(frame, "y", "s", weight="w", attributes=["g", column])
    assert found == [("y", 3), ("s", 5), ("w", 4), ("g", 0)]
    assert dict(found)[column] == count


def test_label_as_an_attribute_has_segments_of_one_class(rows: pl.DataFrame) -> None:
    segments = segments_of(wroc.audit(rows, "y", "t", attributes="y"))
    assert segments.select("segment", "n_pos", "n_neg", "auc").rows()[1:] == [
        ("false", 0, (~rows["y"]).sum(), None),
        ("true", rows["y"].sum(), 0, None),
    ]


# Errors.


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (pl.DataFrame.clear, "found none"),
        (lambda rows: rows.with_columns(w=pl.lit(0.0)), "found none"),
        (
            lambda rows: rows.with_columns(t=pl.lit(None, dtype=pl.Float64)),
            "found none: 120 rows lack a label, score or weight",
        ),
        (
            lambda rows: rows.with_columns(t=pl.lit(math.nan)),
            "found none: 120 rows lack a label, score or weight",
        ),
    ],
)
@pytest.mark.parametrize("lazy", [False, True])
def test_nothing_to_audit(rows: pl.DataFrame, change: Any, message: str, *, lazy: bool) -> None:
    frame = change(rows).lazy() if lazy else change(rows)
    with pytest.raises(ValueError, match=f"^`frame` must have rows to audit; {message}$"):
        wroc.audit(frame, "y", "t", weight="w", attributes="g")


def test_one_of_two_scores_may_be_missing(rows: pl.DataFrame) -> None:
    frame = rows.with_columns(s=pl.lit(None, dtype=pl.Float64))
    segments = segments_of(wroc.audit(frame, "y", ["s", "t"], attributes="g"))
    assert segments.filter(model="s").select("n", "n_missing", "auc").row(0) == (0, 120, None)
    assert segments.filter(model="t")["n"][0] == 120


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"intersections": 1}, TypeError, "`intersections` must be True or False; found 1"),
        ({"intersections": None}, TypeError, "`intersections` must be True or False; found None"),
        ({"reference": "x"}, ValueError, "`reference` must be .* or a segment of g "),
        ({"reference": ("f",)}, ValueError, "`reference` must give 'g' .* one of its values"),
        ({"reference": None}, ValueError, "`reference` must be 'rest', 'overall' or map"),
        (
            {"attributes": None},
            TypeError,
            "`attributes` must name the attributes to audit; found None",
        ),
        ({"attributes": []}, TypeError, "`attributes` must be one or several column names"),
        (
            {"attributes": ["g", "g"]},
            ValueError,
            "`attributes` must not name a column twice; found 'g' twice",
        ),
        (
            {"attributes": "sex"},
            ColumnNotFoundError,
            "`attributes` must name a column of the frame; found no ",
        ),
        (
            {"attributes": pl.col("g").alias("overall")},
            ValueError,
            "`attributes` must not name a column .over",
        ),
        ({"weight": -pl.col("w")}, ValueError, "`weight` must be finite and zero or "),
    ],
)
def test_an_audit_refuses_unknown_options_and_names_the_closest(
    rows: pl.DataFrame, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"^{message}"):
        wroc.audit(rows, "y", "s", **({"attributes": "g"} | options))


def test_crossed_segments_must_not_have_the_same_name() -> None:
    columns = {"a": ["x", "x, y"] * 4, "b": ["y, z", "z"] * 4, "y": [0, 0, 1, 1] * 2}
    frame = pl.DataFrame(columns | {"s": range(8)})
    assert wroc.audit(frame, "y", "s", attributes=["a", "b"]).segments.height == 5
    message = (
        f"^`attributes` must have values that name each .*; found x, y, z twice in 'a{CROSS}b'$"
    )
    with pytest.raises(ValueError, match=message):
        wroc.audit(frame, "y", "s", attributes=["a", "b"], intersections=True)


def test_a_null_must_not_have_the_name_of_a_value() -> None:
    columns = {"a": [None, "(missing)"] * 4, "y": [0, 0, 1, 1] * 2, "s": range(8)}
    message = r"^`attributes` must have values that name .*; found \(missing\) twice in 'a'$"
    with pytest.raises(ValueError, match=message):
        wroc.audit(pl.DataFrame(columns), "y", "s", attributes="a")
