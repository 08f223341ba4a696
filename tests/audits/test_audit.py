"""The audit: every number is that of the function for it, taken alone for each attribute."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import polars as pl
import pytest
from families import CALIBRATION, assert_one_family
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal, assert_series_equal
from sweeps import sweep
from wide_tables import segments_of

import polars_wroc as wroc

Options: TypeAlias = dict[str, Any]

ROWS = 700
CROSS = " \N{MULTIPLICATION SIGN} "
SIZES = ["small", "large", "medium"]
ATTRIBUTES = ["g", "age", "flag", "size", "kind"]
# What some of the functions do not take.
OF_SUMMARY = ("weight", "pos_label", "level")
DESIGN = ("design",)
LIMITS = ("threshold",)
SELECTION = [f"selection_rate{end}" for end in ("", "_low", "_high")]


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    """700 rows with tied scores, weights of zero, and a gap in every column."""
    random = np.random.default_rng(1944)
    positive = random.random(ROWS) < 0.4

    def some(values: Sequence[Any]) -> list[Any]:
        return [values[k] for k in random.integers(len(values), size=ROWS)]

    def gaps(every: int) -> pl.Expr:
        return pl.int_range(pl.len()) % every != 0

    frame = pl.DataFrame(
        {
            "g": some(["f", "m", "x", None]),
            "age": some([10, 2, 33, None]),
            "flag": some([True, False, None]),
            "size": pl.Series(some([*SIZES, None]), dtype=pl.Enum(SIZES)),
            "kind": pl.Series(some(["b", "a", None]), dtype=pl.Categorical),
            "most": np.where(random.random(ROWS) < 0.95, "a", random.choice(["b", "c"], ROWS)),
            "y": positive,
            "s": np.round(random.normal(size=ROWS) + positive, 1),
            "t": np.round(random.normal(size=ROWS) + positive / 2, 1),
            "w": random.lognormal(size=ROWS) * (random.random(ROWS) < 0.9),
            "k": random.integers(0, 4, ROWS),
            "c": random.integers(0, 60, ROWS),
            "h": random.integers(0, 5, ROWS),
        }
    )
    return frame.with_columns(
        pl.when(gaps(23)).then("y"),
        pl.when(gaps(29)).then("s").otherwise(float("nan")),
        pl.when(gaps(31)).then("t"),
        pl.when(gaps(37)).then("w"),
    ).with_columns(
        one=pl.when("y").then(pl.lit("all positive")).otherwise("g"),
        sign=pl.when("y").then(1).when(~pl.col("y")).then(-1),
        text=pl.when("y").then(pl.lit("bad")).when(~pl.col("y")).then(pl.lit("good")),
        ends=pl.when(pl.col("s") > 1.5)
        .then(math.inf)
        .when(pl.col("s") < -0.5)
        .then(-math.inf)
        .otherwise("s"),
    )


def named(table: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Put the names that an audit gives in the place of the keys."""
    texts = [table[key].cast(pl.String).to_list() for key in keys]
    segments = texts[0] if len(keys) == 1 else ["overall"] * table.height
    if len(keys) > 1:
        crossed = zip(*texts, strict=True)
        segments = [
            ", ".join("(missing)" if text is None else text for text in texts) for texts in crossed
        ]
    return table.select(
        pl.lit(CROSS.join(keys) or "overall").alias("attribute"),
        pl.Series("segment", segments, dtype=pl.String),
        pl.exclude(keys),
    )


def ways(by: Sequence[str], options: Options) -> list[list[str]]:
    crossed = [list(by)] if options.get("intersections") else []
    return [*([key] for key in by), *crossed]


def chosen(options: Options, names: Sequence[str]) -> Options:
    return {name: value for name, value in options.items() if name in names}


def count_selected(
    frame: pl.DataFrame, model: str, keys: list[str], options: Options, threshold: float
) -> pl.DataFrame:
    """Count the rows of each segment that are selected, whether they have a label or not."""
    given = options.get("weight")
    # The only frequencies of these rows are in a column of their own.
    is_frequency = not (given is None or isinstance(given, str))
    weight = pl.lit(1.0) if given is None else pl.col("k" if is_frequency else given)
    decided = frame.filter(weight > 0, pl.col(model).is_not_null(), pl.col(model).is_not_nan())
    number = weight if is_frequency else pl.lit(1)
    is_selected = pl.col(model) >= threshold
    table = decided.with_columns(weight=weight, number=number).group_by(keys or pl.lit(0))
    return table.agg(
        n_decided=pl.col("number").sum(),
        n_selected=pl.col("number").filter(is_selected).sum(),
        rate=pl.col("weight").filter(is_selected).sum() / pl.col("weight").sum(),
    )


def measure_selection(
    frame: pl.DataFrame,
    label: str,
    thresholds: dict[str, float],
    keys: list[str],
    options: Options,
) -> pl.DataFrame:
    """Return the selection rate of all rows of each segment, with limits, by each score."""
    # A selection rate is the same whatever the labels are.
    labeled = frame.with_columns(pl.col(label).fill_null(pl.col(label).min()))
    call: Options = {"level": 0.95} | chosen(options, (*OF_SUMMARY, *DESIGN))
    tables = []
    for model, threshold in thresholds.items():
        found = wroc.threshold_metrics(
            labeled,
            label,
            model,
            threshold=threshold,
            by=keys or None,
            metrics="selection_rate",
            **call,
        )
        counted = count_selected(frame, model, keys, options, threshold)
        if keys:
            table = found.join(counted, on=keys, how="left", nulls_equal=True)
        else:
            table = pl.concat([found, counted], how="horizontal")
        rate = table["rate"].rename("selection_rate")
        assert_series_equal(table["selection_rate"], rate, abs_tol=1e-10)
        numbers = pl.col("n_decided", "n_selected").fill_null(0).cast(pl.Int64)
        tables.append(table.select(*keys, pl.lit(model).alias("model"), *SELECTION, numbers))
    return pl.concat(tables)


def join_groups(table: pl.DataFrame, other: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Add the columns of another table of the same groups."""
    on = [*keys, *(["model"] if "model" in table.columns else [])]
    if not on:
        return pl.concat([table, other], how="horizontal")
    return table.join(other, on=on, how="left", nulls_equal=True, maintain_order="left")


def assert_segments(
    found: wroc.Audit, frame: pl.DataFrame, label: str, score: Any, by: list[str], options: Options
) -> None:
    of_summary = chosen(options, (*OF_SUMMARY, "method", *DESIGN))
    limits = chosen(options, LIMITS)
    models = [score] if isinstance(score, str) else score
    thresholds: dict[str, float] = {}
    tables = []
    for keys in ([], *ways(by, options)):
        table = wroc.summary(frame, label, score, by=keys or None, **of_summary, diagnostics=True)
        few = pl.min_horizontal("n_pos", "n_neg") < options.get("min_rows", 30)
        table = table.with_columns(small=few)
        if limits:
            call: Options = {"by": keys or None, "level": 0.95} | chosen(options, OF_SUMMARY)
            call |= limits | chosen(options, DESIGN)
            decided = wroc.threshold_metrics(frame, label, score, **call).drop(SELECTION)
            new = [name for name in decided.columns if name not in [*keys, "model"]]
            assert not set(new) & set(table.columns)
            if not keys:
                thresholds = dict(zip(models, decided["threshold"], strict=True))
            selection = measure_selection(frame, label, thresholds, keys, options)
            if "model" not in table.columns:
                selection = selection.drop("model")
            table = join_groups(join_groups(table, decided, keys), selection, keys)
        tables.append(named(table, keys))
    segments = segments_of(found)
    expected = pl.concat(tables)
    shown = {"n", "n_pos", "n_neg", "n_missing", "w_pos", "w_neg", "small"}
    values = {"auc", "auc_low", "auc_high", "average_precision"}
    if limits:
        shown |= {"threshold", "tp", "fp", "fn", "tn", "n_decided", "n_selected"}
        rates = ("selection_rate", "tpr", "fpr", "ppv", "npv", "accuracy")
        values |= {f"{rate}{end}" for rate in rates for end in ("", "_low", "_high")}
    keys = [name for name in ("attribute", "segment", "model") if name in segments.columns]
    names = [*keys, *sorted(shown | values)]
    assert_frame_equal(segments.select(names), expected.select(names), abs_tol=1e-10)


def assert_curves(
    found: wroc.Audit, frame: pl.DataFrame, label: str, score: Any, by: list[str], options: Options
) -> None:
    call = chosen(options, ("weight", "pos_label"))
    tables = [
        named(wroc.roc_curve(frame, label, score, by=keys or None, max_points=200, **call), keys)
        for keys in ([], *ways(by, options))
    ]
    expected = pl.concat(tables)
    assert_frame_equal(found.curves.select(expected.columns), expected, abs_tol=1e-10)


def assert_gaps(
    found: wroc.Audit, frame: pl.DataFrame, label: str, score: Any, by: list[str], options: Options
) -> None:
    """Compare rows with those of the function, whose adjustment is done again by hand."""
    names = (*OF_SUMMARY, *DESIGN, "threshold", "reference", "adjust", "intersections")
    call = {"min_rows": options.get("min_rows", 30)} | chosen(options, names)
    gaps = wroc.group_gaps(frame, label, score, attributes=by, **call)
    metrics = gaps["metric"].unique().to_list()
    table = found.table.filter(pl.col("metric").is_in(metrics), pl.col("attribute") != "overall")
    assert table.height == gaps.height
    # Of one class alone a precision is 0 or 1 whatever the decisions.
    both = table.select(pl.col("reason").ne_missing("one class only")).to_series()
    # Of two segments an audit tells of the worse off; its values have limits by any method.
    other = ["reason", "value_low", "value_high"]
    calibrated = not found.table.filter(pl.col("metric").is_in([*CALIBRATION])).is_empty()
    if calibrated or not both.all():
        # Tests of calibration are adjusted for too, and those of such precisions are not.
        other += ["p_adjusted", "detectable", "verdict"]
    columns = [name for name in gaps.columns if name not in other]
    known = gaps.filter(both).select(columns)
    assert_frame_equal(table.filter(both).select(columns), known, abs_tol=1e-10)
    assert_one_family(found)


def assert_fairness(
    found: wroc.Audit, frame: pl.DataFrame, label: str, score: Any, by: list[str], options: Options
) -> None:
    call = chosen(options, (*OF_SUMMARY, *DESIGN, "threshold", "intersections"))
    table = wroc.fairness(frame, label, score, attributes=by, min_rows=0, **call)
    # Spreads that tell nothing, since all rows have the same decision, say so in audits too.
    tells_nothing = pl.col("reason").is_in(["nobody is selected", "everybody is selected"])
    known = pl.coalesce("gap", "ratio").is_not_null() | tells_nothing
    keys = ["attribute", "model", "metric"]
    # Only an audit has the gaps of AUCs, and their tests.
    p_value = pl.when(pl.col("metric") != "auc_difference").then("p_value")
    expected = table.filter(known).sort(keys).with_columns(p_value.alias("p_value"))
    rows = found.table.filter(pl.col("metric").is_in(table["metric"].to_list()))
    rows = rows.select(table.columns).sort(keys).with_columns(p_value.alias("p_value"))
    # In an audit too small a share of the weight leaves groups out of demographic parity.
    reason = pl.col("reason").str.starts_with("share below")
    small = found.table.filter(pl.col("metric") == "impact_ratio", reason)
    parity = pl.col("metric").str.starts_with("demographic_parity")
    rows, expected = (
        pl.concat(
            [
                each.filter(~parity),
                each.filter(parity).join(small, on=["attribute", "model"], how="anti"),
            ]
        ).sort(keys)
        for each in (rows, expected)
    )
    assert_frame_equal(rows, expected, abs_tol=1e-10)


def assert_sums_up(
    frame: pl.DataFrame, label: str, score: Any, by: list[str], **options: Any
) -> wroc.Audit:
    """Check every table of an audit against the functions that it stands for."""
    good: Options = {"favorable": "selected"} if chosen(options, LIMITS) else {}
    found = wroc.audit(frame, label, score, attributes=by, **good, **options)
    given = found, frame, label, score, by, options
    assert_segments(*given)
    assert_curves(*given)
    if "threshold" in options or not chosen(options, LIMITS):
        assert_gaps(*given)
    if "threshold" in options:
        # `fairness` compares groups of any size.
        free = found
        if options.get("min_rows") != 0:
            free = wroc.audit(
                frame, label, score, attributes=by, **good, **options | {"min_rows": 0}
            )
        assert_fairness(free, *given[1:])
    return found


# Fairness metrics are compared in an audit of segments of any size, which needs to be made anew.
ANY_SIZE: Options = {"min_rows": 0}
CALLS: dict[str, tuple[str, Any, list[str], Options]] = {
    "neither weights nor threshold": ("y", "s", ["g", "age"], {}),
    "every type": ("y", "s", ATTRIBUTES, {"weight": "w", "threshold": 0.5}),
    "scores": ("y", ["t", "s"], ["g", "age"], {"weight": "w", "threshold": 0.5}),
    "one score in a list": ("y", ["s"], ["g"], {"threshold": 0.5, **ANY_SIZE}),
    "labels of -1 and 1": ("sign", "s", ["g"], {"weight": "w", "threshold": 0, **ANY_SIZE}),
    "positive label": ("text", "s", ["g"], {"pos_label": "bad", "threshold": 0.5, **ANY_SIZE}),
    "negative label": ("y", "s", ["g"], {"pos_label": False, "threshold": 0.5, **ANY_SIZE}),
    "clusters": ("y", ["s", "t"], ["g", "age"], {"weight": "w", "design": "c"}),
    "clusters and decisions": (
        "y",
        "s",
        ["g", "age"],
        {"weight": "w", "design": "c", "threshold": 0.5, **ANY_SIZE},
    ),
    "survey": (
        "y",
        ["s", "t"],
        ["g", "most"],
        {"weight": "w", "design": wroc.Survey("c", strata="h", lonely="adjust"), "threshold": 0.5}
        | {"reference": "overall", **ANY_SIZE},
    ),
    "strata": (
        "y",
        "s",
        ["g", "flag"],
        {"design": wroc.Survey(strata="size", fpc=pl.lit(0.3)), "level": 0.8, "threshold": 0.5},
    ),
    "frequencies": (
        "y",
        "s",
        ["g", "flag"],
        {"weight": wroc.frequency("k"), "threshold": 0.5},
    ),
    "level": (
        "y",
        "s",
        ["g"],
        {"level": 0.8, "threshold": 0.5, **ANY_SIZE},
    ),
    "not adjusted": ("y", "s", ["g"], {"adjust": "none", "threshold": 0.5, **ANY_SIZE}),
    "nearly all rows": ("y", ["s", "t"], ["most", "g"], {"weight": "w", "min_rows": 3}),
    "one class": ("y", "s", ["one", "g"], {"weight": "w", "threshold": 0.5, **ANY_SIZE}),
    "infinite scores": (
        "y",
        ["ends", "s"],
        ["g"],
        {"weight": "w", "threshold": 0.5, **ANY_SIZE},
    ),
    "two crossed": (
        "y",
        ["s", "t"],
        ["g", "age"],
        {"weight": "w", "threshold": 0.5, **ANY_SIZE},
    ),
    "three crossed": (
        "y",
        "s",
        ["size", "flag", "kind"],
        {"weight": "w", "threshold": 0.5, **ANY_SIZE},
    ),
    "rule": ("y", ["s", "t"], ["g", "age"], {"weight": "w", "threshold": wroc.rules.youden()}),
    "limit": ("y", "s", ["g", "flag"], {"weight": "w", "threshold": wroc.rules.max_fpr(0.2)}),
}
CROSSED = (
    "two crossed",
    "three crossed",
    "nearly all rows",
    "one class",
    "clusters",
    "survey",
    "limit",
)


@pytest.mark.parametrize("name", sweep(CALLS, fast=1))
def test_tables_are_those_of_the_functions(rows: pl.DataFrame, name: str) -> None:
    label, score, by, options = CALLS[name]
    assert_sums_up(rows, label, score, by, **options, intersections=name in CROSSED)


@pytest.mark.slow(reason="makes several audits")
@pytest.mark.parametrize(("reference", "score"), [("rest", ["s", "t"]), ("overall", "s")])
def test_gaps_of_each_reference(rows: pl.DataFrame, reference: str, score: Any) -> None:
    by = ["g", "most"]
    options: Options = {"weight": "w", "threshold": 0.5, "min_rows": 5, "reference": reference}
    found = wroc.audit(
        rows, "y", score, attributes=by, favorable="selected", intersections=True, **options
    )
    assert_gaps(found, rows, "y", score, by, options | {"intersections": True})


SCORES = [-math.inf, 0.0, 1.0, 2.0, 3.0, math.inf, math.nan, None]


@st.composite
def frames(draw: st.DrawFn) -> pl.DataFrame:
    """A few rows, most of them tied, where anything may be missing."""
    values = {
        "g": st.sampled_from(["a", "b", "c", None]),
        "h": st.sampled_from([2, 10]),
        "y": st.sampled_from([0, 0, 0, 1, 1, 1, None]),
        "s": st.sampled_from(SCORES),
        "t": st.sampled_from(SCORES),
        "w": st.sampled_from([0.0, 1.0, 2.0, 3.0, None]),
    }
    rows = draw(st.lists(st.tuples(*values.values()), min_size=12, max_size=40))
    types = [pl.String, pl.Int64, pl.Int64, pl.Float64, pl.Float64, pl.Float64]
    schema = dict(zip(values, types, strict=True))
    return pl.DataFrame(rows, schema=schema, orient="row")


# Two scores in one audit are two cases for the price of one.
@pytest.mark.slow(reason="tries many random rows")
@pytest.mark.parametrize("reference", ["rest", "overall"])
@settings(max_examples=1, phases=[Phase.explicit, Phase.generate])
@given(frame=frames())
def test_tables_of_few_rows(frame: pl.DataFrame, reference: str) -> None:
    complete = frame.drop_nulls(["y", "s", "w"]).filter(pl.col("s").is_not_nan(), pl.col("w") > 0)
    assume(not complete.is_empty())
    options: Options = {"weight": "w", "threshold": 1.0, "min_rows": 0, "reference": reference}
    assert_sums_up(frame, "y", ["s", "t"], ["g", "h"], **options, intersections=True)
