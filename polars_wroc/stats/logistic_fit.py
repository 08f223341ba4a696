"""Logistic regressions of one variable, one for each of many groups, in a plan.

Newton's method is a chain of joins and sums: each step joins the coefficients of every group to
its rows and adds up the gradient and the Hessian. In a plan the number of steps is fixed, but a
group that has converged is no longer joined with its rows.

There are two regressions of the same rows: in the free one the slope is estimated, in the fixed
one it is given.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_wroc.plans.queries import Fields, collect, in_columns

# Of a row: its group, the variable, its weight and the square of it, both negative in a row of the
# negative class; a row that stands for others may have one of these only. The weights of a group
# add up to about 1, the variable has a mean and a standard deviation of about 0 and 1.
ROW_COLUMNS = GROUP, VARIABLE, SHARE, SQUARES = tuple(
    f"__fit_{name}" for name in ("group", "variable", "share", "squares")
)
# A column of the coefficients: the number of the group, or -1 minus it once it has converged.
_TURN = "__fit_turn"
_STEPS, _POOLED_STEPS = 20, 10
_TOLERANCE = 1e-8
# Bins of rows for a first approximation, per standard deviation.
_BINS = 256
_BIN, _POSITIVE, _NEAR = "__fit_bin", "__fit_positive", "_near"
# The most bins on either side of 0; and how many keys a group has, for each bin and class one.
_MOST_BINS, _KEYS_OF_GROUP = 1 << 30, 1 << 33
# Powers of the variable of a row, or of its distance from the middle of a bin.
_VALUE = pl.col(VARIABLE)
_POWERS = pl.lit(1.0), _VALUE, _VALUE * _VALUE, _VALUE * _VALUE * _VALUE
# With a variance below this, for bins of width 1, the values of a bin are taken as equal.
_LEAST_VARIANCE = 1e-10


class Regression:
    """One of the two regressions, and the names of its columns.

    A coefficient is NaN where there is none: in ``start`` where it must not be estimated, in the
    result also where Newton's method does not converge. ``error`` is a row's probability of the
    other class, ``variance`` that of the slope if it is free, else of the intercept,
    ``information`` the information on that coefficient per unit of weight, and ``converged``
    whether the last step changed nothing.
    """

    def __init__(self, name: str, *, free: bool) -> None:
        self._name, self._free = name, free
        self.intercept, self.slope = f"__{name}_intercept", f"__{name}_slope"
        self.error, self.converged = f"__{name}_error", f"__{name}_converged"
        self.variance, self.information = f"__{name}_variance", f"__{name}_information"

    def probability_of_other_class(self) -> pl.Expr:
        """Probability of the class that a row is not in."""
        linear = pl.col(self.intercept) + pl.col(self.slope) * pl.col(VARIABLE)
        return 1 / (1 + ((pl.col(SHARE) + pl.col(SQUARES)).sign() * linear).exp())

    def hessian_sums(self) -> dict[str, pl.Expr]:
        """Sum weights times the variance of the label, times powers of the variable."""
        error = pl.col(self.error)
        return self._sums("hessian", pl.col(SHARE).abs() * error * (1 - error), 2)

    def gradient_sums(self) -> dict[str, pl.Expr]:
        """Sum weights times residuals, times powers of the variable."""
        return self._sums("gradient", pl.col(SHARE) * pl.col(self.error), 1)

    def square_sums(self) -> dict[str, pl.Expr]:
        """Sum squared weights times squared residuals, and times those the model expects.

        Both also times powers of the variable.
        """
        squares, error = pl.col(SQUARES).abs(), pl.col(self.error)
        expected = self._sums("expected", squares * error * (1 - error), 2)
        return self._sums("squares", squares * error**2, 2) | expected

    def _sums(self, kind: str, value: pl.Expr, highest: int) -> dict[str, pl.Expr]:
        names = self._names(kind, highest)
        return {name: (value * power).sum() for name, power in zip(names, _POWERS, strict=False)}

    def _names(self, kind: str, highest: int) -> list[str]:
        """Name these sums, of the variable to the power of 0 and, if the slope is free, more."""
        return [f"__{self._name}_{kind}_{n}" for n in range(highest + 1 if self._free else 1)]

    def _hessian(self, field: Fields) -> tuple[list[pl.Expr], pl.Expr]:
        """Refer to the elements of the Hessian, and compute its determinant."""
        hessian = [field(name) for name in self._names("hessian", 2)]
        return hessian, hessian[0] * hessian[2] - hessian[1] ** 2 if self._free else hessian[0]

    def change(self, field: Fields) -> tuple[pl.Expr, pl.Expr]:
        """Newton's step of the intercept and of the slope."""
        hessian, determinant = self._hessian(field)
        gradient = [field(name) for name in self._names("gradient", 1)]
        if not self._free:
            return gradient[0] / determinant, pl.lit(0.0)
        (h0, h1, h2), (g0, g1) = hessian, gradient
        return (h2 * g0 - h1 * g1) / determinant, (h0 * g1 - h1 * g0) / determinant

    def improved(self, field: Fields) -> dict[str, pl.Expr]:
        """Coefficients after a step, and whether it was so small that they have converged."""
        steps = self.change(field)
        names = (self.intercept, self.slope)
        size = sum((field(name).abs() for name in names), pl.lit(1.0))
        small = pl.max_horizontal(step.abs() for step in steps) <= _TOLERANCE * size
        done = field(_TURN) < 0
        changed = {
            name: pl.when(done).then(field(name)).otherwise(field(name) + step)
            for name, step in zip(names, steps, strict=True)
        }
        return {**changed, self.converged: done | small.fill_null(value=False)}

    def precision(self, field: Fields) -> dict[str, pl.Expr]:
        """Variance of the slope if it is free, else of the intercept; its information.

        The larger of the sandwich and of what the model expects of it: in small samples the squared
        residuals of the rare rows are often missing, and a curved model is only in the sandwich.
        """
        h, determinant = self._hessian(field)
        # The square of what a row moves it by, times the determinant, by powers of the variable.
        moved = [h[1] ** 2, -2 * h[0] * h[1], h[0] ** 2] if self._free else [pl.lit(1.0)]
        variance = pl.max_horizontal(
            sum(field(name) * part for name, part in zip(self._names(kind, 2), moved, strict=True))
            for kind in ("squares", "expected")
        )
        information = determinant / h[0] if self._free else determinant
        known = pl.when(field(self.intercept).is_finite())
        values = {self.variance: variance / determinant**2, self.information: information}
        return {name: known.then(value) for name, value in values.items()}


FREE, FIXED = Regression("free", free=True), Regression("fixed", free=False)
REGRESSIONS = (FREE, FIXED)
VARIANCES = tuple(each.variance for each in REGRESSIONS)
COEFFICIENTS = tuple(name for each in REGRESSIONS for name in (each.intercept, each.slope))


def prepared(rows: pl.LazyFrame, groups: pl.LazyFrame) -> pl.LazyFrame:
    """Add a row without weight to each of the ``groups``, for `fitted` and `with_variances`.

    Once a group has converged its coefficients are joined to this row alone, so that its other
    rows take no more time. The ``rows`` have `ROW_COLUMNS`.
    """
    nothing = {name: pl.lit(0.0) for name in ROW_COLUMNS[1:]}
    ends = groups.select((-1 - pl.col(GROUP)).alias(GROUP), **nothing)
    return pl.concat([rows.select(ROW_COLUMNS), ends])


def fitted(rows: pl.LazyFrame, start: pl.LazyFrame) -> pl.LazyFrame:
    """Estimate the `COEFFICIENTS` of each group, from those of ``start``.

    ``start`` has each `GROUP` once. Of `FIXED` only the intercept changes.
    """
    near = _iterated(_pooled(rows), start, _POOLED_STEPS)
    closer = {name: pl.col(f"{name}{_NEAR}") for name in COEFFICIENTS}
    nearer = start.join(near, on=GROUP, suffix=_NEAR).with_columns(
        pl.when(value.is_finite()).then(value).otherwise(name).alias(name)
        for name, value in closer.items()
    )
    return _iterated(rows, nearer.select(GROUP, *COEFFICIENTS), _STEPS)


def fitted_at_once(rows: pl.DataFrame, start: pl.DataFrame) -> pl.DataFrame:
    """Estimate the `COEFFICIENTS` of each group of few rows, which are in memory."""
    return collect(_iterated(rows.lazy(), start.lazy(), _STEPS, at_once=True))


def with_variances(rows: pl.LazyFrame, fit: pl.LazyFrame) -> pl.LazyFrame:
    """Return the coefficients of each group with the variances of the estimated ones.

    They are those of `Regression.precision`, from `SQUARES`; the information is there too.
    """
    joined = rows.join(fit, on=GROUP, maintain_order="none").with_columns(
        each.probability_of_other_class().alias(each.error) for each in REGRESSIONS
    )
    sums: dict[str, pl.Expr] = {name: pl.col(name).first() for name in COEFFICIENTS}
    for each in REGRESSIONS:
        sums |= each.hessian_sums() | each.square_sums()
    known = FREE.precision(pl.col) | FIXED.precision(pl.col)
    coefficients = (pl.col(name).fill_nan(None) for name in COEFFICIENTS)
    return joined.group_by(GROUP).agg(**sums).select(GROUP, *coefficients, **known)


def _pooled(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Pool the rows of a class that are close together."""
    keys = [
        pl.col(GROUP),
        (pl.col(VARIABLE) * _BINS).round().cast(pl.Int64).alias(_BIN),
        (pl.col(SHARE) > 0).alias(_POSITIVE),
    ]
    sums = [pl.col(VARIABLE).mean(), pl.col(SHARE).sum(), pl.col(SQUARES).sum()]
    return rows.group_by(keys).agg(sums).drop(_BIN, _POSITIVE)


def binned(rows: pl.LazyFrame, weights: Sequence[str]) -> pl.LazyFrame:
    """Sum the rows of a class that are close together; sums of parts of the rows add up.

    The ``weights`` are `SHARE`, or both it and `SQUARES`.
    """
    place = pl.col(VARIABLE) * _BINS
    number = place.round().clip(-_MOST_BINS, _MOST_BINS)
    # One key is found faster than three.
    in_group = (number.cast(pl.Int64) + _MOST_BINS) * 2 + (pl.col(SHARE) > 0).cast(pl.Int64)
    numbered = rows.select(
        (pl.col(GROUP) * _KEYS_OF_GROUP + in_group).alias(_BIN),
        (place - number).alias(VARIABLE),
        *weights,
    )
    sums = {
        _moment(name, power): (pl.col(name) * value).sum()
        for name in weights
        for power, value in enumerate(_POWERS)
    }
    return numbered.group_by(_BIN).agg(**sums)


def added_bins(bins: pl.LazyFrame) -> pl.LazyFrame:
    """Add up the sums of `binned` parts."""
    return bins.group_by(_BIN).agg(pl.exclude(_BIN).sum())


def rows_of_bins(bins: pl.LazyFrame, weights: Sequence[str]) -> pl.LazyFrame:
    """Return few rows with `ROW_COLUMNS` that stand for those that were `binned`.

    Two rows have the sum and the first three moments of the weights in a bin (Gauss's rule), and
    two those of the squares. The fit differs by the fourth power of the width of the bins.
    """
    in_group = pl.col(_BIN) % _KEYS_OF_GROUP
    group = pl.col(_BIN) // _KEYS_OF_GROUP
    parts = []
    for name in weights:
        known = bins.filter(pl.col(_moment(name, 0)) != 0)
        places, sizes = _nodes(name, in_group // 2 - _MOST_BINS)
        part = known.select(group.alias(GROUP), places.alias(VARIABLE), sizes.alias(name))
        others = {other: pl.lit(0.0) for other in (SHARE, SQUARES) if other != name}
        parts.append(part.explode(VARIABLE, name).with_columns(**others).select(ROW_COLUMNS))
    return pl.concat(parts)


def _moment(name: str, power: int) -> str:
    return f"{name}_moment_{power}"


def _nodes(name: str, middle: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """Return the places and the weights of two rows with the moments of those in a bin."""
    size, *others = (pl.col(_moment(name, power)) for power in range(len(_POWERS)))
    mean, second, third = (sum_ / size for sum_ in others)
    variance = second - mean**2
    varies = variance > _LEAST_VARIANCE
    deviation = variance.sqrt()
    skewness = (third - 3 * mean * variance - mean**3) / (variance * deviation)
    above = skewness / 2 + (1 + skewness**2 / 4).sqrt()
    share = pl.when(varies).then(1 / (1 + above**2)).otherwise(0.5)
    places = (
        pl.when(varies).then(mean + deviation * step).otherwise(mean)
        for step in (above, -1 / above)
    )
    return (
        pl.concat_list([(middle + place) / _BINS for place in places]),
        pl.concat_list([size * share, size * (1 - share)]),
    )


def _iterated(
    rows: pl.LazyFrame, start: pl.LazyFrame, steps: int, *, at_once: bool = False
) -> pl.LazyFrame:
    """Take the steps; coefficients of a regression that has not converged become NaN.

    If they are taken ``at_once``, none follows when all have converged.
    """
    state = start.select(pl.col(GROUP).alias(_TURN), *COEFFICIENTS)
    for _ in range(steps):
        state = _step(rows, state.select(_TURN, *COEFFICIENTS))
        if at_once:
            taken = collect(state, reproducible=True)
            state = taken.lazy()
            if (taken[_TURN] < 0).all():
                break
    turn = pl.col(_TURN)
    return state.select(
        pl.when(turn < 0).then(-1 - turn).otherwise(turn).alias(GROUP),
        *(
            pl.when(each.converged).then(name).otherwise(float("nan")).alias(name)
            for each in REGRESSIONS
            for name in (each.intercept, each.slope)
        ),
    )


def _step(rows: pl.LazyFrame, state: pl.LazyFrame) -> pl.LazyFrame:
    """Take one step in each group that has not converged."""
    joined = rows.join(state, left_on=GROUP, right_on=_TURN, maintain_order="none")
    sums: dict[str, pl.Expr] = {}
    for each in REGRESSIONS:
        joined = joined.with_columns(each.probability_of_other_class().alias(each.error))
        sums |= each.gradient_sums() | each.hessian_sums()
    kept = {name: pl.col(name).first() for name in COEFFICIENTS}
    added = joined.group_by(pl.col(GROUP).alias(_TURN)).agg(**sums, **kept)
    return in_columns(added, [*(each.improved for each in REGRESSIONS), _next_turn])


def _next_turn(field: Fields) -> dict[str, pl.Expr]:
    """Mark the groups in which nothing remains to be estimated."""
    turn = field(_TURN)
    ended = (field(each.converged) | field(each.intercept).is_nan() for each in REGRESSIONS)
    return {_TURN: pl.when((turn >= 0) & pl.all_horizontal(ended)).then(-1 - turn).otherwise(turn)}
