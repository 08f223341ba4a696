"""Dominated scores: against hulls in plain numbers; and the flag for inverted scores."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from scipy.spatial import ConvexHull
from sklearn.metrics import roc_auc_score

import polars_wroc as wroc

summary_of = partial(wroc.summary, diagnostics=True)

Row: TypeAlias = tuple[int | None, tuple[float | None, ...], int]
Point: TypeAlias = tuple[Fraction, Fraction]

MODELS = ["third", "first", "second"]
SCORES = st.sampled_from([-math.inf, 0.0, 1.0, 2.0, math.inf])
ROWS: Any = st.lists(
    st.tuples(st.integers(0, 1), st.tuples(SCORES, SCORES, SCORES), st.integers(0, 4)), min_size=2
)


def frame_of(rows: list[Row], g: str | None = "a") -> pl.DataFrame:
    flat = [(g, y, *scores, w) for y, scores, w in rows]
    scores = dict.fromkeys(MODELS, pl.Float64)
    return pl.DataFrame(
        flat, {"g": pl.String, "y": pl.Int64} | scores | {"w": pl.Int64}, orient="row"
    )


def hull(rows: list[Row], model: int) -> list[Point] | None:
    """Points of the ROC curve, then those of them that no line between two others is above."""
    there = [(y, s[model], w) for y, s, w in rows if w and y is not None and None not in s]
    positives, negatives = (sum(w for y, _, w in there if y == k) for k in (1, 0))
    if not positives or not negatives:
        return None
    points = [(Fraction(0), Fraction(0))]
    for cut in sorted({s for _, s, _ in there if s is not None}, reverse=True):
        tp, fp = (
            sum(w for y, s, w in there if y == k and s is not None and s >= cut) for k in (1, 0)
        )
        points.append((Fraction(fp, negatives), Fraction(tp, positives)))
    return [point for point in points if point[1] >= height(points, point[0])]


def height(points: list[Point], x: Fraction) -> Fraction:
    """The highest line between any two points, where it passes x."""
    return max(
        y0 if x0 == x1 else y0 + (y1 - y0) * (x - x0) / (x1 - x0)
        for x0, y0 in points
        for x1, y1 in points
        if x0 <= x <= x1 and (x0 < x1 or x0 == x)
    )


def under(one: list[Point], other: list[Point]) -> bool:
    """Whether a hull is nowhere above another, and somewhere below it."""
    places = {x for x, _ in one + other}
    distances = [height(other, x) - height(one, x) for x in places]
    return min(distances) >= 0 and max(distances) > 0


def area(points: list[Point]) -> float:
    ordered = sorted(points)
    return float(sum((x1 - x0) * (y0 + y1) / 2 for (x0, y0), (x1, y1) in pairwise(ordered)))


def brute_force(rows: list[Row]) -> list[tuple[str, float | None, bool | None, list[str] | None]]:
    hulls = {name: hull(rows, k) for k, name in enumerate(MODELS)}
    found: list[Any] = []
    for name, one in hulls.items():
        if one is None:
            found.append((name, None, None, None))
            continue
        over = [other for other, points in hulls.items() if points and under(one, points)]
        found.append((name, area(one), bool(over), over))
    return found


def dominated(frame: pl.DataFrame, models: Any = MODELS, **options: Any) -> pl.DataFrame:
    return wroc.dominated_models(frame, "y", models, weight="w", **options)


def by_model(frame: pl.DataFrame, models: Any) -> dict[str, list[str] | None]:
    return dict(dominated(frame, models).select("model", "dominated_by").rows())


@given(rows=ROWS)
def test_scores_under_others_are_found_by_hulls_in_plain_numbers(rows: list[Row]) -> None:
    found = dominated(frame_of(rows))
    assert found.columns == ["model", "auc", "roc_hull_auc", "dominated", "dominated_by"]
    expected = brute_force(rows)
    assert found.select("model", "dominated", "dominated_by").rows() == [
        (name, *rest) for name, _, *rest in expected
    ]
    assert found["roc_hull_auc"].to_list() == pytest.approx([one[1] for one in expected])
    for model, auc in found.select("model", "auc").rows():
        alone = frame_of(rows).select(wroc.roc_auc("y", model, weight="w")).item()
        assert auc == (None if alone is None else pytest.approx(alone, abs=1e-12))


@given(parts=st.lists(ROWS, min_size=2, max_size=3))
def test_groups_are_as_if_alone(parts: list[list[Row]]) -> None:
    names = [None, "a", "b"][: len(parts)]
    frame = pl.concat(frame_of(rows, g) for rows, g in zip(parts, names, strict=True))
    found = dominated(frame, by="g")
    # As everywhere, a table has no row for a group without weight.
    expected = [
        (g, name, *rest)
        for rows, g in zip(parts, names, strict=True)
        if any(w for *_, w in rows)
        for name, _, *rest in brute_force(rows)
    ]
    assert found.select("g", "model", "dominated", "dominated_by").rows() == expected


def test_areas_equal_scikit_learn_and_scipy(people: pl.DataFrame) -> None:
    scores = [pl.col("s"), (pl.col("s") - pl.col("w")).alias("t")]
    found = dominated(people, scores)
    for model, values in zip(("s", "t"), people.select(*scores).iter_columns(), strict=True):
        auc, hull_auc = found.filter(model=model).select("auc", "roc_hull_auc").row(0)
        expected = roc_auc_score(people["y"], values, sample_weight=people["w"])
        assert auc == pytest.approx(expected, abs=1e-12)
        frame = people.with_columns(s=values)
        points = wroc.roc_curve(frame, "y", "s", weight="w").select("fpr", "tpr").rows()
        volume = ConvexHull([*points, (1.0, 0.0)]).volume
        assert hull_auc == pytest.approx(volume, abs=1e-9)


def test_chain_of_scores_names_all_that_are_above(people: pl.DataFrame) -> None:
    """Noise on the label, ever more of it: each is under all that have less."""
    noisy = people.sort("s", "w").with_columns(
        [(pl.col("y") * 10.0).alias("best")]
        + [
            pl.when(pl.int_range(pl.len()) % k != 0)
            .then(pl.col("y") * 10.0)
            .otherwise(5.0)
            .alias(n)
            for n, k in (("worse", 4), ("worst", 2))
        ]
    )
    expected = {"worst": ["worse", "best"], "worse": ["best"], "best": []}
    assert by_model(noisy, ["worst", "worse", "best"]) == expected
    order = ["best", "worst", "worse"]
    assert by_model(noisy, order) == {n: sorted(expected[n], key=order.index) for n in order}
    assert [*by_model(noisy, order)] == order


def test_equal_and_equally_ordered_scores_do_not_dominate_each_other(people: pl.DataFrame) -> None:
    same = people.with_columns(t="s", u=pl.col("s").arctan() * 3 - 1)
    assert by_model(same, ["s", "t", "u"]) == {"s": [], "t": [], "u": []}


def test_inverted_score_is_under_the_score_itself() -> None:
    frame = pl.DataFrame({"y": [1, 0, 1, 0], "a": [4, 3, 2, 1], "w": 1}).with_columns(
        inverted=-pl.col("a"), constant=0
    )
    found = by_model(frame, ["inverted", "a", "constant"])
    # The hull of an inverted score is the diagonal, as that of a score that knows nothing.
    assert found == {"inverted": ["a"], "a": [], "constant": ["a"]}
    assert dominated(frame, ["inverted", "a"])["auc"].to_list() == [0.25, 0.75]


def test_hulls_that_cross_leave_both_undominated() -> None:
    frame = pl.DataFrame({"y": [1, 1, 0, 0], "w": 1, "a": [4, 1, 3, 2], "b": [4, 3, 5, 2]})
    assert by_model(frame, ["a", "b"]) == {"a": [], "b": []}


def test_row_that_lacks_a_score_is_left_out_of_all() -> None:
    rows: list[Row] = [
        (1, (3.0, 2.0, 1.0), 1),
        (0, (1.0, 2.0, 3.0), 2),
        (1, (2.0, 3.0, 0.0), 1),
        (0, (0.0, 2.5, 2.0), 1),
    ]
    gone: list[Row] = [(0, (9.0, None, 0.0), 3), (None, (9.0, 9.0, 9.0), 1), (1, (0.0,) * 3, 0)]
    frame = frame_of(rows + gone)
    frame = pl.concat([frame, frame_of([(1, (math.nan, 3.0, 3.0), 5)])])
    lazy = wroc.dominated_models(frame.lazy(), "y", MODELS, weight="w")
    assert_frame_equal(lazy.collect(), dominated(frame_of(rows)))


def test_one_class_group_is_null_and_columns_are_typed(people: pl.DataFrame) -> None:
    one = people.filter("y", g="a").with_columns(g=pl.lit(None, pl.String))
    scores: list[str | pl.Expr] = ["w", "s", -pl.col("limit")]
    lazy = wroc.dominated_models(pl.concat([people, one]).lazy(), "y", scores, weight="w", by="g")
    found = lazy.collect()
    types: dict[str, Any] = {
        "g": pl.String,
        "model": pl.String,
        "auc": pl.Float64,
        "roc_hull_auc": pl.Float64,
    }
    types |= {"dominated": pl.Boolean, "dominated_by": pl.List(pl.String)}
    assert found.schema == types
    assert found.columns == list(types)
    assert found["model"].to_list() == ["w", "s", "limit"] * 5
    unknown = found.filter(pl.col("g").is_null())
    assert unknown.drop("g", "model").null_count().row(0) == (3,) * 4
    known = found.filter(pl.col("g").is_not_null())
    assert known.drop("g").null_count().sum_horizontal().item() == 0
    alone = [
        dominated(part, scores).select(pl.lit(g).alias("g"), pl.all())
        for (g,), part in people.sort("g").group_by("g", maintain_order=True)
    ]
    assert_frame_equal(known, pl.concat(alone), abs_tol=1e-12)


def test_no_rows_and_fewer_than_two_scores(people: pl.DataFrame) -> None:
    none = people.lazy().clear()
    assert wroc.dominated_models(none, "y", ["s", "w"], by="g").collect().is_empty()
    found = wroc.dominated_models(none, "y", ["s", "w"]).collect()
    assert found.rows() == [("s", *[None] * 4), ("w", *[None] * 4)]
    for one in ("s", ["s"], pl.col("s")):
        with pytest.raises(ValueError, match=r"^`score` must hold two or more .*; found \['s'\]$"):
            wroc.dominated_models(people, "y", one)
    with pytest.raises(ValueError, match=r"^`by` must not take .*; found 'model'"):
        wroc.dominated_models(people, "y", ["s", "w"], by=pl.col("g").alias("model"))


# The flag of `summary`.


def test_inverted_says_that_the_whole_interval_is_below_one_half(people: pl.DataFrame) -> None:
    one = people.filter("y", g="a").with_columns(g=pl.lit("one"))
    opposite, negated = (pl.col("s") - 3 * pl.col("y")).alias("opposite"), -pl.col("s")
    scores = [pl.col("s"), negated.alias("negated"), opposite, pl.col("w")]
    lazy = summary_of(pl.concat([people, one]).lazy(), "y", scores, weight="w", by="g")
    found = lazy.collect()
    assert found.columns[-4:] == ["inverted", "k_pos", "k_neg", "ci_note"]
    assert found.schema["inverted"] == pl.Boolean
    known = found.filter(pl.col("auc").is_not_null())
    assert known["inverted"].to_list() == [high < 0.5 for high in known["auc_high"]]
    assert known.filter(model="opposite")["inverted"].all()
    assert not known.filter(model="s")["inverted"].any()
    assert found.filter(g="one")["inverted"].to_list() == [None] * 4
    # Nothing is turned around: the AUC is still that of the score as it is.
    aucs = known.filter(model="s")["auc"] + known.filter(model="negated")["auc"]
    assert aucs.to_list() == pytest.approx([1.0] * 4, abs=1e-12)
    assert (known.filter(model="negated")["auc"] < 0.5).all()
    unsure = known.filter((pl.col("auc") < 0.5) & (pl.col("auc_high") > 0.5))
    assert unsure.height > 0
    assert not unsure["inverted"].any()
