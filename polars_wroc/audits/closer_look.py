"""What reports say further: parts of gaps, calibration along the scores, segments not named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import isfinite
from typing import Any

import polars as pl

from polars_wroc.audits.audit_rows import AuditRows
from polars_wroc.audits.sentences import size
from polars_wroc.audits.tables import (
    ALL_KEYS,
    AuditPlan,
    AuditTables,
    Further,
    segment_in_words,
)
from polars_wroc.audits.words import Words, many, verb
from polars_wroc.curves.calibration_curve import BIN_COLUMNS, Strategy, binned
from polars_wroc.curves.calibration_summary import IN_THE_LARGE
from polars_wroc.curves.calibration_test import RANGE_COLUMNS, described, ranges_of
from polars_wroc.curves.equal_scores import EQUAL_SCORE_COLUMNS, compared, tested
from polars_wroc.curves.score_distribution import DISTRIBUTION_COLUMNS, distribute_scores
from polars_wroc.groups.comparison_tests import GapTests
from polars_wroc.groups.comparisons import CALIBRATION, DIFFERENT, comparison_table
from polars_wroc.groups.expected_metrics import Expectations, with_chances
from polars_wroc.groups.gap_parts import CANNOT_TELL, PART_COLUMNS, SPLIT_METRICS, Split
from polars_wroc.groups.segment_search import (
    SEARCH_COLUMNS,
    Search,
    TooManySegmentsError,
)
from polars_wroc.groups.worst_segments import SEARCHED, cells_of
from polars_wroc.inputs.columns import AUDIT_KEYS, MISSING, MODEL, OVERALL, SCORE
from polars_wroc.inputs.designs import UNITS, Replicates, SurveyDesign
from polars_wroc.inputs.looks import Looks
from polars_wroc.inputs.rows import Rows
from polars_wroc.metrics.compare import compare
from polars_wroc.plans.queries import collect
from polars_wroc.thresholds.registry import RateMetric

PARTS = "Parts of gaps, and calibration along the scores"
EXPLORATION = "Exploration: segments not named before"
# Most conditions of a segment that is searched for, and most that are found.
_DEPTH, _TOP = 3, 10
# Of a calibration curve.
_BINS = 8
# Segments of an attribute with more are not compared at equal scores.
_MOST = 50
# Of more rows only segments are searched.
_MOST_ROWS = 2_000_000
# Most gaps of an attribute that are told in parts, and most segments that a search tells.
_SPLIT, _TOLD = 6, 5
_NO_PROOF = (
    "A score means different things there. That is no proof of discrimination: features that the "
    "score leaves out, and that differ between the groups, do that too."
)
_NUMBERS = ("one", "two", "three")
_collect = partial(collect, reproducible=True)


@dataclass(eq=False)
class CloserLook:
    """Looks at the rows of an audit again, once, when something is to be told of it.

    A copy by `pickle` has what was found and no rows.
    """

    audit: AuditTables
    plan: AuditPlan
    rows: AuditRows | None
    # Where the rows came from: tables, label, scores and what else `compare` takes.
    given: Sequence[Any]

    def __call__(self) -> Further:
        """Return what was found."""
        return self.found

    def __getstate__(self) -> dict[str, Further]:
        """Keep no rows."""
        return {"found": self.found}

    @cached_property
    def found(self) -> Further:
        """The tables of a closer look."""
        settings = self.audit.settings
        rows = None if self.rows is None else self.rows.planned()
        self.rows = None
        reason = None
        if isinstance(settings.level, Looks):
            reason = "its limits would hold at one look only"
        elif rows is None:
            reason = "there are more rows than fit into memory"
        elif settings.bins is not None:
            reason = "scores were counted in bins"
        given, self.given = self.given, ()
        if rows is None or reason is not None:
            return Further(left_out=[_not_explored(reason)])
        further = Further(scores=self._scores(*given))
        left_out, found = list[str](), self._search(rows)
        if isinstance(found, str):
            left_out, found = [_not_explored(found)], pl.DataFrame()
        further = further._replace(exploration=found, left_out=left_out)
        if collect(rows.frame.select(pl.len())).item() > _MOST_ROWS:
            # These would take several times the time and the memory of the audit.
            left_out.append(f"{PARTS}, are left out: there are more than {_MOST_ROWS:,} rows.")
            return further
        further = further._replace(gap_parts=_stacked(self._parts(rows)))
        if settings.min_cell is not None:
            # Ranges of scores end at those of persons.
            return further
        curves, distributions = self._curves(rows)
        return further._replace(
            calibration=_stacked(self._calibration(rows)),
            equal_scores=_stacked(self._equal_scores(rows)),
            calibration_curves=curves,
            distributions=distributions,
        )

    @property
    def _calibrated(self) -> list[str]:
        """The scores that are from 0 to 1."""
        table = self.audit.table.filter(metric=IN_THE_LARGE)
        names: list[str] = table[MODEL].unique(maintain_order=True).to_list()
        return names

    def _of_models(self, rows: Rows) -> Iterator[tuple[str, Rows]]:
        """Return the rows of each score that is from 0 to 1."""
        for name in self._calibrated:
            frame = rows.frame
            if rows.model_keys:
                frame = frame.filter(pl.col(MODEL).cast(pl.String) == name)
            yield name, replace(rows, frame=frame, keys=rows.group_keys, model_keys=[])

    def _parts(self, rows: Rows) -> Iterator[pl.DataFrame]:
        """Split the gaps that are different."""
        plan, audit = self.plan, self.audit
        split = pl.col("metric").is_in(SPLIT_METRICS) & pl.col("rank").is_not_null()
        gaps = audit.table.filter(split, pl.col("attribute") != OVERALL, verdict=DIFFERENT)
        gaps = gaps.sort("rank").group_by("attribute", MODEL, maintain_order=True).head(_SPLIT)
        if isinstance(rows.design, Replicates) or plan.references.kind != "rest":
            return
        for name, of_model in self._of_models(rows):
            threshold = audit.segments.filter(attribute=OVERALL, model=name)["threshold"].item()
            known = threshold if threshold is not None and isfinite(threshold) else None
            of_score = gaps.filter(model=name)
            expectations = Expectations.read(known, [*of_score["metric"]], labelled=True)
            expectations = replace(
                expectations,
                names=[n for n in expectations.names if n in of_score["metric"]],
            )
            table = of_score.filter(pl.col("metric").is_in(expectations.names))
            if not table.is_empty():
                chances = with_chances(of_model, pl.col(SCORE), pl.col(SCORE), "score")
                divisions = [one for one in plan.groupings if one.attribute in table["attribute"]]
                told = Split(
                    chances, divisions, plan.references.named, expectations, self._tests
                ).added_to(table.drop("sentence"))
                yield told.select(*ALL_KEYS, "metric", *PART_COLUMNS, "sentence")

    @property
    def _tests(self) -> GapTests:
        """How the parts of gaps are tested."""
        settings = self.audit.settings
        return GapTests(
            settings.level,
            settings.adjust,
            settings.min_rows,
            margin=settings.margin,
            designed=settings.by_design,
        )

    def _calibration(self, rows: Rows) -> Iterator[pl.DataFrame]:
        """Find the ranges of scores that are farthest off."""
        for name, of_model in self._of_models(rows):
            tables = [
                grouping.named(ranges_of(of_model.regrouped(grouping.keys)))
                for grouping in self.plan.groupings
            ]
            settings = self.audit.settings
            found = described(pl.concat(tables), settings.level, settings.adjust)
            yield self._shown(found, name, RANGE_COLUMNS)

    def _curves(self, rows: Rows) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return calibration curves and distributions where a finding is about calibration."""
        known = pl.col("metric").is_in([*CALIBRATION])
        differ = self.audit.table.filter(known, verdict=DIFFERENT)
        curves, distributions = list[pl.DataFrame](), list[pl.DataFrame]()
        # Quantiles move with a sample, which a design would have to know.
        strategy: Strategy = "quantile" if rows.design is None else "uniform"
        for name, of_model in self._of_models(rows):
            attributes = set(differ.filter(model=name)["attribute"])
            for grouping in self.plan.groupings:
                if grouping.attribute in attributes:
                    of_groups = of_model.regrouped(grouping.keys)
                    found = binned(of_groups, _BINS, strategy, self.audit.settings.level)
                    curves.append(self._shown(grouping.named(found), name, BIN_COLUMNS))
                    found = distribute_scores(of_groups, _BINS * 2, (0.0, 1.0))
                    distributions.append(
                        self._shown(grouping.named(found), name, DISTRIBUTION_COLUMNS)
                    )
        return _stacked(iter(curves)), _stacked(iter(distributions))

    def _equal_scores(self, rows: Rows) -> Iterator[pl.DataFrame]:
        """Compare the segments of each attribute with the others at equal scores."""
        counts = self.audit.segments.group_by("attribute").len()
        few = set(counts.filter(pl.col("len") <= _MOST)["attribute"]) - {OVERALL}
        level, adjust = self.audit.settings.level, self.audit.settings.adjust
        for name, of_model in self._of_models(rows):
            tables = [
                grouping.named(compared(of_model.regrouped(grouping.keys), level))
                for grouping in self.plan.groupings
                if grouping.attribute in few
            ]
            if tables:
                found = tested(pl.concat(tables), level, adjust, [AUDIT_KEYS[0]])
                yield self._shown(found, name, EQUAL_SCORE_COLUMNS)

    def _shown(self, found: pl.LazyFrame, model: str, columns: Sequence[str]) -> pl.DataFrame:
        """Name the score, in the order of the audit's segments."""
        table = _collect(found.select(*AUDIT_KEYS, pl.lit(model).alias(MODEL), *columns))
        order = self.audit.segments.select(ALL_KEYS)
        return order.join(table, on=ALL_KEYS, how="inner", nulls_equal=True, maintain_order="left")

    def _obstacle(self, design: object) -> str | None:
        """Say what keeps segments from being searched."""
        settings = self.audit.settings
        if settings.min_cell is not None:
            return "numbers of few rows could be computed from segments that overlap"
        if settings.several:
            return "there are several scores"
        if isinstance(design, Replicates):
            return "there are replicate weights"
        if isinstance(design, SurveyDesign) and design.lonely != "certainty":
            alone = design.strata.filter(pl.col(UNITS) == 1).select(pl.len())
            if collect(alone).item():
                return "a stratum has a single sampling unit"
        return None

    def _scores(self, tables: Any, label: Any, score: Any, others: Any) -> pl.DataFrame:
        """Test which score ranks better; of counts, of few persons or of one score nothing."""
        settings = self.audit.settings
        if not settings.several or settings.label is None or settings.min_cell is not None:
            return pl.DataFrame()
        parts = tables if isinstance(tables, list) else [tables]
        frame = pl.concat([part.lazy() for part in parts], how="diagonal_relaxed")
        others = others | {"level": settings.level, "adjust": settings.adjust}
        # A file may be gone since.
        with suppress(OSError):
            return _collect(compare(frame, label, score, **others))
        return pl.DataFrame()

    def _search(self, rows: Rows) -> pl.DataFrame | str:
        """Search for the segments that are surely worse; or say why not, if it could be."""
        settings = self.audit.settings
        if len(settings.attributes) == 1 or not (settings.decides or self._calibrated):
            return pl.DataFrame()
        if (obstacle := self._obstacle(rows.design)) is not None:
            return obstacle
        name = "brier_score"
        if settings.decides:
            of_labels = settings.labeled and settings.favorable != "rejected"
            name = "tpr" if of_labels else "selection_rate"
        metric = SEARCHED[name]
        worse = metric.worse_if(settings.favorable) if settings.decides else "higher"
        cells = _collect(cells_of(rows, metric, self.plan.choice))
        least = max(settings.min_rows, 1)
        for depth in range(_DEPTH, 0, -1):
            given = (
                metric,
                worse,
                rows.group_keys,
                settings.attributes,
                depth,
                least,
                _TOP,
            )
            try:
                found = Search(*given, settings.level, redundant=True).table(cells)
            except TooManySegmentsError:
                continue
            score = settings.score[0] if settings.score else None
            table = comparison_table(found.lazy(), rows, score, [*SEARCH_COLUMNS])
            segments = self.audit.segments.filter(pl.col("attribute") != OVERALL)
            known = segments.select(AUDIT_KEYS).unique().with_columns(named=True)
            marked = _collect(table).join(
                known,
                on=AUDIT_KEYS,
                how="left",
                nulls_equal=True,
                maintain_order="left",
            )
            return marked.with_columns(
                pl.col("named").fill_null(value=False), most_conditions=depth
            )
        return "there are too many segments"


def _stacked(tables: Iterator[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat([pl.DataFrame(), *tables], how="diagonal")


def _not_explored(reason: str | None) -> str:
    return f"Segments that were not named before were not searched: {reason}."


def sentences_on(audit: AuditTables, attribute: str) -> list[str]:
    """Say of an attribute what its gaps consist of, and where along the scores segments are off."""
    words, alpha, found = (
        Words.of(audit.settings),
        1 - audit.settings.level,
        audit.further(),
    )
    parts, ranges, equal = (
        table.filter(attribute=attribute).to_dicts() if table.height else []
        for table in (found.gap_parts, found.calibration, found.equal_scores)
    )
    split = [f"{words.model(row)}{row['sentence']}" for row in parts if row["sentence"]]
    # What holds for all is said once, after them.
    sentences = [text.removesuffix(f" {CANNOT_TELL}") for text in split]
    sentences += [CANNOT_TELL] * bool(split)
    known = [row for row in ranges if row["p_adjusted"] is not None]
    off = [row for row in known if row["p_adjusted"] <= alpha]
    sentences += [f"{words.model(row)}{_of_range(row)}" for row in off]
    if rest := len(known) - len(off):
        counted = many(rest, "other segment" if off else "segment")
        where = "all rows" if attribute == OVERALL else f"{counted} by {attribute}"
        sentences.append(f"No range of the scores of {where} is shown to be too high or too low.")
    differ = [row for row in equal if row["p_adjusted"] is not None and row["p_adjusted"] <= alpha]
    # Two segments that are each the other's rest are one comparison.
    if len({row["segment"] for row in equal}) == 2:  # noqa: PLR2004
        differ = [row for row in differ if row["segment"] == equal[0]["segment"]]
    sentences += [f"{words.model(row)}{_of_equal_scores(row, words)}" for row in differ]
    return sentences + [_NO_PROOF] * bool(differ)


def _of_range(row: Mapping[str, Any]) -> str:
    """Say where the scores of a segment are too high or too low, and by how much at least."""
    segment = segment_in_words(row["attribute"], row["segment"])
    of = "" if row["attribute"] == OVERALL else f" of {segment}"
    low, high = row["miscalibration_low"], row["miscalibration_high"]
    least = "by how much is uncertain"
    if low * high > 0:
        least = f"at least {size(min(abs(low), abs(high)))}"
    wrong = ""
    if row["n_impossible"]:
        wrong = f" {many(row['n_impossible'], 'row')} with a score of 0 or 1 did not come true."
    return (
        f"Between scores {row['from_score']:.2f} and {row['to_score']:.2f} the score{of} is "
        f"{size(row['miscalibration'])} points {row['direction']} ({least}).{wrong}"
    )


def _of_equal_scores(row: Mapping[str, Any], words: Words) -> str:
    """Say how the outcomes of a segment differ from those of others with equal scores."""
    segment = segment_in_words(row["attribute"], row["segment"])
    name = "mean_gap" if row["mean_gap_low"] * row["mean_gap_high"] > 0 else "gap"
    gap, low, high = (row[f"{name}{end}"] for end in ("", "_low", "_high"))
    where = "At equal scores"
    if name == "gap":
        where += f" between {row['from_score']:.2f} and {row['to_score']:.2f}"
    limits = "by how much is uncertain"
    if low * high > 0:
        limits = " to ".join(size(end) for end in sorted((abs(low), abs(high))))
    return (
        f"{where}, {segment} came out {words.positive} {size(gap)} points "
        f"{'more' if gap > 0 else 'less'} often than the others ({limits})."
    )


def exploration_sentences(audit: AuditTables) -> list[str]:
    """Say what a search found; nothing if there was none."""
    table = audit.further().exploration
    if table.is_empty():
        return []
    examined, several = table["n_examined"][0], len(audit.settings.attributes)
    most = _NUMBERS[min(several, table["most_conditions"][0]) - 1]
    if not examined:
        return ["No segment has enough rows to be compared."]
    first = f"{many(examined, 'combination')} of up to {most} of the {several} attributes "
    first += f"{verb(examined, 'was', 'were')} compared."
    shown = table.filter(pl.col("depth") > 0, pl.col("explained_by").is_null()).to_dicts()
    if not shown:
        return [first, f"Of {many(examined, 'segment')} none is surely worse."]
    explained = dict(table["explained_by"].value_counts().rows())
    told = [_of_segment(row, explained, examined) for row in shown[:_TOLD]]
    if more := len(shown) - len(told):
        told.append(f"{many(more, 'more segment')} {verb(more, 'is', 'are')} in the chart.")
    return [first, *told]


def _of_segment(row: Mapping[str, Any], explained: Mapping[str | None, int], examined: int) -> str:
    metric = SEARCHED[row["metric"]]
    own, other = row["value"], row["reference_value"]
    values = f"{100 * own:.0f}%, of the rest {100 * other:.0f}%"
    least, unit = min(abs(row["gap_low"]), abs(row["gap_high"])), " points"
    worse = "lower" if row["gap"] < 0 else "higher"
    least_text = f"{size(least)}{unit}"
    if not isinstance(metric, RateMetric):
        values, least_text = f"{own:.3f}, of the rest {other:.3f}", f"{least:.3f}"
    label, segment = metric.label, segment_in_words(row["attribute"], row["segment"])
    text = (
        f"{label[0].upper()}{label[1:]} of {segment} is {values}: surely at least {least_text} "
        f"{worse}, after counting all {examined:,}."
    )
    if row["named"]:
        text += " The audit names this segment above."
    others = explained.get(f"{row['attribute']} = {row['segment'] or MISSING}", 0)
    if others:
        text += f" {many(others, 'other')} {verb(others, 'is', 'are')} explained by it."
    return text
