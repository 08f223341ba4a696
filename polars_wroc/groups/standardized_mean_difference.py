"""Standardized mean differences of the scores of categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Literal, TypeAlias, get_args

import polars as pl

from polars_wroc.groups.categories import (
    COMPARED,
    SEGMENT,
    UNKNOWN,
    Categories,
    Intersections,
    read_categories,
)
from polars_wroc.groups.comparisons import FEW
from polars_wroc.groups.impact_ratios import MIN_SHARE
from polars_wroc.groups.references import IS_REFERENCE, other_name
from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import SCORE, WEIGHT, IntoWeight
from polars_wroc.inputs.decisions import Unknown
from polars_wroc.inputs.frames import read_rows, require_groups
from polars_wroc.inputs.rows import IntoColumns, Rows, polars_frame
from polars_wroc.plans.formulas import Columns, Fields, Formula, in_columns
from polars_wroc.plans.queries import FrameT, join_on_keys, like_input
from polars_wroc.stats.distributions import student_p_value, student_quantile
from polars_wroc.stats.moments import (
    Moments,
    combined,
    moment_columns,
    moments,
    moments_of_rows,
    others,
)
from polars_wroc.stats.proportions import TOLERANCE, is_exact

Denominator: TypeAlias = Literal["overall", "pooled", "reference"]

REST, REFERENCE = "rest", "reference"
SMD_COLUMNS = (
    "n",
    "weight",
    "mean_score",
    "sd_score",
    "reference",
    "reference_mean",
    "difference",
    "denominator_sd",
    "smd",
    "smd_low",
    "smd_high",
    "p_value",
    "excluded",
)
# Of a category, of all known ones, of all rows, and of the reference.
_OWN, _KNOWN, _ALL = "category", "known", "all_rows"
_OTHER = other_name(_OWN)
# The samples whose mean variance is the square of each denominator.
_BEHIND = {"overall": (_ALL,), "pooled": (_OWN, _OTHER), "reference": (_OTHER,)}
# With fewer effective rows in a group there are no limits.
FEWEST_ROWS = 25


@dataclass(frozen=True)
class SmdTable:
    """How the scores of categories are compared."""

    categories: Categories
    denominator: Denominator
    level: float

    def table(self, rows: Rows) -> pl.LazyFrame:
        """Compare the mean score of each category with that of its reference."""
        cells = self._cells(rows).cache()
        members = self.categories.members(cells, ["n", *moment_columns(_OWN)])
        added = self.categories.aggregates | {"n": pl.col("n").sum()}
        own = combined(members, self.categories.keys, _OWN, added)
        weighed = own.with_columns(weight=_finite(moments(_OWN, pl.col).weight))
        compared = self._with_reference(self._with_rest(self.categories.marked(weighed)))
        models = self.categories.models
        compared = join_on_keys(compared, _named(_ALL, cells, models), models)
        return self.categories.ordered(in_columns(compared, [self._compared]), SMD_COLUMNS)

    def _cells(self, rows: Rows) -> pl.LazyFrame:
        """Return the moments of all keys crossed."""
        weight = pl.col(WEIGHT).cast(pl.Float64).abs()
        squared = rows.signed_squares.abs()
        score = pl.col(SCORE).cast(pl.Float64)
        added = {"n": rows.count_where(weight.is_not_null())}
        return moments_of_rows(rows.frame, rows.keys, _OWN, score, weight, squared, added)

    def _with_rest(self, table: pl.LazyFrame) -> pl.LazyFrame:
        """Add the moments of the other known categories of each one, as `_OTHER`."""
        table, keys = table.cache(), self.categories.partition_keys
        joined = join_on_keys(table, _named(_KNOWN, table.filter(~pl.col(UNKNOWN)), keys), keys)
        return in_columns(joined, [_rest])

    def _with_reference(self, table: pl.LazyFrame) -> pl.LazyFrame:
        """Replace the rest where a category is named as reference, and name all references."""
        rest = {REFERENCE: pl.when(moments(_OTHER, pl.col).weight > 0).then(pl.lit(REST))}
        reference = self.categories.reference
        if not reference.named:
            return table.with_columns(**rest)
        of_category, of_other = (moments(name, pl.col).columns(name) for name in (_OWN, _OTHER))
        named = self.categories.with_reference(table, [SEGMENT, *of_category])
        columns = {REFERENCE: SEGMENT} | dict(zip(of_other, of_category, strict=True))
        is_named = pl.when(reference.is_named)
        return named.with_columns(
            is_named.then(other_name(own)).otherwise((of_other | rest)[column]).alias(column)
            for column, own in columns.items()
        )

    def _compared(self, field: Fields) -> Formula[Columns]:
        """Compute what is shown of each category."""
        samples = {name: moments(name, field) for name in (_OWN, _OTHER, _ALL)}
        own, other = samples[_OWN], samples[_OTHER]
        variances = [samples[name].variance for name in _BEHIND[self.denominator]]
        square = reduce(add, variances) / len(variances)
        (square,) = yield [pl.when((square > 0) & square.is_finite()).then(square)]
        difference, smd = yield [
            own.centre - other.centre,
            _finite((own.centre - other.centre) / square.sqrt()),
        ]
        parts, h2 = self._errors(samples, smd, square)
        *parts, of_own, of_other = yield [*parts, *h2]
        # Satterthwaite's degrees of freedom.
        total, h2 = reduce(add, parts), [of_own, of_other]
        groups = zip(parts, h2, strict=False)
        inverse = reduce(add, ((part / total) ** 2 * each / (1 - each) for part, each in groups))
        se, df = yield [total.sqrt(), (1 / inverse).clip(lower_bound=1.0)]
        known, is_known = pl.when(~field(UNKNOWN)), ~field(UNKNOWN) & ~field(IS_REFERENCE)
        few = pl.max_horizontal(h2) * FEWEST_ROWS > 1 + TOLERANCE
        noted = pl.when(is_known & few).then(pl.lit(f"{FEW}{FEWEST_ROWS} rows"))
        limited = is_known & ~few & (se > 0) & se.is_finite()
        tested = pl.when(field(COMPARED) & limited)
        margin = student_quantile((1 + self.level) / 2, df) * se
        return {
            "mean_score": _finite(own.centre),
            "sd_score": _finite(own.variance.sqrt()),
            REFERENCE: known.then(field(REFERENCE)),
            "reference_mean": known.then(_finite(other.centre)),
            "difference": known.then(_finite(difference)),
            "denominator_sd": known.then(square.sqrt()),
            "smd": known.then(smd),
            "smd_low": pl.when(limited).then(smd - margin),
            "smd_high": pl.when(limited).then(smd + margin),
            "p_value": tested.then(student_p_value(smd / se, df)),
            "excluded": field("excluded").fill_null(noted),
        }

    def _errors(
        self, samples: Mapping[str, Moments], smd: pl.Expr, square: pl.Expr
    ) -> tuple[list[pl.Expr], list[pl.Expr]]:
        """Return the parts of the variance, and the inverse effective sizes of both groups.

        The variance follows from the influences of rows on both means and the denominator. The
        rows of a sample behind the denominator have an influence on it of ``slope`` times the
        squared deviation from their centre less its mean. In each of both groups the squares are
        too small by the factor ``1 - h2``, as a variance about the group's own mean is. The last
        part is that of all other rows.
        """
        behind = _BEHIND[self.denominator]
        slopes = {name: -smd / (2 * square * len(behind) * samples[name].weight) for name in behind}
        # The influences of the rows of a sample add up to 0.
        means = {name: samples[name].squares / samples[name].weight for name in behind}

        def on_denominator(powers: Sequence[pl.Expr], sample: str) -> pl.Expr:
            mean, (zeroth, _, second, _, fourth) = means[sample], powers
            return slopes[sample] ** 2 * (fourth - 2 * mean * second + mean**2 * zeroth)

        # Of rows in neither group, which are behind the denominator of all rows only.
        left = on_denominator(samples[_ALL].powers, _ALL) if _ALL in behind else pl.lit(0.0)
        parts, sizes = [], []
        for name, sign in ((_OWN, 1), (_OTHER, -1)):
            each = samples[name]
            of_mean = sign / (each.weight * square.sqrt())
            variance = of_mean**2 * each.powers[2]
            # These rows are behind the denominator too, alone or among all.
            for sample in (one for one in behind if one in (name, _ALL)):
                shift = each.centre - samples[sample].centre
                product = each.powers[3] + 2 * shift * each.powers[2]
                product += (shift**2 - means[sample]) * each.powers[1]
                spread = on_denominator(each.about(samples[sample].centre).powers, sample)
                variance += spread + 2 * of_mean * slopes[sample] * product
                left -= spread if sample == _ALL else 0.0
            h2 = (each.powers[0] / each.weight / each.weight).fill_nan(None)
            parts.append(variance.clip(lower_bound=0.0) / (1 - h2))
            sizes.append(h2)
        sums = [each.powers[0] for each in samples.values()]
        sums.append(reduce(add, (samples[name].powers[4] for name in behind)))
        exact = pl.all_horizontal(is_exact(each) for each in sums)
        return [*parts, pl.when(exact).then(left.clip(lower_bound=0.0))], sizes


def _rest(field: Fields) -> Formula[Columns]:
    """Add the moments of the other known categories, about their own mean."""
    own, known = moments(_OWN, field), moments(_KNOWN, field)
    part = yield from own.about(known.centre).kept()
    left = yield from others(known, part).kept()
    shift = own.weight * (own.centre - known.centre).fill_null(0.0)
    (mean,) = yield [pl.when(left.weight > 0).then(known.centre - shift / left.weight)]
    return left.about_mean(mean).columns(_OTHER)


def _named(name: str, parts: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    """Combine the moments of categories to those of ``name``, one row for each of the keys."""
    whole = combined(parts, keys, _OWN, {})
    return whole.select(*keys, **moments(_OWN, pl.col).columns(name))


def _finite(value: pl.Expr) -> pl.Expr:
    return pl.when(value.is_finite()).then(value)


def standardized_mean_difference(
    frame: FrameT,
    score: IntoColumns,
    *,
    attributes: IntoColumns,
    intersections: Intersections = False,
    reference: object = "rest",
    denominator: Denominator = "overall",
    unknown: Unknown = "exclude",
    min_share: float = MIN_SHARE,
    weight: IntoWeight | None = None,
    level: float = 0.95,
) -> FrameT:
    """Standardized mean differences: how much lower or higher the scores of each category are.

    No label is needed. A category's mean score less that of the others is divided by a standard
    deviation, so that scores on different scales can be compared.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    score
        Column or numeric expression, or several.
    attributes, intersections, unknown, min_share
        The attributes and their categories: see `impact_ratios`.
    weight
        Column or expression; None gives each row the weight 1.
    reference
        ``"rest"``: all other known categories together. Or a mapping of attributes to categories,
        as in `impact_ratios`; the other attributes have the rest. With one attribute the category
        alone is enough.
    denominator
        The standard deviation that differences are divided by: ``"overall"``, that of all rows,
        which is the same for all categories [1]_; ``"pooled"``, the root of the mean of two
        variances, that of the category and that of its reference, whatever their sizes [2]_;
        ``"reference"``, that of the reference.
    level
        Confidence level of the intervals, from 0.001 to 0.9999.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per category (and model), in the order of `impact_ratios`. The columns are

        - ``attribute, segment`` (String) and, with several scores, ``model`` (String): see
          `impact_ratios`.
        - ``n`` (Int64), ``weight`` (Float64): rows and their weight.
        - ``mean_score, sd_score`` (Float64): mean and standard deviation of the scores.
        - ``reference`` (String), ``reference_mean`` (Float64): ``"rest"`` or the name of the
          category that this one is compared with, and its mean score.
        - ``difference, denominator_sd`` (Float64): difference of the means, and the standard
          deviation that it is divided by.
        - ``smd, smd_low, smd_high`` (Float64): the standardized difference, negative where the
          scores are lower than those of the reference, with its confidence interval.
        - ``p_value`` (Float64) of the test that there is no difference.
        - ``excluded`` (String): ``"small share"`` below ``min_share``, where there is no test,
          ``"unknown"``, where there is no difference either, ``"fewer than 25 rows"``, where there
          are neither limits nor a test, or null.

        A category that was named as reference has the difference 0, no limits and no test. Means
        are null without weight and where a score is infinite, standard deviations also with one
        row, and differences where the denominator is 0 or unknown; limits also where squares of
        the weights overflow or underflow, and where the category or its reference has fewer than 25
        effective rows (Kish's: the squared sum of the weights, divided by the sum of their
        squares).

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        For an unknown option, and as `summary` for columns and weights; at collect for a named
        reference that does not exist or is below ``min_share``.

    Notes
    -----
    Variances are unbiased: with weights their divisor is ``W - S / W``, of the sum of the weights
    and that of their squares, which is the number of rows less one without weights. The standard
    error is linearised: it adds up the squared influences of rows on both means and on the
    denominator, in each of both groups divided by ``1 - h2``, where ``1 / h2`` is its effective
    number of rows. Limits and the test use Student's t with Satterthwaite's degrees of freedom
    [3]_, as Welch's test does.

    Skewed scores, and weights that go with the score, are not solved: limits are too narrow where
    groups are small. In simulations with 25 effective rows and more, limits of 95 % covered 0.92 to
    0.94 of such differences, and 0.93 to 0.96 of others.

    References
    ----------
    .. [1] Gill, N. et al. (2020), Information 11, 137.
    .. [2] Austin, P. C. (2009), Statistics in Medicine 28, 3083-3107.
    .. [3] Satterthwaite, F. E. (1946), Biometrics Bulletin 2, 110-114.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"g": list("aaaabbbb"), "s": [1, 2, 3, 4, 2, 4, 6, 8]})
    >>> table = wroc.standardized_mean_difference(df, "s", attributes="g")
    >>> table.select("segment", pl.col("mean_score", "difference", "smd").round(4), "excluded")
    shape: (2, 5)
    ┌─────────┬────────────┬────────────┬─────────┬────────────────────┐
    │ segment ┆ mean_score ┆ difference ┆ smd     ┆ excluded           │
    │ ---     ┆ ---        ┆ ---        ┆ ---     ┆ ---                │
    │ str     ┆ f64        ┆ f64        ┆ f64     ┆ str                │
    ╞═════════╪════════════╪════════════╪═════════╪════════════════════╡
    │ a       ┆ 2.5        ┆ -2.5       ┆ -1.0801 ┆ fewer than 25 rows │
    │ b       ┆ 5.0        ┆ 2.5        ┆ 1.0801  ┆ fewer than 25 rows │
    └─────────┴────────────┴────────────┴─────────┴────────────────────┘
    """
    level = arguments.level(level)
    arguments.option("denominator", denominator, get_args(Denominator))
    require_groups(attributes, called="attributes")
    # Counts have no rows without a label.
    table = polars_frame(frame)
    rows = read_rows(table, None, score, weight, attributes, None, called="attributes")
    asked = unknown, intersections, reference, REST, min_share
    smd = SmdTable(read_categories(rows, *asked), denominator, level)
    return like_input(frame, smd.table(rows))
