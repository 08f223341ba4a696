"""What an audit hands in: JSON of a schema, Markdown, and how it came about."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import polars as pl
import pytest
from sweeps import sweep

import polars_wroc as wroc
from polars_wroc.cli import main

SCHEMA = json.loads(files("polars_wroc.audits").joinpath("audit-2.0.schema.json").read_text())


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    random = np.random.default_rng(9)
    positive = random.random(600) < 0.4
    groups = random.choice(["a_b", "<b>", "c|d"], 600)
    score = random.random(600) + 0.5 * positive
    return pl.DataFrame({"g": groups, "approved": positive, "s": score / 1.5}).with_columns(
        s=pl.when(pl.int_range(pl.len()) > 4).then("s")
    )


def checked(text: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(text)
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    return document


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize(
    "options",
    sweep(
        [
            {},
            {
                "threshold": 0.5,
                "favorable": "selected",
                "text": wroc.Text(title="Loans", note="of 2026"),
                "design": "s",
            },
            {"threshold": wroc.rules.max_fpr(0.0), "favorable": "neither"},
            {"margin": 0.1, "adjust": "none"},
        ],
        fast=1,
    ),
)
def test_audits_have_the_schema(rows: pl.DataFrame, options: dict[str, Any]) -> None:
    audit = wroc.audit(rows, "approved", ["s", pl.col("s").alias("t")], attributes="g", **options)
    document = checked(audit.to_json())
    assert document["settings"]["text"]["title"] == options.get("text", wroc.Text()).title
    assert document["run"]["rows_read"] == 600
    assert document["run"]["rows_used"] == 595
    assert document["run"]["exclusions"][1] == {"column": "s", "n_missing": 5}
    assert document["verdict"]["text"] == audit.verdict
    for name in ("segments", "table"):
        table: pl.DataFrame = getattr(audit, name)
        found = pl.DataFrame(document[name], schema=dict.fromkeys(table.columns))
        assert found.height == table.height
    sentences = [row["sentence"] for row in document["table"]]
    assert sentences == audit.table["sentence"].to_list()


def test_numbers_that_json_does_not_have(rows: pl.DataFrame) -> None:
    audit = wroc.audit(
        rows,
        "approved",
        "s",
        attributes="g",
        threshold=wroc.rules.max_selection_rate(0.0),
        favorable="selected",
    )
    assert checked(audit.to_json())["segments"][0]["threshold"] == "inf"


def test_the_command_line_says_what_it_read(
    rows: pl.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.parquet"
    rows.write_parquet(path)
    call = ["audit", str(path), "--label", "approved", "--score", "s", "--attribute", "g"]
    gates = [
        "--threshold",
        "0.5",
        "--fail-if",
        "auc.gap>0.9",
        "--fail-if",
        "tpr.gap>=1e-09",
    ]
    more = ["--title", "Loans", "--note", "two words", "--favorable", "rejected", "-o", "-"]
    assert main([*call, *gates, *more]) == 1
    document = checked(capsys.readouterr().out)
    run = document["run"]
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    size = path.stat().st_size
    assert run["files"] == [{"name": "rows.parquet", "bytes": size, "sha256": digest, "rows": 600}]
    assert run["command"].startswith(f"polars-wroc audit {Path(path).name} --label approved")
    assert run["command"].endswith("--title Loans --note 'two words' --favorable rejected -o -")
    missed, met = document["gates"]
    assert (missed["gate"], missed["met"], missed["where"]) == ("auc.gap>0.9", False, [])
    assert (met["gate"], met["met"], len(met["where"])) == ("tpr.gap>=1e-09", True, 3)
    assert document["settings"]["favorable"] == "rejected"


def test_the_date_may_be_set(rows: pl.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    audit = wroc.audit(rows, "approved", "s", attributes="g")
    assert audit.run.date == dt.datetime(1970, 1, 2, tzinfo=dt.UTC)
    assert checked(audit.to_json())["run"]["date"] == "1970-01-02T00:00:00+00:00"


def test_markdown_is_a_section_of_a_model_card(rows: pl.DataFrame, tmp_path: Path) -> None:
    audit = wroc.audit(
        rows,
        "approved",
        "s",
        attributes="g",
        threshold=0.5,
        favorable="selected",
        text=wroc.Text(title="Loans # 1", note="of 2026"),
    )
    audit.save(tmp_path / "card.md")
    text = (tmp_path / "card.md").read_text(encoding="utf-8")
    assert text.startswith("# Loans \\# 1\n\n595 rows, ")
    assert "\n\nof 2026\n\n**" in text
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    parts = ["All groups at a glance", "Limits of this audit", "How this was measured"]
    assert [part for part in headings if part in {f"## {part}" for part in parts}] == [
        f"## {part}" for part in parts
    ]
    table = [line for line in text.splitlines() if line.startswith("|")]
    # A heading, a rule, the name of the attribute, and a row for each segment.
    assert len(table) == 3 + audit.segments.height
    assert len({line.replace("\\|", "").count("|") for line in table}) == 1
    # Nothing is taken for markup.
    assert "\\<b\\>" in text
    assert "<b>" not in text
    assert "- 5 rows without s were left out." in text
    assert text.endswith("Reviewed by, date and signature:\n")


def test_markdown_says_what_was_not_audited(rows: pl.DataFrame, tmp_path: Path) -> None:
    few = rows.head(20).with_columns(g=pl.lit("few"))
    audit = wroc.audit(pl.concat([rows, few]), "approved", "s", attributes="g")
    audit.save(tmp_path / "card.md")
    text = (tmp_path / "card.md").read_text(encoding="utf-8")
    part = text[text.index("## Limits of this audit") : text.index("## How this was measured")]
    assert "- No threshold or decision was given, so decisions were not audited." in part
    assert "few (g)" in part


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"favorable": "good"},
            ValueError,
            "`favorable` must come with decisions, from a `threshold` or ",
        ),
    ],
)
def test_favorable_without_decisions_is_refused(
    rows: pl.DataFrame, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        wroc.audit(rows, "approved", "s", attributes="g", **options)


def test_a_page_names_its_data_and_its_command(
    rows: pl.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.parquet"
    rows.write_parquet(path)
    call = ["audit", str(path), "--label", "approved", "--score", "s", "--attribute", "g"]
    assert main([*call, "-o", str(tmp_path / "report.html")]) == 0
    capsys.readouterr()
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert f"Data: rows.parquet, 600 rows, SHA-256 {digest}." in page
    assert "Command: polars-wroc audit rows.parquet --label approved" in page
    assert str(tmp_path) not in page
