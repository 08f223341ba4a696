"""Estimates with their limits, read from tables of comparisons, summaries and changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from polars_wroc import checks
from polars_wroc.charts.groups import cross_columns, name_column, read_table, require_columns
from polars_wroc.charts.options import Show, protect_name
from polars_wroc.charts.wording import write_gap_change
from polars_wroc.checks import FOUR_FIFTHS
from polars_wroc.documents.numbers import write_number, write_points
from polars_wroc.groups.comparisons import (
    BELOW_FOUR_FIFTHS,
    CHANGED_METRICS,
    COMPARABLE,
    FAVORABLE_RATE,
    GAP_CHANGES,
    GAP_FINDINGS,
    IMPACT_RATES,
    IMPACT_RATIO,
    METRICS,
    SMD,
    FairnessMetric,
    rated_ratios,
)
from polars_wroc.groups.release_check import BETTER, WORSE
from polars_wroc.inputs.columns import AUDIT_KEYS, MISSING, MODEL, OVERALL, UNKNOWN_CATEGORY
from polars_wroc.inputs.metric import MINUS, Metric, check_metric
from polars_wroc.metrics.registry import LOSSES, ROC_AUC
from polars_wroc.stats.families import DIFFERENT
from polars_wroc.thresholds.registry import RATES

MAKERS = (
    "`group_gaps`, `impact_ratios`, `fairness`, `audit`, `worst_segments`, `compare`, "
    "`audit_changes`, `release_check` or `summary`"
)
# Columns that tell tables of comparisons, of pairs of scores and of summaries apart.
_COMPARED = (*AUDIT_KEYS, "metric", "value", "gap", "ratio", "verdict")
_PAIRED = (MODEL, "reference", "value", "gap", "gap_low", "p_adjusted")
_SUMMARISED = ("auc", "auc_low", "auc_high")
_RELEASED, _CHANGED, _SEARCHED = "n_changed", "growth", "explained_by"
ROW = "row"
# Group columns of comparisons.
_ATTRIBUTE, _PAIR = protect_name("attribute"), protect_name("pair")
# What differences of rates are multiplied by.
POINTS = 100
# Most changes that can be read.
_MOST_CHANGES = 40
# What findings mean for people, by the words of verdicts.
_TONES = {WORSE: "worse", BETTER: "better", BELOW_FOUR_FIFTHS: "worse"}
_REFERENCES = {"rest": "everyone else", "overall": "all rows"}


@dataclass(frozen=True)
class Estimates:
    """Rows with an estimate each, and how it is written.

    ``rows`` have the columns ``row``, ``n``, ``x``, ``low``, ``high``, ``mark`` (what ``x`` is
    compared with), ``limit`` (the least that is tolerated), ``tone`` (what a finding means; null
    without one), ``note``, ``reason`` (why there is no test), ``turn`` (what became of a gap
    between two audits; null for other numbers), and the group ``keys``, which are protected names.
    """

    rows: pl.DataFrame
    keys: Sequence[str]
    metric: Metric
    show: Show
    # What the number is of, in the middle of a sentence, and with its unit on the axis.
    what: str
    axis: str
    # What a number is multiplied by, how it is written, and how it is written on the axis.
    unit: int = 1
    form: str = ".3f"
    tick: str = ",~f"
    # Where there is no difference.
    none: float | None = None
    # What the marks are, and what a finding is compared with.
    mark: str = ""
    than: str = "everyone else"

    @property
    def title(self) -> str:
        """What is found: the largest difference, or between which values groups are."""
        found = self.rows.filter(pl.col("tone").is_not_null(), pl.col("x").is_not_null())
        if found.is_empty():
            is_tested = self.show != "value" and self.rows["note"].count()
            return f"{_capital(self.what)}: no difference is shown" if is_tested else self._range()
        apart = (pl.col("x") - pl.col("mark").fill_null(self.none or 0.0)) / self.unit
        ranked = found.with_columns(apart=apart).sort(
            pl.col("tone") == "worse", pl.col("apart").abs().round(9), pl.col("apart") < 0
        )
        worst = ranked.row(-1, named=True)
        name = ", ".join(str(worst[key]) for key in (ROW, *self.keys) if key != _ATTRIBUTE)
        if worst["turn"] is not None:
            return f"{name}: {self.what} {worst['turn']}"
        if self.show == "ratio":
            ratio = write_number(worst["x"], ".2f")
            if self.metric.name == IMPACT_RATIO:
                return f"{name}: selected {ratio} times as often as {self.than}"
            return f"{name}: {self.what} {ratio} times that of {self.than}"
        size = write_points(worst["apart"])
        if not self.has_points:
            size = write_number(abs(worst["apart"]), ".3f")
        side = "below" if worst["apart"] < 0 else "above"
        return f"{name}: {self.what} {size} {side} {self.than}"

    @property
    def has_points(self) -> bool:
        """Whether differences are in percentage points."""
        return self.unit != 1 or self.tick.endswith("%") or self.metric is ROC_AUC

    def _range(self) -> str:
        """Say between which values the groups are, of those with enough rows for a verdict."""
        known = self.rows.filter(pl.col("x").is_not_null()).sort("x", maintain_order=True)
        if known.is_empty():
            return f"{_capital(self.what)}: no values"
        ends = []
        for place in (0, -1):
            row = known.row(place, named=True)
            keys = (ROW, *(key for key in self.keys if key == MODEL))
            name = ", ".join(str(row[key]) for key in keys if row[key])
            ends.append(f"{write_number(row['x'], self.form)} ({name})")
        if known.height == 1:
            return f"{_capital(self.what)}: {ends[0]}"
        return f"{_capital(self.what)} from {ends[0]} to {ends[1]}"


def _capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


def read_estimates(table: object, metric: str, show: Show) -> Estimates:
    """Read the estimates of a ``metric`` from a table of this package."""
    frame, _ = read_table("table", table, (), MAKERS)
    if not _has(frame, _COMPARED):
        if _has(frame, _PAIRED):
            return _read_pairs(frame, metric, show)
        if _has(frame, _SUMMARISED):
            return _read_summary(frame, metric, show)
        require_columns("table", frame, _COMPARED, MAKERS)
    if _CHANGED in frame.columns:
        return _read_changes(frame, metric, show)
    return _read_comparisons(frame, metric, show)


def _has(frame: pl.DataFrame, columns: Sequence[str]) -> bool:
    return all(name in frame.columns for name in columns)


def _choose_metric(frame: pl.DataFrame, metric: str) -> Metric:
    """Return the metric of a table, or refuse what it does not have."""
    known = frame["metric"].unique(maintain_order=True).to_list()
    check_metric("metric", metric, known, ", which the table has")
    metrics = {**COMPARABLE, **METRICS, **CHANGED_METRICS, FAVORABLE_RATE.name: FAVORABLE_RATE}
    return metrics[metric]


def _style(metric: Metric, show: Show) -> dict[str, Any]:
    """Return how numbers of a metric are written: unit, format, and format on the axis."""
    is_rate = metric.name in RATES or metric.family in ("impact", "fairness")
    is_rate |= metric.name == "mean_calibration_error"
    if show == "ratio":
        return {"form": ".2f", "tick": ".1f", "none": 1.0}
    if show == "value":
        return {"form": ".1%", "tick": "~%"} if is_rate else {"form": ".3f", "tick": ",~f"}
    in_points = is_rate or (metric.name not in LOSSES and metric is not SMD)
    if in_points:
        return {"unit": POINTS, "form": "+.1f", "tick": "+,~f", "none": 0.0}
    return {"form": "+.3f", "tick": "+,~f", "none": 0.0}


def _axis_title(metric: Metric, show: Show, than: str) -> str:
    """Name the numbers of an axis."""
    name = "Selection rate" if metric.name == IMPACT_RATIO else metric.heading
    if isinstance(metric, FairnessMetric):
        return metric.heading
    if show == "gap":
        unit = ", in percentage points" if _style(metric, show).get("unit") == POINTS else ""
        return f"{name}: difference from {than}{unit}"
    return f"{name}, divided by that of {than}" if show == "ratio" else name


def _numbers(column: str, unit: int, start: pl.Expr | None = None) -> dict[str, pl.Expr]:
    """Return an estimate and its limits in a unit, from a start."""
    names = {"x": column, "low": f"{column}_low", "high": f"{column}_high"}
    begin = pl.lit(0.0) if start is None else start
    return {role: (begin + pl.col(name).cast(pl.Float64)) * unit for role, name in names.items()}


def _numbers_after(metric: Metric) -> dict[str, pl.Expr]:
    """Return values after a change, with the limits of the change, within those of the metric."""
    numbers = _numbers("gap", 1, pl.col("reference_value"))
    if metric is not ROC_AUC and metric.name not in RATES:
        return numbers
    return {role: number.clip(0, 1) for role, number in numbers.items()}


def _select_rows(
    rows: pl.DataFrame, keys: Sequence[str], names: Sequence[str], **roles: pl.Expr
) -> pl.DataFrame:
    """Select the columns of estimates: the ``roles`` that a table has, and null for the others."""
    numbers, texts = ("mark", "limit"), ("tone", "note", "reason", "turn")
    empty = {role: pl.lit(None, pl.Float64) for role in numbers}
    empty |= {role: pl.lit(None, pl.String) for role in texts}
    return rows.select(*keys, "n", pl.Series(ROW, names, pl.String), **empty | roles)


def _read_comparisons(frame: pl.DataFrame, metric: str, show: Show) -> Estimates:
    """Read a table of comparisons of groups, or of two scores."""
    chosen = _choose_metric(frame, metric)
    rows = frame.filter(metric=metric)
    if metric == IMPACT_RATIO and show == "value":
        # The value is the ratio.
        show = "ratio"
    # Rates whose ratios are impact ratios are judged by these.
    is_rate = show == "value" and _are_rates_of_ratios(frame, metric)
    if is_rate:
        rows = rated_ratios(frame).with_columns(
            value="rate",
            value_low="rate_low",
            value_high="rate_high",
            reference_value="reference_rate",
        )
    is_release, is_search = _RELEASED in frame.columns, _SEARCHED in frame.columns
    is_fairness = isinstance(chosen, FairnessMetric)
    if not is_release:
        rows = rows.filter(pl.col("attribute") != OVERALL)
    # Where nothing can be compared, rows say why.
    is_compared = rows["verdict"].count() or not rows["reason"].count()
    if is_compared and not rows[show].count():
        known = [name for name in ("gap", "ratio", "value") if rows[name].count()]
        found = f"no {show} of {metric}: `show` may be {' or '.join(map(repr, known)) or 'nothing'}"
        checks.reject("table", f"have numbers to be drawn with `show={show!r}`", found)
    style = _style(chosen, show)
    unit = style.get("unit", 1)
    than = "the old score" if is_release else _name_reference(rows)
    reference = pl.col("reference_value")
    numbers = _numbers(show, unit)
    if is_release and show == "value":
        numbers = _numbers_after(chosen)
    mark, limit = pl.lit(style.get("none"), pl.Float64), pl.lit(None, pl.Float64)
    if show == "value":
        mark = reference
    if metric == IMPACT_RATIO:
        limit = pl.lit(FOUR_FIFTHS)
    if is_rate:
        limit = pl.lit(FOUR_FIFTHS) * reference
    names, panels = _name_rows(rows, is_search=is_search, is_fairness=is_fairness)
    rows = rows.with_columns(pl.col("attribute").alias(_ATTRIBUTE))
    keys = [_ATTRIBUTE] if panels else []
    keys += [MODEL] if rows[MODEL].n_unique() > 1 else []
    is_found = pl.col("verdict").is_in([DIFFERENT, *_TONES])
    side = pl.col("direction") if "direction" in rows.columns else pl.lit(None, pl.String)
    tone = pl.coalesce(pl.col("verdict").replace_strict(_TONES, default=None), side)
    drawn = _select_rows(
        rows,
        keys,
        names,
        **numbers,
        mark=mark,
        limit=limit,
        tone=pl.when(is_found).then(tone.fill_null("either")),
        note=pl.coalesce("verdict", "reason"),
        reason=pl.col("reason"),
    )
    what = "selection rate" if metric == IMPACT_RATIO else chosen.label
    has_marks = show == "value" and rows["reference_value"].count() > 0
    return Estimates(
        drawn,
        keys,
        chosen,
        show,
        what,
        _axis_title(chosen, show, than),
        mark=f"Upright mark: {than}" if has_marks else "",
        than=than,
        **style,
    )


def _are_rates_of_ratios(frame: pl.DataFrame, metric: str) -> bool:
    """Whether a metric is the rate in a table of impact ratios."""
    return metric in IMPACT_RATES and set(frame["metric"]) == {IMPACT_RATIO, metric}


def _name_reference(rows: pl.DataFrame) -> str:
    """Name what the rows are compared with."""
    names = rows["reference"].drop_nulls().unique(maintain_order=True).to_list()
    if IMPACT_RATIO in rows["metric"] and len(names) != 1:
        return "the group selected most"
    if len(names) == 1:
        return _REFERENCES.get(names[0], str(names[0]))
    return _REFERENCES.get(names[0] if names else "", "the reference")


def _name_rows(rows: pl.DataFrame, *, is_search: bool, is_fairness: bool) -> tuple[list[str], bool]:
    """Name the group of each row; also return whether attributes have panels."""
    missing = UNKNOWN_CATEGORY if IMPACT_RATIO in rows["metric"] else MISSING
    attributes = rows["attribute"].to_list()
    several = len({name for name in attributes if name != OVERALL}) > 1
    names = list(name_column(rows, "segment", missing).texts)
    if is_fairness:
        others = name_column(rows, "reference", missing).texts
        names = [f"{name} against {other}" for name, other in zip(names, others, strict=True)]
    is_listed = is_search or is_fairness
    whole = [
        "all rows"
        if attribute == OVERALL
        else f"{attribute}: {name}"
        if is_listed and several
        else name
        for attribute, name in zip(attributes, names, strict=True)
    ]
    return whole, several and not is_listed


def _read_pairs(frame: pl.DataFrame, metric: str, show: Show) -> Estimates:
    """Read the table of `compare`: a row for each pair of scores, or for each group."""
    checks.option("metric", metric, (ROC_AUC.column,))
    checks.option("show", show, ("gap",))
    groups = frame.columns[: frame.columns.index(MODEL)]
    pairs = [f"{a} {MINUS} {b}" for a, b in frame.select(MODEL, "reference").iter_rows()]
    rows = frame.with_columns(pl.Series(_PAIR, pairs, pl.String))
    is_one = rows[_PAIR].n_unique() == 1
    names = _cross(rows, groups) if groups else pairs
    keys = [_PAIR] if groups and not is_one else []
    drawn = _select_rows(
        rows,
        keys,
        names,
        **_numbers("gap", POINTS),
        mark=pl.lit(0.0),
        tone=pl.when(pl.col("verdict") == DIFFERENT).then(pl.lit("either")),
        note=pl.coalesce("verdict", "reason"),
    )
    return Estimates(
        drawn,
        keys,
        ROC_AUC,
        show,
        f"AUC of {frame[MODEL][0]}" if is_one else "AUC",
        "Difference in AUC, in percentage points",
        than=str(frame["reference"][0]) if is_one else "the other score",
        **_style(ROC_AUC, show),
    )


def _cross(rows: pl.DataFrame, groups: list[str]) -> list[str]:
    """Name the groups of rows by all of their columns."""
    return cross_columns(rows.select(groups), groups, ROW)[ROW].to_list()


def _read_summary(frame: pl.DataFrame, metric: str, show: Show) -> Estimates:
    """Read the table of `summary`: the last group column has rows, those before panels."""
    checks.option("metric", metric, (ROC_AUC.column,))
    checks.option("show", show, ("value",))
    columns = frame.columns[: frame.columns.index("auc")]
    groups = [name for name in columns if name != MODEL]
    has_models = MODEL in columns and frame[MODEL].n_unique() > 1
    rows, keys = frame, [MODEL] if has_models and groups else []
    names = name_column(frame, groups[-1] if groups else MODEL if MODEL in columns else None).texts
    if not groups and not has_models:
        names = ["all rows"] * frame.height
    if len(groups) > 1:
        panel = protect_name(groups[0])
        rows = rows.with_columns(pl.Series(panel, _cross(frame, groups[:-1]), pl.String))
        keys.append(panel)
    drawn = _select_rows(rows, keys, names, **_numbers("auc", 1))
    return Estimates(drawn, keys, ROC_AUC, show, "AUC", "AUC", **_style(ROC_AUC, show))


def _read_changes(frame: pl.DataFrame, metric: str, show: Show) -> Estimates:
    """Read the table of `audit_changes`, the rows that matter most if there are many."""
    chosen = _choose_metric(frame, metric)
    checks.option("show", show, ("value", "gap"))
    known = frame.filter(pl.col("gap").is_not_null(), metric=metric)
    if known.is_empty():
        checks.reject("table", f"have changes of the {chosen.label} to be drawn", "none")
    order = [pl.col("finding").is_null(), "p_value", pl.col("gap").abs().neg()]
    ranked = known.with_row_index("place").sort(order, nulls_last=True, maintain_order=True)
    rows = ranked.head(_MOST_CHANGES).sort("place")
    is_gap, is_value = metric in GAP_CHANGES, show == "value"
    is_found = (pl.col("verdict") == DIFFERENT) | pl.col("finding").is_in(GAP_FINDINGS)
    style = _style_changes(chosen, show)
    unit = style.get("unit", 1)
    names, panels = _name_rows(rows, is_search=False, is_fairness=False)
    rows = rows.with_columns(pl.col("attribute").alias(_ATTRIBUTE))
    keys = [_ATTRIBUTE] if panels else []
    keys += [MODEL] if rows[MODEL].n_unique() > 1 else []
    before = pl.col("reference_value")
    numbers = _numbers("gap", unit)
    if is_value:
        numbers = {role: number * unit for role, number in _numbers_after(chosen).items()}
    turns = [
        write_gap_change(*row) if is_gap and row[0] in GAP_FINDINGS else None
        for row in rows.select("finding", "reference_value", "value").iter_rows()
    ]
    said = pl.concat_str("verdict", "finding", separator=", ", ignore_nulls=True)
    drawn = _select_rows(
        rows,
        keys,
        names,
        **numbers,
        mark=before * unit if is_value else pl.lit(style.get("none"), pl.Float64),
        turn=pl.lit(pl.Series(turns, dtype=pl.String)),
        tone=pl.when(is_found).then(pl.lit("either")),
        note=pl.coalesce("reason", pl.when(pl.col("verdict").is_not_null()).then(said)),
    )
    unit_name = ", in percentage points" if unit == POINTS else ""
    axis = f"{chosen.heading if is_value else f'Change of the {chosen.label}'}{unit_name}"
    few = f"{rows.height} of {known.height:,} changes: those that matter most"
    mark = "Upright mark: the first audit" if is_value else ""
    marks = [text for text in (mark, few if rows.height < known.height else "") if text]
    return Estimates(
        drawn,
        keys,
        chosen,
        show,
        chosen.label,
        axis,
        mark=". ".join(marks),
        than="the first audit",
        **style,
    )


def _style_changes(metric: Metric, show: Show) -> dict[str, Any]:
    """Return how values of two audits are written, or their changes."""
    none = {} if show == "value" else {"none": 0.0}
    if metric.name == IMPACT_RATIO:
        sign = "" if show == "value" else "+"
        return {"form": f"{sign}.2f", "tick": f"{sign},~f", **none}
    if metric.name in GAP_CHANGES:
        return {"unit": POINTS, "form": "+.1f", "tick": "+,~f", **none}
    return _style(metric, show)
