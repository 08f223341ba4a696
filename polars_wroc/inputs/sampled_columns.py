"""Columns that say how rows were sampled: sampling units, strata, replicate weights."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from polars_wroc.inputs.columns import Typed, numeric, valid_weights
from polars_wroc.inputs.expressions import as_column
from polars_wroc.inputs.named_columns import named_columns, typed_column
from polars_wroc.inputs.replicate_weights import ReplicateWeights
from polars_wroc.inputs.survey_design import FPC, SURVEY_COLUMNS, Replicates, SurveyArguments


def unit_columns(frame: pl.LazyFrame, survey: SurveyArguments) -> dict[str, Typed]:
    """Return the columns `CLUSTER`, `STRATUM` and `FPC`, as far as they are given."""
    columns = {
        name: typed_column(argument, as_column(argument, getattr(survey, argument)), frame)
        for name, argument in SURVEY_COLUMNS.items()
        if argument in survey.names
    }
    if FPC in columns:
        number = numeric(columns[FPC]).cast(pl.Float64)
        columns[FPC] = columns[FPC]._replace(column=number)
    return columns


def replicates_of(weights: ReplicateWeights, columns: Mapping[str, Typed]) -> Replicates:
    """Say how to combine the estimates of these columns of replicate weights."""
    count = len(columns)
    return Replicates(
        columns=[*columns],
        factors=weights.factors(count),
        df=weights.degrees_of_freedom(count),
        shown=[typed.shown for typed in columns.values()],
    )


def replicate_columns(frame: pl.LazyFrame, weights: ReplicateWeights) -> dict[str, Typed]:
    """Return the columns of replicate weights."""
    argument = "replicate_weights"
    columns = named_columns(argument, weights.columns, frame).values()
    typed = [typed_column(argument, column, frame) for column in columns]
    return {
        f"__replicate_{i}": each._replace(column=valid_weights(each))
        for i, each in enumerate(typed)
    }
