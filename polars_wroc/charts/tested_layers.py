"""Marks of estimates that are tested: intervals and points that show what is significant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from polars_wroc.charts.interval_layers import REMARK, Estimate, text_column
from polars_wroc.charts.style import GREY
from polars_wroc.stats.multiple_tests import is_significant

# Columns of the drawn rows: the adjusted p-value, and what is said of the estimate.
P_ADJUSTED, VERDICT = "__p_adjusted", "__verdict"
SIGNIFICANT = "significant"
_NOT_SIGNIFICANT, _UNTESTED = "not significant", "not tested"
# Verdicts on gaps, those of `group_gaps`.
DIFFERENT, ALIKE, TOO_LITTLE = "different", "alike", "too little data"


def verdict(value: str, level: float) -> pl.Expr:
    """Say whether an estimate is significant; null where there is none."""
    significant = is_significant(pl.col(P_ADJUSTED), level)
    tested = pl.when(significant).then(pl.lit(SIGNIFICANT))
    said = tested.when(~significant).then(pl.lit(_NOT_SIGNIFICANT)).otherwise(pl.lit(_UNTESTED))
    return pl.when(pl.col(value).is_not_null()).then(said).alias(VERDICT)


def marks_by_verdict(
    interval: Any,
    point: Any,
    significant: Mapping[str, Any] | None = None,
    other: Mapping[str, Any] | None = None,
    *,
    marked: str = SIGNIFICANT,
) -> list[Any]:
    """Draw thick intervals and filled points where the verdict is ``marked``, else hollow ones.

    ``significant`` and ``other`` are further channels of these marks.
    """
    test = f"datum.{VERDICT} === '{marked}'"
    of_points, of_others = dict(significant or {}), dict(other or {})
    of_rules, of_thin = (
        {k: v for k, v in of.items() if k != "shape"} for of in (of_points, of_others)
    )
    return [
        interval.transform_filter(test).mark_rule(strokeWidth=3.5).encode(**of_rules),
        interval.transform_filter(f"!({test})").mark_rule(strokeWidth=1.5).encode(**of_thin),
        point.transform_filter(test)
        .mark_point(filled=True, size=120, opacity=1)
        .encode(**of_points),
        point.transform_filter(f"!({test})")
        .mark_point(filled=False, fill="white", size=70, opacity=1, strokeWidth=2)
        .encode(**of_others),
    ]


def zero_line(base: Any) -> Any:
    """Draw the line of no difference."""
    import altair as alt  # noqa: PLC0415  (two seconds that only a chart should cost)

    return base.mark_rule(color=GREY, aria=False).encode(alt.XDatum(0))


def remark_column(base: Any, text: str, y: dict[str, Any], shown: Estimate) -> Any:
    """Write a text right of the numbers of each row that has an estimate."""
    import altair as alt  # noqa: PLC0415

    defined = base.transform_filter(f"isValid(datum.{VERDICT})")
    return text_column(defined, shown.width + REMARK, alt.Text(f"{text}:N"), y)
