"""Tables of counts that somebody changed: refused, with the row; honest ones never are."""

from __future__ import annotations

import io
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl
import polars.selectors as cs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from sweeps import sweep

import polars_wroc as wroc
from polars_wroc.cli import main

Change: TypeAlias = dict[str, Any]
# In bins it holds several scores.
ROW = 2
NAN, INF = float("nan"), float("inf")
MOMENTS = ["n_pos", "w_pos", "w2_pos", "w3_pos"]
InvalidOperationError = pl.exceptions.InvalidOperationError


def rows() -> pl.DataFrame:
    """80 rows of two groups with weights; each score has rows of both classes."""
    random, size = np.random.default_rng(3), 80
    return pl.DataFrame(
        {
            "g": ["a", "b"] * (size // 2),
            "y": np.arange(size) % 4 < 2,
            "s": np.arange(size) // 8 / 16,
            "w": random.lognormal(size=size),
        }
    ).with_columns(s=pl.when(pl.int_range(80) > 1).then("s"))


def counts(bins: int | None = None, **columns: Any) -> pl.DataFrame:
    return wroc.score_counts(
        rows(), "y", **{"score": "s", "weight": "w", "by": "g", **columns}, bins=bins
    )


def changed(table: pl.DataFrame, row: int = ROW, **values: Any) -> pl.DataFrame:
    """Change values of one row; a type that does not hold one becomes that of Python's value."""
    here = pl.int_range(pl.len()) == row
    return table.with_columns(
        pl.when(here).then(pl.lit(value)).otherwise(pl.col(name)).alias(name)
        for name, value in values.items()
    )


WHOLE = "hold whole numbers, zero or more in column"
FINITE = "hold numbers that are finite and zero or more in column"
ALLOWED = "that the rows and their weights allow; found n_pos 2, w_pos"
NUMBER = "hold the number of bins in column 'bins', 16 times a power of two; found"
BY_SCORE: list[tuple[Change, str]] = [
    ({"n_pos": -1}, f"{WHOLE} 'n_pos'; found -1"),
    ({"n_missing": -1}, f"{WHOLE} 'n_missing'; found -1"),
    ({"n_pos": None}, f"{WHOLE} 'n_pos'; found null"),
    ({"n_pos": 1.5}, f"{WHOLE} 'n_pos'; found 1.5"),
    ({"n_neg": NAN}, f"{WHOLE} 'n_neg'; found NaN"),
    ({"n_neg": 1e300}, f"{WHOLE} 'n_neg'; found 1e"),
    ({"n_pos": 2**63 - 1}, "count 9007199254740992 rows or fewer in all; found more, with n_pos 9"),
    ({"n_neg": 2**53}, "count 9007199254740992 rows or fewer in all; found more"),
    ({"n_missing": 1}, "count positives or negatives at a score, and missing rows at none"),
    ({"n_pos": 0, "n_neg": 0}, "count positives or negatives at a score, and missing rows at none"),
    ({"n_pos": 0}, "hold weights above zero in column 'w_pos' where 'n_pos' counts rows"),
    ({"n_pos": 1}, f"hold sums of squares in column 'w2_pos' {ALLOWED[:25]}"),
    ({"w_pos": 0.0}, "hold weights above zero in column 'w_pos' where 'n_pos' counts rows"),
    ({"w_pos": 1e308}, f"hold sums of squares in column 'w2_pos' {ALLOWED} 1e\\+?308"),
    ({"w_pos": 1e-300}, f"hold sums of squares in column 'w2_pos' {ALLOWED}"),
    ({"w2_pos": 1e30}, f"hold sums of squares in column 'w2_pos' {ALLOWED}"),
    ({"w2_pos": 0.0}, f"hold sums of squares in column 'w2_pos' {ALLOWED}"),
    ({"w2_pos": INF}, f"hold sums of squares in column 'w2_pos' {ALLOWED}"),
    ({"w3_pos": INF}, f"hold sums of cubes in column 'w3_pos' {ALLOWED}"),
    ({"w3_pos": 0.0}, f"hold sums of cubes in column 'w3_pos' {ALLOWED}"),
    ({"w3_neg": -0.1}, f"{FINITE} 'w3_neg'; found -0.1"),
    ({"w2_pos": NAN}, f"{FINITE} 'w2_pos'; found NaN"),
    ({"w_pos": None}, f"{FINITE} 'w_pos'; found null"),
    ({"w_neg": INF}, f"{FINITE} 'w_neg'; found inf"),
    ({"score": NAN}, "hold scores that are numbers"),
    ({"score": None}, "hold scores that are numbers"),
    ({"score": 0.5}, "hold each score or bin of a group once, .*; found it 2 times"),
]
IN_BINS: list[tuple[Change, str]] = [
    ({"bins": 17}, f"{NUMBER} 17"),
    ({"bins": 48}, f"{NUMBER} 48"),
    ({"bins": -16}, f"{NUMBER} -16"),
    ({"bins": 8}, f"{NUMBER} 8"),
    ({"bins": 2**53}, f"{NUMBER} 9007199254740992"),
    ({"bins": 2**62}, f"{NUMBER} 4611686018427387904"),
    ({"bins": None}, f"{NUMBER} null"),
    ({"bins": 64.5}, f"{NUMBER} 64.5"),
    ({"bins": 4096}, "hold scores of one bin in columns 'score_low' and 'score_high'; found"),
    ({"score_high": 0.9}, "hold scores of one bin .*; found 0.25 to 0.9 with 16 bins"),
    ({"score_low": 0.0}, "hold scores of one bin .*; found 0.0 to 0.4375 with 16 bins"),
    (
        {"score_high": 0.1},
        "hold scores that are numbers, the lowest of a bin first; found 0.25 to 0.1",
    ),
    ({"score_high": None}, "hold scores that are numbers"),
    ({"score_low": -INF}, "hold scores of one bin"),
    ({"score_low": 0.5, "score_high": 0.5}, "hold each score or bin of a group once"),
]


CASES = [(None, *case) for case in BY_SCORE] + [(16, *case) for case in IN_BINS]


@pytest.mark.parametrize(("bins", "change", "rule"), sweep(CASES, fast=CASES[::4]))
def test_a_changed_value_is_refused_with_its_row(
    bins: int | None, change: Change, rule: str
) -> None:
    table = changed(counts(bins), **change)
    found = f"^`counts` must {rule}.* in row [0-9]+ \\(counted from 0\\), g a, score "
    row = "" if "once" in rule else f" in row {ROW} "
    for call in (wroc.from_counts, lambda frame: wroc.merge_counts([counts(bins), frame])):
        # At once, whatever is asked for later.
        with pytest.raises(InvalidOperationError, match=found) as error:
            call(table)
        assert row in str(error.value)


@pytest.mark.parametrize(("bins", "change", "rule"), [*CASES[::6], CASES[-1]])
def test_plans_are_refused_when_they_run(bins: int | None, change: Change, rule: str) -> None:
    table = changed(counts(bins), **change).lazy()
    for plan in (wroc.from_counts(table).roc_curve(by="g"), wroc.merge_counts([table, table])):
        with pytest.raises(InvalidOperationError, match=f"`counts` must {rule}"):
            plan.collect()


@pytest.mark.slow(reason="has a large table")
def test_the_first_row_that_breaks_a_rule_is_named() -> None:
    table = pl.concat([counts().with_columns(part=part) for part in range(300)])
    table = changed(changed(table, 4_001, n_pos=-1), 4_500, w_pos=-1.0)
    with pytest.raises(InvalidOperationError, match=r"found -1 in row 4001 \(counted from 0\)"):
        wroc.from_counts(table.lazy()).summary().collect()


def test_rows_of_many_counts_do_not_outgrow_an_integer() -> None:
    table = wroc.score_counts(rows(), "y", "s", by="g").filter(pl.col("score").is_not_null())
    most = table.with_columns(
        pl.col("^(n|w|w2|w3)_(pos|neg)$").cast(pl.Float64) * float(2**46)
    ).with_columns(pl.col("n_pos", "n_neg").cast(pl.Int64))
    summary = wroc.from_counts(most).summary()
    assert summary["n"].item() == most.select(pl.sum_horizontal("n_pos", "n_neg")).sum().item()
    with pytest.raises(InvalidOperationError, match="rows or fewer in all; found more"):
        wroc.from_counts(pl.concat([most.with_columns(part=part) for part in range(3)]))


@pytest.mark.parametrize("value", ['say "so"', "two\nlines", "x" * 500, None])
def test_values_of_groups_leave_a_message_on_one_line(value: str | None) -> None:
    table = changed(counts(), g=value, n_pos=-1)
    with pytest.raises(InvalidOperationError, match=r"^`counts` must .* score 0\.4375$") as error:
        wroc.from_counts(table)
    assert len(str(error.value)) < 250


@pytest.mark.parametrize(
    "key",
    sweep(
        [
            pl.col("g").cast(pl.Categorical),
            pl.col("g").cast(pl.Enum(["a", "b"])),
            pl.col("g").cast(pl.Binary),
            pl.concat_list("g", "g"),
            pl.struct("g"),
            (pl.col("g") == "a"),
            pl.when(pl.col("g") == "a").then(NAN),
            pl.lit(0).cast(pl.Datetime("us", "UTC")),
            pl.lit(None),
        ],
        fast=4,
    ),
    ids=str,
)
def test_groups_of_any_type_are_named_where_that_can_be(key: pl.Expr) -> None:
    honest = wroc.score_counts(rows(), "y", "s", by=key.alias("k"))
    expected = wroc.summary(rows(), "y", "s", by=key.alias("k"))
    found = wroc.from_counts(honest.lazy()).summary(by="k").collect()
    assert_frame_equal(found, expected, rel_tol=1e-11)
    with pytest.raises(InvalidOperationError, match=r"^`counts` must .* in row 2 "):
        wroc.from_counts(changed(honest, n_pos=-1))


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda table: table.with_columns(bins=64), "found no 'score_low' in"),
        (lambda table: table.with_columns(score_low=0.1), "found 'score_low' and 'score'"),
        (lambda table: table.drop("w3_neg"), "found no 'w3_neg' in"),
        (lambda table: table.rename({"n_pos": "N_POS"}), "found no 'n_pos' in"),
        (lambda table: table.with_columns(n_pos=pl.lit(value=True)), "'n_pos' of type Boolean"),
        (lambda table: table.with_columns(pl.col("score").cast(pl.String)), "'score' of type Str"),
        (lambda _: counts(16).with_columns(score=0.1), "found 'score' and 'bins'"),
        (lambda _: pl.DataFrame(), "found no 'score' in"),
    ],
)
def test_other_columns_are_refused(
    change: Callable[[pl.DataFrame], pl.DataFrame], found: str
) -> None:
    for frame in (change(counts()), change(counts()).lazy()):
        with pytest.raises(ValueError, match=f"^`counts` must .*{found}"):
            wroc.from_counts(frame)


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt64, pl.Int128, pl.Float32, pl.Decimal(20, 0)])
def test_other_types_of_the_same_numbers_are_the_same(dtype: pl.DataType) -> None:
    honest = wroc.score_counts(rows(), "y", "s", by="g")
    sums = pl.col("^(n|w|w2|w3)_(pos|neg|missing)$").cast(dtype)
    expected = wroc.from_counts(honest).summary(by="g")
    found = wroc.from_counts(honest.with_columns(sums)).summary(by="g")
    assert_frame_equal(found, expected)


def test_counts_of_nothing_are_counts() -> None:
    nothing = counts().clear()
    assert wroc.from_counts(nothing).summary(by="g").is_empty()
    assert wroc.merge_counts([nothing, counts()]).height == counts().height


def test_stacked_tables_are_refused_unless_a_column_tells_them_apart() -> None:
    stacked = pl.concat([counts(), counts()])
    with pytest.raises(InvalidOperationError, match="group once, as from `merge_counts`; found it"):
        wroc.from_counts(stacked)
    by_day = [counts().with_columns(day=day) for day in (1, 2)]
    expected = wroc.from_counts(wroc.merge_counts([counts(), counts()])).summary()
    assert_frame_equal(wroc.from_counts(pl.concat(by_day)).summary(), expected, rel_tol=1e-12)


@pytest.mark.parametrize("by", [cs.string(), cs.all(), pl.col("^g$"), pl.exclude("h")], ids=str)
def test_what_selects_groups_selects_no_sums(by: pl.Expr) -> None:
    table = wroc.from_counts(counts(bins=16))
    assert_frame_equal(table.summary(by=by), table.summary(by="g"))


# What rows may be like: any weight, squares and cubes of which may be no numbers, and any score.
WEIGHTS = st.one_of(
    st.floats(5e-324, 1e300),
    st.sampled_from([1.0, 2.0, 0.1, 1 / 3, 5e-324, 1e-310, 1e-162, 1e-155, 1e-108, 1e103, 1e155]),
)
SCORES = st.one_of(
    st.floats(allow_nan=False), st.sampled_from([0.0, -0.0, 0.5, 1.0, INF, -INF, 1e-310])
)
PARTS = st.lists(
    st.lists(st.tuples(st.booleans(), SCORES, SCORES, WEIGHTS), min_size=1, max_size=30),
    min_size=1,
    max_size=4,
)


@given(
    parts=PARTS,
    bins=st.sampled_from([None, None, 16, 4096, 2**52]),
    copies=st.sampled_from([1, 3, 1000]),
    models=st.booleans(),
    ints=st.booleans(),
)
def test_honest_counts_are_never_refused(
    parts: list[list[Any]], bins: int | None, copies: int, models: bool, ints: bool
) -> None:
    tables = []
    for part in parts:
        frame = pl.DataFrame(part, schema=["y", "s", "t", "w"], orient="row")
        frame = pl.concat([frame] * copies).with_columns(g=pl.int_range(pl.len()) % 3 // 2)
        if ints:
            frame = frame.with_columns(pl.col("s", "t").clip(-1e18, 1e18).cast(pl.Int64))
        frame = frame.with_columns(s=pl.when(pl.int_range(pl.len()) % 7 != 0).then("s"))
        score = ["s", "t"] if models else "s"
        tables.append(wroc.score_counts(frame, "y", score, weight="w", by="g", bins=bins))
    merged = wroc.merge_counts(tables)
    for other in (tables[::-1], [merged, *tables], [merged] * 5):
        merged = wroc.merge_counts(other)
        wroc.from_counts(merged)
    wroc.from_counts(wroc.merge_counts([merged], bins=16))


@pytest.mark.slow(reason="has a large table")
@pytest.mark.parametrize("weight", sweep([0.1, 1 / 3, 1.0, 1e-160, 7e102]))
@pytest.mark.parametrize("bins", sweep([None, 16]))
def test_sums_of_many_equal_weights_are_not_refused(weight: float, bins: int | None) -> None:
    many = pl.select(y=pl.int_range(1_000_000) % 2, s=pl.lit(0.5), w=pl.lit(weight))
    state = wroc.score_counts(many, "y", "s", weight="w", bins=bins)
    for _ in range(20):
        state = wroc.merge_counts([state, state, state])
    assert state["n_pos"].item() == 500_000 * 3**20
    wroc.from_counts(state)


def allowed(n: int, *sums: float) -> tuple[bool, bool]:
    """Whether some n positive weights may have such sums of powers: nearly, and exactly."""
    w, w2, w3 = (Fraction(value) for value in sums)
    verdicts = []
    for slack in (Fraction(10**6 + 1, 10**6), Fraction(1)):
        squares = w2 * n * slack >= w * w and w2 <= w * w * slack
        cubes = w3 * w * slack >= w2 * w2 and w3 * w3 <= w2**3 * slack
        verdicts.append((n > 0) == (w > 0) and squares and cubes)
    return verdicts[0], verdicts[1]


@given(
    name=st.sampled_from(MOMENTS),
    factor=st.one_of(st.floats(0.3, 3.0), st.floats(0, 1e6), st.just(1.0)),
)
def test_sums_pass_where_some_weights_have_them(name: str, factor: float) -> None:
    honest = counts()
    value = honest[name][ROW] * factor
    table = changed(honest, **{name: round(value) if name == "n_pos" else value})
    nearly, exactly = allowed(*table.select(MOMENTS).row(ROW))
    if not nearly:
        with pytest.raises(InvalidOperationError, match=f"in row {ROW} "):
            wroc.from_counts(table)
    elif exactly:
        summary = wroc.from_counts(table).summary().row(0, named=True)
        assert 0 <= summary["auc_low"] <= summary["auc"] <= summary["auc_high"] <= 1


@pytest.mark.parametrize("suffix", sweep([".csv", ".ndjson", ".parquet", ".arrow"], fast=2))
@pytest.mark.parametrize("bins", [None, 16])
def test_counts_survive_each_kind_of_file(suffix: str, bins: int | None, tmp_path: Path) -> None:
    table, file = counts(bins), tmp_path / f"counts{suffix}"
    writers = {".csv": "csv", ".ndjson": "ndjson", ".parquet": "parquet", ".arrow": "ipc"}
    getattr(table, f"write_{writers[suffix]}")(file)
    read = getattr(pl, f"read_{writers[suffix]}")(file)
    assert_frame_equal(read, table)
    assert main(["counts", str(file), "-o", str(tmp_path / "merged.parquet")]) == 0
    assert_frame_equal(pl.read_parquet(tmp_path / "merged.parquet"), table)


def parquet(table: pl.DataFrame) -> bytes:
    file = io.BytesIO()
    table.write_parquet(file)
    return file.getvalue()


@pytest.mark.parametrize("call", sweep([["counts", "-o", "x.parquet"], ["auc"]]))
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (parquet(counts())[:-100], "cannot read counts.parquet: "),
        (parquet(counts())[:50], "cannot read counts.parquet: "),
        (b"", "cannot read counts.parquet: "),
        (b"g,score\na,1\n", "cannot read counts.parquet: "),
        (parquet(counts().drop("n_neg")), "found no 'n_neg' in "),
        (parquet(counts().with_columns(bins=16)), "found no 'score_low' in"),
        (parquet(counts().with_columns(w_pos=pl.lit("1"))), "found 'w_pos' of type String in "),
        (parquet(changed(counts(), w2_pos=1e30)), "'w2_pos' that the rows and their weights allow"),
        (parquet(changed(counts(16), bins=17)), "found 17 in row 2 (counted from 0), g a, score "),
        (
            parquet(pl.concat([counts()] * 2)),
            "group once, as from polars-wroc counts; found it 2 times",
        ),
    ],
    # Not of the bytes: the last digits of sums differ between processes, and so would the names.
    ids=[
        "short",
        "shorter",
        "empty",
        "text",
        "column",
        "bins",
        "type",
        "squares",
        "other",
        "twice",
    ],
)
def test_a_damaged_file_is_one_line(
    call: list[str],
    content: bytes,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("counts.parquet").write_bytes(content)
    Path("good.parquet").write_bytes(parquet(counts()))
    for files in (["counts.parquet"], ["good.parquet", "counts.parquet"]):
        assert main([call[0], *files, *call[1:]]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert message in err
        assert err.count("\n") == 1
        assert sorted(path.name for path in tmp_path.iterdir()) == [
            "counts.parquet",
            "good.parquet",
        ]
    assert "counts.parquet" in err
