"""The details of reports: calibration along the scores, and other segments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import polars as pl
from polars import selectors

from polars_wroc.arrays import Array
from polars_wroc.audits.audit_rows import AuditRows
from polars_wroc.audits.tables import (
    ALL_KEYS,
    AuditPlan,
    AuditTables,
    Further,
)
from polars_wroc.curves.calibration_curve import BIN_TYPES, BinOptions, measure_bins
from polars_wroc.curves.score_distribution import DISTRIBUTION_TYPES, distribute_scores
from polars_wroc.groups.calibration_test import CalibrationTest, measure_calibration_ranges
from polars_wroc.groups.categories import Grouping
from polars_wroc.groups.crossed_cells import sum_crossed_cells
from polars_wroc.groups.group_columns import find_decisions
from polars_wroc.groups.segment_search import SearchRules, SegmentSearch, TooManySegmentsError
from polars_wroc.groups.worst_segments import SEARCHED
from polars_wroc.inputs.columns import AUDIT_KEYS, MODEL, OVERALL
from polars_wroc.looks import Looks
from polars_wroc.metrics.calibration import CALIBRATION_ERROR
from polars_wroc.metrics.compare import compare
from polars_wroc.metrics.mean_sums import read_precision
from polars_wroc.metrics.segments import Decisions
from polars_wroc.queries import collect
from polars_wroc.rows import Rows, Sampling, SegmentColumns
from polars_wroc.stats.levels import Level
from polars_wroc.steps import SegmentRows

# The most conditions of a segment in the search, and the most segments it returns.
_DEPTH, _TOP = 3, 10
# Bins of a calibration curve, and of a distribution of scores.
_BINS, _FINE_BINS = 5, 20
# Attributes with more segments are not compared at equal scores.
_MOST = 50
# With more rows, only the search for segments is made.
_MOST_ROWS = 2_000_000
_collect = partial(collect, reproducible=True)


@dataclass(eq=False)
class CloserLook:
    """Looks at the rows of an audit a second time, once, when the details are asked for.

    A copy by `pickle` has the tables and no rows.
    """

    audit: AuditTables
    plan: AuditPlan
    rows: AuditRows | None
    # The source of the rows: tables, label, scores and other arguments of `compare`.
    given: Sequence[Any]

    def __call__(self) -> Further:
        """Return the tables of a closer look."""
        return self.tables

    def __getstate__(self) -> dict[str, Further]:
        """Keep no rows."""
        return {"tables": self.tables}

    @cached_property
    @np.errstate(all="ignore")
    def tables(self) -> Further:
        """The tables of a closer look."""
        settings = self.audit.settings
        arrays = {} if self.rows is None else self.rows.arrays
        precision = {} if self.rows is None else read_precision(self.rows.columns[0])
        has_rows, self.rows = self.rows is not None, None
        reason = None
        if isinstance(settings.level, Looks):
            reason = "its limits would hold at one look only"
        elif not has_rows:
            reason = "there are more rows than fit into memory"
        elif settings.bins is not None:
            reason = "scores were counted in bins"
        given, self.given = self.given, ()
        if reason is not None:
            return Further(left_out=[_not_explored(reason)])
        further = Further(scores=self._scores(*given))
        left_out, found = list[str](), self._search(arrays, precision)
        if isinstance(found, str):
            left_out, found = [_not_explored(found)], pl.DataFrame()
        further = further._replace(exploration=found, left_out=left_out)
        if max(len(rows.weight) for rows in arrays.values()) > _MOST_ROWS:
            # The rest would take several times the time and the memory of the audit.
            left_out.append(
                "Calibration along the scores is left out: there are more than "
                f"{_MOST_ROWS:,} rows."
            )
            return further
        if settings.min_cell is not None:
            # Ranges of scores end at the scores of persons.
            return further
        curves, distributions = self._curves(arrays)
        ranges = self._test_divisions(arrays, self.plan.groupings, equal_scores=False)
        equal = self._test_divisions(arrays, self._compared_divisions, equal_scores=True)
        return further._replace(
            calibration=_stack(ranges),
            equal_scores=_stack(equal),
            calibration_curves=curves,
            distributions=distributions,
        )

    @property
    def _calibrated_scores(self) -> list[str]:
        """The scores that are from 0 to 1."""
        table = self.audit.table.filter(metric=CALIBRATION_ERROR)
        names: list[str] = table[MODEL].unique(maintain_order=True).to_list()
        return names

    def _test_divisions(
        self, arrays: Mapping[str, Rows], divisions: Sequence[Grouping], *, equal_scores: bool
    ) -> Iterator[pl.DataFrame]:
        """Yield the ranges of scores of segments that are farthest off, by calibrated score."""
        settings = self.audit.settings
        test = CalibrationTest(settings.confidence, settings.adjust, equal_scores=equal_scores)
        for name in self._calibrated_scores if divisions else []:
            measured = measure_calibration_ranges(arrays[name], name, divisions, test)
            finished = test.finish(measured).fill_nan(None)
            cast = finished.lazy().cast(pl.Schema(test.types))
            yield self._order_segments(cast, name, [*test.types])

    def _curves(self, arrays: Mapping[str, Rows]) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the data of charts of attributes: calibration, or else distributions of scores."""
        curves, distributions = list[pl.DataFrame](), list[pl.DataFrame]()
        level, bins = Level.of(self.audit.settings.level), BinOptions(_BINS, "uniform")
        for name in self.audit.settings.score if self.audit.settings.labeled else []:
            rows = arrays[name]
            score = rows.scores[name][rows.complete(name)]
            # Infinite scores are in no bin.
            has_bins = bool(score.size) and bool(np.isfinite(score).all())
            for grouping in self._charted_divisions:
                segments = rows.segments(grouping.keys, name)
                if name in self._calibrated_scores:
                    curve = measure_bins(rows, segments, bins, level)
                    curves.append(self._name_segments(grouping, segments, curve, BIN_TYPES, name))
                elif has_bins:
                    histogram = distribute_scores(segments, _FINE_BINS, _find_ends(score))
                    distributions.append(
                        self._name_segments(grouping, segments, histogram, DISTRIBUTION_TYPES, name)
                    )
        return _stack(iter(curves)), _stack(iter(distributions))

    @property
    def _charted_divisions(self) -> list[Grouping]:
        """The divisions by one attribute, which have charts."""
        return [each for each in self.plan.groupings if len(each.keys) == 1]

    def _name_segments(
        self,
        grouping: Grouping,
        segments: SegmentRows,
        found: SegmentColumns,
        types: Mapping[str, Any],
        model: str,
    ) -> pl.DataFrame:
        """Return columns of the segments of a division as a table with their names."""
        order = np.argsort(found.segment, kind="stable")
        table = pl.DataFrame(dict(found.columns))[order].fill_nan(None).cast(pl.Schema(types))
        keys = segments.segments
        if keys.width:
            table = keys[found.segment[order]].hstack(table)
        return self._order_segments(grouping.name_keys(table.lazy()), model, [*types])

    @property
    def _compared_divisions(self) -> list[Grouping]:
        """The divisions whose segments are compared at equal scores."""
        counts = self.audit.segments.group_by("attribute").len()
        few = set(counts.filter(pl.col("len") <= _MOST)["attribute"]) - {OVERALL}
        return [division for division in self.plan.groupings if division.attribute in few]

    def _order_segments(
        self, found: pl.LazyFrame, model: str, columns: Sequence[str]
    ) -> pl.DataFrame:
        """Return a table with the score's name, in the order of the audit's segments."""
        table = _collect(found.select(*AUDIT_KEYS, pl.lit(model).alias(MODEL), *columns))
        order = self.audit.segments.select(ALL_KEYS)
        return order.join(table, on=ALL_KEYS, how="inner", nulls_equal=True, maintain_order="left")

    def _obstacle(self, sample: Sampling | None) -> str | None:
        """Return what keeps segments from being searched, if anything does."""
        settings = self.audit.settings
        if settings.min_cell is not None:
            return "numbers of few rows could be computed from segments that overlap"
        if settings.several:
            return "there are several scores"
        if sample is not None and sample.replicates is not None:
            return "there are replicate weights"
        if sample is not None and sample.lonely != "certainty" and (sample.size == 1).any():
            return "a stratum has a single sampling unit"
        return None

    def _scores(self, tables: Any, label: Any, score: Any, others: Any) -> pl.DataFrame:
        """Return tests of which score ranks better, if there are several scores of rows."""
        settings = self.audit.settings
        if not settings.several or settings.label is None or settings.min_cell is not None:
            return pl.DataFrame()
        parts = tables if isinstance(tables, list) else [tables]
        frame = pl.concat([part.lazy() for part in parts], how="diagonal_relaxed")
        others = others | {"level": settings.level, "adjust": settings.adjust}
        # A file may have been deleted since.
        with suppress(OSError):
            return _collect(compare(frame, label, score, **others))
        return pl.DataFrame()

    def _search(
        self, arrays: Mapping[str, Rows], precision: Mapping[str, float]
    ) -> pl.DataFrame | str:
        """Return segments that are significantly worse, or why they were not searched."""
        settings = self.audit.settings
        if len(settings.attributes) == 1 or not (settings.decides or self._calibrated_scores):
            return pl.DataFrame()
        model, rows = next(iter(arrays.items()))
        if (obstacle := self._obstacle(rows.sample)) is not None:
            return obstacle
        name = "brier_score"
        if settings.decides:
            of_labels = settings.labeled and settings.favorable != "rejected"
            name = "tpr" if of_labels else "selection_rate"
        metric = SEARCHED[name]
        choice = (
            Decisions(recorded=True)
            if self.plan.settings.has_recorded_decisions
            else self.plan.choice
        )
        decisions = find_decisions(rows, model, choice) if settings.decides else None
        keys = rows.keys.columns
        cells = sum_crossed_cells(rows, keys, model, metric, decisions, precision[model])
        rules = SearchRules(
            metric,
            metric.worse_if(settings.favorable) if settings.decides else "higher",
            settings.attributes,
            _DEPTH,
            max(settings.min_rows, 1),
            _TOP,
            settings.confidence,
            redundant=True,
        )
        for depth in range(_DEPTH, 0, -1):
            try:
                search = SegmentSearch(cells, replace(rules, depth=depth), rows.sample)
            except TooManySegmentsError:
                continue
            return self._mark_named(search.table(), depth)
        return "there are too many segments"

    def _mark_named(self, found: pl.DataFrame, depth: int) -> pl.DataFrame:
        """Return the segments that were found, and whether the audit names them."""
        settings = self.audit.settings
        score = settings.score[0] if settings.score else None
        segments = self.audit.segments.filter(pl.col("attribute") != OVERALL)
        known = segments.select(AUDIT_KEYS).unique().with_columns(named=True)
        marked = found.join(
            known, on=AUDIT_KEYS, how="left", nulls_equal=True, maintain_order="left"
        )
        return marked.with_columns(
            pl.lit(score, pl.String).alias(MODEL),
            pl.col("named").fill_null(value=False),
            selectors.float().fill_nan(None),
            most_conditions=depth,
        )


def _find_ends(score: Array) -> tuple[float, float]:
    """Return the least and the greatest score, or ends around the only one."""
    low, high = float(score.min()), float(score.max())
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def _stack(tables: Iterator[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat([pl.DataFrame(), *tables], how="diagonal")


def _not_explored(reason: str | None) -> str:
    return f"Other subgroups were not searched for differences, because {reason}."
