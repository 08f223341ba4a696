"""The data sets that the calls of `kept_calls.py` are made with."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import polars as pl

import polars_wroc as wroc

_FILES = Path(wroc.__file__).parent / "data"
_STRATA = 6
_UNITS_OF_STRATUM = 5
_PERIODS = 5
REPLICATES = 10


def _scored_rows(rows: int, seed: int, *, digits: int = 3) -> pl.DataFrame:
    """Rows without missing values, with two scores, groups, weights and clusters."""
    rng = np.random.default_rng(seed)
    positive = rng.random(rows) < 0.4
    score = 1 / (1 + np.exp(-rng.normal(size=rows) - positive))
    return pl.DataFrame(
        {
            "y": positive,
            "s": score.round(digits),
            "t": np.clip(score + rng.normal(size=rows) / 10, 0.001, 0.999),
            "g": rng.choice(["a", "b", "c"], rows, p=[0.6, 0.3, 0.1]),
            "h": rng.choice(["u", "v"], rows),
            "w": rng.lognormal(size=rows),
            "n": rng.integers(1, 4, rows),
            "d": rng.random(rows) < score,
            "unit": rng.integers(0, 40, rows),
        }
    )


def _rows_with_everything(rows: int, seed: int) -> pl.DataFrame:
    """Rows with ties, missing values, weights of 0, a group of one class, designs and periods.

    The group ``e`` has negatives only. The scores ``s, t`` are probabilities, ``r`` is not; ``d``
    are recorded decisions, ``old`` and ``new`` those of two systems. ``unit`` crosses the groups,
    the sizes of ``village`` are very unequal and each lies in one group.
    """
    rng = np.random.default_rng(seed)
    group = rng.choice(list("abcde"), rows, p=[0.4, 0.25, 0.15, 0.15, 0.05])
    place = pl.Series(group).replace_strict(dict(zip("abcde", range(5), strict=True)))
    stratum = rng.integers(0, _STRATA, rows)
    psu = rng.integers(0, _UNITS_OF_STRATUM, rows)
    effect = rng.normal(scale=0.4, size=(_STRATA, _UNITS_OF_STRATUM))[stratum, psu]
    positive = (rng.random(rows) < 0.3 + 0.03 * place.to_numpy()) & (group != "e")
    logit = rng.normal(size=rows) + 1.2 * positive - 0.8 + 0.1 * place.to_numpy() + effect
    other = logit + rng.normal(scale=0.6, size=rows)
    third = 0.5 * logit + rng.normal(size=rows)
    probability, second = 1 / (1 + np.exp(-logit)), 1 / (1 + np.exp(-other))
    # 37 villages in each group, of which the first are large.
    village = 100 * place.to_numpy() + (37 * rng.random(rows) ** 3).astype(int)
    period = rng.integers(1, _PERIODS + 1, rows)
    frame = pl.DataFrame(
        {
            "y": positive,
            "s": probability.round(2).clip(0.01, 0.99),
            "t": second.round(3).clip(0.001, 0.999),
            "r": third.round(1),
            "g": group,
            "h": rng.choice(["u", "v", "w"], rows, p=[0.5, 0.4, 0.1]),
            "k": rng.integers(1, 4, rows),
            "w": rng.lognormal(sigma=0.7, size=rows),
            "n": rng.integers(0, 5, rows),
            "d": rng.random(rows) < probability,
            "old": rng.random(rows) < probability,
            "unit": rng.integers(0, 40, rows),
            "village": village,
            "stratum": stratum,
            "psu": psu,
            "period": period,
            "day": [date(2024, month, 1 + row % 28) for row, month in enumerate(period)],
        }
    )
    changed = pl.Series(rng.random(rows) < 0.15)
    known = {name: rng.random(rows) > 0.03 for name in "ysghd"}
    return frame.with_columns(
        *(pl.when(pl.Series(kept)).then(name).alias(name) for name, kept in known.items()),
        new=pl.col("old") ^ changed,
        w=pl.when(pl.Series(rng.random(rows) > 0.05)).then("w").otherwise(0.0),
        t=pl.when(pl.Series(rng.random(rows) > 0.01)).then("t").otherwise(float("nan")),
        outcome=pl.when("y").then(pl.lit("bad")).otherwise(pl.lit("good")),
        # A stratum with a single sampling unit.
        lone=pl.when(pl.col("stratum") == 5).then(5 + (pl.col("psu") == 0)).otherwise("stratum"),
        fraction=0.1 + 0.05 * pl.col("stratum"),
        population=_UNITS_OF_STRATUM + 4 * pl.col("stratum"),
        **_replicate_weights(rng, frame),
    )


def _replicate_weights(rng: np.random.Generator, frame: pl.DataFrame) -> dict[str, pl.Expr]:
    """Factors of the weights: of a jackknife, of Fay's kind and of a bootstrap of units."""
    part = pl.Series(rng.integers(0, REPLICATES, 40))[frame["unit"]]
    sign = rng.choice([-1, 1], (REPLICATES, _STRATA))
    half = np.where(frame["psu"].to_numpy() % 2, 1, -1)
    drawn = rng.poisson(1.0, (REPLICATES, 40))
    factors = {}
    for replicate in range(REPLICATES):
        jackknife = pl.Series((part != replicate).cast(pl.Float64) * REPLICATES / (REPLICATES - 1))
        fay = pl.Series(1 + 0.7 * sign[replicate][frame["stratum"]] * half)
        bootstrap = pl.Series(drawn[replicate][frame["unit"]].astype(float))
        factors[f"jk{replicate}"] = pl.col("w") * jackknife
        factors[f"fay{replicate}"] = pl.col("w") * fay
        factors[f"boot{replicate}"] = pl.col("w") * bootstrap
    return factors


def _few_rows(seed: int) -> pl.DataFrame:
    """Groups of 30, 20, 12 and 2 rows, of which one is ranked perfectly."""
    rng = np.random.default_rng(seed)
    group = np.repeat(["a", "b", "c", "d"], [30, 20, 12, 2])
    rows = group.size
    positive = rng.random(rows) < 0.4
    score = 1 / (1 + np.exp(-rng.normal(size=rows) - positive))
    score = np.where(group == "c", np.where(positive, 0.9, 0.2) + 0.05 * rng.random(rows), score)
    return pl.DataFrame(
        {
            "y": positive,
            "s": score.round(2),
            "t": (score + 0.1 * rng.normal(size=rows)).clip(0.01, 0.99).round(2),
            "g": group,
            "h": rng.choice(["u", "v"], rows),
            "w": rng.lognormal(size=rows).round(2),
            "d": rng.random(rows) < score,
            "old": rng.random(rows) < score,
            "new": rng.random(rows) < score,
            "unit": rng.integers(0, 12, rows),
            "period": rng.integers(1, 3, rows),
        }
    )


def _data() -> dict[str, pl.DataFrame]:
    """Return the data sets by name."""
    rng = np.random.default_rng(30)
    plain = _scored_rows(900, 1)
    one_class = _scored_rows(300, 3)
    survey = _scored_rows(800, 5)
    extreme = 10.0 ** pl.Series(rng.uniform(-200, 200, 400))
    known = {name: pl.Series(rng.random(900) > 0.1) for name in "ysgw"}
    return {
        "loans": pl.read_parquet(_FILES / "loans.parquet"),
        "diabetes": pl.read_parquet(_FILES / "diabetes.parquet"),
        "rows": _rows_with_everything(1200, 11),
        "few": _few_rows(12),
        "made": plain,
        "ties": _scored_rows(600, 2, digits=1).with_columns(w=pl.col("w").round(1)),
        "missing": plain.with_columns(
            pl.when(kept).then(name).alias(name) for name, kept in known.items()
        ),
        "one_class": one_class.with_columns(y=pl.col("y") & (pl.col("g") != "c")),
        "extreme": _scored_rows(400, 4).with_columns(w=extreme),
        "survey": survey.with_columns(
            stratum=pl.col("unit") % 10, psu=pl.col("unit") // 10, w=pl.col("w").clip(0.2, 5)
        ),
    }


DATA = _data()
