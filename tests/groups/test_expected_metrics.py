"""Expected metrics: worked numbers, all pairs, all labels, peers."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from sklearn.metrics import roc_auc_score

import polars_wroc as wroc

A = pl.DataFrame(
    {
        "g": "a",
        "p": [0.9, 0.8, 0.8, 0.6, 0.5, 0.4, 0.3, 0.2, 0.2, 0.1],
        "y": [1, 1, 0, 1, 0, 1, 0, 0, 1, 0],
        "w": [1, 2, 1, 1, 1, 1, 2, 1, 1, 3],
    }
)
B = pl.DataFrame(
    {
        "g": "b",
        "p": [0.6, 0.55, 0.5, 0.45, 0.45, 0.4, 0.35, 0.3],
        "y": [1, 0, 1, 0, 1, 0, 0, 0],
        "w": [1] * 8,
    }
)


@pytest.fixture
def few_rows_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worked examples are smaller than what has limits."""
    monkeypatch.setattr("polars_wroc.groups.expected_metrics.LEAST_ROWS", 0)


def people(seed: int, n: int = 400) -> pl.DataFrame:
    draw = np.random.default_rng(seed)
    p = draw.beta(1.2, 2.5, n).round(2).clip(0.01, 0.99)
    return pl.DataFrame(
        {
            "p": p,
            "y": draw.random(n) < p,
            "g": [[*"abc", None][i] for i in draw.integers(4, size=n)],
            "w": draw.lognormal(0, 0.8, n),
            "f": draw.integers(4, size=n),
            "k": np.arange(n) // 4,
            "i": np.arange(n),
        }
    )


def pairs(p: list[float], s: list[float], w: list[float]) -> float:
    """Expected AUC, of all pairs of two rows."""
    right = total = 0.0
    for i, j in product(range(len(p)), repeat=2):
        if i != j:
            weight = w[i] * p[i] * w[j] * (1 - p[j])
            right += weight * ((s[i] > s[j]) + (s[i] == s[j]) / 2)
            total += weight
    return right / total


def auc(y: Any, s: Any, w: Any = None) -> float:
    return float(roc_auc_score(y, s, sample_weight=w))


# Expected and observed AUC, the error, and the excess in errors, where it is known.
AUCS = {
    ("A", None): (0.8318965517, 0.72, 0.1301587655, -0.8596927858),
    ("A", "w"): (0.8508968610, 0.8229166667, 0.1506630077, -0.1857137644),
    ("B", None): (0.6220387653, 0.8333333333, 0.1952854494, None),
}
WORKED = {
    (None, "auc"): (0.8318965517, 0.72, 0.1301587655),
    (None, "tpr"): (0.75, 0.6, 0.1530931089),
    (None, "fpr"): (0.2692307692, 0.4, 0.1417033138),
    (None, "ppv"): (0.72, 0.6, 0.1897366596),
    (None, "net_benefit"): (0.22, 0.1, 0.1897366596),
    ("w", "auc"): (0.8508968610, 0.8229166667, 0.1506630077),
    ("w", "tpr"): (0.7213114754, 0.6666666667, 0.1837983707),
    ("w", "fpr"): (0.2025316456, 0.25, 0.1245579339),
    ("w", "ppv"): (0.7333333333, 0.6666666667, 0.1957890021),
    ("w", "net_benefit"): (0.2, 0.1428571429, 0.1678191446),
}


@pytest.mark.usefixtures("few_rows_are_enough")
@pytest.mark.parametrize(("weight", "metric"), WORKED)
def test_the_worked_example(weight: str | None, metric: str) -> None:
    table = wroc.expected_metrics(A, "p", label="y", threshold=0.5, weight=weight, level=0.5)
    row = table.row(by_predicate=pl.col("metric") == metric, named=True)
    error = (row["expected"] - row["expected_low"]) / 0.6744897501960817
    expected, value, known = WORKED[weight, metric]
    assert (row["expected"], row["value"], error) == pytest.approx(
        (expected, value, known), abs=6e-11
    )
    z = row["excess"] / error
    assert row["excess_p_value"] == pytest.approx(math.erfc(abs(z) / math.sqrt(2)), rel=1e-9)


@pytest.mark.usefixtures("few_rows_are_enough")
@pytest.mark.parametrize(("frame", "weight"), AUCS)
def test_the_scores_of_the_worked_aucs(frame: str, weight: str | None) -> None:
    rows = {"A": A, "B": B}[frame]
    row = wroc.expected_metrics(rows, "p", label="y", weight=weight, level=0.5).row(0, named=True)
    error = (row["expected"] - row["expected_low"]) / 0.6744897501960817
    *known, z = AUCS[frame, weight]
    assert [row["expected"], row["value"], error] == pytest.approx(known, abs=6e-11)
    if z is not None:
        assert row["excess"] / error == pytest.approx(z, abs=1e-9)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.integers(1, 4), st.integers(1, 5)), min_size=2, max_size=12
    )
)
def test_the_expected_auc_is_that_of_all_pairs(rows: list[tuple[int, int, int]]) -> None:
    p, s, w = ([float(row[i]) for row in rows] for i in range(3))
    p = [each / 10 for each in p]
    frame = pl.DataFrame({"p": p, "s": s, "w": w})
    options: dict[str, Any] = {"probability": "p", "weight": "w"}
    found = wroc.expected_metrics(frame, "s", **options)["expected"].item()
    assert found == pytest.approx(pairs(p, s, w), abs=1e-12)
    reversed_ = wroc.expected_metrics(frame.lazy(), -pl.col("s"), **options).collect()
    assert reversed_["expected"].item() == pytest.approx(1 - found, abs=1e-12)
    scaled = wroc.expected_metrics(frame, "s", probability="p", weight=pl.col("w") * 1e-3)
    assert scaled["expected"].item() == pytest.approx(found, abs=1e-12)


@pytest.mark.slow(reason="tries all labels")
def test_it_is_what_all_labels_give() -> None:
    p = A["p"].to_list()
    numerator = denominator = 0.0
    aucs, shares = list[float](), list[float]()
    for y in product((0, 1), repeat=len(p)):
        chance = math.prod(x if label else 1 - x for x, label in zip(p, y, strict=True))
        n = sum(y) * (len(p) - sum(y))
        if n:
            value = auc(y, p)
            numerator, denominator = numerator + chance * n * value, denominator + chance * n
            aucs.append(value)
            shares.append(chance)
    found = wroc.expected_metrics(A, "p")["expected"].item()
    assert found == pytest.approx(numerator / denominator, abs=1e-10)
    mean = np.average(aucs, weights=shares)
    spread = math.sqrt(np.average((np.array(aucs) - mean) ** 2, weights=shares))
    assert (mean, spread) == pytest.approx((0.8318676807, 0.1361188495), abs=1e-10)


@pytest.mark.parametrize(("weight", "known"), [(None, 0.8084935897), ("w", 0.8247561735)])
def test_with_own_pairs_it_is_the_auc_of_doubled_rows(weight: str | None, known: float) -> None:
    w = A["w"].to_numpy() if weight else np.ones(A.height)
    p = A["p"].to_numpy()
    y, weights = np.repeat([1, 0], A.height), np.concatenate([w * p, w * (1 - p)])
    doubled = auc(y, np.tile(p, 2), weights)
    frame = pl.DataFrame({"y": y, "s": np.tile(p, 2), "w": weights})
    assert wroc.summary(frame, "y", "s", weight="w")["auc"].item() == pytest.approx(doubled)
    total, own = (w * p).sum() * (w * (1 - p)).sum(), (w * w * p * (1 - p)).sum()
    found = wroc.expected_metrics(A, "p", weight=weight)["expected"].item()
    assert doubled == pytest.approx(known, abs=1e-10)
    assert (found * (total - own) + own / 2) / total == pytest.approx(doubled, abs=1e-12)


def test_nannyml_counts_own_pairs() -> None:
    # nannyml 0.13.1, estimate_roc_auc of these scores: 0.8030911281; it rounds sums to 5 decimals.
    p = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.35, 0.2, 0.15, 0.1])
    found = wroc.expected_metrics(pl.DataFrame({"p": p}), "p")["expected"].item()
    assert found == pytest.approx(0.8266277309, abs=1e-10)
    total, own = p.sum() * (1 - p).sum(), (p * (1 - p)).sum()
    assert (found * (total - own) + own / 2) / total == pytest.approx(0.8030911281, abs=1e-6)


def test_labels_as_probabilities_leave_nothing_open() -> None:
    frame = people(4).with_columns(c=pl.col("y").cast(pl.Float64))
    table = wroc.expected_metrics(frame, "p", probability="c", label="y", threshold=0.3, weight="w")
    assert table["expected"].to_list() == pytest.approx(table["value"].to_list())
    assert table["expected_low"].to_list() == table["expected"].to_list()
    assert table["excess_p_value"].null_count() == table.height
    assert table["n_impossible"].to_list() == [0] * table.height
    wrong = wroc.expected_metrics(frame, "p", probability=1 - pl.col("c"), label="y")
    assert wrong["n_impossible"].item() == frame.height


def test_few_rows_have_no_limits() -> None:
    table = wroc.expected_metrics(A, "p", label="y", threshold=0.5)
    assert table["expected"].null_count() == 0
    for name in ("expected_low", "expected_high", "excess_p_value"):
        assert table[name].null_count() == table.height


def test_undefined_is_null() -> None:
    one = wroc.expected_metrics(A.head(1), "p", label="y", threshold=0.95)
    assert one.filter(metric="auc")["expected"].item() is None
    assert one.filter(metric="ppv")["expected"].item() is None
    missing = A.with_columns(c=pl.when(pl.col("p") < 0.9).then("p"))
    assert wroc.expected_metrics(missing, "p", probability="c")["n"].item() == 9


def test_a_design_needs_labels() -> None:
    with pytest.raises(ValueError, match="`design` must come with a `label`; found no label"):
        wroc.expected_metrics(A, "p", design="g")
    with pytest.raises(ValueError, match="`score` must be a probability"):
        wroc.expected_metrics(A, pl.col("p") * 2)
    with pytest.raises(ValueError, match=r"`probability` must be a probability, .* found [0-9.]+$"):
        wroc.expected_metrics(A, "p", probability=pl.col("p") * 2)
    replicates = wroc.ReplicateWeights(["w", "p"], "jk1")
    with pytest.raises(ValueError, match="`design` must be clusters or a `Survey`"):
        wroc.expected_metrics(A, "p", label="y", design=replicates)


def test_clusters_of_one_row_are_rows_whose_own_differences_count() -> None:
    frame = people(5, 3000)
    options: dict[str, Any] = {"label": "y", "threshold": 0.3, "by": "g"}
    alone = wroc.expected_metrics(frame, "p", **options)
    clusters = wroc.expected_metrics(frame, "p", design="i", **options)
    same = ["g", "metric", "n", "n_impossible", "expected", "value", "excess"]
    assert_frame_equal(clusters.select(same), alone.select(same))
    for name in ("expected_low", "expected_high"):
        np.testing.assert_allclose(clusters[name], alone[name], atol=0.02)
    lazy = wroc.expected_metrics(frame.lazy(), "p", design="k", **options)
    assert_frame_equal(lazy.collect(), wroc.expected_metrics(frame, "p", design="k", **options))
