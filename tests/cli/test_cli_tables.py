"""`compare`, `gaps`, `thresholds`, `calibrate` and kinds of curves: numbers, charts, mistakes."""

from __future__ import annotations

import datetime as dt
import json
import re
from pathlib import Path
from typing import Any, get_args

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from sweeps import sweep

import polars_wroc as wroc
from polars_wroc.audits.tables import AuditReferenceKind
from polars_wroc.cli import main
from polars_wroc.cli.commands.curve import CURVE_KINDS

pytestmark = pytest.mark.usefixtures("folder")
COLUMNS = ["--label", "y", "--score", "s", "--weight", "w"]
GIVEN: dict[str, Any] = {"label": "y", "score": "s", "weight": "w"}


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    """Scores that are too high for one of three groups, and ranked badly in it."""
    random = np.random.default_rng(11)
    size = 1200
    group = random.choice(["a", "b", "c"], size, p=[0.5, 0.4, 0.1])
    truth = random.normal(size=size)
    label = random.random(size) < 1 / (1 + np.exp(-truth + (group == "b")))
    noise = np.where(group == "b", 3.0, 0.3)
    return pl.DataFrame(
        {
            "y": label,
            "s": 1 / (1 + np.exp(-truth - noise * random.normal(size=size))),
            "t": random.random(size),
            "w": np.round(random.lognormal(sigma=0.3, size=size), 3),
            "g": group,
            "job": random.choice([1, 2], size),
            "hired": truth > 0.3,
            "decision": np.where(truth > 0.3, "hired", "sent home"),
            "site": np.arange(size) % 60,
        }
    )


@pytest.fixture
def folder(tmp_path: Path, rows: pl.DataFrame, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with the rows and their counts in it."""
    monkeypatch.chdir(tmp_path)
    rows.write_parquet("rows.parquet")
    wroc.score_counts(rows, **GIVEN, by="g").write_parquet("counts.parquet")
    return tmp_path


BY_STRATA = "--cluster site --strata job --lonely certainty"
TABLES: dict[str, tuple[str, Any]] = {
    "compare": (
        "compare --score t",
        lambda rows: wroc.compare(rows, "y", ["s", "t"], weight="w"),
    ),
    "compare with options": (
        "compare --score t --by g --method delong --adjust bh --cluster site --level 0.9",
        lambda rows: wroc.compare(
            rows, "y", ["s", "t"], weight="w", by="g", method="delong", adjust="bh",
            design="site", level=0.9,
        ),
    ),
    "search": (
        "search --attribute g --threshold 0.6 --favorable selected --min-rows 10",
        lambda rows: wroc.worst_segments(
            rows, **GIVEN, attributes="g", threshold=0.6, favorable="selected",
            min_rows=10,
        ),
    ),
    "search for losses": (
        (
            "search --attribute g --attribute site --metric mean_calibration_error --depth 1"
            " --redundant --cluster site --level 0.9"
        ),
        lambda rows: wroc.worst_segments(
            rows, **GIVEN, attributes=["g", "site"], metric="mean_calibration_error", depth=1,
            redundant=True, design="site", level=0.9,
        ),
    ),
    "gaps": ("gaps --attribute g", lambda rows: wroc.group_gaps(rows, **GIVEN, attributes="g")),
    "gaps to a group": (
        "gaps --attribute g --reference a --threshold 0.6 --min-rows 40 --margin 0.1 --adjust none",
        lambda rows: wroc.group_gaps(
            rows, **GIVEN, attributes="g", reference="a", threshold=0.6, min_rows=40, margin=0.1,
            adjust="none",
        ),
    ),
    "gaps of two attributes": (
        (
            "gaps --attribute g --attribute job --reference g=a --reference job=2"
            " --selected decision=hired"
        ),
        lambda rows: wroc.group_gaps(
            rows,
            **GIVEN,
            attributes=["g", "job"],
            reference={"g": "a", "job": 2},
            selected="hired",
        ),
    ),
    "gaps within": (
        "gaps --attribute g --within job --reference best",
        lambda rows: wroc.group_gaps(rows, **GIVEN, attributes="g", within="job", reference="best"),
    ),
    "thresholds": (
        "thresholds --threshold 0.5 --threshold 0.7 --by g",
        lambda rows: wroc.threshold_metrics(
            rows, **GIVEN, threshold=[0.5, 0.7], by="g", level=0.95
        ),
    ),
    "thresholds for another population": (
        "thresholds --threshold 0.5 --prevalence 0.1 --level 0.9",
        lambda rows: wroc.threshold_metrics(
            rows, **GIVEN, threshold=0.5, prevalence=0.1, level=0.9
        ),
    ),
    "thresholds by a rule": (
        "thresholds --threshold least-cost:fn=5,fp=1 --by g --per-group",
        lambda rows: wroc.threshold_metrics(
            rows,
            **GIVEN,
            threshold=wroc.rules.least_cost(fn=5, fp=1),
            per_group=True,
            by="g",
            level=0.95,
        ),
    ),
    "thresholds in clusters": (
        "thresholds --threshold 0.5 --cluster site",
        lambda rows: wroc.threshold_metrics(
            rows, **GIVEN, threshold=[0.5], level=0.95, design="site"
        ),
    ),
    "thresholds by a rule in a survey": (
        f"thresholds --threshold youden --per-group --by g {BY_STRATA}",
        lambda rows: wroc.threshold_metrics(
            rows,
            **GIVEN,
            threshold=wroc.rules.youden(),
            per_group=True,
            by="g",
            level=0.95,
            design=wroc.Survey("site", strata="job", lonely="certainty"),
        ),
    ),
    "one threshold": (
        "thresholds --threshold max-fpr=0.1 --by g",
        lambda rows: wroc.threshold_metrics(
            rows, **GIVEN, threshold=wroc.rules.max_fpr(0.1), by="g", level=0.95
        ),
    ),
    "calibrate": (
        "calibrate --by g --bins 5 --strategy quantile --level 0.9",
        lambda rows: wroc.calibration_curve(
            rows, **GIVEN, by="g", bins=5, strategy="quantile", level=0.9
        ),
    ),
    "calibrate in clusters": (
        "calibrate --by g --cluster site",
        lambda rows: wroc.calibration_curve(rows, **GIVEN, by="g", design="site"),
    ),
    "decision in strata": (
        "curve --kind decision --cluster site --strata g --lonely certainty",
        lambda rows: wroc.decision_curve(
            rows, **GIVEN, design=wroc.Survey("site", strata="g", lonely="certainty")
        ),
    ),
    "a band in clusters": (
        "curve --band pointwise --max-points 20 --cluster site",
        lambda rows: wroc.roc_curve(
            rows, **GIVEN, band="pointwise", max_points=20, design="site"
        ),
    ),
    "pr": ("curve --kind pr --by g", lambda rows: wroc.pr_curve(rows, **GIVEN, by="g")),
    "cost": (
        "curve --kind cost --cost-fn 2 --cost-fp 1 --prevalence 0.2",
        lambda rows: wroc.cost_curve(rows, **GIVEN, cost_fn=2, cost_fp=1, prevalence=0.2),
    ),
    "decision": (
        "curve --kind decision --level 0.8",
        lambda rows: wroc.decision_curve(rows, **GIVEN, level=0.8),
    ),
}  # fmt: skip
FROM_COUNTS = [
    name
    for name in TABLES
    if not any(word in TABLES[name][0] for word in ("compare", "--selected", "job", "--cluster"))
]


@pytest.mark.parametrize("name", sweep(TABLES, fast=4))
def test_tables_are_those_of_the_functions(name: str, rows: pl.DataFrame) -> None:
    (command, *words), table = TABLES[name][0].split(), TABLES[name][1]
    assert main([command, "rows.parquet", *COLUMNS, *words, "-o", "x.parquet"]) == 0
    assert_frame_equal(pl.read_parquet("x.parquet"), table(rows), rel_tol=1e-9, abs_tol=1e-12)


@pytest.mark.parametrize("name", sweep(FROM_COUNTS, fast=2))
def test_tables_of_counts(name: str, rows: pl.DataFrame) -> None:
    (command, *words), table = TABLES[name][0].split(), TABLES[name][1]
    assert main([command, "counts.parquet", *words, "-o", "x.parquet"]) == 0
    found, expected = pl.read_parquet("x.parquet"), table(rows)
    if command in ("gaps", "search"):
        # Counts do not have the names of the columns that they were made from.
        found, expected = found.drop("model"), expected.drop("model")
    assert_frame_equal(found, expected, rel_tol=1e-6, abs_tol=1e-9)


@pytest.mark.parametrize("name", sweep([*TABLES], fast=1))
def test_json_on_standard_output(
    name: str, rows: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    (command, *words), table = TABLES[name][0].split(), TABLES[name][1]
    if command == "curve":
        return
    assert main([command, "rows.parquet", *COLUMNS, *words, "-o", "-"]) == 0
    printed = json.loads(capsys.readouterr().out)
    expected = table(rows)
    assert len(printed) == expected.height
    assert list(printed[0]) == expected.columns


# Columns that are shown at any width.
PRINTED = {
    "compare --score t": ["score", "other score", "difference", "result"],
    "gaps --attribute g": ["g", "difference", "result"],
    "gaps --attribute g --threshold 0.5 --metric fpr": ["g", "difference, points", "result"],
    "thresholds --by g --threshold min-tpr=0.8": ["g", "threshold"],
    "calibrate --by g": ["g", "n"],
    "auc --by g": ["g", "n", "AUC"],
}


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize("call", sweep(PRINTED, fast=2, tuples=True))
def test_what_is_printed_fits(
    call: str, width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    command, *words = call.split()
    for more in ([], ["--columns", "all"]):
        assert main([command, "rows.parquet", *COLUMNS, *words, *more]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= width
        if not more:
            headings = (re.split(" {2,}", line.strip()) for line in lines)
            assert any({*PRINTED[call]} <= {*found} for found in headings)


@pytest.mark.parametrize("width", [50, 60, 80])
def test_metrics_are_named_whole_in_a_narrow_terminal(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(["gaps", "rows.parquet", *COLUMNS, "--attribute", "g", "--threshold", "0.5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    heading = next(line for line in lines if line.startswith("g "))
    assert "difference" in heading
    start, below = heading.index("metric"), lines[lines.index(heading) + 1 :]
    words = " ".join(re.split(" {2,}", line[start:])[0] for line in below)
    for name in ("negative predictive value", "false positive rate", "selection rate"):
        assert words.count(name) == 3


def told(call: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the sentences above a table."""
    command, *words = call.split()
    assert main([command, "rows.parquet", *COLUMNS, *words]) == 0
    return " ".join(capsys.readouterr().out.split("\n\n")[0].split())


def test_verdicts_come_first(rows: pl.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    pair = wroc.compare(rows, "y", ["s", "t"], weight="w").row(0, named=True)
    said = f"1 of 1 pair of AUCs differs: s is above t by {pair['gap']:.3f}."
    assert told("compare --score t", capsys) == said
    gaps = wroc.group_gaps(rows, **GIVEN, attributes="g", threshold=0.5)
    for metric, name in (("auc", "AUC"), ("npv", "negative predictive value")):
        of_metric = gaps.filter(metric=metric)
        different = of_metric.filter(verdict="different")
        said = told(f"gaps --attribute g --threshold 0.5 --metric {metric}", capsys)
        for group, gap in different.select("segment", "gap").rows():
            points = f"{100 * gap:+.1f}".replace("-", "\N{MINUS SIGN}")
            assert f"{group} ({points})" in said
        assert (f"Different from the rest in {name}, in points" in said) == bool(different.height)
        assert said.count("(") == different.height
        unclear = of_metric.filter(verdict="inconclusive").height
        assert (f"nconclusive: {unclear} group" in said) == bool(unclear)
    slopes = wroc.calibration_summary(rows, **GIVEN, by="g")
    said = told("calibrate --by g", capsys)
    steep = slopes.filter(pl.col("calibration_slope_high") < 1)["g"].to_list()
    high = slopes.filter(pl.col("oe_ratio_high") < 1)["g"].to_list()
    assert f"too low (slope below 1): {'; '.join(steep)}." in said
    assert f"Scores are too high on average: {'; '.join(high)}." in said
    test = wroc.calibration_test(rows, **GIVEN, by="g").filter(pl.col("p_adjusted") <= 0.05)
    off = [
        f"{g} from {low:.2f} to {high:.2f} ({100 * abs(mean):.0f} points {side})"
        for g, low, high, mean, side in test.select(
            "g", "from_score", "to_score", "mean_calibration_error", "direction"
        ).iter_rows()
    ]
    assert f"off most and by more than chance: {', '.join(off)}." in said
    assert off


def test_calibrate_says_where_weighted_events_are_few(
    rows: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    # One positive is left in group b.
    is_kept = (pl.col("g") != "b") | ~pl.col("y") | (pl.col("y").cum_sum().over("g") == 1)
    rows.filter(is_kept).write_parquet("rows.parquet")
    said = told("calibrate --by g", capsys)
    assert "The limits of O:E may be too narrow for b: few effective events." in said


REFERENCES = {
    "rest": "the rest",
    "overall": "all rows",
    "best": "the best group",
    "a": "a",
    "g=a": "g=a",
}


def test_every_kind_of_reference_is_in_words() -> None:
    assert {*get_args(AuditReferenceKind)} <= REFERENCES.keys()


@pytest.mark.parametrize("reference", sweep(REFERENCES, fast=2))
def test_references_in_words(reference: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = told(f"gaps --attribute g --reference {reference}", capsys)
    told_of = re.match(r"(?:No group is shown to differ|Different) from (.+?) in AUC[.,]", said)
    assert told_of
    assert told_of[1] == REFERENCES[reference]


def test_where_no_threshold_can_be_chosen(
    rows: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    rows.with_columns(y=pl.col("y") & (pl.col("g") != "c")).write_parquet("rows.parquet")
    said = told("thresholds --by g --threshold youden --per-group", capsys)
    assert said == "No threshold can be chosen in c: a class that the rule needs is missing."


CHARTS = [
    "auc --by g",
    "gaps --attribute g",
    "gaps --attribute g --threshold 0.5 --metric tpr",
    "thresholds --by g --threshold 0.5",
    "thresholds --threshold youden --by g",
    "curve --kind roc --by g",
    "curve --kind pr --by g",
    "curve --kind cost --cost-fn 3 --cost-fp 1",
    "curve --kind gain --by g",
    "calibrate --by g",
    "compare --score t",
]


@pytest.mark.parametrize("suffix", sweep(["svg", "png", "html"]))
@pytest.mark.parametrize("call", sweep(CHARTS, fast=2, tuples=True))
def test_charts(call: str, suffix: str) -> None:
    command, *words = call.split()
    assert main([command, "rows.parquet", *COLUMNS, *words, "-o", f"x.{suffix}"]) == 0
    content = Path(f"x.{suffix}").read_bytes()
    start = {"svg": b"<svg", "png": b"\x89PNG", "html": b"<!"}[suffix]
    assert content.lstrip().startswith(start)


def test_a_chart_is_drawn_by_the_public_function(monkeypatch: pytest.MonkeyPatch) -> None:
    call = ["compare", "rows.parquet", *COLUMNS, "--score", "t", "-o", "x.svg"]
    seen: list[pl.DataFrame] = []

    def draw(table: pl.DataFrame) -> object:
        seen.append(table)
        summary = wroc.summary(pl.read_parquet("rows.parquet"), "y", "s")
        return gap_chart(summary, show="value")

    gap_chart = wroc.gap_chart
    monkeypatch.setattr(wroc, "gap_chart", draw)
    assert main(call) == 0
    assert Path("x.svg").exists()
    assert seen[0].columns[0] == "model"


@pytest.mark.parametrize("kind", sweep(CURVE_KINDS, fast=3))
def test_kinds_of_curves_are_tables_and_charts(kind: str) -> None:
    costs = ["--cost-fn", "1", "--cost-fp", "1"] if kind == "cost" else []
    call = ["curve", "rows.parquet", *COLUMNS, "--kind", kind, *costs]
    for name in ("x.csv", "x.svg")[CURVE_KINDS[kind].only_chart :]:
        assert main([*call, "-o", name]) == 0
        assert Path(name).stat().st_size > 0


@pytest.mark.parametrize("output", sweep([[], ["-o", "-"], ["-o", "x.csv"]]))
@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("compare", "--score must hold two or more columns to compare; found s"),
        ("compare --score no", "--score must name a column of rows.parquet; found no column 'no'"),
        ("gaps", "--attribute must be given"),
        ("gaps --attribute g --reference bset", "no segment 'bset'; did you mean 'best'?"),
        ("gaps --attribute g --reference x", "; found no segment 'x'"),
        (
            "gaps --attribute g --reference job=1",
            "--reference must name attributes out of g; found 'job'",
        ),
        ("gaps --attribute job --reference x", "; found no segment 'x'"),
        (
            "gaps --attribute g --selected decision=x",
            "that column 'decision' holds; no row has 'x'",
        ),
        (
            "gaps --attribute g --selected hired --threshold 1",
            "--threshold must be None with --selected, which has the decisions; found 1",
        ),
        ("gaps --attribute g --margin 2", "--margin must lie strictly between 0 and 1; found 2.0"),
        (
            "gaps --attribute g --within g",
            "--within must not name a column of --attribute; found 'g' in both",
        ),
        ("thresholds", "--threshold must be given"),
        ("thresholds --threshold nan", "--threshold must be a number; found nan"),
        ("thresholds --threshold 1 --threshold youden", "found a rule and other thresholds"),
        ("thresholds --threshold 1 --per-group", "--per-group must come with a rule in --thresh"),
        ("thresholds --threshold youden --prevalence 0.1", "--prevalence excludes a rule in --th"),
        (
            "thresholds --threshold 1 --prevalence 0.1 --cluster site",
            "--prevalence must not be given with a design, nor by a rule; found 0.1",
        ),
        ("thresholds --threshold max-fpr=2", "fpr must lie between 0 and 1; found 2"),
        ("calibrate --bins -1", "--bins must be 1 or more; found -1"),
        ("calibrate --score w", "--score must be a probability, from 0 to 1; found "),
        ("calibrate --level 0", "--level must lie between 0.001 and 0.9999; found 0.0"),
        (
            "calibrate --strategy deciles",
            'Invalid value "deciles" for --strategy. Choose from: "uniform", ',
        ),
        ("auc --columns n,", "--columns: must be all, or names such as n,auc; found 'n,'"),
        ("auc --rows 0", "must be all, or a whole number above 0; found '0'"),
        ("auc --by g --by g", "--by must not name a column twice; found 'g' twice"),
    ],
)
def test_what_is_refused(
    call: str,
    message: str,
    output: list[str],
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command, *words = call.split()
    before = sorted(folder.iterdir())
    assert main([command, "rows.parquet", *COLUMNS, *words, *output]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert "`" not in err
    assert err.startswith("polars-wroc: ")
    assert err.count("\n") == 1
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("gaps --attribute g --metric tpr", "--metric tpr needs --threshold or --selected"),
        (
            "auc --columns n,nope",
            "--columns must be all, or name columns of the table (auc, auc_low, ",
        ),
        ("auc --columns n -o x.csv", "--columns applies to what is printed; x.csv has all columns"),
        ("auc --rows 3 -o -", "--rows applies to what is printed; - has all rows"),
        (
            "gaps --attribute g --metric auc -o x.csv",
            "--metric applies to what is printed and to charts",
        ),
        ("curve --kind det -o x.csv", "--kind det is only drawn: -o FILE with .html"),
        ("curve --kind pr --band pointwise -o x.csv", "--band applies to --kind roc; found pr"),
        ("curve --kind gain --approximate 64 -o x.svg", "--approximate applies to --kind roc; fou"),
        ("curve --cost-fn 1 -o x.csv", "--cost-fn applies to --kind cost; found roc"),
        ("curve --kind cost -o x.svg", "--cost-fn or --cost-fp must be given; found neither"),
        ("curve --kind pr --cluster site -o x.svg", "options of a survey apply to a ROC chart"),
        (
            "curve --band simultaneous --cluster site -o x.csv",
            "--cluster must be None for band 'simultaneous'",
        ),
        ("calibrate --strategy quantile --cluster site", "--cluster must be None for strategy"),
        ("calibrate --score w -o x.csv", "--score must be a probability, from 0 to 1; found "),
    ],
)
def test_options_that_do_not_apply(
    call: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, *words = call.split()
    before = sorted(folder.iterdir())
    columns = COLUMNS[:2] + COLUMNS[4:] if "--score" in words else COLUMNS
    assert main([command, "rows.parquet", *columns, *words]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    "command", ["compare --score t", "gaps --attribute g", "thresholds --threshold max-fpr=1"]
)
def test_positive_labels_that_no_row_has(
    command: str, rows: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    rows.with_columns(y=pl.lit("no")).write_parquet("rows.parquet")
    name, *words = command.split()
    assert main([name, "rows.parquet", *COLUMNS, *words, "--pos-label", "yes"]) == 2
    assert "--pos-label must be the label of a row" in capsys.readouterr().err
    # Without negatives nothing is known, but the label is there.
    assert main([name, "rows.parquet", *COLUMNS, *words, "--pos-label", "no"]) == 0


@pytest.mark.parametrize("by", [[], ["--by", "g"]])
def test_gates_on_paired_comparisons(
    by: list[str], rows: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["compare", "rows.parquet", *COLUMNS, "--score", "t", *by]
    table = wroc.compare(rows, "y", ["s", "t"], weight="w", by="g" if by else None)
    for name, limit in (("gap_low", 0.0), ("gap", 0.15), ("p_value", 0.5)):
        met = table.filter(pl.col(name) > limit).rows(named=True)
        gate = f"auc.{name}>{limit:g}"
        assert main([*call, "--fail-if", gate]) == (1 if met else 0)
        err = capsys.readouterr().err
        places = [f"g = {row['g']}" if by else "all rows" for row in met]
        found = "; ".join(
            f"{place}, s and t {row[name]:.4g}" for place, row in zip(places, met, strict=True)
        )
        among = f" in {len(met)} of {table.height} pairs" if by else ""
        expected = f"polars-wroc: FAILED auc.{name} > {limit:g}{among}: {found}\n"
        assert err == (expected if met else "")
    assert main([*call, "--fail-if", "auc.gap_hgh<0"]) == 2
    assert "did you mean 'gap_high'?" in capsys.readouterr().err


def test_scores_that_rank_alike_pass_a_gate(folder: Path, rows: pl.DataFrame) -> None:
    rows.with_columns(t=pl.col("s") / 2).write_parquet(folder / "rows.parquet")
    call = ["compare", "rows.parquet", *COLUMNS, "--score", "t", "--fail-if"]
    assert main([*call, "auc.gap_high<0"]) == 0
    assert main([*call, "auc.gap_high<0.01"]) == 1


def test_smooth_calibration_curves(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = ["calibrate", "rows.parquet", "--label", "y", "--score", "s", "--smooth"]
    assert main([*call, "-o", "x.csv"]) == 0
    rates = pl.read_csv(folder / "x.csv")["smooth_rate"]
    assert rates.null_count() == 0
    assert main(call) == 0
    printed = capsys.readouterr().out
    assert re.search("smooth(\n.*)? rate", printed)
    assert f"{100 * rates[0]:.1f}%" in printed
    assert main(["calibrate", "counts.parquet", "--smooth"]) == 2
    assert "--smooth needs single rows, which counts are not" in capsys.readouterr().err


def test_an_unknown_slope_is_said_and_rows_that_are_in_none_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    random = np.random.default_rng(1)
    s = random.random(400).round(3).clip(0.001, 0.999)
    frame = pl.DataFrame({"s": s, "y": (random.random(400) < s).astype(int)})
    more = pl.DataFrame({"s": [1.0, 1.0], "y": [1, 0]})
    pl.concat([frame, more]).write_csv(tmp_path / "some.csv")
    mirrored = more.with_columns(s=pl.lit(0.0))
    pl.concat([more, mirrored]).write_csv(tmp_path / "all.csv")
    for name in ("some", "all"):
        main(["calibrate", str(tmp_path / f"{name}.csv"), "--label", "y", "--score", "s"])
    printed = " ".join(capsys.readouterr().out.split())
    assert "Slopes are without 2 rows with a score of 0 or 1. 1 row came out against" in printed
    alone = "O:E (observed to expected positives) is not shown to differ from 1."
    assert f"{alone} The slope is unknown: it needs scores between" in printed


def test_slopes_leave_out_or_clip_scores_of_0_and_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    random = np.random.default_rng(0)
    score = random.random(500)
    positive = random.random(500) < score
    score[0] = 1.0
    path = tmp_path / "rows.parquet"
    pl.DataFrame({"y": positive, "s": score}).write_parquet(path)
    command = ["calibrate", str(path), "--label", "y", "--score", "s"]
    for options, said in (
        ([], "Slopes are without 1 row"),
        (["--clip", "0.01"], "as 0.01 or 0.99"),
    ):
        assert main([*command, *options]) == 0
        assert said in capsys.readouterr().out.replace("\n", " ")


def test_search_without_a_finding_is_one_sentence(
    rows: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    """A head of a table without rows says nothing."""
    del rows
    call = ["search", "rows.parquet", *COLUMNS, "--metric", "brier_score", "--attribute"]
    assert main([*call, "job"]) == 0
    assert capsys.readouterr().out == "Exploration: of 2 segments none is significantly worse.\n"
    assert main([*call, "w"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("Exploration: no segment was examined, since none has enough ")
    assert len(printed.out.splitlines()) == 1


@pytest.mark.parametrize(
    ("command", "what"),
    [
        ("gaps --attribute g", "Rows without a label count in selection rates alone"),
        ("compare --score t", "Rows that lack one are left out."),
        ("thresholds --threshold 0.5", "Rows that lack one are left out."),
        ("calibrate", "Rows that lack one are left out."),
        ("curve --kind pr", "Rows that lack one are left out."),
    ],
)
def test_commands_say_how_many_rows_lack_a_value(
    rows: pl.DataFrame, capsys: pytest.CaptureFixture[str], command: str, what: str
) -> None:
    lacking = rows.with_columns(
        y=pl.when(pl.int_range(pl.len()) >= 7).then("y"),
        s=pl.when(pl.int_range(pl.len()) != 9).then("s"),
    )
    lacking.write_parquet("rows.parquet")
    name, *options = command.split()
    given = [name, "rows.parquet", "--label", "y", "--score", "s", *options]
    assert main(given) == 0
    said = capsys.readouterr().err
    assert "Values are missing: y in 7 rows, s in 1 row" in said
    assert what in said
    rows.write_parquet("rows.parquet")
    assert main(given) == 0
    assert capsys.readouterr().err == ""


def test_names_command_no_terminal(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = {"a": "\x1b[2Ja", "b": "b\nnew line", "c": "\u202egnp.c"}
    rows = pl.read_parquet("rows.parquet").with_columns(pl.col("g").replace_strict(names))
    rows.write_parquet(folder / "rows.parquet")
    for command in ("gaps --attribute g --threshold 0.5", "auc --by g", "calibrate --by g"):
        name, *words = command.split()
        assert main([name, "rows.parquet", *COLUMNS, *words]) == 0
        printed = capsys.readouterr().out
        assert "\x1b" not in printed
        assert "\u202e" not in printed
        assert "b new line" in printed
        assert r"\x1b[2Ja" in printed
        assert r"\u202egnp.c" in printed


def test_months_of_a_trend_are_named_as_months(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = wroc.data.loans().with_row_index()
    day = pl.date(2026, 1, 1) + pl.duration(days=pl.col("index") % 59)
    rows.with_columns(day=day).write_parquet("rows.parquet")
    call = ["trend", "rows.parquet", "--label", "approved", "--score", "score", "--over", "day"]
    call += ["--every", "1mo", "--fail-if", "period = '2026-02' AND metric = 'auc' AND n > 0"]
    assert main([*call, "--metric", "auc"]) == 1
    out, err = capsys.readouterr()
    assert re.findall(r"2026-\S+", out) == ["2026-01", "2026-02"]
    assert "all rows, 2026-02 " in err
    assert main([*call, "-o", "x.parquet"]) == 1
    assert pl.read_parquet("x.parquet")["period"].unique().sort().to_list() == [
        dt.date(2026, 1, 1),
        dt.date(2026, 2, 1),
    ]
