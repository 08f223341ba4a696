"""Gaps within strata: against statsmodels' numbers, plain Python, and what they must not change."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import plain_picked
import plain_score
import polars as pl
import pytest
from plain_rates import Side, smallest
from polars.testing import assert_frame_equal
from scipy import optimize, stats
from sweeps import sweep
from wide_tables import gaps_by_group, wide_gaps

import polars_wroc as wroc

RATES = ("selection_rate", "tpr", "fpr", "ppv", "npv")
# Tables of four counts, selected and not, of one group and of the other.
TABLES = [((10, 20), (15, 60)), ((5, 5), (20, 40)), ((12, 8), (9, 21))]


def counted(tables: list[Any]) -> pl.DataFrame:
    rows = [
        (stratum, group, score, i % 2)
        for stratum, table in enumerate(tables)
        for group, counts in zip("az", table, strict=True)
        for score, count in zip((1, 0), counts, strict=True)
        for i in range(count)
    ]
    return pl.DataFrame(rows, ["k", "g", "s", "y"], orient="row")


def people(seed: int, n: int, strata: int = 4) -> pl.DataFrame:
    """Groups are spread unevenly over strata, whose scores and labels differ."""
    random = np.random.default_rng(seed)
    stratum = random.integers(0, strata, n)
    group = (random.random(n) < 0.2 + 0.6 * stratum / strata).astype(int) + (random.random(n) < 0.3)
    positive = random.random(n) < 0.2 + 0.5 * stratum / strata
    return pl.DataFrame(
        {
            "k": stratum,
            "g": np.array(list("abc"))[group],
            "y": positive.astype(int),
            "s": (positive * 1.2 - 0.3 * stratum + random.normal(size=n)).round(1),
            "w": random.lognormal(sigma=0.5, size=n),
        }
    )


def gaps(frame: Any, **options: Any) -> Any:
    options = {"by": "g", "within": "k", "weight": "w", "threshold": 0.5, **options}
    return wide_gaps(frame, "y", "s", **options)


def test_numbers_of_statsmodels() -> None:
    """`StratifiedTable` of the three tables, methods2.md 7: pooled risk ratio and difference."""
    table = gaps(counted(TABLES), weight=None, reference="z")
    row = table.filter(g="a")
    assert row["selection_rate_ratio"].item() == pytest.approx(1.734043, abs=5e-7)
    assert row["selection_rate_gap"].item() == pytest.approx(0.187755, abs=5e-7)
    assert row["within_weight_share"].item() == 1
    # Two groups: the rest of one is the other.
    rest = gaps(counted(TABLES), weight=None).filter(g="a")
    numbers = [name for name in row.columns if name.startswith("selection_rate_gap")]
    kept = [name for name in numbers if name.rpartition("_")[2] not in ("adjusted", "detectable")]
    assert_frame_equal(row.select(kept), rest.select(kept))


def wilson(p: float, size: float, z: float) -> tuple[float, float]:
    extra = z**2 / size
    root = np.sqrt(extra * p * (1 - p) + extra**2 / 4)
    ends = ((p + extra / 2 + sign * root) / (1 + extra) for sign in (-1, 1))
    low, high = ends
    return max(0.0, min(low, p)), min(1.0, max(high, p))


def standardised(frame: pl.DataFrame, group: str, reference: str, rate: str) -> Any:
    """Both average rates and their effective sizes, from the definition."""
    selected = pl.col("s") >= 0.5
    numerator, among = {
        "selection_rate": (selected, pl.lit(value=True)),
        "tpr": (selected, pl.col("y") == 1),
        "fpr": (selected, pl.col("y") == 0),
        "ppv": (pl.col("y") == 1, selected),
        "npv": (pl.col("y") == 0, ~selected),
    }[rate]
    there = pl.col("g") != group if reference == "rest" else pl.col("g") == reference
    strata = []
    for (_,), rows in frame.with_columns(d=numerator).filter(among).group_by("k"):
        sides = []
        for side in (rows.filter(pl.col("g") == group), rows.filter(there)):
            w, d = side["w"].to_numpy(), side["d"].to_numpy().astype(float)
            if len(w):
                sides.append((w.sum(), w @ d / w.sum(), (w**2).sum() / w.sum() ** 2))
        if len(sides) == 2:
            strata.append(sides)
    if not strata:
        return None
    omegas = np.array([a[0] * b[0] / (a[0] + b[0]) for a, b in strata])
    omegas /= omegas.sum()
    found = []
    for i in (0, 1):
        p, v, size = 0.0, 0.0, 0.0
        for omega, sides in zip(omegas, strata, strict=True):
            (_, own, s), (_, other, s_other) = sides[i], sides[1 - i]
            p += omega * own
            size += omega**2 * s
            if s > 0.999:
                v += omega**2 * other * (1 - other) / (1 - min(s_other, 0.95))
            else:
                v += omega**2 * s * own * (1 - own) / (1 - s)
        known = v > 0 and 1e-14 < p < 1 - 1e-14
        found.append((p, p * (1 - p) / v if known else 1 / size))
    return found


@pytest.mark.parametrize("weight", sweep([1e-165, 1e155]))
def test_no_limits_where_squares_of_weights_are_no_numbers(weight: float) -> None:
    frame = people(5, 80)
    found = gaps(frame.with_columns(w=pl.lit(weight)))
    values = [f"{rate}{part}" for rate in RATES for part in ("", "_reference", "_gap", "_ratio")]
    assert_frame_equal(found.select(values), gaps(frame, weight=None).select(values))
    ends = ("_low", "_high", "_p_value", "_p_adjusted")
    unknown = [f"{rate}_gap{end}" for rate in RATES for end in ends]
    unknown += [f"{rate}_ratio{end}" for rate in RATES for end in ends[:2]]
    assert set(found.select(unknown).null_count().row(0)) == {found.height}


def test_no_limits_where_those_of_one_stratum_are_unknown() -> None:
    # The squares of the last stratum are lost; their share in the variance is not known to be 0.
    frame = people(5, 80).with_columns(w=pl.when(pl.col("k") == 3).then(1e-165).otherwise(1.0))
    lost = pl.col("g").is_in(frame.filter(k=3, y=1)["g"].unique().implode())
    found = gaps(frame).select(
        lost, *(pl.col(f"tpr_gap{part}").is_null() for part in ("", "_low", "_p_value"))
    )
    assert sorted(found.unique().rows()) == [
        (False, False, False, False),
        (True, False, True, True),
    ]


def combined(one: Any, other: Any, z: float) -> tuple[float, float]:
    (p, n), (q, m) = one, other
    (low, high), (low_b, high_b) = wilson(p, n, z), wilson(q, m, z)
    return p - q - np.hypot(p - low, high_b - q), p - q + np.hypot(high - p, q - low_b)


def assert_verdict(row: Any, rate: str, one: Any, other: Any, error: float) -> None:
    """Check what is said of a gap, by a margin of 0.3 and one test at the level of ``error``."""
    gap = f"{rate}_gap"
    sides = [Side(1 / size, 1 / size, 1 / size) for _, size in (one, other)]
    expected = smallest(other[0], sides, stats.norm.isf(error / 2), other[0])
    if expected is None:
        assert row[f"{gap}_detectable"] is None
    else:
        assert row[f"{gap}_detectable"] == pytest.approx(expected, rel=1e-4)
    low, high = combined(one, other, stats.norm.isf(error))
    different = row[f"{gap}_p_adjusted"] <= 0.05
    alike = low > -0.3 and high < 0.3
    verdict = "equivalent" if alike else "different" if different else "inconclusive"
    assert row[f"{gap}_verdict"] == verdict


@pytest.mark.parametrize("reference", sweep(["rest", "b"], fast=1))
@pytest.mark.parametrize(("seed", "n"), sweep([(1, 400), (2, 40), (3, 25), (4, 2_000)], fast=3))
def test_rates_against_the_definition(reference: str, seed: int, n: int) -> None:
    frame = people(seed, n, strata=max(2, n // 12) if n < 100 else 5)
    table = gaps(frame, reference=reference, margin=0.3)
    tests = sum(table[f"{metric}_gap_p_value"].count() for metric in ("auc", *RATES))
    compared = 0
    for row in table.rows(named=True):
        for rate in RATES:
            both = standardised(frame, row["g"], reference, rate)
            found = [row[f"{rate}_gap{end}"] for end in ("", "_low", "_high", "_p_value")]
            if both is None or row["g"] == reference:
                assert found == [None] * 4
                continue
            one, other = both
            assert [row[rate], row[f"{rate}_reference"]] == pytest.approx([one[0], other[0]])
            limits = combined(one, other, stats.norm.ppf(0.975))
            assert found[:3] == pytest.approx([one[0] - other[0], *limits], abs=1e-9)
            if abs(found[0]) > 1e-9:
                end = 0 if found[0] > 0 else 1
                z = optimize.brentq(lambda z: combined(one, other, z)[end], 1e-9, 60)  # noqa: B023
                assert found[3] == pytest.approx(2 * stats.norm.sf(z), abs=1e-8)
            assert_verdict(row, rate, one, other, 0.05 / tests)
            if other[0] > 0 and min(one[0], other[0]) < 1:
                assert row[f"{rate}_ratio"] == pytest.approx(one[0] / other[0])
                equal = row[f"{rate}_ratio_low"] <= 1 <= row[f"{rate}_ratio_high"]
                assert equal == (limits[0] <= 0 <= limits[1])
            compared += 1
    assert compared >= 6


def auc_sides(frame: pl.DataFrame, group: str, reference: str) -> Any:
    """Both weighted means of AUCs over strata, as AUCs."""
    pairs: list[tuple[float, plain_score.Auc, plain_score.Auc]] = []
    for (_,), rows in frame.group_by("k"):
        aucs = {g: plain_score.auc_of(rows.filter(g=g)) for g in "abc"}
        own, others = aucs[group], [auc for g, auc in aucs.items() if auc and g != group]
        other = plain_score.mean_of(others) if reference == "rest" else aucs[reference]
        if own and other:
            pairs.append((own.pairs * other.pairs / (own.pairs + other.pairs), own, other))
    owns, others = (
        [auc._replace(pairs=weight) for weight, auc in side]
        for side in ([(w, own) for w, own, _ in pairs], [(w, other) for w, _, other in pairs])
    )
    return plain_score.mean_of(owns), plain_score.mean_of(others)


@pytest.mark.parametrize("reference", sweep(["rest", "b"]))
@pytest.mark.parametrize(("seed", "n"), sweep([(5, 300), (6, 60)]))
def test_aucs_against_the_definition(reference: str, seed: int, n: int) -> None:
    frame = people(seed, n)
    table = gaps(frame, reference=reference, threshold=None)
    crude = wide_gaps(frame, "y", "s", weight="w", by="g", reference=reference, min_rows=0)
    assert table["auc_gap_crude"].to_list() == pytest.approx(crude["auc_gap"].to_list())
    for row in table.rows(named=True):
        found = [row[f"auc_gap{end}"] for end in ("", "_low", "_high", "_p_value")]
        if row["g"] == reference:
            assert found == [None] * 4
            continue
        own, other = auc_sides(frame, row["g"], reference)
        assert [row["auc"], row["auc_reference"]] == pytest.approx([own.auc, other.auc])
        assert found == pytest.approx(plain_score.gap(own, other, 0.95), abs=1e-8)


def test_one_stratum_is_no_stratum() -> None:
    frame = people(7, 400).with_columns(k=pl.lit(1))
    for reference in ("rest", "best", "b"):
        plain = wide_gaps(frame, "y", "s", weight="w", by="g", reference=reference, min_rows=0)
        within = gaps(frame, reference=reference, threshold=None)
        same = [name for name in plain.columns if not name.endswith("_verdict")]
        assert_frame_equal(within.select(same), plain.select(same), rel_tol=1e-8)
        # Nothing is explained by one stratum.
        assert within["auc_gap_explained"].drop_nulls().abs().sum() == pytest.approx(0, abs=1e-9)


def test_strata_explain_the_whole_gap() -> None:
    """Everybody in a stratum is treated alike, but the groups live in different ones."""
    frame = counted([((80, 20), (8, 2)), ((2, 8), (20, 80))])
    row = gaps(frame, weight=None).filter(g="a")
    assert row["selection_rate_gap_crude"].item() == pytest.approx(82 / 110 - 28 / 110)
    assert row["selection_rate_gap"].item() == pytest.approx(0, abs=1e-12)
    assert row["selection_rate_gap_explained"].item() == pytest.approx(1)
    assert row["selection_rate_gap_p_value"].item() == pytest.approx(1)


def test_strata_without_a_group_drop_out() -> None:
    frame = pl.concat(
        [counted(TABLES), counted([((30, 30), (0, 0))]).with_columns(k=pl.lit(9, pl.Int64))]
    )
    found, without = (gaps(each, weight=None) for each in (frame, counted(TABLES)))
    share = found["within_weight_share"].to_list()
    assert share == pytest.approx([60 / 120, 1])
    columns = ["selection_rate", "selection_rate_gap", "selection_rate_gap_p_value", "auc_gap"]
    assert_frame_equal(found.select(columns), without.select(columns))


def test_groups_that_never_meet_are_not_compared() -> None:
    frame = people(8, 200).with_columns(k=pl.when(pl.col("g") == "a").then(99).otherwise("k"))
    row = gaps(frame).row(0, named=True)
    assert row["within_weight_share"] == 0
    for metric in ("auc", *RATES):
        assert row[metric] is None
        for part in ("", "_low", "_high", "_p_value", "_verdict", "_detectable"):
            assert row[f"{metric}_gap{part}"] is None
        assert row[f"{metric}_gap_crude"] is not None


def test_rates_that_vary_between_strata_alone() -> None:
    """Strata where all are treated alike leave no variance: the sizes are those of weights."""
    frame = counted([((12, 0), (15, 0)), ((0, 14), (0, 12)), ((16, 0), (0, 13))])
    row = gaps(frame, weight=None, reference="z").filter(g="a").row(0, named=True)
    one, other = standardised(frame.with_columns(w=1.0), "a", "z", "selection_rate")
    assert min(one[0], other[0]) > 0.1
    found = [row[f"selection_rate_gap{end}"] for end in ("", "_low", "_high")]
    limits = combined(one, other, stats.norm.ppf(0.975))
    assert found == pytest.approx([one[0] - other[0], *limits], abs=1e-9)


@pytest.mark.parametrize("outcome", [0, 1])
def test_no_ratio_without_outcomes_or_with_nothing_else(outcome: int) -> None:
    frame = counted(TABLES).with_columns(s=pl.lit(outcome))
    table = gaps(frame, weight=None)
    assert table["selection_rate_gap"].to_list() == [0, 0]
    assert table["selection_rate_ratio"].to_list() == [None, None]
    assert (table["selection_rate_gap_low"] < 0).all()


def test_best_is_the_best_without_strata() -> None:
    frame = people(9, 900)
    crude = wide_gaps(frame, "y", "s", weight="w", by="g", reference="best", min_rows=0)
    found = gaps(frame, reference="best")
    null = found["auc_gap"].is_null().to_list()
    assert null == crude["auc_gap"].is_null().to_list()
    best = crude["g"][null.index(True)]
    named = gaps(frame, reference=best)
    of_picked = pl.selectors.matches("_(low|high|p_value|p_adjusted|detectable|verdict|explained)$")
    assert_frame_equal(found.drop(of_picked), named.drop(of_picked))
    for metric in ("auc", *RATES):
        p_values = (table[f"{metric}_gap_p_value"] for table in (found, named))
        for picked, alone in zip(*p_values, strict=True):
            assert (picked is None) == (alone is None)
            if alone is not None:
                expected = plain_picked.p_value(alone, crude.height)
                assert picked == pytest.approx(expected, rel=1e-7)


def test_several_columns_and_null_are_strata() -> None:
    frame = people(11, 300).with_columns(
        k=pl.when(pl.col("k") > 0).then("k"), h=pl.int_range(pl.len()) % 2
    )
    both = frame.with_columns(k=pl.format("{}-{}", pl.col("k").fill_null(-1), "h"))
    found = gaps(frame, within=["k", "h"])
    assert_frame_equal(found, gaps(both), rel_tol=1e-9)


def test_models_have_strata_of_their_own() -> None:
    frame = people(12, 300).with_columns(t=-pl.col("s"))
    options: Any = {"by": "g", "within": "k", "weight": "w", "adjust": "none"}
    table = wide_gaps(frame, "y", ["s", "t"], **options, min_rows=0)
    for model in ("s", "t"):
        alone = wide_gaps(frame, "y", model, **options, min_rows=0)
        assert_frame_equal(table.filter(model=model).drop("model"), alone, rel_tol=1e-9)


def test_counts_and_both_engines() -> None:
    frame = people(13, 300)
    expected = gaps(frame)
    counts = wroc.score_counts(frame, "y", "s", weight="w", by=["g", "k"])
    table = wroc.from_counts(counts).group_gaps(
        attributes="g", within="k", threshold=0.5, min_rows=0
    )
    found = gaps_by_group(table, frame, "g")
    assert_frame_equal(found, expected, rel_tol=1e-8)
    plan = gaps(frame.lazy())
    engines: tuple[Literal["in-memory", "streaming"], ...] = ("in-memory", "streaming")
    for engine in engines:
        assert_frame_equal(plan.collect(engine=engine), expected, rel_tol=1e-8)


@pytest.mark.parametrize("reference", ["overall"])
def test_references_without_a_meaning(reference: str) -> None:
    message = rf"^`reference` must be 'rest', 'best' or a segment .* found '{reference}'$"
    with pytest.raises(ValueError, match=message):
        gaps(people(14, 50), reference=reference)


def test_strata_that_are_no_other_columns_are_refused() -> None:
    frame = people(15, 50)
    with pytest.raises(
        ValueError, match=r"^`within` must not name a column of `attributes`; found 'g'"
    ):
        gaps(frame, within=["k", "g"])
    with pytest.raises(TypeError, match=r"^`within` must be one or several column names"):
        gaps(frame, within=[])
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match="nowhere"):
        gaps(frame, within="nowhere")
