"""Intervals of single AUCs over sizes, spreads, weights and AUCs."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import polars as pl
from designs import Spread, TwoClasses, Weights
from simulation import Method, Simulation, intervals
from tables import Found, Measure, Section, Table, coverage, share

METHODS: tuple[Method, ...] = ("score", "logit")
SIZES = ((8, 24), (8, 160), (20, 20), (20, 60), (20, 400), (50, 150), (100, 300), (500, 500))
AUCS = (0.6, 0.8, 0.95, 0.97, 0.99)
KINDS: tuple[tuple[Spread, Weights], ...] = (
    ("equal", "unit"),
    ("unequal", "unit"),
    ("equal", "lognormal"),
    ("unequal", "lognormal"),
    ("equal", "related"),
)
# Cells in which the issue found too little coverage: spread, weights, AUC and size.
REPORTED: tuple[tuple[Spread, Weights, float, tuple[int, int]], ...] = (
    ("equal", "unit", 0.8, (20, 60)),
    ("unequal", "unit", 0.95, (20, 60)),
    ("unequal", "unit", 0.99, (50, 150)),
    ("unequal", "unit", 0.99, (100, 300)),
    ("unequal", "unit", 0.99, (500, 500)),
    ("equal", "related", 0.8, (8, 24)),
    ("equal", "related", 0.95, (8, 24)),
    ("equal", "related", 0.95, (20, 60)),
)


def auc_grid(simulation: Simulation) -> tuple[Section, pl.DataFrame]:
    """Simulate the grid; its cells are returned too, for a picture."""
    cells = pl.DataFrame(
        [
            _cell(simulation, TwoClasses(*size, auc, weights, spread))
            for (spread, weights), auc, size in product(KINDS, AUCS, SIZES)
        ]
    )
    body = [_row(cell) for cell in cells.iter_rows(named=True)]
    header = (
        "spread",
        "weights",
        "AUC",
        "size",
        "score",
        "AUC below it",
        "AUC above it",
        "width",
        "logit",
        "AUC below it",
        "AUC above it",
        "score / logit",
    )
    text = (
        "Coverage of the intervals of `summary`, how often the true AUC is below the lower limit "
        "or above the upper one, the mean width of `score`, and ratios of mean widths. "
        + " ".join(_summary(cells, method) for method in METHODS)
        + " Near 1 and with few positives none or one or two of them are misranked: such an "
        "interval is hardly ever too high, so that its coverage is above 0.97.\n\n"
        "![Coverage and relative width of the intervals of an AUC](coverage.png)"
    )
    section = Section("Grid of designs", text, Table(header, body), _found(cells))
    return section, cells


def _cell(simulation: Simulation, setting: TwoClasses) -> dict[str, object]:
    found = simulation.run(setting, partial(intervals, methods=METHODS))
    cell: dict[str, object] = {
        "spread": setting.spread,
        "weights": setting.weights,
        "auc": setting.auc,
        "size": setting.size,
    }
    for method in METHODS:
        own = found.filter(way=method)
        cell[method] = coverage(own, setting.auc).value
        cell[f"below {method}"] = share(own["auc_low"] > setting.auc).value
        cell[f"above {method}"] = share(own["auc_high"] < setting.auc).value
        cell[f"width {method}"] = float(np.mean((own["auc_high"] - own["auc_low"]).to_numpy()))
    return cell


def _row(cell: dict[str, float]) -> tuple[str, ...]:
    def shown(method: str) -> str:
        return Measure(cell[method], 0).coverage

    def misses(method: str) -> tuple[str, str]:
        return f"{cell[f'below {method}']:.3f}", f"{cell[f'above {method}']:.3f}"

    width = cell["width logit"]
    return (
        *(str(cell[name]) for name in ("spread", "weights", "auc", "size")),
        shown("score"),
        *misses("score"),
        f"{cell['width score']:.3f}",
        shown("logit"),
        *misses("logit"),
        f"{cell['width score'] / width:.2f}",
    )


def _summary(cells: pl.DataFrame, method: Method) -> str:
    covered = [Measure(value, 0) for value in cells[method]]
    failing = sum(measure.coverage.startswith("**") for measure in covered)
    least = min(measure.value for measure in covered)
    return f"`{method}` fails in {failing} of {len(cells)} cells, with {least:.3f} at least."


def _found(cells: pl.DataFrame) -> list[Found]:
    found = []
    for spread, weights, auc, (n_pos, n_neg) in REPORTED:
        size = f"{n_pos}/{n_neg}"
        cell = cells.row(
            by_predicate=(
                (pl.col("spread") == spread)
                & (pl.col("weights") == weights)
                & (pl.col("auc") == auc)
                & (pl.col("size") == size)
            ),
            named=True,
        )
        design = f"{spread} spread, {weights} weights, AUC {auc:g}, {size}"
        shown = (Measure(cell[method], 0).coverage for method in ("logit", "score"))
        found.append(Found("interval of an AUC: coverage", design, *shown))
    return found
