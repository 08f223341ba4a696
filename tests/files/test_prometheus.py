"""Numbers for Prometheus: names that it allows, and labels that do not depend on other rows."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

import polars_wroc as wroc
from polars_wroc.cli import main
from polars_wroc.files.prometheus import write_numbers

# https://prometheus.io/docs/instrumenting/exposition_formats/ for what is no comment.
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\\\|\\"|\\n)*"'
LINE = re.compile(rf"[a-zA-Z_:][a-zA-Z0-9_:]*\{{(?:{LABEL}(?:,{LABEL})*)?\}} \S+")


def test_an_audit_has_a_line_for_each_number(tmp_path: Path) -> None:
    loans = wroc.data.loans()
    loans.write_parquet(tmp_path / "loans.parquet")
    output = tmp_path / "x.prom"
    call = ["audit", str(tmp_path / "loans.parquet"), "--label", "approved", "--score", "score"]
    assert main([*call, "--attribute", "race", "-o", str(output)]) == 0
    lines = output.read_text(encoding="utf-8").splitlines()
    assert all(LINE.fullmatch(line) for line in lines)
    aucs = wroc.summary(loans, "approved", "score", by="race")
    numbers = {name: float(number) for name, _, number in (x.rpartition(" ") for x in lines)}
    for race, auc, low in aucs.select("race", "auc", "auc_low").iter_rows():
        place = f'{{attribute="race",segment="{race}"}}'
        assert numbers[f"auc{place}"] == pytest.approx(auc)
        assert numbers[f"auc_low{place}"] == pytest.approx(low)
    # Lines of a name are together.
    names = [line.partition("{")[0] for line in lines]
    assert names == sorted(names)


def test_names_are_escaped_as_prometheus_does() -> None:
    table = pl.DataFrame(
        {"age group": ['a"b\\c\nd', None], "größe": ["x", "y"], "auc": [0.5, None]}
    )
    assert write_numbers(table) == (
        'auc{U__age_20_group="a\\"b\\\\c\\nd",U__gr_F6__DF_e="x"} 0.5\n'
    )


def test_several_scores_are_labels() -> None:
    rows = pl.DataFrame({"y": [0, 1, 0, 1], "s": [0.1, 0.9, 0.2, 0.3], "t": [0.3, 0.1, 0.2, 0.4]})
    found = write_numbers(wroc.summary(rows, "y", ["s", "t"]))
    assert 'auc{model="s"} 1.0\n' in found
    assert 'auc{model="t"} 0.5\n' in found
    assert "auc{} 1.0\n" in write_numbers(wroc.summary(rows, "y", "s"))
