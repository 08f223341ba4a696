"""What a group's AUC is compared with, and the variance of the difference.

Everybody's AUC shares the group's rows. The rest's does not, but would take a curve of its
own for every group; instead its sums are those over everybody less those over the group, and
how the group's rows place the others is summed over the group's rows. One sort serves all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from polars_wroc.confusion import by_descending_score, class_weights, if_both_classes
from polars_wroc.inputs import WEIGHT
from polars_wroc.placements import place_among, surroundings
from polars_wroc.rows import Rows
from polars_wroc.staged import Fields, Step, in_columns
from polars_wroc.variance import CLASSES, Units, Variance

AUC, REFERENCE_AUC, DIFFERENCE_VARIANCE = "__auc", "__reference_auc", "__difference_variance"

# Weights around a row: within its group and among everybody, and there also with squared
# weights, alone and times what each row misranks.
_MISRANKED, _AHEAD, _TIED = "__misranked", "__ahead", "__tied"
_ALL_MISRANKED, _SQUARES, _TIED_SQUARES = "__all_misranked", "__squares", "__tied_squares"
_SQUARES_MISRANKED = "__squares_misranked"
_OTHER = dict(zip(CLASSES, reversed(CLASSES), strict=True))

IsReference = Callable[[pl.Expr], pl.Expr]


def against_overall(rows: Rows, apart: Sequence[str], units: Units) -> pl.LazyFrame:
    """Compare each group with everybody; groups that differ in a key ``apart`` never meet."""
    ordered = _place_own(rows, _place_among_all(rows, by_descending_score(rows), apart))
    sums = rows.reduce(ordered, _own_sums(units) | _among_sums(units))
    own, everybody = _Sample("own", units), _Sample("all", units)
    steps = [_everybody(apart), *own.steps, *everybody.steps, _overlap_step(own, everybody)]
    return in_columns(sums, steps)


def against_rest(rows: Rows, apart: Sequence[str], units: Units) -> pl.LazyFrame:
    """Compare each group with all rows that are not in it."""
    ordered = _place_among_all(rows, by_descending_score(rows), apart)
    ordered = _place_own(rows, _place_squares(ordered, apart, units))
    sums = rows.reduce(ordered, _own_sums(units) | _among_sums(units) | _caused_sums())
    own, rest = _Sample("own", units), _Sample("rest", units)
    steps = [_everybody(apart), _rest, *own.steps, *rest.steps, _independent_step(own, rest)]
    return in_columns(sums, steps)


def against_group(
    rows: Rows, apart: Sequence[str], units: Units, is_reference: IsReference
) -> pl.LazyFrame:
    """Compare each group with one of them, which ``is_reference`` picks by its AUC."""
    sums = rows.reduce(_place_own(rows, by_descending_score(rows)), _own_sums(units))
    # Of several best groups the first one.
    sums = sums.sort(rows.keys)
    own = _Sample("own", units)

    def reference(field: Fields) -> dict[str, pl.Expr]:
        picked = is_reference(1 - field(own.variance.centre))

        def of_reference(name: str) -> pl.Expr:
            return _over(pl.when(picked).then(field(name)).max(), apart)

        other = pl.when(~picked)
        return {
            AUC: 1 - field(own.variance.centre),
            REFERENCE_AUC: 1 - of_reference(own.variance.centre),
            DIFFERENCE_VARIANCE: other.then(
                field(own.variance.total) + of_reference(own.variance.total)
            ),
        }

    return in_columns(sums, [*own.steps, reference])


@dataclass(frozen=True)
class _Sample:
    """A set of rows with an AUC: from sums of weights around its rows to a variance."""

    name: str
    units: Units

    @property
    def variance(self) -> Variance:
        return Variance(self.units, centre=f"__centre_{self.name}", name=f"_{self.name}")

    @property
    def steps(self) -> list[Step]:
        return [self._shares, *self.variance.steps]

    def _shares(self, field: Fields) -> dict[str, pl.Expr]:
        """Turn weights that a row misranks into shares of the other class."""
        columns = {}
        weights = {side: field(self.variance.column("weight", side)) for side in CLASSES}
        for side, other in _OTHER.items():
            for power, moment in enumerate(("first", "second"), start=1):
                mass = field(f"__{moment}_mass_{side}_{self.name}")
                columns[self.variance.column(moment, side)] = mass / weights[other] ** power
        pairs = weights["pos"] * weights["neg"]
        missing = field(f"__wrong_{self.name}") / pairs
        columns[self.variance.centre] = if_both_classes(weights["pos"], weights["neg"], missing)
        return columns


def _place_among_all(rows: Rows, ordered: pl.LazyFrame, apart: Sequence[str]) -> pl.LazyFrame:
    weight = rows.observations.signed_weight
    return _add(ordered, apart, weight, {_ALL_MISRANKED: surroundings().misranked})


def _place_own(rows: Rows, ordered: pl.LazyFrame) -> pl.LazyFrame:
    around = surroundings()
    columns = {_MISRANKED: around.misranked, _AHEAD: around.ahead, _TIED: around.tied_own}
    return _add(ordered, rows.keys, rows.observations.signed_weight, columns)


def _place_squares(ordered: pl.LazyFrame, apart: Sequence[str], units: Units) -> pl.LazyFrame:
    around = surroundings()
    squares = pl.col(WEIGHT) * _unit_weight(units)
    columns = {_SQUARES: around.misranked, _TIED_SQUARES: around.tied_other}
    ordered = _add(ordered, apart, squares, columns)
    misranked = squares * pl.col(_ALL_MISRANKED)
    return _add(ordered, apart, misranked, {_SQUARES_MISRANKED: around.misranked})


def _add(
    ordered: pl.LazyFrame, keys: Sequence[str], weights: pl.Expr, columns: dict[str, pl.Expr]
) -> pl.LazyFrame:
    """Place the rows with these weights among those with the same keys; keep ``columns``."""
    before = ordered.collect_schema().names()
    return place_among(ordered, keys, weights).select(*before, **columns)


def _unit_weight(units: Units) -> pl.Expr:
    return pl.lit(1.0) if units == "frequency" else pl.col(WEIGHT).abs()


def _weights() -> dict[str, pl.Expr]:
    return dict(zip(CLASSES, class_weights(pl.col(WEIGHT)), strict=True))


def _own_sums(units: Units) -> dict[str, pl.Expr]:
    columns = {}
    unit, misranked = _unit_weight(units), pl.col(_MISRANKED)
    for side, weight in _weights().items():
        columns[f"__weight_{side}_own"] = weight.sum()
        columns[f"__squares_{side}_own"] = (weight * unit).sum()
        columns[f"__cubes_{side}_own"] = (weight * unit * unit).sum()
        columns[f"__first_mass_{side}_own"] = (weight * unit * misranked).sum()
        columns[f"__second_mass_{side}_own"] = (weight * unit * misranked * misranked).sum()
    return columns | {"__wrong_own": (_weights()["pos"] * misranked).sum()}


def _among_sums(units: Units) -> dict[str, pl.Expr]:
    """Over the rows of a group, from what they misrank among everybody."""
    columns = {}
    unit, misranked, own = _unit_weight(units), pl.col(_ALL_MISRANKED), pl.col(_MISRANKED)
    for side, weight in _weights().items():
        columns[f"__wrong_{side}_among"] = (weight * misranked).sum()
        columns[f"__first_mass_{side}_among"] = (weight * unit * misranked).sum()
        columns[f"__second_mass_{side}_among"] = (weight * unit * misranked * misranked).sum()
        columns[f"__cross_mass_{side}"] = (weight * unit * misranked * own).sum()
    return columns


def _caused_sums() -> dict[str, pl.Expr]:
    """Over everybody, from what they misrank among the rows of a group.

    Each is a sum over the group's rows of the other class: a row of everybody misranks a
    pair of them when it misranks the one that is further ahead of the other.
    """
    columns = {}
    squares = pl.col(_SQUARES)
    pairs = 2 * pl.col(_AHEAD) * squares - pl.col(_TIED) * pl.col(_TIED_SQUARES) / 4
    for side, weight in _weights().items():
        columns[f"__first_mass_{_OTHER[side]}_caused"] = (weight * squares).sum()
        columns[f"__second_mass_{_OTHER[side]}_caused"] = (weight * pairs).sum()
        cross = weight * pl.col(_SQUARES_MISRANKED)
        columns[f"__cross_mass_{_OTHER[side]}_caused"] = cross.sum()
    return columns


def _everybody(apart: Sequence[str]) -> Step:
    """Add up the groups."""

    def step(field: Fields) -> dict[str, pl.Expr]:
        columns = {"__wrong_all": _over(field("__wrong_pos_among").sum(), apart)}
        for side in CLASSES:
            for name in ("weight", "squares", "cubes"):
                total = _over(field(f"__{name}_{side}_own").sum(), apart)
                columns[f"__{name}_{side}_all"] = total
            for name in ("first_mass", "second_mass"):
                total = _over(field(f"__{name}_{side}_among").sum(), apart)
                columns[f"__{name}_{side}_all"] = total
        return columns

    return step


def _rest(field: Fields) -> dict[str, pl.Expr]:
    """Take a group's rows from everybody, and what they cause in the others."""
    within = field("__wrong_own") - field("__wrong_pos_among") - field("__wrong_neg_among")
    columns = {"__wrong_rest": field("__wrong_all") + within}
    for side in CLASSES:
        for name in ("weight", "squares", "cubes"):
            less = field(f"__{name}_{side}_all") - field(f"__{name}_{side}_own")
            columns[f"__{name}_{side}_rest"] = less
        columns[f"__first_mass_{side}_rest"] = (
            field(f"__first_mass_{side}_all")
            - field(f"__first_mass_{side}_among")
            - (field(f"__first_mass_{side}_caused") - field(f"__first_mass_{side}_own"))
        )
        columns[f"__second_mass_{side}_rest"] = (
            field(f"__second_mass_{side}_all")
            - field(f"__second_mass_{side}_among")
            - 2 * (field(f"__cross_mass_{side}_caused") - field(f"__cross_mass_{side}"))
            + (field(f"__second_mass_{side}_caused") - field(f"__second_mass_{side}_own"))
        )
    return columns


def _independent_step(own: _Sample, reference: _Sample) -> Step:
    def step(field: Fields) -> dict[str, pl.Expr]:
        variance = field(own.variance.total) + field(reference.variance.total)
        return _compared(own, reference, variance, field)

    return step


def _overlap_step(own: _Sample, everybody: _Sample) -> Step:
    """Take off twice the covariance that the group's rows make."""

    def step(field: Fields) -> dict[str, pl.Expr]:
        variance = field(own.variance.total) + field(everybody.variance.total)
        for side, other in _OTHER.items():
            variance -= 2 * _covariance(own.variance, everybody.variance, side, other, field)
        return _compared(own, everybody, variance.clip(lower_bound=0.0), field)

    return step


def _covariance(
    own: Variance, everybody: Variance, side: str, other: str, field: Fields
) -> pl.Expr:
    own_others, all_others = (field(each.column("weight", other)) for each in (own, everybody))
    centres = field(own.centre), field(everybody.centre)
    spread = (
        field(f"__cross_mass_{side}") / (own_others * all_others)
        - centres[1] * field(own.column("first", side))
        - centres[0] * field(f"__first_mass_{side}_among") / all_others
        + centres[0] * centres[1] * field(own.column("squares", side))
    )
    factors = field(own.column("factor", side)) * field(everybody.column("factor", side))
    totals = field(own.column("weight", side)) * field(everybody.column("weight", side))
    return factors.sqrt() * spread / totals


def _compared(
    own: _Sample, reference: _Sample, variance: pl.Expr, field: Fields
) -> dict[str, pl.Expr]:
    return {
        AUC: 1 - field(own.variance.centre),
        REFERENCE_AUC: 1 - field(reference.variance.centre),
        DIFFERENCE_VARIANCE: variance,
    }


def _over(value: pl.Expr, keys: Sequence[str]) -> pl.Expr:
    return value.over(keys) if keys else value
