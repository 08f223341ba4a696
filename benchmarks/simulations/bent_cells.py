"""What is measured where assumptions bend: the cells of each part, and how one is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import NamedTuple, TypeAlias
from zlib import crc32

import numpy as np
import polars as pl
from bent_designs import (
    TILTS,
    Classes,
    EventGroups,
    Events,
    Groups,
    InformativeClusters,
    Part,
    Scores,
    Shape,
    Stratum,
    Tilt,
    response_classes,
    with_auc,
)
from designs import Setting
from simulation import (
    REPEATED,
    REPLICATE,
    SEGMENT,
    THRESHOLD,
    Simulation,
    family_error,
    gaps,
    rate_tests,
)
from tables import SIGNIFICANCE, Measure, coverage, mean, share

import polars_wroc as wroc

RATES = (0.03, 0.1, 0.25, 0.5, 0.75, 0.93)
ROWS = (15, 25, 60, 200, 800)
STRATA = {
    "mixture, events heavy": (Stratum(0.8, 1.0, 0.0), Stratum(0.2, 8.0, 0.8)),
    "mixture, events light": (Stratum(0.8, 1.0, 0.8), Stratum(0.2, 8.0, 0.0)),
}
CLASSES = {"response classes, rising": 0.5, "response classes, falling": -0.5}
PAIRS = ((15, 15), (30, 30), (20, 400), (80, 80), (300, 300), (100, 1900))
SMALL = Tilt(noise=0.7)
# With the columns that are needed of the many of a table of gaps.
GAPS = (REPLICATE, SEGMENT, "metric", "gap", "p_value", "number", "detectable", REPEATED)
# The mean detectable gap needs fewer replicates than its power.
DETECTABLE_TIMES = 20
NAMED_SIZES = ((60, 180), (30, 300), (100, 100))

Estimate: TypeAlias = Callable[[Simulation], Iterator["Result"]]


class Result(NamedTuple):
    """A quantity with its Monte Carlo error, for a true rate, AUC, or pair of these."""

    target: str
    quantity: str
    measure: Measure


@dataclass(frozen=True)
class Cell:
    """What is measured with random numbers of its own."""

    part: str
    design: str
    size: str
    estimate: Estimate
    replicates: int = 4_000

    def results(self, seed: int, times: float) -> list[tuple[str, ...]]:
        """Measure, and return texts for a table; there are ``times`` as many replicates."""
        names = (self.part, self.design, self.size)
        random = np.random.default_rng([seed, crc32(" ".join(names).encode())])
        simulation = Simulation(max(int(self.replicates * times), 2), random)
        return [
            (*names, target, quantity, f"{measure.value:.4f}", f"{measure.error:.4f}")
            for target, quantity, measure in self.estimate(simulation)
        ]


# Intervals of rates


def rate_intervals(
    simulation: Simulation, setting: Events | InformativeClusters, rates: Sequence[float]
) -> Iterator[Result]:
    """Coverage and width of intervals of several rates, in the same rows."""
    limits = {rate: setting.limit(rate) for rate in rates}

    def estimate(frame: pl.DataFrame) -> pl.DataFrame:
        return wroc.threshold_metrics(
            frame,
            "label",
            "score",
            threshold=list(limits.values()),
            metrics=["tpr"],
            weight="weight",
            by=REPLICATE,
        ).select("threshold", "tpr_low", "tpr_high")

    estimates = simulation.run(setting, estimate)
    for rate, limit in limits.items():
        own = estimates.filter(threshold=limit)
        yield Result(f"{rate:g}", "coverage", coverage(own, rate, "tpr_low", "tpr_high"))
        yield Result(f"{rate:g}", "width", mean((own["tpr_high"] - own["tpr_low"]).to_numpy()))
        yield Result(f"{rate:g}", "rarer rows", Measure(setting.rarer(limit), 0.0))


def rate_cells() -> Iterator[Cell]:
    """Intervals of rates: designs of weights, mixtures, response classes and clusters."""
    designs: dict[str, tuple[Tilt, Sequence[Stratum], bool]] = {
        name: (tilt, (Stratum(1.0),), False) for name, tilt in TILTS.items()
    }
    designs |= {name: (TILTS["none"], strata, False) for name, strata in STRATA.items()}
    designs |= {
        name: (TILTS["none"], response_classes(lean), True) for name, lean in CLASSES.items()
    }
    for (name, (tilt, strata, counted)), rows in product(designs.items(), ROWS):
        # Of few rows a response class has none.
        if counted and rows < ROWS[2]:
            continue
        setting = Events(rows, tilt, strata, counted)
        estimate = partial(rate_intervals, setting=setting, rates=RATES)
        yield Cell("rates", name, str(rows), estimate, 4_000)
    for clusters in (12, 40, 160):
        clustered = InformativeClusters(clusters)
        estimate = partial(rate_intervals, setting=clustered, rates=RATES)
        yield Cell("rates", "clusters, not declared", str(clustered.rows), estimate, 4_000)


# Tests of rates


def tests(
    simulation: Simulation,
    setting: Setting,
    reference: str,
    metric: str,
    target: str,
    quantity: str,
) -> Iterator[Result]:
    """Share of tests of two groups, or of families of tests of more, that find a difference."""
    if metric == "auc":
        estimates = compared(simulation, setting, reference, metric)
        estimates = estimates.filter(pl.col("gap").is_not_null(), ~pl.col(REPEATED))
    else:
        estimates = simulation.run(setting, partial(rate_tests, reference=reference))
    if quantity == "family error":
        yield Result(target, quantity, family_error(estimates, metric))
    else:
        yield Result(target, quantity, share(estimates["p_value"] <= SIGNIFICANCE))
    yield Result(target, "no p-value", share(estimates["p_value"].is_null()))


def power_at_detectable(simulation: Simulation, groups: Sequence[Events], rate: float) -> Result:
    """Power of a single test at the mean of the gap that is reported as detectable."""
    equal = compared(
        simulation.fewer(DETECTABLE_TIMES), EventGroups(groups, (rate, rate)), "1", "tpr"
    )
    gap = mean(equal["detectable"].drop_nulls().to_numpy())
    target = f"{rate:g} - {gap.value:.3f}"
    if not gap.value < rate:
        return Result(target, "power at detectable", Measure(np.nan, np.nan))
    lower = EventGroups(groups, (rate - gap.value, rate))
    estimates = simulation.run(lower, partial(rate_tests, reference="1"))
    return Result(target, "power at detectable", share(estimates["p_value"] <= SIGNIFICANCE))


def compared(simulation: Simulation, setting: Setting, reference: str, metric: str) -> pl.DataFrame:
    """Compare the groups of each replicate, by one metric."""
    threshold = None if metric == "auc" else THRESHOLD

    def estimate(frame: pl.DataFrame) -> pl.DataFrame:
        return gaps(frame, reference, threshold=threshold, metrics=[metric]).select(GAPS)

    return simulation.run(setting, estimate)


def rate_test_cells() -> Iterator[Cell]:
    """Tests of rates: level, power and families."""
    yield from rate_level_cells()
    for name, tilt in {"none": TILTS["none"], "lognormal (0.7)": SMALL}.items():
        for rows, rates in product((30, 40, 80, 150), ((0.2, 0.05), (0.97, 0.85), (0.9, 0.7))):
            groups = EventGroups([Events(rows, tilt)] * 2, rates)
            yield rate_test_cell(name, f"{rows}/{rows}", groups, "power", 6_000)
    kinds = {name: Events(75, TILTS[name]) for name in ("lognormal", "rising", "falling")}
    kinds |= {name: Events(75, strata=strata) for name, strata in STRATA.items()}
    for (name, group), count, rate in product(kinds.items(), (3, 20, 30), (0.05, 0.15, 0.4)):
        # Large families take long: own designs are measured once, and the largest of one kind.
        if (count, rate) == (20, 0.15) or (name == "rising" and (count < 30 or rate == 0.4)):
            groups = EventGroups([group] * count, (rate,) * count)
            size = f"{count} groups of 75"
            yield rate_test_cell(name, size, groups, "family error", 4_000, "rest")
    sizes = ((80, 80), (30, 150), (80, 400), (30, 600))
    for name, pair, rate in product(("none", "lognormal", "falling"), sizes, (0.5, 0.9)):
        each = [Events(n, TILTS[name]) for n in pair]
        yield Cell(
            "detectable gaps", name, f"{join_numbers(pair)}, {rate:g}", detectable(each, rate)
        )


def rate_level_cells() -> Iterator[Cell]:
    """Tests of equal rates."""
    for (name, tilt), size, rate in product(TILTS.items(), PAIRS, (0.02, 0.1, 0.3, 0.9)):
        # The largest take long.
        if size == PAIRS[-1] and (rate != RATES[1] or name in {"none", "mixed", "1 or 10"}):
            continue
        groups = EventGroups([Events(rows, tilt) for rows in size], (rate, rate))
        yield rate_test_cell(name, join_numbers(size), groups, "error")
    for (name, lean), size, rate in product(
        CLASSES.items(), ((60, 60), (60, 300)), (0.05, 0.3, 0.9)
    ):
        each = [Events(rows, strata=response_classes(lean), counted=True) for rows in size]
        yield rate_test_cell(name, join_numbers(size), EventGroups(each, (rate, rate)), "error")
    for (name, strata), size, rate in product(
        STRATA.items(), ((40, 40), (40, 160)), (0.05, 0.3, 0.9)
    ):
        each = [Events(rows, strata=strata) for rows in size]
        yield rate_test_cell(name, join_numbers(size), EventGroups(each, (rate, rate)), "error")


def rate_test_cell(
    name: str,
    size: str,
    groups: EventGroups,
    quantity: str,
    replicates: int = 4_000,
    reference: str = "1",
) -> Cell:
    """Return a cell of tests of rates."""
    target = "/".join(f"{rate:g}" for rate in dict.fromkeys(groups.rates))
    estimate = partial(
        tests,
        setting=groups,
        reference=reference,
        metric="tpr",
        target=target,
        quantity=quantity,
    )
    return Cell("tests of rates", name, f"{size}, {target}", estimate, replicates)


def detectable(groups: Sequence[Events], rate: float) -> Estimate:
    """Measure the power at the detectable gap."""

    def estimate(simulation: Simulation) -> Iterator[Result]:
        yield power_at_detectable(simulation, groups, rate)

    return estimate


# AUCs


def auc_interval(simulation: Simulation, setting: Classes) -> Iterator[Result]:
    """Coverage and width of the interval of an AUC."""

    def estimate(frame: pl.DataFrame) -> pl.DataFrame:
        table = wroc.summary(frame, "label", "score", weight="weight", by=REPLICATE)
        return table.select("auc", "auc_low", "auc_high")

    estimates = simulation.run(setting, estimate)
    target = f"{setting.auc:.3f}"
    yield Result(target, "coverage", coverage(estimates, setting.auc))
    widths = (estimates["auc_high"] - estimates["auc_low"]).drop_nulls()
    yield Result(target, "width", mean(widths.to_numpy()))


def auc_cells() -> Iterator[Cell]:
    """Intervals of AUCs: outliers, heavy tails, ordinary scores, grades, mixtures, classes."""
    outlying = ((0.05, (30, 300)), (0.02, (50, 500)), (0.05, (50, 500)), (0.1, (20, 100)))
    for (part, size), tilt in product(
        (*outlying, (0.02, (200, 1000))), ("none", "lognormal", "falling")
    ):
        yield auc_cell(f"{part:.0%} outliers, {tilt}", classes_of(size, 0.95, tilt, outliers=part))
    for auc, size, tilt in product((0.8, 0.95), ((30, 300), (100, 100)), TILTS):
        yield auc_cell(f"t(2) {auc:g}, {tilt}", classes_of(size, auc, tilt, "t(2)"))
    shapes: tuple[Shape, ...] = ("normal", "exponential")
    for shape, auc, size in product(shapes, (0.7, 0.9, 0.97, 0.99), ((20, 60), (100, 300))):
        yield auc_cell(f"{shape} {auc:g}, none", classes_of(size, auc, "none", shape))
    for size, tilt in product(((30, 120), (100, 400)), ("none", "lognormal", "falling", "rising")):
        for name, (positives, negatives) in OWN_SCORES.items():
            setting = Classes(*size, positives, negatives, TILTS[tilt])
            yield auc_cell(f"{name}, {tilt}", setting)
    for size, (name, lean) in product(((60, 180), (150, 450)), CLASSES.items()):
        parts = [Part(share, shift, 1.0, weight) for share, weight, shift in response_classes(lean)]
        raised = [part._replace(location=part.location + 1.8) for part in parts]
        setting = Classes(*size, Scores(parts=raised), Scores(parts=parts), counted=True)
        yield auc_cell(f"{name}, normal", setting)
    far = Scores(parts=(Part(1.0, 2.5, 2.0),))
    for size, tilt in product(((24, 72), (100, 300)), ("falling", "lognormal")):
        yield auc_cell(f"spread 2 against 1, {tilt}", Classes(*size, far, tilt=TILTS[tilt]))


# Scores of positives and of negatives.
_GRADES = (-0.5, 0.3, 1.1, 1.9)
OWN_SCORES: dict[str, tuple[Scores, Scores]] = {
    "five grades": (Scores(parts=(Part(1.0, 1.5),), points=_GRADES), Scores(points=_GRADES)),
    "five grades, 5% outliers": (
        Scores(parts=(Part(0.95, 2.2), Part(0.05, -9.0)), points=_GRADES),
        Scores(points=_GRADES),
    ),
    "mixture of positives": (Scores(parts=(Part(0.7, 3.5, 0.7), Part(0.3, 0.0))), Scores()),
    "mixture of both": (
        Scores(parts=(Part(0.85, 3.0), Part(0.15, -1.0))),
        Scores(parts=(Part(0.9, 0.0), Part(0.1, 4.0))),
    ),
}


def auc_cell(name: str, setting: Classes) -> Cell:
    """Return a cell of intervals."""
    size = f"{setting.n_pos}/{setting.n_neg}"
    return Cell("AUCs", name, size, partial(auc_interval, setting=setting), 4_000)


def auc_test_cells() -> Iterator[Cell]:
    """Tests of gaps of AUCs: equal curves, different ones of one AUC, outliers, families, power."""
    sizes = (*((size, size) for size in NAMED_SIZES), ((8, 40), (100, 500)))
    shapes: tuple[Shape, ...] = ("normal", "t(2)", "exponential")
    tilts = ("none", "falling", "rising")
    for shape, pair, tilt in product(shapes, sizes, tilts):
        # Of lower AUCs one kind, where tails matter least.
        auc = 0.75 if shape == "exponential" else 0.92
        groups = [classes_of(size, auc, tilt, shape) for size in pair]
        yield auc_tests(f"equal curves, {tilt}", f"{shape} {auc:g}", groups, "error")
    crossed = tuple(zip(shapes, (*shapes[1:], shapes[0]), strict=True))
    each = ((20, 60), (60, 180), (150, 450))
    sizes = (*((size, size) for size in each), ((8, 160), (200, 600)))
    tilts = ("none", "lognormal", "falling")
    for kinds, pair, tilt in product(crossed, sizes, tilts):
        auc = 0.92
        both = zip(pair, kinds, strict=True)
        groups = [classes_of(size, auc, tilt, shape) for size, shape in both]
        target = f"{' / '.join(kinds)} {auc:g}"
        yield auc_tests(f"different curves, {tilt}", target, groups, "error")
    for part, size in product((0.02, 0.05, 0.1), ((30, 300), (60, 180), (40, 400))):
        groups = [classes_of(size, 0.95, "none", outliers=part)] * 2
        yield auc_tests("outliers", f"{part:.0%}", groups, "error")
    yield from auc_family_cells()
    for aucs, n, tilt in product(
        ((0.75, 0.88), (0.9, 0.97), (0.95, 0.99)), (20, 60, 150), ("none", "lognormal", "falling")
    ):
        groups = [classes_of((n, 3 * n), auc, tilt) for auc in aucs]
        yield auc_tests(f"power, {tilt}", join_numbers(aucs), groups, "power", 625)


def classes_of(
    size: tuple[int, int], auc: float, tilt: str, shape: Shape = "normal", outliers: float = 0.0
) -> Classes:
    """Two classes of one shape with a true AUC, that without the outliers."""
    return Classes(*size, *with_auc(auc, shape, TILTS[tilt], outliers), TILTS[tilt])


def auc_family_cells() -> Iterator[Cell]:
    """Tests of five groups against a named one."""
    size = (40, 400)
    mixture = Classes(*size, *OWN_SCORES["mixture of both"], TILTS["lognormal"])
    families = {
        "t(2) 0.92, falling": classes_of(size, 0.92, "falling", "t(2)"),
        "5% outliers": classes_of(size, 0.95, "none", outliers=0.05),
        "2% outliers": classes_of(size, 0.95, "none", outliers=0.02),
        "five grades, 5% outliers": Classes(*size, *OWN_SCORES["five grades, 5% outliers"]),
        "mixture of both, lognormal": mixture,
    }
    for name, group in families.items():
        yield auc_tests(f"six groups, {name}", "", [group] * 6, "family error")


def auc_tests(
    name: str, target: str, groups: Sequence[Classes], quantity: str, replicates: int = 500
) -> Cell:
    """Return a cell of tests of AUCs, with the last group as the reference."""
    sizes = dict.fromkeys(f"{group.n_pos}/{group.n_neg}" for group in groups)
    estimate = partial(
        tests,
        setting=Groups(groups),
        reference=str(len(groups) - 1),
        metric="auc",
        target=target,
        quantity=quantity,
    )
    return Cell("tests of AUCs", name, f"{' v '.join(sizes)}, {target}", estimate, replicates)


def join_numbers(numbers: Sequence[float]) -> str:
    """Show numbers with strokes between."""
    return "/".join(f"{number:g}" for number in numbers)
