"""The summary for New York City: the rule's examples, plain counting, pages and what is refused."""

from __future__ import annotations

import datetime as dt
import json
from itertools import product
from pathlib import Path
from typing import Any

import aedt_audit
import numpy as np
import openpyxl
import polars as pl
import pytest
from chromium import Chromium
from html_pages import ReadPage
from polars.testing import assert_frame_equal

import polars_wroc as wroc
from polars_wroc.cli import main
from polars_wroc.typing import NewYorkSummary

BOTH = "sex \N{MULTIPLICATION SIGN} race"
GIVEN: dict[str, Any] = {"source": "All applications of 2025.", "distribution_date": "2026-01-15"}
# Numbers selected and of applicants, and the ratio that 6 RCNY 5-301 prints.
PRINTED: dict[str, dict[str, tuple[int, int, str]]] = {
    "sex, selected": {"male": (667, 1390, "1.000"), "female": (555, 1181, "0.979")},
    "race, selected": {"Black": (170, 390, "0.843"), "White": (412, 797, "1.000")},
    "crossed, selected": {"Native women": (7, 17, "0.789"), "White men": (215, 412, "1.000")},
    "sex, scored": {"male": (50, 92, "1.00"), "female": (34, 76, "0.82")},
    "race, scored": {
        "Hispanic": (18, 28, "1.00"),
        "White": (15, 40, "0.58"),
        "Black": (16, 32, "0.78"),
        "Pacific": (5, 8, "0.97"),
        "Asian": (10, 24, "0.65"),
    },
}


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    """Applicants of two sexes and three races, some not known, one race rare."""
    random = np.random.default_rng(144)
    size = 800
    sex = random.choice(np.array(["female", "male", None]), size, p=[0.45, 0.5, 0.05])
    race = random.choice(["a", "b", "c", "not stated"], size, p=[0.6, 0.36, 0.01, 0.03])
    score = random.normal(size=size).round(1) - 0.5 * (sex == "female")
    return pl.DataFrame(
        {
            "sex": sex,
            "race": race,
            "s": pl.Series(score).set(pl.int_range(size, eager=True) % 100 == 7, None),
            "hired": pl.Series(score > 0.4).set(pl.int_range(size, eager=True) % 90 == 3, None),
            "n": random.integers(1, 4, size),
        }
    )


def summarized(frame: Any, *given: Any, **options: Any) -> NewYorkSummary:
    asked = {"attributes": ["sex", "race"], "unknown": ["not stated"]}
    return wroc.new_york_summary(frame, *given, **GIVEN | asked | options)


@pytest.mark.parametrize("name", PRINTED)
def test_printed_examples_of_the_rule(name: str, tmp_path: Path) -> None:
    rows = [
        (group, place < selected)
        for group, (selected, n, _) in PRINTED[name].items()
        for place in range(n)
    ]
    frame = pl.DataFrame(rows, ["g", "d"], orient="row")
    scored = name.endswith("scored")
    # At most half of the people are above the median, so that any two scores do.
    given = {"score": pl.col("d").cast(pl.Int8)} if scored else {"selected": "d"}
    summary = wroc.new_york_summary(frame, attributes="g", **GIVEN, **given)
    for group, (selected, n, printed) in PRINTED[name].items():
        row = summary.table.filter(segment=group).row(0, named=True)
        assert (row["n"], row["n_selected"]) == (n, selected)
        assert row["rate"] == pytest.approx(selected / n)
        digits = len(printed.partition(".")[2])
        assert row["impact_ratio"] == pytest.approx(float(printed), abs=0.51 * 10**-digits)
    summary.save(tmp_path / "x.html")
    (table,) = ReadPage((tmp_path / "x.html").read_text(encoding="utf-8")).tables
    counted = ["Above the median", "Scoring rate"] if scored else ["Selected", "Selection rate"]
    assert table[0] == ["g", "Assessed", *counted, "Impact ratio"]
    shown = {row[0]: (row[1], row[2]) for row in table[1:]}
    assert shown == {g: (f"{n:,}", f"{k:,}") for g, (k, n, _) in PRINTED[name].items()}


@pytest.mark.parametrize("scored", [False, True])
def test_against_plain_counting(people: pl.DataFrame, *, scored: bool) -> None:
    decided = people.drop_nulls("s" if scored else "hired")
    median = float(np.median(decided["s"].drop_nulls()))
    chosen = decided["s"] > median if scored else decided["hired"]
    rows = [
        (*parts, picked)
        for parts, picked in zip(decided.select("sex", "race").rows(), chosen, strict=True)
    ]
    given: dict[str, Any] = {"score": "s"} if scored else {"selected": "hired"}
    summary = summarized(people, **given)
    assert summary.n == len(rows)
    assert summary.n_missing == people.height - len(rows)

    def counted(place: int | None, segment: str) -> tuple[int, int]:
        those = [
            picked
            for sex, race, picked in rows
            if (f"{sex}, {race}" if place is None else (sex, race)[place]) == segment
        ]
        return len(those), sum(those)

    for attribute, place in (("sex", 0), ("race", 1), (BOTH, None)):
        table = summary.table.filter(attribute=attribute)
        known = table.drop_nulls("segment")
        unknown = table.filter(pl.col("segment").is_null()).row(0, named=True)
        numbers = {segment: counted(place, segment) for segment in known["segment"]}
        assert unknown["n"] == len(rows) - sum(n for n, _ in numbers.values())
        assert unknown["impact_ratio"] is unknown["share"] is None
        total = sum(n for n, _ in numbers.values())
        shares = {segment: n / total for segment, (n, _) in numbers.items()}
        best = max(k / n for s, (n, k) in numbers.items() if shares[s] >= 0.02)
        assert any(share < 0.02 for share in shares.values()) == (place != 0)
        for row in known.iter_rows(named=True):
            n, k = numbers[row["segment"]]
            assert (row["n"], row["n_selected"]) == (n, k)
            assert row["share"] == pytest.approx(shares[row["segment"]])
            small = row["share"] < 0.02
            assert row["reason"] == ("share below 2%" if small else None)
            ratio = None if small else pytest.approx(k / n / best)
            assert row["impact_ratio"] == ratio


@pytest.mark.parametrize("by", [["sex"], ["race"], ["race", "sex"]])
def test_against_aedt_audit(loans: pl.DataFrame, by: list[str]) -> None:
    known = loans.drop_nulls("sex")
    rates = aedt_audit.scoring_rates(known.to_pandas(), by=by, score="score")
    expected = pl.from_pandas(aedt_audit.four_fifths(rates))
    summary = wroc.new_york_summary(known, "score", attributes=by, min_share=0, **GIVEN)
    attribute = " \N{MULTIPLICATION SIGN} ".join(by)
    found = summary.table.filter(attribute=attribute)
    named = expected.select(
        pl.concat_str(by, separator=", ").alias("segment"), "impact_ratio"
    ).sort("segment")
    assert_frame_equal(found.select("segment", "impact_ratio").sort("segment"), named)


def test_lazy_counts_and_other_frames(people: pl.DataFrame) -> None:
    expected = summarized(people, selected="hired").table
    for frame in (people.lazy(), people.to_arrow(), people.to_arrow().to_reader()):
        assert_frame_equal(summarized(frame, selected="hired").table, expected)
    repeated = people.select(pl.exclude("n").repeat_by("n").explode())
    counted = summarized(people, selected="hired", weight=wroc.frequency("n"))
    assert_frame_equal(counted.table, summarized(repeated, selected="hired").table)
    assert counted.n_missing == repeated["hired"].null_count()


def test_the_page_has_what_the_rule_asks_for(people: pl.DataFrame, tmp_path: Path) -> None:
    given = {"audit_date": dt.date(2026, 3, 9), "justification": "Too few.", "title": "Audit of X"}
    summary = summarized(people, selected="hired", **given)
    summary.save(tmp_path / "x.html")
    page = ReadPage((tmp_path / "x.html").read_text(encoding="utf-8"))
    assert page.texts["h1"] == page.texts["title"] == ["Audit of X"]
    assert "script" not in page.texts
    facts = {
        name.removesuffix(":"): text.strip()
        for name, text in zip(page.texts["b"], page.texts["li"], strict=False)
    }
    unknown = {
        row["attribute"]: row["n"]
        for row in summary.table.iter_rows(named=True)
        if row["segment"] is None
    }
    assert facts == {
        "Date of the bias audit": "2026-03-09",
        "Distribution date of the tool": "2026-01-15",
        "Source and explanation of the data": "All applications of 2025.",
        "Individuals assessed": f"{summary.n:,}",
        "In an unknown category by sex": f"{unknown['sex']}",
        "In an unknown category by race": f"{unknown['race']}",
        "In an unknown category by sex and race": f"{unknown[BOTH]}",
        "Left out of all numbers, without a decision": f"{summary.n_missing}",
    }
    headings = ["By sex", "By race", "By sex and race", "Categories left out of the impact ratios"]
    assert page.texts["h2"] == headings
    crossed = page.tables[2]
    assert crossed[0][:2] == ["sex", "race"]
    rows = {f"{row[0]}, {row[1]}": row[2:] for row in crossed[1:]}
    for row in summary.table.filter(pl.col("attribute") == BOTH).iter_rows(named=True):
        if row["segment"] is not None:
            ratio = row["impact_ratio"]
            assert rows.pop(row["segment"]) == [
                f"{row['n']:,}",
                f"{row['n_selected']:,}",
                f"{row['rate']:.1%}",
                "\N{EN DASH}" if ratio is None else f"{ratio:.3f}",
            ]
    assert not rows
    left_out = page.tables[3]
    assert left_out[1][0] == "race: c"
    said = " ".join(page.texts["p"])
    assert "Justification of the independent auditor: Too few." in said
    assert "It certifies nothing" in said
    assert f"{unknown['sex']} more individuals are in an unknown category by sex" in said
    summary.save(tmp_path / "x.md")
    text = (tmp_path / "x.md").read_text(encoding="utf-8")
    assert text.startswith("# Audit of X\n\n- **Date of the bias audit:** 2026-03-09\n")
    assert text.endswith("\n\nIndependent auditor, name, date and signature:\n")
    assert text.count("\n## ") == len(headings)
    for heading in headings:
        assert heading in repr(summary)
    without = summarized(people, selected="hired")
    without.save(tmp_path / "y.md")
    assert "(to be given by the auditor)" in (tmp_path / "y.md").read_text(encoding="utf-8")


def test_files_have_the_table(people: pl.DataFrame, tmp_path: Path) -> None:
    summary = summarized(people, "s")
    for suffix in ("xlsx", "csv", "parquet", "json"):
        summary.save(tmp_path / f"x.{suffix}")
    assert_frame_equal(pl.read_parquet(tmp_path / "x.parquet"), summary.table)
    written = pl.read_csv(tmp_path / "x.csv")
    assert written["segment"].to_list().count("(unknown)") == 3
    assert written["impact_ratio"].to_list() == pytest.approx(
        summary.table["impact_ratio"].to_list()
    )
    book = openpyxl.load_workbook(tmp_path / "x.xlsx")
    assert book.sheetnames == ["About", "table"]
    about = {row[0].value: row[1].value for row in book["About"].iter_rows(min_row=3)}
    assert about["Source and explanation of the data"] == "All applications of 2025."
    assert about["Individuals assessed"] == summary.n
    header, *rows = book["table"].values
    assert header[:3] == ("attribute", "sex", "race")
    for row, expected in zip(rows, summary.table.iter_rows(named=True), strict=True):
        found = dict(zip(header, row, strict=True))
        named = ", ".join(name for name in (found["sex"], found["race"]) if name)
        assert named.removesuffix(", (unknown)") == (expected["segment"] or "(unknown)")
        for name in ("n", "n_selected", "rate", "impact_ratio", "share"):
            number = expected[name]
            assert found[name] == (None if number is None else pytest.approx(number, rel=1e-15))


def test_the_command_writes_the_summary(
    people: pl.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    decided = people.with_columns(
        decision=pl.when("hired").then(pl.lit("hired")).when(~pl.col("hired")).then(pl.lit("no"))
    )
    decided.write_csv("hires.csv")
    about = ["--source", GIVEN["source"], "--distribution-date", "2026-01-15"]
    call = ["new-york", "hires.csv", "--attribute", "sex", "--attribute", "race", *about]
    by_decision = [*call, "--selected", "decision=hired", "--unknown", "not stated"]
    expected = summarized(people, selected="hired")
    assert main([*by_decision, "-o", "x.parquet"]) == 0
    assert_frame_equal(pl.read_parquet("x.parquet"), expected.table)
    assert main([*by_decision, "--justification", "Few.", "-o", "x.html"]) == 0
    capsys.readouterr()
    assert main([*by_decision, "-o", "-"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [row["segment"] for row in listed] == expected.table["segment"].to_list()
    assert main([*call, "--score", "s"]) == 0
    printed, hint = capsys.readouterr()
    assert "By sex and race" in printed
    assert "Scoring" in printed
    assert "'not stated' of race is compared like any other category" in hint
    assert "list it in --unknown" in hint


def test_any_names(tmp_path: Path) -> None:
    names = ["<b>x</b>", "=1+1", "a, b", "a|b"]
    rows = [
        (one, other, (place + number) % 3 == 0)
        for place, (one, other) in enumerate(product(names, ["b, c", "c", "a"]))
        for number in range(9)
    ]
    frame = pl.DataFrame(rows, ["Selected", "Impact ratio", "d"], orient="row")
    attributes = ["Selected", "Impact ratio"]
    summary = wroc.new_york_summary(frame, selected="d", attributes=attributes, **GIVEN)
    summary.save(tmp_path / "x.html")
    first, _, crossed = ReadPage((tmp_path / "x.html").read_text(encoding="utf-8")).tables
    assert [row[0] for row in first[1:]] == sorted(names)
    assert len(first[0]) == 5
    parts = [tuple(row[:2]) for row in crossed[1:]]
    assert ("<b>x</b>", "b, c") in parts
    assert ("=1+1", "a") in parts


def test_names_that_several_combinations_may_have(tmp_path: Path) -> None:
    pairs = [("x", "y, z"), ("x, y", "w"), ("v", "z")] * 9
    frame = pl.DataFrame(pairs, ["g", "h"], orient="row").with_columns(d=True)
    summary = wroc.new_york_summary(frame, selected="d", attributes=["g", "h"], **GIVEN)
    summary.save(tmp_path / "x.html")
    crossed = ReadPage((tmp_path / "x.html").read_text(encoding="utf-8")).tables[2]
    # It may be x and "y, z", or "x, y" and z.
    assert ["x, y, z", ""] in [row[:2] for row in crossed[1:]]
    assert ["v", "z"] in [row[:2] for row in crossed[1:]]


def test_where_nobody_is_selected_or_many_scores_are_tied() -> None:
    nobody = pl.DataFrame({"g": ["a", "b"] * 9, "d": False, "s": [1] * 15 + [2] * 3})
    summary = wroc.new_york_summary(nobody, selected="d", attributes="g", **GIVEN)
    assert summary.table["impact_ratio"].to_list() == [None, None]
    assert summary.table["n_selected"].to_list() == [0, 0]
    tied = wroc.new_york_summary(nobody, "s", attributes="g", **GIVEN)
    assert "Only 17% score above the median" in repr(tied)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"source": " "}, "`source` must say where the data come from; found ' '"),
        ({"source": None}, "`source` must say where the data come from; found None"),
        ({"title": 3}, "`title` must be text; found 3"),
        ({"distribution_date": "15.1.2026"}, "`distribution_date` must be a date, for example"),
        ({"audit_date": 3}, "`audit_date` must be a date, for example 2026-01-15; found 3"),
        ({"weight": "n"}, "`weight` must be counts of people, as in wroc.frequency"),
        ({"score": "s"}, "exactly one of `score` and `selected` must be given; found `score` and "),
        ({"selected": None}, "exactly one of `score` and `selected` must be given; found none"),
        ({"selected": None, "score": ["s", "n"]}, "`score` must be one column; found several"),
        ({"attributes": "color"}, "`attributes` must name a column of the frame; found no column"),
    ],
)
def test_what_is_refused(people: pl.DataFrame, options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError, pl.exceptions.PolarsError)) as refused:
        summarized(people, **{"selected": "hired"} | options)
    assert message in str(refused.value)


def test_a_page_fits_on_a_phone(people: pl.DataFrame, tmp_path: Path, chromium: Chromium) -> None:
    summarized(people, "s").save(tmp_path / "x.html")
    chromium.open(tmp_path / "x.html", width=390)
    assert chromium.printed == []
    assert chromium.evaluate("document.documentElement.scrollWidth") <= 390
    # The ratios are seen without scrolling.
    inside = "[...document.querySelectorAll('.wide')].every(e => e.scrollWidth <= e.clientWidth)"
    assert chromium.evaluate(inside)


def test_paper_has_a_line_for_the_signature(
    people: pl.DataFrame, tmp_path: Path, chromium: Chromium
) -> None:
    summarized(people, "s", audit_date="2026-03-09").save(tmp_path / "x.html")
    for media in ("print", "screen"):
        chromium.open(tmp_path / "x.html", media=media)
        shown = chromium.evaluate("document.querySelector('main').innerText")
        assert "Date of the bias audit: 2026-03-09" in shown
        signature = "Independent auditor, name, date and signature:" in shown
        assert signature == (media == "print")


@pytest.mark.parametrize("suffix", ["html", "md", "xlsx"])
def test_files_do_not_depend_on_the_order_of_rows(
    suffix: str, people: pl.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    files = []
    for seed in range(2):
        summarized(people.sample(fraction=1, shuffle=True, seed=seed), "s").save(
            tmp_path / f"{seed}.{suffix}"
        )
        files.append((tmp_path / f"{seed}.{suffix}").read_bytes())
    assert files[0] == files[1]


@pytest.mark.parametrize("decision", [None, "hired"])
def test_a_summary_of_nobody_says_so(decision: str | None) -> None:
    texts: dict[str, Any] = {"sex": pl.String, "race": pl.String, "hired": pl.Boolean}
    nobody = pl.DataFrame(schema=texts)
    if decision:
        nobody = pl.DataFrame({"sex": ["f"], "race": ["a"], "hired": [None]}, texts)
    summary = wroc.new_york_summary(nobody, attributes=["sex", "race"], selected="hired", **GIVEN)
    text = " ".join(str(summary).split())
    assert "Nobody was assessed, so there are no rates and no ratios." in text
    assert "nan" not in text.lower()
    assert "Categories left out" not in text
    assert summary.table["share"].null_count() == summary.table.height == (3 if decision else 0)
