"""Who is named as worse off: for good decisions that are rarer, and for nothing else."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import polars as pl
import pytest
from audit_words import markdown_of
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
    often = "less" if favorable == "selected" else "more"
    assert said.startswith(f"The group {worse} (g) is selected {often} often: ")
    # Precision differs as the shares of positives do, and names nobody.
    assert f"The group {other} (g)" not in said
    assert "No other group is shown to be worse off. " in said
    # Only the tally says so.
    assert said.count("inconclusive") == 1
    assert " comparisons of groups: " in said.partition("inconclusive")[0]
    own, rest = ("16%", "30%") if worse == "A" else ("30%", "16%")
    outcomes = f"In the data, {own} of the group {worse} (g) are positive, against {rest} of"
    assert f"{outcomes} everyone else; their average score is" in said


def test_nobody_is_worse_off_where_no_decision_is_good() -> None:
    said = verdict(people({"A": -2, "B": -1}), "neither")
    assert said.startswith("The group A (g) is selected less often: ")
    assert "neither good nor bad, so no group is called worse off." in said


def test_a_rate_below_the_margin_names_nobody() -> None:
    frame = decisions({"A": (30_000, 60_000), "B": (31_800, 60_000)})
    audit = wroc.audit(frame, attributes="g", selected="hired", favorable="selected")
    gap = audit.table.filter(metric="selection_rate", segment="A").row(0, named=True)
    assert (gap["verdict"], gap["direction"]) in (("different", "either"), ("equivalent", "worse"))
    assert audit.verdict.startswith("No group is shown to be worse off")


def test_a_small_gap_that_is_a_large_ratio_counts() -> None:
    frame = decisions({"A": (600, 30_000), "B": (1200, 30_000)})
    options: dict[str, Any] = {"attributes": "g", "selected": "hired", "favorable": "selected"}
    said = wroc.audit(frame, **options, margin=0.01).verdict
    assert said.startswith("The group A (g) is selected less often: 2%")
    # Of the good decision, to be rejected, nearly all have it.
    options["favorable"] = "rejected"
    said = wroc.audit(frame, **options).verdict
    assert said.startswith("No group is shown to be worse off")


def test_one_group_a_little_above_the_others_makes_none_worse_off() -> None:
    groups = dict.fromkeys("ABC", (11_200, 20_000)) | {"D": (12_800, 20_000)}
    audit = wroc.audit(decisions(groups), attributes="g", selected="hired", favorable="selected")
    assert audit.verdict.startswith("The group D (g) is selected more often: ")
    assert "No group is shown to be worse off." in audit.verdict


def test_all_groups_below_four_fifths_of_one_are_named() -> None:
    groups = dict.fromkeys("ABC", (8_000, 20_000)) | {"D": (14_000, 20_000)}
    audit = wroc.audit(decisions(groups), attributes="g", selected="hired", favorable="selected")
    assert audit.verdict.startswith("The group A (g) is selected less often: ")
    others = "Also selected less often: the group B (g), 10 points lower (9 to 11); the group C (g)"
    assert others in audit.verdict
    assert "group D" not in audit.verdict


def test_noise_names_nobody() -> None:
    for seed in range(10):
        random = np.random.default_rng(seed)
        frame = people({"A": -1, "B": -1}, seed=seed).with_columns(
            h=pl.Series(random.choice([*"uvw"], 6000))
        )
        audit = wroc.audit(
            frame, "y", "p", attributes=["g", "h"], threshold=0.3, favorable=FAVORABLE[seed % 2]
        )
        assert audit.verdict.startswith("No group is shown to be worse off.")


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
        f"No group is shown to be worse off. All {groups.height - ratios} comparisons show no "
        "difference that matters: within 5 points of everyone else."
    )


def test_rows_without_a_value_are_plural() -> None:
    rows = decisions({"none": (400, 1000), "D": (700, 1000)})
    rows = rows.with_columns(g=pl.when(pl.col("g") != "none").then("g"))
    audit = wroc.audit(rows, attributes="g", selected="hired", favorable="selected")
    start = "Rows with no recorded g are selected less often: 40%, against 70% of everyone else"
    assert audit.verdict.startswith(start)


@pytest.mark.parametrize("value", ["x", None])
def test_an_attribute_with_one_value_leaves_nothing_to_compare(value: str | None) -> None:
    frame = people({"A": 0}).with_columns(g=pl.lit(value, pl.String))
    assert verdict(frame, "selected").startswith("Nothing could be compared")


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
    group = f"the group {reference} (g)"
    assert f"of the group A (g) are positive, against {share:.0%} of {group};" in said
    assert said.startswith("The group A (g) is selected less often: ")
    assert f"against 42.6% of {group}, 30.4 points lower" in said


def test_every_comparison_of_groups_is_counted_once() -> None:
    frame = people({"A": -2, "B": -1.1, "C": -0.9, "D": 0.5})
    options: dict[str, Any] = {"attributes": "g", "threshold": 0.3}
    for favorable in FAVORABLE:
        audit = wroc.audit(frame, "y", "p", favorable=favorable, **options)
        gaps = audit.findings.filter(pl.col("attribute") == "g", pl.col("metric") != "impact_ratio")
        numbers = dict(gaps["verdict"].value_counts().rows())
        different, little = numbers["different"], numbers["inconclusive"]
        assert f"{gaps.height} comparisons of groups: {different} differ, " in audit.verdict
        are = "is" if little == 1 else "are"
        assert f", {little} {are} inconclusive (too few rows to tell)." in audit.verdict


def test_differences_below_the_margin_are_counted_apart() -> None:
    frame = decisions({"A": (5000, 10_000), "B": (5300, 10_000), "C": (6600, 10_000)})
    audit = wroc.audit(frame, attributes="g", selected="hired", favorable="selected", margin=0.1)
    gaps = audit.findings.filter(metric="selection_rate", verdict="different")
    small = gaps.filter(pl.col("gap").abs() < 0.1).height
    assert small == 1
    assert gaps.height > small
    assert f"{gaps.height} differ ({small} by less than" in audit.verdict


def test_four_fifths_is_said_of_each_group_by_its_own_interval() -> None:
    # The interval of B is below four fifths of D, that of C reaches above it.
    frame = decisions({"B": (400, 1000), "C": (550, 1000), "D": (700, 1000)})
    audit = wroc.audit(frame, attributes="g", selected="hired", favorable="selected")
    said = dict(audit.table.filter(metric="impact_ratio").select("segment", "sentence").rows())
    assert said["B"].endswith("below four fifths (0.8) even at its upper limit.")
    assert "inconclusive, since it is below four fifths (0.8), though its interval" in said["C"]
    assert said["D"] == "Impact ratios refer to the group D (g), most often selected."


def test_a_margin_keeps_its_digits() -> None:
    frame = decisions({"A": (30_000, 60_000), "B": (30_000, 60_000)})
    audit = wroc.audit(frame, attributes="g", selected="hired", favorable="selected", margin=0.075)
    assert "no difference that matters: within 7.5 points of everyone else." in audit.verdict
    assert "no difference that matters (within 7.5 points)." in audit.findings["sentence"][0]


@pytest.mark.parametrize(("threshold", "body"), [(2, "Nobody"), (-1, "Everybody")])
def test_a_threshold_without_decisions_is_said_first(threshold: float, body: str) -> None:
    audit = wroc.audit(
        people({"A": 0, "B": 0}),
        "y",
        "p",
        attributes="g",
        threshold=threshold,
        favorable="selected",
        margin=0.2,
    )
    assert audit.verdict.startswith(f"{body} is selected at this threshold: all decisions are")
    assert "worse off" not in audit.verdict


def section(audit: wroc.Audit, heading: str) -> str:
    """The text of a section of a report."""
    text = markdown_of(audit)
    return text.partition(f"## {heading}\n\n")[2].partition("\n\n## ")[0]


def test_gaps_of_each_group_that_is_named_are_explained() -> None:
    options: dict[str, Any] = {"attributes": "g", "threshold": 0.3, "favorable": "selected"}
    frame = people({"A": -2, "B": -1.5, "C": 0, "D": 0})
    audit = wroc.audit(frame, "y", "p", **options)
    assert "Also selected less often: the group B (g), " in audit.verdict
    means = {}
    for name in "AB":
        for column in ("y", "p"):
            sides = (frame.filter(is_own) for is_own in (pl.col("g") == name, pl.col("g") != name))
            means[name, column] = [f"{side.select(pl.mean(column)).item():.0%}" for side in sides]
    (own, others), (score, score_of_others) = means["A", "y"], means["A", "p"]
    first = (
        f"In the data, {own} of the group A (g) are positive, against {others} of everyone else; "
        f"their average score is {score}, against {score_of_others}. "
    )
    (own, others), (score, score_of_others) = means["B", "y"], means["B", "p"]
    second = (
        f"Among the group B (g), {own} are positive, against {others} of everyone else; their "
        f"average score is {score}, against {score_of_others}. "
    )
    assert section(audit, "Why these gaps?") == (
        f"{first}{second}At the same score, outcomes of the group A (g) and the group B (g) are "
        "not shown to differ from those of others."
    )
    # Outcomes of both are rarer than those of others at the same score.
    kept = pl.Series(np.random.default_rng(5).random(frame.height) < 0.6)
    is_fair = pl.col("g").is_in(["C", "D"]) | kept
    audit = wroc.audit(frame.with_columns(y=pl.col("y") & is_fair), "y", "p", **options)
    said = section(audit, "Why these gaps?").partition(" At the same score, ")[2]
    clause = r"the group {} \(g\) came out positive \d+ points less often than others \(.*?\)"
    meaning = ": the same score means different things in different groups. That alone does not"
    assert re.match(f"{clause.format('A')}; {clause.format('B')}{meaning}", said)
    assert "At the same score" not in said


def test_a_group_that_is_better_and_worse_is_called_different() -> None:
    # E is selected more often than others, and less often among those who deserve it; three other
    # groups are named before it.
    frame = people({"A": -3.0, "B": -2.8, "C": -2.6, "D": -1.0, "E": 0.8}, 4_000)
    by_score = pl.when(g="E").then(~pl.col("y") | (pl.col("p") > 0.8)).otherwise(pl.col("p") > 0.3)
    frame = frame.with_columns(hired=by_score)
    audit = wroc.audit(frame, "y", "p", attributes="g", selected="hired", favorable="selected")
    said = section(audit, "What differs")
    assert said.count(", against everyone else**") == 3
    (line,) = re.findall(
        r"- \*\*The group E \(g\):\*\* (.*)", said.partition("**Other groups**")[2]
    )
    assert line.startswith("selected +")
    assert "selected among the positives \N{MINUS SIGN}" in line


def test_gaps_of_crossed_groups_are_not_explained_again() -> None:
    frame = people({"A": -2, "B": -1}, 6_000)
    frame = frame.with_columns(h=pl.Series(np.random.default_rng(3).choice(["x", "y"], 12_000)))
    options: dict[str, Any] = {"threshold": 0.3, "favorable": "selected", "intersections": True}
    audit = wroc.audit(frame, "y", "p", attributes=["g", "h"], **options)
    assert "the group A, x (g and h)" in audit.verdict
    said = section(audit, "Why these gaps?")
    assert "of the group A (g) are positive" in said
    assert "g and h" not in said
