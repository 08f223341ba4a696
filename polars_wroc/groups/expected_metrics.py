"""The metrics that probabilities imply for the rows they were given to, before or after labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from polars_wroc.groups.comparisons import PLACE
from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import (
    SCORE,
    WEIGHT,
    IntoColumn,
    IntoWeight,
    numeric,
    score_column,
)
from polars_wroc.inputs.designs import Design, GivenDesign, read_design
from polars_wroc.inputs.expressions import as_column, typed_column
from polars_wroc.inputs.frames import at_least, read_paired_rows
from polars_wroc.inputs.looks import if_enough
from polars_wroc.inputs.rows import IntoColumns, Rows, polars_frame
from polars_wroc.plans import queries
from polars_wroc.plans.queries import FrameT, aggregate, join_on_keys, like_input, over
from polars_wroc.ranking.curve import ratio
from polars_wroc.stats.difference_tests import Adjust, adjusted, check_options
from polars_wroc.stats.distributions import p_value_at, student_p_value, two_sided_p_value
from polars_wroc.stats.proportions import ROUNDING, is_exact
from polars_wroc.stats.variances import design_df, limit_quantile, linear_variances, unit_totals

# The weight of a row, its probability, its label, whether it is selected, and how many rows it is.
OF_WEIGHT, CHANCE, LABEL, CHOSEN, REPEATS = (
    f"__{name}" for name in ("row_weight", "chance", "row_label", "chosen", "repeats")
)
# What labels are where probabilities stand for them, and where they are known.
EXPECTED, OBSERVED = "expected", "observed"
AUC, NET_BENEFIT = "auc", "net_benefit"
EXPECTED_RATES = ("tpr", "fpr", "ppv", "npv", "accuracy", NET_BENEFIT)
EXPECTED_METRICS = (AUC, *EXPECTED_RATES)
# With fewer effective rows, by probability, of a class or in a cell there are no limits.
LEAST_ROWS = 10
_COLUMNS = (
    *("metric", "n", "n_pos_expected", "n_neg_expected", "n_impossible"),
    *("expected", "expected_low", "expected_high"),
)
_OF_LABELS = ("value", "excess", "excess_p_value", "excess_p_adjusted")


def expected_metrics(
    frame: FrameT,
    score: IntoColumn,
    *,
    probability: IntoColumn | None = None,
    label: IntoColumn | None = None,
    by: IntoColumns | None = None,
    threshold: float | None = None,
    weight: IntoWeight | None = None,
    pos_label: object = None,
    level: float = 0.95,
    adjust: Adjust = "holm",
    design: Design | None = None,
) -> FrameT:
    """Compute the AUC and rates that probabilities imply for their rows, also without labels.

    If each row is positive with its probability, independently of the others, these are the values
    that the labels will give. Labels that gave clearly other values show that the probabilities
    are wrong; those that did not show no more than that the metric agrees with them.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    score
        Column name or numeric expression that ranks the rows, and that the threshold is for.
    probability
        The probability that a row is positive, from 0 to 1; None takes the score.
    label
        The labels, if they are known, which the expected values are compared with.
    by
        One or several columns or expressions; a null key is a group of its own.
    threshold
        Rows with at least this score are selected. Without it there is only the AUC.
    weight, pos_label, level
        As for `summary`.
    adjust
        How p-values are adjusted for all tests of the table: ``"holm"``, ``"bh"`` or ``"none"``.
    design
        Clusters or a `Survey`, which needs a ``label``: without labels nothing says how they
        depend on each other.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group and metric, sorted by the ``by`` columns, with the metrics ``auc`` and,
        with a ``threshold``, ``tpr, fpr, ppv, npv, accuracy, net_benefit``.

        - ``metric`` (String).
        - ``n`` (Int64): rows with a score, a probability and, if labels are given, a label.
        - ``n_pos_expected, n_neg_expected`` (Float64): the weight of each class that the
          probabilities imply.
        - ``n_impossible`` (Int64): positives with a probability of 0 and negatives with one of 1,
          which no p-value is needed for; null without labels.
        - ``expected`` (Float64): the value that the probabilities imply; null where they leave a
          class or the denominator without weight.
        - ``expected_low, expected_high`` (Float64): where the value that the labels of these rows
          give is to be expected. Null with fewer than ten effective rows, by probability, of a
          class, or of a rate in a cell of the confusion matrix.
        - with a ``label`` also ``value`` (Float64), what the labels give; ``excess``, the value
          less the expected one; and ``excess_p_value, excess_p_adjusted`` of the test that it is
          chance.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for a probability outside 0 to 1 and for replicate weights.

    Notes
    -----
    The expected AUC is the expected weight of the pairs of a positive and a negative row that are
    ranked correctly, divided by that of all pairs, ties counting half [1]_; a row is no pair with
    itself. With weights w and probabilities p the limits add up ``w**2 * p * (1 - p) * h**2``,
    where h is the derivative of the metric by the label; with a design they come from totals
    of ``w * (label - p) * h`` of its units, with Student's t.

    Do not make a gate of it: without labels it assumes that the probabilities are right today and
    in each group. A level that is wrong moves the expected AUC too, although the AUC depends
    on the order alone; `calibration_summary` says whether it is.

    References
    ----------
    .. [1] van Klaveren, D. et al. (2016), Statistics in Medicine 35, 4136-4152.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"p": [0.9, 0.8, 0.5, 0.3, 0.1] * 20})
    >>> table = wroc.expected_metrics(df, "p", threshold=0.5)
    >>> table.select("metric", pl.col("expected", "expected_low", "expected_high").round(3)).head(3)
    shape: (3, 4)
    ┌────────┬──────────┬──────────────┬───────────────┐
    │ metric ┆ expected ┆ expected_low ┆ expected_high │
    │ ---    ┆ ---      ┆ ---          ┆ ---           │
    │ str    ┆ f64      ┆ f64          ┆ f64           │
    ╞════════╪══════════╪══════════════╪═══════════════╡
    │ auc    ┆ 0.839    ┆ 0.765        ┆ 0.912         │
    │ tpr    ┆ 0.846    ┆ null         ┆ null          │
    │ fpr    ┆ 0.333    ┆ null         ┆ null          │
    └────────┴──────────┴──────────────┴───────────────┘
    """
    frame = polars_frame(frame)  # type: ignore[assignment]
    survey = read_design(design)
    if survey.given and label is None:
        arguments.reject("design", "come with a `label`", "no label")
    rows = read_chances(frame, label, score, probability, weight, by, pos_label, survey)
    level = check_options(rows.look(level, frame), adjust)
    of_labels, designed = label is not None, rows.design is not None
    metrics = Expectations.read(threshold, labelled=of_labels)
    decided = metrics.decided(rows.frame)
    # Units of a design need their rows; all else is the same for rows with the same score.
    ranked = metrics.ranked(decided, rows.keys, by_score=not designed).cache()
    values = metrics.values(decided, ranked, rows.keys).cache()
    moved = join_on_keys(ranked, values, rows.keys)
    moved = moved.with_columns(**metrics.influences(metrics.names))
    table = join_on_keys(values, metrics.errors(rows, moved, rows.keys), rows.keys).cache()
    long = pl.concat(
        table.select(*rows.keys, "n", "n_impossible", **metrics.row(name, level, designed=designed))
        for name in metrics.names
    ).with_row_index(PLACE)
    if not of_labels:
        long = long.with_columns(n_impossible=pl.lit(None, pl.Int64))
        return like_input(frame, rows.result(long, _COLUMNS))
    names = {"p_value": "excess_p_value", "p_adjusted": "excess_p_adjusted"}
    long = adjusted(long, adjust).sort(PLACE).rename(names)
    return like_input(frame, rows.result(long, [*_COLUMNS, *_OF_LABELS]))


def read_chances(
    frame: pl.DataFrame | pl.LazyFrame,
    label: IntoColumn | None,
    score: IntoColumn,
    chance: IntoColumn | None,
    weight: IntoWeight | None,
    by: IntoColumns | None,
    pos_label: object,
    survey: GivenDesign,
    called: str = "by",
) -> Rows:
    """Read complete rows with a probability; without a label all labels are 0."""
    if survey.replicate_weights is not None:
        found = "replicate weights: give the clusters that they were made from instead"
        arguments.reject("design", "be clusters or a `Survey`", found)
    source, columns = "score" if chance is None else "probability", list[pl.Expr]()
    for argument, given in (("score", score), (source, score if chance is None else chance)):
        typed = typed_column(argument, as_column(argument, given), frame.lazy())
        columns.append(numeric(typed).alias(f"__{len(columns)}"))
    given_rows = label, columns, weight, by, pos_label
    rows, _ = read_paired_rows(frame, *given_rows, survey=survey, called=called)
    return with_chances(rows, pl.col(score_column(0)), pl.col(score_column(1)), source)


def with_chances(rows: Rows, score: pl.Expr, chance: pl.Expr, source: str) -> Rows:
    """Keep complete rows, with their probability, which the ``source`` must be, and label."""
    of_weight = pl.col(WEIGHT).abs().cast(pl.Float64)
    complete = rows.frame.filter(pl.col(WEIGHT).is_not_null()).with_columns(
        score.alias(SCORE),
        queries.probability(source, chance.cast(pl.Float64)).alias(CHANCE),
        of_weight.alias(OF_WEIGHT),
        (pl.col(WEIGHT) > 0).cast(pl.Float64).alias(LABEL),
        (of_weight if rows.counted else pl.lit(1.0)).alias(REPEATS),
    )
    return replace(rows, frame=complete)


# What a row stands for: its label, or the probability instead.
_LABELS = {EXPECTED: CHANCE, OBSERVED: LABEL}
# Influences of a row on the expected value and the excess over it, and its derivative by the label.
PARTS = ("expected", "excess", "label")
_KISH, FEWEST = "__kish", "fewest"
# Sums over rows: of squared weights, of variances of labels, and of rows that are impossible.
_SQUARES, _OWN, _IMPOSSIBLE = "__squares", "__own_pairs", "__impossible"
# Whether a row is the last one of its group with its score.
_ENDS = "__ends_tie"


def part_of(*names: str) -> str:
    """Name a column of a kind or of a metric."""
    return f"__{'_'.join(names)}"


@dataclass(frozen=True)
class Expectations:
    """Which metrics are computed from probabilities and, if they are ``labelled``, from labels."""

    names: Sequence[str]
    threshold: float | None
    labelled: bool = True

    @classmethod
    def read(
        cls, threshold: float | None, names: Sequence[str] | None = None, *, labelled: bool
    ) -> Expectations:
        """Choose metrics that can be computed, out of those that are named."""
        if threshold is None:
            return cls((AUC,), None, labelled)
        threshold = arguments.number("threshold", threshold)
        # Net benefit weighs errors by the odds of the threshold.
        known = [n for n in EXPECTED_METRICS if n != NET_BENEFIT or 0 <= threshold < 1]
        return cls([n for n in known if names is None or n in names], threshold, labelled)

    @property
    def kinds(self) -> list[str]:
        """Whether from probabilities alone, or from labels too."""
        return [EXPECTED, OBSERVED] if self.labelled else [EXPECTED]

    @property
    def rates(self) -> list[str]:
        """The metrics of decisions."""
        return [name for name in self.names if name != AUC]

    def _terms(self, rate: str, pos: pl.Expr, neg: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
        """What weights of both classes add to the numerator and the denominator of a rate."""
        chosen, not_chosen = pl.col(CHOSEN), 1 - pl.col(CHOSEN)
        if rate == NET_BENEFIT:
            assert self.threshold is not None
            odds = self.threshold / (1 - self.threshold)
            return chosen * (pos - odds * neg), pos + neg
        return {
            "tpr": (chosen * pos, pos),
            "fpr": (chosen * neg, neg),
            "ppv": (chosen * pos, chosen * (pos + neg)),
            "npv": (not_chosen * neg, not_chosen * (pos + neg)),
            "accuracy": (chosen * pos + not_chosen * neg, pos + neg),
        }[rate]

    @property
    def _weights(self) -> dict[str, pl.Expr]:
        """The weight of a row in each class, by kind."""
        w, columns = pl.col(OF_WEIGHT), dict[str, pl.Expr]()
        for kind in self.kinds:
            label = pl.col(_LABELS[kind])
            columns |= {part_of(kind, "w_pos"): w * label, part_of(kind, "w_neg"): w * (1 - label)}
        return columns

    def decided(self, frame: pl.LazyFrame) -> pl.LazyFrame:
        """Mark the rows that are selected, and add what is summed over rows."""
        w, chance, label, times = (pl.col(n) for n in (OF_WEIGHT, CHANCE, LABEL, REPEATS))
        columns = {
            **self._weights,
            _SQUARES: w * w / times,
            _OWN: w * w * chance * (1 - chance) / times,
            _IMPOSSIBLE: times * ((chance - label).abs() == 1),
        }
        if self.threshold is not None:
            chosen = at_least(pl.col(SCORE), pl.lit(self.threshold))
            columns[CHOSEN] = chosen.cast(pl.Float64)
        return frame.with_columns(**columns)

    def ranked(
        self, frame: pl.LazyFrame, keys: Sequence[str], *, by_score: bool = False
    ) -> pl.LazyFrame:
        """Add to each row the weight of each class with a lower score, ties counting half.

        If ``by_score``, rows with the same score are added up instead.
        """
        here = {
            part_of(kind, f"w_{side}"): part_of(kind, f"{side}_below")
            for kind in self.kinds
            for side in ("pos", "neg")
        }
        sums = [*here, _OWN] if by_score else [*here]
        chosen = [CHOSEN] if by_score and self.rates else []
        # Differences of cumulative sums: one sort is faster than to group by so many scores.
        scores = frame.select(*keys, SCORE, *sums, *chosen).sort(SCORE)
        ends = pl.col(SCORE).ne_missing(pl.col(SCORE).shift(-1))
        to_here = {name: over(pl.col(name).cum_sum(), keys) for name in sums}
        scores = scores.with_columns(over(ends, keys).alias(_ENDS), **to_here).filter(_ENDS)
        before = {name: pl.col(name).shift(1, fill_value=0.0) for name in sums}
        of_score = {name: over(pl.col(name) - before[name], keys) for name in sums}
        below = {here[name]: over((pl.col(name) + before[name]) / 2, keys) for name in here}
        if by_score:
            return scores.with_columns(**of_score, **below)
        return join_on_keys(frame, scores.select(*keys, SCORE, **below), [*keys, SCORE])

    def values(
        self, decided: pl.LazyFrame, ranked: pl.LazyFrame, keys: Sequence[str]
    ) -> pl.LazyFrame:
        """Aggregate each group to its values, from ranked rows only where ranks matter."""
        squares = pl.col(_SQUARES).sum()
        of_rows = {
            "n": pl.col(REPEATS).sum().cast(pl.Int64),
            "n_impossible": pl.col(_IMPOSSIBLE).sum().cast(pl.Int64),
            _KISH: pl.when(is_exact(squares)).then(pl.col(OF_WEIGHT).sum() / squares),
        }
        sums = {_OWN: pl.col(_OWN).sum()}
        for kind in self.kinds:
            pos, neg = (pl.col(part_of(kind, name)) for name in ("w_pos", "w_neg"))
            sums |= {part_of(kind, "pos"): pos.sum(), part_of(kind, "neg"): neg.sum()}
            right = pos * pl.col(part_of(kind, "neg_below"))
            sums[part_of(kind, AUC, "part")] = right.sum()
            for rate in self.rates:
                terms = self._terms(rate, pos, neg)
                for name, term in zip(("part", "whole"), terms, strict=True):
                    sums[part_of(kind, rate, name)] = term.sum()
        if self.rates:
            for cell, side in (("tp", "w_pos"), ("fp", "w_neg")):
                weight = pl.col(part_of(EXPECTED, side))
                sums[part_of(cell)] = (pl.col(CHOSEN) * weight).sum()
        counted = aggregate(decided, keys, of_rows)
        values = join_on_keys(aggregate(ranked, keys, sums), counted, keys)
        return values.with_columns(**self._of_sums())

    def _of_sums(self) -> dict[str, pl.Expr]:
        columns = dict[str, pl.Expr]()
        for kind in self.kinds:
            pos, neg = (pl.col(part_of(kind, side)) for side in ("pos", "neg"))
            auc = ratio(ratio(pl.col(part_of(kind, AUC, "part")), pos), neg)
            columns[part_of(kind, AUC)] = pl.when(is_exact(pos * neg)).then(auc)
            for rate in self.rates:
                whole = pl.col(part_of(kind, rate, "whole"))
                columns[part_of(kind, rate)] = ratio(pl.col(part_of(kind, rate, "part")), whole)
        pos, neg = (pl.col(part_of(EXPECTED, side)) for side in ("pos", "neg"))
        # A row is no pair with itself, although it may be of either class.
        own = ratio(ratio(pl.col(_OWN), pos), neg)
        others = pl.when(1 - own > ROUNDING).then(1 - own)
        columns[part_of(AUC)] = (columns[part_of(EXPECTED, AUC)] - own / 2) / others
        columns |= {part_of(rate): columns[part_of(EXPECTED, rate)] for rate in self.rates}
        columns[part_of(FEWEST, AUC)] = pl.col(_KISH) * pl.min_horizontal(pos, neg)
        if self.rates:
            tp, fp = (pl.col(part_of(cell)) for cell in ("tp", "fp"))
            cells = pl.min_horizontal(tp, fp, pos - tp, neg - fp)
            columns |= {part_of(FEWEST, rate): pl.col(_KISH) * cells for rate in self.rates}
        return columns

    def _slopes(self, kind: str, metric: str) -> tuple[pl.Expr, pl.Expr]:
        """Influence on a metric of a row of weight 1, if it is positive and if it is negative."""
        value = pl.col(part_of(kind, metric))
        if metric == AUC:
            pos, neg = (pl.col(part_of(kind, side)) for side in ("pos", "neg"))
            below = pl.col(part_of(kind, "neg_below")) / neg
            above = 1 - pl.col(part_of(kind, "pos_below")) / pos
            return (below - value) / pos, (above - value) / neg
        both = pl.lit(1.0), pl.lit(0.0)
        one, none = (self._terms(metric, *weights) for weights in (both, both[::-1]))
        whole = pl.col(part_of(kind, metric, "whole"))
        return (one[0] - value * one[1]) / whole, (none[0] - value * none[1]) / whole

    def influences(self, metrics: Sequence[str]) -> dict[str, pl.Expr]:
        """Columns of rows that have the values of their group.

        Of each metric the influence on the ``expected`` value and on the ``excess`` over it, and
        the derivative by the ``label``.
        """
        columns = dict[str, pl.Expr]()
        for metric in metrics:
            influences = {}
            for kind in self.kinds:
                pos, neg = (pl.col(part_of(kind, name)) for name in ("w_pos", "w_neg"))
                positive, negative = self._slopes(kind, metric)
                influences[kind] = pos * positive + neg * negative
                if kind == EXPECTED:
                    columns[part_of(metric, "label")] = positive - negative
            columns[part_of(metric, EXPECTED)] = influences[EXPECTED]
            if self.labelled:
                columns[part_of(metric, "excess")] = influences[OBSERVED] - influences[EXPECTED]
        return columns

    def errors(self, rows: Rows, moved: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
        """Compute the errors of each group if the probabilities are right, from `influences`.

        With a design they come from the totals of its units, with their degrees of freedom.
        """
        slopes = {part_of(name, "error"): pl.col(part_of(name, "label")) for name in self.names}
        if rows.design is None:
            sums = {name: (pl.col(_OWN) * slope**2).sum().sqrt() for name, slope in slopes.items()}
            return aggregate(moved, keys, sums)
        off = pl.col(OF_WEIGHT) * (pl.col(LABEL) - pl.col(CHANCE))
        totals = unit_totals(moved, keys, {name: (off * h).sum() for name, h in slopes.items()})
        products = {name: (name, name) for name in slopes}
        variances = linear_variances(totals, keys, rows.design, products)
        return variances.with_columns(pl.col(*products).sqrt())

    def row(self, metric: str, level: float, *, designed: bool) -> dict[str, pl.Expr]:
        """Compute the row of a metric from the values and errors of a group."""
        expected, value = pl.col(part_of(metric)), pl.col(part_of(OBSERVED, metric))
        enough = pl.col(part_of(FEWEST, metric)) >= LEAST_ROWS
        error = if_enough(level, pl.when(enough).then(part_of(metric, "error")), pl.col("n"))
        margin = limit_quantile(pl.col, level, designed=designed) * error
        # A net benefit may be below 0.
        least = None if metric == NET_BENEFIT else 0.0
        row = {
            "metric": pl.lit(metric),
            "n_pos_expected": pl.col(part_of(EXPECTED, "pos")),
            "n_neg_expected": pl.col(part_of(EXPECTED, "neg")),
            "expected": expected,
            "expected_low": (expected - margin).clip(lower_bound=least),
            "expected_high": (expected + margin).clip(upper_bound=1.0),
        }
        if self.labelled:
            p_value = p_value_of(value - expected, error, level, designed=designed)
            row |= {"value": value, "excess": value - expected, "p_value": p_value}
        return row


def p_value_of(excess: pl.Expr, error: pl.Expr, level: float, *, designed: bool) -> pl.Expr:
    """Test that an excess is chance; null without an error."""
    score = excess / pl.when(error > 0).then(error)
    p_value = student_p_value(score, design_df(pl.col)) if designed else two_sided_p_value(score)
    return p_value_at(level, p_value)
