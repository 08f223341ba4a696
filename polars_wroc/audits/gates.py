"""Conditions that fail a command in a pipeline, such as ``tpr.gap>0.05``."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, NamedTuple, NoReturn

import polars as pl

from polars_wroc.arrays import TOLERANCE
from polars_wroc.audits.audit_changes import CHANGES_SCHEMA
from polars_wroc.audits.tables import GateCondition, JudgedGate, name_of, segment_in_words
from polars_wroc.audits.words import first_few, many
from polars_wroc.checks import did_you_mean
from polars_wroc.groups.comparisons import (
    AT_LEAST_FOUR_FIFTHS,
    BELOW_FOUR_FIFTHS,
    CHANGED_METRICS,
    COMPARABLE,
    COMPARISON_SCHEMA,
    FAIRNESS,
    GAP_CHANGES,
    IMPACT_RATIO,
    METRICS,
    NAMED_FOR,
    REPEATS,
    SMALL_SHARE,
    THE_REFERENCE,
    UNKNOWN_REASON,
    UNLABELED,
)
from polars_wroc.groups.release_check import BETTER, NO_WORSE, WORSE
from polars_wroc.inputs.columns import MISSING, MODEL, OVERALL
from polars_wroc.inputs.metric import metric_hint
from polars_wroc.inputs.reasons import EVERYBODY, FEW, IN_REFERENCE, NOBODY
from polars_wroc.metrics.compare import PAIR, PAIR_COLUMNS
from polars_wroc.metrics.paired_changes import RELEASE_METRICS
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.stats.families import DIFFERENT, EQUIVALENT, INCONCLUSIVE
from polars_wroc.thresholds.registry import GAP_RATES, THRESHOLD_METRICS

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_NUMBER = r"\s*(>=|<=|>|<)\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*"
_GATE = re.compile(rf"\s*(\w+)\.(\w+){_NUMBER}")
_VERDICT = re.compile(r"\s*(\w+)\.verdict\s*(!?=)\s*(.*?)\s*")
_ONE_NAME = re.compile(rf"\s*(\w+){_NUMBER}")
# Of releases: all metrics; and what is no worse, if it has a side that is worse.
_ANY = "any"
_NO_WORSE = (NO_WORSE, BETTER)
# Compared without its sign, unless it is to be below 0.
_UNSIGNED = "gap"
_WITHOUT_SIDE = [name for name, metric in COMPARABLE.items() if metric.better is None]


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What conditions are about: metrics with numbers; words are those of messages."""

    what: str
    example: str
    metrics: Collection[str]
    columns: Collection[str]
    verdicts: Collection[str] = ()
    # Why a metric is not among those that are known.
    why_not: Mapping[str, str] | None = None

    @property
    def verdict_example(self) -> str:
        """A condition on a verdict that is bad."""
        metric, _, _ = self.example.partition(".")
        verdict = WORSE if WORSE in self.verdicts else next(iter(self.verdicts))
        return f"{metric}.verdict={verdict}"


def _numbers(schema: Mapping[str, type[pl.DataType]]) -> list[str]:
    """Return the columns that conditions may be about."""
    return [
        name for name, dtype in schema.items() if dtype.is_numeric() and name != "reference_value"
    ]


_NO_DECISIONS = " (it needs decisions: those of a threshold, or recorded ones)"
_NO_LABEL = " (it needs a label)"
_NO_RATIOS = " (it needs a decision that is good for a person; found --favorable neither)"
_OF_DECISIONS = (*GAP_RATES, "accuracy", IMPACT_RATIO, *FAIRNESS)
_SELECTION_RATE = "selection_rate"
_ALL_OF_DECISIONS = {*_OF_DECISIONS, *THRESHOLD_METRICS, *GAP_CHANGES} - {
    "auc_difference",
    "auc_gap",
}
OF_COMPARISONS = Judged(
    what="the audit",
    example="tpr.gap>0.05",
    metrics=[*METRICS],
    columns=_numbers(COMPARISON_SCHEMA),
    verdicts=(DIFFERENT, EQUIVALENT, INCONCLUSIVE, BELOW_FOUR_FIFTHS, AT_LEAST_FOUR_FIFTHS),
)
OF_RELEASE = replace(
    OF_COMPARISONS,
    what="the release",
    example="auc.gap_high<0",
    metrics=[*RELEASE_METRICS, _ANY],
    verdicts=(BETTER, NO_WORSE, WORSE, DIFFERENT, EQUIVALENT, INCONCLUSIVE),
)
OF_IMPACT = replace(
    OF_COMPARISONS,
    what="the table",
    example="impact_ratio.ratio<0.8",
    metrics=[IMPACT_RATIO],
    verdicts=(BELOW_FOUR_FIFTHS, AT_LEAST_FOUR_FIFTHS, INCONCLUSIVE),
)
OF_CHANGES = Judged(
    what="the changes",
    example="tpr_gap.growth>0.02",
    metrics=[*CHANGED_METRICS],
    columns=_numbers(CHANGES_SCHEMA),
    verdicts=(DIFFERENT, EQUIVALENT, INCONCLUSIVE),
)
OF_PAIRS = Judged(
    what="the comparisons",
    example="auc.gap<0",
    metrics=[ROC_AUC.column],
    columns=[name for name in PAIR_COLUMNS if name not in (*PAIR, "metric")],
)


def of_audit(*, decides: bool, ratios: bool, labeled: bool = True) -> Judged:
    """Return what conditions on an audit may be about."""
    unknown = {} if decides else dict.fromkeys(_OF_DECISIONS, _NO_DECISIONS)
    if not labeled:
        unknown = {name: _NO_LABEL for name in OF_COMPARISONS.metrics if name not in UNLABELED}
    if decides and not ratios:
        unknown[IMPACT_RATIO] = _NO_RATIOS
    known = [name for name in OF_COMPARISONS.metrics if name not in unknown]
    return replace(OF_COMPARISONS, metrics=known, why_not=unknown)


@dataclass(frozen=True)
class Gate:
    """A condition on a number, or on the verdict, of each segment of a place."""

    of: Judged
    place: str | None
    metric: str
    column: str
    sign: str
    limit: float | str

    def __str__(self) -> str:
        return self._written(f".{self.column}{self.sign}")

    @property
    def asks_below_zero(self) -> bool:
        """Whether a number must be 0 or below to meet the condition, as no size is below 0."""
        if isinstance(self.limit, str):
            return False
        return self.sign in ("<", "<=") and self.limit <= 0

    @property
    def text(self) -> str:
        """The condition for readers, where a metric alone is the number that it is named for."""
        own = self.column == NAMED_FOR.get(self.metric, "value")
        return self._written(f"{'' if own else f'.{self.column}'} {self.sign} ")

    def _written(self, column_and_sign: str) -> str:
        place = "" if self.place is None else f"{self.place}:"
        limit = self.limit if isinstance(self.limit, str) else f"{self.limit:g}"
        return f"{place}{self.metric}{column_and_sign}{limit}"

    def judge(self, table: pl.DataFrame) -> JudgedGate:
        """Say where a table meets the condition, which makes it fail.

        A number based on too few rows, or compared with such a one, is not judged. A reference and
        an unknown category have nothing to be judged.
        """
        rows = self._rows(table)
        several = MODEL in table.columns and table[MODEL].n_unique() > 1
        known = rows.filter(self._is_judged(rows))
        met = pl.Series([self._is_met(value) for value in known[self.column]], dtype=pl.Boolean)
        # Where everybody has the same decision, a condition may be met, and cannot be passed.
        same = pl.Series(_same_decisions(known, table), dtype=pl.String)
        judged, found = known.filter(met | same.is_null()), known.filter(met)
        undecided = known.with_columns(reason=same).filter(~met & same.is_not_null())
        where = [
            f"{_place(row, several=several)} {_shown(row[self.column])}"
            f"{' in ' + row['metric'] if self.metric == _ANY else ''}"
            for row in found.iter_rows(named=True)
        ]
        lacking = dict[str, list[str]]()
        others = rows.filter(~self._is_judged(rows), pl.col("attribute") != OVERALL)
        unjudged = list[dict[str, Any]]()
        for row in (*others.iter_rows(named=True), *undecided.iter_rows(named=True)):
            reason = row.get("reason") or "no such number"
            if reason not in (THE_REFERENCE, UNKNOWN_REASON) and not reason.startswith(REPEATS):
                lacking.setdefault(reason, []).append(_place(row, several=several))
                unjudged.append(row | {"reason": reason})
        lines = [
            f"NOT JUDGED {self.text}: {_reason_in_places(reason, first_few(places, '; '))}"
            for reason, places in lacking.items()
        ]
        n, metric = judged.height, set(rows["metric"])
        noun = "attribute" if metric & FAIRNESS.keys() else "pair" if "pair" in rows else "segment"
        noun = "comparison" if self.metric == _ANY else noun
        among = f" in {found.height or 'none'} of {many(n, noun)}" if n > 1 else ""
        if where:
            lines.append(f"FAILED {self.text}{among}: {first_few(where, '; ')}")
        elif n:
            lines.append(f"PASSED {self.text}{among}")
        elif not lines:
            lines.append(f"NOT JUDGED {self.text}: no such number in any {noun}")
        not_judged = [place for places in lacking.values() for place in places]
        return JudgedGate(
            str(self),
            bool(where),
            n,
            where,
            not_judged,
            lines,
            GateCondition(self.place, self.metric, self.column, self.sign, self.limit),
            found.to_dicts(),
            unjudged,
        )

    def _rows(self, table: pl.DataFrame) -> pl.DataFrame:
        """Select the rows that the condition is about."""
        rows = table if self.metric == _ANY else table.filter(metric=self.metric)
        if self.metric == _ANY and self.limit in (NO_WORSE, BETTER, WORSE):
            rows = rows.filter(~pl.col("metric").is_in(_WITHOUT_SIDE))
        if self.place is None:
            return rows
        attribute, segment = pl.col("attribute"), pl.col("segment").fill_null(MISSING)
        named = (attribute == self.place) | (attribute + "=" + segment == self.place)
        if (found := rows.filter(named)).is_empty():
            places = rows.select((attribute + "=" + segment).alias("place"))["place"]
            known = dict.fromkeys([OVERALL, *rows["attribute"], *places])
            hint = did_you_mean(self.place, known)
            msg = (
                "`--fail-if` must name an attribute, or a segment such as sex=f; found "
                f"{self.place!r}{hint}"
            )
            raise ValueError(msg)
        return found

    def _is_judged(self, rows: pl.DataFrame) -> pl.Expr:
        known = pl.col(self.column).is_not_null()
        # Inconclusive is a verdict, and is not shown to be no worse.
        told = self.column == "verdict" and (self.sign == "!=" or self.limit == INCONCLUSIVE)
        if "reason" not in rows.columns or told:
            return known
        reason = pl.col("reason").fill_null("")
        left_out = reason.str.starts_with(FEW) | reason.str.starts_with(SMALL_SHARE)
        left_out |= reason == UNKNOWN_REASON
        if not self.column.startswith(("value", "verdict", "n")):
            # Of impact ratios the reference has the ratio 1.
            left_out |= reason == THE_REFERENCE
        return known & ~left_out

    def _is_met(self, value: Any) -> bool:
        if isinstance(self.limit, str):
            words = _NO_WORSE if self.limit == NO_WORSE else (self.limit,)
            return value not in words if self.sign == "!=" else bool(value == self.limit)
        signed = self.column != _UNSIGNED or self.asks_below_zero
        return _COMPARE[self.sign](value if signed else abs(value), self.limit)


def _reason_in_places(reason: str, places: str) -> str:
    """Say why some places are not judged, where a reason may be about their reference."""
    return f"{reason} of {places}" if reason.endswith(IN_REFERENCE) else f"{reason} in {places}"


def _same_decisions(rows: pl.DataFrame, table: pl.DataFrame) -> list[str | None]:
    """Return of each row why it tells nothing: of its score everybody has the same decision."""
    if "metric" not in table.columns or "value" not in table.columns:
        return [None] * rows.height
    overall = table.filter(attribute=OVERALL, metric=_SELECTION_RATE)
    sides = [name for name in ("value", "reference_value") if name in table.columns]
    found = dict[str | None, str]()
    for row in overall.iter_rows(named=True):
        for share, why in ((0, NOBODY), (1, EVERYBODY)):
            if any(row[name] is not None and abs(row[name] - share) <= TOLERANCE for name in sides):
                found[row.get(MODEL)] = why
    whys: list[str | None] = []
    for row in rows.iter_rows(named=True):
        reason = row.get("reason")
        known = reason if reason in (NOBODY, EVERYBODY) else found.get(row.get(MODEL))
        whys.append(known if row["metric"] in _ALL_OF_DECISIONS else None)
    return whys


class Judgement(NamedTuple):
    """Gates that are judged, and what is wrong with those of which the place is unknown."""

    gates: list[JudgedGate]
    unknown: list[str]


def judged(gates: Sequence[Gate], table: pl.DataFrame) -> Judgement:
    """Judge each gate."""
    judgement = Judgement([], [])
    for gate in gates:
        try:
            judgement.gates.append(gate.judge(table))
        except ValueError as error:
            judgement.unknown.append(str(error))
    return judgement


def read_gate(text: str, of: Judged) -> Gate:
    """Read a condition such as ``race=black:tpr.gap>0.05``."""
    before, colon, rest = text.rpartition(":")
    place = before.strip() if colon else None
    if of.verdicts and (word := _VERDICT.fullmatch(rest)):
        if word[3] not in of.verdicts:
            hint = did_you_mean(word[3], of.verdicts)
            known = ", ".join(of.verdicts)
            msg = f"`--fail-if` must name a verdict of {of.what}: {known}; found {word[3]!r}{hint}"
            raise ValueError(msg)
        gate = Gate(of, place, word[1], "verdict", word[2], word[3])
    elif parts := _GATE.fullmatch(rest):
        gate = Gate(of, place, parts[1], parts[2], parts[3], float(parts[4]))
    else:
        _refuse(text, of)
    _check(gate)
    return gate


def _refuse(text: str, of: Judged) -> NoReturn:
    one = _ONE_NAME.fullmatch(text)
    hint = _meant(one[1], of) if one else ""
    examples = f"{of.example} or {of.verdict_example}" if of.verdicts else of.example
    msg = (
        "`--fail-if` must be a metric, a column, one of > >= < <= and a number, such as "
        f"{examples}; found {text!r}{hint}"
    )
    raise ValueError(msg)


def _meant(name: str, of: Judged) -> str:
    """End a message about one name, such as ``auc_gap_low``, with what may be meant."""
    begun = [metric for metric in of.metrics if f"{name}_".startswith(f"{metric}_")]
    if not begun and len(of.metrics) > 1:
        return _near(name, of.metrics)
    metric = max(begun or of.metrics, key=len)
    known = {column: column for column in of.columns}
    own = NAMED_FOR.get(metric, "value")
    known |= {"": own} if own in of.columns else {}
    close = get_close_matches(name.removeprefix(metric).removeprefix("_"), known, 1)
    if close:
        return f"; did you mean {f'{metric}.{known[close[0]]}'!r}?"
    return f"; of {metric} there are {', '.join(of.columns)}"


def _near(name: str, known: Collection[str]) -> str:
    return metric_hint(name, known) or f"; there are {first_few([*known])}"


def _check(gate: Gate) -> None:
    """Check the names of a condition, and that it can be met."""
    of = gate.of
    if gate.metric not in of.metrics:
        hint = (of.why_not or {}).get(gate.metric) or _near(gate.metric, of.metrics)
        if gate.metric == _ANY:
            example = of.verdict_example if of.verdicts else of.example
            hint = f": write a condition for each metric, such as {example}"
        msg = f"`--fail-if` must name a metric of {of.what}; found {gate.metric!r}{hint}"
        raise ValueError(msg)
    if gate.column not in of.columns and gate.column != "verdict":
        hint = did_you_mean(gate.column, of.columns) or f"; there are {', '.join(of.columns)}"
        msg = f"`--fail-if` must name a column of {of.what}; found {gate.column!r}{hint}"
        raise ValueError(msg)
    if gate.column.startswith(_UNSIGNED) and isinstance(gate.limit, float):
        _check_gap(gate, gate.limit)


def _check_gap(gate: Gate, limit: float) -> None:
    if gate.column == _UNSIGNED and limit < 0 and not gate.asks_below_zero:
        msg = (
            "`--fail-if` must be a condition that not every gap meets, which is compared without "
            f"its sign unless it is to be below 0; found {gate}"
        )
        raise ValueError(msg)
    if gate.metric != "calibration_slope" and abs(limit) > 1:
        msg = (
            "`--fail-if` must have a limit between -1 and 1 for a gap, so that 0.05 is 5 points; "
            f"found {gate}"
        )
        raise ValueError(msg)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"


def _place(row: dict[str, Any], *, several: bool) -> str:
    """Name the segment, or the attribute and the two segments compared."""
    if row["metric"] in FAIRNESS:
        place = row["attribute"]
        if row["reference"] is not None:
            place += f" ({name_of(row['segment'])} and {row['reference']})"
    else:
        place = segment_in_words(row["attribute"], row["segment"])
    pair = row.get("pair")
    return ", ".join([place, *([row[MODEL]] if several else []), *([pair] if pair else [])])


def judged_pairs(table: pl.DataFrame) -> pl.DataFrame:
    """Lay out the table of `compare` as rows of a metric."""
    groups = table.columns[: -len(PAIR_COLUMNS)]
    texts = [pl.col(name).cast(pl.String).fill_null(MISSING) for name in groups]
    segment = pl.concat_str(texts, separator=", ") if groups else pl.lit(OVERALL)
    return table.select(
        pl.lit(", ".join(groups) or OVERALL).alias("attribute"),
        segment.alias("segment"),
        pl.format("{} and {}", *PAIR).alias("pair"),
        pl.exclude(*groups, *PAIR),
    )
