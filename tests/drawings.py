"""What charts draw: their rows, and the texts of their pictures."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any, TypeAlias

import altair as alt
import numpy as np
import polars as pl

Chart: TypeAlias = alt.LayerChart | alt.FacetChart | alt.VConcatChart


def scored(rows: int, groups: int = 1) -> pl.DataFrame:
    rng = np.random.default_rng(5)
    score = rng.random(rows)
    return pl.DataFrame(
        {
            "g": rng.integers(0, groups, rows),
            "y": rng.random(rows) < score,
            "s": score,
            "w": rng.lognormal(size=rows),
        }
    )


def drawn(chart: Chart) -> list[dict[str, Any]]:
    """The drawn rows, with null where a row leaves it out, and numbers of a column of one type."""
    (rows,) = chart.to_dict()["datasets"].values()
    table = pl.DataFrame(rows, infer_schema_length=None)
    return table.to_dicts()


def points_of(chart: Chart) -> pl.DataFrame:
    """The drawn rows as a table."""
    return pl.DataFrame(drawn(chart), infer_schema_length=None)


def layers_of(chart: Chart) -> list[dict[str, Any]]:
    """The layers of a chart, or of one of its panels."""
    spec = chart.to_dict()
    return list(spec.get("spec", spec)["layer"])


def line_of(chart: Chart) -> dict[str, Any]:
    """The channels of the lines of the curves, which come last."""
    lines = [layer for layer in layers_of(chart) if layer["mark"]["type"] == "line"]
    return dict(lines[-1]["encoding"])


def caption(chart: Chart) -> str:
    """The text below a chart, without its line breaks."""
    text = chart.to_dict()["title"]["text"]
    return text if isinstance(text, str) else " ".join(text)


def tooltip_fields(layers: list[dict[str, Any]]) -> set[str]:
    return {field["field"] for layer in layers for field in layer["encoding"].get("tooltip", [])}


def shown_texts(chart: Any, folder: Path) -> list[str]:
    """All that can be read in the picture, in its order."""
    path = folder / "chart.svg"
    chart.save(str(path))
    return list(ET.parse(path).getroot().itertext())  # noqa: S314  (our own file)


def shown_numbers(chart: Any, folder: Path) -> list[float]:
    """The AUCs that can be read in the picture."""
    texts = shown_texts(chart, folder)
    return [float(text) for text in texts if re.fullmatch(r"\d\.\d{3}", text)]


def with_one_class() -> pl.DataFrame:
    """Three groups, of which the one in the middle has positives only."""
    groups = pl.DataFrame({"g": ["a"] * 4 + ["b"] * 2 + ["c"] * 4})
    return groups.with_columns(
        y=pl.Series([1, 0, 1, 0, 1, 1, 1, 0, 0, 1]), s=pl.int_range(pl.len()) * 7 % 10 / 10
    )
