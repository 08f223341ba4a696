"""Tables as HTML and Markdown: what is in them, names that would break them, and formats."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from chromium import Chromium
from html_pages import ReadPage, Table
from polars.testing import assert_frame_equal
from sweeps import sweep

import polars_wroc as wroc
from polars_wroc.cli import main

pytestmark = pytest.mark.usefixtures("folder")
COLUMNS = ["--label", "y", "--score", "s"]
HOSTILE = ["<script>alert(1)</script>", "=1+1", "a|b\nc", "*bold* [x](y) & `c`", "-- \u200b\x07"]
COMMANDS = {
    "impact": "--selected y --favorable selected --attribute g",
    "auc": "--label y --score s --by g",
    "compare": "--label y --score s --score t --by g",
    "gaps": "--label y --score s --attribute g --threshold 0.5 --metric tpr",
    "search": "--label y --score s --attribute u --threshold 0.5 --favorable selected "
    "--metric selection_rate",
    "thresholds": "--label y --score s --by g --threshold 0.5",
    "calibrate": "--label y --score s --by g --bins 3",
    "curve": "--label y --score s --by g --kind pr",
}
# Curves have no table below their chart.
WITH_TABLES = [name for name in COMMANDS if name != "curve"]


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    random = np.random.default_rng(4)
    size = 300
    score = random.random(size).round(2)
    return pl.DataFrame(
        {
            "y": random.random(size) < score,
            "s": score,
            "t": random.random(size),
            "g": random.choice(HOSTILE, size),
            # Segments of low scores, for searches to name.
            "u": [HOSTILE[min(int(5 * one), 4)] for one in score],
        }
    )


@pytest.fixture
def folder(tmp_path: Path, rows: pl.DataFrame, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with the rows in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    rows.write_parquet("rows.parquet")
    return tmp_path


def written(command: str, name: str, *more: str) -> str:
    words = COMMANDS[command].split()
    assert main([command, "rows.parquet", *words, *more, "-o", name]) == 0
    return Path(name).read_text(encoding="utf-8")


_UNESCAPED = re.compile(r"\\(.)")


def tables_of_markdown(text: str) -> list[Table]:
    """Read tables by the rules of GitHub: cells end at a bar that is not escaped."""
    tables: list[Table] = []
    before = ""
    for line in text.splitlines():
        if line.startswith("|"):
            cells = re.split(r"(?<!\\)\|", line)[1:-1]
            if not before.startswith("|"):
                tables.append([])
            tables[-1].append([_UNESCAPED.sub(r"\1", cell.strip()) for cell in cells])
        before = line
    for table in tables:
        rule = table.pop(1)
        assert all(re.fullmatch("---:?", cell) for cell in rule)
    return tables


@pytest.mark.parametrize("command", sweep(COMMANDS, fast=3))
def test_a_page_is_the_table_then_the_chart(command: str) -> None:
    text = written(command, "x.html")
    page = ReadPage(text)
    assert page.language == "en"
    assert page.texts["title"] == page.texts["h1"]
    assert [name for name in page.texts if name in ("a", "img", "link", "iframe")] == []
    assert len(page.tables) == {"curve": 0, "calibrate": 2}.get(command, 1)
    assert len(page.texts["figure"]) == 1
    assert "<script" not in text
    assert text.rfind("</table>") < text.index("<figure>")
    content = hashlib.sha256(Path("rows.parquet").read_bytes()).hexdigest()
    made, data, by, sign = page.texts["p"][-4:]
    assert made.startswith("Made 14 November 2023 with polars-wroc ")
    assert data == f"Data: rows.parquet, 300 rows, SHA-256 {content}."
    assert by.startswith(f"Command: polars-wroc {command} rows.parquet")
    assert sign == "Reviewed by, date and signature:"


def test_conditions_that_failed_are_first_on_a_page() -> None:
    wroc.data.loans().write_parquet("loans.parquet")
    call = ["impact", "loans.parquet", "--score", "score", "--threshold", "0.85", "--favorable"]
    call += ["selected", "--attribute", "race", "--attribute", "sex", "--intersections"]
    # The share of one crossed group is too small for a ratio.
    assert main([*call, "--fail-if", "impact_ratio.ratio_high<0.8", "-o", "x.html"]) == 1
    failed, _, unjudged = ReadPage(Path("x.html").read_text(encoding="utf-8")).texts["li"]
    assert failed.startswith("FAILED impact_ratio.ratio_high < 0.8 in 2 of 7 segments: race = bla")
    assert unjudged.startswith("NOT JUDGED impact_ratio.ratio_high < 0.8: share below 2% in ")


def words_of(text: str) -> str:
    """Write a name in one line, without what cannot be printed."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


@pytest.mark.parametrize("command", sweep(WITH_TABLES, fast=3))
def test_markdown_has_the_table_of_the_page(command: str) -> None:
    text = written(command, "x.md")
    assert text.startswith("# ")
    page = ReadPage(written(command, "x.html"))
    # Both have the same foot, but for the name of the file that is written.
    foot = [line.replace("x.md", "x.html") for line in text.splitlines() if line][-4:]
    assert [_UNESCAPED.sub(r"\1", line) for line in foot] == page.texts["p"][-4:]
    found = tables_of_markdown(text)
    assert [[[*map(words_of, row)] for row in table] for table in found] == [
        [[*map(words_of, row)] for row in table] for table in page.tables
    ]
    assert len(found[0]) == {"search": 2}.get(command, len(HOSTILE)) + 1


@pytest.mark.parametrize("suffix", ["html", "md"])
def test_numbers_are_those_of_the_function(suffix: str, rows: pl.DataFrame) -> None:
    text = written("auc", f"x.{suffix}", "--columns", "all")
    table = ReadPage(text).tables[0] if suffix == "html" else tables_of_markdown(text)[0]
    expected = wroc.summary(rows, "y", "s", by="g")
    assert table[0] == expected.columns
    for name in ("n", "auc", "auc_low", "auc_high", "average_precision"):
        place = table[0].index(name)
        numbers = [float(row[place].replace(",", "")) for row in table[1:]]
        assert numbers == pytest.approx(expected[name].to_list(), abs=5.1e-4)


def test_names_are_shown_as_they_are_and_run_nowhere() -> None:
    text = written("impact", "x.html")
    page = ReadPage(text)
    segments = {words_of(row[0]) for row in page.tables[0][1:]}
    # What cannot be printed is written as its code.
    assert segments == {words_of(name.replace("\x07", "\\x07")) for name in HOSTILE}
    assert "<script>alert" not in text.lower()
    # Numbers are on the right, which needs no class.
    assert page.classes[0] == [None, None, None, None, None, "left", None]
    markdown = written("impact", "x.md")
    assert "\\<script\\>alert(1)\\</script\\>" in markdown
    assert "a\\|b c" in markdown


def test_columns_and_rows_of_a_page() -> None:
    text = written("auc", "x.md", "--columns", "auc,n_neg", "--rows", "2")
    (table,) = tables_of_markdown(text)
    assert table[0] == ["g", "auc", "n_neg"]
    assert len(table) == 3
    assert "3 more rows: --rows all shows them" in text


def test_long_tables_are_cut() -> None:
    many = pl.DataFrame({"y": [0, 1] * 1001, "s": np.linspace(0, 1, 2002)})
    many.with_columns(g=pl.int_range(pl.len()) // 2).write_parquet("rows.parquet")
    text = written("auc", "x.md")
    (table,) = tables_of_markdown(text)
    assert len(table) == 1001
    assert "1 more row: " in text
    (table,) = tables_of_markdown(written("auc", "x.md", "--rows", "all"))
    assert len(table) == 1002


@pytest.mark.parametrize(("form", "start"), [("md", "# AUCs"), ("html", "<!doc"), ("json", "[{")])
def test_the_format_of_a_file_without_an_ending(form: str, start: str) -> None:
    Path("summary").write_text("of an earlier step", encoding="utf-8")
    assert written("auc", "summary", "--format", form).startswith(start)
    assert [path.name for path in Path().glob(".polars-wroc-*")] == []


def test_binary_formats_of_a_file_without_an_ending(rows: pl.DataFrame) -> None:
    call = ["auc", "rows.parquet", *COLUMNS, "-o"]
    assert main([*call, "table", "--format", "parquet"]) == 0
    assert_frame_equal(pl.read_parquet("table"), wroc.summary(rows, "y", "s"))
    assert main([*call, "book", "--format", "xlsx"]) == 0
    assert Path("book").read_bytes().startswith(b"PK")


def test_the_format_of_a_report() -> None:
    call = ["audit", "rows.parquet", *COLUMNS, "--attribute", "g", "-o", "report", "--format"]
    assert main([*call, "json"]) == 0
    assert json.loads(Path("report").read_text(encoding="utf-8"))["schema"] == "polars-wroc/audit"
    assert main([*call, "md"]) == 0
    assert Path("report").read_text(encoding="utf-8").startswith("# Fairness audit of “s” by g\n")


@pytest.mark.parametrize("command", sweep(["auc", "calibrate"], fast=1))
@pytest.mark.parametrize("form", ["md", "csv", "json", "html", "svg"])
def test_formats_of_what_is_printed(
    form: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = written(command, f"x.{form}")
    capsys.readouterr()
    call = [command, "rows.parquet", *COMMANDS[command].split(), "-o", "-", "--format", form]
    assert main(call) == 0
    out, err = capsys.readouterr()
    # A page says by which command it was made, and a chart has names that are drawn by lot.
    if form in ("csv", "json"):
        assert out == expected
    elif form == "md":
        told = [line for line in out.splitlines() if not line.startswith("Command:")]
        assert told == [line for line in expected.splitlines() if not line.startswith("Command:")]
    assert out[:200] == expected[:200]
    assert err == ""


@pytest.mark.parametrize("more", [[], ["--format", "md"]])
def test_the_summary_of_a_job_is_added_to(
    more: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = Path("step_summary_1f")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary.resolve()))
    # A new file, by another way of naming it.
    assert main(["auc", "rows.parquet", *COLUMNS, "-o", f"./{summary}", *more]) == 0
    assert summary.read_text(encoding="utf-8").startswith("\n# AUCs\n")
    summary.write_text("of an earlier step", encoding="utf-8")
    written = ["-o", str(summary), *more]
    assert main(["audit", "rows.parquet", *COLUMNS, "--attribute", "g", *written]) == 0
    assert main(["auc", "rows.parquet", *COLUMNS, *written]) == 0
    text = summary.read_text(encoding="utf-8")
    assert text.startswith("of an earlier step\n# Fairness audit of “s” by g\n")
    assert text.count("\n# AUCs\n") == 1
    assert [path.name for path in Path().glob(".polars-wroc-*")] == []
    capsys.readouterr()
    assert main(["counts", "rows.parquet", *COLUMNS, "-o", str(summary)]) == 2
    assert "--output must end in one of .parquet, .csv, .json" in capsys.readouterr().err
    assert summary.read_text(encoding="utf-8") == text


def test_an_audit_is_written_in_several_formats(capsys: pytest.CaptureFixture[str]) -> None:
    call = ["audit", "rows.parquet", *COLUMNS, "--attribute", "g"]
    assert main([*call, "-o", "a.json", "-o", "a.csv"]) == 0
    out = capsys.readouterr().out
    assert out.endswith("wrote a.json\nwrote a.csv\n")
    assert main([*call, "-o", "b.json", "-o", "-", "-o", "b", "--format", "md"]) == 0
    printed = capsys.readouterr()
    first, second = (json.loads(Path(f"{name}.json").read_text()) for name in "ab")
    assert first["table"] == second["table"]
    assert pl.read_csv("a.csv").height == len(first["table"])
    assert printed.out == Path("b").read_text(encoding="utf-8")
    assert printed.err == "polars-wroc: wrote b.json\npolars-wroc: wrote b\n"
    # None is written where one cannot be.
    assert main([*call, "-o", "c.json", "-o", "c.docx"]) == 2
    assert not Path("c.json").exists()


def test_every_command_writes_several_files(
    rows: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["auc", "rows.parquet", *COLUMNS, "--by", "g"]
    assert main([*call, "-o", "x.md", "-o", "x.parquet", "-o", "-"]) == 0
    expected = wroc.summary(rows, "y", "s", by="g")
    assert_frame_equal(pl.read_parquet("x.parquet"), expected)
    assert Path("x.md").read_text(encoding="utf-8").startswith("# AUCs by g\n")
    # What is printed is JSON alone.
    assert len(json.loads(capsys.readouterr().out)) == expected.height


def test_changes_as_markdown() -> None:
    for name, share in (("before", 0.5), ("after", 0.9)):
        data = pl.read_parquet("rows.parquet").sample(fraction=share, seed=1)
        data.write_parquet(f"{name}.parquet")
        call = ["audit", f"{name}.parquet", *COLUMNS, "--attribute", "g"]
        assert main([*call, "-o", f"{name}.json"]) == 0
    assert main(["diff", "before.json", "after.json", "-o", "x.md"]) == 0
    text = Path("x.md").read_text(encoding="utf-8")
    assert text.startswith("# What changed from before.json to after.json\n")
    assert "150 rows before · 270 rows after" in text
    assert "not significant." in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-o", "summary"], "--output must end in one of .parquet, .csv"),
        (["--format", "md"], "--format applies to a file whose name does not end in one"),
        (["-o", "-", "--format", "png"], "-o - prints text, and .png is none: name a file"),
        (["-o", "-", "--format", "parquet"], "-o - prints text, and .parquet is none: name a file"),
        (
            ["-o", "x.csv", "--format", "md"],
            "--format applies to a file whose name does not end in one",
        ),
        (
            ["-o", "x", "--format", "docx"],
            "--format must be one of parquet, csv, json, ndjson, jsonl, xlsx, md, prom, html, png,",
        ),
        (["-o", "rows.parquet"], "must not be a file that is read"),
    ],
)
def test_formats_that_are_refused(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["auc", "rows.parquet", *COLUMNS, *words]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("command", sweep(COMMANDS, fast=1))
def test_pages_draw_their_charts(command: str, chromium: Chromium) -> None:
    written(command, "x.html")
    for width in (1200, 390):
        chromium.open(Path("x.html").resolve(), width=width)
        assert chromium.printed == []
        assert [one for one in chromium.requests if not one.startswith(("file:", "data:"))] == []
        assert chromium.evaluate("document.querySelectorAll('figure svg').length") == 1
        # No script sorts rows away from the headings above them.
        assert chromium.evaluate("document.querySelectorAll('th button').length") == 0
        # What is too wide scrolls in its own place.
        overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert chromium.evaluate(overflow) == 0
