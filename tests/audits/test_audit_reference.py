"""Segments that are named as what others of their attribute are compared with."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from audit_words import page_words
from plain_roc import weight_as
from polars.testing import assert_frame_equal
from sweeps import sweep
from wide_tables import gaps_of

import polars_wroc as wroc
from polars_wroc.cli import main

CROSSED = "sex \N{MULTIPLICATION SIGN} age"


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    rng = np.random.default_rng(44)
    size = 900
    sex = rng.choice(["f", "m"], size)
    positive = rng.random(size) < 0.4
    return pl.DataFrame(
        {
            "sex": sex,
            "age": rng.choice([20, 30, 40], size),
            "site": rng.choice(["a", "b"], size),
            "y": positive,
            "s": np.round(rng.normal(size=size) + positive * np.where(sex == "m", 2.0, 0.5), 1),
            "t": rng.normal(size=size) + positive,
            "w": rng.lognormal(size=size, sigma=0.4),
        }
    )


def assert_same_gaps(audit: wroc.Audit, gaps: pl.DataFrame) -> None:
    """Compare the rows of an audit with those of a function that adjusts for fewer tests."""
    keys = pl.col("attribute").is_in(gaps["attribute"].unique().to_list())
    metrics = pl.col("metric").is_in(gaps["metric"].unique().to_list())
    found = audit.table.filter(keys, metrics)
    columns = [
        name
        for name in gaps.columns
        if name not in ("detectable", "verdict", "reason", "p_adjusted")
    ]
    assert_frame_equal(found.select(columns), gaps.select(columns), abs_tol=1e-10, rel_tol=1e-8)


@pytest.mark.slow(reason="makes several audits")
@pytest.mark.parametrize("score", sweep(["s", ["s", "t"]]))
@pytest.mark.parametrize("weight", sweep([None, "w"]))
def test_gaps_are_those_of_each_attribute_by_itself(
    rows: pl.DataFrame, score: Any, weight: str | None
) -> None:
    options: Any = {"weight": weight, "threshold": 0.7, "adjust": "none", "min_rows": 10}
    found = wroc.audit(
        rows,
        "y",
        score,
        attributes=["sex", "age", "site"],
        intersections=True,
        reference={"age": 30, "sex": "m"},
        favorable="selected",
        **options,
    )
    for attribute, reference in {"sex": "m", "age": 30, "site": "rest"}.items():
        expected = wroc.group_gaps(
            rows, "y", score, attributes=attribute, reference=reference, **options
        )
        assert_same_gaps(found, expected)


@pytest.mark.parametrize("weight_type", sweep(["probability", "frequency"]))
def test_crossed_segments_may_be_named(rows: pl.DataFrame, weight_type: Any) -> None:
    rows = rows.with_columns(w=pl.col("w").ceil())
    options: Any = {"weight": weight_as("w", weight_type), "adjust": "none"}
    by = ["sex", "age"]
    found = wroc.audit(
        rows, "y", "s", attributes=by, intersections=True, reference={CROSSED: "f, 40"}, **options
    )
    crossed = wroc.group_gaps(
        rows, "y", "s", attributes=by, intersections="only", reference="f, 40", **options
    )
    assert_same_gaps(found, crossed)
    assert_same_gaps(found, wroc.group_gaps(rows, "y", "s", attributes="sex", **options))


def test_all_tests_are_one_family(rows: pl.DataFrame) -> None:
    """Two segments are one test where each is the rest of the other, and where one is named."""
    found = wroc.audit(
        rows, "y", "s", attributes=["sex", "site", "age"], reference={"sex": "m", "age": 20}
    )
    values = gaps_of(found)["auc_gap_p_value"].to_list()
    counted = [1, 0, 0, 1, 0, 1, 1]
    assert [value is not None for value in values] == [True, False, *[True] * 2, False, *[True] * 2]
    ordered = sorted(value for value, counts in zip(values, counted, strict=True) if counts)
    steps = [(len(ordered) - place) * value for place, value in enumerate(ordered)]
    holm = dict(zip(ordered, np.minimum(np.maximum.accumulate(steps), 1), strict=True))
    for value, adjusted in zip(values, gaps_of(found)["auc_gap_p_adjusted"], strict=True):
        assert adjusted == (None if value is None else pytest.approx(holm[value], rel=1e-9))
    assert found.findings["p_value"].count() == len(ordered)


def test_words_say_what_is_compared_with_what(rows: pl.DataFrame) -> None:
    found = wroc.audit(
        rows,
        "y",
        "s",
        attributes=["sex", "site"],
        reference={"sex": "m"},
        threshold=0.7,
        favorable="selected",
    )
    assert found.settings.as_dict()["reference"] == {"sex": "m"}
    assert json.loads(found.to_json())["settings"]["reference"] == {"sex": "m"}
    # All rows, and fairness metrics, have other references.
    gaps = pl.col("attribute") != "overall", pl.col("direction").is_not_null()
    for row in found.table.filter(*gaps, pl.col("metric") != "impact_ratio").rows(named=True):
        assert row["reference"] == ("m" if row["attribute"] == "sex" else "rest")
        other = "the group m (sex)" if row["attribute"] == "sex" else "everyone else"
        assert other in row["sentence"] or row["verdict"] is None
    page = page_words(found)
    assert "Each group is compared with the group m (sex) or" in page


@pytest.mark.parametrize(
    ("values", "given", "name"),
    sweep(
        [
            (pl.Series([True, False]), True, "true"),
            (pl.Series([True, False]), "true", "true"),
            (pl.Series([1.0, 2.0]), 1, "1.0"),
            (pl.Series([1, 2], dtype=pl.Int8), 1.0, "1"),
            (pl.Series([dt.date(2020, 1, 2), None]), dt.date(2020, 1, 2), "2020-01-02"),
            (pl.Series(["a", "b"], dtype=pl.Categorical), "a", "a"),
            (pl.Series(["rest", "best"]), "best", "best"),
        ],
        fast=3,
    ),
)
def test_a_segment_is_named_by_its_value_or_its_name(
    values: pl.Series, given: object, name: str
) -> None:
    frame = pl.DataFrame({"g": values, "y": [1, 0], "s": [1, 2]})
    found = wroc.audit(pl.concat([frame, frame]), "y", "s", attributes="g", reference={"g": given})
    assert found.settings.as_dict()["reference"] == {"g": name}


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        (
            {"race": "a"},
            r"^`reference` must name attributes out of \['sex', 'age'\]; found 'rac",
        ),
        ({CROSSED: "m, 20"}, "^`reference` must name attributes out of"),
        (
            {"sex": "x"},
            r"^`reference` must be .* or a segment of sex \('f', 'm'\); found no segment 'x'$",
        ),
        (
            {"age": "20.0"},
            r" or a segment of age \(.*\); found no segment '20.0'; did you mean '20'\?$",
        ),
        ({"age": 7000}, r" or a segment of age \(.*\); found no segment '7000'$"),
        ({"sex": 1}, r"^`reference` must give 'sex' \(String\) one of its values .*; found 1$"),
        ({"age": 20.5}, r"^`reference` must give 'age' \(Int64\) .*; found 20.5$"),
        ({"age": None}, r"^`reference` must give 'age' .*; found None$"),
        ({"sex": ("m",)}, r"^`reference` must give 'sex' .*; found \('m',\)$"),
        (
            "m",
            ("^`reference` must be 'rest', 'overall' or map attributes to"),
        ),
    ],
)
def test_what_is_no_segment_is_refused(rows: pl.DataFrame, reference: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wroc.audit(rows, "y", "s", attributes=["sex", "age"], reference=reference)


def assert_same_tables(text: str, audit: wroc.Audit) -> None:
    """Compare what was printed with an audit; sums differ in the last digits from run to run."""
    found, expected = json.loads(text), json.loads(audit.to_json())
    assert found.keys() == expected.keys()
    assert [file["name"] for file in found["run"]["files"]] == ["rows.parquet"]
    assert found["settings"] == expected["settings"]
    for name in ("segments", "table"):
        pairs = zip(found[name], expected[name], strict=True)
        for row, wanted in pairs:
            for key, value in wanted.items():
                close = pytest.approx(value, rel=1e-9) if isinstance(value, float) else value
                assert row[key] == close


@pytest.mark.slow(reason="runs several commands")
def test_command_line_names_segments(
    rows: pl.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows.write_parquet(tmp_path / "rows.parquet")
    command = ["audit", str(tmp_path / "rows.parquet"), "--label", "y", "--score", "s"]
    command += ["--attribute", "sex", "--attribute", "age", "-o", "-"]
    named = ["--reference", "sex=m", "--reference", "age=30"]
    assert main([*command, *named]) == 0
    expected = wroc.audit(
        rows, "y", "s", attributes=["sex", "age"], reference={"sex": "m", "age": 30}
    )
    assert_same_tables(capsys.readouterr().out, expected)
    assert main([*command, "--reference", "overall"]) == 0
    overall = wroc.audit(rows, "y", "s", attributes=["sex", "age"], reference="overall")
    assert_same_tables(capsys.readouterr().out, overall)
    for wrong, found in (
        (["--reference", "sex=x"], "--reference must be 'rest', 'overall' or a segment of sex"),
        (
            ["--reference", "male"],
            "--reference must be 'rest', 'overall' or map",
        ),
        (
            [*named, "--reference", "rest"],
            "one of the kinds, or only segments such as sex=m; found",
        ),
        ([*named, "--reference", "sex=f"], "--reference must name one segment per attribute;"),
    ):
        assert main([*command, *wrong]) == 2
        assert found in capsys.readouterr().err
