"""Calibration within groups: how often it comes true what a score promises, bin by bin."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import polars as pl

from polars_wroc.inputs import arguments
from polars_wroc.inputs.arguments import WeightType
from polars_wroc.inputs.columns import SCORE, WEIGHT, IntoColumn
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.rows import IntoColumns, Rows, class_weights
from polars_wroc.plans.by_keys import join_on_keys, over
from polars_wroc.plans.checks import probability
from polars_wroc.plans.collect import FrameT, like_input
from polars_wroc.plans.steps import Fields, Step, in_columns
from polars_wroc.ranking.confusion_curve import is_divisor
from polars_wroc.ranking.cumulative_sums import FP, NEGATIVES, POSITIVES, TP, by_descending_score
from polars_wroc.ranking.placements import add_placements
from polars_wroc.stats.differences import Estimate
from polars_wroc.stats.proportions import TOLERANCE, Proportions, WeightedCount, proportion

IN_THE_LARGE = "calibration_in_the_large"
_RATE = "observed_rate"
_PROMISED = "__promised"
_SIDES = ("positive", "negative")
# The sums of weights and of their squares in each class, and of weighted scores.
CALIBRATION_SUMS = (
    *(f"__{side}{name}" for side in _SIDES for name in ("", "_squares")),
    _PROMISED,
)


def calibration_columns(difference: str) -> tuple[str, ...]:
    """Name what is known of the calibration of rows; the ``difference`` has a name of its own."""
    return ("n", "weight", "mean_score", *_ends(_RATE), *_ends(difference))


def _ends(name: str) -> tuple[str, str, str]:
    """Columns of a value and of its limits."""
    return name, f"{name}_low", f"{name}_high"


def calibration_sums(rows: Rows, weight_type: WeightType) -> dict[str, pl.Expr]:
    """Add up rows to all that `calibration_steps` needs but ``n``."""
    weights = class_weights(pl.col(WEIGHT))
    squares = weights if weight_type == "frequency" else class_weights(rows.signed_squares)
    promised = pl.col(SCORE).cast(pl.Float64) * (weights[0] + weights[1])
    sums = (weights[0], squares[0], weights[1], squares[1], promised)
    return {name: value.sum() for name, value in zip(CALIBRATION_SUMS, sums, strict=True)}


def calibration_steps(difference: str, level: float) -> list[Step]:
    """From sums over rows to what they promised and what came true."""

    def parts(field: Fields) -> dict[str, tuple[WeightedCount, WeightedCount]]:
        pos, neg = (
            WeightedCount(field(f"__{side}"), field(f"__{side}_squares")) for side in _SIDES
        )
        return {_RATE: (pos, neg)}

    def measure(field: Fields) -> dict[str, pl.Expr]:
        ((positive, negative),) = parts(field).values()
        total = (positive + negative).weight
        known = pl.when(is_divisor(total))
        rate = Estimate(*(known.then(value) for value in proportion(_RATE, field).estimate))
        mean = known.then(field(_PROMISED) / total)
        above = mean - rate.value, mean - rate.high, mean - rate.low
        return {
            "weight": total,
            "mean_score": mean,
            **dict(zip(_ends(_RATE), rate, strict=True)),
            **dict(zip(_ends(difference), above, strict=True)),
        }

    return [*Proportions(parts, level).steps, measure]


Strategy: TypeAlias = Literal["uniform", "quantile"]

_DIFFERENCE = "difference"
CALIBRATION_CURVE_COLUMNS = (
    *("bin", "score_min", "score_max"),
    *calibration_columns(_DIFFERENCE),
)
CALIBRATION_ERROR_COLUMNS = (
    *calibration_columns(IN_THE_LARGE),
    "expected_calibration_error",
    "maximum_calibration_error",
)


def calibration_curve(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoColumn | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    bins: int = 10,
    strategy: Strategy = "uniform",
    level: float = 0.95,
) -> FrameT:
    """Weighted share of positives beside the mean score, in bins of the score.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; of a lazy one nothing is computed.
    label, score, weight, by, pos_label
        As for `summary`; the score must lie between 0 and 1.
    bins
        How many bins to cut the scores of each group into.
    strategy
        ``"uniform"``: bins of the same width, each with its upper end, the first with 0 too.
        ``"quantile"``: bins of the same weight, as nearly as ties allow: a score is in bin ``k``
        when the share of the group's weight below it is at least ``(k - 1) / bins`` and less
        than ``k / bins``.
    level
        Confidence level of the intervals, from 0.001 to 0.9999.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model) and bin that has rows, sorted by the ``by`` columns, then
        by ``bin`` (Int64, from 1). After it come ``score_min, score_max`` (Float64), the
        smallest and the largest score in the bin; ``n`` (Int64 rows); and the Float64 columns
        ``weight``; ``mean_score``; ``observed_rate``, the share of positives, with its limits
        ``observed_rate_low, observed_rate_high``; and ``difference``, the mean score less the
        observed rate, with its limits ``difference_low, difference_high``. Rates and means are
        null where the weights add up to more than a number. Missing rows are in no bin.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for an option that does not exist and, at collect, for a score
        that is not between 0 and 1.

    Notes
    -----
    A difference above 0 is a score that promises too much. The limits of the rate are Wilson's,
    with effective numbers of rows where there are weights, and null where the squares of the
    weights are too small or too large for a number; those of the difference take the scores as
    they are. Equal curves of all groups are called calibration within groups [1]_.

    Without weights the uniform bins are those of scikit-learn. Its quantiles lie between two
    scores where ours are always one of them: the bins are the same where the number of rows is
    a multiple of the number of bins.

    References
    ----------
    .. [1] Kleinberg, J. et al. (2017), Innovations in Theoretical Computer Science.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [0, 0, 0, 1, 1], "s": [0.1, 0.3, 0.4, 0.7, 0.9]})
    >>> curve = wroc.calibration_curve(df, "y", "s", bins=2)
    >>> curve.select("bin", "score_max", "n", "mean_score", "observed_rate", "difference")
    shape: (2, 6)
    ┌─────┬───────────┬─────┬────────────┬───────────────┬────────────┐
    │ bin ┆ score_max ┆ n   ┆ mean_score ┆ observed_rate ┆ difference │
    │ --- ┆ ---       ┆ --- ┆ ---        ┆ ---           ┆ ---        │
    │ i64 ┆ f64       ┆ i64 ┆ f64        ┆ f64           ┆ f64        │
    ╞═════╪═══════════╪═════╪════════════╪═══════════════╪════════════╡
    │ 1   ┆ 0.4       ┆ 3   ┆ 0.266667   ┆ 0.0           ┆ 0.266667   │
    │ 2   ┆ 0.9       ┆ 2   ┆ 0.8        ┆ 1.0           ┆ -0.2       │
    └─────┴───────────┴─────┴────────────┴───────────────┴────────────┘
    """
    _check_options(bins, strategy, level)
    rows: Rows = read_rows(
        frame, label, score, weight, by, pos_label, result_columns=CALIBRATION_CURVE_COLUMNS
    )
    summed = _sums_of_bins(rows, bins, strategy).sort("bin")
    curve = rows.sorted_by_keys(in_columns(summed, calibration_steps(_DIFFERENCE, level)))
    return like_input(frame, curve.select(*rows.keys, *CALIBRATION_CURVE_COLUMNS))


def calibration_error(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoColumn | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    bins: int = 10,
    strategy: Strategy = "uniform",
    level: float = 0.95,
) -> FrameT:
    """Calibration in the large of each group, and expected and maximum calibration error.

    Parameters
    ----------
    frame, label, score, weight, by, pos_label, bins, strategy, level
        As for `calibration_curve`.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model), sorted by the ``by`` columns, with ``n`` (Int64 rows,
        without the missing) and the Float64 columns ``weight``; ``mean_score``;
        ``observed_rate``, the share of positives, with its limits ``observed_rate_low,
        observed_rate_high``; ``calibration_in_the_large``, the mean score less the observed
        rate, with its limits ``calibration_in_the_large_low, calibration_in_the_large_high``;
        ``expected_calibration_error``, the mean over the bins, by their weight, of how far
        the mean score is from the observed rate [1]_; and ``maximum_calibration_error``, the
        furthest. All but the first two are null where no row has weight, or where the weights
        add up to more than a number.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `calibration_curve`.

    Notes
    -----
    The limits are those of one bin with all rows: they take the scores as they are, and are
    wide for a score that tells the classes apart. Both errors depend on the bins, and by chance
    alone are above 0, the more so the fewer rows there are in a bin: of groups of different
    sizes compare the ``calibration_in_the_large``.

    References
    ----------
    .. [1] Naeini, M. P. et al. (2015), Proceedings of the AAAI Conference 29.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [0, 0, 0, 1, 1], "s": [0.1, 0.3, 0.4, 0.7, 0.9]})
    >>> table = wroc.calibration_error(df, "y", "s", bins=2)
    >>> table.select("n", "mean_score", "observed_rate", "expected_calibration_error")
    shape: (1, 4)
    ┌─────┬────────────┬───────────────┬────────────────────────────┐
    │ n   ┆ mean_score ┆ observed_rate ┆ expected_calibration_error │
    │ --- ┆ ---        ┆ ---           ┆ ---                        │
    │ i64 ┆ f64        ┆ f64           ┆ f64                        │
    ╞═════╪════════════╪═══════════════╪════════════════════════════╡
    │ 5   ┆ 0.48       ┆ 0.4           ┆ 0.24                       │
    └─────┴────────────┴───────────────┴────────────────────────────┘
    """
    _check_options(bins, strategy, level)
    rows: Rows = read_rows(
        frame, label, score, weight, by, pos_label, result_columns=CALIBRATION_ERROR_COLUMNS
    )
    by_bin = in_columns(_sums_of_bins(rows, bins, strategy), calibration_steps(_DIFFERENCE, level))
    far, here = pl.col(_DIFFERENCE).abs(), pl.col("weight")
    whole = pl.when((here.sum() > 0) & here.sum().is_finite())
    sums = {name: pl.col(name).sum() for name in ("n", *CALIBRATION_SUMS)}
    table = rows.aggregate(
        by_bin,
        {
            **sums,
            "expected_calibration_error": whole.then((far * here).sum() / here.sum()),
            "maximum_calibration_error": whole.then(far.max()),
        },
    )
    if rows.keys:
        # A group of missing rows only is in no bin.
        table = join_on_keys(rows.key_values(), table, rows.keys)
    filled = table.with_columns(pl.col("n", *CALIBRATION_SUMS).fill_null(0))
    measured = rows.sorted_by_keys(in_columns(filled, calibration_steps(IN_THE_LARGE, level)))
    return like_input(frame, measured.select(*rows.keys, *CALIBRATION_ERROR_COLUMNS))


def _check_options(bins: object, strategy: object, level: object) -> None:
    arguments.whole_number("bins", bins, low=1)
    arguments.option("strategy", strategy, get_args(Strategy))
    arguments.level(level)


def _sums_of_bins(rows: Rows, bins: int, strategy: Strategy) -> pl.LazyFrame:
    """Add up the rows of each bin that has any."""
    if rows.binned:
        msg = "`counts` must be by score for a calibration; found counts in bins of scores"
        raise ValueError(msg)
    score = probability("score", pl.col(SCORE).cast(pl.Float64))
    checked = Rows(rows.frame.with_columns(score.alias(SCORE)), rows.keys)
    if strategy == "quantile":
        sorted_rows = by_descending_score(checked)
        placed = add_placements(sorted_rows, rows.keys, checked.observations.signed_weight)
        binned = placed.with_columns(bin=_quantile_bin(bins))
    else:
        weight = over(checked.observations.signed_weight, rows.keys)
        binned = checked.frame.with_columns(weight.alias(WEIGHT), bin=_uniform_bin(bins))
    there = binned.filter(pl.col(SCORE).is_not_null())
    return there.group_by(*rows.keys, "bin").agg(
        pl.col(SCORE).min().alias("score_min"),
        pl.col(SCORE).max().alias("score_max"),
        rows.count_where(pl.col(SCORE).is_not_null()).alias("n"),
        **calibration_sums(rows, "probability"),
    )


def _uniform_bin(bins: int) -> pl.Expr:
    """Number the bin that a score is in or at the upper end of."""
    score = pl.col(SCORE)
    near = (score * bins).ceil()
    # A product that was rounded past an end.
    low, high = (near - 1) / bins, near / bins
    number = near + (score > high).cast(pl.Float64) - (score <= low).cast(pl.Float64)
    return number.clip(1, bins).cast(pl.Int64)


def _quantile_bin(bins: int) -> pl.Expr:
    """Number the bin by the share of the weight below a score."""
    total = pl.col(POSITIVES) + pl.col(NEGATIVES)
    below = (total - pl.col(TP) - pl.col(FP)) / total
    number = ((below + TOLERANCE) * bins).floor() + 1
    return pl.when(total.is_finite()).then(number.clip(1, bins)).otherwise(1.0).cast(pl.Int64)
