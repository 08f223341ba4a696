"""Estimates with their limits, read from tables of comparisons, summaries and changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import get_args

import polars as pl

from polars_wroc import checks
from polars_wroc.charts.groups import cross_columns, name_column, read_table, require_columns
from polars_wroc.charts.options import Show, protect_name
from polars_wroc.charts.wording import write_ends, write_gap_change
from polars_wroc.checks import FOUR_FIFTHS
from polars_wroc.documents.numbers import (
    POINTS,
    RATIO,
    SHARE,
    NumberForm,
    compared_form,
    gap_form,
    write_number,
    write_points,
)
from polars_wroc.groups.comparisons import (
    BELOW_FOUR_FIFTHS,
    CHANGED_METRICS,
    COMPARABLE,
    COMPARISON_SCHEMA,
    FAVORABLE_RATE,
    GAP_CHANGES,
    GAP_FINDINGS,
    IMPACT_RATES,
    IMPACT_RATIO,
    METRICS,
    SHIFTS,
    FairnessMetric,
    put_rates_for_values,
)
from polars_wroc.groups.release_check import BETTER, WORSE
from polars_wroc.inputs.columns import AUDIT_KEYS, MISSING, MODEL, OVERALL, UNKNOWN_CATEGORY
from polars_wroc.inputs.metric import MINUS, Metric, check_metric
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.stats.estimates import name_limits
from polars_wroc.stats.families import DIFFERENT
from polars_wroc.thresholds.registry import RATES

MAKERS = (
    "`group_gaps`, `impact_ratios`, `fairness`, `audit`, `worst_segments`, `compare`, "
    "`audit_changes`, `release_check` or `summary`"
)
ROW = "row"
_METRICS: dict[str, Metric] = {
    **COMPARABLE,
    **METRICS,
    **CHANGED_METRICS,
    **SHIFTS,
    FAVORABLE_RATE.name: FAVORABLE_RATE,
}
# Columns that tables of comparisons, of pairs of scores and of summaries have.
_COMPARED = (*AUDIT_KEYS, "metric", "value", "gap", "ratio", "verdict")
_PAIRED = (MODEL, "reference", "metric", "value", "gap", "verdict")
_SUMMARISED = name_limits("auc")
# Columns that only tables of `release_check`, `audit_changes` and `worst_segments` have.
_RELEASED, _CHANGED, _SEARCHED = "n_changed", "growth", "explained_by"
_FORMS: dict[Show, Callable[[str], NumberForm]] = {
    "value": compared_form,
    "gap": gap_form,
    "ratio": lambda _: RATIO,
}
_ATTRIBUTE, _PAIR = protect_name("attribute"), protect_name("pair")
_ALL_ROWS = "all rows"
# The number of a row that does not differ.
_NO_DIFFERENCE: dict[Show, float | None] = {"value": None, "gap": 0.0, "ratio": 1.0}
# The most changes in a readable chart.
_MOST_CHANGES = 40
# The tones of findings, by verdict.
_TONES = {WORSE: "worse", BETTER: "better", BELOW_FOUR_FIFTHS: "worse"}
_REFERENCES = {"rest": "everyone else", "overall": _ALL_ROWS}


@dataclass(frozen=True)
class Estimates:
    """Rows with an estimate each, and the texts around them.

    ``rows`` have the group ``keys``, which are protected names, and the columns ``row``, ``n``,
    ``x``, ``low``, ``high``, ``mark`` (the reference of ``x``), ``limit`` (the least tolerated
    value), ``tone`` (the meaning of a finding; null without one), ``note`` (the verdict, or why
    there is none), ``reason``, and ``turn`` (the change of a gap between two audits).
    """

    rows: pl.DataFrame
    keys: Sequence[str]
    metric: Metric
    show: Show
    form: NumberForm
    # The reference of the rows, and the end of the metric's name: the only score.
    than: str
    whose: str = ""
    # The number of rows that are drawn, if there are too many.
    few: str = ""

    @property
    def no_difference(self) -> float | None:
        """The number of a row that does not differ; None for values."""
        return _NO_DIFFERENCE[self.show]

    @property
    def has_points(self) -> bool:
        """Whether differences are in percentage points."""
        return self.form in (SHARE, POINTS)

    @property
    def axis(self) -> str:
        """The title of the axis."""
        title = self.metric.heading
        if self.show == "gap" and not isinstance(self.metric, FairnessMetric):
            title += f": difference from {self.than}"
        if self.show == "ratio" and not isinstance(self.metric, FairnessMetric):
            title += f", divided by that of {self.than}"
        return f"{title}, in percentage points" if self.form is POINTS else title

    def write_title(self) -> str:
        """Return the finding: the largest difference, or the range of the groups' values."""
        found = self.rows.filter(pl.col("tone").is_not_null(), pl.col("x").is_not_null())
        if found.is_empty():
            is_tested = self.show != "value" and self.rows["note"].count()
            what = f"{self.metric.heading}{self.whose}"
            return f"{what}: no difference is shown" if is_tested else self._write_range(what)
        apart = pl.col("x") - pl.col("mark").fill_null(self.no_difference or 0.0)
        ranked = found.with_columns(apart=apart).sort(
            pl.col("tone") == "worse", pl.col("apart").abs().round(9), pl.col("apart") < 0
        )
        worst = ranked.row(-1, named=True)
        keys = (ROW, *(key for key in self.keys if key != protect_name("attribute")))
        name = ", ".join(str(worst[key]) for key in keys)
        what = f"{self.metric.label}{self.whose}"
        if worst["turn"] is not None:
            return f"{name}: {what} {worst['turn']}"
        if self.show == "ratio":
            return f"{name}: {what} {self.form.write(worst['x'])} times that of {self.than}"
        size = write_number(abs(worst["apart"]), ".3f")
        if self.has_points:
            size = write_points(worst["apart"])
        side = "below" if worst["apart"] < 0 else "above"
        return f"{name}: {what} {size} {side} {self.than}"

    def _write_range(self, what: str) -> str:
        """Return the range of the groups' values, as text."""
        known = self.rows.filter(pl.col("x").is_not_null()).sort("x", maintain_order=True)
        if known.is_empty():
            return f"{what}: no values"
        unit = " points" if self.form is POINTS else ""
        keys = [ROW, MODEL] if MODEL in self.keys else [ROW]
        named = [
            (f"{self.form.write(row['x'])}{unit}", ", ".join(str(row[key]) for key in keys))
            for row in known.iter_rows(named=True)
        ]
        if len(named) == 1:
            return f"{what}: {named[0][0]} ({named[0][1]})"
        return f"{what} from {write_ends(named)}"


@dataclass(frozen=True)
class _Source:
    """Rows with the columns of comparisons, from a table of any function.

    ``than`` is the reference ("": the column ``reference``), ``whose`` ends the name of the metric,
    and ``panel`` is the column with panels (None: attributes). ``is_change`` says that rows compare
    a new value with an old one.
    """

    rows: pl.DataFrame
    than: str = ""
    whose: str = ""
    panel: str | None = None
    is_change: bool = False


def read_estimates(table: object, metric: str | None, show: Show | None) -> Estimates:
    """Return the estimates of a ``metric`` from a table of this package."""
    frame, _ = read_table("table", table, (), MAKERS)
    source = _read_source(frame)
    if source.rows.is_empty():
        checks.reject("table", "have groups to be drawn", "none")
    chosen = find_metric(source.rows, metric)
    known = source.rows.filter(metric=chosen.column)
    rows = _choose_changes(known) if _CHANGED in frame.columns else known
    few = f"{rows.height} of {known.height:,} changes: those that matter most"
    show = _choose_show(rows, chosen, show)
    rate = _find_rate_of_ratios(source.rows)
    if show == "value" and chosen.column == rate:
        rows = put_rates_for_values(source.rows)
    panel = source.panel
    if panel is None and _has_panels(rows, chosen):
        panel = _ATTRIBUTE
        rows = rows.with_columns(pl.col("attribute").alias(panel))
    keys = [] if panel is None else [panel]
    keys += [MODEL] if rows[MODEL].n_unique() > 1 else []
    drawn = rows.select(
        *keys,
        "n",
        "reason",
        pl.Series(ROW, _name_rows(rows, chosen), pl.String),
        **_read_numbers(chosen, show, is_change=source.is_change),
        **_read_findings(rows),
        limit=_read_limit(chosen, show, rate),
    )
    named = chosen
    if show == "ratio" and chosen.column == IMPACT_RATIO:
        named = _METRICS[rate or FAVORABLE_RATE.name]
    return Estimates(
        drawn,
        keys,
        named,
        show,
        _FORMS[show](chosen.column),
        source.than or _name_reference(rows),
        source.whose,
        few if rows.height < known.height else "",
    )


def find_metric(rows: pl.DataFrame, metric: str | None) -> Metric:
    """Return a metric that a table has: by default the first one, or the impact ratio.

    The ratio is the default if a table has only impact ratios and their rates.
    """
    known = rows["metric"].unique(maintain_order=True).to_list()
    if metric is None:
        metric = IMPACT_RATIO if _find_rate_of_ratios(rows) else known[0]
    check_metric("metric", metric, known, ", which the table has")
    return _METRICS[metric]


def _find_rate_of_ratios(rows: pl.DataFrame) -> str | None:
    """Return the rate in a table that has only impact ratios and their rates."""
    metrics = set(rows["metric"])
    return next((rate for rate in IMPACT_RATES if metrics == {IMPACT_RATIO, rate}), None)


def _choose_changes(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the changes that matter most, if there are many."""
    order = [pl.col("finding").is_null(), "p_value", pl.col("gap").abs().neg()]
    ranked = rows.with_row_index("place").sort(order, nulls_last=True, maintain_order=True)
    return ranked.head(_MOST_CHANGES).sort("place").drop("place")


def _choose_show(rows: pl.DataFrame, metric: Metric, show: Show | None) -> Show:
    """Return which number of each row to draw: by default the gap, if there are gaps."""
    known: list[Show] = [each for each in get_args(Show) if rows[each].count()]
    if show is None:
        order: list[Show] = ["gap", "ratio", "value"]
        return min(known, key=order.index, default="value")
    if metric.column == IMPACT_RATIO and show == "value" and "ratio" in known:
        # The value is the ratio.
        return "ratio"
    # If nothing can be compared, rows say why.
    is_compared = rows["verdict"].count() or not rows["reason"].count()
    if is_compared and show not in known:
        shows = " or ".join(map(repr, known)) or "nothing"
        found = f"no {show} of {metric.column}: `show` may be {shows}"
        checks.reject("table", f"have numbers to be drawn with `show={show!r}`", found)
    return show


def _read_numbers(metric: Metric, show: Show, *, is_change: bool) -> dict[str, pl.Expr]:
    """Return estimates with their limits and references."""
    columns = [pl.col(name) for name in name_limits(show)]
    mark = pl.lit(_NO_DIFFERENCE[show], pl.Float64)
    if show == "value":
        mark = pl.col("reference_value")
    if show == "value" and is_change:
        # New values have the limits of their change, within those of the metric.
        columns = [mark + pl.col(gap) for gap in name_limits("gap")]
        if metric is ROC_AUC or metric.column in RATES:
            columns = [number.clip(0, 1) for number in columns]
    return dict(zip(("x", "low", "high", "mark"), (*columns, mark), strict=True))


def _read_limit(metric: Metric, show: Show, rate: str | None) -> pl.Expr:
    """Return the least tolerated number: four fifths, or for rates, four fifths of the highest."""
    if metric.column == IMPACT_RATIO and show != "gap":
        return pl.lit(FOUR_FIFTHS)
    if metric.column == rate and show == "value":
        return FOUR_FIFTHS * pl.col("reference_value")
    return pl.lit(None, pl.Float64)


def _read_findings(rows: pl.DataFrame) -> dict[str, pl.Expr]:
    """Return the findings of rows: tone, note, and the change of a gap."""
    verdict, nothing = pl.col("verdict"), pl.lit(None, pl.String)
    direction = pl.col("direction") if "direction" in rows.columns else nothing
    finding = pl.col("finding") if "finding" in rows.columns else nothing
    is_found = verdict.is_in([DIFFERENT, *_TONES]) | finding.is_in(GAP_FINDINGS).fill_null(
        value=False
    )
    tone = pl.coalesce(verdict.replace_strict(_TONES, default=None), direction, pl.lit("either"))
    said = pl.concat_str(verdict, finding, separator=", ", ignore_nulls=True)
    changes = rows.select(finding.alias("finding"), "reference_value", "value", "metric").rows()
    turns = [
        write_gap_change(change, before, after)
        if metric in GAP_CHANGES and change in GAP_FINDINGS
        else None
        for change, before, after, metric in changes
    ]
    return {
        "tone": pl.when(is_found).then(tone),
        "note": pl.coalesce(pl.when(verdict.is_not_null()).then(said), "reason"),
        "turn": pl.lit(pl.Series(turns, dtype=pl.String)),
    }


def _name_reference(rows: pl.DataFrame) -> str:
    """Return the reference of the rows, as text."""
    names = rows["reference"].drop_nulls().unique(maintain_order=True).to_list()
    if len(names) == 1:
        return _REFERENCES.get(names[0], str(names[0]))
    is_impact = IMPACT_RATIO in rows["metric"]
    return "the group with the highest rate" if is_impact else "the reference"


def _is_listed(rows: pl.DataFrame, metric: Metric) -> bool:
    """Return whether a table lists few rows of an attribute: of a search, or of criteria."""
    return _SEARCHED in rows.columns or isinstance(metric, FairnessMetric)


def _has_panels(rows: pl.DataFrame, metric: Metric) -> bool:
    """Return whether each attribute has a panel."""
    own = rows.filter(pl.col("attribute") != OVERALL)
    return own["attribute"].n_unique() > 1 and not _is_listed(rows, metric)


def _name_rows(rows: pl.DataFrame, metric: Metric) -> list[str]:
    """Return the name of each row's group, with the attribute if attributes share a panel."""
    missing = UNKNOWN_CATEGORY if IMPACT_RATIO in rows["metric"] else MISSING
    names = list(name_column(rows, "segment", missing).texts)
    if isinstance(metric, FairnessMetric):
        others = name_column(rows, "reference", missing).texts
        names = [f"{name} against {other}" for name, other in zip(names, others, strict=True)]
    if _is_listed(rows, metric) and rows["attribute"].n_unique() > 1:
        attributes = rows["attribute"].to_list()
        names = [f"{attribute}: {name}" for attribute, name in zip(attributes, names, strict=True)]
    is_whole = (rows["attribute"] == OVERALL).to_list()
    return [_ALL_ROWS if all_rows else name for all_rows, name in zip(is_whole, names, strict=True)]


# Columns of comparisons, from the tables of each function.


def _read_source(frame: pl.DataFrame) -> _Source:
    """Return the rows of a table with the columns of comparisons."""
    columns = set(frame.columns)
    if columns.issuperset(_COMPARED):
        if _CHANGED in columns:
            rows = frame.filter(pl.col("gap").is_not_null())
            return _Source(rows, "the first audit", is_change=True)
        if _RELEASED in columns:
            return _Source(frame, "the old score", is_change=True)
        return _Source(frame.filter(pl.col("attribute") != OVERALL))
    if columns.issuperset(_PAIRED):
        return _read_pairs(frame)
    if columns.issuperset(_SUMMARISED):
        return _read_summary(frame)
    require_columns("table", frame, _COMPARED, MAKERS)
    raise AssertionError


def _read_pairs(frame: pl.DataFrame) -> _Source:
    """Return the table of `compare`: a row for each pair of scores, or for each group."""
    groups = frame.columns[: frame.columns.index(MODEL)]
    pairs = [f"{a} {MINUS} {b}" for a, b in frame.select(MODEL, "reference").iter_rows()]
    is_one = len(set(pairs)) == 1
    segments = _cross(frame, groups) if groups else pairs
    rows = frame.drop(*groups, MODEL).with_columns(
        pl.Series(_PAIR, pairs, pl.String), pl.Series("segment", segments, pl.String)
    )
    return _Source(
        _fill_columns(rows),
        frame["reference"][0] if is_one else "the other score",
        f" of {frame[MODEL][0]}" if is_one else "",
        _PAIR if groups and not is_one else None,
    )


def _read_summary(frame: pl.DataFrame) -> _Source:
    """Return the table of `summary`: the last group column has rows, the others panels."""
    groups = frame.columns[: frame.columns.index("auc")]
    if MODEL in groups and groups != [MODEL]:
        # Several models have colours.
        groups.remove(MODEL)
    segments = _cross(frame, groups[-1:]) if groups else [_ALL_ROWS] * frame.height
    rows = frame.select(
        *([MODEL] if MODEL in frame.columns and MODEL not in groups else []),
        "n",
        **dict(zip(name_limits("value"), name_limits("auc"), strict=True)),
        segment=pl.Series(segments, dtype=pl.String),
        metric=pl.lit(ROC_AUC.column),
    )
    panel = None
    if len(groups) > 1:
        panel = protect_name(groups[0])
        rows = rows.with_columns(pl.Series(panel, _cross(frame, groups[:-1]), pl.String))
    return _Source(_fill_columns(rows), panel=panel)


def _cross(rows: pl.DataFrame, groups: list[str]) -> list[str]:
    """Return the names of the groups of rows, from all their columns."""
    return cross_columns(rows.select(groups), groups, ROW)[ROW].to_list()


def _fill_columns(rows: pl.DataFrame) -> pl.DataFrame:
    """Return a table with the columns of comparisons that it lacked."""
    missing = {
        name: pl.lit(None, dtype)
        for name, dtype in COMPARISON_SCHEMA.items()
        if name not in rows.columns
    }
    return rows.with_columns(**missing)
