"""The table of all groups, and the mood of an answer: what is marked, and with which numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_wroc as wroc
from polars_wroc.audits.amounts import write_interval, write_percent
from polars_wroc.audits.glance import lay_out_groups, make_number_scale
from polars_wroc.audits.sections import write_report
from polars_wroc.audits.toned_audit import TonedAudit
from polars_wroc.documents.blocks import Cell, Row, Table, TextBlock
from polars_wroc.documents.numbers import write_points

LOANS: dict[str, Any] = {"attributes": ["race", "sex"], "threshold": 0.85, "favorable": "selected"}
MINUS = "\N{MINUS SIGN}"


def glance(audit: wroc.Audit) -> Table:
    return lay_out_groups(TonedAudit.read(audit))


def row_of(table: Table, name: str) -> Row:
    (found,) = [row for row in table.rows if row.name == name]
    return found


def cell_of(table: Table, name: str, heading: str) -> Cell:
    headings = [column.heading for column in table.columns]
    return row_of(table, name).cells[headings.index(heading) - 1]


@pytest.fixture(scope="module")
def loans() -> wroc.Audit:
    return wroc.audit(wroc.data.loans(), "approved", "score", **LOANS)


def test_numbers_are_those_of_the_table_and_gaps_are_beside_them(loans: wroc.Audit) -> None:
    table = glance(loans)
    numbers = loans.table.filter(attribute="race", segment="black")
    rows = {row["metric"]: row for row in numbers.to_dicts()}
    selected = cell_of(table, "black", "Selected")
    rate = rows["selection_rate"]
    assert selected.text == f"{rate['value']:.0%}"
    assert (selected.change, selected.tone) == (f"▼{-100 * rate['gap']:.0f}", "worse")
    ratio = cell_of(table, "black", "Impact ratio")
    assert (ratio.text, ratio.change) == (f"{rows['impact_ratio']['ratio']:.2f}", "▼")
    assert cell_of(table, "white", "Selected").change.startswith("△")
    # By how much the score of the group itself is off, and not by how much more than others.
    error = cell_of(table, "black", "Score too high by")
    own = 100 * rows["mean_calibration_error"]["value"]
    assert abs(100 * rows["mean_calibration_error"]["gap"] - own) > 1
    assert (error.text, error.change, error.tone) == (f"+{own:.0f}", "◆", "either")
    # White differs because others are off.
    assert cell_of(table, "white", "Score too high by") == Cell(f"{MINUS}2")
    # Inconclusive numbers are plain.
    assert cell_of(table, "hispanic", "Selected") == Cell("68%")


def test_dots_are_in_the_places_of_their_numbers(loans: wroc.Audit) -> None:
    table = glance(loans)
    black, everyone = (row_of(table, name).cells[1].dots for name in ("black", "Everyone"))
    assert black is not None
    assert everyone is not None
    (dot,) = black.dots
    assert black.other is not None
    assert black.fifths is not None
    # Four fifths of 81% are between 56% and 80%.
    assert dot < black.fifths < black.other
    assert black.interval is not None
    assert black.interval[0] < dot < black.interval[1]
    assert everyone.other is None


def test_a_plot_spans_at_least_20_points() -> None:
    row = {"n": 100, "value": 0.5, "reference_value": 0.501, "value_low": 0.49, "value_high": 0.51}
    scale = make_number_scale([row], 30)
    assert scale.high - scale.low == pytest.approx(0.2)
    assert all(scale.low <= tick <= scale.high for tick in scale.ticks)
    assert 3 <= len(scale.ticks) <= 8
    edge = make_number_scale([row | {"value": 0.0, "value_low": 0.0, "reference_value": 0.0}], 30)
    assert edge.low == 0


def test_columns_are_named_for_what_they_hold_where_being_selected_is_bad() -> None:
    frame = wroc.data.loans().with_columns(denied=pl.col("score") < 0.85)
    text = wroc.Text(selected="denied", rejected="granted")
    audit = wroc.audit(frame, attributes="race", selected="denied", favorable="rejected", text=text)
    table = glance(audit)
    notes = {column.heading: column.note for column in table.columns}
    assert notes["Impact ratio (granted)"] == "to the highest share granted"
    assert notes["Denied"] == "share of all"
    fifths = "beyond it, fewer than four fifths of the highest share granted"
    assert fifths in [sign.meaning for sign in table.legend]
    black = cell_of(table, "black", "Denied")
    assert (black.change[0], black.tone) == ("▲", "worse")
    # The share granted of black applicants, by that of white ones.
    granted = {
        race: 1 - share
        for race, share in frame.group_by("race").agg(pl.col("denied").mean()).rows()
    }
    ratio = granted["black"] / granted["white"]
    assert cell_of(table, "black", "Impact ratio (granted)").text == f"{ratio:.2f}"
    # The worst off come first.
    names = [row.name for row in table.rows if row.cells][1:]
    assert names == sorted(names, key=lambda name: granted[name])


def test_markdown_names_the_decision_of_ratios_where_being_selected_is_bad(tmp_path: Path) -> None:
    frame = wroc.data.loans().with_columns(denied=pl.col("score") < 0.85)
    text = wroc.Text(selected="denied", rejected="granted")
    options: dict[str, Any] = {"attributes": "race", "selected": "denied", "text": text}
    wroc.audit(frame, favorable="rejected", **options).save(tmp_path / "audit.md")
    assert "| Denied | Impact ratio (granted) |" in (tmp_path / "audit.md").read_text("utf-8")
    wroc.audit(frame, favorable="selected", **options).save(tmp_path / "audit.md")
    assert "| Denied | Impact ratio |" in (tmp_path / "audit.md").read_text("utf-8")


def test_many_groups_that_do_not_differ_are_one_row() -> None:
    random = np.random.default_rng(3)
    group = random.integers(0, 20, 20_000)
    hired = random.random(20_000) < np.where(group == 7, 0.3, 0.5)
    frame = pl.DataFrame({"region": [f"r{k}" for k in group], "hired": hired})
    audit = wroc.audit(frame, attributes="region", selected="hired", favorable="selected")
    table = glance(audit)
    assert [row.name for row in table.rows] == [
        "Everyone",
        "region",
        "r7",
        "19 others, inconclusive or alike",
    ]
    dots = table.rows[-1].cells[1].dots
    assert dots is not None
    assert len(dots.dots) == 19
    rates = audit.table.filter(
        pl.col("segment") != "r7", metric="selection_rate", attribute="region"
    )
    low, *_, high = (f"{100 * value:.0f}" for value in rates["value"].sort().to_list())
    assert table.rows[-1].cells[2].text == f"{low}\N{EN DASH}{high}%"


@pytest.mark.parametrize(
    ("rates", "name"),
    [
        ([0.5] * 20, "20 groups, inconclusive or alike"),
        ([0.1] * 10 + [0.9] * 10, "5 others, 5 of them different"),
    ],
)
def test_groups_in_one_row_are_said_to_differ_if_they_do(rates: list[float], name: str) -> None:
    rows = [
        {"g": f"g{group}", "hired": place < 100 * rate}
        for group, rate in enumerate(rates)
        for place in range(100)
    ]
    options: dict[str, Any] = {"attributes": "g", "selected": "hired", "favorable": "selected"}
    audit = wroc.audit(pl.DataFrame(rows), **options)
    assert glance(audit).rows[-1].name == name


def test_ranges_keep_their_order_and_missing_values_come_last() -> None:
    bands = pl.Enum(["young", "middle", "old"])
    frame = pl.DataFrame(
        {
            "band": ["old", "young", "middle", None] * 200,
            "hired": [True, True, False, True] * 100 + [False, True, False, False] * 100,
        },
        schema_overrides={"band": bands},
    )
    audit = wroc.audit(frame, attributes="band", selected="hired", favorable="selected")
    names = [row.name for row in glance(audit).rows if row.cells]
    assert names == ["Everyone", "young", "middle", "old", "(missing)"]


def test_the_legend_has_only_what_occurs(loans: wroc.Audit) -> None:
    meanings = [sign.meaning for sign in glance(loans).legend]
    assert "shown to be at least four fifths" in meanings
    alone = wroc.audit(wroc.data.loans(), "approved", "score", attributes="sex")
    meanings = [sign.meaning for sign in glance(alone).legend]
    assert meanings == [
        "group, with 95% interval",
        "everyone else",
        "plain: inconclusive",
    ]


def test_the_legend_has_the_sign_of_scores_that_are_off() -> None:
    random = np.random.default_rng(8)
    score = random.random(6_000)
    group = random.choice(["a", "b", "c"], 6_000)
    # Outcomes of a are rarer than its scores say; nothing else differs.
    outcome = random.random(6_000) < score * np.where(group == "a", 0.7, 1)
    frame = pl.DataFrame({"g": group, "y": outcome, "s": score})
    table = glance(wroc.audit(frame, "y", "s", attributes="g"))
    shown = {cell.change for row in table.rows for cell in row.cells if cell.tone == "either"}
    assert shown == {"\N{BLACK DIAMOND}"}
    signs = {sign.meaning: sign.cell for sign in table.legend}
    # It has no size.
    expected = Cell("", "\N{BLACK DIAMOND}", "either")
    assert signs["different, neither better nor worse"] == expected


def test_the_first_sign_with_a_size_says_what_it_is() -> None:
    frame = pl.DataFrame({"g": ["a"] * 3_000 + ["b"] * 3_000, "k": [*range(3_000)] * 2})
    is_hired = pl.col("k") < pl.when(g="a").then(1_200).otherwise(1_800)
    frame = frame.with_columns(hired=is_hired)
    options: dict[str, Any] = {"attributes": "g", "selected": "hired"}
    table = glance(wroc.audit(frame, favorable="selected", **options))
    meanings = [sign.meaning for sign in table.legend if sign.cell is not None]
    assert meanings == [
        "worse than everyone else by n points, or below four fifths",
        "better",
    ]
    table = glance(wroc.audit(frame, favorable="neither", **options))
    meanings = [sign.meaning for sign in table.legend if sign.cell is not None]
    assert meanings == ["different by n points, neither better nor worse"]


def answer_of(audit: wroc.Audit) -> TextBlock:
    blocks = write_report(audit, with_charts=False)
    return next(
        block
        for block in blocks
        if isinstance(block, TextBlock) and block.style.startswith("answer")
    )


def test_a_whole_score_that_is_off_makes_no_group_worse_off() -> None:
    random = np.random.default_rng(2)
    score = random.random(8_000)
    frame = pl.DataFrame(
        {"y": random.random(8_000) < score / 2, "s": score, "g": random.choice(["a", "b"], 8_000)}
    )
    audit = wroc.audit(frame, "y", "s", attributes="g", threshold=0.5, favorable="selected")
    answer = answer_of(audit)
    assert answer.lead == "No group is shown to be worse off."
    assert "The scores of everyone are 25 points too high" in answer.text
    # The bar is black, not orange.
    assert answer.style == "answer either"


def test_the_bar_of_an_answer_is_that_of_what_it_tells() -> None:
    random = np.random.default_rng(5)
    frame = pl.DataFrame(
        {
            "y": random.random(2_000) < 0.5,
            "s": random.random(2_000),
            "g": random.choice(["a", "b"], 2_000),
        }
    )
    audit = wroc.audit(frame, "y", "s", attributes="g", threshold=0.5, favorable="selected")
    (slope,) = audit.table.filter(attribute="overall", metric="calibration_slope").to_dicts()
    # By chance, the scores of all rows rank a little backwards, which is not shown.
    assert slope["value"] < 0 < slope["value_high"]
    answer = answer_of(audit)
    assert answer.style == "answer either"
    assert "High scores are too high and low ones too low for all rows together" in answer.text
    assert "backwards" not in answer.text
    # The answer has counted the comparisons of groups, none of which differs.
    assert " inconclusive" in answer.text
    assert not [block for block in write_report(audit, with_charts=False) if is_tally(block)]


def is_tally(block: object) -> bool:
    return isinstance(block, TextBlock) and block.style == "tally"


def test_a_finding_that_is_inconclusive_has_no_bar() -> None:
    frame = pl.DataFrame({"g": ["a", "b"] * 40, "hired": [True, False, False, True] * 20})
    audit = wroc.audit(frame, attributes="g", selected="hired", favorable="selected")
    answer = answer_of(audit)
    assert answer.style == "answer"
    assert answer.text.startswith("But the only comparison is inconclusive")


@pytest.mark.parametrize(
    ("share", "digits", "text"),
    [
        (0.0, 0, "0%"),
        (0.001, 0, "<1%"),
        (0.5583, 0, "56%"),
        (0.5583, 1, "55.8%"),
        (0.999, 0, ">99%"),
        (1.0, 0, "100%"),
        (None, 0, "\N{EN DASH}"),
    ],
)
def test_only_nobody_and_everybody_are_0_and_100_percent(
    share: float | None, digits: int, text: str
) -> None:
    assert write_percent(share, digits) == text


@pytest.mark.parametrize(
    ("low", "high", "digits", "text"),
    [
        (-0.32, -0.17, 0, "17 to 32"),
        (0.17, 0.32, 0, "17 to 32"),
        (-0.13, 0.05, 0, "13 lower to 5 higher"),
        # Two numbers, of which none is 0.
        (0.112, 0.114, 0, "11.2 to 11.4"),
        (0.004, 0.05, 0, "0.4 to 5.0"),
        (None, 0.1, 0, ""),
    ],
)
def test_limits_are_sizes_in_the_direction_of_the_gap(
    low: float | None, high: float | None, digits: int, text: str
) -> None:
    assert write_interval(low, high, digits) == text


def test_points_have_a_decimal_where_they_are_few() -> None:
    assert [write_points(gap) for gap in (0.244, -0.014, 0.01, 0.0)] == [
        "24 points",
        "1.4 points",
        "1 point",
        "0 points",
    ]


def test_points_have_the_same_digits_in_charts() -> None:
    frame = pl.DataFrame({"y": [1, 0] * 500, "s": [0.514] * 1_000})
    chart = wroc.calibration_chart(wroc.calibration_curve(frame, "y", "s", bins=1))
    assert chart.to_dict()["title"]["text"] == ["Scores are 1.4 points too high, on average"]


def test_signs_point_as_in_the_table() -> None:
    loans = wroc.data.loans().with_columns(risk=1 - pl.col("score"), denied=~pl.col("approved"))
    options: dict[str, Any] = {"attributes": "race", "threshold": 0.15, "favorable": "rejected"}
    table = glance(wroc.audit(loans, "denied", "risk", **options))
    shown = {cell.tone: cell.change[0] for row in table.rows for cell in row.cells if cell.change}
    signs = {sign.cell.tone: sign.cell.change for sign in table.legend if sign.cell is not None}
    assert shown["worse"] == "\N{BLACK UP-POINTING TRIANGLE}"
    assert signs["worse"] == "\N{BLACK UP-POINTING TRIANGLE}n"
    assert signs["better"] == "\N{WHITE DOWN-POINTING TRIANGLE}n"
