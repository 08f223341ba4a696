"""Equal scores: worked numbers, statsmodels, and brute force over blocks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_ranges import Step, equal_steps, picked, range_quantile, range_tail
from polars.testing import assert_frame_equal
from statsmodels.stats.contingency_tables import StratifiedTable

import polars_wroc as wroc

OWN, OTHERS = ("100", "110", "1110", "111"), ("01000", "00100", "1010", "101")
TIED = pl.DataFrame(
    [
        (score, int(label), group, int(group == "own" and first == 0) + 1)
        for score, own, others in zip((0.2, 0.4, 0.6, 0.8), OWN, OTHERS, strict=True)
        for group, labels in (("own", own), ("others", others))
        for first, label in enumerate(labels)
    ],
    schema=["s", "y", "g", "w"],
    orient="row",
)
BLOCKS = pl.DataFrame(
    {
        "s": [round(0.03 + 0.05 * i, 2) for i in range(20)],
        "y": [0, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 1, 1, 0, 1, 1, 0, 1, 1, 1],
        "g": ["own" if i + 1 in (3, 6, 7, 12, 14, 18) else "others" for i in range(20)],
    }
)


def equal_scores(frame: Any, label: str, score: Any, *, by: str, **options: Any) -> Any:
    """Compare groups with all others at equal scores; their column has its own name and type."""
    dtype = frame.collect_schema()[by]
    table = wroc.calibration_test(frame, label, score, attributes=by, reference="rest", **options)
    return table.drop("attribute").rename({"segment": by}).cast({by: dtype})


def of_own(table: pl.DataFrame) -> dict[str, Any]:
    return table.filter(g="own").row(0, named=True)


def sample(seed: int, rows: int, *, digits: int = 2) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    g = random.integers(0, 3, rows)
    s = (random.beta(2, 2, rows) * (1 - 0.1 * g)).round(digits)
    return pl.DataFrame(
        {
            "s": s,
            "y": (random.random(rows) < s).astype(int),
            "w": random.integers(1, 5, rows),
            "g": g,
            "c": random.integers(0, 15, rows),
        }
    )


@pytest.mark.usefixtures("any_rows")
def test_tied_scores_give_the_mantel_haenszel_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polars_wroc.groups.score_blocks._ROWS", 3)
    found = of_own(equal_scores(TIED, "y", "s", by="g"))
    tables = [
        [[labels.count("1"), labels.count("0")] for labels in sides]
        for sides in zip(OWN, OTHERS, strict=True)
    ]
    test = StratifiedTable([np.array(table) for table in tables]).test_null_odds(correction=False)
    z = (found["mean_gap_high"] - found["mean_gap_low"]) / 2 / 1.959963984540054
    assert (found["mean_gap"] / z) ** 2 == pytest.approx(test.statistic)
    assert test.statistic == pytest.approx(2.6723910172)
    assert (found["mean_gap"] / z, test.pvalue) == pytest.approx((1.6347449395, 0.1021025275))
    assert found["mean_gap"] == pytest.approx(0.2931034483)
    assert found["p_value"] == pytest.approx(0.2106321992)
    assert (found["n_blocks"], found["share_compared"]) == (4, 1)
    weighted = of_own(equal_scores(TIED, "y", "s", by="g", weight="w"))
    assert weighted["p_value"] == pytest.approx(0.0924213907)
    z = (weighted["mean_gap_high"] - weighted["mean_gap_low"]) / 2 / 1.959963984540054
    assert weighted["mean_gap"] / z == pytest.approx(1.9671987363)


@pytest.mark.usefixtures("any_rows")
def test_blocks_of_equal_scores_give_the_worked_gap_and_p_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    points = BLOCKS.with_columns(pl.col("s") * 100)
    found = of_own(equal_scores(points, "y", "s", by="g"))
    assert (found["n_blocks"], found["mean_gap"]) == (3, pytest.approx(0.28))
    assert found["p_value"] == pytest.approx(0.1569314172)
    monkeypatch.setattr("polars_wroc.groups.score_blocks._ROWS", 2)
    found = of_own(equal_scores(BLOCKS, "y", "s", by="g"))
    assert (found["n_blocks"], found["mean_gap"]) == (3, pytest.approx(0.268))
    assert found["p_value"] == pytest.approx(0.2001972931)


@pytest.mark.slow(reason="compares all intervals in plain Python")
@pytest.mark.usefixtures("any_rows")
@pytest.mark.parametrize("kind", ["none", "weights", "frequency"])
@pytest.mark.parametrize("seed", range(4))
def test_brute_force(kind: str, seed: int) -> None:
    frame = sample(seed, 90, digits=1 if seed == 1 else 2)
    if seed == 3:
        frame = frame.with_columns(pl.col("s") * 300)
    weight: Any = {"none": None, "weights": "w", "frequency": wroc.frequency("w")}[kind]
    table = equal_scores(frame.lazy(), "y", "s", by="g", weight=weight).collect()
    rows = frame
    if kind == "frequency":
        rows = frame.select(pl.all().repeat_by("w").explode(empty_as_null=False))
    s, y, w = (rows[name].to_list() for name in "syw")
    w = w if kind == "weights" else [1] * len(s)
    for row in table.iter_rows(named=True):
        own = (rows["g"] == row["g"]).to_list()
        few = min(sum(own), len(s) - sum(own)) < 200 and seed == 3
        steps = equal_steps(s, y, w, [x * x for x in w], own, 2 if few else 5)
        range_ = picked(steps, 1e-12 * sum(step.weight for step in steps))
        low, high = range_.limits(range_quantile(0.05 / 3), range_.sd)
        total = sum(step.weight for step in steps)
        mean, se = sum(step.difference for step in steps) / total, range_.sd / total
        expected = {
            "n": sum(own),
            "n_reference": len(own) - sum(own),
            "n_blocks": len(steps),
            "mean_gap": mean,
            "mean_gap_low": max(mean - 1.959963984540054 * se, -1),
            "mean_gap_high": min(mean + 1.959963984540054 * se, 1),
            "from_score": range_.low,
            "to_score": range_.high,
            "gap": range_.difference / range_.weight,
            "gap_low": max(low, -1),
            "gap_high": min(high, 1),
            "p_value": range_.p_value,
        }
        assert {name: row[name] for name in expected} == pytest.approx(expected, rel=1e-8)


@pytest.mark.slow(reason="tries many random rows")
@settings(max_examples=10)
@given(st.integers(0, 10**6), st.floats(0.001, 1000))
def test_what_changes_nothing(seed: int, scale: float) -> None:
    frame = sample(seed, 150)
    expected = equal_scores(frame, "y", "s", by="g", weight="w")
    scaled = frame.reverse().with_columns(pl.col("w") * scale)
    found = equal_scores(scaled, "y", "s", by="g", weight="w")
    assert_frame_equal(found, expected, rel_tol=1e-6)
    counts = wroc.from_counts(wroc.score_counts(frame, "y", "s", by="g", weight="w"))
    counted = counts.calibration_test(attributes="g", reference="rest").drop("attribute")
    counted = counted.rename({"segment": "g"}).cast({"g": pl.Int64})
    assert_frame_equal(counted, expected, rel_tol=1e-9)


def test_of_two_groups_both_are_one_test() -> None:
    frame = sample(2, 400).with_columns((pl.col("g") > 0).cast(pl.Int8), t=1 - pl.col("s") ** 2)
    table = equal_scores(frame, "y", ["s", "t"], by="g")
    for (_,), model in table.group_by("model"):
        one, other = model.sort("g").rows(named=True)
        assert one["mean_gap"] == pytest.approx(-other["mean_gap"])
        assert (one["gap_low"], one["p_value"]) == (
            pytest.approx(-other["gap_high"]),
            other["p_value"],
        )
    p = sorted(table["p_value"].unique())
    expected = [min(1.0, 2 * p[0]), min(1.0, max(2 * p[0], p[1]))]
    assert sorted(table["p_adjusted"].unique()) == pytest.approx(sorted(set(expected)))


def test_clusters_by_hand() -> None:
    frame = sample(4, 300)
    table = equal_scores(frame, "y", "s", by="g", weight="w", design="c")
    alone = equal_scores(frame, "y", "s", by="g", weight="w")
    s, y, w = (frame[name].to_numpy() for name in "syw")
    own = (frame["g"] == 1).to_list()
    steps = equal_steps(s.tolist(), y.tolist(), w.tolist(), (w * w).tolist(), own, 5)
    range_ = picked(steps, 1e-9)
    found, before = (each.filter(g=1).row(0, named=True) for each in (table, alone))
    values = _row_values(frame, own, steps)
    inside = frame["s"].is_between(range_.low, range_.high).to_numpy()
    effects: list[Any] = [1.0]
    in_block = np.any([(s >= step.low) & (s <= step.high) for step in steps], axis=0)
    share = np.bincount(frame["c"].to_numpy(), w * in_block)
    share = share / share.sum()
    s2, s3 = (share**2).sum(), (share**3).sum()
    factor = s2 / (s2 - 2 * s3 + s2**2)
    for kept, variance in (
        (np.ones(len(s)), range_.sd**2),
        (inside, sum(step.variance for step in range_.steps)),
    ):
        totals = np.bincount(frame["c"].to_numpy(), values * kept)
        effects.append(factor * ((totals - share * totals.sum()) ** 2).sum() / variance)
    assert values.sum() == pytest.approx(sum(step.difference for step in steps))
    x = (range_.size / range_.sd + range_.correction) / math.sqrt(max(effects))
    assert found["p_value"] == pytest.approx(range_tail(x))
    assert [found[n] for n in ("n_blocks", "gap")] == [before[n] for n in ("n_blocks", "gap")]


def _row_values(frame: pl.DataFrame, own: list[bool], steps: list[Step]) -> Any:
    """What each row adds to the sum of differences."""
    s, y, w = (frame[name].to_numpy() for name in "syw")
    mine, values = np.array(own), np.zeros(len(s))
    for step in steps:
        block = (s >= step.low) & (s <= step.high)
        sides = [w[block & side].sum() for side in (mine, ~mine)]
        mean = (w * (y - s))[block].sum() / w[block].sum()
        share = np.where(mine, sides[1], -sides[0]) / sum(sides)
        values = np.where(block, w * (y - s - mean) * share, values)
    return values


def test_nothing_to_compare() -> None:
    alone = equal_scores(TIED.with_columns(g=pl.lit("all")), "y", "s", by="g")
    assert alone.select("n_reference", "n_blocks", "share_compared").row(0) == (0, 0, 0)
    assert alone.select("mean_gap", "gap", "p_value").row(0) == (None, None, None)
    empty = equal_scores(TIED.clear(), "y", "s", by="g")
    assert empty.is_empty()


def test_equal_scores_refuse_references_and_designs_that_they_do_not_take() -> None:
    counts = wroc.from_counts(wroc.score_counts(TIED, "y", "s", by="g", bins=16))
    with pytest.raises(ValueError, match="`counts` must be by score for equal scores"):
        counts.calibration_test(attributes="g", reference="rest")
