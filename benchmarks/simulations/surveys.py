"""Simulate samples of strata and sampling units, with the design and without.

    python benchmarks/simulations/surveys.py
    python benchmarks/simulations/surveys.py --replicates 200

What comes out goes into ``surveys.md``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import polars as pl
import polars.selectors as cs
from bent_audits import WORSE, adjusted, table_of
from designs import SPREADS
from polars.testing import assert_frame_equal
from promises import variance_ratio
from simulation import THRESHOLD
from survey_designs import COLUMNS, JACKKNIFE, ClusteredSegments, Cut, Sample, TwoStage
from tables import (
    SIGNIFICANCE,
    Cell,
    Measure,
    Section,
    Table,
    command_of,
    mean,
    parse_options,
    write_page,
)

import polars_wroc as wroc

DESIGNS: dict[str, dict[str, Any]] = {
    "none": {},
    "cluster": {"design": "unit"},
    "cluster and strata": {"design": wroc.Survey("unit", strata="stratum")},
}
STRATA = ((30, 20), (8, 20))
SHARES = (0.1, 0.4)
AUCS = (0.83, 0.97)
# What has limits in tables of curves: the function, its options, the column, and a row of it.
Curve: TypeAlias = tuple[Callable[..., pl.DataFrame], dict[str, Any], str, pl.Expr]
_EVERY = pl.lit(value=True)
CURVES: dict[str, Curve] = {
    "net benefit at 0.2": (wroc.decision_curve, {"thresholds": 0.2}, "net_benefit", _EVERY),
    "net benefit at 0.5": (wroc.decision_curve, {"thresholds": 0.5}, "net_benefit", _EVERY),
    "observed rate, scores of 0.2 to 0.4": (
        wroc.calibration_curve,
        {"bins": 5},
        "observed_rate",
        pl.col("bin") == 2,
    ),
    "in the large": (wroc.calibration_summary, {}, "mean_calibration_error", _EVERY),
    "O:E": (wroc.calibration_summary, {}, "oe_ratio", _EVERY),
    "slope": (wroc.calibration_summary, {}, "calibration_slope", _EVERY),
    "tpr at an fpr of 0.1": (wroc.roc_point, {"fpr": 0.1}, "tpr", _EVERY),
}
SEGMENTS = (2, 5, 20)
AUCS_OF_AUDITS = (0.6, 0.9, 0.97)
UNITS = 300
REPLICATES: dict[str, Any] = {
    "design": wroc.ReplicateWeights(cs.starts_with(JACKKNIFE), "jk2"),
}
AUDITED_STRATA = ((8, 30), (30, 14))
AUDITED_SEGMENTS = (2, 5)
CUTS: tuple[Cut, ...] = ("across", "along")
# Families of tests take long: they have fewer draws, and those with a worse segment even fewer.
FEWER, FEWEST = 2, 4
# By how much the scores of positives are lower in the worse segment, in standard deviations.
LOWER = 1.0


def main() -> None:
    """Simulate and write the page."""
    options = parse_options("Simulate surveys and clusters.", 400, 2026112904)
    random = np.random.default_rng(options.seed)
    frames = max(options.replicates // COLUMNS, 1)
    draws = (
        f", as {COLUMNS} scores for each of {frames} draws of labels; Monte Carlo errors in the "
        "tables are those of the means of draws"
    )
    write_page(
        "surveys",
        "Surveys and clusters, simulated",
        "Rows of the same sampling unit or cluster resemble each other, and the intervals are "
        "computed with the design and without. With the design they keep their level from 8 strata "
        "of two units on, but audits of several segments need more units. Without it intervals are "
        "too narrow, and audits find what is not there.",
        command_of("surveys", options, draws),
        [
            *two_stage_samples(random, frames),
            other_tables(random, frames),
            two_stage_curves(random, frames),
            clustered_audits(random, frames),
            *two_stage_audits(np.random.default_rng([options.seed, 1]), frames),
        ],
    )


def state_promise(setting: Mapping[str, str], column: str) -> str:
    """Return what the documentation promises for tables with a design, or without."""
    if "none" in (setting.get("design"), column) or column == "without design=":
        return "pass `design=`; rows are taken as independent without it"
    return "intervals by strata and units cover 93% or more, from 8 strata of 2 units on"


def two_stage_samples(random: np.random.Generator, frames: int) -> list[Section]:
    """Intervals of AUCs and tests of a gap between domains that share sampling units."""
    aucs: list[tuple[Cell, ...]] = []
    gaps: list[tuple[Cell, ...]] = []
    for (strata, rows), effect, auc in product(STRATA, SHARES, AUCS):
        setting = TwoStage(strata, rows, auc, effect)
        print(setting, file=sys.stderr, flush=True)
        samples = [setting.draw(random) for _ in range(frames)]
        cells = (f"{strata} x 2 x {rows}", f"{effect:g}", f"{auc:g}")
        whole = {way: _summaries(samples, design) for way, design in DESIGNS.items()}
        # What the estimate estimates, pairs within strata and units included.
        truth = float(np.mean(whole["none"]["auc"].to_numpy()))
        for way, estimates in whole.items():
            covered = covered_in(estimates, truth)
            measures = covered.coverage, str(variance_ratio(estimates)), f"{truth:.3f}"
            aucs.append((*cells, way, *measures))
        for way, design in DESIGNS.items():
            estimates = _gaps(samples, design).filter(segment="0")
            covered = covered_in(estimates, 0.0, "gap_low", "gap_high")
            rejected = of_draws(estimates["p_value"] < SIGNIFICANCE)
            gaps.append((*cells, way, covered.coverage, rejected.family_error))
    header = ("strata x units x rows", "share of units", "AUC")
    return [
        Section(
            "Two-stage samples: AUCs",
            "Strata have two sampling units each. *Share of units* is the part of the variance of "
            "a score within a class that the rows of a unit share, and *AUC* that of rows of the "
            "same stratum and different units. The true AUC is the mean of the estimates, and the "
            "ratio is that of the mean estimated variance to the variance of the estimates.",
            Table((*header, "design", "coverage", "variance, estimated / true", "true AUC"), aucs),
            settings=4,
            promise=state_promise,
        ),
        Section(
            "Two-stage samples: gap between two domains",
            "Each unit has rows of both domains, which are alike: coverage of the gap of 0, and "
            "the share of p-values below 0.05.",
            Table((*header, "design", "coverage", "p < 0.05"), gaps),
            settings=4,
            promise=state_promise,
        ),
    ]


def other_tables(random: np.random.Generator, frames: int) -> Section:
    """Intervals of other tables of two domains that share sampling units."""
    body: list[tuple[Cell, ...]] = []
    for (strata, rows), effect in product(STRATA, SHARES):
        setting = TwoStage(strata, rows, AUCS[0], effect)
        print(setting, file=sys.stderr, flush=True)
        samples = [setting.draw(random) for _ in range(frames)]
        for name, table in OTHERS.items():
            estimates = {way: _stacked(samples, table, DESIGNS[way]) for way in WITHOUT_AND_WITH}
            estimated = float(np.mean(estimates["none"]["value"].to_numpy()))
            truth = 0.0 if name in DIFFERENCES else estimated
            covered = (
                covered_in(each, truth, "low", "high").coverage for each in estimates.values()
            )
            body.append((name, f"{strata} x 2 x {rows}", f"{effect:g}", *covered))
    return Section(
        "Two-stage samples: other tables of two domains",
        "The same kind of samples with an AUC of 0.83. True differences between the domains are 0, "
        "and the true AUC is the mean of the estimates.",
        Table(("table", "strata x units x rows", "share of units", *WITHOUT_AND_WITH), body),
        settings=3,
        promise=state_promise,
    )


def two_stage_curves(random: np.random.Generator, frames: int) -> Section:
    """Intervals of what is read off curves of scores that are probabilities."""
    body: list[tuple[Cell, ...]] = []
    for (strata, rows), effect in product(STRATA, SHARES):
        setting = TwoStage(strata, rows, AUCS[0], effect)
        print(setting, "curves", file=sys.stderr, flush=True)
        samples = [setting.draw(random) for _ in range(frames)]
        for name, curve in CURVES.items():
            of_ways = {way: _of_curves(samples, curve, DESIGNS[way]) for way in WITHOUT_AND_WITH}
            value, low, high = of_ways["none"].columns
            truth = float(np.mean(of_ways["none"][value].to_numpy()))
            measures = (
                covered_in(estimates, truth, low, high).coverage for estimates in of_ways.values()
            )
            body.append((f"{strata} x 2 x {rows}", f"{effect:g}", name, f"{truth:.3f}", *measures))
    header = ("strata x units x rows", "share of units", "value", "true value", *WITHOUT_AND_WITH)
    return Section(
        "Two-stage samples: curves",
        f"Samples with an AUC of {AUCS[0]}: coverage of the limits of net benefits, of calibration "
        "and of a point of the ROC curve, by design.",
        Table(header, body),
        settings=4,
        promise=state_promise,
    )


def _of_curves(samples: list[Sample], curve: Curve, design: dict[str, Any]) -> pl.DataFrame:
    function, options, value, row = curve
    tables = []
    for sample in samples:
        scores = [(1 / (1 + (1 - pl.col(name)).exp())).alias(name) for name in sample.scores]
        table = function(sample.frame, "label", scores, weight="weight", **options, **design)
        tables.append(table.filter(row).select(value, f"{value}_low", f"{value}_high"))
    return pl.concat(tables)


def clustered_audits(random: np.random.Generator, frames: int) -> Section:
    """Family error of audits of clustered rows whose segments are all alike."""
    body: list[tuple[Cell, ...]] = []
    for spread, segments, auc in product(SPREADS, SEGMENTS, AUCS_OF_AUDITS):
        setting = ClusteredSegments(segments, UNITS, 5, auc, 0.6, spread)
        print(setting, file=sys.stderr, flush=True)
        samples = [setting.draw(random) for _ in range(frames)]
        errors = (
            family_error(_gaps(samples, DESIGNS[way])).family_error for way in ("none", "cluster")
        )
        body.append((spread, str(segments), f"{auc:g}", *errors))
    return Section(
        "Null audits of clusters",
        f"{UNITS} clusters of five rows, each with one label and in one segment, share 60% of the "
        "variance of a score. The share of audits in which a gap of AUCs to the rest is "
        "significant after Holm's method. Of the clusters 30% are positive, so that each of 20 "
        "segments has four or five of these.",
        Table(("spread", "segments", "AUC", "without design=", "with design="), body),
        settings=3,
        promise=state_promise,
    )


def two_stage_audits(random: np.random.Generator, frames: int) -> list[Section]:
    """Errors of whole audits of strata and units, and how often they find a worse segment."""
    check_audits(random)
    errors: list[tuple[Cell, ...]] = []
    found: list[tuple[Cell, ...]] = []
    kinds = product(CUTS, AUDITED_SEGMENTS, AUDITED_STRATA, (0.0, LOWER))
    for cut, segments, (strata, rows), lower in kinds:
        setting = TwoStage(strata, rows, AUCS[0], SHARES[1], segments, cut, lower)
        print(setting, file=sys.stderr, flush=True)
        draws = max(frames // (FEWEST if lower else FEWER), 2)
        samples = [setting.draw(random) for _ in range(draws)]
        cells = (cut, str(segments), f"{strata} x 2 x {rows}")
        ways = [DESIGNS["cluster and strata"], REPLICATES]
        if lower:
            audits = (_find(samples, way) for way in ways)
            found.append((*cells, *(str(of_draws(audit["worse"])) for audit in audits)))
        else:
            audits = (_find(samples, way) for way in (DESIGNS["none"], *ways))
            errors.append((*cells, *(of_draws(audit["any"]).family_error for audit in audits)))
    header = ("segments", "number", "strata x units x rows")
    text = (
        "Segments are drawn at random and cut *across* the units, or *along* them: then all rows "
        "of a unit are in one segment."
    )
    return [
        Section(
            "Null audits of two-stage samples",
            "`audit` with a threshold, in samples as above whose units make up "
            f"{SHARES[1]:.0%} of the variance of a score, by strata and units and with jackknife "
            "weights (`jk2`): the share of audits with an adjusted p-value of at most 0.05 among "
            f"the gaps of AUC and rates. {text} There are half of the draws.",
            Table((*header, "without design=", "with design=", "replicate weights"), errors),
            settings=3,
            promise=state_promise_for_audits,
        ),
        Section(
            "Two-stage samples with a worse segment",
            f"The same audits, where the scores of positives in one segment are {LOWER:g} lower: "
            "the share in which a gap of this segment is found, in a quarter of the draws.",
            Table((*header, "with design=", "replicate weights"), found),
        ),
    ]


def state_promise_for_audits(setting: Mapping[str, str], column: str) -> str:
    """Return what the documentation promises for audits with a design, or without."""
    if column == "without design=":
        return state_promise(setting, column)
    return "a gap where there is none in at most 7%; in 11% where five cut across 16 units"


def check_audits(random: np.random.Generator) -> None:
    """Compare the tests of `group_gaps` with those of `audit`, which take longer.

    Raises
    ------
    AssertionError
        If they differ.
    """
    sample = TwoStage(*AUDITED_STRATA[0], AUCS[0], SHARES[1], segments=5).draw(random)
    keys = ["segment", "model", "metric"]
    for design in (*DESIGNS.values(), REPLICATES):
        ours = _test_gaps(sample, design).select(*keys, "p_value").sort(keys)
        audit = table_of(sample.frame, sample.scores, **design).select(*keys, "p_value").sort(keys)
        assert_frame_equal(ours, audit)


def _find(samples: list[Sample], design: dict[str, Any]) -> pl.DataFrame:
    """Return whether the tests of each score find any gap, and one of the worse segment."""
    different = pl.col("p_adjusted") <= SIGNIFICANCE
    tables = [
        adjusted(_test_gaps(sample, design), "one")
        .group_by("model")
        .agg(any=different.any(), worse=(different & (pl.col("segment") == WORSE)).any())
        for sample in samples
    ]
    return pl.concat(tables)


def _test_gaps(sample: Sample, design: dict[str, Any]) -> pl.DataFrame:
    """Return the tests of gaps of AUCs and rates, each once, as `audit` has them."""
    table = wroc.group_gaps(
        sample.frame,
        "label",
        sample.scores,
        attributes="segment",
        weight="weight",
        threshold=THRESHOLD,
        adjust="none",
        **design,
    )
    repeats = pl.col("reason").str.starts_with("repeats").fill_null(value=False)
    return table.filter(pl.col("p_value").is_not_null(), ~repeats)


def family_error(estimates: pl.DataFrame) -> Measure:
    """Share of replicates in which any test is significant; of two segments there is one test."""
    p_value = pl.col("p_value")
    tests = pl.when(pl.col("segment").n_unique() == 2).then(1).otherwise(p_value.count())
    smallest = estimates.group_by("sample", "model").agg(p=p_value.min() * tests).sort("sample")
    return of_draws(smallest["p"] <= SIGNIFICANCE)


def covered_in(
    estimates: pl.DataFrame, truth: float, low: str = "auc_low", high: str = "auc_high"
) -> Measure:
    """Share of intervals that contain the truth."""
    return of_draws((estimates[low] <= truth) & (estimates[high] >= truth))


def of_draws(hits: pl.Series) -> Measure:
    """Share of true values, of the scores of one draw after another; null is not true."""
    return mean(hits.fill_null(value=False).to_numpy().reshape(-1, COLUMNS).mean(axis=1))


def _summaries(samples: list[Sample], design: dict[str, Any]) -> pl.DataFrame:
    tables = (
        wroc.summary(sample.frame, "label", sample.scores, weight="weight", **design)
        for sample in samples
    )
    return pl.concat(table.select("auc", "auc_se", "auc_low", "auc_high") for table in tables)


def _stacked(samples: list[Sample], table: Any, design: dict[str, Any]) -> pl.DataFrame:
    tables = [table(each.frame, each.scores, weight="weight", **design) for each in samples]
    stacked: pl.DataFrame = pl.concat(tables)
    return stacked


def _mean_differences(frame: pl.DataFrame, scores: list[str], **given: Any) -> pl.DataFrame:
    metrics = ["standardized_mean_difference"]
    table = wroc.group_gaps(frame, score=scores, attributes="segment", metrics=metrics, **given)
    return table.filter(segment="0").select(value="gap", low="gap_low", high="gap_high")


def _cross_gaps(frame: pl.DataFrame, scores: list[str], **given: Any) -> pl.DataFrame:
    table = wroc.cross_auc(frame, "label", scores, by="segment", **given)
    one = table.filter(positive_segment=0, negative_segment=1)
    return one.select(value="xauc_gap", low="xauc_gap_low", high="xauc_gap_high")


def _against_complement(frame: pl.DataFrame, scores: list[str], **given: Any) -> pl.DataFrame:
    table = wroc.cross_auc(frame, "label", scores, by="segment", against="rest", **given)
    one = table.filter(segment=0)
    return one.select(value="bpsn_auc", low="bpsn_auc_low", high="bpsn_auc_high")


WITHOUT_AND_WITH = ("none", "cluster and strata")
DIFFERENCES = {
    "standardized_mean_difference": _mean_differences,
    "gap of cross_auc": _cross_gaps,
}
OTHERS = {**DIFFERENCES, "BPSN AUC of cross_auc": _against_complement}


def _gaps(samples: list[Sample], design: dict[str, Any]) -> pl.DataFrame:
    return pl.concat(
        wroc.group_gaps(
            sample.frame,
            "label",
            sample.scores,
            weight="weight",
            attributes="segment",
            adjust="none",
            **design,
        )
        .select("segment", "model", "gap_low", "gap_high", "p_value")
        .with_columns(sample=pl.lit(number))
        for number, sample in enumerate(samples)
    )


if __name__ == "__main__":
    main()
