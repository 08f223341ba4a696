"""Estimates as charts draw them, read from tables of comparisons, pairs of scores and changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, get_args

import polars as pl

from polars_wroc import checks
from polars_wroc.arrays import TOLERANCE
from polars_wroc.charts.channels import Keys, read_groups, read_table, shortened
from polars_wroc.charts.options import (
    INTERVAL,
    JOINT_INTERVAL,
    POINTS,
    Show,
    in_points,
    sentences,
    unlike,
)
from polars_wroc.checks import FOUR_FIFTHS, MARGIN, did_you_mean
from polars_wroc.groups.comparisons import (
    BELOW_FOUR_FIFTHS,
    COMPARABLE,
    FAVORABLE_RATE,
    FINDINGS,
    IMPACT,
    IMPACT_RATES,
    IMPACT_RATIO,
    METRICS,
    THE_REFERENCE,
    FairnessMetric,
    is_finding,
    rated_ratios,
)
from polars_wroc.groups.release_check import WORSE
from polars_wroc.inputs.columns import AUDIT_KEYS, MISSING, MODEL, OVERALL, UNKNOWN_CATEGORY
from polars_wroc.inputs.metric import MINUS, Metric
from polars_wroc.metrics.compare import PAIR
from polars_wroc.stats.families import DIFFERENT, EQUIVALENT, INCONCLUSIVE

# Columns of the drawn rows. Gaps are in points, whatever they are of.
VALUE, LOW, HIGH = "__value", "__low", "__high"
# The value of all rows, and the least value that is tolerated, which have lines.
LINE_VALUE, LIMIT_VALUE = "__line_value", "__limit_value"
P_ADJUSTED, VERDICT, REMARK, ROWS = "__p_adjusted", "__verdict", "__remark", "__n"
BEFORE, AFTER = "__before", "__after"
# What a value is compared with, and where it is alike.
MARK, NEAR_LOW, NEAR_HIGH = "__mark", "__near_low", "__near_high"
NUMBERS = (VALUE, LOW, HIGH)
REFERENCE = "reference"
_DRAWN = (
    *(ROWS, *NUMBERS, LINE_VALUE, LIMIT_VALUE, P_ADJUSTED, VERDICT, REMARK, BEFORE, AFTER),
    *(MARK, NEAR_LOW, NEAR_HIGH),
)
SIGNIFICANT, _NOT_SIGNIFICANT, _UNTESTED = "significant", "not significant", "not tested"
# The name of a segment with that of its attribute.
NAMED = pl.format("{} = {}", "attribute", pl.col("segment").fill_null(MISSING))
_MAKERS = (
    "`group_gaps`, `impact_ratios`, `fairness`, `audit`, `worst_segments`, `compare`, "
    "`audit_changes` or `release_check`"
)
_COMPARED = ("metric", "value", "reference_value", "gap", "ratio", "verdict", "reason")
# A column that only releases have.
_OF_RELEASES = "n_changed"
# How many times as wide as the median one an interval is at most that sets the range of a chart.
_WIDE = 2
# Most changes that can be read.
_MOST = 40


class Band(NamedTuple):
    """Where estimates are tolerated: from ``low`` to ``high``, which is None without an end."""

    low: float
    high: float | None
    note: str

    def around(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Add the ends to each row."""
        high = pl.lit(self.high, pl.Float64)
        return rows.with_columns(pl.lit(self.low).alias(NEAR_LOW), high.alias(NEAR_HIGH))


@dataclass(frozen=True)
class Estimates:
    """Rows with an estimate each, and what is said of them."""

    rows: pl.DataFrame
    keys: Keys
    title: str
    description: str
    # The number in a few words.
    what: str = "gap"
    number: str = POINTS
    limits: str = INTERVAL
    # Where there is no difference; None: no line.
    none: float | None = 0.0
    note: str | None = None
    # The name of what a value has an upright mark at.
    mark: str = REFERENCE
    # Verdict that is marked.
    marked: str = DIFFERENT
    # Column whose values get a panel each unless the caller says otherwise.
    facet: str | None = None
    # What is different, for the title.
    finding: str | None = None

    @property
    def axis(self) -> str:
        """Title of the axis, with the unit."""
        return in_points(self.title) if self.number == POINTS else self.title

    @property
    def usual(self) -> pl.DataFrame:
        """Rows but those with wide intervals in which nothing is found."""
        width = pl.col(HIGH) - pl.col(LOW)
        is_usual = (width <= _WIDE * width.median()).fill_null(value=True)
        if VERDICT in self.rows.columns:
            is_usual |= pl.col(VERDICT).eq_missing(self.marked)
        return self.rows.filter(is_usual)

    @property
    def drawn(self) -> list[str]:
        """Columns of the drawn rows, beside those of groups."""
        return [name for name in _DRAWN if name in self.rows.columns]


def read_estimates(
    table: Any, metric: str | Sequence[str], show: Show, margin: float | None, level: float | None
) -> Estimates:
    """Read what is to be shown of the ``metric`` of a table of this package."""
    checks.option("show", show, get_args(Show))
    if margin is not None:
        margin = checks.number("margin", margin, low=0, high=1, open_ends=True)
    table = read_table("table", table, _MAKERS)
    names = set(table.columns)
    if {*PAIR, "gap_se"} <= names:
        return _of_pairs(table, metric)
    if {"measure", "change"} <= names:
        return _of_changes(table, metric, show, level or 0.95)
    missing = [name for name in (*AUDIT_KEYS, MODEL, *_COMPARED) if name not in names]
    if missing:
        msg = f"`table` must be a table of comparisons; found no {missing}: make it with {_MAKERS}"
        raise ValueError(msg)
    return _of_comparisons(table, _chosen(table, metric), show, margin)


def _chosen(table: pl.DataFrame, metric: str | Sequence[str]) -> list[Metric]:
    """Look up the metrics, in the order of the caller."""
    known = {**METRICS, **COMPARABLE, FAVORABLE_RATE.name: FAVORABLE_RATE}
    held = [name for name in known if name in set(table["metric"])]
    names = [metric] if isinstance(metric, str) else list(metric)
    for name in names:
        if name not in held:
            hint = did_you_mean(name, held)
            checks.reject("metric", f"be one of the table, {held}", f"{name!r}{hint}")
    if not names:
        checks.reject("metric", "name at least one metric", "none")
    return [known[name] for name in names]


def _shows(metric: Metric) -> list[Show]:
    """List what there is of a metric."""
    if isinstance(metric, FairnessMetric):
        return ["gap" if metric.kind == "difference" else "ratio"]
    if metric is IMPACT:
        return ["value", "ratio"]
    shows: list[Show] = ["value"]
    if metric.has_gap or metric.target is not None:
        shows.append("gap")
    return [*shows, "ratio"] if metric.has_gap and metric.has_ratio else shows


def _of_comparisons(
    table: pl.DataFrame, metrics: list[Metric], show: Show, margin: float | None
) -> Estimates:
    """Read rows of comparisons: segments, or the two groups that differ most."""
    if _OF_RELEASES in table.columns:
        return _of_releases(table, metrics, show, margin)
    searched = "n_examined" in table.columns
    for metric in metrics:
        if show not in _shows(metric) and not searched:
            checks.reject("show", f"be one of {_shows(metric)} for {metric.column}", repr(show))
    first, names = metrics[0], [metric.column for metric in metrics]
    # Rates whose ratios are impact ratios are judged by these.
    of_rates = show == "value" and _are_rates_of_ratios(table, names)
    of_pairs, of_impact = isinstance(first, FairnessMetric), first is IMPACT or of_rates
    if first is IMPACT:
        # The value is the ratio.
        show = "ratio"
    rows = table.filter(pl.col("metric").is_in(names), pl.col("attribute") != OVERALL)
    if of_rates:
        rows = rated_ratios(table).with_columns(
            value="rate",
            value_low="rate_low",
            value_high="rate_high",
            reference_value="reference_rate",
        )
    of_value = show == "value"
    # What values are judged by.
    by: Show = show if not of_value else "ratio" if of_impact else "gap"
    judged = margin is not None or of_pairs
    if margin is None and (of_impact or of_pairs):
        margin = MARGIN if by == "gap" else 1 - FOUR_FIFTHS
    rows = rows.with_columns(
        *_numbers(show, 100 if show == "gap" else 1), **{ROWS: "n", P_ADJUSTED: "p_adjusted"}
    )
    band = None if margin is None else _band(rows[by], by, margin, one_sided=of_pairs)
    verdict = _verdict(band, by, of_pairs=of_pairs) if judged and band else pl.col("verdict")
    known = pl.col(VALUE if of_pairs else by).is_not_null()
    known &= pl.col("reason").ne_missing(THE_REFERENCE)
    rows = rows.with_columns(pl.when(known).then(verdict).alias(VERDICT))
    rows = rows.with_columns(_remark(of_pairs=of_pairs).alias(REMARK))
    note = band and band.note
    if of_value:
        rows, note = _with_reference(rows, table, margin, of_impact=of_impact)
    elif band:
        rows = band.around(rows)
    if of_pairs:
        rows = rows.drop(ROWS)
    missing = UNKNOWN_CATEGORY if of_impact else MISSING
    columns = {"segment": NAMED} if searched else _keys(rows, metrics)
    drawn, keys = _named(rows, columns, missing)
    title = _title(metrics, show)
    joint = of_pairs or searched or (of_impact and show == "ratio")
    return Estimates(
        drawn,
        keys,
        title,
        f"{title} of each {'row' if of_pairs else 'segment'} with its limits",
        what=show,
        number=POINTS if show == "gap" else ".3f",
        limits=JOINT_INTERVAL if joint else INTERVAL,
        none={"value": None, "gap": 0.0, "ratio": 1.0}[show],
        note=sentences(note, None if of_pairs else _counted(metrics)),
        # A margin of the caller has verdicts of its own.
        marked=BELOW_FOUR_FIFTHS if of_impact and not judged else DIFFERENT,
        facet="attribute" if len(keys) > 1 and "metric" in keys and "attribute" in keys else None,
        finding=None
        if of_pairs or len(metrics) > 1
        else _finding(rows, _RATE.lower() if of_impact else first.label, by),
    )


def _are_rates_of_ratios(table: pl.DataFrame, names: Sequence[str]) -> bool:
    """Whether the metrics are the rates of a table of impact ratios."""
    return set(table["metric"]) == {IMPACT_RATIO, *names} and names[0] in IMPACT_RATES


def _of_releases(
    table: pl.DataFrame, metrics: list[Metric], show: Show, margin: float | None
) -> Estimates:
    """Read the metrics of two scores: the new one's against a mark at the old one's, or the gap."""
    (metric,) = metrics[:1]
    if show == "ratio" or len(metrics) > 1:
        found = f"{show!r} of {[each.column for each in metrics]}"
        msg = f"`show` must be 'value' or 'gap' of one metric of `release_check`; found {found}"
        raise ValueError(msg)
    rows = table.filter(metric=metric.column)
    start, unit = (pl.col("reference_value"), 1) if show == "value" else (pl.lit(0.0), 100)
    rows = rows.with_columns(
        *_numbers("gap", unit, start),
        **{ROWS: "n", P_ADJUSTED: "p_adjusted", VERDICT: "verdict"},
        **{REMARK: pl.col("verdict"), MARK: start},
    )
    if margin is None:
        margin = next(iter(rows["margin"].drop_nulls()), None)
    band = _band(rows[VALUE], "gap", margin, one_sided=False) if margin and show == "gap" else None
    if band:
        rows = band.around(rows)
    drawn, keys = _named(rows if show == "value" else rows.drop(MARK), _keys(rows, metrics))
    what = metric.heading if show == "value" else f"Change of {metric.label}"
    mark = "Upright mark: the old score. Lines: that plus the limits of the change"
    return Estimates(
        drawn,
        keys,
        f"{what} of the new score" if show == "value" else what,
        f"{what} of each segment with the new score, and its limits",
        what=metric.label if show == "value" else "change",
        number=".3f" if show == "value" else POINTS,
        none=None if show == "value" else 0.0,
        note=sentences(band and band.note, mark * (show == "value") or None, _counted(metrics)),
        mark="old",
        marked=WORSE,
        finding=_finding(rows, metric.label, "gap", "the old score", (WORSE,)),
    )


def _numbers(column: str, unit: int, start: pl.Expr | None = None) -> list[pl.Expr]:
    """Name an estimate and its limits as they are drawn, in parts of this unit, from a start."""
    start = pl.lit(0.0) if start is None else start
    ends = (column, f"{column}_low", f"{column}_high")
    return [
        (start + pl.col(end).cast(pl.Float64)).mul(unit).alias(drawn)
        for end, drawn in zip(ends, NUMBERS, strict=True)
    ]


def _with_reference(
    rows: pl.DataFrame, table: pl.DataFrame, margin: float | None, *, of_impact: bool
) -> tuple[pl.DataFrame, str | None]:
    """Add what each value is compared with, where it is alike or too low, and say what they are."""
    reference = pl.col("reference_value")
    if of_impact:
        assert margin is not None
        share = "four fifths" if 1 - margin == FOUR_FIFTHS else f"{1 - margin:.3g}"
        line = (1 - margin) * reference.max().over("attribute", MODEL)
        rows = rows.with_columns(line.alias(LIMIT_VALUE))
        lined, at = f"Dashed: {share} of the reference's rate", LIMIT_VALUE
    else:
        whole = table.filter(pl.col("attribute") == OVERALL)
        whole = whole.select(MODEL, "metric", pl.col("value").alias(LINE_VALUE))
        keys = [MODEL, "metric"]
        rows = rows.join(whole, on=keys, how="left", nulls_equal=True, maintain_order="left")
        lined, at = "Dotted: all rows", LINE_VALUE
    line_note = lined if rows[at].count() else None
    if not rows["reference_value"].count():
        return rows, line_note
    near = None
    if margin is not None and not of_impact:
        ends = {NEAR_LOW: reference - margin, NEAR_HIGH: reference + margin}
        rows, near = rows.with_columns(**ends), f"Shaded: within {100 * margin:.3g} points of it"
    whose = rows["reference"].drop_nulls().unique().to_list()
    mark = "the rest" if whose == ["rest"] else "the reference"
    said = sentences(f"Upright mark: {mark}", near, line_note)
    return rows.with_columns(reference.alias(MARK)), said


def _band(values: pl.Series, show: Show, margin: float, *, one_sided: bool) -> Band:
    """Return the band of what is tolerated, and what a caption says of it."""
    if show == "gap":
        most = 100 * margin
        if one_sided:
            note = f"Shaded: differences of at most {most:.3g} points. Line: no difference"
            return Band(0.0, most, note)
        return Band(-most, most, f"Shaded: gaps within {most:.3g} points. Line: no gap")
    low = 1 - margin
    highest = values.max()
    above = isinstance(highest, float) and highest > 1
    upper = f" to {1 / low:.3g}" if above else " and more"
    note = f"Shaded: ratios of {low:.3g}{upper}. Line: the same rate"
    return Band(low, 1 / low if above else None, note)


def _verdict(band: Band, by: Show, *, of_pairs: bool) -> pl.Expr:
    """Judge by the band: equivalent within it; different beyond it, or where the table says so."""
    low, high = (pl.col(f"{by}_{end}") * (100 if by == "gap" else 1) for end in ("low", "high"))
    # Nothing is beyond the end of a band that ends at no difference.
    least = band.low - TOLERANCE if band.low else -float("inf")
    most = float("inf") if band.high is None else band.high + TOLERANCE
    beyond = (high < least) | (low > most)
    beyond |= low > 0 if of_pairs and band.low == 0 else is_finding()
    within, known = (low >= least) & (high <= most), low.is_not_null() & high.is_not_null()
    alike_or_not = pl.when(known & within).then(pl.lit(EQUIVALENT)).when(known & beyond)
    return alike_or_not.then(pl.lit(DIFFERENT)).otherwise(pl.lit(INCONCLUSIVE))


def _remark(*, of_pairs: bool) -> pl.Expr:
    """Say the verdict, or why there is none; of two groups also which."""
    if not of_pairs:
        return pl.coalesce(VERDICT, "reason")
    groups = (shortened(pl.col(name).fill_null(MISSING)) for name in ("segment", "reference"))
    pair = pl.format("{} against {}", *groups)
    return pl.concat_str([pl.col(VERDICT), pair], separator=": ")


def _counted(metrics: list[Metric]) -> str | None:
    """Say which rows are counted, unless these are all."""
    kinds = {metric.sample_sizes for metric in metrics}
    if len(kinds) > 1 or kinds == {("rows",)}:
        return None
    (sizes,) = kinds
    words = {"selected": "rows that are selected", "rejected": "rows that are not selected"}
    if len(sizes) > 1:
        return "n is the number of rows of the smaller class"
    return f"n is the number of {words.get(sizes[0], sizes[0])}"


_RATE = "Rate of the favorable decision"


def _title(metrics: list[Metric], show: Show) -> str:
    """Name what is drawn."""
    first, several = metrics[0], len(metrics) > 1
    if isinstance(first, FairnessMetric) and several:
        return "Largest difference between groups" if show == "gap" else "Smallest ratio of groups"
    if isinstance(first, FairnessMetric) or (first is IMPACT and show == "ratio"):
        return first.heading
    if first is FAVORABLE_RATE:
        return _RATE
    if show == "value":
        return "Value" if several else first.heading
    of = "" if several else f" in {first.label}" if show == "gap" else f" of {first.label}"
    return f"{show.capitalize()}{of}"


# What a segment is above or below.
_THAN = {"rest": "the rest", "overall": "all rows"}


def _finding(
    rows: pl.DataFrame,
    what: str,
    by: str,
    than: str | None = None,
    marked: Sequence[str] = FINDINGS,
) -> str | None:
    """Say what is different in the segment that differs most, below rather than above."""
    found = rows.filter(pl.col(VERDICT).is_in(marked), pl.col(by).is_not_null()).sort(by)
    if by != "ratio":
        # Two segments have the same gap but for rounding.
        found = found.sort(pl.col(by).abs().round(9), descending=True, maintain_order=True)
    if found.is_empty():
        return None
    row = found.row(0, named=True)
    name = found[:1].select(NAMED).item() if rows["attribute"].n_unique() > 1 else row["segment"]
    name = "all rows" if row["attribute"] == OVERALL else name or MISSING
    whose = f" by {row[MODEL]}" if rows[MODEL].n_unique() > 1 else ""
    than = than or _THAN.get(row["reference"], row["reference"])
    if by == "ratio":
        return f"{name}: {what}{whose} {row[by]:.2f} times that of {than}"
    size = 100 * abs(row[by])
    points = f"{size:.0f}" if size >= 1 else f"{size:.2g}"
    points += " point" if points == "1" else " points"
    return f"{name}: {what}{whose} {points} {'below' if row[by] < 0 else 'above'} {than}"


def _keys(rows: pl.DataFrame, metrics: list[Metric]) -> dict[str, pl.Expr]:
    """Name the group columns: attributes and segments, and scores and metrics if several."""
    attributes = rows["attribute"].unique(maintain_order=True).to_list()
    keys: dict[str, pl.Expr] = {}
    if isinstance(metrics[0], FairnessMetric):
        if len(attributes) > 1 or len(metrics) == 1:
            keys["attribute"] = pl.col("attribute")
    elif len(attributes) == 1:
        # One attribute alone is the column of groups.
        keys[attributes[0]] = pl.col("segment")
    else:
        keys |= {name: pl.col(name) for name in AUDIT_KEYS}
    if rows[MODEL].n_unique() > 1:
        keys[unlike(MODEL, keys)] = pl.col(MODEL)
    if len(metrics) > 1:
        labels = {metric.column: metric.heading for metric in metrics}
        keys[unlike("metric", keys)] = pl.col("metric").replace_strict(labels)
    return keys


def _named(
    rows: pl.DataFrame, keys: dict[str, pl.Expr], missing: str = MISSING
) -> tuple[pl.DataFrame, Keys]:
    """Keep the columns that are drawn, and write the groups as text."""
    drawn = tuple(name for name in _DRAWN if name in rows.columns)
    named = rows.select(*(column.alias(name) for name, column in keys.items()), *drawn)
    return read_groups("table", named, drawn, _MAKERS, missing)


def _of_pairs(table: pl.DataFrame, metric: str | Sequence[str]) -> Estimates:
    """Read the table of `compare`: a panel for each pair of scores, if there are groups."""
    if metric != "auc":
        checks.reject("metric", "be 'auc' for the table of `compare`", repr(metric))
    groups = table.columns[: table.columns.index(MODEL)]
    pair = unlike("comparison", groups)
    rows = table.with_columns(
        *_numbers("gap", 100),
        pl.col("n").alias(ROWS),
        pl.col("p_adjusted").alias(P_ADJUSTED),
        pl.col("verdict").alias(VERDICT),
        pl.col("verdict").alias(REMARK),
    )
    names = pl.format(f"{{}} {MINUS} {{}}", *map(pl.col, PAIR))
    what = "Difference in AUC"
    return Estimates(
        *_named(rows, {name: pl.col(name) for name in groups} | {pair: names}),
        what,
        f"{what} of each pair of scores with its confidence interval, and a line at none",
        what="difference",
        facet=pair if groups else None,
    )


def _of_changes(
    table: pl.DataFrame, metric: str | Sequence[str], show: Show, level: float
) -> Estimates:
    """Read the table of `audit_changes`, the rows that matter most if there are many."""
    (chosen,) = _chosen(table, metric if isinstance(metric, str) else [*metric][:1])
    known = table.filter(pl.col("change").is_not_null(), measure=show, metric=chosen.column)
    if known.is_empty():
        msg = f"`table` must have changes of the {show} of {chosen.column} to be drawn; found none"
        raise ValueError(msg)
    order = [pl.col("verdict").is_null(), "p_value", pl.col("change").abs().neg()]
    ranked = known.with_row_index("__row").sort(order, nulls_last=True, maintain_order=True)
    rows = ranked.head(_MOST).sort("__row")
    significant = pl.col("p_adjusted") <= 1 - level
    tested = pl.when(significant).then(pl.lit(SIGNIFICANT))
    said = tested.when(~significant).then(pl.lit(_NOT_SIGNIFICANT)).otherwise(pl.lit(_UNTESTED))
    of_value = show == "value"
    before, after = (pl.col(name) for name in ("before", "after"))
    # Of a value, before is a mark, and after is drawn.
    named = {MARK: before} if of_value else {BEFORE: 100 * before, AFTER: 100 * after}
    rows = rows.with_columns(
        *(_numbers("change", 1, before) if of_value else _numbers("change", 100)),
        said.alias(VERDICT),
        pl.concat_str([said, "verdict"], separator=", ", ignore_nulls=True).alias(REMARK),
        **named,
        **{P_ADJUSTED: "p_adjusted"},
    )
    keys = {name: pl.col(name) for name in AUDIT_KEYS}
    if rows[MODEL].n_unique() > 1:
        keys[MODEL] = pl.col(MODEL)
    label = chosen.label if of_value else f"gap in {chosen.label}"
    what = f"{chosen.heading} in the second audit" if of_value else f"Change of {label}"
    some = f"{rows.height} of {known.height:,} changes: findings, then the smallest p-values"
    return Estimates(
        *_named(rows, keys),
        what if of_value else f"{what}, after less before",
        f"{what} of each segment with its confidence interval",
        what="after" if of_value else "change",
        number=".3f" if of_value else POINTS,
        none=None if of_value else 0.0,
        note=sentences(
            "Upright mark: before. Lines: that plus the limits of the change" if of_value else None,
            some if rows.height < known.height else None,
        ),
        mark="before",
        marked=SIGNIFICANT,
        finding=_finding(rows, label, "change", "the first audit", (SIGNIFICANT,)),
    )
