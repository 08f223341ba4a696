"""Counts by score: the tables that follow from them, and that they add up in any way."""

from __future__ import annotations

import io
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any, cast

import numpy as np
import polars as pl
import pytest
from conftest import INVALID_VALUES
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from sweeps import sweep

import polars_wroc as wroc

# In the order that counts give them.
SCORES = ["other", "s"]
EQUAL: dict[str, Any] = {"rel_tol": 1e-11, "abs_tol": 1e-12}
# Functions of rows that counts serve as well, with options, and whether groups are compared.
TABLES: list[tuple[str, dict[str, Any], bool]] = [
    ("summary", {}, False),
    ("summary", {"level": 0.9}, False),
    ("roc_curve", {"drop_collinear": True}, False),
    ("roc_curve", {"band": "pointwise", "max_points": 20}, False),
    ("pr_curve", {}, False),
    ("cost_curve", {}, False),
    ("roc_point", {"fpr": [0.1, 0.2]}, False),
    ("roc_point", {"tpr": 0.8}, False),
    ("summary", {"areas": {"early": wroc.PartialAUC(fpr=(0.0, 0.3))}}, False),
    ("summary", {"areas": {"late": wroc.PartialAUC(tpr=(0.7, 1.0), standardize=True)}}, False),
    ("threshold_metrics", {"threshold": wroc.rules.youden(), "per_group": True}, False),
    ("threshold_metrics", {"threshold": [0.3, 0.5], "level": 0.9}, False),
    ("calibration_curve", {}, False),
    ("calibration_curve", {"strategy": "uniform"}, False),
    ("calibration_summary", {}, False),
    ("calibration_test", {}, False),
    ("calibration_test", {"reference": "rest"}, True),
    ("decision_curve", {}, False),
    ("group_gaps", {"threshold": 0.5}, True),
    ("group_gaps", {"threshold": 0.5, "reference": "overall"}, True),
    ("group_gaps", {"reference": "best"}, True),
    ("fairness", {"threshold": 0.5}, True),
    ("cross_auc", {}, True),
    ("cross_auc", {"against": "rest"}, True),
    ("equalized_thresholds", {}, True),
]


@pytest.fixture(scope="module")
def scored() -> pl.DataFrame:
    """Weighted rows in crossed groups, with ties, missing rows and rows without weight."""
    random, rows = np.random.default_rng(71), 900
    positive = random.random(rows) < 0.35
    frame = pl.DataFrame(
        {
            "g": random.choice(["a", "b", "c"], rows),
            "h": random.choice(["x", "y"], rows),
            "y": positive,
            "s": np.round(1 / (1 + np.exp(-random.normal(size=rows) - positive)), 2),
            "other": np.round(random.random(rows), 2),
            "w": random.integers(0, 4, rows) / 2,
        }
    )
    return frame.with_columns(s=pl.when(pl.int_range(rows) % 40 != 0).then("s"))


def counts_of(frame: pl.DataFrame, by: list[str], bins: int | None = None) -> pl.DataFrame:
    """Counts of one score in parts of a frame."""
    return wroc.score_counts(frame, "y", "s", weight="w", by=by, bins=bins)


@pytest.mark.parametrize("score", sweep(["s", SCORES]), ids=["score", "models"])
@pytest.mark.parametrize(("name", "options", "compares"), sweep(TABLES, fast=TABLES[::6]))
def test_tables_from_counts_are_those_of_the_rows(
    scored: pl.DataFrame, score: str | list[str], name: str, options: dict[str, Any], compares: bool
) -> None:
    counts = wroc.from_counts(wroc.score_counts(scored, "y", score, weight="w", by=["g", "h"]))
    by_segments = name in ("group_gaps", "fairness") or options.get("reference") == "rest"
    argument = "attributes" if by_segments else "by"
    for by in ("g", ["g", "h"]) if compares else ("g", ["h", "g"], None):
        groups = {argument: by}
        of_rows = getattr(wroc, name)(scored, "y", score, weight="w", **groups, **options)
        of_counts = getattr(counts, name)(**groups, **options)
        if name in ("group_gaps", "fairness") and score == "s":
            # Counts do not know the name of their score.
            of_rows = of_rows.with_columns(model=pl.lit("score"))
        assert_frame_equal(of_counts, of_rows, **EQUAL)


@pytest.mark.parametrize(
    "options",
    sweep(
        [
            {},
            {"threshold": 0.5, "favorable": "selected"},
            {
                "threshold": wroc.rules.youden(),
                "favorable": "rejected",
                "intersections": True,
            },
        ]
    ),
)
def test_an_audit_of_counts_is_that_of_the_rows(
    scored: pl.DataFrame, options: dict[str, Any]
) -> None:
    counts = wroc.from_counts(wroc.score_counts(scored, "y", SCORES, weight="w", by=["g", "h"]))
    of_counts = counts.audit(attributes=["g", "h"], **options)
    of_rows = wroc.audit(scored, "y", SCORES, weight="w", attributes=["g", "h"], **options)
    for name in ("segments", "table", "curves"):
        tables = getattr(of_counts, name), getattr(of_rows, name)
        assert_frame_equal(*tables, rel_tol=1e-9, abs_tol=1e-12)


@pytest.mark.slow(reason="makes several audits")
def test_the_report_of_counts_opens(scored: pl.DataFrame, tmp_path: Any) -> None:
    counts = wroc.from_counts(counts_of(scored, ["g", "h"]))
    counts.audit(attributes=["g", "h"], threshold=0.5, favorable="selected").save(
        tmp_path / "report.html"
    )
    assert "<table" in (tmp_path / "report.html").read_text()


def test_a_state_counts_rows_and_sums_powers_of_their_weights(scored: pl.DataFrame) -> None:
    state = counts_of(scored, ["g"])
    there = scored.filter(pl.col("w") > 0)
    kept = there.drop_nulls("s")
    expected = kept.group_by("g", score="s").agg(
        n_pos=pl.col("y").sum().cast(pl.Int64),
        n_neg=(~pl.col("y")).sum().cast(pl.Int64),
        **{
            f"{name}_{side}": (pl.col("w") ** power).filter(of).sum()
            for power, name in ((1, "w"), (2, "w2"), (3, "w3"))
            for side, of in (("pos", pl.col("y")), ("neg", ~pl.col("y")))
        },
    )
    known = state.drop_nulls("score")
    assert_frame_equal(
        known.drop("n_missing"),
        expected.select(known.drop("n_missing").columns),
        check_row_order=False,
    )
    assert known["n_missing"].sum() == 0
    missing = state.filter(pl.col("score").is_null()).select("g", "n_missing")
    lacking = (
        there.filter(pl.col("s").is_null()).group_by("g").agg(n_missing=pl.len().cast(pl.Int64))
    )
    assert_frame_equal(missing, lacking, check_row_order=False)
    assert state["g"].is_sorted()
    for _, group in known.group_by("g", maintain_order=True):
        assert group["score"].is_sorted(descending=True)


@pytest.mark.slow(reason="tries many random rows")
@given(data=st.data(), bins=st.sampled_from([None, 16, 4096]))
def test_states_add_up_in_any_way(data: st.DataObject, bins: int | None) -> None:
    random, rows = np.random.default_rng(5), 200
    frame = pl.DataFrame(
        {
            "g": pl.Series(["a", "b", None]).sample(rows, with_replacement=True, seed=5),
            "y": random.random(rows) < 0.4,
            "s": np.round(random.normal(size=rows), 1),
            "w": random.random(rows),
        }
    )
    cuts = data.draw(st.lists(st.integers(0, rows), max_size=5))
    ends = [0, *sorted(cuts), rows]
    states = [counts_of(frame[low:high], ["g"], bins) for low, high in pairwise(ends)]
    order = data.draw(st.permutations(range(len(states))))
    shuffled = [states[place] for place in order]
    whole = counts_of(frame, ["g"], bins)
    assert_frame_equal(wroc.merge_counts(shuffled), whole, **EQUAL)
    # In pairs, whichever come first.
    while len(shuffled) > 1:
        shuffled = [wroc.merge_counts(shuffled[:2]), *shuffled[2:]]
    assert_frame_equal(shuffled[0], whole, **EQUAL)
    summaries = [wroc.from_counts(state).summary(by="g") for state in (shuffled[0], whole)]
    assert_frame_equal(*summaries, rel_tol=1e-12, abs_tol=1e-12)


def test_columns_of_groups_may_have_any_order(scored: pl.DataFrame) -> None:
    orders = (["g", "h"], ["h", "g"])
    halves = [counts_of(scored[half::2], by) for half, by in enumerate(orders)]
    assert_frame_equal(wroc.merge_counts(halves), counts_of(scored, ["g", "h"]), **EQUAL)


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("score", ["s", SCORES[::-1]])
@pytest.mark.parametrize("bins", [None, 64])
def test_counts_of_a_list_of_parts_are_those_of_all_rows(
    scored: pl.DataFrame, lazy: bool, score: str | list[str], bins: int | None
) -> None:
    parts: list[Any] = [scored[:150], scored[150:].select(pl.all().reverse())]
    given: dict[str, Any] = {"weight": "w", "by": ["g", "h"], "bins": bins}
    frames = [part.lazy() for part in parts] if lazy else parts
    counts = wroc.score_counts(frames, "y", score, **given)
    assert isinstance(counts, pl.LazyFrame) == lazy
    expected = wroc.score_counts(scored, "y", score, **given)
    assert_frame_equal(counts.lazy().collect(), expected, **EQUAL)


def test_parts_in_a_list_must_have_the_same_groups(scored: pl.DataFrame) -> None:
    parts = [scored, scored.with_columns(g=pl.col("g").str.len_chars())]
    message = "`frame` must all have the same groups; found g of type String in the first and g of"
    with pytest.raises(ValueError, match=message):
        wroc.score_counts(parts, "y", "s", by="g")


def test_threads_count_what_one_does(scored: pl.DataFrame) -> None:
    parts = [scored[place::7] for place in range(7)]
    with ThreadPoolExecutor(3) as pool:
        states = list(pool.map(partial(counts_of, by=["g", "h"]), parts))
    merged = wroc.from_counts(wroc.merge_counts(states)).summary(by="g")
    whole = wroc.summary(scored, "y", "s", weight="w", by="g")
    assert_frame_equal(merged, whole, rel_tol=1e-12, abs_tol=1e-12)


@pytest.mark.parametrize("bins", [None, 256])
def test_a_state_survives_a_file(scored: pl.DataFrame, bins: int | None) -> None:
    state, file = counts_of(scored, ["g", "h"], bins), io.BytesIO()
    state.write_parquet(file)
    file.seek(0)
    assert_frame_equal(
        wroc.from_counts(pl.read_parquet(file)).summary(by="h"),
        wroc.from_counts(state).summary(by="h"),
        **EQUAL,
    )


def test_lazy_counts_give_lazy_tables(scored: pl.DataFrame) -> None:
    lazy = wroc.score_counts(scored.lazy(), "y", "s", weight="w", by="g")
    assert isinstance(lazy, pl.LazyFrame)
    merged = wroc.merge_counts([lazy, lazy])
    table = wroc.from_counts(merged).summary(by="g")
    assert isinstance(table, pl.LazyFrame)
    eager = counts_of(scored, ["g"])
    expected = wroc.from_counts(wroc.merge_counts([eager, eager])).summary(by="g")
    assert_frame_equal(table.collect(), expected, **EQUAL)
    assert isinstance(expected, pl.DataFrame)


def test_states_of_different_bins_come_to_the_widest(scored: pl.DataFrame) -> None:
    low, high = scored[:400], scored[400:]
    wide = counts_of(scored, ["g"], 64)
    for other in (None, 64, 1024):
        parts = [counts_of(low, ["g"], 64), counts_of(high, ["g"], other)]
        assert_frame_equal(wroc.merge_counts(parts), wide, **EQUAL)
    assert_frame_equal(wroc.merge_counts([counts_of(scored, ["g"])], bins=64), wide, **EQUAL)
    assert_frame_equal(wroc.merge_counts([counts_of(scored, ["g"], 1024)], bins=64), wide, **EQUAL)


def test_groups_of_counts_may_be_taken_together_or_made_anew(scored: pl.DataFrame) -> None:
    counts = wroc.from_counts(counts_of(scored, ["g", "h"]))
    group = (pl.col("g") == "a").alias("is_a")
    assert_frame_equal(
        counts.summary(by=group), wroc.summary(scored, "y", "s", weight="w", by=group), **EQUAL
    )


def test_large_integers_are_counted_apart() -> None:
    frame = pl.DataFrame({"y": [1, 0, 1, 0], "s": [2**53 + 1, 2**53, 2**60 + 1, 2**60]})
    counts = wroc.score_counts(frame, "y", "s")
    assert counts["score"].dtype == pl.Int64
    assert counts.height == 4
    assert frame.select(wroc.roc_auc("y", "s")).item() == 0.75
    # Tables compare scores as floats.
    with pytest.raises(ValueError, match=r"`score` must hold whole numbers up to 2\*\*53"):
        wroc.from_counts(counts).summary()


@pytest.mark.parametrize("dtype", [pl.Float16, pl.Float32, pl.Float64, pl.Int8])
@pytest.mark.parametrize("bins", [None, 64])
def test_counts_have_the_type_of_the_score(dtype: Any, bins: int | None) -> None:
    frame = pl.DataFrame({"y": [1, 0, 1], "s": pl.Series([1, 0, None], dtype=dtype)})
    counts = wroc.score_counts(frame, "y", "s", bins=bins)
    names = ["score"] if bins is None else ["score_low", "score_high"]
    assert [counts.schema[name] for name in names] == [dtype for _ in names]
    assert wroc.score_counts(frame.lazy(), "y", "s", bins=bins).collect_schema() == counts.schema
    merged = wroc.merge_counts([counts, counts])
    assert merged.schema == counts.schema


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [
        (pl.Int32, pl.Float64, pl.Float64),
        (pl.Decimal(12, 3), pl.Float64, pl.Float64),
        (pl.Int8, pl.Int32, pl.Int32),
    ],
)
def test_merged_counts_have_the_common_type(one: Any, other: Any, common: Any) -> None:
    frame = pl.DataFrame({"y": [1, 0], "s": [1, 0], "t": [1, 0]}).cast({"s": one, "t": other})
    parts = [wroc.score_counts(frame, "y", name) for name in ("s", "t")]
    assert wroc.merge_counts(parts).schema["score"] == common
    assert wroc.merge_counts(parts)["n_pos"].to_list() == [2, 0]
    assert wroc.score_counts(frame, "y", ["s", "t"]).schema["score"] == common


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pl.Float32, pl.Float64),
        (pl.Float16, pl.Float32),
        (pl.Float32, pl.Int32),
        (pl.Float32, pl.Decimal(12, 3)),
    ],
)
def test_floats_of_fewer_bits_are_not_counted_with_others(one: Any, other: Any) -> None:
    """Half of the scores of 0.7 would be below a threshold of 0.7, and none of them a tie."""
    frame = pl.DataFrame({"y": [1, 0], "s": [1, 0], "t": [1, 0], "g": ["a", "b"]})
    frame = frame.cast({"s": one, "t": other})
    parts = [frame.select("y", "g", s=name) for name in ("s", "t")]
    counts = [wroc.score_counts(part, "y", "s") for part in parts]
    calls: dict[str, Callable[[], Any]] = {
        "counts": lambda: wroc.merge_counts(counts),
        "counts of plans": lambda: wroc.merge_counts([part.lazy() for part in counts]),
        "score": lambda: wroc.score_counts(frame, "y", ["s", "t"]),
        "frame": lambda: wroc.summary(parts, "y", "s"),
        "frame of an audit": lambda: wroc.audit(
            [part.lazy() for part in parts],
            "y",
            "s",
            attributes="g",
            threshold=0.7,
            favorable="selected",
        ),
    }
    narrow = str(parts[0].schema["s"])
    for argument, call in calls.items():
        message = (
            f"^`{argument.split()[0]}` must not mix {narrow} scores with scores of another type, .*"
            f"found .* of type {narrow} and .*: cast all to {narrow} first$"
        )
        with pytest.raises(ValueError, match=message):
            call()
    alike = frame.cast({"s": one, "t": one})
    assert wroc.score_counts(alike, "y", ["s", "t"]).schema["score"] == one


@pytest.mark.parametrize("dtype", [pl.Float16, pl.Float32, pl.Float64])
def test_log_losses_of_counts_are_clipped_as_the_type_of_the_score_asks(dtype: Any) -> None:
    frame = pl.DataFrame({"y": [1, 0] * 20, "s": [0.0, 1.0] * 19 + [1.0, 0.0], "g": ["a"] * 40})
    frame = frame.cast({"s": dtype})
    counts = wroc.from_counts(wroc.score_counts(frame, "y", "s", by="g"))
    expected = frame.select(wroc.log_loss("y", "s")).item()
    # 38 of 40 rows are wrong with certainty.
    digits = {pl.Float16: 10, pl.Float32: 23, pl.Float64: 52}[dtype]
    assert expected == pytest.approx(38 / 40 * digits * np.log(2), rel=1e-3)
    table = counts.group_gaps(attributes="g", metrics=["log_loss"])
    rows = wroc.group_gaps(
        frame.rename({"s": "score"}), "y", "score", attributes="g", metrics=["log_loss"]
    )
    assert table["value"].item() == pytest.approx(expected, rel=1e-12)
    assert_frame_equal(table, rows, **EQUAL)


def test_a_threshold_inside_a_bin_is_refused() -> None:
    frame = pl.DataFrame({"y": [1, 0, 1], "s": [0.299, 0.301, 0.6], "g": ["a", "a", "b"]})
    counts = wroc.from_counts(wroc.score_counts(frame, "y", "s", by="g", bins=64))
    found = r"^`thresholds?` must not be inside a bin of scores; found 0\.3 in one from 0\.299 to"
    calls: list[Callable[[], Any]] = [
        lambda: counts.threshold_metrics(threshold=0.3),
        lambda: counts.group_gaps(attributes="g", threshold=0.3),
        lambda: counts.fairness(attributes="g", threshold=0.3),
        lambda: counts.audit(attributes="g", threshold=0.3, favorable="selected"),
    ]
    for call in calls:
        with pytest.raises(INVALID_VALUES, match=found):
            call()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (wroc.from_counts, ValueError, "no 'score' in"),
        (
            lambda df: wroc.from_counts(cast("Any", [df])),
            TypeError,
            "`counts` must be a table of `score_counts`",
        ),
        (lambda _: wroc.merge_counts([]), TypeError, r"a list of tables .*; found \[\] of"),
        (
            lambda df: wroc.merge_counts(cast("Any", counts_of(df, ["g"]))),
            TypeError,
            r"^`counts` must be a list of tables .*; found a value of type DataFrame$",
        ),
        (
            lambda df: wroc.merge_counts([counts_of(df, ["g"]), counts_of(df, ["h"])]),
            ValueError,
            r"same groups; found g of type String in the first and h of type String in number 2",
        ),
        (
            lambda df: wroc.score_counts(df.rename({"g": "bins"}), "y", "s", by="bins"),
            ValueError,
            "must not take the name of a result column; found 'bins'",
        ),
        (
            lambda df: wroc.from_counts(counts_of(df, ["g"])).summary(by="h"),
            pl.exceptions.ColumnNotFoundError,
            r"no column 'h' among \['g'\]",
        ),
        (
            lambda df: wroc.from_counts(counts_of(df, ["g"])).summary(design="g"),
            TypeError,
            "has no argument `design`",
        ),
        (
            lambda df: wroc.from_counts(counts_of(df, ["g"]).with_columns(n_pos=-1)).summary(),
            pl.exceptions.InvalidOperationError,
            "zero or more in column 'n_pos'; found -1",
        ),
        (
            lambda df: wroc.merge_counts([counts_of(df, ["g"]).with_columns(w_neg=float("nan"))]),
            pl.exceptions.InvalidOperationError,
            "zero or more in column 'w_neg'; found NaN",
        ),
        (
            lambda df: wroc.from_counts(counts_of(df, ["g"]).with_columns(w_pos=pl.lit("much"))),
            ValueError,
            "found 'w_pos' of type String",
        ),
        (
            lambda df: wroc.summary(df, "y", "s", bins=16, design="g"),
            ValueError,
            "`design` must be None with `bins`, which keeps no single rows; found clusters",
        ),
        (
            lambda df: wroc.score_counts(
                df.with_columns(y=pl.int_range(pl.len()) % 3 - 1), "y", "s"
            ),
            pl.exceptions.InvalidOperationError,
            "or both 0 and -1",
        ),
    ],
)
def test_what_is_no_state_is_refused(
    scored: pl.DataFrame, call: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call(scored)


@pytest.mark.parametrize("weight", sweep([None, "w"]))
def test_an_audit_of_counts_says_whether_rows_have_weights(
    scored: pl.DataFrame, weight: str | None
) -> None:
    counts = wroc.score_counts(scored, "y", "s", weight=weight, by="g")
    settings = wroc.from_counts(counts).audit(attributes="g").settings
    assert settings.weight == (None if weight is None else "weight")
