"""The findings as a matrix, and what was not audited."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_wroc as wroc
from polars_wroc.audits.findings import by_severity
from polars_wroc.audits.remarks import not_audited
from polars_wroc.audits.report.matrix import (
    SYMBOLS,
    Matrix,
    MatrixRow,
    blocks_of,
    matrix_of,
    shown_in,
    summed_up,
)
from polars_wroc.audits.report.page import unbroken
from polars_wroc.audits.report.sections import OVERLAID, curves_of
from polars_wroc.audits.report.tables import findings_on_page


def rows(segments: int = 3, each: int = 400) -> pl.DataFrame:
    """Segment a is selected less, and its scores promise too little."""
    rng = np.random.default_rng(3)
    n = segments * each
    group = np.repeat(np.arange(segments), each)
    positive = rng.random(n) < 0.5
    logit = 2 * (positive - 0.5) + rng.normal(size=n) - 1.5 * (group == 0)
    return pl.DataFrame(
        {
            "g": [chr(97 + number) if segments < 27 else f"{number:02}" for number in group],
            "h": rng.choice(["u", "v"], n),
            "y": positive,
            "s": 1 / (1 + np.exp(-logit)),
        }
    )


@pytest.fixture(scope="module")
def audit() -> wroc.Audit:
    few = rows().head(20).with_columns(g=pl.lit(None))
    return wroc.audit(
        pl.concat([rows(), few]),
        "y",
        "s",
        attributes=["g", "h"],
        threshold=0.5,
        favorable="selected",
        intersections=True,
    )


@pytest.fixture(scope="module")
def matrix(audit: wroc.Audit) -> Matrix:
    return matrix_of(audit)


def test_each_cell_is_a_finding(audit: wroc.Audit, matrix: Matrix) -> None:
    assert [column.short for column in matrix.columns] == [
        *("rate", "4/5", "tpr", "fpr", "AUC", "outcome")
    ]
    assert matrix.columns[2].heading == "Selected of those actually positive"
    ranked = {row["number"]: row for row in by_severity(audit).iter_rows(named=True)}
    listed = [*matrix.single, *matrix.crossed]
    # All rows together are compared with nothing, and two segments with each other.
    assert len(listed) == audit.segments.height - 2
    for row, (place, column) in itertools.product(listed, enumerate(matrix.columns)):
        cell = row.cells[place]
        if cell is None:
            # A combination with an unknown part has no impact ratio.
            assert column.metric == "impact_ratio"
            assert "(missing)" in str(row.segment)
            continue
        found = ranked[cell.rank]
        assert (found["attribute"], found["metric"]) == (row.attribute, column.metric)
        # Of two segments the finding is that of the first.
        if found["segment"] != row.segment:
            assert row.attribute == "h"
            continue
        if cell.outcome in ("worse", "better", "either"):
            is_ratio = column.metric == "impact_ratio"
            assert (found["verdict"], found["direction"]) == (
                "below four fifths" if is_ratio else "different",
                cell.outcome,
            )
            gap = abs(found["gap"] or 0.0)
            if not is_ratio:
                assert cell.size == min(max(int(np.ceil(gap / 0.05)), 1), 4)
        else:
            assert cell.size == 0
            assert found["verdict"] == {
                "alike": "at least four fifths"
                if column.metric == "impact_ratio"
                else "equivalent",
                "little": "inconclusive",
                "none": None,
            }.get(cell.outcome)


def test_calibration_is_its_own_value(audit: wroc.Audit, matrix: Matrix) -> None:
    place = [column.metric for column in matrix.columns].index("mean_calibration_error")
    values = audit.table.filter(attribute="g", metric="mean_calibration_error")
    for segment, value in values.drop_nulls("verdict").select("segment", "value").rows():
        (row,) = (row for row in matrix.single if (row.attribute, row.segment) == ("g", segment))
        cell = row.cells[place]
        assert cell is not None
        if cell.outcome != "little":
            assert cell.number == f"{100 * value:+.1f}".replace("-", "\N{MINUS SIGN}")


def test_numbers_have_signs_and_symbols(matrix: Matrix) -> None:
    worst = matrix.single[0]
    assert (worst.attribute, worst.segment, worst.n) == ("g", "a", 400)
    selected, ratio, *_, promised = worst.cells
    assert selected is not None
    assert ratio is not None
    assert promised is not None
    assert selected.number.startswith("\N{MINUS SIGN}")
    assert (selected.symbol, ratio.symbol) == (SYMBOLS["worse"], SYMBOLS["worse"])
    assert 0 < float(ratio.number) < 0.8
    assert promised.number.startswith("\N{MINUS SIGN}")
    assert promised.symbol == SYMBOLS["either"]
    (missing,) = (row for row in matrix.single if row.segment is None)
    known = [cell for cell in missing.cells if cell is not None]
    assert known[0].number == "n=20"
    assert known[0].reason == "fewer than 30 rows"
    assert {cell.outcome for cell in known} <= {"little", "none"}


def test_the_worst_off_come_first(audit: wroc.Audit, matrix: Matrix) -> None:
    order = [tuple(row) for row in by_severity(audit).select("attribute", "segment").rows()]
    for block in (matrix.single, matrix.crossed):
        places = [order.index((row.attribute, row.segment)) for row in block]
        assert places == sorted(places)
    assert {row.attribute for row in matrix.single} == {"g", "h"}
    assert len({row.attribute for row in matrix.crossed}) == 1


def test_of_many_segments_the_first_are_open() -> None:
    audit = wroc.audit(rows(33, 40), "y", "s", attributes="g", threshold=0.5, favorable="selected")
    (block,) = blocks_of(matrix_of(audit))
    assert (len(block.rows), len(block.folded), block.left_out) == (20, 13, "")
    assert block.summary == summed_up(block.folded)
    assert block.summary.startswith("13 more segments, ")
    shown = shown_in([block], by_severity(audit))
    # All rows have findings too.
    assert shown.height == 33 + 1
    alike = [replace(row, differs=False) for row in block.folded]
    assert summed_up(alike) == "13 more segments, none different"
    one: list[MatrixRow] = [replace(alike[0], differs=True)]
    assert summed_up(one) == "1 more segment, 1 of them different"


def test_every_link_leads_to_a_finding_on_the_page() -> None:
    audit = wroc.audit(
        rows(5, 100), "y", "s", attributes=["g", "h"], threshold=0.5, favorable="selected"
    )
    matrix = matrix_of(audit)
    blocks = blocks_of(matrix)
    found = findings_on_page(audit, shown_in(blocks, by_severity(audit)))
    linked = {cell.rank for row in matrix.single for cell in row.cells if cell is not None}
    assert linked <= found.ranks
    assert found.left_out == 0
    (first, *_) = found.first
    assert first.note.startswith(("Different (p ", "Surely: even its upper limit"))


@pytest.mark.parametrize(
    ("verdict", "open_ones", "heading"),
    [
        ("different", 12, "more comparisons with a difference"),
        (
            *(None, 0),
            "comparisons that could not be made: undefined, or the reference itself",
        ),
    ],
)
def test_folded_findings_have_headings(
    audit: wroc.Audit, verdict: str | None, open_ones: int, heading: str
) -> None:
    told = by_severity(audit).filter(attribute="g")
    if verdict is not None:
        told = told.drop_nulls("rank")
    told = told.with_columns(verdict=pl.lit(verdict, pl.String))
    of_g = replace(audit, table=told.drop("number"))
    found = findings_on_page(of_g, audit.segments.select("attribute", "segment"))
    ((folded, others),) = found.folded.items()
    assert folded == f"{len(others)} {heading}"
    assert len(others) == told.height - open_ones


@pytest.mark.slow
def test_segments_of_one_class_have_no_gap_in_precision() -> None:
    none = rows().filter(~pl.col("y")).head(200).with_columns(g=pl.lit("none"))
    audit = wroc.audit(
        pl.concat([rows(), none]), "y", "s", attributes="g", threshold=0.3, favorable="selected"
    )
    found = audit.table.filter(segment="none", metric="ppv").row(0, named=True)
    assert (found["value"], found["gap"], found["verdict"]) == (0.0, None, None)
    assert found["reason"] == "one class only"
    assert "of one class only" in found["sentence"]
    gaps = wroc.group_gaps(
        pl.concat([rows(), none]), "y", "s", attributes="g", threshold=0.3, min_rows=30
    )
    assert gaps.filter(segment="none", metric="ppv")["gap"].item() < -0.4
    others = pl.col("segment") != "none", pl.col("metric") == "ppv"
    # Adjusted p-values are those of the audit, whose family has tests of calibration too.
    columns = ["segment", "gap", "p_value"]
    known = audit.table.filter(*others, attribute="g").select(columns)
    assert_frame_equal(known, gaps.filter(*others).select(columns), rel_tol=1e-9)


def test_what_was_not_audited_is_said() -> None:
    few = pl.DataFrame({"g": [None] * 3, "h": ["u", "u", None], "y": True, "s": [0.5, None, 0.7]})
    audit = wroc.audit(pl.concat([rows(), few]), "y", "s", attributes=["g", "h"])
    decisions, *left_out, compared, outcomes = not_audited(audit)
    share = rows().select((pl.col("s") >= 0.5).mean()).item()
    assert decisions == f"No threshold was given. At 0.5 the score selects about {share:.0%}."
    assert left_out[:3] == [
        "1 row has no value in s and was left out.",
        "3 rows have no value in g and are the segment (missing).",
        "1 row has no value in h and is the segment (missing).",
    ]
    assert compared == "Only g, h are compared: groups by anything else may differ too."
    assert outcomes == "Outcomes are taken as recorded in y: a bias in them cannot be seen here."
    # Of scores that are no probabilities nobody knows what a half is.
    logits = rows().with_columns(pl.col("s") * 10)
    alone, calibration, *_ = not_audited(wroc.audit(logits, "y", "s", attributes="g"))
    assert alone == "No threshold was given."
    assert calibration.startswith("Calibration was not audited: scores from ")
    whole = wroc.audit(rows(), "y", "s", attributes="g", threshold=0.5, favorable="selected")
    assert not_audited(whole) == [
        "Only g is compared: groups by anything else may differ too.",
        outcomes,
    ]


@pytest.mark.parametrize(
    ("text", "unbreakable"),
    [
        ("24 points fewer (17 to 32).", "24_points fewer (17_to_32)."),
        ("0.703 (0.617 to 0.777) in (197 rows)", "0.703 (0.617_to_0.777) in (197_rows)"),
        ("Different (p < 0.001)", "Different (p_<_0.001)"),
        ("from 14 pairs fewer to 4 more", "from 14_pairs fewer to 4 more"),
        ("up to 4 too low", "up to 4 too low"),
    ],
)
def test_pairs_of_numbers_stay_together(text: str, unbreakable: str) -> None:
    assert unbroken(text).replace("\N{NO-BREAK SPACE}", "_") == unbreakable


def test_curves_in_one_panel_are_those_of_the_findings_then_the_ends() -> None:
    few = wroc.audit(rows(OVERLAID), "y", "s", attributes="g")
    assert curves_of(few, "g", by_severity(few)).reasons == {}
    many = wroc.audit(rows(8, 100), "y", "s", attributes="g", reference={"g": "c"})
    ranked = many.table.filter(attribute="g", metric="auc").sort("value")["segment"]
    least, greatest = "the segment with the least AUC", "the segment with the greatest AUC"
    findings = by_severity(many).with_columns(verdict=pl.lit("equivalent"))
    alike = curves_of(many, "g", findings)
    assert alike.reasons == {"the reference": ["c"], least: [ranked[0]], greatest: [ranked[-1]]}
    middle = next(name for name in ranked[2:-2] if name != "c")
    for different, room in (([middle], 1), ([ranked[0], middle], 1), ([*ranked], 0)):
        told = findings.with_columns(
            verdict=pl.when(pl.col("segment").is_in(different)).then(pl.lit("different"))
        )
        chosen = curves_of(many, "g", told)
        serious = told.filter(verdict="different")["segment"].unique(maintain_order=True)
        expected = [name for name in serious if name != "c"][: OVERLAID - 2]
        assert chosen.reasons["the segments with the most serious findings"] == expected
        shown = [name for names in chosen.reasons.values() for name in names]
        assert len(set(shown)) == len(shown) <= OVERLAID - 1
        assert set(shown) == set(chosen.segments["segment"])
        assert (greatest in chosen.reasons) == bool(room)
        assert (least in chosen.reasons) == (ranked[0] not in different)


@pytest.mark.slow
def test_many_numbers_are_answered_by_ranges() -> None:
    ages = pl.int_range(pl.len()) % pl.lit(51)
    some = rows().with_columns(age=ages, ratio=ages / 7, few=ages % 50, text=pl.format("{}a", ages))
    audit = wroc.audit(some, "y", "s", attributes=["age", "ratio", "few", "text"], min_rows=0)
    hints = [text for text in not_audited(audit) if "wroc.ranges" in text]
    assert len(hints) == 2
    for hint, name in zip(hints, ("age", "ratio"), strict=True):
        assert hint.startswith(f"Each of the 51 numbers in {name} is a segment. To compare larger")
        assert f"into ranges: wroc.ranges('{name}', [...]) in Python" in hint
    assert all(hint in " ".join(repr(audit).split()) for hint in hints)
    cut = wroc.audit(some, "y", "s", attributes=wroc.ranges("age", [20, 40]))
    assert not [text for text in not_audited(cut) if "wroc.ranges" in text]


def test_two_segments_are_one_row_against_each_other() -> None:
    two = pl.DataFrame({"sex": ["f", "m"] * 300, "y": [1, 0, 0] * 200}).with_row_index("i")
    scored = two.with_columns(s=pl.when(sex="f").then(pl.col("i") % 10).otherwise(pl.col("i") % 3))
    audit = wroc.audit(scored, "y", "s", attributes="sex", threshold=2, favorable="selected")
    matrix = matrix_of(audit)
    (row,) = matrix.single
    # Impact ratios are of the one that is selected less.
    assert (row.segment, row.against, row.name) == ("m", "f", "m against f")
    ratio = audit.table.filter(metric="impact_ratio", segment="m").row(0, named=True)
    by_metric = dict(zip([column.metric for column in matrix.columns], row.cells, strict=True))
    assert by_metric["impact_ratio"] is not None
    assert by_metric["impact_ratio"].number == f"{ratio['ratio']:.2f}"
    marked = set()
    for metric, cell in by_metric.items():
        found = audit.table.filter(metric=metric, segment="m").row(0, named=True)
        assert cell is not None
        if found["verdict"] == "different":
            assert cell.outcome == found["direction"]
            marked.add(cell.outcome)
    assert marked >= {"worse", "either"}
    # Findings may be of either.
    shown = shown_in(blocks_of(matrix), by_severity(audit))
    assert set(shown["segment"]) == {"f", "m"}
    assert findings_on_page(audit, shown).left_out == 0


def test_models_of_a_segment_are_below_each_other_and_crossed_names_have_parts() -> None:
    data = rows(2, 300).with_columns(t=-pl.col("s"), h=pl.when("y").then(pl.lit("u, v")))
    data = data.with_columns(k=pl.int_range(pl.len()) % 3)
    audit = wroc.audit(data, "y", ["s", "t"], attributes=["g", "k"], intersections=True)
    matrix = matrix_of(audit)
    models = [row.model for row in matrix.rows]
    assert models == ["s", "t"] * (len(models) // 2)
    for one, other in zip(matrix.rows[::2], matrix.rows[1::2], strict=True):
        assert (one.attribute, one.segment) == (other.attribute, other.segment)
    assert [row.parts for row in matrix.single] == [[]] * len(matrix.single)
    assert {tuple(row.parts) for row in matrix.crossed} == {
        (g, k) for g in "ab" for k in ("0", "1", "2")
    }
    assert [block.crossed for block in blocks_of(matrix)] == [[], ["g", "k"]]
    # A comma in a name does not make another part of it.
    commas = matrix_of(wroc.audit(data, "y", "s", attributes=["g", "h"], intersections=True))
    assert {len(row.parts) for row in commas.crossed if "u" in str(row.segment)} == {0}
    assert [block.crossed for block in blocks_of(commas)] == [[], []]
