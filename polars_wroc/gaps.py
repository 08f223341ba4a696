"""How far a group is from the others, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import polars as pl

from polars_wroc import inputs, options
from polars_wroc.contrasts import Adjust, Area, adjusted_together, area_contrast, check_options
from polars_wroc.inputs import WEIGHT, IntoColumn
from polars_wroc.rate_gaps import RATE_GAP_COLUMNS, RateGaps
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
from polars_wroc.staged import in_columns
from polars_wroc.threshold_search import cells_at, common_threshold
from polars_wroc.variance import Units, WeightType, check_weight_type, units_of

GAP_COLUMNS = (
    "n_pos",
    "n_neg",
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
    threshold: float | None = None,
    level: float = 0.95,
    weight_type: WeightType = "probability",
    adjust: Adjust = "holm",
    min_rows: int = 0,
) -> FrameT:
    """Difference of each group's weighted AUC and rates to a reference, with interval and test.

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
    threshold
        For the gaps of the rates: rows that score at least so much are predicted positive. None
        leaves them out.
    level
        Confidence level of the intervals, between 0 and 1.
    weight_type
        What a weight means: see `roc_auc_ci`.
    adjust
        How p-values are adjusted for the number of tests in the table: see `compare`.
    min_rows
        Groups with fewer rows in a class are measured but not tested.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model), sorted by the ``by`` columns. After them come the
        rows of each class, ``n_pos, n_neg`` (Int64), and the
        Float64 columns ``auc, auc_reference, auc_gap`` (the first less the second),
        ``auc_gap_se, auc_gap_low, auc_gap_high, auc_gap_p_value, auc_gap_p_adjusted``. What
        lacks a class is null. There is no gap either where the variance is unknown, as with one
        row in a class or perfect separation, nor of the reference group to itself. With a
        ``threshold`` follow, for each of ``selection_rate, tpr, fpr, ppv, npv``: the rate
        itself, and with its name before them ``_reference``, ``_gap``, ``_gap_low``,
        ``_gap_high``, ``_gap_p_value``, ``_gap_p_adjusted``, ``_ratio`` (of the rate to the
        reference), ``_ratio_low``, ``_ratio_high``. P-values are adjusted for all tests of the
        table together.

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
    │ a   ┆ 0.833 ┆ 0.333         ┆ 0.5     ┆ 0.358           │
    │ b   ┆ 0.333 ┆ 0.833         ┆ -0.5    ┆ 0.358           │
    └─────┴───────┴───────────────┴─────────┴─────────────────┘
    """
    check_options(level, adjust)
    if by is None:
        options.reject_type("by", "name the groups to compare", by)
    check_weight_type(weight_type)
    limit: float | None
    limit = None if threshold is None else options.number("threshold", threshold) + 0.0
    columns: list[str] = [*GAP_COLUMNS, *([] if limit is None else RATE_GAP_COLUMNS)]
    rows: Rows
    rows = read_rows(frame, label, score, weight, by, pos_label, result_columns=columns)
    thresholds = None if limit is None else common_threshold(rows, limit)
    tests = GapTests(level, weight_type, adjust, options.whole_number("min_rows", min_rows, low=0))
    table = measure_gaps(rows, reference, thresholds, tests)
    return deliver(frame, rows.arrange(table).select(*rows.keys, *columns))


class GapTests(NamedTuple):
    """How groups are told apart, and from how many rows of each class on."""

    level: float
    weight_type: WeightType
    adjust: Adjust
    min_rows: int


def measure_gaps(
    rows: Rows, reference: object, thresholds: pl.LazyFrame | None, tests: GapTests
) -> pl.LazyFrame:
    """Lay out the gaps of checked rows; those of rates at the ``thresholds``, if there are any."""
    units = units_of(tests.weight_type, clustered=False)
    against = _against(reference, [key for key in rows.keys if key not in rows.ordered], rows)
    table = _with_area_gaps(against.compare(rows, units), tests.level)
    if thresholds is not None:
        rates = RateGaps(
            against.kind, rows.ordered, tests.level, tests.weight_type, against.picked()
        )
        cells = cells_at(rows, thresholds)
        table = in_columns(_beside(table, cells, rows.keys), rates.steps)
    weight = pl.col(WEIGHT)
    counts = {"n_pos": (weight > 0).sum(), "n_neg": (weight < 0).sum()}
    counted = rows.reduce(
        rows.frame, {name: count.cast(pl.Int64) for name, count in counts.items()}
    )
    table = _beside(table, counted, rows.keys)
    p_values = [name for name in table.collect_schema() if name.endswith("_gap_p_value")]
    enough = pl.all_horizontal(pl.col(*counts) >= tests.min_rows)
    tested = table.with_columns(pl.when(enough).then(name) for name in p_values)
    return adjusted_together(tested, rows.keys, tests.adjust, p_values)


def _beside(table: pl.LazyFrame, other: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    return table.join(other, on=keys, how="left", nulls_equal=True)


def _with_area_gaps(compared: pl.LazyFrame, level: float) -> pl.LazyFrame:
    own, other = (
        Area(pl.col(auc), *(pl.col(name) for name in names))
        for auc, names in ((AUC, OWN), (REFERENCE_AUC, REFERENCE))
    )
    parts = area_contrast(own, other, pl.col(DIFFERENCE_VARIANCE), level)
    return compared.with_columns(
        pl.col(AUC).alias("auc"),
        pl.col(REFERENCE_AUC).alias("auc_reference"),
        auc_gap=parts["difference"],
        auc_gap_se=parts["se"],
        auc_gap_low=parts["ci_low"],
        auc_gap_high=parts["ci_high"],
        auc_gap_p_value=parts["p_value"],
    )


class _Against(NamedTuple):
    """What groups are compared with; for a group, which one it is."""

    kind: Literal["rest", "overall", "group"]
    is_reference: IsReference | None = None

    def compare(self, rows: Rows, units: Units) -> pl.LazyFrame:
        """Lay out the AUC of each group beside that of its reference."""
        if self.kind == "overall":
            return against_overall(rows, rows.ordered, units)
        if self.is_reference is None:
            return against_rest(rows, rows.ordered, units)
        return against_group(rows, rows.ordered, units, self.is_reference)

    def picked(self) -> pl.Expr:
        """Mark the reference among the groups that have been compared."""
        return pl.lit(value=False) if self.is_reference is None else self.is_reference(pl.col(AUC))


def _against(reference: object, groups: Sequence[str], rows: Rows) -> _Against:
    if isinstance(reference, str) and reference in ("rest", "overall"):
        return _Against("rest" if reference == "rest" else "overall")
    if reference == "best":
        return _Against("group", _best(rows.ordered))
    schema = rows.frame.collect_schema()
    return _Against("group", _named(groups, rows.ordered, reference, schema))


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
