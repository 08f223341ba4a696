"""Decision curves against their definition, and numbers of the package dcurves."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_calibration import sample
from plain_rates import rate_of
from plain_roc import weight_as
from polars.testing import assert_frame_equal

import polars_wroc as wroc

Row: TypeAlias = tuple[bool, float, int]

NET = ["net_benefit", "net_benefit_low", "net_benefit_high"]
STANDARDIZED = [f"standardized_{name}" for name in NET]
COLUMNS = [
    *["threshold", "selection_rate", "prevalence", *NET, "net_benefit_all"],
    *[*STANDARDIZED, "interventions_avoided"],
]
Z = 1.959963984540054
ROWS = st.lists(
    st.tuples(st.booleans(), st.integers(0, 20).map(lambda s: s / 20), st.integers(0, 4)),
    min_size=1,
    max_size=40,
)

# By dcurves 1.1.7, which needs an older pandas: of dca(data, "y", ["s"], thresholds), for two
# prevalences, net_benefit of the model and of "all", and net_intervention_avoided.
DCURVES: dict[float | None, list[list[float]]] = {
    None: [
        [0.3921052631578948, 0.2705, 0.1984615384615384, 0.138, 0.011999999999999993],
        [0.39789473684210525, 0.285, 0.12, -0.14400000000000007, -1.8600000000000008],
        [
            -0.10999999999999864,
            -0.05799999999999983,
            0.14571428571428563,
            0.2820000000000001,
            0.4680000000000001,
        ],
    ],
    0.2: [
        [
            0.15911068763995473,
            0.05608783739624862,
            0.02052656186372935,
            0.012332527285798311,
            -0.009293510228089672,
        ],
        [0.15789473684210525, 0.0, -0.23076923076923078, -0.6000000000000001, -3.000000000000001],
        [
            0.02310306515914001,
            0.22435134958499447,
            0.4666921863183546,
            0.6123325272857985,
            0.7476766224429777,
        ],
    ],
}


def benefits(frame: pl.DataFrame, threshold: float, prevalence: float | None) -> dict[str, Any]:
    """Net benefits at a threshold, and the influence of each row on the standardized one."""
    y, s, w = (frame[name].to_numpy().astype(float) for name in "ysw")
    odds = threshold / (1 - threshold)
    chosen = (s >= threshold).astype(float)
    positives, negatives = (w * y).sum(), (w * (1 - y)).sum()
    tpr, fpr = (w * y * chosen).sum() / positives, (w * (1 - y) * chosen).sum() / negatives
    share = positives / w.sum() if prevalence is None else prevalence
    net = share * tpr - (1 - share) * odds * fpr
    standardized = net / share
    gain = chosen * (y - (1 - y) * odds)
    return {
        "selection_rate": share * tpr + (1 - share) * fpr,
        "prevalence": share,
        "net_benefit": net,
        "net_benefit_all": share - (1 - share) * odds,
        "standardized_net_benefit": standardized,
        "interventions_avoided": (net - share) / odds + 1 - share,
        "influence": (gain - net - standardized * (y - share)) / positives,
    }


@pytest.mark.parametrize(
    ("options", "threshold", "expected"),
    [
        ({}, 0.5, [0.142857, -0.142857, 0.3333, 0.2857]),
        ({}, 0.7, [-0.380952, None, None, 0.22449]),
        ({"weight": "w"}, 0.5, [0.111111, -0.111111, None, None]),
        ({"prevalence": 0.2}, 0.5, [-0.2, -0.6, None, 0.4]),
    ],
)
def test_the_worked_example(
    seven: pl.DataFrame, options: dict[str, Any], threshold: float, expected: list[float | None]
) -> None:
    row = wroc.decision_curve(seven, "y", "s", thresholds=threshold, **options).row(0, named=True)
    names = ["net_benefit", "net_benefit_all", "standardized_net_benefit", "interventions_avoided"]
    for name, value in zip(names, expected, strict=True):
        assert value is None or row[name] == pytest.approx(value, abs=5e-5)


def limits_of_net_benefit(
    frame: pl.DataFrame, threshold: float, prevalence: float | None, *, frequency: bool
) -> tuple[float, float]:
    """Combine the limits of both shares of all rows, or of both rates."""
    chosen, positive = pl.col("s") >= threshold, pl.col("y") == 1
    kinds = {"tp": chosen & positive, "fp": chosen & ~positive}
    whole = {"tp": pl.lit(value=True), "fp": pl.lit(value=True)}
    scales = {"tp": 1.0, "fp": threshold / (1 - threshold)}
    if prevalence is not None:
        whole = {"tp": positive, "fp": ~positive}
        scales = {"tp": prevalence, "fp": (1 - prevalence) * scales["fp"]}
    shares = {}
    for name, kind in kinds.items():
        sides = (frame.filter(kind), frame.filter(whole[name] & ~kind))
        rate = rate_of(*(each["w"].to_numpy() for each in sides), frequency=frequency)
        assert rate is not None
        shares[name] = [scales[name] * v for v in (rate.value, *rate.limits(0.95))]
    (a, low_a, high_a), (b, low_b, high_b) = shares.values()
    correlation = 0.0
    if prevalence is None:
        p, q = a, b / scales["fp"]
        correlation = -math.sqrt(p * q / ((1 - p) * (1 - q)))
    below, above = (
        math.sqrt(x**2 + y**2 - 2 * correlation * x * y)
        for x, y in ((a - low_a, high_b - b), (high_a - a, b - low_b))
    )
    return a - b - below, a - b + above


@pytest.mark.parametrize("weight_type", ["probability", "frequency"])
@pytest.mark.parametrize("prevalence", [None, 0.1])
def test_curves_follow_their_definition(weight_type: Any, prevalence: float | None) -> None:
    frame = sample(1).with_columns(pl.col("w").ceil())
    table = wroc.decision_curve(
        frame.lazy(), "y", "s", weight=weight_as("w", weight_type), by="g", prevalence=prevalence
    ).collect()
    percents = [percent / 100 for percent in range(1, 100)]
    assert table.select("g", "threshold").rows() == [(g, t) for g in "abc" for t in percents]
    for row in table.filter((pl.col("threshold") * 100).round() % 9 == 4).rows(named=True):
        part = frame.filter(g=row["g"])
        expected = benefits(part, row["threshold"], prevalence)
        w = part["w"].to_numpy()
        squares = w if weight_type == "frequency" else w**2
        given = part, row["threshold"], prevalence
        net = limits_of_net_benefit(*given, frequency=weight_type == "frequency")
        assert [row[name] for name in NET[1:]] == pytest.approx(net, abs=1e-9)
        influence = expected.pop("influence")
        margin = Z * math.sqrt((squares * influence**2).sum())
        value = expected["standardized_net_benefit"]
        limits = [value - margin, value + margin] if margin > 1e-12 else [None, None]
        if prevalence is not None:
            limits = [limit / prevalence for limit in net]
        assert [row[name] for name in STANDARDIZED[1:]] == pytest.approx(limits, abs=1e-9)
        assert {name: row[name] for name in expected} == pytest.approx(expected, abs=1e-12)


def test_dcurves_has_the_same_numbers() -> None:
    random = np.random.default_rng(3)
    s = random.beta(1, 2, 500)
    frame = pl.DataFrame({"y": random.random(500) < s**0.8, "s": s})
    asked = [0.05, 0.2, 0.35, 0.5, 0.8]
    for prevalence, expected in DCURVES.items():
        table = wroc.decision_curve(frame, "y", "s", thresholds=asked, prevalence=prevalence)
        names = ["net_benefit", "net_benefit_all", "interventions_avoided"]
        for name, values in zip(names, expected, strict=True):
            assert table[name].to_list() == pytest.approx(values, abs=1e-12)


@given(rows=ROWS, threshold=st.integers(1, 19).map(lambda t: t / 20))
def test_whole_weights_are_repeated_rows(rows: list[Row], threshold: float) -> None:
    schema = {"y": pl.Boolean, "s": pl.Float64, "w": pl.Int64}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    repeated = frame.select(pl.col("y", "s").repeat_by("w").explode(empty_as_null=False))
    found = wroc.decision_curve(frame, "y", "s", thresholds=threshold, weight=wroc.frequency("w"))
    expected = wroc.decision_curve(repeated, "y", "s", thresholds=threshold)
    assert_frame_equal(found, expected, abs_tol=1e-9)
    metrics = wroc.threshold_metrics(
        frame, "y", "s", threshold=threshold, weight="w", metrics="all", level=None
    )
    names = ["selection_rate", "prevalence", "net_benefit"]
    assert_frame_equal(found.select(names), metrics.select(names), abs_tol=1e-12)


def test_limits_are_null_where_the_rows_say_nothing() -> None:
    frame = sample(2)
    asked = [0.0, 0.3, 0.999]
    table = wroc.decision_curve(frame, "y", "s", thresholds=asked, weight="w")
    # At 0 all are selected, and the standardized net benefit is 1 whatever the rows.
    assert table["standardized_net_benefit"][0] == 1
    assert table["interventions_avoided"][0] is None
    assert table["net_benefit"].to_list()[::2] == [table["prevalence"][0], 0]
    known = [
        [value is not None for value in row] for row in table.select(*NET, *STANDARDIZED).rows()
    ]
    value, limits = [True], [True, True]
    none = [False, False]
    assert known == [
        value + limits + value + none,
        (value + limits) * 2,
        value + limits + value + none,
    ]


def test_what_is_undefined_is_null() -> None:
    frame = pl.DataFrame(
        {"g": ["n", "n", "p", "p", "x"], "y": [0, 0, 1, 1, 1], "s": [0.2, 0.6, 0.2, 0.6, None]}
    )
    table = wroc.decision_curve(frame, "y", "s", thresholds=0.5, by="g")
    negative, positive, missing = table.rows(named=True)
    assert negative["net_benefit"] == -0.5
    assert {negative[name] for name in STANDARDIZED} == {None}
    assert positive["net_benefit"] == positive["standardized_net_benefit"] == 0.5
    assert {missing[name] for name in COLUMNS[1:]} == {None}
    given_share = wroc.decision_curve(frame, "y", "s", thresholds=0.5, by="g", prevalence=0.3)
    assert set(given_share.select(NET).null_count().row(0)) == {3}
    empty = frame.clear()
    assert set(wroc.decision_curve(empty, "y", "s", thresholds=0.5).row(0)) == {0.5, None}
    assert wroc.decision_curve(empty, "y", "s", by="g").height == 0


@pytest.mark.parametrize("bins", [None, 64])
def test_counts_by_score_and_in_bins_give_the_curve_of_the_rows(bins: int | None) -> None:
    frame = sample(9, digits=2)
    counts = wroc.from_counts(wroc.score_counts(frame, "y", "s", weight="w", by="g", bins=bins))
    options: dict[str, Any] = {"thresholds": [0.25, 0.5]}
    for by in ("g", None):
        expected = wroc.decision_curve(frame, "y", "s", weight="w", by=by, **options)
        assert_frame_equal(counts.decision_curve(by=by, **options), expected, abs_tol=1e-9)
    if bins:
        with pytest.raises(ValueError, match="`thresholds` must not be inside a bin"):
            counts.decision_curve(thresholds=0.253)


def test_a_decision_curve_refuses_wrong_thresholds_and_scores() -> None:
    frame = sample(8)
    for bad in (1.5, -0.1, math.inf):
        off = frame.with_columns(s=pl.when(pl.int_range(pl.len()) == 3).then(bad).otherwise("s"))
        with pytest.raises(ValueError, match=f"`score` must be a probability.*{bad}"):
            wroc.decision_curve(off, "y", "s", by="g")
    with pytest.raises(ValueError, match=r"`thresholds` must lie between 0 and 1; found -0\.5"):
        wroc.decision_curve(frame, "y", "s", thresholds=[-0.5, 0.5])
    with pytest.raises(ValueError, match=r"`thresholds` must be less than 1.*; found 1"):
        wroc.decision_curve(frame, "y", "s", thresholds=[0.5, 1])
    with pytest.raises(ValueError, match="`thresholds` must hold at least one number"):
        wroc.decision_curve(frame, "y", "s", thresholds=[])
    with pytest.raises(ValueError, match=r"`by` must not take .* found 'net_benefit'"):
        wroc.decision_curve(frame.rename({"g": "net_benefit"}), "y", "s", by="net_benefit")


@pytest.mark.parametrize("given", [{}, {"prevalence": 0.2}])
def test_the_net_benefit_has_the_limits_of_threshold_metrics(given: dict[str, Any]) -> None:
    random = np.random.default_rng(11)
    score = random.random(400)
    frame = pl.DataFrame({"y": random.random(400) < score, "s": score})
    thresholds, names = [0.2, 0.5], ["net_benefit", "net_benefit_low", "net_benefit_high"]
    curve = wroc.decision_curve(frame, "y", "s", thresholds=thresholds, **given)
    table = wroc.threshold_metrics(
        frame, "y", "s", threshold=thresholds, metrics=["net_benefit"], **given
    )
    assert_frame_equal(curve.select(names), table.sort("threshold").select(names))
