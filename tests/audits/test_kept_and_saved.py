"""What an audit keeps in memory, what it saves, and what it gives away."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_wroc as wroc
from polars_wroc.cli import main


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    random = np.random.default_rng(0)
    score = random.random(600)
    return pl.DataFrame(
        {
            "y": (random.random(600) < score).astype(int),
            "p": score,
            "a": random.choice(["u", "v"], 600),
            "b": random.choice(["x", "w"], 600),
        }
    )


DECISIONS: dict[str, Any] = {"threshold": 0.5, "favorable": "selected"}


def test_an_audit_is_freed_after_it_was_shown(people: pl.DataFrame) -> None:
    audit = wroc.audit(people, "y", "p", attributes="a", **DECISIONS)
    assert repr(audit)
    kept = weakref.ref(audit)
    del audit
    gc.collect()
    assert kept() is None


@pytest.mark.parametrize("options", [DECISIONS, {}])
def test_crossed_segments_alone_are_saved_as_a_page(
    people: pl.DataFrame, options: dict[str, Any], tmp_path: Path
) -> None:
    given: dict[str, Any] = {"attributes": ["a", "b"], "intersections": "only"}
    wroc.audit(people, "y", "p", **given, **options).save(tmp_path / "page.html")
    assert "u, x" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("suffix", ["json", "md", "html"])
@pytest.mark.parametrize("joined", [True, False])
def test_no_output_tells_a_folder(
    people: pl.DataFrame, tmp_path: Path, suffix: str, *, joined: bool
) -> None:
    folder = tmp_path / "secret"
    folder.mkdir()
    people.write_csv(folder / "rows.csv")
    output = folder / f"audit.{suffix}"
    written = [f"--output={output}"] if joined else ["-o", str(output)]
    command = ["audit", str(folder / "rows.csv"), "--label", "y", "--score", "p"]
    assert main([*command, "--attribute", "a", *written]) == 0
    text = output.read_text()
    assert "secret" not in text
    assert "rows.csv" in text
