"""What an audit says that it cannot show: missing values, groups without a test, and hints."""

from __future__ import annotations

import shlex
from typing import Any

import numpy as np
import polars as pl
import pytest
from audit_words import cautions, summary_of, text_of

import polars_wroc as wroc

QUOTED_Y = "\N{LEFT DOUBLE QUOTATION MARK}y\N{RIGHT DOUBLE QUOTATION MARK}"


def rows(groups: int = 3, n: int = 300) -> pl.DataFrame:
    """As many rows of each group, with probabilities."""
    random = np.random.default_rng(3)
    score = random.random(groups * n)
    return pl.DataFrame(
        {
            "g": np.repeat([*"abcdefgh"[:groups]], n),
            "y": random.random(groups * n) < score,
            "s": score,
        }
    )


def test_what_was_not_audited_is_said() -> None:
    few = pl.DataFrame({"g": [None] * 3, "h": ["u", "u", None], "y": True, "s": [0.5, None, 0.7]})
    whole = rows().with_columns(h=pl.lit("u"))
    both = pl.concat([whole, few.select(whole.columns)])
    said = cautions(wroc.audit(both, "y", "s", attributes=["g", "h"]))
    assert said == [
        "No threshold or decision was given, so decisions were not audited.",
        "1 row without s was left out.",
        "3 rows have no recorded g and form the group (missing).",
        "1 row has no recorded h and forms the group (missing).",
        "No AUC, because all outcomes are the same: no recorded g; no recorded h.",
        "Nothing could be tested by h.",
        "Only g and h were compared; other groups may differ.",
        f"The column {QUOTED_Y} is taken as the truth: the audit cannot detect bias in it.",
    ]


def test_groups_without_a_test_are_named_by_their_reason() -> None:
    few = pl.DataFrame({"g": "few", "y": [True, False] * 5, "s": [0.5, 0.2] * 5})
    one_class = pl.DataFrame({"g": "one", "y": [True] * 40, "s": [0.6] * 40})
    nothing = pl.DataFrame(
        {"g": "none", "y": [True], "s": [None]}, schema_overrides={"s": pl.Float64}
    )
    table = pl.concat([rows(2), few, one_class, nothing])
    said = cautions(wroc.audit(table, "y", "s", attributes="g"))
    assert "Too few rows for some comparisons (under 30 in a class): few (g)." in said
    assert "No AUC, because all outcomes are the same: one (g)." in said
    lacking = "every row lacks a label, score or weight"
    assert f"Not measured, because {lacking}: none (g)." in said


def test_the_side_with_too_few_rows_is_named_in_a_sentence() -> None:
    # Of 200 rows of b the reference, a, has 20.
    table = pl.concat([rows(1, 20), rows(2, 200).filter(g="b")])
    options: dict[str, Any] = {"attributes": "g", "threshold": 0.5, "favorable": "selected"}
    audit = wroc.audit(table, "y", "s", reference={"g": "a"}, **options)
    rates = audit.table.filter(metric="selection_rate", attribute="g")
    said = dict(rates.select("segment", "sentence").rows())
    assert "with fewer than 30 rows among the group a (g)" in said["b"]
    audit = wroc.audit(table, "y", "s", reference={"g": "b"}, **options)
    rates = audit.table.filter(metric="selection_rate", attribute="g")
    said = dict(rates.select("segment", "sentence").rows())
    assert "with fewer than 30 rows in the group" in said["a"]


def test_threshold_of_another_scale_than_the_scores_is_pointed_out() -> None:
    percent = pl.Series([0.2, 0.4, 25.0, *(float(each) for each in range(1, 100)), 99.5])
    table = pl.DataFrame({"g": ["a", "b", "b"] * 34 + ["a"], "y": [0, 1] * 51 + [1], "s": percent})
    options: dict[str, Any] = {"attributes": "g", "favorable": "selected"}

    def said(table: pl.DataFrame, threshold: float, **more: Any) -> list[str]:
        audit = wroc.audit(table, "y", "s", threshold=threshold, **options, **more)
        return [text for text in cautions(audit) if "threshold of" in text]

    # Two of 103 are below 0.5.
    expected = (
        "The scores go from 0.2 to 99.5, and the threshold of 0.5 selects 98%: if the scores are "
        "percentages, use a threshold of 50."
    )
    assert said(table, 0.5) == [expected]
    (hidden,) = said(table, 0.5, min_cell=2)
    assert hidden.startswith("The scores go beyond 1, and the threshold of 0.5 selects 98%: if ")
    assert not said(table, 50)
    assert not said(table.with_columns(pl.col("s") / 100), 0.5)
    # Log-odds have thresholds between 0 and 1 too.
    assert not said(table.with_columns(pl.col("s") - 50), 0.5)


@pytest.mark.slow(reason="makes several audits")
def test_many_numbers_are_answered_by_ranges() -> None:
    ages = pl.int_range(pl.len()) % pl.lit(51)
    some = rows().with_columns(age=ages, ratio=ages / 7, few=ages % 50, text=pl.format("{}a", ages))
    with pytest.warns(UserWarning, match="each of the 51 values of age is a group"):
        audit = wroc.audit(some, "y", "s", attributes=["age", "ratio", "few", "text"], min_rows=0)
    hints = [text for text in cautions(audit) if "wroc.ranges" in text]
    assert len(hints) == 2
    for hint, name in zip(hints, ("age", "ratio"), strict=True):
        assert hint.startswith(f"Each of the 51 numbers in {name} is a group. To compare larger")
        assert f"into ranges: wroc.ranges('{name}', [...]) in Python" in hint
    assert all(hint in " ".join(repr(audit).split()) for hint in hints)
    # What readers copy into a shell is one word.
    name = "age'; rm -rf ~; '"
    with pytest.warns(UserWarning, match="is a group"):
        audit = wroc.audit(some.rename({"age": name}), "y", "s", attributes=name, min_rows=0)
    (hint,) = [text for text in cautions(audit) if "wroc.ranges" in text]
    option = hint.partition("--attribute ")[2].partition(", with the numbers")[0]
    assert shlex.split(option) == [f"{name}:..."]
    cut = wroc.audit(some, "y", "s", attributes=wroc.ranges("age", [20, 40]))
    assert not [text for text in cautions(cut) if "wroc.ranges" in text]


def test_a_terminal_says_once_which_rows_were_left_out() -> None:
    """The deck counts fewer rows than the file has."""
    data = rows().with_columns(
        s=pl.when(pl.int_range(pl.len()) >= 5).then("s"),
        y=pl.when(pl.int_range(pl.len()) < 890).then("y"),
    )
    audit = wroc.audit(data, "y", "s", attributes="g", threshold=0.5, favorable="selected")
    shown = summary_of(audit, 100)
    assert shown.count("5 rows without s were left out.") == 1
    assert shown.count("10 rows without y count only where no outcome is needed") == 1


def test_recorded_decisions_that_scores_share_are_told_once() -> None:
    """A second score adds comparisons of its AUCs and calibration, and no decision."""
    random = np.random.default_rng(3)
    group = np.repeat(["a", "b"], 600)
    score = random.random(1200)
    data = pl.DataFrame(
        {
            "g": group,
            "y": random.random(1200) < score,
            "s": score,
            "t": score**2,
            "d": random.random(1200) < np.where(group == "a", 0.2, 0.6),
        }
    )
    options: dict[str, Any] = {"attributes": "g", "selected": "d", "favorable": "selected"}
    alone, both = (wroc.audit(data, "y", scores, **options) for scores in ("s", ["s", "t"]))
    decisions = pl.col("metric").is_in(["selection_rate", "tpr", "fpr", "ppv", "npv"])
    for column in ("value", "gap", "p_value"):
        (by_s,) = alone.table.filter(decisions).select(column)
        for _, rows in both.table.filter(decisions).group_by("model"):
            assert rows[column].sort().equals(by_s.sort())
    one, two = (summary_of(audit) for audit in (alone, both))
    (first, second) = (
        text[text.index("The group a") : text.index(", and the impact ratio")]
        for text in (one, two)
    )
    assert first == second
    counted = [int(text.split(" comparisons of groups")[0].split()[-1]) for text in (one, two)]
    # The AUC, the mean error and the slope of the second score.
    assert counted[1] - counted[0] == 3
    report = text_of(both)
    assert report.count("Selected among the positives:") == 1
