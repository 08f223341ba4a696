"""Release checks: worked numbers, other libraries, and what must hold for any rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
import statsmodels.api as sm
from conftest import TWO_SCORES
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from polars.testing import assert_frame_equal
from scipy import stats
from statsmodels.stats.weightstats import DescrStatsW

import polars_wroc as wroc

Array = NDArray[Any]
BOTH = {"threshold": {"old": 0.5, "new": 0.45}, "net_benefit_at": 0.3}
METRICS = ["auc", "selection_rate", "tpr", "fpr", "accuracy", "ppv", "npv"]
METRICS += ["net_benefit", "brier_score", "log_loss"]
ALL: dict[str, Any] = {**BOTH, "metrics": METRICS}
NUMBERS = ["reference_value", "value", "gap_low", "gap_high", "p_value"]
# By hand: the old and the new value, limits and p-value.
UNWEIGHTED = {
    "auc": (0.7083333333, 0.8750000000, -0.4380295849, 0.7713629183, 0.5194340473),
    "tpr": (0.5, 1, -0.1020512775, 0.8499610108, 0.1094909919),
    "fpr": (1 / 3, 1 / 6, -0.5635028222, 0.2468838734, 0.3349888676),
    "selection_rate": (0.4, 0.5, -0.2571796285, 0.4335045539, 0.5644929140),
    "accuracy": (0.6, 0.9, -0.0375924346, 0.6032218525, 0.0763396286),
    "ppv": (0.5, 0.8, -0.0214774402, 0.5690703871, 0.0732541352),
    "npv": (2 / 3, 1, -0.1613752225, 0.7000066849, 0.1722116904),
}
WEIGHTED = {
    # The upper limit is 1.1157639014.
    "auc": (0.6428571429, 0.8928571429, -0.6157639014, 1.0, 0.4761339667),
    "tpr": (0.4285714286, 1, -0.1035843959, 0.8986689295, 0.1076706822),
    "fpr": (0.375, 0.125, -0.6856092031, 0.2146690342, 0.2568262260),
    "selection_rate": (0.4, 0.5333333333, -0.3104316774, 0.5388979428, 0.5705481639),
    "accuracy": (0.5333333333, 0.9333333333, -0.0040713422, 0.7196649848, 0.0522074141),
    "ppv": (0.5, 0.875, -0.0670292692, 0.6966392327, 0.1106666215),
    "npv": (0.5555555556, 1, -0.1144826055, 0.8087922242, 0.1218765084),
}
MEANS = {
    None: {
        "brier_score": (-0.06325, -0.2505338482, 0.1240338482, 0.4644350484),
        "net_benefit": (0.2428571429, -0.0980443917, 0.5837586774, 0.1415185393),
        "log_loss": (-0.1574642994, -0.5287832695, 0.2138546707, 0.3624646439),
    },
    "w": {
        "brier_score": (-0.0968333333, -0.3556949079, 0.1620282412, 0.4085722228),
        "net_benefit": (0.3238095238, -0.1292982776, 0.7769173252, 0.1360099475),
        "log_loss": (-0.2303208947, -0.7626152810, 0.3019734916, 0.3429502626),
    },
}


def check(frame: Any, *, lazily: bool = False, **options: Any) -> pl.DataFrame:
    """Check a release, and that it is the same ``lazily``."""
    given: dict[str, Any] = {"label": "y", "old": "old", "new": "new", "min_rows": 0} | options
    table: pl.DataFrame = wroc.release_check(frame, **given)
    if lazily:
        planned = wroc.release_check(frame.lazy(), **given).collect()
        assert_frame_equal(table, planned, rel_tol=1e-9, abs_tol=1e-12)
    return table


def row(table: pl.DataFrame, metric: str, **where: str) -> dict[str, Any]:
    """Return the only row of a metric."""
    return table.filter(metric=metric, **where).row(0, named=True)


def releases(seed: int, n: int = 400) -> pl.DataFrame:
    """Make two scores that decide most rows alike."""
    random = np.random.default_rng(seed)
    y = random.random(n) < 0.4
    old = np.clip(0.3 * y + 0.7 * random.random(n), 0.001, 0.999)
    again = np.clip(0.3 * y + 0.7 * random.random(n), 0.001, 0.999)
    return pl.DataFrame(
        {
            "y": y,
            "old": old,
            "new": np.where(random.random(n) < 0.2, again, old),
            "w": random.lognormal(0, 0.5, n),
            "k": random.integers(1, 4, n),
            "c": np.arange(n) // 8,
            "h": np.arange(n) // 200,
            "g": random.choice(["a", "b"], n),
        }
    )


@pytest.mark.parametrize(("weight", "expected"), [(None, UNWEIGHTED), ("w", WEIGHTED)])
def test_changes_of_a_release_are_those_by_hand(
    weight: str | None, expected: dict[str, tuple[float, ...]]
) -> None:
    table = check(TWO_SCORES, weight=weight, lazily=True, **ALL)
    for metric, numbers in expected.items():
        found = row(table, metric)
        assert [found[name] for name in NUMBERS] == pytest.approx(numbers, abs=1e-10), metric
    for metric, numbers in MEANS[weight].items():
        found = row(table, metric)
        names = ["gap", *NUMBERS[2:]]
        assert [found[name] for name in names] == pytest.approx(numbers, abs=1e-10), metric
    assert table["gap"].to_list() == pytest.approx(table["value"] - table["reference_value"])


def fifty(up: int, down: int) -> pl.DataFrame:
    """Make 50 rows of one segment of which so many decisions change."""
    number = pl.int_range(50)
    return pl.select(
        y=number % 2,
        old=pl.when(number < up).then(0.4).otherwise(0.6),
        new=pl.when(number >= 50 - down).then(0.4).otherwise(0.6),
    )


def test_decisions_of_fifty_rows() -> None:
    found = row(check(fifty(8, 1), threshold=0.5), "selection_rate")
    ends = [found[name] for name in ("gap", "gap_low", "gap_high", "p_value")]
    by_hand = [0.14, 0.0220996114, 0.2672335710, 0.0235488293]
    assert ends == pytest.approx(by_hand, abs=1e-10)


CHANGED = ["n_changed", "n_gained", "n_lost", "share_changed"]


@pytest.mark.parametrize(("weight", "lazily"), [(None, False), ("w", True)])
def test_changed_rows_are_counted_and_weighed(weight: str | None, *, lazily: bool) -> None:
    table = check(TWO_SCORES, weight=weight, lazily=lazily, **ALL)
    old, new = pl.col("old") >= 0.5, pl.col("new") >= 0.45
    rows = TWO_SCORES if weight else TWO_SCORES.with_columns(w=1)
    positive, every, w = pl.col("y") == 1, pl.col("y") >= 0, pl.col("w")
    # Which rows gain, which lose, and on which the metric rests with either score.
    rules = {
        "selection_rate": (new & ~old, old & ~new, every),
        "tpr": (new & ~old & positive, old & ~new & positive, positive),
        "fpr": (new & ~old & ~positive, old & ~new & ~positive, ~positive),
        "accuracy": (
            (new == positive) & (old != positive),
            (old == positive) & (new != positive),
            every,
        ),
        "ppv": (new & ~old, old & ~new, old | new),
        "npv": (old & ~new, new & ~old, ~(old & new)),
        # A newly selected positive gains, a newly selected negative loses.
        "net_benefit": (
            (new != old) & (new == positive),
            (new != old) & (new != positive),
            every,
        ),
    }
    for metric, (gained, lost, whole) in rules.items():
        weights = {"all": whole, "changed": gained | lost}
        sums = rows.select(
            gained=gained.sum(),
            lost=lost.sum(),
            **{name: (w * holds).sum() for name, holds in weights.items()},
        ).row(0, named=True)
        found = row(table, metric)
        numbers = [sums["gained"] + sums["lost"], sums["gained"], sums["lost"]]
        assert [found[name] for name in CHANGED[:3]] == numbers, metric
        assert found["share_changed"] == pytest.approx(sums["changed"] / sums["all"]), metric
    assert [row(table, "auc")[name] for name in CHANGED] == [None] * 4
    losses = row(table, "brier_score")
    # Better scores lower the loss.
    assert [losses[name] for name in CHANGED] == pytest.approx([10, 3, 7, 1])


def test_unchanged_decisions_are_no_proof() -> None:
    rows = fifty(0, 0).with_columns(new=pl.col("new") + pl.col("y") / 10)
    found = row(check(rows, threshold=0.5), "accuracy")
    limits = [found["gap_low"], found["gap_high"]]
    assert limits == pytest.approx([-0.0713475991, 0.0713475991], abs=1e-10)
    assert (found["verdict"], found["reason"]) == ("inconclusive", "everybody is selected")


def replicated(rows: pl.DataFrame) -> tuple[pl.DataFrame, wroc.ReplicateWeights]:
    """Add weights of replicates that each leave out a cluster."""
    numbers = range(rows["c"].n_unique())
    left_out = [
        pl.when(pl.col("c") != i).then(pl.col("w") * len(numbers) / (len(numbers) - 1)).otherwise(0)
        for i in numbers
    ]
    names = {f"r{i}": each for i, each in enumerate(left_out)}
    return rows.with_columns(**names), wroc.ReplicateWeights([*names], "jk1")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"weight": "w"},
        {"weight": wroc.frequency("k")},
        {"weight": "w", "design": "c"},
        {"design": wroc.Survey("c", strata="h")},
        {"weight": "w", "design": "replicates"},
        {"level": wroc.Looks(300, 0.9)},
    ],
)
def test_aucs_are_tested_as_by_compare(options: dict[str, Any]) -> None:
    rows = releases(1, 96 if "replicates" in options.values() else 400)
    if "replicates" in options.values():
        rows, design = replicated(rows)
        options = options | {"design": design}
    table = check(rows, attributes="g", adjust="none", **options)
    names = {
        **{name: name for name in ("value", "reference_value", "gap", "gap_low", "gap_high")},
        "p_value": "p_value",
    }
    for by, of_rows in ((None, table.head(1)), ("g", table.tail(-1))):
        other = wroc.compare(rows, "y", ["new", "old"], by=by, adjust="none", **options)
        expected = other.select(pl.col(name).alias(own) for own, name in names.items())
        assert_frame_equal(of_rows.select([*names]), expected)


@pytest.mark.parametrize("weight", [None, "w"])
def test_mean_losses_are_those_of_statsmodels_and_two_pseudo_rows(weight: str | None) -> None:
    rows = releases(2)
    found = row(check(rows, weight=weight, metrics=["brier_score"]), "brier_score")
    y, old, new = (rows[name].cast(pl.Float64).to_numpy() for name in ("y", "old", "new"))
    d = (new - y) ** 2 - (old - y) ** 2
    w = rows["w"].to_numpy() if weight else np.ones(len(d))
    h2 = float(((w / w.sum()) ** 2).sum())
    fit = sm.WLS(d, np.ones(len(d)), weights=w).fit(cov_type="HC0")
    variance = fit.bse[0] ** 2 / (1 - h2)
    if weight is None:
        assert variance == pytest.approx(DescrStatsW(d).std_mean ** 2)
    half = stats.t.ppf(0.975, 1 / h2 - 1) * math.sqrt(variance + h2**2 / 2)
    assert found["gap"] == pytest.approx(fit.params[0], rel=1e-9)
    assert found["gap_high"] - found["gap"] == pytest.approx(half, rel=1e-8)


def by_clusters(d: Array, w: Array, c: Array) -> tuple[float, float, float]:
    """Return the mean, its variance by clusters with the factor of these, and that of rows."""
    mean = float((w * d).sum() / w.sum())
    u = w * (d - mean) / w.sum()
    totals, shares = (
        np.array([values[c == each].sum() for each in np.unique(c)]) for values in (u, w / w.sum())
    )
    squares, cubes = (shares**2).sum(), (shares**3).sum()
    factor = squares / (squares - 2 * cubes + squares**2)
    return mean, float(factor * (totals**2).sum()), float((u**2).sum())


def test_rates_and_losses_by_a_design() -> None:
    rows = releases(3)
    metrics = ["accuracy", "brier_score"]
    table = check(rows, threshold=0.5, weight="w", design="c", metrics=metrics, lazily=True)
    y, old, new, w, c = (rows[name].to_numpy() for name in ("y", "old", "new", "w", "c"))
    differences = {
        "accuracy": ((new >= 0.5) == y).astype(float) - ((old >= 0.5) == y),
        "brier_score": (new - y) ** 2 - (old - y) ** 2,
    }
    h2 = float(((w / w.sum()) ** 2).sum())
    for metric, d in differences.items():
        mean, by_design, of_rows = by_clusters(d, w, c)
        variance = by_design + h2**2 / 2
        if metric == "accuracy":
            variance = max(by_design, of_rows) + 2 * h2**2
        half = stats.t.ppf(0.975, len(np.unique(c)) - 1) * math.sqrt(variance)
        found = row(table, metric)
        assert [found["gap"], found["gap_high"]] == pytest.approx([mean, mean + half], rel=1e-8)


def test_the_largest_change_of_a_brier_score_is_one_whatever_the_odds() -> None:
    rows = releases(3)
    options: dict[str, Any] = {"threshold": 0.5, "margin": {"brier_score": 0.01}}
    names = ["gap_low", "gap_high", "p_value"]
    alone = row(check(rows, **options), "brier_score")
    beside = row(check(rows, **options, net_benefit_at=0.9), "brier_score")
    assert [alone[name] for name in names] == [beside[name] for name in names]


def test_predictive_values_by_a_design_of_single_rows() -> None:
    # With a unit of its own for each row, only factors of n / (n - 1) and the quantile differ.
    rows = releases(5, 4000).with_row_index()
    by_design = check(rows, threshold=0.5, design="index", metrics=["ppv", "npv"])
    plain = check(rows, threshold=0.5, metrics=["ppv", "npv"])
    for name in ("value", "gap", "gap_low", "gap_high", "p_value"):
        assert by_design[name].to_list() == pytest.approx(plain[name].to_list(), rel=5e-3)


def test_replicate_weights_that_leave_out_clusters() -> None:
    rows, design = replicated(releases(6, 96))
    options: dict[str, Any] = {"weight": "w", **ALL}
    found = check(rows, design=design, **options)
    linearised = check(rows, design="c", **options)
    for name in ("value", "gap", "gap_low", "gap_high"):
        assert found[name].to_list() == pytest.approx(linearised[name].to_list(), abs=0.03)


TABLES = st.lists(
    st.tuples(st.booleans(), st.integers(0, 9), st.integers(0, 9), st.integers(1, 4)),
    min_size=4,
    max_size=30,
).map(
    lambda rows: pl.DataFrame(rows, ["y", "old", "new", "w"], orient="row").with_columns(
        old=pl.col("old") / 10 + 0.05, new=pl.col("new") / 10 + 0.05
    )
)


@given(TABLES)
def test_exchanged_scores_change_the_sign(rows: pl.DataFrame) -> None:
    options: dict[str, Any] = {"weight": "w", **ALL, "threshold": 0.5}
    table = check(rows, **options)
    exchanged = check(rows, old="new", new="old", **options)
    assert table["gap_low"].to_list() == pytest.approx((-exchanged["gap_high"]).to_list(), abs=1e-9)
    assert table["p_value"].to_list() == pytest.approx(exchanged["p_value"].to_list(), abs=1e-7)
    assert (table["gap_low"] <= table["gap"] + 1e-12).all()
    assert (table["gap_high"] >= table["gap"] - 1e-12).all()


@given(TABLES, st.sampled_from([1e-150, 0.1, 3, 1e90]))
def test_units_of_weights_do_not_matter(rows: pl.DataFrame, unit: float) -> None:
    options: dict[str, Any] = {**ALL, "threshold": 0.5}
    table = check(rows, weight="w", **options)
    scaled = check(rows, weight=pl.col("w") * unit, **options)
    if 1e-90 < unit < 1e80:
        assert_frame_equal(table, scaled, rel_tol=1e-7, abs_tol=1e-9)
    else:
        # Cubes of weights overflow or underflow: limits of AUCs are not known.
        assert_frame_equal(table.select("value"), scaled.select("value"), rel_tol=1e-7)


@given(TABLES)
def test_the_other_class_mirrors_rates(rows: pl.DataFrame) -> None:
    mirrored = rows.with_columns(~pl.col("y"), old=1 - pl.col("old"), new=1 - pl.col("new"))
    table = check(rows, threshold=0.5, weight="w", metrics=["auc", "tpr", "ppv", "accuracy"])
    other = check(mirrored, threshold=0.5, weight="w", metrics=["auc", "fpr", "npv", "accuracy"])
    for metric, its, sign in (("auc", "auc", 1), ("tpr", "fpr", -1), ("ppv", "npv", 1)):
        one, two = row(table, metric), row(other, its)
        ends = ("gap_low", "gap_high") if sign == 1 else ("gap_high", "gap_low")
        for name, its_name in zip(("gap_low", "gap_high"), ends, strict=True):
            expected = two[its_name] if two[its_name] is None else sign * two[its_name]
            assert one[name] == pytest.approx(expected, abs=1e-9)


def test_verdicts_and_their_family() -> None:
    n = 2000
    number = pl.int_range(n)
    rows = pl.select(
        y=number % 2,
        g=pl.lit("a"),
        # Of the positives 2 % are no longer selected, and of the negatives 10 %.
        old=pl.lit(0.6),
        new=pl.when((number % 100 == 1) | (number % 20 == 0)).then(0.4).otherwise(0.6),
    )
    table = check(rows, threshold=0.5, attributes="g", margin={"tpr": 0.05, "accuracy": 0.001})
    verdicts = {name: row(table, name, attribute="g")["verdict"] for name in table["metric"]}
    # The loss of tpr is significant, and shown to be small.
    assert verdicts["tpr"] == "no worse"
    assert row(table, "tpr", attribute="g")["p_adjusted"] < 0.05
    assert verdicts["fpr"] == verdicts["accuracy"] == "better"
    assert verdicts["selection_rate"] == "different"
    assert row(check(rows, threshold=0.5), "tpr")["verdict"] == "worse"
    wide = check(rows, threshold=0.5, margin=0.2)
    assert row(wide, "selection_rate")["verdict"] == "equivalent"
    known = table.drop_nulls("p_value")
    p = known["p_value"].to_numpy()
    order = np.argsort(p, kind="stable")
    holm = np.maximum.accumulate((len(p) - np.arange(len(p))) * p[order]).clip(max=1)
    assert known["p_adjusted"].to_numpy()[order] == pytest.approx(holm)
    assert table["margin"].unique().sort().to_list() == [0.001, 0.01, 0.05]


def test_equal_scores_are_no_worse() -> None:
    rows = releases(8)
    table = check(rows, new="old", attributes="g", **ALL | {"threshold": 0.5})
    assert set(table["verdict"]) == {"no worse", "equivalent"}
    assert set(table["reason"]) == {"same scores"}
    assert table.select("gap", "gap_low", "gap_high").sum().row(0) == (0, 0, 0)
    # Another threshold is another decision.
    others = check(rows, new="old", **ALL)
    assert row(others, "selection_rate")["reason"] is None
    assert row(others, "auc")["reason"] == "same order"


def test_a_recalibration_has_the_same_aucs() -> None:
    rows = releases(9).with_columns(new=pl.col("old").sqrt())
    found = row(check(rows, weight="w", margin=0.02), "auc")
    share = pl.col("w") / pl.col("w").sum()
    h2 = rows.group_by("y").agg(h2=(share**2).sum())["h2"].to_numpy()
    # Two rows of each class change; each class has its own degrees of freedom.
    parts = h2**2 / 2
    df = parts.sum() ** 2 / (parts**2 / (1 / h2 - 1)).sum()
    half = stats.t.ppf(0.975, df) * math.sqrt(parts.sum())
    numbers = [found[n] for n in ("gap", "gap_low", "gap_high", "p_value")]
    assert numbers == pytest.approx([0, -half, half, 1], abs=1e-12)
    assert (found["verdict"], found["reason"]) == ("no worse", "same order")
    few = row(check(rows.head(20), weight="w"), "auc")
    assert (few["verdict"], few["reason"]) == ("inconclusive", "same order")


def test_equal_aucs_of_other_orders_have_a_variance() -> None:
    rows = pl.DataFrame({"y": [1, 1, 0, 0], "old": [4, 2, 3, 1], "new": [2, 4, 3, 1]})
    found = row(check(rows), "auc")
    assert found["gap"] == 0
    assert found["gap_high"] > 0.3
    assert found["reason"] is None
    other = wroc.compare(rows, "y", ["old", "new"], method="delong")
    assert other["gap_se"].item() == pytest.approx(0.5)
    assert other["p_value"].item() == pytest.approx(1)


def test_what_is_undefined_is_too_little_data() -> None:
    rows = pl.DataFrame({"y": [1, 1], "old": [0.2, 0.7], "new": [0.4, 0.3]})
    table = check(rows, **ALL | {"threshold": 0.5})
    assert set(table["verdict"]) == {"inconclusive"}
    undefined = table.filter(reason="undefined")
    assert undefined["metric"].to_list() == ["auc", "fpr", "ppv"]
    assert undefined["gap"].null_count() == 3
    one = check(rows.head(1), lazily=True, **ALL | {"threshold": 0.5})
    assert row(one, "brier_score")["reason"] == "no variance"


def test_few_rows_are_not_tested() -> None:
    table = check(releases(10), threshold=0.5, attributes="g", min_rows=150)
    few = table.filter(pl.col("reason").str.starts_with("fewer than 150 "))
    assert few.height > 2
    assert set(few["verdict"]) == {"inconclusive"}
    assert few["p_value"].null_count() == few.height
    kinds = {
        "auc": {"positives", "negatives"},
        "tpr": {"positives"},
        "fpr": {"negatives"},
        "ppv": {"selected rows"},
        "npv": {"rejected rows"},
        "selection_rate": {"rows"},
        "accuracy": {"rows"},
    }
    for metric, reason in few.select("metric", "reason").rows():
        assert reason.removeprefix("fewer than 150 ") in kinds[metric]
    others = few.filter(pl.col("metric") != "auc")
    assert (others.select(pl.min_horizontal("n", "n_reference")).to_series() < 150).all()
    assert table.filter(attribute="overall", metric="auc")["n"].item() == 400


def test_recorded_decisions() -> None:
    rows = releases(12)
    decided = rows.with_columns(by_old=pl.col("old") >= 0.5, by_new=pl.col("new") >= 0.4)
    selected = {"old": "by_old", "new": pl.col("by_new")}
    recorded = check(decided, selected=selected, attributes="g", lazily=True)
    at = check(rows, threshold={"old": 0.5, "new": 0.4}, attributes="g")
    assert_frame_equal(recorded, at)
    unknown = decided.with_columns(by_new=pl.when(pl.int_range(400) > 0).then("by_new"))
    assert row(check(unknown, selected=selected), "accuracy")["n"] == 399


def test_infinite_thresholds_select_none_or_all() -> None:
    table = check(releases(13), threshold={"old": math.inf, "new": -math.inf})
    found = row(table, "selection_rate")
    assert (found["reference_value"], found["value"]) == (0, 1)
    assert row(table, "ppv")["reason"] == "undefined"


def test_heavy_changed_rows_are_said() -> None:
    rows = fifty(8, 1).with_columns(w=pl.when(pl.col("old") != pl.col("new")).then(3).otherwise(1))
    assert row(check(rows, threshold=0.5, weight="w"), "selection_rate")["reason"] == (
        "few effective events"
    )


def test_segments_are_those_of_their_rows() -> None:
    rows = releases(14)
    table = check(rows, attributes=["g", "h"], intersections=True, adjust="none", **ALL)
    assert table["attribute"].unique(maintain_order=True).to_list() == [
        "overall",
        "g",
        "h",
        "g \N{MULTIPLICATION SIGN} h",
    ]
    own = check(rows.filter(g="a", h=1), **ALL, adjust="none")
    names = ["metric", "n", "value", "gap", "gap_low", "gap_high", "p_value", "verdict"]
    of_segment = table.filter(segment="a, 1").select(names)
    assert_frame_equal(of_segment, own.select(names), rel_tol=1e-8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": {"old": 0.5}}, "`threshold` must map 'old' and 'new'"),
        ({"selected": "old"}, "`selected` must map 'old' and 'new'"),
        (
            {"threshold": 0.5, "selected": {"old": "y", "new": "y"}},
            "`threshold` must be None with `selected`",
        ),
        ({"metrics": ["tpr"]}, "`metrics` must come with a `threshold` or `selected` for tpr"),
        ({"metrics": ["accurracy"]}, "`metrics` must be one of .*mean 'accuracy'"),
        ({"margin": {"aucc": 0.1}}, "`margin` must be one of"),
        (
            {"metrics": ["mean_calibration_error"]},
            "found 'mean_calibration_error': for calibration, use `calibration_summary` by group$",
        ),
        ({"margin": {"oe_ratio": 0.1}}, "found 'oe_ratio': for calibration, use"),
        ({"metrics": ["average_precision"]}, "found 'average_precision'$"),
        ({"metrics": ["net_benefit"], "threshold": 0.5}, "`net_benefit_at` must be given for"),
        ({"net_benefit_at": 0.3}, "`metrics` must come with a `threshold` or `selected`"),
        ({"intersections": True}, "`intersections` needs two or more `attributes`"),
        ({"old": "olds"}, "`old` must"),
        ({"new": pl.lit("x")}, "`new` must be numeric"),
        ({"attributes": "nothing"}, "`attributes` must"),
        ({"metrics": ["log_loss"], "new": pl.col("new") * 2}, "`new` must be a probability"),
    ],
)
def test_bad_input_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError, pl.exceptions.PolarsError), match=message):
        wroc.release_check(TWO_SCORES, **{"label": "y", "old": "old", "new": "new"} | options)
