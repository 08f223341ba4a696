"""Tables of a LazyFrame: they read their source once, when they are collected, on every path."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
import pytest
from polars.io.plugins import register_io_source
from polars.testing import assert_frame_equal

import polars_wroc as wroc

Table = Callable[[pl.LazyFrame], pl.LazyFrame]

TABLES: dict[str, Table] = {
    "summary": lambda f: wroc.summary(f, "y", "s", weight="w", by="g"),
    "summary of two scores": lambda f: wroc.summary(f, "y", ["s", "t"], by="g"),
    "summary by clusters": lambda f: wroc.summary(f, "y", "s", by="g", design="c"),
    "threshold_metrics": lambda f: wroc.threshold_metrics(f, "y", "s", threshold=0.5, by="g"),
    "threshold_metrics by a rule": lambda f: wroc.threshold_metrics(
        f, "y", "s", threshold=wroc.rules.youden(), per_group=True, by="g"
    ),
    "decision_curve": lambda f: wroc.decision_curve(f, "y", ["s", "t"], weight="w", by="g"),
    "decision_curve by clusters": lambda f: wroc.decision_curve(f, "y", "s", by="g", design="c"),
    "bootstrap": lambda f: wroc.bootstrap(f, "y", ["s", "t"], "ks", by="g", resamples=5),
    "bootstrap by a survey": lambda f: wroc.bootstrap(
        f, "y", "s", "ks", resamples=5, design=wroc.Survey("c", strata="h"), replicates=True
    ),
    "cost_curve": lambda f: wroc.cost_curve(f, "y", "s", weight="w", by="g", cost_fn=0.2),
    "dominated_models": lambda f: wroc.dominated_models(f, "y", ["s", "t"], weight="w", by="g"),
    "score_distribution": lambda f: wroc.score_distribution(f, "s", label="y", by="g"),
    "roc_point": lambda f: wroc.roc_point(f, "y", "s", weight="w", by="g", fpr=[0.1, 0.2]),
    "roc_point by clusters": lambda f: wroc.roc_point(f, "y", "s", by="g", tpr=0.8, design="c"),
    "roc_curve with a band": lambda f: wroc.roc_curve(f, "y", "s", by="g", band="pointwise"),
    "group_gaps": lambda f: wroc.group_gaps(f, "y", "s", attributes=["g", "h"], threshold=0.5),
    "group_gaps within strata": lambda f: wroc.group_gaps(
        f, "y", "s", attributes="g", within="h", threshold=0.5
    ),
    "group_gaps by a survey": lambda f: wroc.group_gaps(
        f, "y", "s", attributes="g", threshold=0.5, design=wroc.Survey("c", strata="h")
    ),
    "trend": lambda f: wroc.trend(f, "y", "s", over="p", attributes="g", threshold=0.5),
    "impact_ratios": lambda f: wroc.impact_ratios(
        f, score="s", attributes="g", threshold="median", favorable="selected"
    ),
    "equalized_thresholds": lambda f: wroc.equalized_thresholds(f, "y", "s", by="g"),
    "worst_segments": lambda f: wroc.worst_segments(
        f, "y", "s", attributes=["g", "h"], threshold=0.5, favorable="selected"
    ),
    "fairness": lambda f: wroc.fairness(f, "y", "s", attributes="g", threshold=0.5),
    "calibration_summary": lambda f: wroc.calibration_summary(f, "y", "s", weight="w", by="g"),
    "calibration_curve": lambda f: wroc.calibration_curve(f, "y", "s", by="g", design="c"),
    "smooth calibration_curve": lambda f: wroc.calibration_curve(f, "y", "s", smooth=True),
    "calibration_test": lambda f: wroc.calibration_test(f, "y", "s", weight="w", by="g"),
    "calibration_test at equal scores": lambda f: wroc.calibration_test(
        f, "y", ["s", "t"], attributes=["g", "h"], reference="rest"
    ),
    "expected_metrics": lambda f: wroc.expected_metrics(
        f, "s", label="y", by="g", threshold=0.5, weight="w"
    ),
    "validate": lambda f: wroc.validate(f, "y", ["s", "t"], by="g", smooth=False),
    "abroca_test": lambda f: wroc.abroca_test(f, "y", "s", weight="w", by="g", permutations=5),
    "cross_auc": lambda f: wroc.cross_auc(f, "y", "s", weight="w", by="g"),
    "cross_auc by clusters": lambda f: wroc.cross_auc(f, "y", "s", by="g", design="c"),
    "cross_auc against the rest": lambda f: wroc.cross_auc(f, "y", "s", by="g", against="rest"),
    "compare": lambda f: wroc.compare(f, "y", ["s", "t"], by="g"),
    "release_check": lambda f: wroc.release_check(
        f, "y", "s", "t", attributes="g", threshold=0.5, margin=0.05
    ),
}


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    random = np.random.default_rng(7)
    number = 600
    label = random.integers(0, 2, number)
    return pl.DataFrame(
        {
            "y": label,
            "s": np.round(np.clip(random.normal(0.4 + 0.2 * label, 0.2), 0, 1), 2),
            "t": np.round(np.clip(random.normal(0.4 + 0.2 * label, 0.2), 0, 1), 2),
            "w": random.gamma(2, 1, number),
            "g": random.choice(["a", "b", "c"], number),
            "h": random.choice(["m", "f"], number),
            "c": random.integers(0, 40, number),
            "p": random.integers(1, 4, number),
            "unused": random.normal(size=number),
        }
    ).with_columns(c=pl.col("c") + pl.when(pl.col("h") == "m").then(100).otherwise(0))


class CountingSource:
    """A source that counts how often it is read, and remembers which columns were asked for."""

    def __init__(self, rows: pl.DataFrame) -> None:
        self.rows = rows
        self.reads = 0
        self.columns: set[str] = set()
        self.predicates: list[pl.Expr] = []

    def scan(self) -> pl.LazyFrame:
        def read(
            columns: list[str] | None,
            predicate: pl.Expr | None,
            n_rows: int | None,
            batch_size: int | None,  # noqa: ARG001
        ) -> object:
            self.reads += 1
            self.columns |= set(columns or self.rows.columns)
            self.predicates += [] if predicate is None else [predicate]
            table = self.rows if predicate is None else self.rows.filter(predicate)
            table = table.select(columns or self.rows.columns)
            yield table if n_rows is None else table.head(n_rows)

        return register_io_source(read, schema=self.rows.schema)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", TABLES)
def test_a_table_reads_its_source_once_and_only_its_columns(name: str, rows: pl.DataFrame) -> None:
    source = CountingSource(rows)
    table = TABLES[name](source.scan())
    table.collect_schema()
    assert source.reads == 0
    table.collect()
    assert source.reads == 1
    assert "unused" not in source.columns


@pytest.mark.parametrize("name", TABLES)
def test_an_earlier_filter_reaches_the_source(name: str, rows: pl.DataFrame) -> None:
    source = CountingSource(rows)
    found = TABLES[name](source.scan().filter(pl.col("unused") > 0)).collect()
    assert [each.meta.root_names() for each in source.predicates] == [["unused"]]
    assert_frame_equal(found, TABLES[name](rows.filter(pl.col("unused") > 0).lazy()).collect())


@pytest.mark.parametrize("name", TABLES)
def test_the_schema_is_known_without_rows(name: str, rows: pl.DataFrame) -> None:
    table = TABLES[name](rows.lazy())
    assert table.collect_schema() == table.collect().schema
    assert TABLES[name](rows.clear().lazy()).collect().schema == table.collect_schema()


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_both_engines_of_polars_give_the_table_of_a_dataframe(
    name: str, engine: Literal["in-memory", "streaming"], rows: pl.DataFrame
) -> None:
    expected: object = TABLES[name](rows)  # type: ignore[arg-type]
    assert isinstance(expected, pl.DataFrame)
    found = TABLES[name](rows.lazy()).collect(engine=engine)
    assert_frame_equal(found, expected, check_exact=engine == "in-memory")


def test_tables_are_collected_together(rows: pl.DataFrame) -> None:
    plans = [table(rows.lazy()) for table in TABLES.values()]
    for found, plan in zip(pl.collect_all(plans), plans, strict=True):
        assert_frame_equal(found, plan.collect())


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_written_by_a_sink_and_travels_in_a_pickle(
    name: str, rows: pl.DataFrame, tmp_path: Path
) -> None:
    plan = TABLES[name](rows.lazy())
    plan.sink_parquet(tmp_path / "table.parquet")
    assert_frame_equal(pl.read_parquet(tmp_path / "table.parquet"), plan.collect())
    assert_frame_equal(pickle.loads(pickle.dumps(plan)).collect(), plan.collect())  # noqa: S301


@pytest.mark.parametrize("name", [name for name in TABLES if name != "impact_ratios"])
def test_a_wrong_value_is_a_value_error_at_collect(name: str, rows: pl.DataFrame) -> None:
    wrong = rows.with_columns(y=pl.when(pl.int_range(pl.len()) == 5).then(7).otherwise("y"))
    table = TABLES[name](wrong.lazy())
    with pytest.raises(ValueError, match=r"`label` must be Boolean.*holds 7"):
        table.collect()


@pytest.mark.parametrize("name", TABLES)
def test_a_later_filter_and_selection_give_rows_of_the_whole_table(
    name: str, rows: pl.DataFrame
) -> None:
    table = TABLES[name](rows.lazy())
    whole = table.collect()
    last = whole.columns[-1]
    assert_frame_equal(table.select(last).collect(), whole.select(last))
    first = pl.col(whole.columns[0])
    kept = first == whole[whole.columns[0]][0]
    assert_frame_equal(table.filter(kept).collect(), whole.filter(kept))


@pytest.mark.parametrize("name", TABLES)
def test_many_rows_are_sorted_at_once_and_give_the_same_table(
    name: str, rows: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = TABLES[name](rows.lazy()).collect()
    monkeypatch.setattr("polars_wroc.rows._MANY_ROWS", 1)
    assert_frame_equal(TABLES[name](rows.lazy()).collect(), table, rel_tol=1e-8, abs_tol=1e-12)
