"""Words of an audit's sentences: classes, decisions, segments, and which decision is good."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest
from sweeps import sweep

import polars_wroc as wroc
from polars_wroc.cli import main

QUOTED_Y = "\N{LEFT DOUBLE QUOTATION MARK}y\N{RIGHT DOUBLE QUOTATION MARK}"
# Of women 8 of 40 are denied, of men 24 of 40; the label is whether they defaulted.
DENIED = {"f": 8, "m": 24}


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    parts = [
        {"sex": sex, "y": number % 2 == 0, "s": 0.9 if number < denied else 0.1}
        for sex, denied in DENIED.items()
        for number in range(40)
    ]
    return pl.DataFrame(parts)


def audit_of(rows: pl.DataFrame, **more: Any) -> wroc.Audit:
    return wroc.audit(rows, "y", "s", attributes="sex", **{"threshold": 0.5, "min_rows": 5} | more)


@pytest.mark.parametrize(
    ("arguments", "reading"),
    sweep(
        [
            (
                {"favorable": "selected"},
                "A score of 0.5 or more means selected (40%), which is good for them.",
            ),
            (
                {"favorable": "rejected"},
                "A score of 0.5 or more means selected (40%), which is bad for them.",
            ),
            (
                {"favorable": "neither", "text": wroc.Text(selected="referred")},
                (
                    "A score of 0.5 or more means referred (40%), which is neither good nor bad "
                    "for them."
                ),
            ),
            (
                {"favorable": "selected", "threshold": None, "selected": "y"},
                f"50% are selected (as recorded in {QUOTED_Y}), which is good for them.",
            ),
            (
                {"favorable": "selected", "threshold": wroc.rules.max_fpr(0.0)},
                "Nobody is selected, because the threshold is above every score.",
            ),
            ({"threshold": None}, ""),
        ],
        fast=1,
    ),
)
def test_the_reading_comes_first_everywhere(
    rows: pl.DataFrame, arguments: dict[str, Any], reading: str, tmp_path: Any
) -> None:
    audit = audit_of(rows, **arguments)
    assert audit.reading == reading
    assert json.loads(audit.to_json())["reading"] == reading
    audit.save(tmp_path / "x.md")
    deck = (tmp_path / "x.md").read_text("utf-8").split("\n\n")[1]
    assert deck == f"80 rows, 50% of them positive (the outcome). {reading}".strip()
    assert " ".join(deck.split()) in " ".join(repr(audit).split())


def test_the_verdict_turns_round_with_the_good_decision(rows: pl.DataFrame) -> None:
    good = audit_of(rows, favorable="selected").verdict
    bad = audit_of(rows, favorable="rejected", text=wroc.Text(selected="denied")).verdict
    neither = audit_of(rows, favorable="neither").verdict
    often = "is selected less often: 20%, against 60% of everyone else, 40 points lower ("
    assert good.startswith(f"The group f (sex) {often}")
    assert "impact ratio, 0.33 (" in good
    often = "is denied more often: 60%, against 20% of everyone else, 40 points higher ("
    assert bad.startswith(f"The group m (sex) {often}")
    assert "impact ratio of the shares not denied, 0.50 (" in bad
    assert neither.startswith("The group f (sex) is selected less often: 20%, against 60%")
    assert "neither good nor bad" in neither


def test_sentences_have_the_words_that_are_given(rows: pl.DataFrame) -> None:
    text = wroc.Text(
        positive="in default", selected="denied", rejected="accepted", people="borrowers"
    )
    findings = audit_of(rows, favorable="rejected", text=text).table.drop_nulls("sentence")
    sentences = dict(findings.filter(segment="m").select("metric", "sentence").rows())
    starts = {
        "selection_rate": "M borrowers (sex) are denied more often: 60%, against 20% of everyone",
        "tpr": "M borrowers (sex), denied among those in default: ",
        "fpr": "M borrowers (sex), denied among those not in default: ",
        "npv": "M borrowers (sex), not in default among those accepted: ",
        "impact_ratio": "M borrowers (sex) are accepted 0.50 times as often as f borrowers (sex) (",
    }
    for metric, start in starts.items():
        assert sentences[metric].startswith(start)


def test_the_command_has_the_words(
    rows: pl.DataFrame, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    rows.write_parquet(tmp_path / "rows.parquet")
    call = [
        "audit",
        str(tmp_path / "rows.parquet"),
        "--label",
        "y",
        "--score",
        "s",
        "--attribute",
        "sex",
    ]
    words = ["--selected-word", "denied", "--rejected-word", "accepted", "--positive", "in default"]
    words += ["--people", "people", "--group-words", "region=people in {}"]
    decided = ["--threshold", "0.5", "--favorable", "rejected", "--min-rows", "5"]
    assert main([*call, *words, *decided]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "A score of 0.5 or more means denied (40%), which is bad for them." in out
    assert "M people (sex) are denied more often: 60%" in out
    assert "impact ratio of the shares accepted, 0.50 (" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"title": ""}, "`title` must be nonempty text; found ''"),
        ({"positive": " "}, "`positive` must be nonempty text; found ' '"),
        ({"selected": True}, "`selected` must be text; found True of type bool"),
        (
            {"groups": {"region": "people in the region"}},
            (
                "`groups` must have one {} for the value in the name of groups of 'region'; found "
                "'people in the region'"
            ),
        ),
    ],
)
def test_words_are_texts(words: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError)) as raised:
        wroc.Text(**words)
    assert str(raised.value) == message


def test_only_a_text_has_the_words(rows: pl.DataFrame) -> None:
    with pytest.raises(TypeError, match="`text` must be a `Text`; found 'hired' of type str"):
        audit_of(rows, favorable="selected", text="hired")
