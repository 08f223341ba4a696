"""What changed between two audits of different rows, such as two months or two releases."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import polars as pl

from polars_wroc.audits.dossier import SCHEMA
from polars_wroc.audits.result import Audit
from polars_wroc.audits.segment_keys import segment_keys
from polars_wroc.groups.min_rows import GAP_METRICS
from polars_wroc.inputs.arguments import reject_type
from polars_wroc.inputs.names import AUDIT_KEYS, MODEL
from polars_wroc.plans.collect import collect
from polars_wroc.stats.differences import Estimate, difference_limits
from polars_wroc.stats.distributions import normal_quantile, two_sided_p_value
from polars_wroc.stats.multiple_tests import Adjust, adjusted, check_options, is_significant

Auditable: TypeAlias = Audit | Mapping[str, Any] | str | Path

CHANGE_COLUMNS = (
    "metric",
    "measure",
    "before",
    "after",
    "change",
    "change_low",
    "change_high",
    "growth",
    "p_value",
    "p_adjusted",
    "finding",
)
_VALUE, _GAP = "value", "gap"
_PARTS = ("", "_low", "_high")
# Versions of the schema that are read.
_VERSION = "1."
_PLACE = "__place"


class _Audited(NamedTuple):
    """The parts of an audit that are compared."""

    segments: pl.DataFrame
    gaps: pl.DataFrame
    level: float


class Changes(NamedTuple):
    """The table of changes, its level, and the segments that are small in one of the audits."""

    table: pl.DataFrame
    level: float
    small: pl.DataFrame


def audit_changes(before: Auditable, after: Auditable, *, adjust: Adjust = "holm") -> pl.DataFrame:
    """Compare two audits of different rows: AUCs, rates and gaps of each segment.

    Parameters
    ----------
    before, after
        Each an `Audit`, the path of its JSON, or the JSON as a dictionary. Both must have the same
        level and either one score or several.
    adjust
        How p-values are adjusted for the number of changes that are tested: see `group_gaps`.

    Returns
    -------
    pl.DataFrame
        A row per attribute, segment (and model), metric and measure, in the order of ``after``,
        then what only ``before`` has: ``attribute, segment`` (String); ``metric`` (String: ``auc,
        selection_rate, tpr, fpr, ppv, npv``); ``measure`` (String: ``"value"``, or ``"gap"`` to
        the reference of its audit); ``before, after`` (Float64); ``change`` (Float64: after less
        before, null where either is null); ``change_low, change_high`` (Float64: confidence limits,
        from those of both audits); ``growth`` (Float64: of a gap, how much its size grew);
        ``p_value, p_adjusted`` (Float64: that nothing changed); ``finding`` (String: of a gap,
        ``"new"`` if it is different only after, ``"gone"`` if only before, ``"grown"`` or
        ``"shrunk"`` if in both and its change is significant, else null).

    Raises
    ------
    TypeError, ValueError
        For something that is not an audit, a version of the JSON that is not read, or audits that
        cannot be compared.

    Notes
    -----
    The rows of both audits must be independent. The limits of a change combine those of both
    estimates (MOVER [1]_), and the p-value is that of a normal law with the standard error of the
    limit towards 0: it is below 1 - level exactly where the interval excludes 0.

    References
    ----------
    .. [1] Zou, G. Y. (2007), Psychological Methods 12, 399-413.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1], "sex": list("ffmm")})
    >>> audit = wroc.audit(df, "y", "s", by="sex")
    >>> changes = wroc.audit_changes(audit, audit)
    >>> changes.select("attribute", "segment", "metric", "measure", "change").head(2)
    shape: (2, 5)
    ┌───────────┬─────────┬────────┬─────────┬────────┐
    │ attribute ┆ segment ┆ metric ┆ measure ┆ change │
    │ ---       ┆ ---     ┆ ---    ┆ ---     ┆ ---    │
    │ str       ┆ str     ┆ str    ┆ str     ┆ f64    │
    ╞═══════════╪═════════╪════════╪═════════╪════════╡
    │ overall   ┆ overall ┆ auc    ┆ value   ┆ 0.0    │
    │ sex       ┆ f       ┆ auc    ┆ value   ┆ 0.0    │
    └───────────┴─────────┴────────┴─────────┴────────┘
    """
    return changes_between(before, after, adjust).table


def changes_between(before: Auditable, after: Auditable, adjust: Adjust) -> Changes:
    """Return the table of `audit_changes` with what it was made from."""
    audits = _read("before", before), _read("after", after)
    levels = [audit.level for audit in audits]
    check_options(levels[0], adjust)
    if levels[0] != levels[1]:
        msg = f"`before` and `after` must have the same level; found {levels[0]} and {levels[1]}"
        raise ValueError(msg)
    models = [MODEL in audit.segments.columns for audit in audits]
    if models[0] != models[1]:
        msg = "`before` and `after` must both have one score, or both several; found one of each"
        raise ValueError(msg)
    segments = segment_keys(audits[1].segments)
    keys = [*segments, "metric", "measure"]
    old, new = (_estimates(audit) for audit in audits)
    both = new.join(old, on=keys, how="full", coalesce=True, nulls_equal=True, suffix="_before")
    in_order = both.sort(_PLACE, f"{_PLACE}_before", nulls_last=True, maintain_order=True)
    changed = _changes(in_order.with_row_index("__row"), levels[0])
    tested = collect(adjusted(changed.lazy(), adjust)).sort("__row")
    table = tested.with_columns(_finding(levels[0])).select(*segments, *CHANGE_COLUMNS)
    return Changes(table, levels[0], pl.concat(map(_small, audits)).unique())


def _small(audit: _Audited) -> pl.DataFrame:
    """List the segments with too few rows for tests."""
    keys, table = segment_keys(audit.segments), audit.segments
    small = pl.col("small") if "small" in table.columns else pl.lit(value=False)
    return table.filter(small.fill_null(value=False)).select(pl.col(keys).cast(pl.String))


def _read(argument: str, audit: Auditable) -> _Audited:
    if isinstance(audit, Audit):
        return _Audited(audit.segments, audit.gaps, audit.parameters.level)
    if isinstance(audit, str | Path):
        audit = _from_file(argument, audit)
    if not isinstance(audit, Mapping):
        reject_type(argument, "be an Audit, the path of its JSON, or the JSON", audit)
    rule = f"`{argument}` must be the JSON of an audit, of schema {SCHEMA} {_VERSION}x"
    named = audit.get("schema", SCHEMA), str(audit.get("schema_version", f"{_VERSION}0"))
    if named[0] != SCHEMA or not named[1].startswith(_VERSION):
        msg = f"{rule}; found {named[0]} {named[1]}"
        raise ValueError(msg)
    # Before there was a schema, the tables were not in a part of their own.
    tables = audit.get("tables", audit)
    try:
        segments = _table(tables["segments"], (*AUDIT_KEYS, "auc", "ci_low", "ci_high"))
        gaps = _table(tables["gaps"], AUDIT_KEYS)
        level = float(audit["settings"]["level"])
    except (KeyError, TypeError, ValueError, AttributeError, pl.exceptions.PolarsError):
        msg = f"{rule}; found no settings, segments or gaps in it"
        raise ValueError(msg) from None
    return _Audited(segments, gaps, level)


def _from_file(argument: str, path: str | Path) -> Any:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        found = "no such file" if isinstance(error, FileNotFoundError) else "no JSON"
        msg = f"`{argument}` must be the JSON of an audit; found {found} at {str(path)!r}"
        raise ValueError(msg) from None


def _table(rows: list[dict[str, Any]], needed: Sequence[str]) -> pl.DataFrame:
    """Read the columns that are compared; raise if one of those needed is not there."""
    numbers = [f"{name}{end}" for name in _columns() for end in _PARTS]
    words = [*AUDIT_KEYS, MODEL, *(f"{name}_gap_verdict" for name in GAP_METRICS)]
    known: dict[str, type[pl.DataType]] = {
        **dict.fromkeys(words, pl.String),
        **dict.fromkeys([*numbers, "ci_low", "ci_high"], pl.Float64),
        "small": pl.Boolean,
    }
    there = {
        name: dtype
        for name, dtype in known.items()
        if name in needed or any(name in row for row in rows)
    }
    if not all(row.keys() >= set(needed) for row in rows):
        raise KeyError
    return pl.DataFrame(
        [{name: row.get(name) for name in there} for row in rows], there, orient="row"
    )


def _columns() -> list[str]:
    return [name for metric in GAP_METRICS for name in (metric, f"{metric}_gap")]


def _estimates(audit: _Audited) -> pl.DataFrame:
    """Lay out the estimates of an audit with their limits: a row for each."""
    keys = segment_keys(audit.segments)
    parts = []
    for name in GAP_METRICS:
        limits = ("ci_low", "ci_high") if name == "auc" else (f"{name}_low", f"{name}_high")
        if limits[1] in audit.segments.columns:
            none = pl.lit(None, pl.String)
            columns = (name, *limits)
            parts.append(_part(audit.segments, keys, name, _VALUE, columns, none))
        gap = f"{name}_gap"
        if gap in audit.gaps.columns:
            verdict = pl.col(f"{gap}_verdict")
            verdict = verdict if f"{gap}_verdict" in audit.gaps.columns else pl.lit(None, pl.String)
            columns = (gap, f"{gap}_low", f"{gap}_high")
            parts.append(_part(audit.gaps, keys, name, _GAP, columns, verdict))
    return pl.concat(parts).with_row_index(_PLACE)


def _part(
    table: pl.DataFrame,
    keys: list[str],
    metric: str,
    measure: str,
    columns: tuple[str, str, str],
    verdict: pl.Expr,
) -> pl.DataFrame:
    estimate = zip(("estimate", "low", "high"), columns, strict=True)
    return table.select(
        *(pl.col(key).cast(pl.String) for key in keys),
        pl.lit(metric).alias("metric"),
        pl.lit(measure).alias("measure"),
        *(pl.col(column).cast(pl.Float64).alias(name) for name, column in estimate),
        verdict.alias("verdict"),
    )


def _changes(table: pl.DataFrame, level: float) -> pl.DataFrame:
    """Subtract estimates, with limits and a p-value that agrees with them."""
    names = ("estimate", "low", "high")
    one, other = (Estimate(*(pl.col(f"{name}{end}") for name in names)) for end in ("", "_before"))
    limits = difference_limits(one, other)
    change = one.value - other.value
    table = table.with_columns(
        before=other.value,
        after=one.value,
        change=change,
        change_low=limits.low,
        change_high=limits.high,
        growth=pl.when(measure=_GAP).then(one.value.abs() - other.value.abs()),
    )
    change, low, high = (pl.col(name) for name in ("change", "change_low", "change_high"))
    # The distance of the limit towards 0.
    distance = pl.when(change > 0).then(change - low).otherwise(high - change)
    score = normal_quantile((1 + level) / 2) * change.abs() / distance
    p_value = pl.when(distance > 0).then(two_sided_p_value(score))
    return table.with_columns(p_value=p_value.when(change == 0).then(1.0))


def _finding(level: float) -> pl.Expr:
    """Say which findings are new, gone, or of another size."""
    is_gap = pl.col("measure") == _GAP
    after, before = (
        (pl.col(name) == "different").fill_null(value=False)
        for name in ("verdict", "verdict_before")
    )
    known = is_gap & pl.col("change").is_not_null()
    changed = is_significant(pl.col("p_adjusted"), level).fill_null(value=False)
    finding = (
        pl.when(after & ~before)
        .then(pl.lit("new"))
        .when(before & ~after)
        .then(pl.lit("gone"))
        .when(after & changed & (pl.col("growth") > 0))
        .then(pl.lit("grown"))
        .when(after & changed)
        .then(pl.lit("shrunk"))
    )
    return pl.when(known).then(finding).alias("finding")
