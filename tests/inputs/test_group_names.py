"""Groups may be called like any column of a plan; only a column of the result is another's."""

from __future__ import annotations

import re
from inspect import signature
from itertools import cycle, islice
from typing import Any

import numpy as np
import polars as pl
import pytest
from audit_words import page_words
from divided import summary_in_ranges
from polars.testing import assert_frame_equal
from queries import TABLES
from sweeps import sweep
from wide_tables import impact_of, wide_gaps

import polars_wroc as wroc

ROWS = 80
_TIMES = "\N{MULTIPLICATION SIGN}"
# What plans or results call columns, somewhere, and what internal names look like.
NAMES = (
    *("value", "threshold", "difference", "tpr_low", "bin", "low", "under", "n", "auc", "score"),
    *("metric", "replicate", "abroca", "tp", "fpr", "weight", "count", "bins", "segment"),
    *("__proto__", "constructor", "__key_0", "__key_1", "__score", "__signed_weight", "", " "),
)


def rows() -> pl.LazyFrame:
    """Three groups with rows of both classes; `limit` is a second score."""
    random = np.random.default_rng(11)
    columns = {
        "g": list(islice(cycle("abc"), ROWS)),
        "y": random.random(ROWS) < 0.5,
        "s": random.normal(size=ROWS).round(1),
        "w": random.integers(1, 4, ROWS).astype(float),
        "limit": random.normal(size=ROWS),
    }
    return pl.LazyFrame(columns)


# Columns of counts, of some or of others.
STATE = {"model", "labelled", "bins", "score", "score_low", "score_high"}
STATE |= {f"{sums}_{side}" for sums in ("n", "w", "w2", "w3") for side in ("pos", "neg")}
STATE |= {"n_missing"}
# The queries that have groups.
GROUPED = [name for name, table in TABLES.items() if "by" in signature(table).parameters]


def is_key(column: str) -> bool:
    """Whether a column of a result holds the values of the group ``g``."""
    return column in {"g", "positive_g", "negative_g"}


def refused(name: str) -> set[str]:
    """The names that a group must not have in a table."""
    columns = TABLES[name](rows()).collect_schema().names()
    if not any(is_key(column) for column in columns) or "positive_g" in columns:
        return set()
    taken = {column for column in columns if not is_key(column)}
    # Whatever the counts are by, a table of them is read by the names of all its columns.
    return taken | STATE if "counts" in name else taken


def of_first(table: pl.DataFrame) -> pl.DataFrame:
    """Name groups by the first of several keys that are all the same."""
    names = [name for name in ("group_max", "group_min") if name in table.columns]
    return table.with_columns(pl.col(names).str.split(", ").list.first())


@pytest.mark.parametrize("name", GROUPED)
def test_what_the_caller_calls_a_group_is_in_no_step_of_a_plan(name: str) -> None:
    """So that no name can be another column's: it is read first, and written last."""
    frame = rows().collect().rename({"g": "CALLED"}).lazy()
    plan = TABLES[name](frame, "CALLED").explain(optimized=False)
    assert plan.count('col("CALLED").alias("__key_0")')
    # Tables made of others give these a name without a meaning.
    read, written = (
        r'col\("CALLED"\)(\.alias\("(__key_0|group 0)"\))+',
        r'\.alias\("(\w+_)?CALLED"\)',
    )
    between = re.sub(f"{read}|{written}", "", plan)
    steps = [line for line in between.splitlines() if not line.strip().startswith("DF [")]
    # A message has it too, within a sentence, and the name of an attribute is a value.
    assert [line for line in steps if re.search(r'(col|alias)\("(\w+_)?CALLED"', line)] == []


@pytest.mark.parametrize("name", sweep(GROUPED, GROUPED[3::12]))
def test_groups_called_like_columns_of_plans(name: str) -> None:
    table = TABLES[name]
    expected = table(rows()).collect()
    # A plan grows with the square of the number of keys; each name is tried in many tables.
    first = 5 * GROUPED.index(name)
    tried = islice(cycle(NAMES), first, first + len(NAMES) // 3)
    allowed = [one for one in tried if one not in refused(name)]
    assert len(allowed) > 1
    found = of_first(table(rows(), [pl.col("g").alias(one) for one in allowed]).collect())
    if "attribute" in expected.columns:
        # Each is compared with itself alone, but adjusted for the tests of all. Some have all rows.
        of_groups = pl.col("attribute") != "overall"
        expected, found = expected.filter(of_groups), found.filter(of_groups)
        expected = pl.concat(expected.with_columns(attribute=pl.lit(one)) for one in allowed)
        adjusted = ("p_adjusted", "verdict", "detectable")
        expected, found = (each.drop(adjusted, strict=False) for each in (expected, found))
    named = [
        pl.col(column).alias(column.removesuffix("g") + one)
        for column in filter(is_key, expected.columns)
        for one in allowed
    ]
    others = [column for column in expected.columns if not is_key(column)]
    assert_frame_equal(found, expected.select(*named, *others), abs_tol=1e-9, rel_tol=1e-9)


@pytest.mark.parametrize("name", GROUPED)
def test_groups_called_like_a_column_of_the_result_are_refused_at_once(name: str) -> None:
    taken_names = sorted(refused(name))
    for taken in {*taken_names[:1], *taken_names[-1:]}:
        message = f"^`by` must not take the name of a result column; found '{taken}': rename it"
        with pytest.raises(ValueError, match=message):
            TABLES[name](rows(), pl.col("g").alias(taken))


@pytest.mark.parametrize(
    ("function", "name"),
    sweep(
        [
            ("calibration_summary", "difference"),
            ("calibration_summary", "bin"),
            ("cross_auc", "auc"),
        ],
        fast=2,
    ),
)
def test_one_group_column_called_like_another_column(function: str, name: str) -> None:
    frame = rows().collect().with_columns(s=pl.col("w") / 4)
    table = getattr(wroc, function)
    expected = table(frame, "y", "s", by="g")
    keys = filter(is_key, expected.columns)
    renamed = {column: column.removesuffix("g") + name for column in keys}
    found = table(frame.with_columns(pl.col("g").alias(name)), "y", "s", by=name)
    assert_frame_equal(found, expected.rename(renamed))


def test_models_compared_within_a_group_called_like_another_column() -> None:
    frame = rows().collect()
    expected = wroc.dominated_models(frame, "y", ["s", "limit"], by="g")
    found = wroc.dominated_models(frame.rename({"g": "under"}), "y", ["s", "limit"], by="under")
    assert_frame_equal(found, expected.rename({"g": "under"}))


@pytest.mark.parametrize("name", sweep(["{}", "g{0}", "{", "g%s"], fast=1))
def test_names_that_are_patterns(name: str) -> None:
    frame = rows().collect()
    for table in (
        wroc.impact_ratios(
            frame.rename({"g": name}), "s", attributes=name, threshold=0.0, favorable="selected"
        ),
        wroc.group_gaps(
            frame.rename({"g": name}),
            score="s",
            attributes=name,
            metrics=["standardized_mean_difference"],
        ),
        impact_of(
            wroc.audit(
                frame.rename({"g": name}),
                "y",
                "s",
                attributes=name,
                threshold=0.0,
                favorable="selected",
            )
        ),
    ):
        assert table is not None
        assert set(table["attribute"]) == {name}
        assert table["segment"].unique(maintain_order=True).to_list() == ["a", "b", "c"]


def test_messages_have_the_names_that_were_given() -> None:
    frame = rows().collect()
    by: list[str | pl.Expr] = ["g", pl.col("y").alias("__key_0")]
    with pytest.raises(ValueError, match=r"out of \['g', '__key_0'\]; found 'h'"):
        wroc.group_gaps(frame, "y", "s", attributes=by, reference={"h": "a"})
    with pytest.raises(ValueError, match=r"segment of g \('a', 'b', 'c'\); found no segment 'z'$"):
        wide_gaps(frame, "y", "s", by="g", reference="z")
    with pytest.raises(ValueError, match=r"or more `attributes`; found \['g'\]$"):
        wroc.audit(frame, "y", "s", attributes="g", intersections=True)
    with pytest.raises(ValueError, match=r"`reference` must name attributes out of \['g'\]"):
        wroc.audit(frame, "y", "s", attributes="g", reference={"__key_0": "a"})
    with pytest.raises(TypeError, match="found column 'all' of type List"):
        wroc.audit(frame, "y", "s", attributes=pl.concat_list("g").alias("all"))
    counts = wroc.score_counts(frame, "y", "s", by="g")
    with pytest.raises(pl.exceptions.PolarsError, match=r"in row 0 .*, g a, score "):
        wroc.from_counts(counts.with_columns(n_pos=-1))


@pytest.mark.slow(reason="makes several audits")
@pytest.mark.parametrize(
    ("first", "second"),
    sweep(
        [("auc", "segment"), ("attribute", "model"), ("__key_1", "__key_0"), ("n_pos", "threshold")]
    ),
)
def test_attributes_of_an_audit_have_any_name(first: str, second: str) -> None:
    frame = rows().collect().with_columns(h=pl.col("w") > 2)
    options: dict[str, Any] = {"threshold": 0.0, "intersections": True, "min_rows": 0}
    options |= {"favorable": "selected"}
    expected = wroc.audit(frame, "y", ["s", "limit"], attributes=["g", "h"], **options)
    by = [pl.col("g").alias(first), pl.col("h").alias(second)]
    found = wroc.audit(frame, "y", ["s", "limit"], attributes=by, **options)
    names = {"g": first, "h": second, f"g {_TIMES} h": f"{first} {_TIMES} {second}"}
    for name in ("segments", "table", "curves"):
        renamed = getattr(expected, name).with_columns(pl.col("attribute").replace(names))
        # Sentences and reasons have the names too.
        texts = ["sentence", "reason"]
        tables = (each.drop(texts, strict=False) for each in (getattr(found, name), renamed))
        assert_frame_equal(*tables)
    assert found.settings.as_dict()["attributes"] == [first, second]
    assert found.missing["column"].to_list() == ["y", "s", "limit", first, second]
    alone = wroc.audit(frame, "y", "s", attributes=by, **options)
    assert " ".join(first.split()) in page_words(alone)


def test_an_attribute_must_not_be_called_like_all_rows() -> None:
    with pytest.raises(ValueError, match="`attributes` must not name a column 'overall'"):
        wroc.audit(rows().collect(), "y", "s", attributes=pl.col("g").alias("overall"))


def test_parts_may_have_their_groups_in_any_order() -> None:
    frame = rows().collect().with_columns(h=pl.col("g").str.replace("a", "c"))
    parts = [frame[:50], frame[50:].select("h", "g", "y", "s", "w")]
    by = pl.col("^[gh]$")
    found = summary_in_ranges(parts, "y", "s", by=by)
    expected = wroc.summary(frame, "y", "s", by=["g", "h"])
    assert_frame_equal(found, expected)
    counts = [wroc.score_counts(part, "y", "s", by=by) for part in parts]
    assert counts[1].columns[:2] == ["h", "g"]
    merged = wroc.merge_counts(counts)
    assert_frame_equal(wroc.from_counts(merged).summary(by=["g", "h"]), expected)
    swapped = frame.select(pl.exclude("g", "h"), __key_0="h", __key_1="g")
    of_swapped = wroc.score_counts(swapped, "y", "s", by=["__key_0", "__key_1"])
    found = wroc.from_counts(of_swapped).summary(by=["__key_1", "__key_0"])
    assert_frame_equal(found.rename({"__key_1": "g", "__key_0": "h"}), expected)
