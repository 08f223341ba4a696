"""Thresholds that a rule chooses: against a search over all cuts, in exact fractions."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from sweeps import sweep

import polars_wroc as wroc
from polars_wroc.typing import Rule

Row: TypeAlias = tuple[int, float, int]


class Cut(NamedTuple):
    """A threshold with the weights predicted positive there, and all weights."""

    threshold: float
    tp: int
    fp: int
    positives: int
    negatives: int

    @property
    def tpr(self) -> Fraction:
        return Fraction(self.tp, self.positives)

    @property
    def fpr(self) -> Fraction:
        return Fraction(self.fp, self.negatives)

    @property
    def selected(self) -> Fraction:
        return Fraction(self.tp + self.fp, self.positives + self.negatives)

    @property
    def errors(self) -> int:
        return self.fp + self.positives - self.tp


class Search(NamedTuple):
    """A rule, what it minimises in turn and what it allows."""

    rule: Rule
    badness: Callable[[Cut], tuple[Fraction | int, ...]]
    allowed: Callable[[Cut], bool] = lambda _: True
    both_classes: bool = True


THIRD, LARGE = Fraction(3, 10), Fraction(7, 10)
SEARCHES = {
    "youden": Search(wroc.rules.youden(), lambda c: (c.fpr - c.tpr,)),
    "closest": Search(wroc.rules.closest_topleft(), lambda c: (c.fpr**2 + (1 - c.tpr) ** 2,)),
    "accuracy": Search(wroc.rules.max_accuracy(), lambda c: (c.errors,), both_classes=False),
    "cost": Search(
        wroc.rules.least_cost(fn=3, fp=1),
        lambda c: (3 * (c.positives - c.tp) + c.fp,),
        both_classes=False,
    ),
    "cost_fp": Search(
        wroc.rules.least_cost(fp=0.7),
        lambda c: (3 * (c.positives - c.tp) + 7 * c.fp,),
        both_classes=False,
    ),
    "cost_prevalence": Search(
        wroc.rules.least_cost(fn=0.7, fp=0.3, prevalence=0.3),
        lambda c: (LARGE * THIRD * (1 - c.tpr) + THIRD * LARGE * c.fpr,),
    ),
    "cost_rare": Search(
        wroc.rules.least_cost(fn=0.7, prevalence=0.1),
        lambda c: (7 * (1 - c.tpr) + 27 * c.fpr,),
    ),
    "max_fpr": Search(wroc.rules.max_fpr(0.3), lambda c: (-c.tpr, c.fpr), lambda c: c.fpr <= THIRD),
    "max_fpr_none": Search(wroc.rules.max_fpr(0), lambda c: (-c.tpr, c.fpr), lambda c: c.fpr == 0),
    "min_tpr": Search(wroc.rules.min_tpr(0.7), lambda c: (c.fpr, -c.tpr), lambda c: c.tpr >= LARGE),
    "min_tpr_none": Search(wroc.rules.min_tpr(0), lambda c: (c.fpr, -c.tpr)),
    "min_tpr_all": Search(wroc.rules.min_tpr(1), lambda c: (c.fpr, -c.tpr), lambda c: c.tpr == 1),
    "max_selection_rate": Search(
        wroc.rules.max_selection_rate(0.3),
        lambda c: (-c.selected,),
        lambda c: c.selected <= THIRD,
        both_classes=False,
    ),
}
SCORES = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, math.inf, -math.inf]
SEVEN = [(1, 0.9, 1), (0, 0.8, 2), (1, 0.7, 1), (0, 0.7, 1), (1, 0.6, 2), (0, 0.4, 1), (0, 0.3, 1)]


def frame_of(rows: list[Row], g: str = "a") -> pl.DataFrame:
    schema = {"y": pl.Int64, "s": pl.Float64, "w": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(g=pl.lit(g))


def random_rows(samples: int) -> dict[str, list[Row]]:
    """Small samples, with ties, weights of 0 and sometimes one class only, by their names."""
    random = np.random.default_rng(samples)
    return {
        f"{sample:04}": [
            (int(random.random() < 0.5), SCORES[random.integers(8)], int(random.integers(5)))
            for _ in range(random.integers(1, 20))
        ]
        for sample in range(samples)
    }


def cuts(rows: list[Row]) -> list[Cut]:
    """Every cut from the highest threshold down, after the origin."""
    positives = sum(w for y, _, w in rows if y)
    negatives = sum(w for y, _, w in rows if not y)
    found = [Cut(math.inf, 0, 0, positives, negatives)]
    for t in sorted({s for _, s, w in rows if w}, reverse=True):
        tp, fp = (sum(w for y, s, w in rows if y == k and s >= t) for k in (1, 0))
        found.append(Cut(t, tp, fp, positives, negatives))
    return found


def search(rows: list[Row], rule: Search) -> Cut | None:
    """The first of the best cuts."""
    found = cuts(rows)
    classes = [found[0].positives > 0, found[0].negatives > 0]
    if not (all(classes) if rule.both_classes else any(classes)):
        return None
    return min(filter(rule.allowed, found), key=rule.badness)


def cells(frame: pl.DataFrame) -> list[tuple[float | None, ...]]:
    return frame.select("threshold", "tp", "fp", "fn", "tn").rows()


def expected_cells(cut: Cut | None) -> tuple[float | None, ...]:
    if cut is None:
        return (None,) * 5
    return cut.threshold, cut.tp, cut.fp, cut.positives - cut.tp, cut.negatives - cut.fp


def point(frame: pl.DataFrame, rule: Rule, **options: Any) -> dict[str, Any]:
    found = frame.select(
        wroc.confusion_matrix("y", "s", weight="w", threshold=rule, **options, metrics="all")
    )
    return found.unnest("confusion_matrix").row(0, named=True)


@pytest.mark.parametrize(
    ("options", "threshold"),
    [
        ({"rule": wroc.rules.max_accuracy()}, 0.9),
        ({"rule": wroc.rules.youden()}, 0.6),
        ({"rule": wroc.rules.closest_topleft()}, 0.6),
        ({"rule": wroc.rules.max_fpr(0.5)}, 0.9),
        ({"rule": wroc.rules.min_tpr(0.9)}, 0.6),
        ({"rule": wroc.rules.least_cost(fn=0.7, fp=0.3)}, 0.6),
        ({"rule": wroc.rules.max_selection_rate(0.5)}, 0.8),
    ],
)
def test_worked_examples(options: dict[str, Any], threshold: float) -> None:
    assert point(frame_of(SEVEN), **options)["threshold"] == threshold


@pytest.mark.parametrize(
    ("positives", "negatives", "threshold"),
    # The distances of two points from the top left are 0.5 and 0.51, then 0.51 and 0.5.
    [((6, 3, 1), (3, 2, 5), 3.0), ((5, 2, 3), (1, 3, 6), 2.0)],
)
def test_closest_point_is_that_of_the_shortest_line(
    positives: tuple[int, ...], negatives: tuple[int, ...], threshold: float
) -> None:
    rows = [(1, 3.0 - k, w) for k, w in enumerate(positives)]
    rows += [(0, 3.0 - k, w) for k, w in enumerate(negatives)]
    assert point(frame_of(rows), rule=wroc.rules.closest_topleft())["threshold"] == threshold


def test_metrics_there_are_those_of_the_confusion_matrix() -> None:
    frame = frame_of(SEVEN)
    found = point(frame, rule=wroc.rules.youden())
    matrix = frame.select(wroc.confusion_matrix("y", "s", threshold=0.6, weight="w", metrics="all"))
    assert found == pytest.approx(matrix.item(), abs=1e-12)
    assert found["youden"] == pytest.approx(0.4)


@pytest.mark.parametrize("name", sweep(SEARCHES, fast=list(SEARCHES)[::2]))
def test_rule_is_a_search_over_all_cuts(name: str) -> None:
    rule, samples = SEARCHES[name], random_rows(150)
    frame = pl.concat(frame_of(rows, g) for g, rows in samples.items())
    expected = [expected_cells(search(rows, rule)) for rows in samples.values()]
    by_expression = frame.group_by("g", maintain_order=True).agg(
        wroc.confusion_matrix("y", "s", weight="w", threshold=rule.rule, metrics="all")
    )
    by_frame = wroc.threshold_metrics(
        frame,
        "y",
        "s",
        threshold=rule.rule,
        per_group=True,
        level=None,
        weight="w",
        by="g",
        metrics="all",
    )
    assert cells(by_expression.unnest("confusion_matrix")) == expected
    # As everywhere, a table has no row for a group without weight.
    weighed = [any(w for *_, w in rows) for rows in samples.values()]
    assert cells(by_frame) == [c for c, there in zip(expected, weighed, strict=True) if there]


@pytest.mark.parametrize("scale", sweep([1e-9, 1e9]))
def test_weights_have_no_scale(people: pl.DataFrame, scale: float) -> None:
    frames = people, people.with_columns(pl.col("w") * scale)
    chosen = [
        [point(frame, rule.rule)["threshold"] for rule in SEARCHES.values()] for frame in frames
    ]
    assert chosen[0] == chosen[1]


def test_threshold_of_minus_0_is_0() -> None:
    frame = pl.DataFrame({"y": [0, 1], "s": [-1.0, 1.0]})
    table = wroc.threshold_metrics(frame, "y", "s", threshold=-0.0)
    assert str(table["threshold"].item()) == "0.0"


@pytest.mark.parametrize("name", sweep(SEARCHES, fast=list(SEARCHES)[::2]))
def test_both_forms_agree_in_groups(name: str, people: pl.DataFrame) -> None:
    one_class = people.filter("y", g="a").with_columns(g=pl.lit("z"))
    lazy = pl.concat([people, one_class]).lazy()
    rule = SEARCHES[name].rule
    by_frame = wroc.threshold_metrics(
        lazy,
        "y",
        "s",
        threshold=rule,
        per_group=True,
        level=None,
        weight="w",
        by="g",
        metrics="all",
    )
    by_expression = (
        lazy.group_by("g")
        .agg(wroc.confusion_matrix("y", "s", weight="w", threshold=rule, metrics="all"))
        .unnest("confusion_matrix")
        .sort("g")
    )
    tables = by_frame.collect(), by_expression.collect()
    assert_frame_equal(tables[0].select(tables[1].columns), tables[1], abs_tol=1e-12)
    assert (tables[0]["threshold"].null_count() == 1) == SEARCHES[name].both_classes


def test_infinite_score_is_told_from_the_origin() -> None:
    frame = frame_of([(1, math.inf, 1), (0, 1.0, 1)])
    assert cells(
        wroc.threshold_metrics(
            frame,
            "y",
            "s",
            threshold=wroc.rules.youden(),
            per_group=True,
            level=None,
            metrics="all",
        )
    ) == [(math.inf, 1, 0, 0, 1)]
    worst = frame_of([(0, math.inf, 1), (1, 1.0, 1)])
    for common in (False, True):
        found = wroc.threshold_metrics(
            worst,
            "y",
            "s",
            threshold=wroc.rules.max_fpr(0),
            per_group=not common,
            level=None,
            metrics="all",
        )
        assert cells(found) == [(math.inf, 0, 0, 1, 1)]
        found = wroc.threshold_metrics(
            frame,
            "y",
            "s",
            threshold=wroc.rules.max_fpr(0),
            per_group=not common,
            level=None,
            metrics="all",
        )
        assert cells(found) == [(math.inf, 1, 0, 0, 1)]


@pytest.mark.parametrize("name", sweep(SEARCHES, fast=6))
def test_common_threshold_is_chosen_on_all_rows(name: str) -> None:
    for first in range(0, 15, 3):
        samples = dict(list(random_rows(15).items())[first : first + 3])
        frame = pl.concat(frame_of(rows, g) for g, rows in samples.items())
        rule = SEARCHES[name].rule
        found = wroc.threshold_metrics(
            frame, "y", "s", threshold=rule, level=None, weight="w", by="g", metrics="all"
        )
        chosen = search([row for rows in samples.values() for row in rows], SEARCHES[name])
        here = [chosen and at_threshold(rows, chosen) for rows in samples.values()]
        assert cells(found) == [expected_cells(cut) for cut in here]


def at_threshold(rows: list[Row], chosen: Cut) -> Cut:
    """The cut of some of the rows at a threshold of all of them."""
    above = [(y, w) for y, s, w in rows if s >= chosen.threshold and chosen.tp + chosen.fp]
    tp, fp = (sum(w for y, w in above if y == k) for k in (1, 0))
    return Cut(chosen.threshold, tp, fp, *cuts(rows)[0][3:])


def test_common_threshold_is_one_per_model(people: pl.DataFrame) -> None:
    frame = people.with_columns(t=-2 * pl.col("s") + pl.col("w"))
    lazy = wroc.threshold_metrics(
        frame.lazy(),
        "y",
        ["s", "t"],
        threshold=wroc.rules.youden(),
        level=None,
        weight="w",
        by="g",
        metrics="all",
    )
    found = lazy.collect()
    for model in ("s", "t"):
        whole = wroc.threshold_metrics(
            frame,
            "y",
            model,
            threshold=wroc.rules.youden(),
            per_group=True,
            level=None,
            weight="w",
            metrics="all",
        )
        threshold = whole["threshold"].item()
        expected = (
            frame.group_by("g")
            .agg(wroc.confusion_matrix("y", model, weight="w", threshold=threshold, metrics="all"))
            .unnest("confusion_matrix")
            .sort("g")
        )
        there = found.filter(model=model).drop("model", "reason")
        assert_frame_equal(there, expected, abs_tol=1e-12)


def test_costs_count_by_their_ratio(people: pl.DataFrame) -> None:
    expected = point(people, rule=wroc.rules.least_cost(fn=0.75, fp=0.25))
    for costs in ({"fn": 3, "fp": 1}, {"fn": 0.75}, {"fp": 0.25}):
        assert point(people, rule=wroc.rules.least_cost(**costs)) == expected


def test_prevalence_of_the_data_changes_nothing(people: pl.DataFrame) -> None:
    share = people.select((pl.col("w") * pl.col("y")).sum() / pl.col("w").sum()).item()
    found = point(people, rule=wroc.rules.least_cost(fn=0.6, prevalence=share))
    assert found == pytest.approx(point(people, rule=wroc.rules.least_cost(fn=0.6)))


@pytest.mark.parametrize("common", sweep([False, True]))
def test_limits_at_a_chosen_threshold_are_those_at_a_given_one(
    people: pl.DataFrame, common: bool
) -> None:
    options: dict[str, Any] = {"weight": "w", "level": 0.9, "metrics": "all"}
    rule = wroc.rules.least_cost(fn=0.6, prevalence=0.2)
    ours = wroc.threshold_metrics(
        people, "y", "s", threshold=rule, per_group=not common, by="g", **options
    )
    assert (ours["threshold"].n_unique() == 1) == common
    for row in ours.iter_rows(named=True):
        there = people.filter(pl.col("g").eq_missing(row["g"]))
        given = wroc.threshold_metrics(
            there, "y", "s", threshold=row["threshold"], prevalence=0.2, **options
        )
        expected = given.row(0, named=True)
        assert {name: row[name] for name in expected} == pytest.approx(expected)


@pytest.mark.parametrize("costs", [{"fn": 5, "fp": 1}, {"fn": 0.25, "fp": 40}, {"fp": 0.3}])
def test_expected_cost_is_the_mean_cost_of_the_rows(
    people: pl.DataFrame, costs: dict[str, float]
) -> None:
    rule = wroc.rules.least_cost(**costs)
    found = wroc.threshold_metrics(
        people, "y", "s", threshold=rule, per_group=True, weight="w", by="g"
    )
    fn, fp = costs.get("fn", 0.7), costs["fp"]
    for group, threshold, expected in found.select("g", "threshold", "expected_cost").rows():
        rows = people.filter(pl.col("g").eq_missing(group)).select("y", "s", "w").rows()
        paid = sum(w * (fn if y else fp) for y, s, w in rows if bool(y) != (s >= threshold))
        assert expected == pytest.approx(paid / sum(w for _, _, w in rows))


@pytest.mark.parametrize("prevalence", [None, 0.2])
def test_expected_cost_is_that_of_the_cost_curve(
    people: pl.DataFrame, prevalence: float | None
) -> None:
    rule = wroc.rules.least_cost(fn=3, fp=1, prevalence=prevalence)
    found = wroc.threshold_metrics(
        people, "y", "s", threshold=rule, per_group=True, weight="w", by="g"
    )
    curve = wroc.cost_curve(
        people, "y", "s", cost_fn=3, cost_fp=1, prevalence=prevalence, weight="w", by="g"
    )
    lowest = curve.group_by("g").agg(pl.col("expected_cost").min()).sort("g")
    assert found["expected_cost"].to_list() == pytest.approx(lowest["expected_cost"].to_list())
    at_limit = wroc.threshold_metrics(people, "y", "s", threshold=wroc.rules.max_fpr(0.1))
    assert "expected_cost" not in at_limit.columns


@pytest.mark.parametrize("common", sweep([False, True]))
def test_empty_frame_gives_no_groups(common: bool) -> None:
    empty = frame_of([])
    found = wroc.threshold_metrics(
        empty,
        "y",
        "s",
        threshold=wroc.rules.max_accuracy(),
        per_group=not common,
        level=None,
        by="g",
        metrics="all",
    )
    assert found.is_empty()
    for rule in SEARCHES.values():
        assert set(point(empty, rule.rule).values()) == {None}


@pytest.mark.parametrize(
    ("rule", "options", "message"),
    [
        ("least_cost", {}, "`fn` or `fp` must be given"),
        ("least_cost", {"fn": 0, "fp": 0}, "`fn` and `fp` must not both be 0"),
        ("least_cost", {"fn": 1.5}, "`fn` must be at most 1 where `fp` is not given"),
        ("least_cost", {"fp": 1.5}, "`fp` must be at most 1 where `fn` is not given"),
    ],
)
def test_arguments_out_of_range_are_rejected(
    rule: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        getattr(wroc.rules, rule)(**options)


def test_what_is_no_rule() -> None:
    needing: dict[str, Any]
    for needing in ({"per_group": True}, {"honest": "crossfit"}):
        (name,) = needing
        message = (
            rf"`{name}` must come with a rule as `threshold`, for example .*; found .* without one"
        )
        for threshold in (0.5, [0.5, 0.6], None):
            with pytest.raises(ValueError, match=message):
                wroc.threshold_metrics(frame_of(SEVEN), "y", "s", threshold=threshold, **needing)
    wrong: Any
    for wrong, error in ((wroc.rules.youden, TypeError), ("mean", ValueError)):
        with pytest.raises(error, match="`threshold` must be"):
            wroc.threshold_metrics(
                frame_of(SEVEN), "y", "s", threshold=wrong, metrics="all", level=None
            )


@pytest.mark.parametrize("word", ["youden", "Youden", "closest-topleft", "max_fpr"])
def test_the_name_of_a_rule_leads_to_the_rule(word: str) -> None:
    listed = [
        wroc.rules.closest_topleft(),
        wroc.rules.least_cost(fn=5, fp=1),
        wroc.rules.max_accuracy(),
        wroc.rules.max_fpr(fpr=0.1),
        wroc.rules.max_selection_rate(rate=0.1),
        wroc.rules.min_tpr(tpr=0.9),
        wroc.rules.youden(),
    ]
    assert [rule.name for rule in listed] == wroc.rules.__all__
    calls = {rule.name: f"wroc.rules.{rule!r}" for rule in listed}
    asked = calls[word.lower().replace("-", "_")]
    with pytest.raises(ValueError, match="`threshold` must be a number, 'median' or a rule") as got:
        wroc.group_gaps(frame_of(SEVEN), "y", "s", attributes="s", threshold=word)  # type: ignore[arg-type]
    all_calls = ", ".join(calls.values())
    assert str(got.value).endswith(f": {all_calls}; found {word!r}; did you mean {asked}?")


def test_a_word_close_to_median_leads_to_it() -> None:
    with pytest.raises(ValueError, match=r"found 'medain'; did you mean 'median'\?$"):
        wroc.threshold_metrics(frame_of(SEVEN), "y", "s", threshold="medain")  # type: ignore[arg-type]


def test_rules_are_values() -> None:
    rules = {wroc.rules.max_fpr(0.1), wroc.rules.max_fpr(0.1), wroc.rules.least_cost(fn=5, fp=1)}
    assert len(rules) == 2
    assert {repr(rule) for rule in rules} == {"max_fpr(fpr=0.1)", "least_cost(fn=5, fp=1)"}
    assert wroc.rules.max_fpr(0.1).as_dict() == {"rule": "max_fpr", "fpr": 0.1}


@pytest.mark.parametrize("choice", ["median", wroc.rules.min_tpr(0.7)])
def test_one_threshold_for_all_groups(people: pl.DataFrame, choice: Any) -> None:
    rule = wroc.rules.max_selection_rate(0.5) if choice == "median" else choice
    found = wroc.threshold_metrics(
        people, "y", "s", threshold=choice, weight="w", by="g", metrics="all", level=None
    )
    chosen = wroc.threshold_metrics(people, "y", "s", threshold=rule, per_group=True, weight="w")
    expected = wroc.threshold_metrics(
        people,
        "y",
        "s",
        threshold=chosen["threshold"].item(),
        weight="w",
        by="g",
        metrics="all",
        level=None,
    )
    assert_frame_equal(found, expected)
