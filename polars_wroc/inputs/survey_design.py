"""The design of a sample survey: strata, sampling units and the sampled share of the population."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import polars as pl

from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import CLUSTER, STRATUM, IntoColumn
from polars_wroc.plans.checks import require_at_collect

Lonely: TypeAlias = Literal["null", "certainty", "adjust"]

# Of a row: the correction for a finite population, as given.
FPC = "__fpc"
# Columns of sampled rows, and the arguments that give them.
SURVEY_COLUMNS = {CLUSTER: "cluster", STRATUM: "strata", FPC: "fpc"}
# Of a stratum: the first `FPC` that is null or NaN, as text.
_NO_NUMBER = "__fpc_no_number"
# Of a stratum: its number of sampling units, and their proportion of those in the population.
UNITS, FRACTION = "__units", "__fraction"


@dataclass(frozen=True)
class SurveyArguments:
    """How the rows were sampled, as the caller says; without ``cluster`` each row is a unit."""

    cluster: IntoColumn | None = None
    strata: IntoColumn | None = None
    fpc: IntoColumn | None = None
    lonely: Lonely = "null"

    def __post_init__(self) -> None:
        """Check the options; columns are checked with the frame."""
        arguments.option("lonely", self.lonely, get_args(Lonely))
        if self.lonely != "null" and self.strata is None:
            msg = f"`lonely` must be 'null' without `strata`; found {self.lonely!r}"
            raise ValueError(msg)

    def require_none(self, argument: str) -> None:
        """Raise where a design is given with an argument that must not come with one."""
        if self.given:
            msg = (
                f"`cluster`, `strata` and `fpc` must be None with `{argument}`; "
                f"found {arguments.named(self.names)}"
            )
            raise ValueError(msg)

    @property
    def names(self) -> list[str]:
        """The names of the columns' arguments that are given."""
        return arguments.given(cluster=self.cluster, strata=self.strata, fpc=self.fpc)

    @property
    def given(self) -> bool:
        """Whether anything is known."""
        return self.cluster is not None or self.stratified

    @property
    def stratified(self) -> bool:
        """Whether more is known than which rows are in the same cluster."""
        return self.strata is not None or self.fpc is not None


@dataclass(frozen=True)
class SurveyDesign:
    """The strata of all rows of a frame, those that are missing or have no weight included.

    ``strata`` has a row for each, with `STRATUM`, `UNITS` and `FRACTION`. ``lonely`` says what the
    only unit of a stratum adds to a variance: nothing is known, nothing, or its squared total.
    ``given`` are the names of the arguments that the design comes from.
    """

    strata: pl.LazyFrame
    lonely: Lonely
    given: Sequence[str]

    @property
    def df(self) -> pl.Expr:
        """Degrees of freedom, as an aggregate of ``strata``: units less strata."""
        return pl.col(UNITS).sum() - pl.len()


def with_design(rows: pl.LazyFrame, lonely: Lonely) -> tuple[pl.LazyFrame, SurveyDesign]:
    """Complete the columns `STRATUM` and `CLUSTER` of all rows, and return their design.

    A row without a cluster is one; without strata there is one stratum. `FPC` is dropped.
    """
    given = rows.collect_schema()
    names = [argument for column, argument in SURVEY_COLUMNS.items() if column in given]
    units = pl.col(CLUSTER).n_unique() if CLUSTER in given else pl.len()
    if CLUSTER not in given:
        rows = rows.with_row_index(CLUSTER)
    if STRATUM not in given:
        rows = rows.with_columns(pl.lit(0, pl.Int8).alias(STRATUM))
    # The source is read once for both.
    rows = rows.cache()
    columns = {UNITS: units.cast(pl.Int64)}
    if FPC in given:
        columns |= {f"{FPC}_{end}": getattr(pl.col(FPC), end)() for end in ("min", "max")}
        unknown = pl.col(FPC).is_null() | pl.col(FPC).is_nan()
        columns[_NO_NUMBER] = pl.col(FPC).filter(unknown).cast(pl.String).fill_null("null").first()
    strata = rows.group_by(STRATUM).agg(**columns)
    fraction = _fraction(stratified=STRATUM in given) if FPC in given else pl.lit(0.0)
    strata = strata.select(STRATUM, UNITS, fraction.alias(FRACTION))
    return rows.drop(FPC, strict=False), SurveyDesign(strata, lonely, names)


def _fraction(*, stratified: bool) -> pl.Expr:
    """Return the sampled fraction of a stratum, from a fraction or the number of units."""
    low, high, units = (pl.col(name) for name in (f"{FPC}_min", f"{FPC}_max", UNITS))
    no_number = pl.col(_NO_NUMBER)
    same = "`fpc` must be the same number in all rows"
    size = "`fpc` above 1 must be the number of units in the population, at least those sampled"
    checks = (
        require_at_collect(no_number.is_null(), "`fpc` must be a number in all rows", no_number),
        require_at_collect(
            no_number.is_not_null() | (low == high),
            f"{same} of a stratum" if stratified else f"{same}, as `strata` is not given",
            pl.format("{} to {}", low, high),
        ),
        require_at_collect(low >= 0, "`fpc` must be zero or more", low),
        require_at_collect(
            (low <= 1) | (low >= units), size, pl.format("{}, with {} units", low, units)
        ),
    )
    fraction = pl.when(low <= 1).then(low).otherwise(units / low)
    return pl.when(pl.all_horizontal(checks)).then(fraction)
