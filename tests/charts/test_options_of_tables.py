"""Options that all charts share, in those of calibration, decisions, errors, gains and scores."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from drawings import caption, line_of, scored, shown_texts
from sweeps import sweep

import polars_wroc as wroc

GREY = "#B3B3B3"
Draw = Callable[..., Any]


def calibration(data: pl.DataFrame, by: Any = "g", **options: Any) -> Any:
    return wroc.calibration_chart(wroc.calibration_curve(data, "y", "s", by=by), **options)


def decision(data: pl.DataFrame, by: Any = "g", **options: Any) -> Any:
    return wroc.decision_chart(wroc.decision_curve(data, "y", "s", by=by), **options)


def det(data: pl.DataFrame, by: Any = "g", **options: Any) -> Any:
    return wroc.det_chart(wroc.roc_curve(data, "y", "s", by=by), **options)


def distribution(data: pl.DataFrame, by: Any = "g", **options: Any) -> Any:
    # In one panel: by default three groups have one each.
    chosen = {"color": "g"} | options if by == "g" and "facet" not in options else options
    return wroc.distribution_chart(wroc.score_distribution(data, "s", label="y", by=by), **chosen)


def gain(data: pl.DataFrame, by: Any = "g", *, kind: Any = "gain", **options: Any) -> Any:
    return wroc.gain_chart(wroc.roc_curve(data, "y", "s", by=by), kind=kind, **options)


# By what each chart sorts: of the groups of `grouped`, the last has the highest number or the
# lowest.
HIGHEST_LAST: dict[str, tuple[Draw, bool]] = {
    "calibration": (calibration, True),
    "decision": (decision, True),
    "det": (det, False),
    "distribution": (distribution, True),
    "gain": (gain, True),
    "lift": (partial(gain, kind="lift"), True),
    "cap": (partial(gain, kind="cap"), True),
}
ALL = [draw for draw, _ in HIGHEST_LAST.values()]


def grouped(groups: int, names: Any = None) -> pl.DataFrame:
    """Groups of which each has higher scores and ranks better than the one before."""
    data = scored(400 * groups, groups=groups)
    noise = pl.int_range(pl.len()) * 37 % 101 / 101
    part = pl.col("g") / groups
    score = 0.5 * noise + part * (0.1 + 0.13 * pl.col("y"))
    data = data.with_columns(s=score).sort("g", maintain_order=True)
    return data if names is None else data.with_columns(g=names)


def colours(chart: Any) -> dict[str, str]:
    scale = line_of(chart)["color"]["scale"]
    return dict(zip(scale["domain"], scale["range"], strict=True))


@pytest.mark.parametrize("draw", sweep(ALL, fast=1))
def test_many_curves_are_grey_but_for_four(draw: Draw) -> None:
    chart = draw(grouped(9))
    found = colours(chart)
    shown = [group for group, colour in found.items() if colour != GREY]
    assert len(shown) == len({found[group] for group in shown}) == 4
    assert "5 others in grey, in colour the two highest and the two lowest by" in caption(chart)
    dashes = line_of(chart)["strokeDash"]["scale"]
    of_shown = [d for g, d in zip(dashes["domain"], dashes["range"], strict=True) if g in shown]
    assert len(set(map(tuple, of_shown))) == 4


@pytest.mark.parametrize("draw", sweep(ALL, fast=1))
def test_highlight_lists_what_is_in_colour(draw: Draw) -> None:
    chart = draw(grouped(4), highlight=[3, "1"])
    assert [group for group, colour in colours(chart).items() if colour != GREY] == ["1", "3"]
    assert caption(chart).startswith("2 others in grey")


@pytest.mark.parametrize("name", sweep(HIGHEST_LAST, fast=1))
def test_curves_are_sorted(name: str) -> None:
    draw, highest_last = HIGHEST_LAST[name]
    names = {0: "a10", 1: "a9", 2: "c", 3: "b"}
    data = grouped(4, names=pl.col("g").replace_strict(names))
    orders = {sort: list(colours(draw(data, sort=sort))) for sort in ("rows", "name", "value")}
    assert orders["rows"] == ["a10", "a9", "b", "c"]
    assert orders["name"] == ["a9", "a10", "b", "c"]
    assert orders["value"] == ["b", "c", "a9", "a10"][:: 1 if highest_last else -1]


@pytest.mark.parametrize("draw", sweep(ALL, fast=3))
def test_ordered_categories_keep_their_order(draw: Draw) -> None:
    levels = pl.Enum(["low", "mid", "high"])
    names = pl.col("g").replace_strict({0: "high", 1: "mid", 2: "low"}).cast(levels)
    assert list(colours(draw(grouped(3, names=names)))) == ["low", "mid", "high"]


@pytest.mark.parametrize("draw", sweep(ALL, fast=1))
def test_size_and_title(draw: Draw, tmp_path: Path) -> None:
    words = "a chart of all groups"
    for options in ({}, {"facet": "g"}):
        chart = draw(grouped(2), width=211, height=123, title=words, **options)
        spec = chart.to_dict()
        panel = spec.get("spec", spec)
        # The bars of a calibration chart are below its panel.
        bars = draw is calibration
        assert panel["width"] == 211
        assert 123 <= panel["height"] <= (160 if bars else 123)
        assert words in shown_texts(chart, tmp_path)


@pytest.mark.parametrize("draw", ALL)
def test_options_that_are_refused(draw: Draw) -> None:
    data = grouped(2)
    for options, message in (
        ({"sort": "auc"}, "`sort` must be one of 'rows', 'name', 'value'; found 'auc'"),
        ({"width": 9}, "`width` must be 50 or more; found 9"),
        ({"height": 9}, "`height` must be 50 or more; found 9"),
        ({"highlight": ["9"]}, "`highlight` must list values of 'g' as the chart has them"),
    ):
        with pytest.raises(ValueError, match=f"^{message}"):
            draw(data, **options)
