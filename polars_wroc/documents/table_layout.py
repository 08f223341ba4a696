"""Lay out a DataFrame as a table for readers: keys, estimates with their limits, and verdicts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import polars as pl

from polars_wroc.documents.blocks import (
    TONE_SIGNS,
    Cell,
    Column,
    GivesUp,
    Narrowing,
    Row,
    Table,
    Tone,
)
from polars_wroc.documents.numbers import (
    COMPARED_COLUMNS,
    COUNT,
    CUT,
    DASH,
    DIFFERENCE,
    GAP_COLUMNS,
    PLAIN,
    POINTS,
    SHARE,
    VALUE_COLUMNS,
    NumberForm,
    column_form,
    compared_form,
    gap_form,
    metric_label,
    value_form,
    write_number,
    write_p_value,
)
from polars_wroc.groups.comparisons import (
    AT_LEAST_FOUR_FIFTHS,
    BELOW_FOUR_FIFTHS,
    CHANGED_METRICS,
    CLEARED,
    COMPARISON_SCHEMA,
    FAIRNESS,
    IMPACT_RATES,
    IMPACT_RATIO,
    METRICS,
    TARGET,
    put_rates_for_values,
)
from polars_wroc.inputs.columns import MISSING, MODEL, OVERALL, UNKNOWN_CATEGORY
from polars_wroc.metrics.registry import CURVE_METRICS
from polars_wroc.names import show_name
from polars_wroc.stats.families import DIFFERENT, INCONCLUSIVE

_Record: TypeAlias = Mapping[str, Any]

# Values that are neither texts nor numbers are cut to this many letters. Reasons longer than any
# verdict are below the table.
_MOST_LETTERS, _LONGEST_REASON = 200, len(AT_LEAST_FOUR_FIFTHS)
# More rows than these are counted, not named, below a table.
_MOST_NAMED = 5
# The fewest letters of a number with the name of a group: 55.8% (ab…yz).
_LEAST_NAMED = 14
# Columns for statisticians, or that another column summarizes, after columns that identify a table
# of this package; other tables show columns of these names.
_HIDDEN: tuple[tuple[set[str], re.Pattern[str]], ...] = (
    (
        {"metric", "reference", "gap"},
        re.compile(
            r"reason|n_reference|detectable|critical|depth|n_examined|n_worse|rank|sentence"
            r"|direction|reference_rate.*"
        ),
    ),
    (
        {"from_score", "to_score", "p_value"},
        re.compile("reason|n_reference|direction|effective_steps|share_compared|n_blocks"),
    ),
    ({"measure", "value"}, re.compile("reason")),
    ({"threshold", "tp", "fp", "fn", "tn"}, re.compile("reason")),
    ({"fpr", "tpr", "tpr_low", "tpr_high"}, re.compile("one_sided")),
    ({"auc", "auc_low", "auc_high"}, re.compile("ci_method|ci_note")),
    ({"xauc", "xauc_low", "xauc_high"}, re.compile("ci_method")),
    ({"n_pos", "n_neg", "w_pos", "w_neg"}, re.compile(r"w[23]_(pos|neg)")),
)
# Counts that have no column if they are 0 in all rows.
_COUNTS_OF_FAULTS = ("n_missing", "n_impossible", "n_extreme", "inverted")
# Counts that come first; the first of them ends the keys.
_FIRST_COUNTS = ("n", "n_pos", "n_neg", "n_missing")
_WEIGHTS = re.compile(r"tp|fp|fn|tn|weight|w_.*")
# Columns of texts in tables of this package.
_TEXTS = ("attribute", "segment", MODEL, "metric", "measure", "reference", "verdict", "reason")
# Columns of names that are written in words.
_NAMES = ("metric", "measure", "target")
# The value of a group in rows of a fairness criterion, which is a difference or a ratio.
_GROUP_VALUE = "group_value"
_COMPARED = (_GROUP_VALUE, "reference_value")
# Criteria that take the worse of two rates, which are based on different rows.
_TWO_RATES = {name for name, criterion in FAIRNESS.items() if len(criterion.compares) > 1}
_RANGES = {"score_min": "score_max", "from_score": "to_score"}
_HEADINGS = {
    "n_pos": "positives",
    "n_neg": "negatives",
    "w_pos": "weight of positives",
    "w_neg": "weight of negatives",
    "n_eff_pos": "effective positives",
    "n_eff_neg": "effective negatives",
    "n_pos_expected": "expected positives",
    "n_neg_expected": "expected negatives",
    "n_gained": "newly selected",
    "n_lost": "newly rejected",
    "p_value": "p",
    "p_adjusted": "p, adjusted",
    "verdict": "result",
    "gap": "difference",
    _GROUP_VALUE: "this group",
    "score_min": "scores",
    "from_score": "scores",
}
_KEY_HEADINGS = {MODEL: "score", "reference": "other score"}
# The headings of comparisons with these references.
_REFERENCES = {"rest": "others", OVERALL: "all rows", TARGET: "target", "before": "before"}
# Columns that comparisons lose first in a narrow terminal; fairness criteria name both groups
# anyway.
_NARROWING: tuple[tuple[str, GivesUp], ...] = (
    ("value", "limits"),
    ("n", "place"),
    ("p_value", "place"),
    ("p_adjusted", "place"),
    ("reference_value", "place"),
)
_NARROWING_OF_FAIRNESS: tuple[tuple[str, GivesUp], ...] = (("n", "place"), ("value", "limits"))
_TONES: dict[str, Tone] = {
    DIFFERENT: "either",
    BELOW_FOUR_FIFTHS: "worse",
    "worse": "worse",
    "better": "better",
    **dict.fromkeys((*CLEARED, "no worse"), "alike"),
}
# Tones with a sign before gaps.
_SIGNED_TONES: tuple[Tone, ...] = ("worse", "better", "either")


def lay_out(frame: pl.DataFrame, *, rows: int | None = None, note: str = "") -> Table:
    """Return the layout of the first rows of a table, from this package or not."""
    table = _name_fairness(_join_impact(_read_texts(frame)))
    layout = _Layout(table)
    records = (table if rows is None else table.head(rows)).to_dicts()
    return Table(
        layout.columns,
        [*layout.write_rows(records)],
        note=note,
        remarks=[*layout.name_undefined(), *layout.explain(records)],
        narrowing=layout.narrowing,
    )


def lay_out_columns(
    frame: pl.DataFrame,
    keys: Sequence[str],
    *,
    essential: Sequence[str] = (),
    rows: int | None = None,
    title: str = "",
    note: str = "",
) -> Table:
    """Return the layout of the first rows of a table with all columns by name, keys first.

    The keys, and the columns that are ``essential``, are always shown.
    """
    shown = frame if rows is None else frame.head(rows)
    names = [*keys, *(name for name in frame.columns if name not in keys)]
    texts = {name: write_column(shown[name], is_key=name in keys) for name in names}
    columns = []
    for name in names:
        style = "" if _is_of_numbers(shown[name], texts[name]) else "left"
        style = "name" if name in keys else style
        columns.append(Column(name, style=style, essential=name in (*keys, *essential)))
    cells = [[_cell_of_text(name, text) for text in texts[name]] for name in names[1:]]
    firsts = texts[names[0]] if names else []
    # Without other columns, rows have no cells.
    others = [*zip(*cells, strict=True)] if cells else [()] * len(firsts)
    lines = [Row(name, row) for name, row in zip(firsts, others, strict=True)]
    return Table(columns or [Column("")], lines, title=title, note=note)


# A number with optional sign and unit, or a dash.
_NUMBER = r"[<+\-\N{MINUS SIGN}]?[\d,]*\.?\d+(?:e[+-\N{MINUS SIGN}]?\d+)?%?|[-\N{EN DASH}]"
_NUMBERS = re.compile(rf"(?:{_NUMBER})(?: to (?:{_NUMBER}))?")


def _is_of_numbers(column: pl.Series, texts: Sequence[str]) -> bool:
    """Return whether a column is aligned as numbers: numeric, or texts that are all numbers."""
    is_text = column.dtype == pl.String
    are_numbers = all(_NUMBERS.fullmatch(text.strip()) for text in texts if text)
    return column.dtype.is_numeric() or (is_text and are_numbers)


def _cell_of_text(name: str, text: str) -> Cell:
    """Return the cell of a text, with the tone of a verdict or of a sign before gaps."""
    if name not in ("gaps", "verdict"):
        return Cell(text)
    tones = [tone for tone in _SIGNED_TONES if text.startswith(TONE_SIGNS[tone])]
    tones += [tone for words, tone in _TONES.items() if text.startswith(words)]
    return Cell(text, tone=next(iter(tones), ""))


# The beginnings of columns of differences, which have a sign.
_SIGNED = ("gap", "change", "mean_calibration_error")


def write_column(column: pl.Series, *, is_key: bool = False) -> list[str]:
    """Return the values of a column as texts, in plain numbers; null is empty."""
    form = COUNT if is_whole(column) else PLAIN
    if column.name.startswith(_SIGNED) and column.dtype.is_float():
        form = DIFFERENCE
    if column.name.startswith("p_") and column.dtype.is_float():
        return [write_p_value(p) for p in column]
    write = _write_key_value if is_key else write_value
    return ["" if value is None else write(value, form) for value in column]


def _write_key_value(value: object, form: NumberForm = PLAIN) -> str:
    """Return a value that names rows; whole numbers, for example years, have no commas."""
    if isinstance(value, str):
        return show_name(value)
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if is_number else write_value(value, form)


def is_whole(column: pl.Series) -> bool:
    """Return whether a column of floats holds counts, which are floats if weighted."""
    if not column.dtype.is_float():
        return False
    known = column.drop_nulls()
    # 0 and 1 are also numbers of rows, in the cells of a confusion matrix.
    is_count = bool(_WEIGHTS.fullmatch(column.name)) or bool((known.abs() > 1).any())
    return is_count and bool((known.is_finite() & (known == known.round())).all())


def write_value(value: object, form: NumberForm = PLAIN) -> str:
    """Return a value of any type as text; floats in a form."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return write_number(value, ",d")
    if isinstance(value, float):
        return form.write(value)
    if isinstance(value, pl.Series | list | tuple):
        return ", ".join(write_value(one, form) for one in value)
    text = str(value)
    return text if isinstance(value, str) else text[:_MOST_LETTERS]


def _read_texts(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a frame with text columns cast to text, if they are texts in this package."""
    others = [
        frame[name] for name in _TEXTS if name in frame.columns and frame.schema[name] != pl.String
    ]
    return frame.with_columns(
        pl.Series(one.name, [None if value is None else str(value) for value in one], pl.String)
        for one in others
    )


def _is_comparison(frame: pl.DataFrame) -> bool:
    """Return whether a table has the columns of comparisons of groups."""
    return COMPARISON_SCHEMA.items() <= frame.schema.items()


def _join_impact(frame: pl.DataFrame) -> pl.DataFrame:
    """Return impact ratios beside the rates of groups, if the table has nothing else."""
    if not _is_comparison(frame):
        return frame
    metrics = {*frame["metric"]}
    if IMPACT_RATIO not in metrics or not metrics <= {IMPACT_RATIO, *IMPACT_RATES}:
        return frame
    rates = [name for name in IMPACT_RATES if name in metrics]
    rated = put_rates_for_values(frame).drop("rate", "rate_low", "rate_high")
    return rated.with_columns(metric=pl.lit(rates[0] if rates else IMPACT_RATES[0]))


def _name_fairness(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a table in which the value of fairness criteria is their difference or ratio.

    The value of the group gets a column of its own.
    """
    is_fairness = pl.col("metric").is_in([*FAIRNESS])
    if not _is_comparison(frame) or not frame.select(is_fairness.any()).item():
        return frame
    ends = ("", "_low", "_high")
    named = {f"value{end}": pl.coalesce(f"gap{end}", f"ratio{end}") for end in ends}
    said = [f"{name}{end}" for name in ("gap", "ratio") for end in ends]
    group = frame.select(pl.when(is_fairness).then("value")).to_series().alias(_GROUP_VALUE)
    place = frame.columns.index("reference_value")
    return frame.with_columns(
        *(
            pl.when(is_fairness).then(new).otherwise(name).alias(name)
            for name, new in named.items()
        ),
        *(pl.when(~is_fairness).then(name).alias(name) for name in said),
    ).insert_column(place, group)


def _write_result(verdict: str | None, reason: str | None) -> Cell:
    """Return a verdict, or why there is none, unless that would take the space of numbers."""
    if verdict is not None:
        return Cell(verdict, tone=_TONES.get(verdict, ""))
    return Cell(reason if reason and len(reason) <= _LONGEST_REASON else DASH)


def _write_sentence(text: str) -> str:
    """Return a text as a sentence."""
    return f"{text[:1].upper()}{text[1:]}."


@dataclass(frozen=True)
class _Layout:
    """The layout of a table: its visible columns, their order, and the forms of numbers."""

    frame: pl.DataFrame

    @cached_property
    def keys(self) -> list[str]:
        """Columns that identify rows.

        These are the columns before the first float column or leading count, and all temporal
        columns.
        """
        names = list[str]()
        for name, dtype in self.frame.schema.items():
            if dtype.is_float() or name in _FIRST_COUNTS:
                break
            names.append(name)
        names += [
            name
            for name, dtype in self.frame.schema.items()
            if dtype.is_temporal() and name not in names
        ]
        statements = ["verdict"] if self.is_of_pairs else ["verdict", "reference"]
        names = [
            name
            for name in names
            if not self._is_empty(name) and name not in (*statements, *self._ranges)
        ]
        names = [name for name in names if not self._is_said_once(name)]
        if "segment" not in names:
            return names
        # Segments name the rows; attributes are above them or in the heading.
        names.remove("segment")
        if "attribute" in names and (self.is_grouped or len(self.attributes) <= 1):
            names.remove("attribute")
        return ["segment", *names]

    @cached_property
    def numbers(self) -> list[str]:
        """The columns of estimates and counts: rows first, verdicts after their numbers."""
        names = [
            name
            for name, dtype in self.frame.schema.items()
            if self._is_shown(name)
            and name not in self.keys
            and (dtype.is_numeric() or name == "verdict")
            and not self._is_limit(name)
            and not (name == "p_value" and self._has_adjusted)
        ]
        first = [name for name in _FIRST_COUNTS if name in names]
        names = [name for name in names if name not in first]
        if "verdict" not in names:
            return [*first, *names]
        place = names.index("verdict")
        after = [name for name in ("verdict", "p_adjusted", "p_value") if name in names]
        ratio = [name for name in names if name == "ratio"]
        before = [name for name in names[:place] if name not in (*ratio, *after)]
        judged = [*before, *ratio, *after]
        return [*first, *judged, *(name for name in names if name not in judged)]

    @cached_property
    def texts(self) -> list[str]:
        """The columns of other values, which come last."""
        taken = {*self.keys, *self.numbers, "attribute", "segment", "reference", "metric", MODEL}
        return [
            name
            for name, dtype in self.frame.schema.items()
            if not dtype.is_numeric()
            and name not in taken
            and not self._is_limit(name)
            and self._is_shown(name)
        ]

    @property
    def columns(self) -> list[Column]:
        """The headings of the table; the first column names its rows."""
        first, *others = self._names
        columns = [Column(self._name_heading(first))]
        for name in others:
            essential = name in self.keys or name in ("n", self._headline, "verdict")
            # A note explains missing numbers.
            essential |= name == "note" and self.frame[self._headline or "note"].has_nulls()
            style = "name" if name in self.keys else ""
            if name in self.texts or name == "verdict":
                style = "left"
            has_names = name == "reference_value" and self._has_several_references
            priority = 1 if name in (*GAP_COLUMNS, "ratio", "value", "p_adjusted") else 0
            columns.append(
                Column(
                    self._heading(name),
                    style=style,
                    essential=essential,
                    priority=priority,
                    least=_LEAST_NAMED if has_names else 0,
                    wraps=name in ("metric", "verdict"),
                )
            )
        return columns

    @property
    def _has_adjusted(self) -> bool:
        return "p_adjusted" in self.frame.columns and not self._is_empty("p_adjusted")

    @cached_property
    def narrowing(self) -> list[Narrowing]:
        """The steps that make comparisons fit a narrow terminal, in order.

        The last step drops the result of a gap, or else its limits; the limits of an impact ratio;
        or the values of both groups of a fairness criterion.
        """
        names = self._names
        is_fairness = _GROUP_VALUE in names
        headline = "ratio" if self._is_of_impact else "gap"
        if not is_fairness and not {headline, "verdict"} <= {*names}:
            return []
        late = _NARROWING_OF_FAIRNESS if is_fairness else _NARROWING
        kept = {"value", _GROUP_VALUE, "reference_value", headline, "verdict"}
        kept |= {*self.keys, *(name for name, _ in late)}
        steps: list[tuple[str, GivesUp]] = [
            (name, "place") for name in reversed(names[1:]) if name not in kept
        ]
        steps += late
        steps += [(name, "letters") for name in self.keys]
        if self._has_several_references:
            steps.append(("reference_value", "letters"))
        if not is_fairness and not self._has_ratios_as_values:
            steps.append(("value", "place"))
            if not self._is_of_impact:
                steps.append(("verdict", "place"))
        if not is_fairness:
            steps.append((headline, "limits"))
        return [
            Narrowing(names.index(name), gives_up, or_else=name == "verdict")
            for name, gives_up in steps
            if name in names and (gives_up != "limits" or self._has_limits(name))
        ]

    @property
    def _has_ratios_as_values(self) -> bool:
        """Whether some rows have an impact ratio as their value, and no difference."""
        return "metric" in self.frame.columns and IMPACT_RATIO in self.frame["metric"]

    def _has_limits(self, name: str) -> bool:
        low = f"{name}_low"
        return low in self.frame.columns and self.frame[low].count() > 0

    @cached_property
    def _headline(self) -> str | None:
        """The number that a terminal always shows."""
        if self._is_of_impact:
            return "ratio"
        first = self._names[0]
        return next((name for name in self.numbers if name not in (*_FIRST_COUNTS, first)), None)

    @cached_property
    def _names(self) -> list[str]:
        """The visible columns, in order; an empty table has one without a name."""
        return [*self.keys, *self.numbers, *self.texts] or [""]

    # The kind of table.

    @cached_property
    def attributes(self) -> list[str]:
        """The attributes of segments, without all rows."""
        if "attribute" not in self.frame.columns:
            return []
        known = self.frame["attribute"].unique(maintain_order=True).to_list()
        return [name for name in known if name not in (OVERALL, None)]

    @cached_property
    def is_grouped(self) -> bool:
        """Whether attributes are headings of rows: there are several, each contiguous."""
        if len(self.attributes) <= 1 or "segment" not in self.frame.columns:
            return False
        column = self.frame["attribute"]
        changes = column.ne_missing(column.shift())[1:].sum()
        return int(changes) + 1 == column.n_unique()

    @property
    def is_of_pairs(self) -> bool:
        """Whether rows compare scores and not groups."""
        return "reference" in self.frame.columns and "segment" not in self.frame.columns

    @property
    def is_of_releases(self) -> bool:
        """Whether rows compare two scores in each group."""
        return {"segment", MODEL, "reference", "margin"} <= {*self.frame.columns}

    def _is_shown(self, name: str) -> bool:
        if self._is_hidden(name) or self._is_empty(name):
            return False
        column = self.frame[name]
        if name in _COUNTS_OF_FAULTS and column.dtype in (pl.Int64, pl.Boolean):
            return bool(column.sum())
        if name == _GROUP_VALUE:
            return bool(self.frame["metric"].is_in([*FAIRNESS]).all())
        # A ratio repeats a gap.
        return name != "ratio" or "gap" not in self.frame.columns or self._has_ratios

    def _is_hidden(self, name: str) -> bool:
        """Return whether a column of a table of this package is one that few readers need."""
        columns = {*self.frame.columns}
        estimate = name.removesuffix("_se")
        if estimate != name and {estimate, f"{estimate}_low", f"{estimate}_high"} <= columns:
            return True
        return any(known <= columns and names.fullmatch(name) for known, names in _HIDDEN)

    @cached_property
    def _has_hidden_reasons(self) -> bool:
        """Whether there are reasons that no column shows."""
        return "reason" in self.frame.columns and self._is_hidden("reason")

    def _is_empty(self, name: str) -> bool:
        """Return whether a column has no values; a table without rows shows all columns.

        Comparisons show their values even if nothing could be compared.
        """
        if name == "value" and _is_comparison(self.frame):
            return False
        return 0 < self.frame.height == self.frame[name].null_count()

    @property
    def _has_ratios(self) -> bool:
        """Whether there are ratios in rows without a gap, whose value is not the ratio itself."""
        alone = self.frame.filter(pl.col("gap").is_null(), pl.col("ratio").is_not_null())
        return "metric" not in alone.columns or bool((alone["metric"] != IMPACT_RATIO).any())

    @cached_property
    def _ranges(self) -> dict[str, str]:
        """The ends of ranges of scores, by their beginnings."""
        schema = self.frame.schema
        return {
            low: high
            for low, high in _RANGES.items()
            if low in schema and schema[low].is_float() and schema.get(high) == schema[low]
        }

    def _is_limit(self, name: str) -> bool:
        estimate = name.removesuffix("_low").removesuffix("_high")
        both = {f"{estimate}_low", f"{estimate}_high", estimate} <= {*self.frame.columns}
        return name in self._ranges.values() or (estimate != name and both)

    def _is_said_once(self, name: str) -> bool:
        """Return whether a metric is the heading of its values, or a score is the only one."""
        if name == "metric":
            return "value" in self.frame.columns and self._is_constant("metric")
        return name == MODEL and not self.is_of_pairs and self._is_constant(MODEL)

    def _is_constant(self, name: str) -> bool:
        return self.frame[name].n_unique() == 1

    # Headings.

    def _name_heading(self, name: str) -> str:
        if name != "segment" or "attribute" not in self.frame.columns:
            return self._heading(name)
        return self.attributes[0] if len(self.attributes) == 1 else "group"

    def _heading(self, name: str) -> str:
        heading = self._words_of_heading(name)
        return f"{heading}, points" if self._forms.get(name) == {POINTS} else heading

    def _words_of_heading(self, name: str) -> str:
        if name in ("value", "reference_value"):
            return self._value_heading(name)
        if name == "n":
            return self._sample_heading
        if name in self.keys:
            # Groups have the users' names.
            return _KEY_HEADINGS.get(name, name)
        if name == "ratio" and self._is_of_impact:
            return metric_label(IMPACT_RATIO)
        return _HEADINGS.get(name) or metric_label(name.removeprefix("n_"))

    @property
    def _sample_heading(self) -> str:
        """The heading of the rows of a single metric: their kind, for example positives."""
        known = {**CHANGED_METRICS, **METRICS}.get(self._only_metric or "")
        if known is None or "gap" not in self.frame.columns or self._only_metric in _TWO_RATES:
            return "n"
        kinds = known.sample_sizes
        return "n" if len(kinds) > 1 or kinds == ("rows",) else kinds[0]

    @cached_property
    def _only_metric(self) -> str | None:
        """The metric of all rows, if they have the same."""
        metrics = {*self.frame["metric"]} if "metric" in self.frame.columns else set[str]()
        return next(iter(metrics)) if len(metrics) == 1 else None

    def _value_heading(self, name: str) -> str:
        """Return the heading of values: their metric or score, or the name of the column."""
        own = name == "value"
        if self.is_of_releases:
            scores = self.frame[MODEL if own else "reference"].drop_nulls().unique()
            return scores[0] if len(scores) == 1 else "new" if own else "old"
        metric = self._only_metric
        label = "value" if metric is None else metric_label(metric)
        if own:
            return label
        if self.is_of_pairs:
            return f"other {label}"
        if self._has_several_references:
            return "reference"
        if "reference" not in self.frame.columns:
            return "reference"
        reference = str(self.frame["reference"].drop_nulls().first())
        return _REFERENCES.get(reference, f"reference ({reference})")

    @cached_property
    def _has_several_references(self) -> bool:
        """Whether groups are compared with several others, or with none."""
        is_named = "reference" in self.frame.columns and not self.is_of_pairs
        return is_named and self.frame["reference"].drop_nulls().n_unique() > 1

    @cached_property
    def _is_of_impact(self) -> bool:
        return "reference_rate" in self.frame.columns

    # Cells.

    @cached_property
    def _metric(self) -> str | None:
        """The column with the metric of a row, if any."""
        return next((name for name in ("metric", "measure") if name in self.frame.columns), None)

    @cached_property
    def _forms(self) -> dict[str, set[NumberForm]]:
        """The forms of the numbers of each column, possibly one per metric."""
        return {name: self._read_forms(name) for name in self.numbers if name != "verdict"}

    def _read_forms(self, name: str) -> set[NumberForm]:
        if self._metric is None or name not in (*VALUE_COLUMNS, *COMPARED_COLUMNS, *GAP_COLUMNS):
            return {self._form(name, None)}
        known = self.frame.filter(pl.col(name).is_not_null())[self._metric].unique()
        return {self._form(name, metric) for metric in known}

    def _form(self, name: str, metric: str | None) -> NumberForm:
        if metric is not None and name in VALUE_COLUMNS:
            return value_form(metric)
        if metric is not None and name in COMPARED_COLUMNS:
            return compared_form(metric)
        if metric is not None and name in GAP_COLUMNS:
            return gap_form(metric)
        if name in GAP_COLUMNS and "value" in self.frame.columns:
            # The metric was dropped: nobody knows whether this is a gap between shares.
            return DIFFERENCE
        if name == "mean_score":
            return SHARE if self._has_probabilities else CUT
        form = column_form(name)
        return COUNT if form is PLAIN and is_whole(self.frame[name]) else form

    @cached_property
    def _has_probabilities(self) -> bool:
        """Whether there are mean scores beside observed rates, which they should equal."""
        is_probability = self.frame["mean_score"].is_between(0, 1).all()
        return "observed_rate" in self.frame.columns and bool(is_probability)

    def write_rows(self, records: Sequence[_Record]) -> Iterator[Row]:
        """Yield rows, below the attribute of their group if it is a heading."""
        first, *others = self._names
        if not first:
            return
        before: _Record = {}
        for number, record in enumerate(records):
            attribute = record.get("attribute")
            is_new = not number or attribute != before.get("attribute")
            # Rows of everyone need a heading only after rows of an attribute.
            if self.is_grouped and is_new and (number or attribute != OVERALL):
                yield Row(MISSING if attribute is None else show_name(attribute), kind="group")
            is_all = first == "segment" and attribute == OVERALL
            again = (
                bool(number)
                and bool(self.keys[1:])
                and not is_new
                and (record[first] == before[first])
            )
            name = "everyone" if is_all else self._write_name(first, record)
            cells = [self._write_cell(other, record) for other in others]
            yield Row("" if again else name, cells, "all" if is_all else "", again)
            before = record

    def _write_name(self, first: str, record: _Record) -> str:
        if first not in self.keys:
            cell = self._write_cell(first, record)
            return f"{cell.text} {cell.limits}".strip()
        if record[first] is None:
            return self._name_unknown(first, record)
        return self._write_key(first, record)

    def _name_unknown(self, name: str, record: _Record) -> str:
        """Return the name of a null key; criteria without a comparison have no groups."""
        if name == "segment" and record.get("metric") in FAIRNESS:
            return DASH
        return UNKNOWN_CATEGORY if self._is_of_impact else MISSING

    def _write_key(self, name: str, record: _Record) -> str:
        value = record[name]
        if name in _NAMES:
            is_of_two = name == "metric" and value in _TWO_RATES
            rate = self._find_deciding_rate(record) if is_of_two else None
            return f"{metric_label(str(value))} ({rate})" if rate else metric_label(str(value))
        return _write_key_value(value)

    def _write_cell(self, name: str, record: _Record) -> Cell:
        value = record[name]
        if name == "verdict":
            return _write_result(value, record["reason"] if self._has_hidden_reasons else None)
        if name in self.keys:
            limits = self._write_limits_of_key(name, record)
            return Cell((MISSING if value is None else self._write_key(name, record)) + limits)
        if value is None or self._is_repeated(name, record):
            return Cell("" if name in self.texts else DASH)
        if name in self._forms and isinstance(value, float):
            return self._write_number(name, record)
        return Cell(write_value(value))

    def _write_number(self, name: str, record: _Record) -> Cell:
        """Return the cell of a float with its limits, in the form of its column or metric."""
        value, forms = record[name], self._forms[name]
        if name in ("p_value", "p_adjusted"):
            return Cell(write_p_value(value))
        if len(forms) == 1:
            (form,) = forms
        else:
            form = self._form(name, record[self._metric or ""])
        text = form.write(value)
        if name in self._ranges:
            end = record[self._ranges[name]]
            return Cell(text if end is None else f"{text} to {form.write(end)}")
        if form is POINTS and len(forms) > 1:
            text = f"{text} points"
        if name == "reference_value" and self._has_several_references:
            reference = record["reference"]
            text = f"{text} ({_REFERENCES.get(reference, reference)})"
        low, high = record.get(f"{name}_low"), record.get(f"{name}_high")
        if isinstance(low, float) and isinstance(high, float):
            return Cell(text, limits=form.write_limits(low, high))
        return Cell(text)

    def _write_limits_of_key(self, name: str, record: _Record) -> str:
        """Return both ends of a bin as text."""
        low, high = record.get(f"{name}_low"), record.get(f"{name}_high")
        if not isinstance(low, float) or not isinstance(high, float):
            return ""
        return f" ({CUT.write(low)} to {CUT.write(high)})"

    def _is_repeated(self, name: str, record: _Record) -> bool:
        """Return whether a number is shown elsewhere: a gap as a ratio, or a ratio's reference."""
        if name == "ratio" and not self._is_of_impact:
            return record.get("gap") is not None or record.get("metric") == IMPACT_RATIO
        is_known = record.get("metric") == IMPACT_RATIO or record.get("reference") == TARGET
        return name == "reference_value" and is_known

    # Fairness criteria that compare two rates.

    def _find_deciding_rate(self, record: _Record) -> str | None:
        """Return the rate that decides a criterion of two rates, if other rows have its values."""
        if _GROUP_VALUE not in self.frame.columns:
            return None
        pair = {record[_GROUP_VALUE], record["reference_value"]} - {None}
        found = {
            rate
            for (rate, *group), values in self._compared_values
            if pair == values and group == [record["attribute"], record[MODEL]]
        }
        return found.pop() if pair and len(found) == 1 else None

    @cached_property
    def _compared_values(self) -> list[tuple[list[Any], set[float]]]:
        """The values of both groups in each criterion of one rate, by rate, attribute and score."""
        names = ["metric", "attribute", MODEL, _GROUP_VALUE, "reference_value"]
        rows = self.frame.filter(pl.col("metric").is_in([*FAIRNESS])).select(names).rows()
        return [
            ([FAIRNESS[metric].compares[0], attribute, score], {own, other})
            for metric, attribute, score, own, other in rows
            if metric not in _TWO_RATES
        ]

    # Remarks below the table.

    def name_undefined(self) -> Iterator[str]:
        """Return sentences on metrics that are undefined in all rows, and so have no column."""
        frame = self.frame
        if not all(frame.schema.get(name) == pl.Int64 for name in ("n_pos", "n_neg")):
            return
        columns = [metric.column for metric in CURVE_METRICS.values()]
        names = [
            name
            for name in columns
            if name in frame.columns and frame[name].null_count() == frame.height
        ]
        if not names:
            return
        n_classes = sum(frame[name].sum() > 0 for name in ("n_pos", "n_neg"))
        why = (", no rows", ", rows of one class only", "")[n_classes]
        yield f"{', '.join(map(metric_label, names))}: undefined{why}."

    def explain(self, records: Sequence[_Record]) -> Iterator[str]:
        """Return why rows have no result or test, unless the result or a column says so."""
        if not self._has_hidden_reasons or "p_value" not in self.frame.columns:
            return
        named: dict[str, list[str]] = {}
        for record in records:
            if record["reason"] and self._lacks_explanation(record):
                named.setdefault(record["reason"], []).append(self._name_row(record))
        for reason, names in named.items():
            if len(names) == len(records):
                yield _write_sentence(reason)
            elif len(names) > _MOST_NAMED:
                yield _write_sentence(f"{reason}: {len(names)} rows")
            else:
                yield _write_sentence(f"{reason}: {'; '.join(names)}")

    def _lacks_explanation(self, record: _Record) -> bool:
        verdict = record.get("verdict")
        if verdict is not None:
            return bool(verdict == INCONCLUSIVE and record["p_value"] is None)
        is_in_result = "verdict" in self.numbers and len(record["reason"]) <= _LONGEST_REASON
        return not is_in_result

    def _name_row(self, record: _Record) -> str:
        """Return the name of a row from its keys; fairness criteria are not about one group."""
        keys = [
            name for name in self.keys if record.get("metric") not in FAIRNESS or name in _NAMES
        ]
        parts = []
        for name in keys:
            value = record[name]
            text = (
                self._name_unknown(name, record) if value is None else self._write_key(name, record)
            )
            if name == "segment" and len(self.attributes) > 1 and "attribute" not in self.keys:
                attribute = record["attribute"]
                text = "everyone" if attribute == OVERALL else f"{attribute} {text}"
            parts.append(text)
        return ", ".join(parts)
