"""References: what an audit compares the segments of each attribute with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

import polars as pl

from polars_wroc.groups.groupings import Grouping, named_segments
from polars_wroc.groups.read_reference import read_reference
from polars_wroc.groups.references import Reference, ReferenceGroup
from polars_wroc.inputs.arguments import WeightType, did_you_mean
from polars_wroc.inputs.rows import Rows
from polars_wroc.metrics.auc_variance import units_of

ReferenceKind: TypeAlias = Literal["rest", "overall", "best", "rest_pooled", "overall_pooled"]
AuditReference: TypeAlias = ReferenceKind | Mapping[str, Any]


@dataclass(frozen=True)
class AuditReferences:
    """A kind of reference, and the reference segments named for some attributes."""

    kind: ReferenceKind = "rest"
    named: Mapping[str, str] = field(default_factory=dict)

    @property
    def settings(self) -> str | dict[str, str]:
        """The argument, with the names of segments."""
        return dict(self.named) if self.named else self.kind

    @property
    def is_mutual(self) -> bool:
        """Whether each of two segments is the reference of the other, unless one is named."""
        return self.kind in ("rest", "overall", "rest_pooled")

    def without_references(self, gaps: pl.DataFrame) -> pl.DataFrame:
        """Drop the reference segments, which have no gap to themselves."""
        if self.kind == "best":
            gaps = gaps.filter(pl.col("auc").ne_missing(pl.col("auc_reference")))
        for attribute, segment in self.named.items():
            itself = pl.col("attribute").eq(attribute) & pl.col("segment").eq_missing(segment)
            gaps = gaps.filter(~itself)
        return gaps

    def check(self, segments: pl.DataFrame) -> None:
        """Check that the named segments have rows."""
        for attribute, segment in self.named.items():
            known = segments.filter(attribute=attribute)["segment"].unique(maintain_order=True)
            if segment not in known:
                msg = (
                    f"`reference` must name a segment by {attribute!r}, one of "
                    f"{known.drop_nulls().to_list()}; found {segment!r}"
                    f"{did_you_mean(segment, known.drop_nulls())}"
                )
                raise ValueError(msg)

    def of(
        self, segments: Rows, weight_type: WeightType, min_rows: int
    ) -> list[tuple[pl.Expr, Reference]]:
        """Pair each reference with the condition on the segments that it applies to."""
        kind = read_reference(self.kind, segments, weight_type, min_rows)
        if not self.named:
            return [(pl.lit(value=True), kind)]
        attribute, segment = (pl.col(name).cast(pl.String) for name in ("attribute", "segment"))
        is_named = attribute.is_in(list(self.named))
        is_reference = (segment == attribute.replace_strict(self.named, default=None)).fill_null(
            value=False
        )
        units = units_of(weight_type)
        return [
            (is_named, ReferenceGroup(segments.model_keys, units, lambda _: is_reference)),
            (~is_named, kind),
        ]


def read_references(
    reference: object, groupings: Sequence[Grouping], schema: pl.Schema
) -> AuditReferences:
    """Read a kind of reference, or a segment for each of some attributes."""
    if not isinstance(reference, Mapping):
        kinds: dict[object, ReferenceKind] = {kind: kind for kind in get_args(ReferenceKind)}
        if not isinstance(reference, str) or reference not in kinds:
            hint = did_you_mean(reference, get_args(ReferenceKind))
            msg = (
                f"`reference` must be one of {', '.join(repr(kind) for kind in kinds)} or map "
                f"attributes to segments; found {reference!r}{hint}"
            )
            raise ValueError(msg)
        return AuditReferences(kinds[reference])
    return AuditReferences(named=named_segments(reference, groupings, schema))
