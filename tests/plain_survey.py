"""Variances by the design of a survey in plain Python."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import polars as pl
from hypothesis import strategies as st

import polars_wroc as wroc

Unit: TypeAlias = tuple[int, int]
# Of a label and of whether a row is selected.
Rule: TypeAlias = Callable[[int, bool], bool | int]


class Row(NamedTuple):
    """A row of a survey."""

    stratum: int
    unit: int
    label: int
    score: float
    weight: float

    @property
    def psu(self) -> Unit:
        """The sampling unit, which a number identifies within its stratum."""
        return self.stratum, self.unit


# The columns of a survey, as tables of rows have them.
SAMPLE: dict[str, Any] = {"weight": "w", "design": wroc.Survey("c", strata="h")}
# Few units and scores, so that ties and empty units are frequent.
SURVEYS = st.lists(
    st.builds(
        Row,
        st.integers(0, 2),
        st.integers(0, 3),
        st.integers(0, 1),
        st.integers(0, 6).map(float),
        # Some have no weight, but their units count.
        st.integers(0, 4).map(float),
    ),
    min_size=10,
    max_size=40,
)


def survey_frame(rows: Sequence[Row]) -> pl.DataFrame:
    """Return the rows of a survey as a table."""
    schema = {"h": pl.Int64, "c": pl.Int64, "y": pl.Int64, "s": pl.Float64, "w": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def rows_of(frame: pl.DataFrame) -> list[Row]:
    """Return the rows of a table of a survey."""
    return [Row(*row) for row in frame.select("h", "c", "y", "s", "w").iter_rows()]


def auc_influences(rows: Sequence[Row]) -> tuple[float, list[float]]:
    """The AUC and the influence of each row, by comparing every pair."""
    total = {side: sum(r.weight for r in rows if r.label == side) for side in (0, 1)}
    right = [
        sum(other.weight * won(one, other) for other in rows if other.label != one.label)
        / total[1 - one.label]
        for one in rows
    ]
    auc = sum(r.weight * v for r, v in zip(rows, right, strict=True) if r.label) / total[1]
    return auc, [r.weight * (v - auc) / total[r.label] for r, v in zip(rows, right, strict=True)]


def won(one: Row, other: Row) -> float:
    """Whether two rows of different classes are ranked correctly; a tie counts half."""
    if one.score == other.score:
        return 0.5
    return float((one.score > other.score) == bool(one.label))


def totals(rows: Sequence[Row], influences: Sequence[float]) -> dict[Unit, float]:
    """Add up the influences of the rows of each sampling unit."""
    found: dict[Unit, float] = {}
    for row, value in zip(rows, influences, strict=True):
        found[row.psu] = found.get(row.psu, 0.0) + value
    return found


def degrees_of_freedom(rows: Collection[Row], units: set[Unit]) -> int:
    """Units with rows in each stratum, at most all units of the stratum less one."""
    found = 0
    for stratum in {unit[0] for unit in units}:
        here = {unit for unit in units if unit[0] == stratum}
        found += min(len(here) - 1, len(here & {row.psu for row in rows}))
    return found


def auc_degrees_of_freedom(rows: Collection[Row], units: set[Unit]) -> int:
    """Degrees of freedom of the class in fewer units."""
    classes = ([row for row in rows if row.label == label] for label in (0, 1))
    return min(degrees_of_freedom(inside, units) for inside in classes)


def covariance(
    one: Mapping[Unit, float],
    other: Mapping[Unit, float],
    units: set[Unit],
    fractions: Mapping[int, float] | None = None,
    *,
    adjust: bool = False,
) -> float:
    """Covariance of two sums over the sampling units of a design; the same for a variance."""
    found = 0.0
    for stratum in {unit[0] for unit in units}:
        inside = [unit for unit in units if unit[0] == stratum]
        n, left = len(inside), 1 - (fractions or {}).get(stratum, 0.0)
        pairs = [(one.get(unit, 0.0), other.get(unit, 0.0)) for unit in inside]
        if n == 1:
            found += left * pairs[0][0] * pairs[0][1] if adjust else 0.0
            continue
        means = [sum(pair[i] for pair in pairs) / n for i in (0, 1)]
        found += left * n / (n - 1) * sum((a - means[0]) * (b - means[1]) for a, b in pairs)
    return found


def rate_influences(
    rows: Sequence[Row], rate: str, threshold: float
) -> tuple[float | None, list[float], list[float]]:
    """A rate, the weights of the rows in its denominator, and the influence of each row."""
    rules: dict[str, tuple[Rule, Rule]] = {
        "tpr": (lambda y, _: y, lambda _, selected: selected),
        "fpr": (lambda y, _: not y, lambda _, selected: selected),
        "ppv": (lambda _, selected: selected, lambda y, _: y),
        "npv": (lambda _, selected: not selected, lambda y, _: not y),
        "selection_rate": (lambda _, __: True, lambda _, selected: selected),
        "accuracy": (lambda _, __: True, lambda y, selected: bool(y) == selected),
    }
    within, counted = rules[rate]
    inside = [bool(within(row.label, row.score >= threshold)) for row in rows]
    right = [bool(counted(row.label, row.score >= threshold)) for row in rows]
    weights = [row.weight for row, one in zip(rows, inside, strict=True) if one]
    total = sum(weights)
    if not weights:
        return None, [], []
    triples = list(zip(rows, inside, right, strict=True))
    value = sum(row.weight for row, one, hit in triples if one and hit) / total
    return value, weights, [row.weight * one * (hit - value) / total for row, one, hit in triples]
