"""Limits of decision and calibration curves by a design, linearised and replicated in NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib.resources import files
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import polars as pl
import pytest
import statsmodels.api as sm
from plain_calibration import intercept, slope
from plain_roc import wilson
from samplics.estimation import TaylorEstimator
from samplics.utils.types import PopParam
from scipy import stats

import polars_wroc as wroc

Array: TypeAlias = Any
# Estimates with the weights, and the influence of each row on each of them.
Estimator: TypeAlias = Callable[[pl.DataFrame, Array], tuple[Array, Array]]

STRATA, UNITS, REPLICATES, LEVEL = 6, 4, 6, 0.9
FAY = wroc.ReplicateWeights([f"r{i}" for i in range(REPLICATES)], "fay", rho=0.5)
DESIGNS: dict[str, Any] = {
    "clusters": pl.format("{} {}", "h", "c"),
    "survey": wroc.Survey("c", strata="h", fpc="f"),
    "replicates": FAY,
}


@pytest.fixture(scope="module")
def survey() -> pl.DataFrame:
    """Strata of four units whose rows are alike; each unit has rows of both groups in all bins."""
    random = np.random.default_rng(3)
    rows = 2_400
    stratum, unit = random.integers(0, STRATA, rows), random.integers(0, UNITS, rows)
    x = random.normal(size=rows) * 1.3 + random.normal(size=(STRATA, UNITS))[stratum, unit] * 0.5
    shared = random.normal(size=(STRATA, UNITS))[stratum, unit] * 0.4
    w = random.lognormal(sigma=0.4, size=rows)
    half = random.choice([0.5, 1.5], (REPLICATES, STRATA, UNITS))[:, stratum, unit]
    columns = {
        "h": stratum,
        "c": unit,
        "f": 0.1 + stratum / 20,
        "g": random.choice(["a", "b"], rows),
        "y": random.random(rows) < 1 / (1 + np.exp(0.3 - 0.8 * x - shared)),
        "s": 1 / (1 + np.exp(-x)),
        "w": w,
    }
    frame = pl.DataFrame(columns | {f"r{i}": w * factor for i, factor in enumerate(half)})
    return frame.with_columns(y=pl.when(pl.Series(random.random(rows) < 0.98)).then("y"))


class Part(NamedTuple):
    """Rows of a segment: label, score, and a mark of the complete rows of the segment."""

    y: Array
    s: Array
    inside: Array

    @classmethod
    def of(cls, frame: pl.DataFrame, where: pl.Expr) -> Part:
        inside = frame.select((where & pl.col("y").is_not_null()).alias("x"))["x"].to_numpy()
        y = frame["y"].fill_null(value=False).to_numpy()
        return cls(y.astype(float), frame["s"].to_numpy(), inside.astype(float))


Pair: TypeAlias = Callable[[Part], tuple[Array, Array]]


def ratios(*pairs: Pair, where: pl.Expr) -> Estimator:
    """Ratios of totals of the rows of a segment."""

    def estimates(frame: pl.DataFrame, w: Array) -> tuple[Array, Array]:
        part, values, influences = Part.of(frame, where), [], []
        for pair in pairs:
            above, below = (one * part.inside for one in pair(part))
            values.append((w * above).sum() / (w * below).sum())
            influences.append(w * (above - values[-1] * below) / (w * below).sum())
        return np.array(values), np.array(influences)

    return estimates


def regressions(where: pl.Expr) -> Estimator:
    """The intercept with a slope of 1, and the slope, by statsmodels."""

    def estimates(frame: pl.DataFrame, w: Array) -> tuple[Array, Array]:
        part, values, influences = Part.of(frame, where), [], []
        x = np.log(part.s / (1 - part.s))
        some = part.inside > 0
        for columns, offset in ((np.ones((len(x), 1)), x), (sm.add_constant(x), 0 * x)):
            given: dict[str, Any] = {"offset": offset[some], "var_weights": w[some]}
            model = sm.GLM(part.y[some], columns[some], sm.families.Binomial(), **given)
            params = model.fit(tol=1e-13, maxiter=100).params
            p = 1 / (1 + np.exp(-(columns @ params) - offset))
            weights = w * part.inside
            bread = np.linalg.inv((columns * (weights * p * (1 - p))[:, None]).T @ columns)
            values.append(params[-1])
            influences.append(weights * (part.y - p) * (columns @ bread[:, -1]))
        return np.array(values), np.array(influences)

    return estimates


def information(frame: pl.DataFrame, where: pl.Expr) -> tuple[Array, Array]:
    """What a unit of weight of each row says about the intercept and about the slope."""
    part, w = Part.of(frame, where), frame["w"].to_numpy()
    x, some, found = np.log(part.s / (1 - part.s)), part.inside > 0, []
    for columns, offset in ((np.ones((len(x), 1)), x), (sm.add_constant(x), 0 * x)):
        given: dict[str, Any] = {"offset": offset[some], "var_weights": w[some]}
        model = sm.GLM(part.y[some], columns[some], sm.families.Binomial(), **given)
        params = model.fit(tol=1e-13, maxiter=100).params
        p = 1 / (1 + np.exp(-(columns @ params) - offset))
        of_rows = part.inside * p * (1 - p)
        mean = np.average(x, weights=w * of_rows) if columns.shape[1] == 2 else x - 1
        found.append(of_rows * (x - mean) ** 2)
    return found[0], found[1]


def covariance(frame: pl.DataFrame, design: str, estimator: Estimator) -> tuple[Array, Array]:
    """Estimates, and their covariances by unit totals in their strata, or by plain replication."""
    values, influences = estimator(frame, frame["w"].to_numpy())
    if design == "replicates":
        each = [estimator(frame, frame[f"r{i}"].to_numpy())[0] for i in range(REPLICATES)]
        away = np.array(each) - values
        return values, away.T @ away / (REPLICATES * 0.25)
    totals = np.zeros((len(values), STRATA, UNITS))
    for row, of_row in enumerate(influences):
        np.add.at(totals[row], (frame["h"].to_numpy(), frame["c"].to_numpy()), of_row)
    if design == "clusters":
        totals = totals.reshape(len(values), 1, -1)
    n = totals.shape[2]
    centred = totals - totals.mean(axis=2, keepdims=True)
    left = 1 - (0.1 + np.arange(STRATA) / 20 if design == "survey" else np.zeros(1))
    return values, np.einsum("h,ahu,bhu->ab", left * n / (n - 1), centred, centred)


def factors_of_clusters(frame: pl.DataFrame, design: str, *bases: Array) -> Array:
    """What replaces n / (n - 1) for clusters, by their shares of the bases of two estimates each.

    ``bases`` mark the rows in the denominators of the estimates.
    """
    if design != "clusters":
        return np.ones((len(bases), len(bases)))
    number = STRATA * UNITS
    cluster = frame["h"].to_numpy() * UNITS + frame["c"].to_numpy()
    roots = []
    for base in bases:
        total = np.bincount(cluster, frame["w"].to_numpy() * base, number)
        share = total / total.sum()
        s2, s3 = (share**2).sum(), (share**3).sum()
        roots.append(math.sqrt(s2 / (s2 - 2 * s3 + s2**2)))
    return np.outer(roots, roots) * (number - 1) / number


DF = {"clusters": STRATA * UNITS - 1, "survey": STRATA * (UNITS - 1), "replicates": REPLICATES - 1}


def quantile(design: str) -> float:
    return float(stats.t.ppf((1 + LEVEL) / 2, DF[design]))


def wilson_by_design(
    frame: pl.DataFrame, design: str, value: float, variance: float, where: pl.Expr
) -> tuple[float, float]:
    """Wilson's limits with the size by the design, at most Kish's, and Student's quantile."""
    w = frame.filter(where & pl.col("y").is_not_null())["w"].to_numpy()
    size = min(value * (1 - value) / variance, w.sum() ** 2 / (w**2).sum())
    return wilson(value, size, 2 * float(stats.norm.cdf(quantile(design))) - 1)


def ends(table: pl.DataFrame, name: str) -> tuple[float, ...]:
    return table.select(name, f"{name}_low", f"{name}_high").row(0)


@pytest.mark.parametrize("design", DESIGNS)
def test_calibration_summary(survey: pl.DataFrame, design: str) -> None:
    given: dict[str, Any] = {"weight": "w", "by": "g", "level": LEVEL, "design": DESIGNS[design]}
    table, found_larger = wroc.calibration_summary(survey, "y", "s", **given), set[bool]()
    for group in ("a", "b"):
        row, where = table.filter(g=group), pl.col("g") == group
        estimator = ratios(
            lambda p: (p.y, np.ones_like(p.y)),
            lambda p: (p.s - p.y, np.ones_like(p.y)),
            lambda p: (p.y, p.s),
            where=where,
        )
        (rate, large, oe), variances = covariance(survey, design, estimator)
        inside = Part.of(survey, where).inside
        bases = inside, inside, inside * survey["s"].to_numpy()
        variances *= factors_of_clusters(survey, design, *bases)
        t, (_, of_large, of_oe) = quantile(design), np.sqrt(np.diag(variances))
        expected = wilson_by_design(survey, design, rate, variances[0, 0], where)
        assert ends(row, "observed_rate") == pytest.approx((rate, *expected), rel=1e-9)
        limits = large - t * of_large, large + t * of_large
        assert ends(row, "mean_calibration_error") == pytest.approx((large, *limits), rel=1e-9)
        factor = math.exp(t * of_oe / oe)
        assert ends(row, "oe_ratio") == pytest.approx((oe, oe / factor, oe * factor), rel=1e-9)
        values, variances = covariance(survey, design, regressions(where))
        variances *= factors_of_clusters(survey, design, *information(survey, where))
        complete = survey.filter(where).drop_nulls()
        y, s, w = (complete[name].cast(float).to_numpy() for name in ("y", "s", "w"))
        # At least those of independent rows.
        least = [of(y, s, w, w**2).se for of in (intercept, slope)]
        errors = np.maximum(np.sqrt(np.diag(variances)), least)
        found_larger.update(np.sqrt(np.diag(variances)) > least)
        for name, value, error in zip(("intercept", "slope"), values, errors, strict=True):
            limits = value - t * error, value + t * error
            found = ends(row, f"calibration_{name}")
            assert found == pytest.approx((value, *limits), rel=1e-7), name
        assert row["calibration_slope_se"].item() == pytest.approx(errors[1], rel=1e-7)
    assert True in found_larger


def test_statsmodels_has_the_slope_in_clusters(survey: pl.DataFrame) -> None:
    complete = survey.drop_nulls()
    cluster = complete["h"].to_numpy() * UNITS + complete["c"].to_numpy()
    s = complete["s"].to_numpy()
    columns, family = sm.add_constant(np.log(s / (1 - s))), sm.families.Binomial()
    # With weights it does not know clusters.
    model = sm.GLM(complete["y"].to_numpy().astype(float), columns, family)
    kinds: dict[str, Any] = {"groups": cluster, "use_correction": False}
    error = model.fit(tol=1e-13, maxiter=99, cov_type="cluster", cov_kwds=kinds).bse[1]
    table = wroc.calibration_summary(survey, "y", "s", design=DESIGNS["clusters"])
    of_slope = information(survey.with_columns(w=1.0), pl.lit(value=True))[1]
    factor = factors_of_clusters(survey.with_columns(w=1.0), "clusters", of_slope).item()
    units = STRATA * UNITS
    expected = error * math.sqrt(factor * units / (units - 1))
    assert table["calibration_slope_se"].item() == pytest.approx(expected, rel=1e-6)
    independent = wroc.calibration_summary(survey, "y", "s")["calibration_slope_se"].item()
    assert expected > independent


@pytest.mark.parametrize("design", DESIGNS)
def test_calibration_curve(survey: pl.DataFrame, design: str) -> None:
    given: dict[str, Any] = {"weight": "w", "by": "g", "level": LEVEL, "design": DESIGNS[design]}
    table = wroc.calibration_curve(survey, "y", "s", bins=3, **given)
    assert table.height == 6
    for row in table.iter_rows(named=True):
        number = (pl.col("s") * 3).ceil()
        where = (pl.col("g") == row["g"]) & (number == row["bin"])
        estimator = ratios(lambda p: (p.y, np.ones_like(p.y)), where=where)
        (rate,), variance = covariance(survey, design, estimator)
        variance *= factors_of_clusters(survey, design, Part.of(survey, where).inside)
        low, high = wilson_by_design(survey, design, rate, variance[0, 0], where)
        limits = rate, low, high, row["mean_score"] - high, row["mean_score"] - low
        names = [f"observed_rate{end}" for end in ("", "_low", "_high")]
        names += ["mean_calibration_error_low", "mean_calibration_error_high"]
        assert [row[name] for name in names] == pytest.approx(limits, rel=1e-9, abs=1e-12)


def parts_of_benefit(threshold: float, *, of_rows: bool) -> list[Pair]:
    """Selected positives and negatives, of all rows or of their class; their sum, of positives."""

    def tp(p: Part) -> tuple[Array, Array]:
        return (p.s >= threshold) * p.y, p.y**0 if of_rows else p.y

    def fp(p: Part) -> tuple[Array, Array]:
        return (p.s >= threshold) * (1 - p.y), p.y**0 if of_rows else 1 - p.y

    def both(p: Part) -> tuple[Array, Array]:
        return tp(p)[0] - threshold / (1 - threshold) * fp(p)[0], p.y

    return [tp, fp, both]


@pytest.mark.parametrize("prevalence", [None, 0.2])
@pytest.mark.parametrize("design", DESIGNS)
def test_decision_curve(survey: pl.DataFrame, design: str, prevalence: float | None) -> None:
    given: dict[str, Any] = {"weight": "w", "by": "g", "level": LEVEL, "design": DESIGNS[design]}
    thresholds = [0.2, 0.6]
    table = wroc.decision_curve(
        survey, "y", "s", thresholds=thresholds, prevalence=prevalence, **given
    )
    for group, threshold in [(g, t) for g in ("a", "b") for t in thresholds]:
        row, where = table.filter(g=group, threshold=threshold), pl.col("g") == group
        odds, of_rows = threshold / (1 - threshold), prevalence is None
        estimator = ratios(*parts_of_benefit(threshold, of_rows=of_rows), where=where)
        (tp, fp, standardized), variances = covariance(survey, design, estimator)
        classes = (where & pl.col("y"), where & ~pl.col("y"))
        part = Part.of(survey, where)
        positives, negatives = part.inside * part.y, part.inside * (1 - part.y)
        wholes = (part.inside, part.inside) if of_rows else (positives, negatives)
        variances *= factors_of_clusters(survey, design, *wholes, positives)
        (tp_low, tp_high), (fp_low, fp_high) = (
            wilson_by_design(survey, design, value, variances[i, i], where if of_rows else of)
            for i, (value, of) in enumerate(zip((tp, fp), classes, strict=True))
        )
        a, b = (1.0, odds) if prevalence is None else (prevalence, (1 - prevalence) * odds)
        related = variances[0, 1] / math.sqrt(variances[0, 0] * variances[1, 1])
        net = a * tp - b * fp
        below, above = (
            math.sqrt((a * x) ** 2 + (b * z) ** 2 - 2 * related * a * b * x * z)
            for x, z in ((tp - tp_low, fp_high - fp), (tp_high - tp, fp - fp_low))
        )
        expected = net, net - below, net + above
        assert ends(row, "net_benefit") == pytest.approx(expected, rel=1e-9, abs=1e-12)
        if prevalence is None:
            margin = quantile(design) * math.sqrt(variances[2, 2])
            expected = standardized, standardized - margin, standardized + margin
        else:
            expected = net / prevalence, expected[1] / prevalence, expected[2] / prevalence
        found = ends(row, "standardized_net_benefit")
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


def standard_error(rows: pl.DataFrame, of: PopParam, y: pl.Expr, x: pl.Expr | None = None) -> float:
    """By samplics, of the complete rows of NHANES II."""
    estimator = TaylorEstimator(of)
    estimator.estimate(
        y=rows.select(y).to_series().to_numpy(),
        samp_weight=rows["finalwgt"].to_numpy(),
        stratum=rows["stratid"].to_numpy(),
        psu=(rows["stratid"] * 10 + rows["psuid"]).to_numpy(),
        x=None if x is None else rows.select(x).to_series().to_numpy(),
    )
    error: Any = estimator.stderror
    return float(error)


def test_a_published_survey() -> None:
    """NHANES II: the mean, the ratio to the mean score, and that to the positives, by samplics."""
    path = files("samplics") / "datasets" / "data" / "nhanes2.csv"
    score = 0.1 + pl.col("zinc").fill_null(86) / 300
    rows = pl.read_csv(str(path), infer_schema_length=None).with_columns(score=score)
    given: dict[str, Any] = {
        "weight": "finalwgt",
        "design": wroc.Survey("psuid", strata="stratid"),
    }
    t, label = float(stats.t.ppf(0.975, 31)), pl.col("highbp").cast(pl.Float64)
    summary = wroc.calibration_summary(rows, "highbp", "score", **given)
    large, low, high = ends(summary, "mean_calibration_error")
    error = standard_error(rows, PopParam.mean, pl.col("score") - label)
    assert (large - low, high - large) == pytest.approx((t * error, t * error), rel=1e-9)
    ratio, low, high = ends(summary, "oe_ratio")
    error = standard_error(rows, PopParam.ratio, label, x=pl.col("score"))
    assert (ratio / low, high / ratio) == pytest.approx((math.exp(t * error / ratio),) * 2)
    curve = wroc.decision_curve(rows, "highbp", "score", thresholds=0.4, **given)
    net, low, high = ends(curve, "standardized_net_benefit")
    gain = (pl.col("score") >= 0.4).cast(pl.Float64) * (label - (1 - label) * 0.4 / 0.6)
    error = standard_error(rows, PopParam.ratio, gain, x=label)
    assert (net - low, high - net) == pytest.approx((t * error, t * error), rel=1e-9)


def test_all_rows_selected_are_the_benefit_of_all(survey: pl.DataFrame) -> None:
    curve = wroc.decision_curve(survey, "y", "s", thresholds=0, weight="w", design=FAY)
    summary = wroc.calibration_summary(survey, "y", "s", weight="w", design=FAY)
    # The net benefit is the prevalence, which is an observed rate.
    assert ends(curve, "net_benefit") == pytest.approx(ends(summary, "observed_rate"))


LIMITS = pl.col("^.*_(low|high|se)$")


@pytest.mark.parametrize(
    "table",
    [
        lambda f, **o: wroc.calibration_summary(f, "y", "s", **o),
        lambda f, **o: wroc.calibration_curve(f, "y", "s", bins=2, **o),
        lambda f, **o: wroc.decision_curve(f, "y", "s", thresholds=0.5, **o),
        lambda f, **o: wroc.decision_curve(f, "y", "s", thresholds=0.5, prevalence=0.1, **o),
        lambda f, **o: wroc.roc_curve(f, "y", "s", band="pointwise", max_points=9, **o),
    ],
)
def test_lonely_units_have_no_limits(
    survey: pl.DataFrame, table: Callable[..., pl.DataFrame]
) -> None:
    lonely = survey.filter((pl.col("h") > 0) | (pl.col("c") == 0))
    found = table(lonely, design=wroc.Survey("c", strata="h")).select(LIMITS)
    assert found.width >= 2
    assert found.null_count().row(0) == (found.height,) * found.width
    certain = table(lonely, design=wroc.Survey("c", strata="h", lonely="certainty"))
    assert certain.select(LIMITS).null_count().row(0) == (0,) * found.width


def test_a_replicate_without_a_fit_leaves_the_slope_without_limits(survey: pl.DataFrame) -> None:
    none = survey.with_columns(r2=pl.when(pl.col("y")).then("r2").otherwise(0.0))
    summary = wroc.calibration_summary(none, "y", "s", weight="w", design=FAY)
    assert summary["calibration_slope"].null_count() == 0
    unknown = summary.select("^calibration_(slope|intercept)_(low|high|se)$")
    assert unknown.null_count().row(0) == (1,) * 5
    assert summary["oe_ratio_low"].null_count() == 0


def test_without_positives_the_ratio_has_an_upper_limit(survey: pl.DataFrame) -> None:
    negative = survey.with_columns(y=0)
    row = wroc.calibration_summary(negative, "y", "s", design=wroc.Survey("c", strata="h"))
    ratio, low, high = ends(row, "oe_ratio")
    assert (ratio, low) == (0, 0)
    assert high == pytest.approx(row["observed_rate_high"].item() / row["mean_score"].item())


REFUSED: list[tuple[Callable[..., object], str]] = [
    (
        lambda f: wroc.calibration_curve(f, "y", "s", strategy="quantile", design="c"),
        r"for strategy 'quantile', whose bins move .*: use strategy='uniform'; found clusters$",
    ),
    (
        lambda f: wroc.roc_curve(f, "y", "s", band="simultaneous", design=FAY),
        r"for band 'simultaneous', whose law .*: use band='pointwise'; found replicate weights$",
    ),
    (
        lambda f: wroc.roc_curve(f, "y", "s", design=wroc.Survey(strata="h")),
        r"without band='pointwise', which alone has limits by it; found a survey$",
    ),
    (
        lambda f: wroc.roc_curve(f, "y", "s", band="pointwise", design="c", bins=64),
        r"with `bins`, which keeps no single rows; found clusters$",
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_has_no_limits_by_a_design(
    survey: pl.DataFrame, call: Callable[[pl.DataFrame], object], message: str
) -> None:
    with pytest.raises(ValueError, match="`design` must be None " + message):
        call(survey)


def test_counts_have_no_design(survey: pl.DataFrame) -> None:
    counts = wroc.from_counts(wroc.score_counts(survey, "y", "s"))
    for name in ("roc_curve", "decision_curve", "calibration_curve", "calibration_summary"):
        with pytest.raises(TypeError, match="has no argument `design`"):
            getattr(counts, name)(design="c")


def test_many_points_of_a_band_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polars_wroc.curves.roc_curve._MOST_POINTS", 3)
    rows = pl.DataFrame({"y": [1, 0, 1, 0], "s": [4, 3, 2, 1], "c": [1, 2, 3, 4]})
    plan = wroc.roc_curve(rows.lazy(), "y", "s", band="pointwise", design="c")
    with pytest.raises(ValueError, match=r"`max_points` must be given .*; found 5"):
        plan.collect()
    few = wroc.roc_curve(rows, "y", "s", band="pointwise", design="c", max_points=3)
    assert few.height == 3


def test_variances_that_overflow_give_no_limits() -> None:
    rows = pl.DataFrame({"y": [1, 0, 0, 0], "s": [0.4, 0.5, 0.6, 0.7], "c": [0, 0, 1, 1]})
    rows = rows.with_columns(w=pl.when(y=1).then(1e-150).otherwise(1e150))
    net = wroc.decision_curve(rows, "y", "s", thresholds=0.2, weight="w", design="c")
    assert net["standardized_net_benefit_low"].item() is None
    for design in (None, "c"):
        table = wroc.calibration_summary(rows, "y", "s", weight="w", design=design)
        assert table["calibration_intercept"].item() < -600
        assert table["calibration_intercept_low"].item() is None
