"""Rows needed: formulas of statsmodels, limits in plain Python, and the tables they are for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import (
    proportion_confint,
    samplesize_proportions_2indep_onetail,
)

import polars_wroc as wroc

Z, Z_POWER = stats.norm.ppf(0.975), stats.norm.ppf(0.8)


def needed(**given: Any) -> int | None:
    found: int | None = wroc.rows_needed(**given)["needed"].item()
    return found


def of_statsmodels(value: float, gap: float, ratio: float, level: float) -> float:
    size: float = samplesize_proportions_2indep_onetail(
        -gap, value, power=0.8, ratio=ratio, alpha=1 - level
    )
    return size


@pytest.mark.parametrize(
    ("value", "gap", "ratio", "tests", "expected"),
    [(0.8, 0.05, 1, 1, 1094), (0.2, 0.05, 4, 10, 994), (0.05, 0.03, 9, 1, 361)],
)
def test_gap_of_rates(value: float, gap: float, ratio: float, tests: int, expected: int) -> None:
    size = of_statsmodels(value, gap, ratio, 1 - 0.05 / tests)
    assert math.ceil(size) == expected
    table = wroc.rows_needed(
        metric="tpr", value=value, gap=gap, ratio=ratio, tests=tests, prevalence=0.1
    )
    assert table["needed"].item() == expected
    assert table["needed_reference"].item() == math.ceil(size * ratio)
    # The segment and its reference are all rows.
    assert table["needed_total"].item() == math.ceil(size * (1 + ratio) / 0.1)


def test_half_width_of_a_rate() -> None:
    assert needed(metric="fpr", value=0.9, half_width=0.05) == 141
    for rows, is_enough in ((141, True), (140, False)):
        low, high = proportion_confint(0.9 * rows, rows, method="wilson")
        assert ((high - low) / 2 <= 0.05) == is_enough


def wilson(rate: float, size: float, z: float) -> tuple[float, float]:
    low, high = proportion_confint(rate * size, size, alpha=2 * stats.norm.sf(z), method="wilson")
    return float(low), float(high)


def test_equivalent() -> None:
    assert needed(metric="tpr", value=0.5, equivalent_within=0.05) == 1712
    for rows, expected in ((1711, False), (1712, True)):
        high = wilson(0.5, rows, stats.norm.ppf(0.95))[1]
        distance = math.sqrt(2) * (high - 0.5)
        assert (distance + stats.norm.ppf(0.9) * math.sqrt(0.5 / rows) <= 0.05) == expected


@pytest.mark.parametrize(("changed", "margin", "expected"), [(0.02, 0.01, 1686), (0.1, 0.02, 1982)])
def test_no_worse(changed: float, margin: float, expected: int) -> None:
    table = wroc.rows_needed(metric="tpr", no_worse_by=margin, changed=changed)
    assert table["needed"].item() == expected
    assert table["needed_reference"].item() is None
    assert table["note"].item() == f"assumed: changed {changed:g}"
    for rows, is_enough in ((expected - 1, False), (expected, True)):
        p = changed / 2
        low, high = wilson(p, rows, Z)
        below, above, related = p - low, high - p, -p / (1 - p)
        loss = math.sqrt(below**2 + above**2 - 2 * related * below * above)
        assert (margin >= loss + Z_POWER * math.sqrt(changed / rows)) == is_enough


def test_observed_to_expected_ratio() -> None:
    # pmvalsampsize 0.2.1 searches in steps of the size, and gives 905.
    assert needed(metric="oe_ratio", prevalence=0.018, half_width=0.5) == 906
    error = math.asinh(0.5) / Z
    assert math.ceil((1 - 0.018) / (0.018 * error**2)) == 906


LOANS = wroc.data.loans()
GAPS: dict[str, Any] = {"attributes": ["race", "sex"], "threshold": 0.85, "min_rows": 0}


def gaps_of(frame: Any = LOANS, **given: Any) -> Any:
    return wroc.group_gaps(frame, "approved", "score", **(GAPS | given))


WEIGHT = {"weight": pl.col("score") + 0.1}


@pytest.mark.slow(reason="computes many tables")
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"reference": "overall"},
        {"reference": {"race": "white", "sex": "male"}, "adjust": "none"},
        WEIGHT,
        WEIGHT | {"reference": "overall", "level": 0.9},
        {"metrics": ["brier_score", "log_loss", "mcc", "tpr"]},
        {"design": "application"},
    ],
)
def test_inverse_of_detectable(given: dict[str, Any]) -> None:
    """What is detectable with the rows that there are needs just these."""
    table, level = gaps_of(**given), given.get("level", 0.95)
    known = table.filter(pl.col("detectable").is_not_null())
    for row in known.gather_every(4).rows(named=True):
        found = wroc.rows_needed(table, gap=row["detectable"], level=level)
        same = [pl.col(name).eq_missing(row[name]) for name in ("attribute", "segment", "metric")]
        assert found.filter(same)["factor"].item() == pytest.approx(1, abs=1e-9)


def test_gaps_of_a_table_have_the_formula_of_statsmodels() -> None:
    table = gaps_of(attributes="sex", adjust="none").filter(pl.col("metric") != "auc")
    found = wroc.rows_needed(table, gap=0.04)
    for row, each in zip(table.rows(named=True), found.rows(named=True), strict=True):
        if row["reason"] == "undefined":
            assert (each["factor"], each["note"]) == (None, "undefined")
            continue
        args = row["reference_value"], 0.04, row["n_reference"] / row["n"], 0.95
        size = of_statsmodels(*args)
        assert each["factor"] * row["n"] == pytest.approx(size, rel=1e-9)
        assert each["needed"] == math.ceil(size)
        assert each["needed_reference"] == math.ceil(size * args[2])


@pytest.mark.slow(reason="computes many tables")
def test_copies_of_the_rows_are_that_many_times_the_rows() -> None:
    times = 3
    few, many = (gaps_of(pl.concat([LOANS] * n), attributes="race") for n in (1, times))
    for row in many.rows(named=True):
        found = wroc.rows_needed(few, metric=row["metric"], gap=row["detectable"])
        factor = found.filter(segment=row["segment"])["factor"].item()
        if row["metric"] == "auc":
            # Its own moments and numbers of both classes are not in the table; few negatives are
            # hardly misranked.
            negatives = times * LOANS.filter(~pl.col("approved"), race=row["segment"]).height
            assert factor == pytest.approx(times, rel=0.1 if negatives < 100 else 0.05)
        else:
            assert factor == pytest.approx(times, rel=1e-9)


@pytest.mark.slow(reason="computes many tables")
@pytest.mark.parametrize("given", [{}, WEIGHT, {"design": "application"}])
def test_half_width_of_the_rows_that_there_are(given: dict[str, Any]) -> None:
    table = gaps_of(**given).filter(pl.col("value").is_between(0, 1, closed="none"))
    for row in table.gather_every(4).rows(named=True):
        width = (row["value_high"] - row["value_low"]) / 2
        found = wroc.rows_needed(table, half_width=width)
        same = [pl.col(name).eq_missing(row[name]) for name in ("attribute", "segment", "metric")]
        factor = found.filter(same)["factor"].item()
        # Weighted rates have a size for each limit.
        assert factor == pytest.approx(1, rel=1e-9 if "weight" not in given else 1e-3)


def test_a_table_agrees_with_assumptions() -> None:
    """Of rates without weights, where only the numbers of rows and the rate of a table matter."""
    table = gaps_of(adjust="none", reference={"race": "white", "sex": "male"})
    row = table.filter(segment="black", metric="tpr").row(0, named=True)
    value, ratio = row["reference_value"], row["n_reference"] / row["n"]
    targets: list[dict[str, Any]] = [{"gap": 0.07}, {"equivalent_within": 0.06}]
    for target in targets:
        found = wroc.rows_needed(table, metric="tpr", **target).filter(segment="black")
        given: dict[str, Any] = {"metric": "tpr", "value": value, "ratio": ratio} | target
        assert found["needed"].item() == needed(**given)
    own = wroc.rows_needed(table, metric="tpr", half_width=0.03).filter(segment="black")
    assert own["needed"].item() == needed(metric="tpr", value=row["value"], half_width=0.03)


def test_tests_of_the_table() -> None:
    """Repeats and what is not tested do not count."""
    table = gaps_of()
    tested = table.filter(pl.col("p_adjusted").is_not_null())
    number = tested.filter(~pl.col("reason").fill_null("").str.starts_with("repeats")).height
    default = wroc.rows_needed(table, equivalent_within=0.05)
    assert default.equals(wroc.rows_needed(table, equivalent_within=0.05, tests=number))
    assert not default.equals(wroc.rows_needed(table, equivalent_within=0.05, tests=1))


def test_rows_in_all() -> None:
    table = gaps_of(attributes="race")
    found = wroc.rows_needed(table, metric="tpr", gap=0.1)
    totals = (found["factor"] * LOANS.height * (1 - 1e-10)).ceil().cast(pl.Int64)
    assert found["needed_total"].equals(totals, check_names=False)
    alone = wroc.rows_needed(table.filter(metric="tpr"), gap=0.1)
    assert alone["needed_total"].null_count() == alone.height


def test_a_lazy_table() -> None:
    lazy = gaps_of(LOANS.lazy())
    assert wroc.rows_needed(lazy, gap=0.1).equals(wroc.rows_needed(gaps_of(), gap=0.1))


@pytest.mark.slow(reason="tries many random rows")
@settings(max_examples=15)
@given(
    value=st.floats(0.02, 0.98),
    goal=st.floats(0.01, 0.4),
    ratio=st.floats(0.1, 10),
    target=st.sampled_from(["half_width", "gap", "equivalent_within"]),
    metric=st.sampled_from(["tpr", "auc"]),
)
def test_more_is_needed_for_more(
    value: float, goal: float, ratio: float, target: str, metric: str
) -> None:
    value = max(value, 0.6) if metric == "auc" else value
    given: dict[str, Any] = {"metric": metric, "value": value, target: goal, "prevalence": 0.3}
    given |= {} if target == "half_width" else {"ratio": ratio}
    rows = needed(**given)
    finer, surer = needed(**(given | {target: 0.9 * goal})), needed(**given, level=0.99)
    doubled = needed(**given, deff=2)
    if rows is None:
        assert (target, doubled) == ("gap", None)
        assert goal >= value - (0.5 if metric == "auc" else 0)
        return
    assert finer is not None
    assert surer is not None
    assert doubled is not None
    assert rows <= finer
    assert rows <= surer
    assert 2 * rows - 2 <= doubled <= 2 * rows


@pytest.mark.parametrize(
    ("given", "note"),
    [
        ({"metric": "tpr", "value": 0.05, "gap": 0.05}, "not reachable"),
        ({"metric": "auc", "value": 0.55, "gap": 0.06, "prevalence": 0.5}, "not reachable"),
        ({"metric": "auc", "value": 0.8, "gap": 0.06, "prevalence": 0}, "not reachable"),
        ({"metric": "oe_ratio", "prevalence": 1, "half_width": 0.1}, "undefined"),
        ({"metric": "tpr", "value": 0.5, "half_width": 1e-6}, "not reachable"),
    ],
)
def test_never(given: dict[str, Any], note: str) -> None:
    row = wroc.rows_needed(**given).row(0, named=True)
    names = ("have", "factor", "needed", "needed_reference", "needed_total")
    assert [row[name] for name in names] == [None] * 5
    assert row["note"].startswith(note)


def test_the_gap_that_was_observed_is_refused() -> None:
    table = gaps_of(attributes="race")
    observed = table.filter(segment="hispanic", metric="tpr")["gap"].item()
    found = wroc.rows_needed(table, metric="tpr", gap=abs(observed))
    row = found.filter(segment="hispanic").row(0, named=True)
    assert (row["needed"], row["note"]) == (
        None,
        "the gap that was observed: choose one that matters",
    )
    assert found["needed"].null_count() == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"metric": "tpr", "value": 0.5}, "exactly one of .* must be given; found none"),
        ({"gap": 0.1, "half_width": 0.1}, "found `half_width` and `gap`"),
        ({"metric": "tpr", "gap": 0.1}, "`value` must be given for `gap` of tpr; found None"),
        ({"metric": "auc", "value": 0.8, "gap": 0.1}, "`prevalence` must be given"),
        ({"metric": "tprr", "gap": 0.1}, "found 'tprr'; did you mean 'tpr'"),
        ({"gap": 0.1}, "`metric` must be one of auc, .* for `gap` without a table; found None"),
        ({"metric": "oe_ratio", "gap": 0.1}, "must be one of auc, .* for `gap`"),
        ({"metric": "auc", "no_worse_by": 0.1}, "must be one of .* for `no_worse_by`"),
        ({"metric": "tpr", "value": 0.5, "gap": 0.1, "changed": 0.8}, "`changed` must not be"),
        ({"metric": "tpr", "no_worse_by": 0.1}, "`changed` must be given"),
        ({"metric": "tpr", "value": 0.5, "gap": 0.1, "ratio": 0}, "`ratio` must"),
        (
            {"table": LOANS, "gap": 0.1},
            "`table` must be a table of .*; found no column .attribute.",
        ),
        ({"table": gaps_of(), "gap": 0.1, "value": 0.8}, "`value` must not be given"),
        ({"table": gaps_of(), "gap": 0.1, "deff": 2}, "`deff` must not be given"),
        ({"table": gaps_of(), "metric": "tprr", "gap": 0.1}, "did you mean 'tpr'"),
        (
            {"table": wroc.score_counts(LOANS, "approved", "score"), "half_width": 0.1},
            "`table` must be a table of .*; found no column .attribute.",
        ),
    ],
)
def test_rows_needed_refuse_questions_without_an_answer(
    given: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        wroc.rows_needed(**given)


def test_a_table_is_a_frame() -> None:
    with pytest.raises(TypeError, match="`table` must be None or a table of `group_gaps`"):
        wroc.rows_needed([1], gap=0.1)  # type: ignore[arg-type]


def test_a_margin_is_that_of_a_release() -> None:
    rng = np.random.default_rng(1)
    old = rng.random(500)
    new = old + rng.normal(0, 0.1, 500)
    rows = pl.DataFrame({"y": rng.random(500) < old, "old": old, "new": new})
    release = wroc.release_check(rows, "y", "old", "new", threshold=0.5)
    needed = wroc.rows_needed(release, no_worse_by=0.01)
    assert needed.height == release.height
    assert (needed["needed"] > 0).all()
    with pytest.raises(ValueError, match=r"^`table` must not come from `release_check` for `gap`"):
        wroc.rows_needed(release, gap=0.05)
    halves = rows.with_columns(g=pl.col("old") > 0.5)
    gaps = wroc.group_gaps(halves, "y", "new", attributes="g", threshold=0.5)
    with pytest.raises(ValueError, match=r"^`table` must come from `release_check` for `no_worse"):
        wroc.rows_needed(gaps, no_worse_by=0.01)


def test_segments_that_are_left_out_count_in_the_total() -> None:
    random = np.random.default_rng(7)
    frame = pl.DataFrame(
        {
            "y": random.integers(0, 2, 800),
            "p": random.random(800),
            "g": random.choice([*"abcd"], 800, p=[0.5, 0.3, 0.17, 0.03]),
        }
    )
    given: dict[str, Any] = {"attributes": "g", "threshold": 0.5, "favorable": "selected"}
    whole, some = (wroc.audit(frame, "y", "p", **given, min_cell=cell).table for cell in (None, 20))
    assert set(some["segment"]) < set(whole["segment"])
    needed = [wroc.rows_needed(table, equivalent_within=0.05, tests=1) for table in (whole, some)]
    keys = ["attribute", "segment", "metric"]
    both = needed[1].join(needed[0], on=keys, suffix="_whole")
    assert both["needed_total"].to_list() == both["needed_total_whole"].to_list()
    known = both.drop_nulls("needed_reference")
    assert (known["needed_reference"] <= known["needed_total"]).all()
