"""Keywords that other packages have lead to those of this one."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import polars_wroc as wroc

ROWS = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1], "g": ["a", "a", "b", "b"]})
CALLS: dict[str, tuple[str, dict[str, Any], str]] = {
    "scikit-learn's weights": ("summary", {"sample_weight": "s"}, "weight"),
    "groups of a comparison": ("group_gaps", {"by": "g"}, "attributes"),
    "groups of a table": ("summary", {"attributes": "g"}, "by"),
    "fairlearn's groups": ("fairness", {"sensitive_features": "g"}, "attributes"),
    "British spelling": ("audit", {"attributes": "g", "favourable": "selected"}, "favorable"),
    "a typing error": ("trend", {"over": "g", "theshold": 0.5}, "threshold"),
    "yardstick's level": ("calibration_curve", {"conf_level": 0.9}, "level"),
    "predicted classes": ("audit", {"y_pred": "s"}, "selected"),
    "predicted scores": ("summary", {"y_pred": "s"}, "score"),
}


@pytest.mark.parametrize(("name", "given", "meant"), CALLS.values(), ids=list(CALLS))
def test_unknown_keyword_names_the_one_that_is_meant(
    name: str, given: dict[str, Any], meant: str
) -> None:
    expected = rf"^`{name}` has no argument `\w+`; did you mean `{meant}`\?$"
    with pytest.raises(TypeError, match=expected):
        getattr(wroc, name)(ROWS, "y", "s", **given)
    method = getattr(ROWS.wroc, name)  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match=expected):
        method("y", "s", **given)


def test_unknown_keyword_of_an_expression() -> None:
    ks: Any = wroc.ks
    with pytest.raises(TypeError, match=r"^`ks` has no argument `y_true`; did you mean `label`\?$"):
        ks(y_true="y", score="s")
    with pytest.raises(TypeError, match=r"^`ks` has no argument `q`; it has label, score, weight"):
        ks("y", "s", q=1)


# Calls that have no argument of this kind, and how they are answered.
REMEDIES: dict[str, tuple[str, dict[str, Any], str]] = {
    "an early area of a table": ("summary", {"max_fpr": 0.1}, "pass `areas=.*PartialAUC"),
    "strata of an audit": ("audit", {"control_features": "g"}, r"use `group_gaps\(within=...\)`"),
}


@pytest.mark.parametrize(("name", "given", "remedy"), REMEDIES.values(), ids=list(REMEDIES))
def test_keyword_without_a_counterpart_names_another_way(
    name: str, given: dict[str, Any], remedy: str
) -> None:
    with pytest.raises(TypeError, match=rf"^`{name}` has no argument `\w+`; .*{remedy}"):
        getattr(wroc, name)(ROWS, "y", "s", **given)


def test_early_area_of_an_expression_names_its_function() -> None:
    auc: Any = wroc.roc_auc
    with pytest.raises(
        TypeError, match=r"; for that area use `partial_auc` with `fpr=\(0, 0.1\)`$"
    ):
        auc("y", "s", max_fpr=0.1)


def test_missing_argument_is_named_with_its_choices() -> None:
    ratios: Any = wroc.impact_ratios
    expected = (
        "^`impact_ratios` needs `favorable`: 'selected' if being selected is good for a person, as "
        "for a loan, 'rejected' if it is bad, as for a fraud alert$"
    )
    with pytest.raises(TypeError, match=expected):
        ratios(ROWS, "s", attributes="g", threshold=0.5)
    rule: Any = wroc.rules.max_fpr
    with pytest.raises(TypeError, match=r"^`max_fpr` needs `fpr`$"):
        rule()


# Calls of rules, and how they are answered.
RULES: dict[str, tuple[str, tuple[float, ...], dict[str, float], str]] = {
    "costs by place": (
        "least_cost",
        (5, 1),
        {},
        "takes its arguments by name: fn=..., fp=..., prevalence=...; found 2 without names",
    ),
    "costs of other functions": (
        "least_cost",
        (),
        {"cost_fn": 5},
        r"has no argument `cost_fn`; did you mean `fn`\?",
    ),
    "an argument too many": ("youden", (0.5,), {}, "takes no arguments; found 1 without a name"),
    "one argument twice": (
        "max_fpr",
        (0.1,),
        {"fpr": 0.2},
        "has `fpr` twice: as argument 1 and by its name",
    ),
}


@pytest.mark.parametrize(("name", "args", "keywords", "fault"), RULES.values(), ids=list(RULES))
def test_call_of_a_rule_that_does_not_fit_shows_the_right_one(
    name: str, args: tuple[float, ...], keywords: dict[str, float], fault: str
) -> None:
    with pytest.raises(TypeError, match=f"^`{name}` {fault}$"):
        getattr(wroc.rules, name)(*args, **keywords)


# Calls of classes and of methods of counts, and how they are answered.
COUNTS = wroc.from_counts(wroc.score_counts(ROWS, "y", "s", by="g"))
OTHERS: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any], str]] = {
    "clusters of a survey": (
        wroc.Survey,
        (),
        {"clusters": "g"},
        r"^`Survey` has no argument `clusters`; did you mean `cluster`\?$",
    ),
    "an early area": (
        wroc.PartialAUC,
        (),
        {"max_fpr": 0.1},
        r"^`PartialAUC` has no argument `max_fpr`; pass `fpr=\(0, 0.1\)`$",
    ),
    "a range by place": (
        wroc.PartialAUC,
        ((0, 0.1),),
        {},
        "^`PartialAUC` takes its arguments by name: fpr=..., tpr=..., .*; found 1 without a name$",
    ),
    "weights without their kind": (
        wroc.ReplicateWeights,
        (["a"],),
        {},
        "^`ReplicateWeights` needs `kind`$",
    ),
    "groups of counts": (
        COUNTS.group_gaps,
        (),
        {"by": "g"},
        r"^`Counts.group_gaps` has no argument `by`; did you mean `attributes`\?$",
    ),
    "columns of counts": (
        COUNTS.summary,
        (),
        {"label": "y"},
        "^`Counts.summary` has no argument `label`, which `score_counts` was given$",
    ),
    "labels of decisions": (
        wroc.impact_ratios,
        (ROWS, "s"),
        {"label": "y"},
        "^`impact_ratios` has no argument `label`; decisions are compared without labels$",
    ),
}


@pytest.mark.parametrize(("call", "args", "keywords", "fault"), OTHERS.values(), ids=list(OTHERS))
def test_call_of_a_class_or_method_that_does_not_fit(
    call: Any, args: tuple[Any, ...], keywords: dict[str, Any], fault: str
) -> None:
    with pytest.raises(TypeError, match=fault):
        call(*args, **keywords)


def test_counts_in_place_of_rows_name_their_methods() -> None:
    counts = wroc.score_counts(ROWS, "y", "s")
    expected = ": counts of `score_counts` are for the methods of `from_counts`$"
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match=expected):
        wroc.summary(counts, "y", "s")
