"""The summary of a bias audit that New York City's Local Law 144 asks employers to publish."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product, repeat
from pathlib import Path
from typing import Any

import polars as pl

from polars_wroc import checks
from polars_wroc.audits import table_pages
from polars_wroc.audits.hints import explain_median, unknown_hint
from polars_wroc.audits.page import write_tables_page
from polars_wroc.audits.table_pages import Page, Screen
from polars_wroc.audits.tables import now
from polars_wroc.audits.words import DASH, listed, many, verb
from polars_wroc.documents.blocks import Table
from polars_wroc.documents.table_layout import lay_out_columns
from polars_wroc.files import outputs
from polars_wroc.groups.categories import CROSSED
from polars_wroc.groups.comparisons import SMALL_SHARE, UNKNOWN_REASON, rated_ratios
from polars_wroc.groups.impact_ratios import MIN_SHARE, count_decisions, impact_ratios
from polars_wroc.inputs.columns import UNKNOWN_CATEGORY, Frequency, IntoColumn
from polars_wroc.inputs.decisions import DecisionThreshold, Unknown
from polars_wroc.inputs.expressions import named_columns
from polars_wroc.inputs.rows import IntoColumns, polars_frame
from polars_wroc.keywords import hint_keywords
from polars_wroc.names import unique_name
from polars_wroc.queries import collect_all

SUFFIXES = (".html", ".md", outputs.WORKBOOK, *outputs.TABLE_SUFFIXES)
_TITLE = "Bias audit of an automated employment decision tool: summary of results"
_RULE = "Rules of the City of New York, title 6, sections 5-301 to 5-303"
_CERTIFIES = (
    f"This summary has the numbers that the rule asks for ({_RULE}). It certifies nothing: the "
    "audit is that of the independent auditor who signs it. The rule sets no limit for impact "
    "ratios."
)
_SIGNATURE = "Independent auditor, name, date and signature: ____________________"
# What is counted and its rate, and how these and the ratios come about.
_SELECTED = "Selected", "Selection rate"
_SCORED = "Above the median", "Scoring rate"
_EXPLANATION = (
    "The {rate} of a category is the number of its individuals who {counted}, divided by the "
    "number who were assessed. The impact ratio is this rate divided by that of the category with "
    "the highest rate."
)
_COUNTED = ("were selected", "have a score above the median of all scores")


@dataclass(frozen=True, repr=False, eq=False)
class NewYorkSummary:
    """The result of `new_york_summary`, which displays and saves itself.

    Attributes
    ----------
    table
        One row per category of each attribute, then of all attributes crossed: ``attribute,
        segment`` (String; a null segment is the unknown category); ``n, n_selected`` (Int64),
        people assessed, and selected or scored above the median; ``rate, impact_ratio`` (Float64),
        the latter null for categories that are unknown or left out; ``share`` (Float64), of the
        people in known categories; and ``reason`` (String), why there is no impact ratio.
    n, n_missing
        People assessed, and people without a decision or score, who are in no other number.
    hints
        Sentences for the auditor about categories that may be unknown.
    source, distribution_date, audit_date, justification, title
        The arguments.
    """

    table: pl.DataFrame
    n: int
    n_missing: int
    attributes: Sequence[str]
    scored: bool
    source: str
    distribution_date: dt.date
    audit_date: dt.date
    justification: str | None
    title: str
    # About the median, for readers.
    remark: str
    hints: Sequence[str]
    # Which values of a column are decisions, for readers
    decisions: str = ""

    @property
    def page(self) -> Page:
        """Lay out the summary in the order of the rule."""
        unit = "score" if self.scored else "decision"
        facts = {
            "Date of the bias audit": f"{self.audit_date}",
            "Distribution date of the tool": f"{self.distribution_date}",
            "Source and explanation of the data": self.source,
            "Individuals assessed": f"{self.n:,}",
            "In an unknown category": "; ".join(
                f"{self._unknown(name):,} by {_name(name)}" for name in self._divisions
            )
            or "0",
        }
        if self.n_missing:
            facts["Left out"] = f"{self.n_missing:,} without a {unit}, who are in no number"
        rate = self._words[1].lower()
        explanation = _EXPLANATION.format(rate=rate, counted=_COUNTED[self.scored])
        nobody = "" if self.n else "Nobody was assessed, so there are no rates and no ratios."
        said = [text for text in (nobody, self.decisions, explanation, self.remark) if text]
        sections = [*map(self._section, self._divisions), *self._excluded()] if self.n else []
        return Page(self.title, facts, [], sections, [_CERTIFIES, _SIGNATURE], said)

    @property
    def _words(self) -> tuple[str, str]:
        return _SCORED if self.scored else _SELECTED

    @property
    def _divisions(self) -> list[str]:
        found: list[str] = self.table["attribute"].unique(maintain_order=True).to_list()
        return found

    def _unknown(self, attribute: str) -> int:
        unknown = self.table.filter(pl.col("reason") == UNKNOWN_REASON, attribute=attribute)
        return int(unknown["n"].sum())

    def _section(self, attribute: str) -> Table:
        """Lay out the categories as the examples of the rule do, with those that are left out."""
        rows = self._known.filter(attribute=attribute).to_dicts()
        names = [attribute] if attribute in self.attributes else self.attributes
        parts = self._parts() if len(names) > 1 else {}
        numbers = self._numbers(rows) | {"Impact ratio": _ratios(rows)}
        keys = {
            # An attribute may have any name.
            unique_name(name, numbers): [
                parts.get(row["segment"], _whole(row))[place] for row in rows
            ]
            for place, name in enumerate(names)
        }
        number = self._unknown(attribute)
        left_out = (
            f"{many(number, 'more individual')} {verb(number, 'is', 'are')} in an unknown category "
            f"by {_name(attribute)}, and not in the calculations above."
        )
        notes = [left_out] if number else []
        if any((row["reason"] or "").startswith(SMALL_SHARE) for row in rows):
            notes.append(f"{DASH} Left out of the impact ratios: see below.")
        return lay_out_columns(
            pl.DataFrame(keys | numbers),
            [*keys],
            essential=[*numbers],
            title=f"By {_name(attribute)}",
            note=" ".join(notes),
        )

    @property
    def _known(self) -> pl.DataFrame:
        return self.table.filter(pl.col("reason").ne_missing(UNKNOWN_REASON))

    def _numbers(self, rows: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
        selected, rate = self._words
        return {
            "Assessed": [row["n"] for row in rows],
            selected: [row["n_selected"] for row in rows],
            rate: [_percent(row["rate"]) for row in rows],
        }

    def _parts(self) -> dict[str, tuple[str, ...]]:
        """Name the categories of each attribute that a crossed one combines."""
        each = [self._known.filter(attribute=name)["segment"].to_list() for name in self.attributes]
        named: dict[str, list[tuple[str, ...]]] = {}
        for parts in product(*each):
            named.setdefault(", ".join(parts), []).append(parts)
        # Of names with commas several may give the same.
        return {name: found[0] for name, found in named.items() if len(found) == 1}

    def _excluded(self) -> list[Table]:
        """List the categories that are left out, of which the rule asks for number and rate."""
        rows = self.table.filter(pl.col("reason").str.starts_with(SMALL_SHARE)).to_dicts()
        if not rows:
            return []
        columns = {
            "Category": [f"{_name(row['attribute'])}: {row['segment']}" for row in rows],
            **self._numbers(rows),
            "Share": [_percent(row["share"]) for row in rows],
        }
        justified = self.justification or "____________________ (to be given by the auditor)"
        notes = [
            f"Each of these has a {rows[0]['reason']} of the data, and no impact ratio.",
            f"Justification of the independent auditor: {justified}",
        ]
        heading = "Categories left out of the impact ratios"
        table = pl.DataFrame(columns)
        note = " ".join(notes)
        return [
            lay_out_columns(table, ["Category"], essential=[*columns], title=heading, note=note)
        ]

    def __repr__(self) -> str:
        text = table_pages.in_text(self.page, Screen(shutil.get_terminal_size().columns))
        return "\n\n".join([text, *self.hints])

    def save(self, path: str | Path) -> None:
        """Write the summary in the format of the path's suffix.

        ``.html`` is one page to publish, which opens without a network and in word processors, and
        ``.md`` the same as Markdown; ``.xlsx`` has the facts and the ``table``; ``.csv``,
        ``.parquet`` and ``.json`` have the table. The file is written whole or not at all.
        """
        suffix = outputs.check_target(path, SUFFIXES)
        if suffix == outputs.WORKBOOK:
            facts = {**self.page.facts, "Justification": self.justification or ""}
            about = pl.DataFrame({"about": [*facts], "text": [*facts.values()]})
            outputs.save_workbook({"summary": about, "table": self.table}, path)
        elif suffix in (".html", ".md"):
            write = write_tables_page if suffix == ".html" else table_pages.in_markdown
            outputs.save_text(write(self.page), path)
        else:
            table = self.table
            if suffix == ".csv":
                # Else an empty cell.
                table = table.with_columns(pl.col("segment").fill_null(UNKNOWN_CATEGORY))
            outputs.save_table(table, path)


def _name(attribute: str) -> str:
    return listed(attribute.split(CROSSED))


def _whole(row: dict[str, Any]) -> tuple[str, ...]:
    """Return the name of a crossed category that may be of several combinations."""
    return row["segment"], *repeat("", row["segment"].count(", "))


def _percent(rate: float | None) -> str:
    return DASH if rate is None else f"{rate:.1%}"


def _ratios(rows: Sequence[dict[str, Any]]) -> list[str]:
    ratios = (row["impact_ratio"] for row in rows)
    return [DASH if ratio is None else f"{ratio:.3f}" for ratio in ratios]


@hint_keywords
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
    min_share: float = MIN_SHARE,
    justification: str | None = None,
    weight: Frequency | None = None,
    title: str | None = None,
) -> NewYorkSummary:
    """Return the summary of a bias audit that New York City's Local Law 144 asks for.

    Use it for automated employment decision tools: rates and impact ratios by sex, race and both,
    as computed by `impact_ratios`. The rule [1]_ sets no limit for ratios and requires an
    independent auditor: the summary certifies nothing.

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
        Instead of ``score``: a column or expression, Boolean or of 0 and 1, whether the person was
        selected.
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
        allows. 0 leaves out none.
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
        For an empty ``source``, an invalid date, a weight that is not a frequency, and as for
        `impact_ratios`.

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
    >>> summary.table.select("segment", "n", "n_selected", pl.col("impact_ratio").round(3))
    shape: (3, 4)
    ┌─────────┬─────┬────────────┬──────────────┐
    │ segment ┆ n   ┆ n_selected ┆ impact_ratio │
    │ ---     ┆ --- ┆ ---        ┆ ---          │
    │ str     ┆ i64 ┆ i64        ┆ f64          │
    ╞═════════╪═════╪════════════╪══════════════╡
    │ f       ┆ 8   ┆ 4          ┆ 0.714        │
    │ m       ┆ 10  ┆ 7          ┆ 1.0          │
    │ null    ┆ 1   ┆ 0          ┆ null         │
    └─────────┴─────┴────────────┴──────────────┘
    """
    checked = {"source": source, "justification": justification, "title": title}
    for name, text in checked.items():
        if text is not None or name == "source":
            _check_text(name, text)
    day = _date("distribution_date", distribution_date)
    audited = now().date() if audit_date is None else _date("audit_date", audit_date)
    if weight is not None and not isinstance(weight, Frequency):
        checks.reject_type("weight", "be counts of people, as in wroc.frequency('n')", weight)
    given = checks.given(score=score, selected=selected)
    if len(given) != 1:
        msg = f"`score` or `selected` must be given, one of them; found {checks.named(given)}"
        raise ValueError(msg)
    # The rule lets an auditor leave out no larger ones.
    min_share = checks.number("min_share", min_share, low=0.0, high=MIN_SHARE)
    # Read once for both tables.
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
    table = rated_ratios(found)
    return NewYorkSummary(
        _of_rule(table),
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
        unknown_hint(table, "list it in `unknown`"),
    )


def _of_rule(table: pl.DataFrame) -> pl.DataFrame:
    """Select what the rule asks for; a category that is left out has no ratio."""
    known = pl.col("reason").ne_missing(UNKNOWN_REASON)
    left_out = pl.col("reason").str.starts_with(SMALL_SHARE).fill_null(value=False)
    ratio = pl.when(~left_out).then("ratio")
    n = pl.col("n")
    total = n.filter(known).sum().over("attribute")
    return table.select(
        "attribute",
        "segment",
        "n",
        # Exact, as a rate is one number of people divided by another.
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
        msg = f"`{name}` must be a date such as 2026-01-15; found {checks.shown(value)}"
        raise ValueError(msg) from None
