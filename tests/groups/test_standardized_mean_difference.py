"""Standardized mean differences as gaps: worked numbers and the definition in numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from conftest import INVALID_VALUES
from hypothesis import given
from hypothesis import strategies as st
from plain_roc import weight_as
from polars.testing import assert_frame_equal
from scipy import stats

import polars_wroc as wroc

METRIC = "standardized_mean_difference"
PAIR = pl.DataFrame(
    {"g": list("aaaabbbb"), "s": [1, 2, 3, 4, 2, 4, 6, 8], "w": [1, 1, 2, 1, 1, 3, 1, 1]}
)
ENDS = ("gap_low", "gap_high", "p_value")


def gaps_of(frame: Any, score: Any = "s", **options: Any) -> Any:
    given: dict[str, Any] = {"attributes": "g", "adjust": "none"} | options
    return wroc.group_gaps(frame, score=score, metrics=[METRIC], **given, min_rows=0)


def of(table: pl.DataFrame, segment: str | None) -> dict[str, Any]:
    return table.filter(pl.col("segment").eq_missing(segment)).row(0, named=True)


def by_definition(
    frame: pl.DataFrame, group: str, reference: str, weight_type: str
) -> tuple[float, float, float]:
    """The standardized difference, its standard error and df, row by row."""
    s, w, g = (frame[name].to_numpy() for name in ("s", "w", "g"))
    one, other = g == group, g != group if reference == "rest" else g == reference
    everyone = np.ones(len(s), dtype=bool)

    def moments(rows: Any) -> tuple[float, float, float, float]:
        total = w[rows].sum()
        mean = (w * s)[rows].sum() / total
        squares = (w * (s - mean) ** 2)[rows].sum()
        lost = 1 if weight_type == "frequency" else (w[rows] ** 2).sum() / total
        return total, mean, squares / (total - lost), squares / total

    (w1, m1, _, _), (w0, m0, _, _), (wt, mt, square, pt) = map(moments, (one, other, everyone))
    smd = (m1 - m0) / np.sqrt(square)
    influence = one * (s - m1) / w1 / np.sqrt(square) - other * (s - m0) / w0 / np.sqrt(square)
    influence -= smd * ((s - mt) ** 2 - pt) / wt / (2 * square)
    v = w if weight_type == "frequency" else w**2
    h2 = np.array([v[rows].sum() / w[rows].sum() ** 2 for rows in (one, other)])
    parts = [(v * influence**2)[rows].sum() for rows in (one, other)] / (1 - h2)
    variance = parts.sum() + (v * influence**2)[~one & ~other].sum()
    # Frequency weights are numbers of rows of weight 1.
    each = np.ones(len(s)) if weight_type == "frequency" else w
    number = w if weight_type == "frequency" else np.ones(len(s))

    def concentration(rows: Any, mean: float) -> float:
        d = (s - mean)[rows]
        second, third, squares = (
            (number[rows] * each[rows] ** power * d**degree).sum()
            for power, degree in ((2, 4), (3, 4), (2, 2))
        )
        return float(third**2 / second / squares**2)

    carried = [concentration(rows, mean) for rows, mean in ((one, m1), (other, m0))]
    df = variance**2 / (parts**2 * np.maximum(h2 / (1 - h2), carried)).sum()
    return smd, np.sqrt(variance), df


@pytest.mark.parametrize(
    ("options", "smd"),
    [({}, -1.0801), ({"weight": "w"}, -1.0185), ({"weight": wroc.frequency("w")}, -1.0577)],
)
def test_worked_examples(options: dict[str, Any], smd: float) -> None:
    a = of(gaps_of(PAIR, **options), "a")
    assert a["gap"] == pytest.approx(smd, abs=5e-5)
    assert a["gap"] == pytest.approx(a["value"] - a["reference_value"])
    if not options:
        z = (PAIR["s"] - PAIR["s"].mean()) / PAIR["s"].std()
        means = [z[:4].mean(), z[4:].mean()]
        assert [a["value"], a["reference_value"]] == pytest.approx(means)
        assert (a["metric"], a["model"], a["n"], a["n_reference"]) == (METRIC, "s", 4, 4)
        assert a["ratio"] is None


def test_the_standard_deviation_of_a_third_group_leaves_welchs_statistic() -> None:
    """A denominator that is known, nearly, leaves the difference of two means."""
    random = np.random.default_rng(5)
    s, t = random.normal(size=25), random.normal(0.5, 3, size=40)
    many = np.repeat([-1e6, 1e6], 100_000)
    frame = pl.DataFrame(
        {"g": ["a"] * 25 + ["b"] * 40 + ["c"] * len(many), "s": np.concatenate([s, t, many])}
    )
    a = of(gaps_of(frame, reference="b"), "a")
    welch = stats.ttest_ind(s, t, equal_var=False)
    # Satterthwaite's degrees of freedom, of the rows that carry each variance.
    variances = [each.var(ddof=1) / len(each) for each in (s, t)]
    squares = [(each - each.mean()) ** 2 for each in (s, t)]
    number = [each.sum() ** 2 / (each**2).sum() for each in squares]
    df = sum(variances) ** 2 / sum(v**2 / k for v, k in zip(variances, number, strict=True))
    assert df < 0.7 * welch.df
    assert a["p_value"] == pytest.approx(2 * stats.t.sf(abs(welch.statistic), df), rel=1e-4)
    margin = stats.t.ppf(0.975, df) * sum(variances) ** 0.5
    limits = np.array([a["gap_low"], a["gap_high"]]) * frame["s"].std()
    assert limits == pytest.approx(s.mean() - t.mean() + np.array([-margin, margin]), rel=1e-4)


def test_a_row_that_carries_the_variance_leaves_one_degree_of_freedom() -> None:
    # 40 of 41 rows of group a are equal.
    random = np.random.default_rng(6)
    frame = pl.DataFrame(
        {"g": ["a"] * 41 + ["b"] * 4000, "s": [0.0] * 40 + [50.0, *random.normal(size=4000)]}
    )
    a = of(gaps_of(frame), "a")
    d = np.append(np.full(40, -50 / 41), 50 - 50 / 41)
    df = (d**2).sum() ** 2 / (d**4).sum()
    assert df < 1.1
    margin, error = ((a["gap_high"] - a["gap"]), abs(a["gap"]) / stats.t.isf(a["p_value"] / 2, df))
    assert margin / error == pytest.approx(stats.t.ppf(0.975, df), rel=0.02)


@pytest.mark.parametrize(
    ("rows", "weights", "few"),
    [
        (25, [1.0], False),
        (24, [1.0], True),
        # Kish's effective numbers: 28 * 0.9 and 27 * 0.9.
        (28, [1.0, 2.0], False),
        (27, [1.0, 2.0], True),
    ],
)
def test_groups_of_few_effective_rows_have_a_reason_instead_of_limits(
    rows: int, weights: list[float], few: bool
) -> None:
    s = np.random.default_rng(1).normal(size=rows + 100)
    w = np.append(np.resize(weights, rows), np.ones(100))
    g = ["a"] * rows + ["b"] * 100
    table = gaps_of(pl.DataFrame({"g": g, "s": s, "w": w * 0.3}), weight="w")
    for row in table.iter_rows(named=True):
        assert row["gap"] is not None
        assert {name for name in ENDS if row[name] is None} == ({*ENDS} if few else set())
        assert (row["detectable"] is None) == few
    repeats = [None, "repeats a"]
    assert table["reason"].to_list() == (["fewer than 25 rows"] * 2 if few else repeats)


@pytest.mark.parametrize("reference", ["rest", "a"])
@given(
    seed=st.integers(0, 10**6),
    weight_type=st.sampled_from(["probability", "frequency"]),
    offset=st.sampled_from([0.0, 1e6]),
)
def test_against_the_definition(seed: int, reference: str, weight_type: str, offset: float) -> None:
    random = np.random.default_rng(seed)
    size = int(random.integers(160, 250))
    frame = pl.DataFrame(
        {
            "g": ["a", "b", "c"] * 3 + list(random.choice(list("abc"), size - 9)),
            "s": offset + random.normal(size=size) ** 3,
            "w": random.integers(1, 5, size).astype(float),
        }
    )
    table = gaps_of(frame, weight=weight_as("w", weight_type), reference=reference, level=0.9)
    exact = 1e-9 if offset == 0 else 1e-6
    for group in "abc":
        row = of(table, group)
        if group == reference:
            assert [row[name] for name in ("gap", *ENDS)] == [None] * 4
            assert row["reason"] == "the reference"
            continue
        smd, se, df = by_definition(frame, group, reference, weight_type)
        assert row["gap"] == pytest.approx(smd, rel=exact, abs=exact)
        margin = stats.t.ppf(0.95, df) * se
        limits = [row["gap_low"], row["gap_high"]]
        assert limits == pytest.approx([smd - margin, smd + margin], rel=exact, abs=exact)
        assert row["p_value"] == pytest.approx(2 * stats.t.sf(abs(smd) / se, df), abs=1e-6)
        detectable = (stats.t.ppf(0.95, df) + stats.norm.ppf(0.8)) * se
        assert row["detectable"] == pytest.approx(detectable, rel=exact)


def test_scores_whose_variance_underflows_have_no_difference() -> None:
    frame = pl.DataFrame({"g": ["a"] * 30 + ["b"] * 30, "s": [1e-200] * 30 + [0.0] * 30})
    assert gaps_of(frame)["gap"].null_count() == 2


def test_by_a_design_no_limits_where_squared_weights_of_the_reference_underflow() -> None:
    random = np.random.default_rng(4)
    frame = pl.DataFrame(
        {"g": ["a", "b"] * 60, "s": random.normal(size=120), "u": np.arange(120) % 12}
    ).with_columns(w=pl.when(g="b").then(1e-170).otherwise(1.0))
    for segment, reference in (("a", "b"), ("b", "a")):
        row = of(gaps_of(frame, weight="w", design="u", reference=reference), segment)
        assert row["gap"] is not None
        assert [row[name] for name in (*ENDS, "value_low", "value_high")] == [None] * 5


def test_a_segment_differs_from_all_rows_by_its_value() -> None:
    random = np.random.default_rng(3)
    frame = pl.DataFrame(
        {"g": random.choice(list("abc"), 300), "s": random.normal(size=300), "w": 1.5}
    )
    overall, rest = (gaps_of(frame, weight="w", reference=kind) for kind in ("overall", "rest"))
    assert overall["reference_value"].to_list() == pytest.approx([0, 0, 0], abs=1e-12)
    for end in ("", "_low", "_high"):
        assert overall[f"gap{end}"].to_list() == pytest.approx(overall[f"value{end}"].to_list())
        assert rest[f"value{end}"].to_list() == pytest.approx(overall[f"value{end}"].to_list())
    assert overall["p_value"].to_list() == pytest.approx(rest["p_value"].to_list())
    # 1 - share of the segment
    share = 1 - frame.group_by("g").len().sort("g")["len"] / 300
    assert (overall["gap"] / rest["gap"]).to_list() == pytest.approx(share.to_list())


def test_missing_values_are_a_segment_and_in_the_rest() -> None:
    random = np.random.default_rng(8)
    frame = pl.DataFrame(
        {
            "g": random.choice(["a", "b", ""], 400),
            "h": random.choice(["x", "y"], 400),
            "s": random.normal(size=400),
        }
    ).with_columns(g=pl.when(pl.col("g") != "").then("g"))
    table = gaps_of(frame, attributes=["g", "h"], intersections=True)
    assert table["attribute"].unique(maintain_order=True).to_list() == ["g", "h", "g × h"]  # noqa: RUF001
    by_g = table.filter(attribute="g")
    assert by_g["segment"].to_list() == [None, "a", "b"]
    z = (frame["s"] - frame["s"].mean()) / frame["s"].std()
    rest = z.filter(frame["g"].ne_missing("a"))
    assert of(by_g, "a")["reference_value"] == pytest.approx(rest.mean())
    assert_frame_equal(table.filter(attribute="h"), gaps_of(frame, attributes="h"))


def test_of_several_scores() -> None:
    frame = PAIR.with_columns(t=pl.col("s") * -10)
    table = gaps_of(frame, ["s", "t"])
    assert table["model"].to_list() == ["s", "t", "s", "t"]
    smd = table["gap"].to_list()
    assert smd == pytest.approx([-1.0801, 1.0801, 1.0801, -1.0801], abs=5e-5)


@pytest.mark.parametrize(
    "scores",
    [
        [0.1, 0.1, 0.1, 0.1, 0.1, 0.1],
        [1, 2, 3, 4, 5, float("inf")],
        [1e200, 0, 0, 0, 0, 1],
        [None, None, float("nan"), 1, 2, 3],
    ],
)
def test_undefined_is_null(scores: list[float | None]) -> None:
    frame = pl.DataFrame({"g": list("aaabbb"), "s": scores}, {"g": pl.String, "s": pl.Float64})
    a = of(gaps_of(frame), "a")
    assert [a[name] for name in ("value", "gap", *ENDS)] == [None] * 5
    assert a["reason"] == "undefined"


def test_groups_of_equal_scores() -> None:
    frame = pl.DataFrame({"g": list("aaabbb"), "s": [0.1, 0.1, 0.1, 0.3, 0.3, 0.3]})
    assert gaps_of(frame)["gap"].to_list() == pytest.approx([-1.8257, 1.8257], abs=5e-5)
    # Nothing but rounding is left of the variance.
    many = gaps_of(pl.concat([frame] * 20))
    assert many["gap_low"].to_list() == [None, None]
    assert many["reason"].to_list() == ["no variance", "no variance"]


@pytest.mark.parametrize("groups", [["a"] * 3, [None] * 3, ["a", "b", None]])
def test_few_rows(groups: list[str | None]) -> None:
    frame = pl.DataFrame({"g": groups, "s": [1.0, 2.0, 4.0]}, {"g": pl.String, "s": pl.Float64})
    several = len({*groups}) > 1
    assert gaps_of(frame)["gap"].count() == (3 if several else 0)


def test_mean_scores_need_no_label_and_counts_have_the_rows_with_one() -> None:
    random = np.random.default_rng(11)
    frame = pl.DataFrame(
        {
            "g": random.choice(["a", "b"], 200),
            "s": random.integers(0, 9, 200),
            "w": random.lognormal(size=200),
            "y": random.choice([0, 1, 2], 200, p=[0.6, 0.3, 0.1]),
        }
    ).with_columns(y=pl.when(pl.col("y") < 2).then("y"))
    options: dict[str, Any] = {"attributes": "g", "metrics": [METRIC], "adjust": "none"}
    labeled = wroc.group_gaps(frame, "y", "s", weight="w", **options, min_rows=0)
    assert_frame_equal(labeled, gaps_of(frame, weight="w"), rel_tol=1e-9)
    labeled = gaps_of(frame.drop_nulls("y"), weight="w")
    counts = wroc.score_counts(frame, "y", "s", weight="w", by="g")
    found = wroc.from_counts(counts).group_gaps(**options, min_rows=0)
    assert_frame_equal(found, labeled.with_columns(model=pl.lit("score")), rel_tol=1e-9)
    bins = wroc.score_counts(frame, "y", "s", weight="w", by="g", bins=1024)
    with pytest.raises(ValueError, match=r"^`counts` must be by score for mean scores"):
        wroc.from_counts(bins).group_gaps(**options, min_rows=0)


def test_selection_rates_need_no_label_either() -> None:
    options: dict[str, Any] = {"attributes": "g", "threshold": 3}
    metrics = ["selection_rate", METRIC]
    found = wroc.group_gaps(PAIR, score="s", metrics=metrics, **options, min_rows=0)
    labeled = PAIR.with_columns(y=pl.int_range(pl.len()) % 2)
    assert_frame_equal(
        found, wroc.group_gaps(labeled, "y", "s", metrics=metrics, **options, min_rows=0)
    )


REFUSED: dict[str, tuple[dict[str, Any], Any, str]] = {
    "no attribute": ({"attributes": None}, TypeError, "^`attributes` must name the groups"),
    "no score": ({"score": None}, ValueError, "^`metrics` must come with a `score` for standard"),
    "Boolean score": ({"score": pl.col("s") > 2}, TypeError, "^`score` must be numeric"),
    "a metric of a label": (
        {"metrics": [METRIC, "auc"]},
        ValueError,
        "^`label` must be given for auc; found None$",
    ),
    "a reference by the AUC": (
        {"reference": "best"},
        ValueError,
        "^`reference` must be 'rest', 'overall' or a segment without a `label`; found 'best'$",
    ),
    "one reference of two attributes": (
        {"reference": "highest", "attributes": ["g", "w"]},
        ValueError,
        "map attributes to segments where there are several; found 'highest'$",
    ),
    "unknown reference": ({"reference": "z"}, ValueError, "found no segment 'z'$"),
    "negative weights": (
        {"weight": pl.col("w") - 2},
        INVALID_VALUES,
        "^`weight` must be finite and zero or more",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_mean_differences_refuse_wrong_metrics_and_counts(name: str) -> None:
    arguments, kind, message = REFUSED[name]
    given: dict[str, Any] = {"score": "s", "attributes": "g", "metrics": [METRIC], **arguments}
    with pytest.raises(kind, match=message):
        wroc.group_gaps(PAIR, **given, min_rows=0)
