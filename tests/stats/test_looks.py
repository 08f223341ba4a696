"""Limits, p-values and verdicts that hold at all looks at growing data."""

from __future__ import annotations

import copy
import json
import math
import pickle
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
import pytest
import ville
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from scipy import stats
from sweeps import sweep
from wide_tables import wide_ratios

import polars_wroc as wroc
from polars_wroc.cli import main
from polars_wroc.stats.levels import Level

# Of the methods specification: c at 5 %, by the proportion of the planned rows.
TABLE = {
    0.01: 9.084,
    0.05: 4.719,
    0.1: 3.855,
    0.2: 3.364,
    0.5: 3.084,
    1: 3.035,
    2: 3.061,
    5: 3.153,
    10: 3.242,
}


def at(time: float, level: float = 0.95) -> wroc.Looks:
    return wroc.Looks(1000, level, 1000 * time)


def c(time: float, alpha: float = 0.05) -> float:
    """The quantile, written down once more."""
    log = -2 * math.log(alpha)
    x = time * (log + math.log(1 + log))
    return math.sqrt((1 + 1 / x) * math.log((1 + x) / alpha**2))


def wilson(events: int, rows: int, z: float) -> tuple[float, float]:
    centre = (events + z**2 / 2) / (rows + z**2)
    spread = events * (rows - events) / rows + z**2 / 4
    half = z * math.sqrt(spread) / (rows + z**2)
    return centre - half, centre + half


def quantile_of(level: float | wroc.Looks) -> float:
    return float(Level.of(level).quantile())


def decisions(**groups: tuple[int, int]) -> pl.DataFrame:
    """Rows of groups, of which so many are selected; each row is positive or negative in turn."""
    parts = []
    for group, (selected, rows) in groups.items():
        taken = [1.0] * selected + [0.0] * (rows - selected)
        parts.append(pl.DataFrame({"g": [group] * rows, "s": taken, "y": [0, 1] * (rows // 2)}))
    return pl.concat(parts)


def scored(rows: int, seed: int = 1) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    y = random.random(rows) < 0.4
    return pl.DataFrame(
        {
            "y": y,
            "s": 1 / (1 + np.exp(-random.normal(size=rows) - y)),
            "t": 1 / (1 + np.exp(-random.normal(size=rows) - y / 2)),
            "w": random.integers(1, 4, rows),
            "g": random.choice([*"abc"], rows),
        }
    )


@pytest.mark.parametrize(("time", "quantile"), TABLE.items())
def test_quantiles_of_the_table(time: float, quantile: float) -> None:
    assert quantile_of(at(time)) == pytest.approx(quantile, abs=5e-4)


def test_worked_quantiles() -> None:
    found = [quantile_of(at(time)) for time in (0.1, 1, 2)]
    assert found == pytest.approx([3.8550546335, 3.0352089904, 3.0614772189], abs=5e-11)


@given(st.floats(0.002, 100), st.sampled_from([0.5, 0.9, 0.95, 0.99, 0.9999]))
def test_quantiles_are_those_of_ville(time: float, level: float) -> None:
    alpha = 1 - level
    log = -2 * math.log(alpha)
    precision = 1 / (log + math.log(1 + log))
    boundary = float(ville.normal_mixture(time, alpha, precision)) / math.sqrt(time)
    assert quantile_of(at(time, level)) == pytest.approx(min(boundary, 37), rel=1e-9)


@given(st.floats(0.0005, 100), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_p_value_at_the_quantile_is_the_error(time: float, level: float) -> None:
    looks = at(time, level)
    # Of more than 37 errors no probability is a float.
    if (z := quantile_of(looks)) < 37:
        found = [float(Level.of(looks).p_value(each)) for each in (z, z * 1.01, z * 0.99)]
        assert found[0] == pytest.approx(1 - level, rel=1e-6)
        assert found[1] < 1 - level < found[2] <= 1


def test_p_values_at_their_ends() -> None:
    certain, none, unknown = Level.of(at(1)).sequential_p_value(np.array([0.0, 1.0, np.nan]))
    assert 0 <= certain < 1e-200
    assert none == 1
    assert np.isnan(unknown)
    assert Level.of(0.95).sequential_p_value(np.array([0.2])) == 0.2


@given(st.floats(0.001, 50), st.floats(1.001, 20))
def test_limits_are_widest_at_first_and_never_those_of_one_look(time: float, more: float) -> None:
    first, later = quantile_of(at(time)), quantile_of(at(time * more))
    assert min(first, later) > stats.norm.ppf(0.975)
    # In units of the standard error at the later look.
    assert first * math.sqrt(more) > later


def test_worked_rate() -> None:
    frame = decisions(a=(12, 100))
    given: dict[str, Any] = {"threshold": 0.5, "level": wroc.Looks(1000), "metrics": "all"}
    table = wroc.threshold_metrics(frame, "y", "s", **given)
    found = table.select("selection_rate_low", "selection_rate_high").row(0)
    assert found == pytest.approx((0.0423577009, 0.2959755476), abs=5e-11)
    assert found == pytest.approx(wilson(12, 100, c(0.1)), rel=1e-9)
    for seen in (100, "count"):
        given["level"] = wroc.Looks(1000, seen=seen)
        plan = wroc.threshold_metrics(frame.lazy(), "y", "s", **given)
        assert_frame_equal(plan.collect(), table)


def test_worked_auc() -> None:
    frame = pl.DataFrame({"y": [1, 1, 1, 1, 0, 0, 0, 0], "s": [9, 8, 6, 3, 7, 5, 2, 1]})
    assert wroc.summary(frame, "y", "s")["auc"].item() == 0.8125
    table = wroc.summary(frame, "y", "s", level=wroc.Looks(8), diagnostics=True)
    found = table.select("auc_low", "auc_high").row(0)
    assert found == pytest.approx((0.2025617588, 0.9973565899), abs=5e-11)


def test_worked_gap_and_ratio() -> None:
    given: dict[str, Any] = {"selected": pl.col("s") == 1, "level": wroc.Looks(400)}
    given["reference"] = {"g": "b"}
    frame = decisions(a=(15, 100), b=(30, 100))
    rows: dict[str, Any] = {"frame": frame, "attributes": "g", "metrics": ["selection_rate"]}
    gap = wroc.group_gaps(label="y", **rows, **given).row(0, named=True)
    assert (gap["gap_low"], gap["gap_high"]) == pytest.approx(
        (-0.3227040851, 0.0335282602), abs=5e-11
    )
    ratio = wide_ratios(frame, attributes="g", favorable="selected", **given)
    for row in (gap, ratio.row(0, named=True)):
        limits = row["ratio_low"], row["ratio_high"]
        assert limits == pytest.approx((0.2143448301, 1.1524502356), abs=5e-11)
        assert row["p_value"] == pytest.approx(0.1739735863, abs=5e-10)
    # What could be detected is that of one look at the planned rows.
    planned = given | {"level": wroc.Looks(400, seen=400)}
    at_end = wroc.group_gaps(label="y", **rows, **planned).row(0, named=True)
    assert gap["detectable"] == at_end["detectable"]
    assert at_end["gap_high"] < gap["gap_high"]


def test_p_values_of_the_best_share_the_error_of_all_pairs() -> None:
    frame = decisions(a=(15, 100), b=(18, 100), c=(45, 100))
    given: dict[str, Any] = {"attributes": "g", "selected": pl.col("s") == 1}
    given |= {"level": wroc.Looks(300), "favorable": "selected"}
    table = wide_ratios(frame, **given)
    named = wide_ratios(frame, **given, reference={"g": "c"})
    both = table.join(named, on="segment", suffix="_named").drop_nulls("p_value")
    assert both["p_value"].to_list() == pytest.approx((1.5 * both["p_value_named"]).to_list())
    for n, row in zip((15, 18), both.sort("value").iter_rows(named=True), strict=True):
        z = c(1, 0.05 / 3)
        low, high = wilson(n, 100, z)[1], wilson(45, 100, z)[0]
        assert row["ratio_high"] > n / 45
        assert row["ratio_high"] < low / high
        assert row["ratio_low"] < row["ratio_low_named"]


WIDER: dict[str, Any] = {
    "summary": lambda f, **k: wroc.summary(f, "y", "s", by="g", **k),
    "weighted": lambda f, **k: wroc.summary(f, "y", "s", weight="w", **k),
    "clusters": lambda f, **k: wroc.summary(f, "y", "s", design="w", **k),
    "delong": lambda f, **k: wroc.summary(f, "y", "s", method="delong", **k),
    "logit": lambda f, **k: wroc.summary(f, "y", "s", method="logit", **k),
    "partial": lambda f, **k: wroc.summary(
        f, "y", "s", areas={"early": wroc.PartialAUC(fpr=(0.0, 0.3))}, **k
    ),
    "thresholds": lambda f, **k: wroc.threshold_metrics(
        f, "y", "s", weight="w", threshold=0.5, metrics="all", **k
    ),
    "points": lambda f, **k: wroc.threshold_metrics(
        f, "y", "s", threshold=wroc.rules.youden(), per_group=True, **k
    ),
    "fairness": lambda f, **k: wroc.fairness(f, "y", "s", attributes="g", threshold=0.5, **k),
    "gaps": lambda f, **k: wroc.group_gaps(f, "y", "s", attributes="g", threshold=0.6, **k),
    "gaps to the best": lambda f, **k: wroc.group_gaps(
        f, "y", "s", attributes="g", reference="best", weight="w", **k
    ),
    "gaps of values": lambda f, **k: wroc.group_gaps(
        f, "y", "s", attributes="g", threshold=0.6, metrics=["f1", "brier_score"], **k
    ),
    "compare": lambda f, **k: wroc.compare(f, "y", ["s", "t"], **k),
    "compare by delong": lambda f, **k: wroc.compare(f, "y", ["s", "t"], method="delong", **k),
    "calibration_curve": lambda f, **k: wroc.calibration_curve(f, "y", "s", bins=4, **k),
    "calibration_summary": lambda f, **k: wroc.calibration_summary(f, "y", "s", **k),
    "decision_curve": lambda f, **k: wroc.decision_curve(f, "y", "s", thresholds=0.4, **k),
    "validation": lambda f, **k: wroc.validate(f, "y", "s", thresholds=0.4, smooth=False, **k),
    "roc_point": lambda f, **k: wroc.roc_point(f, "y", "s", fpr=0.2, **k),
    "mean differences": lambda f, **k: wroc.group_gaps(
        f, score="s", attributes="g", metrics=["standardized_mean_difference"], **k
    ),
    "cross_auc": lambda f, **k: wroc.cross_auc(f, "y", "s", by="g", **k),
    "cross_auc against the rest": lambda f, **k: wroc.cross_auc(
        f, "y", "s", by="g", against="rest", **k
    ),
}


def wider(once: pl.DataFrame, always: pl.DataFrame) -> None:
    assert once.schema == always.schema
    found = 0.0
    for name in once.columns:
        if not name.endswith(("_low", "_high")):
            continue
        sign = -1 if name.endswith("_low") else 1
        known = always[name].is_not_null() & once[name].is_finite()
        first, later = once[name].filter(known), always[name].filter(known)
        assert ((later - first) * sign >= -1e-12).all(), name
        found += float(((later - first).abs() > 1e-6).sum())
    assert found > 0
    if "p_value" in once.columns:
        # At the same limits; near 1 the order may change.
        p_values = always["p_value"].filter(once["p_value"] > 0.05).drop_nulls()
        assert (p_values > 0.05).all()


@pytest.mark.parametrize("name", sweep(WIDER, fast=10))
def test_all_limits_are_wider_and_nearest_at_the_planned_rows(name: str) -> None:
    frame, table = scored(900), WIDER[name]
    # Nothing is null because of too few rows of a class.
    once, always = table(frame, level=0.95), table(frame, level=wroc.Looks(900))
    wider(once, always)
    wider(always, table(frame, level=wroc.Looks(90_000)))
    lazy = table(frame.lazy(), level=wroc.Looks(900, seen=900)).collect()
    assert_frame_equal(lazy, always, rel_tol=1e-9)
    with pytest.raises(ValueError, match="must say how many rows were seen, as in Looks"):
        table(frame.lazy(), level=wroc.Looks(900))


def test_no_limits_rest_on_a_variance_alone_with_few_rows_of_a_class() -> None:
    few, enough = scored(230), scored(500)
    assert min(enough["y"].value_counts()["count"]) >= 100 > min(few["y"].value_counts()["count"])
    for method in ("delong", "logit"):
        limits = [
            wroc.summary(f, "y", "s", method=method, level=wroc.Looks(500))["auc_low"].item()
            for f in (few, enough)
        ]
        assert (limits[0] is None, limits[1] is None) == (True, False)
    always: dict[str, Any] = {"level": wroc.Looks(500)}
    methods: tuple[Literal["delong"] | None, ...] = (None, "delong")
    for test in methods:
        pairs = wroc.compare(few, "y", ["s", "t"], method=test, **always)
        assert pairs.select("gap_low", "p_value").row(0) == (None, None)
    table = wroc.calibration_summary(few, "y", "s", **always)
    assert table.select("calibration_slope_low", "mean_calibration_error_high").row(0) == (
        None,
        None,
    )
    rates = wroc.threshold_metrics(few, "y", "s", threshold=0.5, metrics="all", **always)
    assert rates["f1_low"].item() is None
    assert rates["tpr_low"].item() is not None
    metrics = ["standardized_mean_difference"]
    means = wroc.group_gaps(few, score="s", attributes="g", metrics=metrics, **always)
    assert set(means["reason"]) == {"fewer than 100 rows"}


def test_what_holds_at_one_look_is_left_out_or_refused() -> None:
    frame, looks = scored(300), wroc.Looks(300)
    table = wroc.fairness(frame, "y", "s", attributes="g", threshold=0.5, level=looks)
    of_rates = table.filter(~pl.col("metric").str.contains("auc|abroca"))
    assert of_rates["p_value"].null_count() == len(of_rates)
    with pytest.raises(TypeError, match="with band='simultaneous'"):
        wroc.roc_curve(frame, "y", "s", band="simultaneous", level=looks)
    with pytest.raises(ValueError, match="must say how many rows were seen"):
        frame.select(wroc.roc_auc_ci("y", "s", level=looks))
    given = frame.select(wroc.roc_auc_ci("y", "s", level=looks.at(300))).unnest("roc_auc_ci")
    expected = wroc.summary(frame, "y", "s", level=looks)
    assert given["auc_low"].item() == pytest.approx(expected["auc_low"].item(), rel=1e-12)


@pytest.mark.parametrize(
    "call",
    [
        lambda frame, level: wroc.worst_segments(frame, "y", "s", attributes="g", level=level),
        lambda frame, level: wroc.trend(frame, "y", "s", over="g", level=level),
        lambda frame, level: wroc.calibration_test(frame, "y", "s", level=level),
        lambda frame, level: wroc.bootstrap(frame, "y", "s", "ks", level=level),
        lambda frame, level: wroc.roc_curve(frame, "y", "s", band="simultaneous", level=level),
    ],
)
def test_results_of_a_single_look_say_what_to_pass_for_several(call: Any) -> None:
    message = "results hold for a single look; for 12 looks, pass level=1 - 0.05 / 12"
    with pytest.raises(TypeError, match=f"^`level` must be a number.*; found Looks.*{message}$"):
        call(scored(300), wroc.Looks(300))


def seen_by(table: pl.DataFrame, rate: tuple[int, int]) -> float:
    """The number of rows that the limits of a rate rest on, of 1,000 planned ones."""
    low = table["tpr_low"][0]
    times = np.geomspace(0.001, 20, 400_001)
    log = -2 * math.log(0.05)
    x = times * (log + math.log1p(log))
    z = np.sqrt((1 + 1 / x) * np.log((1 + x) / 0.0025))
    n, k = rate[1], rate[0]
    ends = (k + z**2 / 2 - z * np.sqrt(k * (n - k) / n + z**2 / 4)) / (n + z**2)
    return float(1000 * times[np.abs(ends - low).argmin()])


def test_rows_are_counted_of_the_whole_table() -> None:
    frame = scored(400).with_columns(s=pl.col("s").round(2))
    given: dict[str, Any] = {"threshold": 0.5, "level": wroc.Looks(1000)}
    positives = frame.filter("y")
    rate = int((positives["s"] >= 0.5).sum()), len(positives)
    whole = wroc.threshold_metrics(frame, "y", "s", **given)
    assert seen_by(whole, rate) == pytest.approx(400, rel=1e-3)
    # Of groups and several scores too.
    both = frame.with_columns(h=pl.col("y").cast(pl.String), u="s")
    of_groups = wroc.threshold_metrics(both, "y", ["s", "u"], by="h", **given)
    assert seen_by(of_groups.filter(h="true"), rate) == pytest.approx(400, rel=1e-3)
    missing = pl.concat([frame, frame.head(50).with_columns(s=None)])
    assert_frame_equal(wroc.threshold_metrics(missing, "y", "s", **given), whole)
    counts = wroc.from_counts(wroc.score_counts(frame, "y", "s"))
    assert_frame_equal(counts.threshold_metrics(**given), whole)
    # Days add up.
    days = [wroc.score_counts(part, "y", "s") for part in (frame.head(150), frame.tail(250))]
    merged = wroc.from_counts(wroc.merge_counts(days))
    assert_frame_equal(merged.threshold_metrics(**given), whole)
    weight = wroc.frequency("w")
    repeated = frame.select(pl.exclude("w").repeat_by("w").explode())
    of_weights = wroc.threshold_metrics(frame, "y", "s", weight=weight, **given)
    assert_frame_equal(of_weights, wroc.threshold_metrics(repeated, "y", "s", **given))
    # Weights of samples count rows.
    rows = {"level": wroc.Looks(1000, seen=400)}
    weighted = [
        wroc.threshold_metrics(frame, "y", "s", weight="w", **given | each) for each in ({}, rows)
    ]
    assert_frame_equal(*weighted)


def test_no_rows() -> None:
    table = wroc.summary(scored(0), "y", "s", level=wroc.Looks(100))
    assert table["auc_low"].to_list() == [None]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"planned": 9, "seen": -1}, "`seen` must be finite and more than 0; found -1"),
        ({"planned": 9, "seen": "all"}, "`seen` must be a number; found 'all' of type str"),
    ],
)
def test_looks_refuse_numbers_of_rows_that_cannot_be(given: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        wroc.Looks(**given)


@pytest.mark.parametrize("looks", [wroc.Looks(10), wroc.Looks(12_345_678, 0.9, 7)])
def test_copies(looks: wroc.Looks) -> None:
    for copied in (
        pickle.loads(pickle.dumps(looks)),  # noqa: S301
        copy.deepcopy(looks),
    ):
        assert copied == looks


AUDIT: dict[str, Any] = {"label": "y", "score": "s", "attributes": "g", "threshold": 0.5}
AUDIT |= {"favorable": "selected"}


@pytest.mark.slow(reason="makes several audits")
def test_audits_save_the_looks(tmp_path: Path) -> None:
    frame, looks = scored(900), wroc.Looks(2000)
    audit = wroc.audit(frame.lazy(), **AUDIT, level=looks)
    saved = json.loads(audit.to_json())["settings"]
    assert (saved["level"], saved["looks"]) == (0.95, {"planned": 2000.0, "seen": 900.0})
    once = wroc.audit(frame, **AUDIT)
    assert json.loads(once.to_json())["settings"]["looks"] is None
    keys = ["attribute", "segment", "metric"]
    both = once.table.join(audit.table, on=keys, suffix="_always", nulls_equal=True)
    known = both.drop_nulls(["gap_low", "gap_low_always"])
    assert len(known) > 10
    assert (known["gap_low_always"] <= known["gap_low"]).all()
    assert (known["gap_high_always"] >= known["gap_high"]).all()
    smd = both.filter(metric="standardized_mean_difference")
    assert smd.is_empty() or (smd["value_low_always"] <= smd["value_low"]).all()
    # The same gaps as those of the function.
    gaps = wroc.group_gaps(frame, "y", "s", attributes="g", threshold=0.5, level=looks)
    same = gaps.join(audit.table, on=keys, suffix="_audit")
    assert same["gap_low"].to_list() == pytest.approx(same["gap_low_audit"].to_list())
    assert same["p_value"].to_list() == pytest.approx(same["p_value_audit"].to_list())
    audit.save(path := tmp_path / "audit.md")
    report = path.read_text(encoding="utf-8")
    assert "They hold at every look, and are tightest at 2,000 rows" in report


@pytest.mark.slow(reason="makes several audits")
def test_changes_need_the_same_looks() -> None:
    planned: list[float | wroc.Looks] = [*map(wroc.Looks, (2000, 2000, 3000)), 0.95]
    audits = [
        json.loads(wroc.audit(scored(700, seed), **AUDIT, level=level).to_json())
        for seed, level in enumerate(planned)
    ]
    changes = wroc.audit_changes(audits[0], audits[1])
    once = [{**each, "settings": {**each["settings"], "looks": None}} for each in audits[:2]]
    assert_frame_equal(
        changes.select("gap_low", "gap_high"),
        wroc.audit_changes(*once).select("gap_low", "gap_high"),
    )
    known = changes.drop_nulls("p_value")
    is_0_outside = (known["gap_low"] > 0) | (known["gap_high"] < 0)
    assert ((known["p_value"] < 0.05) == is_0_outside).all()
    for other in audits[2:]:
        with pytest.raises(ValueError, match="must have the same level; found Looks"):
            wroc.audit_changes(audits[0], other)


@pytest.mark.slow(reason="runs several commands")
def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.parquet"
    scored(600).write_parquet(path)
    common = [str(path), "--label", "y", "--score", "s"]
    looks = ["--looks", "1000"]

    def run(*given: str) -> Any:
        assert main([*given, *common, *looks, "-o", "-"]) == 0
        return json.loads(capsys.readouterr().out)

    frame = scored(600)
    expected = wroc.summary(frame, "y", "s", level=wroc.Looks(1000))["auc_low"].item()
    assert run("auc")[0]["auc_low"] == pytest.approx(expected, rel=1e-9)
    rates = wroc.threshold_metrics(frame, "y", "s", threshold=0.5, level=wroc.Looks(1000))
    found = run("thresholds", "--threshold", "0.5")[0]["tpr_low"]
    assert found == pytest.approx(rates["tpr_low"].item(), rel=1e-9)
    ninety = wroc.group_gaps(frame, "y", "s", attributes="g", level=wroc.Looks(1000, 0.9))
    gaps = run("gaps", "--attribute", "g", "--level", "0.9")
    assert [row["gap_low"] for row in gaps] == pytest.approx(ninety["gap_low"].to_list())
    audit = run("audit", "--attribute", "g")
    assert audit["settings"]["looks"] == {"planned": 1000.0, "seen": 600.0}
    assert run("compare", "--score", "t")[0]["p_value"] > 0
    assert run("calibrate")[0]["observed_rate_low"] >= 0
    assert main(["auc", *common, "--looks", "0"]) == 2
    assert "--looks must be finite and more than 0; found 0" in capsys.readouterr().err


@pytest.mark.slow(reason="simulates many samples")
def test_weighted_rates_that_differ_have_limits_that_say_so() -> None:
    found = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        frame = pl.DataFrame(
            {
                "g": np.repeat(["a", "b"], [50, 150]),
                "y": True,
                "s": rng.random(200) < np.repeat([0.3, 0.8], [50, 150]),
                "w": rng.lognormal(0, 0.9, 200),
            }
        ).with_columns(pl.col("s").cast(pl.Float64))
        given: dict[str, Any] = {"attributes": "g", "threshold": 0.5, "weight": "w"}
        table = wroc.group_gaps(frame, "y", "s", level=wroc.Looks(200), **given)
        (row,) = table.filter(segment="a", metric="tpr").to_dicts()
        if row["p_value"] <= 0.05:
            found.append(row["gap_high"] < 0)
    # The test is that of a common quantile, the limits have one of each side.
    assert len(found) > 20
    assert found.count(False) <= 1


@pytest.mark.slow(reason="draws charts")
@pytest.mark.parametrize("command", ["gaps", "auc", "compare", "calibrate"])
def test_charts_say_the_level_of_looks(command: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = {"y": rng.random(400) < 0.5, "s": rng.random(400), "t": rng.random(400)}
    file, page = tmp_path / "rows.parquet", tmp_path / "page.html"
    pl.DataFrame({**rows, "g": np.repeat(["a", "b"], 200)}).write_parquet(file)
    more = {"gaps": ["--attribute", "g"], "compare": ["--score", "t"]}.get(command, [])
    call = [command, str(file), "--label", "y", "--score", "s", *more, "--looks", "1000"]
    assert main([*call, "-o", str(page)]) == 0
    assert page.exists()
