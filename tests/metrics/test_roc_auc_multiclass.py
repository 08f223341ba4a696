"""AUCs of several classes: against scikit-learn and against counting pairs."""

from __future__ import annotations

import io
import math
from itertools import permutations
from typing import Any, TypeAlias

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.exceptions import InvalidOperationError
from polars.testing import assert_frame_equal
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import label_binarize
from sweeps import sweep

import polars_wroc as wroc

Row: TypeAlias = tuple[str | None, tuple[float | None, ...], int]

CLASSES = ["a", "b", "c", "d"]
SCORES = {name: f"score_{name}" for name in CLASSES}
OVR: dict[str, Any] = {"multi_class": "ovr"}
OVO: dict[str, Any] = {"multi_class": "ovo"}
OPTIONS: dict[str, dict[str, Any]] = {
    "ovr macro": OVR | {"average": "macro"},
    "ovr weighted": OVR | {"average": "weighted"},
    "ovr micro": OVR | {"average": "micro"},
    "ovo macro": OVO | {"average": "macro"},
    "ovo weighted": OVO | {"average": "weighted"},
}
VALUES = st.sampled_from([-math.inf, 0.0, 1.0, 2.0, math.inf])
ROWS: Any = st.lists(
    st.tuples(
        st.sampled_from([*CLASSES, None]), st.tuples(*[VALUES] * len(CLASSES)), st.integers(0, 4)
    ),
    max_size=16,
)


def frame_of(rows: list[Row]) -> pl.DataFrame:
    flat = [(y, *scores, w) for y, scores, w in rows]
    scores = dict.fromkeys(SCORES.values(), pl.Float64)
    return pl.DataFrame(flat, {"y": pl.String} | scores | {"w": pl.Int64}, orient="row")


@pytest.fixture
def judged() -> pl.DataFrame:
    """300 weighted rows in three groups, of four classes, with tied probabilities."""
    random = np.random.default_rng(7)
    rows, kinds = 300, random.dirichlet(np.ones(4), 20)
    guess = kinds[random.integers(20, size=rows)]
    label = [random.choice(4, p=row / 2 + 1 / 8) for row in guess]
    return pl.DataFrame(guess, schema=[*SCORES.values()]).with_columns(
        pl.Series("y", [CLASSES[k] for k in label]),
        pl.Series("w", random.lognormal(size=rows)),
        pl.Series("g", random.choice(["x", "y", "z"], rows)),
    )


def auc(
    frame: pl.DataFrame, *, scores: Any = None, weight: str | None = "w", **options: Any
) -> Any:
    found = wroc.roc_auc_multiclass("y", scores or SCORES, weight=weight, **options)
    return frame.select(found).item()


def pairs(ours: list[tuple[float, int]], theirs: list[tuple[float, int]]) -> float | None:
    """AUC by counting, of scores and weights."""
    won = [w * v * ((s > t) + (s == t) / 2) for s, w in ours for t, v in theirs]
    total = sum(w for _, w in ours) * sum(v for _, v in theirs)
    return sum(won) / total if total else None


def by_counting(rows: list[Row], multi_class: str, average: str) -> float | None:
    def weights(name: str, classes: list[str]) -> list[tuple[float, int]]:
        place = CLASSES.index(name)
        return [(s[place] or 0.0, w) for y, s, w in rows if y in classes]

    rest = {name: [other for other in CLASSES if other != name] for name in CLASSES}
    if average == "micro":
        ours = [one for name in CLASSES for one in weights(name, [name])]
        return pairs(ours, [one for name in CLASSES for one in weights(name, rest[name])])
    contests = [(name, rest[name]) for name in CLASSES]
    if multi_class == "ovo":
        contests = [(name, [other]) for name, other in permutations(CLASSES, 2)]
    total = count = 0.0
    for name, others in contests:
        counted = [name] if multi_class == "ovr" else [name, *others]
        size = sum(w for _, w in weights(name, counted)) if average == "weighted" else 1
        value = pairs(weights(name, [name]), weights(name, others))
        total, count = total + (value or 0.0) * size, count + (value is not None) * size
    return total / count if count else None


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", OPTIONS)
def test_equals_scikit_learn(judged: pl.DataFrame, name: str, weighted: bool) -> None:
    options = OPTIONS[name]
    if weighted and options["multi_class"] == "ovo":
        judged = judged.with_columns(w=pl.col("w").ceil().cast(pl.Int64))
        rows = judged.select(pl.all().repeat_by("w").explode(empty_as_null=False))
        weights = None
    else:
        rows, weights = judged, judged["w"] if weighted else None
    expected = roc_auc_score(
        rows["y"],
        rows.select(SCORES.values()).to_numpy(),
        labels=CLASSES,
        sample_weight=weights,
        **options,
    )
    found = auc(judged, weight="w" if weighted else None, **options)
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", OPTIONS)
@given(rows=ROWS)
def test_equals_counting_of_weighted_pairs(name: str, rows: list[Row]) -> None:
    """Ties, infinite scores, null labels, weights of 0, and classes that are not there."""
    expected = by_counting(rows, **OPTIONS[name])
    found = auc(frame_of(rows), **OPTIONS[name])
    assert found == (None if expected is None else pytest.approx(expected, abs=1e-12))


@pytest.mark.parametrize("average", ["macro", "weighted"])
def test_class_that_is_absent_is_left_out(judged: pl.DataFrame, average: str) -> None:
    three = judged.filter(pl.col("y") != "d")
    scores = {name: SCORES[name] for name in "abc"}
    for base in (OVR, OVO):
        options = base | {"average": average}
        expected = auc(three, scores=scores, **options)
        assert auc(three, **options) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", OPTIONS)
def test_two_classes_give_the_auc(judged: pl.DataFrame, name: str) -> None:
    two = judged.filter(pl.col("y").is_in(["a", "b"]))
    y, w, columns = two["y"] == "a", two["w"], [SCORES["a"], SCORES["b"]]
    if OPTIONS[name]["average"] == "micro":
        binary = np.column_stack([y, ~y]).ravel()
        scores = two.select(columns).to_numpy().ravel()
        expected = roc_auc_score(binary, scores, sample_weight=np.repeat(w, 2))
    else:
        one, other = (
            roc_auc_score(label, two[column], sample_weight=w)
            for label, column in zip((y, ~y), columns, strict=True)
        )
        share = np.average(y, weights=w) if name == "ovr weighted" else 0.5
        expected = share * one + (1 - share) * other
    found = auc(two, scores={k: SCORES[k] for k in "ab"}, **OPTIONS[name])
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", sweep(OPTIONS, fast=2))
@pytest.mark.parametrize(
    ("dtype", "classes"),
    [
        (pl.Int64, [3, 1, 2, -7]),
        (pl.UInt8, [3, 0, 2, 255]),
        (pl.Float64, [0.5, 1.0, -2.0, 3.0]),
        (pl.Enum(["d", "a", "b", "c"]), CLASSES),
        (pl.Categorical, CLASSES),
    ],
)
def test_labels_of_each_type(
    judged: pl.DataFrame, dtype: Any, classes: list[Any], name: str
) -> None:
    encoded = judged.with_columns(
        y=pl.Series([classes[CLASSES.index(y)] for y in judged["y"]], dtype=dtype)
    )
    scores = dict(zip(classes, SCORES.values(), strict=True))
    found = auc(encoded, scores=scores, **OPTIONS[name])
    assert found == pytest.approx(auc(judged, **OPTIONS[name]), abs=1e-12)


@pytest.mark.parametrize("name", OPTIONS)
def test_boolean_labels(judged: pl.DataFrame, name: str) -> None:
    two = judged.with_columns(y=pl.col("y").is_in(["a", "b"]))
    texts = two.with_columns(pl.col("y").cast(pl.String))
    columns = pl.col("score_a") + pl.col("score_b"), pl.col("score_c")
    expected = auc(
        texts, scores=dict(zip(("true", "false"), columns, strict=True)), **OPTIONS[name]
    )
    found = auc(two, scores=dict(zip((True, False), columns, strict=True)), **OPTIONS[name])
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("missing", [None, math.nan])
def test_row_without_a_score_is_left_out_where_the_score_is_used(
    judged: pl.DataFrame, missing: float | None
) -> None:
    gone = pl.int_range(pl.len()) % 3 == 0
    lacking = judged.with_columns(score_a=pl.when(gone).then(pl.lit(missing)).otherwise("score_a"))
    parts = []
    for name, column in SCORES.items():
        rows = judged.filter(~gone) if name == "a" else judged
        parts.append(roc_auc_score(rows["y"] == name, rows[column], sample_weight=rows["w"]))
    assert auc(lacking) == pytest.approx(np.mean(parts), abs=1e-12)
    binary = label_binarize(judged["y"], classes=CLASSES).astype(bool)
    there = np.ones_like(binary)
    there[:, 0] = np.arange(judged.height) % 3 != 0
    weights = np.broadcast_to(judged["w"].to_numpy()[:, None], binary.shape)
    scores = judged.select(SCORES.values()).to_numpy()
    pooled = roc_auc_score(binary[there], scores[there], sample_weight=weights[there])
    assert auc(lacking, average="micro") == pytest.approx(pooled, abs=1e-12)


@pytest.mark.slow(reason="computes many tables")
def test_groups_windows_and_frames(judged: pl.DataFrame) -> None:
    extra = pl.DataFrame({"y": ["a", "a", None], "w": [1.0, 2.0, 1.0], "g": [None, None, "none"]})
    frame = pl.concat([judged, extra.with_columns(score_a=0.1)], how="diagonal")
    measures = [
        wroc.roc_auc_multiclass("y", SCORES, weight="w", **options).alias(name)
        for name, options in OPTIONS.items()
    ]
    lazy = frame.lazy().group_by("g").agg(measures).sort("g")
    found = lazy.collect()
    assert found.schema == {"g": pl.String} | dict.fromkeys(OPTIONS, pl.Float64)
    for g, *values in found.rows():
        alone = frame.filter(pl.col("g").eq_missing(pl.lit(g))).select(measures).row(0)
        assert values == pytest.approx(alone, abs=1e-12)
        assert (values == [None] * 5) == (g in (None, "none"))
    windows = frame.lazy().select("g", *(one.over("g") for one in measures)).unique().sort("g")
    assert_frame_equal(windows.collect(), found, abs_tol=1e-12)
    shipped = pl.LazyFrame.deserialize(io.BytesIO(lazy.serialize()))
    assert_frame_equal(shipped.collect(), found, abs_tol=1e-12)
    none = frame.lazy().clear()
    assert none.select(measures).collect().row(0) == (None,) * 5
    assert none.group_by("g").agg(measures).collect().is_empty()


@pytest.mark.parametrize("name", OPTIONS)
def test_bad_values_are_rejected_at_collect(judged: pl.DataFrame, name: str) -> None:
    options, three = OPTIONS[name], {k: SCORES[k] for k in "abc"}
    lazy = judged.lazy().group_by("g")
    found = lazy.agg(wroc.roc_auc_multiclass("y", three, **options))
    with pytest.raises(InvalidOperationError, match="`label` must hold the classes of `scores`, "):
        found.collect()
    weight = 1 - pl.col("w")
    found = lazy.agg(wroc.roc_auc_multiclass("y", SCORES, weight=weight, **options))
    with pytest.raises(InvalidOperationError, match="`weight` must be finite and zero or more"):
        found.collect()


@pytest.mark.parametrize(
    ("scores", "options", "error", "message"),
    [
        (SCORES, {"average": "samples"}, ValueError, "`average` must be .*; found 'samples'$"),
        (SCORES, OVO | {"average": "micro"}, ValueError, "`average` must be .* found 'micro'$"),
        (["a", "b"], {}, TypeError, "`scores` must map each class to a column; found .* list$"),
        ({"a": "a"}, {}, ValueError, r"`scores` must have two or more .*; found \['a'\]$"),
        (SCORES | {None: "b"}, {}, ValueError, "`scores` must have .*, none of them null; found"),
        (SCORES | {"a": 3}, {}, TypeError, "`scores` must be a column name .*; found 3 of type"),
    ],
)
def test_a_multiclass_auc_refuses_wrong_scores_and_options(
    scores: Any, options: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"^{message}"):
        wroc.roc_auc_multiclass("y", scores, **options)


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("label", [1, None], ids=["numbers", "texts"])
def test_message_of_a_class_that_the_label_cannot_hold(
    judged: pl.DataFrame, name: str, label: int | None
) -> None:
    frame = judged if label is None else judged.with_columns(y=label)
    scores = SCORES if label else SCORES | {1: "score_a"}
    with pytest.raises(TypeError, match=r"^`scores` must"):
        frame.select(wroc.roc_auc_multiclass("y", scores, **OPTIONS[name]))


def test_float_labels_of_classes_in_whole_numbers(judged: pl.DataFrame) -> None:
    numbered = judged.with_columns(y=pl.Series([CLASSES.index(y) for y in judged["y"]]) * 1.0)
    scores = dict(enumerate(SCORES.values()))
    assert auc(numbered, scores=scores, **OVO) == pytest.approx(auc(judged, **OVO))


def test_row_of_weight_0_may_have_any_label(judged: pl.DataFrame) -> None:
    alien = judged.head(1).with_columns(y=pl.lit("z"), w=0.0)
    assert auc(pl.concat([judged, alien])) == auc(judged)
