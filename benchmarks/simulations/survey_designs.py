"""How samples of strata and sampling units are drawn.

The degrees of freedom of a survey are those of the whole frame, so that replicates cannot be its
groups. They are score columns of one frame instead, whose labels, weights and units they share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
from designs import Floats, Labels, Spread, mixed, shift

# Whether rows of a unit are in one segment.
Cut: TypeAlias = Literal["across", "along"]

# Each frame has a column for each of these.
COLUMNS = 10
# The names of replicate weights, before the number of the stratum.
JACKKNIFE = "jackknife_"


class Sample(NamedTuple):
    """A frame, and the names of its score columns."""

    frame: pl.DataFrame
    scores: list[str]


class Effect(NamedTuple):
    """The unit of each row, the share of its effect on the score, and what else adds to it."""

    unit: npt.NDArray[Any]
    share: float
    levels: Floats
    spread: Spread = "equal"


@dataclass(frozen=True)
class TwoStage:
    """Strata of two sampling units each, some of whose rows are in a domain.

    Strata have weights of their own, and those with more positives have higher scores. The units
    of a stratum differ in their level, which makes ``share`` of the variance of a score in a
    class, and in the proportion of positives. Segments are drawn at random and cut ``across``
    units, or ``along`` them. The positives of the first have scores that are ``lower``.
    """

    strata: int
    rows_of_unit: int
    auc: float
    share: float
    segments: int = 2
    cut: Cut = "across"
    lower: float = 0.0

    def draw(self, random: np.random.Generator) -> Sample:
        """Draw labels, weights and `COLUMNS` scores."""
        units = 2 * self.strata
        unit = np.repeat(np.arange(units), self.rows_of_unit)
        stratum = unit // 2
        # The strata are the same in all samples: evenly spread levels and proportions of positives,
        # and weights between 1 and 5.
        levels = np.linspace(-1.0, 1.0, self.strata)[stratum]
        positive = np.linspace(0.05, 0.6, self.strata)[stratum]
        label = random.random(len(unit)) < positive * random.choice([0.6, 1.4], size=units)[unit]
        weights = 1 + 4 * (np.arange(self.strata) * 7 % self.strata)[stratum] / self.strata
        if self.cut == "across":
            segment = random.integers(self.segments, size=len(unit))
        else:
            segment = random.integers(self.segments, size=units)[unit]
        lowered = np.where(label & (segment == 0), self.lower, 0.0)
        # Without one unit of a stratum, the other counts twice.
        replicates = {
            f"{JACKKNIFE}{each}": np.where(stratum == each, 2.0 * (unit % 2), 1.0) * weights
            for each in range(self.strata)
        }
        return _sample(
            random,
            label,
            self.auc,
            Effect(unit, self.share, levels - lowered),
            {
                "stratum": stratum,
                "unit": unit,
                "segment": segment,
                "weight": weights,
                **replicates,
            },
        )


@dataclass(frozen=True)
class ClusteredSegments:
    """Clusters of ``rows_of_unit`` rows, each with one label and in one of the segments.

    With an ``unequal`` spread, scores are exponential, with the scales of `draw_scores`.
    """

    segments: int
    units: int
    rows_of_unit: int
    auc: float
    share: float
    spread: Spread = "equal"

    def draw(self, random: np.random.Generator) -> Sample:
        """Draw labels, segments and `COLUMNS` scores."""
        unit = np.repeat(np.arange(self.units), self.rows_of_unit)
        label = (random.random(self.units) < 0.3)[unit]
        return _sample(
            random,
            label,
            self.auc,
            Effect(unit, self.share, np.zeros(len(unit)), self.spread),
            {
                "unit": unit,
                "segment": random.integers(self.segments, size=self.units)[unit],
                "weight": np.ones(len(unit)),
            },
        )


def _sample(
    random: np.random.Generator,
    label: Labels,
    auc: float,
    effect: Effect,
    columns: dict[str, npt.NDArray[Any]],
) -> Sample:
    unit, share, levels, spread = effect

    def normal() -> Floats:
        of_unit = random.normal(size=int(unit.max()) + 1)[unit]
        return mixed(of_unit, random.normal(size=len(unit)), share)

    def score() -> Floats:
        if spread == "equal":
            return shift(auc) * label + levels + normal()
        # Half the sum of two squares is exponential.
        return levels + np.where(label, auc / (1 - auc), 1.0) * (normal() ** 2 + normal() ** 2) / 2

    names = [f"score_{i}" for i in range(COLUMNS)]
    scores = {name: score() for name in names}
    return Sample(pl.DataFrame({"label": label, **columns, **scores}), names)
