"""The comparison table: a row for each attribute, segment, score and metric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from polars_wroc.audits.calibration_tests import EXPECTED, LEAST_EXPECTED
from polars_wroc.audits.measure import Measured
from polars_wroc.audits.tables import ALL_KEYS, AuditReferences, AuditSettings
from polars_wroc.curves.calibration_error import IN_THE_LARGE
from polars_wroc.curves.calibration_slope import SLOPE
from polars_wroc.groups.auc_sums import GAP_METRICS
from polars_wroc.groups.categories import SMALL_SHARE
from polars_wroc.groups.fairness import ABROCA
from polars_wroc.groups.fairness import METRICS as FAIRNESS_METRICS
from polars_wroc.groups.impact_table import BELOW, MIN_SHARE, SURELY, SURELY_NOT
from polars_wroc.inputs.columns import MISSING, MODEL, OVERALL
from polars_wroc.inputs.metric import Metric, SampleSize
from polars_wroc.metrics.registry import CURVE_METRICS, ROC_AUC
from polars_wroc.metrics.summary import AUC_BOUNDS
from polars_wroc.thresholds.registry import RATES

IMPACT_RATIO = "impact_ratio"
# What all rows are compared with.
TARGET = "target"
# Why rows are not compared, or not tested.
THE_REFERENCE, UNDEFINED, NO_VARIANCE = "the reference", "undefined", "no variance"
# Of a precision: where one class lacks, it is 0 or 1 whatever the decisions.
ONE_CLASS = "one class only"
_OF_BOTH_CLASSES = ("ppv", "npv")
# It is left out, or no segment has enough rows to be the best.
NO_REFERENCE = "no reference shown"
UNKNOWN, RARE = "an unknown category", f"share below {100 * MIN_SHARE:g}%"
# How reasons begin that a number is based on too few rows, which gates do not judge.
FEW, REPEATS = "fewer than ", "repeats "

DIFFERENT, ALIKE, TOO_LITTLE = "different", "alike", "too little data"
COLUMNS: dict[str, type[pl.DataType]] = {
    **dict.fromkeys((*ALL_KEYS, "metric"), pl.String),
    "n": pl.Int64,
    **dict.fromkeys(("value", "value_low", "value_high"), pl.Float64),
    "reference": pl.String,
    "n_reference": pl.Int64,
    **dict.fromkeys(("reference_value", "gap", "gap_low", "gap_high"), pl.Float64),
    **dict.fromkeys(("ratio", "ratio_low", "ratio_high"), pl.Float64),
    **dict.fromkeys(("p_value", "p_adjusted", "detectable"), pl.Float64),
    **dict.fromkeys(("verdict", "reason"), pl.String),
}
_ENDS = ("", "_low", "_high")


@dataclass(frozen=True, kw_only=True)
class AuditMetric(Metric):
    """A metric that only audits have, and the kinds of rows that it is based on."""

    of: tuple[SampleSize, ...] = ("rows",)

    @property
    def sample_sizes(self) -> tuple[SampleSize, ...]:
        """Kinds of rows that the metric is based on; a test needs enough of each."""
        return self.of


CALIBRATION = {
    metric.name: metric
    for metric in (
        AuditMetric(
            name=IN_THE_LARGE,
            label="calibration in the large",
            definition="Mean score less the proportion of positives.",
        ),
        AuditMetric(
            name=SLOPE,
            label="calibration slope",
            definition="Slope of a logistic regression of the label on the logit of the score.",
            of=("positives", "negatives"),
        ),
    )
}
FAIRNESS = {
    name: AuditMetric(name=name, label=metric.label, definition="")
    for name, metric in FAIRNESS_METRICS.items()
    if name != ABROCA
}
AVERAGE_PRECISION = CURVE_METRICS["average_precision"]
# Metrics of which there are values only.
VALUES: dict[str, Metric] = {
    metric.column: metric for metric in (AVERAGE_PRECISION, RATES["accuracy"])
}
# All metrics of an audit, in the order of its rows.
METRICS: dict[str, Metric] = {
    **GAP_METRICS,
    **VALUES,
    IMPACT_RATIO: AuditMetric(name=IMPACT_RATIO, label="impact ratio", definition=""),
    **CALIBRATION,
    **FAIRNESS,
}

# Rows of each kind in a segment, and in all segments.
_OWN, _ALL = "__own_", "__all_"
_COUNTS: dict[SampleSize, pl.Expr] = {
    "positives": pl.col("n_pos"),
    "negatives": pl.col("n_neg"),
    "rows": pl.col("n"),
    "selected": pl.col("n_selected"),
    "rejected": pl.col("n") - pl.col("n_selected"),
}
_WITHIN = ["attribute", MODEL]
_REFERENCE, _IS_SEGMENT = "__reference", "__reference_is_segment"
_ONE_CLASS, _ENOUGH, _FLAT = "__one_class", "__enough", "__place"


def comparisons(measured: Measured, settings: AuditSettings) -> pl.DataFrame:
    """Lay out what was measured: `COLUMNS`, overall first, then attributes and segments."""
    wide = _Wide(measured, settings)
    parts = [
        *(wide.of_metric(name) for name in (*GAP_METRICS, *VALUES)),
        wide.impact(),
        *(wide.of_calibration(name) for name in CALIBRATION),
        wide.fairness(),
    ]
    known = [part for part in parts if part is not None]
    table = pl.concat([part.select(_with_all(part, COLUMNS)) for part in known])
    return in_order(table, wide.segments)


def _with_all(part: pl.DataFrame, columns: Mapping[str, type[pl.DataType]]) -> list[pl.Expr]:
    """Select these columns, null where there is none."""
    return [
        (pl.col(name) if name in part.columns else pl.lit(None)).cast(dtype).alias(name)
        for name, dtype in columns.items()
    ]


def in_order(table: pl.DataFrame, segments: pl.DataFrame) -> pl.DataFrame:
    """Sort rows as the segments are, and by metric."""
    place = segments.select(*ALL_KEYS).with_row_index(_FLAT)
    metric = pl.col("metric").cast(pl.Enum(list(METRICS)))
    attribute = pl.col(_FLAT).min().over("attribute")
    placed = table.join(place, on=ALL_KEYS, how="left", nulls_equal=True, maintain_order="left")
    # Unknown combinations, of which there are impact ratios, are no segment.
    return placed.sort(attribute, _FLAT, metric, nulls_last=True).drop(_FLAT)


class _Wide(NamedTuple):
    """The tables as they are measured, with a column for each metric and part of a comparison."""

    measured: Measured
    settings: AuditSettings

    @property
    def segments(self) -> pl.DataFrame:
        return self._keyed(self.measured.segments)

    def _keyed(self, table: pl.DataFrame) -> pl.DataFrame:
        return with_model(table, self.settings)

    def of_metric(self, name: str) -> pl.DataFrame | None:
        """Lay out the values of a metric, and the comparisons where there are any."""
        table = self.segments
        if name not in table.columns:
            return None
        metric, limits = METRICS[name], "ci" if name == ROC_AUC.column else name
        values = table.select(
            *ALL_KEYS,
            n=pl.min_horizontal(_COUNTS[size] for size in metric.sample_sizes),
            metric=pl.lit(name),
            value=pl.col(name),
            **{f"value{end}": pl.col(f"{limits}{end}") for end in _ENDS[1:]}
            if f"{limits}_low" in table.columns
            else {},
        )
        undefined = pl.when(pl.col("value").is_null()).then(pl.lit(UNDEFINED))
        if name not in GAP_METRICS:
            return values.with_columns(reason=undefined)
        gaps = self._compared(self._referred(), name)
        joined = _join(values.rename({"value": "__value"}), gaps)
        return joined.with_columns(
            # Where they were summed in another order, they agree with their gaps.
            value=pl.coalesce("value", "__value"),
            reason=pl.when(pl.col("attribute") == OVERALL)
            .then(pl.when(pl.col("__value").is_null()).then(pl.lit(UNDEFINED)))
            .otherwise("reason"),
        )

    def _referred(self) -> pl.DataFrame:
        """Add to the gaps which segment each is compared with, if it is one, and the rows."""
        gaps, reference = self._keyed(self.measured.gaps), self.settings.reference
        gaps = _join(gaps.drop("n_pos", "n_neg"), self._rows_of_each_kind())
        attribute = pl.col("attribute")
        is_best = pl.col("auc").is_not_null() & (pl.col("auc") == pl.col("auc_reference"))
        best = pl.col("segment").fill_null(MISSING).filter(is_best).first().over(_WITHIN)
        is_named = attribute.is_in([*reference.named])
        named = attribute.replace_strict(
            dict(reference.named), default=None, return_dtype=pl.String
        )
        by_kind = best if reference.kind == "best" else pl.lit(reference.name)
        referred = gaps.with_columns(
            pl.when(is_named).then(named).otherwise(by_kind).alias(_REFERENCE),
            (is_named | pl.lit(reference.kind == "best")).alias(_IS_SEGMENT),
        )
        classes = _rows_behind(ROC_AUC, reference)
        lacking = (pl.min_horizontal(classes.values()) == 0).fill_null(value=True)
        referred = referred.with_columns(lacking.alias(_ONE_CLASS))
        compared = pl.col(f"^({'|'.join(_OF_BOTH_CLASSES)})_(reference|gap|ratio).*$")
        return referred.with_columns(pl.when(~pl.col(_ONE_CLASS)).then(compared))

    def _rows_of_each_kind(self) -> pl.DataFrame:
        """Count the rows of each segment that metrics may be based on, and those of all rows."""
        table, is_overall = self.segments, pl.col("attribute") == OVERALL
        known = {
            size: count
            for size, count in _COUNTS.items()
            if set(count.meta.root_names()) <= set(table.columns)
        }
        own = {f"{_OWN}{size}": count for size, count in known.items()}
        whole = {
            f"{_ALL}{size}": count.filter(is_overall).first().over(MODEL)
            for size, count in known.items()
        }
        return table.select(*ALL_KEYS, **own, **whole)

    def _compared(self, table: pl.DataFrame, name: str) -> pl.DataFrame:
        """Lay out the comparisons of a metric: a row for each segment."""

        def part(column: str) -> pl.Expr:
            return pl.col(column) if column in table.columns else pl.lit(None, pl.Float64)

        # A gap without a variance is null, although both values are known.
        known = pl.all_horizontal(pl.col(name, f"{name}_reference").is_not_null())
        little = pl.when(known & ~_is_reference()).then(pl.lit(TOO_LITTLE))
        verdict = pl.coalesce(f"{name}_gap_verdict", little)
        return _join(table, self._enough(f"{name}_gap")).select(
            *ALL_KEYS,
            metric=pl.lit(name),
            value=pl.col(name),
            reference=pl.col(_REFERENCE),
            reference_value=pl.col(f"{name}_reference"),
            **{f"{of}{end}": part(f"{name}_{of}{end}") for of in ("gap", "ratio") for end in _ENDS},
            p_value=pl.col(f"{name}_gap_p_value"),
            p_adjusted=pl.col(f"{name}_gap_p_adjusted"),
            detectable=part(f"{name}_gap_detectable"),
            **_rows_behind(METRICS[name], self.settings.reference),
            verdict=verdict,
            reason=self._reason(name, verdict),
        )

    def _enough(self, name: str) -> pl.DataFrame:
        """Say which segments have enough rows for a metric or a test."""
        return self._keyed(self.measured.enough_rows.where([name]).rename({"enough": _ENOUGH}))

    def _reason(self, name: str, verdict: pl.Expr) -> pl.Expr:
        """Say why there is no verdict or no test; null if the interval says enough."""
        no_reference = ~_is_reference().fill_null(value=False).any().over(_WITHIN)
        undefined = (
            pl.when(_is_reference())
            .then(pl.lit(THE_REFERENCE))
            .when(_IS_SEGMENT, no_reference)
            .then(pl.lit(NO_REFERENCE))
            .when(pl.col(_ONE_CLASS) & pl.lit(name in _OF_BOTH_CLASSES))
            .then(pl.lit(ONE_CLASS))
            .otherwise(pl.lit(UNDEFINED))
        )
        little = verdict == TOO_LITTLE
        return (
            pl.when(verdict.is_null())
            .then(undefined)
            .when(little & ~pl.col(_ENOUGH))
            .then(pl.lit(self.few))
            .when(little & pl.col(f"{name}_gap_low").is_null())
            .then(pl.lit(NO_VARIANCE))
        )

    @property
    def few(self) -> str:
        return f"{FEW}{self.settings.min_rows} rows"

    def of_calibration(self, name: str) -> pl.DataFrame | None:
        """Lay out a metric of calibration: of all rows against a target, of segments as asked."""
        # There are no slopes of rows in ranges.
        if self.measured.calibration is None or not self.measured.calibration[name].count():
            return None
        table = self._keyed(self.measured.calibration)
        values = table.select(*ALL_KEYS, **{f"value{end}": f"{name}{end}" for end in _ENDS[1:]})
        known = table.select(*ALL_KEYS, pl.col(f"^{name}(_reference|_gap.*)?$"))
        of_segments = self._compared(_join(self._referred(), known, how="inner"), name)
        rows = pl.concat([self._of_all_rows(table, name), of_segments], how="diagonal_relaxed")
        untested = (pl.col("verdict") == TOO_LITTLE) & pl.col("p_value").is_null()
        few = pl.lit(name == IN_THE_LARGE) & ~pl.col(_ENOUGH)
        why = (
            pl.when(untested & few)
            .then(pl.lit(f"{FEW}{LEAST_EXPECTED} expected rows of a class"))
            .when(untested)
            .then(pl.lit(NO_VARIANCE))
        )
        joined = _join(_join(rows, self._enough(EXPECTED)), values)
        return joined.with_columns(reason=pl.coalesce("reason", why))

    def _of_all_rows(self, table: pl.DataFrame, name: str) -> pl.DataFrame:
        counts = self.segments.select(*ALL_KEYS, "n_pos", "n_neg")
        rows = _join(_join(table.filter(attribute=OVERALL), counts), self._enough(f"{name}_gap"))
        verdict = pl.col(f"{name}_gap_verdict")
        little = (verdict == TOO_LITTLE) & ~pl.col(_ENOUGH)
        return rows.select(
            *ALL_KEYS,
            metric=pl.lit(name),
            n=pl.min_horizontal(_COUNTS[size] for size in METRICS[name].sample_sizes),
            value=pl.col(name),
            reference=pl.lit(TARGET),
            reference_value=pl.col(f"{name}_reference"),
            **{f"gap{end}": pl.col(f"{name}_gap{end}") for end in _ENDS},
            p_value=pl.col(f"{name}_gap_p_value"),
            p_adjusted=pl.col(f"{name}_gap_p_adjusted"),
            verdict=verdict,
            reason=pl.when(verdict.is_null())
            .then(pl.lit(UNDEFINED))
            .when(little)
            .then(pl.lit(self.few)),
        )

    def impact(self) -> pl.DataFrame | None:
        """Lay out the impact ratios."""
        if self.measured.impact is None:
            return None
        impact = self.measured.enough_rows.for_ratios(self.measured.impact)
        good = self.settings.favorable
        return impact_rows(self._keyed(impact), rejected=good == "rejected", few=self.few)

    def fairness(self) -> pl.DataFrame | None:
        """Lay out the fairness metrics: the segments with the highest and the lowest rate."""
        if self.measured.fairness is None:
            return None
        table = self._keyed(self.measured.fairness).drop_nulls("value")
        parts = [
            self._rates_of_pairs(table.filter(metric=metric.name), rate)
            for metric in FAIRNESS_METRICS.values()
            for rate in metric.compares
        ]
        rows = pl.concat(parts)
        # Of several rates that with the larger difference or the smaller ratio decides.
        off = (pl.coalesce("gap", "ratio") - pl.col("__of_rate")).abs()
        return rows.sort(off, maintain_order=True).unique([*_WITHIN, "metric"], keep="first")

    def _rates_of_pairs(self, table: pl.DataFrame, rate: str) -> pl.DataFrame:
        """Add the rate of both segments and its rows."""
        size = pl.min_horizontal(_COUNTS[one] for one in METRICS[rate].sample_sizes)
        rates = self.segments.select(
            *_WITHIN, "segment", pl.col("segment").fill_null(MISSING).alias("name"), rate, n=size
        )
        for end in ("max", "min"):
            of_end = rates.rename({one: f"{one}_{end}" for one in (rate, "n", "name", "segment")})
            table = table.join(
                of_end,
                left_on=[*_WITHIN, f"group_{end}"],
                right_on=[*_WITHIN, f"name_{end}"],
                how="left",
                nulls_equal=True,
                maintain_order="left",
            )
        ratio = pl.col("metric").str.ends_with("_ratio")

        def of(name: str, *, own: bool) -> pl.Expr:
            """Take a column of the segment, which is the lower one of a ratio, or of the other."""
            ends = ("min", "max") if own else ("max", "min")
            low, high = (pl.col(f"{name}_{end}") for end in ends)
            return pl.when(ratio).then(low).otherwise(high)

        value, other = of(rate, own=True), of(rate, own=False)
        limits = {"": "value", "_low": "joint_low", "_high": "joint_high"}
        return table.select(
            *_WITHIN,
            of("segment", own=True).alias("segment"),
            "metric",
            of("n", own=True).alias("n"),
            value.alias("value"),
            of("group", own=False).alias("reference"),
            of("n", own=False).alias("n_reference"),
            other.alias("reference_value"),
            *(pl.when(~ratio).then(column).alias(f"gap{end}") for end, column in limits.items()),
            *(pl.when(ratio).then(column).alias(f"ratio{end}") for end, column in limits.items()),
            "p_value",
            pl.when(ratio).then(value / other).otherwise(value - other).alias("__of_rate"),
        )


def impact_rows(impact: pl.DataFrame, *, rejected: bool, few: str) -> pl.DataFrame:
    """Lay out impact ratios with their joint limits; ``enough`` are rows that are no ``few``."""

    def good(rate: str) -> pl.Expr:
        return 1 - pl.col(rate) if rejected else pl.col(rate)

    ratio, below, excluded = pl.col(IMPACT_RATIO), pl.col(BELOW), pl.col("excluded")
    itself = pl.col("segment").fill_null(MISSING) == pl.col("reference")
    compared = (ratio.is_not_null() & ~itself & excluded.is_null()).fill_null(value=False)
    low, high = ("high", "low") if rejected else ("low", "high")
    verdict = (
        pl.when(compared & pl.col("enough") & (below == SURELY_NOT))
        .then(pl.lit(ALIKE))
        .when(compared & pl.col("enough") & (below == SURELY))
        .then(pl.lit(DIFFERENT))
        .when(compared)
        .then(pl.lit(TOO_LITTLE))
    )
    reason = (
        pl.when(itself)
        .then(pl.lit(THE_REFERENCE))
        .when(excluded == "unknown")
        .then(pl.lit(UNKNOWN))
        .when(excluded == SMALL_SHARE)
        .then(pl.lit(RARE))
        .when(ratio.is_null())
        .then(pl.lit(UNDEFINED))
        .when((verdict == TOO_LITTLE) & ~pl.col("enough"))
        .then(pl.lit(few))
    )
    return impact.select(
        *ALL_KEYS,
        "n",
        "reference",
        "p_value",
        "p_adjusted",
        metric=pl.lit(IMPACT_RATIO),
        value=good("selection_rate"),
        value_low=good(f"selection_rate_{low}"),
        value_high=good(f"selection_rate_{high}"),
        n_reference=pl.when(pl.col("reference").is_not_null()).then(
            pl.col("n").filter(itself).first().over(_WITHIN)
        ),
        reference_value=good("reference_rate"),
        ratio=ratio,
        ratio_low=pl.when(~itself).then(f"{IMPACT_RATIO}_joint_low"),
        ratio_high=pl.when(~itself).then(f"{IMPACT_RATIO}_joint_high"),
        verdict=verdict,
        reason=reason,
    )


def _is_reference() -> pl.Expr:
    return pl.col(_IS_SEGMENT) & (pl.col("segment").fill_null(MISSING) == pl.col(_REFERENCE))


def _rows_behind(metric: Metric, reference: AuditReferences) -> dict[str, pl.Expr]:
    """Count the rows that a metric of a segment, and of its reference, is based on.

    Of an AUC, those of the smaller class.
    """
    own = [pl.col(f"{_OWN}{size}") for size in metric.sample_sizes]
    every = [pl.col(f"{_ALL}{size}") for size in metric.sample_sizes]
    of_segment = [count.filter(_is_reference()).first().over(_WITHIN) for count in own]
    without_own = reference.name != OVERALL
    of_all = [
        whole - count if without_own else whole for whole, count in zip(every, own, strict=True)
    ]
    others = pl.when(_IS_SEGMENT).then(pl.min_horizontal(of_segment))
    return {
        "n": pl.min_horizontal(own),
        "n_reference": others.otherwise(pl.min_horizontal(of_all)),
    }


# Of a segment; null without decisions where they are of these.
SEGMENT_COLUMNS: dict[str, type[pl.DataType]] = {
    **dict.fromkeys(ALL_KEYS, pl.String),
    **dict.fromkeys(("n", "n_pos", "n_neg", "n_missing", "n_selected"), pl.Int64),
    **dict.fromkeys(("w_pos", "w_neg", "threshold", "tp", "fp", "fn", "tn"), pl.Float64),
}


def counts_of(segments: pl.DataFrame, settings: AuditSettings) -> pl.DataFrame:
    """Count the rows of each segment, by class and decision: `SEGMENT_COLUMNS`."""
    named = with_model(segments, settings)
    return named.select(_with_all(named, SEGMENT_COLUMNS))


def curves_of(curves: pl.DataFrame, settings: AuditSettings) -> pl.DataFrame:
    """Name the score of each curve, after its segment."""
    return with_model(curves, settings).select(*ALL_KEYS, pl.exclude(ALL_KEYS))


def auc_error(segments: pl.DataFrame) -> float | None:
    """Return how far the AUCs of scores that were counted in bins may be off."""
    if not set(AUC_BOUNDS) <= set(segments.columns):
        return None
    away = ((pl.col("auc") - pl.col(bound)).abs().max() for bound in AUC_BOUNDS)
    return float(segments.select(pl.max_horizontal(away).fill_null(0.0)).item())


def with_model(table: pl.DataFrame, settings: AuditSettings) -> pl.DataFrame:
    """Name the score of each row, also if there is one alone."""
    if MODEL in table.columns:
        return table
    return table.with_columns(pl.lit(settings.score[0]).alias(MODEL))


def _join(table: pl.DataFrame, other: pl.DataFrame, how: str = "left") -> pl.DataFrame:
    """Add columns by segment and score; those of the table come first."""
    new = [name for name in other.columns if name in ALL_KEYS or name not in table.columns]
    return table.join(
        other.select(new),
        on=ALL_KEYS,
        how="inner" if how == "inner" else "left",
        nulls_equal=True,
        maintain_order="left",
    )
