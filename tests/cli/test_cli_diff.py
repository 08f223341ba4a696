"""`polars-wroc diff`: the changes of `audit_changes`, what is told of them, and gates on them."""

from __future__ import annotations

import hashlib
import html
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import polars as pl
import pytest
from chromium import Chromium
from polars.testing import assert_frame_equal, assert_series_equal
from sweeps import sweep

import polars_wroc as wroc
from polars_wroc.cli import main

pytestmark = pytest.mark.usefixtures("folder")
CALL = ["diff", "before.json", "after.json"]
MINUS = "\N{MINUS SIGN}"
NAMES = {
    "auc": "ranking (AUC)",
    "selection_rate": "selected",
    "tpr": "selected among the positives",
    "fpr": "selected among the negatives",
    "ppv": "positive among those selected",
    "npv": "negative among those not selected",
    "impact_ratio": "impact ratio",
}
LABELS = {
    "auc": "AUC",
    "selection_rate": "selection rate",
    "tpr": "true positive rate",
    "fpr": "false positive rate",
    "ppv": "precision",
    "npv": "negative predictive value",
    "impact_ratio": "impact ratio",
}


def rows(seed: int, shift: float, groups: str) -> pl.DataFrame:
    """Of the positives of group b fewer are selected, the more the larger the shift."""
    random = np.random.default_rng(seed)
    group = random.choice(list(groups), 1500)
    positive = random.random(1500) < 0.5
    score = random.normal(size=1500) + 1.2 * positive + 0.5 - shift * (group == "b") * positive
    data = pl.DataFrame({"g": group, "y": positive, "s": score / 3, "t": -score})
    return pl.concat([data, data.head(30).with_columns(g=pl.lit("few"))])


def audits(score: str | list[str] = "s") -> dict[str, wroc.Audit]:
    made = (("before", rows(1, 0.0, "abc")), ("after", rows(2, 1.2, "abd")))
    return {
        name: wroc.audit(data, "y", score, attributes="g", threshold=0.5, favorable="selected")
        for name, data in made
    }


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audits")
    for name, audit in audits().items():
        audit.save(folder / f"{name}.json")
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with two audits in it."""
    for name in ("before.json", "after.json"):
        (tmp_path / name).write_bytes((saved / name).read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def changes() -> pl.DataFrame:
    return wroc.audit_changes("before.json", "after.json")


@pytest.mark.parametrize("adjust", sweep(["holm", "none"]))
def test_diff_writes_the_changes(adjust: str) -> None:
    assert main([*CALL, "--adjust", adjust, "-o", "x.parquet"]) == 0
    expected = wroc.audit_changes("before.json", "after.json", adjust=adjust)  # type: ignore[arg-type]
    assert_frame_equal(pl.read_parquet("x.parquet"), expected)


@pytest.mark.parametrize("output", ["x.csv", "x.json", "-"])
def test_formats(output: str, changes: pl.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*CALL, "-o", output]) == 0
    printed = capsys.readouterr().out
    if output == "x.csv":
        assert pl.read_csv(output).columns == changes.columns
        return
    listed = json.loads(printed if output == "-" else Path(output).read_text(encoding="utf-8"))
    assert [row["gap"] for row in listed] == pytest.approx(changes["gap"].to_list())


@pytest.mark.parametrize("suffix", sweep(["svg", "png", "html"]))
def test_charts(suffix: str, changes: pl.DataFrame) -> None:
    chart = ["--metric", "tpr", "--show", "value"]
    assert main([*CALL, *chart, "-o", f"x.{suffix}"]) == 0
    content = Path(f"x.{suffix}").read_bytes()
    if suffix == "png":
        assert content.startswith(b"\x89PNG")
    elif suffix == "html":
        assert content.count(b"<figure>") == 1
    else:
        texts = list(ET.fromstring(content).itertext())  # noqa: S314  (our own file)
        assert "Upright mark: the first audit. Filled: differs by more than chance" in texts
        drawn = changes.filter(metric="tpr").drop_nulls("gap")
        for value in drawn["value"]:
            assert f"{value:.1%}" in texts


@pytest.mark.parametrize("width", [70, 80, 200])
def test_what_is_printed(
    width: int,
    changes: pl.DataFrame,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(CALL) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= width
    told = " ".join(out.split("\n\n")[0].split())
    assert told == sentences(changes)
    known = changes.filter(pl.col("p_value").is_not_null())
    notable = known.filter((pl.col("p_adjusted") <= 0.05) | pl.col("finding").is_not_null())
    assert 0 < notable.height < known.height
    tables = out.partition("\n\n")[2]
    lines = [line for line in tables.splitlines() if re.search(r"\.\d+ to ", line)]
    assert len(lines) == notable.height
    ordered = pl.concat(kinds(notable).values())
    for line, row in zip(lines, ordered.rows(named=True), strict=True):
        before, after = (written(row["metric"], row[name]) for name in ("reference_value", "value"))
        told = " ".join(line.split())
        change = change_of(row["metric"], row["gap"])
        assert f"{before} {after} {change} {interval_of(row)}" in told
        assert told.endswith(row["finding"] or "")
    assert f"{known.height - notable.height} other changes are not significant." in out


def kinds(changes: pl.DataFrame) -> dict[tuple[str, str], pl.DataFrame]:
    """The changes of gaps in rates, of gaps in AUC, of ratios, of rates and of AUCs."""
    is_gap, is_auc = pl.col("metric").str.ends_with("_gap"), pl.col("metric").str.contains("auc")
    is_ratio = pl.col("metric") == "impact_ratio"
    return {
        ("gap in rates", "gaps in rates"): changes.filter(is_gap, ~is_auc),
        ("gap in AUC", "gaps in AUC"): changes.filter(is_gap, is_auc),
        ("impact ratio", "impact ratios"): changes.filter(is_ratio),
        ("rate", "rates"): changes.filter(~is_gap, ~is_auc, ~is_ratio),
        ("AUC", "AUCs"): changes.filter(~is_gap, is_auc),
    }


def points(difference: float) -> str:
    """A difference in hundredths, with its sign; none of 0."""
    text = f"{100 * difference:+.1f}"
    return "0.0" if float(text) == 0 else text.replace("-", MINUS)


def written(metric: str, value: float) -> str:
    """A value as tables of changes write it."""
    if metric == "impact_ratio":
        return f"{value:.2f}"
    if metric == "auc":
        return f"{value:.3f}"
    return change_of(metric, value) if metric.endswith("_gap") else f"{100 * value:.1f}%"


def change_of(metric: str, change: float) -> str:
    """A change as tables of changes write it."""
    if metric in ("impact_ratio", "auc", "auc_gap"):
        text = f"{change:+.3f}"
        return "0.000" if float(text) == 0 else text.replace("-", MINUS)
    return points(change)


def interval_of(row: dict[str, Any]) -> str:
    low, high = (change_of(row["metric"], row[end]) for end in ("gap_low", "gap_high"))
    return f"({low} to {high})"


def sentences(changes: pl.DataFrame) -> str:
    """What is told of the changes: those that are significant, then what is only shown."""
    is_changed = pl.col("p_adjusted") <= 0.05
    counted, told = list[str](), list[str]()
    for (singular, plural), rows in kinds(changes).items():
        changed, tested = rows.filter(is_changed), rows["p_value"].count()
        assert changed.height
        of_all = f"{changed.height} of {tested} {plural}"
        counted.append(f"the only {singular}" if tested == 1 else of_all)
        told += map(sentence, changed.sort("p_value").head(3).to_dicts())
    # Not all are told.
    assert len(told) < changes.filter(is_changed).height
    count = f"{', '.join(counted[:-1])} and {counted[-1]} changed significantly."
    shown = changes.filter(pl.col("metric") != "impact_ratio", finding="now shown")
    names = [
        f"{row['segment']} (g), {NAMES[row['metric'].removesuffix('_gap')]}"
        for row in shown.rows(named=True)
    ]
    assert 1 < len(names) <= 5
    listed = "; ".join(names)
    return (
        f"{count} {' '.join(told)} Shown to differ only after, though the changes are not "
        f"significant: {listed}. Only before: c (g). Only after: d (g)."
    )


def sentence(row: dict[str, Any]) -> str:
    """What is told of a significant change; all values are lower after."""
    group = "Everyone" if row["attribute"] == "overall" else f"The group {row['segment']} (g)"
    metric = row["metric"].removesuffix("_gap")
    before, after = row["reference_value"], row["value"]
    start = f"{group}, {NAMES[metric]}: "
    if metric != row["metric"]:
        assert row["finding"] == "new"
        ends = " to ".join(
            map(change_of if metric == "auc" else whole, [metric] * 2, [before, after])
        )
        unit = "" if metric == "auc" else " points"
        return f"{start}the gap to everyone else opened from {ends}{unit}."
    if metric == "impact_ratio":
        assert row["finding"] == "new"
        found = "now shown to be below four fifths (0.8)"
        return f"{start}{after:.2f}, against {before:.2f} before, {found}."
    sizes = [abs(row[name]) for name in ("gap", "gap_high", "gap_low")]
    if metric == "auc":
        size, low, high = (f"{each:.3f}" for each in sizes)
        return f"{start}{after:.2f}, against {before:.2f} before; {size} lower ({low} to {high})."
    size, low, high = (f"{100 * each:.0f}" for each in sizes)
    return (
        f"{start}{after:.0%}, against {before:.0%} before; {size} points lower ({low} to {high})."
    )


def whole(_: str, gap: float) -> str:
    """A gap in hundredths without decimals, unless it is below 1."""
    form = "+.0f" if abs(100 * gap) >= 0.95 else "+.1f"
    return format(100 * gap, form).replace("-", MINUS)


def test_nothing_changed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "after.json", "after.json", "--different-rows"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert re.fullmatch(r"None of \d+ tested changes is significant\.", told)


@pytest.mark.slow(reason="runs several commands")
def test_a_gap_that_is_only_shown_did_not_change(capsys: pytest.CaptureFixture[str]) -> None:
    # The same shift, but few rows before.
    few, many = rows(1, 0.4, "ab").sample(500, seed=1), pl.concat([rows(2, 0.4, "ab")] * 4)
    for name, data in (("before", few), ("after", many)):
        wroc.audit(data, "y", "s", attributes="g", threshold=0.5, favorable="selected").save(
            f"{name}.json"
        )
    table = wroc.audit_changes("before.json", "after.json")
    shown = table.filter(finding="now shown")
    assert shown.height > 1
    assert shown["p_adjusted"].min() > 0.05  # type: ignore[operator]
    assert main(CALL) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert told.startswith("None of ")
    only = "Shown to differ only {}, though the changes are not significant: {} (g), selected"
    assert only.format("after", shown["segment"][0]) in told
    assert " new" not in told
    assert main(["diff", "after.json", "before.json"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert only.format("before", shown["segment"][0]) in told


def test_no_gate_passes_on_the_same_rows(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = rows(1, 0.0, "ab").with_columns(new=pl.col("s").reverse())
    for name, score in (("before", "s"), ("after", "new")):
        wroc.audit(data, "y", score, attributes="g").save(f"{name}.json")
    gate = ["--fail-if", "auc_gap.growth>0.9"]
    for output in ([], ["-o", "x.csv"], ["-o", "x.html"]):
        assert main([*CALL, *gate, *output]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("polars-wroc: BEFORE and AFTER must be audits of different rows;")
        assert (
            "test a new score on the same rows by polars-wroc release, or set --different-rows if"
            in err
        )
    assert not [*folder.glob("x.*")]
    assert main([*CALL, *gate, "--different-rows"]) == 0


def test_page(changes: pl.DataFrame) -> None:
    assert main([*CALL, "-o", "x.html"]) == 0
    page = Path("x.html").read_text(encoding="utf-8")
    for part in ("title", "h1"):
        (heading,) = re.findall(rf"<{part}\b[^>]*>([^<$]*)</{part}>", page)
        assert heading == "What changed from before.json to after.json"
    shown = html.unescape(page).replace("\N{NO-BREAK SPACE}", " ")
    assert f"{1530:,} rows before" in shown
    for name in ("before.json", "after.json"):
        content = hashlib.sha256(Path(name).read_bytes()).hexdigest()
        assert f"{name}, SHA-256 {content}" in shown
    assert ">Command: polars-wroc diff before.json after.json -o x.html<" in shown
    assert sentences(changes) in shown
    rows_shown = []
    for title, table in re.findall(
        r"<section[^>]*>(?:<h2>(.*?)</h2>)?(.*?)</section>", shown, re.DOTALL
    ):
        for row in re.findall(r"<tr>(.*?)</tr>", table):
            cells = [
                re.sub(r"<[^>]*>", "", cell)
                for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)
            ]
            # The title says which rows are gaps.
            rows_shown.append(f"{'gap' if title.startswith('Gaps ') else ''} {' '.join(cells)}")
    for row in changes.filter(pl.col("p_value").is_not_null()).rows(named=True):
        segment = "Everyone" if row["attribute"] == "overall" else f"{row['segment']} (g)"
        metric = row["metric"].removesuffix("_gap")
        name = f"{NAMES[metric][0].upper()}{NAMES[metric][1:]}"
        start = f"{'gap' if row['metric'] != metric else ''} {segment} {name} "
        before, after = (written(row["metric"], row[each]) for each in ("reference_value", "value"))
        (one,) = [text for text in rows_shown if text.startswith(f"{start}{before} {after} ")]
        assert f" {change_of(row['metric'], row['gap'])} {interval_of(row)} " in one
        assert one.endswith(f" {row['finding'] or ''}") or row["finding"] is None
    significant = changes.filter(pl.col("p_adjusted") <= 0.05)
    surest = significant.sort("p_value")["metric"].unique(maintain_order=True)
    assert page.count("<figure>") == min(surest.len(), 4)


def test_a_workbook_of_changes_says_what_changed(changes: pl.DataFrame) -> None:
    assert main([*CALL, "-o", "x.xlsx"]) == 0
    book = openpyxl.load_workbook("x.xlsx")
    assert book["About"]["A1"].value == "What changed from before.json to after.json"
    facts = {row[0].value: row[1].value for row in book["About"].iter_rows(min_row=3)}
    assert facts["Answer"] == sentences(changes)
    header, *rows = book["table"].values
    gaps = pl.Series("gap", [row[header.index("gap")] for row in rows])
    assert_series_equal(gaps, changes["gap"], rel_tol=1e-15)


def test_page_is_drawn_without_a_network(folder: Path, chromium: Chromium) -> None:
    assert main([*CALL, "-o", "x.html"]) == 0
    chromium.open(folder / "x.html")
    assert chromium.evaluate("document.querySelectorAll('figure svg').length") == 4
    assert chromium.printed == []
    assert [url for url in chromium.requests if not url.startswith("file:")] == []


def test_chart_is_of_what_changed_most(changes: pl.DataFrame) -> None:
    assert main([*CALL, "-o", "x.svg"]) == 0
    texts = [*ET.parse("x.svg").getroot().itertext()]  # noqa: S314  (our own file)
    surest = changes.sort("p_value", nulls_last=True).row(0, named=True)
    assert surest["metric"] != "auc"
    is_gap = surest["metric"].endswith("_gap")
    name = LABELS[surest["metric"].removesuffix("_gap")]
    axis = f"Change of the gap in {name}, in percentage points"
    if not is_gap:
        axis = f"{name[0].upper()}{name[1:]}"
    assert any(text.startswith(axis) for text in texts), texts


@pytest.mark.slow(reason="runs several commands")
def test_several_scores(capsys: pytest.CaptureFixture[str]) -> None:
    for name, audit in audits(["s", "t"]).items():
        audit.save(f"{name}.json")
    assert main([*CALL, "--fail-if", "auc_gap.growth>0.1"]) == 1
    out, err = capsys.readouterr()
    assert "Group  Score  Measure" in re.sub(" {2,}", "  ", out)
    assert "segments: g = b, s 0." in err


@pytest.mark.parametrize(
    ("metric", "column"),
    [
        ("auc", "gap"),
        ("tpr", "gap_low"),
        ("auc_gap", "growth"),
        ("tpr_gap", "gap"),
        ("auc_gap", "gap_low"),
        ("selection_rate_gap", "gap_high"),
        ("impact_ratio", "gap"),
    ],
)
@pytest.mark.parametrize("sign", [">", "<"])
def test_gates(
    metric: str,
    column: str,
    sign: str,
    changes: pl.DataFrame,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = f"{metric}.{column}"
    is_small = pl.col("reason").str.contains("^fewer than 30 |^share below 2%$")
    is_judged = ~is_small & (pl.col("reason") != "the reference")
    is_judged = is_judged.fill_null(value=True) & pl.col(column).is_not_null()
    known = changes.filter(is_judged, metric=metric)
    small = changes.filter(is_small, metric=metric)["segment"].to_list()
    # 30 rows are enough for a rate of all of them.
    assert small == ([] if metric == "selection_rate_gap" else ["few"])
    for limit in (-0.05, 0.0, 0.05):
        # A gap is compared without its sign, unless it is to be below 0.
        number = pl.col(column)
        if column == "gap" and not (sign == "<" and limit <= 0):
            number = number.abs()
        gate = f"{name}{sign}{limit:g}"
        if column == "gap" and sign == ">" and limit < 0:
            assert main([*CALL, "--fail-if", gate]) == 2
            assert "must be a condition that not every gap meets" in capsys.readouterr().err
            continue
        failing = known.filter(number > limit if sign == ">" else number < limit).rows(named=True)
        assert main([*CALL, "--fail-if", gate, "-o", "x.csv"]) == (1 if failing else 0)
        err = capsys.readouterr().err
        written = f"{name} {sign} {limit:g}"
        names = [
            "all rows" if row["segment"] == "overall" else f"g = {row['segment']}"
            for row in failing
        ]
        numbers = [f"{row[column]:.4g}" for row in failing]
        places = "; ".join(map(" ".join, zip(names, numbers, strict=True)))
        among = f" in {len(failing)} of {known.height} segments" if known.height > 1 else ""
        assert (f"FAILED {written}{among}: {places}\n" in err) == bool(failing)
        assert err.count("FAILED") == bool(failing)
        # Small segments and those of one audit are named; all rows have no gap.
        skipped = re.findall(rf"NOT JUDGED {written}: .* in (g = .*)\n", err)
        assert sorted("; ".join(skipped).split("; ")) == [
            "g = c",
            "g = d",
            *(f"g = {one}" for one in small),
        ]


def test_growth_is_of_the_size_of_a_gap(changes: pl.DataFrame) -> None:
    one = changes.filter(segment="b", metric="tpr_gap").row(0, named=True)
    # The gap became more negative: its size grew.
    assert one["gap"] < 0 < one["growth"]
    assert main([*CALL, "--fail-if", "tpr_gap.growth>0.1"]) == 1
    assert main(["diff", "after.json", "before.json", "--fail-if", "tpr_gap.growth>0.1"]) == 0


def test_gate_on_what_there_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("before", "after"):
        audit = json.loads(Path(f"{name}.json").read_text(encoding="utf-8"))
        audit["table"] = [row for row in audit["table"] if row["metric"] != "tpr"]
        Path(f"{name}.json").write_text(json.dumps(audit), encoding="utf-8")
    unknown = ["--fail-if", "tpr.gap<0"]
    assert main([*CALL, *unknown]) == 3
    assert main([*CALL, *unknown, "--fail-if", "auc_gap.growth>0.1"]) == 1
    err = capsys.readouterr().err
    assert "NOT JUDGED tpr.gap < 0: no such number in any segment\n" in err


def test_the_first_run_has_nothing_to_compare(capsys: pytest.CaptureFixture[str]) -> None:
    gate = ["--fail-if", "auc_gap.growth>0.1"]
    call = ["diff", "none.json", "after.json", "--first-run-ok", *gate]
    assert main([*call, "-o", "x.csv"]) == 0
    said = "polars-wroc: nothing is compared on the first run: there is no 'none.json' yet; "
    assert capsys.readouterr() == ("", f"{said}save 'after.json' as 'none.json' for the next one\n")
    assert not Path("x.csv").exists()
    assert main([*call[:3], *gate]) == 2
    assert "found no such file at 'none.json'" in capsys.readouterr().err
    # All else that is wrong is an error on the first day too.
    assert main(["diff", "none.json", "nor.json", "--first-run-ok"]) == 2
    assert main(["diff", "none.json", "after.json", "--first-run-ok", "--fail-if", "x"]) == 2
    Path("none.json").write_text("", encoding="utf-8")
    assert main(call) == 2
    # From the second run on it does nothing.
    assert main(["diff", "before.json", "after.json", "--first-run-ok", *gate]) == 1


AUDIT = {
    "schema_version": "2.0",
    "settings": {"level": 0.95, "min_rows": 30, "margin": 0.05},
}
NO_TABLE = AUDIT | {"segments": [], "table": [3]}
NO_VALUE = AUDIT | {"segments": [], "table": [{"attribute": "g", "segment": "a"}]}
OF_TEXT = {"attribute": "g", "segment": "a", "model": "s", "metric": "auc", "value": "high"}
NO_NUMBER = AUDIT | {
    "segments": [],
    "table": [
        OF_TEXT
        | dict.fromkeys(("value_low", "value_high", "gap", "gap_low", "gap_high", "verdict"))
    ],
}


@pytest.mark.parametrize("output", sweep([[], ["-o", "-"], ["-o", "x.csv"], ["-o", "x.svg"]]))
@pytest.mark.parametrize(
    ("options", "content", "message"),
    [
        (["none.json"], None, "AFTER must be the JSON of an audit; found no such file at 'none."),
        (
            ["other.json"],
            "{",
            "AFTER must be the JSON of an audit; found no JSON at 'other.json'",
        ),
        (["other.json"], "[]", "AFTER must be an Audit, the path of its JSON, or the JSON"),
        (["other.json"], "{}", "polars-wroc/audit 1.0, made by a development version"),
        (["other.json"], json.dumps(NO_TABLE), "found no settings, segments or table in it"),
        (["other.json"], json.dumps(NO_VALUE), "found no settings, segments or table in it"),
        (["other.json"], json.dumps(NO_NUMBER), "found no settings, segments or table in it"),
        (["other.json"], '{"schema": "x"}', "found x 1.0"),
        (["https://ann:secret@host/a.json"], None, "no such file at 'https://host/a.json'"),
        ([], None, "AFTER must be given"),
        (["after.json", "after.json"], None, "cannot use after.json"),
        (
            ["after.json", "--adjust", "fdr"],
            None,
            'Invalid value "fdr" for --adjust. Choose from: "holm", "bh", "none"',
        ),
        (["after.json", "--fail-if", "auc_gap_growth>1"], None, "did you mean 'auc_gap.growth'?"),
        (
            ["after.json", "--fail-if", "auc.gap"],
            None,
            "one of > >= < <= and a number, for example",
        ),
        (
            ["after.json", "--metric", "f1"],
            None,
            'Invalid value "f1" for --metric. Choose from: "auc", ',
        ),
        (["after.json", "--by", "g"], None, "there is no option --by"),
    ],
)
def test_what_is_refused(
    options: list[str],
    content: str | None,
    message: str,
    output: list[str],
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if content is not None:
        (folder / "other.json").write_text(content, encoding="utf-8")
    before = sorted(folder.iterdir())
    assert main(["diff", "before.json", *options, *output]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert "secret" not in err
    assert err.startswith("polars-wroc: ")
    assert err.count("\n") == 1
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["-o", "x.txt"],
            "--output must end in one of .parquet, .csv, .json, .ndjson, .jsonl, .xlsx, ",
        ),
        (["-o", "before.json"], "--output must not be a file that is read; found 'before.json'"),
        (["-o", "none/x.csv"], "cannot write none/x.csv: there is no folder none"),
        (["--metric", "tpr", "-o", "x.csv"], "--metric applies to a chart: -o FILE with one of"),
        (["--show", "value"], "--show applies to a chart"),
    ],
)
def test_outputs_that_are_refused(
    options: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert main([*CALL, *options]) == 2
    assert message in capsys.readouterr().err
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_chart_of_what_did_not_change_is_an_error(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, seed in (("before", 1), ("after", 2)):
        wroc.audit(rows(seed, 0.0, "ab"), "y", "s", attributes="g").save(f"{name}.json")
    assert main([*CALL, "--metric", "tpr", "-o", "x.svg"]) == 2
    assert (
        "--metric must be one of auc, auc_gap, which the table has; found 'tpr'"
        in capsys.readouterr().err
    )
    assert not (folder / "x.svg").exists()
