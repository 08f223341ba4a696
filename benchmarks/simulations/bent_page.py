"""The page of what was measured where assumptions bend, before and after, failures first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version
from math import isnan
from pathlib import Path
from typing import Literal, TypeAlias

import polars as pl
from tables import Measure, Section, Table

Row: TypeAlias = dict[str, str | float | None]
When: TypeAlias = Literal["before", "after"]

KEYS = ("part", "design", "size", "target")
COLUMNS = (*KEYS, "quantity", "value", "error")
COVERAGE_LISTED, ERROR_LISTED = 0.92, 0.06
COVERAGE_COUNTED = 0.93
ENOUGH = 5
COMMAND = "python benchmarks/simulations/bent_assumptions.py"
INTRODUCTION = (
    "The intervals and tests of weighted rates, AUCs, gaps and whole audits, where what they rest "
    "on bends: weights that go with the outcome, few events, outlying positives, heavy tails, "
    "grades, mixtures, response classes, clusters that nobody declared. *Before* is the "
    "version whose weighted rates had Wilson's intervals on the smaller of Kish's effective size "
    "and that of the linearized variance, whose gaps of AUCs were tested by inverting the "
    "interval, and whose audits had one family of gaps and one of calibration; *after* is the "
    "version of now. Both see the same data. True values are exact or by quadrature. Each part "
    f"begins with the cells that fail after the change: a coverage below {COVERAGE_LISTED:g} or a "
    f"share of errors above {ERROR_LISTED:g}, with what users are told there. The nominal values "
    "are 0.95 and 0.05. Monte Carlo standard errors stand after ±.\n\n"
    "Weights are *lognormal* (sigma 0.8, unrelated to everything), *1 or 10* (21% of the rows "
    "weigh ten), *mixed* exp(0.35 z + 0.6 e), *rising* exp(0.6 z + 0.5 e) or *falling* "
    "exp(-0.6 z + 0.5 e), where z is the normal value that makes the score within a class, and e "
    "is noise. A *mixture* of events has 20% of rows that weigh eight times as much and differ in "
    "their rate. *Response classes* are five equal parts of a population of which 8 to 80% "
    "respond; a row weighs the size of its class divided by its respondents, and where they are "
    "*rising*, those that respond least have the most events. *Clusters* have eight rows if their "
    "common part, 30% of the variance, is above its mean, and else two."
)


def write_page(before: Path, after: Path, page: Path) -> None:
    """Compare the numbers of two versions, and write the page."""
    numbers = joined(read(before), read(after))
    versions = ", ".join(f"{name} {version(name)}" for name in ("polars-wroc", "polars"))
    commands = f"`{COMMAND} simulate {after.name}` and `{COMMAND} page {after.name}`"
    head = f"# Where assumptions bend\n\n{commands} with {versions}.\n\n{INTRODUCTION}"
    sections = [each for part in SECTIONS for each in part(numbers)]
    texts_of = [titled(level, section) for level, section in sections]
    page.write_text("\n\n".join([head, *texts_of]) + "\n", encoding="utf-8")


def titled(level: int, section: Section) -> str:
    """Show a section below a heading of a level, without its table if that is empty."""
    parts = [f"{'#' * level} {section.title}", section.text]
    return "\n\n".join([*parts, str(section.table)] if section.table.body else parts)


def read(path: Path) -> pl.DataFrame:
    """Read the numbers of a version."""
    texts = dict.fromkeys(COLUMNS[:5], pl.String())
    schema: dict[str, pl.DataType] = {**texts, "value": pl.Float64(), "error": pl.Float64()}
    return pl.read_csv(path, schema=schema).with_columns(pl.col(*KEYS).fill_null(""))


def joined(before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    """One row for each cell and quantity, in the order of the new numbers."""
    # The target of a detectable gap names the gap itself, which is another one before.
    gap = pl.col("part") == "detectable gaps"
    both = [
        frame.with_columns(
            pl.when(gap).then(pl.col("target").str.split(" - ").list[0]).otherwise("target")
        ).with_columns(detail=pl.when(gap).then(frame["target"]))
        for frame in (after, before)
    ]
    keys = [*KEYS, "quantity"]
    return both[0].join(both[1], keys, "left", suffix="_before", maintain_order="left")


# What each part shows


def rates(numbers: pl.DataFrame) -> list[tuple[int, Section]]:
    """Intervals of rates."""
    found = wide(numbers, "rates", "coverage", "width", "rarer rows")
    rows = found.with_columns(enough=pl.col("rarer rows") >= ENOUGH)
    failing = rows.filter(pl.col("coverage") < COVERAGE_LISTED).sort("coverage")
    body = [
        (
            *texts(row, "design", "size", "target"),
            f"{row['rarer rows']:.1f}",
            *both(row, "coverage"),
            told_of_rate(row),
        )
        for row in failing.to_dicts()
    ]
    header = ("weights", "rows", "true rate", "rarer rows", "before", "after", "users are told")
    return [
        part("Intervals of weighted rates", "rates", numbers),
        failures(header, body, rows["coverage_before"] < COVERAGE_LISTED),
        (3, Section("By weights", BY_WEIGHTS, Table(RATES_HEADER, rates_by_design(rows)))),
    ]


BY_WEIGHTS = (
    "Least coverage, cells below 0.93, the same where at least five rows of the rarer outcome are "
    "expected, and the mean ratio of the widths after and before; true rates of 0.03 to 0.93, 15 "
    "to 800 rows."
)
RATES_HEADER = (
    "weights",
    "least: before",
    "after",
    "below 0.93: before",
    "after",
    "five rows or more: before",
    "after",
    "below 0.93",
    "width",
)


def rates_by_design(rows: pl.DataFrame) -> list[tuple[str, ...]]:
    """Summarize the intervals of rates by design."""
    body = []
    for design, own in by_design(rows):
        enough = own.filter("enough")
        few = (enough["coverage"] < COVERAGE_COUNTED).sum()
        body.append(
            (
                design,
                *extremes(own, "coverage", largest=False),
                *(
                    f"{(own[name] < COVERAGE_COUNTED).sum()} of {own.height}"
                    for name in ("coverage_before", "coverage")
                ),
                *extremes(enough, "coverage", largest=False),
                f"{few} of {enough.height}",
                ratio_of_widths(own),
            )
        )
    return body


def told_of_rate(row: Row) -> str:
    """Say what users are told of an interval of a rate."""
    if str(row["design"]).startswith("clusters"):
        return "intervals without `design=` are for independent rows"
    if float(row["rarer rows"] or 0) < ENOUGH:
        return "below five rows of the rarer outcome it may be 0.77 to 0.92 (few effective events)"
    return "0.92 or more"


def rate_tests(numbers: pl.DataFrame) -> list[tuple[int, Section]]:
    """Tests of rates."""
    name = "tests of rates"
    told = "up to 7% where weights depend on the outcome and its rarer rows are few"
    power = Table(
        ("weights", "rows and rates", "before", "no p-value", "after"),
        [
            (
                *texts(row, "design", "size"),
                shown(row, "power", "before"),
                f"{row['no p-value_before']:.3f}",
                shown(row, "power", "after"),
            )
            for row in wide(numbers, name, "power", "no p-value").to_dicts()
        ],
    )
    gaps = Table(
        ("weights", "rows, rate", "gap: before", "power: before", "gap: after", "power: after"),
        [
            (
                *texts(row, "design", "size"),
                gap_of(row["detail_before"]),
                shown(row, "power at detectable", "before"),
                gap_of(row["detail"]),
                shown(row, "power at detectable", "after"),
            )
            for row in wide(numbers, "detectable gaps", "power at detectable").to_dicts()
        ],
    )
    return [
        part("Tests of weighted rates", name, numbers),
        failing_errors(numbers, name, told),
        errors_by_design(numbers, name),
        families(numbers, name),
        (3, Section("Power", "Share of p-values of at most 0.05.", power)),
        (3, Section("Detectable gaps", DETECTABLE, gaps)),
    ]


DETECTABLE = (
    "Power at the mean of the gap that is reported as detectable with a power of 0.8, at the level "
    "of one of the tests that are reported with it (those of rates that are the same rate here). "
    "There is none where the gap is larger than the rate, and with 30 rows before the change "
    "hardly a p-value."
)


def aucs(numbers: pl.DataFrame) -> list[tuple[int, Section]]:
    """Intervals of AUCs."""
    rows = wide(numbers, "AUCs", "coverage", "width")
    failing = rows.filter(pl.col("coverage") < COVERAGE_LISTED).sort("coverage")
    told = "0.92 or more, with related weights and very unequal spreads 0.89"
    body = [
        (*texts(row, "design", "size", "target"), *both(row, "coverage"), told)
        for row in failing.to_dicts()
    ]
    header = ("scores, weights", "sizes", "true AUC", "before", "after", "users are told")
    every = [
        (
            *texts(row, "design", "size", "target"),
            *both(row, "coverage"),
            f"{row['width_before']:.3f}",
            f"{row['width']:.3f}",
        )
        for row in rows.to_dicts()
    ]
    every_header = (*header[:3], "coverage: before", "after", "width: before", "after")
    text = "Sizes are positives/negatives. Outliers are positives below all negatives."
    return [
        part("Intervals of AUCs", "AUCs", numbers),
        failures(header, body, rows["coverage_before"] < COVERAGE_LISTED),
        (3, Section("All cells", text, Table(every_header, every))),
    ]


def auc_tests(numbers: pl.DataFrame) -> list[tuple[int, Section]]:
    """Tests of gaps of AUCs."""
    name = "tests of AUCs"
    rows = wide(numbers, name, "power").to_dicts()
    told = "up to 12% where tails differ and weights fall with the score; else at most 6%"
    power = Table(
        ("weights", "sizes and AUCs", "before", "after"),
        [
            (str(row["design"]).removeprefix("power, "), *texts(row, "size"), *both(row, "power"))
            for row in rows
        ],
    )
    return [
        part("Tests of gaps of AUCs", name, numbers),
        failing_errors(numbers, name, told),
        errors_by_design(numbers, name),
        families(numbers, name),
        (3, Section("Power", "Share of p-values of at most 0.05.", power)),
    ]


def audits(numbers: pl.DataFrame) -> list[tuple[int, Section]]:
    """Whole audits."""
    quantities = ("gaps", "calibration", "any")
    null = wide(numbers, "audits", *quantities)
    worse = [f"{name} of the worse" for name in quantities]
    found = wide(numbers, "audits", *worse)
    failing = [
        (*texts(row, "design", "size"), *both(row, "any"))
        for row in null.sort("any", descending=True).to_dicts()
        if float(row["any"]) > ERROR_LISTED
    ]
    header = ("audit", "size", *(f"{name}: {when}" for name in quantities for when in WHEN))
    tables = [
        Table(
            header,
            [
                (*texts(row, "design", "size"), *(x for name in names for x in both(row, name)))
                for row in rows.to_dicts()
            ],
        )
        for rows, names in ((null, quantities), (found, worse))
    ]
    pooled = [pooled_of(null, f"{name}{when}") for name in quantities for when in ("_before", "")]
    tables[0] = Table(header, [*tables[0].body, ("all of them", "", *pooled)])
    return [
        part("Whole audits", "audits", numbers),
        failures(("audit", "size", "before", "after"), failing, null["any_before"] > ERROR_LISTED),
        (3, Section("Segments that are all alike", NULL_AUDITS, tables[0])),
        (3, Section("One segment whose scores are too low", WORSE, tables[1])),
    ]


NULL_AUDITS = (
    "Share of audits with an adjusted p-value of at most 0.05, which makes a verdict *different*: "
    "of gaps of AUC and rates, of calibration, of any of them. *all of them* is the mean."
)
WORSE = "Share of audits in which this segment is found: by its gaps, its calibration, or either."
WHEN: tuple[When, ...] = ("before", "after")
SECTIONS: Sequence[Callable[[pl.DataFrame], list[tuple[int, Section]]]] = (
    rates,
    rate_tests,
    aucs,
    auc_tests,
    audits,
)


# Parts that several share


def part(title: str, name: str, numbers: pl.DataFrame) -> tuple[int, Section]:
    """The heading of a part."""
    cells = numbers.filter(part=name).select(KEYS[:3]).n_unique()
    return 2, Section(title, TEXTS[name].format(cells=cells), Table((), ()))


TEXTS = {
    "rates": (
        "`threshold_metrics` with a threshold and `level=0.95`, tpr of positives: {cells} designs "
        "and sizes, each at six true rates, 4,000 replicates."
    ),
    "tests of rates": (
        "`group_gaps` of two groups, one of which is the reference, or of more against the rest: "
        "{cells} cells, 2,000 replicates (power 3,000)."
    ),
    "AUCs": "`summary`: {cells} cells, 4,000 replicates.",
    "tests of AUCs": (
        "`group_gaps` of two groups or, in families, of five against a named sixth: {cells} cells, "
        "2,000 replicates (power 2,500)."
    ),
    "audits": (
        "`audit` with a threshold of 0.5, probabilities as scores, segments drawn at random and "
        "compared with the rest: {cells} cells, 200 to 300 audits each. Several replicates share a "
        "call as scores of their own, and Holm's method is applied to each; that this is what "
        "`audit` does for one score is checked at the start."
    ),
}


def failures(
    header: tuple[str, ...], body: Sequence[tuple[str, ...]], before: pl.Series
) -> tuple[int, Section]:
    """The cells that fail after the change, and how many failed before."""
    text = f"{len(body)} of {len(before)} cells, and {before.sum()} before."
    return 3, Section("What fails", text, Table(header if body else (), body))


def failing_errors(numbers: pl.DataFrame, name: str, told: str) -> tuple[int, Section]:
    """The tests that err too often after the change."""
    rows = errors_of(numbers, name)
    failing = rows.filter(pl.col("error rate") > ERROR_LISTED)
    body = [
        (*texts(row, "design", "size"), *both(row, "error rate"), told_of_error(row, told))
        for row in failing.sort("error rate", descending=True).to_dicts()
    ]
    header = ("design", "size and truth", "before", "after", "users are told")
    return failures(header, body, rows["error rate_before"] > ERROR_LISTED)


def told_of_error(row: Row, told: str) -> str:
    """Say what users are told of a test, by whether weights depend on the data."""
    related = ("rising", "falling", "mixed", "different curves, falling")
    value, error = (float(row[name] or 0) for name in ("error rate", "error rate ±"))
    if row["design"] not in related and value - 2 * error <= ERROR_LISTED:
        return "at most 6%, which is within two Monte Carlo errors"
    return told


def errors_by_design(numbers: pl.DataFrame, name: str) -> tuple[int, Section]:
    """The largest errors of tests of two groups."""
    body = []
    rows = errors_of(numbers, name).filter(quantity="error")
    for design, own in by_design(rows):
        above = (
            f"{(own[each] > ERROR_LISTED).sum()} of {own.height}"
            for each in ("error rate_before", "error rate")
        )
        missing = (
            f"{own[each].to_numpy().max():.2f}" for each in ("no p-value_before", "no p-value")
        )
        body.append((design, *extremes(own, "error rate", largest=True), *above, *missing))
    header = (
        "design",
        "highest: before",
        "after",
        "above 0.06: before",
        "after",
        "no p-value in up to: before",
        "after",
    )
    text = "Share of tests of two equal groups with a p-value of at most 0.05."
    return 3, Section("Errors of tests of two groups", text, Table(header, body))


def families(numbers: pl.DataFrame, name: str) -> tuple[int, Section]:
    """Errors of families."""
    rows = errors_of(numbers, name).filter(quantity="family error").to_dicts()
    body = [(*texts(row, "design", "size"), *both(row, "error rate")) for row in rows]
    text = "Share of families of equal groups with a p-value of at most 0.05 after Holm's method."
    return 3, Section("Families", text, Table(("design", "size and truth", *WHEN), body))


def errors_of(numbers: pl.DataFrame, part_name: str) -> pl.DataFrame:
    """Errors of tests and families, with the shares of tests without a p-value."""
    tables = []
    for kind in ("error", "family error"):
        table = wide(numbers, part_name, kind, "no p-value").with_columns(quantity=pl.lit(kind))
        renamed = {
            each: each.replace(kind, "error rate", 1)
            for each in table.columns
            if each.startswith(kind)
        }
        tables.append(table.rename(renamed))
    return pl.concat(tables)


def wide(numbers: pl.DataFrame, name: str, *quantities: str) -> pl.DataFrame:
    """One row for each cell, with columns of several quantities, where the first is known."""
    own = numbers.filter(part=name)
    rows = own.select(*KEYS, "detail", "detail_before").unique(KEYS, maintain_order=True)
    for quantity in quantities:
        names = {
            "value": quantity,
            "error": f"{quantity} ±",
            "value_before": f"{quantity}_before",
            "error_before": f"{quantity}_before ±",
        }
        values = own.filter(quantity=quantity).select(*KEYS, *names).rename(names)
        rows = rows.join(values, KEYS, "left", maintain_order="left")
    return rows.filter(pl.col(quantities[0]).is_not_null())


def by_design(rows: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    """The cells of each design."""
    designs = rows["design"].unique(maintain_order=True).to_list()
    return [(design, rows.filter(design=design)) for design in designs]


def texts(row: Row, *names: str) -> tuple[str, ...]:
    """The names of a cell."""
    return tuple(str(row[name]).removesuffix(", ") for name in names)


def shown(row: Row, quantity: str, when: When) -> str:
    """Show a quantity with its Monte Carlo error."""
    name = f"{quantity}_before" if when == "before" else quantity
    value, error = row[name], row[f"{name} ±"]
    if not isinstance(value, float) or not isinstance(error, float) or isnan(value):
        return ""
    return str(Measure(value, error))


def both(row: Row, quantity: str) -> tuple[str, str]:
    """Show a quantity before and after."""
    return shown(row, quantity, "before"), shown(row, quantity, "after")


def extremes(rows: pl.DataFrame, quantity: str, *, largest: bool) -> tuple[str, str]:
    """Show the largest or the least of a quantity, before and after."""
    found = []
    for when, name in zip(WHEN, (f"{quantity}_before", quantity), strict=True):
        known = rows.filter(pl.col(name).is_not_null()).sort(name, descending=largest)
        found.append(shown(known.row(0, named=True), quantity, when) if known.height else "")
    return found[0], found[1]


def pooled_of(rows: pl.DataFrame, name: str) -> str:
    """Show the mean of cells with its Monte Carlo error."""
    values, errors = rows[name].to_numpy(), rows[f"{name} ±"].to_numpy()
    return str(Measure(float(values.mean()), float((errors**2).sum() ** 0.5 / len(errors))))


def gap_of(detail: object) -> str:
    """Return the gap of a text that also has the rate."""
    return str(detail or "").split(" - ")[-1]


def ratio_of_widths(rows: pl.DataFrame) -> str:
    """Show the mean ratio of widths."""
    ratio = (rows["width"] / rows["width_before"]).mean()
    return f"{ratio:.2f}" if isinstance(ratio, float) else ""
