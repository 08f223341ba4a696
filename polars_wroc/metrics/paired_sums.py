"""Sums over the rows of each group that comparisons of pairs of models need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from polars_wroc.inputs.columns import WEIGHT
from polars_wroc.inputs.frames import score_column
from polars_wroc.inputs.rows import Rows, class_weights
from polars_wroc.inputs.survey_design import Design, Replicates
from polars_wroc.metrics.auc_design import unit_influences
from polars_wroc.metrics.paired_tests import DESIGN, ONE_MINUS, DelongTest
from polars_wroc.metrics.replicate_aucs import replicate_influences
from polars_wroc.plans.by_keys import join_on_keys
from polars_wroc.plans.steps import as_struct
from polars_wroc.ranking.curve import if_both_classes
from polars_wroc.ranking.placed_rows import PlacedRows
from polars_wroc.ranking.placements import ClassRows, Placements, row_curve
from polars_wroc.stats.design_variance import DESIGN_DF, PRESENT_CLASSES, linear_variances

# The numbers of the models of a pair.
FIRST, SECOND = "__first", "__second"
_PAIR = "__pair"
_NUMBER = pl.UInt32
# Pairs per batch: the time to plan a query grows faster than its number of columns.
_AT_ONCE = 32


@dataclass(frozen=True)
class Pair:
    """Two models by number, and how they are compared."""

    first: int
    second: int
    test: DelongTest

    @property
    def models(self) -> tuple[int, int]:
        """Return the numbers of both."""
        return self.first, self.second

    @property
    def placements(self) -> Placements:
        """Differences of the placement values of both models."""
        one, other = (pl.col(_placement(model)) for model in self.models)
        return _placements(one - other)

    @property
    def name(self) -> str:
        """Name of the column of the sums, and suffix of others."""
        return f"__pair_{self.first}_{self.second}"

    def column(self, name: str) -> pl.Expr:
        """Refer to a column of this pair."""
        return pl.col(f"{name}{self.name}")

    @property
    def design(self) -> list[str]:
        """Names of the columns that become `DESIGN`."""
        return [f"{name}{self.name}" for name in DESIGN]

    def cluster_sums(self) -> dict[str, pl.Expr]:
        """Values whose sums over its cluster `sums` needs in each row."""
        sums = self.test.variance.cluster_sums(self.placements)
        return {f"{name}{self.name}": value for name, value in sums.items()}

    def sums(self) -> pl.Expr:
        """Aggregate the differences to the sums of their variance."""
        return as_struct(self.test.variance.sums(self.placements, self.column))

    def as_row(self) -> pl.Expr:
        """Return a struct of the pair, 1 - AUC of both models and the sums."""
        columns = {
            FIRST: pl.lit(self.first, _NUMBER),
            SECOND: pl.lit(self.second, _NUMBER),
            **{
                name: pl.col(_one_minus_auc(model))
                for model, name in zip(self.models, ONE_MINUS, strict=True)
            },
            **self.test.of_models(*self.models),
        }
        if self.test.designed:
            columns |= {name: pl.col(own) for name, own in zip(DESIGN, self.design, strict=True)}
            columns[DESIGN_DF] = pl.col(DESIGN_DF)
        named = [column.alias(name) for name, column in columns.items()]
        return pl.struct(*named, pl.col(self.name).struct.field("*"))


def placement_columns(models: int) -> dict[str, dict[str, pl.Expr]]:
    """Name a column of placement values for each score."""
    pos, neg = row_curve().placements
    of_row = pl.when(pl.col(WEIGHT) > 0).then(pos.placement).otherwise(neg.placement)
    return {score_column(model): {_placement(model): of_row} for model in range(models)}


def sums_of_pairs(placed: PlacedRows, pairs: Sequence[Pair], rows: Rows) -> pl.LazyFrame:
    """Return a row per group and pair of placed rows, with the columns that the tests need."""
    batches = [pairs[start : start + _AT_ONCE] for start in range(0, len(pairs), _AT_ONCE)]
    if len(batches) > 1 or rows.design is not None:
        # Computed once for all that use it. No filter is pushed down through a cache.
        placed = replace(placed, frame=placed.frame.cache())
    # Not in parallel, which would hold the columns of all batches in memory.
    return pl.concat([_sums_of_batch(placed, batch, rows) for batch in batches], parallel=False)


def _sums_of_batch(placed: PlacedRows, pairs: Sequence[Pair], rows: Rows) -> pl.LazyFrame:
    """Return a row per group and pair: 1 - AUC of both models, and sums of placement values."""
    test = pairs[0].test
    if test.units == "cluster":
        cluster_sums: dict[str, pl.Expr] = {}
        for pair in pairs:
            cluster_sums |= pair.cluster_sums()
        placed = placed.with_cluster_sums(cluster_sums)
    weight = pl.col(WEIGHT)
    dp, dn = class_weights(weight)
    sums: dict[str, pl.Expr] = {
        "n": weight.is_not_null().sum().cast(pl.Int64),
        "n_missing": weight.null_count().cast(pl.Int64),
    }
    for model in _models_of(pairs):
        placement = pl.col(_placement(model))
        one_minus_auc = (dp * placement).sum() / dp.sum()
        sums[_one_minus_auc(model)] = if_both_classes(dp.sum(), dn.sum(), one_minus_auc)
        sums |= test.model_sums(model, _placements(placement))
    sums |= {pair.name: pair.sums() for pair in pairs}
    table = placed.aggregate(sums)
    if rows.design is not None:
        table = join_on_keys(table, _variances(placed, pairs, rows, rows.design), placed.keys)
    listed = pl.concat_list(pair.as_row() for pair in pairs).alias(_PAIR)
    reduced = table.select(*placed.keys, "n", "n_missing", listed)
    return reduced.explode(_PAIR, empty_as_null=False).unnest(_PAIR)


def _variances(
    placed: PlacedRows, pairs: Sequence[Pair], rows: Rows, design: Design
) -> pl.LazyFrame:
    """Compute the variances of the AUCs, and the covariances of pairs, by the design."""
    models = _models_of(pairs)
    if isinstance(design, Replicates):
        scores = {_influence(model): score_column(model) for model in models}
        influences = replicate_influences(rows, design, scores)
    else:
        aucs = {_influence(model): _placements(pl.col(_placement(model))) for model in models}
        influences = unit_influences(placed.frame, placed.keys, aucs)
    products: dict[str, tuple[str, str]] = {}
    for pair in pairs:
        first, second = pair.models
        both = ((first, first), (second, second), (first, second))
        for name, (one, other) in zip(pair.design, both, strict=True):
            products[name] = _influence(one), _influence(other)
    variances = linear_variances(influences, placed.keys, design, products, PRESENT_CLASSES)
    return variances.select(*placed.keys, *products, DESIGN_DF)


def _models_of(pairs: Sequence[Pair]) -> list[int]:
    return sorted({model for pair in pairs for model in pair.models})


def _placements(of_row: pl.Expr) -> Placements:
    """Placement values of both classes, which are in one column."""
    dp, dn = class_weights(pl.col(WEIGHT))
    return Placements(ClassRows(dp, of_row), ClassRows(dn, of_row))


def _placement(model: int) -> str:
    return f"__placement_{model}"


def _influence(model: int) -> str:
    return f"__influence_{model}"


def _one_minus_auc(model: int) -> str:
    """Name the column of 1 - AUC of a model."""
    return f"__one_minus_auc_{model}"
