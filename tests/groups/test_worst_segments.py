"""The worst segments, compared with worked numbers, SciPy, statsmodels and plain Python."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import polars as pl
import polars.selectors as cs
import pytest
from polars.testing import assert_frame_equal
from scipy import stats
from statsmodels.stats.proportion import proportions_ztest

import polars_wroc as wroc
from polars_wroc.groups.categories import CROSSED
from polars_wroc.groups.crossed_cells import sum_crossed_cells
from polars_wroc.groups.segment_search import SearchRules, SegmentSearch
from polars_wroc.groups.worst_segments import SEARCHED
from polars_wroc.metrics.segments import Decisions
from polars_wroc.rows import read_columns
from polars_wroc.stats.skewed_sums import exact_tail, lower_tail, upper_tail

# Rows and selected rows of each cell, and the weight of its rows.
CELLS = {"f, o": (40, 20, 1.0), "f, y": (60, 15, 2.0), "m, o": (50, 27, 1.5), "m, y": (50, 26, 1.0)}
PEOPLE = pl.DataFrame(
    {"sex": name[0], "age": name[3:], "hired": number < hired, "w": weight}
    for name, (rows, hired, weight) in CELLS.items()
    for number in range(rows)
)


def both_tails(*parts: Any) -> tuple[Any, Any]:
    """Return both probabilities."""
    return upper_tail(*parts), lower_tail(*parts)


HIRED: dict[str, Any] = {
    "attributes": ["sex", "age"],
    "selected": "hired",
    "metric": "selection_rate",
    "favorable": "selected",
}


def search(
    table: pl.DataFrame | pl.LazyFrame,
    metric: str,
    decisions: Decisions,
    attributes: list[str],
    **columns: Any,
) -> SegmentSearch:
    """Search rows for segments with higher values."""
    read = read_columns(table, by=attributes, argument="attributes", **columns)
    rows = read.rows(read.plan.collect())
    model, precision = read.models[0], 2.0**-52
    cells = sum_crossed_cells(rows, read.keys, model, SEARCHED[metric], decisions, precision)
    rules = SearchRules(SEARCHED[metric], "higher", attributes, 3, 30, 20, 0.95, redundant=False)
    return SegmentSearch(cells, rules, rows.sample)


def examine(weight: str | None) -> SegmentSearch:
    """Examine all segments of the worked example."""
    score = pl.col("hired").cast(pl.Float64)
    columns = {"label": None, "score": score, "weight": weight, "selected": "hired"}
    decisions = Decisions(recorded=True)
    return search(PEOPLE, "selection_rate", decisions, ["sex", "age"], **columns)


# Worked numbers of each segment: rate, gap, z, skewness, p-value, limits of the gap.
WORKED = {
    ("f, y", None): (
        *(0.25, -0.2714285714, -3.5437237105, 0.0149209419, 0.0003651046),
        *(-0.4430235362, -0.0649765169),
    ),
    ("f, y", "w"): (
        *(0.25, -0.2742424242, -3.5930715874, 0.0218353516, 0.0002752880),
        *(-0.4472966271, -0.0664145264),
    ),
    ("f", None): (0.35, -0.18, -2.5641129703, 0.0, 0.0109365102, -0.3595009055, 0.0125292496),
    ("f", "w"): (
        *(0.3125, -0.2195, -3.0566428866, 0.0017805620, 0.0022198590),
        *(-0.4005882910, -0.0215185154),
    ),
    ("m, o", None): (
        *(0.54, 0.1333333333, 1.6448792374, 0.0197385508, 0.1011409998),
        *(-0.0878672370, 0.3442330407),
    ),
}


@pytest.mark.parametrize(("segment", "weight"), [*WORKED])
def test_the_worked_numbers_of_each_segment(segment: str, weight: str | None) -> None:
    found = examine(weight)
    assert found.is_examined.sum() == 8
    names = [found.name(number)[1] for number in range(found.is_examined.size)]
    number = names.index(segment)
    tests, own = found.all.tests, found.all.own
    limits = found.limits(np.array([number]))
    numbers = [
        own.first[number] / own.weight[number],
        limits["gap"][0],
        tests.z[number],
        tests.skewness[number],
        found.p_values()[np.flatnonzero(found.is_examined).tolist().index(number)],
        limits["gap_low"][0],
        limits["gap_high"][0],
    ]
    np.testing.assert_allclose(numbers, WORKED[segment, weight], atol=1e-10)


def test_the_worked_p_values_of_the_skewed_distribution() -> None:
    found = examine(None)
    names = [found.name(number)[1] for number in range(found.is_examined.size)]
    for segment, p_value in {"f, y": 0.0003529802, "f": 0.0103439871}.items():
        number = names.index(segment)
        tests = found.all.tests
        both = both_tails(*(each[[number]] for each in (tests.z, tests.skewness, tests.least)))
        assert 2 * min(both)[0] == pytest.approx(p_value, abs=1e-10)


def test_z_is_that_of_statsmodels_and_group_gaps() -> None:
    found = examine(None)
    z, _ = proportions_ztest([35, 53], [100, 100])
    names = [found.name(number)[1] for number in range(found.is_examined.size)]
    assert found.all.tests.z[names.index("f")] == pytest.approx(z, rel=1e-12)
    gaps = wroc.group_gaps(
        PEOPLE, "hired", attributes="sex", selected="hired", metrics=["selection_rate"]
    )
    assert 2 * stats.norm.sf(abs(z)) == pytest.approx(gaps["p_value"][0], rel=1e-10)


def test_exact_tails_are_those_of_scipy() -> None:
    law = stats.hypergeom(200, 88, 60)
    half = law.cdf(15) - law.pmf(15) / 2
    table = wroc.worst_segments(PEOPLE, **HIRED)
    assert table["p_value"][1] == pytest.approx(2 * half, rel=1e-10)
    assert table["p_adjusted"][1] == pytest.approx(16 * half, rel=1e-10)
    both = np.arange(20.0, 40.0)
    sizes = (np.full_like(both, each) for each in (60, 88, 200))
    expected = law.sf(both) + law.pmf(both) / 2
    np.testing.assert_allclose(exact_tail(both, *sizes), expected, rtol=1e-10)


@pytest.mark.parametrize(
    ("segment", "mid_p", "fisher"),
    [
        ("f, y", 0.0003651046, 0.0005635046),
        ("f", 0.0109365102, 0.0152291641),
        ("m, o", 0.1051429393, 0.1039558871),
    ],
)
def test_mid_p_values_are_those_of_fisher_less_half_of_the_observed_table(
    segment: str, mid_p: float, fisher: float
) -> None:
    found = examine(None)
    names = [found.name(number)[1] for number in range(found.is_examined.size)]
    own = found.all.own
    chosen, rows = (each[names.index(segment)] for each in (own.first, own.n))
    # The smaller tail, of selected or of rejected rows.
    tails = [
        exact_tail(*(np.array([float(each)]) for each in (both, rows, events, 200)))[0]
        for both, events in ((chosen, 88), (rows - chosen, 112))
    ]
    assert 2 * min(tails) == pytest.approx(mid_p, abs=6e-11)
    table = [[chosen, rows - chosen], [88 - chosen, 112 - rows + chosen]]
    assert stats.fisher_exact(table).pvalue == pytest.approx(fisher, abs=6e-11)
    sides = [stats.fisher_exact(table, alternative=side).pvalue for side in ("less", "greater")]
    observed = stats.hypergeom(200, 88, int(rows)).pmf(chosen)
    assert min(tails) == pytest.approx(min(sides) - observed / 2, rel=1e-9)


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


def searched(
    table: pl.DataFrame | pl.LazyFrame, metric: str, weight: Any = None, design: Any = None
) -> SegmentSearch:
    """Search rows."""
    columns = {"label": "y", "score": "s", "weight": weight, "design": design}
    return search(table, metric, Decisions(0.5), [*"abc"], **columns)


def numbers_of(found: SegmentSearch) -> dict[tuple[str, str | None], int]:
    """Number the examined segments by name."""
    return {found.name(number): number for number in np.flatnonzero(found.is_examined).tolist()}


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
    table = people(4)
    found = searched(table, metric, weight)
    base, x = arrays(table, metric)
    w = base * (1.0 if weight is None else table["w"].to_numpy())
    theta = (w * x).sum() / w.sum()
    second, third = ((w * (x - theta) ** power).sum() / w.sum() for power in (2, 3))
    segments = brute(table.with_columns(base=pl.Series(base)), 3, 30, "base")
    numbers = numbers_of(found)
    assert numbers.keys() == segments.keys()
    p_values = dict(zip(numbers, found.p_values(), strict=True))
    for name, inside in segments.items():
        share = w[inside].sum() / w.sum()
        factor = np.where(inside, 1 - share, -share)
        variance = second * ((factor * w) ** 2).sum()
        skewness = third * ((factor * w) ** 3).sum() / variance**1.5
        e = w * (x - theta)
        if metric in ("brier_score", "log_loss"):
            of_errors = (1 - 2 * share) * (e[inside] ** 2).sum() + share**2 * (e**2).sum()
            variance = max(variance, of_errors)
        z = e[inside].sum() / np.sqrt(variance)
        kish = w[inside].sum() ** 2 / (w[inside] ** 2).sum()
        least = min(abs(skewness), abs(third) / second**1.5 / np.sqrt(kish))
        upper, lower = skewed(z, skewness, np.sign(skewness) * least)
        if metric not in ("brier_score", "log_loss") and weight is None and abs(z) > 2:
            both, rows = (w * x)[inside].sum(), w[inside].sum()
            law = stats.hypergeom(int(w.sum()), round((w * x).sum()), int(rows))
            upper, lower = law.sf(both) + law.pmf(both) / 2, law.cdf(both) - law.pmf(both) / 2
        tail = upper if metric in ("brier_score", "log_loss") else min(upper, lower)
        assert found.all.tests.z[numbers[name]] == pytest.approx(z, rel=1e-9, abs=1e-9)
        assert p_values[name] == pytest.approx(min(1.0, 2 * tail), rel=1e-6)


def test_calibration_is_compared_with_its_target() -> None:
    table = people(5)
    found = searched(table, "mean_calibration_error", "w")
    y, s, w = (table[name].to_numpy() for name in "ysw")
    segments = brute(table.with_columns(base=pl.lit(value=True)), 3, 30, "base")
    numbers = numbers_of(found)
    p_values = dict(zip(numbers, found.p_values(), strict=True))
    assert numbers.keys() <= segments.keys()
    for name, inside in segments.items():
        of, p = w[inside], s[inside]
        mean = (of * p).sum() / of.sum()
        enough = of.sum() ** 2 / (of**2).sum() * min(mean, 1 - mean) >= 5
        assert enough == (name in numbers)
        variance = (of**2 * p * (1 - p)).sum()
        z = (of * (p - y[inside])).sum() / np.sqrt(variance)
        skewness = -(of**3 * p * (1 - p) * (1 - 2 * p)).sum() / variance**1.5
        both = skewed(z, skewness, skewness / 2)
        assert p_values[name] == pytest.approx(min(1.0, 2 * min(both)), rel=1e-7)
        limits = found.limits(np.array([numbers[name]]))
        alpha = 0.05 / len(numbers)
        upper = skewness if skewness >= 0 else skewness / 2
        upper = upper if abs(upper) >= 1e-3 else 0.0
        quantile = stats.pearson3.isf(alpha / 2, upper)
        gap = (of * (p - y[inside])).sum() / of.sum()
        assert limits["gap"][0] == pytest.approx(gap)
        assert limits["gap_low"][0] == pytest.approx(gap - np.sqrt(variance) / of.sum() * quantile)


@pytest.mark.parametrize("strata", [None, "h"])
def test_clusters_have_the_variance_of_their_totals(strata: str | None) -> None:
    table = people(6)
    design = wroc.Survey("u", strata=strata)
    found = searched(table, "selection_rate", "w", design)
    w, d = table["w"].to_numpy(), (table["s"] >= 0.5).to_numpy() * 1.0
    e = w * (d - (w * d).sum() / w.sum())
    units = table.select("u", *([strata] if strata else [])).rows()
    segments = brute(table.with_columns(base=pl.lit(value=True)), 3, 30, "base")
    numbers = numbers_of(found)
    p_values = dict(zip(numbers, found.p_values(), strict=True))
    for name, number in numbers.items():
        inside = segments[name]
        share = w[inside].sum() / w.sum()
        totals: dict[Any, float] = {}
        for unit, error, held in zip(units, e, inside, strict=True):
            totals[unit] = totals.get(unit, 0.0) + error * (held - share)
        groups: dict[Any, list[float]] = {}
        for unit, total in totals.items():
            groups.setdefault(unit[1:], []).append(total)
        variance = sum(len(g) * np.var(g, ddof=1) for g in groups.values())
        plain = found.all.tests.plain[number]
        assert found.all.tests.variance[number] == pytest.approx(max(plain, variance), rel=1e-9)
        held = {unit for unit, inner in zip(units, inside, strict=True) if inner}
        assert found.all.df is not None
        assert found.all.df[number] == len(held) - len({unit[1:] for unit in held})
        z = e[inside].sum() / np.sqrt(max(plain, variance))
        both = skewed(z, found.all.tests.skewness[number], found.all.tests.least[number])
        t = stats.norm.isf(min(*both, 0.5))
        expected = 2 * stats.t.sf(t, found.all.df[number])
        assert p_values[name] == pytest.approx(expected, rel=1e-6, abs=1e-10)


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
