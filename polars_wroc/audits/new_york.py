"""The summary of a bias audit that New York City's Local Law 144 asks employers to publish."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, TypeAlias

import polars as pl

from polars_wroc import checks
from polars_wroc.audits.hints import explain_median, hint_unknown
from polars_wroc.audits.new_york_result import NewYorkSummary
from polars_wroc.audits.tables import now
from polars_wroc.bounds import Between
from polars_wroc.calls import check_call
from polars_wroc.groups.comparisons import SMALL_SHARE, UNKNOWN_REASON, select_rated_ratios
from polars_wroc.groups.impact_ratios import MIN_SHARE, count_decisions, impact_ratios
from polars_wroc.inputs.columns import Frequency, IntoColumn
from polars_wroc.inputs.decisions import DecisionThreshold, Unknown
from polars_wroc.inputs.expressions import named_columns
from polars_wroc.inputs.rows import IntoColumns, polars_frame
from polars_wroc.queries import collect_all

_TITLE = "Bias audit of an automated employment decision tool: summary of results"

# An auditor may leave out no larger categories.
SmallShare: TypeAlias = Annotated[float, Between(0, MIN_SHARE)]


@check_call
def new_york_summary(
    frame: pl.DataFrame | pl.LazyFrame,
    score: IntoColumn | None = None,
    *,
    attributes: IntoColumns,
    selected: IntoColumn | None = None,
    source: str,
    distribution_date: str | dt.date,
    audit_date: str | dt.date | None = None,
    unknown: Unknown = "exclude",
    min_share: SmallShare = MIN_SHARE,
    justification: str | None = None,
    weight: Frequency | None = None,
    title: str | None = None,
) -> NewYorkSummary:
    """Return the summary of a bias audit that New York City's Local Law 144 asks for.

    The rule [1]_ sets no limit for ratios and requires an independent auditor: the summary
    certifies nothing.

    The main columns of its ``table`` are:

    - ``attribute, segment``: the category; a null segment is the unknown category;
    - ``n, n_selected``: people assessed, and selected or scored above the median;
    - ``rate, impact_ratio``: their selection rate, and its ratio to the highest;
    - ``reason``: why there is no impact ratio.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame, one row per person who was assessed; a LazyFrame is collected.
    score
        Column or expression of the tool's score: people above the median of all count as selected.
    attributes
        Columns or expressions of the categories, for example ``["sex", "race"]``. Two or more are
        also crossed.
    selected
        Instead of ``score``: a column or expression, Boolean or of 0 and 1.
    source
        Where the data come from and what they are, in a sentence or more; this is published.
    distribution_date
        When use of the tool began: a date, or text like ``"2026-01-15"``.
    audit_date
        When the audit was made; today by default.
    unknown
        Which categories are unknown besides null, as in `impact_ratios`: ``["Not stated"]``.
    min_share
        Categories with a smaller share of the people get no impact ratio; at most 0.02, as the rule
        allows.
    justification
        Why they are left out; the rule asks the auditor for it.
    weight
        A `frequency`, if a row stands for several people.
    title
        Title of the summary, for example the name of the tool.

    Returns
    -------
    NewYorkSummary
        With a ``table`` of all categories, and ``save("summary.html")``.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `impact_ratios`; also for an empty ``source`` or an invalid date.

    References
    ----------
    .. [1] Rules of the City of New York, title 6, sections 5-300 to 5-304.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> people = pl.DataFrame(
    ...     {"sex": ["f"] * 8 + ["m"] * 10 + [None], "hired": [1, 0] * 5 + [1, 1, 0] * 3}
    ... )
    >>> summary = wroc.new_york_summary(
    ...     people,
    ...     attributes="sex",
    ...     selected=pl.col("hired") == 1,
    ...     source="All applications of 2025, as decided by the tool.",
    ...     distribution_date="2026-01-15",
    ... )
    >>> summary.table.select("segment", "n", pl.col("impact_ratio").round(3))
    shape: (3, 3)
    ┌─────────┬─────┬──────────────┐
    │ segment ┆ n   ┆ impact_ratio │
    │ ---     ┆ --- ┆ ---          │
    │ str     ┆ i64 ┆ f64          │
    ╞═════════╪═════╪══════════════╡
    │ f       ┆ 8   ┆ 0.714        │
    │ m       ┆ 10  ┆ 1.0          │
    │ null    ┆ 1   ┆ null         │
    └─────────┴─────┴──────────────┘
    """
    checked = {"source": source, "justification": justification, "title": title}
    for name, text in checked.items():
        if text is not None or name == "source":
            _check_text(name, text)
    day = _date("distribution_date", distribution_date)
    audited = now().date() if audit_date is None else _date("audit_date", audit_date)
    if weight is not None and not isinstance(weight, Frequency):
        checks.reject_type("weight", "be counts of people, as in wroc.frequency('n')", weight)
    given = checks.list_given(score=score, selected=selected)
    if len(given) != 1:
        rule = "exactly one of `score` and `selected` must be given"
        msg = f"{rule}; found {checks.quote_names(given)}"
        raise ValueError(msg)
    # Read only once for both tables.
    plan = polars_frame(frame).lazy().cache()
    names = [*named_columns("attributes", attributes, plan)]
    if score is not None and len(named_columns("score", score, plan)) > 1:
        checks.reject("score", "be one column", "several")
    threshold: DecisionThreshold | None = None if score is None else "median"
    ratios = impact_ratios(
        plan,
        score,
        attributes=attributes,
        intersections=len(names) > 1,
        favorable="selected",
        threshold=threshold,
        selected=selected,
        unknown=unknown,
        min_share=min_share,
        weight=weight,
    )
    decisions = count_decisions(plan, score, selected=selected, threshold=threshold, weight=weight)
    found, counts = collect_all([ratios, decisions])
    table = select_rated_ratios(found)
    return NewYorkSummary(
        _select_asked_columns(table),
        int(table.filter(attribute=names[0])["n"].sum()),
        int(counts["missing"].sum()),
        names,
        score is not None,
        source,
        day,
        audited,
        justification,
        title or _TITLE,
        explain_median(counts) if threshold else "",
        hint_unknown(table, "list it in `unknown`"),
    )


def _select_asked_columns(table: pl.DataFrame) -> pl.DataFrame:
    """Return the columns that the rule asks for; a category that is left out has no ratio."""
    known = pl.col("reason").ne_missing(UNKNOWN_REASON)
    left_out = pl.col("reason").str.starts_with(SMALL_SHARE).fill_null(value=False)
    ratio = pl.when(~left_out).then("ratio")
    n = pl.col("n")
    total = n.filter(known).sum().over("attribute")
    return table.select(
        "attribute",
        "segment",
        "n",
        # Exact, since a rate is one number of people divided by another.
        n_selected=(pl.col("rate") * n).round().cast(pl.Int64).fill_null(0),
        rate="rate",
        impact_ratio=ratio,
        share=pl.when(known, total > 0).then(n / total),
        reason=pl.when(ratio.is_null()).then("reason"),
    )


def _check_text(name: str, text: object) -> None:
    if not isinstance(text, str) or not text.strip():
        rule = "say where the data come from" if name == "source" else "be text"
        checks.reject_type(name, rule, text)
    checks.check_text(name, text)


def _date(name: str, value: object) -> dt.date:
    try:
        if isinstance(value, dt.datetime):
            return value.date()
        return value if isinstance(value, dt.date) else dt.date.fromisoformat(str(value))
    except ValueError:
        msg = f"`{name}` must be a date, for example 2026-01-15; found {checks.show_value(value)}"
        raise ValueError(msg) from None
