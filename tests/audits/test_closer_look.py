"""What reports say further is what the functions for it find in the rows of the audit."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from audit_words import cautions, page_words
from divided import audit_in_ranges
from polars.testing import assert_frame_equal
from statsmodels.stats.multitest import multipletests

import polars_wroc as wroc

ATTRIBUTES: dict[str, Any] = {"attributes": ["sex", "age"]}
OPTIONS: dict[str, Any] = {**ATTRIBUTES, "threshold": 0.4, "favorable": "selected"}


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    """Scores that are twice the risk of women, and less of old ones that are selected."""
    rng = np.random.default_rng(7)
    n = 3_000
    score, sex = rng.beta(1, 2, n), rng.choice(list("fm"), n)
    age = rng.choice(["old", "young", "middle"], n)
    wronged = (sex == "f") & (age == "old")
    risk = np.where(sex == "f", score / 2, score)
    label = rng.random(n) < risk
    score = np.where(wronged & label, score * 0.7, score)
    return pl.DataFrame(
        {
            "y": label,
            "s": score,
            "sex": sex,
            "age": age,
            "w": rng.lognormal(0, 0.5, n),
            "times": rng.integers(1, 4, n),
            "house": rng.integers(0, 90, n),
            "decided": rng.random(n) < score,
        }
    )


@pytest.fixture(scope="module")
def audit(people: pl.DataFrame) -> wroc.Audit:
    return wroc.audit(people, "y", "s", **OPTIONS)


SAMPLES: dict[str, dict[str, Any]] = {
    "rows": {},
    "weights": {"weight": "w"},
    "frequencies": {"weight": wroc.frequency("times")},
    "clusters": {"design": "house"},
}


@pytest.mark.slow(reason="makes several audits")
@pytest.mark.parametrize("given", SAMPLES.values(), ids=[*SAMPLES])
def test_calibration_is_tested_over_all_segments(
    people: pl.DataFrame, given: dict[str, Any]
) -> None:
    found = wroc.audit(people, "y", "s", **OPTIONS, **given).further().calibration
    assert found["attribute"].to_list() == ["overall", *["sex"] * 2, *["age"] * 3]
    tables = [
        wroc.calibration_test(people, "y", "s", by=by, adjust="none", **given)
        for by in (None, "sex", "age")
    ]
    alone = pl.concat([table.select("n", "from_score", "p_value") for table in tables])
    assert_frame_equal(found.select(alone.columns), alone, abs_tol=1e-12)
    adjusted = multipletests(alone["p_value"].to_numpy(), method="holm")[1]
    np.testing.assert_allclose(found["p_adjusted"].to_numpy(), adjusted, atol=1e-12)


def test_equal_scores_are_tested_over_all_attributes(
    people: pl.DataFrame, audit: wroc.Audit
) -> None:
    found = audit.further().equal_scores
    tables = [
        wroc.calibration_test(
            people, "y", "s", attributes=name, reference="rest", adjust="none"
        ).select("p_value", "mean_gap")
        for name in ("sex", "age")
    ]
    assert_frame_equal(found.select("p_value", "mean_gap"), pl.concat(tables))
    # The two sexes are one test.
    once = multipletests(found["p_value"].to_numpy()[1:], method="holm")[1]
    np.testing.assert_allclose(found["p_adjusted"].to_numpy(), [once[0], *once], atol=1e-12)


def test_the_search_is_that_of_worst_segments(people: pl.DataFrame, audit: wroc.Audit) -> None:
    found = audit.further().exploration
    expected = wroc.worst_segments(people, "y", "s", redundant=True, top=10, **OPTIONS)
    assert expected.height > 1
    assert_frame_equal(found.select(expected.columns), expected)
    named = found.filter("named").select("attribute", "segment").rows()
    assert {attribute for attribute, _ in named} <= {"sex", "age"}
    assert not found["named"].all()
    crossed = wroc.audit(people, "y", "s", intersections=True, **OPTIONS).further().exploration
    assert crossed[1:]["named"].all()
    said = page_words(audit)
    assert "Other subgroups The group f, old (sex and age): " in said
    assert "allowing for all 11 subgroups that were compared." in said


@pytest.mark.slow(reason="makes several audits")
@pytest.mark.parametrize(
    ("given", "metric", "call"),
    [
        ({"favorable": "rejected", "threshold": 0.4}, "selection_rate", {}),
        ({"favorable": "selected", "selected": "decided"}, "tpr", {}),
        ({}, "brier_score", {}),
        ({"favorable": "selected", "selected": "decided"}, "selection_rate", {"label": None}),
        ({"favorable": "selected", "threshold": 0.4}, "selection_rate", {"label": None}),
        ({"favorable": "selected", "threshold": "median"}, "tpr", {}),
    ],
)
def test_the_headline_is_searched(
    people: pl.DataFrame, given: dict[str, Any], metric: str, call: dict[str, Any]
) -> None:
    columns = {"label": "y", "score": "s", **ATTRIBUTES} | call
    found = wroc.audit(people, **columns, **given).further().exploration
    searched = wroc.worst_segments(people, metric=metric, redundant=True, **columns, **given)
    assert_frame_equal(found.select(searched.columns), searched, abs_tol=1e-12)


@pytest.mark.slow(reason="makes several audits")
def test_counts_say_the_same(people: pl.DataFrame) -> None:
    rounded = people.with_columns(pl.col("s").round(2))
    counts = wroc.score_counts(rounded, "y", "s", by=OPTIONS["attributes"])
    of_counts = wroc.from_counts(counts).audit(**OPTIONS).further()
    of_rows = wroc.audit(rounded, "y", "s", **OPTIONS).further()
    for one, other in zip(of_counts[:3], of_rows[:3], strict=True):
        assert_frame_equal(
            one.drop("sentence", "model", strict=False),
            other.drop("sentence", "model", strict=False),
            abs_tol=1e-9,
        )


def test_a_lazy_frame_gives_the_same(people: pl.DataFrame, audit: wroc.Audit) -> None:
    found = wroc.audit(people.lazy(), "y", "s", **OPTIONS).further()
    for one, other in zip(found[:3], audit.further()[:3], strict=True):
        assert_frame_equal(one, other, abs_tol=1e-9)


def test_scores_are_told_apart(people: pl.DataFrame) -> None:
    two = people.with_columns(rating=300 + 500 * pl.col("s"), square=pl.col("s") ** 2)
    result = wroc.audit(two, "y", ["s", "rating", "square"], **OPTIONS)
    found = result.further()
    # A rating is no probability.
    assert found.calibration["model"].unique(maintain_order=True).to_list() == ["s", "square"]
    assert found.exploration.is_empty()
    assert list(found.left_out) == [
        "Other subgroups were not searched for differences, because there are several scores."
    ]
    assert found.equal_scores["model"].unique(maintain_order=True).to_list() == ["s", "square"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"min_cell": 5}, "numbers of few rows could be computed from segments that overlap"),
        ({"level": wroc.Looks(9_000)}, "its limits would hold at one look only"),
    ],
)
def test_what_is_left_out_is_a_limit(
    people: pl.DataFrame, given: dict[str, Any], why: str, tmp_path: Path
) -> None:
    result = wroc.audit(people, "y", "s", **OPTIONS, **given)
    found = result.further()
    assert found.exploration.is_empty()
    assert found.calibration.is_empty()
    assert found.equal_scores.is_empty()
    result.save(tmp_path / "audit.md")
    text = (tmp_path / "audit.md").read_text(encoding="utf-8")
    assert f"- Other subgroups were not searched for differences, because {why}." in text
    assert "## Other subgroups" not in text


def test_rows_in_ranges_are_not_looked_at_again(people: pl.DataFrame, audit: wroc.Audit) -> None:
    divided = audit_in_ranges(people, "y", "s", rows_per_range=1_000, **OPTIONS)
    assert divided.verdict == audit.verdict
    assert [table.height for table in divided.further()[:3]] == [0] * 3
    (why,) = divided.further().left_out
    assert why.endswith("there are more rows than fit into memory.")


def test_many_rows_are_searched_only(people: pl.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polars_wroc.audits.closer_look._MOST_ROWS", 100)
    found = wroc.audit(people, "y", "s", **OPTIONS).further()
    assert found.exploration.height
    assert found.calibration.is_empty()
    assert [*found.left_out] == [
        "Calibration along the scores is left out: there are more than 100 rows."
    ]


@pytest.mark.slow(reason="makes several audits")
def test_many_segments_are_searched_less_deeply(
    people: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polars_wroc.groups.segment_search._MOST_SEGMENTS", 5)
    result = wroc.audit(people, "y", "s", **OPTIONS)
    assert result.further().exploration["n_examined"][0] == 5
    assert result.further().exploration["most_conditions"][0] == 1
    monkeypatch.setattr("polars_wroc.groups.segment_search._MOST_SEGMENTS", 1)
    (why,) = wroc.audit(people, "y", "s", **OPTIONS).further().left_out
    assert why.endswith("there are too many segments.")


def test_one_attribute_is_not_searched(people: pl.DataFrame) -> None:
    result = wroc.audit(people, "y", "s", **OPTIONS | {"attributes": "sex"})
    assert result.further().exploration.is_empty()
    assert not result.further().left_out
    assert "Other subgroups" not in page_words(result)


def test_a_stratum_of_one_unit_is_not_searched(people: pl.DataFrame) -> None:
    alone = people.with_columns(area=pl.when(house=1).then(1).otherwise(0))
    survey = wroc.Survey("house", strata="area")
    (why,) = wroc.audit(alone, "y", "s", design=survey, **OPTIONS).further().left_out
    assert why.endswith("a stratum has a single sampling unit.")


def test_nothing_of_it_is_in_the_verdict(people: pl.DataFrame, audit: wroc.Audit) -> None:
    again = wroc.audit(people, "y", "s", **OPTIONS)
    verdict, text = again.verdict, repr(again)
    again.further()
    assert (again.verdict, repr(again)) == (verdict, text)
    said = [verdict, *audit.findings["sentence"], *audit.table["sentence"].drop_nulls()]
    assert not any("after counting all" in text or "imply" in text for text in said)


def test_a_copy_has_no_rows(audit: wroc.Audit) -> None:
    copy = pickle.loads(pickle.dumps(audit))  # noqa: S301
    assert copy.to_json() == audit.to_json()
    assert vars(copy.further).keys() == {"tables"}


def test_reports_say_it(audit: wroc.Audit, tmp_path: Path) -> None:
    for suffix in ("html", "md", "json"):
        audit.save(tmp_path / f"audit.{suffix}")
    page, text, document = (
        (tmp_path / f"audit.{suffix}").read_text(encoding="utf-8")
        for suffix in ("html", "md", "json")
    )
    assert "<h2>Other subgroups</h2>" in page
    assert "## Other subgroups" in text
    further = json.loads(document)["further"]
    kept = pl.DataFrame(further["exploration"], schema=audit.further().exploration.schema)
    assert_frame_equal(kept, audit.further().exploration)
    assert set(further) == {
        *("calibration", "equal_scores", "exploration"),
        *("calibration_curves", "distributions", "scores"),
    }


def test_impossible_scores_are_told(people: pl.DataFrame) -> None:
    wrong = people.with_columns(
        s=pl.when(~pl.col("y") & (pl.col("s") > 0.7)).then(1.0).otherwise("s")
    )
    result = wroc.audit(wrong, "y", "s", **OPTIONS)
    n = wrong.filter(s=1.0).height
    assert f"{n} rows with a score of 0 or 1 did not come true." in cautions(result)
