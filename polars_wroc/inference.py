"""The uncertainty of an AUC: its variance, and intervals that hold in small groups too.

Two sums over the curve per class give the variance, so that it comes out of the same sort
as the AUC. Near an AUC of 1 everything is written in what is missing from 1, which rounding
would otherwise swallow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import polars as pl

from polars_wroc import inputs, metrics
from polars_wroc.confusion import ClassWeights, Curve
from polars_wroc.quantiles import normal_quantile, student_quantile
from polars_wroc.staged import Fields, Step

Method: TypeAlias = Literal["logit-t", "logit", "wald", "newcombe", "conservative"]
WeightType: TypeAlias = Literal["probability", "frequency"]

INTERVAL_COLUMNS = ("auc", "se", "ci_low", "ci_high", "ci_method", "n_eff_pos", "n_eff_neg")
# Enough for nine digits.
_NEWCOMBE_STEPS = 9
# Below this share of its largest possible value a sum of weights is one row's.
_ONE_ROW = 1e-12


@dataclass(frozen=True)
class Interval:
    """Which interval to compute, and what a weight means."""

    level: float
    method: Method
    weight_type: WeightType

    def __post_init__(self) -> None:
        """Check the options."""
        inputs.number("level", self.level, low=0, high=1, open_ends=True)
        inputs.option("method", self.method, get_args(Method))
        inputs.option("weight_type", self.weight_type, get_args(WeightType))

    @property
    def needs_powers(self) -> bool:
        """Whether sums of squared and cubed weights go into the variance."""
        return self.weight_type == "probability"

    def sums(self, curve: Curve) -> dict[str, pl.Expr]:
        """Aggregate a curve to all that `steps` need."""
        frequency = self.weight_type == "frequency"
        return {
            "auc": metrics.roc_auc(curve),
            "__missing": curve.if_both_classes((curve.dp * curve.fpr_middle).sum())
            / curve.positives,
            **_class_sums("pos", curve.pos, curve.fpr_middle, frequency=frequency),
            **_class_sums("neg", curve.neg, curve.fnr_middle, frequency=frequency),
        }

    @property
    def steps(self) -> list[Step]:
        """From the sums of a group to the columns of its interval."""
        quantile = normal_quantile((1 + self.level) / 2)
        newcombe = _newcombe_step(quantile)
        return [
            self._components,
            _variance,
            _newcombe_start,
            *[newcombe] * _NEWCOMBE_STEPS,
            self._limits,
            self._result,
        ]

    def _components(self, field: Fields) -> dict[str, pl.Expr]:
        columns = {}
        for side in ("pos", "neg"):
            total, squares, cubes = (field(f"__{name}_{side}") for name in ("w", "w2", "w3"))
            first, second = field(f"__m1_{side}"), field(f"__m2_{side}")
            missing = field("__missing")
            if self.weight_type == "frequency":
                base = total
                factor = pl.when(total > 1).then(total / (total - 1))
                effective = total
            else:
                base = squares
                unbiased = squares - 2 * cubes / total + (squares / total) ** 2
                factor = pl.when(unbiased > _ONE_ROW * squares).then(squares / unbiased)
                effective = total**2 / squares
            spread = second - 2 * missing * first + missing**2 * base
            columns[f"__v_{side}"] = factor * spread.clip(lower_bound=0.0) / total**2
            columns[f"n_eff_{side}"] = pl.when(total > 0).then(effective)
        return columns

    def _limits(self, field: Fields) -> dict[str, pl.Expr]:
        auc, missing, variance = field("auc"), field("__missing"), field("__variance")
        tail = (1 + self.level) / 2
        normal = pl.lit(normal_quantile(tail))
        if self.method == "wald":
            margin = normal * variance.sqrt()
            low, high = (auc - margin).clip(0.0, 1.0), (auc + margin).clip(0.0, 1.0)
        else:
            small_sample = self.method in ("logit-t", "conservative")
            quantile = student_quantile(tail, field("__df")) if small_sample else normal
            margin = quantile * variance.sqrt() / (auc * missing)
            logit = (auc / missing).log()
            low, high = (1 / (1 + (-(logit + side)).exp()) for side in (-margin, margin))
        if self.method == "conservative":
            low = pl.min_horizontal(low, field("__low"))
            high = pl.max_horizontal(high, field("__high"))
        return {"__analytic_low": low, "__analytic_high": high}

    def _result(self, field: Fields) -> dict[str, pl.Expr]:
        analytic = pl.lit(self.method != "newcombe") & field("__regular")
        known = field("auc").is_not_null()
        return {
            "se": field("__variance").sqrt(),
            "ci_low": pl.when(analytic).then(field("__analytic_low")).otherwise(field("__low")),
            "ci_high": pl.when(analytic).then(field("__analytic_high")).otherwise(field("__high")),
            "ci_method": pl.when(known & analytic)
            .then(pl.lit(self.method))
            .when(known)
            .then(pl.lit("newcombe")),
        }


def _class_sums(
    side: str, weights: ClassWeights, placement: pl.Expr, *, frequency: bool
) -> dict[str, pl.Expr]:
    """Total weights of a class and the first two moments of what its rows miss."""
    mass = weights.mass if frequency else weights.mass2
    return {
        f"__w_{side}": weights.total,
        f"__w2_{side}": weights.squares,
        f"__w3_{side}": weights.cubes,
        f"__m1_{side}": (mass * placement).sum(),
        f"__m2_{side}": (mass * placement * placement).sum(),
    }


def _variance(field: Fields) -> dict[str, pl.Expr]:
    """Add up the classes, with Satterthwaite's degrees of freedom."""
    pos, neg = field("__v_pos"), field("__v_neg")
    variance = pos + neg
    spread = pl.lit(0.0)
    for side in ("pos", "neg"):
        spread += field(f"__v_{side}") ** 2 / (field(f"n_eff_{side}") - 1).clip(lower_bound=1.0)
    regular = (variance > 0) & (field("auc") > 0) & (field("__missing") > 0)
    return {
        "__variance": variance,
        "__df": (variance**2 / spread).clip(lower_bound=1.0),
        "__regular": regular.fill_null(value=False),
    }


def _newcombe_start(field: Fields) -> dict[str, pl.Expr]:
    pos, neg = field("n_eff_pos"), field("n_eff_neg")
    return {
        "__low": field("auc"),
        "__high": field("auc"),
        "__pairs": pos * neg,
        "__more": (pos + neg) / 2 - 1,
    }


def _newcombe_step(quantile: float) -> Step:
    """Improve the two solutions of ``(auc - x)**2 = quantile**2 * V(x)``.

    Newcombe's variance of exponential scores, with both class sizes set to their mean, is
    ``x * (1 - x)`` times a factor that hardly changes with x. With the factor held fast the
    equation is Wilson's, which has a closed form; each step wins a digit.
    """

    def step(field: Fields) -> dict[str, pl.Expr]:
        auc = field("auc")
        columns = {}
        for name, side in (("__low", -1), ("__high", 1)):
            x = field(name)
            pairs = (1 - x) / (2 - x) + x / (1 + x)
            half = quantile**2 / 2 * (1 + field("__more") * pairs) / field("__pairs")
            root = (2 * half * auc * (1 - auc) + half**2).sqrt()
            columns[name] = (auc + half + side * root) / (1 + 2 * half)
        return columns

    return step
