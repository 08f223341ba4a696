"""Rates for other rows than those of the choice: against resamples and folds in plain Python."""

from __future__ import annotations

import inspect
import math
import random
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from scipy import stats
from sweeps import sweep

import polars_wroc as wroc

HONEST = ["bootstrap", "crossfit"]
RATES = ["tpr", "fpr", "ppv", "npv", "selection_rate", "accuracy"]
CELLS = ["threshold", "tp", "fp", "fn", "tn"]
UNCHANGED = [*CELLS, "prevalence"]
EQUAL: Any = {"rel_tol": 1e-12, "abs_tol": 1e-12}


class Row(NamedTuple):
    """A row with the number that is hashed."""

    number: int
    group: str
    positive: bool
    score: float
    weight: Fraction


class Cells(NamedTuple):
    """Weights of the four cells."""

    tp: Fraction
    fp: Fraction
    fn: Fraction
    tn: Fraction

    @property
    def rates(self) -> dict[str, Fraction | None]:
        tp, fp, fn, tn = self
        shares = {
            "tpr": (tp, tp + fn),
            "fpr": (fp, fp + tn),
            "ppv": (tp, tp + fp),
            "npv": (tn, tn + fn),
        }
        return {name: part / all_ if all_ else None for name, (part, all_) in shares.items()}


# The larger, the better; None is not allowed.
Rule: TypeAlias = Callable[[Cells], Fraction | None]
LIMIT = Fraction(3, 10)


def _both(cells: Cells) -> tuple[Fraction, Fraction]:
    tpr, fpr = cells.rates["tpr"], cells.rates["fpr"]
    assert tpr is not None
    assert fpr is not None
    return tpr, fpr


def youden(cells: Cells) -> Fraction | None:
    tpr, fpr = _both(cells)
    return tpr - fpr


def max_fpr(cells: Cells) -> Fraction | None:
    tpr, fpr = _both(cells)
    # Of equal tpr, the lowest fpr.
    return tpr - fpr / 10**9 if fpr <= LIMIT else None


def accuracy(cells: Cells) -> Fraction | None:
    return (cells.tp + cells.tn) / sum(cells)


RULES: dict[str, tuple[dict[str, Any], Rule]] = {
    "youden": ({"threshold": wroc.rules.youden()}, youden),
    "max_fpr": ({"threshold": wroc.rules.max_fpr(0.3)}, max_fpr),
    "accuracy": ({"threshold": wroc.rules.max_accuracy()}, accuracy),
}


def cells_at(rows: Iterable[Row], threshold: float) -> Cells:
    cells = dict.fromkeys(("tp", "fp", "fn", "tn"), Fraction(0))
    for row in rows:
        kind = ("t" if row.positive == (row.score >= threshold) else "f") + (
            "p" if row.score >= threshold else "n"
        )
        cells[kind] += row.weight
    return Cells(**cells)


def choose(rows: list[Row], rule: Rule) -> float | None:
    """The highest of the best thresholds, or None without both classes."""
    present = [row for row in rows if row.weight]
    if len({row.positive for row in present}) < 2:
        return None
    found: tuple[Fraction, float] | None = None
    for threshold in [math.inf, *sorted({row.score for row in present}, reverse=True)]:
        value = rule(cells_at(present, threshold))
        if value is not None and (found is None or value > found[0]):
            found = value, threshold
    return None if found is None else found[1]


def by_group(rows: Iterable[Row]) -> dict[str, list[Row]]:
    ordered = sorted(rows, key=lambda row: row.group)
    return {name: list(group) for name, group in groupby(ordered, lambda row: row.group)}


def chosen(rows: list[Row], rule: Rule, *, common: bool) -> dict[str, float | None]:
    """The threshold of each group."""
    return {name: choose(rows if common else group, rule) for name, group in by_group(rows).items()}


def numbered(frame: pl.DataFrame) -> tuple[list[Row], pl.Series]:
    """Rows in the order of their values, as they are numbered, and the numbers."""
    ordered = frame.select("g", "y", "w", "s").sort(pl.all()).with_row_index("i")
    rows = [Row(i, g, bool(y), s, Fraction(w)) for i, g, y, w, s in ordered.iter_rows()]
    return rows, ordered["i"]


def first_seeds(count: int) -> list[int]:
    seeds = random.Random(0)  # noqa: S311  (the draws to repeat)
    return [seeds.getrandbits(63) for _ in range(count)]


def resample(rows: list[Row], times: list[int]) -> list[Row]:
    """Weight rows by their draws, with the weight of each class of each group kept."""
    drawn = []
    for group in by_group(rows).values():
        again = [row._replace(weight=row.weight * times[row.number]) for row in group]
        total = {k: sum(r.weight for r in group if r.positive == k) for k in (True, False)}
        got = {k: sum(r.weight for r in again if r.positive == k) for k in (True, False)}
        if any(total[k] and not got[k] for k in total):
            continue
        drawn += [r._replace(weight=r.weight * total[r.positive] / got[r.positive]) for r in again]
    return drawn


def bootstrapped(
    frame: pl.DataFrame, rule: Rule, *, common: bool, resamples: int
) -> dict[str, dict[str, float | None]]:
    rows, numbers = numbered(frame)
    differences: dict[tuple[str, str], list[Fraction]] = {}
    for seed in first_seeds(resamples):
        share = numbers.hash(seed).cast(pl.Float64).to_numpy() / 2.0**64
        again = resample(rows, [int(times) for times in stats.poisson.ppf(share, 1)])
        of_group = by_group(again)
        for name, threshold in chosen(again, rule, common=common).items():
            if threshold is None:
                continue
            on_resample = cells_at(of_group[name], threshold).rates
            on_data = cells_at(by_group(rows)[name], threshold).rates
            for rate, value in on_resample.items():
                other = on_data[rate]
                if value is not None and other is not None:
                    differences.setdefault((name, rate), []).append(value - other)
    found: dict[str, dict[str, float | None]] = {}
    for name, threshold in chosen(rows, rule, common=common).items():
        assert threshold is not None
        cells = cells_at(by_group(rows)[name], threshold)
        rates: dict[str, float | None] = {}
        for rate, value in cells.rates.items():
            known = differences.get((name, rate), [])
            corrected = None if value is None or not known else value - sum(known) / len(known)
            rates[rate] = None if corrected is None else float(min(max(corrected, 0), 1))
        found[name] = rates
    return found


def crossfitted(
    frame: pl.DataFrame, rule: Rule, *, common: bool
) -> dict[str, dict[str, float | None]]:
    rows, numbers = numbered(frame)
    fold = (numbers.hash(first_seeds(1)[0]) % 10).to_list()
    added: dict[str, Cells] = {}
    for number in range(10):
        others = [row for row in rows if fold[row.number] != number]
        for name, threshold in chosen(others, rule, common=common).items():
            if threshold is not None:
                left_out = [r for r in rows if fold[r.number] == number and r.group == name]
                cells = cells_at(left_out, threshold)
                before = added.get(name, Cells(*[Fraction(0)] * 4))
                added[name] = Cells(*(a + b for a, b in zip(before, cells, strict=True)))
    return {
        name: {rate: None if v is None else float(v) for rate, v in cells.rates.items()}
        for name, cells in added.items()
    }


def people(seed: int, size: int = 60) -> pl.DataFrame:
    """Rows of two groups with ties and weights."""
    draw = np.random.default_rng(seed)
    positive = draw.random(size) < 0.4
    return pl.DataFrame(
        {
            "g": draw.choice(["a", "b"], size, p=[0.7, 0.3]),
            "y": positive.astype(int),
            "s": np.round(draw.normal(size=size) + 1.2 * positive, 1),
            "w": draw.choice([0.5, 1.0, 2.0], size),
        }
    )


def points(frame: Any, *, common: bool = False, **options: Any) -> Any:
    given = {"threshold": wroc.rules.youden(), "level": None} | options
    return wroc.threshold_metrics(frame, "y", "s", per_group=not common, **given, metrics="all")


def assert_rates(row: dict[str, Any], expected: dict[str, float | None]) -> None:
    for rate, value in expected.items():
        assert row[rate] == (None if value is None else pytest.approx(value, rel=1e-10)), rate


# The numbers.


@pytest.mark.parametrize("common", [False, True])
@pytest.mark.parametrize("name", sweep(RULES, fast=["youden", "max_fpr"]))
@pytest.mark.parametrize("seed", sweep(range(4)))
def test_rates_are_those_of_plain_python(name: str, seed: int, common: bool) -> None:
    options, rule = RULES[name]
    frame = people(seed)
    both: dict[str, Any] = {"weight": "w", "by": "g", "common": common} | options
    found = {
        "bootstrap": points(frame, honest="bootstrap", resamples=9, **both),
        "crossfit": points(frame, honest="crossfit", **both),
    }
    expected = {
        "bootstrap": bootstrapped(frame, rule, common=common, resamples=9),
        "crossfit": crossfitted(frame, rule, common=common),
    }
    for honest, table in found.items():
        assert table["g"].to_list() == ["a", "b"]
        for row in table.iter_rows(named=True):
            assert_rates(row, expected[honest][row["g"]])


@pytest.mark.parametrize("common", [False, True])
def test_a_group_without_a_class_is_left_out_of_the_resample(common: bool) -> None:
    few = pl.DataFrame(
        {"g": ["b"] * 5, "y": [1, 0, 0, 0, 0], "s": [0.7, 0.9, 0.5, 0.3, 0.1], "w": [1.0] * 5}
    )
    frame = pl.concat([people(4, 12).with_columns(g=pl.lit("a")), few])
    options: dict[str, Any] = {
        "threshold": wroc.rules.max_accuracy(),
        "weight": "w",
        "by": "g",
        "common": common,
    }
    table = points(frame, honest="bootstrap", resamples=30, **options)
    expected = bootstrapped(frame, accuracy, common=common, resamples=30)
    for row in table.iter_rows(named=True):
        assert_rates(row, expected[row["g"]])


@pytest.mark.parametrize("honest", HONEST)
def test_the_other_metrics_follow(honest: str) -> None:
    table = points(people(5), weight="w", by="g", honest=honest, resamples=20)
    for of in table.iter_rows(named=True):
        share = of["prevalence"]
        tp, fp = share * of["tpr"], (1 - share) * of["fpr"]
        fn, tn = share - tp, 1 - share - fp
        expected = {
            "fnr": 1 - of["tpr"],
            "tnr": 1 - of["fpr"],
            "fdr": 1 - of["ppv"],
            "for": 1 - of["npv"],
            "selection_rate": tp + fp,
            "accuracy": tp + tn,
            "zero_one_loss": fp + fn,
            "balanced_accuracy": (of["tpr"] + of["tnr"]) / 2,
            "youden": of["tpr"] - of["fpr"],
            "markedness": of["ppv"] + of["npv"] - 1,
            "lift": of["ppv"] / share,
            "f1": 2 * tp / (2 * tp + fp + fn),
            "f2": 5 * tp / (5 * tp + 4 * fn + fp),
            "jaccard": tp / (tp + fp + fn),
            "lr_pos": of["tpr"] / of["fpr"],
            "lr_neg": of["fnr"] / of["tnr"],
            "mcc": math.sqrt(of["ppv"] * of["tpr"] * of["tnr"] * of["npv"])
            - math.sqrt(of["fdr"] * of["fnr"] * of["fpr"] * of["for"]),
        }
        assert {name: of[name] for name in expected} == pytest.approx(expected, rel=1e-9)


def test_selection_rate_and_accuracy_lose_their_own_optimism() -> None:
    frame = people(8, 200)
    options: dict[str, Any] = {"weight": "w", "threshold": wroc.rules.max_accuracy()}
    apparent = points(frame, **options)
    table = points(frame, honest="bootstrap", resamples=25, **options)
    rows, numbers = numbered(frame.with_columns(g=pl.lit("all")))
    lost: dict[str, list[float]] = {"selection_rate": [], "accuracy": []}
    for seed in first_seeds(25):
        share = numbers.hash(seed).cast(pl.Float64).to_numpy() / 2.0**64
        again = resample(rows, [int(times) for times in stats.poisson.ppf(share, 1)])
        threshold = choose(again, accuracy)
        assert threshold is not None
        here, there = (cells_at(each, threshold) for each in (again, rows))
        selected = (each.tp + each.fp for each in (here, there))
        right = (each.tp + each.tn for each in (here, there))
        for name, (a, b) in {"selection_rate": selected, "accuracy": right}.items():
            lost[name].append(float((a - b) / sum(here)))
    for name, differences in lost.items():
        expected = apparent[name].item() - sum(differences) / 25
        assert table[name].item() == pytest.approx(expected, rel=1e-10)


def test_intervals_are_wilsons_around_the_rates() -> None:
    frame = people(6, 200)
    options: dict[str, Any] = {"by": "g", "level": 0.9}
    table = points(frame, honest="bootstrap", resamples=20, **options)
    z = stats.norm.ppf(0.95)
    for of in table.iter_rows(named=True):
        tp, fp, fn, tn = (of[cell] for cell in ("tp", "fp", "fn", "tn"))
        sizes = [tp + fn, fp + tn, tp + fp, tn + fn, tp + fp + fn + tn, tp + fp + fn + tn]
        for rate, n in zip(RATES, sizes, strict=True):
            p = of[rate]
            centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
            half = z * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
            found = [of[f"{rate}_low"], of[f"{rate}_high"]]
            assert found == pytest.approx([centre - half, centre + half], rel=1e-9)


def test_folds_have_no_intervals() -> None:
    table = points(people(6), by="g", level=0.9, honest="crossfit")
    limits = [f"{rate}_{end}" for rate in RATES for end in ("low", "high")]
    assert table.columns == points(people(6), by="g", level=0.9).columns
    assert table.select(limits).null_count().row(0) == (2,) * len(limits)
    assert set(table.select(limits).dtypes) == {pl.Float64()}


@pytest.mark.parametrize("honest", HONEST)
def test_rates_of_a_population(honest: str) -> None:
    rule: dict[str, Any] = {"threshold": wroc.rules.least_cost(fn=0.7, prevalence=0.1)}
    table = points(people(7, 200), level=0.9, honest=honest, resamples=20, **rule)
    of = table.row(0, named=True)
    selected = 0.1 * of["tpr"] + 0.9 * of["fpr"]
    assert of["selection_rate"] == pytest.approx(selected)
    assert of["ppv"] == pytest.approx(0.1 * of["tpr"] / selected)
    assert of["npv"] == pytest.approx(0.9 * of["tnr"] / (1 - selected))
    assert of["prevalence"] == pytest.approx(0.1)
    apparent = points(people(7, 200), level=0.9, **rule)
    assert_frame_equal(table.select(CELLS), apparent.select(CELLS))
    if honest == "bootstrap":
        for rate in RATES:
            assert of[f"{rate}_low"] < of[rate] < of[f"{rate}_high"]


@pytest.mark.parametrize("honest", sweep(["crossfit", "bootstrap"]))
def test_the_bias_is_smaller(honest: str) -> None:
    draw = np.random.default_rng(11)
    samples, positives, negatives = 400, 20, 60
    mean = math.sqrt(2) * stats.norm.ppf(0.85)
    positive = np.tile(np.repeat([1, 0], [positives, negatives]), samples)
    sample = np.repeat(np.arange(samples), positives + negatives)
    score = draw.normal(size=len(sample)) + mean * positive
    frame = pl.DataFrame({"g": sample, "y": positive, "s": score})
    apparent = points(frame, by="g")
    table = points(frame, by="g", honest=honest, resamples=50)
    truth = stats.norm.sf(apparent["threshold"].to_numpy() - mean)
    bias, left = ((each["tpr"].to_numpy() - truth).mean() for each in (apparent, table))
    # Four standard errors around 0.084, and around what is left of it.
    assert bias == pytest.approx(0.084, abs=0.017)
    assert left == pytest.approx(0.029 if honest == "bootstrap" else -0.004, abs=0.022)


# What does not matter, and what stays.


@pytest.mark.parametrize("common", [False, True])
@pytest.mark.parametrize("honest", HONEST)
def test_threshold_and_cells_stay(honest: str, common: bool) -> None:
    frame = people(2, 120)
    options: dict[str, Any] = {"weight": "w", "by": "g", "common": common, "level": 0.9}
    table = points(frame, honest=honest, resamples=5, **options)
    apparent = points(frame, **options)
    assert table.schema == apparent.schema
    assert_frame_equal(table.select("g", *UNCHANGED), apparent.select("g", *UNCHANGED), **EQUAL)


@given(seed=st.integers(0, 2**32))
def test_same_scores_have_the_same_draws(seed: int) -> None:
    frame = people(seed % 1000).with_columns(t=pl.col("s") * 2)
    for honest in HONEST:
        options: dict[str, Any] = {
            "threshold": wroc.rules.youden(),
            "weight": "w",
            "honest": honest,
        }
        options |= {"resamples": 4, "seed": seed, "level": None}
        table = wroc.threshold_metrics(
            frame, "y", ["s", "t"], per_group=True, **options, metrics="all"
        )
        assert table["model"].to_list() == ["s", "t"]
        one, other = (table.filter(model=name).drop("model", "threshold") for name in "st")
        # The net benefit depends on the threshold.
        assert_frame_equal(one.drop("net_benefit"), other.drop("net_benefit"), **EQUAL)


@pytest.mark.parametrize("honest", HONEST)
def test_seeds(honest: str) -> None:
    frame = people(3, 200)
    first, again, other = (
        points(frame, honest=honest, resamples=5, seed=seed) for seed in (1, 1, 2)
    )
    assert_frame_equal(first, again)
    assert first["accuracy"].item() != other["accuracy"].item()


@pytest.mark.slow(reason="computes many tables")
@pytest.mark.parametrize("common", [False, True])
@pytest.mark.parametrize("honest", HONEST)
def test_plans_and_engines_agree(
    honest: str, common: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = people(4, 300)
    options: dict[str, Any] = {
        "weight": "w", "by": "g", "common": common, "level": 0.9, "honest": honest, "resamples": 7
    }  # fmt: skip
    table = points(frame, **options)
    plan = points(frame.lazy(), **options)
    assert isinstance(plan, pl.LazyFrame)
    assert_frame_equal(plan.collect(), table, **EQUAL)
    # Two resamples at a time.
    monkeypatch.setattr("polars_wroc.thresholds.honest._ROWS_AT_ONCE", 700)
    assert_frame_equal(points(frame, **options), table, **EQUAL)


@pytest.mark.parametrize("honest", HONEST)
def test_one_class_or_no_rows(honest: str) -> None:
    frame = pl.DataFrame({"g": ["a", "a", "b", "b"], "y": [1, 1, 0, 1], "s": [1.0, 2.0, 3.0, 4.0]})
    options: dict[str, Any] = {"by": "g", "honest": honest, "resamples": 20, "level": 0.9}
    one, both = points(frame, **options).iter_rows(named=True)
    assert one["tpr"] is None
    assert one["threshold"] is None
    assert (both["threshold"], both["tp"], both["tn"]) == (4.0, 1.0, 1.0)
    # Each resample with both classes is the rows themselves; no fold has both in the others.
    assert [both["tpr"], both["fpr"]] == ([1.0, 0.0] if honest == "bootstrap" else [None, None])
    of_one = points(frame, **options | {"threshold": wroc.rules.max_accuracy()}).row(0, named=True)
    assert of_one["threshold"] == 1.0
    assert of_one["fpr"] is None
    assert of_one["accuracy"] == of_one["tpr"] == of_one["selection_rate"]
    empty = points(frame.clear(), **options)
    assert empty.schema == points(frame, by="g", level=0.9).schema
    assert empty.height == 0


def test_arguments() -> None:
    frame = people(1)
    with pytest.raises(ValueError, match=r"`honest` must be .*'bootstrap'.*; found 'jackknife'"):
        points(frame, honest="jackknife")
    with pytest.raises(ValueError, match=r"`seed` must be .*; found -1"):
        points(frame, honest="bootstrap", seed=-1)


def test_methods_have_the_argument() -> None:
    frame: Any = people(1)
    method = frame.wroc.threshold_metrics
    assert {"honest", "resamples", "seed"} <= set(inspect.signature(method).parameters)
    options: dict[str, Any] = {
        "threshold": wroc.rules.max_fpr(0.2),
        "honest": "bootstrap",
        "resamples": 3,
    }
    found = method("y", "s", metrics="all", per_group=True, level=None, **options)
    assert_frame_equal(found, points(frame, **options))
    counts: Any = wroc.from_counts(wroc.score_counts(frame, "y", "s"))
    with pytest.raises(TypeError, match="has no argument `honest`"):
        counts.threshold_metrics(
            threshold=wroc.rules.youden(), per_group=True, level=None, honest="bootstrap"
        )
