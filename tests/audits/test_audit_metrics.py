"""The numbers of an audit for a logger of experiments: their names, and that none is lost."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest

import polars_wroc as wroc

# What MLflow says of names: alphanumerics, underscores, dashes, periods, spaces, colon, slashes; of
# them it takes 250.
MLFLOW = re.compile(r"[/\w.\- :]{1,250}", re.ASCII)


def audited(segments: list[str | None], score: str | list[str] = "s") -> wroc.Audit:
    random = np.random.default_rng(8)
    rows = pl.DataFrame(
        {
            "g": segments * 40,
            "y": random.random(40 * len(segments)) < 0.5,
            "s": random.random(40 * len(segments)),
            "s'": random.random(40 * len(segments)),
            "s+": random.random(40 * len(segments)),
        }
    )
    decided = {"threshold": 0.5, "favorable": "selected"}
    return wroc.audit(rows, "y", score, attributes="g", **decided)  # type: ignore[arg-type]


def test_each_number_of_the_table_has_a_name() -> None:
    audit = audited(["a", "b", None])
    metrics = audit.metrics()
    numbers = audit.table.select("value", "gap", "ratio")
    assert len(metrics) == sum(numbers.count().row(0))
    assert sorted(metrics.values()) == sorted(
        value for row in numbers.rows() for value in row if value is not None
    )
    rows = {(row["segment"], row["metric"]): row for row in audit.table.iter_rows(named=True)}
    assert metrics["auc"] == rows["overall", "auc"]["value"]
    assert metrics["auc.g.a"] == rows["a", "auc"]["value"]
    assert metrics["tpr.g.b.gap"] == rows["b", "tpr"]["gap"]
    assert metrics["selection_rate.g._missing_"] == rows[None, "selection_rate"]["value"]
    assert metrics["impact_ratio.g.a"] == rows["a", "impact_ratio"]["ratio"]
    assert metrics["impact_ratio.g.a.value"] == rows["a", "impact_ratio"]["value"]
    assert all(MLFLOW.fullmatch(name) for name in metrics)


@pytest.mark.parametrize(
    "segments",
    [
        ["a b", "a_b"],
        ["<18", ">18", "18"],
        ["\u5973", "\u7537"],
        ["a b", "a_b", "a_b_2"],
        ["x" * 99 + "1", "x" * 99 + "2"],
    ],
)
def test_segments_of_the_same_name_are_told_apart(segments: list[str | None]) -> None:
    audit = audited(segments)
    metrics = audit.metrics()
    assert len(metrics) == sum(audit.table.select("value", "gap", "ratio").count().row(0))
    aucs = audit.table.filter(metric="auc", attribute="g")
    found = [value for name, value in metrics.items() if re.fullmatch(r"auc\.g\.[^.]+", name)]
    assert found == aucs["value"].to_list()
    assert all(MLFLOW.fullmatch(name) for name in metrics)
    if segments == ["a b", "a_b"]:
        # What is written so has the name, in any order, and the same in each metric.
        for one in (audit, audited([*reversed(segments)])):
            of_segments = one.table.filter(metric="tpr", attribute="g")
            found_by = dict(of_segments.select("segment", "value").rows())
            names = [name for name in one.metrics() if re.fullmatch(r"tpr\.g\.[^.]+", name)]
            assert {*names} == {"tpr.g.a_b", "tpr.g.a_b_b36dbed1"}
            assert one.metrics()["tpr.g.a_b"] == found_by["a_b"]


def test_scores_of_the_same_name_are_told_apart() -> None:
    audit = audited(["a", "b"], ["s'", "s+"])
    metrics = audit.metrics()
    overall = audit.table.filter(metric="auc", attribute="overall")
    names = [name for name in metrics if re.fullmatch(r"s_\w+\.auc", name)]
    assert [metrics[name] for name in names] == overall["value"].to_list()
