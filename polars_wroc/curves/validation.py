"""The validation of a prediction model in one table: discrimination, calibration, net benefit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import polars as pl

from polars_wroc.curves.calibration_summary import calibration_summary
from polars_wroc.curves.decision_curve import decision_curve
from polars_wroc.curves.smooth_calibration import SMOOTH, require_loess, smooth_errors
from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import (
    IntoColumn,
    IntoWeight,
)
from polars_wroc.inputs.designs import Design, read_design
from polars_wroc.inputs.expressions import named_columns
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.looks import if_enough
from polars_wroc.inputs.rows import IntoColumns, Rows, RowSource, polars_frame, read_source
from polars_wroc.metrics.brier_and_log_loss import UNIT_LOSSES, LossesOfRows, MeanLosses
from polars_wroc.metrics.registry import LOSSES
from polars_wroc.metrics.summary import summary
from polars_wroc.plans.formulas import Columns, Fields, Formula, in_columns
from polars_wroc.plans.queries import FrameT, is_eager, join_on_keys, like_input
from polars_wroc.stats.distributions import t_quantile
from polars_wroc.stats.proportions import rate_t_quantile
from polars_wroc.stats.variances import (
    design_df,
    linear_variances,
    ratio_covariance,
    ratio_influences,
    unit_sums,
)

_COLUMNS = ("measure", "threshold", "value", "value_low", "value_high", "n")
_THRESHOLDS = (0.1, 0.2, 0.3)
# In the order of the table.
_OF_SUMMARY = ("n", "events", "auc")
_OF_LOSSES = (*LOSSES, "scaled_brier")
_OF_CALIBRATION = (
    *("prevalence", "calibration_in_the_large"),
    *("calibration_intercept", "calibration_slope", "oe_ratio"),
)
# Those whose columns have other names in the function that computes them.
_COLUMN_OF = {"events": "n_pos", "prevalence": "observed_rate"}
_NET_BENEFIT = "net_benefit"
_MEASURES = (
    *("n", "events", "prevalence", "auc", *_OF_LOSSES),
    *_OF_CALIBRATION[1:],
    *(*SMOOTH, _NET_BENEFIT),
)
_PLACE = "__place"


def validate(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    thresholds: float | Sequence[float] = _THRESHOLDS,
    level: float = 0.95,
    design: Design | None = None,
    smooth: bool = True,
) -> FrameT:
    """Validate a prediction model: every measure that TRIPOD+AI asks for, with its limits.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, by, pos_label
        As for `summary`; the score must lie between 0 and 1.
    thresholds
        Where the net benefit is computed: one or several numbers from 0 to less than 1.
    level
        Confidence level of the intervals, from 0.001 to 0.9999, or `Looks`.
    design
        Clusters, a `Survey` or `ReplicateWeights`: see `summary`.
    smooth
        Whether there are the measures of a smooth calibration curve, which needs the extra
        ``polars-wroc[smooth]``.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model), measure and threshold. After the ``by`` columns (and
        ``model``) come ``measure`` (String), ``threshold`` (Float64, null but of a net benefit),
        ``value, value_low, value_high`` (Float64) and ``n`` (Int64), the rows that are not missing.
        The measures are, in this order:

        - ``n`` and ``events``, the numbers of rows and of positives (no limits); ``prevalence``;
        - ``auc``, as in `summary`;
        - ``brier_score``, ``log_loss``, and ``scaled_brier``: 1 minus the Brier score divided by
          that of the prevalence as every score;
        - ``calibration_in_the_large``, ``calibration_intercept``, ``calibration_slope`` and
          ``oe_ratio``, as in `calibration_summary`;
        - ``ici``, ``e50`` and ``e90``: mean, median and ninth decile of the distances of the scores
          from a smooth calibration curve [2]_;
        - ``net_benefit``, as in `decision_curve`, at each of the ``thresholds``.

        A measure is null where its function has null, and the scaled Brier score without both
        classes. Those of the smooth curve are null with fewer than eight distinct scores, and their
        limits with `ReplicateWeights` and where a design leaves variances unknown.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary` and `calibration_summary`.
    ImportError
        With ``smooth`` where scikit-misc is not installed.

    Notes
    -----
    The limits of the Brier score are on the logit, those of the log loss and of 1 minus the scaled
    Brier score on the logarithm, by the variance of a mean of losses and Student's t for weights
    and designs. The smooth curve is R's loess, as in [2]_: local quadratics of 75 % of the scores,
    weighted by the rows; of more than 1,000 scores, of as many quantiles. Its limits are
    percentiles of 200 bootstrap samples, always the same ones, of rows or as in `bootstrap` of the
    sampling units of a `Survey`, whose only ones in a stratum must be certain; as distances are
    never negative, they are above 0 for a perfect model too.

    References
    ----------
    .. [1] Collins, G. S. et al. (2024), BMJ 385, e078378.
    .. [2] Austin, P. C., Steyerberg, E. W. (2019), Statistics in Medicine 38, 4051-4065.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> patients = wroc.data.diabetes()
    >>> table = wroc.validate(patients, "progressed", "score", weight="weight", smooth=False)
    >>> table.select("measure", pl.col("value", "value_low", "value_high").round(3)).head(6)
    shape: (6, 4)
    ┌─────────────┬───────┬───────────┬────────────┐
    │ measure     ┆ value ┆ value_low ┆ value_high │
    │ ---         ┆ ---   ┆ ---       ┆ ---        │
    │ str         ┆ f64   ┆ f64       ┆ f64        │
    ╞═════════════╪═══════╪═══════════╪════════════╡
    │ n           ┆ 442.0 ┆ null      ┆ null       │
    │ events      ┆ 221.0 ┆ null      ┆ null       │
    │ prevalence  ┆ 0.496 ┆ 0.446     ┆ 0.546      │
    │ auc         ┆ 0.835 ┆ 0.791     ┆ 0.871      │
    │ brier_score ┆ 0.167 ┆ 0.146     ┆ 0.189      │
    │ log_loss    ┆ 0.5   ┆ 0.446     ┆ 0.56       │
    └─────────────┴───────┴───────────┴────────────┘
    """
    arguments.flag("smooth", smooth)
    if smooth:
        require_loess("leave it out by smooth=False")
    source = read_source(frame)
    survey = read_design(design)
    rows: Rows = read_rows(source, label, score, weight, by, pos_label, survey=survey)
    rows.check_names(_COLUMNS)
    rows.require_scores("a validation")
    level = rows.look(level, frame)
    given: dict[str, Any] = {"weight": weight, "by": by, "pos_label": pos_label, "level": level}
    # These know a design as columns of the frame.
    if design is not None:
        given["design"] = design
    # Groups have names that no column of a result has.
    names = dict(zip(rows.group_keys, rows.group_names, strict=True))
    if by is not None and not isinstance(source, RowSource):
        named = named_columns("by", by, polars_frame(source).lazy())
        names = {key: f"group {number}" for number, key in enumerate(rows.group_keys)}
        given["by"] = [
            column.alias(name) for column, name in zip(named.values(), names.values(), strict=True)
        ]

    def keyed(table: Any) -> pl.LazyFrame:
        renamed: pl.LazyFrame = table.lazy().rename({name: key for key, name in names.items()})
        return renamed

    call: Any = (frame, label, score)
    discrimination = keyed(summary(*call, **given))
    calibration = keyed(calibration_summary(*call, **given))
    benefit = keyed(decision_curve(*call, thresholds=thresholds, **given))
    losses: pl.LazyFrame = _losses(rows, level, at_once=is_eager(frame))
    groups = discrimination.select(*rows.keys, "n").with_row_index(_PLACE).cache()
    tables = [
        (discrimination, _OF_SUMMARY),
        (calibration, _OF_CALIBRATION),
        (losses, _OF_LOSSES),
        (benefit, (_NET_BENEFIT,)),
    ]
    if smooth:
        checked = replace(rows, frame=rows.as_probabilities().frame)
        tables.append((smooth_errors(checked, level), SMOOTH))
    parts = [part for each, measures in tables for part in _long(each, rows, measures)]
    table = join_on_keys(pl.concat(parts), groups, rows.keys)
    order = pl.col("measure").cast(pl.Enum(_MEASURES))
    sorted_rows = table.sort(_PLACE, order, "threshold")
    return like_input(frame, rows.sorted_result(sorted_rows, _COLUMNS))


def _long(table: pl.LazyFrame, rows: Rows, measures: Sequence[str]) -> list[pl.LazyFrame]:
    """Make a row of each measure, which is a column and perhaps its limits."""
    held, table = table.collect_schema(), table.cache()

    def column(name: str) -> pl.Expr:
        return (pl.col(name) if name in held else pl.lit(None)).cast(pl.Float64)

    return [
        table.select(
            *rows.group_keys,
            *(pl.col(key).cast(pl.String) for key in rows.model_keys),
            pl.lit(measure).alias("measure"),
            column("threshold").alias("threshold"),
            column(name).alias("value"),
            column(f"{name}_low").alias("value_low"),
            column(f"{name}_high").alias("value_high"),
        )
        for measure in measures
        for name in [_COLUMN_OF.get(measure, measure)]
    ]


def _losses(rows: Rows, level: float, *, at_once: bool) -> pl.LazyFrame:
    """Compute the mean losses of each group with their limits."""
    of_rows = LossesOfRows.of(rows)
    table = rows.aggregate(of_rows.rows.frame, of_rows.sums())
    if rows.design is not None:
        units = unit_sums(of_rows.rows.frame, rows.keys, of_rows.of_units, rows.design)
        ratios = dict.fromkeys(UNIT_LOSSES[1:], pl.col(UNIT_LOSSES[0]))
        columns, products = ratio_influences(ratios, rows.keys, rows.design)
        influences = units.with_columns(**columns)
        variances = linear_variances(influences, rows.keys, rows.design, products)
        table = join_on_keys(table, variances, rows.keys)
    step = partial(_limited, level=level, designed=rows.design is not None)
    return in_columns(table, [step], at_once=at_once)


def _limited(field: Fields, level: float, *, designed: bool) -> Formula[Columns]:
    means = MeanLosses(field, (lambda *of: field(ratio_covariance(*of))) if designed else None)
    by_rows = rate_t_quantile(level, means.lost_rows())
    quantile = t_quantile(level, design_df(field)) if designed else by_rows
    (quantile,) = yield [if_enough(level, quantile, means.smaller_class())]
    columns: Columns = {}
    for name in LOSSES:
        low, high = (loss := means.loss(name)).limits(quantile)
        columns |= {name: loss.value, f"{name}_low": low, f"{name}_high": high}
    relative = means.relative_brier()
    low, high = relative.limits(quantile)
    values = 1 - relative.value, 1 - high, 1 - low
    ends = ("", "_low", "_high")
    return columns | {f"scaled_brier{end}": v for end, v in zip(ends, values, strict=True)}
