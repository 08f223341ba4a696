"""Sums over the rows of each group that comparisons of pairs of models need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, starmap

import polars as pl

from polars_wroc.inputs.columns import WEIGHT
from polars_wroc.inputs.frames import score_column
from polars_wroc.inputs.rows import CLASSES, Rows, class_weights
from polars_wroc.inputs.survey_design import Design, Replicates
from polars_wroc.metrics.auc_design import unit_influences
from polars_wroc.metrics.paired_tests import DESIGN, ONE_MINUS, DelongTest
from polars_wroc.metrics.replicate_aucs import replicate_influences
from polars_wroc.plans.by_keys import join_on_keys
from polars_wroc.ranking.curve import if_both_classes
from polars_wroc.ranking.placed_rows import PlacedRows
from polars_wroc.ranking.placements import ClassRows, Placements, row_curve
from polars_wroc.stats.design_variance import DESIGN_DF, PRESENT_CLASSES, linear_variances

# The numbers of the models of a pair.
FIRST, SECOND = "__first", "__second"
_NUMBER = pl.UInt32
# Weights of the rows of each class.
_OF_CLASS = ("__weight_of_pos", "__weight_of_neg")
# A batch has the pairs of so many models with as many others. Larger ones take more memory, and of
# more batches the plan takes longer.
_MODELS_AT_ONCE = 10


@dataclass(frozen=True)
class Pair:
    """Two models by number, and how they are compared."""

    test: DelongTest
    first: int
    second: int

    @property
    def models(self) -> tuple[int, int]:
        """Return the numbers of both."""
        return self.first, self.second

    @property
    def sums(self) -> dict[str, pl.Expr]:
        """Aggregate the differences of placement values to the sums of their variance."""
        one, other = (pl.col(_placement(model)) for model in self.models)
        return self.test.variance.sums_of_values(_placements(one - other), self._of_unit)

    def column(self, name: str) -> str:
        """Name a column of this pair."""
        return f"{name}_of_{self.first}_{self.second}"

    @property
    def products(self) -> dict[str, tuple[int, int]]:
        """Models whose covariances by a design are `DESIGN`; with itself it is a variance."""
        first, second = self.models
        pairs = (first, first), (second, second), (first, second)
        return dict(zip(DESIGN, pairs, strict=True)) if self.test.designed else {}

    def row(self, names: Iterable[str]) -> dict[str, pl.Expr]:
        """Return the columns of the row of the pair, with the ``names`` of its sums."""
        both = zip(ONE_MINUS, self.models, strict=True)
        return {
            FIRST: pl.lit(self.first, _NUMBER),
            SECOND: pl.lit(self.second, _NUMBER),
            **{name: pl.col(_one_minus_auc(model)) for name, model in both},
            **self.test.of_models(*self.models),
            **{name: pl.col(self.column(name)) for name in names},
            **{name: pl.col(_covariance(*models)) for name, models in self.products.items()},
        }

    def _of_unit(self, name: str) -> pl.Expr:
        """Refer to the weight of a row's cluster, or to the difference of both models' sums."""
        if name in _unit_weights(self.test):
            return pl.col(name)
        one, other = (pl.col(_of_model(name, model)) for model in self.models)
        return one - other


def placement_columns(models: int) -> dict[str, dict[str, pl.Expr]]:
    """Name a column of placement values for each score."""
    pos, neg = row_curve().placements
    of_row = pl.when(pl.col(WEIGHT) > 0).then(pos.placement).otherwise(neg.placement)
    return {score_column(model): {_placement(model): of_row} for model in range(models)}


def sums_of_pairs(placed: PlacedRows, models: int, test: DelongTest, rows: Rows) -> pl.LazyFrame:
    """Return a row per group and pair of placed rows, with the columns that the tests need."""
    placed = placed.with_columns(**dict(zip(_OF_CLASS, class_weights(pl.col(WEIGHT)), strict=True)))
    if test.units == "cluster":
        placed = placed.with_cluster_sums(_cluster_sums(models, test))
    batches = _batches(models, test)
    influences: pl.LazyFrame | None = None
    if len(batches) > 1 or rows.design is not None:
        # Computed once for all that use it. No filter is pushed down through a cache.
        placed = replace(placed, frame=placed.frame.cache())
    if rows.design is not None:
        influences = _influences(placed, models, rows, rows.design).cache()
    # Not in parallel, which would hold the columns of all batches in memory.
    return pl.concat(
        [_sums_of_batch(placed, batch, rows, influences) for batch in batches], parallel=False
    )


def _batches(models: int, test: DelongTest) -> list[list[Pair]]:
    """Divide the pairs by blocks of models, so that a batch has few models."""
    batches: dict[tuple[int, ...], list[Pair]] = {}
    for pair in starmap(partial(Pair, test), combinations(range(models), 2)):
        block = tuple(model // _MODELS_AT_ONCE for model in pair.models)
        batches.setdefault(block, []).append(pair)
    return [*batches.values()]


def _sums_of_batch(
    placed: PlacedRows, pairs: Sequence[Pair], rows: Rows, influences: pl.LazyFrame | None
) -> pl.LazyFrame:
    """Return a row per group and pair: 1 - AUC of both models, and sums of placement values."""
    test = pairs[0].test
    weight = pl.col(WEIGHT)
    dp, dn = (pl.col(name) for name in _OF_CLASS)
    shared: dict[str, pl.Expr] = {
        "n": weight.is_not_null().sum().cast(pl.Int64),
        "n_missing": weight.null_count().cast(pl.Int64),
        **test.variance.sums_of_weights(_placements(pl.lit(0.0)), pl.col),
    }
    of_models: dict[str, pl.Expr] = {}
    for model in _models_of(pairs):
        placement = pl.col(_placement(model))
        one_minus_auc = (dp * placement).sum() / dp.sum()
        of_models[_one_minus_auc(model)] = if_both_classes(dp.sum(), dn.sum(), one_minus_auc)
        of_models |= test.model_sums(model, _placements(placement))
    of_pairs = {pair.column(name): sum_ for pair in pairs for name, sum_ in pair.sums.items()}
    table = placed.aggregate(shared | of_models | of_pairs)
    kept = [*placed.keys, *shared]
    if influences is not None and rows.design is not None:
        variances = _variances(influences, placed.keys, pairs, rows.design)
        table = join_on_keys(table, variances, placed.keys)
        kept.append(DESIGN_DF)
    of_rows = [pair.row(pairs[0].sums) for pair in pairs]
    listed = {name: pl.concat_list(row[name] for row in of_rows) for name in of_rows[0]}
    return table.select(*kept, **listed).explode(*listed, empty_as_null=False)


def _cluster_sums(models: int, test: DelongTest) -> dict[str, pl.Expr]:
    """Values whose sums over its cluster the sums of pairs need in each row."""
    weights = _unit_weights(test)
    return {
        name if name in weights else _of_model(name, model): value
        for model in range(models)
        for name, value in test.variance.cluster_sums(
            _placements(pl.col(_placement(model)))
        ).items()
    }


def _unit_weights(test: DelongTest) -> list[str]:
    """Columns of the weights of a row's cluster, which all models share."""
    return [test.variance.column("unit_weight", side) for side in CLASSES]


def _influences(placed: PlacedRows, models: int, rows: Rows, design: Design) -> pl.LazyFrame:
    """Compute the influences on the AUC of each model by the design."""
    if isinstance(design, Replicates):
        scores = {_influence(model): score_column(model) for model in range(models)}
        return replicate_influences(rows, design, scores)
    aucs = {_influence(model): _placements(pl.col(_placement(model))) for model in range(models)}
    return unit_influences(placed.frame, placed.keys, aucs)


def _variances(
    influences: pl.LazyFrame, keys: Sequence[str], pairs: Sequence[Pair], design: Design
) -> pl.LazyFrame:
    """Compute the variances of the AUCs, and the covariances of pairs, by the design."""
    products = {
        _covariance(one, other): (_influence(one), _influence(other))
        for pair in pairs
        for one, other in pair.products.values()
    }
    variances = linear_variances(influences, keys, design, products, PRESENT_CLASSES)
    return variances.select(*keys, *products, DESIGN_DF)


def _models_of(pairs: Sequence[Pair]) -> list[int]:
    return sorted({model for pair in pairs for model in pair.models})


def _placements(of_row: pl.Expr) -> Placements:
    """Placement values of both classes, which are in one column."""
    return Placements(*(ClassRows(pl.col(weight), of_row) for weight in _OF_CLASS))


def _placement(model: int) -> str:
    return f"__placement_{model}"


def _of_model(name: str, model: int) -> str:
    return f"{name}_of_{model}"


def _influence(model: int) -> str:
    return f"__influence_{model}"


def _covariance(one: int, other: int) -> str:
    return f"__design_covariance_of_{one}_{other}"


def _one_minus_auc(model: int) -> str:
    """Name the column of 1 - AUC of a model."""
    return f"__one_minus_auc_{model}"
