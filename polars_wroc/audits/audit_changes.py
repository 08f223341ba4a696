"""Changes between two audits of different rows, for example of two months or releases."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from polars_wroc.arrays import Array
from polars_wroc.audits.formats import SCHEMA
from polars_wroc.audits.tables import (
    ALL_KEYS,
    SEGMENT_COLUMNS,
    AuditSettings,
    AuditTables,
)
from polars_wroc.audits.words import Words
from polars_wroc.calls import check_call
from polars_wroc.checks import reject_type
from polars_wroc.documents.phrases import write_list
from polars_wroc.files.outputs import in_json
from polars_wroc.groups.comparisons import (
    CHANGED_METRICS,
    CHANGES_SCHEMA,
    CLOSED,
    COMPARISON_SCHEMA,
    FINDINGS,
    GAP_CHANGES,
    GAP_METRICS,
    GROWN,
    IMPACT_RATIO,
    NEW,
    REVERSED,
    SHRUNK,
    SMALL_SHARE,
    THE_REFERENCE,
)
from polars_wroc.inputs.columns import AUDIT_KEYS, MODEL, OVERALL
from polars_wroc.inputs.metric import SampleSize
from polars_wroc.inputs.reasons import FEW, NO_VARIANCE, UNDEFINED, few_rows
from polars_wroc.looks import require_seen
from polars_wroc.queries import select_schema
from polars_wroc.stats.contrasts import find_gap_limits, p_value_of_limits
from polars_wroc.stats.estimates import Limits
from polars_wroc.stats.families import (
    Adjustment,
    adjust_p_values,
    are_equivalent,
    count_tests,
    judge,
)
from polars_wroc.stats.levels import Level

Auditable: TypeAlias = AuditTables | Mapping[str, Any] | str | Path

# Versions of the schema that can be read, and versions from before the release.
_VERSION, _OLD = "2.", "1."
_ROWS_OF_CLASS: dict[SampleSize, str] = {"positives": "n_pos", "negatives": "n_neg"}
# If these columns are equal in all segments of two audits, the rows are the same.
_COUNTS = ("n", "n_pos", "w_pos", "w_neg")
_OF_SEGMENTS = (*ALL_KEYS, *_COUNTS, *_ROWS_OF_CLASS.values())
# With fewer rows, counts may be the same by chance.
_FEW_ROWS = 100
# Sums of the same weights in different order differ by less.
_ROUNDING = 1e-9
# Settings that change the meaning of numbers, so that audits cannot be compared.
_MEANING = (
    *("label", "pos_label", "weight", "threshold", "selected", "favorable", "reference", "unknown"),
    *("min_rows", "margin", "adjust"),
)


def read_audit(argument: str, audit: Auditable) -> AuditTables:
    """Return the tables and settings of an audit, of its JSON, or of the path of the JSON."""
    if isinstance(audit, AuditTables):
        return audit
    if isinstance(audit, str | Path):
        audit = _read_file(argument, audit)
    if not isinstance(audit, Mapping):
        reject_type(argument, "be an Audit, the path of its JSON, or the JSON", audit)
    rule = f"`{argument}` must be the JSON of an audit, of schema {SCHEMA} {_VERSION}x"
    # Early audits had no schema.
    schema, version = audit.get("schema", SCHEMA), str(audit.get("schema_version", f"{_OLD}0"))
    if schema != SCHEMA or not version.startswith(_VERSION):
        made = ", made by a development version" if version.startswith(_OLD) else ""
        msg = f"{rule}; found {schema} {version}{made}"
        raise ValueError(msg)
    try:
        return AuditTables(
            _read_columns(audit["table"], COMPARISON_SCHEMA),
            _read_columns(
                audit["segments"], {name: SEGMENT_COLUMNS[name] for name in _OF_SEGMENTS}
            ),
            pl.DataFrame(),
            pl.DataFrame(),
            AuditSettings.from_dict(audit["settings"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError, pl.exceptions.PolarsError):
        msg = f"{rule}; found no settings, segments or table in it"
        raise ValueError(msg) from None


def _read_file(argument: str, path: str | Path) -> Any:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        found = "no such file" if isinstance(error, FileNotFoundError) else "no JSON"
        msg = f"`{argument}` must be the JSON of an audit; found {found} at {str(path)!r}"
        raise ValueError(msg) from None


def _read_columns(
    rows: list[dict[str, Any]], columns: Mapping[str, type[pl.DataType]]
) -> pl.DataFrame:
    """Return columns of the rows of a table; raise if one is missing."""
    return pl.DataFrame(
        [{name: row[name] for name in columns} for row in rows], columns, orient="row"
    )


def _refuse_other_settings(before: AuditTables, after: AuditTables) -> None:
    """Raise for audits whose numbers mean different things, or return settings that differ."""
    # Compared as in JSON, in which tuples are lists.
    old, new = (
        {
            name: json.loads(json.dumps(in_json(value), default=str))
            for name, value in audit.settings.as_dict().items()
            if name in _MEANING
        }
        for audit in (before, after)
    )
    differ = [
        f"{name} ({_write_setting(old[name])} before, {_write_setting(new[name])} after)"
        for name in _MEANING
        if old[name] != new[name]
    ]
    if differ:
        msg = (
            f"`before` and `after` must have the same settings; found {write_list(differ)}: make "
            "both audits alike, or set `different_settings`"
        )
        raise ValueError(msg)


def _write_setting(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={each}" for name, each in value.items())
    return "none" if value is None else str(value)


def _refuse_same_rows(before: AuditTables, after: AuditTables) -> None:
    """Raise for audits with the same counts and weights in each segment.

    Attributes that only one of the audits has are ignored.
    """
    common = {*before.segments["attribute"]} & {*after.segments["attribute"]}
    old, new = (
        audit.segments.filter(pl.col("attribute").is_in(common)).sort(ALL_KEYS)
        for audit in (before, after)
    )
    if not old.select(ALL_KEYS).equals(new.select(ALL_KEYS)):
        return
    n_segments = new.select(AUDIT_KEYS).n_unique()
    # Numbers of positives exist only with a label.
    are_same = all(
        np.allclose(old[name], new[name], rtol=_ROUNDING, atol=0, equal_nan=True)
        for name in _COUNTS
    )
    n_rows = max(new.filter(attribute=OVERALL)["n"], default=0)
    if are_same and n_segments > 1 and n_rows >= _FEW_ROWS:
        msg = (
            "`before` and `after` must be audits of different rows; found the same numbers of rows "
            f"and of positives, and the same weights, in all {n_segments} segments: test a new "
            "score on the same rows by `release_check`, or set `different_rows` if the rows do "
            "differ"
        )
        raise ValueError(msg)


# Gaps that did not change significantly, but are different in only one of the audits.
NOW_SHOWN, NO_LONGER_SHOWN = "now shown", "no longer shown"
# Reasons why there is nothing to compare, or why a change may be one of the reference.
ONLY_BEFORE, ONLY_AFTER, _OTHER_REFERENCE = "only before", "only after", "another reference"
# The column with the name of the reference.
_BEFORE = "before"
_PLACE = "__place"


class Changes(NamedTuple):
    """The table of changes, with the audits and the options that it was made from."""

    table: pl.DataFrame
    before: AuditTables
    after: AuditTables
    adjust: Adjustment

    @property
    def words(self) -> Words:
        """The words of the later audit for groups, classes and decisions."""
        return Words.of(self.after.settings)

    @property
    def significant(self) -> pl.Expr:
        """Whether a change is significant."""
        alpha = 1 - self.after.settings.confidence
        return (pl.col("p_adjusted") <= alpha).fill_null(value=False)

    def divide(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the changes that are significant or findings, and the other tested ones."""
        notable = self.significant | pl.col("finding").is_not_null()
        is_tested = pl.col("p_value").is_not_null()
        return self.table.filter(notable), self.table.filter(is_tested, ~notable)

    def most_changed(self, metric: str | None) -> list[str]:
        """Return the metrics that changed significantly, by p-value, else the smallest p-value.

        If a ``metric`` is given, it is the only one.
        """
        if metric is not None:
            return [metric]
        known = self.table.filter(pl.col("gap").is_not_null())
        sizes = pl.col("p_value").min(), pl.col("gap").abs().max()
        is_changed = self.significant.any().alias("changed")
        ranked = known.group_by("metric", maintain_order=True).agg(*sizes, is_changed)
        ranked = ranked.sort("p_value", "gap", descending=[False, True], nulls_last=True)
        changed = ranked.filter("changed")
        chosen = ranked.head(1) if changed.is_empty() else changed
        return chosen["metric"].to_list() or ["auc"]


@check_call
def audit_changes(
    before: Auditable,
    after: Auditable,
    *,
    adjust: Adjustment = "holm",
    different_rows: bool = False,
    different_settings: bool = False,
) -> pl.DataFrame:
    """Return the changes between two audits of different rows: AUCs, rates and gaps.

    The rows of both must be independent; for two scores on the same rows use `release_check`, whose
    paired tests are far more powerful.

    The main columns are:

    - ``attribute, segment, metric``: what the row describes; ``"tpr_gap"`` is the gap in ``"tpr"``;
    - ``value, reference_value``: the metric or gap after and before;
    - ``gap, gap_low, gap_high``: the change, after minus before, with its confidence interval;
    - ``verdict``: ``"different"``, ``"equivalent"`` (within the margin) or ``"inconclusive"``;
    - ``finding``: what became of a gap or impact ratio, for example ``"closed"``.

    Parameters
    ----------
    before, after
        Each an `Audit`, the path of its JSON, or the JSON as a dictionary. Both need the same
        level, or `Looks` at as many planned rows, and both must have one score, under any name, or
        both several.
    adjust
        Adjustment of p-values for the number of changes: see `group_gaps`.
    different_rows
        Set this if the audits are of different rows although all their segments have the same
        numbers of rows and positives and the same weights.
    different_settings
        Set this to compare audits with another label, weight, threshold, favorable decision,
        reference or margin, whose numbers mean different things.

    Returns
    -------
    pl.DataFrame
        The comparison table of `group_gaps`, in the order of ``after``, then what only ``before``
        has; ``reference`` is ``"before"``. The metrics are ``auc, selection_rate, tpr, fpr, ppv,
        npv``, the gap of each, such as ``auc_gap``, and ``impact_ratio``. After its columns:

        - ``finding`` (String): if the change is significant, ``"new"`` (different only after, and
          grown), ``"closed"`` (different only before, and shrunk), ``"reversed"`` (of the opposite
          sign), ``"grown"`` or ``"shrunk"``. If it is not, ``"now shown"`` is different only after
          and ``"no longer shown"`` only before: neither says that anything changed. Null for
          values.
        - ``growth`` (Float64): how much the size of a gap grew, or the distance of an impact ratio
          from 1; null for values.

        ``verdict`` uses the margin of ``after``; impact ratios have none and are never
        ``"equivalent"``. ``reason`` is, for example, ``"only after"`` (a segment of one audit),
        ``"another reference"`` (an impact ratio is relative to another category), or the reason of
        the audit.

    Raises
    ------
    TypeError, ValueError
        For something that is not an audit, audits that cannot be compared, and audits of at least
        100 rows that seem to be of the same rows.

    Notes
    -----
    Limits combine both intervals [1]_. All changes, including those of values, are adjusted
    together; impact ratios are adjusted among themselves, and tested cautiously because their
    limits are joint.

    References
    ----------
    .. [1] Zou, G. Y. (2007), Psychological Methods 12, 399-413.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> loans = wroc.data.loans()
    >>> march, april = (
    ...     wroc.audit(rows, "approved", "score", attributes="race")
    ...     for rows in (loans.head(1000), loans.tail(989))
    ... )
    >>> changes = wroc.audit_changes(march, april)
    >>> numbers = pl.col("reference_value", "value", "gap").round(3)
    >>> changes.filter(segment="white").select("metric", numbers, "verdict")
    shape: (2, 5)
    ┌─────────┬─────────────────┬───────┬────────┬──────────────┐
    │ metric  ┆ reference_value ┆ value ┆ gap    ┆ verdict      │
    │ ---     ┆ ---             ┆ ---   ┆ ---    ┆ ---          │
    │ str     ┆ f64             ┆ f64   ┆ f64    ┆ str          │
    ╞═════════╪═════════════════╪═══════╪════════╪══════════════╡
    │ auc     ┆ 0.73            ┆ 0.747 ┆ 0.018  ┆ inconclusive │
    │ auc_gap ┆ 0.033           ┆ 0.001 ┆ -0.032 ┆ inconclusive │
    └─────────┴─────────────────┴───────┴────────┴──────────────┘
    """
    changes = changes_between(
        before,
        after,
        adjust,
        different_rows=different_rows,
        different_settings=different_settings,
    )
    return changes.table


def changes_between(
    before: Auditable,
    after: Auditable,
    adjust: Adjustment,
    *,
    different_rows: bool = False,
    different_settings: bool = False,
) -> Changes:
    """Return the table of `audit_changes`, with both audits and the options."""
    old, new = read_audit("before", before), read_audit("after", after)
    levels = [audit.settings.level for audit in (old, new)]
    require_seen(levels[0])
    planned = [getattr(level, "planned", None) for level in levels]
    if levels[0] != levels[1] or planned[0] != planned[1]:
        msg = f"`before` and `after` must have the same level; found {levels[0]} and {levels[1]}"
        raise ValueError(msg)
    if old.settings.several != new.settings.several:
        msg = "`before` and `after` must both have one score, or both several; found one of each"
        raise ValueError(msg)
    if not different_settings:
        _refuse_other_settings(old, new)
    if not new.settings.several:
        # The only score may have been renamed.
        name = pl.lit(new.segments[MODEL][0], pl.String).alias(MODEL)
        table, segments = old.table.with_columns(name), old.segments.with_columns(name)
        old = replace(old, table=table, segments=segments)
    if not different_rows:
        _refuse_same_rows(old, new)
    both = _list_estimates(new).join(
        _list_estimates(old),
        on=[*ALL_KEYS, "metric"],
        how="full",
        coalesce=True,
        nulls_equal=True,
        suffix="_before",
    )
    in_order = both.sort(_PLACE, f"{_PLACE}_before", nulls_last=True, maintain_order=True)
    level = Level.of(levels[0])
    measured = _measure_changes(in_order, level, new.settings.margin, adjust)
    found = measured.with_columns(_find_reasons(), _find_findings(level), reference=pl.lit(_BEFORE))
    return Changes(select_schema(found, CHANGES_SCHEMA), old, new, adjust)


def _list_estimates(audit: AuditTables) -> pl.DataFrame:
    """Return a row for each value, gap and impact ratio of an audit, with its limits.

    ``is_different`` is null without a verdict on the number itself; ``too_few`` names the kind of
    rows that are too few for a test.
    """
    metric, is_ratio = pl.col("metric"), pl.col("metric") == IMPACT_RATIO
    is_different = pl.col("verdict").is_in(FINDINGS)
    counts = audit.segments.select(*ALL_KEYS, *_ROWS_OF_CLASS.values())
    values = (
        audit.table.filter(metric.is_in([*GAP_METRICS, IMPACT_RATIO]))
        .join(counts, on=ALL_KEYS, how="left", nulls_equal=True)
        .with_columns(_say_too_few(audit.settings.min_rows).alias("too_few"))
    )
    gaps = values.filter(~is_ratio, pl.col("attribute") != OVERALL)
    columns = [*ALL_KEYS, "metric", "value", "value_low", "value_high", "n"]
    too_few = pl.when(pl.col("reason").str.starts_with(FEW)).then("reason")
    parts = (
        values.select(
            *columns,
            pl.when(is_ratio).then(pl.col("reason", "reference")),
            "too_few",
            is_different=pl.when(is_ratio).then(is_different),
        ),
        gaps.with_columns(
            metric=metric + "_gap", value="gap", value_low="gap_low", value_high="gap_high"
        ).select(
            *columns,
            "reason",
            "reference",
            pl.coalesce("too_few", too_few).alias("too_few"),
            is_different=is_different,
        ),
    )
    order = pl.col("metric").cast(pl.Enum([*CHANGED_METRICS]))
    return pl.concat(parts).sort(order, maintain_order=True).with_row_index(_PLACE)


def _say_too_few(min_rows: int) -> pl.Expr:
    """Return the kind of rows of which a number has too few, other than all rows."""

    def is_few(rows: str) -> pl.Expr:
        return (pl.col(rows) < min_rows).fill_null(value=True)

    return pl.coalesce(
        pl.when(
            pl.col("metric") == name,
            # A single kind of rows are the rows that the number is based on.
            is_few("n" if len(metric.sample_sizes) == 1 else _ROWS_OF_CLASS[size]),
        ).then(pl.lit(few_rows(min_rows, size)))
        for name, metric in CHANGED_METRICS.items()
        if name not in GAP_CHANGES
        for size in metric.sample_sizes
    )


def _measure_changes(
    table: pl.DataFrame, level: Level, margin: float, adjust: Adjustment
) -> pl.DataFrame:
    """Return differences of estimates, with limits, tests that agree with them, and verdicts."""

    def read(end: str = "") -> tuple[Array, Limits]:
        value, *limits = (table[f"value{part}{end}"].to_numpy() for part in ("", "_low", "_high"))
        return value, Limits(*limits)

    (after, limits_after), (before, limits_before) = read(), read("_before")
    gap = after - before
    is_ratio = (table["metric"] == IMPACT_RATIO).to_numpy()
    has_growth = is_ratio | table["metric"].is_in([*GAP_CHANGES]).to_numpy()
    limits = find_gap_limits(after, limits_after, before, limits_before)
    too_few = table.select(pl.coalesce("too_few", "too_few_before")).to_series()
    is_tested = ~np.isnan(limits.low) & too_few.is_null().to_numpy()
    with np.errstate(divide="ignore", invalid="ignore"):
        p_value = np.where(is_tested, p_value_of_limits(gap, limits, level), np.nan)
    # A gap is measured from 0, and a ratio from 1.
    origin = np.where(is_ratio, 1.0, 0.0)
    growth = np.abs(after - origin) - np.abs(before - origin)
    p_adjusted = np.full_like(p_value, np.nan)
    # Impact ratios are adjusted separately, as in an audit.
    for family in (is_ratio, ~is_ratio):
        p_adjusted[family] = adjust_p_values(p_value[family], adjust)
    # Two one-sided normal tests, like the p-values, for all numbers with a margin.
    tests = count_tests(p_value[~is_ratio], adjust)
    share = level.quantile(tests=tests, tails=1) / level.quantile()
    one_sided = Limits(gap - share * (gap - limits.low), gap + share * (limits.high - gap))
    equivalent = is_tested & ~is_ratio & are_equivalent(one_sided, margin)
    numbers = {
        "reference_value": before,
        "gap": gap,
        "gap_low": limits.low,
        "gap_high": limits.high,
        "growth": np.where(has_growth, growth, np.nan),
        "p_value": p_value,
        "p_adjusted": p_adjusted,
    }
    verdict = pl.Series("verdict", judge(p_adjusted, equivalent, level), pl.String)
    return table.with_columns(pl.DataFrame(numbers, nan_to_null=True)).with_columns(
        n_reference="n_before",
        verdict=pl.when(pl.col("gap").is_not_null() & ~_IS_REFERENCE).then(verdict),
    )


# The category that is the reference in both audits.
_IS_REFERENCE = pl.all_horizontal(
    (pl.col(name) == THE_REFERENCE).fill_null(value=False) for name in ("reason", "reason_before")
)


def _find_reasons() -> pl.Expr:
    """Return why there is no verdict or no test."""
    is_unknown, has_no_limits = pl.col("gap").is_null(), pl.col("gap_low").is_null()
    in_audits = pl.coalesce("reason", "reason_before")
    is_small = in_audits.str.starts_with(SMALL_SHARE)
    is_other = pl.col("reference") != pl.col("reference_before")
    return pl.coalesce(
        pl.when(pl.col(_PLACE).is_null()).then(pl.lit(ONLY_BEFORE)),
        pl.when(pl.col(f"{_PLACE}_before").is_null()).then(pl.lit(ONLY_AFTER)),
        pl.when(is_unknown | is_small | _IS_REFERENCE).then(in_audits),
        pl.when(is_unknown).then(pl.lit(UNDEFINED)),
        pl.coalesce("too_few", "too_few_before"),
        pl.when(is_other).then(pl.lit(_OTHER_REFERENCE)),
        pl.when(has_no_limits).then(pl.lit(NO_VARIANCE)),
    ).alias("reason")


def _find_findings(level: Level) -> pl.Expr:
    """Return how gaps changed, and which are different in only one of the audits."""
    # Null where a gap has no verdict.
    after, before = pl.col("is_different"), pl.col("is_different_before")
    growth = pl.col("growth")
    is_found, is_lost = after & ~before, before & ~after
    # Impact ratios refer to the highest rate, so they are at most 1.
    is_turned = pl.col("value") * pl.col("reference_value") < 0
    change = (
        pl.when(is_found & (growth > 0))
        .then(pl.lit(NEW))
        .when(is_lost & (growth < 0))
        .then(pl.lit(CLOSED))
        .when(is_turned)
        .then(pl.lit(REVERSED))
        .when(growth > 0)
        .then(pl.lit(GROWN))
        .otherwise(pl.lit(SHRUNK))
    )
    detection = pl.coalesce(
        pl.when(is_found).then(pl.lit(NOW_SHOWN)), pl.when(is_lost).then(pl.lit(NO_LONGER_SHOWN))
    )
    is_changed = (pl.col("p_adjusted") <= level.error).fill_null(value=False)
    finding = pl.when(is_changed).then(change).otherwise(detection)
    return pl.when(growth.is_not_null()).then(finding).alias("finding")
