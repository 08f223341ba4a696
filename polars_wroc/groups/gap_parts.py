"""Gaps split into what the probabilities of both sides imply, and what is in excess of that."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import mul
from typing import Any, Literal, TypeAlias, get_args

import polars as pl

from polars_wroc.groups.categories import (
    ATTRIBUTE,
    SEGMENT,
    Grouping,
    Intersections,
    read_attributes,
    read_category_reference,
)
from polars_wroc.groups.comparison_tests import (
    REPEATED,
    GapTests,
    adjusted_once,
    error_of_a_test,
    verdict_of,
)
from polars_wroc.groups.comparisons import COMPARABLE, DIFFERENT, PLACE, sum_of_shares
from polars_wroc.groups.expected_metrics import (
    AUC,
    CHANCE,
    EXPECTED_METRICS,
    FEWEST,
    LABEL,
    LEAST_ROWS,
    OBSERVED,
    OF_WEIGHT,
    PARTS,
    REPEATS,
    Expectations,
    p_value_of,
    part_of,
    read_chances,
)
from polars_wroc.groups.group_gaps import group_gaps, read_metrics
from polars_wroc.inputs import arguments
from polars_wroc.inputs.arguments import MARGIN
from polars_wroc.inputs.columns import (
    AUDIT_KEYS,
    MISSING,
    SCORE,
    IntoColumn,
    IntoWeight,
    has_no_score,
    score_column,
)
from polars_wroc.inputs.designs import Design, read_design
from polars_wroc.inputs.expressions import as_column, named_columns, typed_column
from polars_wroc.inputs.looks import if_enough
from polars_wroc.inputs.metric import MINUS
from polars_wroc.inputs.rows import IntoColumns, Rows, polars_frame
from polars_wroc.plans.queries import FrameT, collect, join_on_keys, like_input
from polars_wroc.stats.difference_tests import Adjust, check_options
from polars_wroc.stats.distributions import error_quantile, student_score
from polars_wroc.stats.logistic_fit import FREE_INTERCEPT, SLOPE, fit_rows, logit
from polars_wroc.stats.variances import (
    DESIGN_DF,
    design_df,
    limit_quantile,
    linear_variances,
    unit_totals,
)

Recalibrate: TypeAlias = Literal["none", "overall"]

# 1 for a row of the segment, -1 for one of what it is compared with, null for others; and by what
# the influence of a row on the AUC of its own segment counts.
_SIDE, _SHARE, _FACTOR = "__side", "__share", "__factor"
_PRESENT = {"__own_rows": 1, "__other_rows": -1}
_LOGIT, _TAKEN, _EXPECTED, _ERROR = "__logit", "__taken_up", "__expected_gap", "__error"
_EXCESS, _ENDS = "gap_excess", ("", "_low", "_high")
_FOUND: dict[str, type[pl.DataType]] = {
    **dict.fromkeys((*AUDIT_KEYS, "metric"), pl.String),
    **dict.fromkeys((_EXPECTED, FEWEST, *PARTS), pl.Float64),
    DESIGN_DF: pl.Int64,
    REPEATED: pl.Boolean,
}
PART_COLUMNS = (
    *(f"gap_{part}{end}" for part in PARTS[:2] for end in _ENDS),
    *(f"{_EXCESS}_{name}" for name in ("p_value", "p_adjusted", "verdict")),
)
CANNOT_TELL = (
    "Risks that are less spread out may be true of these people, or the score may know less about "
    "them; this table cannot tell."
)
# References that gaps have and their parts do not, and what to give.
_INSTEAD = {"overall": "take 'rest'", "best": "name the segment, as in {'sex': 'm'},"}
# The same rows give the same bits each time.
_collect = partial(collect, reproducible=True)
# Those that are split unless others are named.
SPLIT_METRICS = (AUC, "tpr", "fpr", "ppv")


def gap_parts(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumn,
    *,
    attributes: IntoColumns,
    probability: IntoColumn | None = None,
    recalibrate: Recalibrate = "none",
    clip: float | None = None,
    intersections: Intersections = False,
    reference: object = "rest",
    threshold: float | None = None,
    metrics: Sequence[str] | None = None,
    weight: IntoWeight | None = None,
    pos_label: object = None,
    margin: float = MARGIN,
    min_rows: int = 0,
    level: float = 0.95,
    adjust: Adjust = "holm",
    design: Design | None = None,
) -> FrameT:
    """Split gaps of AUCs and rates into what probabilities imply, and what is in excess of it.

    Two groups with perfect probabilities have different AUCs where the risks of one are less
    spread out. Expected is not innocent: risks that are less spread out may be true of these
    people, or the score may know less about them; this table cannot tell.

    Parameters
    ----------
    frame, label, weight, pos_label, level
        As for `summary`.
    score
        Column name or numeric expression that ranks the rows, and that the threshold is for.
    attributes, intersections, margin, min_rows, adjust
        As for `group_gaps`.
    probability
        The probability that a row is positive, from 0 to 1; None takes the score.
    recalibrate
        ``"overall"``: first fit a logistic regression of the label on the logit of the
        probability, to all rows of all groups together, so that an error that all groups share is
        not in excess. There is none within groups: what a group's own slope absorbs is the gap.
    clip
        With ``recalibrate="overall"``: move probabilities to the range from this to 1 minus it,
        since those of 0 and 1 have no logit; without it they leave the parts unknown.
    reference
        ``"rest"``, or a segment, as for `group_gaps`; not ``"overall"`` or ``"best"``.
    threshold
        Rows with at least this score are selected. Without it there are gaps of AUCs alone.
    metrics
        Out of ``auc, tpr, fpr, ppv, npv, accuracy, net_benefit``; None for the first four.
    design
        Clusters or a `Survey`.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        The rows and columns of `group_gaps`, and after them:

        - ``gap_expected, gap_expected_low, gap_expected_high`` (Float64): the gap that the
          probabilities of both sides imply, with its confidence interval.
        - ``gap_excess, gap_excess_low, gap_excess_high`` (Float64): the gap less the expected one.
        - ``gap_excess_p_value, gap_excess_p_adjusted`` (Float64): test that the excess is chance,
          alone and adjusted for all such tests of the table.
        - ``gap_excess_verdict`` (String): ``"different"`` from 0, ``"alike"`` if it is shown to be
          within the margin, or ``"too little data"``.
        - ``sentence`` (String): the split in words, where the gap is different; null elsewhere.

        They are null where the gap or an expected value is. Limits and tests are also null with
        fewer than ten effective rows, by probability, of a class, or of a rate in a cell of the
        confusion matrix, in the segment or in its reference; and with fewer than ``min_rows``.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `group_gaps`; also for a probability outside 0 to 1 and for replicate weights.

    Notes
    -----
    Expected values are those of `expected_metrics`. Of the reference they are averaged with the
    weights of `group_gaps`, so that both parts add up to its gap. The intervals are for other
    samples of rows, from the influence of each row on both parts; the test is for other labels of
    these rows. An excess is a difference in calibration, seen through one metric: of a level
    that is wrong too, which moves the expected AUC although the AUC depends on the order alone.
    Both parts may have opposite signs, so that there is no share that is expected.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> wide = pl.DataFrame({"g": "a", "p": [0.9, 0.9, 0.5, 0.1, 0.1], "y": [1, 1, 1, 0, 0]})
    >>> narrow = pl.DataFrame({"g": "b", "p": [0.6, 0.6, 0.5, 0.4, 0.4], "y": [1, 0, 0, 1, 0]})
    >>> people = pl.concat([wide, narrow] * 20)
    >>> parts = wroc.gap_parts(people, "y", "p", attributes="g", reference="a")
    >>> parts.select("segment", pl.col("gap", "gap_expected", "gap_excess").round(3))
    shape: (2, 4)
    ┌─────────┬──────┬──────────────┬────────────┐
    │ segment ┆ gap  ┆ gap_expected ┆ gap_excess │
    │ ---     ┆ ---  ┆ ---          ┆ ---        │
    │ str     ┆ f64  ┆ f64          ┆ f64        │
    ╞═════════╪══════╪══════════════╪════════════╡
    │ a       ┆ null ┆ null         ┆ null       │
    │ b       ┆ -0.5 ┆ -0.289       ┆ -0.211     │
    └─────────┴──────┴──────────────┴────────────┘
    """
    survey = read_design(design)
    frame = polars_frame(frame)  # type: ignore[assignment]
    given = frame, label, score, probability, weight, attributes, pos_label, survey
    rows = read_chances(*given, called="attributes")
    level = check_options(rows.look(level, frame), adjust)
    arguments.option("recalibrate", recalibrate, get_args(Recalibrate))
    if clip is not None:
        clip = arguments.number("clip", clip, low=0.0, high=0.5, open_ends=True)
        if recalibrate == "none":
            arguments.reject("clip", "be None without `recalibrate`", clip)
    asked = SPLIT_METRICS if metrics is None else read_metrics(metrics, EXPECTED_METRICS)
    expectations = Expectations.read(threshold, asked, labelled=True)
    if isinstance(reference, str) and reference in _INSTEAD:
        rule = "be 'rest' or a segment, with no row of what is compared and not picked by its value"
        arguments.reject("reference", rule, f"{reference!r}: {_INSTEAD[reference]} instead")
    if metrics is not None and (unknown := [n for n in asked if n not in expectations.names]):
        arguments.reject("metrics", "come with a `threshold` that they are computed at", unknown)
    table = group_gaps(
        frame.lazy(),
        label,
        _with_probability(frame.lazy(), score, probability),
        attributes=attributes,
        intersections=intersections,
        reference=reference,
        threshold=threshold,
        metrics=expectations.names,
        weight=weight,
        pos_label=pos_label,
        margin=margin,
        min_rows=min_rows,
        level=level,
        adjust=adjust,
        design=design,
    )
    divisions = read_attributes(rows, intersections)
    schema = rows.frame.collect_schema()
    references = read_category_reference(reference, ["rest"], divisions, schema)
    tests = GapTests(level, adjust, min_rows, margin=margin, designed=survey.given)
    split = Split(rows, divisions, references.named, expectations, tests, recalibrate, clip)
    numbers = dict.fromkeys(PART_COLUMNS[:-1], pl.Float64())
    texts = dict.fromkeys((PART_COLUMNS[-1], "sentence"), pl.String())
    schema = pl.Schema({**table.collect_schema(), **numbers, **texts})
    return like_input(frame, table.map_batches(split.added_to, schema=schema))


def _with_probability(
    frame: pl.LazyFrame, score: IntoColumn, probability: IntoColumn | None
) -> IntoColumn:
    """Return the score, missing where the probability is."""
    if probability is None:
        return score
    name, column = next(iter(named_columns("score", score, frame).items()))
    missing = has_no_score(
        typed_column("probability", as_column("probability", probability), frame)
    )
    return pl.when(~missing).then(column).alias(name)


@dataclass(frozen=True)
class Split:
    """Splits the gaps of a table, whose segments are held in memory.

    The rows have probabilities: see `with_chances`.
    """

    rows: Rows
    divisions: Sequence[Grouping]
    # The segments that are references, by attribute; others are compared with the rest.
    named: Mapping[str, str]
    expectations: Expectations
    tests: GapTests
    recalibrate: Recalibrate = "none"
    clip: float | None = None

    def added_to(self, table: pl.DataFrame) -> pl.DataFrame:
        """Add the parts of gaps to their table."""
        gaps = table.with_row_index(PLACE)
        frame = self.rows.frame if self.recalibrate == "none" else self._recalibrated()
        held = _collect(self.expectations.decided(frame)).lazy()
        wanted = table.select(AUDIT_KEYS).unique().rows()
        parts = [part for each in self.divisions for part in self._of_division(each, held, wanted)]
        split = pl.concat([pl.DataFrame(schema=_FOUND), *parts]).lazy()
        rows = join_on_keys(gaps.lazy(), split, [*AUDIT_KEYS, "metric"])
        judged = join_on_keys(gaps.lazy(), self._judged(rows), [PLACE]).drop(PLACE)
        found = _collect(judged)
        sentences = map(_sentence, found.iter_rows(named=True))
        return found.with_columns(pl.Series("sentence", sentences, pl.String))

    def _recalibrated(self) -> pl.LazyFrame:
        """Replace the probabilities by those of a logistic regression on all rows."""
        frame = self.rows.frame.with_columns(pl.col(CHANCE).alias(SCORE))
        fit = _collect(fit_rows(replace(self.rows, frame=frame, keys=[], design=None), self.clip))
        # Without a logit of each row the fit is not that of all of them.
        known = pl.when(pl.col(_LOGIT).is_not_null().all())
        intercept, slope = (
            pl.lit(fit[name].item(), pl.Float64) for name in (FREE_INTERCEPT, SLOPE)
        )
        linear = intercept + slope * pl.col(_LOGIT)
        fitted = frame.with_columns(logit(self.clip).alias(_LOGIT)).with_columns(
            known.then(1 / (1 + (-linear).exp())).alias(CHANCE),
        )
        return fitted.with_columns(pl.col(score_column(0)).alias(SCORE))

    def _of_division(
        self, division: Grouping, held: pl.LazyFrame, wanted: Container[Any]
    ) -> Iterator[pl.DataFrame]:
        """Split the gaps of the ``wanted`` segments of one attribute."""
        expectations, keys = self.expectations, [SEGMENT]
        of_segments = division.named(held)
        ranked = expectations.ranked(of_segments, keys)
        values = _collect(expectations.values(of_segments, ranked, keys).sort(SEGMENT))
        of_auc = expectations.influences([AUC] if AUC in expectations.names else [])
        moved = join_on_keys(ranked, values.lazy(), keys).with_columns(**of_auc)
        placed = _collect(moved.select(*ranked.collect_schema().names(), *of_auc))
        reference, segments = self.named.get(division.attribute), values[SEGMENT].to_list()
        for segment in segments:
            if (reference is None or segment != reference) and (
                division.attribute,
                segment,
            ) in wanted:
                part = self._of_segment(placed.lazy(), values.lazy(), segment, reference)
                # Two segments that are each the other's rest are one test.
                repeated = reference is None and segments[1:] == [segment]
                yield part.select(
                    pl.lit(division.attribute).alias(ATTRIBUTE),
                    pl.lit(segment, pl.String).alias(SEGMENT),
                    pl.all(),
                    pl.lit(repeated).alias(REPEATED),
                )

    def _of_segment(
        self,
        placed: pl.LazyFrame,
        values: pl.LazyFrame,
        segment: str | None,
        reference: str | None,
    ) -> pl.DataFrame:
        """Compute the expected gap of each metric of a segment, and its errors."""
        own = pl.col(SEGMENT).eq_missing(pl.lit(segment, pl.String))
        other = ~own if reference is None else pl.col(SEGMENT).eq_missing(pl.lit(reference))
        side = pl.when(own).then(pl.lit(1, pl.Int8)).when(other).then(pl.lit(-1, pl.Int8))
        # The weight of the pairs of each segment of the reference, as for its AUC.
        classes = (pl.col(part_of(OBSERVED, name)) for name in ("pos", "neg"))
        pairs = reduce(mul, (each / each.max() for each in classes))
        pairs = pl.when(other).then(pairs).otherwise(0.0)
        values = values.with_columns((pairs / pairs.sum()).fill_nan(0.0).alias(_SHARE))
        factor = pl.when(own).then(1.0).otherwise(-pl.col(_SHARE)).alias(_FACTOR)
        rows = join_on_keys(
            placed.with_columns(side.alias(_SIDE)), values.select(SEGMENT, factor), [SEGMENT]
        )
        compared = rows.filter(pl.col(_SIDE).is_not_null())
        sides = _collect(self.expectations.values(compared, compared, [_SIDE]))
        expected = {
            name: _own_less_other(pl.col(part_of(name))) for name in self.expectations.names
        }
        gaps = sides.select(**expected).row(0, named=True)
        if AUC in gaps:
            auc = pl.col(part_of(AUC))
            of_reference = sum_of_shares(auc, pl.col(_SHARE), 1)
            gaps[AUC] = _collect(values.select(auc.filter(own).first() - of_reference)).item()
        errors = self._errors(self._contrasts(rows, sides.lazy())).row(0, named=True)
        found = [
            {
                "metric": name,
                _EXPECTED: gap,
                FEWEST: sides[part_of(FEWEST, name)].min(),
                **{part: errors[part_of(name, part)] for part in PARTS},
                DESIGN_DF: errors.get(DESIGN_DF),
            }
            for name, gap in gaps.items()
        ]
        types = {name: dtype for name, dtype in _FOUND.items() if name in found[0]}
        return pl.DataFrame(found, types)

    def _contrasts(self, rows: pl.LazyFrame, sides: pl.LazyFrame) -> pl.LazyFrame:
        """Replace the influences on values by those on gaps."""
        rates = self.expectations.influences(self.expectations.rates)
        moved = join_on_keys(rows, sides, [_SIDE]).with_columns(**rates)
        contrasts = dict[str, pl.Expr]()
        for name in self.expectations.names:
            factor = pl.col(_FACTOR if name == AUC else _SIDE).fill_null(0)
            for part in map(partial(part_of, name), PARTS):
                contrasts[part] = pl.when(factor != 0).then(factor * pl.col(part)).otherwise(0.0)
        moved = moved.with_columns(**contrasts)
        if self.recalibrate == "none":
            return moved
        # What the fit takes up of the labels is expected: a regression of their influences.
        x, w, chance = pl.col(_LOGIT), pl.col(OF_WEIGHT), pl.col(CHANCE)
        spread, off = w * chance * (1 - chance), w * (pl.col(LABEL) - chance)
        n, first, second = (spread * x**power for power in range(3))
        determinant = n.sum() * second.sum() - first.sum() ** 2
        for name in self.expectations.names:
            expected, excess, label = (pl.col(part_of(name, part)) for part in PARTS)
            one, other = (label * n).sum(), (label * first).sum()
            constant = (one * second.sum() - other * first.sum()) / determinant
            slope = (other * n.sum() - one * first.sum()) / determinant
            moved = moved.with_columns((constant + slope * x).alias(_TAKEN)).with_columns(
                expected + off * pl.col(_TAKEN),
                excess - off * pl.col(_TAKEN),
                label - pl.col(_TAKEN),
            )
        return moved

    def _errors(self, moved: pl.LazyFrame) -> pl.DataFrame:
        """Compute the errors of the parts, and that of the excess if probabilities are right."""
        w, chance, times = (pl.col(name) for name in (OF_WEIGHT, CHANCE, REPEATS))
        terms = {
            part_of(n, part): pl.col(part_of(n, part))
            for n in self.expectations.names
            for part in PARTS
        }
        label = [part_of(name, PARTS[2]) for name in self.expectations.names]
        design = self.rows.design
        if design is None:
            spread = w * w * chance * (1 - chance)
            squares = {n: each**2 * (spread if n in label else 1) for n, each in terms.items()}
            return collect(
                moved.select((v / times).sum().sqrt().alias(n) for n, v in squares.items())
            )
        off = w * (pl.col(LABEL) - chance)
        sums = {n: (each * off if n in label else each).sum() for n, each in terms.items()}
        sums |= {name: (pl.col(_SIDE) == side).sum() for name, side in _PRESENT.items()}
        totals = unit_totals(moved, [], sums)
        products = {name: (name, name) for name in terms}
        variances = linear_variances(totals, [], design, products, [*_PRESENT])
        return _collect(variances.with_columns(pl.col(*products).sqrt()))

    def _judged(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Compute limits, tests and verdicts of the parts of gaps."""
        level, designed, least = self.tests.level, self.tests.designed, self.tests.min_rows
        expected = pl.when(pl.col("gap").is_not_null()).then(_EXPECTED)
        excess = pl.col("gap") - expected
        enough = (pl.col(FEWEST) >= LEAST_ROWS) & (pl.min_horizontal("n", "n_reference") >= least)
        counts = pl.col("n"), pl.col("n_reference")
        errors = [
            if_enough(level, pl.when(enough & (pl.col(part) > 0)).then(part), *counts)
            for part in PARTS
        ]
        quantile = limit_quantile(pl.col, level, designed=designed)
        columns = {"gap": excess, _ERROR: errors[1]}
        for part, value, error in zip(PARTS, (expected, excess), errors, strict=False):
            limits = value, value - quantile * error, value + quantile * error
            columns |= dict(zip((f"gap_{part}{end}" for end in _ENDS), limits, strict=True))
        p_value = p_value_of(excess, errors[2], level, designed=designed)
        tested = rows.select(
            PLACE, ATTRIBUTE, "metric", REPEATED, DESIGN_DF, **columns, p_value=p_value
        )
        judged = adjusted_once(tested, [ATTRIBUTE], self.tests.adjust)
        quantile = error_quantile(level, 2 * error_of_a_test(pl.col, self.tests))
        quantile = student_score(quantile, design_df(pl.col)) if designed else quantile
        margin, error = self.tests.margin, pl.col(_ERROR)
        alike = (pl.col("gap").abs() + quantile * error) < margin
        verdict = verdict_of(pl.col, alike, level).alias(f"{_EXCESS}_verdict")
        named = (pl.col(name).alias(f"{_EXCESS}_{name}") for name in ("p_value", "p_adjusted"))
        return judged.select(PLACE, *PART_COLUMNS[:6], *named, verdict)


def _own_less_other(value: pl.Expr) -> pl.Expr:
    own, other = (value.filter(pl.col(_SIDE) == side).first() for side in (1, -1))
    return own - other


def _in_points(value: float) -> str:
    # Rounded before, as there is no minus zero.
    return f"{round(100 * value, 1) + 0.0:.1f}".replace("-", MINUS)


def _sentence(row: Mapping[str, Any]) -> str | None:
    """Say how a gap that is different is split; None of others."""
    if row["verdict"] != DIFFERENT or row["gap_excess"] is None:
        return None
    sign = -1 if row["gap"] < 0 else 1

    def points(part: str) -> str:
        value, low, high = (sign * (row[f"{part}{end}"] or 0) for end in _ENDS)
        limits = f" ({_in_points(min(low, high))} to {_in_points(max(low, high))})"
        return f"{_in_points(value)}{'' if row[f'{part}_low'] is None else limits}"

    label, reference = COMPARABLE[row["metric"]].label, row["reference"]
    segment = MISSING if row[SEGMENT] is None else row[SEGMENT]
    of_reference = f"the {reference}" if reference == "rest" else reference
    own, others = (_in_points(row[name]) for name in ("value", "reference_value"))
    values = f"{own}%, of {of_reference} {others}%"
    gap, implied = f"the gap of {_in_points(abs(row['gap']))} points", points("gap_expected")
    split = f"of {gap}, {implied} are what the probabilities imply; {points(_EXCESS)} are not"
    if round(sign * 100 * row["gap_expected"], 1) < 0:
        split = f"the probabilities imply a gap the other way: of {gap} they imply {implied}"
    known = ""
    if row[f"{_EXCESS}_p_value"] is not None and row[f"{_EXCESS}_verdict"] != DIFFERENT:
        known = " There is no sign that the probabilities are less right in one of them."
    head = f"{label[0].upper()}{label[1:]} of {row[ATTRIBUTE]} {segment} is {values}: {split}."
    return f"{head}{known} {CANNOT_TELL}"
