"""Comparisons with the group that was picked as the highest or the best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl
from designs import Groups
from scipy import special
from simulation import REPEATED, REPLICATE, SEGMENT, Simulation, gaps, highest, with_holm
from tables import SIGNIFICANCE, Cell, Measure, Section, Table, share


@dataclass(frozen=True)
class EqualRates:
    """Groups of these sizes with one rate of selection, but for the first, which has its own."""

    sizes: tuple[int, ...]
    rate: float
    of_first: float

    @property
    def rows(self) -> int:
        """Rows of a replicate."""
        return sum(self.sizes)

    def draw(self, random: np.random.Generator, replicates: int) -> pl.DataFrame:
        """Draw replicates, one below the other."""
        segment = np.tile(np.repeat(np.arange(len(self.sizes)), self.sizes), replicates)
        rate = np.where(segment == 0, self.of_first, self.rate)
        selected = random.random(len(segment)) < rate
        return pl.DataFrame(
            {
                "replicate": np.repeat(np.arange(replicates), self.rows),
                "segment": segment,
                "label": selected,
                "score": selected.astype(np.float64),
                "weight": 1.0,
            }
        )


# Sizes of groups, their rate, and the one of a group that is truly lower.
RATES = (
    ((150,) * 3, 0.5, 0.3),
    ((150,) * 5, 0.1, 0.02),
    ((40,) * 12, 0.5, 0.15),
    ((400,) * 20, 0.9, 0.82),
    ((60, 90, 120, 150, 200, 260, 340, 700), 0.3, 0.12),
)
# Groups of positives and negatives with one AUC.
AUCS = (((25, 75),) * 12, 0.75), (((15, 45), (20, 60), (30, 120), (40, 160), (80, 240)), 0.85)


def picked_references(simulation: Simulation) -> Section:
    """Family errors of comparisons with the highest, and how often a truly low group is found."""
    body: list[tuple[Cell, ...]] = []
    for sizes, rate, low in RATES:
        equal, unequal = EqualRates(sizes, rate, rate), EqualRates(sizes, rate, low)
        errors, tests = (_ways(simulation.run(each, highest)) for each in (equal, unequal))
        cells = [str(len(sizes)), _span(sizes), f"rate {rate:g}, low {low:g}"]
        body.append((*cells, *(_some(each).family_error for each in errors), *_of_low(tests)))
    for pairs, auc in AUCS:
        setting = Groups(pairs, auc, "unit", "unequal")
        found_gaps = simulation.run(setting, partial(gaps, reference="best", metrics=["auc"]))
        measure = _some(_adjusted(found_gaps)).family_error
        cells = [str(len(pairs)), _span([sum(each) for each in pairs]), f"AUC {auc:g}"]
        body.append((*cells, "-", measure, *["-"] * 4))
    return Section(
        "References that are picked",
        "Groups are compared with the one that has the highest rate (`impact_ratios`) or AUC "
        '(`reference="best"`), and p-values are adjusted by Holm\'s method. *All equal*: share of '
        "replicates in which any group is called different. *Found*: share in which the first "
        "group, which is truly lower, is called different; *wrongly*: share in which another one "
        "is. *Plain*: with the p-value of two groups; *picked*: with that of the library, which "
        "allows for the choice. Scores with equal AUCs are exponential.",
        Table(
            (
                *("groups", "rows of each", "design", "all equal: plain", "all equal: picked"),
                *("found: plain", "found: picked", "wrongly: plain", "wrongly: picked"),
            ),
            body,
        ),
        settings=3,
        promise=_state_promise,
    )


def _state_promise(_: Mapping[str, str], column: str) -> str:
    """Return what the documentation promises for comparisons with a picked reference."""
    if column.endswith("plain"):
        return "for comparison only: the library allows for the choice"
    return "errs in at most 5.5%"


def _span(sizes: tuple[int, ...] | list[int]) -> str:
    return f"{min(sizes)}" if min(sizes) == max(sizes) else f"{min(sizes)} to {max(sizes)}"


def _ways(table: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Adjust p-values of two groups, by their pooled variance, and those of the library."""
    size, other = pl.col("n"), pl.col("n_reference")
    rate = (pl.col("value") * size + pl.col("reference_value") * other) / (size + other)
    error = (rate * (1 - rate) * (1 / size + 1 / other)).sqrt()
    z = (pl.col("value") - pl.col("reference_value")).abs() / error
    plain = 2 * (-z).map_batches(special.ndtr, pl.Float64)
    # The rates are in one row of a segment, and the test of their ratio is in the next.
    of_segment = ["chunk", REPLICATE, SEGMENT]
    rates = table.filter(pl.col("metric") == "selection_rate").select(*of_segment, plain=plain)
    tests = table.filter(pl.col("metric") == "impact_ratio")
    both = tests.join(rates, on=of_segment, how="left", maintain_order="left")
    by_two = pl.when(pl.col("p_value").is_not_null()).then("plain")
    return _adjusted(both.with_columns(p_value=by_two)), _adjusted(tests)


def _adjusted(tests: pl.DataFrame) -> pl.DataFrame:
    marked = tests.with_columns(pl.lit(value=False).alias(REPEATED))
    chunks = marked.partition_by("chunk")
    return pl.concat(with_holm(each) for each in chunks)


def _some(tests: pl.DataFrame, *groups: pl.Expr) -> Measure:
    """Share of replicates in which one of these groups is called different."""
    different = (pl.col("p_adjusted") <= SIGNIFICANCE).fill_null(value=False)
    where = pl.all_horizontal(different, *groups).any()
    return share(tests.group_by("chunk", REPLICATE).agg(where.alias("some"))["some"])


def _of_low(tests: tuple[pl.DataFrame, pl.DataFrame]) -> list[Cell]:
    first = pl.col(SEGMENT) == "0"
    of_low = [f"{_some(each, first).value:.3f}" for each in tests]
    return [*of_low, *(_some(each, ~first).family_error for each in tests)]
