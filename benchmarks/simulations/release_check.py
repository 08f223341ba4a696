"""Simulate release checks at the margin, and where nothing changed.

    python benchmarks/simulations/release_check.py
    python benchmarks/simulations/release_check.py --replicates 200 --only segments

What comes out goes into ``release_check.md``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from itertools import product
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl
from designs import Floats
from tables import Cell, Section, Table, command_of, mean, parse_options, share, write_page

import polars_wroc as wroc

REPLICATE = "replicate"
ROWS_AT_ONCE = 1_000_000
# A flattering miss, a false pass and a one-sided test are due in so many cases.
DUE, MOST = 0.025, 0.06
# Of fewer tables that are judged, no share is shown.
FEWEST_JUDGED = 50
KINDS = (
    '*False pass*: the new score is worse by the margin, and the verdict is "no worse" or '
    f'"better"; {DUE:g} is due at most. *Worse*, *better*: nothing changed, and that is the '
    f'verdict of a single test (`adjust="none"`); {DUE:g} is due. *Coverage*: of the limits of '
    "the change, the smaller of both cases."
)


def weights_of(random: np.random.Generator, kind: str, shape: tuple[int, int]) -> Floats:
    """Draw weights that have nothing to do with the scores."""
    return random.lognormal(0, 0.8, shape) if kind == "lognormal" else np.ones(shape)


def decisions(
    random: np.random.Generator, shape: tuple[int, int], changed: float, loss: float, per: int = 1
) -> dict[str, Floats]:
    """Draw decisions of which a share changes, so that ``loss`` of the rows become wrong.

    Rows in clusters of ``per`` change together where their cluster does.
    """
    replicates, n = shape
    y = random.random(shape) < 0.5
    old = random.random(shape) < 0.8
    of_unit = random.random((replicates, -(-n // per)))
    drawn = np.repeat(of_unit, per, axis=1)[:, :n]
    if per > 1:
        # Half of the rows of a cluster change with it, the others by themselves.
        drawn = np.where(random.random(shape) < 0.5, drawn, random.random(shape))
    gained, lost = (changed - loss) / 2, (changed + loss) / 2
    # Of the rows that are right 80 %, so that the shares are of all rows.
    new = np.where(old, drawn >= lost / 0.8, drawn < gained / 0.2)
    return {"y": y, "old": np.where(old, y, ~y), "new": np.where(new, y, ~y)}


def in_one_segment(
    random: np.random.Generator, shape: tuple[int, int], changed: float, loss: float, count: int
) -> dict[str, Floats]:
    """Draw decisions of which only the first of so many segments has a loss."""
    worse, others = (decisions(random, shape, changed, each) for each in (loss, 0.0))
    first = np.arange(shape[0])[:, None] % count == 0
    return {name: np.where(first, worse[name], others[name]) for name in worse}


def scores(
    random: np.random.Generator, shape: tuple[int, int], kind: float | str, loss: float
) -> dict[str, Floats]:
    """Draw two scores of AUC 0.8, with this correlation or a tenth of the rows drawn anew."""
    auc = 0.8
    old, new = (2**0.5 * NormalDist().inv_cdf(each) for each in (auc, auc - loss))
    y = np.broadcast_to(np.arange(shape[1]) < shape[1] // 4, shape)
    one, two = random.normal(size=(2, *shape))
    if kind != "rare":
        rho = float(kind)
        return {
            "y": y,
            "old": one + old * y,
            "new": rho * one + (1 - rho**2) ** 0.5 * two + new * y,
        }
    # A tenth is drawn anew without any relation to the label, or as before.
    again = random.random(shape) < 0.1
    shift = np.where(random.random(shape) < loss / (0.1 * (auc - 0.5)), 0.0, old)
    return {"y": y, "old": one + old * y, "new": np.where(again, two + shift * y, one + old * y)}


def probabilities(
    random: np.random.Generator, shape: tuple[int, int], kind: str
) -> dict[str, Floats]:
    """Draw probabilities, and others with noise on the logit of all rows or of a tenth."""
    logit = random.normal(-0.5, 1.2, shape)
    y = random.random(shape) < 1 / (1 + np.exp(-logit))
    one, two = random.normal(0, 0.5, (2, *shape))
    if kind == "rare":
        two = np.where(random.random(shape) < 0.1, 3 * two, one)
    return {"y": y, "old": 1 / (1 + np.exp(-logit - one)), "new": 1 / (1 + np.exp(-logit - two))}


def check(
    draw: Callable[[np.random.Generator, tuple[int, int]], dict[str, Floats]],
    random: np.random.Generator,
    replicates: int,
    n: int,
    weights: str = "unit",
    **options: Any,
) -> pl.DataFrame:
    """Check many releases of ``n`` rows, each as a segment."""
    tables = []
    chunk = max(1, ROWS_AT_ONCE // n)
    for start in range(0, replicates, chunk):
        shape = (min(chunk, replicates - start), n)
        columns = {name: 1.0 * values.ravel() for name, values in draw(random, shape).items()}
        columns["w"] = weights_of(random, weights, shape).ravel()
        columns[REPLICATE] = np.repeat(np.arange(shape[0]), n)
        columns["unit"] = np.tile(np.arange(n) // 10, shape[0]) + 10**6 * columns[REPLICATE]
        given = {"weight": "w", "attributes": REPLICATE, "adjust": "none", "label": "y"} | options
        table = wroc.release_check(pl.DataFrame(columns), old="old", new="new", **given)
        tables.append(table.filter(attribute=REPLICATE))
    return pl.concat(tables)


def measured(none: pl.DataFrame, lost: pl.DataFrame, truth: float) -> list[Cell]:
    """Measure errors where nothing changed, and where the margin is lost."""
    false_pass = share(lost["verdict"].is_in(["no worse", "better"]))
    worse, better = (share(none["verdict_at_once"] == verdict) for verdict in ("worse", "better"))
    covered = min(
        share((table["gap_low"] <= change) & (table["gap_high"] >= change))
        for table, change in ((none, 0.0), (lost, -truth))
    )
    errors = (measure.at_most(MOST) for measure in (false_pass, worse, better))
    return [*errors, covered.coverage]


def with_test(table: pl.DataFrame) -> pl.DataFrame:
    """Add the verdict of the test alone, which "no worse" may precede."""
    change = pl.col("gap")
    sure = pl.col("p_value") <= 2 * DUE
    verdict = pl.when(sure & (change < 0)).then(pl.lit("worse"))
    return table.with_columns(
        verdict_at_once=verdict.when(sure & (change > 0)).then(pl.lit("better"))
    )


HEADER = ("false pass", "worse", "better", "coverage")


def of_rates(random: np.random.Generator, replicates: int) -> Section:
    """Accuracies, with clusters too."""
    body: list[tuple[Cell, ...]] = []
    for n, changed, weights, units in [
        *product((30, 100, 300, 3000), (0.04, 0.1, 0.3), ("unit", "lognormal"), (1,)),
        *product((300, 3000), (0.04, 0.1), ("unit",), (10,)),
    ]:
        options: dict[str, Any] = {"threshold": 0.5, "margin": 0.02, "metrics": ["accuracy"]}
        if units > 1:
            options["design"] = wroc.Survey("unit", strata=REPLICATE)
        none, lost = (
            with_test(check(draw, random, replicates, n, weights, **options))
            for draw in (
                partial(decisions, changed=changed, loss=loss, per=units) for loss in (0.0, 0.02)
            )
        )
        cells = (f"{n:,}", f"{changed:g}", weights, str(units))
        body.append((*cells, *measured(none, lost, 0.02)))
    header = ("rows", "changed", "weights", "rows of a cluster", *HEADER)
    text = "Accuracy 0.8, margin 0.02. Half of the rows of a cluster change with it."
    promise = "a rate in few clusters may pass in about 7%"
    return Section("Rates", f"{text} {KINDS}", Table(header, body), 4, promise)


def of_aucs(random: np.random.Generator, replicates: int) -> Section:
    """AUCs of correlated scores, and of scores that few rows change."""
    body: list[tuple[Cell, ...]] = []
    kinds: tuple[float | str, ...] = (0.0, 0.5, 0.9, 0.95, "rare")
    for n, kind, weights in product((80, 400, 2400), kinds, ("unit", "lognormal")):
        none, lost = (
            with_test(check(draw, random, replicates, n, weights, metrics=["auc"], margin=0.02))
            for draw in (partial(scores, kind=kind, loss=loss) for loss in (0.0, 0.02))
        )
        # What changes if a tenth of the rows does is simulated.
        truth = 0.02 if kind != "rare" else -mean(lost["gap"].to_numpy()).value
        lost = lost if kind != "rare" else _at_margin(lost, truth)
        cells = (f"{n // 4:,}/{n - n // 4:,}", f"{kind}", weights)
        body.append((*cells, *measured(none, lost, truth)))
    header = ("positives/negatives", "correlation", "weights", *HEADER)
    text = (
        "AUC 0.8, margin 0.02. *rare*: a tenth of the rows has a score of its own, the others the "
        "same one twice."
    )
    promise = "passes a score that is worse by the margin in at most 6% of samples"
    return Section("AUCs", f"{text} {KINDS}", Table(header, body), 3, promise)


def _at_margin(lost: pl.DataFrame, truth: float) -> pl.DataFrame:
    """Judge by a margin that is the true change."""
    passed = pl.when(pl.col("gap_low") > -truth).then(pl.lit("no worse"))
    return lost.with_columns(verdict=passed.otherwise(pl.lit("inconclusive")))


def of_losses(random: np.random.Generator, replicates: int) -> Section:
    """Mean losses and predictive values: how often each limit lies on the wrong side."""
    body: list[tuple[Cell, ...]] = []
    names = ["ppv", "npv", "brier_score", "log_loss", "net_benefit"]
    for n, kind, weights in product((100, 400, 2000), ("noise", "rare"), ("unit", "lognormal")):
        draw = partial(probabilities, kind=kind)
        options: dict[str, Any] = {"metrics": names, "threshold": 0.5, "net_benefit_at": 0.2}
        table = check(draw, random, replicates, n, weights, **options)
        exact = check(draw, random, 200, 5000, **options)
        for name in names:
            # Log losses that few rows decide are not judged.
            estimates = table.filter(pl.col("reason").is_null(), metric=name)
            judged = estimates.height / replicates
            truth = mean(exact.filter(metric=name)["gap"].to_numpy()).value
            if estimates.height < FEWEST_JUDGED:
                estimates = estimates.clear()
            above, below = (
                share(estimates["gap_low"] > truth),
                share(estimates["gap_high"] < truth),
            )
            cells = (f"{n:,}", kind, weights, name, f"{judged:.2f}")
            body.append((*cells, above.at_most(MOST), below.at_most(MOST)))
    header = ("rows", "scores", "weights", "metric", "judged", "too high", "too low")
    text = (
        "Share of limits that lie above the true change, and below it; 0.025 each is due. *Noise*: "
        "both scores are a probability with noise; *rare*: a tenth of the rows has other noise. "
        "The truth is simulated: about 0.001 off."
    )
    promise = "log losses that few rows decide are not judged"
    return Section("Predictive values and losses", text, Table(header, body), 4, promise)


def of_segments(random: np.random.Generator, replicates: int) -> Section:
    """Gates on several segments at once."""
    body: list[tuple[Cell, ...]] = []
    for count, n, changed in (
        (1, 1000, 0.02),
        (4, 1000, 0.02),
        (10, 1000, 0.02),
        (20, 1000, 0.02),
        (1, 1000, 0.1),
        (4, 4000, 0.1),
        (10, 4000, 0.1),
        (20, 4000, 0.1),
        (20, 250, 0.02),
    ):
        few = max(replicates // 5, 2)
        shares = []
        for loss in (0.0, 0.02):
            draw = partial(in_one_segment, changed=changed, loss=loss, count=count)
            options: dict[str, Any] = {"threshold": 0.5, "metrics": ["accuracy"], "margin": 0.02}
            table = pl.concat(
                check(draw, random, count * 50, n, **options).with_columns(part=pl.lit(part))
                for part in range(-(-few // 50))
            )
            audit = (pl.int_range(pl.len()) // count).over("part")
            p = pl.when(pl.col("gap") < 0).then("p_value").min()
            passed = pl.col("verdict").is_in(["no worse", "better"]).all()
            shares.append(table.group_by("part", audit.alias("audit")).agg(passed=passed, p=p))
        none, lost = shares
        cells = (
            share(none["passed"]),
            share(none["p"] <= 2 * DUE),
            share(none["p"] * count <= 2 * DUE),
            share(lost["passed"]),
        )
        values = [f"{each.value:.3f}" for each in cells[:2]]
        checks = [each.at_most(MOST) for each in cells[2:]]
        body.append((str(count), f"{n:,}", f"{changed:g}", *values, *checks))
    header = ("segments", "rows of each", "changed", "passes", "worse", "worse by Holm")
    text = (
        "Accuracy 0.8, margin 0.02. Nothing changed: how often all segments are shown to be no "
        "worse, and how often one is found worse by single tests and by tests that are adjusted. "
        "*False pass*: one segment is worse by the margin, and all pass."
    )
    promise = 'all pass only if each does: "no worse" needs no adjustment'
    return Section("Many segments", text, Table((*header, "false pass"), body), 3, promise)


SECTIONS = {"rates": of_rates, "aucs": of_aucs, "losses": of_losses, "segments": of_segments}


def main() -> None:
    """Simulate and write the page, or print parts of it."""
    options = parse_options("Simulate release checks.", 1_000, 2026112903, only=SECTIONS)
    parts = []
    for number, (name, section) in enumerate(SECTIONS.items()):
        if not options.only or name in options.only:
            print(name, file=sys.stderr, flush=True)
            random = np.random.default_rng([options.seed, number])
            parts.append(section(random, options.replicates))
    if options.only:
        print(*parts, sep="\n\n")
        return
    write_page(
        "release_check",
        "What release checks find at the margin, and where nothing changed",
        "A new score is compared with an old one on the same rows: it is either worse by exactly "
        "the margin or no different. `release_check` passes a score that is worse by the margin in "
        "at most 6% of samples, but for rates in 30 clusters of which few change (about 7%).",
        command_of("release_check", options, ", a fifth of that for many segments"),
        parts,
    )


if __name__ == "__main__":
    main()
