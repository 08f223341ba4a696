"""Files for collectors: numbers for Prometheus, and lines of JSON for logs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_wroc as wroc
from polars_wroc.cli import main
from polars_wroc.files.prometheus import write_prometheus

# https://prometheus.io/docs/instrumenting/exposition_formats/ for what is no comment.
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\\\|\\"|\\n)*"'
LINE = re.compile(rf"([a-zA-Z_:][a-zA-Z0-9_:]*)\{{(?:{LABEL}(?:,{LABEL})*)?\}} \S+")
TYPE = re.compile(r"# TYPE (\S+) gauge")
SCORED = "rows.parquet --label approved --score score"
DECIDED = "--threshold 0.85 --favorable selected"
CALLS = {
    "audit": f"{SCORED} --attribute race --attribute sex {DECIDED}",
    "auc": f"{SCORED} --by month",
    "calibrate": f"{SCORED} --by sex",
    "compare": f"{SCORED} --score second --score third",
    "diff": "before.json after.json",
    "fairness": f"{SCORED} --attribute race --threshold 0.85",
    "gaps": f"{SCORED} --attribute race --attribute sex --intersections",
    "impact": "rows.parquet --selected approved --favorable selected --attribute race",
    "release": "rows.parquet --label approved --old score --new second --attribute sex",
    "search": f"{SCORED} --attribute race --attribute sex {DECIDED}",
    "size": "before.json --half-width 0.02",
    "thresholds": f"{SCORED} --by sex --threshold 0.5 --threshold 0.85",
    "trend": f"{SCORED} --over month",
    "validate": f"{SCORED} --threshold 0.1 --threshold 0.2",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with rows and two audits in it."""
    monkeypatch.chdir(tmp_path)
    month = pl.int_range(pl.len()) % 4
    loans = wroc.data.loans().with_columns(
        month=month, second=pl.col("score") - 0.05 * month, third=pl.col("score") ** 2
    )
    loans.write_parquet("rows.parquet")
    for name, rows in (("before", loans[:1000]), ("after", loans[1000:])):
        audit = wroc.audit(
            rows, "approved", "score", attributes="sex", threshold=0.85, favorable="selected"
        )
        audit.save(f"{name}.json")
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", CALLS)
def test_numbers_have_lines_that_prometheus_accepts(command: str) -> None:
    assert main([command, *CALLS[command].split(), "-o", "x.prom"]) == 0
    lines = Path("x.prom").read_text(encoding="utf-8").splitlines()
    types = [found[1] for line in lines if (found := TYPE.fullmatch(line))]
    numbers = [found for line in lines if (found := LINE.fullmatch(line))]
    assert len(types) + len(numbers) == len(lines)
    assert all(name.startswith("wroc_") for name in types)
    # Each line is another number, and those of a name are together, after its type.
    assert len({line.rpartition(" ")[0] for line in lines}) == len(lines)
    assert types == sorted({found[1] for found in numbers})
    order = [line.split()[2] if line.startswith("#") else line.partition("{")[0] for line in lines]
    assert order == sorted(order)


@pytest.mark.usefixtures("folder")
def test_an_audit_has_the_aucs_of_the_summary() -> None:
    assert main(["audit", *CALLS["audit"].split(), "-o", "x.prom"]) == 0
    lines = Path("x.prom").read_text(encoding="utf-8").splitlines()
    numbers = {name: number for name, _, number in (line.rpartition(" ") for line in lines)}
    aucs = wroc.summary(wroc.data.loans(), "approved", "score", by="race")
    for race, auc, low in aucs.select("race", "auc", "auc_low").iter_rows():
        place = f'{{attribute="race",segment="{race}"}}'
        assert float(numbers[f"wroc_auc{place}"]) == pytest.approx(auc)
        assert float(numbers[f"wroc_auc_low{place}"]) == pytest.approx(low)


@pytest.mark.usefixtures("folder")
def test_points_of_curves_are_no_numbers_for_prometheus(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["curve", *SCORED.split(), "-o", "x.prom"]) == 2
    assert ".prom" not in capsys.readouterr().err.partition(";")[0]


def test_names_are_escaped_as_prometheus_does() -> None:
    table = pl.DataFrame(
        {
            "age group": ['a"b\\c\nd', None],
            "größe": ["x", "y"],
            "__x": ["", "z"],
            "auc": [0.5, None],
        }
    )
    assert write_prometheus(table, ["age group", "größe", "__x"]) == (
        "# TYPE wroc_auc gauge\n"
        'wroc_auc{U__age_20_group="a\\"b\\\\c\\nd",U__gr_F6__DF_e="x",U______x=""} 0.5\n'
    )


def test_several_scores_are_labels() -> None:
    rows = pl.DataFrame({"y": [0, 1, 0, 1], "s": [0.1, 0.9, 0.2, 0.3], "t": [0.3, 0.1, 0.2, 0.4]})
    found = write_prometheus(wroc.summary(rows, "y", ["s", "t"]), ["model"])
    assert 'wroc_auc{model="s"} 1.0\n' in found
    assert 'wroc_auc{model="t"} 0.5\n' in found
    assert "wroc_auc{} 1.0\n" in write_prometheus(wroc.summary(rows, "y", "s"), [])


def read_lines(text: str) -> list[dict[str, Any]]:
    """Read an object of JSON from each line, without numbers that JSON does not have."""
    lines = text.removesuffix("\n").split("\n")
    return [json.loads(line, parse_constant=pytest.fail) for line in lines]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", [*CALLS, "curve", "counts"])
def test_lines_of_json_are_the_rows_of_the_table(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    call = [command, *CALLS.get(command, SCORED).split()]
    assert main([*call, "-o", "x.ndjson", "-o", "x.parquet"]) == 0
    table = pl.read_parquet("x.parquet")
    rows = read_lines(Path("x.ndjson").read_text(encoding="utf-8"))
    # Nothing is nested.
    assert all(
        isinstance(value, str | float | int | None) for row in rows for value in row.values()
    )
    ahead = ["time", "title"] if command == "audit" else []
    assert [[*row] for row in rows] == [[*ahead, *table.columns]] * table.height
    texts = table.select(pl.col(pl.String)).columns
    assert all([row[name] for row in rows] == table[name].to_list() for name in texts)
    capsys.readouterr()
    assert main([*call, "-o", "-", "--format", "jsonl"]) == 0
    printed = read_lines(capsys.readouterr().out)
    assert [{**row, "time": 0} for row in printed] == [{**row, "time": 0} for row in rows]


@pytest.mark.usefixtures("folder")
def test_lines_of_an_audit_have_its_time_and_title(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    call = ["audit", *CALLS["audit"].split(), "--title", "Loans", "-o", "x.ndjson"]
    assert main(call) == 0
    rows = read_lines(Path("x.ndjson").read_text(encoding="utf-8"))
    assert {(row["time"], row["title"]) for row in rows} == {("2023-11-14T22:13:20+00:00", "Loans")}
