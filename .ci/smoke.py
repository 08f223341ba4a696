"""What must work where only the package is installed: ``python smoke.py [EXTRA]``.

Runs in an empty folder outside of the checkout, and leaves its files there. What needs an extra
that is not installed must say how to install it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata, resources
from pathlib import Path

import polars as pl
from polars.testing import assert_frame_equal

import polars_wroc as wroc

SHIPPED = (
    "py.typed",
    "__init__.pyi",
    "typing.pyi",
    "audits/audit-2.0.schema.json",
    "audits/report/page.css",
    "audits/report/sort.js",
    "documents/notebook.css",
)
COLUMNS = ("--label", "label", "--score", "score", "--weight", "weight")
DECISIONS = ("--attribute", "group", "--threshold", "0.5", "--favorable", "selected")


def main(installed: str | None) -> None:
    """Try everything, with one extra or none."""
    packaged()
    tables()
    chart()
    commands()
    for extra, features in EXTRAS.items():
        for feature in features:
            if extra == installed:
                feature()
            else:
                refuses(feature, f"pip install 'polars-wroc[{extra}]'")


def rows() -> pl.DataFrame:
    """Make rows in two groups."""
    number = pl.col("id")
    return pl.DataFrame({"id": range(240)}).select(
        group=pl.when(number % 3 > 0).then(pl.lit("a")).otherwise(pl.lit("b")),
        label=number * 7 % 11 > 5,
        score=(number * 7 % 11 / 11 + number * 5 % 13 / 13) / 2,
        weight=1 + number % 4,
    )


def packaged() -> None:
    """Check where the package is, its version, and the files beside the code."""
    package = resources.files("polars_wroc")
    assert Path(sys.prefix) in Path(str(package)).parents, f"{package} is not in {sys.prefix}"
    assert wroc.__version__ == metadata.version("polars-wroc")
    for name in SHIPPED:
        assert package.joinpath(name).is_file(), f"{name} is not installed"


def tables() -> None:
    """Compute a metric, a table and an audit."""
    auc = wroc.roc_auc("label", "score", weight="weight")
    value = rows().select(auc).item()
    assert 0.5 < value < 1
    score: object = pl.col("score")
    assert rows().select(score.wroc.roc_auc("label", weight="weight")).item() == value  # type: ignore[attr-defined]
    summary = rows().lazy().pipe(wroc.summary, "label", "score", weight="weight", by="group")
    assert_frame_equal(
        summary.select("group", roc_auc="auc").collect(),
        rows().group_by("group").agg(auc).sort("group"),
    )
    audit("audit.json")
    assert json.loads(text("audit.json"))["table"]
    audit("audit.md")
    assert "| group |" in text("audit.md")


def audit(path: str) -> None:
    """Save an audit."""
    result = wroc.audit(
        rows(),
        "label",
        "score",
        weight="weight",
        attributes="group",
        threshold=0.5,
        favorable="selected",
    )
    result.save(path)


def text(path: str) -> str:
    """Read a file that was written."""
    return Path(path).read_text(encoding="utf-8")


def chart() -> None:
    """Draw a chart as JSON."""
    curves = wroc.roc_curve(rows(), "label", "score", weight="weight", by="group")
    drawn = json.loads(wroc.roc_chart(curves, color="group").to_json())
    assert drawn["$schema"].startswith("https://vega.github.io/schema/vega-lite/")


def commands() -> None:
    """Run commands on a file."""
    rows().write_csv("rows.csv")
    assert wroc.__version__ in command("--version")
    assert "auc" in command("auc", "rows.csv", *COLUMNS)
    assert "group" in command("audit", "rows.csv", *COLUMNS, *DECISIONS)
    impact = command("impact", "rows.csv", *COLUMNS[2:], *DECISIONS, "-o", "-")
    assert json.loads(impact)[0]["metric"] == "impact_ratio"


def command(*arguments: str) -> str:
    """Run the command and return what it prints; its message is that of an ImportError."""
    path = Path(sys.executable).with_name("polars-wroc")
    done = subprocess.run(  # noqa: S603
        [path, *arguments], capture_output=True, encoding="utf-8", check=False
    )
    if done.returncode:
        raise ImportError(done.stderr)
    return done.stdout


def report() -> None:
    """Write the report."""
    audit("report.html")
    assert text("report.html").startswith("<!doctype html>")


def report_by_command() -> None:
    """Write the report by the command."""
    command("audit", "rows.csv", *COLUMNS, *DECISIONS, "-o", "report.html")
    assert text("report.html").startswith("<!doctype html>")


def picture() -> None:
    """Write a chart as a picture."""
    command("curve", "rows.csv", *COLUMNS, "-o", "curve.png")
    assert Path("curve.png").read_bytes().startswith(b"\x89PNG")


def smooth_curve() -> None:
    """Smooth a calibration curve."""
    curve = wroc.calibration_curve(rows(), "label", "score", weight="weight", smooth=True)
    assert curve.height > 1


EXTRAS = {"report": [report, report_by_command, picture], "smooth": [smooth_curve]}


def refuses(feature: Callable[[], None], message: str) -> None:
    """Check that a feature says what to install."""
    try:
        feature()
    except ImportError as error:
        said = str(error)
    else:
        said = "nothing, and works"
    assert message in said, f"{feature.__name__} says {said}, not {message}"


if __name__ == "__main__":
    main(*sys.argv[1:] or [None])
