"""The command line: the same numbers, one line for every mistake, no file half-written."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from processes import PLAIN
from sweeps import sweep

import polars_wroc as wroc
from polars_wroc.cli import main
from polars_wroc.files.sources import without_credentials

PATIENTS = Path(__file__).parents[2] / "polars_wroc" / "data" / "diabetes.parquet"
COLUMNS = ["--label", "progressed", "--score", "score", "--weight", "weight"]
FREQUENCY = [*COLUMNS[:4], "--frequency", "age"]


@pytest.fixture
def expected() -> pl.DataFrame:
    return wroc.summary(pl.read_parquet(PATIENTS), "progressed", "score", weight="weight", by="sex")


def test_auc_prints_the_summary(capsys: pytest.CaptureFixture[str], expected: pl.DataFrame) -> None:
    assert main(["auc", str(PATIENTS), *COLUMNS, "--by", "sex"]) == 0
    printed = capsys.readouterr().out
    for auc in expected["auc"]:
        assert f"{auc:.3f}" in printed


@pytest.mark.parametrize("source", ["parquet", "csv", "ndjson", "arrow", "folder", "glob"])
def test_reads_what_polars_scans(tmp_path: Path, source: str, expected: pl.DataFrame) -> None:
    data = pl.read_parquet(PATIENTS)
    target = tmp_path / f"rows.{source}"
    if source == "parquet":
        data.write_parquet(target)
    elif source == "csv":
        data.write_csv(target)
    elif source == "ndjson":
        data.write_ndjson(target)
    elif source == "arrow":
        data.write_ipc(target)
    else:
        folder = tmp_path / "rows"
        folder.mkdir()
        data.head(200).write_parquet(folder / "a.parquet")
        data.tail(-200).write_parquet(folder / "b.parquet")
        target = folder if source == "folder" else folder / "*.parquet"
    output = tmp_path / "auc.parquet"
    assert main(["auc", str(target), *COLUMNS, "--by", "sex", "-o", str(output)]) == 0
    assert_frame_equal(pl.read_parquet(output), expected, abs_tol=1e-12)


def test_audit_as_json_on_standard_output(
    capsys: pytest.CaptureFixture[str], expected: pl.DataFrame
) -> None:
    assert main(["audit", str(PATIENTS), *COLUMNS, "--attribute", "sex", "-o", "-"]) == 0
    printed = json.loads(capsys.readouterr().out)
    aucs = pl.DataFrame(printed["table"]).filter(attribute="sex", metric="auc")
    found = aucs.select("value", "value_low", "value_high")
    known = expected.select(value="auc", value_low="auc_low", value_high="auc_high")
    assert_frame_equal(found, known, abs_tol=1e-12)
    segments = pl.DataFrame(printed["segments"]).filter(attribute="sex")
    counts = ["n", "n_pos", "n_neg", "n_missing"]
    assert_frame_equal(segments.select(counts), expected.select(counts), abs_tol=1e-12)


@pytest.mark.slow(reason="runs several commands")
def test_audit_names_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    data = pl.read_parquet(PATIENTS)
    data.head(200).write_parquet("a.parquet")
    data.tail(-200).write_parquet("b.parquet")
    call = ["audit", "a.parquet", "b*.parquet", *COLUMNS, "--attribute", "sex", "-o"]
    assert main([*call, "-"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [file["name"] for file in printed["run"]["files"]] == ["a.parquet", "b.parquet"]
    assert printed["settings"]["label"] == "progressed"
    assert main([*call, "audit.html"]) == 0
    page = Path("audit.html").read_text(encoding="utf-8")
    names = re.findall(r"([ab]\.parquet), \d+ rows, SHA-256 [0-9a-f]{64}[.;]", page)
    assert names == ["a.parquet", "b.parquet"]


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("https://ann:secret@host/rows.parquet", "https://host/rows.parquet"),
        ("s3://ann:se@cret@host:90/rows.parquet", "s3://host:90/rows.parquet"),
        ("abfss://box@account.net/rows.parquet", "abfss://box@account.net/rows.parquet"),
        ("https://host:90/rows.parquet", "https://host:90/rows.parquet"),
        ("s3://bucket/day@noon/rows.parquet", "s3://bucket/day@noon/rows.parquet"),
        ("s3://TOKEN@bucket/rows.parquet", "s3://bucket/rows.parquet"),
        ("s3://ann:se/cr@et@host/rows.parquet", "s3://host/rows.parquet"),
        ("https://ann:p?ss w#rd@host/rows.parquet", "https://host/rows.parquet"),
        ("https://ann:12/34@host/rows.parquet", "https://host/rows.parquet"),
        ("https://ann:1234@host/rows.parquet", "https://host/rows.parquet"),
        ("abfss://ann:secret@account.net/rows.parquet", "abfss://account.net/rows.parquet"),
        ("https://host/a.parquet?sv=1&sig=se%2Fcret", "https://host/a.parquet"),
        ("https://host/a.parquet?X-Amz-Signature=ab@cd#me", "https://host/a.parquet"),
        ("https://host/a.parquet#token", "https://host/a.parquet"),
        ("HTTPS://host/a.parquet?AWSAccessKeyId=1", "HTTPS://host/a.parquet"),
        ("abfss://box@account.net/a.parquet?sig=1", "abfss://box@account.net/a.parquet"),
        ("s3://bucket/day?.parquet", "s3://bucket/day?.parquet"),
        ("http://[::1]:90/a.parquet", "http://[::1]:90/a.parquet"),
        ("no https://h/a.csv?sig=b, https://h/c.csv?k=d.", "no https://h/a.csv, https://h/c.csv."),
        (
            "GET http://h:1/x.csv?k=b in 3s (location: x.csv?k=b) (path: http://ann:secret@h:1)",
            "GET http://h:1/x.csv in 3s (location: x.csv) (path: http://h:1)",
        ),
        ("bad port (path: https://ann:sec)", "bad port (path: https://...)"),
        (
            "the server wants X-Amz-Credential=me/2024 and sig=x",
            "the server wants X-Amz-Credential=... and sig=...",
        ),
        ("day@noon.parquet", "day@noon.parquet"),
    ],
)
def test_no_password_is_shown(source: str, shown: str) -> None:
    assert without_credentials(source) == shown


def test_auc_as_json_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["auc", str(PATIENTS), *COLUMNS, "-o", "-"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["n"] == 442


@pytest.mark.parametrize("suffix", sweep(["html", "png", "svg", "csv", "parquet", "json"], fast=3))
def test_curve_writes_tables_and_charts(tmp_path: Path, suffix: str) -> None:
    output = tmp_path / f"curve.{suffix}"
    assert main(["curve", str(PATIENTS), *COLUMNS, "--by", "sex", "-o", str(output)]) == 0
    content = output.read_bytes()
    if suffix == "png":
        assert content.startswith(b"\x89PNG")
    elif suffix == "svg":
        assert ET.fromstring(content).tag.endswith("svg")  # noqa: S314  (our own file)
    elif suffix == "html":
        assert content.count(b"<figure>") == 1
        assert b"https://" not in content
    else:
        curve = pl.read_csv(output) if suffix == "csv" else None
        curve = pl.read_parquet(output) if suffix == "parquet" else curve
        curve = pl.read_json(output) if suffix == "json" else curve
        assert curve is not None
        assert curve.columns[:4] == ["sex", "threshold", "fpr", "tpr"]


@pytest.mark.slow(reason="makes several audits")
def test_audit_in_clusters(capsys: pytest.CaptureFixture[str], expected: pl.DataFrame) -> None:
    call = ["audit", str(PATIENTS), *COLUMNS, "--attribute", "sex", "--cluster", "age", "-o", "-"]
    assert main(call) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["settings"]["design"]["cluster"] == "age"
    audit = wroc.audit(
        pl.read_parquet(PATIENTS),
        "progressed",
        "score",
        weight="weight",
        attributes="sex",
        design="age",
    )
    table = pl.DataFrame(printed["table"], schema=audit.table.schema)
    assert_frame_equal(table, audit.table, abs_tol=1e-12)
    in_clusters = table.filter(attribute="sex", metric="auc")["value_low"].to_list()
    assert in_clusters != pytest.approx(expected["auc_low"].to_list(), rel=1e-3)


@pytest.mark.slow(reason="runs several commands")
def test_designs_of_surveys(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--strata", "age", "--lonely", "adjust", "-o", "-"]
    rows = pl.read_parquet(PATIENTS)
    design: dict[str, Any] = {"design": wroc.Survey(strata="age", lonely="adjust")}
    given: dict[str, Any] = {"label": "progressed", "score": "score", "weight": "weight"}
    assert main(["audit", str(PATIENTS), *COLUMNS, "--attribute", "sex", *words]) == 0
    printed = json.loads(capsys.readouterr().out)
    audit = wroc.audit(rows, **given, attributes="sex", **design)
    assert printed["settings"]["design"]["strata"] == "age"
    table = pl.DataFrame(printed["table"], schema=audit.table.schema)
    assert_frame_equal(table, audit.table, abs_tol=1e-12)
    assert main(["auc", str(PATIENTS), *COLUMNS, "--by", "sex", *words]) == 0
    found = pl.DataFrame(json.loads(capsys.readouterr().out))
    expected = wroc.summary(rows, **given, by="sex", **design)
    assert_frame_equal(found.select("auc_se", "df"), expected.select("auc_se", "df"), abs_tol=1e-12)


def test_replicate_weights(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    random = np.random.default_rng(8)
    rows = pl.read_parquet(PATIENTS)
    factors = random.choice([0.5, 1.5], (4, rows.height))
    rows = rows.with_columns(**{f"brr.{i}": pl.col("weight") * f for i, f in enumerate(factors)})
    path = tmp_path / "rows.parquet"
    rows.write_parquet(path)
    words = ["--replicate-weights", "brr.*:kind=fay,rho=0.5,df=3"]
    words += ["-o", "-"]
    assert main(["audit", str(path), *COLUMNS, "--attribute", "sex", *words]) == 0
    printed = json.loads(capsys.readouterr().out)
    columns = [f"brr.{i}" for i in range(4)]
    weights = wroc.ReplicateWeights(columns, "fay", rho=0.5, df=3)
    audit = wroc.audit(
        rows, "progressed", "score", weight="weight", attributes="sex", design=weights
    )
    assert printed["settings"]["design"]["replicates"] == "fay"
    found = pl.DataFrame(printed["table"], schema=audit.table.schema)
    assert_frame_equal(found, audit.table, abs_tol=1e-12)


@pytest.mark.parametrize("given", ["w", "w:", "w:kind=jk3", "w:kind=fay", "w:rho=0.3"])
def test_replicate_weights_have_a_kind(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["auc", str(PATIENTS), *COLUMNS, "--replicate-weights", given]) == 2
    error = capsys.readouterr().err
    assert "--replicate-weights: must look like 'rep_*:kind=jk2' or " in error
    assert f"; found '{given}': " in error


def test_auc_of_weights_that_count_rows(
    capsys: pytest.CaptureFixture[str], expected: pl.DataFrame
) -> None:
    call = ["auc", str(PATIENTS), *FREQUENCY, "--by", "sex"]
    assert main([*call, "--level", "0.9", "-o", "-"]) == 0
    listed = json.loads(capsys.readouterr().out)
    found = pl.DataFrame(listed, schema_overrides={"ci_note": pl.String})
    data = pl.read_parquet(PATIENTS)
    frequency = wroc.summary(
        data, "progressed", "score", weight=wroc.frequency("age"), by="sex", level=0.9
    )
    assert_frame_equal(found, frequency, abs_tol=1e-12)
    people = data.group_by("sex").agg(pl.sum("age")).sort("sex")
    assert found["n"].to_list() == people["age"].to_list()
    assert found["auc_se"].to_list() != pytest.approx(expected["auc_se"].to_list(), rel=1e-6)


@pytest.mark.parametrize("band", ["pointwise", "simultaneous"])
def test_curve_with_a_band_as_a_table(tmp_path: Path, band: Literal["pointwise"]) -> None:
    output = tmp_path / "curve.csv"
    call = ["curve", str(PATIENTS), *FREQUENCY, "--by", "sex", "--band", band, "--level", "0.8"]
    assert main([*call, "-o", str(output)]) == 0
    found = pl.read_csv(output)
    flags = ["one_sided"] if band == "pointwise" else []
    assert found.columns[7 + 1 :] == ["tpr_low", "tpr_high", *flags]
    curve = wroc.roc_curve(
        pl.read_parquet(PATIENTS),
        "progressed",
        "score",
        weight=wroc.frequency("age"),
        by="sex",
        band=band,
        level=0.8,
    )
    assert_frame_equal(found, curve, abs_tol=1e-9)


def test_chart_of_curves_says_how_sure_each_auc_is(tmp_path: Path, expected: pl.DataFrame) -> None:
    output = tmp_path / "curve.svg"
    call = ["curve", str(PATIENTS), *COLUMNS, "--by", "sex", "--band", "pointwise"]
    assert main([*call, "-o", str(output)]) == 0
    texts = [*ET.parse(output).getroot().itertext()]  # noqa: S314
    for auc, low, high in expected.select("auc", "auc_low", "auc_high").rows():
        assert f"{auc:.3f} ({low:.2f}\N{EN DASH}{high:.2f})" in texts
    assert any("its confidence interval" in text for text in texts)


def test_chart_of_curves_says_how_sure_their_aucs_are(tmp_path: Path) -> None:
    output = tmp_path / "curve.svg"
    call = ["curve", str(PATIENTS), *COLUMNS, "--level", "0.8", "-o", str(output)]
    assert main(call) == 0
    data = pl.read_parquet(PATIENTS)
    sure = wroc.summary(data, "progressed", "score", weight="weight", level=0.8)
    low, high = sure.select("auc_low", "auc_high").row(0)
    assert f"({low:.2f}\N{EN DASH}{high:.2f})" in output.read_text()


def test_pos_label_of_each_type(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.parquet"
    pl.DataFrame(
        {"text": ["b", "g"], "whole": [1, 2], "flag": [True, False], "s": [0.2, 0.8]}
    ).write_parquet(path)
    for label, positive in (("text", "g"), ("whole", "2"), ("flag", "false")):
        call = ["auc", str(path), "--label", label, "--score", "s", "--pos-label", positive]
        assert main([*call, "-o", "-"]) == 0
        assert json.loads(capsys.readouterr().out)[0]["auc"] == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["auc"], "FILE must be given; see polars-wroc auc --help"),
        (["frob"], "there is no command 'frob'"),
        (["auc", "none.parquet", *COLUMNS], "no such file: none.parquet"),
        (["auc", "rows.xls", *COLUMNS], "no such file: rows.xls"),
        (["auc", str(PATIENTS), "x.csv", *COLUMNS], "no such file: x.csv"),
        (["auc", str(PATIENTS), "--label", "no", "--score", "score"], "no column 'no'"),
        (["auc", str(PATIENTS), "--label", "sex", "--score", "score"], "come with --pos-label"),
        (["auc", str(PATIENTS), "--label", "age", "--score", "score"], "column 'age' holds "),
        (["auc", str(PATIENTS), "--label", "progressed", "--score", "sex"], "must be a number"),
        (["auc", str(PATIENTS), *COLUMNS, "--pos-label", "x"], "--pos-label must be a value"),
        (["auc", str(PATIENTS), *COLUMNS, "--level", "95"], "--level must lie between"),
        (["audit", str(PATIENTS), *COLUMNS], "--attribute must be given"),
        (
            ["audit", str(PATIENTS), *COLUMNS, "--attribute", "sex", "-o", "a.txt"],
            "must end in one of",
        ),
        (["curve", str(PATIENTS), *COLUMNS, "-o", "c.png", "--max-points", "1"], "be 3 or more"),
        (
            ["curve", str(PATIENTS), *COLUMNS, "-o", "c.csv", "--band", "wide"],
            'Invalid value "wide" for --band. Choose from: "pointwise", "simultaneous"',
        ),
        (
            [
                "curve",
                str(PATIENTS),
                *COLUMNS,
                "-o",
                "c.csv",
                "--band",
                "pointwise",
                "--level",
                "2",
            ],
            "--level must lie between 0.001 and 0.9999; found 2.0",
        ),
        (
            ["auc", str(PATIENTS), *COLUMNS, "--frequency", "weight"],
            "--weight and --frequency exclude each other",
        ),
        (
            ["auc", str(PATIENTS), *COLUMNS, "--cluster", "no"],
            f"--cluster must name a column of {PATIENTS}; found no column 'no'",
        ),
        (
            ["audit", str(PATIENTS), *COLUMNS, "--attribute", "sex", "--cluster", "no"],
            f"--cluster must name a column of {PATIENTS}; found no column 'no'",
        ),
        (
            [
                "curve",
                str(PATIENTS),
                *COLUMNS,
                "--by",
                "age",
                "--by",
                "sex",
                "--by",
                "weight",
                "-o",
                "c.png",
            ],
            "must cover all group columns",
        ),
    ],
)
def test_mistakes_are_one_line_and_exit_2(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.startswith("polars-wroc: ")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"PAR1 this is no Parquet file"])
def test_unreadable_file(
    tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "broken.parquet"
    path.write_bytes(content)
    assert main(["auc", str(path), *COLUMNS]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_bad_weights_found_while_running(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.parquet"
    pl.DataFrame({"y": [1, 0], "s": [0.5, 0.1], "w": [1.0, -2.0]}).write_parquet(path)
    output = tmp_path / "out.parquet"
    call = ["auc", str(path), "--label", "y", "--score", "s", "--weight", "w", "-o", str(output)]
    assert main(call) == 2
    assert capsys.readouterr().err == (
        "polars-wroc: --weight must be finite and zero or more; column 'w' holds -2.0\n"
    )
    assert not output.exists()


def test_help_imports_no_charts() -> None:
    code = (
        "import sys; from polars_wroc.cli import main\n"
        "try: main(['audit', '--help'])\n"
        "except SystemExit as stop: assert stop.code == 0\n"
        "assert not {'altair', 'pyarrow'} & set(sys.modules)"
    )
    done = subprocess.run(  # noqa: S603  (our own code)
        [sys.executable, "-c", code], env=PLAIN, capture_output=True, text=True, check=True
    )
    assert "--attribute" in done.stdout


def test_input_is_never_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.parquet"
    path.write_bytes(PATIENTS.read_bytes())
    assert main(["auc", str(path), *COLUMNS, "-o", str(path)]) == 2
    assert "--output must not be a file that is read" in capsys.readouterr().err
    assert path.read_bytes() == PATIENTS.read_bytes()


def test_unreadable_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "empty.csv"
    path.touch()
    assert main(["auc", str(path), *COLUMNS]) == 2
    assert f"{path} is empty" in capsys.readouterr().err


def test_pattern_without_a_match(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["auc", str(tmp_path / "*.parquet"), *COLUMNS]) == 2
    assert "no file matches " in capsys.readouterr().err


def test_input_folder_and_pattern_are_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    path.write_bytes(PATIENTS.read_bytes())
    for source in (tmp_path, tmp_path / "*.parquet"):
        assert main(["auc", str(source), *COLUMNS, "-o", str(path)]) == 2
    assert path.read_bytes() == PATIENTS.read_bytes()


@pytest.mark.parametrize("more", [["-o", "x.csv"], ["--kind", "pr", "-o", "x.svg"]])
@pytest.mark.parametrize("option", ["--cluster", "--strata"])
def test_clusters_of_curves_are_for_limits(
    option: str, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["curve", str(PATIENTS), *COLUMNS, option, "age", *more]) == 2
    assert "options of a survey apply to a ROC chart, --band" in capsys.readouterr().err
