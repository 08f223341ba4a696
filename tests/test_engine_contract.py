"""Both engines compute the same: every public table, on rows of every kind."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from itertools import cycle, product
from typing import Any

import numpy as np
import polars as pl
import pytest
from plain_roc import weight_as
from polars.testing import assert_frame_equal
from queries import TABLES
from sweeps import sweep
from wide_tables import by_attributes

import polars_wroc as wroc
from polars_wroc.plans.config import Engine

ROWS = 400
# Sums of thousands of terms in another order; a table of them may be a difference of two.
NOISY = re.compile(r"(f1|mcc)_(low|high)")
SAME: Any = {"rel_tol": 1e-12, "abs_tol": 1e-12}


def people() -> pl.DataFrame:
    """Rows with ties, weights of 0, missing values and groups that are null or of one class."""
    random = np.random.default_rng(1)
    group = random.choice(np.array(["a", "b", "c", "d", None]), ROWS, p=[0.4, 0.3, 0.2, 0.05, 0.05])
    positive = (random.random(ROWS) < 0.4) | (group == "d")
    frame = pl.DataFrame(
        {
            "g": group.tolist(),
            "h": random.integers(0, 3, ROWS),
            "y": positive,
            "s": (random.normal(size=ROWS) + positive).round(1),
            "limit": random.normal(size=ROWS),
            "w": random.choice([0.0, 0.5, 1.0, 2.5], ROWS, p=[0.05, 0.35, 0.3, 0.3]),
        }
    )
    missing = pl.Series(random.random(ROWS) < 0.05)
    return frame.with_columns(s=pl.when(~missing).then("s"))


PEOPLE = people()
SCORE = pl.col("s")
LARGE = 2**53 + (SCORE.fill_null(0) * 10).cast(pl.Int64)
KINDS: dict[str, pl.Expr] = {
    "as they are": SCORE,
    "all distinct": SCORE + pl.int_range(pl.len()) * 1e-6,
    "all equal": SCORE * 0,
    "zeros of both signs": pl.when(pl.int_range(pl.len()) % 2 == 0).then(SCORE * 0).otherwise(-0.0),
    "Float32": SCORE.cast(pl.Float32),
    "NaN and infinities": pl.when(SCORE > 1.5)
    .then(float("inf"))
    .when(SCORE < -1)
    .then(float("-inf"))
    .when(SCORE == 0)
    .then(float("nan"))
    .otherwise(SCORE),
    "integers": (SCORE * 10).cast(pl.Int16),
    "unsigned integers": (SCORE * 10 + 100).cast(pl.UInt32),
    "integers beyond 2**53": LARGE,
    "unsigned integers beyond 2**63": LARGE.cast(pl.UInt64) + 2**63,
    "integers of 128 bits": LARGE.cast(pl.Int128) * 2**40,
    "decimals": (SCORE * 10).cast(pl.Decimal(30, 2)),
}
# Floats do not tell them apart.
TOO_LARGE = {
    "integers beyond 2**53",
    "unsigned integers beyond 2**63",
    "integers of 128 bits",
}
HELD = [name for name in KINDS if name not in TOO_LARGE]
KEYS: dict[str, pl.Expr] = {
    "Boolean": pl.col("h") == 1,
    "float": pl.when(pl.col("h") == 1).then(float("nan")).otherwise(pl.col("h") / 7),
    "wide integers": pl.col("h") * 2**60,
    "all of 8 bits": (pl.int_range(pl.len()) % 256 - 128).cast(pl.Int8),
    "unsigned, large": (2**64 - 3 + pl.col("h").cast(pl.UInt64)).cast(pl.UInt64),
    "integers and null": pl.when(pl.col("h") > 0).then(pl.col("h").cast(pl.Int8) + 125),
    "integers of 128 bits": pl.col("h").cast(pl.Int128) * 2**100,
    "all null": pl.lit(None, pl.Int32),
    "one": pl.lit(7),
    "256": pl.int_range(pl.len()) % 256,
    "date": pl.date(2020, 1, 1) + pl.duration(days=pl.col("h")),
    "time": pl.datetime(2020, 1, 1) + pl.duration(microseconds=pl.col("h")),
    "Enum": pl.col("g").cast(pl.Enum(["d", "c", "b", "a", "none"])),
    "Categorical": pl.col("g").cast(pl.Categorical),
    "binary": pl.col("g").cast(pl.Binary),
    "null text": pl.lit(None, pl.String),
    "many": pl.int_range(pl.len()) // 3,
}
SUMMARIES: dict[str, dict[str, Any]] = {
    "whole": {},
    "groups": {"by": "g"},
    "weights": {"weight": "w", "by": ["h", "g"]},
    "frequencies": {"weight": wroc.frequency(pl.col("w").ceil()), "by": "g"},
    "clusters": {"weight": "w", "by": "g", "design": "h"},
}

Table = Callable[[Any], Any]
# Tables that need the place of each row, or a curve, with weights and groups and without.
PLACED: dict[str, Callable[..., Any]] = {
    "roc_curve": partial(wroc.roc_curve, label="y", score="s"),
}
# Tables that compare groups.
COMPARED: dict[str, Callable[..., Any]] = {
    "fairness": partial(by_attributes(wroc.fairness), threshold=0.5),
    "subgroup_auc": wroc.subgroup_auc,
    "cross_auc": wroc.cross_auc,
    "auc_decomposition": wroc.auc_decomposition,
}
COMPARED_OPTIONS: dict[str, dict[str, Any]] = {
    "groups": {"score": "s", "by": "g"},
    "weights": {"score": "s", "by": ["h", "g"], "weight": "w"},
    "models": {"score": ["s", "limit"], "by": "g", "weight": "w"},
    "two groups": {"score": "s", "by": pl.col("h") > 0, "weight": "w"},
    "one group": {"score": "s", "by": pl.lit("all").alias("all")},
}

GAPS: dict[str, dict[str, Any]] = {
    "rest": {"weight": "w", "threshold": 0.5},
    "overall": {"reference": "overall"},
    "best": {"reference": "best", "weight": "w"},
    "a group": {"reference": "b", "threshold": 0.0},
    "frequencies": {"weight": wroc.frequency(pl.col("w").ceil()), "threshold": 0.5},
}
PLAIN, WHOLE = "as they are", "integers"
DECIDED = {"favorable": "selected"}
AUDITS: dict[str, dict[str, Any]] = {
    "weights": {"weight": "w", **DECIDED, "threshold": 0.5},
    "overall": {"reference": "overall"},
    "logits": {"reference": "overall", "method": "logit"},
    "best": {"reference": "best", "weight": "w", **DECIDED, "threshold": wroc.rules.max_fpr(0.2)},
    "named": {"reference": {"g": "b"}, "weight": "w"},
    "frequencies": {"weight": wroc.frequency(pl.col("w").ceil()), **DECIDED, "threshold": 0.5},
    "clusters": {"weight": "w", "design": "h", **DECIDED, "threshold": 0.5},
    "clusters by name": {"reference": "overall", "design": pl.col("g").fill_null("none")},
    "clusters of frequencies": {"weight": wroc.frequency(pl.col("w").ceil()), "design": "limit"},
    "no rows of a group": {**DECIDED, "threshold": float("inf"), "attributes": [pl.col("h") > 5]},
}


def both(table: Table, frame: pl.DataFrame) -> pl.DataFrame:
    """Compute a table by both engines, eager and lazy, and return it."""
    with wroc.Config(engine="polars"):
        expected: pl.DataFrame = table(frame)
    with wroc.Config(engine="compiled"):
        eager: pl.DataFrame = table(frame)
        lazy: pl.DataFrame = table(frame.lazy()).collect()
    # Limits rest on differences of formulas, whose last digits are noise.
    noisy = [name for name in expected.columns if NOISY.fullmatch(name)]
    for found, other in ((eager, expected), (lazy, eager)):
        assert_frame_equal(found.drop(noisy), other.drop(noisy), **SAME)
        assert_frame_equal(found.select(noisy), other.select(noisy), rel_tol=1e-8, abs_tol=1e-12)
    return eager


@pytest.mark.parametrize("name", sweep(TABLES, fast=8))
def test_every_table(name: str) -> None:
    frame = PEOPLE.with_columns(s=pl.col("s").fill_null(0.3), limit=pl.col("limit"))
    with wroc.Config(engine="polars"):
        expected = TABLES[name](frame.lazy()).collect()
    with wroc.Config(engine="compiled"):
        found = TABLES[name](frame.lazy()).collect()
    assert_frame_equal(found, expected, **SAME)


@pytest.mark.parametrize("call", sweep(SUMMARIES, fast=["weights"]))
@pytest.mark.parametrize("kind", KINDS)
def test_scores_of_every_kind(kind: str, call: str) -> None:
    options = SUMMARIES[call]
    frame = PEOPLE.with_columns(s=KINDS[kind])
    if kind in TOO_LARGE:
        with pytest.raises(ValueError, match=r"`score` must hold whole numbers up to 2\*\*53"):
            wroc.summary(frame, "y", "s", **options)
        return
    table = both(lambda f: wroc.summary(f, "y", "s", **options), frame)
    assert table["n"].sum() > ROWS / 2


@pytest.mark.parametrize("kind", sweep(KEYS, fast=4))
def test_groups_of_every_kind(kind: str) -> None:
    frame = PEOPLE.with_columns(k=KEYS[kind])
    table = both(lambda f: wroc.summary(f, "y", "s", weight="w", by=["k"]), frame)
    assert table.schema["k"] == frame.schema["k"]
    groups: list[list[Any]] = [["k", "g"], ["g", "k"], [pl.lit(1).alias("one"), "k"]]
    for by in groups:
        both(partial(wroc.summary, label="y", score="s", weight="w", by=by), frame)


@pytest.mark.parametrize("call", SUMMARIES)
def test_summaries_of_every_kind(call: str) -> None:
    both(lambda f: wroc.summary(f, "y", "s", **SUMMARIES[call]), PEOPLE)


@pytest.mark.parametrize(
    ("kind", "call"),
    sweep(
        [*product((PLAIN, WHOLE), GAPS), *zip(HELD, cycle(GAPS), strict=False)],
        fast=1,
    ),
)
def test_gaps_of_scores_of_every_kind(kind: str, call: str) -> None:
    both(
        lambda f: wroc.group_gaps(f, "y", "s", attributes="g", **GAPS[call]),
        PEOPLE.with_columns(s=KINDS[kind]),
    )


@pytest.mark.parametrize("kind", sweep([name for name in KEYS if name != "binary"], fast=1))
def test_gaps_of_groups_of_every_kind(kind: str) -> None:
    frame = PEOPLE.with_columns(k=KEYS[kind])
    table = both(
        lambda f: wroc.group_gaps(
            f, "y", ["s", "limit"], attributes=["k", "g"], intersections="only", weight="w"
        ),
        frame,
    )
    assert set(table["attribute"]) == {"k \N{MULTIPLICATION SIGN} g"}


@pytest.mark.parametrize("score", sweep(["s", ["s", "limit"]]))
@pytest.mark.parametrize("call", sweep(AUDITS, fast=list(AUDITS)[::4]))
def test_audits(call: str, score: Any) -> None:
    options: dict[str, Any] = {"attributes": ["g", "h"]} | AUDITS[call]
    options["intersections"] = len(options["attributes"]) > 1
    found = audits_by_both(PEOPLE, score, **options)
    with wroc.Config(engine="compiled"):
        again = wroc.audit(PEOPLE.lazy(), "y", score, **options)
    assert_frame_equal(found.segments, again.segments, check_exact=True)
    assert_frame_equal(found.table, again.table, check_exact=True)


@pytest.mark.parametrize("kind", sweep(HELD, fast=1))
def test_audits_of_scores_of_every_kind(kind: str) -> None:
    frame = PEOPLE.with_columns(s=KINDS[kind])
    audits_by_both(frame, "s", attributes=["g", "h"], weight="w", threshold=0.5, **DECIDED)


@pytest.mark.slow
def test_audits_of_probabilities_judge_their_calibration() -> None:
    frame = PEOPLE.with_columns(s=(1 / (1 + (-pl.col("s")).exp())).round(2))
    for weight_type in ("probability", "frequency"):
        options: Any = {"weight": weight_as(pl.col("w").ceil(), weight_type)}
        found = audits_by_both(frame, "s", attributes=["g", "h"], **options)
        assert "calibration_slope" in found.table["metric"]
    whole = audits_by_both(
        frame.with_columns(s=(pl.col("s") > 0.5).cast(pl.Int8)), "s", attributes="g"
    )
    assert "calibration_slope" in whole.table["metric"]


def audits_by_both(frame: Any, score: Any, **options: Any) -> wroc.Audit:
    """Audit by both engines, and return the result of the compiled one."""
    with wroc.Config(engine="polars"):
        expected = wroc.audit(frame, "y", score, **options)
    with wroc.Config(engine="compiled"):
        found = wroc.audit(frame, "y", score, **options)
    for name in ("table", "segments", "curves", "missing"):
        # Of a weight of thousands.
        tables = getattr(found, name), getattr(expected, name)
        assert_frame_equal(*tables, rel_tol=1e-12, abs_tol=1e-11)
    return found


@pytest.mark.parametrize("label", ["y", pl.col("y").cast(pl.Int8), pl.col("y") * 2 - 1])
def test_labels_of_every_kind(label: Any) -> None:
    both(lambda f: wroc.summary(f, label, "s", weight="w", by="g"), PEOPLE)


@pytest.mark.parametrize("kind", sweep(KINDS, fast=["integers beyond 2**53"]))
@pytest.mark.parametrize("name", PLACED)
def test_placed_scores_of_every_kind(name: str, kind: str) -> None:
    table = partial(PLACED[name], weight="w", by="g")
    frame = PEOPLE.with_columns(s=KINDS[kind])
    both(table, frame)


@pytest.mark.parametrize("options", sweep(COMPARED_OPTIONS))
@pytest.mark.parametrize("name", COMPARED)
def test_compared_groups(name: str, options: str) -> None:
    table = partial(COMPARED[name], label="y", **COMPARED_OPTIONS[options])
    # Polars adds up rows above a threshold, and of groups across each other, in any order.
    assert both(table, PEOPLE).height


@pytest.mark.parametrize("kind", sweep(KINDS, fast=["all equal", "NaN and infinities"]))
# Not `fairness`: of groups with the same area, rounding decides which it names.
@pytest.mark.parametrize("name", [*COMPARED][1:])
def test_compared_groups_with_scores_of_every_kind(name: str, kind: str) -> None:
    frame = PEOPLE.with_columns(s=KINDS[kind])
    table = partial(COMPARED[name], label="y", score="s", by="g", weight="w")
    both(table, frame)


@pytest.mark.parametrize("rows", sweep([0, 1, 2]))
@pytest.mark.parametrize("name", COMPARED)
def test_compared_groups_of_few_rows(name: str, rows: int) -> None:
    for options in ("weights", "models"):
        table = partial(COMPARED[name], label="y", **COMPARED_OPTIONS[options])
        both(table, PEOPLE.head(rows))


@pytest.mark.parametrize("strategy", sweep(["quantile", "uniform"], fast=2))
@pytest.mark.parametrize("by", [None, "g"])
def test_calibration(strategy: Any, by: str | None) -> None:
    share = 1 / (1 + (-SCORE).exp())
    tables: list[Any] = [wroc.calibration_curve, wroc.calibration_summary]
    for table in tables:
        call = partial(table, label="y", score=share, weight="w", by=by, strategy=strategy)
        # Polars adds up rows within bins, in any order.
        both(call, PEOPLE)


@pytest.mark.slow
@pytest.mark.parametrize("name", PLACED)
@pytest.mark.parametrize("rows", sweep([0, 1, 2]))
@pytest.mark.parametrize("by", [None, "g"])
def test_places_of_few_rows(name: str, rows: int, by: str | None) -> None:
    table = partial(PLACED[name], weight="w", by=by)
    both(table, PEOPLE.head(rows))


@pytest.mark.slow
@pytest.mark.parametrize("name", PLACED)
def test_places_where_all_rows_lack_a_score(name: str) -> None:
    frame = PEOPLE.with_columns(s=pl.lit(None, pl.Float64))
    both(partial(PLACED[name], by="g"), frame)


def many_people() -> pl.DataFrame:
    """So many rows that threads share them."""
    random = np.random.default_rng(2)
    return pl.DataFrame(
        {
            "g": random.integers(0, 3, 100_000),
            "h": random.integers(0, 40, 100_000),
            "y": random.random(100_000) < 0.3,
            "s": random.normal(size=100_000),
            "limit": random.normal(size=100_000),
            "w": random.lognormal(size=100_000),
        }
    )


@pytest.mark.slow
def test_audits_in_clusters_have_the_same_bits_each_time() -> None:
    options: dict[str, Any] = {
        "attributes": ["g", "h"],
        "weight": "w",
        "design": pl.col("limit").round(3),
    }
    many = many_people()
    with wroc.Config(engine="compiled"):
        first, *others = (wroc.audit(many, "y", "s", **options) for _ in range(3))
    for other in others:
        for name in ("segments", "table", "curves"):
            assert_frame_equal(getattr(other, name), getattr(first, name), check_exact=True)


@pytest.mark.parametrize("name", ["roc_curve"])
def test_placed_rows_have_the_same_bits_each_time(name: str) -> None:
    many = many_people()
    for by in (None, "h"):
        with wroc.Config(engine="compiled"):
            first, *others = (PLACED[name](many, weight="w", by=by) for _ in range(4))
        for other in others:
            assert_frame_equal(other, first, check_exact=True)


def test_several_models() -> None:
    table = both(lambda f: wroc.summary(f, "y", ["s", "limit"], weight="w", by="g"), PEOPLE)
    assert table["model"].unique(maintain_order=True).to_list() == ["s", "limit"]


def of_kind(kind: str, options: dict[str, Any]) -> pl.DataFrame:
    """Return rows with scores of a kind, and of the same kind for a second model."""
    frame = PEOPLE.with_columns(s=KINDS[kind])
    if isinstance(options["score"], list):
        frame = frame.with_columns(limit=pl.col("s").shift(1))
    return frame


PERMUTED: dict[str, dict[str, Any]] = {
    "two groups": {"by": pl.col("h") == 1},
    "groups": {"by": "g"},
    "weights": {"by": "g", "weight": "w"},
    "models": {"by": ["h", "g"], "weight": "w", "score": ["s", "limit"]},
    "many groups": {"by": pl.int_range(pl.len()) % 37},
    "one group": {"by": pl.lit(1).alias("one")},
}


@pytest.mark.parametrize("kind", sweep(KINDS, fast=["all distinct"]))
@pytest.mark.parametrize("call", PERMUTED)
def test_permutations_are_the_same(call: str, kind: str) -> None:
    options: dict[str, Any] = {"label": "y", "score": "s", "permutations": 19, "seed": 3}
    options |= PERMUTED[call]
    frame = of_kind(kind, options)
    both(lambda f: wroc.abroca_test(f, **options), frame)


@pytest.mark.parametrize("rows", sweep([0, 1, 2]))
def test_resampling_few_rows(rows: int) -> None:
    frame = PEOPLE.head(rows)
    for by in (None, "g"):
        both(
            partial(wroc.bootstrap, label="y", score="s", by=by, metrics="ks", resamples=5),
            frame,
        )
    for score in ("s", ["s", "limit"]):
        both(partial(wroc.abroca_test, label="y", score=score, by="g", permutations=3), frame)


@pytest.mark.parametrize("by", [None, "g"])
@pytest.mark.parametrize("rows", [0, 1, 2])
def test_few_rows(rows: int, by: str | None) -> None:
    both(lambda f: wroc.summary(f, "y", "s", weight="w", by=by), PEOPLE.head(rows))


def test_rows_that_all_lack_a_score() -> None:
    frame = PEOPLE.with_columns(s=pl.lit(None, pl.Float64))
    table = both(lambda f: wroc.summary(f, "y", "s", by="g"), frame)
    assert table["n_missing"].sum() == ROWS


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": pl.lit(2)}, "`label` must be Boolean, hold 0 and 1 or -1 and 1"),
        ({"y": pl.col("h") - 1}, "`label` must hold 0 and 1 or -1 and 1"),
        ({"w": pl.lit(-1.0)}, "`weight` must be finite and zero or more"),
        ({"w": pl.lit(float("nan"))}, "`weight` must be finite and zero or more"),
    ],
)
def test_bad_values_are_refused_alike(change: dict[str, pl.Expr], message: str) -> None:
    frame = PEOPLE.with_columns(**change)
    engines: list[Engine] = ["polars", "compiled"]
    for engine in engines:
        rows: Any
        for rows in (frame, frame.lazy()):
            with (
                wroc.Config(engine=engine),
                pytest.raises(ValueError, match=message),
            ):
                wroc.summary(rows, "y", "s", weight="w").lazy().collect()
