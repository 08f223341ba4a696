"""The chart of what equal error rates cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from drawings import drawn, scored, shown_texts

import polars_wroc as wroc

COSTS = ["overall_cost_unconstrained", "overall_cost_common", "overall_cost"]


def tables(scores: Any = "s", groups: int = 3) -> dict[str, pl.DataFrame]:
    data = scored(400, groups=groups)
    data = data.with_columns(s=pl.col("s") * pl.col("g"), t=pl.col("s") ** 2)
    return {
        name: wroc.equalized_thresholds(data, "y", scores, by="g", constraint=constraint)  # type: ignore[arg-type]
        for name, constraint in (("odds", "equalized_odds"), ("opportunity", "equal_opportunity"))
    }


def test_a_row_has_the_three_costs_of_its_table(tmp_path: Path) -> None:
    given = tables()
    chart = wroc.tradeoff_chart(given)
    found = pl.DataFrame(drawn(chart))
    for name, table in given.items():
        costs = found.filter(__row=name)["__cost"].to_list()
        assert costs == list(table.select(COSTS).row(0))
        free, _, equal = costs
        assert f"{equal - free:+.4f} ({100 * (equal - free) / free:+.1f} %)" in shown_texts(
            chart, tmp_path
        )
        assert f"{equal:.4f}" in shown_texts(chart, tmp_path)


def test_one_table_and_lazy_tables_are_drawn() -> None:
    table = tables()["odds"]
    assert {row["__row"] for row in drawn(wroc.tradeoff_chart(table))} == {"all groups"}
    assert drawn(wroc.tradeoff_chart(table.lazy())) == drawn(wroc.tradeoff_chart(table))


def test_scores_are_rows_and_tables_are_panels() -> None:
    given = tables(["s", "t"])
    one = drawn(wroc.tradeoff_chart(given["odds"]))
    assert {row["__row"] for row in one} == {"s", "t"}
    spec = wroc.tradeoff_chart(given).to_dict()
    assert [panel["title"]["text"] for panel in spec["vconcat"]] == ["odds", "opportunity"]


def test_points_differ_by_shape_and_colour() -> None:
    _, point, *_ = wroc.tradeoff_chart(tables()["odds"]).to_dict()["layer"]
    for channel in ("shape", "color"):
        assert len(set(point["encoding"][channel]["scale"]["range"])) == 3


def test_rows_are_sorted_by_the_cost_of_equal_rates() -> None:
    given = tables()
    extra = {n: t["overall_cost"][0] - t["overall_cost_unconstrained"][0] for n, t in given.items()}
    names = sorted(extra, key=lambda name: -extra[name])
    for order in (given, dict(reversed(given.items()))):
        rows = drawn(wroc.tradeoff_chart(order, sort="value"))
        assert list(dict.fromkeys(row["__row"] for row in rows)) == names


def test_costs_that_are_undefined_are_said_to_be(tmp_path: Path) -> None:
    data = pl.DataFrame({"g": list("ab"), "y": [1, 0], "s": [0.1, 0.2]})
    chart = wroc.tradeoff_chart(wroc.equalized_thresholds(data, "y", "s", by="g"))
    assert "not defined" in shown_texts(chart, tmp_path)


def test_tables_that_are_refused() -> None:
    table = tables()["odds"]
    with pytest.raises(ValueError, match=r"^`thresholds` must hold at least one .*none$"):
        wroc.tradeoff_chart({})
    with pytest.raises(ValueError, match=r"^`thresholds` must have rows to be drawn; found none$"):
        wroc.tradeoff_chart(table.clear())
    with pytest.raises(ValueError, match=r"^`thresholds` must have the columns "):
        wroc.tradeoff_chart({"a": table.drop("overall_cost")})
    with pytest.raises(
        TypeError, match=r"^`thresholds` must be a table of this package; found int: make it"
    ):
        wroc.tradeoff_chart(3)  # type: ignore[arg-type]
