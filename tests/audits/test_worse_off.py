"""Who is named as worse off: for good decisions that are rarer, and for nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.special import expit

import polars_wroc as wroc

FAVORABLE: Any = ("selected", "rejected", "neither")


def people(logits: dict[str, float], n: int = 3000, seed: int = 1) -> pl.DataFrame:
    """Groups with calibrated probabilities around their own logit."""
    random = np.random.default_rng(seed)
    logit = np.concatenate([random.normal(mean, 1, n) for mean in logits.values()])
    score = expit(logit)
    return pl.DataFrame(
        {"y": random.random(score.size) < score, "p": score, "g": np.repeat([*logits], n)}
    )


def decisions(selected: dict[str, tuple[int, int]]) -> pl.DataFrame:
    """Groups with so many rows, of which so many are selected."""
    parts = [
        pl.DataFrame({"g": [name] * n, "hired": [True] * k + [False] * (n - k)})
        for name, (k, n) in selected.items()
    ]
    return pl.concat(parts)


def verdict(frame: pl.DataFrame, favorable: Any, **options: Any) -> str:
    return wroc.audit(
        frame, "y", "p", attributes="g", threshold=0.3, favorable=favorable, **options
    ).verdict


@pytest.mark.parametrize(("favorable", "worse"), [("selected", "A"), ("rejected", "B")])
def test_of_two_calibrated_groups_one_is_named(favorable: str, worse: str) -> None:
    said = verdict(people({"A": -2, "B": -1}), favorable)
    other = "AB".replace(worse, "")
    assert said.startswith(f"g = {worse} is worse off: ")
    assert f"g = {other} is worse off" not in said
    assert "So is" not in said
    # Precision differs as the shares of positives do, and names nobody.
    assert "of those selected" not in said
    own, rest = ("16%", "30%") if worse == "A" else ("30%", "16%")
    assert f"{own} are actually positive in g = {worse}, {rest} in the rest." in said


def test_nobody_is_worse_off_where_no_decision_is_good() -> None:
    said = verdict(people({"A": -2, "B": -1}), "neither")
    assert said.startswith("g = A differs: ")
    assert "worse off" not in said


def test_a_rate_below_the_margin_names_nobody() -> None:
    frame = decisions({"A": (30_000, 60_000), "B": (31_800, 60_000)})
    audit = wroc.audit(frame, attributes="g", selected="hired", favorable="selected")
    gap = audit.table.filter(metric="selection_rate", segment="A").row(0, named=True)
    assert (gap["verdict"], gap["direction"]) in (("different", "either"), ("equivalent", "worse"))
    assert audit.verdict.startswith("No segment is shown to be worse off")


def test_a_small_gap_that_is_a_large_ratio_counts() -> None:
    frame = decisions({"A": (600, 30_000), "B": (1200, 30_000)})
    options: dict[str, Any] = {"attributes": "g", "selected": "hired", "favorable": "selected"}
    assert wroc.audit(frame, **options, margin=0.01).verdict.startswith("g = A is worse off")
    # Of the good decision, to be rejected, nearly all have it.
    options["favorable"] = "rejected"
    said = wroc.audit(frame, **options).verdict
    assert said.startswith("No segment is shown to be worse off")


def test_one_group_a_little_above_the_others_makes_none_worse_off() -> None:
    groups = dict.fromkeys("ABC", (11_200, 20_000)) | {"D": (12_800, 20_000)}
    audit = wroc.audit(decisions(groups), attributes="g", selected="hired", favorable="selected")
    assert audit.verdict.startswith("g = D is better off")
    assert "worse off:" not in audit.verdict


def test_all_groups_below_four_fifths_of_one_are_named() -> None:
    groups = dict.fromkeys("ABC", (8_000, 20_000)) | {"D": (14_000, 20_000)}
    audit = wroc.audit(decisions(groups), attributes="g", selected="hired", favorable="selected")
    first = audit.verdict.split(". ")[0] + audit.verdict.split(". ")[1]
    assert all(f"g = {name}" in audit.verdict for name in "ABC")
    assert "is worse off" in first
    assert "g = D is" not in audit.verdict


def test_noise_names_nobody() -> None:
    for seed in range(10):
        random = np.random.default_rng(seed)
        frame = people({"A": -1, "B": -1}, seed=seed).with_columns(
            h=pl.Series(random.choice([*"uvw"], 6000))
        )
        audit = wroc.audit(
            frame, "y", "p", attributes=["g", "h"], threshold=0.3, favorable=FAVORABLE[seed % 2]
        )
        assert "is worse off" not in audit.verdict


@pytest.mark.parametrize("favorable", ["selected", "rejected"])
def test_what_is_not_a_good_decision_is_for_nobody_worse(favorable: Any) -> None:
    frame = people({"A": -2, "B": -1})
    audit = wroc.audit(frame, "y", "p", attributes="g", threshold=0.3, favorable=favorable)
    sides = audit.findings.filter(
        ~pl.col("direction").is_in(["either"]), pl.col("attribute") == "g"
    )
    rate = "tpr" if favorable == "selected" else "fpr"
    assert {*sides["metric"]} == {"selection_rate", "impact_ratio", rate}


def test_only_comparisons_of_groups_are_counted() -> None:
    random = np.random.default_rng(10)
    score = random.random(20_000)
    frame = pl.DataFrame(
        {"y": random.random(20_000) < score, "p": score, "g": random.choice(["a", "b"], 20_000)}
    )
    audit = wroc.audit(frame, "y", "p", attributes="g", threshold=0.5, favorable="selected")
    groups = audit.findings.filter(pl.col("attribute") == "g")
    ratios = groups.filter(metric="impact_ratio").height
    assert {*groups["verdict"]} == {"equivalent", "at least four fifths"}
    assert audit.verdict == (
        f"No segment is shown to be worse off. All {groups.height - ratios} comparisons of "
        "segments are equivalent within 5 points. The only impact ratio is at least four fifths."
    )


@pytest.mark.parametrize("value", ["x", None])
def test_an_attribute_with_one_value_leaves_nothing_to_compare(value: str | None) -> None:
    frame = people({"A": 0}).with_columns(g=pl.lit(value, pl.String))
    assert verdict(frame, "selected").startswith("Nothing could be compared.")


def test_a_score_that_ranks_backwards_is_said_first() -> None:
    frame = people({"A": 0, "B": 0}).with_columns(p=1 - pl.col("p"))
    said = verdict(frame, "selected")
    assert said.startswith("The score ranks backwards: AUC 0.2")
    assert "overconfident" not in said


@pytest.mark.parametrize("reference", ["rest", "overall"])
def test_a_reference_group_may_have_the_name_of_a_kind_of_reference(reference: str) -> None:
    frame = people({"A": -2, reference: -1, "C": 1})
    share = frame.filter(g=reference)["y"].mean()
    said = verdict(frame, "selected", reference={"g": reference})
    assert isinstance(share, float)
    assert f"in g = A, {share:.0%} in g = {reference}." in said


def test_every_comparison_of_groups_is_counted_once() -> None:
    frame = people({"A": -2, "B": -1.1, "C": -0.9, "D": 0.5})
    options: dict[str, Any] = {"attributes": "g", "threshold": 0.3}
    for favorable in FAVORABLE:
        audit = wroc.audit(frame, "y", "p", favorable=favorable, **options)
        gaps = audit.findings.filter(pl.col("attribute") == "g", pl.col("metric") != "impact_ratio")
        numbers = dict(gaps["verdict"].value_counts().rows())
        assert f"{gaps.height} comparisons of segments: {numbers['different']} differ" in (
            audit.verdict
        )
        little = numbers["inconclusive"]
        assert f" and {little} {'is' if little == 1 else 'are'} inconclusive." in audit.verdict


def test_differences_below_the_margin_are_counted_apart() -> None:
    frame = decisions({"A": (5000, 10_000), "B": (5300, 10_000), "C": (6600, 10_000)})
    audit = wroc.audit(frame, attributes="g", selected="hired", favorable="selected", margin=0.1)
    gaps = audit.findings.filter(metric="selection_rate", verdict="different")
    small = gaps.filter(pl.col("gap").abs() < 0.1).height
    assert small == 1
    assert gaps.height > small
    assert f"{gaps.height} differ ({small} of them by less than 10 points)" in audit.verdict
    assert "without making anyone" not in audit.verdict


def test_the_rule_of_four_fifths_is_said_of_each_group_named_by_it() -> None:
    groups = dict.fromkeys("ABC", (8_000, 20_000)) | {"D": (14_000, 20_000)}
    audit = wroc.audit(decisions(groups), attributes="g", selected="hired", favorable="selected")
    ratios = audit.verdict.count(" times as often as ")
    assert ratios > 1
    assert audit.verdict.count("with its whole interval below four fifths") == ratios


def test_a_margin_keeps_its_digits() -> None:
    frame = decisions({"A": (30_000, 60_000), "B": (30_000, 60_000)})
    audit = wroc.audit(frame, attributes="g", selected="hired", favorable="selected", margin=0.075)
    assert "equivalent within 7.5 points" in audit.verdict
    assert "equivalent within 7.5 points." in audit.findings["sentence"][0]


@pytest.mark.parametrize(("threshold", "selected"), [(2, "no row"), (-1, "every row")])
def test_a_threshold_without_decisions_is_said_first(threshold: float, selected: str) -> None:
    audit = wroc.audit(
        people({"A": 0, "B": 0}),
        "y",
        "p",
        attributes="g",
        threshold=threshold,
        favorable="selected",
        margin=0.2,
    )
    assert audit.verdict.startswith(f"The threshold selects {selected}")
    assert "All 3 comparisons of segments are equivalent" in audit.verdict
