"""Impact ratios by the design of a survey."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import plain_picked
import polars as pl
import pytest
from plain_survey import SAMPLE, Row, covariance, degrees_of_freedom, rate_influences, totals
from polars.testing import assert_frame_equal
from scipy import optimize, stats
from sweeps import sweep
from wide_tables import wide_ratios

import polars_wroc as wroc
from polars_wroc.typing import Favorable

THRESHOLD = 0.5


@pytest.fixture(scope="module")
def survey() -> pl.DataFrame:
    """Five strata of four units; rows of one unit are similar, and group c is in few units."""
    random = np.random.default_rng(1978)
    rows = 500
    stratum, unit = random.integers(0, 5, rows), random.integers(0, 4, rows)
    shared = random.normal(size=(5, 4))[stratum, unit]
    few = random.choice(list("ab"), rows)
    group = np.where(unit < 2, random.choice(list("abc"), rows), few)
    sex = random.choice(["f", "m", "?"], rows, p=[0.45, 0.45, 0.1])
    frame = pl.DataFrame(
        {
            "h": stratum,
            "c": unit,
            "s": (random.normal(size=rows) + 0.5 * shared + 0.4 * (group == "a")).round(2),
            "w": random.lognormal(sigma=0.5, size=rows),
            "g": group,
            "sex": sex,
        }
    )
    return frame.with_columns(pl.col("sex").replace("?", None))


def rows_of(frame: pl.DataFrame) -> list[Row]:
    return [Row(h, c, 0, s, w) for h, c, s, w in frame.select("h", "c", "s", "w").iter_rows()]


@pytest.mark.parametrize("favorable", ["selected", "rejected"])
def test_against_the_definition(survey: pl.DataFrame, favorable: Favorable) -> None:
    units = {row.psu for row in rows_of(survey)}
    table = wide_ratios(
        survey, "s", attributes="g", threshold=THRESHOLD, favorable=favorable, **SAMPLE
    )
    groups = {g: rows_of(rows) for (g,), rows in survey.group_by("g")}
    own: dict[str, tuple[float, float, dict[tuple[int, int], float], int]] = {}
    for g, rows in groups.items():
        value, weights, influences = rate_influences(rows, "selection_rate", THRESHOLD)
        assert value is not None
        z = totals(rows, influences)
        kish = sum(weights) ** 2 / sum(w * w for w in weights)
        size = min(kish, value * (1 - value) / covariance(z, z, units))
        rate = value if favorable == "selected" else 1 - value
        own[g] = rate, size, z, degrees_of_freedom(rows, units)
    best = max(own, key=lambda g: own[g][0])
    z_joint = float(stats.studentized_range.ppf(0.95, 3, np.inf)) / math.sqrt(2)
    for row in table.filter(pl.col("segment") != best).iter_rows(named=True):
        (a, n, za, dfa), (b, m, zb, dfb) = own[row["segment"]], own[best]
        df = min(dfa, dfb)
        spreads = covariance(za, za, units) * covariance(zb, zb, units)
        related = max(-0.95, min(0.95, covariance(za, zb, units) / math.sqrt(spreads)))
        students = float(stats.t.isf(stats.norm.sf(z_joint), df))
        assert row["reference"] == best
        limits = limits_of_ratio(wilson(a, n, students), wilson(b, m, students), related)
        assert [row["ratio_low"], row["ratio_high"]] == pytest.approx(limits, rel=1e-6)
        excess = partial(excess_at, one=(a, n), other=(b, m), related=related)
        p_value = 2 * float(stats.t.sf(optimize.brentq(excess, 1e-6, 50.0), df))
        assert row["p_value"] == pytest.approx(plain_picked.p_value(p_value, 3), rel=1e-6)


def excess_at(
    t: float, one: tuple[float, float], other: tuple[float, float], related: float
) -> float:
    """By how much the upper limit at a quantile exceeds 1."""
    return limits_of_ratio(wilson(*one, t), wilson(*other, t), related)[1] - 1


def wilson(rate: float, size: float, t: float) -> tuple[float, float, float]:
    extra = t * t / size
    root = math.sqrt(extra * rate * (1 - rate) + extra**2 / 4)
    return rate, (rate + extra / 2 - root) / (1 + extra), (rate + extra / 2 + root) / (1 + extra)


def limits_of_ratio(
    one: tuple[float, float, float], other: tuple[float, float, float], related: float
) -> tuple[float, float]:
    """Where the limits of ``one - r * other`` by MOVER cross 0, by bisection."""

    def excess(r: float, sign: int) -> float:
        (a, la, ua), (b, lb, ub) = one, other
        x, y = (a - la, r * (ub - b)) if sign < 0 else (ua - a, r * (b - lb))
        return a - r * b + sign * math.sqrt(max(0.0, x * x + y * y - 2 * related * x * y))

    ends = []
    for sign, start, end in ((-1, 0.0, one[0] / other[0]), (1, one[0] / other[0], 100.0)):
        low, high = start, end
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if excess(middle, sign) > 0 else (low, middle)
        ends.append(low)
    return ends[0], ends[1]


@pytest.mark.parametrize("replicated", sweep([False, True]))
def test_as_group_gaps_and_threshold_metrics(survey: pl.DataFrame, replicated: bool) -> None:
    design = SAMPLE
    if replicated:
        # Each leaves out the rows of one unit number.
        weights = [(pl.col("w") * (pl.col("c") != i) * 4 / 3).alias(f"w{i}") for i in range(4)]
        design = {"weight": "w", "design": wroc.ReplicateWeights(weights, "jk1")}
    options: dict[str, Any] = {"attributes": "g", "threshold": THRESHOLD, "reference": "b"}
    found = wide_ratios(survey, "s", **options, **design, favorable="selected")
    gaps = wroc.group_gaps(survey, pl.col("s") > 0, "s", **options, **design)
    expected = gaps.filter(metric="selection_rate", reference="b")
    names = ["segment", "n", "value", "value_low", "value_high", "n_reference", "reference_value"]
    assert_frame_equal(found.select(names), expected.select(names))
    others, numbers = pl.col("segment") != "b", ["ratio", "p_value"]
    assert_frame_equal(
        found.filter(others).select(numbers), expected.filter(others).select(numbers)
    )
    metrics = wroc.threshold_metrics(
        survey, pl.col("s") > 0, "s", by="g", threshold=THRESHOLD, level=0.95, **design
    )
    rates = {f"value{end}": f"selection_rate{end}" for end in ("", "_low", "_high")}
    assert_frame_equal(found.select(*rates), metrics.select(**rates))


def test_attributes_and_crossed(survey: pl.DataFrame) -> None:
    options: dict[str, Any] = {"threshold": THRESHOLD, "adjust": "none", **SAMPLE}
    both = wide_ratios(
        survey, "s", attributes=["g", "sex"], intersections=True, **options, favorable="selected"
    )
    for name in ("g", "sex"):
        alone = wide_ratios(survey, "s", attributes=name, **options, favorable="selected")
        assert_frame_equal(both.filter(attribute=name), alone)
    # Rows of unknown sex are in units all the same.
    crossed = pl.when(pl.col("sex").is_not_null()).then(pl.col("g") + ", " + pl.col("sex"))
    expected = wide_ratios(
        survey, "s", attributes=crossed.alias("crossed"), **options, favorable="selected"
    )
    found = both.filter(~pl.col("attribute").is_in(["g", "sex"]))
    assert_frame_equal(found.drop("attribute"), expected.drop("attribute"))


def test_rows_without_strata_and_with_a_known_population(survey: pl.DataFrame) -> None:
    options: dict[str, Any] = {"attributes": "g", "threshold": THRESHOLD, "weight": "w"}
    plain = wide_ratios(survey, "s", **options, favorable="selected")
    census = wide_ratios(
        survey,
        "s",
        design=wroc.Survey("c", strata="h", fpc=pl.lit(0.9)),
        **options,
        favorable="selected",
    )
    sample = wide_ratios(
        survey, "s", design=wroc.Survey("c", strata="h"), **options, favorable="selected"
    )
    assert census["ratio"].to_list() == pytest.approx(plain["ratio"].to_list())
    narrower = census["ratio_low"] >= sample["ratio_low"]
    assert narrower.drop_nulls().to_list() == [True, True]
    lonely = survey.filter((pl.col("h") != 0) | (pl.col("c") == 0))
    null = wide_ratios(
        lonely, "s", design=wroc.Survey("c", strata="h"), **options, favorable="selected"
    )
    assert null["ratio_low"].null_count() == null.height
    known = wide_ratios(
        lonely,
        "s",
        design=wroc.Survey("c", strata="h", lonely="adjust"),
        **options,
        favorable="selected",
    )
    assert known["ratio_low"].null_count() == 1
