"""An audit with the words of its sentences, and the tone of each comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import polars as pl

from polars_wroc.audits.findings import add_tones
from polars_wroc.audits.say import ComparedRow
from polars_wroc.audits.tables import AuditTables
from polars_wroc.audits.words import Words
from polars_wroc.groups.comparisons import DECISION_METRICS, IMPACT_RATIO
from polars_wroc.inputs.columns import AUDIT_KEYS, MODEL, OVERALL

# An attribute, one of its groups, and a score.
Keys: TypeAlias = tuple[str, str | None, str | None]
# The tones of comparisons that differ and matter.
NOTABLE = ("worse", "better", "either")


@dataclass(frozen=True)
class TonedAudit:
    """An audit, its words, and its comparisons with their tones."""

    audit: AuditTables
    words: Words

    @classmethod
    def read(cls, audit: AuditTables) -> TonedAudit:
        """Return an audit with words from its settings, and whether scores share decisions."""
        settings = audit.settings
        can_share = settings.several and settings.selected is not None
        same = can_share and _are_same_for_all_scores(audit.table)
        return cls(audit, replace(Words.of(settings), same_decisions=same))

    @cached_property
    def table(self) -> pl.DataFrame:
        """The table of the audit with the tone of each comparison."""
        return add_tones(self.audit.table, self.audit.settings)

    @cached_property
    def findings(self) -> Sequence[ComparedRow]:
        """The comparisons that are reported, the most serious first.

        One of two mirror images is reported, and decisions that all scores share only once.
        """
        told = self.table.filter(pl.col("rank").is_not_null())
        if self.words.same_decisions:
            is_first = pl.col(MODEL) == self.audit.table[MODEL].first()
            told = told.filter(is_first | ~pl.col("metric").is_in(DECISION_METRICS))
        return told.sort("rank").to_dicts()

    @cached_property
    def groups(self) -> Sequence[ComparedRow]:
        """The findings on groups."""
        return [row for row in self.findings if row["attribute"] != OVERALL]

    @cached_property
    def notable(self) -> Sequence[ComparedRow]:
        """The findings on groups that differ and matter."""
        return [row for row in self.groups if row["tone"] in NOTABLE]

    @cached_property
    def _sides(self) -> Mapping[Keys, Mapping[str, str]]:
        """The tones of groups by metric, if worse or better, including mirror images."""
        sides: dict[Keys, dict[str, str]] = {}
        for row in self.table.filter(pl.col("tone").is_in(["worse", "better"])).to_dicts():
            sides.setdefault(find_segment_keys(row), {})[row["metric"]] = row["tone"]
        return sides

    def is_worse_off(self, row: ComparedRow) -> bool:
        """Return whether the group of a row is worse off: by impact ratio, or in all its gaps."""
        tones = self._sides.get(find_segment_keys(row), {})
        return IMPACT_RATIO in tones or {*tones.values()} == {"worse"}

    def is_mixed(self, row: ComparedRow) -> bool:
        """Return whether gaps in decisions on the group of a row go in both directions."""
        return {*self._sides.get(find_segment_keys(row), {}).values()} == {"worse", "better"}


def _are_same_for_all_scores(table: pl.DataFrame) -> bool:
    """Return whether all numbers of decisions are the same for all scores."""
    decisions = table.filter(pl.col("metric").is_in(DECISION_METRICS))
    numbers = decisions.select(MODEL, *AUDIT_KEYS, "metric", "n", "value", "gap", "ratio")
    first, *others = numbers.partition_by(MODEL, include_key=False, maintain_order=True)
    return all(other.equals(first) for other in others)


def find_segment_keys(row: ComparedRow) -> Keys:
    """Return the keys of the group and the score of a row."""
    return row["attribute"], row["segment"], row[MODEL]
