"""Tables as they are printed, in files that a diff shows."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable
from contextlib import chdir, redirect_stdout
from functools import cache
from io import StringIO
from tempfile import TemporaryDirectory
from unittest import mock

import polars as pl
from site_navigation import ROOT

import polars_wroc as wroc
from polars_wroc.cli import main

_CHANGES = "changes.parquet"
FOLDER = ROOT / "tests" / "printed"
_ROWS = 8
LOANS, PATIENTS = wroc.data.loans(), wroc.data.diabetes()
_MONTHS = [dt.date(2026, 1 + number % 4, 1) for number in range(LOANS.height)]
# Another score, and the month of a decision.
_CHANGED = LOANS.with_columns(
    pl.Series("month", _MONTHS),
    new=pl.col("score") - 0.1 * (pl.col("application") % 3 == 0),
)


def audited() -> wroc.Audit:
    """Audit the loans."""
    return wroc.audit(
        LOANS, "approved", "score", attributes=["race", "sex"], threshold=0.85, favorable="selected"
    )


def _gaps() -> pl.DataFrame:
    return wroc.group_gaps(LOANS, "approved", "score", attributes=["race", "sex"], threshold=0.85)


# A table of each public function that makes one.
TABLES: dict[str, Callable[[], pl.DataFrame]] = {
    "summary": lambda: wroc.summary(
        PATIENTS, "progressed", ["score", "score_b"], weight="weight", by="sex"
    ),
    "summary of all rows": lambda: wroc.summary(PATIENTS, "progressed", "score", diagnostics=True),
    "compare": lambda: wroc.compare(PATIENTS, "progressed", ["score", "score_b"], weight="weight"),
    "group_gaps": _gaps,
    "group_gaps in one metric": lambda: _gaps().filter(metric="selection_rate"),
    "fairness": lambda: wroc.fairness(
        LOANS, "approved", "score", attributes="race", threshold=0.85
    ),
    "impact_ratios": lambda: wroc.impact_ratios(
        LOANS, "score", attributes=["race", "sex"], threshold=0.85, favorable="selected"
    ),
    "release_check": lambda: wroc.release_check(
        _CHANGED, "approved", "score", "new", attributes="race", threshold=0.85
    ),
    "trend": lambda: wroc.trend(_CHANGED, "approved", "score", over="month", metrics=["auc"]),
    "threshold_metrics": lambda: wroc.threshold_metrics(
        LOANS, "approved", "score", threshold=[0.5, 0.85], by="race"
    ),
    "calibration_summary": lambda: wroc.calibration_summary(LOANS, "approved", "score", by="race"),
    "calibration_curve": lambda: wroc.calibration_curve(LOANS, "approved", "score"),
    "calibration_test": lambda: wroc.calibration_test(LOANS, "approved", "score", by="race"),
    "calibration_test at equal scores": lambda: wroc.calibration_test(
        LOANS, "approved", "score", attributes="race", reference="rest"
    ),
    "validate": lambda: wroc.validate(LOANS, "approved", "score", smooth=False),
    "cross_auc": lambda: wroc.cross_auc(LOANS, "approved", "score", by="race"),
    "cross_auc against the rest": lambda: wroc.cross_auc(
        LOANS, "approved", "score", by="race", against="rest"
    ),
    "worst_segments": lambda: wroc.worst_segments(
        LOANS, "approved", "score", attributes=["race", "sex"], threshold=0.85, favorable="selected"
    ),
    "rows_needed": lambda: wroc.rows_needed(
        metric="auc", value=0.8, prevalence=0.3, half_width=0.03
    ),
    "rows_needed in groups": lambda: wroc.rows_needed(_gaps(), gap=0.05),
    "abroca_test": lambda: wroc.abroca_test(LOANS, "approved", "score", by="race", permutations=20),
    "equalized_thresholds": lambda: wroc.equalized_thresholds(
        LOANS, "approved", "score", by="race"
    ),
    "expected_metrics": lambda: wroc.expected_metrics(LOANS, "score", threshold=0.85, by="race"),
    "bootstrap": lambda: wroc.bootstrap(
        LOANS, "approved", "score", metrics=["roc_auc", "ks"], resamples=20
    ),
    "roc_curve": lambda: wroc.roc_curve(LOANS, "approved", "score", by="race", band="pointwise"),
    "roc_point": lambda: wroc.roc_point(LOANS, "approved", "score", fpr=[0.1, 0.2]),
    "pr_curve": lambda: wroc.pr_curve(LOANS, "approved", "score"),
    "cost_curve": lambda: wroc.cost_curve(LOANS, "approved", "score"),
    "decision_curve": lambda: wroc.decision_curve(LOANS, "approved", "score"),
    "dominated_models": lambda: wroc.dominated_models(PATIENTS, "progressed", ["score", "score_b"]),
    "score_distribution": lambda: wroc.score_distribution(LOANS, "score", label="approved"),
    "score_counts": lambda: wroc.score_counts(LOANS, "approved", "score", by="race"),
    "audit.table": lambda: audited().table,
    "audit.segments": lambda: audited().segments,
    "another table": LOANS.head,
}


@cache
def table(name: str) -> pl.DataFrame:
    """Make a table once."""
    return TABLES[name]()


def shown_tables(width: int) -> str:
    """Show all tables in a terminal of a width."""
    with mock.patch.dict(os.environ, COLUMNS=str(width)):
        texts = [f"== {name}\n{wroc.show(table(name), rows=_ROWS)}\n" for name in TABLES]
    return "\n".join(texts)


_LOANS = "loans.parquet --label approved --score score"
COMMANDS = (
    f"auc {_LOANS} --by race",
    "compare patients.parquet --label progressed --score score --score score_b --by sex",
    f"gaps {_LOANS} --attribute race --attribute sex --threshold 0.85 --rows 8",
    f"gaps {_LOANS} --attribute race --attribute sex --threshold 0.85 --metric selection_rate",
    f"gaps {_LOANS} --attribute sex --columns value,verdict",
    "impact loans.parquet --score score --threshold 0.85 --favorable selected --attribute race",
    f"search {_LOANS} --attribute race --attribute sex --threshold 0.85 --favorable selected",
    f"thresholds {_LOANS} --threshold 0.85 --by sex",
    f"calibrate {_LOANS} --by race",
    f"calibrate {_LOANS} --bins 4",
    f"curve {_LOANS} --kind pr --rows 3",
    "size --metric auc --value 0.8 --prevalence 0.3 --half-width 0.03",
    f"release {_CHANGES} --label approved --old score --new new --threshold 0.85 --attribute sex",
    f"impact {_CHANGES} --selected approved --favorable selected --attribute sex -o - --format md",
)


def printed_commands(width: int) -> str:
    """Run commands in a terminal of a width, without colours."""
    texts = []
    surroundings = {"COLUMNS": str(width), "NO_COLOR": "1", "SOURCE_DATE_EPOCH": "1700000000"}
    with TemporaryDirectory() as folder, chdir(folder), mock.patch.dict(os.environ, surroundings):
        LOANS.write_parquet("loans.parquet")
        PATIENTS.write_parquet("patients.parquet")
        _CHANGED.write_parquet(_CHANGES)
        for command in COMMANDS:
            with redirect_stdout(StringIO()) as printed:
                assert main(command.split()) == 0
            texts.append(f"$ polars-wroc {command}\n{printed.getvalue()}")
    return "\n".join(texts)


# What is printed, by the name of its file.
PRINTED: dict[str, Callable[[], str]] = {
    "show_80.txt": lambda: shown_tables(80),
    "show_160.txt": lambda: shown_tables(160),
    "commands_80.txt": lambda: printed_commands(80),
}


def renew() -> None:
    """Write the files."""
    FOLDER.mkdir(exist_ok=True)
    for file, write in PRINTED.items():
        (FOLDER / file).write_text(write(), encoding="utf-8")
