"""What changed between two audits of different rows, such as two months or two releases."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, get_args

import numpy as np
import polars as pl

from polars_wroc import checks
from polars_wroc.arrays import Array
from polars_wroc.audits.findings import SEGMENT_COLUMNS
from polars_wroc.audits.formats import SCHEMA
from polars_wroc.audits.table_pages import (
    Screen,
    check_columns,
    fitted_table,
    limits_in_text,
    points_in_text,
)
from polars_wroc.audits.tables import (
    ALL_KEYS,
    AuditTables,
    keys_of,
    segment_in_words,
    with_columns_of,
    with_small,
)
from polars_wroc.audits.words import capitalised, first_few, listed, many, verb
from polars_wroc.charts.options import Show
from polars_wroc.checks import reject_type
from polars_wroc.files.outputs import in_json
from polars_wroc.groups.comparisons import (
    COMPARISON_SCHEMA,
    FINDINGS,
    GAP_METRICS,
    IMPACT_RATIO,
)
from polars_wroc.inputs.columns import AUDIT_KEYS, MISSING, MODEL, OVERALL
from polars_wroc.inputs.reasons import few_rows
from polars_wroc.keywords import hint_keywords
from polars_wroc.looks import ConfidenceLevel, Looks, as_number
from polars_wroc.stats.contrasts import find_gap_limits, p_value_of_limits
from polars_wroc.stats.estimates import Limits
from polars_wroc.stats.families import Adjustment, adjust_p_values
from polars_wroc.stats.levels import Level

Auditable: TypeAlias = AuditTables | Mapping[str, Any] | str | Path

# Versions of the schema that are read, and those of a development version.
_VERSION, _OLD = "2.", "1."
_COUNTS, _WEIGHTS = ("n", "n_pos"), ("w_pos", "w_neg")
# So few rows may have the same counts by chance.
_FEW_ROWS = 100
# Of sums of the same weights in another order.
_ROUNDING = 1e-9
# What of the tables is compared.
_ROWS = (
    *(f"{measure}{end}" for measure in ("value", "gap", "ratio") for end in ("", "_low", "_high")),
    "verdict",
)


class Audited(NamedTuple):
    """The parts of an audit that are compared."""

    table: pl.DataFrame
    segments: pl.DataFrame
    level: ConfidenceLevel
    min_rows: int
    # As they are in JSON
    settings: Mapping[str, Any]


# Settings that change what numbers mean, so that those of two audits cannot be compared.
_MEANING = (
    *("label", "pos_label", "weight", "threshold", "selected", "favorable", "reference", "unknown"),
    *("min_rows", "margin", "adjust"),
)


def read_audit(argument: str, audit: Auditable) -> Audited:
    """Read an audit, or its JSON, which the ``argument`` holds or has the path of."""
    if isinstance(audit, AuditTables):
        min_rows = audit.settings.min_rows
        segments = with_small(audit.segments, min_rows)
        settings = {name: in_json(value) for name, value in audit.settings.as_dict().items()}
        return Audited(audit.table, segments, audit.settings.level, min_rows, settings)
    if isinstance(audit, str | Path):
        audit = _from_file(argument, audit)
    if not isinstance(audit, Mapping):
        reject_type(argument, "be an Audit, the path of its JSON, or the JSON", audit)
    rule = f"`{argument}` must be the JSON of an audit, of schema {SCHEMA} {_VERSION}x"
    # Before there was a schema, it had no name.
    schema, version = audit.get("schema", SCHEMA), str(audit.get("schema_version", f"{_OLD}0"))
    if schema != SCHEMA or not version.startswith(_VERSION):
        made = ", made by a development version" if version.startswith(_OLD) else ""
        msg = f"{rule}; found {schema} {version}{made}"
        raise ValueError(msg)
    try:
        settings = audit["settings"]
        table = _columns_of(audit["table"], COMPARISON_SCHEMA, [*COMPARISON_SCHEMA])
        segments = _columns_of(
            audit["segments"], SEGMENT_COLUMNS, (*ALL_KEYS, *_COUNTS, "n_neg", *_WEIGHTS)
        )
        confidence, looks = float(settings["level"]), settings.get("looks")
        level = Looks(**looks, level=confidence) if looks else confidence
        min_rows = int(settings["min_rows"])
    except (KeyError, TypeError, ValueError, AttributeError, pl.exceptions.PolarsError):
        msg = f"{rule}; found no settings, segments or table in it"
        raise ValueError(msg) from None
    return Audited(table, with_small(segments, min_rows), level, min_rows, settings)


def _refuse_other_settings(before: Audited, after: Audited) -> None:
    """Refuse audits whose numbers mean different things, and list the settings that differ."""
    # Plain JSON, in which tuples are lists
    old, new = (json.loads(json.dumps(audit.settings, default=str)) for audit in (before, after))
    differ = [
        f"{name} ({_in_words(old[name])} before, {_in_words(new[name])} after)"
        for name in _MEANING
        if name in old and name in new and old[name] != new[name]
    ]
    if differ:
        msg = (
            f"`before` and `after` must have the same settings; found other {listed(differ)}. "
            "Make both audits alike, or set `different_settings` to compare them all the same"
        )
        raise ValueError(msg)


def _in_words(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={each}" for name, each in value.items())
    return "none" if value is None else str(value)


def refuse_same_rows(before: Audited, after: Audited) -> None:
    """Refuse audits that have the same counts and weights in each segment of the same attributes.

    Attributes that only one of them has say nothing about the rows.
    """
    old, new = before.segments, after.segments
    common = pl.col(AUDIT_KEYS[0]).is_in(set(old[AUDIT_KEYS[0]]) & set(new[AUDIT_KEYS[0]]))
    both = new.filter(common).join(
        old.filter(common),
        on=list(ALL_KEYS),
        how="full",
        coalesce=True,
        nulls_equal=True,
        suffix="_before",
    )
    pairs = ((pl.col(name), pl.col(f"{name}_before")) for name in (*_COUNTS, *_WEIGHTS))
    # Without a label there are no numbers of positives.
    same = (
        ((new - old).abs() <= _ROUNDING * new.abs()).fill_null(new.is_null() & old.is_null())
        for new, old in pairs
    )
    alike = both.select(pl.all_horizontal(*same, pl.col("n").is_not_null())).to_series()
    segments = both.select(AUDIT_KEYS).n_unique()
    rows = new.filter(attribute=OVERALL)["n"].max()
    if alike.all() and segments > 1 and isinstance(rows, int) and rows >= _FEW_ROWS:
        msg = (
            "`before` and `after` must be audits of different rows; found the same numbers of rows "
            f"and of positives, and the same weights, in all {segments} segments. `release_check` "
            "tests a new score on the same rows; set `different_rows` if these rows do differ"
        )
        raise ValueError(msg)


def _from_file(argument: str, path: str | Path) -> Any:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        found = "no such file" if isinstance(error, FileNotFoundError) else "no JSON"
        msg = f"`{argument}` must be the JSON of an audit; found {found} at {str(path)!r}"
        raise ValueError(msg) from None


def _columns_of(
    rows: list[dict[str, Any]], columns: Mapping[str, type[pl.DataType]], needed: Sequence[str]
) -> pl.DataFrame:
    """Read the columns that are compared; raise if one of those needed is not there."""
    known = {name: columns[name] for name in needed}
    return pl.DataFrame([{name: row[name] for name in known} for row in rows], known, orient="row")


CHANGE_NUMBERS = (
    *("before", "after", "change", "change_low", "change_high", "growth"),
    *("p_value", "p_adjusted"),
)
VALUE, GAP, RATIO = "value", "gap", "ratio"
# Metrics whose changes are measured.
CHANGED_METRICS = (*GAP_METRICS, IMPACT_RATIO)
# What became of a gap: its change is significant, or only the gap itself is, in one of the audits.
CHANGED = ("new", "gone", "reversed", "grown", "shrunk")
SHOWN = ("now shown", "no longer shown")
_PLACE = "__place"


def _too_few(min_rows: int) -> pl.Expr:
    """Say of which kind a small segment has too few rows."""
    return (
        pl.when(pl.col("n_pos") < min_rows)
        .then(pl.lit(few_rows(min_rows, "positives")))
        .when(pl.col("n_neg") < min_rows)
        .then(pl.lit(few_rows(min_rows, "negatives")))
        .otherwise(pl.lit(few_rows(min_rows)))
    )


class Changes(NamedTuple):
    """The table of changes, with the audits and the options that it was made from."""

    table: pl.DataFrame
    before: Audited
    after: Audited
    adjust: Adjustment

    @property
    def level(self) -> ConfidenceLevel:
        """The confidence level of both audits."""
        return self.after.level

    @property
    def significant(self) -> pl.Expr:
        """Whether a change is significant."""
        return (pl.col("p_adjusted") <= 1 - as_number(self.level)).fill_null(value=False)

    @property
    def several(self) -> bool:
        """Whether there are several scores, whose names must be told."""
        return self.table[MODEL].n_unique() > 1

    @property
    def judged(self) -> pl.DataFrame:
        """The changes, with a reason where a segment has too few rows in one of the audits."""
        small = pl.concat(
            audit.segments.filter("small").select(
                *ALL_KEYS, _too_few(audit.min_rows).alias("reason")
            )
            for audit in (self.before, self.after)
        )
        return with_columns_of(self.table, small.unique(ALL_KEYS))

    def divided(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the changes that are significant or a finding, then the others that are known."""
        known = self.table.filter(pl.col("change").is_not_null())
        notable = self.significant | pl.col("verdict").is_not_null()
        return known.filter(notable), known.filter(~notable)

    def most_changed(self, metric: str | None, measure: Show | None) -> list[tuple[str, Show]]:
        """List what changed significantly, else what comes closest: the surest changes first.

        A ``metric`` or ``measure`` that is given is kept.
        """
        given = {"metric": metric, "measure": measure}
        wanted = {name: value for name, value in given.items() if value is not None}
        known = self.table.filter(pl.col("change").is_not_null(), **wanted)
        significant = self.significant.any().alias("significant")
        sizes = pl.col("p_value").min(), pl.col("change").abs().max(), significant
        ranked = known.group_by([*given], maintain_order=True).agg(*sizes)
        ranked = ranked.sort("p_value", "change", descending=[False, True], nulls_last=True)
        changed = ranked.filter("significant")
        kept = ranked.head(1) if changed.is_empty() else changed
        return kept.select(*given).rows() or [(metric or "auc", measure or "gap")]


@hint_keywords
def audit_changes(
    before: Auditable,
    after: Auditable,
    *,
    adjust: Adjustment = "holm",
    different_rows: bool = False,
    different_settings: bool = False,
) -> pl.DataFrame:
    """Changes between two audits of different rows: AUCs, rates and gaps of each segment.

    Use it to compare this quarter's audit with the last. The rows of both must be independent; for
    two scores on the same rows use `release_check`, whose paired tests are far more powerful.

    The main columns are:

    - ``attribute, segment, model, metric``: what the row describes;
    - ``measure``: ``"value"``, ``"gap"`` to the reference or, for an impact ratio, ``"ratio"``;
    - ``before, after``: the measure in both audits;
    - ``change, change_low, change_high``: after minus before, with limits;
    - ``verdict``: what became of a gap or ratio; null for a value.

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
        A row per attribute, segment, model, metric and measure, in the order of ``after``, then
        what only ``before`` has. Names are String, numbers Float64; a change is null if either
        value is. Also ``growth``, how much the size of a gap grew, or the distance of a ratio from
        1; and ``p_value, p_adjusted``, that nothing changed.

        If the change is significant, ``verdict`` is ``"new"`` (different only after, and grown),
        ``"gone"`` (different only before, and shrunk), ``"reversed"`` (of the opposite sign),
        ``"grown"`` or ``"shrunk"``. If it is not, ``"now shown"`` is different only after and ``"no
        longer shown"`` only before: neither says that anything changed.

    Raises
    ------
    TypeError, ValueError
        For something that is not an audit, an unknown version of the JSON, audits that cannot be
        compared, and audits of at least 100 rows that seem to be of the same rows, unless
        ``different_rows`` is set.

    Notes
    -----
    Limits combine both intervals [1]_; a p-value is below ``1 - level`` exactly where the interval
    excludes 0. All changes, including those of values, are adjusted together. Impact ratios are
    adjusted among themselves, and tested cautiously because their limits are joint.

    References
    ----------
    .. [1] Zou, G. Y. (2007), Psychological Methods 12, 399-413.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1], "sex": list("ffmm")})
    >>> audit = wroc.audit(df, "y", "s", attributes="sex")
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
    """Return the table of `audit_changes` with what it was made from."""
    checks.flag("different_rows", different_rows)
    checks.flag("different_settings", different_settings)
    audits = read_audit("before", before), read_audit("after", after)
    levels = [audit.level for audit in audits]
    checks.option("adjust", adjust, get_args(Adjustment))
    checks.level(levels[0])
    planned = [getattr(level, "planned", None) for level in levels]
    if levels[0] != levels[1] or planned[0] != planned[1]:
        msg = f"`before` and `after` must have the same level; found {levels[0]} and {levels[1]}"
        raise ValueError(msg)
    several = [audit.segments[MODEL].n_unique() > 1 for audit in audits]
    if several[0] != several[1]:
        msg = "`before` and `after` must both have one score, or both several; found one of each"
        raise ValueError(msg)
    if not different_settings:
        _refuse_other_settings(*audits)
    if not several[0]:
        # The only score may have got another name.
        name = pl.lit(audits[1].segments[MODEL][0], pl.String).alias(MODEL)
        table, segments = (each.with_columns(name) for each in audits[0][:2])
        audits = audits[0]._replace(table=table, segments=segments), audits[1]
    if not different_rows:
        refuse_same_rows(*audits)
    keys = [*ALL_KEYS, "metric", "measure"]
    old, new = (_estimates(audit) for audit in audits)
    both = new.join(old, on=keys, how="full", coalesce=True, nulls_equal=True, suffix="_before")
    in_order = both.sort(_PLACE, f"{_PLACE}_before", nulls_last=True, maintain_order=True)
    changed = _measure_changes(in_order, levels[0], adjust)
    columns = (*ALL_KEYS, "metric", "measure", *CHANGE_NUMBERS, "verdict")
    changes = changed.with_columns(_finding(levels[0])).select(columns)
    return Changes(changes, *audits, adjust)


def _estimates(audit: Audited) -> pl.DataFrame:
    """Lay out the estimates of an audit with their limits: a row for each."""
    rows = audit.table.filter(pl.col("metric").is_in(CHANGED_METRICS))
    is_ratio = pl.col("metric") == IMPACT_RATIO
    values = rows.filter(~is_ratio).with_columns(verdict=pl.lit(None, pl.String))
    gaps = rows.filter(~is_ratio, pl.col("attribute") != OVERALL)
    parts = [
        part.select(
            *(*ALL_KEYS, "metric", "verdict"),
            measure=pl.lit(measure),
            estimate=pl.col(measure),
            low=pl.col(f"{measure}_low"),
            high=pl.col(f"{measure}_high"),
        )
        for measure, part in ((VALUE, values), (GAP, gaps), (RATIO, rows.filter(is_ratio)))
    ]
    metric = pl.col("metric").cast(pl.Enum(CHANGED_METRICS))
    in_order = pl.concat(parts).sort(metric, pl.col("measure") == GAP, maintain_order=True)
    return in_order.with_row_index(_PLACE)


def _measure_changes(
    table: pl.DataFrame, level: ConfidenceLevel, adjust: Adjustment
) -> pl.DataFrame:
    """Subtract estimates, with limits and tests that agree with them."""

    def read(end: str = "") -> tuple[Array, Limits]:
        value, *limits = (table[f"{name}{end}"].to_numpy() for name in ("estimate", "low", "high"))
        return value, Limits(*limits)

    (after, limits_after), (before, limits_before) = read(), read("_before")
    change = after - before
    is_ratio, is_gap = ((table["measure"] == measure).to_numpy() for measure in (RATIO, GAP))
    limits = find_gap_limits(after, limits_after, before, limits_before)
    with np.errstate(divide="ignore", invalid="ignore"):
        p_value = p_value_of_limits(change, limits, Level.of(level))
    # A gap is measured from 0, and a ratio from 1.
    origin = np.where(is_ratio, 1.0, 0.0)
    growth = np.abs(after - origin) - np.abs(before - origin)
    p_adjusted = np.empty_like(p_value)
    # As in an audit, impact ratios are adjusted for themselves.
    for family in (is_ratio, ~is_ratio):
        p_adjusted[family] = adjust_p_values(p_value[family], adjust)
    numbers = {
        "before": before,
        "after": after,
        "change": change,
        "change_low": limits.low,
        "change_high": limits.high,
        "growth": np.where(is_ratio | is_gap, growth, np.nan),
        "p_value": p_value,
        "p_adjusted": p_adjusted,
    }
    return table.with_columns(pl.DataFrame(numbers, nan_to_null=True))


def _finding(level: ConfidenceLevel) -> pl.Expr:
    """Say which gaps changed, and which are different in one of the audits only."""
    # Null where a gap has no verdict, which is then neither different nor alike.
    after, before = (pl.col(name).is_in(FINDINGS) for name in ("verdict", "verdict_before"))
    growth = pl.col("growth")
    found, lost = after & ~before, before & ~after
    # Impact ratios are to the highest rate, and so at most 1.
    turned = pl.col("before") * pl.col("after") < 0
    kinds = found & (growth > 0), lost & (growth < 0), turned, growth > 0, pl.lit(value=True)
    of_change, of_detection = (
        pl.coalesce(pl.when(holds).then(pl.lit(name)) for name, holds in zip(*cases, strict=True))
        for cases in ((CHANGED, kinds), (SHOWN, (found, lost)))
    )
    changed = pl.col("p_adjusted") <= 1 - as_number(level)
    known = (pl.col("measure") != VALUE) & pl.col("change").is_not_null()
    finding = pl.when(changed).then(of_change).otherwise(of_detection)
    return pl.when(known).then(finding).alias("verdict")


HEADINGS = {
    GAP: "Gaps to the reference, in points",
    RATIO: "Impact ratios",
    VALUE: "Values, with changes in points",
}


# What has a verdict.
_NOUNS = {GAP: "gap", RATIO: "impact ratio"}


def changes_in_text(changes: Changes, screen: Screen) -> str:
    """Write what changed in sentences, and in tables what is significant or a verdict."""
    check_columns(changes.table, screen)
    notable, others = changes.divided()
    parts = [textwrap.fill(" ".join(sentences_of(changes)), screen.width)]
    parts += [
        f"{screen.heading(HEADINGS[measure])}:\n{_table(rows, measure, screen)}"
        for measure in HEADINGS
        if not (rows := notable.filter(measure=measure)).is_empty()
    ]
    if notable.height and others.height:
        parts.append(not_significant(others))
    return "\n\n".join(parts)


def not_significant(others: pl.DataFrame) -> str:
    """Count the changes that are neither significant nor a verdict."""
    are = verb(others.height, "is", "are")
    return f"{many(others.height, 'other change')} {are} not significant."


def sentences_of(changes: Changes) -> list[str]:
    """Count what changed and what is only shown, and name what only one audit has."""
    table = changes.table
    sentences = [_counts(changes)]
    for finding, (measure, noun) in product(SHOWN, _NOUNS.items()):
        if number := table.filter(measure=measure, verdict=finding).height:
            own = verb(number, "its change is", "their changes are")
            are = verb(number, "is", "are")
            sentences.append(f"{many(number, noun)} {are} {finding}; {own} not significant.")
    return [*sentences, *_of_other_references(changes), *_of_one_audit(table)]


def _of_other_references(changes: Changes) -> list[str]:
    """Name the impact ratios that refer to another category after than before."""
    keys = ["attribute", MODEL]
    old, new = (
        audit.table.filter(pl.col("reference").is_not_null(), metric=IMPACT_RATIO)
        .select(*keys, "reference")
        .unique(maintain_order=True)
        for audit in (changes.before, changes.after)
    )
    both = new.join(old, on=keys, nulls_equal=True, suffix="_before", maintain_order="left")
    return [
        f"Impact ratios by {row['attribute']} refer to {row['reference']} after and to "
        f"{row['reference_before']} before: their changes are also those of the reference."
        for row in both.iter_rows(named=True)
        if row["reference"] != row["reference_before"]
    ]


def _counts(changes: Changes) -> str:
    """Count the significant changes of gaps, by what became of them, and of the metrics."""
    parts = []
    for measure, noun in (_NOUNS | {VALUE: "value"}).items():
        tested = changes.table.filter(pl.col("p_value").is_not_null(), measure=measure)
        changed = tested.filter(changes.significant)
        if tested.height:
            how = [
                f"{number:,} {finding}"
                for finding in CHANGED
                if (number := changed.filter(verdict=finding).height)
            ]
            count = f"{changed.height:,}" if changed.height else "none"
            of_all = f"{count} of {many(tested.height, noun)}"
            parts.append(f"{of_all} ({', '.join(how)})" if how else of_all)
    text = f"{listed(parts)} changed significantly." if parts else "no change can be tested."
    return capitalised(text)


def _of_one_audit(table: pl.DataFrame) -> list[str]:
    """Name the segments that only one of the audits has."""
    sentences = []
    for one, other in (("before", "after"), ("after", "before")):
        known = pl.col(one).is_not_null().any() & pl.col(other).is_null().all()
        segments = table.group_by(AUDIT_KEYS, maintain_order=True).agg(known.alias("only"))
        only = segments.filter("only").select(AUDIT_KEYS)
        if names := [segment_in_words(*keys) for keys in only.rows()]:
            sentences.append(f"Only {one}: {first_few(names, '; ')}.")
    return sentences


def _table(changes: pl.DataFrame, measure: str, screen: Screen) -> str:
    if changes[MODEL].n_unique() == 1:
        changes = changes.drop(MODEL)
    segments = keys_of(changes)
    changes = changes.with_columns(pl.col(key).fill_null(MISSING) for key in segments)
    keys = [*segments, "metric"]
    in_points = {GAP: ("before", "after", "change"), VALUE: ("change",)}.get(measure, ())
    ends = "change_low", "change_high"
    write = limits_in_text if measure == RATIO else points_in_text
    short = changes.select(*keys, "before", "after", "change").with_columns(
        *(points_in_text(changes, name) for name in in_points),
        write(changes, *ends).alias("interval"),
        *([changes["verdict"]] if measure != VALUE else []),
    )
    return fitted_table(changes, short, screen, keys, least=short.width)
