"""The page of what was measured where assumptions bend."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import isnan
from pathlib import Path
from typing import TypeAlias

import polars as pl
from tables import Cell, Check, Measure, Section, Table, write_page

Row: TypeAlias = Mapping[str, Measure]
Names: TypeAlias = tuple[str, str, str]

KEYS = ("part", "design", "size", "target")
COLUMNS = (*KEYS, "quantity", "value", "error")
# So many rows of the rarer outcome are expected where intervals of rates keep their level.
ENOUGH = 5
ABOUT = (
    "Intervals and tests of weighted rates, AUCs, gaps and whole audits are simulated where the "
    "assumptions behind them bend: weights that depend on the outcome, few events, outlying "
    "positives, heavy tails, grades, mixtures, response classes, and clusters that were not "
    "declared. True values are exact or computed by quadrature. Most settings hold; the others "
    "have weights that depend on the data and few rows that decide, or undeclared clusters."
)
WEIGHTS = (
    "## How data are drawn\n\nWeights are *lognormal* (sigma 0.8, unrelated to everything), *1 or "
    "10* (21% of the rows weigh ten), *mixed* exp(0.35 z + 0.6 e), *rising* exp(0.6 z + 0.5 e) or "
    "*falling* exp(-0.6 z + 0.5 e), where z is the normal value that makes the score within a "
    "class, and e is noise. In a *mixture* of events, 20% of the rows weigh eight times as much "
    "and have another rate. *Response classes* are five equal parts of a population, of which 8% "
    "to 80% respond; a row weighs the size of its class divided by its respondents. Where they "
    "are *rising*, the classes that respond least have the most events. *Clusters* have eight "
    "rows if their common part, 30% of the variance, is above its mean, and two otherwise."
)
NO_DESIGN = "rows are taken as independent without `design=`"
TOLD_OF_TESTS = {
    "tests of rates": "up to 7% where weights depend on the outcome and its rarer rows are few",
    "tests of AUCs": "up to 7% where tails differ and weights fall with the score, else 6%",
}


def make_page(path: Path, seed: int, versions: str) -> None:
    """Write the page of the numbers in a file."""
    numbers = pl.read_csv(path, schema_overrides=dict.fromkeys(COLUMNS[:5], pl.String))
    numbers = numbers.with_columns(pl.col(*KEYS).fill_null(""))
    command = "python benchmarks/simulations/bent_assumptions.py"
    write_page(
        "bent_assumptions",
        "Where assumptions bend",
        ABOUT,
        f"`{command} simulate numbers.csv --seed {seed}`, then `{command} page numbers.csv --seed "
        f"{seed}`, with {versions}. Intervals of rates and AUCs and tests of rates have 4,000 "
        "replicates per setting (Monte Carlo standard error 0.003 at 0.05 or 0.95), tests of AUCs "
        "500 (0.010), and audits 200 (0.015).",
        [
            *rates(numbers),
            *tests(numbers, "tests of rates", "Tests of weighted rates"),
            *detectable_gaps(numbers),
            *aucs(numbers),
            *tests(numbers, "tests of AUCs", "Tests of gaps of AUCs"),
            *audits(numbers),
        ],
        WEIGHTS,
    )


def cells_of(numbers: pl.DataFrame, part: str) -> dict[Names, dict[str, Measure]]:
    """Return the quantities of each cell of a part, by design, size and target."""
    cells: dict[Names, dict[str, Measure]] = {}
    for row in numbers.filter(part=part).iter_rows(named=True):
        size = row["size"].removesuffix(", ")
        own = cells.setdefault((row["design"], size, row["target"]), {})
        own[row["quantity"]] = Measure(row["value"], row["error"])
    return cells


def rates(numbers: pl.DataFrame) -> list[Section]:
    """Intervals of rates."""
    cells = cells_of(numbers, "rates")
    rows = {
        names: (*names, f"{measures['rarer rows'].value:.1f}", measures["coverage"].coverage)
        for names, measures in cells.items()
    }
    summary: list[tuple[Cell, ...]] = []
    for design, own in by_design(cells):
        enough = [measures for measures in own if measures["rarer rows"].value >= ENOUGH]
        summary.append((design, *least(own), *least(enough)))
    return [
        listed(
            "Intervals of weighted rates",
            "`threshold_metrics` with a threshold, tpr of positives: settings that fail, of 49 "
            "designs and sizes at six true rates each. *Rarer rows* is the expected number of rows "
            "of the rarer outcome.",
            ("weights", "rows", "true rate", "rarer rows", "coverage"),
            rows.values(),
            state_promise_for_rates,
            settings=4,
        ),
        Section(
            "Intervals of weighted rates, by weights",
            "The least coverage and the number of settings below 0.93, for all settings and for "
            f"those in which at least {ENOUGH} rows of the rarer outcome are expected; true rates "
            "of 0.03 to 0.93 and 15 to 800 rows.",
            Table(
                ("weights", "least", "below 0.93", f"least, {ENOUGH} rows or more", "below 0.93"),
                summary,
            ),
        ),
    ]


def least(cells: list[dict[str, Measure]]) -> tuple[str, str]:
    """Show the least coverage, and how many are below the limit."""
    checks = [measures["coverage"].coverage for measures in cells]
    below = sum(check.excess > 0 for check in checks)
    return str(max(checks, key=lambda check: check.excess)), f"{below} of {len(checks)}"


def state_promise_for_rates(setting: Mapping[str, str], _: str) -> str:
    """Return what the documentation promises for an interval of a rate."""
    return NO_DESIGN if setting["weights"].startswith("clusters") else "92% or more"


def tests(numbers: pl.DataFrame, part: str, title: str) -> list[Section]:
    """Errors of tests of two groups and of families, and their power."""
    cells = cells_of(numbers, part)
    errors = {
        names: measures[kind]
        for names, measures in cells.items()
        for kind in ("error", "family error")
        if kind in measures
    }
    rows = [(*names[:2], error.family_error) for names, error in errors.items()]
    two = {names: measures for names, measures in cells.items() if "error" in measures}
    summary = []
    for design, own in by_design(two):
        checks = [measures["error"].family_error for measures in own]
        above = sum(check.excess > 0 for check in checks)
        missing = max(measures["no p-value"].value for measures in own)
        highest = max(checks, key=lambda check: check.excess)
        summary.append((design, str(highest), f"{above} of {len(checks)}", f"{missing:.2f}"))
    families = [
        (*names[:2], str(measures["family error"].family_error))
        for names, measures in cells.items()
        if "family error" in measures
    ]
    power = [
        (names[0].removeprefix("power, "), names[1], str(measures["power"]))
        for names, measures in cells.items()
        if "power" in measures
    ]
    header = ("design", "size and truth", "error")
    return [
        listed(
            title,
            "`group_gaps` of two equal groups, one of which is the reference, or of several equal "
            "groups after Holm's method: settings that fail.",
            header,
            rows,
            lambda *_: TOLD_OF_TESTS[part],
            settings=2,
        ),
        Section(
            f"{title}, two groups",
            "The highest share of p-values of at most 0.05, the number of settings above 0.06, and "
            "the largest share of samples without a p-value.",
            Table(("design", "highest error", "above 0.06", "no p-value"), summary),
        ),
        Section(
            f"{title}, families",
            "The share of families of equal groups in which any p-value is at most 0.05 after "
            "Holm's method.",
            Table(header, families),
        ),
        Section(
            f"{title}, power",
            "The share of p-values of at most 0.05 where the groups differ.",
            Table(("design", "size and truth", "power"), power),
        ),
    ]


def detectable_gaps(numbers: pl.DataFrame) -> list[Section]:
    """Power at the gap that is reported as detectable."""
    body = []
    for (design, size, target), measures in cells_of(numbers, "detectable gaps").items():
        power = measures["power at detectable"]
        power_text = "-" if isnan(power.value) else str(power)
        body.append((design, size, target.split(" - ")[-1], power_text))
    return [
        Section(
            "Detectable gaps",
            "The mean of the gap that `group_gaps` reports as detectable with a power of 0.8, and "
            "the power of a single test where the true gap is that large.",
            Table(("weights", "rows, rate", "detectable gap", "power"), body),
        )
    ]


def aucs(numbers: pl.DataFrame) -> list[Section]:
    """Intervals of AUCs."""
    rows = [
        (*names, measures["coverage"].coverage, f"{measures['width'].value:.3f}")
        for names, measures in cells_of(numbers, "AUCs").items()
    ]
    header = ("scores, weights", "positives/negatives", "true AUC", "coverage", "mean width")
    return [
        Section(
            "Intervals of AUCs",
            "Coverage of the intervals of `summary`. Outliers are positives below all negatives.",
            Table(header, rows).failing_first(),
            settings=3,
            promise="92% or more; where weights depend on the score, 80% to 90%",
        )
    ]


def audits(numbers: pl.DataFrame) -> list[Section]:
    """Whole audits."""
    quantities = ("gaps", "calibration", "any")
    cells = cells_of(numbers, "audits")
    null: list[tuple[Cell, ...]] = []
    worse: list[tuple[Cell, ...]] = []
    for names, measures in cells.items():
        if "any" in measures:
            null.append((*names[:2], *(measures[each].family_error for each in quantities)))
        else:
            worse.append(
                (*names[:2], *(str(measures[f"{each} of the worse"]) for each in quantities))
            )
    every = [measures["any"] for measures in cells.values() if "any" in measures]
    if every:
        error = sum(each.error**2 for each in every) ** 0.5 / len(every)
        pooled = Measure(sum(each.value for each in every) / len(every), error)
        null.append(("mean of all", "", "", "", str(pooled)))
    header = ("audit", "size", *quantities)
    return [
        Section(
            "Audits of segments that are all alike",
            "`audit` with a threshold of 0.5, probabilities as scores, and segments drawn at "
            "random that are compared with the rest: the share of audits with an adjusted p-value "
            "of at most 0.05 among gaps of AUC and rates, among tests of calibration, or among "
            "all. Several replicates share a call as scores of their own, and Holm's method is "
            "applied to each; that `audit` does the same for one score is checked at the start.",
            Table(header, null),
            settings=2,
            promise="gaps and calibration are one family, which errs in at most 5%",
        ),
        Section(
            "Audits with one segment whose scores are too low",
            "The share of audits in which this segment is found: by its gaps, its calibration, or "
            "either.",
            Table(header, worse),
        ),
    ]


def listed(
    title: str,
    text: str,
    header: tuple[str, ...],
    rows: Iterable[tuple[Cell, ...]],
    promise: Callable[[Mapping[str, str], str], str],
    settings: int,
) -> Section:
    """List rows whose last cell fails, worst first; the others count all the same."""
    checked = [(row, row[-1]) for row in rows]
    failing = [(row, check) for row, check in checked if isinstance(check, Check) and check.fails]
    failing.sort(key=lambda each: -each[1].excess)
    others = [row for row, check in checked if not (isinstance(check, Check) and check.fails)]
    body = [row for row, _ in failing] or [("none", *[""] * (len(header) - 1))]
    return Section(title, text, Table(header, body), settings, promise, others)


def by_design(
    cells: Mapping[Names, dict[str, Measure]],
) -> list[tuple[str, list[dict[str, Measure]]]]:
    """Group cells by their design."""
    designs = dict.fromkeys(names[0] for names in cells)
    return [
        (design, [measures for names, measures in cells.items() if names[0] == design])
        for design in designs
    ]
