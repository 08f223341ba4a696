"""Recorded decisions in place of a threshold: rates come from them, and AUCs from the score."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fairlearn.metrics
import numpy as np
import polars as pl
import pytest
from divided import audit_in_ranges
from polars.testing import assert_frame_equal
from sklearn.metrics import confusion_matrix, roc_auc_score
from sweeps import sweep
from wide_tables import impact_of, wide_gaps

import polars_wroc as wroc

# Arguments of the wrong type are refused.
UNTYPED: Any = wroc
DESIGN: dict[str, Any] = {"design": wroc.Survey("c", strata="h")}
REPLICATES = wroc.ReplicateWeights(
    [(pl.col("w") * pl.col(f"r{i}")).alias(f"r{i}") for i in range(6)], "brr"
)
# Columns that depend on the threshold itself.
OF_THRESHOLD = ["threshold", "net_benefit", "net_benefit_low", "net_benefit_high"]


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    """Rows whose decisions, in ``d``, are not those that the score makes."""
    random, rows = np.random.default_rng(1607), 600
    positive, score = random.random(rows) < 0.4, random.random(rows).round(2)
    frame = pl.DataFrame(
        {
            "g": random.choice(["a", "b", "c"], rows),
            "k": random.choice(["x", "y"], rows),
            "y": positive,
            "s": score,
            "d": random.random(rows) < 0.3 + 0.3 * positive,
            "w": random.lognormal(sigma=0.4, size=rows),
            "h": random.integers(0, 3, rows),
            "c": random.integers(0, 8, rows),
        }
        | {f"r{i}": random.choice([0.0, 2.0], rows) for i in range(6)}
    )
    return frame.with_columns(at_half=pl.col("s") >= 0.5)


def with_gaps(frame: pl.DataFrame) -> pl.DataFrame:
    """Leave out some decisions, labels and scores."""
    row = pl.int_range(pl.len())
    return frame.with_columns(
        d=pl.when(row % 7 != 0).then("d"),
        y=pl.when(row % 11 != 0).then("y"),
        s=pl.when(row % 13 != 0).then("s"),
    )


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("fairness", {"weight": "w"}),
    ("fairness", {"weight": "w", **DESIGN}),
    ("fairness", {"weight": "w", "design": REPLICATES}),
    ("group_gaps", {"weight": wroc.frequency(pl.col("w").ceil())}),
    ("group_gaps", {"weight": "w", "reference": "best", "within": "k"}),
    ("group_gaps", {"weight": "w", "reference": "a", **DESIGN}),
    ("group_gaps", {"weight": "w", "design": REPLICATES}),
]


@pytest.mark.parametrize(("name", "options"), sweep(CALLS, fast=1))
def test_decisions_that_a_threshold_made(
    people: pl.DataFrame, name: str, options: dict[str, Any]
) -> None:
    """Recorded, they give what the threshold gives."""
    table = getattr(wroc, name)
    groups: dict[str, Any] = {"by" if name == "threshold_metrics" else "attributes": "g"}
    at_threshold = table(people, "y", "s", threshold=0.5, **groups, **options)
    recorded = table(people.lazy(), "y", "s", selected="at_half", **groups, **options)
    assert_frame_equal(recorded.collect(), at_threshold, rel_tol=1e-9)


@pytest.mark.parametrize("options", [{}, {"level": 0.9}, {"level": 0.9, **DESIGN}])
def test_metrics_of_decisions_that_a_threshold_made(
    people: pl.DataFrame, options: dict[str, Any]
) -> None:
    found = wroc.threshold_metrics(
        people.lazy(), "y", "s", selected="at_half", by="g", weight="w", **options, metrics="all"
    ).collect()
    expected = wroc.threshold_metrics(
        people, "y", "s", threshold=0.5, by="g", weight="w", **options, metrics="all"
    )
    assert found.columns == expected.columns
    assert found["threshold"].null_count() == found["net_benefit"].null_count() == 3
    assert_frame_equal(found.drop(OF_THRESHOLD), expected.drop(OF_THRESHOLD), rel_tol=1e-9)


def test_rates_come_from_the_decisions_and_aucs_from_the_score(people: pl.DataFrame) -> None:
    table = wide_gaps(people, "y", "s", by="g", weight="w", selected="d")
    cells = wroc.threshold_metrics(
        people, "y", "s", by="g", weight="w", selected="d", metrics="all", level=None
    )
    for gaps, counted in zip(table.to_dicts(), cells.to_dicts(), strict=True):
        rows = people.filter(g=gaps["g"])
        y, w = rows["y"].to_numpy(), rows["w"].to_numpy()
        tn, fp, fn, tp = confusion_matrix(y, rows["d"].to_numpy(), sample_weight=w).ravel()
        assert [counted[name] for name in ("tp", "fp", "fn", "tn")] == pytest.approx(
            [tp, fp, fn, tn]
        )
        expected = {
            "auc": roc_auc_score(y, rows["s"].to_numpy(), sample_weight=w),
            "selection_rate": (tp + fp) / w.sum(),
            "tpr": tp / (tp + fn),
            "fpr": fp / (fp + tn),
            "ppv": tp / (tp + fp),
            "npv": tn / (tn + fn),
        }
        assert {name: gaps[name] for name in expected} == pytest.approx(expected)


def test_recorded_decisions_have_their_rates_without_a_score(people: pl.DataFrame) -> None:
    options: dict[str, Any] = {"by": "g", "weight": "w", "selected": "d"}
    alone = wroc.threshold_metrics(people, "y", **options)
    scored = people.drop_nulls("s")
    assert_frame_equal(
        wroc.threshold_metrics(scored, "y", **options),
        wroc.threshold_metrics(scored, "y", "s", **options),
    )
    assert alone["tpr"].count() == alone.height
    with pytest.raises(ValueError, match="`score` must be given unless decisions are `selected`"):
        wroc.threshold_metrics(people, "y", threshold=0.5)


def test_an_audit_says_what_compares_decisions_with_a_label(people: pl.DataFrame) -> None:
    options: dict[str, Any] = {"attributes": "g", "selected": "d", "favorable": "selected"}
    with pytest.raises(ValueError, match=r"without a `label`; found None\. With a label and"):
        wroc.audit(people, "y", **options)


FAIRLEARN: dict[str, Callable[..., float]] = {
    "demographic_parity_difference": fairlearn.metrics.demographic_parity_difference,
    "demographic_parity_ratio": fairlearn.metrics.demographic_parity_ratio,
    "equal_opportunity_difference": fairlearn.metrics.equal_opportunity_difference,
    "equal_opportunity_ratio": fairlearn.metrics.equal_opportunity_ratio,
    "equalized_odds_difference": fairlearn.metrics.equalized_odds_difference,
    "equalized_odds_ratio": fairlearn.metrics.equalized_odds_ratio,
}


def test_against_fairlearn(people: pl.DataFrame) -> None:
    table = wroc.fairness(people, "y", "s", attributes="g", weight="w", selected="d")
    found = dict(table.select("metric", pl.coalesce("gap", "ratio")).iter_rows())
    arrays = [people[name].to_numpy() for name in ("y", "d", "g", "w")]
    for name, metric in FAIRLEARN.items():
        y, d, g, w = arrays
        expected = metric(y, d, sensitive_features=g, sample_weight=w)
        assert found[name] == pytest.approx(expected), name


def test_a_row_without_a_decision_is_in_no_matrix(people: pl.DataFrame) -> None:
    frame = with_gaps(people)
    given: dict[str, Any] = {"by": "g", "weight": "w", "selected": "d"}
    found = wroc.threshold_metrics(frame, "y", "s", **given)
    complete = frame.drop_nulls(["d", "y", "s"])
    expected = wroc.threshold_metrics(complete, "y", "s", **given)
    assert_frame_equal(found, expected, rel_tol=1e-12)


# Metrics that rest on rows without a label too.
DECISIONS_ALONE = [
    "selection_rate",
    *(f"demographic_parity_{kind}" for kind in ("difference", "ratio")),
]
NUMBERS = ["segment", "metric", "n", "value", "n_reference", "reference_value", "gap", "ratio"]


@pytest.mark.parametrize("table", [wroc.fairness, wroc.group_gaps])
def test_a_row_without_a_label_is_in_selection_rates_alone(
    people: pl.DataFrame, table: Callable[..., pl.DataFrame]
) -> None:
    frame = with_gaps(people)
    given: dict[str, Any] = {"attributes": "g", "weight": "w", "selected": "d"}
    found = table(frame, "y", "s", **given).select(NUMBERS)
    is_alone = pl.col("metric").is_in(DECISIONS_ALONE)
    for rows, chosen in ((["d", "y", "s"], ~is_alone), (["d", "s"], is_alone)):
        label = "y" if "y" in rows else None
        expected = table(frame.drop_nulls(rows), label, "s", **given).select(NUMBERS)
        assert_frame_equal(found.filter(chosen), expected.filter(chosen), rel_tol=1e-12)


def test_decisions_may_be_an_expression_for_several_scores(people: pl.DataFrame) -> None:
    scores = [pl.col("s"), (1 - pl.col("s")).alias("other")]
    one = wide_gaps(people, "y", "s", by="g", selected=pl.col("c") < 3)
    both = wide_gaps(people, "y", scores, by="g", selected=pl.col("c") < 3)
    rates = [f"{name}{end}" for name in ("tpr", "npv") for end in ("", "_gap", "_gap_low")]
    for model in ("s", "other"):
        assert_frame_equal(both.filter(model=model).select(rates), one.select(rates))


def test_no_decisions_at_all(people: pl.DataFrame) -> None:
    table = wroc.threshold_metrics(
        people, "y", "s", selected=pl.lit(None), metrics="all", level=None
    )
    assert table.select("tp", "fp", "fn", "tn", "tpr").row(0) == (0, 0, 0, 0, None)


@pytest.mark.parametrize("lazy", sweep([False, True]))
@pytest.mark.parametrize("options", sweep([{}, DESIGN, {"design": REPLICATES}]))
def test_audits_of_decisions_that_a_threshold_made(
    people: pl.DataFrame, options: dict[str, Any], lazy: bool
) -> None:
    arguments = {"attributes": ["g", "k"], "weight": "w", "intersections": True, **options}
    at_threshold = wroc.audit(people, "y", "s", threshold=0.5, favorable="selected", **arguments)
    frame: Any = people.lazy() if lazy else people
    recorded = wroc.audit(frame, "y", "s", selected="at_half", favorable="selected", **arguments)
    assert recorded.segments["threshold"].null_count() == recorded.segments.height
    for name in ("segments", "table", "curves"):
        tables = getattr(recorded, name), getattr(at_threshold, name)
        found, expected = (table.drop("threshold", strict=False) for table in tables)
        assert_frame_equal(found, expected, rel_tol=1e-9)


def test_an_audit_says_that_decisions_were_recorded(people: pl.DataFrame, tmp_path: Any) -> None:
    frame = with_gaps(people)
    audit = wroc.audit(frame, "y", "s", attributes="g", selected="d", favorable="selected")
    assert (audit.settings.as_dict()["selected"], audit.settings.as_dict()["threshold"]) == (
        "d",
        None,
    )
    missing = dict(audit.missing.iter_rows())
    assert missing["d"] == frame["d"].null_count()
    assert '"selected": "d"' in audit.to_json()
    sentences = audit.findings.filter(metric="tpr")["sentence"]
    assert sentences.str.contains("selected among the positives", literal=True).all()
    quoted = "\N{LEFT DOUBLE QUOTATION MARK}d\N{RIGHT DOUBLE QUOTATION MARK}"
    assert f"as recorded in {quoted}" in audit.reading
    audit.save(tmp_path / "audit.md")
    assert audit.reading in (tmp_path / "audit.md").read_text()


@pytest.mark.slow(reason="makes several audits")
def test_a_report_says_that_decisions_were_recorded(people: pl.DataFrame, tmp_path: Any) -> None:
    wroc.audit(people, "y", "s", attributes="g", selected="d", favorable="selected").save(
        tmp_path / "report.html"
    )
    page = (tmp_path / "report.html").read_text()
    assert "as recorded in" in page
    assert "A score of" not in page


def test_decisions_that_are_all_the_same_are_named(people: pl.DataFrame) -> None:
    audit = wroc.audit(
        people, "y", "s", attributes="g", selected=pl.lit(value=True), favorable="selected"
    )
    assert "Everybody is selected as recorded: all decisions are the same, so" in audit.verdict


def test_an_audit_without_any_decision_is_refused(people: pl.DataFrame) -> None:
    with pytest.raises(ValueError, match="600 rows lack a label, score, weight or decision"):
        wroc.audit(
            people,
            "y",
            "s",
            attributes="g",
            selected=pl.lit(None, pl.Boolean),
            favorable="selected",
        )


WRONG: list[tuple[str, dict[str, Any], type[Exception], str]] = [
    ("fairness", {}, ValueError, "exactly one of `threshold` and `selected`.*found none"),
    ("fairness", {"threshold": 1, "selected": "d"}, ValueError, "`selected`.*found 1"),
    ("group_gaps", {"threshold": 1, "selected": "d"}, ValueError, "found 1"),
    (
        "group_gaps",
        {"selected": "k"},
        TypeError,
        r"^`selected` must be .* 0 and 1; found .* String: .*selected=pl.col\('k'\) == 'yes'$",
    ),
    ("group_gaps", {"selected": "z"}, pl.exceptions.ColumnNotFoundError, "`selected`.*'z'"),
    ("audit", {"threshold": 1, "selected": "d"}, ValueError, "found 1"),
    ("audit", {"threshold": wroc.rules.youden(), "selected": "d"}, ValueError, "found youden"),
    (
        "audit",
        {"threshold": wroc.rules.max_fpr(0.1), "selected": "d"},
        ValueError,
        "found max_fpr",
    ),
    ("threshold_metrics", {"threshold": 1, "selected": "d"}, ValueError, "found 1"),
    (
        "threshold_metrics",
        {"selected": "d", "level": None, **DESIGN},
        ValueError,
        "`level`.*found `selected`",
    ),
]


@pytest.mark.parametrize(("name", "options", "error", "message"), WRONG)
def test_recorded_decisions_that_are_no_decisions_are_refused(
    people: pl.DataFrame, name: str, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    groups = "attributes" if name != "threshold_metrics" else "by"
    with pytest.raises(error, match=message):
        getattr(UNTYPED, name)(people.lazy(), "y", "s", **{groups: "g"}, **options)


@pytest.mark.parametrize("way", sweep(["whole", "ranges", "recorded"]))
def test_the_ratios_of_an_audit_count_rows_without_a_decision(way: str) -> None:
    random = np.random.default_rng(6)
    score = np.where(random.random(400) < 0.2, np.nan, random.random(400))
    frame = pl.DataFrame(
        {
            "g": random.choice(["a", "b", ""], 400),
            "y": random.random(400) < 0.5,
            "s": score,
        }
    ).with_columns(pl.col("g").replace("", None), pl.col("s").fill_nan(None))
    call: dict[str, Any] = {"attributes": "g", "favorable": "selected"}
    expected = frame.group_by("g").agg(pl.col("s").null_count()).sort("g", nulls_last=True)
    if way == "recorded":
        decided = frame.with_columns(d=pl.col("s") > 0.5, s=pl.col("s").fill_null(0.0))
        audit = wroc.audit(decided, "y", "s", selected="d", **call)
    elif way == "ranges":
        parts = [frame.head(150), frame.tail(250)]
        audit = audit_in_ranges(parts, "y", "s", threshold=0.5, rows_per_range=90, **call)
    else:
        audit = wroc.audit(frame, "y", "s", threshold=0.5, **call)
    segments = audit.segments.filter(attribute="g").sort("segment", nulls_last=True)
    assert segments["n_missing"].to_list() == expected["s"].to_list()
    used = impact_of(audit).sort("segment", nulls_last=True)["n"]
    assert used.to_list() == segments["n"].to_list()
    assert expected["s"].min() > 10  # type: ignore[operator]


# Decisions without a label or a score, and with both.
OF_NUMBERS: list[tuple[str, dict[str, Any]]] = [
    ("impact_ratios", {"attributes": "g", "favorable": "selected"}),
    ("group_gaps", {"label": "y", "attributes": "g"}),
    ("fairness", {"label": "y", "score": "s", "attributes": "g"}),
    ("threshold_metrics", {"label": "y", "score": "s", "by": "g"}),
    ("worst_segments", {"label": "y", "attributes": "g", "favorable": "selected"}),
]


@pytest.mark.parametrize("dtype", [pl.Int64, pl.UInt8, pl.Float64])
@pytest.mark.parametrize(("name", "call"), OF_NUMBERS)
def test_decisions_of_0_and_1_give_what_boolean_ones_give(
    people: pl.DataFrame, name: str, call: dict[str, Any], dtype: type[pl.DataType]
) -> None:
    rows = with_gaps(people)
    numbers = rows.with_columns(pl.col("d").cast(dtype))
    table = getattr(wroc, name)
    expected = table(rows, selected="d", **call)
    assert_frame_equal(table(numbers, selected="d", **call), expected)
    assert_frame_equal(table(numbers.lazy(), selected="d", **call).collect(), expected)


@pytest.mark.parametrize(("name", "call"), OF_NUMBERS)
def test_other_numbers_are_no_decisions(
    people: pl.DataFrame, name: str, call: dict[str, Any]
) -> None:
    rows = people.with_columns(d=pl.lit(2))
    expected = "^`selected` must be Boolean or hold 0 and 1; column 'd' holds 2.0$"
    with pytest.raises(ValueError, match=expected):
        getattr(wroc, name)(rows, selected="d", **call)
