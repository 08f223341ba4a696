"""The chart of AUCs and their intervals: what it draws, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from drawings import (
    Chart,
    drawn,
    scored,
    shown_numbers,
    shown_texts,
    tooltip_fields,
    with_one_class,
)
from polars.testing import assert_frame_equal

import polars_wroc as wroc
from polars_wroc.audits.report.figures import aucs_of

# Columns of the drawn rows, and of the table.
DRAWN = {"__value": "auc", "__low": "auc_low", "__high": "auc_high", "__n": "n"}


def drawn_panels(chart: Chart) -> dict[str, list[dict[str, Any]]]:
    whole = chart.to_dict()
    return {
        panel["title"]["text"]: whole["datasets"][panel["data"]["name"]]
        for panel in whole["vconcat"]
    }


def audited() -> pl.DataFrame:
    """Rows with two attributes and two scores."""
    number = pl.int_range(pl.len())
    return scored(200, groups=2).with_columns(h=number % 3, t=(pl.col("s") * 9).floor())


def test_each_segment_is_drawn_with_its_interval() -> None:
    data = scored(300, groups=4)
    summary = wroc.summary(data, "y", "s", weight="w", by="g", level=0.8)
    for table in (summary, summary.lazy()):
        rows = pl.DataFrame(drawn(wroc.auc_chart(table)))
        assert rows["__row"].to_list() == [
            f"{group} (n = {n})" for group, n in summary.select("g", "n").iter_rows()
        ]
        assert_frame_equal(rows.select(*DRAWN).rename(DRAWN), summary.select(*DRAWN.values()))


def test_marks_stand_at_the_auc_and_at_its_limits() -> None:
    chart = wroc.auc_chart(wroc.summary(scored(60, groups=2), "y", "s", by="g"))
    interval, point, number, between = chart.to_dict()["layer"]
    marks = [layer["mark"]["type"] for layer in (interval, point, number, between)]
    assert marks == ["rule", "point", "text", "text"]
    limits = [interval["encoding"][axis]["field"] for axis in ("x", "x2")]
    assert limits == ["__low", "__high"]
    assert point["encoding"]["x"]["field"] == number["encoding"]["text"]["field"] == "__value"
    assert {*DRAWN, "__row"} <= tooltip_fields([point])


def test_groups_of_several_columns_make_up_the_segment() -> None:
    data = scored(99, groups=2).with_columns(h=pl.when(pl.col("s") < 0.7).then(pl.lit("x")))
    summary = wroc.summary(data, "y", "s", by=["g", "h"])
    rows = drawn(wroc.auc_chart(summary))
    names = ["0, (missing)", "0, x", "1, (missing)", "1, x"]
    sizes = summary["n"].to_list()
    assert [row["__row"] for row in rows] == [
        f"{name} (n = {n})" for name, n in zip(names, sizes, strict=True)
    ]


def test_everybody_is_one_segment_and_large_numbers_are_readable() -> None:
    (row,) = drawn(wroc.auc_chart(wroc.summary(scored(1_234), "y", "s")))
    assert row["__row"] == "all rows (n = 1,234)"


def test_models_of_a_segment_differ_by_shape_and_not_by_colour_alone() -> None:
    data = scored(99, groups=2).with_columns(t=1 - pl.col("s"))
    chart = wroc.auc_chart(wroc.summary(data, "y", ["s", "t"], by="g"))
    rows = drawn(chart)
    assert [(row["__row"][0], row["__group2"]) for row in rows] == [
        (group, model) for group in "01" for model in ("s", "t")
    ]
    encoding = chart.to_dict()["layer"][1]["encoding"]
    assert {encoding[channel]["field"] for channel in ("color", "shape")} == {"__group2"}
    assert encoding["yOffset"]["field"] == "__line"
    for channel in ("color", "shape"):
        assert encoding[channel]["scale"]["domain"] == ["s", "t"]
        assert len(set(encoding[channel]["scale"]["range"])) == 2


def test_facet_has_a_panel_for_each_value() -> None:
    data = scored(99, groups=3).with_columns(h=pl.col("g") % 2)
    summary = wroc.summary(data, "y", "s", by=["g", "h"])
    panels = drawn_panels(wroc.auc_chart(summary, facet="g"))
    assert list(panels) == ["0", "1", "2"]
    names = [[row["__row"].partition(" ")[0] for row in rows] for rows in panels.values()]
    assert names == [["0"], ["1"], ["0"]]


@pytest.mark.slow
def test_audit_has_a_panel_for_each_attribute_and_brings_its_overall_auc() -> None:
    audit = wroc.audit(audited(), "y", ["s", "t"], attributes=["g", "h"], weight="w")
    aucs = aucs_of(audit)
    panels = drawn_panels(wroc.auc_chart(aucs))
    assert list(panels) == ["overall", "g", "h"]
    overall = aucs.filter(attribute="overall")
    everybody = dict(overall.select("model", "auc").iter_rows())
    assert len(set(everybody.values())) == 2
    for attribute, rows in panels.items():
        segments = aucs.filter(attribute=attribute)
        assert [row["__value"] for row in rows] == segments["auc"].to_list()
        assert [row["__line_value"] for row in rows] == [everybody[row["__group3"]] for row in rows]
    layer = wroc.auc_chart(aucs).to_dict()["vconcat"][1]["layer"][0]
    assert layer["encoding"]["color"]["field"] == "__group3"
    assert layer["encoding"]["x"]["field"] == "__line_value"


def test_audit_of_one_score_brings_its_overall_auc() -> None:
    audit = wroc.audit(audited(), "y", "s", attributes="g")
    aucs = aucs_of(audit)
    panels = drawn_panels(wroc.auc_chart(aucs))
    found = {row["__line_value"] for rows in panels.values() for row in rows}
    assert found == {aucs["auc"][0]}


def test_overall_line_is_drawn_where_the_caller_says() -> None:
    audit = wroc.audit(audited(), "y", "s", attributes="g")
    summary = wroc.summary(audited(), "y", "s", by="g")
    panels = drawn_panels(wroc.auc_chart(aucs_of(audit), overall=0.25))
    assert {row["__line_value"] for rows in panels.values() for row in rows} == {0.25}
    assert {row["__line_value"] for row in drawn(wroc.auc_chart(summary, overall=1))} == {1.0}
    assert all("__line_value" not in row for row in drawn(wroc.auc_chart(summary)))


@pytest.mark.slow
def test_segment_without_an_auc_draws_nothing(tmp_path: Path) -> None:
    summary = wroc.summary(with_one_class(), "y", "s", by="g")
    chart = wroc.auc_chart(summary)
    (row,) = (row for row in drawn(chart) if row["__row"].startswith("b "))
    assert [row[name] for name in ("__value", "__low", "__high")] == [None] * 3
    expected = summary["auc"].drop_nulls().to_list()
    assert shown_numbers(chart, tmp_path) == pytest.approx(expected, abs=6e-4)


def test_segment_without_an_auc_is_named(tmp_path: Path) -> None:
    summary = wroc.summary(with_one_class(), "y", "s", by="g")
    names = [text for text in shown_texts(wroc.auc_chart(summary), tmp_path) if "(n = " in text]
    assert sorted(name[0] for name in names) == ["a", "b", "c"]


@pytest.mark.parametrize("channel", ["color", "facet"])
def test_segment_may_have_a_name_that_vega_reads_as_syntax(channel: str, tmp_path: Path) -> None:
    data = audited().rename({"g": "a.b[c]", "h": "d:e"})
    summary = wroc.summary(data, "y", "s", by=["a.b[c]", "d:e"])
    options: dict[str, Any] = {channel: "a.b[c]"}
    chart = wroc.auc_chart(summary, **options)
    expected = summary["auc"].sort().to_list()
    assert sorted(shown_numbers(chart, tmp_path)) == pytest.approx(expected, abs=6e-4)
    if channel == "color":
        field = chart.to_dict()["layer"][1]["encoding"]["color"]
        assert (field["field"], field["title"]) == ("__group1", "a.b[c]")


@pytest.mark.parametrize("channel", ["color", "facet"])
def test_channel_that_is_no_group(channel: str) -> None:
    summary = wroc.summary(audited(), "y", "s", by="g")
    message = rf"^`{channel}` must be a group column of the table, \['g'\]; found 'h'$"
    options: dict[str, Any] = {channel: "h"}
    with pytest.raises(ValueError, match=message):
        wroc.auc_chart(summary, **options)


def test_tables_without_rows_and_with_too_many() -> None:
    summary = wroc.summary(audited(), "y", "s", by="g")
    for table, found in ((summary.clear(), "0"), (pl.concat([summary] * 2_501), "5,002")):
        message = f"^`summary` must have 1 to 5,000 rows to be drawn; found {found}$"
        with pytest.raises(ValueError, match=message):
            wroc.auc_chart(table)


def test_tables_that_are_no_summaries() -> None:
    with pytest.raises(
        ValueError, match=r"^`summary` must have the columns .*; found no \['auc', "
    ):
        wroc.auc_chart(wroc.roc_curve(scored(9), "y", "s"))
    with pytest.raises(
        TypeError, match=r"^`summary` must be a table of this package; found list: make it"
    ):
        wroc.auc_chart([])  # type: ignore[arg-type]


def test_overall_that_is_no_auc() -> None:
    summary = wroc.summary(audited(), "y", "s", by="g")
    with pytest.raises(ValueError, match=r"^`overall` must lie between 0 and 1; found 1\.5$"):
        wroc.auc_chart(summary, overall=1.5)
    with pytest.raises(TypeError, match=r"^`overall` must be a number; found 'x' of type str$"):
        wroc.auc_chart(summary, overall="x")  # type: ignore[arg-type]


def test_each_panel_counts_its_own_rows() -> None:
    data = scored(90, groups=3).with_columns(h=pl.int_range(pl.len()) % 2)
    summary = wroc.summary(data, "y", "s", by=["g", "h"])
    chart = wroc.auc_chart(summary, facet="h").to_dict()
    named = {row["__row"] for rows in chart["datasets"].values() for row in rows}
    assert named == {f"{g} (n = {n})" for g, n in summary.select("g", "n").iter_rows()}
