"""What holds for every table: each contract is tried once, on one query of each function.

Slow tests try the other queries.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

import calls
import numpy as np
import polars as pl
import polars.selectors as cs
import pytest
from polars.testing import assert_frame_equal
from queries import EXPRESSIONS, ONE_OF_EACH, TABLES
from sweeps import sweep

import polars_wroc as wroc

CLASSES = ("pos", "neg")
# Quantiles and optima of few rows are where the sums of rows in another order put them.
EQUAL: dict[str, Any] = {"rel_tol": 1e-8, "abs_tol": 1e-10}
# Columns that add up weights, and powers of them.
POWERS = {
    **dict.fromkeys(("tp", "fp", "fn", "tn", "weight"), 1),
    **{
        f"{sums}_{side}": power
        for power, sums in enumerate(("w", "w2", "w3"), 1)
        for side in CLASSES
    },
    **{f"n_{side}_expected": 1 for side in CLASSES},
}
SCALE = 1024
# What the tests of a table share.
ADJUSTED = cs.matches("adjusted$|^verdict$|^detectable$|^rank$")
CATEGORIES = pl.Enum(["c", "b", "a"])
# It returns a row for each row.
NAMES = [name for name in TABLES if name != "at_horizon"]
WEIGHTED = [name for name in NAMES if "weight" in inspect.signature(TABLES[name]).parameters]
# Units are drawn or counted, and not the rows that a weight stands for.
DRAWN = ("bootstrap", "abroca_test", "threshold_metrics, honest", "threshold_metrics, crossfit")
COUNTED = [
    name
    for name in WEIGHTED
    if not name.startswith(DRAWN) and not re.search("survey|cluster|replicate", name)
]
# Tables in which groups are compared, or share thresholds, bins or the width of limits.
TOGETHER = re.compile(
    "group_gaps|fairness|cross_auc|equalized|worst|release|calibration_test|score_distribution|"
    "gaps at|.* by a common rule|.* within a tolerance"
)
APART = [
    name
    for name in COUNTED
    if "by" in inspect.signature(TABLES[name]).parameters and not TOGETHER.match(name)
]


def takes_design(name: str) -> bool:
    """Return whether a call is one of a function that takes a design."""
    functions = [getattr(wroc, word, None) for word in re.findall(r"\w+", name)]
    return any("design" in inspect.signature(one).parameters for one in functions if callable(one))


# Limits of calibration tests are those of all scores of a table.
MODELS = [name for name in calls.TABLES if not name.startswith("calibration_test")]
EVERY_CALL = calls.TABLES | calls.OF_ONE_SCORE | calls.COMPARISONS
# These have no limits by a design.
WITHOUT_LIMITS = ("thinned roc_curve", "threshold_metrics by a rule", "calibration_curve")
DESIGNED = {
    name: call
    for name, call in EVERY_CALL.items()
    if takes_design(name) and not name.startswith((*DRAWN, *WITHOUT_LIMITS))
}


def make_rows() -> pl.DataFrame:
    """Make rows with ties, weights of 0, missing scores and groups, and whole numbers ``n``."""
    random, size = np.random.default_rng(8), 500
    positive = random.random(size) < 0.4
    rows = pl.DataFrame(
        {
            "g": random.choice(["a", "b", "c"], size),
            "y": positive,
            "s": (random.normal(size=size) + positive).round(1),
            "w": random.gamma(2, 1, size),
            "n": random.integers(0, 4, size),
        }
    )
    number = pl.int_range(size)
    return rows.with_columns(
        g=pl.when(number % 17 != 3).then("g"),
        s=pl.when(number % 29 != 5).then("s"),
        limit=pl.col("s").mean().over("g"),
        w=pl.when(number % 23 != 7).then("w").otherwise(0.0),
    )


ROWS = make_rows()


def assert_same(found: pl.LazyFrame, expected: pl.LazyFrame) -> None:
    """Compare tables whose groups may have another order."""
    texts = found.lazy().select(pl.col(pl.String)).collect_schema().names()
    both = (table.lazy().collect().sort(texts, maintain_order=True) for table in (found, expected))
    assert_frame_equal(*both, **EQUAL)


@pytest.mark.parametrize("name", sweep(NAMES, ONE_OF_EACH))
def test_the_order_of_rows_does_not_matter(name: str) -> None:
    shuffled = ROWS.sample(fraction=1, shuffle=True, seed=4)
    assert_same(TABLES[name](shuffled), TABLES[name](ROWS))


@pytest.mark.parametrize("name", sweep(WEIGHTED, ONE_OF_EACH))
def test_the_scale_of_weights_changes_only_sums_of_weights(name: str) -> None:
    found, expected = (TABLES[name](ROWS, weight=pl.col("w") * scale) for scale in (SCALE, 1))
    powers = {column: power for column, power in POWERS.items() if column in found.columns}
    scaled = [pl.col(column) * SCALE**power for column, power in powers.items()]
    assert_same(found, expected.with_columns(scaled))


@pytest.mark.parametrize("name", sweep(COUNTED, ONE_OF_EACH))
def test_frequencies_are_repeated_rows(name: str) -> None:
    repeated = ROWS.select(pl.all().repeat_by("n").explode(empty_as_null=False))
    found = TABLES[name](ROWS, weight=wroc.frequency("n"))
    assert_same(found, TABLES[name](repeated, weight=None))


@pytest.mark.parametrize("name", sweep([n for n in NAMES if not n.startswith(DRAWN)], ONE_OF_EACH))
def test_categories_are_groups_as_texts_are(name: str) -> None:
    found = TABLES[name](ROWS.with_columns(pl.col("g").cast(CATEGORIES)))
    assert_same(found.cast({CATEGORIES: pl.String}), TABLES[name](ROWS))


@pytest.mark.parametrize("name", sweep(NAMES, ONE_OF_EACH))
def test_labels_of_minus_one_and_one_are_as_true_and_false(name: str) -> None:
    signed = pl.when("y").then(1).otherwise(-1).cast(pl.Int8)
    assert_same(TABLES[name](ROWS.with_columns(y=signed)), TABLES[name](ROWS))


def values(rows: pl.DataFrame, name: str, scale: float = 1.0) -> pl.DataFrame:
    """Return the value of an expression in each group; sums of weights are divided by a scale."""
    found = rows.group_by("g").agg(value=EXPRESSIONS[name]).sort("g")
    if isinstance(found.schema["value"], pl.Struct):
        found = found.unnest("value")
    sums = [column for column in POWERS if column in found.columns]
    return found.with_columns(pl.col(sums) / scale)


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions_depend_neither_on_the_order_of_rows_nor_on_the_scale_of_weights(
    name: str,
) -> None:
    shuffled = ROWS.sample(fraction=1, shuffle=True, seed=4).with_columns(pl.col("w") * SCALE)
    assert_frame_equal(values(shuffled, name, SCALE), values(ROWS, name), **EQUAL)


@pytest.mark.parametrize("name", [name for name in EXPRESSIONS if name != "roc_auc_ci"])
def test_whole_weights_of_expressions_are_repeated_rows(name: str) -> None:
    counted = ROWS.with_columns(w="n")
    repeated = counted.select(pl.all().repeat_by("n").explode(empty_as_null=False))
    assert_frame_equal(values(counted, name), values(repeated.with_columns(w=1), name), **EQUAL)


@pytest.mark.parametrize("name", sweep(APART, ONE_OF_EACH))
def test_a_group_is_as_if_it_were_alone(name: str) -> None:
    whole = TABLES[name](ROWS).lazy().collect()
    for group in (None, "a"):
        own = pl.col("g").eq_missing(pl.lit(group))
        alone = TABLES[name](ROWS.filter(own))
        assert_same(whole.filter(own).lazy().drop(ADJUSTED), alone.lazy().drop(ADJUSTED))


@pytest.mark.parametrize("name", sweep(MODELS, fast=MODELS[::2]))
def test_a_score_is_as_if_it_were_alone(name: str) -> None:
    call = calls.TABLES[name]
    probability = 1 / (1 + (-pl.col("s")).exp())
    rows = ROWS.with_columns(s=probability, t=probability**2)
    whole = call(rows, "y", ["s", "t"], "g", weight="w")
    for score in "st":
        alone = call(rows, "y", score, "g", weight="w")
        kept = [name for name in whole.drop(ADJUSTED).columns if name in alone.columns]
        assert_same(whole.filter(model=score).select(kept), alone.select(kept))


@pytest.mark.parametrize("name", sweep(DESIGNED, fast=list(DESIGNED)[::2]))
def test_clusters_are_units_of_one_stratum(name: str) -> None:
    rows = ROWS.with_columns(s=1 / (1 + (-pl.col("s")).exp()), c=pl.int_range(pl.len()) // 7)
    score = ["s", pl.col("w").alias("t")] if name in calls.COMPARISONS else "s"
    stratum = wroc.Survey("c", strata=pl.lit("all"))
    tables = [
        DESIGNED[name](rows, "y", score, "g", weight="w", design=design)
        for design in ("c", wroc.Survey("c"), stratum)
    ]
    for table in tables[1:]:
        assert_same(tables[0], table.select(tables[0].columns))
