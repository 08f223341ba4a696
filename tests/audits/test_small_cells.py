"""Audits that are published: no number of few rows, and none that can be computed."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import polars_wroc as wroc
from polars_wroc.audits.not_audited import not_audited
from polars_wroc.audits.report import render
from polars_wroc.audits.small_cells import hidden_segments
from polars_wroc.groups.min_rows import GAP_METRICS

CALL: dict[str, Any] = {"by": ["g", "h"], "threshold": 0.5, "intersections": True}
COUNTS = st.lists(st.integers(0, 30), min_size=4, max_size=4)


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    """Group c has few rows, and so has v of it."""
    random = np.random.default_rng(5)
    group = random.choice(["a", "a, b", "c"], 900, p=[0.55, 0.42, 0.03])
    positive = random.random(900) < 0.4
    frame = pl.DataFrame({"g": group, "h": random.choice(["u", "v"], 900), "y": positive})
    return frame.with_columns(s=0.3 * positive + 0.7 * random.random(900))


def segments_of(counts: dict[tuple[str, str], list[int]]) -> pl.DataFrame:
    """Segments of two attributes and of both crossed, from the counts of the crossed ones."""
    cross = "g \N{MULTIPLICATION SIGN} h"
    table: dict[tuple[str, str], list[int]] = {("overall", "overall"): [0] * 4}
    for (g, h), numbers in counts.items():
        for key in (("overall", "overall"), ("g", g), ("h", h), (cross, f"{g}, {h}")):
            table[key] = [
                one + more for one, more in zip(table.get(key, [0] * 4), numbers, strict=True)
            ]
    listed = [(*key, *numbers) for key, numbers in table.items()]
    names = ["attribute", "segment", "n_pos", "n_neg", "n_selected", "__rejected"]
    frame = pl.DataFrame(listed, names, orient="row")
    return frame.with_columns(n=pl.col("n_selected") + pl.col("__rejected"))


@given(
    st.dictionaries(
        st.tuples(st.sampled_from(["a", "a, b", "c"]), st.sampled_from("uvw")), COUNTS, min_size=1
    ),
    st.integers(2, 15),
)
def test_nothing_that_is_left_out_can_be_computed(
    counts: dict[tuple[str, str], list[int]], least: int
) -> None:
    segments = segments_of(counts)
    hidden = set(hidden_segments(segments, ["g", "h"], least))
    cells = {
        (row["attribute"], row["segment"]): [
            row["n_pos"],
            row["n_neg"],
            row["n_selected"],
            row["n"] - row["n_selected"],
        ]
        for row in segments.rows(named=True)
    }
    assert all(min(cells[one]) >= least for one in cells.keys() - hidden)
    cross = "g \N{MULTIPLICATION SIGN} h"
    whole = ("overall", "overall")
    sums = [(whole, [one for one in cells if one[0] == name]) for name in ("g", "h", cross)]
    for place, attribute in enumerate("gh"):
        for value in {pair[place] for pair in counts}:
            inside = [(cross, ", ".join(pair)) for pair in counts if pair[place] == value]
            sums.append(((attribute, value), inside))
    for total, parts in sums:
        out = [one for one in parts if one in hidden]
        if not out and total not in hidden:
            continue
        if len(out) == len(parts):
            continue
        # Something is left out besides the total, and besides one of the parts.
        assert len(out) + (total in hidden) > 1
        if total not in hidden:
            together = [sum(cells[one][i] for one in out) for i in range(4)]
            assert min(together) >= least


def test_tables_do_not_have_what_is_left_out(rows: pl.DataFrame) -> None:
    whole = wroc.audit(rows, "y", "s", **CALL)
    shown = wroc.audit(rows, "y", "s", min_cell=25, **CALL)
    names = list(zip(whole.segments["attribute"], whole.segments["segment"], strict=True))
    left = [
        f"{a} {s}"
        for a, s in names
        if (a, s) not in shown.segments.rows_by_key(["attribute", "segment"])
    ]
    assert list(shown.left_out) == left
    assert "g c" in left
    assert len([one for one in left if one.startswith("g ")]) > 2
    for table in ("segments", "gaps", "curves", "calibration", "impact", "findings"):
        frame: pl.DataFrame = getattr(shown, table)
        found = {f"{a} {s}" for a, s in frame.select("attribute", "segment").rows()}
        assert found.isdisjoint(left)
    kept = whole.segments.join(
        shown.segments, on=["attribute", "segment"], how="semi", maintain_order="left"
    )
    assert_frame_equal(shown.segments, kept)
    assert shown.fairness is not None
    for row in shown.fairness.filter(attribute="g").rows(named=True):
        assert "c" not in (row["group_max"], row["group_min"])


def test_all_outputs_leave_out_the_same(rows: pl.DataFrame, tmp_path: Path) -> None:
    audit = wroc.audit(rows, "y", "s", min_cell=25, title="Published", **CALL)
    document = json.loads(audit.to_json())
    assert document["run"]["left_out"] == list(audit.left_out)
    assert document["settings"]["min_cell"] == 25
    audit.save(tmp_path / "x.md")
    text = (tmp_path / "x.md").read_text(encoding="utf-8")
    note = "segments not shown, of fewer than 25 rows of a class or decision"
    assert note in text
    assert note in render(audit)
    assert "| c |" not in text


def test_missing_values_are_counted_but_for_segments_that_are_left_out(rows: pl.DataFrame) -> None:
    place = pl.int_range(pl.len())
    lacking = rows.with_columns(
        s=pl.when(place > 2).then("s"),
        g=pl.when(place < 892).then("g"),
        h=pl.when(place > 99).then("h"),
    )
    audit = wroc.audit(lacking, "y", "s", by=["g", "h"], min_cell=5)
    assert "g (missing)" in audit.left_out
    # Rows without a score are in no class and no decision.
    assert audit.missing.rows() == [("y", 0), ("s", 3), ("g", None), ("h", 100)]
    assert audit.segments["n_missing"][0] == 3
    assert "8 rows have no g" not in " ".join(not_audited(audit))


@pytest.fixture(scope="module")
def hiding() -> pl.DataFrame:
    """Of h one row is selected, and it is ranked best; c is left out with it; k has two values."""
    random = np.random.default_rng(8)
    group = np.repeat(["a", "b", "h", "c"], [400, 300, 200, 100])
    positive = random.random(1000) < 0.5
    score = random.random(1000) + 0.2 * positive
    score = np.where(group == "h", 0.2 * positive + 0.01 * random.random(1000), score)
    score = np.where(np.arange(1000) == 800, 0.9, score)
    return pl.DataFrame(
        {"g": group, "k": random.choice(["u", "v"], 1000), "y": positive, "s": score}
    )


@pytest.mark.parametrize("reference", [{"g": "h"}, "best"])
def test_gaps_to_a_segment_that_is_left_out_are_too(hiding: pl.DataFrame, reference: Any) -> None:
    call: dict[str, Any] = {"by": ["g", "k"], "threshold": 0.5, "reference": reference}
    whole = wroc.audit(hiding, "y", "s", **call)
    audit = wroc.audit(hiding, "y", "s", min_cell=5, **call)
    assert audit.left_out == ["g c", "g h"]
    gaps = audit.gaps.filter(attribute="g")
    own = ["attribute", "segment", "n_pos", "n_neg", *GAP_METRICS]
    assert_frame_equal(
        gaps.select(own), whole.gaps.filter(pl.col("segment").is_in(["a", "b"])).select(own)
    )
    others = gaps.drop(own)
    assert "auc_reference" in others.columns
    assert others.null_count().row(0) == (2,) * others.width
    assert_frame_equal(audit.gaps.filter(attribute="k"), whole.gaps.filter(attribute="k"))
    found = audit.findings.filter(pl.col("metric").is_in(GAP_METRICS), attribute="g")
    assert found["reason"].unique().to_list() == ["no reference shown"]
    assert found["n_reference"].null_count() == found.height
    assert (
        "The selection rate of g a is not compared, as no reference is shown." in found["sentence"]
    )
    assert "in g h" not in audit.verdict


def test_two_segments_that_are_shown_are_no_pair(hiding: pl.DataFrame) -> None:
    """Neither is the other's complement, so that both are told, against all of the others."""
    audit = wroc.audit(hiding, "y", "s", by="g", threshold=0.5, favorable="selected", min_cell=5)
    assert audit.segments["segment"].to_list() == ["overall", "a", "b"]
    assert not audit.findings["mirror"].any()
    found = audit.findings.filter(metric="selection_rate").sort("segment")
    assert found["n_reference"].to_list() == [600, 700]


def test_fairness_does_not_name_missing_values_that_are_left_out(hiding: pl.DataFrame) -> None:
    unknown = hiding.with_columns(g=pl.col("g").replace("h", None))
    whole = wroc.audit(unknown, "y", "s", by="g", threshold=0.5, favorable="selected").fairness
    shown = wroc.audit(
        unknown, "y", "s", by="g", threshold=0.5, favorable="selected", min_cell=5
    ).fairness
    assert whole is not None
    assert shown is not None
    names = {"group_max", "group_min"}
    hidden = pl.any_horizontal(pl.col(*names).is_in(["(missing)", "c"]))
    assert whole.filter(hidden, metric="demographic_parity_ratio").height == 1
    assert shown.filter(metric="demographic_parity_ratio")["value"].item() is None
    assert shown.filter(hidden).is_empty()


def test_nothing_is_left_out_of_large_segments(rows: pl.DataFrame) -> None:
    audit = wroc.audit(rows, "y", "s", by="h", min_cell=5)
    assert list(audit.left_out) == []
    assert_frame_equal(audit.gaps, wroc.audit(rows, "y", "s", by="h").gaps)


@pytest.mark.parametrize(("value", "error"), [(1, ValueError), (2.5, TypeError), (True, TypeError)])
def test_wrong_numbers(rows: pl.DataFrame, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="`min_cell` must be "):
        wroc.audit(rows, "y", "s", by="g", min_cell=value)


def test_names_of_crossed_segments_may_have_commas() -> None:
    counts = {pair: [9, 9, 9, 9] for pair in product(["a", "a, b", "c"], ["u", "b, u"])}
    # (a, "b, u") and ("a, b", u) have one name, which an audit refuses.
    counts.pop(("a", "b, u"))
    assert hidden_segments(segments_of(counts), ["g", "h"], 5) == []
