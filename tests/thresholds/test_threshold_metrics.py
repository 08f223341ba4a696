"""Confusion matrices and metrics at thresholds, against scikit-learn and plain counting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import polars as pl
import pytest
from conftest import Groups
from polars.testing import assert_frame_equal
from sklearn import metrics as sklearn_metrics
from sweeps import sweep

import polars_wroc as wroc

Metrics: TypeAlias = dict[str, float | None]

INFINITY = float("inf")

# The scores of the people are tenths from -2 to 4 or so.
PLACES = {
    "at a score": 0.5,
    "between scores": 0.55,
    "at another score": -1.0,
    "above all": 50.0,
    "below all": -50.0,
    "at +inf": INFINITY,
    "at -inf": -INFINITY,
}

SKLEARN_METRICS: dict[str, Callable[..., float]] = {
    "tpr": sklearn_metrics.recall_score,
    "tnr": lambda *args, **weights: sklearn_metrics.recall_score(*args, pos_label=0, **weights),
    "ppv": sklearn_metrics.precision_score,
    "npv": lambda *args, **weights: sklearn_metrics.precision_score(*args, pos_label=0, **weights),
    "accuracy": sklearn_metrics.accuracy_score,
    "balanced_accuracy": sklearn_metrics.balanced_accuracy_score,
    "f1": sklearn_metrics.f1_score,
    "mcc": sklearn_metrics.matthews_corrcoef,
    "youden": lambda *args, **weights: sklearn_metrics.balanced_accuracy_score(
        *args, adjusted=True, **weights
    ),
    "zero_one_loss": sklearn_metrics.zero_one_loss,
    "f2": lambda *args, **weights: sklearn_metrics.fbeta_score(*args, beta=2, **weights),
    "jaccard": sklearn_metrics.jaccard_score,
}


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _difference(left: float | None, right: float | None) -> float | None:
    return None if left is None or right is None else left - right


def _counted(rows: pl.DataFrame, threshold: float) -> Metrics:
    """Every metric from its definition, row by row."""
    tp = fp = fn = tn = 0.0
    for positive, score, weight in rows.select("y", "s", "w").rows():
        selected = score >= threshold
        tp += weight * (positive and selected)
        fp += weight * (not positive and selected)
        fn += weight * (positive and not selected)
        tn += weight * (not positive and not selected)
    tpr, fpr = _ratio(tp, tp + fn), _ratio(fp, fp + tn)
    ppv = _ratio(tp, tp + fp)
    youden = _difference(tpr, fpr)
    prevalence = _ratio(tp + fn, tp + fp + fn + tn)
    npv = _ratio(tn, tn + fn)
    fnr, tnr = _ratio(fn, tp + fn), _ratio(tn, fp + tn)
    all_rows = tp + fp + fn + tn
    is_probability = 0 <= threshold < 1
    mcc_square = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return {
        "threshold": threshold,
        "tp": tp,
        "fp": fp,
        "fn": fn,
        "tn": tn,
        "tpr": tpr,
        "fpr": fpr,
        "tnr": _ratio(tn, fp + tn),
        "fnr": _ratio(fn, tp + fn),
        "ppv": ppv,
        "npv": _ratio(tn, tn + fn),
        "selection_rate": _ratio(tp + fp, tp + fp + fn + tn),
        "accuracy": _ratio(tp + tn, tp + fp + fn + tn),
        "balanced_accuracy": None if youden is None else (1 + youden) / 2,
        "f1": _ratio(2 * tp, 2 * tp + fp + fn),
        "mcc": _ratio(tp * tn - fp * fn, float(np.sqrt(mcc_square))),
        "youden": youden,
        "lift": None if ppv is None or not prevalence else ppv / prevalence,
        "prevalence": prevalence,
        "zero_one_loss": _ratio(fp + fn, all_rows),
        "fdr": _ratio(fp, tp + fp),
        "for": _ratio(fn, tn + fn),
        "markedness": None if ppv is None or npv is None else ppv + npv - 1,
        "f2": _ratio(5 * tp, 5 * tp + 4 * fn + fp),
        "jaccard": _ratio(tp, tp + fp + fn),
        "lr_pos": None if tpr is None or not fpr else tpr / fpr,
        "lr_neg": None if fnr is None or not tnr else fnr / tnr,
        "net_benefit": (
            (tp - fp * threshold / (1 - threshold)) / all_rows
            if is_probability and all_rows
            else None
        ),
    }


COLUMNS = [*_counted(pl.DataFrame({"y": [], "s": [], "w": []}), 0)]


def _same_as_counted(ours: pl.DataFrame, expected: Sequence[Metrics]) -> None:
    counted = pl.DataFrame(expected, schema=dict.fromkeys(COLUMNS, pl.Float64))
    assert_frame_equal(ours.select(COLUMNS), counted, rel_tol=1e-11, abs_tol=1e-11)


def test_metrics_of_seven_rows_by_hand(seven: pl.DataFrame) -> None:
    ours = wroc.threshold_metrics(
        seven, "y", "s", weight="w", threshold=0.6, metrics="all", level=None
    ).row(0, named=True)
    expected = {
        "threshold": 0.6,
        "tp": 4,
        "fp": 3,
        "fn": 0,
        "tn": 2,
        "tpr": 1,
        "fpr": 3 / 5,
        "tnr": 2 / 5,
        "fnr": 0,
        "ppv": 4 / 7,
        "npv": 1,
        "selection_rate": 7 / 9,
        "accuracy": 6 / 9,
        "balanced_accuracy": 7 / 10,
        "f1": 8 / 11,
        "mcc": 8 / np.sqrt(7 * 4 * 5 * 2),
        "youden": 2 / 5,
        "lift": (4 / 7) / (4 / 9),
        "prevalence": 4 / 9,
        "zero_one_loss": 3 / 9,
        "fdr": 3 / 7,
        "for": 0,
        "markedness": 4 / 7,
        "f2": 20 / 23,
        "jaccard": 4 / 7,
        "lr_pos": 5 / 3,
        "lr_neg": 0,
        "net_benefit": 4 / 9 - 3 / 9 * 0.6 / 0.4,
    }
    assert {name: ours[name] for name in expected} == pytest.approx(expected, abs=1e-12)


def test_net_benefit_is_that_of_probabilities(seven: pl.DataFrame) -> None:
    thresholds = [1.5, 1.0, 0.75, 0.0, -0.5]
    found = wroc.threshold_metrics(
        seven, "y", "s", weight="w", threshold=thresholds, metrics="all", level=None
    )
    # At 0 a false positive costs nothing, and all positives are found.
    of_threshold = dict(found.select("threshold", "net_benefit").iter_rows())
    expected = {1.5: None, 1.0: None, 0.75: (1 - 2 * 3) / 9, 0.0: 4 / 9, -0.5: None}
    assert of_threshold == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", sweep(SKLEARN_METRICS, fast=2))
def test_metric_equals_scikit_learn_at_every_threshold(people: pl.DataFrame, name: str) -> None:
    metrics = wroc.threshold_metrics(people, "y", "s", weight="w", metrics="all", level=None)
    inner = metrics.filter(pl.col("threshold").is_finite())[:-1]
    theirs = [
        SKLEARN_METRICS[name](people["y"], people["s"] >= threshold, sample_weight=people["w"])
        for threshold in inner["threshold"]
    ]
    assert len(theirs) > 30
    assert inner[name].to_list() == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("prevalence", [0.01, 0.3, 0.9])
def test_prevalence_is_that_of_classes_weighted_to_it(
    people: pl.DataFrame, prevalence: float
) -> None:
    weight, positive = pl.col("w"), pl.col("y") == 1
    total = weight.sum()
    shares = (
        pl.when(positive)
        .then(prevalence * total / weight.filter(positive).sum())
        .otherwise((1 - prevalence) * total / weight.filter(~positive).sum())
    )
    meant = people.with_columns(w=weight * shares)
    ours = wroc.threshold_metrics(
        people, "y", "s", weight="w", prevalence=prevalence, metrics="all", level=None
    )
    theirs = wroc.threshold_metrics(meant, "y", "s", weight="w", metrics="all", level=None)
    cells = ["tp", "fp", "fn", "tn"]
    assert_frame_equal(ours.drop(cells), theirs.drop(cells), rel_tol=1e-9, abs_tol=1e-9)
    assert_frame_equal(
        ours.select(cells),
        wroc.threshold_metrics(people, "y", "s", weight="w", metrics="all", level=None).select(
            cells
        ),
    )
    assert ours["prevalence"].to_list() == pytest.approx([prevalence] * ours.height)


@pytest.mark.parametrize(
    ("n_pos", "n_neg", "tpr", "fpr", "prevalence"),
    [(270, 2730, 0.65, 0.19, 0.02), (100, 900, 0.5, 0.05, 0.5), (300, 300, 0.9, 0.1, 0.1)],
)
def test_limits_in_a_population_hold_their_level(
    n_pos: int, n_neg: int, tpr: float, fpr: float, prevalence: float
) -> None:
    times, rng = 600, np.random.default_rng(5)
    cells = pl.DataFrame(
        {"tp": rng.binomial(n_pos, tpr, times), "fp": rng.binomial(n_neg, fpr, times)}
    ).with_row_index("draw")
    counted = {"tp": (1, 1), "fp": (0, 1), "fn": (1, 0), "tn": (0, 0)}
    rows = pl.concat(
        cells.with_columns(fn=n_pos - pl.col("tp"), tn=n_neg - pl.col("fp")).select(
            "draw", y=pl.lit(y), s=pl.lit(s), w=cell
        )
        for cell, (y, s) in counted.items()
    )
    found = wroc.threshold_metrics(
        rows,
        "y",
        "s",
        weight=wroc.frequency("w"),
        by="draw",
        threshold=1,
        prevalence=prevalence,
        level=0.95,
        metrics="all",
    )
    selected = prevalence * tpr + (1 - prevalence) * fpr
    truth = {
        "ppv": prevalence * tpr / selected,
        "npv": (1 - prevalence) * (1 - fpr) / (1 - selected),
        "selection_rate": selected,
        "accuracy": prevalence * tpr + (1 - prevalence) * (1 - fpr),
    }
    for name, value in truth.items():
        held = pl.lit(value).is_between(pl.col(f"{name}_low"), pl.col(f"{name}_high"))
        assert 0.925 < found.select(held.mean()).item() < 0.985, name


def test_limits_of_predictive_values_where_one_class_is_never_selected() -> None:
    rows = pl.DataFrame({"y": [1, 1, 1, 0, 0, 0, 0], "s": [3, 2, 2, 1, 1, 0, 0]})
    found = wroc.threshold_metrics(
        rows, "y", "s", threshold=[2, 4], prevalence=0.2, level=0.9, metrics="all"
    )
    none, some = found.rows(named=True)
    assert (none["ppv"], none["ppv_low"], none["ppv_high"]) == (None, None, None)
    assert (some["ppv"], some["ppv_high"]) == (1, 1)
    assert 0 < some["ppv_low"] < 1


@pytest.mark.parametrize("place", PLACES)
def test_metrics_equal_plain_counting_in_each_group(
    people: pl.DataFrame, groups: Groups, place: str
) -> None:
    threshold = PLACES[place]
    expected = [_counted(part, threshold) for _, part in groups(people)]
    table = wroc.threshold_metrics(
        people.lazy(), "y", "s", weight="w", by="g", threshold=threshold, metrics="all", level=None
    ).collect()
    assert table.columns == ["g", "threshold", *COLUMNS[5:], *COLUMNS[1:5], "reason"]
    _same_as_counted(table.drop("g"), expected)
    matrix = wroc.confusion_matrix("y", "s", threshold=threshold, weight="w", metrics="all")
    aggregated = people.lazy().group_by("g").agg(matrix).collect().sort("g")
    _same_as_counted(aggregated.select("confusion_matrix").unnest("confusion_matrix"), expected)


def test_infinite_scores_at_infinite_thresholds() -> None:
    rows = pl.DataFrame({"y": [1, 0, 1, 0], "s": [INFINITY, 2.0, 1.0, -INFINITY]})
    table = wroc.threshold_metrics(
        rows, "y", "s", threshold=[INFINITY, -INFINITY], metrics="all", level=None
    )
    assert table.select("threshold", "tp", "fp").rows() == [
        (INFINITY, 1.0, 0.0),
        (-INFINITY, 2.0, 2.0),
    ]
    matrix = rows.select(wroc.confusion_matrix("y", "s", threshold=INFINITY, metrics="all")).item()
    assert (matrix["tp"], matrix["fp"]) == (1.0, 0.0)


def test_threshold_zero_selects_minus_zero() -> None:
    rows = pl.DataFrame({"y": [1, 0, 0], "s": [-0.0, 0.0, -1.0]})
    for threshold in (0, -0.0):
        table = wroc.threshold_metrics(
            rows, "y", "s", threshold=threshold, metrics="all", level=None
        )
        assert table.select("tp", "fp").rows() == [(1.0, 1.0)]
        matrix = rows.select(
            wroc.confusion_matrix("y", "s", threshold=threshold, metrics="all")
        ).item()
        assert (matrix["tp"], matrix["fp"]) == (1.0, 1.0)


def test_thresholds_come_once_each_in_descending_order(people: pl.DataFrame) -> None:
    table = wroc.threshold_metrics(
        people, "y", "s", by="g", threshold=[0.5, 2, 0.5, -1.25], metrics="all", level=None
    )
    assert table["g"].to_list() == [g for g in "abcd" for _ in range(3)]
    assert table["threshold"].to_list() == [2.0, 0.5, -1.25] * 4


def test_every_point_of_the_curve_by_default(people: pl.DataFrame) -> None:
    table = wroc.threshold_metrics(people, "y", "s", weight="w", by="g", metrics="all", level=None)
    curve = wroc.roc_curve(people, "y", "s", weight="w", by="g").drop("fpr", "tpr")
    assert_frame_equal(table.select(curve.columns), curve, rel_tol=1e-12)
    assert table.filter(pl.col("threshold") == INFINITY)["selection_rate"].to_list() == [0.0] * 4


@pytest.mark.parametrize(
    "threshold",
    [pl.col("limit"), pl.col("limit").first(), pl.col("s").median(), pl.lit(0.5)],
    ids=["column", "first", "median", "literal"],
)
def test_threshold_of_each_group(people: pl.DataFrame, groups: Groups, threshold: pl.Expr) -> None:
    matrix = wroc.confusion_matrix("y", "s", threshold=threshold, weight="w", metrics="all")
    ours = people.lazy().group_by("g").agg(matrix).collect().sort("g")
    expected = [_counted(part, part.select(threshold.first()).item()) for _, part in groups(people)]
    _same_as_counted(ours.select("confusion_matrix").unnest("confusion_matrix"), expected)


@pytest.mark.parametrize("threshold", [pl.lit(None), pl.lit(float("nan"))], ids=["null", "NaN"])
def test_unknown_threshold_makes_every_field_null(people: pl.DataFrame, threshold: pl.Expr) -> None:
    matrix = people.select(
        wroc.confusion_matrix("y", "s", threshold=threshold, metrics="all")
    ).item()
    assert matrix == dict.fromkeys(COLUMNS)


def test_expression_equals_the_table(people: pl.DataFrame) -> None:
    limits = [1.0, 0.25]
    table = wroc.threshold_metrics(
        people, "y", "s", weight="w", by="g", threshold=limits, metrics="all", level=None
    )
    score: Any = pl.col("s")
    for limit in limits:
        matrix = score.wroc.confusion_matrix("y", threshold=limit, weight="w", metrics="all")
        ours = people.group_by("g").agg(matrix).sort("g").unnest("confusion_matrix")
        assert_frame_equal(
            ours, table.filter(pl.col("threshold") == limit).select(ours.columns), rel_tol=1e-12
        )


def test_expression_over_a_group_is_on_every_row(people: pl.DataFrame) -> None:
    matrix = wroc.confusion_matrix("y", "s", threshold=pl.col("limit"), weight="w", metrics="all")
    aggregated = people.group_by("g").agg(matrix)
    expected = people.select("g").join(aggregated, on="g", how="left", maintain_order="left")
    over = people.select("g", matrix.over("g"))
    assert_frame_equal(
        over.unnest("confusion_matrix"), expected.unnest("confusion_matrix"), rel_tol=1e-12
    )


def test_null_in_a_threshold_column_does_not_drop_rows() -> None:
    rows = pl.DataFrame(
        {"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.1, 0.2], "t": [0.5, None, 0.5, float("nan")]}
    )
    matrix = rows.select(wroc.confusion_matrix("y", "s", threshold=pl.col("t"), metrics="all"))
    cells = matrix.unnest("confusion_matrix").select("threshold", "tp", "fp", "fn", "tn")
    assert cells.row(0) == (0.5, 1.0, 1.0, 1.0, 1.0)


def test_rare_errors_do_not_cancel_in_mcc() -> None:
    rows = pl.DataFrame({"y": [1, 1, 0, 0], "s": [2, 1, 2, 1], "w": [1e9, 3.0, 2.0, 1e9]})
    ours = wroc.threshold_metrics(
        rows, "y", "s", threshold=2, weight="w", metrics="all", level=None
    )["mcc"][0]
    theirs = sklearn_metrics.matthews_corrcoef(
        rows["y"], rows["s"] >= 2, sample_weight=rows["w"].to_numpy()
    )
    assert ours == pytest.approx(theirs, rel=1e-12)


def test_groups_with_few_rows_of_a_class_are_marked(people: pl.DataFrame) -> None:
    few = people.filter(pl.col("y")).head(3).with_columns(g=pl.lit("few"))
    rows = pl.concat([people, few])
    fewest = people.group_by("g").agg(pl.col("y").sum(), no=(~pl.col("y")).sum())
    least = int(fewest.select(pl.min_horizontal("y", "no").min()).item())
    options: dict[str, Any] = {"by": "g", "min_rows": least}
    rule = wroc.rules.max_selection_rate(0.5)
    for threshold, per_group in ((0.5, False), (rule, True)):
        table = wroc.threshold_metrics(
            rows, "y", "s", threshold=threshold, per_group=per_group, **options
        )
        reasons = dict(table.select("g", "reason").rows())
        assert reasons.pop("few") == f"fewer than {least} positives" or per_group
        assert set(reasons.values()) == {None}
    none = wroc.threshold_metrics(few, "y", "s", threshold=wroc.rules.youden(), by="g")
    assert none.select("threshold", "reason").row(0) == (None, "no threshold")


def test_weighted_rates_with_few_events_are_named() -> None:
    # 40 positives, 4 of them missed, and 40 negatives, 20 of them selected, with weights 1 and 3
    # in turn: Kish's effective size of each class is (20 + 60)^2 / (20 + 180) = 32, so that 3.2
    # missed positives are fewer than 5, and 16 selected negatives are not. Of the 24 rejected rows
    # 1 / 6 are positive, 19.2 effective rows in all.
    rows = pl.DataFrame(
        {
            "y": [1] * 40 + [0] * 40,
            "s": [1] * 36 + [0] * 4 + [1] * 20 + [0] * 20,
            "w": [1.0, 3.0] * 40,
        }
    )
    metrics = ["tpr", "fpr", "fnr", "npv", "accuracy", "f1"]
    options: dict[str, Any] = {"threshold": 0.5, "metrics": metrics}
    weighted = wroc.threshold_metrics(rows, "y", "s", weight="w", **options)
    assert weighted["reason"].item() == "few effective events: tpr, fnr, npv"
    few = wroc.threshold_metrics(rows, "y", "s", weight="w", min_rows=41, **options)
    assert few["reason"].item() == "fewer than 41 positives"
    for other in ({"weight": None}, {"weight": "w", "level": None}):
        found = wroc.threshold_metrics(rows, "y", "s", **other, **options)
        assert found["reason"].item() is None


@pytest.mark.parametrize("metrics", ["tpr", ["lift", "tpr"], ["tpr", "tpr"], "all"])
def test_metrics_are_those_asked_for(people: pl.DataFrame, metrics: Any) -> None:
    every = wroc.threshold_metrics(people, "y", "s", threshold=[0.2, 0.5], metrics="all")
    found = wroc.threshold_metrics(people, "y", "s", threshold=[0.2, 0.5], metrics=metrics)
    assert_frame_equal(found, every.select(found.columns))
    named = [name for name in found.columns[1:-5] if not name.endswith(("_low", "_high"))]
    if metrics == "all":
        assert named == COLUMNS[5:]
    else:
        assert named == ([metrics] if isinstance(metrics, str) else [*dict.fromkeys(metrics)])
    point = wroc.threshold_metrics(
        people, "y", "s", threshold=wroc.rules.youden(), per_group=True, level=None, metrics=metrics
    )
    matrix = people.select(wroc.confusion_matrix("y", "s", threshold=0.5, metrics=metrics))
    fields = [name for name in found.columns[:-1] if not name.endswith(("_low", "_high"))]
    assert found.columns[-1] == point.columns[-1] == "reason"
    point = point.drop("reason")
    assert point.columns == matrix.unnest("confusion_matrix").columns == fields


@pytest.mark.parametrize(
    ("metrics", "error", "message"),
    [
        ("lft", ValueError, "`metrics` must be one of tpr, .*; found 'lft'; did you mean 'lift'"),
        (["tpr", 3], ValueError, "`metrics` must be one of tpr, .*; found 3$"),
        ([], TypeError, "`metrics` must be 'all' or names of metrics; found"),
        (None, TypeError, "`metrics` must be 'all' or names of metrics; found None"),
    ],
)
def test_metrics_that_there_are_not(metrics: Any, error: type[Exception], message: str) -> None:
    frame = pl.DataFrame({"y": [0, 1], "s": [0.1, 0.9]})
    with pytest.raises(error, match=f"^{message}"):
        wroc.threshold_metrics(frame, "y", "s", metrics=metrics)
