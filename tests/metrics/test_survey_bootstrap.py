"""Resampling by a design: draws of whole units within strata, and replicate weights as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import polars.selectors as cs
import pytest
from polars.testing import assert_frame_equal, assert_series_equal
from scipy import stats

import polars_wroc as wroc

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


@pytest.mark.slow(reason="draws many samples")
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
def test_draws_do_not_depend_on_the_order_of_rows(rows: pl.DataFrame, design: wroc.Survey) -> None:
    options: dict[str, Any] = {"metrics": ["roc_auc", "ks"], "weight": "w", "by": "g"}
    options |= {"design": design, "resamples": 5}
    table = wroc.bootstrap(rows, "y", ["s", pl.col("s").alias("t")], **options, replicates=True)
    shuffled = rows.sample(fraction=1, shuffle=True, seed=1).lazy()
    plan = wroc.bootstrap(shuffled, "y", ["s", pl.col("s").alias("t")], **options, replicates=True)
    assert_frame_equal(plan.collect(), table, rel_tol=1e-12)
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
        "^`lonely` must be 'certainty' if a stratum with one sampling unit is resampled; "
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
        "^`fpc` must be None if sampling units are drawn, which .* rather too large; found f$",
    ),
    "lonely": (
        {"design": wroc.Survey("c", strata="h", lonely="adjust")},
        "^`lonely` must be 'null' or 'certainty' if sampling units are drawn; found 'adjust'$",
    ),
    "multiplier": (
        {"design": SURVEY, "multiplier": "gamma"},
        "^`multiplier` must be left out with a survey design; found 'gamma'$",
    ),
}


@pytest.mark.parametrize("replicates", [False, True])
@pytest.mark.parametrize("name", REFUSED)
def test_a_bootstrap_refuses_options_that_do_not_go_with_a_design(
    rows: pl.DataFrame, replicates: bool, name: str
) -> None:
    options, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        UNTYPED.bootstrap(rows, "y", "s", metrics="ks", replicates=replicates, **options)
