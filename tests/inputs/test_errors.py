"""Every refusal names the argument, the rule and what was found."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TypeAlias

import fairlearn.metrics
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.metrics
from conftest import INVALID_VALUES
from polars.exceptions import ColumnNotFoundError, InvalidOperationError
from polars.testing import assert_frame_equal
from sweeps import sweep
from wide_tables import by_attributes

import polars_wroc as wroc

Engine: TypeAlias = Literal["in-memory", "streaming"]
Call: TypeAlias = Callable[[Any], Any]

# Arguments of the wrong type are the subject here.
UNTYPED: Any = wroc

DATA = pl.DataFrame(
    {
        "y": [0, 1, 0, 1],
        "s": [0.1, 0.2, 0.3, 0.4],
        "w": [1.0, 2.0, 1.0, 1.0],
        "g": ["a", "a", "b", "b"],
        "text": ["no", "yes", "no", "yes"],
        "level": pl.Series(["no", "yes", "no", "yes"], dtype=pl.Enum(["no", "yes"])),
        "two": [0, 1, 2, 1],
        "mixed": [0, 1, -1, 1],
        "half": [0.0, 1.0, 0.5, 1.0],
        "negative": [1.0, -2.0, 1.0, 1.0],
        "nan": [1.0, float("nan"), 1.0, 1.0],
        "infinite": [1.0, float("inf"), 1.0, 1.0],
        "varying": [0.1, 0.2, 0.3, 0.4],
    }
)

LABEL = "`label` must be Boolean, hold 0 and 1 or -1 and 1, or come with `pos_label`; "
WEIGHT = "`weight` must be finite and zero or more; "

# Refused when the plan is made, for a DataFrame and for a LazyFrame alike.
AT_ONCE: dict[str, tuple[Call, type[Exception], str]] = {
    "text label": (
        lambda f: UNTYPED.summary(f, "text", "s"),
        TypeError,
        LABEL + r"found column 'text' of type String(: pass .*)?$",
    ),
    "label of no column": (
        lambda f: UNTYPED.summary(f, 1, "s"),
        TypeError,
        r"^`label` must be a column name or a Polars expression; found 1 of type int$",
    ),
    "label of two columns": (
        lambda f: UNTYPED.summary(f, pl.col("y", "two"), "s"),
        ValueError,
        r"^`label` must be one column; found 2: y, two$",
    ),
    "positive label of another type": (
        lambda f: UNTYPED.summary(f, "text", "s", pos_label=1),
        TypeError,
        r"^`pos_label` must be a possible value of the label; found 1 for column 'text' of type St",
    ),
    "positive label that is no category": (
        lambda f: UNTYPED.summary(f, "level", "s", pos_label="maybe"),
        TypeError,
        r"^`pos_label` must be a possible value of the label; found 'maybe' for column 'level'",
    ),
    "text score": (
        lambda f: UNTYPED.summary(f, "y", "text"),
        TypeError,
        r"^`score` must be numeric; found column 'text' of type String$",
    ),
    "text score among several": (
        lambda f: UNTYPED.summary(f, "y", ["s", "text"]),
        TypeError,
        r"^`score` must be numeric; found column 'text' of type String$",
    ),
    "score twice": (
        lambda f: UNTYPED.summary(f, "y", ["s", "s"]),
        ValueError,
        r"^`score` must not name a column twice; found 's' twice$",
    ),
    "no score": (
        lambda f: UNTYPED.summary(f, "y", []),
        TypeError,
        r"^`score` must be one or several column names or expressions; found \[\] of type list$",
    ),
    "text weight": (
        lambda f: UNTYPED.summary(f, "y", "s", weight="text"),
        TypeError,
        r"^`weight` must be numeric; found column 'text' of type String$",
    ),
    "weight of no column": (
        lambda f: UNTYPED.summary(f, "y", "s", weight=1),
        TypeError,
        r"^`weight` must be a column name or a Polars expression; found 1 of type int$",
    ),
    "by twice": (
        lambda f: UNTYPED.summary(f, "y", "s", by=["g", pl.col("text").alias("g")]),
        ValueError,
        r"^`by` must not name a column twice; found 'g' twice$",
    ),
    "by nothing": (
        lambda f: UNTYPED.summary(f, "y", "s", by=[]),
        TypeError,
        r"^`by` must be one or several column names or expressions; found \[\] of type list$",
    ),
    "by named like the models": (
        lambda f: UNTYPED.summary(f, "y", ["s"], by=pl.col("g").alias("model")),
        ValueError,
        r"^`by` must not take the name of a result column; found 'model'",
    ),
    "no thresholds": (
        lambda f: UNTYPED.threshold_metrics(f, "y", "s", threshold=[]),
        ValueError,
        r"^`threshold` must hold at least one number; found none$",
    ),
    "NaN threshold": (
        lambda f: UNTYPED.threshold_metrics(f, "y", "s", threshold=[0.5, float("nan")]),
        ValueError,
        r"^`threshold` must be a number; found nan$",
    ),
    "null threshold": (
        lambda f: UNTYPED.threshold_metrics(f, "y", "s", threshold=[None]),
        TypeError,
        r"^`threshold` must be a number; found None of type NoneType$",
    ),
    "text threshold": (
        lambda f: f.select(UNTYPED.confusion_matrix("y", "s", threshold="varying")),
        TypeError,
        r"^`threshold` must be a number, a .* expression or a rule, .*; found 'varying'",
    ),
    "threshold that is true": (
        lambda f: f.select(UNTYPED.confusion_matrix("y", "s", threshold=True)),
        TypeError,
        r"^`threshold` must be a number, a .* expression or a rule, .*; found True of type bool$",
    ),
    "NaN threshold of an expression": (
        lambda f: f.select(UNTYPED.confusion_matrix("y", "s", threshold=float("nan"))),
        ValueError,
        r"^`threshold` must be a number; found nan$",
    ),
    "comparison of one score": (
        lambda f: UNTYPED.compare(f, "y", ["s"]),
        ValueError,
        r"^`score` must hold two or more columns to compare; found \['s'\]$",
    ),
    "comparison named like the models": (
        lambda f: UNTYPED.compare(f, "y", ["s", "w"], by=pl.col("g").alias("model")),
        ValueError,
        r"^`by` must not take the name of a result column; found 'model'",
    ),
    "reference of two groups": (
        lambda f: UNTYPED.group_gaps(f, "y", "s", attributes="g", reference=("a", "b")),
        ValueError,
        r"^`reference` must give 'g' \(String\) one of its values or the name of a segment; found",
    ),
    "reference of two attributes": (
        lambda f: UNTYPED.group_gaps(f, "y", "s", attributes=["g", "text"], reference="a"),
        ValueError,
        r"^`reference` must .* map attributes to segments where there are several; found 'a'$",
    ),
    "cluster of no column": (
        lambda f: UNTYPED.summary(f, "y", "s", design=3),
        TypeError,
        r"^`design` must be a column of clusters, .*; found 3 of type int$",
    ),
    "cluster of two columns": (
        lambda f: UNTYPED.summary(f, "y", "s", design=pl.col("g", "text")),
        ValueError,
        r"^`design` must be one column; found 2: g, text$",
    ),
}


def _compare(frame: Any, label: Any, score: Any, **options: Any) -> Any:
    return wroc.compare(frame, label, [score, "varying"], **options)


def _gaps(frame: Any, label: Any, score: Any, **options: Any) -> Any:
    everybody = pl.lit("everybody").alias("all")
    return by_attributes(wroc.group_gaps)(frame, label, score, **({"by": everybody} | options))


TABLES: dict[str, tuple[Callable[..., Any], str]] = {
    "summary": (wroc.summary, "average_precision"),
    "roc_curve": (wroc.roc_curve, "fpr"),
    "threshold_metrics": (wroc.threshold_metrics, "mcc"),
    "threshold_metrics with intervals": (partial(wroc.threshold_metrics, level=0.9), "ppv_high"),
    "summary in clusters": (partial(wroc.summary, design="g"), "auc_se"),
    "roc_curve with a band": (partial(wroc.roc_curve, band="pointwise"), "tpr_high"),
    "compare": (_compare, "model"),
    "group_gaps": (_gaps, "auc_gap_p_adjusted"),
    "roc_point": (partial(wroc.roc_point, fpr=0.5), "tpr_low"),
    "roc_point at tpr": (partial(wroc.roc_point, tpr=0.5), "fpr_high"),
    "bootstrap": (partial(wroc.bootstrap, metrics="ks", resamples=2), "n_replicates"),
    "bootstrap_replicates": (
        partial(wroc.bootstrap, metrics=["ks", "gini"], resamples=2, replicates=True),
        "gini",
    ),
}

WITH_CLUSTER = ["summary", "compare", "bootstrap", "bootstrap_replicates"]

# Refused when the plan runs, because the values decide.
AT_COLLECT: dict[str, tuple[dict[str, Any], str]] = {
    "label 2": ({"label": "two"}, LABEL + r"column 'two' holds 2(\.0)?"),
    "label one half": ({"label": "half"}, LABEL + r"column 'half' holds 0\.5"),
    "label of an expression": ({"label": pl.col("y") + 3}, LABEL + r"column 'y' holds [34](\.0)?"),
    "label 0 and -1": ({"label": "mixed"}, r"`label` must hold 0 and 1 or -1 and 1; it holds -1"),
    "negative weight": ({"weight": "negative"}, WEIGHT + r"column 'negative' holds -2\.0"),
    "NaN weight": ({"weight": "nan"}, WEIGHT + r"column 'nan' holds NaN"),
    "infinite weight": ({"weight": "infinite"}, WEIGHT + r"column 'infinite' holds inf"),
}

# A row that is missing for another reason does not hide a bad value.
BAD_AND_MISSING: dict[str, tuple[dict[str, Any], str]] = {
    "label 2 without a score": ({"y": 2, "s": None, "w": 1.0}, LABEL + "column 'y' holds 2"),
    "label 2 without a weight": ({"y": 2, "s": 0.5, "w": None}, LABEL + "column 'y' holds 2"),
    "weight -1 without a label": ({"y": None, "s": 0.5, "w": -1.0}, WEIGHT + "column 'w' holds -1"),
    "weight -1 without a score": ({"y": 1, "s": None, "w": -1.0}, WEIGHT + "column 'w' holds -1"),
}

# Refused when the expression meets the columns.
AT_SELECT: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "text label": ({"label": "text"}, TypeError, LABEL + "found column 'text' of type String"),
    "text score": (
        {"score": "text"},
        TypeError,
        "`score` must be numeric; found column 'text' of type String",
    ),
    "text weight": (
        {"weight": "text"},
        TypeError,
        "`weight` must be numeric; found column 'text' of type String",
    ),
    "positive label of another type": (
        {"label": "text", "pos_label": True},
        TypeError,
        "`pos_label` must be a possible value of the label; found True for column 'text'",
    ),
    "missing column": ({"label": "nothing"}, ColumnNotFoundError, "nothing"),
}

# Of a rate that is asked for.
BAD_RATES: list[tuple[object, type[Exception], str]] = [
    (-0.1, ValueError, r"must lie between 0 and 1; found -0\.1"),
    (1.5, ValueError, r"must lie between 0 and 1; found 1\.5"),
    ([0.5, 2], ValueError, "must lie between 0 and 1; found 2"),
    (float("nan"), ValueError, "must lie between 0 and 1; found nan"),
    ([], ValueError, "must hold at least one number; found none"),
    (True, TypeError, "must be a number; found True of type bool"),
    ([None], TypeError, "must be a number; found None of type NoneType"),
    (["x"], TypeError, "must be a number; found 'x' of type str"),
]

METRICS = ["roc_auc", "gini", "ks", "average_precision"]


def _arguments(**changed: Any) -> dict[str, Any]:
    return {"label": "y", "score": "s"} | changed


@pytest.mark.parametrize("frame", [DATA, DATA.lazy()], ids=["DataFrame", "LazyFrame"])
@pytest.mark.parametrize("name", AT_ONCE)
def test_wrong_argument_is_refused_at_once(frame: pl.DataFrame | pl.LazyFrame, name: str) -> None:
    call, error, message = AT_ONCE[name]
    with pytest.raises(error, match=message):
        call(frame)


@pytest.mark.parametrize("frame", [DATA, DATA.lazy()], ids=["DataFrame", "LazyFrame"])
@pytest.mark.parametrize("argument", ["label", "score", "weight", "by"])
@pytest.mark.parametrize("name", TABLES)
def test_missing_column_is_refused_at_once(
    frame: pl.DataFrame | pl.LazyFrame, name: str, argument: str
) -> None:
    called = "attributes" if (name, argument) == ("group_gaps", "by") else argument
    message = f"^`{called}` must name a column of the frame; found no column 'nothing' among .*'y'"
    with pytest.raises(ColumnNotFoundError, match=message):
        TABLES[name][0](frame, **_arguments(**{argument: "nothing"}))


@pytest.mark.parametrize("frame", [DATA, DATA.lazy()], ids=["DataFrame", "LazyFrame"])
@pytest.mark.parametrize("name", WITH_CLUSTER)
def test_missing_cluster_is_refused_at_once(frame: pl.DataFrame | pl.LazyFrame, name: str) -> None:
    message = "^`design` must name a column of the frame; found no column 'nothing' among .*'y'"
    with pytest.raises(ColumnNotFoundError, match=message):
        TABLES[name][0](frame, "y", "s", design="nothing")


@pytest.mark.parametrize("argument", ["fpr", "tpr"])
@pytest.mark.parametrize(("rate", "error", "message"), BAD_RATES)
def test_bad_rate_is_refused_at_once(
    argument: str, rate: object, error: type[Exception], message: str
) -> None:
    for frame in (DATA, DATA.lazy()):
        with pytest.raises(error, match=f"^`{argument}` {message}$"):
            UNTYPED.roc_point(frame, "y", "s", **{argument: rate})


@pytest.mark.parametrize(
    ("by", "reference", "found"),
    sweep(
        [
            ("g", "c", r"g \('a', 'b'\); found no segment 'c'"),
            ("two", 7, r"two \('0', '1', '2'\); found no segment '7'"),
            (["g", "text"], {"text": "No"}, r"text .*; found no segment 'No'; did you mean 'no'\?"),
        ]
    ),
)
def test_reference_that_is_no_group_is_refused_at_collect(
    by: str | list[str], reference: object, found: str, engine: Engine
) -> None:
    kinds = "'rest', 'overall', 'best'"
    message = f"`reference` must be {kinds} or a segment of {found}"
    with pytest.raises(ValueError, match=f"^{message}$"):
        wroc.group_gaps(DATA, "y", "s", attributes=by, reference=reference)
    plan = wroc.group_gaps(DATA.lazy(), "y", "s", attributes=by, reference=reference)
    with pytest.raises(ValueError, match=message):
        plan.collect(engine=engine)


@pytest.mark.parametrize("name", sorted(TABLES.keys() - {"group_gaps"}))
def test_by_named_like_a_result_column_is_refused(name: str) -> None:
    table, taken = TABLES[name]
    message = f"^`by` must not take the name of a result column; found '{taken}': rename it"
    with pytest.raises(ValueError, match=message):
        table(DATA, "y", "s", by=["w", pl.col("g").alias(taken)])


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("frame", [{"y": [1]}, DATA["y"], None], ids=["dict", "Series", "None"])
def test_what_is_no_frame_is_refused(name: str, frame: object) -> None:
    message = (
        r"^`frame` must be a Polars DataFrame or LazyFrame, .*; found an object.* of type \w+"
        r"(: put the values into pl.DataFrame.*)?$"
    )
    with pytest.raises(TypeError, match=message):
        TABLES[name][0](frame, "y", "s")


@pytest.mark.parametrize("values", [np.array, pl.Series, list, tuple, pd.Series], ids=repr)
def test_values_of_columns_belong_into_a_table(values: Callable[[list[float]], Any]) -> None:
    y, s = values([0.0, 1.0]), values([0.1, 0.2])
    remedy = (
        r": put the values into pl.DataFrame\({'label': y, 'score': s}\), and name its columns$"
    )
    with pytest.raises(TypeError, match=f"^`summary` needs a table as `frame`; found .*{remedy}"):
        UNTYPED.summary(y, s)
    calls: list[Callable[[], Any]] = [
        lambda: UNTYPED.roc_auc(y, s),
        lambda: UNTYPED.summary(DATA, "y", s),
        lambda: UNTYPED.summary(DATA, y, "s"),
    ]
    for call in calls:
        with pytest.raises(TypeError, match=f"^`(label|score)` must be .*; found .*{remedy}"):
            call()
    if not isinstance(y, list | tuple):
        with pytest.raises(TypeError, match=f"^`frame` must be .*; found an object .*{remedy}"):
            UNTYPED.summary(y, "y", "s")


TWO_LABELS = "pass one of its values as `pos_label`: 'no', 'yes'$"
READ: dict[str, Callable[..., Any]] = {
    "summary": wroc.summary,
    "roc_curve": wroc.roc_curve,
    "group_gaps": partial(wroc.group_gaps, attributes="g"),
    "audit": partial(UNTYPED.audit, attributes="g"),
}


@pytest.mark.parametrize("name", READ)
def test_labels_that_need_a_positive_one_are_named(name: str) -> None:
    with pytest.raises(TypeError, match=LABEL + f"found column 'text' of .*: {TWO_LABELS}"):
        READ[name](DATA, "text", "s")
    three = DATA.with_columns(text=pl.Series(["good", "bad", "unknown", "bad"]))
    expected = (
        r"`pos_label`: 'bad', 'good', 'unknown' \(all others are then negative; "
        r"`roc_auc_multiclass` compares them all\)$"
    )
    with pytest.raises(TypeError, match=expected):
        READ[name](three, "text", "s")
    many = DATA.with_columns(text=pl.Series([*"abcdef"][: DATA.height]))
    many = pl.concat([many, many.with_columns(text=pl.lit("z") + pl.col("text"))])
    with pytest.raises(TypeError, match=r"found column 'text' of type String$"):
        READ[name](many, "text", "s")


def test_numeric_labels_that_need_a_positive_one_are_named() -> None:
    expected = r"column 'two' holds 2.0: pass one of its values as `pos_label`: 0, 1, 2 \(all"
    with pytest.raises(ValueError, match=expected):
        wroc.summary(DATA, "two", "s")


def test_several_names_in_one_text_are_a_list() -> None:
    with pytest.raises(
        ColumnNotFoundError, match=r": name several columns as a list, \['g', 'y'\]$"
    ):
        wroc.summary(DATA, "y", "s", by="g,y")


@pytest.mark.parametrize("separator", [";", "\t"])
def test_table_of_one_column_names_the_separator_of_its_file(separator: str) -> None:
    frame = pl.read_csv(DATA.select("y", "s").write_csv(separator=separator).encode())
    with pytest.raises(ColumnNotFoundError) as raised:
        wroc.summary(frame, "y", "s")
    remedy = f"read the file with pl.read_csv(..., separator={separator!r})"
    assert str(raised.value).endswith(f": {remedy}")


OTHER_NAMES = {
    "roc_auc_score": "'roc_auc' or 'summary'",
    "auc": "'summary' or 'roc_auc'",
    "classification_report": "'threshold_metrics' or 'confusion_matrix'",
    "RocCurveDisplay": "'roc_chart'",
    "sumary": "'summary'",
}


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_functions_of_other_packages_name_the_one_here(name: str) -> None:
    expected = f"^module 'polars_wroc' has no attribute '{name}'; did you mean {OTHER_NAMES[name]}"
    with pytest.raises(AttributeError, match=rf"{expected}\?$"):
        getattr(wroc, name)
    with pytest.raises(AttributeError, match=r"has no attribute 'zzz'$"):
        _ = UNTYPED.zzz
    with pytest.raises(ImportError):
        from polars_wroc import zzz  # type: ignore[attr-defined]  # noqa: F401, PLC0415


def test_names_of_other_packages_lead_to_functions_that_are_there() -> None:
    names = {*sklearn.metrics.__all__, *fairlearn.metrics.__all__, "ThresholdOptimizer"}
    others = {"decision_curve_analysis", "delong_test", "disparate_impact", "lift_curve"}
    answered = 0
    for name in (names | others) - {*wroc.__all__}:
        with pytest.raises(AttributeError) as raised:
            getattr(wroc, name)
        meant = re.findall(r"'(\w+)'", str(raised.value).partition("did you mean")[2])
        assert {*meant} <= {*wroc.__all__}
        answered += bool(meant)
    assert answered > 15


def test_the_closest_name_is_suggested() -> None:
    loans = pl.DataFrame({"approved": [1, 0], "score": [0.9, 0.1], "race": ["a", "b"]})
    with pytest.raises(
        ColumnNotFoundError, match=r"'aproved' among .*; did you mean 'approved'\?$"
    ):
        wroc.summary(loans, "aproved", "score")
    with pytest.raises(ColumnNotFoundError, match=r"; did you mean 'race'\?$"):
        wroc.summary(loans, "approved", "score", by="Race")
    with pytest.raises(ColumnNotFoundError, match=r"'xyz' among \[.*\]$"):
        wroc.summary(loans, "approved", "score", by="xyz")
    with pytest.raises(ValueError, match=r"found 'socre'; did you mean 'score'\?$"):
        wroc.summary(loans, "approved", "score", method="socre")  # type: ignore[arg-type]
    audit = wroc.audit(loans, "approved", "score", attributes="race", min_rows=0)
    with pytest.raises(ValueError, match=r"found 'rase'; did you mean 'race'\?$"):
        audit.chart("rase")
    for reference, meant in (({"rac": "a"}, "race"), ("overal", "overall")):
        with pytest.raises(ValueError, match=f"; did you mean '{meant}'\\?$"):
            wroc.audit(loans, "approved", "score", attributes="race", reference=reference)  # type: ignore[arg-type]
    curves = wroc.roc_curve(loans, "approved", "score", by="race")
    with pytest.raises(ValueError, match=r"found 'rase'; did you mean 'race'\?$"):
        wroc.roc_chart(curves, color="rase")


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("case", sweep(AT_COLLECT, fast=list(AT_COLLECT)[1::4]))
def test_bad_value_is_refused_with_one_sentence(case: str, name: str) -> None:
    changed, message = AT_COLLECT[case]
    with pytest.raises(INVALID_VALUES, match=f'^{message}[^\n"]*$'):
        TABLES[name][0](DATA, **_arguments(**changed))


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("case", sweep(AT_COLLECT, fast=list(AT_COLLECT)[::5]))
def test_bad_value_of_a_lazy_frame_is_refused_at_collect(
    case: str, name: str, engine: Engine
) -> None:
    changed, message = AT_COLLECT[case]
    plan = TABLES[name][0](DATA.lazy(), **_arguments(**changed))
    with pytest.raises(INVALID_VALUES, match=message):
        plan.collect(engine=engine)


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("case", sweep(AT_COLLECT, fast=list(AT_COLLECT)[::3]))
def test_bad_value_is_refused_by_expressions(case: str, name: str, engine: Engine) -> None:
    changed, message = AT_COLLECT[case]
    plan = DATA.lazy().select(getattr(wroc, name)(**_arguments(**changed)))
    with pytest.raises(InvalidOperationError, match=message):
        plan.collect(engine=engine)


@pytest.mark.parametrize("form", ["table", "expression"])
@pytest.mark.parametrize("case", BAD_AND_MISSING)
def test_bad_value_is_refused_in_a_missing_row(case: str, form: str, engine: Engine) -> None:
    row, message = BAD_AND_MISSING[case]
    complete = DATA.lazy().select("y", "s", "w")
    rows = pl.concat([complete, pl.LazyFrame([row], schema=complete.collect_schema())])
    if form == "table":
        plan = wroc.summary(rows, "y", "s", weight="w")
    else:
        plan = rows.select(wroc.roc_auc("y", "s", weight="w"))
    with pytest.raises(INVALID_VALUES, match=message):
        plan.collect(engine=engine)


@pytest.mark.parametrize("case", AT_COLLECT)
def test_bad_value_is_refused_at_a_threshold(case: str, engine: Engine) -> None:
    changed, message = AT_COLLECT[case]
    matrix = wroc.confusion_matrix(**_arguments(**changed), threshold=0.2)
    with pytest.raises(InvalidOperationError, match=message):
        DATA.lazy().select(matrix).collect(engine=engine)


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("case", AT_SELECT)
def test_wrong_column_is_refused_by_expressions(case: str, name: str, engine: Engine) -> None:
    changed, error, message = AT_SELECT[case]
    expression = getattr(wroc, name)(**_arguments(**changed))
    with pytest.raises(error, match=message):
        DATA.select(expression)
    with pytest.raises(error, match=message):
        DATA.lazy().select(expression).collect(engine=engine)


@pytest.mark.parametrize("argument", ["label", "score", "weight"])
@pytest.mark.parametrize("name", METRICS)
def test_what_is_no_column_is_refused_by_expressions(name: str, argument: str) -> None:
    message = f"^`{argument}` must be a column name or a Polars expression; found 0.5 of type float"
    with pytest.raises(TypeError, match=message):
        getattr(wroc, name)(**_arguments(**{argument: 0.5}))


def test_threshold_that_varies_in_a_group_is_refused(engine: Engine) -> None:
    message = r"`threshold` must be one value per group; found 0\.1 to 0\.4"
    matrix = wroc.confusion_matrix("y", "s", threshold=pl.col("varying"))
    with pytest.raises(InvalidOperationError, match=message):
        DATA.lazy().select(matrix).collect(engine=engine)
    with pytest.raises(InvalidOperationError, match=r"found 0\.[13] to 0\.[24]"):
        DATA.lazy().group_by("g").agg(matrix).collect(engine=engine)


def test_options_are_keyword_only() -> None:
    table: Any = wroc.summary
    metric: Any = wroc.roc_auc
    with pytest.raises(TypeError, match="takes at most 3 arguments without names; found 4"):
        table(DATA, "y", "s", "w")
    with pytest.raises(TypeError, match="takes at most 2 arguments without names; found 3"):
        metric("y", "s", "w")


def test_text_column_of_thresholds() -> None:
    message = "^`threshold` must be numeric; found column 'text' of type String"
    for frame in (DATA, DATA.lazy()):
        with pytest.raises(TypeError, match=message):
            frame.lazy().select(wroc.confusion_matrix("y", "s", threshold=pl.col("text"))).collect()


def test_messages_have_the_whole_name_of_a_column() -> None:
    rows = DATA.select("y", "s", pl.col("negative").alias('a "net" weight'))
    message = rf"^{WEIGHT}column 'a \"net\" weight' holds -2\.0$"
    with pytest.raises(ValueError, match=message):
        wroc.summary(rows, "y", "s", weight='a "net" weight')


EXPRESSIONS: dict[str, Callable[[], pl.Expr]] = {
    "brier": lambda: wroc.brier_score("y", "p"),
    "log loss": lambda: wroc.log_loss("y", "p"),
    "weight": lambda: wroc.roc_auc("y", "s", weight="w"),
    "matrix": lambda: wroc.confusion_matrix("y", "s", threshold=0.5, weight="w"),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("grouped", [False, True])
def test_an_expression_fails_in_one_sentence(name: str, engine: Any, *, grouped: bool) -> None:
    rows = pl.LazyFrame(
        {"y": [0, 1] * 20, "p": [0.1, 1.5] * 20, "w": [-1.0, 1.0] * 20, "g": [1, 2] * 20}
    ).with_columns(s=pl.col("p") / 2)
    value = EXPRESSIONS[name]()
    plan = rows.group_by("g").agg(value) if grouped else rows.select(value)
    with pytest.raises(ValueError, match=r"`(score|weight)` must be") as caught:
        plan.collect(engine=engine)
    assert len(str(caught.value)) < 100
    assert "\n" not in str(caught.value)
    assert ("1.5" if name in ("brier", "log loss") else "'w'") in str(caught.value)


@pytest.mark.parametrize("beyond", [1 + 2e-16, 1 + 1e-7, -1e-7])
def test_probabilities_beyond_1_by_rounding_are_clipped(beyond: float) -> None:
    rows = pl.DataFrame({"y": [0, 1, 1, 0] * 20, "p": [0.1, beyond, 0.7, 0.3] * 20})
    clipped = rows.with_columns(pl.col("p").clip(0, 1))
    for value in (wroc.brier_score("y", "p"), wroc.log_loss("y", "p")):
        assert rows.select(value).equals(clipped.select(value))
    for table in (wroc.calibration_summary, wroc.decision_curve, wroc.calibration_curve):
        assert_frame_equal(table(rows, "y", "p"), table(clipped, "y", "p"), abs_tol=1e-6)


PAIRS = pl.DataFrame({"sex": ["f", "f", "m", None], "region": ["a", "b", "a", "b"]})
NO_TEXTS = {
    "Struct": pl.struct("sex", "region"),
    "List": pl.concat_list("sex", "region"),
    "Array": pl.concat_list("sex", "region").list.to_array(2),
    "Duration": pl.duration(days=pl.col("y")).alias("sex"),
    "Binary": pl.lit(b"\xff").alias("sex"),
}


@pytest.mark.parametrize("lazy", sweep([False, True]))
@pytest.mark.parametrize("kind", NO_TEXTS)
def test_groups_without_names(kind: str, lazy: bool) -> None:
    rows = pl.concat([DATA, PAIRS], how="horizontal")
    by = NO_TEXTS[kind]
    assert wroc.summary(rows, "y", "s", by=by)["n"].sum() == rows.height
    frame: Any = rows.lazy() if lazy else rows
    rule = "must hold values that can be written as text"
    message = f"^`(by|attributes)` {rule}; found column 'sex' of type {kind}"
    with pytest.raises(TypeError, match=message):
        wroc.audit(frame, "y", "s", attributes=["g", by])
    with pytest.raises(TypeError, match=message):
        wroc.fairness(frame, "y", "s", attributes=by, threshold=0.2)
    counts = wroc.score_counts(frame, "y", "s", by=by)
    with pytest.raises(TypeError, match=message):
        wroc.from_counts(counts).audit(attributes="sex")


@pytest.mark.parametrize("path", sweep([None, 3, ["a.html"]]))
def test_path_that_is_no_name_of_a_file(path: Any) -> None:
    message = "^`path` must be the name of a file; found .* of type"
    with pytest.raises(TypeError, match=message):
        wroc.audit(DATA, "y", "s", attributes="g").save(path)


INTERNAL_NAMES = ["tp_squares", "fp_squares", "fn_squares", "tn_squares"]


@pytest.mark.parametrize("name", INTERNAL_NAMES)
def test_groups_keep_their_values_whatever_they_are_called(name: str) -> None:
    frame = pl.DataFrame({name: ["a", "a", "b", "b"], "y": [1, 0, 1, 0], "s": [0.9, 0.1, 0.8, 0.2]})
    found = wroc.threshold_metrics(frame, "y", "s", threshold=0.5, by=name, level=0.95)
    assert found[name].to_list() == ["a", "b"]


@pytest.mark.parametrize("name", ["fpr", "tpr"])
def test_points_of_a_curve_refuse_groups_named_like_its_columns(name: str) -> None:
    frame = pl.DataFrame({name: ["a", "a"], "y": [1, 0], "s": [0.9, 0.1]})
    message = f"`by` must not take the name of a result column; found '{name}'"
    with pytest.raises(ValueError, match=message):
        wroc.roc_point(frame, "y", "s", fpr=0.1, by=name)
    with pytest.raises(ValueError, match=message):
        wroc.roc_point(frame, "y", "s", tpr=0.1, by=name)


@pytest.mark.parametrize(
    "reference", sweep([1.9, True, "one", 7000, float("nan"), b"1", None], fast=1)
)
def test_reference_is_never_another_group_than_the_one_named(reference: object) -> None:
    frame = pl.DataFrame(
        {"g": [1, 1, 1, 2, 2, 2], "y": [1, 0, 1, 0, 1, 0], "s": [5, 4, 3, 4, 2, 1]},
        schema_overrides={"g": pl.Int8},
    )
    with pytest.raises((ValueError, InvalidOperationError), match="`reference` must"):
        wroc.group_gaps(frame, "y", "s", attributes="g", reference=reference)
    table = wroc.group_gaps(frame, "y", "s", attributes="g", reference=1.0, min_rows=0)
    assert table["reason"].to_list() == ["the reference", None]


@pytest.mark.parametrize("level", sweep([0.001, 0.9999]))
def test_extreme_levels_have_intervals(level: float) -> None:
    frame = pl.DataFrame({"y": [1, 0, 1, 0, 1, 0], "s": [0.9, 0.1, 0.3, 0.4, 0.8, 0.2]})
    low, auc, high = (
        wroc.summary(frame, "y", "s", level=level).select("auc_low", "auc", "auc_high").row(0)
    )
    assert low < auc < high


# Expressions on a column of the wrong type, with what is said of it.
OF_TYPES: dict[str, tuple[pl.Expr, str]] = {
    "label": (wroc.roc_auc("g", "s"), LABEL + "found column 'g' of type String"),
    "score": (wroc.log_loss("y", "g"), "`score` must be numeric; found column 'g' of type String"),
    "several labels": (
        wroc.ks(pl.col("y", "w"), "s"),
        "`label` must be one column; found 2: y, w",
    ),
}


@pytest.mark.parametrize(("expression", "sentence"), OF_TYPES.values(), ids=list(OF_TYPES))
def test_error_of_a_lazy_expression_is_one_sentence(expression: pl.Expr, sentence: str) -> None:
    """Polars appends its plan to other errors."""
    frame = pl.LazyFrame({"y": [0, 1], "s": [0.1, 0.9], "w": [1, 2], "g": ["a", "b"]})
    for query in (frame.select(expression), frame.group_by("w").agg(expression)):
        with pytest.raises((TypeError, ValueError)) as caught:
            query.collect()
        assert str(caught.value) == sentence
