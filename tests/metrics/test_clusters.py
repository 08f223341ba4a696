"""Rows that belong together: against the sum over clusters, and against Obuchowski's formula."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from conftest import Groups
from hypothesis import assume, given
from hypothesis import strategies as st
from polars.exceptions import ColumnNotFoundError
from polars.testing import assert_frame_equal
from scipy import special, stats
from sweeps import sweep

import polars_wroc as wroc

summary_of = partial(wroc.summary, diagnostics=True)

Floats: TypeAlias = npt.NDArray[np.float64]

COLUMNS = ["auc", "auc_se", "auc_low", "auc_high", "ci_method", "n_eff_pos", "n_eff_neg"]
NUMBERS = [name for name in COLUMNS if name != "ci_method"]


def interval(frame: pl.DataFrame, **options: Any) -> dict[str, Any]:
    found = summary_of(frame, "y", "s", **({"weight": "w", "method": "logit"} | options))
    return found.select(COLUMNS).row(0, named=True)


def assert_same(found: dict[str, Any], bare: dict[str, Any]) -> None:
    assert found["ci_method"] == bare["ci_method"]
    assert [found[name] for name in NUMBERS] == pytest.approx([bare[n] for n in NUMBERS], rel=1e-9)


class Expected(NamedTuple):
    """What the definition gives for one frame of complete rows."""

    auc: float
    variance: float
    n_eff_pos: float
    n_eff_neg: float
    df: int

    def limits(self, level: float = 0.95) -> tuple[float, float]:
        """Student's interval on the logit."""
        quantile = stats.t.ppf((1 + level) / 2, self.df)
        margin = quantile * np.sqrt(self.variance) / (self.auc * (1 - self.auc))
        logit = special.logit(self.auc)
        return special.expit(logit - margin), special.expit(logit + margin)


def cluster_totals(ids: Sequence[Any], values: Floats) -> Floats:
    """Sum of the values of each cluster, 0 for a cluster that has none of the class."""
    names = sorted(set(ids))
    return np.array([sum(v for c, v in zip(ids, values, strict=True) if c == k) for k in names])


def small_sample(totals: Floats) -> float:
    whole, squares, cubes = (float((totals**power).sum()) for power in (1, 2, 3))
    return squares / (squares - 2 * cubes / whole + squares**2 / whole**2)


def influence(frame: pl.DataFrame) -> tuple[float, Floats]:
    """AUC and influence of each row, by comparing every pair."""
    y, s, w = (frame[name].to_numpy() for name in ("y", "s", "w"))
    right = (np.sign(s[:, None] - s[None, :]) * np.where(y == 1, 1, -1)[:, None] + 1) / 2
    other = np.where(y[:, None] != y[None, :], w[None, :], 0.0)
    placement = (right * other).sum(axis=1) / other.sum(axis=1)
    total = np.where(y == 1, w[y == 1].sum(), w[y == 0].sum())
    auc = float((w * placement)[y == 1].sum() / w[y == 1].sum())
    return auc, w * (placement - auc) / total


def of_class(frame: pl.DataFrame, psi: Floats, side: int) -> tuple[Floats, float]:
    """What a class contributes in each cluster, and Kish's number of its clusters."""
    ids, inside = frame["c"].to_list(), frame["y"].to_numpy() == side
    totals = cluster_totals(ids, np.where(inside, frame["w"].to_numpy(), 0.0))
    parts = np.sqrt(small_sample(totals)) * cluster_totals(ids, np.where(inside, psi, 0.0))
    return parts, float(totals.sum() ** 2 / (totals**2).sum())


def expected(frame: pl.DataFrame) -> Expected:
    """The sum over clusters of what both classes of a cluster contribute together."""
    auc, psi = influence(frame)
    (of_pos, n_eff_pos), (of_neg, n_eff_neg) = (of_class(frame, psi, side) for side in (1, 0))
    return Expected(
        auc=auc,
        variance=float(((of_pos + of_neg) ** 2).sum()),
        n_eff_pos=n_eff_pos,
        n_eff_neg=n_eff_neg,
        # The clusters with rows of the class that is in fewest, at most all but one.
        df=min(*(frame.filter(y=y)["c"].n_unique() for y in (0, 1)), frame["c"].n_unique() - 1),
    )


def in_two_clusters(rows: list[tuple[bool, int, int, int]]) -> bool:
    return all(len({c for y, _, _, c in rows if y == side}) > 1 for side in (True, False))


def frame_of(rows: list[tuple[bool, int, int, int]]) -> pl.DataFrame:
    y, s, w, c = zip(*rows, strict=True)
    return pl.DataFrame(
        {"y": [int(v) for v in y], "s": s, "w": [v / 2 for v in w], "c": c},
        schema={"y": pl.Int64, "s": pl.Int64, "w": pl.Float64, "c": pl.Int64},
    )


FRAMES = (
    st.lists(
        st.tuples(st.booleans(), st.integers(0, 8), st.integers(1, 6), st.integers(0, 6)),
        min_size=10,
        max_size=40,
    )
    .filter(in_two_clusters)
    .map(frame_of)
)


@pytest.fixture
def visits(people: pl.DataFrame) -> pl.DataFrame:
    """The people, ten rows or so to a cluster; the same clusters occur in every group."""
    clusters = np.random.default_rng(6).integers(0, 60, people.height)
    return people.with_columns(pl.col("y").cast(pl.Int64), c=pl.Series(clusters))


def test_copies_of_a_row_in_its_cluster_add_nothing(people: pl.DataFrame) -> None:
    rows = people.with_row_index("c")
    options: dict[str, Any] = {"design": "c", "method": "score"}
    alone, copied = interval(rows, **options), interval(pl.concat([rows] * 3), **options)
    assert copied["auc_se"] == pytest.approx(alone["auc_se"])
    # A score-type interval is shifted by one more row of each class, here by one of three copies.
    for end in ("auc_low", "auc_high"):
        assert copied[end] == pytest.approx(alone[end], abs=0.02)


@given(FRAMES)
def test_variance_is_the_sum_over_clusters(frame: pl.DataFrame) -> None:
    found, by_hand = interval(frame, design="c"), expected(frame)
    assert found["auc"] == pytest.approx(by_hand.auc, abs=1e-12)
    assert found["auc_se"] ** 2 == pytest.approx(by_hand.variance, abs=1e-13)
    sizes = found["n_eff_pos"], found["n_eff_neg"]
    assert sizes == pytest.approx((by_hand.n_eff_pos, by_hand.n_eff_neg), rel=1e-12)


@given(FRAMES, st.sampled_from([0.5, 0.95, 0.999]))
def test_limits_are_students_with_the_degrees_of_freedom_of_clusters(
    frame: pl.DataFrame, level: float
) -> None:
    by_hand = expected(frame)
    assume(by_hand.variance > 1e-6)
    assume(0 < by_hand.auc < 1)
    found = interval(frame, design="c", level=level)
    assert found["ci_method"] == "logit"
    assert (found["auc_low"], found["auc_high"]) == pytest.approx(by_hand.limits(level), abs=1e-8)


def few_clusters() -> pl.DataFrame:
    """Three alike clusters of both classes, whose number limits the degrees of freedom."""
    scores = [4.0, 1.0, 3.0, 2.0, 4.0, 0.0, 2.0, 3.0, 5.0, 1.0, 3.0, 0.0]
    return pl.DataFrame(
        {"y": [1, 1, 0, 0] * 3, "s": scores, "w": 1.0, "c": [i // 4 for i in range(12)]}
    )


def test_number_of_clusters_limits_the_degrees_of_freedom() -> None:
    frame = few_clusters()
    by_hand, found = expected(frame), interval(frame, design="c")
    limits = found["auc_low"], found["auc_high"]
    assert by_hand.df == 2
    assert limits == pytest.approx(by_hand.limits(), abs=1e-10)
    assert limits != pytest.approx(by_hand._replace(df=99).limits(), abs=1e-3)


def test_clusters_of_left_out_rows_add_nothing_to_the_variance() -> None:
    frame = few_clusters()
    left_out = pl.DataFrame(
        {"y": [1, None, 0, 1], "s": [None, 1.0, 1.0, float("nan")], "w": 1.0, "c": range(10, 14)}
    ).with_columns(w=pl.when(pl.col("c") != 12).then("w"))
    nothing = frame.with_columns(w=0.0, c=pl.col("c") + 20)
    wider = pl.concat([left_out, frame, nothing], how="vertical_relaxed")
    found, bare = interval(wider, design="c"), interval(frame, design="c")
    # Like units of a survey they count among all clusters, less one of which are the most degrees
    # of freedom.
    names = ["auc", "auc_se", "n_eff_pos", "n_eff_neg"]
    assert [found[name] for name in names] == pytest.approx([bare[name] for name in names])


WORKED = pl.DataFrame(
    {
        "s": [0.9, 0.8, 0.7, 0.7, 0.6, 0.4, 0.3, 0.85, 0.5, 0.2],
        "y": [1, 0, 1, 0, 1, 0, 0, 1, 1, 0],
        "c": list("aabbbccdde"),
        "w": [1.0, 2.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0, 2.0, 1.0],
    }
)


@pytest.mark.parametrize(
    ("weight", "auc", "variance", "limits"),
    [
        (None, 0.78, 0.0349458046, (0.1698033475, 0.9958291076)),
        # The upper limit without a prediction of heaviness: 0.9681578061.
        ("w", 0.6547619048, 0.0491228616, (0.0974234390, 0.9688753071)),
    ],
)
def test_worked_numbers(
    weight: str | None, auc: float, variance: float, limits: tuple[float, float]
) -> None:
    for design in ("c", wroc.Survey("c"), wroc.Survey("c", strata=pl.lit(1))):
        found = interval(WORKED, weight=weight, design=design, method="score")
        assert found["auc"] == pytest.approx(auc, abs=5e-11)
        assert found["auc_se"] ** 2 == pytest.approx(variance, abs=5e-11)
        assert (found["auc_low"], found["auc_high"]) == pytest.approx(limits, abs=5e-11)


@pytest.mark.parametrize("design", ["c", wroc.Survey("c", strata=pl.col("c") % 3)])
def test_segments_may_be_taken_a_few_at_a_time(
    visits: pl.DataFrame, design: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = partial(summary_of, visits, "y", "s", weight="w", by=["g", "s"], design=design)
    expected = call()
    monkeypatch.setattr("polars_wroc.metrics.sampled_aucs._ELEMENTS", 2000)
    assert_frame_equal(call(), expected, rel_tol=1e-12)


@given(FRAMES)
def test_clusters_of_one_row_have_the_standard_error_of_rows(frame: pl.DataFrame) -> None:
    rows = frame.with_columns(c=pl.int_range(pl.len()))
    names = ["auc", "auc_se", "n_eff_pos", "n_eff_neg"]
    for weight in ("w", None):
        found, bare = interval(rows, weight=weight, design="c"), interval(rows, weight=weight)
        assert [found[n] for n in names] == pytest.approx([bare[n] for n in names], rel=1e-9)


@given(FRAMES, st.integers(2, 4))
def test_repeating_rows_inside_their_clusters_changes_nothing(
    frame: pl.DataFrame, times: int
) -> None:
    rows = frame.with_row_index("row")
    repeated = pl.concat([rows] * times)
    assert_same(
        interval(repeated, weight=None, design="row"), interval(rows, weight=None, design="row")
    )


def obuchowski(frame: pl.DataFrame) -> float:
    """Obuchowski (1997), with weights of 1: sums over clusters of components less the AUC."""
    _, psi = influence(frame)
    ids, pos = frame["c"].to_list(), frame["y"].to_numpy() == 1
    of_pos, of_neg = (cluster_totals(ids, np.where(side, psi, 0.0)) for side in (pos, ~pos))
    with_pos, with_neg = (len(set(frame.filter(y=y)["c"])) for y in (1, 0))
    clusters = len(set(ids))
    return float(
        with_pos / (with_pos - 1) * (of_pos**2).sum()
        + with_neg / (with_neg - 1) * (of_neg**2).sum()
        + 2 * clusters / (clusters - 1) * (of_pos * of_neg).sum()
    )


@pytest.mark.parametrize(
    ("clusters", "positives", "negatives"), [(2, 1, 1), (5, 2, 3), (12, 1, 4), (30, 3, 1)]
)
def test_equal_clusters_of_both_classes_give_obuchowskis_formula(
    clusters: int, positives: int, negatives: int
) -> None:
    random = np.random.default_rng(clusters)
    size = positives + negatives
    shared = np.repeat(random.normal(size=clusters), size)
    y = np.tile([1] * positives + [0] * negatives, clusters)
    score = np.round(shared + random.normal(size=len(y)) + y, 1)
    ids = np.repeat(np.arange(clusters), size)
    frame = pl.DataFrame({"y": y, "s": score, "w": 1.0, "c": ids})
    found = interval(frame, weight=None, design="c")
    assert found["auc_se"] ** 2 == pytest.approx(obuchowski(frame), rel=1e-11)
    assert (found["n_eff_pos"], found["n_eff_neg"]) == pytest.approx((clusters, clusters))


def test_equal_clusters_of_one_class_each_give_obuchowskis_formula() -> None:
    random = np.random.default_rng(8)
    ids = np.repeat(np.arange(20), 3)
    y = (ids < 8).astype(np.int64)
    score = np.round(random.normal(size=20)[ids] + y + random.normal(size=60), 1)
    frame = pl.DataFrame({"y": y, "s": score, "w": 1.0, "c": ids})
    found = interval(frame, design="c")
    assert found["auc_se"] ** 2 == pytest.approx(obuchowski(frame), rel=1e-11)
    assert (found["n_eff_pos"], found["n_eff_neg"]) == pytest.approx((8, 12))


@given(FRAMES, st.permutations(range(7)))
def test_names_of_the_clusters_change_nothing(frame: pl.DataFrame, names: list[int]) -> None:
    renamed = frame.with_columns(c=pl.col("c").replace_strict(dict(enumerate(names))))
    bare = interval(frame, design="c")
    assume(bare["auc_se"] > 1e-4)
    assert_same(interval(renamed, design="c"), bare)


IDS: dict[str, pl.Expr] = {
    "string": pl.format("cluster {}", "c"),
    "float": pl.col("c") / 7,
    "null": pl.when(pl.col("c") != 3).then("c"),
    "null string": pl.when(pl.col("c") != 3).then(pl.col("c").cast(pl.String)),
    "categorical": pl.col("c").cast(pl.String).cast(pl.Categorical),
    "date": pl.date(2020, 1, 1).dt.offset_by(pl.format("{}d", "c")),
    "two columns": pl.struct(pl.col("c") // 5, last=pl.col("c") % 5),
}


@pytest.mark.parametrize("kind", sweep(IDS, fast=1))
def test_cluster_ids_may_be_of_any_type(visits: pl.DataFrame, kind: str) -> None:
    typed = visits.with_columns(id=IDS[kind])
    bare = interval(visits, design="c")
    assert bare["auc_se"] ** 2 == pytest.approx(expected(visits).variance, rel=1e-11)
    assert_same(interval(typed, design="id"), bare)
    assert_same(interval(visits, design=IDS[kind]), bare)


@given(FRAMES)
def test_what_a_weight_means_makes_no_difference(frame: pl.DataFrame) -> None:
    bare = interval(frame, design="c")
    assume(bare["auc_se"] > 1e-4)
    assert_same(interval(frame, design="c", weight=wroc.frequency("w")), bare)


def test_each_group_has_clusters_of_its_own(visits: pl.DataFrame, groups: Groups) -> None:
    plan = summary_of(visits.lazy(), "y", "s", weight="w", by="g", design="c", method="logit")
    found = plan.collect()
    for (name, rows), row in zip(groups(visits), found.rows(named=True), strict=True):
        by_hand = expected(rows)
        assert row["g"] == name
        assert row["auc_se"] ** 2 == pytest.approx(by_hand.variance, rel=1e-11)
        assert (row["auc_low"], row["auc_high"]) == pytest.approx(by_hand.limits(), abs=1e-9)


def test_each_model_has_the_clusters_to_itself(visits: pl.DataFrame) -> None:
    two = visits.with_columns(t=-pl.col("s").round(0) + pl.col("limit"))
    plan = summary_of(two.lazy(), "y", ["t", "s"], weight="w", design="c")
    found = plan.collect()
    assert found["model"].to_list() == ["t", "s"]
    for row in found.rows(named=True):
        by_hand = expected(two.with_columns(s=pl.col(row["model"])))
        assert row["auc_se"] ** 2 == pytest.approx(by_hand.variance, rel=1e-11)


@pytest.mark.parametrize("side", [0, 1])
def test_one_cluster_in_a_class_has_no_variance_and_no_limits(
    visits: pl.DataFrame, side: int
) -> None:
    one = pl.col("y") == side
    frame = visits.with_columns(c=pl.when(one).then(1_000).otherwise("c"))
    both = pl.concat([frame.with_columns(g=pl.lit("one")), visits.with_columns(g=pl.lit("more"))])
    plan = summary_of(both.lazy(), "y", "s", weight="w", by="g", design="c", method="logit")
    more, found = plan.collect().rows(named=True)
    assert more["auc_se"] ** 2 == pytest.approx(expected(visits).variance, rel=1e-11)
    names = ("auc_se", "auc_low", "auc_high", "ci_method")
    assert [found[name] for name in names] == [None] * 4
    assert found["ci_note"] == "all rows of a class are in one sampling unit"
    assert found["n_eff_pos" if side else "n_eff_neg"] == pytest.approx(1, rel=1e-12)


def test_clusters_are_no_reason_to_suspect_the_weights(visits: pl.DataFrame) -> None:
    copies = pl.concat([visits.with_row_index("id")] * 12)
    found = summary_of(copies, "y", "s", design="id")
    assert found["ci_note"].to_list() == summary_of(copies, "y", "s")["ci_note"].to_list()


def test_one_cluster_of_everything_has_no_variance(visits: pl.DataFrame) -> None:
    found = interval(visits, design=pl.col("c") * 0)
    assert (found["auc_se"], found["ci_method"]) == (None, None)
    assert (found["n_eff_pos"], found["n_eff_neg"]) == pytest.approx((1, 1), rel=1e-12)


def test_one_class_has_no_interval() -> None:
    frame = pl.DataFrame({"y": [1, 1, 1], "s": [2, 1, 3], "w": 1.0, "c": [1, 1, 2]})
    found = interval(frame, design="c")
    assert found.pop("n_eff_pos") == pytest.approx(9 / 5)
    assert set(found.values()) == {None}


def copies(times: int) -> pl.DataFrame:
    """Clusters that are copies of each other, so that no cluster differs from the mean."""
    scores = [3, 1, 2, 2, 0, 1, 2]
    y = [1, 1, 1, 0, 0, 0, 0]
    ids = np.repeat(np.arange(times), len(y))
    return pl.DataFrame({"y": y * times, "s": scores * times, "w": 1.0, "c": ids})


@pytest.mark.parametrize("times", [2, 3, 4, 7])
def test_clusters_that_do_not_differ_are_not_certain(times: int) -> None:
    frame = copies(times)
    assert expected(frame).variance == pytest.approx(0, abs=1e-30)
    found = interval(frame, design="c", method="score")
    assert found["auc_se"] == pytest.approx(0, abs=1e-7)
    assert found["ci_method"] == "score"
    assert found["auc_high"] - found["auc_low"] > 0.1
    assert interval(frame, design="c")["auc_high"] is None


@pytest.mark.parametrize(
    ("cluster", "error", "message"),
    [
        ("nobody", ColumnNotFoundError, "^`design` must name a column of the frame; found no col"),
        (
            1,
            TypeError,
            "^`design` must be a column of clusters, a `Survey` or .*; found 1 of type int",
        ),
        ("^c.*$", ValueError, "^`design` must be the name of a column; found the pattern"),
        (pl.col("c", "w"), ValueError, "^`design` must be one column; found 2: c, w$"),
    ],
)
def test_clusters_that_are_no_column(
    visits: pl.DataFrame, cluster: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        summary_of(visits.lazy(), "y", "s", design=cluster)
