"""How far a group is from the others, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from polars_wroc import inputs, options
from polars_wroc.contrasts import Adjust, Area, adjusted, area_contrast, check_options
from polars_wroc.inputs import IntoColumn
from polars_wroc.reading import read_rows
from polars_wroc.references import (
    AUC,
    DIFFERENCE_VARIANCE,
    OWN,
    REFERENCE,
    REFERENCE_AUC,
    IsReference,
    against_group,
    against_overall,
    over,
)
from polars_wroc.rest import against_rest
from polars_wroc.rows import FrameT, IntoColumns, Rows, deliver
from polars_wroc.variance import Units, WeightType, units_of

GAP_COLUMNS = (
    "auc",
    "auc_reference",
    "auc_gap",
    "auc_gap_se",
    "auc_gap_low",
    "auc_gap_high",
    "auc_gap_p_value",
    "auc_gap_p_adjusted",
)


def group_gaps(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    by: IntoColumns,
    weight: IntoColumn | None = None,
    pos_label: object = None,
    reference: object = "rest",
    level: float = 0.95,
    weight_type: WeightType = "probability",
    adjust: Adjust = "holm",
) -> FrameT:
    """Difference of each group's weighted AUC to a reference, with interval and test.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; of a lazy one nothing is computed.
    label, score, weight, by, pos_label
        As for `summary`; there must be groups.
    reference
        ``"rest"``: all rows outside the group. ``"overall"``: all rows, the group's own among
        them. ``"best"``: the group with the highest AUC; since it was chosen for that, the
        differences to it look larger than they are. Anything else: the group with that value
        of ``by``, or that tuple of values where ``by`` has several columns; ``("best",)`` is a
        group of that name. The null group cannot be one.
    level
        Confidence level of the intervals, between 0 and 1.
    weight_type
        What a weight means: see `roc_auc_ci`.
    adjust
        How p-values are adjusted for the number of tests in the table: see `compare`.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model), sorted by the ``by`` columns. After them come the
        Float64 columns ``auc, auc_reference, auc_gap`` (the first less the second),
        ``auc_gap_se, auc_gap_low, auc_gap_high, auc_gap_p_value, auc_gap_p_adjusted``. What
        lacks a class is null. There is no gap either where the variance is unknown, as with one
        row in a class or perfect separation, nor of the reference group to itself.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for an option that does not exist, and at collect for a
        reference group that does not.

    Notes
    -----
    The variance is that of the difference of influences: a group and the rest, or another
    group, are independent; a group and everybody share rows, which is allowed for [1]_.
    Tests are Student's on the difference of the logits, with Satterthwaite's degrees of freedom,
    and intervals are put together from those of both AUCs [2]_. Scores are
    never compared across models. The cost does not grow with the number of groups.

    References
    ----------
    .. [1] DeLong, E. R. et al. (1988), Biometrics 44, 837-845.
    .. [2] Zou, G. Y. (2007), Psychological Methods 12, 399-413.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame(
    ...     {
    ...         "g": ["a"] * 5 + ["b"] * 5,
    ...         "y": [1, 0, 1, 0, 0, 1, 0, 1, 0, 0],
    ...         "s": [0.9, 0.4, 0.3, 0.2, 0.1, 0.5, 0.8, 0.6, 0.7, 0.2],
    ...     }
    ... )
    >>> gaps = wroc.group_gaps(df, "y", "s", by="g")
    >>> gaps.select("g", pl.col("auc", "auc_reference", "auc_gap", "auc_gap_p_value").round(3))
    shape: (2, 5)
    ┌─────┬───────┬───────────────┬─────────┬─────────────────┐
    │ g   ┆ auc   ┆ auc_reference ┆ auc_gap ┆ auc_gap_p_value │
    │ --- ┆ ---   ┆ ---           ┆ ---     ┆ ---             │
    │ str ┆ f64   ┆ f64           ┆ f64     ┆ f64             │
    ╞═════╪═══════╪═══════════════╪═════════╪═════════════════╡
    │ a   ┆ 0.833 ┆ 0.333         ┆ 0.5     ┆ 0.221           │
    │ b   ┆ 0.333 ┆ 0.833         ┆ -0.5    ┆ 0.221           │
    └─────┴───────┴───────────────┴─────────┴─────────────────┘
    """
    check_options(level, adjust)
    if by is None:
        options.reject_type("by", "name the groups to compare", by)
    units = units_of(weight_type, clustered=False)
    rows = read_rows(frame, label, score, weight, by, pos_label, result_columns=GAP_COLUMNS)
    groups = [key for key in rows.keys if key not in rows.ordered]
    compared = _compare(rows, groups, reference, units)
    own, other = (
        Area(pl.col(auc), *(pl.col(name) for name in names))
        for auc, names in ((AUC, OWN), (REFERENCE_AUC, REFERENCE))
    )
    parts = area_contrast(own, other, pl.col(DIFFERENCE_VARIANCE), level)
    table = compared.select(
        *rows.keys,
        pl.col(AUC).alias("auc"),
        pl.col(REFERENCE_AUC).alias("auc_reference"),
        auc_gap=parts["difference"],
        auc_gap_se=parts["se"],
        auc_gap_low=parts["ci_low"],
        auc_gap_high=parts["ci_high"],
        auc_gap_p_value=parts["p_value"],
    )
    tested = adjusted(table, adjust, "auc_gap_p_value")
    return deliver(frame, rows.arrange(tested).select(*rows.keys, *GAP_COLUMNS))


def _compare(rows: Rows, groups: Sequence[str], reference: object, units: Units) -> pl.LazyFrame:
    apart = [key for key in rows.keys if key not in groups]
    kind = reference if isinstance(reference, str) else None
    if kind == "overall":
        return against_overall(rows, apart, units)
    if kind == "rest":
        return against_rest(rows, apart, units)
    if kind == "best":
        return against_group(rows, apart, units, _best(apart))
    schema = rows.frame.collect_schema()
    return against_group(rows, apart, units, _named(groups, apart, reference, schema))


def _best(apart: Sequence[str]) -> IsReference:
    def is_best(auc: pl.Expr) -> pl.Expr:
        def first(highest: pl.Expr) -> pl.Expr:
            return highest & (highest.cum_sum() == 1)

        best = first((auc == auc.max()).fill_null(value=False))
        return best.over(apart) if apart else best

    return is_best


def _named(
    groups: Sequence[str], apart: Sequence[str], reference: Any, schema: pl.Schema
) -> IsReference:
    values = reference if isinstance(reference, tuple) else (reference,)
    if len(values) != len(groups) or not all(
        inputs.is_possible(value, schema[key]) for key, value in zip(groups, values, strict=False)
    ):
        types = ", ".join(f"{key!r} ({schema[key]})" for key in groups)
        msg = (
            f"`reference` must be 'rest', 'overall', 'best' or one value for each of {types}; "
            f"found {reference!r}"
        )
        raise ValueError(msg)
    named = pl.all_horizontal(
        pl.col(key) == pl.lit(value) for key, value in zip(groups, values, strict=True)
    ).fill_null(value=False)
    found_there = over(named.any(), apart)
    rule = (
        "`reference` must be 'rest', 'overall', 'best' or a group; "
        f"found no group {reference!r} in {', '.join(groups)}"
    )

    def is_named(_: pl.Expr) -> pl.Expr:
        return named & inputs.unless(found_there, rule)

    return is_named
