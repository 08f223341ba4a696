"""Expected metrics and parts of gaps: worked numbers, all pairs, all labels, peers."""

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
from statsmodels.api import Logit, add_constant

import polars_wroc as wroc
from polars_wroc.groups import expected_metrics as of_values
from polars_wroc.groups import gap_parts as of_gaps
from polars_wroc.inputs.designs import read_design

Z = 1.959963984540054
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
BOTH = pl.concat([A, B])


@pytest.fixture
def few_rows_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worked examples are smaller than what has limits."""
    monkeypatch.setattr(of_values, "LEAST_ROWS", 0)
    monkeypatch.setattr(of_gaps, "LEAST_ROWS", 0)


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


@pytest.mark.parametrize(
    ("weight", "of_expected", "of_excess"),
    [(None, 0.0356443082, 0.1468313742), ("w", 0.0347321033, 0.1106845181)],
)
def test_errors_for_the_population(
    weight: str | None, of_expected: float, of_excess: float
) -> None:
    rows = of_values.read_chances(A, "y", "p", None, weight, None, None, read_design(None))
    metrics = of_values.Expectations.read(None, labelled=True)
    decided = metrics.decided(rows.frame)
    ranked = metrics.ranked(decided, [])
    moved = ranked.join(metrics.values(decided, ranked, []), how="cross")
    moved = moved.select(**metrics.influences(["auc"]))
    names = ["__auc_expected", "__auc_excess"]
    found = moved.select((pl.col(names) ** 2).sum().sqrt()).collect().row(0)
    assert found == pytest.approx((of_expected, of_excess), abs=6e-11)


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


@pytest.mark.slow
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


def test_a_frequency_is_so_many_rows() -> None:
    frame = people(3)
    repeated = frame.select(pl.all().repeat_by("f").list.explode(empty_as_null=False))
    options: dict[str, Any] = {"label": "y", "by": "g", "threshold": 0.3}
    counted = wroc.expected_metrics(frame, "p", weight=wroc.frequency("f"), **options)
    assert_frame_equal(counted, wroc.expected_metrics(repeated, "p", **options))
    options = {"attributes": "g", "threshold": 0.3, "recalibrate": "overall"}
    counted = wroc.gap_parts(frame, "y", "p", weight=wroc.frequency("f"), **options)
    assert_frame_equal(counted, wroc.gap_parts(repeated, "y", "p", **options))


def test_labels_as_probabilities_leave_nothing_open() -> None:
    frame = people(4).with_columns(c=pl.col("y").cast(pl.Float64))
    table = wroc.expected_metrics(frame, "p", probability="c", label="y", threshold=0.3, weight="w")
    assert table["expected"].to_list() == pytest.approx(table["value"].to_list())
    assert table["expected_low"].to_list() == table["expected"].to_list()
    assert table["excess_p_value"].null_count() == table.height
    assert table["n_impossible"].to_list() == [0] * table.height
    wrong = wroc.expected_metrics(frame, "p", probability=1 - pl.col("c"), label="y")
    assert wrong["n_impossible"].item() == frame.height


@pytest.mark.usefixtures("few_rows_are_enough")
@pytest.mark.parametrize("lazily", [False, True])
def test_the_worked_example_of_a_gap(*, lazily: bool) -> None:
    frame: Any = BOTH.lazy() if lazily else BOTH
    known = {
        "none": (-0.2098577865, 0.0411224685, 0.3231911198, 0.1952468820, 0.2346864099),
        "overall": (-0.1947704725, 0.0837942317, 0.3081038059, 0.1639190156, 0.2322581050),
    }
    for recalibrate, numbers in known.items():
        options: dict[str, Any] = {"attributes": "g", "recalibrate": recalibrate}
        table = wroc.gap_parts(frame, "y", "p", **options).lazy().collect()
        row = table.row(by_predicate=pl.col("segment") == "b", named=True)
        found = [row["gap_expected"], (row["gap_expected_high"] - row["gap_expected"]) / Z]
        found += [row["gap_excess"], (row["gap_excess_high"] - row["gap_excess"]) / Z]
        assert found == pytest.approx(numbers[:4], abs=1e-10)
        z = row["gap_excess"] / numbers[4]
        p_value = math.erfc(abs(z) / math.sqrt(2))
        assert row["gap_excess_p_value"] == pytest.approx(p_value, abs=1e-9)
        if recalibrate == "none":
            assert p_value == pytest.approx(0.1684754519, abs=1e-9)
        assert row["gap"] == pytest.approx(0.1133333333, abs=1e-10)
    table = wroc.gap_parts(BOTH, "y", "p", attributes="g", threshold=0.45, reference="a")
    row = table.row(by_predicate=pl.col("segment").eq("b") & pl.col("metric").eq("fpr"), named=True)
    assert (row["gap"], row["gap_expected"]) == pytest.approx((0, 0.2875874126), abs=1e-10)
    error = 0.2875874126 / 0.2084076615
    assert row["gap_excess_p_value"] == pytest.approx(math.erfc(error / math.sqrt(2)), abs=1e-8)


def test_the_fit_is_that_of_statsmodels() -> None:
    logits = np.log(BOTH["p"].to_numpy() / (1 - BOTH["p"].to_numpy()))
    design = add_constant(logits)
    fit = Logit(BOTH["y"].to_numpy(), design).fit(disp=False, tol=1e-12)
    assert fit.params == pytest.approx([-0.1270853554, 0.8446561649], abs=1e-9)
    frame = BOTH.with_columns(c=pl.Series(fit.predict(design)))
    options: dict[str, Any] = {"attributes": "g", "threshold": 0.45}
    ours = wroc.gap_parts(frame, "y", "p", recalibrate="overall", **options)
    theirs = wroc.gap_parts(frame, "y", "p", probability="c", **options)
    assert ours["gap_expected"].to_list() == pytest.approx(theirs["gap_expected"].to_list())


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"weight": "w", "threshold": 0.3},
        {"weight": "w", "threshold": 0.3, "reference": "b"},
        {"weight": wroc.frequency("f"), "threshold": 0.3},
        {"design": "k", "weight": "w", "threshold": 0.3, "metrics": ["auc", "net_benefit"]},
        {"level": wroc.Looks(1000), "min_rows": 100},
    ],
)
def test_gaps_are_those_of_group_gaps(options: dict[str, Any]) -> None:
    frame = people(5)
    parts = wroc.gap_parts(frame, "y", "p", attributes="g", **options)
    if "threshold" in options:
        options = {"metrics": ["auc", "tpr", "fpr", "ppv"]} | options
    if "level" in options:
        options = options | {"level": wroc.Looks(1000, seen=frame.height)}
    gaps = wroc.group_gaps(frame, "y", "p", attributes="g", **options)
    assert_frame_equal(parts.select(gaps.columns), gaps)
    assert (parts["gap_expected"] + parts["gap_excess"]).to_list() == pytest.approx(
        parts["gap"].to_list(), nan_ok=True
    )
    lazy = wroc.gap_parts(frame.lazy(), "y", "p", attributes="g", **options).collect()
    assert_frame_equal(lazy, parts)


def rate(rows: list[dict[str, float]], metric: str, label: str) -> float:
    part = whole = 0.0
    for row in rows:
        y, chosen = (1 - row[label] if metric == "fpr" else row[label]), row["p"] >= 0.3
        part += row["w"] * y * chosen
        whole += row["w"] * (chosen if metric == "ppv" else y)
    return part / whole


@pytest.mark.usefixtures("few_rows_are_enough")
@pytest.mark.parametrize("metric", ["tpr", "fpr", "ppv"])
def test_parts_of_rates_by_moving_each_row(metric: str) -> None:
    frame = people(6, 250)
    rows = frame.with_columns(pl.col("y").cast(pl.Float64)).to_dicts()

    def gap(label: str) -> float:
        sides = [[r for r in rows if (r["g"] == "a") == own] for own in (True, False)]
        return rate(sides[0], metric, label) - rate(sides[1], metric, label)

    def errors() -> tuple[float, float, float]:
        of_expected = of_excess = of_labels = 0.0
        for row in rows:
            expected, observed, moved = gap("p"), gap("y"), dict(row)
            row["w"] *= 1 + 1e-6
            first, second = (gap("p") - expected) / 1e-6, (gap("y") - observed) / 1e-6
            of_expected += first**2
            of_excess += (second - first) ** 2
            row["w"] = moved["w"]
        for row in rows:
            row["q"] = row["p"]
        for row in rows:
            row["q"] += 1e-6
            of_labels += row["p"] * (1 - row["p"]) * ((gap("q") - gap("p")) / 1e-6) ** 2
            row["q"] = row["p"]
        return math.sqrt(of_expected), math.sqrt(of_excess), math.sqrt(of_labels)

    table = wroc.gap_parts(frame, "y", "p", attributes="g", weight="w", threshold=0.3)
    chosen = pl.col("segment").eq("a") & pl.col("metric").eq(metric)
    row = table.row(by_predicate=chosen, named=True)
    of_expected, of_excess, of_labels = errors()
    assert row["gap_expected"] == pytest.approx(gap("p"), abs=1e-12)
    low, high = row["gap_expected_low"], row["gap_excess_high"]
    assert (row["gap_expected"] - low) / Z == pytest.approx(of_expected, rel=1e-4)
    assert (high - row["gap_excess"]) / Z == pytest.approx(of_excess, rel=1e-4)
    p_value = math.erfc(abs(row["gap_excess"]) / of_labels / math.sqrt(2))
    assert row["gap_excess_p_value"] == pytest.approx(p_value, rel=1e-3)


def test_the_rest_is_a_mean_by_observed_pairs() -> None:
    frame = people(7)
    aucs, weights = [], []
    for (name,), rows in frame.partition_by("g", as_dict=True).items():
        columns = [rows[name].to_list() for name in ("p", "p", "w")]
        aucs.append((name, pairs(*columns)))
        pos, neg = (float(rows.filter(pl.col("y") == y)["w"].sum()) for y in (True, False))
        weights.append(pos * neg)
    table = wroc.gap_parts(frame, "y", "p", attributes="g", weight="w")
    for name, value in aucs:
        of_rest = np.average(
            [v for n, v in aucs if n != name],
            weights=[w for (n, _), w in zip(aucs, weights, strict=True) if n != name],
        )
        found = table.filter(pl.col("segment").eq_missing(pl.lit(name)))["gap_expected"].item()
        assert found == pytest.approx(value - of_rest, abs=1e-12)


@pytest.mark.slow
@pytest.mark.usefixtures("few_rows_are_enough")
@pytest.mark.parametrize("recalibrate", ["none", "overall"])
def test_clusters_of_one_row_are_rows(recalibrate: Any) -> None:
    frame = people(8)
    options: dict[str, Any] = {"attributes": "g", "threshold": 0.3, "recalibrate": recalibrate}
    of_rows = wroc.gap_parts(frame, "y", "p", **options)
    of_units = wroc.gap_parts(frame, "y", "p", design="i", **options)
    for part in ("gap_expected", "gap_excess"):
        widths = [(t[f"{part}_high"] - t[f"{part}_low"]).to_numpy() for t in (of_rows, of_units)]
        assert widths[1] == pytest.approx(widths[0], rel=0.05)
        assert of_units[part].to_list() == pytest.approx(of_rows[part].to_list())
    twice = pl.concat([frame, frame])
    doubled = wroc.gap_parts(twice, "y", "p", design="i", **options)
    names = ["gap_expected_low", "gap_excess_high"]
    metrics = pl.col("metric") != "auc"
    found, known = (t.filter(metrics).select(names) for t in (doubled, of_units))
    # Rows that are there twice say no more than once.
    assert_frame_equal(found, known)


def test_no_fit_is_no_part() -> None:
    frame = BOTH.with_columns(y=pl.col("p") > 0.45)
    parts = wroc.gap_parts(frame, "y", "p", attributes="g", recalibrate="overall")
    assert parts["gap"].null_count() == 0
    assert parts["gap_expected"].null_count() == parts.height
    empty = wroc.gap_parts(frame.clear(), "y", "p", attributes="g", recalibrate="overall")
    assert empty.is_empty()
    assert empty.schema == parts.schema


def test_few_rows_have_no_limits() -> None:
    table = wroc.expected_metrics(A, "p", label="y", threshold=0.5)
    assert table["expected"].null_count() == 0
    for name in ("expected_low", "expected_high", "excess_p_value"):
        assert table[name].null_count() == table.height
    parts = wroc.gap_parts(BOTH, "y", "p", attributes="g")
    assert parts["gap_excess"].null_count() == parts["gap_excess_low"].null_count() - 2 == 0
    assert parts["gap_excess_verdict"].to_list() == ["too little data"] * 2


def test_undefined_is_null() -> None:
    one = wroc.expected_metrics(A.head(1), "p", label="y", threshold=0.95)
    assert one.filter(metric="auc")["expected"].item() is None
    assert one.filter(metric="ppv")["expected"].item() is None
    certain = BOTH.with_columns(p=pl.when(pl.col("p") == 0.9).then(1.0).otherwise("p"))
    parts = wroc.gap_parts(certain, "y", "p", attributes="g", recalibrate="overall")
    assert parts["gap"].null_count() == 0
    assert parts["gap_expected"].null_count() == parts.height
    clipped = wroc.gap_parts(certain, "y", "p", attributes="g", recalibrate="overall", clip=0.01)
    assert clipped["gap_expected"].null_count() == 0
    missing = A.with_columns(c=pl.when(pl.col("p") < 0.9).then("p"))
    assert wroc.expected_metrics(missing, "p", probability="c")["n"].item() == 9


def test_verdicts_and_the_same_test_twice() -> None:
    frame = people(9, 6000).filter(pl.col("g").is_in(["a", "b"]))
    # Outcomes of b have nothing to do with the probabilities.
    noise = pl.Series("z", np.random.default_rng(1).random(frame.height) < 0.3)
    wrong = frame.with_columns(y=pl.when(pl.col("g") == "b").then(noise).otherwise("y"))
    parts = wroc.gap_parts(wrong, "y", "p", attributes="g", adjust="holm")
    assert parts["gap_excess_verdict"].to_list() == ["different"] * 2
    for sentence in parts["sentence"]:
        assert "points" in sentence
        assert sentence.endswith("the score may know less about them; this table cannot tell.")
    assert parts["gap_excess_p_adjusted"].to_list() == pytest.approx(
        parts["gap_excess_p_value"].to_list()
    )
    # Nearly nothing is not a gap the other way, and has no sign.
    head, _, tail = parts["sentence"][0].partition(": ")
    assert head == "AUC of g a is 76.8%, of the rest 51.1%"
    assert tail.startswith("of the gap of 25.8 points, 0.0 (\N{MINUS SIGN}1.1 to 1.0) are what ")
    right = wroc.gap_parts(frame, "y", "p", attributes="g")
    assert right["gap_excess_verdict"].to_list() == ["alike"] * 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"design": wroc.ReplicateWeights(["w"], "brr")},
            "`Survey`; found replicate weights: give the clusters that they were made from instead",
        ),
        (
            {"reference": "overall"},
            "and not picked by its value; found 'overall': take 'rest' instead",
        ),
        ({"reference": "best"}, "found 'best': name the segment, as in {'sex': 'm'}, instead"),
        ({"metrics": ["tpr"]}, "`metrics` must come with a `threshold`"),
        ({"metrics": ["gini"]}, "`metrics` must be out of auc, tpr"),
        ({"clip": 0.1}, "`clip` must be None without `recalibrate`"),
        ({"recalibrate": "within"}, "`recalibrate` must be one of"),
        ({"probability": pl.col("p") * 2}, "`probability` must be a probability"),
    ],
)
def test_refused_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, pl.exceptions.PolarsError)) as error:
        wroc.gap_parts(BOTH, "y", "p", **({"attributes": "g"} | arguments))
    assert message in str(error.value)


def test_a_design_needs_labels() -> None:
    with pytest.raises(ValueError, match="`design` must come with a `label`; found no label"):
        wroc.expected_metrics(A, "p", design="g")
    with pytest.raises(pl.exceptions.PolarsError, match="`score` must be a probability"):
        wroc.expected_metrics(A, pl.col("p") * 2)
