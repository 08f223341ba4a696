"""Partial AUCs over high true positive rates: the definition in plain Python, and what must hold.

The influence of a row on the area is found by changing its weight a little, so that nothing is
shared with the formulas of the package.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from partial_areas import AREA_COLUMNS, summarise_area
from scipy import integrate, stats

import polars_wroc as wroc


class Row(NamedTuple):
    """A row, and the class that it is in."""

    s: float
    y: int
    w: float


class Piece(NamedTuple):
    """The part of the curve at one score that is in the range, and of its height at the score."""

    s: float
    height: float
    share: float
    fpr: float


def pieces(rows: list[Row], start: float) -> list[Piece]:
    """Cut the curve above a true positive rate, with the mean false positive rate of each piece."""
    totals = [sum(row.w for row in rows if row.y == y) for y in (0, 1)]
    found = []
    fpr = tpr = 0.0
    for s in sorted({row.s for row in rows}, reverse=True):
        across, up = (sum(r.w for r in rows if r.s == s and r.y == y) / totals[y] for y in (0, 1))
        low = max(tpr, start)
        if up > 0 and tpr + up > low:
            middle = (low + tpr + up) / 2
            height = tpr + up - low
            found.append(Piece(s, height, height / up, fpr + across * (middle - tpr) / up))
        fpr, tpr = fpr + across, tpr + up
    return found


def share_missed(rows: list[Row], start: float) -> float:
    """1 minus the area as a proportion of a perfect score's."""
    return sum(piece.height * piece.fpr for piece in pieces(rows, start)) / (1 - start)


def influence(rows: list[Row], start: float, at: int) -> float:
    """Change of the proportion with the weight of a row, times the weight of its class."""
    step = 1e-5 * rows[at].w
    areas = []
    for change in (-step, step):
        changed = [*rows[:at], rows[at]._replace(w=rows[at].w + change), *rows[at + 1 :]]
        areas.append(-share_missed(changed, start))
    total = sum(row.w for row in rows if row.y == rows[at].y)
    return total * (areas[1] - areas[0]) / (2 * step)


def variance(rows: list[Row], start: float, y: int, *, frequency: bool) -> float:
    members = [(i, row.w) for i, row in enumerate(rows) if row.y == y]
    total = sum(w for _, w in members)
    values = [(w / total, influence(rows, start, i)) for i, w in members]
    if frequency:
        return sum(h * value**2 for h, value in values) / (total - 1)
    squares, cubes = (sum(h**power for h, _ in values) for power in (2, 3))
    factor = squares / (squares - 2 * cubes + squares**2)
    return factor * sum((h * value) ** 2 for h, value in values)


def inverse_size(rows: list[Row], start: float, *, frequency: bool = False) -> float:
    width, missed = 1 - start, share_missed(rows, start)
    spread = missed * (1 - missed)
    totals = [sum(row.w for row in rows if row.y == y) for y in (0, 1)]
    each = [[r.w / totals[y] for r in rows if r.y == y] for y in (0, 1)]
    squares = [
        1 / total if frequency else sum(h * h for h in hs)
        for total, hs in zip(totals, each, strict=True)
    ]
    own = [variance(rows, start, y, frequency=frequency) for y in (0, 1)]

    in_range = {piece.s: piece for piece in pieces(rows, start)}
    terms = []
    for row in rows:
        if row.y == 1 and row.s in in_range:
            piece = in_range[row.s]
            h = row.w / totals[1]
            terms.append((h, 1 / totals[1] if frequency else h, piece.share * piece.fpr))
    second = sum(h * one * x**2 for h, one, x in terms)
    numbers, heavier = [0.0, 0.0], 1.0
    if 0 < missed < 1:
        numbers = [
            missed**2 / (own[0] + missed**2 * squares[0]),
            missed**2 * width**2 / second,
        ]
        if not frequency:
            first = sum(h * one * x for h, one, x in terms)
            heavier = max(1.0, first / (sum(h * x for h, _, x in terms) * squares[1]))
    pseudo = [squares[0], squares[1] * heavier**2 / width]
    total = 0.0
    for number, q, e, v in zip(numbers, (1.0, heavier), pseudo, own, strict=True):
        total += e if number == 0 else (number * min(v / spread, 3 * e) + q * e) / (number + q)
    return total


def limits(rows: list[Row], start: float, level: float = 0.95, **options: Any) -> list[float]:
    """Wilson's limits, as the scores that are a quantile away, times the width of the range."""
    r = inverse_size(rows, start, **options)
    area = 1 - share_missed(rows, start)
    extra = stats.norm.ppf((1 + level) / 2) ** 2 * r
    roots = np.roots([1 + extra, -2 * area - extra, area**2]).real
    return [float(root) * (1 - start) for root in sorted(roots)]


def frame_of(rows: list[Row]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["s", "y", "w"], orient="row")


def found(rows: pl.DataFrame, **options: Any) -> dict[str, Any]:
    return summarise_area(rows, **({"weight": "w"} | options)).row(0, named=True)


def labelled(labels: str, weights: str | None = None) -> list[Row]:
    """Rows with falling scores."""
    given = weights or "1" * len(labels)
    return [Row(-i, int(y), float(w)) for i, (y, w) in enumerate(zip(labels, given, strict=True))]


def sample(seed: int, positives: int, negatives: int, levels: float) -> list[Row]:
    """Rows with tied scores, and weights that depend on them."""
    random = np.random.default_rng(seed)
    y = np.repeat([1, 0], [positives, negatives])
    s = np.round((random.normal(size=y.size) + 1.2 * y) * levels) / levels
    w = random.lognormal(sigma=0.5, size=y.size) * np.exp(-0.3 * s)
    return [Row(*row) for row in zip(s.tolist(), y.tolist(), w.tolist(), strict=True)]


@pytest.mark.parametrize(
    ("rows", "start", "expected"),
    [
        (labelled("110111010100"), 0.45, (0.121876, 0.506039)),
        (labelled("1101110101001000"), 0.5, (0.132317, 0.455067)),
        (labelled("110111010100", "121131211212"), 0.3, (0.180565, 0.661177)),
        # Nothing is misranked: r = 1 / (6 * 0.8) + 1 / 5, and the upper limit is 0.8.
        (labelled("11111100000"), 0.2, (0.311454, 0.8)),
    ],
)
def test_worked_numbers(rows: list[Row], start: float, expected: tuple[float, float]) -> None:
    interval = found(frame_of(rows), tpr=(start, 1))
    assert (interval["partial_auc_low"], interval["partial_auc_high"]) == pytest.approx(
        expected, abs=1e-6
    )


def test_perfect_score_has_wilsons_interval_of_the_pseudo_observations() -> None:
    interval = found(frame_of(labelled("11111100000")), tpr=(0.2, 1))
    extra = stats.norm.ppf(0.975) ** 2 * (1 / 4.8 + 1 / 5)
    assert interval["partial_auc_low"] == pytest.approx(0.8 / (1 + extra))


def test_worst_score_has_wilsons_interval_of_the_pseudo_observations() -> None:
    interval = found(frame_of(labelled("000000" + "1" * 8)), tpr=(0.5, 1))
    extra = stats.norm.ppf(0.975) ** 2 * (1 / 4 + 1 / 6)
    limits = [interval[name] for name in ("partial_auc", "partial_auc_low", "partial_auc_high")]
    assert limits == pytest.approx([0, 0, 0.5 * extra / (1 + extra)])


@pytest.mark.parametrize(("labels", "start"), [("1011001111", 0.4), ("1010001111", 0.3)])
def test_a_class_has_at_most_three_times_the_variance_of_its_pseudo_row(
    labels: str, start: float
) -> None:
    rows = labelled(labels)
    pseudo_variance = 1 / labels.count("1") / (1 - start)
    missed = share_missed(rows, start)
    own = variance(rows, start, 1, frequency=False) / (missed * (1 - missed))
    assert own > 6 * pseudo_variance
    interval = found(frame_of(rows), tpr=(start, 1))
    ends = [interval["partial_auc_low"], interval["partial_auc_high"]]
    assert ends == pytest.approx(limits(rows, start), abs=1e-8)


@given(
    st.integers(0, 10_000),
    st.sampled_from([1.0, 4.0, 100.0]),
    st.sampled_from([0.301, 0.55, 0.613]),
    st.sampled_from([0.5, 0.95, 0.999]),
    st.booleans(),
)
def test_against_the_definition(
    seed: int, levels: float, start: float, level: float, frequency: bool
) -> None:
    rows = sample(seed, 16, 25, levels)
    if frequency:
        rows = [row._replace(w=np.ceil(row.w)) for row in rows]
    weight = wroc.frequency("w") if frequency else "w"
    interval = found(frame_of(rows), tpr=(start, 1), level=level, weight=weight)
    if interval["n_eff_pos"] * (1 - start) < 3:
        assert interval["partial_auc_low"] is interval["partial_auc_high"] is None
        return
    expected = limits(rows, start, level, frequency=frequency)
    assert [interval["partial_auc_low"], interval["partial_auc_high"]] == pytest.approx(
        expected, abs=1e-8
    )


@pytest.mark.slow(reason="tries many random rows")
@given(st.integers(0, 10_000))
def test_whole_area_is_the_auc(seed: int) -> None:
    rows = frame_of(sample(seed, 8, 12, 3.0)).with_row_index("c").with_columns(pl.col("c") // 2)
    for options in ({}, {"weight": wroc.frequency(pl.col("w").ceil())}, {"design": "c"}):
        named: dict[str, Any] = {"weight": "w"} | options
        auc = wroc.summary(rows, "y", "s", **named)
        for whole in ({"fpr": (0, 1)}, {"tpr": (0.0, 1.0)}):
            area = found(rows, **whole, **options)
            expected = auc.select("auc", "auc_se", "auc_low", "auc_high").row(0)
            assert [area[name] for name in AREA_COLUMNS] == pytest.approx(expected)


class Part(NamedTuple):
    """The part of the curve at one score that is in a range of false positive rates."""

    share: float
    width: float
    tpr: float


def parts(rows: list[Row], low: float, high: float) -> dict[float, Part]:
    """Cut the curve at both ends, with the mean true positive rate of each part."""
    totals = [sum(row.w for row in rows if row.y == y) for y in (0, 1)]
    found = {}
    fpr = tpr = 0.0
    for s in sorted({row.s for row in rows}, reverse=True):
        across, up = (sum(r.w for r in rows if r.s == s and r.y == y) / totals[y] for y in (0, 1))
        start, end = max(fpr, low), min(fpr + across, high)
        if end > start:
            middle = tpr + up * ((start + end) / 2 - fpr) / across
            found[s] = Part((end - start) / across, end - start, middle)
        fpr, tpr = fpr + across, tpr + up
    return found


def area_of(rows: list[Row], low: float, high: float) -> float:
    """The area as a proportion of a perfect score's."""
    return sum(part.width * part.tpr for part in parts(rows, low, high).values()) / (high - low)


def fpr_limits(
    rows: list[Row], ends: tuple[float, float], level: float, *, frequency: bool = False
) -> list[float] | None:
    """Limits of the area (methods3c.md, section 8), with influences by changing the weights."""
    area, width = area_of(rows, *ends), ends[1] - ends[0]
    variances, h2s, number = [], [], 0.0
    for y in (1, 0):
        members = [i for i, row in enumerate(rows) if row.y == y]
        total = sum(rows[i].w for i in members)
        h = np.array([rows[i].w / total for i in members])
        each = np.full(len(h), 1 / total) if frequency else h
        steps = []
        for i in members:
            step = 1e-5 * rows[i].w
            changed = (
                [*rows[:i], rows[i]._replace(w=rows[i].w + change), *rows[i + 1 :]]
                for change in (-step, step)
            )
            less, more = (area_of(each_changed, *ends) for each_changed in changed)
            steps.append(total * (more - less) / (2 * step))
        h2, h3 = h @ each, h @ each**2
        factor = h2 / (h2 - 2 * h3 + h2**2)
        variances.append(factor * float(h * each @ np.array(steps) ** 2))
        h2s.append(h2)
        if y == 0:
            inside = parts(rows, *ends)
            shares = [inside[rows[i].s].share if rows[i].s in inside else 0.0 for i in members]
            number = width**2 / float(h * each @ np.array(shares))
    of_pos, of_neg = variances
    if number < 4 or of_pos + of_neg < 1e-12:
        return None
    spread = area * (1 - area)
    r = of_pos / spread + (number * of_neg / spread + 2 / number) / (number + 2)
    inverse = of_neg**2 / (number - 1) + of_pos**2 * h2s[0] / (1 - h2s[0])
    t = stats.t.ppf((1 + level) / 2, max((of_pos + of_neg) ** 2 / inverse, 1))
    root = t * math.sqrt(spread * r + t**2 * r**2 / 4)
    return [width * (area + t**2 * r / 2 + sign * root) / (1 + t**2 * r) for sign in (-1, 1)]


RANGES = st.sampled_from([(0.0, 0.3), (0.0, 0.6), (0.0, 0.85)])


@given(st.integers(0, 10_000), RANGES, st.sampled_from([0.8, 0.95]), st.booleans())
def test_ranges_of_false_positive_rates_by_the_definition(
    seed: int, ends: tuple[float, float], level: float, frequency: bool
) -> None:
    rows = sample(seed, 12, 20, 3.0)
    if frequency:
        rows = [row._replace(w=float(math.ceil(row.w))) for row in rows]
    weight = wroc.frequency("w") if frequency else "w"
    interval = found(frame_of(rows), fpr=ends, level=level, weight=weight)
    expected = fpr_limits(rows, ends, level, frequency=frequency)
    limits = [interval["partial_auc_low"], interval["partial_auc_high"]]
    if expected is None:
        assert limits == [None, None]
        return
    # Derivatives by differences have half of the digits.
    assert limits == pytest.approx(expected, abs=1e-6)


def test_range_with_fewer_than_four_negatives_has_no_limits() -> None:
    rows = frame_of(sample(4, 40, 40, 100.0))
    # 40 * 0.1 may be less than 4 by rounding.
    for end, known in ((0.1, True), (0.0999, False)):
        interval = found(rows, fpr=(0, end), weight=None)
        assert (interval["partial_auc_low"] is not None) == known
        assert interval["partial_auc_se"] > 0
        assert found(rows, fpr=(0, end), weight=None, method="logit")["partial_auc_low"] > 0
    # Of weights in the range, effective negatives are counted.
    heavy = rows.with_columns(w=pl.when(pl.int_range(pl.len()) % 2 == 0).then(3).otherwise(1))
    assert found(heavy, fpr=(0, 0.11))["partial_auc_low"] is None
    assert found(heavy, fpr=(0, 0.11), weight=wroc.frequency("w"))["partial_auc_low"] > 0


def test_range_without_a_variance_has_no_limits() -> None:
    perfect = pl.DataFrame({"y": [1] * 10 + [0] * 40, "s": range(50, 0, -1), "w": 1.0})
    for frame, area in ((perfect, 0.3), (perfect.with_columns(-pl.col("s")), 0.0)):
        interval = found(frame, fpr=(0, 0.3))
        assert interval["partial_auc"] == pytest.approx(area)
        assert (interval["partial_auc_se"], interval["partial_auc_low"]) == (0.0, None)
    one = found(perfect.tail(41), fpr=(0, 0.3))
    assert (one["partial_auc_se"], one["partial_auc_low"]) == (None, None)


@pytest.mark.parametrize("ends", [(0.0, 0.3), (0.0, 0.5)])
def test_dependent_rows_have_the_design_effect_of_the_variance(ends: tuple[float, float]) -> None:
    random = np.random.default_rng(12)
    frame = pl.DataFrame({"y": random.random(600) < 0.4, "s": random.normal(size=600)})
    frame = frame.with_row_index("c").with_columns(pl.col("s") + pl.col("y"), pl.col("c") % 12)
    survey = wroc.Survey("c", strata=pl.lit("all"))
    free, clusters, units = (
        summarise_area(frame, fpr=ends, design=design).row(0, named=True)
        for design in (None, "c", survey)
    )
    for table in (clusters, units):
        area, width = table["partial_auc"] / (ends[1] - ends[0]), ends[1] - ends[0]
        effect = (table["partial_auc_se"] / free["partial_auc_se"]) ** 2
        # Both limits are Wilson's, so that each tells the product of t squared and the inverse
        # size; of rows that is the same but for the effect and t.
        products = []
        for of in (table, free):
            for end in ("low", "high"):
                limit = of[f"partial_auc_{end}"] / width
                products.append((limit - area) ** 2 / (limit * (1 - limit)))
        assert products[0] == pytest.approx(products[1], rel=1e-9)
        assert products[2] == pytest.approx(products[3], rel=1e-9)
        large = stats.norm.ppf(0.975) ** 2
        few = stats.t.ppf(0.975, 11) ** 2
        assert products[0] / products[2] < effect * few / large
        assert products[0] / products[2] > effect * few / large * 0.9


def test_range_with_fewer_than_three_positives_has_no_limits() -> None:
    rows = frame_of(sample(4, 15, 40, 100.0))
    # 15 * (1 - 0.8) is less than 3 by rounding.
    for start, known in ((0.8, True), (0.801, False)):
        interval = found(rows, tpr=(start, 1), weight=None)
        assert (interval["partial_auc_low"] is not None) == known
        assert interval["partial_auc_se"] > 0
        assert found(rows, tpr=(start, 1), weight=None, method="logit")["partial_auc_low"] > 0


def test_positives_in_the_range_are_counted_not_their_clusters() -> None:
    random = np.random.default_rng(12)
    frame = pl.DataFrame({"y": random.random(600) < 0.4, "s": random.normal(size=600)})
    frame = frame.with_row_index("c").with_columns(pl.col("s") + pl.col("y"), pl.col("c") % 12)
    free, found = (summarise_area(frame, tpr=(0.8, 1), design=cluster) for cluster in (None, "c"))
    assert found["n_eff_pos"].item() < 13
    widths = [
        table["partial_auc_high"].item() - table["partial_auc_low"].item()
        for table in (free, found)
    ]
    assert 0.5 < widths[1] / widths[0] < 2


def test_range_that_ends_below_1_has_no_limits() -> None:
    rows = frame_of(sample(4, 40, 40, 100.0))
    interval = found(rows, tpr=(0.2, 0.9))
    assert interval["partial_auc_low"] is interval["partial_auc_high"] is None
    assert interval["partial_auc_se"] > 0
    assert found(rows, tpr=(0.2, 0.9), method="logit")["partial_auc_low"] > 0


def test_a_cluster_for_each_row_changes_the_quantile_only() -> None:
    rows = frame_of(sample(6, 30, 40, 5.0)).with_row_index("c")
    # The positives are in 30 of the 70 clusters.
    level = 2 * stats.norm.cdf(stats.t.ppf(0.975, 30)) - 1
    interval, expected = (
        found(rows, tpr=(0.5, 1), design="c"),
        found(rows, tpr=(0.5, 1), level=level),
    )
    for name in ("partial_auc_low", "partial_auc_high", "partial_auc_se", "n_eff_pos"):
        assert interval[name] == pytest.approx(expected[name], abs=1e-9)


def test_clusters_of_equal_rows_are_wider() -> None:
    once = frame_of(sample(6, 30, 40, 5.0)).with_row_index("c")
    twice = pl.concat([once, once])
    clustered, plain = found(twice, tpr=(0.5, 1), design="c"), found(twice, tpr=(0.5, 1))
    single = found(once, tpr=(0.5, 1))
    assert clustered["partial_auc_low"] == pytest.approx(single["partial_auc_low"], abs=0.03)
    assert clustered["partial_auc_low"] < plain["partial_auc_low"]
    assert clustered["n_eff_pos"] == pytest.approx(single["n_eff_pos"])


@pytest.mark.parametrize("scale", [1e-90, 1e90])
def test_far_weights_have_limits(scale: float) -> None:
    rows = frame_of(sample(4, 40, 40, 100.0))
    interval, scaled = (
        found(rows, tpr=(0.5, 1), weight=pl.col("w") * factor) for factor in (1.0, scale)
    )
    assert scaled["partial_auc_low"] == pytest.approx(interval["partial_auc_low"])


def test_undefined_is_null() -> None:
    rows = frame_of(sample(4, 40, 40, 100.0))
    one_class = rows.filter(pl.col("y") == 1)
    # The cubes of the weights overflow, their squares, and both underflow.
    far = [rows.with_columns(w=pl.lit(weight)) for weight in (1e110, 1e200, 1e-110, 1e-200)]
    for frame in (one_class, rows.clear(), *far):
        interval = found(frame, tpr=(0.5, 1))
        assert interval["partial_auc_low"] is interval["partial_auc_high"] is None


CELLS = [
    # Positives and negatives, how steeply weights fall with the score, and where the range starts.
    (15, 45, 0.0, 0.8),
    (50, 150, 0.0, 0.8),
    (50, 150, 0.6, 0.5),
    (200, 600, 0.6, 0.8),
]


@pytest.mark.slow(reason="simulates many samples")
@pytest.mark.parametrize(("positives", "negatives", "steep", "start"), CELLS)
def test_interval_holds_its_level(
    positives: int, negatives: int, steep: float, start: float
) -> None:
    replicates, shift = 1000, 1.4
    random = np.random.default_rng(23)
    y = np.tile(np.repeat([1, 0], [positives, negatives]), replicates)
    # Weights turn this distribution into one without the first term.
    s = steep + random.normal(size=y.size) + shift * y
    group = np.repeat(np.arange(replicates), positives + negatives)
    frame = pl.DataFrame({"g": group, "y": y, "s": s, "w": np.exp(-steep * s)})
    true, _ = integrate.quad(
        lambda tpr: stats.norm.cdf(shift + stats.norm.isf(tpr)), start, 1, epsabs=1e-10
    )
    coverage = {}
    for method in ("score", "logit"):
        named: dict[str, Any] = {"method": method, "tpr": (start, 1), "weight": "w"}
        table = summarise_area(frame, by="g", **named)
        inside = pl.lit(true).is_between("partial_auc_low", "partial_auc_high").mean()
        coverage[method] = table.select(inside).item()
    assert coverage["score"] > 0.95 - 3 * math.sqrt(0.05 * 0.95 / replicates)
    assert coverage["logit"] < coverage["score"]
