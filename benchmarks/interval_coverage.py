"""Simulate how often intervals cover the truth, and how often tests err.

Every replicate is a group of one long frame, so that one call serves thousands of them. What
comes out, and what it was made of, goes into ``coverage.md``.

    python benchmarks/interval_coverage.py
    python benchmarks/interval_coverage.py --replicates 2000 --seed 1
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import product
from pathlib import Path
from statistics import NormalDist
from typing import Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

import polars_wroc as wroc

Method: TypeAlias = Literal["logit-t", "conservative", "wald"]
Weights: TypeAlias = Literal["unit", "lognormal"]
Effect: TypeAlias = Literal["constant", "mixed", "positives"]
Floats: TypeAlias = npt.NDArray[np.float64]

OUTPUT = Path(__file__).with_name("coverage.md")
METHODS: tuple[Method, ...] = ("logit-t", "conservative", "wald")
WEIGHTS: tuple[Weights, ...] = ("unit", "lognormal")
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
CLUSTER_AUC = 0.80
CLUSTER_VARIANCE = 0.6
POSITIVE_SHARE = 1 / 3
COVERAGE_PROMISE = (0.93, 0.97)
ERROR_PROMISE = (0.04, 0.06)
SIGNIFICANCE = 0.05
ROWS_AT_ONCE = 2_000_000


class Setting(Protocol):
    """What can be simulated."""

    @property
    def rows(self) -> int:
        """Rows of a replicate, roughly."""
        ...

    def draw(self, random: np.random.Generator, replicates: int) -> pl.DataFrame:
        """Draw replicates, one below the other."""
        ...


@dataclass(frozen=True)
class TwoClasses:
    """Independent rows in two classes of fixed size, and two scores with the same true AUC.

    Scores are normal with variance 1. The correlation of the two in a class is one half.
    """

    n_pos: int
    n_neg: int
    auc: float
    weights: Weights

    @property
    def rows(self) -> int:
        """Rows of a replicate."""
        return self.n_pos + self.n_neg

    @property
    def cells(self) -> tuple[str, str, str]:
        """The setting in the first columns of a table."""
        return f"{self.n_pos}/{self.n_neg}", f"{self.auc:g}", self.weights

    def draw(self, random: np.random.Generator, replicates: int) -> pl.DataFrame:
        """Draw replicates, one below the other."""
        n = replicates * self.rows
        label = np.tile(np.arange(self.rows) < self.n_pos, replicates)
        common, own, others = random.normal(scale=np.sqrt(0.5), size=(3, n))
        mean = shift(self.auc) * label
        return pl.DataFrame(
            {
                "replicate": np.repeat(np.arange(replicates), self.rows),
                "label": label,
                "score": mean + common + own,
                "other": mean + common + others,
                "weight": draw_weights(random, self.weights, n),
            }
        )


@dataclass(frozen=True)
class Clustered:
    """Clusters of three to seven rows with a part of the score in common.

    A score has variance 1 in each class. With ``effect="constant"`` all rows of a cluster
    have one label; else labels are drawn row by row. With ``effect="positives"`` only the
    positives of a cluster have something in common.
    """

    effect: Effect
    clusters: int
    weights: Weights

    @property
    def rows(self) -> int:
        """Rows of a replicate on average."""
        return 5 * self.clusters

    def draw(self, random: np.random.Generator, replicates: int) -> pl.DataFrame:
        """Draw replicates, one below the other."""
        clusters = replicates * self.clusters
        cluster = np.repeat(np.arange(clusters), random.integers(3, 8, clusters))
        replicate, cluster_in_replicate = np.divmod(cluster, self.clusters)
        n = len(cluster)
        if self.effect == "constant":
            label = cluster_in_replicate < POSITIVE_SHARE * self.clusters
        else:
            label = random.random(n) < POSITIVE_SHARE
        effect = random.normal(size=clusters)[cluster]
        if self.effect == "positives":
            effect = np.where(label, effect, random.normal(size=n))
        noise = random.normal(size=n)
        return pl.DataFrame(
            {
                "replicate": replicate,
                "cluster": cluster_in_replicate,
                "label": label,
                "score": shift(CLUSTER_AUC) * label
                + np.sqrt(CLUSTER_VARIANCE) * effect
                + np.sqrt(1 - CLUSTER_VARIANCE) * noise,
                "weight": draw_weights(random, self.weights, n),
            }
        )


@dataclass(frozen=True)
class Simulation:
    """How many replicates to draw, and from which generator."""

    replicates: int
    random: np.random.Generator

    def run(
        self, setting: Setting, estimate: Callable[[pl.DataFrame], pl.DataFrame]
    ) -> pl.DataFrame:
        """Estimate all replicates of a setting, as many at once as memory allows."""
        print(setting, file=sys.stderr, flush=True)
        return pl.concat(
            estimate(setting.draw(self.random, replicates)) for replicates in self._chunks(setting)
        )

    def _chunks(self, setting: Setting) -> Iterator[int]:
        chunk = max(1, ROWS_AT_ONCE // setting.rows)
        for start in range(0, self.replicates, chunk):
            yield min(chunk, self.replicates - start)


class Measure(NamedTuple):
    """A result of the simulation with its Monte Carlo error."""

    value: float
    error: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ± {self.error:.3f}"

    def keeps(self, promise: tuple[float, float]) -> str:
        """Whether the value is between two limits."""
        return "met" if promise[0] <= self.value <= promise[1] else "missed"


class Table(NamedTuple):
    """Rows of cells below a header."""

    header: tuple[str, ...]
    body: Sequence[tuple[str, ...]]

    def __str__(self) -> str:
        lines = [self.header, tuple("---" for _ in self.header), *self.body]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def count(self, cell: str) -> int:
        """How many rows end with a cell."""
        return sum(row[-1] == cell for row in self.body)


class Section(NamedTuple):
    """A table with what it shows."""

    title: str
    text: str
    table: Table

    def __str__(self) -> str:
        return f"## {self.title}\n\n{self.text}\n\n{self.table}"


def main() -> None:
    """Simulate, print and write."""
    options = _options()
    simulation = Simulation(options.replicates, np.random.default_rng(options.seed))
    sections = [
        *single_auc(simulation),
        differences(simulation),
        clusters(simulation),
        tiny_groups(simulation),
    ]
    report = "\n\n".join([preamble(options, sections), *map(str, sections)])
    print(report)
    OUTPUT.write_text(report + "\n", encoding="utf-8")


def preamble(options: argparse.Namespace, sections: Iterable[Section]) -> str:
    """Say what was simulated and how many promises are met."""
    met, missed = (sum(s.table.count(cell) for s in sections) for cell in ("met", "missed"))
    versions = ", ".join(f"{name} {version(name)}" for name in ("polars-wroc", "polars"))
    return (
        "# Coverage of intervals and errors of tests, simulated\n\n"
        f"`python benchmarks/interval_coverage.py --replicates {options.replicates} "
        f"--seed {options.seed}` with {versions}: {options.replicates:,} replicates of each "
        "setting; after ± stands the Monte Carlo standard error. "
        f"Promises met: {met} of {met + missed}.\n\n"
        "Scores are normal with variance 1 in each class; the positives lie higher by "
        "√2 Φ⁻¹(AUC), so that the true AUC is known. Weights are 1 or lognormal (sigma 1) and "
        "independent of everything else. Sizes are those of positives/negatives, the same in "
        "all replicates. Intervals are those of `summary` at 95 %; without a variance every "
        "method gives way to Newcombe's, which is in its coverage."
    )


def single_auc(simulation: Simulation) -> list[Section]:
    """Coverage of an AUC's interval and bias of its variance, from the same replicates."""
    coverages, ratios = [], []
    for size, auc, weights in product(SIZES, AUCS, WEIGHTS):
        setting = TwoClasses(*size, auc, weights)
        found = simulation.run(setting, summaries)
        covered = {method: coverage(found, method, auc) for method in METHODS}
        promised = size != SIZES[0] and auc != AUCS[-1]
        promise = covered["logit-t"].keeps(COVERAGE_PROMISE) if promised else "-"
        coverages.append((*setting.cells, *map(str, covered.values()), promise))
        ratios.append((*setting.cells, str(variance_ratio(found, METHODS[0]))))
    header = ("size", "AUC", "weights")
    return [
        Section(
            "Coverage of the interval of an AUC",
            "Promise: `logit-t` covers between 0.93 and 0.97 at 20/80 and 100/300, for an AUC "
            "of 0.65 or 0.8.",
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
        setting = TwoClasses(*size, auc, weights)
        found = simulation.run(setting, comparisons)
        rejected = share((found["p_value"] < SIGNIFICANCE).fill_null(value=False))
        promise = rejected.keeps(ERROR_PROMISE) if size == SIZES[-1] else "-"
        body.append((*setting.cells, str(rejected), promise))
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
        found = simulation.run(Clustered(effect, number, weights), clustered_summaries)
        mean = float(np.mean(_values(found, "with", "auc")))
        truth = CLUSTER_AUC if effect == "constant" else mean
        measures = [coverage(found, way, truth) for way in ("with", "without")]
        measures += [variance_ratio(found, way) for way in ("with", "without")]
        body.append((EFFECTS[effect], str(number), weights, f"{mean:.4f}", *map(str, measures)))
    return Section(
        "Clusters",
        "Clusters of three to seven rows, a third of them positive. "
        f"The effect that the rows of a cluster share makes {CLUSTER_VARIANCE:.0%} of the "
        "variance of a score; in c only the positives share it. For pairs of rows from "
        f"different clusters the AUC is {CLUSTER_AUC:g}, and with one label per cluster (a) "
        "there are no others. Where labels are mixed (b and c) pairs within a cluster count "
        "too: there the estimand is the expected value of the estimate, and the truth in the "
        "table is the mean of the simulated AUCs. Method `logit-t`, with `cluster=` and "
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
        found = simulation.run(setting, summaries)
        separated = share(_of(found, METHODS[0])["auc"] == 1)
        covered = [coverage(found, method, auc) for method in METHODS]
        # An interval that is missing has no width either.
        points = len(found) - int((found["ci_low"] < found["ci_high"]).sum())
        shown = (*map(str, (separated, *covered)), f"{points:,} of {len(found):,}")
        body.append((*setting.cells, *shown, "met" if points == 0 else "missed"))
    return Section(
        "Perfect separation and tiny groups",
        "Share of replicates with an AUC of 1, coverage, and how many of all intervals have no "
        "width or are missing. Promise: not one.",
        Table(("size", "AUC", "weights", "separated", *METHODS, "without width", "promise"), body),
    )


def summaries(frame: pl.DataFrame) -> pl.DataFrame:
    """Intervals of all methods from the same rows."""
    return pl.concat(
        _summary(frame, method=method).with_columns(way=pl.lit(method)) for method in METHODS
    )


def clustered_summaries(frame: pl.DataFrame) -> pl.DataFrame:
    """Intervals with clusters and, from the same rows, without."""
    ways = {"with": _summary(frame, cluster="cluster"), "without": _summary(frame)}
    return pl.concat(found.with_columns(way=pl.lit(way)) for way, found in ways.items())


def comparisons(frame: pl.DataFrame) -> pl.DataFrame:
    """Tests of the two scores in each replicate."""
    scores = ["score", "other"]
    return wroc.compare(frame, "label", scores, weight="weight", by="replicate", adjust="none")


def coverage(found: pl.DataFrame, way: str, truth: float) -> Measure:
    """Share of the intervals that hold the truth; a missing one does not."""
    kept = _of(found, way)
    return share(((kept["ci_low"] <= truth) & (kept["ci_high"] >= truth)).fill_null(value=False))


def variance_ratio(found: pl.DataFrame, way: str) -> Measure:
    """Mean estimated variance over the variance of the estimates, with the error of both."""
    estimated = _values(found, way, "se") ** 2
    squares = (_values(found, way, "auc") - np.mean(_values(found, way, "auc"))) ** 2
    ratio = float(np.mean(estimated) / np.mean(squares))
    influence = estimated / np.mean(estimated) - squares / np.mean(squares)
    return Measure(ratio, ratio * float(np.std(influence)) / np.sqrt(len(influence)))


def share(hits: pl.Series) -> Measure:
    """Share of true values."""
    value = int(hits.sum()) / len(hits)
    return Measure(value, (value * (1 - value) / len(hits)) ** 0.5)


def shift(auc: float) -> float:
    """How much higher positives lie, in standard deviations of a class."""
    return 2**0.5 * NormalDist().inv_cdf(auc)


def draw_weights(random: np.random.Generator, weights: Weights, n: int) -> Floats:
    """Weights that have nothing to do with the scores."""
    return random.lognormal(size=n) if weights == "lognormal" else np.ones(n)


def _summary(
    frame: pl.DataFrame, method: Method = "logit-t", cluster: str | None = None
) -> pl.DataFrame:
    found = wroc.summary(
        frame,
        "label",
        "score",
        weight="weight",
        by="replicate",
        method=method,
        cluster=cluster,
    )
    return found.select("auc", "se", "ci_low", "ci_high")


def _of(found: pl.DataFrame, way: str) -> pl.DataFrame:
    return found.filter(pl.col("way") == way)


def _values(found: pl.DataFrame, way: str, column: str) -> Floats:
    return _of(found, way)[column].to_numpy()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Simulate the intervals and tests of polars-wroc.")
    parser.add_argument("--replicates", type=_two_or_more, default=12_000)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def _two_or_more(text: str) -> int:
    number = int(text)
    if number < 2:
        msg = f"must be 2 or more; found {number}"
        raise argparse.ArgumentTypeError(msg)
    return number


if __name__ == "__main__":
    main()
