"""The bootstrap: its draws, what is drawn together, and that its spread is the known one."""

from __future__ import annotations

import random
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from polars.exceptions import ColumnNotFoundError
from polars.testing import assert_frame_equal
from scipy import stats
from sklearn.metrics import average_precision_score, roc_auc_score
from sweeps import sweep

import polars_wroc as wroc
from polars_wroc.typing import MetricName, Multiplier

Floats: TypeAlias = npt.NDArray[np.float64]

ALL: list[MetricName] = ["roc_auc", "average_precision", "ks"]
MULTIPLIERS: list[Multiplier] = ["poisson", "gamma"]
PLACE = pl.int_range(pl.len(), dtype=pl.Int64)
FUNCTIONS: dict[str, Any] = {
    "intervals": wroc.bootstrap,
    "replicates": partial(wroc.bootstrap, replicates=True),
}


@pytest.fixture
def numbered(people: pl.DataFrame) -> pl.DataFrame:
    """The people with a number of their own and a second score."""
    noise = np.random.default_rng(4).normal(size=people.height)
    return people.with_columns(PLACE.alias("i"), pl.Series("t", noise) + pl.col("s"))


def drawn(ids: pl.Series, seed: int) -> Floats:
    """How often Poisson's distribution draws each id, from the hash of the id."""
    share = ids.hash(seed).cast(pl.Float64).to_numpy() / 2.0**64
    times: Floats = stats.poisson.ppf(share, 1)
    return times


# The numbers.


def test_values_are_those_of_the_data(people: pl.DataFrame) -> None:
    plan = wroc.bootstrap(people.lazy(), "y", "s", metrics=ALL, weight="w", by="g", resamples=2)
    found = plan.collect().pivot("metric", index="g", values="value")
    summary = wroc.summary(people, "y", "s", weight="w", by="g").rename({"auc": "roc_auc"})
    assert_frame_equal(found, summary.select("g", *ALL), rel_tol=1e-12)


def test_replicate_0_is_the_data(people: pl.DataFrame) -> None:
    table = wroc.bootstrap(people, "y", "s", metrics=ALL, by="g", resamples=2, replicates=True)
    summary = wroc.summary(people, "y", "s", by="g").rename({"auc": "roc_auc"})
    assert_frame_equal(
        table.filter(replicate=0).select("g", *ALL), summary.select("g", *ALL), rel_tol=1e-12
    )


@pytest.mark.parametrize("level", sweep([0.95, 0.5]))
def test_intervals_are_quantiles_of_the_replicates(people: pl.DataFrame, level: float) -> None:
    options: dict[str, Any] = {"metrics": ALL, "weight": "w", "resamples": 20, "seed": 3}
    found = wroc.bootstrap(people, "y", "s", level=level, **options)
    values = wroc.bootstrap(people, "y", "s", **options, replicates=True).filter(
        pl.col("replicate") > 0
    )
    assert found["metric"].to_list() == ALL
    assert found["n_replicates"].to_list() == [20] * len(ALL)
    for row in found.iter_rows(named=True):
        column = values[row["metric"]].to_numpy()
        low, high = np.quantile(column, [(1 - level) / 2, (1 + level) / 2])
        expected = [np.std(column, ddof=1), low, high]
        assert [row["value_se"], row["value_low"], row["value_high"]] == pytest.approx(
            expected, rel=1e-12
        )


def test_replicates_are_metrics_of_rows_weighted_by_the_draws(numbered: pl.DataFrame) -> None:
    found = wroc.bootstrap(
        numbered,
        "y",
        "s",
        metrics=["roc_auc", "average_precision"],
        weight="w",
        design="i",
        resamples=5,
        seed=7,
        replicates=True,
    )
    seeds = random.Random(7)  # noqa: S311  (the draws to repeat)
    for _, auc, precision in found.filter(pl.col("replicate") > 0).iter_rows():
        weight = numbered["w"].to_numpy() * drawn(numbered["i"], seeds.getrandbits(63))
        expected = [
            score(numbered["y"], numbered["s"], sample_weight=weight)
            for score in (roc_auc_score, average_precision_score)
        ]
        assert [auc, precision] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_seed_repeats_and_another_differs(people: pl.DataFrame, function: str) -> None:
    def run(seed: int) -> pl.DataFrame:
        table: pl.DataFrame = FUNCTIONS[function](
            people, "y", "s", metrics=["ks", "roc_auc"], weight="w", resamples=5, seed=seed
        )
        return table

    # Sums over several threads may differ in the last bit.
    assert_frame_equal(run(1), run(1), rel_tol=1e-12)
    with pytest.raises(AssertionError, match="value mismatch"):
        assert_frame_equal(run(1), run(2), abs_tol=1e-3)


def test_more_replicates_begin_with_the_same_ones(people: pl.DataFrame) -> None:
    few, many = (
        wroc.bootstrap(people, "y", "s", metrics="ks", resamples=n, replicates=True) for n in (3, 6)
    )
    assert_frame_equal(many.head(4), few, rel_tol=1e-12)


def test_replicates_differ_from_each_other(people: pl.DataFrame) -> None:
    table = wroc.bootstrap(people, "y", "s", metrics="roc_auc", resamples=20, replicates=True)
    assert table["replicate"].to_list() == list(range(21))
    assert table["roc_auc"].n_unique() == 21


# The draws.


# What is drawn together.


def test_equal_scores_have_equal_replicates(people: pl.DataFrame) -> None:
    table = wroc.bootstrap(
        people.with_columns(again="s"),
        "y",
        ["s", "again"],
        metrics=ALL,
        weight="w",
        by="g",
        resamples=5,
        replicates=True,
    )
    first, second = (table.filter(model=name).drop("model") for name in ("s", "again"))
    assert first.height == 4 * 6
    assert_frame_equal(first, second, rel_tol=1e-12)


def test_scores_together_with_others_have_the_replicates_that_they_have_alone(
    numbered: pl.DataFrame,
) -> None:
    together = wroc.bootstrap(
        numbered, "y", ["s", "t"], metrics="ks", weight="w", resamples=5, replicates=True
    )
    for name in ("s", "t"):
        alone = wroc.bootstrap(
            numbered, "y", name, metrics="ks", weight="w", resamples=5, replicates=True
        )
        assert_frame_equal(together.filter(model=name).drop("model"), alone, rel_tol=1e-12)


def test_replicates_of_a_group_do_not_depend_on_the_other_groups(numbered: pl.DataFrame) -> None:
    def run(frame: pl.DataFrame) -> pl.DataFrame:
        return wroc.bootstrap(
            frame,
            "y",
            "s",
            metrics=["ks", "roc_auc"],
            weight="w",
            by="g",
            design="i",
            resamples=5,
            replicates=True,
        )

    together = run(numbered)
    for group in "abcd":
        alone = run(numbered.filter(g=group).reverse())
        assert_frame_equal(together.filter(g=group), alone, rel_tol=1e-12)


def test_groups_share_their_draws(people: pl.DataFrame) -> None:
    halves = pl.concat([people.with_columns(half=pl.lit(name), i=PLACE) for name in ("x", "y")])
    table = wroc.bootstrap(
        halves, "y", "s", metrics="ks", by="half", design="i", resamples=5, replicates=True
    )
    first, second = (table.filter(half=name).drop("half") for name in ("x", "y"))
    assert_frame_equal(first, second, rel_tol=1e-12)


@pytest.mark.parametrize("multiplier", MULTIPLIERS)
def test_rows_of_a_cluster_share_their_multipliers(
    numbered: pl.DataFrame, multiplier: Multiplier
) -> None:
    def run(frame: pl.DataFrame) -> pl.DataFrame:
        return wroc.bootstrap(
            frame,
            "y",
            "s",
            metrics=ALL,
            weight="w",
            design="i",
            resamples=5,
            multiplier=multiplier,
            replicates=True,
        )

    twice = pl.concat([numbered, numbered.with_columns(pl.col("w") * 2)])
    threefold = numbered.with_columns(pl.col("w") * 3)
    assert_frame_equal(run(twice), run(threefold), rel_tol=1e-12)


def test_cluster_may_be_text_or_an_expression(numbered: pl.DataFrame) -> None:
    named = numbered.with_columns(name=pl.format("person {}", "i"))
    expression = pl.format("person {}", pl.col("i"))
    by_name, by_expression = (
        wroc.bootstrap(named, "y", "s", metrics="ks", resamples=5, design=cluster)
        for cluster in ("name", expression)
    )
    assert_frame_equal(by_name, by_expression, rel_tol=1e-12)


# The spread.


@pytest.mark.slow(reason="simulates many samples")
@pytest.mark.parametrize(("multiplier", "replicates"), sweep([("poisson", 400), ("gamma", 200)]))
def test_standard_error_of_an_auc_is_that_of_its_formula(
    multiplier: Multiplier, replicates: int
) -> None:
    rng = np.random.default_rng(8)
    group = np.repeat(["200", "400", "200 weighted"], [200, 400, 200])
    label = rng.random(800) < 0.4
    weight = np.where(group == "200 weighted", rng.uniform(0.5, 2, 800), 1)
    data = pl.DataFrame({"g": group, "y": label, "s": rng.normal(size=800) + label, "w": weight})
    found = wroc.bootstrap(
        data,
        "y",
        "s",
        metrics="roc_auc",
        weight="w",
        by="g",
        resamples=replicates,
        multiplier=multiplier,
    )
    expected = wroc.summary(data, "y", "s", weight="w", by="g")
    assert found["value_se"].to_list() == pytest.approx(expected["auc_se"].to_list(), rel=0.15)
    limits = ["value_low", "value_high"]
    named = {f"auc_{end}": f"value_{end}" for end in ("low", "high")}
    assert_frame_equal(found.select(limits), expected.rename(named).select(limits), abs_tol=0.03)


def test_standard_error_in_clusters_is_that_of_its_formula() -> None:
    rng = np.random.default_rng(9)
    person = np.repeat(np.arange(100), 4)
    label = rng.random(100)[person] < 0.4
    score = (rng.normal(size=100)[person] + label) + rng.normal(size=400) / 3
    data = pl.DataFrame({"c": person, "y": label, "s": score})
    (found,) = wroc.bootstrap(data, "y", "s", metrics="roc_auc", design="c", resamples=200)[
        "value_se"
    ]
    (expected,) = wroc.summary(data, "y", "s", design="c")["auc_se"]
    (of_rows,) = wroc.summary(data, "y", "s")["auc_se"]
    assert expected > 1.5 * of_rows
    assert found == pytest.approx(expected, rel=0.15)


# What is not defined.


@pytest.mark.parametrize("multiplier", MULTIPLIERS)
def test_group_of_one_class_has_no_values(multiplier: Multiplier) -> None:
    data = pl.DataFrame({"g": ["a", "a", "b", "b"], "y": [1, 0, 1, 1], "s": [0.9, 0.1, 0.5, 0.4]})
    found = wroc.bootstrap(data, "y", "s", metrics=ALL, by="g", resamples=10, multiplier=multiplier)
    undefined = found.filter(g="b")
    assert undefined["metric"].to_list() == ALL
    assert undefined["n_replicates"].to_list() == [0] * len(ALL)
    assert (
        undefined.select("value", "value_se", "value_low", "value_high").null_count().row(0)
        == (len(ALL),) * 4
    )


def test_tiny_class_vanishes_from_poisson_replicates_alone() -> None:
    data = pl.DataFrame({"y": [1] + [0] * 20, "s": [0.55] + [i / 20 for i in range(20)]})
    counts = {
        kind: wroc.bootstrap(data, "y", "s", metrics="roc_auc", resamples=50, multiplier=kind)[
            "n_replicates"
        ].item()
        for kind in MULTIPLIERS
    }
    assert counts["gamma"] == 50
    assert 20 <= counts["poisson"] <= 42


def test_vanished_class_is_a_null_replicate() -> None:
    data = pl.DataFrame({"y": [1, 0, 0], "s": [0.5, 0.1, 0.9]})
    values = wroc.bootstrap(data, "y", "s", metrics="ks", resamples=50, replicates=True)
    found = wroc.bootstrap(data, "y", "s", metrics="ks", resamples=50)
    resampled = values.filter(pl.col("replicate") > 0)["ks"]
    assert found["n_replicates"].item() == resampled.count() < 50
    assert resampled.null_count() > 0


def test_missing_rows_change_nothing(numbered: pl.DataFrame) -> None:
    lacking = numbered.with_columns(
        s=pl.when(pl.col("i") % 5 > 0).then("s"), y=pl.when(pl.col("i") % 7 > 0).then("y")
    )
    with_them, without = (
        wroc.bootstrap(
            frame,
            "y",
            "s",
            metrics=ALL,
            weight="w",
            by="g",
            design="i",
            resamples=4,
            replicates=True,
        )
        for frame in (lacking, lacking.drop_nulls())
    )
    assert_frame_equal(with_them, without, rel_tol=1e-12)


def test_frame_without_rows(people: pl.DataFrame) -> None:
    none = wroc.bootstrap(people.clear(), "y", "s", metrics="ks", resamples=2)
    assert none.rows() == [("ks", None, None, None, None, 0)]
    grouped = wroc.bootstrap(people.clear(), "y", "s", metrics="ks", by="g", resamples=2)
    assert grouped.is_empty()


# The tables and the plan.


def test_tables_have_the_columns_that_are_promised(numbered: pl.DataFrame) -> None:
    options: dict[str, Any] = {"metrics": ["ks", "roc_auc"], "by": "g", "resamples": 2}
    table = wroc.bootstrap(numbered, "y", ["s", "t"], **options)
    assert dict(table.schema) == {
        "g": pl.String,
        "model": pl.String,
        "metric": pl.String,
        **dict.fromkeys(["value", "value_se", "value_low", "value_high"], pl.Float64),
        "n_replicates": pl.Int64,
    }
    expected = [(g, m, n) for g in "abcd" for m in ("s", "t") for n in ("ks", "roc_auc")]
    assert table.select("g", "model", "metric").rows() == expected
    replicates = wroc.bootstrap(numbered, "y", ["s", "t"], **options, replicates=True)
    assert dict(replicates.schema) == {
        "g": pl.String,
        "model": pl.String,
        "replicate": pl.Int64,
        "ks": pl.Float64,
        "roc_auc": pl.Float64,
    }
    order = [(g, m, n) for g in "abcd" for m in ("s", "t") for n in range(3)]
    assert replicates.select("g", "model", "replicate").rows() == order


# What is refused.


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"metrics": "auc"},
            ValueError,
            r"^`metrics` must be one of roc_auc, .*; found 'auc'; did you mean 'roc_auc'\?$",
        ),
        (
            {"metrics": ["ks", "auc"]},
            ValueError,
            r"^`metrics` must be one of .*; found 'auc'; did you mean 'roc_auc'\?$",
        ),
        (
            {"metrics": []},
            ValueError,
            r"^`metrics` must hold one metric or several different ones; found \[\]$",
        ),
        (
            {"metrics": ["ks", "gini", "ks"]},
            ValueError,
            r"^`metrics` must hold .* different ones; found \['ks', 'gini', 'ks'\]$",
        ),
        (
            {"design": "none"},
            ColumnNotFoundError,
            r"^`design` must name a column of the frame; found no column 'none' among \['g', 'y'",
        ),
    ],
)
def test_a_bootstrap_refuses_unknown_metrics_and_designs(
    people: pl.DataFrame,
    function: str,
    options: dict[str, Any],
    error: type[Exception],
    message: str,
) -> None:
    for frame in (people, people.lazy()):
        with pytest.raises(error, match=message):
            FUNCTIONS[function](frame, "y", "s", **({"metrics": "ks"} | options))


@pytest.mark.parametrize(
    ("function", "taken"),
    [
        ("intervals", "metric"),
        ("intervals", "value"),
        ("intervals", "n_replicates"),
        ("replicates", "replicate"),
        ("replicates", "ks"),
    ],
)
def test_by_named_like_a_result_column(people: pl.DataFrame, function: str, taken: str) -> None:
    message = f"^`by` must not take the name of a result column; found '{taken}': rename it"
    with pytest.raises(ValueError, match=message):
        FUNCTIONS[function](
            people, "y", "s", metrics="ks", by=pl.col("g").alias(taken), resamples=2
        )


def test_groups_may_write_their_negatives_in_different_ways(people: pl.DataFrame) -> None:
    positive, first = pl.col("y"), pl.col("g") == "a"
    negative = pl.when(first).then(-1).otherwise(0)
    mixed = people.with_columns(y=pl.when(positive).then(1).otherwise(negative))
    options: dict[str, Any] = {"metrics": "ks", "by": "g", "resamples": 2}
    assert wroc.summary(mixed, "y", "s", by="g").height == 4
    found = wroc.bootstrap(mixed, "y", "s", **options)
    assert_frame_equal(found, wroc.bootstrap(people, "y", "s", **options))
