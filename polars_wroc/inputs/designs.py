"""Designs of samples: clusters and strata of a survey, and replicate weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal, TypeAlias

import polars as pl

from polars_wroc import checks
from polars_wroc.bounds import AtLeast, NonNegative, PositiveInt, Proportion
from polars_wroc.calls import check_arguments
from polars_wroc.inputs.columns import CLUSTER, STRATUM, IntoColumn

ReplicateKind: TypeAlias = Literal["brr", "fay", "jk1", "jkn", "jk2", "bootstrap"]


@check_arguments
@dataclass(frozen=True)
class ReplicateWeights:
    """Columns of replicate weights, which replace the weights in each replicate of an estimate.

    The variance is ``scale`` times the sum over replicates of ``rscales`` times the squared
    difference from the estimate with the full weights.

    Parameters
    ----------
    columns
        Names, expressions or a selector of the replicate weights: finite, zero or more. Only rows
        with a full weight count.
    kind
        How they were made, which sets the scale for R replicates: ``"brr"`` (balanced repeated
        replication) and ``"bootstrap"`` 1 / R, ``"fay"`` ``1 / (R * (1 - rho)**2)``, ``"jk1"`` (R -
        1) / R, ``"jkn"`` and ``"jk2"`` 1.
    rho
        Fay's coefficient, from 0 to below 1; for ``"fay"`` only.
    scale
        Replaces the scale of the kind.
    rscales
        A factor for each replicate; None is 1 for all. ``"jkn"`` needs them: (n - 1) / n for a
        replicate that leaves one unit out of a stratum with n units.
    df
        Degrees of freedom of the design, 1 or more: sampling units minus strata. By default R - 1;
        R for ``"jk2"``; for ``"jkn"`` the replicates minus the strata, which follow from the
        ``rscales``. In a jackknife a group has at most as many as there are
        replicates that change its statistic.

    Raises
    ------
    TypeError, ValueError
        For an unknown kind, or numbers that are missing or out of range.

    Examples
    --------
    >>> import polars.selectors as cs
    >>> import polars_wroc as wroc
    >>> wroc.ReplicateWeights(cs.starts_with("brr"), "fay", rho=0.3).rho
    0.3
    """

    columns: IntoColumn | Sequence[IntoColumn]
    kind: ReplicateKind
    _: KW_ONLY
    rho: Proportion | None = None
    scale: NonNegative | None = None
    rscales: Sequence[float] | None = None
    df: PositiveInt | None = None

    def __post_init__(self) -> None:
        """Check the options; columns are checked with the frame."""
        if (self.kind == "fay") != (self.rho is not None):
            checks.reject("rho", "be given for kind 'fay', and for no other", self.rho)
        if self.rho == 1:
            checks.reject("rho", "be below 1", self.rho)
        if self.kind == "jkn" and self.rscales is None:
            checks.reject("rscales", "be given for kind 'jkn'", "None")
        rscales = () if self.rscales is None else self.rscales
        if not isinstance(rscales, Sequence) or isinstance(rscales, str):
            checks.reject_type("rscales", "be a number for each replicate", rscales)
        for each in rscales:
            checks.number("rscales", each, AtLeast(0))

    def factors(self, count: int) -> list[float]:
        """Return the factor of the squared difference of each of a number of replicates."""
        if count < 2:  # noqa: PLR2004  (one has no variance)
            checks.reject("columns", "hold two or more replicate weights", count)
        rscales = self._rscales(count)
        if len(rscales) != count:
            checks.reject("rscales", f"have one number for each of {count} replicates", rscales)
        scale = self.scale
        if scale is None:
            scales = {"jk1": (count - 1) / count, "jkn": 1.0, "jk2": 1.0}
            scale = scales.get(self.kind, 1 / (count * (1 - (self.rho or 0.0)) ** 2))
        return [scale * factor for factor in rscales]

    def degrees_of_freedom(self, count: int) -> int:
        """Return the degrees of freedom of the design with a number of replicates."""
        if self.df is not None:
            return self.df
        if self.kind == "jkn":
            # In each stratum 1 less the factors add up to 1.
            return max(round(sum(self._rscales(count))), 1)
        return count - (0 if self.kind == "jk2" else 1)

    @property
    def is_jackknife(self) -> bool:
        """Whether each replicate leaves out sampling units."""
        return self.kind in ("jk1", "jkn", "jk2")

    def _rscales(self, count: int) -> list[float]:
        return [1.0] * count if self.rscales is None else [float(each) for each in self.rscales]


Lonely: TypeAlias = Literal["null", "certainty", "adjust"]
DesignKind: TypeAlias = Literal["clusters", "survey", "replicate weights"]

# The column with each row's finite population correction, as given.
FPC = "__fpc"
# Columns of sampled rows, and the arguments of `Survey` that give them.
SURVEY_COLUMNS = {CLUSTER: "cluster", STRATUM: "strata", FPC: "fpc"}


@check_arguments
@dataclass(frozen=True)
class Survey:
    """The design of a survey: clusters or strata of the rows, or both.

    Variances are linearised, from the totals of sampling units within strata, and quantiles are
    Student's t. Units and strata count in all rows of the frame, including rows of other groups,
    missing rows and rows of weight 0, so do not filter them first.

    Parameters
    ----------
    cluster
        Column or expression of each row's primary sampling unit; null is a unit too. Equal values
        in different strata are different units. Without it each row is a unit.
    strata
        Column or expression of each row's stratum; null is a stratum too.
    fpc
        Finite population correction: a column or numeric expression, constant in a stratum, with
        the proportion of units that was sampled if it is at most 1, else the number of units in the
        population.
    lonely
        Contribution of a stratum with a single sampling unit to the variance of a group with rows
        in it. ``"null"``: unknown, and so is the variance. ``"certainty"``: nothing, as if the unit
        were certain to be sampled. ``"adjust"``: its squared distance from the mean of all units,
        which is cautious. If the ``fpc`` is 1 in all strata, the interval is computed as for
        independent rows.

    Raises
    ------
    TypeError, ValueError
        For an unknown ``lonely``, or one without ``strata``.

    Examples
    --------
    >>> import polars_wroc as wroc
    >>> wroc.Survey("household", strata="region").lonely
    'null'
    """

    cluster: IntoColumn | None = None
    _: KW_ONLY
    strata: IntoColumn | None = None
    fpc: IntoColumn | None = None
    lonely: Lonely = "null"

    def __post_init__(self) -> None:
        """Check the options; columns are checked with the frame."""
        _refuse_stages("cluster", self.cluster)
        if isinstance(self.strata, list | tuple):
            rule = "be one column or expression: combine several by pl.struct(...)"
            checks.reject_type("strata", rule, self.strata)
        if self.lonely != "null" and self.strata is None:
            checks.reject("lonely", "be 'null' without `strata`", repr(self.lonely))


def _refuse_stages(argument: str, units: object) -> None:
    """Raise for sampling units of several stages."""
    if isinstance(units, list | tuple):
        rule = "be one column: pass the first stage only, whose units hold those of later stages"
        checks.reject_type(argument, rule, units)


# The design of the sample: a column of clusters, a survey or replicate weights.
Design: TypeAlias = IntoColumn | Survey | ReplicateWeights


@dataclass(frozen=True)
class GivenDesign:
    """A design as the caller gives it: columns of a survey, or replicate weights."""

    survey: Survey
    replicate_weights: ReplicateWeights | None = None
    # Whether the column of clusters is the argument itself.
    is_column: bool = False

    def name_argument(self, name: str) -> str:
        """Return the argument that gives a column of `SURVEY_COLUMNS`."""
        return "design" if self.is_column else SURVEY_COLUMNS[name]

    @property
    def columns(self) -> dict[str, IntoColumn]:
        """The given columns of the survey, by `SURVEY_COLUMNS`."""
        found = {name: getattr(self.survey, argument) for name, argument in SURVEY_COLUMNS.items()}
        return {name: column for name, column in found.items() if column is not None}

    @property
    def kind(self) -> DesignKind | None:
        """The kind of design in words; None without a design."""
        if self.replicate_weights is not None:
            return "replicate weights"
        if not self.columns:
            return None
        return "survey" if {*self.columns} - {CLUSTER} else "clusters"

    @property
    def is_given(self) -> bool:
        """Whether there is a design."""
        return self.kind is not None

    @property
    def more_than_clusters(self) -> bool:
        """Whether the design is more than a column of clusters."""
        return self.kind not in (None, "clusters")

    def require_none(self, why: str) -> None:
        """Raise if a design is given with an argument that excludes it."""
        if self.kind is not None:
            found = "a survey" if self.kind == "survey" else self.kind
            checks.reject("design", f"be None {why}", found)


def read_design(design: Design | None) -> GivenDesign:
    """Read the argument ``design``; its columns are checked with the frame."""
    if design is None or isinstance(design, Survey):
        return GivenDesign(design or Survey())
    if isinstance(design, ReplicateWeights):
        return GivenDesign(Survey(), design)
    _refuse_stages("design", design)
    if not isinstance(design, str | pl.Expr):
        rule = "be a column of clusters, a `Survey` or `ReplicateWeights`"
        checks.reject_type("design", rule, design)
    return GivenDesign(Survey(design), is_column=True)
