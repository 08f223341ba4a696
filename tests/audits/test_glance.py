"""The table of all groups, and the mood of an answer: what is marked, and with which numbers."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import polars as pl
import pytest
from audit_words import markdown_of, page_of, page_words

import polars_wroc as wroc

LOANS: dict[str, Any] = {"attributes": ["race", "sex"], "threshold": 0.85, "favorable": "selected"}
HIRED: dict[str, Any] = {"selected": "hired", "favorable": "selected"}
MINUS = "\N{MINUS SIGN}"


def section(audit: wroc.Audit) -> str:
    return markdown_of(audit).partition("## All groups at a glance\n\n")[2].partition("\n\n## ")[0]


def glance(audit: wroc.Audit) -> dict[str, dict[str, str]]:
    """Return the cells of each row by their headings, without the rows of attributes alone."""
    headings, _, *rows = (line for line in section(audit).splitlines() if line.startswith("| "))
    names = [heading.strip() for heading in headings.strip("| ").split("|")][1:]
    table = {}
    for line in rows:
        group, *cells = (
            cell.strip() for cell in line.removeprefix("|").removesuffix("|").split("|")
        )
        if any(cells):
            table[group] = dict(zip(names, cells, strict=True))
    return table


def legend(audit: wroc.Audit) -> list[str]:
    return section(audit).splitlines()[0].split(" \N{MIDDLE DOT} ")


@pytest.fixture(scope="module")
def loans() -> wroc.Audit:
    return wroc.audit(wroc.data.loans(), "approved", "score", **LOANS)


def test_numbers_are_those_of_the_table_and_gaps_are_beside_them(loans: wroc.Audit) -> None:
    table = glance(loans)
    numbers = loans.table.filter(attribute="race", segment="black")
    rows = {row["metric"]: row for row in numbers.to_dicts()}
    rate, ratio = rows["selection_rate"], rows["impact_ratio"]["ratio"]
    assert table["black"]["Selected"] == f"{rate['value']:.0%} ▼{-100 * rate['gap']:.0f}"
    assert table["black"]["Impact ratio"] == f"{ratio:.2f} ▼"
    assert "△" in table["white"]["Selected"]
    # By how much the score of the group itself is off, and not by how much more than others.
    own = 100 * rows["mean_calibration_error"]["value"]
    assert abs(100 * rows["mean_calibration_error"]["gap"] - own) > 1
    assert table["black"]["Score too high by"] == f"+{own:.0f} ◆"
    # White differs because others are off.
    assert table["white"]["Score too high by"] == f"{MINUS}2"
    # Inconclusive numbers are plain.
    assert table["hispanic"]["Selected"] == "68%"


def test_columns_are_named_for_what_they_hold_where_being_selected_is_bad() -> None:
    frame = wroc.data.loans().with_columns(denied=pl.col("score") < 0.85)
    text = wroc.Text(selected="denied", rejected="granted")
    options: dict[str, Any] = {"attributes": "race", "selected": "denied", "text": text}
    audit = wroc.audit(frame, favorable="rejected", **options)
    table = glance(audit)
    assert "beyond it, fewer than four fifths of the highest share granted" in page_words(audit)
    assert table["black"]["Denied"].partition(" ")[2].startswith("▲")
    # The share granted of black applicants, by that of white ones.
    shares = frame.group_by("race").agg(1 - pl.col("denied").mean()).rows()
    granted: dict[str, float] = dict(shares)
    ratio = granted["black"] / granted["white"]
    assert table["black"]["Impact ratio (granted)"].startswith(f"{ratio:.2f}")
    # The worst off come first.
    names = [name for name in table if name != "Everyone"]
    assert names == sorted(names, key=lambda name: granted[name])
    good = glance(wroc.audit(frame, favorable="selected", **options))
    assert "Impact ratio" in good["black"]


def test_many_groups_that_do_not_differ_are_one_row() -> None:
    random = np.random.default_rng(3)
    group = random.integers(0, 20, 20_000)
    hired = random.random(20_000) < np.where(group == 7, 0.3, 0.5)
    frame = pl.DataFrame({"region": [f"r{k}" for k in group], "hired": hired})
    audit = wroc.audit(frame, attributes="region", **HIRED)
    table = glance(audit)
    assert [*table] == ["Everyone", "r7", "19 others, inconclusive or alike"]
    rates = audit.table.filter(
        pl.col("segment") != "r7", metric="selection_rate", attribute="region"
    )
    low, *_, high = (f"{100 * value:.0f}" for value in rates["value"].sort().to_list())
    others = table["19 others, inconclusive or alike"]
    assert others["Selected"] == f"{low}\N{EN DASH}{high}%"


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
    assert [*glance(wroc.audit(pl.DataFrame(rows), attributes="g", **HIRED))][-1] == name


def test_only_nobody_and_everybody_are_0_and_100_percent() -> None:
    shown = {0: "0%", 1: "<1%", 1117: "56%", 1999: ">99%", 2000: "100%"}
    rows = [{"g": f"{n}", "hired": place < n} for n in shown for place in range(2_000)]
    table = glance(wroc.audit(pl.DataFrame(rows), attributes="g", **HIRED))
    found = {name: row["Selected"].split()[0].removeprefix("\\") for name, row in table.items()}
    assert {n: found[str(n)] for n in shown} == shown


def test_ranges_keep_their_order_and_missing_values_come_last() -> None:
    bands = pl.Enum(["young", "middle", "old"])
    frame = pl.DataFrame(
        {
            "band": ["old", "young", "middle", None] * 200,
            "hired": [True, True, False, True] * 100 + [False, True, False, False] * 100,
        },
        schema_overrides={"band": bands},
    )
    names = [*glance(wroc.audit(frame, attributes="band", **HIRED))]
    assert names == ["Everyone", "young", "middle", "old", "(missing)"]


def test_the_legend_has_only_what_occurs(loans: wroc.Audit) -> None:
    assert "≈ shown to be at least four fifths" in legend(loans)
    alone = wroc.audit(wroc.data.loans(), "approved", "score", attributes="sex")
    assert "four fifths" not in section(alone)


def test_the_legend_has_the_sign_of_scores_that_are_off() -> None:
    random = np.random.default_rng(8)
    score = random.random(6_000)
    group = random.choice(["a", "b", "c"], 6_000)
    # Outcomes of a are rarer than its scores say; nothing else differs.
    outcome = random.random(6_000) < score * np.where(group == "a", 0.7, 1)
    audit = wroc.audit(
        pl.DataFrame({"g": group, "y": outcome, "s": score}), "y", "s", attributes="g"
    )
    assert "◆" in glance(audit)["a"]["Score too high by"]
    # It has no size.
    assert "◆ different, neither better nor worse" in legend(audit)


def test_the_first_sign_with_a_size_says_what_it_is() -> None:
    frame = pl.DataFrame({"g": ["a"] * 3_000 + ["b"] * 3_000, "k": [*range(3_000)] * 2})
    is_hired = pl.col("k") < pl.when(g="a").then(1_200).otherwise(1_800)
    frame = frame.with_columns(hired=is_hired)
    audit = wroc.audit(frame, attributes="g", **HIRED)
    first = "▼n worse than everyone else by n points, or below four fifths"
    assert legend(audit)[:2] == [first, "△n better"]
    neither = wroc.audit(frame, attributes="g", **HIRED | {"favorable": "neither"})
    (sign,) = [text for text in legend(neither) if "n points" in text]
    assert sign.endswith("different by n points, neither better nor worse")


def answer_of(audit: wroc.Audit) -> tuple[str, str]:
    """Return the classes of the answer on the page, and its words."""
    found = re.search(r'<p class="(answer[\w ]*)">(.*?)</p>', page_of(audit), re.DOTALL)
    assert found is not None
    return found[1], re.sub(r"<[^>]+>", "", found[2])


def test_a_whole_score_that_is_off_makes_no_group_worse_off() -> None:
    random = np.random.default_rng(2)
    score = random.random(8_000)
    frame = pl.DataFrame(
        {"y": random.random(8_000) < score / 2, "s": score, "g": random.choice(["a", "b"], 8_000)}
    )
    audit = wroc.audit(frame, "y", "s", attributes="g", threshold=0.5, favorable="selected")
    mood, text = answer_of(audit)
    assert text.startswith("No group is shown to be worse off.")
    assert "The scores of everyone are 25 points too high" in text
    # The bar is black, not orange.
    assert mood == "answer either"


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
    mood, text = answer_of(audit)
    assert mood == "answer either"
    assert "High scores are too high and low ones too low for all rows together" in text
    assert "backwards" not in text
    # The answer has counted the comparisons of groups, none of which differs.
    assert " inconclusive" in text
    assert 'class="tally"' not in page_of(audit)


def test_a_finding_that_is_inconclusive_has_no_bar() -> None:
    frame = pl.DataFrame({"g": ["a", "b"] * 40, "hired": [True, False, False, True] * 20})
    mood, text = answer_of(wroc.audit(frame, attributes="g", **HIRED))
    assert mood == "answer"
    assert "But the only comparison is inconclusive" in text


def test_points_have_the_same_digits_in_charts() -> None:
    frame = pl.DataFrame({"y": [1, 0] * 500, "s": [0.514] * 1_000})
    chart = wroc.calibration_chart(wroc.calibration_curve(frame, "y", "s", bins=1))
    assert chart.to_dict()["title"]["text"] == ["Scores are 1.4 points too high, on average"]


def test_signs_point_as_in_the_table() -> None:
    loans = wroc.data.loans().with_columns(risk=1 - pl.col("score"), denied=~pl.col("approved"))
    options: dict[str, Any] = {"attributes": "race", "threshold": 0.15, "favorable": "rejected"}
    audit = wroc.audit(loans, "denied", "risk", **options)
    shown = {cell.partition(" ")[2][:1] for row in glance(audit).values() for cell in row.values()}
    assert "\N{BLACK UP-POINTING TRIANGLE}" in shown
    worse, better, *_ = legend(audit)
    assert worse.startswith("\N{BLACK UP-POINTING TRIANGLE}n worse")
    assert better.startswith("\N{WHITE DOWN-POINTING TRIANGLE}n better")
