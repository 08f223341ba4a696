"""Whole audits: what they call different, with segments that are all alike or one that is not.

Several replicates share a call of `audit`: each is a score of its own, which the rows of the
others miss. Holm's method is then applied to the p-values of each replicate, as `audit` does it for
one score; which p-values are a family is found out from audits of one score.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import polars as pl
from bent_cells import Cell, Result
from bent_designs import TILTS, Tilt
from simulation import SEGMENT, Simulation
from tables import SIGNIFICANCE, share

import polars_wroc as wroc

Families: TypeAlias = Literal["two", "one", "one without overall"]

CALIBRATION = ("mean_calibration_error", "calibration_slope")
RATES = ("auc", "selection_rate", "tpr", "fpr", "ppv", "npv")
# At most so many rows and scores in one call.
ROWS, SCORES = 30_000, 25
REPLICATES = 200
KEYS = ("attribute", "segment", "model", "metric")
WORSE = "0"


class AuditedRows(Protocol):
    """Rows of audits; those of one segment may be ``lower``."""

    @property
    def rows(self) -> int:
        """Rows of a replicate."""
        ...

    @property
    def lower(self) -> float:
        """By how much the scores of the worse segment are too low."""
        ...

    def draw(self, random: np.random.Generator) -> pl.DataFrame:
        """Draw one replicate."""
        ...


@dataclass(frozen=True)
class Audited:
    """Rows with calibrated probabilities, of which those of one segment may be too low.

    Logits are normal. Segments are equally likely.
    """

    segments: int
    rows: int
    tilt: Tilt = TILTS["none"]
    lower: float = 0.0
    mean: float = 0.0
    spread: float = 1.2

    def draw(self, random: np.random.Generator) -> pl.DataFrame:
        """Draw one replicate."""
        z = random.normal(size=self.rows)
        score = 1 / (1 + np.exp(-self.mean - self.spread * z))
        segment = random.integers(self.segments, size=self.rows)
        label = random.random(self.rows) < score
        lowered = np.where(segment == int(WORSE), self.lower, 0.0)
        return pl.DataFrame(
            {
                "label": label,
                "score": np.maximum(score - lowered, 0.001),
                "weight": self.tilt.draw(random, z),
                SEGMENT: segment.astype(str),
            }
        )


def audit_cells() -> Iterator[Cell]:
    """Null audits, and audits with one group whose scores are too low."""
    families = families_of_audits()
    weights = ("none", "lognormal", "rising")
    for segments, name in product((2, 4, 6, 12), weights):
        # Four are like six.
        if segments != 4 or name == "none":
            setting = Audited(segments, 200 * segments, TILTS[name])
            yield audits(f"null, {name}", setting, families)
    yield audits("null, scores near 0 or 1", Audited(6, 1200, spread=3.0), families)
    yield audits("null, 8% positive", Audited(4, 4000, mean=-2.9, spread=1.0), families)
    for lower, name in product((0.08, 0.15), weights):
        setting = Audited(6, 1200, TILTS[name], lower)
        yield audits(f"one segment {lower:g} lower, {name}", setting, families)


def audits(name: str, setting: Audited, families: Families, replicates: int = REPLICATES) -> Cell:
    """Return a cell of audits."""
    estimate = partial(audit_findings, setting=setting, families=families)
    size = f"{setting.segments} segments, n {setting.rows}"
    return Cell("audits", name, size, estimate, replicates)


def audit_findings(
    simulation: Simulation, setting: AuditedRows, families: Families
) -> Iterator[Result]:
    """Share of audits in which something is different, and in which the worse segment is."""
    scores = min(SCORES, ROWS // setting.rows)
    estimates = pl.concat(
        audited(setting, simulation.random, scores, families).with_columns(call=pl.lit(call))
        for call in range(-(-simulation.replicates // scores))
    )
    gap, calibration = (pl.col("metric").is_in(names) for names in (RATES, CALIBRATION))
    wanted = {"gaps": gap, "calibration": calibration, "any": gap | calibration}
    if setting.lower:
        worse = pl.col(SEGMENT) == WORSE
        wanted = {f"{name} of the worse": worse & rows for name, rows in wanted.items()}
    different = pl.col("p_adjusted") <= SIGNIFICANCE
    shares = estimates.group_by("call", "model").agg(
        (rows & different).any().alias(name) for name, rows in wanted.items()
    )
    for name in wanted:
        yield Result("", name, share(shares[name]))


def audited(
    setting: AuditedRows, random: np.random.Generator, scores: int, families: Families
) -> pl.DataFrame:
    """Tests of replicates, which are the scores of one audit."""
    names = [f"score {number}" for number in range(scores)]
    frames = [setting.draw(random).rename({"score": name}) for name in names]
    return adjusted(table_of(pl.concat(frames, how="diagonal"), names), families)


def table_of(frame: pl.DataFrame, scores: list[str], **design: Any) -> pl.DataFrame:
    """The tests of an audit, each once."""
    audit = wroc.audit(
        frame,
        "label",
        scores,
        attributes=SEGMENT,
        weight="weight",
        threshold=0.5,
        favorable="selected",
        **design,
    )
    tested = pl.col("metric").is_in(RATES + CALIBRATION) & pl.col("p_value").is_not_null()
    repeats = pl.col("reason").str.starts_with("repeats").fill_null(value=False)
    return audit.table.filter(tested & ~repeats)


def adjusted(table: pl.DataFrame, families: Families) -> pl.DataFrame:
    """Adjust the p-values of each score by Holm's method, within families."""
    calibration = pl.col("metric").is_in(CALIBRATION)
    if families == "one without overall":
        table = table.filter(pl.col("attribute") != "overall")
    family = ["model", calibration if families == "two" else pl.lit(value=False)]
    p = pl.col("p_value")
    # The rank from the largest on is the number of tests that are left at this step.
    step = p.len().over(family) - p.rank("ordinal").over(family) + 1
    ordered = table.with_columns(p_adjusted=p * step).sort("p_value")
    largest = pl.col("p_adjusted").cum_max().over(family).clip(upper_bound=1.0)
    return ordered.with_columns(p_adjusted=largest)


def families_of_audits() -> Families:
    """Find out which p-values `audit` adjusts together, from audits of one score.

    Raises
    ------
    AssertionError
        If it adjusts them in none of these ways, or if scores that share a call differ.
    """
    random = np.random.default_rng(0)
    setting = Audited(3, 600, TILTS["lognormal"], 0.1)
    frames = [setting.draw(random) for _ in range(3)]
    together = [frame.rename({"score": f"score {number}"}) for number, frame in enumerate(frames)]
    names = [f"score {number}" for number in range(len(frames))]
    tables = table_of(pl.concat(together, how="diagonal"), names)
    known: list[Families] = ["two", "one", "one without overall"]
    for name, frame in zip(names, frames, strict=True):
        alone = table_of(frame, ["score"])
        own = tables.filter(model=name)
        known = [way for way in known if agree(adjusted(own, way), alone)]
    assert known, "p-values of audits are adjusted in an unknown way"
    return known[0]


def agree(own: pl.DataFrame, alone: pl.DataFrame) -> bool:
    """Whether adjusted p-values are those of an audit."""
    both = own.join(alone, on=["attribute", "segment", "metric"], how="full", suffix="_alone")
    apart = (both["p_adjusted"] - both["p_adjusted_alone"]).abs()
    return apart.null_count() == 0 and bool((apart < 1e-9).all())
