"""Gaps between groups: against sums of squared differences of influence, row by row."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import plain_picked
import polars as pl
import polars.selectors as cs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from polars.exceptions import ColumnNotFoundError, InvalidOperationError
from polars.testing import assert_frame_equal
from scipy import special, stats
from sweeps import sweep
from wide_tables import wide_gaps

import polars_wroc as wroc

Engine: TypeAlias = Any
Floats: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Key: TypeAlias = tuple[Any, ...]
Row: TypeAlias = tuple[str, bool, int, int]

COLUMNS = [
    "auc",
    "auc_reference",
    "auc_gap",
    "auc_gap_low",
    "auc_gap_high",
    "auc_gap_p_value",
    "auc_gap_p_adjusted",
]
GAP = COLUMNS[2:]
logit_gaps = partial(wide_gaps, method="logit-t", reference="b")
REFERENCES = ["best", "b"]
# Below this a variance is what rounding left of zero.
NOTHING = 1e-12


class Sample(NamedTuple):
    """AUC and scaled influences of some rows; the influences are 0 outside them."""

    auc: float
    phi: Floats | None
    df: float = np.nan

    @property
    def logit(self) -> float:
        return float(special.logit(self.auc))

    @property
    def of_logit(self) -> Floats:
        """What each row adds to the logit."""
        assert self.phi is not None
        return self.phi / (self.auc * (1 - self.auc))

    def limits(self, level: float, groups: int) -> Floats:
        """Interval by Student's t on the logit, for a comparison with the best of the groups."""
        margin = plain_picked.multiplier(level, groups, self.df) * np.linalg.norm(self.of_logit)
        return np.array(special.expit([self.logit - margin, self.logit + margin]))


class Gap(NamedTuple):
    """What the definition says of one group; None where there is nothing to say."""

    auc: float | None
    reference: float | None
    gap: float | None
    se: float | None
    samples: tuple[Sample, Sample] | None = None
    # What the group is tested against: the reference, and for the overall sample the rest too.
    tested: tuple[Sample, ...] = ()
    # How many groups the reference was picked from; 2 if it was not.
    groups: int = 2

    def limits(self, level: float) -> tuple[float, float]:
        """Zou's interval, from those of both AUCs and their correlation."""
        assert self.samples is not None
        assert self.gap is not None
        ends = np.abs([one.limits(level, self.groups) - one.auc for one in self.samples])
        phi = np.array([one.phi for one in self.samples])
        gram = phi @ phi.T
        correlation = gram[0, 1] / np.sqrt(gram[0, 0] * gram[1, 1])
        form = np.array([[1, -correlation], [-correlation, 1]])
        # Low is the first less its lower limit with the other's upper one, and the reverse.
        below, above = (np.array([ends[0, i], ends[1, 1 - i]]) for i in (0, 1))
        margins = [np.sqrt(max(side @ form @ side, 0)) for side in (below, above)]
        return self.gap - margins[0], self.gap + margins[1]

    @property
    def p_value(self) -> float:
        """The larger p-value of those that it is tested against."""
        tests = [self.student_to(other) for other in self.tested]
        return max(float(2 * stats.t.sf(abs(t), df)) for t, df in tests)

    def student_to(self, other: Sample) -> tuple[float, float]:
        """Student's t of the difference of the logits, and its degrees of freedom."""
        assert self.samples is not None
        one = self.samples[0]
        t = (one.logit - other.logit) / np.linalg.norm(one.of_logit - other.of_logit)
        parts = np.array([(each.of_logit**2).sum() for each in (one, other)])
        dfs = np.array([each.df for each in (one, other)])
        return float(t), float(parts.sum() ** 2 / (parts**2 / dfs).sum())


def frame_of(rows: list[Row]) -> pl.DataFrame:
    g, y, s, w = zip(*rows, strict=True)
    return pl.DataFrame({"g": g, "y": [int(v) for v in y], "s": s, "w": [float(v) for v in w]})


FRAMES = st.lists(
    st.tuples(st.sampled_from("abc"), st.booleans(), st.integers(0, 7), st.integers(1, 5)),
    min_size=15,
    max_size=50,
).map(frame_of)


def scale_of(weights: Floats) -> float:
    """Root of the factor that makes a class's share of the variance unbiased."""
    whole, squares, cubes = ((weights**power).sum() for power in (1, 2, 3))
    return float(np.sqrt(squares / (squares - 2 * cubes / whole + squares**2 / whole**2)))


def sample(frame: pl.DataFrame, rows: Mask) -> Sample | None:
    """AUC of the rows by comparing every pair, and what each row adds to it."""
    pos = frame["y"].to_numpy().astype(bool)
    s, w = frame["s"].to_numpy().astype(np.float64), frame["w"].to_numpy()
    classes = [rows & pos, rows & ~pos]
    if not all(side.any() for side in classes):
        return None
    above = (s[:, None] > s[None, :]) + (s[:, None] == s[None, :]) / 2
    w_pos, w_neg = (np.where(side, w, 0.0) for side in classes)
    placements = above @ w_neg / w_neg.sum(), w_pos @ above / w_pos.sum()
    auc = float((w_pos * placements[0]).sum() / w_pos.sum())
    if any(side.sum() < 2 for side in classes):
        return Sample(auc, None)
    phi = np.zeros(len(s))
    for side, placement in zip(classes, placements, strict=True):
        share = w[side] / w[side].sum()
        phi[side] = scale_of(w[side]) * share * (placement[side] - auc)
    # Perfect separation and all ties have no variance that would say how sure they are.
    if (phi**2).sum() <= NOTHING**2:
        return Sample(auc, None)
    parts = np.array([(phi[side] ** 2).sum() for side in classes])
    sizes = np.array([w[side].sum() ** 2 / (w[side] ** 2).sum() for side in classes])
    return Sample(auc, phi, parts.sum() ** 2 / (parts**2 / np.maximum(sizes - 1, 1)).sum())


def masks_of(frame: pl.DataFrame, by: Sequence[str]) -> dict[Key, Mask]:
    keys = frame.select(by).rows()
    ordered = frame.select(by).unique().sort(by).rows()
    return {key: np.array([one == key for one in keys]) for key in ordered}


def definition(frame: pl.DataFrame, reference: Any = "b", by: Sequence[str] = ("g",)) -> list[Gap]:
    """Gap of each group, in the order of their keys."""
    frame = frame.drop_nulls(["s", "y", "w"])
    masks = masks_of(frame, by)
    samples = {key: sample(frame, rows) for key, rows in masks.items()}
    known = {key: one.auc for key, one in samples.items() if one}
    chosen = reference if isinstance(reference, tuple) else (reference,)
    if reference == "best":
        chosen = max(known, key=lambda key: round(known[key], 12))
    picked_from = len(known) if reference == "best" else 2
    gaps = []
    for key in masks:
        other = samples[chosen]
        gap = between(samples[key], other, [other], same=key == chosen)
        gaps.append(gap._replace(groups=picked_from))
    return gaps


def between(
    one: Sample | None, other: Sample | None, against: Sequence[Sample | None], *, same: bool
) -> Gap:
    aucs = one and one.auc, other and other.auc
    if not one or not other or one.phi is None or other.phi is None or same:
        return Gap(*aucs, None, None)
    se = float(np.sqrt(((one.phi - other.phi) ** 2).sum()))
    # A rest without a variance leaves nothing to test.
    known = tuple(each for each in against if each and each.phi is not None)
    tested = known if len(known) == len(against) else ()
    return Gap(*aucs, one.auc - other.auc, se, (one, other), tested)


def repeated(frame: pl.DataFrame) -> pl.DataFrame:
    """Each row as often as its weight says, with weights of one."""
    times = pl.col("w").cast(pl.Int64)
    return frame.select(pl.exclude("w").repeat_by(times).explode(empty_as_null=False)).with_columns(
        w=pl.lit(1.0)
    )


def holm(p_values: Sequence[float]) -> list[float]:
    p = np.array(p_values)
    stepped = np.array([(p >= one).sum() * one for one in p])
    return [min(1.0, stepped[p <= one].max()) for one in p]


def hochberg(p_values: Sequence[float]) -> list[float]:
    return [float(p) for p in stats.false_discovery_control(p_values)]


def adjusted(column: list[float | None], rule: Callable[[Sequence[float]], list[float]]) -> Any:
    values = iter(rule([p for p in column if p is not None]))
    return [None if p is None else next(values) for p in column]


def floats(values: Sequence[float | None]) -> Floats:
    return np.array(values, dtype=np.float64)


def assert_follows(found: pl.DataFrame, expected: list[Gap], level: float = 0.95) -> None:
    """Check a table of one model, up to the adjusted p-values."""
    assert found.height == len(expected)
    for row, one in zip(found.rows(named=True), expected, strict=True):
        assert [row["auc"], row["auc_reference"]] == pytest.approx([one.auc, one.reference])
        if one.gap is None or one.se is None:
            assert [row[name] for name in GAP[1:]] == [None] * 4
            continue
        assert row["auc_gap"] == pytest.approx(one.gap, abs=1e-12)
        if one.se**2 < NOTHING:
            continue
        limits = row["auc_gap_low"], row["auc_gap_high"]
        if not one.tested:
            assert [row[name] for name in GAP[1:]] == [None] * 4
            continue
        assert limits == pytest.approx(one.limits(level), abs=1e-8)
        assert row["auc_gap_p_value"] == pytest.approx(
            plain_picked.p_value(one.p_value, one.groups), rel=1e-6
        )


@pytest.fixture
def nulls(people: pl.DataFrame) -> pl.DataFrame:
    """The people of group d belong to no group that has a name."""
    return people.with_columns(g=pl.when(pl.col("g") != "d").then("g"))


@pytest.fixture
def models(people: pl.DataFrame) -> pl.DataFrame:
    """The people with a second score that some lack, which is better in group c."""
    noise = pl.Series(np.random.default_rng(5).normal(size=people.height)).round(1)
    second = noise + pl.col("y").cast(pl.Int64) * pl.when(g="c").then(3).otherwise(0.5)
    return people.with_columns(r=pl.when(pl.int_range(pl.len()) % 7 > 0).then(second))


def mean(frame: pl.DataFrame, samples: dict[Key, Sample | None]) -> Sample:
    """Average the AUCs of groups by their pairs, with Welch and Satterthwaite's df."""
    counts = {key: frame.filter(g=key[0]).group_by("y").agg(pl.sum("w"))["w"] for key in samples}
    pairs = {key: weights.product() for key, weights in counts.items()}
    total = sum(pairs.values())
    auc, phi, per_df = 0.0, np.zeros(frame.height), 0.0
    for key, one in samples.items():
        share = pairs[key] / total
        assert one
        auc += share * one.auc
        if one.phi is not None:
            phi += share * one.phi
            per_df += share**4 * (one.phi**2).sum() ** 2 / one.df
    return Sample(auc, phi, (phi**2).sum() ** 2 / per_df)


@pytest.mark.parametrize("perfect", sweep([False, True]))
def test_gaps_to_the_mean_of_the_others_follow_their_definition(
    people: pl.DataFrame, perfect: bool
) -> None:
    better = pl.when(g="d").then(10 * pl.col("y").cast(pl.Int64)).otherwise(0)
    frame = people.with_columns(s=pl.col("s") + better) if perfect else people
    samples = {key: sample(frame, rows) for key, rows in masks_of(frame, ["g"]).items()}
    expected = []
    for key, own in samples.items():
        other = mean(frame, {each: one for each, one in samples.items() if each != key})
        expected.append(between(own, other, [other], same=False))
    table = logit_gaps(frame, "y", "s", weight="w", by="g", reference="rest")
    assert_follows(table, expected)


@given(FRAMES, st.sampled_from(REFERENCES))
def test_gaps_follow_their_definition(frame: pl.DataFrame, reference: str) -> None:
    assume("b" in frame["g"])
    assume(any(sample(frame, rows) for rows in masks_of(frame, ["g"]).values()))
    table = logit_gaps(frame, "y", "s", weight="w", by="g", reference=reference)
    assert_follows(table, definition(frame, reference))


@pytest.mark.slow
@pytest.mark.parametrize("reference", sweep(["rest", "overall"]))
def test_frequencies_are_repeated_rows_of_any_reference(reference: Any) -> None:
    random = np.random.default_rng(5)
    frame = pl.DataFrame(
        {
            "g": random.choice(["a", "b", "c"], 60),
            "y": random.random(60) < 0.5,
            "s": random.normal(size=60).round(1),
            "w": random.integers(1, 4, 60),
        }
    )
    repeated = frame.select(pl.exclude("w").repeat_by("w").explode(empty_as_null=False))
    options: dict[str, Any] = {"by": "g", "reference": reference}
    found = logit_gaps(frame, "y", "s", weight=wroc.frequency("w"), **options)
    expected = logit_gaps(repeated, "y", "s", **options)
    gaps = cs.starts_with("auc_gap")
    assert_frame_equal(found.select(gaps), expected.select(gaps), rel_tol=1e-6)


@given(FRAMES, st.sampled_from(REFERENCES))
def test_frequencies_are_repeated_rows(frame: pl.DataFrame, reference: str) -> None:
    assume("b" in frame["g"])
    options: dict[str, Any] = {"by": "g", "reference": reference}
    found = logit_gaps(frame, "y", "s", weight=wroc.frequency("w"), **options)
    assume(found["auc"].count())
    assert_follows(found, definition(repeated(frame), reference))


@pytest.mark.slow
@given(FRAMES)
def test_without_weights_every_row_counts_once(frame: pl.DataFrame) -> None:
    assume("b" in frame["g"])
    table = logit_gaps(frame, "y", "s", by="g")
    assert_follows(table, definition(frame.with_columns(w=pl.lit(1.0))))


@pytest.mark.parametrize("reference", sweep(REFERENCES))
def test_weighted_groups_on_both_engines(
    people: pl.DataFrame, reference: str, engine: Engine
) -> None:
    plan = logit_gaps(people.lazy(), "y", "s", weight="w", by="g", reference=reference)
    table = plan.collect(engine=engine)
    assert table["g"].to_list() == ["a", "b", "c", "d"]
    assert_follows(table, definition(people, reference))


@pytest.mark.parametrize("reference", sweep(REFERENCES))
def test_groups_of_unequal_size_and_weight(people: pl.DataFrame, reference: str) -> None:
    heavy = {"a": 1.0, "b": 0.1, "c": 1.0, "d": 10.0}
    place = pl.int_range(pl.len()).over("g")
    frame = people.filter((pl.col("g") != "b") | (place < 20)).with_columns(
        pl.col("w") * pl.col("g").replace_strict(heavy)
    )
    table = logit_gaps(frame, "y", "s", weight="w", by="g", reference=reference)
    assert_follows(table, definition(frame, reference))


@pytest.mark.slow
@pytest.mark.parametrize("reference", sweep(REFERENCES))
def test_only_ratios_of_probability_weights_count(people: pl.DataFrame, reference: str) -> None:
    tables = [
        logit_gaps(people, "y", "s", weight=pl.col("w") * k, by="g", reference=reference)
        for k in (1.0, 1e-7, 1e9)
    ]
    assert_frame_equal(tables[0], tables[1], rel_tol=1e-8)
    assert_frame_equal(tables[0], tables[2], rel_tol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("reference", sweep(REFERENCES))
def test_level_sets_the_width_only(people: pl.DataFrame, reference: str) -> None:
    options: dict[str, Any] = {"weight": "w", "by": "g", "reference": reference}
    table = logit_gaps(people, "y", "s", level=0.8, **options)
    assert_follows(table, definition(people, reference), level=0.8)
    at_default = logit_gaps(people, "y", "s", **options)
    limits = ["auc_low", "auc_high", "auc_gap_low", "auc_gap_high"]
    judged = ["auc_gap_detectable", "auc_gap_verdict", *limits]
    assert_frame_equal(table.drop(judged), at_default.drop(judged))


@pytest.mark.parametrize("reference", sweep(REFERENCES, fast=1))
def test_models_are_compared_each_for_itself(
    models: pl.DataFrame, reference: str, engine: Engine
) -> None:
    plan = logit_gaps(models.lazy(), "y", ["s", "r"], weight="w", by="g", reference=reference)
    table = plan.collect(engine=engine)
    for model in ("s", "r"):
        frame = models.select("g", "y", "w", s=model)
        assert_follows(table.filter(model=model), definition(frame, reference))


@pytest.mark.slow
def test_models_keep_the_order_they_are_named_in(models: pl.DataFrame) -> None:
    table = logit_gaps(models, "y", ["s", "r"], weight="w", by="g")
    assert table["model"].to_list() == ["s", "r"] * 4


def test_best_group_may_differ_between_models(models: pl.DataFrame) -> None:
    table = logit_gaps(models, "y", ["s", "r"], weight="w", by="g", reference="best")
    best = table.filter(pl.col("auc_gap").is_null())
    assert best.filter(model="r")["g"].to_list() == ["c"]
    assert best.filter(model="s")["g"].to_list() != ["c"]
    assert best["auc"].to_list() == best["auc_reference"].to_list()
    assert table["auc_gap"].drop_nulls().max() < 0


@pytest.mark.parametrize(
    ("adjust", "rule"), sweep([("holm", holm), ("bh", hochberg), ("none", list)])
)
@pytest.mark.parametrize("reference", sweep(REFERENCES))
def test_p_values_are_adjusted_over_the_whole_table(
    models: pl.DataFrame, reference: str, adjust: Any, rule: Any
) -> None:
    table = logit_gaps(
        models, "y", ["s", "r"], weight="w", by="g", reference=reference, adjust=adjust
    )
    expected = adjusted(table["auc_gap_p_value"].to_list(), rule)
    found = table["auc_gap_p_adjusted"].to_list()
    assert floats(found) == pytest.approx(floats(expected), rel=1e-12, nan_ok=True)
    assert len(set(expected)) > 2


def test_adjustments_by_hand() -> None:
    # The p-values of methods for several tests: .001, .02, .03 and .4.
    assert holm([0.02, 0.4, 0.001, 0.03]) == pytest.approx([0.06, 0.4, 0.004, 0.06])
    assert hochberg([0.02, 0.4, 0.001, 0.03]) == pytest.approx([0.04, 0.4, 0.004, 0.04])


@pytest.mark.parametrize("reference", sweep(["best", ("b", 1)], fast=1, tuples=True))
def test_groups_of_several_columns(people: pl.DataFrame, reference: Any, engine: Engine) -> None:
    frame = people.with_columns(h=pl.int_range(pl.len()) % 3)
    by = ["g", "h"]
    plan = logit_gaps(frame.lazy(), "y", "s", weight="w", by=by, reference=reference)
    table = plan.collect(engine=engine)
    assert table.select(by).rows() == [(g, h) for g in "abcd" for h in range(3)]
    assert_follows(table, definition(frame, reference, by))


@pytest.mark.parametrize("reference", ["best"])
def test_null_is_a_group(nulls: pl.DataFrame, reference: str, engine: Engine) -> None:
    plan = logit_gaps(nulls.lazy(), "y", "s", weight="w", by="g", reference=reference)
    table = plan.collect(engine=engine)
    assert table["g"].to_list() == [None, "a", "b", "c"]
    assert_follows(table, definition(nulls, reference))


@pytest.mark.slow
def test_null_group_is_compared_with_a_named_one(nulls: pl.DataFrame) -> None:
    table = logit_gaps(nulls, "y", "s", weight="w", by="g", reference="b")
    expected = definition(nulls, "b")
    assert expected[0].gap is not None
    assert table["auc_gap"][0] == pytest.approx(expected[0].gap)
    assert_follows(table, expected)


@pytest.mark.parametrize("reference", sweep(REFERENCES, fast=1))
def test_group_of_one_class_is_null_and_no_test(people: pl.DataFrame, reference: str) -> None:
    frame = people.filter((pl.col("g") != "c") | pl.col("y"))
    table = logit_gaps(frame, "y", "s", weight="w", by="g", reference=reference)
    assert table.row(2, named=True)["auc"] is None
    assert table.select(GAP).row(2) == (None,) * 5
    assert_follows(table, definition(frame, reference))
    expected = adjusted(table["auc_gap_p_value"].to_list(), holm)
    assert table["auc_gap_p_adjusted"].to_list() == pytest.approx(expected)
    assert table["auc_gap_p_value"].count() == 2
    # Comparing two groups does not need the third.
    others = frame.filter(pl.col("g") != "c")
    without = logit_gaps(others, "y", "s", weight="w", by="g", reference=reference)
    assert_frame_equal(table.filter(pl.col("g") != "c"), without)


@pytest.mark.slow
@pytest.mark.parametrize("reference", sweep(["c", "rest"]))
def test_reference_that_lacks_a_class_leaves_no_gap(people: pl.DataFrame, reference: str) -> None:
    one_class = people.filter((pl.col("g") == "a") | pl.col("y"))
    table = logit_gaps(one_class, "y", "s", weight="w", by="g", reference=reference)
    assert table.row(0, named=True)["auc"] is not None
    assert table["auc_reference"][0] is None
    assert table.select(GAP).row(0) == (None,) * 5


@pytest.mark.parametrize("reference", sweep(REFERENCES))
def test_one_row_in_a_class_has_no_interval(people: pl.DataFrame, reference: str) -> None:
    first = pl.int_range(pl.len()).over("g", "y") == 0
    frame = people.filter((pl.col("g") != "c") | ~pl.col("y") | first)
    table = logit_gaps(frame, "y", "s", weight="w", by="g", reference=reference)
    assert table["auc"][2] is not None
    assert table.select(GAP[1:]).row(2) == (None,) * 4
    others = table.filter(pl.col("g") != "c")["auc_gap_p_value"].to_list()
    assert table["auc_gap_p_adjusted"].to_list() == pytest.approx(
        adjusted([*others[:2], None, others[2]], holm)
    )


@pytest.mark.slow
def test_single_group_has_no_rest(people: pl.DataFrame) -> None:
    alone = people.filter(g="a")
    rest = logit_gaps(alone, "y", "s", weight="w", by="g", reference="rest")
    assert rest["auc"][0] == pytest.approx(definition(alone, "a")[0].auc)
    assert rest.select(COLUMNS[1:]).row(0) == (None,) * 6
    for reference in ("best", "a"):
        table = logit_gaps(alone, "y", "s", weight="w", by="g", reference=reference)
        assert table["auc_reference"].to_list() == table["auc"].to_list()
        assert table.select(GAP).row(0) == (None,) * 5


@pytest.mark.slow
def test_of_two_groups_each_is_the_rest_of_the_other(people: pl.DataFrame) -> None:
    frame = people.filter(pl.col("g").is_in(["a", "b"]))
    rest, named = (
        logit_gaps(frame, "y", "s", weight="w", by="g", reference=reference)
        for reference in ("rest", "b")
    )
    assert rest["auc_gap"][0] == pytest.approx(-rest["auc_gap"][1], abs=1e-12)
    assert rest["auc_gap_low"][0] == pytest.approx(-rest["auc_gap_high"][1], abs=1e-12)
    assert rest["auc_gap_p_value"][0] == pytest.approx(rest["auc_gap_p_value"][1])
    unadjusted = [name for name in COLUMNS if name != "auc_gap_p_adjusted"]
    assert_frame_equal(rest.head(1).select(unadjusted), named.head(1).select(unadjusted))


@pytest.mark.slow
def test_named_group_is_the_best_one(people: pl.DataFrame) -> None:
    best = logit_gaps(people, "y", "s", weight="w", by="g", reference="best")
    name = best.filter(pl.col("auc_gap").is_null())["g"].item()
    assert best.filter(g=name)["auc"].item() == best["auc"].max()
    named = logit_gaps(people, "y", "s", weight="w", by="g", reference=name)
    of_picked = [*GAP[1:], "auc_gap_detectable", "auc_gap_verdict"]
    assert_frame_equal(best.drop(of_picked), named.drop(of_picked))
    for found, alone in zip(best["auc_gap_p_value"], named["auc_gap_p_value"], strict=True):
        assert (found is None) == (alone is None)
        if alone is not None:
            assert found == pytest.approx(plain_picked.p_value(alone, 4), rel=1e-7)


def test_first_of_equally_good_groups_is_the_best() -> None:
    half = pl.DataFrame({"y": [1, 0, 1, 0, 0], "s": [4, 3, 3, 2, 1]})
    frame = pl.concat([half.with_columns(g=pl.lit(g)) for g in "ba"])
    table = logit_gaps(frame, "y", "s", by="g", reference="best")
    assert table["auc_gap"].to_list() == [None, 0.0]
    assert table["auc_gap_p_adjusted"].to_list() == [None, pytest.approx(1)]


def test_small_groups_are_measured_but_not_tested(people: pl.DataFrame) -> None:
    place = pl.int_range(pl.len()).over("g", "y")
    frame = people.filter((pl.col("g") != "a") | ~pl.col("y") | (place < 9))
    options: dict[str, Any] = {"weight": "w", "by": "g", "reference": "b"}
    whole = logit_gaps(frame, "y", "s", **options)
    for min_rows, tested in ((9, 4), (10, 3)):
        table = logit_gaps(frame, "y", "s", min_rows=min_rows, **options)
        adjusted_columns = ["auc_gap_p_value", "auc_gap_p_adjusted"]
        judged = ["auc_gap_detectable", "auc_gap_verdict", *adjusted_columns]
        assert_frame_equal(table.drop(judged), whole.drop(judged))
        expected = [
            p if g < tested else None
            for g, p in zip((3, 0, 1, 2), whole["auc_gap_p_value"], strict=True)
        ]
        assert table["auc_gap_p_value"].to_list() == pytest.approx(expected)
        found = table["auc_gap_p_adjusted"].to_list()
        assert floats(found) == pytest.approx(floats(adjusted(expected, holm)), nan_ok=True)


def test_the_best_is_picked_from_groups_with_enough_rows(people: pl.DataFrame) -> None:
    """Of four groups the small one cannot be the best, which is one of the three others."""
    place = pl.int_range(pl.len()).over("g", "y")
    frame = people.filter((pl.col("g") != "a") | ~pl.col("y") | (place < 9))
    options: dict[str, Any] = {"weight": "w", "by": "g", "min_rows": 10}
    best = logit_gaps(frame, "y", "s", reference="best", **options)
    name = best.filter(pl.col("auc_gap").is_null())["g"].item()
    named = logit_gaps(frame, "y", "s", reference=name, **options)
    for found, alone in zip(best["auc_gap_p_value"], named["auc_gap_p_value"], strict=True):
        assert (found is None) == (alone is None)
        if alone is not None:
            assert found == pytest.approx(plain_picked.p_value(alone, 3), rel=1e-7)


def test_p_values_do_not_exceed_one() -> None:
    half = pl.DataFrame({"y": [1, 0, 1, 0, 0], "s": [4, 3, 3, 2, 1]})
    frame = pl.concat([half.with_columns(g=pl.lit(g)) for g in "ba"])
    table = logit_gaps(frame, "y", "s", by="g", reference="rest", adjust="none")
    assert all(p <= 1 for p in table["auc_gap_p_value"])


@pytest.mark.slow
def test_nothing_to_tell_apart_where_all_groups_are_perfect() -> None:
    one = pl.DataFrame({"y": [1, 1, 0, 0], "s": [4, 3, 2, 1]})
    frame = pl.concat([one.with_columns(g=pl.lit(g)) for g in "abc"])
    for reference in ("rest", "overall"):
        table = logit_gaps(frame, "y", "s", by="g", reference=reference)
        assert set(table.select(GAP).rows()) == {(None,) * 5}


@pytest.mark.slow
def test_no_gap_where_neither_side_has_a_variance(people: pl.DataFrame) -> None:
    frame = people.with_columns(
        s=pl.when(g="a").then(0.0).otherwise(pl.col("s") + 10 * pl.col("y").cast(pl.Int64))
    )
    named, rest = (
        logit_gaps(frame, "y", "s", weight="w", by="g", reference=reference).row(0, named=True)
        for reference in ("b", "rest")
    )
    for found in (named, rest):
        assert found["auc"] - found["auc_reference"] == pytest.approx(-0.5)
        assert [found[name] for name in GAP] == [None] * 5


@pytest.mark.parametrize("reference", sweep(["rest", "b", "best"], fast=1))
def test_a_tiny_perfect_group_is_not_told_apart(people: pl.DataFrame, reference: str) -> None:
    tiny = pl.DataFrame({"g": "tiny", "y": [True, True, False, False], "s": [9.0, 8.0, 2.0, 1.0]})
    frame = pl.concat([people.select("g", "y", "s"), tiny])
    found = logit_gaps(frame, "y", "s", by="g", reference=reference).filter(g="tiny")
    assert found["auc"].item() == 1
    assert found.select(GAP).row(0) == (None,) * 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "reference"),
    sweep(
        [
            (["rest", "best", "overall", "x"], ("best",)),
            ([1, 2, 3, 4], 2),
            ([0.5, 1.5, 2.0, 3.0], 1.5),
            ([True, False, None, None], True),
        ],
        fast=1,
    ),
)
def test_groups_are_named_by_their_value(
    people: pl.DataFrame, values: list[Any], reference: Any
) -> None:
    names = dict(zip("abcd", values, strict=True))
    frame = people.with_columns(g=pl.col("g").replace_strict(names, default=None))
    table = logit_gaps(frame, "y", "s", weight="w", by="g", reference=reference)
    value = reference[0] if isinstance(reference, tuple) else reference
    own = table.filter(g=value).row(0, named=True)
    assert own["auc_gap"] is None
    assert own["auc"] == own["auc_reference"]
    expected = definition(frame, reference)
    assert table["auc_reference"].to_list() == pytest.approx([one.reference for one in expected])


@pytest.mark.slow
def test_order_of_the_rows_does_not_matter(people: pl.DataFrame) -> None:
    for reference in REFERENCES:
        tables = [
            logit_gaps(frame, "y", "s", weight="w", by="g", reference=reference)
            for frame in (people, people.sample(fraction=1.0, shuffle=True, seed=1))
        ]
        assert_frame_equal(tables[0], tables[1], rel_tol=1e-9)


@pytest.mark.slow
def test_rows_that_miss_something_count_nowhere(people: pl.DataFrame) -> None:
    some = pl.int_range(pl.len()) % 5 == 0
    frame = people.with_columns(s=pl.when(~some).then("s"))
    for reference in REFERENCES:
        tables = [
            logit_gaps(each, "y", "s", weight="w", by="g", reference=reference)
            for each in (frame, frame.drop_nulls())
        ]
        assert_frame_equal(tables[0], tables[1], rel_tol=1e-9)
        assert_follows(tables[0], definition(frame, reference))


@pytest.mark.slow
@pytest.mark.plans
@pytest.mark.parametrize("reference", sweep(REFERENCES))
def test_lazy_frame_gives_a_plan_that_serialises(
    people: pl.DataFrame, reference: str, engine: Engine
) -> None:
    options: dict[str, Any] = {"weight": "w", "by": "g", "reference": reference}
    plan = logit_gaps(people.lazy(), "y", "s", **options)
    assert isinstance(plan, pl.LazyFrame)
    assert "python" not in plan.explain(optimized=False).lower()
    shipped = pl.LazyFrame.deserialize(io.BytesIO(plan.serialize()))
    table = logit_gaps(people, "y", "s", **options)
    assert isinstance(table, pl.DataFrame)
    assert_frame_equal(shipped.collect(engine=engine), table, rel_tol=1e-9)


@pytest.mark.parametrize("reference", sweep(["e", "A"]))
def test_reference_group_that_does_not_exist(people: pl.DataFrame, reference: Any) -> None:
    plan = logit_gaps(people.lazy(), "y", "s", by="g", reference=reference)
    with pytest.raises(InvalidOperationError, match=r"`reference` must be .* found no segment"):
        plan.collect()
    with pytest.raises(InvalidOperationError, match=r"^`reference` must be .* found no segment"):
        logit_gaps(people, "y", "s", by="g", reference=reference)


@pytest.mark.slow
def test_reference_group_that_one_model_lacks(people: pl.DataFrame) -> None:
    # The rows are there, but without a score: that is a group without an AUC.
    frame = people.with_columns(r=pl.when(pl.col("g") != "b").then("s"))
    table = logit_gaps(frame, "y", ["s", "r"], by="g", reference="b")
    assert table.filter(model="r")["auc_gap"].null_count() == 4
    assert table.filter(model="s")["auc_gap"].null_count() == 1


@pytest.mark.parametrize("reference", [("a", 1), (), ["a"], None])
def test_reference_that_can_be_no_group(people: pl.DataFrame, reference: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=r"`reference` must "):
        wroc.group_gaps(people.lazy(), "y", "s", attributes="g", reference=reference)
    with pytest.raises(ValueError, match=r"map attributes to segments where there are several"):
        wroc.group_gaps(people, "y", "s", attributes=["g", "y"], reference="a")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_rows": -1}, "`min_rows` must be 0 or more; found -1"),
        ({"level": 1}, "`level` must lie between 0.001 and 0.9999; found 1"),
        ({"adjust": "by"}, "`adjust` must be one of 'holm', 'bh', 'none'; found 'by'"),
    ],
)
def test_options_that_do_not_exist(
    people: pl.DataFrame, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        logit_gaps(people.lazy(), "y", "s", by="g", **options)


def test_there_must_be_attributes(people: pl.DataFrame) -> None:
    for wrong, message in {
        None: "name the groups to compare",
        (): "be one or several column names",
    }.items():
        with pytest.raises(TypeError, match=f"`attributes` must {message}"):
            wroc.group_gaps(people, "y", "s", attributes=wrong)  # type: ignore[arg-type]
    with pytest.raises(ColumnNotFoundError, match="`attributes` must name a column"):
        wroc.group_gaps(people, "y", "s", attributes="nowhere")
    with pytest.raises(ValueError, match="`intersections` needs two or more `attributes`"):
        wroc.group_gaps(people, "y", "s", attributes="g", intersections=True)
    called = people.rename({"g": "overall"})
    with pytest.raises(ValueError, match="not have a column of the name 'overall'"):
        wroc.group_gaps(called, "y", "s", attributes="overall")
    with pytest.raises(ValueError, match="`score` must be given unless decisions are `selected`"):
        wroc.group_gaps(people, "y", attributes="g", threshold=1)
