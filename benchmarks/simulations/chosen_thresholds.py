"""Rates at a threshold that was chosen on the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl
from designs import Floats, TwoClasses, shift
from simulation import LEVEL, REPLICATE, Simulation
from tables import Cell, Section, Table, mean, share

import polars_wroc as wroc

AUC = 0.85
# Sizes, and by how much to divide the replicates: resamples of large data take long.
SIZES = (((20, 60), 1), ((50, 150), 2), ((200, 600), 8))
RESAMPLES = 60
MAX_FPR = 0.1
RULES: dict[str, dict[str, Any]] = {
    "youden": {"threshold": wroc.rules.youden()},
    "max_fpr=0.1": {"threshold": wroc.rules.max_fpr(MAX_FPR)},
}
WAYS = {"plain": None, "bootstrap": "bootstrap"}


def chosen_thresholds(simulation: Simulation) -> Section:
    """Bias of rates at chosen thresholds, and coverage of their intervals."""
    body: list[tuple[Cell, ...]] = []
    for (size, times), (name, rule) in ((size, rule) for size in SIZES for rule in RULES.items()):
        setting = TwoClasses(*size, AUC, "unit")
        table = simulation.fewer(times).run(setting, partial(points, rule=rule))
        over = share(table.filter(way="plain")["true_fpr"] > MAX_FPR)
        for way in WAYS:
            own = table.filter(way=way)
            cells: list[Cell] = []
            for rate in ("tpr", "fpr"):
                bias = mean((own[rate] - own[f"true_{rate}"]).to_numpy()).value
                held = share(
                    (own[f"{rate}_low"] <= own[f"true_{rate}"])
                    & (own[f"{rate}_high"] >= own[f"true_{rate}"])
                )
                cells += [f"{bias:+.3f}", held.coverage]
            exceeds = f"{over.value:.3f}" if name != "youden" else "-"
            body.append((setting.size, name, way, *cells, exceeds))
    return Section(
        "Chosen thresholds",
        "Mean of estimated minus true rate at the threshold that a rule chose, and coverage, "
        f'plain and with `honest="bootstrap"` ({RESAMPLES} resamples; half of the replicates of '
        f"50/150, an eighth of 200/600), AUC {AUC:g}, no weights. *True fpr above {MAX_FPR:g}*: "
        "the rule keeps its limit on the rows at hand only. The bootstrap does not change the "
        "threshold; it shows how high the rate really is.",
        Table(
            (
                "size",
                "rule",
                "honest",
                "bias of tpr",
                "its coverage",
                "bias of fpr",
                "its coverage",
                f"true fpr above {MAX_FPR:g}",
            ),
            body,
        ),
        settings=3,
        promise=_state_promise,
    )


def _state_promise(setting: Mapping[str, str], _: str) -> str:
    """Return what the documentation promises for rates at chosen thresholds."""
    if setting["honest"] == "plain":
        return 'too good on the rows that chose the threshold; pass `honest="bootstrap"`'
    return 'rates with `honest="bootstrap"` cover 93% to 96%'


def points(frame: pl.DataFrame, rule: dict[str, Any]) -> pl.DataFrame:
    """Rates at the thresholds chosen in each replicate, plain and honest, and the true ones."""
    columns = [f"{rate}{end}" for rate in ("tpr", "fpr") for end in ("", "_low", "_high")]
    tables = []
    for way, honest in WAYS.items():
        options = {**rule, "honest": honest, "resamples": RESAMPLES}
        table = wroc.threshold_metrics(
            frame, "label", "score", per_group=True, by=REPLICATE, level=LEVEL, **options
        )
        thresholds = table["threshold"].to_numpy()
        tables.append(
            table.select(
                *columns,
                true_tpr=pl.Series(_above(thresholds - shift(AUC))),
                true_fpr=pl.Series(_above(thresholds)),
                way=pl.lit(way),
            )
        )
    return pl.concat(tables)


def _above(thresholds: Floats) -> Floats:
    """Probability that a normal score is at least this high."""
    normal = NormalDist()
    return 1 - np.array([normal.cdf(threshold) for threshold in thresholds])
