"""Simulate designs of other shapes than those that rules were tuned on.

    python benchmarks/simulations/other_shapes.py
    python benchmarks/simulations/other_shapes.py --replicates 200 --only rates

What comes out goes into ``other_shapes.md``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from bent_audits import Families, audit_findings, families_of_audits
from bent_designs import Groups
from bent_page import ENOUGH, listed
from designs import Setting
from other_designs import (
    PROBABILITIES,
    SHAPES,
    TRUE_PROBABILITIES,
    WEIGHTS,
    GrowingClusters,
    ShapedAudit,
    ShapedEvents,
    ShapedPair,
    ShapedProbabilities,
    ShapedRows,
)
from simulation import LEVEL, REPEATED, REPLICATE, Simulation, gaps, rate_tests
from tables import (
    SIGNIFICANCE,
    Cell,
    Check,
    Promise,
    Section,
    Table,
    command_of,
    coverage,
    parse_options,
    share,
    write_page,
)

import polars_wroc as wroc
from polars_wroc.inputs.reasons import FEW_EVENTS

Row: TypeAlias = tuple[Cell, ...]

# Weights that have nothing to do with the score or the outcome.
UNRELATED = ("none", "gamma", "Pareto", "1 or 20")
# Rows and the share of positives.
SIZES = ((60, 0.25), (400, 0.15))
RATE_SIZES = ((60, 0.3), (150, 0.3), (600, 0.1))
RATES = (0.1, 0.3, 0.6, 0.9)
TESTED_RATES = (0.05, 0.3, 0.9)
TESTED_ROWS = ((40, 40), (30, 300))
# Groups of other sizes and shares of positives.
GROUP_SIZES = (((100, 0.5), (200, 0.1)), ((400, 0.5), (600, 0.1)))
GROUP_SHAPES = (
    ("spike at 0", "uniform, exponential"),
    ("two humps", "ends"),
    ("capped", "Pareto"),
)
PAIRED_SHAPES = (("spike at 0", "two humps"), ("capped", "ends"), ("two humps", "Pareto"))
PROBABILITY_ROWS = (60, 200)
CLUSTERS = (20, 60)
# Tests of AUCs and audits take longer: they have some of the weights, and fewer replicates.
RELATED = ("1 or 20, low ranks heavy", "1 or 20, high ranks heavy", "U-shaped")
FEWER = 5
# So many failing settings are listed.
MOST = 12


def main() -> None:
    """Simulate and write the page, or print parts of it."""
    options = parse_options("Simulate other shapes.", 1_000, 2026112913, only=PARTS)
    sections = []
    for number, (name, part) in enumerate(PARTS.items()):
        if not options.only or name in options.only:
            start = time.perf_counter()
            random = np.random.default_rng([options.seed, number])
            sections += part(Simulation(options.replicates, random))
            print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    if options.only:
        print(*sections, sep="\n\n")
        return
    fewer = options.replicates // FEWER
    write_page(
        "other_shapes",
        "Designs of other shapes",
        "Rules of this package were tuned on normal scores, lognormal weights, outliers, heavy "
        "tails, grades and mixtures. Here scores have atoms, caps, two humps or other shapes in "
        "each group, weights are gamma, Pareto, 1 or 20 or those of a case-control study, or are "
        "highest at both ends, and clusters grow with their effect. Nothing was tuned on these "
        "designs.",
        command_of(
            "other_shapes", options, f", and {fewer:,} for tests of AUCs and for whole audits"
        ),
        sections,
        DRAWN,
    )


DRAWN = (
    "## How data are drawn\n\n*Spike at 0*: 20% of the positives and 60% of the negatives have a "
    "score of 0, the others beta(2, 2) and beta(1, 3). *Capped*: beta(3, 2) and beta(2, 3), at "
    "most 0.6. *Two humps*: a mixture of beta(10, 3) and beta(2, 10), of which 65% and 10% are in "
    "the upper hump. *Uniform, exponential*: positives are uniform and negatives exponential. "
    "*Ends*: beta(0.5, 0.3) and beta(0.3, 0.6). *Pareto*: with tails of 1 and 3.\n\nWeights that "
    "have nothing to do with scores are *gamma* (shape 0.5), *Pareto* (tail 2.5) or *1 or 20* (10% "
    "of the rows weigh 20). Where *low ranks* are *heavy*, 30% of the lowest 30% of a class weigh "
    "20, and 2% of the others; where *high ranks* are, it is the other way round. *U-shaped* "
    "weights have the mean 1 + 8 |2 r - 1|³ at a rank r within the class, and are gamma (shape 4) "
    "around it. *Case-control*: negatives weigh ten times as much as positives."
)


def summarize(
    listing: Section, by: str, rows: Sequence[Row], header: Sequence[str]
) -> list[Section]:
    """Return a section that lists failures, and a table of the worst by the values of a column."""
    place = header.index(by)
    body: list[Row] = []
    for name in dict.fromkeys(str(row[place]) for row in rows):
        checks = [row[-1] for row in rows if row[place] == name]
        known = [check for check in checks if isinstance(check, Check) and check.is_known]
        worst = max(known, key=lambda check: check.excess)
        beyond = sum(check.excess > 0 for check in known)
        body.append((name, str(worst), f"{beyond} of {len(known)}"))
    is_error = header[-1] == "error"
    columns = ("highest error", "above 0.06") if is_error else ("least coverage", "below 0.93")
    text = "The worst value and the number of settings beyond the limit."
    return [listing, Section(f"{listing.title}, by {by}", text, Table((by, *columns), body))]


def list_settings(
    title: str, text: str, header: tuple[str, ...], rows: list[Row], promise: Promise, by: str
) -> list[Section]:
    """Return the settings that fail, and the worst by the values of a column."""
    text = f"{text} Listed are the settings that fail, of {len(rows)}, or the worst {MOST} of them."
    listing = listed(title, text, header, rows, promise, settings=len(header) - 1)
    body = list(listing.table.body)
    listing = listing._replace(
        table=Table(header, body[:MOST]), unlisted=[*listing.unlisted, *body[MOST:]]
    )
    return summarize(listing, by, rows, header)


def tell(promise: str) -> Promise:
    """Return the same promise for all settings."""
    return lambda *_: promise


def auc_intervals(simulation: Simulation) -> list[Section]:
    """Coverage of the intervals of AUCs."""
    rows: list[Row] = []
    for shape, weights, size in product(SHAPES, WEIGHTS, SIZES):
        setting = ShapedRows(*size, shape, weights)
        estimates = simulation.run(setting, summarized)
        covered = coverage(estimates, setting.auc).coverage
        rows.append((shape, weights, str(size[0]), f"{setting.auc:.3f}", covered))
    return list_settings(
        "Other shapes: AUCs",
        f"Coverage of the intervals of `summary`; {SIZES[0][0]} rows with {SIZES[0][1]:.0%} "
        f"positives, or {SIZES[1][0]} with {SIZES[1][1]:.0%}.",
        ("scores", "weights", "rows", "true AUC", "coverage"),
        rows,
        tell("93% or more, but 88% to 91% with 60 rows where weights of 20 go with high scores"),
        "weights",
    )


def summarized(frame: pl.DataFrame) -> pl.DataFrame:
    """Intervals of the AUC of each replicate."""
    table = wroc.summary(frame, "label", "score", weight="weight", by=REPLICATE, level=LEVEL)
    return table.select("auc_low", "auc_high")


def auc_gaps(simulation: Simulation) -> list[Section]:
    """Errors of tests of two AUCs, and coverage of the limits of gaps that are not 0."""
    errors: list[Row] = []
    covered: list[Row] = []
    kinds = product(GROUP_SHAPES, GROUP_SIZES, ("none", "Pareto", *RELATED))
    for shapes, sizes, weights in kinds:
        own, other = (
            ShapedRows(*size, shape, weights) for size, shape in zip(sizes, shapes, strict=True)
        )
        lower = min(own.auc, other.auc)
        cells = (
            " / ".join(shapes),
            weights,
            " / ".join(f"{rows}, {positives:.0%}" for rows, positives in sizes),
        )
        equal = (own.with_auc(lower - 0.01), other.with_auc(lower - 0.01))
        tested = compare_groups(simulation.fewer(FEWER), equal)
        rejected = share(tested["p_value"].drop_nulls() <= SIGNIFICANCE)
        errors.append((*cells, f"{lower - 0.01:.2f}", rejected.family_error))
        # Half as far from one half as the other group.
        apart = (own, other.with_auc(0.25 + lower / 2))
        gap = own.auc - apart[1].auc
        estimates = compare_groups(simulation.fewer(FEWER), apart).drop_nulls("gap_low")
        limits = coverage(estimates, gap, "gap_low", "gap_high")
        covered.append((*cells, f"{gap:.2f}", limits.coverage))
    text = (
        "`group_gaps` of two groups with scores of other shapes, numbers of rows and shares of "
        "positives"
    )
    header = ("scores", "weights", "rows, positives")
    promise = tell("errs in at most 6%; up to 7% where tails differ and weights fall with scores")
    return [
        *list_settings(
            "Other shapes: tests of gaps of AUCs",
            f"{text}, but the same AUC, as some positives are drawn like negatives: the share of "
            "p-values of at most 0.05.",
            (*header, "true AUC", "error"),
            errors,
            promise,
            "weights",
        ),
        *list_settings(
            "Other shapes: limits of gaps of AUCs",
            f"{text}: coverage of the limits of the gap.",
            (*header, "true gap", "coverage"),
            covered,
            tell("93% or more"),
            "weights",
        ),
    ]


def compare_groups(simulation: Simulation, groups: Sequence[Setting]) -> pl.DataFrame:
    """Compare the AUC of the first of two groups with the other's."""

    def estimate(frame: pl.DataFrame) -> pl.DataFrame:
        table = gaps(frame, "1", metrics=["auc"]).filter(
            pl.col("segment") == "0", ~pl.col(REPEATED)
        )
        return table.select("gap_low", "gap_high", "p_value")

    return simulation.run(Groups(groups), estimate)


def rate_intervals(simulation: Simulation) -> list[Section]:
    """Coverage of the intervals of selection rates and true positive rates."""
    rows: list[Row] = []
    shapes = ("spike at 0", "two humps", "ends")
    for shape, weights, size in product(shapes, WEIGHTS, RATE_SIZES):
        setting = ShapedRows(*size, shape, weights)
        thresholds = sorted({setting.threshold(rate) for rate in RATES})
        estimates = simulation.run(setting, partial(rates_at, thresholds=thresholds))
        unweighted = ShapedRows(*size, shape, "none")
        for threshold, metric in product(thresholds, ("selection_rate", "tpr")):
            of_positives = metric == "tpr"
            rate = setting.rate(threshold, of_positives=of_positives)
            # Where all rows are selected, there is nothing to estimate.
            if rate > 0.99:
                continue
            plain = unweighted.rate(threshold, of_positives=of_positives)
            number = size[0] * (size[1] if of_positives else 1.0) * min(plain, 1 - plain)
            own = estimates.filter(threshold=threshold).drop_nulls(f"{metric}_low")
            covered = coverage(own, rate, f"{metric}_low", f"{metric}_high").coverage
            told = own["reason"].str.contains(f"{FEW_EVENTS}.*{metric}").fill_null(value=False)
            cells = (metric, shape, weights, str(size[0]), f"{rate:.2f}", f"{number:.1f}")
            rows.append((*cells, f"{share(told).value:.2f}", covered))
    return list_settings(
        "Other shapes: weighted rates",
        "Coverage of the intervals of `threshold_metrics` at given thresholds. *Rarer rows* is the "
        "expected number of rows of the rarer outcome, and *told* the share of samples whose "
        "`reason` is that effective events are few.",
        ("rate", "scores", "weights", "rows", "true rate", "rarer rows", "told", "coverage"),
        rows,
        promise_for_rates,
        "weights",
    )


def promise_for_rates(setting: Mapping[str, str], _: str) -> str:
    """Return what the documentation promises for an interval of a rate."""
    if float(setting["told"]) > 0.5:
        return "85% to 92% with fewer than five effective rows of an outcome (few effective events)"
    return "92% or more"


def rates_at(frame: pl.DataFrame, thresholds: list[float]) -> pl.DataFrame:
    """Intervals of rates at all thresholds in each replicate."""
    metrics = ["selection_rate", "tpr"]
    table = wroc.threshold_metrics(
        frame,
        "label",
        "score",
        threshold=thresholds,
        metrics=metrics,
        weight="weight",
        by=REPLICATE,
        level=LEVEL,
        min_rows=0,
    )
    ends = [f"{metric}_{end}" for metric in metrics for end in ("low", "high")]
    return table.select("threshold", *ends, "reason")


def rate_gaps(simulation: Simulation) -> list[Section]:
    """Errors of tests of equal rates of groups, of which only one may be weighted."""
    rows: list[Row] = []
    for weights, others, size, rate in product(
        WEIGHTS, ("same", "none"), TESTED_ROWS, TESTED_RATES
    ):
        if weights == "none" and others == "same":
            continue
        kinds = (weights, weights if others == "same" else "none")
        groups = [ShapedEvents(n, kind, rate) for n, kind in zip(size, kinds, strict=True)]
        estimates = simulation.run(Groups(groups), partial(rate_tests, reference="1"))
        error = share(estimates["p_value"] <= SIGNIFICANCE).family_error
        name = f"{weights} / {kinds[1]}"
        rows.append((name, "/".join(map(str, size)), f"{rate:g}", error))
    return list_settings(
        "Other shapes: tests of weighted rates",
        "`group_gaps` of the equal true positive rates of two groups, both with the same kind of "
        "weights or one without: the share of p-values of at most 0.05.",
        ("weights", "positives", "true rate", "error"),
        rows,
        tell("up to 7% where weights depend on the outcome and its rarer rows are few"),
        "weights",
    )


def calibration(simulation: Simulation) -> list[Section]:
    """Coverage of O:E, of mean errors and of calibration slopes."""
    ratios: list[Row] = []
    errors: list[Row] = []
    slopes: list[Row] = []
    kinds = product(PROBABILITIES, TRUE_PROBABILITIES, WEIGHTS, PROBABILITY_ROWS)
    for scores, true, weights, rows in kinds:
        setting = ShapedProbabilities(rows, scores, true, weights)
        estimates = simulation.run(setting, calibrated)
        cells = (scores, true, weights, str(rows), f"{setting.rarer:.1f}")
        ratio = coverage(estimates, setting.ratio, "oe_ratio_low", "oe_ratio_high")
        ratios.append((*cells, ratio.coverage))
        mean = coverage(
            estimates,
            setting.error,
            "mean_calibration_error_low",
            "mean_calibration_error_high",
        )
        errors.append((*cells, mean.coverage))
        known = estimates.drop_nulls("calibration_slope_low")
        slope = coverage(known, setting.slope, "calibration_slope_low", "calibration_slope_high")
        slopes.append((*cells, slope.coverage))
    text = (
        "`calibration_summary`; true probabilities are as predicted, half of scores below 0.3, or "
        "a wave around the scores. *Rarer rows* is the expected number of rows of the rarer "
        "outcome."
    )
    header = ("scores", "true", "weights", "rows", "rarer rows", "coverage")
    return [
        *list_settings(
            "Other shapes: O:E",
            f"Coverage of observed to expected in {text}",
            header,
            ratios,
            promise_for_ratios,
            "weights",
        ),
        *list_settings(
            "Other shapes: mean calibration errors",
            f"Coverage of mean errors in {text}",
            header,
            errors,
            tell(
                "94% or more with uneven weights, but 90% in a case-control study where two "
                "positives are expected; 92% or more with equal weights"
            ),
            "weights",
        ),
        *list_settings(
            "Other shapes: calibration slopes",
            f"Coverage of slopes, where there is one, in {text}",
            header,
            slopes,
            tell("94% or more"),
            "weights",
        ),
    ]


def promise_for_ratios(setting: Mapping[str, str], _: str) -> str:
    """Return what the documentation promises for the ratio of observed to expected."""
    if float(setting["rarer rows"]) < ENOUGH:
        return "too narrow with few rows of the rarer outcome and uneven weights"
    return "93% or more"


def calibrated(frame: pl.DataFrame) -> pl.DataFrame:
    """Ratios, mean errors and slopes of all replicates."""
    table = wroc.calibration_summary(
        frame, "label", "score", weight="weight", by=REPLICATE, level=LEVEL
    )
    names = ("oe_ratio", "mean_calibration_error", "calibration_slope")
    return table.select(f"{name}_{end}" for name in names for end in ("low", "high"))


def pairs(simulation: Simulation) -> list[Section]:
    """Errors of `compare` where both scores have other shapes."""
    rows: list[Row] = []
    kinds = product(PAIRED_SHAPES, (0.0, 0.8), UNRELATED, SIZES)
    for shapes, correlation, weights, size in kinds:
        setting = ShapedPair(*size, shapes, correlation, weights)
        estimates = simulation.run(setting, compared).drop_nulls()
        difference = setting.difference
        covered = coverage(estimates, difference, "gap_low", "gap_high")
        cells = (" / ".join(shapes), f"{correlation:g}", weights, str(size[0]))
        rows.append((*cells, f"{difference:.3f}", covered.coverage))
    return list_settings(
        "Other shapes: two scores on the same rows",
        "Coverage of the limits of `compare`; the ranks of both scores within a class are "
        "correlated.",
        ("scores", "correlation", "weights", "rows", "true difference", "coverage"),
        rows,
        tell("errs in at most 6% of samples"),
        "weights",
    )


def compared(frame: pl.DataFrame) -> pl.DataFrame:
    """Limits of the difference in each replicate."""
    table = wroc.compare(
        frame,
        "label",
        ["score", "other"],
        weight="weight",
        by=REPLICATE,
        level=LEVEL,
        adjust="none",
    )
    return table.select("gap_low", "gap_high")


def clusters(simulation: Simulation) -> list[Section]:
    """Coverage with a design where clusters with a high effect have more rows."""
    rows: list[Row] = []
    for number, weights in product(CLUSTERS, WEIGHTS):
        setting = GrowingClusters(number, weights)
        estimates = simulation.run(setting, clustered)
        mean_auc = float(estimates["auc"].mean())  # type: ignore[arg-type]
        truths = {
            "auc": mean_auc,
            "selection_rate": setting.rate(0.5),
            "oe_ratio": setting.ratio,
        }
        for measure, truth in truths.items():
            known = estimates.drop_nulls(f"{measure}_low")
            covered = coverage(known, truth, f"{measure}_low", f"{measure}_high").coverage
            rows.append((measure, weights, str(number), f"{truth:.3f}", covered))
    return list_settings(
        "Other shapes: clusters that grow with their effect",
        "Clusters of 1 to 20 rows, of which those with high scores have more: coverage with "
        "`design=` of the AUC, whose true value is the mean of the estimates, of the selection "
        "rate at 0.5, and of O:E.",
        ("measure", "weights", "clusters", "true value", "coverage"),
        rows,
        tell("91% or more for rates of 20 declared clusters that grow with their effect"),
        "measure",
    )


def clustered(frame: pl.DataFrame) -> pl.DataFrame:
    """Estimates of each replicate with the clusters."""
    given: dict[str, Any] = {
        "weight": "weight",
        "by": REPLICATE,
        "level": LEVEL,
        "design": "cluster",
    }
    tables = {
        "auc": wroc.summary(frame, "label", "score", **given),
        "selection_rate": wroc.threshold_metrics(
            frame, "label", "score", threshold=0.5, metrics=["selection_rate"], **given
        ),
        "oe_ratio": wroc.calibration_summary(frame, "label", "score", **given),
    }
    return pl.concat(
        (table.select(name, f"{name}_low", f"{name}_high") for name, table in tables.items()),
        how="horizontal",
    )


def audits(simulation: Simulation) -> list[Section]:
    """Errors of whole audits of segments that are all alike."""
    families = families_of_audits()
    rows: list[Row] = []
    # Weights by outcome would make the probabilities wrong, and weights by score in one segment
    # would make it differ.
    for name, weights in product(("40% at 0.05", "ends"), ("gamma", "1 or 20", *RELATED)):
        rows.append(audit_row(simulation, ShapedAudit(4, 800, name, weights), families))
    for weights in UNRELATED[1:]:
        setting = ShapedAudit(4, 800, "40% at 0.05", weights, own_weights=True)
        rows.append(audit_row(simulation, setting, families))
    return list_settings(
        "Other shapes: audits",
        "Audits of 800 rows in four segments that are all alike, of calibrated probabilities and "
        "with a threshold of 0.5: the share in which any adjusted p-value of a gap or of "
        "calibration is at most 0.05. "
        "In some, only the rows of one segment are weighted.",
        ("scores", "weights", "error"),
        rows,
        tell("gaps and calibration are one family, which errs in at most 5%"),
        "weights",
    )


def audit_row(simulation: Simulation, setting: ShapedAudit, families: Families) -> Row:
    """Return the error of audits of a setting."""
    print(setting, file=sys.stderr, flush=True)
    found = {
        result.quantity: result.measure
        for result in audit_findings(simulation.fewer(FEWER), setting, families)
    }
    weights = f"{setting.weights}, one segment" if setting.own_weights else setting.weights
    return (setting.scores, weights, found["any"].family_error)


PARTS: dict[str, Callable[[Simulation], list[Section]]] = {
    "aucs": auc_intervals,
    "auc-gaps": auc_gaps,
    "rates": rate_intervals,
    "rate-gaps": rate_gaps,
    "calibration": calibration,
    "pairs": pairs,
    "clusters": clusters,
    "audits": audits,
}


if __name__ == "__main__":
    main()
