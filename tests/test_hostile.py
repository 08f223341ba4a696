"""Random calls with hostile data, names and arguments, on both engines.

Each ends in numbers that are right, or in an error that names the argument: never in NaN, in
Polars' own words or in a panic. `CASES` calls are drawn from the product of what stands below.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple, get_args

import numpy as np
import polars as pl
import polars.selectors as cs
import pytest
from conftest import Engine
from polars.testing import assert_frame_equal
from wide_tables import by_attributes

import polars_wroc as wroc

# Some of the tables have few rows.
pytestmark = [
    pytest.mark.slow(reason="calls every function hundreds of times"),
    pytest.mark.filterwarnings("ignore:limits may be too narrow"),
]

BATCHES = 10
CALLS_IN_BATCH = 75
CASES = BATCHES * CALLS_IN_BATCH
MOST_ROWS = 24

NAMES = (
    "y", "s", "w", "g", "", " ", "a.b", "a[0].b\\", "__proto__", "é\u2028", "new\nline", "`tick`",
    '"quote"', "*", "^s$", "auc", "model", "n", "value", "threshold", "mean_calibration_error",
    "tpr_low", "bin", "low", "under", "__mine", "__key_0", "__score",
)  # fmt: skip
BIG = 2**53
NUMBERS: dict[str, tuple[pl.DataType, list[Any]]] = {
    "i8": (pl.Int8(), [-128, -1, 0, 1, 127]),
    "i32": (pl.Int32(), [0, 1]),
    "i64": (pl.Int64(), [0, 1, -1, BIG, BIG + 1, BIG + 2, 2**63 - 1, -(2**63)]),
    "i128": (pl.Int128(), [0, 1, 2**100, 2**100 + 1]),
    "u8": (pl.UInt8(), [0, 1, 2, 255]),
    "u64": (pl.UInt64(), [0, 1, BIG, BIG + 1, 2**64 - 1]),
    "f32": (pl.Float32(), [0.0, 1.0, 0.1, math.nan, math.inf]),
    "f64": (pl.Float64(), [0.0, -0.0, 1.0, 0.1, 0.3, math.nan]),
    "extreme f64": (pl.Float64(), [math.inf, -math.inf, 1e308, -1e308, 5e-324, 1e-300, 0.0, 1.0]),
    "all nan": (pl.Float64(), [math.nan]),
    "zero or one": (pl.Float64(), [0.0, 1.0]),
    "probability": (pl.Float64(), [0.0, -0.0, 0.1, 0.25, 0.5, 0.75, 1 - 1e-9, 1.0]),
    "plain f64": (pl.Float64(), [0.125, 0.25, 0.5, 0.75, 2.0, 3.0]),
    "decimal": (pl.Decimal(30, 10), [Decimal(0), Decimal(1), Decimal("12345678901234567890.5")]),
}
OTHERS: dict[str, tuple[pl.DataType, list[Any]]] = {
    "bool": (pl.Boolean(), [True, False]),
    "text": (pl.String(), ["a", "b", "", "(missing)", "overall", "__proto__"]),
    "categorical": (pl.Categorical(), ["a", "b"]),
    "enum": (pl.Enum(["z", "a"]), ["z", "a"]),
    "date": (pl.Date(), [dt.date(2020, 1, 1), dt.date(1900, 1, 1)]),
    "datetime": (pl.Datetime("us", "UTC"), [dt.datetime(2020, 1, 1, tzinfo=dt.UTC)]),
    "duration": (pl.Duration(), [dt.timedelta(0), dt.timedelta(days=1)]),
    "time": (pl.Time(), [dt.time(0), dt.time(12)]),
    "binary": (pl.Binary(), [b"", b"\xff"]),
    "null": (pl.Null(), [None]),
    "list": (pl.List(pl.Int64()), [[], [1]]),
    "struct": (pl.Struct({"a": pl.Int64(), "b": pl.Float64()}), [{"a": 1, "b": 2.0}]),
    "object": (pl.Object(), [object()]),
}
KINDS = NUMBERS | OTHERS
# What is usual, so that many calls get to their numbers.
LABELS = ("bool", "i32", "zero or one")
SCORES = ("plain f64", "probability", "f64", "i64", "u64", "extreme f64", "f32", "decimal")
WEIGHTS = ("plain f64", "u8", "extreme f64")
KEYS = ("text", "probability", "f64", "all nan", "enum", "bool", "i64", "date")


class Call(NamedTuple):
    """One call: a frame, and what is passed beside it."""

    table: str
    frame: pl.DataFrame
    arguments: dict[str, Any]

    def run(self, frame: pl.DataFrame | pl.LazyFrame) -> Any:
        return TABLES[self.table](frame, **self.arguments)


def _with(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    return lambda frame, **arguments: function(frame, **arguments, **options)


def _without_label(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    def table(frame: Any, **arguments: Any) -> Any:
        used = {k: v for k, v in arguments.items() if k not in {"label", "pos_label"}}
        return function(frame, **used, **options)

    return table


def _of_counts(frame: Any, by: Any = None, **arguments: Any) -> Any:
    counts = wroc.score_counts(frame, by=by, **arguments)
    return wroc.from_counts(counts).summary(by=by)


def _at_horizon(frame: Any, label: Any, score: Any, **arguments: Any) -> Any:
    used = {k: v for k, v in arguments.items() if k in {"weight", "by"}}
    return wroc.at_horizon(frame, score, label, 0.25, competing_code=2, **used)


TABLES: dict[str, Callable[..., Any]] = {
    "at_horizon": _at_horizon,
    "summary": wroc.summary,
    "summary in bins": _with(wroc.summary, bins=32),
    "summary of counts": _of_counts,
    "score_counts": wroc.score_counts,
    "roc_curve": _with(wroc.roc_curve, band="pointwise"),
    "pr_curve": wroc.pr_curve,
    "cost_curve": wroc.cost_curve,
    "summary with areas": _with(wroc.summary, areas={"early": wroc.PartialAUC(fpr=(0.0, 0.5))}),
    "roc_point": _with(wroc.roc_point, fpr=0.25),
    "threshold_metrics": _with(wroc.threshold_metrics, threshold=0.5, level=0.9),
    "threshold_metrics by a rule": _with(
        wroc.threshold_metrics, threshold=wroc.rules.youden(), per_group=True, level=None
    ),
    "bootstrap": _with(wroc.bootstrap, metrics="roc_auc", resamples=3),
    "calibration_curve": wroc.calibration_curve,
    "calibration_curve, smooth": _with(wroc.calibration_curve, smooth=True, bins=3),
    "calibration_summary": wroc.calibration_summary,
    "calibration_test": wroc.calibration_test,
    "calibration_test at equal scores": _with(
        by_attributes(wroc.calibration_test), reference="rest"
    ),
    "decision_curve": _with(wroc.decision_curve, thresholds=0.5),
    "score_distribution": wroc.score_distribution,
    "group_gaps": _with(by_attributes(wroc.group_gaps), threshold=0.5),
    "fairness": _with(by_attributes(wroc.fairness), threshold=0.5),
    "impact_ratios": _without_label(
        by_attributes(wroc.impact_ratios), threshold=0.5, favorable="selected"
    ),
    "impact_ratios above the median": _without_label(
        by_attributes(wroc.impact_ratios), threshold="median", favorable="selected"
    ),
    "group_gaps of mean scores": _without_label(
        by_attributes(wroc.group_gaps), metrics=["standardized_mean_difference"]
    ),
    "expected_metrics": _with(wroc.expected_metrics, probability=pl.lit(0.3), threshold=0.5),
    "worst_segments": _with(
        by_attributes(wroc.worst_segments), threshold=0.5, favorable="selected", min_rows=1
    ),
    "cross_auc": wroc.cross_auc,
    "cross_auc against the rest": _with(wroc.cross_auc, against="rest"),
    "equalized_thresholds": wroc.equalized_thresholds,
    "abroca_test": _with(wroc.abroca_test, permutations=5),
}
NEED_GROUPS = {
    "calibration_test at equal scores", "group_gaps", "fairness", "cross_auc",
    "cross_auc against the rest", "equalized_thresholds", "abroca_test", "impact_ratios",
    "impact_ratios above the median", "group_gaps of mean scores", "worst_segments",
}  # fmt: skip
ARGUMENT = re.compile(
    r"`(frame|label|score|weight|by|attributes|cluster|pos_label|threshold|thresholds|reference|max_pairs|"
    r"max_groups|counts|permutations|known|time|event|event_code|competing_code)`"
)


def column(random: np.random.Generator, kind: str, rows: int) -> pl.Series:
    """Draw values of a kind, some of them null."""
    dtype, values = KINDS[kind]
    drawn = [values[i] for i in random.integers(0, len(values), rows)]
    if random.random() < 0.3:
        drawn = [None if random.random() < 0.2 else value for value in drawn]
    return pl.Series(drawn, dtype=dtype, strict=False)


def passed(random: np.random.Generator, name: str) -> Any:
    """Name a column in one of the ways that callers may try."""
    ways: list[Any] = [
        pl.col(name) if name not in {"*", "^s$"} else name,
        cs.by_name(name),
        pl.col(name).head(2) if name not in {"*", "^s$"} else 7,
        cs.starts_with("nothing starts like this"),
        pl.col(name).drop_nulls() if name not in {"*", "^s$"} else object(),
        "no such column",
        pl.lit(1),
        pl.all(),
        [],
        pl.Series([1, 2]),
    ]
    return name if random.random() < 0.93 else ways[random.integers(0, len(ways))]


def call(random: np.random.Generator) -> Call:
    """Draw a call."""
    table = str(random.choice([*TABLES]))
    rows = int(random.integers(0, MOST_ROWS))
    usual = {"label": LABELS, "score": SCORES, "weight": WEIGHTS, "by": KEYS}
    names = random.choice(np.array(NAMES, dtype=object), len(usual), replace=False)
    columns, arguments = {}, {}
    for name, (argument, kinds) in zip(names, usual.items(), strict=True):
        kind = random.choice([*KINDS] if random.random() < 0.06 else kinds)
        columns[str(name)] = column(random, str(kind), rows)
        if argument == "weight" and random.random() < 0.4:
            continue
        if argument == "by" and table not in NEED_GROUPS and random.random() < 0.3:
            continue
        arguments[argument] = passed(random, str(name))
    return Call(table, pl.DataFrame(columns), arguments)


def outcome(run: Callable[[], Any], tries: int = 3) -> pl.DataFrame | Exception:
    """Return the table, or the error if it is one that callers may meet."""
    try:
        table: pl.DataFrame = run()
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        return error
    except pl.exceptions.PanicException as error:
        # Polars 2.1 panics at times while it stops a query for an error: a race of its own threads.
        if tries > 1 and "PortState" in str(error):
            return outcome(run, tries - 1)
        return RuntimeError(f"a panic: {error}")
    return table


def outcomes(one: Call) -> Iterator[pl.DataFrame | Exception]:
    """Run a call on a frame, and lazily on both engines."""
    yield outcome(lambda: one.run(one.frame))
    for engine in get_args(Engine):
        yield outcome(partial(_collected, one, engine))


def _collected(one: Call, engine: Engine) -> Any:
    return one.run(one.frame.lazy()).collect(engine=engine)


def check_table(table: pl.DataFrame, one: Call) -> None:
    """Look for what must be in no table."""
    keys = one.frame.columns
    named = [f"{side}{key}" for key in keys for side in ("", "positive_", "negative_")]
    numbers = table.select(cs.float() - cs.by_name(named, require_all=False))
    undefined = [column.name for column in numbers if column.is_nan().any()]
    assert not undefined, (
        f"{undefined} in {one.table}({one.arguments}) of {one.frame.to_dict(as_series=False)}"
    )
    for name in ("auc", "tpr", "fpr", "ppv"):
        if name in numbers.columns:
            assert table[name].is_between(0, 1).all(), name


def areas(one: Call) -> dict[Any, float | None]:
    """Count pairs in exact numbers: the AUC of each group by its definition."""
    by = one.arguments.get("by")
    groups: dict[Any, list[tuple[Any, Any, Fraction]]] = defaultdict(list)
    for row in one.frame.iter_rows(named=True):
        weight = row[one.arguments["weight"]] if "weight" in one.arguments else 1
        if weight == 0:
            continue
        key = None if by is None else shown(row[by])
        label, score = row[one.arguments["label"]], row[one.arguments["score"]]
        missing = label is None or weight is None or score is None or score != score  # noqa: PLR0124
        if missing or label != label:  # noqa: PLR0124
            groups[key] += []
        else:
            groups[key].append((label == 1, score, Fraction(weight)))
    return {key: area(rows) for key, rows in groups.items()}


def area(rows: list[tuple[Any, Any, Fraction]]) -> float | None:
    """Compare each positive with each negative."""
    positives = [row[1:] for row in rows if row[0]]
    negatives = [row[1:] for row in rows if not row[0]]
    pairs = sum(w * v for _, w in positives for _, v in negatives)
    halves = sum(w * v * ((p > n) + (p >= n)) for p, w in positives for n, v in negatives)
    return float(halves / pairs / 2) if pairs else None


def shown(value: Any) -> Any:
    """Tell values of groups apart as the tables do."""
    return repr(value + 0.0 if isinstance(value, float) else value)


def check_areas(table: pl.DataFrame, one: Call) -> None:
    """Compare AUCs with their definition."""
    by = one.arguments.get("by")
    expected = areas(one)
    for row in table.iter_rows(named=True):
        key = None if by is None else shown(row[by])
        if row["auc"] is not None:
            assert row["auc"] == pytest.approx(expected[key], abs=1e-9)
    assert by is None or {shown(key) for key in table[by]} == {*expected}


@pytest.mark.parametrize("batch", range(BATCHES))
def test_a_call_gives_right_numbers_or_names_the_argument(batch: int) -> None:
    random = np.random.default_rng([2026, batch])
    for _ in range(CALLS_IN_BATCH):
        one = call(random)
        eager, *lazy = outcomes(one)
        told = f"{one.table}({one.arguments}) of {one.frame.schema}"
        for each in (eager, *lazy):
            if isinstance(each, Exception):
                assert ARGUMENT.search(str(each)), f"{told}: {type(each)} {each}"
                assert "panic" not in str(each).lower(), told
            else:
                check_table(each, one)
        kinds = {isinstance(each, Exception) for each in (eager, *lazy)}
        assert len(kinds) == 1, f"{told}: {[str(each) for each in (eager, *lazy)]}"
        if isinstance(eager, Exception):
            continue
        for each in lazy:
            assert isinstance(each, pl.DataFrame)
            assert_frame_equal(each, eager, abs_tol=1e-9, rel_tol=1e-9)
        if one.table == "summary" and all(isinstance(v, str) for v in one.arguments.values()):
            check_areas(eager, one)


def test_enough_calls_get_to_their_numbers() -> None:
    """A generator of errors alone would say little."""
    random = np.random.default_rng([2026, 0])
    drawn = [call(random) for _ in range(CALLS_IN_BATCH)]
    done = [isinstance(outcome(partial(one.run, one.frame)), pl.DataFrame) for one in drawn]
    assert sum(done) > len(done) / 4
