"""References: what the AUC and rates of each group are compared with."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import polars as pl

from polars_wroc.groups.comparisons import (
    MEANS,
    OF_GROUP,
    OF_REFERENCE,
    OWN_WEIGHTS,
    PLACE,
    SQUARES,
    AucSums,
    large_enough,
    max_over,
    relative_pairs,
    sum_of_others_over,
    sum_over,
)
from polars_wroc.inputs.columns import AUDIT_KEYS, CLUSTER, MISSING, STRATUM
from polars_wroc.inputs.designs import Replicates, SampleDesign
from polars_wroc.inputs.rows import Rows
from polars_wroc.metrics.auc_variance import AUC_INFLUENCE, Units, units_of
from polars_wroc.plans.formulas import Columns, Fields, Formula, Step, first_of, kept, when
from polars_wroc.plans.queries import (
    FrameT,
    aggregate,
    collect,
    join_on_keys,
    over,
    sum_unless_null,
)
from polars_wroc.ranking.curve import CELLS
from polars_wroc.stats.proportions import TOLERANCE, credible_correlation
from polars_wroc.stats.variances import (
    DESIGN_DF,
    PRESENT,
    PRESENT_CLASSES,
    linear_variances,
    smaller_df,
)
from polars_wroc.thresholds.registry import GAP_RATES
from polars_wroc.thresholds.search import rate_influence, rate_influences, rate_variance

# Marks two groups that are compared with each other, and the second of them.
PAIR, REPEATED = "__pair", "__repeated"
# Marks a group that is the reference.
IS_REFERENCE = "__is_reference"
# Number of groups that the reference was picked from as the best; null where it was not picked.
PICKED_FROM = "__picked_from"
# Relative rounding error of a difference of cells.
_ROUNDING = 1e-14

# The pairs of a positive and a negative row of a group, and those of all other groups; relative.
PAIRS, OTHER_PAIRS = "__pairs", "__other_pairs"
# The powers of the pairs that weight the parts of a group, and the part of the degrees of freedom.
_OF_DF = "of_df"
_POWERS = dict.fromkeys(MEANS, 1) | dict.fromkeys(SQUARES, 2)


# The AUC of the reference and the difference from it, which is a share of that of `OF_GROUP` and
# `OF_REFERENCE` where the reference includes the group; and the largest change that score bins can
# make to it.
REFERENCE_AUC, DIFFERENCE, SHARE, SLACK = "reference_value", "gap", "share", "slack"


class UnitWeights(NamedTuple):
    """How the reference of a group adds up sampling units.

    Those of all groups, each times the weight ``given`` to its group, without those of the group
    itself times ``left_out``, are divided by the ``total``. ``of``: those of all groups, of the
    group and the ``"earlier"`` ones of a table, or ``"none"``, where the reference is a constant.
    """

    given: pl.Expr
    left_out: pl.Expr
    total: pl.Expr
    of: Literal["all", "earlier", "none"] = "all"


def other_name(name: str) -> str:
    """Name a cell or a metric of the reference."""
    return f"__other_{name}"


def named_segment() -> pl.Expr:
    """The name of a segment, also of that without a value."""
    return pl.col(AUDIT_KEYS[1]).fill_null(MISSING)


@dataclass(frozen=True)
class Reference:
    """What groups are compared with: one of them, which is marked by `IS_REFERENCE`.

    Groups with other partition keys are never compared.
    """

    partition_keys: Sequence[str]
    units: Units
    # The best group is chosen among those with so many rows; None where one is marked before.
    best_of: int | None = None

    @property
    def own(self) -> AucSums:
        """The sums over the rows of a group."""
        return AucSums(self.units)

    @property
    def steps(self) -> list[Step]:
        """Steps from sums to `OF_GROUP`, `OF_REFERENCE` and `DIFFERENCE`, after `choosing`."""
        own = self.own.steps if self.best_of is None else []
        return [*own, self.compared, self.difference]

    @property
    def choosing(self) -> list[Step]:
        """Steps from sums to `IS_REFERENCE`, if it is not marked yet."""
        if self.best_of is None:
            return []
        return [*self.own.steps, partial(self._best, least=self.best_of)]

    @property
    def picked_from(self) -> pl.Expr:
        """Number of groups that it was picked from, after `steps` or `choosing`."""
        return pl.lit(None, pl.Int64) if self.best_of is None else pl.col(PICKED_FROM)

    def _best(self, field: Fields, least: int) -> dict[str, pl.Expr]:
        """Mark the first group with the highest AUC, and count those that could have it."""
        candidate = when(large_enough("auc", least)).then(field(OF_GROUP.column("auc")))
        # Equal AUCs of different rows may round differently.
        highest = (candidate >= candidate.max() - TOLERANCE).fill_null(value=False)
        return {
            IS_REFERENCE: over(highest & (highest.cum_sum() == 1), self.partition_keys),
            PICKED_FROM: over(candidate.count().cast(pl.Int64), self.partition_keys),
        }

    def compared(self, field: Fields) -> Columns | Formula[Columns]:
        """Add `OF_REFERENCE`."""
        parts = OF_GROUP.parts(field)
        of_reference = {part: self.cell(value, field) for part, value in parts.items()}
        return OF_REFERENCE.columns(of_reference)

    def difference(self, field: Fields) -> dict[str, pl.Expr]:
        """Compare `OF_GROUP` with `OF_REFERENCE`; no difference of the reference group itself."""
        own, other = (each.parts(field) for each in (OF_GROUP, OF_REFERENCE))
        # Near 1 the complements have more digits.
        difference = other["one_minus_auc"] - own["one_minus_auc"]
        return {
            REFERENCE_AUC: other["auc"],
            DIFFERENCE: when(~field(IS_REFERENCE)).then(difference),
            SHARE: pl.lit(1.0),
            SLACK: own["slack"] + other["slack"],
        }

    @property
    def name(self) -> pl.Expr:
        """What results call it; null where there is none."""
        chosen = pl.when(IS_REFERENCE).then(named_segment())
        return over(chosen.drop_nulls().first(), self.partition_keys)

    def auc_weights(self) -> UnitWeights:
        """Weights of the influences of units on the AUCs of groups."""
        return UnitWeights(pl.col(IS_REFERENCE).cast(pl.Float64), pl.lit(0.0), pl.lit(1.0))

    def row_weights(self) -> UnitWeights:
        """Weights of the cells of units."""
        return self.auc_weights()

    def cell(self, own: pl.Expr, field: Fields = pl.col) -> pl.Expr:
        """Compute a cell of the reference from that of each group."""
        return max_over(when(field(IS_REFERENCE)).then(own), self.partition_keys, field)

    def sample_size(self, own: pl.Expr) -> pl.Expr:
        """Compute a number of rows of the reference, without the group, from those of groups."""
        return self.cell(own)

    def rows(self, own: pl.Expr) -> pl.Expr:
        """Compute a number of rows of the reference from those of groups."""
        return self.sample_size(own)

    def share_of_group(self, own: pl.Expr, others: pl.Expr) -> pl.Expr | None:  # noqa: ARG002
        """Proportion of the group in the reference, if that includes the group; else None."""
        return None

    def with_pairs(self, table: FrameT) -> FrameT:
        """Add `PAIR`, true of two groups that share a test, and `REPEATED`, of the second."""
        no = pl.lit(value=False)
        return table.with_columns(no.alias(PAIR), no.alias(REPEATED))


class Rest(Reference):
    """The other groups: the mean of their AUCs, weighted by their pairs, and the rates of all rows.

    Pairs of rows of different groups do not count.
    """

    def compared(self, field: Fields) -> Formula[Columns]:
        """Average the parts of the other groups; those without weight add nothing."""
        own = OF_GROUP.parts_with_variances(field)
        pairs = relative_pairs(map(field, OWN_WEIGHTS), self.partition_keys, field)
        known = field(OF_GROUP.column("auc")).is_not_null()
        (pairs,) = yield [when(known).then(pairs).otherwise(0.0)]
        (of_others,) = yield [self.of_others(pairs, field)]
        variance = own["variance"]
        of_df = when(variance > 0).then(variance**2 / own["df"]).otherwise(0.0)
        terms = {name: pairs**power * own[name] for name, power in _POWERS.items()}
        terms[_OF_DF] = pairs**4 * of_df
        terms = yield from kept(
            {name: when(pairs > 0).then(term).otherwise(0.0) for name, term in terms.items()}
        )
        others = when(of_others > 0).then(of_others)
        powers = _POWERS | {_OF_DF: 4}
        parts = yield from kept(
            {name: self._sum(term, field) / others ** powers[name] for name, term in terms.items()}
        )
        parts["df"] = parts["variance"] ** 2 / parts.pop(_OF_DF)
        parts["auc"] = 1 - parts["one_minus_auc"]
        return {PAIRS: pairs, OTHER_PAIRS: of_others} | OF_REFERENCE.columns(parts)

    def _sum(self, terms: pl.Expr, field: Fields) -> pl.Expr:
        """Add up the terms of the other groups; null where one of them has none."""
        unknown, known = terms.is_null().cast(pl.Float64), terms.fill_null(0.0)
        return when(self.of_others(unknown, field) == 0).then(self.of_others(known, field))

    def of_others(self, terms: pl.Expr, field: Fields) -> pl.Expr:
        """Add up the terms of the groups that the reference consists of."""
        return sum_of_others_over(terms, self.partition_keys, field)

    @property
    def name(self) -> pl.Expr:
        """What results call it."""
        return pl.lit("rest")

    def auc_weights(self) -> UnitWeights:
        """Weight the groups by their pairs."""
        return UnitWeights(pl.col(PAIRS), pl.col(PAIRS), pl.col(OTHER_PAIRS))

    def row_weights(self) -> UnitWeights:
        """Leave out the units of the group."""
        return UnitWeights(pl.lit(1.0), pl.lit(1.0), pl.lit(1.0))

    def with_pairs(self, table: FrameT) -> FrameT:
        """Mark two groups that are each the only other one."""
        has_rows = pl.col("n_pos") + pl.col("n_neg") > 0
        pair = has_rows & (over(has_rows.sum(), self.partition_keys) == 2)  # noqa: PLR2004
        second = over(has_rows.cum_sum(), self.partition_keys) == 2  # noqa: PLR2004
        return table.with_columns(pair.alias(PAIR), (pair & second).alias(REPEATED))

    def cell(self, own: pl.Expr, field: Fields = pl.col) -> pl.Expr:
        """Subtract the group's cell from the overall one; a difference within rounding is 0."""
        overall = sum_over(own, self.partition_keys, field)
        rest = overall - own
        return when(rest > _ROUNDING * overall).then(rest).otherwise(0.0)

    def sample_size(self, own: pl.Expr) -> pl.Expr:
        """Count the rows of the other groups."""
        return over(own.sum(), self.partition_keys) - own


class Overall(Rest):
    """All groups, the group itself included, from which it differs through the others only."""

    @property
    def name(self) -> pl.Expr:
        """What results call it."""
        return pl.lit("overall")

    def share_of_group(self, own: pl.Expr, others: pl.Expr) -> pl.Expr:
        """Proportion of the group in all rows."""
        return own / (own + others)

    def rows(self, own: pl.Expr) -> pl.Expr:
        """Count the rows of all groups."""
        return over(own.sum(), self.partition_keys)

    def difference(self, field: Fields) -> dict[str, pl.Expr]:
        """Shrink the difference to the other groups by their share of the pairs."""
        columns = super().difference(field)
        own, others = field(PAIRS), field(OTHER_PAIRS)
        share = others / (own + others)
        difference = share * columns[DIFFERENCE]
        auc = field(OF_GROUP.column("auc"))
        return {
            # A group without pairs or without others has no difference.
            REFERENCE_AUC: when(own > 0)
            .then(first_of(auc - difference, auc))
            .otherwise(columns[REFERENCE_AUC]),
            DIFFERENCE: difference,
            SHARE: share,
            SLACK: share * columns[SLACK],
        }


KINDS: tuple[str, ...] = ("rest", "overall", "best")


def read_reference(kind: str, rows: Rows, min_rows: int) -> Reference:
    """Return the reference of a kind, one of `KINDS`, for the groups of checked rows."""
    given = rows.model_keys, units_of(counted=rows.counted)
    if kind == "best":
        return Reference(*given, min_rows)
    return (Rest if kind == "rest" else Overall)(*given)


_AUC = "auc"
# Degrees of freedom of a gap in AUC: of the class in the fewest units.
AUC_DF = "__design_df_of_auc"
_WEIGHTS = _GIVEN, _LEFT_OUT, _TOTAL = "__given", "__left_out", "__total"
# Suffix of the sum over all groups.
_ALL = "_of_all"


def own_df(df: str) -> str:
    """Column of the degrees of freedom of a segment alone."""
    return f"{df}_alone"


def correlation(metric: str, field: Fields) -> pl.Expr:
    """Correlation of a metric of a group with that of its reference; 0 if one has no variance."""
    variances = [field(rate_variance(name)) for name in (metric, other_name(metric))]
    return credible_correlation(field(_covariance(metric)), *variances)


@dataclass(frozen=True)
class SurveyGaps:
    """The influences of units on AUCs, or None, and their cells if there are thresholds."""

    keys: Sequence[str]
    design: SampleDesign
    influences: pl.LazyFrame | None
    cells: pl.LazyFrame | None
    rates: Collection[str] = tuple(GAP_RATES)
    # The losses of units, if there are gaps of their means.
    losses: pl.LazyFrame | None = None
    # Whether the rest is computed at once, so that the same rows give the same bits each time.
    at_once: bool = False

    @property
    def df(self) -> int:
        """Degrees of freedom of the design, computed."""
        if isinstance(self.design, Replicates):
            return self.design.df
        return int(collect(self.design.strata.select(self.design.df)).item())

    def with_variances(self, table: pl.LazyFrame, reference: Reference) -> pl.LazyFrame:
        """Add the variances of groups and references; `AUC_DF` and `DESIGN_DF` of gaps in rates."""
        # All computed from the table as it is, since a plan that contains itself grows fast.
        added: list[pl.LazyFrame] = []
        if self.influences is not None:
            weights, within = reference.auc_weights(), reference.partition_keys
            # Each replicate has rows of both classes.
            present = () if isinstance(self.design, Replicates) else PRESENT_CLASSES
            values = [AUC_INFLUENCE]
            both = self.with_reference(self.influences, table, within, weights, values, present)
            added.append(self.variances(both, {_AUC: AUC_INFLUENCE}))
            added += self._df(both, present, AUC_DF)
            if self.cells is None:
                added += self._df(both, [PRESENT], DESIGN_DF)
        if self.cells is not None:
            weights, within = reference.row_weights(), reference.partition_keys
            both = self.with_reference(self.cells, table, within, weights, CELLS, ())
            added += [self._rate_variances(both), *self._df(both, [PRESENT], DESIGN_DF)]
        for columns in added:
            table = join_on_keys(table, columns, self.keys)
        return table

    def _df(self, both: pl.LazyFrame, kinds: Sequence[str], name: str) -> list[pl.LazyFrame]:
        """Compute degrees of freedom, also of segments alone, from units with rows of a kind."""
        sides = {name: [*kinds, *map(other_name, kinds)], own_df(name): kinds}
        return [smaller_df(both, self.keys, self.design, *each[::-1]) for each in sides.items()]

    def _rate_variances(self, both: pl.LazyFrame) -> pl.LazyFrame:
        columns = rate_influences(self.rates, self.keys, self.design)
        columns |= rate_influences(self.rates, self.keys, self.design, other_name)
        renamed = {
            rate_influence(other_name(rate)): other_name(rate_influence(rate))
            for rate in self.rates
        }
        influences = both.with_columns(**columns).rename(renamed)
        return self.variances(influences, {rate: rate_influence(rate) for rate in self.rates})

    def with_reference(
        self,
        units: pl.LazyFrame,
        table: pl.LazyFrame,
        within: Sequence[str],
        weights: UnitWeights,
        values: Sequence[str],
        present: Sequence[str],
        *,
        of_either: bool = True,
    ) -> pl.LazyFrame:
        """Return values of each group and of its reference in all units with rows of either.

        ``present`` are columns that say whether a unit has rows of a kind. Unless ``of_either``,
        there are also the units with rows of other groups only.
        """
        keys, unit = self.keys, [STRATUM, CLUSTER]
        named = (weight.alias(name) for weight, name in zip(weights[:3], _WEIGHTS, strict=True))
        groups = table.select(*keys, *([PLACE] if weights.of == "earlier" else []), *named)
        any_rows = pl.lit(1, pl.Int64).alias(PRESENT)
        own = units.select(*keys, *unit, *values, *present, any_rows)
        # In the order of the units, so that sums over groups have the same bits each time.
        weighted = join_on_keys(own, groups, keys)
        given = pl.col(_GIVEN).fill_null(0.0)
        # Units in which the reference has no rows have sums of 0; null is what is unknown of one.
        sums = {name: sum_unless_null((given * pl.col(name)).filter(given > 0)) for name in values}
        kinds = [*present, PRESENT]
        for kind in kinds:
            sums[kind] = pl.when(given > 0).then(kind).otherwise(0).sum()
        of_all = aggregate(
            weighted, [*within, *unit], {f"{name}{_ALL}": value for name, value in sums.items()}
        )
        pairs = join_on_keys(groups, of_all, within, how="inner", maintain_order="none")
        both = join_on_keys(pairs, own, [*keys, *unit], maintain_order="none")
        absent = pl.col(PRESENT).is_null()
        both = both.with_columns(
            pl.when(absent).then(0).otherwise(pl.col(name)).alias(name)
            for name in (*values, *kinds)
        )
        if weights.of == "earlier":
            both = both.with_columns(_up_to_group(values, kinds, [*within, *unit]))
        others = {
            other_name(name): (pl.col(f"{name}{_ALL}") - pl.col(_LEFT_OUT) * pl.col(name))
            / pl.col(_TOTAL)
            for name in values
        }
        left_out = (pl.col(_LEFT_OUT) > 0).cast(pl.Int64)
        for kind in kinds:
            others[other_name(kind)] = pl.col(f"{kind}{_ALL}") - left_out * pl.col(kind)
        if weights.of == "none":
            others = dict.fromkeys(map(other_name, values), pl.lit(0.0))
            others |= {other_name(kind): pl.col(kind) for kind in kinds}
        either = pl.any_horizontal(pl.col(PRESENT, other_name(PRESENT)) > 0)
        either = either if of_either else pl.lit(value=True)
        ordered = both.with_columns(**others).filter(either).sort([*keys, *unit])
        return collect(ordered, reproducible=True).lazy() if self.at_once else ordered

    def variances(self, influences: pl.LazyFrame, metrics: dict[str, str]) -> pl.LazyFrame:
        """Return the variances of metrics, each named with the influence on it."""
        products: dict[str, tuple[str, str]] = {}
        for metric, value in metrics.items():
            products[rate_variance(metric)] = value, value
            products[rate_variance(other_name(metric))] = other_name(value), other_name(value)
            products[_covariance(metric)] = value, other_name(value)
        variances = linear_variances(influences, self.keys, self.design, products)
        return variances.select(*self.keys, *products)


def _up_to_group(
    values: Sequence[str], kinds: Sequence[str], within: Sequence[str]
) -> list[pl.Expr]:
    """Add up, in each unit, the values of groups up to each group instead of those of all."""
    given = pl.col(_GIVEN).fill_null(0.0)
    terms = {
        # What is unknown of one group is unknown of all after it.
        **{each: (given * pl.col(each)).fill_null(math.nan) for each in values},
        **{each: pl.col(each) for each in kinds},
    }
    zero = pl.lit(0)
    summed = {
        name: pl.when(given > 0).then(term).otherwise(zero).cum_sum().over(within, order_by=PLACE)
        for name, term in terms.items()
    }
    return [
        (each.fill_nan(None) if name in values else each).alias(f"{name}{_ALL}")
        for name, each in summed.items()
    ]


def _covariance(metric: str) -> str:
    return f"__design_covariance_{metric}"
