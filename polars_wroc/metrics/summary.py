"""The summary table: counts, weights, AUC with confidence interval and more, per group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from polars_wroc import checks
from polars_wroc.arrays import Array, Ints
from polars_wroc.bounds import Bins, Proportion
from polars_wroc.calls import check_call
from polars_wroc.config import Division
from polars_wroc.counts.count_table import refuse_design_in_bins
from polars_wroc.counts.score_sums import Binning
from polars_wroc.inputs.columns import IntoColumn, IntoWeight
from polars_wroc.inputs.designs import Design, read_design
from polars_wroc.inputs.rows import IntoColumns
from polars_wroc.looks import ConfidenceLevel
from polars_wroc.metrics import auc_sums, partial_areas
from polars_wroc.metrics.counted_parts import Part, count_parts
from polars_wroc.metrics.given_tables import Frames, GivenTables, division_of, one_of
from polars_wroc.metrics.partial_auc import PartialAUC
from polars_wroc.metrics.sampled_aucs import SampledAucs, sample_aucs
from polars_wroc.metrics.score_ranges import ScoreRange
from polars_wroc.metrics.segments import Needs, Numbering, Segments, measure_segments
from polars_wroc.queries import FrameT, collect, find_height
from polars_wroc.records import join_records
from polars_wroc.rows import (
    Columns,
    Rows,
    add_keys,
    alternate_models,
    check_level,
    make_table,
    name_columns,
    table_of_all,
)
from polars_wroc.stats.aucs import Auc, AucMethod
from polars_wroc.stats.estimates import Limits, limit_columns, name_limits
from polars_wroc.stats.levels import Level
from polars_wroc.steps import SegmentRows

AUC_BOUNDS = ("auc_min", "auc_max")

# The columns after the group, the columns of ``diagnostics``, and the columns of a design.
_AUC_COLUMNS, _CURVE_COLUMNS = ("auc", "auc_low", "auc_high", "auc_se"), ("average_precision", "ks")
_COUNT_TYPES: Mapping[str, Any] = dict.fromkeys(("n", "n_pos", "n_neg", "n_missing"), pl.Int64)
_DESIGN_TYPES: Mapping[str, Any] = {"deff": pl.Float64, "df": pl.Int64, "df_segment": pl.Int64}
_DIAGNOSTIC_TYPES: Mapping[str, Any] = {
    **dict.fromkeys(("w_pos", "w_neg"), pl.Float64),
    "ci_method": pl.String,
    **dict.fromkeys(("n_eff_pos", "n_eff_neg"), pl.Float64),
    "inverted": pl.Boolean,
    **dict.fromkeys(("k_pos", "k_neg"), pl.Float64),
    "ci_note": pl.String,
}
# The AUC of a random score.
_CHANCE = 0.5

# The memory of a row in bytes, at once and in ranges.
_BYTES, BYTES_IN_SCORE_RANGE = 75, 120


@check_call
def summary(
    frame: Frames[FrameT],
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    level: ConfidenceLevel = 0.95,
    method: AucMethod = "score",
    areas: Mapping[str, PartialAUC] | None = None,
    design: Design | None = None,
    bins: Bins | None = None,
    tolerance: Proportion | None = None,
    diagnostics: bool = False,
) -> FrameT:
    """Return the AUC with its confidence interval, and other metrics of ranking, per group.

    To test the gaps between groups use `group_gaps`, between scores `compare`. Most functions of
    the package take the arguments described here.

    The main columns are:

    - the ``by`` columns, and ``model`` for several scores;
    - ``auc, auc_low, auc_high, auc_se``: as in `roc_auc_ci`;
    - ``average_precision``: area under the precision-recall curve, as a step function;
    - ``ks``: largest difference between tpr and fpr at any threshold;
    - ``n, n_pos, n_neg, n_missing``: rows used, rows of each class, and rows left out.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame. A LazyFrame gives a LazyFrame and is not collected. Tables of
        packages that export Arrow, for example pandas and DuckDB, are read into memory and give a
        DataFrame. Here, and in `audit` and `score_counts`, also a list of frames that are parts of
        one. For more rows than fit in memory see `Config`.
    label
        Column name or expression: Boolean, 0 and 1, -1 and 1, or anything with ``pos_label``.
    score
        Column name or numeric expression; higher means more likely positive. With several scores,
        the result has a ``model`` column. Whole numbers beyond 2**53 raise an error.
    weight
        Column name or expression: how much of the population a row represents, at least 0; the
        scale does not matter. Rows of weight 0 are ignored and not counted. For a weight that
        counts identical rows use `frequency`.
    by
        One or several columns or expressions; a null key is a group of its own.
    pos_label
        The positive value of other labels. All others are negative, even "unknown", but not null.
    level, method
        Level and method of the confidence interval: see `roc_auc_ci`.
    areas
        Partial AUCs with intervals, by column name: ``{"early": PartialAUC(fpr=(0, 0.1))}``.
    design
        How the rows were sampled, if they are not independent: a column or expression of clusters,
        for example patients (null is a cluster too), a `Survey`, or `ReplicateWeights`. Limits then
        use Student's t.
    bins
        Treat the scores of a bin as ties, with about this many bins, at least 16. The AUC is then
        approximate, with bounds, and memory grows with groups times bins instead of rows.
    tolerance
        Largest allowed ``auc_max - auc_min``: bins are divided until it is met. This is slower than
        the exact summary.
    diagnostics
        Add columns that show what the interval is based on.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model), sorted by ``by``. Counts are Int64, all other numbers
        Float64. ``n_missing`` counts rows whose label, score or weight is null or whose score is
        NaN. Everything but the counts is null if a class has no weight; limits are null also if the
        design leaves the variance unknown.

        - ``auc_min, auc_max``: with ``bins`` or ``tolerance``, bounds of the exact AUC.
        - ``early, early_low, early_high, early_se`` for an area ``early``; with bins ``early_min,
          early_max``.
        - ``deff``: with `ReplicateWeights`, or a `Survey` that is more than clusters: how many
          times larger the variance is than with independent rows; ``df`` and ``df_segment``
          (Int64): degrees of freedom of the interval and of the group.

        ``diagnostics`` adds:

        - ``w_pos, w_neg``: weight of each class; ``ci_method, n_eff_pos, n_eff_neg``: see
          `roc_auc_ci`.
        - ``inverted`` (Boolean): the whole interval is below 0.5; the negated score ranks better.
        - ``k_pos, k_neg``: effective number of misranked rows of each class; below about 3, the
          interval depends mostly on the method.
        - ``ci_note`` (String): ``"few misranked rows"``, ``"weights depend on the score"`` (few
          heavy rows carry the AUC, so the interval may be too narrow), the progress of `Looks`, or
          why a design leaves the variance unknown.

    Raises
    ------
    TypeError
        For an argument of the wrong type, a text score, or a label that needs ``pos_label``.
    ValueError
        For a column named twice or named like a result column; at collect, for an invalid label,
        weight or score.
    polars.exceptions.PolarsError
        For a column that does not exist; with ``bins``, ``tolerance`` or several tables, in place
        of the ValueError.

    Notes
    -----
    The AUC is the weighted share of positive-negative pairs that are ranked correctly; ties count
    half [1]_. [Formulas](../explanation/statistics.md#summary).

    References
    ----------
    .. [1] Hanley, J. A., McNeil, B. J. (1982), Radiology 143, 29-36.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> loans = wroc.data.loans()
    >>> table = wroc.summary(loans, "approved", "score", by="race")
    >>> table.select("race", pl.col("auc", "auc_low", "auc_high").round(3), "n")
    shape: (3, 5)
    ┌──────────┬───────┬─────────┬──────────┬──────┐
    │ race     ┆ auc   ┆ auc_low ┆ auc_high ┆ n    │
    │ ---      ┆ ---   ┆ ---     ┆ ---      ┆ ---  │
    │ str      ┆ f64   ┆ f64     ┆ f64      ┆ i64  │
    ╞══════════╪═══════╪═════════╪══════════╪══════╡
    │ black    ┆ 0.703 ┆ 0.616   ┆ 0.777    ┆ 197  │
    │ hispanic ┆ 0.824 ┆ 0.697   ┆ 0.903    ┆ 111  │
    │ white    ┆ 0.738 ┆ 0.693   ┆ 0.779    ┆ 1681 │
    └──────────┴───────┴─────────┴──────────┴──────┘
    """
    binning = Binning(bins, tolerance)
    refuse_design_in_bins(read_design(design), binning)
    one = one_of(frame)
    plan = _Plan(
        check_level(level, one),
        method,
        _check_areas(areas),
        read_design(design).more_than_clusters,
        diagnostics,
    )
    given = GivenTables(frame, label, score, weight, by, pos_label, design)
    tables = [given.pool_in_bins(binning)] if binning else given.read_columns()
    schema = tables[0].schema(plan.types(binned=tables[0].is_binned))
    tables = [columns.group_by_model() for columns in tables]
    result = table_of_all(one, tables, schema, partial(_summarise, columns=tables[0], plan=plan))
    # Designs, bins and partial areas need all rows of a segment at once.
    divided = None if design is not None or areas or binning else division_of(frame)
    if divided is None:
        return result  # type: ignore[no-any-return]
    within = partial(_within_memory, result, given.read_parts(), schema, plan, divided)
    return pl.defer(within, schema=schema)  # type: ignore[return-value]


@dataclass(frozen=True)
class _Plan:
    """The contents of a summary; ``designed`` if it has the columns of a design."""

    level: ConfidenceLevel
    method: AucMethod
    areas: Mapping[str, PartialAUC]
    designed: bool
    diagnostics: bool

    def types(self, *, binned: bool) -> dict[str, Any]:
        """Return the types of the columns after the group."""
        bounds = AUC_BOUNDS if binned else ()
        types = dict.fromkeys((*_AUC_COLUMNS, *bounds, *_CURVE_COLUMNS), pl.Float64)
        others = {**_COUNT_TYPES, **_DESIGN_TYPES, **_DIAGNOSTIC_TYPES}
        for name in self.areas:
            for column in _area_columns(name, binned=binned):
                if column in types or column in others:
                    checks.reject("areas", "not take the name of a result column", repr(column))
                types[column] = pl.Float64
        types |= _COUNT_TYPES
        if self.designed:
            types |= _DESIGN_TYPES
        return types | dict(_DIAGNOSTIC_TYPES) if self.diagnostics else types


def _area_columns(name: str, *, binned: bool) -> list[str]:
    columns = [*name_limits(name), f"{name}_se"]
    return [*columns, f"{name}_min", f"{name}_max"] if binned else columns


def _check_areas(areas: Mapping[str, PartialAUC] | None) -> Mapping[str, PartialAUC]:
    if areas is None:
        return {}
    rule = "map names of columns to `PartialAUC`"
    if not isinstance(areas, Mapping):
        checks.reject_type("areas", rule, areas)
    for name, area in areas.items():
        if not isinstance(area, PartialAUC):
            checks.reject_type("areas", rule, area)
        if not isinstance(name, str) or name.startswith("__"):
            rule = "have names that do not start with two underscores"
            checks.reject("areas", rule, repr(name))
    return dict(areas)


def _summarise(rows: Rows, columns: Columns, plan: _Plan) -> pl.DataFrame:
    """Return a row for each group, and for each model if there are several."""
    level = rows.level(plan.level)
    tables = {}
    for model in columns.models:
        segments = rows.segments(columns.keys, model, ranks=True)
        tables[model] = _summarise_segments(rows, segments, level, plan)
    return alternate_models(tables, several=columns.several)


def _summarise_segments(
    rows: Rows, segments: SegmentRows, level: Level, plan: _Plan
) -> pl.DataFrame:
    sums, sampled = auc_sums.measure_aucs(segments), None
    if rows.sample is not None:
        sampled = sample_aucs(rows, segments, auc_sums.auc_influences)
    columns = _summary_columns(sums, segments.missing, sampled, level, plan)
    if segments.bins is not None:
        columns |= {"auc_min": sums.lowest_auc, "auc_max": sums.highest_auc}
    if plan.areas:
        curves = partial_areas.draw_curves(segments)
        for name, area in plan.areas.items():
            columns |= _measure_area(name, area, curves, rows, segments, level, plan)
    return add_keys(make_table(columns), segments.segments, np.arange(segments.number))


def _summary_columns(
    sums: auc_sums.AucSums,
    missing: Array | Ints,
    sampled: SampledAucs | None,
    level: Level,
    plan: _Plan,
) -> dict[str, NDArray[Any]]:
    auc = auc_sums.estimate_aucs(sums)
    if sampled is not None:
        auc = replace(auc, design_variance=sampled.variance, df=sampled.df)
    columns: dict[str, NDArray[Any]] = {
        "n": sums.n.sum(axis=0),
        "n_pos": sums.n[0],
        "n_neg": sums.n[1],
        "n_missing": missing,
        **auc_sums.interval_columns(sums, auc, level, plan.method),
        "average_precision": sums.average_precision,
        "ks": sums.ks,
    }
    if sampled is not None and plan.designed:
        columns |= {"deff": auc.effect, "df": sampled.df, "df_segment": sampled.segment_df}
    elif sampled is not None:
        columns |= {"n_eff_pos": sampled.effective[0], "n_eff_neg": sampled.effective[1]}
    if plan.diagnostics:
        columns |= _diagnostics(sums, auc, columns["auc_high"], level, plan, sampled)
    return columns


def _diagnostics(
    sums: auc_sums.AucSums,
    auc: Auc,
    high: Array,
    level: Level,
    plan: _Plan,
    sampled: SampledAucs | None,
) -> dict[str, NDArray[Any]]:
    columns: dict[str, NDArray[Any]] = {}
    for name, weight in zip(("w_pos", "w_neg"), sums.weight, strict=True):
        columns[name] = np.where(np.isfinite(weight), weight, np.nan)
    is_known = ~np.isnan(high)
    inverted = high < _CHANCE
    # With bins it is unknown on which side of chance the AUC of the rows is.
    is_sure = (sums.highest_auc < _CHANCE) | (sums.lowest_auc >= _CHANCE) | ~inverted
    columns["inverted"] = np.where(is_known & is_sure, inverted, np.nan)
    notes = np.full(high.shape, "", dtype=object)
    if plan.method == "score":
        pos, neg = auc.find_misranked()
        columns["k_pos"] = np.where(is_known, pos.number, np.nan)
        columns["k_neg"] = np.where(is_known, neg.number, np.nan)
        notes = auc.notes().astype(object)
        if level.looks is not None:
            looks = f"looks: {level.looks.seen:.15g} of {level.looks.planned:.15g} rows"
            notes = np.where(is_known & (notes == ""), looks, notes)
    else:
        columns["k_pos"] = columns["k_neg"] = np.full(high.shape, np.nan)
    if sampled is not None:
        is_unknown = ~np.isnan(auc.value) & np.isnan(auc.variance)
        notes = np.where(is_unknown, sampled.reasons, notes)
    columns["ci_note"] = np.array([note or None for note in notes], dtype=object)
    return columns


def _measure_area(
    name: str,
    area: PartialAUC,
    curves: partial_areas.Curves,
    rows: Rows,
    segments: SegmentRows,
    level: Level,
    plan: _Plan,
) -> dict[str, Array]:
    """Return the columns of a partial area; an area over two ranges has no limits."""
    intercept, slope = area.standardizing_line
    value = partial_areas.measure_area(curves, area)
    se, low, high = (np.full(segments.number, np.nan) for _ in range(3))
    if area.fpr is None or area.tpr is None:
        if rows.sample is None:
            part = partial_areas.estimate_area(curves, area)
        else:
            sampled = sample_aucs(rows, segments, partial(partial_areas.area_influences, area=area))
            part = partial_areas.estimate_area(curves, area, sampled.variance, sampled.df)
        estimate, width = part.estimate(plan.method), area.largest
        n = curves.to_segments(curves.steps.total(curves.steps.n))
        limits = auc_sums.limit_aucs(estimate, n, level)
        value, se = part.auc.value * width, np.sqrt(part.auc.variance) * width
        low, high = limits.low * width, limits.high * width
    limits = Limits(intercept + slope * low, intercept + slope * high)
    columns = limit_columns(name, intercept + slope * value, limits) | {f"{name}_se": slope * se}
    if segments.bins is not None:
        least, largest = partial_areas.bound_area(curves, area)
        columns[f"{name}_min"] = intercept + slope * least
        columns[f"{name}_max"] = intercept + slope * largest
    return columns


def _within_memory(
    result: pl.LazyFrame,
    parts: Sequence[Part],
    schema: Mapping[str, Any],
    plan: _Plan,
    division: Division,
) -> pl.DataFrame:
    """Return the result: at once if its rows fit into memory, else in ranges of scores."""
    columns = parts[0].columns
    rows = sum(division.map(find_height, [part.columns.plan for part in parts]))
    if not division.is_needed(rows * len(columns.models), _BYTES):
        return collect(result)
    counted = count_parts(parts, division)
    ranges = counted.cut(BYTES_IN_SCORE_RANGE)
    measured = counted.measure(ranges, partial(measure_range, keys=columns.keys))
    level = Level.at_look(plan.level, counted.most_complete_rows)
    tables = {}
    for model in columns.models:
        measured_ranges = zip(ranges, measured, strict=True)
        segments = add_segments([sums for each, sums in measured_ranges if each.model == model])
        assert segments.aucs is not None
        with np.errstate(all="ignore"):
            summarised = _summary_columns(segments.aucs, segments.missing, None, level, plan)
        table = make_table(summarised)
        tables[model] = add_keys(table, segments.keys, np.arange(table.height))
    table = alternate_models(tables, several=columns.several)
    return name_columns(table, schema, columns.names)


def measure_range(each: ScoreRange, rows: Rows, keys: Sequence[str]) -> Segments:
    """Return the sums over the rows in a range of scores."""
    return measure_segments(rows, keys, each.model, Needs(aucs=True), each.outside)


def add_segments(parts: Sequence[Segments]) -> Segments:
    """Return the segments of several parts, with AUC sums added up."""
    numbering = Numbering.from_parts([part.keys for part in parts])
    aucs = join_records([part.aucs for part in parts])
    assert aucs is not None
    aucs = aucs.combine(numbering.add, numbering.largest)
    missing = numbering.add(np.concatenate([part.missing for part in parts]))
    return Segments(numbering.keys, aucs.n, missing, aucs)
