"""Arguments of all public functions hold what their types say: numbers, words and switches."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, TypeAlias, get_args, get_origin

import numpy as np
import polars as pl
import pytest
from public_surface import numbers

import polars_wroc as wroc
from polars_wroc import typing

Call: TypeAlias = Callable[..., Any]

ROWS = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1], "g": ["a", "a", "b", "b"]})
COUNTS = wroc.from_counts(wroc.score_counts(ROWS, "y", "s", by="g"))
# Stands for arguments that no call here gets to.
NOTHING = object()


class Numbers(NamedTuple):
    """What a type allows: the rule of its message, some numbers outside, and some inside."""

    rule: str
    outside: list[float]
    inside: list[float]


STRICT = Numbers("lie strictly between 0 and 1", [0, 1, -0.5, 1.5], [1e-9, 0.5, 0.999])
LEVELS = Numbers("lie between 0.001 and 0.9999", [0, 1, 0.0009, 0.99991, 95], [0.001, 0.5, 0.9999])
NUMBERS = {
    "Bins": Numbers("be 16 or more", [15, 0, -16], [16, 4096]),
    "Clip": Numbers("lie between 1e-15 and 0.5", [0, 0.6, -1], [1e-15, 0.01, 0.5]),
    "Confidence": LEVELS,
    "ConfidenceLevel": LEVELS,
    "FiniteNumber": Numbers("be a finite number", [math.inf, -math.inf], [-5, 0, 1e30]),
    "InnerProportion": STRICT,
    "Margin": STRICT,
    "MaxPoints": Numbers("be 3 or more", [2, -3], [3, 100]),
    "MinCell": Numbers("be 2 or more", [1, 0], [2, 10]),
    "MinRows": Numbers("be 0 or more", [-1], [0, 30]),
    "NonNegative": Numbers("be finite and 0 or more", [-1, math.inf], [0, 0.5, 1]),
    "Pixels": Numbers("be 50 or more", [49, 0, -50], [50, 500]),
    "Positive": Numbers("be finite and more than 0", [0, -2, math.inf], [0.1, 1000]),
    "PositiveInt": Numbers("be 1 or more", [0, -1], [1, 2]),
    "Power": Numbers("lie strictly between 0.5 and 1", [0.5, 1, 0.2], [0.51, 0.8, 0.99]),
    "Prevalence": STRICT,
    "Proportion": Numbers("lie between 0 and 1", [-0.1, 1.1, math.inf], [0, 0.5, 1]),
    "Resamples": Numbers("be 2 or more", [1, 0, -2], [2, 3]),
    "Seed": Numbers("be 0 or more", [-1], [0, 7]),
    "SmallShare": Numbers("lie between 0 and 0.02", [-0.01, 0.021, 1], [0, 0.01, 0.02]),
    "WeightLimit": Numbers("be finite and 1 or more", [0.9, -1, math.inf], [1, 20]),
}
WHOLE = {"Bins", "MaxPoints", "MinCell", "MinRows", "Pixels", "PositiveInt", "Resamples", "Seed"}
# The function itself says what these words mean.
EXPLAINED = {"Favorable"}


def public_calls() -> Iterator[tuple[str, Call]]:
    """Return all that users call: functions, rules, classes, and methods of all namespaces."""
    for name in wroc.__all__:
        value = getattr(wroc, name)
        if inspect.ismodule(value):
            yield from ((f"{name}.{each}", getattr(value, each)) for each in value.__all__)
        elif name != "ChartOptions":
            yield name, value
    spaces: dict[str, Any] = {
        "frame.wroc": ROWS.wroc,  # type: ignore[attr-defined]
        "expression.wroc": pl.col("s").wroc,  # type: ignore[attr-defined]
        "counts": COUNTS,
    }
    for space, methods in spaces.items():
        names = [name for name in dir(methods) if not name.startswith("_")]
        yield from ((f"{space}.{name}", getattr(methods, name)) for name in names)


def read_annotations(call: Call) -> dict[str, str]:
    """Return the annotation of each argument, also of the options of charts."""
    found = {name: str(each.annotation) for name, each in parameters(call).items()}
    if found.pop("options", None):
        options = wroc.ChartOptions.__annotations__
        kinds = {name: kind.__forward_arg__ for name, kind in options.items()}
        # A chart chooses its size where none is given.
        found |= {name: f"{kind} | None" if kind in WHOLE else kind for name, kind in kinds.items()}
    return found


def parameters(call: Call) -> dict[str, inspect.Parameter]:
    """Return the arguments of a call, by their names."""
    return dict(inspect.signature(call).parameters)


def type_of(annotation: str) -> str | None:
    """Return the type of an argument, without None; None if it has several."""
    names = [name for name in annotation.split(" | ") if name != "None"]
    return names[0] if len(names) == 1 else None


def words_of(annotation: str) -> tuple[Any, ...]:
    """Return the words that an argument may be; none if it may be anything else."""
    kind = type_of(annotation)
    if kind is None or kind in EXPLAINED:
        return ()
    named = Literal["rest"] if kind == "Literal['rest']" else getattr(typing, kind, None)
    return get_args(named) if get_origin(named) is Literal else ()


CALLS = dict(public_calls())
ARGUMENTS = [
    (name, argument) for name, call in CALLS.items() for argument in read_annotations(call)
]
TYPES = {(name, argument): read_annotations(CALLS[name])[argument] for name, argument in ARGUMENTS}
WITH_NUMBERS = [each for each in ARGUMENTS if type_of(TYPES[each]) in NUMBERS]
WITH_WORDS = [each for each in ARGUMENTS if words_of(TYPES[each])]
SWITCHES = [each for each in ARGUMENTS if type_of(TYPES[each]) == "bool"]


def call_with(name: str, argument: str, value: object) -> str:
    """Call a function with this argument, and return its message, if it has one."""
    call = CALLS[name]
    given = {
        other: stand_in(str(each.annotation))
        for other, each in parameters(call).items()
        if each.default is each.empty and each.kind is not each.VAR_KEYWORD
    }
    if name.startswith("counts."):
        # Counts have columns to be read, and some methods need a threshold at once.
        given = dict.fromkeys(given, "g")
        given |= {"threshold": 0.5} if "threshold" in parameters(call) else {}
        given |= {"favorable": "selected"} if "favorable" in parameters(call) else {}
    try:
        call(**given | {argument: value})
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        return f"{'TypeError' if isinstance(error, TypeError) else 'ValueError'}: {error}"
    return ""


def stand_in(annotation: str) -> object:
    """Return a value for an argument that must be given."""
    kind = type_of(annotation)
    if kind in NUMBERS:
        return NUMBERS[kind].inside[0]
    words = words_of(annotation)
    return words[0] if words else NOTHING


@pytest.mark.parametrize(("name", "argument"), WITH_NUMBERS)
def test_number_is_within_its_bounds(name: str, argument: str) -> None:
    kind = type_of(TYPES[name, argument])
    assert kind is not None
    rule, outside, inside = NUMBERS[kind]
    is_whole = kind in WHOLE
    sort = "a whole number" if is_whole else "a number"
    for value in outside + ([] if is_whole else [math.nan]):
        expected = f"ValueError: `{argument}` must {rule}; found {value!r}"
        assert call_with(name, argument, value).startswith(expected)
    for value in inside:
        for number in (value, np.int64(value) if is_whole else np.float32(value)):
            message = call_with(name, argument, number)
            assert f"`{argument}` must {rule}" not in message
            assert f"`{argument}` must be {sort};" not in message
    wrong: list[Any] = ["text", True, [0.5], NOTHING, *([16.5, math.nan] if is_whole else [])]
    if "None" not in TYPES[name, argument]:
        wrong.append(None)
    if kind not in ("Confidence", "ConfidenceLevel"):
        wrong.append(wroc.Looks(1000, seen=500))
    for each in wrong:
        expected = rf"TypeError: `{argument}` must be {sort}; found .* of type \w+"
        assert re.fullmatch(expected, call_with(name, argument, each))


@pytest.mark.parametrize(("name", "argument"), WITH_WORDS)
def test_word_is_one_of_those_of_its_type(name: str, argument: str) -> None:
    words = words_of(TYPES[name, argument])
    rule = f"`{argument}` must be one of {', '.join(map(repr, words))}; found "
    wrong: list[Any] = ["nonsense", f"{words[0]} ", 1, True, [words[0]]]
    for each in wrong:
        assert call_with(name, argument, each).startswith(f"ValueError: {rule}{each!r}")
    for word in words:
        assert rule not in call_with(name, argument, word)
    is_refused = rule in call_with(name, argument, None)
    assert is_refused == ("None" not in TYPES[name, argument])


@pytest.mark.parametrize(("name", "argument"), SWITCHES)
def test_switch_is_true_or_false(name: str, argument: str) -> None:
    wrong: list[Any] = ["no", 0, 1.0, [False], np.True_]
    for each in wrong:
        expected = rf"TypeError: `{argument}` must be True or False; found .* of type \w+"
        assert re.fullmatch(expected, call_with(name, argument, each))
    for value in (True, False):
        assert "must be True or False" not in call_with(name, argument, value)


def test_all_types_of_numbers_are_tried() -> None:
    assert numbers().keys() == NUMBERS.keys()
    assert {name for name, text in numbers().items() if "whole" in text} == WHOLE
    assert {type_of(TYPES[each]) for each in WITH_NUMBERS} == NUMBERS.keys()


def test_few_numbers_have_no_bounds() -> None:
    """Those that a message explains better, or whose bounds are in the data."""
    plain = {each for each in ARGUMENTS if type_of(TYPES[each]) in ("float", "int")}
    assert {argument for _, argument in plain} == {"threshold"}
    assert {name.split(".")[-1] for name, _ in plain} == {"expected_metrics", "distribution_chart"}


def test_a_share_in_percent_is_suggested_as_a_share() -> None:
    hint = r"must lie between 0.001 and 0.9999; found 95; did you mean 0.95\?$"
    with pytest.raises(ValueError, match=hint):
        wroc.summary(ROWS, "y", "s", level=95)
    for margin in (5, 100):
        with pytest.raises(ValueError, match=f"must lie strictly between 0 and 1; found {margin}$"):
            wroc.group_gaps(ROWS, "y", "s", attributes="g", margin=margin)
