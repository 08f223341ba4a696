"""Intervals of points of curves near a false positive rate of 0, and of partial areas."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import NormalDist

import polars as pl
from designs import Spread, TwoClasses, Weights, shift
from simulation import LEVEL, REPLICATE, Simulation
from tables import Cell, Section, Table, coverage, mean, share

import polars_wroc as wroc
from polars_wroc.stats.aucs import AucMethod

AUC = 0.85
RATES = (0.1, 0.02, 0.005, 0.003, 0.001, 0.0)
SIZES = ((15, 45), (50, 150), (50, 500), (200, 2000))
BAND_SIZE = (200, 2000)
AREA_FROM = 0.8
AREA_SIZES = ((15, 45), (50, 150), (200, 600))
AREA_WEIGHTS: tuple[Weights, ...] = ("unit", "lognormal", "related")
AREA_METHODS: tuple[AucMethod, ...] = ("score", "logit")


def curves(simulation: Simulation) -> list[Section]:
    """Simulate points, bands and partial areas."""
    return [points(simulation), band(simulation), areas(simulation)]


def points(simulation: Simulation) -> Section:
    """Coverage of `roc_point`."""
    body: list[tuple[Cell, ...]] = []
    for size in SIZES:
        for spread in ("equal", "unequal"):
            setting = TwoClasses(*size, AUC, "unit", spread)
            table = simulation.run(setting, tpr_at_rates)
            covered = {
                rate: coverage(
                    table.filter(fpr=rate), true_tpr(spread, rate), "tpr_low", "tpr_high"
                )
                for rate in RATES
            }
            one_sided = [
                rate for rate in RATES if share(table.filter(fpr=rate)["one_sided"]).value > 0
            ]
            coverages = [measure.coverage for measure in covered.values()]
            body.append((setting.size, spread, *coverages, f"{max(one_sided):g} and below"))
    return Section(
        "True positive rates near a false positive rate of 0",
        f"Coverage of `roc_point` by rate, AUC {AUC:g}, no weights. Where the negatives are too "
        "few, the lower limit is 0; the interval is then one-sided and nearly always right.",
        Table(("size", "spread", *(f"fpr {rate:g}" for rate in RATES), "one-sided at"), body),
        settings=2,
        promise="95% to 100%, one-sided where there are too few negatives",
    )


def band(simulation: Simulation) -> Section:
    """Coverage of the pointwise band at points of the curve."""
    body: list[tuple[Cell, ...]] = []
    for spread in ("equal", "unequal"):
        setting = TwoClasses(*BAND_SIZE, AUC, "unit", spread)
        table = simulation.fewer(2).run(setting, highest_points)
        covered = [
            coverage(table.filter(rate=rate), true_tpr(spread, rate), "tpr_low", "tpr_high")
            for rate in RATES
        ]
        body.append((spread, *(measure.coverage for measure in covered)))
    return Section(
        "Pointwise band",
        f'Coverage of `roc_curve(band="pointwise")` at the highest points with these false '
        f"positive rates, {BAND_SIZE[0]}/{BAND_SIZE[1]}, AUC {AUC:g}; half of the replicates.",
        Table(("spread", *(f"fpr {rate:g}" for rate in RATES)), body),
        promise="95% to 100%",
    )


def areas(simulation: Simulation) -> Section:
    """Coverage of partial areas over a range of true positive rates."""
    truth = true_area()
    body: list[tuple[Cell, ...]] = []
    for size in AREA_SIZES:
        for weights in AREA_WEIGHTS:
            setting = TwoClasses(*size, AUC, weights)
            table = simulation.run(setting, partial_areas)
            cells: list[Cell] = []
            for method in AREA_METHODS:
                known = table.filter(way=method).drop_nulls("partial_auc_low")
                covered = coverage(known, truth, "partial_auc_low", "partial_auc_high")
                widths = (known["partial_auc_high"] - known["partial_auc_low"]).to_numpy()
                width = f"{mean(widths).value:.3f}" if len(known) else "-"
                cells += [covered.coverage, width]
            missing = share(table.filter(way=AREA_METHODS[0])["partial_auc_low"].is_null())
            body.append((setting.size, weights, *cells, f"{missing.value:.3f}"))
    return Section(
        "Partial areas over true positive rates",
        f"Coverage and mean width of partial areas over tpr from {AREA_FROM:g} to 1, AUC {AUC:g}, "
        "equal spread. *Without interval* is the share of samples in which fewer than three "
        "effective positives are in the range, for which `score` gives no limits.",
        Table(
            (
                "size",
                "weights",
                *(part for method in AREA_METHODS for part in (method, "width")),
                "without interval",
            ),
            body,
        ),
        settings=2,
        promise=_state_promise,
    )


def _state_promise(_: Mapping[str, str], column: str) -> str:
    """Return what the documentation promises for partial areas by a method."""
    if column == "logit":
        return "only to reproduce other software"
    return "95% to 99%; none where fewer than three effective rows decide"


def tpr_at_rates(frame: pl.DataFrame) -> pl.DataFrame:
    """Intervals of all replicates at these rates."""
    return wroc.roc_point(frame, "label", "score", fpr=RATES, by=REPLICATE, level=LEVEL)


def highest_points(frame: pl.DataFrame) -> pl.DataFrame:
    """The band at the highest points of the curves with these rates."""
    curve = wroc.roc_curve(frame, "label", "score", by=REPLICATE, band="pointwise", level=LEVEL)
    return pl.concat(
        curve.filter((pl.col("fpr") - rate).abs() < 1e-9)
        .group_by(REPLICATE)
        .agg(pl.col("tpr_low", "tpr_high").last())
        .with_columns(rate=pl.lit(rate))
        for rate in RATES
    )


def partial_areas(frame: pl.DataFrame) -> pl.DataFrame:
    """Intervals of partial areas by several methods."""
    return pl.concat(
        wroc.summary(
            frame,
            "label",
            "score",
            weight="weight",
            by=REPLICATE,
            areas={"partial_auc": wroc.PartialAUC(tpr=(AREA_FROM, 1))},
            level=LEVEL,
            method=method,
        ).select("partial_auc_low", "partial_auc_high", way=pl.lit(method))
        for method in AREA_METHODS
    )


def true_tpr(spread: Spread, fpr: float) -> float:
    """Return the true positive rate at a false positive rate."""
    if fpr in {0, 1}:
        return float(fpr)
    if spread == "equal":
        normal = NormalDist()
        return normal.cdf(shift(AUC) + normal.inv_cdf(fpr))
    return float(fpr ** ((1 - AUC) / AUC))


def true_area() -> float:
    """Return the true area over the range, by the midpoint rule."""
    normal, steps = NormalDist(), 20_000
    rates = [AREA_FROM + (1 - AREA_FROM) * (i + 0.5) / steps for i in range(steps)]
    fprs = [normal.cdf(normal.inv_cdf(tpr) - shift(AUC)) for tpr in rates]
    return (1 - AREA_FROM) * (1 - sum(fprs) / len(fprs))
