"""Promised coverage of single AUCs, `compare`, clusters and tiny groups."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import polars as pl
from designs import Clustered, Effect, Floats, TwoClasses, TwoScores, Weights
from simulation import LEVEL, REPLICATE, Method, Simulation, intervals
from tables import SIGNIFICANCE, Measure, Section, Table, coverage, share

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
COVERAGE_PROMISE = (0.93, 0.97)
ERROR_PROMISE = (0.04, 0.06)


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
    coverages, ratios = [], []
    for size, auc, weights in product(SIZES, AUCS, WEIGHTS):
        setting = TwoClasses(*size, auc, weights)
        found = simulation.run(setting, partial(intervals, methods=METHODS))
        covered = {method: coverage(found.filter(way=method), auc) for method in METHODS}
        promised = size != SIZES[0] and auc != AUCS[-1]
        promise = covered["score"].keeps(COVERAGE_PROMISE) if promised else "-"
        cells = (setting.size, f"{auc:g}", weights)
        coverages.append((*cells, *map(str, covered.values()), promise))
        ratios.append((*cells, str(variance_ratio(found.filter(way=METHODS[0])))))
    header = ("size", "AUC", "weights")
    return [
        Section(
            "Coverage of the interval of an AUC",
            "Equal spread. Promise: `score` covers between 0.93 and 0.97 at 20/80 and 100/300, "
            "for an AUC of 0.65 or 0.8.",
            Table((*header, *METHODS, "promise"), coverages),
        ),
        Section(
            "Estimated variance of an AUC",
            "Mean of the estimated variances over the variance of the estimates.",
            Table((*header, "estimated / true"), ratios),
        ),
    ]


def differences(simulation: Simulation) -> Section:
    """Type I error of the comparison of two scores on the same rows."""
    body = []
    for size, auc, weights in product(SIZES[1:], AUCS, WEIGHTS):
        setting = TwoScores(*size, auc, weights)
        found = simulation.run(setting, comparisons)
        rejected = share(found["p_value"] < SIGNIFICANCE)
        promise = rejected.keeps(ERROR_PROMISE) if size == SIZES[-1] else "-"
        body.append(
            (f"{size[0]}/{size[1]}", f"{auc:g}", weights, str(rejected), promise),
        )
    return Section(
        "Type I error of `compare`",
        "Share of p-values below 0.05 for two scores with the same true AUC on the same rows; "
        "half of the variance of a score is common to both. Promise: between 0.04 and 0.06 at "
        "100/300.",
        Table(("size", "AUC", "weights", "p < 0.05", "promise"), body),
    )


def clusters(simulation: Simulation) -> Section:
    """Coverage and variance of an AUC of clustered rows, with and without the clusters."""
    body = []
    for effect, number, weights in product(EFFECTS, CLUSTERS, WEIGHTS):
        setting = Clustered(effect, number, weights)
        found = simulation.run(setting, clustered_summaries)
        mean = float(np.mean(_values(found, "auc")))
        truth = setting.auc if effect == "constant" else mean
        ways = [found.filter(way=way) for way in ("with", "without")]
        measures = [coverage(way, truth) for way in ways] + [variance_ratio(way) for way in ways]
        body.append((EFFECTS[effect], str(number), weights, f"{mean:.4f}", *map(str, measures)))
    return Section(
        "Clusters",
        "Clusters of three to seven rows, a third of them positive. "
        f"The effect that the rows of a cluster share makes {setting.variance:.0%} of the "
        "variance of a score; in c only the positives share it. For pairs of rows from "
        f"different clusters the AUC is {setting.auc:g}, and with one label per cluster (a) "
        "there are no others. Where labels are mixed (b and c) pairs within a cluster count "
        "too: there the estimand is the expected value of the estimate, and the truth in the "
        "table is the mean of the simulated AUCs. Method `score`, with `cluster=` and "
        "without; the ratio is estimated to true variance.",
        Table(
            (
                "effect",
                "clusters",
                "weights",
                "mean AUC",
                "coverage with",
                "coverage without",
                "ratio with",
                "ratio without",
            ),
            body,
        ),
    )


def tiny_groups(simulation: Simulation) -> Section:
    """Width and coverage of the intervals of groups that are mostly separated perfectly."""
    body = []
    for (n_pos, n_neg, auc), weights in product(TINY, WEIGHTS):
        setting = TwoClasses(n_pos, n_neg, auc, weights)
        found = simulation.run(setting, partial(intervals, methods=METHODS))
        separated = share(found.filter(way=METHODS[0])["auc"] == 1)
        covered = [coverage(found.filter(way=method), auc) for method in METHODS]
        # An interval that is missing has no width either.
        points = len(found) - int((found["auc_low"] < found["auc_high"]).sum())
        shown = (*map(str, (separated, *covered)), f"{points:,} of {len(found):,}")
        cells = (setting.size, f"{auc:g}", weights)
        body.append((*cells, *shown, "met" if points == 0 else "missed"))
    return Section(
        "Perfect separation and tiny groups",
        "Share of replicates with an AUC of 1, coverage, and how many of all intervals have no "
        "width or are missing. Without a variance `logit` and `delong` have none. "
        "Promise: not one without width.",
        Table(("size", "AUC", "weights", "separated", *METHODS, "without width", "promise"), body),
    )


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
    return pl.concat(found.with_columns(way=pl.lit(way)) for way, found in ways.items())


def comparisons(frame: pl.DataFrame) -> pl.DataFrame:
    """Tests of the two scores in each replicate."""
    scores = ["score", "other"]
    return wroc.compare(frame, "label", scores, weight="weight", by=REPLICATE, adjust="none")


def variance_ratio(found: pl.DataFrame) -> Measure:
    """Mean estimated variance over the variance of the estimates, with the error of both."""
    known = found.drop_nulls("auc_se")
    estimated, aucs = _values(known, "auc_se") ** 2, _values(known, "auc")
    squares = (aucs - np.mean(aucs)) ** 2
    ratio = float(np.mean(estimated) / np.mean(squares))
    influence = estimated / np.mean(estimated) - squares / np.mean(squares)
    return Measure(ratio, ratio * float(np.std(influence)) / len(influence) ** 0.5)


def _values(found: pl.DataFrame, column: str) -> Floats:
    return found[column].to_numpy()
