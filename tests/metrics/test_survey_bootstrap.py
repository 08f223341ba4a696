"""Resampling by a design: draws of whole units within strata, and replicate weights as they are."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import polars as pl
import polars.selectors as cs
import pytest
from conftest import Engine
from polars.testing import assert_frame_equal, assert_series_equal
from scipy import stats
from sklearn.metrics import roc_auc_score

import polars_wroc as wroc
from polars_wroc.stats.designs import Units
from polars_wroc.stats.resampling import hash_evenly, rescale_units, seeds

UNTYPED: Any = wroc
SURVEY = wroc.Survey("c", strata="h")
SIZES = {"p": 2, "q": 5, "r": 20, None: 9}


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    """Strata with few and many units; some units have no rows with a weight."""
    random = np.random.default_rng(41)
    units = [(h, c) for h, size in SIZES.items() for c in range(size)]
    unit = np.append(np.arange(len(units)), random.integers(0, len(units), 500))
    shared = 0.7 * random.normal(size=len(units))[unit]
    y = random.random(len(unit)) < 0.4
    frame = pl.DataFrame([units[i] for i in unit], schema=["h", "c"], orient="row").with_columns(
        y=pl.Series(y),
        s=np.round(y + shared + random.normal(size=len(unit)), 1),
        w=random.lognormal(sigma=0.5, size=len(unit)),
        g=pl.Series(random.choice(list("ab"), len(unit))),
    )
    empty = (pl.col("h") == "q") & (pl.col("c") == 3)
    missing = (pl.col("h") == "r") & (pl.col("c") == 7)
    return frame.with_columns(
        w=pl.when(empty).then(0.0).otherwise("w"),
        s=pl.when(~missing.fill_null(value=False)).then("s"),
    )


def multipliers(rows: pl.DataFrame, count: int, seed: int = 0) -> pl.DataFrame:
    """What the weight of each unit is multiplied by in each replicate."""
    used = rows.filter(pl.col("w") > 0).select("h", "c").unique().with_columns(used=True)
    # Units without weights come after the others of their stratum.
    units = (
        rows.select("h", "c").unique().join(used, on=["h", "c"], how="left", nulls_equal=True)
    ).sort("h", pl.col("used").is_null(), "c")
    size = units.group_by("h", maintain_order=True).len()["len"].to_numpy()
    stratum = np.repeat(np.arange(len(size)), size)
    design = Units(stratum, size.astype(float), np.zeros(len(size)))
    draws = pl.Series(np.arange((size - 1).sum()), dtype=pl.UInt32)
    return units.select("h", "c").with_columns(
        pl.Series(f"{i}", rescale_units(design, np.arange(len(stratum)), hash_evenly(draws, each)))
        for i, each in enumerate(islice(seeds(seed), count))
    )


@pytest.mark.slow
def test_units_of_a_stratum_are_drawn_with_replacement(rows: pl.DataFrame) -> None:
    count = 400
    of_units = multipliers(rows.with_columns(w=1), count)
    assert of_units.height == sum(SIZES.values())
    for stratum, size in SIZES.items():
        inside = of_units.filter(pl.col("h").eq_missing(stratum)).drop("h", "c")
        times = inside.to_numpy() * (size - 1) / size
        assert np.abs(times - times.round()).max() < 1e-12
        assert times.sum(axis=0) == pytest.approx([size - 1] * count)
        # Each draw takes each unit with the same probability.
        seen = np.bincount(times.round().astype(int).ravel(), minlength=size)
        share = stats.binom.pmf(np.arange(len(seen)), size - 1, 1 / size)
        counted = share * times.size > 5
        expected = np.append(share[counted], 1 - share[counted].sum()) * times.size
        found = np.append(seen[counted], seen[~counted].sum())
        chi2 = ((found - expected) ** 2 / np.maximum(expected, 1e-9))[expected > 1].sum()
        assert chi2 < stats.chi2.isf(1e-4, (expected > 1).sum() - 1)
        assert times.mean(axis=1) == pytest.approx(np.full(size, 1 - 1 / size), abs=0.2)


def test_each_replicate_is_an_auc_with_these_weights(rows: pl.DataFrame) -> None:
    weighted = rows.filter(pl.col("w") > 0)
    is_known = weighted["s"].is_not_null()
    known = weighted.filter(is_known)
    kept = known.join(
        multipliers(rows, 6, seed=3),
        on=["h", "c"],
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )
    table = wroc.bootstrap(
        rows, "y", "s", "roc_auc", weight="w", design=SURVEY, resamples=6, seed=3, replicates=True
    )
    for number, value in table.rows()[1:]:
        weights = known["w"].to_numpy() * kept[f"{number - 1}"].to_numpy()
        expected = roc_auc_score(known["y"], known["s"], sample_weight=weights)
        assert value == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
def test_units_without_complete_rows_are_drawn_too() -> None:
    """Where only they are drawn nothing is left."""
    some = pl.DataFrame({"c": [1, 1, 2, 3], "y": [1, 0, 1, 0], "s": 0.5, "w": [1, 1, 0, 0]})
    design = wroc.Survey("c", strata=pl.lit(0))
    table = wroc.bootstrap(some, "y", "s", "roc_auc", weight="w", design=design, resamples=300)
    share = table["n_replicates"].item() / 300
    # One of three units is not drawn in both draws with the probability 4 / 9.
    assert share == pytest.approx(5 / 9, abs=4 * np.sqrt(20 / 81 / 300))


@pytest.mark.parametrize("design", [SURVEY, wroc.Survey(strata="h")])
def test_errors_are_those_of_the_design(rows: pl.DataFrame, design: wroc.Survey) -> None:
    options: dict[str, Any] = {"weight": "w", "by": "g", "design": design}
    known = rows.filter(pl.col("h") != "p")
    table = wroc.bootstrap(known, "y", "s", "roc_auc", resamples=200, **options)
    summary = wroc.summary(known, "y", "s", **options)
    assert table["value"].to_list() == pytest.approx(summary["auc"].to_list(), rel=1e-12)
    assert table["value_se"].to_list() == pytest.approx(summary["auc_se"].to_list(), rel=0.2)
    margin = stats.t.ppf(0.975, summary["df"]) * table["value_se"].to_numpy()
    for end, side in (("low", -1), ("high", 1)):
        expected = table["value"].to_numpy() + side * margin
        assert table[f"value_{end}"].to_list() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("design", [SURVEY, wroc.Survey(strata="h")])
def test_draws_do_not_depend_on_the_order_of_rows(
    rows: pl.DataFrame, design: wroc.Survey, engine: Engine
) -> None:
    options: dict[str, Any] = {"metrics": ["roc_auc", "ks"], "weight": "w", "by": "g"}
    options |= {"design": design, "resamples": 5}
    table = wroc.bootstrap(rows, "y", ["s", pl.col("s").alias("t")], **options, replicates=True)
    shuffled = rows.sample(fraction=1, shuffle=True, seed=1).lazy()
    plan = wroc.bootstrap(shuffled, "y", ["s", pl.col("s").alias("t")], **options, replicates=True)
    assert_frame_equal(plan.collect(engine=engine), table, rel_tol=1e-12)
    both = table.partition_by("model", include_key=False)
    # Scores share the draws.
    assert_frame_equal(*both)


def test_survey_of_clusters_alone_is_a_column_of_them(rows: pl.DataFrame) -> None:
    options: dict[str, Any] = {"metrics": "roc_auc", "resamples": 5}
    tables = [
        wroc.bootstrap(rows, "y", "s", design=design, **options)
        for design in ("c", wroc.Survey("c"))
    ]
    assert_frame_equal(*tables)


def test_a_lonely_unit_is_certain_or_refused(rows: pl.DataFrame) -> None:
    lonely = rows.with_columns(h=pl.when(pl.col("h") == "p").then("c").otherwise(-1))
    options: dict[str, Any] = {"metrics": "roc_auc", "resamples": 3}
    message = (
        "^`lonely` must be 'certainty' where a stratum with one sampling unit is resampled; "
        "found 'null'$"
    )
    with pytest.raises(ValueError, match=message):
        wroc.bootstrap(lonely, "y", "s", design=SURVEY, **options)
    certain = wroc.Survey("c", strata="h", lonely="certainty")
    alone = lonely.filter(pl.col("h") >= 0)
    table = wroc.bootstrap(alone, "y", "s", design=certain, **options)
    assert table["value_se"].item() == 0


@pytest.mark.parametrize("lazy", [False, True])
def test_replicate_weights_are_the_replicates(rows: pl.DataFrame, lazy: bool) -> None:
    random = np.random.default_rng(1)
    names = [f"r{i}" for i in range(4)]
    frame = rows.with_columns(
        pl.Series(name, random.choice([0.5, 1.5], rows.height)) * pl.col("w") for name in names
    )
    nobody = pl.DataFrame({"g": ["z"], "y": [True]})
    frame = pl.concat([frame, nobody], how="diagonal")
    design = wroc.ReplicateWeights(cs.starts_with("r"), "fay", rho=0.5)
    options: dict[str, Any] = {"metrics": ["roc_auc", "ks"], "by": "g"}
    given: Any = frame.lazy() if lazy else frame
    table = wroc.bootstrap(given, "y", "s", weight="w", design=design, **options).lazy().collect()
    each = wroc.bootstrap(given, "y", "s", weight="w", design=design, **options, replicates=True)
    values = each.lazy().collect()
    for number, name in enumerate(["w", *names]):
        aucs = frame.group_by("g").agg(wroc.roc_auc("y", "s", weight=name)).sort("g")
        found = values.filter(replicate=number)
        assert found["g"].to_list() == aucs["g"].to_list()
        assert_series_equal(found["roc_auc"], aucs["roc_auc"], rel_tol=1e-12)
    quantile = float(stats.t.ppf(0.975, 3))
    for row in table.iter_rows(named=True):
        if row["g"] == "z":
            assert (row["value"], row["value_se"], row["n_replicates"]) == (None, None, 0)
            continue
        full, *others = values.filter(g=row["g"])[row["metric"]]
        se = np.sqrt(sum((other - full) ** 2 for other in others) / (4 * 0.25))
        expected = full, se, full - quantile * se, full + quantile * se
        assert list(row.values())[2:6] == pytest.approx(expected, rel=1e-10)
        assert row["n_replicates"] == 4


def test_an_undefined_replicate_leaves_no_error(rows: pl.DataFrame) -> None:
    one_class = pl.when("y").then("w").otherwise(0.0).alias("r")
    design = wroc.ReplicateWeights(["w", one_class], "brr")
    row = wroc.bootstrap(rows, "y", "s", "roc_auc", weight="w", design=design).row(0, named=True)
    assert row["value"] is not None
    assert (row["value_se"], row["value_low"], row["n_replicates"]) == (None, None, 1)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "fpc": (
        {"design": wroc.Survey("c", fpc="f")},
        "^`fpc` must be None where units are drawn: without it errors are .* too large; found f$",
    ),
    "lonely": (
        {"design": wroc.Survey("c", strata="h", lonely="adjust")},
        "^`lonely` must be 'null' or 'certainty' where units are drawn; found 'adjust'$",
    ),
    "multiplier": (
        {"design": SURVEY, "multiplier": "gamma"},
        "^`multiplier` must be left out with a survey design; found 'gamma'$",
    ),
}


@pytest.mark.parametrize("replicates", [False, True])
@pytest.mark.parametrize("name", REFUSED)
def test_refusals(rows: pl.DataFrame, replicates: bool, name: str) -> None:
    options, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        UNTYPED.bootstrap(rows, "y", "s", metrics="ks", replicates=replicates, **options)
