"""The score-type interval: worked numbers, the definition in plain Python, and what must hold."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import plain_score
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_roc import weight_as
from polars.testing import assert_frame_equal
from scipy import stats

import polars_wroc as wroc

summary_of = partial(wroc.summary, diagnostics=True)

SEVEN = pl.DataFrame(
    {
        "s": [0.9, 0.8, 0.7, 0.7, 0.6, 0.4, 0.3],
        "y": [1, 0, 1, 0, 1, 0, 0],
        "w": [1.0, 2, 1, 1, 2, 1, 1],
    }
)
ROWS = st.lists(
    st.tuples(st.integers(0, 6), st.booleans(), st.sampled_from([0.25, 1.0, 3.0])),
    min_size=2,
    max_size=30,
).filter(lambda rows: len({positive for _, positive, _ in rows}) == 2)


def separated(positives: int, negatives: int) -> pl.DataFrame:
    rows = positives + negatives
    return pl.DataFrame(
        {"s": range(rows, 0, -1), "y": [1] * positives + [0] * negatives, "w": [1.0] * rows}
    )


def labelled(labels: str) -> pl.DataFrame:
    return pl.DataFrame({"s": range(len(labels), 0, -1), "y": [int(y) for y in labels]})


def interval(frame: pl.DataFrame, **options: Any) -> dict[str, Any]:
    table = summary_of(frame, "y", "s", method="score", **options)
    return table.select("auc", "auc_se", "auc_low", "auc_high", "ci_method").row(0, named=True)


def limits(frame: pl.DataFrame, **options: Any) -> tuple[float, float]:
    found = interval(frame, **options)
    return found["auc_low"], found["auc_high"]


@pytest.mark.parametrize(
    ("frame", "options", "expected"),
    [
        (SEVEN, {"weight": "w"}, (0.1244433037, 0.9218201104)),
        (SEVEN, {}, (0.23123, 0.96081)),
        (separated(3, 6), {}, (0.43850, 1)),
        (separated(5, 20), {}, (0.56552, 1)),
        (separated(3, 3).with_columns(s=1), {}, (0.1643314442, 0.8356685558)),
        (labelled("11010100"), {}, (0.3462500033, 0.9815114205)),
        (labelled("11101000"), {}, (0.4499682398, 0.9995612268)),
        # One positive below all negatives, four above them.
        (labelled(f"1111{20 * '0'}1"), {}, (0.3512652999, 0.9775376056)),
    ],
)
def test_worked_numbers(
    frame: pl.DataFrame, options: dict[str, Any], expected: tuple[float, float]
) -> None:
    # The exact ones are computed with a quantile of 1.959964.
    exact = len(f"{expected[0]}") > 8
    assert limits(frame, **options) == pytest.approx(expected, abs=1e-8 if exact else 6e-6)


def defined(frame: pl.DataFrame, level: float, *, frequency: bool) -> tuple[float, float]:
    auc = plain_score.auc_of(frame, frequency=frequency)
    assert auc is not None
    return plain_score.limits(auc, float(stats.norm.ppf((1 + level) / 2)))


@given(ROWS, st.sampled_from([0.5, 0.9, 0.95, 0.999]), st.booleans())
def test_against_the_definition(
    rows: list[tuple[int, bool, float]],
    level: float,
    frequency: bool,
) -> None:
    frame = pl.DataFrame(rows, ["s", "y", "w"], orient="row").with_columns(pl.col("y").cast(int))
    weight_type = "frequency" if frequency else "probability"
    if frequency:
        # Quarters become whole numbers.
        frame = frame.with_columns(pl.col("w") * 4)
    found = limits(frame, weight=weight_as("w", weight_type), level=level)
    assert found == pytest.approx(defined(frame, level, frequency=frequency), abs=1e-9)
    # The expression, in which each group is a list.
    struct = wroc.roc_auc_ci(
        "y", "s", weight=weight_as("w", weight_type), level=level, method="score"
    )
    lists = frame.select(struct).unnest("roc_auc_ci").row(0, named=True)
    assert (lists["auc_low"], lists["auc_high"]) == pytest.approx(found, abs=1e-12)


@given(ROWS)
def test_reversed_and_exchanged(rows: list[tuple[int, bool, float]]) -> None:
    frame = pl.DataFrame(rows, ["s", "y", "w"], orient="row").with_columns(pl.col("y").cast(int))
    low, high = limits(frame, weight="w")
    assert low <= interval(frame, weight="w")["auc"] <= high
    flipped = frame.with_columns(s=-pl.col("s"))
    assert limits(flipped, weight="w") == pytest.approx((1 - high, 1 - low), abs=1e-9)
    exchanged = flipped.with_columns(y=1 - pl.col("y"))
    assert limits(exchanged, weight="w") == pytest.approx((low, high), abs=1e-9)
    scaled = frame.with_columns(w=pl.col("w") * 1000)
    assert limits(scaled, weight="w") == pytest.approx((low, high), abs=1e-9)


def test_beside_all_negatives_it_is_nearly_wilsons_interval() -> None:
    # Each positive is above or below all of many negatives: a share of 30 rows.
    positives = pl.DataFrame({"s": [2] * 24 + [0] * 6, "y": [1] * 30})
    frame = pl.concat([positives, pl.DataFrame({"s": [1] * 100_000, "y": [0] * 100_000})])
    low, high = limits(frame)
    shares = [stats.binomtest(24, 30).proportion_ci(method="wilson")]
    z = stats.norm.ppf(0.975)
    most = (0.8 + z**2 / 58 + np.array([-1, 1]) * z * np.sqrt(0.16 / 29 + z**2 / 29**2 / 4)) / (
        1 + z**2 / 29
    )
    assert most[0] - 2e-3 <= low <= shares[0].low + 2e-3
    # The upper limit has the correction for skewness too.
    assert shares[0].high - 2e-3 <= high <= most[1] + 0.02


def test_a_row_for_each_cluster_changes_the_quantile_only() -> None:
    frame = SEVEN.with_row_index("c")
    found = interval(frame, weight="w", design="c")
    assert found["auc_se"] == pytest.approx(interval(frame, weight="w")["auc_se"], rel=1e-12)
    # Three positives are the fewest rows of a class, and so are their clusters.
    level = 2 * stats.norm.cdf(stats.t.ppf(0.975, 3)) - 1
    expected = limits(frame, weight="w", level=level)
    assert (found["auc_low"], found["auc_high"]) == pytest.approx(expected, abs=1e-9)


def test_undefined_is_null() -> None:
    for frame in (SEVEN.filter(pl.col("y") == 1), SEVEN.with_columns(w=pl.lit(1e150))):
        found = interval(frame, weight="w")
        assert (found["auc_low"], found["auc_high"], found["ci_method"]) == (None, None, None)
    one = SEVEN.filter((pl.col("y") == 0) | (pl.col("s") == 0.9))
    found = interval(one)
    assert (found["auc_se"], found["ci_method"]) == (None, "score")
    assert 0 < found["auc_low"] < found["auc"] == 1.0


def test_limits_of_a_lazy_frame_are_those_of_a_dataframe() -> None:
    random = np.random.default_rng(3)
    rows = 4000
    label = random.integers(0, 2, rows)
    frame = pl.DataFrame(
        {
            "g": random.integers(0, 40, rows),
            "c": random.integers(0, 900, rows),
            "y": label,
            "s": random.normal(label * 2).round(1),
            "w": random.lognormal(size=rows),
        }
    )
    counted = wroc.frequency(pl.col("w").ceil())
    choices: list[dict[str, Any]] = [{}, {"design": "c"}, {"weight": counted}]
    for options in choices:
        call: dict[str, Any] = {"by": "g", "method": "score", "weight": "w", **options}
        found = summary_of(frame.lazy(), "y", "s", **call).collect()
        assert_frame_equal(found, summary_of(frame, "y", "s", **call), rel_tol=1e-11)


# Of positives and negatives: the spread of the positives, the AUC, and both numbers of rows.
CELLS = [(2.0, 0.95, 20, 60), (2.0, 0.99, 50, 150), (1.0, 0.8, 8, 24), (1.0, 0.97, 100, 300)]


@pytest.mark.parametrize(("spread", "auc", "positives", "negatives"), CELLS)
def test_level_near_one(spread: float, auc: float, positives: int, negatives: int) -> None:
    replicates = 2000
    random = np.random.default_rng(17)
    shift = stats.norm.ppf(auc) * math.hypot(spread, 1)
    rows = positives + negatives
    label = np.tile(np.repeat([1, 0], [positives, negatives]), replicates)
    score = random.normal(size=rows * replicates) * np.where(label, spread, 1) + shift * label
    frame = pl.DataFrame({"g": np.repeat(np.arange(replicates), rows), "y": label, "s": score})
    table = summary_of(frame, "y", "s", by="g", method="score")
    covered = table.select(pl.lit(auc).is_between("auc_low", "auc_high").mean()).item()
    # Four standard errors of 2,000 replicates below what the definition promises.
    assert covered > 0.93 - 4 * math.sqrt(0.05 * 0.95 / replicates)


@pytest.mark.parametrize(
    ("frame", "end", "numbers", "sizes"),
    [
        (labelled("11010100"), "low", [1.1618950039, 1.1618950039], {"low": 0.25}),
        (labelled("11101000"), "high", [3.8474188203, 3.8474188203], {"high": 0.2089749645}),
        (
            separated(3, 3).with_columns(s=1),
            "low",
            [2.1213203436, 2.1213203436],
            {"low": 0.2135848273, "high": 0.2135848273},
        ),
        (
            labelled(f"1111{20 * '0'}1"),
            "low",
            [1, 8.9442719100],
            {"low": 0.2300280202, "high": 0.2426471072},
        ),
    ],
)
def test_worked_numbers_of_misranked_rows(
    frame: pl.DataFrame, end: str, numbers: list[float], sizes: dict[str, float]
) -> None:
    auc = plain_score.auc_of(frame.with_columns(w=1.0))
    assert auc
    assert plain_score.misranked(auc, end) == pytest.approx(numbers, abs=1e-10)
    found = plain_score.inverse_sizes(auc)
    assert {name: found[name] for name in sizes} == pytest.approx(sizes, abs=1e-10)
    if end == "low":
        table = wroc.summary(frame, "y", "s", diagnostics=True)
        assert table.select("k_pos", "k_neg").row(0) == pytest.approx(numbers, abs=1e-10)
