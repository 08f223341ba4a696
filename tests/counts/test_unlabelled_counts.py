"""Counts of rows without a label, and impact ratios from counts of either kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import duckdb
import numpy as np
import polars as pl
import pytest
from fairlearn.metrics import demographic_parity_ratio
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from sweeps import sweep

import polars_wroc as wroc
from polars_wroc.typing import Counts

EQUAL: dict[str, Any] = {"rel_tol": 1e-11, "abs_tol": 1e-12}
# Arguments of the wrong type are refused.
UNTYPED: Any = wroc


@pytest.fixture(scope="module")
def applicants() -> pl.DataFrame:
    """Weighted rows in crossed groups, with ties, missing scores and rows without weight."""
    random, rows = np.random.default_rng(21), 500
    frame = pl.DataFrame(
        {
            "g": random.choice(["a", "b", "c", "?"], rows, p=[0.4, 0.3, 0.25, 0.05]),
            "h": random.choice(["x", "y"], rows),
            "y": random.random(rows) < 0.4,
            "s": random.random(rows).round(2),
            "w": random.integers(0, 4, rows) / 2,
        }
    )
    some = pl.when(pl.int_range(rows) % 40 != 0).then("s")
    return frame.with_columns(s=some, g=pl.col("g").replace("?", None))


@pytest.fixture
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    opened = duckdb.connect()
    yield opened
    opened.close()


def unlabelled(frame: Any, **options: Any) -> Any:
    return wroc.score_counts(frame, None, "s", by=["g", "h"], **options)


def labelled(frame: Any, **options: Any) -> Any:
    return wroc.score_counts(frame, "y", "s", by=["g", "h"], **options)


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("bins", [None, 64])
def test_all_rows_are_counted_as_negative(
    applicants: pl.DataFrame, weight: str | None, bins: int | None
) -> None:
    found = unlabelled(applicants, weight=weight, bins=bins)
    false = applicants.with_columns(y=pl.lit(value=False))
    expected = labelled(false, weight=weight, bins=bins).with_columns(labelled=False)
    assert_frame_equal(found, expected, **EQUAL)
    assert found["n_pos"].sum() == found["w_pos"].sum() == 0


def test_bins_of_a_lazy_frame_are_those_of_a_dataframe(applicants: pl.DataFrame) -> None:
    found = unlabelled(applicants, weight="w", bins=64)
    assert_frame_equal(found, unlabelled(applicants.lazy(), weight="w", bins=64).collect(), **EQUAL)


def without_model(table: pl.DataFrame) -> pl.DataFrame:
    """Counts do not know the name of their score."""
    return table.drop("model")


@pytest.mark.parametrize("threshold", sweep([0.5, 0.505, -1, "median"], fast=[0.5]))
@pytest.mark.parametrize("count", sweep([unlabelled, labelled]), ids=["unlabelled", "labelled"])
@pytest.mark.parametrize("weight", sweep([None, "w"], fast=["w"]))
def test_impact_ratios_are_those_of_the_rows(
    applicants: pl.DataFrame, count: Any, threshold: Any, weight: str | None
) -> None:
    options: dict[str, Any] = {"threshold": threshold, "favorable": "rejected", "min_share": 0.2}
    counts = count(applicants, weight=weight)
    parts = [count(part, weight=weight) for part in (applicants[:90], applicants[90:])]
    for by in (["g", "h"], pl.col("g").replace("c", "b").alias("g")):
        of_rows = wroc.impact_ratios(applicants, "s", attributes=by, weight=weight, **options)
        for table in (counts, counts.lazy(), wroc.merge_counts(parts)):
            found = wroc.from_counts(table).impact_ratios(attributes=by, **options)
            found = found.lazy().collect(engine="streaming")
            assert_frame_equal(without_model(found), without_model(of_rows), **EQUAL)


def test_several_models(applicants: pl.DataFrame) -> None:
    scores = [(1 - pl.col("s")).alias("other"), pl.col("s")]
    counts = wroc.score_counts(applicants, None, scores, by="g")
    for threshold in (0.4, "median"):
        found = wroc.from_counts(counts).impact_ratios(
            attributes="g", threshold=threshold, favorable="selected"
        )
        expected = wroc.impact_ratios(
            applicants,
            scores,
            attributes="g",
            threshold=cast("Any", threshold),
            favorable="selected",
        )
        assert_frame_equal(found, expected, **EQUAL)


def test_against_fairlearn(applicants: pl.DataFrame) -> None:
    known = applicants.drop_nulls(["g", "s"])
    decisions = (known["s"] >= 0.6).to_numpy()
    table = wroc.from_counts(unlabelled(known)).impact_ratios(
        attributes="g", threshold=0.6, favorable="selected"
    )
    expected = demographic_parity_ratio(
        decisions, decisions, sensitive_features=known["g"].to_numpy()
    )
    assert table["ratio"].min() == pytest.approx(expected)


SCORES = st.sampled_from([-1.0, 0.0, 0.25, 0.5, 0.75, 1.0, None])
ROWS = st.lists(st.tuples(st.sampled_from(["a", "b", None]), SCORES), min_size=1, max_size=40)


@given(rows=ROWS, cut=st.integers(0, 40), median=st.booleans())
def test_rates_of_merged_counts_are_plain_shares(
    rows: list[tuple[str | None, float | None]], cut: int, median: bool
) -> None:
    frame = pl.DataFrame(rows, {"g": pl.String, "s": pl.Float64}, orient="row")
    parts = [wroc.score_counts(part, None, "s", by="g") for part in (frame[:cut], frame[cut:])]
    counts = wroc.from_counts(wroc.merge_counts(parts))
    table = counts.impact_ratios(
        attributes="g", threshold="median" if median else 0.5, favorable="selected", unknown="keep"
    )
    known = frame["s"].drop_nulls().to_numpy()
    for row in table.filter(metric="selection_rate").to_dicts():
        group = None if row["segment"] == "(missing)" else row["segment"]
        scores = frame.filter(pl.col("g").eq_missing(pl.lit(group)))["s"].drop_nulls().to_numpy()
        selected = scores > np.median(known) if median and known.size else scores >= 0.5
        assert row["n"] == scores.size
        assert row["value"] == (pytest.approx(selected.mean()) if scores.size else None)


def test_bins_have_impact_ratios_at_their_edges(applicants: pl.DataFrame) -> None:
    for count in (unlabelled, labelled):
        counts = wroc.from_counts(count(applicants, weight="w", bins=64))
        found = counts.impact_ratios(
            attributes=["g", "h"], intersections=True, threshold=0.5, favorable="selected"
        )
        expected = wroc.impact_ratios(
            applicants,
            "s",
            attributes=["g", "h"],
            intersections=True,
            weight="w",
            threshold=0.5,
            favorable="selected",
        )
        assert_frame_equal(without_model(found), without_model(expected), **EQUAL)
        with pytest.raises(ValueError, match="threshold='median'; found counts in bins"):
            counts.impact_ratios(attributes="g", threshold="median", favorable="selected")
        inside = "`threshold` must not be inside a bin of scores; found 0.3 "
        with pytest.raises(ValueError, match=inside):
            counts.impact_ratios(attributes="g", threshold=0.3, favorable="selected")


def test_counts_survive_files_and_merging(applicants: pl.DataFrame, tmp_path: Path) -> None:
    counts = unlabelled(applicants)
    counts.write_csv(tmp_path / "counts.csv")
    read = pl.read_csv(tmp_path / "counts.csv")
    assert_frame_equal(read, counts, **EQUAL)
    wider = wroc.merge_counts([read, unlabelled(applicants, bins=1024)], bins=64)
    twice = unlabelled(pl.concat([applicants, applicants]), bins=64)
    assert_frame_equal(wider, twice, **EQUAL)


def test_true_is_the_same_as_no_mark(applicants: pl.DataFrame) -> None:
    counts = labelled(applicants)
    marked = counts.with_columns(labelled=True)
    assert_frame_equal(
        wroc.from_counts(marked).summary(by="g"), wroc.from_counts(counts).summary(by="g")
    )
    merged = wroc.merge_counts([marked, counts])
    assert_frame_equal(merged.drop("labelled"), wroc.merge_counts([counts, counts]), **EQUAL)


@pytest.mark.parametrize("lazy", [False, True], ids=["eager", "lazy"])
@pytest.mark.parametrize("unlabelled_first", [False, True])
def test_labelled_and_unlabelled_counts_are_not_mixed(
    applicants: pl.DataFrame, lazy: bool, unlabelled_first: bool
) -> None:
    parts = [unlabelled(applicants), labelled(applicants)]
    ordered = parts if unlabelled_first else parts[::-1]
    frames: list[Any] = [part.lazy() for part in ordered] if lazy else ordered
    with pytest.raises(pl.exceptions.InvalidOperationError, match="must all have labels, or none"):
        wroc.merge_counts(frames).lazy().collect()


NEEDING: list[tuple[str, dict[str, Any]]] = [
    ("summary", {}), ("roc_curve", {}), ("pr_curve", {}),
    ("cost_curve", {}), ("roc_point", {"fpr": 0.1}),
    ("roc_point", {"tpr": 0.1}),
    ("threshold_metrics", {}),
    ("calibration_curve", {}), ("calibration_summary", {}),
    ("calibration_test", {}),
    ("decision_curve", {}), ("score_distribution", {}), ("group_gaps", {}),
    ("fairness", {"threshold": 0.5}), ("cross_auc", {}), ("equalized_thresholds", {}),
    ("audit", {}),
]  # fmt: skip


def groups_of(name: str) -> dict[str, str]:
    return {"attributes" if name in ("audit", "group_gaps", "fairness") else "by": "g"}


@pytest.mark.slow(reason="computes many tables")
def test_what_needs_labels_is_refused_by_name(applicants: pl.DataFrame) -> None:
    methods = {name for name in vars(Counts) if not name.startswith("_")}
    # Of a trend the shifts of scores need no label, as rates of decisions in a search.
    assert {name for name, _ in NEEDING} == methods - {"impact_ratios", "trend", "worst_segments"}
    counts = unlabelled(applicants)
    for name, options in NEEDING:
        message = f"`counts` must have labels for `{name}`; found counts of rows without a label"
        with pytest.raises(pl.exceptions.InvalidOperationError, match=message):
            getattr(wroc.from_counts(counts), name)(**groups_of(name), **options)
    for name in ("roc_curve", "group_gaps"):
        table = getattr(wroc.from_counts(counts.lazy()), name)(**groups_of(name))
        with pytest.raises(pl.exceptions.InvalidOperationError, match=f"labels for `{name}`"):
            table.collect()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"n_pos": 1, **dict.fromkeys(["w_pos", "w2_pos", "w3_pos"], 1.0)}, "count no positives"),
        ({"labelled": None}, "hold one value in column 'labelled', .*found null"),
        ({"labelled": pl.int_range(pl.len()) == 0}, "hold one value in column 'labelled'"),
    ],
)
def test_impossible_counts_are_refused(
    applicants: pl.DataFrame, columns: dict[str, Any], message: str
) -> None:
    values = {
        name: pl.lit(value, pl.Boolean) if value is None else value
        for name, value in columns.items()
    }
    complete = unlabelled(applicants).filter(pl.col("score").is_not_null())
    with pytest.raises(pl.exceptions.InvalidOperationError, match=message):
        wroc.from_counts(complete.with_columns(**values))


def test_counts_without_a_label_refuse_what_needs_one(applicants: pl.DataFrame) -> None:
    counts = wroc.from_counts(unlabelled(applicants))
    with pytest.raises(ValueError, match=r"`threshold` must be given for Counts.impact_ratios\(\)"):
        counts.impact_ratios(attributes="g", favorable="selected")
    with pytest.raises(ValueError, match=r"`threshold` must be given for Counts.fairness\(\)"):
        counts.fairness(attributes="g")
    for name in ("selected", "score", "weight", "cluster"):
        with pytest.raises(TypeError, match=name):
            counts.impact_ratios(attributes="g", threshold=0.5, favorable="selected", **{name: "s"})
    with pytest.raises(ValueError, match="`pos_label` must be None without a label; found 1"):
        wroc.score_counts(applicants, None, "s", pos_label=1)
    with pytest.raises(ValueError, match="must have a Boolean 'labelled'; found type String"):
        wroc.from_counts(unlabelled(applicants).with_columns(labelled=pl.lit("no")))
    with pytest.raises(ValueError, match="`by` must not take the name of a result column"):
        UNTYPED.score_counts(applicants.rename({"g": "labelled"}), None, "s", by="labelled")


SQL = """
select g, h, s as score, 0 as n_pos,
    count(*) filter (s is not null) as n_neg, count(*) filter (s is null) as n_missing,
    0.0 as w_pos, coalesce(sum(w) filter (s is not null), 0) as w_neg,
    0.0 as w2_pos, coalesce(sum(w * w) filter (s is not null), 0) as w2_neg,
    0.0 as w3_pos, coalesce(sum(w * w * w) filter (s is not null), 0) as w3_neg,
    false as labelled
from people where w > 0 group by all order by g nulls first, h, s desc nulls last
"""


def test_counts_that_a_database_makes(
    applicants: pl.DataFrame, database: duckdb.DuckDBPyConnection
) -> None:
    database.from_arrow(applicants.to_arrow()).create("people")
    expected = unlabelled(applicants, weight="w")
    through = unlabelled(database.table("people"), weight="w")
    assert_frame_equal(through, expected, **EQUAL)
    written = pl.DataFrame(database.sql(SQL).to_arrow_table())
    sums = [pl.col("^w.*$").cast(pl.Float64), pl.col("^n_.*$").cast(pl.Int64)]
    assert_frame_equal(written.with_columns(sums), expected, **EQUAL)
    options: dict[str, Any] = {"attributes": ["g", "h"], "threshold": "median"}
    options |= {"intersections": True, "favorable": "selected"}
    found = wroc.from_counts(written).impact_ratios(**options)
    of_rows = wroc.impact_ratios(applicants, "s", weight="w", **options)
    assert_frame_equal(without_model(found), without_model(of_rows), **EQUAL)
