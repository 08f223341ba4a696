"""The command line on surveys in which a stratum has a single sampling unit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from polars_wroc.cli import main

SAMPLE = ["--cluster", "psu", "--strata", "h"]
NOTE = (
    "polars-wroc: stratum 3 has one sampling unit, so numbers based on such rows have no "
    "confidence limits: pass --lonely certainty or adjust\n"
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder to work in, with a sample whose last stratum has one unit."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(8)
    y = random.random(600) < 0.4
    stratum = np.arange(600) % 4
    unit = np.where(stratum == 3, 0, np.arange(600) % 5)
    s = random.random(600)
    columns = {"h": stratum, "psu": unit, "y": y, "s": s, "t": (s + y) / 2}
    table = pl.DataFrame({**columns, "g": random.choice(["a", "b"], 600)})
    table.with_columns(N=pl.when(pl.col("h") == 3).then(1).otherwise(50)).write_parquet("x.parquet")


@pytest.mark.parametrize(
    "call",
    [
        "auc --label y --score s",
        "audit --label y --score s --attribute g",
        "gaps --label y --score s --attribute g -o x.csv",
        "impact --score s --threshold 0.5 --favorable selected --attribute g",
        "compare --label y --score s --score t",
        "release --label y --old s --new t --attribute g",
        "thresholds --label y --score s --threshold 0.5",
        "calibrate --label y --score s",
    ],
)
def test_a_stratum_of_one_unit_is_named_once(call: str, capsys: pytest.CaptureFixture[str]) -> None:
    command, *options = call.split()
    assert main([command, "x.parquet", *options, *SAMPLE]) == 0
    assert capsys.readouterr().err.removeprefix("wrote x.csv\n") == NOTE


@pytest.mark.parametrize("options", [["--lonely", "certainty"], ["--fpc", "N"]])
def test_units_whose_part_is_known_are_not_named(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["auc", "x.parquet", "--label", "y", "--score", "s", *SAMPLE]
    assert main([*call, *options]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert " to " in out


def test_each_row_is_a_unit_without_clusters(capsys: pytest.CaptureFixture[str]) -> None:
    rows = pl.read_parquet("x.parquet")
    rows.with_columns(h=pl.when(pl.int_range(600) < 2).then(7 + pl.int_range(600))).write_parquet(
        "x.parquet"
    )
    assert main(["auc", "x.parquet", "--label", "y", "--score", "s", "--strata", "h"]) == 0
    err = capsys.readouterr().err
    assert err.startswith("polars-wroc: strata 7, 8 each have one sampling unit, so ")
