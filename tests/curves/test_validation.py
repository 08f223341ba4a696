"""The validation table: the rows of other functions, losses by hand, and a loess of rows."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import stats
from sklearn.metrics import brier_score_loss
from skmisc.loess import loess

import polars_wroc as wroc

ENDS = ("", "_low", "_high")
VALUES = ["value", "value_low", "value_high"]


def frame_of(seed: int = 1, n: int = 240) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    chance = random.random(n)
    columns = {
        "y": random.random(n) < chance,
        "s": (0.1 + 0.85 * chance**1.3).clip(0, 1),
        "w": random.lognormal(0, 0.5, n),
        "c": np.arange(n) // 8,
        "g": random.choice(["a", "b"], n),
    }
    return pl.DataFrame(columns)


def row_of(table: pl.DataFrame, measure: str) -> tuple[Any, ...]:
    return table.filter(measure=measure).select(VALUES).row(0)


def test_rows_are_those_of_other_functions() -> None:
    frame = frame_of()
    options: dict[str, Any] = {"weight": "w", "by": "g", "level": 0.9}
    found = wroc.validate(frame, "y", "s", thresholds=[0.4, 0.2], smooth=False, **options)
    assert found.columns == ["g", "measure", "threshold", *VALUES, "n", "reason"]
    assert found["measure"].n_unique() == 12
    given = wroc.summary(frame, "y", "s", **options)
    calibration = wroc.calibration_summary(frame, "y", "s", **options)
    benefit = wroc.decision_curve(frame, "y", "s", thresholds=[0.2, 0.4], **options)
    for group in "ab":
        of_group = found.filter(g=group)
        assert of_group["n"].unique().to_list() == [given.filter(g=group)["n"].item()]
        assert row_of(of_group, "events")[0] == given.filter(g=group)["n_pos"].item()
        auc = given.filter(g=group).select("auc", "auc_low", "auc_high").row(0)
        assert row_of(of_group, "auc") == pytest.approx(auc)
        for measure in ("mean_calibration_error", "calibration_slope", "oe_ratio"):
            expected = calibration.filter(g=group).select(f"{measure}{end}" for end in ENDS)
            assert row_of(of_group, measure) == pytest.approx(expected.row(0))
        columns = ["threshold", *(f"net_benefit{end}" for end in ENDS)]
        expected = benefit.filter(g=group).select(columns)
        rows = of_group.filter(measure="net_benefit").select("threshold", *VALUES)
        assert_frame_equal(rows, expected.rename(dict(zip(columns, rows.columns, strict=True))))


def test_scaled_brier_score_by_hand() -> None:
    frame = frame_of(2)
    found = wroc.validate(frame, "y", "s", smooth=False)
    y, s = frame["y"].to_numpy().astype(float), frame["s"].to_numpy()
    share, brier = y.mean(), brier_score_loss(y, s)
    ratio = brier / (share * (1 - share))
    influence = ((y - s) ** 2 - brier) / brier
    influence -= (y - share) * (1 - 2 * share) / (share * (1 - share))
    margin = stats.norm.ppf(0.975) * np.sqrt((influence**2).sum()) / len(y)
    expected = 1 - ratio, 1 - ratio * np.exp(margin), 1 - ratio * np.exp(-margin)
    assert row_of(found, "scaled_brier") == pytest.approx(expected, rel=1e-9)


def test_losses_by_a_design_are_those_of_gaps() -> None:
    frame = frame_of(3).with_columns(h=pl.col("c") % 2)
    survey = wroc.Survey("c", strata="h")
    found = wroc.validate(frame, "y", "s", weight="w", by="g", design=survey, smooth=False)
    metrics = ["brier_score", "log_loss"]
    gaps = wroc.group_gaps(
        frame, "y", "s", weight="w", attributes="g", metrics=metrics, design=survey
    )
    for group, metric, *expected in gaps.select("segment", "metric", *VALUES).rows():
        assert row_of(found.filter(g=group), metric) == pytest.approx(expected)


def smooth_by_hand(frame: pl.DataFrame) -> list[float]:
    y, s = frame["y"].to_numpy().astype(float), frame["s"].to_numpy()
    fit = loess(s, y, span=0.75, degree=2)
    fit.fit()
    distances = np.abs(np.clip(fit.outputs.fitted_values, 0, 1) - s)
    quantiles = np.quantile(distances, [0.5, 0.9], method="inverted_cdf")
    return [distances.mean().item(), *quantiles.tolist()]


def test_smooth_measures_are_those_of_a_loess_of_rows() -> None:
    frame = frame_of(4)
    found = wroc.validate(frame, "y", "s", thresholds=0.5)
    values = [row_of(found, name) for name in ("ici", "e50", "e90")]
    assert [value for value, _, _ in values] == pytest.approx(smooth_by_hand(frame), rel=1e-9)
    assert all(0 <= low < high for _, low, high in values)
    counted = wroc.validate(
        frame.with_columns(n=1), "y", "s", weight=wroc.frequency("n"), thresholds=0.5
    )
    assert_frame_equal(found, counted, rel_tol=1e-9)
    again = wroc.validate(frame.sample(fraction=1, shuffle=True, seed=1), "y", "s", thresholds=0.5)
    assert_frame_equal(found, again, rel_tol=1e-9)
    many = pl.concat([frame_of(seed, 1200) for seed in (5, 6)])
    table = wroc.validate(many, "y", "s", thresholds=0.5)
    exact = smooth_by_hand(many)
    assert row_of(table, "ici")[0] == pytest.approx(exact[0], abs=2e-4)


def test_smooth_curve_is_a_loess_of_rows() -> None:
    frame = pl.concat([frame_of(4).with_columns(g=pl.lit(g)) for g in ("a", None)])
    options: dict[str, Any] = {"by": "g", "bins": 5, "strategy": "quantile"}
    found = wroc.calibration_curve(frame, "y", "s", smooth=True, **options)
    binned = wroc.calibration_curve(frame, "y", "s", **options)
    rates = ["smooth_rate", "smooth_rate_low", "smooth_rate_high"]
    assert found.columns == [*binned.columns, *rates]
    assert_frame_equal(found.drop(rates), binned)
    rows = frame_of(4).sort("s")
    s, y = (rows[name].cast(pl.Float64).to_numpy() for name in ("s", "y"))
    fit = loess(s, y, span=0.75, degree=2)
    fit.fit()
    expected = np.interp(found["mean_score"].head(5).to_numpy(), s, fit.outputs.fitted_values)
    for group in found.partition_by("g"):
        np.testing.assert_allclose(group["smooth_rate"], expected.clip(0, 1), rtol=1e-9)
    assert found.select(pl.col(rates[0]).is_between(rates[1], rates[2])).to_series().all()
    lazy = wroc.calibration_curve(frame.lazy(), "y", "s", smooth=True, **options)
    assert_frame_equal(lazy.collect(), found)
    few = wroc.calibration_curve(frame.head(7), "y", "s", smooth=True)
    assert few.select(pl.col(rates).null_count()).row(0) == (few.height,) * 3


@pytest.mark.slow(reason="simulates many samples")
def test_limits_of_a_smooth_curve_cover_the_rate() -> None:
    """The rate is the score; 100 samples of 400 rows, so that the standard error is 0.01."""
    random, held = np.random.default_rng(11), []
    for _ in range(100):
        score = random.beta(2, 2, 400)
        frame = pl.DataFrame({"s": score, "y": random.random(400) < score})
        table = wroc.calibration_curve(frame, "y", "s", smooth=True, strategy="quantile", bins=5)
        held += table.select(
            pl.col("mean_score").is_between("smooth_rate_low", "smooth_rate_high")
        )["mean_score"].to_list()
    assert np.mean(held) > 0.9


def test_sampling_units_are_drawn_as_a_whole() -> None:
    frame = pl.concat([frame_of(7, 60)] * 4)
    frame = frame.with_columns(c=pl.int_range(pl.len()) % 60, s=pl.col("s"))
    lows = []
    for design in (None, "c"):
        _, low, high = row_of(wroc.validate(frame, "y", "s", design=design), "ici")
        lows.append(high - low)
    assert lows[1] > 1.4 * lows[0]


@pytest.mark.parametrize(
    "design",
    [
        wroc.Survey(cluster=pl.lit(1)),
        wroc.Survey(cluster="c", strata="c"),
        wroc.Survey(cluster="c", strata="c", lonely="adjust"),
        wroc.Survey(cluster="c", strata="c", lonely="certainty"),
    ],
)
def test_smooth_measures_have_no_limits_where_no_unit_can_be_left_out(design: wroc.Survey) -> None:
    frame = frame_of(7, 60).with_columns(c=pl.int_range(pl.len()) % 6)
    found = wroc.validate(frame, "y", "s", thresholds=0.5, design=design)
    for name in ("ici", "e50", "e90"):
        value, *limits = row_of(found, name)
        assert value is not None
        assert limits == [None, None]


def test_strata_of_two_units_have_one_that_counts_twice() -> None:
    frame = frame_of(7, 60).with_columns(c=pl.int_range(pl.len()) % 2)
    strata = wroc.Survey(cluster="c", strata=pl.lit(1))
    found = row_of(wroc.validate(frame, "y", "s", thresholds=0.5, design=strata), "ici")
    halves = [smooth_by_hand(frame.filter(c=c))[0] for c in (0, 1)]
    assert found[1:] == pytest.approx((min(halves), max(halves)), rel=1e-9)


def test_lazy_models_and_what_is_undefined() -> None:
    frame = frame_of(8, 60).with_columns(t=pl.col("s") / 2)
    found = wroc.validate(frame, "y", ["t", "s"], thresholds=0.5)
    lazy = wroc.validate(frame.lazy(), "y", ["t", "s"], thresholds=0.5)
    assert isinstance(lazy, pl.LazyFrame)
    assert_frame_equal(found, lazy.collect(), rel_tol=1e-8)
    assert found["model"].unique(maintain_order=True).to_list() == ["t", "s"]
    one = wroc.validate(frame.with_columns(y=pl.lit(0)).head(5), "y", "s", thresholds=0.5)
    known = one.filter(pl.col("value").is_not_null())["measure"].to_list()
    assert "auc" not in known
    assert {"ici", "scaled_brier", "calibration_slope"}.isdisjoint(known)
    assert {"n", "events", "prevalence", "brier_score", "log_loss", "net_benefit"} <= {*known}


def test_a_group_may_have_the_name_of_a_column_of_other_tables() -> None:
    frame = frame_of(9, 80)
    named = wroc.validate(frame, "y", "s", by=pl.col("g").alias("auc"), smooth=False)
    plain = wroc.validate(frame, "y", "s", by="g", smooth=False)
    assert_frame_equal(named.rename({"auc": "g"}), plain)


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "skmisc.loess", None)
    message = r"needs scikit-misc: pip install 'polars-wroc\[smooth\]', or leave it out by smooth="
    with pytest.raises(ImportError, match=message):
        wroc.validate(frame_of(), "y", "s")
    assert "ici" not in wroc.validate(frame_of(), "y", "s", smooth=False)["measure"]
    with pytest.raises(ImportError, match=r"or leave it out$"):
        wroc.calibration_curve(frame_of(), "y", "s", smooth=True)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"thresholds": 1}, ValueError, "`thresholds` must be less than 1"),
        ({"by": pl.col("g").alias("measure")}, ValueError, "`by` must not take the name of a res"),
    ],
)
def test_validate_refuses_options_outside_their_range(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        wroc.validate(frame_of(), "y", "s", **options)


def test_few_weighted_events_are_the_reason_of_uncertain_rates() -> None:
    # 3.2 effective rows of 32 are positive.
    frame = pl.DataFrame(
        {"y": [1] * 4 + [0] * 36, "s": [0.1, 0.1, 0.2, 0.2] * 10, "w": [1.0, 3.0] * 20}
    )
    table = wroc.validate(frame, "y", "s", weight="w", smooth=False)
    uncertain = ["prevalence", "mean_calibration_error", "oe_ratio"]
    assert table.filter(reason="few effective events")["measure"].to_list() == uncertain
    assert wroc.validate(frame, "y", "s", smooth=False)["reason"].null_count() == table.height


@pytest.mark.parametrize(
    ("scores", "reason"),
    [([0.0, 1.0] * 30, "scores of 0 or 1"), ([0.4, 0.6] * 30, "undefined")],
)
def test_an_unknown_slope_has_a_reason(scores: list[float], reason: str) -> None:
    frame = pl.DataFrame({"y": [0, 1] * 30, "p": scores, "g": [*"ab"] * 15 + [*"ba"] * 15})
    table = wroc.validate(frame, "y", "p", smooth=False)
    (slope,) = table.filter(measure="calibration_slope").to_dicts()
    assert (slope["value"], slope["reason"]) == (None, reason)
    assert table.filter(measure="auc")["reason"].to_list() == [None]
    said = wroc.audit(frame.with_columns(g=pl.int_range(60) // 2 % 2), "y", "p", attributes="g")
    assert "The slope of the score is unknown" in said.verdict
