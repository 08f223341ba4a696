"""Ranges of scores add up to the audit of all rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from conftest import INVALID_VALUES
from divided import SCORES, WEIGHTS, audit_in_ranges, thirds
from hypothesis import given
from hypothesis import strategies as st
from plain_roc import weight_as
from polars.testing import assert_frame_equal
from sweeps import sweep
from wide_tables import gaps_of

import polars_wroc as wroc

REFERENCES = ("rest", "overall", {"g": "b"})
AT_HALF: dict[str, Any] = {"threshold": 0.5, "favorable": "selected"}
SCHEMA = {
    "g": pl.String,
    "h": pl.Int64,
    "y": pl.Boolean,
    "s": pl.Float64,
    "w": pl.Float64,
}


def assert_same(audit: wroc.Audit, expected: wroc.Audit) -> None:
    for name in ("segments", "curves", "missing"):
        found, wanted = getattr(audit, name), getattr(expected, name)
        assert_frame_equal(found, wanted, check_exact=False, rel_tol=1e-9, abs_tol=1e-11)
    assert_frame_equal(audit.table, expected.table, check_exact=False, rel_tol=1e-9, abs_tol=1e-11)
    assert audit.settings == expected.settings


def check(
    frame: pl.DataFrame, score: Any = "s", *, rows_per_range: int = 150, **options: Any
) -> wroc.Audit:
    """Compare the audit in ranges with that of all rows."""
    named: dict[str, Any] = {"attributes": ["g", "h"], "weight": "w", "min_rows": 5, **options}
    audit = audit_in_ranges(thirds(frame), "y", score, rows_per_range=rows_per_range, **named)
    assert_same(audit, wroc.audit(frame, "y", score, **named))
    return audit


def some_rows(
    rows: int = 450, decimals: int | None = None, shares: Sequence[float] | None = None
) -> pl.DataFrame:
    """Rows of which some lack a value, in groups of which one is null and one has one class."""
    random = np.random.default_rng(7)
    positive = random.random(rows) < 0.4
    probability = 1 / (1 + np.exp(-random.normal(size=rows) - positive))
    frame = pl.DataFrame(
        {
            "g": random.choice(["a", "b", "c", "only positives"], rows, p=shares),
            "h": random.choice([1, 2], rows),
            "y": positive,
            "s": probability if decimals is None else np.round(probability, decimals),
            "t": random.random(rows) * 3,
            "w": random.lognormal(size=rows) * (random.random(rows) < 0.9),
        }
    ).with_columns(
        pl.when(pl.int_range(pl.len()) % 13 != 0).then("y"),
        pl.when(pl.int_range(pl.len()) % 17 != 0).then("s"),
        pl.when(pl.int_range(pl.len()) % 19 != 0).then("w"),
        pl.when(pl.col("g") != "c").then("g"),
    )
    return frame.filter(pl.col("g").eq("only positives").fill_null(value=False) <= pl.col("y"))


@pytest.fixture(scope="module")
def distinct() -> pl.DataFrame:
    """Rows whose scores are distinct."""
    return some_rows()


@pytest.mark.parametrize("reference", sweep(REFERENCES, fast=1))
@pytest.mark.parametrize("weight_type", sweep(["probability", "frequency"]))
def test_ranges_give_what_rows_give(
    distinct: pl.DataFrame, reference: str | Mapping[str, str], weight_type: str
) -> None:
    audit = check(
        distinct, reference=reference, weight=weight_as(pl.col("w").ceil(), weight_type), **AT_HALF
    )
    assert gaps_of(audit).height > 5
    assert gaps_of(audit)["auc_gap_p_value"].count() > 0


@pytest.mark.slow(reason="makes several audits")
@pytest.mark.parametrize("rows_per_range", sweep([100, 1, 30, 10_000]))
@pytest.mark.parametrize("weight_type", sweep(["frequency", "probability"]))
def test_two_scores_and_intersections(
    distinct: pl.DataFrame, rows_per_range: int, weight_type: str
) -> None:
    frame = distinct if rows_per_range > 1 else distinct[:60]
    check(
        frame,
        ["t", "s"],
        intersections=True,
        weight=weight_as(pl.col("w").ceil(), weight_type),
        rows_per_range=rows_per_range,
        threshold=wroc.rules.max_fpr(0.2),
        favorable="selected",
    )


@pytest.mark.slow(reason="makes several audits")
def test_a_group_that_is_all_rows() -> None:
    check(some_rows(200).with_columns(g=pl.lit("a")), rows_per_range=50, reference="overall")


@pytest.mark.slow(reason="makes several audits")
@pytest.mark.parametrize("decimals", sweep([1, 0, 2]))
@pytest.mark.parametrize("reference", sweep(["rest", "overall"]))
def test_ties_at_the_ends_of_ranges_change_nothing(decimals: int, reference: str) -> None:
    options: dict[str, Any] = {"threshold": wroc.rules.youden(), "favorable": "selected"}
    check(some_rows(decimals=decimals), reference=reference, rows_per_range=100, **options)


@pytest.mark.slow(reason="makes several audits")
def test_rows_that_all_tie_have_an_auc_of_one_half() -> None:
    check(
        some_rows(100).with_columns(s=pl.lit(0.5)),
        rows_per_range=10,
        threshold=wroc.rules.max_accuracy(),
        favorable="selected",
    )


@pytest.mark.slow(reason="makes several audits")
def test_a_score_of_many_rows_among_others() -> None:
    often = pl.when(pl.int_range(pl.len()) % 3 != 0).then(3.0).otherwise(3 + pl.col("s") / 10)
    check(
        some_rows().with_columns(often.alias("s")),
        rows_per_range=60,
        threshold=3.0,
        favorable="selected",
    )


@pytest.mark.parametrize(
    "rule",
    sweep(
        [
            {"threshold": wroc.rules.least_cost(fn=0.3, prevalence=0.2)},
            {"threshold": wroc.rules.min_tpr(0.9)},
            {"threshold": wroc.rules.youden()},
            {"threshold": wroc.rules.closest_topleft()},
            {"threshold": wroc.rules.max_accuracy()},
            {"threshold": wroc.rules.max_fpr(0.0)},
            {"threshold": wroc.rules.max_selection_rate(0.3)},
        ],
    ),
)
def test_a_rule_chooses_the_best_of_all_ranges(
    distinct: pl.DataFrame, rule: dict[str, Any]
) -> None:
    audit = check(distinct, attributes="g", rows_per_range=100, favorable="selected", **rule)
    assert audit.segments["threshold"].n_unique() == 1


def test_a_rule_may_select_no_row() -> None:
    frame = pl.DataFrame({"y": [0, 1, 0, 0], "s": [4.0, 3.0, 2.0, 1.0], "g": [*"aabb"], "w": 1})
    audit = check(
        frame,
        attributes="g",
        threshold=wroc.rules.max_accuracy(),
        favorable="selected",
        rows_per_range=1,
    )
    assert audit.segments["threshold"].to_list() == [np.inf] * 3


def test_a_rule_may_choose_no_threshold() -> None:
    frame = pl.DataFrame({"y": [1, 1, 1], "s": [3.0, 2.0, 1.0], "g": [*"aab"], "w": 1})
    audit = check(
        frame, attributes="g", threshold=wroc.rules.youden(), favorable="selected", rows_per_range=1
    )
    assert audit.segments["threshold"].null_count() == 3


@pytest.mark.parametrize("audit", [wroc.audit, audit_in_ranges])
def test_scores_that_a_float_does_not_hold_are_refused(audit: Any) -> None:
    scores = [2**60 + 1, 2**60 + 3, 5, 4]
    frame = pl.DataFrame({"y": [1, 1, 0, 0], "s": scores, "g": [*"aabb"]})
    with pytest.raises(ValueError, match="`score` must hold whole numbers up to 2\\*\\*53"):
        audit(frame, "y", "s", attributes="g")


@pytest.mark.slow(reason="makes several audits")
def test_attributes_of_any_type(distinct: pl.DataFrame) -> None:
    frame = distinct.with_columns(
        pl.col("g").cast(pl.Categorical),
        pl.col("h").cast(pl.String).cast(pl.Enum(["2", "1"])),
        day=pl.lit("2026-01-01").str.to_date() + pl.duration(days="h"),
        half=pl.when(pl.col("h") == 1).then(pl.lit(float("nan"))).otherwise(-0.0),
    )
    check(frame, attributes=["g", "h", "day", "half", pl.col("t") > 1], weight=None, **AT_HALF)


@pytest.mark.slow(reason="makes several audits")
@pytest.mark.parametrize(
    ("first", "second"),
    sweep(
        [
            ({"g": ["a", "a"], "y": [1, 0], "s": [0.9, 0.1]}, {"g": ["b"], "y": [1], "s": [0.5]}),
            ({"g": ["a", "a"], "y": [1, 0], "s": [None, 0.1]}, {"g": ["a"], "y": [1], "s": [0.1]}),
            ({"g": ["a"] * 3, "y": [1, 1, 1], "s": [3, 2, 2]}, {"g": ["b"], "y": [0], "s": [2]}),
            ({"g": ["a"] * 2, "y": [1, None], "s": [1, 2]}, {"g": ["b"], "y": [1], "s": [None]}),
            (
                {"g": ["a"] * 2, "y": [1, 0], "s": [np.inf, -np.inf]},
                {"g": ["b"], "y": [0], "s": [0.0]},
            ),
            (
                {"g": ["a"] * 2, "y": [1, 0], "s": [1, 2**52]},
                {"g": ["a"], "y": [1], "s": [2**52 + 1]},
            ),
            ({"g": ["a"] * 2, "y": [1, 0], "s": [-0.0, 0.5]}, {"g": [None], "y": [0], "s": [0.0]}),
            ({"g": ["a"] * 2, "y": [1, -1], "s": [0.2, 0.5]}, {"g": ["b"], "y": [-1], "s": [0.3]}),
        ],
        fast=1,
    ),
    ids=[
        "a group in one part",
        "missing score",
        "ties",
        "one row left",
        "infinite",
        "large integers",
        "zeros",
        "-1",
    ],
)
def test_an_audit_of_small_parts_is_that_of_the_whole(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    schema = {"y": pl.Int64, "g": pl.String}
    parts = [pl.DataFrame(part, schema_overrides=schema) for part in (first, second)]
    options: dict[str, Any] = {"attributes": "g", "min_rows": 0, **AT_HALF}
    expected = wroc.audit(pl.concat(parts, how="vertical_relaxed"), "y", "s", **options)
    audit = audit_in_ranges(parts[::-1], "y", "s", rows_per_range=1, **options)
    assert_same(audit, expected)


@pytest.mark.slow(reason="makes several audits")
def test_labels_of_any_type(distinct: pl.DataFrame) -> None:
    labels = pl.when("y").then(pl.lit("bad")).when(~pl.col("y")).then(pl.lit("good"))
    check(distinct.with_columns(y=labels), pos_label="bad")
    with pytest.raises(ValueError, match="`pos_label` must be the label of a row with a score"):
        audit_in_ranges(distinct.with_columns(y=labels), "y", "s", attributes="g", pos_label="ugly")


@pytest.mark.slow(reason="makes several audits")
def test_parts_are_read_once_to_count_and_where_they_have_scores() -> None:
    reads: list[float] = []

    def read(frame: pl.DataFrame) -> pl.DataFrame:
        reads.append(frame["s"].min())  # type: ignore[arg-type]
        return frame

    ordered = some_rows(300).drop_nulls().sort("s")
    step = ordered.height // 4 + 1
    parts = [
        ordered[start : start + step].lazy().map_batches(read, streamable=False)
        for start in range(0, ordered.height, step)
    ]
    options: dict[str, Any] = {"attributes": ["g", "h"], "weight": "w", "intersections": True}
    audit = audit_in_ranges(
        parts, "y", "s", rows_per_range=step, threshold=0.5, favorable="selected", **options
    )
    assert_same(
        audit, wroc.audit(ordered, "y", "s", threshold=0.5, favorable="selected", **options)
    )
    # Each part until there are too many rows, for its groups and its counts, and in no more than
    # two of five ranges, whatever the groupings.
    assert len(reads) <= 3 * 4 + 2 * 5
    before = len(reads)
    audit_in_ranges(
        parts,
        "y",
        "s",
        rows_per_range=step,
        threshold=wroc.rules.max_fpr(0.1),
        favorable="selected",
        **options,
    )
    # The range of the threshold is read again.
    assert len(reads) - before <= before + 2


def test_what_is_made_of_an_audit(distinct: pl.DataFrame) -> None:
    audit = audit_in_ranges(distinct.lazy(), "y", "s", attributes="g", rows_per_range=200)
    assert json.loads(audit.to_json())["settings"]["score"] == ["s"]
    assert "All groups at a glance" in audit._repr_html_()
    assert audit.chart("g").to_dict()


rows = st.lists(
    st.tuples(
        st.sampled_from(["a", "a", "a", "b", None]),
        st.sampled_from([1, 2]),
        st.sampled_from([True, False, True, False, None]),
        SCORES,
        WEIGHTS,
    ),
    min_size=1,
    max_size=40,
)


@pytest.mark.slow(reason="tries many random rows")
@given(
    rows,
    st.lists(st.integers(0, 3), min_size=40, max_size=40),
    st.integers(1, 40),
    st.sampled_from(["rest", "overall"]),
    st.sampled_from(
        [
            {},
            {"threshold": 0.0, "favorable": "selected"},
            {"threshold": wroc.rules.youden(), "favorable": "rejected"},
            {"threshold": wroc.rules.max_selection_rate(0.5), "favorable": "neither"},
        ]
    ),
)
def test_any_parts_and_any_ranges_give_the_same(
    rows: list[tuple[Any, ...]],
    part_of_row: list[int],
    rows_per_range: int,
    reference: Any,
    choice: dict[str, Any],
) -> None:
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    numbered = frame.with_columns(part=pl.Series(part_of_row[: frame.height]))
    parts = [numbered.filter(part=part).drop("part") for part in range(4)]
    options: dict[str, Any] = {
        "weight": "w",
        "attributes": ["g", "h"],
        "reference": reference,
        **choice,
    }
    complete = frame.drop_nulls(["y", "s", "w"]).filter(pl.col("w") > 0)
    if complete.is_empty():
        with pytest.raises(ValueError, match="`frame` must have rows to audit; found none"):
            audit_in_ranges(parts, "y", "s", rows_per_range=rows_per_range, **options)
        return
    audit = audit_in_ranges(parts, "y", "s", rows_per_range=rows_per_range, **options)
    assert_same(audit, wroc.audit(frame, "y", "s", **options))


TWO = pl.DataFrame({"y": [1, 0], "s": [0.5, 0.1], "g": ["a", "b"]})


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        (
            {"attributes": None},
            TypeError,
            "`attributes` must name the attributes to audit; found None",
        ),
        ({"intersections": True}, ValueError, "`intersections` needs two or more `attributes`"),
        (
            {"threshold": "mean"},
            ValueError,
            "`threshold` must be a number, 'median' or a rule: .*; found 'mean'",
        ),
        ({"reference": {"g": "c"}}, ValueError, " or a segment of g"),
    ],
)
def test_an_audit_in_ranges_refuses_wrong_arguments(
    options: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        audit_in_ranges(TWO, "y", "s", **{"attributes": "g", **options})


def test_there_must_be_rows() -> None:
    with pytest.raises(ValueError, match=r"`frame` must have rows to audit; found none$"):
        audit_in_ranges(TWO.clear(), "y", "s", attributes="g")
    nothing = TWO.with_columns(s=pl.lit(None, pl.Float64))
    with pytest.raises(ValueError, match="found none: 4 rows lack a label, score or weight"):
        audit_in_ranges([nothing, nothing], "y", "s", attributes="g")
    with pytest.raises(ValueError, match="found none: 1 row lacks a label, score or weight"):
        audit_in_ranges(nothing.head(1), "y", "s", attributes="g")


def test_frames_must_have_the_same_groups() -> None:
    with pytest.raises(ValueError, match="`frame` must all have the same groups"):
        audit_in_ranges([TWO, TWO.with_columns(g=1)], "y", "s", attributes="g")


def test_bad_values_are_found_across_parts() -> None:
    parts = [TWO, TWO.with_columns(y=pl.col("y") * 2 - 1, g=pl.lit("c"))]
    with pytest.raises(INVALID_VALUES, match="`label` must hold 0 and 1 or"):
        audit_in_ranges(parts, "y", "s", attributes="g")
    with pytest.raises(ValueError, match="`label` must hold 0 and 1 or"):
        wroc.audit(pl.concat(parts), "y", "s", attributes="g")
    with pytest.raises(ValueError, match="`label` must hold 0 and 1 or"):
        wroc.audit(parts, "y", "s", attributes="g")
    bad = TWO.with_columns(w=-1)
    with pytest.raises(INVALID_VALUES, match="`weight` must be finite and"):
        audit_in_ranges(bad, "y", "s", attributes="g", weight="w")
