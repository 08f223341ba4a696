"""Conditions that make a command fail, in a short form such as ``tpr.gap>0.05`` or in SQL."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from typing import Any, NoReturn

import polars as pl

from polars_wroc.arrays import TOLERANCE
from polars_wroc.audits.tables import (
    ALL_KEYS,
    GateCondition,
    JudgedGate,
    name_of,
    rows_with,
    segment_in_words,
)
from polars_wroc.checks import did_you_mean
from polars_wroc.documents.numbers import form_beside
from polars_wroc.documents.phrases import first_few, many
from polars_wroc.files.sources import first_line
from polars_wroc.groups.comparisons import (
    AT_LEAST_FOUR_FIFTHS,
    BELOW_FOUR_FIFTHS,
    CHANGED_METRICS,
    CHANGES_SCHEMA,
    COMPARABLE,
    COMPARISON_SCHEMA,
    FAIRNESS,
    FIRST_PERIOD,
    GAP_CHANGES,
    IMPACT_RATIO,
    METRICS,
    NAMED_FOR,
    REPEATS,
    SHIFTS,
    SMALL_SHARE,
    THE_REFERENCE,
    UNKNOWN_REASON,
    UNLABELED,
)
from polars_wroc.groups.release_check import BETTER, NO_WORSE, WORSE
from polars_wroc.inputs.columns import MISSING, MODEL, OVERALL
from polars_wroc.inputs.metric import calibration_hint, metric_hint
from polars_wroc.inputs.reasons import EVERYBODY, FEW, IN_REFERENCE, NOBODY, UNDEFINED
from polars_wroc.metrics.compare import PAIR, PAIR_SCHEMA
from polars_wroc.metrics.paired_changes import RELEASE_METRICS
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.stats.families import DIFFERENT, EQUIVALENT, INCONCLUSIVE
from polars_wroc.thresholds.registry import GAP_RATES, RATES, THRESHOLD_METRICS

_NUMBER = r"\s*(>=|<=|>|<)\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*"
_PLACE = r"\s*(?:(.*):)?\s*"
# The short form: an optional place, a metric, an optional column, and a limit.
_SHORT = re.compile(rf"{_PLACE}(\w+)(?:\.(\w+))?{_NUMBER}")
_VERDICT = re.compile(rf"{_PLACE}(\w+)\.verdict\s*(!?=)\s*(.*?)\s*")
# SQL about several rows.
_SEVERAL_ROWS = re.compile(
    r"\b(avg|corr|count|covar\w*|first\w*|lag|last\w*|lead|max|median|min|quantile\w*|\w*rank"
    r"|row_number|std\w*|sum|var\w*)\s*\(",
    re.IGNORECASE,
)
# A number in percent; a number or a column after the sign would make it a remainder.
_PERCENTAGE = re.compile(r"(?<![\w.])(\d+\.?\d*|\.\d+)\s*%(?=\s*($|\)|and\b|or\b))", re.IGNORECASE)
# SQL that gives an answer for nulls.
_TESTS_NULL = re.compile(r"\bis\s+(not\s+)?null\b|\b(coalesce|ifnull)\b", re.IGNORECASE)
# Stands for all metrics.
_ANY = "any"
# The verdicts of a metric that has not become worse.
_NO_WORSE = (NO_WORSE, BETTER)
# Compared without its sign, unless a condition asks for < or <= a limit of 0 or less.
_UNSIGNED = "gap"
# The least similarity of a name that is suggested: auk_gap must not suggest gap.
_ALIKE = 0.8
_PROPORTIONS = {ROC_AUC.column, "average_precision", *RATES}
_VALUES = ("value", "value_low", "value_high")
_RATIOS = ("ratio", "ratio_low", "ratio_high")
# Hardly a ratio, so that a limit from here on is taken for a percentage.
_LARGE_RATIO = 10
_WITHOUT_SIDE = [name for name, metric in COMPARABLE.items() if metric.better is None]
# Columns that identify a row of comparisons.
_KEYS = ("attribute", "segment", MODEL, "reference", "pair", "metric", "period")


@dataclass(frozen=True, kw_only=True)
class GateScope:
    """The metrics and columns that conditions may name.

    ``what`` and ``example`` are used in messages.
    """

    what: str
    example: str
    schema: Mapping[str, pl.DataType | type[pl.DataType]]
    # Columns that identify a row.
    keys: Collection[str] = _KEYS
    metrics: Collection[str] = ()
    verdicts: Collection[str] = ()
    # Why a known metric is not available.
    why_not: Mapping[str, str] = field(default_factory=dict)
    # Whether rows without a value of an attribute are a category like any other.
    keeps_unknown: bool = False

    @property
    def columns(self) -> list[str]:
        """The columns of numbers that conditions may name."""
        return [
            name
            for name, dtype in self.schema.items()
            if dtype.is_numeric() and name not in (*self.keys, "reference_value")
        ]

    @property
    def verdict_example(self) -> str:
        """An example of a condition on a bad verdict."""
        metric, _, _ = self.example.partition(".")
        verdict = WORSE if WORSE in self.verdicts else next(iter(self.verdicts))
        return f"{metric}.verdict={verdict}"


_NO_DECISIONS = " (it needs decisions: those of a threshold, or recorded ones)"
_NO_LABEL = " (it needs a label)"
_NO_RATIOS = " (it needs a decision that favors people, but --favorable is neither)"
# Metrics that an audit has only with decisions.
_DECISION_METRICS = (*GAP_RATES, "accuracy", IMPACT_RATIO, *FAIRNESS)
_SELECTION_RATE = "selection_rate"
# These, and the metrics of other tables that say nothing where all decisions are the same.
_ALL_DECISION_METRICS = {*_DECISION_METRICS, *THRESHOLD_METRICS, *GAP_CHANGES} - {
    "auc_difference",
    "auc_gap",
}
COMPARISON_SCOPE = GateScope(
    what="the audit",
    example="tpr.gap>0.05",
    metrics=[*METRICS],
    schema=COMPARISON_SCHEMA,
    verdicts=(DIFFERENT, EQUIVALENT, INCONCLUSIVE, BELOW_FOUR_FIFTHS, AT_LEAST_FOUR_FIFTHS),
)
RELEASE_SCOPE = replace(
    COMPARISON_SCOPE,
    what="the release",
    example="auc.gap_high<0",
    metrics=[*RELEASE_METRICS, _ANY],
    verdicts=(BETTER, NO_WORSE, WORSE, DIFFERENT, EQUIVALENT, INCONCLUSIVE),
)
IMPACT_SCOPE = replace(
    COMPARISON_SCOPE,
    what="the table",
    example="impact_ratio.ratio<0.8",
    metrics=[IMPACT_RATIO],
    verdicts=(BELOW_FOUR_FIFTHS, AT_LEAST_FOUR_FIFTHS, INCONCLUSIVE),
)
CHANGE_SCOPE = GateScope(
    what="the changes",
    example="tpr_gap.growth>0.02",
    metrics=[*CHANGED_METRICS],
    schema=CHANGES_SCHEMA,
    verdicts=(DIFFERENT, EQUIVALENT, INCONCLUSIVE),
)
PAIR_SCOPE = GateScope(
    what="the comparisons",
    example="auc.gap<0",
    metrics=[ROC_AUC.column],
    schema={**dict.fromkeys(("attribute", "segment", "pair"), pl.String), **PAIR_SCHEMA},
)


def find_audit_scope(
    *, decides: bool, ratios: bool, labeled: bool = True, keeps_unknown: bool = False
) -> GateScope:
    """Return the metrics and columns that conditions on an audit may name."""
    unknown = {} if decides else dict.fromkeys(_DECISION_METRICS, _NO_DECISIONS)
    if not labeled:
        unknown |= {name: _NO_LABEL for name in COMPARISON_SCOPE.metrics if name not in UNLABELED}
    if decides and not ratios:
        unknown[IMPACT_RATIO] = _NO_RATIOS
    known = [name for name in COMPARISON_SCOPE.metrics if name not in unknown]
    return replace(COMPARISON_SCOPE, metrics=known, why_not=unknown, keeps_unknown=keeps_unknown)


def find_table_scope(schema: Mapping[str, pl.DataType], keys: Collection[str]) -> GateScope:
    """Return the columns that conditions may name in a wide table, which has no metrics."""
    number = next(name for name in schema if name not in keys and schema[name].is_numeric())
    return GateScope(what="the table", example=f"{number}<0.7", schema=schema, keys=keys)


class NotInTableError(ValueError):
    """A condition names a place that the table does not have, or a column without values."""


@dataclass(frozen=True)
class Gate:
    """A condition on each row of a table; null where it is unknown."""

    scope: GateScope
    # The given text, and the text for readers.
    given: str
    text: str
    condition: pl.Expr
    # The parts of the short form.
    short: GateCondition | None = None

    def judge(self, table: pl.DataFrame) -> JudgedGate:
        """Judge each row; the gate fails if any row meets the condition.

        A number based on too few rows, or compared with such a number, is not judged. Neither are
        references and unknown categories. Rows that were not judged are listed, except for
        references and rows that repeat others.
        """
        self._check_place(table)
        self._check_filled(table)
        rows = self._select_asked(_add_reasons(table))
        holds = self._evaluate(rows)
        met, judged = rows.filter(holds), rows.filter(holds.is_not_null())
        listed = _is_listed(rows) & self._could_be_judged(table, rows)
        unjudged = rows.filter(holds.is_null() & listed).rows(named=True)
        unjudged += _list_left_out(table, rows, keeps_unknown=self.scope.keeps_unknown)
        several = MODEL in table.columns and table[MODEL].n_unique() > 1
        places = partial(_name_place, keys=self.scope.keys, several=several)
        where = [
            f"{places(row)} {self._write_numbers(row)}{_name_metric(row, rows)}"
            for row in met.iter_rows(named=True)
        ]
        lacking = dict[str, list[str]]()
        for row in unjudged:
            # A segment has a row for each metric, but is listed once.
            named = lacking.setdefault(row[_WHY], [])
            if (place := places(row)) not in named:
                named.append(place)
        return JudgedGate(
            gate=self.given,
            met=bool(where),
            n_judged=judged.height,
            where=where,
            not_judged=[place for some in lacking.values() for place in some],
            lines=self._write_lines(judged.height, where, lacking, _name_rows(rows)),
            condition=self.short,
            met_rows=met.rows(named=True),
            unjudged_rows=[row | {"reason": row[_WHY]} for row in unjudged],
        )

    def _check_place(self, table: pl.DataFrame) -> None:
        """Raise unless the place of the short form is in the table."""
        if self.short is None or self.short.place is None:
            return
        places = table.select("attribute", place=_express_place())
        known = dict.fromkeys([OVERALL, *places["attribute"], *places["place"]])
        if table.filter(_is_at(self.short.place)).is_empty():
            msg = (
                "--fail-if must name an attribute, or a segment such as sex=f; found "
                f"{self.short.place!r}{did_you_mean(self.short.place, known)}"
            )
            raise NotInTableError(msg)

    def _check_filled(self, table: pl.DataFrame) -> None:
        """Raise if a column in SQL has no values, unless reasons explain that.

        The number of a short condition always exists, and may be unknown in these rows.
        """
        if not {"reason", "attribute"} <= {*table.columns}:
            return
        if self.short is not None or self._tests_null:
            return
        if table.filter(pl.col("reason").is_null(), pl.col("attribute") != OVERALL).is_empty():
            return
        filled = [name for name in table.columns if table[name].count()]
        for name in self._numbers:
            if name in table.columns and name not in filled:
                known = [each for each in (*self.scope.columns, "verdict") if each in filled]
                msg = (
                    f"--fail-if must read a column that has values; found {name!r}, which is "
                    f"empty in all rows; there are {', '.join(known)}"
                )
                raise NotInTableError(msg)

    @property
    def _tests_null(self) -> bool:
        """Whether the condition gives an answer for nulls."""
        return _TESTS_NULL.search(self.text) is not None

    def _select_asked(self, table: pl.DataFrame) -> pl.DataFrame:
        """Return the rows to which the condition applies: not excluded by their keys alone."""
        if self._tests_null:
            return table
        others = [
            name for name in self.scope.schema if name in table and name not in self.scope.keys
        ]
        unknown = table.with_columns(
            pl.lit(None, table.schema[name]).alias(name) for name in others
        )
        return table.filter(unknown.select(self.condition.fill_null(value=True)).to_series())

    def _evaluate(self, rows: pl.DataFrame) -> pl.Series:
        """Return where the condition holds; null where it is not judged."""
        if self._tests_null:
            return rows.select(self.condition).to_series()
        reason, same = pl.col("reason").fill_null(""), pl.col(_SAME).is_not_null()
        few = (
            reason.str.starts_with(FEW)
            | reason.str.starts_with(SMALL_SHARE)
            | (reason == UNKNOWN_REASON)
        )
        masks: dict[str, pl.Expr] = {}
        for name in self.scope.columns:
            if name in rows.columns and not name.startswith("n"):
                # The reference of impact ratios has the ratio 1.
                is_reference = (reason == THE_REFERENCE) & (not name.startswith("value"))
                masks[name] = pl.when(~(few | is_reference)).then(name)
        if "verdict" in rows.columns:
            # Nothing can be concluded if everybody has the same decision.
            masks["verdict"] = pl.when(~(same & (pl.col("verdict") == INCONCLUSIVE))).then(
                "verdict"
            )
        holds = rows.with_columns(**masks).select(holds=self.condition, few=few, same=same)
        # Segments with too few rows cannot pass by verdict, nor can any with a single decision.
        by_verdict = "verdict" in self.condition.meta.root_names()
        cannot_pass = pl.col("same") | (pl.col("few") & by_verdict)
        return holds.select(pl.when(pl.col("holds") | ~cannot_pass).then("holds")).to_series()

    def _could_be_judged(self, table: pl.DataFrame, rows: pl.DataFrame) -> pl.Series:
        """Return whether rows have a reason, or a metric for which each column has a value."""
        if "metric" not in rows.columns:
            return pl.repeat(value=True, n=rows.height, eager=True)
        read = [name for name in self._numbers if name in table.columns]
        known = table.group_by("metric").agg(pl.col(read).count() > 0)
        metrics = known.filter(pl.all_horizontal(read))["metric"] if read else known["metric"]
        return (rows[_WHY] != _NO_NUMBER) | rows["metric"].is_in(metrics.to_list())

    @property
    def _numbers(self) -> list[str]:
        """The columns that the condition reads."""
        names = dict.fromkeys(self.condition.meta.root_names())
        return [name for name in names if name not in self.scope.keys]

    def _write_numbers(self, row: Mapping[str, Any]) -> str:
        """Return the numbers that meet the condition, as text."""
        if len(self._numbers) == 1:
            limit = None if self.short is None else self.short.limit
            return _write_value(row[self._numbers[0]], limit)
        return f"({', '.join(f'{name} {_write_value(row[name])}' for name in self._numbers)})"

    def _write_lines(
        self, n_judged: int, where: Sequence[str], lacking: Mapping[str, list[str]], noun: str
    ) -> list[str]:
        """Return lines on where the condition could not be judged, then whether it holds."""
        lines = [
            f"NOT JUDGED {self.text}: {_reason_in_places(reason, first_few(places, '; '))}"
            for reason, places in lacking.items()
        ]
        several = many(n_judged, noun) if n_judged > 1 else ""
        if where:
            among = f" in {len(where)} of {several}" if several else ""
            lines.append(f"FAILED {self.text}{among}: {first_few(where, '; ')}")
        elif n_judged:
            among = f": true in none of {several}" if several else ""
            lines.append(f"PASSED {self.text}{among}")
        elif not lines:
            lines.append(f"NOT JUDGED {self.text}: {_NO_NUMBER} in any {noun}")
        return lines


# Why all rows of a metric have the same decision, and why a row was not judged.
_SAME, _WHY = "__same", "__why"
_NO_NUMBER = "no such number"


def _add_reasons(table: pl.DataFrame) -> pl.DataFrame:
    """Add why rows are not judged.

    If everybody has the same decision, a condition may be met but cannot be passed.
    """
    if "reason" not in table.columns:
        table = table.with_columns(reason=pl.lit(None, pl.String))
    same = pl.Series(_SAME, _find_same_decisions(table), pl.String)
    why = pl.coalesce("reason", _SAME, pl.lit(_NO_NUMBER))
    return table.with_columns(same).with_columns(why.alias(_WHY))


def _find_same_decisions(table: pl.DataFrame) -> list[str | None]:
    """Return for each row why it says nothing: its score gives everybody the same decision."""
    if not {"metric", "value", "attribute"} <= {*table.columns}:
        return [None] * table.height
    overall = table.filter(attribute=OVERALL, metric=_SELECTION_RATE)
    sides = [name for name in ("value", "reference_value") if name in table.columns]
    found = dict[str | None, str]()
    for row in overall.iter_rows(named=True):
        for share, why in ((0, NOBODY), (1, EVERYBODY)):
            if any(row[name] is not None and abs(row[name] - share) <= TOLERANCE for name in sides):
                found[row.get(MODEL)] = why
    whys: list[str | None] = []
    for row in table.iter_rows(named=True):
        reason = row["reason"]
        known = reason if reason in (NOBODY, EVERYBODY) else found.get(row.get(MODEL))
        whys.append(known if row["metric"] in _ALL_DECISION_METRICS else None)
    return whys


def _is_listed(rows: pl.DataFrame) -> pl.Series:
    """Return whether an unjudged row is worth listing: not a reference or a repeated row.

    Rows on all data are listed if they are all that a condition asks for, or if they explain
    why no segment is judged. A first period has nothing before it, and is listed only if its own
    value is unknown.
    """
    why = rows[_WHY]
    listed = (why != THE_REFERENCE) & ~why.str.starts_with(REPEATS)
    if "attribute" not in rows.columns:
        return listed
    has_value = rows["value"].is_not_null() | rows["metric"].is_in([*SHIFTS])
    listed &= (why != FIRST_PERIOD) | ~has_value
    if (rows["attribute"] != OVERALL).any():
        listed &= (rows["attribute"] != OVERALL) | why.is_in([NOBODY, EVERYBODY])
    return listed


def _list_left_out(
    table: pl.DataFrame, rows: pl.DataFrame, *, keeps_unknown: bool
) -> list[dict[str, Any]]:
    """Return the rows of segments that the fairness metrics in ``rows`` leave out, and why.

    They come from the rows of the compared rates in the same table.
    """
    metrics = {*rows["metric"]} if "metric" in rows.columns else set[str]()
    if not metrics or metrics - FAIRNESS.keys():
        return []
    asked = rows_with(table, rows.select("attribute", MODEL).unique())
    share = asked.filter(pl.col("reason").str.starts_with(SMALL_SHARE), metric=IMPACT_RATIO)
    compared = {name for metric in metrics for name in FAIRNESS[metric].compares}
    segments = asked.filter(pl.col("metric").is_in(compared)).join(
        share.select(*ALL_KEYS, __share="reason"),
        on=ALL_KEYS,
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )
    reason = pl.col("reason")
    is_unknown = pl.col("segment").is_null() & pl.lit(not keeps_unknown)
    is_few = reason.str.starts_with(FEW) & ~reason.str.ends_with(IN_REFERENCE)
    why = pl.coalesce(
        pl.when(is_unknown).then(pl.lit(UNKNOWN_REASON)),
        pl.when(metric=_SELECTION_RATE).then("__share"),
        pl.when(is_few).then(reason),
        pl.when(pl.col("value").is_null()).then(reason.fill_null(UNDEFINED)),
    )
    left_out = segments.with_columns(why.alias(_WHY)).filter(pl.col(_WHY).is_not_null())
    return left_out.rows(named=True)


def _express_place() -> pl.Expr:
    return pl.format("{}={}", "attribute", pl.col("segment").fill_null(MISSING))


def _is_at(place: str) -> pl.Expr:
    """Return whether a row belongs to an attribute, or to a segment such as sex=f."""
    return (pl.col("attribute") == place) | (_express_place() == place)


def _reason_in_places(reason: str, places: str) -> str:
    """Return why places were not judged, because of themselves or of the reference."""
    if reason == UNKNOWN_REASON:
        return f"{reason} (not compared without --unknown keep) in {places}"
    return f"{reason} of {places}" if reason.endswith(IN_REFERENCE) else f"{reason} in {places}"


def _name_rows(rows: pl.DataFrame) -> str:
    """Return the noun for rows."""
    metrics = {*rows["metric"]} if "metric" in rows.columns else set[str]()
    if metrics & FAIRNESS.keys() and not metrics - FAIRNESS.keys():
        return "attribute"
    if len(metrics) > 1:
        return "comparison"
    if "pair" in rows.columns:
        return "pair"
    return "segment" if "attribute" in rows.columns else "row"


def _name_metric(row: Mapping[str, Any], rows: pl.DataFrame) -> str:
    """Return the metric of a row as text, if the rows have several."""
    several = "metric" in rows.columns and rows["metric"].n_unique() > 1
    return f" in {row['metric']}" if several else ""


def _name_place(row: Mapping[str, Any], *, keys: Collection[str], several: bool) -> str:
    """Return the segment, or the attribute and the two compared segments, as text."""
    if "attribute" not in row:
        # Most measures of a validation have no threshold.
        left_out = [key for key in keys if key == "threshold" and row[key] is None]
        named = [
            f"{key} = {name_of(row[key])}"
            for key in keys
            if row.get(key, OVERALL) != OVERALL and key not in left_out
        ]
        return ", ".join(named) or "all rows"
    place = segment_in_words(row["attribute"], row["segment"])
    if row["metric"] in FAIRNESS:
        place = row["attribute"]
        if row["reference"] is not None:
            place += f" ({name_of(row['segment'])} and {row['reference']})"
    more = [row[MODEL]] if several else []
    more += [str(row[key]) for key in ("pair", "period") if key in row]
    return ", ".join([place, *more])


def _write_value(value: Any, limit: float | str | None = None) -> str:
    """Return a number or verdict that meets a condition, or null."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return value
    return format(value, form_beside(value, limit, digits=4))


@dataclass(frozen=True)
class Judgement:
    """Judged gates, and messages on gates that name what the table does not have."""

    gates: Sequence[JudgedGate] = ()
    unknown: Sequence[str] = ()
    # Whether each gate must be judged in all segments.
    strict: bool = False

    @property
    def lines(self) -> list[str]:
        """The lines on all gates."""
        return [line for gate in self.gates for line in gate.lines]


def judge_gates(gates: Sequence[Gate], table: pl.DataFrame) -> Judgement:
    """Return the judgement of each gate."""
    judged, unknown = list[JudgedGate](), list[str]()
    for gate in gates:
        try:
            judged.append(gate.judge(table))
        except NotInTableError as error:
            unknown.append(str(error))
    return Judgement(judged, unknown)


def read_gate(text: str, scope: GateScope) -> Gate:
    """Return a condition such as ``race=black:tpr.gap>0.05``, or one in SQL."""
    if scope.verdicts and (word := _VERDICT.fullmatch(text)):
        place, metric, sign, verdict = word.groups()
        if verdict not in scope.verdicts:
            hint = did_you_mean(verdict, scope.verdicts)
            known = f"{', '.join(scope.verdicts)}; found {verdict!r}{hint}"
            msg = f"--fail-if must name a verdict of {scope.what}: {known}"
            raise ValueError(msg)
        return _build_gate(text, scope, GateCondition(place, metric, "verdict", sign, verdict))
    parts = _SHORT.fullmatch(text)
    if parts and (parts[1] or "").endswith(":") and parts[2] not in scope.metrics:
        # A cast such as gap::float is SQL.
        parts = None
    if scope.metrics and parts and parts[2] not in scope.schema:
        place, metric, column, sign, limit = parts.groups()
        if column is None and metric not in (*scope.metrics, *scope.why_not):
            _refuse(text, scope, _guess_meaning(metric, scope))
        column = column or NAMED_FOR.get(metric, "value")
        return _build_gate(text, scope, GateCondition(place, metric, column, sign, float(limit)))
    if parts and not parts[3]:
        column = parts[2]
        # A table of metrics names its ratios by column, others have a column for each metric.
        metric = re.sub("_(low|high)$", "", column)
        column = column if column in _RATIOS else "value"
        _check_percentage(metric, column, float(parts[5]), text.strip())
    return Gate(scope, text, text.strip(), _read_sql(text, scope))


def _read_sql(text: str, scope: GateScope) -> pl.Expr:
    """Return a condition in SQL on the columns of a table."""
    _check_sql(text, scope)
    try:
        condition = pl.sql_expr(text)
        is_condition = pl.DataFrame(schema=scope.schema).select(condition).schema.dtypes() == [
            pl.Boolean
        ]
    except pl.exceptions.ColumnNotFoundError as error:
        name = (re.findall(r"\"(.*?)\"", first_line(error)) or [""])[0]
        if scope.metrics and re.fullmatch(r"[\w.]+", text.strip()):
            _refuse(text, scope)
        if name in scope.schema or re.search(rf"\b{re.escape(name)}\.\w+\s*(=|!=|<>)", text):
            _refuse(text, scope, f": {_explain_refusal(text, '')}")
        hint = did_you_mean(name, scope.schema) or " (texts are in single quotes)"
        _refuse(text, scope, f": there is no column {name!r}{hint}")
    except pl.exceptions.PolarsError as error:
        _refuse(text, scope, f": {_explain_refusal(text, first_line(error))}")
    if not is_condition:
        _refuse(text, scope, ": it has no comparison by one of > >= < <= and =")
    if not condition.meta.root_names():
        _refuse(text, scope, ": it reads no column")
    return condition


def _check_sql(text: str, scope: GateScope) -> None:
    """Refuse SQL that Polars would take, but that would be always or never true."""
    code = re.sub("'[^']*'", "''", text)
    if found := _SEVERAL_ROWS.search(code):
        _refuse(text, scope, f": {found[1]} reads several rows, and a condition is about one row")
    texts = [name for name, dtype in scope.schema.items() if dtype == pl.String]
    if texts and re.search(rf"\b({'|'.join(texts)})\s*[<>!=]+\s*[-+.\d]", code):
        _refuse(text, scope, f": {_TEXT_AND_NUMBER}")
    for name, known in (("verdict", scope.verdicts), ("metric", scope.metrics)):
        listed = rf"\b{name}\s*(?:=|!=|<>|(?:not\s+)?in\s*\()\s*((?:'[^']*'[\s,]*)+)"
        for values in re.findall(listed, text, re.IGNORECASE) if known else ():
            for value in re.findall("'([^']*)'", values):
                if value not in known:
                    hint = did_you_mean(value, known) or f"; there are {', '.join(known)}"
                    _refuse(text, scope, f": there is no {name} {value!r}{hint}")


_TEXT_AND_NUMBER = "it compares a text with a number: write only texts in single quotes"


def _explain_refusal(text: str, message: str) -> str:
    """Return what is wrong with a condition in SQL that Polars refuses, and what to do."""
    function = re.search(r"unsupported function '(.*?)'", message)
    is_query = re.search(r"^\s*(where|from|with)\b|\bselect\b", text, re.IGNORECASE)
    if not text.strip():
        cure = "write a condition, or leave out --fail-if"
    elif is_query or ";" in text:
        cure = "write the condition alone, without SELECT, WHERE and ;"
    elif re.search(r"\w\.\w+\s*(=|!=|<>)", text):
        cure = "compare a number by one of > >= < <="
    elif found := _PERCENTAGE.search(text):
        cure = f"write {found[0]} as {float(found[1]) / 100:g}"
    elif text.count("'") % 2:
        cure = "close each single quote"
    elif text.count("(") != text.count(")"):
        cure = "close each bracket"
    elif "cannot compare" in message:
        cure = _TEXT_AND_NUMBER
    elif function:
        cure = f"there is no function {function[1]!r}; use one such as abs"
    else:
        cure = "complete it, and leave out what is not SQL"
    return cure


def _build_gate(given: str, scope: GateScope, short: GateCondition) -> Gate:
    """Return a condition in the short form, after checking that it can be met."""
    _check_short(short, given.strip(), scope)
    number, limit = pl.col(short.column), short.limit
    if isinstance(limit, str):
        words = _NO_WORSE if limit == NO_WORSE else (limit,)
        holds = number.is_in(words) ^ (short.sign == "!=")
    else:
        signed = short.column != _UNSIGNED or _asks_below_zero(short)
        number = number if signed else number.abs()
        signs = {
            ">": number > limit,
            ">=": number >= limit,
            "<": number < limit,
            "<=": number <= limit,
        }
        holds = signs[short.sign]
    if short.metric != _ANY:
        holds = (pl.col("metric") == short.metric) & holds
    elif short.limit in (NO_WORSE, BETTER, WORSE):
        holds = ~pl.col("metric").is_in(_WITHOUT_SIDE) & holds
    if short.place is not None:
        holds = _is_at(short.place) & holds
    own = short.column == NAMED_FOR.get(short.metric, "value")
    start = "" if short.place is None else f"{short.place}:"
    written = limit if isinstance(limit, str) else f"{limit:g}"
    text = f"{start}{short.metric}{'' if own else f'.{short.column}'} {short.sign} {written}"
    given = f"{start}{short.metric}.{short.column}{short.sign}{written}"
    return Gate(scope, given, text, holds, short)


def _asks_below_zero(short: GateCondition) -> bool:
    """Return whether a condition needs the signed gap: it is below a limit of 0 or less."""
    return not isinstance(short.limit, str) and short.sign in ("<", "<=") and short.limit <= 0


def _refuse(text: str, scope: GateScope, hint: str = "") -> NoReturn:
    examples = f"{scope.example} or {scope.verdict_example}" if scope.verdicts else scope.example
    msg = (
        f"--fail-if must be a metric, a column, one of > >= < <= and a number, for example "
        f"{examples}, or a condition in SQL; found {text!r}{hint}"
    )
    raise ValueError(msg)


def _guess_meaning(name: str, scope: GateScope) -> str:
    """Return the end of a message on one name, for example ``auc_gap_low``: what may be meant."""
    begun = [metric for metric in scope.metrics if f"{name}_".startswith(f"{metric}_")]
    if not begun and (close := get_close_matches(name, scope.columns, 1, _ALIKE)):
        return f"; did you mean {close[0]!r}?"
    if not begun and len(scope.metrics) > 1:
        return _near(name, scope.metrics)
    metric = max(begun or scope.metrics, key=len)
    close = get_close_matches(name.removeprefix(metric).removeprefix("_"), scope.columns, 1)
    if close:
        return f"; did you mean {f'{metric}.{close[0]}'!r}?"
    return f"; of {metric} there are {', '.join(scope.columns)}"


def _near(name: str, known: Collection[str]) -> str:
    hint = calibration_hint(name) or metric_hint(name, known)
    return hint or f"; there are {first_few([*known])}"


def _check_short(short: GateCondition, given: str, scope: GateScope) -> None:
    """Raise for unknown names in a condition, or a condition that cannot be met."""
    if short.metric not in scope.metrics:
        hint = scope.why_not.get(short.metric) or _near(short.metric, scope.metrics)
        if short.metric == _ANY:
            example = scope.verdict_example if scope.verdicts else scope.example
            hint = f": write a condition for each metric, for example {example}"
        msg = f"--fail-if must name a metric of {scope.what}; found {short.metric!r}{hint}"
        raise ValueError(msg)
    if short.column not in (*scope.columns, "verdict"):
        columns = f"; there are {', '.join(scope.columns)}"
        hint = did_you_mean(short.column, scope.columns) or columns
        msg = f"--fail-if must name a column of {scope.what}; found {short.column!r}{hint}"
        raise ValueError(msg)
    if isinstance(short.limit, str):
        return
    if short.column == "verdict":
        such = scope.verdict_example if scope.verdicts else scope.example
        msg = f"--fail-if must compare a verdict with a word, as in {such}; found {given}"
        raise ValueError(msg)
    _check_percentage(short.metric, short.column, short.limit, given)
    if not short.column.startswith(_UNSIGNED):
        return
    least = {">": short.limit < 0, ">=": short.limit <= 0}
    if short.column == _UNSIGNED and least.get(short.sign):
        msg = (
            "--fail-if must be a condition that not every gap meets: gaps are compared without "
            f"their sign, unless it asks for < or <= a limit of 0 or less; found {given}"
        )
        raise ValueError(msg)
    if short.metric != "calibration_slope" and abs(short.limit) > 1:
        msg = (
            "--fail-if must have a limit between -1 and 1 for a gap, so that 0.05 is 5 points; "
            f"found {given}"
        )
        raise ValueError(msg)


def _check_percentage(metric: str, column: str, limit: float, given: str) -> None:
    """Raise for a percentage as the limit of a ratio, or of a metric between 0 and 1."""
    if column in _RATIOS and limit >= _LARGE_RATIO:
        msg = (
            f"--fail-if must have a limit below {_LARGE_RATIO} for a ratio, so that 0.8 is 80%; "
            f"found {given}"
        )
        raise ValueError(msg)
    if metric in _PROPORTIONS and column in _VALUES and not 0 <= limit <= 1:
        msg = (
            f"--fail-if must have a limit between 0 and 1 for {metric}, so that 0.62 is 62%; "
            f"found {given}"
        )
        raise ValueError(msg)


def tabulate_pairs(table: pl.DataFrame) -> pl.DataFrame:
    """Return the table of `compare` with the keys of comparisons: attribute, segment and pair."""
    groups = table.columns[: -len(PAIR_SCHEMA)]
    texts = [pl.col(name).cast(pl.String).fill_null(MISSING) for name in groups]
    segment = pl.concat_str(texts, separator=", ") if groups else pl.lit(OVERALL)
    return table.select(
        pl.lit(", ".join(groups) or OVERALL).alias("attribute"),
        segment.alias("segment"),
        pl.format("{} and {}", *PAIR).alias("pair"),
        pl.exclude(*groups, *PAIR),
    )
