"""Promised coverage of single AUCs, `compare`, clusters and tiny groups."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import product

import numpy as np
import polars as pl
from designs import Clustered, Effect, Floats, TwoClasses, TwoScores, Weights
from simulation import LEVEL, REPLICATE, Method, Simulation, intervals
from tables import SIGNIFICANCE, Cell, Measure, Section, Table, coverage, share

import polars_wroc as wroc

METHODS: tuple[Method, ...] = ("score", "logit", "delong")
WEIGHTS: tuple[Weights, ...] = ("unit", "lognormal(1)")
SIZES: tuple[tuple[int, int], ...] = ((5, 20), (20, 80), (100, 300))
AUCS = (0.65, 0.80, 0.95)
# Positives, negatives and AUC.
TINY = ((1, 1, 0.95), (2, 3, 0.95), (5, 20, 0.95), (5, 20, 0.999), (20, 80, 0.999))
CLUSTERS = (60, 15)
EFFECTS: dict[Effect, str] = {
    "constant": "a: one label per cluster",
    "mixed": "b: mixed labels",
    "positives": "c: mixed labels, positives only",
}


def promises(simulation: Simulation) -> list[Section]:
    """Simulate all of these."""
    return [
        *single_auc(simulation),
        differences(simulation),
        clusters(simulation),
        tiny_groups(simulation),
    ]


def single_auc(simulation: Simulation) -> list[Section]:
    """Coverage of an AUC's interval and bias of its variance, from the same replicates."""
    coverages: list[tuple[Cell, ...]] = []
    ratios: list[tuple[Cell, ...]] = []
    for size, auc, weights in product(SIZES, AUCS, WEIGHTS):
        setting = TwoClasses(*size, auc, weights)
        estimates = simulation.run(setting, partial(intervals, methods=METHODS))
        covered = {method: coverage(estimates.filter(way=method), auc) for method in METHODS}
        cells = (setting.size, f"{auc:g}", weights)
        coverages.append((*cells, *(each.coverage for each in covered.values())))
        ratios.append((*cells, str(variance_ratio(estimates.filter(way=METHODS[0])))))
    header = ("size", "AUC", "weights")
    return [
        Section(
            "Coverage of the interval of an AUC",
            "Equal spread, sizes of positives/negatives.",
            Table((*header, *METHODS), coverages),
            settings=3,
            promise=_state_promise,
        ),
        Section(
            "Estimated variance of an AUC",
            "Mean of the estimated variances over the variance of the estimates.",
            Table((*header, "estimated / true"), ratios),
        ),
    ]


def differences(simulation: Simulation) -> Section:
    """Type I error of the comparison of two scores on the same rows."""
    body: list[tuple[Cell, ...]] = []
    for size, auc, weights in product(SIZES[1:], AUCS, WEIGHTS):
        setting = TwoScores(*size, auc, weights)
        estimates = simulation.run(setting, comparisons)
        rejected = share(estimates["p_value"] < SIGNIFICANCE)
        body.append((f"{size[0]}/{size[1]}", f"{auc:g}", weights, rejected.family_error))
    return Section(
        "Type I error of `compare`",
        "Share of p-values below 0.05 for two scores with the same true AUC on the same rows; "
        "half of the variance of a score is common to both.",
        Table(("size", "AUC", "weights", "p < 0.05"), body),
        settings=3,
        promise="at most 6% of samples",
    )


def clusters(simulation: Simulation) -> Section:
    """Coverage and variance of an AUC of clustered rows, with and without the clusters."""
    body: list[tuple[Cell, ...]] = []
    for effect, number, weights in product(EFFECTS, CLUSTERS, WEIGHTS):
        setting = Clustered(effect, number, weights)
        estimates = simulation.run(setting, clustered_summaries)
        mean = float(np.mean(_values(estimates, "auc")))
        truth = setting.auc if effect == "constant" else mean
        ways = [estimates.filter(way=way) for way in ("with", "without")]
        covered = (coverage(way, truth).coverage for way in ways)
        ratios = (str(variance_ratio(way)) for way in ways)
        body.append((EFFECTS[effect], str(number), weights, *covered, f"{mean:.4f}", *ratios))
    return Section(
        "Clusters",
        "Clusters have three to seven rows, a third of them positive. The effect that the rows of "
        f"a cluster share makes up {setting.variance:.0%} of the variance of a score; in c, only "
        "the positives share it. For pairs of rows from different clusters the AUC is "
        f"{setting.auc:g}. With one label per cluster (a) there are no other pairs; with mixed "
        "labels (b and c) the truth is the mean of the simulated AUCs. Coverage is shown with "
        "`design=` and without, and so is the ratio of estimated to true variance.",
        Table(
            (
                "effect",
                "clusters",
                "weights",
                "coverage with",
                "coverage without",
                "mean AUC",
                "ratio with",
                "ratio without",
            ),
            body,
        ),
        settings=3,
        promise=_state_promise_for_clusters,
    )


def tiny_groups(simulation: Simulation) -> Section:
    """Width and coverage of the intervals of groups that are mostly separated perfectly."""
    body: list[tuple[Cell, ...]] = []
    for (n_pos, n_neg, auc), weights in product(TINY, WEIGHTS):
        setting = TwoClasses(n_pos, n_neg, auc, weights)
        estimates = simulation.run(setting, partial(intervals, methods=METHODS))
        separated = share(estimates.filter(way=METHODS[0])["auc"] == 1)
        own = estimates.filter(way="score")
        # An interval that is missing has no width either.
        points = len(own) - int((own["auc_low"] < own["auc_high"]).sum())
        missing = [share(estimates.filter(way=way)["auc_low"].is_null()) for way in METHODS[1:]]
        cells = (setting.size, f"{auc:g}", weights, str(separated))
        shares = (f"{points:,} of {len(own):,}", *map(str, missing))
        body.append((*cells, coverage(own, auc).coverage, *shares))
    return Section(
        "Perfect separation and tiny groups",
        "The share of replicates with an AUC of 1, the coverage of `score`, how many of its "
        "intervals have no width or are missing, and the share in which `logit` and `delong` have "
        "no interval, because there is no variance.",
        Table(
            (
                "size",
                "AUC",
                "weights",
                "separated",
                "score",
                "without width",
                *(f"no {method}" for method in METHODS[1:]),
            ),
            body,
        ),
        settings=3,
        promise="covers 94% to 99.8%",
    )


def _state_promise(_: Mapping[str, str], column: str) -> str:
    """Return what the documentation promises for the intervals of a method."""
    if column == "score":
        return "92% or more"
    return "only to reproduce other software; no interval where there is no variance"


def _state_promise_for_clusters(_: Mapping[str, str], column: str) -> str:
    """Return what the documentation promises for clusters that are declared or not."""
    if column == "coverage without":
        return "pass `design=`; without it coverage is down to 72%"
    return "96% or more, from 15 clusters on"


def clustered_summaries(frame: pl.DataFrame) -> pl.DataFrame:
    """Intervals with clusters and, from the same rows, without."""
    ways = {
        way: wroc.summary(
            frame,
            "label",
            "score",
            weight="weight",
            by=REPLICATE,
            level=LEVEL,
            design=cluster,
        ).select("auc", "auc_se", "auc_low", "auc_high")
        for way, cluster in (("with", "cluster"), ("without", None))
    }
    return pl.concat(estimates.with_columns(way=pl.lit(way)) for way, estimates in ways.items())


def comparisons(frame: pl.DataFrame) -> pl.DataFrame:
    """Tests of the two scores in each replicate."""
    scores = ["score", "other"]
    return wroc.compare(frame, "label", scores, weight="weight", by=REPLICATE, adjust="none")


def variance_ratio(estimates: pl.DataFrame) -> Measure:
    """Mean estimated variance over the variance of the estimates, with the error of both."""
    known = estimates.drop_nulls("auc_se")
    estimated, aucs = _values(known, "auc_se") ** 2, _values(known, "auc")
    squares = (aucs - np.mean(aucs)) ** 2
    ratio = float(np.mean(estimated) / np.mean(squares))
    influence = estimated / np.mean(estimated) - squares / np.mean(squares)
    return Measure(ratio, ratio * float(np.std(influence)) / len(influence) ** 0.5)


def _values(estimates: pl.DataFrame, column: str) -> Floats:
    return estimates[column].to_numpy()
