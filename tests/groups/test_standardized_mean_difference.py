"""Standardized mean differences: worked numbers and the definition in numpy."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import polars as pl
import polars.selectors as cs
import pytest
from conftest import Engine
from hypothesis import given
from hypothesis import strategies as st
from plain_roc import weight_as
from polars.testing import assert_frame_equal
from scipy import stats

import polars_wroc as wroc
from polars_wroc.groups.standardized_mean_difference import SMD_COLUMNS

UNTYPED: Any = wroc
PAIR = pl.DataFrame(
    {"g": list("aaaabbbb"), "s": [1, 2, 3, 4, 2, 4, 6, 8], "w": [1, 1, 2, 1, 1, 3, 1, 1]}
)


def of(table: pl.DataFrame, segment: str | None) -> dict[str, Any]:
    return table.filter(pl.col("segment").eq_missing(segment)).row(0, named=True)


def by_definition(
    frame: pl.DataFrame, group: str, reference: str, denominator: str, weight_type: str
) -> tuple[float, float, float, float]:
    """The standardized difference, its denominator, standard error and df, row by row."""
    s, w, g = (frame[name].to_numpy() for name in ("s", "w", "g"))
    one, other = g == group, g != group if reference == "rest" else g == reference
    everyone = np.ones(len(s), dtype=bool)

    def moments(rows: Any) -> tuple[float, float, float, float]:
        total = w[rows].sum()
        mean = (w * s)[rows].sum() / total
        squares = (w * (s - mean) ** 2)[rows].sum()
        lost = 1 if weight_type == "frequency" else (w[rows] ** 2).sum() / total
        return total, mean, squares / (total - lost), squares / total

    (w1, m1, v1, p1), (w0, m0, v0, p0), (wt, mt, vt, pt) = map(moments, (one, other, everyone))
    if denominator == "overall":
        square, parts = vt, everyone * ((s - mt) ** 2 - pt) / wt
    elif denominator == "pooled":
        square = (v1 + v0) / 2
        parts = one * ((s - m1) ** 2 - p1) / w1 / 2 + other * ((s - m0) ** 2 - p0) / w0 / 2
    else:
        square, parts = v0, other * ((s - m0) ** 2 - p0) / w0
    smd = (m1 - m0) / np.sqrt(square)
    influence = one * (s - m1) / w1 / np.sqrt(square) - other * (s - m0) / w0 / np.sqrt(square)
    influence -= smd * parts / (2 * square)
    v = w if weight_type == "frequency" else w**2
    h2 = np.array([v[rows].sum() / w[rows].sum() ** 2 for rows in (one, other)])
    parts = [(v * influence**2)[rows].sum() for rows in (one, other)] / (1 - h2)
    variance = parts.sum() + (v * influence**2)[~one & ~other].sum()
    df = variance**2 / (parts**2 * h2 / (1 - h2)).sum()
    return smd, np.sqrt(square), np.sqrt(variance), df


@pytest.mark.parametrize(
    ("options", "smd"),
    [
        ({}, -1.0801),
        ({"denominator": "pooled"}, -1.2247),
        ({"denominator": "reference"}, -0.9682),
        ({"weight": "w"}, -1.0185),
        ({"weight": wroc.frequency("w")}, -1.0577),
    ],
)
def test_worked_examples(options: dict[str, Any], smd: float) -> None:
    a = of(UNTYPED.standardized_mean_difference(PAIR, "s", attributes="g", **options), "a")
    assert a["smd"] == pytest.approx(smd, abs=5e-5)
    if not options:
        assert (a["mean_score"], a["reference_mean"], a["difference"]) == (2.5, 5, -2.5)
        assert a["sd_score"] == pytest.approx(np.std([1, 2, 3, 4], ddof=1))
        assert a["denominator_sd"] == pytest.approx(np.std(PAIR["s"].to_numpy(), ddof=1))


def test_two_groups_and_the_standard_deviation_of_a_third_are_welchs_test() -> None:
    """A denominator that is known, nearly, leaves the difference of two means."""
    random = np.random.default_rng(5)
    s, t = random.normal(size=25), random.normal(0.5, 3, size=40)
    many = np.repeat([-1e6, 1e6], 100_000)
    frame = pl.DataFrame(
        {"g": ["a"] * 25 + ["b"] * 40 + ["c"] * len(many), "s": np.concatenate([s, t, many])}
    )
    table = wroc.standardized_mean_difference(
        frame, "s", attributes="g", reference="b", min_share=0
    )
    a, welch = of(table, "a"), stats.ttest_ind(s, t, equal_var=False)
    assert a["p_value"] == pytest.approx(welch.pvalue, rel=1e-4)
    limits = np.array([a["smd_low"], a["smd_high"]]) * a["denominator_sd"]
    assert limits == pytest.approx(list(welch.confidence_interval()), rel=1e-4)


@pytest.mark.parametrize(
    ("rows", "weights", "noted"),
    [
        (25, [1.0], False),
        (24, [1.0], True),
        # Kish's effective numbers: 28 * 0.9 and 27 * 0.9.
        (28, [1.0, 2.0], False),
        (27, [1.0, 2.0], True),
    ],
)
@pytest.mark.parametrize("denominator", ["overall", "pooled", "reference"])
def test_groups_of_few_effective_rows_have_a_note_instead_of_limits(
    rows: int, weights: list[float], noted: bool, denominator: str
) -> None:
    s = np.random.default_rng(1).normal(size=rows + 100)
    w = np.append(np.resize(weights, rows), np.ones(100))
    g = ["a"] * rows + ["b"] * 100
    frame = pl.DataFrame({"g": g, "s": s, "w": w * 0.3})
    table = UNTYPED.standardized_mean_difference(
        frame, "s", attributes="g", weight="w", denominator=denominator
    )
    for row in table.iter_rows(named=True):
        assert row["smd"] is not None
        missing = {name for name in ("smd_low", "smd_high", "p_value") if row[name] is None}
        assert missing == ({"smd_low", "smd_high", "p_value"} if noted else set())
        assert row["excluded"] == ("fewer than 25 rows" if noted else None)


@pytest.mark.parametrize("weights", ["aweights", "fweights"])
@pytest.mark.parametrize("reference", ["rest", "b"])
def test_denominators_are_variances_of_numpy(weights: str, reference: str) -> None:
    s = np.array([0.1, 0.2, 0.4, 0.8, 0.9, 0.3, 0.35])
    g = np.array(list("aabbbcc"))
    w = np.array([1, 2, 1, 3, 1, 1, 4])

    def variance(rows: Any) -> float:
        return float(np.cov(s[rows], **{weights: w[rows]}))

    one, other = g == "a", g != "a" if reference == "rest" else g == reference
    squares = {
        "overall": variance(g != ""),
        # As in Austin (2009), and in the packages tableone and cobalt.
        "pooled": (variance(one) + variance(other)) / 2,
        "reference": variance(other),
    }
    difference = np.average(s[one], weights=w[one]) - np.average(s[other], weights=w[other])
    for denominator, square in squares.items():
        a = of(
            UNTYPED.standardized_mean_difference(
                pl.DataFrame({"g": g, "s": s, "w": w}), "s", attributes="g",
                denominator=denominator, reference=reference,
                weight=wroc.frequency("w") if weights == "fweights" else "w",
            ),
            "a",
        )  # fmt: skip
        assert a["denominator_sd"] == pytest.approx(np.sqrt(square))
        assert a["smd"] == pytest.approx(difference / np.sqrt(square))


def test_pooled_variances_count_alike_in_groups_of_different_sizes() -> None:
    frame = pl.DataFrame({"g": list("aabbb"), "s": [0.1, 0.2, 0.4, 0.8, 0.9]})
    for reference in ("rest", "b"):
        a = of(
            UNTYPED.standardized_mean_difference(
                frame, "s", attributes="g", denominator="pooled", reference=reference
            ),
            "a",
        )
        variances = np.var([0.1, 0.2], ddof=1), np.var([0.4, 0.8, 0.9], ddof=1)
        assert a["denominator_sd"] == pytest.approx(np.sqrt(np.mean(variances)))
        assert a["denominator_sd"] == pytest.approx(0.1936, abs=5e-5)


@given(
    st.integers(0, 10**6),
    st.sampled_from(["overall", "pooled", "reference"]),
    st.sampled_from(["rest", "a"]),
    st.sampled_from(["probability", "frequency"]),
    st.sampled_from([0.0, 1e6]),
)
def test_against_the_definition(
    seed: int, denominator: str, reference: str, weight_type: str, offset: float
) -> None:
    random = np.random.default_rng(seed)
    size = int(random.integers(160, 250))
    frame = pl.DataFrame(
        {
            "g": ["a", "b", "c"] * 3 + list(random.choice(list("abc"), size - 9)),
            "s": offset + random.normal(size=size) ** 3,
            "w": random.integers(1, 5, size).astype(float),
        }
    )
    table = UNTYPED.standardized_mean_difference(
        frame, "s", attributes="g", weight=weight_as("w", weight_type), denominator=denominator,
        reference=reference, level=0.9,
    )  # fmt: skip
    exact = 1e-9 if offset == 0 else 1e-6
    for group in "abc":
        row = of(table, group)
        if group == reference:
            assert (row["difference"], row["smd"], row["smd_low"], row["p_value"]) == (
                0,
                0,
                None,
                None,
            )
            continue
        given = reference, denominator, weight_type
        smd, denominator_sd, se, df = by_definition(frame, group, *given)
        assert row["smd"] == pytest.approx(smd, rel=exact, abs=exact)
        assert row["denominator_sd"] == pytest.approx(denominator_sd, rel=exact)
        margin = stats.t.ppf(0.95, df) * se
        limits = [row["smd_low"], row["smd_high"]]
        assert limits == pytest.approx([smd - margin, smd + margin], rel=exact, abs=exact)
        assert row["p_value"] == pytest.approx(2 * stats.t.sf(abs(smd) / se, df), abs=1e-6)


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_probability_weights_have_no_scale(scale: float) -> None:
    options: dict[str, Any] = {"weight": "w", "attributes": "g"}
    frames = PAIR, PAIR.with_columns(pl.col("w") * scale)
    one, other = (wroc.standardized_mean_difference(f, "s", **options) for f in frames)
    weights = cs.contains("weight")
    assert_frame_equal(one.drop(weights), other.drop(weights), rel_tol=1e-9)


def test_attributes_crossed_unknown_and_small() -> None:
    random = np.random.default_rng(8)
    frame = pl.DataFrame(
        {
            "g": random.choice(["a", "b", "c", "?"], 4000, p=[0.5, 0.44, 0.01, 0.05]),
            "h": random.choice(["x", "y"], 4000),
            "s": random.normal(size=4000),
        }
    )
    table = wroc.standardized_mean_difference(
        frame, "s", attributes=["g", "h"], intersections=True, unknown=["?"]
    )
    assert table["attribute"].unique(maintain_order=True).to_list() == ["g", "h", "g × h"]  # noqa: RUF001
    by_g = table.filter(attribute="g")
    assert by_g["segment"].to_list() == ["a", "b", "c", None]
    assert by_g["excluded"].to_list() == [None, None, "small share", "unknown"]
    assert by_g["p_value"].is_null().to_list() == [False, False, True, True]
    assert by_g["smd_low"].is_null().to_list() == [False, False, False, True]
    assert by_g["reference"].to_list() == ["rest", "rest", "rest", None]
    # The rest are the known ones, and the denominator is that of all rows.
    b = of(by_g, "b")
    rest = frame.filter(pl.col("g").is_in(["a", "c"]))["s"]
    assert b["reference_mean"] == pytest.approx(rest.mean())
    assert b["denominator_sd"] == pytest.approx(frame["s"].std())
    alone = wroc.standardized_mean_difference(frame, "s", attributes="h")
    assert_frame_equal(table.filter(attribute="h"), alone)
    named = wroc.standardized_mean_difference(
        frame, "s", attributes=["g", "h"], intersections=True, reference={"h": "x"}
    )
    assert of(named, "y")["reference"] == "x"
    assert of(named, "a")["reference"] == "rest"
    with_x = of(named, "y")
    assert with_x["smd"] == pytest.approx(of(alone, "y")["smd"])


def test_of_several_scores() -> None:
    frame = PAIR.with_columns(t=pl.col("s") * -10)
    table = wroc.standardized_mean_difference(frame, ["s", "t"], attributes="g")
    assert table["model"].to_list() == ["s", "t", "s", "t"]
    smd = table["smd"].to_list()
    assert smd == pytest.approx([-1.0801, 1.0801, 1.0801, -1.0801], abs=5e-5)


@pytest.mark.parametrize(
    ("scores", "known"),
    [
        ([0.1, 0.1, 0.1, 0.1, 0.1, 0.1], {"mean_score", "difference"}),
        ([1, 2, 3, 4, 5, float("inf")], {"mean_score"}),
        ([1e200, 0, 0, 0, 0, 1], {"mean_score", "difference"}),
        ([None, None, float("nan"), 1, 2, 3], set()),
        ([1e-80, 2e-80, 3e-80, 2e-80, 5e-80, 0], {"mean_score", "difference", "smd"}),
    ],
)
def test_undefined_is_null(scores: list[float | None], known: set[str]) -> None:
    frame = pl.DataFrame({"g": list("aaabbb"), "s": scores}, {"g": pl.String, "s": pl.Float64})
    a = of(wroc.standardized_mean_difference(frame, "s", attributes="g", min_share=0), "a")
    numbers = ("mean_score", "difference", "smd", "smd_low", "p_value")
    assert {name for name in numbers if a[name] is not None} == known


def test_groups_of_equal_scores() -> None:
    frame = pl.DataFrame({"g": list("aaabbb"), "s": [0.1, 0.1, 0.1, 0.3, 0.3, 0.3]})
    for denominator in ("pooled", "reference"):
        table = UNTYPED.standardized_mean_difference(
            frame, "s", attributes="g", denominator=denominator
        )
        assert table["sd_score"].to_list() == [0, 0]
        assert table["denominator_sd"].null_count() == table["smd"].null_count() == 2
    overall = wroc.standardized_mean_difference(frame, "s", attributes="g")
    assert overall["smd"].to_list() == pytest.approx([-1.8257, 1.8257], abs=5e-5)


@pytest.mark.parametrize("groups", [["a"] * 3, [None] * 3, ["a", "b", None]])
def test_few_rows(groups: list[str | None]) -> None:
    frame = pl.DataFrame({"g": groups, "s": [1.0, 2.0, 4.0]}, {"g": pl.String, "s": pl.Float64})
    table = wroc.standardized_mean_difference(frame, "s", attributes="g")
    compared = set(groups) >= {"a", "b"}
    assert table["smd"].count() == (2 if compared else 0)
    assert table["sd_score"].count() == (0 if compared else 1)


def test_lazy_stays_lazy(engine: Engine) -> None:
    buffer = io.BytesIO()
    PAIR.write_parquet(buffer)
    buffer.seek(0)
    plan = wroc.standardized_mean_difference(
        pl.scan_parquet(buffer), "s", attributes="g", weight="w"
    )
    assert isinstance(plan, pl.LazyFrame)
    schema = plan.collect_schema()
    assert schema.names() == ["attribute", "segment", *SMD_COLUMNS]
    found = plan.collect(engine=engine)
    assert found.schema == schema
    assert_frame_equal(
        found, wroc.standardized_mean_difference(PAIR, "s", attributes="g", weight="w")
    )


REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "denominator": ({"denominator": "sd"}, ValueError, "^`denominator` must be one of 'overall', "),
    "no attribute": ({"attributes": None}, TypeError, "^`attributes` must name the groups"),
    "Boolean score": ({"score": pl.col("s") > 2}, TypeError, "^`score` must be numeric"),
    "one reference of two attributes": (
        {"reference": "highest", "attributes": ["g", "w"]},
        ValueError,
        "^`reference` must be 'rest' or map attributes to segments where there are several; f",
    ),
    "unknown reference": (
        {"reference": "z"},
        pl.exceptions.PolarsError,
        "^`reference` must be 'rest' or a segment of g; found no segment 'z'$",
    ),
    "negative weights": (
        {"weight": pl.col("w") - 2},
        pl.exceptions.PolarsError,
        "^`weight` must be finite and zero or more",
    ),
    "share": ({"min_share": -1}, ValueError, "^`min_share` must lie between 0 and 1"),
    "level": ({"level": 2}, ValueError, "^`level` must lie"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    arguments, kind, message = REFUSED[name]
    with pytest.raises(kind, match=message):
        UNTYPED.standardized_mean_difference(PAIR, **{"score": "s", "attributes": "g", **arguments})
