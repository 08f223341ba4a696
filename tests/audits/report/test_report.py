"""The audit's tables and the files it leaves."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import polars as pl
import pytest
from audit_words import page_words
from polars.testing import assert_frame_equal
from sweeps import sweep

import polars_wroc as wroc

PATIENTS = Path(__file__).parents[3] / "polars_wroc" / "data" / "diabetes.parquet"


@pytest.fixture(scope="module")
def result() -> wroc.Audit:
    return wroc.audit(
        pl.scan_parquet(PATIENTS),
        "progressed",
        ["score", "score_b"],
        weight="weight",
        attributes=["sex", "age_band"],
    )


def test_segments_are_the_summary_of_each_attribute(result: wroc.Audit) -> None:
    for attribute in ("sex", "age_band"):
        expected = wroc.summary(
            pl.read_parquet(PATIENTS),
            "progressed",
            ["score", "score_b"],
            weight="weight",
            by=attribute,
            diagnostics=True,
        ).rename({attribute: "segment", "auc": "value"})
        keys, ends = ["segment", "model"], ["value_low", "value_high"]
        expected = expected.with_columns(pl.col("segment").cast(pl.String)).rename(
            dict(zip(("auc_low", "auc_high"), ends, strict=True))
        )
        found = result.table.filter(attribute=attribute, metric="auc")
        columns = [*keys, "value", *ends]
        assert_frame_equal(found.select(columns), expected.select(columns), abs_tol=1e-12)
        counts = [*keys, "n", "n_pos", "n_neg", "n_missing", "w_pos", "w_neg"]
        segments = result.segments.filter(attribute=attribute)
        assert_frame_equal(segments.select(counts), expected.select(counts), abs_tol=1e-12)


def test_overall_comes_first(result: wroc.Audit) -> None:
    assert result.segments["attribute"].unique(maintain_order=True).to_list() == [
        "overall",
        "sex",
        "age_band",
    ]
    assert result.segments["n"][0] == 442


def test_null_and_number_segments() -> None:
    data = pl.DataFrame({"a": [1, 1, None, None], "y": [1, 0, 1, 0], "s": [0.9, 0.1, 0.2, 0.3]})
    aucs = wroc.audit(data, "y", "s", attributes="a").table.filter(metric="auc")
    assert aucs["segment"].to_list() == ["overall", None, "1"]
    assert aucs["value"].to_list() == [0.75, 0.0, 1.0]


def test_page_holds_the_numbers(result: wroc.Audit) -> None:
    words = page_words(result)
    for row in result.table.filter(metric="auc").rows(named=True):
        limits = f"({row['value_low']:.3f} to {row['value_high']:.3f})"
        assert f"{row['n']:,} {row['value']:.3f} {limits}" in words


def test_page_says_when_and_of_what_it_was_made(result: wroc.Audit) -> None:
    words = page_words(result)
    assert f"with polars-wroc {wroc.__version__} and Polars {pl.__version__}." in words
    # Of a frame nobody knows where it is from.
    assert not result.run.files
    assert "Data:" not in words
    assert words.endswith("Reviewed by, date and signature:")


def test_text_from_the_data_cannot_become_markup(tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script>"
    data = pl.DataFrame({"a": [evil] * 2, "y": [1, 0], "s": [0.9, 0.1]})
    path = tmp_path / "report.html"
    wroc.audit(data, "y", "s", attributes="a").save(path)
    text = path.read_text(encoding="utf-8")
    assert "alert(1)" in text
    assert "<script>alert" not in text


@pytest.mark.parametrize("suffix", ["json", "csv", "parquet"])
def test_same_numbers_in_every_format(result: wroc.Audit, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"audit.{suffix}"
    result.save(path)
    if suffix == "json":
        found = pl.DataFrame(json.loads(path.read_text())["table"])
    else:
        found = pl.read_csv(path) if suffix == "csv" else pl.read_parquet(path)
    assert_frame_equal(found, result.table, check_dtypes=False)


def test_bad_paths_leave_nothing(result: wroc.Audit, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"`path` must end in one of .*; found 'x.pdf'"):
        result.save("x.pdf")
    with pytest.raises(ValueError, match="there is no folder"):
        result.save(tmp_path / "none" / "x.html")
    assert list(tmp_path.iterdir()) == []


def test_missing_extra_says_what_to_install(
    result: wroc.Audit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(ImportError, match=r"pip install 'polars-wroc\[report\]'"):
        result.save(tmp_path / "x.html")
    assert list(tmp_path.iterdir()) == []
    # Only charts need it.
    result.save(tmp_path / "x.md")
    assert "All groups at a glance" in repr(result)


def test_unknown_attribute_in_chart(result: wroc.Audit) -> None:
    with pytest.raises(ValueError, match="`attribute` must be one of"):
        result.chart("height")


def test_null_is_no_segment_called_null() -> None:
    data = pl.DataFrame(
        {"a": ["null", "null", None, None], "y": [1, 0, 1, 0], "s": [0.9, 0.1, 0.2, 0.3]}
    )
    result = wroc.audit(data, "y", "s", attributes="a")
    aucs = result.table.filter(metric="auc")
    assert aucs["segment"].to_list() == ["overall", None, "null"]
    assert aucs["value"].to_list() == [0.75, 0.0, 1.0]
    (points,) = result.chart("a").to_dict()["datasets"].values()
    labels = {(p["panel"], p["text"][:5]) for p in points if "text" in p}
    assert labels == {("(missing)", "0.000"), ("null", "1.000")}


@pytest.mark.parametrize(
    ("values", "order"),
    sweep(
        [
            (pl.Series([10, 9, 100]), ["9", "10", "100"]),
            (
                pl.Series(["high", "low", "mid"], dtype=pl.Enum(["low", "mid", "high"])),
                ["low", "mid", "high"],
            ),
        ]
    ),
)
def test_segments_keep_the_order_of_their_values(values: pl.Series, order: list[str]) -> None:
    data = pl.DataFrame({"a": values, "y": [1, 0, 1], "s": [0.9, 0.1, 0.2]})
    result = wroc.audit(data, "y", "s", attributes="a")
    assert result.segments["segment"].to_list() == ["overall", *order]
    shown = result.curves["segment"].unique(maintain_order=True).to_list()
    assert shown == ["overall", *order]


@pytest.mark.parametrize("attribute", sweep(["label", "point", "variable", "count"]))
def test_attributes_may_have_ordinary_names(tmp_path: Path, attribute: str) -> None:
    data = pl.DataFrame({attribute: ["b", "b"], "y": [1, 0], "s": [0.9, 0.1]})
    wroc.audit(data, "y", "s", attributes=attribute).save(tmp_path / "report.html")


def test_nothing_to_audit() -> None:
    data = pl.DataFrame(schema={"a": pl.String, "y": pl.Boolean, "s": pl.Float64})
    with pytest.raises(ValueError, match="`frame` must have rows to audit; found none"):
        wroc.audit(data, "y", "s", attributes="a")


def test_names_of_expressions() -> None:
    data = pl.DataFrame({"a": ["b", "b"], "y": [1, 0], "s": [0.9, 0.1]})
    settings = wroc.audit(data, "y", (-pl.col("s")).alias("inverted"), attributes="a").settings
    assert settings.score == ["inverted"]
