"""The positive label, the classes of a label and references, as values of a column's type."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pytest
from sweeps import sweep
from wide_tables import wide_gaps

import polars_wroc as wroc

ODD = 2**53 + 1
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


def frame(label: list[Any], dtype: pl.DataType | type[pl.DataType]) -> pl.LazyFrame:
    """Two rows of each label."""
    values = pl.Series("y", label * 2, dtype=dtype)
    return pl.LazyFrame([values, pl.Series("s", [float(k) for k in range(len(values))])])


FUNCTIONS: dict[str, Callable[[pl.LazyFrame, Any], Any]] = {
    "summary": lambda rows, value: wroc.summary(rows, "y", "s", pos_label=value),
    "score_counts": lambda rows, value: wroc.score_counts(rows, "y", "s", pos_label=value),
    "roc_auc": lambda rows, value: rows.select(wroc.roc_auc("y", "s", pos_label=value)),
}

REFUSED: dict[str, tuple[list[Any], Any, Any]] = {
    "fraction": ([0, 1], pl.Int64, 0.5),
    "float beyond 2**53": ([ODD, ODD - 1], pl.Int64, float(ODD)),
    "float beyond 2**53 of decimals": ([Decimal(1), Decimal(2)], pl.Decimal(38, 0), 2.0**60),
    "infinity": ([0, 1], pl.Int64, float("inf")),
    "more than the type": ([0, 1], pl.Int8, 300),
    "less than the type": ([0, 1], pl.UInt64, -1),
    "more than any type": ([0, 1], pl.Int128, 2**130),
    "whole number that no float is": ([0.0, 1.0], pl.Float64, ODD),
    "number that no single is": ([0.0, 1.0], pl.Float32, 16777217.0),
    "double next to 0.1": ([0.1, 0.2], pl.Float32, 0.1 + 2**-55),
    "more digits": ([Decimal("0.12")], pl.Decimal(10, 2), Decimal("0.125")),
    "truth of a number": ([0, 1], pl.Int64, True),
    "number of a truth": ([True, False], pl.Boolean, 1),
    "text of a number": ([0, 1], pl.Int64, "1"),
    "no category": (["a", "b"], pl.Enum(["a", "b"]), "c"),
    "no text": (["a", "b"], pl.String, "\udcff"),
    "naive moment": ([NOON], pl.Datetime("us", "UTC"), NOON.replace(tzinfo=None)),
    "moment in a zone": ([NOON.replace(tzinfo=None)], pl.Datetime("us"), NOON),
    "microseconds": (
        [NOON.replace(tzinfo=None)],
        pl.Datetime("ms"),
        NOON.replace(tzinfo=None, microsecond=9),
    ),
    "beyond nanoseconds": ([datetime(2024, 1, 1)], pl.Datetime("ns"), datetime(3024, 1, 1)),  # noqa: DTZ001
    "day": ([datetime(2024, 1, 1)], pl.Datetime("us"), date(2024, 1, 1)),  # noqa: DTZ001
    "moment of a day": ([date(2024, 1, 1)], pl.Date, np.datetime64("2024-01-01T00", "ns")),
    "Series": ([0, 1], pl.Int64, pl.Series([0, 1])),
    "expression": ([0, 1], pl.Int64, pl.col("y")),
    "list": ([0, 1], pl.Int64, [1]),
    "list of others": ([[1], [2]], pl.List(pl.Int8), [300]),
    "any object": (["a", "b"], pl.String, object()),
}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("name", REFUSED)
def test_values_that_the_label_cannot_hold(name: str, function: str) -> None:
    label, dtype, value = REFUSED[name]
    rule = r"^`pos_label` must be a possible value of the label; found .* for column 'y' of type "
    with pytest.raises(TypeError, match=rule) as raised:
        FUNCTIONS[function](frame(label, dtype), value).collect()
    # Where the engine resolves an expression, it adds lines of its own.
    assert "\n" not in str(raised.value).partition(" of type ")[0]


HELD: dict[str, tuple[list[Any], Any, Any]] = {
    "beyond 2**53": ([ODD, ODD - 1], pl.Int64, ODD),
    "whole float": ([2, 1], pl.Int64, 2.0),
    "128 bits": ([2**100 + 1, 2**100], pl.Int128, 2**100 + 1),
    "single": ([0.1, 0.2], pl.Float32, 0.1),
    "single from NumPy": ([0.1, 0.2], pl.Float32, np.float32(0.1)),
    "NaN": ([float("nan"), 0.2], pl.Float64, float("nan")),
    "decimal as a float": ([Decimal("0.10"), Decimal("0.20")], pl.Decimal(10, 2), 0.1),
    "integer from NumPy": ([2, 1], pl.UInt8, np.int64(2)),
    "text from NumPy": (["a", "b"], pl.Categorical, np.str_("a")),
    "bytes": ([b"a", b"b"], pl.Binary, b"a"),
    "list": ([[1], [2]], pl.List(pl.Int8), [1]),
    "struct": ([{"a": 1}, {"a": 2}], pl.Struct({"a": pl.Int8}), {"a": 1}),
    "duration": ([timedelta(1), timedelta(2)], pl.Duration("ns"), timedelta(1)),
    "another zone": (
        [NOON, NOON - timedelta(hours=2)],
        pl.Datetime("us", "Asia/Tokyo"),
        NOON.astimezone(timezone(timedelta(hours=2))),
    ),
}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("name", sweep(HELD, fast=list(HELD)[::3]))
def test_values_that_the_label_holds(name: str, function: str) -> None:
    label, dtype, value = HELD[name]
    found = FUNCTIONS[function](frame(label, dtype), value).collect()
    plain = FUNCTIONS[function](frame([1, 0], pl.Int64), 1).collect()
    assert found.equals(plain)


def test_objects_are_no_labels() -> None:
    rows = pl.DataFrame({"y": pl.Series([object(), object()], dtype=pl.Object), "s": [1.0, 2.0]})
    for value in (object(), "a", 1):
        with pytest.raises(TypeError, match=r"^`label` must not hold Python objects; fou"):
            wroc.summary(rows, "y", "s", pos_label=value)
    with pytest.raises(TypeError, match=r"^`label` must not hold Python objects; fou"):
        wroc.summary(rows, "y", "s")


TABLES: dict[str, Callable[..., Any]] = {
    "summary": lambda rows, **given: wroc.summary(rows, "y", "s", **given),
    "compare": lambda rows, **given: wroc.compare(rows, "y", ["s", "t"], **given),
    "roc_curve": lambda rows, **given: wroc.roc_curve(rows, "y", "s", **given),
    "pr_curve": lambda rows, **given: wroc.pr_curve(rows, "y", "s", **given),
    "thresholds": lambda rows, **given: wroc.threshold_metrics(
        rows, "y", "s", threshold=wroc.rules.max_accuracy(), **given
    ),
    "calibration": lambda rows, **given: wroc.calibration_summary(rows, "y", "s", **given),
    "gaps": lambda rows, **given: wroc.group_gaps(rows, "y", "s", attributes="g", **given),
    "release": lambda rows, **given: wroc.release_check(rows, "y", "s", "t", **given),
    "trend": lambda rows, **given: wroc.trend(rows, "y", "s", over="g", **given),
}


@pytest.mark.parametrize("function", TABLES)
@pytest.mark.parametrize("lazy", [False, True])
def test_a_label_that_no_row_has_is_refused(function: str, *, lazy: bool) -> None:
    rows = pl.DataFrame(
        {
            "y": ["Yes", "No"] * 4,
            "s": [0.1, 0.4, 0.3, 0.2] * 2,
            "t": [0.2] * 8,
            "g": [1] * 4 + [2] * 4,
        }
    )
    given = rows.lazy() if lazy else rows
    with pytest.raises(
        (ValueError, pl.exceptions.PolarsError), match="`pos_label` must be the lab"
    ):
        TABLES[function](given, pos_label="yes").lazy().collect()
    # Without a label there is nothing to be found.
    none = rows.with_columns(y=pl.lit(None, pl.String))
    TABLES[function](none, pos_label="yes")


def test_a_label_that_a_group_lacks_is_null() -> None:
    rows = frame(["a", "b"], pl.String).with_columns(g=pl.col("y"))
    table = wroc.summary(rows, "y", "s", by="g", pos_label="b").collect()
    assert table["auc"].to_list() == [None, None]


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("average", ["macro", "weighted"])
def test_classes_are_values_of_the_label(multi_class: Any, average: Any) -> None:
    zone = pl.Datetime("us", "Asia/Tokyo")
    moments = [NOON + timedelta(hours=hour) for hour in range(3)]
    scores = pl.LazyFrame({"a": [5, 1, 3, 4], "b": [1, 5, 2, 2], "c": [2, 2, 6, 1]})
    given = {"multi_class": multi_class, "average": average}
    found = []
    for classes, dtype in ((moments, zone), ([ODD, ODD - 1, 1], pl.Int64), ([1, 2, 3], pl.Int64)):
        label = pl.Series("y", [*classes, classes[0]], dtype=dtype)
        columns: dict[Any, Any] = dict(zip(classes, "abc", strict=True))
        auc = wroc.roc_auc_multiclass("y", columns, **given)
        rows = pl.concat([label.to_frame().lazy(), scores], how="horizontal")
        found.append(rows.select(auc).collect().item())
    assert found[0] == found[1] == found[2]
    assert found[0] is not None


@pytest.mark.parametrize("value", sweep([float(ODD), ODD + 1, 0.5]))
def test_references_are_values_of_their_column(value: float) -> None:
    rows = pl.DataFrame({"y": [0, 1] * 4, "s": [1.0, 2, 3, 4] * 2, "g": [ODD - 1] * 4 + [ODD] * 4})
    exact = wide_gaps(rows, "y", "s", by="g", reference=ODD)
    assert exact["g"].to_list() == [ODD - 1, ODD]
    with pytest.raises((ValueError, pl.exceptions.PolarsError), match=r"^`reference` must "):
        wide_gaps(rows, "y", "s", by="g", reference=value)
    with pytest.raises(ValueError, match=r"^`reference` must "):
        wroc.audit(rows, "y", "s", attributes="g", reference={"g": value}, min_rows=1)


def test_label_that_no_row_has_is_refused_with_those_that_rows_have() -> None:
    rows = pl.DataFrame({"y": ["yes", "no", None], "s": [0.9, 0.1, 0.5], "g": ["a", "b", "b"]})
    message = r"; found none with 'Yes': labels are 'no', 'yes'; did you mean 'yes'\?$"
    for function in (wroc.summary, wroc.roc_curve, wroc.pr_curve):
        with pytest.raises(ValueError, match=message):
            function(rows, "y", "s", pos_label="Yes")
        with pytest.raises((ValueError, pl.exceptions.ComputeError), match=message):
            function(rows.lazy(), "y", "s", pos_label="Yes").collect()
    for given in (rows, [rows, rows], rows.lazy(), [rows.lazy(), rows.lazy()]):
        with pytest.raises(ValueError, match=message):
            wroc.audit(given, "y", "s", attributes="g", pos_label="Yes")
    many = pl.DataFrame({"y": range(9), "s": range(9)})
    with pytest.raises(ValueError, match=r"; found none with 9$"):
        wroc.summary(many, "y", "s", pos_label=9)
