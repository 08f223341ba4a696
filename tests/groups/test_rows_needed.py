"""Rows needed: formulas of statsmodels, limits in plain Python, and the tables they are for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats
from scipy.integrate import quad
from statsmodels.stats.proportion import (
    proportion_confint,
    samplesize_proportions_2indep_onetail,
)

import polars_wroc as wroc
from polars_wroc.metrics.score_interval import squared_placements

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


@given(st.floats(0.01, 0.99))
def test_placements_of_normal_scores(auc: float) -> None:
    place = stats.norm.ppf(1 - auc)
    owen = 1 - auc - 2 * special.owens_t(place, 1 / math.sqrt(3))
    assert squared_placements(1 - auc) == pytest.approx(owen, rel=1e-10, abs=1e-15)


def test_placements_by_the_bivariate_normal_distribution() -> None:
    place = stats.norm.ppf(0.25)
    both = stats.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]]).cdf([place, place])
    assert squared_placements(0.25) == pytest.approx(both, abs=1e-7)
    assert squared_placements(0.25) == pytest.approx(0.1202751073, abs=1e-10)
    assert [squared_placements(end) for end in (0.0, 1.0)] == [0, 1]


def wilson(rate: float, size: float, z: float) -> tuple[float, float]:
    low, high = proportion_confint(rate * size, size, alpha=2 * stats.norm.sf(z), method="wilson")
    return float(low), float(high)


def is_below(rows: float, ratio: float, z: float = Z, value: float = 0.2) -> bool:
    """Whether an impact ratio of .6 is surely below .8."""
    own = 0.6 * value
    high, low = wilson(own, rows, z)[1], wilson(value, ratio * rows, z)[0]
    distance = math.hypot(high - own, 0.8 * (value - low))
    spread = own * (1 - own) / rows + 0.64 * value * (1 - value) / (ratio * rows)
    return bool(0.8 * value - own >= distance + Z_POWER * math.sqrt(spread))


@pytest.mark.parametrize(("ratio", "expected"), [(1, 1043), (9, 641)])
def test_ratio_surely_below(ratio: float, expected: int) -> None:
    given = {"metric": "impact_ratio", "value": 0.2, "ratio_below": 0.8, "impact": 0.6}
    assert needed(**given, ratio=ratio) == expected
    assert [is_below(rows, ratio) for rows in (expected - 1, expected)] == [False, True]
    strict = needed(**given, ratio=ratio, tests=10)
    assert strict is not None
    z = stats.norm.ppf(1 - 0.0025)
    assert [is_below(n, ratio, z) for n in (strict - 1, strict)] == [False, True]


def test_ratio_surely_above() -> None:
    rows = needed(metric="selection_rate", value=0.5, ratio_below=0.8, impact=1)
    assert rows is not None
    for n, expected in ((rows - 1, False), (rows, True)):
        low, high = wilson(0.5, n, Z)
        distance = math.hypot(0.5 - low, 0.8 * (high - 0.5))
        spread = 0.25 * (1 + 0.64) / n
        assert (distance + Z_POWER * math.sqrt(spread) <= 0.1) == expected


def test_alike() -> None:
    assert needed(metric="tpr", value=0.5, alike_within=0.05) == 1712
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
    assert needed(metric="oe_ratio", prevalence=0.1, se=0.1) == 900
    # pmvalsampsize 0.2.1 searches in steps of the size, and gives 905.
    assert needed(metric="oe_ratio", prevalence=0.018, half_width=0.5) == 906
    error = math.asinh(0.5) / Z
    assert math.ceil((1 - 0.018) / (0.018 * error**2)) == 906


def counts_of(scores: list[float], rows: list[int], **more: Any) -> pl.DataFrame:
    """Counts of rows of which as many are positive as the score says."""
    frame = pl.DataFrame({"s": scores, "rows": rows})
    positive = (pl.col("s") * pl.col("rows")).round().cast(pl.Int64)
    parts = [
        frame.with_columns(y=pl.lit(y), rows=n)
        for y, n in ((1, positive), (0, pl.col("rows") - positive))
    ]
    rows_of = pl.concat(parts).select(pl.all().repeat_by("rows").explode())
    return wroc.score_counts(rows_of, "y", "s", **more)


def test_slope_from_counts() -> None:
    scores, rows = [0.05, 0.1, 0.2, 0.4], [500, 300, 150, 50]
    table = wroc.rows_needed(counts_of(scores, rows), metric="calibration_slope", se=0.1)
    logits = sm.add_constant(special.logit(np.tile(scores, 2)))
    events = np.array(scores) * rows
    weights, labels = np.r_[events, rows - events], np.repeat([1, 0], 4)
    fit = sm.GLM(labels, logits, sm.families.Binomial(), freq_weights=weights).fit()
    expected = 1000 * fit.bse[1] ** 2 / 0.01
    assert expected == pytest.approx(1629.8831839802, rel=1e-8)
    assert table["factor"].item() == pytest.approx(1.6298831839802, rel=1e-11)
    row = table.row(0, named=True)
    assert [row[name] for name in ("have", "needed", "needed_total")] == [1000, 1630, 1630]
    assert [row[name] for name in ("attribute", "sampling_unit")] == ["overall", "rows"]
    wide = wroc.rows_needed(counts_of(scores, rows), metric="calibration_slope", half_width=0.1 * Z)
    assert wide["needed"].item() == 1630


def test_slope_of_normal_logits() -> None:
    """Of logits with mean -5 and sd 2.5; pmvalsampsize 0.2.1 gives 4545 from 200,000 of them."""
    step = 0.01
    logits = np.arange(-17.5, 7.5, step)
    rows = np.round(1e9 * stats.norm.pdf(logits, -5, 2.5) * step).astype(int)
    frame = pl.DataFrame({"s": special.expit(logits), "w": rows, "y": [1, 0] * 1250})
    counts = wroc.score_counts(frame, "y", "s", weight=wroc.frequency("w"))
    found = wroc.rows_needed(counts, metric="calibration_slope", half_width=0.1)
    density = stats.norm(-5, 2.5).pdf

    def information(x: float, power: int) -> float:
        value: float = x**power * special.expit(x) * special.expit(-x) * density(x)
        return value

    parts = [quad(information, -30, 20, args=(power,))[0] for power in range(3)]
    size = (Z / 0.1) ** 2 * parts[0] / (parts[0] * parts[2] - parts[1] ** 2)
    assert size == pytest.approx(4553.88 * (Z / 1.96) ** 2, abs=0.01)
    assert found["needed"].item() == pytest.approx(size, abs=2)


LOANS = wroc.data.loans()
GAPS: dict[str, Any] = {"attributes": ["race", "sex"], "threshold": 0.85}


def gaps_of(frame: Any = LOANS, **given: Any) -> Any:
    return wroc.group_gaps(frame, "approved", "score", **(GAPS | given))


WEIGHT = {"weight": pl.col("score") + 0.1}


@pytest.mark.slow
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


@pytest.mark.slow
def test_copies_of_the_rows_are_that_many_times_the_rows() -> None:
    times = 3
    few, many = (gaps_of(pl.concat([LOANS] * n), attributes="race") for n in (1, times))
    for row in many.rows(named=True):
        found = wroc.rows_needed(few, metric=row["metric"], gap=row["detectable"])
        factor = found.filter(segment=row["segment"])["factor"].item()
        if row["metric"] == "auc":
            # Its own moments are not in the table; few negatives are hardly misranked.
            assert factor == pytest.approx(times, rel=0.1 if row["n"] < 100 else 0.01)
        else:
            assert factor == pytest.approx(times, rel=1e-9)


@pytest.mark.slow
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
    targets: list[dict[str, Any]] = [{"gap": 0.07}, {"alike_within": 0.06}]
    for target in targets:
        found = wroc.rows_needed(table, metric="tpr", **target).filter(segment="black")
        given: dict[str, Any] = {"metric": "tpr", "value": value, "ratio": ratio} | target
        assert found["needed"].item() == needed(**given)
    own = wroc.rows_needed(table, metric="tpr", half_width=0.03).filter(segment="black")
    assert own["needed"].item() == needed(metric="tpr", value=row["value"], half_width=0.03)
    ratios = wroc.impact_ratios(
        LOANS, score="score", threshold=0.85, attributes="race", favorable="selected"
    )
    row = ratios.filter(segment="black").row(0, named=True)
    bound: dict[str, Any] = {"ratio_below": 0.8, "impact": 0.6, "tests": 1}
    found = wroc.rows_needed(ratios, **bound).filter(segment="black")
    given = bound | {"metric": "impact_ratio", "value": row["reference_value"]}
    assert found["needed"].item() == needed(**given, ratio=row["n_reference"] / row["n"])


def test_tests_of_the_table() -> None:
    """Repeats and what is not tested do not count."""
    table = gaps_of()
    tested = table.filter(pl.col("p_adjusted").is_not_null())
    number = tested.filter(~pl.col("reason").fill_null("").str.starts_with("repeats")).height
    default = wroc.rows_needed(table, alike_within=0.05)
    assert default.equals(wroc.rows_needed(table, alike_within=0.05, tests=number))
    assert not default.equals(wroc.rows_needed(table, alike_within=0.05, tests=1))


def test_rows_in_all() -> None:
    table = gaps_of(attributes="race")
    found = wroc.rows_needed(table, metric="tpr", gap=0.1)
    totals = (found["factor"] * LOANS.height * (1 - 1e-10)).ceil().cast(pl.Int64)
    assert found["needed_total"].equals(totals, check_names=False)
    alone = wroc.rows_needed(table.filter(metric="tpr"), gap=0.1)
    assert alone["needed_total"].null_count() == alone.height


def test_groups_of_counts() -> None:
    scores = pl.col("score").clip(0.01, 0.99).round(2)
    frame = LOANS.with_columns(scores)
    counts = wroc.score_counts(frame, "approved", "score", by=["race", "sex"], weight="score")
    found = wroc.rows_needed(counts, metric="oe_ratio", se=0.02)
    assert found["attribute"].unique().to_list() == ["race \N{MULTIPLICATION SIGN} sex"]
    row = found.filter(segment="black, female").row(0, named=True)
    own = frame.filter(race="black", sex="female")
    w, y = own["score"].to_numpy(), own["approved"].to_numpy()
    share = np.average(y, weights=w)
    kish = len(w) * (w**2).sum() / w.sum() ** 2
    assert row["factor"] * len(w) == pytest.approx((1 - share) / share * kish / 0.02**2)
    assert row["needed_total"] == pytest.approx(row["factor"] * LOANS.height, abs=1)
    assert wroc.rows_needed(counts.lazy(), metric="oe_ratio", se=0.02).equals(found)


def test_a_lazy_table() -> None:
    lazy = gaps_of(LOANS.lazy())
    assert wroc.rows_needed(lazy, gap=0.1).equals(wroc.rows_needed(gaps_of(), gap=0.1))


@pytest.mark.slow
@settings(max_examples=15)
@given(
    value=st.floats(0.02, 0.98),
    goal=st.floats(0.01, 0.4),
    ratio=st.floats(0.1, 10),
    target=st.sampled_from(["half_width", "gap", "alike_within"]),
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
        ({"metric": "oe_ratio", "prevalence": 1, "se": 0.1}, "undefined"),
        ({"metric": "tpr", "value": 0.5, "ratio_below": 0.8, "impact": 0.8}, "not reachable"),
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
        ({"metric": "tpr", "value": 0.8, "gap": 1.1}, "`gap` must lie strictly between 0 and 1"),
        ({"metric": "tpr", "value": 1.8, "gap": 0.1}, "`value` must lie between 0 and 1"),
        ({"metric": "tprr", "gap": 0.1}, "found 'tprr'; did you mean 'tpr'"),
        ({"gap": 0.1}, "`metric` must be out of auc, .* for `gap` without a table; found None"),
        ({"metric": "tpr", "se": 0.1}, "must be out of oe_ratio for `se`"),
        ({"metric": "tpr", "value": 0.5, "ratio_below": 0.8}, "`impact` must be given"),
        ({"metric": "tpr", "value": 0.5, "gap": 0.1, "impact": 0.8}, "`impact` must not be given"),
        ({"metric": "tpr", "no_worse_by": 0.1}, "`changed` must be given"),
        ({"metric": "tpr", "value": 0.5, "gap": 0.1, "power": 0.4}, "`power` must lie"),
        ({"metric": "tpr", "value": 0.5, "gap": 0.1, "tests": 0}, "`tests` must be 1 or more"),
        ({"metric": "tpr", "value": 0.5, "gap": 0.1, "ratio": 0}, "`ratio` must"),
        (
            {"table": LOANS, "gap": 0.1},
            "`table` must be a table of .*; found no column .attribute.",
        ),
        ({"table": gaps_of(), "gap": 0.1, "value": 0.8}, "`value` must not be given"),
        ({"table": gaps_of(), "gap": 0.1, "deff": 2}, "`deff` must not be given"),
        ({"table": gaps_of(), "metric": "tprr", "gap": 0.1}, "did you mean 'tpr'"),
        ({"table": gaps_of(), "se": 0.1}, "must have a metric for `se`"),
    ],
)
def test_messages(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wroc.rows_needed(**given)


def test_a_table_is_a_frame() -> None:
    with pytest.raises(TypeError, match="`table` must be None or a table of `group_gaps`"):
        wroc.rows_needed([1], gap=0.1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"metric": "tpr", "se": 0.1}, "must be out of calibration_slope, oe_ratio for `se`"),
        ({"metric": "oe_ratio", "gap": 0.1}, "must be out of none for `gap` from counts"),
    ],
)
def test_messages_on_counts(given: dict[str, Any], message: str) -> None:
    counts = wroc.score_counts(LOANS, "approved", "score")
    with pytest.raises(ValueError, match=message):
        wroc.rows_needed(counts, **given)


def test_counts_must_be_of_probabilities() -> None:
    frame = LOANS.with_columns(pl.col("score") * 2)
    for bins in (None, 16):
        counts = wroc.score_counts(frame, "approved", "score", bins=bins)
        with pytest.raises(ValueError, match="must have counts by scores from 0 to 1 for oe_ratio"):
            wroc.rows_needed(counts, metric="oe_ratio", se=0.1)


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
