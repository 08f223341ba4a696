"""The worst segments, compared with worked numbers, SciPy, statsmodels and plain Python."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations, product
from typing import Any

import numpy as np
import polars as pl
import polars.selectors as cs
import pytest
from polars.testing import assert_frame_equal
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportions_ztest

import polars_wroc as wroc

CROSSED = " \N{MULTIPLICATION SIGN} "
# Rows and selected rows of each cell, and the weight of its rows.
CELLS = {"f, o": (40, 20, 1.0), "f, y": (60, 15, 2.0), "m, o": (50, 27, 1.5), "m, y": (50, 26, 1.0)}
PEOPLE = pl.DataFrame(
    {"sex": name[0], "age": name[3:], "hired": number < hired, "w": weight}
    for name, (rows, hired, weight) in CELLS.items()
    for number in range(rows)
)


HIRED: dict[str, Any] = {
    "attributes": ["sex", "age"],
    "selected": "hired",
    "metric": "selection_rate",
    "favorable": "selected",
}


# At this level nearly all segments are in the table whose adjusted p-value is below 1.
LOOSE: dict[str, Any] = {"level": 0.001, "redundant": True, "top": 100_000}

# Worked numbers of each segment: rate, gap, p-value, and limits of the gap at 95% that exclude 0.
WORKED: dict[Any, Any] = {
    ("f, y", None): (0.25, -0.2714285714, 0.0003651046, -0.4430235362, -0.0649765169),
    ("f, y", "w"): (0.25, -0.2742424242, 0.0002752880, -0.4472966271, -0.0664145264),
    ("f", None): (0.35, -0.18, 0.0109365102),
    ("f", "w"): (0.3125, -0.2195, 0.0022198590, -0.4005882910, -0.0215185154),
    ("m, o", None): (0.54, 0.1333333333, 0.1011409998),
}


@pytest.mark.parametrize(("segment", "weight"), [*WORKED])
def test_the_worked_numbers_of_each_segment(segment: str, weight: str | None) -> None:
    value, gap, p_value, *limits = WORKED[segment, weight]
    options = HIRED | LOOSE | {"favorable": "neither", "weight": weight}
    row = wroc.worst_segments(PEOPLE, **options).row(
        by_predicate=pl.col("segment") == segment, named=True
    )
    assert row["n_examined"] == 8
    found = [row[name] for name in ("value", "gap", "p_value")]
    np.testing.assert_allclose(found, [value, gap, p_value], atol=1e-10)
    table = wroc.worst_segments(PEOPLE, **options | {"level": 0.95}).filter(segment=segment)
    assert table.height == bool(limits)
    for limited in table.select("gap_low", "gap_high").rows():
        np.testing.assert_allclose(limited, limits, atol=1e-10)


def test_exact_tails_are_those_of_scipy() -> None:
    law = stats.hypergeom(200, 88, 60)
    half = law.cdf(15) - law.pmf(15) / 2
    table = wroc.worst_segments(PEOPLE, **HIRED)
    assert table["p_value"][1] == pytest.approx(2 * half, rel=1e-10)
    assert table["p_adjusted"][1] == pytest.approx(16 * half, rel=1e-10)


@pytest.mark.parametrize(
    ("segment", "rows", "hired", "fisher"),
    [("f, y", 60, 15, 0.0005635046), ("f", 100, 35, 0.0152291641)],
)
def test_mid_p_values_are_those_of_fisher_less_half_of_the_observed_table(
    segment: str, rows: int, hired: int, fisher: float
) -> None:
    (found,) = wroc.worst_segments(PEOPLE, **HIRED | LOOSE).filter(segment=segment)["p_value"]
    table = [[hired, rows - hired], [88 - hired, 112 - rows + hired]]
    assert stats.fisher_exact(table).pvalue == pytest.approx(fisher, abs=6e-11)
    side = stats.fisher_exact(table, alternative="less").pvalue
    observed = stats.hypergeom(200, 88, rows).pmf(hired)
    assert found == pytest.approx(2 * (side - observed / 2), rel=1e-9)


def test_only_one_segment_is_surely_worse() -> None:
    table = wroc.worst_segments(PEOPLE, **HIRED)
    assert table.select("attribute", "segment", "depth", "n_examined").rows() == [
        ("overall", "overall", 0, 8),
        (f"sex{CROSSED}age", "f, y", 2, 8),
    ]
    assert table["value"].to_list() == pytest.approx([88 / 200, 0.25])
    assert table["reference_value"][1] == pytest.approx(73 / 140)
    # The lowest divergence of DivExplorer 0.2.6, from the rate of all rows.
    assert table["value"][1] - table["value"][0] == pytest.approx(-0.19)


def test_what_one_segment_explains_is_left_out() -> None:
    # f without its young is like m; the young are worse than the others because of it.
    table = wroc.worst_segments(PEOPLE, **HIRED, level=0.7, redundant=True)
    explained = dict(table.select("segment", "explained_by").rows())
    assert explained == {
        "overall": None,
        "f, y": None,
        "f": f"sex{CROSSED}age = f, y",
        "y": f"sex{CROSSED}age = f, y",
    }
    # The top slices of sliceline 0.3.0, at alpha 1 and 0.95, in the same order.
    assert [*explained][1:] == ["f, y", "f", "y"]
    kept = wroc.worst_segments(PEOPLE, **HIRED, level=0.7)
    assert kept["segment"].to_list() == ["overall", "f, y"]
    # The two tests behind the worked example.
    within, _ = proportions_ztest([15, 20], [60, 40])
    without, _ = proportions_ztest([20, 53], [40, 100])
    assert within == pytest.approx(-2.5677629551)
    assert 2 * stats.norm.sf(abs(within)) == pytest.approx(0.0102357124)
    assert proportions_ztest([15, 26], [60, 50])[1] == pytest.approx(0.0035442279)
    assert 2 * stats.norm.sf(abs(without)) == pytest.approx(0.7482, abs=1e-4)


ROWS = 900
MEANS = ("brier_score", "log_loss", "mean_calibration_error")


def people(seed: int) -> pl.DataFrame:
    """Make rows in which the crossing of two attributes is worse, with missing values."""
    rng = np.random.default_rng(seed)
    table = pl.DataFrame(
        {
            "a": pl.Series(rng.choice(["x", "y", "z", "-"], ROWS, p=[0.4, 0.3, 0.2, 0.1]).tolist()),
            "b": rng.choice([1, 2], ROWS),
            "c": rng.choice([True, False], ROWS),
            "y": rng.choice([0, 1], ROWS),
            "w": rng.lognormal(0, 0.7, ROWS),
            "n": rng.integers(0, 4, ROWS),
            "u": rng.integers(0, 60, ROWS),
            "h": pl.Series(rng.choice(["n", "s", "-"], ROWS).tolist()),
        }
    ).with_columns(pl.col("a", "h").replace("-", None))
    bad = ((pl.col("a") == "x") & (pl.col("b") == 2)).fill_null(value=False)
    score = pl.Series("s", rng.beta(3, 3, ROWS))
    return table.with_columns(s=(score - 0.3 * bad.cast(pl.Float64)).clip(0.02, 0.98))


def unequal(seed: int) -> pl.DataFrame:
    """Make rows in which scores also tell less of labels where c is false, and of those of y."""
    rng = np.random.default_rng(seed)
    noise = pl.Series(rng.normal(0, 0.15, ROWS)) + pl.when(a="y").then(0.15).otherwise(0.0)
    told = (pl.col("s") + noise > 0.45).cast(pl.Int64)
    return people(seed).with_columns(y=pl.when("c").then(told).otherwise("y"))


def brute(
    table: pl.DataFrame, depth: int, least: int, base: str
) -> dict[tuple[str, str | None], Any]:
    """Find the rows of the examined segments, by looking at each of them."""
    rows = table.to_dicts()
    sizes: dict[frozenset[Any], int] = {frozenset(): sum(row[base] for row in rows)}
    whole, found = sizes[frozenset()], {}
    for number in range(1, depth + 1):
        for names in combinations("abc", number):
            for values in product(*({row[name] for row in rows} for name in names)):
                pairs = frozenset(zip(names, values, strict=True))
                inside = [all(row[name] == value for name, value in pairs) for row in rows]
                size = sum(row[base] for row, held in zip(rows, inside, strict=True) if held)
                sizes[pairs] = size
                parents = [sizes[pairs - {pair}] for pair in pairs]
                if size >= least and whole - size >= least and size not in parents:
                    texts = ["(missing)" if v is None else str(v).lower() for v in values]
                    text = None if values == (None,) else ", ".join(texts)
                    found[CROSSED.join(names), text] = np.array(inside)
    return found


def search(
    table: pl.DataFrame, metric: str, weight: Any = None, design: Any = None
) -> dict[tuple[str, str | None], dict[str, Any]]:
    """Return the rows of a search that finds as much as it can, by segment."""
    decisions = {} if metric in MEANS else {"threshold": 0.5, "favorable": "neither"}
    options: dict[str, Any] = LOOSE | decisions | {"weight": weight, "design": design}
    _, *rows = wroc.worst_segments(
        table, "y", "s", attributes=[*"abc"], metric=metric, **options
    ).rows(named=True)
    return {(row["attribute"], row["segment"]): row for row in rows}


def assert_found(
    rows: Mapping[tuple[str, str | None], Any], p_values: Mapping[tuple[str, str | None], float]
) -> None:
    """Compare what a search found with the p-values of all segments that it should examine."""
    alpha = 1 - LOOSE["level"]
    _, adjusted, *_ = multipletests([*p_values.values()], method="holm")
    by_name = dict(zip(p_values, adjusted, strict=True))
    assert {row["n_examined"] for row in rows.values()} == {len(p_values)}
    # Limits for all segments may include 0 where a p-value is close to the level.
    assert rows.keys() <= {name for name, each in by_name.items() if each <= alpha}
    assert rows.keys() >= {name for name, each in p_values.items() if each * len(p_values) < 0.8}
    assert len(rows) > 2
    for name, row in rows.items():
        assert row["p_value"] == pytest.approx(p_values[name], rel=1e-6, abs=1e-10)
        assert row["p_adjusted"] == pytest.approx(by_name[name], rel=1e-6, abs=1e-10)


def skewed(z: float, skewness: float, least: float) -> tuple[float, float]:
    """Tails by SciPy; with next to no skewness the normal ones."""
    skewness, least = (each if abs(each) >= 1e-3 else 0.0 for each in (skewness, least))
    return (
        stats.pearson3.sf(z, skewness if skewness >= 0 else least),
        stats.pearson3.sf(-z, -skewness if skewness < 0 else -least),
    )


def arrays(table: pl.DataFrame, metric: str) -> tuple[Any, Any]:
    """Return the base and the values of a mean in it."""
    y, s = table["y"].to_numpy(), table["s"].to_numpy()
    d = s >= 0.5
    return {
        "tpr": (y == 1, d * 1.0),
        "fpr": (y == 0, d * 1.0),
        "ppv": (d, y * 1.0),
        "npv": (~d, 1.0 - y),
        "selection_rate": (np.ones_like(d), d * 1.0),
        "accuracy": (np.ones_like(d), (d == y) * 1.0),
        "brier_score": (np.ones_like(d), (s - y) ** 2),
        "log_loss": (np.ones_like(d), -np.log(np.where(y == 1, s, 1 - s))),
    }[metric]


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize(
    "metric", ["tpr", "fpr", "ppv", "npv", "selection_rate", "accuracy", "brier_score", "log_loss"]
)
def test_all_tests_are_those_of_a_search_by_hand(metric: str, weight: str | None) -> None:
    table = unequal(4)
    base, x = arrays(table, metric)
    w = base * (1.0 if weight is None else table["w"].to_numpy())
    theta = (w * x).sum() / w.sum()
    second, third = ((w * (x - theta) ** power).sum() / w.sum() for power in (2, 3))
    segments = brute(table.with_columns(base=pl.Series(base)), 3, 30, "base")
    p_values = {}
    for name, inside in segments.items():
        share = w[inside].sum() / w.sum()
        factor = np.where(inside, 1 - share, -share)
        variance = second * ((factor * w) ** 2).sum()
        skewness = third * ((factor * w) ** 3).sum() / variance**1.5
        e = w * (x - theta)
        if metric in MEANS:
            of_errors = (1 - 2 * share) * (e[inside] ** 2).sum() + share**2 * (e**2).sum()
            variance = max(variance, of_errors)
        z = e[inside].sum() / np.sqrt(variance)
        kish = w[inside].sum() ** 2 / (w[inside] ** 2).sum()
        least = min(abs(skewness), abs(third) / second**1.5 / np.sqrt(kish))
        upper, lower = skewed(z, skewness, np.sign(skewness) * least)
        if metric not in MEANS and weight is None and abs(z) > 2:
            both, rows = (w * x)[inside].sum(), w[inside].sum()
            law = stats.hypergeom(int(w.sum()), round((w * x).sum()), int(rows))
            upper, lower = law.sf(both) + law.pmf(both) / 2, law.cdf(both) - law.pmf(both) / 2
        tail = upper if metric in MEANS else min(upper, lower)
        p_values[name] = min(1.0, 2 * tail)
    assert_found(search(table, metric, weight), p_values)


def test_calibration_is_compared_with_its_target() -> None:
    # Some segments with enough rows have few events.
    is_rare = pl.col("n") == 0
    table = people(5).with_columns(y=pl.col("y") * is_rare, s=0.2 * pl.col("s"))
    rows = search(table, "mean_calibration_error", "w")
    y, s, w = (table[name].to_numpy() for name in "ysw")
    segments = brute(table.with_columns(base=pl.lit(value=True)), 3, 30, "base")
    number = next(iter(rows.values()))["n_examined"]
    p_values = {}
    for name, inside in segments.items():
        of, p = w[inside], s[inside]
        mean = (of * p).sum() / of.sum()
        enough = of.sum() ** 2 / (of**2).sum() * min(mean, 1 - mean) >= 5
        if not enough:
            continue
        variance = (of**2 * p * (1 - p)).sum()
        z = (of * (p - y[inside])).sum() / np.sqrt(variance)
        skewness = -(of**3 * p * (1 - p) * (1 - 2 * p)).sum() / variance**1.5
        both = skewed(z, skewness, skewness / 2)
        p_values[name] = min(1.0, 2 * min(both))
        if name not in rows:
            continue
        alpha = (1 - LOOSE["level"]) / number
        upper = skewness if skewness >= 0 else skewness / 2
        upper = upper if abs(upper) >= 1e-3 else 0.0
        quantile = stats.pearson3.isf(alpha / 2, upper)
        gap = (of * (p - y[inside])).sum() / of.sum()
        assert rows[name]["gap"] == pytest.approx(gap)
        low = gap - np.sqrt(variance) / of.sum() * quantile
        assert rows[name]["gap_low"] == pytest.approx(low)
    assert_found(rows, p_values)


# Of twelve clusters without strata some are small, and missing in some segments.
@pytest.mark.parametrize(
    ("strata", "cluster"),
    [(None, pl.col("u")), (None, pl.col("u") ** 2 // 300), ("h", pl.col("u"))],
)
def test_clusters_have_the_variance_of_their_totals(strata: str | None, cluster: pl.Expr) -> None:
    table = people(6).with_columns(u=cluster)
    design = wroc.Survey("u", strata=strata)
    w, d = table["w"].to_numpy(), (table["s"] >= 0.5).to_numpy() * 1.0
    mean = (w * d).sum() / w.sum()
    second, third = ((w * (d - mean) ** power).sum() / w.sum() for power in (2, 3))
    e = w * (d - mean)
    units = table.select("u", *([strata] if strata else [])).rows()
    p_values = {}
    for name, inside in brute(table.with_columns(base=pl.lit(value=True)), 3, 30, "base").items():
        share = w[inside].sum() / w.sum()
        totals: dict[Any, float] = {}
        for unit, error, held in zip(units, e, inside, strict=True):
            totals[unit] = totals.get(unit, 0.0) + error * (held - share)
        groups: dict[Any, list[float]] = {}
        for unit, total in totals.items():
            groups.setdefault(unit[1:], []).append(total)
        factor = np.where(inside, 1 - share, -share) * w
        plain = second * (factor**2).sum()
        variance = max(plain, sum(len(g) * np.var(g, ddof=1) for g in groups.values()))
        held = {unit for unit, inner in zip(units, inside, strict=True) if inner}
        df = len(held) - len({unit[1:] for unit in held})
        if df < 9:
            continue
        skewness = third * (factor**3).sum() / plain**1.5
        kish = w[inside].sum() ** 2 / (w[inside] ** 2).sum()
        least = np.sign(skewness) * min(abs(skewness), abs(third) / second**1.5 / np.sqrt(kish))
        both = skewed(e[inside].sum() / np.sqrt(variance), skewness, least)
        p_values[name] = 2 * stats.t.sf(stats.norm.isf(min(*both, 0.5)), df)
    assert_found(search(table, "selection_rate", "w", design), p_values)


SEARCH: dict[str, Any] = {"attributes": ["a", "b", "c"], "threshold": 0.5, "favorable": "selected"}


@pytest.mark.parametrize("metric", ["tpr", "selection_rate", "brier_score"])
def test_counts_merged_days_and_lazy_frames_give_the_table_of_the_rows(metric: str) -> None:
    table, given = people(7), SEARCH if metric != "brier_score" else {"attributes": [*"abc"]}
    options: dict[str, Any] = {**given, "metric": metric, "redundant": True, "level": 0.7}
    expected = wroc.worst_segments(table, "y", "s", weight="w", **options)
    assert expected.height > 1 or metric == "brier_score"
    lazy = table.lazy().wroc.worst_segments("y", "s", weight="w", **options)  # type: ignore[attr-defined]
    assert_frame_equal(lazy.collect(), expected, rel_tol=1e-9)
    days = [
        wroc.score_counts(day, "y", "s", weight="w", by=["a", "b", "c"])
        for day in (table.head(300), table.tail(-300))
    ]
    counts = wroc.from_counts(wroc.merge_counts(days)).worst_segments(**options)
    assert_frame_equal(counts.drop("model"), expected.drop("model"), rel_tol=1e-9)


def test_weights_of_one_size_and_frequencies_are_rows() -> None:
    table = people(8)
    repeated = table.select(pl.all().repeat_by("n")).explode(cs.all()).drop("n")
    options: dict[str, Any] = {**SEARCH, "redundant": True, "level": 0.7}
    expected = wroc.worst_segments(repeated, "y", "s", **options)
    assert expected.height > 1
    counted = wroc.worst_segments(table, "y", "s", weight=wroc.frequency("n"), **options)
    assert_frame_equal(counted, expected, rel_tol=1e-9)
    equal = wroc.worst_segments(repeated, "y", "s", weight=pl.lit(0.1), **options)
    assert_frame_equal(equal, expected, rel_tol=1e-9)


@pytest.mark.parametrize("label", [0, 1])
def test_without_an_outcome_or_with_nothing_else_nothing_is_examined(label: int) -> None:
    table = PEOPLE.with_columns(hired=pl.lit(label == 1))
    found = wroc.worst_segments(table, **HIRED)
    assert found.select("segment", "value", "n_examined").rows() == [("overall", label, 0)]
    nothing = wroc.worst_segments(PEOPLE.clear(), **HIRED)
    assert nothing.select("segment", "value", "n_examined").rows() == [("overall", None, 0)]


def test_an_attribute_with_one_value_has_no_segments() -> None:
    table = wroc.worst_segments(PEOPLE.with_columns(age=pl.lit("o")), **HIRED)
    assert table["n_examined"][0] == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "trp"}, "`metric` must be one of .*did you mean 'tpr'"),
        ({"metric": "tpr"}, "`label` must be given for tpr; found None"),
        ({"selected": None}, "`metric` selection_rate needs decisions: pass a `threshold`"),
        ({"metric": "brier_score"}, "`metric` must be a rate with decisions"),
        ({"favorable": None}, "`favorable` must say which decision"),
        ({"design": wroc.ReplicateWeights(["w", "w"], "brr")}, "`design` must be clusters or"),
        ({"design": wroc.Survey(strata=pl.int_range(pl.len()))}, "two or more sampling units"),
    ],
)
def test_arguments_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        wroc.worst_segments(PEOPLE, **{**HIRED, **options})


def test_several_scores_are_refused() -> None:
    with pytest.raises(ValueError, match="`score` must be one column; found several"):
        wroc.worst_segments(people(1), "y", ["s", "w"], **SEARCH)


def test_too_many_segments_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polars_wroc.groups.segment_search._MOST_SEGMENTS", 7)
    with pytest.raises(ValueError, match=r"`depth` must leave .* found more with 3: take 2"):
        wroc.worst_segments(PEOPLE, **HIRED)


def test_labels_of_both_kinds_are_refused_across_segments() -> None:
    table = PEOPLE.with_columns(
        y=pl.when(pl.col("sex") == "f").then(0).otherwise(pl.lit(-1)), s=pl.lit(0.5)
    )
    options: dict[str, Any] = {"attributes": ["sex", "age"], "metric": "brier_score"}
    with pytest.raises(ValueError, match="both 0 and -1"):
        wroc.worst_segments(table, "y", "s", **options)


def test_an_attribute_whose_values_are_rare_adds_no_segment() -> None:
    table = people(3).with_row_index("id")
    alone, both = (
        wroc.worst_segments(table, "y", "s", **{**SEARCH, "attributes": attributes})
        for attributes in (["a"], ["a", "id"])
    )
    assert_frame_equal(alone, both)


def test_a_rule_chooses_the_threshold_of_all_rows_and_bins_must_not_be_cut() -> None:
    table, rule = people(7), wroc.rules.max_selection_rate(0.4)
    chosen = wroc.threshold_metrics(table, "y", "s", threshold=rule, per_group=True, level=None)[
        "threshold"
    ].item()
    options: dict[str, Any] = {**SEARCH, "redundant": True, "level": 0.7}
    expected = wroc.worst_segments(table, "y", "s", **{**options, "threshold": chosen})
    by_rule = wroc.worst_segments(table, "y", "s", **{**options, "threshold": rule})
    assert_frame_equal(by_rule, expected)
    binned = wroc.from_counts(wroc.score_counts(table, "y", "s", by=[*"abc"], bins=64))
    with pytest.raises(ValueError, match="inside a bin"):
        binned.worst_segments(**{**SEARCH, "threshold": 0.503})


def test_segments_are_counted_before_the_top_of_them() -> None:
    random = np.random.default_rng(4)
    group, score = random.choice([*"abcdef"], 12_000), random.random(12_000)
    is_noise = np.isin(group, [*"abc"])
    positive = random.random(12_000) < np.where(is_noise, 0.5, score)
    frame = pl.DataFrame({"g": group, "y": positive, "s": score})
    tables = [
        wroc.worst_segments(frame, "y", "s", attributes="g", metric="brier_score", top=top)
        for top in (1, 10)
    ]
    assert [table["n_worse"][0] for table in tables] == [3, 3]
    assert [table.height - 1 for table in tables] == [1, 3]
