"""Words of an audit's sentences: classes, decisions, segments, and which decision is good."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from sweeps import sweep

import polars_wroc as wroc
from polars_wroc.audits.tables import segment_in_words
from polars_wroc.audits.words import Words
from polars_wroc.cli.main import main
from polars_wroc.groups.categories import CROSSED

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
    ("label", "pos_label", "positive", "negative"),
    sweep(
        [
            ("approved", None, "approved", "not approved"),
            ("loan_approved", None, "approved", "not approved"),
            ("is_repaid", 1, "repaid", "not repaid"),
            ("Churned", "yes", "churned", "not churned"),
            *((name, None, "positive", "negative") for name in ("y", "label", "target", "outcome")),
            *(
                (name, None, "positive", "negative")
                for name in ("default", "need", "speed", "seed")
            ),
            ("status", "denied", "denied", "not denied"),
            ("status", "bad", "with status = bad", "with another status"),
            ("approved", "no", "with approved = no", "with another approved"),
            (None, None, "positive", "negative"),
        ],
        fast=1,
    ),
)
def test_classes_are_named_by_labels_that_read(
    rows: pl.DataFrame, label: str | None, pos_label: object, positive: str, negative: str
) -> None:
    settings = audit_of(rows, favorable="selected").settings
    words = Words.of(replace(settings, label=label, pos_label=pos_label))
    assert (words.positive, words.negative) == (positive, negative)


@pytest.mark.parametrize(
    ("attribute", "segment", "words"),
    [
        ("race", "black", "race = black"),
        ("black", "yes", "black = yes"),
        ("Region", "Region 12", "Region 12"),
        ("region", "Region 12", "Region 12"),
        ("age", "aged 30", "age = aged 30"),
        ("g", "gold", "g = gold"),
        ("a", "a", "a"),
        ("sex", None, "sex = (missing)"),
        (f"race{CROSSED}sex", "black, male", f"race{CROSSED}sex = black, male"),
        ("overall", "overall", "all rows"),
    ],
)
def test_segments_are_named_with_their_attribute_once(
    attribute: str, segment: str | None, words: str
) -> None:
    assert segment_in_words(attribute, segment) == words


@pytest.mark.parametrize(
    ("arguments", "reading"),
    sweep(
        [
            ({"favorable": "selected"}, "Being selected (a score of 0.5 or more) counts as good."),
            (
                {"favorable": "rejected"},
                (
                    "Being selected (a score of 0.5 or more) counts as bad; impact ratios are of "
                    "those not selected."
                ),
            ),
            (
                {"favorable": "neither", "text": wroc.Text(selected="referred")},
                (
                    "Being referred (a score of 0.5 or more) counts as neither good nor bad, so "
                    "there are no impact ratios."
                ),
            ),
            (
                {"favorable": "selected", "threshold": None, "selected": "y"},
                "Being selected (as recorded in y) counts as good.",
            ),
            (
                {"favorable": "selected", "threshold": wroc.rules.max_fpr(0.0)},
                "Being selected (nobody: the threshold is above every score) counts as good.",
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
    assert " ".join(repr(audit).split()).startswith(reading or audit.verdict[:20])
    audit.save(tmp_path / "x.md")
    text = (tmp_path / "x.md").read_text("utf-8").split("\n\n")[1]
    assert text == reading if reading else text.startswith("**")
    assert audit._repr_html_().startswith(f"<ul><li>{reading}")


def test_the_verdict_turns_round_with_the_good_decision(rows: pl.DataFrame) -> None:
    good = audit_of(rows, favorable="selected").verdict
    bad = audit_of(rows, favorable="rejected", text=wroc.Text(selected="denied")).verdict
    neither = audit_of(rows, favorable="neither").verdict
    assert good.startswith("sex = f is worse off: 20% are selected, against 60% in the rest, 40 p")
    assert "; selected 0.33 times as often as sex = m (" in good
    assert bad.startswith("sex = m is worse off: 60% are denied, against 20% in the rest, 40 p")
    assert "; not denied 0.50 times as often as sex = f (" in bad
    assert neither.startswith("sex = f differs: 20% are selected, against 60% in the rest, 40 p")


def test_sentences_have_the_words_that_are_given(rows: pl.DataFrame) -> None:
    text = wroc.Text(positive="in default", selected="denied", rejected="accepted")
    findings = audit_of(rows, favorable="rejected", text=text).table.drop_nulls("sentence")
    sentences = dict(findings.filter(segment="m").select("metric", "sentence").rows())
    assert sentences["selection_rate"].startswith("60% are denied in sex = m, 20% in the rest: 40")
    assert sentences["tpr"].startswith("Of those actually in default, 60% are denied in sex = m, ")
    assert sentences["fpr"].startswith("Of those actually not in default, 60% are denied in sex")
    assert sentences["impact_ratio"].startswith(
        "40% are accepted in sex = m, 80% in sex = f, the most: a ratio of 0.50 ("
    )
    assert sentences["impact_ratio"].endswith("16 more of 40 would be accepted.")
    assert "Of those accepted, " in sentences["npv"]


@pytest.mark.slow
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
    decided = ["--threshold", "0.5", "--favorable", "rejected", "--min-rows", "5"]
    assert main([*call, *words, *decided]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith(
        "Being denied (a score of 0.5 or more) counts as bad; impact ratios are of those accepted."
    )
    assert "accepted 0.50 times as often as sex = f" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"title": ""}, "`title` must be a text that is not empty; found ''"),
        ({"positive": " "}, "`positive` must be a text that is not empty; found ' '"),
        ({"selected": True}, "`selected` must be a text; found True of type bool"),
    ],
)
def test_words_are_texts(words: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError)) as raised:
        wroc.Text(**words)
    assert str(raised.value) == message


def test_only_a_text_has_the_words(rows: pl.DataFrame) -> None:
    with pytest.raises(TypeError, match="`text` must be a `Text`; found 'hired' of type str"):
        audit_of(rows, favorable="selected", text="hired")
