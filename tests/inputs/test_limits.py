"""What grows with the square of what is asked for has a limit, and ends with a sentence."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_wroc as wroc

GROUPS = 6


def rows_of(groups: int) -> pl.DataFrame:
    """Lay out four rows for each group."""
    return pl.DataFrame(
        {
            "g": [f"g{i:04}" for i in range(groups) for _ in range(4)],
            "y": [1, 1, 0, 0] * groups,
            "s": [float(i * 7919 % 101) for i in range(4 * groups)],
        }
    )


LIMITED: dict[str, tuple[Callable[..., pl.LazyFrame], str]] = {
    "cross_auc": (
        lambda frame, **most: wroc.cross_auc(frame, "y", "s", by="g", **most),
        "max_pairs",
    ),
    "cross_auc against the rest": (
        lambda frame, **most: wroc.cross_auc(frame, "y", "s", by="g", against="rest", **most),
        "max_pairs",
    ),
    "abroca_test": (
        lambda frame, **most: wroc.abroca_test(frame, "y", "s", by="g", permutations=2, **most),
        "max_groups",
    ),
}


@pytest.mark.parametrize("name", LIMITED)
def test_more_groups_than_asked_for_end_with_a_sentence(name: str) -> None:
    table, argument = LIMITED[name]
    made = GROUPS**2 if argument == "max_pairs" else GROUPS
    things = argument.removeprefix("max_")
    rule = f"`by` must give at most {made - 1} {things}; found {made}: "
    sentence = f"{rule}ask for fewer, or pass {argument}={made}"
    frame = rows_of(GROUPS)

    with pytest.raises(ValueError, match=sentence):
        table(frame.lazy(), **{argument: made - 1}).collect()
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        table(frame, **{argument: made - 1})
    allowed = table(frame.lazy(), **{argument: made}).collect()
    assert_frame_equal(allowed, table(frame.lazy()).collect())


def test_pairs_of_several_scores_count_together() -> None:
    frame = rows_of(GROUPS).with_columns(t=-pl.col("s"))
    with pytest.raises(ValueError, match="found 72: ask"):
        wroc.cross_auc(frame, "y", ["s", "t"], by="g", max_pairs=GROUPS**2)


@pytest.mark.parametrize("table", [wroc.compare, wroc.dominated_models])
def test_more_pairs_of_scores_than_asked_for_raise_at_once(
    table: Callable[..., pl.LazyFrame],
) -> None:
    scores = [pl.col("s").alias(f"s{i}") for i in range(4)]
    sentence = "^`score` must give at most 5 pairs; found 6: ask for fewer, or pass max_pairs=6$"
    with pytest.raises(ValueError, match=sentence):
        table(rows_of(2).lazy(), "y", scores, max_pairs=5)
    assert table(rows_of(2).lazy(), "y", scores, max_pairs=6).collect().height >= len(scores)


def test_more_pairs_of_classes_than_asked_for_raise_at_once() -> None:
    scores = {number: pl.lit(0.5) for number in range(33)}
    with pytest.raises(ValueError, match="found 528: ask for fewer, or pass max_pairs=528"):
        wroc.roc_auc_multiclass("y", scores, multi_class="ovo")
    wroc.roc_auc_multiclass("y", scores)


def test_fairness_of_many_groups_is_that_of_the_two_at_the_ends() -> None:
    frame = rows_of(1_000).with_row_index("i")
    everybody_wrong = pl.col("g").is_in(["g0007"])
    frame = frame.with_columns(s=pl.when(everybody_wrong).then(200.0).otherwise("s"))
    table = wroc.fairness(frame, "y", "s", attributes="g", threshold=150, min_rows=0)
    parity = table.row(0, named=True)
    assert (parity["gap"], parity["segment"]) == (1.0, "g0007")
    pair = frame.filter(pl.col("g").is_in([parity["segment"], parity["reference"]]))
    alone = wroc.fairness(pair, "y", "s", attributes="g", threshold=150, min_rows=0)
    same = ("gap", "value", "reference_value", "n")
    assert_frame_equal(table.head(1).select(same), alone.head(1).select(same))


def test_many_pairs_are_those_of_two_scores_each() -> None:
    columns = {f"s{i}": pl.col("s") * (i % 3 - 1) + pl.col("y") * i for i in range(12)}
    frame = rows_of(20).with_columns(**columns)
    together = wroc.compare(frame, "y", list(columns), adjust="none")
    assert together.select("model", "reference").rows() == [
        (a, b) for i, a in enumerate(columns) for b in list(columns)[i + 1 :]
    ]
    for row in together.partition_by("model", "reference")[::9]:
        pair = row.select("model", "reference").row(0)
        assert_frame_equal(row, wroc.compare(frame, "y", list(pair), adjust="none"))


@pytest.mark.slow(reason="starts processes")
@pytest.mark.parametrize(("table", "scores"), [("summary", 200), ("compare", 100)])
def test_memory_of_many_scores_grows_with_the_rows(table: str, scores: int) -> None:
    # Of a summary a branch for each name of a model would hold more than 3 GB here; of a comparison
    # the checks of all scores in each of them, and all sums for each pair, as much.
    code = f"""
import resource, polars as pl, polars_wroc as wroc
n, models = 5_000, [f"s{{i}}" for i in range({scores})]
frame = pl.LazyFrame({{"i": range(n)}}).with_columns(pl.col("i").hash(1).mod(3).eq(0).alias("y"))
scores = [pl.col("i").hash(i).mod(1 << 50).alias(name) for i, name in enumerate(models)]
frame = frame.with_columns(scores)
frame = frame.collect()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert wroc.{table}(frame, "y", models).height in (200, 4950)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)  # noqa: S603
    kilobytes = int(done.stdout) // (1024 if sys.platform == "darwin" else 1)
    assert kilobytes < 1_000_000
