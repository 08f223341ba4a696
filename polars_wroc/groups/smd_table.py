"""The table of standardized mean differences, from the moments of the scores of each category."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Literal, TypeAlias

import polars as pl

from polars_wroc.groups.categories import (
    COMPARED,
    IS_REFERENCE,
    SEGMENT,
    UNKNOWN,
    Categories,
    CategoryReference,
    with_reference,
)
from polars_wroc.groups.references import other_name
from polars_wroc.inputs.arguments import WeightType
from polars_wroc.inputs.columns import SCORE, WEIGHT
from polars_wroc.inputs.rows import Rows
from polars_wroc.plans.by_keys import join_on_keys
from polars_wroc.plans.steps import Fields, in_columns
from polars_wroc.stats.distributions import normal_quantile, two_sided_p_value
from polars_wroc.stats.moments import (
    combined,
    moment_columns,
    moments,
    moments_of_rows,
    others,
)
from polars_wroc.stats.proportions import is_exact

Denominator: TypeAlias = Literal["overall", "pooled", "reference"]

REST, REFERENCE = "rest", "reference"
SMD_COLUMNS = (
    "n",
    "weight",
    "mean_score",
    "sd_score",
    "reference",
    "reference_mean",
    "difference",
    "denominator_sd",
    "smd",
    "smd_low",
    "smd_high",
    "p_value",
    "excluded",
)
# Of a category, of all known ones, of all rows, and of the reference.
_OWN, _KNOWN, _ALL = "category", "known", "all_rows"
_OTHER = other_name(_OWN)
_MOVED, _LEFT, _MEAN = "moved", "left", "__mean_of_rest"
# The samples whose mean variance is the square of each denominator.
_BEHIND = {"overall": (_ALL,), "pooled": (_OWN, _OTHER), "reference": (_OTHER,)}
_SQUARE, _SE = "__squared_denominator", "__se_of_smd"


@dataclass(frozen=True)
class SmdTable:
    """How the scores of categories are compared."""

    categories: Categories
    reference: CategoryReference
    denominator: Denominator
    min_share: float
    level: float
    weight_type: WeightType

    def table(self, rows: Rows) -> pl.LazyFrame:
        """Compare the mean score of each category with that of its reference."""
        cells = self._cells(rows).cache()
        members = self.categories.members(cells, ["n", *moment_columns(_OWN)])
        added = self.categories.aggregates | {"n": pl.col("n").sum()}
        own = combined(members, self.categories.keys, _OWN, added)
        weighed = own.with_columns(weight=_finite(moments(_OWN, pl.col).weight))
        shares = self.categories.with_shares(weighed, self.min_share)
        marked = self.reference.marked(shares, self.categories.partition_keys)
        compared = self._with_reference(self._with_rest(marked))
        models = self.categories.models
        compared = join_on_keys(compared, _named(_ALL, cells, models), models)
        steps = [self._denominators, _differences, self._errors, self._shown]
        return self.categories.ordered(in_columns(compared, steps), SMD_COLUMNS)

    def _cells(self, rows: Rows) -> pl.LazyFrame:
        """Return the moments of all keys crossed."""
        weight = pl.col(WEIGHT).cast(pl.Float64).abs()
        squared = weight if self.weight_type == "frequency" else weight**2
        score = pl.col(SCORE).cast(pl.Float64)
        added = {"n": weight.count().cast(pl.Int64)}
        return moments_of_rows(rows.frame, rows.keys, _OWN, score, weight, squared, added)

    def _with_rest(self, table: pl.LazyFrame) -> pl.LazyFrame:
        """Add the moments of the other known categories of each one, as `_OTHER`."""
        table, keys = table.cache(), self.categories.partition_keys
        joined = join_on_keys(table, _named(_KNOWN, table.filter(~pl.col(UNKNOWN)), keys), keys)
        return in_columns(joined, [_moved, _left, _rest])

    def _with_reference(self, table: pl.LazyFrame) -> pl.LazyFrame:
        """Replace the rest where a category is named as reference, and name all references."""
        rest = {REFERENCE: pl.when(moments(_OTHER, pl.col).weight > 0).then(pl.lit(REST))}
        if not self.reference.named:
            return table.with_columns(**rest)
        of_category, of_other = (moments(name, pl.col).columns(name) for name in (_OWN, _OTHER))
        named = with_reference(table, [SEGMENT, *of_category], self.categories.partition_keys)
        columns = {REFERENCE: SEGMENT} | dict(zip(of_other, of_category, strict=True))
        is_named = pl.when(self.reference.is_named)
        return named.with_columns(
            is_named.then(other_name(own)).otherwise((of_other | rest)[column]).alias(column)
            for column, own in columns.items()
        )

    def _denominators(self, field: Fields) -> dict[str, pl.Expr]:
        variances = [moments(name, field).variance for name in _BEHIND[self.denominator]]
        square = reduce(add, variances) / len(variances)
        return {_SQUARE: pl.when((square > 0) & square.is_finite()).then(square)}

    def _errors(self, field: Fields) -> dict[str, pl.Expr]:
        """Add the standard error, from the influences of rows on both means and the denominator.

        The rows of a sample behind the denominator have an influence on it of ``slope`` times the
        squared deviation from their centre less its mean.
        """
        smd, square = field("smd"), field(_SQUARE)
        samples = {name: moments(name, field) for name in (_OWN, _OTHER, _ALL)}
        behind = _BEHIND[self.denominator]
        slopes = {name: -smd / (2 * square * len(behind) * samples[name].weight) for name in behind}
        # The influences of the rows of a sample add up to 0.
        means = {name: samples[name].squares / samples[name].weight for name in behind}
        variance: pl.Expr = pl.lit(0.0)
        for name in behind:
            each, mean = samples[name], means[name]
            spread = each.powers[4] - 2 * mean * each.powers[2] + mean**2 * each.powers[0]
            variance += slopes[name] ** 2 * spread
        for name, sign in ((_OWN, 1), (_OTHER, -1)):
            each = samples[name]
            of_mean = sign / (each.weight * square.sqrt())
            variance += of_mean**2 * each.powers[2]
            # These rows are behind the denominator too, alone or among all.
            for sample in (one for one in behind if one in (name, _ALL)):
                shift = each.centre - samples[sample].centre
                product = each.powers[3] + 2 * shift * each.powers[2]
                product += (shift**2 - means[sample]) * each.powers[1]
                variance += 2 * of_mean * slopes[sample] * product
        sums = [each.powers[0] for each in samples.values()]
        sums.append(reduce(add, (samples[name].powers[4] for name in behind)))
        exact = pl.all_horizontal(is_exact(each) for each in sums)
        return {_SE: pl.when(exact).then(variance.clip(lower_bound=0.0).sqrt())}

    def _shown(self, field: Fields) -> dict[str, pl.Expr]:
        own, other = (moments(name, field) for name in (_OWN, _OTHER))
        smd, se = field("smd"), field(_SE)
        known = pl.when(~field(UNKNOWN))
        limited = pl.when(~field(UNKNOWN) & ~field(IS_REFERENCE) & (se > 0) & se.is_finite())
        tested = pl.when(field(COMPARED) & ~field(IS_REFERENCE) & (se > 0) & se.is_finite())
        margin = normal_quantile((1 + self.level) / 2) * se
        return {
            "mean_score": _finite(own.centre),
            "sd_score": _finite(own.variance.sqrt()),
            REFERENCE: known.then(field(REFERENCE)),
            "reference_mean": known.then(_finite(other.centre)),
            "difference": known.then(_finite(field("difference"))),
            "denominator_sd": known.then(field(_SQUARE).sqrt()),
            "smd": known.then(smd),
            "smd_low": limited.then(smd - margin),
            "smd_high": limited.then(smd + margin),
            "p_value": tested.then(two_sided_p_value(smd / se)),
        }


def _differences(field: Fields) -> dict[str, pl.Expr]:
    difference = moments(_OWN, field).centre - moments(_OTHER, field).centre
    return {"difference": difference, "smd": _finite(difference / field(_SQUARE).sqrt())}


def _moved(field: Fields) -> dict[str, pl.Expr]:
    """Move the moments of a category to the mean of all known ones."""
    return moments(_OWN, field).about(moments(_KNOWN, field).centre).columns(_MOVED)


def _left(field: Fields) -> dict[str, pl.Expr]:
    """Add the moments of the other categories, about the mean of all, and their own mean."""
    own, known, part = (moments(name, field) for name in (_OWN, _KNOWN, _MOVED))
    left = others(known, part)
    shift = own.weight * (own.centre - known.centre).fill_null(0.0)
    mean = pl.when(left.weight > 0).then(known.centre - shift / left.weight)
    return left.columns(_LEFT) | {_MEAN: mean}


def _rest(field: Fields) -> dict[str, pl.Expr]:
    return moments(_LEFT, field).about_mean(field(_MEAN)).columns(_OTHER)


def _named(name: str, parts: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    """Combine the moments of categories to those of ``name``, one row for each of the keys."""
    whole = combined(parts, keys, _OWN, {})
    return whole.select(*keys, **moments(_OWN, pl.col).columns(name))


def _finite(value: pl.Expr) -> pl.Expr:
    return pl.when(value.is_finite()).then(value)
