"""Gates of the command line, and what the gaps of an audit say in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_wroc as wroc
from polars_wroc.cli import main
from polars_wroc.findings import gap_findings, verdict
from polars_wroc.gates import read_gate


@pytest.fixture(scope="module")
def unequal() -> pl.DataFrame:
    """Scores that are useless in one of three groups."""
    rng = np.random.default_rng(3)
    group = rng.choice(["a", "b", "c"], 1500)
    label = rng.random(1500) < 0.4
    helped = np.where(group == "c", 0.0, 1.5)
    return pl.DataFrame({"g": group, "y": label, "s": rng.normal(size=1500) + helped * label})


@pytest.fixture(scope="module")
def audit(unequal: pl.DataFrame) -> wroc.Audit:
    return wroc.audit(unequal, "y", "s", by="g", threshold=1)


@pytest.mark.parametrize("text", ["auc_gap>0.05", " auc_gap >= 5e-2 "])
def test_gate_looks_at_gaps_without_their_signs(audit: wroc.Audit, text: str) -> None:
    failures = read_gate(text, decides=True).failures(audit)
    gaps = audit.gaps.filter(pl.col("auc_gap").abs() > 0.05)
    assert gaps.height == len(failures) > 0
    for (segment, gap), failure in zip(
        gaps.select("segment", "auc_gap").rows(), failures, strict=True
    ):
        assert failure.endswith(f"{gap:.4g} in g, {segment}")


def test_gate_on_a_fairness_metric(audit: wroc.Audit) -> None:
    assert audit.fairness is not None
    ratio = audit.fairness.filter(metric="demographic_parity_ratio")["value"].item()
    assert (
        read_gate(f"demographic_parity_ratio<{ratio - 0.01:.3f}", decides=True).failures(audit)
        == []
    )
    (failure,) = read_gate(f"demographic_parity_ratio<{ratio + 0.01:.3f}", decides=True).failures(
        audit
    )
    assert failure.endswith(f"{ratio:.4g} in g")


@pytest.mark.parametrize("text", ["auc_gap", "auc_gap>>1", "auc_gap>x", "auc_gap>1.2.3", ">1", ""])
def test_text_that_is_no_gate(text: str) -> None:
    with pytest.raises(ValueError, match=r"^`--fail-if` must be a name, one of > >= < <= and a"):
        read_gate(text, decides=True)


def test_gate_on_what_there_is_not(audit: wroc.Audit) -> None:
    with pytest.raises(ValueError, match=r"^`--fail-if` must name one of auc, .*; found 'nope'$"):
        read_gate("nope>1", decides=True).failures(audit)


def test_gates_on_the_command_line(
    unequal: pl.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, report = tmp_path / "rows.parquet", tmp_path / "audit.json"
    unequal.write_parquet(path)
    command = ["audit", str(path), "--label", "y", "--score", "s", "--by", "g", "-o", str(report)]
    assert main([*command, "--fail-if", "auc_gap>0.9"]) == 0
    assert capsys.readouterr().err == ""
    assert main([*command, "--fail-if", "auc_gap>0.9", "--fail-if", "auc_gap>0.1"]) == 1
    assert capsys.readouterr().err.startswith("polars-wroc: auc_gap>0.1: ")
    # What failed is written all the same: it is what the pipeline wants to see.
    assert report.exists()
    assert main([*command, "--fail-if", "auc_gap"]) == 2


def test_finding_names_what_is_more_than_chance(audit: wroc.Audit) -> None:
    text = verdict(audit.gaps, audit.settings)
    assert " of 18 comparisons of a segment with the rest find a gap that is more than" in text
    (auc, decisions) = gap_findings(audit.gaps, audit.settings)
    assert auc.found
    assert decisions.found
    assert auc.text.startswith("By g, the largest gap in AUC that is more than chance is in c: ")
    assert "lower than in the rest (95% interval: " in auc.text
    assert "; adjusted p " in auc.text


def test_finding_where_there_is_only_chance() -> None:
    rng = np.random.default_rng(0)
    rows = pl.DataFrame(
        {"g": rng.choice(["a", "b"], 400), "y": rng.random(400) < 0.4, "s": rng.random(400)}
    )
    audit = wroc.audit(rows, "y", "s", by="g")
    text = verdict(audit.gaps, audit.settings)
    none = "No gap is more than chance: the one comparison of a segment with the rest is not "
    assert text.startswith(none)
    (finding,) = gap_findings(audit.gaps, audit.settings)
    assert not finding.found
    assert finding.text.endswith("). It may be chance.")


def test_small_segments_are_measured_but_not_tested(unequal: pl.DataFrame) -> None:
    rows = pl.concat([unequal, unequal.head(40).with_columns(g=pl.lit("few"))])
    audit = wroc.audit(rows, "y", "s", by="g", threshold=1)
    few = audit.gaps.filter(segment="few").row(0, named=True)
    assert audit.segments.filter(segment="few")["small"].item()
    assert few["auc_gap"] is not None
    of_classes = [
        few[f"{name}_gap_p_{p}"] for name in ("auc", "tpr") for p in ("value", "adjusted")
    ]
    assert of_classes == [None] * 4
    # All rows are enough for a test of how many are selected.
    assert few["selection_rate_gap_p_value"] is not None
    tested = wroc.audit(rows, "y", "s", by="g", min_rows=5).gaps.filter(segment="few")
    assert tested["auc_gap_p_value"].item() is not None
    nobody = wroc.audit(rows, "y", "s", by="g", min_rows=5000)
    assert verdict(nobody.gaps, nobody.settings).startswith("Nothing could be compared: ")
    assert gap_findings(nobody.gaps, nobody.settings) == []


@pytest.mark.parametrize("reference", ["rest", "overall", "best"])
def test_gaps_of_an_audit_are_those_of_each_attribute(
    unequal: pl.DataFrame, reference: Any
) -> None:
    rows = unequal.with_columns(h=pl.col("s").rank("ordinal") % 2)
    audit = wroc.audit(
        rows, "y", "s", by=["g", "h"], threshold=1, reference=reference, adjust="none", min_rows=0
    )
    for key in ("g", "h"):
        alone = wroc.group_gaps(
            rows, "y", "s", by=key, threshold=1, reference=reference, adjust="none"
        )
        found = audit.gaps.filter(attribute=key).drop("attribute", "segment")
        for name in found.columns:
            assert found[name].to_list() == pytest.approx(alone[name].to_list(), abs=1e-12)
        fairness = wroc.fairness(rows, "y", "s", by=key, threshold=1).filter(
            pl.col("metric") != "max_abroca"
        )
        assert audit.fairness is not None
        mine = audit.fairness.filter(attribute=key)
        assert mine["value"].to_list() == pytest.approx(fairness["value"].to_list(), abs=1e-12)


def test_gate_without_a_sign_takes_no_negative_limit() -> None:
    with pytest.raises(
        ValueError, match=r"^`--fail-if` takes auc_gap without its sign, so that its"
    ):
        read_gate("auc_gap<-0.05", decides=False)
    assert read_gate("auc_gap_high<-0.05", decides=False).limit == -0.05


def test_gate_does_not_judge_segments_with_few_rows(unequal: pl.DataFrame) -> None:
    rows = pl.DataFrame({"g": ["d"] * 4, "y": [0, 1, 0, 1], "s": [9.0, -9.0, -8.0, -7.0]})
    audit = wroc.audit(pl.concat([unequal, rows.cast(unequal.schema)]), "y", "s", by="g")
    assert audit.gaps.filter(segment="d")["auc_gap"].abs().item() > 0.45
    gate = read_gate("auc_gap>0.45", decides=False)
    assert gate.failures(audit) == []


def test_gate_on_nothing_is_an_error(unequal: pl.DataFrame) -> None:
    nobody = wroc.audit(unequal, "y", "s", by="g", threshold=99)
    with pytest.raises(ValueError, match=r"found ppv_gap>0.1, which no segment with rows"):
        read_gate("ppv_gap>0.1", decides=True).failures(nobody)
    one_class = wroc.audit(unequal.filter(pl.col("y") == 1), "y", "s", by="g")
    with pytest.raises(ValueError, match=r"found auc_gap>0.1, which no segment with rows"):
        read_gate("auc_gap>0.1", decides=False).failures(one_class)


def test_positive_label_that_nobody_has(unequal: pl.DataFrame) -> None:
    rows = unequal.with_columns(y=pl.col("y").cast(pl.String))
    with pytest.raises(
        ValueError, match=r"^`pos_label` must be a value of the label; found no row"
    ):
        wroc.audit(rows, "y", "s", by="g", pos_label="BAD")


def test_crossing_one_attribute(unequal: pl.DataFrame) -> None:
    with pytest.raises(ValueError, match=r"^`intersections` needs two or more attributes in `by`"):
        wroc.audit(unequal, "y", "s", by="g", intersections=True)
