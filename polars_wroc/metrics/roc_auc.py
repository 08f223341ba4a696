"""Expressions of AUCs: with an interval, and of several classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from math import comb
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl

from polars_wroc import checks
from polars_wroc.bounds import PositiveInt
from polars_wroc.calls import check_call
from polars_wroc.checks import Limit
from polars_wroc.inputs.columns import (
    Frequency,
    IntoColumn,
    IntoWeight,
    column_of,
    exact,
    literal,
    shown_as,
)
from polars_wroc.inputs.expressions import from_expressions, one_column
from polars_wroc.looks import ConfidenceLevel, require_seen
from polars_wroc.metrics import auc_sums
from polars_wroc.metrics.curve_metrics import roc_auc
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.queries import build_by_types, require_at_collect
from polars_wroc.ranking.curve import Curve, fold
from polars_wroc.ranking.placements import place_lists, read_placements
from polars_wroc.rows import make_table
from polars_wroc.stats.aucs import AucMethod
from polars_wroc.stats.levels import Level
from polars_wroc.structs import as_struct


@check_call
def roc_auc_ci(
    label: IntoColumn,
    score: IntoColumn,
    *,
    weight: IntoWeight | None = None,
    pos_label: object = None,
    level: ConfidenceLevel = 0.95,
    method: AucMethod = "score",
) -> pl.Expr:
    """Return the weighted AUC with its standard error and confidence interval.

    Use it inside ``select``, ``group_by().agg()`` and ``over``; for clusters, surveys and replicate
    weights use `summary`.

    The main fields are:

    - ``auc``: the weighted AUC;
    - ``auc_low, auc_high``: its confidence limits;
    - ``auc_se``: its standard error.

    Parameters
    ----------
    label, score, weight, pos_label
        As for `roc_auc`.
    level
        Confidence level, from 0.001 to 0.9999, or `Looks`.
    method
        ``"score"``: a score-type interval, which keeps its level near 0 and 1 and with few rows,
        and is closest to it if weights depend on the score. ``"delong"``: the normal interval that
        other packages print, cut to 0 and 1; null where the variance is 0 or unknown, for example
        with perfect separation. ``"logit"``: the normal interval of the logit; null where
        ``"delong"`` is.

    Returns
    -------
    pl.Expr
        One struct per group, named ``roc_auc_ci``: ``auc, auc_se, auc_low, auc_high`` (Float64),
        ``ci_method`` (String) and ``n_eff_pos, n_eff_neg`` (Float64: Kish's effective numbers of
        rows). All but the effective numbers are null where a class has no weight. ``auc_se`` is
        null where a class has only one row. All but the AUC are null where squares of the weights
        overflow or underflow, and ``auc_se`` where their cubes do.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.InvalidOperationError
        As for `roc_auc`; also for an unknown option or a level out of range.

    Notes
    -----
    With weights of 1 the variance is DeLong's [1]_, otherwise a linearised one. ``"score"`` is this
    package's own method, built on Wilson's limits [2]_.
    [Formulas](../explanation/statistics.md#roc_auc_ci).

    References
    ----------
    .. [1] DeLong, E. R. et al. (1988), Biometrics 44, 837-845.
    .. [2] Wilson, E. B. (1927), Journal of the American Statistical Association 22, 209-212.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> patients = wroc.data.diabetes()
    >>> interval = patients.select(wroc.roc_auc_ci("progressed", "score", weight="weight"))
    >>> interval.unnest("roc_auc_ci").select(pl.col("auc", "auc_low", "auc_high").round(3))
    shape: (1, 3)
    ┌───────┬─────────┬──────────┐
    │ auc   ┆ auc_low ┆ auc_high │
    │ ---   ┆ ---     ┆ ---      │
    │ f64   ┆ f64     ┆ f64      │
    ╞═══════╪═════════╪══════════╡
    │ 0.835 ┆ 0.791   ┆ 0.871    │
    └───────┴─────────┴──────────┘
    """
    limit_sums = partial(_limit_aucs, level=Level.of(require_seen(level)), method=method)
    build = partial(_interval, limit_sums=limit_sums, frequency=isinstance(weight, Frequency))
    return from_expressions(label, score, weight, pos_label, build).alias("roc_auc_ci")


_CLASS_SUMS = ("n", "weight", "squares", "cubes", "first", "second")


def _interval(
    rows: pl.Expr, *, limit_sums: Callable[[pl.Series], pl.Series], frequency: bool
) -> pl.Expr:
    placed = read_placements()
    sums: dict[str, pl.Expr] = {}
    for side, (weight, placement) in (("pos", placed.pos), ("neg", placed.neg)):
        # A row with a frequency stands for rows that weigh 1 each.
        powers = [weight] * 3 if frequency else [weight, weight**2, weight**3]
        number = weight if frequency else (weight > 0).cast(pl.Float64)
        values = number, *powers, powers[1] * placement, powers[1] * placement**2
        for name, value in zip(_CLASS_SUMS, values, strict=True):
            sums[f"{name}_{side}"] = value.sum()
    sums["misranked"] = (placed.pos.weight * placed.pos.placement).sum()
    sums["ranked"] = (placed.neg.weight * placed.positives_above).sum()
    interval_sums = place_lists(rows).list.agg(as_struct(sums))
    return interval_sums.map_batches(
        limit_sums, return_dtype=pl.Struct(dict(auc_sums.INTERVAL_TYPES)), is_elementwise=True
    )


def _limit_aucs(sums: pl.Series, level: Level, method: AucMethod) -> pl.Series:
    """Return the interval of each struct of sums."""
    table = sums.struct.unnest().cast(pl.Float64)
    classes = {
        name: np.stack([table[f"{name}_{side}"].to_numpy() for side in ("pos", "neg")])
        for name in _CLASS_SUMS
    }
    unknown = np.full(table.height, np.nan)
    misranked, ranked = table["misranked"].to_numpy(), table["ranked"].to_numpy()
    aucs = auc_sums.AucSums(
        **classes, misranked=misranked, ranked=ranked, precision=unknown, distance=unknown
    )
    with np.errstate(all="ignore"):
        columns = auc_sums.interval_columns(aucs, auc_sums.estimate_aucs(aucs), level, method)
    table = make_table(columns).with_columns(pl.col(pl.Float64).fill_nan(None))
    return table.to_struct(sums.name)


MultiClass: TypeAlias = Literal["ovr", "ovo"]
Average: TypeAlias = Literal["macro", "weighted", "micro"]
_MOST_PAIRS = 500


@check_call
def roc_auc_multiclass(
    label: IntoColumn,
    scores: Mapping[Any, IntoColumn],
    *,
    multi_class: MultiClass = "ovr",
    average: Average = "macro",
    weight: IntoWeight | None = None,
    max_pairs: PositiveInt = _MOST_PAIRS,
) -> pl.Expr:
    """Return the weighted AUC for more than two classes: one against the rest, or pairs.

    Results agree with scikit-learn's ``roc_auc_score``, which has no weights for ``"ovo"``.

    Parameters
    ----------
    label
        Column name or expression of the class.
    scores
        Mapping from each class to the column name or expression of its score.
    multi_class
        ``"ovr"`` (one-vs-rest): each score ranks its class against all others together. ``"ovo"``
        (one-vs-one): against each other class; with ``average="macro"`` that is Hand and Till's M
        [1]_.
    average
        ``"macro"``: the plain mean over classes or pairs. ``"weighted"``: weighted by the weight of
        the class, or of both classes of the pair. ``"micro"``, for ``"ovr"`` only: one AUC of all
        rows and classes pooled.
    weight
        As for `roc_auc`.
    max_pairs
        For ``"ovo"``: largest number of pairs of classes. The default allows 32 classes.

    Returns
    -------
    pl.Expr
        One Float64 per group, named ``roc_auc_multiclass``, between 0 and 1. A class without weight
        is left out of the average; null where no class is left. A row with a null label or weight
        is left out, and one with a null or NaN score from the AUCs that use it.

    Raises
    ------
    TypeError, ValueError
        For an argument of the wrong type, fewer than two classes, or a class that the label cannot
        hold.
    polars.exceptions.InvalidOperationError
        At collect, for a label without a score, or an invalid weight.

    References
    ----------
    .. [1] Hand, D. J., Till, R. J. (2001), Machine Learning 45, 171-186.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame(
    ...     {
    ...         "y": ["a", "b", "c", "a", "b", "c"],
    ...         "a": [0.8, 0.3, 0.1, 0.5, 0.4, 0.6],
    ...         "b": [0.1, 0.5, 0.2, 0.3, 0.4, 0.1],
    ...         "c": [0.1, 0.2, 0.7, 0.2, 0.2, 0.3],
    ...     }
    ... )
    >>> scores = {"a": "a", "b": "b", "c": "c"}
    >>> df.select(wroc.roc_auc_multiclass("y", scores, multi_class="ovo")).item()
    0.9583333333333334
    """
    limit = Limit("max_pairs", max_pairs, "pairs", "scores")
    if average == "micro" and multi_class == "ovo":
        checks.reject("average", "be 'macro' or 'weighted' for multi_class='ovo'", "'micro'")
    if not isinstance(scores, Mapping):
        checks.reject_type("scores", "map each class to a column", scores)
    if len(scores) < 2 or None in scores:  # noqa: PLR2004  (two make a ranking)
        checks.reject("scores", "have two or more classes, none of them null", list(scores))
    if multi_class == "ovo":
        limit.check(comb(len(scores), 2))
    columns = {name: one_column("scores", column) for name, column in scores.items()}
    weights = None if weight is None else one_column("weight", column_of(weight))
    classes = _Classes(one_column("label", label), columns, weights)
    if average == "micro":
        value = classes.pooled_auc()
    else:
        aucs = [classes.auc(name) for name in columns]
        if multi_class == "ovo":
            pairs = permutations(columns, 2)
            aucs = [classes.auc(pair[0], _is_one_of(classes.label, pair)) for pair in pairs]
        value = pl.concat_list(aucs).list.agg(_mean(weighted=average == "weighted"))
    return value.alias("roc_auc_multiclass")


@dataclass(frozen=True)
class _Classes:
    """A label with the score of each class, and the AUCs of two classes."""

    label: pl.Expr
    scores: dict[Any, pl.Expr]
    weight: pl.Expr | None

    def _label(self, name: Any) -> pl.Expr:
        """Return the label for the score of a class; it is checked with the first class only."""
        classes = list(self.scores)
        return (
            _check_classes(self.label, classes, self.weight) if name == classes[0] else self.label
        )

    def pooled_auc(self) -> pl.Expr:
        """The AUC of all classes pooled: each row counts once for each class."""
        first, *others = self.scores
        label, score = _is_one_of(self._label(first), [first]), self.scores[first]
        weight = self.weight
        for name in others:
            label = label.append(_is_one_of(self.label, [name]))
            score = score.append(self.scores[name])
            weight = None if weight is None else weight.append(self.weight)
        return roc_auc(label, score, weight=weight)

    def auc(self, name: Any, rows: pl.Expr | None = None) -> pl.Expr:
        """The AUC of one class's score, of all or some rows, and its weight in a weighted mean."""

        def measure(curve: Curve) -> pl.Expr:
            size = curve.positives if rows is None else curve.positives + curve.negatives
            return as_struct({"auc": ROC_AUC(curve), "size": size})

        columns = [self._label(name), self.scores[name]] + (
            [] if self.weight is None else [self.weight]
        )
        if rows is not None:
            columns = [column.filter(rows) for column in columns]
        label, score, *weight = columns
        build = partial(fold, formula=measure)
        return from_expressions(label, score, weight[0] if weight else None, name, build)


def _mean(*, weighted: bool) -> pl.Expr:
    """Return the mean of the AUCs that are defined."""
    auc, size = (pl.element().struct.field(name) for name in ("auc", "size"))
    counted = pl.when(auc.is_not_null()).then(size if weighted else pl.lit(1.0))
    return pl.when(counted.sum() > 0).then((auc * counted).sum() / counted.sum())


def _is_one_of(label: pl.Expr, classes: Sequence[Any]) -> pl.Expr:
    """Return whether a label is one of some classes, which its type can hold."""

    def compare(columns: list[tuple[pl.Expr, pl.DataType]]) -> pl.Expr:
        ((column, dtype),) = columns
        held = [exact(name, dtype) for name in classes]
        return pl.any_horizontal(column == literal(one) for one in held if one is not None)

    return build_by_types([label], compare)


def _check_classes(label: pl.Expr, classes: list[Any], weight: pl.Expr | None) -> pl.Expr:
    """Return the label; raise for classes that it cannot hold and for labels of no class."""

    def check(columns: list[tuple[pl.Expr, pl.DataType]]) -> pl.Expr:
        (column, dtype), *weights = columns
        for name in classes:
            if exact(name, dtype) is None:
                msg = (
                    "`scores` must map possible values of the label; found "
                    f"{checks.show_value(name)} for {shown_as(column)} of type {dtype}"
                )
                raise TypeError(msg)
        known = _is_one_of(column, classes) | column.is_null()
        if weights:
            # Rows of weight zero are ignored, whatever their label.
            known |= weights[0][0].eq_missing(0) | weights[0][0].is_null()
        rule = f"`label` must hold the classes of `scores`, {classes}"
        return pl.when(require_at_collect(known, rule, column)).then(column)

    return build_by_types([label, *([] if weight is None else [weight])], check)
