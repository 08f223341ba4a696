"""Audits without a label: decisions alone, compared with the tables of single functions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fairlearn.metrics
import numpy as np
import openpyxl
import polars as pl
import pytest
from chromium import Chromium
from polars.testing import assert_frame_equal
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

import polars_wroc as wroc
from polars_wroc.cli import main

GIVEN: dict[str, Any] = {"attributes": ["sex", "race"], "favorable": "selected"}
RECORDED = pl.col("hired") == "yes"


def hires(rows: int = 700, seed: int = 0) -> pl.DataFrame:
    """Make up applicants, of whom Black ones have lower scores; some have no sex or decision."""
    draw = np.random.default_rng(seed)
    race = draw.choice(["Asian", "Black", "White", "not stated"], rows, p=[0.2, 0.25, 0.5, 0.05])
    score = draw.normal(size=rows) - (race == "Black")
    hired = np.where(draw.random(rows) < 1 / (1 + np.exp(-score)), "yes", "no")
    number = pl.int_range(pl.len())
    return pl.DataFrame(
        {
            "sex": draw.choice(["female", "male"], rows, p=[0.4, 0.6]),
            "race": race,
            "score": score,
            "hired": hired,
            "w": draw.integers(1, 4, rows),
            "unit": draw.integers(0, 40, rows),
            "stratum": np.arange(rows) % 3,
        }
    ).with_columns(
        sex=pl.when(number % 29 > 0).then("sex"), hired=pl.when(number % 97 > 0).then("hired")
    )


ROWS = hires()


def of_comparison(table: pl.DataFrame, metric: str) -> pl.DataFrame:
    """Take the rows of a metric, in the columns that all tables of comparisons have."""
    rows = table.filter(pl.col("attribute") != "overall", metric=metric)
    return rows.select(pl.exclude("reason").exclude("sentence", "direction", "rank")).select(
        name
        for name in wroc.impact_ratios(ROWS, selected=RECORDED, **GIVEN).columns
        if name != "reason"
    )


@pytest.mark.slow(reason="makes several audits")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"weight": "w", "intersections": True},
        {"design": wroc.Survey("unit", strata="stratum"), "weight": "w"},
        {"reference": {"race": "White"}},
        {"reference": "overall"},
    ],
    ids=["plain", "weighted, crossed", "survey", "named", "overall"],
)
def test_gaps_and_ratios_are_those_of_the_functions(options: dict[str, Any]) -> None:
    rows = ROWS.filter(pl.col("hired").is_not_null())
    audit = wroc.audit(rows, selected=RECORDED, unknown=["not stated"], **GIVEN, **options)
    replaced = pl.when(pl.col("race") != "not stated").then("race")
    known = rows.with_columns(race=replaced, y=pl.int_range(pl.len()) % 2)
    gaps = wroc.group_gaps(
        known, "y", selected=RECORDED, attributes=["sex", "race"], min_rows=30, **options
    )
    # Fewer tests are adjusted for than where there is a label.
    adjusted = ["p_adjusted", "verdict", "detectable"]
    assert_frame_equal(
        of_comparison(audit.table, "selection_rate").drop(adjusted),
        of_comparison(gaps, "selection_rate").drop(adjusted),
        check_row_order=False,
        rel_tol=1e-9,
        abs_tol=1e-12,
    )
    ratios = wroc.impact_ratios(
        rows,
        selected=RECORDED,
        unknown=["not stated"],
        **GIVEN,
        **{name: value for name, value in options.items() if name != "reference"},
    )
    assert_frame_equal(
        of_comparison(audit.table, "impact_ratio").drop("verdict"),
        of_comparison(ratios, "impact_ratio").drop("verdict"),
        check_row_order=False,
        rel_tol=1e-9,
    )


def test_p_values_of_selection_rates_are_adjusted_for_themselves() -> None:
    table = wroc.audit(ROWS, selected=RECORDED, **GIVEN).table
    tests = table.filter(metric="selection_rate").drop_nulls("p_value").sort("p_value")
    # Of two segments that are each the other's rest there is one test; sex has a third, missing.
    number = tests.height
    holm = np.maximum.accumulate((number - np.arange(number)) * tests["p_value"].to_numpy())
    np.testing.assert_allclose(tests["p_adjusted"], np.minimum(holm, 1), rtol=1e-9)


def test_rates_and_parity_are_those_of_other_libraries() -> None:
    rows = ROWS.drop_nulls(["hired", "sex"])
    audit = wroc.audit(rows, selected=RECORDED, **GIVEN)
    assert set(audit.table["metric"]) == {
        "selection_rate",
        "impact_ratio",
        "demographic_parity_difference",
        "demographic_parity_ratio",
    }
    decided = (rows["hired"] == "yes").to_numpy()
    for attribute in ("sex", "race"):
        given = {"y_true": decided, "y_pred": decided, "sensitive_features": rows[attribute]}
        of_attribute = audit.table.filter(attribute=attribute)
        for kind, column in (("difference", "gap"), ("ratio", "ratio")):
            name = f"demographic_parity_{kind}"
            expected = getattr(fairlearn.metrics, name)(**given)
            assert of_attribute.filter(metric=name)[column].item() == pytest.approx(expected)
    overall = audit.table.row(0, named=True)
    limits = proportion_confint(decided.sum(), decided.size, method="wilson")
    found = [overall[name] for name in ("value", "value_low", "value_high")]
    assert found == pytest.approx([decided.mean(), *limits])


def test_no_number_is_made_up_for_classes() -> None:
    audit = wroc.audit(ROWS, selected=RECORDED, **GIVEN)
    known = audit.segments.select(name for name in audit.segments.columns if name[:2] != "n_")
    assert known.columns[:4] == ["attribute", "segment", "model", "n"]
    for name in ("model", "n_pos", "n_neg", "w_pos", "w_neg", "tp", "fp", "fn", "tn"):
        assert audit.segments[name].null_count() == audit.segments.height
    assert audit.curves.is_empty()
    assert audit.distributions.is_empty()
    first = audit.segments.row(0, named=True)
    decided = ROWS["hired"].drop_nulls()
    assert first["n"] == decided.len()
    assert first["n_missing"] == ROWS.height - decided.len()
    assert first["n_selected"] == (decided == "yes").sum()
    assert dict(audit.missing.rows()) == {
        name: ROWS[name].null_count() for name in ("hired", "sex", "race")
    }


def test_mean_scores_and_distributions_are_compared() -> None:
    audit = wroc.audit(ROWS, score="score", selected=RECORDED, weight="w", **GIVEN)
    table = audit.table.filter(metric="standardized_mean_difference")
    # Rows without a decision are in no number.
    rows = ROWS.drop_nulls("hired")
    unknown = table.filter(reason="an unknown category")
    assert unknown["n"].to_list() == [rows["sex"].null_count()]
    # Rows of unknown category are in no reference, but in the standard deviation of all.
    sd = np.sqrt(np.cov(rows["score"], aweights=rows["w"]))
    named = table.drop_nulls("segment").select("attribute", "segment", "value")
    for attribute, segment, value in named.rows():
        known = rows.drop_nulls(attribute)
        own = (known[attribute] == segment).to_numpy()
        means = [np.average(known["score"], weights=known["w"] * side) for side in (own, ~own)]
        assert value == pytest.approx((means[0] - means[1]) / sd, rel=1e-9)
    black = table.row(by_predicate=pl.col("segment") == "Black", named=True)
    assert black["sentence"].startswith("The mean score of the group Black (race) is ")
    assert "standard deviations below that of everyone else (" in black["sentence"]
    assert black["model"] == "score"
    by_race = wroc.score_distribution(rows, "score", weight="w", by="race")
    shown = audit.distributions.filter(attribute="race").drop("attribute", "model")
    assert_frame_equal(shown.rename({"segment": "race"}), by_race, check_row_order=False)


def test_a_threshold_decides_on_scores_without_a_label() -> None:
    audit = wroc.audit(ROWS, score="score", threshold="median", **GIVEN)
    median = np.median(ROWS["score"])
    rates = audit.table.filter(attribute="race", metric="selection_rate")
    for segment, value in rates.select("segment", "value").rows():
        scores = ROWS.filter(race=segment)["score"].to_numpy()
        assert value == pytest.approx((scores > median).mean())
    assert audit.reading.startswith("A score of ")


@pytest.mark.slow(reason="makes several audits")
def test_a_lazy_frame_and_parts_of_it_give_the_same_audit() -> None:
    options: dict[str, Any] = {"score": "score", "selected": RECORDED, **GIVEN}
    audit = wroc.audit(ROWS, **options)
    for frame in (ROWS.lazy(), [ROWS[:300], ROWS[300:]]):
        assert_frame_equal(wroc.audit(frame, **options).table, audit.table, rel_tol=1e-9)


def test_small_cells_are_not_published() -> None:
    rows = hires(300, 5).with_columns(race=pl.col("race").replace("Asian", "not stated"))
    few = pl.DataFrame({"sex": ["male"] * 4, "race": ["Other"] * 4, "hired": ["yes", "no"] * 2})
    both = pl.concat([rows, few], how="diagonal")
    audit = wroc.audit(both, selected=RECORDED, min_cell=5, **GIVEN)
    assert "Other" not in audit.table["segment"]
    assert audit.run.left_out
    least = audit.segments.select(
        pl.min_horizontal("n_selected", pl.col("n") - pl.col("n_selected"))
    )
    assert least.min().item() >= 5


@pytest.mark.parametrize("unknown", ["exclude", "keep"])
def test_mean_scores_tell_no_few_rows(unknown: str) -> None:
    """Rows without a sex are too few to show: mean scores are those of the other rows."""
    given = GIVEN | {"score": "score", "selected": RECORDED, "unknown": unknown}
    audit = wroc.audit(hires(), min_cell=13, **given)
    assert audit.run.left_out_of_totals == ["sex"]
    shown = audit.segments.select("attribute", "segment", "n")
    of_scores = audit.table.filter(metric="standardized_mean_difference")
    assert of_scores.select(shown.columns).join(shown, on=shown.columns, how="anti").is_empty()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"score": "score"}, "`label` must be given unless only decisions are audited"),
        ({"threshold": 0.5}, "`score` must be given unless decisions are `selected` without"),
        (
            {"threshold": wroc.rules.youden(), "score": "score"},
            r"`threshold` must be a number, 'median' or rules.max_selection_rate.* found youden",
        ),
        ({"selected": RECORDED, "pos_label": 1}, "`pos_label` must be None without a `label`"),
        ({"selected": RECORDED, "unknown": [1.5]}, "`unknown` must hold possible values of 'sex'"),
        ({"selected": "hired"}, "`selected` must be Boolean"),
    ],
)
def test_what_needs_a_label_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        wroc.audit(ROWS, **GIVEN, **given)


def test_every_output_says_what_was_not_looked_at(tmp_path: Path, chromium: Chromium) -> None:
    text = wroc.Text(title="Hiring <1>", selected="hired")
    audit = wroc.audit(ROWS, score="score", selected=RECORDED, text=text, **GIVEN)
    unseen = "No outcomes were given, so the audit cannot tell whether decisions were right."
    assert unseen in " ".join(repr(audit).split())
    assert unseen in audit._repr_html_()
    for suffix in (".html", ".md", ".json", ".xlsx", ".csv"):
        audit.save(tmp_path / f"audit{suffix}")
    assert unseen in (tmp_path / "audit.md").read_text()
    chromium.open(tmp_path / "audit.html")
    page = chromium.evaluate("document.querySelector('main').textContent")
    assert unseen in page
    for absent in ("AUC", "positive rate", "ROC", "undefined label"):
        assert absent not in page, absent
    sheets = openpyxl.load_workbook(tmp_path / "audit.xlsx").sheetnames
    assert sheets == ["About", "table", "segments", "distributions", "missing"]
    saved = json.loads((tmp_path / "audit.json").read_text())
    assert saved["settings"]["labeled"] is False
    assert saved["settings"]["score"] == ["score"]


def test_impact_ratios_are_compared_with_those_before(tmp_path: Path) -> None:
    before, after = (wroc.audit(hires(900, seed), selected=RECORDED, **GIVEN) for seed in (1, 2))
    before.save(tmp_path / "before.json")
    changes = wroc.audit_changes(tmp_path / "before.json", after)
    ratios = changes.filter(metric="impact_ratio").drop_nulls("gap")
    tables = [
        audit.table.filter(metric="impact_ratio", segment="Black") for audit in (before, after)
    ]
    old, new = (table.row(0, named=True) for table in tables)
    black = ratios.row(by_predicate=pl.col("segment") == "Black", named=True)
    assert black["gap"] == pytest.approx(new["ratio"] - old["ratio"])
    # MOVER of both intervals.
    low = black["gap"] - np.hypot(new["ratio"] - new["ratio_low"], old["ratio_high"] - old["ratio"])
    assert black["gap_low"] == pytest.approx(low)
    distance = black["gap"] - low
    if black["gap"] < 0:
        distance = np.hypot(new["ratio_high"] - new["ratio"], old["ratio"] - old["ratio_low"])
    score = stats.norm.ppf(0.975) * abs(black["gap"]) / distance
    assert black["p_value"] == pytest.approx(2 * stats.norm.sf(score))
    with pytest.raises(ValueError, match="must be audits of different rows"):
        wroc.audit_changes(after, after)


@pytest.mark.slow(reason="runs several commands")
def test_the_command_line_audits_decisions_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, page = tmp_path / "hires.csv", tmp_path / "report.html"
    ROWS.write_csv(source)
    command = ["audit", str(source), "--selected", "hired=yes", "--favorable", "selected"]
    command += ["--attribute", "sex", "--attribute", "race", "--unknown", "not stated"]
    assert main([*command, "-o", str(page)]) == 0
    assert "No outcomes were given" in capsys.readouterr().out
    assert page.exists()
    assert main([*command, "--fail-if", "impact_ratio.ratio<0.9"]) == 1
    assert "FAILED impact_ratio < 0.9 in " in capsys.readouterr().err
    assert main([*command, "--fail-if", "auc.value<0.5"]) == 2
    assert "found 'auc' (it needs a label)" in capsys.readouterr().err
    assert main(["audit", str(source), "--attribute", "sex"]) == 2
    assert (
        "or for decisions alone: --selected, or --score and --threshold" in capsys.readouterr().err
    )
    for month in ("a", "b"):
        hires(800, ord(month)).write_csv(source)
        assert main([*command, "-o", str(tmp_path / f"{month}.json")]) == 0
    both = [str(tmp_path / f"{month}.json") for month in ("a", "b")]
    capsys.readouterr()
    assert main(["diff", *both]) == 0
    assert "None of 15 tested changes is significant." in capsys.readouterr().out
    shown = ["--metric", "impact_ratio", "--show", "value", "-o", str(tmp_path / "changes.svg")]
    assert main(["diff", *both, *shown]) == 0


def test_rows_without_decisions_lack_no_label() -> None:
    undecided = ROWS.with_columns(hired=pl.lit(None, pl.String))
    with pytest.raises(ValueError, match="found none: 700 rows lack a decision or weight"):
        wroc.audit(undecided, selected=RECORDED, **GIVEN)


def test_charts_draw_rates_with_four_fifths() -> None:
    audit = wroc.audit(ROWS, selected=RECORDED, **GIVEN)
    spec = audit.chart().to_dict()
    assert "Orange mark: four fifths" in json.dumps(spec)
    assert type(audit.chart("race")).__name__ == "LayerChart"
